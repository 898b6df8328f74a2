#!/usr/bin/env python3
"""Conditions on values inside json, over documents with values of every BSON type.

They include Symbols, DBPointers and undefined, which drivers no longer write, at paths through
documents and arrays.  Each condition must find the same rows as in a local copy: with and
without an index, as json and jsonb, relaxed and canonical, with both values of type_mismatch.
"""
import datetime
import random
import struct
import sys

import bson
import psycopg2
from bson import Binary, Code, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from bson.raw_bson import RawBSONDocument

from both_servers import BothServers
import test_arguments

STRINGS = ["", "a", "b", "ab", "K", "NaN", "5", "5.0", "05", "-1", "1e3", "2024-01-02", "2024-01-03T10:00:00Z", "[", "[1]", "{", "{}", "t", "true",
           "f", "~", "é", "\U0001F600", "n", "null", " ", "x\ny", "\\"]
VALUES = STRINGS + [
    0, 1, 5, -1, 5.0, 0.1, -0.0, 1e20, 1e300, 5e-324, float("nan"), float("inf"), float("-inf"), Int64(2 ** 53 + 1), Int64(-5), Int64(2 ** 62), 2.0 ** 60,
    Decimal128("5"), Decimal128("5.0"), Decimal128("NaN"), Decimal128("1E+6000"), True, False, None, [], ["a"], ["z", "a"], [5], [[5]], [["a"]], [None], [{}],
    [{"a": 1}], {}, {"a": 1}, {"a": "b"}, {"$ref": "a", "$id": 5}, {"$oid": "65a000000000000000000001"}, ObjectId("65a000000000000000000001"), datetime.datetime(2024, 1, 2, 3, 4, 5),
    Regex("a"), Binary(b"abc"), Binary(b"0123456789abcdef", 4), Timestamp(5, 1), MinKey(), MaxKey(), Code("a"), Code("a", {"x": 1})]
SYMBOLS = ["a", "K", "z", "5", "", "{", "2024-01-02"]
PATHS = ["(j->>'x')", "(j#>>'{x}')", "(j->'x'->>'z')", "(j#>>'{x,z}')", "(j#>>'{x,0}')", "(j#>>'{x,0,z}')", "(j->'x'->>'0')", "(j#>>'{0,x}')", "(j#>>'{}')",
         "(j->'x'->>'$id')", "(j#>>'{x,$ref}')", "(j#>>'{x,z,$id}')"]
TEXTS = ["", "!", " ", "5", "5.0", "-", "-1", "0", "9", ":", "2024-01-02", "2024-01-03", "K", "N", "Z", "[", "[1", '["a"]', "]", "\\", "_", "a", "b", "f", "g",
         "n", "t", "true", "u", "z", "{", '{"$s', '{"$symbol"', "{}", "|", "~", "é", "\U0001F600", "100000000000000000000", "NaN", "0.1"]
PATTERNS = ["a%", "%a%", "5%", "_", "[%", "\\{%", "%", "", "t%", "tr_e", "-%", "%1%", '%"%', "K%", "b", "%$symbol%", '{"$%', "\\\\%", "é%", "n%", "f%e"]
REGEXES = ["^a", "a$", "^[0-9]", "^\\{", "^\\[", "^t", "x", "^.$", "^(a|5)", "^$", "^[^a]", "-1"]
JSONS = ["1", "5", "0.1", '"a"', '"K"', "true", "null", "{}", "[]", '{"z":5}', '{"z":"a"}', '["a"]', "[5]", "[[5]]", '[{"z":5}]', '[{"z":"a"},3]', '[{"z":[5]}]',
         '{"z":{}}', '{"0":5}', "[null]", "1e20", '[[{"z":5}]]', '{"$oid":"65a000000000000000000001"}', '[["a"]]', "9007199254740993", '{"$id":5}']
JSON_PATHS = ["$.x", "$.x[*]", "$.x.z", "$.x[*].z", "$.x[0]", "$.x[0].z", "$[*].x", '$.x."0"', "$.x[*][*]", "$.x[*][*].z", "$[*].x[*]", "$.x.z[*]", "$.*", "$.x.*",
              "$.x.**", "$.x.size()", "$.x[last]", "$", "$[0]", "$.x.double()"]
