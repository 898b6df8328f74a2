#!/usr/bin/env python3
"""Random queries over tables with the option unwind, compared with local tables.

The local tables are made from the same documents by jsonb_array_elements() with
ordinality.  In clean documents, the unwound paths are arrays or missing; in hostile ones
also scalars, documents and arrays of arrays, and values may not fit their columns.  With
type_mismatch 'error' a query over those may end with that error.  MongoDB does not
report mismatches in documents that it does not match or only counts.  So otherwise only
rows that are read are compared: each must be correct.
"""

import random
import sys

import psycopg2

from both_servers import BothServers
import test_arguments

# SQLSTATEs of mismatches that MongoDB finds, and that reading finds.
MISMATCHES = ("HV004", "22P02", "2202E")

# name, table options, columns with their options, rows of the documents "docs"
TABLES = [
    ("lines", "unwind 'lines', ordinality 'n'",
     "_id int, customer text, n int, product int OPTIONS (path 'lines.product'), name text OPTIONS (path 'lines.name'),"
     " item jsonb OPTIONS (path 'lines')",
     """SELECT _id, customer, n::int, as_int(line->'product') AS product, as_text(line->'name') AS name,
            nullif(line, 'null') AS item
        FROM docs {join} elements(lines) WITH ORDINALITY AS e (line, n) {on}"""),
    ("boxed", "unwind 'box.lines', ordinality 'n'",
     "_id int, customer text, n bigint, product int OPTIONS (path 'box.lines.product'), name text OPTIONS (path 'box.lines.name')",
     """SELECT _id, customer, n, as_int(line->'product') AS product, as_text(line->'name') AS name
        FROM docs {join} elements(CASE jsonb_typeof(box) WHEN 'object' THEN box->'lines' END)
            WITH ORDINALITY AS e (line, n) {on}"""),
    ("tags", "unwind 'tags', ordinality 'n'",
     "_id int, customer text, n int, name text OPTIONS (path 'tags')",
     """SELECT _id, customer, n::int, as_text(tag) AS name
        FROM docs {join} elements(tags) WITH ORDINALITY AS e (tag, n) {on}"""),
    ("numbers", "unwind 'numbers', ordinality 'n'",
     "_id int, customer text, n int, product int OPTIONS (path 'numbers')",
     """SELECT _id, customer, n::int, as_int(number) AS product
        FROM docs {join} elements(numbers) WITH ORDINALITY AS e (number, n) {on}"""),
    ("parts", "unwind 'lines, lines.parts', ordinality 'k, n'",
     "_id int, customer text, k int, n int, product int OPTIONS (path 'lines.product'), name text OPTIONS (path 'lines.parts')",
     """SELECT _id, customer, k::int, n::int, as_int(line->'product') AS product, as_text(part) AS name
        FROM docs {join} elements(lines) WITH ORDINALITY AS e (line, k) {on}
        {join} elements(CASE jsonb_typeof(line) WHEN 'object' THEN line->'parts' END)
            WITH ORDINALITY AS f (part, n) {on}"""),
    ("both", "unwind 'lines,tags', ordinality 'k,n'",
     "_id int, customer text, k int, n int, product int OPTIONS (path 'lines.product'), name text OPTIONS (path 'tags')",
     """SELECT _id, customer, k::int, n::int, as_int(line->'product') AS product, as_text(tag) AS name
        FROM docs {join} elements(lines) WITH ORDINALITY AS e (line, k) {on}
        {join} elements(tags) WITH ORDINALITY AS f (tag, n) {on}"""),
]

SETUP = """
CREATE FUNCTION as_int(jsonb) RETURNS int IMMUTABLE LANGUAGE sql AS
    $$SELECT CASE jsonb_typeof($1) WHEN 'number' THEN $1::int END$$;
CREATE FUNCTION as_text(jsonb) RETURNS text IMMUTABLE LANGUAGE sql AS
    $$SELECT CASE jsonb_typeof($1) WHEN 'string' THEN $1 #>> '{}' END$$;
CREATE FUNCTION elements(jsonb) RETURNS SETOF jsonb IMMUTABLE LANGUAGE sql AS
    $$SELECT jsonb_array_elements(CASE jsonb_typeof($1) WHEN 'array' THEN $1 END)$$;
"""

