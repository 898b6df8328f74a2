"""The statements of t/faults/faults.py, and their tables.

Tables points and details have 60 rows in four batches.  Statements change table written, which
has the same rows before each of them.  Collection changed is only read, by its change stream; kept
is synchronized.
"""
import dataclasses
import io

ROWS = 60
WRITTEN = 12

# Each exists in a schema with the name of its server.
TABLES = """
    CREATE SCHEMA {server};
    SET search_path = {server};
    CREATE FOREIGN TABLE points (_id int, grp int, info text) SERVER {server}
        OPTIONS (database 'faults', fetch_size '20', estimated_rows '60');
    CREATE FOREIGN TABLE details ("of" int, part int, words text[]) SERVER {server}
        OPTIONS (database 'faults', fetch_size '20', estimated_rows '60');
    CREATE FOREIGN TABLE written (_id int, n int, info text) SERVER {server}
        OPTIONS (database 'faults', batch_size '5');
    CREATE FOREIGN TABLE of_group (_id int, info text, wanted int OPTIONS (parameter 'group')) SERVER {server}
        OPTIONS (database 'faults', collection 'points', pipeline '[{{"$match": {{"grp": {{"$param": "group"}}}}}}]');
    CREATE FOREIGN TABLE words (_id int, word text OPTIONS (path 'words')) SERVER {server}
        OPTIONS (database 'faults', collection 'details', unwind 'words', fetch_size '20');
    CREATE FOREIGN TABLE changes (__operation text, __token text COLLATE "C", __time timestamptz, _id int, info text)
        SERVER {server} OPTIONS (database 'faults', collection 'changed', change_stream 'collection', fetch_size '20');
    CREATE FOREIGN TABLE waiting (__operation text, __token text COLLATE "C", __time timestamptz)
        SERVER {server} OPTIONS (database 'faults', collection 'unchanged', change_stream 'collection', max_wait '100ms');
    CREATE FOREIGN TABLE kept (_id int, n int) SERVER {server} OPTIONS (database 'faults');
    CREATE SCHEMA imported_{server};
    RESET search_path;
"""

LOCAL = """
    CREATE TABLE local_rows (n int);
    CREATE TABLE parts (p text, _id int, grp int, info text) PARTITION BY LIST (p);
    CREATE FOREIGN TABLE parts_rs PARTITION OF parts FOR VALUES IN ('rs') SERVER rs
        OPTIONS (database 'faults', collection 'points', fetch_size '20', estimated_rows '60');
    CREATE FOREIGN TABLE parts_alone PARTITION OF parts FOR VALUES IN ('alone') SERVER alone
        OPTIONS (database 'faults', collection 'points', fetch_size '20', estimated_rows '60');
    CREATE FOREIGN TABLE parts_again PARTITION OF parts FOR VALUES IN ('again') SERVER alone
        OPTIONS (database 'faults', collection 'points', fetch_size '20', estimated_rows '60');
    CREATE FUNCTION ask(wanted int) RETURNS text LANGUAGE plpgsql AS $$
    DECLARE
        found text;
    BEGIN
        SELECT info INTO found FROM points WHERE _id = wanted;
        RETURN found;
    END $$;
    CREATE FUNCTION catch_all() RETURNS int LANGUAGE plpgsql AS $$
    DECLARE
        caught int := 0;
    BEGIN
        FOR i IN 1 .. 4 LOOP
            BEGIN
                PERFORM 1 / (_id - 30) FROM points WHERE length(info) > 0;
            EXCEPTION WHEN OTHERS THEN
                caught := caught + 1;
            END;
        END LOOP;
        RETURN caught;
    END $$;
    CREATE FUNCTION import_twice(server text) RETURNS void LANGUAGE plpgsql AS $$
    BEGIN
        FOR i IN 1 .. 2 LOOP
            BEGIN
                EXECUTE format('IMPORT FOREIGN SCHEMA faults LIMIT TO (points) FROM SERVER %I INTO imported_%1$s', server);
                RETURN;
            EXCEPTION WHEN out_of_memory THEN
                NULL;
            END;
        END LOOP;
    END $$;
"""


