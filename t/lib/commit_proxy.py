"""Proxies in front of the members of a replica set that break connections on demand.

A client that connects to the proxies keeps using them, because the members' own
addresses are replaced in their handshake replies.  While no plan is armed, every
message passes.
"""
import socket
import struct
import threading
import time

import bson

from wire_recorder import OP_MSG, receive_message

OP_REPLY = 1

# The faults of a reply, or ("lost") of its request.
FAULTS = ("swallow", "cut", "close", "lost")
# The state after the last fault.
AFTER = ("silent", "refused", "healed")


class Plan:
    """Which replies, counted from arming, have a fault, and the state after that.

    before: connections are closed at once, before any request.
    """

    def __init__(self, faults, after, before=False):
        self.faults = faults            # {number of the reply: one of FAULTS}
        self.after = after
        self.before = before
        self.replies = 0

    def __str__(self):
        what = ["closed before"] if self.before else []
        what += ["%s at reply %d" % (fault, number) for number, fault in sorted(self.faults.items())]
        return "%s, then %s" % (", ".join(what) or "nothing", self.after)

    def is_over(self):
        return self.replies > max(self.faults, default=-1)


class Proxies:
    """One listening port for each member; .uri contains them all."""

    def __init__(self, ports, options=""):
        self.lock = threading.Lock()
        self.plan = None
        self.busy = False               # open connections get no more replies
        self.healed = threading.Event()
        self.connections = set()
        self.listeners = [socket.create_server(("127.0.0.1", 0)) for _ in ports]
        self.ports = [listener.getsockname()[1] for listener in self.listeners]
        self.address = {"127.0.0.1:%d" % port: "127.0.0.1:%d" % own for port, own in zip(ports, self.ports)}
        self.uri = "mongodb://%s/?%s" % (",".join("127.0.0.1:%d" % port for port in self.ports), options)
        for listener, port in zip(self.listeners, ports):
            threading.Thread(target=self._accept, args=(listener, port), daemon=True).start()

    def arm(self, plan):
        with self.lock:
            self.plan = plan
            connections = list(self.connections) if plan.before else []
        for connection in connections:
            hang_up(connection)

    def withhold_replies(self):
        """Makes the server look busy on open connections, not on new ones."""
        with self.lock:
            self.busy = set(self.connections)

    def heal(self):
        """Lets everything pass again; silent connections are closed."""
        with self.lock:
            self.plan = None
            self.busy = False
            connections = list(self.connections)
        for connection in connections:
            hang_up(connection)

    def _state(self):
        """Returns "passing", or the state after the last fault."""
        plan = self.plan
        return plan.after if plan is not None and plan.is_over() and plan.after != "healed" else "passing"

    def _accept(self, listener, port):
        while True:
            client, _ = listener.accept()
            if self._state() == "refused":
                hang_up(client)
                continue
            try:
                server = socket.create_connection(("127.0.0.1", port))
            except OSError:
                hang_up(client)
                continue
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.lock:
                self.connections |= {client, server}
            for target in (self._forward_requests, self._forward_replies):
                threading.Thread(target=target, args=(client, server), daemon=True).start()

    def _forward_requests(self, client, server):
        try:
            while True:
                message = receive_message(client)
                plan = self.plan
                if self._state() == "silent":
                    continue
                if self._state() == "refused":
                    break
                if plan is not None and plan.faults.get(plan.replies) == "lost":
                    plan.replies += 1
                    break
                server.sendall(message)
        except OSError:
            pass
        self._end(client, server)

    def _forward_replies(self, client, server):
        try:
            while True:
                message = self._own_addresses(receive_message(server))
                with self.lock:
                    plan = self.plan
                    state = self._state()
                    fault = None
                    if plan is not None and state == "passing":
                        fault = plan.faults.get(plan.replies)
                        plan.replies += 1
                if state == "silent" or fault == "swallow" or (self.busy and server in self.busy):
                    continue
                if state == "refused" or fault == "close":
                    break
                if fault == "cut":
                    client.sendall(message[:len(message) // 2])
                    break
                client.sendall(message)
        except OSError:
            pass
        self._end(client, server)

    def _end(self, *connections):
        with self.lock:
            self.connections -= set(connections)
        for connection in connections:
            hang_up(connection)

    def _own_addresses(self, message):
        """Returns a handshake reply with the proxies' addresses in place of the members'."""
        opcode = struct.unpack_from("<i", message, 12)[0]
        start = {OP_REPLY: 36, OP_MSG: 21}.get(opcode)
        if start is None or b"setName" not in message:
            return message
        reply = bson.decode(message[start:])
        for key in ("me", "primary"):
            if key in reply:
                reply[key] = self.address.get(reply[key], reply[key])
        if "hosts" in reply:
            reply["hosts"] = [self.address.get(host, host) for host in reply["hosts"]]
        body = bson.encode(reply)
        return struct.pack("<i", start + len(body)) + message[4:start] + body


def hang_up(connection):
    """Closes at once, like a server that dies."""
    try:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    connection.close()


def wait_until(condition, seconds, pause=0.01):
    """Returns the seconds until the condition was true, or None."""
    start = time.monotonic()
    while time.monotonic() - start < seconds:
        if condition():
            return time.monotonic() - start
        time.sleep(pause)
    return None
