#!/usr/bin/env python3
"""Random cursors over tables of one server; each row is checked.

Opens cursors over foreign tables whose rows are known, and interleaves FETCH, CLOSE,
savepoints, errors, cancels, nested queries, writes and changes of the server's options.
"""

import argparse
import collections
import random
import threading
import time

import psycopg2
import psycopg2.extensions

TABLES = 6
ROWS = 120

SETUP = """
CREATE TABLE parts (_id int, k int, info text) PARTITION BY LIST (k);
DO $do$ BEGIN FOR i IN 1..{tables} LOOP EXECUTE format(
    'CREATE FOREIGN TABLE part%1$s PARTITION OF parts FOR VALUES IN (%1$s) SERVER mongodb'
    ' OPTIONS (database ''cursors'', collection ''part%1$s'', fetch_size ''%2$s'')', i, 7 * i);
END LOOP; END $do$;
CREATE FOREIGN TABLE notes (_id int, k int, info text) SERVER mongodb
    OPTIONS (database 'cursors', collection 'notes', fetch_size '10');
CREATE FUNCTION same(n int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE found int;
BEGIN
    PERFORM _id FROM part1 WHERE _id > n % 600 LIMIT 9;
    SELECT _id INTO found FROM parts WHERE _id = n;
    IF found IS DISTINCT FROM n THEN RAISE 'found % for %', found, n; END IF;
    RETURN n;
END $$;
CREATE FUNCTION same_after_error(n int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE one record;
BEGIN
    IF n % 5 > 0 THEN RETURN n; END IF;
    BEGIN
        FOR one IN SELECT _id, 1 / (_id % 40 - 30) AS i FROM parts WHERE _id > n LOOP NULL; END LOOP;
    EXCEPTION WHEN division_by_zero THEN NULL;
    END;
    RETURN n;
END $$;
CREATE PROCEDURE walk(INOUT total bigint) LANGUAGE plpgsql AS $$
DECLARE one record;
BEGIN
    total := 0;
    FOR one IN SELECT _id FROM parts WHERE _id <= 200 LOOP
        total := total + one._id;
        IF one._id % 50 = 0 THEN COMMIT; END IF;
    END LOOP;
END $$;
"""


def text_of(number):
    return f"{number} " + "x" * (number * 37 % 400)


def key_of(number):
    return (number - 1) % TABLES + 1


NUMBERS = range(1, TABLES * ROWS + 1)
WALKED = sum(n for n in NUMBERS if n <= 200)


class Wrong(Exception):
    """A result that differs from the tables' contents."""


Cursor = collections.namedtuple("Cursor", "name query expected ordered holds level seen")


