"""Inserts values that no driver writes into db.invalid of the MongoDB at this URI: Strings with
invalid UTF-8, an Array whose keys are not numbers; and a valid String."""
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
