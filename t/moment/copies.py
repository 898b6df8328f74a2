"""First copies while the collections are written, renamed, dropped and replaced.

Each row must equal MongoDB's at the time that the table claims, or the table says that it is
stopped or fails.  The documents of a "fixed" collection are only updated, and created together with
it, so that a reader sees all of them, also where MongoDB cannot be asked any more.
"""
import random
import threading
import time

import psycopg2
from bson import Binary
from pymongo import InsertOne, UpdateOne, DeleteOne, WriteConcern
from pymongo.errors import OperationFailure, PyMongoError

import collections_of_round as mongodb
import tables

FREE, FIXED = ("x0", "x1"), ("y0", "y1", "y2")
LOST = "the changes since its last step are lost"
COUNT = 400                     # documents of a fixed collection
FREE_COUNT = 2000

POSITION = """
    SELECT g.consistent_at, m.state, m.identity, m.reason, s.state, g.position
    FROM mongo_sync.members m JOIN mongo_sync.groups g ON g.id = m.group_id
    LEFT JOIN mongo_sync.status s ON s.local_table = m.local_table::regclass
    WHERE m.target = to_regclass(%s)"""


def documents(number, version):
    return [{"_id": i, "v": version} for i in range(number)]


def fill(database):
    majority = WriteConcern("majority")
    for name in FREE:
        database.get_collection(name, write_concern=majority).insert_many(documents(FREE_COUNT, 0))
    for name in FIXED:
        database.get_collection(name, write_concern=majority).insert_many(documents(COUNT, 0))


def write_free(client, database, choice):
    """Inserts, updates and deletes, acknowledged by the primary alone or by a majority."""
    time.sleep(choice.choice((0, 0.01, 0.05)))
    collection = database.get_collection(choice.choice(FREE), write_concern=WriteConcern(choice.choice((1, 1, "majority")),
                                                                                   wtimeout=3000))
    writes = []
    for _ in range(choice.choice((1, 1, 5, 50))):
        key = choice.randrange(FREE_COUNT * 2)
        writes.append(choice.choice((
            UpdateOne({"_id": key}, {"$inc": {"v": 1}}),
            UpdateOne({"_id": key}, {"$set": {"v": choice.randrange(1000)}}, upsert=True),
            DeleteOne({"_id": key}))))
    collection.bulk_write(writes, ordered=False)


def write_fixed(client, database, choice):
    time.sleep(choice.choice((0, 0.01, 0.05)))
    collection = database.get_collection(choice.choice(FIXED), write_concern=WriteConcern(1))
    if choice.random() < 0.2:
        collection.update_many({"_id": {"$gte": choice.randrange(COUNT)}}, {"$inc": {"v": 1}})
    else:
        collection.update_one({"_id": choice.randrange(COUNT)}, {"$inc": {"v": 1}})


def insert_all(client, collection):
    """A transaction, which creates the collection, too."""
    with client.start_session() as session, session.start_transaction(write_concern=WriteConcern("majority")):
        collection.insert_many(documents(COUNT, -1), session=session)


# What change_definitions() does.
DEFINITIONS = ("index", "collMod", "rename and back", "rename", "drop", "drop and insert", "out", "rename onto", "capped",
               "insert")


def change_definitions(client, database, choice):
    """Something that has the collection go, or have another one come, or only looks like it."""
    time.sleep(choice.uniform(0.05, 0.8))
    name = choice.choice(FIXED)
    collection = database[name]
    what = choice.choice(DEFINITIONS)
    try:
        if what == "index":
            indexed = database[choice.choice(FREE + FIXED)]
            # otherwise an index would create it, without documents
            if indexed.name in database.list_collection_names():
                indexed.create_index("v")
                time.sleep(choice.choice((0, 0.2)))
                indexed.drop_index("v_1")
        elif what == "collMod":
            database.command("collMod", name, validationLevel="moderate")
        elif what == "rename and back":
            collection.rename(f"{name}_away")
            time.sleep(choice.choice((0, 0.2, 1)))
            database[f"{name}_away"].rename(name)
        elif what == "rename":
            collection.rename(f"{name}_away_{choice.randrange(1_000_000)}")
        elif what == "drop":
            collection.drop()
        elif what == "drop and insert":
            collection.drop()
            time.sleep(choice.choice((0, 0.3)))
            insert_all(client, collection)
        elif what == "out":
            if "other" not in database.list_collection_names():
                insert_all(client, database.other)
            database.other.aggregate([{"$set": {"v": choice.randrange(1000)}}, {"$out": name}])
        elif what == "rename onto":
            insert_all(client, database[f"{name}_new"])
            database[f"{name}_new"].rename(name, dropTarget=True)
        elif what == "capped" and choice.random() < 0.3:
            database.command("convertToCapped", name, size=10_000_000)
        elif what == "insert" and name not in database.list_collection_names():
            insert_all(client, collection)
        else:
            what = None
    except OperationFailure as error:
        if error.code not in (26, 27, 48, 11000, 112, 20, 10026, 246, 251):
            raise
        what = None
    return what


