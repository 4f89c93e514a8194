
=pod

=head1 NAME

RingTest - rings, their counts and their files for the tests of eager flush

=head1 SYNOPSIS

  use RingTest;

  my $node = sweep_node('main');
  $node->start;
  ring_eager_flush($node, 'on');
  my $before = ring_counts($node, 'bulkwrite');
  ...
  my $delta = ring_delta($node, 'bulkwrite', $before);

=head1 DESCRIPTION

Switching, counts, and the contents of a table's files, read without the server.

An object is a session with its own ring (test/ring/test_ring):

  my $ring = RingTest->new($node);
  $ring->make_table('t', 100);
  $ring->begin('t', 32);
  $ring->dirty('t', 0, 32, 'logged');
  $ring->next_victims('t', 32, 1);
  $ring->is_written('t', 0, 31, [ 0 .. 31 ], 'the whole ring');
  $ring->quit;

=cut

package RingTest;

use strict;
use warnings FATAL => 'all';

use Exporter 'import';
use List::Util qw(max min);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use StressTest;
use SweepTest;
use Test::More;
use Time::HiRes qw(time usleep);

our @EXPORT = qw(
  @ring_columns ring_eager_flush has_ring_flush
  ring_counts ring_delta is_delta
  relation_file read_blocks lsn_number watch_files
  quiet_node psql_in_background check_what_is_left
);

# All counters but the time
our @ring_columns = qw(
  laps victims eager writes wal_flushes skipped_clean skipped_in_use
  skipped_wal
);

# Whether the server has the patch
sub has_ring_flush
{
	my ($node) = @_;

	return $node->safe_psql('postgres', 'SELECT ring_eager_flush IS NOT NULL FROM pg_sweep_status') eq 't';
}

# A started server on which only the test writes pages or flushes WAL: no background
# writer, no checkpoint, and a WAL writer that does little.  Skips the test if
# test/ring/test_ring is missing.
sub quiet_node
{
	my ($conf) = @_;
	my $node = sweep_node(
		'main',
		init => { extra => ['--data-checksums'] },
		conf => qq{
bgwriter_lru_maxpages = 0
checkpoint_timeout = 1h
max_wal_size = 1GB
wal_writer_delay = 10s
io_method = sync
pg_sweep.ring_eager_flush = on
$conf});

	require_modules($node, 'test_ring');
	$node->start;
	$node->safe_psql('postgres', q{
CREATE EXTENSION pg_sweep;
CREATE EXTENSION test_ring;
CREATE EXTENSION pg_buffercache;
});
	return $node;
}

# Another session, for wait_for_background()
sub psql_in_background
{
	my ($node, $name, @queries) = @_;

	return run_in_background(
		$name, 'psql', '--no-psqlrc', '--quiet', '--tuples-only', '--no-align',
		'--set' => 'ON_ERROR_STOP=1',
		'--host' => $node->host,
		'--port' => $node->port,
		'--dbname' => 'postgres',
		map { ('--command' => $_) } @queries);
}

# Stop the server, and check its log and all checksums.
sub check_what_is_left
{
	my ($node) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is_deeply([ unexpected_log_lines($node, 0) ], [], 'no error in the log');
	$node->stop;
	check_checksums($node);
	return;
}

# Switch eager flush for all processes, and wait until new ones have it.
sub ring_eager_flush
{
	my ($node, $value) = @_;

	$node->safe_psql('postgres', "ALTER SYSTEM SET pg_sweep.ring_eager_flush = $value");
	$node->reload;
	$node->poll_query_until('postgres', "SELECT ring_eager_flush = '$value' FROM pg_sweep_status")
	  or die "ring_eager_flush could not be set to $value";
	return;
}

# The counters of a kind of ring, by column
sub ring_counts
{
	my ($node, $kind) = @_;
	my %counts;

	@counts{@ring_columns} = split /\|/,
	  $node->safe_psql('postgres',
		'SELECT ' . join(', ', @ring_columns) . " FROM pg_sweep_ring WHERE ring = '$kind'");
	return \%counts;
}

# What was added since, by column
sub ring_delta
{
	my ($node, $kind, $before) = @_;
	my $after = ring_counts($node, $kind);

	return { map { $_ => $after->{$_} - $before->{$_} } @ring_columns };
}

# Compare exactly: counters that are not named are 0.
sub is_delta
{
	my ($node, $kind, $before, $expected, $title) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is_deeply(
		ring_delta($node, $kind, $before),
		{ (map { $_ => 0 } @ring_columns), %$expected }, $title);
}

# Path of a segment of a table's main fork
sub relation_file
{
	my ($node, $table, $segment) = @_;
	my $path = $node->data_dir . '/'
	  . $node->safe_psql('postgres', "SELECT pg_relation_filepath('$table')");

	return $segment ? "$path.$segment" : $path;
}

