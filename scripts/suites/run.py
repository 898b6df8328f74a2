"""PostgreSQL's own regression queries over foreign tables, compared with ordinary tables.

    run.py --source FOLDER --mongo mongodb://127.0.0.1:27017 --output FILE [--only join,window]

Each script of src/test/regress/sql runs statement by statement in two databases of one
server, one with local and one with foreign tables.  Results must be the same rows, in
any order, or the same SQLSTATE; EXPLAIN's output may differ.  differences.py lists the
intended differences.
"""

import argparse
import os
import re
import subprocess
import sys
import time

import psycopg2
import pymongo

from both_sides import ForeignSide, Side, texts_only
from differences import reason_of
from script import Script

SUITES = """int2 int4 int8 float4 float8 text char varchar boolean numeric bit uuid strings jsonb arrays
    case select select_into select_distinct select_distinct_on select_implicit select_having subselect union join join_hash
    aggregates window groupingsets with limit portals prepare plancache insert update delete returning merge incremental_sort memoize
    tuplesort equivclass expressions random rowtypes rangefuncs plpgsql copy namespace tsrf select_views misc_functions regex name guc""".split()
STANDARD = "regress_standard"
# suites whose results depend on the order of scans: window functions without ORDER BY
NATURAL_ORDER = ("window",)
# tables for which a script uses a feature that foreign tables lack
ORDINARY = [re.compile(pattern, re.I) for pattern in (
    r"\binsert\s+into\s+(\w+)[^;]*?\bon\s+conflict[^;]*?\bdo\s+update\b",
    r"\bcreate\s+(?:or\s+replace\s+)?rule\s[^;]*?\sto\s+(\w+)",
    r"\bcreate\s+(?:constraint\s+)?trigger\s[^;]*?\son\s+(\w+)",
    r"\b(?:update|delete\s+from)\s+(\w+)[^;]*?\bwhere\s+current\s+of\b",
    r"\bmerge\s+into\s+(?:only\s+)?(\w+)",
    r"\binherits\s*\(\s*(\w+)",
    r"\battach\s+partition\s+(\w+)")]


def administer(*statements):
    side = Side("postgres")
    for statement in statements:
        side.must(statement)
    side.close()


