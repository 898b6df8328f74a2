"""The first few of a million sales, in an order that an index has or not."""
import datetime

from sales import Sales

QUESTIONS = [
    ("top 10 by a field without index", "SELECT _id, product FROM sales ORDER BY product DESC, _id LIMIT 10", "sales",
     [{"$sort": {"product": -1, "_id": 1}}, {"$limit": 10}, {"$project": {"product": 1}}]),
    ("latest 100 by an index", "SELECT placed FROM sales ORDER BY placed DESC LIMIT 100", "sales",
     [{"$sort": {"placed": -1}}, {"$limit": 100}, {"$project": {"placed": 1}}]),
    ("latest 100 of a client",
     "SELECT _id, placed FROM sales WHERE client = 42 ORDER BY placed DESC, _id LIMIT 100", "sales",
     [{"$match": {"client": 42}}, {"$sort": {"placed": -1, "_id": 1}}, {"$limit": 100}, {"$project": {"placed": 1}}]),
    ("top 10 of a month by numeric",
     "SELECT _id, price FROM sales WHERE placed >= '2023-03-01' AND placed < '2023-04-01' ORDER BY price DESC, _id LIMIT 10",
     "sales",
     [{"$match": {"placed": {"$gte": datetime.datetime(2023, 3, 1), "$lt": datetime.datetime(2023, 4, 1)}}},
      {"$sort": {"price": -1, "_id": 1}}, {"$limit": 10}, {"$project": {"price": 1}}]),
    ("top 10 of 10,000 groups by their sums",
     "SELECT client, sum(quantity) AS s FROM sales GROUP BY client ORDER BY s DESC, client LIMIT 10", "sales",
     [{"$group": {"_id": "$client", "s": {"$sum": "$quantity"}}}, {"$sort": {"s": -1, "_id": 1}}, {"$limit": 10},
      {"$set": {"client": "$_id"}}]),
    ("page 100 of 20, ordered by _id", "SELECT _id, client FROM sales ORDER BY _id LIMIT 20 OFFSET 2000", "sales",
     [{"$sort": {"_id": 1}}, {"$skip": 2000}, {"$limit": 20}, {"$project": {"client": 1}}]),
]


def run(lab):
    return Sales(lab).ask_all(QUESTIONS)
