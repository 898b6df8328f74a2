# A member of a replica set that does not reply: sessions connect as soon as a member that suits has
# replied, and to no other.

use strict;
use warnings;

use IO::Socket::INET;
use MongoFdwTest;
use Test::More;
use Time::HiRes qw(time);

my $certificates = make_certificates();
my $node = new_postgres('silent_members');
my $server = 0;

# connects
#	The member that a new session reads from with these URI options, and how long that took.
sub connects
{
	my ($set, $options, @hosts) = @_;
	my @members = $set->members;
	my $name = 's' . ++$server;

	@hosts = map { '127.0.0.1:' . $_->port } @members unless @hosts;
	$options .= '&tls=true' if $members[0]{tls};
	create_server($node, $name, $members[0], address => undef, port => undef, ssl => undef,
		server_selection_timeout_ms => 5000, uri => 'mongodb://' . join(',', @hosts) . "/?replicaSet=rs$options");
	$node->safe_psql('postgres', "CREATE FOREIGN TABLE t_$name (_id int) SERVER $name OPTIONS (database 'db', collection 't')");
	my $start = time;
	my $out = $node->safe_psql('postgres', "SELECT count(*) FROM t_$name;"
		  . "SELECT server_role FROM mongo_fdw_get_connections()");
	return ($out =~ s/^.*\n//r, time - $start);
}

foreach my $tls (0, 1)
{
	my $set = MongoFdwTest::ReplicaSet->new($tls ? 2 : 3, voters => 1, $tls ? (tls => $certificates) : ());
	my $primary = $set->primary;
	my @secondaries = grep { $_ != $primary } $set->members;

	foreach my $case (
		[ $secondaries[0], '', 'RSPrimary' ],
		[ $primary, '&readPreference=primaryPreferred', 'RSSecondary' ],
		$tls ? () : (
			[ $secondaries[0], '&readPreference=secondary', 'RSSecondary' ],
			[ $secondaries[0], '&readPreference=nearest', 'RS(Primary|Secondary)' ],
			[ $secondaries[0], '&readPreference=secondaryPreferred', 'RSSecondary' ],
			[ $secondaries[0], '&readPreference=secondary&maxStalenessSeconds=90', 'RSSecondary' ],
			[ $primary, '&readPreference=secondary', 'RSSecondary' ]))
	{
		my ($silent, $options, $role) = @$case;

		kill 'STOP', $silent->{pid};
		my ($used, $seconds) = connects($set, $options);
		like($used, qr/^$role$/, "TLS $tls, $options: $role");
		cmp_ok($seconds, '<', 7, '... without waiting for the silent one');
		kill 'CONT', $silent->{pid};
	}

	# one that cannot be reached: a socket whose backlog is full; and one that refuses
	my $full = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1');
	my @queued = map { IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $full->sockport, Blocking => 0) } 1 .. 4;
	my ($used, $seconds) = connects($set, '', '127.0.0.1:' . $full->sockport, '127.0.0.1:1', '127.0.0.1:' . $primary->port);
	is($used, 'RSPrimary', "TLS $tls: a host that does not accept connections");
	cmp_ok($seconds, '<', 7, '... is not waited for');
}

done_testing();
