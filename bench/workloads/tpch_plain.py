"""TPC-H at scale factor 0.05: columns that say which are indexed, beside plain DDL and ANALYZE.

After ANALYZE, mongo_fdw has read the indexes and should need no option for them.
"""
from laboratory import median
from workloads import tpch	# which says where the next two are
from load import TABLES, create_foreign_tables
from queries import NUMBERS, answer, query, same_answer

SCALE_FACTOR = 0.05
SAYS, PLAIN = "decimal", "decimal_plain"


def make_plain(cursor, lab):
    create_foreign_tables(cursor, "decimal", lab.host, lab.port, PLAIN, says_indexed=False)
    for name in TABLES:
        cursor.execute(f"ANALYZE {PLAIN}.{name}")


def use(cursor, schema):
    cursor.execute(f"SET search_path = {schema}, public")


def compare(lab, cursor, number, text):
    """One query over both schemas."""
    lab.say(f" Q{number}")
    answers = {}
    for schema in (SAYS, PLAIN):
        use(cursor, schema)
        answers[schema] = answer(cursor, text)

    def timed(schema):
        use(cursor, schema)
        return tpch.timed(answer, cursor, text)

    results = lab.alternate(**{schema: lambda schema=schema: timed(schema) for schema in (SAYS, PLAIN)})
    says, plain = (median(results[schema], "seconds") for schema in (SAYS, PLAIN))
    return {"query": f"Q{number}", "answer": "equal" if same_answer(number, *answers.values()) else "DIFFERENT",
            "indexed said, s": says, "plain DDL, s": plain, "ratio": plain / says}


def run(lab):
    connection = tpch.connect(lab)
    scale_factor = max(SCALE_FACTOR * lab.scale, tpch.LEAST)
    tpch.load(connection, lab.host, lab.port, scale_factor, lab.say)
    with connection.cursor() as cursor:
        make_plain(cursor, lab)
        return [compare(lab, cursor, number, query(number, scale_factor)) for number in NUMBERS]
