# What clients notice of MongoDB 6.1 to 8.2, by a server that replies as those versions do.  Their
# mongod is not to be had; docs/internals/testing.md lists what their release notes say.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $node = new_postgres('newer');

sub create_fake_server
{
	my ($name, @arguments) = @_;
	my $port = start_fake(@arguments);

	$node->safe_psql('postgres', qq{
		CREATE SERVER $name FOREIGN DATA WRAPPER mongo_fdw OPTIONS (address '127.0.0.1', port '$port');
		CREATE USER MAPPING FOR CURRENT_USER SERVER $name});
}

sub create_table
{
	my ($server, $collection, $table) = @_;

	$node->safe_psql('postgres', qq{CREATE FOREIGN TABLE $table (id int, info text) SERVER $server
		OPTIONS (database 'db', collection '$collection')});
}

# ------------------------------ the first message --------------------------------

# 21 is 7.0, 25 is 8.0, 27 is 8.2
foreach my $version (21 .. 27)
{
	foreach my $kind ('single', 'replica_set')
	{
		my $server = "wire_${version}_$kind";

		create_fake_server($server, "--greeting=wire_$version", $kind eq 'single' ? () : '--replica-set');
		create_table($server, 'next_good', $server);
		is($node->safe_psql('postgres', "SELECT info FROM $server"), "seven\nseven", "$server: find and getMore");
		create_table($server, 'good', "${server}_written");
		my ($status, undef, $error) = $node->psql('postgres', "INSERT INTO ${server}_written VALUES (1, 'x')");
		is("$status$error", '0', "$server: insert");
	}
}

# ------------------------------ other replies ------------------------------------

create_fake_server('fake');
foreach my $case ([ unknown_fields => "seven" ], [ next_unknown_fields => "seven\nseven" ], [ series_x => "seven\nseven" ])
{
	my ($collection, $rows) = @$case;

	create_table('fake', $collection, $collection);
	is($node->safe_psql('postgres', "SELECT info FROM $collection"), $rows, $collection);
}
my ($status, undef, $error) = $node->psql('postgres', "INSERT INTO unknown_fields VALUES (1, 'x')");
is("$status$error", '0', 'unknown_fields: insert');

foreach my $case ([ temporarily_unavailable => '53000' ], [ overloaded => '53000' ], [ too_large_for_cache => '54000' ])
{
	my ($collection, $state) = @$case;

	create_table('fake', $collection, $collection);
	foreach my $statement ("SELECT info FROM $collection", "INSERT INTO $collection VALUES (1, 'x')")
	{
		(undef, undef, $error) = $node->psql('postgres', "\\set VERBOSITY verbose\n$statement");
		like($error, qr/ERROR:  $state: .*MongoDB error/s, "$statement: $state");
	}
}

# ------------------ a reply to what asks for none, as FerretDB sends it --------------

create_fake_server('talkative', '--talkative');
create_table('talkative', 'next_good', 'talked');
# PostgreSQL's LIMIT leaves a cursor, which killCursors closes
is($node->safe_psql('postgres', q{SET mongo_fdw.enable_pushdown = off;
	SELECT info FROM (SELECT info FROM talked LIMIT 1) s;
	SELECT info FROM (SELECT info FROM talked LIMIT 1) s;
	SELECT info FROM (SELECT info FROM talked LIMIT 1) s;
	SELECT info FROM talked}),
	"seven\nseven\nseven\nseven\nseven", 'replies to killCursors are left out');

done_testing();
