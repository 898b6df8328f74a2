#!/usr/bin/env python3
"""Every n-th operation fails once: allocations, sends, receives, checks for interrupts.

Needs a build with FAULTS=1 (make faults).  Each statement of
t/faults/statements.py runs with a fault in the first operation of a kind, then in the
second, and so on until there are no more.  After each run:

- it has succeeded with the right rows, or failed with an SQLSTATE of the kind of fault
- the session continues, unless memory has run out below libmongoc or it was terminated
- MongoDB has the acknowledged writes, and none of a failed statement; without a MongoDB
  transaction a WARNING reports how many remain
- MongoDB has no more cursors, transactions and connections of the session than before
- the session has no more file descriptors, memory contexts, chunks of libbson's
  memory and bytes in TopMemoryContext than before, when the run is repeated

Run by t/faults/faults.pl, which starts the servers.
"""
import collections
import os
import re
import time

import psycopg2
from pymongo import MongoClient

from checks import Checks
from statements import LOCAL, STATEMENTS, TABLES, Copy, documents
from test_arguments import parser

# SQLSTATEs of a statement after a fault, by kind.
BROKEN = ("08001", "08006", "08007", "40001")
KINDS = {
    "allocation": ("53200",),
    "palloc": ("53200",),
    "send": BROKEN,
    "receive": BROKEN,
    "interrupt": ("57014", "08007"),
    "termination": ("57P01", "08007"),
}
# SQLSTATEs that end the session.
FATAL = {"allocation": "53200", "termination": "57P01"}
MOST_CONNECTIONS = 4            # option async_connections
REPETITIONS = 4                 # for a place that seems to leak
SLOW = 10                       # seconds

METRICS = """
    SELECT sum(used_bytes) FILTER (WHERE name = 'TopMemoryContext'),
        count(*) FILTER (WHERE name LIKE 'mongo_fdw%'),
        current_setting('mongo_fdw.live_allocations')::int
    FROM pg_backend_memory_contexts"""
METRIC_NAMES = ("bytes in TopMemoryContext", "memory contexts", "chunks of libbson's memory", "descriptors")


class Server:
    """MongoDB, accessed by an ordinary client."""

    def __init__(self, name, uri):
        self.name = name
        self.client = MongoClient(uri, w=1)
        self.database = self.client.faults

    def load(self):
        for name in ("points", "details", "written", "changed", "kept"):
            self.database[name].drop()
            self.database[name].insert_many(documents(name))

    def rows(self):
        return {row["_id"]: row for row in self.database.written.find()}

    def restore(self, rows, before):
        if rows != before:
            self.database.written.delete_many({})
            self.database.written.insert_many(list(before.values()))

    def leftovers(self):
        """Returns (connections and their operations, cursors, transactions) of the extension."""
        found = ([], [], [])
        for operation in self.client.admin.aggregate([{"$currentOp": {
                "allUsers": True, "idleConnections": True, "idleCursors": True, "idleSessions": True}}]):
            if operation.get("appName") == "mongo_fdw" and operation["type"] == "op":
                found[0].append(operation)
            if operation["type"] == "idleCursor" and operation["ns"].startswith("faults."):
                found[1].append(operation["cursor"])
            if "transaction" in operation:
                found[2].append(operation["transaction"])
        return found

    def kill_cursor(self, cursor):
        self.database.command("killCursors", cursor["originatingCommand"].get(
            "collection", next(iter(cursor["originatingCommand"].values()))), cursors=[cursor["cursorId"]])

    def kill_transactions(self):
        self.client.admin.command("killAllSessions", [])


class Session:
    """A session in PostgreSQL."""

    def __init__(self, bench, settings, schema):
        self.connection = psycopg2.connect(bench.arguments.dsn)
        self.connection.autocommit = True
        self.pid = self.connection.get_backend_pid()
        self.execute("LOAD 'mongo_fdw'")
        self.execute(f"SET search_path = {schema}, public")
        self.execute("SET statement_timeout = '60s'")
        self.execute(f"SET mongo_fdw.fault_stack = {'on' if bench.arguments.stack else 'off'}")
        for setting in settings:
            self.execute("SET {} = {}".format(*setting.split("=")))

    def execute(self, sql):
        """Returns its rows, or None."""
        with self.connection.cursor() as cursor:
            if isinstance(sql, Copy):
                sql.run(cursor)
                return None
            cursor.execute(sql)
            return cursor.fetchall() if cursor.description else None

    def descriptors(self):
        folder = f"/proc/{self.pid}/fd"
        count = 0
        for name in os.listdir(folder):
            try:
                count += re.search("socket|eventpoll|pipe", os.readlink(f"{folder}/{name}")) is not None
            except FileNotFoundError:
                pass
        return count

    def metrics(self):
        return [*map(int, self.execute(METRICS)[0]), self.descriptors()]

    def close(self):
        try:
            self.connection.close()
        except psycopg2.Error:
            pass


