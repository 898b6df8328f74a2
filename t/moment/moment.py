#!/usr/bin/env python3
"""Synchronized tables while everything fails: every commit must equal MongoDB at one cluster time.

Parts:
move     writers move money between collections in transactions and change documents with arrays,
         while backends, PostgreSQL and members fail; a reader compares
copy     tables are copied the first time while their collections are written, renamed and dropped
history  a server that was restored from files or initiated anew is noticed
large    a transaction of 60,000 documents, and 1,000,000 changes, with flat memory

A round is repeated by its seed: make moment SEED=17 ROUNDS=1.  It ends at the first round that
fails if a rule is left out (WITHOUT=), which it must.  After each round a line tells what has
happened in it.  In the end all that is to happen must have, if there were enough rounds for that.

Run by t/moment/moment.pl, which starts the servers.
"""
import argparse
import collections
import random
import threading
import time

import psycopg2
from pymongo.errors import PyMongoError

import collections_of_round as mongodb
import copies
import histories
import large
import tables
from checks import Checks
from faults import Servers

MEMBERS = 3
ROUND_SECONDS = 8
MANY_CHANGES = 1_000_000        # in each tenth round
FEW_CHANGES = 120_000
CATCH_UP_SECONDS = 300


class State:
    """A round's names, and what was counted and found wrong in it."""

    def __init__(self, dsn, ports, name, counts):
        self.dsn, self.ports, self.name, self.counts = dsn, ports, name, counts
        self.errors = []
        self.batch = 10000
        self.is_primary = True
        self.paused = False

    def note_error(self, error, is_expected=False):
        """Counts an error of PostgreSQL's; those that say something is wrong with us are found."""
        text = tables.describe(error)
        self.counts[f"errors: {text[:110]}"] += 1
        if text not in self.errors and not (is_expected and error.pgcode == "23503") and \
                getattr(error, "pgcode", None) in ("XX000", "XX001", "XX002", "42601", "42804", "42883", "23505", "23503"):
            self.errors.append(text)


class Set(Servers):
    """The replica set; a member lags 200 ms behind while others write."""

    def __init__(self, ports, counts):
        super().__init__(ports)
        self.counts = counts
        self.lagging = None
        self.frozen = set()

    def lag(self, stop):
        while not stop.is_set():
            member = self.lagging
            if member is None or member in self.frozen or self.state(member) != "secondary":
                stop.wait(0.5)
                continue
            for _ in range(8):
                self.do("signal", member, "STOP")
                stop.wait(0.2)
                self.do("signal", member, "CONT")
                stop.wait(0.02)
            self.counts["faults: a member lags"] += 1

    def hang(self, members, seconds):
        self.frozen.update(members)
        super().hang(members, seconds)
        self.frozen.difference_update(members)

    def crash_postgresql(self, _members, _seconds):
        self.do("crash")


FAULTS = (
    (4, Set.step_down, "primary", 2),
    (3, Set.hang, "primary", 4),
    (2, Set.hang, "secondary", 3),
    (1, Set.hang, "all", 2),
    (3, Set.kill, "primary", 1),
    (2, Set.kill, "secondary", 1),
    (1, Set.restart, "primary", 1),
    (1, Set.crash_postgresql, "all", 0),
)


def break_servers(state, servers, stop, seed, calm):
    choice = random.Random(f"{seed} faults")
    while not stop.wait(choice.uniform(0.5, 4) * (3 if calm else 1)):
        (_, fault, whom, most), = choice.choices(FAULTS, [fault[0] for fault in FAULTS])
        seconds = choice.uniform(0.2, most) if most else 0
        which = choice.randrange(3)
        if calm:
            fault = choice.choice((Set.step_down, Set.crash_postgresql))
        primary = servers.primary() or 0
        members = [0, 1, 2] if whom == "all" and fault is Set.hang else \
            [primary if whom == "primary" else (primary + 1 + which % 2) % 3]
        fault(servers, members, seconds)
        state.counts[f"faults: {fault.__name__} {whom}"] += 1


