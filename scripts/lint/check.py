"""Rules for this source that a program can check.

    check.py [--list CHECK] ROOT

ROOT contains the sources and, next to them, the objects built from them.  Prints "ok - CHECK"
or "not ok - CHECK" with the violations.  scripts/lint/known.txt lists violations that are
accepted for now.  A line there without a violation is a failure too, so that the list only
becomes shorter.
"""
import argparse
import collections
import glob
import os
import re
import subprocess
import sys

LONGEST_FUNCTION = 120
LONGEST_FILE = 1050
ROOM = 2000
WIDEST_LINE = 100
TAB = 4
KNOWN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "known.txt")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Tree:
    """The files, and the names that their objects define and use."""

    def __init__(self, root):
        os.chdir(root)
        self.sources = sorted(glob.glob("src/**/*.c", recursive=True))
        self.headers = sorted(glob.glob("include/*.h") + glob.glob("src/**/*.h", recursive=True))
        self.text = {path: read(path) for path in self.sources + self.headers}
        self.built = [path for path in self.sources if os.path.exists(object_of(path))]
        self.defined, self.undefined = {}, collections.defaultdict(set)
        symbols = subprocess.run(["nm", "-A", *map(object_of, self.built)], stdout=subprocess.PIPE, text=True, check=True)
        for line in symbols.stdout.splitlines():
            path = line.partition(":")[0][:-2] + ".c"
            kind, name = line.split()[-2:]
            if kind == "U":
                self.undefined[path].add(name)
            elif kind.isupper():
                self.defined[name] = path

    def uses(self, path):
        """Returns the other sources whose functions and tables this one uses."""
        return {self.defined[name] for name in self.undefined[path] if name in self.defined} - {path}

    def included(self, path):
        """Returns this project's headers that a file includes."""
        names = re.findall(r'^#\s*include "([^"]+)"', self.text[path], re.MULTILINE)
        folders = (os.path.dirname(path), "include")
        return {header for name in names for header in (os.path.normpath(os.path.join(folder, name)) for folder in folders)
                if header in self.text}

    def functions(self, path):
        """Yields name, is static, first and last line of each function in pgindent's layout."""
        lines = self.text[path].split("\n")
        for number, line in enumerate(lines):
            match = re.match(r"(\w+)\(", line)
            if not match or number == 0 or line.endswith(";"):
                continue
            begin = next((i for i in range(number, min(number + 30, len(lines))) if lines[i] == "{"), None)
            if begin is None or any(re.match(r"[#;}]|.*;$", text) for text in lines[number:begin]):
                continue
            end = next(i for i in range(begin, len(lines)) if lines[i].startswith("}"))
            yield match.group(1), "static" in lines[number - 1].split(), number, end + 1


def object_of(path):
    return path[:-2] + ".o"


def folder_of(path):
    return os.path.dirname(path)