def documents(collection):
    """Returns the documents before each statement."""
    if collection in ("points", "changed"):
        return [{"_id": i, "grp": i % 5, "info": f"info {i}"} for i in range(1, ROWS + 1)]
    if collection == "details":
        return [{"_id": i, "of": i, "part": i % 3, "words": ["a", "b"]} for i in range(1, ROWS + 1)]
    return [{"_id": i, "n": i % 4, "info": f"info {i}"} for i in range(1, WRITTEN + 1)]


@dataclasses.dataclass
class Copy:
    """COPY ... FROM STDIN."""
    sql: str
    data: str

    def run(self, cursor):
        cursor.copy_expert(self.sql, io.StringIO(self.data))


@dataclasses.dataclass
class Statement:
    """SQL in several steps, each sent separately."""
    name: str
    steps: list
    servers: tuple = ("rs", "alone")
    settings: tuple = ()        # NAME=VALUE
    fresh: bool = False         # in a session without connections
    sorted: bool = True         # rows are sorted before comparing
    atomic: bool = True         # one MongoDB transaction, if the server has transactions


def reads():
    scan = "SELECT * FROM points WHERE length(info) > 0"
    local = ("mongo_fdw.enable_join_pushdown=off", "mongo_fdw.enable_batched_joins=off")
    yield Statement("connect", ["SELECT info FROM points WHERE _id = 7"], fresh=True)
    yield Statement("connect for a snapshot", [
        "BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT info FROM points WHERE _id = 7", "COMMIT"],
        servers=("rs",), fresh=True)
    yield Statement("point query", ["SELECT info FROM points WHERE _id = 7"])
    yield Statement("scan", [scan])
    yield Statement("scan with LIMIT", [f"{scan} LIMIT 25"])
    yield Statement("arrays and jsonb", ["SELECT of, words, part FROM details WHERE 'a' = ANY (words)"])
    yield Statement("error in a scan", ["SELECT 1 / (_id - 30) FROM points"])
    yield Statement("sort and limit", ["SELECT _id FROM points ORDER BY info DESC LIMIT 30"], sorted=False)
    yield Statement("count", ["SELECT count(*) FROM points"])
    yield Statement("aggregate", ["SELECT grp, count(*), sum(_id), max(info) FROM points GROUP BY grp"])
    join = "SELECT p._id, d.part FROM points p JOIN details d ON d.of = p._id WHERE p.grp < 4"
    yield Statement("join in MongoDB", [join], settings=("enable_hashjoin=off", "enable_mergejoin=off",
                                                         "enable_nestloop=off"))
    yield Statement("batched join", [join], settings=("mongo_fdw.enable_join_pushdown=off",
                                                      "enable_hashjoin=off", "enable_mergejoin=off"))
    yield Statement("hash join", [join], settings=local + ("enable_nestloop=off", "enable_mergejoin=off"))
    yield Statement("merge join", [join], settings=local + ("enable_nestloop=off", "enable_hashjoin=off"))
    yield Statement("nested loop", [f"{join} AND p._id < 15"],
                    settings=local + ("enable_mergejoin=off", "enable_hashjoin=off"))
    yield Statement("function that asks", ["SELECT _id, ask(_id) FROM points WHERE _id < 25 AND length(info) > 0"])
    yield Statement("errors that are caught", ["SELECT catch_all()"])
    yield Statement("asynchronous Append", ["SELECT * FROM parts WHERE length(info) > 0"], servers=("alone",))
    yield Statement("Append with LIMIT", ["SELECT count(*) FROM (SELECT * FROM parts LIMIT 70) s"],
                    servers=("alone",))
    yield Statement("cursors", [
        "BEGIN", "DECLARE c CURSOR FOR " + scan, "FETCH 25 FROM c", "DECLARE d CURSOR FOR SELECT * FROM details",
        "FETCH 5 FROM d", "FETCH 30 FROM c", "CLOSE c", "FETCH ALL FROM d", "COMMIT"])
    yield Statement("cursor WITH HOLD", [
        "BEGIN", "DECLARE h CURSOR WITH HOLD FOR " + scan, "FETCH 25 FROM h", "COMMIT", "FETCH ALL FROM h", "CLOSE h"])
    yield Statement("prepared statement", [
        "PREPARE p(int) AS SELECT info FROM points WHERE _id = $1", "EXECUTE p(1)", "EXECUTE p(2)", "EXECUTE p(3)",
        "EXECUTE p(4)", "EXECUTE p(5)", "EXECUTE p(6)", "EXECUTE p(7)"])
    yield Statement("snapshot", [
        "BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT count(*) FROM points", scan,
        "DECLARE c CURSOR FOR " + scan, "FETCH 25 FROM c", "COMMIT"], servers=("rs",))
    yield Statement("snapshot rolled back", [
        "BEGIN ISOLATION LEVEL SERIALIZABLE", "DECLARE c CURSOR FOR " + scan, "FETCH 25 FROM c", "ROLLBACK"],
        servers=("rs",))
    yield Statement("EXPLAIN", ["EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) " + scan,
                                "EXPLAIN (VERBOSE, COSTS OFF) " + join], settings=("mongo_fdw.explain_remote=on",),
                    sorted=False)
    yield Statement("ANALYZE", ["ANALYZE points", "ANALYZE details"])
    yield Statement("IMPORT", [
        "BEGIN", "IMPORT FOREIGN SCHEMA faults LIMIT TO (points, details) FROM SERVER {server} INTO imported_{server}",
        "SELECT attname, atttypid::regtype FROM pg_attribute WHERE attnum > 0 AND attrelid = "
        "'imported_{server}.details'::regclass", "ROLLBACK"])
    # the cached types are invalidated, and are looked up again
    yield Statement("IMPORT tried twice", [
        "BEGIN", "CREATE TYPE made AS (n int)", "SELECT import_twice('{server}')", "ROLLBACK"])
    yield Statement("mongo_command", [
        "SELECT mongo_command('{server}', 'faults', '{{\"count\": \"points\"}}') ->> 'n'"])
    yield Statement("mongo_aggregate", [
        "SELECT d ->> 'info' FROM mongo_aggregate('{server}', 'faults', 'points', "
        "'[{{\"$match\": {{\"_id\": {{\"$lt\": 50}}}}}}]') d"])
    yield Statement("mongo_match", ["SELECT _id FROM points p WHERE mongo_match(p, '{{\"grp\": {{\"$lt\": 4}}}}')"])
    yield Statement("condition on elements", [
        "SELECT of, part FROM details WHERE EXISTS (SELECT FROM unnest(words) w WHERE w LIKE 'a%' AND length(w) = 1)"])
    yield Statement("table that unwinds", ["SELECT word, count(*) FROM words GROUP BY word", "SELECT * FROM words"])
    yield Statement("pipeline with a parameter", [
        "SELECT info FROM of_group WHERE wanted = 2",
        "SELECT g, info FROM generate_series(1, 3) g JOIN of_group ON wanted = g",
        "SELECT g, info FROM generate_series(1, 3) g, LATERAL (SELECT info FROM of_group WHERE wanted = g AND _id > 20 LIMIT 2) s"])


