-- Aggregates in MongoDB: which are pushed, and that each answer is the one that
-- PostgreSQL gives when it aggregates itself.
\set VERBOSITY terse
SET client_min_messages = warning;
\getenv mongo_host MONGO_HOST
\getenv mongo_port MONGO_PORT
CREATE EXTENSION IF NOT EXISTS mongo_fdw;
CREATE SERVER aggregates FOREIGN DATA WRAPPER mongo_fdw
	OPTIONS (address :'mongo_host', port :'mongo_port', fdw_startup_cost '0');
CREATE USER MAPPING FOR PUBLIC SERVER aggregates;

-- every number as each BSON type that the columns read; missing, null, undefined
CREATE FOREIGN TABLE a_documents (__doc jsonb) SERVER aggregates
	OPTIONS (database 'mongo_fdw_regress', collection 'aggregates');
DELETE FROM a_documents;
INSERT INTO a_documents VALUES
('{"_id": 1, "g": 1, "i2": 1, "i4": 5, "i8": 5, "n": {"$numberDecimal": "1.10"}, "m": {"$numberDecimal": "7.10"}, "f": 1.5, "t": "a", "b": true, "d": {"$date": "2020-01-01T05:00:00Z"}, "j": 1}'),
('{"_id": 2, "g": {"$numberDouble": "1.0"}, "i2": {"$numberDouble": "2.0"}, "i4": {"$numberDouble": "2147483647.0"}, "i8": {"$numberLong": "9223372036854775807"}, "n": 0.1, "m": 2.675, "f": {"$numberDouble": "NaN"}, "t": "B", "b": false, "d": {"$date": "2020-01-01T23:00:00Z"}, "j": {"$minKey": 1}}'),
('{"_id": 3, "g": {"$numberDecimal": "1.0"}, "i2": {"$numberLong": "-3"}, "i4": {"$numberDecimal": "-2147483648"}, "i8": {"$numberDouble": "9007199254740992.0"}, "n": {"$numberDecimal": "1.2"}, "m": {"$numberDecimal": "1.005"}, "f": -1.5, "t": {"$oid": "65a000000000000000000001"}, "b": null, "d": {"$date": "1969-12-31T23:59:59.999Z"}, "j": null}'),
('{"_id": 4, "g": 2, "i2": 7, "i4": 7, "i8": {"$numberLong": "9223372036854775807"}, "n": {"$numberDecimal": "12345678901234567890.123456789"}, "m": 1, "f": {"$numberDouble": "Infinity"}, "t": "a", "b": true, "d": {"$date": "2020-02-29T00:00:00Z"}}'),
('{"_id": 5, "g": 2, "n": {"$numberDecimal": "1E+3"}, "m": null, "t": {"$symbol": "a"}, "d": null}'),
('{"_id": 6, "g": null, "i2": 0, "i4": 0, "i8": 0, "n": {"$numberDecimal": "1.1000"}, "m": {"$numberDouble": "-0.0"}, "f": 0.0, "t": "", "b": false, "d": {"$date": "2020-01-01T00:00:00Z"}}'),
('{"_id": 7, "i2": {"$undefined": true}, "i4": 1, "i8": {"$numberDecimal": "-9223372036854775808"}, "n": {"$numberDecimal": "NaN"}, "m": {"$numberDecimal": "-7.105"}, "f": {"$numberDouble": "NaN"}, "t": "65a000000000000000000001", "b": true, "d": {"$date": "0001-01-01T00:00:00Z"}}'),
('{"_id": 8, "g": {"$undefined": true}, "i2": 1, "i4": 3, "i8": 3, "n": {"$numberDecimal": "Infinity"}, "m": 2, "f": 2, "t": "ä", "b": true}'),
('{"_id": 9, "g": 3, "n": {"$numberDecimal": "Infinity"}, "f": {"$numberDouble": "NaN"}}'),
('{"_id": 10, "g": 3, "n": {"$numberDecimal": "-Infinity"}, "f": {"$numberDouble": "NaN"}}'),
('{"_id": 11, "g": 4}');
CREATE FOREIGN TABLE a (_id integer, g integer, i2 smallint, i4 integer, i8 bigint, n numeric, m numeric(12,2),
	f double precision, r real OPTIONS (path 'f'), t text COLLATE "C", v varchar OPTIONS (path 't') COLLATE "C",
	x text OPTIONS (path 't') COLLATE "POSIX", b boolean, d date, ts timestamp OPTIONS (path 'd'),
	tz timestamptz OPTIONS (path 'd'), j jsonb)
	SERVER aggregates OPTIONS (database 'mongo_fdw_regress', collection 'aggregates');

