# Tables whose collection does not exist: a WARNING once a session, for which no other table pays.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('missing');
create_server($node, 'mongodb', $mongod);
$mongod->insert('shop', 'orders', '[{"_id": 1, "n": 1}]');
$mongod->command('{"create": "empty"}', 'shop');
$mongod->command('{"create": "view", "viewOn": "orders", "pipeline": [{"$match": {"_id": 2}}]}', 'shop');
$node->safe_psql('postgres', "CREATE FOREIGN TABLE \"$_\" (_id int, n int) SERVER mongodb OPTIONS (database 'shop')") foreach qw(orders order Empty empty view);
$node->safe_psql('postgres', 'CREATE FOREIGN TABLE no_database (_id int) SERVER mongodb; '
	  . "CREATE FOREIGN TABLE derived (_id int) SERVER mongodb OPTIONS (database 'shop', collection 'nothing', pipeline '[{\"\$match\": {\"_id\": 2}}]')");

# said
#	The messages of a session, and the listIndexes and listCollections that it has sent.
sub said
{
	my ($sql) = @_;
	$mongod->snapshot;
	my $stderr = ($node->psql('postgres', $sql))[2];
	my $commands = $mongod->changes->{commands};
	return ($stderr, join(' ', map { $commands->{$_} // 0 } qw(listIndexes listCollections)));
}

my ($stderr, $sent) = said('SELECT * FROM "order"; SELECT count(*) FROM "order" WHERE n = 1; SELECT n FROM "order" ORDER BY n LIMIT 1');
is($stderr, "psql:<stdin>:1: WARNING:  collection \"shop.order\" of foreign table \"order\" does not exist\n"
	  . 'HINT:  Perhaps the collection "orders" is meant: set the table\'s option collection.', 'one WARNING in a session');
is($sent, '1 1', 'for one question and one search');
foreach my $query ('count(*)', 'n, count(*)')
{
	($stderr) = said("SELECT $query FROM \"Empty\"" . ($query =~ /n,/ ? ' GROUP BY n' : ''));
	like($stderr, qr/WARNING:  collection "shop\.Empty" of foreign table "Empty" does not exist\nHINT:  Perhaps the collection "empty" is meant/, "$query, of an aggregate, too");
}
($stderr) = said('SELECT * FROM no_database');
like($stderr, qr/WARNING:  collection "test\.no_database" .* does not exist\nDETAIL:  The table has no option database, so that the database is "test"\.$/, 'the database that nobody has named');

# Quiet is a promise.
foreach my $case (
	[ 'rows', 'SELECT * FROM orders; SELECT * FROM orders WHERE n = 2', '0 0' ],
	[ 'no rows', 'SELECT * FROM orders WHERE n = 2; SELECT * FROM orders WHERE n = 3; SELECT count(*) FROM orders WHERE n = 2', '1 0' ],
	[ 'an empty collection', 'SELECT * FROM empty; SELECT * FROM empty', '1 0' ],
	[ 'a view', 'SELECT * FROM view; SELECT * FROM view', '1 0' ],
	[ 'a pipeline', 'SELECT * FROM derived', '0 0' ],
	[ 'no command at all', 'SELECT * FROM "order" WHERE n = NULL', '0 0' ],
	[ 'EXPLAIN', 'EXPLAIN SELECT * FROM "order"', '0 0' ])
{
	my ($what, $sql, $expected) = @$case;
	($stderr, $sent) = said($sql);
	is("$sent$stderr", $expected, "$what: nothing is said, and no more is asked");
}
$node->safe_psql('postgres', 'ANALYZE orders, empty');
($stderr, $sent) = said('SELECT * FROM orders WHERE n = 2; SELECT * FROM empty');
is("$sent$stderr", '0 0', 'after ANALYZE a new session asks nothing');
my $pgbench = $node->basedir . '/empty.sql';
open my $file, '>', $pgbench or die $!;
print $file "SELECT * FROM orders WHERE n = 2;\n";
close $file;
$mongod->snapshot;
$node->command_ok([ 'pgbench', '-n', '-C', '-t', '20', '-f', $pgbench, 'postgres' ], 'a session for each query');
is($mongod->changes->{commands}{listIndexes} // 0, 0, 'asks nothing, either');
($stderr) = said('ANALYZE no_database');
like($stderr, qr/WARNING:  collection "test\.no_database" .*DETAIL:  The table has no option database/s, 'ANALYZE says the same');

# Who may not ask sees no error.
$mongod->fail_command(1, 13, 'listIndexes');
($stderr) = said('SELECT * FROM "order"');
is($stderr, '', 'a refusal is no error');

done_testing();
