--
-- Elements of arrays, and what is inside jsonb: conditions that an index finds, tested again here.
--
\getenv mongo_host MONGO_HOST
\getenv mongo_port MONGO_PORT
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mongo_fdw;
CREATE SERVER elements FOREIGN DATA WRAPPER mongo_fdw
	OPTIONS (address :'mongo_host', port :'mongo_port');
CREATE USER MAPPING FOR CURRENT_USER SERVER elements;

CREATE FOREIGN TABLE e_posts (_id int, tags text[], sizes numeric[], days date[])
	SERVER elements OPTIONS (database 'mongo_fdw_regress', collection 'written_elements');
CREATE FOREIGN TABLE e_raw (_id int, tags jsonb)
	SERVER elements OPTIONS (database 'mongo_fdw_regress', collection 'written_elements');
RESET client_min_messages;
DELETE FROM e_posts;
INSERT INTO e_posts
SELECT n, ARRAY['t' || n % 100, 't' || n % 7], ARRAY[n, n + 0.5], ARRAY[date '2024-01-01' + n % 50]
FROM generate_series(1, 1000) n;
-- two dimensions, NULLs, nothing
INSERT INTO e_posts VALUES (1001, '{{a,b},{c,t5}}', '{{5,5.5}}'), (1002, '{NULL,t5}', '{NULL}'), (1003, '{}', '{}'), (1004, NULL, NULL);
SELECT mongo_command('elements', 'mongo_fdw_regress', '{"createIndexes": "written_elements", "indexes": [{"key": {"tags": 1}, "name": "tags"}, {"key": {"sizes": 1}, "name": "sizes"}]}') ->> 'ok' AS ok;

-- what a query sends, and what MongoDB looks at for it
CREATE FUNCTION e_seen(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	SET LOCAL mongo_fdw.explain_remote = on;
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, BUFFERS OFF, SUMMARY OFF) ' || query LOOP
		IF line ~ 'Foreign Scan on' THEN
			RETURN NEXT 'rows: ' || substring(line FROM 'rows=(\d+)');
		ELSIF line ~ 'Remote Command' THEN
			RETURN NEXT regexp_replace(line, '^.*?"filter" : |, "(projection|collation|batchSize)".*$', '', 'g');
		ELSIF line ~ 'COLLSCAN|IXSCAN|Documents Examined' THEN
			RETURN NEXT substring(line FROM 'COLLSCAN|IXSCAN using \w+|Remote.*');
		END IF;
	END LOOP;
END $$;

\pset format unaligned
\pset tuples_only on
-- an element is a value, wherever it stands
SELECT e_seen($$SELECT _id FROM e_posts WHERE 't50' = ANY (tags)$$);
SELECT e_seen($$SELECT _id FROM e_posts WHERE tags @> '{t50,t1}'$$);
SELECT e_seen($$SELECT _id FROM e_posts WHERE tags && '{t50,t51,NULL}'$$);
SELECT e_seen($$SELECT _id FROM e_posts WHERE ARRAY[(SELECT 't50')] <@ tags$$);
SELECT e_seen($$SELECT _id FROM e_posts WHERE sizes @> '{500.5}'$$);
SELECT e_seen($$SELECT _id FROM e_posts WHERE 998 < ANY (sizes)$$);
SELECT e_seen($$SELECT _id FROM e_posts WHERE NOT 't50' <> ALL (tags)$$);
-- an element that has a number: one of them, and that one
SELECT e_seen($$SELECT _id FROM e_posts WHERE tags[1] = 't50'$$);
SELECT e_seen($$SELECT _id FROM e_posts WHERE tags[2] IN ('t50', 't51')$$);
SELECT e_seen($$SELECT _id FROM e_posts WHERE sizes[1] BETWEEN 10 AND 12$$);
-- what is in no array matches nothing; nothing is in every array
SELECT e_seen($$SELECT _id FROM e_posts WHERE tags @> ARRAY[NULL::text]$$);
SELECT e_seen($$SELECT _id FROM e_posts WHERE tags && '{}'$$);
SELECT count(*) FROM e_posts WHERE tags @> '{}';
\pset format aligned
\pset tuples_only off