LITERALS = ["5", "0", "-1", "0.1", "1e20", "5e-324", "9007199254740993", "4611686018427387904", '"a"', '"K"', '""', '"5"', "true", "false", "null", '"{"', '"é"']
ORDERS = ["<", "<=", ">", ">="]


def quoted(text):
    return "'%s'" % text.replace("'", "''")


def document(*members):
    """Returns a document of members in BSON."""
    body = b"".join(members)
    return struct.pack("<i", len(body) + 5) + body + b"\0"


def member(kind, name, payload):
    return bytes([kind]) + name.encode() + b"\0" + payload


def encoded(name, value):
    return bson.encode({name: value})[4:-1]


def encoders():
    """Returns functions that encode a value as a member with a given name."""
    for value in VALUES:
        yield lambda name, value=value: encoded(name, value)
    for symbol in SYMBOLS:
        yield lambda name, symbol=symbol: member(0x0E, name, struct.pack("<i", len(symbol) + 1) + symbol.encode() + b"\0")
    yield lambda name: member(0x06, name, b"")
    yield lambda name: member(0x0C, name, struct.pack("<i", 5) + b"db.c\0" + b"012345678901")
    yield lambda name: member(0x01, name, struct.pack("<Q", 0xFFF8000000000000))


def documents():
    number = 0
    for value in encoders():
        for shape in (member(3, "j", document(value("x"), encoded("y", 1))),
                      member(3, "j", document(member(3, "x", document(value("z"))))),
                      member(3, "j", document(member(4, "x", document(member(3, "0", document(value("z"))))))),
                      member(3, "j", document(member(4, "x", document(member(4, "0", document(member(3, "0", document(value("z"))))))))),
                      member(3, "j", document(member(4, "x", document(value("0"), encoded("1", 3))))),
                      member(4, "j", document(member(3, "0", document(value("x"))))),
                      value("j"),
                      # repeated keys, of which the first counts
                      member(3, "j", document(value("x"), encoded("x", "b"))),
                      member(4, "j", document(member(3, "0", document(encoded("x", {"z": "a"}), value("x"))))),
                      member(3, "j", document(member(3, "x", document(value("0")))))):
            yield RawBSONDocument(document(encoded("_id", number), shape))
            number += 1
    yield {"_id": number}


def null_conditions(rng):
    return "%s IS %sNULL" % (rng.choice(["j", "j", "(j->'x')", "(j->>'x')", "(j#>'{x,0}')", "COALESCE(j->'x', j)"]), rng.choice(["", "NOT "]))


def text_conditions(rng):
    path = rng.choice(PATHS) + ' COLLATE "C"'
    value = [quoted(text) if rng.random() < 0.7 else "(SELECT %s)" % quoted(text) for text in rng.sample(TEXTS, 3)]
    kind = rng.random()
    if kind < 0.3:
        return "%s %s %s" % (path, rng.choice(ORDERS + ["=", "<>"]), value[0])
    if kind < 0.6:
        return "%s %s %s AND %s %s %s" % (path, rng.choice([">", ">="]), value[0], path, rng.choice(["<", "<="]), value[1])
    if kind < 0.7:
        return "%s %sIN (%s)" % (path, rng.choice(["", "NOT "]), ", ".join(value))
    if kind < 0.85:
        return "%s %s %s" % (path, rng.choice(["LIKE", "NOT LIKE", "ILIKE", "NOT ILIKE"]), quoted(rng.choice(PATTERNS)))
    return "%s %s %s" % (path, rng.choice(["~", "!~", "~*"]), quoted(rng.choice(REGEXES)))


