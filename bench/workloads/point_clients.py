"""The point query with 1, 8, 24 and 64 clients, in each of pgbench's protocols.

The programs beside it are those of point_query.  A round of each of the many
cases has a part of the seconds.
"""
from laboratory import median
from workloads.point_query import contestants, prepare

CLIENTS, MODES, SHARE = (1, 8, 24, 64), ("simple", "extended", "prepared"), 3


def run(lab):
    count = prepare(lab)
    seconds = max(lab.seconds // SHARE, 1)
    table = []
    for clients in CLIENTS:
        who = contestants(lab, count, clients, min(clients, 2), "simple", seconds)
        for mode in MODES:
            others = contestants(lab, count, clients, min(clients, 2), mode, seconds)
            who[f"mongo_fdw {mode}"] = others["mongo_fdw"]
            who[f"local table {mode}"] = others["local table"]
        del who["mongo_fdw"], who["local table"]
        lab.say(f" {clients} clients")
        results = lab.alternate(**who)
        native = median(results["native"], "tps")
        table.append({"clients": clients,
                      **{f"{name}, tps": median(rounds, "tps") for name, rounds in results.items()},
                      **{f"{mode}, ratio to native": median(results[f"mongo_fdw {mode}"], "tps") / native
                         for mode in MODES}})
    return table
