# Joins that ask for the documents of many rows at a time: how many commands they
# send, and that their answer is that of a join made of fetched rows.

use strict;
use warnings;

use List::Util;
use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('batched_joins', 'jit = off');
create_server($node, 'mongodb', $mongod);
create_point_table($node, 'mongodb', $mongod, 20000);
$node->safe_psql('postgres', q{
	ALTER FOREIGN TABLE points ALTER COLUMN id OPTIONS (ADD indexed 'true');
	ALTER FOREIGN TABLE points OPTIONS (ADD estimated_rows '1000000');
	CREATE TABLE keys AS SELECT g AS n, CASE WHEN g % 50 <> 0 THEN g * 7 % 25000 END AS k FROM generate_series(1, 10000) g;
	INSERT INTO keys SELECT 10000 + g, 5 FROM generate_series(1, 100) g;
	ANALYZE keys;
	-- so that it is the plan whatever the estimates are
	ALTER DATABASE postgres SET enable_hashjoin = off;
	ALTER DATABASE postgres SET enable_mergejoin = off;
	ALTER DATABASE postgres SET enable_nestloop = off;
	ALTER DATABASE postgres SET max_parallel_workers_per_gather = 0});

# The answer and the finds and getMores sent for it.
sub last_row
{
	my ($sql) = @_;
	my ($rows, $finds, $get_mores) = $mongod->asked($sql);
	return ((split /\n/, $rows)[-1], $finds + $get_mores);
}

# Batched, and with everything made here: the same answer in so many commands.
sub is_batched
{
	my ($query, $commands, $name) = @_;
	like($node->safe_psql('postgres', $query =~ s/(?=SELECT)/EXPLAIN /r), qr/MongoDB Batched Join/, "$name: batched");
	my ($answer, $sent) = last_row($query);
	# the last one may have been sent ahead, and reach MongoDB later
	becomes(sub { ($sent = List::Util::sum($mongod->reads)) >= $commands });
	is($sent, $commands, "$name: commands");
	is($answer, (last_row("SET mongo_fdw.enable_pushdown = off; SET enable_hashjoin = on; $query"))[0], "$name: answer");
}

my $sum = 'SELECT count(*), count(id), sum(n), sum(id), max(info) FROM keys';

is_batched("$sum JOIN points ON id = k", 5, 'inner join, 2000 keys a find');
is_batched("$sum LEFT JOIN points ON id = k AND info <> 'info 7'", 6, 'left join, which keeps rows without a key');
is_batched("$sum LEFT JOIN points ON id = k WHERE id IS NULL OR n % 3 = 0", 6, 'left join and a condition above it');
is_batched('SELECT count(*), sum(n) FROM keys WHERE EXISTS (SELECT 1 FROM points WHERE id = k AND id > n)', 5, 'semijoin');
is_batched('SELECT count(*), sum(n) FROM keys WHERE NOT EXISTS (SELECT 1 FROM points WHERE id = k)', 6, 'antijoin');
is_batched('SELECT count(*), sum(id), max(info) FROM points WHERE id IN (SELECT k FROM keys)', 5, 'semijoin the other way round');
is_batched("$sum JOIN points ON id = k + 1 AND id + n > 1000", 5, 'a key that is computed, and a second clause');
is_batched("$sum JOIN points ON id = k WHERE n > 10000", 1, 'one key for all rows');
is_batched("$sum JOIN points ON id = k WHERE k > 24000", 1, 'keys that find nothing');
is_batched("$sum JOIN points ON id = k WHERE k IS NULL", 0, 'no keys');

# without an index each batch looks for its keys in all documents, and is as large as memory allows
$node->safe_psql('postgres', q{
	CREATE FOREIGN TABLE unindexed (id int, info text) SERVER mongodb
		OPTIONS (database 'db', collection 'points', estimated_rows '20000', fetch_size '100000')});
