--
-- Type objectid. Needs no MongoDB.
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mongo_fdw;
RESET client_min_messages;

-- input and output
SELECT '5f1e2d3c4b5a69788796a5b4'::objectid;
SELECT '5F1E2D3C4B5A69788796A5B4'::objectid;
SELECT '5f1e2d3c4b5a69788796a5b'::objectid;		-- fails
SELECT '5f1e2d3c4b5a69788796a5b4 '::objectid;	-- fails
SELECT 'zf1e2d3c4b5a69788796a5b4'::objectid;	-- fails
SELECT ''::objectid;							-- fails
SELECT encode(objectid_send('5f1e2d3c4b5a69788796a5b4'), 'hex');
SELECT typlen, typalign, typbyval, typstorage FROM pg_type WHERE oid = 'objectid'::regtype;

-- comparison: byte by byte
SELECT l < r AS lt, l <= r AS le, l = r AS eq, l <> r AS ne, l >= r AS ge, l > r AS gt
FROM (VALUES
	('000000000000000000000000'::objectid, '000000000000000000000001'::objectid),
	('7fffffffffffffffffffffff', '800000000000000000000000'),
	('5f1e2d3c4b5a69788796a5b4', '5F1E2D3C4B5A69788796A5B4'),
	('ffffffffffffffffffffffff', '000000000000000000000000')) AS v(l, r);

-- casts
SELECT CAST('5f1e2d3c4b5a69788796a5b4'::objectid AS text);
SELECT ('5f1e2d3c4b5a6978' || '8796a5b4')::objectid;
SELECT 'not an id'::text::objectid;				-- fails
SELECT '5f1e2d3c4b5a69788796a5b4'::objectid::bytea;
SELECT '\x5f1e2d3c4b5a69788796a5b4'::bytea::objectid;
SELECT '\x5f1e2d3c'::bytea::objectid;			-- fails
SELECT '5f1e2d3c4b5a69788796a5b4'::objectid::timestamptz AT TIME ZONE 'UTC';
SELECT 'ffffffff0000000000000000'::objectid::timestamptz AT TIME ZONE 'UTC';
SELECT '00000000ffffffffffffffff'::objectid::timestamptz AT TIME ZONE 'UTC';

-- the lowest id of a second
SELECT objectid('2020-07-27 01:26:20.999+00'::timestamptz);
SELECT objectid('1970-01-01 00:00:00+00'::timestamptz);
SELECT objectid('2106-02-07 06:28:15.5+00'::timestamptz);
SELECT objectid('2106-02-07 06:28:16+00'::timestamptz);	-- fails
SELECT objectid('1969-12-31 23:59:59.9999+00'::timestamptz);	-- fails
SELECT objectid('infinity'::timestamptz);		-- fails

-- a new one is of now and like no other
SELECT count(DISTINCT objectid()) FROM generate_series(1, 1000);
SELECT objectid()::timestamptz BETWEEN now() - interval '1 minute' AND now() + interval '1 minute' AS made_now;

-- sorting, indexes, grouping, joining
CREATE TEMPORARY TABLE ids AS
	SELECT objectid(timestamptz '2020-01-01 00:00:00+00' + n % 100 * interval '1 hour') AS id, n
	FROM generate_series(1, 1000) AS n;
SELECT count(DISTINCT id), min(id::text), max(id::text) FROM ids;
SELECT id, n FROM ids ORDER BY id DESC, n LIMIT 3;
CREATE INDEX ids_btree ON ids (id);
CREATE INDEX ids_hash ON ids USING hash (id);
ANALYZE ids;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SELECT count(*) FROM ids
WHERE id >= objectid(timestamptz '2020-01-02 00:00:00+00')
	AND id < objectid(timestamptz '2020-01-03 00:00:00+00');
SELECT count(*) FROM ids WHERE id = '5e0be1000000000000000000';
EXPLAIN (COSTS OFF) SELECT * FROM ids WHERE id > '5e0be1000000000000000000' ORDER BY id;
RESET enable_seqscan;
RESET enable_bitmapscan;
SET enable_nestloop = off;
SET enable_mergejoin = off;
SELECT count(*) FROM ids AS a JOIN ids AS b USING (id);
SET enable_mergejoin = on;
SET enable_hashjoin = off;
SELECT count(*) FROM ids AS a JOIN ids AS b USING (id);
RESET enable_nestloop;
RESET enable_mergejoin;
RESET enable_hashjoin;

-- hash functions agree with each other
SELECT count(*) AS mismatches FROM ids
WHERE objectid_hash(id) <> (objectid_hash_extended(id, 0) & 4294967295)::bit(32)::integer;

-- assigned to text without a cast
CREATE TEMPORARY TABLE texts (id text);
INSERT INTO texts SELECT id FROM ids WHERE n = 1;
TABLE texts;

-- what a foreign table's column of it is asked for, whichever type it is
SET client_min_messages = warning;
CREATE SCHEMA objectid_elsewhere;
CREATE TYPE objectid_elsewhere.objectid AS ENUM ('5f1e2d3c4b5a69788796a5b4');
CREATE SERVER objectids FOREIGN DATA WRAPPER mongo_fdw;
CREATE FOREIGN TABLE objectids (_id objectid_elsewhere.objectid) SERVER objectids OPTIONS (database 'd');
EXPLAIN (VERBOSE, COSTS OFF) SELECT FROM objectids WHERE _id = '5f1e2d3c4b5a69788796a5b4';
ALTER FOREIGN TABLE objectids ALTER _id TYPE objectid;
EXPLAIN (VERBOSE, COSTS OFF) SELECT FROM objectids WHERE _id = '5f1e2d3c4b5a69788796a5b4';
EXPLAIN (VERBOSE, COSTS OFF) SELECT FROM objectids WHERE _id > '5f1e2d3c4b5a69788796a5b4' ORDER BY _id DESC LIMIT 1;
DROP TYPE objectid_elsewhere.objectid;
ALTER EXTENSION mongo_fdw SET SCHEMA objectid_elsewhere;
SET search_path = public, objectid_elsewhere;
EXPLAIN (VERBOSE, COSTS OFF) SELECT FROM objectids WHERE _id > '5f1e2d3c4b5a69788796a5b4' ORDER BY _id DESC LIMIT 1;
RESET search_path;
DROP EXTENSION mongo_fdw CASCADE;
CREATE EXTENSION mongo_fdw;
CREATE SERVER objectids FOREIGN DATA WRAPPER mongo_fdw;
CREATE FOREIGN TABLE objectids (_id objectid) SERVER objectids OPTIONS (database 'd');
EXPLAIN (VERBOSE, COSTS OFF) SELECT FROM objectids WHERE _id > '5f1e2d3c4b5a69788796a5b4' ORDER BY _id DESC LIMIT 1;
DROP SERVER objectids CASCADE;
DROP SCHEMA objectid_elsewhere;
RESET client_min_messages;
