# A batch is on its way while the next one is made: what overlaps, and what becomes of
# it when something goes wrong meanwhile.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $alone = MongoFdwTest::Mongod->new;
my $set = MongoFdwTest::ReplicaSet->new(1);
my $member = $set->primary;
my $node = new_postgres('overlapping');
my %proxies;

foreach my $server ([ alone => $alone ], [ off => $member, transactions => 'off' ])
{
	my ($name, $mongod, %options) = @$server;

	$proxies{$name} = MongoFdwTest::helper('record', port => $mongod->port);
	create_server($node, $name, $mongod, port => $proxies{$name}, replica_set => undef, %options);
	$node->safe_psql('postgres', qq{
		CREATE SCHEMA "$name";
		CREATE FOREIGN TABLE "$name".things (_id int, n bigint) SERVER "$name" OPTIONS (database 'db', batch_size '10');
		CREATE FOREIGN TABLE "$name".others (_id int, n bigint) SERVER "$name" OPTIONS (database 'db', batch_size '10')});
}
$node->safe_psql('postgres', q{CREATE SEQUENCE made;
	CREATE FUNCTION there() RETURNS bigint LANGUAGE sql VOLATILE AS 'SELECT count(*) FROM alone.things';
	CREATE FUNCTION fails_inside() RETURNS bigint LANGUAGE plpgsql VOLATILE AS
		'BEGIN PERFORM 1 / 0; RETURN 1; EXCEPTION WHEN division_by_zero THEN RETURN 2; END';
	CREATE FUNCTION counts_inside() RETURNS bigint LANGUAGE plpgsql VOLATILE AS
		'DECLARE n bigint; BEGIN SELECT count(*) INTO n FROM alone.things; RETURN n; EXCEPTION WHEN OTHERS THEN RETURN -1; END';
	CREATE FUNCTION stops(i bigint, at bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE AS
		'BEGIN IF i = at THEN RAISE division_by_zero; END IF; RETURN i; END'});

sub stored { return $node->safe_psql('postgres', "SELECT count(*), count(DISTINCT _id) FROM $_[0].things") }

sub begin_anew
{
	$alone->unblock_commands;
	$member->unblock_commands;
	$node->safe_psql('postgres', q{TRUNCATE alone.things; TRUNCATE off.things; TRUNCATE alone.others; ALTER SEQUENCE made RESTART});
	recorded_writes($_) foreach values %proxies;
}

sub made { return $node->safe_psql('postgres', 'SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM made') }

# ------------------------------- what overlaps ---------------------------------

begin_anew();
$alone->block_commands(1500, 'insert');
my $insert = background_query($node, q{INSERT INTO alone.things SELECT i, nextval('made') FROM generate_series(1, 45) i});
my $deadline = time + 10;
sleep 0.02 until made() >= 20 || time > $deadline;
sleep 0.3;
is(made(), 20, 'a second batch is made while the first is on its way, and no third');
is(scalar(recorded_writes($proxies{alone})), 1, '... which is one message');
$alone->unblock_commands;
my (undef, undef, $stderr) = $insert->finish;
is($stderr, '', 'the statement ends well');
is(stored('alone'), '45|45', '... with all of its rows');
is(join(' ', map { scalar @{ $_->{documents} } } recorded_writes($proxies{alone})), '10 10 10 5', '... in batches');

# COPY, UPDATE and DELETE by rows
begin_anew();
$node->safe_psql('postgres', q{COPY alone.things (_id) FROM PROGRAM 'seq 1 45'});
is(stored('alone'), '45|45', 'COPY');
$node->safe_psql('postgres', q{UPDATE alone.things SET n = _id + length(md5(_id::text)) - 32});
is($node->safe_psql('postgres', 'SELECT count(*), sum(n), sum(_id) FROM alone.things'), '45|1035|1035', 'UPDATE by rows');
is(scalar(recorded_writes($proxies{alone})), 10, '... in batches');
$node->safe_psql('postgres', q{DELETE FROM alone.things WHERE length(md5(_id::text)) = 32 AND _id > 20});
is(stored('alone'), '20|20', 'DELETE by rows');

# What is read in between comes after what was sent, also by another user, and after a batch.
$node->safe_psql('postgres', q{CREATE ROLE other; CREATE USER MAPPING FOR other SERVER alone; GRANT USAGE ON SCHEMA alone TO other;
	GRANT SELECT ON alone.things TO other; CREATE FUNCTION there_for_other() RETURNS bigint LANGUAGE sql VOLATILE SECURITY DEFINER AS 'SELECT there()';
	ALTER FUNCTION there_for_other() OWNER TO other});
foreach my $read ('there()', 'there_for_other()', 'CASE i % 10 WHEN 1 THEN there_for_other() ELSE i - 1 END')
{
	begin_anew();
	$alone->block_commands(50, 'insert');
	$node->safe_psql('postgres', "INSERT INTO alone.things SELECT i, $read FROM generate_series(1, 35) i");
	is($node->safe_psql('postgres', 'SELECT count(*), count(*) FILTER (WHERE n = _id - 1) FROM alone.things'), '35|35',
		"a function sees the rows before, as in an ordinary table: $read");
}
begin_anew();
$alone->block_commands(50, 'insert');
$node->safe_psql('postgres', q{INSERT INTO alone.things SELECT i, (mongo_command('alone', 'db', '{"count": "things"}') ->> 'n')::int + 0 * i
	FROM generate_series(1, 35) i});
is($node->safe_psql('postgres', 'SELECT string_agg(DISTINCT n::text, $$ $$ ORDER BY n::text) FROM alone.things'), '0 10 20 30',
	'so does mongo_command()');
begin_anew();
$node->safe_psql('postgres', 'INSERT INTO alone.things SELECT i, fails_inside() FROM generate_series(1, 35) i');
is(stored('alone'), '35|35', 'savepoints in between end nothing');

# from the same server, and over partitions
begin_anew();
$node->safe_psql('postgres', q{INSERT INTO alone.others SELECT i, i FROM generate_series(1, 345) i;
	ALTER FOREIGN TABLE alone.others OPTIONS (ADD fetch_size '20');
	INSERT INTO alone.things SELECT * FROM alone.others});
is(stored('alone'), '345|345', 'from a table of the same server');
$node->safe_psql('postgres', q{CREATE TABLE parts (p int, _id int, n bigint) PARTITION BY LIST (p);
	CREATE FOREIGN TABLE part_1 PARTITION OF parts FOR VALUES IN (0) SERVER alone OPTIONS (database 'db', batch_size '10');
	CREATE FOREIGN TABLE part_2 PARTITION OF parts FOR VALUES IN (1) SERVER alone OPTIONS (database 'db', batch_size '10');
	INSERT INTO parts SELECT i % 2, i, i FROM generate_series(1, 75) i});
is($node->safe_psql('postgres', 'SELECT p, count(*), count(DISTINCT _id) FROM parts GROUP BY 1 ORDER BY 1'), "0|37|37\n1|38|38", 'partitions in turn');

# ------------------------------- what goes wrong --------------------------------

begin_anew();
my ($out, $err) = run_sql('INSERT INTO alone.things SELECT CASE i WHEN 13 THEN 12 ELSE i END, 0 FROM generate_series(1, 95) i');
like($err, qr/ERROR:  23505: could not insert into foreign table "things", row 13\n.*rows of this statement already written: 12/s,
	'an error in a batch names its row');
like($err, qr/12 documents had been written/, '... and the WARNING tells what stays');
is(scalar(recorded_writes($proxies{alone})), 2, '... and nothing is sent after it');
is(stored('alone'), '12|12', '... nor written');

begin_anew();
($out, $err) = run_sql('INSERT INTO alone.things SELECT CASE i WHEN 3 THEN 2 ELSE i END, counts_inside() FROM generate_series(1, 95) i');
like($err, qr/ERROR:  23505: could not insert into foreign table "things", row 3\n/, 'no exception block of others catches it');
is(stored('alone'), '2|2', '... and nothing follows');

begin_anew();
($out, $err) = run_sql('INSERT INTO parts SELECT i % 2, CASE i WHEN 1004 THEN 1002 ELSE i END, i FROM generate_series(1001, 1095) i');
like($err, qr/ERROR:  23505: could not insert into foreign table "part_1", row 2\n/, 'nor do partitions hide it');
is(join(' ', map { $_->{insert} } recorded_writes($proxies{alone})), 'part_2 part_1', '... whose batches are not sent any more');

# ... nor do its words go to who may read the other partition only
begin_anew();
$node->safe_psql('postgres', q{CREATE ROLE writer; CREATE USER MAPPING FOR writer SERVER alone;
	GRANT INSERT ON parts TO writer; GRANT SELECT ON part_2 TO writer});
($out, $err) = run_sql('SET ROLE writer; INSERT INTO parts SELECT i % 2, CASE i WHEN 2004 THEN 2002 ELSE i END, i FROM generate_series(2001, 2095) i');
like($err, qr/ERROR:  23505: could not insert into foreign table "part_1", row 2\nDETAIL:  MongoDB error 11000\.\n/, 'the error without its words');

# the statement fails while a batch is on its way
begin_anew();
$alone->block_commands(100, 'insert');
($out, $err) = run_sql('INSERT INTO alone.things SELECT i, stops(i, 25) FROM generate_series(1, 95) i');
like($err, qr/WARNING:.*\nDETAIL:  20 documents had been written in this transaction\. Without/, 'an error of the statement: what was under way is waited for');
is(stored('alone'), '20|20', '... and told');

begin_anew();
$alone->block_commands(3000, 'insert');
my $start = time;
($out, $err) = run_sql('INSERT INTO alone.things SELECT i, stops(i, 15) FROM generate_series(1, 95) i');
cmp_ok(time - $start, '<', 2.5, '... not for long');
like($err, qr/DETAIL:  MongoDB (has ended|may still be running) a command that may have changed up to 10 documents/, '... but told then');
$alone->unblock_commands;
($out, $err) = run_sql(q{DO $$ BEGIN INSERT INTO alone.others SELECT -i, stops(i, 15) FROM generate_series(1, 20) i;
	EXCEPTION WHEN division_by_zero THEN RAISE NOTICE 'caught'; END $$; SELECT count(*) FROM alone.others WHERE _id < 0});
like($err, qr/WARNING:.*\n.*10 documents had been written in this transaction.*NOTICE:.*caught/s, 'in an exception block');
is($out, '10', '... after which the session goes on');

# cancelled, terminated
foreach my $case ([ 'pg_cancel_backend', qr/ERROR:  57014/ ], [ 'pg_terminate_backend', qr/FATAL:  57P01/ ])
{
	my ($function, $expected) = @$case;

	begin_anew();
	$insert = background_query($node, "\\set VERBOSITY verbose\nINSERT INTO alone.things SELECT i, nextval('made') + length(pg_sleep(CASE WHEN i = 15 THEN 60 ELSE 0 END)::text) "
		  . 'FROM generate_series(1, 95) i');
	$deadline = time + 10;
	sleep 0.02 until made() >= 15 || time > $deadline;
	$start = time;
	$node->safe_psql('postgres', "SELECT $function(pid) FROM pg_stat_activity WHERE query LIKE '%INSERT INTO alone%' AND pid <> pg_backend_pid()");
	(undef, undef, $stderr) = $insert->finish;
	cmp_ok(time - $start, '<', 5, "$function: at once");
	like($stderr, $expected, "$function: the error");
	like($function =~ /cancel/ ? $stderr : PostgreSQL::Test::Utils::slurp_file($node->logfile),
		qr/10 documents had been written in this transaction\. Without/, "$function: the WARNING");
	is(stored('alone'), '10|10', "$function: what is written");
}

# the connection is lost while a batch is on its way
begin_anew();
$member->fail_command(1, undef, 'insert');
($out, $err) = run_sql('INSERT INTO off.things SELECT i, 0 FROM generate_series(1, 45) i');
is($err, '', 'a lost connection: the batch is repeated');
is(stored('off'), '45|45', '... and there once');
begin_anew();
$alone->fail_command(1, undef, 'insert');
($out, $err) = run_sql('INSERT INTO alone.things SELECT i, 0 FROM generate_series(1, 45) i; SELECT count(*) FROM alone.things');
like($err, qr/ERROR:  08006: could not insert into foreign table "things"\n/, 'or it is an error');
like($err, qr/MongoDB may still be running a command that may have changed up to 10 documents/, '... with what is not known');
is($out, '0', '... and the session goes on');

done_testing();
