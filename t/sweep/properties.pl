# Properties of the hand, of leases and of their size, under random
# interleavings.  Mutants show that the test fails when a property does not hold.
#
# The simulation (test/sweep/test_sweep) depends on the seeds only.  SWEEP_SEED=n
# begins with another one, SWEEP_SEEDS=n tries more.

use strict;
use warnings FATAL => 'all';

use IPC::Run qw(start finish);
use PostgreSQL::Test::Utils;
use PropertyTest;
use Test::More;

my $first_seed = $ENV{SWEEP_SEED} || 1;
my $seeds = $ENV{SWEEP_SEEDS} || 20;
my $last_seed = $first_seed + $seeds - 1;

my $node = property_node('properties', 'test_sweep');
sub sql { return $node->safe_psql('postgres', $_[0]); }

note "seeds $first_seed to $last_seed";

# Pools and backends: tiny pools, sizes that are no multiple of any batch, a pool
# larger than all leases, more backends than the pool has leases.
my $pools = '(16, 4), (16, 200), (17, 40), (1000, 8), (1021, 60), (5000, 30), (16384, 200)';

# The hand's first ticket: zero, and near 2^32
my $starts = '(0::int8), (4294967000)';

sub simulate
{
	my ($interrupts) = @_;
	return named_row($node,
		qq{SELECT count(*) AS runs, count(violation) AS violations,
				  min(violation || ' (seed ' || seed || ', ' || n || ' buffers, ' || b || ' backends)') AS first,
				  sum(tickets) AS tickets, sum(looks) AS looks, sum(switched) AS switched,
				  sum(lapped) AS lapped, sum(trimmed) AS trimmed, sum(left_behind) AS left_behind,
				  sum(straddling) AS straddling, sum(whole) AS whole, sum(bursts) AS bursts, sum(singles) AS singles,
				  max(outstanding) AS outstanding, sum(interrupted) AS interrupted,
				  sum(stale) AS stale, sum(fast) AS fast, sum(old) AS old, sum(late_looks) AS late_looks,
				  sum(passes) AS passes
		   FROM (VALUES $pools) AS pool(n, b), (VALUES $starts) AS hand(start),
				generate_series($first_seed, $last_seed) AS seed,
				test_sweep_simulate(seed, 10000, n, b, $interrupts, start)});
}

# ---- the real code, one operation after the other ----

my @always = qw(tickets looks switched lapped trimmed left_behind straddling whole fast old bursts
  singles passes);
my %whole = simulate('false');
is($whole{violations}, 0, "$whole{runs} simulations, whole operations: every property holds")
  or diag $whole{first};
cmp_ok($whole{$_}, '>', 0, "exercised: $_ ($whole{$_})") for @always;
is($whole{interrupted}, 0, 'no backend was stopped in the middle of an operation');
is($whole{late_looks}, 0, 'no ticket was used that the hand had lapped');
is($whole{stale}, 0, 'the published epoch was always exact');

# ---- the real code, stopped between any two atomic operations ----

my %parts = simulate('true');
is($parts{violations}, 0,
	"$parts{runs} simulations, stopped between atomic operations: every property holds")
  or diag $parts{first};
cmp_ok($parts{$_}, '>', 0, "exercised: $_ ($parts{$_})")
  for @always, qw(interrupted stale late_looks);

# ---- the size of a lease ----

# Names of the properties that do not hold, by definition: the limit, that it is kept,
# used up and monotone; and the three cases for which the automatic size is made.
sub batch_properties
{
	my ($code) = @_;
	return sql(qq{
		WITH grid AS MATERIALIZED (
			SELECT c, cpus, n, b,
				   test_sweep_batch(c, cpus, n, b, '$code') AS size,
				   test_sweep_lease_limit(n) AS lim,
				   CASE WHEN c <> 0 THEN c WHEN cpus > 1 THEN 64 ELSE 16 END AS wish
			FROM unnest(ARRAY[0, 1, 7, 16, 64, 100, 1024]) AS c,
				 unnest(ARRAY[1, 2, 3, 4, 7, 8, 64, 400]) AS cpus,
				 unnest(ARRAY[16, 17, 512, 1000, 16384, 1048576]) AS n,
				 unnest(ARRAY[0, 1, 2, 3, 7, 16, 64, 500, 2000, 262143]) AS b),
		neighbours AS (
			SELECT *, lag(size) OVER (PARTITION BY c, cpus, n ORDER BY b) AS fewer_backends,
				   lag(size) OVER (PARTITION BY c, cpus, b ORDER BY n) AS smaller_pool,
				   lag(size) OVER (PARTITION BY c, n, b ORDER BY cpus) AS fewer_cpus
			FROM grid),
		broken(property, bad) AS (
			SELECT 'at least one', size < 1 FROM grid
			UNION ALL SELECT 'at most the wish', size > wish FROM grid
			UNION ALL SELECT 'an eighth of the pool', lim <> greatest(n / 8, 1) FROM grid
			UNION ALL SELECT 'all leases within the limit', size > 1 AND size::int8 * b * 8 > n FROM grid
			UNION ALL SELECT 'no smaller than it must be',
				size < wish AND (size + 1)::int8 * greatest(b, 1) * 8 <= n FROM grid
			UNION ALL SELECT 'never more with more backends', size > fewer_backends FROM neighbours
			UNION ALL SELECT 'never less with a larger pool', size < smaller_pool FROM neighbours
			UNION ALL SELECT 'never less with more CPUs', size < fewer_cpus FROM neighbours
			UNION ALL SELECT '500 backends on 4 MB: one at a time',
				test_sweep_batch(0, 64, 512, 500, '$code') <> 1
			UNION ALL SELECT '500 backends on 128 MB: four',
				test_sweep_batch(0, 64, 16384, 500, '$code') <> 4
			UNION ALL SELECT 'one socket with 64 cores: 64',
				test_sweep_batch(0, 64, 131072, 100, '$code') <> 64)
		SELECT string_agg(DISTINCT property, '; ') FROM broken WHERE bad});
}

