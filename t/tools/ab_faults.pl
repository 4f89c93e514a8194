
# pg_sweep_ab: A/B of settings on a running server.  What the server makes it refuse
# (ab/test_options.py has the rest), and that everything is as before however it ends.
#
# PG_SWEEP_AB_INTERRUPTS is the number of interrupts, PG_SWEEP_AB_SEED the seed of
# their moments.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../lib";

use AbTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;
use Time::HiRes qw(time usleep);

my $ab = AbTest->new;
my $node = $ab->{node};
my $folder = $ab->{folder};
my @load = $ab->load;
$node->safe_psql('postgres', q{
CREATE DATABASE other;
CREATE ROLE ordinary LOGIN;
CREATE ROLE overridden LOGIN SUPERUSER;
ALTER ROLE overridden SET work_mem = '5MB';
});

#
# What is refused, with nothing changed
#
my $before = $ab->snapshot;
for my $case (
	[ 'no such strategy', [ '-S', '--a', 'stock', '--b', 'clock' ], qr/strategy: 'clock' is none of stock, batched, partitioned, auto/ ],
	[ 'no such policy', [ '-S', '--a', 'stock', '--b', 'lwlock_policy=futex' ], qr/lwlock_policy: 'futex' is none of/ ],
	[ 'no such tranche', [ '-S', '--a', 'stock', '--b', 'lwlock_policy.walwrite=spin' ], qr/no such tranche/ ],
	[ 'no such parameter', [ '-S', '--a', 'stock', '--b', 'work_memory=1' ], qr/has no parameter work_memory/ ],
	[ 'a misspelt one of pg_sweep', [ '-S', '--a', 'stock', '--b', 'pg_sweep.batchsize=1' ], qr/invalid configuration parameter name/ ],
	[ 'postmaster', [ '-S', '--a', 'stock', '--b', 'shared_buffers=1GB' ], qr/shared_buffers can be changed by a restart only/ ],
	[ 'internal', [ '-S', '--a', 'stock', '--b', 'block_size=1' ], qr/block_size cannot be changed/ ],
	[ 'what changes meaning', [ '-S', '--a', 'stock', '--b', 'session_replication_role=replica' ], qr/session_replication_role is not for an experiment: category/ ],
	[ 'kept plans', [ '-S', '-M', 'prepared', '--a', 'now:', '--b', 'enable_sort=off' ], qr/enable_sort is for the planner/ ],
	[ 'backend', [ '-S', '--a', 'stock', '--b', 'jit_provider=x, log_connections=on' ], qr/jit_provider can be|log_connections is read when/ ],
	[ 'fsync', [ '-S', '--a', 'stock', '--b', 'fsync=off' ], qr/fsync is not for an experiment: a crash/ ],
	[ 'full_page_writes', [ '-S', '--a', 'stock', '--b', 'FULL_PAGE_WRITES=off' ], qr/full_page_writes is not for/ ],
	[ 'a list of names', [ '-S', '--a', 'stock', '--b', 'search_path=public' ], qr/search_path is not for an experiment/ ],
	[ 'matched names', [ '-S', '--a', 'stock', '--b', 'nodots=1' ], qr/has no parameter nodots/ ],
	[ 'set for the role', [ '-S', '--a', 'stock', '--b', 'work_mem=8MB', '-d', $node->connstr('postgres') . ' user=overridden' ],
		qr/work_mem is set by ALTER ROLE/ ],
	[ 'set for some role', [ '--attach', '--a', 'stock', '--b', 'work_mem=8MB' ], qr/work_mem is set by ALTER ROLE or ALTER DATABASE \(overridden,/ ],
	[ 'not the extension', [ '-S', @two, '-d', $node->connstr('other') ], qr/needs pg_sweep: CREATE EXTENSION/ ],
	[ 'a role that may not read statistics', [ '-S', @two, '-d', $node->connstr('postgres') . ' user=ordinary' ], qr/ordinary may not read/ ],
	[ 'a role that may not ALTER SYSTEM', [ '-S', '--a', 'stock', '--b', 'batch_size=1', '-d', $node->connstr('postgres') . ' user=switcher' ],
		qr/must be a superuser/ ],
	[ 'a role that may not set policies', [ '-S', '--a', 'stock', '--b', 'lwlock_policy=spin', '-d', $node->connstr('postgres') . ' user=switcher' ],
		qr/switcher may not call pg_sweep_set_lwlock_policy/ ],
	[ 'no server', [ '-S', @two, '-d', 'host=/nonexistent port=1' ], qr/connection to server .* failed/ ],
	[ 'no place for results', [ '-S', @two, '--out', '/proc/no' ], qr/cannot create .*--out names another/ ],
	[ 'no place for the journal', [ '-S', @two, '--state-dir', '/proc/no' ], qr/cannot write down .*--state-dir/, 'load' ],
	[ 'a value that the server refuses', [ '-S', '--a', 'stock', '--b', 'x: work_mem=1kB' ], qr/setting 'x': 1 kB is outside the valid range/, 'load' ])
{
	my ($title, $arguments, $reason, $load) = @$case;
	# pgbench -S would want a table; these get as far as the load
	my @arguments = $load ? (@load, grep { $_ ne '-S' } @$arguments) : @$arguments;
	my ($status, $out, $err) = $ab->run('--no-picture', @arguments);

	is($status, 1, "$title: refused");
	like($err, $reason, "$title: says why");
	unlike($err, qr/Traceback/, "$title: without a traceback");
	is(scalar(grep { /^pg_sweep_ab:/ } split /\n/, $err), 1, "$title: in one line");
}
{
	# as if matplotlib were not installed
	mkdir "$folder/python" or die;
	append_to_file("$folder/python/matplotlib.py", "raise ImportError('not there')\n");
	local $ENV{PYTHONPATH} = "$folder/python";
	my ($status, $out, $err) = $ab->run(@load, @two);

	is($status, 1, 'no matplotlib: refused');
	like($err, qr/^pg_sweep_ab: pictures need matplotlib.*--no-picture does without$/, 'no matplotlib: says so, in one line');
}
is($ab->snapshot, $before, 'refusals: nothing has changed');

$node->safe_psql('postgres', "ALTER SYSTEM SET bgwriter_delay = '20ms'");
{
	my ($status, $out, $err) = $ab->run(@load, '--a', 'stock', '--b', 'balance=off');

	is($status, 1, 'changes that wait for a reload: refused');
	like($err, qr/postgresql.auto.conf.* (was changed at|has not read yet)/, 'changes that wait for a reload: says so');
	$node->safe_psql('postgres', 'ALTER SYSTEM RESET bgwriter_delay');
	$node->reload;
	is($ab->snapshot, $before, 'changes that wait for a reload: taken back');

	# Files that a reload reads as well; a second later, as their times are in
	# seconds.
	my $hba = $node->data_dir . '/pg_hba.conf';
	my $old = slurp_file($hba);
	usleep(1_100_000);
	append_to_file($hba, "# another line\n");
	($status, $out, $err) = $ab->run(@load, '--a', 'stock', '--b', 'balance=off', '--no-picture');
	is($status, 1, 'a changed pg_hba.conf: refused');
	like($err, qr/pg_hba\.conf was changed at/, 'a changed pg_hba.conf: says so');
	$node->reload;
	append_to_file($node->data_dir . '/postgresql.auto.conf', "# by hand\n");
	($status, $out, $err) = $ab->run(@load, '--a', 'stock', '--b', 'balance=off', '--no-picture');
	is($status, 1, 'a comment by hand: refused');
	like($err, qr/edited by hand, and ALTER SYSTEM would not keep the line '# by hand'/, 'a comment by hand: says so');
	$node->safe_psql('postgres', 'ALTER SYSTEM RESET work_mem');
	$node->reload;
	is($ab->snapshot, $before, 'by hand: taken back');
}

# Change what a run compares, until it says that it has noticed: it does not if it is
# about to do the same
sub interfere
{
	my ($handle, $pattern, $interference) = @_;

	for (1 .. 10)
	{
		my $patience = time + 2;

		$interference->();
		usleep(20_000)
		  until background_stderr($handle) =~ $pattern || time > $patience;
		# or until it has ended (a zombie)
		last
		  if background_stderr($handle) =~ $pattern
		  || slurp_file("/proc/$handle->{pid}/stat") =~ /\) Z /;
	}
	return;
}

