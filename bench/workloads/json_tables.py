"""100,001 product documents: load them, insert them one by one, match some, read some whole.

After the published comparison of jsonb tables with MongoDB: products of eleven
brands, indexes on name, type and brand; the match of one brand gives 9,091
documents, that of no brand none, once with an index and once without.  Whole
documents go out by COPY, beside ordinary tables of json and of jsonb.  CPU
seconds are of the client (the backend, the native program) and of MongoDB.
"""
import json
import os
import tempfile
import time

import pymongo

from laboratory import median
from targets import cpu_seconds
from workloads.scan import measured

PRODUCTS, BRANDS, BATCH = 100_001, 11, 100_000
INDEXED = ("name", "type", "brand")
ONE_BY_ONE = 10			# one product in so many is inserted for the measure of single inserts
FIELDS = "name text, type text, brand text, price float8, available bool, warranty_years int, details jsonb"


def product(number):
    return {"name": f"product {number}", "type": f"type {number % 97}", "brand": f"brand {number % BRANDS}",
            "price": 10 + number % 1000 / 10, "available": number % 3 > 0, "warranty_years": number % 5,
            "details": {"color": ["black", "white", "red"][number % 3], "weight": number % 700, "for": ["phones", "tablets"],
                        "description": "A thing that is of use to whoever has a use for it. " * 4}}


class Products:
    def __init__(self, lab, file):
        self.lab, self.file = lab, file
        self.count = max(int(PRODUCTS * lab.scale), 1000)
        self.server = lab.observer.command({"serverStatus": 1})["pid"]
        lab.sql("DROP TABLE IF EXISTS products_source")
        lab.sql(f"CREATE UNLOGGED TABLE products_source (id serial, {FIELDS})")
        self.write_source()
        lab.sql("DROP TABLE IF EXISTS products_local; CREATE TABLE products_local (LIKE products_source); "
                "ALTER TABLE products_local DROP id")
        for field in INDEXED:
            lab.sql(f"CREATE INDEX ON products_local ({field})")
        lab.sql(f"CREATE FOREIGN TABLE products ({FIELDS}) SERVER bench OPTIONS (database 'bench', collection 'products')")

    def write_source(self):
        """The products as JSON lines for the native program and as rows for the wrapper."""
        with open(self.file, "w") as lines:
            for number in range(self.count):
                lines.write(json.dumps(product(number)) + "\n")
        self.lab.sql("CREATE TEMP TABLE lines (line jsonb)")
        # quote and delimiter are characters that the lines do not have
        self.lab.sql(f"COPY lines FROM '{self.file}' WITH (FORMAT csv, QUOTE E'\\x01', DELIMITER E'\\x02')")
        columns = ", ".join(field.split()[0] for field in FIELDS.split(", "))
        self.lab.sql(f"INSERT INTO products_source ({columns}) SELECT {columns} FROM lines, "
                     f"jsonb_to_record(line) AS product({FIELDS})")
        self.lab.sql("DROP TABLE lines")
        self.columns = columns

    def empty(self):
        with pymongo.MongoClient(self.lab.uri) as client:
            client.bench.products.drop()
            for field in INDEXED:
                client.bench.products.create_index(field)
        self.lab.sql("TRUNCATE products_local")

    def statement(self, text, count):
        backend = self.lab.postgres.get_backend_pid()
        cpu, started = cpu_seconds(backend), time.monotonic()
        self.lab.sql(text)
        return {"documents": count, "seconds": time.monotonic() - started, "cpu_seconds": cpu_seconds(backend) - cpu}

    def watched(self, function):
        cpu = cpu_seconds(self.server)
        result = self.lab.watched(function)
        result["server_cpu"] = cpu_seconds(self.server) - cpu
        return result

    def insert_one_by_one(self, table):
        """A row a statement, without a client's round trip."""
        return (f"DO $$ DECLARE one products; BEGIN FOR one IN SELECT {self.columns} FROM products_source "
                f"WHERE id % {ONE_BY_ONE} = 0 ORDER BY id LOOP INSERT INTO {table} SELECT (one).*; END LOOP; END $$")

    def native(self, *arguments):
        return self.lab.native(*arguments, program="json")

    def loads(self):
        """Name, number of documents, and {who: how}, each from nothing."""
        some = len(range(ONE_BY_ONE, self.count + 1, ONE_BY_ONE))
        with open(self.file) as lines, open(self.file + ".some", "w") as chosen:
            chosen.writelines(line for number, line in enumerate(lines, 1) if number % ONE_BY_ONE == 0)
        self.lab.sql(f"COPY (SELECT {self.columns} FROM products_source ORDER BY id) TO '{self.file}.rows'")
        bulk = lambda: self.native("load", self.lab.uri, "bench.products", self.file, BATCH)
        yield "insert one by one", some, {
            "native": lambda: self.native("load", self.lab.uri, "bench.products", self.file + ".some", 1),
            "mongo_fdw": lambda: self.statement(self.insert_one_by_one("products"), some),
            "local table": lambda: self.statement(self.insert_one_by_one("products_local"), some)}
        yield "bulk load", self.count, {
            "native": bulk,
            "mongo_fdw": lambda: self.statement(
                f"INSERT INTO products SELECT {self.columns} FROM products_source ORDER BY id", self.count)}
        yield "bulk load by COPY", self.count, {
            "native": bulk,
            "mongo_fdw": lambda: self.statement(f"COPY products FROM '{self.file}.rows'", self.count)}

    def reads(self):
        """Likewise of what is there."""
        brand = len(range(1, self.count, BRANDS))

        def matched(field, value, count):
            return {"native": lambda: self.native("match", self.lab.uri, "bench.products", field, value),
                    "mongo_fdw": lambda: measured(
                        self.lab, f"SELECT {self.columns} FROM products WHERE \"{field}\" = '{value}'", count)}

        yield "match a brand", brand, matched("brand", "brand 1", brand)
        yield "match none, with an index", 0, matched("brand", "no brand", 0)
        yield "match none, without", 0, matched("details.color", "no color", 0)
        for kind in ("json", "jsonb"):
            whole, local = f"products_{kind}", f"products_local_{kind}"
            self.lab.sql(f"CREATE FOREIGN TABLE {whole} (__doc {kind}, brand text) SERVER bench "
                         "OPTIONS (database 'bench', collection 'products')")
            self.lab.local_table(local, f"SELECT __doc, brand FROM {whole}", "brand")
            yield f"{kind} out by COPY", brand, {
                who: lambda table=table: self.statement(
                    f"COPY (SELECT __doc FROM {table} WHERE brand = 'brand 1') TO '{self.file}.out'", brand)
                for who, table in (("mongo_fdw", whole), ("local table", local))}


