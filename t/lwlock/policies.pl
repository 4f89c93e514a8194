
# Waiting for LWLocks: policies by parameter, function and tranche, after a restart
# and a crash, together with another library, and on the smallest server.

use strict;
use warnings FATAL => 'all';

use LwlockTest;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;
use Time::HiRes qw(time usleep);

my $server = LwlockServer->new;
my $node = $server->{node};

sub policies
{
	return $server->value('SELECT lwlock_policy, lwlock_policy_configured FROM pg_sweep_status');
}

# Tranches with their own policy
sub own
{
	return $server->value(
		q{SELECT string_agg(tranche || '=' || policy, ' ' ORDER BY tranche) FROM pg_sweep_lwlock_policies WHERE own});
}

#
# Which policy
#
is(policies(), 'lockless|lockless', 'start: as configured');
is(own(), '', 'start: no tranche has its own');
for my $policy (@policies, @policies)
{
	ok($server->reload_with("pg_sweep.lwlock_policy = $policy", "lwlock_policy_configured = '$policy'"),
		"$policy: a reload is applied");
	is(policies(), "$policy|$policy", "$policy: a reload switches");
}
for my $policy (@policies)
{
	my ($other) = grep { $_ ne $policy } @policies;

	$server->reload_with("pg_sweep.lwlock_policy = $other", "lwlock_policy_configured = '$other'")
	  or die "could not configure $other";
	$server->set_policy($other);
	is($server->set_policy($policy), $other, "$policy: the function returns what was active");
	is(policies(), "$policy|$other", "$policy: it leaves the configuration alone");
	$server->unrelated_reload;
	is(policies(), "$policy|$other", "$policy: a reload of other parameters does not undo it");
	ok($server->reload_with("pg_sweep.lwlock_policy = $policy", "lwlock_policy_configured = '$policy'"),
		"$policy: the configuration follows");
	is(policies(), "$policy|$policy", "$policy: which changes nothing");
	$server->set_policy($other);
	$server->set_policy($other, 'WALWrite');
	ok($server->reload_with('pg_sweep.lwlock_policy = stock', "lwlock_policy_configured = 'stock'"),
		"$policy: a changed parameter is applied")
	  unless $policy eq 'stock';
	is(policies(), 'stock|stock', "$policy: and wins over the function")
	  unless $policy eq 'stock';
	is(own(), "WALWrite=$other", "$policy: tranches keep their own policy");
	$server->set_policy('default', 'WALWrite');
	is(own(), '', "$policy: until it is taken away");
}

$server->set_policy('lockless_spin');
$server->set_policy('stock', 'WALWrite');
$server->set_policy('lockless', 'BufferContent');
is(own(), 'BufferContent=lockless WALWrite=stock', 'tranches: each has its own policy');
is(policies(), 'lockless_spin|stock', 'tranches: the others have the default');
$server->reload_with('pg_sweep.lwlock_policy = lockless', "lwlock_policy = 'lockless'")
  or die 'could not switch';
$server->set_policy('lockless_spin');
$node->restart;
is(policies(), 'lockless|lockless', 'a restart returns to what is configured');
is(own(), '', 'and to no policies of tranches');

for my $case (
	[ "pg_sweep.lwlock_policy = 'nope'", 'Available values: ' . join(', ', @policies) ],
	[ 'pg_sweep.lwlock_spin_tries = 10001', '10001 is outside the valid range' ],
	[ "pg_sweep.lwlock_handoff_after = '2h'", '7200000 ms is outside the valid range' ])
{
	my ($setting, $reason) = @$case;
	my ($ret, $stdout, $stderr) = $node->psql('postgres', "ALTER SYSTEM SET $setting");

	is($ret, 3, "ALTER SYSTEM SET $setting: refused");
	like($stderr, qr/\Q$reason\E/, "ALTER SYSTEM SET $setting: says why");
}

#
# Another library's hooks: test_lwlock, preloaded first
#
SKIP:
{
	skip 'test/lwlock/test_lwlock is not installed', 1
	  unless installed_module($node, 'test_lwlock');

	$node->stop;
	$node->adjust_conf('postgresql.conf', 'shared_preload_libraries', "'test_lwlock,pg_sweep'");
	my $offset = -s $node->logfile;
	is($node->start(fail_ok => 1), 0, 'another library has replaced the hooks: the server does not start');
	like(
		slurp_file($node->logfile, $offset),
		qr/FATAL:  pg_sweep cannot be loaded: another library has replaced waiting for LWLocks already\n/,
		'and says why');
	$node->adjust_conf('postgresql.conf', 'shared_preload_libraries', "'pg_sweep'");
	$node->start;
}

#
# After a crash
#
$server->set_policy('lockless_spin');
$server->set_policy('stock', 'WALWrite');
{
	my $victim = $node->background_psql('postgres', on_error_stop => 0);
	my $pid = $victim->query_safe('SELECT pg_backend_pid()');

	kill('KILL', $pid);
	eval { $victim->quit; };
	my $deadline = time + $PostgreSQL::Test::Utils::timeout_default;
	usleep(50_000) while slurp_file($node->logfile) !~ /terminating any other active server processes/ && time < $deadline;
	ok(wait_until_back($node), 'crash: the server is back');
}
is(policies(), 'lockless|lockless', 'crash: as configured');
is(own(), '', 'crash: no tranche has its own');
$node->stop;

#
# The smallest server, on one CPU
#
{
	my $tiny = sweep_node('tiny', conf => q{
shared_buffers = 128kB
max_connections = 5
max_wal_senders = 0
max_worker_processes = 0
io_method = sync
});
	$tiny->start;
	$tiny->safe_psql('postgres', 'CREATE EXTENSION pg_sweep');

	# processes that start from now on
	my $pinned = system('taskset --all-tasks --cpu-list --pid 0 '
		  . $tiny->safe_psql('postgres', q{SELECT pg_read_file('postmaster.pid')::text}) =~ s/\n.*//sr
		  . ' >/dev/null 2>&1') == 0;
	note($pinned ? 'on one CPU' : 'cannot be bound to one CPU');

	$tiny->safe_psql('postgres', 'CREATE TABLE t (i int)');
	my $insert = write_script('tiny_insert.sql', 'INSERT INTO t VALUES (1);');
	for my $policy (@policies)
	{
		$tiny->safe_psql('postgres', "SELECT pg_sweep_set_lwlock_policy('$policy')");
		my $load = start_pgbench($tiny, "tiny_$policy",
			'--file' => $insert, '--client' => 2, '--transactions' => 500);
		is(wait_for_background($load, 0), 0, "tiny, $policy: works");
	}
	is($tiny->safe_psql('postgres', 'SELECT count(*) FROM t'), 1000 * @policies, 'tiny: all rows are there');
	is( $tiny->safe_psql(
			'postgres',
			'SELECT count(*) FROM pg_sweep_lwlock_waits WHERE spun > contended OR slept > queued'),
		0, 'tiny: counters are consistent');
	$tiny->stop;
}

done_testing();