# The blocks of a file from one on; fewer at its end
sub read_blocks
{
	my ($path, $first, $blocks) = @_;
	my $data = '';

	open(my $file, '<:raw', $path) or die "could not open $path: $!";
	sysseek($file, $first * 8192, 0) or die "could not seek in $path: $!";
	while (length($data) < $blocks * 8192)
	{
		my $got = sysread($file, $data, $blocks * 8192 - length($data), length($data));

		die "could not read $path: $!" unless defined $got;
		last if $got == 0;
	}
	close $file;
	return map { substr($data, $_ * 8192, 8192) } 0 .. int(length($data) / 8192) - 1;
}

# The LSN in the header of a page
sub page_lsn
{
	my ($page) = @_;
	my ($high, $low) = unpack('LL', $page);

	return $high * 2**32 + $low;
}

# An LSN in PostgreSQL's notation as a number
sub lsn_number
{
	my ($lsn) = @_;

	$lsn =~ m{^([0-9A-F]+)/([0-9A-F]+)$} or die "\"$lsn\" is no LSN";
	return hex($1) * 2**32 + hex($2);
}

# Read the files of tables for some seconds, or longer on a slow machine.  After a
# page was read, WAL must be flushed up to its LSN.  Returns
#   early    where this did not hold
#   pages    the number of pages read
#   nearest  the least distance in bytes from a newest page to the end of flushed WAL
#   torn     errors of $check, which is called for each piece that was read, with
#            session, path for the server, first block, number of blocks
#   checked  the number of these calls
sub watch_files
{
	my ($node, $seconds, $tables, $check) = @_;
	my $session = $node->background_psql('postgres');
	$session->set_query_timer_restart;
	my @files = map {
		[ $_, relation_file($node, $_), $node->safe_psql('postgres', "SELECT pg_relation_filepath('$_')") ]
	} @$tables;
	my $least = 5001;
	my $until = time + $seconds;
	my $deadline = $until + $PostgreSQL::Test::Utils::timeout_default;
	my %seen = (pages => 0, checked => 0, nearest => 2**62, early => [], torn => []);

	while (time < $until || $seen{pages} < $least && time < $deadline)
	{
		my ($name, $path, $relative) = @{ $files[ rand @files ] };
		my $blocks = int((-s $path) / 8192);
		my $some = min($blocks, 1000);
		my $first = int(rand($blocks - $some + 1));
		my @pages = grep { substr($_, 14, 2) ne "\0\0" } read_blocks($path, $first, $some);

		# nothing yet
		usleep(10_000), next if @pages == 0;

		my $newest = max(map { page_lsn($_) } @pages);
		my $flushed = lsn_number($session->query_safe('SELECT pg_current_wal_flush_lsn()'));

		push @{ $seen{early} }, "$name, blocks from $first on: $newest, $flushed" if $newest > $flushed;
		$seen{nearest} = min($seen{nearest}, $flushed - $newest);
		$seen{pages} += @pages;
		if ($check)
		{
			my $wrong = $check->($session, $relative, $first, $some);

			push @{ $seen{torn} }, "$name: $wrong" if $wrong ne '';
			$seen{checked}++;
		}
	}
	$session->quit;
	return \%seen;
}

#
# A session with a ring
#

sub new
{
	my ($class, $node) = @_;
	my $self = bless { node => $node, version => 0 }, $class;

	$self->connect;
	return $self;
}

sub connect
{
	my ($self) = @_;

	$self->{session} = $self->{node}->background_psql('postgres', on_error_stop => 0);
	$self->{session}->set_query_timer_restart;
	$self->{pid} = $self->query('SELECT pg_backend_pid()');
	return;
}

sub quit
{
	my ($self) = @_;

	$self->{session}->quit;
	return;
}

# A query that must succeed
sub query
{
	my ($self, $query) = @_;

	return $self->{session}->query_safe($query);
}

# The stderr of a query that may fail
sub stderr_of
{
	my ($self, $query) = @_;
	my $session = $self->{session};

	$session->{stderr} = '';
	$session->query($query);

	my $stderr = $session->{stderr};
	$session->{stderr} = '';
	return $stderr;
}

# A query of another session
sub sql
{
	my ($self, $query) = @_;

	return $self->{node}->safe_psql('postgres', $query);
}

