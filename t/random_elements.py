"""Random conditions on elements of arrays, for t/differential.py, and the columns that they are on."""
from bson import Decimal128, Int64, ObjectId

# A column, the type of its elements, what documents have and what is asked for.
ARRAYS = {
    "at": ("text", ["a", "b", "ab", "", "ä", "65a000000000000000000001", ObjectId("65a000000000000000000001"), "z"],
           ["'a'", "'b'", "''", "'ä'", "'65a000000000000000000001'", "'zz'", "NULL"]),
    "ai": ("integer", [0, 1, -1, 5, Int64(7), 5.0, Decimal128("7"), 2147483647],
           ["0", "1", "5", "7", "-1", "100", "2147483647", "NULL"]),
    "an": ("numeric(12,2)", [0.1, 1, Decimal128("1.005"), 2.675, Decimal128("7.10"), float("nan")],
           ["0.1", "1", "1.01", "2.68", "7.1", "'NaN'", "1e6", "NULL"]),
    "af": ("double precision", [0.0, -0.0, 1.5, 1, float("nan"), float("inf"), 1e300],
           ["0", "1.5", "'NaN'", "1", "'-Infinity'", "NULL"]),
}
OPERATORS = ["=", "=", "=", "<", ">", "<=", ">=", "<>"]


def array_values(name):
    """Of one dimension, mostly; with NULLs, empty, and of more dimensions."""
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
