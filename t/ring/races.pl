
# Eager flush of a ring, buffer by buffer: what a lap writes, in how many calls,
# and what it leaves alone because others use it, or because WAL would have to be
# flushed; nothing of that waits. Then everything at once.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../lib";

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RingTest;
use SweepTest;
use Test::More;

# The pool is so large that the limit of pins is none.
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

sub sql
{
	my ($query) = @_;

	return $node->safe_psql('postgres', $query);
}

# A lap over blocks 0 to $size - 1 of table t, each in the next slot, while somebody
# may hold some of them: counts and blocks written
sub check_lap
{
	my ($title, $how, $expected, $written, %held) = @_;
	my $holder;
	my $before;

	$ring->begin('t', $size);
	$ring->dirty('t', 0, $size, $how);
	$ring->flush_wal();

	if ($held{how})
	{
		my $blocks = join ',', @{ $held{blocks} };

		$holder = $node->background_psql('postgres');
		$holder->query_until(qr/holding/,
			"\\echo holding\nSELECT 'held for ' || test_ring_hold('t', '{$blocks}', '$held{how}');\n");
		$node->poll_query_until('postgres', 'SELECT test_ring_holding() = 1')
		  or die "$title: nobody holds";
	}

	my @io = $ring->stat_io('bulkwrite');
	my $flushed = $ring->flushed_upto;
	$before = ring_counts($node, 'bulkwrite');
	$ring->next_victims('t', $size, 1);
	is_delta($node, 'bulkwrite', $before, $expected, "$title: counts");
	is($ring->flushed_upto, $flushed, "$title: no WAL is flushed");

	my @io_after = $ring->stat_io('bulkwrite');
	is_deeply(
		[ map { $io_after[$_] - $io[$_] } 0, 1 ],
		[ $expected->{writes}, $expected->{victims} + ($expected->{eager} // 0) ],
		"$title: pg_stat_io has as many calls and blocks");

	if ($held{how})
	{
		is(sql('SELECT test_ring_holding()'), 1, "$title: nobody has waited for who holds them");
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
# Nobody else
#
check_lap('alone', 'logged',
	{ laps => 1, victims => 1, eager => 31, writes => 2 },
	[ 0 .. 31 ]);
my $before = ring_counts($node, 'bulkwrite');
$ring->next_victims('t', 33, 31);
is_delta($node, 'bulkwrite', $before, {}, 'a clean victim needs no lap');

# The lap ends where it began: what is dirtied behind the victim is the next one's
$ring->begin('t', $size);
$ring->dirty('t', 0, $size, 'logged');
$ring->flush_wal();
$ring->next_victims('t', 32, 5);
$ring->dirty('t', 32, 5, 'logged');
$ring->flush_wal();
$before = ring_counts($node, 'bulkwrite');
$ring->next_victims('t', 40, 27);
is_delta($node, 'bulkwrite', $before, {}, 'clean victims up to the dirty ones');
$ring->next_victims('t', 80, 1);
is_delta($node, 'bulkwrite', $before, { laps => 1, victims => 1, eager => 4, writes => 1, skipped_clean => 27 },
	'the rest of the ring is looked at once');
$ring->is_written('t', 32, 36, [ 32 .. 36 ], 'behind the victim');

# A ring that is not full
$ring->begin('t', $size);
$ring->dirty('t', 0, 20, 'logged');
$ring->flush_wal();
$before = ring_counts($node, 'bulkwrite');
$ring->next_victims('t', 40, 12);
is_delta($node, 'bulkwrite', $before, {}, 'empty slots need no lap');

#
# Others who use them
#
check_lap('pinned', 'logged',
	{ laps => 1, victims => 1, eager => 28, writes => 3, skipped_pinned => 3 },
	without(31, 5, 6, 20), how => 'pin', blocks => [ 5, 6, 20 ]);
check_lap('pinned and locked shared', 'logged',
	{ laps => 1, victims => 1, eager => 30, writes => 3, skipped_pinned => 1 },
	without(31, 1), how => 'shared', blocks => [1]);
check_lap('pinned and locked exclusively', 'logged',
	{ laps => 1, victims => 1, eager => 29, writes => 2, skipped_pinned => 2 },
	without(31, 16, 31), how => 'exclusive', blocks => [ 31, 16 ]);

# as if they had come after the look at the pins
check_lap('locked shared', 'logged',
	{ laps => 1, victims => 1, eager => 31, writes => 2 },
	[ 0 .. 31 ], how => 'shared unpinned', blocks => [ 1 .. 20 ]);
check_lap('locked exclusively', 'logged',
	{ laps => 1, victims => 1, eager => 27, writes => 5, skipped_locked => 4 },
	without(31, 3, 10, 11, 30), how => 'exclusive unpinned', blocks => [ 3, 10, 11, 30 ]);
check_lap('all locked', 'logged',
	{ laps => 1, victims => 1, writes => 1, skipped_locked => 31 },
	[0], how => 'exclusive unpinned', blocks => [ 1 .. 31 ]);
check_lap('I/O in progress', 'logged',
	{ laps => 1, victims => 1, eager => 29, writes => 4, skipped_io => 2 },
	without(31, 2, 9), how => 'io unpinned', blocks => [ 2, 9 ]);

# used
$ring->begin('t', $size);
$ring->dirty('t', 0, $size, 'logged');
$ring->flush_wal();
sql("SELECT test_ring_touch('t', '{4,5}', 1), test_ring_touch('t', '{12}', 4)");
$before = ring_counts($node, 'bulkwrite');
$ring->next_victims('t', 32, 1);
is_delta($node, 'bulkwrite', $before,
	{ laps => 1, victims => 1, eager => 28, writes => 4, skipped_used => 3 }, 'used by others: counts');
$ring->is_written('t', 0, 31, without(31, 4, 5, 12), 'used by others');

# clean
$ring->begin('t', $size);
$ring->dirty('t', 0, 10, 'logged');
$ring->next_victims('t', 10, 2);
$ring->dirty('t', 12, 20, 'logged');
$ring->flush_wal();
$before = ring_counts($node, 'bulkwrite');
$ring->next_victims('t', 32, 1);
is_delta($node, 'bulkwrite', $before,
	{ laps => 1, victims => 1, eager => 29, writes => 3, skipped_clean => 2 }, 'clean between dirty ones: counts');
$ring->is_written('t', 12, 31, [ 12 .. 31 ], 'clean between dirty ones');

# Who has been interrupted does not go on
$ring->begin('t', $size);
$ring->dirty('t', 0, $size, 'logged');
$ring->flush_wal();
$before = ring_counts($node, 'bulkwrite');
is($ring->query(q{SELECT test_ring_read_interrupted('t', 32)}), 1, 'interrupted: one victim');
is_delta($node, 'bulkwrite', $before, { laps => 1, victims => 1, writes => 1 }, 'interrupted: counts');
$ring->is_written('t', 0, 31, [0], 'interrupted');

#
# WAL
#

# The victim's, which is core's to flush: all that there is, for one call
$ring->begin('t', $size);
$ring->dirty('t', 0, $size, 'logged');
my $end = sql('SELECT pg_current_wal_insert_lsn()');
is(sql("SELECT min(lsn) > pg_current_wal_flush_lsn() FROM test_ring_buffers('t') WHERE dirty"),
	't', 'WAL of all pages is not flushed');
$before = ring_counts($node, 'bulkwrite');
$ring->next_victims('t', 32, 1);
is_delta($node, 'bulkwrite', $before,
	{ laps => 1, victims => 1, eager => 31, writes => 2, wal_flushes => 1 }, 'WAL for the victim: counts');
$ring->is_written('t', 0, 31, [ 0 .. 31 ], 'WAL for the victim');
is(sql("SELECT pg_current_wal_flush_lsn() >= '$end'"), 't', 'WAL for the victim: flushed');

# The others', which must not be flushed for them
$ring->begin('t', $size);
$ring->dirty('t', 0, 1, 'logged');
$ring->flush_wal();
$ring->dirty('t', 1, 20, 'logged');
$ring->dirty('t', 21, 3, 'unlogged');
$ring->dirty('t', 24, 8, 'logged');
my $flushed = $ring->flushed_upto;
$before = ring_counts($node, 'bulkwrite');
$ring->next_victims('t', 32, 1);
is_delta($node, 'bulkwrite', $before,
	{ laps => 1, victims => 1, eager => 3, writes => 2, skipped_wal => 28 }, 'WAL for the others: counts');
$ring->is_written('t', 0, 31, [ 0, 21, 22, 23 ], 'WAL for the others');
is($ring->flushed_upto, $flushed, 'WAL for the others: not flushed');

# The next victim is one of them
$before = ring_counts($node, 'bulkwrite');
$ring->next_victims('t', 33, 1);
is_delta($node, 'bulkwrite', $before,
	{ laps => 1, victims => 1, eager => 27, writes => 3, wal_flushes => 1, skipped_clean => 4 },
	'WAL for the next victim: counts');
$ring->is_written('t', 0, 31, [ 0 .. 31 ], 'WAL for the next victim');
cmp_ok(lsn_number($ring->flushed_upto), '>', lsn_number($flushed), 'WAL for the next victim: flushed');

# Where nothing else is to be expected, a lap gives up
$ring->begin('t', 200);
$ring->dirty('t', 0, 1, 'logged');
$ring->flush_wal();
$ring->dirty('t', 1, 199, 'logged');
$before = ring_counts($node, 'bulkwrite');
$ring->next_victims('t', 200, 1);
is_delta($node, 'bulkwrite', $before,
	{ laps => 1, victims => 1, writes => 1, skipped_wal => 64 }, 'many in a row that need WAL: counts');
$ring->is_written('t', 0, 199, [0], 'many in a row that need WAL');

# and does not go through a very large ring
$ring->make_table('long', 2550);
$ring->begin('long', 2500, 'vacuum');
$ring->dirty('long', 0, 2500, 'unlogged');
$before = ring_counts($node, 'vacuum');
$ring->next_victims('long', 2500, 1);
is_delta($node, 'vacuum', $before,
	{ laps => 1, victims => 1, eager => 2047, writes => 128 }, 'a ring of 20 MB: counts');
$ring->is_written('long', 0, 2499, [ 0 .. 2047 ], 'a ring of 20 MB');
sql('DROP TABLE long');

# No WAL at all, whatever the page says
$ring->make_table('unlogged', 40, 'UNLOGGED');
$ring->begin('unlogged', $size);
$ring->dirty('unlogged', 0, 10, 'unlogged');
$ring->dirty('unlogged', 10, 22, 'fake lsn');
$flushed = $ring->flushed_upto;
$before = ring_counts($node, 'bulkwrite');
$ring->next_victims('unlogged', 32, 1);
is_delta($node, 'bulkwrite', $before,
	{ laps => 1, victims => 1, eager => 31, writes => 2 }, 'unlogged pages: counts');
$ring->is_written('unlogged', 0, 31, [ 0 .. 31 ], 'unlogged pages');
is($ring->flushed_upto, $flushed, 'unlogged pages: no WAL is flushed');

# and a victim whose LSN is made up
$ring->begin('unlogged', 2);
$ring->dirty('unlogged', 0, 2, 'fake lsn');
$before = ring_counts($node, 'bulkwrite');
$ring->next_victims('unlogged', 2, 1);
is_delta($node, 'bulkwrite', $before,
	{ laps => 1, victims => 1, eager => 1, writes => 1 }, 'a victim with an LSN that is made up: counts');
sql('DROP TABLE unlogged');

#
# Neighbours
#
for my $limit (1, 3, 16, 127, 128)
{
	$ring->query("SET io_combine_limit = $limit");
	$ring->begin('t', 200);
	$ring->dirty('t', 0, 200, 'logged');
	$ring->flush_wal();
	$before = ring_counts($node, 'bulkwrite');
	$ring->next_victims('t', 200, 1);
	is_delta($node, 'bulkwrite', $before,
		{ laps => 1, victims => 1, eager => 199, writes => int((200 + $limit - 1) / $limit) },
		"up to $limit blocks a call: counts");
	$ring->is_written('t', 0, 199, [ 0 .. 199 ], "up to $limit blocks a call");
}
$ring->query('RESET io_combine_limit');

# Blocks of the same numbers' sequence, but of two tables; and every other block
$ring->clean('other');
$ring->begin('t', $size);
$ring->dirty('t', 0, 10, 'logged');
$ring->dirty('other', 10, 10, 'logged');
$ring->dirty('t', 20 + 2 * $_, 1, 'logged') for 0 .. 11;
$ring->flush_wal();
$before = ring_counts($node, 'bulkwrite');
$ring->next_victims('t', 100, 1);
is_delta($node, 'bulkwrite', $before,
	{ laps => 1, victims => 1, eager => 31, writes => 14 }, 'no neighbours: counts');
$ring->is_written('t', 0, 9, [ 0 .. 9 ], 'no neighbours: before');
$ring->is_written('other', 10, 19, [ 10 .. 19 ], 'no neighbours: of another table');
is_deeply([ $ring->written_blocks('t', 20, 23) ], [ map { 20 + 2 * $_ } 0 .. 11 ], 'no neighbours: every other block');
is_deeply([ $ring->written_blocks('t', 10, 10) ], [], 'no neighbours: and not in the wrong table');

# The border of two files, one of them with a hole up to there
my $segment = sql('SHOW segment_size');
my %unit = (kB => 1, MB => 1024, GB => 1024 * 1024);
$segment =~ /^(\d+)(kB|MB|GB)$/ or die "what is $segment?";
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
	$before = ring_counts($node, 'bulkwrite');
	$ring->next_victims('large', $border + 26, 1);
	is_delta($node, 'bulkwrite', $before,
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
is_delta($node, 'bulkwrite', $before->{bulkwrite}, {}, 'ring of VACUUM: is not the other one');
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
is_deeply([ map { $io_after[$_] - $io[$_] } 0, 1 ], [ 3, 3 ], 'off: pg_stat_io has a call a victim');
$ring->is_written('t', 0, 31, [ 0 .. 2 ], 'off');
ring_eager_flush($node, 'on');
$ring->next_victims('t', 35, 1);
is_delta($node, 'bulkwrite', $before,
	{ laps => 1, victims => 1, eager => 28, writes => 2, skipped_clean => 3 }, 'on again: counts');
$ring->is_written('t', 0, 31, [ 0 .. 31 ], 'on again');

#
# The table is gone meanwhile, or what the ring has of it
#
for my $how ('DROP TABLE gone', 'TRUNCATE gone')
{
	$ring->make_table('gone', 40);
	$ring->begin('t', $size);
	$ring->dirty('gone', 0, 20, 'logged');
	$ring->dirty('t', 20, 12, 'logged');
	sql($how);
	$before = ring_counts($node, 'bulkwrite');
	$ring->next_victims('t', 40, 20);
	is_delta($node, 'bulkwrite', $before, {}, "$how: pages that are gone need no lap");
	$ring->dirty('t', 40, 20, 'logged');
	$ring->flush_wal();
	$ring->next_victims('t', 60, 1);
	is_delta($node, 'bulkwrite', $before,
		{ laps => 1, victims => 1, eager => 31, writes => 3 }, "$how: counts after that");
	$ring->is_written('t', 20, 31, [ 20 .. 31 ], "$how: pages that have stayed");
	$ring->is_written('t', 40, 59, [ 40 .. 59 ], "$how: pages that have come");
}

$ring->make_table('gone', 40);
$ring->begin('t', $size);
$ring->dirty('t', 0, 1, 'logged');
$ring->dirty('gone', 0, 31, 'logged');
$ring->flush_wal();
sql("SELECT test_ring_truncate('gone', 11)");
$before = ring_counts($node, 'bulkwrite');
$ring->next_victims('t', 40, 1);
is_delta($node, 'bulkwrite', $before,
	{ laps => 1, victims => 1, eager => 11, writes => 2, skipped_clean => 20 }, 'cut: counts');
$ring->is_written('gone', 0, 10, [ 0 .. 10 ], 'cut: what is left');
is(-s relation_file($node, 'gone'), 11 * 8192, 'cut: the file is not longer than that');
sql('DROP TABLE gone');

# Somebody else's pages have come to its buffers: the free ones are taken first
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
is(scalar($ring->written_blocks('new', 0, 31)), $delta->{eager}, "another's pages in the ring: written, and right");
note("$delta->{eager} of another's pages were in the ring");
is(31 - scalar($ring->dirty_blocks('new')), $delta->{eager}, "another's pages in the ring: the others are dirty still");
$ring->is_quiet('new', "another's pages in the ring");
$other->quit;

$ring->continue_walwriter();
$ring->quit;

#
# All at once: two rings, of which others lock, change and log the same pages, and
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
is_deeply([ map { wait_for_background($_, $seconds) } @busy ], [ (0) x @busy ], 'all at once: nobody fails')
  or diag(map { background_stderr($_) } @busy);
is_deeply($seen->{early}, [], "all at once: WAL before data ($seen->{pages} pages, $seen->{nearest} bytes)");
cmp_ok($seen->{pages}, '>', 5000, 'all at once: many have been looked at');
$delta = ring_counts($node, 'bulkwrite');
note(join ', ', map { "$_ $delta->{$_}" } @ring_columns);
note("$_->{name}: " . slurp_file($_->{out})) for @busy[ 0 .. 3 ];
cmp_ok($delta->{eager}, '>', 1000, 'all at once: pages are written eagerly');
cmp_ok($delta->{skipped_pinned} + $delta->{skipped_locked} + $delta->{skipped_io}, '>', 0, 'all at once: and some are in use');
$ring->is_quiet('busy', 'all at once');
is(sql(q{SELECT test_ring_wrong('busy')}), '', 'all at once: every page is of one piece, in the file, too');
sql('CHECKPOINT');
is(sql(q{SELECT test_ring_wrong('busy')}), '', 'all at once: after a checkpoint');

check_what_is_left($node);

done_testing();
