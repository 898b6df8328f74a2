#!/usr/bin/env python3
"""Rates of the extension mongo_sync, to be run while the machine does nothing else.

Needs a replica set, and a database with the extension (psql's environment variables).  Creates
and drops the database sync_rates in MongoDB and the schema sync_rates in PostgreSQL.  Prints:

  copy      rows a second of the first CALL, by one session and by two at the same time, and of COPY
            of the same rows from a file
  stream    changes a second that a client reads (raw batches), and that the foreign table returns
  apply     changes a second that a CALL applies
  lag       of a table under 1,000 writes a second, with a CALL after another, in seconds
  tpch      with --tpch: the queries over foreign tables, and over synchronized tables, in seconds

The replica set must not be one that is needed: --tpch also drops tpch_decimal and tpch_double.
"""
import argparse
import math
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import bson
import psycopg2
import pymongo
from bson.raw_bson import RawBSONDocument

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "tpch"))
from load import load  # noqa: E402
from queries import NUMBERS, answer, query, same_answer  # noqa: E402
from schema import TABLES  # noqa: E402


def timed(function):
    begin = time.monotonic()
    function()
    return time.monotonic() - begin


def read_stream(client, token):
    """Reads changes until a batch is empty; returns how many."""
    options = bson.CodecOptions(document_class=RawBSONDocument)
    command = {"aggregate": "c", "cursor": {"batchSize": 10000}, "pipeline": [
        {"$changeStream": {"startAfter": {"_data": token}, "fullDocument": "updateLookup"}}]}
    reply = client.sync_rates.command(command, codec_options=options)["cursor"]
    count = 0
    batch = list(reply["firstBatch"])
    while batch or count == 0:
        count += len(batch)
        batch = list(client.sync_rates.command({"getMore": reply["id"], "collection": "c", "batchSize": 10000,
                                                "maxTimeMS": 1}, codec_options=options)["cursor"]["nextBatch"])
    return count


