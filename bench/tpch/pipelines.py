"""Aggregation pipelines for TPC-H queries, as someone who knows the data writes them by hand.

Only for queries where a sensible one exists: one that begins with what is
selective or already grouped and follows indexes from there.  Each returns the
columns of the SQL query by name.  "money" makes a constant of the type that money
has in the collection, as MongoDB compares a Double with a Decimal128 exactly.
"""
import datetime

from bson import Decimal128


def date(text):
    return datetime.datetime.fromisoformat(text)


def lookup(collection, local, foreign, name, *stages):
    """A $lookup that an index on the foreign field serves."""
    stage = {"from": collection, "localField": local, "foreignField": foreign, "as": name}
    return {"$lookup": {**stage, "pipeline": list(stages)} if stages else stage}


def joined(collection, local, foreign, name, *stages):
    """The same, a document for each match."""
    return [lookup(collection, local, foreign, name, *stages), {"$unwind": "$" + name}]


def fields(*names):
    return {"$project": {"_id": 0, **dict.fromkeys(names, 1)}}


def revenue(price="$l_extendedprice", discount="$l_discount"):
    return {"$multiply": [price, {"$subtract": [1, discount]}]}


def revenue_of(array):
    """The sum over an array of line items."""
    return {"$sum": {"$map": {"input": array, "as": "l", "in": revenue("$$l.l_extendedprice", "$$l.l_discount")}}}


def from_to(field, first, end):
    return {field: {"$gte": date(first), "$lt": date(end)}}


PRICE = fields("l_extendedprice", "l_discount")


def q01(money):
    return "lineitem", [
        {"$match": {"l_shipdate": {"$lte": date("1998-09-02")}}},
        {"$group": {
            "_id": {"f": "$l_returnflag", "s": "$l_linestatus"},
            "sum_qty": {"$sum": "$l_quantity"},
            "sum_base_price": {"$sum": "$l_extendedprice"},
            "sum_disc_price": {"$sum": revenue()},
            "sum_charge": {"$sum": {"$multiply": [revenue(), {"$add": [1, "$l_tax"]}]}},
            "avg_qty": {"$avg": "$l_quantity"},
            "avg_price": {"$avg": "$l_extendedprice"},
            "avg_disc": {"$avg": "$l_discount"},
            "count_order": {"$sum": 1}}},
        {"$sort": {"_id": 1}},
        {"$set": {"l_returnflag": "$_id.f", "l_linestatus": "$_id.s"}}]


def q03(money):
    return "customer", [
        {"$match": {"c_mktsegment": "BUILDING"}}, fields("c_custkey"),
        *joined("orders", "c_custkey", "o_custkey", "o", {"$match": {"o_orderdate": {"$lt": date("1995-03-15")}}},
                fields("o_orderkey", "o_orderdate", "o_shippriority")),
        lookup("lineitem", "o.o_orderkey", "l_orderkey", "l", {"$match": {"l_shipdate": {"$gt": date("1995-03-15")}}},
               PRICE),
        {"$match": {"l": {"$ne": []}}},
        {"$project": {"l_orderkey": "$o.o_orderkey", "revenue": revenue_of("$l"), "o_orderdate": "$o.o_orderdate",
                      "o_shippriority": "$o.o_shippriority"}},
        {"$sort": {"revenue": -1, "o_orderdate": 1}}, {"$limit": 10}]


def q04(money):
    return "orders", [
        {"$match": from_to("o_orderdate", "1993-07-01", "1993-10-01")}, fields("o_orderkey", "o_orderpriority"),
        lookup("lineitem", "o_orderkey", "l_orderkey", "l",
               {"$match": {"$expr": {"$lt": ["$l_commitdate", "$l_receiptdate"]}}}, {"$limit": 1}, fields("l_orderkey")),
        {"$match": {"l": {"$ne": []}}},
        {"$group": {"_id": "$o_orderpriority", "order_count": {"$sum": 1}}},
        {"$sort": {"_id": 1}}, {"$set": {"o_orderpriority": "$_id"}}]


