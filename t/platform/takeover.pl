# A database of the other mongo_fdw, whose versions are 1.0 and 1.1, and of this one's 1.0: after
# ALTER EXTENSION ... UPDATE the catalog is that of a new installation, and tables, views, grants
# and mappings are what they were.  What should be changed by hand is in a report.

use strict;
use warnings;

use IO::Socket::INET;
use MongoFdwTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new(auth => 1);
my $node = new_postgres('takeover');
my $tables = 50;

# of the temporary table that the script leaves, without what it prints
my $make_report = migration_report();

# leave_script
#	Puts the script of the other one's 1.1 into the folder of this PostgreSQL.
my %leftovers;
END { unlink $_ foreach keys %leftovers }

sub leave_script
{
	my $script = $_[0]->config_data('--sharedir') . '/extension/mongo_fdw--1.1.sql';

	append_to_file($script, q{
		CREATE FUNCTION mongo_fdw_handler() RETURNS fdw_handler AS 'MODULE_PATHNAME' LANGUAGE C STRICT;
		CREATE FUNCTION mongo_fdw_validator(text[], oid) RETURNS void AS 'MODULE_PATHNAME' LANGUAGE C STRICT;
		CREATE FOREIGN DATA WRAPPER mongo_fdw HANDLER mongo_fdw_handler VALIDATOR mongo_fdw_validator;
		CREATE FUNCTION mongo_fdw_version() RETURNS pg_catalog.int4 STRICT AS 'MODULE_PATHNAME' LANGUAGE C;
	}) unless $leftovers{$script}++;
}

# a new installation ignores what another one has left behind
leave_script($node);

is($node->safe_psql('postgres', q(SELECT extversion FROM pg_extension WHERE extname = 'mongo_fdw')), '2.1', 'a new installation');
is($node->safe_psql('postgres', 'SELECT mongo_fdw_version()'), '20100', 'and its version');

# The objects of the extension, with definitions and privileges.
my $members = q{
	SELECT pg_describe_object(classid, objid, objsubid), CASE classid
		WHEN 'pg_proc'::regclass THEN (SELECT concat(proacl, proisstrict, provolatile, proparallel, proleakproof, prosrc, prosqlbody IS NULL) FROM pg_proc WHERE oid = objid)
		WHEN 'pg_class'::regclass THEN (SELECT concat(coalesce(relacl, acldefault('r', relowner)), pg_get_viewdef(oid)) FROM pg_class WHERE oid = objid) END,
		obj_description(objid, classid::regclass::name)
	FROM pg_depend WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
		AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'mongo_fdw') ORDER BY 1};
my $new = $node->safe_psql('postgres', $members);
cmp_ok(scalar(split /\n/, $new), '>', 60, 'objects of the extension');
# since PostgreSQL 17 array types and the row types of tables and views are members, too
unlike($new, qr/^(?!cast |operator (?:class|family) |type (?:mongo_fdw_|.*\[\])).*\|$/m, 'all but casts and operator classes have a comment');

$mongod->insert('shop', 'points', '[' . join(', ', map { sprintf('{"_id": {"$oid": "%024x"}, "id": %d, "info": "x"}', $_, $_) } 1 .. 20) . ']');
$node->safe_psql('postgres', 'CREATE ROLE reader');
# make_database
#	Makes a database with so many tables by the other's 1.0 or 1.1, or by our 1.0; returns a
#	function that asks it.
sub make_database
{
	my ($cluster, $from, $count) = @_;
	my $database = $from =~ s/\W/_/gr;
	my $ask = sub { $cluster->safe_psql($database, @_) };
	my ($port, %login) = ($mongod->port, %{ $mongod->mapping });

	$cluster->safe_psql('postgres', "CREATE DATABASE $database");
	$ask->('CREATE EXTENSION mongo_fdw VERSION ' . ($from =~ /^ours (.*)/ ? "'$1'" : q('1.1')));
	$ask->(q{ALTER EXTENSION mongo_fdw DROP FUNCTION mongo_fdw_version(); DROP FUNCTION mongo_fdw_version();
		UPDATE pg_extension SET extversion = '1.0' WHERE extname = 'mongo_fdw'}) if $from =~ /^theirs 1.0/;
	$ask->(qq{
		CREATE SERVER mongo_server FOREIGN DATA WRAPPER mongo_fdw OPTIONS (address '127.0.0.1', port '$port', authentication_database 'admin');
		CREATE USER MAPPING FOR CURRENT_USER SERVER mongo_server OPTIONS (username '$login{username}', password '$login{password}');
		CREATE SCHEMA app});
	$ask->(join(";\n", map { qq{
		CREATE FOREIGN TABLE app.t$_ (_id name, id int, info text) SERVER mongo_server OPTIONS (database 'shop', collection 'points');
		CREATE VIEW app.v$_ AS SELECT id, info FROM app.t$_ WHERE id <= $_;
		GRANT SELECT ON app.t$_, app.v$_ TO reader } } 1 .. $count)
	  . '; CREATE MATERIALIZED VIEW app.m AS SELECT count(*) FROM app.v7');
	return $ask;
}

