#!/usr/bin/env python3
"""A long test of everything at once: clients read, write and are interrupted while servers fail.

Three parts, on a replica set of three members and a standalone server:

memory  one session, no faults: its memory after many statements is that after few
calm    all clients, with errors, cancelled statements and lost sessions; servers run
storm   the same, while members are stopped, killed, restarted and stepped down and a
        proxy cuts the connections of every second client

Each read is compared with the expected rows: rows that never change, the client's own
rows, a constant sum.  At the end the rows are compared with the outcomes reported to
each client, and MongoDB and PostgreSQL are checked for leftovers.

All the time a background worker keeps tables synchronized with what the clients write, through
proxies that cut its connections, while the oplog has 16 MB only.

Run by t/soak/soak.pl, which starts the servers.
"""
import argparse
import collections
import random
import threading
import time

import bson
import psycopg2
import pymongo
from pymongo.errors import NotPrimaryError, PyMongoError

from checks import Checks
from cutting_proxy import CuttingProxies
from client import STATEMENT_TIMEOUT, Client, Soak
from faults import (FAULTS_ALONE, FAULTS_OF_SET, Servers, Watch, break_servers, cancel_sessions,
                         end_sessions)
from model import ACCOUNTS, INITIAL_BALANCE, PARTS
from reads import FIXED

CALM_SHARE = 0.2                # of the time
SELECTION_TIMEOUT = 4           # seconds that a statement searches for a primary
COMMIT_LIMIT = 35               # a commit tries to find its outcome for 30
FEW_STATEMENTS = 1000           # after which a session's memory should no longer grow
MEMORY_LIMIT = 1024             # kB that it may still grow

TABLES = """
    CREATE SCHEMA {name};
    CREATE FOREIGN TABLE {name}.fixed (n int, kind int, square bigint, word text) SERVER {name}
        OPTIONS (database 'soak', fetch_size '500');
    CREATE FOREIGN TABLE {name}.part ("of" int, part int) SERVER {name} OPTIONS (database 'soak');
    CREATE FOREIGN TABLE {name}.bad (v int) SERVER {name} OPTIONS (database 'soak');
    CREATE FOREIGN TABLE {name}.own (_id int, v bigint, note text) SERVER {name}
        OPTIONS (database 'soak', batch_size '20');
    CREATE FOREIGN TABLE {name}.entry (client int, number int) SERVER {name}
        OPTIONS (database 'soak');
    CREATE FOREIGN TABLE {name}.account (_id int, balance bigint) SERVER {name}
        OPTIONS (database 'soak');
    ANALYZE {name}.fixed, {name}.part, {name}.account;
"""

SYNCHRONIZED = {"own": "_id int, v bigint, note text", "entry": "_id objectid, client int, number int",
                "account": "_id int, balance bigint"}

LOCAL = """
    CREATE TABLE local_entry (client int, number int);
    CREATE FUNCTION soak_caught(schema text, first int, past int) RETURNS int LANGUAGE plpgsql AS $$
    DECLARE
        caught int := 0;
        x int;
    BEGIN
        FOR i IN first .. past - 1 LOOP
            BEGIN
                EXECUTE format('SELECT 1 / (n - %s) FROM %I.fixed WHERE n BETWEEN %s AND %s',
                               i, schema, i, i + 3) INTO x;
            EXCEPTION WHEN division_by_zero THEN
                caught := caught + 1;
            END;
        END LOOP;
        RETURN caught;
    END $$;
"""


def load(client):
    """Fills the collections of a server."""
    client.drop_database("soak")
    database = client.soak
    database.fixed.insert_many([{"n": n, "kind": kind, "square": bson.Int64(square), "word": word}
                                for n, kind, square, word in FIXED])
    database.fixed.create_index("n")
    database.part.insert_many([{"of": row[0], "part": part} for row in FIXED for part in range(PARTS)])
    database.part.create_index("of")
    database.bad.insert_one({"v": "not a number"})
    database.account.insert_many([{"_id": i, "balance": bson.Int64(INITIAL_BALANCE)}
                                  for i in range(ACCOUNTS)])
    for name in ("own", "entry"):
        database.create_collection(name)


