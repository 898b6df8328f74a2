"""Random conditions on elements of arrays and inside jsonb, for t/random/queries.py, and their columns."""
from bson import Decimal128, Int64, ObjectId, Regex

import dates
from execution import PARAMETER

# A column, the type of its elements, values in documents and literals of conditions.
ARRAYS = {
    "at": ("text", ["a", "b", "ab", "", "ä", "65a000000000000000000001", ObjectId("65a000000000000000000001"), "z"],
           ["'a'", "'b'", "''", "'ä'", "'65a000000000000000000001'", "'zz'", "NULL"]),
    "ai": ("integer", [0, 1, -1, 5, Int64(7), 5.0, Decimal128("7"), 2147483647],
           ["0", "1", "5", "7", "-1", "100", "2147483647", "NULL"]),
    "an": ("numeric(12,2)", [0.1, 1, Decimal128("1.005"), 2.675, Decimal128("7.10"), float("nan")],
           ["0.1", "1", "1.01", "2.68", "7.1", "'NaN'", "1e6", "NULL"]),
    "ad": ("timestamptz", [dates.EPOCH + dates.datetime.timedelta(hours=hours) for hours in (0, 5, 23, 24, 475000, 475001, 475024)],
           ["'1970-01-01 00:00+00'", "'1970-01-01 05:00+00'", "'2024-03-09 16:00+00'", "'1970-01-02'", "NULL"]),
    "af": ("double precision", [0.0, -0.0, 1.5, 1, float("nan"), float("inf"), 1e300],
           ["0", "1.5", "'NaN'", "1", "'-Infinity'", "NULL"]),
}
OPERATORS = ["=", "=", "=", "<", ">", "<=", ">=", "<>"]


def array_values(name):
    """Returns arrays, mostly of one dimension; some with NULLs, empty, or of more dimensions."""
    values = ARRAYS[name][1]

    def some(rng, count):
        return [None if rng.random() < 0.08 else rng.choice(values) for _ in range(count)]

    def generate(rng):
        kind = rng.random()
        if kind < 0.75:
            return some(rng, rng.choice([0, 1, 1, 2, 3]))
        if kind < 0.92:
            length = rng.randint(1, 3)
            return [some(rng, length) for _ in range(rng.randint(1, 2))]
        return [[some(rng, 2)] for _ in range(2)]
    return generate


def value(rng, name):
    sql_type, _, asked = ARRAYS[name]
    text = "%s::%s" % (rng.choice(asked), sql_type.split("(")[0])
    return "(SELECT %s)" % text if rng.random() < 0.2 else text


def array(rng, name):
    sql_type, _, asked = ARRAYS[name]
    count = rng.choice([0, 1, 1, 2, 2, 3])
    items = [rng.choice(asked[:-1] if rng.random() < 0.9 else asked) for _ in range(count)]
    text = "ARRAY[%s]::%s[]" % (", ".join(items), sql_type.split("(")[0])
    if count == 2 and rng.random() < 0.1:
        text = "ARRAY[[%s]]::%s[]" % (", ".join(items), sql_type.split("(")[0])
    return "(SELECT %s)::%s[]" % (text, sql_type.split("(")[0]) if rng.random() < 0.2 else text


def element_condition(rng):
    name = rng.choice(list(ARRAYS))
    column = '"%s"' % name
    operator = rng.choice(OPERATORS)
    if name == "at" and operator not in ("=", "<>"):
        column += ' COLLATE "C"'
    kind = rng.random()
    if kind < 0.35:
        condition = "%s %s %s (%s)" % (value(rng, name), operator, rng.choice(["ANY", "ANY", "ANY", "ALL"]), column)
    elif kind < 0.6:
        sides = [column, array(rng, name)]
        rng.shuffle(sides)
        condition = "%s %s %s" % (sides[0], rng.choice(["@>", "&&", "<@", "@>", "&&", "=", "<>"]), sides[1])
    elif kind < 0.85:
        sides = ["%s[%s]" % ('("%s")' % name, rng.choice(["1", "1", "2", "3", "0", "-1", "1 + 1", "NULL", "(SELECT 1)"])), value(rng, name)]
        if rng.random() < 0.2:
            sides.reverse()
        condition = "%s %s %s" % (sides[0], operator, sides[1])
        if name == "at" and operator not in ("=", "<>"):
            condition += ' COLLATE "C"'
    else:
        condition = '("%s")[%d] %s (%s)' % (name, rng.choice([1, 1, 2]), rng.choice(["= ANY", "<> ALL"]), array(rng, name))
    return condition if rng.random() < 0.85 else "NOT (%s)" % condition


