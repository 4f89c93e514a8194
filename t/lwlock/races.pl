
# The classic races of waiting for an LWLock, reproduced deterministically: a
# library around pg_sweep's hooks stops processes at the critical points.  With
# every policy, and with every pair of a policy that queues and one that wakes.

use strict;
use warnings FATAL => 'all';

use LwlockTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;
use Time::HiRes qw(usleep);

my $node = lwlock_node(
	'main',
	conf => qq{
pg_sweep.lwlock_handoff_after = 1ms
test_lwlock.watch_for = 1s
});

require_modules($node, 'test_lwlock');

$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION pg_sweep');
my @policies = split /\n/,
  $node->safe_psql('postgres',
	q{SELECT unnest(enumvals) FROM pg_settings WHERE name = 'pg_sweep.lwlock_policy'}
  );
BAIL_OUT('the server names no policies besides stock') if @policies < 2;

my $t = LwlockTest->new($node, 8);

# Run a scenario with each policy, or each pair: to queue with, to wake with
my $run = 0;

sub with_policies
{
	my ($scenario, @which) = @_;

	for my $pair (@which)
	{
		# every other lock is not at an 8-byte boundary
		$t->use_lock($run++ % 8);
		$scenario->(@$pair);
	}
	return;
}
my @each = map { [$_] } @policies;
my @pairs = map {
	my $first = $_;
	map { [ $first, $_ ] } @policies
} @policies;

#
# The holder releases after it was seen, and before the waiter is in the queue
#
sub released_before_queued
{
	my ($policy) = @_;

	$t->policy($policy);
	for my $mode ('exclusive', 'shared')
	{
		for my $command ('acquire', 'acquire_or_wait')
		{
			my $title = "$policy: $command, $mode, released before queued";
			my $sleeps = $t->actor(1, 'sleeps');

			$t->do(0, 'acquire');
			$t->do_until(1, 'acquire', $command, mode => $mode);
			$t->do(0, 'release');
			is($t->state, 'free|release_ok|', "$title: no process is there");
			$t->go(1);
			like($t->finish(1), qr/^(?:at once|acquired)$/, "$title: it has it");
			is($t->actor(1, 'sleeps'), $sleeps, "$title: without sleeping");
			$t->do(1, 'release');
			$t->is_at_rest($title);
		}
	}

	# and before it sleeps
	my $title = "$policy: released before asleep";
	$t->do(0, 'acquire');
	$t->do_until(1, 'sleep', 'acquire');
	$t->do(0, 'release');
	$t->go(1);
	$t->finish(1);
	$t->do(1, 'release');
	$t->is_at_rest($title);
	return;
}
with_policies(\&released_before_queued, @each);

#
# While a waker is on its way, other processes come, overtake, and queue.  After
# the spurious wakeup, the waiter queues at the end with core, or if it shares the
# lock, as one wakeup is for all of these; otherwise it goes to the front.
#
sub overtaken
{
	my ($queue, $wake, $mode) = @_;
	my $title = "$mode, queued by $queue, woken by $wake: overtaken";
	my $kind = $mode eq 'exclusive' ? 'e' : 's';
	my $first = $queue eq 'stock' || $mode eq 'shared' ? 3 : 1;

	$t->policy($queue);
	$t->do(0, 'acquire');
	$t->sleep_over(1, 'acquire', mode => $mode);
	$t->policy($wake);
	$t->do_until(0, 'wake', 'release');
	is($t->state, "free|release_ok|1$kind", "$title: one waits for the waker");
	is($t->do(2, 'acquire'), 'at once', "$title: another is quicker");
	$t->policy($queue);
	$t->sleep_over(3, 'acquire');
	is($t->state, "exclusive|release_ok|3e 1$kind", "$title: and one queues");
	$t->policy($wake);
	$t->stop(1, 'woken');
	$t->go(0);
	$t->await(1, 'stopped at woken');
	$t->policy($queue);
	$t->go(1);
	$t->await(1, 'asleep');
	$t->finish(0);
	$t->policy($wake);
	$t->do(2, 'release');
	is($t->finish($first), 'waited', "$title: $first is next");
	is($t->actor(4 - $first, 'state'), 'asleep', "$title: the other is not");
	$t->pass_on($first, 4 - $first);
	$t->is_at_rest($title);
	return;
}
with_policies(\&overtaken, map { ([ @$_, 'exclusive' ], [ @$_, 'shared' ]) } @pairs);

