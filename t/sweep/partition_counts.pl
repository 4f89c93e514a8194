# The counters of partitions add up to those of the strategy, of pg_stat_bgwriter
# and of the nodes: under load, across resets and exits of backends, and after a
# crash.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;
use Time::HiRes qw(usleep);

# The strategy: another file gives another
my $strategy = shift(@ARGV) // 'partitioned';

my $node = sweep_node('main', conf => qq{
shared_buffers = 16MB
pg_sweep.strategy = $strategy
pg_sweep.numa_debug_nodes = 4
pg_sweep.partitions = 8
checkpoint_timeout = 1h
});
$node->start;
require_modules($node, 'measure_sweep');

my $clients = 8;

sub sql { return $node->safe_psql('postgres', $_[0]); }

# At rest, everything adds up, but for the present lease of each process: partitions
# count a lease when it ends.  The leases of a reset's moment count whole when they end,
# so partitions can also be ahead.  The query itself may allocate between two of its
# parts, hence the poll.
sub check_sums
{
	my ($title) = @_;
	my $sums = qq{
		SELECT s.allocations AS asked, p.requests,
			   s.allocations - s.failed AS found, p.allocations, n.allocations AS on_nodes,
			   s.evictions AS evicted, p.evictions, p.redirected_out, p.redirected_in,
			   p.local_allocations AS local, n.local_allocations AS local_on_nodes,
			   n.allocations - n.remote_allocations AS not_remote,
			   (SELECT batch_size * backends FROM pg_sweep_status) AS leased
		FROM pg_sweep_strategies AS s,
			 (SELECT sum(requests) AS requests, sum(allocations) AS allocations,
					 sum(evictions) AS evictions, sum(redirected_out) AS redirected_out,
					 sum(redirected_in) AS redirected_in,
					 sum(local_allocations) AS local_allocations FROM pg_sweep_partitions) AS p,
			 (SELECT sum(allocations) AS allocations, sum(local_allocations) AS local_allocations,
					 sum(remote_allocations) AS remote_allocations FROM pg_sweep_nodes) AS n
		WHERE s.strategy = '$strategy'};

	my $agree;

	# poll_query_until() would wait too long for a wrong sum
	for (1 .. 50)
	{
		$agree = sql(qq{
			SELECT abs(asked - requests) <= leased AND abs(found - allocations) <= leased
				   AND abs(evicted - evictions) <= leased
				   AND requests - allocations = asked - found AND redirected_out = redirected_in
				   AND allocations = on_nodes AND local = local_on_nodes AND local = not_remote
			FROM ($sums) AS s (asked, requests, found, allocations, on_nodes, evicted,
							   evictions, redirected_out, redirected_in, local,
							   local_on_nodes, not_remote, leased)});
		last if $agree eq 't';
		usleep(100_000);
	}
	is($agree, 't', "$title: sums over partitions and nodes agree with the strategy's")
	  or diag($node->safe_psql('postgres', $sums, extra_params => ['-x']));
	is(impossible(0), 0, "$title: and no row contradicts itself");
	return;
}

# The number of rows that contradict themselves.  A lease that ends changes counters
# one after the other.  A view in between is off by leases that end meanwhile, which are
# the slack; a process that reads can lose the CPU for some milliseconds.
sub impossible
{
	my ($slack) = @_;
	return sql(qq{
		SELECT (SELECT count(*) FROM pg_sweep_partitions
				WHERE least(requests, redirected_out, allocations, redirected_in,
							local_allocations, evictions) < 0
				   OR redirected_out > requests + $slack
				   OR redirected_in > allocations + $slack
				   OR local_allocations > allocations + $slack
				   OR allocations - redirected_in > local_allocations + $slack
				   OR evictions > allocations + $slack
				   OR life_expectancy <= '0'
				   OR hand NOT BETWEEN first_buffer AND first_buffer + num_buffers - 1)
			 + (SELECT count(*) FROM pg_sweep_nodes
				WHERE remote_allocations < -$slack OR share_percent NOT BETWEEN 0 AND 100)});
}

sub fast_sums
{
	return sql('SELECT sum(requests), sum(allocations), sum(evictions) FROM pg_sweep_partitions');
}

