"""Read a million narrow documents, all fields of each.

Beside a libmongoc cursor, a program that frames its messages by hand, and an
ordinary table.
EXPLAIN (ANALYZE, TIMING OFF) runs the query and throws its rows away, so that
no client's time is counted; the native program reads every field as well.
"""
import os
import re

from laboratory import median
from workloads.point_query import prepare


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


def rows(results, count, foreign="mongo_fdw"):
    """The table's rows, with the ratio to the native program."""
    native = median(results["native"], "seconds")
    table = []
    for name, rounds in results.items():
        row = {"program": name, "seconds": median(rounds, "seconds"),
               "client CPU seconds": median(rounds, "cpu_seconds"),
               "documents a second": count / median(rounds, "seconds"),
               "commands a scan": rounds[-1]["seen"]["commands"]}
        if name == foreign:
            row["backend's own memory, MB"] = max(result["memory_mb"] for result in rounds)
        row["time as a ratio to native's"] = row["seconds"] / native
        table.append(row)
    return table


def run(lab):
    count = prepare(lab)
    return rows(lab.alternate(**{
        "native": lambda: lab.native("scan", lab.uri, "bench.points"),
        "floor": lambda: lab.native("scan", lab.host, lab.port, "bench.points", program="floor"),
        "mongo_fdw": lambda: measured(lab, "SELECT id, info, crt_time FROM points", count),
        "local table": lambda: measured(lab, "SELECT id, info, crt_time FROM local_points", count),
    }), count)
