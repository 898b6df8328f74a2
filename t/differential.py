"""Random queries, answered three ways: with pushdown, without, and by a local table.

    differential.py --seed 1 --queries 2000 --type-mismatch null --documents hostile

The oracle is PostgreSQL itself.  A collection is filled with random documents
(clean: every field missing, null or of its column's type; hostile: also of any
other type, in arrays, out of range).  Each random query must give the same rows
(a) through the foreign table with pushdown, (b) with mongo_fdw.enable_pushdown
off, and (c) from an ordinary table with the same content.

The seed is printed and replays the run.  A query with a difference is reduced:
parts of its condition are taken away as long as the difference stays.
"""

import argparse
import datetime
import os
import random
import sys
import uuid

import psycopg2
from bson import Binary, Decimal128, Int64, ObjectId, Regex, Timestamp
from pymongo import MongoClient

UTC = datetime.timezone.utc
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=UTC)

INTEGERS = [0, 1, -1, 2, 5, 7, 100, 32767, -32768]
INT4S = INTEGERS + [2147483647, -2147483648]
INT8S = INT4S + [9223372036854775807, -9223372036854775808, 9007199254740993]
INTEGER_TYPES = {"smallint": 15, "integer": 31, "bigint": 63}
HOSTILE_INTEGERS = [100000, 2 ** 40]
FLOATS = [0.0, -0.0, 1.0, -1.5, 0.1, 5.0, 1e300, -1e300, 5e-324, float("nan"),
          float("inf"), float("-inf"), 9007199254740992.0]
NUMERICS = ["0", "1", "-1", "0.1", "1.10", "5", "100.005", "1E+20", "-2.5",
            "12345678901234567890.123456789", "NaN", "Infinity", "-Infinity"]
TEXTS = ["", "a", "A", "ab", "b", "z", "a\n", "a\nb", "a%", "a_b", "aab", "\\", "Zz", "a.b", "$x", "ä", "\U0010ffff", " a", "a ",
         "65a000000000000000000001", "65a0000000000000000000zz", "65A000000000000000000001",
         "f", "ff", "g"]
OBJECTIDS = ["65a000000000000000000001", "65a000000000000000000002",
             "000000000000000000000000", "ffffffffffffffffffffffff"]
UUIDS = ["00000000-0000-0000-0000-000000000000", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
         "ffffffff-ffff-ffff-ffff-ffffffffffff"]
MILLIS = [0, 1, -1, 86399999, 86400000, -86400000, 1700000000123, 1700000000000,
          -62135596800000, 253402300799999]


def date_from_millis(millis):
    return EPOCH + datetime.timedelta(milliseconds=millis)


def timestamp_literal(rng, base):
    if rng.random() < 0.08:
        return rng.choice(["infinity", "-infinity"])
    moment = date_from_millis(base)
    micros = rng.choice([0, 0, 0, 1, 500, 999])
    try:
        moment += datetime.timedelta(microseconds=micros)
    except OverflowError:
        pass
    return moment.strftime("%Y-%m-%d %H:%M:%S.%f").rjust(26, "0")


class Column:
    """A column: its field, SQL type, stored values and literals to compare with."""

    def __init__(self, name, sql_type, values, literals, path=None, boolean=False):
        self.name = name
        self.sql_type = sql_type
        self.values = values
        self.literals = literals
        self.path = path or name
        self.boolean = boolean

    def literal(self, rng):
        value = self.literals(rng) if callable(self.literals) else rng.choice(self.literals)
        return "'%s'::%s" % (str(value).replace("'", "''"), self.sql_type.split(" collate")[0])

    def wider_literal(self, rng):
        """A literal whose type may be another of the column's family."""
        if self.sql_type in INTEGER_TYPES and rng.random() < 0.3:
            value = rng.choice(INT8S + HOSTILE_INTEGERS)
            types = [name for name, bits in INTEGER_TYPES.items() if -2 ** bits <= value < 2 ** bits]
            return "'%d'::%s" % (value, rng.choice(types))
        if self.sql_type == "name" and rng.random() < 0.3:
            return "'%s'::text" % ("x" * rng.choice([63, 64, 65]))
        return self.literal(rng)


