# Replies whose bytes are spoilt at random, in the frame and in the document, to
# reads, writes and greetings, compressed and not: an error or some rows, never a
# crash.  More of it: MUTATED_REPLIES=100000 MUTATED_REPLIES_SEED=7 TEST_FILE_TIMEOUT=3600

use strict;
use warnings;

use IPC::Open2;
use MongoFdwTest;
use Test::More;

my $COUNT = $ENV{MUTATED_REPLIES} || 1000;
my $SEED = $ENV{MUTATED_REPLIES_SEED} || 0;

my $node = new_postgres('mutated_replies');
my @fakes;

# A statement that ends without rows that count, whatever becomes of it.
$node->safe_psql('postgres', q{
	CREATE PROCEDURE attempt(statement text, attempts int) LANGUAGE plpgsql AS $$
	DECLARE
		failed int := 0;
		lost int := 0;
	BEGIN
		FOR i IN 1..attempts LOOP
			BEGIN
				SET LOCAL statement_timeout = '20s';
				EXECUTE statement;
			EXCEPTION WHEN OTHERS THEN
				failed := failed + 1;
				IF SQLSTATE = '57014' THEN lost := lost + 1; END IF;
			END;
			COMMIT;
		END LOOP;
		RAISE NOTICE 'failed %, timed out %', failed, lost;
	END $$});

foreach my $case (
	[ plain => '', 'SELECT count(info) FROM plain.spoilt' ],
	[ next => '', 'SELECT count(info) FROM next.next_spoilt' ],
	[ packed => ", compressors 'zlib'", 'SELECT count(info) FROM packed.packed_spoilt', '--compressor=zlib' ],
	[ written => '', 'INSERT INTO written.spoilt VALUES (1)' ],
	[ packed_writes => ", compressors 'zlib'", 'INSERT INTO packed_writes.packed_spoilt VALUES (1)', '--compressor=zlib' ],
	[ greeted => '', 'SELECT count(info) FROM greeted.good', '--greeting=spoilt' ])
{
	my ($name, $options, $statement, @arguments) = @$case;
	my ($reader, $writer, $table) = (undef, undef, $statement =~ /(\w+\.\w+)/);
	my $pid = open2($reader, $writer, python('fake_mongod.py', "--seed=$SEED", @arguments));
	push @fakes, [ $pid, $writer ];
	chomp(my $port = <$reader>);

	my ($status, $stdout, $stderr) = $node->psql('postgres', qq{
		CREATE SCHEMA $name;
		CREATE SERVER $name FOREIGN DATA WRAPPER mongo_fdw OPTIONS (address '127.0.0.1', port '$port' $options);
		CREATE USER MAPPING FOR CURRENT_USER SERVER $name;
		CREATE FOREIGN TABLE $table (id int, info text) SERVER $name OPTIONS (database 'db');
		CALL attempt('$statement', $COUNT);
		SELECT 'alive'}, timeout => 1800);
	is($status, 0, "$name: no crash in $COUNT replies") or diag($stderr);
	my ($failed, $lost) = $stderr =~ /failed (\d+), timed out (\d+)/;
	cmp_ok($failed // 0, '>', $COUNT / 4, "$name: many of them are errors");
	is($lost, 0, "$name: and none is waited for in vain");
}

foreach my $fake (@fakes)
{
	close $fake->[1];
	waitpid $fake->[0], 0;
}
unlike(PostgreSQL::Test::Utils::slurp_file($node->logfile), qr/terminated by signal|AddressSanitizer|runtime error/,
	'the log has no crash');
done_testing();
