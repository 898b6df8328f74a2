# Parallel scans: the same rows as one process reads, each once, whatever the
# collection holds; one command more than the ranges need.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;
use Time::HiRes qw(time);

my $mongod = MongoFdwTest::Mongod->new;

# MongoDB could do the aggregates alone, but they are to be made of what the scans bring.
my $node = new_postgres('parallel', 'mongo_fdw.enable_aggregate_pushdown = off',
	'max_worker_processes = 16', 'max_parallel_workers = 8', 'max_parallel_workers_per_gather = 2',
	'min_parallel_table_scan_size = 0', 'parallel_setup_cost = 0', 'parallel_tuple_cost = 0');

# Commands cost nothing and documents much, so that small tables are worth it.
create_server($node, 'mongodb', $mongod, fdw_startup_cost => 0, fdw_tuple_cost => 100,
	remote_parallelism => 8);

my $serial = 'SET max_parallel_workers_per_gather = 0;';

sub create_table
{
	my ($name, $columns, $options) = @_;
	$node->safe_psql('postgres',
		"CREATE FOREIGN TABLE $name ($columns) SERVER mongodb OPTIONS (database 'db', estimated_rows '1000000'"
		  . ($options ? ", $options" : '') . ')');
}

# compare
#	The query runs in parallel, and gives what one process gives; with ordered
#	=> 1 in the same order.
sub compare
{
	my ($name, $query, %options) = @_;
	my $settings = $options{settings} // '';
	my $plan = $node->safe_psql('postgres', "$settings EXPLAIN (COSTS OFF) $query");
	my @rows = map { [ split /\n/, $node->safe_psql('postgres', "$_ $query"), -1 ] } ($settings, $serial);

	@rows = map { [ sort @$_ ] } @rows unless $options{ordered};
	my $shape = $options{shape} // qr/Gather.*Parallel Foreign Scan/s;
	like($plan, $shape, "$name: runs in parallel");
	is_deeply($rows[0], $rows[1], "$name: the rows that one process reads");
	is(scalar(@{ $rows[1] }), $options{count}, "$name: as many as there are") if defined $options{count};
}

# --- ordinary documents -----------------------------------------------------
$mongod->fill('db', 'points', 12000, 0);
create_table('points', 'id int, info text', "fetch_size '500'");

my $all = 'SELECT count(*), sum(id), count(info) FROM points';
compare('all documents', 'SELECT id, info FROM points', count => 12000);
compare('aggregates', $all, shape => qr/Finalize Aggregate.*Gather.*Partial Aggregate.*Parallel Foreign Scan/s);
compare('a condition', 'SELECT id, info FROM points WHERE id BETWEEN 100 AND 8000', count => 7901);
compare('conditions checked here', 'SELECT id FROM points WHERE info LIKE \'%7\' AND length(info) = 9');
compare('join', 'SELECT count(*) FROM points a JOIN points b ON a.id = b.id + 1');
compare('two scans in one Gather', 'SELECT count(*) FROM (SELECT id FROM points UNION ALL SELECT id FROM points) u');
compare('without the leader', $all, settings => 'SET parallel_leader_participation = off;');
compare('no worker launched', $all, settings => 'SET max_parallel_workers = 0;');
compare('no worker but one', $all, settings => 'SET max_parallel_workers = 1;');
my $prepared = 'SET plan_cache_mode = force_generic_plan; PREPARE p (int) AS SELECT count(*), sum(id) FROM points WHERE id > $1;';
is($node->safe_psql('postgres', "$prepared EXECUTE p (11000); EXECUTE p (NULL); EXECUTE p (11999)"),
	"1000|11500500\n0|\n1|12000", 'parameters reach the workers');

is($node->safe_psql('postgres', 'SELECT count(*) FROM (SELECT id FROM points LIMIT 3) s;' x 20 . $all),
	"3\n" x 20 . '12000|72006000|12000', 'queries that stop early');