def changes():
    """Change streams, and a synchronized table."""
    events = "SELECT __operation, _id, info FROM changes WHERE __time >= now() - interval '1 day' AND __operation <> 'position'"
    drop = ["DROP TABLE IF EXISTS kept_copy"]
    sync = "CALL mongo_sync.sync('kept', '{server}.kept_copy')"
    compare = "SELECT count(*), sum((c.n = k.n)::int) FROM kept k FULL JOIN kept_copy c USING (_id)"
    streams = [
        Statement("change stream", [events]),
        Statement("change stream in a new session", [events], fresh=True),
        Statement("change stream with LIMIT", [f"SELECT count(*) FROM ({events} LIMIT 25) s"]),
        Statement("change stream that waits", ["SELECT __operation FROM waiting"]),
        Statement("error in a change stream", [events.replace("_id, info", "1 / (_id - 30)")]),
        Statement("synchronized table", [*drop, sync, "UPDATE kept SET n = n + 1", sync, compare], atomic=False),
    ]
    for statement in streams:
        statement.servers = ("rs",)
        yield statement


def far_reads():
    """Over a network commands are sent together, getMores are sent ahead, and replies are compressed."""
    scan = "SELECT * FROM points WHERE length(info) > 0"
    both = "SELECT p._id, p.info, d.part FROM points p JOIN details d ON d.of = p._id + 1"
    local = ("mongo_fdw.enable_join_pushdown=off", "mongo_fdw.enable_batched_joins=off", "enable_nestloop=off")
    sums = "SELECT (SELECT count(*) FROM details WHERE part = 1), (SELECT max(_id) FROM points WHERE grp = 2), count(*) FROM points"
    far = [
        Statement("connect, far away", ["SELECT info FROM points WHERE _id = 7"], fresh=True),
        Statement("scan, far away", [scan]),
        Statement("scan with LIMIT, far away", [f"SELECT count(*) FROM ({scan} LIMIT 25) s"]),
        Statement("both sides of a hash join", [both], settings=(*local, "enable_mergejoin=off")),
        Statement("both sides of a merge join", [both], settings=(*local, "enable_hashjoin=off")),
        Statement("connect for a hash join", [both], settings=(*local, "enable_mergejoin=off"), fresh=True),
        Statement("subselects that run once", [sums]),
        Statement("NULLs, then values", ["SELECT _id, info FROM points ORDER BY grp DESC, _id LIMIT 30"], sorted=False),
        Statement("cursor over a join", ["BEGIN", "DECLARE c CURSOR FOR " + both, "FETCH 25 FROM c", "FETCH 10 FROM c",
                                         "COMMIT"], settings=(*local, "enable_mergejoin=off")),
        Statement("error in a join", [both.replace("p.info", "1 / (p._id - 30)")], settings=(*local, "enable_mergejoin=off")),
        Statement("documents of many values", [
            "SELECT g, (SELECT string_agg(info, ',') FROM points WHERE grp = g + 0) FROM generate_series(1, 20) g"]),
    ]
    for statement in far:
        statement.servers = ("far",)
        yield statement


