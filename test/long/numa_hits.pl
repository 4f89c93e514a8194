# pg_sweep_numa_hits: the sampled shares are those of an exact count of all hits,
# under loads that mislead other ways to sample; the error that the view states is
# the error that the shares have; each hit counts, in each process.
#
# Nodes are emulated, and their pages are those of their partitions.  Shares that are
# compared have at least 5000 sampled hits: 3 points are 4 standard errors or more.

use strict;
use warnings FATAL => 'all';

use Cwd qw(abs_path);
use List::Util qw(sum0);
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;
use Time::HiRes qw(usleep);

my $points = 3;
my $least = 5000;

my $node = sweep_node('hits', conf => q{
shared_buffers = 64MB
pg_sweep.numa_debug_nodes = 2
pg_sweep.partitions = 4
pg_sweep.strategy = partitioned
max_parallel_workers_per_gather = 0
jit = off
enable_indexonlyscan = off
});
require_modules($node, 'test_hits');
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION pg_sweep; CREATE EXTENSION test_hits');

# One session does it all: statements of others would be hits, too.
my $session = $node->background_psql('postgres');
sub query { return $session->query_safe($_[0]); }

# Pages come from the node on which they are read in.  Rows of "far" are rather wide.
foreach my $table ([ 'near', 0, 100 ], [ 'far', 1, 400 ])
{
	my ($name, $at, $width) = @$table;
	query(qq{
SET pg_sweep.numa_debug_node = $at;
CREATE TABLE $name (i int PRIMARY KEY, pad text) WITH (autovacuum_enabled = off);
ALTER TABLE $name ALTER pad SET STORAGE PLAIN;
INSERT INTO $name SELECT i, repeat('x', $width) FROM generate_series(1, 10000) i;
VACUUM (FREEZE, ANALYZE) $name;
});
}
query('SET pg_sweep.numa_debug_node = 0');

# New sessions take it at once
sub set_sampling
{
	my ($every) = @_;

	$node->safe_psql('postgres', "ALTER SYSTEM SET pg_sweep.numa_sample_hits = $every");
	$node->safe_psql('postgres', 'SELECT pg_reload_conf()');
	$node->poll_query_until('postgres', "SELECT setting = '$every' FROM pg_settings WHERE name = 'pg_sweep.numa_sample_hits'")
	  or die 'the parameter does not change';
	return;
}

# So does the session at its next statement, if the signal has reached it
sub sample_one_of
{
	my ($every) = @_;

	set_sampling($every);
	foreach (1 .. 100)
	{
		last if query('SHOW pg_sweep.numa_sample_hits') eq $every;
		usleep(10_000);
	}
	is(query('SHOW pg_sweep.numa_sample_hits'), $every, "one of $every hits is sampled");
	return;
}

# All hits of a statement, and their time, by the node of the page
sub count_exactly
{
	my ($statement) = @_;
	my $rows = query(qq{
SELECT p.node, coalesce(sum(hits), 0), coalesce(sum(seconds), 0)
  FROM pg_sweep_get_partitions() p LEFT JOIN test_hits_count(\$statement\$$statement\$statement\$) c
    ON c.buffer >= p.first_buffer AND c.buffer < p.first_buffer + p.num_buffers
 GROUP BY 1 ORDER BY 1});

	return map { [ split /\|/ ] } split /\n/, $rows;
}

sub percent
{
	my ($part, @all) = @_;
	return 100 * $part / (sum0(@all) || 1);
}

# ---- nothing is sampled unless it is wanted ----

is(query('SHOW pg_sweep.numa_sample_hits'), 0, 'off by default');
query(q{SELECT test_hits_loop('near', 'far', 1, 10000)});
is(query('SELECT count(*) FROM pg_sweep_numa_hits'), 0, 'then nothing is sampled');

# ---- the share of each load ----