def circles(edges):
    """Returns sets of nodes that reach each other, by Tarjan's algorithm."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(edges[node]):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            members = stack[stack.index(node):]
            del stack[stack.index(node):]
            if len(members) > 1:
                found.append(sorted(members))

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return found


def long_functions(tree):
    for path in tree.sources + tree.headers:
        for name, _, first, last in tree.functions(path):
            if last - first + 1 > LONGEST_FUNCTION:
                yield "%s: %s has %d lines" % (path, name, last - first + 1)


def long_files(tree):
    """Without comments that are lines of their own: contracts stand above the definitions."""
    for path, text in tree.text.items():
        lines = re.sub(r"^[ \t]*/\*.*?\*/[ \t]*\n", "", text, flags=re.MULTILINE | re.DOTALL).count("\n")
        if lines > LONGEST_FILE:
            yield "%s has %d lines" % (path, lines)


def missing_contracts(tree):
    """The comment above an extern function begins with its name, that above a static one does not."""
    for path in tree.sources:
        lines = tree.text[path].split("\n")
        for name, static, first, _ in tree.functions(path):
            end = first - 2
            while lines[end].startswith("PG_FUNCTION_INFO_V1("):
                end -= 1
            begin = end
            while lines[end].endswith("*/") and not lines[begin].startswith("/*"):
                begin -= 1
            named = lines[begin:begin + 2] == ["/*", " * " + name]
            if not static and not named:
                yield "%s: %s has no contract" % (path, name)
            elif static and (named or re.match(r"(/\*| \*) %s: " % name, lines[min(begin + (lines[begin] == "/*"), end)])):
                yield "%s: the comment above %s repeats its name" % (path, name)


def width(line):
    return len(line.expandtabs(TAB))


def wide_documents(_tree):
    """Except in tables and code, and for lines without a blank at which they could be broken."""
    for path in sorted(glob.glob("*.md") + glob.glob("docs/**/*.md", recursive=True) + glob.glob("t/**/*.md", recursive=True)):
        code = False
        for number, line in enumerate(read(path).split("\n"), 1):
            opens, closes = line.startswith("<!--"), line.endswith("-->")
            if line.lstrip().startswith("```") or (opens != closes and opens != code):
                code = not code
            text = re.sub(r"`[^`]*`", lambda match: match.group().replace(" ", "_"), re.sub(r"^\s*(?:[-*]|\d+\.|#+)? +", "", line))
            if width(line) > WIDEST_LINE and not (code or opens and closes) and not line.startswith("|") and " " in text:
                yield "%s:%d is %d columns wide" % (path, number, width(line))


def wide_comments(tree):
    """Except for comments after code that is itself wider."""
    for path, text in tree.text.items():
        comment = False
        for number, line in enumerate(text.split("\n"), 1):
            before = "" if comment else line.rpartition("/*")[0] or line
            comment = (comment or "/*" in line) and line.rfind("*/") < max(line.rfind("/*"), 0)
            if width(line) > WIDEST_LINE >= width(before) and " " in line.strip():
                yield "%s:%d is %d columns wide" % (path, number, width(line))
    scripts = glob.glob("t/**/*.p[lmy]", recursive=True) + glob.glob("scripts/**/*.*", recursive=True) + ["Makefile"]
    for path in sorted(scripts):
        for number, line in enumerate(read(path).split("\n"), 1):
            if width(line) > WIDEST_LINE and re.match(r"\s*#", line):
                yield "%s:%d is %d columns wide" % (path, number, width(line))


def circles_of_calls(tree):
    uses = collections.defaultdict(set)
    for path in tree.built:
        uses[folder_of(path)] |= {folder_of(other) for other in tree.uses(path)} - {folder_of(path)}
    for members in circles(uses):
        yield " ".join(members)


def circles_within_folders(tree):
    """Files of a folder stand in levels; known.txt has the circles that are honest recursion."""
    for files in circles({path: {other for other in tree.uses(path) if folder_of(other) == folder_of(path)} for path in tree.built}):
        yield " ".join(files)


def circles_of_includes(tree):
    for members in circles({path: tree.included(path) for path in tree.headers}):
        yield " ".join(members)


def repeated_static_names(tree):
    files = collections.defaultdict(list)
    for path in tree.sources:
        for name, static, _, _ in tree.functions(path):
            if static:
                files[name].append(path)
    for name, paths in sorted(files.items()):
        if len(set(paths)) > 1:
            yield "%s: %s" % (name, " ".join(paths))


def headers_of_one_folder(tree):
    for header in tree.headers:
        if header.startswith("include/"):
            private = [path for path in tree.headers if path.startswith("src/")]
            folders = {folder_of(path) for path in tree.sources + private if header in tree.included(path)}
            others = [path for path in tree.headers if path.startswith("include/") and header in tree.included(path)]
            if len(folders) == 1 and not others and not glob_includes("t/fuzz/*.[ch]", header):
                yield "%s is for %s alone" % (header, *folders)


def glob_includes(pattern, header):
    return any('"%s"' % os.path.basename(header) in read(path) for path in glob.glob(pattern))


def needless_externs(tree):
    fuzzed = {name for path in glob.glob("t/fuzz/*.c") for name in re.findall(r"\bmongo_\w+", read(path))}
    used = fuzzed.union(*tree.undefined.values())
    for name, path in sorted(tree.defined.items()):
        called_by_sql = "pg_finfo_" + name in tree.defined
        called_by_name = glob_includes("src/*/*.c", name)  # main functions of background workers
        if name not in used and not called_by_sql and not called_by_name and not re.match(r"_PG_init$|Pg_magic_func$|pg_finfo_", name):
            yield "%s: %s" % (path, name)


def names_of_libbson(tree):
    """libbson's name space is left to it, and nothing that it failed to append is overlooked."""
    for path, text in tree.text.items():
        for name, *_ in tree.functions(path):
            if name.startswith("bson_"):
                yield "%s defines %s" % (path, name)
        if path != "include/compat.h":
            for name in re.findall(r"^#define ((?:bson|BSON)_\w+)", text, re.MULTILINE):
                yield "%s defines %s" % (path, name)
        for call in re.findall(r"[;{})]\n\s*((?:bson|BSON)_(?:append|APPEND|concat)\w*)\(", text):
            yield "%s drops the result of %s" % (path, call)


