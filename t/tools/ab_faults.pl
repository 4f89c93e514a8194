
# pg_sweep_ab: A/B of settings on a running server.  What the server makes it refuse
# (ab/test_options.py has the rest), and that everything is as before however it ends.
#
# PG_SWEEP_AB_INTERRUPTS is the number of interrupts, PG_SWEEP_AB_SEED the seed of
# their moments.

use strict;
use warnings FATAL => 'all';

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
my @as_switcher = ('-d', $node->connstr('postgres') . ' user=switcher');
my @as_overridden = ('-d', $node->connstr('postgres') . ' user=overridden');
$node->safe_psql('postgres', q{
CREATE DATABASE other;
CREATE ROLE ordinary LOGIN;
CREATE ROLE overridden LOGIN SUPERUSER;
ALTER ROLE overridden SET work_mem = '5MB';
});
my $before = $ab->snapshot;

# A run that must fail, with one line that says why
sub fails
{
	my ($title, $reason, @arguments) = @_;
	my ($status, $out, $err) = $ab->run(@arguments);

	is($status, 1, "$title: fails");
	like($err, $reason, "$title: says why");
	unlike($err, qr/Traceback/, "$title: without a traceback");
	is(scalar(grep { /^pg_sweep_ab:/ } split /\n/, $err), 1, "$title: in one line");
	return;
}

sub unchanged
{
	my ($title) = @_;

	$ab->wait_until_quiet;
	return is($ab->snapshot, $before, "$title: everything is as before");
}

# Change the configuration without a reload
sub alter_system
{
	my ($sql) = @_;

	$node->safe_psql('postgres', "ALTER SYSTEM $sql");
	return;
}

sub reset_parameter
{
	my ($name) = @_;

	alter_system("RESET $name");
	$node->reload;
	return;
}

#
# Settings that are refused; pgbench -S would need a table, but is not reached
#
my @pgbench = ('-S', '--no-picture');
for my $case (
	[ 'strategy=clock', qr/'clock' is none of stock, batched, partitioned, clock2q, clock2q_partitioned, auto/ ],
	[ 'lwlock_policy=futex', qr/lwlock_policy: 'futex' is none of/ ],
	[ 'lwlock_policy.walwrite=lockless', qr/no such tranche/ ],
	[ 'work_memory=1', qr/has no parameter work_memory/ ],
	[ 'pg_sweep.batchsize=1', qr/invalid configuration parameter name/ ],
	[ 'pg_sweep.numa_affinity=on', qr/numa_affinity (is not for|can be changed by)/ ],
	[ 'shared_buffers=1GB', qr/shared_buffers can be changed by a restart only/ ],
	[ 'block_size=1', qr/block_size cannot be changed/ ],
	[ 'session_replication_role=replica', qr/replication_role is not for an experiment: category/ ],
	[ 'jit_provider=x, log_connections=on', qr/jit_provider can be|log_connections is read when/ ],
	[ 'fsync=off', qr/fsync is not for an experiment: a crash/ ],
	[ 'FULL_PAGE_WRITES=off', qr/full_page_writes is not for/ ],
	[ 'search_path=public', qr/search_path is not for an experiment/ ],
	[ 'enable_sort=off', qr/enable_sort is for the planner/, '-M', 'prepared' ],
	[ 'work_mem=8MB', qr/work_mem is set by ALTER ROLE/, @as_overridden ],
	[ 'batch_size=1', qr/must be a superuser/, @as_switcher ],
	[ 'lwlock_policy=lockless', qr/switcher may not call pg_sweep_set_lwlock_policy/, @as_switcher ])
{
	my ($setting, $reason, @arguments) = @$case;

	fails($setting, $reason, @pgbench, '--a' => 'stock', '--b' => $setting, @arguments);
}
fails('a value that the server refuses', qr/setting 'x': 1 kB is outside the valid range/,
	@load, '--a' => 'stock', '--b' => 'x: work_mem=1kB', '--no-picture');
