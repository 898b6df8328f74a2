# Nobody gains another's rights: each way to them, as the role that would try it.

use strict;
use warnings;

use MongoFdwTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $mongod = MongoFdwTest::ReplicaSet->new(1)->primary;
my $node = new_postgres('rights', 'autovacuum = off', 'fsync = off');

$mongod->insert('db', 'levels', '[{"_id": 101, "level": 1, "secret": "a"}, {"_id": 102, "level": 2, "secret": "b"}, {"_id": 103, "level": "x"}]');
$mongod->insert('db', 'blocked', '[{"_id": 1, "who": "someone", "hidden": 1}, {"_id": 2, "who": "mallory"}]');
$mongod->command('{"createIndexes": "blocked", "indexes": [{"name": "sparse", "key": {"hidden": 1}, "sparse": true}]}', 'db');

# Mallory owns the database, and may create in a schema of his own.  Olga's tables are in the
# schema app.  What runs notes whose rights it has.
$node->safe_psql('postgres', q{
	CREATE ROLE olga LOGIN; CREATE ROLE mallory LOGIN; CREATE ROLE reader LOGIN;
	CREATE SCHEMA app AUTHORIZATION olga; CREATE SCHEMA evil AUTHORIZATION mallory;
	GRANT USAGE ON SCHEMA app, evil TO PUBLIC;
	CREATE TABLE app.seen (what text, rights_of text);
	GRANT ALL ON app.seen TO PUBLIC;
	ALTER DATABASE postgres OWNER TO mallory});
create_server($node, 'mongodb', $mongod, replica_set => 'rs');
$node->safe_psql('postgres', q{GRANT USAGE ON FOREIGN SERVER mongodb TO olga, mallory;
	DROP USER MAPPING FOR CURRENT_USER SERVER mongodb;
	CREATE USER MAPPING FOR PUBLIC SERVER mongodb});

# prepare: runs as this role what must succeed.
sub prepare
{
	my ($role, $sql) = @_;
	return $node->safe_psql('postgres', $sql, extra_params => [ '-U', $role ]);
}

# run: what a script prints as this role, the SQLSTATEs of its errors in their places.
sub run
{
	my ($role, $sql) = @_;
	my @user = $role eq 'superuser' ? () : (extra_params => [ '-U', $role ]);
	my (undef, $stdout) = $node->psql('postgres', "$sql;\n" =~ s/;\s*\n/;\n\\if :ERROR\n\\echo :SQLSTATE\n\\endif\n/gr,
		on_error_stop => 0, @user);
	return $stdout;
}

# messages: what it sends to standard error, with DETAIL.
sub messages
{
	my ($role, $sql) = @_;
	return ($node->psql('postgres', $sql, on_error_stop => 0, extra_params => [ '-U', $role ]))[2];
}

# seen: whose rights have been noted since the last time.
sub seen
{
	return $node->safe_psql('postgres', q{WITH gone AS (DELETE FROM app.seen RETURNING *)
		SELECT string_agg(DISTINCT what || ':' || rights_of, ' ' ORDER BY what || ':' || rights_of) FROM gone});
}

my $levels = "SERVER mongodb OPTIONS (database 'db', collection 'levels')";
my $note = q{LANGUAGE sql AS 'INSERT INTO app.seen VALUES (what, current_user) RETURNING 0'};

# --- what the functions of a table's domains call ---------------------------------------------
prepare(olga => qq{CREATE FUNCTION app.note(what text) RETURNS int $note;
	CREATE FUNCTION app.lowest() RETURNS int LANGUAGE sql AS 'SELECT app.note(''olga'')';
	CREATE TABLE app.taken (n int);
	GRANT SELECT ON app.taken TO PUBLIC;
	CREATE FUNCTION app.allowed(n int) RETURNS boolean LANGUAGE plpgsql AS
		'BEGIN RETURN n > lowest() AND NOT EXISTS (SELECT FROM taken t WHERE t.n = \$1); END';
	CREATE DOMAIN app.level AS int CHECK (app.allowed(VALUE));
	CREATE FOREIGN TABLE app.levels (_id int, level app.level, secret text) $levels;
	GRANT SELECT ON app.levels TO mallory, reader});
