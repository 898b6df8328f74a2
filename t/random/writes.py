"""Random writes to foreign tables and to ordinary tables, which must remain equal.

    writes.py --dsn ... --mongo URI --seed 1 --statements 500

The statements are those of t/random/statements.py, over the tables of t/random/tables.py.  After
each one, both sides must have the same rows, the same number of affected rows and the same result
of RETURNING.  Then the collection itself is checked: fields that the statement does not assign,
with or without a column, must be unchanged byte for byte, and assigned fields must have the BSON
type that docs/types.md specifies.

Some blocks of statements run under settings drawn at random (t/random/settings.py),
and prepared, in PL/pgSQL, or as part of a query.
"""

import argparse
import random
import sys

import psycopg2
from bson import BSON, encode
from pymongo import MongoClient

from settings import PLANNING, SESSION, RandomSettings
from tables import COLUMNS, LOCAL, REMOTE, Tables, quote
from statements import RandomWrites
import test_arguments

# Dates as PostgreSQL's text, in any style.
psycopg2.extensions.register_type(psycopg2.extensions.new_type((1082, 1083, 1114, 1184, 1186), "AS_TEXT", lambda value, _: value))

# Number of statements under the same settings, over the same tables.
BLOCK = 25
STATEMENTS_A_DATABASE = 300

# Ways to run a statement and their frequency: directly, prepared, in a query, in a loop within
# an exception block.
WAYS = {"directly": 6, "prepared": 2, "query": 2, "loop": 2}
LOOP = """CREATE OR REPLACE FUNCTION pg_temp.random_write() RETURNS SETOF text LANGUAGE plpgsql AS $random$
DECLARE
    written record;
BEGIN
    BEGIN
        FOR written IN %s LOOP
            RETURN NEXT written::text;
        END LOOP;
    EXCEPTION WHEN division_by_zero THEN
        RETURN NEXT 'never';
    END;
END $random$"""

# Without a row there is no value that fails.
NO_ROW = "UPDATE %s.items SET a = 10 / (SELECT 0) WHERE _id = -12345"


class Difference(Exception):
    pass


def get(document, path):
    for part in path.split("."):
        if not isinstance(document, dict) or part not in document:
            return "missing"
        document = document[part]
    return document


def remove(document, path):
    head, _, rest = path.partition(".")
    if not rest:
        document.pop(head, None)
    elif isinstance(document.get(head), dict):
        remove(document[head], rest)
        if not document[head]:
            del document[head]


