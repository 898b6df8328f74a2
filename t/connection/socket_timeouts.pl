# One limit, socket_timeout_ms, for every wait for a server that sends nothing; no
# limit without it; and TCP's own ways of noticing that a server has vanished.

use strict;
use warnings;

use MongoFdwTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $TIMEOUT = 400;		# milliseconds
my $LONG = 3000;		# what a statement must not come near to, on a busy machine

my $node = new_postgres('socket_timeouts');
my $set = MongoFdwTest::ReplicaSet->new(1);
my ($member) = $set->members;
my $mongod = MongoFdwTest::Mongod->new;

sub tables
{
	my ($name, $server, %options) = @_;

	create_server($node, $name, $server, %options);
	$node->safe_psql('postgres', qq{
		CREATE SCHEMA $name;
		CREATE FOREIGN TABLE $name.t (_id int, id int, info text) SERVER $name OPTIONS (database 'db', collection 't');
		CREATE FOREIGN TABLE $name.u (_id int, id int, info text) SERVER $name OPTIONS (database 'db', collection 't');
	});
}

$_->fill('db', 't', 100, 0) foreach $mongod, $member;
tables('alone', $mongod, socket_timeout_ms => $TIMEOUT);
tables('with_transactions', $member, socket_timeout_ms => $TIMEOUT);
tables('off', $member, socket_timeout_ms => $TIMEOUT, transactions => 'off');
tables('by_uri', $mongod, address => undef, port => undef,
	uri => 'mongodb://127.0.0.1:' . $mongod->port . "/?socketTimeoutMS=$TIMEOUT", socket_timeout_ms => 60_000);
tables('no_limit', $mongod);
tables('zero_in_uri', $mongod, address => undef, port => undef,
	uri => 'mongodb://127.0.0.1:' . $mongod->port . '/?socketTimeoutMS=0', socket_timeout_ms => $TIMEOUT);

# ------------------------------- the limit ------------------------------------

my %paths = (
	'a read' => [ '', 'SELECT info FROM %s.t WHERE _id = 7' ],
	'a read in REPEATABLE READ' => [ 'BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT info FROM %s.t WHERE _id = 7' ],
	'a read after a write' => [ 'BEGIN; UPDATE %s.t SET id = 7 WHERE _id = 7', 'SELECT info FROM %s.t WHERE _id = 7' ],
	'an asynchronous Append' =>
	  [ '', 'SELECT count(info) FROM (SELECT info FROM %s.t UNION ALL SELECT info FROM %1$s.u) a' ],
	'mongo_command()' => [ '', 'SELECT mongo_command(\'%s\', \'db\', \'{"count": "t", "query": {}}\'::json)' ],
	'UPDATE as one command' => [ '', 'UPDATE %s.t SET info = \'x\' WHERE _id = 1' ],
	'UPDATE in batches' => [ '', 'UPDATE %s.t SET info = info || random() WHERE _id = 1' ],
	'UPDATE with RETURNING' => [ '', 'UPDATE %s.t SET info = \'y\' WHERE _id = 1 RETURNING info' ],
	'INSERT' => [ '', 'INSERT INTO %s.t VALUES (1000)' ],
	'DELETE' => [ '', 'DELETE FROM %s.t WHERE _id = 99' ]);

# stop
#	Returns when the server stands still.
sub stop
{
	my ($server) = @_;

	kill 'STOP', $server->{pid};
	sleep 0.01 until slurp_file("/proc/$server->{pid}/status") =~ /^State:\s+T/m;
}

# fails_in_time
#	Does a statement fail within the limit when the server is silent, and does the
#	session go on?  It is stopped, or only busy with what it was sent.
sub fails_in_time
{
	my ($schema, $server, $path, $busy) = @_;
	my ($before, $statement) = map { sprintf $_, $schema } @{ $paths{$path} };
	my $session = MongoFdwTest::Session->new($node, '-v', 'VERBOSITY=verbose');
	my $name = "$schema, $path";

	$session->ask("SELECT count(*) FROM $schema.t");
	$session->ask($_) foreach grep { $_ ne '' } split /; /, $before;
	$busy ? $server->block_commands(2 * $TIMEOUT, qw(find aggregate insert update)) : stop($server);
	my $since = time;
	my $answer = $session->ask($statement);
	my $took = 1000 * (time - $since);
	$busy ? $server->unblock_commands : kill 'CONT', $server->{pid};
	like($answer, qr/ERROR:  08006: server "$schema" did not answer in time\n/, "$name: 08006");
	like($answer, qr/Nothing was received for $TIMEOUT milliseconds/, "$name: what the limit is");
	cmp_ok($took, '>', $TIMEOUT - 10, "$name: not before");
	cmp_ok($took, '<', $LONG, "$name: not long after");
	$session->ask('ROLLBACK');
	is($session->ask("SELECT count(*) FROM $schema.t WHERE _id = 5"), 1, "$name: the session goes on");
	$session->close;
}