def numbers(choices, kinds):
    def generate(rng):
        value = rng.choice(choices)
        kind = rng.choice(kinds)
        if kind is float and abs(value) > 2 ** 53:
            kind = Int64
        if kind is int and not -2 ** 31 <= value < 2 ** 31:
            kind = Int64
        return Decimal128(str(value)) if kind is Decimal128 else kind(value)
    return generate


def generate_numeric(rng):
    text = rng.choice(NUMERICS)
    kind = rng.choice([Decimal128, Decimal128, float, int])
    if kind is float:
        return float(text)
    if kind is int:
        return rng.choice(INT4S)
    return Decimal128(text)


def date_values(rng):
    return date_from_millis(rng.choice(MILLIS))


JSON_SCALARS = [0, 1, 5, -1.5, 0.1, 1e300, Int64(2 ** 53 + 1), Decimal128("0.1"), "a", "b", "5", "true", "",
                "{", "a.b", "$x", "ä", True, False, None, ObjectId(OBJECTIDS[0]), float("nan"),
                datetime.datetime(2020, 1, 1, tzinfo=UTC)]
JSON_KEYS = ["a", "b", "c", "0", "1", "x y", "ä"]
JSON_LITERALS = ["0", "1", "5", "-1.5", "0.1", "1e300", "9007199254740993", '"a"', '"b"', '"5"', '""', "true",
                 "false", "null", "{}", "[]", '{"a": 1}', '{"a": {"b": 5}}', '["a"]', '[1, "b"]', '{"a": "a", "b": 0.1}',
                 '{"b": [5]}', '{"a": [{"b": 1}]}', '{"x y": "a"}', '{"a": null}', '[[1]]', '[{"a": 1}]']


def json_value(rng, depth=0):
    kind = rng.random()
    if depth >= 3 or kind < 0.45:
        return rng.choice(JSON_SCALARS)
    if kind < 0.75:
        return {key: json_value(rng, depth + 1) for key in rng.sample(JSON_KEYS, rng.randint(0, 4))}
    return [json_value(rng, depth + 1) for _ in range(rng.randint(0, 3))]


COLUMNS = [
    Column("i2", "smallint", numbers(INTEGERS, [int, Int64, float]), INTEGERS),
    Column("i4", "integer", numbers(INT4S, [int, Int64, float, Decimal128]), INT4S),
    Column("i8", "bigint", numbers(INT8S, [int, Int64, float, Decimal128]), INT8S),
    Column("f4", "real", lambda r: r.choice([0.5, 0.1, 1.0, float("nan"), 3.25]), ["0.5", "0.1", "1", "NaN"]),
    Column("f8", "double precision", lambda r: r.choice(FLOATS + [1, 5, Int64(100)]),
           ["0", "-0", "1", "0.1", "5", "1e300", "NaN", "Infinity", "-Infinity", "5e-324"]),
    Column("n", "numeric", generate_numeric, NUMERICS),
    Column("n2", "numeric(12,2)", lambda r: r.choice([0.1, 1, Decimal128("1.005"), 2.675, Decimal128("7.10")]),
           ["0.1", "1", "1.01", "1.00", "2.68", "7.1"]),
    Column("t", "text", lambda r: r.choice(TEXTS), TEXTS),
    Column("tc", 'text collate "C"', lambda r: r.choice(TEXTS + [ObjectId(o) for o in OBJECTIDS]),
           TEXTS + OBJECTIDS),
    Column("v", "varchar(30)", lambda r: r.choice(TEXTS), TEXTS),
    Column("c", "char(30)", lambda r: r.choice(TEXTS), TEXTS),
    Column("nm", "name", lambda r: r.choice(TEXTS + [ObjectId(o) for o in OBJECTIDS]), TEXTS + OBJECTIDS),
    Column("b", "boolean", lambda r: r.random() < 0.5, ["true", "false"], boolean=True),
    Column("ts", "timestamptz", date_values, lambda r: timestamp_literal(r, r.choice(MILLIS))),
    Column("tn", "timestamp", date_values, lambda r: timestamp_literal(r, r.choice(MILLIS))),
    Column("d", "date", date_values,
           lambda r: r.choice(["infinity", "-infinity"]) if r.random() < 0.08
           else date_from_millis(r.choice(MILLIS)).strftime("%Y-%m-%d").rjust(10, "0")),
    Column("u", "uuid", lambda r: Binary(uuid.UUID(r.choice(UUIDS)).bytes, r.choice([3, 4])), UUIDS),
    Column("by", "bytea", lambda r: Binary(r.choice([b"", b"a", b"\x00"]), r.choice([0, 0x80])), ["", "a"]),
    Column("sub.x", "integer", numbers(INT4S, [int]), INT4S, path="sub.x"),
    Column("j", "jsonb", json_value, JSON_LITERALS),
    Column("s y", "text", lambda r: r.choice(TEXTS), TEXTS, path="sub.deep.y"),
]