def break_sessions(state, stop, seed):
    """Cancels and terminates sessions that synchronize, and the background worker."""
    choice = random.Random(f"{seed} sessions")
    connection = None
    while not stop.wait(choice.uniform(0.1, 2.5)):
        try:
            if connection is None or connection.closed:
                connection = tables.connect(state.dsn)
            function = choice.choice(("pg_cancel_backend", "pg_terminate_backend"))
            cursor = connection.cursor()
            cursor.execute(f"SELECT {function}(pid) FROM pg_stat_activity "
                           "WHERE application_name = 'moment driver' AND query LIKE 'CALL%' "
                           "AND state = 'active' OR backend_type LIKE 'mongo_sync worker%' ORDER BY random() LIMIT 1")
            state.counts[f"faults: {function}"] += cursor.rowcount
        except psycopg2.Error:
            if connection is not None:
                connection.close()


def configure(state, **settings):
    """Sets PostgreSQL's settings, for its workers, too."""
    cursor = tables.connect(state.dsn).cursor()
    for name, value in settings.items():
        if name != "enabled":
            cursor.execute(f"SET moment.{name} = '{value}'")
        cursor.execute(f"ALTER SYSTEM SET {'mongo_sync' if name == 'enabled' else 'moment'}.{name} = '{value}'")
    cursor.execute("SELECT pg_reload_conf()")
    cursor.connection.close()


def fall_behind(state, stop, seed, overrun):
    """Pauses the group for longer than MongoDB keeps snapshots, or until the oplog is cut."""
    choice = random.Random(f"{seed} pauses")
    while not stop.wait(choice.uniform(1, 4)):
        connection = None
        try:
            connection = tables.connect(state.dsn)
            cursor = connection.cursor()
            state.paused = True
            cursor.execute(f"SELECT mongo_sync.pause('{state.name}_local.a')")
            stop.wait(choice.uniform(0.5, 6))
            if overrun:
                with mongodb.client_of(state.ports) as client:
                    mongodb.fill_oplog(client, 40)
                overrun = False
                state.counts["faults: the oplog was filled"] += 1
        except (psycopg2.Error, PyMongoError) as error:
            state.counts[f"pause: {type(error).__name__}"] += 1
        finally:
            while True:
                try:
                    cursor = tables.connect(state.dsn).cursor()
                    cursor.execute(f"SELECT mongo_sync.resume(to_regclass('{state.name}_local.a')) "
                                   f"WHERE EXISTS (SELECT FROM mongo_sync.members WHERE local_table = "
                                   f"to_regclass('{state.name}_local.a'))")
                    cursor.connection.close()
                    break
                except psycopg2.Error:
                    time.sleep(0.1)
            state.paused = False
            state.counts["faults: pause"] += 1


def catch_up(state, call, seconds=CATCH_UP_SECONDS):
    """Repeats a call until it succeeds; returns the last error otherwise."""
    end = time.monotonic() + (seconds if not state.errors else 5)
    error = "no time"
    connection = None
    while time.monotonic() < end:
        try:
            if connection is None or connection.closed:
                connection = tables.connect(state.dsn, "moment end")
            cursor = connection.cursor()
            cursor.execute(f"SET moment.batch = {state.batch}; SET client_min_messages = warning; "
                           f"SET statement_timeout = '{int(seconds)}s'")
            call(cursor)
            return None
        except psycopg2.Error as failure:
            state.note_error(failure)
            error = tables.describe(failure)
            if tables.is_lost(failure):
                state.counts["positions lost"] += 1
                for table in tables.TABLES:
                    try:
                        connection.cursor().execute(f"CALL mongo_sync.recopy('{state.name}_local.{table}')")
                    except psycopg2.Error as other:
                        state.note_error(other, True)
            time.sleep(0.3)
    return error


