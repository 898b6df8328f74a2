"""The 22 queries of TPC-H at scale factor 0.1, money as Decimal128 and as Double.

For each: is the answer PostgreSQL's own, what of the plan runs in MongoDB, and the
time beside the same query with only filters pushed to the base tables, beside
local tables with the same rows and indexes, and beside a pipeline written by hand
where a sensible one exists (bench/tpch/pipelines.py).
"""
import os
import sys
import time

import psycopg2
import pymongo

import aggregation
from laboratory import HERE, median

sys.path[:0] = [os.path.join(HERE, "tpch")]
import pipelines  # noqa: E402
from load import KINDS, LEAST, load  # noqa: E402
from queries import NUMBERS, Plan, answer, query, same_answer  # noqa: E402

SCALE_FACTOR = 0.1
TIMES = {"mongo_fdw": "mongo_fdw s", "fetched": "base tables fetched s", "pipeline": "pipeline by hand s",
         "local": "local PostgreSQL s"}
FETCH_ONLY = "SET mongo_fdw.enable_join_pushdown = off; SET mongo_fdw.enable_aggregate_pushdown = off"


def connect(lab):
    """A session in a database of C locale, made if it is not there."""
    if not lab.sql("SELECT 1 FROM pg_database WHERE datname = 'tpch'"):
        lab.sql("CREATE DATABASE tpch TEMPLATE template0 LOCALE 'C'")
    connection = psycopg2.connect(dbname="tpch")
    connection.autocommit = True
    return connection


def timed(function, *arguments):
    started = time.perf_counter()
    function(*arguments)
    return {"seconds": time.perf_counter() - started}


class Case:
    """One query over one kind of money."""

    def __init__(self, lab, cursor, client, number, kind, scale_factor):
        self.lab, self.cursor, self.number, self.kind = lab, cursor, number, kind
        self.text = query(number, scale_factor)
        self.database = client["tpch_" + kind]
        self.pipeline = pipelines.pipeline(number, kind, scale_factor)

    def use(self, schema, settings=""):
        self.cursor.execute(f"RESET ALL; SET search_path = {schema}, public; {settings}")

    def through(self, schema, settings=""):
        self.use(schema, settings)
        return timed(answer, self.cursor, self.text)

    def verify(self):
        """What there is to say before the time is taken."""
        self.use("local")
        expected = answer(self.cursor, self.text)
        self.use(self.kind)
        row = {"query": f"Q{self.number}", "money": self.kind,
               "answer": "equal" if same_answer(self.number, answer(self.cursor, self.text), expected) else "DIFFERENT",
               "in MongoDB": Plan(self.cursor, self.text).describe()}
        if self.pipeline:
            self.cursor.execute(f"SELECT * FROM ({self.text}) q LIMIT 0")
            columns = [column.name for column in self.cursor.description]
            if not aggregation.agrees(self.database, *self.pipeline, columns, expected):
                raise RuntimeError(f"the pipeline by hand for Q{self.number} answers something else")
        return row

    def run(self):
        self.lab.say(f" Q{self.number}, money as {self.kind}")
        row = self.verify()
        contestants = {"mongo_fdw": lambda: self.through(self.kind),
                       "fetched": lambda: self.through(self.kind, FETCH_ONLY),
                       "local": lambda: self.through("local")}
        if self.pipeline:
            contestants["pipeline"] = lambda: timed(aggregation.run, self.database, *self.pipeline)
        results = self.lab.alternate(**contestants)
        for name, title in TIMES.items():
            if name in results:
                row[title] = median(results[name], "seconds")
        return row


def run(lab):
    connection = connect(lab)
    scale_factor = max(SCALE_FACTOR * lab.scale, LEAST)
    load(connection, lab.host, lab.port, scale_factor, lab.say)
    with pymongo.MongoClient(lab.uri) as client, connection.cursor() as cursor:
        return [Case(lab, cursor, client, number, kind, scale_factor).run() for kind in KINDS for number in NUMBERS]


def show(title, rows):
    """A table in markdown for each kind of money."""
    for kind in KINDS:
        chosen = [row for row in rows if row["money"] == kind]
        columns = ["query", "answer", "in MongoDB", *TIMES.values()]
        print(f"\n{title}, money as {kind}\n\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
        for row in chosen:
            cells = [row.get(column, "") for column in columns]
            print("| %s |" % " | ".join(f"{cell:.3f}" if isinstance(cell, float) else cell for cell in cells))
        wholly = sum(row["in MongoDB"].startswith("wholly") for row in chosen)
        slower = [row["query"] for row in chosen if row[TIMES["mongo_fdw"]] > 1.1 * row[TIMES["fetched"]]]
        print(f"\n{wholly} of {len(chosen)} run wholly in MongoDB; slower by more than a tenth than fetching the base "
              f"tables: {', '.join(slower) or 'none'}")
