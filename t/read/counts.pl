# count(*): which command is sent, and that its number is that of the documents.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::ReplicaSet->new(1)->primary;
my $node = new_postgres('counts');
create_server($node, 'mongodb', $mongod, fdw_startup_cost => 0);
create_point_table($node, 'mongodb', $mongod, 1000);
$node->safe_psql('postgres', q{ALTER FOREIGN TABLE points ALTER COLUMN id OPTIONS (ADD indexed 'true')});

# The answer and the commands that count.
sub counted
{
	my ($sql) = @_;
	$mongod->snapshot;
	my @lines = split /\n/, $node->safe_psql('postgres', $sql);
	my $commands = $mongod->changes->{commands};
	return join(' ', $lines[-1], map { "$_ $commands->{$_}" } grep { $commands->{$_} } qw(aggregate count));
}

is(counted('SELECT count(*) FROM points WHERE id BETWEEN 10 AND 19'), '10 count 1', 'a range');
is(counted(q{SELECT count(*) FROM points WHERE id BETWEEN 10 AND 19 AND info <> 'x'}), '10 count 1', 'and a condition');
is(counted('SELECT count(*) FROM points WHERE id = 5000'), '0 count 1', 'of nothing');
is(counted('SELECT count(*) FROM points'), '1000 aggregate 1', 'all, exactly');
is(counted(q{PREPARE p AS SELECT count(*) FROM points WHERE id <> ALL ($1::int[]);
	SET plan_cache_mode = force_generic_plan; EXECUTE p ('{}')}), '1000 aggregate 1', 'a condition that all meet');
is(counted(q{PREPARE p AS SELECT count(*) FROM points WHERE id <> ALL ($1::int[]);
	SET plan_cache_mode = force_generic_plan; EXECUTE p ('{1, 2}')}), '998 count 1', 'and the same that not all meet');
is(counted(q{PREPARE p AS SELECT count(*) FROM points WHERE id <> ALL ($1::int[]) OR id = 5;
	SET plan_cache_mode = force_generic_plan; EXECUTE p ('{}')}), '1000 aggregate 1', 'in an OR');
is(counted(q{PREPARE p AS SELECT count(*) FROM points WHERE id <> ALL ($1::int[]) AND id < 5;
	SET plan_cache_mode = force_generic_plan; EXECUTE p ('{}')}), '4 count 1', 'in an AND');
is(counted(q{SELECT count(*) FROM points p WHERE mongo_match(p, '{"id": {"$lt": 10}}')}), '9 count 1', 'a filter by the user');
for my $filter ('{}', '{"$and": [{}]}', '{"$expr": true}')
{
	is(counted("SELECT count(*) FROM points p WHERE mongo_match(p, '$filter')"), '1000 aggregate 1', "that all meet, $filter");
	is(counted("PREPARE p AS SELECT count(*) FROM points p WHERE mongo_match(p, \$1); SET plan_cache_mode = force_generic_plan;
		EXECUTE p ('$filter')"), '1000 aggregate 1', 'as a parameter');
}

$node->safe_psql('postgres', q{ALTER SERVER mongodb OPTIONS (ADD allow_javascript 'true')});
is(counted("SELECT count(*) FROM points p WHERE mongo_match(p, '$_')"), '1000 count 1', "a pipeline refuses $_")
	foreach '{"$where": "true"}', '{"$and": [{"$where": "true"}]}';

# each session ends without a COMMIT, and does not wait until MongoDB has let go of the document
my $in_transaction = q{BEGIN ISOLATION LEVEL REPEATABLE READ; DELETE FROM points WHERE id = %d;
	SELECT count(*) FROM points WHERE id BETWEEN %s};
is(counted(sprintf($in_transaction, 11, '10 AND 19')), '9 aggregate 1', 'in a transaction, which sees its own deletion');
is(counted(sprintf($in_transaction, 12, '12 AND 12')), '0 aggregate 1', 'nothing left of it');

$node->safe_psql('postgres', q{ALTER SERVER mongodb OPTIONS (ADD read_concern 'snapshot')});
is(counted('SELECT count(*) FROM points WHERE id BETWEEN 10 AND 19'), '10 aggregate 1', 'read concern snapshot');
$node->safe_psql('postgres', q{ALTER SERVER mongodb OPTIONS (SET read_concern 'SnapShot')});
is(counted('SELECT count(*) FROM points WHERE id BETWEEN 10 AND 19'), '10 aggregate 1', 'in other letters');
$node->safe_psql('postgres', q{ALTER SERVER mongodb OPTIONS (DROP read_concern)});

$node->safe_psql('postgres', q{ALTER SERVER mongodb OPTIONS (ADD count_from_metadata 'on')});
is(counted('SELECT count(*) FROM points'), '1000 count 1', 'from metadata');
like($node->safe_psql('postgres', 'EXPLAIN (VERBOSE) SELECT count(*) FROM points'),
	qr/Remote Command: \{ "count" : "points" \}/, 'as EXPLAIN says');
is(counted('SELECT count(*) FROM points WHERE id < 10'), '9 count 1', 'a range is still exact');

$node->safe_psql('postgres', q{ALTER SERVER mongodb OPTIONS (ADD pushdown_disable 'count')});
is(counted('SELECT count(*) FROM points WHERE id BETWEEN 10 AND 19'), '10 aggregate 1', 'count disabled');
is(counted('SELECT count(*) FROM points'), '1000 aggregate 1', 'and for all');

done_testing();
