# Commands that a cancel abandons leave nothing in MongoDB: no cursor, and no transaction.
# On a standby they end the statement, and not the session.

use strict;
use warnings;

use MongoFdwTest;
use PostgreSQL::Test::Cluster;
use Test::More;
use Time::HiRes qw(sleep);

my $set = MongoFdwTest::ReplicaSet->new(1);
my $mongod = $set->primary;
my $proxy = MongoFdwTest::helper('record', port => $mongod->port);
my $primary = PostgreSQL::Test::Cluster->new('abandoned_primary');
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', 'max_standby_streaming_delay = 50ms');
$primary->start;
$primary->safe_psql('postgres', 'CREATE EXTENSION mongo_fdw');
create_server($primary, 'mongodb', $mongod, fetch_size => 100);
create_point_table($primary, 'mongodb', $mongod, 1000, 0);
create_server($primary, 'behind_proxy', $mongod, port => $proxy, replica_set => undef);
$primary->safe_psql('postgres', q{CREATE FOREIGN TABLE written (_id int, a int) SERVER behind_proxy
	OPTIONS (database 'db', collection 'written'); CREATE TABLE local AS SELECT 1 AS a; CREATE SCHEMA imported});

# sent_to_proxy: tells whether a command of this name has passed.
my @passed;

sub sent_to_proxy
{
	my ($name) = @_;
	push @passed, @{ MongoFdwTest::helper('recorded', port => $proxy) };
	return scalar grep { exists $_->{$name} } @passed;
}

# -------------------------------- cursors -------------------------------------

my $session = MongoFdwTest::Session->new($primary);
my $scan = 'SELECT id FROM points';
is($session->ask("$scan WHERE id = 7"), '7', 'connected');

# with a reply that comes before and after MongoDB is told that nobody waits
foreach my $how (
	[ 'a scan', 40, $scan ],
	[ 'a scan whose reply comes later', 250, $scan ],
	[ 'an IMPORT', 250, 'IMPORT FOREIGN SCHEMA db FROM SERVER mongodb INTO imported' ],
	[ 'a scan in a block', 250, "BEGIN; $scan", 'ROLLBACK' ],
	[ 'a scan in a subtransaction', 250, "DO \$\$ BEGIN PERFORM id FROM points; EXCEPTION WHEN query_canceled THEN NULL; END \$\$" ],
	[ 'a snapshot', 250, "BEGIN ISOLATION LEVEL REPEATABLE READ; $scan", 'ROLLBACK' ],
	[ 'a later batch', 250, 'SELECT count(info) FROM points WHERE length(info) > 1', '', 'getMore' ])
{
	my ($name, $time, $statement, $after, $command) = @$how;

	$mongod->block_commands($time, $command // ('find', 'aggregate', 'listCollections'));
	foreach (1 .. 3)
	{
		$session->ask("SET statement_timeout = '15ms'");
		$session->ask($statement);
		like($session->{err}, qr/statement timeout/, "$name: cancelled") if $statement !~ /^DO/;
		$session->ask($after) if $after;
		$session->ask('RESET statement_timeout');
	}
	$mongod->unblock_commands;
	ok(becomes(sub { $mongod->open_cursors == 0 }), "$name: its cursor does not stay open") or diag($mongod->open_cursors);
	is($session->ask("$scan WHERE id = 7"), '7', "$name: the session goes on");
}

# the session ends meanwhile
$mongod->block_commands(100, 'find');
$session->ask("SET statement_timeout = '15ms'");
$session->ask($scan);
$session->close;
$mongod->unblock_commands;
ok(becomes(sub { $mongod->open_cursors == 0 }), 'nor after the end of the session');

# a connection whose reply comes soon is used again
$session = MongoFdwTest::Session->new($primary);
is($session->ask("$scan WHERE id = 7"), '7', 'another session');
$mongod->block_commands(30, 'find');
$session->ask("SET statement_timeout = '15ms'");
$session->ask("$scan WHERE id = 7");
like($session->{err}, qr/statement timeout/, 'cancelled');
$mongod->unblock_commands;
$session->ask('RESET statement_timeout');
is($session->ask("SELECT pg_sleep(0.05); $scan WHERE id = 8"), "\n8", 'the next query');
is($session->ask('SELECT count(*), max(commands) > 2 FROM mongo_fdw_get_connections()'), '1|t', '... needs no other connection');

# ------------------- a transaction whose first command is late ------------------

my $writer = MongoFdwTest::Session->new($primary);
is($writer->ask('INSERT INTO written VALUES (1, 1); SELECT count(*) FROM written'), '1', 'written once');
foreach my $late (0.1, 0.4)
{
	@passed = ();
	MongoFdwTest::helper('recorded', port => $proxy);
	MongoFdwTest::helper('late', port => $proxy, name => 'insert', seconds => $late);
	$writer->ask("SET statement_timeout = '15ms'");
	$writer->ask('INSERT INTO written VALUES (2, 2)');
	like($writer->{err}, qr/statement timeout/, "an INSERT that arrives $late s late: cancelled");
	ok(becomes(sub { sent_to_proxy('insert') && sent_to_proxy('abortTransaction') }), '... and aborted behind it');
	ok(becomes(sub { $mongod->open_transactions == 0 }), '... so no transaction stays open');
	$writer->ask('RESET statement_timeout');
	MongoFdwTest::helper('late', port => $proxy, name => 'insert', seconds => 0);
	is($writer->ask('SELECT count(*) FROM written'), '1', '... and nothing is written');
	is($writer->ask('UPDATE written SET a = a + 1 RETURNING _id'), '1', '... and the session goes on');
}

# --------------------------------- a standby ------------------------------------

$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('abandoned_standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;
my $reader = MongoFdwTest::Session->new($standby, '-v', 'VERBOSITY=verbose');
my $pid = $reader->pid;
foreach my $level ('READ COMMITTED', 'REPEATABLE READ')
{
	$reader->ask("SET default_transaction_isolation = '$level'");
	is($reader->ask("$scan WHERE id = 7"), '7', "$level on a standby");
	$mongod->block_commands(3000, 'find');
	my $removing = background_query($primary, 'SELECT pg_sleep(0.2); UPDATE local SET a = a + 1; VACUUM local');
	$reader->ask($scan);
	like($reader->{err}, qr/ERROR:  40001: canceling statement due to conflict with recovery/,
		"$level: a conflict with recovery ends the statement");
	$removing->finish;
	$mongod->unblock_commands;
	is($reader->ask("SELECT pg_backend_pid() FROM ($scan WHERE id = 7) p"), $pid, "$level: ... and not the session");
}

done_testing();