fails('attached, and set for a role', qr/set by ALTER ROLE or ALTER DATABASE \(overridden,/,
	'--attach', '--a' => 'stock', '--b' => 'work_mem=8MB', '--no-picture');

#
# Places, roles and servers that are refused
#
fails('a database without the extension', qr/needs pg_sweep: CREATE EXTENSION/,
	@pgbench, @two, '-d' => $node->connstr('other'));
fails('a role that may not read statistics', qr/ordinary may not read/,
	@pgbench, @two, '-d' => $node->connstr('postgres') . ' user=ordinary');
fails('no server', qr/connection to server .* failed/,
	@pgbench, @two, '-d' => 'host=/nonexistent port=1');
fails('no place for results', qr/cannot create .*--out names another/,
	@pgbench, @two, '--out' => '/proc/no');
fails('no place for the note', qr/cannot write down .*--state-dir/,
	@load, @two, '--no-picture', '--state-dir' => '/proc/no');
{
	# as if matplotlib were not installed
	mkdir "$folder/python" or die;
	append_to_file("$folder/python/matplotlib.py", "raise ImportError('not there')\n");
	local $ENV{PYTHONPATH} = "$folder/python";

	fails('no matplotlib', qr/: pictures need matplotlib.*--no-picture does without$/, @load, @two);
}
unchanged('refusals');

#
# Configuration files that a reload would bring into force
#
{
	my @balance = (@load, '--a' => 'stock', '--b' => 'balance=off', '--no-picture');
	my $hba = $node->data_dir . '/pg_hba.conf';

	alter_system("SET bgwriter_delay = '20ms'");
	fails('changes before a reload', qr/auto.conf.* (was changed at|has not read yet)/, @balance);
	reset_parameter('bgwriter_delay');
	unchanged('changes before a reload');

	# a second later, as times of files are in seconds
	usleep(1_100_000);
	append_to_file($hba, "# another line\n");
	fails('a changed pg_hba.conf', qr/pg_hba\.conf was changed at/, @balance);
	$node->reload;
	append_to_file($node->data_dir . '/postgresql.auto.conf', "# by hand\n");
	fails('a comment by hand', qr/ALTER SYSTEM would not keep the line '# by hand'/, @balance);
	reset_parameter('work_mem');
	unchanged('files');
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
		usleep(20_000) until background_stderr($handle) =~ $pattern || time > $patience;
		# or until it has ended (a zombie)
		last
		  if background_stderr($handle) =~ $pattern
		  || slurp_file("/proc/$handle->{pid}/stat") =~ /\) Z /;
	}
	return;
}

# A run in the background, when it has begun to switch
sub begin
{
	my ($name, @arguments) = @_;
	my $handle = run_in_background($name,
		$ab->command(@load, '--no-picture', '--slice' => 0.3, @arguments));

	wait_until_it_says($handle, qr/warm-up/);
	return $handle;
}

# Its end: the exit code, and what it says
sub ends
{
	my ($handle, $status, @patterns) = @_;

	is(wait_for_background($handle, 60), $status, "$handle->{name}: ends as it should");
	like(background_stderr($handle), $_, "$handle->{name}: says so") for @patterns;
	return;
}

#
# Two runs at once, and another session that switches all the time
#
{
	my $handle = begin('switching', @two, '--blocks' => 1000);

	for my $database (qw(postgres other))
	{
		fails("a second one, $database", qr/another pg_sweep_ab is at work/, @load,
			'--a' => 'x: ab.y=1', '--b' => 'y: ab.y=2', @short, '-d' => $node->connstr($database));
	}
	my $switching = start_switching($node, 'switcher', 70, 20);
	ends($handle, 1, qr/another session interferes .*, 3 times.*was set by function of \w+ at 20/);
	stop_background($switching);
	$ab->wait_until_quiet;
	switch_to($node, 'stock');
	unchanged('switching');
}

