# A point query is one send, one wait and one receive between the backend and
# MongoDB, and so is an INSERT of a row: what strace sees of a backend meanwhile.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $COUNT = 200;

plan skip_all => 'sanitizers make system calls of their own' if sanitized();
plan skip_all => 'there is no strace here' if system('strace -V >/dev/null 2>&1') != 0;

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('system_calls');
create_server($node, 'mongodb', $mongod);
create_point_table($node, 'mongodb', $mongod, 1000);

# traced
#	The system calls of a session's backend while it runs this SQL, as strace
#	-yy writes them: sendmsg(12<TCP:[...]>, ...
sub traced
{
	my ($session, $sql) = @_;
	my $file = PostgreSQL::Test::Utils::tempdir() . '/strace';
	my ($out, $err) = ('', '');
	my $pid = $session->pid;
	my $strace = IPC::Run::start([ 'strace', '-qq', '-yy', '-o', $file, '-p', $pid ],
		'<', \undef, '>', \$out, '2>', \$err, IPC::Run::timeout(120));

	# attached once the kernel says so
	my $deadline = time + 30;
	until (PostgreSQL::Test::Utils::slurp_file("/proc/$pid/status") =~ /^TracerPid:\s+[1-9]/m)
	{
		$strace->pump_nb;
		return if $err =~ /not permitted|denied|attach:/ || time > $deadline;
		sleep 0.01;
	}
	$session->ask($sql);
	$strace->signal('INT');
	eval { $strace->finish };
	return split /\n/, PostgreSQL::Test::Utils::slurp_file($file);
}

my $session = MongoFdwTest::Session->new($node);
$session->ask('SELECT info FROM points WHERE id = 1');

# Statements inside of one command of the client's, so that only MongoDB is
# talked to; the first ones of a kind fill caches.
my $loop = 'DO $$ DECLARE t text; BEGIN FOR i IN 1..%d LOOP '
  . 'SELECT info INTO STRICT t FROM points WHERE id = i; END LOOP; END $$';
$session->ask(sprintf $loop, 20);
my @calls = traced($session, sprintf $loop, $COUNT);
plan skip_all => 'strace cannot attach to processes here' if !@calls;

# A socket to MongoDB is named by both its ends.
my $port = $mongod->port;
my @to_mongodb = grep { /^\w+\(\d+<TCP:\[[^\]]*->127\.0\.0\.1:$port\]/ } @calls;
my %count;
$count{ /^(\w+)\(/ ? $1 : '' }++ foreach @to_mongodb;
my $sends = ($count{sendmsg} // 0) + ($count{sendto} // 0);
my $receives = ($count{recvfrom} // 0) + ($count{recvmsg} // 0) + ($count{read} // 0);

is($sends, $COUNT, 'one send a query') or diag(explain(\%count));
is($receives, $COUNT, 'one receive a query') or diag(explain(\%count));
is(scalar @to_mongodb, 2 * $COUNT, 'and nothing else on that socket');

# Waits are on the backend's own event set: one a query, and some for the client.
my $waits = grep { /^epoll_p?wait/ } @calls;
cmp_ok($waits, '>=', $COUNT, 'a wait a query');
cmp_ok($waits, '<', $COUNT + 10, 'and no more, but for a few that are the client\'s');

# Nothing is set up for a wait, and the clock is not asked through the kernel.
my %other;
$other{ /^(\w+)\(/ ? $1 : '' }++ foreach @calls;
delete @other{qw(epoll_wait epoll_pwait sendmsg sendto recvfrom recvmsg read)};
my $others = 0;
$others += $_ foreach values %other;
cmp_ok($others, '<', 20, "$COUNT queries make no other system calls") or diag(explain(\%other));

# nor does Append set up anything for the one partition that pruning has left
$node->safe_psql(
	'postgres', q{CREATE TABLE parts (id int, info text) PARTITION BY RANGE (id);}
	  . join(
		' ', map { "CREATE FOREIGN TABLE part_$_ PARTITION OF parts FOR VALUES FROM ("
			  . 500 * $_ . ') TO (' . 500 * ($_ + 1) . ") SERVER mongodb OPTIONS (database 'db', collection 'points');" } 0, 1));
$session->ask('SET plan_cache_mode = force_generic_plan');
$loop = 'DO $$ DECLARE t text; BEGIN FOR i IN 1..%d LOOP '
  . 'SELECT info INTO STRICT t FROM parts WHERE id = i; END LOOP; END $$';
$session->ask(sprintf $loop, 20);
is(scalar(grep { /^epoll_create/ } traced($session, sprintf $loop, $COUNT)),
	0, 'queries of one of two partitions make no set of events');
$session->ask('RESET plan_cache_mode');

# an INSERT goes through libmongoc, and makes no more of them
$node->safe_psql('postgres', q{CREATE FOREIGN TABLE inserted (_id int, info text) SERVER mongodb OPTIONS (database 'db')});
$loop = 'DO $$ BEGIN FOR i IN %d..%d LOOP INSERT INTO inserted VALUES (i, repeat(\'x\', 100)); END LOOP; END $$';
$session->ask(sprintf $loop, 1, 20);
@calls = traced($session, sprintf $loop, 21, 20 + $COUNT);
# the first one may come after the pause in which strace was attached: see below
is(scalar(grep { /^\w+\(\d+<TCP:\[[^\]]*->127\.0\.0\.1:$port\]/ && !/MSG_PEEK/ } @calls), 2 * $COUNT, 'one send and one receive an INSERT');
cmp_ok(scalar(grep { /MSG_PEEK/ } @calls), '<', 10, '... and hardly one asks whether the connection is open');
$waits = grep { /^epoll_p?wait/ } @calls;
cmp_ok($waits, '>=', $COUNT, '... and a wait');
cmp_ok($waits, '<', $COUNT + 10, '... and no more');

# after a pause the connection is first asked whether it is still open
@calls = traced($session, q{DO $$ BEGIN FOR i IN 1001..1005 LOOP PERFORM pg_sleep(0.15);}
	  . q{ INSERT INTO inserted VALUES (i); END LOOP; END $$});
my @inserts = grep { /^\w+\(\d+<TCP:\[[^\]]*->127\.0\.0\.1:$port\]/ } @calls;
is(scalar(@inserts), 3 * 5, 'an INSERT after a pause makes one receive more');
is(scalar(grep { /MSG_PEEK/ } @inserts), 5, '... that takes nothing off');

$session->close;
done_testing();
