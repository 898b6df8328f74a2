--
-- = ANY and <> ALL with more values than a command has room for.
--
\getenv mongo_host MONGO_HOST
\getenv mongo_port MONGO_PORT
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mongo_fdw;
CREATE SERVER long_lists FOREIGN DATA WRAPPER mongo_fdw
	OPTIONS (address :'mongo_host', port :'mongo_port');
CREATE USER MAPPING FOR CURRENT_USER SERVER long_lists;
CREATE FOREIGN TABLE spread (_id int, i int, t text, c text COLLATE "C", n numeric)
	SERVER long_lists OPTIONS (database 'mongo_fdw_regress', collection 'long_lists');
CREATE FOREIGN TABLE spread_or_null (_id int, i int, t text)
	SERVER long_lists OPTIONS (database 'mongo_fdw_regress', collection 'long_lists', type_mismatch 'null');
CREATE FUNCTION ints() RETURNS int[] STABLE PARALLEL SAFE LANGUAGE sql
	AS 'SELECT array_agg(2 * g) FROM generate_series(1, 1500000) g';
CREATE FUNCTION texts() RETURNS text[] STABLE PARALLEL SAFE LANGUAGE sql
	AS $$ SELECT array_agg('t' || g || CASE WHEN g > 8 THEN repeat('x', 1000) ELSE '' END)
		FROM generate_series(1, 20000) g $$;
SET jit = off;

-- some below, some above, some between the values; one NULL
DELETE FROM spread;
INSERT INTO spread SELECT k, k * 300001 - 600000, 't' || k, 't' || k, k FROM generate_series(0, 20) k;
INSERT INTO spread VALUES (21);

-- all that is there comes, and is tested here
EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, BUFFERS OFF, SUMMARY OFF)
	SELECT _id FROM spread WHERE i = ANY ((SELECT ints())::int[]);
SELECT _id FROM spread WHERE i = ANY ((SELECT ints())::int[]) ORDER BY i;
SELECT _id FROM spread_or_null WHERE i = ANY ((SELECT ints())::int[]) ORDER BY i;

SELECT _id FROM spread WHERE t = ANY ((SELECT texts())::text[]) ORDER BY _id;
SELECT _id FROM spread WHERE c = ANY ((SELECT texts())::text[]) ORDER BY _id;
SELECT _id FROM spread_or_null WHERE t = ANY ((SELECT texts())::text[]) ORDER BY _id;

-- a few of which are too long
SELECT _id FROM spread
	WHERE c = ANY ((SELECT ARRAY['t3', repeat('a', 9000000), repeat('u', 9000000)])::text[]);

-- beside another condition, and what <> ALL leaves
SELECT _id FROM spread WHERE c = ANY ((SELECT texts())::text[]) OR _id = 20 ORDER BY _id;
SELECT _id FROM spread WHERE c <> ALL ((SELECT texts())::text[]) ORDER BY _id;
SELECT _id FROM spread WHERE c <> ALL ((SELECT texts() || NULL::text)::text[]);

-- more rows below would be fewer above, or others
SELECT _id FROM spread WHERE (c = ANY ((SELECT texts())::text[])) IS NOT TRUE ORDER BY _id;
SELECT _id FROM spread WHERE c = ANY ((SELECT texts())::text[]) ORDER BY _id LIMIT 2;
SELECT count(*) FROM spread WHERE c = ANY ((SELECT texts())::text[]);

-- as it is without any of this
SET mongo_fdw.enable_pushdown = off;
SELECT _id FROM spread WHERE i = ANY ((SELECT ints())::int[]) ORDER BY i;
SELECT _id FROM spread WHERE c <> ALL ((SELECT texts())::text[]) ORDER BY _id;

DROP FUNCTION ints(), texts();
DROP SERVER long_lists CASCADE;
