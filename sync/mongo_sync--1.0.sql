--
-- mongo_sync: local tables that equal collections of MongoDB at one cluster time.  See docs/sync.md.
--
-- The schema must be new: a schema that somebody has made before is an error, not adopted.  Nobody
-- but superusers may create anything in it.
--

CREATE SCHEMA mongo_sync;
GRANT USAGE ON SCHEMA mongo_sync TO PUBLIC;

--
-- What the engine (src/sync) knows.  It alone writes it.  Cluster times are 64 bits, as seconds and
-- a number within them.  Tables and roles are known by OID, which pg_upgrade keeps; those of schemas and
-- servers it does not.
--
-- A row is active only in the database and in the installation of the extension that it was made in:
-- rows that came by a restore, a subscription or a template have no effect until the next call.  The
-- installation is the value of a sequence, which is random and not dumped.
--

CREATE SEQUENCE mongo_sync.installation;
SELECT pg_catalog.setval('mongo_sync.installation',
	('x' OPERATOR(pg_catalog.||) pg_catalog.substr(pg_catalog.md5(pg_catalog.gen_random_uuid()::text), 1, 15))::bit(60)::bigint OPERATOR(pg_catalog.+) 1);

-- Tables that are synchronized together, at one position.
CREATE TABLE mongo_sync.groups (
	id integer PRIMARY KEY,					-- random: a subscription brings others
	name text NOT NULL,						-- for people
	of_schema boolean NOT NULL,				-- of sync_schema()
	installation bigint NOT NULL,
	database oid NOT NULL,
	owner oid NOT NULL,						-- of all local tables
	remote_database text NOT NULL,
	follow boolean NOT NULL DEFAULT false,	-- copy anew what replaces a collection
	paused boolean NOT NULL DEFAULT false,
	position bigint NOT NULL,				-- all changes up to it are applied
	consistent_at bigint,					-- all tables equal MongoDB at it; NULL: not now
	seen_at bigint NOT NULL,				-- the latest time that MongoDB has told
	last_event bytea,						-- by which MongoDB's history is recognized
	replica_set text,						-- its id, too, if it may be read
	steps bigint NOT NULL DEFAULT 0,
	changes bigint NOT NULL DEFAULT 0,		-- documents that had changed
	last_run timestamptz NOT NULL DEFAULT pg_catalog.now(),
	oplog_from bigint,						-- MongoDB's oplog began there; NULL: it may not be read
	slow_until timestamptz,					-- until then it is left to the second worker
	failing_since timestamptz,
	last_error text,
	error_kind text							-- without values of documents
);

CREATE VIEW mongo_sync.active_groups AS
SELECT *
FROM mongo_sync.groups
WHERE database OPERATOR(pg_catalog.=) (SELECT oid FROM pg_catalog.pg_database WHERE datname OPERATOR(pg_catalog.=) pg_catalog.current_database())
	AND installation OPERATOR(pg_catalog.=) (SELECT last_value FROM mongo_sync.installation);

-- A table of a group, or its new copy.
CREATE TABLE mongo_sync.members (
	target oid NOT NULL,					-- the table that is written: the local one, or its copy
	local_table oid NOT NULL,
	foreign_table oid NOT NULL,
	group_id integer NOT NULL,
	state text NOT NULL,					-- 'copying', 'catching up', 'synchronized', or 'stopped'
	reason text,							-- why it is stopped
	collection text NOT NULL,
	identity text,							-- the collection's UUID
	definition text,						-- what the rows were copied by
	read_until bigint NOT NULL,				-- the latest time at which its rows were read
	deleted_at name,						-- the column for the time of a document's end
	key_at_end boolean NOT NULL DEFAULT false,	-- the primary key is yet to be added, when all is copied
	rows_copied bigint NOT NULL DEFAULT 0,
	rows_inserted bigint NOT NULL DEFAULT 0,
	rows_updated bigint NOT NULL DEFAULT 0,
	rows_deleted bigint NOT NULL DEFAULT 0
);

-- not unique: a subscription may bring rows with the same OIDs, of another database
CREATE INDEX ON mongo_sync.members (target);
ALTER TABLE mongo_sync.members REPLICA IDENTITY FULL;

