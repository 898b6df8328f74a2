"""PostgreSQL's side: the tables of a round, sessions that synchronize them, and readers."""
import random
import threading
import time

import psycopg2
from pymongo import WriteConcern
from pymongo.errors import OperationFailure, PyMongoError

import collections_of_round as mongodb

# name: columns, options, key
TABLES = {
    "a": ("_id int, v int", "collection 'a'"),
    "b": ("_id int, v int", "collection 'b'"),
    "orders": ("_id int, version int, nlines int, nparts int", "collection 'orders'"),
    "lines": ("_id int, n int, version int OPTIONS (path 'lines.version'), sku text OPTIONS (path 'lines.sku')",
              "collection 'orders', unwind 'lines', ordinality 'n'"),
    "parts": ("_id int, n int, m int, version int OPTIONS (path 'lines.parts.version')",
              "collection 'orders', unwind 'lines, lines.parts', ordinality 'n, m'"),
    "bulk": ("_id int, v int", "collection 'bulk'"),
    "marks": ("_id int, v int", "collection 'marks'"),
}

# made before they are synchronized, in some rounds: foreign keys must hold at every commit
PARENTS = """
    CREATE TABLE {schema}.orders (_id int PRIMARY KEY, version int, nlines int, nparts int);
    CREATE TABLE {schema}.lines (_id int REFERENCES {schema}.orders{deferrable}, n int, version int, sku text,
                                 PRIMARY KEY (_id, n));
    CREATE TABLE {schema}.parts (_id int, n int, m int, version int, PRIMARY KEY (_id, n, m),
                                 FOREIGN KEY (_id, n) REFERENCES {schema}.lines{deferrable});
"""

POSITION = """
    SELECT g.id, g.position, g.consistent_at,
           bool_and(m.state = 'synchronized' AND m.target = m.local_table), string_agg(DISTINCT m.reason, '; ')
    FROM mongo_sync.groups g JOIN mongo_sync.members m ON m.group_id = g.id
    WHERE g.id = (SELECT group_id FROM mongo_sync.members WHERE target = to_regclass(%s)) GROUP BY g.id"""


def connect(dsn, name="moment", timeout=60):
    """Connects, as soon as the server accepts that."""
    end = time.monotonic() + timeout
    while True:
        try:
            connection = psycopg2.connect(dsn, application_name=name)
            connection.autocommit = True
            return connection
        except psycopg2.OperationalError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def create_server(cursor, name, ports, options, choice):
    hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
    cursor.execute(f"CREATE SERVER {name} FOREIGN DATA WRAPPER mongo_fdw OPTIONS (uri 'mongodb://{hosts}/?"
                   f"replicaSet=rs&{options}', server_selection_timeout_ms '4000', connect_timeout_ms '2000', "
                   f"socket_timeout_ms '{choice.choice((3000, 5000, 20000))}'); "
                   f"CREATE USER MAPPING FOR CURRENT_USER SERVER {name}")


def create_tables(cursor, name, choice):
    cursor.execute(f"CREATE SCHEMA {name}; CREATE SCHEMA {name}_local")
    for table, (columns, options) in TABLES.items():
        cursor.execute(f"CREATE FOREIGN TABLE {name}.{table} ({columns}) SERVER {name} "
                       f"OPTIONS (database '{name}', {options})")
    kind = choice.randrange(3)
    if kind:
        cursor.execute(PARENTS.format(schema=f"{name}_local", deferrable=" DEFERRABLE" if kind == 1 else ""))


def drop_tables(cursor, name, tables):
    for table in tables:
        cursor.execute("SELECT mongo_sync.stop(%s::regclass) WHERE EXISTS "
                       "(SELECT FROM mongo_sync.members WHERE local_table = to_regclass(%s))",
                       (f"{name}_local.{table}", f"{name}_local.{table}"))
    cursor.execute(f"SET client_min_messages = error; DROP SCHEMA IF EXISTS {name}_local CASCADE; "
                   f"DROP SERVER IF EXISTS {name} CASCADE; DROP SCHEMA IF EXISTS {name} CASCADE")


