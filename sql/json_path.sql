--
-- What is inside jsonb: jsonpath, dates and the text within wrappers.  An index finds it, and the
-- answers are those of a local table.
--
\getenv mongo_host MONGO_HOST
\getenv mongo_port MONGO_PORT
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mongo_fdw;
CREATE SERVER json_path FOREIGN DATA WRAPPER mongo_fdw
	OPTIONS (address :'mongo_host', port :'mongo_port');
CREATE USER MAPPING FOR CURRENT_USER SERVER json_path;
CREATE FOREIGN TABLE p_remote (_id int, items jsonb, j jsonb)
	SERVER json_path OPTIONS (database 'mongo_fdw_regress', collection 'written_json_path');
RESET client_min_messages;
SET TimeZone = 'Europe/Berlin';
DELETE FROM p_remote;
INSERT INTO p_remote
SELECT n, jsonb_build_array(jsonb_build_object('sku', 's' || n % 100, 'qty', n % 500 + 0.5), jsonb_build_object('sku', 's' || n % 10, 'qty', 1)),
	jsonb_build_object('n', n, 's', 'name ' || n, 'b', n % 100 = 0,
		'at', jsonb_build_object('$date', to_char(timestamp '2024-01-01' + n * interval '1 hour', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')),
		'day', to_char(date '2020-01-01' + n, 'YYYY-MM-DD'),
		'ref', jsonb_build_object('$oid', lpad(n::text, 24, '0')),
		'price', jsonb_build_object('$numberDecimal', (n / 100.0)::numeric(10,2)::text))
FROM generate_series(1, 1000) n;
SELECT mongo_command('json_path', 'mongo_fdw_regress', '{"createIndexes": "written_json_path", "indexes": [{"key": {"items.sku": 1}, "name": "sku"}, {"key": {"items.qty": 1}, "name": "qty"}, {"key": {"j.n": 1}, "name": "n"}, {"key": {"j.s": 1}, "name": "s"}, {"key": {"j.b": 1}, "name": "b"}, {"key": {"j.at": 1}, "name": "at"}, {"key": {"j.day": 1}, "name": "day"}, {"key": {"j.ref": 1}, "name": "ref"}, {"key": {"j.price": 1}, "name": "price"}]}') ->> 'ok' AS ok;
-- what a condition sends, and what MongoDB looks at for it
CREATE FUNCTION p_seen(condition text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	SET LOCAL mongo_fdw.explain_remote = on;
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, BUFFERS OFF, SUMMARY OFF) SELECT _id FROM p_remote WHERE ' || condition LOOP
		IF line ~ 'Foreign Scan on' THEN
			RETURN NEXT 'rows: ' || substring(line FROM 'rows=(\d+)');
		ELSIF line ~ 'Remote Command' THEN
			RETURN NEXT regexp_replace(line, '^.*?"filter" : |, "(projection|collation|batchSize)".*$', '', 'g');
		ELSIF line ~ 'COLLSCAN|IXSCAN|Documents Examined' THEN
			RETURN NEXT substring(line FROM 'COLLSCAN|IXSCAN using \w+|Remote.*');
		END IF;
	END LOOP;
END $$;
-- its answer, if that is the local table's
CREATE FUNCTION p_same(condition text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	found text;
	wanted text;
BEGIN
	EXECUTE 'SELECT string_agg(_id::text, '' '' ORDER BY _id) FROM p_remote WHERE ' || condition INTO found;
	EXECUTE 'SELECT string_agg(_id::text, '' '' ORDER BY _id) FROM p_local WHERE ' || condition INTO wanted;
	RETURN CASE WHEN found IS NOT DISTINCT FROM wanted THEN coalesce(found, 'none')
		ELSE 'WRONG: ' || coalesce(found, 'none') || ', not ' || coalesce(wanted, 'none') END;
END $$;

\pset format unaligned
\pset tuples_only on
-- keys
SELECT p_seen($$j @? '$.n ? (@ == 500)'$$);
SELECT p_seen($$j @@ '$.n == 500'$$);
SELECT p_seen($$j @@ 'strict 500 == $.n'$$);
SELECT p_seen($$j @@ '$.n > 999'$$);
SELECT p_seen($$j @@ '$.n >= 500 && $.n < 500.1'$$);
SELECT p_seen($$j @@ '$.s == "name 500"'$$);
SELECT p_seen($$j @@ '$.s > "name 998"'$$);
SELECT p_seen($$j @@ '$.s starts with "name 99"'$$);
SELECT p_seen($$j @@ '$.s == "name 5" || $.s == "name 6"'$$);
SELECT p_seen($$j @@ '$.b == true && $.n < 300'$$);
SELECT p_seen($$j @@ '$.b'$$);
SELECT p_seen($$j @? '$.missing'$$);
-- elements: those of arrays in arrays are among the documents without the key
SELECT p_seen($$items @@ '$.sku == "s50"'$$);
SELECT p_seen($$items @? '$[*] ? (@.sku == "s50")'$$);
SELECT p_seen($$items @? '$[*] ? (@.sku == "s50" && @.qty > 450)'$$);
SELECT p_seen($$items @@ 'exists($[*].sku ? (@ starts with "s50"))'$$);
-- nothing is known, or not enough
SELECT p_seen($$j @? '$.n == 500' AND _id < 5$$);
SELECT p_seen($$j @@ '!($.n == 500)' AND _id < 5$$);
SELECT p_seen($$j @@ '$.n == 3 || $.n + 1 == 3' AND _id < 5$$);
SELECT p_seen($$j @? '$.* ? (@ == 3)' AND _id < 5$$);
SELECT p_seen($$NOT j @@ '$.n <= 3' AND _id < 5$$);
-- dates inside, an ObjectId, a Decimal128
SELECT p_seen($$(j -> 'at' ->> '$date')::timestamptz >= '2024-02-11 14:00+00'$$);
SELECT p_seen($$(j #>> '{at,$date}')::timestamp BETWEEN '2024-02-01' AND '2024-02-01 02:00'$$);
SELECT p_seen($$(j -> 'at' ->> '$date')::timestamptz IN ('2024-02-11', '2024-02-10')$$);
SELECT p_seen($$j -> 'ref' ->> '$oid' = '000000000000000000000500'$$);
SELECT p_seen($$j #>> '{ref,$oid}' IN ('000000000000000000000500', 'x')$$);
SELECT p_seen($$(j -> 'price' ->> '$numberDecimal')::numeric = 5.01$$);
SELECT p_seen($$(j -> 'price' ->> '$numberDecimal')::float8 > 9.99$$);
-- dates that are Strings: keys of the index tell most
SELECT p_seen($$(j ->> 'day')::date >= '2022-09-25'$$);
SELECT p_seen($$(j ->> 'day')::timestamptz = '2020-01-03'$$);
SELECT p_seen($$(j ->> 'day')::date < '2020-01-03'$$);
SELECT p_seen($$(j ->> 'day')::date IN ('2020-01-03', '2020-01-04', NULL)$$);
-- numbers: two bounds are one range
SELECT p_seen($$(j ->> 'n')::float8 BETWEEN 500 AND 501$$);
-- two bounds leave arrays and Symbols out
SELECT p_seen($$j ->> 's' COLLATE "C" BETWEEN 'name 500' AND 'name 501'$$);
SELECT p_seen($$j ->> 's' COLLATE "C" > 'name 500' AND 'name 501' >= (j ->> 's' COLLATE "C")$$);
-- an upper bound alone does, if it is less than '['; numbers are below letters
SELECT p_seen($$j ->> 'day' COLLATE "C" < '2020-01-03'$$);
SELECT p_seen($$j #>> '{s}' COLLATE "C" <= 'N'$$);
SELECT p_seen($$j ->> 's' COLLATE "C" <= 'name 1'$$);
-- both bounds are served where each has other types beside Strings, and are no constants
SELECT p_seen($$j ->> 'day' COLLATE "C" >= '2022-09-25' AND j ->> 'day' COLLATE "C" < '2022-09-27'$$);
SELECT p_seen($$j ->> 'day' COLLATE "C" >= (SELECT '2022-09-25') AND (SELECT '2022-09-27') > (j ->> 'day' COLLATE "C")$$);
SELECT p_seen($$j ->> 'day' COLLATE "C" BETWEEN '2022-09-25' AND NULL$$);
SELECT p_seen($$(j ->> 'day')::date BETWEEN '2021-09-25' AND '2021-09-26'$$);

-- only what is read of a column comes, if that is known
CREATE FUNCTION p_fetched(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (VERBOSE, COSTS OFF) ' || query LOOP
		IF line ~ 'Remote Command' THEN
			RETURN NEXT substring(line FROM '"projection" : ({[^}]*})');
		END IF;
	END LOOP;
END $$;
SELECT p_fetched($$SELECT j ->> 's', count(*) FROM p_remote WHERE (j ->> 'n')::int > 5 GROUP BY 1 HAVING max(j #>> '{b}') > 'a' ORDER BY max(j #>> '{at}')$$);
SELECT p_fetched($$SELECT (j -> 'at' ->> '$date')::timestamptz, items #>> '{0,sku}', j -> 'a' -> 1 FROM p_remote$$);
SELECT p_fetched($$SELECT j ->> 's', j -> 's' -> 'x', row_number() OVER (ORDER BY j ->> 'b') FROM p_remote$$);
SELECT p_fetched($$SELECT j ->> 's', j ? 'b' FROM p_remote$$);
SELECT p_fetched($$SELECT j ->> 's', t FROM p_remote t$$);
SELECT p_fetched($$SELECT j ->> 's' FROM p_remote t FOR UPDATE$$);
SELECT p_fetched($$SELECT a.j ->> 's' FROM p_remote a, p_remote b WHERE a.j ->> 'n' = b.j ->> 'n'$$);
SELECT p_fetched($$SELECT j ->> 's', (SELECT 1 WHERE p_remote.j IS NULL) FROM p_remote$$);
-- arrays in arrays, other types, documents that look like wrappers, dates in other forms
INSERT INTO p_remote VALUES
	(2001, '[[{"sku": "s50"}]]', '{"n": [500], "s": ["name 500"], "at": [{"$date": "2024-02-01T00:00:00Z"}], "day": "Feb 1 2023", "ref": "000000000000000000000500", "price": 5}'),
	(2002, '[[[{"sku": "s50"}]]]', '{"n": [[500]], "s": "name", "b": [true], "day": "01/02/2023", "price": {"$numberDecimal": "NaN"}}'),
	(2003, '{"sku": "s50", "qty": 500.5}', '{"n": [[[500]]], "s": [["name 500"]], "at": null, "day": "2023-02-01 12:00 BC", "price": {"$numberDecimal": "Infinity"}}'),
	(2004, '{"sku": ["s50", "s51"]}', '{"n": "500", "s": [], "day": 20230201, "b": [[true]]}'),
	(2005, '[{"sku": [["s50"]]}, {"qty": [[400.5]]}]', '{"n": null, "day": "  2023-02-01", "price": {"$numberDecimal": "1E+400"}}'),
	(2006, '[]', '[{"n": 500}, [{"n": 500}]]'),
	(2007, NULL, '[[{"n": 500}]]'),
	(2008, '"s50"', '{"n": {"n": 500}, "day": "infinity", "at": {"$date": {"$numberLong": "-1"}}}'),
	(2009, '[[{"sku": [["s50"]]}]]', '{"s": "{\"x\"", "day": "2023-02-01T00:00:00-12:00"}'),
	(2010, '["s50", null, 7]', '{"s": "[x", "day": "2023-2-1", "n": 500.00000000001}');
SET mongo_fdw.enable_pushdown = off;
CREATE TABLE p_local AS SELECT * FROM p_remote;
RESET mongo_fdw.enable_pushdown;
-- keys, as they are met in lax mode
SELECT p_same($$j @? '$.n ? (@ == 500)'$$);
SELECT p_same($$j @@ '$.n == 500'$$);
SELECT p_same($$j @@ '$.n.n == 500'$$);
SELECT p_same($$j @@ 'strict $.n == 500'$$);
SELECT p_same($$j @@ '$.n >= 500 && $.n < 500.1'$$);
SELECT p_same($$j @@ '$.s == "name 500"'$$);
SELECT p_same($$j @? '$.s ? (@ starts with "name 99")'$$);
SELECT p_same($$j @@ '$.s starts with "[" || $.s like_regex "^\\{"'$$);
SELECT p_same($$j @@ '$.b'$$);
SELECT p_same($$j @@ '$.b[*][*]'$$);
SELECT p_same($$j @@ '$.n == null'$$);
SELECT p_same($$j @@ '$.n != 500' AND _id > 2000$$);
SELECT p_same($$j @? '$[*].n ? (@ == 500)'$$);
SELECT p_same($$items @? '$[*] ? (@.sku == "s50")' AND _id > 900$$);
SELECT p_same($$items @@ '$[*].sku == "s50"' AND _id > 900$$);
SELECT p_same($$items @@ '$.sku == "s50"' AND _id > 900$$);
SELECT p_same($$items @? '$[*] ? (@.sku == "s50" && @.qty > 450)' AND _id > 900$$);
SELECT p_same($$items @? '$[*] ? (@.sku == "s50" || @.qty > 500).qty' AND _id > 900$$);
SELECT p_same($$items @? '$ ? (exists(@[*].sku ? (@ starts with "s50")))' AND _id > 900$$);
SELECT p_same($$items @@ '$[0].qty == 400.5'$$);
SELECT p_same($$items @@ '$[*] == "s50"'$$);
SELECT p_same($$j @@ '$.n.size() == 1 && $.n.type() == "array"'$$);
SELECT p_same($$j @@ '($.n == 500) is unknown' AND _id > 2000$$);
-- wrappers, and what looks like them
SELECT p_same($$(j -> 'price' ->> '$numberDecimal')::numeric > 9.99$$);
SELECT p_same($$(j -> 'price' ->> '$numberDecimal')::numeric >= 'NaN'$$);
SELECT p_same($$j -> 'ref' ->> '$oid' >= '000000000000000000001000'$$);
SELECT p_same($$j -> 'ref' ->> '$oid' LIKE '%500'$$);
SELECT p_same($$j -> 'at' ->> '$date' LIKE '2024-02-11T15%'$$);
-- through arrays, scalars and objects, with what is read and nothing beside it
CREATE FUNCTION p_read(expressions text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	difference bigint;
BEGIN
	EXECUTE format('SELECT count(*) FROM ((SELECT _id, %1$s FROM p_remote EXCEPT ALL SELECT _id, %1$s FROM p_local)
		UNION ALL (SELECT _id, %1$s FROM p_local EXCEPT ALL SELECT _id, %1$s FROM p_remote)) s', expressions) INTO difference;
	RETURN difference;
END $$;
SELECT p_read($$j ->> 'n', j -> 'n' -> 'n', j -> 'n' -> 0, j #> '{n,0}', j #>> '{n,n}', j -> 'missing' IS NULL$$);
SELECT p_read($$items #>> '{0,sku}', items -> 'sku', items -> 0 -> 0, items['sku']['x'], items -> -1$$);
SELECT p_read($$items ->> 'sku', items #>> '{sku,x}'$$);
SELECT p_read($$j #>> '{0,n}', j ->> 'n', j -> 1$$);
DELETE FROM p_remote WHERE _id IN (2001, 2003, 2008);
DELETE FROM p_local WHERE _id IN (2001, 2003, 2008);
SELECT p_same($$(j ->> 'day')::date >= '2022-09-25'$$);
SELECT p_same($$(j ->> 'day')::timestamptz BETWEEN '2023-01-31' AND '2023-02-02'$$);
SELECT p_same($$(j ->> 'day')::date = '2023-02-01'$$);
SELECT p_same($$(j ->> 'day')::date < '2020-01-03'$$);
-- what begins as one day and is another
INSERT INTO p_remote (_id, j) VALUES (2011, '{"day": "2022-10-031"}'), (2014, '{"day": "2030-02-01 BC"}'), (2015, '{"day": "2022-10-31 999999"}');
-- a word behind a date is the date, which PostgreSQL 16 refuses
INSERT INTO p_remote (_id, j) SELECT id, format('{"day": "%s%s"}', CASE WHEN current_setting('server_version_num')::int < 160000 THEN day END, word)::jsonb
	FROM (VALUES (2012, '2030-02-01 ', 'epoch'), (2013, '2020-01-01 ', 'infinity')) AS v (id, day, word);
INSERT INTO p_local SELECT * FROM p_remote WHERE _id > 2010;
SELECT p_same($$(j ->> 'day')::date >= '2022-10-20' AND _id > 2000$$);
SELECT p_same($$(j ->> 'day')::date < '2020-01-03' AND _id > 2000$$);
SELECT p_same($$(j ->> 'day')::timestamptz = '2022-11-04 04:40:39' AND _id > 2000$$);
DELETE FROM p_remote WHERE _id > 2010;
DELETE FROM p_local WHERE _id > 2010;
SELECT p_same($$j ->> 's' COLLATE "C" >= 'name 999' AND j ->> 's' COLLATE "C" < '{'$$);

-- parameters, and zones that a plan outlives
SET plan_cache_mode = force_generic_plan;
PREPARE p_path (jsonpath) AS SELECT count(*), min(_id) FROM p_remote WHERE j @? $1;
EXECUTE p_path ('$.n ? (@ == 500)');
EXECUTE p_path ('$.n == 500');
EXECUTE p_path ('$.n.*');
EXECUTE p_path (NULL);
PREPARE p_date (date) AS SELECT count(*), min(_id) FROM p_remote WHERE (j -> 'at' ->> '$date')::timestamptz >= $1;
EXECUTE p_date ('2024-02-11');
SET TimeZone = 'America/St_Johns';
EXECUTE p_date ('2024-02-11');
SET TimeZone = 'UTC';
EXECUTE p_date ('2024-02-11');
PREPARE p_day (timestamptz) AS SELECT count(*) FROM p_remote WHERE (j ->> 'day')::timestamptz = $1 AND _id < 2000;
EXECUTE p_day ('2020-01-03');
EXECUTE p_day ('infinity');
PREPARE p_days (text, text) AS SELECT count(*), min(_id) FROM p_remote WHERE j ->> 'day' COLLATE "C" BETWEEN $1 AND $2;
EXPLAIN (VERBOSE, COSTS OFF) EXECUTE p_days ('2020-01-03', '2020-01-05');
EXECUTE p_days ('2020-01-03', '2020-01-05');
EXECUTE p_days ('', '~');
EXECUTE p_days ('2020-01-05', '2020-01-03');
EXECUTE p_days ('2020-01-05', NULL);
PREPARE p_dates (date, date) AS SELECT count(*), min(_id) FROM p_remote WHERE (j ->> 'day')::date BETWEEN $1 AND $2 AND _id < 2000;
EXECUTE p_dates ('2020-01-03', '2020-01-05');
EXECUTE p_dates ('2020-01-05', '2020-01-03');
EXECUTE p_dates ('-infinity', '2020-01-03');
EXECUTE p_dates ('2020-01-03', 'infinity');
EXECUTE p_dates ('2020-01-03', NULL);
RESET plan_cache_mode;

-- what is a string there, and a document once it is cast
SET client_min_messages = warning;
CREATE FOREIGN TABLE p_texts (_id int, j jsonb) SERVER json_path OPTIONS (database 'mongo_fdw_regress', collection 'written_json_texts');
RESET client_min_messages;
INSERT INTO p_texts VALUES (1, '{"a": "{\"x\": 1}"}'), (2, '{"a": {"x": 1}}');
SELECT array_agg(_id) FILTER (WHERE (j ->> 'a')::jsonb @> '{"x": 1}') FROM p_texts;
SELECT count(*) FROM p_texts WHERE (j ->> 'a')::jsonb @> '{"x": 1}';
SELECT count(*) FROM p_texts WHERE (j ->> 'a')::jsonb ? 'x' AND (j #>> '{a}')::jsonb @? '$.x' AND '{"x": 1, "y": 2}' @> (j ->> 'a')::jsonb;
DELETE FROM p_texts;

-- a date in a pipeline or a match document is in UTC, if it does not say, under every setting
SET TimeZone = 'Asia/Kathmandu';
SET DateStyle = 'SQL, DMY';
SET client_min_messages = warning;
CREATE FOREIGN TABLE p_pipeline (_id int) SERVER json_path OPTIONS (database 'mongo_fdw_regress', collection 'written_json_path',
	pipeline '[{"$match": {"j.at": {"$gte": {"$date": "2024-02-11"}}}}]');
RESET client_min_messages;
SELECT count(*), min(_id) FROM p_pipeline;
SELECT count(*), min(_id) FROM p_remote t WHERE mongo_match(t, '{"j.at": {"$gte": {"$date": "2024-02-11"}}}');
SELECT count(*), min(_id) FROM p_remote t WHERE mongo_match(t, '{"j.at": {"$gte": {"\u0024date": "2024-02-11T01:00:00+01:00"}}}');
SHOW TimeZone;
SHOW DateStyle;
\pset format aligned
\pset tuples_only off
DROP TABLE p_local;
DROP FUNCTION p_seen, p_same, p_fetched, p_read;
DELETE FROM p_remote;
RESET TimeZone;
RESET DateStyle;
SET client_min_messages = warning;
DROP SERVER json_path CASCADE;