# The document in column jd.  Values that are cast have a form that the cast accepts, because
# PostgreSQL's own error would hide other differences.
WHOLE = [0, 1, -1, 5, 7, Int64(2 ** 40), "5", " 7 ", "-1", "0", None, Int64(9007199254740993), "9007199254740993"]
NUMBERS = WHOLE + [0.1, -2.5, 1e300, 5e-324, 5.0, 0.1 + 0.2, "0.1", "1e2", ".5", "NaN", "-Infinity", 4.5, 100.0, 2.0 ** 60]
FLAGS = [True, False, 0, 1, "yes", "off", "t", " FALSE", None, "1"]
STRINGS = ["a", "ab", "b", "", "5", "2024-03-31", "A", "~", "true", "[", "{", "[1", "{x", "z", "A", "é", 5, 0.1, -3, 5.0, 1e20, True, False, None, ["a"], [], ["z", "a"],
           [1, {"a": 1}], {"a": 1}, {}, ObjectId("65a000000000000000000001"), Decimal128("5"), float("nan"), Regex("a"), "t", "false", "n"]
SKUS = ["a", "b", 5, 5.0, 0.1, ["a"], {"x": "a"}, None, True, Int64(9007199254740993), 2.0 ** 60, ObjectId("65a000000000000000000001"), "5"]


def list_value(rng, depth=0):
    kind = rng.random()
    if kind < 0.6:
        return {key: rng.choice(SKUS) for key in ("sku", "qty", "0") if rng.random() < 0.7}
    if kind < 0.8 or depth > 1:
        return rng.choice(SKUS)
    return [list_value(rng, depth + 1) for _ in range(rng.randint(0, 2))]


def line(rng):
    """Returns a document whose values can be cast."""
    return {key: rng.choice(values) for key, values in (("n", NUMBERS), ("w", WHOLE), ("f", FLAGS), ("sku", SKUS)) if rng.random() < 0.8}


def at_value(rng):
    """Returns a Date, which is text in JSON, or a document that looks like one."""
    value = dates.stored(rng)
    if value < dates.EPOCH:
        return None
    return rng.choice([value] * 8 + [[value], {"$date": "2024-03-31"}, "2024-01-01", 5])


# Text after a date that PostgreSQL 15 ignores; newer versions reject it.
UNMINDED = (" epoch", " infinity", "J")
refused = ()


def set_server_version(number):
    """Excludes texts that PostgreSQL of this version cannot cast."""
    global refused
    refused = UNMINDED if number >= 160000 else ()


def behind_date(rng):
    text = rng.choice([" BC", " bc", " AD", " 24:00", " 9999", " epoch", " infinity", "J"])
    return "" if text in refused else text


def day_value(rng):
    """Returns text that PostgreSQL casts to a date, mostly in ISO 8601 format."""
    value = dates.stored(rng)
    iso = value.strftime("%Y-%m-%d").rjust(10, "0")
    return rng.choice([iso, iso, iso, iso + value.strftime("T%H:%M:%S"), iso + value.strftime(" %H:%M:%S+") + rng.choice(["00", "14", "05:45"]),
                       iso + value.strftime("T%H:%M:%S-12:00"),
                       iso + behind_date(rng), " " + iso, iso.replace("-", ""),
                       iso[:8] + "0" + iso[8:],
                       value.strftime("%d %b ") + iso[:4], int(iso.replace("-", "")) if value.year > 1000 else None, "infinity", "-infinity", None])