def describe(error):
    """An error's SQLSTATE and text."""
    diag = getattr(error, "diag", None)
    return f"{getattr(error, 'pgcode', None)} {diag.message_primary if diag else ''} | " \
           f"{(diag.message_detail or '') if diag else error}"


def is_lost(error):
    """Does the error say that the changes behind the position are gone?"""
    text = str(error)
    return "another history" in text or "resume point may no longer be in the oplog" in text or \
        "are lost" in text


class Drivers(mongodb.Background):
    """Sessions that call mongo_sync.sync_schema() again and again."""

    def __init__(self, state, number, seed):
        super().__init__()
        self.state, self.seed = state, seed
        self.recopying = threading.Lock()
        for i in range(number):
            self.run(self._run, i)

    def _run(self, number):
        choice = random.Random(f"{self.seed} driver {number}")
        state = self.state
        connection = None
        with mongodb.client_of(state.ports) as client:
            while not self.stop.is_set():
                try:
                    if connection is None or connection.closed:
                        connection = connect(state.dsn, "moment driver")
                        connection.cursor().execute(f"SET moment.batch = {state.batch}; "
                                                    "SET client_min_messages = warning")
                    self._call(connection, client, choice, number)
                except psycopg2.Error as error:
                    self._note(connection, error)
                    if choice.random() < 0.1 and connection is not None:
                        connection.close()
                time.sleep(choice.choice((0, 0.02, 0.3)))
        if connection is not None:
            connection.close()

    def _call(self, connection, client, choice, number):
        state = self.state
        mark = None
        if state.is_primary and choice.random() < 0.3:
            mark = choice.randrange(1_000_000_000)
            try:
                client[state.name].get_collection(
                    "marks", write_concern=WriteConcern("majority", wtimeout=3000)).update_one(
                        {"_id": number}, {"$set": {"v": mark}}, upsert=True)
            except PyMongoError:
                mark = None
        cursor = connection.cursor()
        timeout = choice.choice((0, 0, 0, choice.randrange(20, 2000)))
        cursor.execute(f"SET statement_timeout = {timeout}")
        cursor.execute(f"CALL mongo_sync.sync_schema('{state.name}', '{state.name}_local')")
        state.counts["calls"] += 1
        if mark is not None and not state.paused:
            cursor.execute(f"SELECT v FROM {state.name}_local.marks WHERE _id = %s", (number,))
            found = cursor.fetchall()
            if found != [(mark,)] and not state.paused:
                state.errors.append(f"a call has returned without a write that was acknowledged before: {found}, {mark}")
            state.counts["marks checked"] += 1

    def _note(self, connection, error):
        state = self.state
        state.note_error(error)
        if is_lost(error) and self.recopying.acquire(blocking=False):
            try:
                self._recopy(connection, error)
            except psycopg2.Error as other:
                state.note_error(other)
            finally:
                self.recopying.release()

    def _recopy(self, connection, error):
        """Copies again what has lost its position, if that is so."""
        state = self.state
        cursor = connection.cursor()
        cursor.execute("SET statement_timeout = 0")
        cursor.execute(POSITION, (f"{state.name}_local.a",))
        position = cursor.fetchone()[1]
        first = mongodb.first_of_oplog(state.ports)
        # still stopped since an earlier loss, as the session that copied them was killed
        is_earlier = "is not synchronized any more" in str(error)
        if position >= first and not is_earlier:
            state.errors.append(f"position {mongodb.timestamp(position)} is behind the oplog's first, "
                                f"{mongodb.timestamp(first)}: {describe(error)}")
        state.counts["positions lost"] += 1
        for table in TABLES:
            try:
                cursor.execute(f"CALL mongo_sync.recopy('{state.name}_local.{table}')")
            except psycopg2.Error as other:
                # foreign keys hold when all of them are copied
                state.note_error(other, True)

    def end(self):
        self.state.errors += ["a driver does not end"] * super().end(90)