-- of two dimensions, with NULLs
SELECT _id FROM e_posts WHERE 't5' = ANY (tags) AND _id > 990 ORDER BY _id;
SELECT _id FROM e_posts WHERE tags @> '{t5}' AND _id > 990 ORDER BY _id;
SELECT _id FROM e_posts WHERE tags && '{c,t5}' AND _id > 990 ORDER BY _id;
SELECT _id FROM e_posts WHERE 5.5 = ANY (sizes) ORDER BY _id;
SELECT _id FROM e_posts WHERE tags[2] = 't5' AND _id > 990 ORDER BY _id;
SELECT _id FROM e_posts WHERE tags[1] = 'a' OR tags[1] IS NULL ORDER BY _id;
SELECT count(*) FROM e_posts WHERE 't5' <> ALL (tags);
SELECT count(*) FROM e_posts WHERE date '2024-01-06' = ANY (days);

-- parameters
SET plan_cache_mode = force_generic_plan;
PREPARE e_any (text) AS SELECT count(*), min(_id) FROM e_posts WHERE $1 = ANY (tags);
PREPARE e_all (text[]) AS SELECT count(*), min(_id) FROM e_posts WHERE tags @> $1;
PREPARE e_one (numeric) AS SELECT count(*), min(_id) FROM e_posts WHERE sizes[2] = $1;
EXECUTE e_any ('t50');
EXECUTE e_any (NULL);
EXECUTE e_all ('{t50,t1}');
EXECUTE e_all ('{}');
EXECUTE e_all ('{t50,NULL}');
EXECUTE e_all (NULL);
EXECUTE e_one (7.5);
EXPLAIN (VERBOSE, COSTS OFF) EXECUTE e_all ('{t50}');
RESET plan_cache_mode;

-- a document that has the value itself
INSERT INTO e_raw VALUES (2001, '"t50"');
SELECT _id FROM e_posts WHERE 't50' = ANY (tags);
ALTER FOREIGN TABLE e_posts OPTIONS (ADD type_mismatch 'null');
SELECT count(*), max(_id) FROM e_posts WHERE 't50' = ANY (tags);
DELETE FROM e_raw;

-- what is inside jsonb: a String, or what has the same text
CREATE FOREIGN TABLE e_orders (_id int, items jsonb, j jsonb, labels jsonb)
	SERVER elements OPTIONS (database 'mongo_fdw_regress', collection 'written_orders');
DELETE FROM e_orders;
INSERT INTO e_orders
SELECT n, jsonb_build_array(jsonb_build_object('sku', 's' || n % 100, 'qty', n % 7), jsonb_build_object('sku', 's' || n % 10, 'qty', 1)),
	jsonb_build_object('n', n, 's', 'name ' || n, 'b', n % 100 = 0), jsonb_build_array('l' || n % 100)
FROM generate_series(1, 1000) n;
INSERT INTO e_orders VALUES
	(2001, '[{"sku": ["s50"]}, [{"sku": "s50"}], "s50"]', '{"n": "500", "s": 7, "b": "yes"}', '"l50"'),
	(2002, '{"sku": "s50"}', '{"n": " 500.0 ", "s": true, "b": 1}', '{"l50": 1}'),
	(2003, '[]', '{"n": "NaN", "s": {"a": 1}, "b": "off"}', '[{"l50": 1}]'),
	(2004, NULL, '{"n": null, "s": ["name"], "b": 0}', '[["l50"]]'),
	(2005, '[{"sku": "s50", "qty": 0.1}, {"qty": 9007199254740993}]', '[]', '[]');