class Callers(mongodb.Background):
    """A session for each table, which calls until the round ends."""

    def __init__(self, state, as_schema, seed):
        super().__init__()
        self.state, self.as_schema, self.seed = state, as_schema, seed
        for table in FREE + FIXED:
            self.run(self._run, table)

    def _run(self, table):
        state = self.state
        choice = random.Random(f"{self.seed} {table}")
        follow = choice.choice(("", ", follow => true"))
        connection = None
        while not self.stop.is_set():
            try:
                if connection is None or connection.closed:
                    connection = tables.connect(state.dsn, "moment driver")
                    connection.cursor().execute("SET client_min_messages = warning")
                cursor = connection.cursor()
                if choice.random() < 0.1:
                    cursor.execute(f"CALL mongo_sync.recopy('{state.name}_local.{table}')")
                elif self.as_schema:
                    cursor.execute(f"CALL mongo_sync.sync_schema('{state.name}', '{state.name}_local'{follow})")
                else:
                    cursor.execute(f"CALL mongo_sync.sync('{state.name}.{table}', '{state.name}_local.{table}'{follow})")
                state.counts["copies: calls"] += 1
            except psycopg2.Error as error:
                state.note_error(error)
                if connection is not None and choice.random() < 0.1:
                    connection.close()
            time.sleep(choice.choice((0, 0.05, 0.5)))
        if connection is not None:
            connection.close()

    def end(self):
        self.state.errors += ["a session that calls does not end"] * super().end(90)


def look(cursor, name, table):
    """(consistent_at, identity) and the rows, if the table claims to equal MongoDB; None and the state otherwise."""
    cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    try:
        cursor.execute(POSITION, (f"{name}_local.{table}",))
        found = cursor.fetchone()
        if found is None or found[0] is None or found[1] != "synchronized":
            if found is not None:
                cursor.execute(f"SELECT count(*) FROM {name}_local.{table}")
                found += cursor.fetchone()
            return None, found
        cursor.execute(f"SELECT _id, v FROM {name}_local.{table} ORDER BY 1")
        return (found[0], found[2]), cursor.fetchall()
    finally:
        cursor.execute("ROLLBACK")


def compare(rows, found):
    missing, more = set(rows) - set(found), set(found) - set(rows)
    return [f"{len(missing)} of {len(rows)} rows are missing, {sorted(missing)[:3]}, {len(more)} are wrong, {sorted(more)[:3]}"] \
        if missing or more or len(rows) != len(found) else []


class Reader(tables.Reader):
    def __init__(self, state, has_ddl):
        self.has_ddl = has_ddl
        self.positions = {}     # of tables' groups, before they began again
        super().__init__(state)

    def _look_at_state(self, table, found, claim):
        """A collection that stays must stay synchronized; of one that does not the rows stay."""
        if found is None:
            return
        if table in FIXED and found[1] == "stopped" and claim is not None and claim[1] == found[2] and found[-1] != COUNT:
            self.state.errors.append(f"{table} is stopped, {found[3]}, and has {found[-1]} rows of {COUNT}")
        consistent_at, state, _, reason, _, position = found[:6]
        if consistent_at is None and state == "synchronized":
            self.state.counts["copies: not consistent"] += 1
        if state == "stopped" and reason == LOST and mongodb.first_of_oplog(self.state.ports) > self.positions.get(table, 0):
            self.state.counts["copies: looks after the oplog was cut"] += 1
            return
        if reason != LOST:
            self.positions[table] = position
        if state == "stopped" and reason != "it is copied again" and (table in FREE or not self.has_ddl):
            text = f"{table} is stopped, {reason}, but its collection has not changed"
            if text not in self.state.errors:
                self.state.errors.append(text)

    def _look(self, cursor, client, last):
        state = self.state
        for table in FREE + FIXED:
            claim, rows = look(cursor, state.name, table)
            state.counts["copies: looks"] += 1
            if claim is None:
                self._look_at_state(table, rows, last.get(table))
            else:
                self.positions[table] = claim[0]
            if claim is None or last.get(table) == claim:
                continue
            last[table] = claim
            texts = []
            if table in FIXED and len(rows) != COUNT:
                texts.append(f"{len(rows)} rows of {COUNT}")
            try:
                read = mongodb.read(client[state.name], table, claim[0], Binary(bytes.fromhex(claim[1]), 4))
                texts += compare([(document["_id"], document["v"]) for document in read], rows)
                state.counts["copies: comparisons"] += 1
            except OperationFailure as error:
                state.counts[f"copies: comparisons impossible: {error.code}"] += 1
            except PyMongoError as error:
                state.counts[f"copies: comparisons impossible: {type(error).__name__}"] += 1
            if texts:
                state.errors.append(f"{table} claims to equal MongoDB at {mongodb.timestamp(claim[0])}, but " + "; ".join(texts))


