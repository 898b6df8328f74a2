--
-- Column option bson_type: the one BSON type that a column reads and writes.
--
\getenv mongo_host MONGO_HOST
\getenv mongo_port MONGO_PORT
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mongo_fdw;
CREATE SERVER bson_types FOREIGN DATA WRAPPER mongo_fdw
	OPTIONS (address :'mongo_host', port :'mongo_port', transactions 'off');
CREATE USER MAPPING FOR CURRENT_USER SERVER bson_types;
RESET client_min_messages;
\set SHOW_CONTEXT never

CREATE FOREIGN TABLE bt_documents (_id int, __doc jsonb)
	SERVER bson_types OPTIONS (database 'mongo_fdw_regress', collection 'written_bson_types');
INSERT INTO bt_documents (__doc) VALUES
	('{"_id": 1, "r": {"$oid": "65a000000000000000000001"}, "s": "a", "n": {"$numberLong": "1"}}'),
	('{"_id": 2, "r": {"$oid": "65a000000000000000000002"}, "s": "65a000000000000000000001", "n": {"$numberLong": "2"}}'),
	('{"_id": 3, "r": null, "s": null}'),
	('{"_id": 4}'),
	('{"_id": 5, "r": {"$oid": "65b000000000000000000000"}, "s": "b", "n": {"$numberLong": "5"}}');
CREATE FOREIGN TABLE bt (_id int, r name OPTIONS (bson_type 'objectId'), s text OPTIONS (bson_type 'string'),
		n int OPTIONS (bson_type 'long'))
	SERVER bson_types OPTIONS (database 'mongo_fdw_regress', collection 'written_bson_types');
CREATE FOREIGN TABLE bt_plain (_id int, r name, s text, n int)
	SERVER bson_types OPTIONS (database 'mongo_fdw_regress', collection 'written_bson_types');

-- one value where there are two without the option, and for an ObjectId no collation
EXPLAIN (VERBOSE, COSTS OFF) SELECT _id FROM bt_plain WHERE r = '65a000000000000000000001';
EXPLAIN (VERBOSE, COSTS OFF) SELECT _id FROM bt WHERE r = '65a000000000000000000001';
EXPLAIN (VERBOSE, COSTS OFF) SELECT _id FROM bt WHERE s = '65a000000000000000000001';
SELECT _id FROM bt WHERE r = '65a000000000000000000001';
SELECT _id FROM bt WHERE s = '65a000000000000000000001';
SELECT _id FROM bt_plain WHERE s = '65a000000000000000000001';

-- what is no ObjectId equals none, whatever it looks like
EXPLAIN (VERBOSE, COSTS OFF) SELECT _id FROM bt WHERE r = '65A000000000000000000001';
SELECT _id FROM bt WHERE r IN ('65A000000000000000000001', 'a', '');
SELECT _id FROM bt WHERE r IN ('65a000000000000000000001', 'a', '65a000000000000000000002', NULL) ORDER BY _id;
SELECT _id FROM bt WHERE r <> '65a000000000000000000001' ORDER BY _id;
SELECT _id FROM bt WHERE r NOT IN ('65a000000000000000000001', 'a') ORDER BY _id;
SELECT _id FROM bt WHERE NOT (r = 'a') ORDER BY _id;

-- ranges, with bounds that are ObjectIds and others
EXPLAIN (VERBOSE, COSTS OFF) SELECT _id FROM bt WHERE r > '65a';
SELECT _id FROM bt WHERE r > '65a' ORDER BY _id;
SELECT _id FROM bt WHERE r >= '65a000000000000000000001' AND r < '65a000000000000000000002' ORDER BY _id;
SELECT _id FROM bt WHERE r <= '65a000000000000000000001' ORDER BY _id;
SELECT _id FROM bt WHERE r > 'zz' ORDER BY _id;
SELECT _id FROM bt WHERE r < 'zz' ORDER BY _id;
SELECT _id FROM bt WHERE r < '' ORDER BY _id;
SELECT _id FROM bt WHERE s COLLATE "C" >= '65' AND s COLLATE "C" < 'b' ORDER BY _id;
SELECT _id FROM bt WHERE r LIKE '65a%' ORDER BY _id;
SELECT _id FROM bt WHERE s LIKE '65a%' ORDER BY _id;
SELECT _id, r IS NULL FROM bt WHERE r IS NULL OR s IS NULL ORDER BY _id;

-- parameters, and a text of a type that PostgreSQL compares with a name
PREPARE by_reference (text) AS SELECT _id FROM bt WHERE r = $1;
SET plan_cache_mode = force_generic_plan;
EXPLAIN (VERBOSE, COSTS OFF) EXECUTE by_reference ('65a000000000000000000002');
EXECUTE by_reference ('65a000000000000000000002');
EXECUTE by_reference ('nothing');
EXECUTE by_reference (NULL);
RESET plan_cache_mode;
DEALLOCATE by_reference;

