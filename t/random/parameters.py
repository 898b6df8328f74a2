#!/usr/bin/env python3
"""Random queries over tables whose pipelines have parameters, compared with local views.

The oracle of a pipeline is a view that joins a local table with all values that a parameter
can have in the queries: it has a row for each row of the pipeline and each value.  Many values
are hostile: operators, names of fields and variables, placeholders.  Values that MongoDB would
evaluate may be refused (22023), but only in pipelines that have the parameter where it would.
"""

import random
import sys

import psycopg2

from both_servers import BothServers
from execution import BY_NAME, PARAMETER, random_way
from settings import PLANNING, RandomSettings
import test_arguments

# The types of columns and parameters, with all values.
DOMAINS = {
    "integer": [str(number) for number in range(-5, 13)] + ["28", "2147483647"],   # with those of execution.py
    "bigint": ["0", "3", "-5", "9007199254740993", "-9223372036854775808"],
    "numeric": ["0", "0.1", "1.10", "5", "-2.5", "12345678901234567890.5"],
    "double precision": ["0", "0.5", "1e300", "NaN", "Infinity"],
    "text": ["", "a", "ab", "$", "$a", "$t", "$$ROOT", "$$REMOVE", '{"$ne": null}', '{"$param": "q"}', "a'b\"\\", "é\U0001f418",
             "65a000000000000000000001", "x" * 300, "$numberLong", "null"],
    "boolean": ["true", "false"],
    "timestamptz": ["2024-02-29 12:00:00.123+00", "1970-01-01 00:00:00+00", "0001-01-01 00:00:00+00"],
    "uuid": ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "00000000-0000-0000-0000-000000000000"],
    "public.objectid": ["65a000000000000000000001", "ffffffffffffffffffffffff"],
    "jsonb": ['"a"', '"$a"', "5", "true", "{}", '{"a": 1}', '{"$ne": null}', '{"$gt": ""}', '{"$param": "q"}', '{"$parameter": 0}',
              '{"$where": "true"}', '{"$function": {"body": "x", "args": [], "lang": "js"}}', '{"$literal": 1}', '{"a": {"$ne": 1}}',
              '{"$verbatim": []}', '{"$oid": "65a000000000000000000001"}', '{"$or": [{}]}', '{"$expr": true}',
              '{"$regularExpression": {"pattern": ".", "options": "i"}}', '{"$code": "true"}', '{"": "$t", ".": 1}'],
    "integer[]": ["{}", "{1}", "{1,2,3}", "{5,28}", "{7,7,-5}"],
}
COLUMNS = {"i": "integer", "l": "bigint", "n": "numeric", "f": "double precision", "t": "text", "b": "boolean",
           "ts": "timestamptz", "u": "uuid", "o": "public.objectid", "j": "jsonb"}

EQUAL = "c.%(column)s = v.x"


class Kind:
    """A pipeline with {"$param": "q"} as P and another parameter as R, and its oracle.

    'columns' are those that %(column)s may be, 'rows' is FROM and WHERE of the view over c and
    the values v of the first parameter and w of the second.  'x' is an expression for column x.
    """

    def __init__(self, pipeline, columns, rows, type=None, second=None, x="NULL", refuses=()):
        self.pipeline = pipeline
        self.columns = columns.split()
        self.rows = rows
        self.type = type            # of the parameter; None: the column's
        self.second = second
        self.x = x
        self.refuses = refuses      # types of which values may be refused


