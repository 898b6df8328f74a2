"""Intended differences and their reasons."""

import re

# suites, statement, result of local tables, result of foreign tables, reason
DIFFERENCES = [
    # features that MongoDB lacks
    (".*", "", "", "numeric value .* does not fit into a Decimal128", "Decimal128 has 34 digits"),
    ("numeric", "num_variance", "", "", "what follows a numeric that Decimal128 has no room for"),
    ("jsonb", r"set test_json\[0\] = '1'", "22023", "1 rows", "the jsonb null is an SQL NULL in MongoDB"),
    ("arrays", "arrtest", r"\[-?\d+:-?\d+\]=", "", "the subscripts of an array begin with 1 in MongoDB"),
    ("arrays", "arrtest", "", "", "what follows from subscripts that begin with 1"),
    ("arrays", "arr_tbl", "", "", "a unique index over arrays is one over their elements in MongoDB, so there is none"),
    ("portals", "fetch all from c[12]", r"2\|1", r"2\|2", "a transaction sees all that it has written, whatever the snapshot is"),
    ("merge", r"s1\.sid = s2\.sid", "4 rows", "0 rows", "a column that is renamed reads the field of its new name"),
    ("plpgsql", r"returnqueryf\(\)", "NULL", "40", "a column that is dropped leaves its field, and finds it again"),
    # features that PostgreSQL lacks for foreign tables
    (".*", "on conflict.* do update", "", "42P10: there is no unique or exclusion constraint", "a foreign table has no ON CONFLICT DO UPDATE"),
    (".*", "", "", "42803: .* must appear in the GROUP BY clause", "a foreign table has no primary key from which columns would follow"),
    ("portals", "from pg_cursors|execute cprep", "", "", "a foreign scan goes forward only, so cursors have to be declared SCROLL"),
    (".*", "where current of", "", "0A000: WHERE CURRENT OF is not supported", "a foreign table has no WHERE CURRENT OF"),
    ("portals", "fetch all from c1", "0 rows", "1 rows", "what follows a WHERE CURRENT OF"),
    ("copy", "", "", "42809: cannot copy from foreign table", "PostgreSQL copies from no foreign table, but COPY (SELECT ...) does"),
    ("rowtypes", "alter table fullname add column suffix", "", "", "a foreign table stores no rows that an ALTER TYPE would have to change"),
    # queries of the tables' properties, or of plans
    (".*", "explain|hash_join_batches", "", "", "a function shows a plan"),
    ("strings", "reltoastrelid", "", "", "a foreign table has no TOAST table"),
    ("insert", "pg_relation_size", "", "", "a foreign table has no size"),
    ("uuid", "relname LIKE 'guid%'", "", "", "the index is MongoDB's"),
    ("rangefuncs", "pg_describe_object", "of table", "of foreign table", "a foreign table is called one"),
    ("aggregates", "balk", "", "", "an aggregate of which the answer depends on whether the plan is parallel"),
]


def reason_of(suite, statement, local, foreign):
    """Returns the reason of a known difference, or None."""
    for suites, pattern, ours, theirs, reason in DIFFERENCES:
        if (re.fullmatch(suites, suite) and re.search(pattern, statement, re.I | re.DOTALL) and re.search(ours, str(local), re.DOTALL)
                and re.search(theirs, str(foreign), re.DOTALL)):
            return reason
    return None