HOSTILE = [0, 1, 100000, 3.5, float("nan"), Int64(2 ** 40), Int64(9007199254740993), Decimal128("0.1"),
           Decimal128("1E+400"), Decimal128("3.00"), "a", "5", "true", True, False, [], [1], [5, None], ["a"], [[1]],
           [True], {}, {"x": 1}, {"x": [1]}, {"deep": [{"y": "a"}]}, {"deep": 5},
           ObjectId(OBJECTIDS[0]), Binary(b"abc", 0), Binary(b"a", 5),
           Regex("a"), Timestamp(5, 1), datetime.datetime(2020, 1, 1, tzinfo=UTC), "x" * 64,
           [{"y": "a"}], "nul\x00here", "1970-01-01"]


# What EXPLAIN (VERBOSE) shows when a thing is pushed.
MARKS = {"conditions": '"$', "sorts": '"sort"', "limits": '"limit"', "aggregates": "Aggregate on",
         "parameters": '(k.k'}


class Leaf:
    """A condition on one column, as SQL text and as (text with $1, type, value)."""

    def __init__(self, sql):
        self.sql = sql

    def render(self):
        return self.sql

    def parts(self):
        return []


class Node:
    def __init__(self, operator, children):
        self.operator = operator
        self.children = children

    def render(self):
        rendered = ["(%s)" % child.render() for child in self.children]
        if self.operator in ("AND", "OR"):
            return (" %s " % self.operator).join(rendered)
        if self.operator == "NOT":
            return "NOT " + rendered[0]
        return "%s %s" % (rendered[0], self.operator)

    def parts(self):
        """Simpler conditions to try when this one shows a difference."""
        simpler = list(self.children)
        for i, child in enumerate(self.children):
            for part in child.parts():
                simpler.append(Node(self.operator, self.children[:i] + [part] + self.children[i + 1:]))
            if len(self.children) > 2:
                simpler.append(Node(self.operator, self.children[:i] + self.children[i + 1:]))
        return simpler


def quote(name):
    return '"%s"' % name.replace('"', '""')


def json_accessor(rng, name):
    """An expression on a jsonb column, and whether it gives text."""
    to_text = rng.random() < 0.5
    keys = [rng.choice(JSON_KEYS[:5]) for _ in range(rng.randint(1, 3))]
    kind = rng.random()
    if kind < 0.3:
        return "(%s %s '{%s}')" % (name, "#>>" if to_text else "#>", ",".join(keys)), to_text
    if kind < 0.4:
        return "%s%s" % (name, "".join("['%s']" % key for key in keys)), False
    steps = ["%d" % rng.choice([0, 1, -1]) if rng.random() < 0.2 else "'%s'" % key for key in keys]
    expression = name
    for i, step in enumerate(steps):
        expression += " %s %s" % ("->>" if to_text and i == len(steps) - 1 else "->", step)
    return "(%s)" % expression, to_text


def json_leaf(rng, name):
    kind = rng.random()
    if kind < 0.15:
        return Leaf("%s @> '%s'" % (name, rng.choice(JSON_LITERALS)))
    if kind < 0.25:
        return Leaf("%s ? '%s'" % (name, rng.choice(JSON_KEYS + ["5"])))
    expression, to_text = json_accessor(rng, name)
    if kind < 0.35:
        return Leaf("%s IS %sNULL" % (expression, rng.choice(["", "NOT "])))
    if to_text:
        literals = ["'%s'" % rng.choice(["a", "b", "5", "true", "", "{", "0.1", "ä", '{"b": 5}', "[]"])
                    for _ in range(3)]
        if kind < 0.6:
            return Leaf("%s %sIN (%s)" % (expression, rng.choice(["", "NOT "]), ", ".join(literals)))
        return Leaf("%s %s %s" % (expression, rng.choice(["=", "<>"]), literals[0]))
    if kind < 0.6:
        return Leaf("%s %s '%s'" % (expression, rng.choice(["@>", "<@"]), rng.choice(JSON_LITERALS)))
    return Leaf("%s %s '%s'" % (expression, rng.choice(["=", "<>", "="]), rng.choice(JSON_LITERALS)))