def create_tables(arguments, ports, proxies):
    def uri(ports, options):
        return f"mongodb://{','.join(f'127.0.0.1:{port}' for port in ports)}/?{options}"

    with psycopg2.connect(arguments.dsn) as connection, connection.cursor() as cursor:
        cursor.execute(LOCAL)
        for suffix, (*members, alone) in (("", ports), ("_cut", proxies)):
            for name, where, options in (
                    ("rs", uri(members, "replicaSet=rs"), ""),
                    ("off", uri(members, "replicaSet=rs"), ", transactions 'off'"),
                    # a standalone server's writes survive SIGKILL only in the journal
                    ("alone", uri([alone], "journal=true"), "")):
                cursor.execute(
                    f"CREATE SERVER {name}{suffix} FOREIGN DATA WRAPPER mongo_fdw OPTIONS (uri '{where}', "
                    f"server_selection_timeout_ms '{SELECTION_TIMEOUT * 1000}'{options}); "
                    f"CREATE USER MAPPING FOR CURRENT_USER SERVER {name}{suffix};" +
                    TABLES.format(name=name + suffix))


def synchronize_tables(arguments, members):
    """Has the background worker keep tables synchronized."""
    connection = psycopg2.connect(arguments.dsn)
    connection.autocommit = True
    cursor = connection.cursor()
    hosts = ",".join(f"127.0.0.1:{port}" for port in members)
    # another appName: these connections are not left by clients
    cursor.execute(f"CREATE SERVER step FOREIGN DATA WRAPPER mongo_fdw OPTIONS (uri 'mongodb://{hosts}/?"
                   f"replicaSet=rs&readConcernLevel=majority&appName=step', "
                   f"server_selection_timeout_ms '{SELECTION_TIMEOUT * 1000}'); "
                   f"CREATE USER MAPPING FOR CURRENT_USER SERVER step; CREATE SCHEMA step; CREATE SCHEMA synchronized")
    for name, columns in SYNCHRONIZED.items():
        cursor.execute(f"CREATE FOREIGN TABLE step.{name} ({columns}) SERVER step OPTIONS (database 'soak')")
        # the oplog may become too short while the worker is kept from its work
        cursor.execute(f"CALL mongo_sync.sync('step.{name}', 'synchronized.{name}', follow => true)")
    connection.close()


def check_synchronized(checks, arguments, seconds=240):
    """Waits until the worker has caught up; the tables must then be equal."""
    connection = psycopg2.connect(arguments.dsn)
    connection.autocommit = True
    cursor = connection.cursor()
    end = time.monotonic() + seconds
    for name in SYNCHRONIZED:
        difference = None
        while difference != 0 and time.monotonic() < end:
            time.sleep(1)
            cursor.execute(f"SELECT count(*) FROM ((TABLE step.{name} EXCEPT ALL TABLE synchronized.{name}) UNION ALL "
                           f"(TABLE synchronized.{name} EXCEPT ALL TABLE step.{name})) difference")
            (difference,), = cursor.fetchall()
        cursor.execute("SELECT state, rows_inserted + rows_updated + rows_deleted, rows_copied, last_error FROM mongo_sync.status "
                       "WHERE local_table = %s::regclass", (f"synchronized.{name}",))
        (state, changes, rows, error), = cursor.fetchall()
        checks.check([f"{difference} rows differ, {state}, {error}"] if difference != 0 or changes == 0 else [],
                     f"table \"{name}\" is synchronized")
        print(f"# {changes} changes of {name} were applied, and {rows} rows were copied", flush=True)
    connection.close()


