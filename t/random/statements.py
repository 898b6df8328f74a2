"""Random statements that write, for t/random/writes.py: over the tables of t/random/tables.py.

Not tested, because SQL leaves the result open or docs/writing.md describes a difference:
- a row that two parts of one statement change (PostgreSQL keeps either change); rows of
  different parts have an even and an odd _id;
- values from one of several rows with the same join key;
- keys that exist already or not depending on the order of the rows;
- volatile functions and triggers that read what the statement writes.
"""

from nested import Nested, Source
from tables import BASE, COLUMNS, base_type, quote

EXPRESSIONS = {
    "a": ["a + 1", "a - 3", "2 + a", '"s.x"', "a + NULL", "length(b)"],
    "b": ["b || 'x'", "upper(b)", "left(b, 1)", "a::text"],
    "c": ["c + 1", "c - 5::smallint", "a", "-c"],
    "n": ["n * 2", "n + 1", "c"],
    "f": ["f / 2", "a"],
    "t": ["t + interval '1 hour'", "d"],
    "d": ["d + 1"],
    "o": ["NOT o", "a > 3"],
    "s.x": ['"s.x" + 1', "a"],
    "s y": ['"s y" || b'],
    "j": ["jsonb_set(j, '{k}', '7')", "j || '{\"new\": 1}'", "j - 'k'", "j - 'other'", "j #- '{other,deep}'",
          "jsonb_set(j, '{other,deep}', '{\"er\": 1.0}')", "jsonb_set(j, '{k,0}', 'null')", "j || '{\"a.b\": 2, \"k\": [1, 2, 3]}'",
          "CASE WHEN jsonb_typeof(j) = 'array' THEN j - 0 ELSE j END", "j || jsonb_build_object('a', a)",
          "jsonb_set(j, '{other,new}', '8')", "jsonb_set(j, '{k,l}', 'true')", "jsonb_set(j, '{fresh}', '{\"x\": 1}')",
          "jsonb_set_lax(j, '{k}', to_jsonb(a), true, 'delete_key')"],
    "r": ["r || 9", "r[2:3]", "trim_array(r, 1)", "array_remove(r, 2)", "array_replace(r, 2, 7)", "9 || r"],
    "h": ["h + 1::smallint", "h - 9::smallint", "-3::smallint + h", "a"],
    "u": [],
    "k": ["reverse(reverse(k))"],
    "l": ["l + 1", "a"],
    "m": ["m + 1", "l"],
    "v": ["left(v, 2)", "upper(v)", "w", "left(v, 2) || ' '"],
    "w": ["left(w, 2)", "v"],
    "p": ["v", "upper(p)"],
    "q": ["q + 1", "q / 2", "a"],
    "z": ["z + interval '1.5 s'", "t"],
}

# The tables that are written, and the tables that are read, with an expression that makes a
# unique integer of each row.
WRITTEN = ["items"] * 5 + ["again", "parted"]
READ = {"items": "_id", "again": "_id", "parted": "_id", "viewed": "_id", "rows_of()": "_id", "unwound": "_id * 8 + n", "groups": "_id + 32768"}

# The limit of the initial _ids; higher ones are used for new rows, and only once.
FEW = 100
OLD = "_id < %d" % FEW

# From so many documents on, the new ones are deleted.
MANY = 300

# A loop stops after so many rows: a scan that saw its writes would never end.
ENDLESS = 3000
LOOP = """CREATE OR REPLACE FUNCTION pg_temp.random_loop() RETURNS SETOF text LANGUAGE plpgsql AS $loop$
DECLARE
    found record;
    rounds integer := 0;
BEGIN
    FOR found IN %s LOOP
        rounds := rounds OPERATOR(pg_catalog.+) 1;
        IF rounds OPERATOR(pg_catalog.>) %d THEN
            RAISE program_limit_exceeded;
        END IF;
        %s;
        RETURN NEXT found::text;
    END LOOP;
END $loop$; SELECT * FROM pg_temp.random_loop()"""


class Statement:
    """'assigned' are the paths that it may change in existing documents, None if it replaces
    documents; 'written' is the table if RETURNING is allowed, otherwise None; 'local' is the
    statement for local tables, if it differs; 'free': any rows may be changed, if the number is
    the same."""

    def __init__(self, sql, assigned=None, written=None, local=None, free=False):
        self.sql = sql
        self.assigned = assigned
        self.written = written
        self.local = local or sql
        self.free = free