#
# Other sessions that change what is compared, or the configuration files
#
{
	my $parameter = 'maintenance_work_mem';
	my @memory = ('--a' => "x: $parameter=9MB", '--b' => "y: $parameter=8MB", '--blocks' => 1000);

	my $handle = begin('same_parameter', @memory);
	interfere($handle, qr/session has set/, sub { alter_system("SET $parameter = '77MB'") });
	ends($handle, 1, qr/another session has set $parameter to '77MB'/,
		qr/was set to '77MB' by another session, and stays so/);
	is($node->safe_psql('postgres', "SHOW $parameter"), '77MB', 'same_parameter: it stays so');
	reset_parameter($parameter);

	$handle = begin('other_parameter', @memory);
	alter_system('SET deadlock_timeout = 777');
	ends($handle, 1, qr/another session has changed the configuration files/);
	reset_parameter('deadlock_timeout');
	unchanged('ALTER SYSTEM meanwhile');

	# a decision of an operator, which stays
	$handle = begin('operator', @two, '--blocks' => 8);
	usleep(1_000_000);
	interfere($handle, qr/thrown away/, sub { switch_to($node, 'partitioned') });
	ends($handle, 0, qr/thrown away, as another session has interfered: strategy partitioned was/);
	like(slurp_file($handle->{out}), qr/^NOTE: other sessions have interfered/m,
		'operator: the result says so');
	is($node->safe_psql('postgres', 'SELECT strategy FROM pg_sweep_status'), 'partitioned',
		'operator: it stays so');
	is(scalar(grep { $_->{used} } $ab->slices), 16, 'operator: no block is missing');
	switch_to($node, 'stock');
	unchanged('operator');
}

#
# Clients that end
#
{
	# The load is smaller without one; without all of them, pgbench ends.
	my $one = write_script('dies.sql',
		"\\set divisor :client_id + random(0, 99)\nSELECT pg_sleep(0.001), 1 / :divisor;\n");
	my $all = write_script('die.sql', "\\set divisor 0\nSELECT pg_sleep(0.5), 1 / :divisor;\n");
	my $ended = qr/a client of pgbench has ended: .*division by zero/;

	fails('one client dies', $ended, '-f' => $one, '-c' => 4, @two, @short, '--blocks' => 100);
	unchanged('one client dies');
	fails('all clients die', qr/pgbench ended with status 2: .*division by zero|$ended/,
		'-f' => $all, '-c' => 2, @two, @short, '--blocks' => 100);
	unchanged('all clients die');
}

#
# A role whose sessions have a timeout, and find another user's functions
#
{
	$node->safe_psql('postgres', q{
CREATE FUNCTION public.trap(text, record) RETURNS text LANGUAGE plpgsql
  AS $$ BEGIN RAISE 'trapped'; END $$;
CREATE AGGREGATE public.json_agg(record) (SFUNC = trap, STYPE = text);
ALTER ROLE overridden SET statement_timeout = '1ms';
ALTER ROLE overridden SET standard_conforming_strings = off;
ALTER ROLE overridden SET search_path = public, pg_catalog;
});
	fails('a hostile role', qr/pgbench ended.*statement timeout|a client of pgbench has ended/,
		@load, @two, @short, '--blocks' => 1, @as_overridden);
	my ($status, $out, $err) = $ab->run('--restore', @as_overridden);
	is($status, 0, 'a hostile role: --restore has no timeout') or diag($err);
	$node->safe_psql('postgres',
		'DROP AGGREGATE public.json_agg(record); ALTER ROLE overridden RESET ALL');
	unchanged('a hostile role');
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
		one_of("SET pg_sweep.lwlock_policy = 'lockless_spin'", 'RESET pg_sweep.lwlock_policy'));

	my $read = $node->safe_psql('postgres',
		join '', map { "$_;\n" } @sql, 'SELECT pg_conf_load_time()');
	$node->reload;

	# The background writer applies it, which must be before the functions.
	$node->poll_query_until('postgres', qq{
SELECT pg_conf_load_time() > '$read'
   AND lwlock_policy_configured = current_setting('pg_sweep.lwlock_policy')
   AND batch_size_configured = current_setting('pg_sweep.batch_size')::int FROM pg_sweep_status})
	  or die 'the configuration is not applied';
	my $strategy = one_of(qw(stock batched partitioned auto));
	my $policy = one_of(qw(stock lockless lockless_spin));
	my $wal_policy = one_of(qw(default lockless));
	@sql = (
		"SELECT pg_sweep_set_strategy('$strategy')",
		"SELECT pg_sweep_set_lwlock_policy('$policy')",
		"SELECT pg_sweep_set_lwlock_policy('$wal_policy', 'WALWrite')");
	$node->safe_psql('postgres', join '', map { "$_;\n" } @sql);
	return;
}