# run: the load, by the nodes that the session is on meanwhile; by_time: a timer would
# see another share, for pages with more rows are looked at for longer
my $lookups = q{
DO $$
DECLARE k int;
BEGIN
	FOR step IN 1 .. 30000 LOOP
		k := 1 + random() * 9999;
		IF step % 3 = 0 THEN PERFORM pad FROM far WHERE i = k;
		ELSE PERFORM pad FROM near WHERE i = k;
		END IF;
	END LOOP;
END $$};
my $scans = q{
DO $$
BEGIN
	FOR turn IN 1 .. 100 LOOP PERFORM count(*) FROM near; PERFORM count(*) FROM far; END LOOP;
END $$};
# pages of "far" are pinned while those of "near" are looked up
my $join = q{
DO $$
BEGIN
	FOR turn IN 1 .. 60 LOOP
		PERFORM count(*) FROM far, LATERAL (SELECT pad FROM near WHERE near.i = 10001 - far.i OFFSET 0) n WHERE far.i % 20 = 0;
	END LOOP;
END $$};

my @loads = (
	{ title => 'point reads', run => [ [ 0, $lookups ] ] },
	{ title => 'sequential scans', run => [ [ 0, $scans ] ], by_time => 1 },
	{ title => 'a nested loop', run => [ [ 0, $join ] ] },
	{
		title => 'a loop as long as the mean distance',
		run => [ [ 0, q{SELECT test_hits_loop('near', 'far', 9, 20000)} ] ]
	},
	{
		title => 'a loop of half that length',
		run => [ [ 0, q{SELECT test_hits_loop('near', 'far', 4, 20000)} ] ]
	},
	{
		title => 'a session that moves',
		run => [
			[ 0, q{SELECT test_hits_loop('near', 'far', 3, 20000)} ],
			[ 1, q{SELECT test_hits_loop('near', 'far', 1, 40000)} ],
			[ 0, q{SELECT test_hits_loop('far', 'near', 4, 10000)} ]
		]
	});

