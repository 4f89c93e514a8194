# A backend's own pins: random steps compared with a model, thousands of pins at
# once, a pool full of pins, no memory for more, and leaked pins.
#
# A server with assertions overwrites memory that it frees, which hides some wrong
# lookups.  Hence the random steps also run on the release server, if "make servers"
# has built it; PG_SWEEP_RELEASE=prefix names another one.
#
# The random steps (test/pins/test_pins) depend only on their seeds.
# PG_SWEEP_PINS_SEED=n begins with another seed, PG_SWEEP_PINS_STEPS=n takes more
# steps with each.

use strict;
use warnings FATAL => 'all';

use Cwd qw(abs_path);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use StressTest;
use SweepTest;
use Test::More;
use Time::HiRes qw(time);

my $seed = stress_number('PG_SWEEP_PINS_SEED', 1, 0);
my $steps = stress_number('PG_SWEEP_PINS_STEPS', 1_000_000, 500_000);

# Only the sessions below pin buffers.  With few processes, each may pin many.
my $quiet = qq{
autovacuum = off
max_logical_replication_workers = 0
bgwriter_lru_maxpages = 0
checkpoint_timeout = 1h
max_connections = 8
max_wal_senders = 0
};

my $node = PostgreSQL::Test::Cluster->new('pins');
$node->init;
$node->append_conf('postgresql.conf', "shared_buffers = 128MB\n$quiet");
$node->start;
require_modules($node, 'test_pins');

# Create a table of that many pages of zeros.
sub create_table
{
	my ($on, $name, $blocks) = @_;

	$on->safe_psql('postgres',
		"CREATE UNLOGGED TABLE $name (); SELECT test_pins_extend('$name', $blocks)");
	return;
}

# ---- random steps ----

$node->safe_psql('postgres', 'CREATE EXTENSION test_pins');
my $has_info = $node->safe_psql('postgres', 'SELECT test_pins_has_info()') eq 't';
note('the server lacks the core patch "pins-private-refcount"') unless $has_info;

# Servers of this project have the patch; others may not.
my $top = sweep_root();
my $home = abs_path($node->config_data('--bindir') . '/..');
my $is_ours = index($home, "$top/build/") == 0;
my $asserts = $node->safe_psql('postgres', 'SHOW debug_assertions') eq 'on';
ok($has_info, 'the server tells how many buffers are pinned')
  if slurp_file("$top/core-hooks/$ENV{SWEEP_MAJOR}/series") =~ /pins-private-refcount/ && $is_ours;

sub random_steps
{
	my ($on, $title, $n, $first, $held) = @_;
	my $begin = time;
	my ($status, $out, $err) = $on->psql('postgres',
		"SELECT * FROM test_pins_random('random_steps', $n, $first, $held)",
		extra_params => ['-x']);
	my %found = map { split /\|/, $_, 2 } split /\n/, $out;

	$title = "$title: $n steps, seed $first, $held held";
	is($status, 0, "$title: as the model has it") or diag $err;
	note(sprintf '%s: %.1f s', $title, time - $begin);
	return if $status != 0;

	# deepest: all of the model's levels; errors and truncations are rare
	my %least = map { $_ => $n / 20_000 } keys %found;
	$least{$_} = $n / 100_000 for qw(emptied errors truncated);
	@least{qw(deepest most_held sizes compared)} = (4, $held, $held + 1, $n / 65_536);
	@least{qw(shown_elsewhere overwritten)} = (0, 0) unless $has_info;
	foreach my $what (sort keys %found)
	{
		cmp_ok($found{$what}, '>=', $least{$what}, "$title: exercised: $what");
	}
	is( $on->safe_psql(
			'postgres', "SELECT pg_relation_size('random_steps'), * FROM test_pins_count('random_steps')"),
		'0|0|0|0|0',
		"$title: nothing is left");
	return;
}

