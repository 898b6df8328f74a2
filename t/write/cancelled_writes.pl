# A write without a MongoDB transaction that is given up is ended in MongoDB as
# well, and a WARNING says what is known of it.  Reads end by themselves.

use strict;
use warnings;

use MongoFdwTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $COUNT = 100_000;
my $LIMIT = 1500;		# milliseconds from the interrupt to the end, on a busy machine
my $ENDED = qr/MongoDB has ended a command that may have changed/;
my $RUNNING = qr/MongoDB may still be running a command that may have changed/;

my $node = new_postgres('cancelled_writes', 'client_connection_check_interval = 100');

# servers
#	A foreign server with its tables: things holds $COUNT documents {_id, id,
#	info}, new_things none.
sub servers
{
	my ($name, $mongod, %options) = @_;

	create_server($node, $name, $mongod, batch_size => 100_000, %options);
	$mongod->fill('db', 'things', $COUNT, 0);
	$node->safe_psql('postgres', qq{
		CREATE SCHEMA $name;
		CREATE FOREIGN TABLE $name.things (_id int, id int, info text, n int) SERVER $name
			OPTIONS (database 'db', collection 'things');
		CREATE FOREIGN TABLE $name.new_things (_id int, id int) SERVER $name
			OPTIONS (database 'db', collection 'new_things');
	});
}

sub number_of
{
	my ($mongod, $collection, $filter) = @_;
	return $mongod->command("{\"count\": \"$collection\", \"query\": $filter}", 'db')->{n};
}

# running
#	Operations of ours that MongoDB is at.
sub running
{
	my ($mongod, $filter) = @_;
	return @{ $mongod->command("{\"currentOp\": 1, \"appName\": \"mongo_fdw\", \"active\": true, $filter}")->{inprog} };
}

sub wait_until_running
{
	my ($mongod, $filter) = @_;
	my $deadline = time + 60;

	until (running($mongod, $filter))
	{
		die "nothing runs with $filter" if time > $deadline;
		sleep 0.005;
	}
}

