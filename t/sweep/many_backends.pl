
# Several hundred backends on a pool of 2 MB, on a server that permits 2000: the
# leases shrink to one buffer each, grow again when the backends leave, and no
# backend gets an error.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

my $clients = 300;
my $node = sweep_node('main', conf => qq{
max_connections = 2000
shared_buffers = 2MB
pg_sweep.strategy = batched
pg_sweep.batch_size = 16
});
sub sql { return $node->safe_psql('postgres', $_[0]); }

$node->start;
sql('CREATE EXTENSION pg_sweep');
is(sql('SELECT state, buffers, lease_limit FROM pg_sweep_status'),
	'ok|256|32', 'the server starts with max_connections = 2000');

# Much larger than the pool
init_pgbench($node, 2);

my @strategies = strategies($node);
my $idle = sql('SELECT backends FROM pg_sweep_status');
cmp_ok($idle, '<', 16, 'few backends at first');

# By the size in force, and by what the backends really have
my $batch_fits = q{
SELECT batch_size * backends <= lease_limit OR batch_size = 1,
       (SELECT sum(lease_left) <= greatest(lease_limit, backends) FROM pg_sweep_backends)
  FROM pg_sweep_status};

is(sql($batch_fits), 't|t', 'the leases are within their limit');

# A session that took a lease when there were few backends, and keeps it
my $sitter = $node->background_psql('postgres');
$sitter->set_query_timer_restart;
my $sitter_pid = $sitter->query_safe('SELECT pg_backend_pid()');
my $sits = 0;
for my $block (0 .. 50)
{
	$sitter->query_safe("SELECT 1 FROM pgbench_accounts WHERE ctid = '($block,1)'");
	$sits = sql("SELECT lease_left FROM pg_sweep_backends WHERE pid = $sitter_pid");
	last if $sits > 1;
}
cmp_ok($sits, '>', 1, "an idle session has $sits buffers left of its lease");
$idle++;

# The strategy under which the idle session has its lease comes first
for my $strategy ('batched', (grep { $_ ne 'batched' } @strategies), 'switching')
{
	my $switcher;
	my %before =
	  map { $_ => counter($node, $_, 'allocations') } @strategies;

	if ($strategy eq 'switching')
	{
		$switcher = start_switching($node, 'switcher', 50, 3600);
	}
	else
	{
		switch_to($node, $strategy);
	}

	# Connections that stay until they are stopped
	my $load = start_pgbench($node, "many_$strategy", '--client' => $clients, '--jobs' => 2,
		'--select-only', '--time' => 3600);
	if ($strategy eq 'stock')
	{
		ok( $node->poll_query_until('postgres',
				"SELECT count(*) >= $clients FROM pg_stat_activity WHERE application_name = 'many_stock'"),
			"$strategy: $clients backends allocate");
		cmp_ok(sql('SELECT backends FROM pg_sweep_status'),
			'<=', $idle, "$strategy: and take no leases");
	}
	else
	{
		ok($node->poll_query_until('postgres', "SELECT backends >= $clients FROM pg_sweep_status"),
			"$strategy: $clients backends allocate");
		is(sql('SELECT batch_size FROM pg_sweep_status'),
			1, "$strategy: a lease has shrunk to one buffer");
		is(sql("SELECT bool_and(lease_left <= 1), count(*) >= $clients FROM pg_sweep_backends"),
			't|t', "$strategy: and so have all that were given out");
	}

	my $wanted = 20 * $clients;
	$wanted += $_ for values %before;
	ok( $node->poll_query_until(
			'postgres', "SELECT sum(allocations) >= $wanted FROM pg_sweep_strategies"),
		"$strategy: they go on allocating");

	# pgbench ends at a signal without a message
	isnt(stop_background($load), undef, "$strategy: pgbench can be stopped");
	is(background_stderr($load), '', "$strategy: no client had an error");

	# Connections that come and go
	run_pgbench($node, "$strategy: 300 short connections work", "connect_$strategy",
		'--client' => 50, '--connect', '--select-only', '--transactions' => 6);

	if ($switcher)
	{
		stop_background($switcher);
		is(background_stderr($switcher), '', "$strategy: no error while switching");
	}
	ok($node->poll_query_until('postgres', "SELECT backends <= $idle FROM pg_sweep_status"),
		"$strategy: the backends are gone");
	ok($node->poll_query_until('postgres', 'SELECT batch_size > 1 FROM pg_sweep_status'),
		"$strategy: leases are larger again");
	is(sql($batch_fits), 't|t', "$strategy: and within their limit");

	for my $used ($strategy eq 'switching' ? @strategies : $strategy)
	{
		cmp_ok(counter($node, $used, 'allocations') - $before{$used},
			'>', 1000, "$strategy: $used has allocated");
	}
}

# A query restarts the session's timeout
$sitter->query_safe('SELECT 1');
$sitter->quit;

# A backend may lose its pgbench in the middle of a query
is_deeply([ unexpected_log_lines($node, 0, qr/connection to client lost/) ],
	[], 'no error in the log');
$node->stop;
done_testing();