#
# All kinds of waiters, queued with one policy and woken with another: first come,
# first served, those in shared mode together
#
sub order_over_switch
{
	my ($before, $after) = @_;

	$t->policy($before);
	$t->check_order("$before, then $after: order", sub { $t->policy($after) });
	return;
}
with_policies(\&order_over_switch, @pairs);

#
# LWLockAcquireOrWait(): all are woken together, and with them the first that
# wants the lock
#
sub acquire_or_wait
{
	my ($queue, $wake) = @_;
	my $title = "queued by $queue, woken by $wake: acquire or wait";

	$t->policy($queue);
	$t->check_acquire_or_wait($title, sub { $t->policy($wake) });

	# released before they sleep
	$t->policy($queue);
	$t->do(0, 'acquire');
	$t->do_until($_, 'sleep', 'acquire_or_wait') for 1, 2;
	$t->policy($wake);
	$t->do(0, 'release');
	$t->go($_) for 1, 2;
	is($t->finish($_), 'waited', "$title: $_ is woken in its first sleep")
	  for 1, 2;
	$t->is_at_rest($title);
	return;
}
with_policies(\&acquire_or_wait, @pairs);

#
# LWLockWaitForVar() against LWLockUpdateVar()
#
sub wait_for_var
{
	my ($policy) = @_;
	my $title = "$policy: wait for var";
	my $sleeps = $t->actor(1, 'sleeps');

	$t->policy($policy);
	$t->do(0, 'acquire');
	$t->do(0, 'update_var', value => 1);
	$t->do_until(1, 'acquire', 'wait_for_var', value => 1);
	$t->do(0, 'update_var', value => 2);
	$t->go(1);
	is($t->finish(1), 'var 2', "$title: changed before queued");
	is($t->actor(1, 'sleeps'), $sleeps, "$title: without a sleep");

	$t->do_until(1, 'acquire', 'wait_for_var', value => 2);
	$t->do(0, 'release');
	$t->go(1);
	is($t->finish(1), 'free', "$title: released before queued");
	is($t->actor(1, 'sleeps'), $sleeps, "$title: again without a sleep");
	$t->is_at_rest($title);

	# changed when it is in the queue, with others that want the lock
	$t->do(0, 'acquire');
	$t->sleep_over(2, 'acquire');
	$t->do_until(1, 'sleep', 'wait_for_var', value => 2);
	$t->sleep_over(3, 'wait_for_var', value => 2);
	$t->do(0, 'update_var', value => 3);
	is($t->finish(3), 'var 3', "$title: changed in its sleep");
	$t->go(1);
	is($t->finish(1), 'var 3', "$title: changed before its sleep");
	is($t->state, 'exclusive|release_ok|2e', "$title: a process that wants the lock sleeps on");

	# released when it is in the queue
	$t->sleep_over(1, 'wait_for_var', value => 3);
	$t->do(0, 'release_clear_var', value => 0);

	# the other woken process may have been quicker
	like($t->finish(1), qr/^(?:free|var 0)$/, "$title: released in its sleep");
	$t->finish(2);

	# a shared holder does not count
	$t->do(2, 'release');
	$t->do(0, 'acquire', mode => 'shared');
	is($t->do(1, 'wait_for_var', value => 0), 'free', "$title: shared");
	$t->do(0, 'release');
	$t->is_at_rest($title);
	return;
}
with_policies(\&wait_for_var, @each);

#
# After too many spurious wakeups, a waiter is handed the lock
#

# The holder releases, another process takes the lock before the waiter, and the
# waiter queues again.
sub wake_spuriously
{
	my ($policy, $wake, $holder, $other, $waiter) = @_;

	$t->policy($wake);
	$t->do_until($holder, 'wake', 'release');
	$t->do($other, 'acquire');
	$t->stop($waiter, 'woken');
	$t->go($holder);
	$t->finish($holder);
	$t->await($waiter, 'stopped at woken');
	$t->policy($policy);
	$t->go($waiter);
	$t->await($waiter, 'asleep');
	return;
}

