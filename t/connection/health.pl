# mongo_fdw_health: what is wrong with servers; and who sees the monitoring views.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('health', "shared_preload_libraries = 'mongo_fdw'");
create_server($node, 'mongodb', $mongod, connect_timeout_ms => 1000, server_selection_timeout_ms => 1000);
create_server($node, 'other', $mongod);
$mongod->insert('db', 'points', '[{"_id": 1}]');
$node->safe_psql('postgres', 'CREATE FOREIGN TABLE points (_id int) SERVER mongodb OPTIONS (database \'db\'); '
	  . 'CREATE ROLE monitor IN ROLE pg_monitor; CREATE ROLE nobody; CREATE ROLE app; GRANT USAGE ON FOREIGN SERVER mongodb TO app; ANALYZE points');

sub health
{
	my ($role) = @_;
	return $node->safe_psql('postgres', ($role ? "SET ROLE $role; " : '') . 'SELECT object, state FROM mongo_fdw_health ORDER BY 1, 2');
}

is(health(), '', 'all is well');
$mongod->stop;
isnt(($node->psql('postgres', 'SELECT * FROM points'))[0], 0, 'MongoDB is down') foreach 1, 2;
is(health($_), 'mongodb|unreachable', "then $_ sees that") foreach 'postgres', 'monitor', 'app';
is(health('nobody'), '', 'but not who has no part in it');
like($node->safe_psql('postgres', 'SELECT problem, remedy, since < now() FROM mongo_fdw_health'),
	qr/refused.*; last tried at .*\|Check address and port of the foreign server.*\|t$/, 'with what and since when');
$node->safe_psql('postgres', 'CREATE DATABASE elsewhere');
is($node->safe_psql('elsewhere', 'CREATE EXTENSION mongo_fdw; SELECT count(*) FROM mongo_fdw_health'), '0', 'in this database');
my $since = $node->safe_psql('postgres', 'SELECT since FROM mongo_fdw_health');
$node->psql('postgres', 'SELECT * FROM points');
is($node->safe_psql('postgres', 'SELECT since FROM mongo_fdw_health'), $since, 'it has begun when it began');
$mongod->start;
$node->safe_psql('postgres', 'SELECT * FROM points');
is(health(), '', 'until a session has connected');

# Connections.
my $session = MongoFdwTest::Session->new($node);
$session->ask('SELECT * FROM points');
$node->safe_psql('postgres', q{ALTER SERVER mongodb OPTIONS (ADD max_connections '1')});
is(health(), 'mongodb|no free connection', 'no connection is left');
$session->ask('SELECT mongo_fdw_disconnect_all()');
is(health(), '', 'or it is');
$session->close;

# A server that is dropped has no problem.
$mongod->stop;
$node->psql('postgres', 'SELECT * FROM points');
is(health(), 'mongodb|unreachable', 'down again');
$node->safe_psql('postgres', 'DROP SERVER mongodb CASCADE');
is(health(), '', 'and gone');

# Every view is for pg_monitor.
foreach my $view (split /\n/, $node->safe_psql('postgres', q{SELECT c.oid::regclass FROM pg_class c JOIN pg_depend d ON d.objid = c.oid AND d.deptype = 'e'
	JOIN pg_extension e ON e.oid = d.refobjid WHERE e.extname = 'mongo_fdw' AND c.relkind = 'v' ORDER BY 1}))
{
	is($node->safe_psql('postgres', "SET ROLE monitor; SELECT count(*) >= 0 FROM $view"), 't', "pg_monitor reads $view");
}
$mongod->start;
create_server($node, 'mongodb', $mongod);
$node->safe_psql('postgres', 'CREATE FOREIGN TABLE points (_id int) SERVER mongodb OPTIONS (database \'db\'); ANALYZE points; SELECT * FROM points');
is($node->safe_psql('postgres', 'SET ROLE monitor; SELECT relation, documents, indexes IS NULL FROM mongo_fdw_statistics'), 'points|1|t', 'the statistics, without indexes');
is($node->safe_psql('postgres', 'SET ROLE monitor; SELECT count(*) > 0 FROM mongo_fdw_stat'), 't', 'the counters of others');
is($node->safe_psql('postgres', 'SET ROLE nobody; SELECT (SELECT count(*) FROM mongo_fdw_stat) + (SELECT count(*) FROM mongo_fdw_statistics)'), '0', 'which others do not see');

# Without shared memory nobody knows.
my $plain = new_postgres('unloaded');
is($plain->safe_psql('postgres', 'SELECT object, state FROM mongo_fdw_health'), 'mongo_fdw|not monitored', 'without shared memory');

done_testing();
