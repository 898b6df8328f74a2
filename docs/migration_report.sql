-- What to change in a database that came from another mongo_fdw: docs/migrating.md has the findings.
--
--	psql -d database -f migration_report.sql
--
-- Reads a sample of each collection and changes nothing.  The findings are in the temporary table
-- migration_report, so that \i keeps them for the session:
--	SELECT alteration FROM migration_report WHERE finding = '_id of type name' \gexec
-- "-v sample=100" reads fewer documents of each table than 1,000.

\if :{?sample}
\else
	\set sample 1000
\endif

BEGIN;
SET LOCAL search_path = pg_catalog, pg_temp;
SET LOCAL client_min_messages = warning;

SELECT quote_ident(n.nspname) AS schema, w.fdwhandler::oid AS handler
FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
	JOIN pg_depend d ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
	JOIN pg_foreign_data_wrapper w ON d.classid = 'pg_foreign_data_wrapper'::regclass AND d.objid = w.oid
WHERE e.extname = 'mongo_fdw' \gset mongo_fdw_

-- The extension's functions are named here only, in bodies that keep the functions and not their
-- names: the report may run for minutes as a superuser, while others rename the extension's schema.

CREATE OR REPLACE FUNCTION pg_temp.check_table(relation regclass, sample integer)
RETURNS TABLE (finding text, field text, "column" name, documents bigint, types text[], detail text)
BEGIN ATOMIC
	SELECT * FROM :mongo_fdw_schema.mongo_fdw_check(relation, sample);
END;

CREATE OR REPLACE FUNCTION pg_temp.validate(options text[], catalog oid)
RETURNS void
BEGIN ATOMIC
	SELECT :mongo_fdw_schema.mongo_fdw_validator(options, catalog);
END;

-- The types of the _id of a sample.
CREATE OR REPLACE FUNCTION pg_temp.types_of_id(server name, database text, collection text, sample integer)
RETURNS text[]
BEGIN ATOMIC
	SELECT array_agg(d ->> '_id') FROM :mongo_fdw_schema.mongo_aggregate(server, database, collection,
		json_build_array(json_build_object('$sample', json_build_object('size', sample)),
			'{"$group": {"_id": {"$type": "$_id"}}}'::json)) AS d;
END;

CREATE OR REPLACE VIEW pg_temp.mongo_servers AS
SELECT s.oid, s.srvname, s.srvoptions FROM pg_foreign_server s JOIN pg_foreign_data_wrapper w ON w.oid = s.srvfdw
WHERE w.fdwhandler = :mongo_fdw_handler;

CREATE OR REPLACE VIEW pg_temp.mongo_tables AS
SELECT t.ftrelid, t.ftrelid::regclass::text AS name, s.oid AS server, s.srvname, t.ftoptions, o.database,
	coalesce(o.collection, c.relname::text) AS collection, o.mismatch, o.deriving,
	EXISTS (SELECT FROM pg_options_to_table(s.srvoptions) WHERE option_name = 'authentication_database') AS has_authentication_database
FROM pg_foreign_table t JOIN pg_class c ON c.oid = t.ftrelid JOIN pg_temp.mongo_servers s ON s.oid = t.ftserver,
	LATERAL (SELECT coalesce(min(option_value) FILTER (WHERE option_name = 'database'), 'test') AS database,
		min(option_value) FILTER (WHERE option_name = 'collection') AS collection,
		min(option_value) FILTER (WHERE option_name = 'type_mismatch') AS mismatch,
		count(*) FILTER (WHERE option_name IN ('pipeline', 'unwind', 'change_stream')) > 0 AS deriving
		FROM pg_options_to_table(t.ftoptions)) AS o;

-- Whatever has options.
CREATE OR REPLACE VIEW pg_temp.mongo_objects AS
SELECT 1 AS kind, oid, format('server %I', srvname) AS name, format('ALTER SERVER %I', srvname) AS alter,
	'pg_foreign_server'::regclass::oid AS catalog, srvoptions AS options
FROM pg_temp.mongo_servers
UNION ALL
SELECT 2, m.umid, format('user mapping of %s for server %I', m.usename, m.srvname),
	format('ALTER USER MAPPING FOR %s SERVER %I', CASE m.umuser WHEN 0 THEN 'PUBLIC' ELSE quote_ident(m.usename) END, m.srvname),
	'pg_user_mapping'::regclass, m.umoptions
FROM pg_user_mappings m JOIN pg_temp.mongo_servers s ON s.oid = m.srvid
UNION ALL
SELECT 3, ftrelid, 'table ' || name, 'ALTER FOREIGN TABLE ' || name, 'pg_foreign_table'::regclass, ftoptions
FROM pg_temp.mongo_tables
UNION ALL
SELECT 4, t.ftrelid, format('column %I of table %s', a.attname, t.name),
	format('ALTER FOREIGN TABLE %s ALTER COLUMN %I', t.name, a.attname), 'pg_attribute'::regclass, a.attfdwoptions
FROM pg_attribute a JOIN pg_temp.mongo_tables t ON t.ftrelid = a.attrelid
WHERE a.attnum > 0 AND NOT a.attisdropped;

-- What is wrong with options; NULL if nothing is, and '' if the caller might not set one of them.
CREATE OR REPLACE FUNCTION pg_temp.option_error(options text[], catalog oid)
RETURNS text
LANGUAGE plpgsql STRICT AS $$
BEGIN
	PERFORM pg_temp.validate(options, catalog);
	RETURN NULL;
EXCEPTION WHEN insufficient_privilege THEN
	RETURN '';
WHEN OTHERS THEN
	RETURN SQLERRM;
END;
$$;

