--
-- Scans in plans and states that are out of the ordinary.
-- The documents are those of t/lib/load_regress.py.
--
\getenv mongo_host MONGO_HOST
\getenv mongo_port MONGO_PORT
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mongo_fdw;
CREATE SERVER scans FOREIGN DATA WRAPPER mongo_fdw
	OPTIONS (address :'mongo_host', port :'mongo_port');
CREATE USER MAPPING FOR CURRENT_USER SERVER scans;
RESET client_min_messages;
SET timezone = 'UTC';

CREATE FOREIGN TABLE s_numbers (
	_id		int,
	n		int OPTIONS (indexed 'true'),
	half	float8,
	even	bool,
	name	text,
	modulo	int,
	square	int
) SERVER scans OPTIONS (database 'mongo_fdw_regress', collection 'numbers');
CREATE FOREIGN TABLE s_nulls (_id int, a int, b int)
	SERVER scans OPTIONS (database 'mongo_fdw_regress', collection 'nulls');
CREATE FOREIGN TABLE s_people (
	_id		name,
	age		int,
	address	jsonb
) SERVER scans OPTIONS (database 'mongo_fdw_regress', collection 'people');

-- outer, semi and anti joins; keys that are NULL
SELECT l._id, l.a, n.n FROM s_nulls l LEFT JOIN s_numbers n ON n.n = l.a ORDER BY 1;
SELECT l._id FROM s_nulls l WHERE NOT EXISTS (SELECT FROM s_numbers n WHERE n.n = l.a) ORDER BY 1;
SELECT l._id FROM s_nulls l WHERE l.a NOT IN (SELECT b FROM s_nulls) ORDER BY 1;
SELECT l._id, n.n, n IS NULL AS missing FROM s_nulls l
	LEFT JOIN s_numbers n ON n._id = l.a AND n.n > l.b ORDER BY 1;
SELECT l._id, r._id FROM s_nulls l FULL JOIN s_nulls r ON l.a = r.b AND r._id > 1 ORDER BY 1, 2;

-- rescans, with the same parameter and with others, NULL among them
SELECT g, (SELECT count(*) FROM s_numbers WHERE n < g), (SELECT count(*) FROM s_nulls)
	FROM unnest(ARRAY[1, 5, NULL, 3]) g;
SELECT g, x.* FROM generate_series(0, 3) g, LATERAL
	(SELECT _id, half FROM s_numbers WHERE modulo = g ORDER BY _id DESC LIMIT g) x;
SELECT l._id, x.n FROM s_nulls l LEFT JOIN LATERAL
	(SELECT n, l.b + n AS sum FROM s_numbers WHERE n IN (l.a, l.b + 1)) x ON x.sum > 1 ORDER BY 1, 2;

-- whole rows, system columns, row locks, dropped and added columns
CREATE FOREIGN TABLE s_changing (_id int, gone int, a int)
	SERVER scans OPTIONS (database 'mongo_fdw_regress', collection 'nulls');
PREPARE changing (int) AS SELECT a, count(*) FROM s_changing WHERE _id <= $1 GROUP BY a ORDER BY a;
EXECUTE changing (4);
ALTER FOREIGN TABLE s_changing DROP COLUMN gone, ADD COLUMN b int;
EXECUTE changing (4);
SELECT s_changing, tableoid::regclass FROM s_changing WHERE _id < 3 ORDER BY _id;
SELECT * FROM s_changing WHERE _id = 1 FOR UPDATE;
ALTER FOREIGN TABLE s_changing ALTER COLUMN a OPTIONS (path 'b');
EXECUTE changing (4);
ALTER FOREIGN TABLE s_changing OPTIONS (SET collection 'numbers');
EXECUTE changing (4);
CREATE FOREIGN TABLE s_nothing () SERVER scans
	OPTIONS (database 'mongo_fdw_regress', collection 'nulls');
SELECT count(*) FROM s_nothing;
SELECT s_nothing FROM s_nothing LIMIT 2;

