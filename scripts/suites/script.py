"""Splits a script of psql into statements."""

import re

# the beginning of a part in which a semicolon is no end, or the end of a statement
SPECIAL = re.compile(r"--[^\n]*|/\*|[eE]'|'|\"|\$(?:[A-Za-z_]\w*)?\$|\\[^\n]*|[();]")


def end_of_comment(text, start):
    """Returns the position after the comment that begins at start; comments nest."""
    depth = 0
    for found in re.compile(r"/\*|\*/").finditer(text, start):
        depth += 1 if found[0] == "/*" else -1
        if depth == 0:
            return found.end()
    return len(text)


def end_of_quote(text, found):
    """Returns the position after the quoted text."""
    quote = found[0]
    if quote in ("'", '"'):
        end = text.find(quote, found.end())
        return len(text) if end < 0 else end + 1
    if quote in ("e'", "E'"):
        return re.compile(r"(?:[^'\\]|\\.)*'?", re.DOTALL).match(text, found.end()).end()
    end = text.find(quote, found.end())
    return len(text) if end < 0 else end + len(quote)


def is_open_body(statement):
    """Does a body in SQL (BEGIN ATOMIC) continue?"""
    return re.search(r"\bbegin\s+atomic\b", statement, re.I) and not re.search(r"\bend\s*$", statement, re.I)


class Script:
    """Yields (statement, data of COPY or None); psql's own commands are skipped and counted."""

    def __init__(self, text, variables=None):
        self.text = text
        self.variables = dict(variables or {})
        self.left_out = 0

    def command(self, command, pending):
        """Handles a command of psql's; after a statement, it sends the statement too."""
        words = command.split(None, 2)
        if words[0] == "\\set" and len(words) == 3:
            self.variables[words[1]] = words[2].strip().strip("'")
        if pending:
            self.left_out += 1

    def with_variables(self, statement):
        for name, value in self.variables.items():
            statement = re.sub(rf"(?<![:\w]):'{name}'", lambda _: "'" + value.replace("'", "''") + "'", statement)
            statement = re.sub(rf"(?<![:\w]):{name}\b", lambda _: value, statement)
        return statement

    def statements(self):
        text, position, depth, pending = self.text, 0, 0, ""
        while position < len(text):
            found = SPECIAL.search(text, position)
            if found is None:
                break
            pending += text[position:found.start()]
            position = found.end()
            what = found[0]
            if what.startswith("--"):
                pending += " "
            elif what == "/*":
                position = end_of_comment(text, found.start())
            elif what.startswith("\\"):
                self.command(what, pending.strip())
                pending, depth = "", 0
            elif what in "()":
                depth += 1 if what == "(" else -1
                pending += what
            elif what == ";" and depth <= 0 and not is_open_body(pending):
                statement, pending, depth = self.with_variables(pending.strip()), "", 0
                data = None
                if re.match(r"copy\b.*\bfrom\s+stdin\b", statement, re.I | re.DOTALL):
                    start = text.index("\n", position) + 1
                    end = re.compile(r"^\\\.$", re.M).search(text, start)
                    data, position = text[start:end.start()], end.end()
                if statement:
                    yield statement, data
            elif what == ";":
                pending += what
            else:
                position = end_of_quote(text, found)
                pending += text[found.start():position]
