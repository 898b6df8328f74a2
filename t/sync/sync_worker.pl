# Synchronized tables: the background workers, with several databases, and whatever goes wrong
# around them.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $set = MongoFdwTest::ReplicaSet->new(1);
my $mongod = $set->primary;
my $node = new_postgres('worker', q{shared_preload_libraries = 'mongo_fdw'}, q{log_min_messages = log}, q{autovacuum = off}, q{restart_after_crash = on});
create_server($node, 'mongodb', $mongod, server_selection_timeout_ms => 1000);

sub owner { return sql("SET ROLE owner; $_[0]", $_[1]) }

my %sessions;
sub reaches
{
	my ($name, $sql, $expected, $database) = @_;
	my $session = $sessions{ $database // 'postgres' } //= MongoFdwTest::Session->new($node, '-d', $node->connstr($database // 'postgres'));
	my $deadline = time + 60;
	my $got = '';
	while (time < $deadline)
	{
		chomp($got = $session->ask($sql));
		last if ref $expected ? $got =~ $expected : $got eq $expected;
		sleep 0.02;
	}
	return ref $expected ? like($got, $expected, $name) : is($got, $expected, $name);
}

sub workers { return "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'mongo_sync worker'" . ($_[0] ? " AND datname = '$_[0]'" : '') }
sub state_of { return "SELECT state FROM mongo_sync.status WHERE local_table = 'own.$_[0]'::regclass" }

# counts lines of the log since note_log()
my $log_begins = 0;
sub note_log { $log_begins = -s $node->logfile }
sub logged { return () = PostgreSQL::Test::Utils::slurp_file($node->logfile, $log_begins) =~ /$_[0]/g }

# follows: is a change of own.$table applied within the time that a group has?
my $inserted = 10;
sub follows
{
	my ($name, $table, $database) = @_;
	$inserted++;
	sql("INSERT INTO shop.$table VALUES ($inserted, 1)");
	reaches($name, "SELECT count(*) FROM own.$table WHERE _id = $inserted", 1, $database);
}

my $objects = q{CREATE USER MAPPING FOR owner SERVER mongodb; GRANT USAGE ON FOREIGN SERVER mongodb TO owner; CREATE SCHEMA shop; CREATE SCHEMA own;
	GRANT ALL ON SCHEMA shop, own TO owner, other; SET ROLE owner;
	CREATE FOREIGN TABLE shop.a (_id int, n int) SERVER mongodb OPTIONS (database 'db');
	CREATE FOREIGN TABLE shop.b (_id int, n int) SERVER mongodb OPTIONS (database 'db')};

# --- the first CALL wakes it --------------------
reaches('without anything synchronized there is no worker', workers(), 0);
is(sql(q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'mongo_sync launcher'}), 1, 'but a launcher');
sql("CREATE EXTENSION mongo_sync; CREATE ROLE owner; CREATE ROLE other; $objects; INSERT INTO shop.a VALUES (1, 1); INSERT INTO shop.b VALUES (1, 1)");
reaches('nor does the extension start one', workers(), 0);
owner(q{CALL mongo_sync.sync('shop.a', 'own.a')});
owner(q{CALL mongo_sync.sync('shop.b', 'own.b', true)});
reaches('a CALL does', workers('postgres'), 1);
reaches('and all is well', 'SELECT count(*) FROM mongo_sync.health', 0);

my $listener = MongoFdwTest::Session->new($node);
$listener->ask('LISTEN mongo_sync');
follows('a change is applied', 'a');
like($listener->ask('SELECT 1'), qr/"mongo_sync" with payload "own.a"/, 'and notified');

# --- two databases --------------------
sql('CREATE DATABASE second');
sql('CREATE EXTENSION mongo_fdw; CREATE EXTENSION mongo_sync', 'second');
create_server_in('second');
sub create_server_in { sql(q{CREATE SERVER mongodb FOREIGN DATA WRAPPER mongo_fdw OPTIONS (address '127.0.0.1', port '} . $mongod->port . q{', server_selection_timeout_ms '1000')}, $_[0]); sql($objects, $_[0]) }
owner(q{CALL mongo_sync.sync('shop.a', 'own.a')}, 'second');
owner(q{CALL mongo_sync.sync('shop.b', 'own.b')}, 'second');
reaches('another database has its own worker', workers('second'), 1);
follows('which applies changes', 'a', 'second');

