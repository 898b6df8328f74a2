# What the programs of t/random ask, and write, at random with fixed seeds, held against
# local tables.  For hours of it, and of some alone:
# RANDOM_TIMES=100 RANDOM_SEED=7 RANDOM_ONLY="joins writes" TEST_FILE_TIMEOUT=36000
# RANDOM_DRAWN=1 draws settings of PostgreSQL, and servers' networks, for all queries.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my %only = map { $_ => 1 } split / /, $ENV{RANDOM_ONLY} // '';
my @queries = ('--queries');
my @drawn = ('--drawn', $ENV{RANDOM_DRAWN} // 0.2);

# program, how many, of what, seed, further arguments, servers that it needs: a standalone,
# a replica set, or one of its own
my @runs = (
	[ queries => 4000, '--queries', 101, [ @drawn, qw(--documents clean --type-mismatch error) ] ],
	[ queries => 1500, '--queries', 102, [ @drawn, qw(--documents clean --type-mismatch null) ] ],
	[ queries => 3500, '--queries', 103, [ @drawn, qw(--documents hostile --type-mismatch null) ] ],
	[ queries => 700, '--queries', 104, [ @drawn, qw(--documents hostile --type-mismatch skip) ] ],
	[ queries => 400, '--queries', 105, [ @drawn, qw(--documents hostile --type-mismatch mixed) ] ],
	[ queries => 400, '--queries', 106, [ @drawn, qw(--documents hostile --type-mismatch shown) ] ],
	[ joins => 1200, '--queries', 201, \@drawn ],
	[ joins => 1200, '--queries', 202, \@drawn ],
	[ unwound => 500, '--queries', 301, [qw(--documents clean --type-mismatch error)] ],
	[ unwound => 300, '--queries', 302, [qw(--documents clean --type-mismatch null)] ],
	[ unwound => 500, '--queries', 303, [qw(--documents hostile --type-mismatch null)] ],
	[ unwound => 250, '--queries', 304, [qw(--documents hostile --type-mismatch error)] ],
	[ parameters => 700, '--queries', 601, \@drawn ],
	[ odd_documents => 1500, '--queries', 401, [] ],
	[ nested => 2500, '--queries', 501, [ @drawn, '--server', 'alone' ] ],
	[ nested => 1000, '--queries', 502, [ @drawn, '--server', 'alone', '--type-mismatch', 'null' ] ],
	# on a replica set, since a statement that fails half-way must leave nothing
	(map { [ writes => 300, '--statements', $_, [ @drawn, '--server', 'replicas' ] ] } 1 .. 4),
	# where no transaction takes back what a statement has done before it fails
	(map { [ writes => 300, '--statements', $_, [ @drawn, '--server', 'alone', '--lasting' ] ] } 5 .. 6),
	# a busy machine takes fewer steps in that time
	[ cursors => 250, '--steps', 1, [ '--set-up', '--seconds', random_amount(10) ] ]);

my $alone = MongoFdwTest::Mongod->new;
my $set = MongoFdwTest::ReplicaSet->new(1);
my $node = new_postgres('random', 'jit = off', 'fsync = off');

create_server($node, 'alone', $alone);
create_server($node, 'replicas', $set->primary, replica_set => 'rs');
create_server($node, 'mongodb', $alone, async_connections => '2');

foreach my $run (@runs)
{
	my ($program, $count, $unit, $seed, $arguments) = @$run;
	my $mongod = grep({ $_ eq 'replicas' } @$arguments) ? $set->primary : $alone;

	next if %only && !$only{$program};
	$count = random_amount($count);
	$seed = random_seed($seed);
	run_program("$program: " . join(' ', $unit, $count, '--seed', $seed, @$arguments),
		"random/$program.py", '--dsn', $node->connstr('postgres'), $unit, $count, '--seed', $seed, @$arguments,
		$program eq 'cursors' ? () : ('--mongo', $mongod->uri));
}

done_testing();