my @table;
sample_one_of(10);
query('SELECT pg_sweep_reset_stats()');
query(q{SELECT test_hits_loop('near', 'far', 1, 10000)});
my $begun = query('SELECT sum(sampled) FROM pg_sweep_numa_hits');
cmp_ok($begun, '>=', 1500, "switched on: a session that ran without takes part, $begun of 20000 hits are sampled");
foreach my $load (@loads)
{
	my $title = $load->{title};
	my (@exact, @seconds);

	query('SELECT pg_sweep_reset_stats()');
	foreach my $part (@{ $load->{run} })
	{
		my ($at, $statement) = @$part;

		query("SET pg_sweep.numa_debug_node = $at");
		foreach my $row (count_exactly($statement))
		{
			my ($to, $hits, $seconds) = @$row;
			$exact[$at][$to] += $hits;
			$seconds[$at][$to] += $seconds;
		}
	}
	my %sampled = map { /^(\d+)\|(\d+)\|(.*)$/ ? ("$1 $2" => [ split /\|/, $3 ]) : () } split /\n/,
	  query('SELECT from_node, to_node, share_percent, error_percent, sampled FROM pg_sweep_numa_hits');
	query('SET pg_sweep.numa_debug_node = 0');

	foreach my $at (grep { defined $exact[$_] } 0, 1)
	{
		my $from = $sampled{"$at $at"};
		my $share = percent($exact[$at][$at], @{ $exact[$at] });
		my $timed = percent($seconds[$at][$at], @{ $seconds[$at] });
		my $all = sum0(map { ($sampled{"$at $_"} // [ 0, 0, 0 ])->[2] } 0, 1);

		cmp_ok($all, '>=', $least, "$title, node $at: $all hits are sampled");
		cmp_ok(abs($from->[0] - $share), '<=', $points,
			sprintf '%s, node %d: local share %.2f +- %.2f, exactly %.2f', $title, $at, @$from[ 0, 1 ], $share);
		cmp_ok($share, '>', 5, "$title, node $at: some of each");
		cmp_ok($share, '<', 95, "$title, node $at: not all local");
		cmp_ok(abs($share - $timed), '>', $points,
			sprintf '%s, node %d: by time it would be %.2f', $title, $at, $timed)
		  if $load->{by_time};
		push @table, sprintf '%-35s node %d: exact %6.2f  sampled %6.2f +- %.2f  (n = %d)  by time %6.2f',
		  $title, $at, $share, @$from[ 0, 1 ], $all, $timed;
	}
}
note($_) foreach @table;

# ---- the error ----

# If the view is right about the error, the squares of deviations, in units of the
# error, have a mean of 1: over 300 samples plus or minus 0.08.  Samples at a fixed
# distance, or ones that hang together, deviate less or more.
sample_one_of(100);
query(q{
CREATE TABLE deviations (share float8, exact float8, error float8);
DO $$
DECLARE exactly float8;
BEGIN
	FOR k IN 1 .. 300 LOOP
		PERFORM pg_sweep_reset_stats();
		SELECT 100.0 * sum(hits) FILTER (WHERE node = 0) / sum(hits) INTO exactly
		  FROM test_hits_count($s$SELECT test_hits_loop('near', 'far', 2, 10000)$s$)
		  JOIN pg_sweep_get_partitions() ON buffer >= first_buffer AND buffer < first_buffer + num_buffers;
		INSERT INTO deviations SELECT share_percent, exactly, error_percent
		  FROM pg_sweep_numa_hits WHERE from_node = 0 AND to_node = 0;
	END LOOP;
END $$;
});
is(query('SELECT count(*) FROM deviations'), 300, '300 samples of some 300 hits');
my ($squares, $within, $error) = split /\|/,
  query(q{SELECT avg(((share - exact) / error * 1.96) ^ 2), 100.0 * count(*) FILTER (WHERE abs(share - exact) <= error) / count(*),
  avg(error) FROM deviations});
note("mean square of deviations $squares of an error of $error points; $within % within it");
cmp_ok($squares, '>', 0.65, 'the error that the view states is not too large');
cmp_ok($squares, '<', 1.45, 'nor too small');
cmp_ok($within, '>=', 90, "95 of 100 shares are within it, here $within");

# ---- by core itself: each hit, each process ----

sample_one_of(1);
query(q{
CREATE FUNCTION hits_of(statement text, OUT core int8, OUT sampled int8) LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_sweep_reset_stats();
	core := test_hits_of_core();
	EXECUTE statement;
	core := test_hits_of_core() - core;
	SELECT sum(h.sampled) INTO sampled FROM pg_sweep_get_numa_hits() h;
END $$});
# one in which a process pins pages that it has pinned already
my $again = q{SELECT count(*) FROM far a, LATERAL (SELECT pad FROM far b WHERE b.i = a.i OFFSET 0) b};
foreach my $load (@loads[ 0 .. 3 ], { title => 'pages pinned twice', run => [ [ 0, $again ] ] })
{
	my ($core, $sampled) = split /\|/, query("SELECT * FROM hits_of(\$hits\$$load->{run}[0][1]\$hits\$)");
	cmp_ok($core, '>', 10000, "$load->{title}: $core hits");
	cmp_ok(abs($sampled - $core), '<=', 500, "$load->{title}: each of them is sampled ($sampled)");
}

sample_one_of(50);
my ($core, $sampled) = split /\|/, query(q{SELECT * FROM hits_of('SELECT test_hits_loop(''near'', ''far'', 9, 40000)')});
# 8000 plus or minus 89
cmp_ok(abs($sampled - $core / 50), '<=', 500, "one of 50: of $core hits, $sampled are sampled");

# The first hits of a process are sampled no more than others are: some hundreds of
# hits each, of a million one.
set_sampling(1_000_000);
$session->quit;
$node->restart;
$node->safe_psql('postgres', 'SELECT count(*) FROM near') foreach 1 .. 20;
cmp_ok($node->safe_psql('postgres', 'SELECT coalesce(sum(sampled), 0) FROM pg_sweep_numa_hits'),
	'<=', 3, 'not the first hit of each process');

# Nor the next one after each reload, which begins nothing anew
$session = $node->background_psql('postgres');
query('SELECT pg_sweep_reset_stats()');
foreach (1 .. 20)
{
	$node->reload;
	usleep(50_000);
	query(q{SELECT test_hits_loop('near', 'far', 9, 1)});
}
cmp_ok(query('SELECT coalesce(sum(sampled), 0) FROM pg_sweep_numa_hits'), '<=', 3, 'not the first hit after each reload');
$session->quit;

set_sampling(20);
$node->safe_psql('postgres', 'SELECT pg_sweep_reset_stats()');
# 20000 plus or minus 141, and those of catalogs
$node->safe_psql('postgres', q{SELECT test_hits_loop('near', 'far', 9, 1000)}) foreach 1 .. 40;
$sampled = $node->safe_psql('postgres', 'SELECT sum(sampled) FROM pg_sweep_numa_hits');
cmp_ok(abs($sampled - 20000), '<=', 1500, "40 processes: of 400000 hits, $sampled are sampled");

# ---- off again ----

set_sampling(0);
$node->safe_psql('postgres', 'SELECT pg_sweep_reset_stats()');
$node->safe_psql('postgres', 'SELECT count(*) FROM near');
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_sweep_numa_hits'), 0, 'switched off: nothing is sampled');

# ---- rights ----

$node->safe_psql('postgres', 'CREATE ROLE monitor IN ROLE pg_monitor; CREATE ROLE other');
is($node->safe_psql('postgres', 'SET ROLE monitor; SELECT count(*) FROM pg_sweep_numa_hits'), 0, 'pg_monitor may look');
my ($ret, $out, $err) = $node->psql('postgres', 'SET ROLE other; SELECT count(*) FROM pg_sweep_numa_hits');
like($err, qr/permission denied for view pg_sweep_numa_hits/, 'others may not');
$node->stop;

# ---- nodes that are not emulated: the kernel is asked ----

$node->append_conf('postgresql.conf', "pg_sweep.numa_debug_nodes = 0\npg_sweep.partitions = 0\n");

# Sampled hits, where the shim pretends other nodes; "moves" is called in between
sub hits_with
{
	my (%shim) = @_;
	my $moves = delete $shim{moves};

	{
		local %ENV = (%ENV, %shim);
		$ENV{LD_PRELOAD} = "$PostgreSQL::Test::Utils::tmp_check/numa_shim.so" if %shim;
		$node->start;
	}
	set_sampling(10);
	# processes that allocate buffers look at other nodes' pages, too
	$node->safe_psql('postgres', "SELECT count(*) FROM $_") foreach 'near', 'far';
	$session = $node->background_psql('postgres');
	# after this it allocates no buffer, and so does not ask for its node otherwise
	query(q{SELECT test_hits_loop('near', 'far', 1, 1000)});
	query('SELECT pg_sweep_reset_stats()');
	$moves->() if $moves;
	query(q{SELECT test_hits_loop('near', 'far', 1, 10000)});
	$session->quit;
	my $rows = $node->safe_psql('postgres',
		q{SELECT coalesce(to_node::text, 'NULL'), sum(sampled) BETWEEN 1500 AND 2500 FROM pg_sweep_numa_hits GROUP BY 1});
	set_sampling(0);
	$node->stop;
	return $rows;
}

SKIP:
{
	my @nodes_here = glob('/sys/devices/system/node/node[0-9]*');
	skip 'this machine has several NUMA nodes', 4 if @nodes_here > 1;

	is(hits_with(), '', 'one node: nothing is sampled');
	my $shim = "$PostgreSQL::Test::Utils::tmp_check/numa_shim.so";
	my $source = sweep_root() . '/test/numa/shim/numa_shim.c';
	my $runs_on = abs_path($PostgreSQL::Test::Utils::tmp_check) . '/runs_on';
	skip 'the shim does not compile here (gcc, libnuma-dev)', 3
	  if system("gcc -shared -fPIC -o '$shim' '$source' -ldl -lnuma >/dev/null 2>&1") != 0;

	is(hits_with(SHIM_NODES => 2), '0|t', 'two pretended nodes: all pages are on the only real one');
	is(hits_with(SHIM_NODES => 2, SHIM_DENY => 'get_mempolicy:3'), 'NULL|t', 'the kernel does not tell: NULL');

	# on a node that the server knows
	append_to_file($runs_on, "0 0\n");
	is( hits_with(
			SHIM_NODES => 2,
			SHIM_LISTS => '0-1;2-3',
			SHIM_RUNS_ON => $runs_on,
			moves => sub { unlink $runs_on; append_to_file($runs_on, "400 1\n") }),
		'0|t',
		'a process moves to a CPU that was not there at start');
}
done_testing();
