#!/usr/bin/env python3
"""How long an interrupt takes, in every place where MongoDB is waited for, of every kind.

MongoDB is behind a proxy that stops answering.  A cancel and a timeout are measured
until the client may go on, a termination until the backend is gone.  Each case has a
PostgreSQL session and a proxy of its own.

Prints a table, "ok - TEXT" or "not ok - TEXT" for each check, and "done" at the end.
"""
import concurrent.futures
import itertools
import os
import socket
import threading
import time

import psycopg2
import pymongo

from commit_proxy import Plan, Proxies, wait_until
from test_arguments import parser

TIMEOUT_MS = 500        # of timeouts that PostgreSQL keeps
numbers = itertools.count(1)
setup_lock = threading.Lock()


class Case:
    """A session on a server of its own."""

    def __init__(self, bench, options="", uri_options="", **credentials):
        self.bench = bench
        self.proxies = Proxies([bench.port], uri_options)
        name = f"s{next(numbers)}"
        mapping = ", ".join(f"{key} '{value}'" for key, value in credentials.items())
        bench.query(f"""
            CREATE SERVER {name} FOREIGN DATA WRAPPER mongo_fdw
                OPTIONS (uri '{self.proxies.uri}'{options});
            CREATE USER MAPPING FOR PUBLIC SERVER {name} {f"OPTIONS ({mapping})" if mapping else ""};
            CREATE FOREIGN TABLE t_{name} (_id int, v int) SERVER {name} OPTIONS (database 'db', collection '{name}');
            CREATE FOREIGN TABLE big_{name} (_id int, v int) SERVER {name} OPTIONS (database 'db', collection 'big')""")
        self.name, self.table, self.big = name, f"t_{name}", f"big_{name}"
        self.connection = psycopg2.connect(bench.dsn)
        self.connection.autocommit = True
        self.pid = self.connection.get_backend_pid()
        self.error = None

    def ask(self, *statements):
        with self.connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return cursor.fetchall() if cursor.description else None

    def freeze(self, passing=0):
        """MongoDB answers so many times more, then it is silent."""
        self.proxies.arm(Plan({passing - 1: None} if passing else {}, "silent"))

    def begin(self):
        self.ask("BEGIN", f"INSERT INTO {self.table} VALUES (1)")


# Places: prepare the session, then give the statement that will wait (None: it idles).

def read_frozen(case):
    case.begin()
    case.freeze()
    return f"SELECT * FROM {case.table}"


def read_busy(case):
    case.begin()
    case.proxies.withhold_replies()
    return f"SELECT * FROM {case.table}"


def get_more_in_transaction(case):
    case.begin()
    case.ask(f"DECLARE c CURSOR FOR SELECT * FROM {case.big}", "FETCH 50 FROM c")
    case.freeze()
    return "FETCH 5000 FROM c"


def second_insert(case):
    case.begin()
    case.freeze()
    return f"INSERT INTO {case.table} VALUES (2)"


def update(case):
    case.begin()
    case.freeze()
    return f"UPDATE {case.table} SET v = 5 WHERE _id = 1"


def commit(case):
    case.begin()
    case.freeze()
    return "COMMIT"


def commit_of_reads(case):
    case.ask("BEGIN ISOLATION LEVEL REPEATABLE READ", f"SELECT * FROM {case.table}")
    case.freeze()
    return "COMMIT"


def rollback(case):
    case.begin()
    case.freeze()
    return "ROLLBACK"


def idle(case):
    case.begin()
    case.freeze()
    return None


def connecting(case):
    case.freeze()
    return f"SELECT * FROM {case.table}"


def authenticating(case):
    case.freeze(passing=1)
    return f"SELECT * FROM {case.table}"


def selecting(case):
    return f"SELECT * FROM {case.table}"


def bulk_write(case):
    case.ask(f"INSERT INTO {case.table} VALUES (1)")
    case.freeze()
    return f"INSERT INTO {case.table} SELECT g, g FROM generate_series(2, 5000) g"


def plain_read(case):
    case.ask(f"SELECT * FROM {case.table}")
    case.freeze()
    return f"SELECT * FROM {case.table}"


def plain_get_more(case):
    case.ask("BEGIN", f"DECLARE c CURSOR FOR SELECT * FROM {case.big}", "FETCH 50 FROM c")
    case.freeze()
    return "FETCH 50000 FROM c"


