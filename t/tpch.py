"""The 22 queries of TPC-H over MongoDB, each compared with PostgreSQL's own answer to the last digit.

    tpch.py --dsn DSN --host HOST --port PORT --scale-factor 0.01

Money is Decimal128 once and Double once.  Each query runs with pushdown, without,
and with costs that make work here so expensive that what can be pushed is.
Prints a line "ok" or "not ok" for each case.
"""
import argparse
import os
import sys

import psycopg2

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench", "tpch")]
from load import KINDS, load  # noqa: E402
from queries import NUMBERS, Plan, answer, query, same_answer  # noqa: E402

SETTINGS = {
    "as planned": "",
    "without pushdown": "SET mongo_fdw.enable_pushdown = off",
    "pushing all that can be": "SET cpu_tuple_cost = 10; SET cpu_operator_cost = 10; SET mongo_fdw.enable_batched_joins = off",
}
# So many need nothing but Foreign Scans then.
WHOLLY = 13
# Without pushdown this reads all of lineitem for each row of partsupp: an hour.
TOO_SLOW = {(20, "without pushdown")}


def check(cursor, schema, number, settings, text, expected):
    """One case; whether it passed."""
    cursor.execute(f"RESET ALL; SET search_path = {schema}, public; {SETTINGS[settings]}")
    name = f"Q{number}, money as {schema}, {settings}"
    try:
        rows = answer(cursor, text)
    except psycopg2.Error as error:
        print(f"not ok - {name}\n{error.pgcode}: {error}".rstrip().replace("\n", "\n#   "))
        return False
    if same_answer(number, rows, expected):
        print(f"ok - {name}: {len(rows)} rows")
        return True
    print(f"not ok - {name}")
    print(f"#   only here: {[row for row in rows if row not in expected][:3]}")
    print(f"#   only PostgreSQL: {[row for row in expected if row not in rows][:3]}")
    return False


def run(options):
    connection = psycopg2.connect(options.dsn)
    connection.autocommit = True
    load(connection, options.host, options.port, options.scale_factor)
    passed, filled, wholly = True, 0, 0
    with connection.cursor() as cursor:
        for number in NUMBERS:
            text = query(number, options.scale_factor)
            cursor.execute("RESET ALL; SET search_path = local")
            expected = answer(cursor, text)
            filled += bool(expected) and expected != [["\\N"]]
            for schema in KINDS:
                for settings in SETTINGS:
                    if (number, settings) in TOO_SLOW:
                        continue
                    passed &= check(cursor, schema, number, settings, text, expected)
            wholly += Plan(cursor, text).is_wholly_pushed()
    # at a small scale some conditions meet nothing
    print(f"{'ok' if filled >= 20 else 'not ok'} - {filled} of 22 answers have content")
    print(f"{'ok' if wholly >= WHOLLY else 'not ok'} - {wholly} of 22 run wholly in MongoDB when all that can be is pushed")
    print("done")
    return passed and filled >= 20 and wholly >= WHOLLY


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dsn", required=True)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--scale-factor", type=float, default=0.01)
    sys.exit(0 if run(parser.parse_args()) else 1)


if __name__ == "__main__":
    main()
