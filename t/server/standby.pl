
# A hot standby: the startup process allocates with the strategy of the standby.
# It can be switched there, because a switch writes nothing to disk.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

my $primary = sweep_node('primary', init => { allows_streaming => 1 });
$primary->append_conf('postgresql.conf', "shared_buffers = 2MB\n");
$primary->start;
$primary->safe_psql('postgres', 'CREATE EXTENSION pg_sweep');
$primary->backup('base');

my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->append_conf('postgresql.conf', qq{
shared_buffers = 1MB
pg_sweep.strategy = batched
});
$standby->start;
my @strategies = strategies($standby);

is( $standby->safe_psql(
		'postgres',
		'SELECT pg_is_in_recovery(), state, strategy, set_by FROM pg_sweep_status'
	),
	't|ok|batched|start',
	'the standby has its own strategy');
is($primary->safe_psql('postgres', 'SELECT strategy FROM pg_sweep_status'),
	'stock', 'and the primary has another');

# The last strategy of the startup process, and its allocations so far
my $startup = q{
SELECT strategy, allocations FROM pg_sweep_backends WHERE backend_type = 'startup'};

init_pgbench($primary, 1);
$primary->wait_for_catchup($standby);
like($standby->safe_psql('postgres', $startup),
	qr/^batched\|\d+$/, 'the startup process has allocated');

my @tables = qw(pgbench_accounts pgbench_tellers pgbench_branches pgbench_history);

# The contents of all tables
sub contents
{
	my ($node) = @_;

	return join ' ',
	  map {
		$node->safe_psql('postgres',
			"SELECT count(*) || ':' || coalesce(sum(hashtextextended(t::text, 0)), 0) FROM $_ t")
	  } @tables;
}

sub run_load
{
	my ($name) = @_;

	run_pgbench($primary, "$name: the primary works", $name,
		'--client' => 4, '--transactions' => 250);
	$primary->wait_for_catchup($standby);
	is(contents($standby), contents($primary), "$name: primary and standby are the same");
	return;
}

#
# Switched by function, under replay
#
for my $strategy (@strategies)
{
	switch_to($standby, $strategy);
	my $before = (split /\|/, $standby->safe_psql('postgres', $startup))[1];
	my $total = counter($standby, $strategy, 'allocations');

	is($standby->safe_psql('postgres', 'SELECT strategy FROM pg_sweep_status'),
		$strategy, "$strategy: the function works on a standby");
	run_load("replay_$strategy");
	cmp_ok(counter($standby, $strategy, 'allocations') - $total,
		'>', 100, "$strategy: it is used");

	my ($used, $after) = split /\|/, $standby->safe_psql('postgres', $startup);
	if ($strategy eq 'stock')
	{
		is($after, $before, "$strategy: the startup process has no leases");
		next;
	}
	is($used, $strategy, "$strategy: the startup process allocates by it");
	cmp_ok($after - $before, '>', 100, "$strategy: for all that it redoes");
}

# Switched all the time
my $switcher = start_switching($standby, 'switcher', 10, 3600);
my $before = (split /\|/, $standby->safe_psql('postgres', $startup))[1];
run_load('replay_switching');
# the load may end sooner
ok($standby->poll_query_until('postgres', 'SELECT generation > 20 FROM pg_sweep_status'),
	'switching: it was switched');
stop_background($switcher);
is(background_stderr($switcher), '', 'switching: no error');
cmp_ok((split /\|/, $standby->safe_psql('postgres', $startup))[1] - $before,
	'>', 100, 'switching: the startup process has allocated');

#
# Switched by reload: the background writer runs during recovery, too
#
for my $strategy (@strategies)
{
	$standby->adjust_conf('postgresql.conf', 'pg_sweep.strategy', $strategy);
	$standby->reload;
	ok( $standby->poll_query_until('postgres',
			"SELECT strategy = '$strategy' AND configured = '$strategy' FROM pg_sweep_status"),
		"$strategy: a reload works on a standby");
}
switch_to($standby, 'batched');

#
# A restartpoint and a restart in the middle
#
$standby->restart;
run_load('after_restart');
like($standby->safe_psql('postgres', $startup),
	qr/^\w+\|\d+$/, 'after a restart: the startup process has allocated');
switch_to($standby, 'batched');

#
# Promotion
#
my $expected = contents($primary);
$primary->stop;
$standby->promote;
ok( $standby->poll_query_until(
		'postgres',
		"SELECT NOT pg_is_in_recovery() AND NOT EXISTS (SELECT FROM pg_sweep_backends WHERE backend_type = 'startup')"
	),
	'promoted: the startup process is gone');
is($standby->safe_psql('postgres', 'SELECT strategy FROM pg_sweep_status'),
	'batched', 'promoted: the strategy stays');
is(contents($standby), $expected, 'promoted: nothing is lost');

my $allocations = counter($standby, 'batched', 'allocations');
run_pgbench($standby, 'promoted: it can be written to', 'promoted',
	'--client' => 4, '--transactions' => 200);
cmp_ok(counter($standby, 'batched', 'allocations') - $allocations,
	'>', 100, 'promoted: batched allocates');
check_balances($standby, 'promoted');
check_amcheck($standby, 'promoted');

is_deeply([ unexpected_log_lines($standby, 0, qr/connection to client lost/,
	# the walreceiver, when the primary stops or is not there yet
	qr/FATAL:  (?:could not|terminating|the database system|streaming replication)/) ],
	[], 'no other error in the log');
$standby->stop;
done_testing();
