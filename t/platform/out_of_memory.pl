# A backend without memory: each statement either answers or raises 53200, and
# the server never restarts.  The address space of the backend is limited to what
# it has when the session begins and some megabytes more.
#
# OUT_OF_MEMORY_STEPS="1 2 3 ..." are those megabytes.

use strict;
use warnings;

use MongoFdwTest;
use PostgreSQL::Test::Utils;
use Test::More;

my @steps = split ' ', $ENV{OUT_OF_MEMORY_STEPS} // '10 64';
my $size = 15 * 1000 * 1000;

# a sanitizer's allocator ends the process itself
if ($ENV{SANITIZED} || !`sh -c 'command -v prlimit'`)
{
	plan skip_all => 'the memory of a backend cannot be limited';
}

my $set = MongoFdwTest::ReplicaSet->new(1, cache_gb => '0.8');
my $mongod = $set->primary;
my $node = new_postgres('memory');

create_server($node, 'mongodb', $mongod, address => undef, port => undef,
	uri => 'mongodb://127.0.0.1:' . $mongod->port . '/?replicaSet=rs');
$mongod->command("{\"create\": \"$_\"}", 'db') foreach qw(large changed written);
$node->safe_psql('postgres', qq{
	CREATE FOREIGN TABLE large (_id int, info text, numbers jsonb) SERVER mongodb OPTIONS (database 'db');
	CREATE FOREIGN TABLE changed (_id int, info text) SERVER mongodb OPTIONS (database 'db');
	CREATE FOREIGN TABLE written (_id int, info text) SERVER mongodb OPTIONS (database 'db');
	CREATE SCHEMA imported;
	INSERT INTO large SELECT i, repeat('x', $size), '[1, 2]' FROM generate_series(1, 2) i;
	INSERT INTO large SELECT 3, 'numbers', jsonb_agg(i) FROM generate_series(1, 300000) i;
	INSERT INTO changed VALUES (1, repeat('x', $size))});

my $sum = 2 * $size + 7;
my $repeatable = 'BEGIN ISOLATION LEVEL REPEATABLE READ; %s; COMMIT;';
my @cases = (
	[ 'read', 'SELECT sum(length(info)) FROM large;', $sum ],
	[ 'read in a transaction',
		sprintf($repeatable, 'SELECT sum(length(info)) FROM large'), $sum ],
	[ 'read by two cursors in a transaction', sprintf($repeatable,
			'SELECT sum(length(a.info)) FROM large a, large b WHERE length(a.info) = length(b.info)'),
		4 * $size + 7 ],
	[ 'read as jsonb', 'SELECT jsonb_array_length(numbers) FROM large WHERE _id = 3;', 300000 ],
	[ 'read as jsonb in a transaction', sprintf($repeatable,
			'SELECT jsonb_array_length(numbers) FROM large WHERE _id = 3'), 300000 ],
	[ 'aggregate', 'SELECT length(max(info)), count(*) FROM large;', "$size|3" ],
	[ 'aggregate in a transaction', sprintf($repeatable,
			'SELECT length(max(info)), count(*) FROM large'), "$size|3" ],
	[ 'compare', "SELECT count(*) FROM large WHERE info = repeat('x', $size);", 2 ],
	[ 'compare in a transaction', sprintf($repeatable,
			"SELECT count(*) FROM large WHERE info = repeat('x', $size)"), 2 ],
	[ 'insert', "BEGIN; INSERT INTO written VALUES (1, repeat('y', $size)) RETURNING _id; ROLLBACK;", 1 ],
	[ 'insert jsonb', 'BEGIN; INSERT INTO large SELECT 4, NULL, jsonb_agg(i) FROM generate_series(1, 300000) i'
		  . ' RETURNING _id; ROLLBACK;', 4 ],
	[ 'update', "BEGIN; UPDATE changed SET info = repeat('z', $size); SELECT 'updated'; ROLLBACK;", 'updated' ],
	[ 'update row by row', q{BEGIN; UPDATE changed SET info = translate(info, 'x', 'y') || random();
		SELECT 'updated'; ROLLBACK;}, 'updated' ],
	[ 'update one, returning', "BEGIN; UPDATE changed SET info = repeat('z', $size) WHERE _id = 1"
		  . ' RETURNING length(info); ROLLBACK;', $size ],
	[ 'delete, returning', 'BEGIN; DELETE FROM changed WHERE _id = 1 RETURNING length(info); ROLLBACK;', $size ],
	[ 'function', q{SELECT length(mongo_aggregate::text) FROM mongo_aggregate('mongodb', 'db', 'changed',
		'[{"$match": {"_id": 1}}, {"$project": {"info": 1}}]'::json);}, qr/^150000\d\d$/ ],
	[ 'import', q{BEGIN; IMPORT FOREIGN SCHEMA db LIMIT TO (large) FROM SERVER mongodb INTO imported;
		SELECT count(*) FROM pg_attribute WHERE attrelid = 'imported.large'::regclass AND attnum > 0; ROLLBACK;}, 3 ],
	[ 'analyze', q{ANALYZE large; SELECT 'analyzed';}, 'analyzed' ],
);

