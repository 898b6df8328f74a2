"""Random conditions for t/random/queries.py: on columns, combined by logic."""
from dates import date_condition
from documents import JSON_KEYS, JSON_LITERALS, quote
from elements import element_condition, json_condition
from equivalents import equivalent_condition
from expressions import random_comparison
from patterns import random_regular_expression


class Leaf:
    """A condition on one column, as SQL text and as (text with $1, type, value)."""

    def __init__(self, sql):
        self.sql = sql

    def render(self):
        return self.sql

    def parts(self):
        return []


class Node:
    def __init__(self, operator, children):
        self.operator = operator
        self.children = children

    def render(self):
        rendered = ["(%s)" % child.render() for child in self.children]
        if self.operator in ("AND", "OR"):
            return (" %s " % self.operator).join(rendered)
        if self.operator == "NOT":
            return "NOT " + rendered[0]
        return "%s %s" % (rendered[0], self.operator)

    def parts(self):
        """Returns simpler conditions to try if this one causes a difference."""
        simpler = list(self.children)
        for i, child in enumerate(self.children):
            for part in child.parts():
                simpler.append(Node(self.operator, self.children[:i] + [part] + self.children[i + 1:]))
            if len(self.children) > 2:
                simpler.append(Node(self.operator, self.children[:i] + self.children[i + 1:]))
        return simpler


def json_accessor(rng, name):
    """Returns an expression on a jsonb column, and whether it returns text."""
    to_text = rng.random() < 0.5
    keys = [rng.choice(JSON_KEYS[:5]) for _ in range(rng.randint(1, 3))]
    kind = rng.random()
    if kind < 0.3:
        return "(%s %s '{%s}')" % (name, "#>>" if to_text else "#>", ",".join(keys)), to_text
    if kind < 0.4:
        return "%s%s" % (name, "".join("['%s']" % key for key in keys)), False
    steps = ["%d" % rng.choice([0, 1, -1]) if rng.random() < 0.2 else "'%s'" % key for key in keys]
    expression = name
    for i, step in enumerate(steps):
        expression += " %s %s" % ("->>" if to_text and i == len(steps) - 1 else "->", step)
    return "(%s)" % expression, to_text


def json_leaf(rng, name):
    kind = rng.random()
    if kind < 0.15:
        return Leaf("%s @> '%s'" % (name, rng.choice(JSON_LITERALS)))
    if kind < 0.25:
        return Leaf("%s ? '%s'" % (name, rng.choice(JSON_KEYS + ["5"])))
    expression, to_text = json_accessor(rng, name)
    if kind < 0.35:
        return Leaf("%s IS %sNULL" % (expression, rng.choice(["", "NOT "])))
    if to_text:
        literals = ["'%s'" % rng.choice(["a", "b", "5", "true", "", "{", "0.1", "ä", '{"b": 5}', "[]"])
                    for _ in range(3)]
        if kind < 0.6:
            return Leaf("%s %sIN (%s)" % (expression, rng.choice(["", "NOT "]), ", ".join(literals)))
        return Leaf("%s %s %s" % (expression, rng.choice(["=", "<>"]), literals[0]))
    if kind < 0.6:
        return Leaf("%s %s '%s'" % (expression, rng.choice(["@>", "<@"]), rng.choice(JSON_LITERALS)))
    return Leaf("%s %s '%s'" % (expression, rng.choice(["=", "<>", "="]), rng.choice(JSON_LITERALS)))


def array_literal(rng, column):
    items = [column.literal(rng) for _ in range(rng.choice([0, 1, 2, 3, 5]))]
    if rng.random() < 0.2:
        items.append("NULL")
    return "ARRAY[%s]::%s[]" % (", ".join(items), column.sql_type.split(" collate")[0])