SETTINGS = [[], ["cpu_tuple_cost = 10", "cpu_operator_cost = 10"], ["enable_hashjoin = off", "enable_mergejoin = off"],
            ["enable_hashjoin = off", "enable_mergejoin = off", "mongo_fdw.enable_batched_joins = off"],
            ["plan_cache_mode = force_generic_plan"]]


class Documents:
    """Random documents."""

    def __init__(self, rng, hostile):
        self.rng = rng
        self.hostile = hostile
        self.has_long = False       # one long array per document: pairs of two would be a million rows

    def value(self, good, bad):
        rng = self.rng
        if self.hostile and rng.random() < 0.1:
            return rng.choice(bad)
        return good()

    def number(self):
        return self.value(lambda: self.rng.choice([1, 2, 3, 5, 8, -1, 0, 2**31 - 1]), ["x", [1], [[2]], {"a": 1}, None, True])

    def text(self):
        return self.value(lambda: self.rng.choice(["a", "b", "ab", "A", "", "é", "$a"]), [["a"], 5, None, [["b"]]])

    def array(self, element, longest=4):
        def some():
            if self.rng.random() < 0.003 and not self.has_long:
                self.has_long = True
                return [element() for _ in range(1000)]
            return [element() for _ in range(self.rng.randrange(longest))]
        return self.value(some, [5, "a", {"product": 1, "name": "a", "parts": ["a"]}, None, [[]], [[1]], [[{"product": 1}]], True])

    def line(self):
        def document():
            result = {}
            if self.rng.random() < 0.9:
                result["product"] = self.number()
            if self.rng.random() < 0.9:
                result["name"] = self.text()
            if self.rng.random() < 0.8:
                result["parts"] = self.array(self.text, 3)
            return result
        return self.value(document, [3, "x", None, [{"product": 1}], [], {}])

    def document(self, number):
        self.has_long = False
        result = {"_id": number}
        makers = {"customer": lambda: self.rng.choice(["c1", "c2", "c3", None]),
                  "lines": lambda: self.array(self.line), "tags": lambda: self.array(self.text),
                  "numbers": lambda: self.array(self.number),
                  "box": lambda: self.value(lambda: {"lines": self.array(self.line)},
                                            [1, None, [], [{"lines": [{"product": 1}]}], {}, [{"lines": [1]}, 5]])}
        for name, make in makers.items():
            if self.rng.random() < 0.9:
                result[name] = make()
        if self.rng.random() < 0.02:
            result["lines"] = None
        return result


def random_leaf(rng, has):
    number = rng.choice(["1", "2", "3", "0", "-1", "2147483647", "NULL", "(SELECT 2)"])
    text = rng.choice(["'a'", "'b'", "'ab'", "''", "'é'", "NULL", "(SELECT 'a'::text)"])
    leaves = ["_id = %d" % rng.randrange(200), "_id < %d" % rng.randrange(200), "customer = 'c1'", "customer <> 'c2'",
              "customer IS NULL", "n = 1", "n > 1", "n IS NULL", "n < _id", "customer IN ('c1', 'c3')"]
    if "product" in has:
        leaves += ["product = " + number, "product <> " + number, "product > " + number, "product <= " + number,
                   "product IS NULL", "product IS NOT NULL", "product IN (1, 5, %s)" % number, "product NOT IN (1, 5)",
                   "product BETWEEN 1 AND 4", "product IS DISTINCT FROM " + number, "product + n = 4", "product % 2 = 1",
                   "coalesce(product, 0) = 0", "coalesce(product, 3) = 3", "product IS NOT DISTINCT FROM 3", "NOT coalesce(product, 5) > 2",
                   "(product, n) < (%s, 2)" % number, "(customer, product, n) >= ('c2', %s, 1)" % number, "(product, _id) > (2, 50)",
                   "product = _id", "product = ANY (ARRAY[2, 3, %s])" % number]
    if "name" in has:
        leaves += ["name = " + text, "name <> " + text, "name IS NULL", "name LIKE 'a%'", "name IN ('a', %s)" % text,
                   "name NOT LIKE '%b'", "name ILIKE 'A%'", "lower(name) = 'a'", 'lower(name COLLATE "und-x-icu") LIKE \'a%\'',
                   "coalesce(name, 'a') = 'a'", "name IS NOT DISTINCT FROM 'ab'", "(customer, name) = ('c1', %s)" % text,
                   "length(name) = 1", "name IS DISTINCT FROM " + text, "name || 'x' = 'ax'"]
    if "item" in has:
        leaves += ["item->>'name' = " + text, "item @> '{\"product\": 1}'", "item @> '[{\"product\": 1}]'", "item IS NULL",
                   "item = '3'", "item = '\"x\"'", "item #>> '{}' = 'x'", "(item ->> 'name') COLLATE \"C\" < 'b'", "item ->> 'product' IN ('1', '2')",
                   "jsonb_typeof(item->'parts') = 'array' AND EXISTS (SELECT FROM jsonb_array_elements_text(item->'parts') p WHERE p = 'a')",
                   "item ? 'product'", "item['product'] = '1'", "item->0->>'product' = '1'"]
    return rng.choice(leaves)


