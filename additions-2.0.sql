--
-- What version 2.0 adds to version 1.0.  The Makefile makes mongo_fdw--2.0.sql and the
-- update scripts of this file and mongo_fdw--1.0.sql.
--

-- Version 1.0 of the other mongo_fdw has no such function.

CREATE OR REPLACE FUNCTION mongo_fdw_version()
RETURNS integer
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE;

--
-- Comparing an ObjectId with text, which drivers send.  A text that is no ObjectId is above all.
-- Not by hashing, for which texts would need another equality: two of them may be one ObjectId.
--

CREATE FUNCTION objectid_eq(objectid, text)
RETURNS boolean
AS 'MODULE_PATHNAME', 'mongo_objectid_eq_text'
LANGUAGE C STRICT IMMUTABLE LEAKPROOF PARALLEL SAFE;

CREATE FUNCTION objectid_eq(text, objectid)
RETURNS boolean
AS 'MODULE_PATHNAME', 'mongo_text_eq_objectid'
LANGUAGE C STRICT IMMUTABLE LEAKPROOF PARALLEL SAFE;

CREATE FUNCTION objectid_ne(objectid, text)
RETURNS boolean
AS 'MODULE_PATHNAME', 'mongo_objectid_ne_text'
LANGUAGE C STRICT IMMUTABLE LEAKPROOF PARALLEL SAFE;

CREATE FUNCTION objectid_ne(text, objectid)
RETURNS boolean
AS 'MODULE_PATHNAME', 'mongo_text_ne_objectid'
LANGUAGE C STRICT IMMUTABLE LEAKPROOF PARALLEL SAFE;

CREATE FUNCTION objectid_lt(objectid, text)
RETURNS boolean
AS 'MODULE_PATHNAME', 'mongo_objectid_lt_text'
LANGUAGE C STRICT IMMUTABLE LEAKPROOF PARALLEL SAFE;

CREATE FUNCTION objectid_lt(text, objectid)
RETURNS boolean
AS 'MODULE_PATHNAME', 'mongo_text_lt_objectid'
LANGUAGE C STRICT IMMUTABLE LEAKPROOF PARALLEL SAFE;

CREATE FUNCTION objectid_le(objectid, text)
RETURNS boolean
AS 'MODULE_PATHNAME', 'mongo_objectid_le_text'
LANGUAGE C STRICT IMMUTABLE LEAKPROOF PARALLEL SAFE;

CREATE FUNCTION objectid_le(text, objectid)
RETURNS boolean
AS 'MODULE_PATHNAME', 'mongo_text_le_objectid'
LANGUAGE C STRICT IMMUTABLE LEAKPROOF PARALLEL SAFE;

CREATE FUNCTION objectid_gt(objectid, text)
RETURNS boolean
AS 'MODULE_PATHNAME', 'mongo_objectid_gt_text'
LANGUAGE C STRICT IMMUTABLE LEAKPROOF PARALLEL SAFE;

CREATE FUNCTION objectid_gt(text, objectid)
RETURNS boolean
AS 'MODULE_PATHNAME', 'mongo_text_gt_objectid'
LANGUAGE C STRICT IMMUTABLE LEAKPROOF PARALLEL SAFE;

CREATE FUNCTION objectid_ge(objectid, text)
RETURNS boolean
AS 'MODULE_PATHNAME', 'mongo_objectid_ge_text'
LANGUAGE C STRICT IMMUTABLE LEAKPROOF PARALLEL SAFE;

CREATE FUNCTION objectid_ge(text, objectid)
RETURNS boolean
AS 'MODULE_PATHNAME', 'mongo_text_ge_objectid'
LANGUAGE C STRICT IMMUTABLE LEAKPROOF PARALLEL SAFE;

CREATE FUNCTION objectid_cmp(objectid, text)
RETURNS integer
AS 'MODULE_PATHNAME', 'mongo_objectid_cmp_text'
LANGUAGE C STRICT IMMUTABLE LEAKPROOF PARALLEL SAFE;

CREATE FUNCTION objectid_cmp(text, objectid)
RETURNS integer
AS 'MODULE_PATHNAME', 'mongo_text_cmp_objectid'
LANGUAGE C STRICT IMMUTABLE LEAKPROOF PARALLEL SAFE;

-- of two texts, which a B-tree index sorts that is searched for several
CREATE FUNCTION objectid_cmp(text, text)
RETURNS integer
AS 'MODULE_PATHNAME', 'mongo_text_cmp_text'
LANGUAGE C STRICT IMMUTABLE LEAKPROOF PARALLEL SAFE;

CREATE OPERATOR = (
	LEFTARG = objectid,
	RIGHTARG = text,
	FUNCTION = objectid_eq,
	COMMUTATOR = =,
	NEGATOR = <>,
	RESTRICT = eqsel,
	JOIN = eqjoinsel
);

CREATE OPERATOR <> (
	LEFTARG = objectid,
	RIGHTARG = text,
	FUNCTION = objectid_ne,
	COMMUTATOR = <>,
	NEGATOR = =,
	RESTRICT = neqsel,
	JOIN = neqjoinsel
);

CREATE OPERATOR = (
	LEFTARG = text,
	RIGHTARG = objectid,
	FUNCTION = objectid_eq,
	COMMUTATOR = =,
	NEGATOR = <>,
	RESTRICT = eqsel,
	JOIN = eqjoinsel
);

CREATE OPERATOR <> (
	LEFTARG = text,
	RIGHTARG = objectid,
	FUNCTION = objectid_ne,
	COMMUTATOR = <>,
	NEGATOR = =,
	RESTRICT = neqsel,
	JOIN = neqjoinsel
);

CREATE OPERATOR < (
	LEFTARG = objectid,
	RIGHTARG = text,
	FUNCTION = objectid_lt,
	COMMUTATOR = >,
	NEGATOR = >=,
	RESTRICT = scalarltsel,
	JOIN = scalarltjoinsel
);

CREATE OPERATOR < (
	LEFTARG = text,
	RIGHTARG = objectid,
	FUNCTION = objectid_lt,
	COMMUTATOR = >,
	NEGATOR = >=,
	RESTRICT = scalarltsel,
	JOIN = scalarltjoinsel
);

CREATE OPERATOR <= (
	LEFTARG = objectid,
	RIGHTARG = text,
	FUNCTION = objectid_le,
	COMMUTATOR = >=,
	NEGATOR = >,
	RESTRICT = scalarlesel,
	JOIN = scalarlejoinsel
);

CREATE OPERATOR <= (
	LEFTARG = text,
	RIGHTARG = objectid,
	FUNCTION = objectid_le,
	COMMUTATOR = >=,
	NEGATOR = >,
	RESTRICT = scalarlesel,
	JOIN = scalarlejoinsel
);

CREATE OPERATOR > (
	LEFTARG = objectid,
	RIGHTARG = text,
	FUNCTION = objectid_gt,
	COMMUTATOR = <,
	NEGATOR = <=,
	RESTRICT = scalargtsel,
	JOIN = scalargtjoinsel
);

CREATE OPERATOR > (
	LEFTARG = text,
	RIGHTARG = objectid,
	FUNCTION = objectid_gt,
	COMMUTATOR = <,
	NEGATOR = <=,
	RESTRICT = scalargtsel,
	JOIN = scalargtjoinsel
);

CREATE OPERATOR >= (
	LEFTARG = objectid,
	RIGHTARG = text,
	FUNCTION = objectid_ge,
	COMMUTATOR = <=,
	NEGATOR = <,
	RESTRICT = scalargesel,
	JOIN = scalargejoinsel
);

CREATE OPERATOR >= (
	LEFTARG = text,
	RIGHTARG = objectid,
	FUNCTION = objectid_ge,
	COMMUTATOR = <=,
	NEGATOR = <,
	RESTRICT = scalargesel,
	JOIN = scalargejoinsel
);

ALTER OPERATOR FAMILY objectid_ops USING btree ADD
	OPERATOR 1 < (objectid, text),
	OPERATOR 2 <= (objectid, text),
	OPERATOR 3 = (objectid, text),
	OPERATOR 4 >= (objectid, text),
	OPERATOR 5 > (objectid, text),
	OPERATOR 1 < (text, objectid),
	OPERATOR 2 <= (text, objectid),
	OPERATOR 3 = (text, objectid),
	OPERATOR 4 >= (text, objectid),
	OPERATOR 5 > (text, objectid),
	FUNCTION 1 (objectid, text) objectid_cmp(objectid, text),
	FUNCTION 1 (text, objectid) objectid_cmp(text, objectid),
	FUNCTION 1 (text, text) objectid_cmp(text, text);

-- Values that drivers declare as text can be stored, too.
DROP CAST (text AS objectid);
CREATE CAST (text AS objectid) WITH INOUT AS ASSIGNMENT;
CREATE CAST (varchar AS objectid) WITH INOUT AS ASSIGNMENT;

