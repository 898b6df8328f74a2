"""TPC-H and thirty other reports, on the same machine and over a network of 1 ms and 1 Gbit/s.

What counts is how much longer the network makes a report.  Both settings must give the same rows.
"""
import library
from laboratory import median
from targets import commands, network
from workloads import tpch	# which says where the next ones are
from load import TABLES, create_foreign_tables
from queries import NUMBERS, answer, query

ONE_WAY, RATE = 500, 125_000_000	# microseconds, bytes a second
SCHEMAS = ("near", "far")


def make_tpch(cursor, ports):
    for schema in SCHEMAS:
        create_foreign_tables(cursor, "decimal", "127.0.0.1", ports[schema], schema, says_indexed=False)
        for name in TABLES:
            cursor.execute(f"ANALYZE {schema}.{name}")


def make_library(cursor, ports):
    for schema in SCHEMAS:
        # the servers are those of TPC-H
        for name, columns in library.COLUMNS.items():
            cursor.execute(f"CREATE FOREIGN TABLE {schema}.{name} ({columns}) SERVER tpch_{schema} OPTIONS (database 'bench')")
            cursor.execute(f"ANALYZE {schema}.{name}")


def report(lab, cursor, carried, title, text):
    """One line of the table."""
    def through(schema):
        cursor.execute(f"SET search_path = {schema}, public")
        before = carried()
        result = tpch.timed(answer, cursor, text)
        return result | {"bytes": carried() - before}

    lab.say(f" {title}")
    answers = []
    for schema in SCHEMAS:
        cursor.execute(f"SET search_path = {schema}, public")
        answers.append(sorted(answer(cursor, text)))
    if answers[0] != answers[1]:
        raise RuntimeError(f"{title}: another answer over the network")
    results = lab.alternate(**{schema: lambda schema=schema: through(schema) for schema in SCHEMAS})
    near, far = (median(results[schema], "seconds") for schema in SCHEMAS)
    return {"report": title, "same machine s": near, "1 ms, 1 Gbit/s s": far, "ratio": far / near,
            "bytes": results["far"][-1]["bytes"], "commands": commands(results["far"][-1]["seen"])}


def run(lab):
    connection = tpch.connect(lab)
    scale_factor = max(tpch.SCALE_FACTOR * lab.scale, tpch.LEAST)
    tpch.load(connection, lab.host, lab.port, scale_factor, lab.say)
    library.load(lab)
    texts = {f"Q{number}": query(number, scale_factor) for number in NUMBERS} | library.REPORTS
    with network(lab.port, ONE_WAY, RATE) as (port, carried), connection.cursor() as cursor:
        ports = {"near": lab.port, "far": port}
        make_tpch(cursor, ports)
        table = [report(lab, cursor, carried, title, text) for title, text in texts.items() if title.startswith("Q")]
        cursor.execute("; ".join(f"DROP FOREIGN TABLE {schema}.{name}" for schema in SCHEMAS for name in TABLES))
        make_library(cursor, ports)
        table += [report(lab, cursor, carried, title, text) for title, text in library.REPORTS.items()]
        return table


def show(title, rows):
    """A table in markdown."""
    print(f"\n{title}\n\n| report | same machine, ms | 1 ms and 1 Gbit/s, ms | ratio | bytes | commands |\n|---|---|---|---|---|---|")
    for row in rows:
        print(f"| {row['report']} | {row['same machine s'] * 1000:.1f} | {row['1 ms, 1 Gbit/s s'] * 1000:.1f} | "
              f"{row['ratio']:.2f} | {row['bytes']} | {row['commands']} |")
    print(f"\n{sum(row['ratio'] > 3 for row in rows)} of {len(rows)} take more than 3 times as long")
