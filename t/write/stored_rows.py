#!/usr/bin/env python3
"""Rows that INSERT and UPDATE return, and that triggers see, are the rows that are read afterwards.

    t/write/stored_rows.py --dsn "..." --mongo URI --seed 1 --statements 600

Random values, of types that MongoDB stores in another form, are written to tables whose columns
share fields.  RETURNING and an AFTER ROW trigger must show what SELECT shows.
"""

import random
import sys

import psycopg2

from both_servers import BothServers
import test_arguments

SET_UP = """
    CREATE TYPE place AS (city text, since timestamptz, n numeric);
    CREATE DOMAIN moment AS timestamptz;
    CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN PERFORM set_config('mongo_fdw_test.seen', NEW::text, false); RETURN NULL; END $$;
    CREATE FOREIGN TABLE flat (_id int, ts timestamptz, t timestamp, m moment, n numeric, j jsonb, js json, tss timestamptz[], ja jsonb[],
        p place, ps place[], iv interval, span tstzrange, f float8 OPTIONS (bson_type 'int'), i int[]) {options} 'flat'{mismatch});
    CREATE FOREIGN TABLE shared (_id int, x jsonb, "x.y" timestamptz, "x.z" jsonb, "x.z.w" int, w bigint OPTIONS (path 'x.z.w'),
        a jsonb, "a.0" jsonb, "a.1.b" int, p place, "p.city" text, "p.more" int, __doc jsonb) {options} 'shared'{mismatch});
    CREATE FOREIGN TABLE ordered (_id int, __doc json, x json, "x.b" int, "x.a" text, "x.10" int, "x.9" jsonb, b numeric, c jsonb, aa int)
        {options} 'ordered', canonical_json 'true'{mismatch});
"""
TABLES = {
    "flat": "_id ts t m n j js tss ja p ps iv span f i".split(),
    "shared": '_id x "x.y" "x.z" "x.z.w" w a "a.0" "a.1.b" p "p.city" "p.more" __doc'.split(),
    "ordered": '_id __doc x "x.b" "x.a" "x.10" "x.9" b c aa'.split(),
}
NUMBERS = ["0", "-7", "5", "2000000000"]
JSON = ["{}", "null", "1.50", "12345678901234567890123", '{"y": null, "z": {"w": 5}}', '{"y": {"$date": "2020-01-01T00:00:00.001Z"}, "q": [1, 2.0]}',
        '[1, {"b": 3, "c": null}, 3]', "[]", '"s"', '{"b": 1, "a": "t", "w": 7, "z": {}, "k": {"$numberDecimal": "1.10"}}',
        '{"$timestamp": {"t": 5, "i": 1}}', "5"]
MOMENTS = ["2020-01-01 00:00:00.123456", "1960-05-05 05:05:05.9999", "2021-02-03"]
PLACES = ["(a,2020-01-01 00:00:00.0005,1.10)", "(,,)", "(b,,)"]
VALUES = {
    "ts": MOMENTS, "t": MOMENTS, "m": MOMENTS, "n": ["1.10", "1." + "0" * 40, "NaN", "1e30"], "f": ["-0", "5"], "i": ["{}", "[0:1]={1,2}", "{1,NULL}"],
    "tss": ['{"2020-01-01 00:00:00.123456"}', "[5:6]={2020-01-01,NULL}"], "ja": ['{"1.50","null",NULL}', "{}"], "p": PLACES,
    "ps": ['{"(a,2020-01-01,1.10)",NULL}'], "iv": ["1 mon 2.5 s", "-3 days"], "span": ["[2020-01-01 00:00:00.123456,)", "empty"],
    '"x.y"': MOMENTS, '"p.city"': ["c", ""], '"x.a"': ["t", ""],
    "js": JSON, "j": JSON, "x": JSON, '"x.z"': JSON, "a": JSON, '"a.0"': JSON, '"x.9"': JSON, "c": JSON, "b": ["1.10", "2"],
    "__doc": ['{"x": {"y": 1}}', '{"x": {"z": {"w": 3}}, "a": [{"b": 1}, {"b": 2}], "new": 1}', '{"b": 1.5, "x": {"a": "t"}}', "{}"],
}
CHANGES = {"j": ["j || '{\"n\": 1.50}'", "j - 'y'", "jsonb_set(j, '{z}', '12345678901234567890123')"], "x": ["x || '{\"n\": 1.50}'", "x - 'z'", "jsonb_set(x, '{z,w}', '8')"],
           "a": ["a - 0", "a || '5'"], "i": ["i || 9"], "p": ["ROW('z', (p).since, (p).n)::place"], "c": ["c || '{\"bb\": 1, \"a\": 2.50}'"]}


