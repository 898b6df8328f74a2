--
-- Option unwind: a row for each element of an array.
--
\getenv mongo_host MONGO_HOST
\getenv mongo_port MONGO_PORT
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mongo_fdw;
CREATE SERVER unwinding FOREIGN DATA WRAPPER mongo_fdw
	OPTIONS (address :'mongo_host', port :'mongo_port', transactions 'off');
CREATE USER MAPPING FOR CURRENT_USER SERVER unwinding;
RESET client_min_messages;

CREATE FOREIGN TABLE baskets (_id int, customer text, lines jsonb, tags jsonb)
	SERVER unwinding OPTIONS (database 'mongo_fdw_regress', collection 'written_baskets');
INSERT INTO baskets
	SELECT n, 'c' || n % 4,
		   jsonb_agg(jsonb_build_object('product', (n * k) % 10, 'price', n + k,
										'parts', jsonb_build_array('p' || n % 3, 'p' || k)) ORDER BY k),
		   to_jsonb(ARRAY['t' || n % 5, 't' || n % 7])
	FROM generate_series(1, 20) n, generate_series(1, 3) k WHERE k <= n % 4 GROUP BY n;
INSERT INTO baskets VALUES (101, 'empty', '[]', '[]'), (102, 'null', 'null', NULL), (103, 'missing', NULL, NULL);
SELECT mongo_command('unwinding', 'mongo_fdw_regress', '{"createIndexes": "written_baskets", "indexes": [{"key": {"lines.product": 1}, "name": "product"}, {"key": {"tags": 1}, "name": "tags"}]}') ->> 'ok' AS ok;

CREATE FOREIGN TABLE basket_lines (
	_id int, customer text, n int, product int OPTIONS (path 'lines.product'),
	price int OPTIONS (path 'lines.price'), parts jsonb OPTIONS (path 'lines.parts'))
	SERVER unwinding OPTIONS (database 'mongo_fdw_regress', collection 'written_baskets',
							  unwind 'lines', ordinality 'n', estimated_rows '30');
CREATE VIEW oracle AS
	SELECT _id, customer, n::int, (line->>'product')::int AS product, (line->>'price')::int AS price, line->'parts' AS parts
	FROM baskets, jsonb_array_elements(CASE WHEN jsonb_typeof(lines) = 'array' THEN lines END)
		WITH ORDINALITY AS element (line, n);

-- a row for each element, and none for what has none
SELECT * FROM basket_lines ORDER BY _id, n LIMIT 5;
SELECT count(*), count(DISTINCT _id), sum(price), max(n) FROM basket_lines;
SELECT count(*), count(DISTINCT _id), sum(price), max(n) FROM oracle;
(TABLE basket_lines EXCEPT ALL TABLE oracle) UNION ALL (TABLE oracle EXCEPT ALL TABLE basket_lines);

-- conditions on documents come before, on elements after and, as a superset, before
EXPLAIN (VERBOSE, COSTS OFF) SELECT _id, n, price FROM basket_lines WHERE customer = 'c1' AND product = 3;
SELECT _id, n, price FROM basket_lines WHERE customer = 'c1' AND product = 3 ORDER BY 1, 2;
EXPLAIN (VERBOSE, COSTS OFF) SELECT _id, n FROM basket_lines WHERE product > 3 AND product < 6 AND price <> 9 AND n = 2;
SELECT _id, n FROM basket_lines WHERE product > 3 AND product < 6 AND price <> 9 AND n = 2 ORDER BY 1;
EXPLAIN (VERBOSE, COSTS OFF) SELECT _id FROM basket_lines WHERE product IS NULL OR customer = 'c9';
EXPLAIN (VERBOSE, COSTS OFF) SELECT _id FROM basket_lines WHERE product + price = 12;
SELECT _id, n FROM basket_lines WHERE product + price = 12 ORDER BY 1, 2;

