"""Reports over a network, in SQL and as pipelines and finds written by hand.

Orders and their customers, on the same machine and behind two networks (bench/native/delay.c), which both sides share.
What counts then is how much is fetched, and how often one waits.
"""
import contextlib
import datetime
import random
import time

import pymongo
from bson import Decimal128
from bson.codec_options import CodecOptions

import aggregation
from laboratory import median
from targets import commands, network

ORDERS, CUSTOMERS = 300_000, 3_000
# microseconds one way, bytes a second
SETTINGS = {"same machine": None, "1 ms, 1 Gbit/s": (500, 125_000_000), "20 ms, 100 Mbit/s": (10_000, 12_500_000)}
STATUSES = ("new", "paid", "packed", "delivered", "returned")
CHANNELS = ("shop", "telephone", "web", "agent")
FIRST = datetime.datetime(2023, 1, 1, tzinfo=datetime.timezone.utc)
TWO_YEARS = 731 * 86_400_000		# milliseconds
DAY = {"$gte": datetime.datetime(2023, 6, 1), "$lt": datetime.datetime(2023, 6, 2)}
READ = CodecOptions(tz_aware=True)


def orders(count, customers):
    generator = random.Random(1)
    for number in range(count):
        yield {"_id": number, "customer": generator.randrange(customers),
               "placed": FIRST + datetime.timedelta(milliseconds=number * TWO_YEARS // count),
               "status": generator.choice(STATUSES), "channel": generator.choice(CHANNELS),
               "quantity": generator.randint(1, 50), "total": Decimal128(f"{generator.randint(100, 99999)}e-2"),
               "weight": generator.randint(1, 4000) / 8,
               "note": f"as agreed upon by telephone; leave it with the neighbours if nobody opens ({number:06})"}


def customers(count):
    for number in range(count):
        yield {"number": number, "country": f"country {number % 20:02}", "name": f"Customer {number:04}"}


def pipeline(*stages):
    return {"aggregate": "orders", "pipeline": list(stages), "cursor": {}}


def group(key, **sums):
    return {"$group": {"_id": key, **sums}}


def by_month(zone):
    month = {"$dateTrunc": {"date": "$placed", "unit": "month", "timezone": zone}}
    return (f"count by month, {zone}", "SELECT date_trunc('month', placed), count(*) FROM orders GROUP BY 1",
            pipeline(group(month, n={"$sum": 1})), zone)


# Rounds are short, and there are goals for their medians: there are more of them.
TIMES = 5

ONE, QUANTITY = {"$sum": 1}, {"$sum": "$quantity"}
# Title, SQL, MongoDB's command, and the session's time zone if it is not UTC.  Fields come in the order of columns.
QUESTIONS = (
    ("count by two fields", "SELECT status, channel, count(*) FROM orders GROUP BY 1, 2",
     pipeline(group({"status": "$status", "channel": "$channel"}, n=ONE))),
    ("sum of integers by a field", "SELECT status, sum(quantity) FROM orders GROUP BY 1",
     pipeline(group("$status", s=QUANTITY))),
    by_month("UTC"),
    by_month("Europe/Berlin"),
    ("count of distinct indexed values", "SELECT count(DISTINCT customer) FROM orders",
     pipeline(group("$customer"), {"$count": "n"})),
    ("the ten best customers", "SELECT customer, sum(quantity) FROM orders GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 10",
     pipeline(group("$customer", s=QUANTITY), {"$sort": {"s": -1, "_id": 1}}, {"$limit": 10})),
    ("sum by the customer's country",
     "SELECT country, sum(quantity) FROM orders JOIN customers ON number = customer GROUP BY 1",
     pipeline(group("$customer", s=QUANTITY),
              {"$lookup": {"from": "customers", "localField": "_id", "foreignField": "number", "as": "c"}},
              {"$unwind": "$c"}, group("$c.country", s={"$sum": "$s"}))),
    ("HAVING over a filter",
     "SELECT customer, count(*) FROM orders WHERE status = 'paid' GROUP BY 1 HAVING count(*) > 28",
     pipeline({"$match": {"status": "paid"}}, group("$customer", n=ONE), {"$match": {"n": {"$gt": 28}}})),
    ("the newest twenty", "SELECT * FROM orders ORDER BY placed DESC LIMIT 20",
     {"find": "orders", "sort": {"placed": -1}, "limit": 20}),
    ("those paid on a day",
     "SELECT * FROM orders WHERE placed >= '2023-06-01' AND placed < '2023-06-02' AND status = 'paid'",
     {"find": "orders", "filter": {"placed": DAY, "status": "paid"}}),
)


def load(lab, database):
    count = int(ORDERS * lab.scale)
    buyers = max(int(CUSTOMERS * lab.scale), 1)
    lab.collection("orders", count, orders(count, buyers), indexes=["customer", "placed"])
    lab.collection("customers", buyers, customers(buyers))
    database.customers.create_index("number", unique=True)


def make_tables(lab, port):
    lab.sql("DROP SERVER IF EXISTS bench_network CASCADE")
    lab.sql("CREATE SERVER bench_network FOREIGN DATA WRAPPER mongo_fdw OPTIONS (address '127.0.0.1', port %s)", (str(port),))
    lab.sql("CREATE USER MAPPING FOR CURRENT_USER SERVER bench_network")
    lab.sql("CREATE FOREIGN TABLE orders (_id integer, customer integer, placed timestamptz, status text, channel text, "
            "quantity integer, total numeric, weight double precision, note text) SERVER bench_network "
            "OPTIONS (database 'bench')")
    lab.sql("CREATE FOREIGN TABLE customers (number integer, country text, name text) SERVER bench_network "
            "OPTIONS (database 'bench')")
    lab.sql("ANALYZE orders, customers")


def values(document):
    """Those of a document and of the documents in it, as psycopg2 has them."""
    for value in document.values():
        if isinstance(value, dict):
            yield from values(value)
        else:
            yield value.to_decimal() if isinstance(value, Decimal128) else value


def verify(lab, database, title, query, command):
    """Both must answer the same, in the same order if the query has one.  This opens their connections, too."""
    rows, documents = lab.sql(query), [tuple(values(document)) for document in aggregation.fetch(database, command, READ)]
    if "ORDER BY" not in query:
        rows, documents = sorted(rows), sorted(documents)
    if rows != documents:
        raise RuntimeError(f"{title}: SQL and MongoDB's own command answer differently")


def ask(lab, database, carried, setting, title, query, command, zone="UTC"):
    """One line of the table."""
    def timed(function, *arguments):
        before, started = carried(), time.perf_counter()
        function(*arguments)
        ms = (time.perf_counter() - started) * 1000
        return {"ms": ms, "bytes": carried() - before}

    lab.say(f" {setting}: {title}")
    lab.sql("SET timezone = %s", (zone,))
    verify(lab, database, title, query, command)
    results = lab.alternate(sql=lambda: timed(lab.sql, query), pipeline=lambda: timed(aggregation.fetch, database, command),
                            times=TIMES)
    ms = {name: median(rounds, "ms") for name, rounds in results.items()}
    return {"question": title, "setting": setting, "sql_ms": ms["sql"], "pipeline_ms": ms["pipeline"],
            "ratio": ms["sql"] / ms["pipeline"], "commands": commands(results["sql"][-1]["seen"]),
            "bytes": results["sql"][-1]["bytes"]}


def run(lab):
    def by_connections():
        """What carried() tells, where no network does; of SQL only."""
        return int(lab.sql("SELECT sum(bytes_sent + bytes_received) FROM mongo_fdw_get_connections() "
                           "WHERE server_name = 'bench_network'")[0][0])

    table = []
    for setting, link in SETTINGS.items():
        with contextlib.ExitStack() as stack:
            port, carried = stack.enter_context(network(lab.port, *link)) if link else (lab.port, by_connections)
            # whose monitor says hello once a day, so that it adds no commands
            client = stack.enter_context(pymongo.MongoClient("127.0.0.1", port, heartbeatFrequencyMS=86_400_000))
            load(lab, client.bench)
            make_tables(lab, port)
            stack.callback(lab.sql, "RESET timezone; DROP SERVER bench_network CASCADE")
            table += [ask(lab, client.bench, carried, setting, *question) for question in QUESTIONS]
    return table


def show(title, rows):
    print(f"\n{title}: milliseconds in SQL and by hand, their ratio, bytes and commands of SQL")
    for row in rows:
        print("  {setting:18} {question:34} {sql_ms:8.1f} {pipeline_ms:8.1f} {ratio:6.2f} {bytes:10}  {commands}".format(**row))
