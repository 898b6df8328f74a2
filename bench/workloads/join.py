"""A million sales joined with ten thousand clients, under aggregates."""
import datetime

from sales import Sales

CLIENT = {"$lookup": {"from": "clients", "localField": "_id", "foreignField": "_id", "as": "c"}}
SUMS = {"$group": {"_id": "$client", "s": {"$sum": "$quantity"}}}
DAY = {"placed": {"$gte": datetime.datetime(2023, 3, 1), "$lt": datetime.datetime(2023, 3, 2)}}

QUESTIONS = [
    ("sales by country: group before lookup",
     "SELECT country, sum(quantity) AS s FROM sales JOIN clients ON clients._id = client GROUP BY country ORDER BY country",
     "sales",
     [SUMS, CLIENT, {"$unwind": "$c"},
      {"$group": {"_id": "$c.country", "s": {"$sum": "$s"}}}, {"$sort": {"_id": 1}}, {"$set": {"country": "$_id"}}]),
    ("sales of the clients of a city, by an index",
     "SELECT name, sum(quantity) AS s FROM clients JOIN sales ON client = clients._id WHERE city = 'city 007' "
     "GROUP BY clients._id, name ORDER BY clients._id", "clients",
     [{"$match": {"city": "city 007"}},
      {"$lookup": {"from": "sales", "localField": "_id", "foreignField": "client", "as": "s",
                   "pipeline": [{"$project": {"_id": 0, "quantity": 1}}]}},
      {"$match": {"s": {"$ne": []}}}, {"$sort": {"_id": 1}}, {"$project": {"name": 1, "s": {"$sum": "$s.quantity"}}}]),
    ("the ten best clients, with names",
     "SELECT clients._id, name, sum(quantity) AS s FROM sales JOIN clients ON clients._id = client "
     "GROUP BY clients._id, name ORDER BY s DESC, clients._id LIMIT 10", "sales",
     [SUMS, CLIENT, {"$unwind": "$c"}, {"$sort": {"s": -1, "_id": 1}}, {"$limit": 10}, {"$set": {"name": "$c.name"}}]),
    # a client that is missing takes a place among the ten, so that $limit may come first
    ("the ten best clients, then their names",
     "SELECT clients._id, name, s FROM (SELECT client, sum(quantity) AS s FROM sales GROUP BY client "
     "ORDER BY s DESC, client LIMIT 10) AS best JOIN clients ON clients._id = client ORDER BY s DESC, client", "sales",
     [SUMS, {"$sort": {"s": -1, "_id": 1}}, {"$limit": 10}, CLIENT, {"$unwind": "$c"}, {"$set": {"name": "$c.name"}}]),
    ("sales of a day with their clients",
     "SELECT sales._id, name FROM sales JOIN clients ON clients._id = client "
     "WHERE placed >= '2023-03-01' AND placed < '2023-03-02' ORDER BY sales._id", "sales",
     [{"$match": DAY}, {"$lookup": {**CLIENT["$lookup"], "localField": "client"}}, {"$unwind": "$c"}, {"$sort": {"_id": 1}},
      {"$project": {"name": "$c.name"}}]),
    ("clients without a sale on a day, by country",
     "SELECT country, count(*) AS n FROM clients WHERE NOT EXISTS (SELECT FROM sales WHERE client = clients._id "
     "AND placed >= '2023-03-01' AND placed < '2023-03-02') GROUP BY country ORDER BY country", "sales",
     [{"$match": DAY}, {"$group": {"_id": "$client"}}, {"$group": {"_id": None, "clients": {"$push": "$_id"}}},
      {"$lookup": {"from": "clients", "let": {"busy": "$clients"}, "as": "c", "pipeline": [
          {"$group": {"_id": "$country", "all": {"$sum": 1},
                      "busy": {"$sum": {"$cond": [{"$in": ["$_id", "$$busy"]}, 1, 0]}}}}]}},
      {"$unwind": "$c"}, {"$sort": {"c._id": 1}},
      {"$project": {"_id": 0, "country": "$c._id", "n": {"$subtract": ["$c.all", "$c.busy"]}}}]),
]


def run(lab):
    return Sales(lab).ask_all(QUESTIONS)