--
-- The connections of all sessions
--

CREATE FUNCTION mongo_fdw_stat_connections_get(OUT pid integer, OUT dbid oid, OUT serverid oid, OUT userid oid,
	OUT host text, OUT state text, OUT state_change timestamptz, OUT connected_at timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;

CREATE VIEW mongo_fdw_stat_connections AS
SELECT c.pid, d.datname, pg_catalog.pg_get_userbyid(c.userid) AS user_name, f.srvname AS server_name, c.host, c.state,
	c.state_change, c.connected_at, a.application_name, a.client_addr, a.wait_event, a.query_start, a.query
FROM mongo_fdw_stat_connections_get() c
LEFT JOIN pg_catalog.pg_database d ON d.oid OPERATOR(pg_catalog.=) c.dbid
LEFT JOIN pg_catalog.pg_foreign_server f ON f.oid OPERATOR(pg_catalog.=) c.serverid
	AND d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid OPERATOR(pg_catalog.=) c.pid;

GRANT SELECT ON mongo_fdw_stat_connections TO PUBLIC;

--
-- What to change after another mongo_fdw: a row for each finding, with the statement that mends it
--

CREATE FUNCTION mongo_fdw_migration_report(sample integer DEFAULT 1000)
RETURNS TABLE (object text, finding text, detail text, alteration text)
LANGUAGE plpgsql VOLATILE STRICT
SET search_path = pg_catalog, pg_temp
AS $report$
DECLARE
	subject record;
	option record;
	wrappers oid[];
	unreachable text[] := '{}';
	are_valid boolean;
	decoded text;
	reason text;
	-- the extension may be in any schema, in which others may create objects
	extension text := (SELECT extnamespace::regnamespace FROM pg_extension WHERE extname = 'mongo_fdw');
BEGIN
	wrappers := ARRAY(SELECT oid FROM pg_foreign_data_wrapper WHERE fdwhandler = (extension || '.mongo_fdw_handler()')::regprocedure);

	FOR subject IN
		SELECT format('server %I', srvname) AS name, format('ALTER SERVER %I', srvname) AS alter, 'pg_foreign_server'::regclass AS catalog,
			srvoptions AS options
		FROM pg_foreign_server WHERE srvfdw = ANY (wrappers)
		UNION ALL
		SELECT format('user mapping of %s for server %I', m.usename, m.srvname),
			format('ALTER USER MAPPING FOR %s SERVER %I', CASE m.umuser WHEN 0 THEN 'PUBLIC' ELSE quote_ident(m.usename) END, m.srvname),
			'pg_user_mapping', m.umoptions
		FROM pg_user_mappings m JOIN pg_foreign_server s ON s.oid = m.srvid WHERE s.srvfdw = ANY (wrappers)
		UNION ALL
		SELECT format('table %s', t.ftrelid::regclass), format('ALTER FOREIGN TABLE %s', t.ftrelid::regclass), 'pg_foreign_table', t.ftoptions
		FROM pg_foreign_table t JOIN pg_foreign_server s ON s.oid = t.ftserver WHERE s.srvfdw = ANY (wrappers)
		UNION ALL
		SELECT format('column %I of table %s', a.attname, a.attrelid::regclass),
			format('ALTER FOREIGN TABLE %s ALTER COLUMN %I', a.attrelid::regclass, a.attname), 'pg_attribute', a.attfdwoptions
		FROM pg_attribute a JOIN pg_foreign_table t ON t.ftrelid = a.attrelid JOIN pg_foreign_server s ON s.oid = t.ftserver
		WHERE s.srvfdw = ANY (wrappers) AND a.attnum > 0 AND NOT a.attisdropped
	LOOP
		-- some options need others
		BEGIN
			EXECUTE format('SELECT %s.mongo_fdw_validator($1, $2)', extension) USING coalesce(subject.options, '{}'), subject.catalog::oid;
			are_valid := true;
		EXCEPTION WHEN OTHERS THEN
			are_valid := false;
		END;
		FOR option IN SELECT option_name AS name, option_value AS value FROM pg_options_to_table(subject.options) LOOP
			IF NOT are_valid THEN
				BEGIN
					EXECUTE format('SELECT %s.mongo_fdw_validator($1, $2)', extension) USING ARRAY[option.name || '=' || option.value], subject.catalog::oid;
				EXCEPTION
					-- the caller might not set it, but it is there
					WHEN insufficient_privilege THEN NULL;
					WHEN OTHERS THEN
						RETURN QUERY SELECT subject.name, 'option that is not accepted', SQLERRM,
							format('%s OPTIONS (DROP %I);', subject.alter, option.name);
				END;
			END IF;
			IF option.name IN ('username', 'password') AND option.value ~ '%[0-9A-Fa-f]{2}' THEN
				BEGIN
					SELECT convert_from(string_agg(CASE length(part[1]) WHEN 3 THEN decode(substr(part[1], 2), 'hex')
							ELSE convert_to(part[1], 'UTF8') END, '' ORDER BY place), 'UTF8')
						INTO decoded
						FROM regexp_matches(option.value, '(%[0-9A-Fa-f]{2}|.)', 'gs') WITH ORDINALITY AS parts (part, place);
				-- not text in UTF-8
				EXCEPTION WHEN data_exception THEN
					decoded := NULL;
				END;
				RETURN QUERY SELECT subject.name, 'percent-encoded ' || option.name,
					'It is sent as it stands, and was decoded before.',
					CASE WHEN decoded IS NOT NULL THEN format('%s OPTIONS (SET %I %L);', subject.alter, option.name, decoded) END;
			END IF;
		END LOOP;
	END LOOP;

	FOR subject IN
		SELECT t.ftrelid::regclass AS relation, s.srvname, coalesce(o.database, 'test') AS database,
			coalesce(o.collection, c.relname) AS collection, o.derived,
			EXISTS (SELECT FROM pg_options_to_table(s.srvoptions) WHERE option_name = 'authentication_database') AS has_database,
			EXISTS (SELECT FROM pg_options_to_table(t.ftoptions) WHERE option_name = 'type_mismatch') AS has_mismatch,
			EXISTS (SELECT FROM pg_attribute WHERE attrelid = t.ftrelid AND attname = '__doc' AND NOT attisdropped) AS has_document,
			EXISTS (SELECT FROM pg_attribute WHERE attrelid = t.ftrelid AND attname = '_id' AND atttypid = 'name'::regtype
				AND attfdwoptions IS NULL) AS has_name
		FROM pg_foreign_table t JOIN pg_class c ON c.oid = t.ftrelid JOIN pg_foreign_server s ON s.oid = t.ftserver,
			LATERAL (SELECT min(option_value) FILTER (WHERE option_name = 'database') AS database,
				min(option_value) FILTER (WHERE option_name = 'collection') AS collection,
				count(*) FILTER (WHERE option_name IN ('pipeline', 'unwind')) > 0 AS derived
				FROM pg_options_to_table(t.ftoptions)) AS o
		WHERE s.srvfdw = ANY (wrappers)
		ORDER BY 1
	LOOP
		CONTINUE WHEN subject.srvname = ANY (unreachable);
		object := format('table %s', subject.relation);
		BEGIN
			IF subject.has_document THEN
				RETURN QUERY SELECT object, '__doc has another form',
					'It is relaxed Extended JSON of version 2, and was that of version 1.', NULL;
			END IF;
			RETURN QUERY EXECUTE format($check$
				SELECT 'table ' || $1, c.finding, concat_ws(' ', quote_ident(c."column"), c.types::text, c.detail),
					CASE WHEN c.finding = 'values that do not fit' AND NOT $2 AND row_number() OVER (PARTITION BY c.finding) = 1
						THEN format('ALTER FOREIGN TABLE %%s OPTIONS (ADD type_mismatch ''null'');', $1) END
				FROM %s.mongo_fdw_check($1, $3) c
				WHERE c.finding IN ('values that do not fit', 'collection does not exist')
				$check$, extension) USING subject.relation, subject.has_mismatch, sample;
			IF subject.has_name AND NOT subject.derived THEN
				RETURN QUERY EXECUTE format($types$
					SELECT 'table ' || $1, '_id of type name', 'All _id of the sample are ObjectIds, and the column finds Strings, too, which is slower.',
						format('ALTER FOREIGN TABLE %%s ALTER COLUMN _id OPTIONS (ADD bson_type ''objectId'');', $1)
					FROM %s.mongo_aggregate($2, $3, $4, format('[{"$limit": %%s}, {"$group": {"_id": {"$type": "$_id"}}}]', $5), NULL::json) d
					HAVING array_agg(d->>'_id') = '{objectId}'
					$types$, extension) USING subject.relation, subject.srvname, subject.database, subject.collection, sample;
			END IF;
		EXCEPTION
			-- it would be the same for the server's other tables, perhaps after a long wait
			WHEN invalid_authorization_specification OR invalid_password OR too_many_connections
				OR sqlclient_unable_to_establish_sqlconnection THEN
				GET STACKED DIAGNOSTICS reason = PG_EXCEPTION_DETAIL;
				unreachable := unreachable || subject.srvname::text;
				RETURN QUERY SELECT format('server %I', subject.srvname),
					CASE WHEN starts_with(SQLSTATE, '28') THEN 'MongoDB refuses the login' ELSE 'MongoDB cannot be reached' END,
					concat_ws(': ', SQLERRM, nullif(reason, '')),
					CASE WHEN starts_with(SQLSTATE, '28') AND NOT subject.has_database
						THEN format('ALTER SERVER %I OPTIONS (ADD authentication_database %L);', subject.srvname, subject.database) END;
			WHEN OTHERS THEN
				GET STACKED DIAGNOSTICS reason = PG_EXCEPTION_DETAIL;
				RETURN QUERY SELECT object, 'cannot be read', concat_ws(': ', SQLERRM, nullif(reason, '')), NULL;
		END;
	END LOOP;
END;
$report$;

--
-- Comments, also on what version 1.0 has, in PostgreSQL's words where it has such objects itself
--

COMMENT ON FOREIGN DATA WRAPPER mongo_fdw IS 'MongoDB''s collections as tables';
COMMENT ON FUNCTION mongo_fdw_handler() IS 'foreign-data wrapper handler';
COMMENT ON FUNCTION mongo_fdw_validator(text[], oid) IS 'foreign-data wrapper options validator';
COMMENT ON FUNCTION mongo_fdw_version() IS 'version of mongo_fdw as a number, such as 20000 for 2.0.0';

COMMENT ON FUNCTION objectid_in(cstring) IS 'I/O';
COMMENT ON FUNCTION objectid_out(objectid) IS 'I/O';
COMMENT ON FUNCTION objectid_recv(internal) IS 'I/O';
COMMENT ON FUNCTION objectid_send(objectid) IS 'I/O';
COMMENT ON FUNCTION objectid_cmp(objectid, objectid) IS 'less-equal-greater';
COMMENT ON FUNCTION objectid_cmp(objectid, text) IS 'less-equal-greater';
COMMENT ON FUNCTION objectid_cmp(text, objectid) IS 'less-equal-greater';
COMMENT ON FUNCTION objectid_cmp(text, text) IS 'less-equal-greater, as ObjectIds';
COMMENT ON FUNCTION objectid_sortsupport(internal) IS 'sort support';
COMMENT ON FUNCTION objectid_hash(objectid) IS 'hash';
COMMENT ON FUNCTION objectid_hash_extended(objectid, bigint) IS 'hash';
COMMENT ON FUNCTION bytea(objectid) IS 'the 12 bytes of an ObjectId';
COMMENT ON FUNCTION objectid(bytea) IS 'the ObjectId of 12 bytes';
COMMENT ON FUNCTION timestamptz(objectid) IS 'the second in which an ObjectId was generated';
COMMENT ON FUNCTION objectid_eq(objectid, objectid) IS 'implementation of = operator';
COMMENT ON FUNCTION objectid_eq(objectid, text) IS 'implementation of = operator';
COMMENT ON FUNCTION objectid_eq(text, objectid) IS 'implementation of = operator';
COMMENT ON FUNCTION objectid_ne(objectid, objectid) IS 'implementation of <> operator';
COMMENT ON FUNCTION objectid_ne(objectid, text) IS 'implementation of <> operator';
COMMENT ON FUNCTION objectid_ne(text, objectid) IS 'implementation of <> operator';
COMMENT ON FUNCTION objectid_lt(objectid, objectid) IS 'implementation of < operator';
COMMENT ON FUNCTION objectid_lt(objectid, text) IS 'implementation of < operator';
COMMENT ON FUNCTION objectid_lt(text, objectid) IS 'implementation of < operator';
COMMENT ON FUNCTION objectid_le(objectid, objectid) IS 'implementation of <= operator';
COMMENT ON FUNCTION objectid_le(objectid, text) IS 'implementation of <= operator';
COMMENT ON FUNCTION objectid_le(text, objectid) IS 'implementation of <= operator';
COMMENT ON FUNCTION objectid_gt(objectid, objectid) IS 'implementation of > operator';
COMMENT ON FUNCTION objectid_gt(objectid, text) IS 'implementation of > operator';
COMMENT ON FUNCTION objectid_gt(text, objectid) IS 'implementation of > operator';
COMMENT ON FUNCTION objectid_ge(objectid, objectid) IS 'implementation of >= operator';
COMMENT ON FUNCTION objectid_ge(objectid, text) IS 'implementation of >= operator';
COMMENT ON FUNCTION objectid_ge(text, objectid) IS 'implementation of >= operator';
COMMENT ON OPERATOR = (objectid, objectid) IS 'equal';
COMMENT ON OPERATOR = (objectid, text) IS 'equal';
COMMENT ON OPERATOR = (text, objectid) IS 'equal';
COMMENT ON OPERATOR <> (objectid, objectid) IS 'not equal';
COMMENT ON OPERATOR <> (objectid, text) IS 'not equal';
COMMENT ON OPERATOR <> (text, objectid) IS 'not equal';
COMMENT ON OPERATOR < (objectid, objectid) IS 'less than';
COMMENT ON OPERATOR < (objectid, text) IS 'less than';
COMMENT ON OPERATOR < (text, objectid) IS 'less than';
COMMENT ON OPERATOR <= (objectid, objectid) IS 'less than or equal';
COMMENT ON OPERATOR <= (objectid, text) IS 'less than or equal';
COMMENT ON OPERATOR <= (text, objectid) IS 'less than or equal';
COMMENT ON OPERATOR > (objectid, objectid) IS 'greater than';
COMMENT ON OPERATOR > (objectid, text) IS 'greater than';
COMMENT ON OPERATOR > (text, objectid) IS 'greater than';
COMMENT ON OPERATOR >= (objectid, objectid) IS 'greater than or equal';
COMMENT ON OPERATOR >= (objectid, text) IS 'greater than or equal';
COMMENT ON OPERATOR >= (text, objectid) IS 'greater than or equal';

COMMENT ON FUNCTION mongo_command(name, text, json) IS 'run a command of MongoDB, and return its reply';
COMMENT ON FUNCTION mongo_command(name, text, text) IS 'run a command of MongoDB, and return its reply';
COMMENT ON FUNCTION mongo_aggregate(name, text, text, json, json) IS 'run an aggregation pipeline, and return its documents';
COMMENT ON FUNCTION mongo_aggregate(name, text, text, text, json) IS 'run an aggregation pipeline, and return its documents';
COMMENT ON FUNCTION mongo_match(record, json) IS 'test a row of a foreign table by a match document of MongoDB';
COMMENT ON FUNCTION mongo_score(record) IS 'text score of a document that mongo_match() has found';
COMMENT ON FUNCTION mongo_fdw_check(regclass, integer) IS 'where a foreign table and a sample of its collection differ';
COMMENT ON FUNCTION mongo_fdw_alteration(regclass, text[]) IS 'statement that brings a foreign table up to date with its collection, or NULL';
COMMENT ON FUNCTION mongo_fdw_refresh(regnamespace, name, text, boolean, text[]) IS 'statements that bring an imported schema up to date with its databases';
COMMENT ON FUNCTION mongo_fdw_migration_report(integer) IS 'what to change in a database that came from another mongo_fdw';
COMMENT ON FUNCTION mongo_fdw_get_connections() IS 'connections of this session';
COMMENT ON FUNCTION mongo_fdw_disconnect(text) IS 'close this session''s connections to a foreign server that are not in use';
COMMENT ON FUNCTION mongo_fdw_disconnect_all() IS 'close all connections of this session that are not in use';
COMMENT ON FUNCTION mongo_fdw_stat_get(boolean) IS 'counters for the views mongo_fdw_stat and mongo_fdw_stat_statements';
COMMENT ON FUNCTION mongo_fdw_stat_connections_get() IS 'connections for the view mongo_fdw_stat_connections';
COMMENT ON FUNCTION mongo_fdw_stat_reset() IS 'reset the counters of mongo_fdw_stat';
COMMENT ON FUNCTION mongo_fdw_stat_statements_reset() IS 'reset the counters of mongo_fdw_stat_statements';
COMMENT ON TABLE mongo_fdw_statistics_data IS 'rows of the view mongo_fdw_statistics';
COMMENT ON VIEW mongo_fdw_stat_connections IS 'connections of all sessions with MongoDB, and their statements';

--
-- Local tables that are kept in step with collections: see docs/sync.md
--

CREATE TABLE mongo_sync_data (
	local_table regclass PRIMARY KEY,
	foreign_table regclass NOT NULL,
	changes_table regclass NOT NULL,
	position text COLLATE "C" NOT NULL,
	position_time timestamptz NOT NULL,
	key_at_end boolean NOT NULL DEFAULT false,		-- the primary key is yet to be added, when all is copied
	copied boolean NOT NULL DEFAULT false,
	rows_copied bigint NOT NULL DEFAULT 0,
	changes_applied bigint NOT NULL DEFAULT 0,
	last_run timestamptz NOT NULL DEFAULT now(),
	stopped_by text,
	follow boolean NOT NULL DEFAULT false,
	failed_at timestamptz
);

-- Ranges of _id that have yet to be copied.  A session locks the one that it copies.
CREATE TABLE mongo_sync_ranges (
	local_table regclass NOT NULL,
	match jsonb			-- as of mongo_match(); NULL: all documents
);

CREATE TABLE mongo_sync_errors (
	local_table regclass NOT NULL,
	id text,			-- NULL: the error that has ended the last run
	mismatch jsonb NOT NULL,
	noted_at timestamptz NOT NULL DEFAULT now()
);

CREATE INDEX ON mongo_sync_errors (local_table, id);

-- rows can be deleted if a publication has all tables
ALTER TABLE mongo_sync_ranges REPLICA IDENTITY FULL;
ALTER TABLE mongo_sync_errors REPLICA IDENTITY FULL;

-- Whoever dumps the database must be able to read it, so it has no policy and nothing of documents.
-- A copy that has not ended begins again after a restore.
SELECT pg_catalog.pg_extension_config_dump('mongo_sync_data', 'WHERE copied AND local_table IN (SELECT oid FROM pg_catalog.pg_class)');
GRANT SELECT ON mongo_sync_data TO PUBLIC;

-- A table's rows are its owner's.  PUBLIC writes by privileges on columns.  With those on a table
-- it could lock the table, and with those on a view all tables of the view.
CREATE VIEW mongo_sync_positions WITH (security_barrier) AS
SELECT * FROM mongo_sync_data
WHERE (SELECT pg_catalog.pg_has_role(relowner, 'USAGE') FROM pg_catalog.pg_class WHERE oid OPERATOR(pg_catalog.=) local_table)
WITH CHECK OPTION;

ALTER TABLE mongo_sync_errors ENABLE ROW LEVEL SECURITY;
CREATE POLICY owner ON mongo_sync_errors
	USING ((SELECT pg_catalog.pg_has_role(relowner, 'USAGE') FROM pg_catalog.pg_class WHERE oid OPERATOR(pg_catalog.=) local_table));
ALTER TABLE mongo_sync_ranges ENABLE ROW LEVEL SECURITY;
CREATE POLICY owner ON mongo_sync_ranges
	USING ((SELECT pg_catalog.pg_has_role(relowner, 'USAGE') FROM pg_catalog.pg_class WHERE oid OPERATOR(pg_catalog.=) local_table));
GRANT SELECT ON mongo_sync_positions, mongo_sync_errors, mongo_sync_ranges TO PUBLIC;
GRANT INSERT (local_table, foreign_table, changes_table, position, position_time, key_at_end),
	UPDATE (foreign_table, changes_table, position, position_time, key_at_end, copied, rows_copied, changes_applied, last_run, stopped_by, follow, failed_at)
	ON mongo_sync_positions TO PUBLIC;
GRANT INSERT (local_table, id, mismatch), UPDATE (local_table) ON mongo_sync_errors TO PUBLIC;
GRANT INSERT (local_table, match), UPDATE (local_table) ON mongo_sync_ranges TO PUBLIC;

-- There is no privilege on columns to delete, so an UPDATE deletes.
CREATE FUNCTION mongo_sync_delete_row()
RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $delete_row$
BEGIN
	EXECUTE format('DELETE FROM %I.%I WHERE ctid = $1', TG_TABLE_SCHEMA, TG_TABLE_NAME) USING OLD.ctid;
	RETURN NULL;
END;
$delete_row$;

-- whoever could use it for a table of their own could have that table's triggers run as a superuser
REVOKE EXECUTE ON FUNCTION mongo_sync_delete_row() FROM PUBLIC;
CREATE TRIGGER delete_row BEFORE UPDATE ON mongo_sync_data FOR EACH ROW WHEN (NEW.foreign_table IS NULL) EXECUTE FUNCTION mongo_sync_delete_row();
CREATE TRIGGER delete_row BEFORE UPDATE ON mongo_sync_errors FOR EACH ROW EXECUTE FUNCTION mongo_sync_delete_row();
CREATE TRIGGER delete_row BEFORE UPDATE ON mongo_sync_ranges FOR EACH ROW EXECUTE FUNCTION mongo_sync_delete_row();

CREATE VIEW mongo_sync_status WITH (security_invoker) AS
SELECT local_table, foreign_table,
	CASE WHEN stopped_by IS NOT NULL THEN 'stopped by ' OPERATOR(pg_catalog.||) stopped_by WHEN copied THEN 'applying' ELSE 'copying' END AS state,
	position, position_time,
	CASE WHEN copied THEN EXTRACT(epoch FROM pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) position_time)::integer END AS lag_seconds,
	rows_copied, changes_applied,
	(SELECT pg_catalog.count(id) FROM mongo_sync_errors e WHERE e.local_table::oid OPERATOR(pg_catalog.=) d.local_table::oid) AS errors,
	last_run, failed_at,
	(SELECT pg_catalog.max(mismatch OPERATOR(pg_catalog.#>>) '{}') FROM mongo_sync_errors e
		WHERE e.local_table::oid OPERATOR(pg_catalog.=) d.local_table::oid AND id IS NULL AND failed_at IS NOT NULL) AS last_error
FROM mongo_sync_positions d;

GRANT SELECT ON mongo_sync_status TO PUBLIC;

CREATE FUNCTION mongo_in_transaction_block()
RETURNS boolean
AS 'MODULE_PATHNAME'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;

-- Creates what a table needs to be in step.  Returns the local table.
CREATE FUNCTION mongo_sync_prepare(source regclass, target text, batch_size integer)
RETURNS regclass
LANGUAGE plpgsql VOLATILE STRICT
SET search_path = pg_catalog, pg_temp
AS $prepare$
DECLARE
	extension text := (SELECT extnamespace::regnamespace FROM pg_extension WHERE extname = 'mongo_fdw');
	names text[] := parse_ident(target);
	local regclass;
	changes text;
	columns text;
	key record;
	known record;
	derived text;
	is_new boolean;
	is_usable boolean;
BEGIN
	-- Of several first calls, one creates the tables, and the others see that: a lock on a table lets
	-- them look again.  Whoever holds the advisory lock for no reason delays no later call.
	EXECUTE format('SELECT * FROM %s.mongo_sync_positions WHERE local_table = to_regclass($1)', extension) INTO known USING target;
	IF known.local_table IS NULL THEN
		PERFORM pg_advisory_xact_lock(hashtext('mongo_sync'), source::oid::integer);
		EXECUTE format('SELECT FROM %s.mongo_sync_ranges LIMIT 0', extension);
	END IF;
	local := to_regclass(target);
	SELECT a.attname, format_type(a.atttypid, a.atttypmod) AS type,
			(SELECT format(' OPTIONS (type_mismatch %L)', option_value) FROM pg_options_to_table(a.attfdwoptions) WHERE option_name = 'type_mismatch') AS options INTO key
		FROM pg_attribute a WHERE a.attrelid = source AND a.attnum > 0 AND NOT a.attisdropped
			AND coalesce((SELECT option_value FROM pg_options_to_table(a.attfdwoptions) WHERE option_name IN ('path', 'column_name')), a.attname) = '_id';
	SELECT min(option_name) INTO derived FROM pg_foreign_table t, pg_options_to_table(t.ftoptions)
		WHERE t.ftrelid = source AND option_name IN ('pipeline', 'unwind', 'change_stream');
	-- Citus keeps a table in its metadata under another name, and shows it without columns' options
	IF to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL THEN
		EXECUTE 'SELECT coalesce($1, (SELECT ''Citus'' FROM pg_dist_partition WHERE logicalrelid = $2))' INTO derived USING derived, source;
	END IF;
	IF EXISTS (SELECT FROM pg_attribute WHERE attrelid = source AND NOT attisdropped
			AND attname IN ('__operation', '__token', '__time', '__id', '__key', '__before', '__database', '__collection')) THEN
		RAISE EXCEPTION 'table "%" has a column that a change stream gives another meaning', source USING ERRCODE = 'invalid_column_reference',
			HINT = 'Rename the columns __operation, __token, __time, __id, __key, __before, __database and __collection, with the old name as the option path.';
	END IF;
	IF key IS NULL OR derived IS NOT NULL OR NOT EXISTS (SELECT FROM pg_foreign_table t JOIN pg_foreign_server s ON s.oid = t.ftserver
			JOIN pg_foreign_data_wrapper w ON w.oid = s.srvfdw WHERE t.ftrelid = source AND w.fdwhandler = to_regprocedure(extension || '.mongo_fdw_handler()')) THEN
		RAISE EXCEPTION 'table "%" cannot be the source of a table in step', source USING ERRCODE = 'wrong_object_type',
			HINT = 'It has to be a foreign table of a collection, with a column for _id, without the options pipeline, unwind and change_stream, and outside of Citus''s metadata.';
	END IF;
	-- another member may be behind the position from which changes are applied
	SELECT min(option_value) INTO derived FROM pg_foreign_table t JOIN pg_foreign_server s ON s.oid = t.ftserver,
			LATERAL (SELECT * FROM pg_options_to_table(t.ftoptions) UNION ALL SELECT * FROM pg_options_to_table(s.srvoptions)) o
		WHERE t.ftrelid = source AND (option_name = 'read_preference' AND option_value <> 'primary'
			OR option_name = 'uri' AND option_value ~* 'readPreference=(?!primary(&|$))');
	IF derived IS NOT NULL THEN
		RAISE EXCEPTION 'table "%" is not read from the primary', source USING ERRCODE = 'wrong_object_type',
			HINT = 'Its server and the table must have no other read_preference.';
	END IF;
	is_new := local IS NULL;
	IF is_new THEN
		-- the key is indexed when all is copied, which a type must allow
		EXECUTE format('SELECT NULL::%s AS key ORDER BY key', key.type);
		target := (SELECT string_agg(quote_ident(name::text), '.') FROM unnest(names) name);
		EXECUTE format('CREATE TABLE %s (%s)', target,
			(SELECT string_agg(format('%I %s%s%s', a.attname, format_type(a.atttypid, a.atttypmod),
					CASE WHEN a.attcollation <> t.typcollation THEN ' COLLATE ' || a.attcollation::regcollation ELSE '' END,
					CASE WHEN a.attname = key.attname THEN ' NOT NULL' ELSE '' END), ', ' ORDER BY a.attnum)
				FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
				WHERE a.attrelid = source AND a.attnum > 0 AND NOT a.attisdropped AND a.attname NOT IN ('__doc', '__mismatch')));
		local := to_regclass(target);
	END IF;
	IF (SELECT relkind NOT IN ('r', 'p') FROM pg_class WHERE oid = local) THEN
		RAISE EXCEPTION '"%" is not a table', local USING ERRCODE = 'wrong_object_type';
	END IF;
	IF NOT (SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = local) THEN
		RAISE EXCEPTION 'must be owner of table "%"', local USING ERRCODE = 'insufficient_privilege';
	END IF;
	EXECUTE format('SELECT * FROM %s.mongo_sync_positions WHERE local_table = $1', extension) INTO known USING local;
	IF known.foreign_table <> source THEN
		RAISE EXCEPTION 'table "%" is kept in step with "%"', local, known.foreign_table USING ERRCODE = 'object_in_use';
	END IF;

	IF known.changes_table IS NULL AND NOT is_new THEN
		EXECUTE format('SELECT %s.mongo_sync_has_key($1, $2)', extension) INTO is_usable USING local, key.attname;
		IF NOT is_usable THEN
			RAISE EXCEPTION 'table "%" has no unique index on column "%"', local, key.attname USING ERRCODE = 'invalid_column_reference',
				HINT = format('Changes are applied by it: ALTER TABLE %s ADD PRIMARY KEY (%I).', local, key.attname);
		END IF;
	END IF;

	-- the columns are those of the foreign table today; a document that is left out must not keep its row
	columns := format('__operation text, __token text COLLATE "C", __time timestamptz, __key jsonb, __id %s%s%s%s', key.type, key.options,
		(SELECT ', __mismatch jsonb' WHERE NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = source AND attname = '__mismatch' AND NOT attisdropped)
			AND EXISTS (SELECT FROM pg_foreign_table t JOIN pg_foreign_server s ON s.oid = t.ftserver, LATERAL (
				SELECT * FROM pg_options_to_table(t.ftoptions) UNION ALL SELECT * FROM pg_options_to_table(s.srvoptions)
				UNION ALL SELECT o.* FROM pg_attribute a, pg_options_to_table(a.attfdwoptions) o WHERE a.attrelid = source AND NOT a.attisdropped) o
				WHERE t.ftrelid = source AND option_name = 'type_mismatch' AND option_value = 'skip')),
		(SELECT string_agg(format(', %I %s%s%s', a.attname, format_type(a.atttypid, a.atttypmod),
				(SELECT ' OPTIONS (' || string_agg(format('%I %L', option_name, option_value), ', ') || ')' FROM pg_options_to_table(a.attfdwoptions)),
				CASE WHEN a.attcollation <> t.typcollation THEN ' COLLATE ' || a.attcollation::regcollation ELSE '' END), '' ORDER BY a.attnum)
			FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
			WHERE a.attrelid = source AND a.attnum > 0 AND NOT a.attisdropped AND a.attname <> '__doc'));
	changes := (SELECT format('%s.%I', relnamespace::regnamespace, CASE WHEN octet_length(relname) <= 55 THEN relname || '_changes' ELSE 'changes_of_' || oid END) FROM pg_class WHERE oid = local);
	changes := coalesce((SELECT oid::regclass::text FROM pg_class WHERE oid = known.changes_table), changes);
	columns := (SELECT format('(%s) SERVER %I OPTIONS (%s)', columns, s.srvname,
			string_agg(format('%I %L', o.name, o.value), ', '))
		FROM pg_foreign_table t JOIN pg_foreign_server s ON s.oid = t.ftserver, LATERAL (
			SELECT 'change_stream', 'collection'
			UNION ALL SELECT 'collection', coalesce((SELECT option_value FROM pg_options_to_table(t.ftoptions) WHERE option_name = 'collection'),
				(SELECT relname FROM pg_class WHERE oid = source))
			UNION ALL SELECT option_name, option_value FROM pg_options_to_table(t.ftoptions)
				WHERE option_name IN ('database', 'type_mismatch', 'canonical_json', 'read_preference', 'comment', 'max_time_ms', 'fetch_size')) o (name, value)
		WHERE t.ftrelid = source GROUP BY s.srvname);
	IF known.changes_table IS NULL OR obj_description(to_regclass(changes), 'pg_class') IS DISTINCT FROM md5(columns) THEN
		IF EXISTS (SELECT FROM pg_class WHERE oid = known.changes_table) THEN
			-- a session that applies changes locks the position before this table, too
			EXECUTE format('SELECT FROM %s.mongo_sync_positions WHERE local_table = $1 FOR UPDATE', extension) USING local;
			EXECUTE format('DROP FOREIGN TABLE %s', changes);
		END IF;
		EXECUTE format('CREATE FOREIGN TABLE %s %s', changes, columns);
		EXECUTE format('COMMENT ON FOREIGN TABLE %s IS %L', changes, md5(columns));
		EXECUTE format('UPDATE %s.mongo_sync_positions SET changes_table = $1 WHERE local_table = $2', extension) USING to_regclass(changes), local;
	END IF;
	IF known.changes_table IS NULL THEN
		EXECUTE format('SELECT EXISTS (SELECT 1 FROM %s)', local) INTO known;
		IF known.exists THEN
			RAISE EXCEPTION 'table "%" is not empty', local USING ERRCODE = 'object_not_in_prerequisite_state',
				HINT = 'The first call copies the collection. Drop or truncate the table, or give the name of a new one.';
		END IF;
		EXECUTE format('SELECT %s.mongo_sync_begin($1, $2, $3, $4, $5)', extension) USING local, source, to_regclass(changes), batch_size, is_new;
	END IF;
	RETURN local;
END;
$prepare$;

-- Tells whether the table has a unique index by which rows are found.
CREATE FUNCTION mongo_sync_has_key(local regclass, key name)
RETURNS boolean
LANGUAGE sql STABLE STRICT
SET search_path = pg_catalog, pg_temp
AS $has_key$
	SELECT EXISTS (SELECT FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0]
		WHERE indrelid = local AND attname = key AND indisunique AND indimmediate AND indisvalid AND indnkeyatts = 1 AND indpred IS NULL)
