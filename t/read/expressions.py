"""Every row of the tables of expressions against PostgreSQL's own answers.

    expressions.py --dsn ... --mongo ... [name ...]

A collection holds edge values of every type, in every BSON type that a column
reads, in pairs.  For each expression of t/lib/expression_cases.py, what documents a
condition on its value finds must be what an ordinary table with the same content
says, the condition must have left nothing for PostgreSQL to check, and each row
of the tables of src/translate must have a case.

Prints a line "ok - ..." or "not ok - ..." a test, and "done" at the end.
"""
import os
import re
import sys

import psycopg2
from bson.raw_bson import RawBSONDocument

import bson_values
from both_servers import BothServers
from expression_cases import CASES, COLUMNS, LOCAL_TIMES, LOCAL_CASES
import test_arguments

DOCUMENTS = 420

# Above what PostgreSQL need not check; elsewhere a superset may do.
LIMIT = " LIMIT 1000"

# Of the many values of an expression, so many are looked for.
VALUES = 10

# What older releases of PostgreSQL answer otherwise: where they do not say this, these rows are
# left out.
NEWER = {"right(ta, i4b)": ("right('a', -2147483648) = ''", "i4b = -2147483648")}

FUNCTIONS = """
CREATE FUNCTION evaluate(expression text, OUT id integer, OUT value text, OUT failed text)
RETURNS SETOF record LANGUAGE plpgsql AS $$
BEGIN
    FOR id IN SELECT _id FROM local ORDER BY _id LOOP
        value := NULL;
        failed := NULL;
        BEGIN
            EXECUTE format('SELECT (%s)::text FROM local WHERE _id = $1', expression) INTO value USING id;
        EXCEPTION WHEN OTHERS THEN
            failed := SQLSTATE;
        END;
        RETURN NEXT;
    END LOOP;
END $$
"""


