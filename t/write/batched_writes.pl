# UPDATE, DELETE, MERGE and SELECT FOR UPDATE with a batched join: how many commands they send, and
# that they do what the same statements do to local tables.

use strict;
use warnings;

use MongoFdwTest;
use Test::More;

my $alone = MongoFdwTest::Mongod->new;
my $set = MongoFdwTest::ReplicaSet->new(1);
my $node = new_postgres('batched_writes', 'jit = off');
my ($mongod, $both);

create_server($node, 'alone', $alone);
create_server($node, 'replicated', $set->primary, replica_set => 'rs');
sql(q{
	CREATE SCHEMA locals;
	CREATE SCHEMA foreigners;
	CREATE TABLE told (schema name DEFAULT current_schema, n serial, what text);
	CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			INSERT INTO told (what) VALUES (TG_WHEN || coalesce(OLD.v, '-') || coalesce(NEW.v, '-'));
			IF TG_WHEN = 'BEFORE' AND TG_OP = 'UPDATE' THEN NEW.v := NEW.v || '!'; END IF;
			RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
		END $$;
	CREATE ROLE reader;
	GRANT USAGE ON SCHEMA locals, foreigners TO reader;
	CREATE USER MAPPING FOR reader SERVER alone;
	CREATE USER MAPPING FOR reader SERVER replicated});

# Makes the tables of both schemas anew: "items" and "other" are foreign in one of them.
sub begin_anew
{
	my ($server) = @_;

	foreach my $schema ('locals', 'foreigners')
	{
		my ($table, $end) = $schema eq 'locals' ? ('TABLE', '') : ('FOREIGN TABLE', "SERVER $server OPTIONS (database 'db')");

		sql(qq{
			SET client_min_messages = error;
			SET search_path = $schema, public;
			DO \$\$ BEGIN
				IF to_regclass('items') IS NOT NULL AND '$schema' = 'foreigners' THEN
					DELETE FROM items; DELETE FROM other; DELETE FROM part_1;
				END IF;
			END \$\$;
			DROP $table IF EXISTS items, other CASCADE;
			DROP TABLE IF EXISTS keys, parted CASCADE;
			CREATE $table items (_id int, k int, v text) $end;
			CREATE $table other (_id int, k int, w text) $end;
			CREATE TABLE keys (n int PRIMARY KEY, k int, t text);
			CREATE TABLE parted (_id int, k int, v text) PARTITION BY RANGE (_id);
			CREATE $table part_1 PARTITION OF parted FOR VALUES FROM (0) TO (1000) $end;
			CREATE TABLE part_2 PARTITION OF parted FOR VALUES FROM (1000) TO (5000);
			INSERT INTO items SELECT g, g * 3 % 2500, 'v' || g FROM generate_series(1, 2500) g;
			INSERT INTO other SELECT g, NULLIF(g * 7 % 3000, 7), 'w' || g FROM generate_series(1, 3000) g;
			INSERT INTO parted SELECT g * 10, g, 'p' || g FROM generate_series(1, 200) g;
			INSERT INTO keys SELECT g, CASE WHEN g % 50 <> 0 THEN g * 11 % 2600 END, 't' || g FROM generate_series(1, 2100) g;
			INSERT INTO keys SELECT 3000 + g, 5 FROM generate_series(1, 20) g;
			CREATE VIEW checked AS SELECT * FROM items WHERE k < 3000 WITH CHECK OPTION;
			GRANT ALL ON items, other, keys TO reader;
			ANALYZE items, other, keys});
	}
}

my $bare = join(' ', map { "SET enable_$_ = off;" } qw(hashjoin mergejoin nestloop));
my $state = q{SELECT t, md5(string_agg(r, ',' ORDER BY r)) FROM (SELECT 'i' AS t, items::text AS r FROM items
	UNION ALL SELECT 'k', keys::text FROM keys UNION ALL SELECT 'p', parted::text FROM parted
	UNION ALL SELECT 't', what FROM told WHERE schema = current_schema) s GROUP BY t ORDER BY t};

# Runs a statement in both schemas: the same rows returned, and the same tables afterwards, by this
# many reads.
sub writes
{
	my ($sql, $reads, $name) = @_;
	my $session = $both->{foreigners};
	my ($explain) = $sql =~ /((?:WITH|UPDATE|DELETE|MERGE|SELECT).*)/s;
	my ($expected, $rows, $sent);

	if (defined $reads)
	{
		like($session->ask("EXPLAIN (VERBOSE) $explain"), qr/MongoDB Batched Join/, "$name: batched");
	}
	$expected = $both->{locals}->ask($sql);
	$mongod->snapshot;
	$rows = $session->ask($sql);
	s/^psql:<stdin>:\d+: //mg foreach $rows, $expected;
	$_ = join("\n", sort split /\n/, $_) foreach $rows, $expected;
	is($rows, $expected, "... returns");
	# members of a replica set send commands of their own
	if (defined $reads && $mongod == $alone)
	{
		my ($finds, $get_mores) = $mongod->reads;
		is($finds + $get_mores, $reads, "... reads");
	}
	is($session->ask($state), $both->{locals}->ask($state), "... changes");
}

