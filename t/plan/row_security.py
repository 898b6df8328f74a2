"""Nothing that a policy hides is told by a condition, whatever its kind.

    row_security.py --dsn ... --mongo ... [--share N] [name ...]

There are two worlds of the same tables.  In one, a collection holds the few
documents that a user may see, and some hundred that a policy or a view with
security_barrier hides: edge values of every type, among them those that
conversions, divisions and the like fail on, and values that fit no column.  In
the other, only those that may be seen.  Whatever the user does must look the same
in both: the rows, and each line of an error message.

What is done: each expression of t/lib/expression_cases.py in conditions of queries,
joins, aggregates, UPDATE and DELETE, over policies and views of several kinds,
of which MongoDB can test some exactly, some not quite and others not at all.
With --share 1 each expression meets each of them; otherwise one in N, in turn.

Prints a line "ok - ..." or "not ok - ..." a test, and "done" at the end.
"""
import sys

import psycopg2
from bson.raw_bson import RawBSONDocument

import bson_values
from bson_values import array, decimal, doc, double, int32, oid, string
from both_servers import BothServers
from expression_cases import CASES, COLUMNS
import test_arguments

WORLDS = ("all", "own")
HIDDEN = 120

# The table's columns, beside those of the expressions.
EXTRA = [("_id", "integer"), ("tenant", "integer"), ("owner", "text"), ("share", "numeric"),
         ("mark", "integer"), ("secret", "text")]

# What a condition of the policy is, by how MongoDB can test it.
POLICIES = {
    "equality": "tenant = 1",
    "parameter": "owner = current_user",
    "inequality": "tenant <> 2 AND tenant > 0",
    "expression": "tenant % 5 = 1",
    "superset": "share < 100.5",
    "sub-select": "EXISTS (SELECT FROM members m WHERE m.tenant = docs.tenant AND m.name = current_user)",
    "function": "may_see(tenant)",
}
VIEWS = {"view": "tenant = 1", "view by function": "may_see(tenant)"}

VISIBLE = {
    "i2": int32(3), "i4": int32(3), "i8": int32(3), "f": double(2.0), "n": decimal("2.5"), "m": decimal("1.10"),
    "t": string("7"), "nm": string("abc"), "b": bson_values.boolean(True), "o": oid("65a000000000000000000001"),
    "il": array(int32(1), int32(2), int32(3)), "tl": array(string("a"), string("b")), "ml": array(decimal("1.10")),
}
DATE = bson_values.date(1700000000123)

# Hidden documents whose every column has one of these.

UNFIT = [string("top secret"), array(string("top"), string("secret")), doc(("top", string("secret"))), double(1e308),
         double(float("nan")), oid("f" * 24), bson_values.date(-(1 << 62)), bson_values.min_key]


def visible_documents():
    for number in (1, 2, 3):
        yield [("_id", int32(number)), ("tenant", int32(1)), ("owner", string("row_reader")), ("share", decimal("50.5")),
               ("secret", string("%d" % number))] + [(name, VISIBLE.get(name[:-1], DATE)) for name, _, _ in COLUMNS]


