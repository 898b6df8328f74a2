# What roles and servers may give in any size takes bounded time and memory, and can be
# cancelled: options, expressions, what MongoDB lists, documents, errors, servers that come and
# go.  More at random: HOSTILE_CATALOGS=10000 HOSTILE_CATALOGS_SEED=7 TEST_FILE_TIMEOUT=7200

use strict;
use warnings;

use MongoFdwTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $ATTEMPTS = $ENV{HOSTILE_CATALOGS} || 100;
my $SEED = $ENV{HOSTILE_CATALOGS_SEED} || 0;

my $port = start_fake('--catalog', "--seed=$SEED");
my $node = new_postgres('bounds', q{shared_preload_libraries = 'mongo_fdw'});

$node->safe_psql('postgres', qq{
	CREATE SERVER fake FOREIGN DATA WRAPPER mongo_fdw OPTIONS (address '127.0.0.1', port '$port');
	CREATE USER MAPPING FOR CURRENT_USER SERVER fake;
	CREATE SCHEMA imported});
my $session = MongoFdwTest::Session->new($node, '-v', 'VERBOSITY=verbose');

# memory
#	The most memory that the session's process has had, in MB.
sub memory
{
	return $session->ask(q{SELECT (regexp_match(pg_read_file('/proc/self/status'), 'VmHWM:\s*(\d+)'))[1]::int / 1024});
}

# table
#	Creates a foreign table over this database of CATALOG.
sub table
{
	my ($database, $options) = @_;
	$session->ask("CREATE FOREIGN TABLE $database (_id int, id int, info text) SERVER fake "
		  . "OPTIONS (database '$database', collection 'good')");
	return $database;
}

# ------------------------------------ options --------------------------------------

$node->safe_psql('postgres', q{CREATE ROLE alice; GRANT USAGE ON FOREIGN DATA WRAPPER mongo_fdw TO alice});
$session->ask('SET ROLE alice');
like($session->ask(q{SELECT mongo_fdw_validator(ARRAY['ssl=true'], 'pg_foreign_server'::regclass)}), qr/ERROR:  42501/,
	'a role cannot call the validator');
is($session->ask(q{CREATE SERVER own FOREIGN DATA WRAPPER mongo_fdw OPTIONS (uri 'mongodb://h/'); ALTER SERVER own OPTIONS (SET uri 'mongodb://g/')}), '',
	'but create a server');
like($session->ask(q{ALTER SERVER own OPTIONS (SET uri 'x://')}), qr/ERROR:  22023/, 'whose options are checked');
$session->ask('RESET ROLE');

foreach my $case ([ server => 'uri', 'mongodb://h/?' . join('&', map { "a$_=b" } 1 .. 60000) ],
	[ server => 'address', join(',', map { "h$_" } 1 .. 20000) ],
	[ table => 'unwind', join(',', map { "a$_" } 1 .. 20000) ],
	[ table => 'pipeline', '[' . '{"$match": {}},' x 1500000 . '{"$match": {}}]' ])
{
	my ($catalog, $option, $value) = @$case;
	like($session->ask("SELECT mongo_fdw_validator(ARRAY['$option=$value'], 'pg_foreign_$catalog'::regclass)") =~ s/.*ERROR/ERROR/sr,
		qr/ERROR:  54000: value of option "$option" is too long/, "a long $option");
}

# a stored one, of an older version
$session->ask(q{SET allow_system_table_mods = on;
	UPDATE pg_foreign_server SET srvoptions = ARRAY['uri=mongodb://h/?' || repeat('a=b&', 60000)] WHERE srvname = 'own';
	CREATE USER MAPPING FOR CURRENT_USER SERVER own});
like($session->ask(q{SELECT mongo_command('own', 'db', '{"ping": 1}')}), qr/ERROR:  08001.*not a valid MongoDB connection string/s,
	'and a stored one is not parsed either');

# ---------------------------------- expressions ------------------------------------

