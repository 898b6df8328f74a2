# Synchronized tables while everything fails: t/moment/moment.py.  Run by "make moment" and not by
# "make test", because it takes long and needs its own build.

use strict;
use warnings;

use File::Basename qw(dirname);
use MongoFdwTest;
use PostgreSQL::Test::Utils;
use Test::More;

# snapshots of three seconds, and an oplog that is cut
my @arguments = (
	'--oplogSize', '16', '--syncdelay', '2',
	'--setParameter', 'minSnapshotHistoryWindowInSeconds=3');
my $set = MongoFdwTest::ReplicaSet->new(3, arguments => [ @arguments, '--setParameter', 'transactionLifetimeLimitSeconds=4' ]);
# for large transactions, too
my $other = MongoFdwTest::ReplicaSet->new(1, arguments => [@arguments]);
my @servers = ($set->members, $other->members);
my $node = new_postgres('moment', q{shared_preload_libraries = 'mongo_fdw'}, q{restart_after_crash = on}, q{log_statement = none},
	"moment.without = '" . ($ENV{MOMENT_WITHOUT} // '') . "'");
$node->safe_psql('postgres', 'CREATE EXTENSION mongo_sync');

sub data_of { return "$_[0]->{folder}/data" }

# What the program requests, by server number.
my %actions = (
	kill => sub { $servers[ $_[0] ]->kill },
	stop => sub { $servers[ $_[0] ]->stop },
	start => sub { $servers[ $_[0] ]->start },
	# without its replica set
	start_alone => sub { local $servers[ $_[0] ]{replica_set}; $servers[ $_[0] ]->start },
	signal => sub { my $pid = $servers[ $_[0] ]->{pid}; kill $_[1], $pid if $pid },
	save => sub { system('cp', '-a', data_of($servers[ $_[0] ]), data_of($servers[ $_[0] ]) . '.saved') == 0 or die },
	restore => sub {
		my $data = data_of($servers[ $_[0] ]);
		system("rm -rf '$data' && mv '$data.saved' '$data'") == 0 or die;
	},
	crash => sub { $node->stop('immediate'); $node->start });

$ENV{PYTHONPATH} .= ':' . dirname(__FILE__) . '/../soak';
run_tests_of(\%actions, 'moment/moment.py', '--dsn', $node->connstr('postgres'),
	'--ports', join(',', map { $_->port } @servers),
	'--seed', $ENV{MOMENT_SEED} || 1, '--rounds', $ENV{MOMENT_ROUNDS} || 100,
	'--without', $ENV{MOMENT_WITHOUT} // '', split / /, $ENV{MOMENT_PARTS} || 'move copy history large');

unlike(slurp_file($node->logfile), qr/PANIC|TRAP|was terminated by signal/, 'no process of PostgreSQL has crashed');

done_testing();
