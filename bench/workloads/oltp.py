"""sysbench's OLTP as pgbench scripts, on foreign tables, a local table and natively.

Table sbtest (id, k, c, pad) and the scripts as published for PostgreSQL's
scalability work (pg_oltp_bench): point select; read-only, which has 10 point
selects and four ranges of 100; read-write, which adds two updates, a delete
and an insert.  Prepared, 1 to 64 clients; on a standalone MongoDB and on a
replica set, where read-write is a MongoDB transaction.
"""

from laboratory import median
from targets import commands, targets
from workloads.writes import key, text

CLIENTS = (1, 8, 24, 64)
SCRIPTS = ("point_select", "read_only", "read_write")
SHARE = 2				# a round of each of the many cases has this part of the seconds

# '#' becomes a digit; the scripts' patterns are groups of 11 and a dash
RANDOM_STRING = """
CREATE OR REPLACE FUNCTION sb_rand_str(pattern text) RETURNS text LANGUAGE sql VOLATILE AS $$
    SELECT string_agg(to_char(random() * 99999999999, 'FM00000000000'), '-')
    FROM generate_series(1, (length(pattern) + 1) / 12)
$$"""


def documents(count):
    for number in range(1, count + 1):
        yield {"_id": number, "k": key(number, count), "c": text(number, 10), "pad": text(2 * number, 5)}


def make_foreign_table(lab, target, schema, count):
    lab.sql(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
    lab.sql(f"CREATE SCHEMA {schema}")
    lab.sql(f"CREATE FOREIGN TABLE {schema}.sbtest (id int OPTIONS (path '_id') NOT NULL, k int NOT NULL, "
            f"c text NOT NULL, pad text NOT NULL) SERVER {target.server} "
            f"OPTIONS (database 'bench', collection 'sbtest', estimated_rows '{count}')")


def make_local_table(lab, schema, foreign):
    lab.sql(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
    lab.sql(f"CREATE SCHEMA {schema}")
    lab.sql(f"CREATE TABLE {schema}.sbtest (id int PRIMARY KEY, k int NOT NULL, c text NOT NULL, pad text NOT NULL)")
    lab.sql(f"INSERT INTO {schema}.sbtest SELECT * FROM {foreign}.sbtest")
    lab.sql(f"CREATE INDEX ON {schema}.sbtest (k)")
    lab.sql(f"VACUUM ANALYZE {schema}.sbtest")


class Contest:
    """One script with one number of clients: who runs it, and how it went."""

    def __init__(self, lab, script, clients, count):
        self.lab, self.script, self.clients, self.count = lab, script, clients, count
        self.seconds = max(lab.seconds // SHARE, 1)

    def native(self, target):
        return target.watched(lambda: self.lab.native(
            self.script, target.uri, "bench.sbtest", self.clients, self.seconds, self.count,
            *target.transaction(), program="oltp"))

    def pgbench(self, schema, target):
        # 40001 from MongoDB's write conflicts are retried, as the native program does
        def run():
            return self.lab.pgbench(
                f"oltp/{self.script}.sql", self.seconds, "-M", "prepared", "-n", "-c", self.clients,
                "-j", min(self.clients, 8), "--max-tries", 1000,
                "-D", f"table_size={self.count}", f"options='-c search_path={schema},public'")
        return target.watched(run) if target else run()


def measure(lab, contest, contestants):
    results = {name: [] for name in contestants}
    for number in range(1, lab.rounds + 1):
        for name, function in contestants.items():
            result = function()
            if result.get("failed"):
                raise RuntimeError(f"{name}, {contest.script}: {result['failed']:.0f} transactions failed")
            results[name].append(result)
            lab.say(f"  round {number}/{lab.rounds}  {contest.script} -c {contest.clients}  "
                    f"{name:24} tps {result['tps']:g}")
    return results


def run(lab):
    count = max(int(1_000_000 * lab.scale), 1000)
    lab.sql(RANDOM_STRING)
    table = []
    with targets(lab) as servers:
        schemas = {target: "oltp_" + target.name.replace(" ", "_") for target in servers}
        for target, schema in schemas.items():
            lab.collection("sbtest", count, documents(count), indexes=["k"], uri=target.uri)
            make_foreign_table(lab, target, schema, count)
        make_local_table(lab, "oltp_local", schemas[servers[0]])
        for script in SCRIPTS:
            for clients in CLIENTS:
                contest = Contest(lab, script, clients, count)
                contestants = {"local table": lambda: contest.pgbench("oltp_local", None)}
                for target, schema in schemas.items():
                    contestants["native, " + target.name] = lambda target=target: contest.native(target)
                    contestants["mongo_fdw, " + target.name] = \
                        lambda target=target, schema=schema: contest.pgbench(schema, target)
                results = measure(lab, contest, contestants)
                row = {"script": f"{script} -c {clients}"}
                for name, rounds in results.items():
                    row[f"{name} tps"] = median(rounds, "tps")
                for target in servers:
                    ours = results["mongo_fdw, " + target.name]
                    row[f"ratio to native, {target.name}"] = \
                        median(ours, "tps") / median(results["native, " + target.name], "tps")
                    row[f"commands a transaction, {target.name}"] = \
                        commands(ours[-1]["seen"], ours[-1]["transactions"])
                table.append(row)
    return table
