"""What every workload uses: both servers, the native program, the counters."""
import datetime
import json
import os
import statistics
import subprocess
import sys
import time

import psycopg2
import pymongo

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "scripts"))
from mongo_counters import QuietConnection, difference  # noqa: E402
from pgbench import pgbench  # noqa: E402


class Laboratory:
    def __init__(self, arguments):
        self.scale, self.rounds, self.seconds = arguments.scale, arguments.rounds, arguments.seconds
        self.host, self.port = os.environ["MONGO_HOST"], int(os.environ["MONGO_PORT"])
        self.uri = f"mongodb://{self.host}:{self.port}/"
        self.observer = QuietConnection(self.host, self.port)
        self.mongod = self.observer.command({"serverStatus": 1})["pid"]
        self.postgres = psycopg2.connect("")
        self.postgres.autocommit = True
        self.local_tables = set()
        self.sql("DROP SERVER IF EXISTS bench CASCADE")
        self.sql("CREATE EXTENSION IF NOT EXISTS mongo_fdw")
        self.sql("CREATE SERVER bench FOREIGN DATA WRAPPER mongo_fdw OPTIONS (address %s, port %s)",
                 (self.host, str(self.port)))
        self.sql("CREATE USER MAPPING FOR CURRENT_USER SERVER bench")

    def sql(self, text, parameters=None):
        """Runs a statement; returns its rows, if it has any."""
        with self.postgres.cursor() as cursor:
            cursor.execute(text, parameters)
            return cursor.fetchall() if cursor.description else None

    def cpu(self):
        """Returns the CPU seconds so far of the backend and of mongod."""
        return sum(time.clock_gettime(~process << 3 | 2)		# as clock_getcpuclockid()
                   for process in (self.postgres.info.backend_pid, self.mongod))

    def say(self, text):
        print(text, file=sys.stderr, flush=True)

    def collection(self, name, count, documents, indexes=(), uri=None):
        """Fills collection bench.NAME with 'count' documents; kept between runs."""
        with pymongo.MongoClient(uri or self.uri) as client:
            target = client.bench[name]
            if target.estimated_document_count() == count:
                return
            self.say(f"loading {count} documents into bench.{name}")
            target.drop()
            batch = []
            for document in documents:
                batch.append(document)
                if len(batch) == 10000:
                    target.insert_many(batch, ordered=False)
                    batch = []
            if batch:
                target.insert_many(batch, ordered=False)
            for index in indexes:
                target.create_index(index)

    def local_table(self, name, query, index=None):
        """Creates an ordinary table with the rows of a query, once in each run of the benchmarks."""
        if name in self.local_tables:
            return
        self.say(f"copying rows into table {name}")
        self.sql(f"DROP TABLE IF EXISTS {name}")
        self.sql(f"CREATE TABLE {name} AS {query}")
        if index is not None:
            self.sql(f"CREATE INDEX ON {name} ({index})")
        self.sql(f"VACUUM ANALYZE {name}")
        self.local_tables.add(name)

    def native(self, *arguments, program="native"):
        """Runs a libmongoc program; returns its output."""
        done = subprocess.run([os.path.join(HERE, "native", program), *map(str, arguments)],
                              check=True, text=True, stdout=subprocess.PIPE)
        return json.loads(done.stdout)

    def pgbench(self, script, seconds, *options):
        """Runs a script so long, after a second that is left out: in it the clients connect,
        which does not count in the native programs either."""
        result = pgbench(os.environ["PGBENCH"], ["-f", os.path.join(HERE, script), "-T", str(seconds + 1),
                                                 "-P", "1", *map(str, options)])
        result["tps"] = statistics.mean(result["progress"][1:] or [result["tps"]])
        return result

    def watched(self, function, *arguments):
        """Calls a function; returns its result, with MongoDB's counters under "seen"."""
        before = self.observer.counters()
        result = function(*arguments)
        result["seen"] = difference(before, self.observer.counters())
        return result

    def alternate(self, times=1, **contestants):
        """Runs one after another, 'rounds' times, or a multiple of that; returns {name: [results]}."""
        results = {name: [] for name in contestants}
        for number in range(1, self.rounds * times + 1):
            for name, function in contestants.items():
                result = self.watched(function)
                results[name].append(result)
                shown = ", ".join(f"{key} {value:g}" for key, value in result.items()
                                  if isinstance(value, (int, float)))
                self.say(f"  round {number}/{self.rounds * times}  {name:10} {shown}")
        return results


def median(results, key):
    return statistics.median(result[key] for result in results)


def machine():
    """Describes the machine for the report."""
    with open("/proc/cpuinfo") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown")
    with open("/proc/meminfo") as file:
        memory = int(file.readline().split()[1]) // (1024 * 1024)
    return {"processors": os.cpu_count(), "model": model, "memory_gb": memory,
            "kernel": os.uname().release, "date": datetime.date.today().isoformat()}
