"""The MongoDB servers that write: a standalone one and a replica set of one member; and a network before one."""
import contextlib
import os
import shutil
import socket
import subprocess
import sysconfig
import tempfile
import time

import pymongo

from laboratory import HERE, QuietConnection, difference


class Target:
    """A MongoDB server, its foreign server, and its counters."""

    def __init__(self, name, host, port, server):
        self.name, self.host, self.port, self.server = name, host, port, server
        self.uri = f"mongodb://{host}:{port}/"
        self.observer = QuietConnection(host, port)
        self.process = self.observer.command({"serverStatus": 1})["pid"]
        self.has_transactions = name != "standalone"

    def transaction(self):
        """Returns the argument that makes a native program use transactions like the wrapper."""
        return ["transaction"] if self.has_transactions else []

    def watched(self, function, *arguments):
        """Calls a function; returns its result with MongoDB's counters ("seen") and CPU seconds ("server_cpu")."""
        before, cpu = self.observer.counters(), cpu_seconds(self.process)
        result = function(*arguments)
        result["server_cpu"] = cpu_seconds(self.process) - cpu
        result["seen"] = difference(before, self.observer.counters())
        return result


def cpu_seconds(process):
    """Returns the CPU time of a process and all its threads so far; in steps of 10 ms."""
    with open(f"/proc/{process}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextlib.contextmanager
def replica_set():
    """Starts a replica set of one member in its own folder; returns its port."""
    mongod = os.path.join(sysconfig.get_paths()["purelib"], "fiftyone", "db", "bin", "mongod")
    folder = tempfile.mkdtemp(prefix="replica_set_", dir=os.environ.get("HOME"))
    port = free_port()
    process = subprocess.Popen(
        [mongod, "--quiet", "--dbpath", folder, "--bind_ip", "127.0.0.1", "--port", str(port), "--nounixsocket",
         "--replSet", "rs", "--oplogSize", "1024", "--wiredTigerCacheSizeGB", "1",
         "--setParameter", "diagnosticDataCollectionEnabled=false"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        with pymongo.MongoClient("127.0.0.1", port, directConnection=True, serverSelectionTimeoutMS=60000) as client:
            client.admin.command("replSetInitiate", {"_id": "rs", "members": [{"_id": 0, "host": f"127.0.0.1:{port}"}]})
            while not client.admin.command("hello")["isWritablePrimary"]:
                time.sleep(0.1)
        yield port
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder)


@contextlib.contextmanager
def targets(lab):
    """The laboratory's own MongoDB, and a replica set that exists only for the block."""
    with replica_set() as port:
        lab.sql("DROP SERVER IF EXISTS bench_replica_set CASCADE")
        lab.sql("CREATE SERVER bench_replica_set FOREIGN DATA WRAPPER mongo_fdw OPTIONS (address '127.0.0.1', "
                "port %s, replica_set 'rs')", (str(port),))
        lab.sql("CREATE USER MAPPING FOR CURRENT_USER SERVER bench_replica_set")
        try:
            yield [Target("standalone", lab.host, lab.port, "bench"),
                   Target("replica set", "127.0.0.1", port, "bench_replica_set")]
        finally:
            lab.sql("DROP SERVER bench_replica_set CASCADE")


@contextlib.contextmanager
def network(port, one_way, rate=0):
    """A link of so many microseconds each way, and bytes a second, before the server at this port: its own port, and a
    function that tells how many bytes have gone through it."""
    with subprocess.Popen([os.path.join(HERE, "native", "delay"), "127.0.0.1", str(port), str(one_way), str(rate)],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        def carried():
            print("count", file=process.stdin, flush=True)
            return sum(map(int, process.stdout.readline().split()))
        yield int(process.stdout.readline()), carried


def commands(seen, divisor=1):
    """Describes MongoDB's counters in words."""
    return ", ".join(f"{name} {number / divisor:.3g}" for name, number in
                     sorted(seen["commands"].items(), key=lambda item: -item[1])) or "none"
