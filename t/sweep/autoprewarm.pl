
# autoprewarm of pg_prewarm loads blocks while have_free_buffer() is true.  Our
# strategies have no freelist and answer by other means.  As with stock, it must
# stop when the pool is full, and not before.

use strict;
use warnings FATAL => 'all';

use File::Copy;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

my $small = 512;
my $large = 4096;
my $node = sweep_node('main', conf => qq{
shared_preload_libraries = 'pg_sweep,pg_prewarm'
pg_prewarm.autoprewarm = on
pg_prewarm.autoprewarm_interval = 0
shared_buffers = $large
checkpoint_timeout = 1h
# autoprewarm asks before each block and allocates when it reads.  With reads of
# one block nothing comes in between.
io_combine_limit = 1
});
sub sql { return $node->safe_psql('postgres', $_[0]); }

$node->start;
sql('CREATE EXTENSION pg_sweep; CREATE EXTENSION pg_prewarm; CREATE EXTENSION pg_buffercache');
churn_setup($node);
my $sum = churn($node);

my @strategies = strategies($node);
my $dump = $node->data_dir . '/autoprewarm.blocks';
my $blocks = sql('SELECT autoprewarm_dump_now()');
cmp_ok($blocks, '>', 4 * $small, "$blocks blocks are in the dump");
copy($dump, "$dump.saved") or die "could not copy $dump: $!";
$node->stop;

# Start with a number of buffers and a strategy, and load the dump.  Returns the
# number of blocks that were loaded.
sub start_and_load
{
	my ($strategy, $buffers) = @_;
	my $offset = -s $node->logfile;

	copy("$dump.saved", $dump) or die "could not restore $dump: $!";

	# Statistics outlive a restart
	unlink($node->data_dir . '/pg_stat/pgstat.stat') or die "unlink: $!";
	$node->append_conf('postgresql.conf',
		"shared_buffers = $buffers\npg_sweep.strategy = $strategy\n");
	$node->start;

	# A session would allocate, so ask the log
	my $done = qr/autoprewarm successfully prewarmed (\d+) of $blocks previously-loaded blocks/;
	$node->wait_for_log($done, $offset);
	my ($loaded) = slurp_file($node->logfile, $offset) =~ $done;
	return $loaded;
}

my %loaded;
for my $strategy (@strategies)
{
	#
	# More in the dump than buffers
	#
	my $loaded = start_and_load($strategy, $small);

	is(sql("SELECT sum(evictions) FROM pg_stat_io WHERE backend_type = 'background worker' AND object = 'relation'"
		),
		0,
		"$strategy: autoprewarm has evicted nothing");
	is(sql('SELECT count(*), count(*) FILTER (WHERE relfilenode IS NULL) FROM pg_buffercache'),
		"$small|0", "$strategy: the pool is full");
	cmp_ok($loaded, '<=', $small, "$strategy: $loaded blocks were loaded, which fit into the pool");

	# Pages that were read before autoprewarm began count if they are in the dump
	cmp_ok($loaded, '>=', $small * 0.9, "$strategy: and nearly fill it");
	$loaded{$strategy} = $loaded;
	cmp_ok(counter($node, $strategy, 'allocations'), '>=', $loaded, "$strategy: allocated them");
	is(churn($node), $sum, "$strategy: the data are right");
	$node->stop;

	#
	# Room for all
	#
	$loaded = start_and_load($strategy, $large);
	is(sql("SELECT sum(evictions) FROM pg_stat_io WHERE object = 'relation'"),
		0, "$strategy: nothing evicted where there is room");

	is($loaded, $blocks, "$strategy: $loaded of $blocks were loaded where there is room");
	is(sql(q{
SELECT count(*) FROM pg_buffercache b JOIN pg_class c ON pg_relation_filenode(c.oid) = b.relfilenode
 WHERE relname LIKE 'churn%' AND relforknumber = 0}),
		sql(q{SELECT sum(pg_relation_size(oid) / 8192) FROM pg_class WHERE relname LIKE 'churn%'}),
		"$strategy: the tables are in memory as a whole");
	cmp_ok(sql('SELECT count(*) FROM pg_buffercache WHERE relfilenode IS NULL'),
		'>', 100, "$strategy: and buffers are left");
	cmp_ok(counter($node, $strategy, 'allocations'), '>=', $loaded, "$strategy: allocated them");
	$node->stop;
}

# A few processes read catalogs at the same time.  Each of their pages that is not
# in the dump is one block less.
for my $strategy (grep { $_ ne 'stock' } @strategies)
{
	cmp_ok(abs($loaded{$strategy} - $loaded{stock}),
		'<=', 16, "$strategy: as many blocks as stock ($loaded{stock})");
}
done_testing();