def functions_of_rows(file, table):
    """The functions that the rows of a table of src/translate are for, without F_."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "src", "translate", file)
    with open(path, encoding="utf-8") as source:
        tables = re.findall(r"%s\[\] =\n\{\n(.*?)^\};" % table, source.read(), re.S | re.M)
    return set(re.findall(r"\bF_(\w+)[,}]", "".join(tables)))


class Expressions(BothServers):
    def __init__(self, options):
        super().__init__(options)
        self.wanted = options.names
        self.failures = 0

    def set_up(self):
        collection = self.client["mongo_fdw_expressions"]["edge"]
        collection.drop()
        documents = []
        for number in range(DOCUMENTS):
            elements = [("_id", bson_values.int32(number))]
            for name, _, values in COLUMNS:
                count = len(values)
                index = number // count if name.endswith("b") else number
                value = values[index % count]
                if value is not None:
                    elements.append((name, value))
            documents.append(RawBSONDocument(bson_values.document(elements)))
        collection.insert_many(documents)

        host, port = self.client.address
        self.execute("DROP SCHEMA IF EXISTS expressions CASCADE; CREATE SCHEMA expressions;"
                     "SET search_path = expressions, public; SET timezone = 'Europe/Berlin';"
                     "CREATE EXTENSION IF NOT EXISTS mongo_fdw SCHEMA public;"
                     "DROP SERVER IF EXISTS expressions CASCADE;"
                     "CREATE SERVER expressions FOREIGN DATA WRAPPER mongo_fdw"
                     " OPTIONS (address '%s', port '%d', fdw_startup_cost '0');"
                     "CREATE USER MAPPING FOR PUBLIC SERVER expressions;" % (host, port))
        self.execute("CREATE FOREIGN TABLE remote (_id integer, %s) SERVER expressions"
                     " OPTIONS (database 'mongo_fdw_expressions', collection 'edge')"
                     % ", ".join("%s %s" % (name, sql_type) for name, sql_type, _ in COLUMNS))
        self.execute("SET mongo_fdw.enable_pushdown = off; CREATE TABLE local AS SELECT * FROM remote;"
                     "SET mongo_fdw.enable_pushdown = on")
        self.execute(FUNCTIONS)
        # make work here expensive, so that what can be pushed is
        self.execute("SET cpu_tuple_cost = 10; SET cpu_operator_cost = 10")

    def report(self, good, name, *details):
        print(("ok - " if good else "not ok - ") + name)
        for detail in details if not good else ():
            print("#   %s" % detail)
        sys.stdout.flush()
        self.failures += not good

    def find(self, condition, above=""):
        """The documents where the condition holds, or the error."""
        try:
            return sorted(row[0] for row in self.execute("SELECT _id FROM remote WHERE " + condition + above))
        except psycopg2.OperationalError:
            raise
        except psycopg2.Error as error:
            return "%s %s" % (error.pgcode, error.diag.message_primary)

    def pushed(self, condition):
        plan = self.execute("EXPLAIN (COSTS OFF) SELECT _id FROM remote WHERE " + condition + LIMIT)
        return not any("Filter:" in row[0] for row in plan)

    def conditions(self, expression, answers, sql_type):
        """Conditions on the value, each with the documents that it must find."""
        values = {}
        for identifier, value, failed in answers:
            if failed is None:
                values.setdefault(value, []).append(identifier)
        for value in list(values)[:VALUES] + ([None] if None in values else []):
            if value is None:
                yield "(%s) IS NULL" % expression, values[value]
            elif sql_type == "boolean":
                yield ("" if value == "true" else "NOT ") + "(%s)" % expression, values[value]
            else:
                literal = "'%s'::%s" % (value.replace("'", "''"), sql_type)
                same = [i for v, ids in values.items() if v is not None
                        and self.is_same(v, value, sql_type) for i in ids]
                yield "(%s) = %s" % (expression, literal), sorted(same)
        if sql_type == "boolean":
            yield "(%s) IS NOT TRUE" % expression, sorted(
                i for v, ids in values.items() if v != "true" for i in ids)

    def is_same(self, left, right, sql_type):
        if left == right or sql_type in ("text", "boolean"):
            return left == right
        return self.execute("SELECT %s::" + sql_type + " = %s::" + sql_type, left, right)[0][0]

    def test(self, expression):
        self.cursor.execute("SELECT " + expression + " FROM local WHERE false")
        sql_type = self.execute("SELECT format_type(%s, NULL)", self.cursor.description[0].type_code)[0][0]
        answers = self.execute("SELECT * FROM evaluate(%s)", expression)
        says, rows = NEWER.get(expression, ("true", "false"))
        if not self.execute("SELECT " + says)[0][0]:
            other = {row[0] for row in self.execute("SELECT _id FROM local WHERE " + rows)}
            answers = [(a[0], None, "another release") if a[0] in other else a for a in answers]
        failing = [a[0] for a in answers if a[2] is not None]
        count = 0
        for condition, expected in self.conditions(expression, answers, sql_type):
            count += 1
            if not self.pushed(condition):
                return self.report(False, expression, "not pushed: " + condition)
            if failing:
                condition = "_id <> ALL ('{%s}') AND %s" % (",".join(map(str, failing)), condition)
            found = self.find(condition, LIMIT)
            if found != expected:
                return self.explain(expression, condition, found, expected)
        self.report(count > 1, expression, "has no value")
        self.test_value(expression, sql_type, answers, failing)

    def test_value(self, expression, sql_type, answers, failing):
        """The value itself, digits and all: as an aggregate over one document."""
        if sql_type.endswith("[]"):
            return
        value = "(%s) COLLATE \"C\"" % expression if sql_type == "text" else expression
        query = ("SELECT _id, %s(%s)::text FROM remote WHERE _id <> ALL ('{%s}') GROUP BY _id"
                 % ("bool_and" if sql_type == "boolean" else "max", value, ",".join(map(str, failing))))
        name = "value of " + expression
        plan = "\n".join(row[0] for row in self.execute("EXPLAIN (VERBOSE, COSTS OFF) " + query))
        if "Aggregate on" not in plan:
            return self.report(False, name, "not pushed")
        expected = {a[0]: a[1] for a in answers if a[2] is None}
        try:
            found = dict(self.execute(query))
        except psycopg2.OperationalError:
            raise
        except psycopg2.Error as error:
            return self.report(False, name, "%s %s" % (error.pgcode, error.diag.message_primary))
        wrong = [(i, found.get(i), value) for i, value in expected.items() if found.get(i) != value]
        self.report(not wrong, name, "of document, found, expected: %s" % wrong[:5], plan[:1500])

    def test_local_time(self, condition):
        """Is there a predicate for an index, and are the rows those of the local table?"""
        plan = self.execute("EXPLAIN (VERBOSE, COSTS OFF) SELECT _id FROM remote WHERE " + condition)
        commands = [row[0] for row in plan if "Remote Command" in row[0]]
        filters = re.sub(r'"\$expr" : .*', "", commands[0])
        expected = sorted(row[0] for row in self.execute("SELECT _id FROM local WHERE " + condition))
        found = self.find(condition)
        predicates = re.findall(r'"(?:sa|da|za)" : ', filters.partition('"projection"')[0])
        self.report(len(predicates) > condition.count(" AND ") and found == expected, "superset of " + condition, filters, found, expected)

    def explain(self, expression, condition, found, expected):
        details = ["for " + condition[-200:], "found %s" % str(found)[:300], "not %s" % str(expected)[:300]]
        if isinstance(found, list):
            wrong = sorted(set(found) ^ set(expected))
            columns = [name for name, _, _ in COLUMNS if re.search(r"\b%s\b" % name, expression)]
            details.append("such as %s" % self.execute(
                "SELECT %s, %s FROM local WHERE _id = %%s" % (", ".join(columns), expression), wrong[0]))
        plan = self.execute("EXPLAIN (VERBOSE, COSTS OFF) SELECT _id FROM remote WHERE " + condition)
        details += [row[0].strip() for row in plan if "command" in row[0].lower()]
        self.report(False, expression, *details)

    def run(self):
        self.set_up()
        for name, expressions in CASES.items():
            if self.wanted and name not in self.wanted:
                continue
            for expression in expressions:
                self.test(expression)
        for expression in LOCAL_CASES if not self.wanted else ():
            self.report(not self.pushed("(%s) IS NULL" % expression), "not pushed: " + expression)
        for conditions in LOCAL_TIMES.values() if not self.wanted else ():
            for condition in conditions:
                self.test_local_time(condition)
        expressions = set().union(*(functions_of_rows(file, r"MongoExpressionRow \w+") for file in (
            "expression_functions.c", "expression_compare.c", "pattern.c")))
        local_times = functions_of_rows("local_time.c", "rows")
        for kind, rows, least, cases in (("expressions", expressions, 180, CASES), ("local times", local_times, 12, LOCAL_TIMES)):
            self.report(len(rows) >= least and not rows - set(cases), "each row of the %s has a case" % kind,
                        "but %s" % sorted(rows - set(cases), key=str))


def main():
    parser = test_arguments.parser(__doc__)
    parser.add_argument("names", nargs="*", help="of rows or groups of cases")
    tests = Expressions(parser.parse_args())
    tests.run()
    print("done")
    sys.exit(1 if tests.failures else 0)


if __name__ == "__main__":
    main()
