#!/usr/bin/env python3
"""Run the workloads in bench/workloads/ and write a table and a JSON file."""
import argparse
import importlib
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
from laboratory import Laboratory, machine  # noqa: E402


def show(value):
    if isinstance(value, dict):
        return ", ".join(f"{name} {number:.5f}" for name, number in
                         sorted(value.items(), key=lambda item: -item[1])) or "none"
    if isinstance(value, float):
        return f"{value:.1f}" if value >= 100 else f"{value:.3f}"
    return str(value)


def print_table(title, rows):
    """Prints one block per row: names at the left, so that long values fit."""
    print(f"\n{title}")
    for row in rows:
        for position, (name, value) in enumerate(row.items()):
            print(f"  {show(value)}" if position == 0 else f"    {name:24} {show(value)}")


CONDITIONS = ("machine", "scale", "rounds", "seconds", "versions")


def earlier(path, report):
    """Returns the workloads of a results file made under the same conditions, or {}."""
    def conditions(of):
        return {name: of[name] for name in CONDITIONS} | {"machine": of["machine"] | {"date": None}}
    try:
        with open(path) as file:
            before = json.load(file)
        return before["workloads"] if conditions(before) == conditions(report) else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def save(path, report):
    """Writes the report atomically."""
    with open(path + ".new", "w") as file:
        json.dump(report, file, indent=1)
        file.write("\n")
    os.replace(path + ".new", path)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="factor on the numbers of documents")
    parser.add_argument("--rounds", type=int, default=5, help="alternating rounds; figures are medians")
    parser.add_argument("--seconds", type=int, default=10, help="length of a timed round")
    parser.add_argument("--only", default="", help="workloads, separated by commas")
    parser.add_argument("--output", required=True, help="JSON file to write; keeps what it has of other workloads under the same conditions")
    arguments = parser.parse_args()

    known = sorted(name[:-3] for name in os.listdir(os.path.join(HERE, "workloads")) if name.endswith(".py"))
    asked = [name for name in arguments.only.split(",") if name]
    for name in asked:
        if name not in known:
            parser.error(f"unknown workload {name}; there are {', '.join(known)}")
    workloads = {name: importlib.import_module(f"workloads.{name}") for name in asked or known}
    chosen = asked or [name for name in known if not getattr(workloads[name], "ON_DEMAND", False)]

    lab = Laboratory(arguments)
    report = {"machine": machine(), "scale": lab.scale, "rounds": lab.rounds, "seconds": lab.seconds,
              "versions": {"postgresql": lab.sql("SHOW server_version")[0][0],
                           "mongodb": lab.observer.command({"buildInfo": 1})["version"]},
              "workloads": {}}
    report["workloads"] = earlier(arguments.output, report)
    shown = {}
    for name in chosen:
        workload = workloads[name]
        lab.say(f"{name}: {workload.__doc__.splitlines()[0]}")
        report["workloads"][name] = workload.run(lab)
        shown[name] = getattr(workload, "show", print_table)
        save(arguments.output, report)

    print("\n{model}, {processors} processors, {memory_gb} GB, Linux {kernel}, {date}".format(**report["machine"]))
    print("PostgreSQL {postgresql}, MongoDB {mongodb}".format(**report["versions"]))
    print(f"scale {lab.scale:g}, medians of {lab.rounds} alternating rounds of {lab.seconds} s")
    for name in chosen:
        shown[name](name, report["workloads"][name])


if __name__ == "__main__":
    main()
