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
COMMENT ON FUNCTION mongo_fdw_get_connections() IS 'connections of this session';
COMMENT ON FUNCTION mongo_fdw_disconnect(text) IS 'close this session''s connections to a foreign server that are not in use';
COMMENT ON FUNCTION mongo_fdw_disconnect_all() IS 'close all connections of this session that are not in use';
COMMENT ON FUNCTION mongo_fdw_stat_get(boolean) IS 'counters for the views mongo_fdw_stat and mongo_fdw_stat_statements';
COMMENT ON FUNCTION mongo_fdw_stat_connections_get() IS 'connections for the view mongo_fdw_stat_connections';
COMMENT ON FUNCTION mongo_fdw_stat_reset() IS 'reset the counters of mongo_fdw_stat';
COMMENT ON FUNCTION mongo_fdw_stat_statements_reset() IS 'reset the counters of mongo_fdw_stat_statements';
COMMENT ON TABLE mongo_fdw_statistics_data IS 'rows of the view mongo_fdw_statistics';
COMMENT ON VIEW mongo_fdw_stat_connections IS 'connections of all sessions with MongoDB, and their statements';
