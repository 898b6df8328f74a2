#!/usr/bin/env python3
"""Money moves between MongoDB and PostgreSQL while everything around breaks.

Clients transfer money between documents of one collection ("within"), and
between documents and a local table ("across"), each time in one PostgreSQL
transaction, which also leaves a record of the transfer on both sides.  They
roll back at random, are cancelled, are killed with SIGKILL, which makes
PostgreSQL restart all of its processes, and the replica set's primary steps
down again and again.  What each client was told is then held against what
there is:

    told                        in MongoDB      in PostgreSQL
    committed                   once            once
    rolled back, or an error    not             not
    unknown: the connection     once / not      once / not, and never
    was lost during COMMIT                      here without there
    unknown: SQLSTATE 08007     once / not      not

A record "there but not here" is what the documentation says of a backend that
dies between the two commits.  Balances must be, to the last unit, what the
records say: half a transfer or one that was made twice would show.

Prints "ok - TEXT" or "not ok - TEXT" for each check, "# ..." besides, and "done" at the end.
"""
import argparse
import collections
import itertools
import os
import random
import signal
import threading
import time

import psycopg2
import pymongo
from pymongo.errors import PyMongoError

from checks import Checks

INITIAL_BALANCE = 1000

# What may befall a transaction here; anything else is a defect.
EXPECTED_ERRORS = {
    "40001": "MongoDB aborted it: write conflict, step-down, time limit",
    "57014": "cancelled",
    "08006": "connection to MongoDB broke",
    "08001": "no primary to connect to",
    "08007": "outcome of MongoDB's commit is unknown",
    "57P01": "MongoDB: primary stepped down; PostgreSQL: terminated",
    "57P02": "PostgreSQL restarts after a crash",
    "57P03": "PostgreSQL is recovering",
    "40P01": "deadlock over rows of the local table",
    "0A000": "a savepoint that wrote was rolled back",
    None: "connection to PostgreSQL lost",
}

TABLES = """
    CREATE FOREIGN TABLE account (_id int, balance bigint, note text)
        SERVER mongodb OPTIONS (database 'bank');
    CREATE FOREIGN TABLE vault (_id int, balance bigint, note text)
        SERVER mongodb OPTIONS (database 'bank');
    CREATE FOREIGN TABLE transfer (id bigint, kind text, source int, target int, amount bigint)
        SERVER mongodb OPTIONS (database 'bank');
    CREATE TABLE local_account (id int PRIMARY KEY, balance bigint);
    CREATE TABLE local_transfer (id bigint, kind text, source int, target int, amount bigint);
"""


class Transfer:
    """One attempt; 'outcome' is what its client knows of it."""

    def __init__(self, number, kind, source, target, amount):
        self.number = number
        self.kind = kind
        self.source = source
        self.target = target
        self.amount = amount
        self.outcome = "rolled back"    # until COMMIT has been sent
        self.committing = False