# While the WAL writer is stopped, WAL is flushed only by processes that must.
sub stop_walwriter
{
	my ($self) = @_;

	$self->{walwriter} = $self->sql(q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'});
	kill('STOP', $self->{walwriter}) or die "could not stop $self->{walwriter}: $!";
	return;
}

sub continue_walwriter
{
	my ($self) = @_;

	kill('CONT', $self->{walwriter}) or die "could not continue $self->{walwriter}: $!";
	return;
}

sub flushed_upto
{
	my ($self) = @_;

	return $self->sql('SELECT pg_current_wal_flush_lsn()');
}

# Flush all WAL.
sub flush_wal
{
	my ($self) = @_;

	$self->sql('CREATE TABLE IF NOT EXISTS flush_wal (i int); INSERT INTO flush_wal VALUES (1)');
	return;
}

# A table of zeros, no block of which is in the pool
sub make_table
{
	my ($self, $name, $blocks, $kind) = @_;

	$kind //= '';
	$self->sql(qq{
DROP TABLE IF EXISTS $name;
CREATE $kind TABLE $name (i int);
SELECT test_ring_extend('$name', $blocks);
});
	$self->clean($name);
	return;
}

# Clean the whole pool, and evict a table.
sub clean
{
	my ($self, $name) = @_;

	$self->sql("CHECKPOINT; SELECT pg_buffercache_evict_relation('$name')");
	return;
}

sub make_ring
{
	my ($self, $slots, $kind) = @_;
	my $got;

	$kind //= 'bulkwrite';
	$got = $self->query("SELECT test_ring_make('$kind', $slots)");
	die "the ring has $got slots instead of $slots" if $got != $slots;
	return;
}

# Begin with a new ring, no block of the table in the pool, and a new version of
# pages.  The end of a WAL segment, which would flush WAL, must not be near.
sub begin
{
	my ($self, $name, $slots, $kind) = @_;

	$self->sql(q{
SELECT pg_switch_wal()
 WHERE (pg_current_wal_insert_lsn() - '0/0') % pg_size_bytes(current_setting('wal_segment_size'))
       > pg_size_bytes(current_setting('wal_segment_size')) / 2});
	$self->clean($name);
	$self->make_ring($slots, $kind);
	$self->{version}++;
	return;
}

# Make blocks dirty, each in the next slot if it was not in the pool.  $how: see
# test_ring_write().
sub dirty
{
	my ($self, $name, $first, $blocks, $how) = @_;

	$self->query("SELECT test_ring_write('$name', $first, $blocks, '$how', $self->{version})");
	return;
}

# Begin with a ring full of dirty blocks, their WAL flushed.
sub fill
{
	my ($self, $name, $slots, $how) = @_;

	$self->begin($name, $slots);
	$self->dirty($name, 0, $slots, $how // 'logged');
	$self->flush_wal();
	return;
}

# Use the next victims, for blocks that are not in the pool.
sub next_victims
{
	my ($self, $name, $first, $blocks) = @_;
	my $read = $self->query("SELECT test_ring_read('$name', $first, $blocks)");

	die "$read instead of $blocks blocks were not in the pool" if $read != $blocks;
	return;
}

# The next victims add exactly these counts to a kind of ring.
sub is_lap
{
	my ($self, $kind, $name, $first, $blocks, $expected, $title) = @_;
	my $before = ring_counts($self->{node}, $kind);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$self->next_victims($name, $first, $blocks);
	return is_delta($self->{node}, $kind, $before, $expected, $title);
}

# Whether a page has the current version
sub has_filled
{
	my ($self, $page, $block) = @_;

	return substr($page, 24) eq pack('Q', ($block << 32) | $self->{version}) x ((8192 - 24) / 8);
}

# Blocks, of some from one on, whose current version is in the file
sub written_blocks
{
	my ($self, $name, $first, $blocks) = @_;
	my @pages = read_blocks(relation_file($self->{node}, $name), $first, $blocks);

	return grep { $self->has_filled($pages[ $_ - $first ], $_) } $first .. $first + $#pages;
}

sub dirty_blocks
{
	my ($self, $name) = @_;

	return split /\n/, $self->sql("SELECT block FROM test_ring_buffers('$name') WHERE dirty ORDER BY 1");
}

# A lap has left no trace in any buffer of a table.
sub is_quiet
{
	my ($self, $name, $title) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is(
		$self->sql("SELECT * FROM test_ring_buffers('$name') WHERE pins > 0 OR io_in_progress OR locked"),
		'', "$title: no pin, no lock and no I/O is left");
}

# Of blocks $first to $last, the expected ones and no others are written, in the pool
# and in the file, and the lap has left no trace.
sub is_written
{
	my ($self, $name, $first, $last, $expected, $title) = @_;
	my %written = map { $_ => 1 } @$expected;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is_deeply([ $self->written_blocks($name, $first, $last - $first + 1) ],
		$expected, "$title: these blocks are in the file");
	is_deeply([ grep { $_ >= $first && $_ <= $last } $self->dirty_blocks($name) ],
		[ grep { !$written{$_} } $first .. $last ], "$title: the others are still dirty");
	$self->is_quiet($name, $title);
	return;
}

# The writes of this session in pg_stat_io: calls, blocks
sub stat_io
{
	my ($self, $context) = @_;

	$self->query('SELECT pg_stat_force_next_flush()');
	return split /\|/, $self->sql(qq{
SELECT sum(writes), sum(write_bytes) / 8192 FROM pg_stat_get_backend_io($self->{pid})
 WHERE object = 'relation' AND context = '$context'});
}

1;
