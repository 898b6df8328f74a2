"""Read a million narrow documents, all fields of each.

EXPLAIN (ANALYZE, TIMING OFF) runs the query and throws its rows away, so that
no client's time is counted; the native program reads every field as well.
"""
import os
import re

from laboratory import median
from workloads.point_query import documents

QUERY = "SELECT id, info, crt_time FROM points_scan"


def cpu_seconds(pid):
    """Of a process, in user and system mode."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mb(pid):
    """The most that a process has had of its own: shared buffers do not count."""
    with open(f"/proc/{pid}/status") as file:
        return int(re.search(r"RssAnon:\s+(\d+) kB", file.read()).group(1)) / 1024


def measured(lab, query, count):
    """What a query costs that gives so many rows."""
    pid = lab.postgres.get_backend_pid()
    before = cpu_seconds(pid)
    text = "\n".join(row[0] for row in lab.sql("EXPLAIN (ANALYZE, TIMING OFF, COSTS OFF) " + query))
    assert f"rows={count} " in text, text
    return {"seconds": float(re.search(r"Execution Time: ([\d.]+) ms", text).group(1)) / 1000,
            "cpu_seconds": cpu_seconds(pid) - before, "memory_mb": memory_mb(pid)}


def run(lab):
    count = int(1_000_000 * lab.scale)
    lab.collection("points", count, documents(count), indexes=["id"])
    lab.sql("CREATE FOREIGN TABLE points_scan (id int, info text, crt_time timestamp) SERVER bench "
            "OPTIONS (database 'bench', collection 'points', estimated_rows %s)", (str(count),))
    lab.sql("ANALYZE points_scan")
    results = lab.alternate(
        native=lambda: lab.native("scan", lab.uri, "bench.points"),
        mongo_fdw=lambda: measured(lab, QUERY, count))
    table = [{"program": name, "seconds": median(rounds, "seconds"),
               "client CPU seconds": median(rounds, "cpu_seconds"),
              "documents a second": count / median(rounds, "seconds"),
              "commands a scan": rounds[-1]["seen"]["commands"]} for name, rounds in results.items()]
    native, wrapper = table
    wrapper["backend's own memory, MB"] = max(result["memory_mb"] for result in results["mongo_fdw"])
    wrapper["time as a ratio to native's"] = wrapper["seconds"] / native["seconds"]
    return table
