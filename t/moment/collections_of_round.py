"""MongoDB's side: the collections of a round, who writes them, and what they held at a time."""
import random
import threading
import time

import pymongo
from bson import CodecOptions, Timestamp
from pymongo import ReadPreference, WriteConcern
from pymongo.errors import OperationFailure, PyMongoError

ACCOUNTS, ORDERS, BULK = 40, 40, 300
GONE = (26, 72, 239, 246, 361)      # what MongoDB cannot read at a time any more, or not yet


# of the program itself, which must outlast an election on a busy machine
PATIENT = {"serverSelectionTimeoutMS": 60_000, "socketTimeoutMS": 60_000}


def client_of(ports, **options):
    options = {"serverSelectionTimeoutMS": 3000, "socketTimeoutMS": 8000, "connectTimeoutMS": 3000,
               "waitQueueTimeoutMS": 5000, **options}
    return pymongo.MongoClient([f"127.0.0.1:{port}" for port in ports], replicaSet="rs", **options)


def timestamp(number):
    return Timestamp(number >> 32, number & 0xFFFFFFFF)


def new_order(choice, key, version):
    lines = [{"version": version, "sku": choice.choice("abcdef") * choice.randrange(1, 5),
              "parts": [{"version": version} for _ in range(choice.randrange(4))]}
             for _ in range(choice.randrange(5))]
    return {"_id": key, "version": version, "nlines": len(lines),
            "nparts": sum(len(line["parts"]) for line in lines), "lines": lines}


def fill(database):
    """Creates the collections of a round: accounts of two kinds, whose sum is 0, orders, and others."""
    majority = WriteConcern("majority")
    choice = random.Random(0)
    for name, documents in (("a", [{"_id": i, "v": 0} for i in range(ACCOUNTS)]),
                            ("b", [{"_id": i, "v": 0} for i in range(ACCOUNTS)]),
                            ("orders", [new_order(choice, i, 0) for i in range(ORDERS)]),
                            ("bulk", [{"_id": i, "v": 0} for i in range(BULK)]),
                            ("marks", [{"_id": -1, "v": 0}])):
        database.get_collection(name, write_concern=majority).insert_many(documents)


def rows_of_orders(documents):
    """The rows of the three tables over orders."""
    orders, lines, parts = [], [], []
    for document in documents:
        orders.append((document["_id"], document["version"], document["nlines"], document["nparts"]))
        for n, line in enumerate(document["lines"], 1):
            lines.append((document["_id"], n, line["version"], line["sku"]))
            parts += [(document["_id"], n, m, part["version"]) for m, part in enumerate(line["parts"], 1)]
    return {"orders": orders, "lines": lines, "parts": parts}


def read(database, name, time_of_read=None, uuid=None):
    """The documents of a collection, at a cluster time or as a majority has them."""
    command = {"find": name, "batchSize": 100_000, "maxTimeMS": 4000,
               "readConcern": {"level": "majority"} if time_of_read is None else
               {"level": "snapshot", "atClusterTime": timestamp(time_of_read)}}
    if uuid is not None:
        command["collectionUUID"] = uuid
    reply = database.command(command, codec_options=CodecOptions())
    if time_of_read is not None and "atClusterTime" not in reply["cursor"]:
        raise OperationFailure("there is no such collection", 26)
    return reply["cursor"]["firstBatch"]


def rows_of(database, time_of_read=None, names=("a", "b", "orders", "bulk", "marks")):
    """{table: sorted rows} of the collections of a round."""
    rows = {}
    for name in names:
        documents = read(database, name, time_of_read)
        if name == "orders":
            rows.update(rows_of_orders(documents))
        else:
            rows[name] = [(document["_id"], document["v"]) for document in documents]
    return {name: sorted(found) for name, found in rows.items()}


class Background:
    """Threads that run until 'stop' is set."""

    def __init__(self):
        self.stop = threading.Event()
        self.threads = []

    def run(self, function, *arguments):
        thread = threading.Thread(target=function, args=arguments, daemon=True)
        self.threads.append(thread)
        thread.start()

    def end(self, seconds=60):
        """Ends them, and returns how many have not ended after so many seconds each."""
        self.stop.set()
        for thread in self.threads:
            thread.join(seconds)
        return sum(thread.is_alive() for thread in self.threads)


