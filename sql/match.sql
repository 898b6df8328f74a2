--
-- mongo_match(): conditions in MongoDB's own language.
-- The documents are those of t/lib/load_regress.py.
--
\getenv mongo_host MONGO_HOST
\getenv mongo_port MONGO_PORT
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mongo_fdw;
CREATE SERVER matching FOREIGN DATA WRAPPER mongo_fdw
	OPTIONS (address :'mongo_host', port :'mongo_port', transactions 'off');
CREATE USER MAPPING FOR CURRENT_USER SERVER matching;
RESET client_min_messages;

CREATE FOREIGN TABLE m_people (_id objectid, name text, age int, wrong int OPTIONS (path 'name')) SERVER matching
	OPTIONS (database 'mongo_fdw_regress', collection 'people');

-- alone, with others, under OR and NOT; columns that are not asked for are not read
EXPLAIN (VERBOSE, COSTS OFF) SELECT name FROM m_people p WHERE mongo_match(p, '{"phones": {"$size": 2}}') AND age > 25;
SELECT name FROM m_people p WHERE mongo_match(p, '{"phones": {"$size": 2}}') AND age > 25 ORDER BY age;
SELECT name FROM m_people p WHERE mongo_match(p, '{"address.city": "Oslo", "$and": [{"age": {"$lt": 30}}]}') OR age = 31 ORDER BY age;
SELECT name FROM m_people p WHERE NOT mongo_match(p, '{"address": {"$exists": true}}') ORDER BY age;
SELECT count(*) FROM m_people p WHERE mongo_match(p, '{"phones": {"$regex": "^[+]1"}}');
SELECT count(*) FROM m_people p WHERE mongo_match(p, '{}');
SELECT p.name, q.name FROM m_people p JOIN m_people q ON q.age = p.age + 1 WHERE mongo_match(p, '{"age": {"$mod": [5, 0]}}') ORDER BY p.age;
DELETE FROM m_people p WHERE mongo_match(p, '{"age": 1000}');

-- documents are not taken for placeholders
SELECT count(*) FROM m_people p WHERE mongo_match(p, '{"name": {"$parameter": 0}}');
SELECT count(*) FROM m_people p WHERE mongo_match(p, '{"$parameter": 0}');
SELECT count(*) FROM m_people p WHERE mongo_match(p, '{"$or": 5}');

-- places and texts
CREATE FOREIGN TABLE m_places (_id int, loc point, words text) SERVER matching
	OPTIONS (database 'mongo_fdw_regress', collection 'written_places');
INSERT INTO m_places SELECT n, point(n, n), 'word' || n || ' coffee' FROM generate_series(1, 9) n;
SELECT mongo_command('matching', 'mongo_fdw_regress', '{"createIndexes": "written_places", "indexes": [{"key": {"loc": "2dsphere"}, "name": "loc"}, {"key": {"words": "text"}, "name": "words"}]}') -> 'ok' AS ok;
SELECT _id FROM m_places p WHERE mongo_match(p, '{"loc": {"$near": {"$geometry": {"type": "Point", "coordinates": [4, 4]}, "$maxDistance": 200000}}}') AND _id <> 4;
SELECT _id FROM m_places p WHERE mongo_match(p, '{"loc": {"$geoWithin": {"$centerSphere": [[2, 2], 0.03]}}}') ORDER BY 1;
SELECT _id FROM m_places p WHERE mongo_match(p, '{"$text": {"$search": "word3 word5"}}') AND _id > 1 ORDER BY 1;
SELECT count(*) FROM m_places p WHERE mongo_match(p, '{"$text": {"$search": "coffee"}}');

-- what $text finds a document to be worth, and its order
EXPLAIN (VERBOSE, COSTS OFF) SELECT _id, mongo_score(p) > 1.2 AS high FROM m_places p
	WHERE mongo_match(p, '{"$text": {"$search": "word3 word5 coffee"}}') AND _id < 7 ORDER BY mongo_score(p) DESC, _id;
SELECT _id, mongo_score(p) > 1.2 AS high FROM m_places p
	WHERE mongo_match(p, '{"$text": {"$search": "word3 word5 coffee"}}') AND _id < 7 ORDER BY mongo_score(p) DESC, _id;
EXPLAIN (VERBOSE, COSTS OFF) SELECT words FROM m_places p
	WHERE mongo_match(p, '{"$text": {"$search": "word3 coffee"}}') ORDER BY mongo_score(p) DESC LIMIT 1;
