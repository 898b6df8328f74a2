"""Two databases of one server with the same tables: ordinary ones, and foreign ones over MongoDB."""

import io
import re

import psycopg2
import psycopg2.extensions
import pymongo

from translate import Translator

# Types whose values MongoDB returns as they were written.  Of the others, timestamps are
# rounded to milliseconds, dates cannot be infinite, json loses its blanks.
FAITHFUL = """boolean smallint integer bigint real double\\ precision numeric text character character\\ varying name bytea uuid
    jsonb bit bit\\ varying inet time\\ without\\ time\\ zone""".replace("\\ ", "\0").split()
FAITHFUL = [name.replace("\0", " ") for name in FAITHFUL]
CANDIDATES = """
    SELECT c.oid, n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_toast'
        AND (c.relpersistence <> 't' OR n.oid = pg_my_temp_schema())
        AND NOT c.relispartition AND NOT c.relhassubclass AND NOT c.relhasrules AND NOT c.relhastriggers AND NOT c.relrowsecurity
        AND c.reloftype = 0 AND NOT EXISTS (SELECT FROM pg_inherits WHERE inhrelid = c.oid)
        AND NOT EXISTS (SELECT FROM pg_constraint WHERE conrelid = c.oid AND contype NOT IN ('p', 'u'))
        AND NOT EXISTS (SELECT FROM pg_constraint WHERE confrelid = c.oid)
        AND NOT EXISTS (SELECT FROM pg_attribute WHERE atttypid IN (c.reltype, (SELECT typarray FROM pg_type t WHERE t.oid = c.reltype)))
        AND NOT EXISTS (SELECT FROM pg_depend d WHERE refclassid = 'pg_class'::regclass AND refobjid = c.oid AND classid = 'pg_rewrite'::regclass)
        AND NOT EXISTS (SELECT FROM pg_index WHERE indrelid = c.oid AND indisunique AND (indpred IS NOT NULL OR indexprs IS NOT NULL))
        AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND attnum > 0 AND NOT attisdropped)
        AND NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND attnum > 0 AND attnotnull		-- which nobody would enforce
            AND NOT EXISTS (SELECT FROM pg_index i WHERE indrelid = a.attrelid AND indisprimary AND attnum = ANY (indkey)))
        AND NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND attnum > 0 AND NOT attisdropped
            AND (attgenerated <> '' OR attidentity <> '' OR attcollation NOT IN (0, 100, 950)
                OR format_type(regexp_replace(atttypid::regtype::text, '\\[\\]$', '')::regtype, NULL) <> ALL (%s)))
    ORDER BY c.oid"""


def texts_only():
    """Makes all values texts, as PostgreSQL writes them."""
    oids = tuple(psycopg2.extensions.string_types)
    psycopg2.extensions.register_type(psycopg2.extensions.new_type(oids, "TEXT_OF_ANY", lambda value, _: value))


class Outcome:
    """The outcome of a statement: rows, a number of rows, or an error."""

    def __init__(self, rows=None, count=None, error=None):
        self.rows, self.count = rows, count
        self.sqlstate = error.pgcode or "no connection" if error is not None else None
        self.message = str(error).strip() if error is not None else None

    def is_same(self, other):
        if self.sqlstate is not None or other.sqlstate is not None:
            return self.sqlstate == other.sqlstate
        if self.rows is None or other.rows is None:
            return self.rows is other.rows and self.count == other.count
        return sorted(map(repr, self.rows)) == sorted(map(repr, other.rows))

    def __str__(self):
        if self.sqlstate is not None:
            return f"{self.sqlstate}: {self.message}"
        if self.rows is None:
            return f"{self.count} rows"
        shown = "\n".join("    " + "|".join("NULL" if value is None else str(value) for value in row)[:200] for row in self.rows[:12])
        return f"{len(self.rows)} rows\n{shown}"


class Side:
    """A session in one of the two databases."""

    def __init__(self, database):
        self.connection = psycopg2.connect(dbname=database)
        self.connection.autocommit = True
        self.run("SET statement_timeout = '120s'")

    def run(self, statement, data=None):
        with self.connection.cursor() as cursor:
            try:
                if data is not None:
                    cursor.copy_expert(statement, io.StringIO(data))
                elif re.match(r"copy\b.*\bto\s+stdout\b", statement, re.I | re.DOTALL):
                    output = io.StringIO()
                    cursor.copy_expert(statement, output)
                    return Outcome(rows=[(line,) for line in output.getvalue().splitlines()])
                else:
                    cursor.execute(statement)
                return Outcome(rows=cursor.fetchall() if cursor.description else None, count=cursor.rowcount)
            except psycopg2.Error as error:
                return Outcome(error=error)

    def must(self, statement):
        outcome = self.run(statement)
        if outcome.sqlstate is not None:
            raise RuntimeError(f"{statement}: {outcome}")
        return outcome.rows

    def is_in_transaction(self):
        return self.connection.info.transaction_status != psycopg2.extensions.TRANSACTION_STATUS_IDLE

    def close(self):
        self.connection.close()