def command(case):
    case.ask(f"SELECT * FROM {case.table}")
    case.freeze()
    return f"""SELECT mongo_command('{case.name}', 'db', '{{"ping": 1}}')"""


# Kinds: seconds from the interrupt to its end.

def by_function(function):
    def measure(case, statement):
        answer = threading.Thread(target=swallow, args=(case, statement)) if statement else None
        if answer:
            answer.start()
            wait_until(lambda: case.bench.is_waiting(case.pid), 10)
            time.sleep(0.1)
        start = time.monotonic()
        case.bench.query(f"SELECT {function}({case.pid})")
        if function == "pg_terminate_backend":
            wait_until(lambda: case.bench.is_gone(case.pid), 30)
        else:
            answer.join()
        return time.monotonic() - start
    return measure


def by_timeout(setting):
    def measure(case, statement):
        case.ask(f"SET {setting} = {TIMEOUT_MS}")
        start = time.monotonic()
        if statement:
            swallow(case, statement)
        # the transaction is over when COMMIT has failed, and its timeout with it
        if setting != "statement_timeout" and statement != "COMMIT":
            wait_until(lambda: case.bench.is_gone(case.pid), 30)
        return time.monotonic() - start - TIMEOUT_MS / 1000
    return measure


def client_gone(case, statement):
    """From the client's end to the backend's, with a look at the client every 100 ms."""
    case.ask("SET client_connection_check_interval = 100")
    thread = threading.Thread(target=swallow, args=(case, statement))
    thread.start()
    wait_until(lambda: case.bench.is_waiting(case.pid), 10)
    time.sleep(0.1)
    start = time.monotonic()
    with socket.socket(fileno=os.dup(case.connection.fileno())) as connection:
        connection.shutdown(socket.SHUT_RDWR)
    wait_until(lambda: case.bench.is_gone(case.pid), 30)
    seconds = time.monotonic() - start
    thread.join()
    return seconds


def swallow(case, statement):
    try:
        case.ask(statement)
    except psycopg2.Error as error:
        case.error = error


cancel, terminate = by_function("pg_cancel_backend"), by_function("pg_terminate_backend")
timeout, idle_timeout = by_timeout("statement_timeout"), by_timeout("idle_in_transaction_session_timeout")
transaction_timeout = by_timeout("transaction_timeout")

KINDS = {"cancel": cancel, "statement_timeout": timeout, "terminate": terminate, "client gone": client_gone}

# Place, what Case() gets, kinds besides; "aborts": a MongoDB transaction is to be
# aborted over a new connection, which takes up to a second.
PLACES = (
    ("read in a transaction, server stopped", read_frozen, {}, "aborts"),
    ("read in a transaction, server busy", read_busy, {}, ""),
    ("getMore in a transaction", get_more_in_transaction, {}, "aborts"),
    ("second INSERT", second_insert, {}, "aborts"),
    ("UPDATE", update, {}, "aborts"),
    ("COMMIT", commit, {}, "aborts"),
    ("COMMIT of reads", commit_of_reads, {}, ""),
    ("ROLLBACK", rollback, {}, "aborts"),
    ("idle in a transaction", idle, {}, "idle"),
    ("connecting", connecting, {}, ""),
    ("server selection", selecting, {"options": ", server_selection_timeout_ms '20000'", "uri_options": "replicaSet=other"}, ""),
    ("authentication", authenticating, {"username": "app", "password": "secret"}, ""),
    ("INSERT without a transaction", bulk_write, {"options": ", transactions 'off'"}, ""),
    ("read", plain_read, {}, ""),
    ("getMore", plain_get_more, {}, ""),
    ("mongo_command()", command, {}, ""),
)


class Bench:
    def __init__(self, dsn, port):
        self.dsn, self.port = dsn, port
        self.control = psycopg2.connect(dsn)
        self.control.autocommit = True
        client = pymongo.MongoClient("127.0.0.1", port, directConnection=True)
        client.drop_database("db")
        database = client["db"]
        database["big"].insert_many({"_id": i, "v": i} for i in range(20000))
        client["admin"].command("dropAllUsersFromDatabase")
        client["admin"].command("createUser", "app", pwd="secret", roles=["root"])

    def query(self, sql):
        with setup_lock, self.control.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall() if cursor.description else None

    def is_waiting(self, pid):
        return self.query(f"SELECT state = 'active' AND wait_event IS NOT NULL FROM pg_stat_activity WHERE pid = {pid}")[0][0]

    def is_gone(self, pid):
        return not self.query(f"SELECT 1 FROM pg_stat_activity WHERE pid = {pid}")


