
# Waiting for LWLocks: the counts of pg_sweep_lwlock_waits, for locks whose waits
# the test controls.

use strict;
use warnings FATAL => 'all';

use LwlockTest;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;
use Time::HiRes qw(time usleep);

my @modes = ('exclusive', 'shared', 'wait until free');
my $server = LwlockServer->new;
my $node = $server->{node};

require_modules($node, 'test_lwlock');

$server->value('CREATE EXTENSION test_lwlock');

my $holder = $server->session;

# A row of the view in a session that knows the tranches
my $know = 'SELECT test_lwlock_held();';

sub waits
{
	my ($columns, $where) = @_;
	my @lines = split /\n/,
	  $server->value("$know SELECT $columns FROM pg_sweep_lwlock_waits WHERE $where");

	shift @lines;
	return join "\n", @lines;
}

# Let the holder hold locks until a process has come for each and has waited for
# $ms milliseconds (-1: until the test lets it go).  Then the holder tries $again
# times to overtake the woken process.
sub hold
{
	my ($first, $last, $ms, $again) = @_;

	$again //= 0;
	$holder->query_until(
		qr/^begun$/m,
		"\\echo begun\nSELECT 'overtook ' || test_lwlock_hand_over($first, $last, $ms, $again);\n\\echo ended\n");
	$node->poll_query_until('postgres', 'SELECT test_lwlock_held()')
	  or die 'the locks are not held';
	return;
}

# Wait for its end.  Returns how often it overtook.
sub held_until_now
{
	my ($overtook) = $holder->query_until(qr/^ended$/m, '') =~ /overtook (\d+)/;

	return $overtook;
}

#
# One wait, measured from outside
#
my $columns = 'tranche, mode, policy, contended, spun, queued, slept, spurious_wakeups, overtaken, handed_over';
my $lock = 0;
for my $policy (@policies)
{
	for my $mode (@modes)
	{
		my $tranche = sprintf('test_%04d', $lock);
		my $title = "$policy, $mode";

		$server->set_policy($policy);
		$server->value('SELECT pg_sweep_reset_stats()');
		hold($lock, $lock, 50);
		my $begin = time;
		is($server->value("SELECT test_lwlock_take($lock, $lock, '$mode')"),
			1, "$title: the process sleeps, as core says");
		my $elapsed = (time - $begin) * 1000;
		held_until_now();

		is(waits($columns, "tranche = '$tranche'"),
			"$tranche|$mode|$policy|1|0|1|1|0|0|0", "$title: one wait is counted as one");
		my ($wait, $longest, $sum, $fits) = split /\|/, waits(
			q{wait_time, longest_wait, (SELECT sum(n) FROM unnest(histogram) n),
			  (SELECT bool_and((n = 1) = (wait_time * 1000 >= CASE WHEN i = 1 THEN 0 ELSE 2 ^ (i - 2) END
			                              AND (i = 24 OR wait_time * 1000 < 2 ^ (i - 1))))
			     FROM unnest(histogram) WITH ORDINALITY AS h(n, i))},
			"tranche = '$tranche'");
		cmp_ok($wait, '>=', 50, "$title: it took at least as long as the lock was held");
		cmp_ok($wait, '<=', $elapsed, "$title: and no longer than the whole call");
		is($longest, $wait, "$title: it is the longest");
		is("$sum|$fits", '1|t', "$title: the histogram has it where it belongs");
		$lock++;
	}
}

