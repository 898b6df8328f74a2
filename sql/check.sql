--
-- mongo_fdw_check(): how far a table and its collection have come apart.
--
\getenv mongo_host MONGO_HOST
\getenv mongo_port MONGO_PORT
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mongo_fdw;
CREATE SERVER checked FOREIGN DATA WRAPPER mongo_fdw
	OPTIONS (address :'mongo_host', port :'mongo_port');
CREATE USER MAPPING FOR CURRENT_USER SERVER checked;
CREATE DOMAIN small AS int CHECK (VALUE < 10);
RESET client_min_messages;

SELECT mongo_command('checked', 'mongo_fdw_regress', '{"insert": "written_checked", "documents": [
	{"_id": 1, "a": 1, "t": "one", "sub": {"x": 1, "y": 2}, "net": "10.0.0.1", "small": 1},
	{"_id": 2, "a": "two", "t": 2, "sub": {"x": 1}, "net": "nowhere", "small": 11, "new": null},
	{"_id": "three", "a": {"$numberLong": "3000000000"}, "t": "x", "sub": [{"x": 1}], "net": 5, "new": [1]},
	{"_id": 4, "a": null, "sub": {"x": "x", "deep": {"er": 1}}, "new": "new", "dot.ted": 1, "$odd": 1, "": 1}]}') -> 'n' AS inserted;
SELECT mongo_command('checked', 'mongo_fdw_regress', '{"createIndexes": "written_checked", "indexes": [
	{"name": "a", "key": {"a": 1, "t": 1}}, {"name": "x", "key": {"net": "hashed"}}, {"name": "other", "key": {"new": 1}}]}') -> 'ok' AS ok;

CREATE FOREIGN TABLE checked (_id int, a int, t text, "sub.x" int, net inet, small small, gone text OPTIONS (indexed 'true'))
	SERVER checked OPTIONS (database 'mongo_fdw_regress', collection 'written_checked');
SELECT * FROM mongo_fdw_check('checked');

-- What ANALYZE has learned is known, and what the user says.
ANALYZE checked;
SELECT * FROM mongo_fdw_check('checked') WHERE finding ~ 'index';
ALTER FOREIGN TABLE checked ALTER a OPTIONS (ADD indexed 'false'), ALTER gone OPTIONS (SET indexed 'false');
SELECT * FROM mongo_fdw_check('checked') WHERE finding ~ 'index';

-- Columns that take everything.
CREATE FOREIGN TABLE taken (_id jsonb, a jsonb, t jsonb, sub jsonb, x jsonb OPTIONS (path 'sub.x'), net jsonb, small jsonb,
	new jsonb, odd jsonb OPTIONS (path '$odd')) SERVER checked OPTIONS (database 'mongo_fdw_regress', collection 'written_checked');
SELECT * FROM mongo_fdw_check('taken');
ALTER FOREIGN TABLE taken ADD COLUMN __doc jsonb;
SELECT * FROM mongo_fdw_check('taken');
CREATE FOREIGN TABLE nothing () SERVER checked OPTIONS (database 'mongo_fdw_regress', collection 'written_checked');
SELECT finding, field, documents FROM mongo_fdw_check('nothing', 4);

-- Fewer documents, and none.
SELECT sum(documents) FROM mongo_fdw_check('nothing', 1) WHERE field = '_id';
SELECT mongo_fdw_check('nothing', 0);
SELECT count(*) FROM mongo_fdw_check(NULL);
SELECT mongo_command('checked', 'mongo_fdw_regress', '{"create": "written_empty"}') -> 'ok' AS ok;
ALTER FOREIGN TABLE checked OPTIONS (SET collection 'written_empty');
SELECT * FROM mongo_fdw_check('checked');
ALTER FOREIGN TABLE checked OPTIONS (SET collection 'written_nowhere');
SELECT * FROM mongo_fdw_check('checked');

-- An error that says nothing about documents ends the statement, and no more than that.
CREATE FUNCTION refuse(int) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$;
CREATE DOMAIN refused AS int CHECK (refuse(VALUE));
CREATE FOREIGN TABLE refuses (a refused) SERVER checked OPTIONS (database 'mongo_fdw_regress', collection 'written_checked');
\set VERBOSITY terse
SELECT mongo_fdw_check('refuses');
DO $$ BEGIN CREATE TABLE undone (); PERFORM mongo_fdw_check('refuses'); EXCEPTION WHEN raise_exception THEN END $$;
\set VERBOSITY default
SELECT to_regclass('undone') AS undone;

-- Names that are nearly right.
CREATE FOREIGN TABLE near_documents (__doc jsonb) SERVER checked OPTIONS (database 'mongo_fdw_nearest', collection 'orders');
DELETE FROM near_documents;
INSERT INTO near_documents SELECT jsonb_build_object('_id', n, 'createdAt', n, 'adress', jsonb_build_object('zipCode', n), 'b', n) FROM generate_series(1, 3) n;
CREATE FOREIGN TABLE near (_id int, createdat int, adress int OPTIONS (path 'adress.zip_code'), bb int, "createdAt " text OPTIONS (path 'created'))
	SERVER checked OPTIONS (database 'mongo_fdw_nearest', collection 'Order');
ANALYZE near;
SELECT finding, detail FROM mongo_fdw_check('near');
ALTER FOREIGN TABLE near OPTIONS (SET collection 'orders');
ANALYZE near;
SELECT finding, field, "column", detail FROM mongo_fdw_check('near') ORDER BY 1, 2;
ALTER FOREIGN TABLE near ALTER createdat OPTIONS (ADD path 'createdAt'), ALTER adress OPTIONS (SET path 'adress.zipCode');
ANALYZE near;
DELETE FROM near_documents;

-- Whose table it is.
SELECT mongo_fdw_check('pg_class');
SELECT mongo_fdw_check('mongo_fdw_statistics');
CREATE ROLE check_stranger;
SET ROLE check_stranger;
SELECT mongo_fdw_check('checked');
RESET ROLE;
DROP ROLE check_stranger;

SET client_min_messages = warning;
DROP SERVER checked CASCADE;
DROP DOMAIN small;
