# The commands of a MongoDB transaction: what they carry, and what becomes of the
# transaction when they fail, are cancelled, or find their connection closed.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $set = MongoFdwTest::ReplicaSet->new(1, cache_gb => '0.8');
my $mongod = $set->primary;
my $node = new_postgres('transaction_messages');
my $proxy = MongoFdwTest::helper('record', port => $mongod->port);

create_server($node, 'behind_proxy', $mongod, port => $proxy, replica_set => undef, fetch_size => 10,
	server_selection_timeout_ms => 5000);
$node->safe_psql('postgres', q{CREATE FOREIGN TABLE t (_id int, a int, b text) SERVER behind_proxy
	OPTIONS (database 'db', collection 't', batch_size '10')});
$node->safe_psql('postgres', q{CREATE TABLE local (id int)});
$node->safe_psql('postgres', q{INSERT INTO t SELECT i, 0 FROM generate_series(1, 100) i});

my $session = MongoFdwTest::Session->new($node, '-v', 'VERBOSITY=verbose');

sub stored { return $node->safe_psql('postgres', 'SELECT count(*), count(DISTINCT _id), sum(a) FROM t') }

my @sent;

# --------------------------------- their fields ----------------------------------

recorded_commands($proxy);
is($session->errors('BEGIN', 'UPDATE t SET a = 1 WHERE _id = 1', 'SELECT count(a) FROM t', 'INSERT INTO t VALUES (101, 1), (102, 1)',
		'UPDATE t SET a = 2 WHERE _id > 100', 'DELETE FROM t WHERE _id = 102',
		'INSERT INTO t VALUES (101, 5), (103, 1) ON CONFLICT DO NOTHING',
		q{UPDATE t SET b = 'x' WHERE _id = 103 RETURNING a}, 'COMMIT'), '', 'a transaction');
@sent = recorded_commands($proxy);
is(names_of(@sent), 'update find getMore getMore getMore getMore getMore getMore getMore getMore getMore getMore '
	  . 'insert update delete update findAndModify commitTransaction', '... its commands')
  or diag(explain(\@sent));
is(scalar(grep { $_->{startTransaction} } @sent), 1, '... one of which begins it');
ok($sent[0]{startTransaction}, '... the first');
is(scalar(grep { !$_->{autocommit} && exists $_->{autocommit} } @sent), scalar(@sent), '... autocommit: false in all');
is_deeply($_->{lsid}, $sent[0]{lsid}, '... one session') foreach @sent;
is(scalar(grep { $_->{txnNumber} == $sent[0]{txnNumber} } @sent), scalar(@sent), '... one number');
is(scalar(grep { exists $_->{'$clusterTime'} } @sent), scalar(@sent), '... the cluster time');
is(scalar(grep { $_->{'$readPreference'} || $_->{readConcern} } @sent), 0, '... no read preference and no read concern');
is(scalar(grep { $_->{writeConcern} } @sent), 1, '... a write concern');
ok($sent[-1]{writeConcern}, '... with the commit alone');
is(join(' ', sort keys %{ $sent[12] }), '$clusterTime $db autocommit documents insert lsid ordered txnNumber',
	'an INSERT has no other fields');
is(join(' ', sort keys %{ $sent[1] }), '$clusterTime $db autocommit batchSize find lsid projection txnNumber',
	'nor has a find') or diag(explain($sent[1]));
is(stored(), '102|102|4', 'all of it was done');

# numbers grow, the session stays
recorded_commands($proxy);
$session->errors('BEGIN', 'DELETE FROM t WHERE _id = 101', 'DELETE FROM t WHERE _id = 103', 'COMMIT');
my @more = recorded_commands($proxy);
is(names_of(@more), 'delete delete commitTransaction', 'another transaction');
is_deeply($more[1]{lsid}, $sent[0]{lsid}, '... in the same session');
cmp_ok($more[1]{txnNumber}, '>', $sent[0]{txnNumber}, '... with a greater number');
is($more[1]{txnNumber}, $more[0]{txnNumber}, '... in its second command');

# whose: libmongoc has "$clusterTime" between "lsid" and "txnNumber", and ours do not
sub whose
{
	my @whose;

	foreach my $fields (@{ MongoFdwTest::helper('recorded_fields', port => $proxy) })
	{
		my %position = map { $fields->[$_] => $_ } 0 .. $#$fields;
		next unless exists $position{lsid};
		push @whose, ($position{txnNumber} == $position{lsid} + 1 ? 'our ' : "libmongoc's ") . $fields->[0];
	}
	return join(' ', @whose);
}

