"""Random nested queries over tables, views and time series of all kinds, compared with local tables.

    nested.py --seed 1 --queries 2000

The tables are those of t/random/tables.py.  A query joins up to three tables or subqueries, and
has subqueries in any clause: IN, EXISTS, comparisons, outputs, HAVING.  Settings and ways to run
a query are drawn as in t/random/queries.py.  A query with a difference is drawn again from its
own seed with parts omitted, as long as the difference remains.

Not tested, because more than one result is correct: LIMIT below an order with ties, the choice
among equal numerics (1.5 or 1.50), sums of doubles.
"""

import random
import sys

import psycopg2

from both_servers import BothServers
from execution import BY_NAME, random_way
from settings import PLANNING, SESSION, RandomSettings
from tables import LOCAL, REMOTE, TABLES, Tables, quote
import test_arguments

# PostgreSQL's errors for numbers out of range.
FAILURES = ("22003", "22008", "22012")
BLOCK = 20
QUERIES_A_DATABASE = 400
DEEPEST = 3

# If no settings are drawn: local work is expensive, so that MongoDB does it, and joins are one
# command or commands with many keys.
PUSHING = "SET cpu_tuple_cost = 10; SET cpu_operator_cost = 10;"
WAYS = ["", PUSHING, PUSHING + "SET enable_hashjoin = off; SET enable_mergejoin = off", "SET enable_hashjoin = off; SET enable_nestloop = off",
        "SET enable_hashjoin = off; SET enable_mergejoin = off; SET mongo_fdw.enable_join_pushdown = off"]
RESET = "; ".join("RESET " + name for name in ("cpu_tuple_cost", "cpu_operator_cost", "enable_hashjoin", "enable_mergejoin", "enable_nestloop",
                                               "mongo_fdw.enable_join_pushdown"))

LITERALS = {
    "integer": ["0", "1", "5", "7", "-5", "30", "NULL", "3000000000", "2.0", "1.5"],
    "bigint": ["0", "5", "30", "90", "-1"],
    "numeric": ["0", "1.5", "1.2", "1.3", "2", "-0.5", "1.25", "0.25"],
    "float": ["0.1", "0", "-1.5", "'NaN'", "1e300"],
    "text": ["''", "'x'", "'X'", "'ab'", "'abc'", "'ab '", "'abc '", "'é'", "'65a000000000000000000001'", "'$x'", "NULL"],
    "character": ["'ab'", "'abc'", "'ab '", "'abc  '", "''"],
    "time": ["'2020-01-01Z'", "'2020-01-01 00:00:01Z'", "'2020-01-01 00:00:00.5Z'", "'2024-01-02Z'", "'2020-01-01 00:00:02Z'"],
    "date": ["'2020-02-29'", "'1900-01-01'"],
    "json": ["'{\"$gt\": 5}'", "'{\"k\": 1}'", "'{\"$gt\": null}'", "'{}'"],
}
LIKES = ["'a%'", "'%b'", "'ab_'", "'ab '", "'abc%'", "'_'", "'ab_%'"]

# Families that can be compared with each other, and those that can be grouped and shown.
COMPARABLE = {"integer": ["integer", "integer", "bigint", "numeric"], "bigint": ["integer", "bigint"], "numeric": ["numeric", "integer", "float"],
              "float": ["float", "numeric"], "text": ["text"], "character": ["character"], "time": ["time", "date"], "date": ["date", "time"],
              "boolean": ["boolean"], "json": ["json"]}
GROUPED = ("integer", "bigint", "text", "character", "time", "date", "boolean")
SHOWN = {"numeric": "trim_scale(%s)::text", "float": "(%s + 0)::text", "json": "(%s)::text", "time": "(%s)::text", "date": "(%s)::text"}


class Source:
    """A FROM item with an alias: its columns by family."""

    def __init__(self, sql, alias, families):
        self.sql = sql
        self.alias = alias
        self.families = families

    def columns(self, families):
        return [(family, "%s.%s" % (self.alias, quote(name))) for family in families for name in self.families.get(family, [])]