SELECT mongo_command('elements', 'mongo_fdw_regress', '{"createIndexes": "written_orders", "indexes": [{"key": {"items.sku": 1}, "name": "sku"}, {"key": {"items.qty": 1}, "name": "qty"}, {"key": {"j.n": 1}, "name": "n"}, {"key": {"j.s": 1}, "name": "s"}, {"key": {"j.b": 1}, "name": "b"}, {"key": {"labels": 1}, "name": "labels"}]}') ->> 'ok' AS ok;
\pset format unaligned
\pset tuples_only on
SELECT e_seen($$SELECT _id FROM e_orders WHERE items @> '[{"sku": "s50"}]'$$);
SELECT e_seen($$SELECT _id FROM e_orders WHERE items @> '[{"sku": "s50", "qty": 1}, {"sku": "s0"}]'$$);
SELECT e_seen($$SELECT _id FROM e_orders WHERE items @> jsonb_build_array(jsonb_build_object('qty', 9007199254740993))$$);
SELECT e_seen($$SELECT _id FROM e_orders WHERE labels ? 'l50'$$);
SELECT e_seen($$SELECT _id FROM e_orders WHERE labels ?| '{l50,l51,NULL}'$$);
SELECT e_seen($$SELECT _id FROM e_orders WHERE (j ->> 'n')::float8 > 995$$);
SELECT e_seen($$SELECT _id FROM e_orders WHERE (j #>> '{n}')::numeric IN (500, 501)$$);
SELECT e_seen($$SELECT _id FROM e_orders WHERE (j ->> 'b')::boolean$$);
SELECT e_seen($$SELECT _id FROM e_orders WHERE j ->> 's' LIKE 'name 99%'$$);
SELECT e_seen($$SELECT _id FROM e_orders WHERE j ->> 's' IN ('name 5', '7', 'true')$$);
SELECT e_seen($$SELECT _id FROM e_orders WHERE j ->> 's' COLLATE "C" < 'N'$$);
-- no bounds of an index tell arrays, nor Symbols
SELECT e_seen($$SELECT _id FROM e_orders WHERE j ->> 's' COLLATE "C" > 'name 998'$$);
\pset format aligned
\pset tuples_only off
SELECT _id FROM e_orders WHERE items @> '[{"sku": "s50"}]' AND _id > 960 ORDER BY _id;
SELECT _id FROM e_orders WHERE items @> '[{"sku": ["s50"]}, "s50"]' OR items @> '[[{"sku": "s50"}], {}]' OR items @> '{"sku": "s50"}' ORDER BY _id;
SELECT _id FROM e_orders WHERE labels ? 'l50' AND _id > 960 ORDER BY _id;
SELECT _id FROM e_orders WHERE labels ?& '{l50}' AND _id > 960 ORDER BY _id;
SELECT _id FROM e_orders WHERE (j ->> 'n')::float8 = 500 ORDER BY _id;
SELECT _id FROM e_orders WHERE NOT (j ->> 'n')::float8 <= 999 ORDER BY _id;
SELECT _id FROM e_orders WHERE (j ->> 'b')::boolean AND _id > 960 ORDER BY _id;
SELECT count(*) FROM e_orders WHERE NOT (j ->> 'b')::boolean;
SELECT _id FROM e_orders WHERE j ->> 's' LIKE '%"%' OR j ->> 's' LIKE 't%' OR j ->> 's' = '{"a": 1}' ORDER BY _id;
SELECT _id FROM e_orders WHERE j ->> 's' COLLATE "C" < 'name 1' ORDER BY _id;
-- parameters
SET plan_cache_mode = force_generic_plan;
-- deeper than a command may be, and as long as one
SELECT count(*) FROM e_orders WHERE items @> (SELECT (repeat('[{"a": ', 1000) || 1 || repeat('}]', 1000))::jsonb);
SELECT count(*) FROM e_orders WHERE j ->> 'n' COLLATE "C" BETWEEN (SELECT repeat('a', 5000000)) AND (SELECT repeat('b', 5000000));
PREPARE e_contains (jsonb, float8) AS SELECT count(*), min(_id) FROM e_orders WHERE items @> $1 AND (j ->> 'n')::float8 < $2;
EXECUTE e_contains ('[{"sku": "s50"}]', 600);
EXECUTE e_contains ('[]', 'NaN');
EXECUTE e_contains (NULL, 1);
RESET plan_cache_mode;
-- accessors as functions, below operators and subscripts
EXPLAIN (VERBOSE, COSTS OFF) SELECT jsonb_extract_path(j, 'd') -> 'e', (jsonb_object_field(items, '0'))['sku'] FROM e_orders WHERE jsonb_extract_path_text(j, 's') = '7';
SELECT jsonb_extract_path(j, 'd') -> 'e' AS e, (jsonb_object_field(items, '0'))['sku'] AS sku, jsonb_extract_path_text(items, '0', 'sku', '0') AS s50 FROM e_orders WHERE jsonb_extract_path_text(j, 's') = '7';
-- a String that is no number is an error, wherever it would be found
INSERT INTO e_orders VALUES (2006, NULL, '{"n": "none"}');
SELECT _id FROM e_orders WHERE _id = 2006 AND (j ->> 'n')::int = 500;
-- not null is one element, not all
INSERT INTO e_posts VALUES (1005, NULL, '{NULL,7}');
SELECT _id FROM e_posts WHERE _id > 999 AND (SELECT 'NaN'::numeric) >= ANY (sizes) ORDER BY _id;
SELECT _id FROM e_posts WHERE _id > 999 AND (SELECT 'Infinity'::numeric) > ANY (sizes) ORDER BY _id;
INSERT INTO e_posts VALUES (1006, NULL, '{NULL,NaN}');
SELECT _id FROM e_posts WHERE _id > 999 AND sizes[2] = ANY ('{7.1,NaN}'::numeric[]) ORDER BY _id;
SELECT _id FROM e_posts WHERE _id > 999 AND sizes[2] = ANY ((SELECT '{NaN}'::numeric[])::numeric[]) ORDER BY _id;
SELECT _id FROM e_posts WHERE _id > 999 AND sizes && '{NaN,8}'::numeric[] ORDER BY _id;
-- arrays in arrays are dimensions, except where the element's type reads an Array itself
SET client_min_messages = warning;
CREATE DOMAIN e_document AS jsonb;
CREATE FOREIGN TABLE e_nested (_id int, pts point[], js jsonb[], ks e_document[] OPTIONS (path 'js'), ns int[])
	SERVER elements OPTIONS (database 'mongo_fdw_regress', collection 'written_nested');
RESET client_min_messages;
SELECT mongo_command('elements', 'mongo_fdw_regress', '{"insert": "written_nested", "documents": [{"_id": 1, "pts": [[1, 2], [3, 4]], "js": [[1, 2], [3]], "ns": [[1, 2], [3, 4]]}, {"_id": 2, "pts": ["(5,6)"], "js": [7, [[8]], null], "ns": [9]}]}') ->> 'n' AS n;
SELECT _id, cardinality(pts) AS pts, cardinality(js) AS js, cardinality(ks) AS ks, cardinality(ns) AS ns, array_length(js, 1) AS js1, array_length(ns, 1) AS ns1 FROM e_nested
WHERE cardinality(pts) + cardinality(js) + cardinality(ks) IN (4, 6, 7) AND array_length(pts, 1) * 1 = _id % 2 + 1 AND cardinality(ns) > 0 ORDER BY _id;
SELECT _id FROM e_nested WHERE js[1] IS NULL OR pts[1] IS NULL;
SELECT _id FROM e_nested WHERE js[2] IS NULL OR ks[1] IS NULL OR ns[1] IS NULL;
SELECT _id FROM e_nested WHERE '[3]' = ANY (js) OR '[[8]]' = ANY (ks) ORDER BY _id;
DELETE FROM e_nested;
DROP FOREIGN TABLE e_nested;
DROP DOMAIN e_document;
-- an element of a domain has the domain's precision
SET client_min_messages = warning;
CREATE DOMAIN e_tenths AS numeric(5,1);
CREATE DOMAIN e_three AS varchar(3);
CREATE DOMAIN e_second AS timestamptz(0);
CREATE FOREIGN TABLE e_domains (_id int, a e_tenths[], v e_three[], t e_second[])
	SERVER elements OPTIONS (database 'mongo_fdw_regress', collection 'written_domains');
RESET client_min_messages;
SELECT mongo_command('elements', 'mongo_fdw_regress', '{"insert": "written_domains", "documents": [{"_id": 1, "a": [1.26], "v": ["abc   "], "t": [{"$date": "2024-01-01T00:00:00.400Z"}]}, {"_id": 2, "a": [1.3], "v": ["abc"], "t": [{"$date": "2024-01-01T00:00:00Z"}]}]}') ->> 'n' AS n;
SELECT count(*) FROM e_domains WHERE a[1] = 1.3 AND a[1] > 1.29 AND v[1] = 'abc' AND t[1] = '2024-01-01 00:00+00';
DELETE FROM e_domains;
DROP FOREIGN TABLE e_domains;
DROP DOMAIN e_tenths, e_three, e_second;
-- EXISTS over the elements: the conditions on one are an $elemMatch, or on the field if they ask for the element itself
SET client_min_messages = warning;
CREATE FOREIGN TABLE e_lines (_id int, lines jsonb, tags text[], j jsonb) SERVER elements OPTIONS (database 'mongo_fdw_regress', collection 'written_lines');
CREATE FOREIGN TABLE e_lines_raw (_id int, tags jsonb, doc json OPTIONS (path 'j')) SERVER elements OPTIONS (database 'mongo_fdw_regress', collection 'written_lines');
RESET client_min_messages;
DELETE FROM e_lines;
INSERT INTO e_lines SELECT n, jsonb_build_array(jsonb_build_object('sku', 's' || n % 100, 'qty', n % 7), jsonb_build_object('sku', 's' || n % 90, 'qty', n % 3)),
	ARRAY['t' || n % 100, 't' || n % 90], jsonb_build_object('s', 's' || n % 90, 'list', jsonb_build_array(n % 50, 's' || n % 50)) FROM generate_series(1, 500) n;
INSERT INTO e_lines VALUES (501, '["s50", ["s50"], {"sku": ["s50"]}, [{"sku": "s50"}], null]', '{{t50,a},{b,NULL}}', '{"list": [["s7"], {"s": "z"}], "s": "a"}'), (502, '[]', '{}', NULL), (503, NULL, NULL, NULL);
SELECT mongo_command('elements', 'mongo_fdw_regress', '{"createIndexes": "written_lines", "indexes": [{"key": {"lines.sku": 1, "lines.qty": 1}, "name": "lines"}, {"key": {"tags": 1}, "name": "tags"}, {"key": {"j.list": 1}, "name": "list"}]}') ->> 'ok' AS ok;
\pset format unaligned
\pset tuples_only on
SELECT e_seen($$SELECT _id FROM e_lines WHERE EXISTS (SELECT 1 FROM jsonb_array_elements(lines) e WHERE e ->> 'sku' = 's50' AND e -> 'qty' = '1' LIMIT 1)$$);
SELECT e_seen($$SELECT _id FROM e_lines WHERE EXISTS (SELECT FROM jsonb_array_elements(lines) e WHERE e @> '{"sku": "s50"}' OR e -> 'sku' = '"s51"')$$);
SELECT e_seen($$SELECT _id FROM e_lines WHERE EXISTS (SELECT FROM unnest(tags) t WHERE t = 't50')$$);
SELECT e_seen($$SELECT _id FROM e_lines_raw WHERE EXISTS (SELECT FROM jsonb_array_elements_text(tags) t WHERE t IN ('t50', 't51')) AND _id < 501$$);
SELECT e_seen($$SELECT _id FROM e_lines_raw WHERE EXISTS (SELECT FROM jsonb_array_elements(tags) t WHERE t = '"t50"')$$);
SELECT e_seen($$SELECT _id FROM e_lines_raw WHERE EXISTS (SELECT FROM json_array_elements_text(doc -> 'list') t WHERE t = '7')$$);
-- of values that the subquery is given, or finds itself; what else it says of the table is left out
SELECT e_seen($$SELECT _id FROM e_lines WHERE EXISTS (SELECT FROM jsonb_array_elements(lines) e WHERE e ->> 'sku' = 's50' AND e ->> 'x' IS DISTINCT FROM (SELECT 'a') AND e ->> 'sku' <> j ->> 's')$$);
SELECT e_seen($$SELECT _id FROM e_lines WHERE EXISTS (SELECT FROM jsonb_array_elements(lines) e WHERE e ->> 'sku' = (SELECT 's50'))$$);
SELECT o.s, (SELECT count(*) FROM e_lines WHERE EXISTS (SELECT FROM jsonb_array_elements(lines) e WHERE e ->> 'sku' = o.s)) FROM (VALUES ('s50'), ('s99'), (NULL)) o (s);
SELECT count(l._id) FROM (VALUES ('s50'), ('s99')) o (s) JOIN e_lines l ON l._id < 70 AND EXISTS (SELECT FROM jsonb_array_elements(lines) e WHERE e ->> 'sku' = o.s AND l._id > 0);
SELECT g, (SELECT count(*) FROM e_lines l WHERE l._id = g % 10 AND EXISTS (SELECT FROM unnest(tags) t WHERE t = 't' || g)) FROM generate_series(1, 300) g WHERE g IN (1, 7, 17, 300);
SELECT sum(n) FROM (SELECT (SELECT count(*) FROM e_lines l WHERE l._id = g % 10 AND EXISTS (SELECT FROM unnest(tags) t WHERE t = 't' || g % 20)) AS n FROM generate_series(1, 300) g OFFSET 0) s;
-- nothing is known of an element that is known of what contains it
SELECT _id FROM e_lines WHERE j ->> 's' COLLATE "C" < 'b' AND EXISTS (SELECT FROM jsonb_array_elements(j -> 'list') e WHERE e ->> 's' COLLATE "C" > 'a');
-- only where it is true, of one function, of an element of which something must be
SELECT e_seen($$SELECT _id FROM e_lines WHERE NOT EXISTS (SELECT FROM jsonb_array_elements(lines) e WHERE e ->> 'sku' <> 's50' AND e IS NOT NULL) AND _id > 490$$);
SELECT e_seen($$SELECT _id FROM e_lines WHERE EXISTS (SELECT FROM jsonb_array_elements(lines) e WHERE coalesce(e ->> 'sku', 's') = 's')$$);
SELECT e_seen($$SELECT _id FROM e_lines WHERE EXISTS (SELECT FROM unnest(tags) t, unnest(tags) u WHERE t = 't50' AND u = 'a')$$);
SELECT e_seen($$SELECT _id FROM e_lines WHERE EXISTS (SELECT FROM jsonb_array_elements(lines) e WHERE e @> '"s50"' OR e @> '["s50"]')$$);
SELECT e_seen($$UPDATE e_lines SET tags = NULL WHERE EXISTS (SELECT FROM unnest(tags) t WHERE t = 'b')$$);
SELECT _id FROM e_lines WHERE EXISTS (SELECT FROM jsonb_array_elements(lines) e WHERE EXISTS (SELECT FROM jsonb_array_elements(CASE jsonb_typeof(e) WHEN 'array' THEN e END) i WHERE i ->> 'sku' = 's50'));
\pset format aligned
\pset tuples_only off
DELETE FROM e_lines;
DELETE FROM e_orders;
DROP FUNCTION e_seen;
SET client_min_messages = warning;
DROP SERVER elements CASCADE;
