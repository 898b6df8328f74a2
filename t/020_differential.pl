# Random queries against PostgreSQL's own answers: t/differential.py with fixed
# seeds.  For hours of it: differential.py --queries 1000000.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('differential', 'jit = off', 'fsync = off');
my $python = $ENV{PYTHON} || 'python3';

foreach my $run (
	[ 'clean', 'error', 101, 6000 ],
	[ 'clean', 'null', 102, 4000 ],
	[ 'hostile', 'null', 103, 10000 ])
{
	my ($documents, $type_mismatch, $seed, $queries) = @$run;
	my @command = ($python, 't/differential.py',
		'--dsn', $node->connstr('postgres'),
		'--mongo', 'mongodb://127.0.0.1:' . $mongod->port,
		'--seed', $seed, '--queries', $queries,
		'--documents', $documents, '--type-mismatch', $type_mismatch);
	my $output = '';

	open(my $pipe, '-|', @command) or die "cannot run $python: $!";
	while (my $line = <$pipe>)
	{
		$output .= $line;
	}
	close($pipe);
	is($?, 0, "$queries queries on $documents documents, type_mismatch $type_mismatch");
	diag($output) if $?;
}

done_testing();