def text_range_condition(rng):
    """Two bounds on one text."""
    left = rng.choice(["(jd ->> 'text')", "(jd #>> '{text}')", "(jd -> 'list' ->> 'sku')", "(jd ->> 'day')", "(jd ->> 'number')"]) + ' COLLATE "C"'
    bounds = ["'%s'" % rng.choice(["a", "b", "z", "t", "A", "[", "{", "5", "", "ä", "n", "2024-03-31", "~", "0", "-"]) for _ in range(2)]
    bounds = [bound if rng.random() < 0.8 else "(SELECT %s)" % bound for bound in bounds]
    if rng.random() < 0.5:
        return "%s BETWEEN %s AND %s" % (left, bounds[0], bounds[1])
    return "%s %s %s AND %s %s (%s)" % (left, rng.choice([">", ">=", "<"]), bounds[0], bounds[1], rng.choice([">", ">=", "<"]), left)


def json_list(rng):
    return [list_value(rng) for _ in range(rng.randint(0, 3))] if rng.random() < 0.95 else list_value(rng)


def json_document(rng):
    document = {"whole": rng.choice(WHOLE), "number": rng.choice(NUMBERS), "flag": rng.choice(FLAGS), "text": rng.choice(STRINGS),
                "pure": rng.choice([0, 1, -1, 4.5, 0.1, 5, 1e3, Int64(7)]), "truth": rng.random() < 0.5,
                "list": [list_value(rng) for _ in range(rng.randint(0, 3))], "at": at_value(rng), "day": day_value(rng),
                "lines": [line(rng) for _ in range(rng.randint(0, 3))], "counts": [rng.choice(NUMBERS) for _ in range(rng.randint(0, 3))],
                "ref": rng.choice([ObjectId("65a000000000000000000001"), ObjectId("65a000000000000000000002"), "65a000000000000000000001", None, {"$oid": "a"}, [ObjectId("65a000000000000000000001")]]),
                "price": rng.choice([Decimal128("0.1"), Decimal128("7.10"), Decimal128("NaN"), Decimal128("Infinity"), Decimal128("-1"),
                                     Decimal128("5"), 5, 0.1, "5", [Decimal128("5")], {"$numberDecimal": "5"}])}
    if rng.random() < 0.15:
        document["list"] = rng.choice([list_value(rng), rng.choice(STRINGS)])
    for key in rng.sample(list(document), rng.choice([0, 0, 1, 2])):
        del document[key]
    return rng.choice([document] * 12 + [[document], [document, 5], "text"])


CASTS = [("whole", "int8"), ("whole", "numeric"), ("number", "float8"), ("number", "numeric"), ("number", "numeric(300,1)"), ("number", "float8")]
JSONB_CASTS = ["int4", "int8", "float8", "numeric", "float4", "int2", "numeric(8,1)"]
CONTAINED = ['[{"sku": "a"}]', '[{"sku": 5, "qty": "a"}]', '[{"sku": 0.1}, "b"]', '["a"]', '[5]', '[[5]]', '[{"sku": ["a"]}]', '[{"sku": {"x": "a"}}]',
             '[{}]', '[]', '"a"', '5', '[{"0": "a"}]', '[9007199254740993]', '[{"qty": 9007199254740993}]', '[{"sku": 1152921504606846976}]',
             '[[{"sku": "a"}]]', '[null]', '[{"sku": null}]', '{"sku": "a"}', '[{"sku": 1152921504606847000}]', '[{"x y": 1, "sku": "b"}]']


def cast_condition(rng):
    if rng.random() < 0.3:
        left, sql_type = "(jd -> 'pure')", rng.choice(JSONB_CASTS)
    else:
        key, sql_type = rng.choice(CASTS)
        left = rng.choice(["(jd ->> '%s')", "(jd #>> '{%s}')"]) % key
    left += "::" + sql_type
    values = ["0", "1", "5", "-1", "7", "9007199254740993"] + (["0.1", "-2.5", "4.5", "1e300", "'NaN'", "0.3"] if "int" not in sql_type else ["4"])
    if sql_type in ("int2", "int4"):
        values = ["0", "1", "5", "-1", "4"]
    values = ["%s::%s" % (value, sql_type.split("(")[0]) for value in rng.sample(values, 3)]
    if rng.random() < 0.2:
        return "%s IN (%s)" % (left, ", ".join(values))
    if rng.random() < 0.2:
        return "%s BETWEEN %s AND %s" % (left, values[0], values[1])
    sides = [left, values[0] if rng.random() < 0.8 else "(SELECT %s)" % values[0]]
    if rng.random() < 0.2:
        sides.reverse()
    return "%s %s %s" % (sides[0], rng.choice(OPERATORS), sides[1])