CREATE INDEX ON mongo_sync.members (group_id);
CREATE INDEX ON mongo_sync.members (local_table);

-- Ranges of _id of a table that is copied.  A session locks the one that it copies.
CREATE TABLE mongo_sync.ranges (
	target oid NOT NULL,
	number integer NOT NULL,
	match text,								-- as of mongo_match(); NULL: all documents
	read_at bigint,							-- when it was read; NULL: not yet
	rows bigint,							-- that were copied
	definition text,						-- by which they were
	PRIMARY KEY (target, number)
);

-- Documents that have changed while their collection was copied.
CREATE TABLE mongo_sync.changed (
	target oid NOT NULL,
	key bytea NOT NULL						-- {_id: ...} as BSON, of up to 16 MB
);

CREATE UNIQUE INDEX ON mongo_sync.changed (target, pg_catalog.sha256(key));

-- Documents that can have no row.
CREATE TABLE mongo_sync.unfit (
	target oid NOT NULL,
	id jsonb NOT NULL,
	reason jsonb NOT NULL,
	noted_at timestamptz NOT NULL DEFAULT pg_catalog.now()
);

CREATE INDEX ON mongo_sync.unfit (target);

ALTER TABLE mongo_sync.unfit REPLICA IDENTITY FULL;

-- pg_upgrade keeps all of them, so copies go on, too; a restored dump is inert.
SELECT pg_catalog.pg_extension_config_dump('mongo_sync.groups', '');
SELECT pg_catalog.pg_extension_config_dump('mongo_sync.members', '');

--
-- Procedures and functions, see docs/sync.md.
--

CREATE PROCEDURE mongo_sync.sync(foreign_table regclass, local_table text, follow boolean DEFAULT NULL, deleted_at name DEFAULT NULL)
AS 'MODULE_PATHNAME', 'mongo_sync_sync'
LANGUAGE C;

CREATE PROCEDURE mongo_sync.sync_schema(foreign_schema text, local_schema text, tables name[] DEFAULT NULL, follow boolean DEFAULT NULL)
AS 'MODULE_PATHNAME', 'mongo_sync_sync_schema'
LANGUAGE C;

CREATE PROCEDURE mongo_sync.recopy(local_table regclass)
AS 'MODULE_PATHNAME', 'mongo_sync_recopy'
LANGUAGE C;

CREATE FUNCTION mongo_sync.pause(local_table regclass)
RETURNS void
AS 'MODULE_PATHNAME', 'mongo_sync_pause'
LANGUAGE C VOLATILE STRICT;

CREATE FUNCTION mongo_sync.resume(local_table regclass)
RETURNS void
AS 'MODULE_PATHNAME', 'mongo_sync_resume'
LANGUAGE C VOLATILE STRICT;

CREATE FUNCTION mongo_sync.stop(local_table regclass)
RETURNS void
AS 'MODULE_PATHNAME', 'mongo_sync_stop'
LANGUAGE C VOLATILE STRICT;

CREATE FUNCTION mongo_sync.cluster_time()
RETURNS text
AS 'MODULE_PATHNAME', 'mongo_sync_cluster_time'
LANGUAGE C VOLATILE;

CREATE FUNCTION mongo_sync.compare(local_table regclass, mend boolean DEFAULT false)
RETURNS TABLE (id jsonb, difference text)
AS 'MODULE_PATHNAME', 'mongo_sync_compare'
LANGUAGE C VOLATILE STRICT;

CREATE FUNCTION mongo_sync.check(foreign_table regclass, local_table text DEFAULT NULL)
RETURNS TABLE (item text, ok boolean, detail text, remedy text)
AS 'MODULE_PATHNAME', 'mongo_sync_check'
LANGUAGE C VOLATILE;

