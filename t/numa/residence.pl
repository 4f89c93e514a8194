# pg_sweep_numa_residence of a pool with more pages than are asked about: the sample
# adds up to all pages, and leaves no page tables behind in the session.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

my $sample = 16384;
my $node = sweep_node('residence', conf => "shared_buffers = 128MB\nhuge_pages = off\npg_sweep.strategy = partitioned\n");
$node->start;

sub query { return $node->safe_psql('postgres', $_[0]); }

plan skip_all => 'the kernel does not tell where pages are' unless query('SELECT pg_numa_available()') eq 't';
my $pages = 128 * 1024 * 1024 / 4096;

my $groups = q{
SELECT sum(pages), sum(asked), coalesce(sum(pages) FILTER (WHERE node IS NULL), 0) FROM pg_sweep_numa_residence WHERE what = 'blocks'};
query(q{
CREATE EXTENSION pg_sweep; CREATE EXTENSION pg_prewarm;
CREATE TABLE filler (pad text); ALTER TABLE filler ALTER pad SET STORAGE PLAIN});

# A part of the pool is used
query(q{INSERT INTO filler SELECT repeat('x', 5000) FROM generate_series(1, 4000)});
my $used = query(q{SELECT pg_relation_size('filler') / 4096});
my ($all, $asked, $unused) = split /\|/, query($groups);
is($all, $pages, "all pages of blocks are shown, while $asked are asked about");
cmp_ok($asked, '<=', $sample, 'which is the sample');
cmp_ok($asked, '>=', $sample / 2, 'and no less than half of it');
# 16384 of 32768: a standard error of 130 pages at most
cmp_ok($all - $unused, '>=', $used - 800, "used: of at least $used pages, the sample has found " . ($all - $unused));
cmp_ok($unused, '>', $pages / 4, 'unused: the estimate says so');

# All of it
query(q{INSERT INTO filler SELECT repeat('x', 5000) FROM generate_series(1, 13000)});
query(q{SELECT pg_prewarm('filler')}) foreach 1 .. 2;
($all, $asked, $unused) = split /\|/, query($groups);
is("$all $unused", "$pages 0", 'a full pool: all pages are used');
is(query('SELECT sum(resident_buffers) FROM pg_sweep_nodes'), $pages / 2, 'and pg_sweep_nodes remembers all buffers');

# What core has not given out is a part with a name of its own.
my ($left) = query('SELECT allocated_size FROM pg_shmem_allocations WHERE name IS NULL');
cmp_ok($left, '>', 512 * 1024 + 2 * 4096, 'enough is unallocated to be shown');
cmp_ok(abs($left - query(q{SELECT coalesce(sum(bytes), 0) FROM pg_sweep_numa_residence WHERE what = 'unallocated'})),
	'<=', 4096, 'it is shown as that');

# Mapping the pool takes 4 kB for each 2 MB, 256 kB
my $session = $node->background_psql('postgres');
my $tables = q{SELECT (regexp_match(pg_read_file('/proc/self/status'), 'VmPTE:\s*(\d+)'))[1]};
my $mappings = q{SELECT count(*) FROM regexp_split_to_table(pg_read_file('/proc/self/maps'), '\n')};
$session->query_safe('SELECT count(*) FROM pg_sweep_nodes');
$session->query_safe(q{SELECT * FROM pg_sweep_get_partitions(), generate_series(1, 2)});
my ($before, $maps_before) = map { $session->query_safe($_) } $tables, $mappings;
is($session->query_safe(q{SELECT sum(pages) FROM pg_sweep_numa_residence WHERE what = 'blocks'}), $pages, 'in one session');
my ($after, $maps_after) = map { $session->query_safe($_) } $tables, $mappings;
cmp_ok($after - $before, '<', 128, "page tables: $before kB before, $after kB after");
cmp_ok($maps_after - $maps_before, '<=', 4, "mappings: $maps_before before, $maps_after after");
my $timing = $session->query_safe(q{EXPLAIN (ANALYZE, COSTS OFF, SUMMARY ON) SELECT * FROM pg_sweep_get_numa_residence()});
note($timing);
$session->quit;
$node->stop;
done_testing();
