--
-- Joins as $lookup: what is sent, and that the rows are those of a join made here.
-- The documents are those of t/lib/load_regress.py.
--
\getenv mongo_host MONGO_HOST
\getenv mongo_port MONGO_PORT
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mongo_fdw;
-- lookups cost nothing and commands much, so that lookups are made
CREATE SERVER joins FOREIGN DATA WRAPPER mongo_fdw
	OPTIONS (address :'mongo_host', port :'mongo_port', fdw_startup_cost '1000000', fdw_lookup_cost '0');
CREATE USER MAPPING FOR CURRENT_USER SERVER joins;
RESET client_min_messages;
SET jit = off;

CREATE FOREIGN TABLE a (_id int, x int, s text, t2 int OPTIONS (path 't2.x'), t1 int)
	SERVER joins OPTIONS (database 'mongo_fdw_regress', collection 'join_outer');
CREATE FOREIGN TABLE b (_id int, x int OPTIONS (indexed 'true'), s text OPTIONS (indexed 'true'), y int)
	SERVER joins OPTIONS (database 'mongo_fdw_regress', collection 'join_inner');
CREATE FOREIGN TABLE c (_id int, z int)
	SERVER joins OPTIONS (database 'mongo_fdw_regress', collection 'join_third');
CREATE FOREIGN TABLE elsewhere (_id int, z int)
	SERVER joins OPTIONS (database 'mongo_fdw_other', collection 'join_third');
CREATE FOREIGN TABLE lenient (_id int, z int)
	SERVER joins OPTIONS (database 'mongo_fdw_regress', collection 'join_third', type_mismatch 'null');
CREATE FOREIGN TABLE documents (_id int, __doc jsonb)
	SERVER joins OPTIONS (database 'mongo_fdw_regress', collection 'join_third');

-- What is known of a collection's indexes tells whether its _id is unique.
ANALYZE b;
ANALYZE c;

