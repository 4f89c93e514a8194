# "no unpinned buffers available" is raised only when all buffers are pinned, and
# afterwards everything goes on.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

# So few buffers that one backend can pin them all
my $node = sweep_node('pins', conf => "shared_buffers = 256kB\nmax_connections = 8\nautovacuum = off\n");
my $buffers = 32;
sub sql { return $node->safe_psql('postgres', $_[0]); }

$node->start;
require_modules($node, 'test_pins');

sql(q{
	CREATE EXTENSION pg_sweep;
	CREATE EXTENSION test_pins;
	CREATE TABLE t AS SELECT i, repeat('x', 1000) AS pad FROM generate_series(1, 2000) AS i;
	CREATE TABLE pages (pad text);
	ALTER TABLE pages ALTER pad SET STORAGE PLAIN;
	CHECKPOINT});

# Run a statement while this number of pins is held.  A first run in the same
# session fills its catalog caches; the second one reads no catalog.
sub with_pins
{
	my ($pins, $statement) = @_;
	my ($status, $out, $err) = $node->psql(
		'postgres', qq{
		$statement;
		SELECT 'answer: ' || coalesce(test_pins_with_blocks('t', 0, '$statement'), 'fine');
		SELECT 'answer: ' || coalesce(test_pins_with_blocks('t', $pins, '$statement'), 'fine')});
	return $status == 0 ? ($out =~ /.*answer: (.*)/s)[0] : $err;
}

foreach my $strategy (strategies($node))
{
	switch_to($node, $strategy);
	my $insert = q{INSERT INTO pages VALUES (repeat($$x$$, 7000))};

	is(with_pins($buffers / 4, $insert), 'fine',
		"$strategy: with a quarter of the buffers pinned, a page is added");
	like(with_pins($buffers, $insert),
		qr/no unpinned buffers available/, "$strategy: with all $buffers pinned, none is");
	is(sql('SELECT count(*) FROM t'), 2000, "$strategy: the next session has them all again");

	next if $strategy eq 'stock';
	is(sql(qq{
		SELECT failed > 0 AND pinned >= $buffers
			   AND looked_at = allocations - failed + usage_taken + pinned + lost_races
		FROM pg_sweep_strategies WHERE strategy = '$strategy'}),
		't', "$strategy: the failure is counted, and looks add up");
}

$node->stop;
done_testing();