def text_condition(rng):
    left = rng.choice(["(jd ->> 'text')", "(jd #>> '{text}')", "(jd -> 'list' ->> 'sku')", "(jd #>> '{list,0,sku}')",
                       "jsonb_extract_path_text(jd, 'list', '0', 'sku')", "(jsonb_object_field(jd, 'list') ->> 'sku')"])
    kind = rng.random()
    texts = ["a", "5", "true", "[", "{", "b", "", "t", "0.1", "5.0", "100000000000000000000", '["a"]', "-3", "A", "z"]
    if kind < 0.3:
        return "%s %sIN ('%s')" % (left, rng.choice(["", "", "NOT "]), "', '".join(rng.sample(texts, 3)))
    if kind < 0.6:
        return "%s COLLATE \"C\" %s '%s'" % (left, rng.choice(OPERATORS), rng.choice(texts))
    pattern = rng.choice(["a%", "%a%", "5%", "_", "[%", "{%", "%", "", "t%", "tr_e", "-%", "%1%", "%\"%", "A%", "b"])
    return "%s %s '%s'" % (left, rng.choice(["LIKE", "LIKE", "NOT LIKE", 'COLLATE "C" ILIKE', "~", "^@"]), pattern.replace("{", "\\{").replace("[", "\\["))


def contained_condition(rng):
    value = rng.choice(CONTAINED)
    left = rng.choice(["(jd -> 'list')", "(jd #> '{list}')", "jd['list']"])
    if rng.random() < 0.3:
        left, value = "jd", '{"list": %s}' % value
    right = "'%s'::jsonb" % value
    if rng.random() < 0.2:
        right = "(SELECT %s)" % right
    if rng.random() < 0.1:
        return "%s <@ %s" % (right, left)
    return "%s @> %s" % (left, right)


def key_condition(rng):
    left = rng.choice(["(jd -> 'list')", "jd", "(jd -> 'text')"])
    if rng.random() < 0.5:
        return "%s ? '%s'" % (left, rng.choice(["a", "sku", "0", "list", "text", "", "5"]))
    keys = ", ".join(rng.sample(["'a'", "'list'", "'b'", "'whole'", "'5'", "'$x'", "NULL"], rng.randint(0, 3)))
    right = "ARRAY[%s]::text[]" % keys
    return "%s %s %s" % (left, rng.choice(["?|", "?&"]), right if rng.random() < 0.7 else "(SELECT %s)" % right)


# Paths to documents, arrays and scalars, for either mode.
PATHS = ["$.list", "$.list[*]", "$.list.sku", "$.list[*].sku", "$.list[*].qty", "$.list[0].sku", "$.list[*][*]", "$.list[*][*].sku", "$.text",
         "$.text[*]", "$.whole", "$.number", "$.flag", "$.pure", "$[*].whole", "$", "$[*]", "$.text.a", "$.list.sku.x", '$.list[*]."0"', "$.*",
         "$.list.*", "$.text.size()", "$.list[last]", "$.**.sku", "$.none", "$.number.double()", "$.whole.abs()"]
PATH_LITERALS = ["5", "0", "-1", "0.1", "7", '"a"', '"b"', '"5"', '""', "true", "false", "null", "9007199254740993", "1e300", '"z"', "4.5",
                 "1152921504606846976", '"ä"']
PATH_OPERATORS = ["==", "==", "==", "!=", "<", "<=", ">", ">=", "<>"]


def path_predicate(rng, current, depth=0):
    """Returns a predicate of a filter, in which @ is current, or of a whole path (current None)."""
    kind = rng.random()
    if depth < 2 and kind < 0.25:
        return "(%s %s %s)" % (path_predicate(rng, current, depth + 1), rng.choice(["&&", "&&", "||"]), path_predicate(rng, current, depth + 1))
    if depth < 2 and kind < 0.3:
        return "!(%s)" % path_predicate(rng, current, depth + 1)
    if depth < 2 and kind < 0.33:
        return "((%s) is unknown)" % path_predicate(rng, current, depth + 1)
    if current is None or rng.random() < 0.05:
        path = rng.choice(PATHS)
    else:
        path = "@" + rng.choice(["", "", "", ".sku", ".sku", ".qty", "[*]", "[*].sku", ".x", ".a", ".size()"])
    if kind < 0.4:
        return "exists(%s)" % (path if depth > 1 else filtered_path(rng, path, depth + 1))
    if kind < 0.46:
        return '%s starts with "%s"' % (path, rng.choice(["a", "", "[", "z", "5"]))
    if kind < 0.5:
        return '%s like_regex "%s"' % (path, rng.choice(["^a", "z", "."]))
    sides = [path, rng.choice(PATH_LITERALS) if rng.random() < 0.93 else rng.choice(PATHS)]
    if rng.random() < 0.2:
        sides.reverse()
    return "%s %s %s" % (sides[0], rng.choice(PATH_OPERATORS), sides[1])