is_batched("$sum JOIN unindexed ON id = k WHERE n <= 2000", 1, 'no index, one batch');
is_batched("$sum JOIN unindexed ON id = k", 1, 'no index');
is_batched("SET work_mem = '64kB'; $sum LEFT JOIN unindexed ON id = k AND info <> 'info 7'", 6, 'no index, left join in little memory');
is_batched('SELECT n FROM (SELECT n FROM keys JOIN unindexed ON id = k LIMIT 20000) s ORDER BY n DESC', 4, 'no index, perhaps not all rows');
is_batched("SET work_mem = '2047GB'; $sum JOIN unindexed ON id = k", 1, 'no index, more memory than an allocation may have');
is_batched('SELECT count(*), sum(n) FROM keys WHERE EXISTS (SELECT 1 FROM unindexed WHERE id = k AND id > n)', 1, 'no index, semijoin');
is_batched('SELECT count(*), sum(n) FROM keys WHERE NOT EXISTS (SELECT 1 FROM unindexed WHERE id = k)', 1, 'no index, antijoin');
is_batched("$sum JOIN unindexed ON id = k WHERE k IS NULL", 0, 'no index, no keys');
is_batched('SELECT count(*), sum(p.id), max(p.info) FROM keys JOIN (SELECT DISTINCT id FROM unindexed WHERE id < 9000 OFFSET 0) u ON u.id = n JOIN unindexed p ON p.id = u.id', 2,
	'no index, over another scan');
unlike($node->safe_psql('postgres', 'EXPLAIN SELECT (SELECT count(*) FROM keys JOIN unindexed ON id = k WHERE n BETWEEN x * 100 AND x * 100 + 50)'
	. ' FROM generate_series(1, 5) x'), qr/Batched Join/, 'no index, in a sub-select, which may be run for many rows');

unlike($node->safe_psql('postgres', 'EXPLAIN WITH RECURSIVE r AS (SELECT 1 AS x UNION SELECT id FROM r JOIN unindexed ON id = x + 1 WHERE x < 9) SELECT * FROM r'),
	qr/Batched Join/, 'no index, in a recursion');
is_batched('SELECT count(*), sum(c) FROM (SELECT k, count(*) AS c FROM keys JOIN unindexed ON id = k GROUP BY k) s', 1, 'no index, in a subquery that runs once');
is_batched('SELECT count(*), (SELECT max(id) FROM keys JOIN unindexed ON id = k) FROM generate_series(1, 5)', 1, 'no index, in a sub-select that runs once');

# several key columns: a list for each that an index serves together, and all decide what belongs
# together
$node->safe_psql('postgres', q{
	CREATE FOREIGN TABLE pairs (_id int, a int, b bigint, t text) SERVER mongodb OPTIONS (database 'db', collection 'pairs');
	INSERT INTO pairs SELECT g, g % 10, g / 10, 'value ' || g % 7 FROM generate_series(1, 20000) g;
	CREATE TABLE pair_keys AS SELECT g AS n, CASE WHEN g % 50 <> 0 THEN g * 3 % 11 END AS a, CASE WHEN g % 60 <> 0 THEN g % 40 * 3 END AS b,
		'value ' || g % 9 AS t FROM generate_series(1, 3000) g;
	ANALYZE pair_keys});
my $pairs = 'SELECT count(*), count(_id), sum(n), sum(_id * n) FROM pair_keys k';
is_batched("$pairs JOIN pairs p ON p.a = k.a AND p.b = k.b", 1, 'two keys without an index');
is_batched("$pairs JOIN pairs p ON p.a = k.a AND p.b = k.b AND p.t = k.t", 1, 'three keys without an index');
$mongod->command('{"createIndexes": "pairs", "indexes": [{"key": {"a": 1, "b": -1, "t": 1}, "name": "abt"}]}', 'db');
$node->safe_psql('postgres', 'ANALYZE pairs');

