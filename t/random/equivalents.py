"""Random conditions that mongo_fdw replaces by others, for t/random/queries.py and joins.py.

Comparisons of rows, IS DISTINCT FROM, coalesce(), upper and lower case under any locale,
ObjectIds as text, and mongo_match(), which only MongoDB tests: of_table() replaces it for the
others by what it means.
"""
import re

from documents import OBJECTIDS, TEXTS, quote
from execution import PARAMETER

OPERATORS = ["=", "<>", "<", "<=", ">", ">="]
# Columns of few values come first and make ties, which the next columns decide.
KEYS = ["i2", "i4", "i8", "n", "f8", "n2", "tc", "v", "ts", "tn", "t1", "d", "u", "nm", "c", "b", "sub.x", "ox", "sx", "il", "nd", "_id"]
FOLDED = ["t", "tc", "v", "c", "nm", "sx", "s y"]
# Turkish and Lithuanian fold some letters otherwise; the last finds letters of either case equal.
LOOSE = "public.loose"
LOCALES = ["", "", 'COLLATE "C"', 'COLLATE "und-x-icu"', 'COLLATE "tr-x-icu"', 'COLLATE "lt-x-icu"', "COLLATE " + LOOSE]
CREATE_LOOSE = """DO $$ BEGIN
    CREATE COLLATION %s (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$;""" % LOOSE


def operand(rng, column):
    """Returns the column, if it is text sometimes under another collation."""
    if column.sql_type.startswith(("text", "varchar", "name", "char")) and rng.random() < 0.15:
        return "(%s COLLATE %s)" % (quote(column.name), rng.choice([LOOSE, LOOSE, '"C"', '"und-x-icu"']))
    return quote(column.name)


def value(rng, column):
    text = column.literal(rng)
    kind = rng.random()
    if kind < 0.08:
        return "NULL::" + column.sql_type.split(" collate")[0]
    return "(SELECT %s)" % text if kind < 0.2 else text


def sides(rng, left, operators, right):
    """Returns "left OP right", sometimes with the sides exchanged."""
    pair = (left, right) if rng.random() < 0.8 else (right, left)
    return "%s %s %s" % (pair[0], rng.choice(operators), pair[1])


def row_comparison(rng, columns):
    """Returns (a, b) < (x, y) and the like."""
    pairs = []
    for column in rng.sample([c for c in columns if c.name in KEYS], rng.choice([2, 2, 2, 3, 4])):
        name = operand(rng, column)
        pairs.append(rng.choice([[name, value(rng, column)]] * 20 + [[value(rng, column), name], [name, name]]))
    left, right = ("ROW(%s)" % ", ".join(side) for side in zip(*pairs))
    return sides(rng, left, OPERATORS[2:] * 3 + OPERATORS[:2] + ["IS DISTINCT FROM"], right)


def distinct(rng, columns):
    column = rng.choice(columns)
    return sides(rng, operand(rng, column), ["IS NOT DISTINCT FROM"] * 3 + ["IS DISTINCT FROM"], value(rng, column))


