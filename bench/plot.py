#!/usr/bin/env python3
"""Draw a results file of run.py: how fast SQL is as a ratio to the native program's speed.

plot.py RESULTS.json PLOT.svg
"""
import json
import sys

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "mongo_fdw"		# the same picture for the same figures
import matplotlib.pyplot as plt  # noqa: E402

# What a workload calls its ratio, and whether more of it is slower.
RATIOS = (("ratio to native", False), ("throughput as a ratio to native's", False), ("time as a ratio to native's", True))
OURS, BETTER, WORSE = "mongo_fdw", "#3a7d44", "#b5651d"


def speeds(report):
    """(label, speed as a ratio to native's) of every row that has one."""
    for workload, rows in report["workloads"].items():
        for row in rows:
            first = str(next(iter(row.values())))
            if "program" in row and not first.startswith(OURS):
                continue
            for name, value in row.items():
                for ratio, inverted in RATIOS:
                    if name == ratio or name.endswith(", " + ratio):
                        detail = "" if first == OURS else first.removeprefix(OURS + ", ")
                        mode = name.removesuffix(ratio).rstrip(", ")
                        clients = f"{first} clients, {mode}" if mode else detail
                        yield ": ".join(filter(None, (workload, clients))), 1 / value if inverted else value


def main():
    source, target = sys.argv[1:]
    with open(source) as file:
        report = json.load(file)
    bars = list(speeds(report))
    figure, axes = plt.subplots(figsize=(9, 1.6 + 0.28 * len(bars)))
    places = range(len(bars), 0, -1)
    axes.barh(places, [speed for _, speed in bars], color=[BETTER if speed >= 1 else WORSE for _, speed in bars])
    for place, (_, speed) in zip(places, bars):
        axes.text(speed + 0.01, place, f"{speed:.2f}", va="center", fontsize=8)
    axes.set_yticks(list(places), [label for label, _ in bars], fontsize=8)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xlabel("speed of SQL through mongo_fdw; the plain libmongoc program is 1")
    axes.margins(y=0.01)
    machine = report["machine"]
    axes.set_title("{processors} processors ({model}), {memory_gb} GB, {date}".format(**machine) +
                   "\nPostgreSQL {postgresql}, MongoDB {mongodb}".format(**report["versions"]) +
                   f", scale {report['scale']:g}, medians of {report['rounds']} rounds", fontsize=8)
    figure.tight_layout()
    figure.savefig(target, metadata={"Date": None})


if __name__ == "__main__":
    main()
