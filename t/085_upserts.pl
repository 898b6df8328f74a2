# Option insert_mode where it needs a replica set, or several sessions.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::ReplicaSet->new(1)->primary;
my $node = new_postgres('upserts');

create_server($node, 'mongodb', $mongod, replica_set => 'rs');
create_server($node, 'immediate', $mongod, replica_set => 'rs', transactions => 'off');
foreach ([ 'items', 'mongodb', 'upsert' ], [ 'fresh', 'mongodb', 'ignore' ], [ 'fast', 'immediate', 'upsert' ],
	[ 'first', 'immediate', 'ignore' ])
{
	my ($table, $server, $mode) = @$_;
	$node->safe_psql('postgres', "CREATE FOREIGN TABLE $table (_id objectid, sku text, n int) SERVER $server "
		  . "OPTIONS (database 'db', collection 'items', insert_mode '$mode', key_columns 'sku')");
}
$node->safe_psql('postgres', q{CREATE FOREIGN TABLE plain (sku text, n int) SERVER mongodb OPTIONS (database 'db', collection 'items');
	SELECT mongo_command('mongodb', 'db', '{"createIndexes": "items", "indexes": [{"key": {"sku": 1}, "name": "sku", "unique": true}]}')});

# gives
#	What a script prints, errors and all.
sub gives
{
	my ($sql, $expected, $name) = @_;
	my (undef, $stdout, $stderr) = $node->psql('postgres', $sql, on_error_stop => 0);
	like("$stdout\n$stderr", $expected, $name);
}

# Transactions: all or nothing, what was written is seen, one command for a batch.
my $rows = q{SELECT coalesce(string_agg(sku || n, ' ' ORDER BY sku), 'none') FROM plain};
gives("BEGIN; INSERT INTO items (sku, n) VALUES ('a', 1), ('b', 2), ('a', 3); $rows; ROLLBACK; $rows", qr/^a3 b2\nnone$/m, 'rolled back');
$mongod->snapshot;
gives("INSERT INTO items (sku, n) VALUES ('a', 1), ('b', 2), ('a', 3); $rows", qr/^a3 b2$/m, 'committed');
is($mongod->changes->{commands}{update}, 1, 'by one command');
gives("BEGIN; INSERT INTO fresh (sku, n) VALUES ('a', 9), ('c', 4); INSERT INTO items (sku, n) VALUES ('c', 5) RETURNING n; COMMIT; $rows",
	qr/^5\na3 b2 c5$/m, 'in a longer one');
gives("BEGIN; INSERT INTO items (sku, n) VALUES ('d', 1), (NULL, 2); COMMIT; $rows",
	qr/^a3 b2 c5\n.*null value in key column "sku".*row 2 for foreign table/ms, 'a row without a key');
$mongod->snapshot;
gives("INSERT INTO items (sku, n) SELECT 'x' || n % 15000, n FROM generate_series(1, 25000) n; SELECT count(*), sum(n) FROM plain WHERE sku LIKE 'x%'",
	qr/^15000\|262507500$/m, 'three batches');
is($mongod->changes->{commands}{update}, 3, 'are three commands');

# Of sessions that insert the same keys at once each finds what another has inserted.
foreach my $table (qw(fast first))
{
	$node->safe_psql('postgres', 'DELETE FROM plain');
	my $statements = join "\n", map { "INSERT INTO $table (sku, n) SELECT '$_' || n, n FROM generate_series(1, 1000) n;" } qw(k m);
	my @clients = map { background_query($node, $statements) } 1 .. 4;
	is(join('', map { ($_->finish)[2] } @clients), '', "$table: no session fails");
	gives('SELECT count(*), count(DISTINCT sku), sum(n) FROM plain', qr/^2000\|2000\|1001000$/m, 'and no row is lost');
}

done_testing();
