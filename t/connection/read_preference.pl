# Table option read_preference: which member is asked, over connections of their own.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $set = MongoFdwTest::ReplicaSet->new(2, voters => 1);
my $primary = $set->primary;
my ($secondary) = grep { $_ != $primary } $set->members;
my $node = new_postgres('read_preference');
my $values = join(', ', map { "{\"_id\": $_, \"n\": " . $_ % 7 . '}' } 1 .. 500);

create_server($node, 'mongodb', $primary, replica_set => 'rs', fetch_size => 50, async_connections => 1);
create_server($node, 'by_uri', $primary, address => undef, port => undef,
	uri => 'mongodb://127.0.0.1:' . $primary->port . '/?replicaSet=rs&readPreference=secondary&readPreferenceTags=');
create_server($node, 'tagged', $primary, address => undef, port => undef,
	uri => 'mongodb://127.0.0.1:' . $primary->port . '/?replicaSet=rs&readPreference=secondary&readPreferenceTags=use:reports');
$primary->command("{\"insert\": \"t\", \"documents\": [$values], \"writeConcern\": {\"w\": 2}}", 'db');
$node->safe_psql('postgres', q{
	CREATE FOREIGN TABLE main (_id int, n int) SERVER mongodb OPTIONS (database 'db', collection 't');
	CREATE FOREIGN TABLE reports (_id int, n int) SERVER mongodb OPTIONS (database 'db', collection 't', read_preference 'secondary');
	CREATE FOREIGN TABLE by_uri (_id int, n int) SERVER by_uri OPTIONS (database 'db', collection 't');
	CREATE FOREIGN TABLE by_uri_main (_id int, n int) SERVER by_uri OPTIONS (database 'db', collection 't', read_preference 'primary');
	CREATE FOREIGN TABLE tagged (_id int, n int) SERVER tagged OPTIONS (database 'db', collection 't', read_preference 'secondaryPreferred');
	CREATE FOREIGN TABLE tagged_main (_id int, n int) SERVER tagged OPTIONS (database 'db', collection 't', read_preference 'primary')});
my $session = MongoFdwTest::Session->new($node);

# asks
#	Does the statement give this, with so many reads of the primary and the secondary?
#	A member's own finds, as for its keys, are counted as well, so a statement with too many
#	is run again.
sub asks
{
	my ($sql, $expected, $of_primary, $of_secondary, $name) = @_;
	my ($answer, @reads);

	foreach my $attempt (1 .. 3)
	{
		$_->snapshot foreach ($primary, $secondary);
		$answer = $session->ask($sql);
		@reads = map { ($_->reads)[0] } ($primary, $secondary);
		last if $reads[0] <= $of_primary && $reads[1] <= $of_secondary;
	}
	is($answer, $expected, $name);
	is($reads[0], $of_primary, "$name: reads of the primary");
	is($reads[1], $of_secondary, "$name: reads of the secondary");
}

asks('SELECT n FROM main WHERE _id = 10', '3', 1, 0, 'the server\'s');
asks('SELECT n FROM reports WHERE _id = 10', '3', 0, 1, 'a table\'s own');
asks('SELECT sum(n) FROM reports', '1497', 0, 1, 'several batches, or a pipeline');
asks('SELECT n FROM by_uri WHERE _id = 10', '3', 0, 1, 'of a URI');
asks('SELECT n FROM by_uri_main WHERE _id = 10', '3', 1, 0, 'in place of a URI\'s');
asks('SELECT n FROM tagged WHERE _id = 10', '3', 1, 0, 'with a URI\'s tags, which the secondary lacks');
asks('SELECT n FROM tagged_main WHERE _id = 10', '3', 1, 0, 'without them on the primary');
asks('SELECT count(*) FROM (TABLE main UNION ALL TABLE reports UNION ALL TABLE main UNION ALL TABLE reports) t', '2000', 2, 2,
	'at the same time, on one connection each');
asks('SET enable_hashjoin = off; SET enable_mergejoin = off; SELECT count(*) FROM main m JOIN reports r ON r._id = m.n', '429', 1, 1, 'joined');
$session->ask(q{ALTER SERVER mongodb OPTIONS (ADD fdw_lookup_cost '0'); SET mongo_fdw.enable_batched_joins = off});
unlike($session->ask('EXPLAIN (VERBOSE) SELECT count(*) FROM main m JOIN reports r ON r._id = m.n WHERE m._id = 1'), qr/lookup/, 'not by MongoDB');
like($session->ask('EXPLAIN (VERBOSE) SELECT * FROM reports m JOIN reports r ON r._id = m.n WHERE m._id = 1'), qr/lookup/, 'which joins tables of one preference');
$session->ask(q{ALTER SERVER mongodb OPTIONS (DROP fdw_lookup_cost)});
$session->ask('SELECT (SELECT n FROM main WHERE _id = 1), (SELECT n FROM reports WHERE _id = 1)') foreach 1 .. 2;
is($session->ask(q{SELECT string_agg(server_role, ' ' ORDER BY server_role) FROM mongo_fdw_get_connections() WHERE server_name = 'mongodb'}),
	'RSPrimary RSSecondary', 'connections stay, one for each');

# Writes go to the primary, and with them the reads of their transaction.
asks('ANALYZE reports', '', 1, 2, 'ANALYZE');
my ($seen, $finds);
foreach my $attempt (1 .. 3)
{
	$secondary->snapshot;
	$seen = $session->ask('BEGIN; INSERT INTO reports VALUES (1001, 1); SELECT n FROM reports WHERE _id = 1001; ROLLBACK');
	$finds = $secondary->changes->{commands}{find} // 0;
	last if $finds == 0;
}
is($seen, '1', 'within a transaction');
is($finds, 0, 'and not the secondary');
$session->ask('INSERT INTO reports VALUES (1001, 1)');
is($session->ask('UPDATE reports SET n = 5 WHERE _id = 1001; DELETE FROM reports WHERE _id = 1001 RETURNING n'), '5', 'writes');
is($session->ask('SELECT count(*) FROM main'), '500', 'are done');

# A command of the user's own, over a connection to the secondary alone.
create_server($node, 'direct', $secondary);
is($session->ask(q{SELECT mongo_command('direct', 'db', '{"planCacheClear": "t"}') ->> 'ok'}), '1.0',
	'a command that is not known to read, on a secondary');

# Without such a member.
$secondary->stop;
like($session->ask('SELECT n FROM main WHERE _id = 10'), qr/^3$/, 'the primary alone');
$node->safe_psql('postgres', 'ALTER SERVER mongodb OPTIONS (ADD server_selection_timeout_ms \'1000\')');
like($session->ask('SELECT n FROM reports WHERE _id = 10'), qr/could not connect to server "mongodb"/, 'has no secondary');
like($session->ask(q{ALTER FOREIGN TABLE reports OPTIONS (SET read_preference 'anyone')}), qr/invalid value for option "read_preference"/, 'no member of that kind');
$session->ask(q{ALTER FOREIGN TABLE reports OPTIONS (SET read_preference 'secondaryPreferred')});
is($session->ask('SELECT n FROM reports WHERE _id = 10'), '3', 'the primary in its place');

done_testing();
