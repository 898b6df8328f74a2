# The background worker that runs mongo_sync(): it keeps tables in step by itself, as their
# owners, and goes on after errors and restarts.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $set = MongoFdwTest::ReplicaSet->new(1);
my $mongod = $set->primary;
my $node = new_postgres('worker', q{shared_preload_libraries = 'mongo_fdw'}, q{mongo_fdw.sync_interval = '200ms'});
create_server($node, 'mongodb', $mongod, server_selection_timeout_ms => 2000);

sub sql { return $node->safe_psql('postgres', $_[0]) }

sub becomes
{
	my ($name, $sql, $expected, $seconds) = @_;
	my $deadline = time + ($seconds // 30);
	sleep 0.1 while ($node->psql('postgres', $sql))[1] ne $expected && time < $deadline;
	is(($node->psql('postgres', $sql))[1], $expected, $name);
}

sql(q{CREATE ROLE owner LOGIN; CREATE SCHEMA AUTHORIZATION owner; GRANT USAGE ON FOREIGN SERVER mongodb TO owner;
	CREATE USER MAPPING FOR owner SERVER mongodb;
	SET ROLE owner;
	CREATE FOREIGN TABLE owner.c (_id int, a int) SERVER mongodb OPTIONS (database 'db');
	CREATE FOREIGN TABLE owner.d (_id objectid, a int) SERVER mongodb OPTIONS (database 'db');
	INSERT INTO owner.c VALUES (1, 1); INSERT INTO owner.d (a) VALUES (1);
	CALL mongo_sync('owner.c', 'owner.local'); CALL mongo_sync('owner.d', 'owner.other');
	CREATE TABLE owner.log (who text, session text);
	CREATE FUNCTION owner.note() RETURNS trigger LANGUAGE plpgsql AS
		$$BEGIN RESET SESSION AUTHORIZATION; INSERT INTO owner.log VALUES (current_user, session_user); RETURN NULL; END$$;
	CREATE TRIGGER note AFTER INSERT ON owner.local EXECUTE FUNCTION owner.note();
	RESET ROLE;
	CREATE FUNCTION public.format(text, text) RETURNS text LANGUAGE plpgsql AS $$BEGIN RAISE 'another function is called'; END$$;
	CREATE FUNCTION public.mongo_sync_step(integer, integer) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN RAISE 'another function is called'; END$$;
	CREATE FUNCTION public.mongo_sync_fail(integer, text) RETURNS void LANGUAGE plpgsql AS $$BEGIN RAISE 'another function is called'; END$$;
	ALTER ROLE owner SET default_transaction_read_only = on; ALTER ROLE owner SET row_security = off});

# another's table of the name, in a database that still has version 1.0
sql('CREATE DATABASE old');
$node->safe_psql('old', q{CREATE EXTENSION mongo_fdw VERSION '1.0'; CREATE TABLE called (); CREATE FUNCTION call() RETURNS regclass LANGUAGE sql AS
	'INSERT INTO public.called DEFAULT VALUES; SELECT 0::oid::regclass';
	CREATE VIEW mongo_sync_data AS SELECT call() AS local_table, NULL::text AS stopped_by, false AS follow, NULL::timestamptz AS failed_at, NULL::timestamptz AS last_run});
sql('INSERT INTO owner.c SELECT g, g FROM generate_series(2, 500) g; UPDATE owner.c SET a = 0 WHERE _id < 10; DELETE FROM owner.c WHERE _id = 1');
becomes('changes are applied', 'SELECT count(*), sum(a) FROM owner.local', '499|' . sql('SELECT sum(a) FROM owner.c'));
is(sql('SELECT DISTINCT * FROM owner.log'), 'owner|owner', 'as the owner, whom a trigger cannot leave');
is(sql('SELECT last_error IS NULL, lag_seconds < 60 FROM mongo_sync_status ORDER BY local_table'), "t|t\nt|t", 'the status');

# an error of one table does not keep the other one
sql('ALTER TABLE owner.other ADD CHECK (a < 100); INSERT INTO owner.d (a) VALUES (200)');
becomes('an error', q{SELECT last_error FROM mongo_sync_status WHERE local_table = 'owner.other'::regclass}, 'new row for relation "other" violates check constraint "other_a_check"');
ok($node->wait_for_log(qr/ERROR:  new row for relation "other" violates check/), 'is in the log');
sql('INSERT INTO owner.c VALUES (1000, 1)');
becomes('the other table goes on', 'SELECT count(*) FROM owner.local', 500);
sql('ALTER TABLE owner.other DROP CONSTRAINT other_a_check');
becomes('and so does this one', 'SELECT count(*) FROM owner.other', 2, 60);

is($node->safe_psql('old', 'SELECT count(*) FROM called'), 0, 'a view that is not of the extension is not read');

# nor does a table that is locked
my $locking = MongoFdwTest::Session->new($node);
$locking->ask('BEGIN; LOCK TABLE owner.other');
sql('INSERT INTO owner.c VALUES (1500, 1)');
becomes('a table is locked', 'SELECT count(*) FROM owner.local', 501, 60);
becomes('which is an error of that table', q{SELECT last_error FROM mongo_sync_status WHERE local_table = 'owner.other'::regclass}, 'canceling statement due to lock timeout', 60);
$locking->ask('COMMIT');
becomes('until it is not', q{SELECT last_error IS NULL FROM mongo_sync_status WHERE local_table = 'owner.other'::regclass}, 't', 60);

# restarts of both
$mongod->stop;
becomes('MongoDB is away', q{SELECT count(*) FROM mongo_sync_status WHERE last_error IS NOT NULL}, 2, 60);
$mongod->start;
$set->primary;
sql('INSERT INTO owner.c VALUES (2000, 1)');
becomes('MongoDB is back', 'SELECT count(*) FROM owner.local', 502, 60);
$node->stop('immediate');
$node->start;
sql('INSERT INTO owner.c VALUES (3000, 1)');
becomes('PostgreSQL is back', 'SELECT count(*) FROM owner.local', 503);

# it can be turned off and on, and does not keep databases from being dropped
$node->append_conf('postgresql.conf', 'mongo_fdw.sync_interval = 0');
$node->reload;
sleep 2;
sql('INSERT INTO owner.c VALUES (4000, 1)');
sleep 1;
is(sql('SELECT count(*) FROM owner.local'), 503, 'turned off');
$node->append_conf('postgresql.conf', q{mongo_fdw.sync_interval = '100ms'});
$node->reload;
becomes('turned on', 'SELECT count(*) FROM owner.local', 504);
sql('CREATE DATABASE other');
is($node->psql('postgres', 'DROP DATABASE other'), 0, 'a database is dropped');
$node->stop('fast');
pass('it ends when PostgreSQL is stopped');

done_testing();