#
# Two runs at once, and another session that switches
#
{
	my $first = run_in_background('first', $ab->command(@load, @two, @short, '--blocks' => 1000));
	wait_until_it_says($first, qr/warm-up/);
	for my $database (qw(postgres other))
	{
		my ($status, $out, $err) = $ab->run(@load, '--a', 'x: ab.y=1', '--b', 'y: ab.y=2', @short, '-d' => $node->connstr($database));
		is($status, 1, "a second one, $database: refused");
		like($err, qr/another pg_sweep_ab is at work/, "a second one, $database: says why");
	}
	my $switching = start_switching($node, 'switching', 70, 20);
	is(wait_for_background($first, 60), 1, 'another session switches: the run ends');
	like(slurp_file($first->{err}), qr/another session interferes with what is compared, 3 times.*was set by function of \w+ at 20/,
		'another session switches: says which one and when');
	stop_background($switching);
	$ab->wait_until_quiet;
	switch_to($node, 'stock');
	is($ab->snapshot, $before, 'another session switches: as before');
}

#
# What other sessions do to what is compared, or to the configuration files
#
{
	my @ab = $ab->command(@load, '--a', 'x: maintenance_work_mem=9MB', '--b', 'y: maintenance_work_mem=8MB', @short, '--blocks' => 1000);
	my $handle = run_in_background('by_others', @ab);
	wait_until_it_says($handle, qr/warm-up/);
	interfere($handle, qr/another session has set/,
		sub { $node->safe_psql('postgres', "ALTER SYSTEM SET maintenance_work_mem = '77MB'") });
	is(wait_for_background($handle, 30), 1, 'ALTER SYSTEM meanwhile: ends the run');
	like(background_stderr($handle), qr/another session has set maintenance_work_mem to '77MB'/, 'ALTER SYSTEM meanwhile: says so');
	like(background_stderr($handle), qr/was set to '77MB' by another session, and stays so/, 'ALTER SYSTEM meanwhile: and what it leaves');
	is($node->safe_psql('postgres', 'SHOW maintenance_work_mem'), '77MB', 'ALTER SYSTEM meanwhile: is left');
	$node->safe_psql('postgres', 'ALTER SYSTEM RESET maintenance_work_mem');
	$node->reload;

	$handle = run_in_background('another', @ab);
	wait_until_it_says($handle, qr/warm-up/);
	$node->safe_psql('postgres', 'ALTER SYSTEM SET deadlock_timeout = 777');
	is(wait_for_background($handle, 30), 1, 'ALTER SYSTEM of another parameter: ends the run');
	like(background_stderr($handle), qr/another session has changed the configuration files/, 'ALTER SYSTEM of another parameter: says so');
	$node->safe_psql('postgres', 'ALTER SYSTEM RESET deadlock_timeout');
	$node->reload;
	is($ab->snapshot, $before, 'ALTER SYSTEM meanwhile: all else as before');

	# a decision of an operator, which stays
	$handle = run_in_background('operator', $ab->command(@load, @two, '--slice' => 0.3, '--blocks' => 8, '--no-picture'));
	wait_until_it_says($handle, qr/warm-up/);
	usleep(1_000_000);
	interfere($handle, qr/thrown away/, sub { switch_to($node, 'partitioned') });
	is(wait_for_background($handle, 30), 0, 'an operator switches: the run goes on');
	like(background_stderr($handle), qr/is thrown away, as another session has interfered: strategy partitioned was set by function/,
		'an operator switches: a block is thrown away');
	like(slurp_file($handle->{out}), qr/^NOTE: other sessions have interfered/m, 'an operator switches: the result says so');
	is($node->safe_psql('postgres', 'SELECT strategy FROM pg_sweep_status'), 'partitioned', 'an operator switches: it stays so');
	is(scalar(grep { $_->{used} } $ab->slices), 16, 'an operator switches: no block is missing');
	switch_to($node, 'stock');
	is($ab->snapshot, $before, 'an operator switches: all else as before');

	# A client that ends makes the load smaller.  Others go on: without a client,
	# pgbench ends, which has another message.
	my ($status, $out, $err) = $ab->run('-f', write_script('dies.sql',
			"\\set divisor :client_id + random(0, 99)\nSELECT pg_sleep(0.001), 1 / :divisor;\n"), '-c', 4, @two, @short, '--blocks' => 100);
	is($status, 1, 'a client that dies: ends the run');
	like($err, qr/a client of pgbench has ended: .*client 0 .*division by zero/, 'a client that dies: says why');
	is($ab->snapshot, $before, 'a client that dies: everything is as before');
	($status, $out, $err) = $ab->run('-f', write_script('die.sql', "\\set divisor 0\nSELECT pg_sleep(0.5), 1 / :divisor;\n"), '-c', 2,
		@two, @short, '--blocks' => 100);
	is($status, 1, 'all clients die: ends the run');
	like($err, qr/(pgbench ended with status 2|a client of pgbench has ended): .*division by zero/, 'all clients die: says why');
	is($ab->snapshot, $before, 'all clients die: everything is as before');

	# functions of another user in schema public, which a session's path may find
	$node->safe_psql('postgres', q{
CREATE FUNCTION public.trap(text, record) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE 'trapped'; END $$;
CREATE AGGREGATE public.json_agg(record) (SFUNC = trap, STYPE = text);
ALTER ROLE overridden SET statement_timeout = '1ms';
ALTER ROLE overridden SET standard_conforming_strings = off;
ALTER ROLE overridden SET search_path = public, pg_catalog;
});
	($status, $out, $err) = $ab->run(@load, @two, @short, '--blocks' => 1, '-d' => $node->connstr('postgres') . ' user=overridden');
	# pgbench has the timeout, too
	like($err, qr/pgbench ended.*statement timeout|a client of pgbench has ended/, 'a hostile role: the load alone has its settings');
	($status, $out, $err) = $ab->run('--restore', '-d' => $node->connstr('postgres') . ' user=overridden');
	is($status, 0, 'a hostile role: putting back has not') or diag($err);
	$node->safe_psql('postgres', 'DROP AGGREGATE public.json_agg(record); ALTER ROLE overridden RESET ALL');
	is($ab->snapshot, $before, 'a hostile role: everything is as before');
}