is($node->safe_psql('postgres', 'SET enable_material = off; SET enable_hashjoin = off; SET enable_mergejoin = off;'
		  . ' SELECT k, n FROM generate_series(1, 3) k, LATERAL (SELECT count(*) AS n FROM points WHERE id <= 100 * k) s'),
	"1|100\n2|200\n3|300", 'rescans with parameters');
$node->safe_psql('postgres', 'CREATE FUNCTION counted() RETURNS bigint LANGUAGE plpgsql VOLATILE AS '
	  . '$$ DECLARE n bigint; BEGIN SELECT count(*) INTO n FROM points; RETURN n; END $$');
is($node->safe_psql('postgres', 'SELECT counted() FROM generate_series(1, 3)'), "12000\n12000\n12000",
	'in a function, time after time');

# Gather is read again for each outer row
my $inner = 'SET enable_material = off; SET enable_hashjoin = off; SET enable_mergejoin = off;';
compare('rescans', 'SELECT k, count(*), sum(id) FROM generate_series(1, 4) k LEFT JOIN points ON id % 4 = k % 3 GROUP BY k',
	settings => $inner, count => 4);

# --- what is sent -----------------------------------------------------------
$mongod->snapshot;
$node->safe_psql('postgres', $all);
my $commands = $mongod->changes->{commands};
is($commands->{aggregate}, 1, 'one command finds the ranges');
is($commands->{find}, 12, 'a find for each of four ranges for each of three participants');
ok(!grep({ !/^(find|aggregate|getMore|hello|isMaster|ismaster)$/ } keys %$commands), 'and nothing else but the rest of them')
  or diag(explain($commands));

$mongod->snapshot;
$node->safe_psql('postgres', "EXPLAIN $all");
is_deeply($mongod->changes->{commands}, {}, 'planning sends nothing');
is($node->safe_psql('postgres', 'SELECT count(*) FROM points WHERE id = NULL::int'), '0', 'nothing to find');

# --- the order of _id -------------------------------------------------------
$mongod->insert('db', 'ordered', '[' . join(', ', map { '{"_id": ' . (($_ * 7919) % 8000) . ", \"n\": $_}" } 0 .. 7999) . ']');
create_table('ordered', '_id int NOT NULL, n int', "fetch_size '100'");
foreach my $direction ('ASC NULLS FIRST', 'DESC NULLS LAST', 'ASC', 'DESC')
{
	compare("ORDER BY _id $direction", "SELECT _id, n FROM ordered WHERE hashint4(n) % 3 = 0 ORDER BY _id $direction", ordered => 1,
		shape => qr/Gather Merge\n\s+Workers Planned: 2\n\s+->\s+Parallel Foreign Scan/);
	compare("with LIMIT, $direction", "SELECT _id FROM ordered WHERE hashint4(n) % 3 = 0 ORDER BY _id $direction LIMIT 50 OFFSET 20",
		ordered => 1, shape => qr/Foreign Scan/, count => 50);
}
$mongod->insert('db', 'ordered_null', '[' . join(', ', map { '{"_id": ' . ($_ == 100 ? 'null' : ($_ * 7919) % 8000) . ", \"n\": $_}" } 0 .. 7999) . ']');
create_table('ordered_null', '_id int, n int', "fetch_size '100'");
compare("a null _id, $_", "SELECT _id, n FROM ordered_null WHERE hashint4(n) % 3 < 3 ORDER BY _id $_", ordered => 1, count => 8000, shape => qr/Foreign Scan/)
  foreach 'ASC NULLS FIRST', 'DESC NULLS LAST', 'ASC', 'DESC';
compare('an order that is not the ranges\'', 'SELECT n FROM ordered ORDER BY n DESC', ordered => 1, shape => qr/Parallel/);

