# Everything that can fail fails once: t/faults/faults.py.  Run by "make faults" and not by
# "make test", because it takes long and needs its own build.

use strict;
use warnings;

use MongoFdwTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $set = MongoFdwTest::ReplicaSet->new(1);
my $alone = MongoFdwTest::Mongod->new(auth => 1);
my $far = MongoFdwTest::Mongod->new(auth => 1);
my $node = new_postgres('faults', 'max_worker_processes = 16');
$node->safe_psql('postgres', 'CREATE EXTENSION mongo_sync');
my %options = (server_selection_timeout_ms => 3000);

create_server($node, 'rs', $set->primary, replica_set => 'rs', %options);
create_server($node, 'alone', $alone, %options);
create_server($node, 'far', $far, %options, round_trip_time => '20ms', bandwidth => '12MB');
run_tests_of('faults/faults.py', '--dsn', $node->connstr('postgres'), '--log', $node->logfile,
	'--replica-set', $set->primary->uri, '--mongo', $alone->uri, '--far', $far->uri,
	split / /, $ENV{FAULTS_ARGUMENTS} // '');
unlike(slurp_file($node->logfile), qr/PANIC|TRAP|was terminated by signal/, 'no process of PostgreSQL has crashed');

done_testing();
