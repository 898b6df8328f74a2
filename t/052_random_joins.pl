# Random joins against PostgreSQL's own answers: t/random_joins.py with fixed
# seeds.  For hours of it: random_joins.py --queries 1000000.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('random_joins', 'jit = off', 'fsync = off');
my $python = $ENV{PYTHON} || 'python3';

foreach my $seed (201, 202)
{
	my $queries = 1500;
	my @command = ($python, 't/random_joins.py',
		'--dsn', $node->connstr('postgres'),
		'--mongo', 'mongodb://127.0.0.1:' . $mongod->port,
		'--seed', $seed, '--queries', $queries);
	my $output = '';

	open(my $pipe, '-|', @command) or die "cannot run $python: $!";
	while (my $line = <$pipe>)
	{
		$output .= $line;
	}
	close($pipe);
	is($?, 0, "$queries joins, seed $seed");
	diag($output) if $?;
}

done_testing();
