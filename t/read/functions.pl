# mongo_fdw_version(), mongo_command() and mongo_aggregate().

use strict;
use warnings;

use MongoFdwTest;
use Test::More;
use Time::HiRes qw(time);

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('functions');

create_server($node, 'mongodb', $mongod);
$mongod->insert('db', 't', '[' . join(', ', map { "{\"_id\": $_, \"n\": " . ($_ % 3) . '}' } 1 .. 300) . ']');

# gives
#	Is this the answer, on one line?
sub gives
{
	my ($expression, $expected, $name) = @_;
	my ($status, $stdout, $stderr) = $node->psql('postgres', "SELECT $expression");
	is($status == 0 ? $stdout : $stderr, $expected, $name // $expression);
}

# fails
sub fails
{
	my ($sql, $message, $name) = @_;
	my ($status, undef, $stderr) = $node->psql('postgres', $sql);
	ok($status != 0, ($name // $sql) . ': fails');
	like($stderr, $message, ($name // $sql) . ': says why');
}

gives('mongo_fdw_version()', '20100');

# Commands: a literal and json keep the order.
gives("mongo_command('mongodb', 'db', '{\"ping\": 1}') ->> 'ok'", '1.0', 'ping');
gives("mongo_command('mongodb', 'db', '{\"count\": \"t\", \"query\": {\"n\": 1}}') -> 'n'", '100', 'a literal');
gives("mongo_command('mongodb', 'db', json_build_object('count', 't', 'query', json_build_object('n', 1))) -> 'n'",
	'100', 'json');
fails("SELECT mongo_command('mongodb', 'db', '{\"ping\": 1}'::jsonb)",
	qr/function mongo_command\(unknown, unknown, jsonb\) does not exist/, 'jsonb keeps no order');
fails("SELECT mongo_command('mongodb', 'db', '{\"frobnicate\": 1}')", qr/no such command: 'frobnicate'/, 'unknown to MongoDB');
fails("SELECT mongo_command('mongodb', 'db', '$_')", qr/a command must/, $_) foreach ('[]', '{}', '1', 'null');
fails("SELECT mongo_command('mongodb', 'db', '$_')", qr/invalid input syntax for type json/, "not JSON: $_")
  foreach '{"ping": 1', '{"ping": 1,}', '{"ping", 1}', '{,"ping": 1}', '{"ping": 1}}';
fails("SELECT mongo_aggregate('mongodb', 'db', 't', '[,]')", qr/invalid input syntax for type json/, 'no pipeline');
fails("SELECT mongo_command('mongodb', 'db', '{\"$_\": 1}')", qr/cannot be run by mongo_command/, $_)
  foreach qw(logout authenticate saslStart saslContinue);
fails("SELECT mongo_command('mongodb', 'db', '{\"ping\": 1, \"$_\": \"x\"}')", qr/must not hold/, $_) foreach qw($db lsid);
fails("SELECT mongo_command('mongodb', 'd b', '{\"ping\": 1}')", qr/could not run command "ping" in database "d b"/, 'bad database');
gives("mongo_command('mongodb', 'db', NULL::json) IS NULL", 't', 'strict');

# Pipelines.
gives("string_agg(d::text, ' ' ORDER BY d) FROM mongo_aggregate('mongodb', 'db', 't', "
	  . "'[{\"\$group\": {\"_id\": \"\$n\", \"c\": {\"\$sum\": 1}}}]') d",
	'{"c": 100, "_id": 0} {"c": 100, "_id": 1} {"c": 100, "_id": 2}', 'a group');
gives("count(*) FROM mongo_aggregate('mongodb', 'db', 't', '[]'::json)", '300', 'an empty pipeline');
gives("mongo_aggregate('mongodb', 'db', 't', '[{\"\$sort\": {\"n\": -1, \"_id\": -1}}, {\"\$limit\": 1}]') -> '_id'",
	'299', 'the order of sort keys is kept');
gives("mongo_aggregate('mongodb', 'admin', NULL, '[{\"\$currentOp\": {}}, {\"\$limit\": 1}, {\"\$project\": {\"x\": {\"\$literal\": 1}}}]')",
	'{"x": 1}', 'no collection');
SKIP:
{
	skip '$documents came with MongoDB 5.1', 1 unless $mongod->has_version('5.1');
	gives("mongo_aggregate('mongodb', 'db', NULL, '[{\"\$documents\": [{\"x\": 1}, {\"x\": {\"\$oid\": "
		  . "\"5f0000000000000000000001\"}}]}]')", "{\"x\": 1}\n{\"x\": {\"\$oid\": \"5f0000000000000000000001\"}}", 'documents without one');
}
gives("count(*) FROM mongo_aggregate('mongodb', NULL, 't', '[]')", '0', 'NULL for a database');
gives("count(*) FROM mongo_aggregate('mongodb', 'db', 't', '[{\"\$match\": {\"n\": 1}}, {\"\$out\": \"copy\"}]')",
	'0', '$out gives no rows');
gives("count(*) FROM mongo_aggregate('mongodb', 'db', 'copy', '[]')", '100', 'and has written');
fails("BEGIN READ ONLY; SELECT mongo_aggregate('mongodb', 'db', 't', '[{\"\$out\": \"copy\"}]')",
	qr/cannot execute mongo_aggregate\(\) with \$out in a read-only transaction/, 'read-only');
fails("SELECT mongo_aggregate('mongodb', 'db', 't', '{\"\$match\": {}}')", qr/a pipeline must be a JSON array/, 'no array');
fails("SELECT mongo_aggregate('mongodb', 'db', 't', '[{\"\$nope\": 1}]')", qr/Unrecognized pipeline stage/, 'no stage');
gives("x -> '_id' FROM (SELECT mongo_aggregate('mongodb', 'db', 't', '[{\"\$sort\": {\"_id\": 1}}]') x) y LIMIT 1", '1', 'left early');

# Options of the command.
sub with_options
{
	my ($pipeline, $options) = @_;
	return "mongo_aggregate('mongodb', 'db', 't', '$pipeline', '$options')";
}
$mongod->command('{"createIndexes": "t", "indexes": [{"key": {"n": 1}, "name": "by_n"}]}', 'db');
gives(with_options('[{"$match": {"$expr": {"$eq": ["$_id", "$$wanted"]}}}]', '{"let": {"wanted": 7}}') . " -> 'n'", '1', 'let');
gives(with_options("[{\"\$match\": {\"_id\": 1}}]", "{\"$_}") . " -> 'n'", '1', $_)
  foreach 'hint": {"_id": 1}, "allowDiskUse": false', 'hint": "by_n"', 'comment": "of mine"', 'collation": {"locale": "fr"}, "maxTimeMS": 5000',
  'readConcern": {"level": "local"}, "allowDiskUse": true';
gives('count(*) FROM ' . with_options('[]', '{}'), '300', 'none');
gives("count(*) FROM mongo_aggregate('mongodb', 'db', 't', '[]', options => NULL)", '300', 'NULL');
gives("count(*) FROM mongo_aggregate(collection => 't', pipeline => '[]', server => 'mongodb', database => 'db', options => '{\"comment\": \"x\"}')",
	'300', 'by name');
gives('count(*) FROM ' . with_options('[{"$match": {"n": 2}}, {"$out": "copy2"}]', '{"comment": "x"}'), '0', 'with $out');
fails('SELECT ' . with_options('[]', '{"allowDiskuse": true}'),
	qr/mongo_aggregate\(\) has no option "allowDiskuse"\nHINT:  Its options are allowDiskUse, hint, .* and readConcern\./, 'an unknown one');
fails('SELECT ' . with_options('[]', "{\"$_: 1}"), qr/mongo_aggregate\(\) has no option/, $_) foreach 'pipeline"', 'aggregate"', 'cursor"', '$db"', 'explain"';
fails('SELECT ' . with_options('[]', "{\"$_}"), qr/could not read|could not aggregate|must be|wrong type|expected/i, $_)
  foreach 'hint": 5', 'comment": {}, "let": []', 'collation": "fr"', 'maxTimeMS": "5s"', 'maxTimeMS": -1', 'readConcern": "local"';
fails('SELECT ' . with_options('[]', $_), qr/the options of mongo_aggregate\(\) must be a JSON object/, $_) foreach '[]', '1', 'null';
fails('SELECT ' . with_options('[]', '{"hint": "nowhere"}'), qr/hint provided does not correspond.*HINT:  The argument of mongo_aggregate\(\) was sent to MongoDB unchanged/s, 'no such index');
fails('SELECT ' . with_options('[{"$set": {"x": {"$sum": {"$range": [0, 300000]}}}}]', '{"maxTimeMS": 1}'), qr/HINT:  A command's time is limited by its maxTimeMS/, 'maxTimeMS');
fails('SELECT count(*) FROM ' . with_options('[{"$set": {"x": {"$range": [0, 60000]}}}, {"$sort": {"x": 1}}]', '{"allowDiskUse": false}'),
	qr/HINT:  Let MongoDB use temporary files: give allowDiskUse/, 'allowDiskUse');

# A mistake in what the user gave is no matter of pushdown_disable.
foreach ([ 't', '[{"$nope": 1}]' ], [ 't', '[{"$match": {"n": {"$nope": 1}}}]' ], [ 't', '[{"$set": {"n": {"$nope": 1}}}]' ],
	[ 't', '[{"$currentOp": {}}]' ], [ 't', '[{"$documents": []}]' ])
{
	my ($collection, $pipeline) = @$_;
	my (undef, undef, $stderr) = $node->psql('postgres', "SELECT mongo_aggregate('mongodb', 'db', '$collection', '$pipeline')");
	like($stderr, qr/HINT:  The argument of mongo_aggregate\(\) was sent to MongoDB unchanged; the error is in it\./, $pipeline);
	unlike($stderr, qr/pushdown_disable/, 'and nothing else');
}
fails("SELECT mongo_command('mongodb', 'db', '{\"frobnicate\": 1}')", qr/HINT:  The argument of mongo_command\(\) was sent to MongoDB unchanged/, 'a command');

# Names are values: nothing in them is a command.
gives("count(*) FROM mongo_aggregate('mongodb', 'db', 't\", \"pipeline\": [], \"x\": \"', '[]')", '0', 'a hostile collection');

# Who may.
$node->safe_psql('postgres', 'CREATE ROLE other; CREATE ROLE mapped; GRANT USAGE ON FOREIGN SERVER mongodb TO mapped');
foreach my $call ("mongo_command('mongodb', 'db', '{\"ping\": 1}')", "mongo_aggregate('mongodb', 'db', 't', '[]')")
{
	fails("SET ROLE other; SELECT $call", qr/permission denied for foreign server mongodb/, "no USAGE: $call");
	fails("SET ROLE mapped; SELECT $call", qr/user mapping not found for user "mapped", server "mongodb".*HINT:  Use CREATE USER MAPPING FOR mapped SERVER mongodb /s,
		"no mapping: $call");
}
$node->safe_psql('postgres', 'CREATE USER MAPPING FOR mapped SERVER mongodb');
is($node->safe_psql('postgres', "SET ROLE mapped; SELECT mongo_command('mongodb', 'db', '{\"ping\": 1}') ->> 'ok'"),
	'1.0', 'USAGE and a mapping are enough');
$node->safe_psql('postgres', 'CREATE FOREIGN DATA WRAPPER nothing; CREATE SERVER elsewhere FOREIGN DATA WRAPPER nothing');
fails("SELECT mongo_command('elsewhere', 'db', '{\"ping\": 1}')", qr/server "elsewhere" is not a MongoDB server/, 'another wrapper');
fails("SELECT mongo_command('nowhere', 'db', '{\"ping\": 1}')", qr/server "nowhere" does not exist/, 'no server');

# What writes is not rolled back: a warning tells what a transaction, or a savepoint, has run.
my $insert = q{SELECT mongo_command('mongodb', 'db', '{"insert": "lasting", "documents": [{}]}') ->> 'n';};
my $stayed = qr/WARNING:  01000: changes on server "mongodb" were not rolled back\nDETAIL:  /;

# warned
#	What the statements warn of.
sub warned
{
	my ($sql) = @_;
	my (undef, undef, $stderr) = $node->psql('postgres', "\\set VERBOSITY verbose\n$sql", on_error_stop => 0);
	return $stderr =~ s/^psql:\S+ //mgr;
}

is(warned("BEGIN; $insert COMMIT; $insert"), '', 'COMMIT warns of nothing');
is(warned(q{BEGIN; SELECT mongo_command('mongodb', 'db', '{"count": "t"}'); SELECT count(*) FROM mongo_aggregate('mongodb', 'db', 't', '[]'); ROLLBACK}),
	'', 'nor ROLLBACK of what only reads');
like(warned("BEGIN; $insert ROLLBACK"), qr/^${stayed}1 command that may have changed something had been run .*\n[^W]*$/, 'ROLLBACK of one');
like(warned("BEGIN; $insert $insert SELECT count(*) FROM mongo_aggregate('mongodb', 'db', 't', '[{\"\$out\": \"lasting\"}]'); ROLLBACK"),
	qr/^${stayed}3 commands [^W]*$/, '... of three');
my $failed = warned("SELECT mongo_command('mongodb', 'db', '{\"drop\": \"lasting\"}'), 1 / (random() * 0)::int");
like($failed, qr/${stayed}1 command /, 'a statement that fails');
like($failed, qr/ERROR:  22012/, 'with its own error');
is($mongod->command('{"listCollections": 1, "filter": {"name": "lasting"}}', 'db')->{cursor}{firstBatch}[0], undef, 'has done what it says');
unlike(warned(q{BEGIN; SELECT mongo_command('mongodb', 'db', '{"drop": "not there", "writeConcern": 5}'); ROLLBACK}), $stayed, 'a command that MongoDB refuses');
like(warned("BEGIN; $insert SAVEPOINT a; $insert SAVEPOINT b; $insert RELEASE b; ROLLBACK TO a; COMMIT"),
	qr/^${stayed}2 commands [^W]*$/, 'a savepoint warns of its own');
like(warned("BEGIN; SAVEPOINT a; $insert RELEASE a; SAVEPOINT b; $insert RELEASE b; ROLLBACK"), qr/^${stayed}2 commands [^W]*$/, 'released ones are the transaction\'s');
is(warned("BEGIN; $insert SAVEPOINT a; SELECT 1; ROLLBACK TO a; COMMIT"), '', 'one in which nothing was run');
like(warned(q{DO $$ BEGIN FOR i IN 1..3 LOOP BEGIN PERFORM mongo_command('mongodb', 'db', '{"insert": "lasting", "documents": [{}]}');
	RAISE 'x'; EXCEPTION WHEN raise_exception THEN NULL; END; END LOOP; END $$}), qr/^(${stayed}1 command [^W]*){3}$/, 'an exception block, three times');

# One command each, and a cancel is seen.
$mongod->snapshot;
$node->safe_psql('postgres', "SELECT mongo_command('mongodb', 'db', '{\"count\": \"t\"}')");
is($mongod->changes->{commands}{count}, 1, 'sent once');
$mongod->block_commands(5000, 'count');
my $started = time;
fails("SET statement_timeout = '300ms'; SELECT mongo_command('mongodb', 'db', '{\"count\": \"t\"}')",
	qr/canceling statement due to statement timeout/, 'a timeout');
ok(time - $started < 3, 'at once');
$mongod->unblock_commands;

# Names in errors are in the encoding of the database.
$node->safe_psql('postgres', q(CREATE DATABASE japanese ENCODING 'EUC_JP' LOCALE 'C' TEMPLATE template0));
$node->safe_psql('japanese', 'CREATE EXTENSION mongo_fdw; CREATE SERVER mongodb FOREIGN DATA WRAPPER mongo_fdw '
	  . "OPTIONS (address '127.0.0.1', port '" . $mongod->port . "'); CREATE USER MAPPING FOR CURRENT_USER SERVER mongodb");
my $name = "\xe6\x97\xa5\xe6\x9c\xac";
$node->safe_psql('japanese', "SET client_encoding = 'UTF8'; CREATE FOREIGN TABLE f (_id int) SERVER mongodb OPTIONS (database '$name', collection '$name')");
foreach (
	[ "SELECT mongo_command('mongodb', '$name', '{\"$name\": 1}')", qr/CommandNotFound|59/ ],
	[ "BEGIN READ ONLY; SELECT mongo_command('mongodb', '$name', '{\"$name\": 1}')", qr/25006.*read-only/ ],
	[ "SELECT mongo_aggregate('mongodb', '$name', '$name', '[{\"\$$name\": 1}]')", qr/could not read collection "$name\.$name"/ ],
	[ "SELECT mongo_aggregate('mongodb', '$name', '$name', '[{\"\$out\": {\"$name\": 1}}]')", qr/could not aggregate collection "$name\.$name"/ ],
	[ "BEGIN READ ONLY; SELECT mongo_aggregate('mongodb', '$name', '$name', '[{\"\$$name\": 1}]')", qr/25006.*read-only/ ],
	[ "SELECT * FROM f WHERE mongo_match(f, '{\"a\": {\"\$$name\": 1}}')", qr/could not read collection "$name\.$name"/ ])
{
	my ($statement, $expected) = @$_;
	my (undef, undef, $message) = $node->psql('japanese', "\\set VERBOSITY verbose\nSET client_encoding = 'UTF8'; $statement");
	like($message, $expected, $statement =~ s/$name/name/gr);
}

done_testing();
