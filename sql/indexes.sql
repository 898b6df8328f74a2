--
-- Which indexes the planner takes for finding documents, and for their order; and
-- whether MongoDB takes them, too.
--
\getenv mongo_host MONGO_HOST
\getenv mongo_port MONGO_PORT
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mongo_fdw;
CREATE SERVER indexes FOREIGN DATA WRAPPER mongo_fdw
	OPTIONS (address :'mongo_host', port :'mongo_port', fdw_startup_cost '0', bandwidth '1e12', pushdown_disable 'natural');
CREATE USER MAPPING FOR CURRENT_USER SERVER indexes;
RESET client_min_messages;

CREATE FOREIGN TABLE indexed (
	_id		int,
	a		int NOT NULL,
	b		int NOT NULL,
	c		int NOT NULL,
	n		numeric,
	h		int,
	at		timestamptz,
	s		int,
	p		int,
	k		text,
	m		int,
	o		int,
	t		text COLLATE "C",
	w		int,
	u		int,
	v		int,
	d		jsonb,
	x		int OPTIONS (path 'sub.x'),
	y		int OPTIONS (path 'sub.y'),
	z		int OPTIONS (path 'chosen.z')
) SERVER indexes OPTIONS (database 'mongo_fdw_regress', collection 'written_indexed');
INSERT INTO indexed
SELECT i, i % 10, i / 10 % 10, i, i % 10, i % 50, '2024-01-01 00:00Z'::timestamptz + (i % 50) * interval '1 day', i % 10, i % 10, 'k' || i % 10, i % 10,
	CASE WHEN i % 3 > 0 THEN i % 20 END, 't' || i, i % 10, i % 10, i / 10, jsonb_build_object('x', 'x' || i % 50), i % 20, i % 30, i % 20
FROM generate_series(1, 1000) AS i;
SELECT mongo_command('indexes', 'mongo_fdw_regress', '{"update": "written_indexed", "updates": [{"q": {"_id": 1}, "u": {"$set": {"m": [11, 12]}}}]}') -> 'n' AS made_arrays;
SELECT mongo_command('indexes', 'mongo_fdw_regress', '{"update": "written_indexed", "updates": [{"q": {"_id": {"$lte": 10}}, "multi": true, "u": {"$unset": {"w": 1, "o": 1}}}]}') -> 'n' AS made_missing;
SELECT mongo_command('indexes', 'mongo_fdw_regress', '{"createIndexes": "written_indexed", "indexes": [
	{"name": "abc", "key": {"a": 1, "b": -1, "c": 1}},
	{"name": "narrow", "key": {"n": 1, "b": 1}},
	{"name": "hash_first", "key": {"h": "hashed", "c": 1}},
	{"name": "hash_of_date", "key": {"at": "hashed"}},
	{"name": "sparse", "key": {"s": 1, "c": 1}, "sparse": true},
	{"name": "sparse_alone", "key": {"w": 1}, "sparse": true},
	{"name": "partial", "key": {"p": 1, "c": 1}, "partialFilterExpression": {"p": {"$gt": 5}}},
	{"name": "collated", "key": {"k": 1, "c": 1}, "collation": {"locale": "de"}},
	{"name": "arrays", "key": {"m": 1, "c": 1}},
	{"name": "nulls", "key": {"o": 1, "c": 1}},
	{"name": "unique", "key": {"u": 1, "v": 1}, "unique": true},
	{"name": "wildcard", "key": {"sub.$**": 1}},
	{"name": "projected", "key": {"$**": 1}, "wildcardProjection": {"chosen": 1}},
	{"name": "json", "key": {"d.x": 1}}]}') -> 'ok' AS ok;
ALTER FOREIGN TABLE indexed OPTIONS (ADD type_mismatch 'null');
ANALYZE indexed;
ALTER FOREIGN TABLE indexed OPTIONS (DROP type_mismatch);

-- How many documents the planner thinks that MongoDB looks at, which is all that is
-- left of the costs; how many it does; and whether it has to sort.
CREATE FUNCTION examines(query text, OUT planned text, OUT documents int, OUT sorts boolean) LANGUAGE plpgsql AS $$
DECLARE
	plan json;
	stats jsonb;
	cost float8;
