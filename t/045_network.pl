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

done_testing();
