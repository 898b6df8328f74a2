--
-- Option insert_mode: rows whose key is there update a document, or are passed over.
--
\getenv mongo_host MONGO_HOST
\getenv mongo_port MONGO_PORT
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mongo_fdw;
CREATE SERVER upserting FOREIGN DATA WRAPPER mongo_fdw
	OPTIONS (address :'mongo_host', port :'mongo_port', transactions 'off');
CREATE USER MAPPING FOR CURRENT_USER SERVER upserting;
RESET client_min_messages;

CREATE FOREIGN TABLE u_all (_id int, name text, stock int, city text OPTIONS (path 'at.city'), origin text)
	SERVER upserting OPTIONS (database 'mongo_fdw_regress', collection 'written_upserts');
CREATE FOREIGN TABLE u_items (_id int, name text, stock int, city text OPTIONS (path 'at.city'), origin text DEFAULT 'feed')
	SERVER upserting OPTIONS (database 'mongo_fdw_regress', collection 'written_upserts', insert_mode 'upsert');
INSERT INTO u_all VALUES (1, 'one', 1, 'Oslo', 'old'), (2, 'two', 2, 'Bergen', 'old');
SELECT mongo_command('upserting', 'mongo_fdw_regress', '{"update": "written_upserts", "updates": [{"q": {"_id": 1}, "u": {"$set": {"at.street": "Main", "more": true}}}]}') -> 'n' AS n;

-- what the statement names is written, the rest of a document stays; a new one has the defaults
EXPLAIN (VERBOSE, COSTS OFF) INSERT INTO u_items (_id, stock, city) VALUES (1, 10, 'Moss');
INSERT INTO u_items (_id, stock, city) VALUES (1, 10, 'Moss'), (2, NULL, 'Moss'), (3, 30, NULL);
TABLE u_all ORDER BY _id;
SELECT mongo_aggregate('upserting', 'mongo_fdw_regress', 'written_upserts', '[{"$match": {"_id": 1}}]');
INSERT INTO u_items VALUES (2, 'zwei', 22, NULL, 'all'), (4, 'vier', 4, 'Voss', 'all');
INSERT INTO u_items (_id) VALUES (4), (5);
TABLE u_all ORDER BY _id;

-- of several rows with a key in one statement the last one counts
INSERT INTO u_items (_id, stock) SELECT n % 3 + 10, n FROM generate_series(1, 100) n;
SELECT _id, stock, origin FROM u_all WHERE _id >= 10 ORDER BY _id;
COPY u_items (_id, name, stock) FROM stdin;
10	ten	\N
20	twenty	200
10	TEN	1000
\.
SELECT _id, name, stock, origin FROM u_all WHERE _id IN (10, 20) ORDER BY _id;

-- RETURNING has the document that there is then
EXPLAIN (VERBOSE, COSTS OFF) INSERT INTO u_items (_id, stock) VALUES (1, 11), (6, 60) RETURNING *;
INSERT INTO u_items (_id, stock) VALUES (1, 11), (6, 60) RETURNING *;

-- no key
INSERT INTO u_items (_id, stock) VALUES (7, 7), (NULL, 8);
INSERT INTO u_items (stock) VALUES (8);
INSERT INTO u_items DEFAULT VALUES;
SELECT count(*) FROM u_all WHERE _id = 7;

-- other keys: the _id of a document stays
CREATE FOREIGN TABLE u_named (_id objectid, name text, city text OPTIONS (path 'at.city'), stock bigint, doc jsonb) SERVER upserting
	OPTIONS (database 'mongo_fdw_regress', collection 'written_named', insert_mode 'upsert', key_columns 'name, city');