class Nested:
    """Queries from a random generator; 'plain' are the parts to omit."""

    def __init__(self, rng, plain=()):
        self.rng = rng
        self.plain = plain
        self.aliases = 0
        self.choices = 0

    def chance(self, probability):
        """Draws in the same way if the part is omitted, so that the rest of the query is the same."""
        drawn = self.rng.random() < probability
        self.choices += drawn
        return drawn and self.choices not in self.plain

    # ---- sources

    def alias(self):
        self.aliases += 1
        return "q%d" % self.aliases

    def source(self, depth):
        if depth < DEEPEST and self.chance(0.25):
            outputs = self.outputs_of_query(depth + 1)
            return Source("(%s)" % outputs[0], self.alias(), outputs[1])
        name = self.rng.choice(list(TABLES) + ["items"] * 6)
        return Source(name, self.alias(), TABLES[name])

    def column(self, sources, families=None):
        """Returns (family, SQL) of some column, or None if there is none."""
        columns = [column for source in sources for column in source.columns(families or COMPARABLE)]
        # each family is equally likely
        present = sorted({family for family, _ in columns})
        if not present:
            return None
        chosen = self.rng.choice(present)
        return self.rng.choice([column for column in columns if column[0] == chosen])

    def join_key(self, source, others):
        """Returns an equality of this source with another one, of a family that both have."""
        mine = self.column([source], [family for family in COMPARABLE if family != "boolean"])
        # joins by few distinct values become too large
        if self.rng.random() < 0.5 and "_id" in source.families.get("integer", []):
            mine = ("integer", source.alias + "._id")
        theirs = mine and self.column(others, COMPARABLE[mine[0]])
        if not theirs:
            return "%s = %s" % (self.count_of(source), self.count_of(self.rng.choice(others)))
        return "%s %s %s" % (mine[1], "=" if self.rng.random() < 0.96 else "IS NOT DISTINCT FROM", theirs[1])

    def count_of(self, source):
        return "length((%s)::text)" % source.alias

    def sources(self, depth):
        """Returns FROM, and the sources whose columns can be named."""
        rng = self.rng
        first = self.source(depth)
        sources, sql = [first], "%s AS %s" % (first.sql, first.alias)
        for _ in range(rng.choice([0, 0, 0, 1, 1, 2] if depth < 2 else [0, 0, 1])):
            source = self.source(depth)
            keys = [self.join_key(source, sources)]
            if self.chance(0.3):
                keys.append(self.condition(sources + [source], depth + 1))
            kind = rng.choice(["JOIN", "JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
            if kind == "FULL JOIN":     # PostgreSQL supports it only by merge or hash
                keys = [key for key in keys[:1]] if " = " in keys[0] else ["%s = %s" % (self.count_of(source), self.count_of(first))]
            sql += " %s %s AS %s ON %s" % (kind, source.sql, source.alias, " AND ".join(keys))
            sources.append(source)
        return sql, sources

    # ---- conditions

    def comparison(self, sources):
        rng = self.rng
        family, column = self.column(sources)
        kind = rng.random()
        if kind < 0.15:
            return "%s IS %sNULL" % (column, rng.choice(["", "NOT "]))
        if family == "boolean":
            return rng.choice(["%s", "NOT %s", "%s IS NOT TRUE"]) % column
        if kind < 0.3:
            other = self.column(sources, COMPARABLE[family])
            return "%s %s %s" % (column, self.operator(family), other[1])
        if family in ("text", "character") and kind < 0.5:
            return rng.choice(["%s LIKE " % column + rng.choice(LIKES), "%s NOT LIKE " % column + rng.choice(LIKES),
                               "length(%s) %s %d" % (column, rng.choice(["=", ">", "<"]), rng.choice([0, 1, 2, 3]))])
        if kind < 0.65:
            return "%s %sIN (%s)" % (column, rng.choice(["", "", "NOT "]), ", ".join(rng.sample(LITERALS[family], min(3, len(LITERALS[family])))))
        return "%s %s %s" % (column, self.operator(family), rng.choice(LITERALS[family]))

    def operator(self, family):
        if family == "json":
            return self.rng.choice(["=", "=", "<>", "@>"])
        return self.rng.choice(["=", "=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM"])

    def condition(self, sources, depth):
        rng = self.rng
        kind = rng.random()
        if depth < DEEPEST and self.chance(0.35):
            return self.subquery_condition(sources, depth)
        if kind < 0.12:
            return "NOT (%s)" % self.condition(sources, depth + 1)
        if kind < 0.35 and depth <= DEEPEST:
            return "(%s)" % rng.choice([" AND ", " OR "]).join(self.condition(sources, depth + 1) for _ in range(2))
        return self.comparison(sources)

    def subquery_condition(self, sources, depth):
        """Returns a condition with a subquery, which may refer to outer sources."""
        rng = self.rng
        compared = self.column(sources, [family for family in LITERALS if family != "json"])
        if not compared:
            return self.comparison(sources)
        family, column = compared
        inner_sql, inner = self.sources(depth + 1)
        theirs = self.column(inner, COMPARABLE[family])
        filters = [self.condition(inner, depth + 1)] if self.chance(0.6) else []
        if self.chance(0.4):
            outer = self.column(inner, COMPARABLE[family])
            mine = outer and self.column(sources, COMPARABLE[outer[0]])
            if mine:
                filters.append("%s %s %s" % (outer[1], rng.choice(["=", "=", "=", "<>", "<"]), mine[1]))
        where = "FROM %s%s" % (inner_sql, " WHERE " + " AND ".join(filters) if filters else "")
        kind = rng.random()
        if not theirs or kind < 0.25:
            return "%sEXISTS (SELECT 1 %s)" % (rng.choice(["", "", "NOT "]), where)
        if kind < 0.65:
            return "%s %sIN (SELECT %s %s)" % (column, rng.choice(["", "", "NOT "]), theirs[1], where)
        if kind < 0.75:
            return "%s %s %s (SELECT %s %s)" % (column, rng.choice(["<", ">=", "<>", "="]), rng.choice(["ALL", "ANY"]), theirs[1], where)
        if kind < 0.9:
            return "%s %s (SELECT %s(%s) %s)" % (column, rng.choice(["=", "<=", ">"]), rng.choice(["min", "max"]), theirs[1], where)
        return "(SELECT count(%s%s) %s) %s %d" % (rng.choice(["", "DISTINCT "]), theirs[1], where, rng.choice([">", "=", "<>"]), rng.choice([0, 1, 3]))

    # ---- queries

    def tail(self, sources, depth):
        return " WHERE " + self.condition(sources, depth) if self.chance(0.6) else ""

    def outputs_of_query(self, depth):
        """Returns a query for FROM: (SQL, families of its columns)."""
        rng = self.rng
        sql, sources = self.sources(depth)
        where = self.tail(sources, depth)
        kind = rng.random()
        if kind < 0.35:
            keys = [self.column(sources, GROUPED) for _ in range(rng.choice([1, 1, 2]))]
            keys = [key for key in keys if key]
            if keys:
                return self.grouped(sql, where, keys, sources)
        columns = [self.column(sources) for _ in range(rng.randint(1, 4))]
        keys = [self.column(sources, rng.choice([GROUPED, ["text", "character"]])) for _ in range(rng.choice([1, 1, 2]))]
        distinct = all(keys) and self.chance(0.25)
        if distinct:    # an index, with or without a collation, may skip from key to key
            columns = keys
        families = {}
        for number, (family, _) in enumerate(columns):
            families.setdefault(family, []).append("c%d" % number)
        outputs = ", ".join("%s AS c%d" % (column, number) for number, (_, column) in enumerate(columns))
        end = ""
        sortable = all(family in GROUPED for family, _ in columns)
        if sortable and self.chance(0.3):
            # rows that tie are equal in all outputs
            end = " ORDER BY %s LIMIT %d OFFSET %d" % (
                ", ".join("c%d%s" % (number, rng.choice(["", " DESC", " NULLS FIRST", " DESC NULLS LAST"])) for number in range(len(columns))),
                rng.choice([1, 3, 4, 20, 1000]), rng.choice([0, 0, 1, 5]))
        return "SELECT %s%s FROM %s%s%s" % ("DISTINCT " if distinct else "", outputs, sql, where, end), families

    def grouped(self, sql, where, keys, sources):
        rng = self.rng
        families = {}
        outputs = []
        for number, (family, column) in enumerate(keys):
            families.setdefault(family, []).append("c%d" % number)
            outputs.append("%s AS c%d" % (column, number))
        argument = self.column(sources, ["integer", "bigint", "text", "time"])
        aggregates = ["count(*)"] + ([] if not argument else ["count(%s)" % argument[1], "count(DISTINCT %s)" % argument[1]])
        families.setdefault("bigint", []).append("n")
        outputs.append("%s AS n" % rng.choice(aggregates))
        if argument and argument[0] != "bigint":
            families.setdefault(argument[0], []).append("e")
            outputs.append("%s(%s) AS e" % (rng.choice(["min", "max"]), argument[1]))
        having = " HAVING count(*) %s %d" % (rng.choice([">", "=", "<"]), rng.choice([1, 2, 5])) if self.chance(0.2) else ""
        return "SELECT %s FROM %s%s GROUP BY %s%s" % (", ".join(outputs), sql, where, ", ".join(column for _, column in keys), having), families

    def window(self, sources):
        """Returns a window function whose value does not depend on ties."""
        key = self.column(sources, GROUPED)
        part = self.column(sources, GROUPED)
        if not key:
            return "count(*) OVER ()"
        order = "ORDER BY %s%s" % (key[1], self.rng.choice(["", " DESC", " NULLS FIRST"]))
        return self.rng.choice(["rank() OVER (%s)" % order, "dense_rank() OVER (PARTITION BY %s %s)" % (part[1], order),
                                "count(*) OVER (%s)" % order, "count(*) OVER (PARTITION BY %s)" % part[1]])

    def query(self):
        """Returns a query with its outputs as text."""
        rng = self.rng
        kind = rng.random()
        if kind < 0.45:
            sql, sources = self.sources(0)
            outputs = [self.shown(*self.column(sources)) for _ in range(rng.randint(1, 4))]
            if self.chance(0.15):
                outputs.append(self.window(sources))
            if self.chance(0.2):
                family, column = self.column(sources, ["integer", "text"]) or ("integer", "1")
                inner_sql, inner = self.sources(1)
                theirs = self.column(inner, [family])
                outputs.append("(SELECT count(*) FROM %s%s)" % (inner_sql, " WHERE %s = %s" % (theirs[1], column) if theirs else ""))
            return "SELECT %s FROM %s%s" % (", ".join(outputs), sql, self.tail(sources, 0))
        sql, families = self.outputs_of_query(0)
        if kind < 0.55:
            other, others = self.outputs_of_query(0)
            first, second = self.first_of(families, others)
            return "SELECT %s::text FROM (%s) AS x %s SELECT %s::text FROM (%s) AS y" % (
                first, sql, rng.choice(["UNION", "UNION ALL", "INTERSECT", "EXCEPT", "EXCEPT ALL"]), second, other)
        columns = [(family, "o.%s" % name) for family in sorted(families) for name in families[family]]
        if kind < 0.75:
            return "SELECT count(*), %s FROM (%s) AS o" % (", ".join("count(%s)" % column for _, column in columns), sql)
        return "SELECT %s FROM (%s) AS o" % (", ".join(self.shown(*column) for column in columns), sql)

    def first_of(self, families, others):
        """Returns a column of each side, of one family if both have one whose values can be grouped."""
        for family in GROUPED:
            if family in families and family in others:
                return "x." + families[family][0], "y." + others[family][0]
        return "(x IS NULL)", "(y IS NULL)"

    def shown(self, family, column):
        return SHOWN.get(family, "%s") % column


class RandomNested(BothServers):
    def __init__(self, options):
        super().__init__(options)
        self.rng = random.Random(options.seed)
        self.other_rng = random.Random("ways of %d" % options.seed)
        self.session = RandomSettings(self.execute, options, SESSION)
        self.settings = RandomSettings(self.execute, options, PLANNING)
        self.tables = Tables(self.execute, self.client, options, self.rng, self.other_rng)
        self.failed = 0
        self.pushing = ""

    def set_up(self):
        self.settings.restore()
        self.session.restore()
        self.tables.set_up(self.session.draw)
        self.execute("SET statement_timeout = '60s'; SET jit = off")

    def answer(self, schema, sql):
        self.execute("SET search_path = " + self.settings.path("%s, writes" % schema))
        try:
            return sorted(BY_NAME[self.way](self.execute, sql), key=repr)
        except psycopg2.Error as error:
            if self.connection.closed:
                raise
            return "%s: %s" % (error.pgcode, error.diag.message_primary)

    def differs(self, sql):
        """Returns the remote and the local result if they differ."""
        local = self.answer(LOCAL, sql)
        if isinstance(local, str):
            if not local.startswith(FAILURES + ("57014",)) and not self.session.may_fail(local[:5]):
                raise ValueError("%s\n%s" % (sql, local))
            self.failed += 1
            return None
        remote = self.answer(REMOTE, sql)
        return None if remote == local else (remote, local)

    def reduced(self, seed, sql):
        """Returns shorter queries of the same seed that differ too."""
        plain = set()
        for number in range(1, 60):
            shorter = Nested(random.Random(seed), plain | {number}).query()
            if len(shorter) < len(sql) and self.differs(shorter):
                plain.add(number)
                sql = shorter
        return sql

    def report(self, number, seed, sql):
        way, self.way = self.way, "directly"
        if not self.differs(sql):
            self.way = way
        sql = self.reduced(seed, sql)
        remote, local = self.differs(sql)
        print("DIFFERENCE in query %d of seed %d:\n%s  %s: %s" % (
            number, self.options.seed, self.session.describe() + self.settings.describe() + self.pushing, self.way, sql))
        for label, rows in (("remote", remote), ("local", local)):
            print("  %s: %s" % (label, rows if isinstance(rows, str) else "%d rows" % len(rows)))
        if isinstance(remote, list):
            print("  only remote: %s\n  only local: %s" % ([r for r in remote if r not in local][:3], [r for r in local if r not in remote][:3]))
        self.execute("SET search_path = " + self.settings.path("%s, writes" % REMOTE))
        for row in self.execute("EXPLAIN (VERBOSE, COSTS OFF) " + sql):
            print("    " + row[0])

    def run(self):
        differences = 0
        for number in range(self.options.queries):
            if number % QUERIES_A_DATABASE == 0:
                self.set_up()
            if number % BLOCK == 0:
                self.execute(RESET)
                ordinary = not self.settings.draw()
                if ordinary:
                    self.pushing = self.other_rng.choice(WAYS)
                    self.execute(self.pushing or "SELECT 1")
            self.way = "directly" if ordinary else random_way(self.other_rng)
            seed = self.rng.getrandbits(60)
            sql = Nested(random.Random(seed)).query()
            if self.differs(sql):
                differences += 1
                self.report(number, seed, sql)
                if differences >= self.options.differences:
                    break
        print("seed %d: %d queries, %d failed by themselves; %d differences" % (self.options.seed, number + 1, self.failed, differences))
        return differences == 0


def main():
    parser = test_arguments.random_parser(__doc__)
    parser.add_argument("--server", default="mongodb")
    parser.add_argument("--type-mismatch", choices=["error", "null"], default="error")
    parser.add_argument("--differences", type=int, default=10, help="after so many it ends")
    options = parser.parse_args()
    print("seed %d" % options.seed)
    sys.exit(0 if RandomNested(options).run() else 1)


if __name__ == "__main__":
    main()
