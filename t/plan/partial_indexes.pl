# Indexes that lack documents: partial ones, whose plans MongoDB takes for other constants of an
# $or, and wildcard indexes; and conditions that are too many for MongoDB's planner.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('partial_indexes', 'jit = off');
create_server($node, 'mongodb', $mongod);

# each field has an index of values above a limit beside one of all values, which MongoDB takes last
my @limits = (f => '5', n => '5', i => '5', s => '"m"', d => '{"$date": "2020-01-06T00:00:00Z"}');
my @documents;
my @indexes;

while (my ($field, $limit) = splice(@limits, 0, 2))
{
	push @indexes, qq({"key": {"$field": 1}, "name": "part_$field", "partialFilterExpression": {"$field": {"\$gt": $limit}}}),
	  qq({"key": {"$field": 1, "k": 1}, "name": "whole_$field"});
}
foreach my $number (0 .. 599)
{
	my $value = $number % 12;
	my $float = $number % 50 ? "$value.0" : '{"$numberDouble": "NaN"}';
	my $letter = chr(ord('a') + $number % 26);
	my $integer = $number % 7 ? qq(, "i": $value) : '';
	my $day = sprintf('{"$date": "2020-01-%02dT00:00:00Z"}', $value + 1);

	push @documents, qq({"_id": $number, "f": $float, "n": {"\$numberDecimal": "$value"}, "k": @{[ $number % 5 ]}, )
	  . qq("s": "$letter", "d": $day, "w": 0, "p": @{[ $number % 3 ]}$integer});
}
$mongod->insert('test', 'docs', '[' . join(', ', @documents) . ']');
$mongod->command(qq({"createIndexes": "docs", "indexes": [@{[ join ', ', @indexes ]}]}), 'test');

my $columns = '_id int, f float8, n numeric, i int, k int, s text COLLATE "C", d timestamptz, w int, p int';
$node->safe_psql('postgres', qq{
	CREATE SCHEMA foreigners;
	CREATE SCHEMA locals;
	CREATE FOREIGN TABLE foreigners.docs ($columns) SERVER mongodb OPTIONS (database 'test', collection 'docs');
	CREATE TABLE locals.docs AS SELECT * FROM foreigners.docs;
	ANALYZE locals.docs});
my $schemas = MongoFdwTest::Schemas->new($node, $mongod);

# The answer for the second value, after MongoDB has kept a plan for the first.
sub compare
{
	my ($name, $statement, $first, $second) = @_;

	$schemas->{foreigners}->ask(sprintf($statement, $first)) foreach 1 .. 4;
	is($schemas->{foreigners}->ask(sprintf($statement, $second)), $schemas->{locals}->ask(sprintf($statement, $second)), $name);
}

my @conditions = (
	[ 'f > %s AND k >= 0', 8, 3 ],
	[ 'f >= %s AND k >= 0', 8, 3 ],
	[ 'n > %s AND k >= 0', 8, 3 ],
	[ 'n IN (%s) AND k >= 0', '8, 9', '3, 4' ],
	[ 'coalesce(i, 99) > %s AND k >= 0', 8, 3 ],
	[ q{NOT (i <> %s AND k <> 3) AND s >= 'a'}, 8, 3 ],
	[ '(i > %s AND n > 0 OR i < 1) AND k >= 0', 8, 3 ],
	[ q{(k = 4 OR s < 'z' AND (i > %s OR i IS NULL))}, 8, 3 ],
	[ 's > %s AND k >= 0', q('p'), q('c') ],
	[ q{(d > %s OR d < '2020-01-02') AND k >= 0}, q('2020-01-08'), q('2020-01-03') ]);