COMMENT ON PROCEDURE mongo_sync.sync(regclass, text, boolean, name) IS 'synchronize a local table with the collection of a foreign table';
COMMENT ON PROCEDURE mongo_sync.sync_schema(text, text, name[], boolean) IS 'synchronize all foreign tables of a schema as one group';
COMMENT ON PROCEDURE mongo_sync.recopy(regclass) IS 'copy the collection of a synchronized table again';
COMMENT ON FUNCTION mongo_sync.pause(regclass) IS 'have the group of a table stand still, and keep its position';
COMMENT ON FUNCTION mongo_sync.resume(regclass) IS 'go on with a group that was paused';
COMMENT ON FUNCTION mongo_sync.stop(regclass) IS 'stop synchronizing a table';
COMMENT ON FUNCTION mongo_sync.compare(regclass, boolean) IS 'rows that differ from MongoDB at the position of their group';
COMMENT ON FUNCTION mongo_sync.check(regclass, text) IS 'what speaks for and against synchronizing a table';
COMMENT ON FUNCTION mongo_sync.cluster_time() IS 'in a trigger: the cluster time whose changes are being written';

--
-- Views.  Who has the rights of a local table's owner sees its rows; pg_monitor sees all but what is in
-- documents.  Nobody sees more by a condition of their own: they are security barriers.
--

-- Names and operators are PostgreSQL's from here on.
SET LOCAL search_path = pg_catalog, pg_temp;

-- Why no background worker runs in this database; NULL: one runs.
CREATE FUNCTION mongo_sync.worker_problem()
RETURNS text
AS 'MODULE_PATHNAME', 'mongo_sync_worker_problem'
LANGUAGE C VOLATILE;

-- A cluster time as text, and its seconds.
CREATE FUNCTION mongo_sync.time_text(bigint)
RETURNS text
AS 'MODULE_PATHNAME', 'mongo_sync_time_text'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE FUNCTION mongo_sync."time"(bigint)
RETURNS timestamptz
AS 'MODULE_PATHNAME', 'mongo_sync_time'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

CREATE VIEW mongo_sync.status WITH (security_barrier) AS
SELECT g.name AS "group",
	CASE WHEN a.is_active THEN m.local_table::regclass END AS local_table,
	CASE WHEN a.is_active THEN m.foreign_table::regclass END AS foreign_table,
	CASE WHEN NOT a.is_active THEN 'waiting for its owner'
		WHEN m.state = 'stopped' AND c.target IS NULL THEN 'stopped'
		WHEN g.paused THEN 'paused'
		WHEN g.failing_since IS NOT NULL THEN 'failing'
		WHEN m.state <> 'synchronized' THEN COALESCE(c.state, m.state)
		WHEN w.problem IS NOT NULL THEN 'no worker'
		ELSE 'applying' END AS state,
	CASE WHEN NOT a.is_active THEN 'it came by a restore, a subscription or a template'
		WHEN m.state = 'stopped' AND c.target IS NULL THEN m.reason
		WHEN g.paused OR g.failing_since IS NOT NULL OR m.state <> 'synchronized' THEN NULL
		ELSE w.problem END AS reason,
	CASE WHEN a.is_active AND m.state = 'synchronized' THEN mongo_sync."time"(g.consistent_at) END AS consistent_at,
	mongo_sync.time_text(g.position) AS cluster_time,
	GREATEST(mongo_sync."time"(g.seen_at) - mongo_sync."time"(g.position), '0') AS lag,
	mongo_sync."time"(g.position) - mongo_sync."time"(g.oplog_from) AS oplog_left,
	r.done AS ranges_copied, r.number AS ranges,
	COALESCE(r.rows, c.rows_copied, m.rows_copied) AS rows_copied, m.rows_inserted, m.rows_updated, m.rows_deleted,
	g.failing_since,
	-- it may be of another table of the group
	CASE WHEN a.is_own AND pg_has_role(g.owner, 'USAGE') THEN g.last_error
		ELSE regexp_replace(g.error_kind, '%[-+0-9.*]*(hh?|ll?|z|t|j)?[a-zA-Z]', '...', 'g') END AS last_error,
	g.last_run
FROM mongo_sync.members m
	JOIN mongo_sync.groups g ON g.id = m.group_id
	LEFT JOIN pg_class t ON t.oid = m.local_table
	CROSS JOIN LATERAL (SELECT g.id IN (SELECT x.id FROM mongo_sync.active_groups x) AS is_active,
		pg_has_role(COALESCE(t.relowner, g.owner), 'USAGE') AS is_own) a
	LEFT JOIN mongo_sync.members c ON c.local_table = m.local_table AND c.target <> m.target
	CROSS JOIN LATERAL (SELECT count(x.read_at) AS done, count(*) AS number, sum(x.rows)::bigint AS rows FROM mongo_sync.ranges x
		WHERE x.target = m.target OR x.target = c.target) r
	CROSS JOIN (SELECT mongo_sync.worker_problem() AS problem) w
