# What a client is told of its COMMIT is never false: t/programs/commit_outcomes.py, in
# which each reply of the conversation is lost in turn.  There a statement
# timeout ends the asking; without it, for up to half a minute each time:
# COMMIT_OUTCOMES_TIMEOUT=0 TEST_FILE_TIMEOUT=3600 make test.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $one = MongoFdwTest::ReplicaSet->new(1);
my $three = MongoFdwTest::ReplicaSet->new(3);
my $node = new_postgres('outcomes');

sub uri
{
	my ($set) = @_;
	return 'mongodb://' . join(',', map { '127.0.0.1:' . $_->port } $set->members) . '/?replicaSet=rs';
}

run_tests_of('programs/commit_outcomes.py', '--dsn', $node->connstr('postgres'), '--one', uri($one),
	'--three', uri($three), '--mongos', join(',', map { MongoFdwTest::helper('mongos', port => $one->primary->port) } 1 .. 2), '--timeout', $ENV{COMMIT_OUTCOMES_TIMEOUT} // 600);

done_testing();
