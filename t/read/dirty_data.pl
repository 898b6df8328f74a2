# Documents that do not fit their columns: conditions, orders, counts and sums go to MongoDB and use
# its indexes under every type_mismatch, and the column __mismatch finds the documents.

use strict;
use warnings;

use MongoFdwTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('dirty_data', 'max_parallel_workers_per_gather = 0', 'jit = off');
my $count = 10000;
my $columns = '_id int, status text, placed timestamptz, total numeric(10,2), paid boolean, note varchar(10)';

create_server($node, 'mongodb', $mongod);
$node->safe_psql('postgres', qq{
	CREATE FOREIGN TABLE documents (__doc jsonb) SERVER mongodb OPTIONS (database 'db', collection 't');
	INSERT INTO documents SELECT jsonb_build_object('_id', g, 'status', (ARRAY['paid', 'open'])[1 + g % 2], 'total', g % 100 / 4.0,
		'placed', jsonb_build_object('\$date', to_char(timestamp '2024-01-01' + g * interval '1 minute', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')),
		'paid', g % 3 = 0, 'note', 'n' || g) FROM generate_series(1, $count) g;
	INSERT INTO documents SELECT d || jsonb_build_object('_id', $count + row_number() OVER ()) FROM jsonb_array_elements('[
		{"status": "paid", "placed": "yesterday", "total": 5}, {"status": "paid", "placed": 5},
		{"status": "paid", "placed": null},
		{"status": "paid", "placed": {"\$date": {"\$numberLong": "9223372036854775807"}}},
		{"status": "paid", "placed": {"\$date": {"\$numberLong": "-9223372036854775808"}}},
		{"status": 1, "total": "many"},
		{"status": "paid", "total": 99999999.99}, {"status": "paid", "total": 99999999.995}, {"total": {"\$numberDouble": "NaN"}},
		{"status": "open", "total": {"\$numberDecimal": "Infinity"}}, {"status": "open", "paid": "yes"},
		{"status": "open", "note": "1234567890   "}, {"status": "open", "note": "12345678901"}, {"status": "open"}]') d;
	CREATE FOREIGN TABLE with_null ($columns) SERVER mongodb OPTIONS (database 'db', collection 't', type_mismatch 'null');
	CREATE FOREIGN TABLE with_skip ($columns) SERVER mongodb OPTIONS (database 'db', collection 't', type_mismatch 'skip');
	CREATE FOREIGN TABLE shown ($columns, __mismatch jsonb) SERVER mongodb OPTIONS (database 'db', collection 't')});
$mongod->command('{"createIndexes": "t", "indexes": [{"key": {"status": 1, "placed": 1}, "name": "by_status"}, {"key": {"total": 1}, "name": "by_total"}]}', 'db');
$node->safe_psql('postgres', 'ANALYZE with_null, with_skip, shown');

# The same in PostgreSQL: what a table reads with pushdown off.
sub copy
{
	$node->safe_psql('postgres', join(';', 'SET mongo_fdw.enable_pushdown = off',
		map { "DROP TABLE IF EXISTS local_$_; CREATE TABLE local_$_ AS SELECT * FROM $_" } qw(with_null with_skip shown)));
}
copy();
my $session = MongoFdwTest::Session->new($node);
# whatever MongoDB can do costs less
$session->ask("SET timezone = 'UTC'; SET cpu_tuple_cost = 10; SET cpu_operator_cost = 10");

sub examined { return $mongod->command('{"serverStatus": 1}', 'admin')->{metrics}{queryExecutor}{scannedObjects} }

# examines
#	Runs the query over the table and its copy; MongoDB must examine so many documents at most, and
#	send so many.
sub examines
{
	my ($table, $most, $sent, $query) = @_;
	my $before = examined();
	my $answer = $session->ask($query =~ s/TABLE/$table/r);
	my $examined = examined() - $before;
	my $received = 0;

	is($answer, $session->ask($query =~ s/TABLE/local_$table/r), "$table: $query");
	cmp_ok($examined, '<=', $most, "... examines $examined documents");
	my $plan = $session->ask('EXPLAIN (ANALYZE, VERBOSE) ' . $query =~ s/TABLE/$table/r);
	$received += $1 while $plan =~ / documents=(\d+)/g;
	cmp_ok($received, '<=', $sent, "... of which $received come");
}

my $all = $count + 100;
foreach my $table (qw(with_null with_skip))
{
	examines($table, 40, 30, "SELECT placed FROM TABLE WHERE status = 'paid' ORDER BY placed $_ LIMIT 20")
	  foreach '', 'DESC', 'DESC NULLS LAST', 'NULLS FIRST';
	examines($table, 110, 110, 'SELECT _id FROM TABLE WHERE total = 5 ORDER BY _id');
	examines($table, 40, 30, "SELECT _id FROM TABLE WHERE status = 'paid' AND placed IS NOT NULL ORDER BY placed DESC LIMIT 20");
}

# With arrays the index serves fewer queries, and all answers remain.
$node->safe_psql('postgres', qq{INSERT INTO documents SELECT d || jsonb_build_object('_id', $count + 100 + row_number() OVER ())
	FROM jsonb_array_elements('[{"status": "paid", "placed": [{"\$date": "2030-01-01T00:00:00Z"}]},
		{"status": ["paid"], "placed": {"\$date": "2025-01-01T00:00:00Z"}}, {"status": "paid", "placed": []}, {"total": [1, "x"]}]') d});
copy();
foreach my $table (qw(with_null with_skip))
{
	examines($table, $all, 40, "SELECT placed FROM TABLE WHERE status = 'paid' ORDER BY placed DESC LIMIT 20");
	examines($table, $all, 2, "SELECT count(*) FROM TABLE WHERE status = 'paid'");
	examines($table, $all, 2, "SELECT count(*), count(total), sum(total), max(placed), min(placed) FROM TABLE");
	examines($table, $all, 8, 'SELECT status, count(*), sum(total), max(placed) FROM TABLE GROUP BY status ORDER BY 1');
	examines($table, $all, 8, "SELECT paid, count(*) FROM TABLE WHERE placed < '2024-01-04' GROUP BY 1 ORDER BY 1");
	examines($table, $all, 2, "SELECT count(*) FROM TABLE WHERE $_")
	  foreach "placed IS NULL", "NOT placed < '2024-01-04'", "status <> 'paid'", 'paid', 'NOT paid', 'paid IS NOT TRUE', "note LIKE '123%'",
	  'total IS NULL', 'total > 20', "status IS DISTINCT FROM 'paid'", "note IN ('n7', '1234567890')", 'note IS NULL', 'length(note) > 5';
	examines($table, $all, 20, 'SELECT total, _id FROM TABLE ORDER BY total DESC, _id LIMIT 20');
}
examines('shown', $all, 2, "SELECT count(*) FROM TABLE WHERE __mismatch IS $_") foreach 'NULL', 'NOT NULL';
examines('shown', $all, 16, "SELECT * FROM TABLE WHERE __mismatch IS NOT NULL ORDER BY _id");
examines('shown', $all, 16, "SELECT e->>'field', e->>'type', count(*) FROM TABLE, jsonb_array_elements(__mismatch) e
	WHERE __mismatch IS NOT NULL GROUP BY 1, 2 ORDER BY 1, 2");
is($session->ask('SELECT count(*) FROM with_skip') + $session->ask('SELECT count(*) FROM shown WHERE __mismatch IS NOT NULL'), $count + 18,
	"'skip' leaves out what __mismatch shows");

# a String with invalid UTF-8, which drivers do not write, does not fit, and no test of it fails
run_program('invalid values are written', 'read/insert_invalid.py', $mongod->uri);
$node->safe_psql('postgres', qq{CREATE FOREIGN TABLE invalid_$_ (_id int, t text, v varchar(5) OPTIONS (path 't'), n name OPTIONS (path 't'), d text)
	SERVER mongodb OPTIONS (database 'db', collection 'invalid', type_mismatch '$_')}) foreach 'null', 'skip';
is($session->ask("SELECT count(*) FROM invalid_null WHERE $_ IS NULL"), 4, "$_ is NULL") foreach 't', 'v', 'n';
is($session->ask("SELECT count(*) FROM invalid_null WHERE $_ = 'abc' AND $_ > 'a' AND $_ LIKE 'a%'"), 1, "$_ is not NULL") foreach 't', 'v', 'n';
$session->ask("CREATE VIEW visible WITH (security_barrier) AS SELECT * FROM invalid_skip WHERE d = 'seen'");
is($session->ask("SELECT n FROM visible"), 'abc', 'nor does it reveal hidden documents');

$node->safe_psql('postgres', "ALTER FOREIGN TABLE invalid_null ADD COLUMN __mismatch jsonb");
is($session->ask("SELECT __mismatch->0->'value' FROM invalid_null WHERE _id = 4"), '[7, []]', 'an array with other keys');
unlike(slurp_file($node->logfile), qr/invalid array/, 'without messages of libbson');

# documents that libbson does not accept, though MongoDB stores them
$node->safe_psql('postgres', qq{CREATE FOREIGN TABLE broken_$_ (_id int, a int, b jsonb, __doc jsonb)
	SERVER mongodb OPTIONS (database 'db', collection 'broken', type_mismatch '$_')}) foreach qw(error null);
$node->safe_psql('postgres', q{CREATE FOREIGN TABLE broken_skip (_id int, a int, b bytea)
	SERVER mongodb OPTIONS (database 'db', collection 'broken', type_mismatch 'skip');
	CREATE FOREIGN TABLE broken_shown (_id int, c bytea OPTIONS (path 'b'), __mismatch jsonb) SERVER mongodb OPTIONS (database 'db', collection 'broken')});
is($session->ask("SELECT string_agg(a::text, ' ' ORDER BY _id) FROM broken_error"), '0 1 2', 'what comes before is read');
my (undef, undef, $broken) = $node->psql('postgres', "\\set VERBOSITY verbose\nSELECT b FROM broken_error WHERE _id = 1");
like($broken, qr/08P01: could not read field "b" of collection "db\.broken".*_id 1 is not valid BSON/s, 'the error names the document');
is($session->ask("SELECT string_agg(concat_ws(' ', _id, a, b IS NULL, __doc IS NULL), ', ' ORDER BY _id) FROM broken_null"),
	'0 0 f f, 1 1 t t, 2 2 t t', "'null'");
is($session->ask("SELECT string_agg(_id || ' ' || (b = 'ab')::text, ', ') FROM broken_skip"), '0 true', "'skip'");
is($session->ask("SELECT string_agg(concat_ws(' ', _id, __mismatch), ', ' ORDER BY _id) FROM broken_shown WHERE __mismatch IS NOT NULL"),
	'1 [{"type": "invalid", "field": "b"}], 2 [{"type": "invalid", "field": "b"}]', '__mismatch');
is(($node->psql('postgres', "ANALYZE broken_error; CREATE SCHEMA i; IMPORT FOREIGN SCHEMA db LIMIT TO (broken) FROM SERVER mongodb INTO i"))[0], 0, 'ANALYZE and IMPORT');

# Of repeated keys the first one counts, whatever is read and wherever it is tested.
$node->safe_psql('postgres', qq{CREATE TYPE inner_document AS (b int, c int);
	CREATE FOREIGN TABLE repeated (_id int, n int, j jsonb, t json OPTIONS (path 'j'), b int OPTIONS (path 'j.b'), first_b int OPTIONS (path 'j.0.b'),
		r inner_document OPTIONS (path 'j'), a inner_document[] OPTIONS (path 'j'), __doc json)
		SERVER mongodb OPTIONS (database 'db', collection 'repeated', type_mismatch 'null');
	CREATE TABLE local_repeated AS TABLE repeated});
is($session->ask("SELECT string_agg(concat_ws(' ', n, left(j::text, 40), left(t::text, 30)), '; ' ORDER BY _id) FROM repeated"),
	'5 {"b": 2, "c": 0} {"b":2,"c":0}; [{"b": 2, "c": 0}, {"b": 2, "c": 0}] [{"b":2,"c":0},{"b":2,"c":0}]; {"k0": 0, "k1": 1, "k2": 2, "k3": 3, "k4 {"k0":0,"k1":1,"k2":2,"k3":3,"',
	'repeated keys: the first ones are read');
is($session->ask('SELECT count(*) FROM repeated, json_object_keys(t) WHERE _id = 2'), 100, '... of many keys, too');
foreach my $value (qw(n b first_b (r).b (a)[2].b), "__doc->>'n'", "__doc#>>'{j,b}'", "j#>>'{}'", "t#>>'{}'", map { ("j$_", "t$_") } "->>'b'", "#>>'{1,b}'", "->>'k7'")
{
	same($_) foreach "SELECT $value FROM TABLE ORDER BY _id", "SELECT DISTINCT $value FROM TABLE ORDER BY 1",
	  map { "SELECT _id FROM TABLE WHERE $value = '$_' ORDER BY 1" } 1, 2, 5, 7, 107;
}
same("SELECT _id FROM TABLE WHERE j \@> '$_'") foreach '{"b": 1}', '{"b": 2}', '[{"b": 1}]', '[{"b": 2}]';
$session->ask("UPDATE repeated SET j = jsonb_set(j, '{b}', '6') WHERE _id = 0 AND random() >= 0");
is($session->ask("SELECT j->'b' FROM repeated WHERE j->>'b' = '6'"), 6, '... and written');

sub same
{
	my ($query) = @_;
	is($session->ask($query =~ s/TABLE/repeated/r), $session->ask($query =~ s/TABLE/local_repeated/r), $query);
}

# values of columns that a role may not read are not shown
$node->safe_psql('postgres', 'CREATE ROLE reader; CREATE USER MAPPING FOR reader SERVER mongodb; GRANT SELECT (_id, __mismatch) ON shown TO reader');
is($node->safe_psql('postgres', "SET ROLE reader; SELECT __mismatch FROM shown WHERE _id = $count + 1"),
	'[{"type": "String", "field": "placed"}]', 'without privilege');
is($node->safe_psql('postgres', "SELECT __mismatch FROM shown WHERE _id = $count + 1"),
	'[{"type": "String", "field": "placed", "value": "yesterday"}]', 'with it');
like($node->safe_psql('postgres', "SET ROLE reader; SELECT histogram_bounds || coalesce(most_common_vals::text, '') FROM pg_stats WHERE tablename = 'shown' AND attname = '__mismatch'"),
	qr/^(?!.*value).*field.*placed/, 'nor in statistics');

done_testing();