class Bank:
    """What the threads share."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.numbers = itertools.count(1)
        self.stop = threading.Event()
        self.lock = threading.Lock()
        self.transfers = []
        self.clients = []
        self.counts = collections.Counter()
        self.unexpected = []

    def count(self, what):
        with self.lock:
            self.counts[what] += 1

    def note_error(self, error, during):
        state = error.pgcode
        # a FATAL while connecting comes without its SQLSTATE
        self.count(f"error {state}")
        if state not in EXPECTED_ERRORS:
            with self.lock:
                self.unexpected.append(f"{during}: {state} {str(error).strip()}")


class Client(threading.Thread):
    def __init__(self, bank, number):
        super().__init__(name=f"client {number}", daemon=True)
        self.bank = bank
        self.random = random.Random(bank.arguments.seed * 1000 + number)
        self.connection = None
        self.pid = None
        self.current = None

    def connect(self):
        """Connect, waiting out a recovery; None when it is time to stop."""
        while not self.bank.stop.is_set():
            try:
                self.connection = psycopg2.connect(self.bank.arguments.dsn)
                self.connection.autocommit = True    # BEGIN and COMMIT are ours
                self.pid = self.connection.get_backend_pid()
                self.bank.count("connections")
                return True
            except psycopg2.OperationalError:
                time.sleep(0.1)
        return False

    def disconnect(self):
        self.pid = None
        try:
            self.connection.close()
        except psycopg2.Error:
            pass
        self.connection = None

    def run(self):
        while not self.bank.stop.is_set():
            if self.connection is None and not self.connect():
                return
            try:
                self.transfer()
            except Exception as error:  # a defect of this program
                with self.bank.lock:
                    self.bank.unexpected.append(f"{self.name}: {type(error).__name__} {error}")
                self.disconnect()
        if self.connection is not None:
            self.disconnect()

    def new_transfer(self):
        accounts = self.bank.arguments.accounts
        kind = self.random.choice(("within", "within", "deposit", "withdraw"))
        source, target = self.random.sample(range(accounts), 2)
        transfer = Transfer(next(self.bank.numbers), kind, source, target,
                            self.random.randint(1, 20))
        with self.bank.lock:
            self.bank.transfers.append(transfer)
        return transfer

    def statements(self, transfer):
        """The SQL of a transfer, in an order of its own."""
        values = {"n": transfer.number, "k": transfer.kind, "s": transfer.source,
                  "t": transfer.target, "a": transfer.amount}
        record = "(id, kind, source, target, amount) VALUES (%(n)s, %(k)s, %(s)s, %(t)s, %(a)s)"

        def move(table, column, account, sign):
            """In one command, or, by the note that must be computed here, row by row."""
            if table != "local_account" and self.random.random() < 0.3:
                return (f"UPDATE {table} SET balance = balance {sign} %(a)s, "
                        f"note = md5(note || %(n)s::text) WHERE {column} = %({account})s")
            return f"UPDATE {table} SET balance = balance {sign} %(a)s WHERE {column} = %({account})s"

        source, target = {
            "within": (("account", "_id"), ("account", "_id")),
            "deposit": (("local_account", "id"), ("vault", "_id")),
            "withdraw": (("vault", "_id"), ("local_account", "id")),
        }[transfer.kind]
        statements = [
            move(*source, "s", "-"),
            move(*target, "t", "+"),
            f"INSERT INTO transfer {record}",
            f"INSERT INTO local_transfer {record}",
        ]
        self.random.shuffle(statements)
        return [(sql, values) for sql in statements]

    def transfer(self):
        transfer = self.current = self.new_transfer()
        chance = self.random.random()
        try:
            with self.connection.cursor() as cursor:
                isolation = self.random.choice(("READ COMMITTED", "READ COMMITTED", "REPEATABLE READ",
                                                "SERIALIZABLE"))
                cursor.execute(f"BEGIN ISOLATION LEVEL {isolation}")
                if chance < 0.1:
                    cursor.execute(f"SET LOCAL statement_timeout = {self.random.randint(1, 30)}")
                self.execute(cursor, transfer)
                if chance > 0.9:
                    cursor.execute("ROLLBACK")
                    self.bank.count("rollbacks")
                    return
                transfer.committing = True
                transfer.outcome = "unknown, connection lost"
                cursor.execute("COMMIT")
                if cursor.statusmessage == "COMMIT":
                    transfer.outcome = "committed"
                else:
                    raise RuntimeError(f"COMMIT was answered by {cursor.statusmessage}")
        except psycopg2.Error as error:
            self.failed(transfer, error)
        finally:
            self.current = None

    def execute(self, cursor, transfer):
        """The statements, at times with savepoints and reads between them."""
        statements = self.statements(transfer)
        savepoint = self.random.random()
        if savepoint < 0.05:
            # released: belongs to the transaction
            cursor.execute("SAVEPOINT s")
        elif savepoint < 0.1:
            # rolled back with nothing written to MongoDB: as if never set
            cursor.execute("SAVEPOINT s; UPDATE local_account SET balance = 0 WHERE id = 0; "
                           "ROLLBACK TO s")
        elif savepoint < 0.13:
            # rolled back with something written: COMMIT must fail
            self.bank.count("savepoints undone")
            cursor.execute("SAVEPOINT s; INSERT INTO transfer (id, kind) VALUES (-1, 'undone'); "
                           "ROLLBACK TO s")
        for sql, values in statements:
            cursor.execute(sql, values)
            if sql.startswith("UPDATE") and cursor.rowcount != 1:
                raise RuntimeError(f"{cursor.rowcount} rows changed by {sql}")
        if savepoint < 0.05:
            cursor.execute("RELEASE s")
        if self.random.random() < 0.2:
            cursor.execute("SELECT count(*) FROM transfer WHERE id = %s", (transfer.number,))
            if cursor.fetchone()[0] != 1:
                raise RuntimeError("a transaction does not see its own document")

    def failed(self, transfer, error):
        self.bank.note_error(error, "COMMIT" if transfer.committing else "transaction")
        lost = self.connection.closed != 0 or error.pgcode in (None, "57P01", "57P02", "57P03")
        # a primary that stepped down is an error of the statement, not of the connection
        if error.pgcode == "57P01" and self.connection.closed == 0:
            lost = False
        if transfer.committing and not lost:
            transfer.outcome = "unknown, 08007" if error.pgcode == "08007" else "rolled back"
        if lost:
            self.disconnect()
            return
        try:
            with self.connection.cursor() as cursor:
                cursor.execute("ROLLBACK")
        except psycopg2.Error:
            self.disconnect()


def random_client(bank, prefer_committing):
    """One with a backend; rather one that is about to commit."""
    connected = [client for client in bank.clients if client.pid is not None]
    committing = [client for client in connected
                  if client.current is not None and client.current.committing]
    if prefer_committing and committing:
        return random.choice(committing)
    return random.choice(connected) if connected else None


def cancel_at_random(bank):
    """pg_cancel_backend() over a connection of its own."""
    connection = None
    while not bank.stop.wait(random.uniform(0.02, 0.15)):
        try:
            if connection is None:
                connection = psycopg2.connect(bank.arguments.dsn)
                connection.autocommit = True
            client = random_client(bank, random.random() < 0.5)
            if client is not None:
                with connection.cursor() as cursor:
                    cursor.execute("SELECT pg_cancel_backend(%s)", (client.pid or 0,))
                bank.count("cancels")
        except psycopg2.Error:
            connection = None


def kill_at_random(bank):
    """SIGKILL for a backend, every second time for one inside COMMIT."""
    prefer_committing = True
    while not bank.stop.wait(random.uniform(0.7, 1.3) * bank.arguments.kill_every):
        end = time.monotonic() + 1
        client = random_client(bank, prefer_committing)
        while (prefer_committing and time.monotonic() < end and
               (client is None or client.current is None or not client.current.committing)):
            time.sleep(0.0005)
            client = random_client(bank, prefer_committing)
        if prefer_committing:
            time.sleep(random.uniform(0, 0.02))
        pid = client.pid if client is not None else None
        if pid is not None:
            try:
                os.kill(pid, signal.SIGKILL)
                bank.count("kills")
            except ProcessLookupError:
                pass
        prefer_committing = not prefer_committing


def step_down_again_and_again(bank):
    while not bank.stop.wait(random.uniform(0.7, 1.3) * bank.arguments.step_down_every):
        try:
            with pymongo.MongoClient(bank.arguments.mongo, serverSelectionTimeoutMS=10000) as client:
                if random.random() < 0.5:
                    client.admin.command("replSetStepDown", 3, force=True,
                                         secondaryCatchUpPeriodSecs=0)
                else:
                    client.admin.command("replSetStepDown", 4, secondaryCatchUpPeriodSecs=1)
                bank.count("step-downs")
        except pymongo.errors.AutoReconnect:
            bank.count("step-downs")    # the connection may go with it
        except PyMongoError:
            pass                        # no secondary had caught up


def load(arguments):
    accounts = range(arguments.accounts)
    with pymongo.MongoClient(arguments.mongo, w="majority") as client:
        client.drop_database("bank")
        for collection in ("account", "vault"):
            client.bank[collection].insert_many(
                [{"_id": i, "balance": pymongo_long(INITIAL_BALANCE), "note": ""} for i in accounts])
        client.bank.create_collection("transfer")
        client.bank.transfer.create_index("id")
    with psycopg2.connect(arguments.dsn) as connection, connection.cursor() as cursor:
        cursor.execute(TABLES)
        cursor.execute("INSERT INTO local_account SELECT i, %s FROM generate_series(0, %s) i",
                       (INITIAL_BALANCE, arguments.accounts - 1))


def pymongo_long(number):
    import bson
    return bson.Int64(number)


def wait_until_quiet(arguments):
    """Until nothing that a killed backend left is still under way in MongoDB.

    An open transaction outlives its connection until its time limit.
    """
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            with pymongo.MongoClient(arguments.mongo, serverSelectionTimeoutMS=10000) as client:
                status = client.admin.command("serverStatus")
                if status["transactions"]["currentOpen"] == 0:
                    # what is read below must be what lasts
                    client.bank.get_collection("quiet", write_concern=pymongo.WriteConcern("majority")
                                               ).insert_one({})
                    return True
        except PyMongoError:
            pass
        time.sleep(0.5)
    return False


def read_results(arguments):
    results = {}
    majority = pymongo.read_concern.ReadConcern("majority")
    with pymongo.MongoClient(arguments.mongo) as client:
        def read(collection):
            return list(client.bank.get_collection(collection, read_concern=majority).find())
        for collection in ("account", "vault"):
            results[collection] = {document["_id"]: document for document in read(collection)}
        results["transfer"] = read("transfer")
    with psycopg2.connect(arguments.dsn) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT id, balance FROM local_account")
        results["local_account"] = dict(cursor.fetchall())
        cursor.execute("SELECT id FROM local_transfer")
        results["local_transfer"] = [row[0] for row in cursor.fetchall()]
    return results


def expected_balances(accounts, transfers, there, here):
    """What the balances must be by the records in MongoDB and in PostgreSQL."""
    balances = {name: {i: INITIAL_BALANCE for i in range(accounts)}
                for name in ("account", "vault", "local_account")}
    for transfer in transfers:
        remote, local = transfer.number in there, transfer.number in here
        source, target = {"within": ("account", "account"), "deposit": ("local_account", "vault"),
                          "withdraw": ("vault", "local_account")}[transfer.kind]
        if local if source == "local_account" else remote:
            balances[source][transfer.source] -= transfer.amount
        if local if target == "local_account" else remote:
            balances[target][transfer.target] += transfer.amount
    return balances


def check_outcomes(checks, transfers, there, here):
    def those(outcome, wrong):
        return [f"transfer {t.number} {t.kind}: {outcome}; {there[t.number]} in MongoDB, "
                f"{here[t.number]} in PostgreSQL"
                for t in transfers if t.outcome == outcome and wrong(there[t.number], here[t.number])]

    checks.check(those("committed", lambda m, p: (m, p) != (1, 1)),
                 "every acknowledged commit is there exactly once")
    checks.check(those("rolled back", lambda m, p: (m, p) != (0, 0)),
                 "no change that was rolled back is there")
    checks.check(those("unknown, connection lost", lambda m, p: (m, p) not in ((0, 0), (1, 1), (1, 0))),
                 "a commit of unknown outcome is there or not; at worst in MongoDB alone")
    checks.check(those("unknown, 08007", lambda m, p: p != 0 or m not in (0, 1)),
                 "a commit that ended in SQLSTATE 08007 was rolled back in PostgreSQL")
    known = {t.number for t in transfers}
    checks.check([n for n in itertools.chain(there, here) if n not in known],
                 "there is no record that nobody made")


def check_balances(checks, arguments, transfers, results, there, here):
    expected = expected_balances(arguments.accounts, transfers, there, here)
    for name in ("account", "vault"):
        found = {i: document["balance"] for i, document in results[name].items()}
        checks.check([f"{name} {i}: {found.get(i)}, by the records {balance}"
                      for i, balance in expected[name].items() if found.get(i) != balance],
                     f"every balance in MongoDB, {name}, is what the records say")
        checks.check([f"{name}: {document}" for document in results[name].values()
                      if not isinstance(document["balance"], int)
                      or sorted(document) != ["_id", "balance", "note"]],
                     f"no document of {name} has a stray, lost or retyped field")
    checks.check([f"local_account {i}: {results['local_account'].get(i)}, by the records {balance}"
                  for i, balance in expected["local_account"].items()
                  if results["local_account"].get(i) != balance],
                 "every balance in PostgreSQL is what the records say")

    total = sum(document["balance"] for document in results["account"].values())
    checks.check([total] if total != arguments.accounts * INITIAL_BALANCE else [],
                 "the total over MongoDB is conserved where money moves within it")
    gap = sum(t.amount if t.kind == "deposit" else -t.amount for t in transfers
              if t.kind != "within" and there[t.number] and not here[t.number])
    total = sum(document["balance"] for document in results["vault"].values()) + \
        sum(results["local_account"].values())
    checks.check([f"{total}, of which {gap} by commits in MongoDB alone"]
                 if total != 2 * arguments.accounts * INITIAL_BALANCE + gap else [],
                 "the total over both is conserved but for commits in MongoDB alone")


def check_activity(checks, bank, outcomes):
    """A test in which nothing happened shows nothing."""
    seconds = bank.arguments.seconds
    wanted = {
        "acknowledged commits": (outcomes["committed"], 2 * seconds),
        "rollbacks": (bank.counts["rollbacks"], seconds // 4),
        "cancelled statements": (bank.counts["error 57014"], seconds // 4),
        "killed backends": (bank.counts["kills"], seconds // 20),
        "step-downs": (bank.counts["step-downs"], seconds // 20),
        "savepoints undone": (bank.counts["savepoints undone"], 1),
    }
    checks.check([f"{what}: {count}, fewer than {least}"
                  for what, (count, least) in wanted.items() if count < least],
                 "there was enough of everything: " +
                 ", ".join(f"{count} {what}" for what, (count, _) in wanted.items()))


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dsn", required=True, help="libpq connection string; a scratch database")
    parser.add_argument("--mongo", required=True, help="URI of the replica set; database bank is dropped")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--accounts", type=int, default=60)
    parser.add_argument("--kill-every", type=float, default=7, help="seconds")
    parser.add_argument("--step-down-every", type=float, default=9, help="seconds")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    random.seed(arguments.seed)
    load(arguments)
    bank = Bank(arguments)
    bank.clients = [Client(bank, number) for number in range(arguments.clients)]
    disturbers = [threading.Thread(target=target, args=(bank,), daemon=True)
                  for target in (cancel_at_random, kill_at_random, step_down_again_and_again)]
    for thread in bank.clients + disturbers:
        thread.start()
    time.sleep(arguments.seconds)
    bank.stop.set()
    checks = Checks()
    for thread in bank.clients + disturbers:
        thread.join(timeout=90)
    checks.check([thread.name for thread in bank.clients if thread.is_alive()],
                 "every client comes to its end")
    checks.check([] if wait_until_quiet(arguments) else ["still open after a minute"],
                 "MongoDB has no transaction left open")

    results = read_results(arguments)
    transfers = bank.transfers
    there = collections.Counter(document["id"] for document in results["transfer"])
    here = collections.Counter(results["local_transfer"])
    outcomes = collections.Counter(transfer.outcome for transfer in transfers)
    check_outcomes(checks, transfers, there, here)
    check_balances(checks, arguments, transfers, results, there, here)
    check_activity(checks, bank, outcomes)
    checks.check(bank.unexpected, "no error but those expected")

    alone = sum(1 for t in transfers if there[t.number] and not here[t.number])
    print(f"# outcomes: {dict(outcomes)}; in MongoDB alone: {alone}")
    print(f"# {dict(sorted(bank.counts.items()))}")
    print("done")
    raise SystemExit(1 if checks.failed else 0)


if __name__ == "__main__":
    main()
