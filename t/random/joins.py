"""Random joins, run in four ways: with pushdown, with a local table, without pushdown, and locally.

    joins.py --seed 1 --queries 2000

Three collections of random documents with random indexes are joined by random queries of
two to four tables, and some of up to sixteen.  These are inner, left, semi- and antijoins
with random conditions on one table or two, above and within the join, and with aggregates
and orders on top.  Documents, conditions, settings and ways to run a query are those of
t/random/queries.py, whose description applies here too.
"""

import random
import re
import sys

import psycopg2

from both_servers import BothServers
from queries import FAILURES
from conditions import Leaf, Node, random_condition
from documents import COLUMNS, Column, quote, random_document
from equivalents import CREATE_LOOSE
from execution import BY_NAME, PARAMETER, random_way
from settings import PLANNING, SESSION, RandomSettings
import test_arguments

KEYS = {"integer": ["_id", "i2", "i4", "i8", "sub.x"], "float": ["f8"], "text": ["t", "tc", "v", "nm", "ox", "oy", "sx"],
        "timestamptz": ["ts"], "timestamp": ["tn"], "boolean": ["b"]}
# Keys that are not stored, but computed.
COMPUTED = {"integer": "(%s::bigint + 1)", "float": "abs(%s)", "text": "lower(%s)", "boolean": "(NOT %s)"}
TABLES = "abc"
QUERIES_A_DATABASE = 150

# Subqueries over the rows with a value; ties do not affect their results.
SUBQUERIES = ["SELECT count(*) || ' ' || coalesce(sum(%(i)s), 0)", "SELECT count(DISTINCT %(c)s)", "SELECT min(%(c)s)::text", "SELECT max(%(c)s)::text",
              "SELECT %(c)s::text ... ORDER BY %(c)s LIMIT 1", "SELECT %(i)s ... ORDER BY %(c)s DESC, %(i)s LIMIT 1 OFFSET 1",
              "SELECT count(*) ... GROUP BY %(c)s ORDER BY 1 DESC LIMIT 1", "SELECT avg(%(i)s)::text ... HAVING count(%(c)s) > 1",
              "SELECT string_agg(%(i)s::text, ' ' ORDER BY %(i)s)"]

# Queries under the same settings.
BLOCK = 15

# The share of queries under drawn settings with more than four tables.
WIDE = 0.07

# The share of databases with documents that do not fit their columns.
MISMATCH_DATABASES = 0.15

# The planner's source about indexes: column options; ANALYZE, also for compound indexes; ANALYZE
# of other documents and of indexes that were dropped; nothing.
KNOWLEDGE = ["said", "said", "learned", "stale", "absent"]

# A column's name in a condition; strings are skipped.
NAME = re.compile(r"""'(?:[^']|'')*'|"[^"]*"|\b(?:%s)\b""" % "|".join(c.name for c in COLUMNS if c.name.isalnum()))

# The column _id, for join clauses.
ID = Column("_id", "integer", None, list(range(-2, 30)))


class Table:
    """A table of the query; the names of its columns contain the table's name."""

    def __init__(self, name, alias):
        self.name = name
        self.alias = alias
        self.names = {c.name: "%s_%s" % (alias, c.name) for c in COLUMNS + [ID]}

    def render(self):
        names = ", ".join(quote(name) for name in self.names.values())
        return "%s AS %s (%s)" % (self.name, self.alias, names)

    def column(self, name):
        return "%s.%s" % (self.alias, quote(self.names[name]))


def put_into(node, rng, tables):
    """Returns the condition with columns of these tables: all of one table, or of any."""
    if isinstance(node, Node):
        return Node(node.operator, [put_into(child, rng, tables) for child in node.children])
    one = rng.choice(tables)
    mixed = rng.random() < 0.5

    def replace(match):
        table = rng.choice(tables) if mixed else one
        name = match.group().strip('"')
        # strings and collations are not columns
        return table.column(name) if name in table.names else match.group()
    return Leaf(NAME.sub(replace, node.sql))


