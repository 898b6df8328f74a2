# A query costs one command: what MongoDB counts while queries run.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('quiet');

create_server($node, 'mongodb', $mongod);
create_point_table($node, 'mongodb', $mongod, 5000);

# One backend: its first query may connect, the next 1,000 may only find.
my $ids = join(', ', map { 1 + ($_ * 37) % 5000 } 1 .. 1000);
my $first = 'SELECT info FROM points WHERE id = 1';

# pgbench reports when its script does something else than select one row, as
# \gset fails then.
my $script = "\\set id random(1, 5000)\nSELECT id AS found FROM points WHERE id = :id \\gset\n";

# one_backend
#	Counters for 'count' transactions after a first query on the same backend.
sub one_backend
{
	my ($mode, $clients, $count) = @_;

	# The counters of a run of n + 1 transactions less those of a run of 1: the
	# start of a session is in both.
	my @seen;
	foreach my $transactions (1, 1 + $count)
	{
		$mongod->snapshot;
		run_pgbench($node, $script, '-M', $mode, '-c', $clients, '-j', 2, '-t', $transactions);
		push @seen, $mongod->changes;
	}
	my %commands = %{ $seen[1]{commands} };
	$commands{$_} -= $seen[0]{commands}{$_} foreach keys %{ $seen[0]{commands} };
	delete $commands{$_} foreach grep { !$commands{$_} } keys %commands;
	my %operations = %{ $seen[1]{opcounters} };
	$operations{$_} -= $seen[0]{opcounters}{$_} foreach keys %{ $seen[0]{opcounters} };
	delete $operations{$_} foreach grep { !$operations{$_} } keys %operations;
	return {
		commands => \%commands,
		opcounters => \%operations,
		requests => $seen[1]{requests} - $seen[0]{requests},
		connections => $seen[1]{connections} - $seen[0]{connections},
	};
}

foreach my $mode ('simple', 'extended', 'prepared')
{
	is_deeply(
		one_backend($mode, 1, 1000),
		{
			commands => { find => 1000 },
			opcounters => { query => 1000 },
			requests => 1000,
			connections => 0
		},
		"1,000 point queries are 1,000 finds and nothing else ($mode protocol)");
}

is_deeply(
	one_backend('prepared', 10, 1000),
	{
		commands => { find => 10000 },
		opcounters => { query => 10000 },
		requests => 10000,
		connections => 0
	},
	'10 backends with 1,000 point queries each are 10,000 finds and nothing else');

# One session, so that the same can be seen of what is not a point query.
my $session = $node->safe_psql('postgres', "$first; SELECT count(*) FROM points WHERE id <= 3");
is($session, "info 1\n3", 'the rows are the right ones');

# session_commands
#	What MongoDB sees of these statements in a session that has connected.
sub session_commands
{
	my (@statements) = @_;
	my ($warm, $all);

	$mongod->snapshot;
	$node->safe_psql('postgres', $first);
	$warm = $mongod->changes->{commands};
	$mongod->snapshot;
	$node->safe_psql('postgres', join(";\n", $first, @statements));
	$all = $mongod->changes->{commands};
	$all->{$_} -= $warm->{$_} foreach keys %$warm;
	delete $all->{endSessions};    # of one before, which nobody waits for
	delete $all->{$_} foreach grep { !$all->{$_} } keys %$all;
	return $all;
}

is_deeply(session_commands('SELECT * FROM points WHERE id = 7'), { find => 1 },
	'select * by key is one find');
is_deeply(session_commands('SELECT * FROM points WHERE id BETWEEN 1 AND 50'), { find => 1 },
	'a small result is one round trip');
is_deeply(session_commands('SELECT * FROM points WHERE id = -1'), { find => 1 },
	'no row is one find');
is_deeply(session_commands('SELECT * FROM points LIMIT 3'), { find => 1 },
	'LIMIT leaves no cursor open');
is_deeply(session_commands('BEGIN', $first, 'SAVEPOINT s', $first, 'ROLLBACK TO s', $first, 'COMMIT'),
	{ find => 3 }, 'transactions and savepoints send nothing');