def check_types(number, path, old, new):
    """Checks that equal numbers at one path have the same type, unless a parent is new."""
    if isinstance(old, dict) and isinstance(new, dict):
        if any("." in key for key in list(old) + list(new)):
            return
        for key in old:
            check_types(number, path + "." + key, old[key], new.get(key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) <= len(new):
        for i, value in enumerate(old):
            check_types(number, "%s.%d" % (path, i), value, new[i])
    elif old == new and type(old) is not type(new):
        raise Difference("_id %r: %s was a %s and is a %s" % (number, path, type(old), type(new)))


class Writes:
    def __init__(self, options):
        self.options = options
        self.lasting = options.lasting
        self.connection = psycopg2.connect(options.dsn)
        self.connection.autocommit = True
        self.cursor = self.connection.cursor()
        self.client = MongoClient(options.mongo)
        self.rng = random.Random(options.seed)
        self.log = []
        self.statements = 0
        self.refused = 0
        self.way = "directly"
        # separate, so that a seed gives the same statements whatever is drawn
        self.other_rng = random.Random("ways of %d" % options.seed)
        self.first_rng = random.Random("firsts of %d" % options.seed)
        self.session = RandomSettings(self.execute, options, SESSION)
        self.settings = RandomSettings(self.execute, options, PLANNING)
        self.tables = Tables(self.execute, self.client, options, self.rng, self.other_rng)
        self.collection = self.tables.collection
        self.writes = RandomWrites(self.rng)

    def execute(self, sql):
        self.cursor.execute(sql)
        return self.cursor.fetchall() if self.cursor.description else None

    def set_up(self):
        self.settings.restore()
        self.session.restore()
        self.tables.set_up(self.session.draw)
        # a statement that reads its own writes may never end
        self.execute("SET statement_timeout = '60s'; SET jit = off")

    def begin_again(self):
        """Begins with other tables after a difference."""
        self.execute("ROLLBACK")
        self.statements += -self.statements % STATEMENTS_A_DATABASE

    def show(self, schema):
        """Sets the schema whose tables the next statements use."""
        self.execute("SET search_path = " + self.settings.path("%s, writes" % schema))

    # ---- checks

    def in_this_way(self, sql, written):
        """Returns statements that run this one; the last of them returns its result."""
        if "; " in sql or not sql.startswith(("INSERT", "UPDATE", "DELETE")) and self.way != "prepared":
            return [sql]
        if self.way == "prepared":
            return ["DEALLOCATE ALL", "PREPARE random_write AS " + sql, "EXECUTE random_write"]
        if self.way != "directly" and " RETURNING " not in sql:
            sql += " RETURNING %s" % (written + "._id" if written != "whole" else "1")
        if self.way == "query":
            return ["WITH written AS (%s) SELECT written::text FROM written" % sql]
        if self.way == "loop":
            return [LOOP % sql, "SELECT * FROM pg_temp.random_write()"]
        return [sql]

    def run(self, schema, sql, written, free=False):
        """Returns the number of rows and the rows, or the error's class."""
        self.show(schema)
        try:
            for statement in self.in_this_way(sql, written) if not free else [sql]:
                self.cursor.execute(statement)
            rows = self.cursor.fetchall() if self.cursor.description else []
            return self.cursor.rowcount, sorted(map(repr, rows))
        except psycopg2.OperationalError as error:
            if self.connection.closed:
                raise
            return "error", error.pgcode
        except psycopg2.Error as error:
            # a local constraint rejects the _ids that MongoDB rejects
            return "error", None if "whole" in sql else error.pgcode[:2]

    def check_tables(self, sql):
        """Compares the tables that a statement may have written to."""
        for table in ["items"] + [table for table in ("kept", "whole") if table in sql]:
            local, remote = (sorted(map(repr, self.execute("SELECT * FROM %s.%s" % (schema, table)))) for schema in (LOCAL, REMOTE))
            if local != remote:
                only_local = [r for r in local if r not in remote][:3]
                only_remote = [r for r in remote if r not in local][:3]
                raise Difference("tables %s differ: %d and %d rows\n  local:  %s\n  remote: %s" % (
                    table, len(local), len(remote), only_local, only_remote))

    def check_documents(self, before, assigned):
        for document in self.collection.find():
            old = before.get(document["_id"])
            for _, _, path, types, *_ in COLUMNS:
                value = get(document, path)
                changed = old is None or get(old, path) != value
                if changed and value != "missing" and types is not None and type(value) not in types:
                    raise Difference("_id %r: %s is a %s" % (document["_id"], path, type(value)))
            if old is None or assigned is None:
                continue
            old = BSON.encode(old).decode()
            for path in assigned:
                remove(document, path)
                remove(old, path)
            if encode(document) != encode(old):
                raise Difference("a field that was not assigned changed\n  was: %s\n  is:  %s" % (old, document))

    def keeps_types(self, sql):
        """Does the statement compute j and r from their old values, or not assign them?"""
        assigned = sql.split(" WHERE ")[0]
        return sql.startswith("UPDATE") and not any(
            "%s = %s::" % (quote(c[0]), value) in assigned or "%s = NULL" % quote(c[0]) in assigned
            for c in COLUMNS if c[0] in ("j", "r") for value in c[4])

    def check_kept(self, before):
        """Checks that a value at one path that is equal in SQL has kept its BSON type."""
        for document in self.collection.find({"_id": {"$in": list(before)}}):
            for name in ("j", "r"):
                check_types(document["_id"], name, before[document["_id"]].get(name), document.get(name))

    def draw(self):
        """Draws settings for a block, and the way to run its next statement."""
        if self.statements % STATEMENTS_A_DATABASE == 0:
            self.set_up()
        if self.statements % BLOCK == 0:
            self.ordinary = not self.settings.draw()
        self.statements += 1
        self.way = "directly" if self.ordinary else self.other_rng.choices(list(WAYS), list(WAYS.values()))[0]

    def documents(self, sql):
        return {name: list(self.tables.database[name].find()) for name in ["items"] + ["whole"] * ("whole" in sql)}

    def restore(self, documents):
        """Restores the documents, as a failed statement's changes remain without a transaction."""
        for name in documents:
            self.tables.database[name].delete_many({})
            if documents[name]:
                self.tables.database[name].insert_many(documents[name])

    def compare_counts(self, statement, documents):
        """Compares the number of rows; a foreign table may also reject the statement."""
        self.log.append(statement.sql)
        counts = []
        for schema in (LOCAL, REMOTE):
            self.execute("BEGIN")
            counts.append(self.run(schema, statement.sql, None, True))
            self.execute("ROLLBACK")
        self.restore(documents)
        if counts[0] != counts[1] and counts[1] != ("error", "0A"):
            raise Difference("numbers of rows differ: %s, %s" % tuple(counts))

    def step(self):
        self.draw()
        statement = self.writes.statement(self.collection.estimated_document_count())
        documents = self.documents(statement.sql)
        before = {d["_id"]: d for d in documents["items"]}
        if statement.free:
            self.compare_counts(statement, documents)
            return
        ending = self.rng.choice(["", "", "COMMIT", "" if self.lasting else "ROLLBACK"])
        self.log.append("%s: %s%s" % (self.way, ending and "BEGIN; ", statement.sql + (ending and "; " + ending)))
        if ending:
            self.execute("BEGIN")
        local = self.run(LOCAL, statement.local, statement.written)
        if ending and local[0] == "error":
            self.execute("ROLLBACK; BEGIN")
        if ending and not self.lasting and self.first_rng.random() < 0.7:
            # commands after a transaction's first one use other code
            self.execute(NO_ROW % REMOTE)
        remote = self.run(REMOTE, statement.sql, statement.written)
        if ending and not self.lasting and remote[0] != "error" and self.first_rng.random() < 0.3:
            # what has found nothing can be rolled back by itself
            self.execute("SAVEPOINT found_nothing; %s; ROLLBACK TO found_nothing" % NO_ROW % REMOTE)
        if ending:
            if remote[0] != "error" and local[0] != "error":
                self.check_tables(statement.sql)
            self.execute(ending)
        if self.lasting and remote[0] == "error":
            self.restore(documents)
        self.refused += local[0] == "error"
        if local != remote:
            raise Difference("results differ\n  local:  %s\n  remote: %s" % (str(local)[:600], str(remote)[:600]))
        self.check_tables(statement.sql)
        self.check_documents(before, statement.assigned if ending != "ROLLBACK" else set())
        if self.keeps_types(statement.sql):
            self.check_kept(before)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dsn", default="")
    parser.add_argument("--mongo", required=True)
    parser.add_argument("--server", default="mongodb")
    parser.add_argument("--seed", type=int, default=random.randrange(10 ** 6))
    parser.add_argument("--statements", type=int, default=300)
    parser.add_argument("--lasting", action="store_true", help="the server's writes are in no transactions of MongoDB's")
    test_arguments.add_drawn(parser)
    parser.add_argument("--type-mismatch", choices=["error", "null"], default="error")
    parser.add_argument("--differences", type=int, default=1, help="after so many it ends")
    options = parser.parse_args()
    writes = Writes(options)
    differences = 0
    for number in range(options.statements):
        try:
            writes.step()
        except Difference as difference:
            differences += 1
            print("seed %d, statement %d: %s\n%s  %s" % (
                options.seed, number, difference, writes.session.describe() + writes.settings.describe(), writes.log[-1]), flush=True)
            if differences >= options.differences:
                break
            writes.begin_again()
    print("seed %d: %d statements, %d of them refused; %d differences" % (options.seed, number + 1, writes.refused, differences))
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main()