# --- hostile values of _id --------------------------------------------------
my @hostile = (
	(map { ($_, "{\"\$numberLong\": \"" . (5000 + $_) . '"}', "{\"\$numberDouble\": \"$_.5\"}", "{\"\$numberDecimal\": \"$_.25\"}") } 1 .. 200),
	(map { ("\"key $_\"", "\"\$$_\"") } 1 .. 300),
	(map { "{\"a\": $_, \"b\": {\"c\": \"x\"}}" } 1 .. 200),
	(map { "{\"\$date\": {\"\$numberLong\": \"${_}000\"}}" } 1 .. 100),
	(map { "{\"\$timestamp\": {\"t\": $_, \"i\": 1}}" } 1 .. 50),
	(map { sprintf '{"$oid": "%024x"}', $_ * 7919 } 1 .. 200),
	(map { "{\"\$binary\": {\"base64\": \"$_\", \"subType\": \"00\"}}" } 'AAAA' .. 'AAZZ'),
	'true', 'false', 'null', '{"$minKey": 1}', '{"$maxKey": 1}', '{"$numberDouble": "NaN"}',
	'{"$numberDouble": "Infinity"}', '{"$numberDouble": "-Infinity"}', '{}', '""');
my %seen;
@hostile = grep { !$seen{$_}++ } @hostile;
my $count = @hostile;
my $number = 0;
$mongod->insert('db', 'hostile', '[' . join(', ', map { "{\"_id\": $_, \"n\": " . $number++ . '}' } @hostile) . ']');
create_table('hostile', 'n int', "fetch_size '50'");
foreach my $round (1 .. 3)
{
	compare("_id of all types, $round", 'SELECT n FROM hostile', count => $count);
}

# --- a field of one's own choice --------------------------------------------
# arrays, nulls, no such field; served by indexes that lack or repeat documents
my $documents = '[' . join(', ', map {
		my $field = $_ % 7 == 0 ? '' : $_ % 7 == 1 ? ', "f": null' : $_ % 7 == 2 ? ", \"f\": [$_, " . (3000 - $_) . ', null]'
		  : $_ % 7 == 3 ? ", \"f\": \"text $_\"" : $_ % 70 == 4 ? ', "f": {"$minKey": 1}' : $_ % 70 == 5 ? ', "f": []'
		  : ", \"f\": $_";
		"{\"_id\": $_, \"n\": $_$field, \"d\": [{\"e\": $_}, {\"e\": 1}]}" } 1 .. 3000) . ']';
my %indexes = (
	no_index => [],
	plain => [ '{"key": {"f": 1}, "name": "f"}' ],
	sparse => [ '{"key": {"f": 1}, "name": "f", "sparse": true}' ],
	partial => [ '{"key": {"f": 1}, "name": "f", "partialFilterExpression": {"f": {"$gt": 100}}}' ],
	descending => [ '{"key": {"f": -1, "n": 1}, "name": "f"}' ]);
foreach my $index (sort keys %indexes)
{
	$mongod->insert('db', "by_$index", $documents);
	$mongod->command("{\"createIndexes\": \"by_$index\", \"indexes\": [" . join(', ', @{ $indexes{$index} }) . ']}', 'db')
	  if @{ $indexes{$index} };
	create_table("by_$index", 'n int', "parallel_field 'f'");
	compare("parallel_field, $index", "SELECT n FROM by_$index", count => 3000);
}
# the same without arrays, so that the indexes hold scalars and are used
(my $scalars = $documents) =~ s/"f": \[[^\]]*\]/"f": 7/g;
foreach my $index (sort keys %indexes)
{
	$mongod->insert('db', "by_scalar_$index", $scalars);
	$mongod->command("{\"createIndexes\": \"by_scalar_$index\", \"indexes\": [" . join(', ', @{ $indexes{$index} }) . ']}', 'db')
	  if @{ $indexes{$index} };
	create_table("by_scalar_$index", 'n int', "parallel_field 'f'");
	compare("parallel_field of scalars, $index", "SELECT n FROM by_scalar_$index", count => 3000);
}
create_table('by_path', 'n int', "collection 'by_plain', parallel_field 'd.e'");
compare('parallel_field inside an array', 'SELECT n FROM by_path', count => 3000);
create_table('by_nothing', 'n int', "collection 'by_plain', parallel_field 'nowhere'");
compare('a parallel_field that is nowhere', 'SELECT n FROM by_nothing', count => 3000);