ALL = " ".join(COLUMNS)
SCALARS = ALL.replace(" j", "")
KINDS = [
    Kind('[{"$match": {"%(column)s": {"$eq": P}}}]', ALL, "c JOIN v ON " + EQUAL),
    Kind('[{"$match": {"%(column)s": P}}]', ALL, "c JOIN v ON " + EQUAL, refuses=["jsonb"]),
    Kind('[{"$match": {"$or": [{"%(column)s": {"$in": [P]}}, {"_id": {"$lt": 0}}]}}]', ALL, "c JOIN v ON " + EQUAL, refuses=["jsonb"]),
    Kind('[{"$match": {"$expr": {"$eq": ["$%(column)s", P]}}}]', ALL, "c JOIN v ON " + EQUAL),
    Kind('[{"$match": {"$expr": {"$and": [{"$gt": ["$%(column)s", P]}, true]}}}]', "i l n t", "c JOIN v ON c.%(column)s > v.x"),
    Kind('[{"$match": {"%(column)s": {"$gte": P}}}]', "i l n t", "c JOIN v ON c.%(column)s >= v.x"),
    Kind('[{"$match": {"i": {"$in": P}}}]', "i", "c JOIN v ON c.i = ANY (v.x)", type="integer[]"),
    Kind('[{"$match": {"$and": [{"%(column)s": {"$eq": P}}, {"t": R}]}}]', SCALARS, "c JOIN v ON " + EQUAL + " JOIN w ON c.t = w.x", second="text"),
    Kind('[{"$match": {"$expr": {"$or": [{"$eq": ["$i", R]}, {"$eq": ["$%(column)s", P]}]}}}]', ALL,
         "c CROSS JOIN v CROSS JOIN w WHERE (" + EQUAL + ") IS TRUE OR (c.i = w.x) IS TRUE", second="integer"),
    Kind('[{"$set": {"x": P}}]', ALL, "c CROSS JOIN v", x="v.x"),
    Kind('[{"$match": {"i": R}}, {"$set": {"x": {"$cond": [{"$eq": ["$%(column)s", P]}, P, null]}}}]', ALL, "c CROSS JOIN v JOIN w ON c.i = w.x",
         second="integer", x="CASE WHEN " + EQUAL + " THEN v.x END"),
    Kind('[{"$sort": {"_id": 1}}, {"$limit": P}]', "i", "v CROSS JOIN LATERAL (SELECT * FROM {side}_c ORDER BY _id LIMIT v.x) c WHERE v.x > 0", type="integer"),
    Kind('[{"$facet": {"found": [{"$match": {"%(column)s": {"$eq": P}}}]}}, {"$unwind": "$found"}, {"$replaceRoot": {"newRoot": "$found"}}]', ALL,
         "c JOIN v ON " + EQUAL),
    Kind('[{"$lookup": {"from": "c", "let": {"i": "$_id", "p": P}, "pipeline": [{"$match": {"$expr": {"$and": '
         '[{"$eq": ["$_id", "$$i"]}, {"$eq": ["$%(column)s", "$$p"]}, {"$eq": ["$%(column)s", P]}]}}}], "as": "joined"}}, {"$match": {"joined": {"$ne": []}}}]', ALL,
         "c JOIN v ON " + EQUAL),
    Kind('[{"$match": {"%(column)s": P}}, {"$unionWith": {"coll": "c", "pipeline": [{"$match": {"t": R}}]}}]', SCALARS,
         "(SELECT c.*, v.x AS vx, w.x AS wx FROM {side}_c c JOIN v ON " + EQUAL + " CROSS JOIN w"
         " UNION ALL SELECT c.*, v.x, w.x FROM {side}_c c JOIN w ON c.t = w.x CROSS JOIN v) c", second="text"),
]

# Queries of one kind: T is the table with an alias, V a condition that gives all parameters
# values, C another condition, K a column.
QUERIES = [
    "SELECT * FROM T WHERE V", "SELECT * FROM T WHERE V AND C", "SELECT _id, p, x FROM T WHERE C AND V", "SELECT count(*) FROM T WHERE V AND C",
    "SELECT count(*), count(K), count(DISTINCT _id), min(_id), max(i), count(p) FROM T WHERE V", "SELECT K, count(*), sum(i) FROM T WHERE V GROUP BY 1",
    "SELECT p, K, count(*) FROM T WHERE V AND C GROUP BY 1, 2", "SELECT DISTINCT K, p FROM T WHERE V", "SELECT _id, p, K FROM T WHERE V ORDER BY _id, K LIMIT 4 OFFSET 1",
    "SELECT t._id, c.t, c.n FROM T JOIN {side}_c c ON c._id = t._id WHERE V",
    "SELECT c._id, l.* FROM {side}_c c, LATERAL (SELECT _id, p, K FROM T WHERE V AND t._id <> c._id ORDER BY _id LIMIT 2) l WHERE c._id < 8",
    "SELECT 1 FROM T WHERE V AND EXISTS (SELECT FROM {side}_c c WHERE c._id = t._id AND c.i > 0)",
    "SELECT _id FROM {side}_c WHERE _id IN (SELECT _id FROM T WHERE V)", "SELECT _id FROM {side}_c c WHERE NOT EXISTS (SELECT FROM T WHERE V AND t._id = c._id)",
    "SELECT (SELECT count(*) FROM T WHERE V AND t._id < c._id) FROM {side}_c c WHERE c._id < 9", "SELECT t FROM T WHERE V AND C",
]

