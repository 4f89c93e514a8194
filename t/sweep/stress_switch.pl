
# Switching every 50 ms under a read-write load larger than the pool, with a crash
# in the middle: no error, no hang, nothing lost, nothing miscounted.
#
# PG_SWEEP_STRESS_SECONDS sets the duration; test/long/sweep_stress_switch runs it
# for five minutes.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use StressTest;
use SweepTest;
use Test::More;
use Time::HiRes qw(time);

my $seconds = stress_number('PG_SWEEP_STRESS_SECONDS', 20, 4);
my $half = int($seconds / 2);
my $clients = 64;
my $interval = 50;

my $node = sweep_node(
	'main',
	init => { extra => ['--data-checksums'] },
	conf => qq{
# with 64 backends, leases of a few buffers each
shared_buffers = 16MB
max_connections = 100
# for "partitioned", on any machine
pg_sweep.numa_debug_nodes = 4
pg_sweep.partitions = 8
autovacuum = on
autovacuum_naptime = 5s
checkpoint_timeout = 30s
max_wal_size = 256MB
});
sub sql { return $node->safe_psql('postgres', $_[0]); }

$node->start;
sql('CREATE EXTENSION pg_sweep');
my @strategies = strategies($node);

init_pgbench($node, 8);
cmp_ok(
	sql(q{
SELECT sum(pg_relation_size(oid)) / 8192 / (SELECT buffers FROM pg_sweep_status)
  FROM pg_class WHERE relname LIKE 'pgbench%'}),
	'>',
	5,
	'the database is many times the pool');

# Start the load and the switching, for some seconds
sub start_both
{
	my ($name, $duration) = @_;

	return (
		start_pgbench(
			$node, "load_$name",
			'--client' => $clients,
			'--jobs' => 2,
			'--time' => $duration,
			'--progress' => 5),
		start_switching($node, "switch_$name", $interval, $duration));
}

# The least number of switches.  A third of what the interval gives leaves room for
# a busy machine.
sub switches_due
{
	my ($duration) = @_;

	return int($duration * 1000 / $interval / 3);
}

# Each strategy has allocated
sub check_exercised
{
	my ($title, $duration) = @_;

	for my $strategy (@strategies)
	{
		cmp_ok(counter($node, $strategy, 'allocations'), '>', 50 * $duration,
			"$title: $strategy has allocated");
	}

	cmp_ok(counter($node, 'batched', 'leases_expired'), '>', 0, "$title: leases have expired");
	return;
}

#
# Load, switching, and a backend that is killed.  Both pgbench have a longer duration.
#
my $offset = -s $node->logfile;
my ($first, $switcher) = start_both('crash', $half + 3600);
my $kill_at = time + $half;
ok( $node->poll_query_until(
		'postgres',
		"SELECT count(*) >= $clients FROM pg_stat_activity WHERE application_name = 'load_crash'"),
	"crash: $clients clients are at work");

# In slices, because the duration may exceed the timeout of a query
while (time < $kill_at)
{
	sql('SELECT pg_sleep(least(5, greatest(0, ' . ($kill_at - time) . ')))');
}
ok( $node->poll_query_until(
		'postgres', 'SELECT generation >= ' . switches_due($half) . ' FROM pg_sweep_status'),
	'crash: it has been switched often enough');
check_exercised('crash', $half);

my $victim = kill_backend($node, "application_name = 'load_crash'");
check_interrupted('crash', $first, $switcher);
check_recovered($node, $offset, $victim, 'crash');
check_balances($node, 'crash');
check_amcheck($node, 'crash');
check_counts_agree($node, 'crash');

#
# The same without a crash
#
$offset = -s $node->logfile;
my $due = switches_due($seconds - $half);
my $switched = 0;

# One round is enough, unless the clock jumps: in a virtual machine that was stopped,
# the time may be over at once.
for my $round (1 .. 5)
{
	my ($second, $second_switcher) = start_both("rest_$round", $seconds - $half);

	is(wait_for_background($second, $seconds), 0, "rest: the load ends well, round $round")
	  or diag(background_stderr($second));
	is(wait_for_background($second_switcher, 60),
		0, "rest: and so does the switching, round $round")
	  or diag(background_stderr($second_switcher));
	like(slurp_file($second->{out}), qr/number of failed transactions: 0 \(/,
		"rest: no transaction failed, round $round");
	$switched = sql('SELECT generation FROM pg_sweep_status');
	last if $switched >= $due;
}
cmp_ok($switched, '>=', $due, 'rest: it has been switched often enough');
check_exercised('rest', $seconds - $half);
is_deeply([ unexpected_log_lines($node, $offset) ], [], 'rest: no error in the log');
check_balances($node, 'rest');
check_amcheck($node, 'rest');

# Since the crash, both have counted from zero
check_counts_agree($node, 'rest');

note($_)
  for split /\n/,
  sql(
	'SELECT strategy, switches, active_time, allocations, looked_at, leases, leases_expired, buffers_expired FROM pg_sweep_strategies'
  );

ok($node->stop('fast', fail_ok => 1), 'the server stops');
check_checksums($node);
done_testing();
