--
-- What ANALYZE learns of a collection, and what planning makes of it.
--
\getenv mongo_host MONGO_HOST
\getenv mongo_port MONGO_PORT
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mongo_fdw;
CREATE SERVER statistics FOREIGN DATA WRAPPER mongo_fdw
	OPTIONS (address :'mongo_host', port :'mongo_port', fdw_startup_cost '0');
CREATE USER MAPPING FOR CURRENT_USER SERVER statistics;
RESET client_min_messages;

SELECT mongo_command('statistics', 'mongo_fdw_regress', '{"insert": "written_learned", "documents": [
	{"_id": 1, "a": 1, "b": 1, "tags": ["x", "y"], "sub": {"x": 1}, "h": 1},
	{"_id": 2, "a": 2, "b": "two", "tags": "z", "sub": [{"x": 2}], "h": 2},
	{"_id": 3, "a": {"$numberLong": "3"}, "b": null, "h": {"$numberDecimal": "3"}},
	{"_id": 4, "a": 4.5, "$odd": 1, "dot.ted": 2, "h": {"$minKey": 1}}]}') -> 'n' AS inserted;
SELECT mongo_command('statistics', 'mongo_fdw_regress', '{"createIndexes": "written_learned", "indexes": [
	{"name": "ordinary", "key": {"a": 1}, "unique": true},
	{"name": "compound", "key": {"b": -1, "tags": 1}},
	{"name": "nested", "key": {"sub.x": 1}},
	{"name": "hashed", "key": {"h": "hashed"}},
	{"name": "partial", "key": {"p": 1}, "partialFilterExpression": {"p": {"$gt": 5}}},
	{"name": "collated", "key": {"k": 1}, "collation": {"locale": "de"}},
	{"name": "sparse", "key": {"s": 1}, "sparse": true},
	{"name": "hidden", "key": {"u": 1}, "hidden": true},
	{"name": "text", "key": {"t": "text"}},
	{"name": "place", "key": {"g": "2dsphere", "w": 1}},
	{"name": "wildcard", "key": {"w.$**": 1}}]}') -> 'ok' AS ok;

CREATE FOREIGN TABLE learned (
	_id		int,
	a		int,
	b		text,
	tags	text,
	"sub.x"	int,
	h		int,
	p		int,
	k		text,
	s		int,
	u		int,
	t		text,
	w		int,
	n		numeric OPTIONS (path 'h'),
	gone	int,
	__doc	jsonb
) SERVER statistics OPTIONS (database 'mongo_fdw_regress', collection 'written_learned', type_mismatch 'null');
ALTER FOREIGN TABLE learned DROP COLUMN gone;

SELECT count(*) FROM mongo_fdw_statistics WHERE relation = 'learned'::regclass;
ANALYZE learned;
SELECT relation, collection, learned_at > now() - interval '1 day' AS just_now, documents, document_size
FROM mongo_fdw_statistics WHERE relation = 'learned'::regclass;
SELECT i ->> 'name' AS name, i ->> 'unique' AS "unique", i ->> 'sparse' AS sparse, i ->> 'hidden' AS hidden,
	i ->> 'multikey' AS multikey, i ->> 'partialFilterExpression' AS partial, i #>> '{collation,locale}' AS "collation", i ->> 'key' AS key
FROM mongo_fdw_statistics, json_array_elements(indexes) WITH ORDINALITY AS indexes (i, place)
WHERE relation = 'learned'::regclass ORDER BY place;

SELECT mongo_command('statistics', 'mongo_fdw_regress', '{"insert": "written_unlearned", "documents": [{"_id": 1, "a": 2}]}') -> 'n' AS inserted;