def filtered_path(rng, path, depth=0):
    for _ in range(rng.choice([0, 0, 1, 1, 1, 2])):
        path += " ? (%s)" % path_predicate(rng, path, depth)
        if rng.random() < 0.15:
            path += rng.choice([".sku", "[*]", ".x"])
    return path


def path_condition(rng):
    left, operator = rng.choice(["jd", "jd", "jd", "(jd -> 'list')", "(jd -> 'text')"]), rng.choice(["@?", "@@"])
    if rng.random() < (0.15 if operator == "@?" else 0.75):
        path = path_predicate(rng, None)
    else:
        path = filtered_path(rng, rng.choice(PATHS))
    if left != "jd":
        path = path.replace("$.list", "$").replace("$.text", "$")
    value = "'%s%s'::jsonpath" % (rng.choice(["", "", "", "lax ", "strict "]), path)
    return "%s %s %s" % (left, operator, value if rng.random() < 0.8 else "(SELECT %s)" % value)


def wrapped_condition(rng):
    """Returns a condition on the text within {"$date": ...} and the like."""
    key, wrapper = rng.choice([("at", "$date"), ("at", "$date"), ("ref", "$oid"), ("price", "$numberDecimal")])
    left = rng.choice(["(jd -> '%s' ->> '%s')", "(jd #>> '{%s,%s}')"]) % (key, wrapper)
    if wrapper == "$date" and rng.random() < 0.85:
        sql_type = rng.choice(["timestamptz", "timestamptz", "timestamp", "date"])
        left += "::" + sql_type
        values = [dates.literal(rng, sql_type if rng.random() < 0.6 else rng.choice(["timestamptz", "timestamp", "date"])) for _ in range(2)]
    elif wrapper == "$numberDecimal" and rng.random() < 0.85:
        sql_type = rng.choice(["numeric", "numeric", "float8"])
        left += "::" + sql_type
        values = ["'%s'::%s" % (rng.choice(["0.1", "5", "7.10", "NaN", "Infinity", "-1", "1e6"]), sql_type) for _ in range(2)]
    else:
        values = ["'%s'" % rng.choice(["65a000000000000000000001", "65A000000000000000000001", "a", "", "5", "2024-03-31T01:00:00Z"]) for _ in range(2)]
        if rng.random() < 0.2:
            return "%s %sLIKE '%s'" % (left, rng.choice(["", "NOT "]), rng.choice(["%1", "65a%", "%", "2024%"]))
        left += ' COLLATE "C"'
    kind = rng.random()
    if kind < 0.2:
        return "%s BETWEEN %s AND %s" % (left, values[0], values[1])
    if kind < 0.35 and "(SELECT" not in "".join(values):
        return "%s IN (%s)" % (left, ", ".join(values))
    sides = [left, values[0]]
    if rng.random() < 0.2:
        sides.reverse()
    return "%s %s %s" % (sides[0], rng.choice(OPERATORS), sides[1])


def written_date_condition(rng):
    """Returns a condition on dates that are Strings."""
    sql_type = rng.choice(["timestamptz", "timestamptz", "timestamp", "date"])
    left = rng.choice(["(jd ->> 'day')", "(jd #>> '{day}')"]) + "::" + sql_type
    kind = rng.random()
    if kind < 0.3:
        other_type = rng.choice(["date", sql_type])
        return "%s BETWEEN %s AND %s" % (left, dates.literal(rng, other_type), dates.literal(rng, sql_type))
    if kind < 0.4:
        return "%s IN (%s, %s)" % (left, dates.literal(rng, sql_type), dates.literal(rng, sql_type))
    return "%s %s %s" % (left, rng.choice(OPERATORS), dates.literal(rng, rng.choice(["date", "timestamp", "timestamptz"])))


