"""Writes of the soak test, and the outcomes that their clients see.

Each transaction writes rows of its client, writes its number to collection entry (with
a generated _id, so that a number written twice would exist twice), and may move money
between shared accounts.
"""
import psycopg2

from model import ACCOUNTS, Work, next_note

MOST_ROWS = 150                 # of a client at a time


class Writer:
    """The statements of one transaction, or a single statement."""

    def __init__(self, client, collection, server, atomic):
        self.client = client
        self.random = client.random
        self.rows = client.rows[collection]
        self.schema = client.schema(server)
        client.numbers += 1
        self.work = Work(client.numbers, atomic)

    def row(self, key):
        return self.work.after[key] if key in self.work.after else self.rows.sure.get(key)

    def keys(self, count):
        """Returns some existing keys."""
        there = [key for key in {**self.rows.sure, **self.work.after} if self.row(key) is not None]
        return self.random.sample(there, min(count, len(there)))

    def write(self, sql, values, changes):
        """Runs a statement, and records the rows that it leaves."""
        before = {key: self.rows.sure.get(key) for key in changes}
        self.work.before = {**before, **self.work.before}
        self.work.after.update(changes)
        cursor = self.client.execute(sql.format(own=f"{self.schema}.own"), values)
        if cursor.rowcount != len(changes):
            self.client.expect([f"{cursor.rowcount} rows, not {len(changes)}"], sql)
        return cursor

    def insert(self):
        key, = self.rows.new_keys(1)
        v = self.random.randrange(1000)
        self.write("INSERT INTO {own} (_id, v, note) VALUES (%s, %s, 'one')", (key, v), {key: (v, "one")})

    def insert_many(self):
        """Inserts by several commands, because batch_size is 20."""
        keys = self.rows.new_keys(self.random.randint(10, 50))
        self.write("INSERT INTO {own} (_id, v, note) SELECT i, i, 'many' FROM generate_series(%s, %s) i",
                   (keys[0], keys[-1]), {key: (key, "many") for key in keys})

    def add(self):
        """Adds by one command, which must not be applied twice."""
        keys = self.keys(self.random.choice((1, 1, 5)))
        self.write("UPDATE {own} SET v = v + 7 WHERE _id = ANY(%s)", (keys,),
                   {key: (self.row(key)[0] + 7, self.row(key)[1]) for key in keys})

    def compute(self):
        """Updates rows that PostgreSQL reads, computes, and writes by _id."""
        keys = self.keys(self.random.choice((1, 5)))
        self.write("UPDATE {own} SET note = md5(note || 'x') WHERE _id = ANY(%s)", (keys,),
                   {key: (self.row(key)[0], next_note(self.row(key)[1])) for key in keys})

    def returning(self):
        keys = self.keys(1)
        changes = {key: (self.row(key)[0] + 1, self.row(key)[1]) for key in keys}
        found = self.write("UPDATE {own} SET v = v + 1 WHERE _id = ANY(%s) RETURNING v", (keys,),
                           changes).fetchall()
        self.client.expect_equal(found, [(v,) for v, _ in changes.values()], "returning")

    def delete(self):
        surplus = len(self.rows.sure) - MOST_ROWS
        keys = self.keys(surplus + 20 if surplus > 0 else 1)
        self.write("DELETE FROM {own} WHERE _id = ANY(%s)", (keys,), {key: None for key in keys})

    def anything(self):
        if len(self.rows.sure) > MOST_ROWS:
            self.delete()
        else:
            self.random.choice((self.insert, self.insert, self.insert_many, self.add, self.add,
                                self.compute, self.returning, self.delete))()

    def enter(self):
        self.work.entered = True
        self.client.execute(f"INSERT INTO {self.schema}.entry (client, number) VALUES (%s, %s)",
                            (self.client.number, self.work.number))

    def move(self):
        amount = self.random.randint(1, 20)
        for account, change in zip(self.random.sample(range(ACCOUNTS), 2), (-amount, amount)):
            self.work.moved.append((account, change))
            self.client.execute(f"UPDATE {self.schema}.account SET balance = balance + %s WHERE _id = %s",
                                (change, account))

    def write_locally(self):
        self.work.local = True
        self.client.execute("INSERT INTO local_entry VALUES (%s, %s)",
                            (self.client.number, self.work.number))

    def look(self):
        """Checks that a transaction sees its own writes."""
        found = self.client.rows_of(f"SELECT _id, v, note FROM {self.schema}.own "
                                    "WHERE _id >= %s AND _id < %s",
                                    (self.rows.first_key, self.rows.next_key))
        self.client.expect(self.rows.wrong({key: (v, note) for key, v, note in found}, self.work),
                           "own rows in a transaction")

    def finish(self, outcome):
        self.work.outcome = outcome
        self.rows.finish(self.work)
        self.client.soak.count(f"transactions {outcome}" if self.work.atomic else
                               f"statements {outcome}")


