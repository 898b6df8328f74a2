"""Aggregates over a million sales, all of them or some, into one group or many."""
import datetime

from sales import Sales

MONTH = {"placed": {"$gte": datetime.datetime(2023, 3, 1), "$lt": datetime.datetime(2023, 4, 1)}}
IN_MONTH = "placed >= '2023-03-01' AND placed < '2023-04-01'"


def group(key, name, **sums):
    """$group by a field, in its order, the field back under its name."""
    return [{"$group": {"_id": "$" + key, **sums}}, {"$sort": {"_id": 1}}, {"$set": {name: "$_id"}}]


QUESTIONS = [
    ("sum of an integer, one group", "SELECT sum(quantity) AS s FROM sales", "sales",
     [{"$group": {"_id": None, "s": {"$sum": "$quantity"}}}]),
    ("sum and average of a double, one group", "SELECT sum(weight) AS s, avg(weight) AS a FROM sales", "sales",
     [{"$group": {"_id": None, "s": {"$sum": "$weight"}, "a": {"$avg": "$weight"}}}]),
    ("count in 20 groups", "SELECT category, count(*) AS n FROM sales GROUP BY category ORDER BY category", "sales",
     group("category", "category", n={"$sum": 1})),
    ("sums of numeric and integer in 20 groups",
     "SELECT category, sum(price) AS p, sum(quantity) AS q FROM sales GROUP BY category ORDER BY category", "sales",
     group("category", "category", p={"$sum": "$price"}, q={"$sum": "$quantity"})),
    ("sum in 10,000 groups", "SELECT client, sum(quantity) AS s FROM sales GROUP BY client ORDER BY client", "sales",
     group("client", "client", s={"$sum": "$quantity"})),
    ("minimum and maximum in 100,000 groups",
     "SELECT product, min(quantity) AS a, max(quantity) AS b FROM sales GROUP BY product ORDER BY product", "sales",
     group("product", "product", a={"$min": "$quantity"}, b={"$max": "$quantity"})),
    ("groups of a month by an index",
     f"SELECT category, sum(price) AS p, count(*) AS n FROM sales WHERE {IN_MONTH} GROUP BY category ORDER BY category",
     "sales", [{"$match": MONTH}, *group("category", "category", p={"$sum": "$price"}, n={"$sum": 1})]),
    ("HAVING that leaves few groups",
     "SELECT client, count(*) AS n FROM sales GROUP BY client HAVING count(*) > 135 ORDER BY client", "sales",
     [{"$group": {"_id": "$client", "n": {"$sum": 1}}}, {"$match": {"n": {"$gt": 135}}}, {"$sort": {"_id": 1}},
      {"$set": {"client": "$_id"}}]),
    ("DISTINCT of an indexed field", "SELECT DISTINCT client FROM sales ORDER BY client", "sales",
     [{"$group": {"_id": "$client"}}, {"$sort": {"_id": 1}}, {"$set": {"client": "$_id"}}]),
]


def run(lab):
    return Sales(lab).ask_all(QUESTIONS)
