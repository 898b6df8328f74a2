"""TPC-H's queries in DuckDB, over what PyMongoArrow fetches from MongoDB.

As a careful user would write it: of each collection that a query names, its columns
are fetched as Arrow tables, of the documents that satisfy the conditions on that
collection alone.  The time is that of the fetches and of the query.
"""
import re
import warnings

import duckdb
import numpy
import pyarrow

from pipelines import MONEY as MAKE_MONEY, Q19_CASES, date, from_to
from schema import MONEY, TABLES

with warnings.catch_warnings():		# of the build: a larger structure than it knew
    warnings.simplefilter("ignore", RuntimeWarning)
    from pymongoarrow.api import Schema, find_arrow_all
    from pymongoarrow.types import Decimal128Type

ARROW_TYPES = {"integer": pyarrow.int32(), "bigint": pyarrow.int64(), "text": pyarrow.string(), "date": pyarrow.date32()}


def between(field, first, last):
    return {field: {"$gte": date(first), "$lte": date(last)}}


def filters(number, money):
    """Returns {collection: query filter} of a query; none of a collection that it reads in two ways."""
    late = {"$expr": {"$lt": ["$l_commitdate", "$l_receiptdate"]}}
    return {
        1: {"lineitem": {"l_shipdate": {"$lte": date("1998-09-02")}}},
        2: {"part": {"p_size": 15, "p_type": {"$regex": "BRASS$"}}, "region": {"r_name": "EUROPE"}},
        3: {"customer": {"c_mktsegment": "BUILDING"}, "orders": {"o_orderdate": {"$lt": date("1995-03-15")}},
            "lineitem": {"l_shipdate": {"$gt": date("1995-03-15")}}},
        4: {"orders": from_to("o_orderdate", "1993-07-01", "1993-10-01"), "lineitem": late},
        5: {"region": {"r_name": "ASIA"}, "orders": from_to("o_orderdate", "1994-01-01", "1995-01-01")},
        6: {"lineitem": {**from_to("l_shipdate", "1994-01-01", "1995-01-01"), "l_quantity": {"$lt": 24},
                         "l_discount": {"$gte": money("0.05"), "$lte": money("0.07")}}},
        7: {"nation": {"n_name": {"$in": ["FRANCE", "GERMANY"]}},
            "lineitem": between("l_shipdate", "1995-01-01", "1996-12-31")},
        8: {"region": {"r_name": "AMERICA"}, "orders": between("o_orderdate", "1995-01-01", "1996-12-31"),
            "part": {"p_type": "ECONOMY ANODIZED STEEL"}},
        9: {"part": {"p_name": {"$regex": "green"}}},
        10: {"orders": from_to("o_orderdate", "1993-10-01", "1994-01-01"), "lineitem": {"l_returnflag": "R"}},
        11: {"nation": {"n_name": "GERMANY"}},
        12: {"lineitem": {"l_shipmode": {"$in": ["MAIL", "SHIP"]}, **from_to("l_receiptdate", "1994-01-01", "1995-01-01"),
                          "$expr": {"$and": [late["$expr"], {"$lt": ["$l_shipdate", "$l_commitdate"]}]}}},
        13: {"orders": {"o_comment": {"$not": {"$regex": "special.*requests", "$options": "s"}}}},
        14: {"lineitem": from_to("l_shipdate", "1995-09-01", "1995-10-01")},
        15: {"lineitem": from_to("l_shipdate", "1996-01-01", "1996-04-01")},
        16: {"part": {"p_brand": {"$ne": "Brand#45"}, "p_type": {"$not": {"$regex": "^MEDIUM POLISHED"}},
                      "p_size": {"$in": [49, 14, 23, 45, 19, 3, 36, 9]}},
             "supplier": {"s_comment": {"$regex": "Customer.*Complaints", "$options": "s"}}},
        17: {"part": {"p_brand": "Brand#23", "p_container": "MED BOX"}},
        19: {"part": {"$or": [{"p_brand": brand, "p_size": {"$gte": 1, "$lte": size},
                               "p_container": {"$in": [f"{prefix} {name}" for name in containers]}}
                              for brand, prefix, containers, _, size in Q19_CASES]},
             "lineitem": {"l_shipmode": {"$in": ["AIR", "AIR REG"]}, "l_shipinstruct": "DELIVER IN PERSON"}},
        20: {"nation": {"n_name": "CANADA"}, "part": {"p_name": {"$regex": "^forest"}},
             "lineitem": from_to("l_shipdate", "1994-01-01", "1995-01-01")},
        21: {"nation": {"n_name": "SAUDI ARABIA"}, "orders": {"o_orderstatus": "F"}},
        22: {"customer": {"c_phone": {"$regex": "^(13|31|23|29|30|18|17)"}}},
    }.get(number, {})


def decimals(column):
    """Returns numeric(15,2) of PyMongoArrow's Decimal128, which DuckDB cannot read: two integers each, low and high.

    In the high one are the sign and, from bit 49, the exponent plus 6176; the digits of money are in the low one.
    """
    stored = column.combine_chunks().storage
    low, high = numpy.frombuffer(stored.buffers()[1], "<i8").reshape(-1, 2)[stored.offset:stored.offset + len(stored)].T
    cents = low * 10 ** (((high >> 49) & 0x3fff) - 6174) * numpy.where(high < 0, -1, 1)
    wide = numpy.stack((cents, cents >> 63), axis=1)
    return pyarrow.Array.from_buffers(pyarrow.decimal128(15, 2), len(cents), [None, pyarrow.py_buffer(wide)])


class Peer:
    """DuckDB in this process."""

    def __init__(self, lab, client, folder):
        self.client = client

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def fetch(self, kind, name, columns, condition):
        types = {**ARROW_TYPES, MONEY: Decimal128Type() if kind == "decimal" else pyarrow.float64()}
        schema = Schema({column: types[sql_type] for column, sql_type in columns})
        table = find_arrow_all(self.client["tpch_" + kind][name], condition, schema=schema)
        for position, (column, sql_type) in enumerate(columns):
            if types[sql_type] == Decimal128Type():
                table = table.set_column(position, column, decimals(table[column]))
        return table

    def answer(self, kind, number, text):
        """Returns the rows of a query."""
        words = set(re.findall(r"\w+", text))
        conditions = filters(number, MAKE_MONEY[kind])
        with duckdb.connect() as session:
            for name in words & TABLES.keys():
                columns = [column for column in TABLES[name].columns if column[0] in words]
                session.register(name, self.fetch(kind, name, columns, conditions.get(name, {})))
            return session.execute(text).fetchall()