#
# A waiter is overtaken as often as the other process says, and handed the lock if
# that has lasted too long
#
for my $after (0, 1)
{
	$server->value("ALTER SYSTEM SET pg_sweep.lwlock_handoff_after = $after");
	$server->unrelated_reload;
	for my $policy (@policies)
	{
		my $title = "$policy, handoff_after = $after";
		my $handed_over = $after > 0 && $policy ne 'stock' ? 1 : 0;
		my $overtook;

		# the holder may lose its CPU at the wrong moment
		$server->set_policy($policy);
		for (1 .. 20)
		{
			$server->value('SELECT pg_sweep_reset_stats()');
			hold($lock, $lock, 5, 4);
			$server->value("SELECT test_lwlock_take($lock, $lock, 'exclusive')");
			$overtook = held_until_now();
			last if $overtook > $handed_over;
		}
		cmp_ok($overtook, '>', 0, "$title: the waiter is overtaken $overtook times");
		is( waits(
				q{contended, spun, queued, slept, spurious_wakeups, overtaken, handed_over,
				  (SELECT sum(n) FROM unnest(histogram) n)},
				sprintf(q{tranche = 'test_%04d'}, $lock)),
			join('|', 1, 0, $overtook + 1, $overtook + 1, $overtook, 1, $handed_over, 1),
			"$title: as it is counted");
		is( waits('wait_time = longest_wait AND wait_time >= 5 * ' . ($overtook + 1),
				sprintf(q{tranche = 'test_%04d'}, $lock)),
			't', "$title: it is one wait");
		is($overtook, 2, "$title: at the second time it is overdue, and the lock is kept for it")
		  if $handed_over;
		$lock++;
	}
}
$server->value('ALTER SYSTEM RESET pg_sweep.lwlock_handoff_after');
$server->unrelated_reload;

#
# pg_stat_activity shows the wait, too; a reset meanwhile
#
{
	my $waiter = $server->session;
	my $pid = $waiter->query_safe('SELECT pg_backend_pid()');

	$server->set_policy('lockless');
	$server->value('SELECT pg_sweep_reset_stats()');
	hold($lock, $lock, -1);
	my $begin = time;
	$waiter->query_until(qr/^begun$/m,
		"\\echo begun\nSELECT test_lwlock_take($lock, $lock, 'exclusive');\n");
	ok( $node->poll_query_until(
			'postgres',
			"SELECT wait_event_type = 'LWLock' FROM pg_stat_activity WHERE pid = $pid")
		  && $node->poll_query_until('postgres',
			q{SELECT slept = 1 FROM pg_sweep_lwlock_waits WHERE tranche = 'extension'}),
		'pg_stat_activity shows the wait');
	my $seen = time;
	is( waits(
			q{contended, queued, slept, wait_time, 0 = ALL (histogram)},
			sprintf(q{tranche = 'test_%04d'}, $lock)),
		'1|1|1|0|t',
		'a wait that lasts is counted, without its time');
	$server->value('SELECT pg_sweep_reset_stats()');
	is(waits('tranche', "tranche LIKE 'test%'"), '', 'a reset resets all counters');
	my $shown = (time - $seen) * 1000;
	is( $server->value("SELECT wait_event_type FROM pg_stat_activity WHERE pid = $pid"),
		'LWLock', 'pg_stat_activity still shows it');
	$server->value('SELECT test_lwlock_let_go()');
	held_until_now();
	$waiter->query_safe('SELECT 1');
	my $all = (time - $begin) * 1000;

	my ($counts, $wait) = waits(
		q{concat_ws(' ', contended, queued, slept, (SELECT sum(n) FROM unnest(histogram) n)) || '|' || wait_time},
		sprintf(q{tranche = 'test_%04d'}, $lock)) =~ /(.*)\|(.*)/;
	is($counts, '0 0 0 1', 'a wait that a reset interrupts has its time after it');
	cmp_ok($wait, '>=', $shown, 'its time is at least that for which pg_stat_activity showed it');
	cmp_ok($wait, '<=', $all, 'and at most that of the whole call');
	$waiter->quit;
	$lock++;
}

