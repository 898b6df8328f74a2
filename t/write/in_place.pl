# UPDATE of a part of a nested value changes that part, and nothing else: what
# is beside it keeps its BSON type, and fields that SQL does not see stay.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('in_place', 'log_statement = none');
create_server($node, 'mongodb', $mongod);
$node->safe_psql('postgres', q{
	CREATE FUNCTION tested_here(int) RETURNS bool LANGUAGE plpgsql AS 'BEGIN RETURN true; END';
	CREATE TYPE inner_type AS (x int, "a.b" int);
	CREATE TYPE place AS (city text, zip int, deep inner_type);
	CREATE TYPE whole AS (js json, at point);
	CREATE FOREIGN TABLE nested (_id int, j jsonb, js json, r int[], m int[], c place, cs place[], js_list jsonb[],
			w whole, jsons json[], points point[])
		SERVER mongodb OPTIONS (database 'db', collection 'nested')});

# Int64s that fit an Int32, Doubles without fraction, and fields that are not columns
my $document = '{"_id": 1,
	"j": {"a": {"b": {"$numberLong": "5"}, "c": {"$numberLong": "6"}}, "list": [{"$numberLong": "1"}, 2, {"k": {"$numberLong": "3"}}],
		"when": {"$date": {"$numberLong": "0"}}, "x.y": {"$numberLong": "1"}, "d": {"$numberDouble": "4.0"}, "empty": {}},
	"js": {"z": 1, "a": {"$numberLong": "2"}},
	"r": [{"$numberLong": "1"}, {"$numberLong": "2"}, {"$numberLong": "3"}],
	"m": [[{"$numberLong": "1"}, {"$numberLong": "2"}], [{"$numberLong": "3"}, {"$numberLong": "4"}]],
	"c": {"stray": {"$numberLong": "9"}, "city": "x", "zip": {"$numberLong": "1"}, "deep": {"keep": true, "x": {"$numberLong": "2"}}},
	"cs": [{"city": "p", "stray": 1, "zip": {"$numberLong": "1"}}, {"city": "q", "zip": {"$numberLong": "2"}}],
	"js_list": [{"k": {"$numberLong": "1"}, "l": {"$numberLong": "2"}}, [{"$numberLong": "1"}]],
	"w": {"js": {"z": 1, "a": 2}, "at": [1.5, 2.5]}, "jsons": [{"z": 1, "a": 2}, [1, 2]], "points": [[1.5, 2.5], [3.5, 4.5]]}';

sub load_document
{
	$mongod->command('{"delete": "nested", "deletes": [{"q": {}, "limit": 0}]}', 'db');
	$mongod->insert('db', 'nested', "[$document]");
}

# update: what the assignment has sent; checks that it gave what it gives in an ordinary table
sub update
{
	my ($assignment) = @_;

	load_document();
	$node->safe_psql('postgres', "CREATE TABLE ordinary AS SELECT * FROM nested; UPDATE ordinary SET $assignment");
	$mongod->command('{"profile": 2, "slowms": 0}', 'db');
	$node->safe_psql('postgres', "UPDATE nested SET $assignment WHERE tested_here(_id)");
	$mongod->command('{"profile": 0}', 'db');
	my $profile = $mongod->command('{"find": "system.profile", "filter": {"op": "update"}, "projection": {"command.u": 1, "_id": 0}}', 'db')->{cursor}{firstBatch};
	$mongod->command('{"drop": "system.profile"}', 'db');
	is($node->safe_psql('postgres', 'SELECT * FROM nested'),
		$node->safe_psql('postgres', 'SELECT * FROM ordinary; DROP TABLE ordinary'), "SET $assignment: as in an ordinary table");
	return @$profile ? $profile->[0]{command}{u} : undef;
}

