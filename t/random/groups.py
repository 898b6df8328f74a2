"""Random queries with GROUP BY, DISTINCT, HAVING, aggregates, and clauses above them.

Each is a template with {condition} and {table}, for queries.py.  A group may show any
of several equal values (1.0 or 1.00, 0 or -0), so such values are shown in one form.
"""

from conditions import Leaf
from expressions import random_expression

INTEGERS = ("smallint", "integer", "bigint")
NUMBERS = INTEGERS + ("numeric", "numeric(12,2)")
ORDERED = NUMBERS + ("double precision", "timestamp", "timestamptz", "date")

# Keys other than columns; none can raise an error.
EXPRESSIONS = ["i2 % 3", "i2::integer + 1", "f8 > 1", "t IS NULL", "length(t)", "coalesce(i4, 0)",
               "CASE WHEN b THEN i2 END", "n2 * 2", "abs(i2::integer)", "i4 IN (1, 2, 5)", "n > 1 OR b",
               "date_trunc('month', ck, 'UTC')", "date_trunc('day', ck, 'Etc/GMT-14')", "date_trunc('week', ck AT TIME ZONE 'Etc/GMT+5')",
               "extract(hour from ck AT TIME ZONE INTERVAL '05:45')", "ck AT TIME ZONE 'Etc/GMT+12'", "cn AT TIME ZONE 'Etc/GMT-3'",
               "date_trunc('month', ck)", "date_trunc('day', ck, 'Europe/Berlin')", "ck::date", "extract(hour from ck)",
               "jd ->> 'text'", "(jd ->> 'pure')::numeric", "jd #>> '{list,0,sku}'", "jsonb_extract_path(jd, 'list') #>> '{0,sku}'",
               "jsonb_object_field_text(jd, 'text')"]


def quote(name):
    return '"%s"' % name.replace('"', '""')


def one_form(column, expression):
    """Returns the expression in a form in which equal values look the same."""
    if column is not None and column.sql_type.startswith("numeric"):
        return "trim_scale(%s)::text" % expression
    if column is not None and column.sql_type == "double precision":
        return "(%s + 0)::text" % expression
    if column is not None and column.sql_type == "real":
        return "(%s + 0::real)::text" % expression
    return "(%s)::text" % expression


def is_ordered(column):
    return column.sql_type in ORDERED or "collate" in column.sql_type


# Conditions that are exact in MongoDB, as grouping there requires.
CONDITIONS = ["true", "i2 > 0", "_id < 150", "b IS NOT TRUE", "t = 'a'", "i4 IN (1, 2, 5) OR f8 > 0", "tc >= 'a'", "i2 % 2 = 1",
              "f8 > 0 AND f8 < 6", "f8 >= -2 AND f8 <= 'NaN'", "n BETWEEN -3 AND 6", "(n2 > 0 AND n2 < 9) OR f8 = 1"]


def random_exact_condition(rng):
    return Leaf(rng.choice(CONDITIONS))


class Key:
    def __init__(self, rng, columns):
        self.column = None
        if rng.random() < 0.2:
            kind = rng.choice(["int", "float", "numeric", "text", "timestamp", "date"])
            self.sql = random_expression(rng, columns, kind)
            self.shown = {"float": "((%s) + 0)::text", "numeric": "trim_scale(%s)::text"}.get(kind, "(%s)::text") % self.sql
        elif rng.random() < 0.25:
            self.sql = "(%s)" % rng.choice(EXPRESSIONS)
            self.shown = "trim_scale(%s)::text" % self.sql if "n2" in self.sql else self.sql + "::text"
        else:
            self.column = rng.choice([c for c in columns if c.sql_type != "jsonb"])
            self.sql = quote(self.column.name)
            self.shown = one_form(self.column, self.sql)


def aggregate_of_expression(rng, columns):
    """Returns an aggregate whose text does not depend on the order of rows."""
    kind = rng.choice(["int", "numeric", "text", "timestamp", "date"])
    argument = random_expression(rng, columns, kind)
    if kind == "numeric":
        return "trim_scale(%s(%s))" % (rng.choice(["sum", "avg", "min", "max"]), argument)
    if kind == "text":
        return "%s(%s)" % (rng.choice(["count", "count"]), argument)
    return "%s(%s)" % (rng.choice(["sum", "avg", "count"] if kind == "int" else ["min", "max", "count"]), argument)


