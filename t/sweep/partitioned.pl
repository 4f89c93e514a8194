# Strategy "partitioned" on emulated NUMA nodes: one busy backend gets the whole
# pool, whatever the background writer does.  What is too much for a node goes to the
# nearest with room, and what is not stays.  Without balance, each backend allocates
# at home.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

# The strategy: another file gives another
my $strategy = shift(@ARGV) // 'partitioned';

my $node = sweep_node('main', conf => qq{
# so large that partitions are nearly equal; hardly any of it is touched
shared_buffers = 256MB
pg_sweep.strategy = $strategy
pg_sweep.numa_debug_nodes = 4
pg_sweep.partitions = 8
checkpoint_timeout = 1h
});
$node->start;
require_modules($node, 'measure_sweep');
$node->safe_psql('postgres', 'CREATE EXTENSION pg_sweep; CREATE EXTENSION measure_sweep');

sub sql { return $node->safe_psql('postgres', $_[0]); }

# Allocate on a node, in a new session
sub allocate_on
{
	my ($numa_node, $allocations) = @_;
	sql("SET pg_sweep.numa_debug_node = $numa_node; SELECT measure_sweep_exact($allocations, 0)");
	return;
}

# The largest relative deviation of a partition's allocations since the reset from
# its fair share
sub unfairness
{
	return sql(q{
		SELECT round(max(abs(allocations / total / (num_buffers / buffers) - 1)), 4)
		FROM (SELECT *, sum(allocations) OVER () AS total, sum(num_buffers::numeric) OVER () AS buffers
			  FROM pg_sweep_partitions) AS p});
}

sub check_laps
{
	my ($title) = @_;
	my $spread = sql('SELECT max(laps) - min(laps) FROM pg_sweep_partitions');

	cmp_ok($spread, '<=', 0.25, "$title: hands are $spread laps apart");
	return;
}

sub check_flows
{
	my ($title) = @_;

	is(sql(q{
		SELECT count(*) FROM pg_sweep_partitions AS p
		LEFT JOIN (SELECT to_partition AS partition, sum(allocations) AS served
				   FROM pg_sweep_flows GROUP BY 1) AS s USING (partition)
		LEFT JOIN (SELECT from_partition AS partition, sum(allocations) AS found
				   FROM pg_sweep_flows GROUP BY 1) AS f USING (partition)
		LEFT JOIN (SELECT to_partition AS partition, sum(allocations) AS local
				   FROM pg_sweep_flows WHERE from_node = to_node GROUP BY 1) AS l USING (partition)
		WHERE coalesce(served, 0) <> allocations OR coalesce(found, 0) <> requests
		   OR coalesce(local, 0) <> local_allocations}),
		0, "$title: flows add up to what partitions have counted");
	is(sql(q{
		SELECT count(*) FROM pg_sweep_flows AS f
		JOIN pg_sweep_partitions AS a ON a.partition = from_partition
		JOIN pg_sweep_partitions AS b ON b.partition = to_partition
		WHERE from_node <> a.node OR to_node <> b.node
		   OR distance <> CASE WHEN from_node = to_node THEN 10
							   WHEN from_node / 2 = to_node / 2 THEN 12 ELSE 21 END}),
		0, "$title: nodes and distances are right");
	is(sql(q{
		SELECT count(*) FROM (
			SELECT from_partition <> to_partition AS away, distance,
				   lag(from_partition <> to_partition) OVER row AS away_before,
				   lag(distance) OVER row AS distance_before
			FROM pg_sweep_get_flows() WITH ORDINALITY
			WINDOW row AS (PARTITION BY from_partition ORDER BY ordinality)) AS f
		WHERE away_before > away OR distance_before > distance}),
		0, "$title: itself first, then the nearest");
	return;
}

#
# One busy backend gets the whole pool
#
is(sql('SELECT count(*), sum(num_buffers) FROM pg_sweep_partitions'),
	'8|32768', 'eight partitions are the pool');
for my $numa_node (0 .. 3)
{
	sql('SELECT pg_sweep_reset_stats()');
	allocate_on($numa_node, 1_000_000);
	cmp_ok(unfairness(), '<', 0.03,
		"a backend on node $numa_node gets all: off by " . unfairness());
	is(sql('SELECT count(*), count(DISTINCT from_partition) FROM pg_sweep_flows WHERE allocations > 1000'),
		'8|1', 'and each partition has served it');
	check_laps("a backend on node $numa_node");
}
check_flows('one busy backend');
sql('SELECT pg_sweep_reset_stats()');
is(sql('SELECT count(*) FROM pg_sweep_flows'), 0, 'a reset is for flows, too');