$session->ask(q{CREATE FOREIGN TABLE expressions (a int, b bool, d date) SERVER fake OPTIONS (database 'good', estimated_rows '10')});
my %nested = (
	nullif => sub { "nullif($_[0], 1)" },
	case => sub { "CASE $_[0] WHEN 1 THEN 2 WHEN 3 THEN 4 ELSE 5 END" },
	date => sub { "CASE WHEN $_[0] < d THEN d ELSE date '2020-01-01' END" },
);
foreach my $name (sort keys %nested)
{
	my %shown;

	foreach my $levels ($name eq 'date' ? (4, 8, 60) : (8, 16, 60))
	{
		my $expression = $name eq 'date' ? 'd' : 'a';
		my $size = $levels == 60 ? 'deep' : defined $shown{small} ? 'large' : 'small';

		$expression = $nested{$name}->($expression) foreach 1 .. $levels;
		$shown{$size} = $session->ask("EXPLAIN (VERBOSE, COSTS OFF) SELECT 1 FROM expressions WHERE $expression = "
			  . ($name eq 'date' ? 'current_date' : 2));
	}
	like($shown{large}, qr/\$expr/, "$name is left to MongoDB");
	cmp_ok(length $shown{large}, '<', 2.5 * length $shown{small}, "$name: the command grows as the statement does");
	like($shown{deep}, qr/^  Filter: /m, "$name: PostgreSQL evaluates what is too deep");
}
# AND and OR as values are tested for TRUE and for FALSE
my $choice = 'b';
$choice = "CASE WHEN ($choice) IS NULL THEN b ELSE (($choice) OR b) = b END" foreach 1 .. 7;
like($session->ask("EXPLAIN (VERBOSE, COSTS OFF) SELECT 1 FROM expressions WHERE $choice"), qr/Foreign Scan/, 'a choice of choices');
cmp_ok(memory(), '<', 400, 'none of them takes much memory');

# ------------------------ what a hostile server lists and holds ----------------------

table($_) foreach qw(fields indexes infinite long_error);
like($session->ask(q{IMPORT FOREIGN SCHEMA names LIMIT TO (missing) FROM SERVER fake INTO imported}), qr/does not exist/,
	'30,000 names that begin alike');
like($session->ask(q{IMPORT FOREIGN SCHEMA endless_names LIMIT TO (missing) FROM SERVER fake INTO imported}),
	qr/ERROR:  54000: database "endless_names" has more than 100000 collections/, 'names without end');
table('tree');
cmp_ok($session->ask(q{SELECT length(mongo_fdw_alteration('tree', '{nesting=10}'))}), '<', 1_000_000, 'many levels of many fields');
cmp_ok(memory(), '<', 400, 'take bounded memory');

my $fields = q{SELECT count(*) > 1000 FROM mongo_fdw_check('fields')};
my $start = time;
is($session->ask($fields), 't', 'two million fields are checked');
my $whole = time - $start;
foreach my $statement ($fields, 'ANALYZE fields', q{SELECT mongo_fdw_alteration('fields', '{}')},
	'IMPORT FOREIGN SCHEMA fields FROM SERVER fake INTO imported')
{
	$session->ask(q{SET statement_timeout = '100ms'});
	$start = time;
	like($session->ask($statement), qr/ERROR:  57014/, "$statement: is cancelled");
	cmp_ok(time - $start, '<=', 2 + $whole / 2, 'and soon');
	$session->ask('RESET statement_timeout');
}
$session->ask('ANALYZE indexes');
cmp_ok($session->ask(q{SELECT sum(octet_length(indexes::text)) FROM mongo_fdw_statistics_data}), '<', 2_000_000,
	'of 20,000 indexes few are kept');
is($session->ask(q{ANALYZE infinite; SELECT reltuples::text FROM pg_class WHERE relname = 'infinite'}), '1e+15', 'infinitely many documents');
my $error = $session->ask('ANALYZE long_error');
like($error, qr/ERROR:  HV000/, 'an error of 40 MB');
cmp_ok(length $error, '<', 20000, 'is cut');
$session->ask(q{CREATE FOREIGN TABLE fragments (__token text, id int) SERVER fake
	OPTIONS (database 'fragments', collection 'good', change_stream 'collection', split_events 'true')});
like($session->ask('SELECT * FROM fragments'), qr/ERROR:  08P01.*fragments of an event are too large/s, 'an event of fragments without end');
cmp_ok(memory(), '<', 600, 'none of them takes much memory');

