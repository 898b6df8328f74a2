"""How cost grows in each dimension: the CPU time of mongod and the backend at n, 10n and 100n.

A ratio of 1 is linear: ten times the cost for ten times as much.  Fixed costs make it smaller.
growth.py has the number of documents, and conditions.py the parts of a condition.
"""
import statistics

ON_DEMAND = True
ALLOWED = 1.5
DOCUMENTS = 100_000


def table(lab, name, columns, documents=None, collection=None, indexes=()):
    """A foreign table, and its collection if there are documents."""
    if documents is not None:
        lab.collection(name, len(documents), documents, indexes)
    lab.sql(f"CREATE FOREIGN TABLE {name} ({columns}) SERVER bench OPTIONS (database 'bench', collection '{collection or name}')")
    if documents is not None:
        lab.sql(f"ANALYZE {name}")


def of_columns(name, order):
    def prepare(lab, n):
        numbers = range(n)
        table(lab, f"{name}_{n}", "_id int, " + ", ".join(f"c{number} int" for number in numbers),
              [{"_id": key} | {f"c{number}": number for number in order(numbers)} for key in range(100)])
        return f"SELECT * FROM {name}_{n}"
    return prepare


def nested(lab, n):
    value = 1
    for _ in range(n):
        value = {"a": value}
    table(lab, f"deep_{n}", "_id int, j jsonb", [{"_id": key, "j": value} for key in range(1000)])
    return f"SELECT j FROM deep_{n}"


def large(lab, n):
    table(lab, f"large_text_{n}", "_id int, t text", [{"_id": key, "t": "x" * n} for key in range(100)])
    return f"SELECT t FROM large_text_{n}"


def arrays(lab, n):
    table(lab, f"array_{n}", "_id int, a int[]", [{"_id": key, "a": list(range(n))} for key in range(20)])
    return f"SELECT a FROM array_{n}"


def partitions(lab, n):
    table(lab, "part", "_id int", [{"_id": key} for key in range(10)])
    lab.sql(f"CREATE TABLE parts_{n} (_id int, x int) PARTITION BY RANGE (x)")
    for number in range(n):
        lab.sql(f"CREATE FOREIGN TABLE part_{n}_{number} PARTITION OF parts_{n} FOR VALUES FROM ({number}) TO ({number + 1}) "
                f"SERVER bench OPTIONS (database 'bench', collection 'part')")
    return f"SELECT count(*) FROM parts_{n}"


def written(statement):
    """A statement over a collection of n documents."""
    def prepare(lab, n):
        table(lab, f"written_{n}", "_id int, x int", collection="written")
        lab.sql(f"DELETE FROM written_{n}")
        lab.sql(f"INSERT INTO written_{n} SELECT n, n FROM generate_series(1, {n}) n")
        return statement.format(table=f"written_{n}", n=n)
    return prepare


def query(text):
    """A query of the table dimensions, in which n and a list of n numbers may stand."""
    return lambda lab, n: text.format(n=n, list=", ".join(map(str, range(n))))


ROWS = {		# what grows: its least number, and what makes the query
    "columns": (15, of_columns("columns", list)),
    "columns, other order": (15, of_columns("reversed", lambda numbers: reversed(list(numbers)))),
    "nested depth": (1, nested),
    "bytes of a text": (1000, large),
    "elements of an array": (100, arrays),
    "partitions": (5, partitions),
    "tables in UNION ALL": (5, lambda lab, n: "EXPLAIN " + " UNION ALL ".join(["SELECT x FROM dimensions WHERE x = 1"] * n)),
    "conditions on an indexed field": (10, lambda lab, n: "EXPLAIN SELECT FROM dimensions WHERE " + " AND ".join(
        f"x > {number}" for number in range(n))),
    "integers in IN": (1000, query("SELECT count(*) FROM dimensions WHERE x IN ({list})")),
    "values of = ANY": (1000, query("SELECT count(*) FROM dimensions WHERE x = ANY (ARRAY(SELECT generate_series(1, {n})))")),
    "keys of a batched join": (1000, query("SELECT count(d.filler) FROM generate_series(1, {n}) n LEFT JOIN dimensions d ON d.x = n")),
    "ranges joined": (10, query("SELECT count(*) FROM (VALUES (0)) v CROSS JOIN generate_series(1, {n}) n "
                                "JOIN dimensions d ON d.x BETWEEN n AND n + 5")),
    "rows of a correlated subquery": (100, query("SELECT count((SELECT max(filler) FROM dimensions d WHERE d.x = n % 50000)) "
                                                 "FROM generate_series(1, {n}) n")),
    "OFFSET": (1000, query("SELECT x FROM dimensions ORDER BY _id LIMIT 10 OFFSET {n} - 10")),
    "LIMIT": (1000, query("SELECT x FROM dimensions ORDER BY _id LIMIT {n}")),
    "LIMIT above a local filter": (1000, query("SELECT x FROM dimensions WHERE abs(hashint4(x)) % 2 = 0 LIMIT {n} / 2 - 500")),
    "groups": (1000, query("SELECT _id % {n}, count(*) FROM dimensions WHERE _id < {n} GROUP BY 1")),
    "rows inserted": (100, written("INSERT INTO {table} SELECT n, n FROM generate_series({n} + 1, 2 * {n}) n")),
    "rows updated": (100, written("UPDATE {table} SET x = x + 1")),
    "rows updated by a join": (10, written("UPDATE {table} t SET x = n FROM generate_series(1, {n}) n WHERE t._id = n")),
    "rows deleted": (100, written("DELETE FROM {table} WHERE x >= 0")),
}


def cost(lab, text):
    """Runs a statement; milliseconds of CPU."""
    before = lab.cpu()
    lab.sql(text)
    return (lab.cpu() - before) * 1000


def measure(lab, name, least, prepare):
    lab.say(f" {name}")
    row = {"what grows": name, "n": least}
    for n in (least, 10 * least, 100 * least):
        results = []
        for _ in range(lab.rounds):
            lab.sql("DROP SCHEMA IF EXISTS dimension CASCADE; CREATE SCHEMA dimension; SET search_path = dimension, public")
            text = prepare(lab, n)
            times = 1 if text.startswith(("INSERT", "UPDATE", "DELETE")) else 3
            results.append(min(cost(lab, text) for _ in range(times)))
        row[f"{n // least}n"] = statistics.median(results)
    row["ratio"] = row["100n"] / row["10n"] / 10
    return row


def run(lab):
    table(lab, "dimensions", "_id int, x int, filler text",
          [{"_id": number, "x": number * 7919 % DOCUMENTS, "filler": "-" * 50} for number in range(DOCUMENTS)], indexes=["x"])
    rows = [measure(lab, name, *row) for name, row in ROWS.items()]
    lab.sql("DROP SCHEMA dimension CASCADE; RESET search_path")
    return rows


def show(title, rows):
    print(f"\n{title}: milliseconds of CPU\n\n| what grows | n | n | 10n | 100n | ratio |\n|---|---|---|---|---|---|")
    for row in rows:
        print(f"| {row['what grows']} | {row['n']} | " + " | ".join(f"{row[name]:.1f}" for name in ("1n", "10n", "100n")) +
              f" | {row['ratio']:.2f} |" + (" more than linear" if row["ratio"] > ALLOWED else ""))