$mongod->insert('db', 'dated', '[' . join(', ', map { "{\"n\": $_" . ($_ % 5 ? ', "k": ' . ($_ * 7919) % 3000 : '') . '}' } 1 .. 3000) . ']');
$mongod->command('{"createIndexes": "dated", "indexes": [{"key": {"k": 1}, "name": "k"}]}', 'db');
create_table('dated', 'k int OPTIONS (indexed \'true\'), n int', "parallel_field 'k'");
foreach my $direction ('ASC NULLS FIRST', 'DESC NULLS LAST')
{
	compare("ORDER BY the field, nulls as MongoDB has them, $direction", "SELECT k FROM dated WHERE hashint4(n) % 3 >= -3 ORDER BY k $direction",
		ordered => 1, count => 3000, shape => qr/Gather Merge.*Parallel Foreign Scan/s);
}
compare('nulls elsewhere', 'SELECT k FROM dated WHERE hashint4(n) % 3 >= -3 ORDER BY k', ordered => 1, count => 3000, shape => qr/Foreign Scan/);

# --- collections that are not like others -----------------------------------
create_table('nowhere', 'n int');
compare('no collection', 'SELECT n FROM nowhere', count => 0);
$mongod->insert('db', 'one', '[{"_id": "only", "n": 1}]');
create_table('one', 'n int');
compare('one document', 'SELECT n FROM one', count => 1);
$mongod->command('{"create": "seen", "viewOn": "points", "pipeline": [{"$match": {"id": {"$lte": 500}}}]}', 'db');
create_table('seen', 'id int');
$mongod->snapshot;
compare('a view', 'SELECT id FROM seen', count => 500);
is($mongod->changes->{commands}{find}, 2, 'a view is read by one command, whoever reads it');
$mongod->command('{"create": "capped", "capped": true, "size": 1000000}', 'db');
$mongod->command('{"insert": "capped", "documents": [' . join(', ', map { "{\"n\": $_}" } 1 .. 500) . ']}', 'db');
create_table('capped', 'n int');
compare('a capped collection', 'SELECT n FROM capped', count => 500);
SKIP:
{
	skip 'clustered collections came with MongoDB 5.3', 3 unless $mongod->has_version('5.3');
	$mongod->command('{"create": "clustered", "clusteredIndex": {"key": {"_id": 1}, "unique": true}}', 'db');
	$mongod->command('{"insert": "clustered", "documents": [' . join(', ', map { "{\"_id\": $_, \"n\": $_}" } 1 .. 1000) . ']}', 'db');
	create_table('clustered', 'n int');
	compare('a clustered collection', 'SELECT n FROM clustered', count => 1000);
}
$mongod->command('{"create": "folded", "collation": {"locale": "en", "strength": 1}}', 'db');
$mongod->command('{"insert": "folded", "documents": [' . join(', ', map { "{\"_id\": \"" . ($_ % 2 ? 'K' : 'k') . " $_\", \"n\": $_}" } 1 .. 1000) . ']}', 'db');
create_table('folded', '_id text, n int');
compare('a collection with a collation', 'SELECT n FROM folded', count => 1000);
compare('the same with a comparison of text', "SELECT n FROM folded WHERE _id >= 'K' COLLATE \"C\" AND _id < 'L' COLLATE \"C\"", count => 500,
	settings => 'SET enable_indexscan = on;', shape => qr/Foreign Scan/);