def flag_condition(rng):
    left = rng.choice(["(jd ->> 'flag')::boolean", "(jd -> 'truth')::boolean", "(jd #>> '{flag}')::boolean"])
    return rng.choice(["%s", "NOT %s", "%s = true", "%s IS TRUE", "%s IS NOT TRUE", "%s <> true", "%s IS FALSE", "%s = (SELECT false)"]) % left


# Conditions on e, an element of jsonb or json; for jsonb only; on its text; and of a line.
TEXTS_ASKED = ["'a'", "'b'", "'5'", "'true'", "''", "'z'", "'0.1'", "'{'", "'[1]'", "NULL", "(SELECT 'a')", "(SELECT '5')"]
JSON_ELEMENT = ["(e ->> 'sku') {o} {t}", "(e ->> 'sku') {o} {t}", "(e ->> 'qty') {o} {t}", "(e ->> 'sku') IN ({t}, {t}, {t})", "(e ->> 'sku') LIKE 'a%'", "(e ->> '0') = {t}",
                "(e ->> 'sku') COLLATE \"C\" {r} {t}", "(e ->> 'sku') COLLATE \"C\" BETWEEN '0' AND {t}", "(e ->> 'sku') IS NULL", "(e ->> 'sku') IS NOT NULL", "(e -> 'sku' ->> 'x') = {t}",
                "(e #>> '{{}}') {o} {t}", "(e #>> '{{0,sku}}') = {t}", "(e #>> '{{sku,0}}') = {t}", "(e #>> '{{0}}') = {t}", "coalesce(e ->> 'sku', 'a') = {t}", "(e ->> 'sku') IS NOT DISTINCT FROM {t}",
                "(e ->> 'sku') = (jd ->> 'text')", "((e ->> 'sku') = {t} OR (jd ->> 'text') = {t} OR (jd ->> 'sku') = {t})", "(e ->> 'sku') = ({p})::text", "(e -> 'sku' ->> '$oid') = '65a000000000000000000001'", "(e ->> 'sku') ILIKE 'A'", "(e #>> '{{}}') COLLATE \"C\" {r} {t}",
                "(e ->> 'sku') = ANY (ARRAY[{t}, {t}])", "(e ->> 'sku') <> ALL (ARRAY[{t}, {t}])", "length(e ->> 'sku') = 1"]
JSONB_ELEMENT = JSON_ELEMENT + ["e {o} '{j}'", "(e -> 'sku') {o} '{j}'", "e @> '{c}'", "e @> '{c}'", "e @> (SELECT '{c}'::jsonb)", "e ? 'sku'", "(e -> 'sku') @> '{c}'", "(e -> 'sku') ? 'x'",
                                "e @? '$.sku ? (@ == \"a\")'", "e['sku'] = '{j}'", "e['sku']['x'] = '\"a\"'", "jsonb_extract_path_text(e, 'sku', 'x') = {t}"]
TEXT_ELEMENT = ["e {o} {t}", "e {o} {t}", "e = ({p})::text", "e IN ({t}, {t})", "e LIKE 'a%'", "e COLLATE \"C\" {r} {t}", "e IS NULL", "coalesce(e, 'a') = {t}", "e = ANY (ARRAY[{t}, {t}])", "lower(e) = 'a'", "e <> ALL (ARRAY[{t}])"]
LINE = ["(e ->> 'n')::float8 {r} {n}::float8", "(e ->> 'n')::numeric {o} {n}", "(e ->> 'w')::int8 {r} {w}", "(e ->> 'w')::int8 IN ({w}, {w})", "(e ->> 'w')::int8 {r} {p}", "(e ->> 'w')::int8 = {p}", "(e ->> 'f')::boolean", "NOT (e ->> 'f')::boolean", "(e ->> 'sku') = {t}",
        "(e ->> 'n')::numeric BETWEEN {n} AND {n}", "(e ->> 'f')::boolean IS NOT TRUE", "coalesce((e ->> 'w')::int8, 5) = {w}"]
