--
-- What version 2.0 adds to version 1.0, without the mongo_sync() that version 2.1 drops.  The
-- Makefile makes mongo_fdw--2.1.sql and the update scripts of the files *-2.?.sql and
-- mongo_fdw--1.0.sql.
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