prepare(mallory => qq{CREATE FUNCTION evil.note(what text) RETURNS int $note;
	CREATE FUNCTION evil.lowest() RETURNS int LANGUAGE sql AS 'SELECT evil.note(''path'')';
	CREATE FUNCTION evil.harmless(n int) RETURNS boolean LANGUAGE sql AS 'SELECT evil.note(''domain'') = 0';
	CREATE DOMAIN evil.level AS int CHECK (evil.harmless(VALUE));
	CREATE FOREIGN TABLE evil.levels (_id int, level evil.level, secret text) $levels});
my $compared = "values that do not fit|1";
is(run(mallory => q{CREATE TEMP VIEW taken AS SELECT evil.note('temp') - 1 AS n;
	GRANT SELECT ON taken TO PUBLIC;
	SET search_path = evil, app, public;
	SELECT finding, documents FROM mongo_fdw_check('app.levels')}), $compared, 'a table is compared by a role that may read it');
is(seen(), 'path:mallory temp:mallory', 'and functions that its settings name have its own rights');
is(run(olga => q{SET search_path = app, public;
	SELECT finding, documents FROM mongo_fdw_check('app.levels')}), $compared, 'by the owner');
is(seen(), 'olga:olga', 'as in a query');
is(run(superuser => q{SET search_path = evil, app, public;
	SELECT finding, documents FROM mongo_fdw_check('evil.levels');
	SELECT mongo_fdw_check('app.levels')}), "$compared\n42883", 'by a superuser');
is(seen(), 'domain:mallory', 'the functions have the rights of the owner, and look up no name in the settings');

# --- what shows fields that are no columns ----------------------------------------------------
prepare(olga => qq{CREATE FOREIGN TABLE app.narrow (_id int, level jsonb) $levels;
	GRANT SELECT ON app.narrow TO mallory, reader;
	ANALYZE app.narrow;
	CREATE VIEW app.whole AS SELECT n AS row FROM app.narrow n;
	CREATE VIEW app.matching AS SELECT _id FROM app.narrow n WHERE mongo_match(n, '{"secret": "b"}');
	GRANT SELECT ON app.whole, app.matching TO PUBLIC});
is(run(reader => q{SELECT level FROM app.narrow WHERE _id = 101;
	SELECT finding FROM mongo_fdw_check('app.narrow')}), "1\n42501", 'mongo_fdw_check() needs USAGE as well as SELECT');
is(run(mallory => q{SELECT documents, indexes IS NULL FROM mongo_fdw_statistics}), '3|f', 'so do the indexes that ANALYZE has found');
is(run(reader => q{SELECT documents, indexes IS NULL FROM mongo_fdw_statistics}), '3|t', '... but not the number of documents');
my $guess = q{SELECT (w.row)._id FROM app.whole w WHERE mongo_match(w.row, '{"secret": "b"}');
	SELECT _id FROM app.matching};
is(run(mallory => $guess), "102\n102", 'mongo_match() in a view, with USAGE of its owner and of the caller');
is(run(reader => $guess), "42501\n42501", 'of the owner alone');
$node->safe_psql('postgres', 'REVOKE USAGE ON FOREIGN SERVER mongodb FROM olga');
is(run(mallory => $guess), "42501\n42501", 'of the caller alone');
is(run(superuser => $guess), "42501\n42501", 'of a superuser alone');
$node->safe_psql('postgres', 'GRANT USAGE ON FOREIGN SERVER mongodb TO olga');

# Messages quote fields that are no columns only to those with USAGE.
$mongod->insert('db', 'keys', '[{"_id": 101, "n": 1, "secret": 4711}, {"_id": 102, "n": 2, "secret": 4711}, {"_id": 103, "n": "x", "secret": 4712, "nested": {"k": 5}}]');
$mongod->command('{"createIndexes": "keys", "indexes": [{"name": "n", "key": {"n": 1, "secret": 1}, "unique": true}, {"name": "k", "key": {"nested.k": 1}, "unique": true, "sparse": true}]}', 'db');
$mongod->command('{"collMod": "keys", "validator": {"n": {"$ne": 5000}}}', 'db');
my $keys = "SERVER mongodb OPTIONS (database 'db', collection 'keys')";
prepare(olga => qq{CREATE FOREIGN TABLE app.keys (n int, nested jsonb) $keys;
	CREATE FOREIGN TABLE app.all_keys (n int, secret int, _id int) $keys;
	CREATE FOREIGN TABLE app.other_keys (n int, secret int OPTIONS (path 'other'), _id int OPTIONS (path 'other')) $keys;
	GRANT ALL ON app.keys, app.all_keys, app.other_keys TO reader, mallory});