# --- quiet --------------------
$mongod->snapshot;
sleep 4;
my $changes = $mongod->changes;
cmp_ok($changes->{commands}{getMore} // 0, '<=', 4, 'at most one getMore in ten seconds for each of four groups');

# --- an endless trigger --------------------
sub set { $node->append_conf('postgresql.conf', $_[0]); $node->reload }
my $sleeps = q{SELECT pid, xact_start FROM pg_stat_activity WHERE backend_type = 'mongo_sync second worker' AND wait_event = 'PgSleep'};
note_log();
owner(q{CREATE FUNCTION own.endless() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN PERFORM pg_catalog.pg_sleep(1000); RETURN NEW; END$$;
	CREATE TRIGGER endless BEFORE INSERT ON own.a FOR EACH ROW EXECUTE FUNCTION own.endless()});
reaches('no group has been slow of late', 'SELECT count(*) FROM mongo_sync.groups WHERE slow_until > clock_timestamp()', 0);
sql('INSERT INTO shop.a VALUES (1000, 1)');
reaches('a trigger that never ends is left to the second worker', $sleeps, qr/\d/);
my $sleeper = sql($sleeps);
follows('it holds up no other group', 'b');
follows('nor another database', 'a', 'second');
is(sql($sleeps), $sleeper, 'while it waits');
is(sql(state_of('a')), 'applying', 'to be left to another worker is no failure');
sql('SELECT pg_cancel_backend(' . $sleeper =~ s/\|.*//r . ')');
reaches('but its end by a limit is', state_of('a'), 'failing');
owner(q{CREATE OR REPLACE FUNCTION own.endless() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN LOOP BEGIN PERFORM pg_catalog.pg_sleep(1000); EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP; END$$});
set(q{mongo_sync.timeout = '1s'});
reaches('which ends the process if the trigger catches it', q{SELECT last_error FROM mongo_sync.status WHERE "group" = 'own.a'}, qr/was ended/);
follows('and holds up no other group', 'b');
owner('DROP TRIGGER endless ON own.a');
reaches('without it, it goes on', state_of('a'), 'applying');
is(logged('mongo_sync could not go on'), 1, 'one line in the log');

# --- a trigger that is slow --------------------
note_log();
set(q{mongo_sync.timeout = '2s'});
owner(q{CREATE FUNCTION own.slow() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN PERFORM pg_catalog.pg_sleep(0.03); RETURN NEW; END$$;
	CREATE TRIGGER slow BEFORE INSERT ON own.a FOR EACH ROW EXECUTE FUNCTION own.slow()});
$mongod->command('{"insert": "a", "documents": [' . join(', ', map { "{\"_id\": $_, \"n\": 1}" } 2001 .. 2100) . ']}', 'db');
follows('a slow trigger holds up no other group', 'b');
reaches('what does not fit the limit is applied by smaller batches', 'SELECT count(*) FROM own.a WHERE _id BETWEEN 2001 AND 2100', 100);
reaches('and all is well', state_of('a'), 'applying');
cmp_ok(logged('mongo_sync could not go on'), '<=', 1, 'and told once at most');
owner('DROP TRIGGER slow ON own.a');

# --- a lock --------------------
note_log();
my $locker = MongoFdwTest::Session->new($node);
$locker->ask('BEGIN; LOCK TABLE own.a');
sql('INSERT INTO shop.a VALUES (1001, 1)');
reaches('a table that somebody has locked', state_of('a'), 'failing');
reaches('and why', q{SELECT last_error FROM mongo_sync.status WHERE "group" = 'own.a'}, qr/lock/);
follows('holds up no other group', 'b');
sleep 2;
$locker->ask('COMMIT');
reaches('without the lock it goes on', 'SELECT count(*) FROM own.a WHERE _id = 1001', 1);
is(logged('mongo_sync could not go on'), 1, 'one line in the log');

# --- roles --------------------
foreach (
	[ 'the foreign table is given away', 'ALTER FOREIGN TABLE shop.a OWNER TO other', 'ALTER FOREIGN TABLE shop.a OWNER TO owner', qr/belongs to another role/ ],
	[ 'the local table is', 'ALTER TABLE own.a OWNER TO other', 'ALTER TABLE own.a OWNER TO owner', qr/belongs to another role/ ],
	[ 'the user mapping is dropped', 'DROP USER MAPPING FOR owner SERVER mongodb', 'CREATE USER MAPPING FOR owner SERVER mongodb', qr/user mapping not found|lost/ ],
	[ 'a right is revoked', 'REVOKE USAGE ON SCHEMA shop FROM owner', 'GRANT USAGE ON SCHEMA shop TO owner', qr/permission denied for schema shop/ ])
{
	my ($name, $change, $back, $message) = @$_;
	note_log();
	sql($change);
	sql('INSERT INTO shop.a VALUES (' . ++$inserted . ', 1)');
	reaches($name, q{SELECT state || ': ' || last_error FROM mongo_sync.status WHERE "group" = 'own.a'}, qr/^failing: .*$message/s);
	sql($back);
	reaches("$name: and back", state_of('a'), 'applying');
	reaches("$name: and is applied", "SELECT count(*) FROM own.a WHERE _id = $inserted", 1);
	cmp_ok(logged('mongo_sync could not go on'), '<=', 2, "$name: and is told once");
}

# --- on and off --------------------
set('mongo_sync.enabled = off');
reaches('it is turned off', workers(), 0);
is(sql("SELECT string_agg(DISTINCT state || ': ' || reason, '') FROM mongo_sync.status"), 'no worker: mongo_sync.enabled is off', 'which stands in the state');
set('mongo_sync.enabled = on');
follows('and on', 'a');
reaches('in both databases', workers(), 2);

# --- restarts --------------------
sub reconnect { %sessions = () }
$node->restart;
reconnect();
follows('PostgreSQL is restarted', 'a');
follows('in both databases', 'b', 'second');
my ($pid) = sql("SELECT pid FROM pg_stat_activity WHERE backend_type = 'mongo_sync worker' AND datname = 'second'");
kill('KILL', $pid);
sleep 0.02 while kill(0, $pid);
reconnect();
$node->poll_query_until('postgres', q{SELECT pg_postmaster_start_time() IS NOT NULL AND count(*) = 2 FROM pg_stat_activity WHERE backend_type = 'mongo_sync worker'});
follows('it crashes', 'a');
follows('in both databases', 'b', 'second');
reaches('and nothing fails', 'SELECT count(*) FROM mongo_sync.health', 0);
note_log();
is(sql(q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'mongo_sync worker' AND datname = 'postgres'}), 't', 'it is terminated');
follows('and comes again', 'a');

# --- MongoDB is away --------------------
note_log();
$mongod->stop;
reaches('MongoDB is away', q{SELECT string_agg(DISTINCT state, ',') FROM mongo_sync.status}, 'failing');
sleep 2;
cmp_ok(logged('mongo_sync could not go on'), '<=', 8, 'of which each group tells when it was lost, and that it is away');
$mongod->start;
follows('it comes again', 'a');
follows('for all', 'b', 'second');

# --- the extension is dropped --------------------
owner(q{CREATE FUNCTION own.sleep() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN PERFORM pg_catalog.pg_sleep(1); RETURN NEW; END$$;
	CREATE TRIGGER sleep BEFORE INSERT ON own.a FOR EACH ROW EXECUTE FUNCTION own.sleep()});
note_log();
sql('INSERT INTO shop.a VALUES (' . ++$inserted . ', 1)');
reaches('a worker in the midst of a step', q{SELECT count(*) FROM pg_stat_activity WHERE backend_type ~ '^mongo_sync.*worker' AND datname = 'postgres' AND wait_event = 'PgSleep'}, 1);
sql('DROP EXTENSION mongo_sync');
reaches('the extension is dropped', q{SELECT count(*) FROM pg_stat_activity WHERE backend_type ~ '^mongo_sync.*worker' AND datname = 'postgres'}, 0);
is(logged('(ERROR|FATAL|PANIC): '), 0, 'without an error');
sql('DROP TRIGGER sleep ON own.a; CREATE EXTENSION mongo_sync');
owner("CALL mongo_sync.sync('shop.a', 'own.a')");
follows('and created again', 'a');

# --- DROP DATABASE, and copies --------------------
(delete $sessions{second})->close;
sql('CREATE DATABASE third TEMPLATE second');
is(sql('SELECT count(*) > 1 FROM own.b', 'third'), 't', 'a database with a worker is a template');
follows('and goes on', 'b', 'second');
is(sql(q{SELECT string_agg(DISTINCT state, ',') FROM mongo_sync.status}, 'third'), 'waiting for its owner', 'the copy does not');
owner(q{CALL mongo_sync.sync('shop.b', 'own.b')}, 'third');
reaches("until its owner calls", workers('third'), 1);
owner(q{CREATE FUNCTION own.endless() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN PERFORM pg_catalog.pg_sleep(1000); END$$;
	CREATE TRIGGER endless BEFORE INSERT ON own.b FOR EACH ROW EXECUTE FUNCTION own.endless()}, 'third');
set(q{mongo_sync.timeout = '1min'});
reaches('the time limit is long', 'SHOW mongo_sync.timeout', '1min');
sql('INSERT INTO shop.b VALUES (3000, 1)');
reaches('a worker in the midst of a trigger', q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'mongo_sync worker' AND datname = 'third' AND wait_event = 'PgSleep'}, 1);
sql('DROP DATABASE third');
is(sql(q{SELECT count(*) FROM pg_database WHERE datname = 'third'}), 0, 'does not stop DROP DATABASE');

# --- no free process --------------------
set('max_worker_processes = 3');
note_log();
$node->restart;
reconnect();
reaches('one of two databases has no worker', q{SELECT string_agg(DISTINCT state || ': ' || reason, '') FROM mongo_sync.status}, 'no worker: there is no free background worker: max_worker_processes is too small', 'second');
follows('the other one has', 'a');
sleep 2;
is(logged('could not start a background worker'), 1, 'which is told once');
sql(q{SELECT mongo_sync.stop('own.a')});
follows('if that is not needed any more, it gets one', 'b', 'second');
(delete $sessions{second})->close;
sql('DROP DATABASE second');
reaches('a database with a worker is dropped', workers(), 0);

done_testing();
