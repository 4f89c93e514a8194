
# Waiting policies and strategies are switched every 50 ms under a mixed load, and
# backends are killed.  No process is left asleep on a free lock, locks exclude,
# work goes on, and nothing that was committed is lost.
#
# PG_SWEEP_LWLOCK_STRESS_SECONDS and PG_SWEEP_LWLOCK_STRESS_CLIENTS set duration and
# connections; test/long/lwlock_stress sets 10 minutes and 500.

use strict;
use warnings FATAL => 'all';

use LwlockTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use StressTest;
use SweepTest;
use Test::More;
use Time::HiRes qw(time usleep);

my $seconds = stress_number('PG_SWEEP_LWLOCK_STRESS_SECONDS', 30, 10);
my $clients = stress_number('PG_SWEEP_LWLOCK_STRESS_CLIENTS', 40, 2);
my $interval = 50;
my $max_connections = $clients + 20;

# Seconds without a transaction after which the load counts as stuck
my $patience = 30;

# ... and seconds of load before a backend is killed
my $until_kill = $seconds > 120 ? 20 : 6;

my $node = lwlock_node(
	'main',
	init => { extra => ['--data-checksums'] },
	conf => qq{
shared_buffers = 16MB
max_connections = $max_connections
# for "partitioned", on any machine
pg_sweep.numa_debug_nodes = 4
pg_sweep.partitions = 8
pg_sweep.lwlock_handoff_after = 1ms
test_lwlock.stop_points = off
test_lwlock.switch_every = $interval
test_lwlock.watch_for = 2s
autovacuum = on
autovacuum_naptime = 5s
checkpoint_timeout = 30s
max_wal_size = 256MB
});

require_modules($node, 'test_lwlock');

$node->start;
$node->safe_psql('postgres', q{
CREATE EXTENSION pg_sweep;
CREATE EXTENSION test_lwlock;
CREATE TABLE inserted (client int, at timestamptz DEFAULT clock_timestamp());
});
init_pgbench($node, 8);

my @scripts = (
	'--builtin' => 'tpcb-like@5',
	'--file' => write_script('insert.sql',
		"INSERT INTO inserted VALUES (:client_id);\n")
	  . '@3',
	'--file' => write_script('xid.sql', "SELECT txid_current();\n") . '@2',
	'--builtin' => 'select-only@4',
	'--file' => write_script('hammer.sql', "SELECT test_lwlock_hammer(200);\n")
	  . '@2');

# Commits that pgbench reports, by number of the script
my %committed = (1 => 0, 2 => 0);

sub note_committed
{
	my ($handle) = @_;
	my $out = slurp_file($handle->{out});

	for my $script (keys %committed)
	{
		$out =~ /^SQL script $script: .*?\n - (\d+) transactions/ms
		  or die "pgbench does not say what it did: $out";
		$committed{$script} += $1;
	}
	return;
}

# Time and transactions per second of pgbench's latest report
sub latest_progress
{
	my ($handle) = @_;
	my @lines = background_stderr($handle) =~ /^progress: ([\d.]+) s, ([\d.]+) tps/mg;

	return @lines ? @lines[ -2, -1 ] : (0, 0);
}

# Watch it for some seconds.  Returns false if it is stuck.
sub watch
{
	my ($handle, $offset, $duration) = @_;
	my $until = time + $duration;
	my $moved_at = time;
	my $reported = 0;

	while (time < $until)
	{
		my ($at, $tps) = latest_progress($handle);

		$moved_at = time if $at > $reported && $tps > 0;
		$reported = $at;
		return 0 if time > $moved_at + $patience;
		return 0
		  if slurp_file($node->logfile, $offset) =~ /test_lwlock: hang/;
		usleep(200_000);
	}
	return 1;
}

my %sum = (switches => 0, looks => 0, watched => 0);

