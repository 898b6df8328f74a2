# Cursors over tables of one server in random order, with cancels, errors and
# savepoints between: t/random_cursors.py with a fixed seed.  For hours of it:
# RANDOM_TIMES=100 RANDOM_SEED=7.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('random_cursors', 'fsync = off');
create_server($node, 'mongodb', $mongod, async_connections => '2');

my $seed = random_seed(1);
my $steps = random_amount(250);

# a busy machine takes fewer steps in that time
run_program("$steps steps, seed $seed",
	'random_cursors.py', '--dsn', $node->connstr('postgres'), '--set-up', '--seed', $seed,
	'--steps', $steps, '--seconds', random_amount(10));

done_testing();
