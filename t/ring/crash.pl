
# Sixteen COPYs with eager flush are killed repeatedly, with a standby following.
# Every commit is complete on both servers, no page is torn, and both have the same
# pages.  Meanwhile files are read without the server: no page is in a file before WAL
# is flushed up to its LSN.
#
# PG_SWEEP_RING_CRASHES sets how often they are killed; test/long/ring_crash sets 20.

use strict;
use warnings FATAL => 'all';

use List::Util qw(max min shuffle sum0);
use Math::BigInt;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RingTest;
use StressTest;
use SweepTest;
use Test::More;
use Time::HiRes qw(time usleep);

my $crashes = stress_number('PG_SWEEP_RING_CRASHES', 3, 1);
my $writers = 16;

# One COPY loads 3 MB, more than its ring, an eighth of the pool
my $rows = 12000;

# Tables of this size are truncated before the next round
my $enough = 200 * 1024 * 1024;

# fsync is on: flushing WAL must take its time
my $primary = sweep_node(
	'primary',
	init => { allows_streaming => 1, extra => ['--data-checksums'] },
	conf => q{
shared_buffers = 16MB
max_connections = 40
fsync = on
full_page_writes = on
checkpoint_timeout = 30s
max_wal_size = 192MB
# of the index, it would be a page for each row
wal_consistency_checking = 'heap, heap2'
pg_sweep.ring_eager_flush = on
});
$primary->start;
$primary->safe_psql('postgres', q{
CREATE EXTENSION pg_sweep;
CREATE EXTENSION amcheck;
CREATE EXTENSION pageinspect;
SELECT pg_create_physical_replication_slot('standby');
CREATE TABLE plain (writer int, i int, pad text);
CREATE TABLE indexed (LIKE plain);
CREATE INDEX indexed_i ON indexed (i);
CREATE TABLE done (writer int);
});
is($primary->safe_psql('postgres', q{SELECT current_setting('data_checksums') || ring_eager_flush FROM pg_sweep_status}),
	'ontrue', 'checksums and eager flush are on');

$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->append_conf('postgresql.conf', "primary_slot_name = 'standby'\nfsync = off\n");
$standby->start;

sub sql { return $primary->safe_psql('postgres', @_) }

# Rows in random order: the index is written everywhere
my @file = map {
	my $writer = $_;

	write_script(
		"rows.$writer",
		join '',
		map { "$writer\t$_\t" . ($_ * 7919 + $writer) . ('x' x (150 + $_ % 100)) . "\n" } shuffle 1 .. $rows)
} 0 .. $writers - 1;
(my $prefix = $file[0]) =~ s/0$//;

# Even ones into one table, odd ones into the other
my $script = write_script('copy.sql', qq{
BEGIN;
\\if :client_id % 2 = 0
COPY plain FROM '$prefix:client_id';
\\else
COPY indexed FROM '$prefix:client_id';
\\endif
INSERT INTO done VALUES (:client_id);
COMMIT;
});
my $log_prefix = "$PostgreSQL::Test::Utils::log_path/acknowledged";

sub start_copies
{
	my ($name, @how_long) = @_;

	return start_pgbench(
		$primary, $name,
		'--file' => $script,
		'--client' => $writers,
		'--jobs' => 4,
		'--log',
		'--log-prefix' => "$log_prefix.$name",
		@how_long);
}

# Commits that the server has acknowledged, by writer
sub acknowledged
{
	my ($name) = @_;
	my @count = (0) x $writers;

	for my $path (glob "$log_prefix.$name.*")
	{
		$count[ (split ' ', $_)[0] ]++ for split /\n/, slurp_file($path);
	}
	return @count;
}

# Writer, number of its commits, number of its rows, and their sum
sub contents
{
	my ($node) = @_;

	return $node->safe_psql('postgres', q{
SELECT coalesce(t.writer, d.writer), coalesce(d.commits, 0), coalesce(t.rows, 0), coalesce(t.sum, 0)
  FROM (SELECT writer, count(*) AS rows, sum(hashtextextended(i || pad, 0)) AS sum
          FROM (SELECT * FROM plain UNION ALL SELECT * FROM indexed) both_of_them GROUP BY writer) t
  FULL JOIN (SELECT writer, count(*) AS commits FROM done GROUP BY writer) d ON d.writer = t.writer
 ORDER BY 1});
}

# The sum that one COPY adds, by the server with eager flush off
my @expected;

sub note_expected
{
	sql('SET pg_sweep.ring_eager_flush = off; '
		  . join '', map { "COPY plain FROM '$file[$_]';\n" } 0 .. $writers - 1);
	for my $line (split /\n/, contents($primary))
	{
		my ($writer, $done, $are, $sum) = split /\|/, $line;

		die "$are rows have been loaded instead of $rows" if $are != $rows;
		$expected[$writer] = Math::BigInt->new($sum);
	}
	sql('TRUNCATE plain');
	return;
}

