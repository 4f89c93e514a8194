
# Eager flush of rings as users see it: on and off, the counts of each command, and
# the same data as without.  With all kinds of tables, in the smallest pool, and with
# files that cannot be written.
#
# t/ring/races.pl has laps buffer by buffer, t/ring/crash.pl has crashes.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use RingTest;
use StressTest;
use SweepTest;
use Test::More;

# A ring of bulk writes has an eighth of the pool, 512 buffers.  Only the test writes
# pages.  WAL segments are small, because a test below limits the size of files.
my $node = sweep_node(
	'main',
	init => { extra => [ '--data-checksums', '--wal-segsize=1' ] },
	conf => q{
shared_buffers = 32MB
max_connections = 10
bgwriter_lru_maxpages = 0
checkpoint_timeout = 1h
max_wal_size = 1GB
io_combine_limit = 16
vacuum_buffer_usage_limit = 256kB
max_parallel_maintenance_workers = 0
});
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION pg_sweep; CREATE EXTENSION pg_buffercache');

sub sql { return $node->safe_psql('postgres', @_) }

# Some 1140 pages of rows, more than two rings
my $rows = 40000;
my $input = write_script('rows.data', join '', map { "$_\t" . ('x' x 200) . "$_\n" } 1 .. $rows);
my $sum = $rows * ($rows + 1) / 2;

sub contents
{
	my ($table) = @_;

	return sql("SELECT count(*), sum(i), count(DISTINCT i), bool_and(pad = repeat('x', 200) || i) FROM $table");
}

# Writes of sessions in pg_stat_io, by context: calls, blocks.  A session reports its
# last writes when it exits, and psql does not wait for that.
sub stat_io
{
	my ($context) = @_;

	$node->poll_query_until('postgres',
		q{SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'client backend'})
	  or die 'a session does not end';
	return split /\|/, sql(qq{
SELECT sum(writes), sum(write_bytes) / 8192 FROM pg_stat_io
 WHERE backend_type = 'client backend' AND object = 'relation' AND context = '$context'});
}

# What code adds to the counts of a kind of ring and to pg_stat_io's.  No page is dirty
# before: only pages of the ring are written.
sub counted_with
{
	my ($kind, $code) = @_;

	sql('CHECKPOINT');
	my $before = ring_counts($node, $kind);
	my @io = stat_io($kind);
	$code->();
	my $delta = ring_delta($node, $kind, $before);
	my @io_after = stat_io($kind);

	$delta->{stat_io} = [ map { $io_after[$_] - $io[$_] } 0, 1 ];
	return $delta;
}

# The same for a command
sub counted
{
	my ($kind, $command) = @_;

	return counted_with($kind, sub { sql($command) });
}

sub is_uncounted
{
	my ($command, $title) = @_;

	for my $kind ('bulkwrite', 'vacuum')
	{
		my $before = ring_counts($node, $kind);

		sql($command);
		is_delta($node, $kind, $before, {}, "$title: nothing is counted for $kind");
	}
	return;
}

# What is true of any load through a ring while no other process is active
sub check_counts
{
	my ($delta, $title) = @_;
	my $blocks = $delta->{victims} + $delta->{eager};

	cmp_ok($delta->{laps}, '>', 0, "$title: there are laps ($delta->{laps})");
	is($delta->{victims}, $delta->{laps}, "$title: each with a victim");
	cmp_ok($delta->{eager}, '>', 10 * $delta->{victims}, "$title: many blocks with it ($delta->{eager})");
	cmp_ok($delta->{writes}, '<=', $blocks / 8, "$title: in few calls ($delta->{writes})");
	cmp_ok($delta->{writes}, '>=', $blocks / 16, "$title: of at most 16 blocks");
	cmp_ok($delta->{wal_flushes}, '<=', $delta->{victims}, "$title: WAL is flushed for victims only ($delta->{wal_flushes})");
	is($delta->{skipped_in_use},
		0, "$title: no other process is active");
	is_deeply($delta->{stat_io}, [ $delta->{writes}, $blocks ], "$title: pg_stat_io has the same calls and blocks");
	return;
}

#
# The view
#
is(sql(q{
SELECT string_agg(attname || ' ' || format_type(atttypid, NULL), ', ' ORDER BY attnum)
  FROM pg_attribute WHERE attrelid = 'pg_sweep_ring'::regclass}),
	'ring text, ' . join(', ', map { "$_ bigint" } @ring_columns) . ', total_time double precision',
	'columns of the view');
