# One backend reads nine tenths of the pool twice.  With every strategy, the second
# reading finds as much in the pool as with core's.  A backend that were confined to
# its partition would find little.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

# Each table is smaller than a quarter of the pool, so no ring is used
my $tables = 9;
my $buffers = 4096;
my $pages = int($buffers * 0.9 / $tables);

my $node = sweep_node('main', conf => qq{
shared_buffers = $buffers
pg_sweep.numa_debug_nodes = 4
pg_sweep.partitions = 8
max_parallel_workers_per_gather = 0
synchronize_seqscans = off
checkpoint_timeout = 1h
max_wal_size = 10GB
});
sub sql { return $node->safe_psql('postgres', $_[0]); }

$node->start;
sql('CREATE EXTENSION pg_sweep');

# One row per page
sql(join '',
	map {
		"CREATE TABLE pages_$_ (i int, pad text); ALTER TABLE pages_$_ ALTER pad SET STORAGE PLAIN;\n"
		  . "INSERT INTO pages_$_ SELECT i, repeat('x', 7000) FROM generate_series(1, $pages) i;\n"
	} 1 .. $tables);
sql('VACUUM (FREEZE, ANALYZE)');
is(sql(q{SELECT sum(relpages) FROM pg_class WHERE relname LIKE 'pages\_%'}),
	$pages * $tables, 'the tables are nine tenths of the pool');

# Read all tables; returns the number of pages that were in the pool
sub read_all
{
	my ($session) = @_;
	my $hits = 0;

	for my $i (1 .. $tables)
	{
		my $plan = $session->query_safe(
			"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, COSTS OFF, SUMMARY OFF) SELECT sum(i) FROM pages_$i");

		# the last line of the plan with buffers is the scan's
		my ($scan) = $plan =~ /Seq Scan.*?Buffers: shared ([^\n]*)/s
		  or die "no scan in $plan";
		$hits += $1 if $scan =~ /hit=(\d+)/;
	}
	return $hits;
}

my %hits;
# With cycles of the background writer, and without
for my $delay ('200ms', '10s')
{
	for my $strategy (strategies($node))
	{
		$node->append_conf('postgresql.conf',
			"pg_sweep.strategy = $strategy\nbgwriter_delay = $delay\n");
		$node->restart;

		my $session = $node->background_psql('postgres');
		$session->query_safe('SET pg_sweep.numa_debug_node = 1');
		cmp_ok(read_all($session), '<', $pages * $tables / 10,
			"$strategy, bgwriter_delay = $delay: the first reading finds nothing");
		my $hits = read_all($session);
		$session->quit;

		$hits{$delay} //= $hits;
		note("$strategy: $hits of " . $pages * $tables);
		cmp_ok($hits, '>=', 0.99 * $hits{$delay},
			"$strategy, bgwriter_delay = $delay: the second reading finds as much as with stock");
	}
	cmp_ok($hits{$delay}, '>', 0.9 * $pages * $tables, "which is nearly all: $hits{$delay}");
}

$node->stop;
done_testing();