-- what MongoDB answers, what PostgreSQL does, and who did it
CREATE FUNCTION answer(query text, ordered boolean) RETURNS text LANGUAGE plpgsql AS $$
DECLARE result text;
BEGIN
	EXECUTE format('SELECT string_agg(q::text, '' '' %s) FROM (%s) q',
		CASE WHEN NOT ordered THEN 'ORDER BY q::text' END, query) INTO result;
	RETURN result;
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE || ' ' || SQLERRM;
END $$;
CREATE FUNCTION plan_of(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE line text; result text := '';
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		result := result || line || E'\n';
	END LOOP;
	RETURN result;
END $$;
CREATE FUNCTION compare(query text, ordered boolean DEFAULT false, OUT pushed text, OUT same boolean, OUT answer text) LANGUAGE plpgsql AS $$
DECLARE plan text; other text;
BEGIN
	PERFORM set_config('mongo_fdw.enable_pushdown', 'on', true);
	plan := plan_of(query);
	pushed := CASE WHEN plan LIKE 'Foreign Scan%' THEN 'all'
		WHEN plan LIKE '%Aggregate on%' THEN 'some' ELSE '' END;
	answer := answer(query, ordered);
	PERFORM set_config('mongo_fdw.enable_pushdown', 'off', true);
	other := answer(query, ordered);
	same := answer IS NOT DISTINCT FROM other;
	IF NOT same THEN
		answer := answer || ' <> ' || other;
	END IF;
END $$;

-- work here is dear, so that what can be pushed is
SET cpu_tuple_cost = 10;
SET cpu_operator_cost = 10;
SET enable_hashagg = off;
SET TimeZone = 'UTC';

-- every built-in aggregate of one argument over every column that it takes
CREATE TABLE every_aggregate AS
SELECT DISTINCT p.proname AS name, c.attname AS column_name, c.atttypid::regtype AS type,
	format('SELECT g, %I(%I) FROM a GROUP BY g', p.proname, c.attname) AS query
FROM pg_proc p JOIN pg_aggregate a ON a.aggfnoid = p.oid
JOIN pg_attribute c ON c.attrelid = 'a'::regclass AND c.attnum > 1
WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.pronargs = 1 AND a.aggkind = 'n' AND
	(p.proargtypes[0] = c.atttypid OR p.proargtypes[0] = '"any"'::regtype OR
	 p.proargtypes[0] = 'text'::regtype AND c.atttypid = 'varchar'::regtype) AND
	-- whose results depend on the order of rows
	p.proname !~ 'agg' AND NOT (c.atttypid = 'real'::regtype AND p.proname ~ 'sum|avg|var|stddev');
SELECT name, string_agg(column_name || CASE pushed WHEN 'all' THEN '' ELSE ' -' END ||
		CASE WHEN same THEN '' ELSE ' DIFFERS: ' || answer END, ', ' ORDER BY column_name) AS columns
FROM every_aggregate, compare(query) GROUP BY name ORDER BY name;

-- the same without groups, over nothing, with FILTER and with DISTINCT
SELECT form, count(*), count(*) FILTER (WHERE pushed = 'all') AS pushed, bool_and(same) AS same,
	string_agg(answer, ' ') FILTER (WHERE NOT same) AS differences
FROM (VALUES ('SELECT %I(%I) FROM a'), ('SELECT %I(%I) FROM a WHERE g > 4'), ('SELECT %I(%I) FILTER (WHERE b) FROM a'),
	('SELECT g, %I(%I) FILTER (WHERE i4 > 4) FROM a GROUP BY g'), ('SELECT %I(%I) FROM a WHERE n IS NOT NULL GROUP BY b')) forms (form),
	every_aggregate, compare(format(form, name, column_name)) GROUP BY form ORDER BY form;
SELECT name, string_agg(column_name || CASE pushed WHEN 'all' THEN '' ELSE ' -' END ||
		CASE WHEN same THEN '' ELSE ' DIFFERS: ' || answer END, ', ' ORDER BY column_name) AS distinct_columns
FROM every_aggregate, compare(format('SELECT g, %I(DISTINCT %I), count(*) FROM a GROUP BY g', name, column_name))
WHERE name IN ('count', 'sum', 'avg', 'min', 'bool_and') AND type <> 'jsonb'::regtype
GROUP BY name ORDER BY name;

-- keys of every type; which of equal values is shown is free
SELECT column_name, compare.*
FROM (SELECT DISTINCT column_name FROM every_aggregate) keys,
	compare(format('SELECT count(*), min(_id) FROM a GROUP BY %I', column_name)) ORDER BY column_name;

-- all the rest
SELECT query, compare.* FROM (VALUES
	('SELECT g, i2, count(*) FROM a GROUP BY g, i2'),
	('SELECT t, g, sum(i4) FROM a GROUP BY t, g'),
	('SELECT g FROM a GROUP BY g'),
	('SELECT 1 FROM a GROUP BY g'),
	('SELECT i4 / 2, count(*) FROM a GROUP BY i4 / 2'),
	('SELECT (i2 + 1) * 2, sum(i4) * 2 / count(*) FROM a GROUP BY i2 + 1'),
	('SELECT DISTINCT g, b FROM a'),
	('SELECT DISTINCT trim_scale(m) FROM a'),
	('SELECT DISTINCT count(*) FROM a GROUP BY g'),
	('SELECT DISTINCT ON (g) g, _id FROM a ORDER BY g, _id'),
	('SELECT g, count(*) FROM a GROUP BY g HAVING count(*) > 1'),
	('SELECT g, count(*) FROM a GROUP BY g HAVING avg(i4) > 1'),
	('SELECT g, count(*) FROM a GROUP BY g HAVING sum(m) > 1 AND min(t) < ''b'''),
	('SELECT count(*) FROM a HAVING count(*) > 100'),
	('SELECT count(*), max(f), min(m) FROM a WHERE f >= -2 AND f <= 2'),
	('SELECT count(*), max(f) FROM a WHERE f >= -2 AND f <= ''NaN'''),
	('SELECT count(*), max(n) FROM a WHERE n > 0 AND n < ''NaN'''),
	('SELECT count(*), max(f) FROM a WHERE n > f AND f > n'),
	('SELECT count(*) FROM a WHERE (f < 9 AND f > -9) IS NOT TRUE'),
	('SELECT _id FROM a WHERE (n > 1 AND n < 2) OR (f > 1 AND i4 < 9) OR NOT (m < 1 OR m >= 3)'),
	('SELECT count(*) FROM a WHERE g > 9 HAVING count(*) = 0'),
	('SELECT 1 FROM a HAVING true'),
	('SELECT count(DISTINCT t), count(DISTINCT g) FROM a'),
	('SELECT sum(m * m), avg(m * (1 - m)), sum(m + i2), sum(i2::integer + 1), sum(CASE WHEN b THEN m ELSE 0 END) FROM a'),
	('SELECT g, count(*) FROM a GROUP BY ROLLUP (g)'),
	('SELECT g, generate_series(1, 2) FROM a GROUP BY g'),
	('SELECT g, rank() OVER (ORDER BY count(*)) FROM a GROUP BY g'),
	('SELECT count(*) FROM a WHERE now() < ''2000-01-01'''),
	('SELECT count(*) FROM a WHERE random() < 0'),
	('SELECT string_agg(t, '','' ORDER BY _id) FROM a'),
	('SELECT sum(i4 ORDER BY i4) FROM a'),
	('SELECT k, (SELECT sum(i4) FROM a WHERE g = k) FROM generate_series(1, 3) k'),
	('SELECT x.g, x.c + y.c FROM (SELECT g, count(*) c FROM a GROUP BY g) x JOIN (SELECT g, count(*) c FROM a GROUP BY g) y USING (g)')
	) queries (query), compare(query);

-- ORDER BY and LIMIT above groups, and where an index would not serve
SELECT query, compare.* FROM (VALUES
	('SELECT g, count(*) FROM a GROUP BY g ORDER BY g LIMIT 3'),
	('SELECT g, count(*) FROM a GROUP BY g ORDER BY g DESC LIMIT 2'),
	('SELECT g, count(*) FROM a GROUP BY g ORDER BY g NULLS FIRST LIMIT 2'),
	('SELECT g, count(*) FROM a GROUP BY g ORDER BY g DESC NULLS LAST LIMIT 2 OFFSET 1'),
	('SELECT g, sum(m) s FROM a GROUP BY g ORDER BY s DESC NULLS LAST, g LIMIT 2'),
	('SELECT g, avg(m) s FROM a GROUP BY g ORDER BY s DESC NULLS LAST, g LIMIT 2'),
	('SELECT t, count(*) FROM a GROUP BY t ORDER BY t DESC NULLS LAST LIMIT 3'),
	('SELECT DISTINCT d FROM a ORDER BY d LIMIT 3'),
	('SELECT _id, n FROM a ORDER BY n, _id LIMIT 8'),
	('SELECT _id, n FROM a ORDER BY n DESC, _id LIMIT 4'),
	('SELECT _id, n FROM a ORDER BY n NULLS FIRST, _id DESC LIMIT 4'),
	('SELECT _id, n FROM a ORDER BY n DESC NULLS LAST, _id LIMIT 4'),
	('SELECT _id, f FROM a ORDER BY b, f DESC, _id LIMIT 6'),
	('SELECT _id, t FROM a ORDER BY t, _id LIMIT 20'),
	('SELECT _id FROM a ORDER BY i4 % 3, _id LIMIT 3 OFFSET 2'),
	('SELECT _id, d FROM a ORDER BY d, _id LIMIT 20'),
	('SELECT i4, count(*) FROM a WHERE i4 = 5 GROUP BY i4 ORDER BY i4 LIMIT 2'),
	('SELECT i4 % 3, n FROM a WHERE i4 % 3 = 2 ORDER BY i4 % 3 LIMIT 1 OFFSET 4'),
	('SELECT count(*) FROM a ORDER BY 1 LIMIT 1')
	) queries (query), compare(query, true);

-- what is sent
SET mongo_fdw.enable_pushdown = on;
EXPLAIN (VERBOSE, COSTS OFF) SELECT g, count(*), sum(i4), avg(m) FROM a WHERE b GROUP BY g HAVING count(*) > 1 ORDER BY g DESC LIMIT 2;
EXPLAIN (VERBOSE, COSTS OFF) SELECT count(DISTINCT g) FROM a;
EXPLAIN (VERBOSE, COSTS OFF) SELECT DISTINCT t FROM a;
EXPLAIN (VERBOSE, COSTS OFF) SELECT _id FROM a ORDER BY i4 % 3 DESC LIMIT 3;

-- more digits than a Decimal128 has
INSERT INTO a_documents VALUES ('{"_id": 12, "g": 9, "n": {"$numberDecimal": "1E+30"}}'), ('{"_id": 13, "g": 9, "n": {"$numberDecimal": "1E-10"}}');
\set VERBOSITY default
SELECT sum(n) FROM a WHERE g = 9;
\set VERBOSITY terse
SELECT sum(n * 1e-6170) = 1e-6180 AS underflow FROM a WHERE _id = 13;
SELECT sum(n * 1e-6000) = 1e-6010 AS least FROM a WHERE _id = 13;
SET mongo_fdw.enable_aggregate_pushdown = off;
SELECT sum(n) FROM a WHERE g = 9;
SELECT sum(n * 1e-6170) = 1e-6180 AS underflow FROM a WHERE _id = 13;
RESET mongo_fdw.enable_aggregate_pushdown;
INSERT INTO a_documents VALUES ('{"_id": 14, "g": 10, "i4": {"$numberDouble": "1.0"}}');
SELECT sum(i4) FROM a WHERE g = 10;

-- prepared statements
PREPARE top (integer, bigint) AS SELECT g, count(*) FROM a WHERE g <= $1 GROUP BY g ORDER BY g DESC LIMIT $2;
SET plan_cache_mode = force_generic_plan;
EXPLAIN (VERBOSE, COSTS OFF) EXECUTE top (3, 2);
EXECUTE top (3, 2);
EXECUTE top (3, 0);
EXECUTE top (2, NULL);
EXECUTE top (NULL, 1);
EXECUTE top (2, -1);
RESET plan_cache_mode;

-- partition by partition
CREATE TABLE a_parts (_id integer, g integer, i4 integer, m numeric(12,2)) PARTITION BY LIST (g);
CREATE FOREIGN TABLE a_part1 PARTITION OF a_parts FOR VALUES IN (1) SERVER aggregates OPTIONS (database 'mongo_fdw_regress', collection 'aggregates_1');
CREATE FOREIGN TABLE a_part2 PARTITION OF a_parts FOR VALUES IN (2) SERVER aggregates OPTIONS (database 'mongo_fdw_regress', collection 'aggregates_2');
DELETE FROM a_parts;
INSERT INTO a_parts SELECT i, 1 + i % 2, i % 5, i FROM generate_series(1, 20) i;
SET enable_partitionwise_aggregate = on;
EXPLAIN (COSTS OFF) SELECT g, avg(m) FROM a_parts GROUP BY g;
EXPLAIN (COSTS OFF) SELECT i4, count(*), sum(i4) FROM a_parts GROUP BY i4;
SELECT g, avg(m) FROM a_parts GROUP BY g ORDER BY g;
SELECT i4, count(*), sum(i4), min(i4), bool_or(g = 1) FROM a_parts GROUP BY i4 ORDER BY i4;
SELECT count(*), sum(i4) FROM a_parts WHERE i4 > 5;
DELETE FROM a_parts;

-- from key to key of an index, however many documents have each; and over all documents without one
CREATE FOREIGN TABLE a_many (g integer OPTIONS (indexed 'true'), h integer OPTIONS (path 'i2')) SERVER aggregates
	OPTIONS (database 'mongo_fdw_regress', collection 'aggregates', estimated_rows '1000000');
RESET cpu_tuple_cost;
RESET cpu_operator_cost;
RESET enable_hashagg;
EXPLAIN (VERBOSE, COSTS OFF) SELECT DISTINCT g FROM a_many;
EXPLAIN (VERBOSE, COSTS OFF) SELECT DISTINCT h FROM a_many;
SELECT DISTINCT g FROM a_many ORDER BY g;

-- sums of float8, whose last digits may differ: the option float_sums
CREATE FOREIGN TABLE a_floats (_id integer, g integer, f double precision) SERVER aggregates
	OPTIONS (database 'mongo_fdw_regress', collection 'aggregates', estimated_rows '1000000');
ALTER SERVER aggregates OPTIONS (ADD fdw_tuple_cost '10000');
EXPLAIN (COSTS OFF) SELECT sum(f) FROM a_floats;
ALTER FOREIGN TABLE a_floats OPTIONS (ADD float_sums 'remote');
EXPLAIN (VERBOSE, COSTS OFF) SELECT sum(f), avg(f) FROM a_floats WHERE _id < 9;
SELECT sum(f), avg(f) FROM a_floats WHERE _id IN (1, 6, 8);
SELECT g, sum(f), avg(f) FROM a_floats GROUP BY g ORDER BY g;
SELECT sum(f), avg(f) FROM a_floats WHERE _id = 11;
SELECT sum(f), avg(f) FROM a_floats WHERE _id > 11;
SELECT sum(DISTINCT f), sum(f) FILTER (WHERE g = 1) FROM a_floats WHERE _id IN (1, 6, 8);
SET mongo_fdw.enable_pushdown = off;
SELECT sum(f), avg(f) FROM a_floats WHERE _id IN (1, 6, 8);
SELECT g, sum(f), avg(f) FROM a_floats GROUP BY g ORDER BY g;
RESET mongo_fdw.enable_pushdown;
-- nested sums are computed in the order of SQL, since another order would overflow or round
CREATE FOREIGN TABLE a_order (_id integer, l bigint, m numeric, p numeric(24,2), q numeric(24,2)) SERVER aggregates
	OPTIONS (database 'mongo_fdw_regress', collection 'aggregates_order');
DELETE FROM a_order;
INSERT INTO a_order VALUES (1, -1000000000000000003, '1E-30', 100000000000000000000, -100000000000000000000);
SELECT query, (compare(query)).* FROM unnest(ARRAY[
	'SELECT count(*) FROM a_order WHERE l + 9000000000000000000 + 1000000000000000001 = 8999999999999999998',
	'SELECT sum(l + 9000000000000000000 + 1000000000000000001), avg(l + 9000000000000000000 + 1000000000000000001) FROM a_order',
	'SELECT (l + 9000000000000000000 + 1000000000000000001) % 10, count(*) FROM a_order GROUP BY 1',
	'SELECT sum(m + (p + q)), sum((q + 100000000000000000000) + 0.000000000000000000000000000001) FROM a_order']) AS query;
DELETE FROM a_order WHERE l + 9000000000000000000 + 1000000000000000001 <> 8999999999999999998;
SELECT count(*) FROM a_order;
-- numerics have no positive exponent, and subnormal numbers are floats
CREATE FOREIGN TABLE a_decimals (__doc jsonb) SERVER aggregates OPTIONS (database 'mongo_fdw_regress', collection 'aggregates_order');
DELETE FROM a_order;
SET cpu_tuple_cost = 10;
SET cpu_operator_cost = 10;
INSERT INTO a_decimals VALUES ('{"_id": 1, "m": {"$numberDecimal": "1E+3"}}'), ('{"_id": 2, "m": {"$numberDecimal": "-12E+2"}}'), ('{"_id": 3, "m": 1e20}');
SELECT query, (compare(query)).* FROM unnest(ARRAY[
	'SELECT sum(m * 0.1) FROM a_order', 'SELECT sum(m), sum(m * 2.50) FROM a_order']) AS query;
INSERT INTO a_decimals VALUES ('{"_id": 4, "m": {"$numberDecimal": "1E-320"}}'), ('{"_id": 5, "m": {"$numberDecimal": "-3E-324"}}'), ('{"_id": 6, "m": {"$numberDecimal": "2.2250738585072012E-308"}}');
SELECT query, (compare(query)).* FROM unnest(ARRAY[
	'SELECT _id, max(m::float8) FROM a_order GROUP BY 1 ORDER BY 1']) AS query;
RESET cpu_tuple_cost;
RESET cpu_operator_cost;
DELETE FROM a_order;
ALTER SERVER aggregates OPTIONS (DROP fdw_tuple_cost);

-- over a network MongoDB groups
EXPLAIN (COSTS OFF) SELECT g, sum(h) FROM a_many GROUP BY g;
ALTER SERVER aggregates OPTIONS (ADD round_trip_time '20ms', ADD bandwidth '12MB');
EXPLAIN (VERBOSE, COSTS OFF) SELECT g, sum(h) FROM a_many GROUP BY g;
-- a cost for each document sent is none of MongoDB's work
ALTER SERVER aggregates OPTIONS (DROP round_trip_time, DROP bandwidth, ADD fdw_tuple_cost '10000');
EXPLAIN (COSTS OFF) SELECT g, sum(h) FROM a_many GROUP BY g;

DROP TABLE a_parts, every_aggregate;
DROP FUNCTION answer, plan_of, compare;
DROP SERVER aggregates CASCADE;