foreach my $server (alone => replicated =>)
{
	$mongod = $server eq 'alone' ? $alone : $set->primary;
	begin_anew($server);
	$both = MongoFdwTest::Schemas->new($node, $mongod);
	$both->{foreigners}->ask($bare);

	# a row that is joined several times is changed once
	writes(q{UPDATE items SET v = v || 'x' FROM (SELECT g AS n FROM generate_series(1, 100) g) s WHERE _id = n}, 1, "$server: by values");
	writes(q{UPDATE items SET v = v || 'y' FROM keys WHERE items._id = keys.k RETURNING items.*}, 2, 'several times');
	writes(q{UPDATE items SET k = items.k + 1 FROM keys WHERE items.k = keys.k RETURNING items._id, items.k}, 1, 'the key of the join');
	writes(q{UPDATE items SET v = t, k = n FROM keys WHERE _id = n AND n < 300 RETURNING items, keys, items.tableoid::regclass::text = 'items'}, 1, 'whole rows');
	writes(q{UPDATE items SET v = coalesce(w, 'none') FROM keys LEFT JOIN other ON other._id = keys.k WHERE items._id = keys.n AND n < 3000 RETURNING n, w}, 4, 'a left join');
	writes(q{UPDATE items a SET v = b.v || '-' FROM items b WHERE b._id = a.k}, 2, 'a self-join');
	writes(q{UPDATE items SET v = v || 'z' WHERE _id IN (SELECT k FROM keys)}, 2, 'a semijoin');
	writes(q{UPDATE keys SET t = w FROM other WHERE other._id = keys.k RETURNING n, keys.k, w}, 2, 'a local table');
	writes(q{MERGE INTO keys USING other ON other._id = keys.k WHEN MATCHED AND n % 2 = 0 THEN UPDATE SET t = 'merged' || w WHEN MATCHED THEN DELETE}, 2, 'MERGE');
	writes(q{WITH u AS (UPDATE items SET v = v || t FROM keys WHERE _id = n RETURNING items.*) SELECT count(*), sum(_id) FROM u}, 1, 'in WITH');
	writes(q{UPDATE checked SET v = 'checked', k = n + 1 FROM keys WHERE _id = n RETURNING v, t}, 1, 'a view with a check');
	writes(q{UPDATE checked SET k = 2990 + n FROM keys WHERE _id = n AND n = 30}, undef, 'a row that the view does not have');
	writes(q{UPDATE items SET v = v || n FROM keys WHERE items._id = keys.n / 0}, undef, 'an error');
	writes(q{PREPARE p (int) AS UPDATE items SET v = v || n FROM keys WHERE _id = keys.n AND keys.n < $1; SET plan_cache_mode = force_generic_plan;
		EXECUTE p (10); EXECUTE p (20); RESET plan_cache_mode; DEALLOCATE p}, undef, 'prepared');

	# triggers see each row once, old and new
	$both->run($_) foreach (q{CREATE TRIGGER b BEFORE UPDATE OR DELETE ON items FOR EACH ROW EXECUTE FUNCTION tell()},
		q{CREATE TRIGGER a AFTER UPDATE OR DELETE ON items FOR EACH ROW EXECUTE FUNCTION tell()}, 'TRUNCATE told');
	writes(q{UPDATE items SET v = v || 't' FROM keys WHERE items._id = keys.k AND n < 60}, 1, 'triggers');
	writes(q{DELETE FROM items USING keys WHERE items._id = keys.k AND n < 30 RETURNING items.*}, 1, 'triggers of DELETE');
	$both->run('DROP TRIGGER a ON items; DROP TRIGGER b ON items');

	# policies
	$both->run("ALTER TABLE keys ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON keys USING (n % 3 = 0); SET ROLE reader");
	writes(q{UPDATE items SET v = 'by reader' FROM keys WHERE _id = n; RESET ROLE}, undef, 'policies');
	$both->run('RESET ROLE; ALTER TABLE keys DISABLE ROW LEVEL SECURITY');

	# a partition is a target like any other; all of them are not
	writes(q{UPDATE part_1 SET v = t FROM keys WHERE part_1._id = n AND n < 500 RETURNING part_1.*}, 1, 'a partition');
	writes(q{UPDATE parted SET v = w FROM other WHERE other._id = parted.k RETURNING parted.*, w}, undef, 'partitions');
	writes(q{DELETE FROM parted USING other WHERE other._id = parted.k AND other.k % 2 = 0 RETURNING parted.tableoid::regclass, other}, undef, 'partitions, DELETE');
	like($both->{foreigners}->ask('EXPLAIN (VERBOSE) UPDATE parted SET v = t FROM (SELECT n, w AS t FROM keys JOIN other ON other._id = n) s WHERE n = parted._id'),
		qr/Batched Join/, '... other tables are joined in batches');

	# cursors
	writes(q{BEGIN; DECLARE c CURSOR FOR SELECT n, w FROM keys JOIN other ON other._id = n WHERE n IN (40, 41) ORDER BY n FOR UPDATE OF keys;
		FETCH c; UPDATE keys SET t = 'current' WHERE CURRENT OF c; FETCH c; DELETE FROM keys WHERE CURRENT OF c; COMMIT}, undef, 'WHERE CURRENT OF');
	writes(q{SELECT n, w FROM keys JOIN other ON other._id = n WHERE n < 100 FOR UPDATE}, 1, 'FOR UPDATE');
	writes(q{SELECT n, w FROM keys LEFT JOIN other ON other._id = keys.k WHERE n < 100 FOR UPDATE OF keys}, 1, 'FOR UPDATE, left join');

	# a local row that another session changes meanwhile is joined again, with the same document
	foreach my $statement (
		q{UPDATE keys SET t = coalesce(w, 'nothing') FROM other WHERE other._id = keys.k AND n < 40 RETURNING n, keys.k, t},
		q{UPDATE keys SET t = w || o.n FROM (SELECT 1 AS n) o, other WHERE other._id = keys.k AND keys.n < 40 RETURNING keys.n, w},
		q{DELETE FROM keys USING other WHERE other._id = keys.k AND keys.n < 40 AND keys.t <> 'skip' RETURNING n, w},
		q{DELETE FROM keys WHERE NOT EXISTS (SELECT FROM other WHERE other._id = keys.k * 100) AND n < 40 RETURNING n},
		q{UPDATE keys SET t = t || '+' WHERE EXISTS (SELECT FROM other WHERE other._id = keys.k) AND n < 40 RETURNING n, t},
		q{MERGE INTO keys USING other ON other._id = keys.k AND n < 40 WHEN MATCHED AND t = 'skip' THEN DELETE WHEN MATCHED THEN UPDATE SET t = w},
		q{SELECT n, keys.k, t, w FROM keys JOIN other ON other._id = keys.k WHERE n < 40 FOR UPDATE},
		q{SELECT n, keys.k, t, w FROM keys LEFT JOIN other ON other._id = keys.k WHERE n < 40 FOR UPDATE OF keys})
	{
		like($both->{foreigners}->ask("EXPLAIN $statement"), qr/Batched/, "changed meanwhile: $statement");
		my %rows;
		foreach my $schema ('foreigners', 'locals')
		{
			my $session = $both->{$schema};
			my $other = MongoFdwTest::Session->new($node);

			$other->ask("SET search_path = $schema");
			$session->ask("SET application_name = 'waits'; BEGIN");
			# the same key, another one, one that has no document, and rows that are gone
			$other->ask(q{BEGIN; UPDATE keys SET t = 'same' WHERE n IN (3, 4); UPDATE keys SET t = 'other', k = k + 1 WHERE n IN (5, 6);
				UPDATE keys SET k = 7000 WHERE n = 9; UPDATE keys SET k = NULL WHERE n = 10; UPDATE keys SET t = 'skip' WHERE n IN (11, 12); DELETE FROM keys WHERE n IN (13, 14)});
			my $waiting = $session->pid;
			$session->{in} .= "$statement;\n\\echo the end\n";
			@$session{qw(out err)} = ('', '');
			$session->{timeout}->start;
			$session->{harness}->pump_nb;
			ok(becomes(sub { $session->{harness}->pump_nb; sql("SELECT count(*) FROM pg_stat_activity WHERE pid = $waiting AND wait_event_type = 'Lock'") == 1 }), '... waits');
			$other->ask('COMMIT');
			$session->{harness}->pump until $session->{out} =~ /^the end\n/m;
			$rows{$schema} = join("\n", sort split /\n/, $session->{out} . $session->{err} =~ s/^psql:<stdin>:\d+: //mgr);
			$rows{$schema} .= "\n" . $session->ask($state);
			$session->ask('ROLLBACK');
			$other->ask(q{UPDATE keys SET t = 't' || n, k = n * 11 % 2600 WHERE n < 20; INSERT INTO keys SELECT n, n * 11 % 2600, 't' || n FROM generate_series(13, 14) n});
			$other->close;
		}
		is($rows{foreigners}, $rows{locals}, '... and is the same');
	}
	$both->{$_}->close foreach 'foreigners', 'locals';
}

done_testing();