SELECT words FROM m_places p WHERE mongo_match(p, '{"$text": {"$search": "word3 coffee"}}') ORDER BY mongo_score(p) DESC LIMIT 1;
SELECT round(max(score)::numeric, 2) AS most, count(*) FROM
	(SELECT mongo_score(p) AS score FROM m_places p WHERE mongo_match(p, '{"$text": {"$search": "word3 coffee"}}') OFFSET 0) s;
ALTER FOREIGN TABLE m_places ADD COLUMN gone int;
ALTER FOREIGN TABLE m_places DROP COLUMN gone;
WITH found AS MATERIALIZED (SELECT _id, words, mongo_score(p) AS score FROM m_places p WHERE mongo_match(p, '{"$text": {"$search": "word3"}}'))
	SELECT f._id, q.words, score > 0 AS found FROM found f JOIN m_places q USING (_id);
-- without $text, of no row, of more than a row, in PostgreSQL
SELECT mongo_score(p) FROM m_places p WHERE _id = 1;
\set VERBOSITY terse
SELECT p, mongo_score(p) FROM m_places p WHERE mongo_match(p, '{"$text": {"$search": "word3"}}');
SELECT max(mongo_score(p)) FROM m_places p WHERE mongo_match(p, '{"$text": {"$search": "word3"}}');
SELECT mongo_score(p) FROM m_places p JOIN m_places q USING (_id) WHERE mongo_match(p, '{"$text": {"$search": "word3"}}');
SELECT _id FROM m_places p WHERE mongo_match(p, '{"$text": {"$search": "word3"}}') AND mongo_score(p) > 0;
SELECT mongo_score(ROW(1));
SET mongo_fdw.enable_pushdown = off;
SELECT mongo_score(p) FROM m_places p;
RESET mongo_fdw.enable_pushdown;
\set VERBOSITY default
-- a distance is what a stage gives
CREATE FOREIGN TABLE m_near (_id int, distance float8) SERVER matching OPTIONS (database 'mongo_fdw_regress', collection 'written_places',
	pipeline '[{"$geoNear": {"near": {"type": "Point", "coordinates": [4, 4]}, "distanceField": "distance", "key": "loc"}}]');
SELECT _id, round(distance) AS metres FROM m_near WHERE distance < 200000 ORDER BY distance;

ALTER FOREIGN TABLE m_people DROP COLUMN wrong;

-- values that are known when the scan starts
SELECT name FROM m_people p WHERE mongo_match(p, (SELECT '{"age": 21}'::json));
SET plan_cache_mode = force_generic_plan;
PREPARE m_matching (json) AS SELECT count(*) FROM m_people p WHERE mongo_match(p, $1) AND age > 20;
PREPARE m_others (json) AS SELECT count(*) FROM m_people p WHERE NOT mongo_match(p, $1);
EXPLAIN (VERBOSE, COSTS OFF) EXECUTE m_matching ('{}');
EXPLAIN (VERBOSE, COSTS OFF) EXECUTE m_others ('{}');
EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS OFF) EXECUTE m_others ('{"address": {"$exists": true}}');
EXECUTE m_matching ('{"phones": {"$size": 2}}');
EXECUTE m_matching ('{}');
EXECUTE m_others ('{}');
EXECUTE m_matching (NULL);
EXECUTE m_others (NULL);
DO $$
DECLARE
	d json := '{"phones": {"$size": 2}}';
	n int;
BEGIN
	FOR i IN 1 .. 7 LOOP
		SELECT count(*) INTO n FROM m_people p WHERE mongo_match(p, d);
		RAISE NOTICE '% match %', n, d;
		d := json_build_object('age', 20 + i);
	END LOOP;
END $$;
SELECT d, (SELECT min(name) FROM m_people p WHERE mongo_match(p, d)) FROM (VALUES ('{"age": 21}'::json), (NULL), ('{"age": {"$lt": 23}}')) v (d);
-- of other tables' rows, for each of which the table is scanned, and the whole row read
SELECT v.n, p.name FROM (VALUES (1, '{"age": 21}'::json), (2, NULL), (3, '{"age": {"$mod": [20, 3]}}')) v (n, d) LEFT JOIN m_people p ON mongo_match(p, d) AND p.age > v.n ORDER BY 1, 2;
EXPLAIN (VERBOSE, COSTS OFF) SELECT p.name, q.name FROM m_people p JOIN m_people q ON q.age = p.age + 1 AND mongo_match(q, json_build_object('age', p.age + 1)) WHERE p.age < 23;
SELECT p.name, q.name FROM m_people p JOIN m_people q ON q.age = p.age + 1 AND mongo_match(q, json_build_object('age', p.age + 1)) WHERE p.age < 23 ORDER BY 1;
SELECT n FROM generate_series(20, 23) n WHERE NOT EXISTS (SELECT FROM m_people p WHERE mongo_match(p, json_build_object('age', n)) AND p.age = n);
-- by the rules for constants
EXECUTE m_matching ('[1]');
EXECUTE m_matching ('5');
EXECUTE m_matching ('{"$where": "true"}');
EXECUTE m_others ('{"$or": [{"$expr": {"\u0024function": {"body": "function() {return true}", "args": [], "lang": "js"}}}]}');
EXECUTE m_matching ('{"$parameter": 0}');
EXECUTE m_others ('{"$verbatim": 0, "age": 7}');
EXECUTE m_matching ('{"$expr": "$$p0"}');
EXECUTE m_matching (json_build_object('name', repeat('x', 17000000)));
EXECUTE m_matching ((repeat('{"a":', 1000) || 1 || repeat('}', 1000))::json);
RESET plan_cache_mode;
DEALLOCATE ALL;

