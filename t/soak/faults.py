"""Faults of servers and sessions in the soak test, on a schedule that depends on its seed."""
import random
import sys
import threading
import time

import psycopg2
import pymongo
from pymongo.errors import PyMongoError

SLACK = 5                 # seconds beyond statement_timeout, for a busy machine


class Servers:
    """Members 0 to 2 of a replica set, and a standalone server, 3.

    The Perl test owns the processes.  A request is "do NAME ARGUMENTS" on standard
    output; the reply is a line.
    """

    ALONE = 3

    def __init__(self, ports):
        self.ports = ports
        self.lock = threading.Lock()

    def do(self, *words):
        with self.lock:
            print("do", *words, flush=True)
            if not sys.stdin.readline():
                raise SystemExit("the test has ended")

    def client(self, server, **options):
        return pymongo.MongoClient("127.0.0.1", self.ports[server], directConnection=True,
                                   serverSelectionTimeoutMS=2000, socketTimeoutMS=10000, **options)

    def state(self, member):
        """Returns the state of a member: "primary", "secondary" or another."""
        try:
            with self.client(member) as client:
                hello = client.admin.command("hello")
        except PyMongoError:
            return "away"
        return "primary" if hello["isWritablePrimary"] else \
            "secondary" if hello["secondary"] else "neither"

    def primary(self):
        return next((member for member in range(3) if self.state(member) == "primary"), None)

    def wait_until_whole(self, seconds=120):
        """Waits until the set has a primary and two secondaries; returns False after the time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if sorted(self.state(member) for member in range(3)) == ["primary", "secondary", "secondary"]:
                return True
            time.sleep(0.3)
        return False

    # faults: each leaves the servers running

    def hang(self, members, seconds):
        for member in members:
            self.do("signal", member, "STOP")
        time.sleep(seconds)
        for member in members:
            self.do("signal", member, "CONT")

    def kill(self, members, seconds):
        self._start_again("kill", members, seconds)

    def restart(self, members, seconds):
        self._start_again("stop", members, seconds)

    def _start_again(self, way, members, seconds):
        for member in members:
            self.do(way, member)
        time.sleep(seconds)
        for member in members:
            self.do("start", member)

    def step_down(self, members, seconds):
        for member in members:
            try:
                with self.client(member) as client:
                    client.admin.command("replSetStepDown", int(seconds) + 2, force=True,
                                         secondaryCatchUpPeriodSecs=min(1, int(seconds)))
            except PyMongoError:
                pass                # the connection may be closed


# Frequency, fault, target, seconds at most.
FAULTS_OF_SET = (
    (3, Servers.hang, "primary", 6),
    (1, Servers.hang, "secondary", 4),
    (1, Servers.hang, "all", 2),
    (3, Servers.kill, "primary", 4),
    (1, Servers.kill, "secondary", 3),
    (2, Servers.restart, "primary", 2),
    (4, Servers.step_down, "primary", 3),
)
FAULTS_ALONE = (
    (3, Servers.hang, "alone", 6),
    (3, Servers.kill, "alone", 2),
    (2, Servers.restart, "alone", 1),
)


def break_servers(soak, servers, faults, seed):
    """Makes one fault after another, with some seconds between them."""
    choice = random.Random(seed)
    while not soak.stop.wait(choice.uniform(3, 9)):
        (_, fault, whom, most), = choice.choices(faults, [fault[0] for fault in faults])
        seconds = choice.uniform(0.2, most)
        any_secondary = choice.randrange(3)
        if whom == "alone":
            members = [Servers.ALONE]
        elif whom == "all":
            members = [0, 1, 2]
        else:
            primary = servers.primary()
            if primary is None:
                continue
            members = [primary if whom == "primary" else (primary + 1 + any_secondary % 2) % 3]
        fault(servers, members, seconds)
        soak.count(f"{fault.__name__} {whom}")


def cancel_sessions(soak, seed):
    """Calls pg_cancel_backend() for random clients."""
    disturb(soak, seed, 0.02, 0.2, "cancels", lambda client: True,
            lambda client, cursor: cursor.execute("SELECT pg_cancel_backend(%s)", (client.pid or 0,)))


def end_sessions(soak, seed):
    """Terminates sessions, or cuts their connection to PostgreSQL."""
    choice = random.Random(seed)

    def end(client, cursor):
        if choice.random() < 0.5:
            cursor.execute("SELECT pg_terminate_backend(%s)", (client.pid or 0,))
        else:
            client.cut_off()
    disturb(soak, seed, 0.3, 2, "sessions ended", lambda client: client.mortal, end)


def disturb(soak, seed, least, most, name, is_meant, disturbance):
    choice = random.Random(seed)
    cursor = cursor_of_its_own(soak)
    while not soak.stop.wait(choice.uniform(least, most)):
        clients = [client for client in soak.clients if client.pid is not None and is_meant(client)]
        if clients:
            disturbance(choice.choice(clients), cursor)
            soak.count(name)


def cursor_of_its_own(soak):
    """Returns a cursor without a transaction, in which pg_stat_activity would never change."""
    connection = psycopg2.connect(soak.arguments.dsn)
    connection.autocommit = True
    return connection.cursor()


class Watch:
    """Searches every second for statements that run longer than allowed.

    A statement's time limit does not apply to the commit at its end, which tries for
    half a minute to find its outcome.
    """

    QUERY = """
        SELECT pid, query_start, extract(epoch FROM clock_timestamp() - query_start)::float,
               application_name, wait_event, query
        FROM pg_stat_activity
        WHERE application_name LIKE 'soak client%' AND state = 'active'"""

    def __init__(self, soak, statement_timeout, commit_limit):
        self.soak = soak
        self.limits = (statement_timeout + SLACK, commit_limit + SLACK)
        self.longest = {False: (0, ""), True: (0, "")}      # key: does it commit?
        self.hanging = {}

    def run(self):
        cursor = cursor_of_its_own(self.soak)
        while not self.soak.stop.wait(1):
            cursor.execute(self.QUERY)
            for pid, start, seconds, client, wait, query in cursor.fetchall():
                commits = query.startswith(("COMMIT", "ROLLBACK", "INSERT", "UPDATE", "DELETE"))
                text = f"{client}, {seconds:.1f} s, {wait}: {query[:200]}"
                self.longest[commits] = max(self.longest[commits], (seconds, text))
                if seconds > self.limits[commits]:
                    self.hanging[pid, start] = text