def compare_at_end(state, name):
    """All tables must be equal now, and say so."""
    error = catch_up(state, lambda cursor: cursor.execute(
        f"CALL mongo_sync.sync_schema('{name}', '{name}_local')"))
    if error is not None:
        state.errors.append(f"it does not catch up: {error}")
        return
    found, rows = tables.read_local(tables.connect(state.dsn).cursor(), name)
    if not rows:
        state.errors.append(f"after the last call the tables are not consistent: {found}")
        return
    with mongodb.client_of(state.ports, **mongodb.PATIENT) as client:
        state.errors += [f"at the end, {text}" for text in
                         tables.differences(rows, mongodb.rows_of(client[name])) + tables.broken_rules(rows)]


def run_moving(arguments, ports, servers, seed, counts):
    """A round of moving money; returns what was wrong."""
    choice = random.Random(seed)
    state = State(arguments.dsn, ports, f"m{seed}", counts)
    state.batch = choice.choice((50, 50, 500, 10000))
    preference = choice.choice(("primary", "primary", "secondary", "secondaryPreferred", "nearest"))
    state.is_primary = preference == "primary"
    calm = choice.random() < 0.3
    servers.lagging = choice.choice((None, 0, 1, 2))
    configure(state, batch=state.batch, range=100_000, enabled=choice.choice(("on", "on", "off")))
    print(f"# round {seed}: batches of {state.batch}, {preference}, {'calm' if calm else 'storm'}, "
          f"lagging member {servers.lagging}", flush=True)
    with mongodb.client_of(ports, **mongodb.PATIENT) as client:
        client.drop_database(state.name)
        mongodb.fill(client[state.name])
        connection = tables.connect(arguments.dsn)
        tables.create_server(connection.cursor(), state.name, ports,
                             f"readPreference={preference}&readConcernLevel=majority", choice)
        tables.create_tables(connection.cursor(), state.name, choice)
        connection.close()

        sums = counts["sums"]
        writers = mongodb.Writers(ports, state.name, seed, counts, state.errors)
        writers.start(*[mongodb.move_money] * 4, *[mongodb.change_orders] * 2, mongodb.change_bulk,
                      mongodb.write_noise)
        drivers = tables.Drivers(state, choice.choice((1, 2)), seed)
        reader = tables.Reader(state)
        stop = threading.Event()
        disturbers = [threading.Thread(target=break_servers, args=(state, servers, stop, seed, calm)),
                      threading.Thread(target=break_sessions, args=(state, stop, seed)),
                      threading.Thread(target=servers.lag, args=(stop,))]
        if choice.random() < 0.6:
            disturbers.append(threading.Thread(target=fall_behind,
                                               args=(state, stop, seed, choice.random() < 0.2)))
        for thread in disturbers:
            thread.start()
        copies.wait_for_events(state, arguments.seconds, sums, lambda: counts["sums"], 20)
        stop.set()
        for thread in disturbers:
            thread.join()
        if not servers.wait_until_whole():
            state.errors.append("the replica set does not become whole")
        writers.end()
        drivers.end()
        reader.end()
        mongodb.write_to_all_members(client)
        compare_at_end(state, state.name)
        connection = tables.connect(arguments.dsn)
        if not state.errors:
            tables.drop_tables(connection.cursor(), state.name, tables.TABLES)
        connection.close()
        client.drop_database(state.name)
    return state.errors


def run_copying(arguments, ports, servers, seed, counts):
    """A round of first copies; returns what was wrong."""
    choice = random.Random(f"{seed} copying")
    state = State(arguments.dsn, ports, f"c{seed}", counts)
    configure(state, batch=choice.choice((100, 10000)), range=choice.choice((100, 500, 100_000)),
              enabled=choice.choice(("on", "on", "off")))
    disturbers = [lambda stop: break_sessions(state, stop, seed), servers.lag]
    if choice.random() < 0.4:
        disturbers.append(lambda stop: break_servers(state, servers, stop, seed, True))
    copies.run_copying(state, servers, seed, arguments.seconds, disturbers)
    return state.errors