def array_literal(rng, column):
    items = [column.literal(rng) for _ in range(rng.choice([0, 1, 2, 3, 5]))]
    if rng.random() < 0.2:
        items.append("NULL")
    return "ARRAY[%s]::%s[]" % (", ".join(items), column.sql_type.split(" collate")[0])


def random_leaf(rng, columns):
    column = rng.choice(columns)
    name = quote(column.name)
    kind = rng.random()
    if column.sql_type == "jsonb" and kind < 0.9:
        return json_leaf(rng, name)
    operators = ["=", "<>", "<", "<=", ">", ">="]
    if column.boolean and kind < 0.4:
        return Leaf(name)
    if column.sql_type.startswith(("text", "varchar", "name", "char")) and kind < 0.25:
        pattern = "".join(rng.choice(["%", "_", "a", "b", "A", "\\%", "\\_", "\\a", ".", "$", "ä", " ", "6", "f", "z", "0", "\n"])
                          for _ in range(rng.randint(0, 4))) + rng.choice(["", "%"])
        if rng.random() < 0.2:
            return Leaf("%s ^@ '%s'" % (name, pattern.replace("\\", "")))
        return Leaf("%s %sLIKE '%s'" % (name, rng.choice(["", "NOT "]), pattern))
    if kind < 0.55:
        literal = column.wider_literal(rng)
        if rng.random() < 0.05:
            literal = "NULL::" + column.sql_type.split(" collate")[0]
        elif rng.random() < 0.2:
            # not a constant for the planner: a parameter of the command
            literal = "(SELECT %s)" % literal
        operator = rng.choice(operators)
        if rng.random() < 0.2:
            return Leaf("%s %s %s" % (literal, operator, name))
        return Leaf("%s %s %s" % (name, operator, literal))
    if kind < 0.65:
        return Leaf("%s IS %sNULL" % (name, rng.choice(["", "NOT "])))
    if kind < 0.75:
        return Leaf("%s BETWEEN %s AND %s" % (name, column.wider_literal(rng), column.wider_literal(rng)))
    if kind < 0.85:
        items = [column.wider_literal(rng) for _ in range(rng.randint(1, 4))]
        if rng.random() < 0.2:
            items.append("NULL")
        return Leaf("%s %sIN (%s)" % (name, rng.choice(["", "NOT "]), ", ".join(items)))
    array = array_literal(rng, column)
    if rng.random() < 0.3:
        array = "(SELECT %s)::%s[]" % (array, column.sql_type.split(" collate")[0])
    return Leaf("%s %s (%s)" % (name, rng.choice(["= ANY", "<> ALL", "<> ANY", "= ALL", "> ANY"]), array))


def random_condition(rng, columns, depth=0):
    if depth >= 3 or rng.random() < 0.4:
        return random_leaf(rng, columns)
    kind = rng.random()
    if kind < 0.75:
        return Node(rng.choice(["AND", "OR"]),
                    [random_condition(rng, columns, depth + 1) for _ in range(rng.randint(2, 3))])
    if kind < 0.9:
        return Node("NOT", [random_condition(rng, columns, depth + 1)])
    return Node(rng.choice(["IS TRUE", "IS FALSE", "IS NOT TRUE", "IS NOT FALSE", "IS UNKNOWN"]),
                [random_condition(rng, columns, depth + 1)])


def put(document, path, value):
    head, _, rest = path.partition(".")
    if not rest:
        document[head] = value
        return
    child = document.setdefault(head, {})
    if isinstance(child, dict):
        put(child, rest, value)