-- in the order of ObjectIds, which is that of their text
EXPLAIN (VERBOSE, COSTS OFF) SELECT r FROM bt ORDER BY r DESC NULLS LAST LIMIT 2;
SELECT r FROM bt ORDER BY r DESC NULLS LAST LIMIT 2;
SELECT _id, r FROM bt ORDER BY r NULLS FIRST, _id DESC;
SET cpu_tuple_cost = 10;
SET cpu_operator_cost = 10;
EXPLAIN (VERBOSE, COSTS OFF) SELECT r, count(*) FROM bt GROUP BY r;
SELECT r, count(*), sum(n) FROM bt GROUP BY r ORDER BY r;
SELECT DISTINCT s COLLATE "C" FROM bt ORDER BY 1;
SELECT count(DISTINCT r), min(r::text COLLATE "C"), max(r::text COLLATE "C"), count(s), sum(n), min(n), max(n) FROM bt;
RESET cpu_tuple_cost;
RESET cpu_operator_cost;

-- what is of another type does not fit, and is told or NULL
INSERT INTO bt_documents (__doc) VALUES
	('{"_id": 11, "r": "65a000000000000000000001"}'),
	('{"_id": 12, "r": [{"$oid": "65a000000000000000000001"}]}'),
	('{"_id": 13, "s": {"$oid": "65a000000000000000000001"}}'),
	('{"_id": 14, "s": {"$symbol": "65a000000000000000000001"}}'),
	('{"_id": 15, "n": 1}'),
	('{"_id": 16, "n": {"$numberDouble": "1.0"}}'),
	('{"_id": 17, "r": 5, "s": true, "n": "1"}');
SELECT r FROM bt WHERE _id = 11;
SELECT r FROM bt WHERE _id = 12;
SELECT s FROM bt WHERE _id = 13;
SELECT n FROM bt WHERE _id = 15;
SELECT n FROM bt WHERE _id = 16;
SELECT n FROM bt WHERE _id = 17;
SELECT s FROM bt WHERE _id = 14;
-- what MongoDB matched is read, and it never sees what is of another type
SELECT _id FROM bt WHERE r = '65a000000000000000000001' AND _id < 12 ORDER BY _id;
SELECT _id FROM bt WHERE r = '65a000000000000000000001' ORDER BY _id;
SELECT _id FROM bt WHERE r <> '65a000000000000000000002' AND _id IN (1, 11);
SELECT _id FROM bt WHERE n = 1;
SET cpu_tuple_cost = 10;
SET cpu_operator_cost = 10;
SELECT r, count(*) FROM bt WHERE _id IN (1, 11) GROUP BY r;
SELECT count(DISTINCT s) FROM bt WHERE _id IN (1, 13);
SELECT count(r) FROM bt WHERE _id IN (1, 11);
RESET cpu_tuple_cost;
RESET cpu_operator_cost;
-- an UPDATE or DELETE that is one command leaves them alone
EXPLAIN (VERBOSE, COSTS OFF) DELETE FROM bt WHERE r < '65a000000000000000000002';
EXPLAIN (VERBOSE, COSTS OFF) DELETE FROM bt WHERE r = '65a000000000000000000001' AND n > 0;
DELETE FROM bt WHERE r < '0';
UPDATE bt SET s = 'touched' WHERE n = 1;
SELECT _id, s FROM bt_plain WHERE s = 'touched' ORDER BY _id;

ALTER FOREIGN TABLE bt OPTIONS (ADD type_mismatch 'null');
SELECT * FROM bt ORDER BY _id;
EXPLAIN (VERBOSE, COSTS OFF) SELECT _id FROM bt WHERE r = '65a000000000000000000001';
SELECT _id FROM bt WHERE r = '65a000000000000000000001' ORDER BY _id;
EXPLAIN (VERBOSE, COSTS OFF) SELECT _id FROM bt WHERE n = 1;
SELECT _id FROM bt WHERE n = 1 ORDER BY _id;
SELECT _id FROM bt WHERE s = '65a000000000000000000001' ORDER BY _id;
SELECT _id FROM bt WHERE r IS NULL ORDER BY _id;
SELECT _id FROM bt WHERE r >= '' ORDER BY _id;
SELECT count(r), count(s), count(n) FROM bt;
DELETE FROM bt WHERE r = '65a000000000000000000002' RETURNING _id;
ALTER FOREIGN TABLE bt OPTIONS (DROP type_mismatch);
SELECT * FROM mongo_fdw_check('bt');