# The keys that EXPLAIN shows to be asked for, and how many documents come.
sub keys_asked
{
	my ($query) = @_;
	my $plan = $node->safe_psql('postgres', "EXPLAIN (VERBOSE, COSTS OFF) $query");
	$mongod->snapshot;
	$node->safe_psql('postgres', $query);
	return (join(' ', $plan =~ /"(\w+)" : \{ "\$in" : "keys of the outer rows" \}/g), $mongod->changes->{documents});
}
is_batched("$pairs JOIN pairs p ON p.a = k.a AND p.b = k.b", 2, 'two keys');
my ($keys, $documents) = keys_asked("$pairs JOIN pairs p ON p.a = k.a AND p.b = k.b");
is($keys, 'a b', 'both are asked for');
cmp_ok($documents, '<=', 800, "only documents with both of a batch's values come: $documents");
is_batched("$pairs LEFT JOIN pairs p ON k.b = p.b AND k.a = p.a AND p.t <> 'value 3'", 2, 'left join by two keys');
is_batched("$pairs LEFT JOIN pairs p ON p.a = k.a AND p.b = k.b AND p.t = k.t", 2, 'three keys of several types');
is_batched('SELECT count(*), sum(n) FROM pair_keys k WHERE EXISTS (SELECT 1 FROM pairs p WHERE p.a = k.a AND p.b = k.b)', 2, 'semijoin by two keys');
is_batched('SELECT count(*), sum(n) FROM pair_keys k WHERE NOT EXISTS (SELECT 1 FROM pairs p WHERE p.a = k.a AND p.b = k.b)', 2, 'antijoin by two keys');
is_batched("$pairs JOIN pairs p ON p.a = k.a AND p.b = k.b WHERE k.n = 50", 0, 'one of two keys is NULL');
is_batched("$pairs JOIN pairs p ON p.a = k.a AND p.a = k.b", 1, 'two keys of one column');
is((keys_asked("$pairs JOIN pairs p ON p._id = k.n AND p.a = k.a"))[0], '_id', 'no more than the key that finds one document');

# documents are read no longer than rows wait for one
$node->safe_psql('postgres', q{CREATE FOREIGN TABLE colors (_id int, color int OPTIONS (indexed 'true')) SERVER mongodb
	OPTIONS (database 'db', collection 'colors', estimated_rows '1000000', fetch_size '1000');
	INSERT INTO colors SELECT g, g % 2 FROM generate_series(1, 20000) g});
$mongod->command('{"createIndexes": "colors", "indexes": [{"key": {"color": 1}, "name": "color"}]}', 'db');
is_batched('SELECT count(*), sum(n) FROM keys WHERE n <= 7 AND EXISTS (SELECT 1 FROM colors WHERE color = 1 / n)', 12, 'semijoin that ends early');
is_batched('SELECT count(*), sum(n) FROM keys WHERE n <= 7 AND NOT EXISTS (SELECT 1 FROM colors WHERE color = 1 / n * 0)', 1, 'antijoin that ends early');

# where a semijoin reads nothing but the key, MongoDB returns each key of an index once
$node->safe_psql('postgres', q{
	CREATE FOREIGN TABLE repeated (_id int, k int, t text, other int) SERVER mongodb OPTIONS (database 'db', collection 'repeated');
	INSERT INTO repeated SELECT g, g / 40, 'text ' || g / 40, g FROM generate_series(1, 20000) g;
	INSERT INTO repeated VALUES (-1, NULL, NULL), (-2, NULL, '0123456789abcdef01234567')});
$mongod->insert('db', 'repeated', '[{"_id": -3, "k": {"$numberLong": "602"}, "t": {"$oid": "0123456789abcdef01234567"}}, {"_id": -4, "k": 602},'
	. ' {"_id": -5, "k": 602.0}, {"_id": -6, "k": {"$numberDecimal": "602.00"}}, {"_id": -7, "k": null, "t": null}, {"_id": -8, "k": -602.0}]');
$mongod->command("{\"createIndexes\": \"repeated\", \"indexes\": [{\"key\": {\"$_\": 1}, \"name\": \"$_\"}]}", 'db') foreach qw(k t);
$node->safe_psql('postgres', q{ANALYZE repeated;
	CREATE TABLE some_keys AS SELECT g AS n, CASE WHEN g % 9 <> 0 THEN g % 700 END AS k,
		CASE g % 7 WHEN 0 THEN '0123456789abcdef01234567' WHEN 1 THEN 'TEXT 5' ELSE 'text ' || g % 600 END AS t FROM generate_series(1, 3000) g;
	ANALYZE some_keys});
