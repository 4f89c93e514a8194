
# A backend is killed in the middle of a load, while strategies are switched.  The
# server restarts by crash recovery with the configured strategy; nothing is lost
# and nothing is broken.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use StressTest;
use SweepTest;
use Test::More;

my $node = sweep_node(
	'main',
	init => { extra => ['--data-checksums'] },
	conf => qq{
shared_buffers = 2MB
pg_sweep.strategy = batched
full_page_writes = on
checkpoint_timeout = 30s
});
sub sql { return $node->safe_psql('postgres', $_[0]); }

$node->start;
sql('CREATE EXTENSION pg_sweep');
is(sql('SHOW data_checksums'), 'on', 'data checksums are on');

init_pgbench($node, 3);

my @strategies = strategies($node);

# "batched" alone, and all in turn
for my $case ('batched', 'switching')
{
	my $switcher;
	my $offset = -s $node->logfile;
	my $started = sql('SELECT pg_postmaster_start_time()');

	sql('SELECT pg_sweep_reset_stats()');
	my $load = start_pgbench($node, "crash_$case", '--client' => 8, '--time' => 3600);
	$switcher = start_switching($node, "switch_$case", 20, 3600)
	  if $case eq 'switching';

	# Each strategy has replaced the whole pool several times
	for my $used ($case eq 'switching' ? @strategies : $case)
	{
		ok( $node->poll_query_until(
				'postgres',
				"SELECT allocations > 2000 FROM pg_sweep_strategies WHERE strategy = '$used'"),
			"$case: $used allocates");
	}
	if ($case eq 'switching')
	{
		ok($node->poll_query_until('postgres', 'SELECT min(switches) > 5 FROM pg_sweep_strategies'),
			"$case: it is switched");
	}

	my $victim = kill_backend($node, "application_name = 'crash_$case'");

	check_interrupted($case, $load, $switcher ? $switcher : ());
	check_recovered($node, $offset, $victim, $case);
	is(sql('SELECT pg_postmaster_start_time()'), $started, "$case: the postmaster is the same");

	is(sql('SELECT strategy, configured, set_by, set_by_role, generation FROM pg_sweep_status'),
		'batched|batched|start||1', "$case: the configured strategy is active");
	cmp_ok(sql('SELECT backends FROM pg_sweep_status'),
		'<', 8, "$case: the dead backends are forgotten");
	check_amcheck($node, $case);
	check_balances($node, $case);
	check_counts_agree($node, $case);

	my $before = counter($node, 'batched', 'allocations');
	run_pgbench($node, "$case: the load can go on", "after_$case", '--client' => 8,
		'--transactions' => 100);
	cmp_ok(counter($node, 'batched', 'allocations') - $before,
		'>', 100, "$case: batched allocates again");
	check_balances($node, "$case, afterwards");
}

$node->stop;
check_checksums($node);
done_testing();