def hidden_documents():
    """Edge values in pairs, as t/read/expressions.py has them, then values that do not fit."""
    for number in range(HIDDEN):
        elements = [("_id", int32(1000 + number)), ("tenant", int32(2)), ("owner", string("somebody")),
                    ("share", decimal("200.5")), ("secret", string("top secret of somebody"))]
        for name, _, values in COLUMNS:
            count = len(values)
            value = values[(number // count if name.endswith("b") else number) % count]
            if value is not None:
                elements.append((name, value))
        yield elements
    for number, value in enumerate(UNFIT):
        yield [("_id", int32(2000 + number)), ("tenant", int32(2)), ("owner", string("somebody")), ("share", decimal("200.5")),
               ("secret", value)] + [(name, value) for name, _, _ in COLUMNS]
    # nothing can be said of these by a policy
    for number, value in enumerate(UNFIT):
        yield [("_id", int32(3000 + number)), ("tenant", value), ("owner", array(string("row_reader"), string("top secret"))),
               ("share", string("top secret")), ("secret", string("top secret"))]


# What is done with a condition over the table docs; friends is open to all.
STATEMENTS = {
    "rows": "SELECT _id, i4a, secret FROM docs WHERE {0}",
    "count": "SELECT count(*), sum(i4a) FROM docs WHERE {0}",
    "groups": "SELECT tenant, count(*) FROM docs WHERE {0} GROUP BY tenant HAVING count(*) > 0",
    "order": "SELECT _id FROM docs WHERE {0} ORDER BY i4a, _id LIMIT 2",
    "having": "SELECT i4a FROM docs GROUP BY i4a HAVING bool_or({0})",
    "join": "SELECT fk, i4a FROM friends JOIN docs ON _id = fk AND ({0} OR fx < 0)",
    "left join": "SELECT fk, i4a FROM friends LEFT JOIN docs ON _id = fk AND ({0} OR fx < 0)",
    "after left join": "SELECT fk, i4a FROM friends LEFT JOIN docs ON _id = fk WHERE ({0}) IS NOT FALSE OR fx < 0",
    "outer join": "SELECT _id, fx FROM docs LEFT JOIN friends ON _id = fk AND ({0} OR fx < 0)",
    "exists": "SELECT fk FROM friends WHERE EXISTS (SELECT FROM docs WHERE _id = fk AND ({0} OR fx < 0))",
    "not exists": "SELECT fk FROM friends WHERE NOT EXISTS (SELECT FROM docs WHERE _id = fk AND ({0} OR fx < 0))",
    "update": "UPDATE docs SET mark = 1 WHERE {0}",
    "update returning": "UPDATE docs SET mark = coalesce(mark, 0) + 1 WHERE {0} RETURNING _id, i4a",
    "delete": "DELETE FROM docs WHERE {0}",
    "delete returning": "DELETE FROM docs WHERE {0} RETURNING _id, i4a",
}

# Tried with all tables and statements; "secret" is no number where it is hidden.
ALWAYS = ["secret::integer"]

SETTINGS = [
    "RESET ALL",
    # make work in PostgreSQL expensive, so that what can be pushed is
    "SET cpu_tuple_cost = 100; SET cpu_operator_cost = 100",
    "SET cpu_tuple_cost = 100; SET cpu_operator_cost = 100; SET enable_hashjoin = off; SET enable_mergejoin = off",
    "SET mongo_fdw.enable_join_pushdown = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off",
    "SET enable_partitionwise_join = on; SET enable_partitionwise_aggregate = on; SET cpu_tuple_cost = 100; SET cpu_operator_cost = 100",
]


class RowSecurity(BothServers):
    def __init__(self, options):
        super().__init__(options)
        self.wanted = options.names
        self.share = options.share
        self.failures = 0
        self.turn = self.statements = 0
        self.outcomes = {}

    def database(self, world):
        return "row_security_" + world

    def load(self, world):
        collection = self.client[self.database(world)]["docs"]
        collection.drop()
        documents = list(visible_documents()) + (list(hidden_documents()) if world == "all" else [])
        collection.insert_many(RawBSONDocument(bson_values.document(one)) for one in documents)

    def hidden(self):
        """All that is hidden, as it was loaded; a document with _id above 3."""
        collection = self.client[self.database("all")]["docs"]
        return sorted((one.raw for one in collection.with_options(
            codec_options=collection.codec_options.with_options(document_class=RawBSONDocument)).find({"_id": {"$gt": 3}})))

    def set_up(self):
        host, port = self.client.address
        self.execute("DROP SCHEMA IF EXISTS row_security_all, row_security_own CASCADE;"
                     "CREATE EXTENSION IF NOT EXISTS mongo_fdw SCHEMA public;"
                     "DROP SERVER IF EXISTS row_security CASCADE;"
                     "CREATE SERVER row_security FOREIGN DATA WRAPPER mongo_fdw"
                     " OPTIONS (address '%s', port '%d');"
                     "CREATE USER MAPPING FOR PUBLIC SERVER row_security;"
                     "DO $$ BEGIN CREATE ROLE row_reader LOGIN; EXCEPTION WHEN duplicate_object THEN END $$;"
                     % (host, port))
        for world in WORLDS:
            self.load(world)
            friends = self.client[self.database(world)]["friends"]
            friends.drop()
            friends.insert_many({"_id": number, "fx": number} for number in (1, 2, 5, 1001, 1007, 1013, 2001, 3001))
            self.create_tables(world)
        self.before = self.hidden()
        options = psycopg2.extensions.parse_dsn(self.options.dsn)
        options["user"] = "row_reader"
        self.user = psycopg2.connect(**options)
        self.user.autocommit = True

    def create_tables(self, world):
        columns = ", ".join("%s %s" % pair for pair in EXTRA + [(name, sql_type) for name, sql_type, _ in COLUMNS])
        options = "SERVER row_security OPTIONS (database '%s', collection '%%s')" % self.database(world)
        schema = "row_security_" + world
        self.execute("CREATE SCHEMA {0}; GRANT USAGE ON SCHEMA {0} TO row_reader; SET search_path = {0}, public;"
                     "CREATE TABLE members (tenant integer, name text); INSERT INTO members VALUES (1, 'row_reader');"
                     "GRANT SELECT ON members TO row_reader;"
                     "CREATE FUNCTION may_see(tenant integer) RETURNS boolean STABLE LANGUAGE plpgsql"
                     " AS 'BEGIN RETURN tenant = 1; END';".format(schema))
        self.execute("CREATE FOREIGN TABLE friends (fk integer OPTIONS (path '_id'), fx integer) " + options % "friends"
                     + "; GRANT SELECT ON friends TO row_reader;"
                     "CREATE FOREIGN TABLE base (%s) %s" % (columns, options % "docs"))
        for number, policy in enumerate(POLICIES.values()):
            table = "docs%d" % number
            self.execute(("CREATE TABLE {0} ({1}) PARTITION BY RANGE (_id);"
                          "CREATE FOREIGN TABLE {0}_part PARTITION OF {0} FOR VALUES FROM (MINVALUE) TO (MAXVALUE) {2};"
                          "ALTER TABLE {0} ENABLE ROW LEVEL SECURITY;"
                          "CREATE POLICY p ON {0} USING ({3});"
                          "GRANT SELECT, INSERT, UPDATE, DELETE ON {0} TO row_reader").format(
                              table, columns, options % "docs", policy.replace("docs.", table + ".")))
        for number, condition in enumerate(VIEWS.values(), len(POLICIES)):
            self.execute("CREATE VIEW docs{0} WITH (security_barrier) AS SELECT * FROM base docs WHERE {1};"
                         "GRANT SELECT, INSERT, UPDATE, DELETE ON docs{0} TO row_reader".format(number, condition))

    def report(self, good, name, *details):
        print(("ok - " if good else "not ok - ") + name)
        for detail in details if not good else ():
            for line in str(detail).splitlines():
                print("#   %s" % line)
        sys.stdout.flush()
        self.failures += not good

    def outcome(self, world, statement):
        """What the user sees: sorted rows, or the parts of an error."""
        cursor = self.user.cursor()
        del self.user.notices[:]
        try:
            cursor.execute("SET search_path = row_security_%s, public; " % world + statement)
            result = sorted(map(str, cursor.fetchall())) if cursor.description else cursor.statusmessage
        except psycopg2.OperationalError as error:
            if error.pgcode is None:
                raise
            result = self.parts(error)
        except psycopg2.Error as error:
            result = self.parts(error)
        return str((result, self.user.notices)).replace(self.database(world), "DATABASE")

    def parts(self, error):
        diagnostics = error.diag
        return tuple(str(part) for part in (
            error.pgcode, diagnostics.message_primary, diagnostics.message_detail, diagnostics.message_hint,
            diagnostics.context))

    def conditions(self, expression, sql_type):
        if sql_type == "boolean":
            return ["(%s)" % expression, "(%s) IS NOT TRUE" % expression]
        try:
            value = self.execute("SELECT (%s)::text FROM row_security_own.base WHERE _id = 1" % expression)[0][0]
        except psycopg2.Error:
            value = None
        found = ["(%s) IS NOT NULL" % expression]
        if value is not None:
            found.append("(%s) = '%s'::%s" % (expression, value.replace("'", "''"), sql_type))
            if "[]" not in sql_type:
                found.append("(%s) > '%s'::%s" % (expression, value.replace("'", "''"), sql_type))
        return found

    def test(self, expression, share):
        self.execute("SET search_path = row_security_own, public")
        self.cursor.execute("SELECT " + expression + " FROM base WHERE false")
        sql_type = self.execute("SELECT format_type(%s, NULL)", self.cursor.description[0].type_code)[0][0]
        conditions = self.conditions(expression, sql_type)
        tables = list(POLICIES) + list(VIEWS)
        told = []
        for number, table in enumerate(tables):
            for index, (kind, statement) in enumerate(STATEMENTS.items()):
                self.turn += 1
                if self.turn % share:
                    continue
                condition = conditions[(self.turn // share) % len(conditions)]
                # MongoDB tests $or before it compares a field
                if self.turn % 5 < 3:
                    condition = "(%s OR secret = 'nobody')" % condition
                statement = statement.format(condition).replace("docs", "docs%d" % number)
                settings = SETTINGS[(self.turn // share) % len(SETTINGS)]
                self.user.cursor().execute(settings)
                seen = {}
                for world in WORLDS:
                    seen[world] = self.outcome(world, statement)
                    if kind.startswith("delete"):
                        self.restore(world)
                self.statements += 1
                self.outcomes[table] = self.outcomes.get(table, 0) + (seen["own"].startswith("([") or "('" not in seen["own"])
                if seen["all"] != seen["own"]:
                    told.append("%s, policy %s: %s\n  %s\n  not %s" % (kind, table, settings + "; " + statement, seen["all"][:600], seen["own"][:600]))
        self.report(not told, expression, *told[:3])

    def as_user(self, statement):
        cursor = self.user.cursor()
        try:
            cursor.execute("SET search_path = row_security_all, public; " + statement)
            return "\n".join(str(row[0]) for row in cursor.fetchall()) if cursor.description else cursor.statusmessage
        except psycopg2.Error as error:
            return " | ".join(self.parts(error))

    def expect(self, name, statement, sqlstate, shown=None, hidden="top secret"):
        """An error, or without SQLSTATE a result, that shows one thing and not another."""
        seen = self.as_user(statement)
        self.report((sqlstate is None or seen.startswith(sqlstate)) and (shown is None or shown in seen)
                    and hidden not in seen, name, seen)

    def test_writes(self):
        """WITH CHECK of a policy, for rows that go to a foreign partition."""
        for number, policy in enumerate(POLICIES):
            table = "docs%d" % number
            for name, statement in [
                    ("INSERT", "INSERT INTO %s (_id, tenant, owner, share) VALUES (9001, 2, 'x', 200)"),
                    ("INSERT of several", "INSERT INTO %s (_id, tenant, owner, share) SELECT n, 2, 'x', 200 FROM generate_series(9001, 9009) n"),
                    ("INSERT without duplicates", "INSERT INTO %s (_id, tenant, owner, share) VALUES (9001, 2, 'x', 200) ON CONFLICT DO NOTHING"),
                    ("UPDATE of a row", "UPDATE %s SET tenant = 2, owner = 'x', share = 200 WHERE _id = 1"),
                    ("UPDATE", "UPDATE %s SET tenant = 2, owner = 'x', share = 200")]:
                self.expect("policy %s: %s of what it would hide" % (policy, name), statement % table,
                            "42501", "violates row-level security policy")
            self.expect("policy %s: INSERT of what it shows" % policy,
                        "INSERT INTO %s (_id, tenant, owner, share) VALUES (4, 1, 'row_reader', 50)" % table, None, "INSERT 0 1")
            self.expect("policy %s: and DELETE" % policy, "DELETE FROM %s WHERE _id = 4" % table, None, "DELETE 1")

    def test_messages(self):
        """What messages and EXPLAIN show to who may not see all."""
        self.execute("SET search_path = row_security_all, public;"
                     "CREATE VIEW total AS SELECT sum(1 / (_id - 2000)) FROM base WHERE _id = 2000;"
                     "CREATE FOREIGN TABLE unfit (_id integer, n integer OPTIONS (path 'secret'), tenant integer,"
                     " other integer OPTIONS (path 'secret')) SERVER row_security"
                     " OPTIONS (database 'row_security_all', collection 'docs');"
                     "CREATE VIEW unfit_view AS SELECT other FROM unfit WHERE _id = 2000;"
                     "GRANT SELECT ON total, unfit_view TO row_reader; GRANT SELECT (n, tenant) ON unfit TO row_reader")
        settings = SETTINGS[1] + "; SET enable_partitionwise_aggregate = on; "
        self.expect("duplicate key", "INSERT INTO docs0 (_id, tenant) VALUES (1001, 1)", "23505", "MongoDB error 11000", "1001")
        self.expect("a failed sum", settings + "SELECT sum(1 / (_id - 1)) FROM docs0", "22012", None, "$divide")
        self.expect("a failed division below a view", settings + "SELECT * FROM total", "22012", None, "$divide")
        self.expect("a value that does not fit, below a view", "SELECT * FROM unfit_view", "22P02", 'field "secret"')
        self.expect("a value that may be read, of a document that may not",
                    "SELECT n FROM unfit WHERE tenant = 2 AND n IS NOT NULL", "22", "A document holds", "_id")
        for name, explain in ("plan", "EXPLAIN (VERBOSE, COSTS OFF) "), ("execution", "EXPLAIN (ANALYZE, VERBOSE, COSTS OFF) "):
            self.expect("values of parameters, " + name, explain + "SELECT * FROM docs1", None, "Remote Command", "row_reader")
            self.expect("MongoDB's plan, " + name, "SET mongo_fdw.explain_remote = on; " + explain + "SELECT * FROM docs1", None,
                        "not shown", "IXSCAN")
        self.execute("GRANT SELECT ON base, friends, unfit TO row_reader")
        seen = self.as_user("SELECT n FROM unfit WHERE tenant = 2 AND n IS NOT NULL")
        self.report("The document with _id 1000 holds a value of BSON type String: \"top secret" in seen, "all is told to who may read the table", seen)
        seen = self.as_user(settings + "SELECT * FROM total")
        self.report("$divide" in seen, "what MongoDB says as well", seen)

    def test_batched_join(self):
        """The keys of a batched join are no condition that hides rows."""
        self.execute("SET search_path = row_security_all, public;"
                     "CREATE FOREIGN TABLE coded (_id integer, code varchar(5) OPTIONS (path 'secret', indexed 'true'), tenant integer)"
                     " SERVER row_security OPTIONS (database 'row_security_all', collection 'docs', estimated_rows '1000000');"
                     "CREATE VIEW coded_view WITH (security_barrier) AS SELECT _id FROM (VALUES ('1'::text), ('3'), ('no')) v(name)"
                     " JOIN coded ON code = name; GRANT SELECT ON coded_view TO row_reader")
        self.user.cursor().execute("RESET ALL")
        settings = "SET enable_hashjoin = off; SET enable_mergejoin = off; "
        plan = self.as_user(settings + "EXPLAIN SELECT * FROM coded_view")
        self.report("Batched Join" in plan, "a batched join below a barrier", plan)
        rows = self.as_user(settings + "SELECT * FROM coded_view ORDER BY 1")
        self.report(rows == "1\n3", "gives the rows that the barrier lets through", rows)

    def test_arrays(self):
        """Arrays in a document's fields neither fail in an order that it is hidden from nor meet a condition that hides it."""
        database = self.client[self.database("all")]
        for name, documents in (("ordered", [{"_id": 1, "tenant": 1, "a": 1, "b": 2}, {"_id": 2, "tenant": 2, "a": [1, 2], "b": [3, 4]}]),
                                ("members", [{"_id": 1, "team": 10}, {"_id": 2, "team": 11}]),
                                ("teams", [{"_id": 10, "owner": [5, 6]}, {"_id": 11, "owner": 5}])):
            database[name].drop()
            database[name].insert_many(documents)
        options = "SERVER row_security OPTIONS (database 'row_security_all', "
        self.execute("SET search_path = row_security_all, public;"
                     "CREATE FOREIGN TABLE ordered (_id integer, tenant integer, a integer, b integer) {0} collection 'ordered');"
                     "CREATE VIEW ordered_view WITH (security_barrier) AS SELECT _id FROM ordered"
                     " WHERE may_see(tenant) ORDER BY a NULLS FIRST, b NULLS FIRST;"
                     "CREATE FOREIGN TABLE member (_id integer, team integer) {0} collection 'members', estimated_rows '10');"
                     "CREATE FOREIGN TABLE team (_id integer, owner integer) {0} collection 'teams', estimated_rows '10000000');"
                     "CREATE VIEW join_view WITH (security_barrier) AS SELECT m._id FROM member m JOIN team t ON t._id = m.team WHERE t.owner = 5;"
                     "GRANT SELECT ON ordered_view, join_view TO row_reader;"
                     "ALTER SERVER row_security OPTIONS (ADD fdw_startup_cost '1000', ADD fdw_lookup_cost '0')".format(options))
        rows = self.as_user("SET enable_sort = off; SET enable_incremental_sort = off; SELECT * FROM ordered_view")
        self.report(rows == "1", "an order of two fields, of which a hidden document has arrays", rows)
        self.user.cursor().execute("RESET ALL")
        settings = "SET mongo_fdw.enable_batched_joins = off; SET enable_nestloop = off; SET enable_hashjoin = off; SET enable_mergejoin = off; "
        rows = self.as_user(settings + "SELECT * FROM join_view")
        self.report(rows == "2", "a condition of a joined table", rows)
        self.execute("ALTER SERVER row_security OPTIONS (DROP fdw_startup_cost, DROP fdw_lookup_cost)")

    def test_domains(self):
        """A domain's CHECK, which may fail, is not asked about a hidden row."""
        self.execute("SET search_path = row_security_all, public;"
                     "CREATE DOMAIN short AS text CHECK (1 / (length(VALUE) - length('top secret of somebody')) < 1)")
        policies = [("may_see(tenant)", "error"), ("share < 100.5", "error"), ("may_see(tenant) AND secret <> ''", "error"),
                    ("may_see(tenant)", "null"), ("share < 100.5", "null")]
        for number, (policy, mismatch) in enumerate(policies):
            self.execute("CREATE TABLE short{0} (_id integer, tenant integer, share numeric, secret short) PARTITION BY RANGE (_id);"
                         "CREATE FOREIGN TABLE short{0}_part PARTITION OF short{0} FOR VALUES FROM (MINVALUE) TO (MAXVALUE)"
                         " SERVER row_security OPTIONS (database 'row_security_all', collection 'docs', type_mismatch '{1}');"
                         "ALTER TABLE short{0} ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON short{0} USING ({2});"
                         "GRANT SELECT ON short{0} TO row_reader".format(number, mismatch, policy))
            seen = self.as_user("SELECT secret FROM short%d ORDER BY _id" % number)
            self.report(seen == "1\n2\n3", "a domain under the policy %s, type_mismatch '%s'" % (policy, mismatch), seen)
        self.execute("ALTER DOMAIN short ADD CHECK (VALUE <> '2') NOT VALID")
        self.expect("a value that breaks a domain, of a row that may be seen", "SELECT secret FROM short0", "23514", 'field "secret"')

    def test_other_types(self):
        """Nor is the input function of a type, which raises and quotes what it likes."""
        self.execute("SET search_path = row_security_all, public; CREATE TYPE place AS (at point);"
                     "CREATE DOMAIN positive AS oid CHECK (VALUE > 0)")
        for number, sql_type in enumerate(["oid", "positive", "point", "int4range", "tsvector", "jsonpath", "regclass", "oid[]", "place"]):
            for mismatch in ("error", "null"):
                table = "other%d_%s" % (number, mismatch)
                self.execute("CREATE TABLE {0} (_id integer, tenant integer, secret {1}) PARTITION BY RANGE (_id);"
                             "CREATE FOREIGN TABLE {0}_part PARTITION OF {0} FOR VALUES FROM (MINVALUE) TO (MAXVALUE)"
                             " SERVER row_security OPTIONS (database 'row_security_all', collection 'others', type_mismatch '{2}');"
                             "ALTER TABLE {0} ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON {0} USING (may_see(tenant));"
                             "GRANT SELECT ON {0} TO row_reader".format(table, sql_type, mismatch))
                others = self.client[self.database("all")]["others"]
                others.drop()
                secrets = {"oid[]": (["5"], ["top secret"]), "place": ({"at": "(1,2)"}, {"at": "top secret"}),
                           "point": ("(1,2)", "top secret"), "int4range": ("[1,2)", "top secret"), "tsvector": ("a", "top 'secret"),
                           "jsonpath": ("$.a", "top secret")}
                shown, hidden = secrets.get(sql_type, ("5", "top secret"))
                others.insert_many([{"_id": 1, "tenant": 1, "secret": shown}, {"_id": 2, "tenant": 2, "secret": hidden}])
                seen = self.as_user("SELECT secret IS NOT NULL FROM %s" % table)
                self.report(seen == "True", "a column of type %s, type_mismatch '%s'" % (sql_type, mismatch), seen)

    def test_log(self):
        """What is logged of commands goes to a superuser's client alone."""
        self.execute("ALTER ROLE row_reader SET mongo_fdw.log_remote_query = on")
        options = psycopg2.extensions.parse_dsn(self.options.dsn)
        options["user"] = "row_reader"
        self.user.close()
        self.user = psycopg2.connect(**options)
        self.user.autocommit = True
        self.as_user("SET client_min_messages = debug5; SELECT * FROM docs0 WHERE _id = 1")
        told = [notice for notice in self.user.notices if "remote query" in notice]
        self.report(not told and self.as_user("SHOW mongo_fdw.log_remote_query") == "on", "the log is not the client's", *told)
        self.execute("ALTER ROLE row_reader RESET mongo_fdw.log_remote_query")

    def test_counts(self):
        """EXPLAIN ANALYZE counts the same rows whether a hidden one meets a condition or not."""
        for number, table in enumerate(list(POLICIES) + list(VIEWS)):
            seen = [self.as_user("EXPLAIN (ANALYZE, BUFFERS OFF, COSTS OFF, TIMING OFF, SUMMARY OFF)"
                                 " SELECT _id FROM docs%d WHERE i4a + 0 = %d" % (number, value)).replace(str(value), "VALUE")
                    for value in (2147483647, 123456789)]
            self.report("Filter: " in seen[0] and seen[0] == seen[1], "counts of EXPLAIN ANALYZE, policy " + table, *seen)

    def restore(self, world):
        collection = self.client[self.database(world)]["docs"]
        collection.delete_many({"_id": {"$in": [1, 2, 3]}})
        collection.insert_many(RawBSONDocument(bson_values.document(one)) for one in visible_documents())

    def run(self):
        self.set_up()
        for name, expressions in CASES.items():
            if self.wanted and name not in self.wanted:
                continue
            for expression in expressions:
                self.test(expression, self.share)
        for expression in ALWAYS if not self.wanted else ():
            self.test(expression, 1)
        self.test_writes()
        self.test_messages()
        self.test_counts()
        self.test_batched_join()
        self.test_arrays()
        self.test_domains()
        self.test_other_types()
        self.test_log()
        self.report(self.hidden() == self.before, "nothing hidden has been changed")
        print("# %d statements in two worlds; with rows: %s" % (self.statements, self.outcomes))


def main():
    parser = test_arguments.parser(__doc__)
    parser.add_argument("--share", type=int, default=101, help="one in so many of expression, table and statement")
    parser.add_argument("names", nargs="*", help="of rows or groups of cases")
    tests = RowSecurity(parser.parse_args())
    tests.run()
    print("done")
    sys.exit(1 if tests.failures else 0)


if __name__ == "__main__":
    main()
