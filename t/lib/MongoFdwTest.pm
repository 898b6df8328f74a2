#
# Shared by the TAP tests: real MongoDB servers in every variant, a
# PostgreSQL server with the extension, and MongoDB's counters.
#
#	my $mongod = MongoFdwTest::Mongod->new(auth => 1);
#	my $node = new_postgres('main');
#	create_server($node, 'mongodb', $mongod);
#	$mongod->snapshot; ...; is_deeply($mongod->changes->{commands}, {find => 1});
#
# All servers are stopped when the test ends, even if it dies.

package MongoFdwTest;

use strict;
use warnings;

use Cwd qw(abs_path getcwd);
use Exporter 'import';
use Fcntl;
use File::Basename qw(dirname);
use IPC::Open2;
use JSON::PP;
use List::Util ();
use Time::HiRes qw(sleep time);

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(
  new_postgres create_server create_point_table
  sql run_sql raises background_query becomes recorded recorded_commands recorded_writes names_of
  milliseconds_between make_certificates
  run_pgbench sanitized random_amount random_seed
  python run_program run_tests_of start_fake
  clusters_for_upgrade pg_upgrade migration_report
);

my @inherited;    # files
my $first_node;    # of new_postgres()
my $helper;    # [pid, reader, writer] of t/lib/mongo.py
my @fakes;    # [pid, writer] of each t/lib/fake_mongod.py

# Servers inherit no open file from the caller of the tests, which would leave
# PostgreSQL fewer descriptors.
foreach my $descriptor (map { /(\d+)$/ } glob '/proc/self/fd/*')
{
	next if $descriptor <= $^F;
	open(my $file, '+<&=', $descriptor) or next;
	fcntl($file, F_SETFD, FD_CLOEXEC);
	push @inherited, $file;    # which closes it when the test ends
}

# modules for programs of several folders
$ENV{PYTHONPATH} = dirname(abs_path(__FILE__));

# A new cluster is a copy of scripts/run_tap.pl's, if its initdb has no arguments of its own.
if (my $template = $ENV{INITDB_TEMPLATE})
{
	no warnings 'redefine';
	my $original = \&PostgreSQL::Test::Utils::system_or_bail;

	*PostgreSQL::Test::Utils::system_or_bail = sub {
		my ($program, @arguments) = @_;
		return $original->(@_) unless $program eq 'initdb' && "@arguments" =~ /^-D (\S+) -A trust -N$/;
		return $original->('cp', '-RPp', $template, $1);
	};
}

# python
#	Returns a Python program of t/ with its arguments, as a command.
sub python
{
	my ($program, @arguments) = @_;
	return ($ENV{PYTHON} || 'python3', dirname(__FILE__) . "/../$program", @arguments);
}

