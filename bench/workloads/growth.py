"""Read 100,000, a million and ten million documents: what one of them costs, and the memory it takes.

Each scan runs in a backend of its own, whose own memory (anonymous pages) is
read before the scan and after.
"""
import psycopg2

from laboratory import median
from workloads.point_query import documents
from workloads.scan import measured, memory_mb

SIZES = (100_000, 1_000_000, 10_000_000)


def fresh(lab, query, count):
    """Measured in a new backend, warmed by a query that reads one document."""
    connection = psycopg2.connect("")
    connection.autocommit = True
    try:
        other = type("Session", (), {})()
        other.postgres = connection
        other.sql = lambda text: execute(connection, text)
        other.sql(query + " LIMIT 1")
        before = memory_mb(connection.info.backend_pid)
        result = measured(other, query, count)
        result["growth_mb"] = result["memory_mb"] - before
        return result
    finally:
        connection.close()


def execute(connection, text):
    with connection.cursor() as cursor:
        cursor.execute(text)
        return cursor.fetchall()


def run(lab):
    names = {}
    for size in SIZES:
        count = int(size * lab.scale)
        names[count] = f"growth_{count}"
        lab.collection(names[count], count, documents(count))
        lab.sql(f"CREATE FOREIGN TABLE {names[count]} (id int, info text, crt_time timestamp) SERVER bench "
                f"OPTIONS (database 'bench')")
        lab.sql(f"ANALYZE {names[count]}")
    results = lab.alternate(**{
        name: lambda name=name, count=count: fresh(lab, f"SELECT id, info, crt_time FROM {name}", count)
        for count, name in names.items()})
    table = [{"documents": count, "seconds": median(results[name], "seconds"),
              "microseconds a document": median(results[name], "seconds") / count * 1e6,
              "backend's memory, MB": max(result["memory_mb"] for result in results[name]),
              "of which the scan, MB": max(result["growth_mb"] for result in results[name])}
             for count, name in names.items()]
    for row in table:
        row["cost of a document as a ratio to the first row's"] = \
            row["microseconds a document"] / table[0]["microseconds a document"]
    return table
