# Writing in less usual circumstances: large rows, partitions, triggers,
# options of servers, and others who write at the same time.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;
use Time::HiRes qw(sleep);

my $set = MongoFdwTest::ReplicaSet->new(1);
my $alone = MongoFdwTest::Mongod->new;
my $node = new_postgres('detail', 'max_prepared_transactions = 5');
create_server($node, 'mongodb', $set->primary, replica_set => 'rs');
create_server($node, 'alone', $alone);

# run_commands: what SQL printed, and the commands that MongoDB counted
sub run_commands
{
	my ($server, $sql) = @_;
	$server->snapshot;
	my ($status, $stdout, $stderr) = $node->psql('postgres', "\\set VERBOSITY verbose\n$sql");
	my $commands = $server->changes->{commands};
	delete @$commands{qw(hello isMaster ping saslStart saslContinue endSessions buildInfo)};
	return ($stdout, $stderr, $commands);
}

sub profiled
{
	my ($sql, $filter) = @_;
	my $primary = $set->primary;
	$primary->command('{"profile": 2, "slowms": 0}', 'db');
	$node->psql('postgres', $sql);
	$primary->command('{"profile": 0}', 'db');
	my $found = $primary->command("{\"find\": \"system.profile\", \"filter\": $filter}", 'db')->{cursor}{firstBatch};
	$primary->command('{"drop": "system.profile"}', 'db');
	return @$found;
}

$node->safe_psql('postgres', q{
	CREATE FOREIGN TABLE large (_id int, b text) SERVER alone OPTIONS (database 'db');
	CREATE FOREIGN TABLE alone_t (_id int, a int, b text) SERVER alone OPTIONS (database 'db');
	CREATE FOREIGN TABLE t (_id int, a int, b text) SERVER mongodb OPTIONS (database 'db');
	INSERT INTO t SELECT g, g, 'b' FROM generate_series(1, 10) g});

# batches end by bytes too
my ($out, $err, $commands) = run_commands($alone, q{INSERT INTO large SELECT g, repeat('x', 1000000) FROM generate_series(1, 30) g});
is_deeply([ $err, $commands ], [ '', { insert => 3 } ], '30 MB are three batches of 12 MB at most');
($out, $err, $commands) = run_commands($alone, q{UPDATE large SET b = b || _id WHERE _id % 2 = 0});
is_deeply([ $err, $commands->{update} ], [ '', 2 ], 'so are updates, which wait on disk until all is read');
is($node->safe_psql('postgres', q{SELECT count(*), sum(length(b)) FROM large WHERE length(b) > 1000000}), '15|15000026', '... and are all there');
($out, $err) = run_commands($alone, q{INSERT INTO large VALUES (101, 'a'), (102, 'b'), (103, repeat('x', 17000000)), (104, 'c')});
# psql may print the warning, which comes second, before the error
like($err, qr/54000: document is too large for MongoDB.*row 3 for foreign table "large"/s, 'a row above 16 MB is named');
like($err, qr/were not rolled back.*2 documents had been written/s, '... and how many rows stay');
($out, $err) = run_commands($set->primary, q{BEGIN; INSERT INTO t VALUES (101, 1, 'a'), (102, 1, repeat('x', 17000000)); COMMIT});
like($err, qr/54000.*row 2/s, '... in a transaction too');
is($node->safe_psql('postgres', 'SELECT count(*) FROM t WHERE _id > 100'), 0, '... of which nothing stays');
($out, $err) = run_commands($alone, q{UPDATE large SET b = repeat('y', 17000000) || b WHERE _id <= 2});
like($err, qr/54000.*row 1 for foreign table "large"/s, 'UPDATE names the row as well');

# partitions
$node->safe_psql('postgres', q{
	CREATE TABLE parted (_id int, a int DEFAULT 7, g int GENERATED ALWAYS AS (a * 2) STORED, b text) PARTITION BY RANGE (_id);
	CREATE FOREIGN TABLE part_1 PARTITION OF parted FOR VALUES FROM (0) TO (1000) SERVER alone OPTIONS (database 'db');
	CREATE FOREIGN TABLE part_2 PARTITION OF parted FOR VALUES FROM (1000) TO (2000) SERVER mongodb OPTIONS (database 'db');
	CREATE TABLE part_3 PARTITION OF parted FOR VALUES FROM (2000) TO (3000)});
($out, $err, $commands) = run_commands($alone, q{COPY parted (_id) FROM PROGRAM 'seq 500 2499'});
is_deeply([ $err, $commands ], [ '', { insert => 1 } ], 'COPY routes rows to partitions, in batches');
is($node->safe_psql('postgres', 'SELECT tableoid::regclass, count(*), min(a), max(g) FROM parted GROUP BY 1 ORDER BY 1'),
	"part_1|500|7|14\npart_2|1000|7|14\npart_3|500|7|14", '... with defaults and generated columns');
is($node->safe_psql('postgres', q{INSERT INTO parted (_id) VALUES (1), (1001), (2000) ON CONFLICT DO NOTHING; SELECT count(*) FROM parted}), 2002, 'ON CONFLICT DO NOTHING over partitions');
is($node->safe_psql('postgres', q{WITH u AS (UPDATE parted SET b = _id::text, a = 1 WHERE _id % 1000 = 500 RETURNING tableoid::regclass, _id, g, b) SELECT * FROM u ORDER BY _id}),
	"part_1|500|2|500\npart_2|1500|2|1500", 'UPDATE of partitions on two servers');
($out, $err) = run_commands($alone, q{INSERT INTO part_1 (_id) VALUES (5000), (1)});
like($err, qr/23505.*row 2/s, 'a duplicate key in a partition');