class Session:
    """One session, its open cursors and the rows that they must return."""

    def __init__(self, dsn, chance):
        self.chance = chance
        self.counts = collections.Counter()
        self.connection = psycopg2.connect(dsn)
        self.connection.autocommit = True
        self.cursors = []
        self.savepoints = []
        self.in_transaction = False
        self.number = 0
        self.notes = self.read_notes()

    def run(self, sql):
        self.last = sql
        with self.connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall() if cursor.description else None

    def read_notes(self):
        return {n for n, in self.run("SELECT _id FROM notes")}

    # ---- steps; each returns a name of what it does ----

    def begin(self):
        self.run("BEGIN")
        self.in_transaction = True
        self.run("SET LOCAL enable_async_append = " + self.chance.choice(["on", "on", "off"]))
        self.run("SET LOCAL enable_sort = " + self.chance.choice(["on", "off"]))
        self.run("SET LOCAL enable_hashjoin = " + self.chance.choice(["on", "off"]))
        self.run("SET LOCAL enable_material = " + self.chance.choice(["on", "off"]))
        self.run("SET LOCAL cursor_tuple_fraction = " + self.chance.choice(["1", "0.01"]))
        self.run("SET LOCAL parallel_setup_cost = " + self.chance.choice(["0", "1000"]))

    def end(self, how):
        self.run(how)
        self.forget_transaction(how == "COMMIT")

    def forget_transaction(self, committed):
        self.in_transaction = False
        self.savepoints = []
        self.cursors = [c for c in self.cursors if c.holds and (committed or c.level is None)]
        self.cursors = [c._replace(level=None) for c in self.cursors]
        # without transactions of MongoDB's nothing is undone
        self.notes = self.read_notes()

    def declare(self):
        chance = self.chance
        low = chance.choice([0, 0, 100, 500, 700])
        table = chance.choice(["parts", "parts", f"part{chance.randint(1, TABLES)}"])
        column = chance.choices(["_id", "same(_id)", "same_after_error(_id)"], [6, 1, 1])[0]
        where = chance.choice(["", "", "AND same(_id) > 0 ", "AND same_after_error(_id) > 0 "])
        if where or column != "_id":
            low = chance.choice([600, 690])
        elif chance.random() < 0.3:
            table = "notes"
        ordered = chance.random() < 0.3
        expected = [n for n in (self.notes if table == "notes" else NUMBERS)
                    if n > low and (table in ("parts", "notes") or f"part{key_of(n)}" == table)]
        kind = chance.choices(["plain", "join", "union"], [6, table != "notes", 2])[0]
        if kind == "join":
            query = (f"SELECT a._id, b.k, b.info FROM {table} a JOIN parts b ON b._id = a._id"
                     f" WHERE a._id > {max(low, 600)}")
            expected = [n for n in expected if n > 600]
            ordered = False
        elif kind == "union":
            query = (f"SELECT _id, k, info FROM {table} WHERE _id > {low} UNION ALL"
                     f" SELECT _id, k, info FROM part2 WHERE _id > {low}")
            expected = expected + [n for n in NUMBERS if n > low and key_of(n) == 2]
            ordered = False
        else:
            query = f"SELECT {column}, k, info FROM {table} WHERE _id > {low} {where}"
            query += "ORDER BY _id" if ordered else ""
        # PostgreSQL's assertions fail for exception blocks in queries that COMMIT runs
        holds = "after_error" not in query and chance.random() < 0.1
        self.number += 1
        name = f"c{self.number}"
        cursor = Cursor(name, query, collections.Counter(expected), ordered, holds,
                        len(self.savepoints), [])
        self.run(f"DECLARE {name} NO SCROLL CURSOR {'WITH HOLD ' if holds else ''}FOR {query}")
        self.cursors.append(cursor)

    def write(self):
        first = self.chance.randint(1, 300)
        last = first + self.chance.choice([0, 10, 100, 300])
        if self.chance.random() < 0.5:
            self.run(f"DELETE FROM notes WHERE _id BETWEEN {first} AND {last}")
            self.notes -= set(range(first, last + 1))
        else:
            self.run(f"INSERT INTO notes SELECT n, (n - 1) % {TABLES} + 1, n || ' ' || repeat('x', n * 37 % 400)"
                     f" FROM generate_series({first}, {last}) n ON CONFLICT DO NOTHING")
            self.notes |= set(range(first, last + 1))
        self.counts["writes"] += 1

    def check(self, cursor, rows, complete):
        for number, key, info in rows:
            if key != key_of(number) or info != text_of(number):
                raise Wrong(f"row {number}, {key}, {info[:20]}")
            cursor.seen.append(number)
        seen = collections.Counter(cursor.seen)
        if seen - cursor.expected:
            raise Wrong(f"too many: {seen - cursor.expected} of {cursor.query}")
        if cursor.ordered and cursor.seen != sorted(cursor.seen):
            raise Wrong(f"order: {cursor.seen} of {cursor.query}")
        if complete and seen != cursor.expected:
            raise Wrong(f"too few: {cursor.expected - seen} of {cursor.query}")

    def fetch(self):
        cursor = self.chance.choice(self.cursors)
        count = self.chance.choice([1, 1, 2, 5, 20, 100, 1000])
        rows = self.run(f"FETCH {count} FROM {cursor.name}")
        self.counts["rows"] += len(rows)
        self.check(cursor, rows, len(rows) < count)

    def close(self):
        cursor = self.chance.choice(self.cursors)
        self.run(f"CLOSE {cursor.name}")
        self.cursors.remove(cursor)

    def savepoint(self):
        self.number += 1
        self.savepoints.append(f"s{self.number}")
        self.run(f"SAVEPOINT s{self.number}")

    def rollback_to(self):
        index = self.chance.randrange(len(self.savepoints))
        self.run(f"ROLLBACK TO {self.savepoints[index]}")
        del self.savepoints[index + 1:]
        self.cursors = [c for c in self.cursors if c.level is None or c.level <= index]

    def nested(self):
        if self.chance.random() < 0.5:
            found = self.run("SELECT sum(_id) FROM parts WHERE same(_id) > 700")
            if found[0][0] != sum(range(701, NUMBERS[-1] + 1)):
                raise Wrong(f"sum: {found}")
        else:
            found = self.run("SELECT count(*), sum(_id), min(length(info)) FROM parts"
                             " WHERE info = _id || ' ' || repeat('x', _id * 37 % 400)")
            if found[0][:2] != (len(NUMBERS), sum(NUMBERS)):
                raise Wrong(f"sum: {found}")

    def fail(self):
        """An error, or a cancel, within a savepoint."""
        self.savepoint()
        cursors = [c for c in self.cursors if not c.holds or c.level is not None]
        victim = None
        try:
            what = self.chance.randrange(4)
            if what == 0:
                self.run("SELECT 1 / (_id - 300) FROM parts")
            elif what == 1:
                self.run("SET LOCAL statement_timeout = " + str(self.chance.randint(1, 12)))
                self.run("SELECT same_after_error(_id) FROM parts")
            elif what == 2:
                timer = threading.Timer(self.chance.random() * 0.03, self.connection.cancel)
                timer.start()
                try:
                    self.run("SELECT same(_id) FROM parts")
                finally:
                    timer.join()
            elif cursors:
                # a cursor whose FETCH fails is no longer usable
                self.run("SET LOCAL statement_timeout = 1")
                victim = self.chance.choice(cursors)
                rows = self.run(f"FETCH 1000 FROM {victim.name}")
                self.check(victim, rows, len(rows) < 1000)
                victim = None
        except psycopg2.Error as error:
            if error.pgcode not in ("22012", "57014"):
                raise
            self.counts[error.pgcode] += 1
            if victim is not None:
                self.cursors.remove(victim)
        name = self.savepoints.pop()
        if self.connection.info.transaction_status == psycopg2.extensions.TRANSACTION_STATUS_INTRANS:
            # the cancel may take effect only here
            try:
                time.sleep(0.001)
                self.run("SELECT 1")
            except psycopg2.Error:
                pass
        self.run(f"ROLLBACK TO {name}")
        self.run(f"RELEASE {name}")

    def alter(self):
        self.run(f"ALTER SERVER mongodb OPTIONS (SET async_connections '{self.chance.choice([1, 1, 2, 3, 8])}')")

    def resize(self):
        if not self.cursors:
            self.run(f"ALTER FOREIGN TABLE part{self.chance.randint(1, TABLES)} OPTIONS"
                     f" (SET fetch_size '{self.chance.choice([1, 2, 3, 10, 50, 10000])}')")

    def walk(self):
        found = self.run("CALL walk(0)")
        if found[0][0] != WALKED:
            raise Wrong(f"walk: {found}")

    def step(self):
        chance = self.chance
        if not self.in_transaction:
            steps = [(self.begin, 6), (self.walk, 1), (self.alter, 2), (self.resize, 2), (self.nested, 1)]
        else:
            steps = [(self.nested, 1), (self.savepoint, 2), (self.fail, 2), (self.alter, 0.3),
                     (lambda: self.end("COMMIT"), 0.7), (lambda: self.end("ROLLBACK"), 0.4)]
            if len(self.cursors) < 12:
                steps.append((self.declare, 6))
            if self.savepoints:
                steps.append((self.rollback_to, 1))
            else:
                # a transaction with a savepoint that is rolled back could not commit
                steps.append((self.write, 6))
        if self.cursors:
            steps += [(self.fetch, 20), (self.close, 1)]
        chosen = chance.choices([s for s, _ in steps], [w for _, w in steps])[0]
        self.counts["steps"] += 1
        chosen()


