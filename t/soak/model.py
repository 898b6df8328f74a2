"""A client's record of its own writes in the soak test.

Each client writes rows that no other client changes, so it knows the expected rows:
those that were reported as committed and, if the outcome is unknown, old or new ones.
"""
import dataclasses
import hashlib


FIXED_ROWS = 5000
PARTS = 3                       # rows of table part for each of fixed
KINDS = 7
ACCOUNTS = 50
INITIAL_BALANCE = 1000


def fixed_row(n):
    """Returns a document that never changes: n, kind, square, word."""
    return (n, n % KINDS, n * n, hashlib.md5(str(n).encode()).hexdigest()[:8 + n % 9])


def next_note(note):
    return hashlib.md5((note + "x").encode()).hexdigest()


@dataclasses.dataclass
class Work:
    """One transaction's writes to one collection of rows, and its outcome."""
    number: int
    atomic: bool                # all or none of it is written
    outcome: str = "refused"    # committed, refused or unknown
    before: dict = dataclasses.field(default_factory=dict)      # key: row, or None
    after: dict = dataclasses.field(default_factory=dict)
    entered: bool = False       # it has written its number to table entry
    moved: list = dataclasses.field(default_factory=list)       # (account, amount)
    local: bool = False         # it also wrote to PostgreSQL's own table


class Rows:
    """The rows of one client in one collection: key: (v, note)."""

    def __init__(self, first_key):
        self.sure = {}
        self.unsure = {}        # key: possible values; no longer written
        self.first_key = first_key
        self.next_key = first_key
        self.works = []

    def new_keys(self, count):
        self.next_key += count
        return range(self.next_key - count, self.next_key)

    def finish(self, work):
        """Records the outcome of a transaction."""
        self.works.append(work)
        if work.outcome == "committed":
            for key, row in work.after.items():
                self._set(key, row)
        elif work.outcome == "unknown":
            for key, row in work.after.items():
                self.sure.pop(key, None)
                self.unsure[key] = {work.before[key], row}

    def _set(self, key, row):
        if row is None:
            self.sure.pop(key, None)
        else:
            self.sure[key] = row

    def wrong(self, found, written=None):
        """Returns what is wrong in a read of all the client's rows; 'written' is the
        work of the transaction that read them."""
        expected = dict(self.sure)
        for key, row in (written.after if written else {}).items():
            expected[key] = row
            if row is None:
                del expected[key]
        complaints = []
        for key in expected.keys() | found.keys():
            if key in self.unsure and found.get(key) in self.unsure[key]:
                continue
            if found.get(key) != expected.get(key):
                complaints.append(f"row {key} is {found.get(key)}, not {expected.get(key)}" +
                                  (f" and none of {self.unsure[key]}" if key in self.unsure else ""))
        return complaints + [f"row {key} is missing, which should be one of {rows}"
                             for key, rows in self.unsure.items()
                             if key not in found and None not in rows]

    def half_done(self, found):
        """Returns transactions of unknown outcome that are written in part."""
        return [f"transaction {work.number}: {work.before} became {work.after}, of which is there "
                f"{ {key: found.get(key) for key in work.after} }"
                for work in self.works if work.outcome == "unknown" and work.atomic and
                any(found.get(key) != work.after[key] for key in work.after) and
                any(found.get(key) != work.before[key] for key in work.after)]