$mongod->command('{"insert": "dropped", "documents": [{"n": 1}]}', 'db');
create_table('dropped', 'n int');
$node->safe_psql('postgres', 'SELECT n FROM dropped');
$mongod->command('{"drop": "dropped"}', 'db');
compare('a collection dropped meanwhile', 'SELECT n FROM dropped', count => 0);
my $long = 'x' x 3000;
$mongod->insert('db', 'long', '[' . join(', ', map { "{\"_id\": \"$long$_\", \"n\": $_}" } 1 .. 400) . ']');
create_table('long', 'n int');
compare('points that have no room', 'SELECT n FROM long', count => 400);

# --- errors and cancels -----------------------------------------------------
$mongod->insert('db', 'mismatch', '[' . join(', ', map { '{"n": ' . ($_ == 4999 ? '"x"' : $_) . '}' } 1 .. 5000) . ']');
create_table('mismatch', 'n int', "fetch_size '100'");
my ($status, $stdout, $stderr) = $node->psql('postgres', "SELECT sum(n) FROM mismatch; $all", on_error_stop => 0);
like($stderr, qr/ERROR: .*"n"/, 'an error in any of the processes is the query\'s');
is($stdout, '12000|72006000|12000', 'and the session goes on');
$mongod->fail_command(1, 8000, 'find');
($status, $stdout, $stderr) = $node->psql('postgres', "$all; $all", on_error_stop => 0);
like($stderr, qr/could not read collection/, 'an error of MongoDB\'s likewise');
is($stdout, '12000|72006000|12000', 'and the session goes on');
$mongod->fail_command(1, 239, 'find');
($status, $stdout, $stderr) = $node->psql('postgres', "\\set VERBOSITY verbose\n$all");
like($stderr, qr/72000.*minSnapshotHistoryWindowInSeconds/s, 'a snapshot that MongoDB no longer has');
$mongod->fail_command(1, 8000, 'aggregate');
is($node->safe_psql('postgres', $all), '12000|72006000|12000', 'a collection that cannot be split is read by one process');
$mongod->fail_command(1, undef, 'aggregate');
is($node->safe_psql('postgres', $all), '12000|72006000|12000', 'a broken connection is replaced');

foreach my $blocked ('aggregate', 'find')
{
	$mongod->block_commands(20000, $blocked);
	my $start = time;
	($status, $stdout, $stderr) = $node->psql('postgres', "SET statement_timeout = 700; $all");
	like($stderr, qr/statement timeout/, "a cancel while processes wait for $blocked");
	cmp_ok(time - $start, '<', 10, 'ends them at once');
	$mongod->unblock_commands;
}
is($node->safe_psql('postgres', $all), '12000|72006000|12000', 'afterwards all is well');

# a worker that somebody ends, while it waits
$mongod->block_commands(20000, 'find');
my $ended = background_query($node, 'SET parallel_leader_participation = off; ' . "$all; SELECT 'on';");
$node->poll_query_until('postgres', 'SELECT count(*) = 2 FROM pg_stat_activity WHERE backend_type = \'parallel worker\'')
  or die 'no workers';
$node->safe_psql('postgres', 'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = \'parallel worker\' LIMIT 1');
(undef, $stdout, $stderr) = $ended->finish;
$mongod->unblock_commands;
like($stderr, qr/terminating/, 'a worker that is terminated ends the query');
is($stdout, "on\n", 'and not the session');

# --- overlap ----------------------------------------------------------------
my $proxy = MongoFdwTest::helper('record', port => $mongod->port);
create_server($node, 'held', $mongod, port => $proxy, fdw_startup_cost => 0, fdw_tuple_cost => 100, remote_parallelism => 8);
$node->safe_psql('postgres', q{CREATE FOREIGN TABLE held (id int) SERVER held
	OPTIONS (database 'db', collection 'points', estimated_rows '1000000', fetch_size '1000')});
