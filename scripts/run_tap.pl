#!/usr/bin/perl
#
# Run TAP tests, several at a time, and count their assertions.
#
# Arguments are files and folders; "t" are all tests but those of the long targets.  A file
# ending in .py is started by t/lib/launch.pl.  Prints one line per file; for a file that
# fails also its failing assertions, their diagnostics and the path of the whole output.
# Writes "passed failed" to the file named by the first argument.
#
# $TEST_JOBS files run at a time.  Most wait more than they compute, so by default these are
# one and a half for each processor.  Each has its own servers.  Files that measure time run
# after the others, one after another.

use strict;
use warnings;

use Cwd;
use File::Basename;
use File::Path qw(make_path);
use List::Util qw(max uniq);
use TAP::Parser;
use Time::HiRes qw(time);

my $TIMEOUT = $ENV{TEST_FILE_TIMEOUT} || 1800;    # seconds a file may take, on a busy machine, too
my $JOBS = $ENV{TEST_JOBS} || int(1.5 * (`nproc` || 1) + 0.5);

# Files that run undisturbed, because they measure what a busy machine changes.
my %ALONE = (
	cancel => 'a cancel takes 100 ms at most',
	network => 'a reply comes within the time that connecting took');

# Files that take longest; they start first, so that they are not the last to end.
my @LONGEST = qw(random fuzz tpch row_security commit_outcomes order_of_writes parameters bank_transfer);

# Folders of "t" whose tests have targets of their own, or that have none.
my %APART = map { $_ => 1 } qw(t/lib t/faults t/moment t/soak);

# find_tests
#	Returns the tests that a file or a folder stands for, in order.
sub find_tests
{
	my ($name) = @_;

	return $name unless -d $name;
	if ($name eq 't')
	{
		die "a test is in no folder\n" if glob 't/*.*';
		return map { find_tests($_) } grep { !$APART{$_} } sort glob 't/*';
	}
	chomp(my @programs = `$^X t/lib/launch.pl`);
	my %program = map { $_ => 1 } @programs;
	return grep { /\.pl$/ || $program{$_} } sort glob "$name/*.p[ly]";
}

# make_template
#	Makes the cluster of which the clusters of tests are copies, since initdb takes longer than
#	a short test.  PostgreSQL::Test does that since PostgreSQL 17, MongoFdwTest.pm before.
sub make_template
{
	my $folder = getcwd . '/tmp_check/template';

	return $folder if -d $folder;
	# as PostgreSQL::Test calls it
	local $ENV{LC_MESSAGES} = 'C';
	system("initdb -D $folder -A trust -N >tmp_check/log/initdb 2>&1") == 0
	  or die "initdb failed, see tmp_check/log/initdb\n";
	return $folder;
}

