# Money moves between MongoDB and PostgreSQL while statements are cancelled,
# backends killed and the primary steps down: t/programs/bank_transfer.py for a minute.
# For longer: BANK_TRANSFER_SECONDS=3600 TEST_FILE_TIMEOUT=4000 make test.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $seconds = $ENV{BANK_TRANSFER_SECONDS} || 60;

# MongoDB keeps the transaction of a client that is gone until its time limit,
# and with it the documents that it wrote: a minute would be the whole test.
my $set = MongoFdwTest::ReplicaSet->new(3,
	arguments => [ '--setParameter', 'transactionLifetimeLimitSeconds=3' ]);

# A killed backend makes PostgreSQL start again, which PostgreSQL::Test forbids.
my $node = new_postgres('bank', 'restart_after_crash = on', 'synchronous_commit = on');
my $uri = 'mongodb://' . join(',', map { '127.0.0.1:' . $_->port } $set->members) . '/?replicaSet=rs';

create_server($node, 'mongodb', $set->primary, address => undef, port => undef,
	uri => $uri, server_selection_timeout_ms => 20000);

run_tests_of('programs/bank_transfer.py', '--dsn', $node->connstr('postgres'), '--mongo', $uri,
	'--seconds', $seconds, '--seed', $ENV{BANK_TRANSFER_SEED} || 1);

done_testing();
