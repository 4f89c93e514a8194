# Waiting for LWLocks: the server's own lwlock.c and the library's policies,
# compiled into test/lwlock/threads, where threads play backends.  They run under
# ThreadSanitizer, optimized, and as fibers in one thread that switches between
# them at random, which finds most, or as a script says.  Mutants must fail.
#
# LWLOCK_HARNESS_SECONDS says how long each of the three runs (10),
# LWLOCK_HARNESS_SEED with which seed they begin, and LWLOCK_HARNESS_KINDS which
# they are.  LWLOCK_HARNESS_MUTANTS=0 leaves out the mutants.

use strict;
use warnings FATAL => 'all';

use Cwd qw(abs_path);
use File::Basename;
use File::Path qw(make_path);
use IPC::Run qw(run);
use PostgreSQL::Test::Utils;
use Test::More;

my $top = abs_path(dirname(__FILE__) . '/../..');
my $harness = "$top/test/lwlock/threads";
my $seconds = $ENV{LWLOCK_HARNESS_SECONDS} || 10;
my $seed = $ENV{LWLOCK_HARNESS_SEED} || 1;

my $pg_config = $ENV{PG_CONFIG} || 'pg_config';

# A server that this project has built has its source, too; others may not.
my $source = $ENV{LWLOCK_HARNESS_SOURCE} || "$top/build/$ENV{SWEEP_MAJOR}/src-patched";
if ($pg_config !~ m{^\Q$top\E/build/} && !-f "$source/src/include/storage/lwlock_queue.h")
{
	plan skip_all => "there is no source of a patched server in $source";
}

my $out = "$PostgreSQL::Test::Utils::tmp_check/lwlock_harness";
make_path($out);
local $ENV{PG_CONFIG} = $pg_config;
local $ENV{SOURCE} = $source;
local $ENV{TSAN_OPTIONS} = 'halt_on_error=0';

# ThreadSanitizer needs addresses that kernels with much randomization use for
# something else.
my @setarch =
  run([ 'setarch', '-R', 'true' ], '>', \my $ignored, '2>', \my $ignored_too) ? ('setarch', '-R') : ();

my %operations;
for my $kind (split(' ', $ENV{LWLOCK_HARNESS_KINDS} || 'tsan threads fibers'))
{
	my ($stdout, $stderr) = ('', '');

	{
		local $ENV{OUT} = "$out/$kind";
		if (!run([ "$harness/build", $kind ], '>', \$stdout, '2>', \$stderr))
		{
			fail("$kind: compiles");
			diag($stderr);
			next;
		}
	}

	my $ok = run([ @setarch, "$out/$kind/stress", "--seconds=$seconds", "--seed=$seed" ],
		'>', \$stdout, '2>', \$stderr);
	ok($ok, "$kind: $seconds s without a failure")
	  or diag(substr($stderr, 0, 20000));

	my %counts = $stdout =~ /^(\w+)=(\d+)$/mg;
	$operations{$kind} = $counts{OPERATIONS} || 0;
	is(join(' ', grep { !$counts{$_} } sort keys %counts), '', "$kind: everything has happened");
	cmp_ok(scalar keys %counts, '>=', 25, "$kind: and is counted");
	note("$kind: " . join(', ', map { lc . " $counts{$_}" } sort keys %counts));
	next if $kind ne 'fibers';

	# Script, and how it must be run
	for my $scripted (
		[ 'var_told', 'stock', 'lockless', 'lockless_spin', 'nothing loaded' ],
		[ 'left_again', 'lockless', 'lockless_spin' ])
	{
		my ($script, @with) = @$scripted;

		ok(run([ "$out/$kind/stress", "--script=$script" ], '>', \$stdout, '2>', \$stderr),
			"$script: no property is violated")
		  or diag($stderr);
		is($stdout, join('', map { "$script: $_\n" } @with), "$script: with @with");
	}
}
cmp_ok($operations{fibers} || 0, '>', 10000, 'enough operations in random order');

if (($ENV{LWLOCK_HARNESS_MUTANTS} // 1) ne '0')
{
	my ($stdout, $stderr) = ('', '');
	local $ENV{OUT} = "$out/mutants";
	make_path($ENV{OUT});
	my $ok = run([ "$harness/run_mutants", '--seconds=30' ], '>', \$stdout, '2>', \$stderr);
	my @mutants = slurp_file("$harness/mutants.txt") =~ /^= /mg;
	my $caught = () = $stdout =~ /^caught /mg;

	note($stdout);
	ok($ok, 'no mutant survives') or diag($stdout . $stderr);
	is($caught, scalar @mutants, 'each mutant was run');
	cmp_ok(scalar @mutants, '>=', 12, 'there are mutants');
}

done_testing();