#
# Interrupted
#
my $seed = $ENV{PG_SWEEP_AB_SEED} // 1;
my $interrupts = $ENV{PG_SWEEP_AB_INTERRUPTS} // 7;
srand($seed);
note("interrupts: seed $seed");

sub one_of
{
	return $_[ int rand @_ ];
}

# A state other than the default: by function, by tranche, by file
sub random_state
{
	my @sql = map { "ALTER SYSTEM $_" } (
		one_of('SET pg_sweep.batch_size = 16', 'RESET pg_sweep.batch_size'),
		one_of("SET work_mem = '3MB'", 'RESET work_mem'),
		one_of("SET ab.delay = '0.002'", "SET ab.delay = '0.0015'"),
		one_of("SET pg_sweep.lwlock_policy = 'spin'", 'RESET pg_sweep.lwlock_policy'));

	my $read = $node->safe_psql('postgres', join '', map { "$_;\n" } @sql, 'SELECT pg_conf_load_time()');
	$node->reload;

	# The background writer applies it, which must be before the functions.
	$node->poll_query_until('postgres', qq{
SELECT pg_conf_load_time() > '$read' AND lwlock_policy_configured = current_setting('pg_sweep.lwlock_policy')
   AND batch_size_configured = current_setting('pg_sweep.batch_size')::int FROM pg_sweep_status})
	  or die 'the configuration is not applied';
	@sql = (
	  'SELECT pg_sweep_set_strategy(' . one_of(map { "'$_'" } qw(stock batched partitioned auto)) . ')',
	  'SELECT pg_sweep_set_lwlock_policy(' . one_of(map { "'$_'" } qw(stock spin lockless)) . ')',
	  "SELECT pg_sweep_set_lwlock_policy('" . one_of(qw(default spin)) . "', 'WALWrite')");
	$node->safe_psql('postgres', join '', map { "$_;\n" } @sql);
	return;
}