# given_up
#	Start a write, interrupt it once it runs in MongoDB, and return what psql says
#	and how many documents were changed.
#
#	collection, filter	finds those that the write has changed
#	whole				how many it would change
#	op					what currentOp calls it
#	ready				waits for more than that it runs
#	interrupt			is given the backend's process id
sub given_up
{
	my ($name, $mongod, $sql, %how) = @_;
	my $interrupt = $how{interrupt} // sub { $node->safe_psql('postgres', "SELECT pg_cancel_backend($_[0])") };
	my $write = background_query($node, "SET application_name = 'the_write'; $sql;");

	wait_until_running($mongod, "\"op\": \"$how{op}\", \"ns\": \"db.$how{collection}\"");
	my $pid = $node->safe_psql('postgres', 'SELECT pid FROM pg_stat_activity WHERE application_name = \'the_write\'');
	$how{ready}->() if $how{ready};
	my $since = time;
	$interrupt->($pid, $write);
	$node->poll_query_until('postgres',
		"SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $pid AND state = 'active')")
	  or die "$name: the backend does not end";
	cmp_ok(1000 * (time - $since), '<', $LIMIT, "$name: ends within $LIMIT ms");
	my (undef, undef, $stderr) = $write->finish;

	return $stderr if $how{goes_on};
	my $changed = number_of($mongod, $how{collection}, $how{filter});
	is(scalar running($mongod, "\"op\": \"$how{op}\""), 0, "$name: nothing runs in MongoDB any more");
	sleep 0.3;
	is(number_of($mongod, $how{collection}, $how{filter}), $changed, "$name: no more documents change");
	cmp_ok($changed, '<', $how{whole} // $COUNT, "$name: it has not come to its end");
	return ($stderr, $changed);
}

sub warns_like
{
	my ($stderr, $name, $detail) = @_;
	like($stderr, qr/WARNING:  (01000: )?changes on server "\w+" were not rolled back\nDETAIL:  .*$detail/, "$name: the WARNING");
}

# ------------------------------ a standalone server ---------------------------

my $mongod = MongoFdwTest::Mongod->new;
servers('alone', $mongod);

# An ordinary write sends one command, and what is kept for the case of need costs
# no connection.
$node->safe_psql('postgres', 'SELECT count(*) FROM alone.things');
$mongod->snapshot;
$node->safe_psql('postgres', join('; ', map { "UPDATE alone.things SET n = $_ WHERE _id = 1" } 1 .. 10));
my $sent = $mongod->changes;
is($sent->{commands}{update}, 10, 'an ordinary write is one command');
is_deeply([ grep { !/^(update|hello|isMaster|endSessions)$/i } keys %{ $sent->{commands} } ], [], '... and no other');
is($sent->{connections}, 1, '... on one connection');

my $DIRECT = 'UPDATE alone.things SET n = 1';
my %direct = (collection => 'things', filter => '{"n": 1}', op => 'update');

my ($stderr, $changed) = given_up('UPDATE as one command', $mongod, $DIRECT, %direct);
like($stderr, qr/ERROR:  57014: canceling statement due to user request/, '... the error is PostgreSQL\'s own');
warns_like($stderr, '...', qr/$ENDED any number of documents/);
unlike($stderr, qr/HINT/, '... without advice where none is needed');

# 57014 at once, and the next statement in the session works
my ($status, $stdout);
($status, $stdout, $stderr) = $node->psql('postgres',
	'SET statement_timeout = 200; UPDATE alone.things SET n = 2; SET statement_timeout = 0; '
	  . 'SELECT count(*) FROM alone.things WHERE n = 2; SELECT pg_sleep(0.3); '
	  . 'SELECT count(*) FROM alone.things WHERE n = 2;',
	on_error_stop => 0);
like($stderr, qr/canceling statement due to statement timeout/, 'statement_timeout');
warns_like($stderr, 'statement_timeout', $ENDED);
my ($before, $after) = $stdout =~ /(\d+)\s+(\d+)/;
is($after, $before, 'statement_timeout: no more documents change');
cmp_ok($before, '<', $COUNT, 'statement_timeout: it has not come to its end');

# Rows computed in PostgreSQL, written in batches.
($stderr) = given_up('UPDATE in batches', $mongod, 'UPDATE alone.things SET n = 3 + 0 * length(info || random())',
	%direct, filter => '{"n": 3}');
warns_like($stderr, '...', qr/$ENDED up to 100000 documents/);

# Of the first batch it is known that it is written.
($stderr, $changed) = given_up('INSERT', $mongod, 'INSERT INTO alone.new_things SELECT i, i FROM generate_series(1, 400000) i',
	collection => 'new_things', filter => '{}', op => 'insert', whole => 400_000,
	ready => sub { sleep 0.01 until number_of($mongod, 'new_things', '{}') > 105_000 });
# Between two batches there is nothing in doubt.
my ($certain, $doubtful) = $stderr =~ /DETAIL:  (\d00000) documents had been written in this transaction\. ($ENDED up to 100000 documents)?/;
cmp_ok($certain // 0, '>=', 100_000, 'INSERT: the WARNING tells the batches before') or diag($stderr);
cmp_ok($changed, '>=', $certain, '... which are there');
cmp_ok($changed, '<=', $certain + ($doubtful ? 100_000 : 0), '... and no more than the one that was broken off');


($stderr) = given_up('pg_terminate_backend', $mongod, 'UPDATE alone.things SET n = 4', %direct,
	filter => '{"n": 4}',
	interrupt => sub { $node->safe_psql('postgres', "SELECT pg_terminate_backend($_[0])") });
like($stderr, qr/terminating connection due to administrator command/, '... FATAL as ever');
like(slurp_file($node->logfile), qr/FATAL:  terminating connection.*?WARNING:  changes on server "alone" were not rolled back.*?$ENDED/s,
	'... and the log has the WARNING');

# A client that is gone has its backend ended, where PostgreSQL looks for it.
given_up('a client that is gone', $mongod, 'UPDATE alone.things SET n = 7', %direct, filter => '{"n": 7}',
	interrupt => sub { $_[1]{harness}->signal('KILL') });

foreach my $case ([ 'DELETE', 'DELETE FROM alone.things' ], [ 'TRUNCATE', 'TRUNCATE alone.things' ])
{
	my ($name, $sql) = @$case;
	my $there = number_of($mongod, 'things', '{}');

	($stderr) = given_up($name, $mongod, $sql, collection => 'things', filter => '{}', op => 'remove',
		whole => $there);
	warns_like($stderr, $name, qr/$ENDED any number of documents/);
	cmp_ok(number_of($mongod, 'things', '{}'), '>', 0, "$name: some documents are left");
}

# ------------------------------ SQL functions ---------------------------------

$mongod->fill('db', 'things', $COUNT, 0);
($stderr) = given_up('mongo_command()', $mongod,
	'SELECT mongo_command(\'alone\', \'db\', \'{"update": "things", "updates": [{"q": {}, "u": {"$set": {"n": 6}}, "multi": true}]}\'::json)',
	%direct, filter => '{"n": 6}');
like($stderr, qr/WARNING:  01000: changes on server "alone" were not rolled back\nDETAIL:  MongoDB has ended a command that may have changed any number of documents\./,
	'... the WARNING');
($stderr) = given_up('mongo_aggregate() with $merge', $mongod,
	'SELECT mongo_aggregate(\'alone\', \'db\', \'things\', \'[{"$merge": "merged"}]\'::json)',
	collection => 'merged', filter => '{}', op => 'update');
like($stderr, qr/WARNING:  01000: changes on server "alone" were not rolled back\nDETAIL:  MongoDB has ended a command that may have changed any number of documents\./,
	'... the WARNING');

# ------------------------------ reads end by themselves -----------------------

# Minutes of work, of which MongoDB sees that nobody waits for it any more.
my $LONG = '{"$project": {"x": {"$range": [0, 2000]}}}, {"$unwind": "$x"}';

foreach my $case (
	[ 'aggregate', 'command', "[$LONG, {\"\$group\": {\"_id\": null, \"n\": {\"\$sum\": \"\$x\"}}}]" ],
	[ 'getMore', 'getmore', "[$LONG, {\"\$match\": {\"\$or\": [{\"_id\": {\"\$lt\": 10}}, {\"x\": -1}]}}]" ])
{
	my ($name, $op, $pipeline) = @$case;
	my $read = background_query($node, "SET application_name = 'the_read'; "
		  . "SELECT count(*) FROM mongo_aggregate('alone', 'db', 'things', '$pipeline'::json);");

	wait_until_running($mongod, "\"op\": \"$op\", \"microsecs_running\": {\"\$gt\": 200000}");
	$node->safe_psql('postgres',
		'SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = \'the_read\'');
	(undef, undef, $stderr) = $read->finish;
	like($stderr, qr/canceling statement/, "$name: cancelled");
	unlike($stderr, qr/WARNING/, "$name: without a warning");
	my $deadline = time + 10;
	sleep 0.05 while running($mongod, "\"op\": \"$op\"") && time < $deadline;
	is(scalar running($mongod, "\"op\": \"$op\""), 0, "$name: MongoDB interrupts what it reads");
}

# ------------------------------ without an answer -----------------------------

# A server that stands still is not waited for, and not said to have ended it.
$stderr = given_up('a server that stands still', $mongod, 'UPDATE alone.things SET n = 5', %direct,
	ready => sub { kill 'STOP', $mongod->{pid}; sleep 0.1 }, goes_on => 1);
kill 'CONT', $mongod->{pid};
warns_like($stderr, 'a server that stands still', qr/$RUNNING any number of documents/);
like($stderr, qr/HINT:  In MongoDB, currentOp shows/, '... with advice');

# The server is killed in the middle of an INSERT.
$node->safe_psql('postgres', 'TRUNCATE alone.new_things');
my $insert = background_query($node, 'INSERT INTO alone.new_things SELECT i, i FROM generate_series(1, 400000) i;');
sleep 0.01 until eval { number_of($mongod, 'new_things', '{}') } > 105_000;
$mongod->kill;
(undef, undef, $stderr) = $insert->finish;
like($stderr, qr/ERROR:  08006: could not insert into foreign table "new_things"\nDETAIL:  .*\nCONTEXT:  rows of this statement already written: 100000\n$RUNNING up to 100000 documents/,
	'a killed server: CONTEXT says what is known');
warns_like($stderr, 'a killed server', qr/100000 documents had been written/);

# ----------------------- passwords, sets, limits of time ----------------------

# Whoever may write may end what they write: no privilege is needed.
my $guarded = MongoFdwTest::Mongod->new(auth => 1);
$guarded->command('{"createUser": "writer", "pwd": "w", "roles": [{"role": "readWrite", "db": "db"}]}');
servers('guarded', $guarded, mapping => { username => 'writer', password => 'w' });
($stderr) = given_up('an ordinary user', $guarded, 'UPDATE guarded.things SET n = 1', %direct);
warns_like($stderr, 'an ordinary user', $ENDED);

# A replica set without transactions, where writes carry their number.
my $set = MongoFdwTest::ReplicaSet->new(1);
my ($member) = $set->members;
servers('off', $member, transactions => 'off');
($stderr) = given_up('transactions off', $member, 'UPDATE off.things SET n = 1', %direct);
warns_like($stderr, 'transactions off', $ENDED);

# With its limit of time for a silent server, too.
$node->safe_psql('postgres', 'ALTER SERVER guarded OPTIONS (ADD socket_timeout_ms \'300\')');
(undef, undef, $stderr) = $node->psql('postgres', '\set VERBOSITY verbose
	UPDATE guarded.things SET n = 2');
like($stderr, qr/ERROR:  08006: server "guarded" did not answer in time/, 'socket_timeout_ms: 08006');
warns_like($stderr, 'socket_timeout_ms', $ENDED);
$changed = number_of($guarded, 'things', '{"n": 2}');
sleep 0.3;
is(number_of($guarded, 'things', '{"n": 2}'), $changed, 'socket_timeout_ms: no more documents change');

done_testing();