#
# From the start of the server: as core counts
#
is(sql(q{SELECT count(*) FROM pg_available_extensions WHERE name LIKE 'pg\_sweep'}),
	1, 'something has allocated');
sql('CREATE EXTENSION pg_sweep; CREATE EXTENSION measure_sweep');
is(sql('SELECT count(*) FROM pg_sweep_partitions WHERE life_expectancy IS NOT NULL'),
	0, 'nothing can be said about pages before one is evicted');
churn_setup($node);
churn($node);
check_counts_agree($node, 'beginning');
check_sums('beginning');

#
# Many backends at once.  They allocate victims without reading pages, which is
# faster: a lease takes microseconds.
#
sub alloc_load
{
	my ($name, @options) = @_;

	return start_pgbench(
		$node, $name,
		'--client' => $clients,
		'--file' => write_script("$name.sql", "SELECT measure_sweep_exact(3000, 0);\n"),
		@options);
}

# watch() reads the views many times.  It returns the largest step back of a sum, and
# how far the requests came.
sql(q{
	CREATE FUNCTION watch(times int, OUT back numeric, OUT progress numeric) LANGUAGE plpgsql AS $$
	DECLARE
		last numeric[];
		now numeric[];
		first numeric;
	BEGIN
		back := 0;
		FOR i IN 1..times LOOP
			SELECT ARRAY[sum(requests), sum(allocations), sum(redirected_out),
						 sum(redirected_in), sum(local_allocations), sum(evictions)]
			INTO now FROM pg_sweep_get_partitions();
			first := coalesce(first, now[1]);
			progress := now[1] - first;
			FOR k IN 1..6 LOOP
				back := greatest(back, last[k] - now[k]);
			END LOOP;
			last := now;
		END LOOP;
	END $$});
my $load = alloc_load('watched', '--time' => 3600);
ok( $node->poll_query_until('postgres',
		"SELECT count(*) >= $clients FROM pg_sweep_backends WHERE leases > 100"),
	'eight backends allocate');
my ($back, $progress) = split /\|/, sql('SELECT * FROM watch(3000)');
cmp_ok($progress, '>', 100_000, "much happens while the sums are watched: $progress requests");
is($back, 0, 'no sum goes back');
is(impossible(100_000), 0, 'no row contradicts itself');
stop_background($load);

# Resets in the middle of all that
for my $i (1 .. 4)
{
	$load = alloc_load("reset_$i", '--time' => 3600);
	$node->poll_query_until('postgres',
		"SELECT count(*) >= $clients FROM pg_sweep_backends WHERE leases > 100");
	for (1 .. 10)
	{
		sql('SELECT pg_sweep_reset_stats()');
		# the reset may read any other process' counters milliseconds apart
		is(impossible(1_000_000_000), 0, 'after a reset under load, nothing is negative');
	}
	stop_background($load);
}
sql('SELECT pg_sweep_reset_stats()');
check_sums('after resets under load');

# Short-lived backends
$load = alloc_load('short', '--transactions' => 20, '--connect');
is(wait_for_background($load, 60), 0, 'backends come and go');
check_sums('backends that came and went');

# A reset at rest
sql('SELECT pg_sweep_reset_stats()');
cmp_ok((split /\|/, fast_sums())[0], '<', 1000, 'a reset sets the sums to zero');
check_sums('a reset at rest');

# One buffer per lease: nothing but the last allocation of each process is left out
sql('ALTER SYSTEM SET pg_sweep.batch_size = 1');
sql('SELECT pg_reload_conf()');
ok($node->poll_query_until('postgres', 'SELECT batch_size = 1 FROM pg_sweep_status'), 'leases of one buffer');
sql('SELECT pg_sweep_reset_stats()');
run_pgbench($node, 'backends with leases of one buffer', 'single', '--client' => $clients,
	'--connect', '--transactions' => 20,
	'--file' => write_script('single.sql', "SELECT measure_sweep_exact(100, 0);\n"));
check_sums('leases of one buffer');
sql('ALTER SYSTEM RESET pg_sweep.batch_size');
sql('SELECT pg_reload_conf()');