whose();
$session->errors('BEGIN', 'DELETE FROM t WHERE _id = -1', 'SELECT a FROM t WHERE _id <= 15', 'UPDATE t SET a = 0 WHERE _id = 1',
	'UPDATE t SET a = a + 0 WHERE _id = 1', 'INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING',
	'DELETE FROM t WHERE _id = -1 RETURNING a', 'COMMIT');
is(whose(), 'our delete our find our getMore our update our update our update our findAndModify '
	  . 'our commitTransaction', 'all are ours, the first and the last, too');

# a snapshot is asked for once
$session->errors('BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT a FROM t WHERE _id = 1', 'SELECT a FROM t WHERE _id = 2',
	'UPDATE t SET a = 0 WHERE _id = 1', 'COMMIT');
@sent = recorded_commands($proxy);
is(names_of(@sent), 'find find update commitTransaction', 'REPEATABLE READ');
is_deeply([ map { $_->{readConcern}{level} } @sent ], [ 'snapshot', undef, undef, undef ], '... one snapshot');
is($sent[0]{txnNumber}, $_->{txnNumber}, '... in one transaction') foreach @sent;

# the comment
$node->safe_psql('postgres', q{ALTER SERVER behind_proxy OPTIONS (ADD comment 'of the test')});
$session->errors('BEGIN', 'UPDATE t SET a = 0 WHERE _id = 1', 'SELECT a FROM t WHERE _id = 2', 'DELETE FROM t WHERE _id = -1', 'COMMIT');
is(join(' / ', map { $_->{comment} // 'none' } grep { !exists $_->{commitTransaction} } recorded_commands($proxy)),
	'of the test / of the test / of the test', 'the comment goes along');
$node->safe_psql('postgres', q{ALTER SERVER behind_proxy OPTIONS (DROP comment)});
is(stored(), '100|100|0', 'as before');

# ----------------------------- many, and large ones -------------------------------

$node->safe_psql('postgres', q{ALTER FOREIGN TABLE t OPTIONS (SET batch_size '100000')});
recorded_commands($proxy);
is($session->errors('BEGIN', q{INSERT INTO t SELECT i, 1, 'there' FROM generate_series(1001, 1010) i},
		q{INSERT INTO t SELECT i, 2, repeat('x', 60000) FROM generate_series(1001, 2000) i ON CONFLICT DO NOTHING},
		'SELECT length(b) FROM t WHERE _id BETWEEN 1001 AND 1400', 'COMMIT'), '', 'a batch of 60 MB');
@sent = recorded_commands($proxy);
is(names_of(grep { names_of($_) ne 'getMore' } @sent), 'insert update update find commitTransaction', '... leaves in two messages');
is(scalar(map { @{ $_->{updates} // [] } } @sent), 1000, '... with all of its documents');
is(stored(), '1100|1100|1990', '... of which those are passed over that are there');
$session->errors('BEGIN', 'DELETE FROM t WHERE _id = -1', 'DELETE FROM t WHERE _id > 100', 'COMMIT');
is(stored(), '100|100|0', 'as before');

# --------------------------------- what fails ------------------------------------

# each is the third command of a transaction, which is then rolled back in each way
my %FAILURES = (
	'a duplicate key' => [ 'INSERT INTO t VALUES (1, 5)', qr/ERROR:  23505: could not insert/ ],
	'an error of a find' => [ 'SELECT a FROM t WHERE _id = 1', qr/ERROR:  XX000|ERROR:  HV000|ERROR:  22/, 'find', '"errorCode": 2' ],
	'a transient error' => [ 'UPDATE t SET a = 9 WHERE _id = 3', qr/ERROR:  40001: could not update/, 'update',
		'"errorCode": 251, "errorLabels": ["TransientTransactionError"]' ],
	'a transient error of a find' => [ 'SELECT a FROM t WHERE _id = 1', qr/ERROR:  40001: could not read/, 'find',
		'"errorCode": 246, "errorLabels": ["TransientTransactionError"]' ],
	'no primary any more' => [ 'DELETE FROM t WHERE _id = 3', qr/ERROR:  40001: could not delete/, 'delete',
		'"errorCode": 10107, "errorLabels": ["TransientTransactionError"]' ],
	'a connection closed' => [ 'DELETE FROM t WHERE _id = 3', qr/ERROR:  40001: could not delete/, 'delete', '"closeConnection": true' ],
	'a connection closed in a find' => [ 'SELECT a FROM t WHERE _id = 1', qr/ERROR:  40001: could not read/, 'find', '"closeConnection": true' ],
	'one closed in an upsert' => [ 'INSERT INTO t VALUES (1, 5) ON CONFLICT DO NOTHING', qr/ERROR:  40001: could not insert/, 'update', '"closeConnection": true' ],
	'one closed in a getMore' => [ 'SELECT a FROM t', qr/ERROR:  40001: could not read/, 'getMore', '"closeConnection": true' ],
);

# none_open: is that so soon?
sub none_open
{
	foreach (1 .. 50)
	{
		return 1 if $mongod->open_transactions == 0;
		sleep 0.1;
	}
	return 0;
}

foreach my $what (sort keys %FAILURES)
{
	my ($sql, $error, $command, $how) = @{ $FAILURES{$what} };

	foreach my $savepoint ('', 'SAVEPOINT s')
	{
		my $name = $savepoint ? "$what, in a savepoint" : $what;

		is($session->errors('BEGIN', 'UPDATE t SET a = 8 WHERE _id = 2', 'INSERT INTO local VALUES (1)', 'DELETE FROM t WHERE _id = 4'), '',
			"$name: begun");
		$session->errors($savepoint) if $savepoint;
		$mongod->command("{\"configureFailPoint\": \"failCommand\", \"mode\": {\"times\": 1}, "
			  . "\"data\": {\"failCommands\": [\"$command\"], $how}}") if $command;
		recorded_commands($proxy);
		like($session->errors($sql), $error, "$name: the error");
		is(scalar(grep { names_of($_) eq ($command // 'insert') } recorded_commands($proxy)), 1, "$name: sent once");
		if ($savepoint)
		{
			$session->errors('ROLLBACK TO s');
			like($session->errors('SELECT a FROM t WHERE _id = 1'), qr/ERROR:  0A000|ERROR:  25P02/, "$name: nothing more can be read")
			  if $sql !~ /^(DELETE|UPDATE|INSERT)/;
			$session->errors('ROLLBACK TO s');
			like($session->errors('COMMIT'), qr/ERROR:  0A000: cannot commit/, "$name: nor committed");
		}
		else
		{
			like($session->errors('SELECT 1'), qr/ERROR:  25P02/, "$name: PostgreSQL's transaction has failed");
			is($session->errors('ROLLBACK'), '', "$name: ROLLBACK");
		}
		ok(none_open(), "$name: MongoDB has no transaction any more");
		$mongod->unblock_commands;
		is(stored(), '100|100|0', "$name: nothing has been done");
		is($session->errors('BEGIN', 'UPDATE t SET a = 1 WHERE _id = 1', 'UPDATE t SET a = 0 WHERE _id = 1', 'COMMIT'), '', "$name: the next one");
	}
}
is($node->safe_psql('postgres', 'SELECT count(*) FROM local'), '0', 'nor has PostgreSQL kept anything');

# ------------------------- a connection cut between two ---------------------------

# soon: the command is lost, or never left; nothing is done twice
$session->errors('BEGIN', 'UPDATE t SET a = 1 WHERE _id = 1', 'UPDATE t SET a = 1 WHERE _id = 2');
MongoFdwTest::helper('cut', port => $proxy);
my $cut = $session->errors('UPDATE t SET a = a + 1 WHERE _id = 2');
like($cut, qr/^$|ERROR:  40001/, 'a connection cut: a transient error, if any');
is($session->errors('COMMIT'), '', '... and an end');
ok(none_open(), '... in MongoDB, too');
is(stored(), $cut eq '' ? '100|100|3' : '100|100|0', '... with all or nothing done');
$session->errors('UPDATE t SET a = 0 WHERE a <> 0');

# later: it is seen, and the transaction goes on over another, being MongoDB's
foreach my $next ('UPDATE t SET a = a + 1 WHERE _id = 2', 'SELECT a FROM t WHERE _id = 1')
{
	$session->errors('BEGIN', 'UPDATE t SET a = 1 WHERE _id = 1', 'UPDATE t SET a = 1 WHERE _id = 2');
	MongoFdwTest::helper('cut', port => $proxy);
	sleep 1.3;
	recorded_commands($proxy);
	is($session->errors($next, 'UPDATE t SET a = a + 1 WHERE _id = 3', 'COMMIT'), '', "cut a second before $next");
	@sent = recorded_commands($proxy);
	is(scalar(grep { $_->{startTransaction} } @sent), 0, '... goes on in the same transaction');
	is(stored(), $next =~ /^U/ ? '100|100|4' : '100|100|3', '... each once');
	$session->errors('UPDATE t SET a = 0 WHERE a <> 0');
}

# a rollback after it
$session->errors('BEGIN', 'UPDATE t SET a = 1 WHERE _id = 1', 'UPDATE t SET a = 1 WHERE _id = 2');
MongoFdwTest::helper('cut', port => $proxy);
$session->errors('ROLLBACK');
ok(none_open(), 'cut before ROLLBACK: MongoDB has no transaction any more');
is(stored(), '100|100|0', '... and nothing is done');

# with it
$session->errors('BEGIN', 'UPDATE t SET a = 1 WHERE _id = 1');
$mongod->fail_command(1, undef, 'abortTransaction');
is($session->errors('ROLLBACK'), '', 'a connection closed in place of a reply to ROLLBACK: no warning');
ok(none_open(), '... and MongoDB has no transaction any more');

# ------------------------------- what is cancelled --------------------------------

my @LONG = (
	[ update => 'UPDATE t SET a = 5 WHERE _id = 5' ],
	[ find => 'SELECT a FROM t WHERE _id = 5' ],
	[ getMore => 'SELECT a FROM t' ],
	[ insert => 'INSERT INTO t VALUES (500, 1)' ],
);
foreach my $long (@LONG)
{
	my ($command, $sql) = @$long;

	$session->errors('BEGIN', 'UPDATE t SET a = 1 WHERE _id = 1', 'DELETE FROM t WHERE _id = 2');
	$mongod->block_commands(20_000, $command);
	$session->errors(q{SET LOCAL statement_timeout = '300ms'});
	my $start = time;
	like($session->errors($sql), qr/ERROR:  57014/, "$sql: cancelled");
	cmp_ok(time - $start, '<', 5, '... at once');
	$session->errors('ROLLBACK');
	ok(none_open(), '... and MongoDB has ended the transaction');
	$mongod->unblock_commands;
	is(stored(), '100|100|0', '... with all that it did');
	is($session->errors('BEGIN', 'UPDATE t SET a = 1 WHERE _id = 1', 'UPDATE t SET a = 0 WHERE _id = 1', 'COMMIT'), '', '... the next one');
}

# killed: MongoDB is told by the backend that goes
my $killed = MongoFdwTest::Session->new($node);
$killed->ask($_) foreach 'BEGIN', 'UPDATE t SET a = 1 WHERE _id = 1', 'DELETE FROM t WHERE _id = 2';
my $pid = $killed->pid;
$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
ok(none_open(), 'a session that is terminated ends the transaction');
is(stored(), '100|100|0', '... with all that it did');

# -------------------------------- what stays as it was ----------------------------

like($session->errors('BEGIN', 'UPDATE t SET a = 1 WHERE _id = 1', 'UPDATE t SET a = 1 WHERE _id = 2', q{PREPARE TRANSACTION 'x'}),
	qr/ERROR:  0A000: cannot PREPARE/, 'PREPARE TRANSACTION is refused');
$session->errors('ROLLBACK');
is(stored(), '100|100|0', '... and nothing is done');

# two transactions that want the same
my $other = MongoFdwTest::Session->new($node, '-v', 'VERBOSITY=verbose');
$session->errors('BEGIN', 'UPDATE t SET a = 1 WHERE _id = 1', 'UPDATE t SET a = 1 WHERE _id = 2');
$other->ask($_) foreach 'BEGIN', 'UPDATE t SET a = 3 WHERE _id = 3', 'UPDATE t SET a = 3 WHERE _id = 2';
like($other->{err}, qr/ERROR:  40001: could not update/, 'a write conflict in a second command');
$other->ask('ROLLBACK');
is($session->errors('COMMIT'), '', '... lets the other one commit');
is(stored(), '100|100|2', '... and it alone');
$other->close;
$session->errors('UPDATE t SET a = 0 WHERE a <> 0');

# compressed messages
create_server($node, 'compressed', $mongod, replica_set => 'rs', compressors => 'zlib');
$node->safe_psql('postgres', q{CREATE FOREIGN TABLE c (_id int, a int) SERVER compressed OPTIONS (database 'db', collection 't')});
is($session->errors('BEGIN', 'UPDATE c SET a = 1 WHERE _id = 1', 'UPDATE c SET a = 1 WHERE _id = 2', 'SELECT sum(a) FROM c', 'COMMIT'), '',
	'with compression');
is(stored(), '100|100|2', '... all is done');

$session->close;
done_testing();