is(sql(q{
SELECT ring, laps + victims + eager + writes + wal_flushes + skipped_clean + skipped_in_use
             + skipped_wal, total_time
  FROM pg_sweep_ring ORDER BY ring}),
	"bulkwrite|0|0\nvacuum|0|0",
	'one row per kind of ring, all zero');
is(sql('SHOW pg_sweep.ring_eager_flush') . ' ' . sql('SELECT ring_eager_flush FROM pg_sweep_status'),
	'off f', 'off by default');
sql('CREATE ROLE user_of_none; CREATE ROLE monitor IN ROLE pg_monitor');
like(($node->psql('postgres', 'SET ROLE user_of_none; TABLE pg_sweep_ring'))[2],
	qr/permission denied for view pg_sweep_ring/, 'not for every role');
is(sql('SET ROLE monitor; SELECT count(*) FROM pg_sweep_ring'), 2, 'for pg_monitor');
like(
	($node->psql('postgres', 'SET ROLE user_of_none; SET pg_sweep.ring_eager_flush = on'))[2],
	qr/permission denied to set parameter "pg_sweep.ring_eager_flush"/, 'not every role may set it');
like(($node->psql('postgres', q{ALTER SYSTEM SET pg_sweep.ring_eager_flush = 'sometimes'}))[2],
	qr/parameter "pg_sweep.ring_eager_flush" requires a Boolean value/, 'on or off');

#
# Off, on, off
#
my $copy = "COPY loaded FROM '$input'";
sql('CREATE TABLE loaded (i int, pad text)');
my @io = stat_io('bulkwrite');
is_uncounted($copy, 'off');
my @io_after = stat_io('bulkwrite');
cmp_ok($io_after[0] - $io[0], '>', 500, 'off: the ring is written out');
is($io_after[1] - $io[1], $io_after[0] - $io[0], 'off: one call per block');

ring_eager_flush($node, 'on');
is(sql('SHOW pg_sweep.ring_eager_flush') . ' ' . sql('SELECT ring_eager_flush FROM pg_sweep_status'), 'on t', 'on');
my $on = counted('bulkwrite', $copy);
check_counts($on, 'COPY');
cmp_ok($on->{victims} + $on->{eager}, '>', 500, 'COPY: as many blocks are written as when it is off');
is(ring_counts($node, 'vacuum')->{laps}, 0, 'COPY: has no ring of VACUUM');
cmp_ok(sql("SELECT total_time FROM pg_sweep_ring WHERE ring = 'bulkwrite'"), '>', 0, 'COPY: it took some time');

ring_eager_flush($node, 'off');
is_uncounted($copy, 'off again');
check_counts(counted('bulkwrite', "SET pg_sweep.ring_eager_flush = on; $copy"), 'on in one session');
ring_eager_flush($node, 'on');
is_uncounted("SET pg_sweep.ring_eager_flush = off; $copy", 'off in one session');
is(contents('loaded'), 8 * $rows . '|' . 8 * $sum . "|$rows|t", 'all rows are there');

my $reset = sql('SELECT stats_reset FROM pg_sweep_status');
sql('SELECT pg_sweep_reset_stats()');
is(sql('SELECT sum(laps + victims + eager + writes + skipped_clean + skipped_in_use + wal_flushes), sum(total_time) FROM pg_sweep_ring'),
	'0|0', 'a reset sets all to zero');
isnt(sql('SELECT stats_reset FROM pg_sweep_status'), $reset, 'and pg_sweep_status says when');
is_deeply([ map { $_ > 0 } @{ counted('bulkwrite', $copy) }{ 'laps', 'eager', 'writes' } ],
	[ 1, 1, 1 ], 'after a reset, counting goes on');

#
# Commands
#
my %written_by = (
	'CREATE TABLE AS' => "CREATE TABLE made AS SELECT i, repeat('x', 200) || i AS pad FROM generate_series(1, $rows) i",
	'CREATE MATERIALIZED VIEW' => 'CREATE MATERIALIZED VIEW seen AS SELECT * FROM made',
	'REFRESH MATERIALIZED VIEW' => 'REFRESH MATERIALIZED VIEW seen',
	'ALTER TABLE' => 'ALTER TABLE made ALTER i TYPE int8',
);

