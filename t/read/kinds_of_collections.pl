# Collections that are not like others: views with a collation, time series,
# capped ones, those with a validator; a server that forbids scans, members that take
# no writes, and users who may read one collection.

use strict;
use warnings;

use JSON::PP;
use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $set = MongoFdwTest::ReplicaSet->new(1);
my $guarded = MongoFdwTest::Mongod->new(auth => 1);
my $node = new_postgres('kinds');

create_server($node, 'mongodb', $mongod);
create_server($node, 'replica', $set->primary, replica_set => 'rs');
create_server($node, 'immediate', $set->primary, replica_set => 'rs', transactions => 'off');

sub create_table
{
	my ($server, $name, $columns, %options) = @_;
	my $options = join ', ', "database 'db'", map { "$_ '$options{$_}'" } sort keys %options;
	$node->safe_psql('postgres', "CREATE FOREIGN TABLE $name ($columns) SERVER $server OPTIONS ($options)");
}

# refused
#	The statement fails with that SQLSTATE and HINT.  It does not warn of changes, unless the
#	member may have stopped in the midst of them.
sub refused
{
	my ($statement, $sqlstate, $hint) = @_;
	my ($status, undef, $stderr) = $node->psql('postgres', "\\set VERBOSITY verbose\n$statement");
	like($stderr, qr/ERROR:  $sqlstate: .*HINT:  $hint/s, $statement);
	unlike($stderr, qr/WARNING/, '... without a warning') unless $sqlstate eq '08006';
}

# --- views ------------------------------------------------------------------
my $stages = '[{"$match": {"n": {"$lt": 3}}}]';
$mongod->insert('db', 'people', '[' . join(', ', map { "{\"_id\": $_, \"n\": $_, \"name\": \"" . ($_ % 2 ? 'a' : 'A') . '"}' } 0 .. 5) . ']');
$mongod->command("{\"create\": \"few\", \"viewOn\": \"people\", \"pipeline\": $stages, \"collation\": {\"locale\": \"en\", \"strength\": 1}}", 'db');
create_table('mongodb', 'few', '_id int, n int, name text');
create_table('mongodb', 'few_by_pipeline', '_id int, n int, name text', collection => 'people', pipeline => $stages);
my $by_name = q{SELECT _id FROM %s WHERE name = 'A' ORDER BY _id};
is($node->safe_psql('postgres', 'SELECT count(*) FROM few WHERE n > 0'), '2', 'a view with a collation');
refused(sprintf($by_name, 'few'), '0A000', 'A view that has a collation compares text only by that\.');
is($node->safe_psql('postgres', 'SET mongo_fdw.enable_pushdown = off; ' . sprintf($by_name, 'few')), "0\n2", 'one of the ways around it');
is($node->safe_psql('postgres', sprintf($by_name, 'few_by_pipeline')), "0\n2", 'the other one');
refused($_, '42809', 'MongoDB writes to no view')
  foreach 'INSERT INTO few VALUES (7, 1, \'a\')', 'UPDATE few SET n = 1', 'DELETE FROM few WHERE n = 1 RETURNING n', 'TRUNCATE few';

