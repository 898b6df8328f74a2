"""Read a million narrow documents, all fields of each.

EXPLAIN (ANALYZE, TIMING OFF) runs the query and throws its rows away, so that
no client's time is counted; the native program reads every field as well.
"""
import re

from laboratory import median
from workloads.point_query import documents

QUERY = "EXPLAIN (ANALYZE, TIMING OFF, COSTS OFF) SELECT id, info, crt_time FROM points_scan"


def scan(lab, count):
    text = "\n".join(row[0] for row in lab.sql(QUERY))
    assert f"rows={count} " in text, text
    return {"seconds": float(re.search(r"Execution Time: ([\d.]+) ms", text).group(1)) / 1000}


def run(lab):
    count = int(1_000_000 * lab.scale)
    lab.collection("points", count, documents(count), indexes=["id"])
    lab.sql("CREATE FOREIGN TABLE points_scan (id int, info text, crt_time timestamp) SERVER bench "
            "OPTIONS (database 'bench', collection 'points', estimated_rows %s)", (str(count),))
    results = lab.alternate(
        native=lambda: lab.native("scan", lab.uri, "bench.points"),
        mongo_fdw=lambda: scan(lab, count))
    table = [{"program": name, "seconds": median(rounds, "seconds"),
              "documents a second": count / median(rounds, "seconds"),
              "commands a scan": rounds[-1]["seen"]["commands"]} for name, rounds in results.items()]
    native, wrapper = table
    wrapper["time as a ratio to native's"] = wrapper["seconds"] / native["seconds"]
    return table