my %grouped = (k => qr/"\$group" : \{ "_id" : "\$k" \}/, t => qr/"\$group" : \{ "_id" : "\$t" \}/);
my $kept = 'SELECT count(*), sum(n) FROM some_keys s WHERE';
foreach my $key (qw(k t))
{
	foreach my $exists ("EXISTS (SELECT FROM repeated r WHERE r.$key = s.$key)", "NOT EXISTS (SELECT FROM repeated r WHERE s.$key = r.$key)",
		"s.$key IN (SELECT $key FROM repeated)")
	{
		like($node->safe_psql('postgres', "EXPLAIN (VERBOSE) $kept $exists"), $grouped{$key}, "$exists: grouped");
		is_batched("$kept $exists", 2, $exists);
		cmp_ok((keys_asked("$kept $exists"))[1], '<=', 1300, 'each key once in a batch');
	}
}
foreach my $other ('EXISTS (SELECT FROM repeated r WHERE r.k = s.k AND r.other > 50)', 'EXISTS (SELECT FROM repeated r WHERE r.k = s.k AND r.other > s.n)',
	'EXISTS (SELECT FROM repeated r WHERE r.k = s.k AND r.t = s.t)', 'EXISTS (SELECT FROM repeated r WHERE r.other = s.k)',
	'EXISTS (SELECT FROM repeated r WHERE r._id = s.k)', 's.n IN (SELECT s.n FROM repeated r WHERE r.k = s.k AND r.other <> 7)')
{
	unlike($node->safe_psql('postgres', "EXPLAIN (VERBOSE) $kept $other"), qr/\$group/, "$other: not grouped");
	is_batched("$kept $other", $other =~ /r.(other|_id) = s.k/ ? 1 + ($1 eq '_id') : 2, $other) unless $other =~ /^s.n/;
}
unlike($node->safe_psql('postgres', "SET mongo_fdw.enable_aggregate_pushdown = off; EXPLAIN (VERBOSE) $kept EXISTS (SELECT FROM repeated r WHERE r.k = s.k)"),
	qr/\$group/, 'not without $group');
$node->safe_psql('postgres', q{CREATE FOREIGN TABLE uncollated (k int, t text) SERVER mongodb OPTIONS (database 'db', collection 'repeated', pushdown_disable 'collation');
	ANALYZE uncollated});
unlike($node->safe_psql('postgres', "EXPLAIN (VERBOSE) $kept EXISTS (SELECT FROM uncollated r WHERE r.t = s.t)"), qr/\$group/, 'texts not without a collation');
like($node->safe_psql('postgres', "EXPLAIN (VERBOSE) $kept EXISTS (SELECT FROM uncollated r WHERE r.k = s.k)"), $grouped{k}, 'but integers');
$mongod->insert('db', 'repeated', '[{"_id": -9, "k": [88]}]');
my ($failed, undef, $message) = $node->psql('postgres', "$kept EXISTS (SELECT FROM repeated r WHERE r.k = s.k)");
like($message, qr/could not read field "k" of collection "db.repeated" as type integer\s.*A group of documents gives a value of BSON type Array/,
	'an array is an error');
$node->safe_psql('postgres', "ALTER FOREIGN TABLE repeated OPTIONS (type_mismatch 'null')");
unlike($node->safe_psql('postgres', "EXPLAIN (VERBOSE) $kept EXISTS (SELECT FROM repeated r WHERE r.k = s.k)"), qr/\$group/, 'not if it were NULL');
is_batched("$kept EXISTS (SELECT FROM repeated r WHERE r.k = s.k)", 2, 'as NULL');

# as part of other plans
is_batched('SELECT string_agg((SELECT count(*) FROM keys JOIN points ON id = k WHERE n BETWEEN x * 100 AND x * 100 + 50)::text, \',\')'
	. ' FROM generate_series(1, 5) x', 5, 'again for each outer row');
