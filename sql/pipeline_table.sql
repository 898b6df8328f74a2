--
-- Option pipeline: a table whose rows are what stages make of a collection.
-- The documents are those of t/lib/load_regress.py.
--
\getenv mongo_host MONGO_HOST
\getenv mongo_port MONGO_PORT
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mongo_fdw;
CREATE SERVER derived FOREIGN DATA WRAPPER mongo_fdw
	OPTIONS (round_trip_time '0.1ms', bandwidth '1e9', address :'mongo_host', port :'mongo_port');
CREATE USER MAPPING FOR CURRENT_USER SERVER derived;
RESET client_min_messages;

CREATE FOREIGN TABLE by_modulo (modulo int OPTIONS (path '_id'), numbers int, largest int, root_of float8)
	SERVER derived OPTIONS (database 'mongo_fdw_regress', collection 'numbers', pipeline
	'[{"$match": {"n": {"$lte": 500}}},
	  {"$group": {"_id": "$modulo", "numbers": {"$sum": 1}, "largest": {"$max": "$n"}}},
	  {"$set": {"root_of": {"$sqrt": "$largest"}}}]');

-- conditions, order, limit and aggregates are stages after it
SET cpu_tuple_cost = 10;
SET cpu_operator_cost = 10;
EXPLAIN (VERBOSE, COSTS OFF) SELECT * FROM by_modulo WHERE numbers > 71 ORDER BY modulo DESC LIMIT 2;
SELECT * FROM by_modulo WHERE numbers > 71 ORDER BY modulo DESC LIMIT 2;
EXPLAIN (VERBOSE, COSTS OFF) SELECT numbers, count(*), max(largest) FROM by_modulo GROUP BY numbers HAVING count(*) > 1;
SELECT numbers, count(*), max(largest) FROM by_modulo GROUP BY numbers HAVING count(*) > 1 ORDER BY 1;
EXPLAIN (VERBOSE, COSTS OFF) SELECT count(*) FROM by_modulo WHERE largest < 499;
SELECT count(*) FROM by_modulo WHERE largest < 499;
SELECT count(*) FROM by_modulo;
RESET cpu_tuple_cost;
RESET cpu_operator_cost;

-- a parameter, a condition that PostgreSQL tests, and nothing pushed down at all
PREPARE one (int) AS SELECT largest FROM by_modulo WHERE modulo = $1;
EXPLAIN (VERBOSE, COSTS OFF) EXECUTE one (3);
SET plan_cache_mode = force_generic_plan;
EXPLAIN (VERBOSE, COSTS OFF) EXECUTE one (3);
EXECUTE one (3);
EXECUTE one (NULL);
SELECT modulo FROM by_modulo WHERE hashint4(largest) <> 0 AND largest > 497 ORDER BY 1;
SET mongo_fdw.enable_pushdown = off;
EXPLAIN (VERBOSE, COSTS OFF) SELECT * FROM by_modulo WHERE numbers > 71 ORDER BY modulo DESC LIMIT 2;
SELECT * FROM by_modulo WHERE numbers > 71 ORDER BY modulo DESC LIMIT 2;
RESET mongo_fdw.enable_pushdown;

-- a null _id, which no document of a collection has, is in SQL's place
CREATE FOREIGN TABLE by_square (half int OPTIONS (path '_id'), n int) SERVER derived
	OPTIONS (database 'mongo_fdw_regress', collection 'numbers', pipeline
	'[{"$match": {"n": {"$gte": 8, "$lte": 10}}}, {"$group": {"_id": "$square", "n": {"$sum": 1}}}]');
SELECT * FROM by_square ORDER BY half;
SELECT * FROM by_square ORDER BY half DESC LIMIT 1;

-- joins: such a table looks up, and is not looked up in
CREATE FOREIGN TABLE numbers (_id int, n int, modulo int) SERVER derived
	OPTIONS (database 'mongo_fdw_regress', collection 'numbers');
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT m.modulo, n._id FROM by_modulo m JOIN numbers n ON n._id = m.largest ORDER BY 1;
SELECT n._id, m.largest FROM numbers n JOIN by_modulo m ON m.modulo = n.n WHERE n.n < 4 ORDER BY 1;
SELECT n._id, m.largest FROM numbers n LEFT JOIN by_modulo m ON m.modulo = n._id WHERE n.n BETWEEN 5 AND 8 ORDER BY 1;
RESET enable_hashjoin;
RESET enable_mergejoin;

-- what the statistics say is said of the pipeline's rows
ANALYZE by_modulo;
SELECT reltuples FROM pg_class WHERE relname = 'by_modulo';
SELECT n_distinct FROM pg_stats WHERE tablename = 'by_modulo' AND attname = 'modulo';
SELECT * FROM mongo_fdw_check('by_modulo');
ALTER FOREIGN TABLE by_modulo OPTIONS (use_remote_estimate 'true', count_from_metadata 'true');
EXPLAIN SELECT * FROM by_modulo;
SELECT count(*) FROM by_modulo;