def of_choice(rng, columns):
    """Returns a condition on coalesce()."""
    column = rng.choice(columns)
    other = value(rng, column) if rng.random() < 0.2 else column.literal(rng)
    choice = "coalesce(%s, %s)" % (operand(rng, column), ", ".join([other] * rng.choice([1, 1, 1, 1, 2])))
    if rng.random() < 0.15:
        return "%s IN (%s, %s)" % (choice, other, column.literal(rng))
    return sides(rng, choice, ["=", "=", "=", "<>", "<", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"],
                 rng.choice([other, column.literal(rng), value(rng, column)]))


def folded(rng, columns):
    """Returns a condition on text in upper and lower case."""
    locale = rng.choice(LOCALES)
    column = rng.choice([c for c in columns if c.name in FOLDED])
    text = "(%s%s %s)" % (quote(column.name), "::text" if column.name == "nm" else "", locale)
    asked = rng.choice(TEXTS).replace("'", "''")
    kind = rng.random()
    if LOOSE in locale or kind < 0.4:
        if kind > 0.05:
            asked = asked.lower()
        operators = ["=", "=", "<>", "IS NOT DISTINCT FROM"] + ["<"] * (LOOSE not in locale)
        return sides(rng, rng.choice(["lower%s"] * 3 + ["%s"]) % text, operators, "'%s'" % asked)
    pattern = re.sub(r"[%_\\]", lambda found: rng.choice(["\\", ""]) + found.group(), asked)
    place = rng.randint(0, len(pattern))
    if "\\" not in pattern:
        pattern = pattern[:place] + rng.choice(["", "%", "_", "K", "i", "S"]) + pattern[place:]
    pattern += rng.choice(["", "%", "%"])
    if len(re.search(r"\\*$", pattern).group()) % 2 == 1:
        pattern += "\\"                 # else an error
    if kind < 0.6:
        return "lower%s %sLIKE '%s'" % (text, rng.choice(["", "NOT "]), pattern.lower())
    return "%s %sILIKE '%s'" % (text, rng.choice(["", "", "NOT "]), pattern)


OBJECTID_TEXTS = OBJECTIDS + ["65A000000000000000000001", "FFFFFFFFFFFFFFFFFFFFFFFF", "65a00000000000000000000", "65a0000000000000000000011",
                              " 65a000000000000000000001", "65a000000000000000000001 ", "", "x", "65a00000000000000000000g", "65", "g"]


def objectid_text(rng, columns):
    """Returns a comparison of the ObjectId in column o with text."""
    sql_type = rng.choice(["text", "varchar"])
    text = "'%s'::%s" % (rng.choice(OBJECTID_TEXTS), sql_type)
    text = rng.choice([text] * 6 + ["(SELECT %s)" % text, "NULL::" + sql_type])
    texts = ["'%s'" % rng.choice(OBJECTID_TEXTS) for _ in range(rng.randint(0, 4))] + ["NULL"] * (rng.random() < 0.2)
    array = "ARRAY[%s]::%s[]" % (", ".join(texts), sql_type)
    own = ["OPERATOR(public.=)", "OPERATOR(public.=)", "OPERATOR(public.<>)"]
    cast = "o::" + sql_type
    kind = rng.random()
    if kind < 0.3:
        return sides(rng, "o", own, rng.choice([text, text, "'%s'::public.objectid" % rng.choice(OBJECTIDS), "tc", "sx", "ox"]))
    if kind < 0.5:
        return "o %s %s (%s)" % (rng.choice(own), rng.choice(["ANY", "ANY", "ALL"]), array)
    if kind < 0.6:
        return "%s %s (%s)" % (cast, rng.choice(["= ANY", "<> ALL"]), array)
    if kind < 0.7:
        return "%s %s '%s'" % (cast, rng.choice(["LIKE", "NOT LIKE", 'COLLATE "C" ILIKE', 'COLLATE "tr-x-icu" ILIKE']), rng.choice(["65%", "%1", "65A%", "_5a%", "6", "%"]))
    return sides(rng, cast + rng.choice(["", ' COLLATE "C"', " COLLATE " + LOOSE]), OPERATORS + ["=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"], text)


# Match documents on _id, which always fits, and what they mean; {p} is an integer.
MATCHES = [("json_build_object('_id', {p})", "_id = {p}"), ("(SELECT json_build_object('_id', {p}))", "_id = {p}"), ("('{{\"_id\": ' || {p} || '}}')::json", "_id = {p}"),
           ("json_build_object('_id', json_build_object('$gt', {p}, '$lt', {p} - -40))", "_id > {p} AND _id < {p} - -40"),
           ("json_build_object('$or', json_build_array(json_build_object('_id', {p}), json_build_object('_id', json_build_object('$gte', 100))))", "_id = {p} OR _id >= 100"),
           ("json_build_object('_id', json_build_object('$nin', json_build_array({p}, 5, 7)))", "_id NOT IN ({p}, 5, 7)"),
           ("json_build_object('_id', json_build_object('$not', json_build_object('$lte', {p})))", "_id > {p}"),
           ("json_build_object('_id', json_build_object('$mod', json_build_array(3, 1)), '$nor', json_build_array(json_build_object('_id', {p})))", "_id % 3 = 1 AND _id <> {p}"),
           ("json_build_object('no field', json_build_object('$exists', {p} > 5))", "NOT {p} > 5"), ("'{{\"_id\": {{\"$lt\": 50}}}}'::json", "_id < 50"), ("'{{}}'::json", "true"),
           # by the collection's default collation, which ignores case
           ("'{{\"$expr\": {{\"$eq\": [{{\"$type\": \"$_id\"}}, \"INT\"]}}}}'::json", "true"), ("NULL::json", "NULL::boolean"), ("CASE WHEN {p} > 2 THEN json_build_object('_id', {p}) END", "CASE WHEN {p} > 2 THEN _id = {p} END")]


def matching(rng, columns):
    """Returns mongo_match() and what it means, for of_table()."""
    number = rng.choice([PARAMETER, "3", "28"])
    return "<match %s means %s match>" % tuple(part.format(p=number) for part in rng.choice(MATCHES))


def of_table(sql, matches):
    """Returns the query over the table remote with mongo_match(), or any query with what it means."""
    return re.sub(r"<match (.*?) means (.*?) match>", r"public.mongo_match(remote, \1)" if matches else r"(\2)", sql)


FORMS = [row_comparison, distinct, of_choice, folded]
# for columns that only the table of queries.py has
WHOLE_FORMS = FORMS + [objectid_text, matching]


def equivalent_condition(rng, columns, whole):
    condition = rng.choice(WHOLE_FORMS if whole else FORMS)(rng, columns)
    return condition if rng.random() < 0.8 else "NOT (%s)" % condition
