--
-- Columns that read another value than is stored: a varchar(n) cuts trailing blanks, a
-- numeric(p,s) and a timestamptz(n) round, and so do arrays of these and domains over them.
-- Each answer is that of local tables with the same rows.
--
\getenv mongo_host MONGO_HOST
\getenv mongo_port MONGO_PORT
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mongo_fdw;
CREATE SERVER limited_columns FOREIGN DATA WRAPPER mongo_fdw
	OPTIONS (address :'mongo_host', port :'mongo_port', fdw_startup_cost '1000', fdw_lookup_cost '0', fdw_tuple_cost '10');
CREATE USER MAPPING FOR CURRENT_USER SERVER limited_columns;
SET jit = off;
SET timezone = 'UTC';
\pset format unaligned
\pset tuples_only on

SELECT mongo_command('limited_columns', 'mongo_fdw_regress', ('{"insert": "written_limited", "documents": [' || string_agg(format(
	'{"_id": %s, "v": %s, "h": %s, "n": %s, "f": %s, "t": %s, "a": [%2$s, "x"], "na": [%4$s], "ta": [%6$s]}', i,
	(ARRAY['"abc"', '"abcde"', '"abcde "', '"abcde   "', '"abcd "', '"abcd"', '"abcdé"', '"abcdé  "', '""', '"     "', '"      "', '"ABCDE  "', '"zz"', 'null', '"  abc "', '"ab\ncd"', '"ab\ncd "', '"$.*ab "'])[i],
	(ARRAY['{"$oid": "0123456789abcdef01234567"}', '"0123456789abcdef01234567"', '"0123456789abcdef01234567  "', '"short"', '{"$oid": "fffffffffffffffffffffff0"}', '"~"'])[1 + i % 6],
	(ARRAY['1.005', '{"$numberDecimal": "1.005"}', '{"$numberDecimal": "1.0049"}', '1', '1.01', '{"$numberDecimal": "-1.005"}', '2.5', 'null'])[1 + i % 8],
	(ARRAY['1.005', '1', '1.5', '{"$numberLong": "2"}', 'null'])[1 + i % 5],
	format('{"$date": {"$numberLong": "%s"}}', (ARRAY[1499, 1500, 1501, 1999, 2000, 2004, 2005])[1 + i % 7])), ', ') || ']}')::json) ->> 'n'
	FROM generate_series(1, 18) AS i;
SELECT mongo_command('limited_columns', 'mongo_fdw_regress', '{"createIndexes": "written_limited", "indexes": [{"key": {"v": 1}, "name": "v"}, {"key": {"a": 1}, "name": "a"}]}') ->> 'ok';

CREATE DOMAIN short_text AS varchar(5);
CREATE DOMAIN two_decimals AS numeric(5, 2);
CREATE SCHEMA limited_remote;
CREATE SCHEMA limited_local;
CREATE FOREIGN TABLE limited_remote.t (_id int, v varchar(5) OPTIONS (indexed 'true'), d short_text OPTIONS (path 'v'), s varchar(5) OPTIONS (path 'v', bson_type 'string'),
	c char(5) OPTIONS (path 'v'), h varchar(24), n numeric(5, 2), dn two_decimals OPTIONS (path 'n'), f numeric(4, 1), t timestamptz(0), ts timestamp(2) OPTIONS (path 't'),
	a varchar(5)[] OPTIONS (indexed 'true'), na numeric(5, 2)[], ta timestamptz(0)[], j jsonb OPTIONS (path 'a'))
	SERVER limited_columns OPTIONS (database 'mongo_fdw_regress', collection 'written_limited');
SET mongo_fdw.enable_pushdown = off;
CREATE TABLE limited_local.t AS TABLE limited_remote.t;
RESET mongo_fdw.enable_pushdown;

