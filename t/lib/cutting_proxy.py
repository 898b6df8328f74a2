"""Proxies in front of MongoDB servers that cut connections in the middle of a message.

A member of a replica set reports the addresses of the other members to its clients.
The proxies replace the servers' addresses in these messages by their own.  All ports
have five digits, so no length changes.
"""
import multiprocessing
import random
import socket
import struct
import threading
import time

from wire_recorder import receive_message

FEWEST_BYTES, MOST_BYTES = 100, 500_000     # passed before a connection is cut
LARGEST_HANDSHAKE = 30_000                   # no larger message contains addresses
SILENCE = 3                                 # seconds at most until a silent connection is closed


class CuttingProxies:
    """One proxy for each port of 'servers'; self.ports are the proxies' in the same order.

    They run in a separate process, and cut connections after start_cutting().
    """

    def __init__(self, servers, seed):
        # Python 3.14 would otherwise run the program's main module again
        forking = multiprocessing.get_context("fork")
        self._cutting = forking.Event()
        self._cuts = forking.Value("i", 0)
        ours, theirs = forking.Pipe()
        forking.Process(target=self._run, args=(servers, seed, theirs), daemon=True).start()
        self.ports = ours.recv()

    def start_cutting(self):
        self._cutting.set()

    def stop_cutting(self):
        self._cutting.clear()

    @property
    def cuts(self):
        return self._cuts.value

    def _run(self, servers, seed, pipe):
        self.random = random.Random(seed)
        listeners = [socket.create_server(("127.0.0.1", 0), backlog=200) for _ in servers]
        ports = [listener.getsockname()[1] for listener in listeners]
        self.names = [(b"127.0.0.1:%d\0" % server, b"127.0.0.1:%d\0" % port)
                      for server, port in zip(servers, ports)]
        assert all(len(server) == len(proxy) for server, proxy in self.names)
        for listener, server in zip(listeners, servers):
            threading.Thread(target=self._accept, args=(listener, server), daemon=True).start()
        pipe.send(ports)
        threading.Event().wait()

    def _accept(self, listener, port):
        while True:
            client, _ = listener.accept()
            try:
                server = socket.create_connection(("127.0.0.1", port), timeout=5)
            except OSError:
                close_at_once(client)
                continue
            server.settimeout(None)
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for source, target, is_reply in ((client, server, False), (server, client, True)):
                threading.Thread(target=self._forward, args=(source, target, is_reply),
                                 daemon=True).start()

    def _forward(self, source, target, is_reply):
        # as many short connections as long ones
        left = int(FEWEST_BYTES * (MOST_BYTES / FEWEST_BYTES) ** self.random.random())
        try:
            while True:
                message = receive_message(source)
                if is_reply and len(message) < LARGEST_HANDSHAKE:
                    for server, proxy in self.names:
                        message = message.replace(server, proxy)
                if left < len(message) and self._cutting.is_set():
                    target.sendall(message[:left])
                    self._cut(source, target)
                    return
                left = max(left - len(message), 0)
                target.sendall(message)
        except (OSError, struct.error):
            hang_up(source, target)

    def _cut(self, source, target):
        """Closes or resets the connection, or is silent and then closes it."""
        with self._cuts.get_lock():
            self._cuts.value += 1
        way = self.random.choice(("end", "reset", "silence"))
        if way == "reset":
            for connection in (source, target):
                close_at_once(connection)
            return
        if way == "silence":
            time.sleep(self.random.uniform(0, SILENCE))
        hang_up(source, target)


def close_at_once(connection):
    """Resets the connection, even if another thread is waiting for it."""
    try:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.shutdown(socket.SHUT_RD)
        connection.close()
    except OSError:
        pass            # the peer closed it first


def hang_up(*connections):
    for connection in connections:
        try:
            connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass            # the peer closed it first
