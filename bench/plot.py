#!/usr/bin/env python3
"""Draw a results file of run.py: how fast SQL is compared with the alternatives.

plot.py RESULTS.json FOLDER
plot.py --workloads		prints the names of the workloads that it shows

results.svg: two columns of bars on logarithmic axes, beside pipelines written by hand, and
beside a C program that uses libmongoc.  network.svg, if that has been measured: reports
over networks, a column for each.  peers.svg, likewise: other ways to query MongoDB in SQL.
A bar begins at 1 and goes to the right where SQL through this extension is faster.
NAME_dark.svg is the same for a dark background.
"""
import json
import math
import os
import sys
from html import escape

ROW, HEADING, TOP, BOTTOM = 15, 24, 62, 40		# heights
MARGIN, FIGURE = 12, 42		# widths, around a column and of the figure after a bar
FONT = "-apple-system, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif"

LIGHT = {"text": "#1f2328", "faint": "#59636e", "line": "#d1d9e0", "one": "#59636e", "faster": "#2a78b5", "slower": "#c9711f"}
DARK = {"text": "#e6edf3", "faint": "#9198a1", "line": "#3d444d", "one": "#9198a1", "faster": "#5aa9e6", "slower": "#f0a35e"}


def by_hand(label):
    """Returns bars of rows that have a pipeline written by hand."""
    return lambda rows: [(row[label], row["pipeline by hand s"] / row["mongo_fdw s"])
                         for row in rows if "pipeline by hand s" in row]


def decimals(rows):
    """Returns bars of TPC-H's queries with decimals; each query has another row too."""
    return by_hand("query")([row for row in rows if row["money"] == "decimal"])


def counts(rows):
    return [(row["count"], row["native ms"] / row["mongo_fdw ms"]) for row in rows]


def program(label):
    """Returns bars of programs; only this extension's are shown, named after their operation."""
    def bars(rows):
        return [(row["program"].replace("mongo_fdw", label),
                 row["ratio to native"] if "ratio to native" in row else 1 / row["time as a ratio to native's"])
                for row in rows if row["program"].startswith("mongo_fdw")]
    return bars


def operations(rows):
    """Returns bars of the operations that the native program does too."""
    throughput, time = "throughput as a ratio to native's", "time as a ratio to native's"
    return [(row["operation"], row[throughput] if throughput in row else 1 / row[time])
            for row in rows if throughput in row or time in row]


def transactions(rows):
    """Returns bars with 24 clients, like the point query."""
    return [(f"{row['script'].removesuffix(' -c 24')}, {where}", row[f"ratio to native, {where}"])
            for row in rows if row["script"].endswith(" -c 24") for where in ("standalone", "replica set")]


def reports(setting, labelled):
    """Of those over one network; each has its label in the first column."""
    return lambda rows: [(row["question"] if labelled else "", row["pipeline_ms"] / row["sql_ms"])
                         for row in rows if row.get("setting") == setting]


def queries(peer, money):
    """Returns bars of TPC-H in one peer; a result that is not PostgreSQL's is noted."""
    notes = {"equal": "", "rounded": ", rounded", "DIFFERENT": ", wrong"}
    return lambda rows: [(row["query"] + notes[row[f"{peer} answer"]], row[f"{peer} s"] / row[f"mongo_fdw beside {peer} s"])
                         for row in rows if row["money"] == money and f"{peer} s" in row]


# Columns: width and that of labels, title, ends of the axis, marks on it, and sections:
# heading, (workload, bars) ...
COLUMNS = (
    (580, 290, "Beside pipelines written by hand", (0.3, 30), (0.5, 1, 2, 5, 10, 20), (
        ("GROUP BY", ("group_by", by_hand("question"))),
        ("Joins under aggregates", ("join", by_hand("question"))),
        ("First rows in an order", ("top_n", by_hand("question"))),
        ("TPC-H, scale factor 0.1", ("tpch", decimals)))),
    (480, 200, "Beside a C program with libmongoc", (0.35, 2.5), (0.5, 1, 2), (
        ("Counts", ("counts", counts)),
        ("Scans", ("scan", program("1,000,000 documents")), ("wide_scan", program("3 of 50 fields"))),
        ("Single rows, 24 clients", ("point_query", program("an indexed field")), ("lookups", program("_id of 10,000,000"))),
        ("Transactions of sysbench, 24 clients", ("oltp", transactions)),
        ("Writes", ("writes", operations)),
        ("Product documents", ("json_tables", operations)))))
NETWORKS = tuple(
    (label_width + 270, label_width, setting, (0.03, 4), (0.1, 0.2, 0.5, 1, 2), (("", ("network", reports(setting, labelled))),))
    for setting, label_width, labelled in (
        ("same machine", 220, True), ("1 ms, 1 Gbit/s", 20, False), ("20 ms, 100 Mbit/s", 20, False)))

PEERS = tuple(
    (400, 110, title, (0.3, 300), (1, 10, 100), tuple(
        (f"Money as {name}", ("peers", queries(peer, money))) for money, name in (("decimal", "Decimal128"), ("double", "Double"))))
    for peer, title in (("Trino", "Beside Trino"), ("DuckDB", "Beside DuckDB with PyMongoArrow")))

