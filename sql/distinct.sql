--
-- DISTINCT and GROUP BY of one column, with every kind of index that MongoDB might take the
-- values from: each gives the rows that PostgreSQL finds.
--
\getenv mongo_host MONGO_HOST
\getenv mongo_port MONGO_PORT
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mongo_fdw;
CREATE SERVER distinct_values FOREIGN DATA WRAPPER mongo_fdw
	OPTIONS (address :'mongo_host', port :'mongo_port', fdw_startup_cost '0');
CREATE USER MAPPING FOR CURRENT_USER SERVER distinct_values;
RESET client_min_messages;
SET jit = off;
-- MongoDB's work costs nothing compared with PostgreSQL's
SET cpu_tuple_cost = 100;
SET cpu_operator_cost = 1000;
\pset format unaligned
\pset tuples_only on

CREATE TABLE distinct_kinds (kind text, indexes text);
INSERT INTO distinct_kinds VALUES
	('ordinary', '{"key": {"t": 1}, "name": "a"}, {"key": {"n": 1}, "name": "b"}, {"key": {"d": 1}, "name": "c"}'),
	('behind', '{"key": {"x": 1, "t": 1}, "name": "a"}, {"key": {"x": 1, "n": 1}, "name": "b"}'),
	('collated', '{"key": {"t": 1}, "name": "a", "collation": C}, {"key": {"n": 1}, "name": "b", "collation": C}'),
	('collated_before', '{"key": {"t": 1, "x": 1}, "name": "a", "collation": C}'),
	('collated_behind', '{"key": {"x": 1, "t": 1}, "name": "a", "collation": C}'),
	('both', '{"key": {"t": 1}, "name": "a", "collation": C}, {"key": {"t": 1}, "name": "b"}'),
	('sparse', '{"key": {"t": 1}, "name": "a", "sparse": true}, {"key": {"n": 1}, "name": "b", "sparse": true}'),
	('sparse_behind', '{"key": {"x": 1, "t": 1}, "name": "a", "sparse": true}, {"key": {"x": 1, "n": 1}, "name": "b", "sparse": true}'),
	('sparse_collated', '{"key": {"t": 1}, "name": "a", "sparse": true, "collation": C}'),
	('partial', '{"key": {"t": 1}, "name": "a", "partialFilterExpression": {"x": 5}}, {"key": {"n": 1}, "name": "b", "partialFilterExpression": {"n": {"$exists": true}}}'),
	('partial_collated', '{"key": {"t": 1}, "name": "a", "partialFilterExpression": {"x": 5}, "collation": C}'),
	('hashed', '{"key": {"t": "hashed"}, "name": "a"}, {"key": {"n": "hashed"}, "name": "b"}, {"key": {"x": 1, "t": "hashed"}, "name": "c"}'),
	('wildcard', '{"key": {"$**": 1}, "name": "a"}'),
	('wildcard_collated', '{"key": {"$**": 1}, "name": "a", "collation": C}'),
	('multikey', '{"key": {"x": 1, "t": 1}, "name": "a"}, {"key": {"t": 1, "m": 1}, "name": "b", "collation": C}, {"key": {"n": 1, "m": 1}, "name": "c"}');

