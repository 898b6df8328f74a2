"""Inputs that fuzzing begins with: one of each kind that the code under it tells apart."""
import datetime
import struct
import uuid
import zlib

import bson
from bson import Binary, Code, DBRef, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp

# a value of each BSON type, and of numbers those at the edges
VALUES = [
    None, True, 0, -1, 2**31 - 1, Int64(2**31), Int64(-2**63), 0.0, -0.0, 1.5, 1e300, float("nan"), float("inf"),
    Decimal128("0.10"), Decimal128("9" * 34), Decimal128("1E-6176"), Decimal128("NaN"), Decimal128("-Infinity"),
    "", "x", "5", "2024-01-02", "ä€𝄞", "127.0.0.1/8", "a\0b", b"", b"\1\2", Binary(b"\1\2", 2),
    Binary(uuid.UUID(int=7).bytes, 4), Binary(b"123", 128), ObjectId("509a8fb2f3f4948bd2000001"),
    datetime.datetime(2024, 1, 2, 3, 4, 5, 678000), datetime.datetime(1, 1, 1), Regex("a.*b", "imsx"), Code("f()"),
    Code("f(x)", {"x": 1}), Timestamp(7, 1), MinKey(), MaxKey(), DBRef("c", 1, "d"),
    [], [1, 2], [1, None, "x"], [[1, 2], [3, 4]], [[1], [2, 3]], [{"b": 1}, {"b": {"c": ["x"]}}],
    {}, {"b": 7}, {"b": {"c": "x"}}, {"b": [{"c": 1}]}, {"$numberLong": "1"},
]

JSON = [
    '{}', '{"a": 1, "b": [true, false, null, -1.5e-300, "x\\u00e4\\n"]}', '{"a": {"a": {"a": [[[]]]}}}',
    '{"a": 123456789012345678901234567890}', '{"a": 9223372036854775808}', '{"a": 0.10}', '{"a": 1, "a": 2}',
    '{"a": {"$oid": "509a8fb2f3f4948bd2000001"}}', '{"a": {"$numberInt": "1"}}', '{"a": {"$numberLong": "-1"}}',
    '{"a": {"$numberDouble": "-Infinity"}}', '{"a": {"$numberDecimal": "1E-6176"}}',
    '{"a": {"$date": "2024-01-02T03:04:05.678Z"}}', '{"a": {"$date": {"$numberLong": "1"}}}',
    '{"a": {"$binary": {"base64": "AQI=", "subType": "00"}}}', '{"a": {"$uuid": "00000000-0000-0000-0000-000000000007"}}',
    '{"a": {"$regularExpression": {"pattern": "a.b", "options": "im"}}}', '{"a": {"$symbol": "x"}}',
    '{"a": {"$code": "f()", "$scope": {"x": 1}}}', '{"a": {"$code": "f()"}}', '{"a": {"$timestamp": {"t": 7, "i": 1}}}',
    '{"a": {"$dbPointer": {"$ref": "c", "$id": {"$oid": "509a8fb2f3f4948bd2000001"}}}}',
    '{"a": {"$minKey": 1}, "b": {"$maxKey": 1}, "c": {"$undefined": true}}', '{"a": {"$ref": "c", "$id": 1, "$db": "d"}}',
]

REPLIES = [
    {"ok": 1.0}, {"cursor": {"id": Int64(1), "ns": "d.c", "firstBatch": [{"_id": 1}]}, "ok": 1.0},
    {"ok": 0.0, "errmsg": "no", "code": 112, "codeName": "WriteConflict", "errorLabels": ["TransientTransactionError"]},
    {"n": 1, "ok": 1.0, "writeErrors": [{"index": 0, "code": 11000, "errmsg": "E11000", "keyValue": {"_id": 1}}]},
    {"ok": 1.0, "writeConcernError": {"code": 64, "errmsg": "timeout", "errInfo": {"wtimeout": True}}},
    {"isWritablePrimary": True, "hosts": ["a:1", "b:2"], "arbiters": [], "passives": ["c:3"], "setName": "s",
     "maxWireVersion": 17, "compression": ["zlib"], "ok": 1.0, "$clusterTime": {"clusterTime": Timestamp(7, 1)}},
    {"conversationId": 1, "done": False, "payload": Binary(b"r=abc,s=QUJD,i=15000"), "ok": 1.0},
    {"ok": 1.0, "speculativeAuthenticate": {"conversationId": 1, "done": False, "payload": Binary(b"r=abc,s=QUJD,i=4096")}},
]

PATHS = ["a", "a.b", "address.city", "a.0.b", "", ".", "a.", ".a", "a..b", "$a", "a.$b", "ä.€"]

URIS = [
    "mongodb://127.0.0.1", "mongodb://h1:27017,h2:27018/d?replicaSet=r&readPreference=nearest&readPreferenceTags=a:b",
    "mongodb+srv://example.com/?ssl=false", "mongodb://%2Ftmp%2Fmongodb.sock", "mongodb://[::1]:27017/?w=majority",
    "mongodb://u:p@h/", "mongodb://u:p?@h/", "mongodb://h/?tls=true&tlsCAFile=/x&tlsAllowInvalidCertificates=true",
    "mongodb://h/?compressors=zlib,snappy&zlibCompressionLevel=3", "mongodb://h/?authSource=admin&authMechanism=MONGODB-X509",
    "mongodb://h/?maxStalenessSeconds=90&heartbeatFrequencyMS=10000&appName=x&retryWrites=false&journal=true",
]

PATTERNS = [
    "a%", "%b_", r"a\%b", "^ab+c?$", "a{2,3}b*?", "[a-c][^d]", "[[:alpha:]]+", r"\d\w\s\m", "(a|b|cd)*e", "(?:a|b){3}",
    "^(?=x)", r"(a)\1", "a.b|^c$", r"\u00e4", "***=a.b", "(?i)a", "[a-", "a**", "ä[ö-ü]€",
]


def document(value):
    try:
        return bson.encode({"_id": 1, "a": value})
    except bson.errors.BSONError:
        return None


def message(reply):
    body = struct.pack("<IB", 0, 0) + bson.encode(reply)
    return struct.pack("<IIII", 16 + len(body), 1, 7, 2013) + body


def compressed(reply):
    body = message(reply)[16:]
    packed = struct.pack("<IIB", 2013, len(body), 2) + zlib.compress(body)
    return struct.pack("<IIII", 16 + len(packed), 1, 7, 2012) + packed


def old_reply(reply):
    body = struct.pack("<IQII", 8, 0, 0, 1) + bson.encode(reply)
    return struct.pack("<IIII", 16 + len(body), 1, 7, 1) + body


def chosen(numbers, texts):
    """Each text after each first byte."""
    return [bytes([number]) + text.encode() for number in numbers for text in texts]


SEEDS = {
    "document": [bytes([255 if number % 2 else number % 27]) + data
                 for number, data in enumerate(filter(None, map(document, VALUES)))],
    "json": chosen((0, 1), JSON),
    "message": [write(reply) for write in (message, compressed, old_reply) for reply in REPLIES],
    "option": chosen((0,), URIS) + chosen((1,), PATHS),
    "pattern": chosen(range(0, 16, 3), PATTERNS),
}
