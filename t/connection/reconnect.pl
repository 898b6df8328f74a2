# Servers that go away and come back between two queries of one session.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $query = 'SELECT count(*), sum(id) FROM points WHERE id <= 10';
my $answer = '10|55';

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('reconnect');
create_server($node, 'mongodb', $mongod, server_selection_timeout_ms => 20000);
create_point_table($node, 'mongodb', $mongod, 5000);

my $session = MongoFdwTest::Session->new($node);
is($session->ask($query), $answer, 'before');
foreach my $round (1 .. 3)
{
	$mongod->restart;
	is($session->ask($query), $answer, "MongoDB restarted between two queries, $round");
}
$mongod->kill;
$mongod->start;
is($session->ask($query), $answer, 'MongoDB killed between two queries');

# The connection breaks on the first command: sent once more.
$mongod->fail_command(1, undef, 'find', 'aggregate');
is($session->ask($query), $answer, 'a connection that is closed under the command is replaced');

# Errors that say "try again" are tried again, once; others are not.
foreach my $code (91, 189, 10107, 11600, 13435)
{
	$mongod->fail_command(1, $code, 'find', 'aggregate');
	is($session->ask($query), $answer, "a retryable error, $code, is retried");
}
$mongod->fail_command(1, 13, 'find', 'aggregate');
like($session->ask($query), qr/ERROR/, 'another error is not');
is($session->ask($query), $answer, 'after which the session goes on');
$mongod->fail_command(5, undef, 'find', 'aggregate');
like($session->ask($query), qr/ERROR/, 'a connection that breaks again is an error');
$mongod->unblock_commands;
is($session->ask($query), $answer, 'after which the session goes on');

# In mid-scan rows have been handed out already: an error, not a second start.
$session->ask('BEGIN; DECLARE c CURSOR FOR SELECT id FROM points');
is($session->ask('FETCH 1 FROM c') =~ /^\d+$/ ? 1 : 0, 1, 'a row of a cursor');
$mongod->restart;
like($session->ask('FETCH ALL FROM c'), qr/ERROR/, 'the rest of a cursor that is gone is an error');
$session->ask('ROLLBACK');
is($session->ask($query), $answer, 'after which the session goes on');

# A replica set: the primary moves.
my $set = MongoFdwTest::ReplicaSet->new(3);
$set->primary->command('{"setDefaultRWConcern": 1, "defaultWriteConcern": {"w": 3}}');
$set->primary->fill('db', 'points', 1000);
$node->safe_psql('postgres', 'DROP SERVER mongodb CASCADE');
my @members = map { '127.0.0.1:' . $_->port } $set->members;
create_server($node, 'mongodb', $set->primary, address => undef, port => undef,
	server_selection_timeout_ms => 30000, uri => 'mongodb://' . join(',', @members) . '/?replicaSet=rs');
$node->safe_psql('postgres',
	'CREATE FOREIGN TABLE points (id int, info text) SERVER mongodb OPTIONS (database \'db\')');
is($session->ask($query), $answer, 'a replica set');
my @writers = map { MongoFdwTest::Session->new($node) } 1 .. 3;
my @writes = (
	"INSERT INTO points VALUES (2000, 'x') RETURNING 1",
	"UPDATE points SET info = info || random() WHERE id = 1000; SELECT 1",
	"BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM points WHERE id = 1; UPDATE points SET info = 'x' WHERE id = 999; COMMIT");
$writers[$_]->ask($writes[$_]) foreach 0 .. $#writes;
foreach my $round (1 .. 2)
{
	$set->step_down;
	is($session->ask($query), $answer, "after the primary stepped down, $round");
	foreach (0 .. $#writes)
	{
		is($writers[$_]->ask($writes[$_]), '1', "after the primary stepped down, $round: $writes[$_]");
		is($writers[$_]->{err}, '', 'without an error');
	}
}
my $old = $set->primary;
$old->kill;
$set->primary;
is($session->ask($query), $answer, 'after the primary was killed');

# One member by the old options; the set's name makes the others known.
$old->start;
create_server($node, 'by_member', ($set->members)[0], replica_set => 'rs', read_preference => 'nearest');
$node->safe_psql('postgres',
	'CREATE FOREIGN TABLE near (id int, info text) SERVER by_member OPTIONS (database \'db\', collection \'points\')');
is($session->ask('SELECT count(*) FROM near WHERE id <= 10'), '10', 'a member and replica_set');

# Another set's name.
create_server($node, 'misnamed', ($set->members)[0], replica_set => 'other', server_selection_timeout_ms => 1000);
$node->safe_psql('postgres', 'CREATE FOREIGN TABLE misnamed (id int) SERVER misnamed');
like(($node->psql('postgres', 'SELECT * FROM misnamed'))[2], qr/DETAIL:  .*127\.0\.0\.1:\d+ belongs to replica set "rs".*\nHINT:  Set the option replica_set/, 'the name of the set is told');

done_testing();