# --- default collations: what the user wrote means the same in every query -----
my $by_ci = '"collation": {"locale": "en", "strength": 1}';
my $words = join ', ', map { "{\"_id\": \"$_\", \"t\": \"$_\"}" } 'a', 'B', 'c';
$mongod->command("{\"create\": \"ci\", $by_ci}", 'db');
$mongod->command('{"insert": "ci", "documents": [{"_id": 1, "t": "a"}, {"_id": 2, "t": "A"}, {"_id": 3, "t": "b"}, {"_id": 4, "t": "B"}, {"_id": 5, "t": "c"}]}', 'db');
$mongod->command("{\"create\": \"clustered\", \"clusteredIndex\": {\"key\": {\"_id\": 1}, \"unique\": true}, $by_ci}", 'db');
$mongod->command("{\"insert\": \"clustered\", \"documents\": [$words]}", 'db');
create_table('mongodb', 'ci', '_id int, t text COLLATE "C"');
create_table('mongodb', 'ci_groups', q{t text OPTIONS (path '_id') COLLATE "C", n int}, collection => 'ci', pipeline => '[{"$group": {"_id": {"$toLower": "$t"}, "n": {"$sum": 1}}}]');
create_table('mongodb', 'ci_match', '_id int, t text COLLATE "C"', collection => 'ci', pipeline => '[{"$match": {"t": "a"}}]');
create_table('mongodb', 'clustered', '_id text COLLATE "C", t text COLLATE "C"');
create_table('mongodb', 'people_match', '_id int, name text', collection => 'people', pipeline => '[{"$match": {"name": "a"}}]');
my $matched = q{mongo_match(ci, '{"t": "a"}')};
my @means = (['SELECT count(*) FROM ci_groups', 3], [q{SELECT count(*) FROM ci_groups WHERE t <> 'z'}, 3], ['SELECT count(DISTINCT t), max(t) FROM ci_groups', '3|c'],
	[q{SELECT string_agg(t, '' ORDER BY t) FROM ci_match WHERE t > '' AND t <> 'z'}, 'Aa'], [q{SELECT _id FROM ci_match WHERE t = 'A'}, 2],
	['SELECT t, count(*) FROM ci_match GROUP BY t ORDER BY t', "A|1\na|1"], ["SELECT count(*) FROM ci WHERE $matched", 2],
	["SELECT count(*) FROM ci WHERE $matched AND t <> 'z'", 2], ["SELECT _id FROM ci WHERE $matched AND t IN ('A', 'c')", 2],
	["SELECT count(*) FROM ci JOIN people ON ci._id = people._id AND people.name <> 'z' WHERE $matched", 2],
	["SELECT count(*) FROM people JOIN ci ON ci._id = people._id AND people.name <> 'z' WHERE $matched", 2],
	["BEGIN; DELETE FROM ci WHERE $matched AND t = 'A' RETURNING _id", 2]);
create_table('mongodb', 'people', '_id int, n int, name text');
foreach my $analyzed (0, 1)
{
	$node->safe_psql('postgres', 'ANALYZE ci, ci_groups, ci_match, clustered, people, people_match') if $analyzed;
	is($node->safe_psql('postgres', $_->[0]), $_->[1], "$_->[0]" . ($analyzed ? ', analyzed' : '')) foreach @means;
	$mongod->command('{"insert": "ci", "documents": [{"_id": 2, "t": "A"}]}', 'db');
}
unlike($node->safe_psql('postgres', q{EXPLAIN (VERBOSE) SELECT count(*) FROM people_match WHERE name <> 'b'}), qr/Filter:/, 'without a collation, MongoDB compares text');
# under the simple collation, MongoDB 6.0.5 finds no text in a clustered collection with another
my @clustered = ([q{SELECT _id FROM clustered WHERE _id = 'a'}, 'a'], [q{SELECT string_agg(_id, '') FROM clustered WHERE _id > 'A'}, 'aBc'],
	['SELECT count(*) FROM ci JOIN clustered ON clustered._id = ci.t', 3], [q{UPDATE clustered SET t = 'x' WHERE _id BETWEEN 'a' AND 'b' RETURNING _id}, 'a'],
	[q{DELETE FROM clustered WHERE _id > 'B' RETURNING _id}, "a\nc"]);
is($node->safe_psql('postgres', $_->[0]), $_->[1], $_->[0]) foreach @clustered;

# --- time series ------------------------------------------------------------
my $create_series = '{"create": "series", "timeseries": {"timeField": "at", "metaField": "m"}}';
my $series = 'at timestamptz, m int, v int';
my $insert = q{INSERT INTO %s VALUES ('2024-01-01', 1, 2), ('2024-01-01', 2, 3)};
$mongod->command($create_series, 'db');
create_table('mongodb', 'series', $series);
$node->safe_psql('postgres', sprintf($insert, 'series'));
is($node->safe_psql('postgres', 'UPDATE series SET m = 5 WHERE m = 2; DELETE FROM series WHERE m = 1; SELECT m, v FROM series'), '5|3',
	'time series: what the metaField finds is changed and deleted');
