# Arrays of 10,000 elements and documents of nearly 16 MB: conditions on them, and a row
# for each element.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('large_arrays');

create_server($node, 'mongodb', $mongod);
$node->safe_psql('postgres', q{
	CREATE FOREIGN TABLE docs (_id int, tags text[], lines jsonb, filler text) SERVER mongodb OPTIONS (database 'db');
	CREATE FOREIGN TABLE elements (_id int, n int, k int OPTIONS (path 'lines.k'), word text OPTIONS (path 'lines.word'), filler text)
		SERVER mongodb OPTIONS (database 'db', collection 'docs', unwind 'lines', ordinality 'n');
	INSERT INTO docs SELECT 1, array_agg('t' || k), jsonb_agg(jsonb_build_object('k', k, 'word', 'w' || k % 100)), 'x' FROM generate_series(1, 10000) k;
	-- as large as MongoDB takes, all but a little
	INSERT INTO docs SELECT 2, NULL, jsonb_agg(jsonb_build_object('k', k, 'word', repeat('v', 1400))), 'y' FROM generate_series(1, 11500) k;
	INSERT INTO docs SELECT 3, NULL, jsonb_agg(jsonb_build_object('k', k, 'word', 'z')), repeat('f', 16500000) FROM generate_series(1, 5) k});

# gives
#	Is this the answer, on one line?
sub gives
{
	my ($sql, $expected, $name) = @_;
	my (undef, $stdout, $stderr) = $node->psql('postgres', $sql);
	is($stdout . $stderr, $expected, $name);
}

gives('SELECT min(size) > 16000000 FROM (SELECT (d ->> \'size\')::int AS size FROM mongo_aggregate(\'mongodb\', \'db\', \'docs\', '
	  . '\'[{"$match": {"_id": {"$gt": 1}}}, {"$project": {"size": {"$bsonSize": "$$ROOT"}}}]\') d) s', 't', 'large documents');
gives('SELECT count(*), sum(n), sum(k), count(DISTINCT word) FROM elements WHERE _id = 1', '10000|50005000|50005000|100', 'all elements');
gives("SELECT n FROM elements WHERE word = 'w7' AND k > 9900", '9907', 'one element');
gives("SELECT _id, cardinality(tags) FROM docs WHERE 't9999' = ANY (tags) AND tags @> '{t1,t10000}' AND NOT tags && '{t0,t10001}'", '1|10000', 'conditions on elements');
gives("SELECT _id FROM docs WHERE lines \@> '[{\"k\": 10000, \"word\": \"w0\"}]' AND _id = 1", '1', 'conditions on documents in it');
gives('SELECT count(*), sum(k), min(length(word)) FROM elements WHERE _id = 2', '11500|66130750|1400', 'of 16 MB');
gives("SELECT count(*), sum(length(filler)) FROM elements WHERE _id = 3", '5|82500000', 'with 16 MB beside each');
gives("SELECT n, length(filler) FROM elements WHERE _id = 3 ORDER BY n DESC LIMIT 1", '5|16500000', 'sorted');
gives('SELECT count(DISTINCT e._id), count(*) FROM elements e JOIN docs d USING (_id) WHERE d.filler < \'z\'', '3|21505', 'joined with their own document');
gives('SET mongo_fdw.enable_pushdown = off; SELECT count(*), sum(k) FROM elements', '21505|116135765', 'without pushdown');

# Lists that are too long to send are tested here, also by a scan that goes on with the cursor
# of an empty list, and before the second of two commands of an order.
$node->safe_psql('postgres', q{CREATE FOREIGN TABLE few (_id int, i int OPTIONS (indexed 'true')) SERVER mongodb OPTIONS (database 'db');
	INSERT INTO few SELECT g, NULLIF(g % 10, 0) FROM generate_series(0, 149) g; CREATE TABLE few_here AS TABLE few;
	CREATE TABLE lists AS SELECT 1 AS g, '{}'::int[] AS list UNION ALL SELECT 2, array_agg(s) FROM generate_series(0, 3000000) s;
	CREATE TABLE order_lists AS SELECT array_agg(_id) || (SELECT array_agg(-s) FROM generate_series(1, 3000000) s) AS list FROM few_here WHERE i IS NOT NULL});
foreach my $table (qw(few few_here))
{
	gives("SELECT g, EXISTS (SELECT 1 FROM $table f WHERE f._id <> ALL (list)) FROM lists ORDER BY g", "1|t\n2|f", "$table: an empty list, then a long one");
	gives("SELECT (SELECT f.i IS NULL FROM $table f WHERE f._id <> ALL (list) ORDER BY f.i LIMIT 1 OFFSET 1) FROM order_lists", 't', "$table: ordered");
}
$node->safe_psql('postgres', q{CREATE FOREIGN TABLE words (_id int, words text) SERVER mongodb OPTIONS (database 'db');
	INSERT INTO words SELECT g, 'coffee word' || g FROM generate_series(1, 20) g;
	SELECT mongo_command('mongodb', 'db', '{"createIndexes": "words", "indexes": [{"key": {"words": "text"}, "name": "words"}]}')});
gives(q{SELECT _id, mongo_score(w) > 0 FROM words w WHERE mongo_match(w, '{"$text": {"$search": "coffee"}}') AND _id <> ALL ((SELECT array_remove(list, 19) FROM lists WHERE g = 2)::int[])},
	'19|t', 'beside a score');

# More than 16 MB is MongoDB's error, and nothing is written.
my (undef, undef, $stderr) = $node->psql('postgres', 'INSERT INTO docs (_id, filler) VALUES (4, repeat(\'f\', 16800000))');
like($stderr, qr/document is too large for MongoDB/, 'a larger one');
$node->safe_psql('postgres', q{ALTER FOREIGN TABLE docs OPTIONS (ADD insert_mode 'upsert')});
(undef, undef, $stderr) = $node->psql('postgres', 'INSERT INTO docs (_id, tags) SELECT 3, array_agg(repeat(\'t\', 1000)) FROM generate_series(1, 400)');
like($stderr, qr/could not insert into foreign table "docs", row 1\nDETAIL:  MongoDB error (?:10334|17419|17420)/, 'one that an upsert would make larger');
gives('SELECT _id, tags IS NULL, length(filler) FROM docs WHERE _id > 2', '3|t|16500000', 'stays');
gives('SELECT _id FROM docs d WHERE mongo_match(d, (SELECT json_build_object(\'filler\', repeat(\'f\', 16500000)))) AND _id > 2', '3', 'a match document of this size');
(undef, undef, $stderr) = $node->psql('postgres',
	'SELECT _id FROM docs d WHERE mongo_match(d, (SELECT json_build_object(\'filler\', repeat(\'f\', 40000000))))');
like($stderr, qr/command for MongoDB is too large/, 'and a larger one');

done_testing();
