
# States in which pg_sweep can do nothing: not preloaded, preloaded no more, a
# server without the patches, a server with another version of them.  In each of
# them the server starts or says in one line why not.  The extension can be
# created, its views answer, and functions that switch raise one clear error.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

my $preload_note = 'Add pg_sweep to "shared_preload_libraries" and restart the server.';
my $patch_note =
  'The server lacks the core patch "sweep-replacement-hooks"; apply core-hooks to its source and build it again.';

# The common properties of all of these states
sub check_state
{
	my ($node, $title, %expected) = @_;

	is( $node->safe_psql('postgres', 'SELECT state, note, server_api FROM pg_sweep_status'),
		"$expected{state}|$expected{note}|$expected{server_api}",
		"$title: pg_sweep_status says \"$expected{state}\"");
	is( $node->safe_psql('postgres', q{
SELECT string_agg(key, ' ' ORDER BY key) FROM pg_sweep_status s, jsonb_each(to_jsonb(s))
 WHERE value <> 'null' AND key NOT IN ('state', 'note', 'server_api')}),
		'',
		"$title: and nothing else");
	for my $view (
		qw(pg_sweep_strategies pg_sweep_backends pg_sweep_lwlock_waits pg_sweep_lwlock_policies pg_sweep_pins pg_sweep_ring pg_sweep_size_advice)
	  )
	{
		is($node->safe_psql('postgres', "SELECT count(*) FROM $view"), 0, "$title: $view is empty");
	}
	for my $call (
		"pg_sweep_set_strategy('batched')", 'pg_sweep_reset_stats()',
		"pg_sweep_set_lwlock_policy('lockless')", "pg_sweep_set_lwlock_policy('nope', 'nothing')")
	{
		my ($name) = $call =~ /^(\w+)/;
		my ($ret, $stdout, $stderr) =
		  $node->psql('postgres', "\\set VERBOSITY verbose\nSELECT $call");

		is($ret, 3, "$title: $name fails");
		like(
			$stderr,
			qr/ERROR:  55000: \Q$name() cannot be used: $expected{message}\E\nHINT:  \Q$expected{note}\E\n/,
			"$title: $name says why and what to do");
	}
	return;
}

my %not_preloaded = (
	state => 'not preloaded',
	note => $preload_note,
	server_api => 4,
	message => 'pg_sweep must be loaded via "shared_preload_libraries"');
my %not_patched = (
	state => 'server not patched',
	note => $patch_note,
	server_api => '',
	message => 'the server lacks the core patch "sweep-replacement-hooks"');

#
# Not preloaded.
#
my $node = PostgreSQL::Test::Cluster->new('plain');
$node->init;
$node->append_conf('postgresql.conf', "shared_buffers = 4MB\n");
$node->start;

my $title = 'not preloaded';
$node->safe_psql('postgres', 'CREATE EXTENSION pg_sweep');
check_state($node, $title, %not_preloaded);

# LOAD comes too late to do anything; it must be silent and harmless
is($node->safe_psql('postgres', "LOAD 'pg_sweep'; SELECT state FROM pg_sweep_status"),
	'not preloaded', "$title: LOAD changes nothing");
is( $node->safe_psql(
		'postgres',
		"LOAD 'pg_sweep'; SELECT count(*) FROM pg_settings WHERE name LIKE 'pg\\_sweep.%'"),
	0,
	"$title: and defines no parameters");
$node->append_conf('postgresql.conf', "session_preload_libraries = 'pg_sweep'\n");
$node->reload;
check_state($node, 'in session_preload_libraries', %not_preloaded);
$node->adjust_conf('postgresql.conf', 'session_preload_libraries', "''");

#
# In the file, but not read yet: the state does not follow the file.
#
$node->append_conf('postgresql.conf',
	"shared_preload_libraries = 'pg_sweep'\npg_sweep.strategy = batched\n");
$node->reload;
$node->poll_query_until('postgres',
	"SELECT pending_restart FROM pg_settings WHERE name = 'shared_preload_libraries'")
  or die "the server does not see the changed file";
check_state($node, 'listed, not restarted', %not_preloaded);

#
# Preloaded, used, and removed again.
#
$node->restart;
$title = 'preloaded';
is($node->safe_psql('postgres', 'SELECT state, note, strategy FROM pg_sweep_status'),
	'ok||batched', "$title: works with the objects of before");
churn_setup($node);
my $sum = churn($node);
for my $strategy (grep { $_ ne 'batched' } strategies($node))
{
	switch_to($node, $strategy);
	is(churn($node), $sum, "$title: $strategy and batched read the same");
}
switch_to($node, 'batched');
$node->safe_psql('postgres', 'UPDATE churn_1 SET i = i + 1');
$sum += 800;
for my $strategy (strategies($node))
{
	cmp_ok(counter($node, $strategy, 'allocations'), '>', 1000, "$title: $strategy has been used");
}

$node->stop;
$node->adjust_conf('postgresql.conf', 'shared_preload_libraries', "''");
$node->start;
$title = 'preloaded no more';
check_state($node, $title, %not_preloaded);
is(churn($node), $sum, "$title: the data are there");
is($node->safe_psql('postgres', 'SHOW pg_sweep.strategy'),
	'batched', "$title: the parameter left in the file does no harm");