# Counts since the last start of the server
sub note_counts
{
	my ($title) = @_;
	my ($switches, $looks, $hangs) = split /\|/,
	  $node->safe_psql('postgres', 'SELECT * FROM test_lwlock_workers()');
	my ($contended, $slept) = split /\|/,
	  $node->safe_psql('postgres', 'SELECT sum(contended), sum(slept) FROM pg_sweep_lwlock_waits');

	$sum{switches} += $switches;
	$sum{looks} += $looks;
	is($hangs, 0, "$title: the watchdog has found no hang");
	cmp_ok($contended, '>', 100, "$title: locks were contended");
	cmp_ok($slept, '>', 50, "$title: and processes slept");
	return;
}

my $begin = time;
my $end = $begin + $seconds;
my $rounds = 0;
my $healthy = 1;

while ($healthy)
{
	my $title = 'round ' . ++$rounds;
	my $left = $end - time;
	my $last = $left < 2 * $until_kill;
	my $offset = -s $node->logfile;
	my $load = start_pgbench($node, "load_$rounds", @scripts, '--client' => $clients, '--jobs' => 2,
		'--progress' => 1, '--time' => $last ? $until_kill + 2 : 3600);

	ok( $node->poll_query_until(
			'postgres',
			"SELECT count(*) >= $clients FROM pg_stat_activity WHERE application_name = 'load_$rounds'"
		),
		"$title: $clients clients are at work");
	my $watched_from = time;
	$healthy = watch($load, $offset, $last ? $until_kill : $until_kill * (0.5 + rand));
	$sum{watched} += time - $watched_from;
	ok($healthy, "$title: work goes on, and no process sleeps forever") or last;

	if ($last)
	{
		is(wait_for_background($load, 60), 0, "$title: the load ends well")
		  or diag(background_stderr($load));
		note_counts($title);
		note_committed($load);
		my ($counted, $times) = split /\|/,
		  $node->safe_psql('postgres', 'SELECT * FROM test_lwlock_hammered()');
		is($counted, $times, "$title: no count is lost");
		cmp_ok($times, '>', 1000, "$title: of many counts");
		is_deeply([ unexpected_log_lines($node, $offset) ], [], "$title: no error in the log");
		last;
	}
	note_counts($title);
	my $victim = kill_backend($node, "application_name = 'load_$rounds'");
	check_interrupted($title, $load);
	note_committed($load);
	check_recovered($node, $offset, $victim, $title);
	check_balances($node, $title);
}

if (!$healthy)
{
	diag($_)
	  for grep { /hang/ } split /\n/,
	  slurp_file($node->logfile);
	$node->stop('immediate');
	done_testing();
	exit;
}
cmp_ok($rounds, '>', 1, 'backends were killed');
cmp_ok($sum{looks}, '>', 0, 'the watchdog has looked at sleepers');

# A third of the nominal number leaves room for a busy machine.  Restarts, which
# depend on the disk, are not counted.
cmp_ok($sum{switches}, '>', $sum{watched} * 1000 / $interval / 3,
	'policies were switched often enough');

# Every reported commit is there, and of others at most one per client and round
for my $case ([ 1, 'pgbench_history' ], [ 2, 'inserted' ])
{
	my ($script, $table) = @$case;
	my $rows = $node->safe_psql('postgres', "SELECT count(*) FROM $table");

	cmp_ok($rows, '>=', $committed{$script}, "$table: no row is lost");
	cmp_ok($rows, '<=', $committed{$script} + $rounds * $clients, "$table: and none too many");
}
check_balances($node, 'end');
check_amcheck($node, 'end');

note("$rounds rounds, $sum{switches} switches, $sum{looks} looks at sleepers, "
	  . "$committed{1} and $committed{2} transactions that write");
note($_)
  for split /\n/,
  $node->safe_psql('postgres',
	'SELECT tranche, mode, contended, spun, queued, slept, spurious_wakeups, overtaken, handed_over, longest_wait FROM pg_sweep_lwlock_waits ORDER BY contended DESC LIMIT 12'
  );

ok($node->stop('fast', fail_ok => 1), 'the server stops');
check_checksums($node);
done_testing();