# limited
#	A script of these cases in a session that has so many megabytes.
sub limited
{
	my ($megabytes, @run) = @_;
	my $script = "LOAD 'mongo_fdw';\nSELECT pg_backend_pid() AS pid \\gset\n"
	  . "\\set limited `prlimit --pid :pid --as=\$((\$(awk '/VmSize/ {print \$2}' /proc/:pid/status) * 1024"
	  . " + $megabytes * 1048576))`\n";

	foreach my $case (@run)
	{
		$script .= "\\echo begin $case->[0]\n\\warn begin $case->[0]\n$case->[1]\nROLLBACK;\n";
	}
	return "$script\\echo begin end\n\\warn begin end\n";
}

my %seen = (answer => 0, ERROR => 0, FATAL => 0);

foreach my $megabytes (@steps)
{
	my @left = @cases;
	my @wrong;

	while (@left)
	{
		my ($stdout, $stderr);

		$node->psql('postgres', "\\set VERBOSITY verbose\n" . limited($megabytes, @left),
			stdout => \$stdout, stderr => \$stderr, on_error_stop => 0, timeout => 120);
		my %rows = map { /^([^\n]+)\n?(.*)/s ? ($1 => $2) : () } split /^begin /m, $stdout;
		my %errors = map { /^([^\n]+)\n?(.*)/s ? ($1 => $2) : () } split /^begin /m, $stderr;
		my $before = @left;

		while (@left)
		{
			my ($name, undef, $expected) = @{ $left[0] };
			my $error = $errors{$name} // last;
			my ($level, $sqlstate) = $error =~ /(ERROR|FATAL|PANIC):  (\w+):/;
			(my $answer = $rows{$name} // '') =~ s/\n+$//;

			shift @left;
			if (defined $level)
			{
				$seen{$level}++;
				push @wrong, "$name: $error" unless $sqlstate eq '53200';
				note("$megabytes MB, $name: $error") if $level ne 'ERROR';
			}
			elsif ($error =~ /server closed|connection .* lost/)
			{
				push @wrong, "$name: $error";
			}
			else
			{
				$seen{answer}++;
				push @wrong, "$name: $answer, not $expected"
				  unless ref $expected ? $answer =~ $expected : $answer eq $expected;
			}
		}
		if (@left == $before)
		{
			push @wrong, "the session did not begin: $stderr";
			last;
		}
	}
	is(join("\n", @wrong), '', "$megabytes MB more: answers and 53200 alone");
}
note(join ', ', map { "$seen{$_} times $_" } sort keys %seen);
cmp_ok($seen{$_}, '>', 0, "there were cases of $_") foreach qw(answer ERROR);

my @crashes = grep { /terminated by signal|PANIC/ } split /\n/, slurp_file($node->logfile);
is("@crashes", '', 'the server has never restarted');
is($node->safe_psql('postgres', 'SELECT sum(length(info)) FROM large'), $sum, 'the next session reads');
is($node->safe_psql('postgres', 'SELECT count(*), min(info) = repeat(\'x\', 15000000) FROM changed'), '1|t', 'nothing was changed');

done_testing();
