# Every kind of interrupt in every place where MongoDB is waited for, measured:
# t/programs/interrupts.py.  INTERRUPTS_CLIENTS=1 measures one after the other, for
# figures that others do not disturb.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $set = MongoFdwTest::ReplicaSet->new(1);
my $node = new_postgres('interrupts');

run_tests_of('programs/interrupts.py', '--dsn', $node->connstr('postgres'), '--port', $set->primary->port,
	'--clients', $ENV{INTERRUPTS_CLIENTS} || 8);

done_testing();