def transaction(client):
    """Writes all or nothing on the replica set and in both databases."""
    writer = Writer(client, "set", "rs", True)
    committing = False
    try:
        isolation = client.random.choice(("READ COMMITTED", "READ COMMITTED", "REPEATABLE READ",
                                          "SERIALIZABLE"))
        client.execute(f"BEGIN ISOLATION LEVEL {isolation}")
        undone = savepoint(client, writer)
        steps = [writer.enter] + [writer.anything] * client.random.randint(1, 4)
        steps += client.random.choice(([], [writer.move]))
        steps += client.random.choice(([], [writer.write_locally]))
        client.random.shuffle(steps)
        for step in steps:
            step()
            if client.random.random() < 0.15:
                writer.look()
        if undone == "released":
            client.execute("RELEASE s")
        if client.random.random() < 0.1:
            client.execute("ROLLBACK")
            writer.finish("refused")
            return
        committing = undone != "written"
        if committing:
            client.execute("COMMIT")
            writer.finish("committed")
        else:
            client.fails_with("0A000", "COMMIT")
            writer.finish("refused")
    except psycopg2.Error as error:
        writer.finish(client.outcome_of(error, True, committing))
        raise


def savepoint(client, writer):
    """Perhaps uses a savepoint, which is released or rolled back, with or without writes."""
    chance = client.random.random()
    if chance < 0.1:
        client.execute("SAVEPOINT s")
        return "released"
    if chance < 0.2:
        client.execute("SAVEPOINT s")
        client.fails_with("22012", f"SELECT 1 / (n - n) FROM {writer.schema}.fixed WHERE n = 3")
        client.execute("ROLLBACK TO s")
        return "nothing written"
    if chance < 0.25:
        client.execute("SAVEPOINT s")
        client.execute(f"INSERT INTO {writer.schema}.own (_id, v) VALUES (%s, 0)",
                       (writer.rows.new_keys(1)[0],))
        client.execute("ROLLBACK TO s")
        return "written"
    return None


def single(client, collection, server, atomic):
    """Runs a single statement, then another one for its entry."""
    for step in (Writer.anything, Writer.enter):
        writer = Writer(client, collection, server, atomic)
        try:
            step(writer)
        except psycopg2.Error as error:
            writer.finish(client.outcome_of(error, atomic, True))
            raise
        writer.finish("committed")


def single_in_transaction(client):
    single(client, "set", "rs", True)


def single_without(client):
    """Writes on the replica set, where MongoDB recognizes a retried write."""
    single(client, "set", "off", False)


def single_alone(client):
    single(client, "alone", "alone", False)


def duplicate(client):
    """Inserts a duplicate key, which fails and changes nothing."""
    collection, server = client.random.choice((("set", "rs"), ("set", "off"), ("alone", "alone")))
    for key in list(client.rows[collection].sure)[:1]:
        client.fails_with("23505", f"INSERT INTO {client.schema(server)}.own (_id, v) VALUES (%s, -1)",
                          (key,))


ACTIONS = (
    (14, transaction), (6, single_in_transaction), (5, single_without), (5, single_alone),
    (2, duplicate),
)
