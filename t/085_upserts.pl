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

# Random rows, against ON CONFLICT of an ordinary table, row by row.
my $columns = 'sku text, a int, b date, n int, j jsonb, tags text[], at timestamptz, city text, d int DEFAULT 7';
my $paths = $columns =~ s/city text/city text OPTIONS (path 'place.city')/r;
my $seed = random_seed(85);
my $rounds = random_amount(60);
my ($differences, $asked) = (0, 0);

srand $seed;
foreach my $round (1 .. $rounds)
{
	my @key = @{ [ ['sku'], ['n'], [ 'a', 'b' ], [ 'sku', 'city' ], ['at'] ]->[ rand 5 ] };
	my $keys = join ', ', @key;
	my $mode = rand() < 0.7 ? 'upsert' : 'ignore';
	my $options = join ', ', "database 'db'", "collection 'random'", "insert_mode '$mode'", "key_columns '$keys'",
	  'batch_size \'' . (1, 7, 1000)[ rand 3 ] . '\'', rand() < 0.3 ? "write_null 'true'" : ();
	my $server = rand() < 0.5 ? 'mongodb' : 'immediate';
	my $script = qq{
		SELECT setseed(@{[ rand ]});
		DROP FOREIGN TABLE IF EXISTS remote; DROP TABLE IF EXISTS local, source;
		CREATE FOREIGN TABLE remote ($paths) SERVER $server OPTIONS ($options);
		CREATE TABLE local ($columns, PRIMARY KEY ($keys));
		DELETE FROM remote;
	};

	foreach my $statement (1 .. 4)
	{
		my %named = map { $_ => 1 } @key, grep { rand() < 0.6 } qw(sku a b n j tags at city d);
		my @named = grep { $named{$_} } qw(sku a b n j tags at city d);
		my $named = join ', ', @named;
		my @others = grep { my $name = $_; !grep { $_ eq $name } @key } @named;
		my $action = $mode eq 'upsert' && @others ? 'UPDATE SET ' . join(', ', map { "$_ = excluded.$_" } @others) : 'NOTHING';
		my $returning = rand() < 0.2 ? 'RETURNING 1' : '';

		$script .= qq{
			DROP TABLE IF EXISTS source;
			CREATE TABLE source AS SELECT o,
				(ARRAY['a', 'A', 'é', '', 'b.c', '\$x', '0123456789abcdef01234567'])[1 + random() * 6] AS sku,
				(random() * 3)::int AS a, date '2024-02-28' + (random() * 3)::int AS b, (random() * 8)::int AS n,
				CASE WHEN random() < 0.8 THEN (ARRAY['1', '{"a": 1, "\$b": [2]}', '[]', '{"c.d": null}', 'true', '"x"'])[1 + random() * 5]::jsonb END AS j,
				CASE WHEN random() < 0.8 THEN (ARRAY['{}', '{a,NULL}', '{b}'])[1 + random() * 2]::text[] END AS tags,
				timestamptz '2024-03-01 00:00:00.123+00' + (random() * 5)::int * interval '1 hour' AS at,
				(ARRAY['Oslo', 'Moss', 'Ås'])[1 + random() * 2] AS city, CASE WHEN random() < 0.7 THEN (random() * 9)::int END AS d
				FROM generate_series(1, 1 + (random() * 40)::int) o;
			WITH written AS (INSERT INTO remote ($named) SELECT $named FROM source ORDER BY o $returning) SELECT;
			DO \$\$ BEGIN FOR i IN 1 .. (SELECT max(o) FROM source) LOOP
				INSERT INTO local ($named) SELECT $named FROM source WHERE o = i ON CONFLICT ($keys) DO $action;
			END LOOP; END \$\$;
			SELECT 'difference', * FROM ((TABLE remote EXCEPT ALL TABLE local) UNION ALL (TABLE local EXCEPT ALL TABLE remote)) x;
		} =~ s/WITH written AS \((.*?)\s*\) SELECT;/$1;/r;
		$asked++;
	}
	my (undef, $stdout, $stderr) = $node->psql('postgres', "SET client_min_messages = error; $script", on_error_stop => 0);
	next if $stdout !~ /difference/ && $stderr eq '';
	diag("seed $seed, round $round\n$script\n$stdout\n$stderr") if $differences++ < 2;
}
is($differences, 0, "$asked statements, seed $seed, no difference");

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
