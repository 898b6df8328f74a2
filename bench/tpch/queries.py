"""The 22 queries, their answers as text, and what of them MongoDB runs."""
import collections
import io
import os

HERE = os.path.dirname(os.path.abspath(__file__))
NUMBERS = range(1, 23)

# Which output columns ORDER BY names.  Rows that are equal in these may come in any order.
ORDER_COLUMNS = {
    1: (0, 1), 2: (0, 2, 1, 3), 3: (1, 2), 4: (0,), 5: (1,), 6: (), 7: (0, 1, 2), 8: (0,), 9: (0, 1), 10: (2,), 11: (1,),
    12: (0,), 13: (1, 0), 14: (), 15: (0,), 16: (3, 0, 1, 2), 17: (), 18: (4, 3), 19: (), 20: (0,), 21: (1, 0), 22: (0,)}


def query(number, scale_factor):
    """The text of a query; FRACTION of Q11 depends on the scale factor."""
    with open(os.path.join(HERE, "queries", f"q{number:02}.sql")) as file:
        text = "".join(line for line in file if not line.startswith("--"))
    return text.strip().rstrip(";").replace(":fraction", f"{0.0001 / scale_factor:.10f}")


def answer(cursor, text):
    """The rows as lists of PostgreSQL's own texts, so that no digit is lost."""
    output = io.StringIO()
    cursor.copy_expert(f"COPY ({text}) TO STDOUT", output)
    return [line.split("\t") for line in output.getvalue().splitlines()]


def same_answer(number, rows, expected):
    """The same rows, in an order that ORDER BY allows?"""
    def keys(of):
        return [[row[column] for column in ORDER_COLUMNS[number]] for row in of]
    return sorted(rows) == sorted(expected) and keys(rows) == keys(expected)


class Plan:
    """What EXPLAIN says of a query: its nodes by kind."""

    def __init__(self, cursor, text):
        cursor.execute("EXPLAIN (VERBOSE, COSTS OFF, FORMAT JSON) " + text)
        self.nodes = collections.Counter()
        self._count(cursor.fetchone()[0][0]["Plan"])
        self.foreign_scans = self.nodes.pop("Foreign Scan", 0)

    def _count(self, node):
        self.nodes[node["Node Type"]] += 1
        for child in node.get("Plans", ()):
            self._count(child)

    def is_wholly_pushed(self):
        """Nothing but Foreign Scans: one, or one more for each subquery that gives a value."""
        return not self.nodes

    def describe(self):
        if self.is_wholly_pushed():
            return "wholly" if self.foreign_scans == 1 else f"wholly, in {self.foreign_scans} scans"
        here = ", ".join(f"{name} × {count}" if count > 1 else name for name, count in self.nodes.most_common())
        return f"{self.foreign_scans} scan{'s' * (self.foreign_scans != 1)}; here {here}"