def random_leaf(rng, columns):
    if rng.random() < 0.12:
        return Leaf(date_condition(rng))
    plain = [column for column in columns if column.literals]
    if len(plain) < len(columns) and rng.random() < 0.25:
        return Leaf(rng.choice([element_condition, json_condition])(rng))
    whole, columns = len(plain) < len(columns), plain
    if rng.random() < 0.15:
        return Leaf(equivalent_condition(rng, columns, whole))
    if rng.random() < 0.4:
        return Leaf(random_comparison(rng, columns))
    column = rng.choice(columns)
    name = quote(column.name)
    kind = rng.random()
    if column.sql_type == "jsonb" and kind < 0.9:
        return json_leaf(rng, name)
    operators = ["=", "<>", "<", "<=", ">", ">="]
    if column.boolean and kind < 0.4:
        return Leaf(name)
    if column.sql_type.startswith(("text", "varchar", "name", "char")) and kind < 0.1:
        operator = rng.choice(["~", "!~", "~", 'COLLATE "C" ~', 'COLLATE "C" ~*', 'COLLATE "C" !~*'])
        return Leaf("%s %s '%s'" % (name, operator, random_regular_expression(rng)))
    if column.sql_type.startswith(("text", "varchar", "name", "char")) and kind < 0.25:
        pattern = "".join(rng.choice(["%", "_", "a", "b", "A", "\\%", "\\_", "\\a", ".", "$", "ä", " ", "6", "f", "z", "0", "\n"])
                          for _ in range(rng.randint(0, 4))) + rng.choice(["", "%"])
        if rng.random() < 0.2:
            return Leaf("%s ^@ '%s'" % (name, pattern.replace("\\", "")))
        operator = rng.choice(["LIKE", "NOT LIKE", "ILIKE", "NOT ILIKE", 'COLLATE "C" ILIKE', 'COLLATE "C" NOT ILIKE'])
        if operator in ("LIKE", "NOT LIKE") and rng.random() < 0.4:
            case = rng.choice(["lower", "upper"])
            name = "%s(%s)" % (case, name)
            pattern = getattr(pattern, case)() if rng.random() < 0.8 else pattern
        return Leaf("%s %s '%s'" % (name, operator, pattern))
    if kind < 0.55:
        literal = column.wider_literal(rng)
        if rng.random() < 0.05:
            literal = "NULL::" + column.sql_type.split(" collate")[0]
        elif rng.random() < 0.2:
            # the planner sees no constant, so the command gets a parameter
            literal = "(SELECT %s)" % literal
        operator = rng.choice(operators)
        if rng.random() < 0.2:
            return Leaf("%s %s %s" % (literal, operator, name))
        return Leaf("%s %s %s" % (name, operator, literal))
    if kind < 0.65:
        return Leaf("%s IS %sNULL" % (name, rng.choice(["", "NOT "])))
    if kind < 0.75:
        return Leaf("%s BETWEEN %s AND %s" % (name, column.wider_literal(rng), column.wider_literal(rng)))
    if kind < 0.85:
        items = [column.wider_literal(rng) for _ in range(rng.randint(1, 4))]
        if rng.random() < 0.2:
            items.append("NULL")
        return Leaf("%s %sIN (%s)" % (name, rng.choice(["", "NOT "]), ", ".join(items)))
    array = array_literal(rng, column)
    if rng.random() < 0.3:
        array = "(SELECT %s)::%s[]" % (array, column.sql_type.split(" collate")[0])
    return Leaf("%s %s (%s)" % (name, rng.choice(["= ANY", "<> ALL", "<> ANY", "= ALL", "> ANY"]), array))


def random_condition(rng, columns, depth=0):
    if depth >= 3 or rng.random() < 0.4:
        return random_leaf(rng, columns)
    kind = rng.random()
    if kind < 0.75:
        return Node(rng.choice(["AND", "OR"]),
                    [random_condition(rng, columns, depth + 1) for _ in range(rng.randint(2, 3))])
    if kind < 0.9:
        return Node("NOT", [random_condition(rng, columns, depth + 1)])
    return Node(rng.choice(["IS TRUE", "IS FALSE", "IS NOT TRUE", "IS NOT FALSE", "IS UNKNOWN"]),
                [random_condition(rng, columns, depth + 1)])
