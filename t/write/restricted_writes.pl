# Writes that privileges, policies, CHECK OPTIONs, the bounds of partitions and read concerns
# restrict, and what triggers and other roles do at the same time.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $mongod = MongoFdwTest::ReplicaSet->new(1)->primary;
my $node = new_postgres('restricted');

create_server($node, 'mongodb', $mongod, replica_set => 'rs');
$node->safe_psql('postgres', 'CREATE ROLE ann; DROP USER MAPPING FOR CURRENT_USER SERVER mongodb; CREATE USER MAPPING FOR PUBLIC SERVER mongodb;
	GRANT USAGE ON FOREIGN SERVER mongodb TO ann; GRANT CREATE ON SCHEMA public TO ann');

# gives: what a script prints, the SQLSTATEs of its errors in their places.
sub gives
{
	my ($sql, $expected, $name) = @_;
	my (undef, $stdout) = $node->psql('postgres', "$sql\n" =~ s/(?<=;)\s*\n/\n\\if :ERROR\n\\echo :SQLSTATE\n\\endif\n/gr, on_error_stop => 0);
	is($stdout, $expected, $name);
}

# Two columns may read one field.
my $table = "SERVER mongodb OPTIONS (database 'db', collection";
$node->safe_psql('postgres', qq{
	CREATE TABLE owned (_id int, owner text, k int, alias text, "a.o" text, a jsonb, __doc jsonb) PARTITION BY LIST (k);
	CREATE FOREIGN TABLE owned_1 PARTITION OF owned FOR VALUES IN (1) $table 'owned_1');
	CREATE FOREIGN TABLE owned_rest PARTITION OF owned DEFAULT $table 'owned_rest');
	ALTER FOREIGN TABLE owned_1 ALTER alias OPTIONS (path 'owner');
	ALTER FOREIGN TABLE owned_rest ALTER alias OPTIONS (path 'owner');
	INSERT INTO owned (_id, owner, k, a) VALUES (1, 'ann', 1, '{"o": "ann"}'), (2, 'bob', 1, '{"o": "bob"}');
	ALTER TABLE owned ENABLE ROW LEVEL SECURITY;
	CREATE POLICY own ON owned USING (owner = current_user) WITH CHECK (owner = current_user AND "a.o" IS DISTINCT FROM 'bob');
	GRANT ALL ON owned TO ann;
	CREATE FOREIGN TABLE shown (_id int, owner text, n int, alias text OPTIONS (path 'owner'), __doc jsonb) $table 'shown');
	CREATE VIEW anns AS SELECT * FROM shown WHERE owner = 'ann' WITH CHECK OPTION;
	INSERT INTO shown (_id, owner, n) VALUES (1, 'ann', 1)});
gives(q{SET ROLE ann;
	UPDATE owned SET owner = 'bob';
	UPDATE owned SET alias = 'bob';
	UPDATE owned SET a = '{"o": "bob"}';
	UPDATE owned SET __doc = '{"owner": "bob", "k": 1}';
	INSERT INTO owned (_id, k, alias) VALUES (3, 1, 'bob');
	INSERT INTO owned (_id, k, alias) VALUES (4, 1, 'ann');
	INSERT INTO owned (__doc) VALUES ('{"_id": 5, "owner": "bob"}');
	INSERT INTO owned (__doc) VALUES ('{"_id": 6, "owner": "ann"}');
	INSERT INTO owned (__doc) VALUES ('{"_id": 7, "owner": "ann", "k": 1}');
	RESET ROLE;
	SELECT string_agg(_id || owner, ' ' ORDER BY _id) FROM owned;},
	"42501\n42501\n42501\n42501\n42501\n42501\n23514\n1ann 2bob 4ann 6ann", 'policies test what will be read');