class StoredRows(BothServers):
    def run(self):
        rng = random.Random(self.options.seed)
        mismatch = rng.choice(["", ", type_mismatch 'null'"])
        self.client.drop_database("stored")
        self.execute("DROP SCHEMA IF EXISTS stored CASCADE; CREATE SCHEMA stored; SET search_path = stored, public; SET timezone = 'UTC';" +
                     SET_UP.replace("{options}", "SERVER %s OPTIONS (database 'stored', collection" % self.options.server).replace("{mismatch}", mismatch))
        for table in TABLES:
            self.execute("CREATE TRIGGER see AFTER INSERT OR UPDATE ON %s FOR EACH ROW EXECUTE FUNCTION see()" % table)
        failed = differences = 0
        for number in range(self.options.statements):
            table = rng.choice(list(TABLES))
            sql = self.statement(rng, table, number)
            try:
                returned = self.execute(sql)
            except psycopg2.Error as error:
                if self.connection.closed or error.pgcode in ("XX000", "08P01", "42601", "42703"):
                    raise ValueError(sql) from error
                failed += 1
                continue
            for row, in returned:
                differences += self.differs(table, row, sql)
        print("seed %d: %d statements, %d failed by themselves; %d differences" % (self.options.seed, self.options.statements, failed, differences))
        return differences == 0

    def differs(self, table, row, sql):
        try:
            stored = self.execute("SELECT %s::text FROM %s WHERE _id = %s" % (table, table, row[1:].split(",")[0]))[0][0]
        except psycopg2.Error as error:
            stored = "%s %s" % (error.pgcode, error)
        seen = self.execute("SELECT current_setting('mongo_fdw_test.seen')")[0][0]
        if row == stored == seen:
            return False
        print("DIFFERENCE: %s\n  returned %s\n  seen     %s\n  stored   %s" % (sql, row, seen, stored))
        return True

    def literal(self, rng, column):
        return "NULL" if rng.random() < 0.15 else "'%s'" % rng.choice(VALUES.get(column, NUMBERS))

    def statement(self, rng, table, number):
        """Returns a statement that returns each row as text."""
        columns = TABLES[table][1:]
        if rng.random() < 0.4:
            given = rng.sample(columns, rng.randint(1, 3))
            if "__doc" in given:
                document = rng.choice(VALUES["__doc"]).replace("{", '{"_id": %d, ' % number, 1).replace(", }", "}")
                return "INSERT INTO %s (__doc) VALUES ('%s') RETURNING %s::text" % (table, document, table)
            return "INSERT INTO %s (_id, %s) VALUES (%d, %s) RETURNING %s::text" % (
                table, ", ".join(given), number, ", ".join(self.literal(rng, column) for column in given), table)
        given = rng.sample(columns, rng.choice([1, 1, 2]))
        if "__doc" in given:
            given = ["__doc"]
        assignments = ["%s = %s" % (column, rng.choice(CHANGES[column]) if column in CHANGES and (table, column) != ("ordered", "x") and rng.random() < 0.5 else self.literal(rng, column))
                       for column in given]
        return "UPDATE %s SET %s WHERE _id = (SELECT _id FROM %s WHERE _id >= %d ORDER BY _id LIMIT 1) RETURNING %s::text" % (
            table, ", ".join(assignments), table, rng.randrange(number + 1), table)


def main():
    parser = test_arguments.parser(__doc__)
    parser.add_argument("--server", default="mongodb")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--statements", type=int, default=600)
    options = parser.parse_args()
    sys.exit(0 if StoredRows(options).run() else 1)


if __name__ == "__main__":
    main()