my $duplicate = 'UPDATE app.%s SET n = 2 WHERE n = 1';
my $nested = 'INSERT INTO app.%s (nested) VALUES (\'{"k": 5}\')';
my $invalid = 'UPDATE app.%s SET n = 5000 WHERE n = 1';
my $misfit = 'SELECT n FROM app.%s';
foreach my $case (
	[ reader => keys => $duplicate, qr/MongoDB error 11000.*HINT:  MongoDB's message is shown only to users who/s, qr/4711|secret/ ],
	[ reader => keys => $nested, qr/dup key: \{ nested.k: 5 \}/, qr/HINT/ ],
	[ reader => keys => $invalid, qr/MongoDB error 121.*Document failed validation$/m, qr/5000|secret/ ],
	[ reader => keys => $misfit, qr/A document holds a value of BSON type String: "x"/, qr/103/ ],
	[ reader => all_keys => $duplicate, qr/dup key: \{ n: 2, secret: 4711 \}/, qr/HINT/ ],
	[ reader => all_keys => $misfit, qr/The document with _id 103 holds/, qr/4712/ ],
	[ reader => other_keys => $duplicate, qr/MongoDB error 11000/, qr/4711/ ],
	[ reader => other_keys => $misfit, qr/A document holds/, qr/103/ ],
	[ mallory => keys => $duplicate, qr/dup key: \{ n: 2, secret: 4711 \}/, qr/HINT/ ],
	[ mallory => keys => $invalid, qr/Document failed validation: .*5000/, qr/4711/ ],
	[ mallory => keys => $misfit, qr/The document with _id 103 holds/, qr/4712/ ])
{
	my ($role, $table, $statement, $has, $has_not) = @$case;
	my $message = messages($role, sprintf($statement, $table));

	like($message, $has, "$role, $table: $statement");
	unlike($message, $has_not, '... and nothing else');
}

# --- settings that anybody may change ---------------------------------------------------------
prepare(olga => q{CREATE FOREIGN TABLE app.blocked (_id int, who text) SERVER mongodb OPTIONS (database 'db', collection 'blocked');
	CREATE FUNCTION app.is_blocked(text) RETURNS boolean LANGUAGE sql SECURITY DEFINER AS 'SELECT EXISTS (SELECT FROM app.blocked WHERE who = $1)';
	CREATE TABLE app.documents (n int);
	INSERT INTO app.documents VALUES (1);
	ALTER TABLE app.documents ENABLE ROW LEVEL SECURITY;
	CREATE POLICY unblocked ON app.documents USING (NOT app.is_blocked(current_user::text));
	GRANT SELECT ON app.documents TO PUBLIC});
my $read = 'SELECT n FROM app.documents';
is(run(mallory => "SET mongo_fdw.hint = 'sparse';\n$read"), '', 'a hint set before the library is loaded hides no document from a policy');
is(run(mallory => "SELECT mongo_fdw_version() > 0;\nSET mongo_fdw.hint = 'sparse';\n$read"), "t\n42501", 'nor one set later');
is(run(superuser => q{GRANT SET ON PARAMETER mongo_fdw.hint TO olga;
	SET ROLE olga;
	SET mongo_fdw.hint = 'sparse';
	SELECT _id FROM app.blocked}), '1', 'but a role to which it is granted may');
is($node->safe_psql('postgres', q{SELECT mongo_fdw_version() > 0;
	SELECT string_agg(name, ' ' ORDER BY name) FROM pg_settings WHERE name LIKE 'mongo_fdw.%' AND context = 'user'}) =~ s/^t\n//r,
	'mongo_fdw.enable_aggregate_pushdown mongo_fdw.enable_batched_joins mongo_fdw.enable_join_pushdown'
	  . ' mongo_fdw.enable_order_by_pushdown mongo_fdw.enable_pushdown mongo_fdw.explain_remote',
	'what is left to everybody decides where a result is computed, not what it is');

# --- names that are looked up while a function runs -------------------------------------------
prepare(mallory => qq{CREATE FUNCTION evil.swap(int) RETURNS boolean LANGUAGE plpgsql AS \$swap\$BEGIN
		IF to_regnamespace('swapped') IS NULL THEN
			ALTER SCHEMA public RENAME TO swapped;
			CREATE SCHEMA public;
			CREATE FUNCTION public.mongo_fdw_validator(text[], oid) RETURNS void LANGUAGE sql AS 'SELECT evil.note(''validator'')';
			CREATE FUNCTION public.mongo_fdw_check("table" regclass, sample integer DEFAULT 1000) RETURNS
				TABLE (finding text, field text, "column" name, documents bigint, types text[], detail text)
				LANGUAGE sql AS 'SELECT evil.note(''check'')::text, '''', '''', 0::bigint, NULL::text[], ''''';
			GRANT USAGE ON SCHEMA public TO PUBLIC;
		END IF;
		RETURN true;
	END\$swap\$;
	CREATE DOMAIN evil.swapping AS int CHECK (evil.swap(VALUE));
	CREATE FOREIGN TABLE evil.swapper (level evil.swapping) $levels;
	CREATE FOREIGN TABLE evil.later (level int) $levels});
like(run(superuser => migration_report() . q{SELECT object, finding FROM migration_report WHERE object ~ 'later|swapper'}),
	qr/^table evil.swapper\|values that do not fit\ntable evil.later\|values that do not fit$/, 'the migration report, while the extension\'s schema is swapped');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_namespace WHERE nspname = 'swapped'}), '1', 'as it has been');
is(seen(), 'domain:mallory', 'calls nothing else than it should');
prepare(mallory => 'DROP SCHEMA public CASCADE; ALTER SCHEMA swapped RENAME TO public; DROP FOREIGN TABLE evil.swapper');

# A cursor's scan that begins early, as a function of another's writes to its collection.
prepare(olga => q{CREATE FUNCTION app.value() RETURNS int LANGUAGE plpgsql STABLE AS 'BEGIN RETURN lowest(); END'});
prepare(mallory => q{CREATE FUNCTION evil.writes() RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = evil AS
	'BEGIN INSERT INTO evil.later VALUES (1); END'});
is(run(olga => q{SET search_path = app;
	BEGIN;
	DECLARE c CURSOR FOR SELECT _id FROM app.narrow WHERE _id > value() AND _id < 103;
	SELECT evil.writes() IS NOT NULL;
	FETCH ALL FROM c;
	COMMIT}), "t\n101\n102", 'a cursor is read as of its opening');
is(seen(), 'olga:olga', 'and its functions look up names as when it was opened');

# A cursor that was left in a security-restricted operation keeps its restrictions: otherwise one
# WITH HOLD would be read at COMMIT, with a superuser's rights.
prepare(mallory => q{CREATE FUNCTION evil.read_later() RETURNS int LANGUAGE sql AS 'SELECT evil.note(''later'')';
	CREATE FUNCTION evil.hold() RETURNS int LANGUAGE plpgsql AS $$BEGIN
		BEGIN
			EXECUTE 'DECLARE held CURSOR WITH HOLD FOR SELECT evil.read_later()';
		EXCEPTION WHEN insufficient_privilege THEN
			PERFORM evil.note('refused');
		END;
		RETURN 102;
	END$$;
	CREATE FUNCTION evil.begun() RETURNS int LANGUAGE plpgsql STABLE AS 'DECLARE n int; BEGIN SELECT evil.hold() INTO n; RETURN n; END';
	CREATE FUNCTION evil.leaves_cursor() RETURNS int LANGUAGE plpgsql AS $$DECLARE c refcursor := 'left'; BEGIN
		OPEN c FOR SELECT level FROM evil.later WHERE level < evil.begun(); RETURN 1;
	END$$;
	CREATE MATERIALIZED VIEW evil.leaving AS SELECT evil.leaves_cursor() AS n WITH NO DATA});
is(run(superuser => q{BEGIN;
	REFRESH MATERIALIZED VIEW evil.leaving;
	DELETE FROM app.seen;
	INSERT INTO app.narrow (_id) VALUES (104);
	COMMIT;
	DELETE FROM app.narrow WHERE _id = 104}), '', 'a superuser writes after REFRESH MATERIALIZED VIEW');
is(seen(), 'refused:mallory', 'and no function of the view\'s owner has other rights, or may wait for the end of the transaction');

# The user mapping is that of the role which opened it.
$node->safe_psql('postgres', q{CREATE USER MAPPING FOR reader SERVER mongodb OPTIONS (username 'nobody', password 'x')});
prepare(olga => q{CREATE FUNCTION app.opened(refcursor) RETURNS refcursor LANGUAGE plpgsql SECURITY DEFINER AS
	'BEGIN OPEN $1 FOR SELECT _id FROM app.narrow WHERE _id < 102; RETURN $1; END'});
is(run(reader => q{BEGIN;
	SELECT app.opened('c');
	FETCH ALL FROM c;
	COMMIT;
	SELECT _id FROM app.narrow}), "c\n101\n28P01", 'a cursor of a function that runs as its owner is read with the owner\'s user mapping');

# The extension is created in a schema that has functions and operators that suit better than
# PostgreSQL's: of all functions that its scripts call, and for all pairs of some types.
my @called = sort keys %{ { map { $_ => 1 } map { slurp_file($_) =~ /\b([a-z_0-9]+)\(/g } glob '*.sql' } };
$node->safe_psql('postgres', 'CREATE DATABASE trap');
my $traps = $node->safe_psql('trap', q{CREATE SCHEMA extensions;
	DO $$
	DECLARE
		f record;
	BEGIN
		FOR f IN SELECT p.proname AS name, string_agg(CASE WHEN t.type::regtype::text IN ('text', 'name', 'oid', '"any"', 'anyelement') THEN k.type
				WHEN t.type = 'anyarray'::regtype THEN k.type || '[]' ELSE t.type::regtype::text END, ', ' ORDER BY t.place) AS arguments
			FROM pg_proc p, unnest(p.proargtypes) WITH ORDINALITY AS t (type, place), unnest('{name,varchar,text,oid,int,bigint}'::text[]) AS k (type)
			WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.proname = ANY (string_to_array('} . join(',', @called) . q{', ',')) GROUP BY p.oid, p.proname, k.type
		LOOP
			BEGIN
				EXECUTE format('CREATE FUNCTION extensions.%I(%s) RETURNS text LANGUAGE sql AS ''SELECT NULL::text''', f.name, f.arguments);
			EXCEPTION WHEN duplicate_function OR invalid_function_definition THEN
			END;
		END LOOP;
		FOR f IN SELECT name, l, r FROM unnest('{=,<>,<,>,~,~~,||}'::text[]) AS name, unnest('{name,text,varchar,oid,int2,int,bigint,text[],jsonb}'::text[]) AS l,
				unnest('{name,text,varchar,oid,int2,int,bigint,text[],jsonb}'::text[]) AS r
		LOOP
			EXECUTE format('CREATE OR REPLACE FUNCTION extensions.trap(%s, %s) RETURNS boolean LANGUAGE sql AS ''SELECT true''', f.l, f.r);
			EXECUTE format('CREATE OPERATOR extensions.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = extensions.trap)', f.name, f.l, f.r);
		END LOOP;
	END $$;
	CREATE TABLE traps AS SELECT 'pg_proc'::regclass AS class, oid FROM pg_proc WHERE pronamespace = 'extensions'::regnamespace
		UNION ALL SELECT 'pg_operator'::regclass, oid FROM pg_operator WHERE oprnamespace = 'extensions'::regnamespace;
	CREATE EXTENSION mongo_fdw SCHEMA extensions;
	SELECT count(*) FROM traps});
cmp_ok($traps, '>', 700, 'functions and operators that wait for the extension');
is($node->safe_psql('trap', q{SELECT pg_describe_object(d.classid, d.objid, 0) || ' uses ' || pg_describe_object(d.refclassid, d.refobjid, 0)
	FROM pg_depend d JOIN traps t ON t.class = d.refclassid AND t.oid = d.refobjid
	WHERE NOT EXISTS (SELECT FROM traps o WHERE o.class = d.classid AND o.oid = d.objid)}), '', 'are not used by it');

done_testing();