# sql
#	Runs a script, which must succeed, on the first node of new_postgres(); returns its rows.
sub sql
{
	my ($sql, $database) = @_;
	return $first_node->safe_psql($database // 'postgres', $sql);
}

# run_sql
#	Runs a script there, on after errors unless on_error_stop => 1; returns what psql prints on
#	standard output and, verbosely, on standard error.
sub run_sql
{
	my ($sql, %parameters) = @_;
	my (undef, $stdout, $stderr) =
	  $first_node->psql('postgres', "\\set VERBOSITY verbose\n$sql", on_error_stop => 0, %parameters);
	return ($stdout, $stderr);
}

# raises
#	Tests that a script there ends in an error of this SQLSTATE, whose message or further lines
#	match.
sub raises
{
	my ($name, $sql, $sqlstate, $message) = @_;
	my (undef, $stderr) = run_sql($sql, on_error_stop => 1);
	like($stderr, qr/ERROR:  $sqlstate: .*$message/s, $name);
}

# becomes
#	Returns whether a condition becomes true within twenty seconds.
sub becomes
{
	my ($condition) = @_;
	my $deadline = time + 20;

	while (!$condition->())
	{
		return 0 if time > $deadline;
		sleep 0.02;
	}
	return 1;
}

# recorded, recorded_commands, recorded_writes
#	Return the messages that passed a recording proxy since this was last asked, those that are
#	not about connections and sessions, and those that insert, update or delete.
sub recorded { return @{ helper('recorded', port => $_[0]) } }

sub recorded_commands
{
	my %others = map { $_ => 1 } qw(hello isMaster ismaster ping endSessions killSessions);
	return grep { !grep { $others{$_} } keys %$_ } recorded(@_);
}

sub recorded_writes
{
	return grep { exists $_->{insert} || exists $_->{update} || exists $_->{delete} } recorded(@_);
}

# names_of
#	Returns the names of recorded commands, separated by blanks.  A hash has lost that the name
#	was first.
my @COMMANDS = qw(isMaster hello ping saslStart saslContinue getMore findAndModify insert update delete find aggregate
  count killCursors endSessions killSessions commitTransaction abortTransaction);

sub names_of
{
	return join(' ', map { my $command = $_; (grep { exists $command->{$_} } @COMMANDS)[0] // 'other' } @_);
}

# run_program
#	Tests that a Python program succeeds; shows its output if it fails.
sub run_program
{
	my ($name, @command) = @_;
	my $output = '';

	open(my $pipe, '-|', python(@command)) or die "cannot run $command[0]: $!";
	$output .= $_ while <$pipe>;
	close($pipe);
	is($?, 0, $name) or diag($output);
}

# run_tests_of
#	Runs the tests of a Python program.  It prints "ok - NAME" or "not ok - NAME" for
#	each, "#   REASON" below, "# NOTE", and "done" at the end.  If a hash of functions
#	precedes its name, the program calls them by printing "do NAME ARGUMENTS", and
#	reads a line when the function has returned.
sub run_tests_of
{
	my $actions = ref $_[0] ? shift : {};
	my (@command) = @_;
	my ($failed, $done) = (0, 0);
	my ($reader, $writer);

	my $pid = open2($reader, $writer, python(@command));
	while (my $line = <$reader>)
	{
		chomp $line;
		if ($line =~ /^(not )?ok - (.*)/)
		{
			ok(!$1, $2) or $failed++;
		}
		elsif ($line =~ /^do (\w+) ?(.*)/)
		{
			$actions->{$1}->(split / /, $2);
			print $writer "done\n";
			$writer->flush;
		}
		elsif ($line eq 'done')        { $done = 1; }
		elsif ($line =~ /^# (\S.*)/)   { note($1); }
		elsif ($line =~ /^#   (.*)/)   { diag($1); }
		else                           { diag($line); }
	}
	close $writer;
	waitpid $pid, 0;
	ok($done && ($failed > 0 || $? == 0), "$command[0] runs to its end");
}

# helper
#	Sends a request to t/lib/mongo.py; dies if the reply is an error.
sub helper
{
	my ($action, %arguments) = @_;

	if (!$helper)
	{
		my ($reader, $writer);
		my $pid = open2($reader, $writer, python('lib/mongo.py'));
		$helper = [ $pid, $reader, $writer ];
	}
	my (undef, $reader, $writer) = @$helper;
	print $writer encode_json({ do => $action, %arguments }), "\n";
	$writer->flush;
	my $line = <$reader> // die 't/lib/mongo.py died';
	my $answer = decode_json($line);
	die "t/lib/mongo.py: $answer->{error}\n" if defined $answer->{error};
	return $answer->{result};
}

# start_fake
#	Starts a server that breaks the protocol, see t/lib/fake_mongod.py, with these
#	arguments, and returns its port.  It ends with the test.
sub start_fake
{
	my $pid = open2(my $reader, my $writer, python('lib/fake_mongod.py', @_));

	push @fakes, [ $pid, $writer ];
	chomp(my $port = <$reader>);
	return $port;
}

# new_postgres
#	Returns a running PostgreSQL with the extension in database postgres.
sub new_postgres
{
	my ($name, @settings) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init;
	$node->append_conf('postgresql.conf', join("\n",
			'log_line_prefix = \'%m [%p] \'',
			'log_min_messages = warning',
			'timezone = \'UTC\'',
			'log_timezone = \'UTC\'',
			'max_connections = 100',
			@settings) . "\n");
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION mongo_fdw');
	$first_node //= $node;
	return $node;
}

# clusters_for_upgrade
#	Returns two clusters that are not running and differ in their versions only: of the
#	one to upgrade from, whose programs PG_OLD_BIN names, and of the one that is tested.
sub clusters_for_upgrade
{
	my @clusters = (
		PostgreSQL::Test::Cluster->new('old', $ENV{PG_OLD_BIN} ? (install_path => dirname($ENV{PG_OLD_BIN})) : ()),
		PostgreSQL::Test::Cluster->new('new'));

	foreach my $node (@clusters)
	{
		# in PostgreSQL 18 the default for checksums has changed
		$node->init(extra => ['--data-checksums']);
		$node->append_conf('postgresql.conf', "timezone = 'UTC'\nlog_timezone = 'UTC'\n");
	}
	return @clusters;
}

# pg_upgrade
#	Tests that pg_upgrade succeeds with such clusters.
sub pg_upgrade
{
	my ($old, $new) = @_;
	my ($old_bin, $new_bin) = map { $_->config_data('--bindir') } $old, $new;
	my @majors = map { $_->config_data('--version') =~ /(\d+)/ } $old, $new;
	my $folder = getcwd;

	# where it writes its log
	chdir($old->basedir) || die "could not change to the folder of the old cluster: $!";
	command_ok([ "$new_bin/pg_upgrade", '--old-datadir', $old->data_dir, '--new-datadir', $new->data_dir,
			'--old-bindir', $old_bin, '--new-bindir', $new_bin, '--socketdir', $new->host,
			'--old-port', $old->port, '--new-port', $new->port ], 'pg_upgrade from ' . join(' to ', @majors));
	chdir($folder) || die "could not change back: $!";
}

# create_server
#	Runs CREATE SERVER and USER MAPPING for a mongod.  Options are added to address
#	and port, or replace them (undef: remove); mapping => {...} are the mapping's.
sub create_server
{
	my ($node, $name, $mongod, %options) = @_;
	my %mapping = %{ delete $options{mapping} // $mongod->mapping };

	# what a server that only imitates MongoDB needs
	$options{pushdown_disable} //= $ENV{PUSHDOWN_DISABLE} if $ENV{PUSHDOWN_DISABLE};
	%options = (address => '127.0.0.1', port => $mongod->port, $mongod->server_options, %options);
	$node->safe_psql('postgres', "CREATE SERVER $name FOREIGN DATA WRAPPER mongo_fdw"
		  . option_list(%options)
		  . ";\nCREATE USER MAPPING FOR CURRENT_USER SERVER $name"
		  . option_list(%mapping));
}

sub option_list
{
	my (%options) = @_;
	my @list;

	foreach my $name (sort keys %options)
	{
		next unless defined $options{$name};
		(my $value = $options{$name}) =~ s/'/''/g;
		push @list, "$name '$value'";
	}
	return @list ? ' OPTIONS (' . join(', ', @list) . ')' : '';
}

# create_point_table
#	Fills db.points with {_id, id, info} and creates the foreign table points.
sub create_point_table
{
	my ($node, $server, $mongod, $count, $pad) = @_;

	$mongod->fill('db', 'points', $count, $pad // 0);
	$node->safe_psql('postgres',
		"CREATE FOREIGN TABLE points (id int, info text) SERVER $server "
		  . "OPTIONS (database 'db', collection 'points')");
}

# migration_report
#	Lines for psql that make the temporary table migration_report, by the script of the documents.
sub migration_report
{
	my $script = abs_path(dirname(__FILE__) . '/../../docs/migration_report.sql');

	return "\\o /dev/null\n\\i $script\n\\o\n";
}

# background_query
#	Starts psql with this text; ->finish waits for it and returns (status, stdout,
#	stderr).
sub background_query
{
	my ($node, $sql) = @_;
	my ($stdout, $stderr) = ('', '');
	my $file = $node->basedir . '/background_' . int(1e9 * rand) . '.sql';

	# a file, as IPC::Run feeds standard input only while pump() is called
	append_to_file($file, $sql);
	my $harness = IPC::Run::start(
		[
			'psql', '-X', '-A', '-t', '-q', '-d', $node->connstr('postgres'),
			'-v', 'VERBOSITY=verbose', '-f', $file
		],
		'<', \undef, '>', \$stdout, '2>', \$stderr);
	return bless { harness => $harness, stdout => \$stdout, stderr => \$stderr },
	  'MongoFdwTest::Background';
}

# milliseconds_between
#	Subtracts two timestamps as text, 'YYYY-MM-DD HH:MM:SS.sss', at most an hour apart.
sub milliseconds_between
{
	my ($earlier, $later) = @_;
	my @seconds = map { /(\d+):(\d+):(\d+(?:\.\d+)?)/ or die "no time in \"$_\""; $1 * 3600 + $2 * 60 + $3 }
	  ($earlier, $later);
	my $seconds = $seconds[1] - $seconds[0];
	$seconds += 86400 if $seconds < -43200;    # midnight between them
	return 1000 * $seconds;
}

# sanitized
#	True in "make sanitize", where everything is slower and takes more memory.
sub sanitized
{
	return $ENV{SANITIZED};
}

# random_amount, random_seed
#	Return how much a random test does, multiplied by RANDOM_TIMES, and its seed,
#	changed by RANDOM_SEED.
sub random_amount { return int($_[0] * ($ENV{RANDOM_TIMES} || 1)) }
sub random_seed { return $_[0] + 1000 * ($ENV{RANDOM_SEED} || 0) }

# run_pgbench
#	Runs a pgbench script and returns its standard output; the test fails if a
#	transaction fails.
sub run_pgbench
{
	my ($node, $script, @options) = @_;
	my $file = $node->basedir . '/pgbench_' . int(1e9 * rand) . '.sql';
	my ($stdout, $stderr);

	append_to_file($file, $script);
	my $ok = IPC::Run::run([ 'pgbench', '-n', '-f', $file, @options, $node->connstr('postgres') ],
		'>', \$stdout, '2>', \$stderr);
	die "pgbench failed: $stdout$stderr" if !$ok || $stderr =~ /aborted/;
	return $stdout;
}

# make_certificates
#	Makes a certificate authority, and a server's and a client's certificate signed
#	by it.  Returns the folder with the files ca.pem, server.pem, client.pem, and
#	other_ca.pem, another authority that signed nothing.
sub make_certificates
{
	my $folder = abs_path(PostgreSQL::Test::Utils::tempdir());
	my @quiet = ('>', \my $output, '2>&1');

	foreach my $ca ('ca', 'other_ca')
	{
		IPC::Run::run([ qw(openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj),
				"/CN=mongo_fdw test $ca", '-keyout', "$folder/$ca.key", '-out', "$folder/$ca.pem" ], @quiet)
		  or die "openssl: $output";
	}
	append_to_file("$folder/extensions", "subjectAltName = IP:127.0.0.1, DNS:localhost, DNS:node.service.test\n");
	foreach my $name ('server', 'client')
	{
		IPC::Run::run([ qw(openssl req -newkey rsa:2048 -nodes -subj), "/O=mongo_fdw $name/CN=$name",
				'-keyout', "$folder/$name.key", '-out', "$folder/$name.csr" ], @quiet)
		  or die "openssl: $output";
		IPC::Run::run([ qw(openssl x509 -req -days 30 -CAcreateserial -CA), "$folder/ca.pem",
				'-CAkey', "$folder/ca.key", '-in', "$folder/$name.csr",
				'-extfile', "$folder/extensions", '-out', "$folder/$name.crt" ], @quiet)
		  or die "openssl: $output";
		append_to_file("$folder/$name.pem",
			slurp_file("$folder/$name.key") . slurp_file("$folder/$name.crt"));
		chmod 0600, "$folder/$name.pem";
	}
	return $folder;
}

package MongoFdwTest::Background;

use strict;
use warnings;

# finish
#	Waits for the program; returns (exit status, standard output, standard error).
sub finish
{
	my ($self) = @_;

	eval { $self->{harness}->finish };
	return ($self->{harness}->result, ${ $self->{stdout} }, ${ $self->{stderr} });
}

package MongoFdwTest::Session;

# A psql session that stays open.

use strict;
use warnings;

# new
#	Starts psql with further arguments.
sub new
{
	my ($class, $node, @arguments) = @_;
	my $self = bless { in => '', out => '', err => '', asked => 0, timeout => IPC::Run::timeout(300) }, $class;

	$self->{harness} = IPC::Run::start(
		[ 'psql', '-X', '-A', '-t', '-q', '-d', $node->connstr('postgres'), @arguments, '-f', '-' ],
		'<', \$self->{in}, '>', \$self->{out}, '2>', \$self->{err}, $self->{timeout});
	return $self;
}

# ask
#	Runs statements or psql's commands, for five minutes at most, and returns the rows or, if
#	there are none, the error.  A mark on each pipe ends the output.
sub ask
{
	my ($self, $sql) = @_;
	my $mark = 'done ' . ++$self->{asked};

	@$self{qw(out err)} = ('', '');
	$self->{timeout}->start;
	$self->{in} .= "$sql;\n\\echo $mark\n\\warn $mark\n";
	$self->{harness}->pump until $self->{out} =~ /^$mark\n/m && $self->{err} =~ /^$mark\n/m;
	s/\n?^$mark\n.*//ms foreach @$self{qw(out err)};
	return $self->{out} ne '' ? $self->{out} : $self->{err};
}

# errors
#	Runs statements one after another; returns their errors and warnings.
sub errors
{
	my ($self, @statements) = @_;
	return join('', map { $self->ask($_); $self->{err} } @statements);
}

# pid
#	Returns the process ID of its backend.
sub pid { return $_[0]->{pid} //= $_[0]->ask('SELECT pg_backend_pid()') }

sub close
{
	my ($self) = @_;
	$self->{timeout}->start;
	$self->{in} .= "\\q\n";
	$self->{harness}->finish;
}

package MongoFdwTest::Schemas;

# Two schemas with the same tables: "foreigners" has them in MongoDB, "locals" in PostgreSQL.

use strict;
use warnings;

use Test::More;

# new
#	Opens a session for each, in this database; names that are in neither are in public.
sub new
{
	my ($class, $node, $mongod, $database) = @_;
	my $self = bless { mongod => $mongod }, $class;

	foreach my $schema ('foreigners', 'locals')
	{
		$self->{$schema} = MongoFdwTest::Session->new($node);
		$self->{$schema}->ask("\\c $database") if $database;
		$self->{$schema}->ask("SET search_path = $schema, public; SET timezone = 'UTC'");
	}
	return $self;
}

# run
#	Runs statements in both.
sub run { $_[0]->{$_}->ask($_[1]) foreach 'foreigners', 'locals' }

# examines
#	Tests that the statement has the same rows in both, in the same order if that has an ORDER
#	BY, and that MongoDB examines so many documents at most.
sub examines
{
	my ($self, $most, $sql, $name) = @_;
	my (%rows, $examined);

	# what only reads is measured once more, as the counter is that of the whole server
	foreach my $attempt (1, 2)
	{
		my $before = $self->{mongod}->documents_examined;
		%rows = map { $_ => $self->{$_}->ask($sql) } 'foreigners', 'locals';
		$examined = $self->{mongod}->documents_examined - $before;
		last if $examined <= $most || $sql =~ /\b(INSERT|UPDATE|DELETE)\b/i;
	}
	my ($after) = $sql =~ /.*ORDER BY(.*)/is;    # of a subquery, if more parentheses end than begin

	die "$sql: $rows{locals}" if $rows{locals} =~ /^psql:.*ERROR: /m;
	if (!defined $after || ($after =~ tr/)//) > ($after =~ tr/(//))
	{
		$rows{$_} = join("\n", sort split /\n/, $rows{$_}) foreach keys %rows;
	}
	is($rows{foreigners}, $rows{locals}, $name // $sql);
	cmp_ok($examined, '<=', $most, "... examines $examined documents");
}

package MongoFdwTest::Mongod;

use strict;
use warnings;

use IO::Socket::INET;
use PostgreSQL::Test::Utils;
use POSIX qw(WNOHANG);
use Time::HiRes qw(sleep time);

my @running;

# new
#	Starts a mongod in a new folder and waits until it accepts commands.
#
#	auth => 1			requires a password; user "app", password "secret p@ss" may
#						read and write any database
#	tls => FOLDER		requires TLS, with the certificates of make_certificates
#	client_certificate => 1		clients must present a certificate too
#	replica_set => NAME	a member of this set (see MongoFdwTest::ReplicaSet)
#	cache_gb => NUMBER	for transactions of large documents; 0.25 if not given
#	arguments => [...]	for mongod
#
#	Background work of the server that would change its counters is off.
sub new
{
	my ($class, %options) = @_;
	my $self = bless {
		%options,
		folder => PostgreSQL::Test::Utils::tempdir(),
		port => PostgreSQL::Test::Cluster::get_free_port(),
	}, $class;

	mkdir "$self->{folder}/data";
	push @running, $self;
	$self->start;
	$self->create_user if $self->{auth};
	return $self;
}

sub port { return $_[0]->{port} }

sub log_file { return "$_[0]->{folder}/mongod.log" }

# mapping, server_options
#	Return the options of a foreign server for it other than address and port.
sub mapping
{
	my ($self) = @_;
	return $self->{auth} ? { username => 'app', password => 'secret p@ss' } : {};
}

sub server_options
{
	my ($self) = @_;
	return () unless $self->{tls};
	return (
		ssl => 'true', ca_file => "$self->{tls}/ca.pem",
		$self->{client_certificate} ? (pem_file => "$self->{tls}/client.pem") : ());
}

# uri
#	Returns the connection string for the tests' own client.
sub uri
{
	my ($self, $anonymous) = @_;
	my $credentials = $self->{auth} && !$anonymous ? 'app:secret%20p%40ss@' : '';
	my $tls = $self->{tls}
	  ? "&tls=true&tlsCAFile=$self->{tls}/ca.pem&tlsCertificateKeyFile=$self->{tls}/client.pem" : '';
	return "mongodb://${credentials}127.0.0.1:$self->{port}/?directConnection=true$tls";
}

sub arguments
{
	my ($self) = @_;
	my @parameters = qw(enableTestCommands=1 diagnosticDataCollectionEnabled=false
	  disableLogicalSessionCacheRefresh=true ttlMonitorEnabled=false);
	my @arguments = (
		'--dbpath', "$self->{folder}/data", '--logpath', $self->log_file, '--logappend',
		'--bind_ip', '127.0.0.1', '--port', $self->{port}, '--nounixsocket',
		'--wiredTigerCacheSizeGB', $self->{cache_gb} // '0.25',
		map { ('--setParameter', $_) } @parameters);

	push @arguments, '--auth' if $self->{auth} && !$self->{replica_set};
	push @arguments, '--replSet', $self->{replica_set} if $self->{replica_set};
	if ($self->{tls})
	{
		push @arguments, '--tlsMode', 'requireTLS',
		  '--tlsCertificateKeyFile', "$self->{tls}/server.pem", '--tlsCAFile', "$self->{tls}/ca.pem";
		push @arguments, '--tlsAllowConnectionsWithoutCertificates' unless $self->{client_certificate};
	}
	return (@arguments, @{ $self->{arguments} // [] });
}

# start
#	Starts it again with the same port and data.
sub start
{
	my ($self) = @_;
	my $deadline = time + 120;

	my $pid = fork // die "could not fork: $!";
	if ($pid == 0)
	{
		open(STDIN, '<', '/dev/null');
		open(STDOUT, '>', '/dev/null');
		open(STDERR, '>', '/dev/null');
		# except the pipes of the test's programs
		POSIX::close($_) foreach 3 .. 255;
		exec $ENV{MONGOD} || 'mongod', $self->arguments or POSIX::_exit(127);
	}
	$self->{pid} = $pid;
	until (IO::Socket::INET->new(PeerAddr => "127.0.0.1:$self->{port}"))
	{
		if (waitpid($pid, WNOHANG) == $pid || time > $deadline)
		{
			die "mongod does not start: " . (-e $self->log_file ? slurp_file($self->log_file) : "status $?");
		}
		sleep 0.05;
	}
	$self->command('{"ping": 1}') unless $self->{auth};
}

# stop, kill
#	Stop it cleanly, or immediately.
sub stop { $_[0]->end_with('TERM') }
sub kill { $_[0]->end_with('KILL') }

sub end_with
{
	my ($self, $signal) = @_;
	my $pid = delete $self->{pid} or return;

	MongoFdwTest::helper('forget', port => $self->{port});
	CORE::kill $signal, $pid;
	waitpid $pid, 0;
}

sub restart { $_[0]->stop; $_[0]->start }

sub create_user
{
	my ($self) = @_;

	# The localhost exception allows creating the first user without a password.
	MongoFdwTest::helper('command',
		uri => $self->uri('anonymous'),
		command => '{"createUser": "app", "pwd": "secret p@ss", "roles": ["root"]}');
}

# command
#	Runs a command given as JSON text, as an ordinary client.
sub command
{
	my ($self, $command, $database) = @_;
	return MongoFdwTest::helper('command', uri => $self->uri,
		command => $command, database => $database // 'admin');
}

# open_cursors, open_transactions, documents_examined
#	Return the server's own numbers.
sub status { return $_[0]->command('{"serverStatus": 1}') }
sub open_cursors { return $_[0]->status->{metrics}{cursor}{open}{total} + 0 }
sub open_transactions { return $_[0]->status->{transactions}{currentOpen} + 0 }
sub documents_examined { return $_[0]->status->{metrics}{queryExecutor}{scannedObjects} + 0 }

# has_version
#	Does MongoDB have this version, such as "5.1", or a newer one?
sub has_version
{
	my ($self, $version) = @_;
	my $parts = $self->command('{"buildInfo": 1}')->{versionArray};
	my ($major, $minor) = split /\./, $version;

	return $parts->[0] > $major || $parts->[0] == $major && $parts->[1] >= $minor;
}

# insert
#	Replaces a collection by the documents of a JSON array.
sub insert
{
	my ($self, $database, $collection, $documents) = @_;
	return MongoFdwTest::helper('insert', uri => $self->uri, database => $database,
		collection => $collection, documents => $documents);
}

sub fill
{
	my ($self, $database, $collection, $count, $pad) = @_;
	return MongoFdwTest::helper('fill', uri => $self->uri, database => $database,
		collection => $collection, count => 0 + $count, pad => 0 + ($pad // 0));
}

# snapshot, changes
#	Store MongoDB's counters; return the changes since then: {commands => {find =>
#	1}, opcounters => {query => 1}, connections => 0, requests => 1}.  Only for a
#	mongod without auth and TLS.
sub snapshot { return MongoFdwTest::helper('snapshot', port => $_[0]->{port}) }
sub changes { return MongoFdwTest::helper('changes', port => $_[0]->{port}) }
sub counters { return MongoFdwTest::helper('counters', port => $_[0]->{port}) }

# asked
#	Runs a script by sql(), in a schema; returns its rows, how many commands that read MongoDB
#	got meanwhile, and how many getMores.
sub asked
{
	my ($self, $sql, $schema) = @_;

	$self->snapshot;
	my $rows = MongoFdwTest::sql(($schema ? "SET search_path = $schema, public; " : '') . $sql);
	return ($rows, $self->reads);
}

# reads
#	Returns how many commands that read MongoDB got since snapshot(), and how many getMores.
sub reads
{
	my $commands = shift->changes->{commands};
	return (List::Util::sum0(map { $commands->{$_} // 0 } qw(find aggregate count)), $commands->{getMore} // 0);
}

# block_commands, unblock_commands
#	Make MongoDB wait before it replies to these commands, or stop that.
sub block_commands
{
	my ($self, $milliseconds, @commands) = @_;
	my $list = join(', ', map { "\"$_\"" } @commands);
	$self->command('{"configureFailPoint": "failCommand", "mode": "alwaysOn", "data": '
		  . "{\"failCommands\": [$list], \"blockConnection\": true, \"blockTimeMS\": $milliseconds}}");
}

# fail_command
#	Makes MongoDB reply to the next of these commands, 'times' times, with an error
#	code, or close the connection (code undef).
sub fail_command
{
	my ($self, $times, $code, @commands) = @_;
	my $list = join(', ', map { "\"$_\"" } @commands);
	my $how = defined $code ? "\"errorCode\": $code" : '"closeConnection": true';
	$self->command("{\"configureFailPoint\": \"failCommand\", \"mode\": {\"times\": $times}, \"data\": "
		  . "{\"failCommands\": [$list], $how}}");
}

sub unblock_commands
{
	$_[0]->command('{"configureFailPoint": "failCommand", "mode": "off"}');
}

package MongoFdwTest::ReplicaSet;

use strict;
use warnings;

use Time::HiRes qw(sleep time);

# new
#	Starts a replica set of so many members, with a primary.  "voters" of them vote, by
#	default all; if only one votes, it stays primary when others fail.
sub new
{
	my ($class, $count, %options) = @_;
	my $voters = delete $options{voters} // $count;
	my $self = bless {
		name => 'rs',
		members => [ map { MongoFdwTest::Mongod->new(%options, replica_set => 'rs') } 1 .. $count ],
	}, $class;
	my $number = 0;
	my $members = join(', ', map {
		my $vote = $number < $voters ? 1 : 0;
		sprintf '{"_id": %d, "host": "127.0.0.1:%d", "votes": %d, "priority": %d}', $number++, $_->port, $vote, $vote
	} @{ $self->{members} });

	$self->{members}[0]->command("{\"replSetInitiate\": {\"_id\": \"rs\", \"members\": [$members], "
		  . '"settings": {"electionTimeoutMillis": 2000, "heartbeatIntervalMillis": 500}}}');
	$self->primary;
	$self->wait_for_secondaries;
	return $self;
}

sub members { return @{ $_[0]->{members} } }

# uri
#	Returns the connection string that names all members.
sub uri { return 'mongodb://' . join(',', map { '127.0.0.1:' . $_->port } $_[0]->members) . '/?replicaSet=rs' }

# primary
#	Waits for a member that accepts writes, and returns it.
sub primary
{
	my ($self) = @_;
	my $deadline = time + 120;

	while (time < $deadline)
	{
		foreach my $member (grep { $_->{pid} } @{ $self->{members} })
		{
			my $hello = eval { $member->command('{"hello": 1}') } // next;
			return $member if $hello->{isWritablePrimary};
		}
		sleep 0.1;
	}
	die 'the replica set has no primary';
}

sub wait_for_secondaries
{
	my ($self) = @_;
	my $deadline = time + 120;

	foreach my $member (@{ $self->{members} })
	{
		while (1)
		{
			my $hello = $member->command('{"hello": 1}');
			last if $hello->{isWritablePrimary} || $hello->{secondary};
			die 'the replica set does not come up' if time > $deadline;
			sleep 0.1;
		}
	}
}

# step_down
#	Makes another member primary and returns it.
sub step_down
{
	my ($self) = @_;
	my $old = $self->primary;

	eval { $old->command('{"replSetStepDown": 30, "force": true}') };
	sleep 0.1;
	return $self->primary;
}

END
{
	my $status = $?;
	foreach my $mongod (@running)
	{
		if (my $pid = $mongod->{pid})
		{
			CORE::kill 'KILL', $pid;
			waitpid $pid, 0;
		}
	}
	foreach my $program (@fakes, $helper ? [ @$helper[ 0, 2 ] ] : ())
	{
		close $program->[1];
		waitpid $program->[0], 0;
	}
	$? = $status;
}

1;
