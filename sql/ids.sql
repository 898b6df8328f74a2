--
-- An _id that is NULL, as one document of a collection may have it, and those of views; and
-- an _id that several documents have, as in views and time series.  Each answer is that of
-- local tables with the same rows.
--
\getenv mongo_host MONGO_HOST
\getenv mongo_port MONGO_PORT
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mongo_fdw;
-- lookups cost nothing and commands much, so that lookups are made
CREATE SERVER ids FOREIGN DATA WRAPPER mongo_fdw
	OPTIONS (round_trip_time '0.1ms', bandwidth '1e9', address :'mongo_host', port :'mongo_port', fdw_startup_cost '1000000', fdw_lookup_cost '0');
CREATE USER MAPPING FOR CURRENT_USER SERVER ids;
SET jit = off;
\pset format unaligned
\pset tuples_only on

CREATE FUNCTION ids_command(command text) RETURNS text LANGUAGE sql AS $$ SELECT mongo_command('ids', 'mongo_fdw_regress', command::json) ->> 'ok' $$;
SELECT ids_command('{"insert": "written_ids", "documents": [' || string_agg(format('{"_id": %s, "x": %s, "p": [%s], "at": {"$date": {"$numberLong": "%s"}}}',
	CASE i WHEN 7 THEN 'null' ELSE i::text END, i % 5, array_to_string(ARRAY(SELECT format('{"n": %s}', n) FROM generate_series(1, i % 4) AS n), ', '), i), ', ') || ']}')
	FROM generate_series(1, 20) AS i;
SELECT ids_command('{"create": "written_ids_twice", "viewOn": "written_ids", "pipeline": [{"$unwind": "$p"}, {"$set": {"n": "$p.n", "p": ["$p", "$p"]}}]}');
SELECT ids_command('{"create": "written_ids_groups", "viewOn": "written_ids", "pipeline": [{"$group": {"_id": {"$cond": [{"$lt": ["$x", 3]}, "$x", null]}, "x": {"$sum": 1}}}]}');
SELECT ids_command('{"create": "written_ids_series", "timeseries": {"timeField": "at"}}');
SELECT ids_command('{"insert": "written_ids_series", "documents": [' || string_agg(format('{"_id": %s, "x": %s, "at": {"$date": {"$numberLong": "%s"}}}', i % 10, i, i), ', ') || ']}')
	FROM generate_series(1, 20) AS i;

CREATE SCHEMA remote;
CREATE SCHEMA here;
CREATE FOREIGN TABLE remote.plain (_id int, x int) SERVER ids OPTIONS (database 'mongo_fdw_regress', collection 'written_ids');
CREATE FOREIGN TABLE remote.twice (_id int, x int, n int) SERVER ids OPTIONS (database 'mongo_fdw_regress', collection 'written_ids_twice');
CREATE FOREIGN TABLE remote.groups (_id int, x int) SERVER ids OPTIONS (database 'mongo_fdw_regress', collection 'written_ids_groups');
CREATE FOREIGN TABLE remote.series (_id int, x int) SERVER ids OPTIONS (database 'mongo_fdw_regress', collection 'written_ids_series');
CREATE FOREIGN TABLE remote.elements (_id int, x int, n int OPTIONS (path 'p.n'))
	SERVER ids OPTIONS (database 'mongo_fdw_regress', collection 'written_ids', unwind 'p');
CREATE FOREIGN TABLE remote.elements_twice (_id int, x int, n int OPTIONS (path 'p.n'))
	SERVER ids OPTIONS (database 'mongo_fdw_regress', collection 'written_ids_twice', unwind 'p');
SET mongo_fdw.enable_pushdown = off;
CREATE TABLE here.plain AS TABLE remote.plain;
CREATE TABLE here.twice AS TABLE remote.twice;
CREATE TABLE here.groups AS TABLE remote.groups;
CREATE TABLE here.series AS TABLE remote.series;
CREATE TABLE here.elements AS TABLE remote.elements;
CREATE TABLE here.elements_twice AS TABLE remote.elements_twice;
RESET mongo_fdw.enable_pushdown;