EXPLAIN (VERBOSE, COSTS OFF) INSERT INTO u_named (name, city, stock) VALUES ('a', 'Oslo', 1);
INSERT INTO u_named (name, city, stock) VALUES ('a', 'Oslo', 1), ('a', 'Moss', 2), ('A', 'Oslo', 3), ('a', 'Oslo', 4);
INSERT INTO u_named (_id, name, city, stock) VALUES ('65a500000000000000000001', 'a', 'Oslo', 5), ('65a500000000000000000002', 'b', 'Oslo', 6);
SELECT name, city, stock, _id = '65a500000000000000000002' AS given FROM u_named ORDER BY name COLLATE "C", city;
INSERT INTO u_named (name, city, stock) VALUES ('b', 'Oslo', 7), ('c', 'Oslo', 8) RETURNING name, stock, _id = '65a500000000000000000002' AS given;
INSERT INTO u_named (name, stock) VALUES ('b', 1);
INSERT INTO u_named (stock) VALUES (1);

-- values with operators are none
ALTER FOREIGN TABLE u_named OPTIONS (SET key_columns 'doc');
INSERT INTO u_named (name, doc) VALUES ('operator', '{"$gt": 0}');
INSERT INTO u_named (name, doc) VALUES ('again', '{"$gt": 0}');
INSERT INTO u_named (name, doc) VALUES ('array', '[1, {"a": 2}]');
INSERT INTO u_named (name, doc) VALUES ('array again', '[1, {"a": 2}]');
-- nor is an array one of its elements
EXPLAIN (VERBOSE, COSTS OFF) INSERT INTO u_named (name, doc) VALUES ('one', '1');
INSERT INTO u_named (name, doc) VALUES ('two in one', '[[1], [1, 2]]'), ('one in one', '[1]'), ('two', '[1, 2]'), ('one', '1'), ('one again', '1.0');
INSERT INTO u_named (name, doc) VALUES ('two again', '[1, 2]'), ('element', '{"a": 2}');
SELECT name, doc FROM u_named WHERE doc IS NOT NULL ORDER BY 1;

-- rows whose key is there are passed over
CREATE FOREIGN TABLE u_new (_id int, name text, stock int, city text OPTIONS (path 'at.city'), origin text DEFAULT 'new')
	SERVER upserting OPTIONS (database 'mongo_fdw_regress', collection 'written_upserts', insert_mode 'ignore');
EXPLAIN (VERBOSE, COSTS OFF) INSERT INTO u_new (_id, stock) VALUES (1, 12);
INSERT INTO u_new (_id, stock, city) VALUES (1, 12, 'x'), (30, 30, 'Ask'), (30, 31, 'y') RETURNING _id, stock;
WITH added AS (INSERT INTO u_new (_id, stock) SELECT n, n FROM generate_series(1, 2500) n RETURNING 1) SELECT count(*) FROM added;
DO $$
DECLARE inserted bigint;
BEGIN
	INSERT INTO u_new (_id, stock) SELECT n, n FROM generate_series(2000, 4500) n;
	GET DIAGNOSTICS inserted = ROW_COUNT;
	RAISE NOTICE '% rows', inserted;
END $$;
COPY u_new (_id, name) FROM stdin;
1	other
5001	new
5001	newer
\.
SELECT * FROM u_all WHERE _id IN (1, 30, 2500, 4500, 5001) ORDER BY _id;
INSERT INTO u_new (stock) VALUES (8);

-- ON CONFLICT is as it is without the option
INSERT INTO u_items (_id, stock) VALUES (1, 99), (6000, 1) ON CONFLICT DO NOTHING;
SELECT _id, stock FROM u_all WHERE _id IN (1, 6000) ORDER BY _id;

-- whole documents
CREATE FOREIGN TABLE u_documents (__doc jsonb, sku text, n int) SERVER upserting
	OPTIONS (database 'mongo_fdw_regress', collection 'written_documents', insert_mode 'upsert');
