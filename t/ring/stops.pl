
# A lap through a ring is stopped between any two of its steps, while other processes
# use the same buffer: they lock it, log a change, write it, set a hint bit, or drop
# the table and use the buffer for another one.  WAL comes before data, and no change
# of another process is lost.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RingTest;
use SweepTest;
use Test::More;
use Time::HiRes qw(usleep);

my $node = quiet_node(q{
shared_buffers = 32MB
max_connections = 10
});
my $ring = RingTest->new($node);
my $other = RingTest->new($node);

sub sql { return $node->safe_psql('postgres', @_) }

# A ring of four: a victim and three blocks without neighbours.  So no write is
# pending when the lap looks at one of them.
my @blocks = (0, 10, 20, 30);

sub fill_ring
{
	my ($how, @tables) = @_;

	$ring->begin('t', 4);
	$ring->dirty($tables[$_] // 't', $blocks[$_], 1, $how) for 0 .. 3;
	$ring->flush_wal();
	return;
}

# Start a lap that stops before this step of block 10.
sub start_lap
{
	my ($place) = @_;

	$ring->query("SELECT test_ring_instrument(true), test_ring_stop_at('$place', 10)");
	$ring->{session}->query_until(qr/started/, "\\echo started\nSELECT test_ring_read('t', 300, 1);\n");
	$node->poll_query_until('postgres', 'SELECT test_ring_stopped() = 1') or die "no lap stops at $place";
	return;
}

# Let it go on; returns its counts.
sub end_lap
{
	sql('SELECT test_ring_go()');
	my $result = $ring->query('SELECT test_ring_last_lap()');
	$result =~ s/^1\n//;
	return $result;
}

sub blocks_of
{
	my ($name, @are) = @_;

	return [ grep { my $block = $_; grep { $_ == $block } @blocks } @are ];
}

sub check_stop
{
	my ($title, %case) = @_;

	fill_ring($case{how});
	start_lap($case{place});
	$case{meanwhile}->();
	my $flushed = $ring->flushed_upto;
	is(end_lap(), $case{counts}, "$title: counts");
	is($ring->flushed_upto, $flushed, "$title: no WAL is flushed");
	$case{afterwards}->() if $case{afterwards};
	is_deeply(blocks_of('t', $ring->written_blocks('t', 0, 31)), $case{written}, "$title: in the file");
	is_deeply(blocks_of('t', $ring->dirty_blocks('t')), $case{dirty}, "$title: dirty");
	$ring->is_quiet('t', $title);
	sql('CHECKPOINT');
	is_deeply(blocks_of('t', $ring->written_blocks('t', 0, 31)), $case{finally} // \@blocks, "$title: in the file in the end");
	return;
}

my $holder;

sub hold
{
	my ($how) = @_;

	$holder = psql_in_background($node, 'holder', "SELECT test_ring_hold('t', '{10}', '$how')");
	$node->poll_query_until('postgres', 'SELECT test_ring_holding() = 1') or die 'no session holds the block';
	return;
}

sub let_go
{
	is(sql('SELECT test_ring_holding()'), 1, 'the lap has not waited for the holder');
	sql('SELECT test_ring_let_go()');
	is(wait_for_background($holder, 0), 0, 'the holder lets go');
	return;
}

# Change block 10 with WAL, which is not flushed
sub change
{
	$other->{version} = $ring->{version} + 1000;
	$other->dirty('t', 10, 1, 'logged');
	return;
}

$ring->make_table('t', 400);
$other->make_ring(4);
$ring->stop_walwriter();

check_stop('no other process', place => 'write', how => 'logged',
	meanwhile => sub { },
	counts => 'victims 1, eager 3, writes 4',
	written => \@blocks, dirty => []);

#
# After a look without any lock
#
check_stop('pinned by then', place => 'pin', how => 'logged',
	meanwhile => sub { hold('pin') }, afterwards => \&let_go,
	counts => 'victims 1, eager 2, writes 3, skipped_in_use 1',
	written => [ 0, 20, 30 ], dirty => [10]);

check_stop('written by then', place => 'pin', how => 'logged',
	meanwhile => sub { sql(q{SELECT test_ring_write_out('t', 10)}) },
	counts => 'victims 1, eager 2, writes 3, skipped_clean 1',
	written => \@blocks, dirty => []);

check_stop('used by then', place => 'pin', how => 'logged',
	meanwhile => sub { sql(q{SELECT test_ring_touch('t', '{10}', 3)}) },
	counts => 'victims 1, eager 2, writes 3, skipped_in_use 1',
	written => [ 0, 20, 30 ], dirty => [10]);

check_stop('changed by then', place => 'pin', how => 'logged', meanwhile => \&change,
	counts => 'victims 1, eager 2, writes 3, skipped_wal 1', written => [ 0, 20, 30 ],
	dirty => [10], finally => [ 0, 20, 30 ]);

# Another table's page by then
$ring->make_table('gone', 40);
$ring->make_table('new', 40);
fill_ring('logged', 't', 'gone', 'gone', 'gone');
$other->make_ring(8);
start_lap('pin');
sql('DROP TABLE gone');
$other->{version} = $ring->{version};
$other->dirty('new', $_, 1, 'unlogged') for 0, 10, 20, 30, 31, 32;
my $lap = end_lap();
my ($eager) = $lap =~ /eager (\d+)/;
note("dropped by then: $lap");
ok($eager, 'dropped by then: another page is written');
is(scalar($ring->written_blocks('new', 0, 40)), $eager, 'dropped by then: to its own table');
is(scalar($ring->dirty_blocks('new')), 6 - $eager, 'dropped by then: and no other is clean');
$ring->is_quiet('new', 'dropped by then');
$other->make_ring(4);

#
# Pinned, not locked
#
check_stop('pinned, changed by then', place => 'lock', how => 'logged', meanwhile => \&change,
	counts => 'victims 1, eager 2, writes 3, skipped_wal 1', written => [ 0, 20, 30 ],
	dirty => [10], finally => [ 0, 20, 30 ]);
is(substr((read_blocks(relation_file($node, 't'), 10, 1))[0], 24, 4), pack('L', $other->{version}),
	'pinned, changed by then: the change is in the file in the end');

check_stop('pinned, locked by then', place => 'lock', how => 'logged',
	meanwhile => sub { hold('exclusive') }, afterwards => \&let_go,
	counts => 'victims 1, eager 2, writes 3, skipped_in_use 1',
	written => [ 0, 20, 30 ], dirty => [10]);

check_stop('pinned, locked shared by then', place => 'lock', how => 'logged',
	meanwhile => sub { hold('shared') }, afterwards => \&let_go,
	counts => 'victims 1, eager 3, writes 4',
	written => \@blocks, dirty => []);

check_stop('pinned, written by then', place => 'lock', how => 'logged',
	meanwhile => sub { sql(q{SELECT test_ring_write_out('t', 10)}) },
	counts => 'victims 1, eager 2, writes 3, skipped_in_use 1',
	written => \@blocks, dirty => []);

#
# Pinned and locked, and its LSN was read
#
check_stop('locked, written by then', place => 'io', how => 'logged',
	meanwhile => sub { sql(q{SELECT test_ring_write_out('t', 10)}) },
	counts => 'victims 1, eager 2, writes 3, skipped_in_use 1',
	written => \@blocks, dirty => []);

check_stop('locked, being written by then', place => 'io', how => 'logged',
	meanwhile => sub { hold('io unpinned') }, afterwards => \&let_go,
	counts => 'victims 1, eager 2, writes 3, skipped_in_use 1',
	written => [ 0, 20, 30 ], dirty => [10]);

# The hint comes to a clean page, which thereby gets an LSN, too
check_stop('locked, written and hinted by then', place => 'io', how => 'unlogged',
	meanwhile => sub {
		sql(q{SELECT test_ring_write_out('t', 10)});
		sql(q{SELECT test_ring_hint('t', 10)});
		is(sql(q{SELECT dirty AND lsn > pg_current_wal_flush_lsn() FROM test_ring_buffers('t') WHERE block = 10}),
			't', 'WAL of the hint is not flushed');
	},
	counts => 'victims 1, eager 2, writes 3, skipped_wal 1',
	written => \@blocks, dirty => [10]);

#
# I/O begun
#
check_stop('I/O begun, hinted by then', place => 'write', how => 'logged',
	meanwhile => sub { sql(q{SELECT test_ring_hint('t', 10)}) },
	counts => 'victims 1, eager 3, writes 4',
	written => \@blocks, dirty => [10]);

# Others wait for it, and go on
fill_ring('logged');
start_lap('write');
my @waiting = (
	psql_in_background($node, 'checkpoint', 'CHECKPOINT'),
	psql_in_background($node, 'writer', "SELECT test_ring_write_out('t', 10)"),
	psql_in_background($node, 'changer', "SELECT test_ring_make('bulkwrite', 4), test_ring_write('t', 10, 1, 'logged', 1)"));
ok( $node->poll_query_until('postgres', q{
SELECT count(*) = 3 FROM pg_stat_activity
 WHERE backend_type = 'client backend' AND (wait_event IN ('CheckpointStart', 'CheckpointDone', 'BufferIo', 'BufferContent'))}),
	'I/O begun: a checkpoint, a writer and a process with a change wait');
# the checkpoint may write the next ones first
like(end_lap(), qr/^victims 1, eager [123], writes [234]/, 'I/O begun, others wait: counts');
is_deeply([ map { wait_for_background($_, 0) } @waiting ], [ 0, 0, 0 ], 'I/O begun: they go on');
sql('CHECKPOINT');
$ring->is_quiet('t', 'I/O begun, others have waited');
is_deeply([ $ring->dirty_blocks('t') ], [], 'I/O begun, others have waited: all is written');

# DROP TABLE waits, too: no page is written to a removed file
$ring->make_table('gone', 40);
fill_ring('logged', 't', 'gone', 'gone', 'gone');
my $file = relation_file($node, 'gone');
start_lap('write');
my $drop = psql_in_background($node, 'drop', 'DROP TABLE gone');
usleep(300_000);
ok(-s $file, 'I/O begun: the file is not removed meanwhile');
like(end_lap(), qr/^victims 1, eager [123], writes [234]/, 'I/O begun, a table dropped: counts');
is(wait_for_background($drop, 0), 0, 'I/O begun, a table dropped: DROP TABLE succeeds');
is(-s $file // 0, 0, 'I/O begun, a table dropped: the file is gone');

# The extension's own again
$ring->query('SELECT test_ring_instrument(false)');
fill_ring('logged');
$ring->is_lap('bulkwrite', 't', 300, 1,
	{ laps => 1, victims => 1, eager => 3, writes => 4 }, "the extension's own code, not the copy");

$ring->continue_walwriter();
$ring->quit;
$other->quit;
check_what_is_left($node);

done_testing();