is(batch_properties('pg_sweep'), '', 'size of a lease: 11 properties on a grid of 3360 points');

# ---- is each mutant caught? ----

my %caught = map { split /\|/, $_, 2 } split /\n/, sql(qq{
	SELECT code, coalesce(min(violation), '')
	FROM test_sweep_codes() AS code, (VALUES $pools) AS pool(n, b),
		 (VALUES (false, 0::int8), (true, 4294967000)) AS mode(interrupts, start),
		 generate_series($first_seed, $first_seed + 9) AS seed,
		 test_sweep_simulate(seed, 4000, n, b, interrupts, start, code)
	GROUP BY code});
is(delete $caught{pg_sweep}, '', 'the same seeds find nothing in the real code');
cmp_ok(scalar keys %caught, '>=', 39, (scalar keys %caught) . ' mutants');
foreach my $mutant (sort keys %caught)
{
	my $how = $caught{$mutant} ne '' ? $caught{$mutant} : batch_properties($mutant);
	ok($how ne '', "mutant \"$mutant\" is caught: $how");
}

# ---- true concurrency ----

# Run the same code in several backends at once; returns the sums.
sub together
{
	my ($processes, $buffers, $code) = @_;
	my (@run, @out, @err);

	sql("SELECT test_sweep_shared_begin($buffers, $processes)");
	foreach my $i (0 .. $processes - 1)
	{
		($out[$i], $err[$i]) = ('', '');
		push @run, start(
			[
				'psql', '-X', '-A', '-t', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres'),
				'-c', "SELECT * FROM test_sweep_shared_run(2000000, $first_seed + $i, '$code')"
			],
			'>', \$out[$i], '2>', \$err[$i]);
	}
	my %sum;
	foreach my $i (0 .. $processes - 1)
	{
		finish($run[$i]) or die "process $i: $err[$i]";
		chomp $out[$i];
		my @v = split /\|/, $out[$i];
		$sum{$_} += shift @v
		  for qw(looks dropped left leases foreign late_looks duplicates strayed backwards);
	}
	@sum{qw(hand distinct)} =
	  split /\|/, sql('SELECT * FROM test_sweep_shared_end()');
	return %sum;
}

foreach my $case ([ 2, 1000 ], [ 4, 1021 ], [ 4, 16 ])
{
	my ($processes, $buffers) = @$case;
	my $name = "$processes processes, $buffers buffers";
	my %sum = together($processes, $buffers, 'pg_sweep');

	cmp_ok($sum{foreign}, '>', 100,
		"$name: they did take turns ($sum{foreign} of $sum{leases} leases after another's)");
	is($sum{duplicates}, 0, "$name: no ticket was used twice ($sum{looks} looks)");
	is($sum{distinct}, $sum{looks}, "$name: as many different tickets as looks");
	is($sum{looks} + $sum{dropped} + $sum{left}, $sum{hand},
		"$name: used, dropped ($sum{dropped}) and left over ($sum{left}) add up to the hand");
	if ($buffers > 16)
	{
		cmp_ok($sum{dropped}, '>', 0, "$name: leases expired");
	}
	else
	{
		is($sum{leases}, $sum{hand}, "$name: leases of one ticket, nothing to expire");
	}
	is($sum{strayed}, 0, "$name: every look was at its ticket's buffer");
	is($sum{backwards}, 0, "$name: no process saw the hand go backwards");
	note "$name: $sum{late_looks} looks came a lap late, the race that lease.h documents";
}

# A defect must show within some tries, also on a machine with one CPU
sub shows
{
	my ($code, $what) = @_;
	foreach my $try (1 .. 20)
	{
		my %sum = together(4, 16, $code);
		return $sum{$what} if $sum{$what} > 0;
	}
	return 0;
}

my $found = shows('hand not atomic', 'duplicates');
cmp_ok($found, '>', 0, "mutant \"hand not atomic\" is caught: $found tickets used twice");
$found = shows('position in two reads', 'backwards');
cmp_ok($found, '>', 0, "mutant \"position in two reads\" is caught: $found positions backwards");

$node->stop;
done_testing();
