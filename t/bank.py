"""Money moves between documents, with everything going wrong at once.

    bank.py --dsn ... --mongo URI --seconds 60 --members URI...

Eight clients transfer money between accounts in MongoDB and note each transfer
both in a MongoDB collection and in a local table, in one transaction.  Some roll
back, some statements are cancelled, backends are killed with SIGKILL, and the
primary steps down again and again.  In the end the money must all be there, each
acknowledged commit exactly once, and nothing that was rolled back.
"""

import argparse
import multiprocessing
import os
import random
import signal
import sys
import time
import uuid

import psycopg2
from pymongo import MongoClient

ACCOUNTS = 40
OPENING_BALANCE = 1000

# What became of a transfer as its client knows it.
COMMITTED, ROLLED_BACK, UNKNOWN = "committed", "rolled back", "unknown"


def connect(dsn, deadline):
    while True:
        try:
            connection = psycopg2.connect(dsn)
            connection.autocommit = True
            return connection
        except psycopg2.OperationalError:
            if time.time() > deadline + 60:
                raise
            time.sleep(0.2)


def transfer(cursor, rng, name):
    """One transaction; returns the state and, for errors, the SQLSTATE."""
    one, other = rng.sample(range(ACCOUNTS), 2)
    amount = rng.randint(1, 50)
    committing = False
    try:
        cursor.execute("BEGIN")
        if rng.random() < 0.1:
            cursor.execute("SET LOCAL statement_timeout = %s", (rng.choice([1, 3, 10, 30]),))
        if rng.random() < 0.5:
            cursor.execute("UPDATE accounts SET balance = balance - %s WHERE _id = %s", (amount, one))
            cursor.execute("UPDATE accounts SET balance = balance + %s WHERE _id = %s", (amount, other))
        else:
            # read here, written by _id
            cursor.execute("UPDATE accounts SET balance = balance + CASE _id WHEN %s THEN %s ELSE %s END"
                           " WHERE _id IN (%s, %s)", (one, -amount, amount, one, other))
        cursor.execute("INSERT INTO transfers VALUES (%s, %s)", (name, amount))
        cursor.execute("INSERT INTO journal VALUES (%s, %s)", (name, amount))
        cursor.execute("SET LOCAL statement_timeout = 0")
        if rng.random() < 0.2:
            cursor.execute("ROLLBACK")
            return ROLLED_BACK, None
        committing = True
        cursor.execute("COMMIT")
        return COMMITTED, None
    except psycopg2.Error as error:
        lost = cursor.connection.closed or error.pgcode is None or error.pgcode.startswith("57P")
        if committing and (lost or error.pgcode == "08007"):
            return UNKNOWN, error.pgcode
        if not lost:
            try:
                cursor.execute("ROLLBACK")
            except psycopg2.Error:
                pass
        return ROLLED_BACK, "lost" if lost else error.pgcode


def client(number, dsn, deadline, seed, results):
    rng = random.Random(seed * 100 + number)
    connection = connect(dsn, deadline)
    while time.time() < deadline:
        name = str(uuid.UUID(int=rng.getrandbits(128)))
        state, code = transfer(connection.cursor(), rng, name)
        results.put((name, state, code))
        if code is not None:
            time.sleep(rng.random() * 0.05)
        if connection.closed:
            connection = connect(dsn, deadline)