# The table of a process grows only a few times: many sessions show more.
sub many_sessions
{
	my ($on, $title, $sessions, $n, @held) = @_;
	my ($ended, undef, $failure) = $on->psql('postgres',
		join '', map { "\\c\nSELECT test_pins_random('random_steps', $n, $seed + $_, $held[$_ % @held]);\n" } 1 .. $sessions);

	is($ended, 0, "$title: $n steps by each of $sessions sessions") or diag $failure;
	return;
}

create_table($node, 'random_steps', 0);
# At these numbers, the patched server's table is as full as it gets before it grows.
random_steps($node, 'alone', $steps, $seed, 480);
random_steps($node, 'alone', $steps, $seed + 1, 110);

is(($node->psql('postgres', q{SELECT test_pins_random('random_steps', 1000, 1, 100000)}))[0], 3,
	'more than a quarter of the buffers is refused');

# ---- thousands at once, seen by another session ----

my $blocks = 12_000;
my $pins = 10_000;
create_table($node, 'large', $blocks);

my $holder = $node->background_psql('postgres', on_error_stop => 0);
my $seen = q{SELECT * FROM test_pins_count('large')};
$holder->query_safe('BEGIN');
is($holder->query_safe("SELECT test_pins_hold('large', $pins)"),
	$pins, "$pins pins by one session");
is($holder->query_safe($seen), join('|', ($pins) x 4), 'counted by itself');
is($node->safe_psql('postgres', $seen), "$pins|$pins|0|0", 'seen by another');
is( $node->safe_psql(
		'postgres',
		"BEGIN; SELECT test_pins_hold('large', 4000); $seen; SELECT test_pins_release(); $seen; COMMIT"),
	"4000\n$pins|" . ($pins + 4000) . "|4000|4000\n4000\n$pins|$pins|0|0",
	'which pins 4000 of them, too, and releases only its own');
$holder->query_safe("SELECT test_pins_again(200000), test_pins_again(200000, true)");
is($node->safe_psql('postgres', $seen),
	"$pins|$pins|0|0", 'the same after 400000 times pinning once more');
$holder->query('SELECT 1/0');
$holder->{stderr} = '';
is($node->safe_psql('postgres', $seen), '0|0|0|0', 'none after an error');
$holder->query_safe('ROLLBACK');
is( $holder->query_safe(
		"BEGIN; SELECT test_pins_hold('large', 100); SELECT test_pins_hold('large', 50); COMMIT; $seen"),
	"100\n150\n0|0|0|0",
	'and the session can go on');
$holder->quit;

# ---- no memory ----

SKIP:
{
	skip "core's own tracking loses a pin when its table cannot grow", 2
	  unless $has_info;

	my ($held, $sqlstate, $message) = split /\|/,
	  $node->safe_psql('postgres', q{SELECT * FROM test_pins_out_of_memory('large')});
	is("$sqlstate $message", '53200 out of memory', 'no memory for more pins is an error');
	cmp_ok($held, '>', 100, "only the last pin is missing; the $held before are there, others can be pinned later");
}

# ---- leaked pins ----

# More than the array of 8 entries
my ($status, $out, $err) =
  $node->psql('postgres', "SELECT test_pins_leak('large', 20); SELECT own_buffers FROM test_pins_count('large')");
is($status, 0, 'the end of a transaction releases pins that are left');
is($out, "\n0", 'all of them');
my @warnings = $err =~ /WARNING:  resource was not closed: (\[\d+\] \(rel=[^,]*, blockNum=\d+, flags=0x[0-9a-f]+, refcount=1 1\))/g;
is(scalar @warnings, 20, 'with a warning for each')
  or diag $err;
my %leaked = map { /blockNum=(\d+)/ ? ($1 => 1) : () } @warnings;
is_deeply([ sort { $a <=> $b } keys %leaked ], [ 0 .. 19 ], 'that names its block');

is_deeply([ unexpected_log_lines($node, 0, qr/division by zero/, qr/cannot hold 100000 of/) ], [],
	'nothing else in the log');
$node->stop;

# ---- with pg_sweep, which shows the counts ----