# A reset between two wakeups of a wait, whose time was counted at the first.  It
# leaves an element of the histogram that the reset has subtracted.
for (1 .. 20)
{
	my $waiter = $server->session;
	my $slept = q{SELECT slept = %d FROM pg_sweep_lwlock_waits WHERE tranche = 'extension'};

	$server->value('SELECT pg_sweep_reset_stats()');
	hold($lock, $lock, -1, 1);
	my $begin = time;
	$waiter->query_until(qr/^begun$/m,
		"\\echo begun\nSELECT test_lwlock_take($lock, $lock, 'exclusive');\n");
	$node->poll_query_until('postgres', sprintf($slept, 1)) or die 'no process sleeps';
	$server->value('SELECT test_lwlock_let_go()');
	$node->poll_query_until('postgres', sprintf(
			q{SELECT NOT test_lwlock_held()
			      OR EXISTS (SELECT FROM pg_sweep_lwlock_waits WHERE tranche IN ('extension', 'test_%04d') AND slept = 2)},
			$lock)) or die 'no process sleeps again, nor is the lock released';
	my $overtaken = $server->value('SELECT test_lwlock_held()') eq 't';
	if ($overtaken)
	{
		$server->value('SELECT pg_sweep_reset_stats()');
		usleep((time - $begin) * 1_200_000);
		$server->value('SELECT test_lwlock_let_go()');
	}
	held_until_now();
	$waiter->query_safe('SELECT 1');
	$waiter->quit;
	next unless $overtaken;
	is( waits(
			q{contended, slept, (SELECT sum(n) FROM unnest(histogram) n), wait_time < longest_wait},
			sprintf(q{tranche = 'test_%04d'}, $lock)),
		'0|0|1|t', 'a wait that was counted before a reset moves on in the histogram');
	last;
}
$lock++;

# A reset forgets the longest wait, even if no process has waited since
$server->set_policy('stock');
hold($lock, $lock, 200);
$server->value("SELECT test_lwlock_take($lock, $lock, 'exclusive')");
held_until_now();
$server->value('SELECT pg_sweep_reset_stats()');
is(waits('longest_wait', "tranche LIKE 'test%'"), '', 'reset: there is no longest wait');
hold($lock, $lock, 0);
$server->value("SELECT test_lwlock_take($lock, $lock, 'exclusive')");
held_until_now();
is( waits('longest_wait = wait_time AND longest_wait > 0', "tranche LIKE 'test%'"), 't',
	'reset: the next wait is the longest, however short');
$lock++;

#
# Turned off
#
$server->value('SELECT pg_sweep_reset_stats()');
hold($lock, $lock, 0);
is($server->value("SET pg_sweep.lwlock_track_waits = off; SELECT test_lwlock_take($lock, $lock, 'exclusive')"),
	1, 'lwlock_track_waits = off: a process sleeps');
held_until_now();
is(waits('tranche', "tranche LIKE 'test%'"), '', 'lwlock_track_waits = off: which is not counted');
$lock++;