def anonymous_kilobytes(pid):
    """Returns a process's private memory: its RSS without shared memory."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon"))


def run_memory(checks, soak):
    """Runs one session for so many statements."""
    client = Client(soak, soak.arguments.clients)
    soak.clients.append(client)     # its writes are checked like the others'
    client.connect()
    few = None
    while client.statements < soak.arguments.statements and client.connection is not None:
        client.act()
        if few is None and client.statements >= FEW_STATEMENTS:
            few = anonymous_kilobytes(client.pid)
    growth = anonymous_kilobytes(client.pid) - few if client.connection is not None and few else None
    checks.check([f"{growth} kB more"] if growth is None or growth > MEMORY_LIMIT else [],
                 f"memory of a session after {client.statements} statements is that after {FEW_STATEMENTS}")
    print(f"# a session had {few} kB after {FEW_STATEMENTS} statements, {growth} kB more after "
          f"{client.statements}", flush=True)
    client.disconnect()


def run_clients(soak, seconds, disturbers):
    """Runs all clients for some time; returns those that do not end."""
    soak.stop.clear()
    threads = [threading.Thread(target=client.run, name=f"client {client.number}", daemon=True)
               for client in soak.clients if client.number < soak.arguments.clients]
    threads += [threading.Thread(target=disturber, args=arguments, name=disturber.__name__, daemon=True)
                for disturber, *arguments in disturbers]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    soak.stop.set()
    end = time.monotonic() + COMMIT_LIMIT + 60
    for thread in threads:
        thread.join(timeout=max(0, end - time.monotonic()))
    return [thread.name for thread in threads if thread.is_alive()]


def touch(soak):
    """Uses each server once more in each session, which releases what the session held."""
    for client in soak.clients:
        for name in ("rs", "off", "alone"):
            if client.connection is not None:
                try:
                    client.rows_of(f"SELECT * FROM {client.schema(name)}.fixed WHERE n = 1")
                except psycopg2.Error as error:
                    client.recover(error)


def left_on(servers, what):
    """Returns the number of connections, cursors or transactions on each server."""
    found = {}
    for server in range(4):
        with servers.client(server) as client:
            try:
                found[server] = left_on_one(client, what)
            except NotPrimaryError:
                # a secondary that was primary may still have to go back
                time.sleep(1)
                if not servers.wait_until_whole():
                    raise
                found[server] = left_on_one(client, what)
    return found


def left_on_one(client, what):
    if what == "connections":
        return len(list(client.admin.aggregate(
            [{"$currentOp": {"allUsers": True, "idleConnections": True}}, {"$match": {"appName": "mongo_fdw"}}])))
    if what.startswith("cursors"):
        return len(cursors_of(client, what))
    return client.admin.command("serverStatus").get("transactions", {}).get("currentOpen", 0)


def cursors_of(client, what):
    """Returns cursors on the test's collections, but not the worker's open change streams."""
    session = {"cursors": {}, "cursors of sessions": {"cursor.originatingCommand.lsid": {"$exists": True}},
               "cursors outside of sessions": {"cursor.originatingCommand.lsid": {"$exists": False}}}[what]
    cursors = client.admin.aggregate(
        [{"$currentOp": {"allUsers": True, "idleCursors": True}},
         {"$match": {"cursor": {"$exists": True}, "ns": {"$regex": "^soak\\."}, **session}}])
    return [cursor for cursor in cursors
            if not any("$changeStream" in stage for stage in cursor["cursor"]["originatingCommand"].get("pipeline", []))]


def open_cursors(servers, what):
    """Describes the open cursors for a message."""
    found = []
    for server in range(4):
        with servers.client(server) as client:
            for operation in cursors_of(client, what):
                cursor = operation["cursor"]
                command = {name: value for name, value in cursor["originatingCommand"].items()
                           if not name.startswith("$")}
                found.append(f"server {server}: {operation['type']}, {cursor['nBatchesReturned']} batches, "
                             f"last used {cursor['lastAccessDate']}: {command}")
    return found


def wait_for_none(servers, what, seconds):
    """Waits for some time until nothing is left; returns what is."""
    end = time.monotonic() + seconds
    while True:
        found = left_on(servers, what)
        if not any(found.values()) or time.monotonic() > end:
            return found
        time.sleep(0.5)


def check_cursors(checks, soak, servers, part):
    """Checks open cursors.  An interrupted statement may leave one that MongoDB was opening.

    MongoDB closes an unused cursor after ten minutes, or earlier if its timeout is
    lowered; a cursor in a session of libmongoc ends with the session.
    """
    found = left_on(servers, "cursors")
    broken = sum(soak.counts[f"error {state}"] for state in ("57014", "57P01", "08006", None))
    checks.check([f"by server: {found}; {broken} statements"] if sum(found.values()) > broken else [],
                 f"{part}: no more cursors are left open than statements were broken off")
    print(f"# {part}: cursors left open by server {found}, of them in sessions "
          f"{left_on(servers, 'cursors of sessions')}; {broken} statements were broken off", flush=True)
    for timeout in (1, 600_000):
        for server in range(4):
            with servers.client(server) as client:
                client.admin.command("setParameter", 1, cursorTimeoutMillis=timeout)
        if timeout == 1:
            check_none_left(checks, servers, "cursors outside of sessions", 15,
                            f"{part}, after their time limit")


def check_none_left(checks, servers, what, seconds, when):
    found = wait_for_none(servers, what, seconds)
    offenders = []
    if any(found.values()):
        offenders = [f"by server: {found}"] + (open_cursors(servers, what) if "cursors" in what else [])
    checks.check(offenders, f"{when}: MongoDB has no {what} left open")


def backends(soak):
    with psycopg2.connect(soak.arguments.dsn) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT application_name, state, query FROM pg_stat_activity "
                       "WHERE application_name LIKE 'soak client%'")
        return cursor.fetchall()


def check_end_of_part(checks, soak, servers, late, part):
    """Checks what is left when clients are idle, and after they have disconnected."""
    checks.check(late, f"{part}: every client comes to its end")
    touch(soak)
    check_cursors(checks, soak, servers, part)
    check_none_left(checks, servers, "transactions", 10, f"{part}, sessions idle")
    idle = [anonymous_kilobytes(client.pid) for client in soak.clients if client.pid is not None]
    print(f"# {part}: {len(idle)} sessions idle, of {min(idle)} to {max(idle)} kB each; "
          f"connections by server {left_on(servers, 'connections')}", flush=True)
    for client in soak.clients:
        client.disconnect()
    end = time.monotonic() + 10
    while backends(soak) and time.monotonic() < end:
        time.sleep(0.2)
    checks.check(backends(soak), f"{part}: no backend stays when its client has gone")
    check_none_left(checks, servers, "connections", 5, f"{part}, sessions gone")
    check_none_left(checks, servers, "cursors outside of sessions", 1, f"{part}, sessions gone")


def read_results(soak, servers):
    """Returns {collection: {key: row}, ...} as committed by a majority."""
    results = {}
    majority = pymongo.read_concern.ReadConcern("majority")
    for collection, server in (("set", servers.primary()), ("alone", Servers.ALONE)):
        with servers.client(server) as client:
            # the reads below must return majority-committed rows
            client.soak.get_collection("quiet", write_concern=pymongo.WriteConcern("majority")).insert_one({})

            def read(name):
                return list(client.soak.get_collection(name, read_concern=majority).find())
            results[collection] = {
                "own": {row["_id"]: (row["v"], row.get("note")) for row in read("own")},
                "entry": collections.Counter((row["client"], row["number"]) for row in read("entry")),
                "account": {row["_id"]: row["balance"] for row in read("account")},
            }
    with psycopg2.connect(soak.arguments.dsn) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT client, number FROM local_entry")
        results["local"] = collections.Counter(cursor.fetchall())
    return results


def all_works(soak):
    """Returns (client, collection, work) of all transactions and statements."""
    for client in soak.clients:
        for collection, rows in client.rows.items():
            for work in rows.works:
                yield client, collection, work


def check_rows(checks, soak, results):
    wrong, half = [], []
    for collection in ("set", "alone"):
        found = collections.defaultdict(dict)
        for key, row in results[collection]["own"].items():
            found[key // 10_000_000][key] = row
        for client in soak.clients:
            rows, there = client.rows[collection], found.pop(client.number, {})
            wrong += [f"client {client.number}, {collection}: {text}" for text in rows.wrong(there)]
            half += [f"client {client.number}: {text}" for text in rows.half_done(there)]
        wrong += [f"{collection}: nobody wrote {rows}" for rows in found.values()]
    checks.check(wrong, "every row is as it was acknowledged, and none is there that was refused")
    checks.check(half, "a transaction of unknown outcome is there as a whole or not at all")


def check_entries(checks, soak, results):
    """Checks that each acknowledged number exists once, in both databases."""
    offenders = {"committed": [], "refused": [], "unknown": [], "both": [], "rows": []}
    for client, collection, work in all_works(soak):
        name = (client.number, work.number)
        there, here = results[collection]["entry"][name], results["local"][name]
        if work.entered:
            allowed = {"committed": (1,), "refused": (0,), "unknown": (0, 1)}[work.outcome]
            if there not in allowed:
                offenders[work.outcome].append(f"{name} in {collection}: {there} times")
            key = next((key for key in work.after if work.after[key] != work.before[key]), None)
            if work.outcome == "unknown" and work.atomic and key is not None and \
                    (results[collection]["own"].get(key) == work.after[key]) != (there == 1):
                offenders["rows"].append(f"{name}: {there} times, row {key} "
                                         f"is {results[collection]['own'].get(key)}")
        if work.local:
            allowed = {"committed": (1,), "refused": (0,), "unknown": (0, there)}[work.outcome]
            if here not in allowed:
                offenders["both"].append(f"{name}: {there} times in MongoDB, {here} in PostgreSQL, "
                                         f"{work.outcome}")
    known = {(client.number, work.number) for client, _, work in all_works(soak)}
    strangers = [name for part in ("set", "alone") for name in results[part]["entry"] if name not in known]
    checks.check(offenders["committed"], "every acknowledged entry is there exactly once")
    checks.check(offenders["refused"] + strangers, "no entry that was refused is there")
    checks.check(offenders["unknown"], "an entry of unknown outcome is there once or not")
    checks.check(offenders["rows"], "and so are the rows of its transaction")
    checks.check(offenders["both"], "PostgreSQL has what MongoDB has, at worst less where a client was "
                 "told nothing")


def check_accounts(checks, soak, results):
    expected = dict.fromkeys(range(ACCOUNTS), INITIAL_BALANCE)
    for client, collection, work in all_works(soak):
        if results[collection]["entry"][client.number, work.number] == 1:
            for account, change in work.moved:
                expected[account] += change
    found = results["set"]["account"]
    checks.check([f"account {i}: {found.get(i)}, by the entries {expected[i]}" for i in expected
                  if found.get(i) != expected[i]], "every balance is what the entries say")


def check_activity(checks, soak, proxies):
    """Checks that the test has done enough to be meaningful."""
    seconds = soak.arguments.seconds
    counts = soak.counts
    faults = sum(counts[f"{fault.__name__} {whom}"] for _, fault, whom, _ in FAULTS_OF_SET + FAULTS_ALONE)
    wanted = {
        "reads checked": (counts["reads checked"], 10 * seconds),
        "transactions committed": (counts["transactions committed"], seconds),
        "statements committed": (counts["statements committed"], seconds),
        "errors wanted": (counts["wanted error 22012"] + counts["wanted error 23505"], seconds // 4),
        "statements cancelled": (counts["error 57014"], seconds // 4),
        "sessions": (counts["sessions"], soak.arguments.clients + seconds // 10),
        "faults of servers": (faults, seconds // 20),
        "connections cut": (proxies.cuts, seconds // 4),
    }
    checks.check([f"{what}: {count}, fewer than {least}" for what, (count, least) in wanted.items()
                  if count < least],
                 "there was enough of everything: " +
                 ", ".join(f"{count} {what}" for what, (count, _) in wanted.items()))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--dsn", required=True, help="libpq connection string; a scratch database")
    parser.add_argument("--ports", required=True, help="of three members of replica set rs, and of "
                        "a server that stands alone; with commas between; database soak is dropped")
    parser.add_argument("--seconds", type=int, default=600, help="of calm and storm together")
    parser.add_argument("--statements", type=int, default=100_000, help="for the part about memory; 0: none")
    parser.add_argument("--clients", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    random.seed(arguments.seed)
    ports = [int(port) for port in arguments.ports.split(",")]
    proxies = CuttingProxies(ports, arguments.seed)
    servers = Servers(ports)
    for server in (servers.primary(), Servers.ALONE):
        with servers.client(server, w="majority") as client:
            load(client)
    create_tables(arguments, ports, proxies.ports)
    synchronize_tables(arguments, proxies.ports[:3])

    soak = Soak(arguments)
    checks = Checks()
    if arguments.statements:
        run_memory(checks, soak)
    # every second client uses the proxies; a quarter keeps its session all the time
    soak.clients += [Client(soak, number, cut=number % 2 == 1, mortal=number % 4 < 3)
                     for number in range(arguments.clients)]
    watch = Watch(soak, STATEMENT_TIMEOUT, COMMIT_LIMIT)
    disturbers = [(cancel_sessions, soak, arguments.seed), (end_sessions, soak, arguments.seed), (watch.run,)]

    late = run_clients(soak, arguments.seconds * CALM_SHARE, disturbers)
    check_end_of_part(checks, soak, servers, late, "calm")

    proxies.start_cutting()
    late = run_clients(soak, arguments.seconds * (1 - CALM_SHARE), disturbers + [
        (break_servers, soak, servers, FAULTS_OF_SET, arguments.seed),
        (break_servers, soak, servers, FAULTS_ALONE, arguments.seed + 1)])
    proxies.stop_cutting()
    checks.check([] if servers.wait_until_whole() else ["it has not"],
                 "the replica set has a primary and two secondaries again")
    check_end_of_part(checks, soak, servers, late, "storm")

    results = read_results(soak, servers)
    checks.check(soak.wrong, f"no read was wrong, of {soak.counts['reads checked']}")
    check_rows(checks, soak, results)
    check_entries(checks, soak, results)
    check_accounts(checks, soak, results)
    check_synchronized(checks, arguments)
    checks.check(watch.hanging.values(), "no statement ran longer than it may")
    checks.check(soak.unexpected, "no error but those expected")
    check_activity(checks, soak, proxies)
    print(f"# longest read: {watch.longest[False][1]}")
    print(f"# longest write or commit: {watch.longest[True][1]}")
    print(f"# {dict(sorted(soak.counts.items()))}")
    print("done")
    raise SystemExit(1 if checks.failed else 0)


if __name__ == "__main__":
    try:
        main()
    except PyMongoError as error:
        raise SystemExit(f"MongoDB: {error}") from error