# The same with values of outer rows: W is a join condition with them, O their table.
OUTER_QUERIES = [
    "SELECT o.id, t.* FROM O JOIN T ON W", "SELECT o.id, t._id, t.p FROM O LEFT JOIN T ON W AND C", "SELECT o.id FROM O WHERE EXISTS (SELECT FROM T WHERE W AND C)",
    "SELECT o.id FROM O WHERE NOT EXISTS (SELECT FROM T WHERE W)", "SELECT o.id, l.* FROM O, LATERAL (SELECT count(*), max(K::text), min(p::text) FROM T WHERE W AND C) l",
    "SELECT o.id, l.* FROM O CROSS JOIN LATERAL (SELECT _id, p FROM T WHERE W ORDER BY _id LIMIT 2) l", "SELECT o.id, count(*), sum(t._id) FROM O JOIN T ON W GROUP BY 1",
    "SELECT o.id, (SELECT string_agg(_id::text, ',' ORDER BY _id) FROM T WHERE W) FROM O", "SELECT o.id, t._id, c.t FROM O JOIN T ON W JOIN {side}_c c ON c._id = t._id",
    "SELECT o.id, t._id, u._id FROM O JOIN T ON W JOIN {side}_c u ON u.i = o.i AND u._id = t._id",
]

CONDITIONS = ["_id < 20", "_id % 2 = 0", "t.i > 1", "t.i IS NULL", "t.t LIKE '%a%'", "t.n < 4", "t.b", "NOT t.b", "t.p IS NOT NULL", "t.i = ANY (ARRAY[1, 2, 3])",
              "length(t.t) < 3", "t.i - 1 > t._id % 5", "(t.i = 3 OR t.t = '$a')", "t.p = t.p", "t.ts > '2000-01-01'", "coalesce(t.i, 7) = 7", "t.t || '$' = '$$'"]


def literal(value, sql_type):
    return "'%s'::%s" % (value.replace("'", "''"), sql_type)