#
# Load, compared with core's result of each acquisition
#
my $sessions = 6;
for my $policy (@policies)
{
	my $tranche = sprintf('test_%04d', $lock);
	my $times = 20_000;
	my $rounds = 0;
	my ($slept, %all) = (0);

	$server->set_policy('stock');
	$server->set_policy($policy, 'ProcArray');
	$server->value("$know SELECT pg_sweep_set_lwlock_policy('$policy', '$tranche')");
	$server->value('SELECT pg_sweep_reset_stats()');
	$server->value('CREATE TABLE IF NOT EXISTS slept (n int8)');
	$server->value('TRUNCATE slept');
	my $script = write_script("take_$policy.sql", join '',
		map { "INSERT INTO slept SELECT test_lwlock_take($lock, $lock, '$_', $times);\n" }
		  'exclusive', 'exclusive', 'shared', 'wait until free');

	# until there was a spurious wakeup, and spinning succeeded if there is a
	# second CPU
	my $cpus = `nproc` + 0;
	do
	{
		my $load = start_pgbench($node, "take_${policy}_" . ++$rounds,
			'--file' => $script, '--client' => $sessions, '--transactions' => 1);

		is(wait_for_background($load, 0), 0, "$policy: contention, round $rounds");
		%all = map { /(.*)=(.*)/ } split /\n/, waits(
			q{unnest(ARRAY['contended=' || sum(contended), 'spun=' || sum(spun), 'queued=' || sum(queued),
			  'slept=' || sum(slept), 'spurious=' || sum(spurious_wakeups), 'overtaken=' || sum(overtaken),
			  'granted=' || sum(handed_over), 'longest=' || max(longest_wait), 'time=' || sum(wait_time),
			  'waits=' || sum((SELECT sum(n) FROM unnest(histogram) n)), 'policies=' || string_agg(DISTINCT policy, ' ')])},
			"tranche = '$tranche'");
	} until ($rounds == 50
		|| ($all{slept} && $all{spurious}
			&& ($all{spun} || $policy ne 'lockless_spin' || $cpus < 2)));

	$slept = $server->value('SELECT sum(n) FROM slept');
	note("$policy: " . join(' ', map { "$_=$all{$_}" } sort keys %all));
	is($all{policies}, $policy, "$policy: the tranche has it");
	is($all{waits}, $slept, "$policy: as many waits as core says: $slept");
	cmp_ok($all{slept}, '>', 0, "$policy: some slept");
	cmp_ok($all{contended}, '<=', 4 * $sessions * $times * $rounds, "$policy: no more contended ones than all");
	cmp_ok($all{waits} + $all{spun}, '<=', $all{contended}, "$policy: slept or spun only for a taken lock");
	cmp_ok($all{slept}, '<=', $all{queued}, "$policy: slept only when queued");
	cmp_ok($all{slept}, '<=', $all{waits} + $all{spurious}, "$policy: slept again only after a spurious wakeup");
	cmp_ok($all{spurious}, '>', 0, "$policy: some wakeups were spurious");
	cmp_ok($all{overtaken}, '<=', $all{spurious}, "$policy: overtaken only after a spurious wakeup");
	cmp_ok($all{granted}, '<=', $all{overtaken}, "$policy: handed over only to overtaken ones");
	cmp_ok($all{longest}, '<=', $all{time}, "$policy: the longest is in the total");
	if ($policy eq 'stock')
	{
		is("$all{spun}|$all{granted}", '0|0', "$policy: core neither spins nor hands over");
	}
	elsif ($policy eq 'lockless_spin')
	{
		cmp_ok($all{spun}, '>', 0, "$policy: some got it by spinning") unless $cpus < 2;
	}
	is( waits('count(*)', "spun > 0 AND tranche NOT IN ('ProcArray', '$tranche')"),
		0, "$policy: no process spins for locks of other tranches");
	$server->value("$know SELECT pg_sweep_set_lwlock_policy('default', '$tranche')");
	$server->set_policy('default', 'ProcArray');
	$lock++;
}

#
# Summing and resetting under load: no counter is less than a reset subtracts
#
{
	my %loads = (
		race_take => [ 6, 60, join '', map { "SELECT test_lwlock_take(0, 3, '$_', 1000);\n" } @modes ],
		race_reset => [ 2, 500, 'SELECT pg_sweep_reset_stats();' ],
		race_read => [ 2, 300, q{
DO $$
BEGIN
IF EXISTS (SELECT FROM pg_sweep_lwlock_waits
            WHERE contended NOT BETWEEN 0 AND 1e9 OR spun NOT BETWEEN 0 AND 1e9 OR queued NOT BETWEEN 0 AND 1e9
               OR slept NOT BETWEEN 0 AND 1e9 OR spurious_wakeups NOT BETWEEN 0 AND 1e9
               OR overtaken NOT BETWEEN 0 AND 1e9 OR wait_time NOT BETWEEN 0 AND 1e9
               OR (SELECT bool_or(n NOT BETWEEN 0 AND 1e9) FROM unnest(histogram) n))
THEN RAISE 'out of range';
END IF;
END $$;} ]);
	my %running;

	$server->set_policy('lockless_spin');
	for my $name (sort keys %loads)
	{
		my ($clients, $transactions, $text) = @{ $loads{$name} };

		$running{$name} = start_pgbench($node, $name, '--file' => write_script("$name.sql", $text),
			'--client' => $clients, '--transactions' => $transactions);
	}
	is(wait_for_background($running{$_}, 0), 0, "resets under load: $_") foreach sort keys %running;
	$server->set_policy('stock');
}

