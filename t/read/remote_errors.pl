# What MongoDB fails on while a command runs, as PostgreSQL's own SQLSTATEs.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('errors');
create_server($node, 'mongodb', $mongod);
$mongod->command('{"insert": "t", "documents": [{"_id": 1, "i": 5, "z": 0, "s": "abc", "d": 1e300, "a": [1, 2], "l": {"$numberLong": "-9223372036854775808"}}]}', 'db');
$node->safe_psql('postgres', q{CREATE FOREIGN TABLE t (_id int, i int, z int, s text, d float8) SERVER mongodb OPTIONS (database 'db')});

my $views = 0;
$node->safe_psql('postgres', q{CREATE FOREIGN TABLE v (_id int, v text) SERVER mongodb OPTIONS (database 'db')});

# Each pipeline or expression fails with the SQLSTATE; both engines where it can.
my @cases = (
	# arithmetic
	[ '22012', '{"$divide": ["$i", "$z"]}' ],
	[ '22012', '{"$mod": ["$i", "$z"]}' ],
	[ '22012', '{"$mod": ["$i", {"$numberDecimal": "0"}]}' ],
	[ '22012', '{"$divide": [1, 0]}' ],
	[ '22003', '{"$toInt": "$d"}' ],
	[ '22003', '{"$toLong": "$d"}' ],
	[ '22003', '{"$toInt": {"$divide": [{"$numberDouble": "Infinity"}, 1]}}' ],
	[ '22003', '{"$toLong": {"$numberDouble": "NaN"}}' ],
	[ '22003', '{"$abs": "$l"}' ],
	[ '2201F', '{"$sqrt": {"$subtract": ["$z", "$i"]}}' ],
	[ '2201F', '{"$pow": ["$z", -1]}' ],
	[ '2201E', '{"$ln": "$z"}' ],
	[ '2201E', '{"$log10": "$z"}' ],
	[ '2201E', '{"$log": [10, 1]}' ],
	# texts
	[ '22P02', '{"$toInt": "$s"}' ],
	[ '22P02', '{"$toDecimal": "$s"}' ],
	[ '22P02', '{"$toDouble": "$s"}' ],
	[ '22P02', '{"$toObjectId": "$s"}' ],
	[ '22011', '{"$substrCP": ["$s", -1, 1]}' ],
	[ '22011', '{"$substrCP": ["$s", 0, -1]}' ],
	[ '22023', '{"$range": [0, 0, "$z"]}' ],
	# dates
	[ '22007', '{"$toDate": "$s"}' ],
	[ '22008', '{"$add": [{"$date": {"$numberLong": "9223372036854775807"}}, 1000]}' ],
	[ '22008', '{"$dateAdd": {"startDate": {"$date": {"$numberLong": "9223372036854775807"}}, "unit": "year", "amount": 1}}' ],
	[ '22008', '{"$dateFromParts": {"year": 99999}}' ],
	[ '22023', '{"$dateTrunc": {"date": {"$date": {"$numberLong": "0"}}, "unit": "day", "timezone": "X/Y"}}' ],
	# a type that the operator does not take
	(map { [ 'HV004', $_, qr/may not fit its column/ ] }
		'{"$add": ["$s", 1]}', '{"$subtract": ["$s", 1]}', '{"$multiply": ["$s", 1]}', '{"$divide": ["$s", 1]}',
		'{"$mod": ["$s", 1]}', '{"$abs": "$s"}', '{"$strLenCP": "$i"}', '{"$concat": ["$s", 1]}', '{"$toLower": "$a"}',
		'{"$trim": {"input": "$i"}}', '{"$regexMatch": {"input": "$i", "regex": "a"}}',
		'{"$dateTrunc": {"date": "$s", "unit": "day"}}', '{"$year": "$s"}', '{"$size": "$s"}', '{"$in": [1, "$s"]}',
		'{"$slice": ["$s", 1]}', '{"$split": ["$i", ","]}'),
	[ 'HV004', '{"$toInt": "$a"}' ],
	# what the server does not know
	[ '0A000', '{"$nosuch": 1}', '' ],
	[ '0A000', [ '{"$nosuch": 1}' ], '' ],
	[ '0A000', [ '{"$group": {"_id": 1, "a": {"$nosuch": 1}}}' ], '' ],
	[ '22012', [ '{"$group": {"_id": 1, "a": {"$sum": {"$divide": ["$i", "$z"]}}}}' ] ],
	# nothing that SQL knows
	[ 'HV000', '"$$nosuch"' ]);

foreach my $case (@cases)
{
	my ($sqlstate, $what, $hint) = @$case;
	my $pipeline = ref $what ? "[$what->[0]]" : qq([{"\$project": {"v": $what}}]);
	my ($status, $stdout, $stderr) = $node->psql('postgres',
		"\\set VERBOSITY verbose\nSELECT mongo_aggregate('mongodb', 'db', 't', \$x\$$pipeline\$x\$)");
	like($stderr, qr/ERROR:  $sqlstate: .*DETAIL:  MongoDB error \d+/s, "$sqlstate: $pipeline");
	next if !defined $hint;

	# of what a user has written, that; of what comes by way of a table, here a view, how to help it
	like($stderr, qr/HINT:  The argument of mongo_aggregate\(\) was sent to MongoDB unchanged/, 'and where the error is');
	next if !$hint;
	$mongod->command('{"drop": "v"}', 'db') if $views++;
	$mongod->command("{\"create\": \"v\", \"viewOn\": \"t\", \"pipeline\": $pipeline}", 'db');
	($status, $stdout, $stderr) = $node->psql('postgres', "\\set VERBOSITY verbose\nSELECT * FROM v");
	like($stderr, qr/ERROR:  $sqlstate: .*HINT: .*$hint/s, 'and how to help it');
}

