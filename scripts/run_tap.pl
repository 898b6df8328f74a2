#!/usr/bin/perl
#
# Run TAP tests one after the other and count their assertions.
#
# A file ending in .py is run by the Python named in $PYTHON, others by Perl.
# Prints a line a file, and of a file that fails its failing assertions with
# their diagnostics and where the whole output is.  Writes "passed failed" to
# the file named by the first argument.

use strict;
use warnings;

use Cwd;
use File::Basename;
use File::Path qw(make_path);
use List::Util qw(max);
use TAP::Parser;
use Time::HiRes qw(time);

my $TIMEOUT = $ENV{TEST_FILE_TIMEOUT} || 600;    # seconds a file may take

my ($result_file, @files) = @ARGV;
my ($all_passed, $all_failed) = (0, 0);
my $width = max(map { length } @files) // 0;

make_path('tmp_check/log');

foreach my $file (@files)
{
	my $name = basename($file);
	my $log_name = "tmp_check/log/$name.out";
	my @interpreter =
	  $file =~ /\.py$/
	  ? ($ENV{PYTHON} || 'python3')
	  : ($^X, map { "-I$_" } 't', $ENV{PG_TEST_PERL} || ());
	my ($passed, $failed) = (0, 0);
	my @shown;
	my $showing = 0;
	my $started = time;

	local $ENV{TESTDIR} = getcwd;
	my $parser = TAP::Parser->new(
		{
			exec => [ 'timeout', '--kill-after=10', $TIMEOUT, @interpreter, $file ],
			merge => 1
		});
	open(my $log, '>', $log_name) or die "could not write $log_name: $!";
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

	# A program that died, or ran fewer or more assertions than planned.
	@shown = (@shown[ 0 .. 59 ], '...') if @shown > 60;
	my $broken = $parser->exit || $parser->parse_errors
	  || ($passed + $failed == 0 && !defined $parser->skip_all);
	if ($broken && !$failed)
	{
		$failed++;
		my $reason = join('; ', $parser->parse_errors) || 'no assertions';
		$reason = "exceeded $TIMEOUT s" if ($parser->wait >> 8) == 124;

		# PostgreSQL::Test keeps what a test says when it dies in its own log
		my $own_log = "tmp_check/log/regress_log_" . ($name =~ s/\.pl$//r);
		open($log, '<', -e $own_log ? $own_log : $log_name);
		my @last = <$log>;
		chomp @last;
		@last = @last[ -30 .. -1 ] if @last > 30;
		@shown = (@last, "exit status " . ($parser->wait >> 8) . ": $reason");
	}

	printf "%-*s ... %s  %d passed, %d failed%s  (%.1f s)\n", $width, $file,
	  $failed ? 'FAILED' : 'ok    ', $passed, $failed,
	  defined $parser->skip_all ? ", skipped: " . $parser->skip_all : '',
	  time - $started;
	if ($failed)
	{
		print "    $_\n" foreach @shown;
		print "    whole output: $log_name\n";
	}
	STDOUT->flush;
	$all_passed += $passed;
	$all_failed += $failed;
}

open(my $result, '>', $result_file) or die "could not write $result_file: $!";
print $result "$all_passed $all_failed\n";
close $result;
exit($all_failed ? 1 : 0);
