"""100,001 product documents: load them, insert them one by one, match some of them.

After the published comparison of jsonb tables with MongoDB: products of eleven
brands, indexes on name, type and brand; the match of one brand gives 9,091
documents, that of no brand none, once with an index and once without.  CPU
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
            for field in ("name", "type", "brand"):
                client.bench.products.create_index(field)

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

    def insert(self, condition):
        return f"INSERT INTO products SELECT {self.columns} FROM products_source WHERE {condition} ORDER BY id"

    def singles(self):
        """A row a statement, without a client's round trip."""
        return (f"DO $$ DECLARE one products; BEGIN FOR one IN SELECT {self.columns} FROM products_source "
                f"WHERE id % {ONE_BY_ONE} = 0 ORDER BY id LOOP INSERT INTO products SELECT (one).*; END LOOP; END $$")

    def operations(self):
        """Name, number of documents, the wrapper's way, the native program's, and whether it starts from nothing."""
        some = len(range(ONE_BY_ONE, self.count + 1, ONE_BY_ONE))
        with open(self.file) as lines, open(self.file + ".some", "w") as chosen:
            chosen.writelines(line for number, line in enumerate(lines, 1) if number % ONE_BY_ONE == 0)
        brand = len(range(1, self.count, BRANDS))

        def matched(field, value, count):
            return (lambda: measured(self.lab, f"SELECT {self.columns} FROM products WHERE \"{field}\" = '{value}'", count),
                    lambda: self.lab.native("match", self.lab.uri, "bench.products", field, value, program="json"))

        def loaded(sql, file, batch, count):
            return (lambda: self.statement(sql, count),
                    lambda: self.lab.native("load", self.lab.uri, "bench.products", file, batch, program="json"))

        yield "insert one by one", some, *loaded(self.singles(), self.file + ".some", 1, some), True
        yield "bulk load", self.count, *loaded(self.insert("true"), self.file, BATCH, self.count), True
        yield "match a brand", brand, *matched("brand", "brand 1", brand), False
        yield "match none, with an index", 0, *matched("brand", "no brand", 0), False
        yield "match none, without", 0, *matched("details.color", "no color", 0), False


def run(lab):
    table = []
    with tempfile.TemporaryDirectory(dir=os.environ.get("HOME")) as folder:
        os.chmod(folder, 0o755)
        products = Products(lab, os.path.join(folder, "products.json"))
        lab.sql('ALTER FOREIGN TABLE products ADD "details.color" text')
        for name, count, wrapper, native, from_nothing in products.operations():
            lab.say(f" {name}")
            results = {"native": [], "mongo_fdw": []}
            for _ in range(lab.rounds):
                for who, function in (("native", native), ("mongo_fdw", wrapper)):
                    if from_nothing:
                        products.empty()
                    result = products.watched(function)
                    assert result.get("documents", count) == count, (name, who, result)
                    results[who].append(result)
            row = {"operation": name, "documents": count}
            for who, rounds in results.items():
                row |= {f"{who}, seconds": median(rounds, "seconds"), f"{who}, client CPU s": median(rounds, "cpu_seconds"),
                        f"{who}, MongoDB CPU s": median(rounds, "server_cpu")}
            row["time as a ratio to native's"] = row["mongo_fdw, seconds"] / row["native, seconds"]
            table.append(row)
    return table
