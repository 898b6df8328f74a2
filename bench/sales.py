"""A million sales of ten thousand clients: the data of the workloads group_by, top_n and join.

Each query is run by the wrapper with its own plan, by the wrapper with only filters
pushed down, so that PostgreSQL fetches the rows and computes the rest, and by MongoDB as
a pipeline written by hand.
"""
import datetime
import io
import random
import time

import pymongo
from bson import Decimal128

import aggregation
from laboratory import median

SALES, CLIENTS, CITIES = 1_000_000, 10_000, 500
CATEGORIES = [f"category {number:02}" for number in range(20)]
COUNTRIES = [f"country {number:02}" for number in range(25)]
FIRST_DAY, DAYS = datetime.datetime(2021, 1, 1), 1461
AS_PLANNED = "RESET ALL"
FETCH = ("SET mongo_fdw.enable_join_pushdown = off; SET mongo_fdw.enable_aggregate_pushdown = off; "
         "SET mongo_fdw.enable_order_by_pushdown = off")
RATIO = "ratio to the better one"


def sales(count, clients):
    generator = random.Random(1)
    for number in range(count):
        yield {"_id": number, "client": generator.randrange(clients), "product": generator.randrange(100_000),
               "category": generator.choice(CATEGORIES), "quantity": generator.randint(1, 50),
               "price": Decimal128(f"{generator.randint(100, 99999)}e-2"), "weight": generator.randint(1, 4000) / 8,
               "placed": FIRST_DAY + datetime.timedelta(minutes=generator.randrange(DAYS * 1440)),
               "remark": "as agreed upon by telephone"}


def clients(count):
    generator = random.Random(2)
    for number in range(count):
        city = generator.randrange(CITIES)
        yield {"_id": number, "name": f"Client {number:05}", "city": f"city {city:03}",
               "country": COUNTRIES[city % len(COUNTRIES)]}


class Sales:
    def __init__(self, lab):
        self.lab = lab
        self.count, self.clients = int(SALES * lab.scale), max(int(CLIENTS * lab.scale), CITIES)
        self.database = pymongo.MongoClient(lab.uri).bench
        lab.collection("sales", self.count, sales(self.count, self.clients), indexes=["client", "placed"])
        lab.collection("clients", self.clients, clients(self.clients), indexes=["city"])
        lab.sql("DROP FOREIGN TABLE IF EXISTS sales, clients")
        lab.sql("""CREATE FOREIGN TABLE sales (_id integer, client integer OPTIONS (indexed 'true'), product integer,
                   category text, quantity integer, price numeric, weight double precision,
                   placed timestamp OPTIONS (indexed 'true')) SERVER bench OPTIONS (database 'bench')""")
        lab.sql("""CREATE FOREIGN TABLE clients (_id integer, name text, city text OPTIONS (indexed 'true'), country text)
                   SERVER bench OPTIONS (database 'bench')""")
        lab.sql("ANALYZE sales, clients")

    def answer(self, settings, query):
        """Returns PostgreSQL's texts, row by row."""
        output = io.StringIO()
        self.lab.sql(settings)
        with self.lab.postgres.cursor() as cursor:
            cursor.copy_expert(f"COPY ({query}) TO STDOUT", output)
        return [line.split("\t") for line in output.getvalue().splitlines()]

    def timed(self, function, *arguments):
        started = time.perf_counter()
        function(*arguments)
        return {"seconds": time.perf_counter() - started}

    def verify(self, title, query, collection, pipeline):
        """Checks that all three return the same rows in the order of the query, which is complete."""
        expected = self.answer(FETCH, query)
        if self.answer(AS_PLANNED, query) != expected:
            raise RuntimeError(f"{title}: pushing it down changes the answer")
        with self.lab.postgres.cursor() as cursor:
            cursor.execute(f"SELECT * FROM ({query}) q LIMIT 0")
            columns = [column.name for column in cursor.description]
        if not aggregation.agrees(self.database, collection, pipeline, columns, expected):
            raise RuntimeError(f"{title}: the pipeline by hand answers something else")

    def plan(self, query):
        """Returns the node types of EXPLAIN from the top down."""
        self.lab.sql(AS_PLANNED)
        lines = [row[0] for row in self.lab.sql("EXPLAIN (COSTS OFF) " + query)]
        return ", ".join(line.strip(" ->") for line in lines if line.lstrip().startswith("->") or line == lines[0])

    def ask(self, title, query, collection, pipeline):
        """Measures a query; returns one line of the table."""
        self.lab.say(f" {title}")
        self.verify(title, query, collection, pipeline)
        results = self.lab.alternate(
            mongo_fdw=lambda: self.timed(self.answer, AS_PLANNED, query),
            fetched=lambda: self.timed(self.answer, FETCH, query),
            pipeline=lambda: self.timed(aggregation.run, self.database, collection, pipeline))
        seconds = {name: median(rounds, "seconds") for name, rounds in results.items()}
        return {"question": title, "plan": self.plan(query), "mongo_fdw s": seconds["mongo_fdw"],
                "fetched and computed here s": seconds["fetched"], "pipeline by hand s": seconds["pipeline"],
                RATIO: seconds["mongo_fdw"] / min(seconds["fetched"], seconds["pipeline"])}

    def ask_all(self, questions):
        return [self.ask(*question) for question in questions]
