"""A new session for every query: pgbench -C -c 8, beside SELECT 1 done likewise.

On two PostgreSQL servers of the workload's own, one with mongo_fdw in
shared_preload_libraries and one without.  And the same through pgbouncer, if it is
installed, where a client's connection is new but the session is not; beside 24 clients
that keep their connections, to PostgreSQL and to pgbouncer.
"""
import contextlib
import os
import shutil
import subprocess
import tempfile
import time

from laboratory import HERE, median, pgbench
from workloads.point_query import documents

JOBS = 2
POOLER_PORT = "6432"
NEW, KEPT = ["-C", "-c", "8"], ["-c", "24"]

# What a row is called, the server that is asked, and how.
ROWS = (
    ("new, not preloaded", "plain", NEW),
    ("new, in shared_preload_libraries", "preloaded", NEW),
    ("through pgbouncer, clients connect anew", "pooled", NEW),
    ("24 kept", "preloaded", KEPT),
    ("through pgbouncer, 24 clients over 20 sessions", "pooled", KEPT),
)


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


@contextlib.contextmanager
def pooler(program, reach):
    """Start pgbouncer as docs/performance.md has it; the options that reach it."""
    folder = reach[reach.index("-h") + 1]
    file = os.path.join(folder, "pgbouncer.ini")
    with open(os.path.join(folder, "users"), "w") as users:
        users.write('"postgres" ""\n')
    with open(file, "w") as settings:
        settings.write(f"""
            [databases]
            postgres = host={folder} port=5432 dbname=postgres
            [pgbouncer]
            pool_mode = transaction
            default_pool_size = 20
            max_client_conn = 200
            auth_type = trust
            auth_file = {folder}/users
            listen_addr =
            listen_port = {POOLER_PORT}
            unix_socket_dir = {folder}
            logfile = {folder}/pgbouncer.log
            """.replace("            ", ""))
    process = subprocess.Popen([program, "-q", file], stderr=subprocess.DEVNULL)
    try:
        while not os.path.exists(os.path.join(folder, f".s.PGSQL.{POOLER_PORT}")):
            if process.poll() is not None:
                raise RuntimeError("pgbouncer does not start: " + open(os.path.join(folder, "pgbouncer.log")).read())
            time.sleep(0.05)
        yield ["-h", folder, "-p", POOLER_PORT, "-U", "postgres"]
    finally:
        process.terminate()
        process.wait()


def run(lab):
    count = int(1_000_000 * lab.scale)
    lab.collection("points", count, documents(count), indexes=["id"])
    program = shutil.which("pgbouncer", path=os.environ["PATH"] + ":/usr/sbin")
    if program is None:
        lab.say("  there is no pgbouncer, so nothing is asked through it")

    def bench(reach, script, options):
        return pgbench(os.environ["PGBENCH"],
                       [*options, "-M", "simple", "-j", str(JOBS), "-T", str(lab.seconds),
                        "-D", f"documents={count}", "-f", os.path.join(HERE, script), *reach, "postgres"])

    with contextlib.ExitStack() as stack:
        servers = {"plain": stack.enter_context(postgresql()),
                   "preloaded": stack.enter_context(postgresql("shared_preload_libraries=mongo_fdw"))}
        for reach in servers.values():
            make_table(lab, reach, count)
        if program is not None:
            servers["pooled"] = stack.enter_context(pooler(program, servers["preloaded"]))
        rows = [row for row in ROWS if row[1] in servers]
        results = lab.alternate(**{
            f"{script}_{server}_{options[-1]}": lambda r=servers[server], s=script, o=options: bench(r, s + ".sql", o)
            for _, server, options in rows for script in ("select_1", "point_query")})

    table = []
    for title, server, options in ROWS:
        if server not in servers:
            table.append({"sessions": title, "point query tps": "pgbouncer is not installed"})
            continue
        select, query = (results[f"{script}_{server}_{options[-1]}"] for script in ("select_1", "point_query"))
        transactions = query[-1]["transactions"]
        table.append({
            "sessions": title,
            "SELECT 1 tps": median(select, "tps"),
            "point query tps": median(query, "tps"),
            "point query ms": median(query, "latency_ms"),
            "ratio to SELECT 1": median(query, "tps") / median(select, "tps"),
            "connections a transaction": query[-1]["seen"]["connections"] / transactions,
            "commands a transaction": {name: number / transactions
                                       for name, number in query[-1]["seen"]["commands"].items()},
        })
    return table
