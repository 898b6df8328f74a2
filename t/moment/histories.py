"""A server that was restored from its files, or initiated anew over them, is noticed.

It has the same name, address, collections and UUIDs as before.  Its position must be refused until
the tables are copied again, which "follow" does by itself.  One that was only restarted must not.
"""
import random
import time

import psycopg2
import pymongo
from pymongo import WriteConcern

import collections_of_round as mongodb
import tables

SERVER = 3
NAMES = ("h", "k")
DOCUMENTS = 100
KINDS = ("restored", "restored", "initiated anew", "restarted", "killed")


def client_of(ports):
    return pymongo.MongoClient("127.0.0.1", ports[SERVER], directConnection=True,
                               serverSelectionTimeoutMS=20000, socketTimeoutMS=20000)


def wait_for_primary(ports, seconds=60):
    end = time.monotonic() + seconds
    with client_of(ports) as client:
        while not client.admin.command("hello")["isWritablePrimary"]:
            if time.monotonic() > end:
                raise TimeoutError("the server is no primary")
            time.sleep(0.02)


def start(servers, ports):
    servers.do("start", SERVER)
    wait_for_primary(ports)


def initiate_anew(servers, ports):
    """Gives the set another oplog over the same data."""
    with client_of(ports) as client:
        config = client.admin.command("replSetGetConfig")["config"]
    servers.do("stop", SERVER)
    servers.do("start_alone", SERVER)
    with client_of(ports) as client:
        client.drop_database("local")
    servers.do("stop", SERVER)
    servers.do("start", SERVER)
    with client_of(ports) as client:
        client.admin.command("replSetInitiate", {"_id": config["_id"], "members": config["members"]})
    wait_for_primary(ports)


def write(ports, name, choice):
    """Changes documents, in one or both collections."""
    with client_of(ports) as client:
        for collection in choice.choice((NAMES, NAMES[:1], NAMES[1:])):
            documents = client[name].get_collection(collection, write_concern=WriteConcern("majority"))
            first = choice.randrange(DOCUMENTS)
            documents.update_many({"_id": {"$gte": first}}, {"$inc": {"v": choice.randrange(1, 100)}})
            if choice.random() < 0.5:
                documents.delete_one({"_id": choice.randrange(DOCUMENTS)})
            if choice.random() < 0.5:
                documents.replace_one({"_id": choice.randrange(2 * DOCUMENTS)}, {"v": 5}, upsert=True)


def call(cursor, name, follow):
    cursor.execute(f"CALL mongo_sync.sync_schema('{name}', '{name}_local', follow => {follow})")


def difference(cursor, ports, name):
    """What differs from MongoDB, which nobody writes."""
    found = {}
    for table in NAMES:
        cursor.execute(f"TABLE {name}_local.{table}")
        found[table] = sorted(cursor.fetchall())
    with client_of(ports) as client:
        return tables.differences(found, mongodb.rows_of(client[name], names=NAMES))


def position_of(cursor, name):
    cursor.execute("SELECT position FROM mongo_sync.groups WHERE name = %s", (f"{name}_local",))
    return cursor.fetchone()[0]


def call_until(state, cursor, name, follow, is_end, seconds=60):
    """Repeats the call until an error, or None, is what is waited for; returns the last one."""
    end = time.monotonic() + seconds
    while True:
        try:
            call(cursor, name, follow)
            error = None
        except psycopg2.Error as failure:
            state.note_error(failure)
            error = failure
        if is_end(error) or time.monotonic() > end:
            return error
        time.sleep(0.1)


def expect(state, cursor, name, kind, follow):
    """The call must refuse the position, or go on if it may; then all is equal."""
    before = position_of(cursor, name)
    is_kept = kind in ("restarted", "killed")
    if is_kept or follow:
        error = call_until(state, cursor, name, follow, lambda error: error is None)
        if error is not None:
            state.errors.append(f"after it was {kind}, it does not go on: {tables.describe(error)}")
            return
    else:
        error = call_until(state, cursor, name, follow, lambda error: error is None or tables.is_lost(error))
        if error is None or not tables.is_lost(error):
            state.errors.append(f"that it was {kind} is not noticed: {error and tables.describe(error)}")
        elif position_of(cursor, name) != before:
            state.errors.append(f"it was {kind}, but the position has moved")
        else:
            state.counts["histories: refused"] += 1
        for table in NAMES:
            call_until(state, cursor, name, follow, lambda error: error is None or tables.is_lost(error), 0)
            try:
                cursor.execute(f"CALL mongo_sync.recopy('{name}_local.{table}')")
            except psycopg2.Error as failure:
                # the other one is not copied again yet
                if "is not synchronized any more" not in str(failure):
                    state.errors.append(f"it cannot be copied again: {tables.describe(failure)}")
        error = call_until(state, cursor, name, follow, lambda error: error is None, 20)
        if error is not None:
            state.errors.append(f"copied again, it does not go on: {tables.describe(error)}")
            return
    state.errors += [f"it was {kind}: {text}" for text in difference(cursor, state.ports, name)]
    state.counts["histories: comparisons"] += 1


def run_history(state, servers, seed):
    choice = random.Random(f"{seed} history")
    name, ports = state.name, state.ports
    kind = choice.choice(KINDS)
    follow = choice.random() < 0.3
    has_id = choice.random() < 0.5
    is_behind = choice.random() < 0.5
    print(f"# round {seed}: a server is {kind}, {'with' if has_id else 'without'} the set's id, "
          f"{'with' if is_behind else 'without'} changes to come{', follow' if follow else ''}", flush=True)
    with client_of(ports) as client:
        client.drop_database(name)
        for collection in NAMES:
            client[name].get_collection(collection, write_concern=WriteConcern("majority")).insert_many(
                [{"_id": i, "v": 0} for i in range(DOCUMENTS)])
    cursor = tables.connect(state.dsn).cursor()
    tables.create_server(cursor, name, ports[SERVER:], "readConcernLevel=majority", choice)
    cursor.execute(f"CREATE SCHEMA {name}; CREATE SCHEMA {name}_local; SET client_min_messages = warning")
    for table in NAMES:
        cursor.execute(f"CREATE FOREIGN TABLE {name}.{table} (_id int, v int) SERVER {name} OPTIONS (database '{name}')")
    call(cursor, name, follow)
    write(ports, name, choice)
    call(cursor, name, follow)
    if not has_id:
        # as for a role that may not read it
        cursor.execute("UPDATE mongo_sync.groups SET replica_set = NULL WHERE name = %s", (f"{name}_local",))
    if kind == "restored":
        servers.do("stop", SERVER)
        servers.do("save", SERVER)
        start(servers, ports)
    write(ports, name, choice)
    call_until(state, cursor, name, follow, lambda error: error is None)
    if is_behind:
        cursor.execute(f"SELECT mongo_sync.pause('{name}_local.h')")
        write(ports, name, choice)
    if kind == "initiated anew":
        initiate_anew(servers, ports)
    else:
        servers.do("kill" if kind == "killed" else "stop", SERVER)
        if kind == "restored":
            servers.do("restore", SERVER)
        start(servers, ports)
    if choice.random() < 0.7:
        write(ports, name, choice)
    if is_behind:
        cursor.execute(f"SELECT mongo_sync.resume('{name}_local.h')")
    state.counts[f"faults: {kind}"] += 1
    expect(state, cursor, name, kind, follow)
    if not state.errors:
        tables.drop_tables(cursor, name, NAMES)
    cursor.connection.close()
    with client_of(ports) as client:
        client.drop_database(name)
