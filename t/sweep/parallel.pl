
# Parallel workers allocate with the active strategy, also while it is switched.
# Their counts stay when they are gone.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

# The leader only waits: workers read everything
my $node = sweep_node('main', conf => qq{
shared_buffers = 8MB
max_worker_processes = 8
max_parallel_workers = 8
max_parallel_workers_per_gather = 3
max_parallel_maintenance_workers = 3
parallel_leader_participation = off
parallel_setup_cost = 0
parallel_tuple_cost = 0
min_parallel_table_scan_size = 0
min_parallel_index_scan_size = 0
maintenance_work_mem = 256MB
});
sub sql { return $node->safe_psql('postgres', $_[0]); }

$node->start;
sql('CREATE EXTENSION pg_sweep');

# 24 partitions of 1 MB each, together three pools.  Each is too small to be read
# through a ring.
my $partitions = 24;
my $rows = $partitions * 900;
sql(qq{
CREATE TABLE part (i int, pad text) PARTITION BY RANGE (i);
SELECT format('CREATE TABLE part_%s PARTITION OF part FOR VALUES FROM (%s) TO (%s)', n, n * 900, (n + 1) * 900)
  FROM generate_series(0, $partitions - 1) n \\gexec
INSERT INTO part SELECT i, repeat('x', 1000) FROM generate_series(0, $rows - 1) i;
VACUUM ANALYZE part;
});
my $pages =
  sql(q{SELECT sum(pg_relation_size(relid)) / 8192 FROM pg_partition_tree('part') WHERE isleaf});
my $query = 'SELECT count(*), sum(i), sum(length(pad)) FROM part';
my $expected = join '|', $rows, $rows * ($rows - 1) / 2, $rows * 1000;

is(sql("SET max_parallel_workers_per_gather = 0; $query"), $expected, 'the result without workers');
my $plan = sql("EXPLAIN (COSTS OFF) $query");
like($plan, qr/Workers Planned: [1-9].*Parallel (?:Append|Seq Scan)/s, 'the plan is parallel');

# Statistics of the calling session, reported as soon as it ends
sub launched
{
	return sql(
		q{SELECT parallel_workers_launched FROM pg_stat_database WHERE datname = 'postgres'});
}

# Run SQL in a new session.  Returns its output, and how much the strategy and the
# session's own backend have allocated meanwhile.
sub run_counted
{
	my ($strategy, $sql) = @_;
	my $session = $node->background_psql('postgres');
	my $mine = q{
SELECT coalesce((SELECT allocations FROM pg_sweep_backends WHERE pid = pg_backend_pid()), 0)};
	my $own = $session->query_safe($mine);
	my $all = counter($node, $strategy, 'allocations');
	my $result = $session->query_safe($sql);

	$all = counter($node, $strategy, 'allocations') - $all;
	$own = $session->query_safe($mine) - $own;
	$session->quit;
	return ($result, $all, $own);
}

# Running workers have rows, under the backend type that pg_stat_activity has
switch_to($node, 'batched');
my $slow = run_in_background(
	'slow', 'psql', '--no-psqlrc',
	'--host' => $node->host,
	'--port' => $node->port,
	'--dbname' => 'postgres',
	'--command' => "SET application_name = 'slow'; SELECT count(pg_sleep(0.001 + 0 * i)) FROM part"
);
ok( $node->poll_query_until(
		'postgres',
		q{SELECT count(*) > 0 FROM pg_sweep_backends WHERE backend_type = 'parallel worker'}),
	'workers are among those that allocate');
sql(q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'slow' AND backend_type = 'client backend'}
);
is(wait_for_background($slow, 0), 1, 'the query is cancelled');
ok( $node->poll_query_until(
		'postgres',
		q{SELECT count(*) = 0 FROM pg_sweep_backends WHERE backend_type = 'parallel worker'}),
	'and they are gone');

for my $strategy (strategies($node))
{
	switch_to($node, $strategy);

	#
	# Scan
	#
	my $workers = launched();
	my ($result, $all, $own) = run_counted($strategy, $query);

	is($result, $expected, "$strategy: the result of a parallel scan");
	ok( $node->poll_query_until(
			'postgres',
			"SELECT parallel_workers_launched > $workers FROM pg_stat_database WHERE datname = 'postgres'"
		),
		"$strategy: workers were started");
	is(sql(q{SELECT count(*) FROM pg_sweep_backends WHERE backend_type = 'parallel worker'}),
		0, "$strategy: and are gone");

	# At most one pool was there already
	cmp_ok($all - $own, '>=', $pages - 1024, "$strategy: the counts of workers are kept");
	cmp_ok($own, '<', $pages / 4, "$strategy: the leader allocated little");

	# The next workers take the slots of the former ones and add to their counts
	my $scans = 6;
	($result, $all, $own) = run_counted($strategy, "$query;\n" x $scans);
	is($result, join("\n", ($expected) x $scans), "$strategy: the results of $scans more scans");
	cmp_ok($all - $own, '>=', $scans * ($pages - 1024),
		"$strategy: the counts of all workers are kept");

	#
	# Index build
	#
	$workers = launched();
	($result, $all, $own) = run_counted($strategy,
		"CREATE TABLE whole AS SELECT * FROM part;\n" . 'CREATE INDEX whole_i ON whole (i);');
	ok( $node->poll_query_until(
			'postgres',
			"SELECT parallel_workers_launched > $workers FROM pg_stat_database WHERE datname = 'postgres'"
		),
		"$strategy: workers were started for CREATE INDEX");
	cmp_ok($all - $own, '>', 50, "$strategy: and have allocated");
	sql('CREATE EXTENSION IF NOT EXISTS amcheck');
	is(sql(q{SELECT bt_index_check('whole_i', heapallindexed => true)}),
		'', "$strategy: the index is right");
	is(sql('SET enable_seqscan = off; SELECT count(*), sum(i) FROM whole WHERE i >= 0'),
		$rows . '|' . $rows * ($rows - 1) / 2, "$strategy: and finds all rows");
	sql('DROP TABLE whole');
}

#
# Switched in the middle
#
my $switcher = start_switching($node, 'switcher', 5, 3600);
my @before = map { counter($node, $_, 'allocations') } strategies($node);
my $workers = launched();
my $wrong = 0;

for (1 .. 8)
{
	my $result = sql(qq{
$query;
CREATE TABLE whole AS SELECT * FROM part;
CREATE INDEX whole_i ON whole (i);
SELECT bt_index_check('whole_i', heapallindexed => true);
DROP TABLE whole;
});
	$wrong++ if $result !~ /^\Q$expected\E\n*$/;
}
is($wrong, 0, 'switching: all results are right');
stop_background($switcher);
is(background_stderr($switcher), '', 'switching: no error');
ok( $node->poll_query_until(
		'postgres',
		"SELECT parallel_workers_launched >= $workers + 16 FROM pg_stat_database WHERE datname = 'postgres'"
	),
	'switching: workers were started');
for my $strategy (strategies($node))
{
	cmp_ok(counter($node, $strategy, 'allocations') - shift @before,
		'>', 1000, "switching: $strategy has allocated");
}
is_deeply(
	[
		unexpected_log_lines(
			$node,
			0,
			qr/connection to client lost|canceling statement due to user request|terminating background worker "parallel worker"|terminating connection due to administrator command/
		)
	],
	[],
	'no error in the log');
$node->stop;
done_testing();
