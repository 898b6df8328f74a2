--
-- Options that change while a session remembers them.
-- The documents are those of t/lib/load_regress.py.
--
\getenv mongo_host MONGO_HOST
\getenv mongo_port MONGO_PORT
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mongo_fdw;
CREATE SERVER altered FOREIGN DATA WRAPPER mongo_fdw
	OPTIONS (address :'mongo_host', port :'mongo_port');
CREATE USER MAPPING FOR CURRENT_USER SERVER altered;
RESET client_min_messages;

CREATE FOREIGN TABLE numbers (_id int, a int OPTIONS (path 'n'))
	SERVER altered OPTIONS (database 'mongo_fdw_regress');
SELECT a FROM numbers WHERE _id = 7;

-- a column's path, then its name, where that is the path
ALTER FOREIGN TABLE numbers ALTER a OPTIONS (SET path 'modulo');
SELECT a FROM numbers WHERE _id = 8;
ALTER FOREIGN TABLE numbers ALTER a OPTIONS (DROP path);
ALTER FOREIGN TABLE numbers RENAME a TO square;
SELECT square FROM numbers WHERE _id = 8;
ALTER FOREIGN TABLE numbers ADD n int;
SELECT n FROM numbers WHERE _id = 8;
ALTER FOREIGN TABLE numbers DROP square;
SELECT * FROM numbers WHERE _id = 8;

-- the table's name, where that is the collection's, then the collection
ALTER FOREIGN TABLE numbers RENAME TO nulls;
ALTER FOREIGN TABLE nulls RENAME n TO b;
SELECT * FROM nulls WHERE _id < 3 ORDER BY _id;
ALTER FOREIGN TABLE nulls OPTIONS (ADD collection 'numbers');
SELECT * FROM nulls WHERE _id < 3 ORDER BY _id;
ALTER FOREIGN TABLE nulls OPTIONS (SET database 'mongo_fdw_none');
SELECT * FROM nulls WHERE _id < 3 ORDER BY _id;

-- what the server says for all its tables, in a statement prepared before
ALTER FOREIGN TABLE nulls OPTIONS (SET database 'mongo_fdw_regress', SET collection 'people');
ALTER FOREIGN TABLE nulls RENAME b TO name;
ALTER FOREIGN TABLE nulls DROP _id;
PREPARE mismatches AS SELECT count(*), count(name) FROM nulls;
EXECUTE mismatches;
ALTER SERVER altered OPTIONS (ADD type_mismatch 'null');
EXECUTE mismatches;
BEGIN;
ALTER SERVER altered OPTIONS (SET type_mismatch 'error');
EXECUTE mismatches;
ROLLBACK;
EXECUTE mismatches;

DROP SERVER altered CASCADE;