# longer than pg_sweep.lwlock_handoff_after
sub let_it_be_overdue
{
	usleep(2000);
	return;
}

sub handed_over
{
	my ($policy, $wake, $mode) = @_;
	my $title = "$mode, overdue with $policy, woken by $wake";
	my $kind = $mode eq 'exclusive' ? 'e' : 's';
	my $sleeps = $t->actor(1, 'sleeps');

	$t->policy($policy);
	$t->do(0, 'acquire');
	$t->sleep_over(1, 'acquire', mode => $mode);
	let_it_be_overdue();
	wake_spuriously($policy, $wake, 0, 2, 1);
	unlike($t->state, qr/reserved/, "$title: once is not often enough");
	wake_spuriously($policy, $wake, 2, 0, 1);
	$t->policy($wake);
	if ($policy eq 'stock')
	{
		is($t->state, "exclusive|release_ok|1$kind", "$title: it queues again");
		$t->do_until(0, 'wake', 'release');
		is($t->do(3, 'conditional'), 'acquired', "$title: any process may have it");
		$t->go(0);
		$t->finish(0);
		$t->pass_on(3, 1);
		$t->is_at_rest($title);
		return;
	}
	is($t->state, "exclusive|release_ok reserved|1$kind!", "$title: it is reserved");
	$t->do_until(0, 'wake', 'release');
	is($t->state, "free|release_ok reserved|1$kind!", "$title: it is free, and only for the waiter");
	is($t->do(3, 'conditional'), 'failed', "$title: not for a newcomer");
	is($t->do(3, 'conditional', mode => 'shared'), 'failed', "$title: not even shared");
	$t->sleep_over(3, 'acquire');
	$t->policy($policy);
	$t->sleep_over(4, 'acquire', mode => 'shared');
	$t->policy($wake);
	$t->go(0);
	$t->finish(0);
	is($t->finish(1), 'waited', "$title: it has it");
	is($t->actor(1, 'sleeps') - $sleeps, 3, "$title: after three sleeps");
	if ($mode eq 'exclusive')
	{
		is($t->state, 'exclusive|release_ok|4s 3e', "$title: it is not reserved any more");
		$t->pass_on(1, 3, 4);
	}
	else
	{
		$t->finish(4);
		is($t->state, 'shared 2|release_ok|3e', "$title: and another shares it");
		$t->do($_, 'release') for 1, 4;
		$t->finish(3);
		$t->do(3, 'release');
	}
	$t->is_at_rest($title);
	return;
}
with_policies(\&handed_over, map { ([ @$_, 'exclusive' ], [ @$_, 'shared' ]) } @pairs);

#
# A late waker finds the lock taken again and reserved: it must leave both alone
#
sub reservation_kept
{
	my ($policy, $wake) = @_;
	my $title = "reserved by $policy, woken by $wake too early";

	$t->policy($policy);
	$t->do(0, 'acquire');
	$t->sleep_over(1, 'acquire');
	wake_spuriously($policy, $wake, 0, 2, 1);
	let_it_be_overdue();
	$t->policy($wake);
	$t->do_until(2, 'wake', 'release');
	is($t->do(3, 'conditional'), 'acquired', "$title: another is quicker");
	$t->stop(1, 'woken');
	$t->do(3, 'release');
	$t->await(1, 'stopped at woken');
	is($t->do(3, 'conditional'), 'acquired', "$title: and once more");
	$t->policy($policy);
	$t->go(1);
	$t->await(1, 'asleep');
	my $reserved = $policy eq 'stock' ? '' : ' reserved';
	like($t->state, qr/^exclusive\|release_ok$reserved\|1e/, "$title: now it is overdue");
	$t->policy($wake);
	$t->go(2);
	$t->finish(2);
	if ($policy ne 'stock')
	{
		is($t->state, 'exclusive|release_ok reserved|1e!', "$title: the late waker leaves it");
		$t->do(3, 'release');
		is($t->finish(1), 'waited', "$title: the release hands it over");
		is($t->state, 'exclusive|release_ok|', "$title: it is not reserved any more");
		$t->do(1, 'release');
		$t->is_at_rest($title);
		return;
	}
	$t->do(3, 'release');
	$t->finish(1);
	$t->do(1, 'release');
	$t->is_at_rest($title);
	return;
}
with_policies(\&reservation_kept, @pairs);

