"""A hundred million documents, beside one and ten million: point, range, count, group and scan.

Only by its name (make bench ONLY=large ROUNDS=3): loading takes some minutes and
about 10 GB of disk.  The documents are those of point_query, made by INSERT ...
SELECT through the wrapper.
"""
import random
import time

import pymongo

from laboratory import median

ON_DEMAND = True
SIZES = (1_000_000, 10_000_000, 100_000_000)
CHUNK = 1_000_000			# rows a statement
POINTS = 2_000				# queries in a round
RANGE = 10_000				# keys

QUESTIONS = {
    "range of 10,000 keys": "SELECT max(info) FROM {table} WHERE id BETWEEN {first} AND {first} + %d" % (RANGE - 1),
    "count of 10,000 keys": "SELECT count(*) FROM {table} WHERE id BETWEEN {first} AND {first} + %d" % (RANGE - 1),
    "latest 100": "SELECT * FROM {table} ORDER BY id DESC LIMIT 100",
    "count of all": "SELECT count(*) FROM {table}",
    "count by month": "SELECT date_trunc('month', crt_time), count(*) FROM {table} GROUP BY 1",
    "all rows": "SELECT max(length(info) + id) FROM {table}",
}
SETTINGS = {"all rows": "SET mongo_fdw.enable_aggregate_pushdown = off"}


def fill(lab, table, count):
    with pymongo.MongoClient(lab.uri) as client:
        collection = client.bench[table]
        if collection.estimated_document_count() == count and "id_1" in collection.index_information():
            return
        lab.say(f"loading {count} documents into bench.{table}")
        collection.drop()
        started = time.monotonic()
        for first in range(1, count + 1, CHUNK):
            lab.sql(f"INSERT INTO {table} SELECT n, 'information about ' || n, "
                    f"timestamp '2013-01-01' + n * interval '1 second' "
                    f"FROM generate_series({first}, {min(first + CHUNK - 1, count)}) n")
        loaded = time.monotonic()
        collection.create_index("id")
        lab.say(f"  loaded in {loaded - started:.0f} s, index made in {time.monotonic() - loaded:.0f} s")


def prepare(lab, count):
    table = f"large_{count}"
    lab.sql(f"DROP FOREIGN TABLE IF EXISTS {table}")
    lab.sql(f"CREATE FOREIGN TABLE {table} (id int, info text, crt_time timestamp) SERVER bench "
            f"OPTIONS (database 'bench')")
    fill(lab, table, count)
    lab.sql(f"ANALYZE {table}")
    return table


def points(lab, table, count):
    """Many point queries of one session, prepared; seconds for one of them."""
    chance = random.Random(count)
    lab.sql(f"PREPARE point (int) AS SELECT info FROM {table} WHERE id = $1")
    started = time.perf_counter()
    for _ in range(POINTS):
        number = chance.randint(1, count)
        assert lab.sql(f"EXECUTE point ({number})") == [(f"information about {number}",)]
    seconds = time.perf_counter() - started
    lab.sql("DEALLOCATE point")
    return {"seconds": seconds / POINTS}


def timed(lab, question, table, count):
    lab.sql("RESET ALL; " + SETTINGS.get(question, "SELECT"))
    text = QUESTIONS[question].format(table=table, first=count // 2)
    started = time.perf_counter()
    lab.sql(text)
    return {"seconds": time.perf_counter() - started}


def measure(lab, count):
    """Seconds that each question takes with so many documents."""
    table = prepare(lab, count)
    lab.say(f" {count} documents")
    results = lab.alternate(**{"point query": lambda: points(lab, table, count)}, **{
        question: lambda question=question: timed(lab, question, table, count) for question in QUESTIONS})
    lab.sql("RESET ALL")
    return {question: median(rounds, "seconds") for question, rounds in results.items()}


def run(lab):
    counts = [int(size * lab.scale) for size in SIZES]
    seconds = {count: measure(lab, count) for count in counts}
    return [{"question": question, **{f"{count:,} documents, ms": seconds[count][question] * 1000 for count in counts}}
            for question in seconds[counts[0]]]
