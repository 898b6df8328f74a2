"""The MongoDB servers that write: a standalone one and a replica set of one member."""
import contextlib
import os
import shutil
import socket
import subprocess
import sysconfig
import tempfile
import time

import pymongo

from laboratory import QuietConnection, difference


class Target:
    """A MongoDB, the foreign server made for it, and its counters."""

    def __init__(self, name, host, port, server):
        self.name, self.host, self.port, self.server = name, host, port, server
        self.uri = f"mongodb://{host}:{port}/"
        self.observer = QuietConnection(host, port)
        self.process = self.observer.command({"serverStatus": 1})["pid"]
        self.has_transactions = name != "standalone"

    def transaction(self):
        """What a native program is told, so that it does what the wrapper does."""
        return ["transaction"] if self.has_transactions else []

    def watched(self, function, *arguments):
        """Call a function; its result with what this MongoDB saw under "seen", its CPU seconds under "server_cpu"."""
        before, cpu = self.observer.counters(), cpu_seconds(self.process)
        result = function(*arguments)
        result["server_cpu"] = cpu_seconds(self.process) - cpu
        result["seen"] = difference(before, self.observer.counters())
        return result


def cpu_seconds(process):
    """What a process and its threads, ended ones too, have used so far; in steps of 10 ms."""
    with open(f"/proc/{process}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextlib.contextmanager
def replica_set():
    """Start a replica set of one member in a folder of its own; its port."""
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
    """The laboratory's own MongoDB, and a replica set that is gone afterwards."""
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


def commands(seen, divisor=1):
    """What MongoDB saw, in words."""
    return ", ".join(f"{name} {number / divisor:.3g}" for name, number in
                     sorted(seen["commands"].items(), key=lambda item: -item[1])) or "none"
