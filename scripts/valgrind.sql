-- Statements for scripts/valgrind.sh: a little of everything.  A single-user PostgreSQL
-- takes what stands between empty lines; @PORT@ is MongoDB's.

CREATE EXTENSION mongo_fdw;

CREATE SERVER m FOREIGN DATA WRAPPER mongo_fdw OPTIONS (address '127.0.0.1', port '@PORT@');

CREATE USER MAPPING FOR PUBLIC SERVER m;

CREATE FOREIGN TABLE t (_id int, a int OPTIONS (indexed 'true'), b text, n numeric, d timestamptz, j jsonb, r int[], x int OPTIONS (path 's.x')) SERVER m OPTIONS (database 'vg', collection 't');

CREATE FOREIGN TABLE u (_id int, a int OPTIONS (indexed 'true'), b text COLLATE "C") SERVER m OPTIONS (database 'vg', collection 'u');

TRUNCATE t; TRUNCATE u;

INSERT INTO t SELECT g, g % 17, 'row ' || g, g * 1.5, now() - g * interval '1 h', jsonb_build_object('k', g, 'l', ARRAY[g, g + 1]), ARRAY[g, NULL, 3], g % 5 FROM generate_series(1, 400) g;

INSERT INTO u SELECT g, g % 23, 'u ' || g FROM generate_series(1, 100) g;

ANALYZE t; ANALYZE u;

SELECT mongo_command('m', 'vg', '{"createIndexes": "u", "indexes": [{"key": {"a": 1}, "name": "a"}]}');

SELECT count(*), sum(a), avg(n), min(d), max(b COLLATE "C") FROM t WHERE a > 3 AND b LIKE 'row %' AND (j->>'k')::int > 5;

SELECT * FROM t WHERE _id IN (1, 2, 300) ORDER BY a DESC, _id LIMIT 2;

SELECT a, count(*), sum(x) FROM t GROUP BY a HAVING count(*) > 2 ORDER BY a;

SELECT t._id, u.b FROM t JOIN u ON u._id = t.a WHERE t.x = 2 ORDER BY 1 LIMIT 5;

SELECT t._id, u.b FROM t LEFT JOIN u ON u.a = t._id AND u.b > 'u 2' WHERE t._id < 30;

SET geqo_threshold = 2;

SELECT count(*) FROM t JOIN u u1 ON u1._id = t.a JOIN u u2 ON u2._id = u1.a LEFT JOIN t t2 ON t2._id = u2._id WHERE EXISTS (SELECT 1 FROM u u3 WHERE u3._id = t2.a);

SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_nestloop = off; SET mongo_fdw.enable_join_pushdown = off;

SELECT count(*) FROM t JOIN u u1 ON u1._id = t.a JOIN u u2 ON u2._id = u1.a LEFT JOIN t t2 ON t2._id = u2._id;

RESET ALL;

EXPLAIN (ANALYZE, VERBOSE) SELECT * FROM t WHERE to_char(d, 'YYYY') = '2026' OR regexp_replace(b, 'x', 'y') = 'row 7';

PREPARE p (int, text) AS SELECT * FROM t WHERE a = $1 AND b <> $2 AND x = ANY (ARRAY[$1, 3]); EXECUTE p (1, 'x'); EXECUTE p (2, 'x'); EXECUTE p (3, 'x'); EXECUTE p (4, 'x'); EXECUTE p (5, 'x'); EXECUTE p (6, 'x'); EXECUTE p (7, 'x');

UPDATE t SET a = a + 1, b = upper(b), j = jsonb_set(j, '{k}', '7'), r = r || 9 WHERE _id % 3 = 1;

UPDATE t SET b = u.b FROM u WHERE u._id = t._id RETURNING t._id;

UPDATE t SET a = 5 WHERE _id < 9 RETURNING *;

DELETE FROM t WHERE _id BETWEEN 20 AND 40;

DELETE FROM t USING u WHERE u._id = t.a AND t._id > 350 RETURNING t.*;

-- fails
INSERT INTO t (_id, a) VALUES (1, 1);

INSERT INTO t (_id, a) VALUES (1, 1), (9001, 2) ON CONFLICT DO NOTHING;

BEGIN; DECLARE c CURSOR FOR SELECT * FROM t ORDER BY _id; FETCH 3 FROM c; INSERT INTO t (_id) VALUES (-1); FETCH 3 FROM c; CLOSE c; COMMIT;

BEGIN; INSERT INTO t (_id) VALUES (-3); ROLLBACK;

-- fails
SELECT 1 / (a - a) FROM t;

-- fails
SELECT j::int FROM t WHERE b = 'ROW 112';

DO $$ DECLARE x record; BEGIN FOR x IN SELECT * FROM t WHERE a > 3 LOOP BEGIN PERFORM 1 / (x.a % 2); EXCEPTION WHEN division_by_zero THEN NULL; END; END LOOP; END $$;

CREATE SCHEMA s; IMPORT FOREIGN SCHEMA vg FROM SERVER m INTO s;

SELECT count(*) FROM s.t;

CREATE FOREIGN TABLE bad (_id text, a date, b int, n int, d bool, j int) SERVER m OPTIONS (database 'vg', collection 't', type_mismatch 'null');

SELECT * FROM bad LIMIT 5;

SELECT * FROM mongo_aggregate('m', 'vg', 't', '[{"$group": {"_id": "$a", "n": {"$sum": 1}}}]') LIMIT 3;

ALTER FOREIGN TABLE bad OPTIONS (SET type_mismatch 'error');

-- fails
SELECT * FROM bad;

SELECT * FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u._id = t._id) AND NOT EXISTS (SELECT 1 FROM u WHERE u.a = t.x AND u.b < t.b COLLATE "C");

ALTER SERVER m OPTIONS (ADD keep_connections 'false'); SELECT count(*) FROM t;

DROP EXTENSION mongo_fdw CASCADE;
