# What the commands of reads carry, in transactions and outside, and how many
# messages a new connection takes: seen by a proxy before MongoDB.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my @SESSION_FIELDS = qw(lsid txnNumber autocommit startTransaction $clusterTime readConcern);

my $node = new_postgres('on_the_wire');

my $proxy;

# session_fields
#	Those that a command has.
sub session_fields
{
	my ($command) = @_;
	return join(' ', grep { exists $command->{$_} } @SESSION_FIELDS);
}

# foreign_table
#	Table 'name' over db.points of a server behind a new proxy.
sub foreign_table
{
	my ($name, $mongod, %options) = @_;

	$proxy = MongoFdwTest::helper('record', port => $mongod->port);
	create_server($node, "server_$name", $mongod, port => $proxy, %options);
	$node->safe_psql('postgres', "CREATE FOREIGN TABLE $name (id int, info text) SERVER server_$name "
		  . "OPTIONS (database 'db', collection 'points', fetch_size '400')");
}

# first_query
#	The messages of a session's first query, and of its second.
sub first_query
{
	my ($name) = @_;
	my $session = MongoFdwTest::Session->new($node);

	is($session->ask("SELECT info FROM $name WHERE id = 7"), 'info 7', "$name: a point query");
	my @first = recorded($proxy);
	$session->ask("SELECT info FROM $name WHERE id = 8");
	is(names_of(recorded($proxy)), 'find', "$name: the second is one message");
	$session->close;
	return @first;
}

# Where sessions and transactions are to be had, reads go without, unless this
# transaction has written.
my $primary = MongoFdwTest::ReplicaSet->new(1)->primary;
$primary->fill('db', 'points', 1000);
foreign_table('plain', $primary);
is(names_of(first_query('plain')), 'isMaster find', 'a new connection: a greeting, then the query');

my $session = MongoFdwTest::Session->new($node);
my $scan = 'SELECT count(*), sum(length(info)) FROM plain';
$session->ask("PREPARE point (int) AS SELECT info FROM plain WHERE id = \$1; $scan");
recorded($proxy);
my %reads = (
	'a point query' => [ 'SELECT info FROM plain WHERE id = 7', 'find' ],
	'a scan' => [ $scan, 'find getMore getMore' ],
	'a count' => [ 'SELECT count(*) FROM plain WHERE id <= 20', 'count' ],
	'a pipeline' => [ 'SET cpu_tuple_cost = 10; SELECT id % 3, count(*) FROM plain GROUP BY 1; RESET cpu_tuple_cost', 'aggregate' ],
	'a prepared statement' => [ 'EXECUTE point(9)', 'find' ],
	'a transaction that only reads' =>
	  [ 'BEGIN; SELECT info FROM plain WHERE id = 3; COMMIT', 'find' ]);
foreach my $name (sort keys %reads)
{
	my ($sql, $commands) = @{ $reads{$name} };

	$session->ask($sql);
	my @seen = recorded($proxy);
	is(names_of(@seen), $commands, "$name: its commands");
	is(join('', map { session_fields($_) } @seen), '', "$name: without fields of a session");
}

$session->ask("BEGIN; INSERT INTO plain VALUES (2000, 'new')");
is($session->ask($scan), '1001|7896', 'a transaction sees what it wrote');
$session->ask('COMMIT');
my @seen = recorded($proxy);
is(names_of(@seen), 'insert find getMore getMore commitTransaction', 'with these commands');
is(session_fields($seen[0]), 'lsid txnNumber autocommit startTransaction $clusterTime', 'the first begins it');
is(session_fields($_), 'lsid txnNumber autocommit $clusterTime', names_of($_) . ' is part of it')
  foreach @seen[ 1 .. $#seen ];
is_deeply($_->{lsid}, $seen[0]{lsid}, names_of($_) . ' has its session') foreach @seen[ 1 .. $#seen ];
is($_->{txnNumber}, $seen[0]{txnNumber}, names_of($_) . ' has its number') foreach @seen[ 1 .. $#seen ];

$session->ask('SELECT info FROM plain WHERE id = 7');
@seen = recorded($proxy);
is(names_of(@seen), 'find', 'after it a point query is one command');
is(session_fields($seen[0]), '', 'without fields of a session again');
$session->close;

# A snapshot for several statements is another matter.
my $repeatable = MongoFdwTest::Session->new($node);
$repeatable->ask('SELECT info FROM plain WHERE id = 1');
recorded($proxy);
$repeatable->ask('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT info FROM plain WHERE id = 3; COMMIT');
@seen = recorded($proxy);
is(names_of(@seen), 'find commitTransaction', 'REPEATABLE READ reads in a transaction of MongoDB\'s');
is($seen[0]{readConcern}{level}, 'snapshot', 'from a snapshot');
$repeatable->close;

# An interval that libmongoc, which multiplies it by 1000, would take for a very short one.
$proxy = MongoFdwTest::helper('record', port => $primary->port);
create_server($node, 'server_patient', $primary, address => undef, port => undef,
	uri => "mongodb://127.0.0.1:$proxy/?directConnection=true&socketCheckIntervalMS=4294968");
$node->safe_psql('postgres', q{
	CREATE FOREIGN TABLE patient (id int, info text) SERVER server_patient OPTIONS (database 'db', collection 'points');
	BEGIN; INSERT INTO patient VALUES (3000, 'new'); ROLLBACK});
like(names_of(recorded($proxy)), qr/^isMaster insert abortTransaction\b(?!.*ping)/, 'no ping, though a uri asks for a long interval between two');

# SCRAM begins in the greeting, and its last, empty exchange is left out.
my $guarded = MongoFdwTest::Mongod->new(auth => 1);
$guarded->fill('db', 'points', 10);
foreign_table('guarded', $guarded);
@seen = first_query('guarded');
is(names_of(@seen), 'isMaster saslContinue find', 'a password costs one message');
is($seen[0]{speculativeAuthenticate}{mechanism}, 'SCRAM-SHA-256', 'since the greeting begins with it');

done_testing();
