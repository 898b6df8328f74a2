-- complain if script is sourced in psql, rather than via ALTER EXTENSION
\echo Use "ALTER EXTENSION mongo_fdw UPDATE" to load this file. \quit

--
-- The procedure mongo_sync() of version 2.0, which the extension mongo_sync replaces.  Local tables
-- keep their rows.  The foreign tables over change streams belong to users, and stay, too.
--

DO $leftovers$
DECLARE
	locals text;
	streams text;
BEGIN
	SELECT pg_catalog.string_agg(local_table::pg_catalog.text, ', ' ORDER BY local_table::pg_catalog.oid),
		pg_catalog.string_agg(changes_table::pg_catalog.text, ', ' ORDER BY local_table::pg_catalog.oid)
	INTO locals, streams FROM mongo_sync_data
	WHERE local_table::pg_catalog.oid OPERATOR(pg_catalog.=) ANY (ARRAY(SELECT oid FROM pg_catalog.pg_class));
	IF locals IS NOT NULL THEN
		RAISE WARNING 'tables are not synchronized any more: %', locals USING
			DETAIL = 'Their rows stay. These foreign tables over change streams are left: ' OPERATOR(pg_catalog.||) streams,
			HINT = 'CREATE EXTENSION mongo_sync; then CALL mongo_sync.sync() for each table goes on with it. Drop the change streams if nothing else reads them.';
	END IF;
END
$leftovers$;

-- docs/migration_report.sql replaces it.
DROP FUNCTION IF EXISTS mongo_fdw_migration_report(integer);

DO $drop$
DECLARE
	detail text;
BEGIN
	DROP PROCEDURE mongo_sync(regclass, text, integer, boolean);
	DROP FUNCTION mongo_sync_end(regclass), mongo_sync_fail(regclass, text), mongo_sync_step(regclass, integer),
		mongo_sync_copy(regclass, regclass, regclass, name, text, text, integer),
		mongo_sync_begin(regclass, regclass, regclass, integer, boolean),
		mongo_sync_convert(anyelement, text, anycompatible), mongo_sync_key(regclass, name),
		mongo_sync_has_key(regclass, name), mongo_sync_prepare(regclass, text, integer), mongo_in_transaction_block();
	DROP VIEW mongo_sync_status, mongo_sync_positions;
	-- otherwise its OID stays among the tables to be dumped
	ALTER EXTENSION mongo_fdw DROP TABLE mongo_sync_data;
	DROP TABLE mongo_sync_data, mongo_sync_ranges, mongo_sync_errors;
	DROP FUNCTION mongo_sync_delete_row();
EXCEPTION WHEN dependent_objects_still_exist THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
	RAISE EXCEPTION 'other objects depend on mongo_sync() of mongo_fdw 2.0, which version 2.1 has no longer'
		USING ERRCODE = 'dependent_objects_still_exist', DETAIL = detail,
			HINT = 'Drop them first. The extension mongo_sync has views and functions of other names.';
END
$drop$;