gives(q{UPDATE anns SET owner = 'bob';
	UPDATE anns SET alias = 'bob';
	UPDATE anns SET __doc = '{"owner": "bob"}';
	UPDATE anns SET n = n + 1;
	INSERT INTO anns (__doc) VALUES ('{"_id": 2, "owner": "bob"}');
	INSERT INTO anns (__doc) VALUES ('{"_id": 3, "owner": "ann", "n": 3}') RETURNING _id, n;
	SELECT string_agg(_id || owner || n, ' ' ORDER BY _id) FROM shown;},
	"44000\n44000\n44000\n44000\n3|3\n1ann2 3ann3", 'and so do views');

# Bounds of partitions.
$node->safe_psql('postgres', qq{
	CREATE TABLE bound (_id int, k int, kk int, __doc jsonb) PARTITION BY LIST (k);
	CREATE FOREIGN TABLE bound_1 PARTITION OF bound FOR VALUES IN (1) $table 'bound_1');
	ALTER FOREIGN TABLE bound_1 ALTER kk OPTIONS (path 'k');
	CREATE FOREIGN TABLE bound_2 PARTITION OF bound FOR VALUES IN (2) $table 'bound_2');
	INSERT INTO bound VALUES (1, 1);
	CREATE TABLE hashed (_id text, v int) PARTITION BY HASH (_id);
	CREATE FOREIGN TABLE hashed_0 PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 0) $table 'hashed_0');
	CREATE FOREIGN TABLE hashed_1 PARTITION OF hashed FOR VALUES WITH (MODULUS 2, REMAINDER 1) $table 'hashed_1')});
gives(q{UPDATE bound SET kk = 2;
	UPDATE bound SET __doc = '{"k": 2}';
	SELECT _id, k FROM bound WHERE k = 1;}, "23514\n23514\n1|1", 'no column moves a document out of its partition');
is(($node->psql('postgres', 'INSERT INTO hashed (v) SELECT g FROM generate_series(1, 50) g'))[0], 3, 'nor is a generated _id out of bounds');
is($node->safe_psql('postgres', q{INSERT INTO hashed SELECT md5(g::text), g FROM generate_series(1, 9) g; SELECT count(*) FROM hashed WHERE _id = md5('4')}),
	1, 'those given are where they belong');

# ... also by triggers, and by upserts that return the row; a misfit elsewhere does not matter.
$node->safe_psql('postgres', qq{
	CREATE TABLE quiet (_id int, k int, kk int, v int, __doc jsonb) PARTITION BY LIST (k);
	CREATE FOREIGN TABLE quiet_1 PARTITION OF quiet FOR VALUES IN (1) $table 'quiet_1');
	CREATE FOREIGN TABLE quiet_rest PARTITION OF quiet DEFAULT $table 'quiet_rest', insert_mode 'upsert');
	ALTER FOREIGN TABLE quiet_1 ALTER kk OPTIONS (path 'k');
	CREATE FUNCTION set_kk() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.kk := NEW.v; RETURN NEW; END';
	CREATE TRIGGER set_kk BEFORE UPDATE ON quiet_1 FOR EACH ROW EXECUTE FUNCTION set_kk();
	INSERT INTO quiet (_id, k) VALUES (1, 1);
	CREATE TABLE keyed (_id text, v int) PARTITION BY HASH (_id);
	CREATE FOREIGN TABLE keyed_0 PARTITION OF keyed FOR VALUES WITH (MODULUS 2, REMAINDER 0) $table 'keyed_0', insert_mode 'upsert', key_columns 'v')});
gives(q{UPDATE quiet SET v = 9;
	INSERT INTO quiet (__doc) VALUES ('{"_id": 2, "k": 1}') RETURNING _id;
	INSERT INTO quiet (__doc) VALUES ('{"_id": 3, "k": 3, "v": "text"}') RETURNING _id;
	INSERT INTO keyed_0 VALUES ('x', 1);
	SELECT _id, k FROM quiet WHERE k = 1;}, "23514\n23514\n3\n22023\n1|1", 'nor does a trigger or an upsert');
gives(q{INSERT INTO shown (__doc) VALUES ('{"_id": 9, "n": "text"}') RETURNING _id, n;
	INSERT INTO shown (__doc) VALUES ('{"_id": 9, "n": "text"}') RETURNING _id;
	DELETE FROM shown WHERE _id = 9;}, "22P02\n9", 'RETURNING raises the errors of reading, of the columns that it names');

