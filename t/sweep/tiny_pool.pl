
# The smallest possible pool, 16 buffers: everything works with every strategy.  The
# one error that such a pool may raise is raised when all buffers are pinned, and not
# when a single one is left.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

my $buffers = 16;
my $node = sweep_node('main', conf => qq{
shared_buffers = $buffers
max_connections = 20
# with wal_level = minimal, core pins up to 32 buffers at once when it logs a new
# table at commit (log_newpage_range), which is an error here on any server
wal_level = replica
# only the sessions below pin a buffer
bgwriter_lru_maxpages = 0
checkpoint_timeout = 1h
max_parallel_workers = 0
});
sub sql { return $node->safe_psql('postgres', $_[0]); }

$node->start;
sql('CREATE EXTENSION pg_sweep');

is(sql('SELECT buffers FROM pg_sweep_status'), $buffers, "the pool has $buffers buffers");

# Tables of one page with two rows, some for cursors and some to be read meanwhile,
# and a table that does not fit
my $readings = 20;
sql(join '',
	"CREATE TABLE large AS SELECT i, repeat('x', 900) AS pad FROM generate_series(1, 800) i;\n",
	map { "CREATE TABLE page_$_ AS SELECT generate_series(1, 2) AS i;\n" }
	  1 .. $buffers + $readings);
sql('VACUUM ANALYZE');

my $large = 'SELECT count(*), sum(i + length(pad)) FROM large';
my $large_expected = '800|' . (800 * 801 / 2 + 800 * 900);

#
# Ordinary work
#
for my $strategy (strategies($node))
{
	switch_to($node, $strategy);
	my $before = counter($node, $strategy, 'allocations');

	my $result = sql(q{
CREATE TABLE parent (id int PRIMARY KEY, name text);
CREATE TABLE child (id int, parent_id int REFERENCES parent, PRIMARY KEY (id));
INSERT INTO parent SELECT i, 'parent ' || i FROM generate_series(1, 500) i;
INSERT INTO child SELECT i, 1 + i % 500 FROM generate_series(1, 5000) i;
CREATE INDEX child_parent ON child (parent_id);
UPDATE child SET parent_id = 1 WHERE id <= 100;
DELETE FROM child WHERE id > 4900;
VACUUM (ANALYZE) child;
VACUUM FULL parent;
CLUSTER child USING child_parent;
REINDEX TABLE child;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SELECT count(*), sum(c.id), count(DISTINCT p.name) FROM child c JOIN parent p ON p.id = c.parent_id;
RESET enable_hashjoin;
SELECT count(*), sum(c.id), count(DISTINCT p.name) FROM child c JOIN parent p ON p.id = c.parent_id;
});
	is($result, "4900|12007450|500\n4900|12007450|500", "$strategy: DDL, joins and VACUUM work");

	# Sessions at once, each with a few pins of its own
	my $load = start_pgbench(
		$node,
		"tiny_$strategy",
		'--client' => 3,
		'--transactions' => 200,
		'--file' => write_script(
			"tiny_$strategy.sql", q{
\set id random(1, 4900)
UPDATE child SET parent_id = 1 + (parent_id + 1) % 500 WHERE id = :id;
SELECT count(*) FROM child c JOIN parent p ON p.id = c.parent_id WHERE p.id = 1 + :id % 500;
}));
	is(wait_for_background($load, 120), 0, "$strategy: three sessions work at once")
	  or diag(background_stderr($load));
	is(sql($large), $large_expected, "$strategy: a table of many pools is read");

	check_amcheck($node, $strategy);
	sql('DROP TABLE child, parent');
	cmp_ok(counter($node, $strategy, 'allocations') - $before,
		'>', 1000, "$strategy: it was this strategy that worked");
}

#
# All pinned.  A cursor that has fetched one row of two keeps the page pinned.  By
# then, the sessions have the catalogs in their caches.
#
sub open_cursors
{
	my ($session) = @_;

	$session->query_safe('BEGIN');
	$session->query_safe("DECLARE c$_ CURSOR FOR SELECT i FROM page_$_") for 1 .. $buffers;
	return;
}

# Read tables of one page, each of which takes the buffer of the one before.  Returns
# the number of rows.
sub read_pages
{
	my ($session) = @_;
	my $rows = 0;

	for my $i ($buffers + 1 .. $buffers + $readings)
	{
		$rows += () = $session->query_safe("SELECT i FROM page_$i") =~ /\d/g;
	}
	return $rows;
}

for my $strategy (strategies($node))
{
	my $holder = $node->background_psql('postgres', on_error_stop => 0);
	my $other = $node->background_psql('postgres', on_error_stop => 0);

	switch_to($node, $strategy);
	for my $session ($holder, $other)
	{
		open_cursors($session);
		$session->query_safe("FETCH c$_") for 1 .. 3;
		$session->query_safe('COMMIT');
		$session->query_safe($large);
		read_pages($session);
	}
	my $allocations = counter($node, $strategy, 'allocations');
	my $pinned = counter($node, $strategy, 'coalesce(pinned, 0)');
	my $failed = counter($node, $strategy, 'coalesce(failed, 0)');

	# Three left: a scan pins the page of its last row, the one it reads, and
	# the next one ahead of it
	open_cursors($holder);
	$holder->query_safe("FETCH c$_") for 1 .. $buffers - 3;
	is($other->query_safe($large),
		$large_expected, "$strategy: three unpinned buffers are enough for a scan");

	# One left
	is($holder->query_safe("FETCH c$_"), 1, "$strategy: page $_ can be pinned")
	  for $buffers - 2, $buffers - 1;
	for my $session ($other, $holder)
	{
		is( read_pages($session),
			2 * $readings,
			"$strategy: one unpinned buffer is enough to read pages, session "
			  . ($session == $holder ? 'that pinned the rest' : 'without pins'));
	}

	# None left
	is($holder->query_safe("FETCH c$buffers"), 1, "$strategy: the last buffer can be pinned");
	for my $try (1, 2)
	{
		$other->query($large);
		like($other->{stderr}, qr/^[^\n]*ERROR:  no unpinned buffers available\n?$/,
			"$strategy: then there is the error, try $try");
		$other->{stderr} = '';
	}

	# One again
	$holder->query_safe('CLOSE c1');
	is(read_pages($other), 2 * $readings, "$strategy: one unpinned again is enough again");
	$holder->query_safe('COMMIT');

	is($other->query_safe($large), $large_expected, "$strategy: everything works afterwards");
	is(sql($large), $large_expected, "$strategy: in new sessions, too");

	cmp_ok(counter($node, $strategy, 'allocations') - $allocations, '>', 3 * $readings,
		"$strategy: it was this strategy that was asked");
	if ($strategy ne 'stock')
	{
		# At least two laps for each error
		cmp_ok(counter($node, $strategy, 'pinned') - $pinned, '>=', 4 * $buffers,
			"$strategy: it looked at all of them");
		is(counter($node, $strategy, 'failed') - $failed, 2, "$strategy: and counted both errors");
	}
	$holder->quit;
	$other->quit;
}

$node->stop;
done_testing();
