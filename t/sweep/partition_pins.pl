# Pinned buffers: a partition without an unpinned buffer passes the request on to the
# nearest one.  The last unpinned buffer is found wherever it is.  There is an error
# only if all are pinned.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

# The strategy: another file gives another
my $strategy = shift(@ARGV) // 'partitioned';

my $buffers = 256;
my $node = sweep_node('main', conf => qq{
shared_buffers = $buffers
max_connections = 20
pg_sweep.strategy = $strategy
pg_sweep.numa_debug_nodes = 4
pg_sweep.partitions = 8
# only the sessions below pin or write a buffer
bgwriter_lru_maxpages = 0
bgwriter_delay = 10s
checkpoint_timeout = 1h
});
sub sql { return $node->safe_psql('postgres', $_[0]); }

$node->start;
require_modules($node, 'measure_sweep', 'test_pins');
sql(q{
	CREATE EXTENSION pg_sweep; CREATE EXTENSION measure_sweep; CREATE EXTENSION test_pins;
	CREATE TABLE pages (pad text); ALTER TABLE pages ALTER pad SET STORAGE PLAIN});

# Run a statement on a node in a new session while buffers are pinned.  A first run
# without pins fills the catalog caches.  Returns the error, or 'fine'.
sub with_pins
{
	my ($pinned, $numa_node, $statement) = @_;

	return (
		split /\n/,
		sql(qq{
			SET pg_sweep.numa_debug_node = $numa_node;
			CREATE TEMP TABLE pinned AS SELECT ARRAY($pinned)::int4[] AS pinned;
			SELECT coalesce(test_pins_with_buffers('{}', '$statement'), 'fine');
			SELECT pg_sweep_reset_stats() IS NULL;
			SELECT coalesce(test_pins_with_buffers(pinned, '$statement'), 'fine') FROM pinned}))
	  [-1];
}

sub all_but
{
	my ($but) = @_;
	return "SELECT generate_series(0, $buffers - 1) EXCEPT SELECT unnest('{$but}'::int4[])";
}

sub partitions
{
	my (@partitions) = @_;
	my $in = join(', ', @partitions);
	return "SELECT generate_series(first_buffer, first_buffer + num_buffers - 1) "
	  . "FROM pg_sweep_partitions WHERE partition IN ($in)";
}

# The partitions that served the last statement, which allocates 1000 buffers.  The
# asking session is on any node; its own catalogs take about a hundred buffers.
sub served
{
	return sql(q{SELECT string_agg(partition::text, ' ' ORDER BY partition) FROM pg_sweep_partitions WHERE allocations >= 300}
	);
}

#
# One partition after the other is pinned.  Balance is off, so only pins send a
# request elsewhere.
#
$node->append_conf('postgresql.conf', 'pg_sweep.balance = off');
$node->restart;

# A session's home is one of the two partitions of its node
my $allocate = 'SELECT measure_sweep_exact(1000, 0)';
for my $numa_node (0, 2)
{
	my ($mine, $neighbour) = $numa_node == 0 ? (0, 1) : (2, 3);
	my @own = (2 * $numa_node, 2 * $numa_node + 1);
	my @near = (2 * ($numa_node ^ 1), 2 * ($numa_node ^ 1) + 1);
	my $far = join ' ', grep { $_ / 4 < 1 xor $numa_node < 2 } 0 .. 7;

	is(with_pins('SELECT 1 WHERE false', $numa_node, $allocate),
		'fine', "node $numa_node, nothing pinned");
	my $home = served();
	like($home, qr/^(?:$own[0]|$own[1])$/, "it allocates at home, $home");

	is(with_pins(partitions($home), $numa_node, $allocate),
		'fine', "node $numa_node, home is pinned");
	my ($other) = grep { $_ != $home } @own;
	is(served(), $other, 'the other partition of the node serves it');

	is(with_pins(partitions(@own), $numa_node, $allocate),
		'fine', "node $numa_node, the node is pinned");
	like(served(), qr/^(?:$near[0]|$near[1])$/, 'the nearest node serves it');

	is(with_pins(partitions(@own, @near), $numa_node, $allocate),
		'fine', "node $numa_node, the socket is pinned");
	my $by = served();
	ok(index($far, $by) >= 0, "the other socket serves it: $by of $far");
}
is(sql(q{
		SELECT sum(redirected_in) = sum(redirected_out),
			   sum(redirected_out) FILTER (WHERE node = 2) >= 1000,
			   sum(redirected_in) FILTER (WHERE node < 2) >= 1000,
			   sum(local_allocations) FILTER (WHERE node < 2) < 100
		FROM pg_sweep_partitions}),
	't|t|t|t', 'requests served elsewhere are counted as sent on, and not as local')
  or diag(sql('SELECT * FROM pg_sweep_partitions'));

