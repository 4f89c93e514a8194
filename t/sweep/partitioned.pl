# Strategy "partitioned" on emulated NUMA nodes: one busy backend gets the whole
# pool, whatever the background writer does.  The plan follows the load.  Without
# balance, each backend allocates at home.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

my $node = sweep_node('main', conf => qq{
# so large that partitions are nearly equal; hardly any of it is touched
shared_buffers = 256MB
pg_sweep.strategy = partitioned
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

sub check_rows
{
	my ($title) = @_;

	is(sql(q{
		SELECT string_agg(from_partition::text, ' ' ORDER BY from_partition)
		FROM (SELECT from_partition FROM pg_sweep_flows
			  GROUP BY from_partition HAVING sum(weight) = 1 AND min(weight) > 0) AS f}),
		sql(q{SELECT string_agg(partition::text, ' ' ORDER BY partition) FROM pg_sweep_partitions}),
		"$title: all weights are above zero, and each partition's are 1 together");
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

sub is_identity
{
	return sql(q{
		SELECT bool_and(from_partition = to_partition AND weight = 1)
			   AND count(*) = (SELECT count(*) FROM pg_sweep_partitions)
		FROM pg_sweep_flows}) eq 't';
}

#
# One busy backend gets the whole pool
#
is(sql('SELECT count(*), sum(num_buffers) FROM pg_sweep_partitions'),
	'8|32768', 'eight partitions are the pool');

# A background writer that makes plans meanwhile
sql('SELECT pg_sweep_reset_stats()');
sql('SET pg_sweep.numa_debug_node = 2; SELECT measure_sweep_run(0, NULL, 1500)');
cmp_ok(unfairness(), '<', 0.03,
	'each partition gives its share to one backend, with plans: off by ' . unfairness());
cmp_ok(sql('SELECT count(*) FROM pg_sweep_flows WHERE from_node = 2 AND from_partition <> to_partition'),
	'>=', 7, 'and a plan says so');
check_rows('one busy backend');

# One that sleeps long; the allocations of this test itself do not wake it in time
$node->append_conf('postgresql.conf', "bgwriter_delay = 10s\nbgwriter_lru_maxpages = 0\n");
$node->restart;
for my $numa_node (0 .. 3)
{
	sql('SELECT pg_sweep_reset_stats()');
	allocate_on($numa_node, 1_000_000);
	cmp_ok(unfairness(), '<', 0.03,
		"before there is a plan, a backend on node $numa_node gets all: off by " . unfairness());
}

# One that is stopped
my $writer = sql(q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'background writer'});
kill('STOP', $writer) or die "could not stop $writer: $!";
sql('SELECT pg_sweep_reset_stats()');
allocate_on(1, 2_000_000);
my $stopped = unfairness();
kill('CONT', $writer) or die "could not continue $writer: $!";
cmp_ok($stopped, '<', 0.03, "with the background writer stopped, too: off by $stopped");

#
# The plan follows the load, cycle by cycle
#
my $session;

# The load of one cycle, in thousands for each node.  One session visits the nodes in
# short turns, so no hand gets far ahead by that alone.  The session takes the rest
# of its lease along.  The number of turns is odd: a round of whole leases would favour
# the same node each time.
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
	bgwriter_cycle($node);
	return;
}

# The part of a node's requests that the plan sends to another node
sub flow
{
	my ($from, $to) = @_;
	return sql(qq{
		SELECT round((sum(weight * requests) FILTER (WHERE to_node = $to)
					  / sum(weight * requests))::numeric, 3)
		FROM pg_sweep_flows JOIN pg_sweep_partitions ON partition = from_partition
		WHERE from_node = $from});
}

# Within the socket, as there is room on the nearer node.  The cycles are enough to
# forget the load before.
$session = $node->background_psql('postgres');
load(400, 0, 200, 200) for 1 .. 10;
sql('SELECT pg_sweep_reset_stats()');
load(400, 0, 200, 200);
check_rows('a node with twice its share');
cmp_ok(abs(flow(0, 0) - 0.5), '<', 0.02, 'it keeps half: ' . flow(0, 0));
cmp_ok(abs(flow(0, 1) - 0.5), '<', 0.02, 'and the nearer node gets the other: ' . flow(0, 1));
cmp_ok(flow(2, 2) + flow(3, 3), '>', 1.96, 'the others keep theirs');
$session->quit;

#
# 900,000 here and 100,000 there, then half of it each
#
$node->append_conf('postgresql.conf', "pg_sweep.numa_debug_nodes = 2\npg_sweep.partitions = 2\n");
$node->restart;
$session = $node->background_psql('postgres');

ok(is_identity(), 'a server starts with the identity');
load(900, 100) for 1 .. 5;
sql('SELECT pg_sweep_reset_stats()');
load(900, 100);
cmp_ok(unfairness(), '<', 0.1, '900k and 100k: allocations are shared fairly after five cycles: off by '
	  . unfairness());
cmp_ok(abs(flow(0, 1) * 900 / 400 - 1), '<', 0.1, 'the plan sends on the excess: ' . flow(0, 1));
cmp_ok(sql('SELECT 100.0 * redirected_out / requests FROM pg_sweep_partitions WHERE partition = 1'),
	'<', 10, 'the partition with fewer requests keeps nearly all of them');

my $cycles = 0;
do { load(500, 500) } while (++$cycles < 10 && !is_identity());
ok(is_identity(), "500k each: the identity after $cycles cycles");
sql('SELECT pg_sweep_reset_stats()');
load(500, 500);
cmp_ok(sql('SELECT 100.0 * sum(redirected_out) / sum(requests) FROM pg_sweep_partitions'),
	'<', 5, 'and requests are served at home');

#
# Without balance
#
load(900, 100);
ok(!is_identity(), 'there is a plan again');
$node->append_conf('postgresql.conf', 'pg_sweep.balance = off');
bgwriter_cycle($node);
ok(is_identity(), 'pg_sweep.balance = off: the plan is gone');
$session->query_safe('SELECT measure_sweep_exact(1000, 0)');	# uses up former leases
sql('SELECT pg_sweep_reset_stats()');
load(150, 50) for 1 .. 2;
ok(is_identity(), 'and no other is made');
is(sql(q{
	SELECT sum(redirected_out), sum(redirected_in),
		   bool_and(allocations = requests), min(allocations) FILTER (WHERE partition = 0) > 290000
	FROM pg_sweep_partitions}),
	'0|0|t|t', 'each backend allocates at home, however busy'); # except rests of leases
$node->append_conf('postgresql.conf', 'pg_sweep.balance = on');
bgwriter_cycle($node);
load(900, 100) for 1 .. 2;
cmp_ok(flow(0, 1), '>', 0.3, 'and pg_sweep.balance = on brings it back: ' . flow(0, 1));

$session->quit;
$node->stop;
done_testing();
