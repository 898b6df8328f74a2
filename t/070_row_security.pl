# Row-level security and security barriers: t/programs/row_security.py.
# ROW_SECURITY_SHARE=1 tries all expressions with all tables and statements.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('row_security', 'jit = off', 'fsync = off');

run_tests_of('programs/row_security.py', '--dsn', $node->connstr('postgres'), '--mongo', $mongod->uri,
	'--share', $ENV{ROW_SECURITY_SHARE} // 101);

done_testing();