# Of the load
sub pgbench_pids
{
	return grep { $_ } map { m{^/proc/(\d+)/} && $1 }
	  grep { (eval { slurp_file($_) } // '') =~ /pgbench\0.*\Q$folder\E/s } glob('/proc/[0-9]*/cmdline');
}

# What a restart leaves of it: what functions have set is lost, as without
# pg_sweep_ab
sub restarted
{
	my ($text, $strategy, $lwlock_policy) = @_;

	$text =~ s/^ok\|\w+\|\Q$strategy\E\|[^|]*\|(\d+)\|\w+\|/ok|$strategy|$strategy||$1|$lwlock_policy|/
	  or die "what is this: $text";
	$text =~ s/^(\w*)\|\w+\|[tf]$/$1|$lwlock_policy|f/mg;
	return $text;
}

my @kinds = ('INT', 'TERM', 'HUP', 'KILL', 'pgbench', 'restart', 'crash', 'twice INT');
my %ending = (INT => 130, TERM => 143, HUP => 129, KILL => 137, pgbench => 1, restart => 1, crash => 1, 'twice INT' => 130);
for my $i (1 .. $interrupts)
{
	my $kind = $i <= @kinds ? $kinds[ $i - 1 ] : one_of(@kinds);
	my $wait = rand(2);
	my $title = sprintf('interrupt %d, %s after %.2f s', $i, $kind, $wait);

	random_state();
	my $found = $ab->snapshot;
	my $handle = run_in_background("interrupt_$i",
		$ab->command(@load, '--a' => 'stock', '--b' =>
			  'b: batched, batch_size=8, work_mem=7MB, ab.delay=0.001, lwlock_policy=lockless_spin, lwlock_policy.WALWrite=lockless, lwlock_policy.XidGen=spin, balance=off',
			'--setting' => 'c: partitioned, maintenance_work_mem=9MB',
			'--slice' => 0.25, '--blocks' => 1000, '--no-picture'));

	# It has looked at everything, and changed nothing yet.
	my $deadline = time + $PostgreSQL::Test::Utils::timeout_default;
	usleep(10_000) until -s $handle->{out} || -s $handle->{err} || time > $deadline;
	usleep(1_000_000 * $wait);
	# Killed before it has noted what it will change, it would leave temporary files.
	wait_until_it_says($handle, qr/warm-up/) if $kind eq 'KILL';
	if ($kind eq 'pgbench')
	{
		my @pids;

		usleep(20_000) until @pids = pgbench_pids();
		kill('KILL', @pids);
	}
	elsif ($kind eq 'restart')
	{
		$node->stop('immediate');
		$node->start;
	}
	elsif ($kind eq 'crash')
	{
		kill('KILL', $node->safe_psql('postgres',
			q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'background writer'}));
		usleep(200_000);
		wait_until_back($node) or BAIL_OUT('the server does not come back');
	}
	elsif ($kind eq 'twice INT')
	{
		kill('INT', $handle->{pid});
		usleep(rand 100_000);
		kill('INT', $handle->{pid});
	}
	else
	{
		kill($kind, $handle->{pid});
	}
	is(wait_for_background($handle, 30), $ending{$kind}, "$title: ends as it should")
	  or diag(background_stderr($handle));
	if ($kind eq 'KILL')
	{
		$ab->wait_until_quiet;
		my @journal = $ab->journals;
		if (@journal)
		{
			my ($status, $out, $err) = $ab->run(@load, @two, @short);
			is($status, 1, "$title: the next run is refused");
			like($err, qr/was killed and has put nothing back: --restore/, "$title: and says why");
		}
		local $ENV{PGTZ} = one_of('Asia/Tokyo', 'UTC');
		my ($status, $out, $err) = $ab->run('--restore');
		is($status, 0, "$title: --restore") or diag($err);
		like($out, @journal ? qr/everything is as before the run of 20/ : qr/nothing to put back/, "$title: says what it did");
	}
	ok($ab->wait_until_quiet, "$title: nothing of it is connected");
	if ($kind =~ /restart|crash/)
	{
		$found = restarted($found, split /\|/, $node->safe_psql('postgres',
				'SELECT configured, lwlock_policy_configured FROM pg_sweep_status'));
	}
	is($ab->snapshot, $found, "$title: everything is as before")
	  or diag(background_stderr($handle));
	is_deeply([ $ab->left_over ], [], "$title: nothing is left over")
	  or system("rm -rf $folder/tmp/* $folder/state/*.json");
}
unlike(slurp_file($node->logfile), qr/TRAP:/, 'no assertion has failed');
done_testing();