-- never evaluated by PostgreSQL
SELECT mongo_match(p, '{"age": 21}') FROM m_people p;
SELECT name FROM m_people p WHERE mongo_match(p, json_build_object('name', p.name));
SELECT name, d FROM m_people p LEFT JOIN (VALUES ('{"age": 21}'::json), ('{}')) v (d) ON mongo_match(p, d);
SET mongo_fdw.enable_pushdown = off;
SELECT name FROM m_people p WHERE mongo_match(p, '{"age": 21}');
RESET mongo_fdw.enable_pushdown;
CREATE VIEW m_young WITH (security_barrier) AS SELECT * FROM m_people WHERE age < 30;
SELECT name FROM m_young p WHERE mongo_match(p, '{"age": 21}');
SELECT mongo_match(ROW(1), '{}');

-- also of so many outer rows that others would be read into a hash table
SELECT count(x) FROM (SELECT (SELECT p.words FROM m_places p WHERE p._id = g % 10 AND mongo_match(p, '{"words": {"$regex": "coffee"}}')) AS x
	FROM generate_series(1, 300) g) s;

-- fields that are no columns are for those who may use the server
SET client_min_messages = warning;
DROP ROLE IF EXISTS regress_match_reader;
RESET client_min_messages;
CREATE ROLE regress_match_reader;
CREATE USER MAPPING FOR regress_match_reader SERVER matching;
GRANT SELECT ON m_people TO regress_match_reader;
SET ROLE regress_match_reader;
SELECT name FROM m_people p WHERE age = 21;
SELECT name FROM m_people p WHERE mongo_match(p, '{"phones": {"$size": 2}}') AND age = 28;
RESET ROLE;
GRANT USAGE ON FOREIGN SERVER matching TO regress_match_reader;
SET ROLE regress_match_reader;
SELECT name FROM m_people p WHERE mongo_match(p, '{"phones": {"$size": 2}}') AND age = 28;
RESET ROLE;

-- also of plans that others have made
REVOKE USAGE ON FOREIGN SERVER matching FROM regress_match_reader;
SET plan_cache_mode = force_generic_plan;
PREPARE matched AS SELECT name FROM m_people p WHERE mongo_match(p, '{"phones": {"$size": 2}}') AND age = 28;
EXECUTE matched;
SET ROLE regress_match_reader;
EXECUTE matched;
RESET ROLE;
EXECUTE matched;
CREATE FUNCTION m_matched() RETURNS text LANGUAGE plpgsql AS
	$$BEGIN RETURN (SELECT name FROM m_people p WHERE mongo_match(p, '{"phones": {"$size": 2}}') AND age = 28); END$$;
SELECT m_matched();
SET ROLE regress_match_reader;
SELECT m_matched();
RESET ROLE;
GRANT USAGE ON FOREIGN SERVER matching TO regress_match_reader;
SET ROLE regress_match_reader;
EXECUTE matched;
SELECT m_matched();
RESET ROLE;
REVOKE USAGE ON FOREIGN SERVER matching FROM regress_match_reader;
SET ROLE regress_match_reader;
EXECUTE matched;
RESET ROLE;
RESET plan_cache_mode;
DEALLOCATE matched;
DROP FUNCTION m_matched();

-- what is no match document, and JavaScript
SELECT name FROM m_people p WHERE mongo_match(p, '[1]');
SELECT name FROM m_people p WHERE mongo_match(p, '{"age": {"$nothing": 1}}');
SELECT name FROM m_people p WHERE mongo_match(p, '{"$or": [{"$where": "true"}]}');
ALTER SERVER matching OPTIONS (allow_javascript 'true');
SELECT name FROM m_people p WHERE mongo_match(p, '{"$where": "this.age == 21"}');

SET client_min_messages = warning;
DROP SERVER matching CASCADE;
DROP ROLE regress_match_reader;
