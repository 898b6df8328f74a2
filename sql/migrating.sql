--
-- DDL as users of existing mongo_fdw wrappers have it.
--
\getenv mongo_host MONGO_HOST
\getenv mongo_port MONGO_PORT
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mongo_fdw;
RESET client_min_messages;

CREATE SERVER migrating FOREIGN DATA WRAPPER mongo_fdw
	OPTIONS (address :'mongo_host', port :'mongo_port',
			 use_remote_estimate 'ON', read_preference 'primaryPreferred',
			 ssl 'false', weak_cert_validation 'off',
			 enable_join_pushdown 'true', enable_aggregate_pushdown 'true',
			 enable_order_by_pushdown 'True');
CREATE USER MAPPING FOR PUBLIC SERVER migrating;

CREATE FOREIGN TABLE people (
	_id				name,
	name			text,
	age				int,
	"address.city"	varchar,
	latitude		float8 OPTIONS (column_name 'address.location.lat'),
	address			json,
	phones			text[],
	"Mixed Case"	int8
) SERVER migrating OPTIONS (database 'mongo_fdw_regress', enable_join_pushdown 'false');

SELECT * FROM people WHERE age < 24 ORDER BY age;
SELECT name FROM people WHERE _id = '000000000000000000000005';
EXPLAIN (COSTS OFF) SELECT name FROM people WHERE age = 30;
SELECT p.name, q.name FROM people p JOIN people q ON p.age = q.age + 10 ORDER BY 1;

CREATE FOREIGN TABLE documents (_id name, __doc jsonb, name text)
	SERVER migrating OPTIONS (database 'mongo_fdw_regress', collection 'people');
SELECT __doc, name FROM documents WHERE name = 'person 4';
CREATE FOREIGN TABLE document_texts (__doc varchar, name text)
	SERVER migrating OPTIONS (database 'mongo_fdw_regress', collection 'people');
SELECT __doc, name FROM document_texts WHERE name = 'person 4';
ALTER FOREIGN TABLE document_texts ALTER __doc TYPE varchar(20);
SELECT __doc FROM document_texts WHERE name = 'person 4';

-- database defaults to test, collection to the table's name
CREATE FOREIGN TABLE no_such_collection (_id name) SERVER migrating;
SELECT * FROM no_such_collection;
EXPLAIN (COSTS OFF) SELECT * FROM no_such_collection;

SHOW mongo_fdw.enable_join_pushdown;
SHOW mongo_fdw.enable_aggregate_pushdown;
SHOW mongo_fdw.enable_order_by_pushdown;
SHOW mongo_fdw.log_remote_query;
SELECT mongo_fdw_version() > 0 AS has_version;

-- as the existing one reports them
CREATE SERVER bad_option FOREIGN DATA WRAPPER mongo_fdw OPTIONS (addres 'x');
CREATE SERVER bad_port FOREIGN DATA WRAPPER mongo_fdw OPTIONS (port '70000');

DROP SERVER migrating CASCADE;
