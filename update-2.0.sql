-- complain if script is sourced in psql, rather than via ALTER EXTENSION
\echo Use "ALTER EXTENSION mongo_fdw UPDATE" to load this file. \quit

--
-- The Makefile puts what version 1.0 has at the mark.  The other mongo_fdw lacks it in its
-- versions 1.0 and 1.1: it has a wrapper, a handler, a validator, and in 1.1 a function for its
-- version.
--

DO $update$
BEGIN
	IF NOT EXISTS (
		SELECT FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_extension e ON e.oid = d.refobjid
		WHERE e.extname = 'mongo_fdw' AND d.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass::pg_catalog.oid
			AND d.classid = 'pg_catalog.pg_type'::pg_catalog.regclass::pg_catalog.oid)
	THEN
		EXECUTE $objects$
@OBJECTS@
$objects$;
	END IF;
END
$update$;