-- The plan, the rows, and those rows that are not the same with pushdown off.
CREATE FUNCTION try(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	pushed text[];
	local text[];
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (VERBOSE, COSTS OFF) ' || query LOOP
		CONTINUE WHEN line NOT LIKE '%Remote Command%' AND line NOT LIKE '%Namespace%';
		RETURN NEXT regexp_replace(trim(line), ', "cursor" : \{[^}]*\}', '');
	END LOOP;
	EXECUTE 'SELECT array_agg(r::text ORDER BY r::text) FROM (' || query || ') r' INTO pushed;
	SET LOCAL mongo_fdw.enable_pushdown = off;
	EXECUTE 'SELECT array_agg(r::text ORDER BY r::text) FROM (' || query || ') r' INTO local;
	SET LOCAL mongo_fdw.enable_pushdown = on;
	RETURN NEXT coalesce(array_to_string(pushed, ' '), 'no rows');
	IF pushed IS DISTINCT FROM local THEN
		RETURN NEXT 'BUT WITHOUT PUSHDOWN: ' || coalesce(array_to_string(local, ' '), 'no rows');
	END IF;
END
$$;
\pset format unaligned
\pset tuples_only on

-- a field t2 of the outer documents does not hide the inner ones
SELECT try('SELECT a._id, b._id, b.y, a.t2, a.t1 FROM a JOIN b ON a.x = b.x');
SELECT try('SELECT a._id, b._id, b.y, a.t2, a.t1 FROM a LEFT JOIN b ON a.x = b.x');
-- one document at most is found
SELECT try('SELECT a._id, b._id, b.y FROM a JOIN b ON a.x = b._id');
SELECT try('SELECT a._id, b._id, b.y FROM a LEFT JOIN b ON a.x = b._id');
-- conditions: on the outer and inner tables, between them (not of an outer join), and above
SELECT try('SELECT a._id, b._id FROM a JOIN b ON a.x = b.x AND b.y > a._id AND b.y < 15 AND a._id < 5');
SELECT try('SELECT a._id, b._id FROM a LEFT JOIN b ON a.x = b.x AND b.y > a._id AND b.y < 15 AND a._id < 5');
SELECT try('SELECT a._id, b._id FROM a LEFT JOIN b ON a.x = b._id WHERE b.y IS NULL OR b.y > 10');
SELECT try('SELECT a._id, b._id FROM a LEFT JOIN b ON a.x = b.x AND b.y < 15 WHERE a._id > 1 AND b.y IS NULL');
-- parameters, in a match document and in an expression
SELECT try('SELECT a._id, b._id FROM a LEFT JOIN b ON a.x = b.x AND b.y < (SELECT 15) AND b.y + a._id > (SELECT 7) WHERE a._id < (SELECT 6)');
SELECT try('SELECT a._id, b._id FROM a LEFT JOIN b ON a.x = b.x AND b.y < (SELECT NULL::int)');
SELECT try('SELECT a._id, b._id FROM a JOIN b ON a.x = b.x AND b.y < (SELECT NULL::int)');
-- text: a String and an ObjectId may be the same text
SELECT try('SELECT a._id, b._id, b.s FROM a JOIN b ON a.s = b.s');
SELECT try('SELECT a._id, b._id, b.s FROM a LEFT JOIN b ON a.s = b.s');
SELECT try('SELECT a._id, b.y FROM a LEFT JOIN b ON a.x = b._id WHERE b._id IS NULL');
-- three and four tables
SELECT try('SELECT a._id, b.y, c.z FROM a JOIN b ON a.x = b._id JOIN c ON c._id = b.y');
SELECT try('SELECT a._id, b.y, c.z FROM a LEFT JOIN b ON a.x = b._id LEFT JOIN c ON c._id = b.y');
SELECT try('SELECT a._id, b.y, c.z FROM a JOIN b ON a.x = b.x LEFT JOIN c ON c._id = b.y AND c.z <> 50');
SELECT try('SELECT a._id, c.z, d.z FROM a JOIN b ON a.x = b._id JOIN c ON c._id = b.y JOIN c d ON d._id = a.x');
SET cpu_tuple_cost = 1;
SELECT try('SELECT count(*), sum(c.z) FROM a JOIN b ON a.x = b.x JOIN c ON c._id = b.y');
RESET cpu_tuple_cost;

-- made here: no index, semi- and antijoins, other databases, type mismatches as NULL, whole documents and rows, full
-- joins, locks
SELECT try('SELECT a._id, b._id FROM a JOIN b ON a.t1 = b.y');
SELECT try('SELECT a._id FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.x = a.x)');
SELECT try('SELECT a._id FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b._id = a.x)');
-- a column, as PostgreSQL 17 makes a join of it where it is a condition
SELECT try('SELECT a._id, a.x IN (SELECT x FROM b WHERE b.y > a._id) FROM a');
SELECT a._id FROM a WHERE a.x IN (SELECT x FROM b WHERE b.y > a._id) ORDER BY a._id;
SELECT try('SELECT a._id, e.z FROM a JOIN elsewhere e ON e._id = a.x');
SELECT try('SELECT a._id, l.z FROM a JOIN lenient l ON l._id = a.x');
SELECT try('SELECT a._id, d.__doc FROM a JOIN documents d ON d._id = a.x');
SELECT try('SELECT a._id, c FROM a JOIN c ON c._id = a.x');
SELECT try('SELECT a._id, b._id FROM a FULL JOIN b ON a.x = b._id');
SELECT try('SELECT a._id, c.z FROM a LEFT JOIN (SELECT _id, coalesce(z, 0) AS z FROM c) c ON c._id = a.x');
EXPLAIN (COSTS OFF) SELECT a._id FROM a JOIN b ON a.x = b._id FOR UPDATE;
SET mongo_fdw.enable_join_pushdown = off;
SELECT try('SELECT a._id, b.y FROM a JOIN b ON a.x = b._id');
RESET mongo_fdw.enable_join_pushdown;
ALTER FOREIGN TABLE b OPTIONS (ADD enable_join_pushdown 'false');
SELECT try('SELECT a._id, b.y FROM a JOIN b ON a.x = b._id');
ALTER FOREIGN TABLE b OPTIONS (DROP enable_join_pushdown);

-- what does not fit is named as where it is
CREATE FOREIGN TABLE wrong (_id int, "where" bool OPTIONS (path 'y'))
	SERVER joins OPTIONS (database 'mongo_fdw_regress', collection 'join_inner');
SELECT a._id, w."where" FROM a JOIN wrong w ON w._id = a.x;

-- at its ordinary cost a lookup is not made for a handful of documents
ALTER SERVER joins OPTIONS (DROP fdw_startup_cost, DROP fdw_lookup_cost);
SELECT try('SELECT a._id, b.y FROM a JOIN b ON a.x = b._id WHERE a._id = 1');

SET client_min_messages = warning;
DROP SERVER joins CASCADE;
DROP FUNCTION try(text);