# triggers run in order, and see the row
$node->safe_psql('postgres', q{
	CREATE TABLE told (n serial, what text);
	CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN INSERT INTO told (what) VALUES (TG_NAME || ' ' || TG_OP || CASE WHEN TG_LEVEL = 'ROW' THEN ' ' || coalesce(OLD.a::text, '-') || ' ' || coalesce(NEW.a::text, '-') ELSE '' END);
		RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END; END $$;
	CREATE TRIGGER b_after AFTER INSERT OR UPDATE OR DELETE ON alone_t FOR EACH ROW EXECUTE FUNCTION tell();
	CREATE TRIGGER a_after AFTER INSERT OR UPDATE OR DELETE ON alone_t FOR EACH ROW EXECUTE FUNCTION tell();
	CREATE TRIGGER z_before BEFORE INSERT OR UPDATE OR DELETE ON alone_t FOR EACH ROW EXECUTE FUNCTION tell();
	CREATE TRIGGER s_after AFTER INSERT OR UPDATE OR DELETE ON alone_t FOR EACH STATEMENT EXECUTE FUNCTION tell();
	INSERT INTO alone_t VALUES (1, 10), (2, 20); UPDATE alone_t SET a = a + 1 WHERE _id = 2; DELETE FROM alone_t WHERE _id = 1});
is($node->safe_psql('postgres', q{SELECT string_agg(what, ', ' ORDER BY n) FROM told}),
	join(', ', 'z_before INSERT - 10', 'z_before INSERT - 20', 'a_after INSERT - 10', 'b_after INSERT - 10', 'a_after INSERT - 20', 'b_after INSERT - 20', 's_after INSERT',
		'z_before UPDATE 20 21', 'a_after UPDATE 20 21', 'b_after UPDATE 20 21', 's_after UPDATE', 'z_before DELETE 10 -', 'a_after DELETE 10 -', 'b_after DELETE 10 -', 's_after DELETE'),
	'triggers in their order, with old and new rows');

# server options
$node->safe_psql('postgres', q{ALTER SERVER mongodb OPTIONS (ADD keep_connections 'false')});
is($node->safe_psql('postgres', q{BEGIN; UPDATE t SET a = 100 WHERE _id = 1; SELECT a FROM t WHERE _id = 1; UPDATE t SET b = b || a WHERE _id = 1; COMMIT; SELECT a, b FROM t WHERE _id = 1}),
	"100\n100|b100", 'a transaction keeps its connection where keep_connections is off');
$node->safe_psql('postgres', q{ALTER SERVER mongodb OPTIONS (DROP keep_connections, ADD write_concern '1', ADD read_concern 'majority')});
my @found = profiled(q{BEGIN; SELECT a FROM t WHERE _id = 3; COMMIT}, '{"op": "query", "ns": "db.t"}');
is($found[0]{command}{readConcern}{level}, 'majority', 'read_concern goes with reads');
$node->safe_psql('postgres', q{ALTER SERVER mongodb OPTIONS (ADD transactions 'off')});
@found = profiled(q{INSERT INTO t VALUES (200, 1)}, '{"op": "insert", "ns": "db.t"}');
is($found[0]{command}{writeConcern}{w}, 1, 'write_concern goes with writes');
$node->safe_psql('postgres', q{ALTER SERVER mongodb OPTIONS (SET write_concern '2')});
($out, $err) = run_commands($set->primary, q{INSERT INTO t VALUES (201, 1)});
like($err, qr/could not insert into foreign table "t".*(Not enough data-bearing|cannot satisfy)/si, '... and one that cannot be met is an error');
$node->safe_psql('postgres', q{ALTER SERVER mongodb OPTIONS (DROP transactions, DROP write_concern, DROP read_concern)});
($out, $err) = run_commands($set->primary, q{BEGIN; DELETE FROM t WHERE _id = 4; PREPARE TRANSACTION 'p'; SELECT count(*) FROM t WHERE _id = 4});
like($err, qr/0A000: cannot PREPARE/, 'PREPARE TRANSACTION is refused');
is($node->safe_psql('postgres', 'SELECT count(*) FROM t WHERE _id = 4'), 1, '... and undone');

# Others write between our reading and our writing.  Outside of a MongoDB
# transaction the row that was read decides; inside, that is a conflict.
$node->safe_psql('postgres', q{CREATE FUNCTION slowly(n int) RETURNS int LANGUAGE plpgsql VOLATILE AS 'BEGIN PERFORM pg_sleep(2); RETURN n; END';
	DROP TRIGGER a_after ON alone_t; DROP TRIGGER b_after ON alone_t; DROP TRIGGER z_before ON alone_t; DROP TRIGGER s_after ON alone_t;
	INSERT INTO alone_t VALUES (50, 1, 'old')});
foreach my $case ([ 'alone_t', 50, $alone, qr/^$/, '6|new' ], [ 't', 5, $set->primary, qr/40001/, '7|new' ])
{
	my ($table, $id, $server, $expected, $row) = @$case;
	$node->safe_psql('postgres', "UPDATE $table SET a = 5 WHERE _id = $id");
	my $writer = background_query($node, "\\set VERBOSITY verbose\nUPDATE $table SET a = slowly(a) + 1 WHERE _id = $id");
	sleep 1;
	$node->safe_psql('postgres', "UPDATE $table SET a = 7, b = 'new' WHERE _id = $id");
	my ($status, $stdout, $stderr) = $writer->finish;
	like($stderr, $expected, "$table: another writes what an UPDATE has read");
	is($node->safe_psql('postgres', "SELECT a, b FROM $table WHERE _id = $id"), $row, '... and what stays');
}

done_testing();
