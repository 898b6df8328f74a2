"""A new session for every query: pgbench -C -c 8, beside SELECT 1 done likewise.

On two PostgreSQL servers of the workload's own, one with mongo_fdw in
shared_preload_libraries and one without.
"""
import contextlib
import os
import shutil
import subprocess
import tempfile

from laboratory import HERE, median, pgbench
from workloads.point_query import documents

CLIENTS, JOBS = 8, 2


def binary(name):
    return os.path.join(os.path.dirname(os.environ["PGBENCH"]), name)


@contextlib.contextmanager
def postgresql(*settings):
    """Start a PostgreSQL in a folder of its own; the options that reach it."""
    folder = tempfile.mkdtemp(prefix="mongo_fdw_sessions_")	# short, as it holds the socket
    data = os.path.join(folder, "data")
    start = ["-c", "listen_addresses=", "-c", f"unix_socket_directories={folder}", "-c", "port=5432"]
    for setting in settings:
        start += ["-c", setting]
    subprocess.run([binary("initdb"), "-D", data, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--no-locale",
                    "--no-sync"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([binary("pg_ctl"), "-s", "-w", "-D", data, "-l", os.path.join(folder, "log"), "start",
                    "-o", " ".join(start)], check=True)
    try:
        yield ["-h", folder, "-p", "5432", "-U", "postgres"]
    finally:
        subprocess.run([binary("pg_ctl"), "-s", "-w", "-m", "fast", "-D", data, "stop"], check=False)
        shutil.rmtree(folder)


def make_table(lab, reach, count):
    subprocess.run(
        [binary("psql"), *reach, "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", "postgres"], check=True, text=True,
        input=f"""
            CREATE EXTENSION mongo_fdw;
            CREATE SERVER bench FOREIGN DATA WRAPPER mongo_fdw OPTIONS (address '{lab.host}', port '{lab.port}');
            CREATE USER MAPPING FOR CURRENT_USER SERVER bench;
            CREATE FOREIGN TABLE points (id int, info text, crt_time timestamp) SERVER bench
                OPTIONS (database 'bench', collection 'points', estimated_rows '{count}');
        """)


def run(lab):
    count = int(1_000_000 * lab.scale)
    lab.collection("points", count, documents(count), indexes=["id"])

    def bench(reach, script):
        return pgbench(os.environ["PGBENCH"],
                       ["-C", "-M", "simple", "-c", str(CLIENTS), "-j", str(JOBS), "-T", str(lab.seconds),
                        "-D", f"documents={count}", "-f", os.path.join(HERE, script), *reach, "postgres"])

    with postgresql() as plain, postgresql("shared_preload_libraries=mongo_fdw") as preloaded:
        for reach in (plain, preloaded):
            make_table(lab, reach, count)
        results = lab.alternate(
            select_1=lambda: bench(plain, "select_1.sql"),
            mongo_fdw=lambda: bench(plain, "point_query.sql"),
            select_1_preloaded=lambda: bench(preloaded, "select_1.sql"),
            mongo_fdw_preloaded=lambda: bench(preloaded, "point_query.sql"))

    table = []
    for suffix, title in (("", "not preloaded"), ("_preloaded", "in shared_preload_libraries")):
        select, query = results["select_1" + suffix], results["mongo_fdw" + suffix]
        transactions = query[-1]["transactions"]
        table.append({
            "library": title,
            "SELECT 1 tps": median(select, "tps"),
            "point query tps": median(query, "tps"),
            "point query ms": median(query, "latency_ms"),
            "ratio to SELECT 1": median(query, "tps") / median(select, "tps"),
            "connections a session": query[-1]["seen"]["connections"] / transactions,
            "commands a session": {name: number / transactions
                                   for name, number in query[-1]["seen"]["commands"].items()},
        })
    return table
