# Clients that read and write for a long time while servers and sessions fail: t/soak/soak.py.
# Run by "make soak" and not by "make test", because it takes long.

use strict;
use warnings;

use MongoFdwTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $set = MongoFdwTest::ReplicaSet->new(3,
	# time until the transaction of a lost client no longer blocks others
	arguments => [ '--setParameter', 'transactionLifetimeLimitSeconds=4', '--oplogSize', '16' ]);
my @servers = ($set->members, MongoFdwTest::Mongod->new);
my $node = new_postgres('soak', q{shared_preload_libraries = 'mongo_fdw'});
$node->safe_psql('postgres', 'CREATE EXTENSION mongo_sync');

# Actions on servers that the program requests, by server number.
my %actions = (
	kill => sub { $servers[ $_[0] ]->kill },
	stop => sub { $servers[ $_[0] ]->stop },
	start => sub { $servers[ $_[0] ]->start },
	signal => sub { kill $_[1], $servers[ $_[0] ]->{pid} });

run_tests_of(\%actions, 'soak/soak.py', '--dsn', $node->connstr('postgres'),
	'--ports', join(',', map { $_->port } @servers),
	'--seconds', $ENV{SOAK_SECONDS} || 600, '--statements', $ENV{SOAK_STATEMENTS} // 100_000,
	'--clients', $ENV{SOAK_CLIENTS} || 24, '--seed', $ENV{SOAK_SEED} || 1);

unlike(slurp_file($node->logfile), qr/PANIC|TRAP|was terminated by signal/, 'no process of PostgreSQL has crashed');

done_testing();