# The background writer has no part in it
my $writer = sql(q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'background writer'});
kill('STOP', $writer) or die "could not stop $writer: $!";
allocate_on(1, 2_000_000);
my $stopped = unfairness();
kill('CONT', $writer) or die "could not continue $writer: $!";
cmp_ok($stopped, '<', 0.03, "with the background writer stopped, too: off by $stopped");

#
# A load of several nodes
#
my $session;

# Thousands of allocations for each node.  One session visits the nodes in short turns,
# so no hand gets far ahead by that alone.  The session takes the rest of its lease
# along.  The number of turns is odd: a round of whole leases would favour the same
# node each time.
sub load
{
	my (@thousands) = @_;

	$session->query_safe(
		join "\n",
		'DO $$ BEGIN FOR i IN 1..243 LOOP',
		(
			map {
				"PERFORM set_config('pg_sweep.numa_debug_node', '$_', false);"
				  . "PERFORM measure_sweep_exact($thousands[$_] * 1000 / 243, 0);"
			} grep { $thousands[$_] > 0 } 0 .. $#thousands),
		'END LOOP; END $$');
	return;
}

# The part of a node's requests that another node has served
sub flow
{
	my ($from, $to) = @_;
	return sql(qq{
		SELECT coalesce(round(sum(allocations) FILTER (WHERE to_node = $to) / sum(allocations), 3), 0)
		FROM pg_sweep_flows WHERE from_node = $from});
}

sub redirected
{
	return sql('SELECT round(100.0 * sum(redirected_out) / sum(requests), 2) FROM pg_sweep_partitions');
}

# Within the socket, as there is room on the nearer node
$session = $node->background_psql('postgres');
load(400, 0, 200, 200);
sql('SELECT pg_sweep_reset_stats()');
load(400, 0, 200, 200);
check_flows('a node with twice its share');
check_laps('a node with twice its share');
cmp_ok(abs(flow(0, 0) - 0.5), '<', 0.03, 'it keeps half: ' . flow(0, 0));
cmp_ok(abs(flow(0, 1) - 0.5), '<', 0.03, 'and the nearer node gets the other: ' . flow(0, 1));
# each turn is a burst of a fifth of a partition
cmp_ok(flow(2, 2) + flow(3, 3), '>', 1.9, 'the others keep theirs');
$session->quit;

#
# 900,000 here and 100,000 there, then half of it each
#
$node->append_conf('postgresql.conf', "pg_sweep.numa_debug_nodes = 2\npg_sweep.partitions = 2\n");
$node->restart;
$session = $node->background_psql('postgres');

load(500, 500);
cmp_ok(redirected(), '<', 1, '500k each: all but ' . redirected() . ' % is served at home');
load(900, 100);
sql('SELECT pg_sweep_reset_stats()');
load(900, 100);
cmp_ok(unfairness(), '<', 0.01, '900k and 100k: each partition serves its share: off by ' . unfairness());
cmp_ok(abs(flow(0, 1) * 900 / 400 - 1), '<', 0.03, 'the excess goes to the other: ' . flow(0, 1));
cmp_ok(flow(1, 1), '>', 0.97, 'which keeps its own: ' . flow(1, 1));
sql('SELECT pg_sweep_reset_stats()');
load(500, 500);
cmp_ok(redirected(), '<', 2, '500k each, at once: all but ' . redirected() . ' % is served at home');
check_laps('500k each');

#
# Without balance
#
load(900, 100);
$node->append_conf('postgresql.conf', 'pg_sweep.balance = off');
bgwriter_cycle($node) for 1 .. 2;	# the first may be one of before
$session->query_safe('SELECT measure_sweep_exact(1000, 0)');	# uses up former leases
sql('SELECT pg_sweep_reset_stats()');
load(900, 50) for 1 .. 2;
is(sql(q{
	SELECT sum(redirected_out), sum(redirected_in),
		   bool_and(allocations = requests), min(allocations) FILTER (WHERE partition = 0) > 1790000
	FROM pg_sweep_partitions}),
	'0|0|t|t', 'each backend allocates at home, however busy'); # except rests of leases
cmp_ok(sql('SELECT max(laps) - min(laps) FROM pg_sweep_partitions'),
	'>', 50, 'and hands go their ways');

# The one that was idle must not serve all until it has caught up
$node->append_conf('postgresql.conf', 'pg_sweep.balance = on');
bgwriter_cycle($node) for 1 .. 2;
sql('SELECT pg_sweep_reset_stats()');
load(500, 500);
cmp_ok(redirected(), '<', 2, 'pg_sweep.balance = on: it begins where hands are: ' . redirected() . ' % elsewhere');
check_laps('balance again');
load(900, 100);
cmp_ok(flow(0, 1), '>', 0.2, 'and the excess goes to the other again: ' . flow(0, 1));

$session->quit;
$node->stop;
done_testing();