def identity_and_rows(client, name, table):
    """The UUID and the rows of a collection, and whether it is capped; None if there is none."""
    found = list(client[name].list_collections(filter={"name": table}))
    if not found:
        return None
    read = mongodb.read(client[name], table)
    return bytes(found[0]["info"]["uuid"]).hex(), \
        sorted((document["_id"], document["v"]) for document in read), found[0]["options"].get("capped", False)


def failure_of(state, cursor, call):
    """Calls; returns the error, which is noted, or None."""
    try:
        cursor.execute(call)
    except psycopg2.Error as error:
        state.note_error(error)
        return error
    return None


def check_others_do_not_matter(state, cursor, table, call, as_schema, present):
    """A table whose collection stays becomes equal, whatever becomes of others of its group."""
    end = time.monotonic() + 60
    while True:
        failure = failure_of(state, cursor, call)
        error = None if failure is None else tables.describe(failure)
        claim, rows = look(cursor, state.name, table)
        if claim is not None and not compare(present[1], rows):
            return
        # a schema with a collection that cannot be synchronized is not begun
        if claim is None and rows is None and as_schema and error is not None and error[:5] in ("42P01", "42809"):
            return
        # killed more often than it could go on, until the oplog was cut
        if state.counts["copies: looks after the oplog was cut"] and "changes since its last step are lost" in str(error):
            state.counts["copies: changes lost"] += 1
            return
        if time.monotonic() > end:
            state.errors.append(f"{table} does not become equal: {error}; " + (f"{rows}" if claim is None else "; ".join(compare(present[1], rows))))
            return
        time.sleep(0.1)


def check_at_end(state, client, table, as_schema, changed):
    """The table is equal, or says that it is not; copied again it is equal."""
    local = f"{state.name}_local.{table}"
    connection = tables.connect(state.dsn, "moment end")
    cursor = connection.cursor()
    cursor.execute("SET client_min_messages = warning; SET statement_timeout = '60s'")
    call = f"CALL mongo_sync.sync_schema('{state.name}', '{state.name}_local')" if as_schema else \
        f"CALL mongo_sync.sync('{state.name}.{table}', '{local}')"
    present = identity_and_rows(client, state.name, table)
    if table in FREE:
        check_others_do_not_matter(state, cursor, table, call, as_schema, present)
    last = "none"
    for attempt in range(60):
        error = failure_of(state, cursor, call)
        last = None if error is None else tables.describe(error)
        if error is None or error.pgcode not in ("57014", "08006", "HV00N") and ("is not synchronized any more" in last or attempt >= 5):
            break
        time.sleep(0.5)
    claim, rows = look(cursor, state.name, table)
    state.counts[f"copies: at the end {'equal' if claim else 'not claimed'}"] += 1
    if claim is not None:
        texts = []
        if present is None:
            texts.append("there is no such collection")
        elif present[2]:
            texts.append("it is capped")
        elif claim[1] != present[0]:
            texts.append(f"it is another collection, {claim[1]} and not {present[0]}")
        else:
            texts += compare(present[1], rows)
        # otherwise it claims to equal an earlier state
        if texts and last is None:
            state.errors.append(f"at the end {table} claims to equal MongoDB, but " + "; ".join(texts) + f"; last error {last}")
    elif last is None:
        state.errors.append(f"{table}: the call has succeeded, but {rows}")
    # again
    if present is None:
        insert_all(client, client[state.name][table])
    elif present[2]:
        return
    present = identity_and_rows(client, state.name, table)
    for attempt in range(30):
        cursor.execute("SELECT count(*) FROM mongo_sync.members WHERE target = to_regclass(%s)", (local,))
        again = f"CALL mongo_sync.recopy('{local}')" if cursor.fetchone()[0] else \
            f"CALL mongo_sync.sync('{state.name}.{table}', '{local}')"
        error = failure_of(state, cursor, again)
        last = last if error is None else tables.describe(error)
        claim, rows = look(cursor, state.name, table)
        if claim is not None and claim[1] == present[0]:
            break
        time.sleep(0.5)
    if claim is None or claim[1] != present[0]:
        state.errors.append(f"{table} cannot be copied again: {last}, {rows if claim is None else claim}")
    else:
        state.errors += [f"{table} copied again: {text}" for text in compare(present[1], rows)]
    connection.close()