def set_up(dsn):
    with psycopg2.connect(dsn) as connection, connection.cursor() as cursor:
        cursor.execute(SETUP.replace("{tables}", str(TABLES)))
        cursor.execute(f"INSERT INTO notes SELECT n, (n - 1) % {TABLES} + 1, n || ' ' || repeat('x', n * 37 % 400)"
                       f" FROM generate_series(1, 200) n")
        cursor.execute(f"INSERT INTO parts SELECT n, (n - 1) % {TABLES} + 1, n || ' ' || repeat('x', n * 37 % 400)"
                       f" FROM generate_series(1, {TABLES * ROWS}) n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dsn", required=True,
                        help="a database with the extension and a server mongodb, on which async_connections is set")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=0, help="stop earlier (0: not)")
    parser.add_argument("--set-up", action="store_true", help="make and fill the tables first")
    arguments = parser.parse_args()
    if arguments.set_up:
        set_up(arguments.dsn)
    session = Session(arguments.dsn, random.Random(arguments.seed))
    session.run("SET statement_timeout = '60s'")
    end = time.time() + arguments.seconds
    try:
        while session.counts["steps"] < arguments.steps and (
                not arguments.seconds or time.time() < end):
            session.step()
    except Exception as error:
        print(f"seed {arguments.seed}, step {session.counts['steps']}: {session.last}\n{error}")
        raise SystemExit(1)
    print(f"seed {arguments.seed}: {dict(session.counts)}, all rows right")


if __name__ == "__main__":
    main()
