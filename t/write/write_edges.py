#!/usr/bin/env python3
"""UPDATE and DELETE as one command, at the edges of the integer types.

    t/write/write_edges.py --dsn "..." --mongo URI

Sums: for each integer type, each number in each BSON type and each summand,
UPDATE of the one document gives what PostgreSQL's own arithmetic gives, as the
BSON type that the column is written as; or an error, and then nothing has
changed.

Conditions: of documents of all kinds, UPDATE and DELETE by a comparison mean
what PostgreSQL's own means of those that can be read.
"""

import argparse
import itertools
import sys

import psycopg2
from bson import Decimal128, Int64
from pymongo import MongoClient

MISSING = object()
NUMBERS = [0, 1, -1, 2**15 - 1, -2**15, 2**15, 40000, -40000, 2**31 - 1, -2**31, 2**31, 2**53 + 2, 2**63 - 1, -2**63]
OTHERS = [0.5, 2.0**63, float("nan"), float("inf"), Decimal128("1.5"), Decimal128("9223372036854775808"), Decimal128("NaN"),
          Decimal128("7.0"), -0.0, None, MISSING, "1", [1], [], [[1]], [None], {"x": 1}, True]
TYPES = {"smallint": (int, 15), "integer": (int, 31), "bigint": (Int64, 63)}


def values():
    """Each number in each BSON type that holds it, and what is not an integer."""
    for number in NUMBERS:
        if -2**31 <= number < 2**31:
            yield number
        yield Int64(number)
        if float(number) == number and abs(number) < 2**63:
            yield float(number)
        yield Decimal128(str(number))
    yield from OTHERS


class Edges:
    def __init__(self, options):
        self.connection = psycopg2.connect(options.dsn)
        self.connection.autocommit = True
        self.cursor = self.connection.cursor()
        self.collection = MongoClient(options.mongo)["writes"]["edges"]
        self.server = options.server
        self.checked = 0
        self.differences = 0

    def sql(self, statement, *parameters):
        """The rows, or their number; for an error its SQLSTATE."""
        try:
            self.cursor.execute(statement, parameters)
            return self.cursor.fetchall() if self.cursor.description else self.cursor.rowcount
        except psycopg2.Error as error:
            return error.pgcode

    def expect(self, what, found, expected):
        self.checked += 1
        if found != expected:
            self.differences += 1
            print("%s: found %r, expected %r" % (what, found, expected))

    def fill(self):
        self.collection.drop()
        self.collection.create_index("k")
        self.collection.insert_many(
            {"_id": i, "stray": 1, **({} if value is MISSING else {"k": value})} for i, value in enumerate(values()))

    def create(self, name):
        self.cursor.execute("DROP FOREIGN TABLE IF EXISTS edges; CREATE FOREIGN TABLE edges (_id integer, k %s, pad text) SERVER %s"
                            " OPTIONS (database 'writes', collection 'edges')" % (name, self.server))

    def check_sum(self, name, number, value, operator, summand):
        bson_type, bits = TYPES[name]
        before = {"_id": number, "stray": 1, **({} if value is MISSING else {"k": value})}
        self.collection.replace_one({"_id": number}, before)
        what = "%s: %r %s %d" % (name, value, operator, summand)
        read = self.sql("SELECT k FROM edges WHERE _id = %s", number)
        found = self.sql("UPDATE edges SET k = k %s %%s::%s WHERE _id = %%s" % (operator, name), str(summand), number)
        after = self.collection.find_one({"_id": number})
        old = read[0][0] if isinstance(read, list) else None
        new = None if old is None else old + summand if operator == "+" else old - summand

        if not isinstance(read, list):	# reading and adding may tell mismatches by other errors of class 22
            self.expect(what, str(found)[:2], "22")
            self.expect(what + ", the document", repr(after), repr(before))
        elif new is not None and not -2**bits <= new < 2**bits:
            self.expect(what, found, "22003")
            self.expect(what + ", the document", repr(after), repr(before))
        else:
            expected = {"_id": number, "stray": 1, **({} if new is None else {"k": bson_type(new)})}
            self.expect(what, found, 1)
            self.expect(what + ", the document", after, expected)
            self.expect(what + ", its type", type(after.get("k")), bson_type if new is not None else type(None))

    def check_sums(self, name):
        bits = TYPES[name][1]
        summands = [0, 1, -1, 2**bits - 1, -2**bits, -2**bits + 1]
        for (number, value), operator, summand in itertools.product(enumerate(values()), "+-", summands):
            self.check_sum(name, number, value, operator, summand)

    def copy_readable(self, name):
        """An ordinary table of those documents that can be read."""
        self.cursor.execute("DROP TABLE IF EXISTS readable; CREATE TEMP TABLE readable (_id integer, k %s)" % name)
        for number, _ in enumerate(values()):
            self.sql("INSERT INTO readable SELECT _id, k FROM edges WHERE _id = %s", number)

    def check_condition(self, name, condition):
        self.fill()
        expected = [row[0] for row in self.sql("SELECT _id FROM readable WHERE %s ORDER BY _id" % condition)]
        what = "%s: %s" % (name, condition)
        plan = self.sql("EXPLAIN (COSTS off) DELETE FROM edges WHERE " + condition)
        self.expect(what + ", one command", "Foreign Delete" in str(plan), True)
        self.expect(what, self.sql("UPDATE edges SET pad = 'x' WHERE " + condition), len(expected))
        self.expect(what, sorted(d["_id"] for d in self.collection.find({"pad": "x"})), expected)
        left = set(d["_id"] for d in self.collection.find()) - set(expected)
        self.expect(what + ", deleted", self.sql("DELETE FROM edges WHERE " + condition), len(expected))
        self.expect(what + ", deleted", set(d["_id"] for d in self.collection.find()), left)

    def run(self):
        for name in TYPES:
            self.create(name)
            self.fill()
            self.copy_readable(name)
            self.check_sums(name)
            for condition in ("k > 0", "k < 5", "k BETWEEN -5 AND 40000", "k <> 1", "k IS NULL", "k IS NOT NULL", "k > 0 OR k IS NULL",
                              "NOT k > 0", "k > 0 AND k <> 40000", "k >= 0 AND _id > 7", "0 < k", "k <= 1 OR _id < 5"):
                self.check_condition(name, condition)
        print("%d checks, %d differences" % (self.checked, self.differences))
        return self.differences == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dsn", default="")
    parser.add_argument("--mongo", required=True)
    parser.add_argument("--server", default="mongodb")
    sys.exit(0 if Edges(parser.parse_args()).run() else 1)


if __name__ == "__main__":
    main()