#
# More tranches than a process has room for
#
$server->value('SELECT pg_sweep_reset_stats()');
my $many = $server->session;
hold(100, 199, 0);
is($many->query_safe("SELECT test_lwlock_take(100, 199, 'exclusive')"), 100, 'many tranches: it sleeps for each');
held_until_now();
is( waits(
		q{count(*) > 20, sum(contended), sum(slept), sum((SELECT sum(n) FROM unnest(histogram) n))},
		"tranche LIKE 'test%' OR tranche IS NULL"),
	't|100|100|100', 'many tranches: none is lost');
is( waits(q{count(*), bool_and(mode IS NULL AND policy IS NULL), sum(contended) > 40}, 'tranche IS NULL'),
	'1|t|t', 'many tranches: those without a place share one row');
is( $server->value(q{SELECT count(*), bool_and(mode = 'exclusive'), sum(contended) > 20
              FROM pg_sweep_lwlock_waits WHERE tranche = 'extension'}),
	'1|t|t', 'many tranches: those that a session does not know have the name of their wait event');

# the same again: places are kept
my $before = waits('sum(contended)', 'tranche IS NULL');
hold(100, 199, 0);
$many->query_safe("SELECT test_lwlock_take(100, 199, 'exclusive')");
held_until_now();
is(waits('sum(contended)', 'tranche IS NULL'), 2 * $before, 'many tranches: the same ones keep their place');
$many->quit;

# More tranches than there are places in all: 40 in each of 30 sessions
my @crowd = map { $server->session } 1 .. 30;
for my $round (1, 2)
{
	$server->value('SELECT pg_sweep_reset_stats()');
	for my $i (0 .. $#crowd)
	{
		my ($first, $last) = (40 * $i, 40 * $i + 39);

		hold($first, $last, 0);
		$crowd[$i]->query_safe("SELECT test_lwlock_take($first, $last, 'shared')");
		held_until_now();
	}
	is( waits(q{count(*) > 900, sum(contended), bool_and(coalesce(contended >= 0, true)),
			    count(*) FILTER (WHERE tranche IS NULL),
			    max(contended) FILTER (WHERE tranche IS NOT NULL)},
			"tranche LIKE 'test%' OR tranche IS NULL"),
		't|1200|t|1|1', "1200 tranches, round $round: none is lost");
}
$_->quit foreach @crowd;
$server->value('SELECT pg_sweep_reset_stats()');
is(waits('count(*)', "tranche LIKE 'test%' OR tranche IS NULL"), 0, '1200 tranches: a reset resets all');

# Several tranches with one name
is( $server->value(q{
SELECT test_lwlock_new_tranche('twice') <> test_lwlock_new_tranche('twice');
SELECT pg_sweep_set_lwlock_policy('lockless', 'twice');
SELECT policy, own FROM pg_sweep_lwlock_policies WHERE tranche = 'twice';
SELECT test_lwlock_new_tranche('twice') > 0;
SELECT policy, own FROM pg_sweep_lwlock_policies WHERE tranche = 'twice' ORDER BY own}),
	"t\nstock\nlockless|t\nt\nstock|f\nlockless|t",
	'one name: all its present tranches, not those to come');
is( $server->value(q{SELECT policy, own FROM pg_sweep_lwlock_policies WHERE tranche = 'extension'}),
	'lockless|t', 'one name: a session that does not know it sees its policy');
$holder->quit;
$node->stop;

done_testing();
