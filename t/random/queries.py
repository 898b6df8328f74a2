"""Random queries, run in three ways: with pushdown, without, and on a local table.

    queries.py --seed 1 --queries 2000 --type-mismatch null --documents hostile

The oracle is PostgreSQL itself.  A collection is filled with random documents
(clean: every field missing, null or of its column's type; hostile: also of any
other type, in arrays, out of range).  Each random query must return the same rows
(a) from the foreign table with pushdown, (b) with mongo_fdw.enable_pushdown off,
and (c) from an ordinary table with the same contents.

Some blocks of queries run under settings drawn at random (t/random/settings.py),
which apply to both sides, and in ways drawn at random (t/random/execution.py):
prepared, by cursors, in PL/pgSQL, within other queries.

The seed is printed and replays the run.  A query with a difference is reduced:
parts of its condition are removed as long as the difference remains.  Queries that
fail on the local table (such as out of range) are not compared.
"""

import random
import re
import sys

import psycopg2

from both_servers import BothServers
from conditions import Leaf, Node, random_condition
from documents import COLUMNS, ELEMENT_COLUMNS, quote, random_document
from execution import BY_NAME, PARAMETER, random_way
from groups import one_form, random_exact_condition, random_group_template
from settings import PLANNING, SESSION, RandomSettings
import elements
import equivalents
import test_arguments

# What EXPLAIN (VERBOSE) shows if a feature is pushed down.
MARKS = {"conditions": '"$', "expressions": '"$expr"', "sorts": '"sort"', "limits": '"limit"', "aggregates": "Aggregate on",
         "groups": '"$group"', "sorted pipelines": '"$sort"', "limited pipelines": '"$limit"',
         "parameters": '(k.k'}


# Errors of PostgreSQL itself: numbers and dates out of range, a negative length, the elements
# of a scalar, if that is tested before the scalar's type, and rows compared by operators of the
# schema "shadowing".
FAILURES = ("22003", "22008", "22011", "22012", "22023", "0A000")

# Queries under the same settings, and on the same documents.
BLOCK = 25
QUERIES_A_DATABASE = 500


# Paths inside jsonb; some have an index.
INNER_PATHS = ["jd.text", "jd.day", "jd.number", "jd.whole", "jd.at", "jd.list.sku", "jd.list", "jd.price", "jd.lines.n", "js.sku"]

# Conditions with the parameter of a way to run the query.
PARAMETER_CONDITIONS = ["_id <> " + PARAMETER, "_id >= " + PARAMETER, "i4 IS DISTINCT FROM " + PARAMETER,
                        "i2 = %s OR _id < 100" % PARAMETER, "_id IN (1, 2, %s)" % PARAMETER]


# How fields that do not fit are read, beyond the table's option: 'mixed' draws the option of some
# columns, 'shown' names the column __mismatch in every query.  Half of the databases of 'skip' and
# 'shown' lack these columns, for which MongoDB cannot test whether a field fits.
NOT_TESTED = ("f4", "c", "t1", "u", "by", "c0")
TOTAL = re.compile(r"\b(sum|avg)\(")
MISMATCH_CONDITIONS = ["__mismatch IS NULL", "__mismatch IS NOT NULL", "(__mismatch IS NULL OR i4 > 0)",
                       "__mismatch IS DISTINCT FROM '[]'"]


