"""Ways to run a query, drawn at random: prepared, by a cursor, in PL/pgSQL, in another query.

A query may contain {parameter}, which the way replaces by an integer: a constant, a
parameter of a prepared statement or function, or a column of an outer query.  Each way
returns a list of rows in no particular order; different ways may return different rows.
"""

PARAMETER = "{parameter}"
# After five executions of a prepared statement, PostgreSQL chooses between plans.
ARGUMENTS = [3, -5, 0, 7, 1, 28, 12]


def directly(execute, sql):
    return execute(sql.replace(PARAMETER, "7"))


def prepared(execute, sql):
    execute("PREPARE random_query (integer) AS " + sql.replace(PARAMETER, "$1"))
    try:
        return [(argument,) + row for argument in ARGUMENTS
                for row in execute("EXECUTE random_query (%d)" % argument)]
    finally:
        execute("DEALLOCATE random_query")


def in_transaction(ask):
    """Runs ask() in a transaction that is rolled back."""
    def run(execute, sql):
        execute("BEGIN")
        try:
            return ask(execute, sql)
        finally:
            execute("ROLLBACK")
    return run


@in_transaction
def cursor(execute, sql):
    execute("DECLARE random_cursor NO SCROLL CURSOR FOR " + sql.replace(PARAMETER, "7"))
    return execute("FETCH 2 FROM random_cursor") + execute("FETCH ALL FROM random_cursor")


@in_transaction
def scrolled_cursor(execute, sql):
    execute("DECLARE random_cursor SCROLL CURSOR FOR " + sql.replace(PARAMETER, "7"))
    execute("FETCH 3 FROM random_cursor")
    execute("MOVE BACKWARD ALL IN random_cursor")
    return execute("FETCH ALL FROM random_cursor")


# In each iteration an error is caught, while the query continues.
LOOP = """CREATE FUNCTION pg_temp.random_loop(parameter integer) RETURNS SETOF text LANGUAGE plpgsql AS $random$
DECLARE
    found record;
    rounds integer := 0;
BEGIN
    FOR found IN %s LOOP
        BEGIN
            rounds := rounds OPERATOR(pg_catalog.+) 1;
            IF rounds OPERATOR(pg_catalog.=) 2 THEN
                RAISE division_by_zero;
            END IF;
            RETURN NEXT found::text;
        EXCEPTION WHEN division_by_zero THEN
            RETURN NEXT found::text;
        END;
    END LOOP;
END $random$"""


@in_transaction
def loop(execute, sql):
    execute(LOOP % sql.replace(PARAMETER, "parameter"))
    return [(argument,) + row for argument in ARGUMENTS[:3]
            for row in execute("SELECT * FROM pg_temp.random_loop(%d)" % argument)]


@in_transaction
def view(execute, sql):
    execute("CREATE TEMP VIEW random_view AS SELECT q::text FROM (%s) AS q" % sql.replace(PARAMETER, "7"))
    return execute("SELECT * FROM random_view")


def around(text):
    """Puts the query into another one, with values for its parameter in g if it has one."""
    parameter = "g" if "g" in text.split() else "7"
    return lambda execute, sql: execute(text.replace("QUERY", sql.replace(PARAMETER, parameter)))


@in_transaction
def explained(execute, sql):
    """Runs EXPLAIN of the query; there is nothing to compare."""
    execute("EXPLAIN (ANALYZE, VERBOSE, BUFFERS, SETTINGS, TIMING OFF) " + sql.replace(PARAMETER, "7"))
    return []


# name, way, frequency
WAYS = [
    ("directly", directly, 10),
    ("prepared", prepared, 2),
    ("cursor", cursor, 1),
    ("scrolled cursor", scrolled_cursor, 1),
    ("loop", loop, 2),
    ("view", view, 1),
    ("materialized", around("WITH q AS MATERIALIZED (QUERY) SELECT q::text FROM q"), 1),
    ("not materialized", around("WITH q AS NOT MATERIALIZED (QUERY) SELECT q::text FROM q"), 1),
    ("lateral", around("SELECT g , q::text FROM generate_series(1, 3) AS g CROSS JOIN LATERAL (QUERY) AS q"), 1),
    ("lateral, outer", around("SELECT g , q::text FROM generate_series(1, 3) AS g LEFT JOIN LATERAL (QUERY) AS q ON true"), 1),
    ("output", around("SELECT g , (SELECT count(*) FROM (QUERY) AS q) FROM generate_series(1, 3) AS g"), 1),
    ("EXISTS", around("SELECT g FROM generate_series(1, 3) AS g WHERE EXISTS (QUERY)"), 1),
    ("NOT EXISTS", around("SELECT g FROM generate_series(1, 3) AS g WHERE NOT EXISTS (QUERY)"), 1),
    ("IN", around("SELECT g FROM generate_series(1, 9) AS g WHERE g::text IN (SELECT btrim(q::text, '()') FROM (QUERY) AS q)"), 1),
    ("HAVING", around("SELECT count(*) FROM generate_series(1, 3) HAVING count(*) <> (SELECT count(*) FROM (QUERY) AS q)"), 1),
    ("ORDER BY", around("SELECT g FROM generate_series(1, 3) AS g ORDER BY (SELECT count(*) FROM (QUERY) AS q), 1 LIMIT 2"), 1),
    ("LIMIT", around("SELECT count(*) FROM (SELECT 1 FROM generate_series(1, 99) LIMIT (SELECT count(*) FROM (QUERY) AS q)) AS l"), 1),
    ("INTERSECT", around("SELECT q::text FROM (QUERY) AS q INTERSECT ALL SELECT q::text FROM (QUERY) AS q"), 1),
    ("UNION", around("SELECT q::text FROM (QUERY) AS q UNION ALL SELECT q::text FROM (QUERY) AS q"), 1),
    ("explained", explained, 1),
]
BY_NAME = {name: way for name, way, _ in WAYS}


def random_way(rng):
    """Returns the name of a way."""
    return rng.choices([name for name, _, _ in WAYS], [weight for _, _, weight in WAYS])[0]
