"""Run aggregation pipelines by hand, and compare their results with SQL's."""
import datetime
import decimal

from bson import Decimal128
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument

UNREAD = CodecOptions(document_class=RawBSONDocument)


def run(database, collection, stages, codec_options=UNREAD):
    """Returns all documents of a pipeline, as fetch() does."""
    return fetch(database, {"aggregate": collection, "pipeline": stages, "cursor": {}, "allowDiskUse": True}, codec_options)


def fetch(database, command, codec_options=UNREAD):
    """Returns all documents of a find or aggregate, fetched by plain commands; by default their fields are not decoded."""
    collection = next(iter(command.values()))
    reply = database.command(command, codec_options=codec_options)
    documents = list(reply["cursor"]["firstBatch"])
    while reply["cursor"]["id"]:
        reply = database.command("getMore", reply["cursor"]["id"], collection=collection, codec_options=codec_options)
        documents += reply["cursor"]["nextBatch"]
    return documents


def agrees(database, collection, stages, columns, expected):
    """Does it return the same rows as SQL, except for the last digits of sums and quotients?

    'expected' are rows of texts, as COPY writes them.
    """
    documents = run(database, collection, stages, CodecOptions())
    if not documents and {text for row in expected for text in row} <= {"\\N"}:
        return True                 # an aggregate over no rows: NULL in SQL, no document in MongoDB
    if len(documents) != len(expected):
        return False
    return all(same_value(document[column], text)
               for document, row in zip(documents, expected) for column, text in zip(columns, row))


def same_value(value, text):
    if isinstance(value, str):
        return value == text
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ").startswith(text)
    if isinstance(value, Decimal128):
        value = value.to_decimal()
    exact = decimal.Decimal(text)
    return abs(decimal.Decimal(value) - exact) <= abs(exact) * decimal.Decimal("1e-9")