WHERE m.target = m.local_table AND (t.oid IS NOT NULL OR NOT a.is_active) AND (a.is_active AND a.is_own OR pg_has_role('pg_monitor', 'USAGE'));

CREATE VIEW mongo_sync.errors WITH (security_barrier) AS
SELECT m.local_table::regclass AS local_table, u.id, u.reason, u.noted_at
FROM mongo_sync.unfit u
	JOIN mongo_sync.members m ON m.target = u.target
	JOIN mongo_sync.active_groups g ON g.id = m.group_id
	JOIN pg_class t ON t.oid = m.local_table
WHERE pg_has_role(t.relowner, 'USAGE');

-- Only what is wrong, and what to do.
CREATE VIEW mongo_sync.health WITH (security_barrier) AS
WITH groups AS (
	SELECT s."group", min(s.failing_since) AS failing_since, min(s.last_error) AS last_error, max(s.lag) AS lag,
		min(s.oplog_left) AS oplog_left, bool_or(s.state = 'paused') AS is_paused, bool_or(s.state = 'no worker') AS has_no_worker,
		min(s.reason) FILTER (WHERE s.state = 'no worker') AS reason, min(s.local_table::text) AS local_table
	FROM mongo_sync.status s
	GROUP BY s."group"
)
SELECT COALESCE(s.local_table::text, s."group") AS object, s.state, NULL::timestamptz AS since, s.reason AS problem,
	CASE s.state WHEN 'stopped' THEN format('CALL mongo_sync.recopy(%L)', s.local_table)
		ELSE 'Its owner calls mongo_sync.sync() or sync_schema() again.' END AS remedy
FROM mongo_sync.status s
WHERE s.state IN ('stopped', 'waiting for its owner')
UNION ALL
SELECT g."group", 'failing', g.failing_since, g.last_error, 'See docs/troubleshooting.md for the message; it is tried again by itself.'
FROM groups g
WHERE g.failing_since IS NOT NULL
UNION ALL
SELECT g."group", 'paused', NULL, 'it stands still', format('SELECT mongo_sync.resume(%L)', g.local_table)
FROM groups g
WHERE g.is_paused
UNION ALL
SELECT g."group", 'no worker', NULL, g.reason, 'Set shared_preload_libraries, mongo_sync.enabled or max_worker_processes, or CALL mongo_sync.sync() regularly.'
FROM groups g
WHERE g.has_no_worker
UNION ALL
SELECT g."group", 'late', NULL, 'MongoDB is ahead by ' || g.lag, 'Look for slow triggers, missing indexes and locks.'
FROM groups g
WHERE g.lag > '1 minute' AND NOT g.is_paused
UNION ALL
SELECT g."group", 'losing changes', NULL, 'more than half of what MongoDB''s oplog has is not applied yet; left are ' || g.oplog_left, 'Make the oplog larger: replSetResizeOplog.'
FROM groups g
WHERE g.oplog_left < g.lag
UNION ALL
SELECT m.local_table::regclass::text, 'documents without a row', min(u.noted_at), count(*) || ' documents have no row here', 'SELECT * FROM mongo_sync.errors'
FROM mongo_sync.unfit u JOIN mongo_sync.members m ON m.target = u.target
	JOIN mongo_sync.active_groups g ON g.id = m.group_id
	JOIN pg_class t ON t.oid = m.local_table
WHERE pg_has_role(t.relowner, 'USAGE') OR pg_has_role('pg_monitor', 'USAGE')
GROUP BY m.local_table;

GRANT SELECT ON mongo_sync.status, mongo_sync.errors, mongo_sync.health TO PUBLIC;

COMMENT ON VIEW mongo_sync.status IS 'all synchronized tables';
COMMENT ON VIEW mongo_sync.errors IS 'documents that have no row in a synchronized table';
COMMENT ON VIEW mongo_sync.health IS 'what is wrong with synchronized tables, and what to do';