def compare(products, name, count, contestants, prepare=lambda: None):
    """Rounds of each in turn; the table's row."""
    products.lab.say(f" {name}")
    results = {who: [] for who in contestants}
    for _ in range(products.lab.rounds):
        for who, function in contestants.items():
            prepare()
            result = products.watched(function)
            assert result.get("documents", count) == count, (name, who, result)
            results[who].append(result)
    row = {"operation": name, "documents": count}
    for who, rounds in results.items():
        row |= {f"{who}, seconds": median(rounds, "seconds"), f"{who}, client CPU s": median(rounds, "cpu_seconds"),
                f"{who}, MongoDB CPU s": median(rounds, "server_cpu")}
    others = {who: row[f"{who}, seconds"] for who in results if who != "mongo_fdw"}
    for who, seconds in others.items():
        row[f"time as a ratio to {who}'s"] = row["mongo_fdw, seconds"] / seconds
    if len(others) > 1:
        row["time as a ratio to both together"] = row["mongo_fdw, seconds"] / sum(others.values())
    return row


def run(lab):
    with tempfile.TemporaryDirectory(dir=os.environ.get("HOME")) as folder:
        os.chmod(folder, 0o755)
        products = Products(lab, os.path.join(folder, "products.json"))
        table = [compare(products, *load, products.empty) for load in products.loads()]
        lab.sql('ALTER FOREIGN TABLE products ADD "details.color" text')
        return table + [compare(products, *read) for read in products.reads()]