fails_in_time('alone', $mongod, $_) foreach grep { !/REPEATABLE/ } sort keys %paths;
fails_in_time('by_uri', $mongod, $_) foreach 'a read', 'UPDATE as one command';
fails_in_time('with_transactions', $member, $_, 'busy')
  foreach 'a read', 'a read in REPEATABLE READ', 'a read after a write', 'INSERT', 'UPDATE as one command';
fails_in_time('off', $member, $_) foreach 'INSERT', 'UPDATE as one command';

# ------------------------------ without a limit -------------------------------

# As the system calls show it: no wait of a backend's ends by itself, neither our
# own nor libmongoc's.
SKIP:
{
	skip 'strace cannot attach', 4 if system('strace -o /dev/null true 2>/dev/null') != 0;

	foreach my $schema ('no_limit', 'zero_in_uri')
	{
		foreach my $path ('a read', 'UPDATE as one command')
		{
			my $session = MongoFdwTest::Session->new($node);
			my $trace = PostgreSQL::Test::Utils::tempdir() . '/trace';
			my $statement = sprintf $paths{$path}[1], $schema;

			$session->ask($statement);
			my $strace = IPC::Run::start([ 'strace', '-e', 'trace=epoll_wait,poll,ppoll', '-o', $trace, '-p', $session->pid ],
				'>', \my $output, '2>&1', IPC::Run::timeout(60));
			$strace->pump until $output =~ /attached|Operation not permitted/;
			$mongod->block_commands(300, 'find', 'update');
			$session->ask($statement);
			$mongod->unblock_commands;
			$strace->signal('INT');
			eval { $strace->finish };
			my @limited = grep { /^\w+\(.*, (\d+)(?:, NULL, \d+)?\) = / && $1 > 0 } split /\n/, slurp_file($trace);
			# but that after which a write is asked whether it waits for a document
			@limited = grep { !/, 10000\) = 1/ } @limited if $path ne 'a read';
			is_deeply(\@limited, [], "$schema, $path: no wait has an end");
			$session->close;
		}
	}
}

# ------------------------- a server that has vanished -------------------------

# keepalive_timers
#	Seconds to the next probe on each connection to a port, as the kernel has it.
sub keepalive_timers
{
	my ($port) = @_;
	my $remote = sprintf '%04X', $port;

	# sl local rem st queues tr:tm->when; timer 2 is keepalive, in 1/100 s
	return map { /^ *\d+: \S+ \w+:$remote 01 \S+ (\w\w):(\w+) / ? (hex($1) == 2 ? hex($2) / 100 : 1e9) : () }
	  split /\n/, slurp_file('/proc/net/tcp');
}

SKIP:
{
	skip 'there is no /proc/net/tcp', 2 unless -r '/proc/net/tcp';

	tables('probing', $mongod, keepalives_idle => 7);
	foreach my $case ([ 'no_limit', 60 ], [ 'probing', 7 ])
	{
		my ($schema, $seconds) = @$case;
		my $silent = MongoFdwTest::Mongod->new;

		$node->safe_psql('postgres', "ALTER SERVER $schema OPTIONS (SET port '" . $silent->port . '\')');
		my $session = MongoFdwTest::Session->new($node);
		$session->ask("SELECT count(*) FROM $schema.t");
		sleep 0.2;
		my @timers = keepalive_timers($silent->port);
		my @ours = grep { $_ <= $seconds } @timers;
		cmp_ok(scalar @ours, '>', 0, "$schema: a silent server is asked after $seconds seconds") or diag("@timers");
		$session->close;
	}
}

# A server that takes nothing any more, while there is something to be sent.
tables('stuck', $mongod, tcp_user_timeout => 1000);
my $session = MongoFdwTest::Session->new($node, '-v', 'VERBOSITY=verbose');
$session->ask('SELECT count(*) FROM stuck.t');
stop($mongod);
my $since = time;
my $answer = $session->ask('INSERT INTO stuck.t SELECT i, i, repeat(\'x\', 10000) FROM generate_series(2000, 3500) i');
my $took = time - $since;
kill 'CONT', $mongod->{pid};
like($answer, qr/ERROR:  08006: /, 'tcp_user_timeout: a server that takes nothing is given up');
cmp_ok($took, '<', 30, 'tcp_user_timeout: soon') or diag($answer);
$session->close;

# One that is busy, and silent for that.
$session = MongoFdwTest::Session->new($node, '-v', 'VERBOSITY=verbose');
$session->ask('SELECT count(*) FROM alone.t');
$mongod->block_commands(2 * $TIMEOUT, 'find');
like($session->ask('SELECT info FROM alone.t WHERE _id = 7'), qr/ERROR:  08006: server "alone" did not answer in time/,
	'a server that is busy');
$mongod->unblock_commands;
is($session->ask('SELECT count(*) FROM alone.t WHERE _id = 7'), 1, 'a server that is busy no more');
$session->close;

done_testing();
