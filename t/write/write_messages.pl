# Writes outside of MongoDB's transactions: what their messages carry, what becomes
# of them when a reply is lost, and batches that are too much for one message.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;
use Time::HiRes qw(sleep);

my $set = MongoFdwTest::ReplicaSet->new(2);
my $alone = MongoFdwTest::Mongod->new;
my $node = new_postgres('write_messages');
my $proxy;

# table
#	A server without transactions, behind a new proxy, and its table.
sub table
{
	my ($name, $mongod, %options) = @_;

	$proxy = MongoFdwTest::helper('record', port => $mongod->port);
	create_server($node, "server_$name", $mongod, port => $proxy, replica_set => undef, transactions => 'off',
		server_selection_timeout_ms => 5000, %options);
	$node->safe_psql('postgres', "CREATE FOREIGN TABLE $name (_id int, a int, b text) SERVER server_$name "
		  . "OPTIONS (database 'db', collection '$name', batch_size '10')");
}

sub stored { return $node->safe_psql('postgres', "SELECT count(*), count(DISTINCT _id), sum(a) FROM $_[0]") }

# ------------------------------- what is sent ----------------------------------

my $primary = $set->primary;
table('member', $primary);
my $to_member = $proxy;
my @sent;

$node->safe_psql('postgres', 'INSERT INTO member SELECT i, 1 FROM generate_series(1, 25) i');
@sent = recorded_writes($proxy);
is(scalar(@sent), 3, 'a message a batch');
is(join(' ', map { scalar @{ $_->{documents} } } @sent), '10 10 5', '... with its documents');
is(join(' ', sort keys %{ $sent[0] }), '$db documents insert lsid ordered txnNumber', '... and no other field');
is(join(' ', map { $_->{txnNumber} } @sent), '1 2 3', '... each with a number of its own');
is_deeply($sent[2]{lsid}, $sent[0]{lsid}, '... in one session');

$node->safe_psql('postgres', q{SELECT count(*) FROM member; INSERT INTO member VALUES (26, 1);
	UPDATE member SET a = a + 1 WHERE _id = 26; UPDATE member SET b = 'x' WHERE a = 1; UPDATE member SET b = b || 'y' WHERE _id < 3;
	DELETE FROM member WHERE _id = 26; DELETE FROM member WHERE b = 'z'});