# Pictures: name, title, columns.
PICTURES = (
    ("results", "How fast SQL through mongo_fdw is; 1 is as fast, to the right is faster", COLUMNS),
    ("network", "How fast reports in SQL are beside pipelines written by hand; 1 is as fast, to the right is faster", NETWORKS),
    ("peers", "How fast TPC-H through mongo_fdw is; 1 is as fast, to the right is faster", PEERS))
ON_DEMAND = "peers"		# what a full run leaves out


def workloads():
    """Returns the names of the workloads that the pictures are made of, except ON_DEMAND."""
    return sorted({workload for name, _, columns in PICTURES if name != ON_DEMAND for column in columns
                   for _, *sources in column[-1] for workload, _ in sources})


class Picture:
    def __init__(self, colours):
        self.colours = colours
        self.parts = []

    def text(self, x, y, text, colour="text", anchor="start", size=11, weight="normal"):
        self.parts.append(f'<text x="{x:g}" y="{y:g}" fill="{self.colours[colour]}" font-size="{size}" '
                          f'font-weight="{weight}" text-anchor="{anchor}">{escape(text)}</text>')

    def line(self, x, y1, y2, colour):
        self.parts.append(f'<line x1="{x:.1f}" y1="{y1:g}" x2="{x:.1f}" y2="{y2:g}" stroke="{self.colours[colour]}"/>')

    def bar(self, x1, x2, y, colour):
        self.parts.append(f'<rect x="{x1:.1f}" y="{y:g}" width="{x2 - x1:.1f}" height="{ROW - 5}" fill="{self.colours[colour]}"/>')

    def svg(self, width, height):
        return "\n".join((f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
                          f'height="{height}" font-family="{FONT}">', *self.parts, "</svg>", ""))


def sections_of(report, sections):
    """Returns headings and bars of the workloads measured."""
    for heading, *sources in sections:
        bars = [bar for workload, bars_of in sources for bar in bars_of(report["workloads"].get(workload, []))]
        if bars:
            yield heading, bars


def draw_bar(picture, at, ends, y, label, speed):
    """Draws one row; a bar that is longer than the axis is cut, and has its figure."""
    shown = min(max(speed, ends[0]), ends[1])
    faster = speed >= 1
    picture.text(at(ends[0]) - 8, y + ROW - 6, label, "faint", "end")
    picture.bar(at(min(shown, 1)), at(max(shown, 1)), y, "faster" if faster else "slower")
    figure = f"{speed:.1f}" if speed >= 10 else f"{speed:.2f}" if speed >= 0.01 else f"{speed:.1g}"
    if faster:
        picture.text(at(shown) + 4, y + ROW - 6, figure, size=10)
    elif shown == speed:
        picture.text(at(1) + 4, y + ROW - 6, figure, size=10)
    else:
        picture.text(at(1) + 4, y + ROW - 6, f"{figure}, beyond the axis", size=10)


def draw_column(picture, report, left, column):
    """Draws a column; returns the position of its end."""
    width, label_width, title, ends, marks, sections = column
    width -= label_width + FIGURE

    def at(speed):
        return left + label_width + width * math.log(speed / ends[0]) / math.log(ends[1] / ends[0])

    picture.text(left + MARGIN, TOP - 12, title, size=14, weight="bold")
    axis = len(picture.parts)
    y = TOP
    for heading, bars in sections_of(report, sections):
        picture.text(left + MARGIN, y + HEADING - 8, heading, size=11, weight="bold")
        y += HEADING
        for label, speed in bars:
            draw_bar(picture, at, ends, y, label, speed)
            y += ROW
    below = picture.parts[axis:]
    del picture.parts[axis:]
    for mark in marks:
        picture.line(at(mark), TOP + 4, y + 4, "one" if mark == 1 else "line")
        picture.text(at(mark), y + 18, f"{mark:g}", "faint", "middle", 10)
    picture.parts += below
    return y


def draw(report, colours, title, columns):
    picture = Picture(colours)
    machine = report["machine"]
    picture.text(MARGIN, 22, title, size=16, weight="bold")
    left, end = 0, 0
    for column in columns:
        end = max(end, draw_column(picture, report, left, column))
        left += column[0]
    picture.text(MARGIN, end + 34, "{processors} processors ({model}), {memory_gb} GB, {date}".format(**machine) +
                 ", PostgreSQL {postgresql}, MongoDB {mongodb}".format(**report["versions"]) +
                 f", scale {report['scale']:g}, medians of {report['rounds']} rounds", "faint", size=10)
    return picture.svg(left, end + BOTTOM + 4)


def main():
    if sys.argv[1:] == ["--workloads"]:
        print(*workloads())
        return
    source, folder = sys.argv[1:]
    with open(source, encoding="utf-8") as file:
        report = json.load(file)
    for name, title, columns in PICTURES:
        if name in ("network", ON_DEMAND) and name not in report["workloads"]:
            continue
        for ending, colours in (("", LIGHT), ("_dark", DARK)):
            with open(os.path.join(folder, f"{name}{ending}.svg"), "w", encoding="utf-8") as file:
                file.write(draw(report, colours, title, columns))


if __name__ == "__main__":
    main()
