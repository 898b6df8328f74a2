# Transactions on a replica set whose server answers late, not at all, or with
# errors, at the moments that matter.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $set = MongoFdwTest::ReplicaSet->new(1);
my $mongod = $set->primary;
my $node = new_postgres('faults');
my $uri = 'mongodb://127.0.0.1:' . $mongod->port . '/?replicaSet=rs';

# two servers, to the same replica set
foreach my $server ('mongodb', 'second')
{
	create_server($node, $server, $mongod, address => undef, port => undef, uri => $uri,
		server_selection_timeout_ms => 5000);
	$node->safe_psql('postgres', "CREATE FOREIGN TABLE t_$server (_id int, v int) SERVER $server "
		  . "OPTIONS (database 'db', collection '$server')");
	$mongod->command("{\"create\": \"$server\"}", 'db');
}
$node->safe_psql('postgres', 'CREATE TABLE local (id int)');

my $all = q{SELECT (SELECT string_agg(_id::text, ' ' ORDER BY _id) FROM t_mongodb),
	(SELECT string_agg(_id::text, ' ' ORDER BY _id) FROM t_second),
	(SELECT string_agg(id::text, ' ' ORDER BY id) FROM local)};

# is_there
#	What the three tables hold; then they are emptied.
sub is_there
{
	my ($expected, $name) = @_;
	is($node->safe_psql('postgres', $all), $expected, $name);
	$node->safe_psql('postgres', 'DELETE FROM t_mongodb; DELETE FROM t_second; DELETE FROM local');
}

# run
#	What psql says to a script, and the seconds it took.
sub run
{
	my ($sql) = @_;
	my $start = time;
	my ($status, $stdout, $stderr) = background_query($node, $sql)->finish;
	return ($stderr, time - $start, $stdout);
}

# wait_for_failures
#	Until so many commands have come to the failpoint since it was set.
sub wait_for_failures
{
	my ($set, $count) = @_;
	my $reached = $set->{count} + $count;
	return $mongod->command("{\"waitForFailPoint\": \"failCommand\", \"timesEntered\": $reached, \"maxTimeMS\": 20000}");
}

# is_aborted
#	Does MongoDB end all transactions within some seconds?
sub is_aborted
{
	my $end = time + 20;
	my $open;
	do
	{
		$open = $mongod->command('{"serverStatus": 1}')->{transactions}{currentOpen};
		sleep 0.05;
	} until $open == 0 || time > $end;
	return $open == 0;
}

# cancel
#	Cancel, or terminate, the backend that is at its COMMIT.
sub cancel
{
	my ($function) = @_;
	return $node->safe_psql('postgres', "SELECT $function(pid) FROM pg_stat_activity "
		  . "WHERE query LIKE 'COMMIT%' AND state = 'active' AND pid <> pg_backend_pid()");
}

my $write = 'BEGIN; INSERT INTO t_mongodb VALUES (1); INSERT INTO local VALUES (1);';
my ($errors, $seconds);

# commitTransaction is asked again: once by libmongoc, then by us
$mongod->fail_command(3, 91, 'commitTransaction');
($errors) = run("$write COMMIT;");
is($errors, '', 'a commit that fails three times with a retryable error');
is_there('1||1', 'is there once');

# it did commit, and the answer was lost
$mongod->command('{"configureFailPoint": "failCommand", "mode": {"times": 2}, "data": {"failCommands": '
	  . '["commitTransaction"], "writeConcernError": {"code": 91, "errmsg": "shutting down"}}}');
($errors) = run("$write COMMIT;");
is($errors, '', 'a commit that was made, but answered with a retryable write concern error');
is_there('1||1', 'is there once');

# an error that says nothing about it
$mongod->fail_command(1, 2, 'commitTransaction');
($errors) = run("$write COMMIT;");
is($errors, '', 'a commit that fails once with an error that says nothing of the outcome');
is_there('1||1', 'is there once');

