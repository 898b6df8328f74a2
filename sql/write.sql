--
-- Writing: what EXPLAIN says will be sent, and what comes of it.
--
\getenv mongo_host MONGO_HOST
\getenv mongo_port MONGO_PORT
SET client_min_messages = warning;
SET timezone = 'UTC';
CREATE EXTENSION IF NOT EXISTS mongo_fdw;
CREATE SERVER write_server FOREIGN DATA WRAPPER mongo_fdw
	OPTIONS (address :'mongo_host', port :'mongo_port');
CREATE USER MAPPING FOR CURRENT_USER SERVER write_server;
RESET client_min_messages;

CREATE FOREIGN TABLE w_things (
	_id		int,
	a		int,
	b		text,
	c		bigint,
	"sub.x"	int,
	"sub.y"	text,
	day		date,
	list	int[]
) SERVER write_server OPTIONS (database 'mongo_fdw_regress', collection 'written');
CREATE FOREIGN TABLE w_whole (__doc jsonb)
	SERVER write_server OPTIONS (database 'mongo_fdw_regress', collection 'written');
TRUNCATE w_things;

-- rows become documents
EXPLAIN (VERBOSE, COSTS OFF) INSERT INTO w_things (_id, a) VALUES (1, 2);
INSERT INTO w_things VALUES (1, 10, 'one', 100, 5, 'y', '2020-02-29', '{1,2,3}'),
	(2, 20, NULL, NULL, NULL, 'z', NULL, '{}'),
	(3, NULL, NULL, NULL, NULL, NULL, NULL, NULL) RETURNING _id, a;
SELECT * FROM w_whole;
INSERT INTO w_whole VALUES ('{"_id": 4, "a": 40, "stray": {"$date": "2020-01-01T00:00:00Z"}}');
INSERT INTO w_things (_id, a) VALUES (4, 0), (5, 50) ON CONFLICT DO NOTHING;
INSERT INTO w_things (_id, a) VALUES (4, 0), (6, 60) ON CONFLICT DO NOTHING RETURNING *;

-- one command
EXPLAIN (VERBOSE, COSTS OFF) UPDATE w_things SET b = 'new', "sub.x" = NULL WHERE _id = 1;
UPDATE w_things SET b = 'new', "sub.x" = NULL WHERE _id = 1;
EXPLAIN (VERBOSE, COSTS OFF) UPDATE w_things SET a = a + 1, day = current_date WHERE b = 'none';
UPDATE w_things SET a = a + 1, c = c - 1 WHERE a >= 20;
EXPLAIN (VERBOSE, COSTS OFF) DELETE FROM w_things WHERE _id IN (5, 6);
DELETE FROM w_things WHERE _id IN (5, 6);
PREPARE change(int, text) AS UPDATE w_things SET b = $2 || '!' WHERE _id = $1;
EXPLAIN (VERBOSE, COSTS OFF) EXECUTE change(2, 'two');
EXECUTE change(2, 'two');
EXPLAIN (VERBOSE, COSTS OFF) DELETE FROM w_things;

-- row by row
EXPLAIN (VERBOSE, COSTS OFF) UPDATE w_things SET b = b || 'x', list[2] = 7 WHERE a > 1;
UPDATE w_things SET b = b || 'x', list[2] = 7 WHERE a > 1;
EXPLAIN (VERBOSE, COSTS OFF) DELETE FROM w_things WHERE _id = 3 RETURNING _id;
DELETE FROM w_things WHERE _id = 3 RETURNING *;
SET mongo_fdw.enable_pushdown = off;
EXPLAIN (COSTS OFF) UPDATE w_things SET a = 1 WHERE _id = 1;
RESET mongo_fdw.enable_pushdown;
SELECT * FROM w_whole ORDER BY __doc -> '_id';

-- an _id that is passed over
CREATE FOREIGN TABLE w_generated (_id name, a int) SERVER write_server
	OPTIONS (database 'mongo_fdw_regress', collection 'written_generated');
INSERT INTO w_generated VALUES ('0', 1);
INSERT INTO w_generated VALUES ('0', 2);
ALTER FOREIGN TABLE w_generated OPTIONS (generated_id 'true');
INSERT INTO w_generated VALUES ('0', 3), ('0', 4), (NULL, 5);
INSERT INTO w_generated VALUES ('0', 6) RETURNING length(_id), a;
INSERT INTO w_generated (a) VALUES (7) ON CONFLICT DO NOTHING;
COPY w_generated FROM STDIN;
0	8
\.
SELECT a, length(_id) FROM w_generated ORDER BY a;
SELECT count(DISTINCT _id) FROM w_generated;
UPDATE w_generated SET a = 9 WHERE _id = '0';
SELECT a FROM w_generated WHERE _id = '0';
CREATE FOREIGN TABLE w_generated_number (_id int, a int) SERVER write_server
	OPTIONS (database 'mongo_fdw_regress', collection 'written_generated', generated_id 'true');
INSERT INTO w_generated_number VALUES (0, 1);

-- what cannot be
\set VERBOSITY terse
UPDATE w_things SET _id = 9;
UPDATE w_whole SET __doc = NULL;
INSERT INTO w_things (a) VALUES (1);
INSERT INTO w_whole VALUES ('[1]');
INSERT INTO w_things (_id, a) VALUES (1, 1), (7, 1);
INSERT INTO w_things (_id, a) VALUES (1, 1) ON CONFLICT (_id) DO UPDATE SET a = 2;
UPDATE w_things SET a = a + 2147483647 WHERE _id = 1;
ALTER FOREIGN TABLE w_things OPTIONS (updatable 'false');
DELETE FROM w_things;

DROP SERVER write_server CASCADE;
