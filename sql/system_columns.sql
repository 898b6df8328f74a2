--
-- System columns: each scan gives its rows other ctids, so what names them is refused.
--
\getenv mongo_host MONGO_HOST
\getenv mongo_port MONGO_PORT
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mongo_fdw;
CREATE SERVER ctid_server FOREIGN DATA WRAPPER mongo_fdw
	OPTIONS (address :'mongo_host', port :'mongo_port');
CREATE USER MAPPING FOR CURRENT_USER SERVER ctid_server;
RESET client_min_messages;

CREATE FOREIGN TABLE sc_rows (_id int, k int, v text) SERVER ctid_server
	OPTIONS (database 'mongo_fdw_regress', collection 'system_columns');
CREATE TABLE sc_local (_id int, k int, v text);
CREATE TABLE sc_parted (_id int, k int, v text) PARTITION BY RANGE (_id);
CREATE TABLE sc_part PARTITION OF sc_parted FOR VALUES FROM (100) TO (200);
ALTER TABLE sc_parted ATTACH PARTITION sc_rows FOR VALUES FROM (0) TO (100);
CREATE VIEW sc_view AS SELECT * FROM sc_rows;
CREATE VIEW sc_ctids AS SELECT ctid AS place, * FROM sc_rows;
TRUNCATE sc_rows;
INSERT INTO sc_rows SELECT i, i / 3, 'v' || i FROM generate_series(0, 8) i;
INSERT INTO sc_local SELECT i, i / 3, 'v' || i FROM generate_series(0, 8) i;

-- the usual ways to remove duplicates
DELETE FROM sc_rows a USING sc_rows b WHERE a.ctid < b.ctid AND a.k = b.k;
DELETE FROM sc_rows WHERE ctid NOT IN (SELECT min(ctid) FROM sc_rows GROUP BY k);
DELETE FROM sc_rows a WHERE EXISTS (SELECT 1 FROM sc_rows b WHERE b.k = a.k AND b.ctid <> a.ctid);
DELETE FROM sc_rows WHERE ctid IN (SELECT ctid FROM sc_rows LIMIT 3);
DELETE FROM sc_rows WHERE ctid = ANY (ARRAY(SELECT ctid FROM sc_local LIMIT 3));
DELETE FROM sc_view WHERE _id IN (SELECT _id FROM sc_ctids WHERE place > '(0,0)');
DELETE FROM sc_parted a USING sc_parted b WHERE a.ctid < b.ctid AND a.k = b.k;
DELETE FROM sc_rows WHERE ctid = '(0,1)' RETURNING *;
UPDATE sc_rows SET v = ctid::text;
UPDATE sc_rows SET v = 'x' WHERE xmin::text = '1';

-- wherever they are named
\set VERBOSITY terse
SELECT ctid FROM sc_rows;
SELECT t.xmin, t.* FROM sc_rows t;
SELECT cmin, cmax, xmax FROM sc_rows;
SELECT count(*) FROM sc_rows WHERE ctid > '(0,3)';
SELECT k FROM sc_rows ORDER BY ctid;
SELECT min(ctid) FROM sc_rows;
SELECT k, count(*) FROM sc_rows GROUP BY k HAVING min(ctid) > '(0,1)';
SELECT row_number() OVER (ORDER BY ctid) FROM sc_rows;
SELECT _id FROM (SELECT _id, ctid AS c FROM sc_rows) s WHERE c > '(0,0)';
SELECT place FROM sc_ctids;
SELECT ctid FROM sc_parted;
SELECT ctid FROM sc_rows UNION ALL SELECT ctid FROM sc_local;
SELECT (SELECT max(l._id) FROM sc_local l WHERE l.ctid = r.ctid) FROM sc_rows r;
SELECT l.* FROM sc_rows r, LATERAL (SELECT r.ctid, l.k FROM sc_local l OFFSET 0) l;
SELECT l.k FROM sc_local l JOIN sc_rows r ON l.ctid = r.ctid;
SELECT r.k FROM sc_local l LEFT JOIN sc_rows r ON l.ctid = r.ctid AND l._id = r._id;
SELECT r.k FROM sc_rows r, LATERAL unnest(ARRAY[r.ctid]) u;
WITH c AS MATERIALIZED (SELECT ctid FROM sc_rows) SELECT count(*) FROM c;
INSERT INTO sc_rows VALUES (9, 3, 'v9') RETURNING ctid;
UPDATE sc_rows SET v = 'x' WHERE _id = 0 RETURNING ctid;
DELETE FROM sc_rows WHERE _id = 0 RETURNING xmin;
DELETE FROM sc_local l USING sc_rows r WHERE l._id = r._id RETURNING r.ctid;
UPDATE sc_parted SET v = 'x' WHERE _id < 100 RETURNING ctid;
EXPLAIN (COSTS OFF) SELECT ctid FROM sc_rows;

\set VERBOSITY default
-- what PostgreSQL carries itself stays, and so does tableoid
SELECT tableoid::regclass, * FROM sc_rows ORDER BY _id;
SELECT r, tableoid::regclass FROM sc_rows r ORDER BY _id LIMIT 2;
SELECT ctid FROM sc_parted WHERE _id = 100;
BEGIN;
SELECT * FROM sc_rows WHERE _id < 2 ORDER BY _id FOR UPDATE;
SELECT * FROM sc_parted WHERE k = 1 ORDER BY _id FOR UPDATE;
SELECT l.ctid IS NOT NULL, r.* FROM sc_local l JOIN sc_rows r USING (_id) WHERE l.k = 1 ORDER BY 2 FOR SHARE;
COMMIT;
UPDATE sc_rows a SET v = b.v || '+' FROM sc_rows b WHERE b._id = a._id + 1 AND a.k = 0
	RETURNING a._id, a.v, b._id, a.tableoid::regclass;
UPDATE sc_view SET v = upper(v) WHERE k = 1 AND random() < 2 RETURNING sc_view;
UPDATE sc_parted SET v = v || '!' WHERE k = 2 AND random() < 2 RETURNING tableoid::regclass, *;
UPDATE sc_parted p SET v = l.v FROM sc_local l WHERE l._id = p._id AND l.ctid IS NOT NULL AND p.k = 2 RETURNING p.*;
INSERT INTO sc_rows VALUES (9, 3, 'v9') RETURNING tableoid::regclass, sc_rows;
WITH d AS (DELETE FROM sc_rows a USING sc_rows b WHERE a._id > b._id AND a.k = b.k RETURNING a.*)
	SELECT * FROM d ORDER BY _id;
SELECT * FROM sc_rows ORDER BY _id;

TRUNCATE sc_rows;
DROP VIEW sc_view, sc_ctids;
DROP TABLE sc_parted, sc_local;
DROP SERVER ctid_server CASCADE;