-- What an index can serve is what the planner takes it for: of 1,000,000
-- documents some are looked at, and not all.
CREATE FUNCTION uses_index(condition text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT json) SELECT * FROM learned WHERE ' || condition INTO plan;
	RETURN (plan #>> '{0,Plan,Total Cost}')::float8 < 20000;
END $$;
UPDATE pg_class SET reltuples = 1000000, relpages = 10000 WHERE oid = 'learned'::regclass;

SELECT condition, uses_index(condition) FROM unnest(ARRAY[
	'_id = 1', 'a = 1', 'a BETWEEN 1 AND 2', 'a IN (1, 2)', 'b = ''x''', 'tags = ''x''', '"sub.x" = 1', 'h = 1', 'h IN (1, 2)',
	'h BETWEEN 1 AND 2', 'n = 1', 'p = 6', 'k = ''x''', 's = 1', 's BETWEEN 1 AND 2', 'u = 1', 't = ''x''', 'w = 1', 'a <> 1', 's IS NULL'])
	AS condition;

-- The user's word wins, either way.
ALTER FOREIGN TABLE learned ALTER a OPTIONS (ADD indexed 'false'), ALTER p OPTIONS (ADD indexed 'true'), ALTER _id OPTIONS (ADD indexed 'false');
SELECT condition, uses_index(condition) FROM unnest(ARRAY['a = 1', 'p = 6', '_id < 1']) AS condition;
ALTER FOREIGN TABLE learned ALTER a OPTIONS (DROP indexed), ALTER p OPTIONS (DROP indexed), ALTER _id OPTIONS (DROP indexed);
SELECT condition, uses_index(condition) FROM unnest(ARRAY['a = 1', 'p = 6', '_id < 1']) AS condition;

-- An order from an index, if that has all documents, each at one place.
ALTER FOREIGN TABLE learned OPTIONS (SET type_mismatch 'error');
SELECT ordering, uses_index('true ORDER BY ' || ordering || ' NULLS FIRST LIMIT 1')
FROM unnest(ARRAY['a', 's', '"sub.x"', 'h', 'u']) AS ordering;
ALTER FOREIGN TABLE learned OPTIONS (SET type_mismatch 'null');

-- A column's name does not matter, its path does.
ALTER FOREIGN TABLE learned RENAME a TO renamed;
SELECT condition, uses_index(condition) FROM unnest(ARRAY['renamed = 1']) AS condition;
ALTER FOREIGN TABLE learned ALTER renamed OPTIONS (ADD path 'a');
SELECT condition, uses_index(condition) FROM unnest(ARRAY['renamed = 1']) AS condition;
ALTER FOREIGN TABLE learned ADD COLUMN a numeric;
SELECT condition, uses_index(condition) FROM unnest(ARRAY['a = 1']) AS condition;

-- What was learned of one collection is not true of another.
ALTER FOREIGN TABLE learned OPTIONS (SET collection 'written_unlearned');
SELECT condition, uses_index(condition) FROM unnest(ARRAY['a = 1']) AS condition;
ALTER FOREIGN TABLE learned OPTIONS (SET collection 'written_learned');
SELECT condition, uses_index(condition) FROM unnest(ARRAY['a = 1']) AS condition;

-- Rolled back, it was not learned.
BEGIN;
SELECT mongo_command('statistics', 'mongo_fdw_regress', '{"dropIndexes": "written_learned", "index": "ordinary"}') -> 'ok' AS ok;
ANALYZE learned, learned;
UPDATE pg_class SET reltuples = 1000000 WHERE oid = 'learned'::regclass;
SELECT condition, uses_index(condition) FROM unnest(ARRAY['a = 1']) AS condition;
ROLLBACK;
SELECT condition, uses_index(condition) FROM unnest(ARRAY['a = 1']) AS condition;

-- Knowledge that is no longer true costs time, and no answer.
SELECT _id FROM learned WHERE a = 2;

-- Views have no indexes; nor has a collection that does not exist.
SELECT mongo_command('statistics', 'mongo_fdw_regress', '{"create": "written_view", "viewOn": "written_learned", "pipeline": []}') -> 'ok' AS ok;
CREATE FOREIGN TABLE viewed (_id int) SERVER statistics OPTIONS (database 'mongo_fdw_regress', collection 'written_view');
CREATE FOREIGN TABLE missing (_id int) SERVER statistics OPTIONS (database 'mongo_fdw_regress', collection 'written_absent_one');
ANALYZE viewed, missing;
SELECT relation, documents, document_size, indexes FROM mongo_fdw_statistics
WHERE relation IN ('viewed'::regclass, 'missing'::regclass) ORDER BY 1;

-- It goes with its table.
DROP FOREIGN TABLE viewed, missing;
SELECT count(*) FROM mongo_fdw_statistics WHERE collection ~ 'view|nowhere';
ANALYZE learned;
SELECT count(*) FROM mongo_fdw_statistics_data WHERE collection ~ 'view|nowhere';

-- Only who may read the table sees what its documents are like, and nobody writes.
CREATE ROLE statistics_reader;
SET ROLE statistics_reader;
SELECT count(*) FROM mongo_fdw_statistics;
SELECT count(*) FROM mongo_fdw_statistics_data;
DELETE FROM mongo_fdw_statistics;
RESET ROLE;
GRANT SELECT ON learned TO statistics_reader;
SET ROLE statistics_reader;
SELECT relation FROM mongo_fdw_statistics;
RESET ROLE;
REVOKE SELECT ON learned FROM statistics_reader;
DROP ROLE statistics_reader;

SET client_min_messages = warning;
DROP FUNCTION uses_index;
DROP SERVER statistics CASCADE;