INSERT INTO u_documents (__doc) VALUES ('{"_id": 1, "sku": "a", "n": 1}'), ('{"_id": 2, "sku": "b"}'), ('{"_id": 1, "sku": "c"}');
SELECT __doc FROM u_documents ORDER BY __doc -> '_id';
INSERT INTO u_documents (__doc) VALUES ('{"sku": "d"}');
ALTER FOREIGN TABLE u_documents OPTIONS (ADD key_columns 'sku');
INSERT INTO u_documents (__doc) VALUES ('{"sku": "b", "n": 5}'), ('{"sku": "e", "n": 6}');
SELECT __doc - CASE WHEN n = 6 THEN '_id' ELSE '' END FROM u_documents ORDER BY sku;
INSERT INTO u_documents (__doc) VALUES ('{"n": 7}');
INSERT INTO u_documents (__doc, n) VALUES ('{"sku": "b"}', 8);

-- another unique index, and the row that failed
SELECT mongo_command('upserting', 'mongo_fdw_regress', '{"createIndexes": "written_upserts", "indexes": [{"key": {"name": 1}, "name": "name", "unique": true, "partialFilterExpression": {"name": {"$exists": true}}}]}') -> 'ok' AS ok;
-- without the WARNING, which psql shows before the error or after it
SET client_min_messages = error;
INSERT INTO u_items (_id, name) VALUES (7001, 'seven'), (7002, 'seven'), (7003, 'eight');
RESET client_min_messages;
SELECT _id, name FROM u_all WHERE _id > 7000 ORDER BY _id;
INSERT INTO u_new (_id, name) VALUES (7004, 'seven');

-- partitions, and a moved row, which is inserted
CREATE TABLE u_parts (_id int, region text, stock int) PARTITION BY LIST (region);
CREATE FOREIGN TABLE u_north PARTITION OF u_parts FOR VALUES IN ('n') SERVER upserting
	OPTIONS (database 'mongo_fdw_regress', collection 'written_north', insert_mode 'upsert');
CREATE TABLE u_south PARTITION OF u_parts FOR VALUES IN ('s');
INSERT INTO u_parts (stock, region, _id) VALUES (1, 'n', 1), (2, 's', 2);
INSERT INTO u_parts (_id, region) VALUES (1, 'n'), (3, 'n');
INSERT INTO u_parts VALUES (1, 'n', 5), (1, 's', 6) RETURNING tableoid::regclass, *;
UPDATE u_parts SET region = 'n' WHERE _id = 1 AND region = 's';
SELECT tableoid::regclass, * FROM u_parts ORDER BY 1, 2;

-- what a trigger has given a value counts as named; of columns with a default that cannot be told
CREATE FUNCTION u_trigger() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN NEW.origin := 'trigger'; NEW.name := 'trigger ' || NEW._id; RETURN NEW; END$$;
CREATE TRIGGER before BEFORE INSERT ON u_items FOR EACH ROW EXECUTE FUNCTION u_trigger();
INSERT INTO u_items (_id, stock) VALUES (1, 77), (8000, 78);
SELECT * FROM u_all WHERE _id IN (1, 8000) ORDER BY _id;
DROP TRIGGER before ON u_items;

-- an AFTER ROW trigger sees the document that there is then, and none that was passed over
CREATE FUNCTION u_tell() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE NOTICE '%', row_to_json(NEW); RETURN NULL; END$$;
CREATE FOREIGN TABLE u_told (_id objectid, name text, stock int, city text OPTIONS (path 'at.city')) SERVER upserting
	OPTIONS (database 'mongo_fdw_regress', collection 'written_told', insert_mode 'upsert', key_columns 'name');
CREATE FOREIGN TABLE u_told_new (_id objectid, name text, stock int) SERVER upserting
	OPTIONS (database 'mongo_fdw_regress', collection 'written_told', insert_mode 'ignore', key_columns 'name');
CREATE TRIGGER after AFTER INSERT ON u_told FOR EACH ROW EXECUTE FUNCTION u_tell();
CREATE TRIGGER after AFTER INSERT ON u_told_new FOR EACH ROW EXECUTE FUNCTION u_tell();
EXPLAIN (VERBOSE, COSTS OFF) INSERT INTO u_told (name, stock) VALUES ('a', 1);
INSERT INTO u_told VALUES ('65a500000000000000000001', 'a', 1, 'Oslo');
INSERT INTO u_told (name, stock) VALUES ('a', 2);
COPY u_told (name, stock) FROM stdin;
a	3
\.
INSERT INTO u_told_new VALUES ('65a500000000000000000002', 'a', 4), ('65a500000000000000000003', 'b', 5);
COPY u_told_new FROM stdin;
65a500000000000000000004	b	6
65a500000000000000000005	c	7
\.
TABLE u_told ORDER BY _id;