def jsonb_conditions(rng):
    left = rng.choice(["j", "(j->'x')", "(j#>'{x}')", "(j->'x'->'z')", "j['x']", "(j#>'{x,0}')"])
    kind = rng.random()
    if kind < 0.3:
        return "%s %s %s::jsonb" % (left, rng.choice(["@>", "=", "<@", "<>"]), quoted(rng.choice(["%s", '{"x":%s}', '[{"x":%s}]']) % rng.choice(JSONS)))
    if kind < 0.45:
        return "%s %s" % (left, rng.choice(["? %s", "?| ARRAY[%s,'q']", "?& ARRAY[%s,'x']"]) % quoted(rng.choice(["x", "z", "a", "0", "$oid", "", "K", "5", "$symbol"])))
    comparison = "%s %s" % (rng.choice(["==", "==", "!=", "<", "<=", ">", ">="]), rng.choice(LITERALS))
    path = rng.choice(JSON_PATHS)
    if rng.random() < 0.6:
        path, operator = "%s ? (@%s %s)" % (path, rng.choice(["", "", ".z", "[*]", "[*].z", ".size()"]), comparison), "@?"
    else:
        path, operator = "%s %s" % (path, rng.choice([comparison, 'starts with "a"', 'like_regex "^[0-9]"'])), "@@"
    return "%s %s %s::jsonpath" % (left, operator, quoted(rng.choice(["", "", "strict "]) + path))


class OddDocuments(BothServers):
    def create(self):
        """Creates foreign tables of all kinds and local copies; returns names and types."""
        host, port = self.client.address
        database = self.client["odd_documents"]
        for indexed in (False, True):
            name = "indexed" if indexed else "plain"
            database.drop_collection(name)
            # a collation that must not affect the result
            collection = database.create_collection(name, collation={"locale": "en", "strength": 1})
            collection.insert_many(list(documents()))
            for path in ("j.x", "j.x.z", "j.x.0", "j") if indexed else ():
                collection.create_index(path, collation={"locale": "simple"})
        self.execute("DROP SERVER IF EXISTS odd CASCADE; DROP SCHEMA IF EXISTS odd_local CASCADE; CREATE SCHEMA odd_local;"
                     "CREATE EXTENSION IF NOT EXISTS mongo_fdw;"
                     "CREATE SERVER odd FOREIGN DATA WRAPPER mongo_fdw OPTIONS (address '%s', port '%d', fdw_startup_cost '0');"
                     "CREATE USER MAPPING FOR PUBLIC SERVER odd" % (host, port))
        for sql_type in ("jsonb", "json"):
            for canonical in ("false", "true"):
                for mismatch in ("error", "null"):
                    for collection in ("plain", "indexed"):
                        yield sql_type, self.create_table(sql_type, canonical, mismatch, collection)

    def create_table(self, sql_type, canonical, mismatch, collection):
        name = "_".join((sql_type, canonical, mismatch, collection))
        self.execute("CREATE FOREIGN TABLE %s (_id int, j %s) SERVER odd OPTIONS (database 'odd_documents', collection '%s', canonical_json '%s', type_mismatch '%s');"
                     "SET mongo_fdw.enable_pushdown = off; CREATE TABLE odd_local.%s AS TABLE %s; RESET mongo_fdw.enable_pushdown"
                     % (name, sql_type, collection, canonical, mismatch, name, name))
        return name

    def answer(self, table, condition):
        try:
            return sorted(self.execute("SELECT _id FROM %s WHERE %s" % (table, condition)))
        except psycopg2.Error as error:
            if self.connection.closed:
                raise
            return "%s: %s" % (error.pgcode, error.diag.message_primary)

    def run(self):
        rng = random.Random(self.options.seed)
        tables = list(self.create())
        differences = 0
        for _ in range(self.options.queries):
            sql_type, table = rng.choice(tables)
            kinds = [text_conditions] * 10 + [null_conditions] + [jsonb_conditions] * (10 if sql_type == "jsonb" else 0)
            condition = rng.choice(kinds)(rng)
            if rng.random() < 0.15:
                condition = "NOT (%s)" % condition
            remote, local = self.answer(table, condition), self.answer("odd_local." + table, condition)
            if remote == local:
                continue
            differences += 1
            print("%s WHERE %s" % (table, condition))
            if isinstance(remote, list) and isinstance(local, list):
                print("  missing %s, too many %s" % (sorted(set(local) - set(remote))[:5], sorted(set(remote) - set(local))[:5]))
            else:
                print("  %s\n  %s" % (str(remote)[:200], str(local)[:200]))
            if differences == 10:
                break
        print("%d conditions, %d differences" % (self.options.queries, differences))
        return differences == 0


def main():
    options = test_arguments.random_parser(__doc__).parse_args()
    print("seed %d" % options.seed)
    sys.exit(0 if OddDocuments(options).run() else 1)


if __name__ == "__main__":
    main()