Outcome = collections.namedtuple("Outcome", "results, error, code, committing, warnings, hit, lost, seconds")


def is_lost(session, error):
    return session.connection.closed != 0 or error.pgcode is None or \
        getattr(error.diag, "severity_nonlocalized", "") == "FATAL"


def fatal_code(log):
    """Returns the SQLSTATE that ended a session, which psycopg2 does not always report."""
    if "It ran out in libmongoc, which cannot continue: the session ends." in log:
        return "53200"              # reported like a request to terminate
    for text, code in (("out of memory", "53200"), ("terminating connection", "57P01")):
        if f"FATAL:  {text}" in log:
            return code
    return None


class Place:
    """A statement on a server, with faults of one kind."""

    def __init__(self, bench, statement, server, kind):
        self.bench, self.statement, self.server, self.kind = bench, statement, server, kind
        self.session = None
        self.offenders = []
        self.counts = collections.Counter()
        self.before = {row["_id"]: row for row in documents("written")}
        self.expected = None        # the outcome without a fault
        self.after = None           # and the documents after it

    def __str__(self):
        return f"{self.statement.name}, {self.server.name}, {self.kind}"

    # ------------------------------ one attempt ------------------------------

    def start_session(self):
        if self.session is not None:
            self.session.close()
        self.session = Session(self.bench, self.statement.settings, self.server.name)
        if not self.statement.fresh:
            self.use()

    def use(self):
        """Runs a query on each server that the statement may use."""
        for server in self.bench.servers:
            rows = self.session.execute(f"SELECT info FROM {server.name}.points WHERE _id = 9")
            if rows != [("info 9",)]:
                raise AssertionError(f"the session reads {rows}")

    def attempt(self, n):
        """Runs the statement with the n-th fault; 0: none."""
        session = self.session
        results, error, committing = [], None, False
        del session.connection.notices[:]
        session.execute(f"SET mongo_fdw.fail_{self.kind} = {n}")
        self.bench.log.seek(0, os.SEEK_END)
        start = time.monotonic()
        try:
            for step in self.statement.steps:
                if isinstance(step, str):
                    step = step.format(server=self.server.name)
                # a single statement is a transaction
                committing = step == "COMMIT" or "BEGIN" not in self.statement.steps
                # EXPLAIN shows how many commands were sent; a failed one is sent again
                rows = [row for row in session.execute(step) or [] if "Remote Traffic" not in str(row)]
                results.append(sorted(rows, key=str) if rows and self.statement.sorted else rows)
        except psycopg2.Error as raised:
            error = raised
        seconds = time.monotonic() - start
        lost = error is not None and is_lost(session, error)
        if not lost:
            try:
                self.clean_up()
            except psycopg2.Error as raised:    # the fault may also occur here
                lost = is_lost(session, raised)
                if lost:
                    error = error or raised
                else:
                    self.clean_up()
        log = self.bench.log.read()
        hit = f"injected fault: mongo_fdw.fail_{self.kind}," in log
        code = error and ((fatal_code(log) if lost else None) or error.pgcode)
        return Outcome(results, error, code, committing, "\n".join(session.connection.notices), hit, lost, seconds)

    def clean_up(self):
        """Cleans up as a client does after an error; then removes the fault."""
        for sql in ("ROLLBACK", "CLOSE ALL", "DEALLOCATE ALL", f"SET mongo_fdw.fail_{self.kind} = 0"):
            self.session.execute(sql)

    # -------------------------------- checks ---------------------------------

    def complain(self, n, text):
        self.offenders.append(f"n = {n}: {text}")
        if self.bench.arguments.verbose:
            print(f"# {self}: n = {n}: {text}", flush=True)

    def judge_answer(self, n, outcome):
        error = outcome.error
        if outcome.seconds > SLOW:
            self.complain(n, f"took {outcome.seconds:.1f} s")
        if error is None or (error.pgcode and self.expected.error is not None and
                             error.pgcode == self.expected.error.pgcode):
            self.counts["went well"] += 1
            if error is None and self.expected.error is None and outcome.results != self.expected.results:
                self.complain(n, f"found {str(outcome.results)[:400]}")
            return
        code = outcome.code
        self.counts[f"{'FATAL ' if outcome.lost else ''}{code}"] += 1
        # If PL/pgSQL fails before it has ended the subtransaction of an error that it caught, then
        # PostgreSQL ends the session at the client's ROLLBACK: "unexpected state STARTED".
        excused = self.kind == "palloc" and "during exception cleanup" in str(outcome.error)
        if outcome.lost and FATAL.get(self.kind) != code and not excused:
            self.complain(n, f"the session ended: {code} {error}")
        elif code not in KINDS[self.kind]:
            self.complain(n, f"{code} {error}")
        elif code == "08007" and not (outcome.committing and self.server.name == "rs"):
            self.complain(n, f"an unknown outcome where nothing is committed: {error}")

    def judge_writes(self, n, outcome):
        rows = self.server.rows()
        local = self.bench.admin.execute("DELETE FROM local_rows RETURNING n")
        failed = outcome.error is not None
        unknown = failed and (outcome.code == "08007" or (outcome.lost and outcome.committing))
        if not failed:
            right = rows == self.after and local == self.local
        elif self.server.name == "rs":
            right = rows == self.before or (unknown and rows == self.after)
            # a cancel after both sides have committed is too late
            if outcome.committing and not unknown and local:
                right = False
        else:
            right = self.is_reported(rows, outcome)
        if failed and local and not (outcome.lost and rows == self.after):
            right = False
        if not right:
            self.complain(n, f"{'it failed' if failed else 'it succeeded'}: MongoDB has "
                          f"{sorted(set(map(str, rows.values())) ^ set(map(str, self.before.values())))} changed, "
                          f"PostgreSQL {local}; {outcome.error} {outcome.warnings}")
        self.server.restore(rows, self.before)

    def is_reported(self, rows, outcome):
        """Without a MongoDB transaction a part may remain, and does the WARNING report how much?"""
        keys = set(rows) | set(self.before)
        changed = {key for key in keys if rows.get(key) != self.before.get(key)}
        if self.statement.atomic and any(rows.get(key) != self.after.get(key) for key in changed):
            return False
        if outcome.lost or not self.statement.atomic or "mongo_command" in self.statement.name:
            return True
        certain = re.search(r"(\d+) documents? had been written", outcome.warnings)
        least = int(certain.group(1)) if certain else 0
        more = re.search(r"changed (?:up to (\d+)|any number)", outcome.warnings)
        most = least + (int(more.group(1) or 1000) if more else 0)
        return least <= len(changed) <= most

    def judge_leftovers(self, n, outcome):
        """Checks what remains in MongoDB, after some time for operations in flight."""
        for server in self.bench.servers:
            end = time.monotonic() + 2
            while True:
                connections, cursors, transactions = server.leftovers()
                running = [operation for operation in connections if operation["active"]]
                if not (cursors or transactions or running or len(connections) > MOST_CONNECTIONS) or \
                        time.monotonic() > end:
                    break
                time.sleep(0.02)
            self.judge_cursors(n, server, cursors, outcome.lost and self.kind == "allocation")
            if transactions:
                server.kill_transactions()
                self.counts["transactions left"] += 1
                if not (outcome.lost and self.kind == "allocation"):
                    self.complain(n, f"{server.name}: transactions left: {transactions}; {outcome.error}")
            if running or len(connections) > MOST_CONNECTIONS:
                self.complain(n, f"{server.name}: {len(connections)} connections left, {len(running)} at work")

    def judge_cursors(self, n, server, cursors, nobody_could):
        for cursor in cursors:
            server.kill_cursor(cursor)
            # Its ID was lost with the reply, or the session did not wait or had no memory.  Only
            # over a network may another command's reply be outstanding when a send fails.
            if cursor["nBatchesReturned"] <= 1 and (self.kind != "send" or server.name == "far"):
                self.counts["cursors whose id was lost"] += 1
            elif nobody_could:          # the session has ended inside libmongoc
                self.counts["cursors left by FATAL"] += 1
            else:
                self.complain(n, f"{server.name}: a cursor is left: {cursor['originatingCommand']}, "
                              f"{cursor['nBatchesReturned']} batches")

    def try_once(self, n):
        """Returns the checked outcome; the session is ready for the next run."""
        if self.session is None or self.statement.fresh:
            self.start_session()
        outcome = self.attempt(n)
        self.judge_answer(n, outcome)
        if outcome.lost:
            self.start_session()
        try:
            self.use()
        except (psycopg2.Error, AssertionError) as error:
            self.complain(n, f"afterwards: {error}; before: {outcome.error}")
            self.start_session()
            self.use()
        self.judge_leftovers(n, outcome)
        self.judge_writes(n, outcome)
        return outcome

    # --------------------------------- leaks ---------------------------------

    def settled_metrics(self):
        """Returns the metrics after temporary connections are closed."""
        end = time.monotonic() + 3
        while any(len(server.leftovers()[0]) > 1 for server in self.bench.servers) and time.monotonic() < end:
            time.sleep(0.1)
        self.use()
        return self.session.metrics()

    def look_for_leaks(self, suspects):
        """Repeats the places after which something had grown: does it grow each time?"""
        for n in suspects:
            first = None
            growth = []
            for _ in range(REPETITIONS + 1):
                outcome = self.try_once(n)
                if outcome.lost or self.statement.fresh:
                    return
                metrics = self.settled_metrics()
                if first is not None:
                    growth.append([after - before for before, after in zip(first, metrics)])
                first = metrics
            for name, *values in zip(METRIC_NAMES, *growth):
                if all(value > 0 for value in values):
                    self.complain(n, f"each time there are more {name}: {values}")

    # ---------------------------------- all ----------------------------------

    def run(self):
        self.start_session()
        for _ in range(3):          # the last time, plans and caches exist
            if self.statement.fresh:
                self.start_session()
            self.server.restore(self.server.rows(), self.before)
            self.bench.admin.execute("DELETE FROM local_rows")
            self.expected = self.attempt(0)
        self.after = self.server.rows()
        self.local = self.bench.admin.execute("DELETE FROM local_rows RETURNING n")
        self.server.restore(self.after, self.before)
        if self.expected.lost or (self.expected.code or "").startswith("42"):
            self.complain(0, f"it cannot be tested: {self.expected.error}")
            return
        self.use()
        low = self.settled_metrics()
        n, hit, suspects = self.bench.arguments.first, True, []
        while hit and n <= self.bench.arguments.last:
            outcome = self.try_once(n)
            hit = outcome.hit
            if hit:
                self.counts["places"] += 1
            if outcome.lost or self.statement.fresh:
                low = self.session.metrics()
            else:
                metrics = self.session.metrics()
                if any(after > before for before, after in zip(low, metrics)):
                    suspects.append(n)
                low = [max(pair) for pair in zip(low, metrics)]
            n += self.bench.arguments.step
        self.look_for_leaks(suspects)
        self.session.close()