-- writing
TRUNCATE bt_documents;
INSERT INTO bt VALUES (1, '65a000000000000000000001', '65a000000000000000000001', 1), (2, NULL, NULL, NULL);
INSERT INTO bt VALUES (3, 'abc', 's', 1);
INSERT INTO bt VALUES (3, '65A000000000000000000001', 's', 1);
INSERT INTO bt VALUES (3, '', 's', 1);
\set SHOW_CONTEXT errors
UPDATE bt SET r = 'abc' WHERE _id = 1;
\set SHOW_CONTEXT never
UPDATE bt SET r = '65a000000000000000000009', n = 7 WHERE _id = 2;
EXPLAIN (VERBOSE, COSTS OFF) UPDATE bt SET n = n + 1 WHERE _id = 2;
UPDATE bt SET n = n + 1, s = r WHERE _id = 2 RETURNING *;
SELECT mongo_aggregate('bson_types', 'mongo_fdw_regress', 'written_bson_types',
	'[{"$sort": {"_id": 1}}, {"$project": {"r": {"$type": "$r"}, "s": {"$type": "$s"}, "n": {"$type": "$n"}}}]');
ALTER FOREIGN TABLE bt OPTIONS (ADD insert_mode 'upsert');
INSERT INTO bt (_id, r) VALUES (1, '65a00000000000000000000b'), (4, '65a00000000000000000000c') RETURNING *;
ALTER FOREIGN TABLE bt OPTIONS (DROP insert_mode);
TRUNCATE bt_documents;

-- numbers, of which each BSON type holds the same ones or none
CREATE FOREIGN TABLE bt_numbers (_id int, i8 bigint OPTIONS (bson_type 'int'), id int OPTIONS (bson_type 'decimal'),
		ib bigint OPTIONS (bson_type 'double'), f8 float8 OPTIONS (bson_type 'long'), f4 real OPTIONS (bson_type 'int'),
		nd numeric OPTIONS (bson_type 'double'), nl numeric OPTIONS (bson_type 'long'), nn numeric(6,2) OPTIONS (bson_type 'decimal'))
	SERVER bson_types OPTIONS (database 'mongo_fdw_regress', collection 'written_bson_types');
INSERT INTO bt_numbers VALUES (1, 2147483647, 5, 9007199254740992, -9223372036854775808, -3, 0.1, 9223372036854775807, 1.5);
INSERT INTO bt_numbers (_id, nd, f8) VALUES (2, 'NaN', '-0');
INSERT INTO bt_numbers (_id, nd) VALUES (3, '-Infinity');
SELECT * FROM bt_numbers ORDER BY _id;
SELECT mongo_aggregate('bson_types', 'mongo_fdw_regress', 'written_bson_types', '[{"$match": {"_id": 1}}, {"$project":
	{"t": [{"$type": "$i8"}, {"$type": "$id"}, {"$type": "$ib"}, {"$type": "$f8"}, {"$type": "$f4"}, {"$type": "$nd"}, {"$type": "$nl"}, {"$type": "$nn"}]}}]');
\set VERBOSITY terse
INSERT INTO bt_numbers (_id, i8) VALUES (9, 2147483648);
INSERT INTO bt_numbers (_id, ib) VALUES (9, 9007199254740993);
INSERT INTO bt_numbers (_id, ib) VALUES (9, 9223372036854775807);
INSERT INTO bt_numbers (_id, f8) VALUES (9, 0.5);
INSERT INTO bt_numbers (_id, f8) VALUES (9, 9223372036854775808);
INSERT INTO bt_numbers (_id, f8) VALUES (9, 'NaN');
INSERT INTO bt_numbers (_id, f4) VALUES (9, 'Infinity');
INSERT INTO bt_numbers (_id, nd) VALUES (9, 1.2345678901234567);
INSERT INTO bt_numbers (_id, nd) VALUES (9, 1e400);
INSERT INTO bt_numbers (_id, nl) VALUES (9, 1.5);
INSERT INTO bt_numbers (_id, nl) VALUES (9, 9223372036854775808);
INSERT INTO bt_numbers (_id, nl) VALUES (9, 'Infinity');
\set VERBOSITY default
INSERT INTO bt_numbers (_id, nl) VALUES (9, 'NaN');

-- _id, which may be made here
CREATE FOREIGN TABLE bt_strings (_id text OPTIONS (bson_type 'string'), n int)
	SERVER bson_types OPTIONS (database 'mongo_fdw_regress', collection 'written_bson_types');
CREATE FOREIGN TABLE bt_objectids (_id char(30) OPTIONS (bson_type 'objectid'), n int, b bytea OPTIONS (bson_type 'OBJECTID'))
	SERVER bson_types OPTIONS (database 'mongo_fdw_regress', collection 'written_bson_types');