$has_key$;

-- Returns the type of a key, and its operator = with its schema.  The type is no domain, since a
-- value may violate one, and a text has no length, since a longer one is another key.
CREATE FUNCTION mongo_sync_key(relation regclass, key name, OUT type text, OUT equals text)
LANGUAGE sql STABLE STRICT
SET search_path = pg_catalog, pg_temp
AS $key$
	WITH RECURSIVE types AS (
		SELECT atttypid AS base, atttypmod AS typmod FROM pg_attribute WHERE attrelid = relation AND attname = key
		UNION ALL SELECT typbasetype, typtypmod FROM types JOIN pg_type t ON t.oid = base WHERE typtype = 'd')
	SELECT format_type(base, CASE typcategory WHEN 'S' THEN -1 ELSE typmod END),
		coalesce((SELECT format('OPERATOR(%s.%s)', oprnamespace::regnamespace, oprname) FROM pg_opclass
			JOIN pg_amop ON amopfamily = opcfamily AND amoplefttype = opcintype AND amoprighttype = opcintype AND amopstrategy = 3
			JOIN pg_operator o ON o.oid = amopopr JOIN pg_am m ON m.oid = opcmethod AND amname = 'btree'
			WHERE opcintype = base AND opcdefault), '=')
	FROM types JOIN pg_type t ON t.oid = base WHERE typtype <> 'd'