def check(passed, text):
    print(("ok - " if passed else "not ok - ") + text, flush=True)


def kinds_of(place, note, version):
    if note == "idle":
        yield "terminate", terminate
        yield "idle_in_transaction_session_timeout", idle_timeout
    else:
        yield from KINDS.items()
    if version >= 170000 and place not in (rollback, commit_of_reads):
        yield "transaction_timeout", transaction_timeout


def measure(bench, place, arguments, kind):
    case = Case(bench, **arguments)
    statement = place(case)
    seconds = kind(case, statement)
    case.proxies.heal()
    if kind in (cancel, timeout) or place is commit and kind is transaction_timeout:
        check_told(case, place)
    case.connection.close()
    return seconds


def check_told(case, place):
    """By a cancel or timeout; one that comes while something is ended changes nothing."""
    expected = "08007" if place is commit else None if place in (rollback, commit_of_reads) else "57014"
    told = case.error.pgcode if case.error else None
    if told != expected and not (told == "57014" and place is commit_of_reads):
        raise AssertionError(f"told {told}, not {expected}: {case.error}")


def check_goes_on(bench):
    """After a cancel the session goes on, and nothing is left in MongoDB."""
    case = Case(bench)
    case.begin()
    case.proxies.withhold_replies()
    by_function("pg_cancel_backend")(case, f"SELECT * FROM {case.table}")
    check(case.error.pgcode == "57014", f"a cancelled read says so ({case.error})")
    case.ask("ROLLBACK")
    check(case.ask(f"SELECT count(*) FROM {case.table}") == [(0,)], "the session goes on, and what it wrote is gone")
    check(wait_until(lambda: case.ask(f"INSERT INTO {case.table} VALUES (1)") is None, 1) is not None, "no lock is left")


def check_warning(bench):
    """ROLLBACK of a transaction on a server that does not answer."""
    case = Case(bench)
    case.begin()
    case.freeze()
    start = time.monotonic()
    case.ask("ROLLBACK")
    seconds = time.monotonic() - start
    check(0.9 < seconds < 2, f"ROLLBACK gives up after a second ({seconds:.2f})")
    check(any("could not tell server" in notice for notice in case.connection.notices), f"... and warns ({case.connection.notices})")


def check_barrier(bench):
    """DROP DATABASE waits until every backend has heard."""
    case = Case(bench)
    case.begin()
    case.freeze()
    waiting = threading.Thread(target=swallow, args=(case, f"SELECT * FROM {case.table}"))
    waiting.start()
    wait_until(lambda: bench.is_waiting(case.pid), 10)
    bench.query("CREATE DATABASE heard TEMPLATE template0 STRATEGY wal_log")
    start = time.monotonic()
    bench.query("DROP DATABASE heard")
    seconds = time.monotonic() - start
    check(waiting.is_alive() and seconds < 5, f"a process signal barrier is served and breaks nothing ({seconds:.2f} s)")
    bench.query(f"SELECT pg_log_backend_memory_contexts({case.pid})")
    time.sleep(0.2)
    check(waiting.is_alive(), "nor does a request to log memory contexts")
    bench.query(f"SELECT pg_terminate_backend({case.pid})")
    waiting.join()


def main():
    arguments = parser(__doc__)
    arguments.add_argument("--port", type=int, required=True, help="of a mongod that is a replica set")
    arguments.add_argument("--clients", type=int, default=8)
    arguments.add_argument("--limit", type=float, default=1.0, help="seconds that an interrupt may take under load")
    arguments = arguments.parse_args()
    bench = Bench(arguments.dsn, arguments.port)
    version = bench.control.server_version

    with concurrent.futures.ThreadPoolExecutor(arguments.clients) as pool:
        results = [(name, note, [(kind_name, pool.submit(measure, bench, place, how, kind))
                                 for kind_name, kind in kinds_of(place, note, version)])
                   for name, place, how, note in PLACES]
        for name, note, kinds in results:
            seconds = {kind: future.result() for kind, future in kinds}
            limit = arguments.limit + (1.0 if note == "aborts" else 0)
            check(max(seconds.values()) < limit,
                  "%s: %s" % (name, ", ".join("%s %.2f" % item for item in seconds.items())))
    check_goes_on(bench)
    check_warning(bench)
    check_barrier(bench)
    print("done")


main()
