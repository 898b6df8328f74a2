#!/usr/bin/env python3
"""Loads the data of the tests in sql/: database mongo_fdw_regress.

Everything in this database is dropped first.  A test that writes uses
its own collections, whose names begin with "written_".
"""
import argparse
import datetime
import uuid

import bson
import pymongo

DATABASE = "mongo_fdw_regress"
UTC = datetime.timezone.utc


def oid(number):
    return bson.ObjectId(f"{number:024x}")


def numbers():
    """1 to 1000, as values of several types; every tenth document lacks the square."""
    for n in range(1, 1001):
        document = {"_id": n, "n": n, "big": bson.Int64(n * 10_000_000_000), "half": n / 2,
                    "price": bson.Decimal128(f"{n}.{n % 100:02d}"), "even": n % 2 == 0,
                    "name": f"number {n}", "modulo": n % 7,
                    "day": datetime.datetime(2020, 1, 1) + datetime.timedelta(days=n)}
        if n % 10:
            document["square"] = n * n
        yield document


def one_of_each():
    """One document with every type of field, one with none, one with nulls."""
    yield {
        "_id": oid(1), "f_bool": True, "f_int32": 2147483647, "f_int64": bson.Int64(2**63 - 1),
        "f_double": 2.5, "f_decimal": bson.Decimal128("12345678901234567890.123456789"),
        "f_string": "Grüße, 世界 🐘", "f_binary": b"\x00\x01\xff", "f_uuid": bson.Binary.from_uuid(
            uuid.UUID("01234567-89ab-cdef-0123-456789abcdef")),
        "f_date": datetime.datetime(2024, 2, 29, 12, 34, 56, 789000, UTC), "f_oid": oid(0xabcdef),
        "f_document": {"a": 1, "b": {"c": "deep"}, "d": [1, 2]}, "f_array": [1, 2, 3],
        "f_words": ["one", "two", "three"],
    }
    yield {"_id": oid(2)}
    yield {"_id": oid(3), **{name: None for name in (
        "f_bool", "f_int32", "f_int64", "f_double", "f_decimal", "f_string", "f_binary",
        "f_uuid", "f_date", "f_oid", "f_document", "f_array", "f_words")}}
    yield {
        "_id": oid(4), "f_bool": False, "f_int32": -2147483648, "f_int64": bson.Int64(-(2**63)),
        "f_double": float("nan"), "f_decimal": bson.Decimal128("-0.001"), "f_string": "",
        "f_binary": b"", "f_uuid": bson.Binary.from_uuid(uuid.UUID(int=0)),
        "f_date": datetime.datetime(1, 1, 1, tzinfo=UTC), "f_oid": oid(0),
        "f_document": {}, "f_array": [], "f_words": [],
    }


def nulls():
    """Documents for three-valued logic."""
    yield from ({"_id": 1, "a": 1, "b": 1}, {"_id": 2, "a": 1, "b": None}, {"_id": 3, "a": 1},
                {"_id": 4, "a": None, "b": 2}, {"_id": 5, "b": 2}, {"_id": 6, "a": None, "b": None},
                {"_id": 7}, {"_id": 8, "a": 2, "b": 1})


def mismatches():
    """Fields that do not fit their column, and one that does."""
    yield from ({"_id": 1, "v": 10}, {"_id": 2, "v": "ten"}, {"_id": 3, "v": [10]},
                {"_id": 4, "v": {"ten": 10}}, {"_id": 5, "v": 10.0}, {"_id": 6, "v": 10.5},
                {"_id": 7, "v": bson.Int64(2**40)}, {"_id": 8})


def people():
    """Nested documents and arrays."""
    cities = ("Oslo", "Kyoto", "Leeds")
    for n in range(1, 13):
        document = {"_id": oid(n), "name": f"person {n}", "age": 20 + n, "Mixed Case": n}
        if n % 4:
            document["address"] = {"city": cities[n % 3], "location": {"lat": n + 0.5}}
        document["phones"] = [f"+{n}{k}" for k in range(n % 3)]
        yield document


def join_outer():
    """Keys that are numbers of any type, missing, null or duplicate; and a field t2."""
    yield from ({"_id": 1, "x": 1, "s": "u", "t2": {"x": 9}, "t1": 5}, {"_id": 2, "x": 2.0, "s": str(oid(7))},
                {"_id": 3, "x": None, "s": oid(7)}, {"_id": 4}, {"_id": 5, "x": bson.Int64(2), "s": "v", "t2": 4},
                {"_id": 6, "x": 7, "s": "zz"})


def join_inner():
    yield from ({"_id": 1, "x": 1, "s": "u", "y": 10}, {"_id": 2, "x": bson.Decimal128("2"), "s": oid(7), "y": 20},
                {"_id": 3, "x": None, "y": 30}, {"_id": 4, "y": 40}, {"_id": 5, "x": 2, "s": str(oid(7)), "y": 5},
                {"_id": 6, "x": 3})


def join_third():
    for n in range(1, 30):
        yield {"_id": n, "z": n * 10}


COLLECTIONS = {"numbers": numbers, "one_of_each": one_of_each, "nulls": nulls,
               "mismatches": mismatches, "people": people, "join_outer": join_outer,
               "join_inner": join_inner, "join_third": join_third}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=27017)
    arguments = parser.parse_args()
    client = pymongo.MongoClient(arguments.host, arguments.port, serverSelectionTimeoutMS=10000)
    client.drop_database(DATABASE)
    for name, documents in COLLECTIONS.items():
        client[DATABASE][name].insert_many(list(documents()))
    client[DATABASE].numbers.create_index("n")
    client[DATABASE].join_inner.create_index("x")
    client[DATABASE].join_inner.create_index("s")


if __name__ == "__main__":
    main()
