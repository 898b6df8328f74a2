--
-- ORDER BY, LIMIT, OFFSET, counts and extremes; joins by parameterized scans.
--
\getenv mongo_host MONGO_HOST
\getenv mongo_port MONGO_PORT
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mongo_fdw;
CREATE SERVER order_limit FOREIGN DATA WRAPPER mongo_fdw
	OPTIONS (address :'mongo_host', port :'mongo_port');
CREATE USER MAPPING FOR CURRENT_USER SERVER order_limit;
RESET client_min_messages;

CREATE FOREIGN TABLE o_numbers (
	_id		int NOT NULL,
	n		int OPTIONS (indexed 'true'),
	half	float8 OPTIONS (indexed 'true'),
	price	numeric,
	modulo	int,
	day		date,
	square	int
) SERVER order_limit OPTIONS (database 'mongo_fdw_regress', collection 'numbers');

-- MongoDB sorts what it orders as PostgreSQL does, where NULLs are in place
EXPLAIN (VERBOSE, COSTS OFF) SELECT n FROM o_numbers ORDER BY _id DESC LIMIT 3;
SELECT n FROM o_numbers ORDER BY _id DESC LIMIT 3;
EXPLAIN (VERBOSE, COSTS OFF) SELECT _id, square FROM o_numbers ORDER BY square NULLS FIRST, _id DESC LIMIT 3;
SELECT _id, square FROM o_numbers ORDER BY square NULLS FIRST, _id DESC LIMIT 3;
SELECT _id, square FROM o_numbers ORDER BY square DESC NULLS LAST LIMIT 2;
EXPLAIN (VERBOSE, COSTS OFF) SELECT _id, square FROM o_numbers WHERE square > 100 ORDER BY square LIMIT 2 OFFSET 1;
SELECT _id, square FROM o_numbers WHERE square > 100 ORDER BY square LIMIT 2 OFFSET 1;

-- in parts where NULL or NaN of the first key stands elsewhere
SET enable_sort = off;
EXPLAIN (VERBOSE, COSTS OFF) SELECT _id, square FROM o_numbers ORDER BY square DESC, _id LIMIT 3 OFFSET 99;
SELECT _id, square FROM o_numbers ORDER BY square DESC, _id LIMIT 3 OFFSET 99;
RESET enable_sort;
EXPLAIN (VERBOSE, COSTS OFF) SELECT _id, half FROM o_numbers ORDER BY half DESC LIMIT 3;
EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, BUFFERS OFF, SUMMARY OFF) SELECT _id, half FROM o_numbers ORDER BY half DESC LIMIT 3;
SELECT _id, half FROM o_numbers ORDER BY half DESC LIMIT 3;
SELECT _id, square FROM o_numbers WHERE n > 980 ORDER BY square, _id;

-- and not otherwise: NULLs of a later key, rounding, the time of day
SET cpu_tuple_cost = 0.1;
EXPLAIN (VERBOSE, COSTS OFF) SELECT modulo, square FROM o_numbers ORDER BY modulo NULLS FIRST, square LIMIT 3;
RESET cpu_tuple_cost;
EXPLAIN (VERBOSE, COSTS OFF) SELECT price FROM o_numbers ORDER BY price NULLS FIRST LIMIT 3;
EXPLAIN (VERBOSE, COSTS OFF) SELECT day FROM o_numbers ORDER BY day NULLS FIRST, _id LIMIT 3;
SET mongo_fdw.enable_order_by_pushdown = off;
EXPLAIN (VERBOSE, COSTS OFF) SELECT n FROM o_numbers ORDER BY _id DESC LIMIT 3;
RESET mongo_fdw.enable_order_by_pushdown;

-- LIMIT: only above what is exact; parameters; nothing and everything
EXPLAIN (VERBOSE, COSTS OFF) SELECT n FROM o_numbers WHERE n > 10 LIMIT 2;
EXPLAIN (VERBOSE, COSTS OFF) SELECT n FROM o_numbers WHERE sqrt(price) > 3.2 LIMIT 2;
SELECT count(*) FROM (SELECT n FROM o_numbers WHERE sqrt(price) > 3.2 LIMIT 2) s;
SELECT n FROM o_numbers LIMIT 0;
SELECT n FROM o_numbers ORDER BY _id LIMIT NULL OFFSET 998;
PREPARE page (bigint, bigint) AS SELECT n FROM o_numbers ORDER BY _id LIMIT $1 OFFSET $2;
SET plan_cache_mode = force_generic_plan;
EXPLAIN (VERBOSE, COSTS OFF) EXECUTE page (2, 10);
EXECUTE page (2, 10);
EXECUTE page (NULL, 999);
EXECUTE page (0, 0);
EXECUTE page (-1, 0);
EXECUTE page (1, -1);
RESET plan_cache_mode;

-- counts and extremes
EXPLAIN (VERBOSE, COSTS OFF) SELECT count(*) FROM o_numbers WHERE n BETWEEN 10 AND 19;
SELECT count(*) FROM o_numbers WHERE n BETWEEN 10 AND 19;
SELECT count(*) + 1 AS more FROM o_numbers WHERE n > 5000;
EXPLAIN (VERBOSE, COSTS OFF) SELECT count(*) FROM o_numbers WHERE sqrt(price) > 3.2;
SET mongo_fdw.enable_aggregate_pushdown = off;
EXPLAIN (VERBOSE, COSTS OFF) SELECT count(*) FROM o_numbers WHERE n BETWEEN 10 AND 19;
RESET mongo_fdw.enable_aggregate_pushdown;
SET cpu_tuple_cost = 10;
EXPLAIN (VERBOSE, COSTS OFF) SELECT count(square), min(square), max(day) FROM o_numbers;
SELECT count(square), min(square), max(day) FROM o_numbers;
SELECT count(square), min(square), max(day) FROM o_numbers WHERE n < 0;
RESET cpu_tuple_cost;

-- a parameterized scan through an index, and one without: not for each row
SET mongo_fdw.enable_batched_joins = off;
CREATE TEMP TABLE keys AS SELECT k FROM generate_series(1, 30, 7) k;
ANALYZE keys;
EXPLAIN (VERBOSE, COSTS OFF) SELECT k, square FROM keys JOIN o_numbers ON _id = k;
SELECT k, square FROM keys JOIN o_numbers ON _id = k ORDER BY k;
EXPLAIN (COSTS OFF) SELECT k, square FROM keys JOIN o_numbers ON modulo = k;
SELECT k, (SELECT count(*) FROM o_numbers WHERE modulo = k) FROM keys ORDER BY k;
SELECT k, l.n FROM keys, LATERAL (SELECT n FROM o_numbers WHERE n > k * 10 ORDER BY _id LIMIT 1) l ORDER BY k;
SELECT k FROM keys WHERE EXISTS (SELECT FROM o_numbers WHERE square = k * k) ORDER BY k;
SELECT a.n, b.n FROM o_numbers a JOIN o_numbers b ON a._id = b.square WHERE b.n < 5 ORDER BY 1;
RESET mongo_fdw.enable_batched_joins;

-- a cursor, both ways
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT n FROM o_numbers ORDER BY _id;
FETCH 2 FROM c;
FETCH BACKWARD 1 FROM c;
MOVE 990 FROM c;
FETCH ALL FROM c;
COMMIT;

DROP SERVER order_limit CASCADE;
