# The 22 queries of TPC-H, by t/tpch.py: each answer to the last digit as
# PostgreSQL gives it over local tables with the same rows.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('tpch', 'jit = off', 'fsync = off');
my $python = $ENV{PYTHON} || 'python3';

# text in the order of bytes, as MongoDB has it
$node->safe_psql('postgres', q(CREATE DATABASE tpch TEMPLATE template0 LOCALE 'C'));
open(my $pipe, '-|', $python, 't/tpch.py', '--dsn', $node->connstr('tpch'), '--port', $mongod->port)
  or die "cannot run $python: $!";
while (my $line = <$pipe>)
{
	chomp $line;
	if    ($line =~ /^ok - (.*)/)     { pass($1); }
	elsif ($line =~ /^not ok - (.*)/) { fail($1); }
	elsif ($line =~ /^# \d+ of 22/)      { note($line); }
	else                              { diag($line); }
}
close($pipe);
is($?, 0, 'all answers are PostgreSQL\'s');
done_testing();