# A policy over the whole row, in which __doc changes too; bounds within a millisecond.
$node->safe_psql('postgres', qq{
	CREATE TABLE watched (_id int, v int, __doc jsonb) PARTITION BY LIST (_id);
	CREATE FOREIGN TABLE watched_all PARTITION OF watched DEFAULT $table 'watched');
	ALTER TABLE watched ENABLE ROW LEVEL SECURITY;
	CREATE POLICY small ON watched USING (true) WITH CHECK (to_jsonb(watched) #>> '{__doc,v}' < '3');
	CREATE FOREIGN TABLE written (_id int, v int, note xml, __doc jsonb) $table 'watched');
	INSERT INTO written (_id, v) VALUES (1, 1) RETURNING _id, v;
	GRANT ALL ON watched TO ann;
	CREATE TABLE cut (_id int, at timestamptz) PARTITION BY RANGE (at);
	CREATE FOREIGN TABLE cut_0 PARTITION OF cut FOR VALUES FROM ('2010-01-01Z') TO ('2020-01-01 00:00:00.0005Z') $table 'cut_0');
	CREATE FOREIGN TABLE cut_1 PARTITION OF cut FOR VALUES FROM ('2020-01-01 00:00:00.0005Z') TO ('2030-01-01Z') $table 'cut_1')});
gives(q{INSERT INTO written (_id, v) VALUES (4, 4) RETURNING v;
	DELETE FROM written WHERE _id = 4;
	SET ROLE ann;
	UPDATE watched SET v = 2 WHERE _id = 1 RETURNING v, __doc ->> 'v';
	UPDATE watched SET v = 5;
	RESET ROLE;
	INSERT INTO cut VALUES (1, '2020-01-01 00:00:00.0007Z');
	INSERT INTO cut VALUES (2, '2020-01-01 00:00:00.0004Z'), (3, '2020-01-01 00:00:00.0017Z');
	UPDATE cut_1 SET at = '2020-01-01 00:00:00.0009Z';
	SELECT _id, at = '2020-01-01 00:00:00.001Z', tableoid::regclass FROM cut ORDER BY _id;},
	"4\n2|2\n42501\n23514\n23514\n2|f|cut_0\n3|t|cut_1", 'whole rows, and fractions of milliseconds');

# MERGE: it cannot tell a moved row from a new one.
gives(q{MERGE INTO bound USING (VALUES (1)) x (id) ON _id = id AND k = 1 WHEN MATCHED THEN UPDATE SET k = 2;}, '0A000', 'MERGE of foreign tables');
$node->safe_psql('postgres', 'DROP FOREIGN TABLE bound_1; CREATE TABLE bound_1 PARTITION OF bound FOR VALUES IN (1); INSERT INTO bound VALUES (1, 1), (2, 1)');
gives(q{MERGE INTO bound USING (VALUES (1)) x (id) ON _id = id AND k = 1 WHEN MATCHED THEN UPDATE SET k = 2;
	MERGE INTO bound USING (VALUES (3)) x (id) ON _id = id AND k = 1 WHEN NOT MATCHED THEN INSERT VALUES (3, 2);
	UPDATE bound SET k = 2 WHERE _id = 2 AND k = 1;
	SELECT _id, k FROM bound ORDER BY _id;}, "0A000\n1|1\n2|2\n3|2", 'or of a partition to a foreign one');

# Upserts need the privilege to update, also of views, and of __doc.
$node->safe_psql('postgres', qq{
	CREATE FOREIGN TABLE ups (_id int, v int, secret text, g int GENERATED ALWAYS AS (v + 1) STORED, __doc jsonb) $table 'ups', insert_mode 'upsert');
	CREATE VIEW upv AS SELECT _id, v, secret FROM ups;
	CREATE TABLE beside (a int);
	CREATE VIEW beside_view AS SELECT a FROM beside;
	CREATE VIEW upw AS SELECT _id, v, secret FROM ups;
	GRANT INSERT, SELECT ON ups, upv, upw, beside_view TO ann;
	GRANT UPDATE (v) ON ups TO ann;
	GRANT UPDATE ON upw TO ann;
	INSERT INTO ups (_id, v, secret) VALUES (1, 1, 'x')});
