"""Conditions of 10, 100 and 1,000 parts over 100,000 documents, and ranges of an indexed column.

Each is counted as it is planned, and with mongo_fdw.enable_pushdown off; ranges also without the
hint {$natural: 1}, which the option pushdown_disable 'natural' leaves out.
"""
import random
import re

import bson

from laboratory import median

COUNT, PARTS, SHARES = 100_000, (10, 100, 1_000), (10, 30, 70, 100)


def documents(count):
    places = list(range(count))
    random.Random(1).shuffle(places)
    for number in range(count):
        yield {"_id": number, "i": number % 1000, "n": bson.Decimal128(str(number % 5000 / 4)), "s": f"text {number % 997}",
               "x": places[number], "filler": "-" * 100, "j": {"a": number % 10, f"k{number % 50}": 1}}


def joined(separator, part):
    return lambda parts: separator.join(part(number) for number in range(2, parts + 2))


def within(form, list_of):
    return lambda parts: form % list_of(parts)


numbers, keys = joined(", ", str), joined(", ", lambda number: f"'k{number}'")
CONDITIONS = {
    "numeric IN": within("n IN (%s)", numbers),
    "numeric NOT IN": within("n NOT IN (%s)", numbers),
    "integer IN": within("i IN (%s)", numbers),
    "i % c <> 1, with AND": joined(" AND ", lambda number: f"i % {number} <> 1"),
    "BETWEEN, with OR": joined(" OR ", lambda number: f"i BETWEEN {2 * number} AND {2 * number + 1}"),
    "LIKE, with OR": joined(" OR ", lambda number: f"s LIKE '%{number}_'"),
    "greatest": within("greatest(%s) = 50", joined(", ", lambda number: f"i + {number}")),
    "CASE WHEN i IN": within("CASE WHEN i IN (%s) THEN i > 5 ELSE i < 5 END", numbers),
    "jsonb ?|": within("j ?| ARRAY[%s]", keys),
}


def planned(lab, query, pushdown):
    """The rows of a query with this setting of mongo_fdw.enable_pushdown."""
    lab.sql(f"SET mongo_fdw.enable_pushdown = {pushdown}")
    rows = lab.sql(query)
    lab.sql("RESET mongo_fdw.enable_pushdown")
    return rows


def execution(lab, query, pushdown="on"):
    """How long a query takes."""
    text = "\n".join(row[0] for row in planned(lab, "EXPLAIN (ANALYZE, TIMING OFF, COSTS OFF) " + query, pushdown))
    return {"ms": float(re.search(r"Execution Time: ([\d.]+) ms", text).group(1))}


def compare(lab, condition, parts, query, **others):
    """One line of the table; 'others' are queries of the same rows."""
    lab.say(f" {condition}, {parts} parts")
    assert sorted(planned(lab, query, "on"), key=str) == sorted(planned(lab, query, "off"), key=str), query
    results = lab.alternate(
        planned=lambda: execution(lab, query), off=lambda: execution(lab, query, "off"),
        **{name: lambda other=other: execution(lab, other) for name, other in others.items()})
    return {"condition": condition, "parts": parts,
            **{f"{name} ms": median(rounds, "ms") for name, rounds in results.items()}}


def run(lab):
    count = int(COUNT * lab.scale)
    lab.collection("conditions", count, documents(count), indexes=["x"])
    for name, options in (("conditions", ""), ("conditions_indexed", ", pushdown_disable 'natural'")):
        lab.sql(f"CREATE FOREIGN TABLE {name} (_id int, i int, n numeric, s text, x int, filler text, j jsonb) SERVER bench "
                f"OPTIONS (database 'bench', collection 'conditions'{options})")
        lab.sql(f"ANALYZE {name}")
    lab.sql("SET jit = off")  # which compiles 1,000 conditions for seconds
    table = [compare(lab, name, parts, f"SELECT count(*) FROM conditions WHERE {condition(parts)}")
             for name, condition in CONDITIONS.items() for parts in PARTS]
    for share in SHARES:
        condition = f"WHERE x < {count * share // 100}"
        table.append(compare(lab, f"indexed range of {share} %", 1, f"SELECT * FROM conditions {condition}",
                             index=f"SELECT * FROM conditions_indexed {condition}"))
    lab.sql("RESET jit")
    return table


def show(title, table):
    print(f"\n{title}\n")
    for row in table:
        print(f"| {row['condition']} | {row['parts']} | " + " | ".join(
            f"{value:.0f}" for name, value in row.items() if name.endswith(" ms")) + " |")
