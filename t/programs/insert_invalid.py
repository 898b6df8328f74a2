"""Inserts Strings with invalid UTF-8, and a valid one, into db.invalid of the MongoDB at this URI."""
import sys

from bson.raw_bson import RawBSONDocument
from pymongo import MongoClient

import bson_values

documents = [RawBSONDocument(bson_values.document([
    ("_id", bson_values.int32(number)), ("t", bson_values.string(text)),
    ("d", bson_values.string("seen" if text == b"abc" else "hidden"))]))
    for number, text in enumerate([b"abc", b"a\xff", b"\x80abc", b"ab\xed\xa0\x80"])]
MongoClient(sys.argv[1])["db"]["invalid"].insert_many(documents)