#
# Other strategies are not counted
#
sql('SELECT measure_sweep_exact(1000, 0)');
switch_to($node, 'batched');
my $before = fast_sums();
is(sql('DO $$ BEGIN PERFORM measure_sweep_exact(100000, 0); END $$; SELECT node, home, strategy FROM pg_sweep_backends WHERE pid = pg_backend_pid()'),
	'||batched', 'a backend that allocates by another strategy has no home');
is(fast_sums(), $before, 'allocations by other strategies are not counted in partitions');
switch_to($node, $strategy);
is(sql(q{SET pg_sweep.numa_debug_node = 3; DO $$ BEGIN PERFORM measure_sweep_exact(1000, 0); END $$;
		SELECT b.node, p.node, strategy FROM pg_sweep_backends b JOIN pg_sweep_partitions p ON partition = home
		WHERE pid = pg_backend_pid()}),
	"3|3|$strategy", 'a backend of a node is at home there');
check_sums('switched and back');

# A lease counts even if a switch ended it and its process then goes on by another
# strategy, or exits.  (A reset while no process has a lease of a partition.)
switch_to($node, 'batched');
sql('SELECT pg_sweep_reset_stats()');
my $session = $node->background_psql('postgres');
for my $next ($strategy, 'batched')
{
	$session->query_safe("DO \$\$ BEGIN PERFORM measure_sweep_exact(1000, 0),"
		  . " pg_sweep_set_strategy('$next'), measure_sweep_exact(1000, 0); END \$\$");
}
$session->quit;
is(sql("SELECT sum(requests) - (SELECT allocations FROM pg_sweep_strategies WHERE strategy = '$strategy')
	FROM pg_sweep_partitions WHERE 2000 <= (SELECT sum(requests) FROM pg_sweep_partitions)"),
	'0', 'leases that were dropped are counted');
switch_to($node, $strategy);

#
# The life expectancy of pages
#
$node->restart;
churn($node);
$load = alloc_load('steady', '--client' => 1, '--rate' => 20, '--time' => 4);
is(wait_for_background($load, 60), 0, 'a steady load');
my $life = qq{
	SELECT count(*) FROM (
		SELECT life_expectancy, num_buffers * active_time / p.evictions AS expected
		FROM pg_sweep_partitions AS p, pg_sweep_strategies AS s
		WHERE s.strategy = '$strategy') AS p
	WHERE life_expectancy BETWEEN expected * 0.95 AND expected * 1.05};
my $diag = qq{SELECT num_buffers, p.evictions, life_expectancy, active_time
	FROM pg_sweep_partitions AS p, pg_sweep_strategies AS s WHERE s.strategy = '$strategy'};
is(sql($life), 8, 'the life expectancy is the time that evicting a partition takes')
  or diag(sql($diag));
switch_to($node, 'batched');
my $lives = sql('SELECT life_expectancy FROM pg_sweep_partitions');
sql('SELECT pg_sleep(1)');
is(sql('SELECT life_expectancy FROM pg_sweep_partitions'), $lives,
	'under another strategy, no partition ages');
switch_to($node, $strategy);
is(sql($life), 8, 'switched back: the time under another strategy does not count')
  or diag(sql($diag));

#
# A crash
#
my $offset = -s $node->logfile;
$load = alloc_load('crash', '--time' => 3600);
ok( $node->poll_query_until('postgres',
		"SELECT count(*) >= $clients FROM pg_sweep_backends WHERE leases > 100"),
	'eight backends allocate again');
my $victim = sql(q{SELECT pid FROM pg_sweep_backends WHERE leases > 100 LIMIT 1});
kill('KILL', $victim) or die "could not kill $victim: $!";
isnt(wait_for_background($load, 60), 0, 'the load ends when a backend is killed');
ok(wait_until_back($node), 'the server comes back');
like(slurp_file($node->logfile, $offset), qr/redo is not required|redo starts at/, 'by crash recovery');
is(sql('SELECT strategy, partitions, set_by FROM pg_sweep_status'),
	"$strategy|8|start", 'with its partitions');
cmp_ok((split /\|/, fast_sums())[0], '<', 5000, 'which count from zero');
is(sql('SELECT max(laps) < 1 FROM pg_sweep_partitions'), 't', 'and go their first lap');
churn($node);
check_counts_agree($node, 'crash');
check_sums('crash');

$node->stop;
done_testing();