my $sweep = sweep_node('sweep', conf => "shared_buffers = 32MB\npg_sweep.strategy = batched\nio_method = sync\n$quiet");
$sweep->start;
$sweep->safe_psql('postgres', 'CREATE EXTENSION pg_sweep; CREATE EXTENSION test_pins');
create_table($sweep, 'random_steps', 0);
random_steps($sweep, 'with pg_sweep', $steps / 5, $seed + 2, 200);
many_sessions($sweep, 'with pg_sweep', 40, 3000, 16, 28, 50, 110, 240);
is_deeply([ unexpected_log_lines($sweep, 0) ], [], 'with pg_sweep: nothing in the log');
$sweep->stop;

# ---- without assertions ----

SKIP:
{
	# This clone may have no build of a server of unknown origin.
	my $prefix = $ENV{PG_SWEEP_RELEASE} // ($is_ours ? "$top/build/$ENV{SWEEP_MAJOR}/release" : undef);
	$prefix = $home unless $asserts;

	skip 'there is no server without assertions (make servers, or set PG_SWEEP_RELEASE)', 1
	  unless defined $prefix && -x "$prefix/bin/postgres";

	my $release = PostgreSQL::Test::Cluster->new('release', install_path => $prefix);

	ok(installed_module($release, 'test_pins'), 'release: test/pins/test_pins is installed')
	  or skip 'nothing to be run there', 1;
	$release->init;
	$release->append_conf('postgresql.conf', "shared_buffers = 128MB\n$quiet");
	$release->start;
	is($release->safe_psql('postgres', 'SHOW debug_assertions'), 'off', 'release: it has no assertions');
	$release->safe_psql('postgres', 'CREATE EXTENSION test_pins');
	is($release->safe_psql('postgres', 'SELECT test_pins_has_info()'),
		$has_info ? 't' : 'f', 'release: it has the same patches');
	create_table($release, 'random_steps', 0);
	random_steps($release, 'release', $steps / 5, $seed + 3, 600);
	random_steps($release, 'release', $steps / 5, $seed + 4, 110);
	many_sessions($release, 'release', 10, 3000, 50, 110, 600);
	is_deeply([ unexpected_log_lines($release, 0) ], [], 'release: nothing in the log');
	$release->stop;
}

# ---- the smallest pool, with nothing but pins ----

my $buffers = 16;
my $tiny = PostgreSQL::Test::Cluster->new('tiny');
$tiny->init;
$tiny->append_conf('postgresql.conf', "shared_buffers = $buffers\nmax_parallel_workers = 0\n$quiet");
$tiny->start;
$tiny->safe_psql('postgres', 'CREATE EXTENSION test_pins');
create_table($tiny, 't', 40);

# A session whose catalog caches have all that it needs
my $session = $tiny->background_psql('postgres', on_error_stop => 0);
my $hold = sub { return "SELECT test_pins_hold('t', $_[0])" };
$session->query_safe('BEGIN; ' . $hold->(1) . '; SELECT test_pins_release(); COMMIT');
foreach my $round (1 .. 3)
{
	$session->query_safe('BEGIN');
	is($session->query_safe($hold->($buffers)), $buffers, "$buffers buffers: all of them are pinned");
	$session->{stderr} = '';
	$session->query($hold->(1));
	like($session->{stderr}, qr/no unpinned buffers available/, "$buffers buffers: no more");
	$session->{stderr} = '';
	$session->query_safe('ROLLBACK');
	is($session->query_safe("SELECT count(*) FROM t, test_pins_count('t') WHERE processes <> 0"),
		0, "$buffers buffers: afterwards none is");
	is($tiny->safe_psql('postgres', 'BEGIN; ' . $hold->($buffers / 2) . '; SELECT count(*) > 100 FROM pg_class'),
		$buffers / 2 . "\nt", "$buffers buffers: another session has them all");
}
$session->quit;
is_deeply([ unexpected_log_lines($tiny, 0, qr/no unpinned buffers available/) ],
	[], "$buffers buffers: nothing else in the log");
$tiny->stop;

done_testing();
