--
-- Fields that do not fit their columns: an error that names them, or NULL.
--
\getenv mongo_host MONGO_HOST
\getenv mongo_port MONGO_PORT
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mongo_fdw;
CREATE SERVER mismatches FOREIGN DATA WRAPPER mongo_fdw
	OPTIONS (address :'mongo_host', port :'mongo_port', fdw_startup_cost '0');
CREATE USER MAPPING FOR CURRENT_USER SERVER mismatches;
RESET client_min_messages;
\set VERBOSITY verbose
\set SHOW_CONTEXT never

CREATE FOREIGN TABLE mismatches (_id int, v int)
	SERVER mismatches OPTIONS (database 'mongo_fdw_regress', collection 'mismatches');

SELECT _id, v FROM mismatches WHERE _id = 1;
\set VERBOSITY default
SELECT _id, v FROM mismatches WHERE _id = 2;
SELECT _id, v FROM mismatches WHERE _id = 3;
SELECT _id, v FROM mismatches WHERE _id = 4;
SELECT _id, v FROM mismatches WHERE _id = 5;
SELECT _id, v FROM mismatches WHERE _id = 6;
SELECT _id, v FROM mismatches WHERE _id = 7;

-- what is not read does no harm, what MongoDB matched is read
SELECT _id FROM mismatches ORDER BY _id;
SELECT _id FROM mismatches WHERE v = 10 AND _id <> 3 ORDER BY _id;
SELECT _id FROM mismatches WHERE v = 10;

ALTER FOREIGN TABLE mismatches OPTIONS (ADD type_mismatch 'null');
SELECT _id, v FROM mismatches ORDER BY _id;
EXPLAIN (VERBOSE, COSTS OFF) SELECT _id FROM mismatches WHERE v = 10;
SELECT _id FROM mismatches WHERE v = 10 ORDER BY _id;
EXPLAIN (VERBOSE, COSTS OFF) SELECT _id FROM mismatches WHERE v > 9;
SELECT _id FROM mismatches WHERE v > 9 ORDER BY _id;
SELECT _id FROM mismatches WHERE v IS NULL ORDER BY _id;
SELECT _id FROM mismatches WHERE v <> 11 ORDER BY _id;

-- in aggregates: no document is read here, and the greatest or least value tells
ALTER FOREIGN TABLE mismatches OPTIONS (DROP type_mismatch);
-- above an order that MongoDB computes, documents are read: those that conditions let through
EXPLAIN (VERBOSE, COSTS OFF) SELECT _id FROM mismatches WHERE v = 10 AND _id <> 2 ORDER BY _id % 5, _id LIMIT 3;
SELECT _id FROM mismatches WHERE v = 10 AND _id <> 2 ORDER BY _id % 5, _id LIMIT 3;
CREATE FOREIGN TABLE mismatches_numeric (_id int, v numeric)
	SERVER mismatches OPTIONS (database 'mongo_fdw_regress', collection 'mismatches');
CREATE FOREIGN TABLE mismatches_text (_id int, v text)
	SERVER mismatches OPTIONS (database 'mongo_fdw_regress', collection 'mismatches');
CREATE FOREIGN TABLE mismatches_time (_id int, v timestamptz)
	SERVER mismatches OPTIONS (database 'mongo_fdw_regress', collection 'mismatches');
CREATE FOREIGN TABLE mismatches_bool (_id int, v bool)
	SERVER mismatches OPTIONS (database 'mongo_fdw_regress', collection 'mismatches');
SET cpu_tuple_cost = 10;
SET cpu_operator_cost = 10;
EXPLAIN (VERBOSE, COSTS OFF) SELECT count(v) FROM mismatches_text WHERE _id < 3;
SELECT sum(v), avg(v), min(v), max(v), count(v) FROM mismatches WHERE _id IN (1, 5, 8);
SELECT sum(v) FROM mismatches WHERE _id IN (1, 2);
\echo :LAST_ERROR_SQLSTATE
SELECT v, count(*) FROM mismatches WHERE _id IN (1, 2) GROUP BY v;
\set VERBOSITY terse
SELECT _id % 2, sum(v) FROM mismatches WHERE _id < 6 GROUP BY 1 ORDER BY 2 LIMIT 1;
SELECT avg(v) FROM mismatches WHERE _id IN (1, 2);
SELECT count(v) FROM mismatches WHERE _id IN (1, 3);
SELECT count(DISTINCT v) FROM mismatches WHERE _id IN (1, 4);
SELECT avg(v) FROM mismatches WHERE _id IN (1, 4);
SELECT min(v), count(*) FROM mismatches WHERE _id IN (1, 2);
SELECT max(v), count(*) FROM mismatches WHERE _id IN (1, 7);
SELECT sum(v) FILTER (WHERE _id > 1) FROM mismatches WHERE _id IN (1, 2);
SELECT sum(v) FROM mismatches WHERE _id IN (1, 6);
SELECT v, count(*) FROM mismatches WHERE _id IN (1, 2) GROUP BY v;
SELECT sum(v) FROM mismatches_numeric WHERE _id IN (1, 2);
SELECT v, count(*) FROM mismatches_numeric WHERE _id IN (1, 2) GROUP BY v;
SELECT count(v) FROM mismatches_text WHERE _id IN (1, 2);
SELECT count(v) FROM mismatches_text WHERE _id IN (2, 3);
SELECT count(DISTINCT v) FROM mismatches_text WHERE _id IN (1, 2);
SELECT v, count(*) FROM mismatches_text WHERE _id IN (1, 2) GROUP BY v;
SELECT DISTINCT v FROM mismatches_text WHERE _id IN (1, 2);
SELECT max(v), count(*) FROM mismatches_time WHERE _id IN (1, 2);
SELECT bool_and(v) FROM mismatches_bool WHERE _id IN (1, 2);
SELECT count(v), count(DISTINCT v), max(v COLLATE "C") FROM mismatches_text WHERE _id IN (2, 8);
-- also where an expression only passes the column on; what is counted is computed, and constants are none of a document's fields
SELECT sum(coalesce(v, 0)) FROM mismatches WHERE _id IN (1, 2);
SELECT min(CASE WHEN _id > 0 THEN v END), count(*) FROM mismatches WHERE _id IN (1, 2);
SELECT avg(DISTINCT +v) FROM mismatches WHERE _id IN (1, 2);
SELECT sum(coalesce(v, 0)), min(+v), avg(DISTINCT nullif(v, 0)), count(v / 2), count(1) FROM mismatches WHERE _id = 1;
SELECT count(v / (v - v)) FROM mismatches WHERE _id = 1;
SELECT count(DISTINCT 1), sum(DISTINCT 1.10), count(DISTINCT true) FROM mismatches;
ALTER FOREIGN TABLE mismatches OPTIONS (ADD type_mismatch 'null');
SELECT sum(coalesce(v, 0)), min(+v), avg(DISTINCT nullif(v, 0)), count(v / 2) FROM mismatches;

DROP SERVER mismatches CASCADE;
