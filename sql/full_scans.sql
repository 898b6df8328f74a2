--
-- What costs less without MongoDB's index, or without MongoDB's test of a condition: the hint
-- {$natural: 1}, and conditions that PostgreSQL tests.
--
\getenv mongo_host MONGO_HOST
\getenv mongo_port MONGO_PORT
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mongo_fdw;
CREATE SERVER full_scans FOREIGN DATA WRAPPER mongo_fdw
	OPTIONS (address :'mongo_host', port :'mongo_port', bandwidth '1e12');
CREATE USER MAPPING FOR CURRENT_USER SERVER full_scans;
RESET client_min_messages;
\pset format unaligned

-- x and d are indexed, with xy together; d is a numeric
SELECT mongo_command('full_scans', 'mongo_fdw_regress', format('{"insert": "written_full_scans", "documents": [%s]}',
	string_agg(format('{"_id": %s, "x": %s, "y": %s, "d": {"$numberDecimal": "%s"}, "n": {"$numberDecimal": "%s"}, "s": "s%s", "j": {"a": %s, "k%s": 1}}',
		i, i * 7 % 5000, i % 10, i / 10.0, i % 500 / 4.0, i % 10, i, i % 20), ', '))::json) -> 'n' AS inserted
FROM generate_series(1, 5000) AS i;
SELECT mongo_command('full_scans', 'mongo_fdw_regress', '{"createIndexes": "written_full_scans", "indexes": [
	{"name": "x", "key": {"x": 1}}, {"name": "xy", "key": {"x": 1, "y": 1}}, {"name": "d", "key": {"d": 1}}, {"name": "ja", "key": {"j.a": 1}}]}') -> 'ok' AS ok;
CREATE FOREIGN TABLE scanned (_id int, x int, y int, d numeric, n numeric, s text, j jsonb)
	SERVER full_scans OPTIONS (database 'mongo_fdw_regress', collection 'written_full_scans');

