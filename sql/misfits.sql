--
-- Fields that do not fit their columns: an error that names them, or NULL.
--
\getenv mongo_host MONGO_HOST
\getenv mongo_port MONGO_PORT
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mongo_fdw;
CREATE SERVER misfits FOREIGN DATA WRAPPER mongo_fdw
	OPTIONS (address :'mongo_host', port :'mongo_port');
CREATE USER MAPPING FOR CURRENT_USER SERVER misfits;
RESET client_min_messages;
\set VERBOSITY verbose
\set SHOW_CONTEXT never

CREATE FOREIGN TABLE misfits (_id int, v int)
	SERVER misfits OPTIONS (database 'mongo_fdw_regress', collection 'misfits');

SELECT _id, v FROM misfits WHERE _id = 1;
\set VERBOSITY default
SELECT _id, v FROM misfits WHERE _id = 2;
SELECT _id, v FROM misfits WHERE _id = 3;
SELECT _id, v FROM misfits WHERE _id = 4;
SELECT _id, v FROM misfits WHERE _id = 5;
SELECT _id, v FROM misfits WHERE _id = 6;
SELECT _id, v FROM misfits WHERE _id = 7;

-- what is not read does no harm, what MongoDB matched is read
SELECT _id FROM misfits ORDER BY _id;
SELECT _id FROM misfits WHERE v = 10 AND _id <> 3 ORDER BY _id;
SELECT _id FROM misfits WHERE v = 10;

ALTER FOREIGN TABLE misfits OPTIONS (ADD type_mismatch 'null');
SELECT _id, v FROM misfits ORDER BY _id;
EXPLAIN (VERBOSE, COSTS OFF) SELECT _id FROM misfits WHERE v = 10;
SELECT _id FROM misfits WHERE v = 10 ORDER BY _id;
EXPLAIN (VERBOSE, COSTS OFF) SELECT _id FROM misfits WHERE v > 9;
SELECT _id FROM misfits WHERE v > 9 ORDER BY _id;
SELECT _id FROM misfits WHERE v IS NULL ORDER BY _id;
SELECT _id FROM misfits WHERE v <> 11 ORDER BY _id;

DROP SERVER misfits CASCADE;