CREATE FUNCTION make_distinct(kind text, indexes text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	documents text := (SELECT string_agg(format('{"_id": %s, "x": %s, "m": [1, 2]%s%s%s}', i, CASE WHEN i % 3 = 0 THEN 5 ELSE 1 END,
		coalesce(', "t": ' || (ARRAY['"A"', '"a"', '"B"', '"b"', '"é"', '"e"', '""', 'null', NULL, '"Z"'])[1 + i % 10], ''),
		coalesce(', "n": ' || (ARRAY['1', '1.0', '2', '{"$numberDecimal": "2"}', 'null', NULL, '-3'])[1 + i % 7], ''),
		', "d": ' || (ARRAY['{"$numberLong": "1152921504606846976"}', '{"$numberDouble": "1152921504606846976"}', '1.5', '{"$numberDecimal": "1.50"}'])[1 + i % 4]), ', ') FROM generate_series(1, 210) AS i);
BEGIN
	PERFORM mongo_command('distinct_values', 'mongo_fdw_regress', format('{"insert": "written_distinct_%s", "documents": [%s]}', kind, documents)::json);
	PERFORM mongo_command('distinct_values', 'mongo_fdw_regress',
		format('{"createIndexes": "written_distinct_%s", "indexes": [%s]}', kind, replace(indexes, ' C}', ' {"locale": "en", "strength": 1}}'))::json);
	EXECUTE format('CREATE FOREIGN TABLE %I (_id int, x int, t text, n int, d numeric) SERVER distinct_values OPTIONS (database ''mongo_fdw_regress'', collection %L)', kind, 'written_distinct_' || kind);
END $$;
SELECT count(make_distinct(kind, indexes)) FROM distinct_kinds;

-- What MongoDB does of it: from key to key of an index, or from all documents; '!' where the rows
-- are others than PostgreSQL's.
CREATE FUNCTION try_distinct(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan json;
	answers text[];
	pushdown text;
BEGIN
	EXECUTE 'EXPLAIN (VERBOSE, FORMAT json) ' || query INTO plan;
	FOREACH pushdown IN ARRAY ARRAY['on', 'off'] LOOP
		PERFORM set_config('mongo_fdw.enable_pushdown', pushdown, true);
		EXECUTE 'SELECT array_append($1, string_agg(coalesce(v::text, ''NULL''), '' '' ORDER BY v)) FROM (' || query || ') AS q(v)' INTO answers USING answers;
	END LOOP;
	PERFORM set_config('mongo_fdw.enable_pushdown', 'on', true);
	RETURN CASE WHEN plan #>> '{0,Plan,Remote Command}' IS NULL THEN '-'
		WHEN mongo_command('distinct_values', 'mongo_fdw_regress',
			json_build_object('explain', (plan #>> '{0,Plan,Remote Command}')::json, 'verbosity', 'queryPlanner')::text::json)::text ~ 'DISTINCT_SCAN'
		THEN 'keys' ELSE 'all' END || CASE WHEN answers[1] = answers[2] THEN '' ELSE '! ' || answers[1] || ' in place of ' || answers[2] END;
END $$;
CREATE FUNCTION try_all_distinct() RETURNS SETOF text LANGUAGE sql AS $$
	SELECT kind || ': ' || (SELECT string_agg(try_distinct(format(query, kind)), ' ' ORDER BY number) FROM unnest(ARRAY[
		'SELECT DISTINCT t FROM %I', 'SELECT t FROM %I GROUP BY t', 'SELECT DISTINCT t FROM %I WHERE x = 5', 'SELECT DISTINCT t FROM %I WHERE x IN (1, 5)',
		'SELECT DISTINCT t FROM %I WHERE t IS NOT NULL', 'SELECT DISTINCT t FROM %I WHERE t IN (''a'', ''A'', ''é'')', 'SELECT DISTINCT t FROM %I WHERE x = 5 AND t IS NOT NULL',
		'SELECT DISTINCT n FROM %I', 'SELECT DISTINCT n FROM %I WHERE x = 5', 'SELECT DISTINCT n FROM %I WHERE n < 2', 'SELECT count(DISTINCT t) FROM %I', 'SELECT count(DISTINCT n) FROM %I', 'SELECT count(DISTINCT d) FROM %I', 'SELECT count(DISTINCT n) || '' '' || sum(DISTINCT n) FROM %I WHERE x = 5'])
		WITH ORDINALITY AS u(query, number)) FROM distinct_kinds;
$$;
SET enable_hashagg = off;
SET enable_sort = off;
SELECT try_all_distinct();
-- the same when the indexes are known
DO $$
DECLARE kind text;
BEGIN
	FOR kind IN SELECT k.kind FROM distinct_kinds AS k LOOP
		EXECUTE format('ANALYZE %I', kind);
	END LOOP;
END $$;
SELECT try_all_distinct();
-- and of a column that is never null
DO $$
DECLARE kind text;
BEGIN
	FOR kind IN SELECT k.kind FROM distinct_kinds AS k LOOP
		EXECUTE format('ALTER FOREIGN TABLE %I ALTER t SET NOT NULL', kind);
	END LOOP;
END $$;
SELECT kind || ': ' || try_distinct(format('SELECT DISTINCT t FROM %I WHERE t >= '''' COLLATE "C"', kind)) || ' ' || try_distinct(format('SELECT DISTINCT t FROM %I WHERE x = 5 AND t <> ''A''', kind)) FROM distinct_kinds;
EXPLAIN (VERBOSE, COSTS OFF) SELECT DISTINCT t FROM ordinary;
EXPLAIN (VERBOSE, COSTS OFF) SELECT DISTINCT t FROM ordinary WHERE x = 5;
EXPLAIN (VERBOSE, COSTS OFF) SELECT DISTINCT t FROM behind WHERE x = 5;

-- the one row of an aggregate over no rows
SELECT DISTINCT count(*) FROM ordinary WHERE x = 7;

-- MongoDB takes no values from the keys of an index to which arrays have given several
SELECT mongo_command('distinct_values', 'mongo_fdw_regress', '{"insert": "written_distinct_ordinary", "documents": [{"_id": 0, "n": [1, 2]}]}') ->> 'n';
SELECT count(DISTINCT n) FROM ordinary;
