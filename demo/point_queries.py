#!/usr/bin/env python3
"""Run ten seconds of point queries and print the commands that MongoDB received for each."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "scripts"))
from mongo_counters import QuietConnection, difference  # noqa: E402
from pgbench import pgbench  # noqa: E402

CLIENTS, SECONDS = 8, 10


def main():
    connection = QuietConnection(os.environ["MONGO_HOST"], os.environ["MONGO_PORT"])
    options = ["-M", "simple", "-n", "-c", str(CLIENTS), "-j", "2", "-T", str(SECONDS),
               "-f", os.path.join(HERE, "point_query.sql")]
    print("$ pgbench " + " ".join(options).replace(HERE, "demo"))
    before = connection.counters()
    figures = pgbench(os.environ.get("PGBENCH", "pgbench"), options)
    seen = difference(before, connection.counters())
    transactions = int(figures["transactions"])
    print(f"transactions             {transactions}")
    print(f"transactions per second  {figures['tps']:.0f}")
    print(f"latency average          {figures['latency_ms']:.3f} ms")
    print(f"connections opened       {seen['connections']} by {CLIENTS} backends")
    print("commands that MongoDB received:")
    for name, count in sorted(seen["commands"].items(), key=lambda item: -item[1]):
        print(f"  {name:22} {count:9}   {count / transactions:.4f} per transaction")


if __name__ == "__main__":
    main()