gives(q{SET ROLE ann;
	INSERT INTO upv VALUES (1, 2, 'view');
	INSERT INTO ups (v, __doc) VALUES (NULL, '{"_id": 1, "v": 3, "secret": "document"}');
	INSERT INTO ups (_id, v, secret) VALUES (1, 4, 'column');
	INSERT INTO ups (_id, v) VALUES (1, 5);
	INSERT INTO upw VALUES (2, 6, 'allowed');
	WITH i AS (INSERT INTO beside_view VALUES (7) RETURNING a) INSERT INTO ups (_id, v) SELECT 3, a FROM i;
	RESET ROLE;
	SELECT _id, v, secret, g FROM ups ORDER BY _id;}, "42501\n42501\n42501\n1|5|x|6\n2|6|allowed|7\n3|7||8", 'privileges of upserts');

# A single command must not change what the statement's own triggers have written.
$node->safe_psql('postgres', qq{
	CREATE TABLE archived (_id int, k int, v int) PARTITION BY LIST (k);
	CREATE TABLE archived_1 PARTITION OF archived FOR VALUES IN (1);
	CREATE FOREIGN TABLE archived_2 PARTITION OF archived FOR VALUES IN (2) $table 'archived_2');
	CREATE FUNCTION copy_row() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO archived_2 VALUES (100 + OLD._id, 2, 0); RETURN coalesce(NEW, OLD); END';
	CREATE TRIGGER copy BEFORE UPDATE OR DELETE ON archived_1 FOR EACH ROW EXECUTE FUNCTION copy_row();
	INSERT INTO archived VALUES (1, 1, 0), (2, 2, 0)});
gives(q{UPDATE archived SET v = v + 1;
	SELECT * FROM archived ORDER BY _id;
	DELETE FROM archived WHERE v >= 0;
	SELECT * FROM archived;
	INSERT INTO archived VALUES (3, 1, 0);
	WITH gone AS (DELETE FROM archived_1 RETURNING v) UPDATE archived_2 SET v = (SELECT 7 + max(v) FROM gone);
	SELECT * FROM archived ORDER BY _id;},
	"1|1|1\n2|2|1\n101|2|0\n101|2|0\n101|2|7\n103|2|0", 'rows that triggers write stay as they are');

# Roles that share a user mapping share the transaction.
$node->safe_psql('postgres', qq{
	CREATE FOREIGN TABLE common (_id int, v text) $table 'common');
	CREATE VIEW common_view AS SELECT * FROM common;
	GRANT ALL ON common, common_view TO ann;
	CREATE FUNCTION add(i int) RETURNS void LANGUAGE sql SECURITY DEFINER AS 'INSERT INTO common VALUES (i, ''added'')'});
gives(q{SET ROLE ann;
	BEGIN;
	SELECT 'one' FROM add(1);
	UPDATE common SET v = v || '!';
	UPDATE common_view SET v = v || '?';
	TABLE common;
	COMMIT;
	TABLE common;}, "one\n1|added!?\n1|added!?", 'two roles in one transaction');

# Levels of read_concern that transactions or count do not take.
foreach my $level (qw(local available majority linearizable snapshot))
{
	create_server($node, $level, $mongod, replica_set => 'rs', read_concern => $level, use_remote_estimate => 'true', count_from_metadata => 'true');
	gives(qq{CREATE FOREIGN TABLE at_$level (_id int, v int) SERVER $level OPTIONS (database 'db', collection 'at_$level');
		INSERT INTO at_$level VALUES (1, 1), (2, 2);
		BEGIN;
		UPDATE at_$level SET v = 3 WHERE _id = 2;
		SELECT sum(v) FROM at_$level;
		COMMIT;
		ANALYZE at_$level;
		SELECT count(*), sum(v) FROM at_$level;}, "4\n2|4", "read_concern $level");
}

done_testing();
