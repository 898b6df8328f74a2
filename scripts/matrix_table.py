"""Write the results of a run of the matrix into the table of versions in docs/internals/testing.md.

A result is one line: versions of PostgreSQL, libmongoc and MongoDB, the system, tests
passed and failed, and the value of TESTS, between bars.  It replaces the row of the same
versions; rows of versions that were not run remain unchanged.
"""
import re
import sys

BEGIN = "<!-- written by make matrix -->"
END = "<!-- end -->"
HEAD = ("| PostgreSQL | libmongoc | MongoDB | system | tests | passed | failed |",
        "|---|---|---|---|---|---|---|")


def tests_in_words(tests):
    """Returns a short form of TESTS."""
    names = tests.split()
    if not names:
        return "all"
    programs = [name for name in names if name.split("/")[0] == "t"]
    words = []
    if len(programs) < len(names):
        words.append("`sql/`" if "sql/*.sql" in names
                     else f"{len(names) - len(programs)} of `sql/`")
    if programs:
        words.append("`t/`" if "t" in names else f"{len(programs)} of `t/`")
    return ", ".join(words)


def order(row):
    """Sort key: versions as numbers."""
    return [[int(number) for number in re.findall(r"\d+", cell)] for cell in row[:3]]


def main():
    page, result = sys.argv[1:]
    with open(result, encoding="utf-8") as file:
        *cells, tests = file.read().rstrip("\n").split("|")
    postgresql, libmongoc, mongodb, system, passed, failed = cells
    row = [postgresql, libmongoc, mongodb, system.replace("GNU/Linux ", ""),
           tests_in_words(tests), f"{int(passed):,}", f"{int(failed):,}"]

    with open(page, encoding="utf-8") as file:
        text = file.read()
    before, rest = text.split(BEGIN)
    table, after = rest.split(END)
    rows = [[cell.strip() for cell in line.strip("|").split("|")]
            for line in table.strip().split("\n")[len(HEAD):]]
    rows = [other for other in rows if other[:4] != row[:4]] + [row]
    lines = [*HEAD, *("| " + " | ".join(cells) + " |" for cells in sorted(rows, key=order))]
    with open(page, "w", encoding="utf-8") as file:
        file.write(before + BEGIN + "\n" + "\n".join(lines) + "\n" + END + after)


if __name__ == "__main__":
    main()