# The rows are exactly those of all commits; returns commits by writer.
sub check_contents
{
	my ($node, $title) = @_;
	my @committed = (0) x $writers;
	my @wrong;

	for my $line (split /\n/, contents($node))
	{
		my ($writer, $done, $are, $sum) = split /\|/, $line;

		$committed[$writer] = $done;
		push @wrong, $line
		  if $are != $done * $rows || $sum ne $expected[$writer]->copy->bmul($done)->bstr;
	}
	is_deeply(\@wrong, [], "$title: rows and sums are those of " . sum0(@committed) . ' commits');
	return @committed;
}

# The load is running, and pages were written eagerly.
sub wait_for_work
{
	my ($title) = @_;

	ok($primary->poll_query_until('postgres', q{SELECT eager > 1500 FROM pg_sweep_ring WHERE ring = 'bulkwrite'}),
		"$title: pages are written eagerly");
	return;
}

#
# WAL before data
#

# A check for watch_files(): the server verifies the checksums of some pages.  A page
# that is being written may fail at first.
sub check_some_checksums
{
	my ($session, $relative, $first, $some) = @_;
	my $numbers = join ',', map { $first + int(rand($some)) } 1 .. 20;

	# on a busy machine, the writer may be stopped in the middle
	for my $attempt (1 .. 250)
	{
		$numbers = $session->query_safe(qq{
SELECT string_agg(b::text, ',') FROM unnest('{$numbers}'::int[]) b, pg_read_binary_file('$relative', b * 8192, 8192, true) p
 WHERE length(p) = 8192 AND (page_header(p)).upper > 0 AND (page_header(p)).checksum <> page_checksum(p, b)});
		return '' if $numbers eq '';
		usleep(20_000);
	}
	return $numbers;
}

note_expected();
my $load = start_copies('watched', '--time' => 3600);
wait_for_work('WAL before data');
my $seen = watch_files($primary, 5, [qw(plain indexed indexed_i)], \&check_some_checksums);
is_deeply($seen->{early}, [], "WAL before data: none of $seen->{pages} pages is too early");
is_deeply($seen->{torn}, [], "WAL before data: and checksums are right in $seen->{checked} samples");
cmp_ok($seen->{pages}, '>', 5000, 'WAL before data: many have been read');
cmp_ok($seen->{nearest}, '<', 32 * 1024 * 1024, "WAL before data: soon after they were written ($seen->{nearest} bytes)");
cmp_ok(ring_counts($primary, 'bulkwrite')->{wal_flushes}, '>', 0, 'WAL before data: WAL was flushed for some');
is(stop_background($load), 128 + 15, 'WAL before data: the load is stopped');
is(background_stderr($load) =~ /ERROR|FATAL|PANIC/ ? background_stderr($load) : '', '', 'WAL before data: without an error');
ok($primary->poll_query_until('postgres', 'SELECT count(*) = 0 FROM pg_stat_progress_copy'), 'WAL before data: all COPYs have ended');
check_contents($primary, 'WAL before data');

#
# Crashes
#

# Kill all processes of the server at once: none can react to the end of another.
sub kill_all
{
	my $postmaster = (split /\n/, slurp_file($primary->data_dir . '/postmaster.pid'))[0];

	kill('STOP', $postmaster) or die "could not stop $postmaster: $!";
	my @children = grep { /^\d+$/ } split ' ', `ps -o pid= --ppid $postmaster`;

	die "the server has no children" if @children == 0;
	kill('KILL', @children);
	$primary->kill9;

	# the server cannot start before the last process was reaped
	my $until = time + $PostgreSQL::Test::Utils::timeout_default;
	usleep(10_000) while kill(0, $postmaster, @children) > 0 && time < $until;
	return;
}

my @committed = (0) x $writers;

