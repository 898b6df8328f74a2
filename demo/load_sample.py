#!/usr/bin/env python3
"""Load the sample: a shop's customers, products, orders and reviews.

The documents, including their _id, are the same on every machine, because they
depend on the seed only.  They are irregular: fields are missing or null,
an address may be nested or absent, an order contains its lines, prices are
Decimal128.
"""
import argparse
import datetime
import random
import time

import bson
import pymongo

SEED = 20130501
START = datetime.datetime(2021, 1, 1)
COUNTS = {"customers": 5000, "products": 1200, "orders": 20000, "reviews": 12000}

FIRST_NAMES = ("Ada Alan Anna Björn Chen Clara Dmitri Edgar Elena Fatima Grace Hugo Ines Jim "
               "Jorge Kenji Lena Linus Maria Michael Noor Olga Pavel Rosa Sofia Tom Uma Yuki").split()
LAST_NAMES = ("Codd Date Gray Hopper Lovelace Stonebraker Turing Dijkstra Knuth Liskov Lamport "
              "Kernighan Müller García Nakamura Silva Novák Okafor Haddad Larsen").split()
CITIES = (("Lisbon", "PT"), ("Oslo", "NO"), ("Kyoto", "JP"), ("Toronto", "CA"), ("Nairobi", "KE"),
          ("Valparaíso", "CL"), ("Leipzig", "DE"), ("Leeds", "GB"), ("Portland", "US"), ("Pune", "IN"))
STREETS = "Station Road,Mill Lane,High Street,Harbour Way,Rose Alley,Long Street".split(",")
SEGMENTS = ("consumer", "consumer", "consumer", "business", "public")
CATEGORIES = {
    "kitchen": "kettle,pan,knife,toaster,whisk,grater".split(","),
    "garden": "spade,rake,hose,lantern,bench,trowel".split(","),
    "office": "desk,chair,lamp,stapler,shelf,notebook".split(","),
    "sport": "ball,racket,rope,bicycle,helmet,mat".split(","),
}
ADJECTIVES = "small large folding steel oak blue quiet light classic sturdy".split()
TAGS = "new sale gift eco bestseller fragile heavy".split()
STATUSES = ("delivered", "delivered", "delivered", "shipped", "paid", "cancelled")
OPINIONS = ("does what it should", "broke after a week", "a present, and liked", "smaller than it looks",
            "would buy again", "arrived late but works", "the colour is off")


def money(cents):
    """An amount as Decimal128, with two digits after the point."""
    return bson.Decimal128(f"{cents // 100}.{cents % 100:02d}")


def object_id(kind, number):
    """An ObjectId that depends on its arguments only."""
    return bson.ObjectId(bytes((0x60, 0, 0, kind)) + number.to_bytes(8, "big"))


def moment(rng, days):
    """A random time, to the millisecond, within 'days' days after START."""
    return START + datetime.timedelta(milliseconds=rng.randrange(days * 86400 * 1000))


def make_customers(rng, count):
    for number in range(1, count + 1):
        first, last = rng.choice(FIRST_NAMES), rng.choice(LAST_NAMES)
        city, country = rng.choice(CITIES)
        customer = {
            "_id": object_id(1, number),
            "number": number,
            "name": f"{first} {last}",
            "segment": rng.choice(SEGMENTS),
            "active": rng.random() < 0.9,
            "since": moment(rng, 1000),
        }
        if rng.random() < 0.8:
            customer["email"] = f"{first}.{last}.{number}@shop.example".lower()
        if rng.random() < 0.95:
            customer["address"] = {
                "street": f"{rng.randrange(1, 200)} {rng.choice(STREETS)}",
                "city": city,
                "country": country,
                "location": {"lat": round(rng.uniform(-50, 65), 4), "lon": round(rng.uniform(-120, 140), 4)},
            }
        if rng.random() < 0.3:
            customer["loyalty_points"] = rng.randrange(0, 5000)
        elif rng.random() < 0.1:
            customer["loyalty_points"] = None
        yield customer