def q05(money):
    return "region", [
        {"$match": {"r_name": "ASIA"}},
        *joined("nation", "r_regionkey", "n_regionkey", "n"),
        lookup("supplier", "n.n_nationkey", "s_nationkey", "s", fields("s_suppkey")),
        {"$project": {"n_name": "$n.n_name", "key": "$n.n_nationkey", "suppliers": "$s.s_suppkey"}},
        *joined("customer", "key", "c_nationkey", "c", fields("c_custkey")),
        *joined("orders", "c.c_custkey", "o_custkey", "o", {"$match": from_to("o_orderdate", "1994-01-01", "1995-01-01")},
                fields("o_orderkey")),
        lookup("lineitem", "o.o_orderkey", "l_orderkey", "l", fields("l_suppkey", "l_extendedprice", "l_discount")),
        {"$set": {"l": {"$filter": {"input": "$l", "cond": {"$in": ["$$this.l_suppkey", "$suppliers"]}}}}},
        {"$match": {"l": {"$ne": []}}},
        {"$group": {"_id": "$n_name", "revenue": {"$sum": revenue_of("$l")}}},
        {"$sort": {"revenue": -1}}, {"$set": {"n_name": "$_id"}}]


def q06(money):
    return "lineitem", [
        {"$match": {**from_to("l_shipdate", "1994-01-01", "1995-01-01"),
                    "l_discount": {"$gte": money("0.05"), "$lte": money("0.07")}, "l_quantity": {"$lt": 24}}},
        {"$group": {"_id": None, "revenue": {"$sum": {"$multiply": ["$l_extendedprice", "$l_discount"]}}}}]


def q07(money):
    return "nation", [
        {"$match": {"n_name": {"$in": ["FRANCE", "GERMANY"]}}},
        *joined("supplier", "n_nationkey", "s_nationkey", "s", fields("s_suppkey")),
        *joined("lineitem", "s.s_suppkey", "l_suppkey", "l",
                {"$match": {"l_shipdate": {"$gte": date("1995-01-01"), "$lte": date("1996-12-31")}}},
                fields("l_orderkey", "l_extendedprice", "l_discount", "l_shipdate")),
        *joined("orders", "l.l_orderkey", "o_orderkey", "o", fields("o_custkey")),
        *joined("customer", "o.o_custkey", "c_custkey", "c", fields("c_nationkey")),
        *joined("nation", "c.c_nationkey", "n_nationkey", "n2", {"$match": {"n_name": {"$in": ["FRANCE", "GERMANY"]}}}),
        {"$match": {"$expr": {"$ne": ["$n_name", "$n2.n_name"]}}},
        {"$group": {"_id": {"s": "$n_name", "c": "$n2.n_name", "y": {"$year": "$l.l_shipdate"}},
                    "revenue": {"$sum": revenue("$l.l_extendedprice", "$l.l_discount")}}},
        {"$sort": {"_id": 1}},
        {"$set": {"supp_nation": "$_id.s", "cust_nation": "$_id.c", "l_year": "$_id.y"}}]


def q08(money):
    amount = revenue("$l.l_extendedprice", "$l.l_discount")
    return "part", [
        {"$match": {"p_type": "ECONOMY ANODIZED STEEL"}}, fields("p_partkey"),
        *joined("lineitem", "p_partkey", "l_partkey", "l",
                fields("l_orderkey", "l_suppkey", "l_extendedprice", "l_discount")),
        *joined("orders", "l.l_orderkey", "o_orderkey", "o",
                {"$match": {"o_orderdate": {"$gte": date("1995-01-01"), "$lte": date("1996-12-31")}}},
                fields("o_custkey", "o_orderdate")),
        *joined("customer", "o.o_custkey", "c_custkey", "c", fields("c_nationkey")),
        *joined("nation", "c.c_nationkey", "n_nationkey", "n", fields("n_regionkey")),
        *joined("region", "n.n_regionkey", "r_regionkey", "r", {"$match": {"r_name": "AMERICA"}}),
        *joined("supplier", "l.l_suppkey", "s_suppkey", "s", fields("s_nationkey")),
        *joined("nation", "s.s_nationkey", "n_nationkey", "n2", fields("n_name")),
        {"$group": {"_id": {"$year": "$o.o_orderdate"}, "all": {"$sum": amount},
                    "one": {"$sum": {"$cond": [{"$eq": ["$n2.n_name", "BRAZIL"]}, amount, 0]}}}},
        {"$sort": {"_id": 1}},
        {"$project": {"o_year": "$_id", "mkt_share": {"$divide": ["$one", "$all"]}}}]


