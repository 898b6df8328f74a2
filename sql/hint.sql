--
-- Option hint: the index that MongoDB has to use.
-- The documents are those of t/lib/load_regress.py.
--
\getenv mongo_host MONGO_HOST
\getenv mongo_port MONGO_PORT
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mongo_fdw;
CREATE SERVER hinted FOREIGN DATA WRAPPER mongo_fdw
	OPTIONS (address :'mongo_host', port :'mongo_port');
CREATE USER MAPPING FOR CURRENT_USER SERVER hinted;
RESET client_min_messages;

CREATE FOREIGN TABLE h_numbers (_id int, n int, even bool) SERVER hinted
	OPTIONS (database 'mongo_fdw_regress', collection 'numbers', hint '_id_');

-- by name: find, aggregate and count; aggregates go to MongoDB as work in PostgreSQL is made dear
SET cpu_tuple_cost = 10;
SET cpu_operator_cost = 10;
EXPLAIN (VERBOSE, COSTS OFF) SELECT _id FROM h_numbers WHERE n = 7;
SELECT _id FROM h_numbers WHERE n = 7;
EXPLAIN (VERBOSE, COSTS OFF) SELECT DISTINCT even FROM h_numbers WHERE n < 10 ORDER BY even;
SELECT DISTINCT even FROM h_numbers WHERE n < 10 ORDER BY even;
EXPLAIN (VERBOSE, COSTS OFF) SELECT count(*) FROM h_numbers WHERE n < 10;
SELECT count(*) FROM h_numbers WHERE n < 10;

-- by keys
ALTER FOREIGN TABLE h_numbers OPTIONS (SET hint '{"_id": 1}');
EXPLAIN (VERBOSE, COSTS OFF) SELECT _id FROM h_numbers WHERE n = 7;
SELECT _id FROM h_numbers WHERE n = 7;

-- by the setting, in the option's place
SET mongo_fdw.hint = 'nowhere';
\set VERBOSITY terse
SELECT _id FROM h_numbers WHERE n = 7;
\set VERBOSITY default
SET mongo_fdw.hint = '{"$natural": 1}';
EXPLAIN (VERBOSE, COSTS OFF) SELECT _id FROM h_numbers WHERE n = 7;
SELECT _id FROM h_numbers WHERE n = 7;
EXPLAIN (VERBOSE, COSTS OFF) SELECT count(*) FROM h_numbers WHERE n < 10;
SELECT count(*) FROM h_numbers WHERE n < 10;
SET mongo_fdw.hint = '{"$natural": 1';
SELECT _id FROM h_numbers WHERE n = 7;
SET mongo_fdw.hint = '';
EXPLAIN (VERBOSE, COSTS OFF) SELECT _id FROM h_numbers WHERE n = 7;
RESET mongo_fdw.hint;

-- what MongoDB or PostgreSQL refuses
\set VERBOSITY terse
ALTER FOREIGN TABLE h_numbers OPTIONS (SET hint 'nowhere');
SELECT _id FROM h_numbers WHERE n = 7;
\echo :LAST_ERROR_SQLSTATE
SELECT count(*) FROM h_numbers WHERE n < 10;
\echo :LAST_ERROR_SQLSTATE
SELECT DISTINCT even FROM h_numbers WHERE n < 10 ORDER BY even;
\echo :LAST_ERROR_SQLSTATE
\set VERBOSITY default
ALTER FOREIGN TABLE h_numbers OPTIONS (SET hint '{"_id": 1');
ALTER FOREIGN TABLE h_numbers OPTIONS (SET hint '');

SET client_min_messages = warning;
DROP SERVER hinted CASCADE;