-- parameters, of a prepared statement and of a nested loop
PREPARE lines_of (int, text) AS SELECT _id, n FROM basket_lines WHERE product = $1 AND customer = $2 ORDER BY 1, 2;
SET plan_cache_mode = force_generic_plan;
EXPLAIN (VERBOSE, COSTS OFF) EXECUTE lines_of (3, 'c1');
EXECUTE lines_of (3, 'c1');
EXECUTE lines_of (NULL, 'c1');
RESET plan_cache_mode;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT v.p, l._id, l.n FROM (VALUES (3), (4), (NULL)) v (p) JOIN basket_lines l ON l.product = v.p ORDER BY 1, 2, 3;
SELECT v.p, l._id, l.n FROM (VALUES (7), (99)) v (p) LEFT JOIN LATERAL
	(SELECT * FROM basket_lines WHERE product = v.p ORDER BY _id, n LIMIT 1) l ON true ORDER BY 1;
RESET enable_hashjoin;
RESET enable_mergejoin;

-- groups, order, limit and joins in MongoDB, where work in PostgreSQL is dear
SET cpu_tuple_cost = 10;
SET cpu_operator_cost = 10;
EXPLAIN (VERBOSE, COSTS OFF) SELECT product, count(*), max(price) FROM basket_lines WHERE customer <> 'c2' GROUP BY product;
SELECT product, count(*), max(price) FROM basket_lines WHERE customer <> 'c2' GROUP BY product ORDER BY 1;
SELECT product, count(*), max(price) FROM oracle WHERE customer <> 'c2' GROUP BY product ORDER BY 1;
EXPLAIN (VERBOSE, COSTS OFF) SELECT _id, n, price FROM basket_lines WHERE price > 10 ORDER BY price DESC, n LIMIT 3;
SELECT _id, n, price FROM basket_lines WHERE price > 10 ORDER BY price DESC, n LIMIT 3;
SELECT _id, n, price FROM oracle WHERE price > 10 ORDER BY price DESC, n LIMIT 3;
EXPLAIN (VERBOSE, COSTS OFF) SELECT count(*) FROM basket_lines;
EXPLAIN (VERBOSE, COSTS OFF) SELECT l.n, b.customer FROM basket_lines l JOIN baskets b ON b._id = l.product WHERE l.price = 13;
SELECT l._id, l.n, b.customer FROM basket_lines l JOIN baskets b ON b._id = l.product WHERE l.price = 13 ORDER BY 1, 2;
SELECT l._id, l.n, b.customer FROM oracle l JOIN baskets b ON b._id = l.product WHERE l.price = 13 ORDER BY 1, 2;
SELECT b.customer, count(l.n) FROM baskets b LEFT JOIN basket_lines l USING (_id) GROUP BY 1 ORDER BY 1;

