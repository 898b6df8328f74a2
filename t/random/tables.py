"""The tables of the random writes and of the nested queries: one collection under many names.

Two schemas have the same tables, in writes_remote as foreign tables, in writes_local as ordinary
tables and views, so that a statement has the same meaning in both:

    items       the collection; columns of many types, and fields without a column
    again       the same collection as another foreign table
    parted      the same collection as the partition of a table
    upserted    the same collection with insert_mode 'upsert' (written to only)
    viewed      a view of MongoDB over it that excludes documents
    elements    a view with $unwind: its _id is not unique
    unwound     a foreign table that unwinds, and numbers the elements
    groups      a view with $group: its _id may be null
    remainders  a view whose _id is not unique, and is missing from some documents
    dollars     a view whose _id is a document with a key that looks like an operator
    piped       a foreign table with the option pipeline
    rows_of()   a function that reads the collection
    series      a time series collection, with duplicate _ids
    whole       whole documents, with an _id of any type
    kept        an ordinary table in both schemas

Documents lack fields, contain numbers of every BSON type that fits, Strings with trailing blanks
that are longer than their column, and numbers and dates that their column rounds.  One may have
a null _id.  Some indexes have a collation.
"""

import datetime

from bson import Decimal128, Int64, ObjectId

from settings import READER

# column, type, path, BSON types written, literals, declared BSON type
COLUMNS = [
    ("a", "integer", "a", (int,), ["0", "1", "-5", "7", "100", "2147483647"]),
    ("b", 'text COLLATE "C"', "b", (str,), ["''", "'x'", "'X'", "'ab'", "'ä'", "'65a000000000000000000001'", "'a.b'", "'$x'"]),
    ("c", "bigint", "c", (Int64,), ["0", "5", "-1", "9007199254740993", "9223372036854775807"]),
    ("n", "numeric", "n", (Decimal128,), ["0", "1.50", "-2.25", "12345678901234567890.123"]),
    ("f", "double precision", "f", (float,), ["0", "0.1", "-1.5", "1e300", "'NaN'"]),
    ("t", "timestamptz", "t", None, ["'2020-01-01'", "'1969-12-31 23:59:59.999Z'", "'2030-06-01 12:00:00.5Z'"]),
    ("d", "date", "d", None, ["'2020-02-29'", "'1900-01-01'"]),
    ("o", "boolean", "o", (bool,), ["true", "false"]),
    ("s.x", "integer", "s.x", (int,), ["1", "2", "3"]),
    ("s y", "text", "s.deep.y", (str,), ["'deep'", "'deeper'"]),
    ("j", "jsonb", "j", None, ["'{\"k\": 1}'", "'[1, \"two\"]'", "'{\"k\": {\"l\": [true]}}'"]),
    ("r", "integer[]", "r", (list,), ["'{1,2,3}'", "'{}'", "'{5}'"]),
    ("h", "smallint", "h", (int,), ["0", "-7", "32767", "-32768"]),
    ("u", "uuid", "u", None, ["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"]),
    ("k", 'text COLLATE "C"', "k", (ObjectId,), ["'65a000000000000000000001'", "'65a0000000000000000000ff'"], "objectId"),
    ("l", "integer", "l", (Int64,), ["0", "3", "-2147483648"], "long"),
    ("m", "numeric", "m", (float,), ["0.5", "-2", "12345.678"], "double"),
    # values that reading may change
    ("v", 'varchar(3) COLLATE "C"', "v", (str,), ["'abc'", "'ab'", "'ab '", "'abc  '", "'   '"]),
    ("w", 'short COLLATE "C"', "w", (str,), ["'abc'", "'ab'", "'ab '", "'abc  '", "''"]),
    ("p", 'character(3) COLLATE "C"', "p", (str,), ["'abc'", "'ab'", "'ab '", "'abc  '", "''"]),
    ("q", "numeric(6,1)", "q", (Decimal128,), ["1.2", "1.3", "-0.5", "99999.9"]),
    ("z", "timestamptz(0)", "z", None, ["'2020-01-01'", "'2020-01-01 00:00:01Z'", "'2020-01-01 00:00:02Z'"]),
]

# The columns of the tables that a query reads, by families that can be compared.  Equal numerics
# may look different, and doubles have no exact sum, so both have families of their own.
BASE = {"integer": ["_id", "a", "h", "l", "s.x"], "bigint": ["c"], "numeric": ["n", "m", "q"], "float": ["f"],
        "text": ["b", "k", "v", "w"], "character": ["p"], "time": ["t", "z"], "date": ["d"], "boolean": ["o"], "json": ["j"]}