COUNT = ["{e}::float8 {r} {n}::float8", "{e}::numeric {o} {n}", "{e}::numeric BETWEEN {n} AND {n}", "{e}::float8 IN ({n}, {n})", "{e}::numeric {o} {p}", "{e} = '5'"]
ELEMENTS_ASKED = ['"a"', "5", "null", "true", "{}", '{"sku": "a"}', '{"sku": 5, "qty": "a"}', "[]", '["a"]', "[[5]]", '{"x": "a"}', '{"sku": {"x": "a"}}', "9007199254740993", '[{"sku": "a"}]', '{"0": "a"}']


def element_clause(rng, forms):
    """Returns some of these conditions, combined."""
    parts = []
    for _ in range(rng.choice([1, 1, 2, 2, 3])):
        part = rng.choice(forms).format(o=rng.choice(OPERATORS), r=rng.choice(["<", "<=", ">", ">="]), t=rng.choice(TEXTS_ASKED), j=rng.choice(ELEMENTS_ASKED),
                                        c=rng.choice(ELEMENTS_ASKED), n=rng.choice(["0", "0.1", "5", "-2.5", "1e300", "4.5"]), w=rng.choice(["0", "1", "5", "7", "-1", "9007199254740993"]), p=PARAMETER)
        parts.append(part if rng.random() < 0.9 else "NOT (%s)" % part)
    return rng.choice([" AND ", " AND ", " AND ", " OR "]).join(parts)


def exists_condition(rng, columns=None):
    """Returns EXISTS over the elements of an array."""
    kind = rng.random()
    where = "jsonb_typeof(%s) = 'array' AND "
    if kind < 0.3:
        name = rng.choice(list(ARRAYS))
        where, function, array = "", "unnest", '"%s"' % name
        forms = ["e %s %s" % (rng.choice(OPERATORS if name != "at" else ["=", "<>"]), value(rng, name)), "e IN (%s, %s)" % (value(rng, name), value(rng, name)), "e IS NULL",
                 "e = ANY (ARRAY[%s]::%s[])" % (value(rng, name), ARRAYS[name][0].split("(")[0]), "e = (%s)::text::%s" % (PARAMETER, ARRAYS[name][0])]
        if name == "ad":
            forms = forms[:-1] + ["e::date = '%s'" % rng.choice(["1970-01-01", "1970-01-02", "2024-03-09"]), "date_trunc('year', e) > '2000-01-01'"]
        clause = element_clause(rng, [form.replace("{", "{{").replace("}", "}}") for form in forms])
    elif kind < 0.45:
        array, where = "js", "json_typeof(%s) = 'array' AND "
        function = rng.choice(["json_array_elements", "json_array_elements_text"])
        clause = element_clause(rng, TEXT_ELEMENT if function.endswith("text") else JSON_ELEMENT)
    elif kind < 0.55:
        array = "(jd -> 'counts')"
        function, element = rng.choice([("jsonb_array_elements_text", "e"), ("jsonb_array_elements", "(e #>> '{{}}')")])
        clause = element_clause(rng, [form.replace("{e}", element) for form in COUNT])
    elif kind < 0.65:
        array, function = rng.choice(["(jd -> 'lines')", "(jd #> '{lines}')"]), "jsonb_array_elements"
        clause = element_clause(rng, LINE)
    else:
        array = rng.choice(["(jd -> 'list')", "(jd #> '{list}')", "jd['list']", "(jd -> 'text')", "(jd #> '{list,0}')"])
        function = rng.choice(["jsonb_array_elements", "jsonb_array_elements", "jsonb_array_elements_text"])
        clause = element_clause(rng, TEXT_ELEMENT if function.endswith("text") else JSONB_ELEMENT)
    if where:
        where %= array
    return "(%sEXISTS (SELECT %s FROM %s(%s) AS e WHERE %s%s))" % (where, rng.choice(["1", "*", "e", ""]), function, array, clause, rng.choice(["", "", "", " LIMIT 1"]))


def json_condition(rng):
    condition = rng.choice([exists_condition, exists_condition, exists_condition, cast_condition, cast_condition, text_condition, contained_condition, contained_condition, key_condition, flag_condition,
                            text_range_condition, path_condition, path_condition, wrapped_condition, written_date_condition])(rng)
    return condition if rng.random() < 0.85 else "NOT (%s)" % condition