my ($rows, $finds) = last_row('SELECT count(*) FROM (SELECT id FROM keys JOIN points ON id = k LIMIT 20) s');
is($rows, 20, 'under a LIMIT');
cmp_ok($finds, '<=', 2, 'the first batch is small');
is_batched('SELECT count(*), sum(p.id), sum(q.id) FROM keys JOIN points p ON p.id = k JOIN points q ON q.id = p.id + 1 WHERE n <= 3000',
	4, 'two of them');

# CREATE TABLE AS makes the row's slot own the values, while the same document is still to be
# joined with others
$node->safe_psql('postgres', 'CREATE TABLE made AS SELECT n, k, id, info FROM keys JOIN points ON id = k WHERE n > 10000');
is($node->safe_psql('postgres', q{SELECT count(*), min(info), max(info) FROM made}), '100|info 5|info 5',
	'into a table, and several rows for a document');

# text keys: large ones are sent in smaller batches, and no document can have one of more than 16 MB
$node->safe_psql('postgres', q{
	CREATE FOREIGN TABLE texts (_id int, t text OPTIONS (indexed 'true')) SERVER mongodb
		OPTIONS (database 'db', collection 'texts', estimated_rows '1000000');
	INSERT INTO texts VALUES (1, 'short'), (2, repeat('long', 500000)), (3, repeat('longer', 2000000)), (4, NULL);
	CREATE TABLE long_keys AS SELECT g AS n, CASE g % 4 WHEN 0 THEN 'short' WHEN 1 THEN repeat('long', 500000)
		WHEN 2 THEN repeat('longer', 2000000) ELSE repeat('longest', 2500000) END AS k FROM generate_series(1, 20) g;
	ANALYZE long_keys});
is_batched('SELECT count(*), count(_id), sum(n), sum(_id * n) FROM long_keys LEFT JOIN texts ON t = k', 15, 'long keys');
$node->safe_psql('postgres', q{CREATE FOREIGN TABLE plain_texts (_id int, t text) SERVER mongodb
	OPTIONS (database 'db', collection 'texts', estimated_rows '1000000')});
is_batched('SELECT count(*), count(_id), sum(n), sum(_id * n) FROM long_keys LEFT JOIN plain_texts ON t = k', 15,
	'long keys without an index');

# a table that a constraint has ruled out
is($node->safe_psql('postgres', q{
	CREATE FOREIGN TABLE none (id int OPTIONS (indexed 'true'), CONSTRAINT positive CHECK (id > 0)) SERVER mongodb
		OPTIONS (database 'db', collection 'points');
	SET constraint_exclusion = on;
	SELECT count(*), count(id) FROM keys LEFT JOIN (SELECT * FROM none WHERE id < 0) s ON id = k}), '10100|0', 'nothing inside');

# the other side may be a foreign table too, whose cursor stays open meanwhile
$node->safe_psql('postgres', q{CREATE FOREIGN TABLE first_points (id int, info text) SERVER mongodb
	OPTIONS (database 'db', collection 'points', estimated_rows '3000', fetch_size '700')});
is_batched(q{SELECT count(*), sum(p.id) FROM first_points f JOIN points p ON p.id = f.id + 5 WHERE f.id <= 3000}, 7,
	'over another foreign table');

# errors
$node->safe_psql('postgres', q{CREATE FOREIGN TABLE wrong (id int OPTIONS (indexed 'true'), info bool) SERVER mongodb
	OPTIONS (database 'db', collection 'points', estimated_rows '1000000')});
my ($status, $out, $err) = $node->psql('postgres', 'SELECT count(info) FROM keys JOIN wrong ON id = k');
like($err, qr/could not read field "info" of collection "db.points" as type boolean/, 'a document that does not fit');
($status, $out, $err) = $node->psql('postgres', 'SELECT count(*) FROM keys JOIN points ON id = 1 / (k - 7)');
like($err, qr/division by zero/, 'a key that cannot be computed');
is($node->safe_psql('postgres', "$sum JOIN points ON id = k"), (last_row("$sum JOIN points ON id = k"))[0], 'and all is well again');

unlike($node->safe_psql('postgres', 'SET mongo_fdw.enable_batched_joins = off; EXPLAIN SELECT n FROM keys JOIN points ON id = k'), qr/Batched/,
	'not batched when told not to');