class RandomWrites:
    def __init__(self, rng):
        self.rng = rng
        self.next_id = 1000

    def fresh(self, count):
        """Returns a number that begins so many unused _ids."""
        self.next_id += count
        return self.next_id - count

    def literal(self, column):
        if self.rng.random() < 0.15:
            return "NULL"
        return "%s::%s" % (self.rng.choice(column[4]), base_type(column))

    def condition(self):
        rng = self.rng
        return rng.choice([
            "_id = %d" % rng.randint(0, 80), "_id IN (%d, %d, 7)" % (rng.randint(0, 80), rng.randint(0, 80)),
            "a > %d" % rng.randint(0, 50), "a BETWEEN 1 AND %d" % rng.randint(1, 20), "a IS NULL", "_id IS NULL",
            "b = 'x'", "b > 'a'", "b LIKE '%b'", "c <= %d" % rng.randint(0, 150), "a <> 7",
            '"s.x" = 2', '"s.x" >= 2 AND a < 30', "o", "NOT o", "o IS NOT TRUE", "n > 1",
            "h > 0", "h <= 1 OR a = 5", "a IN (SELECT other.k FROM other WHERE other.k %% 7 = %d)" % rng.randint(0, 6), "j @> '{\"k\": 1}'",
            "t < '2025-01-01'", "length(b) = 2", "_id % 9 = 0", "a = 5 OR b = 'ab'", "f = 0.1", "u IS NOT NULL",
            "k = '65a000000000000000000001'", "k > '65a000000000000000000001'", "k <> 'x'", "l > 30", "m = 0.5",
            "v = 'abc'", "v IN ('ab', 'ab ')", "v <> 'abc'", "v LIKE '%b'", "length(v) = 3", "w = 'ab '", "w LIKE 'ab_'", "w = v",
            "p = 'ab'", "p <> 'abc'", "q = 1.2", "q IN (1.3, 2)", "q <> 1.3", "q < 1.25", "z = '2020-01-01 00:00:01Z'", "z <= '2020-01-01Z'"])

    def nested_condition(self, table):
        """Returns a condition with subqueries."""
        return Nested(self.rng).condition([Source(table, table, BASE)], 1)

    # ---- statements on one table

    def insert(self):
        rng = self.rng
        table = rng.choice(WRITTEN)
        columns = rng.sample(COLUMNS, rng.randint(0, len(COLUMNS)))
        conflict = rng.choice(["", " ON CONFLICT DO NOTHING"])
        return Statement("INSERT INTO %s (%s) VALUES %s%s" % (
            table, self.names(columns), self.rows(columns, 0.12), conflict), set(), table)

    def names(self, columns):
        return ", ".join(["_id"] + [quote(c[0]) for c in columns])

    def rows(self, columns, there):
        """Returns rows for INSERT; a share of 'there' may have an existing _id."""
        rows = {}
        for _ in range(self.rng.choice([1, 1, 2, 5, 12])):
            number = self.rng.randint(0, 80) if self.rng.random() < there else self.fresh(1)
            rows[number] = "(%s)" % ", ".join([str(number)] + [self.literal(c) for c in columns])
        return ", ".join(rows.values())

    def upsert(self):
        rng = self.rng
        columns = rng.sample(COLUMNS, rng.randint(1, 5))
        values = "(%s) VALUES %s" % (self.names(columns), self.rows(columns, 0.6))
        return self.upserted(columns, values, {c[2] for c in columns})

    def upserted(self, columns, rows, assigned, before=""):
        sets = ", ".join("%s = excluded.%s" % (quote(c[0]), quote(c[0])) for c in columns)
        # so that RETURNING has the same table name in both
        return Statement("%sINSERT INTO upserted AS items %s" % (before, rows), assigned, "items",
                         "%sINSERT INTO items %s ON CONFLICT (_id) WHERE _id IS NULL OR _id IS NOT NULL DO UPDATE SET %s" % (before, rows, sets))

    def insert_select(self):
        rng = self.rng
        table, source = rng.choice(WRITTEN), rng.choice(list(READ))
        columns = ["a", "b", "s.x", "j", "v"] if source in WRITTEN + ["viewed"] else ["a", "b", "v"]
        outputs = [quote(c) for c in columns]
        if source == "groups":
            columns, outputs = ["a", "l"], ["many", "NULL::integer"]
        where = rng.choice(["", " AND _id < 20", " AND a IS NOT NULL" if source != "groups" else ""])
        if source == "unwound":
            where += " AND n < 9"
        return Statement("INSERT INTO %s (%s) SELECT %s + %d, %s FROM %s WHERE %s%s" % (
            table, ", ".join(["_id"] + [quote(c) for c in columns]), READ[source], self.fresh(70000 if source == "groups" else 9 * FEW),
            ", ".join(outputs), source, "_id IS NOT NULL" if source == "groups" else OLD, where), set(), table)

    def insert_what_is_read(self):
        """Returns an INSERT from the table it writes; it must not read its own rows."""
        rng = self.rng
        table, source = rng.choice(WRITTEN), rng.choice(list(READ))
        return Statement("INSERT INTO %s (_id, a, b, h, r) SELECT row_number() OVER () + %d, 5, 'copied', 5, '{5}' FROM %s WHERE %s" % (
            table, self.fresh(ENDLESS), source, "many > 0" if source == "groups" else "_id %% %d = 0" % rng.choice([1, 2, 3])), set(), table)

    def update(self):
        rng = self.rng
        table = rng.choice(WRITTEN)
        columns = rng.sample(COLUMNS, rng.choice([1, 1, 1, 2, 3]))
        assignments = []
        for column in columns:
            choices = EXPRESSIONS[column[0]]
            value = rng.choice(choices) if choices and rng.random() < 0.5 else self.literal(column)
            assignments.append("%s = %s" % (quote(column[0]), value))
        if rng.random() < 0.05 and "r" not in [c[0] for c in columns]:
            assignments.append("r[1] = 42")
            columns = columns + [c for c in COLUMNS if c[0] == "r"]
        condition = self.condition() if rng.random() < 0.8 else self.nested_condition(table)
        return Statement("UPDATE %s SET %s WHERE %s" % (table, ", ".join(assignments), condition), {c[2] for c in columns}, table)

    def update_from(self):
        table = self.rng.choice(WRITTEN)
        return Statement("UPDATE %s SET b = 'joined', a = other.k + 1 FROM other"
                         " WHERE other.k = %s._id AND other.v <> 'again' AND %s" % (
                             table, table, self.nested_condition(table)), {"b", "a"}, table)

    def delete(self):
        table = self.rng.choice(WRITTEN)
        condition = self.condition() if self.rng.random() < 0.7 else self.nested_condition(table)
        return Statement("DELETE FROM %s WHERE (%s) AND _id %% 3 = %d" % (table, condition, self.rng.randint(0, 2)), set(), table)

    def delete_using(self):
        table = self.rng.choice(WRITTEN)
        return Statement("DELETE FROM %s USING other WHERE other.k = %s.a AND %s._id %% 5 = %d" % (
            table, table, table, self.rng.randint(0, 4)), set(), table)

    def delete_direct(self):
        first = self.rng.randint(0, 1500)
        return Statement("DELETE FROM items WHERE _id BETWEEN %d AND %d" % (first, first + 2), set(), "items")

    def change_big_array(self):
        """Changes each of many elements; the time must not be quadratic."""
        where = "WHERE _id = %d" % self.rng.randint(0, 60)
        return Statement("SET LOCAL statement_timeout = '5s'; UPDATE items SET r = 9 || array_fill(5, ARRAY[60000]) %s;"
                         "UPDATE items SET r = array_replace(r, 5, 7) %s; UPDATE items SET r = r[1:%d] %s RETURNING cardinality(r)" % (
                             where, where, self.rng.choice([3, 500]), where), {"r"})

    # ---- joined with itself

    def self_join(self):
        rng = self.rng
        table, other = rng.choice(WRITTEN), rng.choice(WRITTEN + ["viewed"])
        key = quote(rng.choice([name for names in BASE.values() for name in names]))
        few = "a._id %% 4 = %d" % rng.randint(0, 3)
        kind = rng.random()
        if kind < 0.2:
            return Statement("DELETE FROM %s AS a USING %s AS b WHERE a.%s = b.%s AND a._id > b._id AND %s" % (
                table, other, key, key, few), set(), "a")
        if kind < 0.4:
            return Statement("UPDATE %s AS a SET b = 'twin', a = a.a - 1 FROM %s AS b WHERE a.%s = b.%s AND a._id <> b._id AND %s" % (
                table, other, key, key, rng.choice([few, "b." + self.simple_condition()])), {"a", "b"}, "a")
        if kind < 0.6:
            return Statement("DELETE FROM %s AS a WHERE %sEXISTS (SELECT 1 FROM %s AS b WHERE a.%s = b.%s AND a._id > b._id) AND %s" % (
                table, rng.choice(["", "NOT "]), other, key, key, few), set(), "a")
        if kind < 0.8 and key != "j":
            return Statement("DELETE FROM %s AS a WHERE _id NOT IN (SELECT min(_id) FROM %s WHERE _id >= 0 GROUP BY %s) AND %s" % (
                table, other, key, few), set(), "a")
        return Statement("UPDATE %s AS a SET l = (SELECT count(*) FROM %s AS b WHERE b.%s = a.%s) WHERE %s" % (
            table, other, key, key, few), {"l"}, "a")

    def by_row_identity(self):
        """Returns a statement that removes duplicates of rows without a key."""
        rng = self.rng
        key = quote(rng.choice(["a", "b", "h", "v", "r", "_id"]))
        return Statement(rng.choice([
            "DELETE FROM items AS a USING items AS b WHERE a.ctid < b.ctid AND a.%s = b.%s" % (key, key),
            "DELETE FROM items WHERE ctid NOT IN (SELECT min(ctid) FROM items GROUP BY %s)" % key,
            "DELETE FROM items AS a WHERE EXISTS (SELECT 1 FROM items AS b WHERE b.%s = a.%s AND b.ctid <> a.ctid)" % (key, key),
            "UPDATE items SET b = 'some' WHERE ctid IN (SELECT ctid FROM items LIMIT %d)" % rng.choice([1, 3, 20]),
            "DELETE FROM items WHERE ctid = ANY (ARRAY(SELECT ctid FROM items ORDER BY _id LIMIT 3))"]), free=True)

    def simple_condition(self):
        return self.rng.choice(["_id < 30", "a > 3", "b = 'x'", "v = 'abc'", "_id IS NOT NULL"])

    # ---- statements with parts that write

    def part(self, parity):
        """Returns (SQL, kind) of a part that writes and returns rows with an even, or odd, _id."""
        rng = self.rng
        table = rng.choice(WRITTEN)
        kind = rng.choice(["DELETE", "DELETE", "UPDATE", "INSERT"])
        condition = "(%s) AND %s._id %% 2 = %d" % (
            self.condition() if rng.random() < 0.85 else self.nested_condition(table), table, parity)
        if kind == "DELETE":
            return "DELETE FROM %s WHERE %s AND _id %% 3 = %d RETURNING *" % (table, condition, rng.randint(0, 2)), kind
        if kind == "UPDATE":
            return "UPDATE %s SET %s WHERE %s RETURNING *" % (table, rng.choice(["b = b || '!'", "a = 3", "b = 'part', v = 'ab '", "l = 7"]), condition), kind
        rows = ", ".join("(%d, %d, 'made')" % (self.fresh(2) // 2 * 2 + parity, rng.randint(0, 9)) for _ in range(rng.choice([1, 3, 7])))
        return "INSERT INTO %s (_id, a, b) VALUES %s%s RETURNING *" % (table, rows, rng.choice(["", " ON CONFLICT DO NOTHING"])), kind

    def with_parts(self):
        rng = self.rng
        part, kind = self.part(0)
        head = "WITH part AS (%s) " % part
        table, other = rng.choice(WRITTEN), rng.choice(WRITTEN)
        odd = "%s._id %% 2 = 1" % table
        choice = rng.random()
        if choice < 0.15:
            return Statement(head + rng.choice([
                "SELECT * FROM part", "SELECT count(*), sum(_id) FROM part", "SELECT b, count(*) FROM part GROUP BY b", "SELECT 1 FROM part LIMIT 1",
                "SELECT part._id, other.v FROM part JOIN other ON other.k = part._id", "SELECT count(*) FROM other",
                "SELECT part._id FROM part LEFT JOIN kept ON kept._id = part.a"]))
        if choice < 0.4:
            # the same keys, of rows that are deleted or that exist
            conflict = rng.choice(["", " ON CONFLICT DO NOTHING"] if kind == "DELETE" else [" ON CONFLICT DO NOTHING"] * 5 + [""])
            key = rng.choice(["_id", "_id", "_id + %d" % self.fresh(FEW)])
            return Statement(head + "INSERT INTO %s (_id, a, b, v) SELECT %s, a, 'from part', v FROM part WHERE %s%s%s" % (
                table, key, OLD, rng.choice(["", "", " ORDER BY a", " AND a > 0"]), conflict), None, table,
                # refused: a subquery for each row that follows a row that ON CONFLICT has sent
                free=conflict != "" and "(SELECT" in part)
        if choice < 0.5 and kind == "DELETE":
            columns = [c for c in COLUMNS if c[0] in ("a", "b", "v")]
            return self.upserted(columns, "(_id, a, b, v) SELECT _id, a, 'upserted', v FROM part WHERE true", None, head)
        if choice < 0.6:
            return Statement(head + "UPDATE %s SET b = 'after', a = %s.a FROM part WHERE %s.a = part._id AND %s" % (table, table, table, odd), None, table)
        if choice < 0.7:
            return Statement(head + "DELETE FROM %s USING part WHERE %s._id = part._id + 1 AND %s" % (table, table, odd), None, table)
        if choice < 0.8:
            return Statement(head + rng.choice([
                "INSERT INTO kept SELECT _id, a, b FROM part ON CONFLICT (_id) DO UPDATE SET b = 'kept'",
                "MERGE INTO kept USING part ON kept._id = part._id WHEN MATCHED THEN UPDATE SET a = part.a, b = part.b"
                " WHEN NOT MATCHED THEN INSERT VALUES (part._id, part.a, part.b)",
                "DELETE FROM kept USING part WHERE kept._id = part.a"]))
        if choice < 0.9:
            # a part whose rows are not read runs last
            return Statement(head + rng.choice([
                "SELECT count(*) FROM %s" % other, "SELECT count(*), sum(_id) FROM %s WHERE a > 3" % other,
                "INSERT INTO %s (_id, b) SELECT _id + %d, b FROM %s WHERE _id < 30" % (table, self.fresh(100), other),
                "UPDATE %s SET b = 'first' WHERE _id %% 2 = 1 AND a < 30" % table, "DELETE FROM %s WHERE _id %% 2 = 1 AND a = 5" % table]), None,
                None)
        return self.two_parts(head, kind)

    def two_parts(self, head, kind):
        rng = self.rng
        table = rng.choice(WRITTEN)
        second = rng.choice([
            self.part(1)[0],
            "INSERT INTO %s (_id, a, b) SELECT _id, a, 'second' FROM part ON CONFLICT DO NOTHING RETURNING *" % table,
            "INSERT INTO %s (_id, a, b) SELECT _id + %d, a, 'second' FROM part WHERE %s RETURNING *" % (table, self.fresh(FEW), OLD),
            "DELETE FROM %s USING part WHERE %s._id = part._id + 1 AND %s._id %% 2 = 1 RETURNING %s.*" % (table, table, table, table),
            "INSERT INTO kept SELECT _id, a, b FROM part ON CONFLICT DO NOTHING RETURNING *"])
        return Statement(head.rstrip() + ", second AS (%s) %s" % (second, rng.choice([
            "SELECT (SELECT count(*) FROM part), (SELECT sum(_id) FROM second)", "SELECT _id, a, b FROM part UNION ALL SELECT _id, a, b FROM second",
            "SELECT count(*) FROM second", "SELECT part._id, second._id FROM part FULL JOIN second ON second._id = part._id + 1",
            "INSERT INTO kept SELECT _id, a, b FROM second ON CONFLICT DO NOTHING"])))

    def merge(self):
        source = self.rng.choice(["items", "parted", "viewed", "again"])
        return Statement("MERGE INTO kept USING (SELECT * FROM %s WHERE _id < %d) AS s ON kept._id = s._id WHEN MATCHED AND s.a > 3 THEN DELETE"
                         " WHEN MATCHED THEN UPDATE SET b = s.b, a = s.a WHEN NOT MATCHED THEN INSERT VALUES (s._id, s.a, s.b)" % (
                             source, self.rng.choice([5, 20])))

    # ---- scans that continue while the session writes

    def loop(self):
        rng = self.rng
        source = rng.choice(list(READ)[:5])
        table = rng.choice(WRITTEN)
        distance = self.fresh(FEW)
        body, assigned = rng.choice([
            ("INSERT INTO %s (_id, a, b) VALUES (found._id + %d, found.a, 'looped')" % (table, distance), set()),
            ("INSERT INTO %s (_id, a, b) VALUES (rounds + %d, 5, 'looped')" % (table, self.fresh(ENDLESS)), set()),
            ("INSERT INTO %s (_id, a) SELECT rounds + %d, count(*) FROM other" % (table, self.fresh(ENDLESS)), set()),
            ("UPDATE %s SET a = found.a - 7 WHERE _id = found._id" % table, {"a"}),
            ("UPDATE %s SET b = 'looped' WHERE a = found.a" % table, {"b"}),
            ("DELETE FROM %s WHERE _id = found._id" % table, set()),
            ("DELETE FROM %s WHERE _id = found._id + 1" % table, set())])
        where = rng.choice(["_id IS NOT NULL", "a >= 0", "_id >= 0 ORDER BY _id", "_id %% %d = 1" % rng.choice([2, 3, 5])])
        if "+ %d" % distance in body:
            where = OLD + " AND " + where
        return Statement(LOOP % ("SELECT _id, a FROM %s WHERE %s" % (source, where), ENDLESS, body), assigned)

    def cursor(self):
        """Returns how many rows a cursor still has after others were written."""
        rng = self.rng
        source, table = rng.choice(list(READ)[:5]), rng.choice(WRITTEN)
        distance = self.fresh(FEW)
        write, assigned = rng.choice([
            ("INSERT INTO %s (_id, a, b) SELECT _id + %d, a, 'opened' FROM items WHERE %s" % (table, distance, OLD), set()),
            ("DELETE FROM %s WHERE _id %% 3 = 1" % table, set()), ("UPDATE %s SET a = a - 1" % table, {"a"}),
            ("UPDATE %s SET b = b || '?' WHERE a > 3" % table, {"b"})])
        return Statement("CLOSE ALL; DECLARE reading CURSOR FOR SELECT _id, a FROM %s%s; FETCH %d FROM reading; %s; MOVE FORWARD ALL IN reading" % (
            source, rng.choice(["", " WHERE a >= 0", " ORDER BY a"]), rng.choice([1, 3, 20]), write), assigned)

    # ---- documents with any _id

    def document(self):
        rng = self.rng
        key = rng.choice(["1", "2", "2.0", '"a"', "null", '{"k": 1}', '{"k": {"$gt": 0}}', '{"$exists": false}', '{"$gt": 0}', '{"$eq": 1}', '{"$in": [1]}',
                          "{}", '{"k": 1, "l": null}', "true", "[1]"])
        if rng.random() < 0.6:
            value, conflict = rng.randint(0, 5), rng.choice(["", " ON CONFLICT DO NOTHING", " ON CONFLICT DO NOTHING"])
            # MongoDB 6.0.27 rejects this _id in an insert, but not in an upsert
            if key == '{"k": {"$gt": 0}}':
                conflict = ""
            return Statement("INSERT INTO whole VALUES ('{\"_id\": %s, \"x\": %d}')%s" % (key, value, conflict), set(), "whole")
        where = rng.choice(["__doc -> '_id' = '%s'" % key, "(__doc ->> 'x')::integer > 2", "__doc @> '{\"_id\": %s}'" % key])
        return Statement(rng.choice(["DELETE FROM whole WHERE ", "UPDATE whole SET __doc = __doc || '{\"y\": [1]}' WHERE "]) + where, set(), "whole")

    def statement(self, there):
        """Returns the next statement; 'there' is the number of documents."""
        if there > MANY:
            return Statement("DELETE FROM items WHERE _id >= %d" % FEW, set(), "items")
        makers = {self.insert: 20, self.upsert: 5, self.insert_select: 4, self.insert_what_is_read: 4, self.update: 40, self.update_from: 5, self.delete: 4, self.delete_using: 2,
                  self.delete_direct: 6, self.change_big_array: 0.2, self.self_join: 7, self.by_row_identity: 1, self.with_parts: 20, self.merge: 2, self.loop: 6,
                  self.cursor: 3, self.document: 8}
        statement = self.rng.choices(list(makers), list(makers.values()))[0]()
        if statement.written and self.rng.random() < 0.3:
            more = " RETURNING %s.*" % statement.written
            statement.sql += more
            statement.local += more
        return statement