CREATE OR REPLACE FUNCTION pg_temp.percent_decoded(value text)
RETURNS text
LANGUAGE plpgsql STRICT AS $$
BEGIN
	RETURN (SELECT convert_from(string_agg(CASE length(part[1]) WHEN 3 THEN decode(substr(part[1], 2), 'hex')
			ELSE convert_to(part[1], 'UTF8') END, '' ORDER BY place), 'UTF8')
		FROM regexp_matches(value, '(%[0-9A-Fa-f]{2}|.)', 'gs') WITH ORDINALITY AS parts (part, place));
-- not text in UTF-8
EXCEPTION WHEN data_exception THEN
	RETURN NULL;
END;
$$;

-- What is found in the documents; the first error of a server ends it, as the next may take as long.
CREATE OR REPLACE FUNCTION pg_temp.document_findings(sample integer)
RETURNS TABLE (oid oid, object text, finding text, detail text, alteration text)
LANGUAGE plpgsql AS $$
DECLARE
	t record;
	failed oid := 0;
	details text;
BEGIN
	FOR t IN SELECT * FROM pg_temp.mongo_tables ORDER BY server, ftrelid LOOP
		CONTINUE WHEN t.server = failed;
		BEGIN
			RETURN QUERY SELECT t.ftrelid, 'table ' || t.name, c.finding, concat_ws(' ', quote_ident(c."column"), c.types::text, c.detail),
				CASE WHEN c.finding = 'values that do not fit' AND t.mismatch IS NULL AND row_number() OVER (PARTITION BY c.finding ORDER BY c.number) = 1
					THEN format('ALTER FOREIGN TABLE %s OPTIONS (ADD type_mismatch ''null'');', t.name) END
			FROM pg_temp.check_table(t.ftrelid, sample) WITH ORDINALITY AS c (finding, field, "column", documents, types, detail, number)
			WHERE c.finding IN ('values that do not fit', 'collection does not exist') ORDER BY c.number;
			IF NOT t.deriving AND EXISTS (SELECT FROM pg_attribute WHERE attrelid = t.ftrelid AND attname = '_id'
					AND atttypid = 'name'::regtype AND attfdwoptions IS NULL)
				AND pg_temp.types_of_id(t.srvname, t.database, t.collection, sample) = '{objectId}' THEN
				RETURN QUERY SELECT t.ftrelid, 'table ' || t.name, '_id of type name',
					'All _id of the sample are ObjectIds, and the column finds Strings, too, which is slower.',
					format('ALTER FOREIGN TABLE %s ALTER COLUMN _id OPTIONS (ADD bson_type ''objectId'');', t.name);
			END IF;
		EXCEPTION WHEN OTHERS THEN
			GET STACKED DIAGNOSTICS details = PG_EXCEPTION_DETAIL;
			details := concat_ws(': ', SQLERRM, nullif(details, ''));
			IF SQLSTATE IN ('28000', '28P01') THEN
				failed := t.server;
				RETURN QUERY SELECT t.ftrelid, format('server %I', t.srvname), 'MongoDB refuses the login', details,
					CASE WHEN NOT t.has_authentication_database
						THEN format('ALTER SERVER %I OPTIONS (ADD authentication_database %L);', t.srvname, t.database) END;
			ELSIF SQLSTATE IN ('08001', '53300') THEN
				failed := t.server;
				RETURN QUERY SELECT t.ftrelid, format('server %I', t.srvname), 'MongoDB cannot be reached', details, NULL;
			ELSE
				RETURN QUERY SELECT t.ftrelid, 'table ' || t.name, 'cannot be read', details, NULL;
			END IF;
		END;
	END LOOP;
END;
$$;

DROP TABLE IF EXISTS pg_temp.migration_report;
CREATE TEMPORARY TABLE migration_report AS
WITH options AS (
	SELECT v.*, o.option, o.number, split_part(o.option, '=', 1) AS option_name, substr(o.option, strpos(o.option, '=') + 1) AS value
	FROM pg_temp.mongo_objects v, unnest(v.options) WITH ORDINALITY AS o (option, number)
), findings AS (
	SELECT o.kind, o.oid, o.number, o.name AS object, 'option that is not accepted' AS finding, e.error AS detail,
		format('%s OPTIONS (DROP %I);', o.alter, o.option_name) AS alteration
	-- some options need others; and the caller might not set one that is there
	FROM options o, pg_temp.option_error(ARRAY[o.option], o.catalog) AS e (error)
	WHERE e.error <> '' AND pg_temp.option_error(o.options, o.catalog) IS NOT NULL
	UNION ALL
	SELECT kind, oid, number, name, 'percent-encoded ' || option_name, 'It is sent as it stands, and was decoded before.',
		CASE WHEN d.value IS NOT NULL THEN format('%s OPTIONS (SET %I %L);', alter, option_name, d.value) END
	FROM options o, pg_temp.percent_decoded(o.value) AS d (value)
	WHERE option_name IN ('username', 'password') AND o.value ~ '%[0-9A-Fa-f]{2}'
	UNION ALL
	SELECT 5, t.ftrelid, 0, 'table ' || t.name, '__doc has another form',
		'It is relaxed Extended JSON of version 2, and was that of version 1.', NULL
	FROM pg_temp.mongo_tables t JOIN pg_attribute a ON a.attrelid = t.ftrelid AND a.attname = '__doc' AND NOT a.attisdropped
	UNION ALL
	SELECT 5, oid, number, object, finding, detail, alteration
	FROM pg_temp.document_findings(:sample) WITH ORDINALITY AS d (oid, object, finding, detail, alteration, number)
)
SELECT object, finding, detail, alteration FROM findings ORDER BY kind, oid, number;
COMMIT;

TABLE migration_report;
