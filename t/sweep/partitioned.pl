# Strategy "partitioned" on pretended NUMA nodes: a busy backend has the whole
# pool, whatever the background writer does; the plan follows the load; and
# without balance, everybody stays at home.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

my $node = sweep_node(
	'main', conf => qq{
# so large that partitions are nearly equal; next to nothing of it is touched
shared_buffers = 256MB
pg_sweep.strategy = partitioned
pg_sweep.numa_debug_nodes = 4
pg_sweep.partitions = 8
checkpoint_timeout = 1h
});
$node->start;
plan skip_all => 'test/sweep/measure_sweep is not installed in this server'
  unless installed_module($node, 'measure_sweep');
$node->safe_psql('postgres', 'CREATE EXTENSION pg_sweep; CREATE EXTENSION measure_sweep');

sub sql
{
	my ($sql) = @_;
	return $node->safe_psql('postgres', $sql);
}

# Allocate on a node, in a session of its own
sub allocate_on
{
	my ($numa_node, $allocations) = @_;
	sql("SET pg_sweep.numa_debug_node = $numa_node; SELECT measure_sweep_exact($allocations, 0)");
	return;
}

# By how much the partitions' allocations since a reset are off their fair
# shares, at most, in parts of those
sub unfairness
{
	return sql(q{
		SELECT round(max(abs(allocations / total / (num_buffers / buffers) - 1)), 4)
		FROM (SELECT *, sum(allocations) OVER () AS total, sum(num_buffers::numeric) OVER () AS buffers
			  FROM pg_sweep_partitions) AS p});
}

# Wait until the background writer has made a cycle that began after now: only a
# cycle reports allocations.  It may be asleep for long.
sub cycle
{
	my $seen = sql('SELECT buffers_alloc FROM pg_stat_bgwriter');

	sql('SELECT measure_sweep_exact(1, 0)');
	sql(q{SELECT pg_reload_conf()});
	$node->poll_query_until('postgres',
		"SELECT buffers_alloc > $seen FROM pg_stat_bgwriter")
	  or die 'the background writer makes no cycle';
	return;
}

