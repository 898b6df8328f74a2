# Any wait for MongoDB is interrupted at once.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $LIMIT = 100;	# milliseconds from the interrupt to the error

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('interrupt');

create_server($node, 'mongodb', $mongod);
create_point_table($node, 'mongodb', $mongod, 20000, 200);

my $next = 'SELECT info FROM points WHERE id = 7';
my $info = $node->safe_psql('postgres', $next);

# timed_out
#	Does a statement end with its timeout, and does the next one work?
sub timed_out
{
	my ($name, $before, $statement) = @_;
	my $timeout = 400;

	my ($stdout, $stderr, $time);

	# "Time:" is of the statement that fails.  A busy machine gets two more attempts.
	foreach my $attempt (1 .. 3)
	{
		(undef, $stdout, $stderr) = $node->psql('postgres',
			join("\n", $before, "SET statement_timeout = $timeout;", '\timing on', "$statement;", '\timing off',
				'RESET statement_timeout;', "SELECT 'still here';"),
			on_error_stop => 0);
		($time) = $stdout =~ /Time: ([\d.]+)/;
		last if $time < $timeout + $LIMIT;
	}
	like($stderr, qr/canceling statement due to statement timeout/, "$name: statement_timeout is seen");
	cmp_ok($time, '<', $timeout + $LIMIT, "$name: within $LIMIT ms");
	like($stdout, qr/still here/, "$name: the session goes on");
}

# A find that takes long, on a connection made for it and on one in use.
$mongod->block_commands(3000, 'find', 'aggregate');
timed_out('find, new session', '', $next);
$mongod->unblock_commands;

# In one session: connect, block, wait, unblock, ask again.
sub interrupted_session
{
	my ($name, $interrupt, $message, $survives) = @_;
	my ($in, $out, $err) = ('', '', '');
	my $session = IPC::Run::start(
		[ 'psql', '-X', '-A', '-t', '-q', '-d', $node->connstr('postgres'), '-f', '-' ],
		'<', \$in, '>', \$out, '2>', \$err, IPC::Run::timeout(60));

	$in .= "SELECT 'pid ' || pg_backend_pid();\n$next;\n";
	$session->pump until $out =~ /pid (\d+)\n\Q$info\E\n/;
	my $pid = $1;

	$mongod->block_commands(3000, 'find', 'aggregate', 'getMore');
	$in .= "SELECT id FROM points WHERE id = 8;\n";
	$session->pump_nb;
	$node->poll_query_until('postgres',
		"SELECT wait_event IS NOT NULL AND state = 'active' FROM pg_stat_activity WHERE pid = $pid");
	sleep 0.2;
	my $asked = $node->safe_psql('postgres', "SELECT clock_timestamp() FROM $interrupt($pid)");
	$session->pump until $err =~ /$message/;

	# The server's log says when the backend noticed.
	my ($noticed) = PostgreSQL::Test::Utils::slurp_file($node->logfile) =~ /^(\S+ \S+) \S+ \[$pid\] (?:ERROR|FATAL):  $message/m;
	cmp_ok(milliseconds_between($asked, $noticed), '<', $LIMIT, "$name: within $LIMIT ms");
	$mongod->unblock_commands;
	if ($survives)
	{
		$in .= "$next;\nSELECT 'the end';\n";
		$out = '';
		$session->pump until $out =~ /the end/;
		is($out, "$info\nthe end\n", "$name: the next query in the session works");
		$in .= "\\q\n";
	}
	eval { $session->finish };
}

interrupted_session('pg_cancel_backend', 'pg_cancel_backend',
	'canceling statement due to user request', 1);
interrupted_session('pg_terminate_backend', 'pg_terminate_backend',
	'terminating connection due to administrator command', 0);
is($node->safe_psql('postgres', $next), $info, 'a new session works after that');

# In the middle of a cursor.
$mongod->block_commands(3000, 'getMore');
timed_out('getMore', '', 'SELECT count(info) FROM points WHERE length(info) > 1');
$mongod->unblock_commands;
is($node->safe_psql('postgres', 'SELECT count(info) FROM points WHERE length(info) > 1'), 20000,
	'the whole collection can be read after that');

# While connecting: a server that accepts and says nothing.
my $silent = IO::Socket::INET->new(Listen => 20, LocalAddr => '127.0.0.1', Proto => 'tcp')
  or die "could not listen: $!";
$node->safe_psql('postgres',
	'CREATE SERVER silent FOREIGN DATA WRAPPER mongo_fdw OPTIONS (address \'127.0.0.1\', port \''
	  . $silent->sockport . '\', connect_timeout_ms \'20000\', server_selection_timeout_ms \'20000\'); '
	  . 'CREATE USER MAPPING FOR PUBLIC SERVER silent; '
	  . 'CREATE FOREIGN TABLE silence (id int) SERVER silent');
timed_out('connecting', '', 'SELECT * FROM silence');

# A cancelled query does not go on in MongoDB: none is left waiting there.
$mongod->command('{"configureFailPoint": "failCommand", "mode": "off"}');
my $left = $mongod->command('{"currentOp": 1, "op": {"$in": ["query", "getmore"]}, "appName": "mongo_fdw", "active": true}');
is(scalar @{ $left->{inprog} }, 0, 'no cancelled query goes on in MongoDB');

done_testing();
