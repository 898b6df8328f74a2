# Partitions on several servers: asked at the same time, pruned, and closed in
# good order when the query does not want all rows.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $DELAY = 1500;	# milliseconds, far above what the query itself takes on a busy machine

my @mongods = map { MongoFdwTest::Mongod->new } 1 .. 2;
my $node = new_postgres('append');

# ids 1 to 1500 on one server, 1501 to 3000 on the other
$node->safe_psql('postgres', 'CREATE TABLE parts (id int, info text) PARTITION BY RANGE (id)');
foreach my $i (0 .. 1)
{
	my $low = 1 + 1500 * $i;
	my $high = 1500 + $low;

	$mongods[$i]->insert('db', 'points',
		'[' . join(', ', map { "{\"id\": $_, \"info\": \"info $_\"}" } $low .. $high - 1) . ']');
	create_server($node, "server_$i", $mongods[$i]);
	$node->safe_psql('postgres',
		"CREATE FOREIGN TABLE part_$i PARTITION OF parts FOR VALUES FROM ($low) TO ($high) SERVER server_$i"
		  . " OPTIONS (database 'db', collection 'points', fetch_size '100')");
}

my $rows = 'SELECT id FROM parts WHERE id BETWEEN 1499 AND 1503';
like($node->safe_psql('postgres', "EXPLAIN (COSTS OFF) $rows"), qr/(Async Foreign Scan.*){2}/s,
	'both partitions are scanned asynchronously');

# timed
#	How long a statement takes in a session that has its connections already.  A busy machine
#	gets two more attempts to be faster than one server after the other.
sub timed
{
	my ($setting, $statement, @blocked) = @_;
	my $session = MongoFdwTest::Session->new($node);

	$session->ask("$setting; $statement");
	$_->block_commands($DELAY, @blocked) foreach @mongods;
	my ($answer, $elapsed);
	foreach my $attempt (1 .. 3)
	{
		my $start = time;
		$answer = $session->ask($statement);
		$elapsed = 1000 * (time - $start);
		last if $elapsed < 1.7 * $DELAY || $setting =~ / = off/;
	}
	$_->unblock_commands foreach @mongods;
	is($session->{err}, '', "no error: $statement");
	$session->close;
	return ($elapsed, $answer);
}

my ($together, $answer) = timed('SET enable_async_append = on', "SELECT count(*) FROM ($rows) s", 'find');
cmp_ok($together, '<', 1.7 * $DELAY, 'two slow servers take as long as one');
is($answer, 5, 'with all their rows');

my ($apart) = timed('SET enable_async_append = off', "SELECT count(*) FROM ($rows) s", 'find');
cmp_ok($apart, '>=', 2 * $DELAY, 'and one after the other when asynchronous Append is off');

# many batches, in any order of arrival; local conditions; rescans
my $all = 'SELECT count(*), sum(id), count(info) FROM parts WHERE id > 0';
my $expected = '3000|4501500|3000';
is($node->safe_psql('postgres', $all), $expected, 'all batches of both come');
is($node->safe_psql('postgres', "$all AND id % 100 = 7"), '30|43710|30', 'with a condition that is checked here');
is($node->safe_psql('postgres', "$all AND id % 10000 = 9999"), '0||0', 'and one that no row meets');
is($node->safe_psql('postgres',
		'SELECT k, (SELECT count(*) FROM parts WHERE id < k * 1000) FROM generate_series(1, 3) k'),
	"1|999\n2|1999\n3|2999", 'rescans');

# partitionwise aggregates: both servers group at the same time
my $grouping = 'SET enable_partitionwise_aggregate = on';
my $groups = 'SELECT id % 3 AS k, count(*), sum(id) FROM parts GROUP BY 1 ORDER BY 1';
$node->safe_psql('postgres',
	"ALTER FOREIGN TABLE part_$_ OPTIONS (ADD fdw_tuple_cost '10')") foreach 0 .. 1;
like($node->safe_psql('postgres', "$grouping; EXPLAIN (COSTS OFF) $groups"),
	qr/Finalize.*(Async Foreign Scan\s+Foreign Namespace: Aggregate.*){2}/s,
	'partial aggregates are asked for asynchronously');
