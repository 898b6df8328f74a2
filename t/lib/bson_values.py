"""BSON built by hand, for tests that compare bytes: builders, a parser, and values at
the limits of every type.

A value is (type byte, payload); a document is bytes.  Nothing here uses a driver's
encoder, which would correct the unusual values that are tested.
"""
import struct
from decimal import Decimal

from bson.decimal128 import Decimal128

DOUBLE, STRING, DOCUMENT, ARRAY, BINARY, UNDEFINED, OID, BOOLEAN, DATE, NULL, REGEX, DBPOINTER, \
    CODE, SYMBOL, CODE_WITH_SCOPE, INT32, TIMESTAMP, INT64, DECIMAL128 = range(1, 20)
MIN_KEY, MAX_KEY = 255, 127


def _text(text):
    data = text if isinstance(text, bytes) else text.encode("utf-8")
    return struct.pack("<i", len(data) + 1) + data + b"\0"


def _cstring(text):
    return (text if isinstance(text, bytes) else text.encode("utf-8")) + b"\0"


def document(elements):
    """Returns a document of (key, value) pairs; a key may occur twice."""
    body = b"".join(bytes([v[0]]) + _cstring(k) + v[1] for k, v in elements)
    return struct.pack("<i", len(body) + 5) + body + b"\0"


def double(x): return DOUBLE, struct.pack("<d", x)
def double_bits(x): return DOUBLE, struct.pack("<Q", x)
def string(x): return STRING, _text(x)
def doc(*elements): return DOCUMENT, document(elements)
def array(*values): return ARRAY, document([(str(i), v) for i, v in enumerate(values)])
def array_with_keys(*elements): return ARRAY, document(elements)
def binary(data, subtype): return BINARY, struct.pack("<i", len(data)) + bytes([subtype]) + data
def binary_2(data): return binary(struct.pack("<i", len(data)) + data, 2)
def oid(hexadecimal): return OID, bytes.fromhex(hexadecimal)
def boolean(x): return BOOLEAN, bytes([x])
def date(ms): return DATE, struct.pack("<q", ms)
def regex(pattern, options): return REGEX, _cstring(pattern) + _cstring(options)
def dbpointer(ns, hexadecimal): return DBPOINTER, _text(ns) + bytes.fromhex(hexadecimal)
def code(x): return CODE, _text(x)
def symbol(x): return SYMBOL, _text(x)
def int32(x): return INT32, struct.pack("<i", x)
def timestamp(t, i): return TIMESTAMP, struct.pack("<II", i, t)
def int64(x): return INT64, struct.pack("<q", x)
def decimal(x): return DECIMAL128, Decimal128(x).bid
def decimal_bits(high, low): return DECIMAL128, struct.pack("<QQ", low, high)


def code_with_scope(x, scope):
    body = _text(x) + scope[1]
    return CODE_WITH_SCOPE, struct.pack("<i", len(body) + 4) + body


null = (NULL, b"")
undefined = (UNDEFINED, b"")
min_key = (MIN_KEY, b"")
max_key = (MAX_KEY, b"")

_FIXED = {DOUBLE: 8, UNDEFINED: 0, OID: 12, BOOLEAN: 1, DATE: 8, NULL: 0, INT32: 4,
          TIMESTAMP: 8, INT64: 8, DECIMAL128: 16, MIN_KEY: 0, MAX_KEY: 0}


def elements(data):
    """Returns the (key, value) pairs of a document."""
    position, end = 4, len(data) - 1
    result = []
    while position < end:
        kind = data[position]
        stop = data.index(b"\0", position + 1)
        key = data[position + 1:stop]
        start = stop + 1
        length = struct.unpack_from("<i", data, start)[0] if start + 4 <= end else 0
        if kind in _FIXED:
            size = _FIXED[kind]
        elif kind in (STRING, CODE, SYMBOL):
            size = 4 + length
        elif kind in (DOCUMENT, ARRAY, CODE_WITH_SCOPE):
            size = length
        elif kind == BINARY:
            size = 5 + length
        elif kind == REGEX:
            size = data.index(b"\0", data.index(b"\0", start) + 1) + 1 - start
        elif kind == DBPOINTER:
            size = 4 + length + 12
        else:
            raise ValueError(f"BSON type {kind}")
        result.append((key, (kind, data[start:start + size])))
        position = start + size
    return result


def text_of(value):
    """Returns the bytes of a String, Symbol or JavaScript."""
    return value[1][4:-1]


