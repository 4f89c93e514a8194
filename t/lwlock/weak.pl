# Weak memory: the server's own code of the LWLocks' wait queue runs under Relacy,
# a checker that knows the C++11 memory model, with no more order than
# PostgreSQL's primitives promise.  Each order that is removed must be seen.
#
# test/lwlock/weak/README.md says what it covers.  It needs Debian's relacy-dev and
# g++, and the source of a patched server, but no running one.

use strict;
use warnings FATAL => 'all';

use Cwd qw(abs_path);
use File::Basename;
use File::Path qw(make_path);
use IPC::Run qw(run);
use PostgreSQL::Test::Utils;
use Test::More;

my $top = abs_path(dirname(__FILE__) . '/../..');
my $weak = "$top/test/lwlock/weak";
my $pg_config = $ENV{PG_CONFIG} || 'pg_config';

# A server that this project has built has its source, too; others may not.
my $source = $ENV{LWLOCK_HARNESS_SOURCE} || "$top/build/$ENV{SWEEP_MAJOR}/src-patched";
if ($pg_config !~ m{^\Q$top\E/build/} && !-f "$source/src/include/storage/lwlock_queue.h")
{
	plan skip_all => "there is no source of a patched server in $source";
}

my $out = "$PostgreSQL::Test::Utils::tmp_check/lwlock_weak";
make_path($out);
{
	local $ENV{OUT} = $out;
	local $ENV{SOURCE} = $source;
	my $log = '';

	run([ "$weak/build" ], '>', \$log, '2>&1')
	  or die "$log\n$weak/build failed; tools/deps installs relacy-dev and g++\n";
}

# Search a pattern with at most so many preemptions, without some order.  Returns
# the result and the number of executions.
sub search
{
	my ($pattern, $bound, @without) = @_;
	my ($stdout, $stderr) = ('', '');

	run([ "$out/weak", $pattern, '--bound', $bound, map { ('--without', $_) } @without ],
		'>', \$stdout, '2>', \$stderr);
	my ($result, $executions) = $stdout =~ /^$pattern: (.*), (\d+) executions$/m
	  or return ("no result: $stdout$stderr", 0);
	return ("$result, but it never reached $1", $executions)
	  if @without == 1 && $stdout =~ /^never reached: (.*)$/m;
	return ($result, $executions);
}

# ---- no forbidden outcome ----

my %patterns = (
	admit => 4e3,
	push_link => 1e5,
	grant_wake => 5e4,
	update_var => 1e5,
	release_clear_var => 1e5,
	reuse => 5e4);

foreach my $pattern (sort keys %patterns)
{
	my ($result, $executions) = search($pattern, 2);

	is($result, 'SUCCESS', "$pattern: no forbidden outcome with at most two preemptions");
	cmp_ok($executions, '>=', $patterns{$pattern}, "$pattern: $executions executions");
}

# ---- what is needed, and what is not ----

