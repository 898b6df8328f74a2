"""TPC-H at scale factor 0.1 beside other ways to ask MongoDB in SQL: Trino, and DuckDB with PyMongoArrow.

One peer after another, warm, on the same mongod and documents: a pass over all queries, in which
every result is compared with that of PostgreSQL's local tables, and then the rounds that count, in
which peer and mongo_fdw take turns.  Meanwhile, no other peer runs.  scripts/peers.sh installs the
peers; one that is not there is skipped.
"""
import decimal
import importlib
import os
import statistics
import sys

import pymongo

import aggregation
from laboratory import HERE, median
from workloads import tpch
from load import KINDS, LEAST, load
from queries import NUMBERS, answer, query, same_answer

ON_DEMAND = True
FOLDER = os.environ.get("PEERS", "")
sys.path += [os.path.join(FOLDER, "python")]
sys.path[:0] = [os.path.join(HERE, "peers")]
PEERS = {"Trino": "trino_server", "DuckDB": "duck"}


def is_rounded(value, text):
    """Is it the exact number, with fewer digits?"""
    if not isinstance(value, decimal.Decimal):
        return False
    half_of_last_digit = decimal.Decimal((0, (5,), value.as_tuple().exponent - 1))
    return abs(value - decimal.Decimal(text)) <= half_of_last_digit


def compare(rows, expected):
    """Says how a peer's rows, in their order, differ from texts that PostgreSQL returned."""
    if [len(row) for row in rows] != [len(row) for row in expected]:
        return "DIFFERENT"
    pairs = [(str(value) if hasattr(value, "isoformat") else value, text)
             for row, texts in zip(rows, expected) for value, text in zip(row, texts)]
    if any((value is None) != (text == "\\N") for value, text in pairs):
        return "DIFFERENT"
    unequal = [pair for pair in pairs if pair[0] is not None and not aggregation.same_value(*pair)]
    return "equal" if not unequal else "rounded" if all(is_rounded(*pair) for pair in unequal) else "DIFFERENT"


class MongoFdw:
    """This extension, in a session like the ones that the peers are compared with."""

    def __init__(self, cursor):
        self.cursor = cursor

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def answer(self, schema, _, text):
        self.cursor.execute(f"SET search_path = {schema}, public")
        return answer(self.cursor, text)


def check(lab, side, peer, rows, scale_factor, expected):
    """The pass that is not measured: says in the rows how a side's results differ."""
    for row in rows:
        number, kind = int(row["query"][1:]), row["money"]
        try:
            found = peer.answer(kind, number, query(number, scale_factor))
            if side == "mongo_fdw":
                row[f"{side} answer"] = "equal" if same_answer(number, found, expected[number]) else "DIFFERENT"
            else:
                row[f"{side} answer"] = compare(found, expected[number])
        except Exception as problem:		# of any client library
            row[f"{side} answer"] = f"failed: {str(problem).splitlines()[0]}"
        lab.say(f"  {side} {row['query']}, money as {kind}: {row[f'{side} answer']}")


def measure(lab, local, side, peer, rows, scale_factor):
    """Adds a peer's median to the rows, and that of mongo_fdw in the same rounds, by turns."""
    for row in rows:
        number, kind = int(row["query"][1:]), row["money"]
        if any(row[f"{name} answer"].startswith("failed") for name in ("mongo_fdw", side)):
            continue
        lab.say(f" {row['query']}, money as {kind}")
        results = lab.alternate(**{
            name: lambda answer=answer: tpch.timed(answer, kind, number, query(number, scale_factor))
            for name, answer in (("mongo_fdw", local.answer), (side, peer.answer))})
        row[f"{side} s"] = median(results[side], "seconds")
        row[f"mongo_fdw beside {side} s"] = median(results["mongo_fdw"], "seconds")


def make_peer(lab, client, name):
    """Returns a peer, or None with a message if it is not installed."""
    try:
        return importlib.import_module(PEERS[name]).Peer(lab, client, FOLDER)
    except (ImportError, FileNotFoundError) as problem:
        lab.say(f"{name} is skipped, as it is not installed: {problem}")


def run(lab):
    connection = tpch.connect(lab)
    scale_factor = max(tpch.SCALE_FACTOR * lab.scale, LEAST)
    load(connection, lab.host, lab.port, scale_factor, lab.say)
    rows = [{"query": f"Q{number}", "money": kind} for kind in KINDS for number in NUMBERS]
    with pymongo.MongoClient(lab.uri) as client, connection.cursor() as cursor:
        local = MongoFdw(cursor)
        expected = {number: local.answer("local", number, query(number, scale_factor)) for number in NUMBERS}
        check(lab, "mongo_fdw", local, rows, scale_factor, expected)
        for name in PEERS:
            peer = make_peer(lab, client, name)
            if peer:
                with peer:
                    check(lab, name, peer, rows, scale_factor, expected)
                    measure(lab, local, name, peer, rows, scale_factor)
    return rows


def show(title, rows):
    """A table in markdown for each peer: seconds, and what is wrong with a result."""
    for side in PEERS:
        if f"{side} answer" not in rows[0]:
            continue
        print(f"\n{title}\n\n| query | money | mongo_fdw | {side} |\n|---|---|---|---|")
        ratios = []
        for row in rows:
            cells = []
            for name, seconds in (("mongo_fdw", f"mongo_fdw beside {side} s"), (side, f"{side} s")):
                cells.append(f"{row[seconds]:.3f} " if seconds in row else "")
                cells[-1] += row[f"{name} answer"].removeprefix("equal")
            print(f"| {row['query']} | {row['money']} | {cells[0].strip()} | {cells[1].strip()} |")
            if f"{side} s" in row:
                ratios.append(row[f"{side} s"] / row[f"mongo_fdw beside {side} s"])
        if ratios:
            print(f"\n{side} takes {statistics.median(ratios):.1f} times as long as mongo_fdw (median), "
                  f"and is faster in {sum(ratio < 1 for ratio in ratios)} of {len(ratios)}")
