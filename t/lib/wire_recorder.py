"""A proxy in front of a MongoDB server that records the commands that pass.

Only the wire shows what a client really sends: MongoDB's profiler leaves out parts
of writes, and what the client reports about itself is what the tests check.
"""
import socket
import struct
import threading
import time
import zlib

import bson

OP_REPLY = 1                    # to the first hello of a connection,
OP_QUERY = 2004
OP_COMPRESSED = 2012
OP_MSG = 2013
BODY = {OP_REPLY: 36, OP_MSG: 21}   # the offset of a reply's only document
ZLIB = 2                        # the compressor
DOCUMENTS = 1                   # a section with a list of documents
CONNECTION_COMMANDS = {"hello", "isMaster", "ismaster", "saslStart", "saslContinue", "endSessions"}

# Nobody waits for the replies to these.
UNANSWERED = {"killCursors", "endSessions"}


def receive(connection, length):
    data = bytearray()
    while len(data) < length:
        part = connection.recv(length - len(data))
        if not part:
            raise ConnectionError
        data += part
    return bytes(data)


def receive_message(connection):
    header = receive(connection, 16)
    return header + receive(connection, struct.unpack_from("<i", header)[0] - 16)


def command_of(message):
    """Returns a message's command, including its lists of documents; None for other messages.

    A command that is compressed other than by zlib is not read.
    """
    kind = struct.unpack_from("<i", message, 12)[0]
    if kind == OP_COMPRESSED and message[24] == ZLIB:
        # the message's kind, its size and the compressor precede what is compressed
        message = message[:12] + message[16:20] + zlib.decompress(message[25:])
        kind = OP_MSG
    if kind == OP_QUERY:
        # after the flags, the collection's name, and the numbers to skip and to return
        return bson.decode(message[message.index(b"\0", 20) + 9:])
    if kind == OP_COMPRESSED:
        return {"compressed": True}
    if kind != OP_MSG:
        return None
    position, body, lists = 20, None, {}
    while position < len(message):
        kind = message[position]
        size = struct.unpack_from("<i", message, position + 1)[0]
        section = message[position + 1:position + 1 + size]
        if kind == DOCUMENTS:
            name, _, documents = section[4:].partition(b"\0")
            lists[name.decode()] = bson.decode_all(documents)
        else:
            body = bson.decode(section)
        position += 1 + size
    return {**body, **lists}


def shut(connection):
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass            # the peer closed it first


class WireRecorder:
    """Listens on self.port; self.take() returns the commands since its last call.

    Commands that open and close connections are included with connection_commands=True.
    self.cut() closes all open connections, self.end() also refuses new ones.  self.hold()
    withholds replies.  With a delay, in seconds, each reply comes later.  self.late has delays of
    requests by their name.
    """

    LONGEST_HOLD = 5            # seconds

    def __init__(self, host, port, connection_commands=False, delay=0):
        self.server = (host, port)
        self.delay = delay
        self.left_out = set() if connection_commands else CONNECTION_COMMANDS
        self.late = {}
        self.commands = []
        self.connections = []
        self.awaited = 0
        self.awaited_name = None
        self.ended = False
        self.arrived = threading.Condition()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def take(self):
        commands, self.commands = self.commands, []
        return commands

    def hold(self, count, name=None):
        """Withholds replies until so many commands have come, or for LONGEST_HOLD; with a name,
        from the first command of this name on.

        killCursors and endSessions of an earlier statement may come late, because their replies are
        not waited for.
        """
        self.take()
        self.awaited_name = name
        self.awaited = count

    def held_enough(self):
        """Ends that, and tells whether they have come."""
        enough, self.awaited = self.awaited > 0, 0
        return enough

    def cut(self):
        connections, self.connections = self.connections, []
        for connection in connections:
            shut(connection)

    def end(self):
        self.ended = True
        # wakes the thread that waits in accept()
        shut(self.listener)
        self.listener.close()
        self.cut()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                if self.ended:
                    return
                raise
            server = socket.create_connection(self.server)
            self.connections += [client, server]
            for arguments in ((client, server, self._request), (server, client, self._reply)):
                threading.Thread(target=self._forward, args=arguments, daemon=True).start()

    def _forward(self, source, target, look):
        try:
            while True:
                target.sendall(look(receive_message(source)))
        except OSError:
            for connection in (source, target):
                shut(connection)

    def _request(self, message):
        command = command_of(message)
        if command:
            time.sleep(self.late.get(next(iter(command)), 0))
        if command and next(iter(command)) not in self.left_out:
            with self.arrived:
                self.commands.append(command)
                self.arrived.notify_all()
        return message

    def _may_reply(self):
        names = [next(iter(command)) for command in self.commands]
        count = names.count(self.awaited_name) if self.awaited_name else sum(name not in UNANSWERED for name in names)
        return count >= self.awaited or count == 0

    def _reply(self, message):
        with self.arrived:
            is_greeting = b"maxWireVersion" in message
            if not is_greeting and not self.arrived.wait_for(self._may_reply, self.LONGEST_HOLD):
                self.awaited = 0
        time.sleep(self.delay)
        return message


class Mongos(WireRecorder):
    """Makes the primary behind it look like a mongos: by its handshake reply, and by a
    recovery token in each reply, by which another mongos would find a transaction."""

    OF_A_MEMBER = ("setName", "setVersion", "hosts", "primary", "me", "secondary", "electionId", "lastWrite",
                   "topologyVersion")

    def __init__(self, host, port):
        super().__init__(host, port, connection_commands=True)
        self.tokens = 0

    def _request(self, message):
        message = super()._request(message)
        command = command_of(message)
        if command is None or "recoveryToken" not in command:
            return message
        # a member of a replica set does not accept it
        del command["recoveryToken"]
        return self._with_body(message, command)

    def _reply(self, message):
        body = bson.decode(message[BODY[struct.unpack_from("<i", message, 12)[0]]:])
        if "maxWireVersion" in body:
            body = {key: value for key, value in body.items() if key not in self.OF_A_MEMBER} | {"msg": "isdbgrid"}
        else:
            self.tokens += 1
            body["recoveryToken"] = {"recoveredShardId": "shard", "number": self.tokens}
        return self._with_body(message, body)

    @staticmethod
    def _with_body(message, body):
        head = message[4:BODY[struct.unpack_from("<i", message, 12)[0]]]
        body = bson.encode(body)
        return struct.pack("<i", 4 + len(head) + len(body)) + head + body
