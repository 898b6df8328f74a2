# What README.md and docs/ say is what there is, and all of it: options, settings, features,
# functions, lines of EXPLAIN, messages with their SQLSTATEs, examples, links.

use strict;
use warnings;

use File::Basename qw(basename dirname);
use JSON::PP qw(decode_json);
use MongoFdwTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $mongod = MongoFdwTest::Mongod->new;
my $node = new_postgres('documentation', q{shared_preload_libraries = 'mongo_fdw'});
my $port = $mongod->port;

system_or_bail($ENV{PYTHON} || 'python3', 'demo/load_sample.py', '--port', $port);
$node->safe_psql('postgres', 'CREATE DATABASE reference');
$node->safe_psql('reference', 'CREATE EXTENSION mongo_fdw');

# --- what there is, and the pages have all of it -------------------------------------------
{
	$node->safe_psql('postgres', q{
		CREATE SERVER s FOREIGN DATA WRAPPER mongo_fdw;
		CREATE USER MAPPING FOR CURRENT_USER SERVER s;
		CREATE FOREIGN TABLE t (a int) SERVER s;
	});

	# The rows of a page's tables under each heading, as cells, by what is in `` in the first.
	sub tables
	{
		my ($page) = @_;
		my ($heading, %tables) = ('');

		foreach my $line (split /\n/, slurp_file("docs/$page"))
		{
			$heading = $1 if $line =~ /^## (.*)/;
			$tables{$heading}{$1} = [ map { s/^ +| +$//gr } split /\|/, $2, -1 ]
			  if $line =~ /^\| `([\w.]+)` \|(.*)\|$/;
		}
		return \%tables;
	}

	# What a statement's error says is allowed.
	sub allowed
	{
		my ($sql, $hint) = @_;
		my (undef, undef, $stderr) = $node->psql('postgres', $sql);

		return $stderr =~ /HINT:  $hint: (.*?)\.?$/m ? [ sort split /, /, $1 ] : $stderr;
	}

	my $options = tables('options.md');

	my @headings = ('CREATE SERVER', 'CREATE USER MAPPING', 'CREATE FOREIGN TABLE', 'Columns', 'Servers and tables');

	# The rows of the table of options: name, bits of objects (of their headings), default, range.
	my %bits = (SERVER => 1, MAPPING => 2, TABLE => 4, COLUMN => 8, IMPORT => 32);
	my @rows;

	my ($table) = slurp_file('src/options/options.c') =~ /^const MongoOption mongo_option_table\[\] =\n(.*?)^\};/ms;
	foreach my $row ($table =~ /^(\t\{".*)$/mg)
	{
		my ($name, $objects, $others) = $row =~ /^\t\{"(\w+)", (ON_[A-Z_| ]+), \w+, \w+, (?:CONNECTION|TABLE|COLUMN|IMPORT|NONE)\([\w.]+\)(.*)\},$/
		  or die "not a row: $row";
		my ($initial) = $others =~ /^, "(.*?)"/;
		my @range = map { s/^INT_MAX$/2147483647/r } $others =~ /BETWEEN\((\w+), (\w+)\)/;

		my $bits = 0;

		$bits |= $bits{$_} foreach $objects =~ /ON_(\w+)/g;
		$bits = 16 if $bits == ($bits{SERVER} | $bits{TABLE});
		push @rows, [ $name, $bits, $initial // '', @range ];
	}
	foreach my $object (0 .. $#headings)
	{
		is_deeply([ sort keys %{ $options->{ $headings[$object] } } ],
			[ sort map { $_->[0] } grep { $_->[1] >> $object & 1 } @rows ],
			$headings[$object]);
	}
	is_deeply([ sort keys %{ $options->{'Servers that lack something'} } ],
		allowed('ALTER SERVER s OPTIONS (ADD pushdown_disable \'x_x\')',
			'Valid values are names from this list, separated by commas'),
		'features');
	is_deeply([ sort keys %{ tables('import.md')->{''} } ],
		allowed('IMPORT FOREIGN SCHEMA x FROM SERVER s INTO public OPTIONS (x_x \'\')', 'Valid options in this context are'),
		'IMPORT FOREIGN SCHEMA');

	# Defaults and ranges, from the rows of the table of options.
	my $rows = 0;

	foreach my $row (grep { $_->[1] < 32 } @rows)
	{
		my ($name, $objects, $initial, $least, $most) = @$row;
		my ($heading, @more) = @headings[ grep { $objects >> $_ & 1 } 0 .. $#headings ];
		my ($value, $default) = @{ $options->{$heading}{$name} // [ (q{}) x 2 ] };

		$rows++;
		is($default =~ /^`(.*)`$/ ? $1 : '', $initial eq '-1' ? '' : $initial, "the default of $name");
		is($value =~ /^(\w+) to (\w+)$/ ? "$1 $2" : '', defined $least ? "$least $most" : '', "the range of $name");
		is($options->{$_}{$name}[1], 'the server\'s', "$name is the server's") foreach @more;
	}
	cmp_ok($rows, '>', 40, 'the table of options was read');

	is_deeply(
		[ map { my ($default, $who) = @{ $options->{Settings}{$_} }; "$_ $default $who" } sort keys %{ $options->{Settings} } ],
		[ split /\n/, $node->safe_psql('postgres', q{
			CREATE EXTENSION IF NOT EXISTS mongo_sync;
			SELECT concat_ws(' ', name, boot_val, CASE context WHEN 'user' THEN 'everyone' WHEN 'sighup' THEN 'server' ELSE context || 's' END)
			FROM pg_settings WHERE name LIKE 'mongo\_fdw.%' OR name LIKE 'mongo\_sync.%' ORDER BY name COLLATE "C"}) ],
		'settings, their defaults and who may change them');

	# Functions that are called by name; a page has one line for those that differ in one type.
	my @functions;

	foreach (slurp_file('docs/functions.md') =~ /\*\*`(mongo_.*?)`\*\*/sg)
	{
		my ($before, $types, $after) = /^(.*?)(\w+(?: \| \w+)+)(.*)$/s;

		push @functions, $types ? map { "$before$_$after" } split / \| /, $types : $_;
	}
	is_deeply([ sort map { lc } @functions ],
		[ sort map { lc } split /\n/, $node->safe_psql('postgres', q{
			SELECT concat_ws(' returns ', format('%s%s(%s)', CASE e.extname WHEN 'mongo_sync' THEN 'mongo_sync.' END, p.proname, pg_get_function_arguments(p.oid)), pg_get_function_result(p.oid))
			FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
			JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
			WHERE (e.extname = 'mongo_sync' OR e.extname = 'mongo_fdw' AND p.proname LIKE 'mongo%') AND p.proname NOT IN ('mongo_fdw_handler', 'mongo_fdw_validator')
			-- what views and mongo_fdw_refresh() are made of
			AND p.proname NOT IN ('mongo_fdw_imported_name', 'mongo_fdw_health_get', 'mongo_fdw_stat_get', 'mongo_fdw_stat_connections_get', 'worker_problem', 'time_text', 'time')}) ],
		'functions');

	# Lines of EXPLAIN: what it has in JSON beside PostgreSQL's own.
	my %shown;

	create_server($node, 'counted', $mongod);
	create_point_table($node, 'counted', $mongod, 1000);
	$node->safe_psql('postgres', q{
		ALTER SERVER counted OPTIONS (estimated_rows '1000000');
		ALTER FOREIGN TABLE points ALTER id OPTIONS (indexed 'true');
		CREATE FOREIGN TABLE elements (id int, e int) SERVER counted OPTIONS (database 'db', collection 'points', unwind 'e');
		CREATE TABLE keys AS SELECT generate_series(1, 1000) AS k});

	sub note_lines
	{
		my ($options, $query, @settings) = @_;
		my $json = $node->safe_psql('postgres', join(';', (map { "SET $_" } @settings), "EXPLAIN (FORMAT JSON, $options) $query"));

		$shown{ s/ \d+$//r } = 1 foreach $json =~ /^\s*"([^"]+)": /mg;
	}

	my @postgresql = (
		'Node Type', 'Parent Relationship', 'Parallel Aware', 'Async Capable', 'Relation Name', 'Schema', 'Alias', 'Output',
		'Operation', 'Plan', 'Plans', 'Filter', 'Rows Removed by Filter', 'Workers Planned', 'Workers Launched', 'Single Copy',
		'Custom Plan Provider', 'Actual Rows', 'Actual Loops', 'Actual Startup Time', 'Actual Total Time', 'Planning Time',
		'Execution Time', 'Triggers', 'Strategy', 'Partial Mode', 'Workers', 'Worker Number', 'Disabled');

	note_lines('VERBOSE, COSTS OFF', 'SELECT id FROM points ORDER BY id DESC', 'enable_sort = off');
	note_lines('COSTS OFF', 'SELECT e FROM elements');
	note_lines('VERBOSE, COSTS OFF', 'INSERT INTO points VALUES (0)');
	note_lines('VERBOSE, COSTS OFF', 'SELECT k, info FROM keys JOIN points ON id = k', 'enable_hashjoin = off', 'enable_mergejoin = off',
		'enable_nestloop = off', 'max_parallel_workers_per_gather = 0');
	note_lines('ANALYZE, BUFFERS OFF, COSTS OFF, SUMMARY OFF', 'SELECT info FROM points WHERE id = 7', 'mongo_fdw.explain_remote = on',
		'max_parallel_workers_per_gather = 0');
	delete @shown{@postgresql};

	my ($section) = slurp_file('docs/pushdown.md') =~ /^## EXPLAIN\n(.*?)^## /ms;

	is_deeply([ sort keys %shown ], [ sort map { /`(.*?)`/g } $section =~ /^\| (`.*?) \|/mg ], 'lines of EXPLAIN');
}

# --- docs/troubleshooting.md quotes messages as src/ has them, and leaves none out ---------
{
	# What a user cannot act on, or what no user meets as it stands.
	my %excluded = (
		'"%s": collection "%s.%s" contains %.0f documents, %d rows in sample' => 'what ANALYZE VERBOSE tells',
		'could not rewind a temporary file' => 'an error of the operating system, in PostgreSQL\'s own file',
	);

	my $string = qr/"(?:[^"\\]|\\.)*"/;
	my $balanced = qr/(\((?:$string|'(?:[^'\\]|\\.)'|[^()"']++|(?1))*+\))/;
	my $placeholder = qr/%[-.0-9]*l*[a-z]/;

	# The text of the first C string in a piece of source, in pieces as it may be; undef for none.
	sub text
	{
		my ($source) = @_;

		return undef if $source !~ /^\s*($string(?:\s*$string)*)/;
		return join '', map { s/\\(.)/$1/gr } $1 =~ /"((?:[^"\\]|\\.)*)"/g;
	}

	# --- the source --------------------------------------------------------------------
	my $header = `pg_config --includedir-server` =~ s/\n//r . '/utils/errcodes.h';
	my %sqlstates = map { s/[^\w]//gr } (slurp_file($header) . slurp_file('include/compat.h')) =~ /^#define (\w+) MAKE_SQLSTATE\((.*?)\)/mg;
	cmp_ok(scalar keys %sqlstates, '>', 200, 'SQLSTATEs were read');

	# without comments
	my %source = map { $_ => join '', map { $_ // '' } slurp_file($_) =~ m{($string|'(?:[^'\\]|\\.)')|/\*.*?\*/|([^"'/]++|/)}gs } glob('src/*.c src/*/*.[ch] include/*.h');
	my (%messages, %literals, %contexts);

	foreach my $file (keys %source)
	{
		my $code = $source{$file};

		foreach ($code =~ /\bereport\s*$balanced/g)
		{
			my ($level, $report) = /^\((\w+),(.*)\)$/s;
			next if $level =~ /^LOG|^DEBUG/;
			my ($errcode) = $report =~ /\berrcode\s*$balanced/;
			my @states = $level =~ /WARNING|NOTICE/ ? $level : map { $sqlstates{$_} } ($errcode // '') =~ /ERRCODE_\w+/g;

			foreach ($report =~ /\berrmsg(?:_plural)?\s*$balanced/g)
			{
				my $message = text(substr $_, 1, -1);
				next if !defined $message;
				$messages{$message}{$_} = 1 foreach @states ? @states : '';
			}
		}

		# bson_set_error(): a DETAIL
		my @found = $code =~ /((?:\b(?:errmsg|errdetail|elog)\s*\(\s*(?:\w+,\s*)?|\bbson_set_error\s*\([^";]*)?)($string(?:\s*$string)*)/g;
		while (my ($before, $literal) = splice @found, 0, 2)
		{
			$literal = text($literal);
			$literals{$literal} = 1;
			# what the helpers of remote.h and the like are given for errmsg("%s")
			$contexts{$literal} = 1
			  if $literal =~ /^could not / && $before eq '' && $file !~ m{/(?:connect|resolve|error)\.c$};
		}
	}
	delete @messages{ grep { /^(?:$placeholder)$/ } keys %messages };
	cmp_ok(scalar keys %messages, '>', 100, 'messages were read');
	cmp_ok(scalar keys %contexts, '>', 5, 'and those of helpers');

	# --- the page ----------------------------------------------------------------------
	my $page = slurp_file('docs/troubleshooting.md');
	my ($heading, $first, %rows) = ('');

	foreach my $line (split /\n/, $page)
	{
		$heading = $1 if $line =~ /^##+ (.*)/;
		next if $line !~ /^\| ?(.*?) \| ?(.*?) ?\|/;
		my ($cell, $second) = ($1, $2);

		if ($cell !~ /^`/) { $first = $cell; next; }
		push @{ $rows{$first} }, [ $1, $second, $heading ] while $cell =~ /`(.*?)`(?:, |$)/g;
	}

	# A text of the page is one of the source's in which each placeholder is a NAME.
	my %patterns;

	sub pattern
	{
		my ($text) = @_;
		my $pattern = join '[A-Z]+(?:_[A-Z]+)*', map { quotemeta } split /$placeholder/, $text, -1;

		return $patterns{$text} = qr/^$pattern$/;
	}

	sub find
	{
		my ($quoted, $texts) = @_;

		return grep { $quoted =~ ($patterns{$_} // pattern($_)) } sort keys %$texts;
	}

	my %quoted;
	foreach my $row (@{ $rows{message} })
	{
		my ($message, $states) = @$row;
		my @found = find($message, { %messages, %contexts });

		is(scalar @found, 1, "a message of the source: $message") or next;
		$quoted{ $found[0] }{$_} = 1 foreach $states =~ /\b[0-9A-Z]{5}\b|WARNING|NOTICE/g;
		$quoted{ $found[0] }{''} = 1 if $states !~ /\b[0-9A-Z]{5}\b|WARNING|NOTICE/;
	}
	foreach my $message (sort keys %quoted)
	{
		my %expected = %{ $messages{$message} // { '' => 1 } };
		# one that is computed cannot be seen here
		my @more = delete $expected{''} ? grep { !$expected{$_} } keys %{ $quoted{$message} } : ();

		is_deeply([ sort keys %{ $quoted{$message} } ], [ sort keys %expected, @more ], "its SQLSTATE: $message");
	}
	foreach my $message (sort keys %messages, keys %contexts)
	{
		isnt(exists $quoted{$message}, exists $excluded{$message}, "either on the page or excluded: $message");
	}
	ok(exists $messages{$_} || exists $contexts{$_}, "excluded, and in the source: $_") foreach sort keys %excluded;

	# Details.
	foreach my $row (@{ $rows{DETAIL} })
	{
		is(scalar(() = find($row->[0], \%literals)), 1, "a detail of the source: $row->[0]");
	}
	my ($hints) = $source{'src/remote/error.c'} =~ /connection_hints\[\] =\n\{(.*?)\n\};/s;
	my %details = map { $_->[0] => 1 } @{ $rows{DETAIL} };
	ok($details{$_}, "a detail of a connection that failed: $_") foreach $hints =~ /^\t\{"(.*?)"/mg;

	# MongoDB's codes.
	my ($rules) = $source{'src/remote/error.c'} =~ /RemoteErrorRule rules\[\] =\n\{(.*?)\n\};/s;
	my %expected = map { my ($code, $state) = split /, /; $code => $sqlstates{$state} } $rules =~ /\{(\d+, ERRCODE_\w+)/g;
	my %shown = map { $_->[0] => $_->[1] } @{ $rows{'MongoDB error'} };
	is_deeply(\%shown, \%expected, 'MongoDB\'s codes and their SQLSTATEs');

	# What PostgreSQL itself says is what tests see it say.
	my $tests = join '', map { slurp_file($_) } grep { $_ ne 't/platform/documentation.pl' } glob('t/*/*.p[ly] expected/*.out');
	foreach my $row (@{ $rows{'PostgreSQL\'s message'} })
	{
		my ($words) = sort { length $b <=> length $a } split / ?"?\b[A-Z]+\b"? ?/, $row->[0];

		ok(index($tests, $words) >= 0, "PostgreSQL says: $row->[0]");
	}
}

# --- docs/reference.md: its examples run, and it has all views -----------------------------
{
	my $page = slurp_file('docs/reference.md');

	# The examples, in one session; COPY to standard output is psql's own.
	my @blocks = $page =~ /^```sql\n(.*?)^```$/msg;
	cmp_ok(scalar @blocks, '>=', 12, 'the page has examples');
	my ($status, $stdout, $stderr) = $node->psql('reference', join("\n", @blocks) =~ s/port '27017'/port '$port'/r, on_error_stop => 1);
	is($status, 0, 'they run');
	is($stderr, '', 'without a word of complaint');
	like($stdout, qr/^20000$/m, 'the command gives the number of orders');
	like($stdout, qr/^mongodb\|/m, 'the view has a row for the server');

	# Names in `` outside of examples.
	my %named = map { $_ => 1 } $page =~ s/^```.*?^```$//gmsr =~ /`(\w+)`/g;
	my @views = split /\n/, $node->safe_psql('reference', q{
		SELECT relname FROM pg_class o JOIN pg_depend d ON d.objid = o.oid AND d.deptype = 'e' AND d.classid = 'pg_class'::regclass
		JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND e.extname = 'mongo_fdw' WHERE relkind = 'v'});

	cmp_ok(scalar @views, '>', 2, 'views were found');
	is_deeply([ grep { !$named{$_} } @views ], [], 'all views are on the page');
}

# --- what README and the demo tell people to type works, and links lead somewhere ----------
{
	# README's SQL, in one session and in its order.
	my $readme = slurp_file('README.md');
	my $sql = join("\n", $readme =~ /^```sql\n(.*?)^```$/msg);

	$sql =~ s/port '27017'/port '$port'/;
	$node->safe_psql('postgres', 'CREATE DATABASE readme');
	my ($status, $stdout, $stderr) = $node->psql('readme', "SET client_min_messages = warning;\n$sql");
	is($status, 0, 'README: the SQL runs');
	is($stderr, '', 'README: without a word of complaint');
	like($stdout, qr/^\{"_id": "paid", "orders": \d+\}$/m, 'README: the pipeline gives its rows');

	# The query that README begins with, and its command.
	my ($first, $command) = $readme =~ /^```\n(SELECT .*?;)\n```\n.*?^```\n(\{.*?)^```$/ms;
	my ($sent) = $node->safe_psql('readme', "SET search_path = shop; EXPLAIN (VERBOSE, COSTS OFF) $first") =~ /Remote Command: (.*)/;
	# the columns' order is that of the sampled documents, which often lack some fields
	s/("projection" : )\{ (.*?) \}/"$1\{ " . join(', ', sort split(q{, }, $2)) . ' }'/e foreach ($sent, $command = join(' ', split ' ', $command));
	is($sent, $command, 'README: the first query\'s command is the one shown');

	# The plan that README shows.
	my ($query, $plan) = $readme =~ /^EXPLAIN \(VERBOSE, COSTS OFF\) (.*?);\n\n(.*?)^```$/ms;
	my $shown = $node->safe_psql('readme', "EXPLAIN (VERBOSE, COSTS OFF) $query");
	s/^ +//mg foreach ($plan, $shown);
	is($shown, $plan =~ s/\n\z//r, 'README: the plan is the one shown');

	# The demo.
	$node->safe_psql('postgres', 'CREATE DATABASE demo');
	local $ENV{MONGO_HOST} = '127.0.0.1';
	local $ENV{MONGO_PORT} = $port;
	local $ENV{PGOPTIONS} = '-c client_min_messages=warning';
	command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('demo'), '-f', 'demo/demo.sql' ],
		'the demo\'s SQL runs');

	# What the limits say of a standalone MongoDB.
	(undef, undef, $stderr) = $node->psql('readme',
		'BEGIN; INSERT INTO shop.customers (_id, number) VALUES (\'0123456789abcdef01234567\', 0); ROLLBACK');
	like($stderr, qr/WARNING:.*not rolled back/, 'README: ROLLBACK over a standalone MongoDB warns');

	# The same documents on every machine.
	my $orders = $node->safe_psql('readme', 'SELECT count(*), sum(total), min(placed), max(placed) FROM shop.orders');
	is($orders, '20000|21944030.38|2021-01-01 01:51:43.401+00|2024-10-31 21:17:26.95+00', 'the sample is the same everywhere');

	# The names by which a document's headings are linked to.
	sub anchors
	{
		my ($text) = @_;

		$text =~ s/^```.*?^```//msg;
		return map { lc =~ s/[^\w\- ]//gr =~ tr/ /-/r => 1 } $text =~ /^#+ +(.*)$/mg;
	}

	# The index by task has every page.
	my $index = slurp_file('docs/README.md');

	foreach my $page (map { s{^docs/}{}r } grep { $_ ne 'docs/README.md' } glob('docs/*.md docs/*/*.md'))
	{
		like($index, qr/\]\(\Q$page\E[)#]/, "docs/README.md links to $page");
	}

	# Links of all documents.
	foreach my $document (glob('*.md docs/*.md docs/*/*.md'))
	{
		my $folder = dirname($document);
		foreach my $link (slurp_file($document) =~ /\]\(([^):]+)\)/g)
		{
			my ($target, $heading) = split /#/, $link;
			my $file = $target eq '' ? $document : "$folder/$target";

			ok(-e $file, "$document links to $link, which is there");
			next if !defined $heading || !-e $file;
			my %anchors = anchors(slurp_file($file));
			ok($anchors{$heading}, "$document links to $link, which has that heading");
		}
	}
}

# --- every command of docs/documents.md gives what the page says ---------------------------
{
	create_server($node, 'mongodb', $mongod);

	# A block of SQL, and the block without a language that comes right after it, if one does.
	my $page = slurp_file('docs/documents.md');
	my @blocks;
	push @blocks, [ $1, $2 ] while $page =~ /^```sql\n(.*?)^```\n(?:\n```\n(.*?)^```\n)?/msg;
	cmp_ok(scalar @blocks, '>=', 2, 'the page has commands');

	# All in one session.
	my $script = join("\n", map { "\\echo == $_\n$blocks[$_][0]" } 0 .. $#blocks);
	my ($status, $stdout, $stderr) = $node->psql('postgres', "\\pset format aligned\n\\pset tuples_only off\n$script");
	is($status, 0, 'they run');
	is($stderr, '', 'without a word of complaint');

	my %given = (split /^== (\d+)\n/m, $stdout)[ 1 .. 2 * @blocks ];
	foreach my $number (0 .. $#blocks)
	{
		my ($sql, $shown) = @{ $blocks[$number] };
		my ($name) = $sql =~ /(.*)/;
		next if !defined $shown;
		s/ +$//mg, s/^\n|\n+\z//g foreach ($shown, $given{$number});
		is($given{$number}, $shown, "$name: gives what is shown");
	}
}

# --- docs/sql-to-mongodb.md is what t/platform/sql_to_mongodb.py produces ------------------
{
	my $replica_set = MongoFdwTest::ReplicaSet->new(1);
	# elsewhere MongoDB's order of text is not PostgreSQL's
	$node->safe_psql('postgres', q(CREATE DATABASE charts TEMPLATE template0 LOCALE 'C'));
	$node->safe_psql('postgres', "ALTER DATABASE charts SET $_") foreach 'jit = off', 'max_parallel_workers_per_gather = 0';
	my $produced = 'tmp_check/sql-to-mongodb.md';

	run_program('the statements run', 'platform/sql_to_mongodb.py', '--dsn', $node->connstr('charts'),
		'--port', $mongod->port, '--replica-set-port', $replica_set->primary->port, '--output', $produced);

	my $difference = '';
	IPC::Run::run([ 'diff', '-u', 'docs/sql-to-mongodb.md', $produced ], '>', \$difference, '2>&1');
	is($difference, '', 'docs/sql-to-mongodb.md shows what is sent')
	  or diag("If the new commands are right: cp .lab/src/$produced docs/");
}

# --- the plots are of one full run ----------------------------------------------------------
{
	my $drawn = 'tmp_check/plots';
	my $report = decode_json(slurp_file('bench/results/results.json'));
	my $workloads = '';

	cmp_ok($report->{scale}, '>=', 1, 'bench/results/results.json is of scale 1');
	cmp_ok($report->{rounds}, '>=', 3, 'and of several rounds');
	IPC::Run::run([ python('../bench/plot.py'), '--workloads' ], '>', \$workloads);
	cmp_ok(scalar(split(' ', $workloads)), '>', 10, 'the plots show workloads');
	is(join(' ', grep { !@{ $report->{workloads}{$_} // [] } } split(' ', $workloads)), '', 'each of them was measured');

	mkdir($drawn);
	run_program('the plots are drawn', '../bench/plot.py', 'bench/results/results.json', $drawn);
	foreach my $picture (sort map { basename($_) } glob("$drawn/*.svg"))
	{
		is(slurp_file("$drawn/$picture"), slurp_file("bench/results/$picture"), "bench/results/$picture is of results.json");
	}
}

done_testing();
