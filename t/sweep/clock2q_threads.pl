# The rule of clock2q in threads, with the machine's atomic operations: no buffer is
# passed over that is in no slot, and no slot is leased by two.  test/sweep/threads/clock2q.c is compiled
# here and needs no server.  Mutants must fail.
#
# CLOCK2Q_LOADS says how many pages each thread loads (400000), CLOCK2Q_SEED how
# threads choose pages.

use strict;
use warnings FATAL => 'all';

use Cwd qw(abs_path);
use File::Basename;
use IPC::Run qw(run timeout);
use PostgreSQL::Test::Utils;
use Test::More;

my $top = abs_path(dirname(__FILE__) . '/../..');
my $program = "$PostgreSQL::Test::Utils::tmp_check/clock2q_threads";
my $loads = $ENV{CLOCK2Q_LOADS} || 400000;
my $seed = $ENV{CLOCK2Q_SEED} || 1;
my $threads = 6;

chomp(my $server = `"@{[ $ENV{PG_CONFIG} || 'pg_config' ]}" --includedir-server`);
my $compiled = run(
	[
		$ENV{CC} || 'gcc', qw(-O2 -g -Wall -Wno-unused-function -fno-strict-aliasing -fwrapv -D_GNU_SOURCE -pthread),
		"-I$top/test/sweep/test_sweep", "-I$top/extension", "-I$server",
		'-o', $program, "$top/test/sweep/threads/clock2q.c"
	],
	'>', \my $said, '2>', \my $warnings);
ok($compiled, 'compiles') or BAIL_OUT($warnings);
is($warnings, '', 'without warnings');

# Whether the properties hold; what it printed, and what does not hold
sub try_code
{
	my ($code, $buffers, $loads, $seed, $delays) = @_;
	my ($stdout, $stderr) = ('', '');
	my $status = run([ $program, $code, $buffers, $threads, $loads, $seed, $delays ],
		'>', \$stdout, '2>', \$stderr, timeout(300));

	die "cannot run $program: $?" if !$status && $stderr eq '';
	return ($status, $stdout, $stderr);
}

my %sum;
foreach my $delays (0, 1)
{
	foreach my $buffers (16, 40, 128, 1024, 16384)
	{
		my ($ok, $stdout, $stderr) = try_code('pg_sweep', $buffers, $loads, $seed, $delays);
		my %counts = $stdout =~ /^(\w+)=(\d+)$/mg;

		ok($ok, "$buffers buffers, delays $delays: every property holds") or diag($stderr);
		cmp_ok($counts{loads}, '>=', $threads * $loads, "$buffers buffers, delays $delays: all pages are loaded");
		$sum{$_} += $counts{$_} for keys %counts;
		$stdout =~ tr/\n/ /;
		note "$buffers buffers, delays $delays: $stdout";
	}
}
cmp_ok($sum{$_}, '>', 0, "exercised: $_ ($sum{$_})")
  for qw(young old given_up windows returned on_probation);

# A defect must show within some tries, also on a machine with one CPU
foreach my $mutant ('passes over what has any place', 'fills without atomic tickets')
{
	my ($ok, $stdout, $stderr);
	foreach my $try (0 .. 29)
	{
		($ok, $stdout, $stderr) = try_code($mutant, (16, 40, 128)[ $try % 3 ], 20000, $seed + $try, 1);
		last if !$ok;
	}
	chomp $stderr;
	ok(!$ok, "mutant \"$mutant\" is caught: $stderr");
}

done_testing();
