"""MongoDB's counters of commands, operations and connections.

An ordinary driver is not suitable for reading them, because it sends hello and ping
commands in the background, which are counted too.  QuietConnection uses OP_MSG on one
socket and sends only the given commands.  So the difference between two snapshots is
what others sent, plus the command for reading the counters, which is subtracted.
"""
import argparse
import json
import socket
import struct
import subprocess
import sys

import bson

OP_MSG = 2013


class QuietConnection:
    """One socket that sends only the commands it is given."""

    def __init__(self, host="127.0.0.1", port=27017, timeout=60):
        self.socket = socket.create_connection((host, int(port)), timeout)
        self.request_id = 0
        self.looks = 0

    def _receive(self, length):
        data = bytearray()
        while len(data) < length:
            part = self.socket.recv(length - len(data))
            if not part:
                raise ConnectionError("MongoDB closed the connection")
            data += part
        return bytes(data)

    def command(self, command, database="admin"):
        """Runs one command; raises RuntimeError on {ok: 0}."""
        self.request_id += 1
        body = bson.encode({**command, "$db": database})
        self.socket.sendall(struct.pack("<iiiiIB", 21 + len(body), self.request_id, 0, OP_MSG, 0, 0) + body)
        length, _, response_to, op_code = struct.unpack("<iiii", self._receive(16))
        reply = self._receive(length - 16)
        if response_to != self.request_id or op_code != OP_MSG or reply[4] != 0:
            raise ConnectionError("unexpected reply")
        document = bson.decode(reply[5:])
        if not document.get("ok"):
            raise RuntimeError(f"{document.get('codeName')}: {document.get('errmsg')}")
        return document

    def counters(self):
        """Returns {"commands": {name: n}, "opcounters": {...}, "connections": n, ...}."""
        self.looks += 1
        status = self.command({"serverStatus": 1, "repl": 0, "locks": 0, "wiredTiger": 0,
                               "tcmalloc": 0, "storageEngine": 0, "transactions": 0})
        commands = {name: value["total"] for name, value in status["metrics"]["commands"].items()
                    if isinstance(value, dict) and value.get("total")}
        return {
            "commands": commands,
            "opcounters": {name: value for name, value in status["opcounters"].items()
                           if isinstance(value, int)},
            "connections": status["connections"]["totalCreated"],
            "connections_open": status["connections"]["current"],
            "requests": status["network"]["numRequests"],
            "documents": status["metrics"]["document"]["returned"],
            "looks": self.looks,
        }

    def close(self):
        self.socket.close()


def difference(before, after):
    """Returns the changes between two snapshots of one QuietConnection."""
    looks = after["looks"] - before["looks"]
    commands = {name: value - before["commands"].get(name, 0)
                for name, value in after["commands"].items()}
    commands["serverStatus"] = commands.get("serverStatus", 0) - looks
    opcounters = {name: value - before["opcounters"].get(name, 0)
                  for name, value in after["opcounters"].items()}
    opcounters["command"] -= looks
    return {
        "commands": {name: value for name, value in sorted(commands.items()) if value},
        "opcounters": {name: value for name, value in opcounters.items() if value},
        "connections": after["connections"] - before["connections"],
        "requests": after["requests"] - before["requests"] - looks,
        "documents": after["documents"] - before["documents"],
    }


def main():
    parser = argparse.ArgumentParser(description="Run a program and print what MongoDB saw meanwhile, as JSON.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=27017)
    parser.add_argument("program", nargs="+")
    arguments = parser.parse_args()
    connection = QuietConnection(arguments.host, arguments.port)
    before = connection.counters()
    status = subprocess.run(arguments.program).returncode
    print(json.dumps(difference(before, connection.counters()), indent=1))
    return status


if __name__ == "__main__":
    sys.exit(main())