-- cursors: scrolled, held, in subtransactions that fail
BEGIN;
DECLARE scrolled SCROLL CURSOR FOR SELECT n FROM s_numbers ORDER BY n NULLS FIRST;
FETCH 2 FROM scrolled;
FETCH ABSOLUTE 999 FROM scrolled;
FETCH BACKWARD 2 FROM scrolled;
DECLARE held CURSOR WITH HOLD FOR SELECT n FROM s_numbers WHERE modulo = 3 ORDER BY n NULLS FIRST;
FETCH 1 FROM held;
DECLARE open NO SCROLL CURSOR FOR SELECT n FROM s_numbers ORDER BY n NULLS FIRST;
FETCH 1 FROM open;
SAVEPOINT before;
SELECT 1 / (n - 700) FROM s_numbers;
ROLLBACK TO before;
MOVE 500 FROM open;
FETCH 1 FROM open;
COMMIT;
FETCH 2 FROM held;
CLOSE held;

-- a field of _id is no row identity
CREATE FOREIGN TABLE s_compound (_id jsonb, v int)
	SERVER scans OPTIONS (database 'mongo_fdw_regress', collection 'written_compound');
CREATE FOREIGN TABLE s_part (x int OPTIONS (path '_id.x'), v int)
	SERVER scans OPTIONS (database 'mongo_fdw_regress', collection 'written_compound');
DELETE FROM s_compound;
INSERT INTO s_compound SELECT jsonb_build_object('x', i, 'y', -i), i FROM generate_series(1, 4) i;
DELETE FROM s_part WHERE x = 2 AND random() >= 0;
UPDATE s_part SET v = v * 10 WHERE x = 3 AND random() >= 0;
SELECT * FROM s_compound ORDER BY v;
DROP FOREIGN TABLE s_part;
DELETE FROM s_compound;

-- one field as two sort keys is one
CREATE FOREIGN TABLE s_twice (a int OPTIONS (path 'address.floor'), b bigint OPTIONS (path 'address.floor'))
	SERVER scans OPTIONS (database 'mongo_fdw_regress', collection 'people');
EXPLAIN (VERBOSE, COSTS OFF)
SELECT * FROM s_twice ORDER BY a NULLS FIRST, b DESC NULLS LAST LIMIT 2;

-- jsonb is compared with what has no collation
EXPLAIN (VERBOSE, COSTS OFF) SELECT age FROM s_people WHERE address->'city' = '"Oslo"';
SELECT age FROM s_people WHERE address->'city' = '"Oslo"' ORDER BY age;

-- an index on it finds none of what is inside
CREATE FOREIGN TABLE s_inside (_id jsonb, i jsonb OPTIONS (path 'address', indexed 'true'), j jsonb OPTIONS (path 'address'))
	SERVER scans OPTIONS (database 'mongo_fdw_regress', collection 'people');
CREATE FUNCTION plan_cost(condition text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT json) SELECT FROM s_inside WHERE ' || condition INTO plan;
	RETURN plan->0->'Plan'->>'Total Cost';
END $$;
SELECT condition, plan_cost(replace(condition, '?', 'i')) < plan_cost(replace(condition, '?', 'j')) AS by_index,
	plan_cost(replace(condition, '?', '_id')) < plan_cost(replace(condition, '?', 'j')) AS by_index_of_id
FROM (VALUES ('? = ''1'''), ('?[''floor''] = ''1'''), ('?->''floor'' = ''1'''), ('? #>> ''{floor}'' = ''1''')) AS v(condition);
DROP FUNCTION plan_cost(text);