#
# A writer loses the lock to a reader, and queues again: the readers in the queue
# share the lock with that one
#
sub readers_let_in
{
	my ($policy) = @_;
	my $title = "$policy: lost to a reader";

	$t->policy($policy);
	$t->do(0, 'acquire');
	$t->sleep_over(1, 'acquire');
	$t->sleep_over(2, 'acquire', mode => 'shared');
	$t->do_until(0, 'wake', 'release');
	is($t->do(3, 'conditional', mode => 'shared'), 'acquired', "$title: a reader is quicker");
	$t->stop(1, 'woken');
	$t->go(0);
	$t->finish(0);
	$t->await(1, 'stopped at woken');
	$t->go(1);
	if ($policy ne 'stock')
	{
		is($t->finish(2), 'waited', "$title: the reader in the queue is let in");
		is($t->state, 'shared 2|release_ok|1e+', "$title: both share it");
		$t->do(2, 'release');
	}
	else
	{
		$t->await(1, 'asleep');
		is($t->state, 'shared 1|release_ok|1e 2s', "$title: it is behind the other");
	}
	$t->do(3, 'release');
	if ($policy eq 'stock')
	{
		$t->finish(2);
		$t->do(2, 'release');
	}
	$t->finish(1);
	$t->do(1, 'release');
	$t->is_at_rest($title);
	return;
}
with_policies(\&readers_let_in, @each);

#
# A releaser leaves the wakeup to the process that has locked the wait list
#
sub left_to_waker
{
	my ($policy) = @_;
	my $title = "$policy: left to another waker";

	return if $policy !~ /^lockless/;
	$t->policy($policy);
	$t->do(0, 'acquire');
	$t->sleep_over(1, 'acquire');
	$t->do_until(0, 'wake_locked', 'release');
	is($t->do(2, 'conditional'), 'acquired', "$title: another is quicker");

	# queues without the list
	$t->sleep_over(3, 'acquire');
	is($t->state, 'exclusive|list_locked release_ok|3e 1e',
		"$title: one queues while the list is locked");
	is($t->do(2, 'release'), 'done', "$title: the releaser need not wait");
	is($t->state, 'free|list_locked release_ok wake_wanted|3e 1e',
		"$title: the holder of the list must wake");
	$t->go(0);
	$t->finish(1);
	is($t->state, 'exclusive|release_ok|3e', "$title: the first is woken");
	$t->finish(0);
	$t->pass_on(1, 3);
	$t->is_at_rest($title);
	return;
}
with_policies(\&left_to_waker, @each);

# ... which is queueing with core's code.  The test itself locks the list until the
# releaser has passed, and then unlocks it for the queueing process.
sub left_to_queuer
{
	my ($queue, $wake) = @_;

	return if $wake !~ /^lockless/ || $queue =~ /^lockless/;
	for my $command ('acquire', 'acquire_or_wait')
	{
		my $title = "left by $wake to one that queues by $queue, $command";
		my $kind = $command eq 'acquire' ? 'e' : 'w';

		$t->policy($queue);
		$t->do(0, 'acquire');
		$t->sleep_over(1, $command);
		$t->do_until(2, 'acquire', 'acquire', mode => 'shared');
		$t->force('list_locked', 'true');
		$t->policy($wake);
		is($t->do(0, 'release'), 'done', "$title: the releaser is done");
		is($t->state, "free|list_locked release_ok wake_wanted|1$kind",
			"$title: it has left a note");
		$t->policy('stock');
		$t->go(2);
		$t->force('list_locked', 'false');

		# either the woken process or the one that queued and tried again is first
		if ($command eq 'acquire')
		{
			my $first = $t->await_any(1, 2);

			$t->pass_on($first, 3 - $first);
		}
		else
		{
			is($t->finish(1), 'waited', "$title: it is woken");
			$t->finish(2);
			$t->do(2, 'release');
		}
		$t->is_at_rest($title);
	}
	return;
}
with_policies(\&left_to_queuer, @pairs);

