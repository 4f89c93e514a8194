# The number of partitions, and the strategy that "auto" stands for, by nodes, CPUs
# and the size of the pool; and what pg_sweep_status says about both.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

my $node = sweep_node('main', conf => "pg_sweep.strategy = auto\nmax_connections = 10\n");
my $conf = slurp_file($node->data_dir . '/postgresql.conf');
my $running = 0;

sub sql { return $node->safe_psql('postgres', $_[0]); }

# Start with other parameters
sub configure
{
	my (%settings) = @_;

	unlink $node->data_dir . '/postgresql.conf';
	$node->append_conf('postgresql.conf', $conf);
	$node->append_conf('postgresql.conf', "$_ = $settings{$_}") for sort keys %settings;
	$running ? $node->restart : $node->start;
	sql('CREATE EXTENSION pg_sweep') unless $running++;
	return;
}

#
# Which strategy auto stands for, and why
#
sub auto
{
	return sql('SELECT configured, strategy, reason FROM pg_sweep_status');
}

# This machine, whatever its nodes and CPUs are
configure(shared_buffers => 2048);
my ($nodes, $cpus) = split /\|/,
  sql('SELECT (SELECT nodes FROM pg_sweep_status), sum(cpus) FROM pg_sweep_nodes');
my $here =
    $nodes > 1 ? "partitioned|partitioned: $nodes NUMA nodes"
  : $cpus > 64 ? "partitioned|partitioned: one NUMA node, but $cpus CPUs (more than 64)"
  : "batched|batched: one NUMA node, and $cpus CPUs (no more than 64)";
is(auto(), "auto|$here", 'auto on this machine, and why');

configure(shared_buffers => 2048, 'pg_sweep.numa_debug_nodes' => 4);
my $four = 'partitioned|partitioned: 4 NUMA nodes (emulated)';
is(auto(), "auto|$four", 'auto with four nodes, and why');

# Once more, by the function and by a reload
is(sql(q{SELECT pg_sweep_set_strategy('stock')}), 'partitioned', 'the function returns the choice of auto');
is(auto(), 'auto|stock|', 'a strategy that was named has no reason');
is(sql(q{SELECT pg_sweep_set_strategy('AUTO')}), 'stock', 'auto can be asked for, in any case');
is(auto(), "auto|$four", 'and decides once more');
is(sql(q{SELECT pg_sweep_set_strategy('partitioned')}), 'partitioned', 'its choice, by name');
is(auto(), 'auto|partitioned|', 'has no reason either');

# A reload can change what is configured, and back
for my $to ([ 'stock', 'stock|stock|' ], [ 'auto', "auto|$four" ])
{
	my ($strategy, $expected) = @$to;

	$node->append_conf('postgresql.conf', "pg_sweep.strategy = $strategy");
	$node->reload;
	ok($node->poll_query_until('postgres', "SELECT configured = '$strategy' FROM pg_sweep_status"),
		"a reload to $strategy");
	is(auto(), $expected, "which $strategy stands for");
}

#
# How many partitions there are
#
sub check_partitions
{
	my ($wish, $debug_nodes, $buffers, $expected, $strategy, $why) = @_;

	configure('pg_sweep.partitions' => $wish, 'pg_sweep.numa_debug_nodes' => $debug_nodes,
		shared_buffers => $buffers);
	is(sql('SELECT partitions_configured, partitions, strategy FROM pg_sweep_status'),
		"$wish|$expected|$strategy",
		"pg_sweep.partitions = $wish, $debug_nodes nodes, $buffers buffers: $why");
	is(sql(q{
		SELECT count(*), sum(num_buffers), min(first_buffer),
			   bool_and(first_buffer = next OR next IS NULL),
			   max(num_buffers) - min(num_buffers) <= 64,
			   max(partition) = count(*) - 1
		FROM (SELECT *, lag(first_buffer + num_buffers) OVER (ORDER BY partition) AS next
			  FROM pg_sweep_partitions) AS p}),
		"$expected|$buffers|0|t|t|t", 'they are the pool, one after the other, of nearly one size');
	is(sql(q{
		SELECT count(DISTINCT partitions) FILTER (WHERE partitions > 0),
			   sum(partitions), sum(buffers)
		FROM pg_sweep_nodes}),
		"1|$expected|$buffers", 'and as many on each node that has any');

	# They work, whatever auto decides
	switch_to($node, 'partitioned');
	is(sql(q{
		CREATE TABLE t AS SELECT i, repeat('x', 900) AS pad FROM generate_series(1, 3000) i;
		SELECT count(*), sum(length(pad)) FROM t;
		DROP TABLE t}),
		'3000|2700000', 'work goes on with them');
	cmp_ok(sql('SELECT sum(allocations) FROM pg_sweep_partitions'), '>', 300, 'which allocate');
	return;
}

check_partitions(1, 1, 2048, 1, 'batched', 'one');
is(auto(), 'auto|partitioned|', 'one partition can be asked for');
is(sql(q{SELECT pg_sweep_set_strategy('auto'); SELECT reason FROM pg_sweep_status}),
	"partitioned\nbatched: there is only one partition", 'but auto sees no use in it');
check_partitions(1, 4, 2048, 4, 'partitioned', 'at least one per node');
check_partitions(6, 4, 2048, 8, 'partitioned', 'as many on each node');
check_partitions(64, 4, 2048, 64, 'partitioned', 'the most there can be');
check_partitions(64, 3, 2048, 63, 'partitioned', 'the most that three nodes can have');
check_partitions(64, 4, 16, 1, 'batched', 'a pool of 16 buffers has one');
check_partitions(64, 4, 128, 8, 'partitioned', 'at least 16 buffers each');
check_partitions(64, 3, 128, 6, 'partitioned', 'at least 16 buffers each, as many on each node');
check_partitions(64, 64, 128, 8, 'partitioned', 'some nodes have no partition');
check_partitions(0, 4, 128, 1, 'batched', 'too small a pool');
# with more CPUs there are more partitions
check_partitions(0, 3, 2048, 6, 'partitioned', 'at least four, as many on each node')
  if $cpus <= 72;

#
# The emulated node of a session
#
configure(shared_buffers => 2048, 'pg_sweep.numa_debug_nodes' => 4);
for my $case ([ 0, 0 ], [ 3, 3 ], [ 4, 0 ], [ 63, 3 ])
{
	my ($asked, $got) = @$case;
	is(sql(qq{
		SET pg_sweep.numa_debug_node = $asked;
		CREATE TEMP TABLE t AS SELECT repeat('x', 900) FROM generate_series(1, 3000) i;
		CREATE TABLE u AS SELECT repeat('x', 900) FROM generate_series(1, 3000) i;
		DROP TABLE u;
		SELECT node FROM pg_sweep_backends WHERE pid = pg_backend_pid()}),
		$got, "pg_sweep.numa_debug_node = $asked of 4 nodes is node $got");
}
my ($status, undef, $error) = $node->psql('postgres', 'SET pg_sweep.numa_debug_node = 64');
isnt($status, 0, 'more nodes than there can be');
like($error, qr/64 is outside the valid range for parameter "pg_sweep.numa_debug_node" \(-1 \.\. 63\)/,
	'are refused');

$node->stop;
done_testing();
