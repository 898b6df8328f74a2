"""What MongoDB's work costs, in the planner's units: the table of src/plan/cost.h with this machine's figures.

The unit T is what one document of a scan takes, from MongoDB to PostgreSQL's tuple; L is a $lookup inside MongoDB's
query engine. Most figures are differences between two pipelines of which one does more, so they need a machine that
does nothing else.
"""
import os
import random
import re
import statistics
import time

import pymongo

from aggregation import UNREAD
from laboratory import HERE
from workloads.scan import measured

DOCUMENTS, OUTER, OUTER_KEYS, KEYS, FIRST_KEYS, COMMANDS, WIDER = 500_000, 10_000, 200, 1000, 10, 100, 1000
TABLE = os.path.join(HERE, "..", "src", "plan", "cost.h")
ROW = re.compile(r"(#define MONGO_COST_(\w+)\t+)([\d.]+)(.*)")
NOTHING = {"$match": {"none": 1}}


def documents(count, filler):
    places = random.Random(1).sample(range(count), count)
    for number in range(count):
        yield {"_id": number, "x": number, "random": places[number], "one": 1, "hundred": number % 100, "thousand": number % 1000,
               "filler": "-" * filler}


class Costs:
    def __init__(self, lab):
        self.lab, self.count = lab, int(DOCUMENTS * lab.scale)
        self.database = pymongo.MongoClient(lab.uri).bench
        self.outer = min(OUTER, self.count)
        lab.collection("costs", self.count, documents(self.count, 40), indexes=["x", "thousand", "random"])
        lab.collection("costs_outer", self.outer, documents(self.outer, 40))
        lab.collection("costs_wide", self.outer, documents(self.outer, 40 + WIDER))
        lab.sql("CREATE FOREIGN TABLE costs (_id int, x int, one int, hundred int, thousand int, filler text) "
                "SERVER bench OPTIONS (database 'bench', collection 'costs')")

    def seconds(self, command, **fields):
        """The median time of a command with all its batches."""
        times = []
        for _ in range(self.lab.rounds):
            start = time.perf_counter()
            reply = self.database.command({**command, **fields}, codec_options=UNREAD)
            while reply["cursor"]["id"]:
                reply = self.database.command({"getMore": reply["cursor"]["id"], "batchSize": 10000,
                                               "collection": next(iter(command.values()))}, codec_options=UNREAD)
            times.append(time.perf_counter() - start)
        return statistics.median(times)

    def pipeline(self, *stages, collection="costs", **fields):
        return self.seconds({"aggregate": collection, "pipeline": list(stages), "cursor": {"batchSize": 10000}},
                            **fields)

    def group(self, key=None, **accumulators):
        return self.pipeline({"$group": {"_id": key, **accumulators}})

    def find(self, collection, **fields):
        return self.seconds({"find": collection, "batchSize": 10000}, **fields)

    def lookup(self, outer, foreign_field, **fields):
        """How long the documents of 'outer', a $match, take to be looked up; nothing is sent."""
        return self.pipeline({"$match": outer}, {"$lookup": {
            "from": "costs", "localField": "x",
            "foreignField": foreign_field, "as": "t", **fields}}, {"$match": {"t.none": 1}}, collection="costs_outer")

    def scans(self, unit):
        """Of scans: T for each document, but for PROJECTION_BYTES."""
        examined = self.pipeline(NOTHING)
        part = self.pipeline({"$match": {"x": {"$nin": [None, float("nan")]}}}, {"$count": "n"})
        narrow, wide = self.find("costs_outer"), self.find("costs_wide")
        picked = self.find("costs_wide", projection={"x": 1})
        byte = max(wide - narrow, 1e-9) / WIDER
        return {
            "EXAMINED": examined / unit,
            "INDEXED": self.pipeline({"$match": {"x": {"$gte": 0}, "none": 1}}, hint={"x": 1}) / unit,
            "FETCHED": self.pipeline({"$match": {"random": {"$gte": 0}, "none": 1}}, hint={"random": 1}) / unit,
            "COVERED": self.pipeline({"$match": {"x": {"$gte": 0}}}, {"$group": {"_id": None, "n": {"$sum": 1}}}, hint={"x": 1}) / unit
            - (self.group(n={"$sum": 1}) - examined) / unit,
            "PART_TEST": (part - self.pipeline({"$count": "n"})) / unit,
            "PROJECTION_BYTES": (picked - (wide - byte * (40 + WIDER))) / byte,
            "SET": (self.pipeline({"$set": {"s": "$x"}}, {"$match": {"s": -1}}) - examined) / unit,
        }

    def groups(self, unit):
        """Of $group: T for each document, but for NEXT_KEY."""
        alone, counted = self.group(), self.group(a={"$sum": 1})
        summed = self.group(a={"$sum": "$x"})
        return {
            "GROUP": (alone - self.pipeline(NOTHING)) / unit,
            "KEY": (self.group("$one") - alone) / unit,
            "TENFOLD_GROUPS": (self.group("$thousand") - self.group("$hundred")) / unit,
            "ACCUMULATOR": (counted - alone) / unit,
            "OPERAND": (summed - counted) / unit,
            "OPERATOR": (self.group(a={"$sum": {"$add": ["$x", 1]}}) - summed) / unit,
            "TEST": (self.group(a={"$sum": {"$cond": [{"$gt": ["$x", None]}, "$x", 0]}}) - summed) / 2 / unit,
            "NEXT_KEY": self.pipeline({"$sort": {"thousand": 1}}, {"$group": {"_id": "$thousand"}})
            / unit * self.count / min(1000, self.count),
        }

    def joins(self, unit):
        """Of $lookup, in L where cost.h says so, and of batched joins."""
        document = unit / self.count
        looked_up = self.lookup({}, "_id")
        one = looked_up / self.outer
        classic = self.lookup({}, "_id", let={}, pipeline=[{"$match": {}}])
        setup = statistics.median(self.lookup({"_id": -1}, "_id") for _ in range(COMMANDS))
        find = statistics.median(self.find("costs_outer", filter={"_id": -1}) for _ in range(COMMANDS))
        # many different documents: those that were just read are read faster
        found = self.lookup({"x": {"$lt": OUTER_KEYS}}, "thousand") - setup
        between = {"x": {"$in": [number * self.count / KEYS + 0.5 for number in range(KEYS)]}}
        pair = [("hundred", 1), ("x", 1)]
        self.database.costs.create_index(pair)
        pairs = self.find("costs", filter={"hundred": {"$in": list(range(FIRST_KEYS))}, **between}, hint=dict(pair))
        self.database.costs.drop_index(pair)
        return {
            "LOOKUP": classic / looked_up,
            "LOOKUP_SETUP": (setup - find) / one,
            "FOUND_DOCUMENT": (found / OUTER_KEYS - one) / max(self.count / 1000, 1) / document,
            "BATCHED_KEY": (self.find("costs", filter=between) - find) / KEYS / document,
            "BATCHED_SEEK": (pairs - self.find("costs", filter=between)) / ((FIRST_KEYS - 1) * KEYS) / document,
        }


def rounded(figure):
    """Two digits; what noise has made negative is nothing."""
    return f"{float(f'{max(figure, 0):.2g}'):g}"


def run(lab):
    costs = Costs(lab)
    unit = statistics.median(measured(lab, "SELECT * FROM costs", costs.count)["seconds"] for _ in range(lab.rounds))
    figures = {**costs.scans(unit), **costs.groups(unit), **costs.joins(unit)}
    with open(TABLE) as file:
        rows = [match.groups() for match in map(ROW.match, file) if match]
    assert set(figures) == {name for _, name, _, rest in rows if not rest.lstrip().startswith("/* -")}, figures
    return [{"T in microseconds": unit / costs.count * 1e6}] + [
        {"line": define + (rounded(figures[name]) if name in figures else value) + rest,
         "name": name, "measured": figures.get(name), "in cost.h": float(value)} for define, name, value, rest in rows]


def show(title, table):
    print(f"\n{title}: T is {table[0]['T in microseconds']:.3f} microseconds\n")
    for row in table[1:]:
        print(row["line"])