-- with its own parent, what comes with it is not looked up, if _id is known to be unique
ANALYZE baskets;
EXPLAIN (VERBOSE, COSTS OFF) SELECT l.n, l.price, b.customer, b.tags FROM basket_lines l JOIN baskets b ON b._id = l._id WHERE l.product = 3 AND b.customer <> 'c2';
SELECT l._id, l.n, l.price, b.customer, b.tags FROM basket_lines l JOIN baskets b ON b._id = l._id WHERE l.product = 3 AND b.customer <> 'c2' ORDER BY 1, 2;
SELECT l._id, l.n, l.price, b.customer, b.tags FROM oracle l JOIN baskets b ON b._id = l._id WHERE l.product = 3 AND b.customer <> 'c2' ORDER BY 1, 2;
EXPLAIN (VERBOSE, COSTS OFF) SELECT b.customer, count(*), sum(l.price) FROM baskets b JOIN basket_lines l USING (_id) WHERE l.n = 1 GROUP BY b.customer;
SELECT b.customer, count(*), sum(l.price) FROM baskets b JOIN basket_lines l USING (_id) WHERE l.n = 1 GROUP BY b.customer ORDER BY 1;
SELECT b.customer, count(*), sum(l.price) FROM baskets b JOIN oracle l USING (_id) WHERE l.n = 1 GROUP BY b.customer ORDER BY 1;
SELECT l.n, b.customer, c.customer AS other FROM basket_lines l JOIN baskets b USING (_id) JOIN baskets c ON c._id = l.product WHERE l.price > 17 AND b.customer < c.customer ORDER BY 1, 2, 3;
SELECT l.n, b.customer, c.customer AS other FROM oracle l JOIN baskets b USING (_id) JOIN baskets c ON c._id = l.product WHERE l.price > 17 AND b.customer < c.customer ORDER BY 1, 2, 3;
-- but what unwinding has replaced is read apart, and what an outer join may lack
EXPLAIN (VERBOSE, COSTS OFF) SELECT l.n, b.lines FROM basket_lines l JOIN baskets b ON b._id = l._id WHERE l.price = 13;
SELECT l._id, l.n, b.lines FROM basket_lines l JOIN baskets b ON b._id = l._id WHERE l.price = 13 ORDER BY 1, 2;
EXPLAIN (VERBOSE, COSTS OFF) SELECT l.n, b.customer FROM basket_lines l LEFT JOIN baskets b ON b._id = l._id AND b.customer = 'c1' WHERE l.price = 13;
SELECT l._id, l.n, b.customer FROM basket_lines l LEFT JOIN baskets b ON b._id = l._id AND b.customer = 'c1' WHERE l.price = 13 ORDER BY 1, 2;
RESET cpu_tuple_cost;
RESET cpu_operator_cost;
-- one find has both; what is tested after unwinding alone is tested here
EXPLAIN (VERBOSE, COSTS OFF) SELECT l.n, b.tags FROM basket_lines l JOIN baskets b USING (_id) WHERE l.price = 13 AND b.customer <> 'c2' AND l.n < b._id;
SELECT b._id, l.n, b.tags FROM basket_lines l JOIN baskets b USING (_id) WHERE l.price = 13 AND b.customer <> 'c2' AND l.n < b._id ORDER BY 1, 2;
SELECT b._id, l.n, b.tags FROM oracle l JOIN baskets b USING (_id) WHERE l.price = 13 AND b.customer <> 'c2' AND l.n < b._id ORDER BY 1, 2;
PREPARE of_customer (text, int[]) AS SELECT l._id, l.n FROM basket_lines l JOIN baskets b USING (_id) WHERE b.customer = $1 AND b._id = ANY ($2) AND l.price > 10;
SET plan_cache_mode = force_generic_plan;
EXPLAIN (VERBOSE, COSTS OFF) EXECUTE of_customer ('c1', '{1,5,9,13,17}');
EXECUTE of_customer ('c1', '{1,5,9,13,17}');
EXECUTE of_customer ('c1', '{}');
EXECUTE of_customer (NULL, NULL);
RESET plan_cache_mode;
-- two documents with the same _id as text
CREATE FOREIGN TABLE twins (_id text, n int) SERVER unwinding OPTIONS (database 'mongo_fdw_regress', collection 'written_twins', estimated_rows '100000');
CREATE FOREIGN TABLE twin_lines (_id text, line int OPTIONS (path 'lines')) SERVER unwinding
	OPTIONS (database 'mongo_fdw_regress', collection 'written_twins', unwind 'lines', estimated_rows '100000');
SELECT mongo_command('unwinding', 'mongo_fdw_regress', '{"insert": "written_twins", "documents": [{"_id": "65a000000000000000000001", "n": 1, "lines": [1, 2]}, {"_id": {"$oid": "65a000000000000000000001"}, "n": 2, "lines": [3]}]}') ->> 'n' AS n;
ANALYZE twins, twin_lines;
SELECT t.n, l.line FROM twin_lines l JOIN twins t USING (_id) ORDER BY 1, 2;
DELETE FROM twins;

-- elements that are values, and their index
CREATE FOREIGN TABLE basket_tags (_id int, tag text OPTIONS (path 'tags'), n bigint) SERVER unwinding
	OPTIONS (database 'mongo_fdw_regress', collection 'written_baskets', unwind 'tags', ordinality 'n');
EXPLAIN (VERBOSE, COSTS OFF) SELECT _id FROM basket_tags WHERE tag = 't4';
SELECT _id, n FROM basket_tags WHERE tag = 't4' ORDER BY 1, 2;
SELECT tag, count(*) FROM basket_tags GROUP BY 1 ORDER BY 1;

