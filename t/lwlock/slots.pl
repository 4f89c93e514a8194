# Counting waits takes the same shared memory with 10000 connections as with 500, since
# processes share slots.  None of their waits is lost, nor counted for another tranche,
# while two count in one slot at the same time, and when its table is full.

use strict;
use warnings FATAL => 'all';

use LwlockTest;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

my $slots = 512;    # PGSWEEP_LWLOCK_MAX_SLOTS
my $entries = 48;    # PGSWEEP_LWLOCK_ENTRIES
my $node = sweep_node('main', conf => q{
shared_buffers = 4MB
max_connections = 10000
pg_sweep.lwlock_policy = lockless
});

# the limit of file descriptors may be too low for so many
$node->append_conf('postgresql.conf', 'max_files_per_process = 64');
$node->start;
require_modules($node, 'test_lwlock');
$node->safe_psql('postgres', 'CREATE EXTENSION pg_sweep; CREATE EXTENSION test_lwlock');

my $size = $node->safe_psql('postgres', q{SELECT allocated_size FROM pg_shmem_allocations WHERE name = 'pg_sweep lwlock'});
cmp_ok($size, '<=', 7.5 * 1024 * 1024, "10000 connections: $size bytes");

# ---- sessions that share a slot ----

# A session and its ProcNumber
sub session
{
	my $psql = $node->background_psql('postgres', on_error_stop => 1);

	$psql->set_query_timer_restart();
	# knows the tranches from now on
	$psql->query_safe('SELECT test_lwlock_held()');
	return ($psql, $psql->query_safe(
			'SELECT id FROM pg_stat_get_backend_idset() id WHERE pg_stat_get_backend_pid(id) = pg_backend_pid()'));
}

my $script = write_script('nothing.sql', "SELECT 1;\n");
my ($one, $number) = session();
my ($other, $number_of_other);

# A process takes the PGPROC that has been free for the longest time: some hundred
# connections later, it is one of the same slot.
for (1 .. 50)
{
	($other, $number_of_other) = session();
	my $missing = ($number - $number_of_other) % $slots;
	last if $missing == 0;
	$other->quit;
	my $more = $missing > 2 ? $missing - 2 : 1;
	$node->command_ok(
		[ 'pgbench', '-n', '-C', '-c', 1, '-t', $more, '-f', $script, $node->connstr('postgres') ],
		"$more connections, after number $number_of_other");
}
is($number_of_other % $slots, $number % $slots, "numbers $number and $number_of_other share a slot");
isnt($number_of_other, $number, 'and are two processes');

# ---- both wait at the same time ----

my $columns = q{coalesce(sum(contended), 0), coalesce(sum(slept), 0),
	coalesce(sum((SELECT sum(n) FROM unnest(histogram) n)), 0)};
my $times = 20_000;
my ($slept, @counted) = (0);
$one->query_safe('SELECT pg_sweep_reset_stats()');
for (1 .. 50)
{
	# the beginning of the output may have all of it
	my @begun = map {
		$_->query_until(qr/^begun$/m,
			"\\echo begun\nSELECT 'slept ' || test_lwlock_take(0, 0, 'exclusive', $times);\n\\echo ended\n")
	} $one, $other;
	foreach my $psql ($one, $other)
	{
		my $output = shift @begun;
		$output .= $psql->query_until(qr/^ended$/m, '') unless $output =~ /^ended$/m;
		$slept += $1 if $output =~ /slept (\d+)/;
	}
	@counted = split /\|/, $one->query_safe("SELECT $columns FROM pg_sweep_lwlock_waits WHERE tranche = 'test_0000'");
	last if $slept > 2000;
}
note "both: slept $slept times; contended, slept, in the histogram: @counted";
cmp_ok($slept, '>', 0, "both: they sleep $slept times, as core says");
is($counted[2], $slept, 'both: as many waits are counted');

# ---- more tranches than a slot has entries for ----

my ($holder) = session();
my $each = $entries - 8;
$one->query_safe('SELECT pg_sweep_reset_stats()');
foreach my $half ([ $one, 100 ], [ $other, 100 + $each ])
{
	my ($psql, $first) = @$half;
	my $last = $first + $each - 1;

	$holder->query_until(qr/^begun$/m, "\\echo begun\nSELECT test_lwlock_hand_over($first, $last);\n\\echo ended\n");
	$node->poll_query_until('postgres', 'SELECT test_lwlock_held()') or die 'the locks are not held';
	is($psql->query_safe("SELECT test_lwlock_take($first, $last, 'exclusive')"),
		$each, "tranches $first to $last: the process sleeps for each");
	# and until the holder has seen the end of it
	$holder->query_until(qr/^ended$/m, '');
}

# "other" has what found no entry; core's own locks may be among it
my ($named, $tranches) = split /\|/, $one->query_safe(
	"SELECT sum(slept), count(DISTINCT tranche) FROM pg_sweep_lwlock_waits WHERE tranche BETWEEN 'test_0100' AND 'test_0199'");
my $rest = $one->query_safe('SELECT coalesce(sum(slept), 0) FROM pg_sweep_lwlock_waits WHERE tranche IS NULL');
is($named, $tranches, "$tranches tranches have an entry, each with one wait");
cmp_ok($tranches, '<=', $entries, 'no more than there are entries');
cmp_ok($tranches, '>', $each, 'more than those of one process');
cmp_ok($named + $rest, '>=', 2 * $each, "none is lost: $rest are in the row without a tranche");
cmp_ok($rest, '<=', 2 * $each - $tranches + 10, 'and few others');

$_->quit foreach $one, $other, $holder;
$node->stop;
done_testing();
