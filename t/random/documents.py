"""Random documents for t/random/queries.py, and the columns that read them."""
import datetime
import uuid

from bson import Binary, Decimal128, Int64, ObjectId, Regex, Timestamp

import dates
import elements

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
         "f", "ff", "g", "Kim", "\u212aIM", "\u0130x", "\u0131X", "I", "\u017fa", "Stra\u00dfe", "\u03a3\u03a3", "\u03c3\u03c2"]
OBJECTIDS = ["65a000000000000000000001", "65a000000000000000000002",
             "000000000000000000000000", "ffffffffffffffffffffffff"]
UUIDS = ["00000000-0000-0000-0000-000000000000", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
         "ffffffff-ffff-ffff-ffff-ffffffffffff"]
# values that timestamp(1) rounds to the same, and values just outside
ROUNDED_MILLIS = [1700000000000 + millis for millis in (0, 1, 49, 50, 51, 99, 100, 149, 150, -1, -50, -51)]
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
    """A column: its field, SQL type, stored values and literals to compare with; 'bson_type'
    is its option bson_type."""

    def __init__(self, name, sql_type, values, literals, path=None, boolean=False, bson_type=None):
        self.name = name
        self.sql_type = sql_type
        self.values = values
        self.literals = literals
        self.path = path or name
        self.boolean = boolean
        self.bson_type = bson_type

    def definition(self, more=""):
        """Returns the column for CREATE FOREIGN TABLE, with 'more' options."""
        return "%s %s OPTIONS (path '%s'%s%s) %s" % (
            quote(self.name), self.sql_type.split(" collate")[0], self.path,
            ", bson_type '%s'" % self.bson_type if self.bson_type else "", more,
            'COLLATE "C"' if "collate" in self.sql_type else "")

    def literal(self, rng):
        value = self.literals(rng) if callable(self.literals) else rng.choice(self.literals)
        return "'%s'::%s" % (str(value).replace("'", "''"), self.sql_type.split(" collate")[0])

    def wider_literal(self, rng):
        """Returns a literal, perhaps of another type of the column's family."""
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
    Column("t1", "timestamptz(1)", lambda r: date_from_millis(r.choice(ROUNDED_MILLIS)),
           lambda r: timestamp_literal(r, r.choice(ROUNDED_MILLIS))),
    Column("d", "date", date_values,
           lambda r: r.choice(["infinity", "-infinity"]) if r.random() < 0.08
           else date_from_millis(r.choice(MILLIS)).strftime("%Y-%m-%d").rjust(10, "0")),
    Column("ck", "timestamptz", dates.stored, lambda r: r.choice(dates.BEGINNINGS)),
    Column("cn", "timestamp", dates.stored, lambda r: r.choice(dates.BEGINNINGS)),
    Column("cd", "date", dates.stored, lambda r: r.choice(dates.BEGINNINGS)),
    Column("c0", "timestamptz(0)", dates.stored, lambda r: r.choice(dates.BEGINNINGS)),
    Column("u", "uuid", lambda r: Binary(uuid.UUID(r.choice(UUIDS)).bytes, r.choice([3, 4])), UUIDS),
    Column("by", "bytea", lambda r: Binary(r.choice([b"", b"a", b"\x00"]), r.choice([0, 0x80])), ["", "a"]),
    Column("sub.x", "integer", numbers(INT4S, [int]), INT4S, path="sub.x"),
    Column("j", "jsonb", json_value, JSON_LITERALS),
    Column("s y", "text", lambda r: r.choice(TEXTS), TEXTS, path="sub.deep.y"),
    Column("ox", 'text collate "C"', lambda r: ObjectId(r.choice(OBJECTIDS)), OBJECTIDS + TEXTS, bson_type="objectId"),
    Column("oy", "name", lambda r: ObjectId(r.choice(OBJECTIDS)), OBJECTIDS + TEXTS, bson_type="objectId"),
    Column("sx", 'text collate "C"', lambda r: r.choice(TEXTS + OBJECTIDS), TEXTS + OBJECTIDS, bson_type="string"),
    Column("il", "integer", numbers(INT4S, [Int64]), INT4S, bson_type="long"),
    Column("fd", "double precision", lambda r: r.choice(FLOATS), ["0", "-0", "0.1", "5", "NaN"], bson_type="double"),
    Column("nd", "numeric", lambda r: Decimal128(r.choice(NUMERICS)), NUMERICS, bson_type="decimal"),
]

# Columns of t/random/elements.py; conditions on other columns do not use them.
ELEMENT_COLUMNS = [Column(name, sql_type + "[]", elements.array_values(name), [])
                 for name, (sql_type, _, _) in elements.ARRAYS.items()]
ELEMENT_COLUMNS.append(Column("jd", "jsonb", elements.json_document, []))
ELEMENT_COLUMNS.append(Column("js", "json", elements.json_list, []))
# of t/random/equivalents.py
ELEMENT_COLUMNS.append(Column("o", "public.objectid", lambda r: ObjectId(r.choice(OBJECTIDS)), []))

HOSTILE = [0, 1, 100000, 3.5, float("nan"), Int64(2 ** 40), Int64(9007199254740993), Decimal128("0.1"),
           Decimal128("1E+400"), Decimal128("3.00"), "a", "5", "true", True, False, [], [1], [5, None], ["a"], [[1]],
           [True], [[1, 2], [3]], ["a", ["a"]], [[[["a"]]]], {}, {"x": 1}, {"x": [1]}, {"deep": [{"y": "a"}]}, {"deep": 5},
           ObjectId(OBJECTIDS[0]), Binary(b"abc", 0), Binary(b"a", 5),
           Regex("a"), Timestamp(5, 1), datetime.datetime(2020, 1, 1, tzinfo=UTC), "x" * 64,
           [{"y": "a"}], "nul\x00here", "1970-01-01", OBJECTIDS[0], [ObjectId(OBJECTIDS[0])]]


def quote(name):
    return '"%s"' % name.replace('"', '""')


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
