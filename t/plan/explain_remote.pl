# mongo_fdw.explain_remote: MongoDB's own plans in EXPLAIN, of real servers and
# of one that says what it likes.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('explain');
create_server($node, 'mongodb', $mongod);
create_point_table($node, 'mongodb', $mongod, 1000);
$node->safe_psql('postgres', q{ALTER FOREIGN TABLE points ALTER COLUMN id OPTIONS (ADD indexed 'true')});
$mongod->command('{"createIndexes": "points", "indexes": [{"key": {"id": 1}, "name": "id_1"}]}', 'db');

# What EXPLAIN prints about MongoDB's plan, on one line.
sub remote_plan
{
	my ($options, $sql, $before) = @_;
	my $text = $node->safe_psql('postgres', join(';', 'SET mongo_fdw.explain_remote = on',
			$before // (), "EXPLAIN (COSTS OFF$options) $sql"));
	$text =~ s/.*?^\s*Remote Plan:\n//ms or return "no plan: $text";
	$text =~ s/\n\s*/ | /g;
	$text =~ s/^\s+| \| (Planning|Execution) Time.*//g;
	return $text;
}

my $analyze = ', ANALYZE, BUFFERS OFF, TIMING OFF, SUMMARY OFF';

$mongod->snapshot;
$node->safe_psql('postgres', 'EXPLAIN (VERBOSE) SELECT * FROM points WHERE id = 7');
is($mongod->changes->{commands}{explain} // 0, 0, 'off: EXPLAIN asks nothing');

is(remote_plan('', 'SELECT info FROM points WHERE id = 7'),
	'PROJECTION_SIMPLE | ->  FETCH | ->  IXSCAN using id_1, bounds { "id" : [ "[7, 7]" ] }', 'an index scan');
is(remote_plan($analyze, 'SELECT id FROM points WHERE id BETWEEN 7 AND 9'),
	'PROJECTION_SIMPLE | ->  FETCH | ->  IXSCAN using id_1, bounds { "id" : [ "[7, 9]" ] } | '
	  . 'Remote Keys Examined: 3 | Remote Documents Examined: 3', 'with what was examined');
is(remote_plan($analyze, q{SELECT id FROM points WHERE info = 'x'}),
	'PROJECTION_SIMPLE | ->  COLLSCAN filter { "info" : { "$eq" : "x" } } | '
	  . 'Remote Keys Examined: 0 | Remote Documents Examined: 1000', 'a collection scan');
is(remote_plan($analyze, 'SELECT count(*) FROM points WHERE id BETWEEN 7 AND 9'),
	'COUNT | ->  COUNT_SCAN using id_1, bounds { "startKey" : { "id" : 7 }, "startKeyInclusive" : true, '
	  . '"endKey" : { "id" : 9 }, "endKeyInclusive" : true } | Remote Keys Examined: 4 | Remote Documents Examined: 0',
	'a count looks at index keys alone');
like(remote_plan($analyze, 'DELETE FROM points WHERE id = 7 AND info IS NULL'),
	qr/^DELETE \| ->  FETCH filter .* \| ->  IXSCAN using id_1, bounds \{ "id" : \[ "\[7, 7\]" \] \} \| Remote Keys Examined: 1 \| Remote Documents Examined: 1$/,
	'a direct delete');
like(remote_plan('', q{UPDATE points SET info = 'y' WHERE id = 7}), qr/^UPDATE \|.*IXSCAN using id_1/, 'a direct update');
is($node->safe_psql('postgres', q{SELECT count(*) FROM points WHERE id = 7 AND info <> 'y'}), '1', 'which was not done');

my $group = "SET cpu_tuple_cost = 10; SET cpu_operator_cost = 10";
my %engine = $mongod->has_version('5.1')
  ? (internalQueryForceClassicEngine => { true => 'true', false => 'false' })
  : (internalQueryEnableSlotBasedExecutionEngine => { true => 'false', false => 'true' });
my ($parameter) = keys %engine;
foreach my $classic ('true', 'false')
{
	$mongod->command("{\"setParameter\": 1, \"$parameter\": $engine{$parameter}{$classic}}");
	like(remote_plan($analyze, q{SELECT min(id), count(info) FROM points WHERE id < 9}, $group),
		qr/^\$set \{ "r0".* \| ->  (\$group \{.*\} \| ->  .*|GROUP \| ->  .*)IXSCAN using id_1.* \| Remote Keys Examined: 8 \| Remote Documents Examined: 8$/,
		"a pipeline, classic engine: $classic");
	like(remote_plan('', 'SELECT info FROM points WHERE id = 7'), qr/IXSCAN using id_1/, "a scan, classic engine: $classic");
}

# what is known only when it runs, and what nothing is asked for
is(remote_plan('', 'SELECT * FROM points WHERE id = (SELECT 7)') =~ s/ \| InitPlan.*//r,
	'not shown: its parameters are known only when it runs', 'a parameter of execution');
like(remote_plan($analyze, 'SELECT * FROM points WHERE id = (SELECT 7)'), qr/IXSCAN/, 'known after execution');
my $generic = 'SET plan_cache_mode = force_generic_plan; PREPARE p AS SELECT * FROM points WHERE id = $1';
like(remote_plan('', 'EXECUTE p (7)', $generic), qr/"\[7, 7\]"/, 'a parameter that EXPLAIN EXECUTE gives');
is(remote_plan('', 'EXECUTE p (NULL)', $generic), 'not shown: no document can match, so nothing is sent', 'NULL');

like(remote_plan('', 'SELECT * FROM points ORDER BY id DESC LIMIT 3'), qr/Remote Plan 2: \| LIMIT/, 'each of several commands');

# other formats
my $json = $node->safe_psql('postgres', q{SET mongo_fdw.explain_remote = on;
	EXPLAIN (ANALYZE, FORMAT JSON) SELECT info FROM points WHERE id = 7});
like($node->safe_psql('postgres', "SELECT (\$x\$$json\$x\$::jsonb)->0->'Plan'->'Remote Plan'->>2"), qr/IXSCAN/, 'JSON is valid');
is($node->safe_psql('postgres', "SELECT (\$x\$$json\$x\$::jsonb)->0->'Plan'->>'Remote Documents Examined'"), 1, 'with numbers');
my $xml = $node->safe_psql('postgres', q{SET mongo_fdw.explain_remote = on;
	EXPLAIN (FORMAT XML) SELECT info FROM points WHERE id = 7 AND info = '<&'});
like($xml, qr{<Remote-Plan>\s*<Item>PROJECTION_SIMPLE</Item>}, 'XML');
like($xml, qr{&lt;&amp;}, 'escaped');
like($node->safe_psql('postgres', q{SET mongo_fdw.explain_remote = on;
	EXPLAIN (FORMAT YAML) SELECT info FROM points WHERE id = 7}), qr/Remote Plan:\s+- "PROJECTION_SIMPLE"/, 'YAML');

# an error of explain is shown, and only shown
$mongod->fail_command(1, 13, 'explain');
like(remote_plan('', 'SELECT * FROM points WHERE id = 7'),
	qr/^MongoDB cannot explain this command: Unauthorized: /, 'an error');

# a server that says what it likes
my $port = start_fake();
$node->safe_psql('postgres', qq{
	CREATE SERVER fake FOREIGN DATA WRAPPER mongo_fdw OPTIONS (address '127.0.0.1', port '$port');
	CREATE USER MAPPING FOR CURRENT_USER SERVER fake});
my %plans = (
	plan_shards => qr/^shard east \| ->  \$lookup \{.*\}, indexesUsed \[ "_id_" \] \| ->  FETCH filter \{ "x" : 1 \} \| ->  IXSCAN using a_1, bounds \{ "a" : \[ "\[1, 2\]" \] \}, direction backward \| shard west \| ->  FETCH/,
	plan_merge => qr/^SHARD_MERGE \| ->  COLLSCAN \| ->  IDHACK$/,
	plan_long => qr/^FETCH filter \{ "x" : \{ "\$in" : \[ "h.{200,400}\.\.\. \| ->  IXSCAN/,
	plan_nested => qr/^FETCH( \| ->  FETCH){90}$/,
	# as MongoDB 8.0 and its query engine write them
	plan_express => qr/^EXPRESS_IXSCAN using _id_$/,
	plan_slots => qr/^GROUP \| ->  COLLSCAN$/,
	plan_missing => qr/^not shown: MongoDB answered without a winning plan$/,
	plan_of_odd_types => qr/^FETCH$/,
	plan_not_utf8 => qr/^FE.+CH/);
foreach my $name (sort keys %plans)
{
	$node->safe_psql('postgres', "CREATE FOREIGN TABLE $name (id int) SERVER fake OPTIONS (database 'db')");
	like(remote_plan('', "SELECT * FROM $name"), $plans{$name}, $name);
}

$node->safe_psql('postgres', q{CREATE FOREIGN TABLE plan_mutated (id int) SERVER fake OPTIONS (database 'db');
	SET mongo_fdw.explain_remote = on;
	CREATE TABLE seen (outcome text);
	DO $$ DECLARE line text;
	BEGIN
		FOR i IN 1..2000 LOOP
			BEGIN
				FOR line IN EXPLAIN SELECT * FROM plan_mutated LOOP END LOOP;
				INSERT INTO seen VALUES ('shown');
			EXCEPTION WHEN protocol_violation THEN
				INSERT INTO seen VALUES ('refused');
			END;
		END LOOP;
	END $$});
is($node->safe_psql('postgres', 'SELECT string_agg(DISTINCT outcome, \' \'), count(*) FROM seen'),
	'refused shown|2000', '2000 spoilt replies');

done_testing();