-- What of a query MongoDB does: whether it tests conditions, with which hint, whether it groups;
-- and '!' where the rows are others than those by PostgreSQL alone.
CREATE FUNCTION done(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan text;
	command text;
	answers text[];
BEGIN
	EXECUTE 'EXPLAIN (VERBOSE, FORMAT json) ' || query INTO plan;
	command := substring(plan FROM '"Remote Command": "(.*)"');
	FOREACH plan IN ARRAY ARRAY['on', 'off'] LOOP
		PERFORM set_config('mongo_fdw.enable_pushdown', plan, true);
		EXECUTE 'SELECT array_append($1, md5(string_agg(q::text, '' '' ORDER BY q::text))) FROM (' || query || ') AS q' INTO answers USING answers;
	END LOOP;
	PERFORM set_config('mongo_fdw.enable_pushdown', 'on', true);
	RETURN concat_ws(', ', CASE WHEN command ~ '"(filter|query|\$match)' THEN 'tests' END, CASE WHEN command ~ '"(count|\$group|\$count)\\"' THEN 'groups' END,
		CASE WHEN command ~ 'natural' THEN 'natural' END, CASE WHEN command ~ 'sort\\"' THEN 'sorts' END, CASE WHEN answers[1] <> answers[2] THEN '!' END);
END $$;

CREATE FUNCTION done_by(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	plan text := '';
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (VERBOSE, COSTS OFF) ' || query LOOP
		plan := plan || line || E'\n';
	END LOOP;
	RETURN plan;
END $$;
CREATE VIEW fenced WITH (security_barrier) AS SELECT * FROM scanned WHERE y < 9;

-- without ANALYZE nothing is known of indexes
SELECT done('SELECT * FROM scanned WHERE x < 3750');
ANALYZE scanned;

-- MongoDB takes the better index, though the second condition is none that an index is known to serve
CREATE FUNCTION cost_of(query text) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan;
	RETURN plan -> 0 -> 'Plan' ->> 'Total Cost';
END $$;
SELECT cost_of('SELECT sum(x) FROM scanned WHERE x < 2500 AND d IS NULL') < cost_of('SELECT sum(x) FROM scanned WHERE x < 500') AS is_less;
-- a pipeline takes longer than a find, so that few documents are aggregated here
SELECT done('SELECT sum(x), sum(y) FROM scanned WHERE x < 100') AS few, done('SELECT sum(x), sum(y) FROM scanned WHERE x < 4000') AS many;
-- an average goes to MongoDB if one index tests the conditions and has all that is read
SELECT query, done(query) FROM unnest(ARRAY[
	'SELECT avg(x) FROM scanned WHERE x < 750',
	'SELECT avg(y) FROM scanned WHERE x < 750 AND x > 5',
	'SELECT avg(_id) FROM scanned WHERE x < 750',
	'SELECT avg(x) FROM scanned WHERE x < 750 AND s > ''s3'' COLLATE "C"']) AS query;

-- work in PostgreSQL is made dear, so that aggregates go to MongoDB
BEGIN;
SET LOCAL cpu_tuple_cost = 10;
SET LOCAL cpu_operator_cost = 10;
SELECT query, done(query) FROM unnest(ARRAY[
	'SELECT * FROM scanned WHERE x < 3750',
	'SELECT * FROM scanned WHERE x < 750',
	'SELECT * FROM scanned WHERE x < 3750 AND s = ''s3''',
	'SELECT * FROM scanned WHERE x = 5 AND y < 9',
	'SELECT * FROM scanned WHERE x > 250 AND y < 9',
	'SELECT * FROM scanned WHERE x < 1750 OR x > 3250',
	'SELECT _id FROM scanned WHERE _id > 250',
	'SELECT * FROM scanned WHERE d > 125',
	'SELECT s, count(*) FROM scanned WHERE x < 3750 GROUP BY s',
	'SELECT s, count(*) FROM scanned WHERE x < 750 GROUP BY s',
	-- an index has all fields that are read, or is not known to
	'SELECT count(*) FROM scanned WHERE x < 3750',
	'SELECT y, count(*) FROM scanned WHERE x < 3750 GROUP BY y',
	'SELECT DISTINCT x FROM scanned WHERE x < 3750',
	'SELECT count(*) FROM scanned WHERE x < 3750 AND s > ''s3'' COLLATE "C"',
	-- the order of an index, or the first rows
	'SELECT x FROM scanned WHERE x < 3750 ORDER BY x',
	'SELECT x FROM scanned WHERE x < 3750 ORDER BY x LIMIT 3',
	-- nothing is known of the share
	'SELECT * FROM scanned WHERE x < (SELECT 3750)',
	'SELECT * FROM scanned WHERE x < length(current_database()) + 3750',
	'SELECT * FROM scanned WHERE (j ->> ''a'')::int < 3750'
	]) AS query;
EXPLAIN (VERBOSE, COSTS OFF) SELECT _id FROM scanned WHERE x < 3750;
EXPLAIN (VERBOSE, COSTS OFF) SELECT count(*) FROM scanned WHERE x < 3750 AND y < 9 AND _id <> 4;
EXPLAIN (VERBOSE, COSTS OFF) SELECT _id FROM scanned WHERE x < 3750 LIMIT 3;
EXPLAIN (VERBOSE, COSTS OFF) SELECT _id FROM scanned WHERE mongo_match(scanned, '{"y": 1}') AND x < 3750;
EXPLAIN (VERBOSE, COSTS OFF) DECLARE c CURSOR FOR SELECT _id FROM scanned WHERE x < 3750;
-- a plan for any value
SET LOCAL plan_cache_mode = force_generic_plan;
PREPARE below(int) AS SELECT _id FROM scanned WHERE x < $1;
EXPLAIN (VERBOSE, COSTS OFF) EXECUTE below(3750);
SET LOCAL plan_cache_mode = force_custom_plan;
EXPLAIN (VERBOSE, COSTS OFF) EXECUTE below(3750);
DEALLOCATE below;
-- what a user wants counts
SET LOCAL mongo_fdw.hint = 'x';
EXPLAIN (VERBOSE, COSTS OFF) SELECT _id FROM scanned WHERE x < 3750;
ROLLBACK;
BEGIN;
ALTER FOREIGN TABLE scanned OPTIONS (hint 'x');
EXPLAIN (VERBOSE, COSTS OFF) SELECT _id FROM scanned WHERE x < 3750;
ROLLBACK;
BEGIN;
ALTER FOREIGN TABLE scanned OPTIONS (pushdown_disable 'natural');
EXPLAIN (VERBOSE, COSTS OFF) SELECT _id FROM scanned WHERE x < 3750;
ROLLBACK;
-- of a view MongoDB lists no index
SELECT mongo_command('full_scans', 'mongo_fdw_regress', '{"create": "written_full_scans_view", "viewOn": "written_full_scans", "pipeline": []}') -> 'ok' AS ok;
CREATE FOREIGN TABLE scanned_view (_id int, x int) SERVER full_scans OPTIONS (database 'mongo_fdw_regress', collection 'written_full_scans_view');
ANALYZE scanned_view;
EXPLAIN (VERBOSE, COSTS OFF) SELECT _id FROM scanned_view WHERE x < 3750;

-- Conditions: MongoDB tests each value of a list of numerics, and each expression.
CREATE FUNCTION many(template text, separator text, number int) RETURNS text LANGUAGE sql AS $$
	SELECT string_agg(replace(template, '@', i::text), separator) FROM generate_series(2, number) AS i
$$;
SELECT condition, part, number, done('SELECT _id FROM scanned WHERE ' || format(condition, many(part, separator, number))) AS rows,
	done('SELECT count(*) FROM scanned WHERE ' || format(condition, many(part, separator, number))) AS count
FROM (VALUES ('n IN (%s)', '@', ', '), ('n NOT IN (%s)', '@', ', '), ('d IN (%s)', '@', ', '), ('x IN (%s)', '@', ', '), ('x NOT IN (%s)', '@', ', '),
	('%s', 'x % @ <> 1', ' AND '), ('%s', 'y BETWEEN @ AND @ + 1', ' OR '), ('%s', 's LIKE ''%@_''', ' OR '), ('greatest(%s) = 100', 'x + @', ', '),
	('CASE WHEN y IN (%s) THEN x > 5 ELSE x < 5 END', '@', ', '), ('j ?| ''{%s}''', 'k@', ','), ('s = ''s1'' AND n NOT IN (%s)', '@', ', ')) AS c(condition, part, separator),
	(VALUES (3), (300)) AS n(number);

-- others than those that cost much are sent
EXPLAIN (VERBOSE, COSTS OFF) SELECT _id FROM scanned WHERE y = 3 AND x % 2 <> 1 AND x % 3 <> 1 AND x % 5 <> 1 AND x % 7 <> 1 AND x % 11 <> 1 AND x % 13 <> 1;
-- a list of unknown length, too
SET plan_cache_mode = force_generic_plan;
PREPARE listed(numeric[]) AS SELECT count(*) FROM scanned WHERE n <> ALL ($1);
EXPLAIN (VERBOSE, COSTS OFF) EXECUTE listed('{1, 2}');
EXECUTE listed('{1, 2}');
EXECUTE listed(NULL);
DEALLOCATE listed;
RESET plan_cache_mode;
-- but all where rows are changed, or policies hide rows
SELECT plan ~ 'Foreign Delete' AS one_command FROM done_by('DELETE FROM scanned WHERE ' || many('x % @ <> 1', ' AND ', 300)) AS plan;
SELECT plan !~ 'Filter:' AS all_sent FROM done_by('SELECT _id FROM fenced WHERE ' || many('y BETWEEN @ AND @ + 1', ' OR ', 300)) AS plan;

-- Both bounds of a range come from the other table's row: a find for each row costs less than to
-- compare all pairs.
CREATE FUNCTION plan_of_join(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		RETURN NEXT regexp_replace(line, '(Join (Cond|Filter)):.*', '\1');
	END LOOP;
END $$;
SET cpu_operator_cost = 0.005;
SELECT plan_of_join('SELECT * FROM scanned AS t JOIN scanned AS u ON u.x BETWEEN t.x AND t.x + 5 WHERE t._id < 400');
SELECT plan_of_join('SELECT * FROM scanned AS t JOIN scanned AS u ON t.x > u.x AND t.x - 5 <= u.x WHERE t._id < 400');
SELECT done('SELECT t._id, u._id FROM scanned AS t JOIN scanned AS u ON u.x BETWEEN t.x AND t.x + 5 WHERE t._id < 400');
SELECT done('SELECT t._id, u._id FROM scanned AS t JOIN scanned AS u ON t.x > u.x AND t.x - 5 <= u.x WHERE t._id < 400');
RESET cpu_operator_cost;

-- Keys of most documents are not looked up by an index, nor is an index walked to sort all of them.
SELECT plan_of_join('SELECT count(t.s) FROM generate_series(1, 5000) AS g JOIN scanned AS t ON t.x = g');
SELECT plan_of_join('SELECT count(t.s) FROM generate_series(1, 50) AS g JOIN scanned AS t ON t.x = g');
SELECT plan_of_join('SELECT x, s FROM scanned ORDER BY x NULLS FIRST');

-- A LIMIT above a condition that PostgreSQL tests fetches few documents more than it needs.
CREATE FUNCTION returned() RETURNS int LANGUAGE sql AS $$
	SELECT (mongo_command('full_scans', 'admin', '{"serverStatus": 1}') #>> '{metrics,document,returned}')::int
$$;
SELECT returned() AS before \gset
SELECT count(*) FROM (SELECT FROM scanned WHERE _id < 10 OR random() < 2 LIMIT 150) AS found;
SELECT returned() - :before BETWEEN 150 AND 3500 AS few;

SET client_min_messages = warning;
DROP SERVER full_scans CASCADE;
DROP FUNCTION returned;
DROP FUNCTION done, done_by, many, plan_of_join;
