--
-- What version 2.1 adds to version 2.0.
--

COMMENT ON FUNCTION mongo_fdw_version() IS 'version of mongo_fdw as a number, such as 20100 for 2.1.0';

-- CREATE and ALTER call it without asking for this privilege.
REVOKE EXECUTE ON FUNCTION mongo_fdw_validator(text[], oid) FROM PUBLIC;

-- The present time of a server's clock, for mongo_fdw.cluster_time.
CREATE OR REPLACE FUNCTION mongo_cluster_time(server name)
RETURNS text
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION mongo_cluster_time(name) IS 'the present time of a MongoDB server''s clock';

-- Indexes tell about fields that are no columns, for which USAGE is needed.
CREATE OR REPLACE VIEW mongo_fdw_statistics WITH (security_barrier) AS
SELECT t.ftrelid::pg_catalog.regclass AS relation, d.collection, d.learned_at, d.documents, d.document_size,
	CASE WHEN pg_catalog.has_server_privilege(t.ftserver, 'USAGE') THEN d.indexes END AS indexes, d.round_trip_time,
	d.bandwidth
FROM mongo_fdw_statistics_data d JOIN pg_catalog.pg_foreign_table t ON t.ftrelid OPERATOR(pg_catalog.=) d.relid
WHERE pg_catalog.has_table_privilege(t.ftrelid, 'SELECT') OR pg_catalog.pg_has_role('pg_monitor', 'USAGE');

--
-- What is wrong with the servers, and what to do
--

CREATE FUNCTION mongo_fdw_health_get(OUT serverid oid, OUT state text, OUT since timestamptz, OUT problem text,
	OUT remedy text)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION mongo_fdw_health_get() IS 'servers that cannot be connected to, for the view mongo_fdw_health';

-- As without an argument, but no rows in place of an error if there is no shared memory.
CREATE FUNCTION mongo_fdw_stat_connections_get(if_loaded boolean, OUT pid integer, OUT dbid oid, OUT serverid oid,
	OUT userid oid, OUT host text, OUT state text, OUT state_change timestamptz, OUT connected_at timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION mongo_fdw_stat_connections_get(boolean) IS 'connections for the view mongo_fdw_health';

CREATE VIEW mongo_fdw_health WITH (security_barrier) AS
WITH connections AS (
	SELECT f.srvname::pg_catalog.text AS object, f.srvoptions, c.pid, c.state, c.state_change
	FROM mongo_fdw_stat_connections_get(true) c JOIN pg_catalog.pg_foreign_server f ON f.oid OPERATOR(pg_catalog.=) c.serverid
		JOIN pg_catalog.pg_database d ON d.oid OPERATOR(pg_catalog.=) c.dbid
	WHERE d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
)
SELECT coalesce(f.srvname::pg_catalog.text, 'mongo_fdw') AS object, h.state, h.since, h.problem, h.remedy
FROM mongo_fdw_health_get() h LEFT JOIN pg_catalog.pg_foreign_server f ON f.oid OPERATOR(pg_catalog.=) h.serverid
UNION ALL
SELECT c.object, 'connecting', pg_catalog.min(c.state_change),
	pg_catalog.format('%s sessions have waited for a connection for more than 10 seconds', pg_catalog.count(*)),
	'Check the network and the load of MongoDB; connect_timeout_ms and server_selection_timeout_ms end the wait sooner.'
FROM connections c
WHERE c.state OPERATOR(pg_catalog.=) 'connecting'
	AND c.state_change OPERATOR(pg_catalog.<) (pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) '10 seconds'::pg_catalog.interval)
GROUP BY c.object
UNION ALL
SELECT c.object, 'no free connection', NULL,
	pg_catalog.format('all %s connections are open, and further sessions wait', pg_catalog.count(*)),
	'Raise max_connections, or close idle connections sooner by idle_timeout or keep_connections.'
FROM connections c CROSS JOIN LATERAL pg_catalog.pg_options_to_table(c.srvoptions) o
WHERE o.option_name OPERATOR(pg_catalog.=) 'max_connections'
GROUP BY c.object, o.option_value
HAVING pg_catalog.count(*) OPERATOR(pg_catalog.>=) NULLIF(o.option_value::pg_catalog.int8, 0)
UNION ALL
SELECT c.object, 'idle in transaction', pg_catalog.min(a.state_change),
	pg_catalog.format('%s sessions keep a MongoDB transaction open for more than a minute; pid %s', pg_catalog.count(*),
		pg_catalog.string_agg(c.pid::pg_catalog.text, ', ' ORDER BY c.pid)),
	'End them, or set idle_in_transaction_session_timeout: MongoDB ends transactions after 60 seconds by default.'
FROM connections c JOIN pg_catalog.pg_stat_activity a ON a.pid OPERATOR(pg_catalog.=) c.pid
WHERE c.state OPERATOR(pg_catalog.=) 'in transaction' AND a.state OPERATOR(pg_catalog.=) 'idle in transaction'
	AND a.state_change OPERATOR(pg_catalog.<) (pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) '1 minute'::pg_catalog.interval)
GROUP BY c.object;

GRANT SELECT ON mongo_fdw_health TO PUBLIC;

COMMENT ON VIEW mongo_fdw_health IS 'what is wrong with servers, and what to do';

--
-- IMPORT FOREIGN SCHEMA: what it would do, and under which names
--

CREATE FUNCTION mongo_fdw_import_preview(server name, database text, schema name DEFAULT NULL,
	collections text[] DEFAULT NULL, options text[] DEFAULT '{}')
RETURNS SETOF text
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE;

COMMENT ON FUNCTION mongo_fdw_import_preview(name, text, name, text[], text[]) IS 'statements that IMPORT FOREIGN SCHEMA would run';

CREATE FUNCTION mongo_fdw_imported_name(collection text, options text[])
RETURNS name
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT STABLE;

COMMENT ON FUNCTION mongo_fdw_imported_name(text, text[]) IS 'name of the table for a collection, for mongo_fdw_refresh()';

CREATE OR REPLACE FUNCTION mongo_fdw_refresh(schema regnamespace, server name DEFAULT NULL, database text DEFAULT NULL,
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
				bool_or(name = 'import_views' AND NOT value::boolean) AS no_views FROM given) AS l,
			LATERAL jsonb_to_recordset(mongo_command(d.srvname, d.database,
				'{"listCollections": 1, "nameOnly": true, "authorizedCollections": true}'::json) OPERATOR(pg_catalog.#>) '{cursor,firstBatch}'::text[])
				AS c(name text, type text),
			LATERAL (SELECT mongo_fdw_imported_name(c.name, mongo_fdw_refresh.options) AS name) AS i
		WHERE NOT starts_with(c.name, 'system.') AND (c.type <> 'view' OR l.no_views IS NOT TRUE)
			AND NOT EXISTS (SELECT FROM tables t WHERE t.srvname = d.srvname AND t.database = d.database AND t.collection = c.name)
			-- the import would give the table another name, which LIMIT TO does not find
			AND NOT EXISTS (SELECT FROM pg_catalog.pg_class k WHERE k.relnamespace = n.oid AND k.relname = i.name)
			AND NOT EXISTS (SELECT FROM pg_catalog.pg_type k WHERE k.typnamespace = n.oid AND k.typname = i.name)
		GROUP BY d.srvname, d.database, n.nspname, l.options
	)
	SELECT statement FROM statements WHERE statement IS NOT NULL ORDER BY ftrelid, srvname, database;
END;