TABLES = {
    "items": BASE, "again": BASE, "parted": BASE, "viewed": BASE,
    "elements": {"integer": ["_id", "a", "r"], "text": ["b", "v"]},
    "unwound": {"integer": ["_id", "a", "n", "r"], "text": ["b", "v"]},
    "groups": {"integer": ["_id"], "bigint": ["many", "total"]},
    "remainders": {"integer": ["_id", "a"], "text": ["b"]},
    "dollars": {"json": ["_id"], "integer": ["a"], "text": ["b"]},
    "piped": {"integer": ["_id", "a", "r"], "text": ["b", "w"]},
    "rows_of()": {"integer": ["_id", "a"], "text": ["b", "v"]},
    "series": {"integer": ["_id", "m", "n"], "time": ["at"], "text": ["v"]},
    "kept": {"integer": ["_id", "a"], "text": ["b"]},
}

# Ordinary views over the tables "items" and "series".
LOCAL_VIEWS = {
    "again": "SELECT * FROM items",
    "parted": "SELECT * FROM items",
    "viewed": "SELECT * FROM items WHERE a >= 0",
    "elements": "SELECT _id, a, b, v, e AS r FROM items, unnest(r) e",
    "unwound": "SELECT _id, a, b, v, i::integer AS n, e AS r FROM items, unnest(r) WITH ORDINALITY AS u (e, i)",
    "groups": "SELECT h::integer AS _id, count(*) AS many, sum(l::bigint)::bigint AS total FROM items GROUP BY h",
    "remainders": "SELECT _id % 5 AS _id, a, b FROM items",
    "dollars": "SELECT jsonb_build_object('$gt', _id) AS _id, a, b FROM items",
    "piped": "SELECT _id, a, b, w, e AS r FROM items, unnest(r) e WHERE e > 1",
}

# The same for MongoDB: view or foreign table, its columns, its stages or options.
REMOTE_VIEWS = {
    "elements": ("_id integer, a integer, b text COLLATE \"C\", v varchar(3) COLLATE \"C\", r integer", [{"$unwind": "$r"}]),
    "groups": ("_id integer, many bigint, total bigint", [
        {"$group": {"_id": "$h", "many": {"$sum": 1}, "total": {"$sum": "$l"}, "there": {"$sum": {"$cond": [{"$ne": [{"$type": "$l"}, "missing"]}, 1, 0]}}}},
        {"$set": {"total": {"$cond": ["$there", "$total", None]}}}]),
    "remainders": ("_id integer, a integer, b text COLLATE \"C\"", [{"$project": {"_id": {"$mod": ["$_id", 5]}, "a": 1, "b": 1}}]),
    "dollars": ("_id jsonb, a integer, b text COLLATE \"C\"", [
        {"$project": {"_id": {"$arrayToObject": [[{"k": {"$literal": "$gt"}, "v": "$_id"}]]}, "a": 1, "b": 1}}]),
}
UNWOUND = "_id integer, a integer, b text COLLATE \"C\", v varchar(3) COLLATE \"C\", n integer, r integer"
PIPED = "_id integer, a integer, b text COLLATE \"C\", w short COLLATE \"C\", r integer"
SERIES = "_id integer, at timestamptz, m integer, n integer, v text COLLATE \"C\""
INDEXES = ["a", "b", "c", "h", "n", "f", "s.x", "v", "w", "p", "q", "z", "r", "k"]
LOCAL, REMOTE = "writes_local", "writes_remote"


def quote(name):
    return name if name == "_id" or name.isalnum() else '"%s"' % name


def base_type(column):
    return column[1].split(" COLLATE")[0]