is($node->safe_psql('postgres', "$grouping; $groups"),
	"0|1000|1501500\n1|1000|1499500\n2|1000|1500500", 'and combined here');
is($node->safe_psql('postgres', "$grouping; SELECT count(*), sum(id), max(id) FROM parts WHERE id <> 1600"),
	'2999|4499900|3000', 'without GROUP BY as well');
is($node->safe_psql('postgres', "$grouping; SELECT count(*), sum(id) FROM parts WHERE id = NULL::int"),
	'0|', 'also over nothing');
($together, $answer) = timed($grouping, $groups, 'aggregate');
cmp_ok($together, '<', 1.7 * $DELAY, 'two slow servers group in the time of one');
is($answer, "0|1000|1501500\n1|1000|1499500\n2|1000|1500500", 'with all groups');
unlike(
	$node->safe_psql('postgres',
		"ALTER SERVER server_1 OPTIONS (async_capable 'false'); $grouping; EXPLAIN (COSTS OFF) $groups"),
	qr/(Async Foreign Scan.*){2}/s, 'but where the option async_capable forbids it');
$node->safe_psql('postgres', "ALTER SERVER server_1 OPTIONS (DROP async_capable)");

# Append stops reading
my $early = join(' ', map { 'SELECT count(*) FROM (SELECT id FROM parts LIMIT 3) s;' } 1 .. 20);
is($node->safe_psql('postgres', "$early $all;"), ("3\n" x 20) . $expected, 'queries that stop early');

# arrived
#	Bytes that the kernel holds for clients of a port, which have not read them.
sub arrived
{
	my ($port) = @_;
	my $address = sprintf '0100007F:%04X', $port;
	my $bytes = 0;

	foreach my $line (split /\n/, PostgreSQL::Test::Utils::slurp_file('/proc/net/tcp'))
	{
		my (undef, undef, $remote, undef, $queues) = split ' ', $line;
		$bytes += hex((split /:/, $queues)[1]) if $remote eq $address;
	}
	return $bytes;
}

# The same while the batch of one server is certainly still to be read: it comes
# off the connection, which stays usable, and so does the other server's.
my $session = MongoFdwTest::Session->new($node);
$session->ask($all);
$mongods[1]->block_commands(1000, 'find');
$_->snapshot foreach @mongods;
my $unread = 0;
foreach my $round (1 .. 5)
{
	$session->ask('BEGIN; DECLARE c CURSOR FOR SELECT id FROM parts');
	my @ids = split /\n/, $session->ask('FETCH 3 FROM c');

	if (grep { $_ > 1500 } @ids)
	{
		# so busy is the machine: nobody knows what has been read
		$session->ask('FETCH ALL FROM c; COMMIT');
		next;
	}
	my $deadline = time + 60;
	sleep 0.01 until arrived($mongods[1]->port) || time > $deadline;
	$unread++ if arrived($mongods[1]->port);
	$session->ask('CLOSE c; COMMIT');
}
cmp_ok($unread, '>', 0, 'cursors closed before a batch that had come was read');
is($session->ask($all), $expected, 'after which all batches of both come');
is($_->changes->{connections}, 0, 'over the same connection') foreach @mongods;
$mongods[1]->unblock_commands;
$session->close;

# pruning: a server whose partition is not wanted is not asked
$mongods[1]->snapshot;
is($node->safe_psql('postgres', 'SELECT info FROM parts WHERE id = 7'), 'info 7', 'a row of one partition');
is_deeply($mongods[1]->changes->{commands}, {}, 'asks only the server of that partition');

# an error on one server leaves the other's connection and the session usable
$mongods[1]->fail_command(1, 8000, 'find');
my ($status, $stdout, $stderr) = $node->psql('postgres', "$rows; SELECT count(*) FROM parts WHERE id = 4;",
	on_error_stop => 0);
like($stderr, qr/could not read collection/, 'an error of one server is reported');
like($stdout, qr/^1$/m, 'and the session goes on');

done_testing();