-- a user's documents are not taken for placeholders
CREATE FOREIGN TABLE verbatim (doc jsonb OPTIONS (path 'd')) SERVER derived
	OPTIONS (database 'mongo_fdw_regress', collection 'numbers', pipeline
	'[{"$match": {"n": 1, "$and": [{"n": 1}]}}, {"$set": {"d": {"$literal": {"$parameter": 0, "$verbatim": [1]}}}}]');
SELECT * FROM verbatim;

-- read-only
INSERT INTO by_modulo VALUES (1);
UPDATE by_modulo SET numbers = 1;
DELETE FROM by_modulo;
COPY by_modulo FROM STDIN;
\.
TRUNCATE by_modulo;
SELECT is_insertable_into FROM information_schema.tables WHERE table_name = 'by_modulo';

-- what DDL refuses
ALTER FOREIGN TABLE by_modulo OPTIONS (SET pipeline '[{"$match"');
ALTER FOREIGN TABLE by_modulo OPTIONS (SET pipeline '{"$match": {}}');
ALTER FOREIGN TABLE by_modulo OPTIONS (SET pipeline '[1]');
ALTER FOREIGN TABLE by_modulo OPTIONS (SET pipeline '[{"$match": {}, "$limit": 1}]');
ALTER FOREIGN TABLE by_modulo OPTIONS (SET pipeline '[{"match": {}}]');
ALTER FOREIGN TABLE by_modulo OPTIONS (SET pipeline '[{"$limit": 1}, {"$out": "elsewhere"}]');
ALTER FOREIGN TABLE by_modulo OPTIONS (SET pipeline '[{"$merge": {"into": "elsewhere"}}]');
ALTER FOREIGN TABLE by_modulo OPTIONS (SET pipeline '');

-- a mistake in it is said to be there; one in what a query adds is not
ALTER FOREIGN TABLE by_modulo OPTIONS (SET use_remote_estimate 'false', SET pipeline '[{"$mtach": {}}]');
SELECT * FROM by_modulo;
ALTER FOREIGN TABLE by_modulo OPTIONS (SET pipeline '[{"$set": {"largest": {"$nothing": 1}}}]');
SELECT * FROM by_modulo;
ALTER FOREIGN TABLE by_modulo OPTIONS (SET pipeline '[{"$set": {"largest": {"$divide": ["$n", 0]}}}]');
SELECT * FROM by_modulo;
ALTER FOREIGN TABLE by_modulo OPTIONS (SET pipeline '[{"$limit": "many"}]');
SELECT * FROM by_modulo;
ALTER FOREIGN TABLE by_modulo OPTIONS (SET pipeline '[{"$currentOp": {}}]');
SELECT * FROM by_modulo;
ALTER FOREIGN TABLE by_modulo OPTIONS (SET pipeline '[{"$match": {"n": {"$nothing": 1}}}]');
SELECT * FROM by_modulo;

-- JavaScript, only if the owner of the server allows it
ALTER FOREIGN TABLE by_modulo OPTIONS (SET pipeline '[{"$match": {"$where": "this.n < 3"}}]');
SELECT * FROM by_modulo;
ALTER FOREIGN TABLE by_modulo OPTIONS (SET pipeline
	'[{"$facet": {"a": [{"$group": {"_id": 1, "x": {"$accumulator": {}}}}]}}]');
SELECT * FROM by_modulo;
ANALYZE by_modulo;
ALTER FOREIGN TABLE by_modulo OPTIONS (SET pipeline
	'[{"$group": {"_id": 1, "x": {"$_internalJsReduce": {"data": {"k": 1, "v": "$n"}, "eval": "function(k, v) { return 1 }"}}}}]');
SELECT * FROM by_modulo;
ALTER FOREIGN TABLE by_modulo OPTIONS (SET pipeline
	'[{"$set": {"x": {"$_internalJsEmit": {"this": "$$ROOT", "eval": "function() { emit(1, 1) }"}}}}]');
SELECT * FROM by_modulo;
ALTER FOREIGN TABLE by_modulo OPTIONS (SET pipeline
	'[{"$match": {"$expr": {"$function": {"body": "function(n) { return n < 3 }", "args": ["$n"], "lang": "js"}}}}]');
SELECT modulo FROM by_modulo ORDER BY 1;
ALTER SERVER derived OPTIONS (allow_javascript 'true');
SELECT modulo FROM by_modulo ORDER BY 1;
ALTER SERVER derived OPTIONS (SET allow_javascript 'false');
SELECT modulo FROM by_modulo ORDER BY 1;

SET client_min_messages = warning;
DROP SERVER derived CASCADE;