def q10(money):
    return "orders", [
        {"$match": from_to("o_orderdate", "1993-10-01", "1994-01-01")}, fields("o_orderkey", "o_custkey"),
        lookup("lineitem", "o_orderkey", "l_orderkey", "l", {"$match": {"l_returnflag": "R"}}, PRICE),
        {"$match": {"l": {"$ne": []}}},
        {"$group": {"_id": "$o_custkey", "revenue": {"$sum": revenue_of("$l")}}},
        {"$sort": {"revenue": -1}}, {"$limit": 20},
        *joined("customer", "_id", "c_custkey", "c"),
        *joined("nation", "c.c_nationkey", "n_nationkey", "n"),
        {"$replaceWith": {"$mergeObjects": ["$c", {"revenue": "$revenue", "n_name": "$n.n_name"}]}}]


def q11(money, fraction):
    return "nation", [
        {"$match": {"n_name": "GERMANY"}},
        *joined("supplier", "n_nationkey", "s_nationkey", "s", fields("s_suppkey")),
        *joined("partsupp", "s.s_suppkey", "ps_suppkey", "p", fields("ps_partkey", "ps_supplycost", "ps_availqty")),
        {"$group": {"_id": "$p.ps_partkey", "value": {"$sum": {"$multiply": ["$p.ps_supplycost", "$p.ps_availqty"]}}}},
        {"$setWindowFields": {"output": {"all": {"$sum": "$value"}}}},
        {"$match": {"$expr": {"$gt": ["$value", {"$multiply": ["$all", money(fraction)]}]}}},
        {"$sort": {"value": -1}}, {"$project": {"ps_partkey": "$_id", "value": 1}}]


def q12(money):
    def lines(condition):
        return {"$sum": {"$cond": [{condition: ["$o.o_orderpriority", ["1-URGENT", "2-HIGH"]]}, 1, 0]}}
    high = lines("$in")
    return "lineitem", [
        {"$match": {"l_shipmode": {"$in": ["MAIL", "SHIP"]}, **from_to("l_receiptdate", "1994-01-01", "1995-01-01"),
                    "$expr": {"$and": [{"$lt": ["$l_commitdate", "$l_receiptdate"]},
                                       {"$lt": ["$l_shipdate", "$l_commitdate"]}]}}},
        fields("l_orderkey", "l_shipmode"),
        *joined("orders", "l_orderkey", "o_orderkey", "o", fields("o_orderpriority")),
        {"$group": {"_id": "$l_shipmode", "high_line_count": high, "all": {"$sum": 1}}},
        {"$sort": {"_id": 1}},
        {"$project": {"l_shipmode": "$_id", "high_line_count": 1,
                      "low_line_count": {"$subtract": ["$all", "$high_line_count"]}}}]


def q13(money):
    return "orders", [
        {"$match": {"o_comment": {"$not": {"$regex": "special.*requests", "$options": "s"}}}},
        {"$project": {"_id": 0, "key": "$o_custkey", "n": {"$literal": 1}}},
        {"$unionWith": {"coll": "customer",
                        "pipeline": [{"$project": {"_id": 0, "key": "$c_custkey", "n": {"$literal": 0}}}]}},
        {"$group": {"_id": "$key", "n": {"$sum": "$n"}}},
        {"$group": {"_id": "$n", "custdist": {"$sum": 1}}},
        {"$sort": {"custdist": -1, "_id": -1}}, {"$set": {"c_count": "$_id"}}]


def q14(money):
    amount = revenue()
    return "lineitem", [
        {"$match": from_to("l_shipdate", "1995-09-01", "1995-10-01")}, fields("l_partkey", "l_extendedprice", "l_discount"),
        *joined("part", "l_partkey", "p_partkey", "p", fields("p_type")),
        {"$group": {"_id": None, "all": {"$sum": amount},
                    "promo": {"$sum": {"$cond": [{"$eq": [{"$substrBytes": ["$p.p_type", 0, 5]}, "PROMO"]}, amount, 0]}}}},
        {"$project": {"promo_revenue": {"$multiply": [100, {"$divide": ["$promo", "$all"]}]}}}]


def q15(money):
    return "lineitem", [
        {"$match": from_to("l_shipdate", "1996-01-01", "1996-04-01")},
        {"$group": {"_id": "$l_suppkey", "total_revenue": {"$sum": revenue()}}},
        {"$setWindowFields": {"output": {"most": {"$max": "$total_revenue"}}}},
        {"$match": {"$expr": {"$eq": ["$total_revenue", "$most"]}}},
        *joined("supplier", "_id", "s_suppkey", "s"),
        {"$sort": {"_id": 1}},
        {"$replaceWith": {"$mergeObjects": ["$s", {"total_revenue": "$total_revenue"}]}}]


