
# Eager flush of a ring, buffer by buffer: what a lap writes, and in how many calls.
# It leaves alone what others use, and what needs a flush of WAL, without waiting.
# Then all of this under load.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RingTest;
use SweepTest;
use Test::More;

# The pool is large enough that the limit of pins has no effect.
my $node = quiet_node(q{
shared_buffers = 160MB
max_connections = 20
io_max_combine_limit = 128
io_combine_limit = 16
});
ok(has_ring_flush($node), 'the server has the patch');

my $ring = RingTest->new($node);

# Slots of the ring, unless a test says otherwise
my $size = 32;

sub sql { return $node->safe_psql('postgres', @_) }

# A lap over blocks 0 to $size - 1 of table t, each in the next slot, while another
# session may hold some of them: counts and blocks written
sub check_lap
{
	my ($title, $how, $expected, $written, %held) = @_;
	my $holder;
	my $before;

	$ring->fill('t', $size, $how);

	if ($held{how})
	{
		my $blocks = join ',', @{ $held{blocks} };

		$holder = $node->background_psql('postgres');
		$holder->query_until(qr/holding/,
			"\\echo holding\nSELECT 'held for ' || test_ring_hold('t', '{$blocks}', '$held{how}');\n");
		$node->poll_query_until('postgres', 'SELECT test_ring_holding() = 1')
		  or die "$title: no session holds the blocks";
	}

	my @io = $ring->stat_io('bulkwrite');
	my $flushed = $ring->flushed_upto;
	$before = ring_counts($node, 'bulkwrite');
	$ring->next_victims('t', $size, 1);
	is_delta($node, 'bulkwrite', $before, $expected, "$title: counts");
	is($ring->flushed_upto, $flushed, "$title: no WAL is flushed");

	my @io_after = $ring->stat_io('bulkwrite');
	is_deeply([ map { $io_after[$_] - $io[$_] } 0, 1 ],
		[ $expected->{writes}, $expected->{victims} + ($expected->{eager} // 0) ],
		"$title: pg_stat_io has as many calls and blocks");

	if ($held{how})
	{
		is(sql('SELECT test_ring_holding()'), 1, "$title: the lap has not waited for the holder");
		sql('SELECT test_ring_let_go()');
		$holder->quit;
	}
	$ring->is_written('t', 0, $size - 1, $written, $title);
	return;
}

sub without
{
	my ($last, @left_out) = @_;
	my %left_out = map { $_ => 1 } @left_out;

	return [ grep { !$left_out{$_} } 0 .. $last ];
}

$ring->make_table('t', 420);
$ring->make_table('other', 420);
$ring->stop_walwriter();

#
# No other process
#
check_lap('alone', 'logged', { laps => 1, victims => 1, eager => 31, writes => 2 }, [ 0 .. 31 ]);
$ring->is_lap('bulkwrite', 't', 33, 31, {}, 'a clean victim needs no lap');

# The lap ends where it began: pages dirtied behind the victim are for the next lap
$ring->fill('t', $size);
$ring->next_victims('t', 32, 5);
$ring->dirty('t', 32, 5, 'logged');
$ring->flush_wal();
$ring->is_lap('bulkwrite', 't', 40, 27, {}, 'clean victims up to the dirty ones');
$ring->is_lap('bulkwrite', 't', 80, 1,
	{ laps => 1, victims => 1, eager => 4, writes => 1, skipped_clean => 27 },
	'the rest of the ring is looked at once');
$ring->is_written('t', 32, 36, [ 32 .. 36 ], 'behind the victim');

# A ring that is not full
$ring->begin('t', $size);
$ring->dirty('t', 0, 20, 'logged');
$ring->flush_wal();
$ring->is_lap('bulkwrite', 't', 40, 12, {}, 'empty slots need no lap');

#
# Other processes use the buffers
#
check_lap('pinned', 'logged',
	{ laps => 1, victims => 1, eager => 28, writes => 3, skipped_in_use => 3 },
	without(31, 5, 6, 20), how => 'pin', blocks => [ 5, 6, 20 ]);
check_lap('pinned and locked shared', 'logged',
	{ laps => 1, victims => 1, eager => 30, writes => 3, skipped_in_use => 1 },
	without(31, 1), how => 'shared', blocks => [1]);
check_lap('pinned and locked exclusively', 'logged',
	{ laps => 1, victims => 1, eager => 29, writes => 2, skipped_in_use => 2 },
	without(31, 16, 31), how => 'exclusive', blocks => [ 31, 16 ]);

# as if the lock was taken after the look at the pins
check_lap('locked shared', 'logged', { laps => 1, victims => 1, eager => 31, writes => 2 },
	[ 0 .. 31 ], how => 'shared unpinned', blocks => [ 1 .. 20 ]);
check_lap('locked exclusively', 'logged',
	{ laps => 1, victims => 1, eager => 27, writes => 5, skipped_in_use => 4 },
	without(31, 3, 10, 11, 30), how => 'exclusive unpinned', blocks => [ 3, 10, 11, 30 ]);
check_lap('all locked', 'logged', { laps => 1, victims => 1, writes => 1, skipped_in_use => 31 },
	[0], how => 'exclusive unpinned', blocks => [ 1 .. 31 ]);
check_lap('I/O in progress', 'logged',
	{ laps => 1, victims => 1, eager => 29, writes => 4, skipped_in_use => 2 },
	without(31, 2, 9), how => 'io unpinned', blocks => [ 2, 9 ]);

# used
$ring->fill('t', $size);
sql("SELECT test_ring_touch('t', '{4,5}', 1), test_ring_touch('t', '{12}', 4)");
$ring->is_lap('bulkwrite', 't', 32, 1,
	{ laps => 1, victims => 1, eager => 28, writes => 4, skipped_in_use => 3 },
	'used by others: counts');
$ring->is_written('t', 0, 31, without(31, 4, 5, 12), 'used by others');

# clean
$ring->begin('t', $size);
$ring->dirty('t', 0, 10, 'logged');
$ring->next_victims('t', 10, 2);
$ring->dirty('t', 12, 20, 'logged');
$ring->flush_wal();
$ring->is_lap('bulkwrite', 't', 32, 1,
	{ laps => 1, victims => 1, eager => 29, writes => 3, skipped_clean => 2 },
	'clean between dirty ones: counts');
$ring->is_written('t', 12, 31, [ 12 .. 31 ], 'clean between dirty ones');

# An interrupted process does not go on
$ring->fill('t', $size);
my $before = ring_counts($node, 'bulkwrite');
is($ring->query(q{SELECT test_ring_read_interrupted('t', 32)}), 1, 'interrupted: one victim');
is_delta($node, 'bulkwrite', $before, { laps => 1, victims => 1, writes => 1 }, 'interrupted: counts');
$ring->is_written('t', 0, 31, [0], 'interrupted');

#
# WAL
#

# Core flushes WAL for the victim: all WAL in one call
$ring->begin('t', $size);
$ring->dirty('t', 0, $size, 'logged');
my $end = sql('SELECT pg_current_wal_insert_lsn()');
is(sql("SELECT min(lsn) > pg_current_wal_flush_lsn() FROM test_ring_buffers('t') WHERE dirty"),
	't', 'WAL of all pages is not flushed');
$ring->is_lap('bulkwrite', 't', 32, 1,
	{ laps => 1, victims => 1, eager => 31, writes => 2, wal_flushes => 1 },
	'WAL for the victim: counts');
$ring->is_written('t', 0, 31, [ 0 .. 31 ], 'WAL for the victim');
is(sql("SELECT pg_current_wal_flush_lsn() >= '$end'"), 't', 'WAL for the victim: flushed');

# WAL is not flushed for the other pages
$ring->begin('t', $size);
$ring->dirty('t', 0, 1, 'logged');
$ring->flush_wal();
$ring->dirty('t', 1, 20, 'logged');
$ring->dirty('t', 21, 3, 'unlogged');
$ring->dirty('t', 24, 8, 'logged');
my $flushed = $ring->flushed_upto;
$ring->is_lap('bulkwrite', 't', 32, 1,
	{ laps => 1, victims => 1, eager => 3, writes => 2, skipped_wal => 28 },
	'WAL for the others: counts');
$ring->is_written('t', 0, 31, [ 0, 21, 22, 23 ], 'WAL for the others');
is($ring->flushed_upto, $flushed, 'WAL for the others: not flushed');

# The next victim is one of them
$ring->is_lap('bulkwrite', 't', 33, 1,
	{ laps => 1, victims => 1, eager => 27, writes => 3, wal_flushes => 1, skipped_clean => 4 },
	'WAL for the next victim: counts');
$ring->is_written('t', 0, 31, [ 0 .. 31 ], 'WAL for the next victim');
cmp_ok(lsn_number($ring->flushed_upto), '>', lsn_number($flushed), 'WAL for the next victim: flushed');

# A lap gives up after many pages that need WAL
$ring->begin('t', 200);
$ring->dirty('t', 0, 1, 'logged');
$ring->flush_wal();
$ring->dirty('t', 1, 199, 'logged');
$ring->is_lap('bulkwrite', 't', 200, 1, { laps => 1, victims => 1, writes => 1, skipped_wal => 64 },
	'many pages that need WAL: counts');
$ring->is_written('t', 0, 199, [0], 'many pages that need WAL');

# and does not go through the whole of a very large ring
$ring->make_table('long', 2550);
$ring->begin('long', 2500, 'vacuum');
$ring->dirty('long', 0, 2500, 'unlogged');
$ring->is_lap('vacuum', 'long', 2500, 1,
	{ laps => 1, victims => 1, eager => 2047, writes => 128 }, 'a ring of 20 MB: counts');
$ring->is_written('long', 0, 2499, [ 0 .. 2047 ], 'a ring of 20 MB');
sql('DROP TABLE long');

# Unlogged pages need no WAL, whatever their LSN
$ring->make_table('unlogged', 40, 'UNLOGGED');
$ring->begin('unlogged', $size);
$ring->dirty('unlogged', 0, 10, 'unlogged');
$ring->dirty('unlogged', 10, 22, 'fake lsn');
$flushed = $ring->flushed_upto;
$ring->is_lap('bulkwrite', 'unlogged', 32, 1,
	{ laps => 1, victims => 1, eager => 31, writes => 2 }, 'unlogged pages: counts');
$ring->is_written('unlogged', 0, 31, [ 0 .. 31 ], 'unlogged pages');
is($ring->flushed_upto, $flushed, 'unlogged pages: no WAL is flushed');

# and a victim with a fake LSN
$ring->begin('unlogged', 2);
$ring->dirty('unlogged', 0, 2, 'fake lsn');
$ring->is_lap('bulkwrite', 'unlogged', 2, 1, { laps => 1, victims => 1, eager => 1, writes => 1 },
	'a victim with a fake LSN: counts');
sql('DROP TABLE unlogged');

#
# Neighbours
#
for my $limit (1, 3, 16, 127, 128)
{
	$ring->query("SET io_combine_limit = $limit");
	$ring->fill('t', 200);
	$ring->is_lap('bulkwrite', 't', 200, 1,
		{ laps => 1, victims => 1, eager => 199, writes => int((200 + $limit - 1) / $limit) },
		"up to $limit blocks per call: counts");
	$ring->is_written('t', 0, 199, [ 0 .. 199 ], "up to $limit blocks per call");
}
$ring->query('RESET io_combine_limit');

# Consecutive numbers, but in two tables; and every other block
$ring->clean('other');
$ring->begin('t', $size);
$ring->dirty('t', 0, 10, 'logged');
$ring->dirty('other', 10, 10, 'logged');
$ring->dirty('t', 20 + 2 * $_, 1, 'logged') for 0 .. 11;
$ring->flush_wal();
$ring->is_lap('bulkwrite', 't', 100, 1,
	{ laps => 1, victims => 1, eager => 31, writes => 14 }, 'no neighbours: counts');
$ring->is_written('t', 0, 9, [ 0 .. 9 ], 'no neighbours: before');
$ring->is_written('other', 10, 19, [ 10 .. 19 ], 'no neighbours: of another table');
is_deeply([ $ring->written_blocks('t', 20, 23) ], [ map { 20 + 2 * $_ } 0 .. 11 ], 'no neighbours: every other block');
is_deeply([ $ring->written_blocks('t', 10, 10) ], [], 'no neighbours: and not in the wrong table');

# The border between two files, the first of which is a hole
my $segment = sql('SHOW segment_size');
my %unit = (kB => 1, MB => 1024, GB => 1024 * 1024);
$segment =~ /^(\d+)(kB|MB|GB)$/ or die "unknown segment_size: $segment";
my $border = $1 * $unit{$2} / 8;

SKIP:
{
	skip 'there are no segments, or very large ones', 1 if $border == 0 || $border > 1024 * 1024;

	$ring->make_table('large', 1);
	my $path = relation_file($node, 'large');
	$ring->quit;
	$ring->continue_walwriter();
	$node->stop;
	truncate($path, $border * 8192) or die "could not extend $path: $!";
	append_to_file("$path.1", "\0" x (8192 * 40));
	$node->start;
	$ring->stop_walwriter();
	$ring->connect;
	is(sql("SELECT pg_relation_size('large') / 8192"), $border + 40, 'a table of two files');

	$ring->begin('large', $size);
	$ring->dirty('large', $border - 6, $size, 'logged');
	$ring->flush_wal();
	$ring->is_lap('bulkwrite', 'large', $border + 26, 1,
		{ laps => 1, victims => 1, eager => 31, writes => 3 }, 'two files: counts');
	is_deeply([ $ring->written_blocks('large', $border - 6, 6) ], [ $border - 6 .. $border - 1 ], 'two files: the first');
	my @second = read_blocks("$path.1", 0, 26);
	is_deeply([ grep { !$ring->has_filled($second[$_], $border + $_) } 0 .. 25 ], [], 'two files: the second');
	$ring->is_quiet('large', 'two files');
	sql('DROP TABLE large');
}

#
# Kinds of rings
#
$ring->begin('t', $size, 'vacuum');
$ring->dirty('t', 0, $size, 'logged');
$before = { map { $_ => ring_counts($node, $_) } qw(bulkwrite vacuum) };
my @io = $ring->stat_io('vacuum');
$ring->next_victims('t', 32, 1);
is_delta($node, 'vacuum', $before->{vacuum},
	{ laps => 1, victims => 1, eager => 31, writes => 2, wal_flushes => 1 }, 'ring of VACUUM: counts');
my @io_after = $ring->stat_io('vacuum');
is_deeply([ map { $io_after[$_] - $io[$_] } 0, 1 ], [ 2, 32 ], 'ring of VACUUM: pg_stat_io');
is_delta($node, 'bulkwrite', $before->{bulkwrite}, {}, 'ring of VACUUM: not counted as the other');
$ring->is_written('t', 0, 31, [ 0 .. 31 ], 'ring of VACUUM');

$ring->begin('t', $size, 'bulkread');
$ring->dirty('t', 0, $size, 'logged');
$ring->flush_wal();
$before = { map { $_ => ring_counts($node, $_) } qw(bulkwrite vacuum) };
$ring->next_victims('t', 32, 1);
is_delta($node, $_, $before->{$_}, {}, "ring of large reads: is not counted as $_") for qw(bulkwrite vacuum);
$ring->is_written('t', 0, 31, [0], 'ring of large reads');

#
# Off: core's own path, in a session that had it on
#
$ring->begin('t', $size);
$ring->dirty('t', 0, $size, 'logged');
ring_eager_flush($node, 'off');
$before = ring_counts($node, 'bulkwrite');
@io = $ring->stat_io('bulkwrite');
$ring->next_victims('t', 32, 3);
is_delta($node, 'bulkwrite', $before, {}, 'off: nothing is counted');
@io_after = $ring->stat_io('bulkwrite');
is_deeply([ map { $io_after[$_] - $io[$_] } 0, 1 ], [ 3, 3 ], 'off: pg_stat_io has one call per victim');
$ring->is_written('t', 0, 31, [ 0 .. 2 ], 'off');
ring_eager_flush($node, 'on');
$ring->next_victims('t', 35, 1);
is_delta($node, 'bulkwrite', $before,
	{ laps => 1, victims => 1, eager => 28, writes => 2, skipped_clean => 3 }, 'on again: counts');
$ring->is_written('t', 0, 31, [ 0 .. 31 ], 'on again');

#
# The table, or the ring's pages of it, are gone meanwhile
#
for my $how ('DROP TABLE gone', 'TRUNCATE gone')
{
	$ring->make_table('gone', 40);
	$ring->begin('t', $size);
	$ring->dirty('gone', 0, 20, 'logged');
	$ring->dirty('t', 20, 12, 'logged');
	sql($how);
	$ring->is_lap('bulkwrite', 't', 40, 20, {}, "$how: removed pages need no lap");
	$ring->dirty('t', 40, 20, 'logged');
	$ring->flush_wal();
	$ring->is_lap('bulkwrite', 't', 60, 1,
		{ laps => 1, victims => 1, eager => 31, writes => 3 }, "$how: counts after that");
	$ring->is_written('t', 20, 31, [ 20 .. 31 ], "$how: older pages");
	$ring->is_written('t', 40, 59, [ 40 .. 59 ], "$how: new pages");
}

$ring->make_table('gone', 40);
$ring->begin('t', $size);
$ring->dirty('t', 0, 1, 'logged');
$ring->dirty('gone', 0, 31, 'logged');
$ring->flush_wal();
sql("SELECT test_ring_truncate('gone', 11)");
$ring->is_lap('bulkwrite', 't', 40, 1,
	{ laps => 1, victims => 1, eager => 11, writes => 2, skipped_clean => 20 }, 'truncated: counts');
$ring->is_written('gone', 0, 10, [ 0 .. 10 ], 'truncated: what is left');
is(-s relation_file($node, 'gone'), 11 * 8192, 'truncated: the file is not longer than that');
sql('DROP TABLE gone');

# Pages of another session are in its buffers: free buffers are used first
$ring->make_table('gone', 40);
$ring->make_table('new', 40);
$ring->begin('t', $size);
$ring->dirty('t', 0, 1, 'logged');
$ring->dirty('gone', 0, 31, 'logged');
$ring->flush_wal();
sql('DROP TABLE gone');
my $other = $node->background_psql('postgres');
$other->query_safe("SELECT test_ring_make('bulkwrite', 100)");
$other->query_safe("SELECT test_ring_write('new', 0, 31, 'logged', $ring->{version})");
$ring->flush_wal();
$before = ring_counts($node, 'bulkwrite');
$ring->next_victims('t', 40, 1);
my $delta = ring_delta($node, 'bulkwrite', $before);
is($delta->{eager} + $delta->{skipped_clean}, 31, "another's pages in the ring: counts");
is(scalar($ring->written_blocks('new', 0, 31)), $delta->{eager}, "another's pages in the ring: written correctly");
note("$delta->{eager} of another's pages were in the ring");
is(31 - scalar($ring->dirty_blocks('new')), $delta->{eager}, "another's pages in the ring: the others are still dirty");
$ring->is_quiet('new', "another's pages in the ring");
$other->quit;

$ring->continue_walwriter();
$ring->quit;

#
# Load: two rings, other processes that lock, change and log the same pages, and
# checkpoints that write them
#
my $seconds = 6;
my $milliseconds = 1000 * $seconds;
$ring->make_table('busy', 1000);
sql('SELECT pg_sweep_reset_stats()');
my @busy = (
	psql_in_background($node, 'small_ring', "SELECT test_ring_make('bulkwrite', 32)", "SELECT test_ring_work('busy', $milliseconds)"),
	psql_in_background($node, 'large_ring', "SELECT test_ring_make('bulkwrite', 200)", "SELECT test_ring_work('busy', $milliseconds)"),
	psql_in_background($node, 'disturb_1', "SELECT test_ring_disturb('busy', $milliseconds)"),
	psql_in_background($node, 'disturb_2', "SELECT test_ring_disturb('busy', $milliseconds)"),
	psql_in_background($node, 'checkpoints', ('SELECT pg_sleep(0.2)', 'CHECKPOINT') x (4 * $seconds)));
my $seen = watch_files($node, $seconds - 1, ['busy']);
is_deeply([ map { wait_for_background($_, $seconds) } @busy ], [ (0) x @busy ], 'load: no session fails')
  or diag(map { background_stderr($_) } @busy);
is_deeply($seen->{early}, [], "load: WAL before data ($seen->{pages} pages, $seen->{nearest} bytes)");
cmp_ok($seen->{pages}, '>', 5000, 'load: many pages were read');
$delta = ring_counts($node, 'bulkwrite');
note(join ', ', map { "$_ $delta->{$_}" } @ring_columns);
note("$_->{name}: " . slurp_file($_->{out})) for @busy[ 0 .. 3 ];
cmp_ok($delta->{eager}, '>', 1000, 'load: pages are written eagerly');
cmp_ok($delta->{skipped_in_use}, '>', 0, 'load: and some are in use');
$ring->is_quiet('busy', 'load');
is(sql(q{SELECT test_ring_wrong('busy')}), '', 'load: no page is torn, in the pool or in the file');
sql('CHECKPOINT');
is(sql(q{SELECT test_ring_wrong('busy')}), '', 'load: after a checkpoint');

check_what_is_left($node);

done_testing();