# which MongoDB 6.0.5 may take from what each bucket has of its fields, and lose
create_table('mongodb', 'words', 'at timestamptz, m int, v text COLLATE "C"', collection => 'words');
$mongod->command($create_series =~ s/"series"/"words"/r, 'db');
$node->safe_psql('postgres', q{INSERT INTO words VALUES ('2024-01-01', 1, 'x'), ('2024-01-02', 1, 'y'), ('2024-01-03', 2, 'z')});
foreach my $query ('SELECT count(DISTINCT m), max(m), max(v) FROM words',
	map { "SELECT m, $_ FROM words GROUP BY m ORDER BY m" } 'max(v)', 'max(m)', 'min(m), max(v)', 'max(v), max(at)')
{
	my $pushed = 'SET cpu_tuple_cost = 10; SET cpu_operator_cost = 10; SET mongo_fdw.enable_pushdown = on;';
	is($node->safe_psql('postgres', "$pushed $query"), $node->safe_psql('postgres', $pushed =~ s/on;/off;/r . $query),
		"time series: $query");
	like($node->safe_psql('postgres', "$pushed EXPLAIN (VERBOSE) $query"), qr/"\$group"/, '... in MongoDB');
}
refused(q{UPDATE series SET v = 4 WHERE at = '2024-01-01'}, '0A000', 'MongoDB takes new documents of a time series collection');

