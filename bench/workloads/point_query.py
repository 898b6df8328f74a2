"""Find one document of a million by an indexed number, 24 clients at a time.

pgbench -M simple -n -r -c 24 -j 12, as in the measurement of 2013 that started
it all, beside a libmongoc program with 24 threads and the same filter and
projection.
"""
import datetime

from laboratory import median

CLIENTS, JOBS = 24, 12


def documents(count):
    start = datetime.datetime(2013, 1, 1)
    for number in range(1, count + 1):
        yield {"id": number, "info": f"information about {number}",
               "crt_time": start + datetime.timedelta(seconds=number)}


def run(lab):
    count = int(1_000_000 * lab.scale)
    lab.collection("points", count, documents(count), indexes=["id"])
    lab.sql("CREATE FOREIGN TABLE points (id int, info text, crt_time timestamp) SERVER bench "
            "OPTIONS (database 'bench', collection 'points', estimated_rows %s)", (str(count),))
    lab.sql("ANALYZE points")
    found = lab.sql("SELECT info FROM points WHERE id = %s", (count,))
    assert found == [(f"information about {count}",)], found

    results = lab.alternate(
        native=lambda: lab.native("point", lab.uri, "bench.points", CLIENTS, lab.seconds, count),
        mongo_fdw=lambda: lab.pgbench("point_query.sql", "-M", "simple", "-n", "-r", "-c", CLIENTS, "-j", JOBS,
                                      "-T", lab.seconds, "-D", f"documents={count}"))
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
        })
    native, wrapper = table
    wrapper["ratio to native"] = wrapper["tps"] / native["tps"]
    return table