def arrows(tree):
    """docs/internals/architecture.md has a table of folders and the folders that each may use."""
    allowed = {}
    for folder, uses in re.findall(r"^\| `(src/\w+)` \|[^|]*\|([^|]*)\|$", read("docs/internals/architecture.md"), re.MULTILINE):
        allowed[folder] = {"src/" + name for name in re.findall(r"\w+", uses)} | {folder, "src/common"}
    for path in tree.built:
        for other in sorted(tree.uses(path)):
            if path != "src/mongo_fdw.c" and folder_of(other) not in allowed.get(folder_of(path), ()):
                yield "%s uses %s" % (path, other)


def size(tree):
    """CONTRIBUTING.md has the bounds: a change that needs more raises them, one that frees much lowers them."""
    now = {"lines": sum(text.count("\n") for text in tree.text.values()), "files": len(tree.text), "headers": len(tree.headers)}
    bounds = dict(re.findall(r"^\| (lines|files|headers) \| ([\d,]+) \|$", read("CONTRIBUTING.md"), re.MULTILINE))
    for what, count in now.items():
        bound = int(bounds.get(what, "0").replace(",", ""))
        if count > bound:
            yield "there are %d %s, and CONTRIBUTING.md allows %d" % (count, what, bound)
        elif what == "lines" and bound - count > ROOM:
            yield "CONTRIBUTING.md leaves room for %d lines more: lower its bounds to what there is" % (bound - count)


CHECKS = {
    "no function has more than %d lines" % LONGEST_FUNCTION: long_functions,
    "no file has more than %d lines without comments" % LONGEST_FILE: long_files,
    "extern functions have their contract above the definition": missing_contracts,
    "documents are %d columns wide at most" % WIDEST_LINE: wide_documents,
    "comments are %d columns wide at most" % WIDEST_LINE: wide_comments,
    "src and include are no larger than CONTRIBUTING.md says": size,
    "no circle of calls between folders": circles_of_calls,
    "no circle of calls within a folder": circles_within_folders,
    "no circle of includes": circles_of_includes,
    "folders use those that docs/internals/architecture.md says": arrows,
    "static names are in one file": repeated_static_names,
    "headers in include are for several folders": headers_of_one_folder,
    "what is extern is used elsewhere": needless_externs,
    "names and results of libbson are respected": names_of_libbson,
}


def known_exceptions():
    known, check = collections.defaultdict(list), None
    for line in read(KNOWN).split("\n"):
        if line.startswith("== "):
            check = line[3:]
        elif line and not line.startswith("#"):
            known[check].append(line)
    return known


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", help="print what breaks the checks whose names contain this, as for known.txt")
    parser.add_argument("root")
    options = parser.parse_args()
    tree = Tree(options.root)
    known = known_exceptions()
    failures = 0
    for name, check in CHECKS.items():
        broken = sorted(set(check(tree)))
        if options.list is not None:
            if options.list in name and broken:
                print("\n".join(["== " + name] + broken))
            continue
        new = [line for line in broken if line not in known[name]]
        gone = [line for line in known[name] if line not in broken]
        failures += bool(new or gone)
        print("%s - %s" % ("not ok" if new or gone else "ok", name))
        for line in new:
            print("#   " + line)
        for line in gone:
            print("#   to be taken out of scripts/lint/known.txt: " + line)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