BEGIN
	EXECUTE 'EXPLAIN (VERBOSE, FORMAT json) ' || query INTO plan;
	plan := plan #> '{0,Plan}';
	IF plan ->> 'Remote Command' IS NULL THEN
		planned := plan ->> 'Node Type';
		RETURN;
	END IF;
	cost := (plan ->> 'Total Cost')::float8 - 0.1 * (plan ->> 'Plan Rows')::float8;
	stats := mongo_command('indexes', 'mongo_fdw_regress',
		json_build_object('explain', (plan ->> 'Remote Command')::json, 'verbosity', 'executionStats')::text::json);
	documents := stats #> '{executionStats,totalDocsExamined}';
	sorts := stats ->> 'queryPlanner' ~ '"stage": "SORT"';
	-- by an index, a document costs 0.17 to 0.45, as its order is the collection's
	planned := CASE WHEN cost BETWEEN 59.9 AND 60.1 THEN 'all'
		WHEN cost BETWEEN 0.17 * (documents / 2 - 1) AND 0.45 * (documents * 2 + 2) THEN 'as many'
		ELSE 'about ' || round(cost / 0.45) END;
END $$;
SET cpu_tuple_cost = 0;
SET cpu_operator_cost = 0;

-- Equality on the first fields and a range on the next one.
SELECT condition, e.* FROM unnest(ARRAY[
	'a = 3', 'a = 3 AND b = 3', 'a = 3 AND b > 5', 'a = 3 AND b = 3 AND c < 500', 'a = 3 AND c < 500', 'a < 3 AND b = 3', 'a IN (3, 4) AND b = 3',
	'b = 3', 'c < 100', 'b = 3 AND c < 500', 'a < 3 OR a = 5', 'a < 3 OR b = 3', 'a <> 3', '_id = 3', '_id < 100 AND a = 3',
	'n = 3', 'n = 3 AND b = 3',
	'h = 3', 'h IN (3, 4)', 'h < 3', 'h = 3 AND c < 500', 'at = ''2024-01-04 00:00Z''', 'at < ''2024-01-04 00:00Z''',
	's = 3', 's = 3 AND c < 500', 's IS NULL', 'p = 3 AND c < 100', 'p = 7 AND c < 100', 'k = ''k3''', 'm = 3', 'm > 2 AND m < 5', 'u = 3', 'u = 3 AND v = 4',
	'x = 3', 'x < 3', 'x > 3 AND x < 6', 'x = 3 AND y = 3', 'z = 3', 'd ->> ''x'' = ''x3'''])
	AS condition, LATERAL examines('SELECT _id, a FROM indexed WHERE ' || condition) AS e;

SET enable_sort = off;
SET enable_incremental_sort = off;
-- An order that an index has, forwards and backwards, behind what has one value.
SELECT query, e.* FROM unnest(ARRAY[
	'ORDER BY a', 'ORDER BY a, b DESC', 'ORDER BY a DESC, b', 'ORDER BY a DESC NULLS LAST, b, c DESC NULLS LAST', 'ORDER BY a, b', 'ORDER BY b', 'ORDER BY a, c',
	'WHERE a = 3 ORDER BY b', 'WHERE a = 3 ORDER BY b DESC, c', 'WHERE a = 3 ORDER BY b, c', 'WHERE a = 3 ORDER BY c', 'WHERE a = 3 AND b = 3 ORDER BY c', 'WHERE a < 3 ORDER BY b',
	'WHERE a < 3 ORDER BY a', 'WHERE b = 3 ORDER BY a', 'WHERE b = 3 ORDER BY a, c', 'WHERE c < 3 ORDER BY a', '_id', 'WHERE u = 3 ORDER BY v NULLS FIRST',
	'WHERE h = 3 ORDER BY c', 'ORDER BY h NULLS FIRST', 'WHERE s = 3 ORDER BY c', 'ORDER BY s NULLS FIRST', 'ORDER BY m NULLS FIRST', 'WHERE m = 3 ORDER BY c',
	'WHERE p = 7 ORDER BY c', 'ORDER BY o NULLS FIRST, c', 'ORDER BY o DESC NULLS LAST, c DESC'])
	AS query, LATERAL examines('SELECT _id, a FROM indexed ' || CASE query WHEN '_id' THEN 'ORDER BY _id' ELSE query END) AS e;