def read_local(cursor, name):
    """What a reader sees: (id, position, consistent_at, whole, reasons), and {table: rows}, or None."""
    cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    try:
        cursor.execute(POSITION, (f"{name}_local.a",))
        found = cursor.fetchone()
        rows = {}
        if found is not None and found[2] is not None and found[3]:
            for table in TABLES:
                cursor.execute(f"TABLE {name}_local.{table}")
                rows[table] = sorted(cursor.fetchall())
        return found, rows
    finally:
        cursor.execute("ROLLBACK")


def differences(found, expected):
    """Describes the rows of tables that differ."""
    texts = []
    for table, rows in expected.items():
        missing, more = set(rows) - set(found[table]), set(found[table]) - set(rows)
        if missing or more or len(rows) != len(found[table]):
            texts.append(f"{table}: {len(missing)} of {len(rows)} rows of MongoDB's are missing, {sorted(missing)[:3]}, "
                         f"and {len(more)} are wrong, {sorted(more)[:3]}")
    return texts


def broken_rules(rows):
    """What can be seen without MongoDB: the sum of money, and children without their parent's state."""
    texts = []
    money = sum(v for _, v in rows["a"]) + sum(v for _, v in rows["b"])
    if money != 0:
        texts.append(f"the sum is {money}")
    orders = {order[0]: order for order in rows["orders"]}
    lines, parts = {}, {}
    for key, n, version, _ in rows["lines"]:
        lines[key] = lines.get(key, 0) + 1
        if key not in orders or orders[key][1] != version:
            texts.append(f"line {key}, {n} has version {version}, its order {orders.get(key)}")
    for key, n, m, version in rows["parts"]:
        parts[key] = parts.get(key, 0) + 1
        if key not in orders or orders[key][1] != version:
            texts.append(f"part {key}, {n}, {m} has version {version}, its order {orders.get(key)}")
    for key, _, nlines, nparts in rows["orders"]:
        if lines.get(key, 0) != nlines or parts.get(key, 0) != nparts:
            texts.append(f"order {key} has {lines.get(key, 0)} of {nlines} lines, {parts.get(key, 0)} of {nparts} parts")
    return texts[:5]


class Reader(mongodb.Background):
    """Compares what a reader sees with the rules, and with MongoDB at the time that the tables claim."""

    def __init__(self, state):
        super().__init__()
        self.state = state
        self.run(self._run)

    def _run(self):
        connection = None
        last = {}
        with mongodb.client_of(self.state.ports) as client:
            while not self.stop.wait(0.02):
                try:
                    if connection is None or connection.closed:
                        connection = connect(self.state.dsn, "moment reader")
                    self._look(connection.cursor(), client, last)
                except psycopg2.Error:
                    self.state.counts["readers disconnected"] += 1
                    if connection is not None:
                        connection.close()
        if connection is not None:
            connection.close()

    def _look(self, cursor, client, last):
        state = self.state
        found, rows = read_local(cursor, state.name)
        state.counts["looks"] += 1
        if found is None:
            return
        number, position, consistent_at, _, _ = found
        if last.get(number, 0) > position:
            state.errors.append(f"the position has gone back from {last[number]} to {position}")
        last[number] = position
        if not rows:
            state.counts["looks: not consistent"] += 1
            return
        if last.get("checked") == consistent_at:
            return
        last["checked"] = consistent_at
        texts = broken_rules(rows)
        state.counts["sums"] += 1
        try:
            texts += differences(rows, mongodb.rows_of(client[state.name], consistent_at))
            state.counts["comparisons"] += 1
        except OperationFailure as error:
            if error.code not in mongodb.GONE and error.code not in (50, 11602, 91, 189, 10107, 13435, 13436):
                texts.append(f"the reader: {error!r}")
            state.counts[f"comparisons impossible: {error.code}"] += 1
        except PyMongoError as error:
            state.counts[f"comparisons impossible: {type(error).__name__}"] += 1
        if texts:
            state.errors.append(f"consistent at {mongodb.timestamp(consistent_at)}, but " + "; ".join(texts))
