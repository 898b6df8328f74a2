#!/usr/bin/env python3
"""Documents through SQL and back, compared byte by byte.

Written by pymongo, SELECTed and INSERTed here, read by pymongo: what comes out
is what went in, or exactly what docs/types.md says becomes of it.  The rules of
that page are written down a second time below, in expected_json() and
expected_column(); where they say that something changes, they name the reason.

Prints a line an assertion, "ok - NAME" or "not ok - NAME", and diagnostics; run
by t/write/round_trip.py.
"""
import argparse
import collections
import math
import random
import struct
import sys
from decimal import Context, Decimal, localcontext

import psycopg2
import pymongo
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument

import bson_values as b
from bson_values import VALUES

INT32_RANGE = range(-2 ** 31, 2 ** 31)
INT64_RANGE = range(-2 ** 63, 2 ** 63)
INT16_RANGE = range(-2 ** 15, 2 ** 15)
DECIMAL_DIGITS, DECIMAL_LEAST_EXPONENT, DECIMAL_GREATEST_EXPONENT = 34, -6176, 6111
QUIET_NAN = b.double_bits(0x7ff8000000000000)
DECIMAL_NAN = b.decimal("NaN")

failures = 0


def check(condition, name, *details):
    global failures
    print(("ok" if condition else "not ok") + " - " + name, flush=True)
    if not condition:
        failures += 1
        for detail in details:
            print("#   " + str(detail)[:600].replace("\n", "\n#   "), flush=True)
    return condition


class Refused(Exception):
    """Cannot be read: the SQLSTATE."""


class Reasons(collections.Counter):
    """Why values changed, to be compared with what is documented."""

    def change(self, reason, value):
        self[reason] += 1
        return value


# ---------------------------------------------------------------------------
# What docs/types.md says: json, jsonb and __doc
# ---------------------------------------------------------------------------

# Keys that make an object a wrapper, and what it takes to read one.
WRAPPERS = {b"$oid", b"$date", b"$numberInt", b"$numberLong", b"$numberDouble", b"$numberDecimal", b"$binary", b"$uuid",
            b"$regularExpression", b"$timestamp", b"$code", b"$symbol", b"$minKey", b"$maxKey", b"$undefined",
            b"$dbPointer"}


def is_nan(value):
    number = struct.unpack("<d", value[1])[0]
    return number != number


def canonical_decimal(value, reasons):
    high = struct.unpack("<Q", value[1][8:])[0]
    if (high >> 58) & 0x1f == 0x1f:
        if value != DECIMAL_NAN:
            return reasons.change("there is one NaN only", DECIMAL_NAN)
        return value
    coefficient = (high & 0x1ffffffffffff) << 64 | struct.unpack("<Q", value[1][:8])[0]
    if (high >> 58) & 0x1f != 0x1e and ((high >> 61) & 3 == 3 or coefficient >= 10 ** DECIMAL_DIGITS):
        exponent = ((high >> (47 if (high >> 61) & 3 == 3 else 49)) & 0x3fff) - 6176
        return reasons.change("a Decimal128 that is not canonical is zero",
                              b.decimal(f"{'-' if high >> 63 else ''}0E{exponent:+d}"))
    return value


def expected_json(value, form, canonical, reasons):
    """What a value becomes by way of 'json' or 'jsonb'; raises Refused."""
    kind, payload = value

    def descend(inner):
        return expected_json(inner, form, canonical, reasons)

    if kind in (b.STRING, b.SYMBOL, b.CODE) and b"\0" in b.text_of(value):
        raise Refused("22021")
    if kind == b.INT64 and not canonical and b.number_of(value) in INT32_RANGE:
        return reasons.change("relaxed: a small Int64 is an Int32", b.int32(b.number_of(value)))
    if kind == b.DOUBLE:
        if is_nan(value) and value != QUIET_NAN:
            return reasons.change("there is one NaN only", QUIET_NAN)
        if form == "jsonb" and not canonical and value == b.double(-0.0):
            return reasons.change("jsonb: no negative zero", b.double(0.0))
    if kind == b.REGEX:
        pattern, options = payload[:-1].split(b"\0")
        if bytes(sorted(options)) != options:
            return reasons.change("a Regex's options are sorted", b.regex(pattern, bytes(sorted(options))))
    if kind == b.DECIMAL128:
        return canonical_decimal(value, reasons)
    if kind == b.CODE_WITH_SCOPE:
        length = struct.unpack_from("<i", payload, 4)[0]
        scope = payload[8 + length:]
        return b.code_with_scope(payload[8:7 + length], descend((b.DOCUMENT, scope)))
    if kind == b.ARRAY:
        keys = [key for key, _ in b.elements(payload)]
        if keys != [str(i).encode() for i in range(len(keys))]:
            reasons["an array's keys are its positions"] += 1
        return b.array(*(descend(inner) for _, inner in b.elements(payload)))
    if kind == b.DOCUMENT:
        first = {}
        for key, inner in b.elements(payload):
            if key in first:
                reasons["of repeated keys the first is read"] += 1
            else:
                first[key] = descend(inner)
        members = list(first.items())
        if form == "jsonb":
            ordered = sorted(members, key=lambda member: (len(member[0]), member[0]))
            if ordered != members:
                reasons["jsonb: keys are sorted"] += 1
            members = ordered
        return b.doc(*members)
    return value


def expected_document(data, form, canonical, reasons):
    """A whole document; MongoDB and we put _id first."""
    members = b.elements(expected_json((b.DOCUMENT, data), form, canonical, reasons)[1])
    return b.document([m for m in members if m[0] == b"_id"] + [m for m in members if m[0] != b"_id"])


# ---------------------------------------------------------------------------
# What docs/types.md says: the columns
# ---------------------------------------------------------------------------

def digits_of(number):
    """(sign, coefficient, exponent) of a finite Decimal."""
    parts = number.as_tuple()
    return parts.sign, int("".join(map(str, parts.digits))), parts.exponent


def decimal_of_numeric(number):
    """The Decimal128 that a numeric with this value and scale is written as."""
    if number.is_nan():
        return DECIMAL_NAN
    if number.is_infinite():
        return b.decimal(number)
    sign, coefficient, exponent = digits_of(number)
    scale = max(-exponent, 0)
    if coefficient == 0:
        return b.decimal(f"0E{-scale:+d}")
    while coefficient % 10 == 0:
        coefficient, exponent = coefficient // 10, exponent + 1
    # as many zeros as the scale asks for and 34 digits allow
    zeros = min(DECIMAL_DIGITS - len(str(coefficient)), exponent + scale, exponent - DECIMAL_LEAST_EXPONENT)
    return b.decimal(f"{'-' if sign else ''}{coefficient * 10 ** zeros}E{exponent - zeros:+d}")


def exact(value):
    """A number as a Decimal with all its digits; None for other types."""
    number = b.number_of(value)
    if value[0] == b.DECIMAL128:
        return b.number_of((b.DECIMAL128, canonical_decimal(value, Reasons())[1]))
    return Decimal(number) if value[0] in (b.DOUBLE, b.INT32, b.INT64) else None


def read_integer(value, numbers):
    number = exact(value)
    if number is None:
        raise Refused("22P02")
    if not number.is_finite():
        raise Refused("22003")
    with localcontext(Context(prec=20000, Emax=999999, Emin=-999999)):
        if abs(number) >= 10 ** 20 or number != number.to_integral_value() or int(number) not in numbers:
            raise Refused("22003")
    return int(number)


def read_double(value):
    number = exact(value)
    if number is None:
        raise Refused("22P02")
    if value[0] == b.DOUBLE:
        return value
    if number.is_nan():
        return QUIET_NAN
    try:
        nearest = float(number)
    except OverflowError:
        raise Refused("22003")
    if number.is_finite() and (math.isinf(nearest) or Decimal(nearest) != number):
        raise Refused("22003")
    return b.double(nearest)


