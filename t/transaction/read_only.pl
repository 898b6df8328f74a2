# Read-only transactions, hot standbys and parallel operations: mongo_command() and
# mongo_aggregate() run there what is known to only read, and nothing else.

use strict;
use warnings;

use MongoFdwTest;
use PostgreSQL::Test::Cluster;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $primary = PostgreSQL::Test::Cluster->new('read_only_primary');
$primary->init(allows_streaming => 1);
$primary->start;
$primary->safe_psql('postgres', 'CREATE EXTENSION mongo_fdw');
create_server($primary, 'mongodb', $mongod);
$primary->safe_psql('postgres', q{CREATE FOREIGN TABLE t (id int) SERVER mongodb OPTIONS (database 'db')});
$mongod->insert('db', 't', '[{"_id": 1, "id": 1}, {"_id": 2, "id": 2}]');

$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('read_only_standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;

my @reading = (
	'{"ping": 1}',
	'{"find": "t", "filter": {"id": 1}}',
	'{"count": "t"}',
	'{"distinct": "t", "key": "id"}',
	'{"dbStats": 1}',
	'{"listCollections": 1}',
	'{"listIndexes": "t"}',
	'{"collStats": "t"}',
	'{"serverStatus": 1}',
	'{"killCursors": "t", "cursors": [{"$numberLong": "1"}]}',
	'{"aggregate": "t", "pipeline": [{"$match": {"$expr": {"$eq": ["$id", {"$literal": {"$out": 1}}]}}}, {"$facet": {"a": [{"$count": "n"}]}}], "cursor": {}}',
	'{"aggregate": "t", "pipeline": [], "cursor": {}}',
	'{"explain": {"find": "t"}}',
	'{"explain": {"aggregate": "t", "pipeline": [{"$sort": {"id": 1}}], "cursor": {}}, "verbosity": "executionStats"}',
	'{"explain": {"delete": "t", "deletes": [{"q": {}, "limit": 0}]}, "verbosity": "queryPlanner"}',
	'{"explain": {"aggregate": "t", "pipeline": [{"$out": "x"}], "cursor": {}}, "verbosity": "queryPlanner"}');

my @writing = (
	'{"insert": "t", "documents": [{"id": 3}]}',
	'{"update": "t", "updates": [{"q": {}, "u": {"$set": {"id": 3}}, "multi": true}]}',
	'{"delete": "t", "deletes": [{"q": {}, "limit": 0}]}',
	'{"findAndModify": "t", "query": {}, "remove": true}',
	'{"findandmodify": "t", "query": {}, "remove": true}',
	'{"create": "x"}',
	'{"drop": "t"}',
	'{"dropDatabase": 1}',
	'{"createIndexes": "t", "indexes": [{"key": {"id": 1}, "name": "id"}]}',
	'{"collMod": "t", "validationLevel": "off"}',
	'{"createUser": "x", "pwd": "x", "roles": []}',
	'{"killAllSessions": []}',
	'{"validate": "t"}',
	'{"fsync": 1}',
	'{"profile": 2}',
	'{"profile": -1, "slowms": 77}',
	'{"frobnicate": 1}',
	'{"Count": "t"}',
	'{"aggregate": "t", "pipeline": [{"$out": "x"}], "cursor": {}}',
	'{"aggregate": "t", "pipeline": [{"$match": {}}, {"$merge": {"into": "x"}}], "cursor": {}}',
	'{"aggregate": "t", "pipeline": [{"$out": "x"}], "explain": true}',
	'{"aggregate": "t", "pipeline": [{"$match": {}, "$out": "x"}], "cursor": {}}',
	'{"aggregate": "t", "pipeline": [{"$frobnicate": {}}], "cursor": {}}',
	'{"aggregate": "t", "pipeline": [], "pipeline": [{"$out": "x"}], "cursor": {}}',
	'{"aggregate": "t", "pipeline": {"0": {"$out": "x"}}, "cursor": {}}',
	'{"aggregate": "t", "cursor": {}}',
	'{"mapReduce": "t", "map": "function () { emit(1, 1); }", "reduce": "function () { return 1; }", "out": "x"}',
	'{"mapReduce": "t", "map": "function () { emit(1, 1); }", "reduce": "function () { return 1; }", "out": {"merge": "x", "inline": 1}}',
	'{"explain": {"delete": "t", "deletes": [{"q": {}, "limit": 0}]}}',
	'{"explain": {"aggregate": "t", "pipeline": [{"$out": "x"}], "cursor": {}}}',
	'{"explain": {"aggregate": "t", "pipeline": [{"$merge": "x"}], "cursor": {}}, "verbosity": "executionStats"}',
	'{"explain": {"update": "t", "updates": []}, "verbosity": "queryPlanner", "verbosity": "executionStats"}',
	'{"explain": 1}',
	'{"profile": -1}',
	'{"mapReduce": "t", "map": "function () { emit(1, 1); }", "reduce": "function () { return 1; }", "out": {"inline": 1}}');

my $contents = "mongo_command('mongodb', 'db', '{\"dbHash\": 1}') -> 'collections'";

# in_session
#	Output and errors of statements that go on after an error.
sub in_session
{
	my ($node, @statements) = @_;
	my ($output, $errors);

	$node->psql('postgres', "\\set VERBOSITY verbose\n" . join(";\n", @statements),
		stdout => \$output, stderr => \$errors, on_error_stop => 0);
	return ($output, $errors);
}

my $before = $primary->safe_psql('postgres', "SELECT $contents");
$primary->wait_for_catchup($standby);

# refuses
#	Is each of these statements refused with this SQLSTATE, and nothing changed?
sub refuses
{
	my ($name, $node, $sqlstate, $begin, @statements) = @_;
	my (undef, $errors) = in_session($node, map { ($begin, $_, 'ROLLBACK') } @statements);
	my @errors = split /^(?=psql:\S+ ERROR:)/m, $errors;

	foreach my $statement (@statements)
	{
		like(shift @errors // '', qr/ERROR:  $sqlstate: cannot execute mongo_\w+\(\) with /, "$name: $statement");
	}
	is($primary->safe_psql('postgres', "SELECT $contents"), $before, "$name: and nothing has changed");
}

# command
#	mongo_command() of a literal, which keeps what is written.
sub command
{
	my ($document, $type) = @_;
	return "SELECT mongo_command('mongodb', 'db', '$document'" . ($type ? "::$type" : '') . ')';
}

foreach my $case ([ 'read-only transaction', $primary, 'BEGIN READ ONLY' ], [ 'hot standby', $standby, 'BEGIN' ])
{
	my ($name, $node, $begin) = @$case;

	my ($output, $errors) = in_session($node, $begin, map { command($_) } @reading);
	my @replies = split /\n/, $output;
	like(shift @replies // '', qr/"ok": 1/, "$name: $_") foreach @reading;
	is($errors, '', "$name: no error");
	is((in_session($node, $begin, 'SELECT id FROM t ORDER BY id'))[0], "1\n2", "$name: a foreign table");
	is((in_session($node, $begin, q{SELECT mongo_aggregate('mongodb', 'db', 't', '[{"$count": "n"}]')}))[0], '{"n": 2}',
		"$name: mongo_aggregate()");

	refuses($name, $node, '25006', $begin, map { command($_) } @writing);
	refuses($name, $node, '25006', $begin,
		map { "SELECT mongo_aggregate('mongodb', 'db', 't', '$_')" }
		  '[{"$out": "x"}]', '[{"$match": {}}, {"$merge": "x"}]', '[{"$match": {}, "$out": "x"}]', '[{"$frobnicate": 1}]');
}

refuses('json', $primary, '25006', 'BEGIN READ ONLY', map { command($_, 'json') } $writing[0], $writing[18], $writing[28]);
refuses('default', $primary, '25006', 'SET default_transaction_read_only = on', command($writing[0]));
refuses('SET TRANSACTION', $primary, '25006', 'BEGIN; SET TRANSACTION READ ONLY', command($writing[0]));
refuses('subtransaction', $primary, '25006', 'BEGIN; SAVEPOINT s; SET transaction_read_only = on', command($writing[0]));

# $out runs with the first getMore of a cursor that was opened with an empty batch.
refuses('getMore', $primary, '25006', 'BEGIN READ ONLY', command('{"getMore": {"$numberLong": "1"}, "collection": "t"}'));
like($primary->safe_psql('postgres', q{
	SELECT mongo_command('mongodb', 'db', json_build_object('getMore', json_build_object('$numberLong', id), 'collection', 't'))
	FROM (SELECT mongo_command('mongodb', 'db',
			'{"aggregate": "t", "pipeline": [{"$out": "x"}], "cursor": {"batchSize": 0}}') #>> '{cursor,id}' AS id) cursor}),
	qr/"ok": 1/, 'getMore in another transaction');
isnt($primary->safe_psql('postgres', "SELECT $contents"), $before, 'and it did write');
$primary->safe_psql('postgres', command('{"drop": "x"}'));

# Whoever marks a function wrongly gets no write from a worker.
is($primary->safe_psql('postgres', q{
	SELECT string_agg(DISTINCT format('%s%s', provolatile, proparallel), ',') FROM pg_proc WHERE proname IN ('mongo_command', 'mongo_aggregate')}),
	'vu', 'the functions are volatile and parallel unsafe');
$primary->safe_psql('postgres', q{
	CREATE FUNCTION wrongly_marked(command text) RETURNS jsonb LANGUAGE plpgsql PARALLEL SAFE AS
		'BEGIN RETURN mongo_command(''mongodb'', ''db'', command); END'});
my $force = $primary->pg_version >= 16 ? 'debug_parallel_query' : 'force_parallel_mode';
refuses('parallel operation', $primary, '25000', "SET $force = on", "SELECT wrongly_marked('$writing[0]')");
like((in_session($primary, "SET $force = on", "SELECT wrongly_marked('$reading[2]')"))[0], qr/"n": 2/, 'a worker may read');

# hello can log in as well.
like((in_session($primary, command('{"hello": 1, "speculativeAuthenticate": {}}')))[1],
	qr/a command must not hold "speculativeAuthenticate"/, 'hello may not log in');

is(scalar(() = (in_session($primary, map { command($_) } @writing[ 0, 5, 18, 19, 26, 28 ]))[0] =~ /"ok": 1/g), 6,
	'in other transactions what is refused there works');
done_testing();
