"""Random queries of sqlsmith over foreign tables: no crash, no internal error.

    smith.py --source FOLDER --mongo URI --log FILE --queries 20000 --seed 1

The tables are PostgreSQL's standard tables and one with many types, in MongoDB.  Failures
are found in the server's log: a crash, a message such as "unexpected", SQLSTATE XX000.
Such a query is then run over ordinary tables, in a database that is otherwise the same:
if it fails there too, the failure is PostgreSQL's own.
"""

import argparse
import re
import subprocess
import sys

from both_sides import ForeignSide, Side, texts_only
from run import STANDARD, Suites, administer

CRASH = re.compile(r"terminated by signal|PANIC:|TRAP:|server process .* exited with exit code")
INTERNAL = re.compile(r"XX\d\d\d (ERROR|FATAL): |ERROR:  (unexpected|unrecognized node|cache lookup failed|could not find .* in targetlist|"
                      r"variable not found|invalid attribute number|no relation entry|failed to (build|assign|find)|plan should not)")
MANY_TYPES = """
    CREATE TABLE many_types (id integer, b boolean, s smallint, l bigint, r real, d double precision, n numeric, t text, v varchar(20), c char(5),
        u uuid, y bytea, j jsonb, a integer[], ta text[], dt date, ts timestamp, tz timestamptz, i interval);
    INSERT INTO many_types SELECT g, g % 2 = 0, g % 100, g * 1000000007::bigint, g / 3.0::real, g / 7.0::double precision, g / 8.0, 'text ' || g % 10, 'v' || g,
        'c' || g % 7, md5(g::text)::uuid, decode(md5(g::text), 'hex'), jsonb_build_object('a', g, 'b', jsonb_build_array(g % 3, 'x')),
        ARRAY[g, g % 5], ARRAY['x' || g % 4], date '2020-01-01' + g, timestamp '2020-01-01' + g * interval '1 hour',
        timestamptz '2020-01-01 UTC' + g * interval '1 minute', g * interval '1 second' FROM generate_series(1, 100) g;
    INSERT INTO many_types (id) VALUES (101)"""


def make_tables(suites):
    suites.make_templates()
    for name in ("local", "foreign"):
        side = Side(f"regress_{name}")
        side.must(MANY_TYPES)
        side.must("CREATE EXTENSION IF NOT EXISTS mongo_fdw")		# type objectid
        side.close()
    side = ForeignSide("regress_foreign", suites.mongo, STANDARD)
    found, = side.must("SELECT oid, 'public', relname FROM pg_class WHERE relname = 'many_types'")
    side.convert_table(*found)
    for table, in side.must("""SELECT relname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
            WHERE relkind IN ('r', 'p') AND nspname = 'public' AND NOT EXISTS (SELECT FROM pg_depend
                WHERE classid = 'pg_class'::regclass AND objid = c.oid AND deptype = 'e')"""):
        side.must(f'DROP TABLE IF EXISTS "{table}" CASCADE')		# ordinary tables are not tested
    side.must("ANALYZE")
    # functions that would stop the server, or wait forever
    roles = Side("postgres")
    roles.run("CREATE ROLE smith LOGIN")
    roles.must("ALTER ROLE smith SET statement_timeout = '3s'; ALTER ROLE smith SET mongo_fdw.log_remote_query = off")
    side.must("GRANT ALL ON ALL TABLES IN SCHEMA public TO smith; GRANT USAGE ON FOREIGN SERVER mongodb TO smith")
    for function, in side.must("SELECT oid::regprocedure::text FROM pg_proc WHERE proname ~ '^pg_sleep|^mongo_(command|aggregate)'"):
        side.must(f"REVOKE EXECUTE ON FUNCTION {function} FROM PUBLIC")
    # sqlsmith lacks polymorphic ranges: two thirds of its queries would be type errors
    polymorphic = "'{anyrange,anymultirange,anycompatiblerange,anycompatiblemultirange}'::regtype[]"
    side.must(f"DELETE FROM pg_operator WHERE oprleft = ANY ({polymorphic}) OR oprright = ANY ({polymorphic})")
    side.must(f"DELETE FROM pg_proc WHERE prorettype = ANY ({polymorphic}) OR EXISTS (SELECT FROM unnest(proargtypes) t WHERE t = ANY ({polymorphic}))")
    side.close()
    roles.close()


def entries(text):
    """Yields each entry of the log, with all its lines."""
    for entry in re.split(r"^(?=\d{4}-\d\d-\d\d )", text, flags=re.M):
        yield entry


def failures(text):
    """Returns crashes, and internal errors with their statements."""
    crashes, internal, previous = [], [], None
    for entry in entries(text):
        if CRASH.search(entry):
            crashes.append(entry.strip())
        if previous is not None and re.search(r" STATEMENT:  ", entry):
            internal.append((previous, re.split(r" STATEMENT:  ", entry, maxsplit=1)[1]))
            previous = None
        elif INTERNAL.search(entry):
            previous = entry.strip()
        elif not re.search(r" (DETAIL|HINT|CONTEXT|LOCATION|QUERY):  ", entry):
            previous = None
    return crashes, internal


def happens_locally(message, statement):
    side = Side("regress_local")
    side.run("BEGIN")
    outcome = side.run(statement)
    side.close()
    return outcome.sqlstate is not None and outcome.sqlstate[:2] == "XX" and outcome.message.splitlines()[0] in message


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", required=True)
    parser.add_argument("--mongo", required=True)
    parser.add_argument("--psql", default="psql")
    parser.add_argument("--log", required=True, help="the log of PostgreSQL's server")
    parser.add_argument("--queries", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", required=True)
    options = parser.parse_args()
    texts_only()
    suites = Suites(options)
    suites.start_replica_set()
    make_tables(suites)
    administer("ALTER SYSTEM SET log_line_prefix = '%m [%p] %e '", "SELECT pg_reload_conf()")
    with open(options.log, encoding="utf-8", errors="replace") as log:
        log.seek(0, 2)
        smith = subprocess.run(["sqlsmith", "--target=dbname=regress_foreign user=smith", "--exclude-catalog", f"--max-queries={options.queries}",
                                f"--seed={options.seed}"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        text = log.read()
    crashes, internal = failures(text)
    ours = [(message, statement) for message, statement in internal if not happens_locally(message, statement)]
    with open(options.output, "w", encoding="utf-8") as output:
        for crash in crashes:
            output.write(f"==== {crash}\n")
        for message, statement in ours:
            output.write(f"==== {message}\n{statement}\n")
    states = re.findall(r"^\S+ \S+ \S+ \[\d+\] (\w{5}) ERROR:", text, re.M)
    counts = {state: states.count(state) for state in set(states)}
    print(f"seed {options.seed}: {options.queries} queries, {len(states)} of them errors: "
          + ", ".join(f"{state} {count}" for state, count in sorted(counts.items(), key=lambda item: -item[1])))
    if smith.returncode != 0:
        print(f"sqlsmith ended with {smith.returncode}: {smith.stderr[-500:]}")
    print(f"{len(crashes)} crashes, {len(internal) - len(ours)} internal errors that ordinary tables give as well, {len(ours)} others")
    return 1 if crashes or ours or smith.returncode != 0 else 0


if __name__ == "__main__":
    sys.exit(main())