# Processes of the load
sub pgbench_pids
{
	my @files;

	until (@files)
	{
		usleep(20_000);
		@files = grep { (eval { slurp_file($_) } // '') =~ /pgbench\0.*\Q$folder\E/s }
		  glob('/proc/[0-9]*/cmdline');
	}
	return map { m{(\d+)} } @files;
}

# What a restart leaves of it: what functions have set is lost, as without
# pg_sweep_ab
sub restarted
{
	my ($text, $strategy, $lwlock_policy) = @_;

	$text =~ s/^ok\|\w+\|\Q$strategy\E\|[^|]*\|(\d+)\|\w+/ok|$strategy|$strategy||$1|$lwlock_policy/
	  or die "what is this: $text";
	$text =~ s/^(\w*)\|\w+\|[tf]$/$1|$lwlock_policy|f/mg;
	return $text;
}

# What ends a run, given its process, and its exit code
my %endings = (
	INT => [ 130, sub { kill('INT', @_) } ],
	TERM => [ 143, sub { kill('TERM', @_) } ],
	HUP => [ 129, sub { kill('HUP', @_) } ],
	KILL => [ 137, sub { kill('KILL', @_) } ],
	'twice INT' => [ 130, sub { kill('INT', @_); usleep(rand 100_000); kill('INT', @_) } ],
	pgbench => [ 1, sub { kill('KILL', pgbench_pids()) } ],
	restart => [ 1, sub { $node->stop('immediate'); $node->start } ],
	crash => [ 1, \&crash ]);
my @kinds = (qw(INT TERM HUP KILL pgbench restart crash), 'twice INT');

sub crash
{
	kill('KILL', $node->safe_psql('postgres',
		q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'background writer'}));
	usleep(200_000);
	return wait_until_back($node) || BAIL_OUT('the server does not come back');
}

# --restore, if there was time for a note of what to put back
sub restore
{
	my ($title) = @_;
	my @journal = $ab->journals;

	fails("$title: next run", qr/killed and has put nothing back: --restore/, @load, @two, @short)
	  if @journal;
	local $ENV{PGTZ} = one_of('Asia/Tokyo', 'UTC');
	my ($status, $out, $err) = $ab->run('--restore');
	is($status, 0, "$title: --restore") or diag($err);
	return like($out, @journal ? qr/as before the run of 20/ : qr/nothing to put back/,
		"$title: says what it did");
}

for my $i (1 .. $interrupts)
{
	my $kind = $i <= @kinds ? $kinds[ $i - 1 ] : one_of(@kinds);
	my ($status, $end) = @{ $endings{$kind} };
	my $wait = rand(2);
	my $title = sprintf('interrupt %d, %s after %.2f s', $i, $kind, $wait);

	random_state();
	my $found = $ab->snapshot;
	my $handle = run_in_background("interrupt_$i", $ab->command(@load,
		'--a' => 'stock',
		'--b' => 'b: batched, batch_size=8, balance=off, work_mem=7MB, ab.delay=0.001, '
		  . 'lwlock_policy=lockless_spin, lwlock_policy.WALWrite=lockless, '
		  . 'lwlock_policy.XidGen=stock',
		'--setting' => 'c: partitioned, maintenance_work_mem=9MB',
		'--slice' => 0.25, '--blocks' => 1000, '--no-picture'));

	# It has looked at everything, and changed nothing yet.
	my $deadline = time + $PostgreSQL::Test::Utils::timeout_default;
	usleep(10_000) until -s $handle->{out} || -s $handle->{err} || time > $deadline;
	usleep(1_000_000 * $wait);
	# Killed before it has noted what it will change, it would leave temporary files.
	wait_until_it_says($handle, qr/warm-up/) if $kind eq 'KILL';
	$end->($handle->{pid});
	is(wait_for_background($handle, 30), $status, "$title: ends as it should")
	  or diag(background_stderr($handle));
	ok($ab->wait_until_quiet, "$title: nothing of it is connected");
	restore($title) if $kind eq 'KILL';
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
