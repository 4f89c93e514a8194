# Partitions of 18 and 19 buffers with probation: no window, leases of one slot, leases of
# more processes than a partition has slots for.  All partitions serve, under load and
# while it is switched, and nothing is lost.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use StressTest;
use SweepTest;
use Test::More;

my $node = sweep_node('main', conf => qq{
shared_buffers = 300
pg_sweep.partitions = 16
pg_sweep.numa_debug_nodes = 4
pg_sweep.strategy = clock2q_partitioned
max_connections = 40
checkpoint_timeout = 30s
});
$node->start;
sub sql { return $node->safe_psql('postgres', $_[0]); }
sql('CREATE EXTENSION pg_sweep');
is(sql('SELECT count(*), min(num_buffers), max(num_buffers), sum(num_buffers) FROM pg_sweep_partitions'),
	'16|18|19|300', 'the pool has partitions of two sizes');
init_pgbench($node, 2);

my $switching = start_switching($node, 'switching', 30, 5);
my $load = start_pgbench($node, 'switched', '--client' => 16, '--time' => 5);
is(wait_for_background($load, 60), 0, 'a load while it is switched') or diag(background_stderr($load));
is(wait_for_background($switching, 60), 0, 'by all strategies');
switch_to($node, 'clock2q_partitioned');
sql('SELECT pg_sweep_reset_stats()');
run_pgbench($node, 'more processes than slots of a partition', 'many', '--client' => 24, '--transactions' => 200);
run_pgbench($node, 'processes that come and go', 'connecting', '--client' => 4, '--transactions' => 30, '--connect', '--select-only');

is(sql('SELECT count(*) FROM pg_sweep_partitions WHERE evictions > 5'), 16, 'pages leave from each partition')
  or diag(sql('TABLE pg_sweep_partitions'));
cmp_ok(sql('SELECT max(laps) - min(laps) FROM pg_sweep_partitions'), '<', 3, 'no hand is far ahead');
is(sql(q{
SELECT window_length, least_length, judged = stayed + victims_probation,
       victims_probation + victims_main = allocations - failed, victims_probation > 0, windows
  FROM pg_sweep_clock2q JOIN pg_sweep_strategies USING (strategy) WHERE strategy = 'clock2q_partitioned'}),
	'0|16|t|t|t|0', 'a slot is judged without a window');
check_balances($node, 'afterwards');
is_deeply([ unexpected_log_lines($node, 0) ], [], 'nothing in the log');
$node->stop;
done_testing();
