# The private memory of a backend, that for counting pins included, does not grow with
# shared_buffers.  VmData is compared after the same work with a small pool and one 16
# times as large, without pg_sweep (core's part) and with it.
#
# Only the part of the large pool that the server initializes is touched.

use strict;
use warnings FATAL => 'all';

use List::Util qw(max);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

my $backends = 4;
my $most_kb = 64;

plan skip_all => 'there is no /proc/PID/status to look at'
  unless -r '/proc/self/status' && slurp_file('/proc/self/status') =~ /^VmData:/m;

# Size of the large pool in GB: 16 if the kernel grants it and 1 or 2 %, the part to be
# initialized, is free; otherwise as much as fits.
my ($total, $available) =
  map { slurp_file('/proc/meminfo') =~ /^$_:\s+(\d+) kB$/m ? $1 / 1024 / 1024 : 0 } qw(MemTotal MemAvailable);
my ($large) = grep { $_ * 1.05 < $total && $_ / 25 + 0.3 < $available } (16, 8, 4, 2, 1);
die sprintf("%.1f GB of memory, %.1f of it available, are not enough to compare two pools\n", $total, $available)
  unless defined $large;
my @sizes = $large == 16 ? (1024, 16 * 1024) : (max(64, $large * 64), $large * 1024);
diag("compares shared_buffers of $sizes[0] and $sizes[1] MB, as the machine has $total GB, not 1 and 16 GB")
  if $large != 16;

my $node = sweep_node('main', conf => qq{
huge_pages = off
max_connections = 20
bgwriter_lru_maxpages = 0
checkpoint_timeout = 1h
max_parallel_workers = 0
# plans must not depend on the pool
effective_cache_size = 1GB
});
$node->append_conf('postgresql.conf', "shared_buffers = $sizes[0]MB");
$node->start;
require_modules($node, 'test_pins');
$node->safe_psql('postgres', q{
	CREATE EXTENSION pg_sweep;
	CREATE EXTENSION test_pins;
	CREATE TABLE t AS SELECT i, repeat('x', 900) AS pad FROM generate_series(1, 12000) i;
	CREATE INDEX ON t (i)});
# set all hint bits and gather all statistics now
$node->safe_psql('postgres', 'VACUUM ANALYZE');
$node->safe_psql('postgres',
	q{CREATE UNLOGGED TABLE pages (); SELECT test_pins_extend('pages', 4000); CREATE UNLOGGED TABLE new_pages ()});

# A sequential scan, an index scan, a bitmap scan.  New pages, because all others are in
# the pool after the first backend's work, and only allocations involve pg_sweep.  Many
# pins at once, and repeated pins.
my $new_pages = 256;
my @work = (
	'SELECT sum(i + length(pad)) FROM t',
	'SET enable_seqscan = off; SET enable_bitmapscan = off; SELECT sum(length(pad)) FROM t WHERE i < 6000; RESET ALL',
	'SET enable_seqscan = off; SET enable_indexscan = off; SELECT sum(length(pad)) FROM t WHERE i % 7 > 0 AND i > 1; RESET ALL',
	"SELECT test_pins_extend('new_pages', $new_pages)",
	"BEGIN; SELECT test_pins_hold('pages', 3500), test_pins_again(100000); SELECT test_pins_release(); COMMIT",
	"BEGIN; SELECT test_pins_hold('pages', 40), test_pins_again(100000); ROLLBACK");

# VmData and RssAnon in kB, of some backends after the work
sub memory
{
	my @sessions = map { $node->background_psql('postgres') } 1 .. $backends;
	my (@data, @anon);

	foreach my $session (@sessions)
	{
		$session->query_safe($_) foreach (@work, @work);
		my $pid = $session->query_safe('SELECT pg_backend_pid()');
		my $status = slurp_file("/proc/$pid/status");
		push @data, $status =~ /^VmData:\s+(\d+) kB$/m or die "no VmData: $status";
		push @anon, $status =~ /^RssAnon:\s+(\d+) kB$/m or die "no RssAnon: $status";
	}
	$_->quit foreach @sessions;
	return (\@data, \@anon);
}

sub compare
{
	my ($title, $conf) = @_;
	my (@data, @figures);

	foreach my $mb (@sizes)
	{
		$node->stop;
		$node->append_conf('postgresql.conf', "shared_buffers = ${mb}MB\n$conf");
		$node->start;
		is( $node->safe_psql('postgres', q{SELECT setting::int8 * 8 / 1024 FROM pg_settings WHERE name = 'shared_buffers'}),
			$mb, "$title: a pool of $mb MB");
		my ($data, $anon) = memory();
		push @data, $data;
		push @figures, "$mb MB: VmData @$data, RssAnon @$anon";
	}
	note("$title: kB of $backends backends with shared_buffers of " . join('; ', @figures));
	# The first backend after a start builds files that the others read.
	my $difference = max(map { abs($data[0][$_] - $data[1][$_]) } 0 .. $backends - 1);
	cmp_ok($difference, '<=', $most_kb, "$title: VmData of $backends backends, one after the other, is the same within $most_kb kB")
	  or diag "$title: @figures";
	return;
}

compare('core', "shared_preload_libraries = ''");
foreach my $strategy ('batched', 'partitioned', 'clock2q', 'clock2q_partitioned')
{
	compare("pg_sweep, $strategy", "shared_preload_libraries = 'pg_sweep'\npg_sweep.strategy = $strategy\n"
		  . "pg_sweep.lwlock_policy = lockless_spin\npg_sweep.numa_placement = off\n");
	is($node->safe_psql('postgres', 'SELECT state, strategy, buffers FROM pg_sweep_status'),
		"ok|$strategy|" . $sizes[1] * 128, "pg_sweep, $strategy: is active");
	cmp_ok(counter($node, $strategy, 'allocations'), '>=', 2 * $backends * $new_pages,
		"pg_sweep, $strategy: all of them allocated");
}
$node->stop;
# a session may still be exiting when the server stops
is_deeply([ unexpected_log_lines($node, 0, qr/terminating connection due to administrator command/) ],
	[], 'nothing in the log');

done_testing();