@sent = recorded_writes($proxy);
is(join(' ', map { $_->{txnNumber} // 'none' } @sent), '1 2 none 3 4 none',
	'numbers where MongoDB can recognize a repetition') or diag(explain(\@sent));
is_deeply($_->{lsid}, $sent[0]{lsid}, '... in one session') foreach @sent[ 1 .. 5 ];
is(join(' ', map { 0 + $_->{multi} } map { @{ $_->{updates} // [] } } @sent), '0 1 0 0', 'one document or many');
is(stored('member'), '25|25|25', 'all of it was done');

table('alone', $alone);
my $to_alone = $proxy;
$node->safe_psql('postgres', q{INSERT INTO alone SELECT i, 1 FROM generate_series(1, 3) i});
@sent = recorded_writes($proxy);
is(join(' ', sort keys %{ $sent[0] }), '$db documents insert lsid ordered', 'a standalone server has no numbers');

$node->safe_psql('postgres', q{ALTER SERVER server_alone OPTIONS (ADD write_concern '1', ADD comment 'of the test')});
$node->safe_psql('postgres', 'INSERT INTO alone VALUES (4, 1)');
@sent = recorded_writes($proxy);
is_deeply($sent[0]{writeConcern}, { w => 1 }, 'the write concern goes along');
is($sent[0]{comment}, 'of the test', '... and the comment');
$node->safe_psql('postgres', q{ALTER SERVER server_alone OPTIONS (DROP write_concern, DROP comment)});

# one connection for reads and writes
$alone->snapshot;
$node->safe_psql('postgres', q{SELECT count(*) FROM alone; INSERT INTO alone VALUES (5, 1); UPDATE alone SET a = 1; SELECT count(*) FROM alone});
is($alone->changes->{connections}, 1, 'reads and writes share a connection');

# ------------------------------- lost replies ----------------------------------

# Each with what MongoDB is made to do, how often, and what is expected.
my @FAULTS = (
	[ 'closes the connection', '"closeConnection": true' ],
	[ 'is no primary', '"errorCode": 10107' ],
	[ 'shuts down', '"errorCode": 91' ],
	[ 'has done it and shuts down', '"writeConcernError": {"code": 91, "errmsg": "x"}, "errorLabels": ["RetryableWriteError"]' ],
);
my @WRITES = (
	[ insert => 'INSERT INTO member SELECT i, 1 FROM generate_series(100, 104) i', '30|30|30' ],
	[ update => 'UPDATE member SET a = a + 1 WHERE _id = 100', '30|30|31' ],
	[ update => 'UPDATE member SET a = a + length(md5(_id::text)) - 31 WHERE _id IN (101, 102)', '30|30|33' ],
	[ update => 'UPDATE member SET a = a + 1 WHERE _id IN (103, 104)', '30|30|35', 'many' ],
	[ delete => 'DELETE FROM member WHERE md5(coalesce(b, \'\')) <> md5(\'kept\')', '25|25|25' ],
);

sub fail_with
{
	my ($mongod, $command, $how, $times) = @_;
	$mongod->command("{\"configureFailPoint\": \"failCommand\", \"mode\": {\"times\": $times}, "
		  . "\"data\": {\"failCommands\": [\"$command\"], $how}}");
}

$node->safe_psql('postgres', q{UPDATE member SET b = 'kept'});
foreach my $fault (@FAULTS)
{
	my ($what, $how) = @$fault;

	foreach my $write (@WRITES)
	{
		my ($command, $sql, $expected, $many) = @$write;
		my $name = "MongoDB $what: $sql";
		my $has_begun = $how !~ /10107/;

		recorded_writes($to_member);
		fail_with($primary, $command, $how, 1);
		my ($out, $err) = run_sql($sql);
		@sent = grep { exists $_->{$command} } recorded_writes($to_member);
		if ($many && $has_begun)
		{
			like($err, qr/ERROR/, "$name: an error, as it may not be repeated");
			is(scalar(@sent), 1, "$name: sent once");
			$primary->unblock_commands;
			$node->safe_psql('postgres', $sql) unless $how =~ /writeConcernError/;
		}
		else
		{
			is($err, '', "$name: done");
			is(scalar(@sent), 2, "$name: sent twice");
			is_deeply([ @{ $sent[1] }{qw(lsid txnNumber)} ], [ @{ $sent[0] }{qw(lsid txnNumber)} ], "$name: as the same write");
		}
		is(stored('member'), $expected, "$name: once");
	}
}

# lost twice
fail_with($primary, 'insert', '"closeConnection": true', 2);
my ($out, $err) = run_sql(q{INSERT INTO member VALUES (200, 1); SELECT count(*) FROM member});
like($err, qr/ERROR:  08006: could not insert into foreign table "member"\nDETAIL:  The connection was lost/, 'lost twice');
like($err, qr/WARNING:  01000: changes on server .*\nDETAIL:  MongoDB may still be running a command that may have changed up to 1 document\./,
	'... which a WARNING tells');
is($out, '25', '... and the session goes on');

fail_with($primary, 'insert', '"errorCode": 10107', 2);
($out, $err) = run_sql(q{INSERT INTO member VALUES (200, 1); INSERT INTO member VALUES (201, 1); SELECT count(*) FROM member});
like($err, qr/ERROR:  08006: could not insert.*10107/s, 'no primary twice');
is($out, '26', '... and the next one is done');

# not to be repeated
fail_with($alone, 'insert', '"closeConnection": true', 1);
($out, $err) = run_sql('INSERT INTO alone VALUES (200, 1)');
like($err, qr/ERROR:  08006: could not insert/, 'a standalone server is not asked twice');
$alone->unblock_commands;
table('once', $primary, address => undef, port => undef, uri => 'mongodb://127.0.0.1:' . $primary->port . '/?directConnection=true&retryWrites=false');
fail_with($primary, 'insert', '"errorCode": 91', 1);
($out, $err) = run_sql('INSERT INTO once VALUES (1, 1); INSERT INTO once VALUES (2, 2); SELECT count(*) FROM once');
like($err, qr/ERROR:  57P01/, 'nor is any with retryWrites=false');
is($out, '1', '... and the next one goes over a new connection');
fail_with($primary, 'insert', '"errorCode": 10107', 1);
($out, $err) = run_sql('INSERT INTO once VALUES (3, 3); SELECT count(*) FROM once');
is($out, '2', '... but after an error by which it has not begun');
{
	my $session = MongoFdwTest::Session->new($node);
	my $insert = q{SELECT mongo_command('server_once', 'db', '{"insert": "once", "documents": [{}]}') ->> 'n'};
	is($session->ask($insert), '1', 'mongo_command() writes');
	$primary->fail_command(9, 10107, 'insert', 'hello', 'isMaster');
	$session->ask($insert);
	like($session->{err}, qr/ERROR:  .*10107(?!.*WARNING)/s, '... and fails if no primary can be found afterwards');
	$primary->unblock_commands;
	is($session->ask($insert), '1', '... and the session goes on');
	$session->close;
}

# ------------------------------- an election ------------------------------------

create_server($node, 'whole_set', $primary, replica_set => 'rs', transactions => 'off');
$primary->unblock_commands;
$node->safe_psql('postgres', q{CREATE FOREIGN TABLE elected (_id int, a int) SERVER whole_set OPTIONS (database 'db', batch_size '1')});
my $session = MongoFdwTest::Session->new($node);
$session->ask('INSERT INTO elected VALUES (1, 1)');
my $new = $set->step_down;
$session->ask('INSERT INTO elected VALUES (2, 1)');
is($session->{err}, '', 'a session finds the new primary');
$session->ask('INSERT INTO elected SELECT i, 1 + 0 * length(pg_sleep(0.01)::text) FROM generate_series(10, 20) i');
is($session->{err}, '', '... and goes on there');
is($session->ask('SELECT count(*), count(DISTINCT _id), sum(a) FROM elected'), '13|13|13', '... with each row once');

# a secondary reads, the primary writes
$node->safe_psql('postgres', q{ALTER SERVER whole_set OPTIONS (ADD read_preference 'secondary')});
$session->ask('SELECT count(*) FROM elected');
$session->ask('INSERT INTO elected VALUES (30, 1)');
is($session->{err}, '', 'a read preference does not lead writes astray');
$session->close;

# ---------------------------- more than one message -----------------------------

$node->safe_psql('postgres', q{ALTER FOREIGN TABLE alone OPTIONS (SET batch_size '1000')});
$node->safe_psql('postgres', 'TRUNCATE alone');
recorded_writes($to_alone);
is($node->safe_psql('postgres', q{WITH i AS (INSERT INTO alone SELECT i, 1, repeat('x', 60000) FROM generate_series(1, 1000) i
	ON CONFLICT DO NOTHING RETURNING 1) SELECT count(*) FROM i}), '1000', 'RETURNING row by row');
$node->safe_psql('postgres', 'DELETE FROM alone WHERE _id % 10 <> 3');
recorded_writes($to_alone);
$node->safe_psql('postgres', q{INSERT INTO alone SELECT i, 2, repeat('x', 60000) FROM generate_series(1, 1000) i ON CONFLICT DO NOTHING});
@sent = recorded_writes($to_alone);
is(scalar(@sent), 2, 'a batch of 60 MB leaves in two messages');
is(scalar(map { @{ $_->{documents} } } @sent), 1000, '... with all of its documents');
is(stored('alone'), '1000|1000|1900', '... of which those are passed over that are there');

done_testing();