def writes():
    insert = "INSERT INTO written VALUES (100, 1, 'new')"
    insert_many = "INSERT INTO written SELECT i, i, 'new ' || i FROM generate_series(100, 123) i"
    yield Statement("connect for INSERT", [insert], fresh=True)
    yield Statement("INSERT of one", [insert])
    yield Statement("INSERT of many", [insert_many])
    yield Statement("INSERT RETURNING", [f"{insert} RETURNING _id"])
    yield Statement("INSERT of a key that is there", ["INSERT INTO written VALUES (100, 1, 'new'), (5, 1, 'new')"])
    yield Statement("ON CONFLICT DO NOTHING", [
        "INSERT INTO written SELECT i, i, 'new' FROM generate_series(8, 20) i ON CONFLICT DO NOTHING"])
    yield Statement("COPY", [Copy("COPY written FROM STDIN", "".join(f"{i}\t1\tnew\n" for i in range(100, 118)))])
    yield Statement("UPDATE as a command", ["UPDATE written SET n = n + 1 WHERE _id > 3"])
    yield Statement("UPDATE of one", ["UPDATE written SET info = 'changed' WHERE _id = 3"])
    yield Statement("UPDATE by rows", ["UPDATE written SET info = md5(info) WHERE length(info) > 0"])
    yield Statement("UPDATE RETURNING", ["UPDATE written SET n = n + 1 WHERE _id = 3 RETURNING n, info"])
    yield Statement("UPDATE FROM", ["UPDATE written w SET info = p.info || 'x' FROM points p WHERE p._id = w._id"])
    yield Statement("DELETE as a command", ["DELETE FROM written WHERE n = 2"])
    yield Statement("DELETE by rows", ["DELETE FROM written WHERE length(info) = 6 AND md5(info) > '0'"])
    yield Statement("DELETE RETURNING", ["DELETE FROM written WHERE _id = 4 RETURNING info"])
    yield Statement("TRUNCATE", ["TRUNCATE written"])
    yield Statement("mongo_command that writes", [
        "SELECT mongo_command('{server}', 'faults', '{{\"insert\": \"written\", \"documents\": [{{\"_id\": 100}}]}}') ->> 'n'"],
                    servers=("alone",))