# run_file
#	Runs one file; returns the numbers of passed and failed assertions, and the text.
sub run_file
{
	my ($file, $width) = @_;
	my $name = basename($file);
	my $log_name = "tmp_check/log/$name.out";
	my @interpreter =
	  ($^X, (map { "-I$_" } 't/lib', $ENV{PG_TEST_PERL} || ()), $file =~ /\.py$/ ? 't/lib/launch.pl' : ());
	my ($passed, $failed) = (0, 0);
	my @shown;
	my $showing = 0;
	my $started = time;

	# the folder of PostgreSQL 15's tests, and the variables that newer versions require
	local $ENV{TESTDIR} = getcwd;
	local $ENV{TESTDATADIR} = getcwd . '/tmp_check';
	local $ENV{TESTLOGDIR} = getcwd . '/tmp_check/log';
	my $parser = TAP::Parser->new(
		{
			exec => [ 'timeout', '--kill-after=10', $TIMEOUT, @interpreter, $file ],
			merge => 1
		});
	open(my $log, '>', $log_name) or die "could not write $log_name: $!";
	$log->autoflush(1);		# for who watches a test of hours
	while (my $result = $parser->next)
	{
		print $log $result->raw, "\n";
		if ($result->is_test)
		{
			$result->is_ok ? $passed++ : $failed++;
			$showing = !$result->is_ok;
		}
		# diagnostics follow the assertion that they belong to
		push @shown, $result->raw if $showing;
	}
	close $log;

	# The program died, or ran fewer or more assertions than planned.
	@shown = (@shown[ 0 .. 59 ], '...') if @shown > 60;
	my $broken = $parser->exit || $parser->parse_errors
	  || ($passed + $failed == 0 && !defined $parser->skip_all);
	if ($broken && !$failed)
	{
		$failed++;
		my $reason = join('; ', $parser->parse_errors) || 'no assertions';
		$reason = "exceeded $TIMEOUT s" if ($parser->wait >> 8) == 124;

		# PostgreSQL::Test writes the message of a test that dies to its own log
		my $own_log = "tmp_check/log/regress_log_" . ($name =~ s/\.\w+$//r);
		open($log, '<', -e $own_log ? $own_log : $log_name);
		my @last = <$log>;
		chomp @last;
		@last = @last[ -30 .. -1 ] if @last > 30;
		@shown = (@last, "exit status " . ($parser->wait >> 8) . ": $reason");
	}

	my $text = sprintf "%-*s ... %s  %d passed, %d failed%s  (%.1f s)\n", $width, $file,
	  $failed ? 'FAILED' : 'ok    ', $passed, $failed,
	  defined $parser->skip_all ? ", skipped: " . $parser->skip_all : '',
	  time - $started;
	$text .= join('', map { "    $_\n" } @shown) . "    whole output: $log_name\n" if $failed;
	return ($passed, $failed, $text);
}

# start_file
#	Runs one file in a child, which writes its counts and its text to a pipe.
sub start_file
{
	my ($file, $width) = @_;

	my $pid = open(my $output, '-|') // die "could not fork: $!";
	if ($pid == 0)
	{
		my ($passed, $failed, $text) = run_file($file, $width);
		print "$passed $failed\n$text";
		exit 0;
	}
	return { file => $file, pid => $pid, output => $output };
}

# finish_file
#	Prints the text of a child and returns its counts.  A child writes them to its pipe
#	only after its file has ended.
sub finish_file
{
	my ($child) = @_;
	my ($counts, @text) = readline($child->{output});

	close $child->{output};
	my ($passed, $failed) = ($counts // '') =~ /^(\d+) (\d+)$/;
	unless (defined $failed)
	{
		($passed, $failed) = (0, 1);
		@text = ("$child->{file} ... FAILED  its run was broken off\n");
	}
	print @text;
	STDOUT->flush;
	return ($passed, $failed);
}

# run_files
#	Runs files, so many at a time; returns the numbers of passed and failed assertions.
sub run_files
{
	my ($jobs, $width, @files) = @_;
	my ($all_passed, $all_failed) = (0, 0);
	my @running;

	while (@files || @running)
	{
		push @running, start_file(shift @files, $width) while @files && @running < $jobs;

		my $readable = '';
		vec($readable, fileno($_->{output}), 1) = 1 foreach @running;
		select($readable, undef, undef, undef) > 0 or next;

		my ($child) = grep { vec($readable, fileno($_->{output}), 1) } @running;
		@running = grep { $_ != $child } @running;
		my ($passed, $failed) = finish_file($child);
		$all_passed += $passed;
		$all_failed += $failed;
	}
	return ($all_passed, $all_failed);
}

my ($result_file, @names) = @ARGV;
my @files = uniq(map { find_tests(s{/$}{}r) } @names);
my $width = max(map { length } @files) // 0;
my (@together, @alone, %seen);

foreach my $file (@files)
{
	my $name = basename($file) =~ s/\.\w+$//r;

	# PostgreSQL::Test names a test's folders and logs after it, without its folder
	die "two tests are named $name" if $seen{$name}++;
	if ($ALONE{$name}) { push @alone, $file; }
	else { push @together, $file; }
}
foreach my $name (reverse @LONGEST)
{
	@together = sort { ($b =~ m{/$name\.}) <=> ($a =~ m{/$name\.}) } @together;
}
make_path('tmp_check/log');
$ENV{INITDB_TEMPLATE} = make_template();

my ($passed, $failed) = run_files($JOBS, $width, @together);
my ($passed_alone, $failed_alone) = run_files(1, $width, @alone);
$passed += $passed_alone;
$failed += $failed_alone;

open(my $result, '>', $result_file) or die "could not write $result_file: $!";
print $result "$passed $failed\n";
close $result;
exit($failed ? 1 : 0);