class Tables:
    """'random' draws the documents, 'other_rng' the statistics and the options of reading."""

    def __init__(self, execute, client, options, rng, other_rng):
        self.execute = execute
        self.options = options
        self.rng = rng
        self.other_rng = other_rng
        self.database = client["writes_%d" % options.seed]
        self.collection = self.database["items"]

    def set_up(self, before_copying=lambda: None):
        """'before_copying' sets the format of values."""
        self.fill()
        self.create_schemas()
        self.create_foreign_tables()
        before_copying()
        self.create_local_tables()
        for schema in (LOCAL, REMOTE):
            self.execute("GRANT USAGE ON SCHEMA %s TO PUBLIC; GRANT ALL ON ALL TABLES IN SCHEMA %s TO PUBLIC" % (schema, schema))
        self.execute("CREATE USER MAPPING IF NOT EXISTS FOR %s SERVER %s" % (READER, self.options.server))

    def fill(self):
        other_rng = self.other_rng
        self.database.client.drop_database(self.database.name)
        documents = [self.document(number) for number in range(60)]
        if other_rng.random() < 0.6:
            documents[other_rng.randrange(60)]["_id"] = None
        self.collection.insert_many(documents)
        for path in ["a"] + other_rng.sample(INDEXES[1:], 4):
            self.collection.create_index(path, sparse=path != "a" and other_rng.random() < 0.2)
        for number, path in enumerate(other_rng.sample(["b", "v", "w", "p"], 2)):
            keys = [(path, 1)] if other_rng.random() < 0.7 else [(other_rng.choice(["a", "h"]), 1), (path, 1)]
            self.collection.create_index(keys, name="collated_%d" % number, sparse=other_rng.random() < 0.2,
                                         collation={"locale": "en", "strength": other_rng.choice([1, 2, 3])})
        self.database.create_collection("viewed", viewOn="items", pipeline=[{"$match": {"a": {"$gte": 0}}}])
        for name, (_, stages) in REMOTE_VIEWS.items():
            self.database.create_collection(name, viewOn="items", pipeline=stages)
        self.database.create_collection("series", timeseries={"timeField": "at", "metaField": "m"})
        self.database["series"].insert_many([
            {"_id": other_rng.choice([number, number % 7]), "at": datetime.datetime(2024, 1, 1 + number % 3), "m": number % 4, "n": number,
             "v": other_rng.choice(["x", "X", "ab"])} for number in range(40)])

    def document(self, number):
        """Returns a document with numbers of every type that fits, and fields without a column."""
        rng = self.rng
        document = {"_id": number, "stray": {"a": rng.random(), "list": [number, None]}}
        if rng.random() < 0.9:
            document["a"] = rng.choice([int, float, Int64])(rng.choice([0, 1, 5, 7, number]))
        if rng.random() < 0.8:
            document["h"] = rng.choice([int, float, Int64])(rng.choice([0, 1, -5, 32767, -32768]))
        if rng.random() < 0.8:
            document["b"] = rng.choice(["x", "ab", "", "y", "X", "é", "e"])
        if rng.random() < 0.8:
            document["c"] = rng.choice([int, Int64])(number * 3)
        if rng.random() < 0.5:
            document["n"] = rng.choice([Decimal128("1.5"), Decimal128("1.50"), 2])
        if rng.random() < 0.5:
            document["s"] = {"keep": number, "x": rng.choice([1, 2, 3]), "deep": {"keep": True, "y": "deep"}}
        if rng.random() < 0.3:
            document["o"] = rng.choice([True, False, None])
        if rng.random() < 0.5:
            document["r"] = [1, Int64(2), 3.0]
        if rng.random() < 0.5:
            document.update(k=ObjectId("65a000000000000000000001"), l=Int64(number), m=number / 4)
        if rng.random() < 0.5:
            document["j"] = {"k": rng.choice([1, Int64(1), "one", None, [1], [Int64(1), 2.0]]),
                             "other": {"deep": rng.choice([1, Int64(1)]), "beside": Int64(2)}, "float": 3.0}
        for field in "vwp":
            if rng.random() < 0.8:
                document[field] = rng.choice(["abc", "abc", "ab"]) + rng.choice(["", "", " ", "  ", "      "])
        if rng.random() < 0.7:
            document["q"] = rng.choice([Decimal128("1.24"), Decimal128("1.25"), Decimal128("1.2"), 1.25, 1.3, 2, Int64(2)])
        if rng.random() < 0.7:
            document["z"] = datetime.datetime(2020, 1, 1) + datetime.timedelta(milliseconds=rng.choice([0, 499, 500, 501, 999, 1000, 1500, 2500]))
        return document

    def create_schemas(self):
        self.execute("SET timezone = 'UTC'; DROP SCHEMA IF EXISTS writes_local, writes_remote, writes CASCADE;"
                     "CREATE SCHEMA writes; CREATE SCHEMA writes_local; CREATE SCHEMA writes_remote;"
                     "CREATE DOMAIN writes.short AS varchar(3); GRANT USAGE ON SCHEMA writes TO PUBLIC;"
                     "CREATE TABLE writes.other AS SELECT g AS k, 'other ' || g AS v FROM generate_series(-5, 110) g"
                     " UNION ALL SELECT 1, 'again';"
                     "GRANT SELECT ON writes.other TO PUBLIC")
        for schema in (LOCAL, REMOTE):
            self.execute("CREATE TABLE %s.kept (_id integer PRIMARY KEY, a integer, b text COLLATE \"C\");"
                         "INSERT INTO %s.kept SELECT g, g %% 4, 'kept ' || g FROM generate_series(1, 9) g" % (schema, schema))

    def draw_costs(self):
        """Draws costs; if a command is expensive and a lookup free, joins are one command."""
        self.execute("""DO $$ BEGIN
                ALTER SERVER %s OPTIONS (ADD fdw_startup_cost '0', ADD fdw_lookup_cost '0');
            EXCEPTION WHEN duplicate_object THEN NULL;
            END $$""" % self.options.server)
        self.execute("ALTER SERVER %s OPTIONS (SET fdw_startup_cost '%s', SET fdw_lookup_cost '%s')" % (
            (self.options.server,) + self.other_rng.choice([("1000000", "0"), ("1000000", "0"), ("25", "0.5"), ("0", "10")])))

    def create_foreign_tables(self):
        other_rng = self.other_rng
        self.draw_costs()
        options = "database '%s', type_mismatch '%s'" % (self.database.name, self.options.type_mismatch)
        columns = "_id integer, " + ", ".join("%s %s OPTIONS (path '%s'%s)%s" % (
            quote(c[0]), base_type(c), c[2], ", bson_type '%s'" % c[5] if len(c) > 5 else "",
            ' COLLATE "C"' if "COLLATE" in c[1] else "") for c in COLUMNS)

        def create(name, columns, more):
            self.execute("CREATE FOREIGN TABLE %s (%s) SERVER %s OPTIONS (%s%s)" % (name, columns, self.options.server, options, more))
        def sizes():
            return "".join(", %s '%d'" % (name, size) for name, size in (
                ("batch_size", self.rng.choice([1, 3, 10000])), ("fetch_size", other_rng.choice([0, 3, 10]))) if size)
        self.execute("SET search_path = writes_remote, writes, public")
        create("items", columns, sizes())
        create("again", columns, ", collection 'items'" + sizes())
        create("parted_there", columns, ", collection 'items'" + sizes())
        self.execute("CREATE TABLE parted (LIKE items) PARTITION BY RANGE (_id); ALTER TABLE parted ATTACH PARTITION parted_there DEFAULT")
        create("upserted", columns, ", collection 'items', insert_mode 'upsert'" + sizes())
        create("viewed", columns, sizes())
        for name, (view_columns, _) in REMOTE_VIEWS.items():
            create(name, view_columns, "")
        create("unwound", UNWOUND, ", collection 'items', unwind 'r', ordinality 'n'")
        create("piped", PIPED, """, collection 'items', pipeline '[{"$unwind": "$r"}, {"$match": {"r": {"$gt": 1}}}]'""")
        create("series", SERIES, "")
        create("whole", "__doc jsonb", sizes())
        self.create_function(REMOTE)
        for name in ("items", "again", "parted", "viewed", "elements", "unwound", "groups", "remainders", "dollars", "series"):
            if other_rng.random() < 0.5:
                self.execute("ANALYZE " + name)

    def create_function(self, schema):
        """Creates a function whose own settings apply in it, whatever is drawn outside."""
        self.execute("CREATE FUNCTION %s.rows_of() RETURNS TABLE (_id integer, a integer, b text, v text) STABLE LANGUAGE plpgsql"
                     " AS $$BEGIN RETURN QUERY SELECT i._id, i.a, i.b, i.v::text FROM %s.items i; END$$" % (schema, schema))

    def create_local_tables(self):
        columns = ", ".join("%s %s" % (quote(c[0]), c[1]) for c in COLUMNS)
        self.execute("SET mongo_fdw.enable_pushdown = off; SET search_path = writes_local, writes, public;"
                     # partial, as PostgreSQL 19rc1 groups an outer join by a whole such key
                     # alone, though it may be null
                     "CREATE TABLE items (_id integer, %s); INSERT INTO items SELECT * FROM writes_remote.items;"
                     "CREATE UNIQUE INDEX ON items (_id) NULLS NOT DISTINCT WHERE _id IS NULL OR _id IS NOT NULL;"
                     "CREATE TABLE series (%s); INSERT INTO series SELECT * FROM writes_remote.series;"
                     # MongoDB rejects an array as _id, and keys with "$" anywhere in it
                     "CREATE TABLE whole (__doc jsonb CHECK (__doc->>'_id' NOT LIKE '%%\"$%%' AND jsonb_typeof(__doc->'_id') <> 'array'));"
                     "CREATE UNIQUE INDEX ON whole ((__doc->'_id'));"
                     "SET mongo_fdw.enable_pushdown = on" % (columns, SERIES))
        for name, query in LOCAL_VIEWS.items():
            self.execute("CREATE VIEW %s AS %s" % (name, query))
        self.create_function(LOCAL)
