"""Inserts values that no driver writes into db.invalid of the MongoDB at this URI: Strings with
invalid UTF-8, an Array whose keys are not numbers; and a valid String.  Inserts documents with
repeated keys into db.repeated, and such as libbson refuses, with a Binary of subtype 2 whose inner
length is wrong, into db.broken."""
import sys

from bson.raw_bson import RawBSONDocument
from pymongo import MongoClient

import bson_values

values = [bson_values.string(text) for text in (b"abc", b"a\xff", b"\x80abc", b"ab\xed\xa0\x80")]
values.append(bson_values.array_with_keys(("5", bson_values.int32(7)), ("x", bson_values.array())))
documents = [RawBSONDocument(bson_values.document([
    ("_id", bson_values.int32(number)), ("t", value), ("d", bson_values.string("hidden" if number else "seen"))]))
    for number, value in enumerate(values)]
MongoClient(sys.argv[1])["db"]["invalid"].insert_many(documents)

MongoClient(sys.argv[1])["db"]["broken"].insert_many(RawBSONDocument(bson_values.document(
    [("_id", bson_values.int32(number)), ("a", bson_values.int32(number)), ("b", value), ("c", bson_values.int32(number))]))
    for number, value in enumerate([bson_values.binary_2(b"ab"), bson_values.binary(b"\x05\0\0\0ab", 2), bson_values.binary(b"ab", 2)]))

inner = bson_values.doc(("b", bson_values.int32(2)), ("c", bson_values.int32(0)), ("b", bson_values.int32(1)))
many = bson_values.doc(*((f"k{n % 100}", bson_values.int32(n)) for n in range(200)))
MongoClient(sys.argv[1])["db"]["repeated"].insert_many(RawBSONDocument(bson_values.document(
    [("_id", bson_values.int32(number))] + members)) for number, members in enumerate([
        [("j", inner), ("n", bson_values.int32(5)), ("n", bson_values.int32(7))],
        [("j", bson_values.array(inner, inner))],
        [("j", many), ("j", inner)]]))
