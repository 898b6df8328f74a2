"""Point queries, sysbench's transactions and a scan with 0.5 ms of network before MongoDB.

Bytes of either side arrive 0.25 ms after they were sent (bench/native/delay.c), for
native programs as for mongo_fdw.  What counts then is how often one waits, and not
how many instructions there are between.
"""
import contextlib

from targets import Target, network, replica_set
from workloads import point_query, scan
from workloads.apart import row, sysbench

ONE_WAY, CLIENTS, SHARE = 250, (1, 8), 2
SCRIPTS = ("read_only", "read_write")


@contextlib.contextmanager
def far(lab, name, port):
    """The server at this port, behind the network: a Target with a foreign server."""
    with network(port, ONE_WAY) as (own_port, _):
        target = Target(name, "127.0.0.1", own_port, "bench_far")
        # members of a set would tell where they really are
        target.uri += "?directConnection=true"
        lab.sql("DROP SERVER IF EXISTS bench_far CASCADE")
        lab.sql("CREATE SERVER bench_far FOREIGN DATA WRAPPER mongo_fdw OPTIONS (uri %s)", (target.uri,))
        lab.sql("CREATE USER MAPPING FOR CURRENT_USER SERVER bench_far")
        try:
            yield target
        finally:
            lab.sql("DROP SERVER bench_far CASCADE")


def point_queries(lab, target, seconds):
    count = point_query.prepare(lab)
    lab.sql("CREATE FOREIGN TABLE far_points (id int, info text, crt_time timestamp) SERVER bench_far "
            "OPTIONS (database 'bench', collection 'points', estimated_rows %s)", (str(count),))
    for clients in CLIENTS:
        options = ("-n", "-c", clients, "-j", min(clients, 2), "-D", f"documents={count}")
        yield row(lab, f"point query -c {clients}", {
            "native": lambda: lab.native("point", target.uri, "bench.points", clients, seconds, count),
            "floor": lambda: lab.native("point", target.host, target.port, "bench.points", clients, seconds, count,
                                        program="floor"),
            "mongo_fdw simple": lambda: lab.pgbench("far_point_query.sql", seconds, "-M", "simple", *options),
            "mongo_fdw prepared": lambda: lab.pgbench("far_point_query.sql", seconds, "-M", "prepared", *options)})


def scans(lab, target):
    count = int(1_000_000 * lab.scale)
    results = lab.alternate(
        native=lambda: lab.native("scan", target.uri, "bench.points"),
        mongo_fdw=lambda: scan.measured(lab, "SELECT id, info, crt_time FROM far_points", count))
    return [{"question": line.pop("program"), **line} for line in scan.rows(results, count)]


def run(lab):
    seconds = max(lab.seconds // SHARE, 1)
    with far(lab, "standalone", lab.port) as target:
        table = [*point_queries(lab, target, seconds), *scans(lab, target), *sysbench(lab, target, SCRIPTS, CLIENTS)]
    with replica_set() as port, far(lab, "replica set", port) as target:
        return table + list(sysbench(lab, target, SCRIPTS, CLIENTS))
