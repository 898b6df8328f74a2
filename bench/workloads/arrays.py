"""Orders with an array of lines each: groups over all lines, those of a month, and lines that are read.

Each question is asked in SQL, of a table with the option unwind, and as the better of pipelines by hand.
"""
import datetime
import random
import statistics
import time

import bson
import pymongo

ORDERS, PRODUCTS = 100_000, 2_000
FIRST, MINUTES = datetime.datetime(2023, 1, 1), 10
MONTH = datetime.datetime(2023, 3, 1), datetime.datetime(2023, 4, 1)


def orders(count):
    generator = random.Random(5)
    for number in range(count):
        yield {"_id": number, "customer": generator.randrange(10_000), "status": generator.choice(("paid", "sent", "open")),
               "placed": FIRST + datetime.timedelta(minutes=MINUTES * number), "address": f"{number} Long Street, 12345 Town",
               "lines": [{"product": int(PRODUCTS * generator.random() ** 2), "quantity": generator.randint(1, 9),
                          "cents": generator.randint(100, 99999), "remark": "as agreed upon"} for _ in range(generator.randint(1, 7))]}


GROUP = {"$group": {"_id": "$lines.product", "n": {"$sum": 1}, "quantity": {"$sum": "$lines.quantity"}}}
UNWIND, PLACED = {"$unwind": "$lines"}, {"$match": {"placed": {"$gte": MONTH[0], "$lt": MONTH[1]}}}
TEN = [{"$sort": {"quantity": -1, "_id": 1}}, {"$limit": 10}]
NARROW = {"$project": {"_id": 0, "lines.product": 1, "lines.quantity": 1}}
ONE_MONTH = f"placed >= '{MONTH[0]:%Y-%m-%d}' AND placed < '{MONTH[1]:%Y-%m-%d}'"
READ = "product, quantity, cents"
FIELDS = {"lines.product": 1, "lines.quantity": 1, "lines.cents": 1}

# name, SQL, pipelines by hand of which the fastest counts
QUESTIONS = [
    ("per product over arrays", "SELECT product, count(*), sum(quantity) FROM array_lines GROUP BY product",
     [[UNWIND, GROUP], [NARROW, UNWIND, GROUP]]),
    ("top ten products of a month, indexed",
     "SELECT product, count(*), sum(quantity) FROM array_orders o JOIN array_lines l ON l._id = o._id "
     f"WHERE o.{ONE_MONTH.replace('AND ', 'AND o.')} GROUP BY product ORDER BY 3 DESC, 1 LIMIT 10",
     [[PLACED, UNWIND, GROUP, *TEN], [PLACED, NARROW, UNWIND, GROUP, *TEN]]),
    ("the same without a join",
     f"SELECT product, count(*), sum(quantity) FROM array_lines WHERE {ONE_MONTH} GROUP BY product ORDER BY 3 DESC, 1 LIMIT 10",
     [[PLACED, UNWIND, GROUP, *TEN], [PLACED, NARROW, UNWIND, GROUP, *TEN]]),
    ("count of lines", "SELECT count(*) FROM array_lines",
     [[UNWIND, {"$count": "n"}], [{"$project": {"lines": {"_id": 1}}}, UNWIND, {"$count": "n"}],
      [{"$group": {"_id": None, "n": {"$sum": {"$size": "$lines"}}}}]]),
    ("lines of a month, read", f"SELECT _id, n, {READ} FROM array_lines WHERE {ONE_MONTH}",
     [[PLACED, {"$project": FIELDS}], [PLACED, UNWIND, {"$project": FIELDS}]]),
    ("lines of a product, indexed", f"SELECT _id, n, {READ} FROM array_lines WHERE product = 1234",
     [[{"$match": {"lines.product": 1234}}, UNWIND, {"$match": {"lines.product": 1234}}, {"$project": FIELDS}]]),
    ("all lines, read", f"SELECT {READ} FROM array_lines", [[{"$project": FIELDS}], [UNWIND, {"$project": FIELDS}]]),
]


def rows(documents):
    """What SQL returns: the fields of groups, or of the lines in documents."""
    result = []
    for document in documents:
        lines = document.get("lines")
        if lines is None:
            result.append(tuple(value for value in document.values() if value is not None))
        else:
            result += [(line["product"], line["quantity"], line["cents"]) for line in (lines if isinstance(lines, list) else [lines])]
    return sorted(result)


def milliseconds(function):
    started = time.perf_counter()
    function()
    return (time.perf_counter() - started) * 1000


def prepare(lab):
    count = max(int(ORDERS * lab.scale), 20_000)
    lab.collection("array_orders", count, orders(count), ("placed", "lines.product"))
    lab.sql("CREATE FOREIGN TABLE array_orders (_id int, customer int, placed timestamp) SERVER bench "
            "OPTIONS (database 'bench', collection 'array_orders')")
    lab.sql("CREATE FOREIGN TABLE array_lines (_id int, customer int, placed timestamp, n int, product int OPTIONS (path 'lines.product'), "
            "quantity int OPTIONS (path 'lines.quantity'), cents int OPTIONS (path 'lines.cents')) SERVER bench "
            "OPTIONS (database 'bench', collection 'array_orders', unwind 'lines', ordinality 'n')")
    lab.sql("ANALYZE array_orders, array_lines")


def run(lab):
    prepare(lab)
    table = []
    # raw, as the wrapper does not make Python's objects either
    codec = bson.CodecOptions(document_class=bson.raw_bson.RawBSONDocument)
    with pymongo.MongoClient(lab.uri) as client:
        collection = client.bench.get_collection("array_orders", codec_options=codec)
        for name, sql, pipelines in QUESTIONS:
            expected = sorted(row[-3:] for row in lab.sql(sql))
            for pipeline in pipelines:
                assert rows(client.bench.array_orders.aggregate(pipeline)) == expected, (name, pipeline)
            rounds = {}
            # many rows stay in PostgreSQL
            statement = f"EXPLAIN (ANALYZE, TIMING OFF) {sql}" if name.endswith("read") else sql
            for _ in range(lab.rounds + 1):		# the first is for the caches
                ways = {"sql": lambda: lab.sql(statement)}
                ways |= {number: lambda pipeline=pipeline: list(collection.aggregate(pipeline)) for number, pipeline in enumerate(pipelines)}
                for who, way in ways.items():
                    rounds.setdefault(who, []).append(milliseconds(way))
            median = {who: statistics.median(times[1:]) for who, times in rounds.items()}
            ours = median.pop("sql")
            table.append({"question": name, "sql, ms": ours, "pipeline by hand, ms": min(median.values()),
                          "time as a ratio to the pipeline's": ours / min(median.values())})
    return table