def number_of(value):
    """Returns an int, float or Decimal; None if the value is no number."""
    kind, payload = value
    if kind == INT32:
        return struct.unpack("<i", payload)[0]
    if kind in (INT64, DATE):
        return struct.unpack("<q", payload)[0]
    if kind == DOUBLE:
        return struct.unpack("<d", payload)[0]
    if kind == DECIMAL128:
        return Decimal128.from_bid(payload).to_decimal()
    return None


def nested_documents(levels):
    value = int32(1)
    for _ in range(levels):
        value = doc(("x", value))
    return value


def nested_arrays(levels):
    value = int32(1)
    for _ in range(levels):
        value = array(value)
    return value


HEX = "5f1e2d3c4b5a69788796a5b4"
SIXTEEN = bytes(range(16))
CONTROLS = "".join(map(chr, range(1, 32))) + "\x7f\"\\/"
LONG_KEY = "k" * 1000

# name, value
VALUES = [(f"Double {x!r}", double(x)) for x in (
    0.0, -0.0, 1.0, -1.0, 0.1, 1 / 3, 3.0, 3.5, 1e15, 1e16, 1e17, 123456789012345678.0, 1e18, 1e21, 1e22, 1e23,
    2.0 ** 31, 2.0 ** 53, 2.0 ** 53 + 2, 2.0 ** 63, -2.0 ** 63, 9223372036854774784.0, 1e39, 1e300, 1e-300,
    5e-324, 2.225073858507201e-308, 2.2250738585072014e-308,
    1.7976931348623157e308, -1.7976931348623157e308,
    float("inf"), float("-inf"))]
VALUES += [
    ("Double NaN", double_bits(0x7ff8000000000000)),
    ("Double NaN, negative", double_bits(0xfff8000000000000)),
    ("Double NaN with a payload", double_bits(0x7ff8000000000123)),

    ("String empty", string("")),
    ("String a", string("a")),
    ("String with the last character", string("\U0010ffff")),
    ("String of all widths", string("a\u00e4\u4e16\U0001f418\u2028\ufeff\ue000\ufffd")),
    ("String with control characters", string(CONTROLS)),
    ("String with U+0000", string("a\0b")),
    ("String of 24 hexadecimal digits", string(HEX)),
    ("String of JSON", string('{"$oid": "' + HEX + '"}')),
    ("String with blanks", string("  a  ")),
    ("String of 100 kB", string("\u00e4" * 50000)),
    ("String a date", string("2020-01-02")),
    ("String 1", string("1")),
    ("String of 63 bytes", string("x" * 63)),

    ("Document empty", doc()),
    ("Document simple", doc(("b", int32(1)), ("a", string("x")))),
    ("Document nested", doc(("b", doc(("c", doc()), ("a", null))), ("a", array(doc(("z", int64(5)), ("y", double(1.5))))))),
    ("Document with digits as keys", doc(("0", int32(1)), ("1", int32(2)))),
    ("Document with an empty key", doc(("", int32(1)), ("x", doc(("", doc(("", int32(2)))))))),
    ("Document with dotted keys", doc(("a.b", int32(1)), (".", int32(2)), ("a.", int32(3)))),
    ("Document with dollar keys", doc(("$a", int32(1)), ("b$", int32(2)), ("$", int32(3)), ("$set", doc(("x", int32(1)))))),
    ("Document with repeated keys", doc(("x", int32(1)), ("y", int32(0)), ("x", string("two")))),
    ("Document with a key of 1000 bytes", doc((LONG_KEY, int32(1)))),
    ("Document with strange keys", doc(('"', int32(1)), ("\\", int32(2)), ("\x01\n", int32(3)), ("\U0010ffff", int32(4)),
                                       ("__proto__", int32(5)))),
    ("Document DBRef", doc(("$ref", string("c")), ("$id", oid(HEX)), ("$db", string("d")))),
    ("Document of 100 levels", nested_documents(100)),

    ("Array empty", array()),
    ("Array of integers", array(int32(1), int32(2), null)),
    ("Array of texts", array(string("a"), string(""), null)),
    ("Array rectangular", array(array(int32(1), int32(2)), array(int32(3), int32(4)))),
    ("Array not rectangular", array(array(int32(1)), array())),
    ("Array mixed", array(int32(1), string("x"), doc(), array(), null, undefined, min_key, int64(7))),
    ("Array of 100 levels", nested_arrays(100)),
    ("Array of 300", array(*map(int32, range(300)))),
    ("Array with other keys", array_with_keys(("5", int32(1)), ("x", int32(2)))),

    ("Undefined", undefined),
    ("Null", null),
    ("ObjectId", oid(HEX)),
    ("ObjectId lowest", oid("00" * 12)),
    ("ObjectId highest", oid("ff" * 12)),
    ("Boolean true", boolean(1)),
    ("Boolean false", boolean(0)),
    ("Regex", regex("^a", "i")),
    ("Regex empty", regex("", "")),
    ("Regex with everything", regex('a/b"\\\n\u00e4\U0010ffff', "ilmsux")),
    ("Regex with options out of order", regex("a", "xi")),
    ("Regex with unknown options", regex("a", "gi")),
    ("DBPointer", dbpointer("db.c", HEX)),
    ("DBPointer empty", dbpointer("", "00" * 12)),
    ("JavaScript", code("function() { return \"x\\\\\"; }\n\u00e4")),
    ("JavaScript empty", code("")),
    ("JavaScript with scope", code_with_scope("f()", doc(("b", int32(1)), ("a", doc(("c", date(5))))))),
    ("JavaScript with empty scope", code_with_scope("", doc())),
    ("Symbol", symbol("sym\u00e4")),
    ("Symbol empty", symbol("")),
    ("Timestamp", timestamp(1577836800, 1)),
    ("Timestamp least but one", timestamp(0, 1)),
    ("Timestamp highest", timestamp(0xffffffff, 0xffffffff)),
    ("MinKey", min_key),
    ("MaxKey", max_key),
]
# subtype 7 is a compressed column, which newer servers check
VALUES += [(f"Binary subtype {s:02x}", binary(b"\0" if s == 7 else SIXTEEN, s)) for s in (0, 1, 3, 4, 5, 6, 7, 8, 9, 0x7f, 0x80, 0xff)]
VALUES += [
    ("Binary subtype 02", binary_2(b"\x00\x01\xff")),
    ("Binary subtype 02 empty", binary_2(b"")),
    ("Binary empty", binary(b"", 0)),
    ("Binary of one", binary(b"\xff", 0)),
    ("Binary of two", binary(b"\xff\x00", 0x80)),
    ("Binary subtype 04 of 3 bytes", binary(b"abc", 4)),
    ("Binary of 12", binary(b"twelve bytes", 0)),
    ("Binary of 100 kB", binary(bytes(range(256)) * 400, 0)),
]
VALUES += [(f"Date {ms}", date(ms)) for ms in (
    0, 1, -1, 999, 1000, 1577934245123, -86400000, -86400001, -123,
    -62135596800000, -62135596800001, -62167219200000,          # year 1, the last of the year before, year 0
    253402300799999, 253402300800000,                           # the last of 9999, the first of 10000
    -210866803200000, -210866803200001,                         # 4714 BC
    9224318015999999, 9224318016000000,                         # 294276
    185331707078400000 - 86400000, 185331707078400000,          # 5874897
    2 ** 63 - 1, -2 ** 63)]
