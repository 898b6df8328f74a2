# With the library in shared_preload_libraries, libmongoc starts in the postmaster:
# backends inherit it, and nothing that has to be theirs alone.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new(auth => 1);
my $node = new_postgres('preloaded', q{shared_preload_libraries = 'mongo_fdw'});

create_server($node, 'mongodb', $mongod);
create_point_table($node, 'mongodb', $mongod, 1000);

my @sessions = map { MongoFdwTest::Session->new($node) } 1 .. 3;

is($_->ask('SELECT id FROM points WHERE id = 7'), 7, 'a session reads, logged in by a nonce of its own')
  foreach @sessions;

# the random part of an ObjectId is each process's
my %process = map { substr($_->ask('SELECT objectid()'), 8, 10) => 1 } @sessions;
is(scalar keys %process, scalar @sessions, 'ObjectIds of two sessions cannot be the same');

$_->close foreach @sessions;
done_testing();
