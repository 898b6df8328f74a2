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
	FOR line IN EXECUTE 'EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF) ' || query LOOP
		IF line ~ 'Scan on' THEN
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
DROP FUNCTION e_seen;
SET client_min_messages = warning;
DROP SERVER elements CASCADE;
