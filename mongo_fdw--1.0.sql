/* mongo_fdw--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION mongo_fdw" to load this file. \quit

--
-- The foreign-data wrapper
--

CREATE FUNCTION mongo_fdw_handler()
RETURNS fdw_handler
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT;

CREATE FUNCTION mongo_fdw_validator(text[], oid)
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT;

CREATE FOREIGN DATA WRAPPER mongo_fdw
	HANDLER mongo_fdw_handler
	VALIDATOR mongo_fdw_validator;

CREATE FUNCTION mongo_fdw_version()
RETURNS integer
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;

--
-- Type objectid
--

CREATE TYPE objectid;

CREATE FUNCTION objectid_in(cstring)
RETURNS objectid
AS 'MODULE_PATHNAME', 'mongo_objectid_in'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;

CREATE FUNCTION objectid_out(objectid)
RETURNS cstring
AS 'MODULE_PATHNAME', 'mongo_objectid_out'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;

CREATE FUNCTION objectid_recv(internal)
RETURNS objectid
AS 'MODULE_PATHNAME', 'mongo_objectid_recv'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;

CREATE FUNCTION objectid_send(objectid)
RETURNS bytea
AS 'MODULE_PATHNAME', 'mongo_objectid_send'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;

CREATE TYPE objectid (
	INPUT = objectid_in,
	OUTPUT = objectid_out,
	RECEIVE = objectid_recv,
	SEND = objectid_send,
	INTERNALLENGTH = 12,
	ALIGNMENT = char,
	STORAGE = plain
);

COMMENT ON TYPE objectid IS 'ObjectId of MongoDB, written as 24 hexadecimal digits';

CREATE FUNCTION objectid_eq(objectid, objectid)
RETURNS boolean
AS 'MODULE_PATHNAME', 'mongo_objectid_eq'
LANGUAGE C STRICT IMMUTABLE LEAKPROOF PARALLEL SAFE;

CREATE FUNCTION objectid_ne(objectid, objectid)
RETURNS boolean
AS 'MODULE_PATHNAME', 'mongo_objectid_ne'
LANGUAGE C STRICT IMMUTABLE LEAKPROOF PARALLEL SAFE;

CREATE FUNCTION objectid_lt(objectid, objectid)
RETURNS boolean
AS 'MODULE_PATHNAME', 'mongo_objectid_lt'
LANGUAGE C STRICT IMMUTABLE LEAKPROOF PARALLEL SAFE;

CREATE FUNCTION objectid_le(objectid, objectid)
RETURNS boolean
AS 'MODULE_PATHNAME', 'mongo_objectid_le'
LANGUAGE C STRICT IMMUTABLE LEAKPROOF PARALLEL SAFE;

CREATE FUNCTION objectid_gt(objectid, objectid)
RETURNS boolean
AS 'MODULE_PATHNAME', 'mongo_objectid_gt'
LANGUAGE C STRICT IMMUTABLE LEAKPROOF PARALLEL SAFE;

CREATE FUNCTION objectid_ge(objectid, objectid)
RETURNS boolean
AS 'MODULE_PATHNAME', 'mongo_objectid_ge'
LANGUAGE C STRICT IMMUTABLE LEAKPROOF PARALLEL SAFE;

CREATE FUNCTION objectid_cmp(objectid, objectid)
RETURNS integer
AS 'MODULE_PATHNAME', 'mongo_objectid_cmp'
LANGUAGE C STRICT IMMUTABLE LEAKPROOF PARALLEL SAFE;

CREATE FUNCTION objectid_sortsupport(internal)
RETURNS void
AS 'MODULE_PATHNAME', 'mongo_objectid_sortsupport'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;

CREATE FUNCTION objectid_hash(objectid)
RETURNS integer
AS 'MODULE_PATHNAME', 'mongo_objectid_hash'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;

CREATE FUNCTION objectid_hash_extended(objectid, bigint)
RETURNS bigint
AS 'MODULE_PATHNAME', 'mongo_objectid_hash_extended'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;

CREATE OPERATOR = (
	LEFTARG = objectid,
	RIGHTARG = objectid,
	FUNCTION = objectid_eq,
	COMMUTATOR = =,
	NEGATOR = <>,
	RESTRICT = eqsel,
	JOIN = eqjoinsel,
	HASHES,
	MERGES
);

CREATE OPERATOR <> (
	LEFTARG = objectid,
	RIGHTARG = objectid,
	FUNCTION = objectid_ne,
	COMMUTATOR = <>,
	NEGATOR = =,
	RESTRICT = neqsel,
	JOIN = neqjoinsel
);

CREATE OPERATOR < (
	LEFTARG = objectid,
	RIGHTARG = objectid,
	FUNCTION = objectid_lt,
	COMMUTATOR = >,
	NEGATOR = >=,
	RESTRICT = scalarltsel,
	JOIN = scalarltjoinsel
);

CREATE OPERATOR <= (
	LEFTARG = objectid,
	RIGHTARG = objectid,
	FUNCTION = objectid_le,
	COMMUTATOR = >=,
	NEGATOR = >,
	RESTRICT = scalarlesel,
	JOIN = scalarlejoinsel
);

CREATE OPERATOR > (
	LEFTARG = objectid,
	RIGHTARG = objectid,
	FUNCTION = objectid_gt,
	COMMUTATOR = <,
	NEGATOR = <=,
	RESTRICT = scalargtsel,
	JOIN = scalargtjoinsel
);

CREATE OPERATOR >= (
	LEFTARG = objectid,
	RIGHTARG = objectid,
	FUNCTION = objectid_ge,
	COMMUTATOR = <=,
	NEGATOR = <,
	RESTRICT = scalargesel,
	JOIN = scalargejoinsel
);

CREATE OPERATOR CLASS objectid_ops
DEFAULT FOR TYPE objectid USING btree AS
	OPERATOR 1 <,
	OPERATOR 2 <=,
	OPERATOR 3 =,
	OPERATOR 4 >=,
	OPERATOR 5 >,
	FUNCTION 1 objectid_cmp(objectid, objectid),
	FUNCTION 2 objectid_sortsupport(internal);

CREATE OPERATOR CLASS objectid_ops
DEFAULT FOR TYPE objectid USING hash AS
	OPERATOR 1 =,
	FUNCTION 1 objectid_hash(objectid),
	FUNCTION 2 objectid_hash_extended(objectid, bigint);

-- Casts.  The functions have the names of types, so that function notation works too.
CREATE FUNCTION bytea(objectid)
RETURNS bytea
AS 'MODULE_PATHNAME', 'mongo_objectid_send'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;

CREATE FUNCTION objectid(bytea)
RETURNS objectid
AS 'MODULE_PATHNAME', 'mongo_objectid_from_bytea'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;

CREATE FUNCTION timestamptz(objectid)
RETURNS timestamptz
AS 'MODULE_PATHNAME', 'mongo_objectid_to_timestamptz'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;

CREATE CAST (objectid AS text) WITH INOUT AS ASSIGNMENT;
CREATE CAST (text AS objectid) WITH INOUT;
CREATE CAST (objectid AS bytea) WITH FUNCTION bytea(objectid);
CREATE CAST (bytea AS objectid) WITH FUNCTION objectid(bytea);
CREATE CAST (objectid AS timestamptz) WITH FUNCTION timestamptz(objectid);

CREATE FUNCTION objectid()
RETURNS objectid
AS 'MODULE_PATHNAME', 'mongo_objectid_generate'
LANGUAGE C VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION objectid() IS 'a new ObjectId';

CREATE FUNCTION objectid(timestamptz)
RETURNS objectid
AS 'MODULE_PATHNAME', 'mongo_objectid_from_timestamptz'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;

COMMENT ON FUNCTION objectid(timestamptz) IS 'the lowest ObjectId generated in that second';

--
-- Functions that send commands and pipelines to a server
--

-- The argument is not jsonb, which does not keep the order of members that MongoDB needs.

CREATE FUNCTION mongo_command(server name, database text, command json)
RETURNS jsonb
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE;

CREATE FUNCTION mongo_command(server name, database text, command text)
RETURNS jsonb
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE;

-- Pushed down to MongoDB; evaluated by PostgreSQL, it raises an error.  Not leakproof.

CREATE FUNCTION mongo_match("row" record, match json)
RETURNS boolean
AS 'MODULE_PATHNAME'
LANGUAGE C STABLE;

-- Like mongo_match(), only MongoDB can compute it.

CREATE FUNCTION mongo_score("row" record)
RETURNS double precision
AS 'MODULE_PATHNAME'
LANGUAGE C STABLE;

-- Not strict, because the collection is NULL for a pipeline that needs none.

CREATE FUNCTION mongo_aggregate(server name, database text, collection text, pipeline json,
	options json DEFAULT NULL)
RETURNS SETOF jsonb
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE;

CREATE FUNCTION mongo_aggregate(server name, database text, collection text, pipeline text,
	options json DEFAULT NULL)
RETURNS SETOF jsonb
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE;

--
-- Statistics about collections, which ANALYZE stores for the planner
--

-- ANALYZE writes it, as any role, and the planner reads it, both without privileges.
-- pg_dump does not dump its rows, as restored tables have other OIDs.

CREATE TABLE mongo_fdw_statistics_data (
	relid			oid PRIMARY KEY,
	collection		text NOT NULL,
	learned_at		timestamptz NOT NULL,
	documents		double precision NOT NULL,
	document_size	double precision NOT NULL,
	indexes			json,
	round_trip_time	double precision,
	bandwidth		double precision
);

REVOKE ALL ON mongo_fdw_statistics_data FROM PUBLIC;

CREATE VIEW mongo_fdw_statistics WITH (security_barrier) AS
SELECT t.ftrelid::pg_catalog.regclass AS relation, d.collection, d.learned_at, d.documents, d.document_size,
	d.indexes, d.round_trip_time, d.bandwidth
FROM mongo_fdw_statistics_data d JOIN pg_catalog.pg_foreign_table t ON t.ftrelid OPERATOR(pg_catalog.=) d.relid
WHERE pg_catalog.has_table_privilege(t.ftrelid, 'SELECT');

GRANT SELECT ON mongo_fdw_statistics TO PUBLIC;

COMMENT ON VIEW mongo_fdw_statistics IS 'statistics about the collections of foreign tables, stored by ANALYZE';

--
-- Comparing a table with its collection, and bringing the table up to date
--

CREATE FUNCTION mongo_fdw_check("table" regclass, sample integer DEFAULT 1000)
RETURNS TABLE (finding text, field text, "column" name, documents bigint, types text[], detail text)
AS 'MODULE_PATHNAME', 'mongo_fdw_check'
LANGUAGE C STRICT VOLATILE;

CREATE FUNCTION mongo_fdw_alteration("table" regclass, options text[] DEFAULT '{}')
RETURNS text
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE;

CREATE FUNCTION mongo_fdw_refresh(schema regnamespace, server name DEFAULT NULL, database text DEFAULT NULL,
	new_tables boolean DEFAULT true, options text[] DEFAULT '{}')
RETURNS SETOF text
LANGUAGE sql VOLATILE
BEGIN ATOMIC
	WITH tables AS (
		SELECT t.ftrelid, s.srvname, coalesce(o.database, 'test') AS database, coalesce(o.collection, c.relname) AS collection
		FROM pg_catalog.pg_foreign_table t JOIN pg_catalog.pg_class c ON c.oid = t.ftrelid
			JOIN pg_catalog.pg_foreign_server s ON s.oid = t.ftserver
			JOIN pg_catalog.pg_foreign_data_wrapper w ON w.oid = s.srvfdw,
			LATERAL (SELECT min(option_value) FILTER (WHERE option_name = 'database') AS database,
				min(option_value) FILTER (WHERE option_name = 'collection') AS collection,
				count(*) FILTER (WHERE option_name IN ('pipeline', 'unwind', 'change_stream')) AS deriving
				FROM pg_catalog.pg_options_to_table(t.ftoptions)) AS o
		WHERE c.relnamespace = schema::oid AND w.fdwhandler::oid = 'mongo_fdw_handler()'::regprocedure::oid AND o.deriving = 0
	), databases AS (
		SELECT t.srvname, t.database FROM tables t
		WHERE coalesce(t.srvname = server, true) AND coalesce(t.database = mongo_fdw_refresh.database, true)
		UNION
		SELECT server, mongo_fdw_refresh.database WHERE server IS NOT NULL AND mongo_fdw_refresh.database IS NOT NULL
	), given AS (
		SELECT split_part(o, '=', 1) AS name, substr(o, strpos(o, '=') + 1) AS value FROM pg_catalog.unnest(options) AS o
	), statements AS (
		SELECT t.ftrelid, t.srvname, t.database, mongo_fdw_alteration(t.ftrelid::regclass, options) AS statement
		FROM tables t JOIN databases d ON d.srvname = t.srvname AND d.database = t.database
		UNION ALL
		SELECT NULL, d.srvname, d.database, pg_catalog.format('IMPORT FOREIGN SCHEMA %I LIMIT TO (%s) FROM SERVER %I INTO %I%s;',
			d.database, string_agg(DISTINCT quote_ident(i.name::text), ', '), d.srvname, n.nspname, ' OPTIONS (' || l.options || ')')
		FROM databases d JOIN pg_catalog.pg_namespace n ON n.oid = schema::oid AND new_tables,
			(SELECT string_agg(pg_catalog.format('%I %L', name, value), ', ') AS options,
				bool_or(name = 'lower_case_names' AND value::boolean) AS lower_case,
				bool_or(name = 'import_views' AND NOT value::boolean) AS no_views FROM given) AS l,
			LATERAL jsonb_to_recordset(mongo_command(d.srvname, d.database,
				'{"listCollections": 1, "nameOnly": true, "authorizedCollections": true}'::json) OPERATOR(pg_catalog.#>) '{cursor,firstBatch}'::text[])
				AS c(name text, type text),
			LATERAL (SELECT CASE WHEN l.lower_case THEN lower(c.name COLLATE "C") ELSE c.name END::name AS name) AS i
		WHERE NOT starts_with(c.name, 'system.') AND (c.type <> 'view' OR l.no_views IS NOT TRUE)
			AND NOT EXISTS (SELECT FROM tables t WHERE t.srvname = d.srvname AND t.database = d.database AND t.collection = c.name)
			-- the import would give the table another name, which LIMIT TO does not find
			AND NOT EXISTS (SELECT FROM pg_catalog.pg_class k WHERE k.relnamespace = n.oid AND k.relname = i.name)
			AND NOT EXISTS (SELECT FROM pg_catalog.pg_type k WHERE k.typnamespace = n.oid AND k.typname = i.name)
		GROUP BY d.srvname, d.database, n.nspname, l.options
	)
	SELECT statement FROM statements WHERE statement IS NOT NULL ORDER BY ftrelid, srvname, database;
END;

--
-- Connections, and counters of the traffic with MongoDB
--

CREATE FUNCTION mongo_fdw_get_connections()
RETURNS TABLE (server_name text, user_name text, host text, server_role text, state text, valid boolean,
	in_transaction boolean, age interval, idle_since timestamptz, commands bigint, bytes_received bigint,
	bytes_sent bigint, compressor text, tls boolean)
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

CREATE FUNCTION mongo_fdw_disconnect(server_name text)
RETURNS boolean
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

CREATE FUNCTION mongo_fdw_disconnect_all()
RETURNS boolean
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

-- The counters, from finds on, are in the order of MongoCounter.
CREATE FUNCTION mongo_fdw_stat_get(statements boolean, OUT dbid oid, OUT serverid oid, OUT userid oid,
	OUT queryid bigint, OUT calls bigint, OUT commands bigint, OUT finds bigint, OUT get_mores bigint,
	OUT aggregates bigint, OUT counts bigint, OUT inserts bigint, OUT updates bigint, OUT deletes bigint,
	OUT find_and_modifies bigint, OUT others bigint, OUT bytes_sent bigint, OUT bytes_received bigint,
	OUT round_trips bigint, OUT wait_time double precision, OUT documents_read bigint,
	OUT documents_written bigint, OUT connections bigint, OUT reconnects bigint, OUT errors bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

CREATE VIEW mongo_fdw_stat AS
SELECT d.datname, f.srvname AS server_name, pg_catalog.pg_get_userbyid(s.userid) AS user_name, s.dbid, s.serverid,
	s.userid, s.finds, s.get_mores, s.aggregates, s.counts, s.inserts, s.updates, s.deletes, s.find_and_modifies,
	s.others, s.bytes_sent, s.bytes_received, s.round_trips, s.wait_time, s.documents_read, s.documents_written,
	s.connections, s.reconnects, s.errors
FROM mongo_fdw_stat_get(false) s
LEFT JOIN pg_catalog.pg_database d ON d.oid OPERATOR(pg_catalog.=) s.dbid
LEFT JOIN pg_catalog.pg_foreign_server f ON f.oid OPERATOR(pg_catalog.=) s.serverid
	AND d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database();

COMMENT ON VIEW mongo_fdw_stat IS 'traffic with MongoDB, by server and user';

CREATE VIEW mongo_fdw_stat_statements AS
SELECT userid, dbid, queryid, calls, commands, documents_read OPERATOR(pg_catalog.+) documents_written AS documents,
	bytes_sent, bytes_received, wait_time
FROM mongo_fdw_stat_get(true);

COMMENT ON VIEW mongo_fdw_stat_statements IS 'traffic with MongoDB, by query id';

CREATE FUNCTION mongo_fdw_stat_reset()
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

CREATE FUNCTION mongo_fdw_stat_statements_reset()
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

GRANT SELECT ON mongo_fdw_stat, mongo_fdw_stat_statements TO PUBLIC;
REVOKE ALL ON FUNCTION mongo_fdw_stat_reset(), mongo_fdw_stat_statements_reset() FROM PUBLIC;
