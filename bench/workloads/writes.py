"""Insert 100,000 rows, update and delete 5,000 of them, beside bulk and many commands.

Each round fills an empty collection {_id, k, c, pad} by INSERT ... SELECT, by
COPY, or by the native program's bulk insert of the same rows; makes an index
on k; then updates 5,000 by a range of k, increments 5,000 by a range of _id,
and deletes 5,000 by a range of k.  On a replica set each is a transaction, of
PostgreSQL and of MongoDB.
"""
import os
import statistics
import tempfile
import time
from math import gcd

import pymongo

from laboratory import median
from targets import commands, cpu_seconds, targets

ROWS, TOUCHED, BATCH = 100_000, 5_000, 100_000
OPERATIONS = ("insert", "copy", "update", "increment", "delete")


class Writes:
    def __init__(self, lab, target, file):
        self.lab, self.target, self.file = lab, target, file
        self.rows = max(int(ROWS * lab.scale), 1000)
        self.touched = self.rows * TOUCHED // ROWS
        self.first = self.rows // 4
        self.last = self.first + self.touched - 1
        self.table = "writes_" + target.server
        lab.sql(f"DROP FOREIGN TABLE IF EXISTS {self.table}")
        lab.sql(f"CREATE FOREIGN TABLE {self.table} (id int OPTIONS (path '_id'), k int, c text, pad text) "
                f"SERVER {target.server} OPTIONS (database 'bench', collection 'writes')")
        self.statements = {
            "insert": f"INSERT INTO {self.table} SELECT * FROM writes_source",
            "copy": f"COPY {self.table} FROM '{file}'",
            "update": f"UPDATE {self.table} SET pad = 'changed' WHERE k BETWEEN {self.first} AND {self.last}",
            "increment": f"UPDATE {self.table} SET k = k + 1 WHERE id BETWEEN {self.first} AND {self.last}",
            "delete": f"DELETE FROM {self.table} WHERE k BETWEEN {self.first} AND {self.last}",
        }

    def collection(self, function):
        """Do something with the collection, and leave no client behind that talks."""
        with pymongo.MongoClient(self.target.uri) as client:
            return function(client.bench.writes)

    def wrapper(self, operation):
        backend = self.lab.postgres.info.backend_pid
        cpu, started = cpu_seconds(backend), time.monotonic()
        with self.lab.postgres.cursor() as cursor:
            cursor.execute(self.statements[operation])
            count = cursor.rowcount
        return {"documents": count, "seconds": time.monotonic() - started, "backend_cpu": cpu_seconds(backend) - cpu}

    def native(self, operation):
        if operation in ("insert", "copy"):
            return self.lab.native("insert", self.target.uri, "bench.writes", self.file, BATCH,
                                   *self.target.transaction(), program="writes")
        return self.lab.native(operation, self.target.uri, "bench.writes", self.first, self.last,
                               *self.target.transaction(), program="writes")

    def fill(self, run, operation):
        """Fill an empty collection; the result, with what was made checked."""
        self.collection(lambda writes: writes.drop())
        self.collection(lambda writes: writes.database.create_collection("writes"))
        result = self.target.watched(run, operation)
        first = self.collection(lambda writes: writes.find_one({"_id": 1}))
        assert self.collection(lambda writes: writes.count_documents({})) == result["documents"] == self.rows
        assert first == {"_id": 1, "k": key(1, self.rows), "c": text(1, 10), "pad": text(2, 5)}, first
        return result

    def round(self, run, fills):
        """Every operation once; {operation: result}."""
        results = {operation: self.fill(run, operation) for operation in fills}
        self.collection(lambda writes: writes.create_index("k"))
        for operation in OPERATIONS[2:]:
            results[operation] = self.target.watched(run, operation)
            if operation != "delete":		# the increment has moved some keys over the range's end
                assert results[operation]["documents"] == self.touched, (operation, results[operation])
        return results


def key(number, rows):
    """A permutation of 1 to rows."""
    step = next(step for step in (7919, 7927, 7933) if gcd(step, rows) == 1)
    return number * step % rows + 1


def text(number, groups):
    return "-".join(f"{(number * 1000003 + group) * 7919 % 10 ** 11:011}" for group in range(groups))


def make_source(lab, file):
    rows = max(int(ROWS * lab.scale), 1000)
    for number in range(1, rows + 1):
        file.write(f"{number}\t{key(number, rows)}\t{text(number, 10)}\t{text(2 * number, 5)}\n")
    file.flush()
    lab.sql("DROP TABLE IF EXISTS writes_source")
    lab.sql("CREATE UNLOGGED TABLE writes_source (id int, k int, c text, pad text)")
    lab.sql(f"COPY writes_source FROM '{file.name}'")
    lab.sql("ANALYZE writes_source")


def measure(lab, target, file):
    """A row of the table for each operation."""
    writes = Writes(lab, target, file)
    native, wrapper = [], []
    for number in range(1, lab.rounds + 1):
        native.append(writes.round(writes.native, ("insert",)))
        wrapper.append(writes.round(writes.wrapper, ("insert", "copy")))
        shown = ", ".join(f"{operation} {result['seconds']:.3f} s" for operation, result in wrapper[-1].items())
        lab.say(f"  round {number}/{lab.rounds}  {target.name}: {shown}")
    table = []
    for operation in OPERATIONS:
        theirs = [round_["insert" if operation == "copy" else operation] for round_ in native]
        ours = [round_[operation] for round_ in wrapper]
        row = {"operation": f"{operation}, {target.name}", "statement": writes.statements[operation],
               "native rows/s": theirs[0]["documents"] / median(theirs, "seconds"),
               "mongo_fdw rows/s": ours[0]["documents"] / median(ours, "seconds"),
               "MongoDB CPU s, native": statistics.mean(result["server_cpu"] for result in theirs),
               "MongoDB CPU s, mongo_fdw": statistics.mean(result["server_cpu"] for result in ours),
               "backend CPU s": statistics.mean(result["backend_cpu"] for result in ours),
               "commands": commands(ours[-1]["seen"])}
        if operation in ("insert", "copy"):
            row["throughput as a ratio to native's"] = median(theirs, "seconds") / median(ours, "seconds")
        else:
            row["time as a ratio to native's"] = median(ours, "seconds") / median(theirs, "seconds")
        table.append(row)
    return table


def run(lab):
    table = []
    with tempfile.NamedTemporaryFile("w", suffix=".copy", dir=os.environ.get("HOME")) as file, \
            targets(lab) as servers:
        make_source(lab, file)
        for target in servers:
            table += measure(lab, target, file.name)
    return table