for my $command ('CREATE TABLE AS', 'CREATE MATERIALIZED VIEW', 'REFRESH MATERIALIZED VIEW', 'ALTER TABLE')
{
	sql('DROP MATERIALIZED VIEW seen') if $command eq 'ALTER TABLE';
	my $delta = counted('bulkwrite', $written_by{$command});

	check_counts($delta, $command);
	# wal_level is minimal: files that no other process sees need no WAL
	is($delta->{wal_flushes} + $delta->{skipped_wal}, 0, "$command: no WAL is needed");
}
is(contents('made'), "$rows|$sum|$rows|t", 'the table is right');
is_uncounted("INSERT INTO loaded SELECT i, 'y' FROM generate_series(1, 40000) i; DELETE FROM loaded WHERE pad = 'y'",
	'INSERT and DELETE have no ring');

# What core counts, its contract leaves to the routine: blocks written by a statement,
# and their time.  A plan has only what its nodes do, so a function writes.  Nothing is
# counted for another kind of ring.
{
	my %others = map { $_ => [ stat_io($_) ] } 'vacuum', 'bulkread';
	my $time = q{SELECT sum(write_time) FROM pg_stat_io WHERE context = 'bulkwrite'};
	my $time_before = sql($time);
	sql(qq{
CREATE FUNCTION make_table() RETURNS void LANGUAGE plpgsql AS
\$\$ BEGIN CREATE TABLE explained AS SELECT i, repeat('x', 200) AS pad FROM generate_series(1, $rows) i; END \$\$});
	my $explained;
	my $delta = counted_with(
		'bulkwrite',
		sub {
			$explained = sql(qq{
SET track_io_timing = on;
EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT make_table()});
		});
	my ($written) = $explained =~ /"Shared Written Blocks": (\d+)/;
	my ($io_time) = $explained =~ /"Shared I\/O Write Time": ([\d.]+)/;

	check_counts($delta, 'EXPLAIN');
	# core counts a new block when it extends the file; catalogs may grow, too
	my $blocks = $delta->{victims} + $delta->{eager};
	my $extended = sql(q{SELECT pg_relation_size('explained') / 8192});
	cmp_ok(abs($written - $extended - $blocks),
		'<=', 10, "EXPLAIN: has all blocks as written: $written, of them $extended new, and $blocks by the ring");
	cmp_ok($io_time, '>', 0, "EXPLAIN: and $io_time ms for them");
	cmp_ok(sql($time), '>', $time_before, 'EXPLAIN: pg_stat_io has their time, too');
	is_deeply([ stat_io($_) ], $others{$_}, "EXPLAIN: pg_stat_io has no writes in context $_") foreach sort keys %others;
	sql('DROP TABLE explained');
}

# VACUUM, whose ring has 32 buffers: only pages that it reads are in the ring
sql(q{DELETE FROM made WHERE i % 10 = 0; CHECKPOINT; SELECT pg_buffercache_evict_relation('made')});
my $vacuum = counted('vacuum', 'VACUUM (BUFFER_USAGE_LIMIT 256) made');
check_counts($vacuum, 'VACUUM');
cmp_ok($vacuum->{wal_flushes}, '>', 0, 'VACUUM: WAL was flushed for some');
is(contents('made'), sql("SELECT $rows * 9 / 10, $sum - sum(i), $rows * 9 / 10, 't' FROM generate_series(10, $rows, 10) i"),
	'VACUUM: what is left is right');
sql('DROP TABLE made');

#
# Tables
#
sql('CREATE UNLOGGED TABLE unlogged (i int, pad text)');
my $unlogged = counted('bulkwrite', "COPY unlogged FROM '$input'");
check_counts($unlogged, 'unlogged table');
is($unlogged->{wal_flushes} + $unlogged->{skipped_wal}, 0, 'unlogged table: no WAL is needed');
is(contents('unlogged'), "$rows|$sum|$rows|t", 'unlogged table: is right');

is_uncounted("CREATE TEMP TABLE own (i int, pad text); COPY own FROM '$input'; SELECT 1 / (count(*) = $rows)::int FROM own",
	'temporary table');

my $directory = PostgreSQL::Test::Utils::tempdir;
sql("CREATE TABLESPACE elsewhere LOCATION '$directory'");
sql('CREATE TABLE far (i int, pad text) TABLESPACE elsewhere');
check_counts(counted('bulkwrite', "COPY far FROM '$input'"), 'other tablespace');
like(relation_file($node, 'far'), qr{/pg_tblspc/}, 'other tablespace: it is there');

