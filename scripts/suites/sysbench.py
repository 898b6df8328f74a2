"""sysbench's own scripts over a table in MongoDB: no error, and no row is missing at the end.

    sysbench.py --mongo URI --rows 10000 --seconds 5
"""

import argparse
import os
import re
import subprocess
import sys

from both_sides import ForeignSide, texts_only
from run import Suites, administer

SCRIPTS = """oltp_point_select oltp_read_only select_random_points select_random_ranges oltp_update_index oltp_update_non_index
    oltp_write_only oltp_read_write oltp_insert oltp_delete""".split()
# scripts that do not change the number of rows
EVEN = set(SCRIPTS) - {"oltp_insert", "oltp_delete"}


def sysbench(options, script, action, *more):
    command = ["sysbench", script, "--db-driver=pgsql", f"--pgsql-host={os.environ['PGHOST']}", f"--pgsql-port={os.environ['PGPORT']}",
               "--pgsql-user=postgres", "--pgsql-db=sysbench", f"--table-size={options.rows}", *more, action]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mongo", required=True)
    parser.add_argument("--rows", type=int, default=10000)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=4)
    options = parser.parse_args()
    options.source, options.output = "/nonexistent", os.devnull
    texts_only()
    suites = Suites(options)
    suites.start_replica_set()
    host, port = suites.mongo.address
    administer("DROP DATABASE IF EXISTS sysbench", "CREATE DATABASE sysbench")
    suites.mongo.drop_database("sysbench")
    prepared = sysbench(options, "oltp_read_write", "prepare")
    if prepared.returncode != 0:
        raise RuntimeError(prepared.stdout)
    side = ForeignSide("sysbench", suites.mongo, "sysbench")
    for statement in ("CREATE EXTENSION mongo_fdw", f"CREATE SERVER mongodb FOREIGN DATA WRAPPER mongo_fdw OPTIONS (address '{host}', port '{port}')",
                      "CREATE USER MAPPING FOR PUBLIC SERVER mongodb",
                      "ALTER TABLE sbtest1 ALTER k DROP NOT NULL, ALTER c DROP NOT NULL, ALTER pad DROP NOT NULL"):
        side.must(statement)
    side.convert()
    if side.converted != ["sbtest1"]:
        raise RuntimeError("sbtest1 is no foreign table")
    side.must("ALTER FOREIGN TABLE sbtest1 ALTER id OPTIONS (indexed 'true'), ALTER k OPTIONS (indexed 'true')")
    side.make_index("sbtest1", ["k"], False)
    side.must("ANALYZE sbtest1")

    failed = 0
    for script in SCRIPTS:
        before = side.must("SELECT count(*), count(DISTINCT id) FROM sbtest1")
        ran = sysbench(options, script, "run", f"--threads={options.threads}", f"--time={options.seconds}")
        after = side.must("SELECT count(*), count(DISTINCT id) FROM sbtest1")
        counts = dict(re.findall(r"^\s+(transactions|queries|ignored errors):\s+(\d+)", ran.stdout, re.M))
        problems = re.findall(r"^(?:FATAL|ALERT|Error).*", ran.stdout, re.M | re.I)
        if script in EVEN and before != after or after[0][0] != after[0][1]:
            problems.append(f"{before[0][0]} rows before, {after[0][0]} after, {after[0][1]} of them with an id of their own")
        ok = ran.returncode == 0 and not problems and int(counts.get("transactions", 0)) > 0
        failed += not ok
        print(f"{script:24} {counts.get('transactions', '?'):>7} transactions {counts.get('queries', '?'):>8} queries "
              f"{counts.get('ignored errors', '?'):>4} to be repeated   {'ok' if ok else 'FAILED: ' + '; '.join(problems[:3])}", flush=True)
    print(f"{len(SCRIPTS) - failed} scripts of sysbench run, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