-- deeper than MongoDB takes: tested here from some depth on
CREATE FUNCTION nested(levels int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	condition text := 'modulo = 3';
	result	bigint;
BEGIN
	FOR i IN 1..levels LOOP
		condition := format(CASE i % 2 WHEN 0 THEN '(n > %s AND (%s))' ELSE '(n = %s OR (%s))' END,
							i, condition);
	END LOOP;
	EXECUTE 'SELECT count(*) FROM s_numbers WHERE ' || condition INTO result;
	RETURN result;
END $$;
SELECT nested(50), nested(150), nested(400);
SET mongo_fdw.enable_pushdown = off;
SELECT nested(50), nested(150), nested(400);
RESET mongo_fdw.enable_pushdown;
DROP FUNCTION nested;
SELECT count(*) FROM s_people
	WHERE address #>> array_fill('a'::text, ARRAY[150]) = 'x';

-- larger than MongoDB takes: a constant is compared here, a parameter is an error
SELECT count(*) FROM s_numbers WHERE name = repeat('x', 17000000);
SELECT count(*) FROM s_numbers WHERE name = (SELECT repeat('x', 17000000));
SELECT count(*) FROM s_numbers WHERE n = ANY ((SELECT array_agg(i) FROM generate_series(1, 2000000) i)::int[]);
SELECT count(*) FROM s_numbers WHERE n = ANY ((SELECT array_agg(i) FROM generate_series(1, 20000) i)::int[]);

-- a value that the column might not hold, where type mismatches read as NULL
CREATE FOREIGN TABLE s_narrow (_id int, n int2 OPTIONS (path 'square'))
	SERVER scans OPTIONS (database 'mongo_fdw_regress', collection 'numbers', type_mismatch 'null');
SELECT * FROM s_narrow WHERE n = 998001;
SELECT * FROM s_narrow WHERE n IN (961, 998001);
SELECT * FROM s_narrow WHERE n = 961::int2;
DROP FOREIGN TABLE s_narrow;

-- a Double reads as PostgreSQL's own cast has it, with up to 15 digits, however it is read
CREATE FOREIGN TABLE s_doubles (_id int, f float8, n numeric OPTIONS (path 'f'), m numeric(15,2) OPTIONS (path 'f'),
	w numeric(18,5) OPTIONS (path 'f'), i numeric(16) OPTIONS (path 'f'), l numeric(40,3) OPTIONS (path 'f'))
	SERVER scans OPTIONS (database 'mongo_fdw_regress', collection 'doubles');
DELETE FROM s_doubles;
INSERT INTO s_doubles (_id, f) SELECT row_number() OVER (), f * (1 + ulps * 2.220446049250313e-16) * sign
FROM (SELECT i::float8 / d FROM generate_series(0, 999) i, unnest('{1, 8, 3, 100, 1000, 1e6, 1e9}'::float8[]) d
	UNION ALL SELECT i * 1.23456789012345 * 10::float8 ^ e FROM generate_series(1, 9) i, generate_series(-20, 11) e
	UNION ALL SELECT unnest('{999999999999.995, 0.005, 1.005, 2.675, 1e12, 123456789012.34, 123456789012.345}'::float8[])) numbers (f),
	generate_series(-1, 1) ulps, unnest('{1, -1}'::int[]) sign;
SELECT count(*) > 20000 AS many, count(*) FILTER (WHERE n::text <> f::numeric::text) AS n, count(*) FILTER (WHERE m::text <> f::numeric(15,2)::text) AS m,
	count(*) FILTER (WHERE w::text <> f::numeric(18,5)::text) AS w, count(*) FILTER (WHERE i::text <> f::numeric(16)::text) AS i,
	count(*) FILTER (WHERE l::text <> f::numeric(40,3)::text) AS l FROM s_doubles;
DELETE FROM s_doubles;
DROP FOREIGN TABLE s_doubles;

-- the planner's idea of a LIMIT is not the LIMIT; OFFSET skips what has been evaluated
CREATE TABLE wanted (rows bigint);
INSERT INTO wanted VALUES (1);
CREATE FUNCTION rows_wanted() RETURNS bigint LANGUAGE plpgsql STABLE AS
	'BEGIN RETURN (SELECT rows FROM wanted); END';
PREPARE limited AS SELECT half FROM s_numbers ORDER BY half LIMIT rows_wanted();
EXECUTE limited;
UPDATE wanted SET rows = 3;
EXECUTE limited;
DEALLOCATE limited;
CREATE SEQUENCE counter;
SELECT nextval('counter'), n FROM s_numbers ORDER BY n NULLS FIRST LIMIT 2 OFFSET 3;
DROP SEQUENCE counter;
DROP FUNCTION rows_wanted;
DROP TABLE wanted;

DEALLOCATE changing;
SET client_min_messages = warning;
DROP SERVER scans CASCADE;
