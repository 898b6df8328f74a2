--
-- Options of servers, user mappings, tables and columns; settings.
-- No MongoDB is needed.
--
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS mongo_fdw;
RESET client_min_messages;

-- what PL/pgSQL shows of an error: SQLSTATE, message, DETAIL, HINT
CREATE FUNCTION try(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	message text;
	detail text;
	hint text;
BEGIN
	EXECUTE command;
	RETURN 'ok';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS message = MESSAGE_TEXT,
		detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
	RETURN concat_ws(E'\n', SQLSTATE || ': ' || message, nullif(detail, ''), nullif(hint, ''));
END
$$;

-- the value as an option of a new server, which is dropped again
CREATE FUNCTION try_server(options text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	result := try('CREATE SERVER tried FOREIGN DATA WRAPPER mongo_fdw OPTIONS (' || options || ')');
	DROP SERVER IF EXISTS tried;
	RETURN result;
END
$$;
SET client_min_messages = warning;
\pset format unaligned
\pset tuples_only on

CREATE SERVER options_server FOREIGN DATA WRAPPER mongo_fdw;
CREATE FOREIGN TABLE options_table (a int) SERVER options_server;

-- every option, on an object that takes it
SELECT option || ' ' || value || ': ' || try_server(format('%I %L', option, value)) FROM (VALUES
	('uri', 'mongodb://a.example:27017,b.example/?replicaSet=rs0&readPreference=nearest'),
	('uri', 'mongodb+srv://cluster.example.net/'),
	('address', '::1'), ('port', '27018'), ('port', '0'), ('replica_set', 'rs0'),
	('read_preference', 'secondaryPreferred'), ('read_preference', 'NEAREST'),
	('authentication_database', 'admin'),
	('ssl', 'true'), ('pem_file', '/x.pem'), ('pem_pwd', ''), ('ca_file', '/ca.pem'), ('ca_dir', '/ca'),
	('crl_file', '/crl.pem'), ('weak_cert_validation', 'false'),
	('appname', 'reports'), ('connect_timeout_ms', '500'), ('server_selection_timeout_ms', '2000'),
	('keep_connections', 'off'),
	('estimated_rows', '1000000'), ('estimated_rows', '1e6'), ('use_remote_estimate', 'on'),
	('fdw_startup_cost', '10.5'), ('fdw_tuple_cost', '0'), ('round_trip_time', '0.5s'), ('round_trip_time', '20'), ('round_trip_time', '20 parsecs'),
	('round_trip_time', '-1'), ('bandwidth', '12MB'), ('bandwidth', '12 MBit'), ('bandwidth', '0'), ('float_sums', 'remote'), ('float_sums', 'near'),
	('enable_join_pushdown', 'OFF'), ('enable_aggregate_pushdown', 'yes'), ('enable_order_by_pushdown', '1'),
	('pushdown_disable', 'let, Expr'), ('pushdown_disable', ''),
	('fetch_size', '1'), ('type_mismatch', 'null'), ('type_mismatch', 'Error'),
	('canonical_json', 'true'), ('count_from_metadata', 'on'), ('analyze_sampling', 'off')) AS v (option, value);

SELECT try($$CREATE USER MAPPING FOR PUBLIC SERVER options_server OPTIONS
	(username 'ann', password 'p@ss:/%', pem_file '/x.pem', pem_pwd 'y')$$);
SELECT try($$CREATE FOREIGN TABLE options_all (a int OPTIONS (path 'b.c', indexed 'true'), b int OPTIONS (column_name 'b'))
	SERVER options_server OPTIONS (database 'd', collection 'c', estimated_rows '5', use_remote_estimate 'false',
	fdw_startup_cost '1', fdw_tuple_cost '1', enable_join_pushdown 'on', enable_aggregate_pushdown 'on',
	enable_order_by_pushdown 'on', pushdown_disable 'sort', fetch_size '10', type_mismatch 'error', canonical_json 'off', analyze_sampling 'on')$$);
SELECT try('ALTER FOREIGN TABLE options_all ALTER COLUMN a OPTIONS (SET path ''x'', DROP indexed)');
SELECT try('ALTER FOREIGN TABLE options_all ALTER COLUMN b OPTIONS (DROP column_name, ADD path ''y'')');

-- unknown options, and known ones on another object
SELECT try_server('adress ''x''');
SELECT try_server('nonsense ''x''');
SELECT try_server('username ''x''');
SELECT try_server('database ''x''');
SELECT try('CREATE USER MAPPING FOR CURRENT_USER SERVER options_server OPTIONS (user ''x'')');
SELECT try('CREATE USER MAPPING FOR CURRENT_USER SERVER options_server OPTIONS (port ''1'')');
SELECT try('ALTER FOREIGN TABLE options_table OPTIONS (colection ''x'')');
SELECT try('ALTER FOREIGN TABLE options_table OPTIONS (path ''x'')');
SELECT try('ALTER FOREIGN TABLE options_table ALTER COLUMN a OPTIONS (name ''x'')');
SELECT try('ALTER FOREIGN TABLE options_table ALTER COLUMN a OPTIONS (pth ''x'')');
SELECT try('ALTER FOREIGN TABLE options_table ALTER COLUMN a OPTIONS (fetch_size ''1'')');
SELECT try('CREATE USER MAPPING FOR CURRENT_USER SERVER options_server OPTIONS (pasword ''x'')');
SELECT try_server(format('%I ''x''', repeat('address', 9)));
SELECT try('ALTER FOREIGN DATA WRAPPER mongo_fdw OPTIONS (uri ''x'')');
-- as in postgres_fdw
SELECT name || ': ' || try_server(format('%I ''x''', name)) FROM unnest(ARRAY['host', 'dbname', 'table_name']) AS name;

-- how one logs in; what is secret belongs in a mapping
SELECT options || ': ' || try_server(options) FROM unnest(ARRAY[
	$$auth_mechanism 'SCRAM-SHA-1'$$, $$auth_mechanism 'mongodb-x509'$$, $$auth_mechanism 'GSSAPI'$$, $$auth_mechanism 'MD5'$$,
	$$auth_properties 'SERVICE_NAME:mongo,canonicalize_host_name:TRUE'$$, $$auth_properties 'SERVICE_NAME'$$,
	$$auth_properties 'SERVICE_NAME:'$$, $$auth_properties 'SERVICE_NAM:x'$$, $$auth_properties 'CANONICALIZE_HOST_NAME:1'$$,
	$$auth_properties 'AWS_SESSION_TOKEN:x'$$, $$password_file '/x'$$,
	$$address 'mongodb://ann:secret@localhost'$$, $$address 'ann:secret@localhost:27017'$$, $$address '/tmp/user@host.sock'$$]) AS options;
SELECT try('CREATE USER MAPPING FOR CURRENT_USER SERVER options_server OPTIONS (password ''x'', password_file ''/x'')');
SELECT try($$CREATE USER MAPPING FOR CURRENT_USER SERVER options_server OPTIONS (authentication_database 'd',
	auth_mechanism 'MONGODB-AWS', auth_properties 'AWS_SESSION_TOKEN:a:b=', username 'x', password_file '/x')$$);
SELECT uri || ': ' || try_server(format('uri %L', uri)) FROM unnest(ARRAY[
	'mongodb://localhost/?authMechanism=PLAIN', 'mongodb://localhost/?a=b&authmechanism=gssapi',
	'mongodb://localhost/?authMechanismProperties=x']) AS uri;

-- bad values
SELECT options || ': ' || try_server(options) FROM unnest(ARRAY[
	$$port 'x'$$, $$port '27017x'$$, $$port ''$$, $$port '65536'$$, $$port '-1'$$, $$port '99999999999999999999'$$,
	$$ssl 'x'$$, $$use_remote_estimate ''$$,
	$$fetch_size '0'$$, $$fetch_size 'many'$$, $$fetch_size '2147483648'$$,
	$$connect_timeout_ms '0'$$, $$server_selection_timeout_ms '-1'$$,
	$$estimated_rows '-1'$$, $$estimated_rows 'NaN'$$, $$estimated_rows 'inf'$$, $$fdw_tuple_cost 'x'$$,
	$$read_preference 'fastest'$$, $$type_mismatch 'ignore'$$,
	$$pushdown_disable 'let, lett'$$, $$pushdown_disable 'let,'$$,
	$$address ''$$, $$appname ''$$]) AS options;
SELECT try('ALTER FOREIGN TABLE options_table OPTIONS (collection '''')');
SELECT left(try(format('ALTER FOREIGN TABLE options_table ALTER COLUMN a OPTIONS (path %L)', rtrim(repeat('a.', 201), '.'))), 50);
SELECT path || ': ' || try(format('ALTER FOREIGN TABLE options_table ALTER COLUMN a OPTIONS (path %L)', path))
	FROM unnest(ARRAY['', '.', 'a.', '.a', 'a..b']) AS path;
SELECT try('ALTER FOREIGN TABLE options_table ALTER COLUMN a OPTIONS (indexed ''maybe'')');

-- contradictory pairs
SELECT options || ': ' || try_server($$uri 'mongodb://localhost', $$ || options) FROM unnest(ARRAY[
	$$address 'x'$$, $$port '1'$$, $$replica_set 'x'$$, $$read_preference 'nearest'$$, $$ssl 'true'$$]) AS options;
SELECT try('ALTER FOREIGN TABLE options_table ALTER COLUMN a OPTIONS (path ''a'', column_name ''b'')');

-- URIs: bad ones (DETAIL is the driver's), and what must not be in one
SELECT uri || ': ' || split_part(try_server(format('uri %L', uri)), E'\n', 1) FROM unnest(ARRAY[
	'localhost', 'http://localhost', 'mongodb://', 'mongodb://localhost:x', 'mongodb+srv://a,b/', '',
	'mongodb://localhost/?directConnection=true&ssl=maybe&tlsInsecure']) AS uri;
SELECT try_server(format('uri %L', uri)) FROM unnest(ARRAY[
	'mongodb://ann:secret@localhost', 'mongodb://ann@localhost', 'mongodb://ann:sec/ret@localhost/',
	'mongodb://localhost/?tls=true&tlsCertificateKeyFilePassword=secret',
	'mongodb://localhost/?proxyHost=socks.example&proxyPort=1080', 'mongodb+srv://a.example/?PROXYPORT=1080']) AS uri;
SELECT uri || ': ' || try_server(format('uri %L', uri)) FROM unnest(ARRAY[
	'mongodb://localhost/?w=0', 'mongodb://localhost/?readPreference=nearest&W=0&wtimeoutMS=5',
	'mongodb://localhost/?safe=false&journal=true']) AS uri;
-- libmongoc 2 refuses it in words of its own
SELECT left(try_server($$uri 'mongodb://localhost/?w=-1'$$), 5) AS sqlstate;
SELECT uri || ': ' || split_part(try_server(format('uri %L', uri)), E'\n', 1) FROM unnest(ARRAY[
	'mongodb://localhost/?w=1', 'mongodb://localhost/?w=majority&journal=false', 'mongodb://localhost/?w=0&journal=true']) AS uri;

-- files of the database server are for who may read them
CREATE ROLE options_user;
GRANT USAGE ON FOREIGN DATA WRAPPER mongo_fdw TO options_user;
GRANT USAGE ON FOREIGN SERVER options_server TO options_user;
GRANT CREATE ON SCHEMA public TO options_user;
SET ROLE options_user;
SELECT try('CREATE SERVER s1 FOREIGN DATA WRAPPER mongo_fdw OPTIONS (address ''localhost'')');
SELECT option || ': ' || try(format('CREATE SERVER s2 FOREIGN DATA WRAPPER mongo_fdw OPTIONS (%I ''/etc/passwd'')', option))
	FROM unnest(ARRAY['pem_file', 'ca_file', 'ca_dir', 'crl_file']) AS option;
SELECT try('CREATE USER MAPPING FOR options_user SERVER options_server OPTIONS (pem_file ''/etc/passwd'')');
SELECT try(format('CREATE SERVER s2 FOREIGN DATA WRAPPER mongo_fdw OPTIONS (uri %L)', uri)) FROM unnest(ARRAY[
	'mongodb://localhost/?tls=true&tlsCAFile=/etc/passwd',
	'mongodb://localhost/?tls=true&tlsCertificateKeyFile=/etc/passwd',
	'mongodb://localhost/?SSLCertificateAuthorityFile=/etc/passwd']) AS uri;
SELECT try('CREATE SERVER s2 FOREIGN DATA WRAPPER mongo_fdw OPTIONS (auth_mechanism ''GSSAPI'')');
SELECT option || ': ' || try(format('CREATE USER MAPPING FOR options_user SERVER options_server OPTIONS (%s)', option))
	FROM unnest(ARRAY[$$auth_mechanism 'MONGODB-AWS'$$, $$auth_mechanism 'mongodb-x509'$$, $$password_file '/etc/passwd'$$, $$auth_mechanism 'PLAIN'$$]) AS option;
RESET ROLE;
GRANT pg_read_server_files TO options_user;
SET ROLE options_user;
SELECT try('CREATE SERVER s2 FOREIGN DATA WRAPPER mongo_fdw OPTIONS (ca_file ''/etc/passwd'')');

-- settings
SET mongo_fdw.enable_pushdown = off;
SET mongo_fdw.enable_join_pushdown = off;
SET mongo_fdw.enable_aggregate_pushdown = off;
SET mongo_fdw.enable_order_by_pushdown = off;
SELECT try('SET mongo_fdw.log_remote_query = on');
SELECT try('SET mongo_fdw.nonsense = on');
RESET ROLE;
SELECT try('SET mongo_fdw.log_remote_query = on');

-- options without effect, which the dump of an older version may have
CREATE FOREIGN TABLE obsolete (_id int) SERVER s1 OPTIONS (parallel_field 'n', remote_parallelism '4');
ALTER FOREIGN TABLE obsolete OPTIONS (DROP parallel_field, DROP remote_parallelism);
DROP FOREIGN TABLE obsolete;

DROP SERVER s1, s2, options_server CASCADE;
REVOKE ALL ON FOREIGN DATA WRAPPER mongo_fdw FROM options_user;
REVOKE CREATE ON SCHEMA public FROM options_user;
DROP ROLE options_user;
DROP FUNCTION try, try_server;
