# Connections live as long as they are good for something.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $one = MongoFdwTest::Mongod->new;
my $two = MongoFdwTest::Mongod->new;
my $node = new_postgres('pool');

create_server($node, 'mongodb', $one);
create_point_table($node, 'mongodb', $one, 3000);
$two->insert('db', 'points', '[{"_id": 1, "id": 1, "info": "two"}]');

my $query = 'SELECT info FROM points WHERE id = 1';

# psql_lines
#	What a session of these statements prints.
sub psql_lines
{
	my (@statements) = @_;
	my ($status, $stdout, $stderr) = $node->psql('postgres', join(";\n", @statements, ''), on_error_stop => 0);
	return wantarray ? ($stdout, $stderr) : $stdout;
}

# opened
#	Connections that a session of these statements opens.
sub opened
{
	$one->snapshot;
	psql_lines(@_);
	return $one->changes->{connections};
}

my $fresh = opened($query);
is($fresh, 1, 'a session opens one connection');
is(opened(($query) x 50), $fresh, 'for many queries as for one');
is(opened('BEGIN', $query, 'COMMIT', 'BEGIN', $query, 'ROLLBACK', $query), $fresh, 'over transactions');

# What changes a connection's ground retires it.
my $port_one = $one->port;
my $port_two = $two->port;
is(psql_lines($query, "ALTER SERVER mongodb OPTIONS (SET port '$port_two')", $query,
		"ALTER SERVER mongodb OPTIONS (SET port '$port_one')", $query),
	"info 1\ntwo\ninfo 1", 'ALTER SERVER is seen by the next query');
is(psql_lines($query, 'BEGIN', "ALTER SERVER mongodb OPTIONS (SET port '$port_two')", $query, 'ROLLBACK', $query),
	"info 1\ntwo\ninfo 1", 'and undone by ROLLBACK');
like((psql_lines($query, 'ALTER USER MAPPING FOR CURRENT_USER SERVER mongodb OPTIONS (ADD username \'nobody\', ADD password \'x\')', $query))[1],
	qr/ERROR:  could not connect/, 'ALTER USER MAPPING is seen by the next query');
psql_lines('ALTER USER MAPPING FOR CURRENT_USER SERVER mongodb OPTIONS (DROP username, DROP password)');
is(psql_lines($query), 'info 1', 'also on the way back');

# Another session's ALTER SERVER, while this one has a connection.
my ($in, $out) = ('', '');
my $session = IPC::Run::start([ 'psql', '-X', '-A', '-t', '-q', '-d', $node->connstr('postgres'), '-f', '-' ],
	'<', \$in, '>', \$out, '2>&1', IPC::Run::timeout(120));
$in .= "$query;\n";
$session->pump until $out =~ /\n/;
$node->safe_psql('postgres', "ALTER SERVER mongodb OPTIONS (SET port '$port_two')");
$in .= "$query;\n";
$session->pump until $out =~ /\n.*\n/;
is($out, "info 1\ntwo\n", 'another session\'s ALTER SERVER is seen');
$node->safe_psql('postgres', "ALTER SERVER mongodb OPTIONS (SET port '$port_one')");
$in .= "\\q\n";
$session->finish;

# Two scans at once have a connection each, and both give it back.
my @both = (
	'BEGIN',
	'DECLARE a CURSOR FOR SELECT id FROM points',
	'DECLARE b CURSOR FOR SELECT id FROM points',
	(map { ("FETCH 200 FROM a", "FETCH 200 FROM b") } 1 .. 3),
	'COMMIT');
my @rows = split /\n/, psql_lines(@both);
is_deeply(\@rows, [ map { my $first = 200 * $_; (($first + 1 .. $first + 200)) x 2 } 0 .. 2 ],
	'two cursors do not mix up their rows');
my $two_scans = opened(@both);
is(opened(@both, @both, @both), $two_scans, 'the connections of two cursors are used again');
is(psql_lines('SELECT count(*) FROM points a JOIN points b USING (id) WHERE length(a.info) > 0 AND length(b.info) > 0'), 3000,
	'a join of two scans');
is(psql_lines('SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off; '
		  . 'SET mongo_fdw.enable_join_pushdown = off; '
		  . 'SELECT count(*) FROM (SELECT * FROM points WHERE id <= 40) a JOIN points b ON length(a.info) = length(b.info) AND b.id = a.id'), 40,
	'a scan that is started again and again');

# An error in the middle of a scan gives the connection back.
my $error = 'SELECT 1 / (id - 500) FROM points';
my ($stdout, $stderr) = psql_lines($query, ($error) x 10, $query);
is(() = $stderr =~ /division by zero/g, 10, 'errors in mid-scan');
is($stdout, "info 1\ninfo 1", 'and queries go on');
cmp_ok(opened($query, ($error) x 20, $query), '<=', $fresh + 20, 'without a connection too many');
$one->snapshot;
my $left = $one->counters->{connections_open};
psql_lines($query, ($error) x 20, 'SELECT pg_sleep(0.2)', $query);
cmp_ok($one->counters->{connections_open}, '<=', $left + 1, 'and none is left open');

# An abandoned cursor is closed in MongoDB.
psql_lines('BEGIN', 'DECLARE c CURSOR FOR SELECT id FROM points', 'FETCH 1 FROM c', 'CLOSE c', 'COMMIT',
	'SELECT pg_sleep(0.5)');
my $open = $one->command('{"serverStatus": 1}')->{metrics}{cursor}{open}{total};
is($open, 0, 'an abandoned cursor does not stay open');

# A subtransaction that fails takes its scan with it and nothing else.
is(psql_lines('DO $$ DECLARE n int; BEGIN FOR i IN 1..5 LOOP BEGIN '
		  . 'PERFORM 1 / (id - 500) FROM points; EXCEPTION WHEN division_by_zero THEN '
		  . 'SELECT count(*) INTO n FROM points WHERE id <= 3; RAISE NOTICE \'n %\', n; END; END LOOP; END $$',
		$query), 'info 1', 'errors caught in PL/pgSQL');

# keep_connections off: one a transaction.
$node->safe_psql('postgres', 'ALTER SERVER mongodb OPTIONS (ADD keep_connections \'false\')');
is(opened(($query) x 5), 5 * $fresh, 'keep_connections false: a connection a transaction');
is(opened('BEGIN', ($query) x 5, 'COMMIT'), $fresh, 'and one in a transaction of many queries');
$node->safe_psql('postgres', 'ALTER SERVER mongodb OPTIONS (SET keep_connections \'true\')');

# Sessions that end leave nothing behind.
my $settled;
foreach (1 .. 50)
{
	$settled = $one->counters->{connections_open} <= $left;
	last if $settled;
	Time::HiRes::sleep(0.1);
}
ok($settled, 'connections of sessions that ended are closed');

# DROP SERVER with a connection open.
is(psql_lines($query, 'DROP SERVER mongodb CASCADE', 'SELECT 5'), "info 1\n5", 'DROP SERVER');

done_testing();