-- generated columns, of columns that are named and that are not
CREATE FOREIGN TABLE u_generated (_id int, a int, b int, ab int GENERATED ALWAYS AS (a + b) STORED) SERVER upserting
	OPTIONS (database 'mongo_fdw_regress', collection 'written_upsert_generated', insert_mode 'upsert');
INSERT INTO u_generated (_id, a, b) VALUES (1, 1, 1), (2, 2, 2);
INSERT INTO u_generated (_id, b, a) VALUES (1, 10, 1), (3, 3, 3);
INSERT INTO u_generated (_id, b) VALUES (2, 20), (4, 40);
TABLE u_generated ORDER BY _id;

-- who may insert must be allowed to update, too; policies are not passed by
SET client_min_messages = warning;
DROP ROLE IF EXISTS regress_upserter;
RESET client_min_messages;
CREATE ROLE regress_upserter;
CREATE USER MAPPING FOR regress_upserter SERVER upserting;
GRANT INSERT ON u_items, u_new, u_parts TO regress_upserter;
GRANT UPDATE (stock) ON u_items TO regress_upserter;
SET ROLE regress_upserter;
INSERT INTO u_items (_id, stock) VALUES (1, 5);
INSERT INTO u_items (_id, stock, name) VALUES (1, 5, 'x');
INSERT INTO u_parts (_id, region) VALUES (1, 'n');
INSERT INTO u_new (_id) VALUES (1);
RESET ROLE;
ALTER TABLE u_parts ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON u_parts USING (stock = 3) WITH CHECK (true);
GRANT UPDATE ON u_parts TO regress_upserter;
SET ROLE regress_upserter;
INSERT INTO u_parts (_id, region) VALUES (1, 'n');
RESET ROLE;
CREATE VIEW u_view AS SELECT * FROM u_items WHERE stock > 5 WITH CHECK OPTION;
INSERT INTO u_view (_id, stock) VALUES (1, 6);

-- what cannot be
ALTER FOREIGN TABLE u_items OPTIONS (SET insert_mode 'replace');
ALTER FOREIGN TABLE u_items OPTIONS (ADD key_columns 'name,,city');
ALTER FOREIGN TABLE u_items OPTIONS (ADD key_columns 'name,name');
ALTER FOREIGN TABLE u_items OPTIONS (ADD key_columns 'nothing');
INSERT INTO u_items (_id) VALUES (1);
ALTER FOREIGN TABLE u_items OPTIONS (DROP key_columns, ADD generated_id 'true');
INSERT INTO u_items (_id) VALUES (1);
ALTER FOREIGN TABLE u_items OPTIONS (DROP generated_id, ADD unwind 'name');
INSERT INTO u_items (_id) VALUES (1);
CREATE FOREIGN TABLE u_nested (_id int, at jsonb, city text OPTIONS (path 'at.city'), part int OPTIONS (path '_id.part')) SERVER upserting
	OPTIONS (database 'mongo_fdw_regress', collection 'written_upserts', insert_mode 'upsert');
INSERT INTO u_nested (_id, at) VALUES (1, '{"city": "Ski"}');
INSERT INTO u_nested VALUES (1, '{"city": "Ski"}', 'x');
ALTER FOREIGN TABLE u_nested OPTIONS (ADD key_columns 'part');
INSERT INTO u_nested (part) VALUES (1);
SELECT * FROM u_all WHERE _id = 1;

SET client_min_messages = warning;
DROP TABLE u_parts;
DROP SERVER upserting CASCADE;
DROP FUNCTION u_trigger();
DROP ROLE regress_upserter;