$set->primary->command($create_series, 'db');
create_table('replica', 'replica_series', $series, collection => 'series');
create_table('immediate', 'immediate_series', $series, collection => 'series');
my $outside = 'MongoDB writes to a capped or a time series collection only outside of its transactions';
refused($_, '0A000', $outside) foreach sprintf($insert, 'replica_series'), 'UPDATE replica_series SET m = 5', 'TRUNCATE replica_series';
$node->safe_psql('postgres', sprintf($insert, 'immediate_series'));
is($node->safe_psql('postgres', 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT sum(v) FROM replica_series; COMMIT'), '5', 'read in a transaction');

# --- capped -----------------------------------------------------------------
$set->primary->command('{"create": "capped", "capped": true, "size": 2000000}', 'db');
create_table('replica', 'replica_capped', '_id int, v int', collection => 'capped');
create_table('immediate', 'immediate_capped', '_id int, v int', collection => 'capped');
$node->safe_psql('postgres', 'INSERT INTO immediate_capped VALUES (1, 1), (2, 2)');
refused($_, '0A000', $outside)
  foreach 'INSERT INTO replica_capped VALUES (3, 3)', 'UPDATE replica_capped SET v = 5 WHERE _id = 1', 'DELETE FROM replica_capped WHERE _id = 1';
is($node->safe_psql('postgres', 'UPDATE immediate_capped SET v = 5 WHERE _id = 1; SELECT sum(v) FROM replica_capped'), '7', 'a capped collection');
create_server($node, 'snapshots', $set->primary, replica_set => 'rs', read_concern => 'snapshot');
create_table('snapshots', 'snapshots_capped', '_id int, v int', collection => 'capped');
refused($_, '0A000', 'MongoDB reads a capped collection only outside of snapshots')
  foreach 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT sum(v) FROM replica_capped', 'SELECT v FROM snapshots_capped';
is($node->safe_psql('postgres', 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT sum(v) FROM immediate_capped'), '7', 'the way around it');

# --- what MongoDB refuses of documents and queries ----------------------------
create_table('mongodb', 'deep', '_id int, j jsonb');
my ($status, undef, $stderr) = $node->psql('postgres',
	q{\set VERBOSITY verbose
	INSERT INTO deep VALUES (1, (repeat('{"a": ', 190) || '1' || repeat('}', 190))::jsonb)});
like($stderr, qr/ERROR:  54001: .*levels of nesting/s, 'a document with too many levels');

$mongod->command('{"setParameter": 1, "notablescan": true}');
refused('SELECT _id FROM people WHERE n = 3', '55000', "MongoDB's parameter notablescan");
is($node->safe_psql('postgres', 'ANALYZE people; SELECT n FROM people WHERE _id = 3'), '3', 'an index serves that');
$mongod->command('{"setParameter": 1, "notablescan": false}');

# --- validators -------------------------------------------------------------
my $validator = '{"$jsonSchema": {"properties": {"v": {"minimum": 0}}}}';
foreach my $server ('mongodb', 'replica')
{
	($server eq 'mongodb' ? $mongod : $set->primary)->command("{\"create\": \"checked\", \"validator\": $validator}", 'db');
	create_table($server, "checked_$server", '_id int, v int', collection => 'checked');
	create_table($server, "upserted_$server", '_id int, v int', collection => 'checked', insert_mode => 'upsert');
	$node->safe_psql('postgres', "INSERT INTO checked_$server VALUES (1, 1)");
	foreach my $statement ("INSERT INTO checked_$server VALUES (2, -5)", "UPDATE checked_$server SET v = -5", "UPDATE checked_$server SET v = v - _id - 5",
		"UPDATE checked_$server SET v = -5 WHERE _id = 1 RETURNING v", "INSERT INTO upserted_$server VALUES (1, -5)",
		"INSERT INTO upserted_$server VALUES (3, -5) RETURNING v")
	{
		($status, undef, $stderr) = $node->psql('postgres', "\\set VERBOSITY verbose\n$statement");
		like($stderr, qr/ERROR:  23514: .*"specifiedAs" : \{ "minimum" : 0 \}.*"consideredValue" : -5/s, $statement);
	}
}
$node->safe_psql('postgres', 'CREATE ROLE writer; GRANT INSERT ON checked_mongodb TO writer; CREATE USER MAPPING FOR writer SERVER mongodb');
(undef, undef, $stderr) = $node->psql('postgres', 'SET ROLE writer; INSERT INTO checked_mongodb VALUES (2, -5)');
like($stderr, qr/MongoDB error 121\./, 'who may not read is told nothing of documents');

# --- members that take no writes ----------------------------------------------
my $pair = MongoFdwTest::ReplicaSet->new(2);
my $follower = $pair->primary;
create_server($node, 'first', $follower);
create_table('first', 'of_first', '_id int, v int', collection => 't');
$node->safe_psql('postgres', 'INSERT INTO of_first VALUES (1, 1)');
my ($secondary) = grep { $_ != $follower } $pair->members;
create_server($node, 'second', $secondary);
create_table('second', 'of_second', '_id int, v int', collection => 't');
my $follows = 'with the option replica_set the foreign server follows it';
refused($_, '40001', "Retry the transaction\\. .*$follows") foreach 'INSERT INTO of_second VALUES (2, 2)', 'UPDATE of_second SET v = 2';
$node->safe_psql('postgres', "ALTER SERVER second OPTIONS (ADD transactions 'off')");
refused('INSERT INTO of_second VALUES (2, 2)', '08006', ".*$follows");

my $config = $pair->primary->command('{"replSetGetConfig": 1}')->{config};
my $port = $secondary->port;
@$_{qw(hidden priority)} = (JSON::PP::true, 0) foreach grep { $_->{host} =~ /:$port$/ } @{ $config->{members} };
$config->{version}++;
$follower->command('{"replSetReconfig": ' . JSON::PP->new->encode($config) . '}');
my $until = time + 60;
sleep 1 until $secondary->command('{"hello": 1}')->{hidden} || time > $until;
$node->safe_psql('postgres', "ALTER SERVER second OPTIONS (SET transactions 'auto')");
# as libmongoc sees it
refused('INSERT INTO of_second VALUES (2, 2)', '(?:08006|40001)', ".*$follows");
is($node->safe_psql('postgres', 'SELECT count(*) FROM of_second'), '1', 'a hidden member is read');

# --- a user who may read one collection ---------------------------------------
$guarded->insert('db', 'shown', '[{"_id": 1, "a": 2}]');
$guarded->insert('db', 'secret', '[{"_id": 1, "b": 2}]');
$guarded->command('{"createRole": "one", "privileges": [{"resource": {"db": "db", "collection": "shown"}, "actions": ["find"]}], "roles": []}', 'db');
$guarded->command('{"createUser": "one", "pwd": "one", "roles": ["one"]}', 'db');
create_server($node, 'guarded', $guarded, authentication_database => 'db', mapping => { username => 'one', password => 'one' });
($status, undef, $stderr) = $node->psql('postgres', 'CREATE SCHEMA guarded; IMPORT FOREIGN SCHEMA db FROM SERVER guarded INTO guarded');
is($status, 0, 'a user who may not list collections imports') or diag($stderr);
is($node->safe_psql('postgres', q{SELECT string_agg(relname, ' ') FROM pg_class WHERE relnamespace = 'guarded'::regnamespace}), 'shown',
	'those that he may read');
is($node->safe_psql('postgres', 'SELECT a FROM guarded.shown'), '2', 'with their fields');
is($node->safe_psql('postgres', q{SELECT count(*) FROM mongo_fdw_refresh('guarded')}), '0', 'and refreshes them');
refused('IMPORT FOREIGN SCHEMA other FROM SERVER guarded INTO guarded', '42501', 'Give the MongoDB user');

done_testing();