-- '+' where no PostgreSQL condition is left, '-' where one is; the rows where they are others.
CREATE FUNCTION try_limited(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan text;
	answers text[];
	place text;
BEGIN
	SET LOCAL search_path = limited_remote, public;
	EXECUTE 'EXPLAIN (VERBOSE, FORMAT json) ' || query INTO plan;
	FOREACH place IN ARRAY ARRAY['limited_remote', 'limited_local'] LOOP
		PERFORM set_config('search_path', place || ', public', true);
		EXECUTE 'SELECT array_append($1, coalesce(string_agg(q::text, '' ''' || CASE WHEN query ~ 'ORDER BY' THEN '' ELSE ' ORDER BY q::text' END || '), ''none'')) FROM (' || query || ') AS q' INTO answers USING answers;
	END LOOP;
	RETURN CASE WHEN plan ~ '"(Filter|Join Filter|Hash Cond|Merge Cond|Sort Key|Group Key|Strategy)": ' THEN '-' ELSE '+' END ||
		CASE WHEN answers[1] = answers[2] THEN '' ELSE E'! ' || query || E':\n' || answers[1] || E'\nIN PLACE OF\n' || answers[2] || E'\n' END;
END $$;
CREATE FUNCTION try_conditions(columns text[], VARIADIC conditions text[]) RETURNS SETOF text LANGUAGE sql AS $$
	SELECT c || ': ' || (SELECT string_agg(try_limited(format('SELECT _id FROM t WHERE ' || w, c)) || try_limited(format('SELECT count(*) FROM t WHERE NOT (' || w || ')', c)), ' ' ORDER BY k)
		FROM unnest(conditions) WITH ORDINALITY AS u(w, k)) FROM unnest(columns) WITH ORDINALITY AS x(c, i) ORDER BY i;
$$;

SELECT try_conditions(ARRAY['v', 'd', 's', 'c', 'v || ''''', 'upper(v)'], '%s = ''abcde''', '%s = ''abcd''', '%s = ''abcd ''', '%s = ''abcde ''', '%s = ''abcdé''', '%s = ''     ''', '%s = ''''',
	'%s <> ''abcde''', '%s <> ''abc''', '%s <> ''abcde  ''', '%s IN (''abcde'', ''abc'')', '%s IN (''abc'', ''zz'')', '%s NOT IN (''abcde'', ''     '')', '%s = ANY (ARRAY[''abcde '', ''zz''])',
	'%s IS DISTINCT FROM ''abcde''', 'length(%s) = 5', 'length(%s) < 5', '%s = ''ab' || chr(10) || 'cd''', 'coalesce(%s, ''abcde'') = ''abcde''', 'CASE WHEN _id > 3 THEN %s ELSE ''abcde'' END = ''abcde''');
SELECT try_conditions(ARRAY['v', 'd', 's', 'c::varchar'], '%s COLLATE "C" < ''abcde''', '%s COLLATE "C" <= ''abcde''', '%s COLLATE "C" > ''abcde''', '%s COLLATE "C" >= ''abcde''', '%s COLLATE "C" < ''abcde ''',
	'%s COLLATE "C" <= ''abcde ''', '%s COLLATE "C" > ''abcde ''', '%s COLLATE "C" >= ''abcde ''', '%s COLLATE "C" > ''abcd''', '%s COLLATE "C" < ''abcdé   ''', '%s COLLATE "C" BETWEEN ''abcd'' AND ''abcde''');
SELECT try_conditions(ARRAY['v', 'd', 's', 'c', 'v::text'], '%s LIKE ''abcde''', '%s LIKE ''abcde%%''', '%s LIKE ''abc%%''', '%s LIKE ''%%e''', '%s LIKE ''abcd_''', '%s LIKE ''abcde_''', '%s LIKE ''abcde %%''', '%s LIKE ''%%b%%''',
	'%s LIKE ''%% ''', '%s LIKE ''_____''', '%s NOT LIKE ''abcde''', '%s NOT LIKE ''abcde%%''', '%s ~ ''^abc.e$''', '%s ~ ''e$''', '%s !~ ''e$''', '%s ~ '' $''', '%s ~* ''ABC''', '%s LIKE ''$.*a%%''');
SELECT try_conditions(ARRAY['v', 'd', 's'], 'starts_with(%s, ''abcde'')', 'starts_with(%s, ''abcde '')', 'starts_with(%s, ''ab'')');
SELECT try_conditions(ARRAY['h'], '%s = ''0123456789abcdef01234567''', '%s <> ''0123456789abcdef01234567''', '%s = ''short''', '%s IN (''short'', ''0123456789abcdef01234567'')', '%s COLLATE "C" <= ''0123456789abcdef01234567''',
	'%s COLLATE "C" > ''0123456789abcdef01234567''', '%s COLLATE "C" >= ''0123456789abcdef01234567 ''', '%s LIKE ''0123456789abcdef01234567''');
SELECT try_conditions(ARRAY['n', 'dn', 'f'], '%s = 1', '%s = 1.01', '%s = 1.00', '%s <> 1.01', '%s > 1', '%s >= 1.01', '%s < 1.005', '%s IN (1.01, -1.01)', '%s NOT IN (1, 1.0)', '%s + 1 = 2.01', 'abs(%s) = 1.01', 'coalesce(%s, 1) = 1');
SELECT try_conditions(ARRAY['t', 'ts'], '%s = ''1970-01-01 00:00:02''', '%s <> ''1970-01-01 00:00:02''', '%s < ''1970-01-01 00:00:02''', '%s <= ''1970-01-01 00:00:01.999''', '%s > ''1970-01-01 00:00:01''', '%s IN (''1970-01-01 00:00:02'', ''1970-01-01 00:00:01.5'')',
	'date_trunc(''second'', %s) = ''1970-01-01 00:00:02''', 'extract(second FROM %s) = 2', 'coalesce(%s, ''1970-01-01'') > ''1970-01-01 00:00:01.999''');
SELECT try_conditions(ARRAY['a'], '''abcde'' = ANY (%s)', '''abcde '' = ANY (%s)', '''abc'' = ANY (%s)', '%s @> ''{abcde,x}''', '%s && ''{abcde,zz}''', '%s[1] = ''abcde''', '%s[1] = ''abc''', '%s[1] IN (''abcde'', ''abc'')', 'length(%s[1]) = 5',
	'%s = ''{abcde,x}''', '%s <@ ''{abcde,x}''', '''abcde'' <> ALL (%s)');
SELECT try_conditions(ARRAY['na'], '1.01 = ANY (%s)', '1.005 = ANY (%s)', '%s @> ''{1.01}''', '%s[1] = 1.01', '%s[1] > 1.005');
SELECT try_conditions(ARRAY['ta'], '''1970-01-01 00:00:02'' = ANY (%s)', '%s[1] = ''1970-01-01 00:00:02''', '%s @> ARRAY[''1970-01-01 00:00:02''::timestamptz]');
SELECT try_conditions(ARRAY['(j->>0)::varchar(5)', '(j->>0)::text', '(j->>0)::char(5)'], '%s = ''abcde''', '%s = ''abcde ''', '%s <> ''abcde''', '%s IN (''abcde'', ''abc'')', '%s LIKE ''abcde''', 'length(%s) = 5');

-- what is grouped, sorted and joined, mostly by MongoDB
SET cpu_tuple_cost = 1000;
SELECT c || ': ' || string_agg(try_limited(format(q, c)), ' ' ORDER BY k) FROM unnest(ARRAY['v', 'd', 's', 'c', 'h', 'n', 'dn', 't', 'ts']) WITH ORDINALITY AS x(c, i), unnest(ARRAY['SELECT DISTINCT %s FROM t', 'SELECT %1$s, count(*) FROM t GROUP BY %1$s', 'SELECT count(DISTINCT %s) FROM t',
	'SELECT a._id, b._id AS b FROM t AS a JOIN t AS b ON a.%1$s = b.%1$s', 'SELECT _id FROM t AS a WHERE EXISTS (SELECT FROM t AS b WHERE b.%1$s = a.%1$s AND b._id > a._id)', 'SELECT _id, (SELECT count(*) FROM t AS b WHERE b.%1$s = a.%1$s) FROM t AS a'])
	WITH ORDINALITY AS q(q, k) GROUP BY c, i ORDER BY i;
SELECT q || ': ' || try_limited(q) FROM unnest(ARRAY['SELECT min(v COLLATE "C"), max(v COLLATE "C") FROM t', 'SELECT _id FROM t ORDER BY v COLLATE "C", _id LIMIT 5', 'SELECT _id FROM t ORDER BY v COLLATE "C" DESC NULLS LAST, _id LIMIT 5', 'SELECT sum(n), min(n), max(n), avg(n) FROM t',
	'SELECT _id FROM t ORDER BY n, _id', 'SELECT _id FROM t ORDER BY t DESC, _id', 'SELECT max(t), min(ts) FROM t', 'SELECT sum(length(v)) FROM t', 'SELECT lower(v), count(*) FROM t GROUP BY 1', 'SELECT count(*) FROM t GROUP BY v HAVING v <> ''abcde''',
	'SELECT a._id, k FROM (VALUES (''abcde''), (''abcde ''), (''abc'')) AS k(k) JOIN t AS a ON a.v = k', 'SELECT _id FROM t WHERE v IN (SELECT v FROM t WHERE _id < 4)']) AS q;
RESET cpu_tuple_cost;
PREPARE by_text(text) AS SELECT _id FROM limited_remote.t WHERE v = $1 ORDER BY _id;
PREPARE by_texts(text[]) AS SELECT _id FROM limited_remote.t WHERE v = ANY ($1) ORDER BY _id;
SET plan_cache_mode = force_generic_plan;
EXECUTE by_text('abcde');
EXECUTE by_text('abcde ');
EXECUTE by_text('abc');
EXECUTE by_texts('{abcde,abc}');
EXECUTE by_texts('{abc,zz}');
RESET plan_cache_mode;

EXPLAIN (VERBOSE, COSTS OFF) SELECT _id FROM limited_remote.t WHERE v = 'abc';
EXPLAIN (VERBOSE, COSTS OFF) SELECT count(*) FROM limited_remote.t WHERE v = 'abcde';
EXPLAIN (VERBOSE, COSTS OFF) SELECT _id FROM limited_remote.t WHERE v IN ('abcde', 'abc') AND v LIKE 'abc%';

-- what is written
UPDATE limited_remote.t SET f = 7 WHERE v = 'abcde' RETURNING _id;
UPDATE limited_local.t SET f = 7 WHERE v = 'abcde' RETURNING _id;
UPDATE limited_remote.t SET f = 8 WHERE v LIKE 'abcd_' AND n < 1.01;
UPDATE limited_local.t SET f = 8 WHERE v LIKE 'abcd_' AND n < 1.01;
DELETE FROM limited_remote.t WHERE v <> 'abcde' AND h = '0123456789abcdef01234567';
DELETE FROM limited_local.t WHERE v <> 'abcde' AND h = '0123456789abcdef01234567';
SELECT count(*), sum(f) FROM limited_remote.t;
TABLE limited_remote.t EXCEPT ALL TABLE limited_local.t;