def q17(money):
    return "part", [
        {"$match": {"p_brand": "Brand#23", "p_container": "MED BOX"}}, fields("p_partkey"),
        lookup("lineitem", "p_partkey", "l_partkey", "l", fields("l_quantity", "l_extendedprice")),
        {"$set": {"most": {"$multiply": [money("0.2"), {"$avg": "$l.l_quantity"}]}}},
        {"$unwind": "$l"},
        {"$match": {"$expr": {"$lt": ["$l.l_quantity", "$most"]}}},
        {"$group": {"_id": None, "sum": {"$sum": "$l.l_extendedprice"}}},
        {"$project": {"avg_yearly": {"$divide": ["$sum", 7]}}}]


def q18(money):
    return "lineitem", [
        {"$group": {"_id": "$l_orderkey", "sum": {"$sum": "$l_quantity"}}},
        {"$match": {"sum": {"$gt": 300}}},
        *joined("orders", "_id", "o_orderkey", "o"),
        *joined("customer", "o.o_custkey", "c_custkey", "c", fields("c_name", "c_custkey")),
        {"$sort": {"o.o_totalprice": -1, "o.o_orderdate": 1}}, {"$limit": 100},
        {"$replaceWith": {"$mergeObjects": ["$o", "$c", {"sum": "$sum"}]}}]


Q19_CASES = (("Brand#12", "SM", ("CASE", "BOX", "PACK", "PKG"), 1, 5), ("Brand#23", "MED", ("BAG", "BOX", "PKG", "PACK"), 10, 10),
             ("Brand#34", "LG", ("CASE", "BOX", "PACK", "PKG"), 20, 15))


def q19(money):
    return "part", [
        {"$match": {"$or": [
            {"p_brand": brand, "p_size": {"$gte": 1, "$lte": size},
             "p_container": {"$in": [f"{prefix} {name}" for name in containers]}}
            for brand, prefix, containers, _, size in Q19_CASES]}},
        fields("p_partkey", "p_brand"),
        *joined("lineitem", "p_partkey", "l_partkey", "l",
                {"$match": {"l_shipmode": {"$in": ["AIR", "AIR REG"]}, "l_shipinstruct": "DELIVER IN PERSON"}},
                fields("l_quantity", "l_extendedprice", "l_discount")),
        {"$match": {"$or": [{"p_brand": brand, "l.l_quantity": {"$gte": least, "$lte": least + 10}}
                            for brand, _, _, least, _ in Q19_CASES]}},
        {"$group": {"_id": None, "revenue": {"$sum": revenue("$l.l_extendedprice", "$l.l_discount")}}}]


def q22(money):
    return "customer", [
        {"$match": {"c_phone": {"$regex": "^(13|31|23|29|30|18|17)"}}}, fields("c_custkey", "c_phone", "c_acctbal"),
        {"$setWindowFields": {"output": {"average": {"$avg": {"$cond": [{"$gt": ["$c_acctbal", 0]}, "$c_acctbal", None]}}}}},
        {"$match": {"$expr": {"$gt": ["$c_acctbal", "$average"]}}},
        lookup("orders", "c_custkey", "o_custkey", "o", {"$limit": 1}, fields("o_custkey")),
        {"$match": {"o": []}},
        {"$group": {"_id": {"$substrBytes": ["$c_phone", 0, 2]}, "numcust": {"$sum": 1},
                    "totacctbal": {"$sum": "$c_acctbal"}}},
        {"$sort": {"_id": 1}}, {"$set": {"cntrycode": "$_id"}}]


PIPELINES = {1: q01, 3: q03, 4: q04, 5: q05, 6: q06, 7: q07, 8: q08, 10: q10, 11: q11, 12: q12, 13: q13, 14: q14, 15: q15,
             17: q17, 18: q18, 19: q19, 22: q22}
MONEY = {"decimal": Decimal128, "double": float}


def pipeline(number, kind, scale_factor):
    """(collection, pipeline) for money of that kind; None where there is none."""
    if number not in PIPELINES:
        return None
    arguments = [f"{0.0001 / scale_factor:.10f}"] if number == 11 else []
    return PIPELINES[number](MONEY[kind], *arguments)
