"""One client of the soak test: its session, what it does next, what it makes of errors."""
import collections
import os
import random
import socket
import threading
import time

import psycopg2
import psycopg2.extensions

import reads
import writes
from model import Rows

STATEMENT_TIMEOUT = 5           # seconds, of each session

# What may befall a statement while servers fail; anything else is a defect.
EXPECTED_ERRORS = {
    "40001": "MongoDB aborted the transaction: write conflict, step-down, time limit",
    "55P03": "waited too long for another's transaction",
    "57014": "cancelled",
    "08006": "the connection to MongoDB broke",
    "08001": "no server to connect to",
    "08007": "the outcome of MongoDB's commit is unknown",
    "57P01": "MongoDB or this backend was told to end",
    "0A000": "a savepoint that wrote was rolled back",
    None: "the connection to PostgreSQL was lost",
}
# A statement that ended so has written nothing, whatever the server.
DEFINITE_ERRORS = {"08001", "22012", "23505"}


class Soak:
    """What the clients and those who disturb them share."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.lock = threading.Lock()
        self.counts = collections.Counter()
        self.wrong = []             # reads that were not what they must be
        self.unexpected = []        # errors
        self.stop = threading.Event()
        self.clients = []

    def count(self, what, number=1):
        with self.lock:
            self.counts[what] += number

    def complain(self, where, complaints):
        with self.lock:
            where.extend(f"{time.strftime('%H:%M:%S')} {text}" for text in complaints)


class Client:
    """Its random choices depend on the seed and its number alone."""

    def __init__(self, soak, number, cut=False, mortal=False):
        self.soak = soak
        self.number = number
        self.random = random.Random(soak.arguments.seed * 1000 + number)
        self.suffix = "_cut" if cut else ""
        self.mortal = mortal        # may lose its session
        self.connection = None
        self.pid = None
        self.statements = 0
        # first keys are far apart: keys are unique over all clients
        first_key = number * 10_000_000 + 1
        self.rows = {"set": Rows(first_key), "alone": Rows(first_key)}
        self.numbers = 0            # of transactions
        self.prepared = set()

    def schema(self, name):
        return name + self.suffix

    def connect(self):
        """False when it is time to stop."""
        while not self.soak.stop.is_set():
            try:
                self.connection = psycopg2.connect(
                    self.soak.arguments.dsn, application_name=f"soak client {self.number}",
                    options=f"-c statement_timeout={STATEMENT_TIMEOUT}s")
                self.connection.autocommit = True    # BEGIN and COMMIT are ours
                self.pid = self.connection.get_backend_pid()
                self.prepared = set()
                self.soak.count("sessions")
                return True
            except psycopg2.OperationalError:
                time.sleep(0.1)
        return False

    def disconnect(self):
        self.pid = None
        if self.connection is not None:
            try:
                self.connection.close()
            except psycopg2.Error:
                pass
        self.connection = None

    def cut_off(self):
        """From another thread: end the session as a network would."""
        try:
            with socket.socket(fileno=os.dup(self.connection.fileno())) as copy:
                copy.shutdown(socket.SHUT_RDWR)
        except (OSError, AttributeError, psycopg2.Error):
            pass            # it has just ended

    def run(self):
        while not self.soak.stop.is_set():
            if self.connection is None and not self.connect():
                return
            self.act()

    def act(self):
        """One thing out of the tables of reads and writes."""
        actions = reads.ACTIONS + writes.ACTIONS
        action, = self.random.choices([action for _, action in actions],
                                      [weight for weight, _ in actions])
        name = action.__name__
        try:
            if self.random.random() < 0.03:
                with self.short_timeout():
                    action(self)
            else:
                action(self)
            self.soak.count(f"{name} done")
        except psycopg2.Error as error:
            self.note_error(name, error)
            self.recover(error)
        except Exception as error:  # a defect of this program
            self.soak.complain(self.soak.unexpected, [f"{name}: {type(error).__name__} {error}"])
            self.disconnect()
        if self.mortal and self.random.random() < 0.005:
            self.disconnect()       # politely

    def short_timeout(self):
        return ShortTimeout(self, self.random.randint(1, 40))

    def execute(self, sql, values=None):
        """Run a statement; its cursor."""
        cursor = self.connection.cursor()
        self.statements += 1
        cursor.execute(sql, values)
        return cursor

    def rows_of(self, sql, values=None):
        return self.execute(sql, values).fetchall()

    def fails_with(self, wanted, sql, values=None):
        """A statement that must fail so, if not for a fault."""
        try:
            self.execute(sql, values)
        except psycopg2.Error as error:
            if error.pgcode != wanted:
                raise
            self.soak.count(f"wanted error {wanted}")
        else:
            self.expect([f"no error {wanted}"], sql)

    def expect(self, complaints, what):
        """A read was right, or there are complaints."""
        self.soak.count("reads checked")
        if complaints:
            self.soak.complain(self.soak.wrong, [f"client {self.number}, {what}: {complaint}"
                                                 for complaint in complaints])

    def expect_equal(self, found, expected, what):
        if found != expected:
            self.expect([f"found {str(found)[:300]}, expected {str(expected)[:300]}"], what)
        else:
            self.expect([], what)

    def note_error(self, name, error):
        self.soak.count(f"error {error.pgcode}")
        if error.pgcode not in EXPECTED_ERRORS:
            self.soak.complain(self.soak.unexpected, [f"{name}: {error.pgcode} {str(error).strip()}"])

    def is_lost(self, error):
        """Has the session ended?  A FATAL is noticed with the next statement."""
        return self.connection.closed != 0 or error.pgcode is None or \
            getattr(error.diag, "severity_nonlocalized", "") == "FATAL"

    def recover(self, error):
        """So that the next action begins anew."""
        if self.connection is None:
            return
        if self.is_lost(error):
            self.disconnect()
            return
        try:
            if self.in_transaction():
                self.connection.cursor().execute("ROLLBACK")
        except psycopg2.Error:
            self.disconnect()

    def in_transaction(self):
        return self.connection.info.transaction_status != psycopg2.extensions.TRANSACTION_STATUS_IDLE

    def outcome_of(self, error, atomic, committing):
        """What an error tells of what was written; 'committing' if it may have been committed."""
        if not committing:
            return "refused"
        if self.is_lost(error):
            return "unknown"
        if atomic:
            return "unknown" if error.pgcode == "08007" else "refused"
        return "refused" if error.pgcode in DEFINITE_ERRORS else "unknown"


class ShortTimeout:
    """statement_timeout in milliseconds for a while."""

    def __init__(self, client, milliseconds):
        self.client = client
        self.milliseconds = milliseconds

    def __enter__(self):
        self.client.execute(f"SET statement_timeout = {self.milliseconds}")

    def __exit__(self, kind, error, trace):
        if isinstance(error, psycopg2.Error):
            self.client.recover(error)
        if self.client.connection is not None:
            self.client.execute(f"SET statement_timeout = '{STATEMENT_TIMEOUT}s'")