class Differential(BothServers):
    def __init__(self, options):
        super().__init__(options)
        self.rng = random.Random(options.seed)
        elements.set_server_version(self.connection.server_version)
        self.columns = COLUMNS
        self.all_columns = COLUMNS + ELEMENT_COLUMNS
        self.failures = 0
        self.way = "directly"
        # separate, so that a seed gives the same queries whatever is drawn
        self.other_rng = random.Random("ways of %d" % options.seed)
        self.session = RandomSettings(self.execute, options, SESSION)
        self.settings = RandomSettings(self.execute, options, PLANNING)

    def set_up(self):
        self.settings.restore()
        self.session.restore()
        host, port = self.client.address
        name = "differential_%d" % self.options.seed
        database = self.client["differential"]
        database.drop_collection(name)
        # a collation that must not affect the result
        collection = database.create_collection(name, collation={"locale": "en", "strength": 1})
        mismatch = self.options.type_mismatch
        hostile = self.options.documents == "hostile"
        if mismatch in ("skip", "shown"):
            self.columns, self.all_columns = COLUMNS, COLUMNS + ELEMENT_COLUMNS
            if self.other_rng.random() < 0.5:
                self.columns = self.all_columns = [c for c in COLUMNS if c.name not in NOT_TESTED]
        few = mismatch in ("skip", "mixed", "shown")
        collection.insert_many([random_document(self.rng, i, self.all_columns,
                                                hostile and not (few and self.other_rng.random() < 0.7))
                                for i in range(self.options.size)])
        paths = [column.path for column in self.rng.sample(self.all_columns, 6)]
        for path in paths + self.other_rng.sample(INNER_PATHS, 3):
            try:
                collection.create_index(path, collation={"locale": "simple"})
            except Exception:
                pass                # no index for parallel arrays and the like
        # MongoDB may take plans with these for other constants
        for path in self.other_rng.sample(["i4", "i8", "f8", "n", "i2"], 2):
            collection.create_index(path, name="partial_" + path, collation={"locale": "simple"},
                                    partialFilterExpression={path: {self.other_rng.choice(["$gt", "$lt"]): self.other_rng.choice([0, 5])}})
        self.execute("DROP SCHEMA IF EXISTS differential CASCADE; CREATE SCHEMA differential;"
                     "SET search_path = differential, public; SET timezone = 'Europe/Berlin';"
                     "CREATE EXTENSION IF NOT EXISTS mongo_fdw SCHEMA public;" + equivalents.CREATE_LOOSE +
                     "DROP SERVER IF EXISTS differential_server CASCADE;"
                     "CREATE SERVER differential_server FOREIGN DATA WRAPPER mongo_fdw"
                     " OPTIONS (address '%s', port '%d', fdw_startup_cost '0');"
                     "CREATE USER MAPPING FOR PUBLIC SERVER differential_server;" % (host, port))
        self.session.draw()             # the settings also decide the format of values in the copy
        skipped = self.other_rng.sample(self.all_columns, 3) if mismatch == "mixed" else []
        definitions = [c.definition(", type_mismatch 'skip'" if c in skipped else "") for c in self.all_columns]
        definitions += ["__mismatch jsonb"] if mismatch in ("skip", "shown") else []
        self.execute("CREATE FOREIGN TABLE remote (_id integer, %s) SERVER differential_server"
                     " OPTIONS (database 'differential', collection '%s', type_mismatch '%s')"
                     % (", ".join(definitions), name,
                        self.other_rng.choice(["error", "null", "skip"]) if mismatch == "shown" else
                        "null" if mismatch == "mixed" else mismatch))
        # make local work expensive, so that everything possible is pushed down
        self.execute("SET cpu_tuple_cost = 10; SET cpu_operator_cost = 10;"
                     "SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off")
        self.execute("SET mongo_fdw.enable_pushdown = off")
        self.execute("CREATE TABLE local AS SELECT * FROM remote")
        if mismatch == "skip":
            self.execute("DELETE FROM local WHERE __mismatch IS NOT NULL")
        self.execute("SET mongo_fdw.enable_pushdown = on;"
                     "GRANT USAGE ON FOREIGN SERVER differential_server TO PUBLIC;"
                     "GRANT USAGE ON SCHEMA differential TO PUBLIC; GRANT SELECT ON remote, local TO PUBLIC")

    def answers(self, sql):
        """Returns the results of all three, each a sorted list of rows or an error."""
        results = []
        for pushdown, table in (("on", "remote"), ("off", "remote"), ("on", "local")):
            self.execute("SET mongo_fdw.enable_pushdown = " + pushdown)
            try:
                text = equivalents.of_table(sql.replace("{table}", table), table == "remote" and pushdown == "on")
                results.append(sorted(BY_NAME[self.way](self.execute, text), key=repr))
            except psycopg2.Error as error:
                if self.connection.closed:
                    raise           # the server stopped: not a difference
                if table == "local":
                    # a database may lack columns
                    if error.pgcode == "42703" and len(self.all_columns) < len(COLUMNS):
                        return None
                    # out of range in PostgreSQL; MongoDB's arithmetic has a wider range
                    if error.pgcode not in FAILURES and not self.session.may_fail(error.pgcode):
                        raise       # the query itself is wrong: a bug of this test
                    return None
                # PostgreSQL's own error of a row that comes before the LIMIT is reached
                if error.pgcode in FAILURES and "LIMIT" in sql and "could not read" not in str(error):
                    return None
                # below an OR with what MongoDB cannot test
                if "mongo_match() can only" in error.diag.message_primary:
                    return None
                # hostile numbers, whose sum has more digits than a Decimal128
                if error.pgcode == "22003" and self.options.documents == "hostile" and TOTAL.search(sql):
                    return None
                results.append("%s: %s" % (error.pgcode, error.diag.message_primary))
        return results

    def differs(self, condition, template):
        results = self.answers(template.replace("{condition}", condition.render()))
        self.failures += results is None
        return None if results is None or results[0] == results[1] == results[2] else results

    def with_other_numbers(self, condition):
        return Leaf(re.sub(r"(?<=[<>=(] )-?\d+(?![\d.'\"])", lambda _: str(self.other_rng.choice([-7, 0, 3, 8])), condition.render()))

    def reduce(self, condition, template):
        # each query must name __mismatch
        for part in condition.parts() if self.options.type_mismatch != "shown" else []:
            if self.differs(part, template):
                return self.reduce(part, template)
        return condition

    def explain(self, sql):
        return self.execute("EXPLAIN (VERBOSE, COSTS OFF) " + equivalents.of_table(sql.replace("{table}", "remote"), True).replace(PARAMETER, "7"))

    def report(self, number, condition, template):
        way, self.way = self.way, "directly"
        if not self.differs(condition, template):
            self.way = way
        condition = self.reduce(condition, template)
        sql = template.replace("{condition}", condition.render())
        results = self.differs(condition, template)
        print("DIFFERENCE in query %d of seed %d:" % (number, self.options.seed))
        print(self.session.describe() + self.settings.describe() + "  %s: %s" % (self.way, sql))
        for label, rows in zip(("pushdown", "no pushdown", "local table"), results):
            print("  %s: %s" % (label, rows if isinstance(rows, str) else "%d rows" % len(rows)))
        if isinstance(results[0], list) and isinstance(results[2], list):
            print("  only with pushdown: %s" % [r for r in results[0] if r not in results[2]][:3])
            print("  only local: %s" % [r for r in results[2] if r not in results[0]][:3])
        self.execute("SET mongo_fdw.enable_pushdown = on")
        for row in self.explain(sql):
            print("    " + row[0])

    def random_bounds(self):
        return "LIMIT %d OFFSET %d" % (self.rng.choice([0, 1, 5, 50]), self.rng.choice([0, 0, 1, 10]))

    def random_template(self):
        """Returns a query with {condition} that has only one correct set of rows."""
        rng = self.rng
        kind = rng.random()
        if kind < 0.6:
            outputs = ["_id"] + [quote(c.name) + "::text" for c in rng.sample(self.columns, rng.randint(0, 4))]
            return "SELECT %s FROM {table} WHERE {condition}" % ", ".join(outputs)
        if kind < 0.7:
            # the number of rows under a LIMIT is fixed, the choice of rows is not
            return "SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {condition} %s) s" % self.random_bounds()
        if kind < 0.85:
            keys = [quote(c.name) + rng.choice(["", " DESC", " NULLS FIRST", " DESC NULLS LAST", " DESC NULLS FIRST"])
                    for c in rng.sample([c for c in self.columns if c.sql_type != "jsonb"], rng.randint(0, 2))]
            order = ", ".join(keys + [rng.choice(["_id", "_id DESC"])])
            return ("SELECT row_number() OVER (), _id FROM (SELECT _id FROM {table} WHERE {condition} ORDER BY %s %s) s"
                    % (order, rng.choice(["", self.random_bounds()])))
        if kind < 0.93:
            column = rng.choice([c for c in self.columns if c.sql_type not in ("jsonb", "boolean", "uuid", "bytea", "name")])
            name, other = quote(column.name), quote(rng.choice(self.columns).name)
            return ("SELECT count(*) + 1, count(%s), %s, %s FROM {table} WHERE {condition}"
                    % (other, one_form(column, "min(%s)" % name), one_form(column, "max(%s)" % name)))
        return ("SELECT k, _id FROM generate_series(-2, 60, 3) k JOIN {table} ON %s WHERE {condition}"
                % rng.choice(["_id = k", "_id = k AND i4 > k", "i4 = k", "k < _id AND _id <= 20", "f8 = k"]))

    def draw(self):
        """Draws settings for the next block; are they those that push down everything possible?"""
        drawn = self.settings.draw()
        self.execute("SET search_path = " + self.settings.path("differential"))
        return not drawn

    def rarely_sent(self):
        """Returns the forms of conditions of which MongoDB gets less than 40 of 100, for all columns."""
        self.settings.restore()
        self.session.restore()
        self.execute("SET search_path = differential, public; SET mongo_fdw.enable_pushdown = on")
        rarely = []
        for form in equivalents.WHOLE_FORMS + [elements.exists_condition]:
            texts = ["\n".join(row[0] for row in self.explain("SELECT _id FROM {table} WHERE " + form(self.other_rng, COLUMNS))) for _ in range(100)]
            sent = sum('"filter"' in text for text in texts)
            rarely += ["%s (%d)" % (form.__name__, sent)] if sent < 40 else []
        return rarely

    def run(self):
        differences, undrawn = 0, 0
        pushed = dict.fromkeys(MARKS, 0)
        for number in range(self.options.queries):
            if number % QUERIES_A_DATABASE == 0:
                self.set_up()
            if number % BLOCK == 0:
                ordinary = self.draw()
            condition = random_condition(self.rng, self.all_columns)
            template = self.random_template()
            if self.rng.random() < 0.35:
                template = random_group_template(self.rng, self.columns)
                if self.rng.random() < 0.6:
                    condition = random_exact_condition(self.rng)
            self.way = "directly" if ordinary else random_way(self.other_rng)
            if not ordinary and self.other_rng.random() < 0.4:
                condition = Node("AND", [condition, Leaf(self.other_rng.choice(PARAMETER_CONDITIONS))])
            if self.options.type_mismatch == "shown":
                condition = Node("AND", [condition, Leaf(self.other_rng.choice(MISMATCH_CONDITIONS))])
            failures = self.failures
            # not with a document for mongo_match(), which says twice what it means
            if self.other_rng.random() < 0.1 and "<match" not in condition.render():
                for _ in range(3):
                    self.differs(condition, template)
                condition = self.with_other_numbers(condition)
                self.failures = failures
            if self.differs(condition, template):
                differences += 1
                self.report(number, condition, template)
                if differences >= 10:
                    break
            if not ordinary or self.failures > failures:
                continue
            undrawn += 1
            self.execute("SET mongo_fdw.enable_pushdown = on")
            text = "\n".join(row[0] for row in self.explain(template.replace("{condition}", condition.render())))
            for what, mark in MARKS.items():
                pushed[what] += mark in text
        print("seed %d: %d queries (%s, type_mismatch %s), pushed: %s; %d failed here; %d differences"
              % (self.options.seed, self.options.queries, self.options.documents, self.options.type_mismatch,
                 ", ".join("%d %s" % (count, what) for what, count in pushed.items()), self.failures, differences))
        if self.failures > self.options.queries // 5:
            print("too many queries failed by themselves for this to be a test")
            return False
        if pushed["conditions"] < undrawn // 4:
            print("too few queries were pushed for this to be a test")
            return False
        rarely = self.rarely_sent() if self.options.type_mismatch in ("error", "null") else []
        if rarely:
            print("conditions that MongoDB should get more often: %s" % ", ".join(rarely))
            return False
        return differences == 0


def main():
    parser = test_arguments.random_parser(__doc__)
    parser.add_argument("--size", type=int, default=200, help="documents in the collection")
    test_arguments.add_documents(parser, "skip", "mixed", "shown")
    options = parser.parse_args()
    print("seed %d" % options.seed)
    sys.exit(0 if Differential(options).run() else 1)


if __name__ == "__main__":
    main()
