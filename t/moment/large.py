"""Large transactions, and many changes, with memory that does not grow."""
import random
import time

import psycopg2
from pymongo import WriteConcern
from pymongo.errors import PyMongoError

import collections_of_round as mongodb
import histories
import tables

DOCUMENTS = 60_000
CHANGES_AT_ONCE = 60_000        # fit into the oplog
MOST_GROWTH = 16                # MB, after the first transaction
MOST_MEMORY = 128               # MB, at any time


def memory_of(pid):
    """The memory of a process apart from what it shares, in MB."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as status:
            return next(int(line.split()[1]) / 1024 for line in status if line.startswith("RssAnon"))
    except OSError:
        return 0


class Watch(mongodb.Background):
    """Notes the most memory that the processes that synchronize had, since the last look."""

    def __init__(self, dsn, backend):
        super().__init__()
        self.dsn, self.backend = dsn, backend
        self.most = 0
        self.run(self._run)

    def _run(self):
        cursor = tables.connect(self.dsn).cursor()
        while not self.stop.wait(0.05):
            cursor.execute("SELECT pid FROM pg_stat_activity WHERE backend_type LIKE 'mongo_sync worker%'")
            self.most = max([self.most, memory_of(self.backend)] + [memory_of(pid) for pid, in cursor.fetchall()])
        cursor.connection.close()

    def take(self):
        most, self.most = self.most, 0
        return most


class Reader(tables.Reader):
    """All rows change in one transaction: a reader sees one value."""

    def _run(self):
        cursor = tables.connect(self.state.dsn).cursor()
        while not self.stop.wait(0.02):
            cursor.execute(f"SELECT count(*), min(v), max(v) FROM {self.state.name}_local.big")
            count, least, most = cursor.fetchone()
            self.state.counts["large: looks"] += 1
            if count != DOCUMENTS or least != most:
                self.state.errors.append(f"a reader sees {count} rows, {least} to {most}")
                return
        cursor.connection.close()


def change_all(client, name):
    """A transaction that changes all documents; again if it takes longer than MongoDB allows."""
    for _ in range(10):
        try:
            with client.start_session() as session, session.start_transaction(write_concern=WriteConcern("majority")):
                return client[name].big.update_many({}, {"$inc": {"v": 1}}, session=session).modified_count
        except PyMongoError:
            time.sleep(0.2)
    return 0


def run_large(state, changes):
    name, ports = state.name, state.ports
    choice = random.Random(state.name)
    call = f"CALL mongo_sync.sync_schema('{name}', '{name}_local')"
    print(f"# round of transactions of {DOCUMENTS:,} documents, then {changes:,} changes", flush=True)
    with histories.client_of(ports) as client:
        client.drop_database(name)
        big = client[name].get_collection("big", write_concern=WriteConcern("majority"))
        big.insert_many([{"_id": i, "v": 0} for i in range(DOCUMENTS)])
        cursor = tables.connect(state.dsn, "moment driver").cursor()
        tables.create_server(cursor, name, ports[histories.SERVER:], "readConcernLevel=majority", choice)
        cursor.execute(f"ALTER SERVER {name} OPTIONS (SET socket_timeout_ms '60000');"
                       f"CREATE SCHEMA {name}; CREATE SCHEMA {name}_local; SET client_min_messages = warning;"
                       f"CREATE FOREIGN TABLE {name}.big (_id int, v int) SERVER {name} OPTIONS (database '{name}')")
        cursor.execute(call)
        cursor.execute("SELECT pg_backend_pid()")
        watch, reader = Watch(state.dsn, cursor.fetchone()[0]), Reader(state)
        figures = []
        try:
            for number in range(3):
                if change_all(client, name) != DOCUMENTS:
                    state.errors.append("MongoDB does not commit such a transaction")
                    return
                cursor.execute(call)
                state.counts["large: transactions"] += 1
                cursor.execute(f"SELECT min(v) FROM {name}_local.big")
                if cursor.fetchone()[0] != number + 1:
                    state.errors.append("a transaction is missing after the call")
                figures.append(watch.take())
            reader.end()
            for begin in range(0, changes, CHANGES_AT_ONCE):
                big.update_many({"_id": {"$lt": min(CHANGES_AT_ONCE, changes - begin)}}, {"$inc": {"v": 1}})
                cursor.execute(call)
                state.counts["large: changes"] += min(CHANGES_AT_ONCE, changes - begin)
                figures.append(watch.take())
        except psycopg2.Error as error:
            state.errors.append(tables.describe(error))
        finally:
            watch.end()
            reader.end()
        print(f"# memory, MB: {', '.join(f'{figure:.0f}' for figure in figures)}", flush=True)
        if figures and (max(figures) > MOST_MEMORY or max(figures[1:]) > figures[0] + MOST_GROWTH):
            state.errors.append(f"memory has grown: {figures}")
        cursor.execute(f"SELECT count(*), sum(v) FROM {name}_local.big")
        expected = client[name].command("aggregate", "big", cursor={}, pipeline=[
            {"$group": {"_id": None, "n": {"$sum": 1}, "v": {"$sum": "$v"}}}])["cursor"]["firstBatch"][0]
        if cursor.fetchone() != (expected["n"], expected["v"]):
            state.errors.append("at the end the rows are not equal")
        if not state.errors:
            tables.drop_tables(cursor, name, ("big",))
        cursor.connection.close()
        client.drop_database(name)