# --------------------------------- and at random -----------------------------------

$session->ask(q{
	CREATE PROCEDURE attempt(statement text, attempts int) LANGUAGE plpgsql AS $$
	DECLARE
		failed int := 0;
		states text[] := '{}';
	BEGIN
		FOR i IN 1..attempts LOOP
			BEGIN
				SET LOCAL statement_timeout = '60s';
				EXECUTE statement;
				RAISE SQLSTATE '00001';
			EXCEPTION WHEN OTHERS THEN
				failed := failed + (SQLSTATE <> '00001')::int;
				states := states || SQLSTATE::text;
			END;
			COMMIT;
		END LOOP;
		RAISE NOTICE 'failed % with %', failed, (SELECT string_agg(DISTINCT s, ' ' ORDER BY s) FROM unnest(states) s);
	END $$;
	SET client_min_messages = notice});
table('spoilt');
$session->ask(q{CREATE FOREIGN TABLE stream (__token text, id int, info text) SERVER fake
	OPTIONS (database 'spoilt', collection 'good', change_stream 'collection', split_events 'true', max_wait '1ms')});
foreach my $statement (q{IMPORT FOREIGN SCHEMA spoilt FROM SERVER fake INTO imported OPTIONS (nesting ''3'', arrays ''tables'')},
	'ANALYZE spoilt', q{SELECT mongo_fdw_check(''spoilt'')}, q{SELECT mongo_fdw_alteration(''spoilt'', ''{nesting=3}'')},
	'SELECT * FROM stream')
{
	my $result = $session->ask("CALL attempt('$statement', $ATTEMPTS)");

	my ($failed, $states) = $result =~ /failed (\d+) with (.*)/;
	note "$statement: $failed, $states";
	cmp_ok($failed, '>', $ATTEMPTS / 20, "$statement: some of $ATTEMPTS fail");
	like($states, qr/00001/, 'and some do not');
	unlike($states, qr/57014|XX000|53200/, 'none by time or memory, or by something unforeseen');
}
cmp_ok(memory(), '<', 800, 'all that takes bounded memory');

# --------------------------- servers that come and go ------------------------------

# each attempt takes two rows of the shared table of 6,000
$session->ask(q{SET client_min_messages = warning;
	DO $$
	BEGIN
		FOR i IN 1..3100 LOOP
			CREATE SERVER passing FOREIGN DATA WRAPPER mongo_fdw OPTIONS (port '1', server_selection_timeout_ms '1');
			CREATE USER MAPPING FOR CURRENT_USER SERVER passing;
			BEGIN
				PERFORM mongo_command('passing', 'db', '{"ping": 1}');
			EXCEPTION WHEN sqlclient_unable_to_establish_sqlconnection THEN
			END;
			DROP SERVER passing CASCADE;
		END LOOP;
	END $$});
is($session->{err}, '', 'servers are created and dropped');
cmp_ok($session->ask('SELECT count(*) FROM mongo_fdw_stat_get(false)'), '>', 2000, 'and their counts fill the shared table');
$node->safe_psql('postgres', qq{
	CREATE SERVER limited FOREIGN DATA WRAPPER mongo_fdw
		OPTIONS (address '127.0.0.1', port '$port', max_connections '1', server_selection_timeout_ms '500');
	CREATE USER MAPPING FOR CURRENT_USER SERVER limited});
my $ping = q{SELECT mongo_command('limited', 'good', '{"count": "good"}') ->> 'n'};
my $other = MongoFdwTest::Session->new($node, '-v', 'VERBOSITY=verbose');
is($session->ask($ping), '3', 'a session has its connection');
like($other->ask($ping), qr/ERROR:  53300/, 'and another one none: max_connections is enforced');
is($session->ask(q{SELECT count(*) FROM mongo_fdw_stat WHERE server_name = 'limited'}), '1', 'the new server has counts');
$session->ask('SELECT mongo_fdw_disconnect_all()');
is($other->ask($ping), '3', 'a connection that is closed counts no more');

unlike(slurp_file($node->logfile), qr/terminated by signal|PANIC|AddressSanitizer|runtime error/, 'the log has no crash');
done_testing();