def random_document(rng, number, columns, hostile):
    document = {"_id": number}
    for column in rng.sample(columns, len(columns)):
        kind = rng.random()
        if kind < 0.12:
            continue
        if kind < 0.2:
            value = None
        elif hostile and kind < 0.5:
            value = rng.choice(HOSTILE)
        else:
            value = column.values(rng)
        put(document, column.path, value)
    if hostile and rng.random() < 0.2:
        document["sub"] = rng.choice(HOSTILE)
    return document


class Differential:
    def __init__(self, options):
        self.options = options
        self.rng = random.Random(options.seed)
        self.connection = psycopg2.connect(options.dsn)
        self.connection.autocommit = True
        self.cursor = self.connection.cursor()
        self.client = MongoClient(options.mongo)
        self.columns = COLUMNS

    def execute(self, sql):
        self.cursor.execute(sql)
        return self.cursor.fetchall() if self.cursor.description else None

    def set_up(self):
        host, port = self.client.address
        name = "differential_%d" % self.options.seed
        database = self.client["differential"]
        database.drop_collection(name)
        # a collation that must not matter
        collection = database.create_collection(name, collation={"locale": "en", "strength": 1})
        hostile = self.options.documents == "hostile"
        collection.insert_many([random_document(self.rng, i, self.columns, hostile)
                                for i in range(self.options.size)])
        for column in self.rng.sample(self.columns, 4):
            try:
                collection.create_index(column.path, collation={"locale": "simple"})
            except Exception:
                pass                # parallel arrays and the like: no index then
        self.execute("DROP SCHEMA IF EXISTS differential CASCADE; CREATE SCHEMA differential;"
                     "SET search_path = differential, public; SET timezone = 'Europe/Berlin';"
                     "CREATE EXTENSION IF NOT EXISTS mongo_fdw SCHEMA public;"
                     "DROP SERVER IF EXISTS differential_server CASCADE;"
                     "CREATE SERVER differential_server FOREIGN DATA WRAPPER mongo_fdw"
                     " OPTIONS (address '%s', port '%d');"
                     "CREATE USER MAPPING FOR PUBLIC SERVER differential_server;" % (host, port))
        definitions = ", ".join(
            "%s %s OPTIONS (path '%s') %s" % (
                quote(c.name), c.sql_type.split(" collate")[0], c.path,
                'COLLATE "C"' if "collate" in c.sql_type else "") for c in self.columns)
        self.execute("CREATE FOREIGN TABLE remote (_id integer, %s) SERVER differential_server"
                     " OPTIONS (database 'differential', collection '%s', type_mismatch '%s')"
                     % (definitions, name, self.options.type_mismatch))
        # make work here expensive, so that what can be pushed is
        self.execute("SET cpu_tuple_cost = 10; SET cpu_operator_cost = 10;"
                     "SET enable_hashjoin = off; SET enable_mergejoin = off")
        self.execute("SET mongo_fdw.enable_pushdown = off")
        self.execute("CREATE TABLE local AS SELECT * FROM remote")
        self.execute("SET mongo_fdw.enable_pushdown = on")

    def answers(self, sql):
        """The answers of the three, each a sorted list of rows or an error."""
        results = []
        for pushdown, table in (("on", "remote"), ("off", "remote"), ("on", "local")):
            self.execute("SET mongo_fdw.enable_pushdown = " + pushdown)
            try:
                results.append(sorted(self.execute(sql.replace("{table}", table)), key=repr))
            except psycopg2.OperationalError:
                raise               # the server went away: never a mere difference
            except psycopg2.Error as error:
                if table == "local":
                    raise           # the query itself is wrong: a fault of this test
                results.append("%s: %s" % (error.pgcode, error.diag.message_primary))
        return results

    def differs(self, condition, template):
        results = self.answers(template.replace("{condition}", condition.render()))
        return None if results[0] == results[1] == results[2] else results

    def reduce(self, condition, template):
        for part in condition.parts():
            if self.differs(part, template):
                return self.reduce(part, template)
        return condition

    def report(self, number, condition, template):
        condition = self.reduce(condition, template)
        sql = template.replace("{condition}", condition.render())
        results = self.differs(condition, template)
        print("DIFFERENCE in query %d of seed %d:" % (number, self.options.seed))
        print("  " + sql)
        for label, rows in zip(("pushdown", "no pushdown", "local table"), results):
            print("  %s: %s" % (label, rows if isinstance(rows, str) else "%d rows" % len(rows)))
        if isinstance(results[0], list) and isinstance(results[2], list):
            print("  only with pushdown: %s" % [r for r in results[0] if r not in results[2]][:3])
            print("  only local: %s" % [r for r in results[2] if r not in results[0]][:3])
        self.execute("SET mongo_fdw.enable_pushdown = on")
        for row in self.execute("EXPLAIN (VERBOSE, COSTS OFF) " + sql.replace("{table}", "remote")):
            print("    " + row[0])

    def random_bounds(self):
        return "LIMIT %d OFFSET %d" % (self.rng.choice([0, 1, 5, 50]), self.rng.choice([0, 0, 1, 10]))

    def random_template(self):
        """A query around {condition}, whose answer is the same set of rows whoever computes it."""
        rng = self.rng
        kind = rng.random()
        if kind < 0.6:
            outputs = ["_id"] + [quote(c.name) + "::text" for c in rng.sample(self.columns, rng.randint(0, 4))]
            return "SELECT %s FROM {table} WHERE {condition}" % ", ".join(outputs)
        if kind < 0.7:
            # which rows a LIMIT returns is free, how many is not
            return "SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {condition} %s) s" % self.random_bounds()
        if kind < 0.85:
            keys = [quote(c.name) + rng.choice(["", " DESC", " NULLS FIRST", " DESC NULLS LAST", " DESC NULLS FIRST"])
                    for c in rng.sample([c for c in self.columns if c.sql_type != "jsonb"], rng.randint(0, 2))]
            order = ", ".join(keys + [rng.choice(["_id", "_id DESC"])])
            return ("SELECT row_number() OVER (), _id FROM (SELECT _id FROM {table} WHERE {condition} ORDER BY %s %s) s"
                    % (order, rng.choice(["", self.random_bounds()])))
        if kind < 0.93:
            column = quote(rng.choice([c for c in self.columns
                                       if c.sql_type not in ("jsonb", "boolean", "uuid", "bytea", "name")]).name)
            other = quote(rng.choice(self.columns).name)
            return ("SELECT count(*) + 1, count(%s), min(%s)::text, max(%s)::text FROM {table} WHERE {condition}"
                    % (other, column, column))
        return ("SELECT k, _id FROM generate_series(-2, 60, 3) k JOIN {table} ON %s WHERE {condition}"
                % rng.choice(["_id = k", "_id = k AND i4 > k", "i4 = k", "k < _id AND _id <= 20", "f8 = k"]))

    def run(self):
        differences = 0
        pushed = dict.fromkeys(MARKS, 0)
        for number in range(self.options.queries):
            if number % 500 == 0:
                self.set_up()
            condition = random_condition(self.rng, self.columns)
            template = self.random_template()
            if self.differs(condition, template):
                differences += 1
                self.report(number, condition, template)
                if differences >= 10:
                    break
            self.execute("SET mongo_fdw.enable_pushdown = on")
            plan = self.execute("EXPLAIN (VERBOSE, COSTS OFF) " +
                                template.replace("{table}", "remote").replace("{condition}", condition.render()))
            text = "\n".join(row[0] for row in plan)
            for what, mark in MARKS.items():
                pushed[what] += mark in text
        print("seed %d: %d queries (%s, type_mismatch %s), pushed: %s; %d differences"
              % (self.options.seed, self.options.queries, self.options.documents, self.options.type_mismatch,
                 ", ".join("%d %s" % (count, what) for what, count in pushed.items()), differences))
        if pushed["conditions"] < self.options.queries // 4:
            print("too few queries were pushed for this to be a test")
            return False
        return differences == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dsn", default="")
    parser.add_argument("--mongo", default="mongodb://%s:%s" % (
        os.environ.get("MONGO_HOST", "127.0.0.1"), os.environ.get("MONGO_PORT", "27017")))
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--size", type=int, default=200, help="documents in the collection")
    parser.add_argument("--documents", choices=["clean", "hostile"], default="clean")
    parser.add_argument("--type-mismatch", choices=["error", "null"], default="error")
    options = parser.parse_args()
    print("seed %d" % options.seed)
    sys.exit(0 if Differential(options).run() else 1)


if __name__ == "__main__":
    main()
