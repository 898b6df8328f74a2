# Plans over a network: what ANALYZE measures of it, and what EXPLAIN shows.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('network');
create_server($node, 'mongodb', $mongod);
create_point_table($node, 'mongodb', $mongod, 3000, 100);

sub query { return $node->safe_psql('postgres', $_[0]) }

# What ANALYZE measures.  A machine has an own network whose speed is not known here.
my $measured = 'SELECT round_trip_time > 0, bandwidth > 0 FROM mongo_fdw_statistics WHERE relation =';

query('ANALYZE points');
is(query("$measured 'points'::regclass"), 't|t', 'ANALYZE measures round trip time and bandwidth');
query(q{CREATE FOREIGN TABLE few (id int) SERVER mongodb OPTIONS (database 'db', collection 'few');
	INSERT INTO few VALUES (1); ANALYZE few});
is(query("$measured 'few'::regclass"), 't|t', 'a small table has the bandwidth of its server');

# What EXPLAIN shows, and what groups are worth.
query(q{ALTER SERVER mongodb OPTIONS (ADD round_trip_time '0.1ms', ADD bandwidth '10GB')});
unlike(query('EXPLAIN (VERBOSE) SELECT * FROM points'), qr/Network/, 'nothing about a fast network');
query(q{ALTER SERVER mongodb OPTIONS (SET round_trip_time '20ms', SET bandwidth '12MB')});
like(query('EXPLAIN (VERBOSE) SELECT * FROM points'), qr{Network: 20 ms, 12 MB/s, compressed}, 'the options override what was measured');
unlike(query('EXPLAIN SELECT * FROM points'), qr/Network/, 'only with VERBOSE');

# What is compressed.
my $read = "SET mongo_fdw.enable_aggregate_pushdown = off; SELECT sum(length(info)) > 0 FROM points; SELECT compressor FROM mongo_fdw_get_connections()";

like(query($read), qr/^t\n(zstd|snappy)$/, 'what a slow network carries is compressed');
query(q{ALTER SERVER mongodb OPTIONS (SET bandwidth '100MB')});
is(query($read), "t\n", 'what a fast one carries is not');

# A connection outlives a batch that was requested and is not read, however far away MongoDB is.
my $far = MongoFdwTest::helper('record', port => $mongod->port, delay => 0.06);
create_server($node, 'far', $mongod, port => $far);
query(q{CREATE FOREIGN TABLE far_points (id int, info text) SERVER far OPTIONS (database 'db', collection 'points', fetch_size '100')});
$node->safe_psql('postgres', 'ANALYZE far_points');
cmp_ok(query("SELECT round_trip_time FROM mongo_fdw_statistics WHERE relation = 'far_points'::regclass"), '>', 50, 'ANALYZE measures a slow one');
my $session = MongoFdwTest::Session->new($node);
$session->ask('SELECT count(*) FROM far_points');
MongoFdwTest::helper('recorded', port => $far);
$session->ask('BEGIN; DECLARE c CURSOR FOR SELECT * FROM far_points; MOVE 150 IN c; CLOSE c; COMMIT') foreach 1 .. 3;
my @commands = map { $_->[0] } @{ MongoFdwTest::helper('recorded_fields', port => $far) };
is(join(' ', grep { !/getMore|killCursors/ } @commands), 'find find find', 'cursors that are closed early keep their connection');
cmp_ok(scalar(grep { $_ eq 'getMore' } @commands), '>', 3, 'with a batch on its way');

done_testing();