# what the wrapper itself sends
my $division = 'SELECT _id FROM t WHERE i / z = 1';
my ($status, $stdout, $stderr) = $node->psql('postgres', "\\set VERBOSITY verbose\n$division");
like($stderr, qr/ERROR:  22012:/, 'division by zero in a condition');
($status, $stdout, my $here) = $node->psql('postgres', "\\set VERBOSITY verbose\nSET mongo_fdw.enable_pushdown = off;\n$division");
like($here, qr/ERROR:  22012:/, 'as here');

# what a message quotes of a document does not say what happened
$node->safe_psql('postgres', q{CREATE FOREIGN TABLE u (_id text) SERVER mongodb OPTIONS (database 'db')});
foreach my $text ("can't \$divide by zero", 'Conversion would overflow target type', 'a field does not fit its column: x; y; z; ')
{
	($status, $stdout, $stderr) = $node->psql('postgres',
		"\\set VERBOSITY verbose\nINSERT INTO u VALUES (\$x\$$text\$x\$);\nINSERT INTO u VALUES (\$x\$$text\$x\$)",
		on_error_stop => 0);
	like($stderr, qr/ERROR:  23505: .*MongoDB error 11000.*\Q$text\E/s, "a duplicate key '$text'");
}

# what MongoDB takes for no _id
$node->safe_psql('postgres', q{CREATE FOREIGN TABLE keyed (_id jsonb) SERVER mongodb OPTIONS (database 'db')});
foreach my $id ('[1]', '{"$regularExpression": {"pattern": "a", "options": ""}}', '{"a": {"$b": 1}}')
{
	($status, $stdout, $stderr) = $node->psql('postgres', "\\set VERBOSITY verbose\nINSERT INTO keyed VALUES ('$id')");
	like($stderr, qr/ERROR:  22023: could not insert into foreign table "keyed", row 1/, "no _id: $id");
}

# an answer of more than 16 MB, which MongoDB does not report but closes the connection over
$mongod->command('{"insert": "big", "documents": [' . join(', ', map { '{"s": "' . 'x' x 1000000 . '"}' } 1 .. 4) . ']}', 'db')
  for 1 .. 5;
($status, $stdout, $stderr) = $node->psql('postgres', q{\set VERBOSITY verbose
	SELECT length(mongo_aggregate('mongodb', 'db', 'big', '[{"$group": {"_id": null, "a": {"$push": "$s"}}}]')::text);
	SELECT count(*) FROM t});
like($stderr, qr/ERROR:  (08006|54000): .*16 MB/s, 'a document of more than 16 MB');
$mongod->command('{"setParameter": 1, "internalLookupStageIntermediateDocumentMaxSizeBytes": 16793600}');
($status, $stdout, $stderr) = $node->psql('postgres', q{\set VERBOSITY verbose
	SELECT count(*) FROM mongo_aggregate('mongodb', 'db', 't', '[{"$lookup": {"from": "big", "pipeline": [], "as": "x"}}, {"$project": {"n": {"$size": "$x"}}}]')});
like($stderr, qr/ERROR:  54000: .*HINT:  MongoDB has no document of more than 16 MB/s, '$lookup of more than MongoDB allows');
$node->safe_psql('postgres', q{CREATE FOREIGN TABLE big (_id int, s text, s2 text) SERVER mongodb OPTIONS (database 'db', collection 'grown');
	INSERT INTO big VALUES (1, repeat('x', 9000000))});
($status, $stdout, $stderr) = $node->psql('postgres', q{\set VERBOSITY verbose
	SELECT _id FROM big WHERE length(s || s) = 18000000});
like($stderr, qr/ERROR:  54000: .*HINT:  MongoDB makes no string of more than 16 MB/s, 'a string of more than MongoDB makes');
($status, $stdout, $stderr) = $node->psql('postgres', q{\set VERBOSITY verbose
	SELECT _id FROM big WHERE s <> repeat('y', 9000000) AND s2 <> repeat('y', 9000000)});
like($stderr, qr/ERROR:  54000: command for MongoDB is too large.*HINT:  If values in a query/s, 'two constants of 16 MB together');
foreach my $update ('s2 = s', q{s2 = repeat('y', 9000000)})
{
	($status, $stdout, $stderr) = $node->psql('postgres', "\\set VERBOSITY verbose\nUPDATE big SET $update");
	like($stderr, qr/ERROR:  54000: could not update .*HINT:  MongoDB has no document of more than 16 MB. Write less/s, "more than a document holds: $update");
}

done_testing();
