# On real nodes: pg_sweep_numa_hits has the node that the process runs on, and the
# node where the kernel has the page, with and without placement.

use strict;
use warnings FATAL => 'all';

use NumaTest;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

my $nodes = vm_nodes();
my ($server, $session, $pid);

# A server, and a session that does it all
sub start_server
{
	my ($name, $placement) = @_;

	$server = numa_server($name, conf => qq{
pg_sweep.strategy = partitioned
pg_sweep.numa_placement = $placement
pg_sweep.numa_sample_hits = 5
max_parallel_workers_per_gather = 0
});
	require_modules($server, 'test_hits');
	$server->start;
	$server->safe_psql('postgres', 'CREATE EXTENSION pg_sweep; CREATE EXTENSION test_hits');
	$session = $server->background_psql('postgres');
	$pid = query('SELECT pg_backend_pid()');
	return;
}

sub query { return $session->query_safe($_[0]) =~ s/\n+\z//r; }

sub run_on_node
{
	my ($node) = @_;

	system_or_bail('taskset', '--cpu-list', '--pid', node_file($node, 'cpulist'), $pid);
	return;
}

sub create_table
{
	my ($name, $node) = @_;

	run_on_node($node);
	query(qq{CREATE TABLE $name AS SELECT i, repeat('x', 900) AS pad FROM generate_series(1, 3000) i});
	return;
}

sub end_server
{
	$session->quit;
	$server->stop;
	return;
}

# ---- each partition on its node ----

start_server('placed', 'partition');
create_table('near', 0);
create_table('far', $nodes - 1);

# The shares of all hits of a loop, and those of the sample
sub exact_shares
{
	my ($times) = @_;

	return query(qq{
SELECT node, 100 * sum(hits) / sum(sum(hits)) OVER ()
  FROM test_hits_count(\$\$SELECT test_hits_loop('near', 'far', 3, $times)\$\$)
  JOIN pg_sweep_get_partitions() ON buffer >= first_buffer AND buffer < first_buffer + num_buffers
 GROUP BY 1});
}

sub sampled_shares
{
	my ($at) = @_;

	return query("SELECT to_node, share_percent, error_percent, sampled, distance FROM pg_sweep_numa_hits WHERE from_node = $at");
}

# A statement that is new to a session has hits in catalogs, which the sample has and
# the count has not.
exact_shares(10);
sampled_shares(0);

foreach my $at (0, 1)
{
	run_on_node($at);
	query('SELECT pg_sweep_reset_stats()');
	my %exact = map { split /\|/ } split /\n/, exact_shares(10000);
	my $rows = sampled_shares($at);
	my ($sum, $local) = (0, 0);
	note($rows);
	foreach (split /\n/, $rows)
	{
		my ($to, $share, $error, $sampled, $distance) = split /\|/;
		$sum += $sampled;
		is($distance, expected_distance($at, $to), "from node $at to $to: distance");
		cmp_ok(abs($share - ($exact{$to} // 0)), '<=', 3,
			sprintf 'from node %d to %d: share %.2f +- %.2f, exactly %.2f', $at, $to, $share, $error, $exact{$to} // 0);
	}
	cmp_ok($sum, '>=', 6000, "from node $at: $sum hits are sampled");
	cmp_ok($exact{0}, '>', 50, "from node $at: most pages are on node 0");
}
is(query('SELECT count(*) FROM pg_sweep_numa_hits WHERE to_node IS NULL'), 0, 'the node of each page is known');
is( query(q{SELECT count(*) FROM pg_sweep_numa_residence WHERE what = 'blocks' AND node <> wanted_node}),
	0, 'the pages are where the partitions are');
end_server();

# ---- page by page on all nodes ----

start_server('interleaved', 'interleave');
create_table('near', 0);
query('SELECT pg_sweep_reset_stats()');
query(q{SELECT test_hits_loop('near', 'near', 1, 10000)});
my %shares = map { split /\|/ } split /\n/, query('SELECT to_node, share_percent FROM pg_sweep_numa_hits WHERE from_node = 0');
note(join ', ', map { "$_: $shares{$_}" } sort keys %shares);
# huge pages: the table has no more than two of them
cmp_ok(scalar keys %shares, '>=', vm_huge() ? 2 : $nodes, 'interleaved: pages are on several nodes');
cmp_ok(abs($shares{$_} - 100 / $nodes), '<=', 3, "interleaved: a fair share of node $_") foreach vm_huge() ? () : sort keys %shares;
end_server();

done_testing();
