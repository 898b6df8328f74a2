"""Random writes to a foreign table and to an ordinary one, which must stay equal.

    writes.py --dsn ... --mongo URI --seed 1 --statements 500

After each statement the two tables have the same rows, the same number of rows
was affected and RETURNING gave the same.  The collection itself is then looked
at: fields that the statement does not assign, whether columns or not, are
byte for byte what they were, and what it assigns has the BSON type that
docs/types.md gives.

Some blocks of statements run under settings drawn at random (t/random/settings.py),
and prepared, in PL/pgSQL, or as part of a query.
"""

import argparse
import random
import sys

import psycopg2
from bson import BSON, Decimal128, Int64, ObjectId
from pymongo import MongoClient

from settings import PLANNING, READER, SESSION, RandomSettings
import test_arguments

# Dates as PostgreSQL shows them, in whatever style.
psycopg2.extensions.register_type(psycopg2.extensions.new_type((1082, 1083, 1114, 1184, 1186), "AS_TEXT", lambda value, _: value))

# Statements under the same settings.
BLOCK = 25

# Ways to run a statement, and how often: itself, prepared, under a query, in a loop within an
# exception block.
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

# column, type, path, BSON types written, literals, what it is declared to be
COLUMNS = [
    ("a", "integer", "a", (int,), ["0", "1", "-5", "7", "100", "2147483647"]),
    ("b", 'text COLLATE "C"', "b", (str,), ["''", "'x'", "'ab'", "'ä'", "'65a000000000000000000001'", "'a.b'", "'$x'"]),
    ("c", "bigint", "c", (Int64,), ["0", "5", "-1", "9007199254740993", "9223372036854775807"]),
    ("n", "numeric", "n", (Decimal128,), ["0", "1.50", "-2.25", "12345678901234567890.123"]),
    ("f", "double precision", "f", (float,), ["0", "0.1", "-1.5", "1e300", "'NaN'"]),
    ("t", "timestamptz", "t", None, ["'2020-01-01'", "'1969-12-31 23:59:59.999Z'", "'2030-06-01 12:00:00.5Z'"]),
    ("d", "date", "d", None, ["'2020-02-29'", "'1900-01-01'"]),
    ("o", "boolean", "o", (bool,), ["true", "false"]),
    ("s.x", "integer", "s.x", (int,), ["1", "2", "3"]),
    ("s y", "text", "s.deep.y", (str,), ["'deep'", "'deeper'"]),
    ("j", "jsonb", "j", None, ["'{\"k\": 1}'", "'[1, \"two\"]'", "'{\"k\": {\"l\": [true]}}'"]),
    ("r", "integer[]", "r", (list,), ["'{1,2,3}'", "'{}'", "'{5}'"]),
    ("h", "smallint", "h", (int,), ["0", "-7", "32767", "-32768"]),
    ("u", "uuid", "u", None, ["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"]),
    ("k", 'text COLLATE "C"', "k", (ObjectId,), ["'65a000000000000000000001'", "'65a0000000000000000000ff'"], "objectId"),
    ("l", "integer", "l", (Int64,), ["0", "3", "-2147483648"], "long"),
    ("m", "numeric", "m", (float,), ["0.5", "-2", "12345.678"], "double"),
]

EXPRESSIONS = {
    "a": ["a + 1", "a - 3", "2 + a", '"s.x"', "a + NULL", "length(b)"],
    "b": ["b || 'x'", "upper(b)", "left(b, 1)", "a::text"],
    "c": ["c + 1", "c - 5::smallint", "a", "-c"],
    "n": ["n * 2", "n + 1", "c"],
    "f": ["f / 2", "a"],
    "t": ["t + interval '1 hour'", "d"],
    "d": ["d + 1"],
    "o": ["NOT o", "a > 3"],
    "s.x": ['"s.x" + 1', "a"],
    "s y": ['"s y" || b'],
    "j": ["jsonb_set(j, '{k}', '7')", "j || '{\"new\": 1}'", "j - 'k'", "j - 'other'", "j #- '{other,deep}'",
          "jsonb_set(j, '{other,deep}', '{\"er\": 1.0}')", "jsonb_set(j, '{k,0}', 'null')", "j || '{\"a.b\": 2, \"k\": [1, 2, 3]}'",
          "CASE WHEN jsonb_typeof(j) = 'array' THEN j - 0 ELSE j END", "j || jsonb_build_object('a', a)",
          "jsonb_set(j, '{other,new}', '8')", "jsonb_set(j, '{k,l}', 'true')", "jsonb_set(j, '{fresh}', '{\"x\": 1}')",
          "jsonb_set_lax(j, '{k}', to_jsonb(a), true, 'delete_key')"],
    "r": ["r || 9", "r[2:3]", "trim_array(r, 1)", "array_remove(r, 2)", "array_replace(r, 2, 7)", "9 || r"],
    "h": ["h + 1::smallint", "h - 9::smallint", "-3::smallint + h", "a"],
    "u": [],
    "k": ["reverse(reverse(k))"],
    "l": ["l + 1", "a"],
    "m": ["m + 1", "l"],
}


