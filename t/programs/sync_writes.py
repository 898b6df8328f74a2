#!/usr/bin/env python3
"""Writes to a collection at random, from several clients, for t/111_sync.pl.

Each client inserts, replaces, updates and deletes documents of db.c, alone and in
transactions, until SIGTERM or the end of its parent.  What fails is tried again or left out: the
test compares the collection that results, whatever it is.
"""
import argparse
import os
import random
import signal
import threading
import time

import pymongo
from pymongo.errors import PyMongoError

KEYS = 400


def document(generator, key):
    return {"_id": key, "a": generator.randrange(1000), "t": "x" * generator.randrange(50),
            "n": {"deep": [generator.randrange(9), None]}, "m": generator.choice([1, 2.5, None])}


def write(generator, collection, session):
    key = generator.randrange(KEYS)
    kind = generator.randrange(7)
    if kind == 0:
        collection.replace_one({"_id": key}, document(generator, key), upsert=True, session=session)
    elif kind == 1:
        collection.delete_one({"_id": key}, session=session)
    elif kind == 2:
        collection.update_one({"_id": key}, {"$set": {"a": generator.randrange(1000)}, "$unset": {"m": 1}},
                              upsert=True, session=session)
    elif kind == 3:
        collection.update_many({"_id": {"$gte": key, "$lt": key + 5}}, {"$inc": {"a": 1}}, session=session)
    elif kind == 4:
        collection.update_one({"_id": key}, [{"$set": {"t": {"$concat": [{"$ifNull": ["$t", ""]}, "y"]}}}],
                              session=session)
    elif kind == 5:
        collection.insert_one(document(generator, KEYS + generator.randrange(10 ** 9)), session=session)
    else:
        collection.delete_many({"_id": {"$gte": KEYS}, "a": {"$lt": 300}}, session=session)


def client(number, arguments, stopping):
    generator = random.Random(arguments.seed * 1000 + number)
    connection = pymongo.MongoClient(arguments.uri, serverSelectionTimeoutMS=1000)
    collection = connection.db.c
    while not stopping.is_set():
        try:
            if generator.randrange(4) == 0:
                with connection.start_session() as session, session.start_transaction():
                    for _ in range(generator.randrange(1, 10)):
                        write(generator, collection, session)
                    if generator.randrange(5) == 0:
                        session.abort_transaction()
            else:
                write(generator, collection, None)
        except PyMongoError:
            time.sleep(0.05)
        time.sleep(arguments.pause)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--uri", required=True)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pause", type=float, default=0.003, help="seconds between writes of a client")
    arguments = parser.parse_args()
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    threads = [threading.Thread(target=client, args=(number, arguments, stopping))
               for number in range(arguments.clients)]
    for thread in threads:
        thread.start()
    parent = os.getppid()
    while not stopping.wait(1):
        if os.getppid() != parent:
            stopping.set()
    for thread in threads:
        thread.join()


main()
