"""Random expressions for t/random/queries.py, by type, and comparisons of them.

An expression raises no error for any value of its columns, so that the place where it
is evaluated does not matter: divisors and lengths are limited, numbers stay small.
"""
import re

from patterns import random_regular_expression

LITERALS = {
    "int": ["0", "1", "-1", "7", "100"],
    "float": ["0::float8", "1.5::float8", "'-0'::float8", "'NaN'::float8", "0.1::float8"],
    "numeric": ["0::numeric", "1.005", "-2.5", "0.10", "100"],
    "text": ["''", "'a'", "'A%'", "'ä'", "'65a000000000000000000001'", "'$x'", "' a '"],
    "timestamp": ["timestamp '2023-11-14 22:13:20'", "timestamp '1969-12-31 23:59:59.999'", "timestamp '2000-02-29'"],
    "date": ["date '2023-11-14'", "date '1970-01-01'", "date '1969-12-31'"],
}

INTEGER_DIVISION = ["(%s / NULLIF(%s, 0))", "(%s %% NULLIF(%s, 0))"]



def choice(kind):
    """Returns CASE or the like over a kind of expressions."""
    def generate(rng, depth):
        one, other = expression(rng, kind, depth), expression(rng, kind, depth)
        form = rng.randrange(6)
        if form == 5:
            return "(CASE %s WHEN %s THEN %s ELSE %s END)" % (one, other, one, other)
        if form == 0:
            return "(CASE WHEN %s THEN %s ELSE %s END)" % (comparison(rng, depth), one, other)
        if form == 1:
            return "COALESCE(%s, %s)" % (one, other)
        if form == 2:
            return "NULLIF(%s, %s)" % (one, other)
        if kind == "text":
            return one
        return "%s(%s, %s)" % ("GREATEST" if form == 3 else "LEAST", one, other)
    return generate


def integer(rng, depth):
    """Returns at most four times the range of smallint per level: integer does not overflow."""
    one = expression(rng, "int", depth)
    form = rng.randrange(9)
    if form < 2:
        return "(%s %s %s)" % (one, rng.choice("+-"), expression(rng, "int", depth))
    if form == 2:
        return "(%s * %s)" % (one, rng.choice(["2", "-3", "0"]))
    if form < 5:
        return rng.choice(INTEGER_DIVISION) % (one, expression(rng, "int", depth))
    if form == 5:
        return "abs((%s)::int)" % one
    if form == 6:
        text = expression(rng, "text", depth)
        return rng.choice(["length(%s)", "octet_length(%s)", "strpos(%s, 'a')"]) % text
    if form == 7:
        return "extract(%s from %s)::int" % (rng.choice(["year", "month", "day", "dow", "doy", "week", "isoyear"]),
                                             expression(rng, "timestamp", depth))
    return "round(%s)::int" % rng.choice(["{n2}", "{n2} * 0.5", "trunc({n2}, 1)", "-{n2}"]).replace("{n2}", "NULLIF({n2}, 'NaN')")


def floating(rng, depth):
    one = rng.choice(["LEAST(GREATEST(%s, -1e9), 1e9)" % expression(rng, "float", depth), "(%s)::float8" % integer(rng, depth)])
    form = rng.randrange(7)
    if form < 3:
        return "(%s %s %s)" % (one, rng.choice("+-"), rng.choice(LITERALS["float"]))
    if form == 3:
        return "%s(%s)" % (rng.choice(["floor", "ceil", "trunc", "round", "sign", "abs"]), one)
    if form == 4:
        return "sqrt(abs(%s))" % one
    if form == 5:
        return "(%s / 3)" % one
    return "(-%s)" % one


def numeric(rng, depth):
    one = rng.choice(["{n2}", "{n2}", "(%s)::numeric" % integer(rng, depth)])
    form = rng.randrange(6)
    if form < 2:
        return "(%s %s %s)" % (one, rng.choice("+-"), rng.choice(LITERALS["numeric"] + ["{n2}"]))
    if form == 2:
        return "(%s * %s)" % (one, rng.choice(LITERALS["numeric"] + ["{n2}"]))
    if form == 3:
        return "%s(%s)" % (rng.choice(["floor", "ceil", "trunc", "round", "sign", "abs"]), one)
    if form == 4:
        return "%s(%s, %d)" % (rng.choice(["round", "trunc"]), one, rng.randrange(4))
    return "(%s %% 0.3)" % one


def text(rng, depth):
    one = expression(rng, "text", depth)
    form = rng.randrange(9)
    if form == 0:
        return "(%s || %s)" % (one, expression(rng, "text", depth))
    if form == 1:
        return "substr(%s, %d, %d)" % (one, rng.randint(-2, 4), rng.randint(0, 4))
    if form == 2:
        return "%s(%s, %d)" % (rng.choice(["left", "right"]), one, rng.randint(-3, 3))
    if form == 3:
        return "replace(%s, %s, %s)" % (one, rng.choice(LITERALS["text"]), rng.choice(LITERALS["text"]))
    if form == 4:
        return "%s(%s)" % (rng.choice(["btrim", "ltrim", "rtrim"]), one)
    if form == 5:
        return "split_part(%s, 'a', %d)" % (one, rng.choice([-2, -1, 1, 2]))
    if form == 6:
        return "(%s)::text" % integer(rng, depth)
    if form == 7:
        return rng.choice(["lower({tc})", "upper({tc})",
                           "to_char(%s, '%s')" % (expression(rng, "timestamp", depth),
                                                  rng.choice(["YYYY", "YYYY-MM-DD", "YYYY-Q", "DD.MM.YYYY HH24:MI:SS", "HH24"]))])
    return "concat(%s, %s)" % (one, rng.choice(["{i4}", "{v}", "'x'"]))


