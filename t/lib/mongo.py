#!/usr/bin/env python3
"""Access to MongoDB for the Perl tests: one process, JSON requests and replies on pipes.

A request is {"do": NAME, ...} on one line, the reply {"result": ...} or
{"error": "..."}; documents are Extended JSON in both.  Commands are JSON text inside
the JSON, because Perl does not keep the order of keys.  "counters", "snapshot",
"changes" and "quiet" use sockets that send nothing by themselves (see
scripts/mongo_counters.py), "command" and "insert" an ordinary client.
"""
import os
import sys

import pymongo
from bson import json_util
from bson.codec_options import DatetimeConversion

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts"))
from mongo_counters import QuietConnection, difference  # noqa: E402
from wire_recorder import Mongos, WireRecorder  # noqa: E402

quiet_connections = {}
snapshots = {}
recorders = {}


def quiet(port):
    if port not in quiet_connections:
        quiet_connections[port] = QuietConnection(port=port)
    return quiet_connections[port]


def do_quiet(port, command, database="admin"):
    """Runs a command on a dedicated socket; forgets the socket if it fails."""
    try:
        return quiet(port).command(json_util.loads(command), database)
    except OSError:
        quiet_connections.pop(port, None)
        raise


def do_snapshot(port):
    """Stores the counters; "changes" returns the changes since then."""
    snapshots[port] = quiet(port).counters()
    return True


def do_changes(port):
    return difference(snapshots[port], quiet(port).counters())


def do_counters(port):
    return quiet(port).counters()


def do_record(port, delay=0):
    """Starts a proxy in front of a server, with a delay in seconds; returns the proxy's port."""
    recorder = WireRecorder("127.0.0.1", port, connection_commands=True, delay=delay)
    recorders[recorder.port] = recorder
    return recorder.port


def do_mongos(port):
    """Starts a mongos in front of the primary at this port; returns its port.  It also records."""
    mongos = Mongos("127.0.0.1", port)
    recorders[mongos.port] = mongos
    return mongos.port


def do_recorded_fields(port):
    """The same, with each command as a list of fields, as Perl's hashes lose their order."""
    return [list(command) for command in recorders[port].take()]


def do_cut(port):
    """Closes the connections of a proxy, which still accepts new ones."""
    recorders[port].cut()
    return True


def do_end(port):
    """Ends a proxy, as if its server had died."""
    recorders[port].end()
    return True


def do_hold(port, count, name=None):
    """Has a proxy withhold replies until so many commands, of this name, have come."""
    recorders[port].hold(count, name)
    return True


def do_late(port, seconds, name):
    """Has a proxy pass the commands of this name so much later."""
    recorders[port].late = {name: seconds}
    return True


def do_held_enough(port):
    """Tells whether they have come, and ends that."""
    return recorders[port].held_enough()


def shortened(value):
    """Returns a value with at most 1,000 characters of each text, as Perl reads JSON slowly."""
    if isinstance(value, dict):
        return {name: shortened(field) for name, field in value.items()}
    if isinstance(value, list):
        return [shortened(element) for element in value]
    return value[:1000] if isinstance(value, str) else value


def do_recorded(port):
    """Returns all commands that passed a proxy since the last call, their texts shortened."""
    return [shortened(command) for command in recorders[port].take()]


def do_forget(port):
    """Forgets the socket to a server that has stopped."""
    connection = quiet_connections.pop(port, None)
    if connection:
        connection.close()
    return True


def ordinary_client(uri):
    """Returns a client that sends nothing after it is closed.

    By default a thread of the client sends hello to measure round trips, over a connection
    that it may be opening while the client is closed.  MongoDB counts that hello later.
    """
    return pymongo.MongoClient(uri, serverSelectionTimeoutMS=20000, serverMonitoringMode="poll")


def do_command(uri, command, database="admin"):
    with ordinary_client(uri) as client:
        return client[database].command(json_util.loads(command))


def do_insert(uri, database, collection, documents, drop=True):
    # a date outside the range of Python's datetime stays in milliseconds
    options = json_util.JSONOptions(datetime_conversion=DatetimeConversion.DATETIME_AUTO)
    documents = json_util.loads(documents, json_options=options)
    with ordinary_client(uri) as client:
        if drop:
            client[database].drop_collection(collection)
        if documents:
            client[database][collection].insert_many(documents)
        return len(documents)


def do_fill(uri, database, collection, count, pad=0):
    """Inserts 'count' documents {_id, id, info, crt_time} and creates an index on id."""
    with ordinary_client(uri) as client:
        target = client[database][collection]
        target.drop()
        for first in range(1, count + 1, 10000):
            target.insert_many([{"_id": i, "id": i, "info": f"info {i}" + "x" * pad}
                                for i in range(first, min(first + 10000, count + 1))])
        target.create_index("id")
        return count


def main():
    for line in sys.stdin:
        request = json_util.loads(line)
        action = globals()["do_" + request.pop("do")]
        try:
            answer = {"result": action(**request)}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json_util.dumps(answer, json_options=json_util.RELAXED_JSON_OPTIONS), flush=True)


if __name__ == "__main__":
    main()