def make_products(rng, count):
    for number in range(1, count + 1):
        category = rng.choice(list(CATEGORIES))
        product = {
            "_id": number,
            "name": f"{rng.choice(ADJECTIVES)} {rng.choice(CATEGORIES[category])}",
            "category": category,
            "price": money(rng.randrange(199, 49999)),
            "stock": rng.randrange(0, 500),
            "tags": rng.sample(TAGS, rng.randrange(0, 4)),
        }
        if rng.random() < 0.7:
            product["dimensions"] = {"width": rng.randrange(1, 200), "height": rng.randrange(1, 200),
                                     "weight": round(rng.uniform(0.1, 40), 2)}
        if rng.random() < 0.1:
            product["discontinued"] = moment(rng, 1400)
        yield product


def make_orders(rng, count, products, customers):
    for number in range(1, count + 1):
        lines, total = [], 0
        for product in rng.sample(products, rng.choice((1, 1, 2, 3, 5))):
            quantity = rng.choice((1, 1, 1, 2, 4))
            cents = int(product["price"].to_decimal() * 100)
            total += quantity * cents
            lines.append({"product": product["_id"], "quantity": quantity, "price": product["price"]})
        status = rng.choice(STATUSES)
        placed = moment(rng, 1400)
        order = {
            "_id": number,
            "customer": rng.randrange(1, customers + 1),
            "placed": placed,
            "status": status,
            "lines": lines,
            "total": money(total),
        }
        if status in ("delivered", "shipped"):
            order["shipped"] = placed + datetime.timedelta(hours=rng.randrange(4, 120))
        if rng.random() < 0.05:
            order["note"] = rng.choice(("leave at the door", "ring twice", "a gift: no invoice", ""))
        yield order


def make_reviews(rng, count, products, customers):
    for number in range(1, count + 1):
        review = {
            "_id": object_id(4, number),
            "product": rng.randrange(1, products + 1),
            "customer": rng.randrange(1, customers + 1),
            "stars": rng.choice((1, 2, 3, 4, 4, 5, 5, 5)),
            "written": moment(rng, 1400),
        }
        if rng.random() < 0.6:
            review["text"] = rng.choice(OPINIONS)
        if rng.random() < 0.2:
            review["helpful"] = {"yes": rng.randrange(0, 40), "no": rng.randrange(0, 10)}
        yield review


def mark_of(database):
    """The collection that records what was loaded, in another database than the sample."""
    return database.client.mongo_fdw_lab.loaded


def load(database):
    rng = random.Random(SEED)
    products = list(make_products(rng, COUNTS["products"]))
    content = {
        "customers": list(make_customers(rng, COUNTS["customers"])),
        "products": products,
        "orders": list(make_orders(rng, COUNTS["orders"], products, COUNTS["customers"])),
        "reviews": list(make_reviews(rng, COUNTS["reviews"], len(products), COUNTS["customers"])),
    }
    for name, documents in content.items():
        database.drop_collection(name)
        database[name].insert_many(documents, ordered=False)
    database.customers.create_index("number", unique=True)
    database.orders.create_index("customer")
    database.orders.create_index([("status", 1), ("placed", -1)])
    database.reviews.create_index("product")
    mark_of(database).replace_one({"_id": database.name}, {"seed": SEED, "counts": COUNTS}, upsert=True)


def is_loaded(database):
    """Return whether the database has this sample, with all of its documents."""
    mark = mark_of(database).find_one({"_id": database.name})
    return (mark is not None and mark.get("seed") == SEED and mark.get("counts") == COUNTS
            and all(database[name].estimated_document_count() == count for name, count in COUNTS.items()))


def initiate(host, port, name):
    """Make a mongod that was started with --replSet its only member, and wait for a primary."""
    admin = pymongo.MongoClient(host, port, directConnection=True).admin
    admin.command("replSetInitiate", {"_id": name, "members": [{"_id": 0, "host": f"{host}:{port}"}]})
    while not admin.command("hello")["isWritablePrimary"]:
        time.sleep(0.1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=27017)
    parser.add_argument("--database", default="shop")
    parser.add_argument("--again", action="store_true", help="load the sample even if the database has it")
    parser.add_argument("--initiate", metavar="NAME",
                        help="make the server a replica set of one member first")
    arguments = parser.parse_args()

    if arguments.initiate:
        initiate(arguments.host, arguments.port, arguments.initiate)
    client = pymongo.MongoClient(arguments.host, arguments.port, serverSelectionTimeoutMS=10000)
    database = client[arguments.database]
    if arguments.again or not is_loaded(database):
        load(database)
        print("loaded " + ", ".join(f"{count} {name}" for name, count in COUNTS.items())
              + f" into database {arguments.database}")


if __name__ == "__main__":
    main()