class Parameters(BothServers):
    def __init__(self, options):
        super().__init__(options)
        self.rng = random.Random(options.seed)
        self.other_rng = random.Random("ways of %d" % options.seed)
        self.database = "random_parameters_%d" % options.seed
        self.settings = RandomSettings(self.execute, options, PLANNING)
        self.refused = 0
        self.unordered = 0

    def create(self):
        self.settings.restore()
        rng = self.rng
        self.client.drop_database(self.database)
        host, port = self.client.address
        columns = ", ".join("%s %s" % column for column in COLUMNS.items())
        self.execute("""DROP SCHEMA IF EXISTS random_parameters CASCADE; DROP SERVER IF EXISTS random_parameters CASCADE;
            CREATE SCHEMA random_parameters; SET search_path = random_parameters, public;
            CREATE EXTENSION IF NOT EXISTS mongo_fdw SCHEMA public;
            CREATE SERVER random_parameters FOREIGN DATA WRAPPER mongo_fdw OPTIONS (address '%s', port '%d', fdw_startup_cost '0');
            CREATE USER MAPPING FOR PUBLIC SERVER random_parameters; SET jit = off;
            CREATE TABLE local_c (_id int, %s);
            CREATE FOREIGN TABLE remote_c (_id int, %s) SERVER random_parameters OPTIONS (database '%s', collection 'c')"""
                     % (host, port, columns, columns, self.database))
        values = [[str(number)] + ["NULL" if rng.random() < 0.1 else literal(rng.choice(DOMAINS[sql_type]), sql_type)
                                   for sql_type in COLUMNS.values()] for number in range(60)]
        self.execute("INSERT INTO local_c VALUES " + ", ".join("(%s)" % ", ".join(row) for row in values))
        self.execute("INSERT INTO remote_c SELECT * FROM local_c")
        for index in ("i", "t", "n"):
            if rng.random() < 0.5:
                self.client[self.database].c.create_index(index)
        # rows with values of each type
        self.execute("CREATE TABLE outer_rows AS SELECT row_number() OVER () AS id, c.* FROM (SELECT %s FROM local_c ORDER BY _id LIMIT 14) c;"
                     "ALTER TABLE outer_rows ADD a integer[]; UPDATE outer_rows SET a = ((ARRAY['{}', '{1,2,3}', '{7,7,-5}'])[id %% 4])::integer[];"
                     "ANALYZE outer_rows" % ", ".join(COLUMNS))
        self.tables = [self.create_table(number) for number in range(14)]
        self.execute("GRANT USAGE ON SCHEMA random_parameters TO PUBLIC; GRANT SELECT ON ALL TABLES IN SCHEMA random_parameters TO PUBLIC")

    def create_table(self, number):
        """Creates a table of a random kind and its view; returns kind, column and type."""
        rng = self.rng
        kind = rng.choice(KINDS)
        column = rng.choice(kind.columns)
        sql_type = kind.type or COLUMNS[column]
        columns = "_id int, %s, x %s, p %s OPTIONS (parameter 'q', path 'value.p')" % (
            ", ".join("%s %s" % pair for pair in COLUMNS.items()), sql_type, sql_type)
        if kind.second:
            columns += ", r %s OPTIONS (parameter 'r', path 'value.r')" % kind.second
        pipeline = kind.pipeline % {"column": column}
        pipeline = pipeline.replace(": P", ': {"$param": "q"}').replace(", P", ', {"$param": "q"}').replace("[P", '[{"$param": "q"}')
        pipeline = pipeline.replace(": R", ': {"$param": "r"}').replace(", R", ', {"$param": "r"}')
        self.execute("CREATE FOREIGN TABLE remote_%d (%s) SERVER random_parameters OPTIONS (database '%s', collection 'c', pipeline $pipeline$%s$pipeline$)"
                     % (number, columns, self.database, pipeline))

        def domain(of):
            return "(SELECT unnest(ARRAY[%s]))" % ", ".join(literal(value, of) for value in DOMAINS[of]) if of != "integer[]" else \
                "(VALUES %s)" % ", ".join("(%s)" % literal(value, of) for value in DOMAINS[of])
        source = (kind.rows % {"column": column}).replace("{side}", "local").replace("c JOIN v", "local_c c JOIN v", 1) if not kind.rows.startswith("(") \
            else (kind.rows % {"column": column}).replace("{side}", "local")
        source = source.replace("c CROSS JOIN v", "local_c c CROSS JOIN v", 1) if source.startswith("c CROSS") else source
        union = kind.rows.startswith("(")
        self.execute("CREATE VIEW local_%d AS WITH v (x) AS %s, w (x) AS %s SELECT c._id, %s, (%s)%s AS x, %s AS p%s FROM %s" % (
            number, domain(sql_type), domain(kind.second or "boolean"), ", ".join("c." + name for name in COLUMNS),
            kind.x % {"column": column}, "::" + sql_type, "c.vx" if union else "v.x",
            "" if not kind.second else ", c.wx AS r" if union else ", w.x AS r", source))
        return kind, column, sql_type

    def value(self, sql_type):
        """Returns a value of the domain, or NULL, as an expression that may be known only when it runs."""
        rng = self.rng
        if sql_type == "integer" and rng.random() < 0.3:
            return PARAMETER
        value = literal(rng.choice(DOMAINS[sql_type]), sql_type) if rng.random() < 0.97 else "NULL::" + sql_type
        return rng.choice([value] * 5 + ["(SELECT %s)" % value, "(SELECT %s OFFSET 0)" % value, "(SELECT y FROM (VALUES (%s)) z (y) LIMIT 1)" % value])

    def equality(self, column, value, sql_type):
        if self.rng.random() < 0.2:
            return "%s = t.%s" % (value, column)
        return "t.%s = %s" % (column, value)

    def random_query(self, number):
        """Returns a query with {side} and perhaps {parameter}."""
        rng = self.rng
        kind, column, sql_type = self.tables[number]
        query = rng.choice(QUERIES if rng.random() < 0.6 else OUTER_QUERIES)
        values = [self.equality("p", self.value(sql_type), sql_type)]
        outer = [self.equality("p", "o." + {"integer[]": "a"}.get(sql_type, column if COLUMNS[column] == sql_type else "i"), sql_type)]
        if kind.second:
            second = self.equality("r", self.value(kind.second), kind.second)
            values.append(second)
            outer.append(rng.choice([second, self.equality("r", "o." + {"text": "t", "integer": "i"}[kind.second], kind.second)]))
        if rng.random() < 0.1:
            values.append(self.equality("p", self.value(sql_type), sql_type))
        # by way of other columns
        same = [name for name, other in COLUMNS.items() if other == sql_type]
        if same and rng.random() < 0.15:
            way = ["t.p = t." + same[0]] + rng.choice([[], [self.equality("p", self.value(sql_type), sql_type)]])
            values = [values[0].replace("t.p", "t." + same[0])] + way + values[1:]
            outer = [outer[0].replace("t.p", "t." + same[0])] + way[:1] + outer[1:]
            rng.shuffle(outer)
        conditions = " AND ".join(rng.sample(CONDITIONS, rng.choice([1, 1, 2])))
        key = rng.choice([name for name in COLUMNS if name != "j"])
        replaced = {"T": "{side}_%d t" % number, "O": "outer_rows o", "V": " AND ".join(rng.sample(values, len(values))),
                    "W": " AND ".join(outer), "C": conditions, "K": "t." + key, "_id": "t._id"}
        words = query.replace("(T ", "( T ").replace("K::", "K ::").replace("(K", "( K").replace(",", " ,").replace(")", " )").split(" ")
        return " ".join(replaced.get(word, word) if word != "_id" or "FROM T" in query and "{side}_c" not in query else word for word in words)

    def answer(self, way, sql):
        try:
            return sorted(map(repr, BY_NAME[way](self.execute, sql)))
        except psycopg2.Error as error:
            if self.connection.closed:
                raise
            return "%s: %s" % (error.pgcode, error.diag.message_primary)

    def is_right(self, kind, sql_type, remote, local):
        if isinstance(remote, str) and remote.startswith("22023") and "must be plain data" in remote and sql_type in kind.refuses:
            self.refused += 1
            return True
        # tables that are joined as written, before the one with the value
        if isinstance(remote, str) and remote.startswith("42P02") and {"join_collapse_limit", "from_collapse_limit"} & set(self.settings.drawn):
            self.unordered += 1
            return True
        # {"$limit": 0}
        return remote == local or ("$limit" in kind.pipeline and isinstance(remote, str) and remote.startswith("HV000"))

    def run(self):
        failures = errors = 0
        for number in range(self.options.queries):
            if number % 500 == 0:
                self.create()
            if number % 25 == 0:
                self.settings.draw()
                self.execute("SET search_path = " + self.settings.path("random_parameters"))
            table = self.rng.randrange(len(self.tables))
            kind, _, sql_type = self.tables[table]
            sql = self.random_query(table)
            way = random_way(self.other_rng)
            local = self.answer(way, sql.replace("{side}", "local"))
            if isinstance(local, str):
                errors += 1
                if errors <= 3:
                    print("query %d, %s: %s\n  %s" % (number, way, sql.replace("{side}", "local"), local))
                continue
            if self.rng.random() < 0.1:
                self.execute("SET mongo_fdw.enable_pushdown = off")
            remote = self.answer(way, sql.replace("{side}", "remote"))
            self.execute("RESET mongo_fdw.enable_pushdown")
            if self.is_right(kind, sql_type, remote, local):
                continue
            failures += 1
            print("query %d, %s: %s\n%s  %s\n  remote %s\n  local  %s" % (number, way, sql, self.settings.describe(), kind.pipeline,
                                                                       str(remote)[:600], str(local)[:600]))
            if failures == 5:
                break
        print("%d queries, %d refused, %d joined as written, %d failed here, %d differences"
              % (number + 1, self.refused, self.unordered, errors, failures))
        self.settings.restore()
        self.client.drop_database(self.database)
        return failures == 0 and errors <= self.options.queries // 10 and self.refused + self.unordered < self.options.queries // 5


def main():
    options = test_arguments.random_parser(__doc__).parse_args()
    print("seed %d" % options.seed)
    sys.exit(0 if Parameters(options).run() else 1)


if __name__ == "__main__":
    main()
