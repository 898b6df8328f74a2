"""Translates statements about tables and indexes to statements about foreign tables."""

import re

NAME = r'(?:"[^"]+"|\w+)(?:\.(?:"[^"]+"|\w+))?'
DROP_TABLE = re.compile(rf"drop\s+table\s+(if\s+exists\s+)?({NAME}(?:\s*,\s*{NAME})*)\s*(cascade|restrict)?\s*$", re.I)
CREATE_INDEX = re.compile(rf"create\s+(unique\s+)?index\s+(?:concurrently\s+)?(?:if\s+not\s+exists\s+)?({NAME}\s+)?on\s+(?:only\s+)?({NAME})\s*"
                          r"(?:using\s+\w+\s*)?\((.*)\)([^)]*)$", re.I | re.DOTALL)
DROP_INDEX = re.compile(rf"drop\s+index\s+(?:if\s+exists\s+)?({NAME})", re.I)
ADD_CONSTRAINT = re.compile(rf"alter\s+table\s+(?:only\s+)?({NAME})\s+add\s+(?:constraint\s+\w+\s+)?(primary\s+key|unique|foreign\s+key)", re.I)
SET_STORAGE = re.compile(rf"alter\s+table\s+({NAME})\s+(?:re)?set\s*\(", re.I)
CURSOR = re.compile(r"declare\s+(\w+)\s+cursor\b(?!.*\bfor\s+(?:update|share))", re.I | re.DOTALL)
FOREIGN_KEY = re.compile(rf",\s*(?:constraint\s+\w+\s+)?foreign\s+key\s*\([^)]*\)\s*references\s+{NAME}(?:\s*\([^)]*\))?[^,)]*", re.I)
REFERENCES = re.compile(rf"\breferences\s+{NAME}(?:\s*\([^)]*\))?(?:\s+(?:on\s+(?:delete|update)\s+(?:cascade|restrict|set\s+null|set\s+default|"
                        r"no\s+action)|(?:not\s+)?deferrable|initially\s+\w+))*", re.I)


class Translator:
    """Translates for a side with foreign tables; is_foreign(name): is this table foreign?"""

    def __init__(self, is_foreign):
        self.is_foreign = is_foreign
        self.indexes = {}

    def translate(self, statement):
        """Returns statements to run, and (table, keys, unique) of an index to create in MongoDB."""
        found = DROP_TABLE.match(statement)
        if found:
            return self.drop_tables(found), None
        found = CREATE_INDEX.match(statement)
        if found and self.is_foreign(found[3]):
            return [], self.index(found)
        found = DROP_INDEX.match(statement)
        if found and found[1].lower() in self.indexes:
            del self.indexes[found[1].lower()]
            return [], None
        found = ADD_CONSTRAINT.match(statement) or SET_STORAGE.match(statement)
        if found and self.is_foreign(found[1]):
            return [], None
        if CURSOR.match(statement):		# a foreign scan cannot go backward
            return [CURSOR.sub(r"DECLARE \1 SCROLL CURSOR", statement, count=1)], None
        if re.match(r"create\s+(temp\w*\s+|unlogged\s+)*table\b", statement, re.I):
            return [REFERENCES.sub("", FOREIGN_KEY.sub("", statement))], None
        return [statement], None

    def drop_tables(self, found):
        names = [name.strip() for name in re.findall(NAME, found[2])]
        if not any(self.is_foreign(name) for name in names):
            return [found[0]]
        return [f"DROP {'FOREIGN ' if self.is_foreign(name) else ''}TABLE {found[1] or ''}{name} {found[3] or ''}" for name in names]

    def index(self, found):
        """Returns the index if MongoDB supports a similar one."""
        name = (found[2] or "").strip().lower()
        if name:
            self.indexes[name] = found[3]
        keys = [key.strip().lower() for key in found[4].split(",")]
        if found[5].strip() or not all(re.fullmatch(r"\w+", key) for key in keys):
            return None
        return found[3], keys, bool(found[1])
