"""The point query, lookups by _id and sysbench's scripts with MongoDB on a processor of its own.

Everything else (PostgreSQL, pgbench, the native programs) has the other ones, as
on two machines without a network between them.
"""
import contextlib
import os

from laboratory import median
from targets import Target
from workloads import lookups, oltp, point_query

CLIENTS, SHARE = (8, 24), 2


def pin(process, processors):
    """All threads of a process, and those that it starts from now on."""
    for thread in os.listdir(f"/proc/{process}/task"):
        os.sched_setaffinity(int(thread), processors)


@contextlib.contextmanager
def apart(lab, mongod):
    """mongod has the last processor for itself, until the end."""
    processors = sorted(os.sched_getaffinity(0))
    if len(processors) < 2:
        raise RuntimeError("there is only one processor")
    postmaster = lab.sql("SELECT pg_read_file('postmaster.pid')")[0][0].split()[0]
    others = [int(postmaster), lab.postgres.get_backend_pid(), os.getpid()]
    try:
        pin(mongod, processors[-1:])
        for process in others:
            pin(process, processors[:-1])
        yield
    finally:
        for process in [mongod, *others]:
            pin(process, processors)


def row(lab, title, contestants):
    """One line: tps of each by name, and how the wrapper's compare with the native program's."""
    results = lab.alternate(**contestants)
    tps = {name: median(rounds, "tps") for name, rounds in results.items()}
    return {"question": title, **{f"{name}, tps": value for name, value in tps.items()},
            **{f"{name}, ratio to native": value / tps["native"]
               for name, value in tps.items() if name.startswith("mongo_fdw")}}


def point_queries(lab, seconds):
    count = point_query.prepare(lab)
    for clients in CLIENTS:
        who = point_query.contestants(lab, count, clients, 2, "simple", seconds)
        prepared = point_query.contestants(lab, count, clients, 2, "prepared", seconds)
        who["mongo_fdw simple"] = who.pop("mongo_fdw")
        who["mongo_fdw prepared"] = prepared["mongo_fdw"]
        yield row(lab, f"point query -c {clients}", who)


def lookups_by_id(lab, seconds):
    count = int(lookups.DOCUMENTS * lab.scale)
    lookups.prepare(lab, count)
    for clients in CLIENTS:
        yield row(lab, f"lookup by _id -c {clients}", {
            "native": lambda: lab.native("point", lab.uri, "bench.lookups", clients, seconds, count, "_id"),
            "mongo_fdw": lambda: lab.pgbench("lookups/one.sql", seconds, "-M", "prepared", "-n", "-c", clients, "-j", 2,
                                             "-D", f"documents={count}")})


def sysbench(lab, target, scripts, numbers_of_clients):
    """Sysbench's transactions on one server, a line for each script and number of clients."""
    count = max(int(1_000_000 * lab.scale), 1000)
    lab.sql(oltp.RANDOM_STRING)
    lab.collection("sbtest", count, oltp.documents(count), indexes=["k"], uri=target.uri)
    oltp.make_foreign_table(lab, target, "oltp_one", count)
    for script in scripts:
        for clients in numbers_of_clients:
            contest = oltp.Contest(lab, script, clients, count)
            yield row(lab, f"{script} -c {clients}, {target.name}", {
                "native": lambda: contest.native(target),
                "mongo_fdw": lambda: contest.pgbench("oltp_one", target)})


def run(lab):
    target = Target("standalone", lab.host, lab.port, "bench")
    seconds = max(lab.seconds // SHARE, 1)
    with apart(lab, target.process):
        return [*point_queries(lab, seconds), *lookups_by_id(lab, seconds),
                *sysbench(lab, target, oltp.SCRIPTS, CLIENTS)]
