# Runs a test that is a Python program, with the servers that it needs:
#
#	perl t/lib/launch.pl t/read/tpch.py
#
# Without an argument it prints which programs are tests: those of the table.  Other
# programs in the folders of tests belong to a test beside them.

use strict;
use warnings;

# PostgreSQL::Test names folders and logs after it
BEGIN { $0 = $ARGV[0] if @ARGV }

use if scalar @ARGV, 'MongoFdwTest';
use if scalar @ARGV, 'Test::More';

my @FAST = ('jit = off', 'fsync = off');

# Each program: PostgreSQL's settings, undefined if it needs no PostgreSQL, and its
# arguments other than --dsn.
my %tests = (
	'connection/interrupts.py' => [
		[],
		sub { ('--port', MongoFdwTest::ReplicaSet->new(1)->primary->port, '--clients', $ENV{INTERRUPTS_CLIENTS} || 8) }
	],
	'fuzz/fuzz.py' => [
		undef,
		sub {
			plan(skip_all => 'it builds with sanitizers of its own') if $ENV{SANITIZED};
			return (
				'--pg-config', 'pg_config', '--folder', "$ENV{TESTDIR}/tmp_check/fuzz",
				'--jobs', $ENV{FUZZ_JOBS} || 1, '--seed', $ENV{FUZZ_SEED} || 1,
				$ENV{FUZZ_SECONDS} ? ('--seconds', $ENV{FUZZ_SECONDS}) : (),
				split(' ', $ENV{FUZZ_ARGUMENTS} // ''));
		}
	],
	'plan/row_security.py' =>
	  [ \@FAST, sub { ('--mongo', MongoFdwTest::Mongod->new->uri, '--share', $ENV{ROW_SECURITY_SHARE} // 101) } ],
	'read/expressions.py' => [ \@FAST, sub { ('--mongo', MongoFdwTest::Mongod->new->uri) } ],
	'read/tpch.py' => [
		\@FAST,
		sub {
			my ($node) = @_;

			# text in the order of bytes, as MongoDB has it
			$node->safe_psql('postgres', q(CREATE DATABASE tpch TEMPLATE template0 LOCALE 'C'));
			return ('--dsn', $node->connstr('tpch'), '--port', MongoFdwTest::Mongod->new->port);
		}
	],
	'transaction/bank_transfer.py' => [
		# a killed backend makes PostgreSQL start again, which PostgreSQL::Test forbids
		[ 'restart_after_crash = on', 'synchronous_commit = on' ],
		sub {
			my ($node) = @_;

			# MongoDB keeps the transaction of a client that is gone until its time limit,
			# and with it the documents that it wrote: a minute would be the whole test
			my $set = MongoFdwTest::ReplicaSet->new(3,
				arguments => [ '--setParameter', 'transactionLifetimeLimitSeconds=3' ]);

			create_server($node, 'mongodb', $set->primary, address => undef, port => undef,
				uri => $set->uri, server_selection_timeout_ms => 20000);
			return ('--mongo', $set->uri, '--seconds', $ENV{BANK_TRANSFER_SECONDS} || 60,
				'--seed', $ENV{BANK_TRANSFER_SEED} || 1);
		}
	],
	# a statement timeout ends the asking for outcomes; without it, COMMIT_OUTCOMES_TIMEOUT=0,
	# that takes up to half a minute each time
	'transaction/commit_outcomes.py' => [
		[],
		sub {
			my ($one, $three) = map { MongoFdwTest::ReplicaSet->new($_) } 1, 3;
			my @mongos = map { MongoFdwTest::helper('mongos', port => $one->primary->port) } 1 .. 2;

			return ('--one', $one->uri, '--three', $three->uri, '--mongos', join(',', @mongos),
				'--timeout', $ENV{COMMIT_OUTCOMES_TIMEOUT} // 600);
		}
	],
	'write/round_trip.py' => [
		\@FAST,
		sub {
			my ($node) = @_;
			my $mongod = MongoFdwTest::Mongod->new;

			create_server($node, 'mongodb', $mongod);
			$node->safe_psql('postgres',
				q(CREATE DATABASE latin1 ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0));
			return ('--mongo', $mongod->uri);
		}
	]);

if (!@ARGV)
{
	print map { "t/$_\n" } sort keys %tests;
	exit;
}

my ($program) = $ARGV[0] =~ m{^t/(.*)} or die "not a program of t/: $ARGV[0]\n";
my ($settings, $arguments) = @{ $tests{$program} // die "no test: $ARGV[0]\n" };
my ($name) = $program =~ m{(\w+)\.py$};
my $node = $settings && new_postgres($name, @$settings);

run_tests_of($program, $node ? ('--dsn', $node->connstr('postgres')) : (), $arguments->($node));
done_testing();