like($node->safe_psql('postgres', 'EXPLAIN (VERBOSE, COSTS OFF) SELECT n, info FROM keys LEFT JOIN points ON id = k AND n > 5'),
	qr/Join Type: Left\s+Join Cond: \(\(keys.n > 5\) AND \(points.id = keys.k\)\).*"filter" : \{ "id" : \{ "\$in" : "keys of the outer rows" \} \}/s,
	'EXPLAIN');

# PostgreSQL 19's advice for plans: what asks for another join gets it
SKIP:
{
	skip 'this PostgreSQL has no pg_plan_advice', 5 if $node->psql('postgres', q{LOAD 'pg_plan_advice'}) != 0;
	my $load = "LOAD 'pg_plan_advice'; " . join(' ', map { "SET enable_$_ = on;" } qw(hashjoin mergejoin nestloop));
	my $explain = 'EXPLAIN (COSTS OFF) SELECT n, info FROM keys JOIN points ON id = k';
	foreach my $row (
		[ 'NO_GATHER(keys)' => qr/Batched Join/, '', 'SET enable_hashjoin = off; SET enable_mergejoin = off;' ],
		[ 'HASH_JOIN(points)' => qr/Hash Join.*keys.*Hash\s.*points/s ],
		[ 'NESTED_LOOP_PLAIN(points)' => qr/Nested Loop.*keys.*points/s ],
		[ 'JOIN_ORDER(points keys)' => qr/Join.*Scan on points.*Scan on keys/s ],
		# pg_plan_advice fails for a batched join below another join
		[ 'NO_GATHER(g)' => qr/Join.*Scan on points/s, 'JOIN generate_series(1, 9) g ON g = length(info)' ])
	{
		my ($advice, $plan, $further, $settings) = (@$row, '', '');
		like($node->safe_psql('postgres', "$load $settings SET pg_plan_advice.advice = '$advice'; $explain $further"), $plan, "advice: $advice");
	}
}

# Of a query that wants the first rows in an order, the outer side has it, and the join keeps it.
$node->safe_psql('postgres', q{
	CREATE INDEX ON keys (n);
	CREATE INDEX ON pair_keys (n);
	CREATE TABLE local_points AS SELECT * FROM points;
	CREATE TABLE local_pairs AS SELECT * FROM pairs;
	ANALYZE});

# Batched without sorting what is joined, and the rows of local tables in their order.
sub is_ordered
{
	my ($query, $name, $settings) = @_;
	my $set = join('', map { "SET $_; " } @{ $settings || [] });
	my $plan = $node->safe_psql('postgres', $set . $query =~ s/(?=\bDECLARE|\bSELECT)/EXPLAIN /r);
	like($plan, qr/^(?!.*->  Sort).*MongoDB Batched Join/s, "$name: batched in order") or diag($plan);
	is($node->safe_psql('postgres', $set . $query),
		$node->safe_psql('postgres', 'SET enable_hashjoin = on; ' . $query =~ s/(points|pairs)\b/local_$1/gr), "$name: rows");
}

is_ordered('SELECT n, k, id, info FROM keys JOIN points ON id = k ORDER BY n LIMIT 20', 'inner join');
is_ordered('SELECT n, k, id, info FROM keys JOIN points ON id = k ORDER BY n DESC LIMIT 700 OFFSET 50', 'inner join of several batches');
is_ordered("SELECT n, k, id, info FROM keys LEFT JOIN points ON id = k AND info <> 'info 7' ORDER BY n LIMIT 333", 'left join');
is_ordered('SELECT n FROM keys WHERE EXISTS (SELECT FROM points WHERE id = k AND id > n) ORDER BY n LIMIT 250', 'semijoin');
is_ordered('SELECT n FROM keys WHERE NOT EXISTS (SELECT FROM points WHERE id = k AND id > n) ORDER BY n LIMIT 250', 'antijoin');
is_ordered('SELECT k.n, c.n FROM (SELECT * FROM keys x WHERE EXISTS (SELECT FROM points WHERE id = k)) k JOIN keys c ON c.k = k.k ORDER BY k.n LIMIT 20',
	'a semijoin whose key is joined with another table', ['enable_sort = off', 'enable_nestloop = on']);