foreach my $case (@conditions)
{
	my ($condition, @values) = @$case;
	my $qualified = $condition =~ s/\b([fniksd])\b(?!')/q.$1/gr =~ s/%q\.s/%s/r;

	foreach my $statement (
		"SELECT count(*), sum(_id) FROM (SELECT * FROM docs WHERE $condition OFFSET 0) s",
		"SELECT count(*) FROM docs WHERE $condition",
		"SELECT p, count(*), sum(i) FROM docs WHERE $condition GROUP BY p ORDER BY p",
		"SELECT count(*), sum(_id) FROM (SELECT _id FROM docs WHERE $condition ORDER BY k, _id LIMIT 300) s",
		"SELECT count(*), sum(o._id) FROM docs o JOIN docs q ON o._id = q._id + 1 WHERE $qualified",
		"SELECT count(*), sum(o._id) FROM docs o JOIN docs q ON o._id = q._id WHERE $qualified",
		"WITH u AS (UPDATE docs SET w = 0 WHERE $condition RETURNING _id) SELECT count(*) FROM u",
		"UPDATE docs SET w = w + 1 WHERE $condition; SELECT sum(w) FROM docs; UPDATE docs SET w = 0")
	{
		compare($statement, $statement, @values);
	}
	compare("parameter: $condition", "PREPARE q AS SELECT count(*) FROM docs WHERE " . ($condition =~ s/%s/\$1/r)
		. "; EXECUTE q(%s); DEALLOCATE q", @values) if $values[0] !~ /,/;
}

# what the user gives as MongoDB's own
foreach my $value (8, 8, 8, 8, 3)
{
	is($schemas->{foreigners}->ask(qq(SELECT count(*) FROM docs WHERE mongo_match(docs, '{"\$or": [{"i": {"\$gt": $value}}, {"k": 3}]}') AND s >= 'a')),
		$schemas->{locals}->ask("SELECT count(*) FROM docs WHERE i > $value OR k = 3"), "mongo_match(), $value");
}

# an AND of many ORs and exclusions, of which MongoDB's planner gets few; of few documents, or
# PostgreSQL would test it
$schemas->{foreigners}->ask(q{ALTER FOREIGN TABLE docs OPTIONS (estimated_rows '10')});
my $many = join(' AND ', map { sprintf '(i = %d OR k <> %d) AND n <> %d', $_ % 12, $_, 12 + $_ } 0 .. 99);
is($schemas->{foreigners}->ask("SELECT count(*), sum(_id) FROM docs WHERE $many"),
	$schemas->{locals}->ask("SELECT count(*), sum(_id) FROM docs WHERE $many"), 'many conditions');
my $plan = $schemas->{foreigners}->ask("EXPLAIN (VERBOSE) SELECT * FROM docs WHERE $many");
is(scalar(() = $plan =~ /"\$or"/g), 4, '... of which four are planned');
like($plan, qr/\{ "\$nor" : \[ \{ "i" :/, '... and the others are not');

# objects of which a wildcard index has no keys
$mongod->insert('test', 'dotted', '[{"_id": 1, "j": {"a": {"x.y": 1}}}, {"_id": 2, "j": {"x.y": 1}}, {"_id": 3, "j": {"a": 5}}, '
	  . '{"_id": 4, "j": {"a": {}}}, {"_id": 5, "j": {"a": {"x.y": 1, "z": 2}}}, {"_id": 6, "j": {"a": [{"x.y": 1}]}}, {"_id": 7}]');
$mongod->command('{"createIndexes": "dotted", "indexes": [{"key": {"j.$**": 1}, "name": "wildcard"}]}', 'test');
$schemas->{foreigners}->ask(q{CREATE FOREIGN TABLE foreigners.dotted (_id int, j jsonb) SERVER mongodb OPTIONS (database 'test');
	CREATE TABLE locals.dotted AS SELECT * FROM dotted});
foreach my $condition (q{j -> 'a' <> '5'}, q{j ->> 'a' <> '5'}, q{j <> '5'}, q{j ? 'a'}, q{j -> 'a' ? 'z'}, q{j ->> 'a' COLLATE "C" > 'b'},
	q{j -> 'a' = '{"x.y": 1}'}, q{j @> '{"a": {"x.y": 1}}'}, q{j @> '{"a": [{"x.y": 1}]}'}, q{j -> 'a' IS NOT NULL}, q{j IS NOT NULL})
{
	is($schemas->{foreigners}->ask("SELECT _id FROM dotted WHERE $condition ORDER BY _id"),
		$schemas->{locals}->ask("SELECT _id FROM dotted WHERE $condition ORDER BY _id"), "wildcard index: $condition");
}

done_testing();