# The tables and views, with definitions and privileges.  pg_upgrade orders options anew; since
# PostgreSQL 16 columns of a single table are not qualified, and since 17 an owner may MAINTAIN.
my $state = q{SELECT relname, relkind, replace(relacl::text, 'Dxtm/', 'Dxt/'), regexp_replace(pg_get_viewdef(c.oid), '\mt\d+\.', '', 'g'),
		ARRAY(SELECT unnest(ftoptions) ORDER BY 1)
	FROM pg_class c LEFT JOIN pg_foreign_table ON ftrelid = c.oid WHERE relnamespace = 'app'::regnamespace ORDER BY 1};

# leave_2_0
#	Puts a script of our 2.0 there: what 2.1 has, and what it drops, without the bodies.
sub leave_2_0
{
	my $folder = $_[0]->config_data('--sharedir') . '/extension';
	my ($new, $rest) = map { slurp_file("$folder/mongo_fdw--$_.sql") } '2.1', '2.0--2.1';
	my ($added) = $rest =~ /(?<=\$drop\$;\n)(.*)/s;

	return if -e "$folder/mongo_fdw--2.0.sql";
	$leftovers{"$folder/mongo_fdw--2.0.sql"}++;
	append_to_file("$folder/mongo_fdw--2.0.sql", substr($new, 0, index($new, $added =~ s/^\s+//r)) . q{
		CREATE TABLE mongo_sync_data (local_table regclass PRIMARY KEY, foreign_table regclass NOT NULL, changes_table regclass NOT NULL, copied boolean NOT NULL DEFAULT false);
		CREATE TABLE mongo_sync_ranges (local_table regclass NOT NULL, match jsonb);
		CREATE TABLE mongo_sync_errors (local_table regclass NOT NULL, id text);
		SELECT pg_catalog.pg_extension_config_dump('mongo_sync_data', 'WHERE copied');
		GRANT SELECT ON mongo_sync_data TO PUBLIC;
		CREATE VIEW mongo_sync_positions WITH (security_barrier) AS SELECT * FROM mongo_sync_data WITH CHECK OPTION;
		ALTER TABLE mongo_sync_errors ENABLE ROW LEVEL SECURITY;
		CREATE POLICY owner ON mongo_sync_errors USING (true);
		CREATE FUNCTION mongo_sync_delete_row() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
		CREATE TRIGGER delete_row BEFORE UPDATE ON mongo_sync_data FOR EACH ROW EXECUTE FUNCTION mongo_sync_delete_row();
		CREATE VIEW mongo_sync_status WITH (security_invoker) AS SELECT local_table, (SELECT count(*) FROM mongo_sync_errors) AS errors FROM mongo_sync_positions;
		CREATE FUNCTION mongo_in_transaction_block() RETURNS boolean AS 'MODULE_PATHNAME' LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED;
		CREATE FUNCTION mongo_sync_prepare(source regclass, target text, batch_size integer) RETURNS regclass LANGUAGE plpgsql AS 'BEGIN END';
		CREATE FUNCTION mongo_sync_has_key(local regclass, key name) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN END';
		CREATE FUNCTION mongo_sync_key(relation regclass, key name, OUT type text, OUT equals text) LANGUAGE plpgsql AS 'BEGIN END';
		CREATE FUNCTION mongo_sync_convert(key anyelement, type text, sample anycompatible) RETURNS anycompatible LANGUAGE plpgsql AS 'BEGIN END';
		CREATE FUNCTION mongo_sync_begin(local regclass, source regclass, changes regclass, batch_size integer, key_at_end boolean) RETURNS void LANGUAGE plpgsql AS 'BEGIN END';
		CREATE FUNCTION mongo_sync_copy(local regclass, source regclass, changes regclass, key name, columns text, fits text, batch_size integer) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN END';
		CREATE FUNCTION mongo_sync_step(local regclass, batch_size integer) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN END';
		CREATE FUNCTION mongo_sync_fail(local regclass, message text) RETURNS void LANGUAGE plpgsql AS 'BEGIN END';
		CREATE FUNCTION mongo_sync_end(local_table regclass) RETURNS void LANGUAGE plpgsql AS 'BEGIN END';
		CREATE PROCEDURE mongo_sync(foreign_table regclass, local_table text, batch_size integer DEFAULT 10000, follow boolean DEFAULT NULL) LANGUAGE plpgsql AS 'BEGIN END';
		CREATE FUNCTION mongo_fdw_migration_report(sample integer DEFAULT 1000) RETURNS TABLE (object text) LANGUAGE plpgsql AS 'BEGIN END';
		COMMENT ON FUNCTION mongo_fdw_version() IS 'of 2.0'});
}

foreach my $from ('theirs 1.0', 'theirs 1.1', 'ours 1.0', 'ours 2.0')
{
	leave_2_0($node) if $from eq 'ours 2.0';
	my $ask = make_database($node, $from, $tables);
	my $before = $ask->($state);

	if ($from eq 'ours 2.0')
	{
		$ask->(q{CREATE TABLE kept (_id int PRIMARY KEY); INSERT INTO kept VALUES (1);
			CREATE FOREIGN TABLE kept_changes (_id int) SERVER mongo_server OPTIONS (database 'shop', collection 'points', change_stream 'collection');
			INSERT INTO mongo_sync_data VALUES ('kept', 'app.t1', 'kept_changes', true);
			CREATE VIEW app.mine AS SELECT * FROM mongo_sync_status});
		like(($node->psql('ours_2_0', 'ALTER EXTENSION mongo_fdw UPDATE'))[2], qr/other objects depend on mongo_sync\(\).*view app\.mine/s, 'a view on what is dropped stops the update');
		like(($node->psql('ours_2_0', 'DROP VIEW app.mine; ALTER EXTENSION mongo_fdw UPDATE'))[2], qr/WARNING:  tables are not synchronized any more: (?:public\.)?kept\n.*(?:public\.)?kept_changes\n.*mongo_sync\.sync/s, 'the update names tables and streams that are left');
		is($ask->(q(SELECT extconfig IS NULL FROM pg_extension WHERE extname = 'mongo_fdw')), 't', 'and leaves nothing to be dumped');
		is($ask->('TABLE kept'), '1', 'rows stay');
		$ask->('DROP FOREIGN TABLE kept_changes; DROP TABLE kept');
	}
	is($ask->('SELECT count(*) FROM app.v7'), '7', "$from: our library serves its tables");

	$ask->('ALTER EXTENSION mongo_fdw UPDATE');
	is($ask->(q(SELECT extversion FROM pg_extension WHERE extname = 'mongo_fdw')), '2.1', "$from: updated");
	is($ask->($members), $new, "$from: the catalog is that of a new installation");
	is($ask->($state), $before, "$from: tables, views and grants are the same");
	is($ask->('REFRESH MATERIALIZED VIEW app.m; SELECT count FROM app.m'), '7', "$from: a materialized view");
	is($ask->('ANALYZE app.t1; SELECT documents FROM mongo_fdw_statistics'), '20', "$from: ANALYZE has its table");
	is($ask->('SELECT objectid(now()) < objectid()'), 't', "$from: the type");
	unlike($ask->($make_report . q{SELECT object, finding FROM migration_report WHERE object NOT LIKE 'table app.t%'}), qr/./, "$from: nothing else to change");
	is($ask->($make_report . q{SELECT count(*) FROM migration_report WHERE finding = '_id of type name'}), $tables, "$from: what to change");
}

# --- the report ----------------------------------------------------------------------------
my $ask = sub { $node->safe_psql('report', @_) };
$node->safe_psql('postgres', 'CREATE DATABASE report');
my $port = $mongod->port;
$mongod->command('{"createUser": "local", "pwd": "a:b@c", "roles": ["readWrite"]}', 'shop');
$mongod->insert('shop', 'mixed', '[{"_id": 1, "n": 1}, {"_id": "two", "n": 2.5, "t": "x"}, {"_id": 3, "n": "three", "t": 4}]');
$ask->(qq{
	CREATE SCHEMA extensions;
	CREATE EXTENSION mongo_fdw SCHEMA extensions;
	CREATE SERVER s FOREIGN DATA WRAPPER mongo_fdw OPTIONS (address '127.0.0.1', port '$port');
	CREATE USER MAPPING FOR PUBLIC SERVER s OPTIONS (username 'local', password 'a%3Ab%40c');
	CREATE FOREIGN TABLE public."Mixed" (_id name, n int, t text, __doc json) SERVER s OPTIONS (database 'shop', collection 'mixed');
	CREATE FOREIGN TABLE points (_id name, id int, info text) SERVER s OPTIONS (database 'shop');
	CREATE FOREIGN TABLE nothing (_id name, a int) SERVER s OPTIONS (database 'shop');
	CREATE FOREIGN TABLE lines (n int, t text) SERVER s OPTIONS (database 'shop', collection 'mixed', unwind 'lines', ordinality 'n');
	UPDATE pg_foreign_table SET ftoptions = ftoptions || '{gone=1}' WHERE ftrelid = 'nothing'::regclass;
	CREATE TABLE called (who text);
	CREATE ROLE fitting;
	GRANT INSERT ON called TO fitting;
	GRANT CREATE ON SCHEMA public TO fitting;
	GRANT USAGE ON FOREIGN SERVER s TO fitting;
	CREATE FUNCTION fits(text) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN INSERT INTO public.called VALUES (current_user); RETURN true; END';
	CREATE DOMAIN fitting AS text CHECK (fits(VALUE));
	SET ROLE fitting;
	CREATE FOREIGN TABLE fitted (info fitting) SERVER s OPTIONS (database 'shop', collection 'points');
	RESET ROLE;
	CREATE FUNCTION extensions.mongo_fdw_validator(text[], regclass) RETURNS void LANGUAGE plpgsql AS 'BEGIN RAISE ''another function is called''; END'});

# what it says, one round of changes after the other
my %seen;
foreach my $round (1 .. 6)
{
	my @rows = map { [ split /\|/ ] } split /\n/, $ask->($make_report . q{SELECT object, finding, alteration FROM migration_report});
	$seen{"$_->[0]: $_->[1]"} ||= $_->[2] // '' foreach @rows;
	my @alterations = grep { defined && $_ ne '' } map { $_->[2] } @rows;
	last unless @alterations;
	$ask->($_) foreach @alterations;
}
is(join("\n", map { "$_ -> $seen{$_}" } sort keys %seen) . "\n", <<'EOF', 'what the report says');
server s: MongoDB refuses the login -> ALTER SERVER s OPTIONS (ADD authentication_database 'shop');
table public."Mixed": __doc has another form -> 
table public."Mixed": values that do not fit -> ALTER FOREIGN TABLE public."Mixed" OPTIONS (ADD type_mismatch 'null');
table public.nothing: collection does not exist -> 
table public.nothing: option that is not accepted -> ALTER FOREIGN TABLE public.nothing OPTIONS (DROP gone);
table public.points: _id of type name -> ALTER FOREIGN TABLE public.points ALTER COLUMN _id OPTIONS (ADD bson_type 'objectId');
user mapping of public for server s: percent-encoded password -> ALTER USER MAPPING FOR PUBLIC SERVER s OPTIONS (SET password 'a:b@c');
EOF
is($ask->('SELECT count(*), count(n), count(t) FROM "Mixed"'), '3|1|1', 'and after it all is readable');
is($ask->('SELECT count(*) FROM points'), '20', 'through the login that was mended');
is($ask->('SELECT DISTINCT who FROM called'), 'fitting', 'functions of domains are called as the owner of the table');

# odd names, dropped columns, a server that is silent, a password that is no text
my $silent = IO::Socket::INET->new(Listen => 50, LocalAddr => '127.0.0.1') or die $!;
my $silent_port = $silent->sockport;
my $odd = q{"a ""b' c"};
$mongod->insert('shop', q{o'd"d}, '[{"_id": "x", "n": 2.5}]');
$ask->(qq{
	CREATE ROLE $odd;
	CREATE SCHEMA $odd;
	CREATE SERVER $odd FOREIGN DATA WRAPPER mongo_fdw OPTIONS (address '127.0.0.1', port '$port', ca_file '/none', ssl 'false', authentication_database 'shop');
	CREATE USER MAPPING FOR CURRENT_USER SERVER $odd OPTIONS (username 'local', password 'a:b\@c');
	CREATE USER MAPPING FOR $odd SERVER $odd OPTIONS (username 'x', password '100%25%ff');
	CREATE FOREIGN TABLE $odd.$odd (gone int, _id name, $odd int OPTIONS (path 'n')) SERVER $odd OPTIONS (database 'shop', collection 'o''d"d');
	ALTER FOREIGN TABLE $odd.$odd DROP COLUMN gone;
	UPDATE pg_attribute SET attfdwoptions = attfdwoptions || ARRAY['odd "one=1'] WHERE attrelid = \$\$$odd.$odd\$\$::regclass AND attname LIKE 'a%';
	CREATE SERVER silent FOREIGN DATA WRAPPER mongo_fdw OPTIONS (address '127.0.0.1', port '$silent_port', connect_timeout_ms '700', server_selection_timeout_ms '700');
	CREATE USER MAPPING FOR PUBLIC SERVER silent} . join('', map { "; CREATE FOREIGN TABLE silent_$_ (a int) SERVER silent" } 1 .. 20));
my $report = $make_report . q{SELECT object, finding, detail, alteration FROM migration_report WHERE object ~ 'silent|"' AND object !~ 'Mixed' ORDER BY 1, 2};
my $start = time;
my $found = $ask->($report);
cmp_ok(time - $start, '<', 8, 'a server that is silent is waited for once');
is($found =~ s/could not connect to server "silent": .*?\|/.../r, <<"EOF" =~ s/\n\z//r, 'what the report says of odd names');
column $odd of table $odd.$odd|option that is not accepted|invalid option "odd "one"|ALTER FOREIGN TABLE $odd.$odd ALTER COLUMN $odd OPTIONS (DROP "odd ""one");
server silent|MongoDB cannot be reached|...
table $odd.$odd|values that do not fit|$odd {Double} for example where _id is "x"|ALTER FOREIGN TABLE $odd.$odd OPTIONS (ADD type_mismatch 'null');
user mapping of a "b' c for server $odd|percent-encoded password|It is sent as it stands, and was decoded before.|
EOF
$ask->($_) foreach map { (split /\|/)[3] // () } grep { /OPTIONS \(/ } split /\n/, $found;
is($ask->(qq{SELECT count(*), count($odd) FROM $odd.$odd}), '1|0', 'and after it all is readable');

# by a role that may not read, nor name files
$ask->('CREATE ROLE stranger; GRANT USAGE ON SCHEMA extensions TO stranger');
like($ask->("SET ROLE stranger;\n${make_report}SELECT DISTINCT finding FROM migration_report ORDER BY 1"), qr/^__doc has another form\ncannot be read\z/,
	'a role without privileges is not told to drop an option that only others may set');
like($ask->("SET ROLE stranger;\n${make_report}SELECT detail FROM migration_report WHERE object = 'table public.points'"), qr/^permission denied for foreign table points$/,
	'but that it may not read');

# --- pg_upgrade, before ALTER EXTENSION and after it ------------------------------------------
my ($old, $upgraded) = clusters_for_upgrade();
leave_script($old);
$old->start;
$old->safe_psql('postgres', 'CREATE ROLE reader');
my %state_of;
foreach my $from ('theirs 1.1', 'theirs 1.0 taken over')
{
	my $ask = make_database($old, $from, 10);
	$ask->('ALTER EXTENSION mongo_fdw UPDATE; ANALYZE app.t3') if $from =~ /taken/;
	$state_of{$from} = $ask->($state);
}
$old->stop;
pg_upgrade($old, $upgraded);
$upgraded->start;
foreach my $from (sort keys %state_of)
{
	my $ask = sub { $upgraded->safe_psql($from =~ s/\W/_/gr, @_) };

	is($ask->('SELECT count(*) FROM app.v7'), '7', "$from, upgraded: its tables are served");
	if ($from =~ /taken/)
	{
		is($ask->('SELECT documents FROM mongo_fdw_statistics'), '20', "$from, upgraded: what ANALYZE has learned");
	}
	else
	{
		$ask->('ALTER EXTENSION mongo_fdw UPDATE');
	}
	is($ask->($members), $new, "$from, upgraded: the catalog is that of a new installation");
	is($ask->($state), $state_of{$from}, "$from, upgraded: tables, views and grants are the same");
	is($ask->('REFRESH MATERIALIZED VIEW app.m; SELECT count FROM app.m'), '7', "$from, upgraded: a materialized view");
}

done_testing();
