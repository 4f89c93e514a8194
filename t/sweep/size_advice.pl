# pg_sweep_size_advice: what it expects of pools of 1.5 and 2 times the size is what
# they read, after a restart, within a tenth, for three loads under three strategies.  And
# what it says while it is off, before it has learnt, and after a reset; and what it
# does not count: new pages, and reads through rings.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

my $buffers = 1024;
my $rows = 300000;
my $node = sweep_node('main', conf => qq{
shared_buffers = $buffers
bgwriter_delay = 10ms
checkpoint_timeout = 1h
max_wal_size = 4GB
synchronous_commit = off
jit = off
enable_seqscan = off
enable_bitmapscan = off
pg_sweep.size_advice = on
});
$node->start;
sub sql { return $node->safe_psql('postgres', $_[0]); }
sub advice { return sql("SELECT $_[0] FROM pg_sweep_size_advice " . ($_[1] // '')); }
# Reads that it has counted since the reset
sub counted
{
	return sql(q{
SELECT coalesce(sum(reads_per_second * extract(epoch FROM clock_timestamp() - size_advice_since)), 0)
  FROM pg_sweep_status, pg_sweep_size_advice WHERE size = 1});
}
sub reset_stats { sql('SELECT pg_sweep_reset_stats()'); }

# ---- states ----

sql('CREATE EXTENSION pg_sweep');
is(sql('SELECT size_advice, size_advice_since FROM pg_sweep_status'), 't|', 'on from the start: nothing learnt yet');
is(advice(q{string_agg(size::text, ' ' ORDER BY size), count(reads_per_second), count(ratio), count(ratio_low),
count(ratio_high), min(note), max(note)}),
	'0.5 1 1.25 1.5 1.75 2 3|0|0|0|0|no page has left the pool yet|no page has left the pool yet',
	'and all is unknown');
is(advice('bool_and(buffers = size * (SELECT buffers FROM pg_sweep_status) AND bytes = buffers * 8192)'),
	't', 'sizes in buffers and bytes');

sql(q{CREATE TABLE filling AS SELECT i, repeat('x', 900) AS pad FROM generate_series(1, 400) i; VACUUM filling});
is(sql('SELECT size_advice_since FROM pg_sweep_status'), '', 'a part of the pool is used: nothing has left');

init_pgbench($node, 3);
sql('SELECT count(abalance) FROM (SELECT abalance FROM pgbench_accounts WHERE aid < 100000 ORDER BY aid) s');
is( sql(q{SELECT size_advice_since BETWEEN pg_postmaster_start_time() AND now() FROM pg_sweep_status}),
	't', 'pages have left: it learns');
reset_stats();
is(sql('SELECT size_advice_since = stats_reset FROM pg_sweep_status'), 't', 'a reset: from then on');

# Pages of an extension are not read
sql('CREATE TABLE new (i int, filler text)');
sql(q{INSERT INTO new SELECT i, repeat('x', 900) FROM generate_series(1, 24000) i});
is(sql(q{SELECT pg_relation_size('new') / 8192}), 3000, 'three pools of new pages');
cmp_ok(counted(), '<', 1000, 'they are not reads; pages of catalogs are');
like(advice('note', 'WHERE size = 0.5'), qr/^unknown: hits are not seen$/, 'of smaller pools nothing is known');

# Nor are those of a scan by a ring counted, nor those that it evicts for itself
sql('VACUUM new; CHECKPOINT');
reset_stats();
is(sql('SET enable_seqscan = on; SELECT count(*) FROM new; SELECT count(*) FROM new'), "24000\n24000", 'scans by a ring');
cmp_ok(counted(), '<', 1000, 'are not counted');

# Off, and on again: a pool in use has pages that may leave
my $scan = q{SELECT count(abalance) FROM (SELECT abalance FROM pgbench_accounts WHERE aid BETWEEN %d AND %d ORDER BY aid) s};
my $switch = sub {
	my ($on) = @_;
	sql("ALTER SYSTEM SET pg_sweep.size_advice = $on");
	$node->reload;
	ok($node->poll_query_until('postgres', "SELECT size_advice = '$on' FROM pg_sweep_status"), "turned $on by a reload");
};
sql(sprintf $scan, 1, 60000);
cmp_ok(advice('reads_per_second', 'WHERE size = 1'), '>', 0, 'reads are known');
$switch->('off');
is(advice('DISTINCT note'), 'unknown: pg_sweep.size_advice is off', 'off: nothing is known');
is(advice('count(ratio)'), 0, 'not even from before');
is(sql('SELECT size_advice_since FROM pg_sweep_status'), '', 'nor since when');
$switch->('on');
is(advice('DISTINCT note'), 'no page has left the pool yet', 'on: it begins anew');
sql(sprintf $scan, 200001, 206000);
like(advice('note', 'WHERE size = 2'), qr/^unknown: only \d\d? sampled reads$|^at most/, 'too little is known');
isnt(sql('SELECT size_advice_since FROM pg_sweep_status'), '', 'what leaves first was in the pool before');
sql(sprintf $scan, 206001, 300000);
is(advice(q{note LIKE 'at most:%' AND ratio_low IS NULL AND ratio_high >= ratio}, 'WHERE size = 3'),
	't', 'it has seen less than a larger pool has room for, and says so');

# The same under each strategy: a loop through one and a half pools is in two of them
foreach my $strategy (strategies($node))
{
	switch_to($node, $strategy);
	my $loop = sprintf $scan, 1, 85000;
	sql($loop) foreach 1 .. 3;
	reset_stats();
	sql($loop) foreach 1 .. 4;
	cmp_ok(advice('ratio', 'WHERE size = 2'), '<', 0.2, "$strategy: two pools have a loop that one has not");
	cmp_ok(advice('ratio', 'WHERE size = 1.25'), '>', 0.3, "$strategy: a little more has not");
}
sql('DROP TABLE new; DROP TABLE filling');

# ---- predicted, and restarted at that size ----

# Several points for each transaction save time
sub points
{
	my ($name, $expression) = @_;
	my @names = 'a' .. 'h';

	return write_script($name, join('', map { "\\set $_ $expression\n" } @names)
		  . 'SELECT sum(abalance) FROM pgbench_accounts WHERE aid IN (' . join(', ', map { ":$_" } @names) . ");\n");
}
my $zipf = points('zipf', "permute(random_zipfian(1, $rows, 1.05), $rows) + 1");
my $point = points('point', '100 + 997 * random_gaussian(1, 300, 3)');
my $range = write_script('range', qq{
\\set a random(1, $rows - 4000)
SELECT count(abalance) FROM (SELECT abalance FROM pgbench_accounts WHERE aid BETWEEN :a AND :a + 4000 ORDER BY aid) s;
});

# name, strategy, transactions before and while it counts, options
my @loads = (
	[ 'zipfian', 'stock', 500, 1000, '--file' => $zipf ],
	[ 'points and scans', 'batched', 400, 600, '--file' => "$point\@4", '--file' => "$range\@1" ],
	[ 'TPC-B', 'partitioned', 2500, 4000, '--builtin' => 'tpcb-like' ]);

# Blocks read by other means than rings
sub blocks_read
{
	return sql(q{SELECT sum(read_bytes) / 8192 FROM pg_stat_io WHERE object = 'relation' AND context = 'normal'});
}

# Run a load with a pool of this size.  Returns the blocks that it read, and what is
# expected of larger pools.
sub run_load
{
	my ($size, $title, $strategy, $before, $while, @options) = @_;
	my $run = sub {
		my ($n, $seed) = @_;
		$node->command_ok([ 'pgbench', '--no-vacuum', '--protocol' => 'prepared', '--random-seed' => $seed,
				'--transactions' => $n, @options, 'postgres' ],
			"$title, $size pools, $n transactions");

		# its backend adds up its reads when it exits, which pgbench does not wait for
		$node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'pgbench'")
		  or die 'a backend of pgbench does not exit';
	};

	$node->adjust_conf('postgresql.conf', 'shared_buffers', $size * $buffers);
	$node->restart;
	switch_to($node, $strategy);
	# rows that were updated lie together: other ones each time
	my $seed = $title eq 'TPC-B' ? 10 * $size : 0;
	$run->($before, $seed + 1);
	reset_stats();
	my $read = -blocks_read();
	$run->($while, $seed + 2);
	my %expected = map { split /\|/, $_, 2 } split /\n/,
	  advice(q{size, reads_per_second * extract(epoch FROM clock_timestamp() - (SELECT size_advice_since FROM pg_sweep_status))},
		'WHERE size >= 1 AND note IS NULL');
	return ($read + blocks_read(), \%expected);
}

foreach my $load (@loads)
{
	my ($name, $strategy) = @$load;
	my ($read, $expected) = run_load(1, @$load);
	my $near = sub {
		my ($size, $actual, $bound) = @_;
		my $off = $expected->{$size} / $actual - 1;

		cmp_ok(abs($off), '<=', $bound, sprintf('%s, %s, %s pools: %d blocks expected, %d read, %+.1f %%',
			$name, $strategy, $size, $expected->{$size}, $actual, 100 * $off));
	};

	$near->(1, $read, 0.03);
	foreach my $size (1.5, 2)
	{
		my ($actual) = run_load($size, @$load);
		cmp_ok($actual, '<', 0.95 * $read, "$name: the larger pool reads less");
		$near->($size, $actual, 0.1);
	}
}

# ---- a crash ----

$node->stop('immediate');
$node->start;
is(sql('SELECT size_advice FROM pg_sweep_status'), 't', 'after a crash: on, as configured');
is(sql('SELECT coalesce(size_advice_since >= pg_postmaster_start_time(), true) FROM pg_sweep_status'), 't', 'and learning anew');

# ---- a sample, of a larger pool ----

# one of 4 pages is in it; tables that a ring would not be used for, 1.3 pools together
$node->adjust_conf('postgresql.conf', 'shared_buffers', 8200);
$node->restart;
my @tables = map { "sampled_$_" } 1 .. 8;
sql("CREATE TABLE $_ AS SELECT i, repeat('x', 900) AS pad FROM generate_series(1, 10400) i; VACUUM $_") foreach @tables;
my $pass = 'SET enable_seqscan = on; ' . join(' ', map { "SELECT count(*) FROM $_;" } @tables);
sql($pass) foreach 1 .. 2;
reset_stats();
my $blocks = -blocks_read();
sql($pass) foreach 1 .. 4;
my $seen = counted();
my $larger = advice('ratio_high', 'WHERE size = 1.75');
$blocks += blocks_read();
cmp_ok($blocks, '>', 4 * 8200, "a loop through 1.3 pools reads $blocks blocks");
cmp_ok(abs($seen / $blocks - 1), '<', 0.1, sprintf('%d of them by a sample', $seen));
cmp_ok($larger, '<', 0.2, 'a pool of 1.75 times the size has it');

$node->stop;
done_testing();