def wait_for_events(state, seconds, before, count, wanted):
    """Waits until so many are counted, on a busy machine longer; ends early if something is wrong."""
    begin = time.monotonic()
    while not state.errors and time.monotonic() < begin + 8 * seconds and \
            (time.monotonic() < begin + seconds / 2 or count() < before + wanted):
        time.sleep(0.1)


def wait_for_members(state, seconds=20):
    """Waits until a copy of each table has begun; a schema with a collection that is missing does not."""
    cursor = tables.connect(state.dsn).cursor()
    end = time.monotonic() + seconds
    count = 0
    while count < len(FREE + FIXED) and time.monotonic() < end:
        time.sleep(0.02)
        cursor.execute("SELECT count(DISTINCT local_table) FROM mongo_sync.members "
                       "WHERE foreign_table IN (SELECT oid FROM pg_class WHERE relnamespace = %s::regnamespace)", (state.name,))
        count, = cursor.fetchone()
    cursor.connection.close()


def run_copying(state, servers, seed, seconds, disturbers):
    """A round of copies; appends what was wrong to state.errors."""
    choice = random.Random(f"{seed} copies")
    preference = choice.choice(("primary", "secondary", "nearest"))
    as_schema = choice.random() < 0.4
    servers.lagging = choice.choice((None, 0, 1, 2))
    has_ddl = choice.random() < 0.8
    print(f"# round {seed}: copies of {'a schema' if as_schema else 'tables'}, {preference}, "
          f"{'with' if has_ddl else 'without'} DDL, lagging member {servers.lagging}", flush=True)
    with mongodb.client_of(state.ports, **mongodb.PATIENT) as client:
        client.drop_database(state.name)
        fill(client[state.name])
        cursor = tables.connect(state.dsn).cursor()
        tables.create_server(cursor, state.name, state.ports, f"readPreference={preference}&readConcernLevel=majority", choice)
        cursor.execute(f"CREATE SCHEMA {state.name}; CREATE SCHEMA {state.name}_local")
        for table in FREE + FIXED:
            cursor.execute(f"CREATE FOREIGN TABLE {state.name}.{table} (_id int, v int) SERVER {state.name} "
                           f"OPTIONS (database '{state.name}')")
        cursor.connection.close()
        comparisons = state.counts["copies: comparisons"]
        writers = mongodb.Writers(state.ports, state.name, seed, state.counts, state.errors)
        writers.start(*[write_free] * 2, *[write_fixed] * 2)
        callers = Callers(state, as_schema, seed)
        reader = Reader(state, has_ddl)
        if has_ddl:
            if choice.random() < 0.7:
                wait_for_members(state)
            writers.start(change_definitions)
        stop = threading.Event()
        threads = [threading.Thread(target=disturber, args=(stop,)) for disturber in disturbers]
        for thread in threads:
            thread.start()
        wait_for_events(state, seconds, comparisons, lambda: state.counts["copies: comparisons"], 20)
        writers.end()
        stop.set()
        for thread in threads:
            thread.join()
        if not servers.wait_until_whole():
            state.errors.append("the replica set does not become whole")
        callers.end()
        reader.end()
        mongodb.write_to_all_members(client)
        for table in FREE + FIXED:
            check_at_end(state, client, table, as_schema, has_ddl)
        if not state.errors:
            cursor = tables.connect(state.dsn).cursor()
            tables.drop_tables(cursor, state.name, FREE + FIXED)
            cursor.connection.close()
        client.drop_database(state.name)