is_ordered('SELECT n, k, id FROM keys LEFT JOIN points ON id = k WHERE k IS NULL OR id IS NULL ORDER BY n LIMIT 90', 'a condition above a left join');
is_ordered('SELECT n, k.a, p._id, p.t FROM pair_keys k LEFT JOIN pairs p ON p.a = k.a AND p.b = k.b ORDER BY n, p._id LIMIT 500', 'several documents a row');
is_ordered('SELECT n, p._id, p.t FROM pair_keys k LEFT JOIN pairs p ON p.a = k.a AND p._id < n * 100 ORDER BY n, p._id LIMIT 60000',
	'more documents than fit into memory', [q{work_mem = '64kB'}, 'enable_sort = off', 'cursor_tuple_fraction = 0.0001']);
is_ordered('SELECT n, (SELECT max(id) FROM (SELECT id FROM keys k JOIN points ON id = k.k WHERE k.n >= x.n ORDER BY k.n LIMIT 3) s) '
	  . 'FROM generate_series(1, 9000, 700) x (n)', 'in a subquery that runs again', ['mongo_fdw.enable_batched_subqueries = off']);
is($node->safe_psql('postgres', q{
	BEGIN;
	DECLARE c SCROLL CURSOR FOR SELECT n, id FROM keys LEFT JOIN points ON id = k ORDER BY n;
	MOVE FORWARD 9000 IN c;
	FETCH 1 FROM c;
	MOVE BACKWARD ALL IN c;
	FETCH 2 FROM c;
	MOVE FORWARD ALL IN c;
	FETCH BACKWARD 1 FROM c;
	COMMIT}), $node->safe_psql('postgres', q{SELECT n, id FROM keys LEFT JOIN local_points ON id = k WHERE n IN (9001, 1, 2, 10100)
	ORDER BY array_position(ARRAY[9001, 1, 2, 10100], n)}), 'a cursor to its end and back');

# each of the first rows sends a find, though most keys are found again later
$node->safe_psql('postgres', 'CREATE TABLE again AS SELECT g AS n, g * 7919 % 2000 AS k FROM generate_series(1, 100000) g; CREATE INDEX ON again (n); ANALYZE again; '
	  . q{CREATE FOREIGN TABLE analyzed (id int OPTIONS (indexed 'true')) SERVER mongodb OPTIONS (database 'db', collection 'points'); ANALYZE analyzed});
my $any = join(' ', map { "SET enable_$_ = on;" } qw(nestloop hashjoin mergejoin));
{
	my $query = 'SELECT n, id FROM again LEFT JOIN analyzed ON id = k ORDER BY n LIMIT 40';
	like($node->safe_psql('postgres', "$any EXPLAIN $query"), qr/Batched Join/, 'the cheapest for 40 rows');
	my @costs = $node->safe_psql('postgres', "$any EXPLAIN SELECT n, a.id, b.id FROM again LEFT JOIN analyzed a ON a.id = k LEFT JOIN analyzed b ON b.id = n % 2000 ORDER BY n LIMIT 100")
	  =~ /^(?:Limit| *->  Custom Scan \(MongoDB Batched Join\))  \(cost=\S+?\.\.(\S+)/mg;
	cmp_ok($costs[0], '<', 2 * $costs[1] * 100 / 100000, 'a thousandth of the rows costs about a thousandth');
	is($node->safe_psql('postgres', "$any $query"), $node->safe_psql('postgres', "$any " . $query =~ s/analyzed/local_points/r), 'their rows');
	$mongod->snapshot;
	$node->safe_psql('postgres', "$any $query");
	is_deeply([ @{ $mongod->changes }{'documents'} ], [50], 'and 50 documents for them');
}

# where all rows are sorted or counted, a LIMIT asks for no fewer at a time
is_batched('SELECT n FROM keys JOIN points ON id = k ORDER BY info LIMIT 1', 5, 'a LIMIT above a sort');
is_batched('SELECT count(*) FROM keys JOIN points ON id = k LIMIT 1', 5, 'a LIMIT above an aggregate');

done_testing();
