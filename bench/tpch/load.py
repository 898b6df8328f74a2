#!/usr/bin/env python3
"""Load TPC-H into two MongoDB databases and into PostgreSQL.

    load.py --scale-factor 0.01 --dsn 'dbname=tpch' --host 127.0.0.1 --port 27017

The rows come from tpchgen-cli.  MongoDB database tpch_decimal has money as
Decimal128, tpch_double as Double; schema "local" of PostgreSQL has ordinary tables,
schemas "decimal" and "double" foreign ones on the two, all with the same rows
and analyzed.  What is there already at that scale is kept.
"""
import argparse
import csv
import datetime
import os
import subprocess
import sys
import tempfile

import psycopg2
import pymongo
from bson import Decimal128, Int64

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
from schema import MONEY, TABLES  # noqa: E402

LEAST = 0.01                        # below, the specification's formula for partsupp repeats keys
KINDS = ("decimal", "double")       # what money is, each a schema here and a database there
BATCH = 10000


class Remembered(dict):
    """Values made from text; most texts come many times."""

    def __init__(self, make):
        self.make = make

    def __missing__(self, text):
        value = self.make(text)
        if len(self) < 100000:
            self[text] = value
        return value


def make_converters():
    return {"integer": int, "bigint": lambda text: Int64(int(text)), "text": str,
            MONEY: Remembered(Decimal128).__getitem__,
            "date": Remembered(datetime.datetime.fromisoformat).__getitem__}


def generate(scale_factor, folder):
    """NAME.csv of each table in a folder."""
    generator = os.path.join(os.path.dirname(sys.executable), "tpchgen-cli")
    subprocess.run([generator, "csv", "--scale-factor", str(scale_factor), "--output-dir", folder,
                    "--num-threads", "1", "--quiet"], check=True)


def create_indexes(collection, table):
    collection.create_index(list(table.unique), unique=True)
    for index in table.indexes:
        collection.create_index(list(index))


def load_decimal(database, name, table, file):
    collection = database[name]
    collection.drop()
    convert = [make_converters()[sql_type] for sql_type in table.types()]
    names = table.names()
    rows = csv.reader(file)
    next(rows)
    batch = []
    for row in rows:
        batch.append({field: make(text) for field, make, text in zip(names, convert, row)})
        if len(batch) == BATCH:
            collection.insert_many(batch, ordered=False)
            batch = []
    if batch:
        collection.insert_many(batch, ordered=False)
    create_indexes(collection, table)


def copy_as_double(source, target, name, table):
    """The same documents with Double where there is Decimal128; MongoDB converts."""
    convert = {field: {"$toDouble": "$" + field} for field in table.money()}
    # MongoDB does not take a $set of nothing
    source[name].aggregate([{"$set": {"_id": "$_id", **convert}}, {"$out": {"db": target.name, "coll": name}}])
    create_indexes(target[name], table)


def load_mongodb(client, folder):
    decimal, double = (client["tpch_" + kind] for kind in KINDS)
    for name, table in TABLES.items():
        with open(os.path.join(folder, name + ".csv"), newline="") as file:
            load_decimal(decimal, name, table, file)
        copy_as_double(decimal, double, name, table)


def load_local(cursor, folder):
    cursor.execute("DROP SCHEMA IF EXISTS local CASCADE; CREATE SCHEMA local")
    for name, table in TABLES.items():
        columns = ", ".join(f"{column} {sql_type} NOT NULL" for column, sql_type in table.columns)
        cursor.execute(f"CREATE TABLE local.{name} ({columns})")
        with open(os.path.join(folder, name + ".csv")) as file:
            cursor.copy_expert(f"COPY local.{name} FROM STDIN (FORMAT csv, HEADER)", file)
        cursor.execute(f"ALTER TABLE local.{name} ADD PRIMARY KEY ({', '.join(table.unique)})")
        for index in table.indexes:
            cursor.execute(f"CREATE INDEX ON local.{name} ({', '.join(index)})")


def create_foreign_tables(cursor, kind, host, port, schema=None, says_indexed=True):
    """Over the documents with that kind of money; do the columns say which of them are indexed?"""
    schema = schema or kind
    cursor.execute("CREATE EXTENSION IF NOT EXISTS mongo_fdw SCHEMA public")
    cursor.execute(f"DROP SERVER IF EXISTS tpch_{schema} CASCADE; DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema}")
    cursor.execute(f"CREATE SERVER tpch_{schema} FOREIGN DATA WRAPPER mongo_fdw OPTIONS (address %s, port %s)",
                   (host, str(port)))
    cursor.execute(f"CREATE USER MAPPING FOR PUBLIC SERVER tpch_{schema}")
    for name, table in TABLES.items():
        columns = ", ".join("%s %s%s NOT NULL" % (column, sql_type, " OPTIONS (indexed 'true')"
                                                  if says_indexed and table.is_indexed(column) else "")
                            for column, sql_type in table.columns)
        cursor.execute(f"CREATE FOREIGN TABLE {schema}.{name} ({columns}) SERVER tpch_{schema} "
                       f"OPTIONS (database 'tpch_{kind}')")


def is_loaded(client, cursor, scale_factor):
    """Was all of this scale loaded, and is it still there?"""
    cursor.execute("SELECT to_regclass('local.loaded') IS NOT NULL")
    if not cursor.fetchone()[0]:
        return False
    cursor.execute("SELECT scale_factor = %s, (SELECT count(*) FROM local.orders) FROM local.loaded", (scale_factor,))
    is_this_scale, orders = cursor.fetchone()
    return is_this_scale and all(client["tpch_" + kind].orders.count_documents({}) == orders for kind in KINDS)


def load(connection, host, port, scale_factor, say=lambda text: None):
    """Fill everything; 'connection' is psycopg2's, in autocommit, to a database of C locale."""
    if scale_factor < LEAST:
        raise ValueError(f"the scale factor must be at least {LEAST}, not {scale_factor}")
    with pymongo.MongoClient(host, port) as client, connection.cursor() as cursor:
        if not is_loaded(client, cursor, scale_factor):
            say(f"loading TPC-H at scale factor {scale_factor:g}")
            with tempfile.TemporaryDirectory() as folder:
                generate(scale_factor, folder)
                cursor.execute("DROP TABLE IF EXISTS local.loaded")
                load_mongodb(client, folder)
                load_local(cursor, folder)
                cursor.execute("CREATE TABLE local.loaded AS SELECT %s::float8 AS scale_factor", (scale_factor,))
        for kind in KINDS:
            create_foreign_tables(cursor, kind, host, port)
        for schema in ("local", *KINDS):
            for name in TABLES:
                cursor.execute(f"ANALYZE {schema}.{name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dsn", default="dbname=tpch")
    parser.add_argument("--host", default=os.environ.get("MONGO_HOST", "127.0.0.1"))
    parser.add_argument("--port", type=int, default=int(os.environ.get("MONGO_PORT", "27017")))
    parser.add_argument("--scale-factor", type=float, default=0.1)
    options = parser.parse_args()
    connection = psycopg2.connect(options.dsn)
    connection.autocommit = True
    load(connection, options.host, options.port, options.scale_factor, print)


if __name__ == "__main__":
    main()