RESET enable_sort;
RESET enable_incremental_sort;
RESET cpu_tuple_cost;
RESET cpu_operator_cost;

-- Values from key to key of an index, if it has all documents: those of a sparse one
-- would be too few.
CREATE FUNCTION walks(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (VERBOSE, FORMAT json) ' || query INTO plan;
	plan := plan #> '{0,Plan}';
	RETURN CASE WHEN plan ->> 'Remote Command' IS NULL THEN 'in PostgreSQL'
		WHEN mongo_command('indexes', 'mongo_fdw_regress',
			json_build_object('explain', (plan ->> 'Remote Command')::json, 'verbosity', 'queryPlanner')::text::json)::text ~ 'DISTINCT_SCAN'
		THEN 'from key to key' ELSE 'from all documents' END;
END $$;
SET enable_sort = off;
SELECT query, walks(query) FROM unnest(ARRAY['SELECT DISTINCT a FROM indexed', 'SELECT DISTINCT o FROM indexed', 'SELECT o FROM indexed GROUP BY 1',
	'SELECT DISTINCT a FROM indexed WHERE a > 5', 'SELECT DISTINCT b FROM indexed WHERE a = 5', 'SELECT DISTINCT b FROM indexed WHERE a > 5',
	'SELECT DISTINCT a FROM indexed WHERE b = 5', 'SELECT DISTINCT w FROM indexed', 'SELECT DISTINCT w FROM indexed WHERE w > 3']) AS query;
SET enable_hashagg = off;
SELECT walks('SELECT DISTINCT w FROM indexed');
EXPLAIN (VERBOSE, COSTS OFF) SELECT DISTINCT w FROM indexed;
SELECT count(*), count(w) FROM (SELECT DISTINCT w FROM indexed OFFSET 0) AS d;
SELECT count(*), count(o) FROM (SELECT o FROM indexed GROUP BY o OFFSET 0) AS d;
SELECT count(DISTINCT w) FROM indexed;
RESET enable_hashagg;
RESET enable_sort;
SELECT min(a), max(a), min(o), max(o), min(w), max(w) FROM indexed;
EXPLAIN (VERBOSE, COSTS OFF) SELECT max(o) FROM indexed;

-- The first columns of an order: sorted by the rest in PostgreSQL.
EXPLAIN (VERBOSE, COSTS OFF) SELECT _id, a, t FROM indexed WHERE a < 5 ORDER BY a, b DESC, t LIMIT 3;
SELECT _id, a, b, t FROM indexed WHERE a < 5 ORDER BY a, b DESC, t LIMIT 3;

-- Two tables that are merged in the order of their indexes.
SET enable_sort = off;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET mongo_fdw.enable_batched_joins = off;
EXPLAIN (VERBOSE, COSTS OFF) SELECT count(*) FROM indexed AS i JOIN indexed AS j ON i.a = j._id;
SELECT count(*), sum(i._id) FROM indexed AS i JOIN indexed AS j ON i.a = j._id;
EXPLAIN (VERBOSE, COSTS OFF) SELECT count(*) FROM indexed AS i JOIN indexed AS j ON i.o = j._id;
SELECT count(*), sum(i._id) FROM indexed AS i JOIN indexed AS j ON i.o = j._id;
RESET enable_sort;
RESET enable_hashjoin;
RESET enable_nestloop;
RESET mongo_fdw.enable_batched_joins;

-- For the rows of another table, too: behind what a condition sets equal to a value.
-- Versions differ in which side of a join's condition they write first.
CREATE FUNCTION plan_of_join(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		RETURN NEXT regexp_replace(line, '(Join (Cond|Filter)):.*', '\1');
	END LOOP;
END $$;
SET cpu_tuple_cost = 0;
SET cpu_operator_cost = 0;
SET enable_nestloop = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT plan_of_join('SELECT i._id FROM generate_series(1, 3) AS g JOIN indexed AS i ON g = i.b WHERE i.a = 3');
RESET enable_nestloop;
RESET enable_hashjoin;
RESET enable_mergejoin;
SET mongo_fdw.enable_batched_joins = off;
SELECT plan_of_join('SELECT i._id FROM generate_series(1, 1) AS g JOIN indexed AS i ON g = i.b WHERE i.a = 3');
SELECT plan_of_join('SELECT i._id FROM generate_series(1, 1) AS g JOIN indexed AS i ON g = i.b');
RESET mongo_fdw.enable_batched_joins;

-- A batched join asks for each key once, so that it costs little where there are few.
RESET cpu_tuple_cost;
RESET cpu_operator_cost;
SET enable_memoize = off;
SET enable_mergejoin = off;
EXPLAIN (COSTS OFF) SELECT i._id FROM indexed AS i JOIN indexed AS j ON j._id = i.a;
RESET enable_memoize;
RESET enable_mergejoin;
SET cpu_tuple_cost = 0;
SET cpu_operator_cost = 0;

-- The user's word wins.
SET enable_sort = off;
ALTER FOREIGN TABLE indexed ALTER a OPTIONS (ADD indexed 'false'), ALTER b OPTIONS (ADD indexed 'true');
SELECT query, e.* FROM unnest(ARRAY['WHERE a = 3', 'WHERE a = 3 AND b = 3', 'WHERE b = 3', 'ORDER BY a, b DESC', 'ORDER BY b'])
	AS query, LATERAL examines('SELECT _id, a FROM indexed ' || query) AS e;

ALTER FOREIGN TABLE indexed ALTER a OPTIONS (DROP indexed), ALTER b OPTIONS (DROP indexed);

-- Knowledge that is no longer true costs time, and no answer.
CREATE FUNCTION same(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	answers text[];
	pushdown text;
	plan text;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan;
	FOREACH pushdown IN ARRAY ARRAY['on', 'off'] LOOP
		PERFORM set_config('mongo_fdw.enable_pushdown', pushdown, true);
		EXECUTE 'SELECT array_append($1, count(*) || '' '' || coalesce(string_agg(q::text, '',''), '''')) FROM (' || query || ') AS q' INTO answers USING answers;
	END LOOP;
	PERFORM set_config('mongo_fdw.enable_pushdown', 'on', true);
	RETURN substring(plan, '"Node Type": "([^"]*)') || CASE WHEN answers[1] = answers[2] THEN ', the same ' ELSE ', another answer ' END || split_part(answers[1], ' ', 1);
END $$;
SELECT mongo_command('indexes', 'mongo_fdw_regress', '{"dropIndexes": "written_indexed", "index": "*"}') -> 'ok' AS ok;
SELECT mongo_command('indexes', 'mongo_fdw_regress', '{"createIndexes": "written_indexed", "indexes": [
	{"name": "abc", "key": {"a": 1}, "sparse": true}, {"name": "nulls", "key": {"o": 1}, "sparse": true}]}') -> 'ok' AS ok;
SELECT mongo_command('indexes', 'mongo_fdw_regress', '{"update": "written_indexed", "updates": [{"q": {"_id": {"$lte": 500}}, "multi": true, "u": {"$unset": {"o": 1}}}]}') -> 'n' AS made_missing;
SET mongo_fdw.enable_batched_joins = off;
SET enable_hashjoin = off;
SET enable_nestloop = off;
SELECT query, same(query) FROM unnest(ARRAY['SELECT _id FROM indexed WHERE a = 3 AND b = 3 ORDER BY c', 'SELECT a, b, _id FROM indexed ORDER BY a, b DESC, c LIMIT 50',
	'SELECT o, c FROM indexed ORDER BY o NULLS FIRST, c', 'SELECT o, c FROM indexed ORDER BY o DESC NULLS LAST, c DESC LIMIT 100', 'SELECT * FROM (SELECT DISTINCT o FROM indexed OFFSET 0) AS d ORDER BY 1',
	'SELECT min(o), max(o), min(a), max(a) FROM indexed', 'SELECT a, b, t FROM indexed ORDER BY a, b DESC, t LIMIT 30', 'SELECT count(*) FROM indexed WHERE x = 3 AND u = 3',
	'SELECT count(*), sum(i.c), sum(j.c) FROM indexed AS i JOIN indexed AS j ON i.o = j._id']) AS query;

SET client_min_messages = warning;
DROP FUNCTION same;
DROP FUNCTION examines, walks;
DROP SERVER indexes CASCADE;
