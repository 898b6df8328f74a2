#!/usr/bin/env python3
"""What a client is told of its COMMIT is held against what there is.

Each reply of the conversation that a COMMIT has with MongoDB, over a proxy, is
swallowed, cut in two, or replaced by a closed connection, or its request is lost,
in turn; then the servers are silent, refuse connections, or are as before.

    told                 in MongoDB      in PostgreSQL
    committed            there           there
    08007                any             not
    any other error      not             not

Prints "ok - TEXT" or "not ok - TEXT" for each check, "# ..." besides, and "done" at the end.
"""
import collections
import concurrent.futures
import itertools
import threading
import time

import psycopg2
import pymongo

from commit_proxy import AFTER, FAULTS, Plan, Proxies
from test_arguments import parser

LAST_REPLY = 4          # a conversation that is repeated once has no more that matter
keys = itertools.count(1)
setup_lock = threading.Lock()


def plans():
    yield Plan({}, "healed")
    for after in AFTER:
        yield Plan({}, after, before=True)
        for fault in FAULTS:
            yield Plan({0: fault}, after)
    # the commit meets one fault, its repetition another
    for number, after in itertools.product(range(1, LAST_REPLY + 1), AFTER):
        for first, fault in zip(("close", "cut", "lost", "close"), FAULTS):
            yield Plan({0: first, number: fault}, after)


class Bench:
    """A PostgreSQL and the replica set behind it, or several mongos before that."""

    def __init__(self, dsn, name, uri, arguments, mongos=()):
        self.dsn, self.name, self.arguments = dsn, name, arguments
        self.mongo = pymongo.MongoClient(uri, w="majority")
        self.ports = mongos or [int(node.split(":")[1]) for node in uri.split("//")[1].split("/")[0].split(",")]
        self.options = "replicaSet=rs" if not mongos and len(self.ports) > 1 else ""
        self.collection = self.mongo["outcomes"][name]
        self.collection.drop()
        self.collection.insert_one({"_id": 0})
        self.query("CREATE TABLE IF NOT EXISTS here (key int, name text)")

    def query(self, sql):
        with setup_lock:
            connection = psycopg2.connect(self.dsn)
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute(sql)
                rows = cursor.fetchall() if cursor.description else None
            connection.close()
            return rows

    def create_server(self, number, uri):
        self.query(f"""
            CREATE SERVER s_{self.name}_{number} FOREIGN DATA WRAPPER mongo_fdw
                OPTIONS (uri '{uri}', server_selection_timeout_ms '2000', connect_timeout_ms '2000');
            CREATE USER MAPPING FOR PUBLIC SERVER s_{self.name}_{number};
            CREATE FOREIGN TABLE t_{self.name}_{number} (_id int) SERVER s_{self.name}_{number}
                OPTIONS (database 'outcomes', collection '{self.name}')""")
        return f"t_{self.name}_{number}"

    def commit(self, table, key, before_commit=lambda: None):
        """What a client is told ("committed", an SQLSTATE, or None for a lost connection), DETAIL, and seconds."""
        connection = psycopg2.connect(self.dsn)
        connection.autocommit = True
        start = time.monotonic()
        try:
            with connection.cursor() as cursor:
                cursor.execute("BEGIN")
                cursor.execute(f"INSERT INTO {table} VALUES ({key})")
                cursor.execute(f"INSERT INTO here VALUES ({key}, '{self.name}')")
                if self.arguments.timeout:
                    cursor.execute(f"SET LOCAL statement_timeout = {self.arguments.timeout}")
                before_commit()
                start = time.monotonic()
                cursor.execute("COMMIT")
                return "committed", "", time.monotonic() - start
        except psycopg2.Error as error:
            return error.pgcode, error.diag.message_detail or "", time.monotonic() - start
        finally:
            connection.close()

    def is_there(self, key):
        return (self.collection.find_one({"_id": key}) is not None,
                self.query(f"SELECT count(*) FROM here WHERE key = {key} AND name = '{self.name}'")[0][0] > 0)

    def run(self, number, plan):
        key = next(keys)
        proxies = Proxies(self.ports, self.options)
        table = self.create_server(number, proxies.uri)
        told, _, seconds = self.commit(table, key, lambda: proxies.arm(plan))
        proxies.heal()
        there, here = self.is_there(key)
        return plan, told, there, here, seconds


def is_true(told, there, here):
    if told == "committed":
        return there and here
    if told == "08007":
        return not here
    return told is not None and not there and not here


def check(passed, text):
    print(("ok - " if passed else "not ok - ") + text, flush=True)


def check_plans(bench, members):
    seen = collections.Counter()
    false = []
    durations = []
    with concurrent.futures.ThreadPoolExecutor(bench.arguments.clients) as pool:
        for plan, told, there, here, seconds in pool.map(lambda item: bench.run(*item), enumerate(plans())):
            durations.append((seconds, str(plan)))
            seen[told, "there" if there else "not there"] += 1
            if not is_true(told, there, here):
                false.append(f"{plan}: told {told}, in MongoDB {there}, in PostgreSQL {here}")
    for (told, where), count in sorted(seen.items(), key=str):
        print(f"# {members}: {count} times told {told}, in MongoDB {where}")
    print("# %s: the longest COMMIT took %.1f s (%s)" % ((members,) + max(durations)))
    check(not false, f"{members}: no answer of {sum(seen.values())} is false")
    for text in false:
        print("#   " + text)
    check(seen["committed", "there"] > 0, f"{members}: some are committed")
    check(seen["08007", "there"] > 0 and seen["08007", "not there"] > 0, f"{members}: what is unknown may be there, or not")
    check(any(told not in ("committed", "08007") for told, _ in seen), f"{members}: what was never sent is a definite failure")


def check_write_concerns(bench):
    for number, concern in enumerate(("3", "nosuchname"), 1000):
        key = next(keys)
        told, detail, _ = bench.commit(bench.create_server(number, f"mongodb://127.0.0.1:{bench.ports[0]}/?w={concern}"), key)
        check((told, bench.is_there(key)) == ("08007", (True, False)) and "has applied" in detail,
              f"write concern '{concern}' on one member: 08007, which says that MongoDB has applied it ({told} {detail})")


def main():
    arguments = parser(__doc__)
    arguments.add_argument("--one", required=True, help="URI of a replica set of one member")
    arguments.add_argument("--three", required=True, help="and of one of three")
    arguments.add_argument("--mongos", required=True, help="ports of several before that of one, with commas between")
    arguments.add_argument("--timeout", type=int, default=600, help="statement_timeout of COMMIT; 0: let it ask on")
    arguments.add_argument("--clients", type=int, default=8)
    arguments = arguments.parse_args()

    one = Bench(arguments.dsn, "one", arguments.one, arguments)
    check_write_concerns(one)
    check_plans(one, "one member")
    check_plans(Bench(arguments.dsn, "three", arguments.three, arguments), "three members")
    mongos = [int(port) for port in arguments.mongos.split(",")]
    check_plans(Bench(arguments.dsn, "mongos", arguments.one, arguments, mongos), "two mongos")
    print("done")


main()