def random_condition(rng, has, depth=0):
    kind = rng.random()
    if depth > 2 or kind < 0.4:
        return random_leaf(rng, has)
    if kind < 0.5:
        return "NOT (%s)" % random_condition(rng, has, depth + 1)
    return "(%s)" % rng.choice([" AND ", " AND ", " OR "]).join(
        random_condition(rng, has, depth + 1) for _ in range(rng.randrange(2, 4)))


def of_t(condition):
    """Returns the condition for a query in which a joined table has these columns too."""
    return condition.replace("_id", "t._id").replace("customer", "t.customer")


def random_query(rng, table, has):
    """Returns a query with {schema} before table names, of rows that satisfy the condition."""
    condition = random_condition(rng, has)
    everything = ", ".join(["_id", "n"] + sorted(has))
    column = rng.choice(sorted(has) + ["customer", "n"])
    source = "{schema}.%s t" % table
    return rng.choice([
        "SELECT * FROM %s WHERE %s" % (source, condition),
        "SELECT _id, n FROM %s WHERE %s" % (source, condition),
        "SELECT count(*) FROM %s WHERE %s" % (source, condition),
        "SELECT count(*), count(%s), count(DISTINCT _id) FROM %s WHERE %s" % (column, source, condition),
        "SELECT %s, count(*), sum(n) FROM %s WHERE %s GROUP BY 1" % (column, source, condition),
        "SELECT DISTINCT %s FROM %s WHERE %s" % (column, source, condition),
        "SELECT %s FROM %s WHERE %s ORDER BY %s, %s LIMIT %d OFFSET %d" % (
            everything, source, condition, 'n' if column in ("name", "customer") else column,
            everything.replace("name", 'name COLLATE "C"'), rng.randrange(1, 9), rng.randrange(3)),
        "SELECT t.*, d.customer FROM %s JOIN docs d ON d._id = t._id WHERE %s" % (source, of_t(condition)),
        # join with the table's own documents, which may have columns that elements replace
        "SELECT t.*, d.%s FROM %s JOIN {parent}.docs d ON d._id = t._id WHERE %s" % (
            rng.choice(["customer", "lines", "tags", "numbers", "box", "*"]), source, of_t(condition)),
        "SELECT d.customer, count(*), count(t.%s) FROM %s JOIN {parent}.docs d ON d._id = t._id AND d.customer %s 'c2' WHERE %s GROUP BY 1" % (
            column, source, rng.choice(["=", "<>", "<"]), of_t(condition)),
        "SELECT t.%s, d._id, d.customer FROM %s JOIN {parent}.docs d ON d._id = t._id AND (d._id > t.n OR d.customer = 'c1') WHERE %s" % (
            column, source, of_t(condition)),
        "SELECT v.x, t.* FROM (VALUES (1), (2), (NULL)) v (x) LEFT JOIN %s ON t.%s = v.x AND %s" % (
            source, "product" if "product" in has else "n", condition),
        "SELECT * FROM %s WHERE _id IN (SELECT _id FROM {schema}.tags WHERE name = 'a') AND %s" % (source, condition),
    ])