sub check_rows
{
	my ($title) = @_;

	is( sql(q{
		SELECT string_agg(from_partition::text, ' ' ORDER BY from_partition)
		FROM (SELECT from_partition FROM pg_sweep_flows
			  GROUP BY from_partition HAVING sum(weight) = 1 AND min(weight) > 0) AS f}),
		sql(q{SELECT string_agg(partition::text, ' ' ORDER BY partition) FROM pg_sweep_partitions}),
		"$title: all weights are above zero, and each partition's are 1 together");
	is( sql(q{
		SELECT count(*) FROM pg_sweep_flows AS f
		JOIN pg_sweep_partitions AS a ON a.partition = from_partition
		JOIN pg_sweep_partitions AS b ON b.partition = to_partition
		WHERE from_node <> a.node OR to_node <> b.node
		   OR distance <> CASE WHEN from_node = to_node THEN 10
							   WHEN from_node / 2 = to_node / 2 THEN 12 ELSE 21 END}),
		0, "$title: nodes and distances are right");
	is( sql(q{
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
# One busy backend has the whole pool
#
is(sql('SELECT count(*), sum(num_buffers) FROM pg_sweep_partitions'),
	'8|32768', 'eight partitions are the pool');

# with a background writer that makes plans meanwhile
sql('SELECT pg_sweep_reset_stats()');
sql('SET pg_sweep.numa_debug_node = 2; SELECT measure_sweep_run(0, NULL, 1500)');
cmp_ok(unfairness(), '<', 0.03,
	'each partition gives its share to one backend, with plans: off by ' . unfairness());
cmp_ok(sql('SELECT count(*) FROM pg_sweep_flows WHERE from_node = 2 AND from_partition <> to_partition'),
	'>=', 7, 'and a plan says so');
check_rows('one busy backend');

# One that is long asleep; even allocations of this test's own are few enough
# not to wake it in time.
$node->append_conf('postgresql.conf', "bgwriter_delay = 10s\nbgwriter_lru_maxpages = 0\n");
$node->restart;
for my $numa_node (0 .. 3)
{
	sql('SELECT pg_sweep_reset_stats()');
	allocate_on($numa_node, 1_000_000);
	cmp_ok(unfairness(), '<', 0.03,
		"before there is a plan, a backend on node $numa_node gets all: off by " . unfairness());
}

# One that does nothing at all
my $writer = sql(q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'background writer'});
kill('STOP', $writer) or die "could not stop $writer: $!";
sql('SELECT pg_sweep_reset_stats()');
allocate_on(1, 2_000_000);
my $stopped = unfairness();
kill('CONT', $writer) or die "could not continue $writer: $!";
cmp_ok($stopped, '<', 0.03, "with the background writer stopped, too: off by $stopped");

#
# The plan follows the load.  Its cycles are made one by one.
#
my $session;

# A load of one cycle, in thousands for each node.  One session goes round the
# nodes in turns so short that no hand gets far ahead by that alone.  What is left
# of a lease goes with it: an odd number of turns, so that a round is not a whole
# number of leases, which would favour the same node each time.
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
	cycle();
	return;
}

# Where the requests of a node go by the plan, in parts
sub flow
{
	my ($from, $to) = @_;
	return sql(qq{
		SELECT round((sum(weight * requests) FILTER (WHERE to_node = $to)
					  / sum(weight * requests))::numeric, 3)
		FROM pg_sweep_flows JOIN pg_sweep_partitions ON partition = from_partition
		WHERE from_node = $from});
}

# Within the socket, where there is room on the nearer node.  Enough cycles for
# what was before to be forgotten.
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
$node->append_conf('postgresql.conf',
	"pg_sweep.numa_debug_nodes = 2\npg_sweep.partitions = 2\n");
$node->restart;
$session = $node->background_psql('postgres');

ok(is_identity(), 'a server starts with everybody at home');
load(900, 100) for 1 .. 5;
sql('SELECT pg_sweep_reset_stats()');
load(900, 100);
cmp_ok(unfairness(), '<', 0.1, '900k and 100k: allocations are shared fairly after five cycles: off by '
	  . unfairness());
cmp_ok(abs(flow(0, 1) * 900 / 400 - 1), '<', 0.1, 'the plan sends on what is too much: ' . flow(0, 1));
cmp_ok(sql('SELECT 100.0 * redirected_out / requests FROM pg_sweep_partitions WHERE partition = 1'),
	'<', 10, 'who is asked for less keeps nearly all of it');

my $cycles = 0;
do { load(500, 500) } while (++$cycles < 10 && !is_identity());
ok(is_identity(), "500k each: everybody stays at home after $cycles cycles");
sql('SELECT pg_sweep_reset_stats()');
load(500, 500);
cmp_ok(sql('SELECT 100.0 * sum(redirected_out) / sum(requests) FROM pg_sweep_partitions'),
	'<', 5, 'and does so');

#
# Without balance
#
load(900, 100);
ok(!is_identity(), 'there is a plan again');
$node->append_conf('postgresql.conf', 'pg_sweep.balance = off');
cycle();
ok(is_identity(), 'pg_sweep.balance = off: the plan is gone');
$session->query_safe('SELECT measure_sweep_exact(1000, 0)');	# leases of before
sql('SELECT pg_sweep_reset_stats()');
load(150, 50) for 1 .. 2;
ok(is_identity(), 'and no other is made');
is( sql(q{
	SELECT sum(redirected_out), sum(redirected_in),
		   bool_and(allocations = requests), min(allocations) FILTER (WHERE partition = 0) > 290000
	FROM pg_sweep_partitions}),
	'0|0|t|t', 'everybody allocates at home, however busy'); # but for rests of leases
$node->append_conf('postgresql.conf', 'pg_sweep.balance = on');
cycle();
load(900, 100) for 1 .. 2;
cmp_ok(flow(0, 1), '>', 0.3, 'and pg_sweep.balance = on brings it back: ' . flow(0, 1));

$session->quit;
$node->stop;
done_testing();
