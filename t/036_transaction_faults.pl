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

# cancel
#	Cancel, or terminate, the backend that is at its COMMIT.
sub cancel
{
	my ($function) = @_;
	return $node->poll_query_until('postgres', "SELECT $function(pid) FROM pg_stat_activity "
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

# an error that is final: MongoDB, which here would keep the transaction open,
# is told to abort it
$mongod->fail_command(1, 2, 'commitTransaction');
($errors) = run("$write COMMIT;");
like($errors, qr/could not commit on server "mongodb"/, 'a commit that fails');
is_there('||', 'is nowhere');
$mongod->command('{"configureFailPoint": "failCommand", "mode": {"times": 1}, "data": {"failCommands": '
	  . '["commitTransaction"], "errorCode": 251, "errorLabels": ["TransientTransactionError"]}}');
($errors) = run("$write COMMIT;");
like($errors, qr/ERROR:  40001: could not commit/, 'one that fails for a while');
is_there('||', 'is nowhere');

# nobody knows: only a cancel ends the asking within the half minute
$mongod->fail_command(1000, 91, 'commitTransaction');
my $session = background_query($node, "$write COMMIT;");
cancel('pg_cancel_backend');
(undef, undef, $errors) = $session->finish;
like($errors, qr/ERROR:  08007: could not commit/, 'a cancel while the outcome is unknown: 08007');
$mongod->unblock_commands;
is_there('||', 'here nothing, and MongoDB was told to abort');

# a cancel during a commit is too late, whatever PostgreSQL has still to do
$mongod->block_commands(1000, 'commitTransaction');
foreach my $extra ('', 'CREATE TEMP TABLE x (i int) ON COMMIT DELETE ROWS; INSERT INTO x VALUES (1);',
	'NOTIFY somebody;')
{
	$session = background_query($node, "$write $extra COMMIT;");
	cancel('pg_cancel_backend');
	(undef, undef, $errors) = $session->finish;
	is($errors, '', "a cancel during a commit is too late" . ($extra ? " ($extra)" : ''));
	is_there('1||1', 'both sides have it');
}
$session = background_query($node, "$write COMMIT;");
cancel('pg_terminate_backend');
$session->finish;
$mongod->unblock_commands;
is_there('1||1', 'terminated during a commit: both sides have it');

# after such an error libmongoc must look anew whether there are transactions
$mongod->fail_command(1, 10107, 'insert');
($errors) = run('INSERT INTO t_mongodb VALUES (1); BEGIN; INSERT INTO t_mongodb VALUES (2); ROLLBACK;'
	  . 'INSERT INTO t_second VALUES (3);');
like($errors, qr/^[^\n]*ERROR:  40001: could not insert(?!.*WARNING)/s, 'a server that was no primary for a moment');
is_there('|3|', 'the next transaction is one');

# one server that cannot commit keeps the other from committing
($errors) = run('BEGIN; INSERT INTO t_mongodb VALUES (1); SAVEPOINT s; INSERT INTO t_second VALUES (1);'
	  . 'ROLLBACK TO s; INSERT INTO local VALUES (1); COMMIT;');
like($errors, qr/0A000: cannot commit what was written to server "second"/, 'two servers, one cannot commit');
is_there('||', 'nothing is anywhere');
($errors) = run('BEGIN; INSERT INTO t_mongodb VALUES (1); INSERT INTO t_second VALUES (2); COMMIT;');
is($errors, '', 'two servers');
is_there('1|2|', 'both have it');

# what is cancelled under a savepoint cannot be continued, and says so at once
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
	like($errors, qr/57014: canceling.*0A000: cannot commit/s, "a cancelled $command under a savepoint");
	cmp_ok($seconds, '<', 15, 'is not asked about for half a minute');
	is_there('||', 'nothing is anywhere');
}

done_testing();