VALUES += [(f"Int32 {x}", int32(x)) for x in (0, 1, -1, 32767, 32768, -32768, -32769, 2 ** 31 - 1, -2 ** 31)]
VALUES += [(f"Int64 {x}", int64(x)) for x in (
    0, 1, -1, 32768, 2 ** 31 - 1, -2 ** 31, 2 ** 31, -2 ** 31 - 1, 2 ** 53, 2 ** 53 + 1, -2 ** 53 - 1,
    10 ** 18, 2 ** 63 - 1, -2 ** 63)]
VALUES += [(f"Decimal128 {x}", decimal(x)) for x in (
    "0", "-0", "0.000", "-0.000", "0E+3", "-0E+3", "0E-6176", "0E+6111", "-0E-6176",
    "1", "-1", "1.10", "0.1", "0.125", "1E+3", "1.0E+3", "12E-7", "1E-6176", "-1E-6176", "9.99E-6174", "1E-6143",
    "1E+40", "1E+34", "1E+33", "9999999999999999999999999999999999", "-9999999999999999999999999999999999",
    "1234567890123456789012345678901234E-34", "12345678901234567890.12345678901234",
    "9.999999999999999999999999999999999E+6144", "-9.999999999999999999999999999999999E+6144", "1E+6144", "1E+6111",
    "9223372036854775807", "9223372036854775808", "1E+22", "1E+23", "1E+400",
    "Infinity", "-Infinity", "NaN")]
VALUES += [
    ("Decimal128 NaN, negative", decimal_bits(0xfc00000000000000, 0)),
    ("Decimal128 NaN, signalling", decimal_bits(0x7e00000000000000, 0)),
    ("Decimal128 NaN with a payload", decimal_bits(0x7c00000000000000, 18)),
    ("Decimal128 not canonical", decimal_bits(0x6c10000000000000, 0)),
    ("Decimal128 with 35 digits", decimal_bits(0x3041ed09bead87c0, 0x378d8e6400000000)),
]