for my $round (1 .. $crashes)
{
	my $name = "round_$round";
	my $offset = -s $primary->logfile;
	my $standby_offset = -s $standby->logfile;
	my $whole_server = $round % 2 == 0;

	if ($round == 1 || sql(q{SELECT pg_relation_size('plain') + pg_relation_size('indexed')}) > $enough)
	{
		sql('TRUNCATE plain, indexed, done');
		@committed = (0) x $writers;
	}
	sql('SELECT pg_sweep_reset_stats()');
	$load = start_copies($name, '--time' => 3600);
	wait_for_work($name);
	usleep(1_000_000 * rand);

	# between two of them, all may be waiting for the disk
	ok($primary->poll_query_until('postgres', "SELECT count(*) >= $writers / 2 FROM pg_stat_progress_copy"),
		"$name: COPYs are under way");
	if ($whole_server)
	{
		kill_all();
		check_interrupted($name, $load);
		$primary->start;
		like(slurp_file($primary->logfile, $offset), qr/redo starts at/, "$name: crash recovery");
		is_deeply([ unexpected_log_lines($primary, $offset, qr/FATAL:  the database system is/) ],
			[], "$name: no error in the log");
	}
	else
	{
		# preferably one that is writing
		my $victim = kill_backend($primary, qq{pid = (
SELECT pid FROM pg_stat_activity WHERE application_name = '$name'
 ORDER BY wait_event = 'DataFileWrite' DESC NULLS LAST, random() LIMIT 1)});

		check_interrupted($name, $load);
		check_recovered($primary, $offset, $victim, $name);
	}
	is(sql(q{SELECT sum(laps) FROM pg_sweep_ring}), 0, "$name: counts are reset");

	# no commit is lost, and none is invented
	my @before = @committed;
	my @acknowledged = acknowledged($name);
	@committed = check_contents($primary, $name);
	is_deeply(
		[ grep { ($committed[$_] - $before[$_] - $acknowledged[$_]) !~ /^[01]$/ } 0 .. $writers - 1 ],
		[], "$name: no writer has lost one of " . sum0(@acknowledged) . ' acknowledged commits');
	check_amcheck($primary, $name);

	# the same on the standby
	$primary->wait_for_catchup($standby);
	is(contents($standby), contents($primary), "$name: the standby has the same");
	is_deeply(
		[
			unexpected_log_lines(
				$standby, $standby_offset,
				# the walreceiver, while the primary is away
				qr/FATAL:  (?:could not (?:connect|receive data|send)|the database system is|streaming replication)/)
		],
		[],
		"$name: the standby logs no error");
}

#
# The standby's pages are the primary's
#

# The part of a heap page that must be the same: all but checksum, hints and free
# space.  Frozen tuples have no hints that differ.
sub comparable
{
	my ($page) = @_;
	my ($lower, $upper) = unpack('SS', substr($page, 12, 4));

	return '' if $upper == 0;
	# PD_ALL_VISIBLE alone; pd_prune_xid is a hint
	my $flags = unpack('S', substr($page, 10, 2)) & 4;
	return substr($page, 0, 8) . $flags . substr($page, 12, 8) . substr($page, 24, $lower - 24) . substr($page, $upper);
}

sub different_blocks
{
	my ($table) = @_;
	my @paths = map { relation_file($_, $table) } $primary, $standby;
	my $blocks = max(map { (-s $_) / 8192 } @paths);
	my $compared = 0;
	my @different;

	for (my $first = 0; $first < $blocks; $first += 1000)
	{
		my @ours = read_blocks($paths[0], $first, 1000);
		my @theirs = read_blocks($paths[1], $first, 1000);

		# extending a table is not logged: pages at the end may be zeros, or missing
		for my $i (0 .. max($#ours, $#theirs))
		{
			my ($one, $other) = map { defined $_ ? comparable($_) : '' } $ours[$i], $theirs[$i];

			push @different, $first + $i if $one ne $other;
			$compared++ if $one ne '';
		}
	}
	cmp_ok($compared, '>', 500, "$table: $compared pages are compared");
	return @different;
}

# with rows of every writer
$load = start_copies('last', '--transactions' => 1);
is(wait_for_background($load, 60), 0, 'at last: every writer succeeds') or diag(background_stderr($load));
@committed = check_contents($primary, 'at last');
cmp_ok(min(@committed), '>', 0, 'at last: and has commits');
sql('VACUUM (FREEZE) plain; VACUUM (FREEZE) indexed');
is(sql(q{SELECT sum(laps) > 0 FROM pg_sweep_ring WHERE ring = 'vacuum'}), 't', 'VACUUM has written eagerly, too');
check_contents($primary, 'after VACUUM');
$primary->wait_for_catchup($standby);
is(contents($standby), contents($primary), 'at last: the standby has the same');
$standby->safe_psql('postgres', 'CHECKPOINT');
is($standby->safe_psql('postgres', q{SELECT bt_index_check('indexed_i', heapallindexed => true)}), '', 'standby: amcheck passes the index');
is($standby->safe_psql('postgres', qq{SELECT v.* FROM (VALUES ('$_'::regclass)) t (r), verify_heapam(r) v}),
	'', "standby: amcheck passes $_")
  for 'plain', 'indexed';

my %path = map { $_ => relation_file($primary, $_) } 'plain', 'indexed';
sql('CHECKPOINT');
$primary->wait_for_catchup($standby);
$standby->safe_psql('postgres', 'CHECKPOINT');
is_deeply([ different_blocks($_) ], [], "$_: the standby has the same pages") for 'plain', 'indexed';

$primary->stop;
$standby->stop;
check_checksums($_) for $primary, $standby;
unlike(slurp_file($standby->logfile), qr/inconsistent page found|PANIC|TRAP/, 'standby: every page was as on the primary');
unlike(slurp_file($primary->logfile), qr/PANIC|TRAP|could not (?:read|write)|invalid page/, 'primary: no page was wrong');

done_testing();
