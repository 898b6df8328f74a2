"""Reads of the soak test, each compared with the expected rows.

An action has the client as its argument, and raises the errors of psycopg2.
"""
from model import ACCOUNTS, FIXED_ROWS, INITIAL_BALANCE, KINDS, PARTS, fixed_row

FIXED = [fixed_row(n) for n in range(FIXED_ROWS)]


def any_server(client):
    return client.schema(client.random.choice(("rs", "off", "alone")))


def some_range(client, most):
    first = client.random.randrange(FIXED_ROWS)
    return first, min(FIXED_ROWS, first + client.random.randint(1, most))


def point(client):
    n = client.random.randrange(FIXED_ROWS)
    client.expect_equal(client.rows_of(f"SELECT * FROM {any_server(client)}.fixed WHERE n = %s", (n,)),
                        [FIXED[n]], "point")


def prepared(client):
    """Uses a generic plan from the sixth time on."""
    schema = any_server(client)
    if schema not in client.prepared:
        client.execute(f"PREPARE {schema}_point(int) AS SELECT * FROM {schema}.fixed WHERE n = $1")
        client.prepared.add(schema)
    for n in client.random.sample(range(FIXED_ROWS), 8):
        client.expect_equal(client.rows_of(f"EXECUTE {schema}_point(%s)", (n,)), [FIXED[n]], "prepared")


def ordered(client):
    first, end = some_range(client, 200)
    limit = client.random.randint(1, 100)
    client.expect_equal(
        client.rows_of(f"SELECT * FROM {any_server(client)}.fixed WHERE n >= %s AND n < %s "
                       "ORDER BY n DESC LIMIT %s", (first, end, limit)),
        FIXED[first:end][::-1][:limit], "ordered")


def limited(client):
    rows = client.rows_of(f"SELECT * FROM {any_server(client)}.fixed WHERE word <> 'x' LIMIT 300")
    client.expect_equal(rows, [FIXED[row[0]] for row in rows], "limited")
    client.expect_equal(len({row[0] for row in rows}), 300, "limited")


def whole(client):
    """Reads every row, in batches of the table's fetch_size."""
    rows = client.rows_of(f"SELECT * FROM {any_server(client)}.fixed")
    client.expect_equal(sorted(rows), FIXED, "whole")


def grouped(client):
    end = client.random.randint(1, FIXED_ROWS)
    expected = {}
    for n, kind, square, _ in FIXED[:end]:
        count, total = expected.get(kind, (0, 0))
        expected[kind] = (count + 1, total + square)
    rows = client.rows_of(f"SELECT kind, count(*), sum(square)::bigint FROM {any_server(client)}.fixed "
                          "WHERE n < %s GROUP BY kind", (end,))
    client.expect_equal({kind: (count, total) for kind, count, total in rows}, expected, "grouped")


def joined(client):
    """Joins by a lookup, or by batches of keys."""
    first, end = some_range(client, 60)
    schema = any_server(client)
    rows = client.rows_of(
        f"SELECT f.n, f.square, p.part FROM {schema}.fixed f JOIN {schema}.part p ON p.of = f.n "
        "WHERE f.n >= %s AND f.n < %s", (first, end))
    client.expect_equal(sorted(rows), [(n, n * n, part) for n in range(first, end)
                                       for part in range(PARTS)], "joined")


def appended(client):
    """Reads from both servers at the same time."""
    kind = client.random.randrange(KINDS)
    row, = client.rows_of(
        "SELECT count(*), sum(length(word)) FROM "
        f"(SELECT word FROM {client.schema('rs')}.fixed WHERE kind = %(kind)s UNION ALL "
        f"SELECT word FROM {client.schema('alone')}.fixed WHERE kind = %(kind)s) a", {"kind": kind})
    words = [word for _, k, _, word in FIXED if k == kind]
    client.expect_equal(row, (2 * len(words), 2 * sum(map(len, words))), "appended")


def fetched(client):
    """Fetches from a cursor, which is closed or ended by COMMIT, ROLLBACK or an error."""
    isolation = client.random.choice(("READ COMMITTED", "REPEATABLE READ"))
    client.execute(f"BEGIN ISOLATION LEVEL {isolation}")
    client.execute(f"DECLARE c CURSOR FOR SELECT * FROM {any_server(client)}.fixed WHERE n >= 0 ORDER BY n")
    position = 0
    for _ in range(client.random.randint(0, 6)):
        count = client.random.randint(1, 300)
        client.expect_equal(client.rows_of(f"FETCH {count} FROM c"), FIXED[position:position + count],
                            "fetched")
        position += count
    end = client.random.choice(("COMMIT", "ROLLBACK", "CLOSE c", "SELECT 1 / 0"))
    if end == "SELECT 1 / 0":
        client.fails_with("22012", end)
    else:
        client.execute(end)
    if client.in_transaction():
        client.execute("COMMIT")


def divided(client):
    n = client.random.randrange(FIXED_ROWS)
    client.fails_with("22012", f"SELECT 1 / (n - %s) FROM {any_server(client)}.fixed WHERE n >= %s",
                      (n, max(n - 10, 0)))


def misread(client):
    """Reads a document that does not fit its column."""
    client.fails_with("22P02", f"SELECT * FROM {any_server(client)}.bad")


def caught(client):
    """Catches errors in PL/pgSQL, which uses subtransactions."""
    first, end = some_range(client, 8)
    schema = any_server(client)
    row, = client.rows_of(f"SELECT soak_caught('{schema}', %s, %s)", (first, end))
    client.expect_equal(row[0], end - first, "caught")


def commanded(client):
    n = client.random.randrange(FIXED_ROWS)
    row, = client.rows_of(
        f"SELECT mongo_command('{any_server(client)}', 'soak', "
        f"'{{\"count\": \"fixed\", \"query\": {{\"n\": {{\"$lt\": {n}}}}}}}'::json)->>'n'")
    client.expect_equal(int(row[0]), n, "commanded")


def totals(client):
    """Adds up the money, which only moves: the sum is the same in every snapshot."""
    schema = client.schema("rs")
    client.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    summed, = client.rows_of(f"SELECT count(*), sum(balance)::bigint FROM {schema}.account")
    rows = client.rows_of(f"SELECT _id, balance FROM {schema}.account WHERE _id >= 0")
    client.execute("COMMIT")
    total = (ACCOUNTS, ACCOUNTS * INITIAL_BALANCE)
    client.expect_equal(summed, total, "totals, added up by MongoDB")
    client.expect_equal((len(rows), sum(balance for _, balance in rows)), total, "totals")


def own_rows(client):
    """Compares all rows of this client with its model."""
    for collection, server in (("set", client.random.choice(("rs", "off"))), ("alone", "alone")):
        rows = client.rows[collection]
        found = client.rows_of(
            f"SELECT _id, v, note FROM {client.schema(server)}.own WHERE _id >= %s AND _id < %s",
            (rows.first_key, rows.next_key))
        client.expect(rows.wrong({key: (v, note) for key, v, note in found}), f"own rows on {server}")


ACTIONS = (
    (12, point), (3, prepared), (6, ordered), (4, limited), (1, whole), (3, grouped), (4, joined),
    (3, appended), (5, fetched), (3, divided), (2, misread), (3, caught), (2, commanded), (4, totals),
    (8, own_rows),
)