def timestamp(rng, depth):
    one = expression(rng, "timestamp", depth)
    form = rng.randrange(4)
    if form < 2:
        return "date_trunc('%s', %s)" % (rng.choice(["second", "minute", "hour", "day", "week", "month", "quarter", "year"]), one)
    if form == 2:
        return "(LEAST(%s, '3000-01-01') + interval '%s')" % (one, rng.choice(["1 day", "-1 month", "13 months 1 ms", "1 hour"]))
    return "(%s)::timestamp" % rng.choice(["{d}", "({ts} AT TIME ZONE 'UTC')", "{tn}", "({ts} AT TIME ZONE 'Etc/GMT-9')",
                                          "({ts} AT TIME ZONE INTERVAL '-03:30')", "date_trunc('day', {ts}, 'Etc/GMT+7') AT TIME ZONE 'UTC'"])


def day(rng, depth):
    return rng.choice(["(LEAST({d}, '3000-01-01') + %s)" % rng.choice(["1", "-1", "{i2}"]), "(%s)::date" % expression(rng, "timestamp", depth)])


# The columns in a type's expressions, by their paths; see t/random/documents.py.
COLUMNS = {
    "int": ["{i2}", "{i2}::int", "({i2} / 7::smallint)"],
    "float": ["{f8}", "{f8}", "{i4}::float8"],
    "numeric": ["{n2}"],
    "text": ["{t}", "{tc}", "{v}", "{nm}::text"],
    "timestamp": ["{tn}"],
    "date": ["{d}"],
}
# Columns that are compared with each other.
PAIRS = [("i4", "i8"), ("i8", "i4"), ("f8", "f8"), ("n", "n2"), ("n2", "n"), ("t", "v"), ("tc", "tc"), ("d", "tn"), ("i4", "i2"),
         ("tn", "tn"), ("ts", "ts"), ("b", "b"), ("i8", "n"), ("f8", "i4"), ("sub.x", "i4")]
FORMS = {"int": integer, "float": floating, "numeric": numeric, "text": text, "timestamp": timestamp, "date": day}


def expression(rng, kind, depth):
    if depth <= 0 or rng.random() < 0.3:
        return rng.choice(COLUMNS[kind] if rng.random() < 0.85 else LITERALS[kind])
    if rng.random() < 0.2:
        return choice(kind)(rng, depth - 1)
    return FORMS[kind](rng, depth - 1)


def comparison(rng, depth):
    """Returns a condition on an expression."""
    form = rng.random()
    if form < 0.15:
        left, right = rng.choice(PAIRS)
        operators = ["=", "<>"] if left == "t" else ["=", "<>", "<", "<=", ">", ">="]
        return "{%s} %s {%s}" % (left, rng.choice(operators + ["IS DISTINCT FROM", "IS NOT DISTINCT FROM"]), right)
    kind = rng.choice(sorted(FORMS))
    one = expression(rng, kind, depth)
    if form < 0.3:
        return "%s IS %sNULL" % (one, rng.choice(["", "NOT "]))
    if form < 0.4:
        return "%s %sIN (%s)" % (one, rng.choice(["", "NOT "]), ", ".join(rng.choices(LITERALS[kind] + ["NULL"], k=3)))
    if kind == "text" and form < 0.48:
        return "%s %s '%s'" % (one, rng.choice(["~", "!~", 'COLLATE "C" ~*', 'COLLATE "C" !~*']), random_regular_expression(rng))
    if kind == "text" and form < 0.6:
        return "%s %s '%s'" % (one, rng.choice(["LIKE", "NOT LIKE", 'COLLATE "C" ILIKE', 'COLLATE "C" NOT ILIKE']), rng.choice(["a%", "%a%", "_", "%ä", "A\\%%", "6%"]))
    operators = ["=", "<>", "=", "IS DISTINCT FROM"] if kind == "text" else ["=", "<>", "<", "<=", ">", ">="]
    other = rng.choice(LITERALS[kind]) if rng.random() < 0.5 else expression(rng, kind, depth - 1)
    if rng.random() < 0.1:
        other = "(SELECT %s)" % rng.choice(LITERALS[kind])
    return "%s %s %s" % (one, rng.choice(operators), other)


def with_names(columns, sql):
    names = {column.path: column.name for column in columns}
    return re.sub(r"\{([a-z][a-z0-9.]*)\}", lambda match: '"%s"' % names[match.group(1)], sql)


def random_comparison(rng, columns):
    """Returns a condition on an expression of these columns."""
    return with_names(columns, comparison(rng, 3))


def random_expression(rng, columns, kind):
    """Returns an expression of at least one of these columns."""
    sql = ""
    while "{" not in sql:
        sql = expression(rng, kind, 2)
    return with_names(columns, sql)