-- How many commands there are, and what they have; the rows, in their order if there is one.
-- Nodes are sorted, and those of local joins left out, as versions of PostgreSQL join in other ways.
CREATE FUNCTION try_ids(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan text;
	answers text[];
	place text;
BEGIN
	SET LOCAL search_path = remote, public;
	EXECUTE 'EXPLAIN (VERBOSE, FORMAT json) ' || query INTO plan;
	FOREACH place IN ARRAY ARRAY['remote', 'here'] LOOP
		PERFORM set_config('search_path', place || ', public', true);
		EXECUTE 'SELECT array_append($1, coalesce(string_agg(q::text, '' ''' || CASE WHEN query ~ 'ORDER BY' THEN '' ELSE ' ORDER BY q::text' END || '), ''none'')) FROM (' || query || ') AS q' INTO answers USING answers;
	END LOOP;
	RETURN (SELECT coalesce(string_agg(m[1], ' ' ORDER BY m[1]) FILTER (WHERE (i = 1 OR m[1] <> 'Aggregate') AND (query !~ ' AS b' OR m[1] !~ '^(Materialize|Memoize|Merge Join|Nested Loop|Sort|Unique)$')), '')
			FROM regexp_matches(plan, '"Node Type": "([^"]*)"', 'g') WITH ORDINALITY AS m(m, i)) ||
		CASE WHEN plan ~ 'lookup' THEN ', $lookup' ELSE '' END || CASE WHEN plan ~ 'Unwound Here|includeArrayIndex|unwind.*path.*"\$p' AND plan !~ 'lookup' THEN ', unwound' ELSE '' END ||
		CASE WHEN answers[1] = answers[2] THEN ', the same ' || length(answers[1]) ELSE E': BUT\n' || answers[1] || E'\nIN PLACE OF\n' || answers[2] END;
END $$;

-- orders
CREATE FUNCTION try_orders() RETURNS SETOF text LANGUAGE sql AS $$
	SELECT t || d || ': ' || try_ids(format(q, t, d)) FROM unnest(ARRAY['plain', 'groups']) WITH ORDINALITY AS t(t, i), unnest(ARRAY['', ' DESC', ' NULLS FIRST', ' DESC NULLS LAST']) WITH ORDINALITY AS d(d, j),
	unnest(ARRAY['SELECT _id, x FROM %I ORDER BY _id%s LIMIT 4', 'SELECT _id FROM %I ORDER BY _id%s', 'SELECT _id, x FROM %I WHERE _id > 1 ORDER BY _id%s LIMIT 3',
		'SELECT _id, x FROM %I ORDER BY x + 1, _id%s', 'SELECT _id, rank() OVER (ORDER BY _id%2$s) FROM %1$I', 'SELECT _id, x FROM (SELECT * FROM %1$I UNION ALL SELECT * FROM %1$I) AS u ORDER BY _id%2$s LIMIT 4'])
		WITH ORDINALITY AS q(q, k) ORDER BY i, j, k;
$$;
SELECT try_orders();

-- joins, by $lookup, and merged in the order of indexes
CREATE FUNCTION try_joins() RETURNS SETOF text LANGUAGE sql AS $$
	SELECT inner_table || ': ' || try_ids(format(q, inner_table)) FROM unnest(ARRAY['plain', 'twice', 'groups', 'series']) WITH ORDINALITY AS t(inner_table, i),
	unnest(ARRAY['SELECT count(*), sum(a.x), sum(b.x) FROM plain AS a JOIN %I AS b ON a.x = b._id', 'SELECT a._id, b._id FROM plain AS a LEFT JOIN %I AS b ON a.x = b._id',
		'SELECT a._id, b.x, c._id FROM plain AS a JOIN %I AS b ON a.x = b._id JOIN plain AS c ON c._id = b.x', 'SELECT a._id FROM plain AS a WHERE EXISTS (SELECT FROM %I AS b WHERE b._id = a.x)',
		'SELECT a._id FROM plain AS a WHERE NOT EXISTS (SELECT FROM %I AS b WHERE b._id = a._id)', 'SELECT count(*), sum(a.x), sum(b.x) FROM plain AS a JOIN %I AS b USING (_id)',
		'SELECT a._id, b.x FROM generate_series(1, 3) AS a(_id) JOIN %I AS b USING (_id)'])
		WITH ORDINALITY AS q(q, k) ORDER BY i, k;
$$;
CREATE FUNCTION try_elements() RETURNS SETOF text LANGUAGE sql AS $$
	SELECT try_ids(q) FROM unnest(ARRAY['SELECT e._id, e.n, d.x FROM elements AS e JOIN plain AS d USING (_id)', 'SELECT count(*), sum(e.n), sum(d.x) FROM elements_twice AS e JOIN twice AS d USING (_id)',
		'SELECT e._id, e.n FROM elements AS e JOIN plain AS d USING (_id) WHERE d.x = 3']) AS q;
$$;
SELECT try_joins();
SELECT try_elements();
SET enable_hashjoin = off;
SET enable_nestloop = off;
SET mongo_fdw.enable_batched_joins = off;
SET mongo_fdw.enable_join_pushdown = off;
SET enable_sort = off;
SELECT try_joins();
-- once more, now that ANALYZE knows which have an index that makes _id unique
ANALYZE remote.plain, remote.twice, remote.groups, remote.series, remote.elements, remote.elements_twice;
SELECT try_joins();
RESET enable_hashjoin;
RESET enable_nestloop;
RESET enable_sort;
RESET mongo_fdw.enable_batched_joins;
RESET mongo_fdw.enable_join_pushdown;
SELECT try_joins();
SELECT try_elements();
SELECT try_orders();

-- One find by one _id.  An order is one find by the index, and a point query for NULL before or after it.
ALTER SERVER ids OPTIONS (DROP fdw_startup_cost, DROP fdw_lookup_cost);
SET search_path = remote, public;
EXPLAIN (VERBOSE, COSTS OFF) SELECT x FROM plain WHERE _id = 3;
EXPLAIN (VERBOSE, COSTS OFF) SELECT x FROM plain ORDER BY _id LIMIT 3;
EXPLAIN (VERBOSE, COSTS OFF) SELECT x FROM plain ORDER BY _id DESC LIMIT 3;
EXPLAIN (VERBOSE, COSTS OFF) SELECT x FROM plain WHERE _id > 3 ORDER BY _id DESC LIMIT 3;
ALTER FOREIGN TABLE plain ALTER _id SET NOT NULL;
EXPLAIN (VERBOSE, COSTS OFF) SELECT x FROM plain ORDER BY _id LIMIT 3;
EXPLAIN (VERBOSE, COSTS OFF) SELECT _id, x FROM plain ORDER BY x + 1, _id;