def run_history(arguments, ports, servers, seed, counts):
    """A round of a server with another history, or the same; returns what was wrong."""
    state = State(arguments.dsn, ports, f"h{seed}", counts)
    configure(state, batch=10_000, range=100_000, enabled=random.Random(f"{seed} h").choice(("on", "on", "off")))
    histories.run_history(state, servers, seed)
    return state.errors


def run_large(arguments, ports, _servers, seed, counts):
    """A round of large transactions and many changes; returns what was wrong."""
    state = State(arguments.dsn, ports, f"l{seed}", counts)
    configure(state, batch=10_000, range=100_000, enabled=random.Random(f"{seed} l").choice(("on", "off")))
    large.run_large(state, MANY_CHANGES if seed % 10 == 1 else FEW_CHANGES)
    return state.errors


PARTS = {"move": run_moving, "copy": run_copying, "history": run_history, "large": run_large}

# What has to happen in that many rounds of a part.
ENOUGH_ROUNDS = 20
NEEDED = {
    "move": {f"faults: {name}" for name in (
        "step_down primary", "hang primary", "hang secondary", "hang all", "kill primary", "kill secondary",
        "restart primary", "crash_postgresql all", "pg_cancel_backend", "pg_terminate_backend", "a member lags",
        "pause", "the oplog was filled")} |
            {"writes: move_money", "writes: change_orders", "writes: change_bulk", "positions lost", "sums", "comparisons",
             "looks: not consistent", "marks checked"},
    "copy": {f"writes: {name}" for name in copies.DEFINITIONS} |
            {"copies: comparisons", "copies: at the end equal", "copies: at the end not claimed", "copies: not consistent",
             "faults: pg_cancel_backend", "faults: pg_terminate_backend", "faults: a member lags"},
    "history": {f"faults: {name}" for name in histories.KINDS} | {"histories: refused", "histories: comparisons"},
    "large": {"large: transactions", "large: changes", "large: looks"},
}


def describe_round(counts):
    """What has happened, without what sessions were told."""
    sums = collections.Counter()
    for name, count in counts.items():
        kind = name.split(":")[0]
        sums[kind if kind in ("writes", "write errors", "errors") else name] += count
        if name in {f"writes: {what}" for what in copies.DEFINITIONS}:
            sums[name[8:]] += count
    return ", ".join(f"{count} {name}" for name, count in sorted(sums.items())) or "nothing"



def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dsn", required=True)
    parser.add_argument("--ports", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=ROUND_SECONDS)
    parser.add_argument("--without", default="")
    parser.add_argument("parts", nargs="+", choices=PARTS)
    arguments = parser.parse_args()
    ports = [int(port) for port in arguments.ports.split(",")]
    checks = Checks()
    counts = collections.Counter()
    servers = Set(ports, counts)

    failed = 0
    for seed in range(arguments.seed, arguments.seed + arguments.rounds):
        for part, function in PARTS.items():
            if part in arguments.parts:
                began = time.monotonic()
                before = collections.Counter(counts)
                errors = function(arguments, ports if part in ("history", "large") else ports[:MEMBERS], servers, seed, counts)
                failed += bool(errors)
                print(f"# {describe_round(counts - before)}", flush=True)
                if not arguments.without:
                    checks.check(errors, f"round {seed}, {part}, {time.monotonic() - began:.0f} s")
                for error in errors[:5]:
                    print(f"# round {seed}, {part}: {error[:600]}", flush=True)
        if arguments.without and failed:
            break
    if arguments.rounds >= ENOUGH_ROUNDS and not arguments.without:
        checks.check([f"{part}: {name}" for part in arguments.parts for name in sorted(NEEDED[part]) if not counts[name]],
                     "all has happened that is to happen")
    if arguments.without:
        checks.check([] if failed else ["it did not"], f"without rule \"{arguments.without}\" the test fails")
    for name, count in sorted(counts.items()):
        print(f"# {count:7} {name}", flush=True)
    print("done", flush=True)


if __name__ == "__main__":
    main()
