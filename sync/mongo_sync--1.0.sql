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
-- a number within them.  Objects are known by OID, which pg_upgrade keeps.
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
	id integer PRIMARY KEY,
	name text NOT NULL,						-- for people
	source_schema oid,						-- of sync_schema()
	local_schema oid,
	installation bigint NOT NULL,
	database oid NOT NULL,
	owner oid NOT NULL,						-- of all local tables
	server oid NOT NULL,
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
	failing_since timestamptz,
	failed_at timestamptz,
	last_error text
);

-- A table of a group, or its new copy.
CREATE TABLE mongo_sync.members (
	target oid PRIMARY KEY,					-- the table that is written: the local one, or its copy
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
	rows_copied bigint NOT NULL DEFAULT 0,
	rows_inserted bigint NOT NULL DEFAULT 0,
	rows_updated bigint NOT NULL DEFAULT 0,
	rows_deleted bigint NOT NULL DEFAULT 0
);

CREATE INDEX ON mongo_sync.members (group_id);
CREATE INDEX ON mongo_sync.members (local_table);

-- Ranges of _id of a table that is copied.  A session locks the one that it copies.
CREATE TABLE mongo_sync.ranges (
	target oid NOT NULL,
	number integer NOT NULL,
	match text,								-- as of mongo_match(); NULL: all documents
	read_at bigint,							-- when it was read; NULL: not yet
	PRIMARY KEY (target, number)
);

-- Documents that have changed while their collection was copied.
CREATE TABLE mongo_sync.changed (
	target oid NOT NULL,
	key bytea NOT NULL,						-- {_id: ...} as BSON
	PRIMARY KEY (target, key)
);

-- Documents that can have no row.
CREATE TABLE mongo_sync.unfit (
	target oid NOT NULL,
	id jsonb NOT NULL,
	reason jsonb NOT NULL,
	noted_at timestamptz NOT NULL DEFAULT pg_catalog.now()
);

CREATE INDEX ON mongo_sync.unfit (target);

ALTER TABLE mongo_sync.unfit REPLICA IDENTITY FULL;

-- Only tables whose copy has ended go on after pg_upgrade; a restored dump is inert.
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

COMMENT ON PROCEDURE mongo_sync.sync(regclass, text, boolean, name) IS 'synchronize a local table with the collection of a foreign table';
COMMENT ON PROCEDURE mongo_sync.sync_schema(text, text, name[], boolean) IS 'synchronize all foreign tables of a schema as one group';
COMMENT ON PROCEDURE mongo_sync.recopy(regclass) IS 'copy the collection of a synchronized table again';
COMMENT ON FUNCTION mongo_sync.pause(regclass) IS 'have the group of a table stand still, and keep its position';
COMMENT ON FUNCTION mongo_sync.resume(regclass) IS 'go on with a group that was paused';
COMMENT ON FUNCTION mongo_sync.stop(regclass) IS 'stop synchronizing a table';
COMMENT ON FUNCTION mongo_sync.cluster_time() IS 'in a trigger: the cluster time whose changes are being written';