class Bench:
    def __init__(self, arguments):
        self.arguments = arguments
        self.log = open(arguments.log, encoding="utf-8", errors="replace")
        self.servers = [Server("rs", arguments.replica_set), Server("alone", arguments.mongo),
                        Server("far", arguments.far)]
        with psycopg2.connect(arguments.dsn) as connection, connection.cursor() as cursor:
            for server in self.servers:
                server.load()
                cursor.execute(TABLES.format(server=server.name))
            cursor.execute(LOCAL)
        connection.close()
        self.admin = Session(self, (), "public")


def parse_arguments():
    result = parser(__doc__)
    result.add_argument("--replica-set", required=True, help="MongoDB's URI; --mongo is the server that stands alone")
    result.add_argument("--far", required=True, help="URI of the server for which a network is assumed")
    result.add_argument("--log", required=True, help="PostgreSQL's")
    result.add_argument("--only", default="", help="statements, by a regular expression")
    result.add_argument("--kinds", default=",".join(KINDS))
    result.add_argument("--first", type=int, default=1)
    result.add_argument("--last", type=int, default=100_000)
    result.add_argument("--step", type=int, default=1, help="not every n but each so manieth")
    result.add_argument("--stack", action="store_true", help="have each fault's stack in PostgreSQL's log")
    result.add_argument("--verbose", action="store_true", help="tell of each complaint at once")
    return result.parse_args()


def main():
    arguments = parse_arguments()
    bench = Bench(arguments)
    checks = Checks()
    totals = collections.defaultdict(collections.Counter)
    for statement in STATEMENTS:
        if not re.search(arguments.only, statement.name):
            continue
        for server in bench.servers:
            if server.name not in statement.servers:
                continue
            for kind in arguments.kinds.split(","):
                place = Place(bench, statement, server, kind)
                start = time.monotonic()
                try:
                    place.run()
                except Exception as error:      # a bug of this program, or a server that has stopped
                    place.complain(0, f"{type(error).__name__}: {error}")
                totals[kind].update(place.counts)
                totals[kind]["statements"] += 1
                found = ", ".join(f"{what} {count}" for what, count in sorted(place.counts.items()) if what != "places")
                checks.check(place.offenders, f"{place}: {place.counts['places']} places ({found}; "
                             f"{time.monotonic() - start:.0f} s)")
    for kind, counts in totals.items():
        checks.check([] if counts["places"] else ["nothing has failed"], f"there are places for {kind}")
        print(f"# {kind}: {dict(sorted(counts.items()))}")
    print("done")
    raise SystemExit(1 if checks.failed else 0)


if __name__ == "__main__":
    main()
