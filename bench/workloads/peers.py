"""TPC-H at scale factor 0.1 beside other ways to ask MongoDB in SQL: Trino, and DuckDB with PyMongoArrow.

One after another, each alone and warm, on the same mongod and documents: a pass over all
queries, in which every result is compared with that of PostgreSQL's local tables, and then
the rounds that count.  scripts/peers.sh installs the peers; one that is not there is skipped.
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
SIDES = ("mongo_fdw", *PEERS)


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


def measure(lab, side, peer, rows, scale_factor, expected):
    """Adds a side's results and medians to the rows."""
    for row in rows:		# the pass that is not measured
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
    for row in rows:
        number, kind = int(row["query"][1:]), row["money"]
        if not row[f"{side} answer"].startswith("failed"):
            name = f"{side} {row['query']}"
            results = lab.alternate(**{name: lambda: tpch.timed(peer.answer, kind, number, query(number, scale_factor))})
            row[f"{side} s"] = median(results[name], "seconds")


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
        sides = {"mongo_fdw": local, **{name: make_peer(lab, client, name) for name in PEERS}}
        for name, peer in sides.items():
            if peer:
                with peer:
                    measure(lab, name, peer, rows, scale_factor, expected)
    return rows


def show(title, rows):
    """A table in markdown: seconds, and what is wrong with a result."""
    sides = [side for side in SIDES if f"{side} answer" in rows[0]]
    print(f"\n{title}\n\n| query | money | {' | '.join(sides)} |\n|{'---|' * (len(sides) + 2)}")
    for row in rows:
        cells = [f"{row[f'{side} s']:.3f}" if f"{side} s" in row else "" for side in sides]
        notes = [row[f"{side} answer"].removeprefix("equal") for side in sides]
        print(f"| {row['query']} | {row['money']} | %s |" % " | ".join(
            f"{cell} {note}".strip() for cell, note in zip(cells, notes)))
    for side in sides[1:]:
        ratios = [row[f"{side} s"] / row[f"{sides[0]} s"] for row in rows if f"{side} s" in row]
        if ratios:
            print(f"\n{side} takes {statistics.median(ratios):.1f} times as long as {sides[0]} (median), "
                  f"and is faster in {sum(ratio < 1 for ratio in ratios)} of {len(ratios)}")