TRUNCATE bt_documents;
INSERT INTO bt_strings VALUES ('65a000000000000000000001', 1);
INSERT INTO bt_strings (n) VALUES (2);
INSERT INTO bt_objectids VALUES ('65a000000000000000000001', 2, '\x65a000000000000000000001');
INSERT INTO bt_objectids (n) VALUES (3) RETURNING length(_id), n;
INSERT INTO bt_objectids VALUES ('65a000000000000000000003', 4, '\x65a0');
SELECT n FROM bt_strings WHERE _id = '65a000000000000000000001';
SELECT n, b FROM bt_objectids WHERE n = 2;
SELECT mongo_aggregate('bson_types', 'mongo_fdw_regress', 'written_bson_types',
	'[{"$sort": {"n": 1}}, {"$project": {"_id": {"$type": "$_id"}, "b": {"$type": "$b"}, "n": 1}}]');
TRUNCATE bt_documents;

-- joins: two columns of ObjectIds are compared as they are
CREATE FOREIGN TABLE bt_orders (_id name OPTIONS (bson_type 'objectId'), customer text OPTIONS (bson_type 'objectId'), n int)
	SERVER bson_types OPTIONS (database 'mongo_fdw_regress', collection 'written_bson_types');
CREATE FOREIGN TABLE bt_undeclared (_id name, customer text, n int)
	SERVER bson_types OPTIONS (database 'mongo_fdw_regress', collection 'written_bson_types');
INSERT INTO bt_orders SELECT lpad(g::text, 24, '0'), lpad((g / 2)::text, 24, '0'), g FROM generate_series(0, 9) g;
INSERT INTO bt_orders VALUES ('00000000000000000000000a', NULL, 10);
ANALYZE bt_orders;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
ALTER SERVER bson_types OPTIONS (ADD fdw_startup_cost '100000', ADD fdw_lookup_cost '0');
EXPLAIN (VERBOSE, COSTS OFF) SELECT o.n, c.n FROM bt_orders o JOIN bt_orders c ON c._id = o.customer;
SELECT o.n, c.n FROM bt_orders o JOIN bt_orders c ON c._id = o.customer ORDER BY 1;
SELECT o.n, c.n FROM bt_orders o LEFT JOIN bt_orders c ON c._id = o.customer AND c.n > 2 ORDER BY 1;
SELECT o.n FROM bt_orders o WHERE NOT EXISTS (SELECT FROM bt_orders c WHERE c._id = o.customer) ORDER BY 1;
EXPLAIN (VERBOSE, COSTS OFF) SELECT o.n, c.n FROM bt_undeclared o JOIN bt_orders c ON c._id = o.customer;
SELECT o.n, c.n FROM bt_undeclared o JOIN bt_orders c ON c._id = o.customer ORDER BY 1;
SET mongo_fdw.enable_join_pushdown = off;
SELECT o.n, c.n FROM bt_orders o JOIN bt_orders c ON c._id = o.customer ORDER BY 1;
SELECT n FROM bt_orders WHERE _id IN (VALUES ('000000000000000000000003'), ('x'), ('000000000000000000000005')) ORDER BY n;
RESET mongo_fdw.enable_join_pushdown;
-- a column that is gone says nothing any more
ALTER FOREIGN TABLE bt_orders ADD gone text OPTIONS (bson_type 'string');
ALTER FOREIGN TABLE bt_orders DROP gone;
SELECT count(*) FROM bt_orders o JOIN bt_orders c ON c._id = o.customer AND c.n < o.n;
RESET enable_hashjoin;
RESET enable_mergejoin;
TRUNCATE bt_documents;

-- what it cannot say
CREATE FOREIGN TABLE bt_bad (a int OPTIONS (bson_type 'integer')) SERVER bson_types;
CREATE FOREIGN TABLE bt_bad (a int OPTIONS (bson_type 'bool')) SERVER bson_types;
SELECT a FROM bt_bad;
EXPLAIN (COSTS OFF) SELECT FROM bt_bad WHERE a = 1;
INSERT INTO bt_bad VALUES (1);
ALTER FOREIGN TABLE bt_bad ALTER a TYPE boolean;
SELECT a FROM bt_bad;
ALTER FOREIGN TABLE bt_bad ALTER a TYPE jsonb;
SELECT a FROM bt_bad;
ALTER FOREIGN TABLE bt_bad ALTER a TYPE text[];
SELECT a FROM bt_bad;
CREATE DOMAIN bt_key AS text CHECK (VALUE <> '65a000000000000000000001');
ALTER FOREIGN TABLE bt_bad ALTER a TYPE bt_key;
SELECT a FROM bt_bad;
ALTER FOREIGN TABLE bt_bad ALTER a OPTIONS (SET bson_type 'ObjectId');
SELECT a FROM bt_bad WHERE a = '65a000000000000000000001';
CREATE FOREIGN TABLE bt_bad_table (a int) SERVER bson_types OPTIONS (bson_type 'int');

DROP SERVER bson_types CASCADE;
DROP DOMAIN bt_key;
