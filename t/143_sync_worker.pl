# Synchronized tables: the background worker, and the views of the state.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $set = MongoFdwTest::ReplicaSet->new(1);
my $mongod = $set->primary;
my $node = new_postgres('worker', q{shared_preload_libraries = 'mongo_fdw'}, q{mongo_sync.timeout = '1s'}, q{mongo_fdw.sync_interval = '200ms'});
create_server($node, 'mongodb', $mongod, server_selection_timeout_ms => 2000);

sub sql { return $node->safe_psql('postgres', $_[0]) }
sub mongo { return $mongod->command($_[0], $_[1] // 'db') }

sub becomes
{
	my ($name, $sql, $expected, $database) = @_;
	my $deadline = time + 60;
	my $got = '';
	while (time < $deadline)
	{
		$got = ($node->psql($database // 'postgres', $sql))[1];
		last if $got eq $expected;
		sleep 0.05;
	}
	is($got, $expected, $name);
}

sub workers { return "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'mongo_sync worker'" . ($_[0] ? " AND datname = '$_[0]'" : '') }

# --- the first CALL wakes it ------------------------------------------------------------------
becomes('without anything synchronized there is no worker', workers(), 0);
is(sql(q{SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'mongo_sync launcher'}), 1, 'but a launcher');
sql(q{CREATE EXTENSION mongo_sync; CREATE ROLE owner; GRANT CREATE ON DATABASE postgres TO owner; GRANT USAGE ON FOREIGN SERVER mongodb TO owner;
	CREATE USER MAPPING FOR owner SERVER mongodb; SET ROLE owner; CREATE SCHEMA shop; CREATE SCHEMA own;
	CREATE FOREIGN TABLE shop.a (_id int, n int) SERVER mongodb OPTIONS (database 'db');
	CREATE FOREIGN TABLE shop.b (_id int, n int) SERVER mongodb OPTIONS (database 'db');
	INSERT INTO shop.a VALUES (1, 1); INSERT INTO shop.b VALUES (1, 1)});
becomes('nor does the extension start one', workers(), 0);
sql(q{SET ROLE owner; CALL mongo_sync.sync('shop.a', 'own.a'); CALL mongo_sync.sync('shop.b', 'own.b', true)});
becomes('a CALL does', workers('postgres'), 1);
becomes('and all is well', 'SELECT count(*) FROM mongo_sync.health', 0);

my $listener = MongoFdwTest::Session->new($node);
$listener->ask('LISTEN mongo_sync');
sql('INSERT INTO shop.a VALUES (2, 2)');
becomes('a change is applied', 'SELECT count(*) FROM own.a', 2);
like($listener->ask('SELECT 1'), qr/"mongo_sync" with payload "own.a"/, 'and notified');
done_testing();
