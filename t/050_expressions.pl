# Every row of the tables of expressions: t/expressions.py.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('expressions', 'jit = off', 'fsync = off');
my $python = $ENV{PYTHON} || 'python3';
my $done = 0;

open(my $pipe, '-|', $python, 't/expressions.py',
	'--dsn', $node->connstr('postgres'),
	'--mongo', 'mongodb://127.0.0.1:' . $mongod->port) or die "cannot run $python: $!";
while (my $line = <$pipe>)
{
	chomp $line;
	if ($line =~ /^(not )?ok - (.*)/)
	{
		ok(!$1, $2);
	}
	elsif ($line eq 'done')
	{
		$done = 1;
	}
	else
	{
		diag($line =~ s/^#\s?//r);
	}
}
close($pipe);
ok($done && $? == 0, 'the driver came to its end');

done_testing();