class Suites:
    def __init__(self, options):
        self.options = options
        self.sql = os.path.join(options.source, "src/test/regress/sql")
        self.mongo = pymongo.MongoClient(options.mongo, directConnection=True)
        self.output = open(options.output, "w", encoding="utf-8")
        self.dropped = []
        self.reasons = {}
        self.unexpected = 0
        self.compared = 0

    def start_replica_set(self):
        """Starts a replica set of one member, for transactions."""
        host = "%s:%d" % self.mongo.address
        try:
            self.mongo.admin.command("replSetInitiate", {"_id": "rs", "members": [{"_id": 0, "host": host}]})
        except pymongo.errors.OperationFailure as error:
            if error.code != 23:
                raise
        while not self.mongo.admin.command("hello")["isWritablePrimary"]:
            time.sleep(0.1)

    def make_templates(self):
        """Creates regress_local with PostgreSQL's tables, and regress_foreign with foreign tables."""
        administer("DROP DATABASE IF EXISTS regress_foreign", "DROP DATABASE IF EXISTS regress_local", "CREATE DATABASE regress_local")
        environment = dict(os.environ, PG_ABS_SRCDIR=os.path.join(self.options.source, "src/test/regress"), PG_LIBDIR="/nonexistent", PG_DLSUFFIX=".so")
        for name in ("test_setup", "create_index"):
            subprocess.run([self.options.psql, "-X", "-q", "-d", "regress_local", "-f", f"{self.sql}/{name}.sql"], env=environment,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        administer("CREATE DATABASE regress_foreign TEMPLATE regress_local")
        host, port = self.mongo.address
        for name in self.mongo.list_database_names():
            if name.startswith("regress_"):
                self.mongo.drop_database(name)
        side = ForeignSide("regress_foreign", self.mongo, STANDARD)
        for statement in ("CREATE EXTENSION mongo_fdw", f"CREATE SERVER mongodb FOREIGN DATA WRAPPER mongo_fdw OPTIONS (address '{host}', port '{port}')",
                          "CREATE USER MAPPING FOR PUBLIC SERVER mongodb", "GRANT USAGE ON FOREIGN SERVER mongodb TO PUBLIC"):
            side.must(statement)
        side.convert()
        side.must("ANALYZE")
        side.close()
        print(f"standard tables in MongoDB: {', '.join(side.converted)}")
        self.keep_standard()

    def keep_standard(self):
        """Copies the standard collections, because scripts write to some."""
        database = self.mongo[STANDARD]
        self.hashes = database.command("dbHash")["collections"]
        for name in self.hashes:
            database[name].aggregate([{"$out": {"db": "regress_pristine", "coll": name}}])

    def drop_indexes(self):
        """Drops the standard tables' indexes, so that tables are read in the order of writing."""
        database = self.mongo[STANDARD]
        self.dropped = [(name, index) for name in self.hashes for index in database[name].list_indexes() if index["name"] != "_id_"]
        for name in self.hashes:
            database[name].drop_indexes()

    def restore_standard(self):
        database = self.mongo[STANDARD]
        for name, index in self.dropped:
            keys = {key: value for key, value in index.items() if key in ("unique", "partialFilterExpression")}
            database[name].create_index(list(index["key"].items()), **keys)
        self.dropped = []
        for name, content in database.command("dbHash")["collections"].items():
            if self.hashes.get(name) != content:
                self.mongo["regress_pristine"][name].aggregate([{"$out": {"db": STANDARD, "coll": name}}])

    def report(self, suite, statement, local, foreign):
        reason = reason_of(suite, statement, local, foreign)
        if reason is not None:
            self.reasons[reason] = self.reasons.get(reason, 0) + 1
            return False
        self.unexpected += 1
        self.output.write(f"==== {suite}\n{statement};\n-- locally: {local}\n-- foreign: {foreign}\n\n")
        self.output.flush()
        return True

    def run(self, suite):
        start = time.monotonic()
        for name in ("local", "foreign"):
            administer(f"DROP DATABASE IF EXISTS regress_{name}_now", f"CREATE DATABASE regress_{name}_now TEMPLATE regress_{name}")
        local, foreign = Side("regress_local_now"), ForeignSide("regress_foreign_now", self.mongo, f"regress_{suite}")
        foreign.run("SELECT 1")
        foreign.seen.update(oid for oid, in foreign.must("SELECT oid FROM pg_class"))
        with open(f"{self.sql}/{suite}.sql", encoding="utf-8") as file:
            text = file.read()
        foreign.kept.update(name.lower() for pattern in ORDINARY for name in pattern.findall(text))
        script = Script(text, {"abs_srcdir": "/nonexistent"})
        if suite in NATURAL_ORDER:
            self.drop_indexes()
        counts = {"same": 0, "known": 0, "unexpected": 0, "lost": 0}
        for statement, data in script.statements():
            try:
                ours, theirs = local.run(statement, data), foreign.run_translated(statement, data)
                if foreign.connection.closed:
                    print(f"the session over foreign tables is lost: {statement}")
                    self.report(suite, statement, ours, theirs)
                    counts["unexpected"] += 1
                    break
                if re.search(r"\b(create|into)\b", statement, re.I) and theirs.sqlstate is None:
                    foreign.convert()
            except (RuntimeError, psycopg2.Error, pymongo.errors.PyMongoError) as error:
                raise RuntimeError(f"{suite}: {statement}") from error
            self.compared += 1
            if re.match(r"explain\b", statement, re.I) and ours.sqlstate is None and theirs.sqlstate is None or ours.is_same(theirs):
                counts["same"] += 1
            elif "25P02" in (ours.sqlstate, theirs.sqlstate):
                counts["lost"] += 1		# statements after an error of one side in a transaction
            else:
                counts["unexpected" if self.report(suite, statement, ours, theirs) else "known"] += 1
        local.close()
        foreign.close()
        self.mongo.drop_database(f"regress_{suite}")
        self.restore_standard()
        print(f"{suite:20} {counts['same']:5} the same {counts['known']:4} known {counts['lost']:4} behind an error {counts['unexpected']:4} UNEXPECTED"
              f"   {len(foreign.converted)} tables in MongoDB, {time.monotonic() - start:.0f} s", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", required=True, help="PostgreSQL's source")
    parser.add_argument("--mongo", required=True)
    parser.add_argument("--psql", default="psql")
    parser.add_argument("--output", required=True, help="where the differences go that are not known")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    texts_only()
    suites = Suites(options)
    suites.start_replica_set()
    suites.make_templates()
    for suite in options.only.split(",") if options.only else SUITES:
        if os.path.exists(f"{suites.sql}/{suite}.sql"):
            suites.run(suite)
    for reason, count in sorted(suites.reasons.items(), key=lambda item: -item[1]):
        print(f"{count:5}  {reason}")
    print(f"{suites.compared} statements compared, {sum(suites.reasons.values())} known differences, {suites.unexpected} others")
    return 1 if suites.unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
