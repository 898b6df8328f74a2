--
-- mongo_fdw_refresh(): an imported schema is brought up to date.
--
\getenv mongo_host MONGO_HOST
\getenv mongo_port MONGO_PORT
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mongo_fdw;
CREATE SERVER refreshed FOREIGN DATA WRAPPER mongo_fdw
	OPTIONS (address :'mongo_host', port :'mongo_port');
CREATE USER MAPPING FOR CURRENT_USER SERVER refreshed;
CREATE SCHEMA "Refreshed";
SET search_path = "Refreshed", public;
\pset format unaligned
\set VERBOSITY terse
RESET client_min_messages;

SELECT mongo_command('refreshed', 'mongo_fdw_regress_refresh', '{"dropDatabase": 1}') -> 'ok' AS ok;
SELECT mongo_command('refreshed', 'mongo_fdw_regress_refresh', '{"insert": "orders", "documents": [
	{"_id": 1, "n": 1, "big": {"$numberLong": "5"}, "t": "x", "list": [1], "sub": {"x": 1}, "any": {"a": 1}, "d": {"$date": "2024-01-01T00:00:00Z"}}]}') -> 'n' AS inserted;
SELECT mongo_command('refreshed', 'mongo_fdw_regress_refresh', '{"createIndexes": "orders", "indexes": [{"name": "t", "key": {"t": 1}}]}') -> 'ok' AS ok;
IMPORT FOREIGN SCHEMA mongo_fdw_regress_refresh FROM SERVER refreshed INTO "Refreshed";
SELECT * FROM mongo_fdw_refresh('"Refreshed"');

-- Other types, fields, indexes and collections.
SELECT mongo_command('refreshed', 'mongo_fdw_regress_refresh', '{"insert": "orders", "documents": [
	{"_id": 2, "n": {"$numberLong": "3000000000"}, "big": 1.5, "t": 5, "list": ["x"], "sub": {"x": 1, "new": true}, "any": 7, "fresh": "f", "N": 1, "d": null},
	{"_id": 3, "fresh": null, "deep": {"er": {"est": 1}}}]}') -> 'n' AS inserted;
SELECT mongo_command('refreshed', 'mongo_fdw_regress_refresh', '{"createIndexes": "orders", "indexes": [{"name": "n", "key": {"n": 1, "t": 1}}, {"name": "fresh", "key": {"fresh": 1}}]}') -> 'ok' AS ok;
SELECT mongo_command('refreshed', 'mongo_fdw_regress_refresh', '{"dropIndexes": "orders", "index": "t"}') -> 'ok' AS ok;
SELECT mongo_command('refreshed', 'mongo_fdw_regress_refresh', '{"insert": "Customers", "documents": [{"_id": 1, "name": "x"}]}') -> 'n' AS inserted;
SELECT mongo_command('refreshed', 'mongo_fdw_regress_refresh', '{"create": "broken", "viewOn": "orders", "pipeline": [{"$set": {"z": {"$toInt": "x"}}}]}') -> 'ok' AS ok;

-- The statements alone; then run.
SELECT * FROM mongo_fdw_refresh('"Refreshed"');
SELECT count(*) FROM pg_class WHERE relnamespace = '"Refreshed"'::regnamespace;
SELECT * FROM mongo_fdw_refresh('"Refreshed"') \gexec
SELECT * FROM mongo_fdw_refresh('"Refreshed"');
SELECT * FROM orders ORDER BY _id;
SELECT * FROM "Customers";
SELECT * FROM mongo_fdw_check('orders');

-- What somebody has chosen stays: types, columns that hold more, names.
DROP FOREIGN TABLE orders;
CREATE FOREIGN TABLE o (_id int, number smallint OPTIONS (path 'n', indexed 'false'), t varchar(5), whole jsonb OPTIONS (path 'sub'), deep jsonb, list int[], "N" numeric(10,2))
	SERVER refreshed OPTIONS (database 'mongo_fdw_regress_refresh', collection 'orders');