is_deeply(
	session_commands(
		'PREPARE p (int) AS SELECT info FROM points WHERE id = $1',
		(map { "EXECUTE p($_)" } 1 .. 12), 'DEALLOCATE p'),
	{ find => 12 },
	'custom and generic plans are one find each');
is_deeply(
	session_commands(
		'DO $$ DECLARE t text; BEGIN FOR i IN 1..20 LOOP '
		  . 'SELECT info INTO t FROM points WHERE id = i; END LOOP; END $$'),
	{ find => 20 },
	'PL/pgSQL statements are one find each');

my $commands = session_commands('SELECT sum(length(info)) FROM points');
is(($commands->{find} // 0) + ($commands->{aggregate} // 0), 1, 'a full scan opens one cursor');
ok(!grep({ !/^(find|aggregate|getMore)$/ } keys %$commands), 'and sends nothing beside getMore')
  or diag(explain($commands));

# A sub-select that is asked for the same again and again, with NULL in between.
my $outer = '(VALUES (7), (7), (7), (8), (8), (-1), (-1), (7), (NULL), (NULL), (7)) AS v(n)';

foreach my $case (
	[ '(SELECT info FROM points WHERE id = n)', 'find', 3, 'info 7,info 7,info 7,info 8,info 8,,,info 7,,,info 7' ],
	[ '(SELECT count(*) FROM points WHERE id = n)', 'count', 3, '1,1,1,1,1,0,0,1,0,0,1' ],
	# which is left after a row, and so gone on with for the next value alone
	[ 'EXISTS (SELECT FROM points WHERE id BETWEEN n AND n + 20 OFFSET 0)', 'find', 5, 'true,true,true,true,true,true,true,true,false,false,true' ])
{
	my ($subselect, $command, $count, $rows) = @$case;

	is_deeply(session_commands("SELECT $subselect FROM $outer"), { $command => $count },
		"$subselect is sent once for equal values");
	is($node->safe_psql('postgres', "SELECT string_agg(coalesce(x, ''), ',') FROM (SELECT ($subselect)::text FROM $outer) q(x)"),
		$rows, 'and has the answer of each row');
}
$node->safe_psql('postgres', q(ALTER FOREIGN TABLE points OPTIONS (ADD fetch_size '1000')));
is(session_commands('SELECT (SELECT sum(length(info)) FROM points WHERE id > n) FROM (VALUES (7), (7)) AS v(n)')->{find}, 1,
	'so is one with an answer of several batches');
# A long scan asks for more at a time, unless the table says for how much.
$node->safe_psql('postgres', q{CREATE FOREIGN TABLE many (n int) SERVER mongodb OPTIONS (database 'test');
	INSERT INTO many SELECT generate_series(1, 100000);
	CREATE FOREIGN TABLE many_by_tens (n int) SERVER mongodb OPTIONS (database 'test', collection 'many', fetch_size '10000')});
is_deeply(session_commands("SELECT sum(length(n::text)) FROM $$_[0]"), { find => 1, getMore => $$_[1] },
	"$$_[0]: 100,000 documents come in " . ($$_[1] + 1) . ' batches')
  foreach [ 'many', 4 ], [ 'many_by_tens', 10 ];
is_deeply(
	session_commands('BEGIN', 'DECLARE c CURSOR FOR SELECT n FROM many', 'MOVE 1 IN c', 'SELECT pg_sleep(1.1)',
		'MOVE 10000 IN c', 'SELECT pg_sleep(1.1)', 'MOVE 10000 IN c', 'MOVE ALL IN c', 'COMMIT'),
	{ find => 1, getMore => 11 },
	'... and stay as they are while it takes a second to read one');
$node->safe_psql('postgres', 'CREATE FOREIGN TABLE changed (_id int, n int) SERVER mongodb OPTIONS (database \'test\', collection \'changed\');'
	  . 'INSERT INTO changed VALUES (1, 1), (2, 1)');
is($node->safe_psql('postgres', 'UPDATE changed SET n = changed.n + v.n FROM (VALUES (1, 10), (2, 10)) AS v(id, n) '
		  . 'WHERE _id = v.id RETURNING _id, changed.n'), "1|11\n2|11", 'a row to be updated is not from a kept answer');

done_testing();