def trouble(dsn, uris, deadline, seed, kill_every):
    """Kills backends, cancels statements and makes primaries step down."""
    rng = random.Random(seed)
    next_kill = time.time() + kill_every
    next_step_down = time.time() + 4
    while time.time() < deadline - 2:
        time.sleep(rng.random() * 0.5)
        try:
            connection = connect(dsn, deadline)
            cursor = connection.cursor()
            cursor.execute("SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'"
                           " AND pid <> pg_backend_pid() AND state <> 'idle'")
            pids = [row[0] for row in cursor.fetchall()]
            if pids:
                cursor.execute("SELECT pg_cancel_backend(%s)", (rng.choice(pids),))
                if time.time() > next_kill:
                    next_kill = time.time() + kill_every
                    os.kill(rng.choice(pids), signal.SIGKILL)
            connection.close()
        except (psycopg2.Error, ProcessLookupError):
            pass
        if time.time() > next_step_down:
            next_step_down = time.time() + 7
            for uri in uris:
                try:
                    with MongoClient(uri, serverSelectionTimeoutMS=3000) as member:
                        if member.admin.command("hello").get("isWritablePrimary"):
                            member.admin.command({"replSetStepDown": 5, "secondaryCatchUpPeriodSecs": 2})
                            break
                except Exception:
                    pass


def check(options, outcomes):
    deadline = time.time() + 60
    cursor = connect(options.dsn, deadline).cursor()
    failures = []
    with MongoClient(options.mongo, serverSelectionTimeoutMS=60000) as mongo:
        total = sum(a["balance"] for a in mongo.bank.accounts.find())
        names = [t["_id"] for t in mongo.bank.transfers.find()]
    if total != ACCOUNTS * OPENING_BALANCE:
        failures.append("the total is %d" % total)
    stored = set(names)
    if len(stored) != len(names):
        failures.append("a transfer is there twice")
    cursor.execute("SELECT name FROM journal")
    journal = [row[0] for row in cursor.fetchall()]
    if len(journal) != len(set(journal)):
        failures.append("a transfer is in the journal twice")
    for name, state in outcomes.items():
        if state == COMMITTED and (name not in stored or name not in journal):
            failures.append("%s was committed and is lost" % name)
        if state == ROLLED_BACK and (name in stored or name in journal):
            failures.append("%s was rolled back and is there" % name)
    for name in stored:
        if name not in outcomes:
            failures.append("nobody made %s" % name)
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dsn", required=True)
    parser.add_argument("--mongo", required=True, help="the replica set")
    parser.add_argument("--members", nargs="+", required=True, help="each member, directly")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--kill-every", type=float, default=9)
    parser.add_argument("--seed", type=int, default=random.randrange(10 ** 6))
    options = parser.parse_args()

    with MongoClient(options.mongo, serverSelectionTimeoutMS=60000) as mongo:
        mongo.drop_database("bank")
        mongo.bank.accounts.insert_many([{"_id": i, "balance": OPENING_BALANCE} for i in range(ACCOUNTS)])
        mongo.bank.create_collection("transfers")
    deadline = time.time() + options.seconds
    results = multiprocessing.Queue()
    workers = [multiprocessing.Process(target=client, args=(i, options.dsn, deadline, options.seed, results))
               for i in range(options.clients)]
    workers.append(multiprocessing.Process(
        target=trouble, args=(options.dsn, options.members, deadline, options.seed, options.kill_every)))
    for worker in workers:
        worker.start()
    outcomes = {}
    codes = {}
    while any(w.is_alive() for w in workers) or not results.empty():
        try:
            name, state, code = results.get(timeout=0.5)
        except Exception:
            continue
        outcomes[name] = state
        codes[(state, code)] = codes.get((state, code), 0) + 1
    failed = [w for w in workers if w.exitcode != 0]

    # what dead backends left open ends after transactionLifetimeLimitSeconds
    time.sleep(1)
    failures = check(options, outcomes)
    print("seed %d:" % options.seed, ", ".join("%d %s%s" % (n, s, " (%s)" % c if c else "")
                                              for (s, c), n in sorted(codes.items(), key=str)))
    for failure in failures[:20]:
        print(failure)
    if failed:
        print("%d workers failed" % len(failed))
    if sum(s == COMMITTED for s in outcomes.values()) < options.seconds:
        failures.append("hardly anything was committed")
        print(failures[-1])
    sys.exit(1 if failures or failed else 0)


if __name__ == "__main__":
    main()
