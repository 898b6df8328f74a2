--
-- Option max_time_ms: how long MongoDB may work on a command.
-- The documents are those of t/lib/load_regress.py.
--
\getenv mongo_host MONGO_HOST
\getenv mongo_port MONGO_PORT
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mongo_fdw;
CREATE SERVER limited FOREIGN DATA WRAPPER mongo_fdw
	OPTIONS (address :'mongo_host', port :'mongo_port', max_time_ms '1min', allow_javascript 'true');
CREATE USER MAPPING FOR CURRENT_USER SERVER limited;
RESET client_min_messages;

CREATE FOREIGN TABLE l_numbers (_id int, n int, even bool) SERVER limited
	OPTIONS (database 'mongo_fdw_regress', collection 'numbers');

-- find, count and aggregate; the table's own wins over the server's
EXPLAIN (VERBOSE, COSTS OFF) SELECT _id FROM l_numbers WHERE n = 7;
SELECT _id FROM l_numbers WHERE n = 7;
SET cpu_tuple_cost = 10;
SET cpu_operator_cost = 10;
EXPLAIN (VERBOSE, COSTS OFF) SELECT count(*) FROM l_numbers WHERE n < 10;
SELECT count(*) FROM l_numbers WHERE n < 10;
ALTER FOREIGN TABLE l_numbers OPTIONS (max_time_ms '30000');
EXPLAIN (VERBOSE, COSTS OFF) SELECT even, count(*) FROM l_numbers WHERE n < 10 GROUP BY even;
SELECT even, count(*) FROM l_numbers WHERE n < 10 GROUP BY even ORDER BY even;
RESET cpu_tuple_cost;
RESET cpu_operator_cost;
SELECT (SELECT b._id FROM l_numbers b WHERE b.n = a.n) FROM l_numbers a WHERE a._id < 3 ORDER BY 1;
BEGIN;
SELECT _id FROM l_numbers WHERE n = 7;
COMMIT;

-- beyond
CREATE FOREIGN TABLE slow (_id int) SERVER limited
	OPTIONS (database 'mongo_fdw_regress', collection 'numbers', max_time_ms '100', pipeline
	'[{"$match": {"n": 1, "$expr": {"$function": {"body": "function() { sleep(300); return true }", "args": [], "lang": "js"}}}}]');
\set VERBOSITY terse
SELECT * FROM slow;
\echo :LAST_ERROR_SQLSTATE
SELECT count(*) FROM slow;
\echo :LAST_ERROR_SQLSTATE
\set VERBOSITY default
ALTER FOREIGN TABLE slow OPTIONS (SET max_time_ms '0');
EXPLAIN (VERBOSE, COSTS OFF) SELECT * FROM l_numbers a WHERE _id = 1;
SELECT * FROM slow;
ALTER FOREIGN TABLE slow OPTIONS (SET max_time_ms '-1');
ALTER FOREIGN TABLE slow OPTIONS (SET max_time_ms 'soon');

SET client_min_messages = warning;
DROP SERVER limited CASCADE;