-- elements of elements
CREATE FOREIGN TABLE basket_parts (
	_id int, product int OPTIONS (path 'lines.product'), part text OPTIONS (path 'lines.parts'), n int, m int)
	SERVER unwinding OPTIONS (database 'mongo_fdw_regress', collection 'written_baskets',
							  unwind 'lines, lines.parts', ordinality 'n, m');
EXPLAIN (VERBOSE, COSTS OFF) SELECT * FROM basket_parts WHERE product = 6 AND part = 'p2' AND _id < 10;
SELECT * FROM basket_parts WHERE product = 6 AND part = 'p2' AND _id < 10;
SELECT _id, product, part, n, m FROM oracle, jsonb_array_elements_text(parts) WITH ORDINALITY AS p (part, m)
	WHERE product = 6 AND part = 'p2' AND _id < 10;
SELECT count(*), count(DISTINCT (_id, n, m)) FROM basket_parts;

-- a row for those without elements as well
CREATE FOREIGN TABLE outer_lines (_id int, n int, product int OPTIONS (path 'lines.product'), line jsonb OPTIONS (path 'lines'))
	SERVER unwinding OPTIONS (database 'mongo_fdw_regress', collection 'written_baskets',
							  unwind 'lines', ordinality 'n', unwind_empty 'true');
EXPLAIN (VERBOSE, COSTS OFF) SELECT _id FROM outer_lines WHERE product IS NULL;
SELECT _id, n, line FROM outer_lines WHERE product IS NULL ORDER BY 1;
SELECT count(*) FROM outer_lines;
-- whatever else rejects a row, one without elements may meet what is asked of the element
CREATE FOREIGN TABLE outer_tags (_id int, tag text OPTIONS (path 'tags')) SERVER unwinding
	OPTIONS (database 'mongo_fdw_regress', collection 'written_baskets', unwind 'tags', unwind_empty 'true');
SELECT _id, product FROM outer_lines WHERE (_id > 100 AND product IS NULL) OR (_id < 9 AND product = 6) ORDER BY 1;
SELECT _id, tag FROM outer_tags WHERE (_id > 100 AND tag IS NULL) OR (_id < 20 AND tag = 't4') ORDER BY 1;
SET mongo_fdw.enable_pushdown = off;
SELECT _id, product FROM outer_lines WHERE (_id > 100 AND product IS NULL) OR (_id < 9 AND product = 6) ORDER BY 1;
SELECT _id, tag FROM outer_tags WHERE (_id > 100 AND tag IS NULL) OR (_id < 20 AND tag = 't4') ORDER BY 1;
RESET mongo_fdw.enable_pushdown;

-- something else than an array is an error, or by type_mismatch is read as NULL
INSERT INTO baskets VALUES (201, 'scalar', '5', '["t4", null, ["t4"], 5]'),
	(202, 'document', '{"product": 3, "price": 3}', '"t4"'),
	(203, 'elements', '[{"product": 3}, 3, null, [{"product": 3}], {"product": "x"}]', '[]');
SELECT count(*) FROM basket_lines;
SELECT count(*) FROM basket_lines WHERE _id < 200;
SELECT _id, n FROM basket_lines WHERE product = 3 AND _id > 200;
ALTER FOREIGN TABLE basket_lines OPTIONS (type_mismatch 'null');
ALTER FOREIGN TABLE outer_lines OPTIONS (type_mismatch 'null');
ALTER FOREIGN TABLE basket_tags OPTIONS (type_mismatch 'null');
SELECT _id, n, product FROM basket_lines WHERE _id > 100 ORDER BY 1, 2;
SELECT _id, n, product FROM basket_lines WHERE product = 3 AND _id > 100 ORDER BY 1, 2;
SELECT _id, n, line FROM outer_lines WHERE _id > 100 ORDER BY 1, 2;
SELECT _id, n, tag FROM basket_tags WHERE _id > 100 ORDER BY 1, 2;
SELECT _id, n, tag FROM basket_tags WHERE tag = 't4' ORDER BY 1, 2;