def random_aggregate(rng, columns):
    """Returns an aggregate as SQL, and the column whose values it may show, or None."""
    kind = rng.random()
    if rng.random() < 0.15:
        return aggregate_of_expression(rng, columns), None
    if kind < 0.15:
        return "count(*)", None
    if kind < 0.3:
        distinct = rng.choice(["", "", "DISTINCT "])
        candidates = [c for c in columns if not distinct or c.sql_type != "jsonb"]
        return "count(%s%s)" % (distinct, quote(rng.choice(candidates).name)), None
    if kind < 0.6:
        column = rng.choice([c for c in columns if c.sql_type in NUMBERS])
        distinct = rng.choice(["", "", "", "DISTINCT "])
        argument = quote(column.name)
        if rng.random() < 0.2 and column.sql_type == "numeric(12,2)":
            argument = rng.choice(["n2 * 2", "n2 * n2", "n2 * (1 - n2) * (1 + n2)", "n2 + i4", "-n2",
                                   "CASE WHEN b THEN n2 ELSE 0 END"])
        name = rng.choice(["sum", "avg"])
        # the text of a sum of distinct values depends on which of equal values comes first
        return "%s(%s%s)" % (name, distinct, argument), column if distinct and name == "sum" else None
    if kind < 0.8:
        column = rng.choice([c for c in columns if is_ordered(c)])
        return "%s(%s)" % (rng.choice(["min", "max"]), quote(column.name)), column
    return "%s(%s)" % (rng.choice(["bool_and", "bool_or", "every"]), rng.choice(["b", "i4 > 5", "t = 'a'"])), None


def filtered(rng, aggregate):
    if "DISTINCT" in aggregate or aggregate.startswith("trim") or rng.random() > 0.15:
        return aggregate
    return "%s FILTER (WHERE %s)" % (aggregate, rng.choice(["b", "i2 > 1", "t = 'a'", "n IS NULL", "NOT b", "f8 < 2"]))


def shown_aggregate(rng, columns):
    aggregate, column = random_aggregate(rng, columns)
    expression = filtered(rng, aggregate)
    return one_form(column, expression), expression


def random_having(rng, columns, keys):
    kind = rng.random()
    if kind < 0.3:
        return "count(*) > %d" % rng.choice([0, 1, 2, 20])
    if kind < 0.5:
        return "%s(%s) %s %d" % (rng.choice(["sum", "avg", "min", "max"]), rng.choice(["i4", "n2", "i2"]),
                                 rng.choice(["<", ">=", "<>"]), rng.choice([0, 1, 5, 100]))
    if kind < 0.6:
        return "max(tc) >= 'a'"
    if kind < 0.8 and keys:
        return "%s IS %sNULL" % (rng.choice(keys).sql, rng.choice(["", "NOT "]))
    return "(%s OR %s)" % (random_having(rng, columns, keys), random_having(rng, columns, keys))


def order_by(rng, keys, aggregates):
    """Returns an order without ties between groups."""
    first = []
    if aggregates and rng.random() < 0.4:
        first = [rng.choice(aggregates)]
    return ", ".join(key + rng.choice(["", " DESC", " NULLS FIRST", " DESC NULLS LAST"])
                     for key in first + rng.sample(keys, len(keys)))


def bounds(rng):
    return rng.choice(["", "LIMIT %d OFFSET %d" % (rng.choice([0, 1, 3, 20]), rng.choice([0, 0, 1, 5]))])


def grouped(rng, columns):
    keys = [Key(rng, columns) for _ in range(rng.choice([0, 1, 1, 1, 2, 2, 3]))]
    aggregates = [shown_aggregate(rng, columns) for _ in range(rng.randint(0 if keys else 1, 3))]
    shown = [key.shown for key in keys] + [aggregate[0] for aggregate in aggregates]
    sql = "SELECT %s FROM {table} WHERE {condition}" % ", ".join(
        "%s AS o%d" % (expression, i) for i, expression in enumerate(shown))
    if keys:
        sql += " GROUP BY " + ", ".join(key.sql for key in keys)
    if rng.random() < 0.25:
        sql += " HAVING " + random_having(rng, columns, keys)
    if keys and rng.random() < 0.4:
        sql += " ORDER BY %s %s" % (order_by(rng, [key.sql for key in keys],
                                             [aggregate[1] for aggregate in aggregates]), bounds(rng))
        return "SELECT row_number() OVER (), * FROM (%s) s" % sql
    return sql


def distinct(rng, columns):
    keys = [Key(rng, columns) for _ in range(rng.randint(1, 3))]
    names = ["k%d" % i for i in range(len(keys))]
    sql = "SELECT DISTINCT %s FROM {table} WHERE {condition}" % ", ".join(
        "%s AS %s" % (key.sql, name) for key, name in zip(keys, names))
    if rng.random() < 0.4:
        sql += " ORDER BY %s %s" % (order_by(rng, names, []), bounds(rng))
        sql = "SELECT row_number() OVER (), * FROM (%s) s" % sql
        shown = ["row_number"]
    else:
        shown = []
    for key, name in zip(keys, names):
        shown.append(key.shown.replace(key.sql, name) if key.column is None else one_form(key.column, name))
    return "SELECT %s FROM (%s) d" % (", ".join(shown), sql)


def sorted_by_expressions(rng, columns):
    keys = [Key(rng, columns).sql for _ in range(rng.randint(1, 2))] + ["_id"]
    order = ", ".join(key + rng.choice(["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]) for key in keys)
    return ("SELECT row_number() OVER (), _id FROM (SELECT _id FROM {table} WHERE {condition} ORDER BY %s LIMIT %d) s"
            % (order, rng.choice([1, 5, 50])))


def random_group_template(rng, columns):
    kind = rng.random()
    if kind < 0.65:
        return grouped(rng, columns)
    if kind < 0.85:
        return distinct(rng, columns)
    return sorted_by_expressions(rng, columns)