def read_real(value):
    number = exact(value)
    if number is None:
        raise Refused("22P02")
    if number.is_nan():
        return None                             # which NaN is the processor's business
    nearest = float(number)
    try:
        single = struct.unpack("<f", struct.pack("<f", nearest))[0]
    except OverflowError:
        raise Refused("22003")
    if number.is_finite() and math.isinf(single):
        raise Refused("22003")
    return b.double(single)


def read_numeric(value):
    if value[0] == b.DOUBLE:
        number = b.number_of(value)
        return decimal_of_numeric(Decimal(f"{number:.15g}"))
    number = exact(value)
    if number is None:
        raise Refused("22P02")
    return decimal_of_numeric(number)


def read_text(value, longest=None):
    if value[0] not in (b.STRING, b.SYMBOL, b.OID):
        raise Refused("22P02")
    text = value[1].hex().encode() if value[0] == b.OID else b.text_of(value)
    if b"\0" in text:
        raise Refused("22021")
    if longest is not None and len(text) > longest:
        raise Refused("22001")
    return text


def read_binary(value):
    if value[0] == b.OID:
        return value[1]
    if value[0] != b.BINARY:
        raise Refused("22P02")
    return value[1][9:] if value[1][4] == 2 else value[1][5:]


def read_date(value, whole_days=False):
    if value[0] != b.DATE:
        raise Refused("22P02")
    ms = b.number_of(value)
    if not -210866803200000 <= ms < (185331707078400000 if whole_days else 9224318016000000):
        raise Refused("22008")
    return b.date(ms // 86400000 * 86400000) if whole_days else value


def read_uuid(value):
    if value[0] != b.BINARY or value[1][4] not in (3, 4) or len(value[1]) != 21:
        raise Refused("22P02")
    return b.binary(value[1][5:], 4)


def read_only(kind):
    def read(value):
        if value[0] != kind:
            raise Refused("22P02")
        return value
    return read


def read_name(value):
    text = read_text(value, 63)
    lower = len(text) == 24 and all(c in b"0123456789abcdef" for c in text)
    return (b.OID, bytes.fromhex(text.decode())) if lower else b.string(text)


def read_array(read_element, longest_dimension=6):
    def shape(value):
        if value[0] != b.ARRAY:
            return ()
        inner = [shape(element) for _, element in b.elements(value[1])]
        return (len(inner), *inner[0]) if inner else (0,)

    def read(value, lengths=None):
        if value[0] != b.ARRAY:
            raise Refused("22P02" if lengths is None else "2202E")
        members = [element for _, element in b.elements(value[1])]
        if lengths is None:
            lengths = shape(value)
            if lengths == (0,):
                return b.array()
            if 0 in lengths or len(lengths) > longest_dimension:
                raise Refused("2202E")
        if len(members) != lengths[0]:
            raise Refused("2202E")
        if len(lengths) > 1:
            return b.array(*(read(element, lengths[1:]) for element in members))
        read_members = []
        for element in members:
            if element[0] == b.ARRAY:
                raise Refused("2202E")
            read_members.append(b.null if element[0] in (b.NULL, b.UNDEFINED) else read_element(element))
        return b.array(*read_members)
    return read


def read_json(form, canonical=False):
    return lambda value: expected_json(value, form, canonical, Reasons())


COLUMNS = {
    "boolean": read_only(b.BOOLEAN),
    "smallint": lambda v: b.int32(read_integer(v, INT16_RANGE)),
    "integer": lambda v: b.int32(read_integer(v, INT32_RANGE)),
    "bigint": lambda v: b.int64(read_integer(v, INT64_RANGE)),
    "real": read_real,
    "double precision": read_double,
    "numeric": read_numeric,
    "text": lambda v: b.string(read_text(v)),
    "varchar": lambda v: b.string(read_text(v)),
    "name": read_name,
    "bytea": lambda v: b.binary(read_binary(v), 0),
    "uuid": read_uuid,
    "objectid": read_only(b.OID),
    "timestamptz": read_date,
    "timestamp": read_date,
    "date": lambda v: read_date(v, True),
    "json": read_json("json"),
    "jsonb": read_json("jsonb"),
    "integer[]": read_array(lambda v: b.int32(read_integer(v, INT32_RANGE))),
    "numeric[]": read_array(read_numeric),
    "text[]": read_array(lambda v: b.string(read_text(v))),
    "anything": lambda v: b.int32(read_integer(v, INT32_RANGE)),    # a domain over integer
}


def expected_column(read, value):
    """(value or None when NULL, SQLSTATE or None)"""
    if value[0] in (b.NULL, b.UNDEFINED):
        return None, None
    try:
        return read(value), None
    except Refused as refused:
        return None, str(refused)


# ---------------------------------------------------------------------------
# The servers
# ---------------------------------------------------------------------------

class Laboratory:
    def __init__(self, dsn, uri):
        self.connection = psycopg2.connect(dsn)
        self.connection.autocommit = True
        self.cursor = self.connection.cursor()
        self.client = pymongo.MongoClient(uri)
        self.port = self.client.address[1]
        self.database = self.client.get_database("db", codec_options=CodecOptions(document_class=RawBSONDocument))

    def sql(self, text, *parameters):
        self.cursor.execute(text, parameters or None)
        return self.cursor.fetchall() if self.cursor.description else None

    def error(self, text, *parameters):
        """The error of a statement that has to fail, or None."""
        try:
            self.cursor.execute(text, parameters or None)
        except psycopg2.Error as error:
            return error
        return None

    def fill(self, collection, documents):
        """Store documents; the bytes that MongoDB keeps have to be ours."""
        self.database[collection].drop()
        if documents:
            self.database[collection].insert_many([RawBSONDocument(data) for data in documents])
        return self.documents(collection)

    def documents(self, collection):
        found = [bytes(document.raw) for document in self.database[collection].find()]
        return {element_bytes(data, b"_id"): data for data in found}

    def table(self, name, columns, collection=None, **options):
        options = {"database": "db", "collection": collection or name, **options}
        self.sql(f"CREATE FOREIGN TABLE {name} ({columns}) SERVER mongodb OPTIONS ("
                 + ", ".join(f"{key} '{value}'" for key, value in options.items()) + ")")


def element_bytes(data, key):
    for name, (kind, payload) in b.elements(data):
        if name == key:
            return bytes([kind]) + payload
    return None


def show(data):
    """A document for a diagnostic."""
    if data is None:
        return "no document"
    return str(b.elements(data))[:400]


def id_of(number):
    return bytes([b.INT32]) + struct.pack("<i", number)


def compare(laboratory, collection, expected, name, names):
    """Are these {_id number: bytes} the collection's documents?"""
    found = laboratory.documents(collection)
    wrong = [number for number, data in expected.items() if found.get(id_of(number)) != data]
    details = [f"{names[number]}:\nexpected {show(expected[number])}\nfound    {show(found.get(id_of(number)))}"
               for number in wrong[:5]]
    if len(found) != len(expected):
        details.append(f"{len(found)} documents, expected {len(expected)}")
    check(not details, f"{name}: {len(expected)} documents", *details)


# ---------------------------------------------------------------------------
# Every value by every way
# ---------------------------------------------------------------------------

# Reasons for which a document by way of __doc may not be the same to the byte.
DOCUMENTED_CHANGES = {
    ("json", True): {"there is one NaN only", "a Decimal128 that is not canonical is zero",
                     "an array's keys are its positions", "a Regex's options are sorted",
                     "of repeated keys the first is read"},
}
DOCUMENTED_CHANGES[("text", True)] = DOCUMENTED_CHANGES[("json", True)]
DOCUMENTED_CHANGES[("jsonb", True)] = DOCUMENTED_CHANGES[("json", True)] | {"jsonb: keys are sorted"}
for _form in ("json", "text", "jsonb"):
    DOCUMENTED_CHANGES[(_form, False)] = DOCUMENTED_CHANGES[(_form, True)] | {"relaxed: a small Int64 is an Int32"}
DOCUMENTED_CHANGES[("jsonb", False)] |= {"jsonb: no negative zero"}


def test_whole_documents(laboratory):
    names = [name for name, _ in VALUES]
    sources = [b.document([("_id", b.int32(i)), ("z", b.boolean(1)), ("v", value), ("d", b.doc(("v", value))),
                           ("a", b.array(value))]) for i, (_, value) in enumerate(VALUES)]
    # at the top MongoDB replaces this one by the time
    names.append("Timestamp 0")
    sources.append(b.document([("_id", b.int32(len(sources))), ("d", b.doc(("v", b.timestamp(0, 0))))]))
    stored = laboratory.fill("whole", sources)
    check(list(stored.values()) == sources, "MongoDB stores the documents as they are")

    for form in ("json", "jsonb", "text"):
        for canonical in (True, False):
            route = f"__doc {form}, {'canonical' if canonical else 'relaxed'}"
            table = f"whole_{form}_{'canonical' if canonical else 'relaxed'}"
            laboratory.table(f"{table}_in", f"_id int, __doc {form}", "whole", canonical_json=canonical)
            laboratory.table(f"{table}_out", f"__doc {form}", f"{table}_out", canonical_json=canonical)

            expected, refused, reasons = {}, [], Reasons()
            for number, data in enumerate(sources):
                try:
                    expected[number] = expected_document(data, "jsonb" if form == "jsonb" else "json", canonical, reasons)
                except Refused:
                    refused.append(number)

            check(set(reasons) <= DOCUMENTED_CHANGES[(form, canonical)], f"{route}: reasons for a change", dict(reasons))
            for number in refused:
                error = laboratory.error(f"SELECT __doc FROM {table}_in WHERE _id = {number}")
                check(error is not None and error.pgcode == "22021", f"{route}: {names[number]} is refused", error)

            wanted = f"SELECT __doc FROM {table}_in WHERE _id <> ALL ('{{{','.join(map(str, refused))}}}')"
            laboratory.sql(f"INSERT INTO {table}_out {wanted}")
            compare(laboratory, f"{table}_out", expected, f"{route}, INSERT SELECT", names)

            texts = [row[0] for row in laboratory.sql(wanted.replace("__doc", "__doc::text", 1))]
            laboratory.database[f"{table}_out"].drop()
            laboratory.sql(f"PREPARE insert_{table} ({form}) AS INSERT INTO {table}_out VALUES ($1)")
            for text in texts:
                laboratory.sql(f"EXECUTE insert_{table} (%s)", text)
            compare(laboratory, f"{table}_out", expected, f"{route}, parameters", names)


def test_columns(laboratory):
    names = [name for name, _ in VALUES]
    sources = [b.document([("_id", b.int32(i)), ("v", value)]) for i, (_, value) in enumerate(VALUES)]
    laboratory.fill("plain", sources)
    laboratory.sql("""
        CREATE DOMAIN anything AS integer;
        CREATE FUNCTION try_read(query text, id int) RETURNS text LANGUAGE plpgsql AS $$
        DECLARE
            result text;
        BEGIN
            EXECUTE query INTO result USING id;
            RETURN NULL;
        EXCEPTION WHEN OTHERS THEN
            RETURN sqlstate;
        END $$""")

    for position, (column, read) in enumerate(COLUMNS.items()):
        table = f"column_{position}"
        laboratory.table(f"{table}_in", f"_id int, v {column}", "plain")
        laboratory.table(f"{table}_null", f"_id int, v {column}", "plain", type_mismatch="null")
        laboratory.table(f"{table}_out", f"_id int, v {column}")

        expected, refused = {}, {}
        for number, (_, value) in enumerate(VALUES):
            result, code = expected_column(read, value)
            if code is not None:
                refused[number] = code
            elif column == "real" and result is None and exact(value) is not None:
                continue                        # a NaN
            else:
                expected[number] = b.document([("_id", b.int32(number))] + ([("v", result)] if result else []))

        codes = dict(laboratory.sql(
            f"SELECT i, try_read('SELECT v FROM {table}_in WHERE _id = $1', i) FROM generate_series(0, {len(VALUES) - 1}) i"))
        wrong = [f"{names[i]}: expected {refused.get(i)}, found {codes[i]}" for i in codes if codes[i] != refused.get(i)]
        check(not wrong, f"{column}: {len(refused)} values are refused", *wrong[:10])

        readable = "{" + ",".join(map(str, expected)) + "}"
        laboratory.sql(f"INSERT INTO {table}_out SELECT * FROM {table}_in WHERE _id = ANY ('{readable}')")
        compare(laboratory, f"{table}_out", expected, f"{column}, INSERT SELECT", names)

        rows = laboratory.sql(f"SELECT _id, v::text FROM {table}_in WHERE _id = ANY ('{readable}')")
        laboratory.database[f"{table}_out"].drop()
        laboratory.sql(f"PREPARE insert_{table} (int, {column}) AS INSERT INTO {table}_out VALUES ($1, $2)")
        laboratory.sql(";".join(laboratory.cursor.mogrify(f"EXECUTE insert_{table} (%s, %s)", row).decode() for row in rows))
        if column == "double precision":
            # as a text every NaN is the same
            as_text = {number: b.document([("_id", b.int32(number)), ("v", QUIET_NAN)])
                       if VALUES[number][1][0] == b.DOUBLE and is_nan(VALUES[number][1]) else data
                       for number, data in expected.items()}
        else:
            as_text = expected
        compare(laboratory, f"{table}_out", as_text, f"{column}, parameters", names)

        for number in refused:
            expected[number] = b.document([("_id", b.int32(number))])
        laboratory.database[f"{table}_out"].drop()
        if column != "real":
            laboratory.sql(f"INSERT INTO {table}_out SELECT * FROM {table}_null")
            compare(laboratory, f"{table}_out", expected, f"{column}, type_mismatch 'null'", names)


def test_other_columns(laboratory):
    """Types with a form in BSON of their own: text forms, arrays, composites."""
    laboratory.sql("""
        CREATE TYPE colour AS ENUM ('red', 'gr\u00fcn', '');
        CREATE DOMAIN word AS varchar(5) CHECK (value <> 'no');
        CREATE TYPE inner_pair AS ("\u00e4" int, "a.b" text);
        CREATE TYPE outer_pair AS (p inner_pair, ps inner_pair[], j jsonb, n numeric, o objectid, w word)""")
    pair = b.doc(("\u00e4", b.int32(1)), ("a.b", b.string("x")))
    half = b.doc(("a.b", b.string("")))
    cases = [
        ("time", [b.string(x) for x in ("00:00:00", "12:34:56.789", "23:59:59.999999", "24:00:00")]),
        ("timetz", [b.string(x) for x in ("12:34:56.789+00", "12:34:56-15:59:59", "24:00:00+05:30")]),
        ("interval", [b.string(x) for x in ("PT0S", "P1Y2M3DT4H5M6.789S", "P-1Y-2M3DT-4H-5M-6S", "P178000000Y", "PT0.000001S")]),
        ("inet", [b.string(x) for x in ("10.0.0.1", "10.0.0.1/8", "::1", "fe80::1/64")]),
        ("cidr", [b.string(x) for x in ("10.0.0.0/8", "::/0", "10.1.2.3/32")]),
        ("macaddr", [b.string("08:00:2b:01:02:03")]),
        ("macaddr8", [b.string("08:00:2b:01:02:03:04:05")]),
        ("bit(3)", [b.string("101")]),
        ("varbit", [b.string(x) for x in ("", "1", "01" * 500)]),
        ("money", [b.string(x) for x in ("$1,234.56", "-$0.01")]),
        ("int4range", [b.string(x) for x in ("[1,5)", "empty", "(,5)")]),
        ("tsvector", [b.string("'a':1 'b'")]),
        ("point", [b.doc(("type", b.string("Point")), ("coordinates", b.array(b.double(x), b.double(y))))
                   for x, y in ((0.1, -1e300), (-0.0, float("inf")))]),
        ("box", [b.string("(1,1),(0.5,-2)")]),
        ("colour", [b.string(x) for x in ("red", "gr\u00fcn", "")]),
        ("word", [b.string(x) for x in ("", "hello", "\U0010ffff" * 5)]),
        ("char(5)", [b.string(x) for x in ("     ", "ab   ", "hello")]),
        ("varchar(5)", [b.string(x) for x in ("", "ab  ", "hello")]),
        ("numeric(5,2)", [b.decimal(x) for x in ("0.00", "-999.99", "NaN")]),
        ("timestamp(0)", [b.date(x) for x in (0, -1000)]),
        ("inner_pair", [pair, half, b.doc()]),
        ("outer_pair", [b.doc(("p", pair), ("ps", b.array(half, b.null, b.doc())), ("j", b.doc(("a", b.array(b.int32(1))))),
                              ("n", b.decimal("1.10")), ("o", b.oid(b.HEX)), ("w", b.string("w"))), b.doc()]),
        ("inner_pair[]", [b.array(), b.array(pair, b.null), b.array(b.array(pair), b.array(half))]),
        ("boolean[]", [b.array(b.boolean(1), b.null, b.boolean(0))]),
        ("bigint[]", [b.array(b.int64(2 ** 63 - 1), b.int64(-2 ** 63)), b.array(b.array(b.array(b.int64(1), b.null)))]),
        ("float8[]", [b.array(b.double(-0.0), b.double(5e-324), b.double(float("inf")))]),
        ("objectid[]", [b.array(b.oid(b.HEX), b.null)]),
        ("uuid[]", [b.array(b.binary(b.SIXTEEN, 4))]),
        ("bytea[]", [b.array(b.binary(b"", 0), b.binary(b"\0\\", 0))]),
        ("timestamptz[]", [b.array(b.date(-1), b.date(253402300799999))]),
        ("date[]", [b.array(b.date(-86400000))]),
        ("colour[]", [b.array(b.string("gr\u00fcn"), b.null)]),
        ("word[]", [b.array(b.string("a b"), b.string('"'), b.null)]),
        ("jsonb[]", [b.array(), b.array(b.doc(("a", b.int32(1))), b.array(b.int32(2)), b.string("x"), b.boolean(1), b.min_key)]),
        ("json[]", [b.array(b.doc(("b", b.int32(1)), ("a", b.double(-0.0))), b.array(), b.oid(b.HEX))]),
        ("text[]", [b.array(*(b.array(b.string(str(i)), b.string("NULL")) for i in range(1000)))]),
    ]
    for position, (column, values) in enumerate(cases):
        table = f"other_{position}"
        sources = [b.document([("_id", b.int32(i)), ("v", value)]) for i, value in enumerate(values)]
        names = [show(data) for data in sources]
        laboratory.table(f"{table}_in", f"_id int, v {column}")
        laboratory.table(f"{table}_out", f"_id int, v {column}")
        laboratory.fill(f"{table}_in", sources)
        laboratory.sql(f"INSERT INTO {table}_out SELECT * FROM {table}_in")
        compare(laboratory, f"{table}_out", dict(enumerate(sources)), f"{column}, INSERT SELECT", names)
        rows = laboratory.sql(f"SELECT _id, v::text FROM {table}_in")
        laboratory.database[f"{table}_out"].drop()
        for number, text in rows:
            laboratory.sql(f"INSERT INTO {table}_out VALUES (%s, %s::text::{column})", number, text)
        # the cast of char(n) to text drops the blanks, and back adds them
        compare(laboratory, f"{table}_out", dict(enumerate(sources)), f"{column}, as text", names)


def test_encoding(laboratory):
    """A database in LATIN1: values and names are UTF-8 in MongoDB."""
    latin1 = psycopg2.connect(laboratory.arguments.dsn + " dbname=latin1")
    latin1.autocommit = True
    latin1.set_client_encoding("UTF8")
    cursor = latin1.cursor()
    cursor.execute(f"""
        CREATE EXTENSION mongo_fdw;
        CREATE SERVER mongodb FOREIGN DATA WRAPPER mongo_fdw OPTIONS (address '127.0.0.1', port '{laboratory.port}');
        CREATE USER MAPPING FOR CURRENT_USER SERVER mongodb;
        CREATE TYPE "t\u00fcp" AS ("\u00e4" text);
        CREATE TYPE "f\u00e4rb" AS ENUM ('gr\u00fcn');
        CREATE FOREIGN TABLE latin_in (_id int, "\u00f6" text, "p.\u00fc" name, t "t\u00fcp", f "f\u00e4rb"[], j jsonb, k json,
            v text OPTIONS (path '\u00e4.\u00df')) SERVER mongodb OPTIONS (database 'db', canonical_json 'true');
        CREATE FOREIGN TABLE latin_out (_id int, "\u00f6" text, "p.\u00fc" name, t "t\u00fcp", f "f\u00e4rb"[], j jsonb, k json,
            v text OPTIONS (path '\u00e4.\u00df')) SERVER mongodb OPTIONS (database 'db');
        CREATE FOREIGN TABLE latin_doc (_id int, __doc json) SERVER mongodb
            OPTIONS (database 'db', collection 'latin_in', canonical_json 'true');
        CREATE FOREIGN TABLE latin_doc_out (__doc json) SERVER mongodb OPTIONS (database 'db')""")
    everything = b.doc(("\u00e4", b.string("\u00fc")), ("r", b.regex("\u00e4", "i")), ("c", b.code("\u00f6")),
                       ("s", b.code_with_scope("\u00e9", b.doc(("\u00f1", b.symbol("\u00e7"))))), ("p", b.dbpointer("\u00ff", b.HEX)))
    sources = [b.document([
        ("_id", b.int32(1)), ("\u00f6", b.string("\u00d6")), ("p", b.doc(("\u00fc", b.string("\u00dc")))),
        ("t", b.doc(("\u00e4", b.string("\u00c4")))), ("f", b.array(b.string("gr\u00fcn"))),
        ("j", b.doc(("\u00e4", b.array(b.string("\u00fc"))))), ("k", everything), ("\u00e4", b.doc(("\u00df", b.string("s"))))])]
    laboratory.fill("latin_in", sources)
    for query, collection in (("INSERT INTO latin_out SELECT * FROM latin_in", "latin_out"),
                              ("INSERT INTO latin_doc_out SELECT __doc FROM latin_doc", "latin_doc_out")):
        cursor.execute(query)
        compare(laboratory, collection, {1: sources[0]}, f"in LATIN1: {query}", [""] * 2)
    cursor.execute("UPDATE latin_out SET \"\u00f6\" = '\u00e5', \"p.\u00fc\" = '\u00e6', v = '\u00f8', t = ROW('\u00fe')")
    changed = dict(b.elements(sources[0]))
    changed.update({"\u00f6".encode(): b.string("\u00e5"), b"p": b.doc(("\u00fc", b.string("\u00e6"))),
                    b"t": b.doc(("\u00e4", b.string("\u00fe"))), "\u00e4".encode(): b.doc(("\u00df", b.string("\u00f8")))})
    compare(laboratory, "latin_out", {1: b.document(changed.items())}, "in LATIN1: UPDATE", [""] * 2)
    latin1.close()


def test_ids(laboratory):
    """An explicit _id is kept, and UPDATE and DELETE find the document by it."""
    keep = b.doc(*((f"f{i}", value) for i, (_, value) in enumerate(VALUES) if len(value[1]) < 1000),
                 ("zero", b.timestamp(0, 0)))
    u = [bytes([i]) * 16 for i in range(1, 4)]
    cases = [
        ("objectid", "objectid", [b.oid(HEX_ID % i) for i in (1, 2, 3)], [HEX_ID % i for i in (1, 2, 3)]),
        ("ObjectId as name", "name", [b.oid(HEX_ID % i) for i in (1, 2, 3)], [HEX_ID % i for i in (1, 2, 3)]),
        ("ObjectId as text", "text", [b.oid(HEX_ID % i) for i in (1, 2, 3)], [HEX_ID % i for i in (1, 2, 3)]),
        ("ObjectId as varchar", "varchar(24)", [b.oid(HEX_ID % i) for i in (1, 2, 3)], [HEX_ID % i for i in (1, 2, 3)]),
        ("ObjectId as bytea", "bytea", [b.oid(HEX_ID % i) for i in (1, 2, 3)], ["\\x" + HEX_ID % i for i in (1, 2, 3)]),
        ("ObjectId as jsonb", "jsonb", [b.oid(HEX_ID % i) for i in (1, 2, 3)],
         ['{"$oid": "' + HEX_ID % i + '"}' for i in (1, 2, 3)]),
        ("text", "text", [b.string(x) for x in ("", "a.b$c", "\U0010ffff")], ["", "a.b$c", "\U0010ffff"]),
        ("name", "name", [b.string(x) for x in ("", "a", "x" * 63)], ["", "a", "x" * 63]),
        ("smallint", "smallint", [b.int32(x) for x in (0, -1, 32767)], ["0", "-1", "32767"]),
        ("integer", "integer", [b.int32(x) for x in (0, -1, 2 ** 31 - 1)], ["0", "-1", "2147483647"]),
        ("bigint", "bigint", [b.int64(x) for x in (0, -1, 2 ** 63 - 1)], ["0", "-1", str(2 ** 63 - 1)]),
        ("double precision", "double precision", [b.double(x) for x in (0.1, -1.5, 1e300)], ["0.1", "-1.5", "1e300"]),
        ("numeric", "numeric", [b.decimal(x) for x in ("1.10", "-0.001", "9999999999999999999999999999999999")],
         ["1.10", "-0.001", "9999999999999999999999999999999999"]),
        ("boolean", "boolean", [b.boolean(0), b.boolean(1)], ["false", "true"]),
        ("uuid", "uuid", [b.binary(x, 4) for x in u], [x.hex() for x in u]),
        ("bytea", "bytea", [b.binary(x, 0) for x in (b"", b"a\0b", b"\xff" * 16)],
         ["", "\\x610062", "\\x" + "ff" * 16]),
        ("timestamptz", "timestamptz", [b.date(x) for x in (0, -1, 253402300799999)],
         ["1970-01-01 00:00Z", "1969-12-31 23:59:59.999Z", "9999-12-31 23:59:59.999Z"]),
        ("timestamp", "timestamp", [b.date(x) for x in (0, -1, 253402300799999)],
         ["1970-01-01 00:00", "1969-12-31 23:59:59.999", "9999-12-31 23:59:59.999"]),
        ("date", "date", [b.date(x * 86400000) for x in (0, -1, 20000)], ["1970-01-01", "1969-12-31", "2024-10-04"]),
        ("jsonb document", "jsonb", [b.doc(("a", b.int32(i)), ("b", b.doc(("c", b.string("x"))))) for i in (1, 2, 3)],
         [f'{{"b": {{"c": "x"}}, "a": {i}}}' for i in (1, 2, 3)]),
        ("jsonb empty document", "jsonb", [b.doc(), b.doc(("", b.int32(1))), b.doc(("a", b.null))],
         ["{}", '{"": 1}', '{"a": null}']),
        ("jsonb mixed", "jsonb", [b.int32(1), b.string("1"), b.boolean(1)], ["1", '"1"', "true"]),
        ("composite", "id_pair", [b.doc(("a", b.int32(i)), ("b", b.string("x"))) for i in (1, 2, 3)],
         [f"({i},x)" for i in (1, 2, 3)]),
        ("domain", "id_domain", [b.int32(x) for x in (1, 2, 3)], ["1", "2", "3"]),
        ("enum", "id_enum", [b.string(x) for x in ("red", "green", "blue")], ["red", "green", "blue"]),
        ("inet", "inet", [b.string(x) for x in ("10.0.0.1", "::1", "10.0.0.0/8")], ["10.0.0.1", "::1", "10.0.0.0/8"]),
        ("interval", "interval", [b.string(x) for x in ("P1Y2M3DT4H5M6S", "PT0S", "P-1D")],
         ["1 year 2 mons 3 days 04:05:06", "0", "-1 day"]),
        ("time", "time", [b.string(x) for x in ("12:34:56.789", "00:00:00", "24:00:00")],
         ["12:34:56.789", "00:00", "24:00"]),
    ]
    laboratory.sql("CREATE TYPE id_pair AS (a int, b text); CREATE DOMAIN id_domain AS int CHECK (value > 0);"
                   "CREATE TYPE id_enum AS ENUM ('red', 'green', 'blue')")
    for position, (name, column, ids, texts) in enumerate(cases):
        table = f"ids_{position}"
        count = len(ids)

        def documents(numbers, kept=True, ids=ids):
            return [b.document([("_id", ids[i])] + ([("keep", keep)] if kept else []) + [("n", b.int32(n))])
                    for i, n in enumerate(numbers) if n is not None]

        def stored(collection):
            return sorted(laboratory.documents(collection).values())

        laboratory.table(f"{table}", f"_id {column}, n int")
        laboratory.table(f"{table}_copy", f"_id {column}, n int")
        start = list(range(1, count + 1))
        laboratory.fill(table, documents(start))

        laboratory.sql(f"INSERT INTO {table}_copy SELECT * FROM {table}")
        check(stored(f"{table}_copy") == sorted(documents(start, False)), f"_id {name}: kept by INSERT SELECT",
              *map(show, stored(f"{table}_copy")))
        laboratory.database[f"{table}_copy"].drop()
        laboratory.sql(f"PREPARE {table} ({column}, int) AS INSERT INTO {table}_copy VALUES ($1, $2)")
        for text, n in zip(texts, start):
            laboratory.sql(f"EXECUTE {table} (%s, %s)", text, n)
        check(stored(f"{table}_copy") == sorted(documents(start, False)), f"_id {name}: kept with parameters",
              *map(show, stored(f"{table}_copy")))

        now = list(start)
        for i, text in enumerate(texts):
            now[i] += 100
            laboratory.sql(f"UPDATE {table} SET n = n + 100 WHERE _id = %s::{column}", text)
            check(stored(table) == sorted(documents(now)), f"_id {name}: UPDATE of document {i + 1} and nothing else",
                  *[show(b.document([e for e in b.elements(d) if e[0] != b"keep"])) for d in stored(table)])
        now[-1] = 7
        laboratory.sql(f"UPDATE {table} SET n = v.n FROM (VALUES (%s::{column}, 7)) v (id, n) WHERE _id = v.id", texts[-1])
        check(stored(table) == sorted(documents(now)), f"_id {name}: UPDATE FROM")
        now[0] = 0
        laboratory.sql(f"UPDATE {table} SET n = 0 WHERE _id = %s::{column} AND random() >= 0", texts[0])
        check(stored(table) == sorted(documents(now)), f"_id {name}: UPDATE row by row")
        now[1] = None
        laboratory.sql(f"DELETE FROM {table} WHERE _id = %s::{column}", texts[1])
        check(stored(table) == sorted(documents(now)), f"_id {name}: DELETE")


def test_updates(laboratory):
    """What is not assigned stays the same to the byte."""
    everything = [(f"f{i}", value) for i, (_, value) in enumerate(VALUES) if len(value[1]) < 1000]
    keep = b.doc(*everything, ("zero", b.timestamp(0, 0)))

    def document(number, n=b.int32(1), x=b.int32(2), element=b.string("b"), added=()):
        return b.document([("_id", b.int32(number)), ("before", keep), ("n", n),
                           ("sub", b.doc(("left", keep), ("x", x), ("right", keep))),
                           ("list", b.array(b.doc(("p", b.double(1.5)), ("q", keep)), element, keep)),
                           ("a.b", b.int32(9)), ("", b.int64(3)), ("$d", b.int64(4)), ("after", keep), *added])

    laboratory.table("updates", "_id int, n numeric, x int OPTIONS (path 'sub.x'), p float8 OPTIONS (path 'list.0.p'), "
                     "e text OPTIONS (path 'list.1'), new int, deep jsonb OPTIONS (path 'sub2.deep')")
    laboratory.fill("updates", [document(1), document(2)])
    cases = [
        ("a field", "n = 1.50", dict(n=b.decimal("1.50"))),
        ("a field of a subdocument", "x = x + 40", dict(x=b.int32(42))),
        ("an element of an array", "e = e || e", dict(element=b.string("bb"))),
        ("a new field", "new = 5", dict(added=[("new", b.int32(5))])),
        ("a new subdocument", "deep = '{\"b\": [1, {\"$numberLong\": \"2\"}]}'",
         dict(added=[("sub2", b.doc(("deep", b.doc(("b", b.array(b.int32(1), b.int64(2)))))))])),
    ]
    for direct in ("", " AND random() >= 0"):
        for name, assignment, change in cases:
            laboratory.fill("updates", [document(1), document(2)])
            laboratory.sql(f"UPDATE updates SET {assignment} WHERE _id = 1{direct}")
            compare(laboratory, "updates", {1: document(1, **change), 2: document(2)},
                    f"UPDATE of {name}{', row by row' if direct else ''}", ["", "1", "2"])
        laboratory.fill("updates", [document(1), document(2)])
        laboratory.sql(f"UPDATE updates SET p = 2.5, n = NULL WHERE _id = 2{direct}")
        found = laboratory.documents("updates")[id_of(2)]
        wanted = document(2).replace(b"p\0" + b.double(1.5)[1], b"p\0" + b.double(2.5)[1], 1)
        wanted = b.document([e for e in b.elements(wanted) if e[0] != b"n"])
        check(found == wanted, f"UPDATE of a field of an element, and to NULL{direct and ', row by row'}", show(found))


def test_lookalikes(laboratory):
    """Documents that look like Extended JSON's wrappers are taken for them, or refused."""
    cases = [
        (b.doc(("$oid", b.string(b.HEX))), b.oid(b.HEX)),
        (b.doc(("$numberLong", b.string("5"))), b.int64(5)),
        (b.doc(("$numberDecimal", b.string("0." + "0" * 40 + "1" * 34))), b.decimal("0." + "0" * 40 + "1" * 34)),
        (b.doc(("$numberDouble", b.string("-1.5E+3"))), b.double(-1500.0)),
        (b.doc(("$numberDouble", b.string("-Infinity"))), b.double(float("-inf"))),
        (b.doc(("$undefined", b.boolean(1))), b.undefined),
        (b.doc(("$minKey", b.int32(1))), "22P02"),      # in canonical JSON its 1 is a wrapper
        (b.doc(("$oid", b.string("no"))), "22P02"),
        (b.doc(("$oid", b.int32(5))), "22P02"),
        (b.doc(("$date", b.string("never"))), "22007"),
        (b.doc(("$date", b.string("infinity"))), "22008"),
        (b.doc(("$binary", b.doc())), "22P02"),
        (b.doc(("$numberDecimal", b.string("1E+9999"))), "22P02"),
        (b.doc(("$code", b.null)), "22P02"),
        # no wrappers: other keys beside, or none of Extended JSON's
        (b.doc(("$oid", b.string(b.HEX)), ("x", b.int32(1))), None),
        (b.doc(("x", b.int32(1)), ("$oid", b.string(b.HEX))), None),
        (b.doc(("$gt", b.int32(1))), None),
        (b.doc(("$regex", b.string("a")), ("$options", b.string("i"))), None),
        (b.doc(("$ref", b.string("c")), ("$id", b.int32(1))), None),
    ]
    sources = [b.document([("_id", b.int32(i)), ("v", value)]) for i, (value, _) in enumerate(cases)]
    laboratory.fill("lookalikes", sources)
    laboratory.table("lookalikes", "_id int, __doc json", canonical_json="true")
    laboratory.table("lookalikes_out", "__doc json")
    for number, (value, result) in enumerate(cases):
        error = laboratory.error(f"INSERT INTO lookalikes_out SELECT __doc FROM lookalikes WHERE _id = {number}")
        found = laboratory.documents("lookalikes_out").get(id_of(number))
        if isinstance(result, str):
            check(error is not None and error.pgcode == result and found is None,
                  f"{show(sources[number])} is refused", error, error and error.pgcode)
        else:
            check(found == b.document([("_id", b.int32(number)), ("v", result or value)]),
                  f"{show(sources[number])} is {'kept' if result is None else 'taken for a wrapper'}", error, show(found))


def test_names(laboratory):
    """Hostile field names as columns."""
    names = [" ", "a b", '"', "'", "\\", "k" * 1000, "SELECT", "\u00e4\U0010ffff", "x" * 63 + "1", "x" * 63 + "2", "\n", "%s%n",
             "Upper", "upper", "b$", "0", "-1", "__proto__"]
    refused = ["$a", "$", ""]

    def sql_name(name):
        return name.replace("\\", "\\\\").replace("'", "''")

    columns = ", ".join(f"c{i} int OPTIONS (path E'{sql_name(name)}')" for i, name in enumerate(names))
    laboratory.table("names", f"_id int, {columns}")
    laboratory.table("names_out", f"_id int, {columns}")
    source = b.document([("_id", b.int32(1))] + [(name, b.int32(i)) for i, name in enumerate(names)])
    laboratory.fill("names", [source])
    check(list(laboratory.sql("SELECT * FROM names")[0][1:]) == list(range(len(names))), "hostile names are read")
    for i, name in enumerate(names):
        check(laboratory.sql(f"SELECT count(*) FROM names WHERE c{i} = {i}") == [(1,)], f"name {name[:20]!r} in a filter")
    laboratory.sql("INSERT INTO names_out SELECT * FROM names")
    check(laboratory.documents("names_out")[id_of(1)] == source, "hostile names are written")
    for i, name in enumerate(names):
        laboratory.sql(f"UPDATE names_out SET c{i} = c{i} + 1")
    changed = b.document([("_id", b.int32(1))] + [(name, b.int32(i + 1)) for i, name in enumerate(names)])
    check(laboratory.documents("names_out")[id_of(1)] == changed, "hostile names are updated",
          show(laboratory.documents("names_out")[id_of(1)]))

    # what MongoDB cannot address is an error or correct, never something else
    laboratory.fill("names", [b.document([("_id", b.int32(1))] + [(name, b.int32(5)) for name in refused])])
    for i, name in enumerate(refused):
        error = laboratory.error(f"CREATE FOREIGN TABLE refused_{i} (_id int, c int OPTIONS (path '{name}')) "
                                 "SERVER mongodb OPTIONS (database 'db', collection 'names')")
        if error is None:
            for query in (f"SELECT c FROM refused_{i}", f"SELECT c FROM refused_{i} WHERE c = 5"):
                error = laboratory.error(query)
                found = None if error else laboratory.cursor.fetchall()
                check(found == [(5,)] or error is not None and error.pgcode[:2] != "XX", f"name {name!r}: {query}",
                      error, found)
        else:
            check(error.pgcode[:2] in ("HV", "22", "42"), f"name {name!r} is refused", error)
    check(laboratory.sql("SELECT 1") == [(1,)], "the session is alive")


def test_errors(laboratory):
    """What MongoDB cannot hold is refused with the row and the column; nothing of its row is written."""
    laboratory.sql("CREATE TYPE bad_pair AS (a numeric, b timestamptz)")
    laboratory.table("bad", "_id int, n numeric, t timestamptz, d date, ts timestamp, j jsonb, jt json, a numeric[], c bad_pair")
    laboratory.table("bad_doc", "__doc text", "bad")
    laboratory.table("bad_id", "_id jsonb, n int", "bad")
    forty = "1" * 40
    values = [
        ("n", forty, "22003"),
        ("n", "1e6145", "22003"),
        ("n", "0." + "0" * 6177 + "1", "22003"),
        ("t", "'infinity'", "22008"),
        ("t", "'-infinity'", "22008"),
        ("d", "'infinity'", "22008"),
        ("ts", "'-infinity'", "22008"),
        ("j", "'{\"a\": " + forty + "}'", "22003"),
        ("j", "'{\"$oid\": \"x\"}'", "22P02"),
        ("j", "'{\"a\": [{\"$date\": \"infinity\"}]}'", "22008"),
        ("j", "'{\"$binary\": {\"base64\": \"?\", \"subType\": \"00\"}}'", "22P02"),
        ("j", "'{\"$binary\": {\"base64\": \"\", \"subType\": \"-1\"}}'", "22P02"),
        ("j", "'{\"$numberInt\": \"2147483648\"}'", "22P02"),
        ("j", "'{\"$numberLong\": \"9223372036854775808\"}'", "22P02"),
        *(("j", f"'{{\"{key}\": \"{text}\"}}'", "22P02") for key, text in (
            ("$numberInt", " 5"), ("$numberInt", ""), ("$numberLong", "+5"), ("$numberDouble", " 1"), ("$numberDouble", "+1"),
            ("$numberDouble", "0x10"), ("$numberDouble", "nan(7)"), ("$numberDouble", "inf"), ("$numberDouble", "1e400"))),
        ("j", "'{\"$timestamp\": {\"t\": -1, \"i\": 0}}'", "22P02"),
        ("j", "'{\"$numberDecimal\": \"0." + "0" * 40 + "1" * 34 + "05\"}'", "22P02"),
        ("jt", "'{\"a\": 1e100000}'", "22003"),
        ("jt", "'\"\\u0000\"'", "22P05"),
        ("jt", "'{\"\\u0000\": 1}'", "22P05"),
        ("jt", "repeat('[', 5000) || repeat(']', 5000)", "54001"),
        ("a", "ARRAY[1, " + forty + "]", "22003"),
        ("c", "ROW(" + forty + ", NULL)", "22003"),
        ("c", "ROW(1, 'infinity')::bad_pair", "22008"),
    ]
    for column, value, code in values:
        cast = "" if value[0] in "AR0123456789" else f"::{'json' if column == 'jt' else 'jsonb' if column == 'j' else dict(t='timestamptz', d='date', ts='timestamp', c='bad_pair')[column]}"
        if value.startswith("repeat"):
            value = f"({value})"
        laboratory.database["bad"].drop()
        laboratory.database["bad"].insert_one({"_id": 9, "n": 1})
        name = f"{column} = {value[:40]}"
        error = laboratory.error(f"INSERT INTO bad (_id, {column}) VALUES (1, NULL), (2, {value}{cast}), (3, NULL)")
        text = str(error)
        check(error is not None and (code is None or error.pgcode == code), f"INSERT of {name}: SQLSTATE {code}",
              error and error.pgcode, text)
        check("row 2" in text, f"INSERT of {name} names the row", text)
        if code is not None:
            check(f'"{column}"' in text, f"INSERT of {name} names the column", text)
        check(id_of(2) not in laboratory.documents("bad"), f"INSERT of {name} writes no such row")
        error = laboratory.error(f"UPDATE bad SET {column} = {value}{cast}")
        text = str(error)
        check(error is not None and (code is None or error.pgcode == code), f"UPDATE to {name}: SQLSTATE {code}",
              error and error.pgcode, text)
        if code is not None:
            check(f'"{column}"' in text, f"UPDATE to {name} names the column", text)
        error = laboratory.error(f"UPDATE bad SET {column} = {value}{cast} WHERE random() >= 0")
        check(error is not None and (code is None or error.pgcode == code), f"UPDATE row by row to {name}", error)

    laboratory.database["bad"].drop()
    documents = [
        ("no JSON", "'x'", "22P02"),
        ("no object", "'[1]'", "22P02"),
        ("a scalar", "'1'", "22P02"),
        ("empty", "''", "22P02"),
        ("half a document", "'{\"a\": '", "22P02"),
        ("U+0000", "'{\"a\": \"\\u0000\"}'", "22P05"),
        ("a wrong wrapper", "'{\"_id\": 2, \"a\": {\"$oid\": 1}}'", "22P02"),
        ("a bomb of objects", "repeat('{\"a\":', 100000) || '1' || repeat('}', 100000)", "54001"),
        ("a bomb of arrays", "'{\"a\":' || repeat('[', 100000) || repeat(']', 100000) || '}'", "54001"),
        ("190 levels", "repeat('{\"a\":', 190) || '1' || repeat('}', 190)", None),
        ("201 levels", "repeat('{\"a\":', 201) || '1' || repeat('}', 201)", "54001"),
        ("an array as _id", "'{\"_id\": [1]}'", None),
        ("a Regex as _id", "'{\"_id\": {\"$regularExpression\": {\"pattern\": \"a\", \"options\": \"\"}}}'", None),
        ("Undefined as _id", "'{\"_id\": {\"$undefined\": true}}'", None),
        ("two _id", "'{\"_id\": 2, \"a\": 1, \"_id\": 3}'", None),
        ("a dollar in _id", "'{\"_id\": {\"$a\": 1}}'", None),
    ]
    for name, value, code in documents:
        error = laboratory.error(f"INSERT INTO bad_doc VALUES ('{{\"_id\": 1}}'), ({value})")
        text = str(error)
        check(error is not None and (code is None or error.pgcode == code) and error.pgcode[:2] != "XX",
              f"__doc is {name}: SQLSTATE {code}", error and error.pgcode, text)
        check("row 2" in text, f"__doc is {name}: names the row", text)
        if code is not None:
            check('"__doc"' in text, f"__doc is {name}: names the column", text)
        laboratory.database["bad"].drop()

    laboratory.sql("INSERT INTO bad (_id) VALUES (1)")
    error = laboratory.error("INSERT INTO bad (_id) VALUES (2), (1)")
    check(error.pgcode == "23505" and "row 2" in str(error), "a duplicate key names the row", error)
    error = laboratory.error("INSERT INTO bad (_id, n) VALUES (3, 1), (NULL, 2)")
    check(error.pgcode == "23502" and "row 2" in str(error) and '"_id"' in str(error), "NULL for an _id of integers", error)
    error = laboratory.error("INSERT INTO bad_id VALUES ('[1]', 1)")
    check(error is not None and "row 1" in str(error), "an array as _id is refused", error)
    check(laboratory.sql("SELECT 1") == [(1,)], "the session is alive")


def test_large(laboratory):
    """16 MB, and a byte more."""
    limit = 16 * 1024 * 1024
    empty = len(b.document([("_id", b.int32(1)), ("v", b.string(""))]))
    text = "x" * (limit - empty - 3) + "\u4e16"
    source = b.document([("_id", b.int32(1)), ("v", b.string(text))])
    half = b.document([("_id", b.int32(2)), ("v", b.binary(b"\xfe" * 12000000, 0))])
    many = b.document([("_id", b.int32(3)), ("v", b.array(*(b.doc(("k", b.int64(i)), ("d", b.double(i / 7)))
                                                           for i in range(200000))))])
    assert len(source) == limit
    laboratory.fill("large", [source, half, many])
    stored = laboratory.documents("large")
    check(stored[id_of(1)] == source and stored[id_of(3)] == many, "MongoDB stores 16 MB")

    for form in ("json", "text"):
        laboratory.table(f"large_{form}", f"_id int, __doc {form}", "large", canonical_json="true")
        laboratory.table(f"large_{form}_out", f"__doc {form}")
        laboratory.sql(f"INSERT INTO large_{form}_out SELECT __doc FROM large_{form}")
        check(laboratory.documents(f"large_{form}_out") == stored, f"16 MB by way of __doc {form}")
    laboratory.table("large_jsonb", "_id int, v jsonb", "large", canonical_json="true")
    laboratory.table("large_jsonb_out", "_id int, v jsonb")
    laboratory.sql("INSERT INTO large_jsonb_out SELECT * FROM large_jsonb WHERE _id = 1")
    check(laboratory.documents("large_jsonb_out") == {id_of(1): source}, "16 MB by way of jsonb")
    laboratory.table("large_column", "_id int, v text", "large")
    laboratory.table("large_column_out", "_id int, v text")
    laboratory.table("large_bytea", "_id int, v bytea", "large")
    laboratory.table("large_bytea_out", "_id int, v bytea")
    laboratory.sql("INSERT INTO large_column_out SELECT * FROM large_column WHERE _id = 1")
    check(laboratory.documents("large_column_out") == {id_of(1): source}, "16 MB by way of text")
    laboratory.sql("INSERT INTO large_bytea_out SELECT * FROM large_bytea WHERE _id = 2")
    check(laboratory.documents("large_bytea_out") == {id_of(2): half}, "12 MB by way of bytea")

    laboratory.database["large_column_out"].drop()
    error = laboratory.error("INSERT INTO large_column_out SELECT _id + i, v || repeat('x', i) FROM large_column, "
                             "generate_series(0, 1) i WHERE _id = 1 ORDER BY i")
    check(error is not None and error.pgcode == "54000" and "row 2" in str(error), "a byte more is refused", error,
          error and error.pgcode)
    error = laboratory.error("INSERT INTO large_column_out VALUES (5, repeat('x', 40 * 1024 * 1024))")
    check(error is not None and error.pgcode == "54000" and "row 1" in str(error), "40 MB are refused", error)
    laboratory.database["large_column_out"].drop()
    laboratory.sql("INSERT INTO large_column_out VALUES (1, 'x')")
    error = laboratory.error("UPDATE large_column_out SET v = repeat('x', 17 * 1024 * 1024)")
    check(error is not None and error.pgcode[:2] == "54", "an UPDATE to 17 MB is refused", error, error and error.pgcode)
    error = laboratory.error("UPDATE large_column_out SET v = repeat('x', 17 * 1024 * 1024) WHERE random() >= 0")
    check(error is not None and error.pgcode[:2] == "54", "or row by row", error, error and error.pgcode)
    check(laboratory.sql("SELECT 1") == [(1,)], "the session is alive")


class RandomDocuments:
    """Nested documents of every type, by a seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.values = [value for _, value in VALUES if len(value[1]) < 1000]

    def text(self):
        length = self.random.choice((0, 1, 2, 5, 30))
        ranges = ((32, 126), (1, 31), (0x80, 0x7ff), (0x800, 0xd7ff), (0xe000, 0xffff), (0x10000, 0x10ffff))
        return "".join(chr(self.random.randint(*self.random.choice(ranges))) for _ in range(length))

    def key(self):
        return self.random.choice(("a", "b", "c", "", "0", "a.b", "$x", "_id", self.text(), self.text()))

    def scalar(self):
        r = self.random
        bits = r.getrandbits(64)
        return r.choice((
            lambda: r.choice(self.values),
            lambda: b.double_bits(bits),
            lambda: b.double(round(r.uniform(-1e6, 1e6), r.randint(0, 6))),
            lambda: b.double(float(r.randint(-10 ** 19, 10 ** 19))),
            lambda: b.int32(r.randint(-2 ** 31, 2 ** 31 - 1)),
            lambda: b.int64(r.randint(-2 ** 63, 2 ** 63 - 1)),
            lambda: b.string(self.text()),
            lambda: b.symbol(self.text()),
            lambda: b.code_with_scope(self.text(), self.document(3)),
            lambda: b.regex(self.text().replace("\0", ""), "".join(sorted(r.sample("ilmsux", r.randint(0, 3))))),
            lambda: b.binary(r.randbytes(r.randint(0, 20)), r.choice((0, 1, 3, 4, 5, 6, 0x80, 0xff))),
            lambda: b.date(r.randint(-2 ** 63, 2 ** 63 - 1)),
            lambda: b.date(r.randint(-10 ** 14, 3 * 10 ** 14)),
            lambda: b.timestamp(r.getrandbits(32), r.getrandbits(32)),
            lambda: b.oid(r.randbytes(12).hex()),
            lambda: b.decimal(f"{r.choice('+-')}{r.randint(0, 10 ** r.randint(1, 34) - 1)}E{r.randint(-6176, 6111):+d}"),
            lambda: b.decimal(f"{r.choice('+-')}{r.randint(0, 10 ** r.randint(1, 34) - 1)}E{r.randint(-40, 3):+d}"),
        ))()

    def value(self, depth):
        kind = self.random.random()
        if depth < 6 and kind < 0.2:
            return self.document(depth + 1)
        if depth < 6 and kind < 0.35:
            return b.array(*(self.value(depth + 1) for _ in range(self.random.randint(0, 5))))
        return self.scalar()

    def document(self, depth=0):
        return b.doc(*((self.key(), self.value(depth)) for _ in range(self.random.randint(0, 6))))


def test_random(laboratory):
    seed = laboratory.arguments.seed
    generator = RandomDocuments(seed)
    sources = [b.document([("_id", b.int32(i)), ("v", generator.document()), ("w", generator.value(0)),
                           ("x", b.doc(("x", generator.value(0))))])
               for i in range(laboratory.arguments.documents)]
    # MongoDB puts the time in place of this one at the top
    sources = [data for data in sources if b.elements(data)[2][1] != b.timestamp(0, 0)]
    sources = [b.document([("_id", b.int32(i))] + b.elements(data)[1:]) for i, data in enumerate(sources)]
    stored = laboratory.fill("random", sources)
    check(list(stored.values()) == sources, f"MongoDB stores random documents, seed {seed}")
    names = [f"seed {seed}, document {i}" for i in range(len(sources))]

    for form in ("json", "text", "jsonb"):
        for canonical in (True, False):
            table = f"random_{form}_{'canonical' if canonical else 'relaxed'}"
            laboratory.table(table, f"_id int, __doc {form}", "random", canonical_json=canonical)
            laboratory.table(f"{table}_out", f"__doc {form}")
            expected = {}
            for number, data in enumerate(sources):
                try:
                    expected[number] = expected_document(data, "jsonb" if form == "jsonb" else "json", canonical, Reasons())
                except Refused:
                    pass
            readable = "{" + ",".join(map(str, expected)) + "}"
            laboratory.sql(f"INSERT INTO {table}_out SELECT __doc FROM {table} WHERE _id = ANY ('{readable}')")
            compare(laboratory, f"{table}_out", expected,
                    f"random documents by way of __doc {form}, {'canonical' if canonical else 'relaxed'}", names)
            if form != "jsonb" and canonical:
                same = sum(expected.get(i) == data for i, data in enumerate(sources))
                check(same > 0.3 * len(sources), f"many are the same to the byte: {same} of {len(sources)}")


HEX_ID = "5f1e2d3c4b5a6978879600%02x"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dsn", required=True)
    parser.add_argument("--mongo", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--documents", type=int, default=400)
    parser.add_argument("--only", default="", help="run the tests whose name has this")
    arguments = parser.parse_args()
    sys.stderr = sys.stdout
    laboratory = Laboratory(arguments.dsn, arguments.mongo)
    laboratory.arguments = arguments

    for name, test in list(globals().items()):
        if name.startswith("test_") and arguments.only in name:
            test(laboratory)
    print("done", flush=True)


if __name__ == "__main__":
    main()