-- __mismatch, and keys of json that cannot be named, beside fields of the document
ALTER FOREIGN TABLE basket_lines ADD __mismatch jsonb, ADD tags jsonb;
SELECT _id, customer, n, product, __mismatch FROM basket_lines WHERE _id IN (3, 203) ORDER BY 1, 3;
SELECT _id, n FROM basket_lines WHERE _id IN (3, 203) AND __mismatch IS NULL ORDER BY 1, 2;
SELECT _id, n, tags -> '$a' AS a, tags -> 0 AS tag FROM basket_lines WHERE _id = 3 ORDER BY 1, 2;
ALTER FOREIGN TABLE basket_lines DROP __mismatch, DROP tags;
-- after stages of one's own; an array within a document
CREATE FOREIGN TABLE latest (customer text OPTIONS (path '_id'), product int OPTIONS (path 'last.lines.product'), n int)
	SERVER unwinding OPTIONS (database 'mongo_fdw_regress', collection 'written_baskets', pipeline
	'[{"$match": {"_id": {"$lt": 100}}}, {"$sort": {"_id": 1}}, {"$group": {"_id": "$customer", "last": {"$last": "$$ROOT"}}}]',
	unwind 'last.lines', ordinality 'n');
SELECT * FROM latest ORDER BY customer, n;
EXPLAIN (VERBOSE, COSTS OFF) SELECT * FROM latest WHERE product = 8 AND customer = 'c3';
SELECT * FROM latest WHERE product = 8 AND customer = 'c3';

-- what a policy hides is not told of
ALTER FOREIGN TABLE basket_lines OPTIONS (SET type_mismatch 'error');
CREATE VIEW guarded WITH (security_barrier) AS SELECT * FROM basket_lines WHERE customer = 'c1';
EXPLAIN (VERBOSE, COSTS OFF) SELECT n FROM guarded WHERE product = 3;
SELECT _id, n FROM guarded WHERE product = 3 ORDER BY 1, 2;

-- the complement of a condition on an element is not that of one on all of them
CREATE FOREIGN TABLE times (_id int, ds timestamptz[]) SERVER unwinding OPTIONS (database 'mongo_fdw_regress', collection 'written_times');
CREATE FOREIGN TABLE each_time (_id int, d timestamptz OPTIONS (path 'ds')) SERVER unwinding
	OPTIONS (database 'mongo_fdw_regress', collection 'written_times', unwind 'ds');
DELETE FROM times;
INSERT INTO times VALUES (1, '{2024-01-01 12:00+00,2024-01-02 12:00+00}'), (2, '{2024-01-01 12:00+00}');
SELECT _id, d = '2024-01-02 12:00+00' AS second FROM each_time
	WHERE ((d::date = '2024-01-01') IS NOT TRUE AND d > '2000-01-01') OR d > '2030-01-01';

-- what the statistics say is said of the elements
ANALYZE basket_lines;
SELECT reltuples FROM pg_class WHERE relname = 'basket_lines';
SELECT n_distinct <> -1 AS repeated FROM pg_stats WHERE tablename = 'basket_lines' AND attname = '_id';

-- read-only
INSERT INTO basket_lines (_id) VALUES (1);
UPDATE basket_lines SET price = 1;
DELETE FROM basket_lines;
TRUNCATE basket_lines;

-- what DDL refuses
ALTER FOREIGN TABLE basket_lines OPTIONS (SET unwind '');
ALTER FOREIGN TABLE basket_lines OPTIONS (SET unwind 'lines,');
ALTER FOREIGN TABLE basket_lines OPTIONS (SET unwind '$lines');
ALTER FOREIGN TABLE basket_lines OPTIONS (SET unwind 'lines.parts, lines');
ALTER FOREIGN TABLE basket_lines OPTIONS (SET unwind '_id');
ALTER FOREIGN TABLE basket_lines OPTIONS (SET ordinality 'n, m');
ALTER FOREIGN TABLE basket_lines OPTIONS (SET ordinality 'lines');
ALTER FOREIGN TABLE basket_lines OPTIONS (SET ordinality 'a.b');
ALTER FOREIGN TABLE basket_lines OPTIONS (DROP unwind);
ALTER FOREIGN TABLE baskets OPTIONS (unwind_empty 'true');

SET client_min_messages = warning;
DROP SERVER unwinding CASCADE;