my @cases = (
	# jsonb
	[ q{j = jsonb_set(j, '{a,b}', '7')}, { '$set' => { 'j.a.b' => 7 } } ],
	[ q{j['a']['b'] = '7'}, { '$set' => { 'j.a.b' => 7 } } ],
	[ q{j = jsonb_set_lax(j, '{a,b}', NULL, true, 'delete_key')}, { '$unset' => { 'j.a.b' => JSON::PP::true } } ],
	[ q{j = j - 'd'}, { '$unset' => { 'j.d' => JSON::PP::true } } ],
	[ q{j = j #- '{a,c}'}, { '$unset' => { 'j.a.c' => JSON::PP::true } } ],
	[ q{j = j || '{"new": {"k": [1, null]}, "d": 4.5}'}, { '$set' => { 'j.new' => { k => [ 1, undef ] }, 'j.d' => 4.5 } } ],
	[ q{j = jsonb_set(j, '{list,0}', '"one"')}, { '$set' => { 'j.list.0' => 'one' } } ],
	[ q{j = jsonb_set(j, '{list,2,k}', 'null')}, { '$set' => { 'j.list.2.k' => undef } } ],
	[ q{j['list'][3] = '8'}, { '$set' => { 'j.list.3' => 8 } } ],
	[ q{j = j #- '{list,2}'}, { '$push' => { 'j.list' => { '$each' => [], '$slice' => 2 } } } ],
	[ q{j = jsonb_set(j, '{when}', '{"$date": "2020-01-01T00:00:00Z"}')}, { '$set' => { 'j.when' => { '$date' => '2020-01-01T00:00:00Z' } } } ],
	[ q{j = jsonb_set(j, '{empty,k}', '1')}, { '$set' => { 'j.empty.k' => 1 } } ],
	[ q{j = jsonb_set(j, '{a}', '5')}, { '$set' => { 'j.a' => 5 } } ],
	[ q{j = jsonb_set(j, '{absent,b}', '5')}, undef ],
	[ q{j = j}, undef ],
	[ q{js = js}, { '$set' => { js => { z => 1, a => 2 } } } ],
	# arrays
	[ q{r[2] = 9}, { '$set' => { 'r.1' => 9 } } ],
	[ q{r = r || 9}, { '$set' => { 'r.3' => 9 } } ],
	[ q{r[6] = 9}, { '$set' => { 'r.3' => undef, 'r.4' => undef, 'r.5' => 9 } } ],
	[ q{r = trim_array(r, 2)}, { '$push' => { r => { '$each' => [], '$slice' => 1 } } } ],
	[ q{r = array_remove(r, 1)}, { '$set' => { r => [ 2, 3 ] } } ],
	[ q{r = ARRAY[7, 8, 9]}, { '$set' => { r => [ 7, 8, 9 ] } } ],
	[ q{m[2][1] = 7}, { '$set' => { 'm.1.0' => 7 } } ],
	[ q{js_list[1] = jsonb_set(js_list[1], '{k}', '4')}, { '$set' => { 'js_list.0.k' => 4 } } ],
	[ q{js_list[2] = '[1, 2]'}, { '$set' => { 'js_list.1.1' => 2 } } ],
	# composites
	[ q{c.zip = 5}, { '$set' => { 'c.zip' => 5 } } ],
	[ q{c.deep.x = 5}, { '$set' => { 'c.deep.x' => 5 } } ],
	[ q{c.deep."a.b" = 5}, { '$set' => { 'c.deep' => { x => 2, 'a.b' => 5 } } } ],
	[ q{c.city = NULL, c.zip = (c).zip + 1}, { '$set' => { 'c.zip' => 2 }, '$unset' => { 'c.city' => JSON::PP::true } } ],
	[ q{cs[2].zip = 7}, { '$set' => { 'cs.1.zip' => 7 } } ],
	[ q{c = NULL}, { '$unset' => { c => JSON::PP::true } } ],
	# what has no parts: members of json in another order, a point that is stored as an array
	[ q{w.js = '{"a":2,"z":1}'}, { '$set' => { 'w.js' => { a => 2, z => 1 } } } ],
	[ q{w.at = '(1.5,3.5)'}, { '$set' => { 'w.at' => { type => 'Point', coordinates => [ 1.5, 3.5 ] } } } ],
	[ q{jsons[1] = '{"a":3,"z":1}'}, { '$set' => { 'jsons.0' => { a => 3, z => 1 } } } ],
	[ q{jsons[2] = '[1,3]'}, { '$set' => { 'jsons.1' => [ 1, 3 ] } } ],
	[ q{points[2] = '(3.5,5.5)'}, { '$set' => { 'points.1' => { type => 'Point', coordinates => [ 3.5, 5.5 ] } } } ],
);
foreach my $case (@cases)
{
	my ($assignment, $expected) = @$case;
	my $update = update($assignment);
	is_deeply($update, $expected, "SET $assignment: sends no more than that") or diag(explain($update));
}

# beside what changed nothing does, to the byte
load_document();
$node->safe_psql('postgres', q{CREATE FOREIGN TABLE raw (_id int, __doc json)
	SERVER mongodb OPTIONS (database 'db', collection 'nested', canonical_json 'true')});
my $expected = $node->safe_psql('postgres', 'SELECT __doc FROM raw');
$expected =~ s/"b":\{"\$numberLong":"5"\}/"b":{"\$numberInt":"7"}/;
$expected =~ s/("r":\[[^,]*,)\{"\$numberLong":"2"\}/$1\{"\$numberInt":"9"}/;
$expected =~ s/"city":"x","zip":\{"\$numberLong":"1"\}/"city":"x","zip":{"\$numberInt":"5"}/;
$expected =~ s/"city":"p"/"city":"new"/;
$node->safe_psql('postgres', q{UPDATE nested SET j = jsonb_set(j, '{a,b}', '7'), r[2] = 9, c.zip = 5, cs[1].city = 'new'});
is($node->safe_psql('postgres', 'SELECT __doc FROM raw'), $expected, 'types and fields beside a change stay');

# beyond 200 of an array or object, MongoDB would look for each from the start: written whole
$node->safe_psql('postgres', q{
	CREATE FOREIGN TABLE many (_id int, r int[], m int[], j jsonb, o jsonb, cs place[]) SERVER mongodb OPTIONS (database 'db', collection 'many')});
foreach my $changed (200, 201)
{
	my $longs = join(', ', map { "{\"\$numberLong\": \"$_\"}" } 1 .. 300);
	my $members = join(', ', map { "\"k$_\": {\"\$numberLong\": \"$_\"}" } 1 .. 300);
	my $places = join(', ', map { "{\"zip\": $_, \"stray\": {\"\$numberLong\": \"1\"}}" } 1 .. 300);
	$mongod->insert('db', 'many', "[{\"_id\": 1, \"r\": [$longs], \"m\": [[$longs], [$longs]], \"j\": {\"l\": [$longs], \"stay\": {\"\$numberLong\": \"1\"}}, "
		  . "\"o\": {$members}, \"cs\": [$places]}]");
	my $update = qq{UPDATE %s SET r = (SELECT array_agg(CASE WHEN n <= $changed THEN -x ELSE x END ORDER BY n) FROM unnest(r) WITH ORDINALITY u(x, n)),
			m[1:1][1:$changed] = array_fill(-1, ARRAY[1, $changed]),
			j = jsonb_set(j, '{l}', (SELECT jsonb_agg(CASE WHEN n <= $changed THEN '-1' ELSE x END ORDER BY n) FROM jsonb_array_elements(j -> 'l') WITH ORDINALITY u(x, n))),
			o = (SELECT jsonb_object_agg(k, CASE WHEN substr(k, 2)::int <= $changed THEN '-1' ELSE v END) FROM jsonb_each(o) e(k, v)),
			cs = (SELECT array_agg(row(city, CASE WHEN n <= $changed THEN -1 ELSE zip END, deep)::place ORDER BY n) FROM unnest(cs) WITH ORDINALITY u(city, zip, deep, n))};
	$node->safe_psql('postgres', 'DROP TABLE IF EXISTS ordinary; CREATE TABLE ordinary AS SELECT * FROM many; ' . sprintf($update, 'ordinary') . '; ' . sprintf($update, 'many'));
	is($node->safe_psql('postgres', 'SELECT * FROM many'), $node->safe_psql('postgres', 'SELECT * FROM ordinary'), "$changed changes: as in an ordinary table");
	my $type = sub { $mongod->command("{\"aggregate\": \"many\", \"pipeline\": [{\"\$project\": {\"t\": {\"\$type\": $_[0]}}}], \"cursor\": {}}", 'db')->{cursor}{firstBatch}[0]{t} };
	my $kept = $changed == 200 ? 'long' : 'int';
	is_deeply([ map { $type->($_) } '{"$last": "$r"}', '{"$last": {"$first": "$m"}}', '{"$last": "$j.l"}', '"$j.stay"', '"$o.k300"', '{"$first": "$cs.stray"}' ],
		[ $kept, $kept, $kept, 'long', $kept, 'long' ], '... and what is beside them ' . ($changed == 200 ? 'stays' : 'is written as well'));
}
foreach my $cut (200, 201)
{
	my $longs = join(', ', map { "{\"\$numberLong\": \"$_\"}" } 1 .. 300);
	$mongod->insert('db', 'many', "[{\"_id\": 1, \"r\": [$longs], \"j\": {\"l\": [$longs]}}]");
	$node->safe_psql('postgres', "UPDATE many SET r = trim_array(r, $cut), "
		  . "j = jsonb_set(j, '{l}', jsonb_path_query_array(j, ('\$.l[0 to ' || 299 - $cut || ']')::jsonpath))");
	my $type = $cut == 200 ? 'long' : 'int';
	my $left = $mongod->command('{"find": "many", "filter": {"r.0": {"$type": "' . $type . '"}, "j.l.0": {"$type": "' . $type . '"}}}', 'db')->{cursor}{firstBatch};
	is_deeply([ map { scalar @$_ } $left->[0]{r} // [], $left->[0]{j}{l} // [] ], [ 300 - $cut, 300 - $cut ],
		"$cut elements are cut off " . ($cut == 200 ? 'by $slice' : 'by writing the others'));
}

# jsonb_set() by keys, of members of many types
$node->safe_psql('postgres', q{
	CREATE FOREIGN TABLE json (_id int, j jsonb) SERVER mongodb OPTIONS (database 'db', collection 'json');
	CREATE FOREIGN TABLE raw_json (_id int, __doc json) SERVER mongodb OPTIONS (database 'db', collection 'json', canonical_json 'true')});
my @values = ('{"a": {"b": {"$numberLong": "5"}, "c": {"$numberLong": "6"}}, "z": {"$numberLong": "1"}}', '{"a": 5}', '{"a": null, "k": {"$numberLong": "1"}}',
	'{"k": 1}', '{"a": {"$numberDouble": "2.5"}}', '{}', '{"a": "s"}', '{"a": {}}', '{"a": true}', '{"a": {"b": {"c": {"d": 1}}}}', '{"a": {"b": [1]}}', 'null');
foreach my $assignment (
	q{jsonb_set(j, '{a}', '7')}, q{jsonb_set(j, '{a,b}', '{"$literal": "$z", "when": {"$date": "2020-01-01T00:00:00Z"}}')}, q{jsonb_set(j, '{x}', 'null')},
	q{jsonb_set(j, '{k}', NULL)}, q{jsonb_set(j, '{" a",b}', '1')}, q{jsonb_set(j, '{a,b,c,d,e}', '[]', true)})
{
	my $number = 0;
	$mongod->insert('db', 'json', '[' . join(', ', map { sprintf '{"_id": %d, "j": %s, "stray": {"$numberLong": "1"}}', $number++, $_ } @values) . ']');
	my $where = $assignment =~ /c,d,e/ ? 'WHERE _id <> 10' : '';
	$node->safe_psql('postgres', "DROP TABLE IF EXISTS ordinary; CREATE TABLE ordinary AS SELECT * FROM json; UPDATE ordinary SET j = $assignment $where");
	$node->safe_psql('postgres', "UPDATE json SET j = $assignment $where");
	is($node->safe_psql('postgres', 'SELECT * FROM json ORDER BY _id'), $node->safe_psql('postgres', 'SELECT * FROM ordinary ORDER BY _id'), "$assignment: as in an ordinary table");
}
like($node->safe_psql('postgres', 'SELECT __doc FROM raw_json WHERE _id = 0'), qr/"c":\{"\$numberLong":"6"\}\},"z":\{"\$numberLong":"1"\}.*"stray":\{"\$numberLong":"1"\}/, '... with the types beside it');
is($node->safe_psql('postgres', q{TRUNCATE json; INSERT INTO json VALUES (1, '{"a": 1}'); UPDATE json SET j = jsonb_set(j, '{b}', '2') WHERE _id = 1 RETURNING j}),
	'{"a": 1, "b": 2}', 'with RETURNING too');

done_testing();