def transactions():
    insert = "INSERT INTO written VALUES ({0}, 1, 'new')"
    local = "INSERT INTO local_rows VALUES (1)"
    update = "UPDATE written SET info = md5(info) WHERE length(info) > 0"
    read = "SELECT count(*), max(info) FROM points WHERE length(info) > 0"
    yield Statement("transaction", ["BEGIN", insert.format(100), local, read, update, "DELETE FROM written WHERE _id = 2",
                                    "COMMIT"], atomic=False)
    yield Statement("transaction of all kinds of commands", [
        "BEGIN", insert.format(100), "UPDATE written SET n = n + 1 WHERE _id = 3",
        "INSERT INTO written SELECT i, i, 'new' FROM generate_series(8, 20) i ON CONFLICT DO NOTHING",
        "DELETE FROM written WHERE _id = 5 RETURNING n", "DECLARE c CURSOR FOR SELECT * FROM points", "FETCH 25 FROM c",
        "DELETE FROM written WHERE n = 2", local, "COMMIT"], servers=("rs",))
    yield Statement("connect for a transaction", ["BEGIN", insert.format(100), "COMMIT"], servers=("rs",), fresh=True)
    yield Statement("COMMIT", ["BEGIN", insert.format(100), local, "COMMIT"])
    # this closes the connection, because the server is another one then
    yield Statement("COMMIT of a changed server", [
        "BEGIN", insert.format(100), local, "ALTER SERVER {server} OPTIONS (SET server_selection_timeout_ms '3000')",
        "COMMIT"])
    yield Statement("ROLLBACK", ["BEGIN", insert.format(100), local, update, "ROLLBACK"], servers=("rs",))
    yield Statement("snapshot that writes", ["BEGIN ISOLATION LEVEL REPEATABLE READ", read, update, local, "COMMIT"],
                    servers=("rs",))
    yield Statement("savepoint released", ["BEGIN", insert.format(100), "SAVEPOINT s", insert.format(101),
                                           "RELEASE s", local, "COMMIT"], servers=("rs",))
    yield Statement("savepoint rolled back after an error", [
        "BEGIN", "SAVEPOINT s", "SELECT catch_all()", "ROLLBACK TO s", insert.format(100), local, "COMMIT"], servers=("rs",))
    yield Statement("errors that are caught before a write", ["BEGIN", "SELECT catch_all()", insert.format(100), local,
                                                              "COMMIT"], servers=("rs",))
    yield Statement("cursor left open over a write", [
        "BEGIN", "DECLARE c CURSOR FOR SELECT * FROM points", "FETCH 5 FROM c", insert.format(100), "FETCH 30 FROM c",
        local, "COMMIT"], servers=("rs",))


STATEMENTS = [*reads(), *changes(), *far_reads(), *writes(), *transactions()]