#
# A lock that its holder has disowned is released by another
#
sub disowned
{
	my ($queue, $wake) = @_;
	my $title = "queued by $queue, woken by $wake: disowned";

	$t->policy($queue);
	for my $mode ('exclusive', 'shared')
	{
		$t->do(0, 'acquire', mode => $mode);
		$t->sleep_over($_, 'acquire') for 1, 2;
		$t->do(0, 'disown');
		$t->policy($wake);
		$t->do(3, 'release_disowned', mode => $mode);
		is($t->finish(1), 'waited', "$title, $mode: the first has it");
		$t->pass_on(1, 2);
		$t->is_at_rest("$title, $mode");
	}
	return;
}
with_policies(\&disowned, @pairs);

#
# A process is killed, with others behind it: core restarts the server
#
sub killed
{
	my ($policy, $where) = @_;
	my $title = "$policy: killed $where";
	my $started = $t->sql('SELECT pg_postmaster_start_time()');
	my $offset = -s $node->logfile;
	my $victim = $where eq 'in the queue' ? 2 : 0;

	$t->policy($policy);
	$t->do(0, 'acquire');
	$t->sleep_over($_, 'acquire') for 1 .. 3;
	$t->do_until(0, 'wake', 'release') if $where eq 'as it wakes';
	$t->do_until(0, 'wake_locked', 'release')
	  if $where eq 'with the list locked';
	kill('KILL', $t->actor($victim, 'pid')) or die "could not kill: $!";
	$node->wait_for_log(qr/terminated by signal 9/, $offset);
	$t->finish_all(crashed => 1);
	ok(wait_until_back($node), "$title: the server is back");

	$t = LwlockTest->new($node, 8);
	is($t->sql('SELECT pg_postmaster_start_time()'), $started, "$title: it is the same postmaster");
	$t->is_at_rest($title);
	$t->policy($policy);
	$t->check_order("$title: afterwards");
	released_before_queued($policy);
	return;
}
with_policies(\&killed, map { my $policy = $_;
		map { [ $policy, $_ ] } (
			'in the queue', 'holding it', 'as it wakes',
			$policy =~ /^lockless/ ? 'with the list locked' : ())
	} @policies);

#
# The watchdog of the stress test sees processes that will never be woken.  The
# test forces this: the lock becomes free without a wakeup, or the queue is lost.
#
for my $how ([ 'exclusive', 'the lock is free' ],
	[ 'queue', 'it is not in the queue' ])
{
	my ($what, $finding) = @$how;
	my $offset = -s $node->logfile;
	my $pid = $t->actor(1, 'pid');

	$t->do(0, 'acquire');
	$t->sleep_over(1, 'acquire');
	$t->force($what, 'false');
	ok($node->wait_for_log(qr/hang: process $pid sleeps on test_lwlock, but \Q$finding\E/, $offset),
		"the watchdog sees that $finding");
	cmp_ok($t->sql('SELECT hangs FROM test_lwlock_workers()'), '>', 0, 'and counts it');
	$t->force($what, 'true');
	$t->pass_on(0, 1);
	$t->is_at_rest('after that');
}

is_deeply(
	[
		unexpected_log_lines(
			$node, 0,
			qr/FATAL:  the database system is (?:in recovery mode|not yet accepting connections)/
		)
	],
	[],
	'no error in the log');
$t->finish_all;
$node->stop;

#
# Without hooks, waiters are woken in the same order
#
$node = lwlock_node('nothing', nothing => 1, conf => 'test_lwlock.stop_points = off');
$node->start;
$t = LwlockTest->new($node, 8);
for my $lock (0, 1)
{
	$t->use_lock($lock);
	$t->check_order("nothing loaded, lock $lock: order");
	$t->check_acquire_or_wait("nothing loaded, lock $lock: acquire or wait");
}
is($t->sql('SELECT sum(sleeps) FROM test_lwlock_actors()'), 0, 'no process was in a hook');
$t->finish_all;
$node->stop;
done_testing();