foreach my $case ([ $serial, '', 'one process waits alone' ], [ '', 1, 'three participants wait at the same time' ])
{
	my ($settings, $together, $name) = @$case;

	MongoFdwTest::helper('hold', port => $proxy, count => 3, name => 'find');
	is($node->safe_psql('postgres', "$settings SELECT sum(id) FROM held"), '72006000', "$name: the sum");
	is(MongoFdwTest::helper('held_enough', port => $proxy) ? 1 : '', $together, $name);
}

# --- snapshots and transactions ---------------------------------------------
my $set = MongoFdwTest::ReplicaSet->new(1);
my $primary = $set->primary;
create_server($node, 'replica', $primary, replica_set => 'rs', fdw_startup_cost => 0, fdw_tuple_cost => 100,
	remote_parallelism => 8, enable_aggregate_pushdown => 'false');
$primary->insert('db', 'accounts', '[' . join(', ', map { "{\"_id\": $_, \"n\": 10}" } 1 .. 5000) . ']');
$node->safe_psql('postgres', "CREATE FOREIGN TABLE accounts (_id int, n int) SERVER replica"
	  . " OPTIONS (database 'db', estimated_rows '100000', fetch_size '100')");
compare('a replica set', 'SELECT count(*), sum(n) FROM accounts');
my ($out, $err) = ('', '');
$node->psql('postgres', 'SET client_min_messages = log; SET mongo_fdw.log_remote_query = on; SELECT sum(n) FROM accounts',
	stdout => \$out, stderr => \$err);
my %times = map { $_ => 1 } $err =~ /"atClusterTime" : (\{.*?\} \})/g;
is(scalar(keys %times), 1, 'all ranges are read as of one time') or diag($err);
is(() = $err =~ /"level" : "snapshot"/g, 12, 'each of them');

# money moves between documents all the time, the sum stays
my $moving = background_query($node, 'SET max_parallel_workers_per_gather = 0;'
	  . ' DO $$ BEGIN FOR i IN 1..150 LOOP'
	  . ' UPDATE accounts SET n = n + CASE _id WHEN 1 + i THEN 5 ELSE -5 END WHERE _id IN (1 + i, 5000 - i);'
	  . ' COMMIT; END LOOP; END $$;');
my $sums = $node->safe_psql('postgres', 'SELECT sum(n) FROM accounts;' x 30);
my (undef, undef, $moving_error) = $moving->finish;
is($moving_error, '', 'documents were changed meanwhile');
is($sums, join("\n", ('50000') x 30), 'one snapshot: no change is seen in half');

my $in_transaction = 'BEGIN; UPDATE accounts SET n = n + 1 WHERE _id = 4000; SELECT count(*), sum(n) FROM accounts; ROLLBACK';
is($node->safe_psql('postgres', $in_transaction), '5000|50001', 'what this transaction wrote is seen');
is($node->safe_psql('postgres', "SET parallel_leader_participation = off; $in_transaction"), '5000|50001',
	'also where the leader does not take part');
# nor does a worker run a scan with LIMIT, or a join, over its own connection
$node->safe_psql('postgres', "ALTER SERVER replica OPTIONS (ADD fdw_lookup_cost '0')");
my $force = ($node->safe_psql('postgres', 'SHOW server_version_num') < 160000 ? 'SET force_parallel_mode = on;' : 'SET debug_parallel_query = on;')
  . ' SET mongo_fdw.enable_batched_joins = off; SET enable_nestloop = off; SET enable_hashjoin = off; SET enable_mergejoin = off; BEGIN; UPDATE accounts SET n = n + 1 WHERE _id = 4000;';
my $joined = 'SELECT a.n, b._id FROM accounts a JOIN accounts b ON b._id = a.n WHERE a._id = 4000';
is($node->safe_psql('postgres', "$force SELECT _id, n FROM accounts WHERE _id >= 4000 ORDER BY _id LIMIT 1; ROLLBACK"),
	'4000|11', 'a scan with LIMIT sees what this transaction wrote');
