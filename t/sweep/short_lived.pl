
# Processes that allocate a page or two and exit must replace the whole pool, not
# the same few buffers again and again.  With leases of a whole batch from the
# start, they used the first buffers of each batch and dropped the rest.  These were
# the same buffers in every lap, so the pool had the effect of a fraction of its size
# (docs/design/0002).

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

# Leases are limited to an eighth of the pool.  With the few backends here, that
# leaves each a batch of some size.
my $buffers = 512;
my $pages = 700;
my $node = sweep_node('main', conf => qq{
shared_buffers = $buffers
pg_sweep.batch_size = 64
fsync = off
});
sub sql { return $node->safe_psql('postgres', $_[0]); }

$node->start;

# One row per page
sql(qq{
CREATE EXTENSION pg_sweep;
CREATE EXTENSION pg_buffercache;
CREATE TABLE pages (id int, padding text) WITH (fillfactor = 10);
ALTER TABLE pages ALTER padding SET STORAGE PLAIN;
INSERT INTO pages SELECT i, repeat('x', 5000) FROM generate_series(1, $pages) i;
VACUUM (FREEZE, ANALYZE) pages;
CHECKPOINT;
});
is(sql(q{SELECT pg_relation_size('pages') / 8192}), $pages, 'one row per page');

# One page after the other: each read is an allocation
my $script = write_script('next_page', q{
\set id :id + 1
SELECT id FROM pages WHERE ctid = ('(' || :id || ',1)')::tid;
});

# Leases of buffers, and victims by leases of slots; NULL under stock
sub leases
{
	my ($strategy) = @_;
	return sql(qq{
SELECT leases + coalesce(victims_probation, 0)
  FROM pg_sweep_strategies LEFT JOIN pg_sweep_clock2q USING (strategy) WHERE strategy = '$strategy'});
}

# The number of these pages in the pool.  It was empty before, and a new connection
# read each page.
my %cached;
for my $strategy (strategies($node))
{
	switch_to($node, $strategy);
	sql('SELECT pg_buffercache_evict_all()');

	my $leases = leases($strategy);
	$node->command_ok(
		[
			'pgbench', '-n', '-C', '-t', $pages, '-D', 'id=-1',
			'-f', $script, '-h', $node->host, '-p', $node->port, 'postgres'
		],
		"$strategy: read $pages pages by a connection each");

	$cached{$strategy} = sql(q{
SELECT count(*) FROM pg_buffercache
WHERE relfilenode = pg_relation_filenode('pages') AND relforknumber = 0});
	cmp_ok(leases($strategy) - $leases, '>=', $pages, "$strategy: as many leases, or victims from probation, as processes")
	  if $leases ne '';
}

cmp_ok($cached{stock}, '>', $buffers / 2,
	"stock: the newest fill most of the pool ($cached{stock} of $buffers)");
for my $strategy (grep { $_ ne 'stock' } sort keys %cached)
{
	cmp_ok($cached{$strategy}, '>=', $cached{stock} * 0.8,
		"$strategy: nearly as many as with stock ($cached{$strategy})");
}

$node->stop;
done_testing();
