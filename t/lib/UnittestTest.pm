
=pod

=head1 NAME

UnittestTest - Python's unittest as TAP

=head1 SYNOPSIS

  use UnittestTest;

  run_unittests('bench');                       # all bench/**/test_*.py
  run_unittests('sim.py.test_engine');          # one module
  run_unittests('ab', env => { NAME => 'value' });
  done_testing();

=head1 DESCRIPTION

run_unittests() runs the tests of a package, or of a module if its name ends
in test_NAME, as "python3 -B -m unittest -v" does at the top of the source. Each
Python test becomes one TAP test. No test at all is a failure, and so is an end
before all of them have run. Tests are found in packages only: each folder needs an
__init__.py. What they print is shown if they fail (unittest's --buffer).

=cut

package UnittestTest;

use strict;
use warnings FATAL => 'all';

use Cwd qw(abs_path);
use Exporter 'import';
use File::Basename;
use Test::More;

our @EXPORT = qw(run_unittests);

my $root = abs_path(dirname(__FILE__) . '/../..');

sub run_unittests
{
	my ($name, %params) = @_;
	my @what =
	  $name =~ /(^|\.)test_\w+$/
	  ? ($name)
	  : ('discover', '-s', $name =~ tr{.}{/}r, '-t', '.');
	my @shell = ('sh', '-c', 'cd "$1" && shift && exec "$@" </dev/null 2>&1', 'sh', $root);
	my @command = ('python3', '-B', '-m', 'unittest', @what, '-v', '-b');
	local %ENV = (%ENV, PYTHONPATH => $root, LC_ALL => 'C.UTF-8', %{ $params{env} // {} });

	open my $python, '-|', @shell, @command
	  or BAIL_OUT("sh cannot be run: $!");
	_report($name, $python);
	return;
}

my $results = qr/ok|FAIL|ERROR|expected failure|unexpected success|skipped .*/;

# unittest writes "NAME (MODULE.CLASS.NAME) ... ok". With a docstring, its first
# line comes between the two, on a line of its own. Tracebacks follow at the end.
sub _report
{
	my ($name, $python) = @_;
	my ($tests, $test, $ran, $rest) = (0, '', undef, '');

	while (my $line = <$python>)
	{
		$test = $2 if $line =~ /^\s*([\w.]+) \(([\w.]+)\)/;
		if (!defined $ran && $line =~ /\.\.\. ($results)$/)
		{
			my $result = $1;

			$tests++;
		  SKIP:
			{
				skip("$test: $result", 1) if $result =~ /^skipped/;
				ok($result =~ /^(ok|expected failure)$/, $test);
			}
		}
		$ran = $1 if $line =~ /^Ran (\d+) tests? in /;
		$rest .= $line unless $line =~ /\.\.\. (ok|expected failure)$/;
	}
	close $python;
	diag($rest) if $? != 0;
	ok($? == 0 && $tests > 0 && defined $ran && $ran <= $tests,
		"unittest of $name: all of $tests tests have run and passed");
	return;
}

1;