class Query:
    """A join of tables, with conditions that can be removed one by one."""

    def __init__(self, rng, indexes, way="directly", wide=None):
        """'way' is a way of execution.py; 'wide' is the number of tables if more than four."""
        self.rng = rng
        self.indexes = indexes
        self.way = way
        self.wide = wide
        self.tables = [Table(rng.choice(TABLES), "r%d" % i) for i in range(wide or rng.choice([2, 2, 3, 3, 4]))]
        self.visible = [self.tables[0]]
        self.joins = []
        for table in self.tables[1:]:
            self.add(table)
        self.where = self.condition(self.visible) if rng.random() < 0.6 else None
        self.output = self.random_output()
        self.repeated = None if rng.random() > 0.25 else rng.choice(["range", "equal", "equal"])
        if self.repeated == "equal":
            self.subquery_by_value()
        # {parameter} is replaced by a value or a parameter in every way
        self.parameter = way != "directly" and rng.random() < 0.5

    def key(self, table):
        """Returns an equality that an index may serve, and sometimes one that none serves."""
        rng = self.rng
        other = rng.choice(self.visible)
        if self.wide:
            # each row matches one row of each table, or the joins become too large
            return Leaf("%s = %s" % (table.column("_id"), other.column(rng.choice(["_id", "_id", "i4", "i2"]))))
        family = rng.choice(list(KEYS) + ["integer", "integer", "text"])
        indexed = [c for c in KEYS[family] if c in self.indexes[table.name]]
        inner = rng.choice(indexed if indexed and rng.random() < 0.9 else KEYS[family])
        sides = [table.column(inner), other.column(rng.choice(KEYS[family]))]
        if rng.random() < 0.15 and family in COMPUTED:
            sides[1] = COMPUTED[family] % sides[1]
        rng.shuffle(sides)
        return Leaf("%s = %s" % tuple(sides))

    def condition(self, tables):
        rng = self.rng
        if len(tables) < 2 or rng.random() < 0.7:
            return put_into(random_condition(rng, COLUMNS + [ID], 1), rng, tables)
        family = rng.choice(list(KEYS))
        left, right = (rng.choice(tables).column(rng.choice(KEYS[family])) for _ in range(2))
        if family == "integer" and "i8" not in right and rng.random() < 0.3:
            right = "%s::bigint + %d" % (right, rng.choice([0, 1, -5]))
        operators = ["=", "<>"] if family in ("text", "boolean") else ["=", "<>", "<", "<=", ">", ">="]
        leaf = Leaf("%s %s %s" % (left, rng.choice(operators), right))
        return Node("NOT", [leaf]) if rng.random() < 0.2 else leaf

    def add(self, table):
        rng = self.rng
        kind = rng.choice(["JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "EXISTS", "NOT EXISTS"])
        conditions = [self.key(table)]
        if rng.random() < 0.25:
            conditions.append(self.key(table))
        while rng.random() < 0.35:
            conditions.append(self.condition(self.visible + [table] if rng.random() < 0.7 else [table]))
        self.joins.append((kind, table, conditions))
        if kind.endswith("JOIN"):
            self.visible.append(table)

    def random_output(self):
        rng = self.rng
        columns = [t.column(rng.choice(list(t.names))) for t in self.visible for _ in range(rng.choice([0, 1, 2]))]
        plain = ["%s::text" % c for c in columns + [rng.choice(self.visible).column("_id")]]
        kind = rng.random()
        if kind < 0.7:
            return "SELECT %s" % ", ".join(plain), ""
        group = rng.choice(self.visible).column(rng.choice(["i4", "i2", "b", "_id", "d"]))
        aggregates = "count(*), count(%s), min(%s)::text, max(%s)::text" % tuple(
            rng.choice(self.visible).column(rng.choice(["i4", "i8", "_id", "ts"])) for _ in range(3))
        if kind < 0.85:
            return "SELECT %s::text, %s" % (group, aggregates), "GROUP BY " + group
        return "SELECT " + aggregates, ""

    def subquery_by_value(self):
        """Returns a subquery that runs for each of many values, mostly over one table."""
        rng = self.rng
        if rng.random() < 0.7:
            self.joins, self.visible = [], self.tables[:1]
            self.where = self.condition(self.visible) if rng.random() < 0.4 else None
        self.value = self.tables[0].column(rng.choice(KEYS["integer"][:-1]))
        self.outer_only = rng.choice([[], [], ["x % 3 > 0"], ["x < 20"]])
        column = rng.choice(self.visible).column(rng.choice(["i4", "i8", "_id", "ts", "d"]))
        self.asked = rng.choice(SUBQUERIES) % {"c": column, "i": rng.choice(self.visible).column("_id")}

    def render(self):
        source = self.tables[0].render()
        filters = [] if self.where is None else ["(%s)" % self.where.render()]
        for kind, table, conditions in self.joins:
            clause = " AND ".join("(%s)" % c.render() for c in conditions)
            if kind.endswith("JOIN"):
                source += " %s %s ON %s" % (kind, table.render(), clause)
            else:
                filters.append("%s (SELECT 1 FROM %s WHERE %s)" % (kind, table.render(), clause))
        if self.parameter:
            filters.append("%s <> %s" % (self.tables[0].column("_id"), PARAMETER))
        if self.repeated == "equal":
            select, _, rest = self.asked.partition(" ... ")
            filters.append("%s = x" % self.value)
            filters += self.outer_only
            return "SELECT x, %s FROM generate_series(-3, 28) x" % ("(%s FROM %s WHERE %s %s)" % (
                select, source, " AND ".join(filters), rest))
        if self.repeated:
            # it runs again for each of some values, as its parameter
            some = self.visible[-1].column("_id")
            filters.append("%s BETWEEN x AND x + 20" % some)
            return "SELECT x, (SELECT count(*) || ' ' || coalesce(sum(%s), 0) FROM %s WHERE %s) FROM generate_series(-3, 28, 6) x" % (
                some, source, " AND ".join(filters))
        return "%s FROM %s %s %s" % (self.output[0], source,
                                     "WHERE " + " AND ".join(filters) if filters else "", self.output[1])

    def simpler(self):
        """Returns ways to simplify the query, each as an attribute and its value."""
        if self.way != "directly":
            yield "way", "directly"
        if self.parameter:
            yield "parameter", False
        if self.repeated:
            yield "repeated", None
        if self.where is not None:
            yield "where", None
            for part in self.where.parts():
                yield "where", part
        for i, (kind, table, conditions) in enumerate(self.joins):
            for k in range(1, len(conditions)):
                yield "joins", (self.joins[:i] + [(kind, table, conditions[:k] + conditions[k + 1:])]
                                + self.joins[i + 1:])
                for part in conditions[k].parts():
                    yield "joins", (self.joins[:i] + [(kind, table, conditions[:k] + [part] + conditions[k + 1:])]
                                    + self.joins[i + 1:])
            if not kind.endswith("JOIN"):
                yield "joins", self.joins[:i] + self.joins[i + 1:]


# Settings that make joins one command, or finds with the keys of many rows.
WAYS = {"lookup": "RESET enable_hashjoin; RESET enable_mergejoin; RESET enable_nestloop; RESET mongo_fdw.enable_join_pushdown",
        "batched": "SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_nestloop = off;"
                   "SET mongo_fdw.enable_join_pushdown = off"}


# The text of such a plan, the share of plans with it that must be reached, and the tolerance.
GONE = {"lookup": "oin of (", "batched": "Batched Join"}
FEWEST = {"lookup": 0.35, "batched": 0.85}
SLACK = 5
# The number of queries from which on some plans are checked, if few have drawn settings.
MANY = 1500

# Ways to run a query; the last result is the reference.  One of the mixed tables is local.
WHERE = (("on", "remote_joins"), ("on", "mixed_joins"), ("off", "remote_joins"), ("on", "local_joins"))


class RandomJoins(BothServers):
    def __init__(self, options):
        super().__init__(options)
        self.rng = random.Random(options.seed)
        self.indexes = {}
        self.other_rng = random.Random("ways of %d" % options.seed)
        self.session = RandomSettings(self.execute, options, SESSION)
        self.settings = RandomSettings(self.execute, options, PLANNING)

    def fill(self, name):
        rng = self.rng
        database = self.client["random_joins_%d" % self.options.seed]
        database.drop_collection(name)
        collection = database.create_collection(name, collation={"locale": "en", "strength": 1})
        size = rng.choice([0, 5, 12, 25])
        documents = [random_document(rng, i, COLUMNS, self.mismatches) for i in range(size)]
        for document in documents:
            # fields that a lookup's documents might replace
            document.update({key: "in the way" for key in ("t2", "t3", "t4", "v0") if rng.random() < 0.3})
        if documents:
            collection.insert_many(documents)
        paths = [path for family in KEYS.values() for path in family if path != "_id"]
        self.indexes[name] = rng.sample(paths, 8) + ["_id"]
        for path in self.indexes[name]:
            if path != "_id":
                collection.create_index(path, collation={"locale": "simple"})
        # MongoDB creates no compound index of two arrays
        if self.knowledge != "said" and not self.mismatches:
            self.create_compound_indexes(collection, paths)

    def create_compound_indexes(self, collection, paths):
        rng = self.other_rng
        indexes = {}
        for _ in range(4):
            keys = tuple((path, rng.choice([1, -1])) for path in rng.sample(paths + ["_id"], rng.choice([2, 2, 3])))
            indexes.setdefault(keys, rng.random() < 0.2)
        for keys, sparse in indexes.items():
            collection.create_index(keys, collation={"locale": "simple"}, sparse=sparse)

    def make_stale(self, name):
        """Changes documents and drops indexes after ANALYZE."""
        collection = self.client["random_joins_%d" % self.options.seed][name]
        collection.delete_many({})
        collection.insert_many([random_document(self.other_rng, i, COLUMNS, self.mismatches)
                                for i in range(self.other_rng.choice([1, 12, 25]))])
        for index in list(collection.index_information()):
            if index != "_id_" and self.other_rng.random() < 0.5:
                collection.drop_index(index)

    def set_up(self):
        self.settings.restore()
        self.session.restore()
        host, port = self.client.address
        self.execute("DROP SCHEMA IF EXISTS remote_joins, local_joins, mixed_joins CASCADE;"
                     "CREATE SCHEMA remote_joins; CREATE SCHEMA local_joins; CREATE SCHEMA mixed_joins;"
                     "SET search_path = remote_joins, public; SET timezone = 'Europe/Berlin'; SET jit = off;"
                     "CREATE EXTENSION IF NOT EXISTS mongo_fdw SCHEMA public;" + CREATE_LOOSE +
                     "DROP SERVER IF EXISTS random_joins CASCADE;"
                     # a command is expensive and a lookup free, so that joins are pushed down
                     "CREATE SERVER random_joins FOREIGN DATA WRAPPER mongo_fdw OPTIONS (address '%s', port '%d',"
                     " fdw_startup_cost '1000000', fdw_lookup_cost '0');"
                     "CREATE USER MAPPING FOR PUBLIC SERVER random_joins;" % (host, port))
        self.session.draw()             # the settings also decide the format of values in the copies
        # values that do not fit are NULL then, and no join is one command
        self.mismatches = self.rng.random() < MISMATCH_DATABASES
        self.knowledge = self.other_rng.choice(KNOWLEDGE)
        for name in TABLES:
            self.fill(name)
            definitions = ", ".join(
                c.definition(", indexed 'true'" if self.knowledge == "said" and c.path in self.indexes[name] else "")
                for c in COLUMNS + [ID])
            self.execute("CREATE FOREIGN TABLE %s (%s) SERVER random_joins OPTIONS (database 'random_joins_%d',"
                         " collection '%s', type_mismatch '%s')" % (name, definitions, self.options.seed, name,
                                                                    "null" if self.mismatches else "error"))
            if self.knowledge in ("learned", "stale"):
                self.execute("ANALYZE %s" % name)
            if self.knowledge == "stale":
                self.make_stale(name)
            self.execute("CREATE TABLE local_joins.%s AS SELECT * FROM %s" % (name, name))
            self.execute("CREATE VIEW mixed_joins.%s AS SELECT * FROM %s.%s" % (
                name, "local_joins" if name == TABLES[0] else "remote_joins", name))
            if self.rng.random() < 0.6 and self.knowledge == "said":
                self.execute("ANALYZE %s" % name)
        for _, schema in WHERE[1:]:
            self.execute("GRANT USAGE ON SCHEMA %s TO PUBLIC; GRANT SELECT ON ALL TABLES IN SCHEMA %s TO PUBLIC" % (schema, schema))

    def answers(self, query):
        results = []
        failed = False
        for pushdown, schema in WHERE:
            self.execute("SET search_path = %s; SET mongo_fdw.enable_pushdown = %s" % (self.settings.path(schema), pushdown))
            try:
                results.append(sorted(BY_NAME[query.way](self.execute, query.render()), key=repr))
            except psycopg2.Error as error:
                # the server stopped, or the query itself is wrong: not a difference
                expected = error.pgcode in FAILURES or self.session.may_fail(error.pgcode or "")
                if self.connection.closed or schema == WHERE[-1][1] and not expected:
                    raise
                # whether the error occurs depends on which condition is tested first
                if expected:
                    failed = True
                results.append("%s: %s" % (error.pgcode, error.diag.message_primary))
        self.failed = failed
        internal = any(isinstance(result, str) and result.startswith("XX") for result in results)
        return None if failed and not internal else results

    def differs(self, query):
        results = self.answers(query)
        return None if results is None or all(result == results[0] for result in results) else results

    def reduce(self, query):
        for attribute, value in query.simpler():
            before = getattr(query, attribute)
            setattr(query, attribute, value)
            if self.differs(query):
                return self.reduce(query)
            setattr(query, attribute, before)
        return query

    def report(self, number, query, results):
        query = self.reduce(query)
        results = self.differs(query) or results
        print("DIFFERENCE in query %d of seed %d:\n%s  %s: %s" % (
            number, self.options.seed, self.session.describe() + self.settings.describe(), query.way, query.render()))
        for (pushdown, schema), rows in zip(WHERE, results):
            print("  %s, pushdown %s: %s" % (schema, pushdown, rows if isinstance(rows, str) else "%d rows" % len(rows)))
            if isinstance(rows, list) and isinstance(results[-1], list):
                print("    more than in local tables: %s" % [r for r in rows if r not in results[-1]][:3])
                print("    fewer: %s" % [r for r in results[-1] if r not in rows][:3])
        self.execute("SET search_path = %s; SET mongo_fdw.enable_pushdown = on" % self.settings.path("remote_joins"))
        for row in self.execute("EXPLAIN (VERBOSE, COSTS OFF) " + query.render().replace(PARAMETER, "7")):
            print("    " + row[0])

    def random_query(self, ordinary):
        if ordinary:
            return Query(self.rng, self.indexes)
        wide = self.other_rng.randint(5, 16) if self.other_rng.random() < WIDE else None
        return Query(self.rng, self.indexes, random_way(self.other_rng), wide)

    def run(self):
        differences = 0
        # queries whose plan is checked, by the way drawn, and those that were run so
        looked_at, gone = dict.fromkeys(WAYS, 0), dict.fromkeys(WAYS, 0)
        whole = 0
        known = dict.fromkeys(KNOWLEDGE, 0)
        for number in range(self.options.queries):
            if number % QUERIES_A_DATABASE == 0:
                self.set_up()
            if number % BLOCK == 0:
                ordinary = not self.settings.draw()
            query = self.random_query(ordinary)
            way = self.rng.choice(list(WAYS))
            if ordinary:
                self.execute(WAYS[way])
            results = self.differs(query)
            if results:
                differences += 1
                self.report(number, query, results)
                if differences >= 10:
                    break
            known[self.knowledge] += 1
            if not ordinary or self.failed or not self.may_go(query, way):
                continue
            self.execute("SET search_path = remote_joins, public; SET mongo_fdw.enable_pushdown = on")
            plan = "\n".join(row[0] for row in self.execute("EXPLAIN (COSTS OFF) " + query.render()))
            looked_at[way] += 1
            gone[way] += GONE[way] in plan
            whole += GONE["lookup"] in plan and plan.count("Foreign Scan") == 1
        print("seed %d: %d queries, %s; all in one command: %d; %d differences" % (
            self.options.seed, self.options.queries,
            ", ".join("%s: %d of %d" % (way, gone[way], looked_at[way]) for way in WAYS), whole, differences))
        print("  by what planning knew: %s" % ", ".join("%s %d" % item for item in known.items()))
        many = self.options.queries >= MANY and self.options.drawn < 0.5
        if any(gone[way] < looked_at[way] * FEWEST[way] - SLACK or (many and not looked_at[way]) for way in WAYS):
            print("too few joins were pushed for this to be a test")
            return False
        return differences == 0

    def may_go(self, query, way):
        """Is a plan of this way expected for this database?"""
        if not query.joins or self.knowledge in ("stale", "absent"):
            return False
        return way != "lookup" or not self.mismatches


def main():
    options = test_arguments.random_parser(__doc__).parse_args()
    print("seed %d" % options.seed)
    sys.exit(0 if RandomJoins(options).run() else 1)


if __name__ == "__main__":
    main()
