"""What planning the point query takes, beside SELECT 1 and an ordinary table.

Planning Time of EXPLAIN (SUMMARY), one statement after the other in one
session: what a statement costs before it sends anything.
"""
import random
import statistics
import time

from laboratory import median
from workloads.point_query import prepare

STATEMENTS = {
    "SELECT 1": "SELECT 1",
    "local table": "SELECT * FROM local_points WHERE id = {id}",
    "mongo_fdw": "SELECT * FROM points WHERE id = {id}",
}


def planning(lab, statement, count):
    """The median of the planning times that fit into a round, in microseconds."""
    times = []
    end = time.monotonic() + lab.seconds
    while time.monotonic() < end:
        explained = lab.sql("EXPLAIN (SUMMARY, FORMAT JSON) " + statement.format(id=random.randint(1, count)))[0][0]
        times.append(1000 * explained[0]["Planning Time"])
    return {"statements": len(times), "microseconds": statistics.median(times)}


def run(lab):
    count = prepare(lab)
    results = lab.alternate(**{
        name: lambda statement=statement: planning(lab, statement, count)
        for name, statement in STATEMENTS.items()})
    least = median(results["SELECT 1"], "microseconds")
    table = []
    for name, rounds in results.items():
        microseconds = median(rounds, "microseconds")
        table.append({
            "statement": STATEMENTS[name].format(id=":id"),
            "microseconds": microseconds,
            "more than SELECT 1": microseconds - least,
            "commands": rounds[-1]["seen"]["commands"],
        })
    return table