class Unwound(BothServers):
    def __init__(self, options):
        super().__init__(options)
        self.rng = random.Random(options.seed)
        self.database = "random_unwound_%d" % options.seed
        self.mismatches = 0

    def create(self):
        rng = self.rng
        documents = Documents(rng, self.options.documents == "hostile")
        collection = self.client[self.database].docs
        collection.drop()
        collection.insert_many([documents.document(number) for number in range(200)])
        for index in ("lines.product", "tags", "numbers", "customer", "box.lines.name", "lines.parts"):
            if rng.random() < 0.5:
                collection.create_index(index)
        host, port = self.client.address
        self.execute("""DROP SERVER IF EXISTS unwound CASCADE; DROP SCHEMA IF EXISTS remote, local CASCADE;
            DROP TABLE IF EXISTS docs; DROP FUNCTION IF EXISTS as_int, as_text, elements;
            CREATE SCHEMA remote; CREATE SCHEMA local;
            CREATE SERVER unwound FOREIGN DATA WRAPPER mongo_fdw OPTIONS (address '%s', port '%d', type_mismatch '%s', fdw_startup_cost '0');
            CREATE USER MAPPING FOR CURRENT_USER SERVER unwound;
            CREATE FOREIGN TABLE remote.docs (_id int, customer text, lines jsonb, tags jsonb, numbers jsonb, box jsonb)
                SERVER unwound OPTIONS (database '%s');
            CREATE TABLE docs AS TABLE remote.docs""" % (host, port, self.options.type_mismatch, self.database))
        # then _id is known to be unique, and one find has the rows of a table and of its elements
        if rng.random() < 0.7:
            self.execute("ANALYZE remote.docs")
        self.execute(SETUP)
        for name, unwind, columns, rows in TABLES:
            empty = rng.random() < 0.4
            join = {"join": "LEFT JOIN LATERAL", "on": "ON true"} if empty else {"join": "CROSS JOIN LATERAL", "on": ""}
            self.execute("CREATE FOREIGN TABLE remote.%s (%s) SERVER unwound OPTIONS (database '%s', collection 'docs', %s%s)" % (
                name, columns, self.database, unwind, ", unwind_empty 'true'" if empty else ""))
            self.execute("CREATE TABLE local.%s AS %s" % (name, rows.format(**join)))
            if rng.random() < 0.5:
                self.execute("ANALYZE remote.%s" % name)

    def answer(self, sql):
        """Returns sorted rows, or the error's SQLSTATE."""
        try:
            return sorted(map(repr, self.execute(sql)))
        except psycopg2.Error as error:
            return error.pgcode

    def ask(self, sql):
        """Returns the remote result of one of several ways to run the query."""
        settings = self.rng.choice(SETTINGS)
        for setting in settings:
            self.execute("SET " + setting)
        result = self.answer(sql)
        for setting in settings:
            self.execute("RESET " + setting.split(" =")[0])
        return settings, result

    def is_right(self, sql, remote, local):
        if local == "22003":
            return True
        if self.options.documents == "clean" or self.options.type_mismatch == "null":
            return remote == local
        if remote in MISMATCHES:
            self.mismatches += 1
            return True
        plain = sql.startswith(("SELECT *", "SELECT _id, n FROM"))
        return isinstance(remote, list) and (not plain or set(remote) <= set(local))

    def run(self):
        failures = 0
        for number in range(self.options.queries):
            if number % 250 == 0:
                self.create()
            name, _, columns, _ = self.rng.choice(TABLES)
            has = {column for column in ("product", "name", "item") if column + " " in columns}
            sql = random_query(self.rng, name, has)
            local = self.answer(sql.replace("{schema}", "local").replace("{parent}", "public"))
            settings, remote = self.ask(sql.replace("{schema}", "remote").replace("{parent}", "remote"))
            if self.is_right(sql, remote, local):
                continue
            failures += 1
            print("query %d, %s: %s\n  remote %s\n  local  %s" % (number, settings, sql, str(remote)[:600], str(local)[:600]))
            if failures == 5:
                break
        print("%d queries, %d mismatches, %d differences" % (number + 1, self.mismatches, failures))
        self.client.drop_database(self.database)
        return failures == 0


def main():
    parser = test_arguments.random_parser(__doc__)
    test_arguments.add_documents(parser)
    options = parser.parse_args()
    print("seed %d" % options.seed)
    sys.exit(0 if Unwound(options).run() else 1)


if __name__ == "__main__":
    main()