SELECT * FROM mongo_fdw_refresh('"Refreshed"', new_tables => false);

-- A collection that is gone; tables of the same names that are others'.
CREATE FOREIGN TABLE gone (_id int) SERVER refreshed OPTIONS (database 'mongo_fdw_regress_refresh');
CREATE TABLE orders ();
DROP FOREIGN TABLE o, "Customers";
SELECT * FROM mongo_fdw_refresh('"Refreshed"', options => '{nesting=0,lower_case_names=true,import_views=false}');
DROP FOREIGN TABLE gone;

-- Names that are not written in lower case alone, that are equal then, or that are taken.
SELECT mongo_command('refreshed', 'mongo_fdw_regress_refresh', json_build_object('create', name)) -> 'ok' AS ok FROM unnest(ARRAY['Foo', 'foo', 'Ärger', 'taken']) AS name;
CREATE TYPE taken AS (a int);
SELECT * FROM mongo_fdw_refresh('"Refreshed"', 'refreshed', 'mongo_fdw_regress_refresh', options => '{lower_case_names=true,import_views=false}') \gexec
SELECT * FROM mongo_fdw_refresh('"Refreshed"', 'refreshed', 'mongo_fdw_regress_refresh', options => '{lower_case_names=true,import_views=false}');
DROP FOREIGN TABLE customers, foo, "Ärger";
DROP TYPE taken;
SELECT mongo_command('refreshed', 'mongo_fdw_regress_refresh', json_build_object('drop', name)) -> 'ok' AS ok FROM unnest(ARRAY['Foo', 'foo', 'Ärger', 'taken']) AS name;

-- A change stream is no table of the collection's documents.
CREATE FOREIGN TABLE stream (_id int) SERVER refreshed OPTIONS (database 'mongo_fdw_regress_refresh', collection 'orders', change_stream 'collection');
SELECT * FROM mongo_fdw_refresh('"Refreshed"');
DROP FOREIGN TABLE stream;

-- A schema without tables, when it is said what is meant.
SELECT * FROM mongo_fdw_refresh('"Refreshed"');
SELECT * FROM mongo_fdw_refresh('"Refreshed"', server => 'refreshed', database => 'mongo_fdw_regress_refresh', options => '{import_views=false,objectid=text}');

-- One server or database alone; bad input.
CREATE FOREIGN TABLE fresh (_id int) SERVER refreshed OPTIONS (database 'mongo_fdw_regress_refresh', collection 'Customers');
SELECT * FROM mongo_fdw_refresh('"Refreshed"', server => 'refreshed', new_tables => false);
SELECT * FROM mongo_fdw_refresh('"Refreshed"', server => 'nowhere');
SELECT * FROM mongo_fdw_refresh('"Refreshed"', server => 'nowhere', database => 'x');
SELECT * FROM mongo_fdw_refresh('"Refreshed"', options => '{nesting=x}');
SELECT * FROM mongo_fdw_refresh('"Refreshed"', options => '{depth=1}');
DROP FOREIGN TABLE fresh;
SELECT * FROM mongo_fdw_refresh(0::regnamespace, 'refreshed', 'mongo_fdw_regress_refresh');
SELECT * FROM mongo_fdw_refresh(NULL);
SELECT mongo_fdw_alteration('pg_class');
CREATE ROLE refresh_stranger;
SET ROLE refresh_stranger;
SELECT * FROM mongo_fdw_refresh('"Refreshed"', 'refreshed', 'mongo_fdw_regress_refresh');
RESET ROLE;
DROP ROLE refresh_stranger;

SET client_min_messages = warning;
SELECT mongo_command('refreshed', 'mongo_fdw_regress_refresh', '{"dropDatabase": 1}') -> 'ok' AS ok;
DROP SERVER refreshed CASCADE;
DROP SCHEMA "Refreshed" CASCADE;