#
# With balance, other partitions serve, too
#
$node->append_conf('postgresql.conf', 'pg_sweep.balance = on');
$node->restart;
is(with_pins(partitions(0 .. 6), 0, $allocate), 'fine', 'seven of eight partitions are pinned');
is(served(), 7, 'the eighth serves all requests');

#
# None, and one, in every strategy
#
for my $strategy (strategies($node))
{
	switch_to($node, $strategy);
	my $insert = q{INSERT INTO pages VALUES (repeat($$x$$, 7000))};
	is(with_pins("SELECT generate_series(0, $buffers / 4 - 1)", 1, $insert),
		'fine', "$strategy: with a quarter of the buffers pinned, a page is added");
	is(with_pins(all_but(''), 1, $_), 'XX000: no unpinned buffers available',
		"$strategy: an error if all buffers are pinned: $_")
	  for $insert, $allocate;
	is(sql(qq{
		SELECT failed > 0 AND pinned >= $buffers
			   AND looked_at = allocations - failed + usage_taken + pinned + lost_races
		FROM pg_sweep_strategies WHERE strategy = '$strategy'}),
		't', "$strategy: the failure is counted, and looks add up")
	  if $strategy ne 'stock';

	# Each buffer is the only unpinned one once, unused or used a moment ago
	my $failures = sql(qq{
		CREATE TEMP TABLE failed (buffer int, usage int, failure text);
		DO \$\$
		DECLARE
			failure text;
		BEGIN
			FOR buffer IN -1 .. $buffers - 1 LOOP
				FOR usage IN 0 .. 5 BY 5 LOOP
					failure := test_pins_with_buffers(
						CASE WHEN buffer >= 0 THEN ARRAY(@{[ all_but('') ]} EXCEPT SELECT buffer) ELSE '{}' END,
						format('SELECT measure_sweep_exact(3, %s)', usage));
					IF failure IS NOT NULL THEN
						INSERT INTO failed VALUES (buffer, usage, failure);
					END IF;
				END LOOP;
			END LOOP;
		END \$\$;
		SELECT buffer, usage, failure FROM failed LIMIT 10});
	is($failures, '', "$strategy: the only unpinned buffer is found, whichever it is");
	is(sql('SELECT measure_sweep_exact(1000, 0) IS NULL'),
		'f', "$strategy: afterwards, all is well");
}

#
# While home and another partition are pinned, the one after home gets all requests that
# have found only pins, so its hand gets ahead.  It must serve again without pins.
#
$node->append_conf('postgresql.conf', "shared_buffers = 4096\npg_sweep.partitions = 4\npg_sweep.strategy = $strategy\n");
$node->restart;
is(with_pins(partitions(0, 3), 0, 'SELECT measure_sweep_exact(100000, 0)'), 'fine', 'two of four are pinned for long');
cmp_ok(sql('SELECT max(laps) - min(laps) FROM pg_sweep_partitions'), '>', 5, 'and a hand is far ahead');
bgwriter_cycle($node) for 1 .. 2;
sql('SELECT pg_sweep_reset_stats()');
sql('SELECT measure_sweep_exact(20000, 0)');
cmp_ok(sql('SELECT min(allocations) FROM pg_sweep_partitions'), '>', 4000,
	'without pins, each serves its share')
  or diag(sql('SELECT partition, laps, allocations FROM pg_sweep_partitions'));

$node->stop;
done_testing();