# An index, written in random order and not through the ring
sql('CREATE TABLE indexed (i int, pad text); CREATE INDEX ON indexed (reverse(pad))');
my $indexed = counted('bulkwrite', "COPY indexed FROM '$input'");
cmp_ok($indexed->{eager}, '>', 10 * $indexed->{victims}, 'with an index: many blocks with each victim');

sql('CREATE TABLE parts (i int, pad text) PARTITION BY HASH (i)');
sql("CREATE TABLE part_$_ PARTITION OF parts FOR VALUES WITH (MODULUS 4, REMAINDER $_)") for 0 .. 3;
sql("COPY parts FROM '$input'");

# Rows that need no WAL, some of them rolled back
sql(qq{
BEGIN;
CREATE TABLE young (i int, pad text);
COPY young FROM '$input';
SAVEPOINT s;
COPY young FROM '$input';
ROLLBACK TO s;
COMMIT});

my @tables = qw(unlogged far indexed parts young);
is(contents($_), "$rows|$sum|$rows|t", "$_: is right") for @tables;
$node->restart;
is(contents($_), "$rows|$sum|$rows|t", "$_: is right after a restart") for @tables;
check_amcheck($node, 'after all that');
$node->stop('immediate');
$node->start;
is(contents($_), "$rows|$sum|$rows|t", "$_: is right after an immediate shutdown") for grep { $_ ne 'unlogged' } @tables;
is(contents('unlogged'), '0||0|', 'unlogged table: is empty after an immediate shutdown');
is(sql('SELECT sum(laps) FROM pg_sweep_ring'), 0, 'a restart resets the counts');
is(sql('SELECT ring_eager_flush FROM pg_sweep_status'), 't', 'and it is on from the start');
sql('DROP TABLE unlogged, far, indexed, parts, young, loaded');

