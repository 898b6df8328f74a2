# The harness itself: if this fails, mistrust the others.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
$mongod->insert('db', 'things', '[{"_id": 1, "a": {"$numberDecimal": "1.5"}}]');

$mongod->snapshot;
is_deeply($mongod->changes,
	{ commands => {}, opcounters => {}, connections => 0, requests => 0, documents => 0 },
	'looking at the counters is not counted');

MongoFdwTest::helper('quiet', port => $mongod->port, database => 'db', command => '{"find": "things"}');
my $changes = $mongod->changes;
is_deeply($changes->{commands}, { find => 1 }, 'one find is counted as one find');
is($changes->{connections}, 0, 'on no new connection');

$mongod->restart;
is($mongod->command('{"count": "things"}', 'db')->{n}, 1, 'documents survive a restart');
$mongod->kill;
$mongod->start;

my $folder = make_certificates();
my $tls = MongoFdwTest::Mongod->new(tls => $folder, auth => 1);
is($tls->command('{"ping": 1}')->{ok}, 1, 'a mongod with TLS and authentication answers');

my $set = MongoFdwTest::ReplicaSet->new(3);
my $old = $set->primary->port;
isnt($set->step_down->port, $old, 'a replica set elects another primary');

done_testing();