like($node->safe_psql('postgres', "$force EXPLAIN (VERBOSE, COSTS OFF) $joined"), qr/\$lookup/, 'so does a join in MongoDB:');
is($node->safe_psql('postgres', "$force $joined; ROLLBACK"), '11|11', 'its rows');
$node->safe_psql('postgres', "ALTER SERVER replica OPTIONS (DROP fdw_lookup_cost)");
is($node->safe_psql('postgres', 'PREPARE q AS SELECT count(*), sum(n) FROM accounts; SET plan_cache_mode = force_generic_plan;'
		  . ' EXECUTE q; BEGIN ISOLATION LEVEL REPEATABLE READ; EXECUTE q; COMMIT;'),
	"5000|50000\n5000|50000", 'a plan made outside of a snapshot is run inside one');
unlike($node->safe_psql('postgres', 'BEGIN ISOLATION LEVEL REPEATABLE READ; EXPLAIN SELECT sum(n) FROM accounts; COMMIT'),
	qr/Parallel/, 'and inside one, no parallel plan is made');
$node->safe_psql('postgres', "ALTER SERVER replica OPTIONS (ADD read_concern 'local')");
$node->psql('postgres', 'SET client_min_messages = log; SET mongo_fdw.log_remote_query = on; SELECT sum(n) FROM accounts',
	stdout => \$out, stderr => \$err);
unlike($err, qr/atClusterTime/, 'a read concern that was asked for is respected');
is($out, '50000', 'with the right rows');

# --- workers log in by themselves, as the user whose query it is --------------
my $guarded = MongoFdwTest::Mongod->new(auth => 1);
create_server($node, 'guarded', $guarded, fdw_startup_cost => 0, fdw_tuple_cost => 100, remote_parallelism => 8);
$guarded->insert('db', 'secrets', '[' . join(', ', map { "{\"n\": $_}" } 1 .. 3000) . ']');
$node->safe_psql('postgres', 'CREATE FOREIGN TABLE secrets (n int) SERVER guarded OPTIONS (database \'db\', estimated_rows \'100000\', fetch_size \'100\');'
	  . ' CREATE VIEW shown AS SELECT * FROM secrets; CREATE ROLE reader; GRANT SELECT ON shown TO reader;');
compare('with a password', 'SELECT count(*), sum(n) FROM secrets');
is($node->safe_psql('postgres', 'SET ROLE reader; SELECT count(*), sum(n) FROM shown'), '3000|4501500',
	'through a view, as its owner, who has a user mapping');

# --- when it is not chosen --------------------------------------------------
$node->safe_psql('postgres', 'CREATE SERVER usual FOREIGN DATA WRAPPER mongo_fdw OPTIONS (address \'127.0.0.1\', port \''
	  . $mongod->port . '\'); CREATE USER MAPPING FOR CURRENT_USER SERVER usual;'
	  . ' CREATE FOREIGN TABLE usual_points (id int, info text) SERVER usual OPTIONS (database \'db\', collection \'points\', estimated_rows \'1000000\')');
my $explain = 'EXPLAIN SELECT sum(id) FROM usual_points';
unlike($node->safe_psql('postgres', $explain), qr/Parallel/, 'by default MongoDB has no processor to spare');
$node->safe_psql('postgres', "ALTER SERVER usual OPTIONS (ADD remote_parallelism '8')");
like($node->safe_psql('postgres', $explain), qr/Parallel/, 'remote_parallelism says that it has');
$node->safe_psql('postgres', "ALTER FOREIGN TABLE usual_points OPTIONS (ADD remote_parallelism '0')");
unlike($node->safe_psql('postgres', $explain), qr/Parallel/, '0 forbids parallel scans');
unlike($node->safe_psql('postgres', 'EXPLAIN SELECT sum(id) FROM points WHERE id = 5; SET mongo_fdw.enable_pushdown = off; EXPLAIN SELECT sum(id) FROM points'),
	qr/Parallel.*Parallel/s, 'nor are there any with pushdown off');

done_testing();