# an error that is final: MongoDB, which here would keep the transaction open,
# is told to abort it
$mongod->fail_command(1, 13, 'commitTransaction');
($errors) = run("$write COMMIT;");
like($errors, qr/42501: could not commit on server "mongodb"/, 'a commit that is refused');
is_there('||', 'is nowhere');
foreach my $case ([ 1, '', qr/^$/, '1||1' ],
	[ 1, 'INSERT INTO t_mongodb VALUES (2);', qr/ERROR:  40001: could not commit/, '||' ],
	[ 1000, "SET lock_timeout = '200ms';", qr/ERROR:  40001: could not commit/, '||' ])
{
	my ($times, $more, $expected, $rows) = @$case;

	$mongod->command(qq({"configureFailPoint": "failCommand", "mode": {"times": $times}, "data": {"failCommands": )
		  . '["commitTransaction"], "errorCode": 251, "errorLabels": ["TransientTransactionError"]}}');
	($errors) = run("$write $more COMMIT;");
	like($errors, $expected, "one that fails for a while, $times times, after an insert; $more");
	$mongod->command('{"configureFailPoint": "failCommand", "mode": "off"}');
	is_there($rows, '... is there only if it was repeated');
}

# sessions that create one collection at once, which MongoDB reports at the commit only
my $script = PostgreSQL::Test::Utils::tempdir . '/create.sql';
PostgreSQL::Test::Utils::append_to_file($script, 'INSERT INTO created VALUES (:client_id)');
foreach my $round (1 .. 3)
{
	$node->safe_psql('postgres', "DROP FOREIGN TABLE IF EXISTS created;
		CREATE FOREIGN TABLE created (_id int) SERVER mongodb OPTIONS (database 'db', collection 'created$round')");
	$node->command_ok([ 'pgbench', '-n', '-c', 20, '-t', 1, '-f', $script, 'postgres' ], 'sessions that create a collection');
	is($node->safe_psql('postgres', 'SELECT count(*) FROM created'), 20, '... have all inserted their row');
}

# nobody knows: only a cancel ends the asking within the half minute; after every other
# answer libmongoc takes the server for gone
foreach my $failures (1, 2)
{
	my $failpoint = $mongod->fail_command(1000, 91, 'commitTransaction');
	my $session = background_query($node, "$write COMMIT;");
	wait_for_failures($failpoint, $failures);
	cancel('pg_cancel_backend');
	(undef, undef, $errors) = $session->finish;
	# libmongoc may have taken the server for gone just then, of which the session warns
	my $untold = $failures == 2 && $errors =~ s/\S*WARNING:  01000: could not tell server "mongodb" to abort.*//s;
	like($errors, qr/ERROR:  08007: could not commit(?!.*WARNING)/s,
		"a cancel while the outcome is unknown, asked $failures times: 08007");
	$mongod->command('{"killAllSessions": []}') if $untold;
	ok(is_aborted(), '... and MongoDB was told to abort');
	$mongod->unblock_commands;
	is_there('||', '... so nothing is there');
}

# a cancel during a commit does not wait for it, nor does a termination; MongoDB
# goes on with what it was told, or aborts as it is told then
foreach my $function ('pg_cancel_backend', 'pg_terminate_backend')
{
	my $failpoint = $mongod->block_commands(1000, 'commitTransaction');
	my $asked = background_query($node, "$write COMMIT;");
	wait_for_failures($failpoint, 1);
	cancel($function);
	my $start = time;
	(undef, undef, $errors) = $asked->finish;
	like($errors, qr/ERROR:  08007: could not commit.*PostgreSQL rolls back/s, "$function during a commit: 08007");
	cmp_ok(time - $start, '<', 0.9, '... at once');
	is($node->safe_psql('postgres', 'SELECT count(*) FROM local'), 0, '... and PostgreSQL has rolled back');
	ok(is_aborted(), '... and MongoDB ends the transaction');
	$node->safe_psql('postgres', 'DELETE FROM t_mongodb');
}
$mongod->unblock_commands;

# the first command of a transaction, after which nothing is lost, is sent again
my $transient = '{"configureFailPoint": "failCommand", "mode": {"times": 3}, "data": '
  . '{"failCommands": ["%s"], "errorCode": %d, "errorLabels": ["TransientTransactionError"]}}';
foreach my $code (10107, 11602, 91, 24, 246)
{
	$mongod->command(sprintf $transient, 'insert', $code);
	($errors) = run('INSERT INTO t_mongodb VALUES (1); BEGIN; INSERT INTO t_mongodb VALUES (2); ROLLBACK;'
		  . 'INSERT INTO t_second VALUES (3);');
	is($errors, '', "an insert that fails for a moment, $code");
	is_there('1|3|', 'is done');
	$mongod->command(sprintf $transient, 'find', $code);
	($errors) = run('INSERT INTO t_mongodb VALUES (1), (2); UPDATE t_mongodb SET v = random() WHERE _id = 1;'
		  . 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(v) FROM t_mongodb; COMMIT');
	is($errors, '', "... and reads");
	$mongod->command(sprintf $transient, 'findAndModify', $code);
	($errors) = run('DELETE FROM t_mongodb WHERE _id = 1 RETURNING _id');
	is($errors, '', "... and findAndModify");
	is_there('2||', 'are done');
}
$mongod->command(sprintf $transient, 'insert', 10107);
($errors) = run("SELECT 1; BEGIN; UPDATE t_second SET v = 1; INSERT INTO t_second VALUES (3);");
like($errors, qr/^[^\n]*ERROR:  40001: could not insert(?!.*WARNING)/s, 'a later command is not');
$mongod->unblock_commands;
$mongod->command(sprintf $transient, 'insert', 24);
($errors, $seconds) = run("SET lock_timeout = '10ms'; INSERT INTO t_second VALUES (3);");
like($errors, qr/^[^\n]*ERROR:  40001: could not insert/s, 'nor for longer than lock_timeout');
$mongod->unblock_commands;
is_there('||', 'nothing is anywhere');

# one server that cannot commit keeps the other from committing
($errors) = run('BEGIN; INSERT INTO t_mongodb VALUES (1); SAVEPOINT s; INSERT INTO t_second VALUES (1);'
	  . 'ROLLBACK TO s; INSERT INTO local VALUES (1); COMMIT;');
like($errors, qr/0A000: cannot commit what was written to server "second"/, 'two servers, one cannot commit');
is_there('||', 'nothing is anywhere');
($errors) = run('BEGIN; INSERT INTO t_mongodb VALUES (1); INSERT INTO t_second VALUES (2); COMMIT;');
is($errors, '', 'two servers');
is_there('1|2|', 'both have it');

# ... but what one has committed stays when the other fails
my $fail_second = '{"configureFailPoint": "failCommand", "mode": {"skip": 1}, "data": {"failCommands": '
  . '["commitTransaction"], "errorCode": 251, "errorLabels": ["TransientTransactionError"]}}';
$mongod->command($fail_second);
($errors) = run('BEGIN; INSERT INTO t_mongodb VALUES (1); INSERT INTO t_second VALUES (2); INSERT INTO local VALUES (3); COMMIT;');
like($errors, qr/ERROR:  08007: could not commit on server "second".*server "mongodb" has been committed before and stays/s,
	'two servers, of which the second fails: 08007');
$mongod->unblock_commands;
is_there('1||', 'what the first has stays');
$mongod->command($fail_second);
($errors) = run("BEGIN; INSERT INTO t_mongodb VALUES (1); INSERT INTO t_second VALUES (2); COMMIT; SET statement_timeout = '200ms'; SELECT pg_sleep(3)");
like($errors, qr/ERROR:  08007.*ERROR:  57014/s, 'and the session can be cancelled');
$mongod->unblock_commands;
is_there('1||', 'the same');

# a user mapping made anew does not make it two transactions
$mongod->command($fail_second);
($errors) = run('BEGIN; INSERT INTO t_mongodb VALUES (1); DROP USER MAPPING FOR CURRENT_USER SERVER mongodb; '
	  . 'CREATE USER MAPPING FOR CURRENT_USER SERVER mongodb; INSERT INTO t_mongodb VALUES (2); UPDATE t_mongodb SET v = 1 WHERE _id = 1; COMMIT;');
is($errors, '', 'a user mapping that is dropped and made again in a transaction');
$mongod->unblock_commands;
is_there('1 2||', 'all is there, by one commit');

# nothing was written: COMMIT is no error, whatever became of MongoDB's transaction,
# but what is read afterwards would be of another snapshot
$node->safe_psql('postgres', "CREATE FOREIGN TABLE t_other (_id int) SERVER second OPTIONS (database 'db', collection 'other')");
my $reads = 'BEGIN ISOLATION LEVEL REPEATABLE READ; INSERT INTO local VALUES (1); SELECT count(*) FROM t_second; SAVEPOINT s; ';
my $fail_other = '{"configureFailPoint": "failCommand", "mode": {"times": 1}, "data": '
  . '{"failCommands": ["aggregate", "find"], "namespace": "db.other", "errorCode": 96}}';
$mongod->command($fail_other);
($errors) = run("$reads SELECT * FROM t_other; ROLLBACK TO s; COMMIT;");
like($errors, qr/^[^\n]*could not read collection(?!.*ERROR.*ERROR)/s, 'a read that failed under a savepoint');
is_there('||1', '... is no error of COMMIT');
$mongod->command($fail_other);
($errors) = run("$reads SELECT * FROM t_other; ROLLBACK TO s; SELECT * FROM t_second; COMMIT;");
like($errors, qr/0A000: server "second" cannot be used.*MongoDB ends a transaction, and its snapshot/s, '... but of the next read');
is_there('||', '... with which all is rolled back');
$mongod->command('{"setParameter": 1, "transactionLifetimeLimitSeconds": 1}');
($errors) = run("$reads SELECT pg_sleep(3); COMMIT;");
is($errors, '', 'a transaction that is older than MongoDB allows, and only read, is no error of COMMIT');
is_there('||1', '... so the rest is there');
($errors) = run("$reads SELECT pg_sleep(3); SELECT * FROM t_second; COMMIT;");
like($errors, qr/40001: could not read collection.*HINT:  Retry the transaction/s, '... but of the next read');
($errors) = run("$write INSERT INTO t_mongodb VALUES (2); SELECT pg_sleep(3); COMMIT;");
like($errors, qr/40001: could not commit on server "mongodb"/, '... and of COMMIT where more than one insert was sent');
is_there('||', '... with which all is rolled back');
$mongod->command('{"setParameter": 1, "transactionLifetimeLimitSeconds": 60}');

# too large a transaction
$mongod->fail_command(1, 388, 'insert');
($errors) = run($write);
like($errors, qr/54000: could not insert.*HINT:  MongoDB holds what a transaction has written/s, 'a transaction too large for the cache');
$mongod->fail_command(1, 257, 'commitTransaction');
($errors) = run("$write COMMIT;");
like($errors, qr/54000: could not commit/, 'a transaction too large to be committed');
is_there('||', 'is nowhere');

# what is written and cancelled under a savepoint cannot be continued, and says so at once
foreach my $command ('find', 'insert')
{
	my $statement = $command eq 'find' ? 'SELECT * FROM t_mongodb' : 'INSERT INTO t_mongodb VALUES (1)';
	$mongod->command('{"configureFailPoint": "failCommand", "mode": "alwaysOn", "data": {"failCommands": '
		  . "[\"$command\"], \"namespace\": \"db.mongodb\", \"blockConnection\": true, \"blockTimeMS\": 2000}}");
	($errors, $seconds) = run(
		'BEGIN ISOLATION LEVEL REPEATABLE READ; INSERT INTO t_second VALUES (1); '
		  . 'SAVEPOINT s; SET LOCAL statement_timeout = 300; '
		  . "$statement; ROLLBACK TO s; INSERT INTO local VALUES (1); COMMIT;");
	$mongod->unblock_commands;
	cmp_ok($seconds, '<', 15, "a cancelled $command under a savepoint is not asked about for half a minute");
	if ($command eq 'find')
	{
		unlike($errors, qr/cannot commit/, '... and ends nothing where nothing was written');
		is_there('|1|1', '... so the rest is there');
	}
	else
	{
		like($errors, qr/57014: canceling.*0A000: cannot commit/s, '... but ends what was written');
		is_there('||', '... so nothing is anywhere');
	}
}

done_testing();
