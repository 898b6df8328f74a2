"""The point query with 1, 8, 24 and 64 clients, in each of pgbench's protocols.

The programs beside it are those of point_query.  A round of each of the many
cases has a part of the seconds.
"""
from laboratory import median
from workloads.point_query import FUNCTION, contestants, prepare

CLIENTS, MODES, SHARE = (1, 8, 24, 64), ("simple", "extended", "prepared"), 3
OURS = ("mongo_fdw", FUNCTION, "local table")		# those that know protocols


def run(lab):
    count = prepare(lab)
    seconds = max(lab.seconds // SHARE, 1)
    table = []
    for clients in CLIENTS:
        who = contestants(lab, count, clients, min(clients, 2), "simple", seconds)
        for mode in MODES:
            others = contestants(lab, count, clients, min(clients, 2), mode, seconds)
            who |= {f"{name} {mode}": others[name] for name in OURS}
        for name in OURS:
            del who[name]
        lab.say(f" {clients} clients")
        results = lab.alternate(**who)
        tps = {name: median(rounds, "tps") for name, rounds in results.items()}
        table.append({"clients": clients, **{f"{name}, tps": value for name, value in tps.items()},
                      **{f"{mode}, ratio to native": tps[f"mongo_fdw {mode}"] / tps["native"] for mode in MODES},
                      **{f"{mode}, ratio to {FUNCTION}": tps[f"mongo_fdw {mode}"] / tps[f"{FUNCTION} {mode}"]
                         for mode in MODES}})
    return table