class ForeignSide(Side):
    """Replaces new ordinary tables by foreign tables."""

    def __init__(self, database, mongo, mongo_database):
        super().__init__(database)
        self.mongo = mongo[mongo_database]
        self.seen = set()
        self.converted = []
        self.kept = set()		# tables that remain ordinary ones
        self.indexes = 0
        self.translator = Translator(lambda name: self.collection_of(name) is not None)

    def collection_of(self, name):
        """Returns the collection of a foreign table; None for any other table."""
        if self.connection.info.transaction_status == psycopg2.extensions.TRANSACTION_STATUS_INERROR:
            return None
        with self.connection.cursor() as cursor:
            cursor.execute("""SELECT split_part(option, '=', 2) FROM pg_foreign_table, unnest(ftoptions) option
                WHERE ftrelid = to_regclass(%s) AND option LIKE 'collection=%%'""", [name])
            found = cursor.fetchone()
            return found[0] if found else None

    def run_translated(self, statement, data=None):
        statement = statement.replace("regress_", "regresf_")		# roles belong to the cluster
        statements, index = self.translator.translate(statement)
        if index is not None and not self.is_in_transaction():		# it would wait for the transaction's end
            self.make_index(*index)
        outcome = Outcome(count=-1)
        for translated in statements:
            outcome = self.run(translated, data)
            if outcome.sqlstate is not None:
                break
        if outcome.rows is not None:
            outcome.rows = [tuple(value and value.replace("regresf_", "regress_") for value in row) for row in outcome.rows]
        return outcome

    def make_index(self, table, keys, is_unique):
        partial = {"partialFilterExpression": {key: {"$exists": True} for key in keys}} if is_unique else {}
        self.indexes += 1
        try:
            self.mongo[self.collection_of(table)].create_index([(key, 1) for key in keys], name=f"i{self.indexes}", unique=is_unique, **partial)
        except pymongo.errors.PyMongoError as error:
            print(f"    no index on {table}: {str(error)[:100]}")

    def convert(self):
        """Converts new tables to foreign tables if possible."""
        outcome = self.run(CANDIDATES.replace("%s", "ARRAY[" + ", ".join(f"'{name}'" for name in FAITHFUL) + "]"))
        for oid, schema, name in outcome.rows or []:
            if oid not in self.seen and name not in self.kept:
                self.seen.add(oid)
                self.convert_table(oid, schema, name)

    def convert_table(self, oid, schema, name):
        in_transaction = self.is_started_by_script = self.is_in_transaction()
        self.must("SAVEPOINT conversion" if in_transaction else "BEGIN")
        try:
            self.make_foreign(oid, schema, name)
            self.must("RELEASE conversion" if in_transaction else "COMMIT")
            self.converted.append(name)
        except (RuntimeError, pymongo.errors.PyMongoError) as error:
            self.must("ROLLBACK TO conversion; RELEASE conversion" if in_transaction else "ROLLBACK")
            print(f"    {name} stays an ordinary table: {str(error).splitlines()[0][-100:]}")

    def make_collection(self, collection, indexes):
        """Creates a collection with indexes like PostgreSQL's, each set of keys once."""
        self.mongo.create_collection(collection)
        made = set()
        for names, is_unique, is_primary in sorted(indexes, key=lambda index: index[1], reverse=True):
            keys = tuple(names.split(","))
            if keys not in made:
                made.add(keys)
                partial = {"partialFilterExpression": {key: {"$exists": True} for key in keys}} if is_unique == "t" and is_primary == "f" else {}
                self.mongo[collection].create_index([(key, 1) for key in keys], unique=is_unique == "t", **partial)

    def make_foreign(self, oid, schema, name):
        columns = self.must(f"""
            SELECT format('%I %s%s%s', attname, format_type(atttypid, atttypmod), CASE WHEN attnotnull THEN ' NOT NULL' END,
                ' DEFAULT ' || pg_get_expr(adbin, adrelid))
            FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
            WHERE attrelid = {oid} AND attnum > 0 AND NOT attisdropped ORDER BY attnum""")
        indexes = self.must(f"""
            SELECT (SELECT string_agg(attname, ',' ORDER BY array_position(indkey::int2[], attnum)) FROM pg_attribute
                WHERE attrelid = indrelid AND attnum = ANY (indkey::int2[])), indisunique, indisprimary
            FROM pg_index JOIN pg_class i ON i.oid = indexrelid JOIN pg_am a ON a.oid = relam
            WHERE indrelid = {oid} AND indexprs IS NULL AND indpred IS NULL AND amname = 'btree'
                AND NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = indrelid AND attnum = ANY (indkey::int2[]) AND attndims > 0)""")
        sequences = self.must(f"""
            SELECT objid::regclass::text FROM pg_depend
            WHERE classid = 'pg_class'::regclass AND refobjid = {oid} AND refobjsubid > 0 AND deptype = 'a'
                AND (SELECT relkind FROM pg_class WHERE pg_class.oid = objid) = 'S'""")
        collection = f"{name}_{oid}"
        target = f'"{schema}"."{name}"' if not schema.startswith("pg_temp") else f'pg_temp."{name}"'
        if not self.is_started_by_script:		# MongoDB creates no index in a transaction
            self.make_collection(collection, indexes)
        for sequence, in sequences:
            self.must(f"ALTER SEQUENCE {sequence} OWNED BY NONE")
        self.must(f'ALTER TABLE "{schema}"."{name}" RENAME TO "{name}_as_it_was"')
        self.must(f"CREATE FOREIGN TABLE {target} ({', '.join(column for column, in columns)}) SERVER mongodb "
                  f"OPTIONS (database '{self.mongo.name}', collection '{collection}')")
        self.must(f'INSERT INTO {target} SELECT * FROM "{schema}"."{name}_as_it_was"')
        lost = self.must(f'''SELECT count(*) FROM (TABLE "{schema}"."{name}_as_it_was" EXCEPT ALL TABLE {target}) lost''')
        if lost != [("0",)]:
            raise RuntimeError("not all rows come back")
        self.must(f'DROP TABLE "{schema}"."{name}_as_it_was"')
        for found in self.must(f"SELECT '{target}'::regclass::oid"):
            self.seen.add(found[0])