def quote(name):
    return '"%s"' % name


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
    """Numbers at one place that are equal are so in type as well, unless what is around them is new."""
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
        self.rng = random.Random(options.seed)
        self.options = options
        self.lasting = options.lasting
        self.connection = psycopg2.connect(options.dsn)
        self.connection.autocommit = True
        self.cursor = self.connection.cursor()
        client = MongoClient(options.mongo)
        self.collection = client["writes"]["w%d" % options.seed]
        self.next_id = 1000
        self.assigned = set()
        self.log = []
        self.statements = 0
        self.way = "directly"
        # apart from the statements, which a seed has whatever is drawn
        self.other_rng = random.Random("ways of %d" % options.seed)
        self.first_rng = random.Random("firsts of %d" % options.seed)
        self.session = RandomSettings(self.execute, options, SESSION)
        self.settings = RandomSettings(self.execute, options, PLANNING)

    def execute(self, sql):
        self.cursor.execute(sql)
        return self.cursor.fetchall() if self.cursor.description else None

    def set_up(self):
        self.collection.drop()
        self.collection.insert_many([self.stray_document(i) for i in range(60)])
        self.collection.create_index("a")
        columns = ", ".join("%s %s" % (quote(c[0]), c[1]) for c in COLUMNS)
        remote = ", ".join("%s %s OPTIONS (path '%s'%s)%s" % (
            quote(c[0]), c[1].split(" COLLATE")[0], c[2],
            ", bson_type '%s'" % c[5] if len(c) > 5 else "",
            ' COLLATE "C"' if "COLLATE" in c[1] else "") for c in COLUMNS)
        self.execute("SET timezone = 'UTC'; DROP SCHEMA IF EXISTS writes CASCADE; CREATE SCHEMA writes;"
                     "SET search_path = writes, public;"
                     "CREATE FOREIGN TABLE remote (_id integer, %s) SERVER %s"
                     " OPTIONS (database 'writes', collection '%s', batch_size '%d', type_mismatch '%s');"
                     "CREATE TABLE local (_id integer PRIMARY KEY, %s);"
                     "CREATE TABLE other AS SELECT g AS k, 'other ' || g AS v FROM generate_series(-5, 110) g"
                     " UNION ALL SELECT 1, 'again';"
                     % (remote, self.options.server, self.collection.name, self.rng.choice([1, 3, 10000]),
                        self.options.type_mismatch, columns))
        self.session.draw()
        self.execute("INSERT INTO local SELECT * FROM remote")
        self.execute("GRANT USAGE ON SCHEMA writes TO PUBLIC; GRANT ALL ON ALL TABLES IN SCHEMA writes TO PUBLIC;"
                     "CREATE USER MAPPING IF NOT EXISTS FOR %s SERVER %s" % (READER, self.options.server))

    def stray_document(self, number):
        """Numbers of every type that fits, and fields that are not columns."""
        rng = self.rng
        document = {"_id": number, "stray": {"a": rng.random(), "list": [number, None]}}
        if rng.random() < 0.9:
            document["a"] = rng.choice([int, float, Int64])(rng.choice([0, 1, 5, 7, number]))
        if rng.random() < 0.8:
            document["h"] = rng.choice([int, float, Int64])(rng.choice([0, 1, -5, 32767, -32768]))
        if rng.random() < 0.8:
            document["b"] = rng.choice(["x", "ab", "", "y"])
        if rng.random() < 0.8:
            document["c"] = rng.choice([int, Int64])(number * 3)
        if rng.random() < 0.5:
            document["n"] = rng.choice([Decimal128("1.5"), Decimal128("1.50"), 2])
        if rng.random() < 0.5:
            document["s"] = {"keep": number, "x": rng.choice([1, 2, 3]), "deep": {"keep": True, "y": "deep"}}
        if rng.random() < 0.3:
            document["o"] = rng.choice([True, False, None])
        if rng.random() < 0.5:
            document["r"] = [1, Int64(2), 3.0]
        if rng.random() < 0.5:
            document.update(k=ObjectId("65a000000000000000000001"), l=Int64(number), m=number / 4)
        if rng.random() < 0.5:
            document["j"] = {"k": rng.choice([1, Int64(1), "one", None, [1], [Int64(1), 2.0]]),
                             "other": {"deep": rng.choice([1, Int64(1)]), "beside": Int64(2)}, "float": 3.0}
        return document

    # ---- statements, with {t} for the table

    def literal(self, column):
        if self.rng.random() < 0.15:
            return "NULL"
        kind = column[1].split(" COLLATE")[0]
        return "%s::%s" % (self.rng.choice(column[4]), kind)

    def condition(self):
        rng = self.rng
        return rng.choice([
            "_id = %d" % rng.randint(0, 80), "_id IN (%d, %d, 7)" % (rng.randint(0, 80), rng.randint(0, 80)),
            "a > %d" % rng.randint(0, 50), "a BETWEEN 1 AND %d" % rng.randint(1, 20), "a IS NULL",
            "b = 'x'", "b > 'a'", "b LIKE '%b'", "c <= %d" % rng.randint(0, 150), "a <> 7",
            '"s.x" = 2', '"s.x" >= 2 AND a < 30', "o", "NOT o", "o IS NOT TRUE", "n > 1",
            "h > 0", "h <= 1 OR a = 5", "a IN (SELECT k FROM other WHERE k %% 7 = %d)" % rng.randint(0, 6), "j @> '{\"k\": 1}'",
            "t < '2025-01-01'", "length(b) = 2", "_id % 9 = 0", "a = 5 OR b = 'ab'", "f = 0.1", "u IS NOT NULL",
            "k = '65a000000000000000000001'", "k > '65a000000000000000000001'", "k <> 'x'", "l > 30", "m = 0.5"])

    def insert(self):
        rng = self.rng
        columns = rng.sample(COLUMNS, rng.randint(0, len(COLUMNS)))
        rows = []
        for _ in range(rng.choice([1, 1, 2, 5, 12])):
            self.next_id += 1
            number = rng.randint(0, 80) if rng.random() < 0.12 else self.next_id
            rows.append("(%s)" % ", ".join([str(number)] + [self.literal(c) for c in columns]))
        conflict = rng.choice(["", " ON CONFLICT DO NOTHING"])
        return "INSERT INTO {t} (%s) VALUES %s%s" % (
            ", ".join(["_id"] + [quote(c[0]) for c in columns]), ", ".join(rows), conflict), set()

    def insert_select(self):
        self.next_id += 200
        return ("INSERT INTO {t} (_id, a, b, \"s.x\", j) SELECT _id %% 80 + %d, a, b, \"s.x\", j FROM {t} WHERE _id < 20"
                % self.next_id), set()

    def update(self):
        rng = self.rng
        columns = rng.sample(COLUMNS, rng.choice([1, 1, 1, 2, 3]))
        assignments = []
        for column in columns:
            choices = EXPRESSIONS[column[0]]
            value = rng.choice(choices) if choices and rng.random() < 0.5 else self.literal(column)
            assignments.append("%s = %s" % (quote(column[0]), value))
        if rng.random() < 0.05 and "r" not in [c[0] for c in columns]:
            assignments.append("r[1] = 42")
            columns = columns + [c for c in COLUMNS if c[0] == "r"]
        return ("UPDATE {t} SET %s WHERE %s" % (", ".join(assignments), self.condition()),
                {c[2] for c in columns})

    def update_from(self):
        return ("UPDATE {t} SET b = 'joined', a = other.k + 1 FROM other"
                " WHERE other.k = {t}._id AND other.v <> 'again' AND %s" % self.condition().replace("_id", "{t}._id")
                .replace(" a ", " {t}.a "), {"b", "a"})

    def delete(self):
        return "DELETE FROM {t} WHERE %s AND _id %% 3 = %d" % (self.condition(), self.rng.randint(0, 2)), set()

    def delete_using(self):
        return "DELETE FROM {t} USING other WHERE other.k = {t}.a AND {t}._id %% 5 = %d" % self.rng.randint(0, 4), set()

    def delete_direct(self):
        return "DELETE FROM {t} WHERE _id BETWEEN %d AND %d" % (lambda n: (n, n + 2))(self.rng.randint(0, 1500)), set()

    def statement(self):
        maker = self.rng.choices(
            [self.insert, self.insert_select, self.update, self.update_from, self.delete,
             self.delete_using, self.delete_direct], [20, 2, 50, 6, 4, 2, 6])[0]
        sql, assigned = maker()
        if self.rng.random() < 0.3:
            sql += " RETURNING {t}.*"
        return sql, assigned

    # ---- checks

    def in_this_way(self, sql, table):
        """Statements that run this one, the last of which gives what it returns."""
        if self.way == "prepared":
            return ["DEALLOCATE ALL", "PREPARE random_write AS " + sql, "EXECUTE random_write"]
        if self.way != "directly" and " RETURNING " not in sql:
            sql += " RETURNING %s._id" % table
        if self.way == "query":
            return ["WITH written AS (%s) SELECT written::text FROM written" % sql]
        if self.way == "loop":
            return [LOOP % sql, "SELECT * FROM pg_temp.random_write()"]
        return [sql]

    def run(self, sql, table):
        try:
            for statement in self.in_this_way(sql.replace("{t}", table), table):
                self.cursor.execute(statement)
            rows = self.cursor.fetchall() if self.cursor.description else []
            return self.cursor.rowcount, sorted(map(repr, rows))
        except psycopg2.OperationalError:
            raise
        except psycopg2.Error as error:
            return "error", error.pgcode[:2]

    def check_tables(self):
        rows = []
        for table in ("local", "remote"):
            rows.append(sorted(map(repr, self.execute("SELECT * FROM " + table))))
        if rows[0] != rows[1]:
            only_local = [r for r in rows[0] if r not in rows[1]][:3]
            only_remote = [r for r in rows[1] if r not in rows[0]][:3]
            raise Difference("tables differ\n  local:  %s\n  remote: %s" % (only_local, only_remote))

    def check_documents(self, before, assigned):
        for document in self.collection.find():
            old = before.get(document["_id"])
            for _, _, path, types, *_ in COLUMNS:
                value = get(document, path)
                changed = old is None or get(old, path) != value
                if changed and value != "missing" and types is not None and type(value) not in types:
                    raise Difference("_id %r: %s is a %s" % (document["_id"], path, type(value)))
            if old is None:
                continue
            old = BSON.encode(old).decode()
            for path in assigned:
                remove(document, path)
                remove(old, path)
            if BSON.encode(document) != BSON.encode(old):
                raise Difference("a field that was not assigned changed\n  was: %s\n  is:  %s" % (old, document))

    def keeps_types(self, sql):
        """Does the statement compute j and r from themselves, or not assign them?"""
        assigned = sql.split(" WHERE ")[0]
        return sql.startswith("UPDATE") and not any(
            "%s = %s::" % (quote(c[0]), value) in assigned or "%s = NULL" % quote(c[0]) in assigned
            for c in COLUMNS if c[0] in ("j", "r") for value in c[4])

    def check_kept(self, before):
        """What is equal in SQL before and after at one path has kept its BSON type."""
        for document in self.collection.find({"_id": {"$in": list(before)}}):
            for name in ("j", "r"):
                check_types(document["_id"], name, before[document["_id"]].get(name), document.get(name))

    def draw(self):
        """New settings for a block, and how its next statement is run."""
        if self.statements % BLOCK == 0:
            self.ordinary = not self.settings.draw()
            self.execute("SET search_path = " + self.settings.path("writes"))
        self.statements += 1
        self.way = "directly" if self.ordinary else self.other_rng.choices(list(WAYS), list(WAYS.values()))[0]

    def restore(self, before):
        """What a statement has done before it failed lasts without a transaction."""
        self.collection.delete_many({})
        if before:
            self.collection.insert_many(before.values())

    def step(self):
        self.draw()
        before = {d["_id"]: d for d in self.collection.find()}
        sql, assigned = self.statement()
        ending = self.rng.choice(["", "", "COMMIT", "" if self.lasting else "ROLLBACK"])
        self.log.append("%s: %s%s" % (self.way, ending and "BEGIN; ", sql + (ending and "; " + ending)))
        if ending:
            self.execute("BEGIN")
        local = self.run(sql, "local")
        if ending and local[0] == "error":
            self.execute("ROLLBACK; BEGIN")
        if ending and not self.lasting and self.first_rng.random() < 0.7:
            # what comes behind a transaction's first command goes another way
            self.execute("DELETE FROM remote WHERE _id = -12345")
        remote = self.run(sql, "remote")
        if ending:
            if remote[0] != "error" and local[0] != "error":
                self.check_tables()
            self.execute(ending)
        if self.lasting and remote[0] == "error":
            self.restore(before)
        if local != remote:
            raise Difference("results differ\n  local:  %s\n  remote: %s" % (str(local)[:600], str(remote)[:600]))
        self.check_tables()
        self.check_documents(before, assigned if ending != "ROLLBACK" else set())
        if self.keeps_types(sql):
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
    options = parser.parse_args()
    writes = Writes(options)
    writes.set_up()
    for number in range(options.statements):
        try:
            writes.step()
        except Difference as difference:
            print("seed %d, statement %d: %s\n%s  %s" % (
                options.seed, number, difference, writes.session.describe() + writes.settings.describe(), writes.log[-1]))
            sys.exit(1)
    print("seed %d: %d statements, no difference" % (options.seed, options.statements))


if __name__ == "__main__":
    main()