$node->safe_psql('postgres', 'DROP EXTENSION pg_sweep');
$node->safe_psql('postgres', 'CREATE EXTENSION pg_sweep');
check_state($node, "$title, objects created anew", %not_preloaded);

# The same with a crash in between: recovery runs without the strategy that was
# active when the server died.
$node->adjust_conf('postgresql.conf', 'shared_preload_libraries', "'pg_sweep'");
$node->restart;
$node->safe_psql('postgres', 'UPDATE churn_2 SET i = i + 1');
$sum += 800;
is(churn($node), $sum, 'preloaded again: the data are there');
cmp_ok(counter($node, 'batched', 'allocations'),
	'>', 1000, 'preloaded again: batched has been used');
$node->stop('immediate');
$node->adjust_conf('postgresql.conf', 'shared_preload_libraries', "''");
$node->start;
is(churn($node), $sum, 'removed after a crash: the data are there');

#
# A server that was built with another version of the contract.
#
SKIP:
{
	skip 'test_wrong_api is not installed', 1
	  unless installed_module($node, 'test_wrong_api');

	$title = 'wrong API';
	$node->adjust_conf('postgresql.conf', 'shared_preload_libraries', "'test_wrong_api'");
	$node->restart;
	my $api = $node->safe_psql('postgres', 'SELECT server_api FROM pg_sweep_status');
	isnt($api, 1, "$title: the server has another number");
	check_state(
		$node, "$title, not preloaded",
		state => 'wrong API',
		note =>
		  "The server's hooks have API number $api, this library was built for 4; use the pg_sweep that the server's patches came with.",
		server_api => $api,
		message => "the server's hooks have another API number");

	$node->stop;
	$node->adjust_conf('postgresql.conf', 'shared_preload_libraries', "'test_wrong_api,pg_sweep'");
	my $offset = -s $node->logfile;
	is($node->start(fail_ok => 1), 0, "$title: the server does not start");
	my $log = slurp_file($node->logfile, $offset);
	like($log,
		qr/FATAL:  pg_sweep was built for hook API number 4, but this server has number $api\n/,
		"$title: it names both numbers");
	like(
		$log,
		qr/HINT:  Use the pg_sweep that the server's patches came with, or remove it from "shared_preload_libraries"\.\n/,
		"$title: and what to do");

	$node->adjust_conf('postgresql.conf', 'shared_preload_libraries', "'pg_sweep'");
	$node->start;
	is($node->safe_psql('postgres', 'SELECT state FROM pg_sweep_status'),
		'ok', "$title: nothing of it is left");
}
$node->stop;

#
# A server without the patches; the library is the one built for the patched
# server.
#
SKIP:
{
	my $stock = stock_prefix();

	skip
	  'there is no unpatched server (make server VARIANT=stock, or set PG_SWEEP_STOCK)', 1
	  unless defined $stock;

	my $libdir = $node->config_data('--pkglibdir');
	my $sharedir = $node->config_data('--sharedir');
	my $unpatched = PostgreSQL::Test::Cluster->new('unpatched', install_path => $stock);

	$unpatched->init;
	$unpatched->append_conf('postgresql.conf', qq{
shared_buffers = 4MB
dynamic_library_path = '\$libdir:$libdir'
extension_control_path = '\$system:$sharedir'
});
	$unpatched->start;
	$unpatched->safe_psql('postgres', 'CREATE EXTENSION pg_sweep');
	check_state($unpatched, 'server not patched, not preloaded', %not_patched);

	$title = 'server not patched, preloaded';
	$unpatched->append_conf('postgresql.conf',
		"shared_preload_libraries = 'pg_sweep'\npg_sweep.strategy = batched\n");
	my $offset = -s $unpatched->logfile;
	$unpatched->restart;
	my $log = slurp_file($unpatched->logfile, $offset);
	like($log, qr/WARNING:  pg_sweep does nothing on this server\n.*DETAIL:  \Q$patch_note\E\n/,
		"$title: the log has a warning that says what is missing");
	is(scalar(() = $log =~ /pg_sweep does nothing/g), 1, "$title: once, not for each process");
	check_state($unpatched, $title, %not_patched);
	is($unpatched->safe_psql('postgres', 'SHOW pg_sweep.strategy'),
		'batched', "$title: the parameters are known, for files that servers share");
	churn_setup($unpatched);
	is(churn($unpatched), $sum - 2 * 800, "$title: the server works");
	is_deeply(
		[
			unexpected_log_lines(
				$unpatched, $offset, qr/cannot be used/,
				# a session that ends while the server restarts
				qr/terminating connection due to administrator command/)
		],
		[],
		"$title: no error in the log");

	# A parameter that needs another patch names that one
	my ($ret, $stdout, $stderr) = $unpatched->psql('postgres',
		"\\set VERBOSITY verbose\nALTER SYSTEM SET pg_sweep.lwlock_policy = 'lockless'");
	like(
		$stderr,
		qr/ERROR:  0A000: invalid value for parameter "pg_sweep\.lwlock_policy": "lockless"\nDETAIL:  The server lacks the core patch "lwlock-wait-hooks"\.\n/,
		"$title: lwlock_policy is refused, naming the patch");
	is( $unpatched->safe_psql(
			'postgres',
			"ALTER SYSTEM SET pg_sweep.lwlock_policy = 'stock'; SHOW pg_sweep.lwlock_policy"),
		'stock',
		"$title: but not core's own way");
	$unpatched->stop;
}

done_testing();