def run_tpch(connection, host, port, scale_factor, rounds=3):
    """Times the queries in turn over foreign tables and over synchronized tables."""
    load(connection, host, port, scale_factor)
    cursor = connection.cursor()
    cursor.execute("DROP SCHEMA IF EXISTS step CASCADE; CREATE SCHEMA step")
    for name, table in TABLES.items():
        cursor.execute(f"ALTER FOREIGN TABLE decimal.{name} ADD COLUMN _id objectid")
        cursor.execute(f"CALL mongo_sync.sync('decimal.{name}', 'step.{name}')")
        for index in (table.unique, *table.indexes):
            cursor.execute(f"CREATE INDEX ON step.{name} ({', '.join(index)})")
        cursor.execute(f"ALTER FOREIGN TABLE decimal.{name} DROP COLUMN _id; ANALYZE step.{name}")
    seconds = {}
    for number in NUMBERS:
        text = query(number, scale_factor)
        answers = {}
        for _ in range(rounds):
            for schema in ("decimal", "step"):
                cursor.execute(f"SET search_path = {schema}, public")
                began = time.monotonic()
                answers[schema] = answer(cursor, text)
                seconds.setdefault((number, schema), []).append(time.monotonic() - began)
        if not same_answer(number, answers["step"], answers["decimal"]):
            raise SystemExit(f"Q{number} has other rows over synchronized tables")
    foreign, local = ([statistics.median(seconds[number, schema]) for number in NUMBERS] for schema in ("decimal", "step"))
    ratios = [one / other for one, other in zip(foreign, local)]
    print("tpch     scale factor %g: foreign tables %.2f s, synchronized tables %.2f s; a query takes %.2f to %.1f times as long "
          "over foreign tables, by the geometric mean %.2f" %
          (scale_factor, sum(foreign), sum(local), min(ratios), max(ratios),
           math.exp(statistics.mean(math.log(ratio) for ratio in ratios))))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", default="27017")
    parser.add_argument("--rows", type=int, default=1000000)
    parser.add_argument("--texts", type=int, default=0, help="further texts of 20 characters in each row")
    parser.add_argument("--changes", type=int, default=200000)
    parser.add_argument("--seconds", type=int, default=60, help="of the load of 1,000 writes a second")
    parser.add_argument("--tpch", type=float, default=0, help="scale factor; 0: none")
    arguments = parser.parse_args()
    client = pymongo.MongoClient(arguments.host, int(arguments.port), directConnection=True)
    client.drop_database("sync_rates")
    collection = client.sync_rates.c
    texts = ["text%d" % number for number in range(arguments.texts)]
    for first in range(0, arguments.rows, 10000):
        collection.insert_many([{"_id": number, "a": number % 1000, "t": "text %d" % number, "d": number / 4,
                                 **dict.fromkeys(texts, "%020d" % number)} for number in range(first, min(first + 10000, arguments.rows))])

    connection = psycopg2.connect("")
    connection.autocommit = True
    cursor = connection.cursor()
    cursor.execute("DROP SCHEMA IF EXISTS sync_rates CASCADE; DROP SERVER IF EXISTS sync_rates CASCADE;"
                   "CREATE EXTENSION IF NOT EXISTS mongo_sync")
    cursor.execute("CREATE SCHEMA sync_rates; CREATE SERVER sync_rates FOREIGN DATA WRAPPER mongo_fdw"
                   " OPTIONS (address %s, port %s, read_concern 'majority')", (arguments.host, arguments.port))
    cursor.execute("CREATE USER MAPPING FOR CURRENT_USER SERVER sync_rates;"
                   "CREATE FOREIGN TABLE sync_rates.c (_id int, a int, t text, d float8%s) SERVER sync_rates "
                   "OPTIONS (database 'sync_rates');"
                   "CREATE FOREIGN TABLE sync_rates.changes (__operation text, __token text, _id int, a int, t text, d float8)"
                   " SERVER sync_rates OPTIONS (database 'sync_rates', collection 'c', change_stream 'collection')"
                   % "".join(", %s text" % name for name in texts))
    call = "CALL mongo_sync.sync('sync_rates.c', 'sync_rates.local')"

    copied = timed(lambda: cursor.execute(call))
    shared = timed(lambda: [process.wait() for process in [
        subprocess.Popen(["psql", "-Xq", "-c", "SET client_min_messages = warning", "-c", call.replace("local", "shared")])
        for _ in range(2)]])
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "rows")
        subprocess.run(["psql", "-Xqc", "\\copy sync_rates.local TO '%s'" % file], check=True)
        cursor.execute("CREATE TABLE sync_rates.copy (LIKE sync_rates.local INCLUDING ALL)")
        loaded = timed(lambda: subprocess.run(["psql", "-Xqc", "\\copy sync_rates.copy FROM '%s'" % file], check=True))
    print("copy     %8.0f rows/s, by two sessions %8.0f rows/s, COPY from a file %8.0f rows/s" %
          (arguments.rows / copied, arguments.rows / shared, arguments.rows / loaded))

    for kind in ("insert", "update", "delete"):
        cursor.execute("SELECT __token FROM sync_rates.changes WHERE __operation = 'position'")
        token = cursor.fetchone()[0]
        keys = {"$gte": arguments.rows}
        if kind == "insert":
            for first in range(0, arguments.changes, 10000):
                collection.insert_many([{"_id": arguments.rows + first + number, "a": 1, "t": "inserted", "d": 0.5}
                                        for number in range(10000)])
        elif kind == "update":
            collection.update_many({"_id": keys}, {"$inc": {"a": 1}})
        else:
            collection.delete_many({"_id": keys})
        count = read_stream(client, token)
        read = timed(lambda: read_stream(client, token))
        foreign = timed(lambda: cursor.execute("SELECT * FROM sync_rates.changes WHERE __token > %s", (token,)))
        applied = timed(lambda: cursor.execute(call))
        print("%s   read by a client %7.0f/s, by the foreign table %7.0f/s, applied %7.0f/s"
              % (kind, count / read, count / foreign, count / applied))

    stop = time.monotonic() + arguments.seconds

    def load(number):
        own = pymongo.MongoClient(arguments.host, int(arguments.port), directConnection=True).sync_rates.c
        begin = time.monotonic()
        done = 0
        while time.monotonic() < stop:
            own.update_one({"_id": (done * 7919 + number) % arguments.rows}, {"$inc": {"a": 1}})
            done += 1
            time.sleep(max(0, begin + done / 250 - time.monotonic()))

    threads = [threading.Thread(target=load, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    lags = []
    while time.monotonic() < stop:
        lags.append(timed(lambda: cursor.execute(call)))
    for thread in threads:
        thread.join()
    print("lag      mean %.2f s, longest %.2f s (a call's time, in which it reaches the present of its beginning)"
          % (statistics.mean(lags), max(lags)))
    cursor.execute(call)
    cursor.execute("SELECT (SELECT count(*) FROM (SELECT * FROM sync_rates.c EXCEPT SELECT * FROM sync_rates.local) x)")
    print("rows that differ at the end: %d" % cursor.fetchone()[0])
    cursor.execute("SELECT mongo_sync.stop(local) FROM unnest('{sync_rates.local,sync_rates.shared}'::regclass[]) local;"
                   "DROP SCHEMA sync_rates CASCADE; DROP SERVER sync_rates CASCADE")
    client.drop_database("sync_rates")
    if arguments.tpch > 0:
        run_tpch(connection, arguments.host, int(arguments.port), arguments.tpch)


main()