#
# Files that cannot be written: the error is core's, and everything remains dirty for
# a later write
#
SKIP:
{
	skip 'test/ring/test_ring is not installed', 1
	  unless installed_module($node, 'test_ring');

	sql('CREATE EXTENSION test_ring');

	my $ring = RingTest->new($node);
	my $size = 32;

	$ring->make_table('t', 420);
	my $file = relation_file($node, 't');
	my %way = (
		# as if there were no space beyond the middle of block 210
		'short write' => {
			first => { off => 210, on => 200 },
			begin => sub { $ring->query('SELECT test_ring_limit_files(' . (8192 * 210 + 4096) . ')') },
			end => sub { $ring->query('SELECT test_ring_limit_files(NULL)') },
			message => qr/File too large/,
			# then: 201 alone, as it has failed; and from 216 on, where the others failed
			warnings => { off => 0, on => 0 },
			written => { off => [], on => [ 200 .. 209 ] },
			clean => { off => [], on => [201] },
		},
		'full disk' => {
			first => { off => 200, on => 200 },
			begin => sub {
				rename($file, "$file.aside") or die "could not rename $file: $!";
				symlink('/dev/full', $file) or die "could not link $file: $!";
				$ring->query('SELECT test_ring_close_files()');
			},
			end => sub {
				unlink($file) or die "could not remove $file: $!";
				rename("$file.aside", $file) or die "could not rename $file: $!";
				$ring->query('SELECT test_ring_close_files()');
			},
			message => qr/No space left on device\nHINT:  Check free disk space/,
			# then: 201 alone, for the second time if it failed with 200
			warnings => { off => 0, on => 1 },
			written => { off => [], on => [] },
			clean => { off => [], on => [] },
		});
	my %sqlstate;

	for my $case ('short write', 'full disk')
	{
		my $way = $way{$case};

		for my $mode ('off', 'on')
		{
			my $title = "$case, $mode";
			my $first = $way->{first}{$mode};
			my $end = $first + $size - 1;
			# neighbours of the victim that fail with it
			my $last = $mode eq 'on' ? $first + 15 : $first;
			my $blocks = $mode eq 'on' ? "blocks $first..$last" : "block $first";

			ring_eager_flush($node, $mode);
			$ring->begin('t', $size);
			$ring->dirty('t', $first, $size, 'logged');
			$way->{begin}->();

			# as a statement
			my $stderr = $ring->stderr_of("\\set VERBOSITY verbose\nSELECT test_ring_read('t', 300, 1)");
			like($stderr, qr{could not write blocks $first\.\.$last in file "base/\d+/\d+": $way->{message}},
				"$title: core's error");
			like($stderr, qr{CONTEXT:  writing \Q$blocks\E of relation "base/\d+/\d+"}, "$title: and its context");
			my ($sqlstate) = $stderr =~ /ERROR:  (\w{5}): /;
			$sqlstate{$case} //= $sqlstate;
			is($sqlstate, $sqlstate{$case}, "$title: SQLSTATE $sqlstate, on or off");
			$ring->is_quiet('t', "$title: after the error");
			is_deeply([ $ring->dirty_blocks('t') ], [ $first .. $end ], "$title: all are still dirty");
			is(sql("SELECT string_agg(block::text, ' ' ORDER BY block) FROM test_ring_buffers('t') WHERE io_error"),
				join(' ', $first .. $last),
				"$title: the buffers have the error");

			# caught, with the next victim, in a transaction that goes on
			$stderr = $ring->stderr_of(qq{
DO \$\$
BEGIN
    BEGIN
        PERFORM test_ring_read('t', 300, 1);
        RAISE 'no error';
    EXCEPTION WHEN SQLSTATE '$sqlstate' THEN
        NULL;
    END;
    IF EXISTS (SELECT FROM test_ring_buffers('t') WHERE pins > 0 OR io_in_progress OR locked) THEN
        RAISE 'something is left';
    END IF;
END
\$\$});
			unlike($stderr, qr/ERROR/, "$title: caught, and nothing is left in the transaction");
			is( () = $stderr =~ /WARNING: .*could not write block \d+ of base/g,
				$way->{warnings}{$mode}, "$title: there is a warning at the second failure of a block");
			$ring->is_quiet('t', "$title: caught");
			my %clean = map { $_ => 1 } @{ $way->{clean}{$mode} };
			is_deeply([ $ring->dirty_blocks('t') ], [ grep { !$clean{$_} } $first .. $end ],
				"$title: blocks that were not written are dirty after the second error");

			# when it is possible again
			$way->{end}->();
			is_deeply([ $ring->written_blocks('t', $first, $size) ],
				$way->{written}{$mode}, "$title: in the file so far");
			$ring->next_victims('t', 380, 1);
			my %dirty = map { $_ => 1 } $ring->dirty_blocks('t');
			ok(!$dirty{ $first + 2 }, "$title: the next victim is written");
			my %written = map { $_ => 1 } $ring->written_blocks('t', $first, $size);
			is_deeply([ grep { !$dirty{$_} && !$written{$_} } $first .. $end ],
				[], "$title: clean pages are in the file");
			$ring->is_quiet('t', "$title: the next victim");
			sql('CHECKPOINT');
			$ring->is_written('t', $first, $end, [ $first .. $end ], "$title: and a checkpoint");
		}
	}
	$ring->quit;

	# An error at the first write of a command
	sql("CREATE TABLE swept AS SELECT i, repeat('x', 200) || i AS pad FROM generate_series(1, $rows) i");
	sql('DELETE FROM swept WHERE i % 10 = 0');
	my $expected = contents('swept');
	sql(q{CHECKPOINT; SELECT pg_buffercache_evict_relation('swept')});
	my ($code, $stdout, $stderr) = $node->psql('postgres', q{
SELECT test_ring_limit_files(4000000);
VACUUM (BUFFER_USAGE_LIMIT 256) swept;
SELECT test_ring_limit_files(NULL);
VACUUM (BUFFER_USAGE_LIMIT 256) swept;
}, on_error_stop => 0);
	is(() = $stderr =~ /ERROR:  could not write blocks .*: File too large/g, 1, 'VACUUM fails once');
	unlike($stderr, qr/(?:ERROR|FATAL|PANIC):(?!  could not write blocks)/, 'and then succeeds');
	is(contents('swept'), $expected, 'VACUUM: nothing is lost');
	$node->restart;
	is(contents('swept'), $expected, 'VACUUM: nor after a restart');
	check_amcheck($node, 'after errors');
}

is_deeply(
	[
		unexpected_log_lines(
			$node, 0,
			qr/could not write blocks .*: (?:File too large|No space left on device)/,
			qr/permission denied for view pg_sweep_ring/,
			qr/permission denied to set parameter "pg_sweep.ring_eager_flush"/,
			qr/parameter "pg_sweep.ring_eager_flush" requires a Boolean value/)
	],
	[],
	'no other error in the log');
$node->stop;
check_checksums($node);

