# On real nodes: a load from one node is spread over all of them by their sizes, and
# an even load with affinity is served at home.
#
# The load has a fixed rate.  Fewer real CPUs emulate those of the machine, so their
# speeds differ.
use strict;
use warnings FATAL => 'all';

use NumaTest;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;
use Time::HiRes qw(usleep);

my $nodes = vm_nodes();
my $server = numa_server('main', conf => q{
pg_sweep.strategy = partitioned
pg_sweep.numa_placement = partition
bgwriter_delay = 200ms
});

# Sessions that allocate at a fixed rate until they are stopped
my @load;

sub start_load
{
	my ($name, $allocations) = @_;
	my $session = $server->background_psql('postgres', on_error_stop => 0);
	my $pid = $session->query_safe('SELECT pg_backend_pid()');

	chomp $pid;
	push @load, { session => $session, pid => $pid };
	$session->query_until(
		qr/started/, qq{
\\echo started
DO \$\$
BEGIN
	LOOP
		PERFORM measure_sweep_exact($allocations, 0);
		PERFORM pg_sleep(0.005);
	END LOOP;
END \$\$;
});
	return $pid;
}

sub stop_load
{
	$server->safe_psql('postgres', "SELECT pg_cancel_backend($_->{pid})") for @load;
	$_->{session}->quit for @load;
	@load = ();
	return;
}

# Wait for a number of cycles of the background writer
sub wait_cycles
{
	my ($cycles) = @_;

	usleep($cycles * 200_000);
	return;
}

sub run_on_node
{
	my ($pid, $node) = @_;

	system_or_bail('taskset', '--cpu-list', '--pid', node_file($node, 'cpulist'), $pid);
	return;
}

# The largest deviation of a partition's allocations from its fair share, in percent
# of the share, over the next cycles
sub worst_imbalance
{
	my ($cycles) = @_;

	$server->safe_psql('postgres', 'SELECT pg_sweep_reset_stats()');
	wait_cycles($cycles);
	return $server->safe_psql('postgres', q{
SELECT round(max(abs(allocations / sum_a / (num_buffers::numeric / sum_n) - 1)) * 100, 2)
  FROM (SELECT allocations, num_buffers, sum(allocations) OVER () AS sum_a,
               sum(num_buffers) OVER () AS sum_n
          FROM pg_sweep_partitions) s});
}

# The median of three windows, or of five if that is too large: while the host is
# busy, the machine does not keep its rate
sub usual_imbalance
{
	my ($cycles) = @_;
	my @found;

	for my $windows (3, 5)
	{
		push @found, worst_imbalance($cycles) while @found < $windows;
		@found = sort { $a <=> $b } @found;
		last if $found[ @found / 2 ] <= 10;
	}
	return $found[ @found / 2 ];
}

sub note_table
{
	my ($query) = @_;

	note($server->safe_psql('postgres', $query));
	return;
}

$server->start;
$server->safe_psql('postgres', 'CREATE EXTENSION pg_sweep; CREATE EXTENSION measure_sweep;');
is( $server->safe_psql(
		'postgres',
		"SELECT strategy, nodes, numa_placement, partitions % nodes FROM pg_sweep_status"),
	"partitioned|$nodes|partition|0",
	'partitioned over the nodes of the machine');

# One node asks for all
run_on_node(start_load("one", 3000), 0);
run_on_node(start_load("two", 3000), 0);
wait_cycles(5);
my $imbalance = usual_imbalance(15);
cmp_ok($imbalance, '<=', 10,
	"one node asks: each partition gets its fair share within 10 % ($imbalance %)");
note_table('TABLE pg_sweep_nodes');
note_table('TABLE pg_sweep_flows');
is($server->safe_psql('postgres', 'SELECT count(*) FROM pg_sweep_nodes WHERE requests > 1000'),
	1, 'one node asks: requests are counted where they are made');
stop_load();

# Nine of ten from the first node, one from the last
run_on_node(start_load("most", 4500), 0);
run_on_node(start_load("few", 500), $nodes - 1);
wait_cycles(5);
$imbalance = usual_imbalance(15);
cmp_ok($imbalance, '<=', 10, "nine of ten from one node: fair shares within 10 % ($imbalance %)");
stop_load();

# The same load on each node
$server->append_conf('postgresql.conf', 'pg_sweep.numa_affinity = spread');
$server->reload;
$server->poll_query_until('postgres',
	"SELECT setting = 'spread' FROM pg_settings WHERE name = 'pg_sweep.numa_affinity'")
  or die 'no reload';
my %on;
for my $i (0 .. $nodes - 1)
{
	my $pid = start_load("even_$i", 200);
	my ($cpus) = slurp_file("/proc/$pid/status") =~ /^Cpus_allowed_list:\s*(\S+)/m;
	$on{$cpus}++;
}
is_deeply([ sort keys %on ], [ sort map { node_file($_, 'cpulist') } 0 .. $nodes - 1 ],
	'even: affinity has put a session on each node');
wait_cycles(10);

# The emulated CPUs do not keep the rate exactly, so a little has to be served elsewhere
my $local;
for (1 .. 5)
{
	$imbalance = worst_imbalance(20);
	$local = $server->safe_psql('postgres',
		'SELECT round(100.0 * sum(local_allocations) / sum(allocations), 2) FROM pg_sweep_nodes');
	last if $local >= 95;
}
cmp_ok($local, '>=', 95, "even: $local % of the allocations are local");
note_table('TABLE pg_sweep_nodes');
note_table('TABLE pg_sweep_flows');
note("even: imbalance $imbalance %");
cmp_ok($server->safe_psql('postgres', 'SELECT max(laps) - min(laps) FROM pg_sweep_partitions'),
	'<=', 0.3, 'the hands are a quarter of a lap apart, with a lease or two');
is( $server->safe_psql('postgres', q{
SELECT count(DISTINCT node) FROM pg_sweep_backends WHERE allocations > 1000}),
	$nodes,
	'even: pg_sweep_backends shows each where it is');
stop_load();

$server->stop;
is_deeply([ unexpected_log_lines($server, 0, qr/canceling statement due to user request/) ],
	[], 'no errors in the log');
done_testing();
