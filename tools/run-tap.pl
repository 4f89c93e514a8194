#!/usr/bin/perl
# run-tap.pl [--jobs N] [--lib DIR]... [--module NAME]... TEST...: run TAP test files
# as prove does, and count exactly what passed and failed.  A planned test that did
# not run has failed; so has a file that ends badly without a failed test.
# With SWEEP_COUNTS=FILE a line "tap PASSED FAILED SKIPPED" is added to FILE.
use strict;
use warnings FATAL => 'all';

use File::Path qw(make_path);
use Getopt::Long;
use TAP::Harness;

my ($jobs, @libs, @modules) = (1);
GetOptions(
	'jobs=i' => \$jobs,
	'lib=s' => \@libs,
	'module=s' => \@modules) or exit 2;
die "run-tap.pl: error: no tests given\n" unless @ARGV;

# The command for a test file.  t/AREA/NAME.pl has its data and logs in folders of
# its area.
sub command
{
	my ($harness, $file) = @_;
	my ($area) = $file =~ m{(?:^|/)t/(.+)/[^/]+$};
	my @folders = map { defined $area ? "$ENV{$_}/$area" : $ENV{$_} } 'TESTDATADIR', 'TESTLOGDIR';

	make_path(@folders);
	return [
		'env', "TESTDATADIR=$folders[0]", "TESTLOGDIR=$folders[1]", $^X,
		(map { "-I$_" } @libs), (map { "-M$_" } @modules), $file
	];
}

my $harness = TAP::Harness->new(
	{
		jobs => $jobs,
		exec => \&command,
		timer => 1,
		failures => 1,
		verbosity => $ENV{SWEEP_VERBOSE} ? 1 : 0,
		# one line per file, also when several run at once
		formatter_class => -t STDOUT ? undef : 'TAP::Formatter::File',
	});
my $aggregate = $harness->runtests(@ARGV);

my ($passed, $failed, $skipped) = (0, 0, 0);
foreach my $parser ($aggregate->parsers)
{
	my $bad = $parser->failed;
	my $planned = $parser->tests_planned // 0;
	my $missing = $planned - $parser->tests_run;

	$bad += $missing if $missing > 0;
	$bad = 1 if $bad == 0 && $parser->has_problems;
	$failed += $bad;
	$skipped += $parser->skipped;
	$skipped += 1 if $parser->skip_all;
	$passed += $parser->passed - $parser->skipped;
}

if (my $file = $ENV{SWEEP_COUNTS})
{
	open my $fh, '>>', $file or die "run-tap.pl: error: $file: $!\n";
	print $fh "tap $passed $failed $skipped\n";
	close $fh or die "run-tap.pl: error: $file: $!\n";
}
if ($passed + $failed == 0)
{
	print STDERR "run-tap.pl: error: no test was run\n";
	exit 1;
}
exit($failed ? 1 : 0);