#
# Not preloaded
#
$node->adjust_conf('postgresql.conf', 'shared_preload_libraries', "''");
$node->start;
is(sql('SELECT count(*) FROM pg_sweep_ring') . '|' . sql('SELECT ring_eager_flush FROM pg_sweep_status'),
	'0|', 'not preloaded: no rows, and no setting');
$node->stop;

#
# The smallest pool: a ring of two buffers, and a process may pin only one buffer
# beyond what it needs
#
my $tiny = sweep_node('tiny', conf => q{
shared_buffers = 16
max_connections = 10
# see t/sweep/tiny_pool.pl
wal_level = replica
pg_sweep.ring_eager_flush = on
checkpoint_timeout = 1h
});
$tiny->start;
$tiny->safe_psql('postgres', 'CREATE EXTENSION pg_sweep; CREATE TABLE loaded (i int, pad text)');
my $last_row = 4000;
my $few = write_script('few.data', join '', map { "$_\t" . ('x' x 200) . "$_\n" } 1 .. $last_row);
$tiny->safe_psql('postgres', "COPY loaded FROM '$few'");
is( $tiny->safe_psql('postgres', 'SELECT sum(laps) FROM pg_sweep_ring'),
	0, '16 buffers: victims are left to core');
$tiny->safe_psql('postgres', 'CREATE TABLE made AS TABLE loaded; DELETE FROM loaded WHERE i > 2000; VACUUM (BUFFER_USAGE_LIMIT 128) loaded; VACUUM');
is( $tiny->safe_psql('postgres', q{SELECT count(*), sum(i), bool_and(pad = repeat('x', 200) || i) FROM loaded}),
	'2000|2001000|t', '16 buffers: the remaining rows are right');
is( $tiny->safe_psql('postgres', q{SELECT count(*), sum(i), bool_and(pad = repeat('x', 200) || i) FROM made}),
	'4000|8002000|t', '16 buffers: the new table is right');
is_deeply([ unexpected_log_lines($tiny, 0) ], [], '16 buffers: no error in the log');
$tiny->stop;

#
# Tables are truncated, dropped and vacuumed while rings have pages of them
#
my $small = sweep_node(
	'small',
	init => { extra => ['--data-checksums'] },
	conf => q{
shared_buffers = 8MB
max_connections = 10
pg_sweep.ring_eager_flush = on
# two sessions that delete from one table must begin in the same place
synchronize_seqscans = off
});
$small->start;
$small->safe_psql('postgres', join '', 'CREATE EXTENSION pg_sweep;', map { "CREATE TABLE busy_$_ (i int, pad text);" } 1 .. 4);
my %script = (
	copy => "COPY busy_:t FROM '$input';",
	truncate => 'TRUNCATE busy_:t;',
	delete => 'DELETE FROM busy_:t WHERE i % 3 = 0;',
	drop => 'DROP TABLE IF EXISTS gone_:client_id; CREATE TABLE gone_:client_id AS SELECT * FROM busy_:t LIMIT 10000;',
	vacuum => 'VACUUM (BUFFER_USAGE_LIMIT 256) busy_:t;',
	checkpoint => 'CHECKPOINT;');
my %weight = (copy => 8, truncate => 2, delete => 2, drop => 3, vacuum => 3, checkpoint => 1);
my $churn = start_pgbench(
	$small, 'churn',
	'--client' => 6,
	'--time' => 6,
	map { ('--file' => write_script("$_.sql", "\\set t random(1, 4)\n$script{$_}\n") . "\@$weight{$_}") }
	  sort keys %script);
is(wait_for_background($churn, 30), 0, 'tables come and go: no session fails') or diag(background_stderr($churn));
for my $kind ('bulkwrite', 'vacuum')
{
	my $counts = ring_counts($small, $kind);

	# VACUUM may not find a table that is large enough
	cmp_ok($counts->{eager}, '>', 0, "tables come and go: pages are written eagerly") if $kind eq 'bulkwrite';
	note("$kind: " . join(', ', map { "$_ $counts->{$_}" } @ring_columns));
}
is( $small->safe_psql('postgres', "SELECT count(*) FROM busy_$_ WHERE pad <> repeat('x', 200) || i"),
	0, "tables come and go: rows are right, $_")
  for 1 .. 4;
check_amcheck($small, 'tables come and go');
is_deeply([ unexpected_log_lines($small, 0) ], [], 'tables come and go: no error in the log');
$small->stop;
check_checksums($small);

done_testing();