# The least order that each primitive needs, and a pattern in which less is seen.
# A change of the code that adds or removes one belongs here, and in README.md.
my %least = (
	'LWLockAcquire pg_atomic_fetch_or_u64' => [ 'acquire', 'grant_wake' ],
	'LWLockAdmitShared pg_atomic_fetch_or_u64' => [ 'acquire', 'admit' ],
	'LWLockAttemptLock pg_atomic_compare_exchange_u64' => [ 'acquire', 'release_clear_var' ],
	'LWLockDequeueSelf pg_atomic_fetch_or_u64' => ['relaxed'],
	# needed only if a compare-and-swap that fails gives no order
	'LWLockLinkWaiters pg_read_barrier' => [ 'barrier', 'push_link',
		'LWLockPushAndUnlock:pg_atomic_compare_exchange_u64=release' ],
	'LWLockPushAndUnlock pg_atomic_compare_exchange_u64' => [ 'release', 'push_link' ],
	'LWLockQueueSelf pg_read_barrier' => [ 'barrier', 'reuse' ],
	'LWLockReleaseClearVar pg_atomic_exchange_u64' => [ 'release', 'release_clear_var' ],
	'LWLockReleaseInternal pg_atomic_fetch_sub_u64' => [ 'release', 'grant_wake' ],
	'LWLockTryAcquire pg_atomic_compare_exchange_u64' => [ 'acquire', 'release_clear_var' ],
	'LWLockTryQueue pg_atomic_compare_exchange_u64' => [ 'release', 'push_link' ],
	'LWLockTryQueue pg_read_barrier' => [ 'barrier', 'reuse' ],
	'LWLockUnlinkWaiter pg_atomic_compare_exchange_u64' => ['relaxed'],
	'LWLockUnlockAfterTaking pg_atomic_compare_exchange_u64' => [ 'release', 'push_link' ],
	'LWLockUpdateVar pg_atomic_exchange_u64' => [ 'release', 'update_var' ],
	'LWLockUpdateVar pg_write_barrier' => [ 'barrier', 'update_var' ],
	'LWLockWaitForVar pg_atomic_fetch_or_u64' => ['relaxed'],
	'LWLockWaitListLock pg_atomic_fetch_or_u64' => [ 'acquire', 'push_link' ],
	'LWLockWaitListUnlock pg_atomic_compare_exchange_u64' => [ 'release', 'update_var' ],
	'LWLockWaitListUnlock pg_atomic_fetch_and_u64' => [ 'release', 'update_var' ],
	'LWLockWakeTaken pg_write_barrier' => [ 'barrier', 'reuse' ],
	# needed only if a compare-and-swap that fails gives no order
	'LWLockWithoutNewest pg_read_barrier' => [ 'barrier', 'grant_wake',
		'LWLockUnlockAfterTaking:pg_atomic_compare_exchange_u64=release' ],
	'pgsweep_lwlock_lock_list_or_leave pg_atomic_compare_exchange_u64' => [ 'acquire', 'grant_wake' ]);
my %less = (acquire => 'release', release => 'acquire', barrier => 'relaxed');

is_deeply([ split /\n/, slurp_file("$out/sites") ],
	[ sort keys %least ], 'the places that order memory are those that are known');

foreach my $place (sort keys %least)
{
	my ($order, $pattern, @also) = @{ $least{$place} };
	next unless $pattern;
	my ($result) = search($pattern, 1, $place =~ s/ /:/r . "=$less{$order}", @also);

	like($result, qr/^(?:DATA RACE|USER ASSERT FAILED|DEADLOCK)$/,
		"$place without " . ($order eq 'barrier' ? 'it' : $order) . ": $pattern: $result");
}

# All at once with the least order: nothing relies on the rest.
my @least = map { s/ /:/r . "=$least{$_}[0]" } grep { $least{$_}[0] ne 'barrier' } sort keys %least;
foreach my $pattern (sort keys %patterns)
{
	my ($result, $executions) = search($pattern, 1, @least);

	is($result, 'SUCCESS', "$pattern: needs no other order ($executions executions)");
}

# ---- the order of statements ----

my %mutants = (
	clear_after_release => 'release_clear_var',
	no_look_at_var => 'update_var',
	told_before_granted => 'grant_wake',
	told_before_unlinked => 'reuse',
	update_after_look => 'update_var');
my %in_file = map { $_ => 1 } slurp_file("$weak/mutants.txt") =~ /^= (\w+)/mg;
is_deeply([ sort keys %mutants ], [ sort keys %in_file ], 'every mutant is tried');
foreach my $mutant (sort keys %mutants)
{
	my ($result) = search($mutants{$mutant}, 1, $mutant);

	like($result, qr/^(?:DATA RACE|USER ASSERT FAILED|DEADLOCK)$/, "mutant $mutant: $result");
}

# ---- the checker itself ----

my ($result) = search('no_total_order', 1);
is($result, 'USER ASSERT FAILED', 'atomic operations on two words have no common order');

done_testing();
