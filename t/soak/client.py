"""One client of the soak test: its session, its next action, its handling of errors."""
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

# Errors of a statement while servers fail; any other error is a bug.
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
# A statement with such an error has written nothing, on any server.
DEFINITE_ERRORS = {"08001", "22012", "23505"}


class Soak:
    """State shared by the clients and the threads that disturb them."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.lock = threading.Lock()
        self.counts = collections.Counter()
        self.wrong = []             # wrong results of reads
        self.unexpected = []        # unexpected errors
        self.stop = threading.Event()
        self.clients = []

    def count(self, what, number=1):
        with self.lock:
            self.counts[what] += number

    def complain(self, where, complaints):
        with self.lock:
            where.extend(f"{time.strftime('%H:%M:%S')} {text}" for text in complaints)


class Client:
    """A client; its random choices depend only on the seed and its number."""

    def __init__(self, soak, number, cut=False, mortal=False):
        self.soak = soak
        self.number = number
        self.random = random.Random(soak.arguments.seed * 1000 + number)
        self.suffix = "_cut" if cut else ""
        self.mortal = mortal        # its session may be ended
        self.connection = None
        self.pid = None
        self.statements = 0
        # first keys are far apart, so that keys are unique over all clients
        first_key = number * 10_000_000 + 1
        self.rows = {"set": Rows(first_key), "alone": Rows(first_key)}
        self.numbers = 0            # number of transactions
        self.prepared = set()

    def schema(self, name):
        return name + self.suffix

    def connect(self):
        """Connects; returns False if it is time to stop."""
        while not self.soak.stop.is_set():
            try:
                self.connection = psycopg2.connect(
                    self.soak.arguments.dsn, application_name=f"soak client {self.number}",
                    options=f"-c statement_timeout={STATEMENT_TIMEOUT}s")
                self.connection.autocommit = True    # the client sends BEGIN and COMMIT
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
        """Called in another thread: ends the session like a network failure."""
        try:
            with socket.socket(fileno=os.dup(self.connection.fileno())) as copy:
                copy.shutdown(socket.SHUT_RDWR)
        except (OSError, AttributeError, psycopg2.Error):
            pass            # it has just ended by itself

    def run(self):
        while not self.soak.stop.is_set():
            if self.connection is None and not self.connect():
                return
            self.act()

    def act(self):
        """Runs one action of the tables of reads and writes."""
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
        except Exception as error:  # a bug of this program
            self.soak.complain(self.soak.unexpected, [f"{name}: {type(error).__name__} {error}"])
            self.disconnect()
        if self.mortal and self.random.random() < 0.005:
            self.disconnect()       # regularly

    def short_timeout(self):
        return ShortTimeout(self, self.random.randint(1, 40))

    def execute(self, sql, values=None):
        """Runs a statement; returns its cursor."""
        cursor = self.connection.cursor()
        self.statements += 1
        cursor.execute(sql, values)
        return cursor

    def rows_of(self, sql, values=None):
        return self.execute(sql, values).fetchall()

    def fails_with(self, wanted, sql, values=None):
        """Runs a statement that must fail with this SQLSTATE, except for injected faults."""
        try:
            self.execute(sql, values)
        except psycopg2.Error as error:
            if error.pgcode != wanted:
                raise
            self.soak.count(f"wanted error {wanted}")
        else:
            self.expect([f"no error {wanted}"], sql)

    def expect(self, complaints, what):
        """Records complaints about a read, if there are any."""
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
        """Has the session ended?  A FATAL error is only noticed by the next statement."""
        return self.connection.closed != 0 or error.pgcode is None or \
            getattr(error.diag, "severity_nonlocalized", "") == "FATAL"

    def recover(self, error):
        """Recovers from an error before the next action."""
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
        """Returns the outcome of writes after an error; 'committing': a commit may have been sent."""
        if not committing:
            return "refused"
        if self.is_lost(error):
            return "unknown"
        if atomic:
            return "unknown" if error.pgcode == "08007" else "refused"
        return "refused" if error.pgcode in DEFINITE_ERRORS else "unknown"


class ShortTimeout:
    """Sets statement_timeout in milliseconds for a block."""

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