class Writers(Background):
    def __init__(self, ports, name, seed, counts, errors):
        super().__init__()
        self.ports, self.name, self.seed, self.counts, self.errors = ports, name, seed, counts, errors

    def start(self, *functions):
        for number, function in enumerate(functions):
            self.run(self._run, function, number)

    def _run(self, function, number):
        choice = random.Random(f"{self.seed} {function.__name__} {number}")
        with client_of(self.ports) as client:
            while not self.stop.is_set():
                try:
                    what = function(client, client[self.name], choice)
                    self.counts[f"writes: {what or function.__name__}"] += 1
                except PyMongoError as error:
                    self.counts[f"write errors: {type(error).__name__} {getattr(error, 'code', '')}"] += 1
                    time.sleep(0.05)
                except Exception as error:      # of this program
                    self.errors.append(f"{function.__name__}: {error!r}")
                    raise


def move_money(client, database, choice):
    """A transaction over two collections, mostly small."""
    time.sleep(choice.choice((0, 0, 0.01, 0.05)))
    count = choice.choice((1, 1, 2, 10, ACCOUNTS))
    with client.start_session() as session:
        session.start_transaction(write_concern=WriteConcern("majority", wtimeout=4000), max_commit_time_ms=4000)
        try:
            moved = 0
            for i in choice.sample(range(ACCOUNTS), count):
                amount = choice.randrange(1, 100)
                moved += amount
                database.a.update_one({"_id": i}, {"$inc": {"v": -amount}}, session=session)
                if choice.random() < 0.5 or i == ACCOUNTS - 1:
                    database.b.update_one({"_id": choice.randrange(ACCOUNTS)}, {"$inc": {"v": moved}}, session=session)
                    moved = 0
            if moved:
                database.b.update_one({"_id": choice.randrange(ACCOUNTS)}, {"$inc": {"v": moved}}, session=session)
            if choice.random() < 0.1:
                session.abort_transaction()
            else:
                session.commit_transaction()
        except PyMongoError:
            if session.in_transaction:
                session.abort_transaction()
            raise


def change_orders(client, database, choice):
    """Writes that a primary alone acknowledges, and that may be rolled back."""
    time.sleep(choice.choice((0, 0.01, 0.03)))
    orders = database.get_collection("orders", write_concern=WriteConcern(1))
    key = choice.randrange(ORDERS * 2)
    if choice.random() < 0.2:
        orders.delete_one({"_id": key})
    else:
        orders.replace_one({"_id": key}, new_order(choice, key, choice.randrange(1, 1_000_000)), upsert=True)


def change_bulk(client, database, choice):
    time.sleep(choice.uniform(0.1, 0.6))
    bulk = database.get_collection("bulk", write_concern=WriteConcern(1))
    bulk.update_many({"_id": {"$gte": choice.randrange(BULK)}}, {"$inc": {"v": 1}})
    if choice.random() < 0.2:
        first = choice.randrange(BULK)
        bulk.delete_many({"_id": {"$gte": first, "$lt": first + 20}})
    elif choice.random() < 0.3:
        try:
            bulk.insert_many([{"_id": i, "v": 0} for i in range(BULK)], ordered=False)
        except pymongo.errors.BulkWriteError:
            pass


def write_noise(client, database, choice):
    """Another database's events."""
    time.sleep(choice.uniform(0.05, 0.4))
    client.noise.get_collection("n", write_concern=WriteConcern(1)).replace_one(
        {"_id": choice.randrange(10)}, {"v": "x" * choice.randrange(20_000)}, upsert=True)


def write_to_all_members(client):
    """Writes something that every member has when this returns, and so all that was written before it."""
    client.noise.get_collection("n", write_concern=WriteConcern(3, wtimeout=60_000)).replace_one({"_id": 98}, {}, upsert=True)


def fill_oplog(client, megabytes):
    """Writes so much that the oplog is cut."""
    noise = client.noise.get_collection("n", write_concern=WriteConcern("majority", wtimeout=20000))
    for _ in range(megabytes):
        noise.replace_one({"_id": 99}, {"v": "x" * 1_000_000}, upsert=True)


def first_of_oplog(ports):
    """The latest of the members' first times in the oplog, as a number."""
    first = 0
    for port in ports:
        try:
            with pymongo.MongoClient("127.0.0.1", port, directConnection=True, serverSelectionTimeoutMS=3000,
                                     socketTimeoutMS=5000) as client:
                entry = client.local["oplog.rs"].with_options(read_preference=ReadPreference.NEAREST).find_one(
                    sort=[("$natural", 1)])
                first = max(first, entry["ts"].time << 32 | entry["ts"].inc)
        except PyMongoError:
            pass
    return first
