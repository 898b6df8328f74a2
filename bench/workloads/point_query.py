"""Find one document of a million by an indexed number, 24 clients at a time.

pgbench -M simple -n -r -c 24 -j 12, as in the measurement of 2013 that started
it all, beside a libmongoc program and a program that frames its messages by
hand, with 24 threads each and the same filter, beside a function of PostgreSQL
that frames them by hand, and beside the same query on an ordinary table.
"""
import datetime

from laboratory import median

CLIENTS, JOBS = 24, 12
FUNCTION = "floor in PostgreSQL"


def documents(count):
    start = datetime.datetime(2013, 1, 1)
    for number in range(1, count + 1):
        yield {"id": number, "info": f"information about {number}",
               "crt_time": start + datetime.timedelta(seconds=number)}


def prepare(lab):
    """The collection, the foreign table "points" and the ordinary table "local_points"; how many rows."""
    count = int(1_000_000 * lab.scale)
    lab.collection("points", count, documents(count), indexes=["id"])
    lab.sql("CREATE FOREIGN TABLE IF NOT EXISTS points (id int, info text, crt_time timestamp) SERVER bench "
            "OPTIONS (database 'bench', collection 'points', estimated_rows %s)", (str(count),))
    lab.sql("ANALYZE points")
    found = lab.sql("SELECT info FROM points WHERE id = %s", (count,))
    assert found == [(f"information about {count}",)], found
    lab.sql("CREATE OR REPLACE FUNCTION floor_find(host text, port integer, namespace text, id integer) RETURNS text "
            "LANGUAGE c STRICT AS 'floor_function'")
    assert lab.sql("SELECT floor_find(%s, %s, 'bench.points', %s)", (lab.host, lab.port, count)) == found
    lab.local_table("local_points", "SELECT * FROM points", "id")
    return count


def contestants(lab, count, clients, jobs, mode, seconds):
    """Who runs the query: functions by name."""
    options = ("-M", mode, "-n", "-r", "-c", clients, "-j", jobs, "-D", f"documents={count}")
    return {
        "native": lambda: lab.native("point", lab.uri, "bench.points", clients, seconds, count),
        "floor": lambda: lab.native("point", lab.host, lab.port, "bench.points", clients, seconds, count,
                                    program="floor"),
        "mongo_fdw": lambda: lab.pgbench("point_query.sql", seconds, *options),
        FUNCTION: lambda: lab.pgbench("floor_point_query.sql", seconds, "-D", f"port={lab.port}", *options),
        "local table": lambda: lab.pgbench("local_point_query.sql", seconds, *options),
    }


def bound(results):
    """What a local table's query and the request framed by hand take together, as tps; None without these."""
    if "floor" not in results or "local table" not in results:
        return None
    return 1 / sum(1 / median(results[name], "tps") for name in ("floor", "local table"))


def rows(results):
    """The table's rows from all rounds, with the ratios to the native program and to the bound."""
    native = median(results["native"], "tps")
    most = bound(results)
    table = []
    for name, rounds in results.items():
        transactions = sum(result["transactions"] for result in rounds)
        commands = {}
        for result in rounds:
            for command, number in result["seen"]["commands"].items():
                commands[command] = commands.get(command, 0) + number
        table.append({
            "program": name,
            "tps": median(rounds, "tps"),
            "latency_ms": median(rounds, "latency_ms"),
            "connections a round": median([result["seen"] for result in rounds], "connections"),
            "commands a transaction": {command: number / transactions for command, number in commands.items()},
            "ratio to native": median(rounds, "tps") / native,
            **({f"ratio to {FUNCTION}": median(rounds, "tps") / median(results[FUNCTION], "tps")} if FUNCTION in results else {}),
            **({"ratio to local table and floor together": median(rounds, "tps") / most} if most else {}),
        })
    return table


def run(lab):
    count = prepare(lab)
    return rows(lab.alternate(**contestants(lab, count, CLIENTS, JOBS, "simple", lab.seconds)))
