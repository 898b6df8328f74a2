#!/usr/bin/env python3
"""Writes to a collection at random, from several clients, for t/111_sync.pl.

Each client inserts, replaces, updates and deletes documents of db.c, alone and in transactions,
until SIGTERM or the end of its parent; SIGUSR1 replaces the collection by another one.  What fails
is left out: the test compares the collection that results, whatever it is.

Meanwhile, all rows of the table in step are read again and again.  In the end, each must be a
state that its document has had, by a change stream of this program's own.

First it writes the ports of proxies that cut connections, in the servers' order, and in the end a
line about the rows.
"""
import argparse
import json
import os
import random
import signal
import threading
import time

import psycopg2
import pymongo
from pymongo.errors import PyMongoError

from cutting_proxy import CuttingProxies

KEYS = 400
COLLECTION = {"changeStreamPreAndPostImages": {"enabled": True}}


def document(generator, key):
    return {"_id": key, "a": generator.randrange(1000), "t": "x" * generator.randrange(50),
            "n": {"deep": [generator.randrange(9), None]}, "m": generator.choice([1, 2.5, None])}


def write(generator, collection, session):
    key = generator.randrange(KEYS)
    kind = generator.randrange(8)
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
        collection.update_one({"_id": key}, {"$rename": {"t": "u"}}, session=session)
    elif kind == 6:
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


def state(document):
    """Returns what the table in step has of a document."""
    number = document.get("m")
    return (document["_id"], document.get("a"), document.get("t"),
            json.dumps(document.get("n"), sort_keys=True), None if number is None else float(number))


def keep_states(uri, states, ended):
    """Collects the states of all documents, until the document of db.end is inserted."""
    token = None
    while not ended.is_set():
        try:
            database = pymongo.MongoClient(uri, serverSelectionTimeoutMS=1000).db
            with database.watch([{"$match": {"operationType": {"$in": ["insert", "update", "replace"]}}}],
                                full_document="required", resume_after=token, max_await_time_ms=100) as stream:
                states.add(None)                    # it has begun
                while not ended.is_set():
                    change = stream.try_next()
                    token = stream.resume_token
                    if change is not None and change["ns"]["coll"] == "end":
                        ended.set()
                    elif change is not None:
                        states.add(state(change["fullDocument"]))
        except PyMongoError as error:
            if error.has_error_label("ResumableChangeStreamError") or isinstance(error, pymongo.errors.ConnectionFailure):
                continue
            raise


def read_table(dsn, rows, stopping):
    """Collects all rows that the table in step ever has."""
    cursor = None
    while not stopping.wait(0.1):
        try:
            if cursor is None:
                connection = psycopg2.connect(dsn)
                connection.autocommit = True
                cursor = connection.cursor()
            cursor.execute("SELECT _id, a, t, d, m FROM public.c")
            rows.update(state({"_id": key, "a": a, "t": t, "n": d, "m": m}) for key, a, t, d, m in cursor)
        except psycopg2.Error:
            cursor = None


def replace_collection(arguments, generator):
    database = pymongo.MongoClient(arguments.uri, serverSelectionTimeoutMS=1000).db
    try:
        database.drop_collection("new")
        database.create_collection("new", **COLLECTION)
        database.new.insert_many([document(generator, key) for key in range(-arguments.documents, KEYS)])
        database.new.rename("c", dropTarget=True)
    except PyMongoError:
        pass            # a server has failed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ports", required=True, help="of the replica set, separated by commas")
    parser.add_argument("--dsn", required=True, help="of the database with the table in step")
    parser.add_argument("--documents", type=int, default=3000, help="of each new collection")
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pause", type=float, default=0.015, help="seconds between writes of a client")
    arguments = parser.parse_args()
    ports = [int(port) for port in arguments.ports.split(",")]
    arguments.uri = "mongodb://%s/?replicaSet=rs&w=majority" % ",".join("127.0.0.1:%d" % port for port in ports)
    generator = random.Random(arguments.seed)
    proxies = CuttingProxies(ports, arguments.seed)
    proxies.start_cutting()

    stopping, ended, replacing = threading.Event(), threading.Event(), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    signal.signal(signal.SIGUSR1, lambda *_: replacing.set())
    states, rows = set(), set()
    historian = threading.Thread(target=keep_states, args=(arguments.uri, states, ended), daemon=True)
    historian.start()
    while not states and historian.is_alive():
        time.sleep(0.01)
    database = pymongo.MongoClient(arguments.uri).db
    database.create_collection("c", **COLLECTION)
    database.c.insert_many([document(generator, key) for key in range(-arguments.documents, 0)])
    threads = [threading.Thread(target=client, args=(number, arguments, stopping), daemon=True)
               for number in range(arguments.clients)]
    threads.append(threading.Thread(target=read_table, args=(arguments.dsn, rows, stopping), daemon=True))
    for thread in threads:
        thread.start()
    print("ports", ",".join(str(port) for port in proxies.ports), flush=True)

    parent = os.getppid()
    while not stopping.wait(0.1):
        if replacing.is_set():
            replacing.clear()
            replace_collection(arguments, generator)
        if os.getppid() != parent:
            return              # its servers end, too
    for thread in threads:
        thread.join()
    while not ended.is_set() and historian.is_alive():
        try:
            database.end.insert_one({})
            ended.wait(5)
        except PyMongoError:
            time.sleep(0.1)
    wrong = rows - states
    print("%d states of rows, %d that no document had%s; %d cuts" %
          (len(rows), len(wrong), "".join(": %r" % (row,) for row in sorted(wrong, key=repr)[:5]), proxies.cuts))


main()