$key$;

-- Converts a key to the type of 'sample', which is NULL.  NULL if it has no value there: then there
-- is no row.
CREATE FUNCTION mongo_sync_convert(key anyelement, type text, sample anycompatible)
RETURNS anycompatible
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $convert$
DECLARE
	result ALIAS FOR $0;
BEGIN
	EXECUTE format('SELECT $1::%s', type) INTO result USING key;
	RETURN result;
EXCEPTION WHEN data_exception THEN
	RETURN NULL;
END;
$convert$;

-- Begins a copy into an empty table: takes the position from which changes will be applied before
-- anything is copied, so that no change is missed, and divides the collection into ranges of _id.
CREATE FUNCTION mongo_sync_begin(local regclass, source regclass, changes regclass, batch_size integer, key_at_end boolean)
RETURNS void
LANGUAGE plpgsql VOLATILE STRICT
SET search_path = pg_catalog, pg_temp
AS $begin$
DECLARE
	extension text := (SELECT extnamespace::regnamespace FROM pg_extension WHERE extname = 'mongo_fdw');
	remote record;
	collated jsonb;
	bounds integer;
BEGIN
	EXECUTE format('UPDATE %s.mongo_sync_errors SET local_table = local_table WHERE local_table = $1', extension) USING local;
	EXECUTE format('UPDATE %s.mongo_sync_ranges SET local_table = local_table WHERE local_table = $1', extension) USING local;
	EXECUTE format('INSERT INTO %s.mongo_sync_positions (local_table, foreign_table, changes_table, position, position_time, key_at_end)
		SELECT $1, $2, $3, __token, __time, $4 FROM %s WHERE __operation = ''position''
		ON CONFLICT (local_table) DO UPDATE SET position = EXCLUDED.position, position_time = EXCLUDED.position_time,
			key_at_end = EXCLUDED.key_at_end, copied = false, stopped_by = NULL', extension, changes) USING local, source, changes, key_at_end;

	SELECT s.srvname AS server, coalesce(max(option_value) FILTER (WHERE option_name = 'database'), 'test') AS database,
			max(option_value) FILTER (WHERE option_name = 'collection') AS collection
		INTO remote
		FROM pg_foreign_table t JOIN pg_foreign_server s ON s.oid = t.ftserver, pg_options_to_table(t.ftoptions)
		WHERE t.ftrelid = changes GROUP BY s.srvname;
	-- One scan is the fastest, so that only a large collection is divided.
	BEGIN
		EXECUTE format('SELECT floor(least(1000, greatest((s ->> ''count'')::numeric / (100.0 * $4), (s ->> ''size'')::numeric / 1e9))) FROM %s.mongo_command($1, $2, $3) s',
			extension) INTO bounds USING remote.server, remote.database, json_build_object('collStats', remote.collection), batch_size;
		-- a collation that the scans of ranges may not have could order them in another way
		EXECUTE format('SELECT %s.mongo_command($1, $2, $3) #> ''{cursor,firstBatch,0}''', extension) INTO collated USING remote.server, remote.database,
			json_build_object('listCollections', 1, 'filter', json_build_object('name', remote.collection, 'options.collation', json_build_object('$exists', true)));
		IF bounds > 1 AND collated IS NULL THEN
			-- Bounds are taken from a sample, since MongoDB would count to exact ones through the whole
			-- index.  $expr compares values of all types, but takes longer.
			EXECUTE format($ranges$
				INSERT INTO %1$s.mongo_sync_ranges
				SELECT $1, CASE WHEN from_type = type THEN jsonb_build_object('_id', jsonb_build_object('$gte', from_id, '$lt', id))
					ELSE jsonb_build_object('$expr', jsonb_build_object('$and', array_remove(ARRAY[
						CASE WHEN from_id IS NOT NULL THEN jsonb_build_object('$gte', jsonb_build_array('$_id', jsonb_build_object('$literal', from_id))) END,
						CASE WHEN id IS NOT NULL THEN jsonb_build_object('$lt', jsonb_build_array('$_id', jsonb_build_object('$literal', id))) END], NULL))) END
				FROM (SELECT id, type, lag(id) OVER (ORDER BY number) AS from_id, lag(type) OVER (ORDER BY number) AS from_type FROM (
					SELECT document -> '_id' AS id, document -> 'type' AS type, number FROM %1$s.mongo_aggregate($2, $3, $4, $5, NULL::json) WITH ORDINALITY AS sample (document, number)
					WHERE number %% 20 = 1
					UNION ALL SELECT NULL, NULL, NULL) bounds) ranges
				WHERE from_id IS NOT NULL OR id IS NOT NULL
				$ranges$, extension)
				USING local, remote.server, remote.database, remote.collection, json_build_array(
					json_build_object('$sample', json_build_object('size', bounds * 20 + 1)),
					json_build_object('$match', json_build_object('_id', json_build_object(
						'$type', json_build_array('number', 'objectId', 'string', 'date', 'binData'), '$ne', json_build_object('$numberDouble', 'NaN')))),
					json_build_object('$sort', json_build_object('_id', 1)),
					json_build_object('$project', json_build_object('type', json_build_object('$type', '$_id'))));
		END IF;
	EXCEPTION WHEN data_exception OR fdw_error OR insufficient_privilege OR insufficient_resources OR program_limit_exceeded THEN
		RAISE NOTICE 'the collection is copied in one transaction: %', SQLERRM;
	END;
	EXECUTE format('INSERT INTO %1$s.mongo_sync_ranges SELECT $1 WHERE NOT EXISTS (SELECT FROM %1$s.mongo_sync_ranges WHERE local_table = $1)', extension) USING local;
END;
$begin$;

-- Copies a range of _id.  Returns whether there is more to do.
CREATE FUNCTION mongo_sync_copy(local regclass, source regclass, changes regclass, key name, columns text, fits text, batch_size integer)
RETURNS boolean
LANGUAGE plpgsql VOLATILE
SET DateStyle = 'ISO'
SET search_path = pg_catalog, pg_temp
AS $copy$
DECLARE
	extension text := (SELECT extnamespace::regnamespace FROM pg_extension WHERE extname = 'mongo_fdw');
	find_range text := format('SELECT ctid, * FROM %s.mongo_sync_ranges WHERE local_table = $1 LIMIT 1 FOR UPDATE SKIP LOCKED', extension);
	range record;
	condition text;
	copied bigint;
	is_copied boolean;
	key_at_end boolean;
	is_known boolean;
	began timestamptz := clock_timestamp();
BEGIN
	EXECUTE find_range INTO range USING local;
	IF range IS NULL THEN
		-- another session may just end the copy, or begin it again
		EXECUTE format('SELECT copied FROM %s.mongo_sync_positions WHERE local_table = $1 FOR UPDATE', extension) INTO is_copied USING local;
		EXECUTE find_range INTO range USING local;
		IF is_copied OR NOT range IS NULL THEN
			RETURN true;
		END IF;
		EXECUTE format('UPDATE %1$s.mongo_sync_positions SET copied = true
			WHERE local_table = $1 AND NOT EXISTS (SELECT FROM %1$s.mongo_sync_ranges WHERE local_table = $1)
			RETURNING key_at_end AND NOT %1$s.mongo_sync_has_key($1, $2)', extension) INTO key_at_end USING local, key;
		IF key_at_end THEN
			BEGIN
				EXECUTE format('ALTER TABLE %s ADD PRIMARY KEY (%I)', local, key);
			EXCEPTION WHEN unique_violation THEN
				-- a document was deleted and inserted again while it was read, or two have this key in PostgreSQL
				RAISE NOTICE 'rows have the same key (%): copying again', SQLERRM;
				EXECUTE format('TRUNCATE %s', local);
				EXECUTE format('ALTER TABLE %s ADD PRIMARY KEY (%I)', local, key);
				EXECUTE format('SELECT %s.mongo_sync_begin($1, $2, $3, $4, false)', extension) USING local, source, changes, batch_size;
			END;
		ELSIF key_at_end IS NULL THEN
			RAISE NOTICE 'other sessions copy the last ranges';
		END IF;
		RETURN key_at_end IS NOT NULL;
	END IF;

	-- a primary that was just elected may not know yet what a majority had before the position
	LOOP
		EXECUTE format('SELECT max(__token COLLATE "C") >= (SELECT position FROM %s.mongo_sync_positions WHERE local_table = $1) FROM %s',
			extension, changes) INTO is_known USING local;
		IF is_known IS NULL THEN
			RAISE EXCEPTION 'table "%" is no longer kept in step', local USING ERRCODE = 'object_in_use';
		END IF;
		EXIT WHEN is_known;
		PERFORM pg_sleep(0.1);
	END LOOP;
	condition := CASE WHEN range.match IS NULL THEN 'true' ELSE format('%s.mongo_match(ROW(__row), %L::json)', extension, range.match) END;
	EXECUTE format('INSERT INTO %s (%s) SELECT %2$s FROM %s __row WHERE %s AND %s AND %I IS NOT NULL', local, columns, source, condition, fits, key);
	GET DIAGNOSTICS copied = ROW_COUNT;
	IF fits <> 'true' THEN
		EXECUTE format('INSERT INTO %s.mongo_sync_errors (local_table, id, mismatch) SELECT $1, coalesce(%I::text, __mismatch::text), __mismatch FROM %s __row WHERE %s AND __mismatch IS NOT NULL',
			extension, key, source, condition) USING local;
	END IF;
	EXECUTE format('UPDATE %s.mongo_sync_ranges SET local_table = local_table WHERE ctid = $1', extension) USING range.ctid;
	EXECUTE format('UPDATE %s.mongo_sync_positions SET rows_copied = rows_copied + $1, last_run = now(), failed_at = NULL WHERE local_table = $2', extension)
		USING copied, local;
	RAISE NOTICE 'copied % rows in % s', copied, round(extract(epoch FROM clock_timestamp() - began), 1);
	RETURN true;
END;
$copy$;

-- Does a transaction's part of the work: copies a range, or applies some changes.  Returns
-- whether there is more.
CREATE FUNCTION mongo_sync_step(local regclass, batch_size integer)
RETURNS boolean
LANGUAGE plpgsql VOLATILE STRICT
SET search_path = pg_catalog, pg_temp
AS $step$
DECLARE
	extension text := (SELECT extnamespace::regnamespace FROM pg_extension WHERE extname = 'mongo_fdw');
	sync record;
	key name;
	equals text;
	key_type text;
	local_equals text;
	local_type text;
	columns text;
	assignments text;
	fits text;
	fetched record;
	is_more boolean;
BEGIN
	-- several sessions may copy, one applies changes
	EXECUTE format('SELECT * FROM %s.mongo_sync_positions WHERE local_table = $1 AND NOT copied', extension) INTO sync USING local;
	IF sync IS NULL THEN
		EXECUTE format('SELECT * FROM %s.mongo_sync_positions WHERE local_table = $1 FOR UPDATE SKIP LOCKED', extension) INTO sync USING local;
	END IF;
	IF sync IS NULL THEN
		RAISE EXCEPTION 'table "%" is being brought into step by another session', local USING ERRCODE = 'object_in_use';
	END IF;
	IF sync.stopped_by IS NOT NULL AND NOT sync.follow THEN
		RAISE EXCEPTION 'the collection of table "%" is gone: %', local, sync.stopped_by USING ERRCODE = 'object_not_in_prerequisite_state',
			HINT = 'To copy the collection that has its name now, and to do so from now on, call mongo_sync() with follow => true.';
	ELSIF sync.stopped_by IS NOT NULL THEN
		RAISE NOTICE 'the changes of table "%" end (%): copying the collection that has its name now', local, sync.stopped_by;
		EXECUTE format('DELETE FROM %s', local);
		EXECUTE format('SELECT %s.mongo_sync_begin($1, $2, $3, $4, false)', extension) USING local, sync.foreign_table, sync.changes_table, batch_size;
		RETURN true;
	END IF;
	SELECT a.attname INTO key FROM pg_attribute a WHERE a.attrelid = sync.changes_table AND a.attnum > 0 AND NOT a.attisdropped
		AND coalesce((SELECT option_value FROM pg_options_to_table(a.attfdwoptions) WHERE option_name IN ('path', 'column_name')), a.attname) = '_id';
	EXECUTE format('SELECT f.type, f.equals, l.type, l.equals FROM %1$s.mongo_sync_key($1, $3) f, %1$s.mongo_sync_key($2, $3) l', extension)
		INTO key_type, equals, local_type, local_equals USING sync.changes_table, local, key;
	SELECT string_agg(quote_ident(l.attname::text), ', ' ORDER BY l.attnum), string_agg(format('%1$I = EXCLUDED.%1$I', l.attname), ', ') FILTER (WHERE l.attname <> key)
		INTO columns, assignments
		FROM pg_attribute c JOIN pg_attribute l USING (attname)
		WHERE c.attrelid = sync.changes_table AND l.attrelid = local AND l.attnum > 0 AND NOT l.attisdropped AND NOT c.attisdropped AND l.attgenerated = ''
			AND l.attname NOT IN ('__operation', '__token', '__time', '__key', '__id', '__mismatch');
	fits := CASE WHEN EXISTS (SELECT FROM pg_attribute WHERE attrelid = CASE WHEN sync.copied THEN sync.changes_table ELSE sync.foreign_table END AND attname = '__mismatch' AND NOT attisdropped)
		THEN '__mismatch IS NULL' ELSE 'true' END;

	IF NOT sync.copied THEN
		EXECUTE format('SELECT %s.mongo_sync_copy($1, $2, $3, $4, $5, $6, $7)', extension) INTO is_more
			USING local, sync.foreign_table, sync.changes_table, key, columns, fits, batch_size;
		RETURN is_more;
	END IF;

	-- the last state of each document in the batch
	BEGIN
		EXECUTE format($apply$
			WITH changes AS MATERIALIZED (
				SELECT * FROM %1$s WHERE __token > $1 LIMIT $2
			), last AS MATERIALIZED (
				SELECT DISTINCT ON (__id) * FROM changes WHERE __operation IN ('insert', 'update', 'replace', 'delete') AND __id IS NOT NULL ORDER BY __id, __token DESC
			), deleted AS (
				DELETE FROM %2$s l USING (SELECT %10$s AS id FROM last WHERE %3$I IS NULL OR NOT (%4$s)) c WHERE l.%3$I %9$s c.id RETURNING 1
			), written AS (
				INSERT INTO %2$s (%5$s) SELECT DISTINCT ON (%3$I::%11$s) %5$s FROM last WHERE %3$I IS NOT NULL AND %4$s AND (SELECT count(*) FROM deleted) >= 0
				ORDER BY %3$I::%11$s, __token DESC
				ON CONFLICT (%3$I) DO %6$s
			), repaired AS (
				UPDATE %7$s.mongo_sync_errors e SET local_table = e.local_table FROM last c WHERE e.local_table = $3 AND e.id = c.__id::text
			)%8$s
			SELECT count(__id) AS events, max(__token) AS position, max(__time) AS time, bool_or(__operation = 'position') AS at_end,
				min(__operation) FILTER (WHERE __operation IN ('drop', 'rename', 'dropDatabase', 'invalidate')) AS stopped_by,
				(SELECT array_agg(__id)::text FROM last WHERE CASE __operation WHEN 'delete' THEN __key - '_id' <> '{}' ELSE %3$I IS NULL END) AS moved
			FROM changes
			$apply$, sync.changes_table, local, key, fits, columns, coalesce('UPDATE SET ' || assignments, 'NOTHING'), extension,
			CASE WHEN fits <> 'true' THEN format($noted$, noted AS (
				INSERT INTO %s.mongo_sync_errors (local_table, id, mismatch)
				SELECT $3, __id::text, __mismatch FROM last WHERE __mismatch IS NOT NULL
				UNION ALL SELECT $3, __mismatch::text, __mismatch FROM changes WHERE __id IS NULL AND __mismatch IS NOT NULL
			)$noted$, extension) END, local_equals,
			CASE WHEN key_type = local_type THEN '__id' ELSE format('%s.mongo_sync_convert(__id, %L, NULL::%s)', extension, local_type, local_type) END, local_type)
			INTO fetched USING sync.position, batch_size, local;
		-- documents that are not found by the shard key that they had before a change
		IF fetched.moved IS NOT NULL THEN
			EXECUTE format('INSERT INTO %s (%s) SELECT %2$s FROM %s WHERE %I %s ANY ($1::%s[])%s ON CONFLICT (%4$I) DO %8$s',
				local, columns, sync.foreign_table, key, equals, key_type,
				(SELECT ' AND __mismatch IS NULL' FROM pg_attribute WHERE attrelid = sync.foreign_table AND attname = '__mismatch' AND NOT attisdropped),
				coalesce('UPDATE SET ' || assignments, 'NOTHING')) USING fetched.moved;
		END IF;
	EXCEPTION WHEN SQLSTATE '72000' THEN
		IF NOT sync.follow THEN
			RAISE;
		END IF;
		-- the next step copies
		EXECUTE format('UPDATE %s.mongo_sync_positions SET stopped_by = ''a short oplog'' WHERE local_table = $1', extension) USING local;
		RETURN true;
	END;
	EXECUTE format('UPDATE %s.mongo_sync_positions SET position = coalesce($1, position), position_time = coalesce($2, position_time), changes_applied = changes_applied + $3,
			stopped_by = $4, last_run = now(), failed_at = NULL WHERE local_table = $5', extension)
		USING fetched.position, fetched.time, fetched.events, fetched.stopped_by, local;
	RETURN fetched.stopped_by IS NOT NULL OR NOT coalesce(fetched.at_end, true);
END;
$step$;

-- Notes an error that has ended a run.
CREATE FUNCTION mongo_sync_fail(local regclass, message text)
RETURNS void
LANGUAGE plpgsql VOLATILE STRICT
SET search_path = pg_catalog, pg_temp
AS $fail$
DECLARE
	extension text := (SELECT extnamespace::regnamespace FROM pg_extension WHERE extname = 'mongo_fdw');
BEGIN
	EXECUTE format('UPDATE %s.mongo_sync_positions SET failed_at = now() WHERE local_table = $1', extension) USING local;
	EXECUTE format('UPDATE %s.mongo_sync_errors SET local_table = local_table WHERE local_table = $1 AND id IS NULL', extension) USING local;
	EXECUTE format('INSERT INTO %s.mongo_sync_errors (local_table, mismatch) VALUES ($1, to_jsonb($2))', extension) USING local, message;
END;
$fail$;

CREATE PROCEDURE mongo_sync(foreign_table regclass, local_table text, batch_size integer DEFAULT 10000, follow boolean DEFAULT NULL)
LANGUAGE plpgsql
AS $sync$
DECLARE
	extension text := (SELECT extnamespace::regnamespace FROM pg_extension WHERE extname = 'mongo_fdw');
	local regclass;
	creation_schema name;
	names text[] := pg_catalog.parse_ident(local_table);
	is_more boolean := true;
	steps bigint := 0;
	state text;
	message text;
	detail text;
	hint text;
BEGIN
	IF foreign_table IS NULL OR local_table IS NULL OR coalesce(batch_size < 1, true) THEN
		RAISE EXCEPTION 'mongo_sync() needs a foreign table, the name of a local one, and a batch_size of at least 1' USING ERRCODE = 'invalid_parameter_value';
	END IF;
	EXECUTE pg_catalog.format('SELECT %s.mongo_in_transaction_block()', extension) INTO is_more;
	IF is_more THEN
		RAISE EXCEPTION 'mongo_sync() cannot run in a transaction block' USING ERRCODE = 'active_sql_transaction',
			HINT = 'It commits each batch together with its position. Run CALL by itself.';
	END IF;
	-- sessions see what others have committed
	COMMIT;
	SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
	-- The table is found by the caller's search_path, and nothing else.  COMMIT ends SET LOCAL,
	-- so that names are qualified elsewhere.
	local := pg_catalog.to_regclass(local_table);
	creation_schema := pg_catalog.current_schema();
	SET LOCAL search_path = pg_catalog, pg_temp;
	IF local IS NULL AND cardinality(names) = 1 THEN
		IF creation_schema IS NULL THEN
			RAISE EXCEPTION 'no schema has been selected to create "%" in', local_table USING ERRCODE = 'invalid_schema_name';
		END IF;
		local_table := format('%I.%s', creation_schema, local_table);
	END IF;
	EXECUTE format('SELECT %s.mongo_sync_prepare($1, coalesce($2::text, $3), $4)', extension) INTO local USING foreign_table, local, local_table, batch_size;
	IF follow IS NOT NULL THEN
		EXECUTE format('UPDATE %s.mongo_sync_positions p SET follow = $1 WHERE p.local_table = $2', extension) USING follow, local;
	END IF;
	COMMIT;
	SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
	LOOP
		BEGIN
			EXECUTE pg_catalog.format('SELECT %s.mongo_sync_step($1, $2)', extension) INTO is_more USING local, batch_size;
		EXCEPTION WHEN OTHERS THEN
			GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
			IF state <> '55006' THEN
				EXECUTE pg_catalog.format('SELECT %s.mongo_sync_fail($1, $2)', extension) USING local, message;
			END IF;
		END;
		COMMIT;
		SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
		-- another session goes on with it
		EXIT WHEN state = '55006' AND steps > 0;
		IF state IS NOT NULL THEN
			RAISE EXCEPTION USING ERRCODE = state, MESSAGE = message, HINT = coalesce(nullif(hint, ''), 'See the page docs/sync.md.'),
				DETAIL = coalesce(nullif(detail, ''), pg_catalog.format('Table "%s" was being brought into step.', local));
		END IF;
		EXIT WHEN is_more IS NOT TRUE;
		steps := steps + 1;
	END LOOP;
END;
$sync$;

-- Forgets the position of a local table, and drops its stream.
CREATE FUNCTION mongo_sync_end(local_table regclass)
RETURNS void
LANGUAGE plpgsql VOLATILE STRICT
SET search_path = pg_catalog, pg_temp
AS $end$
DECLARE
	extension text := (SELECT extnamespace::regnamespace FROM pg_extension WHERE extname = 'mongo_fdw');
	known record;
BEGIN
	EXECUTE format('SELECT * FROM %s.mongo_sync_positions WHERE local_table = $1', extension) INTO known USING local_table;
	IF known.local_table IS NULL THEN
		RAISE EXCEPTION 'table "%" is not kept in step, or not yours', local_table USING ERRCODE = 'object_not_in_prerequisite_state';
	END IF;
	-- a copy locks its range before the position, and an owner might have entered the table of another
	EXECUTE format('UPDATE %s.mongo_sync_ranges SET local_table = local_table WHERE local_table = $1', extension) USING local_table;
	EXECUTE format('UPDATE %s.mongo_sync_positions SET foreign_table = NULL WHERE local_table = $1', extension) USING local_table;
	EXECUTE format('UPDATE %s.mongo_sync_errors SET local_table = local_table WHERE local_table = $1', extension) USING local_table;
	IF EXISTS (SELECT FROM pg_class s, pg_class l WHERE s.oid = known.changes_table AND l.oid = local_table AND pg_has_role(l.relowner, s.relowner, 'USAGE')) THEN
		EXECUTE format('DROP FOREIGN TABLE %s', known.changes_table);
	END IF;
END;
$end$;

COMMENT ON TABLE mongo_sync_data IS 'positions of local tables that mongo_sync() keeps in step with collections';
COMMENT ON TABLE mongo_sync_ranges IS 'ranges of collections that mongo_sync() has yet to copy; an UPDATE deletes a row';
COMMENT ON TABLE mongo_sync_errors IS 'documents that do not fit the local table that is kept in step with their collection; an UPDATE deletes a row';
COMMENT ON VIEW mongo_sync_positions IS 'rows of mongo_sync_data for tables of the current user';
COMMENT ON VIEW mongo_sync_status IS 'how far local tables are in step with collections';
COMMENT ON FUNCTION mongo_in_transaction_block() IS 'does the statement run in a transaction block?';
COMMENT ON FUNCTION mongo_sync_prepare(regclass, text, integer) IS 'part of mongo_sync()';
COMMENT ON FUNCTION mongo_sync_has_key(regclass, name) IS 'part of mongo_sync()';
COMMENT ON FUNCTION mongo_sync_delete_row() IS 'part of mongo_sync()';
COMMENT ON FUNCTION mongo_sync_key(regclass, name) IS 'part of mongo_sync()';
COMMENT ON FUNCTION mongo_sync_convert(anyelement, text, anycompatible) IS 'part of mongo_sync()';
COMMENT ON FUNCTION mongo_sync_begin(regclass, regclass, regclass, integer, boolean) IS 'part of mongo_sync()';
COMMENT ON FUNCTION mongo_sync_copy(regclass, regclass, regclass, name, text, text, integer) IS 'part of mongo_sync()';
COMMENT ON FUNCTION mongo_sync_fail(regclass, text) IS 'part of mongo_sync()';
COMMENT ON FUNCTION mongo_sync_step(regclass, integer) IS 'part of mongo_sync()';
COMMENT ON FUNCTION mongo_sync_end(regclass) IS 'stop keeping a local table in step, and drop its change stream';
COMMENT ON PROCEDURE mongo_sync(regclass, text, integer, boolean) IS 'bring a local table into step with the collection of a foreign table';

-- The present time of a server's clock, for mongo_fdw.cluster_time.
CREATE FUNCTION mongo_cluster_time(server name)
RETURNS text
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION mongo_cluster_time(name) IS 'the present time of a MongoDB server''s clock';
