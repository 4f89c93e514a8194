# The demo (tools/demo): each scene of the tour shows what it should, on a real
# server; all settings are restored; the scenes after a failed one are shown; the
# demo runs again, stops, and leaves nothing.

use strict;
use warnings FATAL => 'all';

use Cwd qw(abs_path);
use File::Basename;
use File::Path qw(make_path remove_tree);
use IPC::Run;
use JSON::PP;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;
use Time::HiRes qw(time usleep);

my $top = abs_path(dirname(__FILE__) . '/../..');
my $demo = "$top/bench/run";
my $work = "$PostgreSQL::Test::Utils::tmp_check/demo";

plan skip_all => 'bench/ is not there' unless -x $demo;
remove_tree($work);
make_path($work);
$work = abs_path($work);

my ($bindir) = run_command([ 'pg_config', '--bindir' ]);
my @server = ('--patched', dirname($bindir));

# The demo's server and results, away from a user's own, and as short as possible
$ENV{SWEEP_BENCH_DIR} = $work;
$ENV{DEMO_ROUNDS} = 1;
$ENV{DEMO_SLICE} = '1.75';
delete $ENV{$_} foreach qw(CI DEMO_STOP DEMO_SCALE DEMO_CLIENTS DEMO_SHARED_BUFFERS XDG_STATE_HOME);

# The server must not outlive the test
END
{
	my $status = $?;
	run_demo('stop') if defined $work && -d "$work/demo";
	$? = $status;
}

# Returns its exit status, what it shows, and its messages
sub run_demo
{
	my (@args) = @_;
	my ($out, $err) = ('', '');

	note("bench/run demo @args");
	IPC::Run::run([ $demo, 'demo', @args ], '<', '/dev/null', '>', \$out, '2>', \$err, IPC::Run::timeout(600));
	return ($? >> 8, $out, $err);
}

# What a scene has shown, without its heading
sub scene
{
	my ($out, $title) = @_;

	return $out =~ /^== \Q$title\E.*? ==\n(.*?)(?=^== |^The server is |\z)/ms ? $1 : '';
}

# Of the server that the demo has left running
sub ask
{
	my ($sql) = @_;
	my $host = "$work/demo/sock";

	if (-f "$work/demo/socket-folder")
	{
		chomp($host = slurp_file("$work/demo/socket-folder"));
	}
	my ($out, $err) = run_command([ 'psql', '-XAtq', '-h', $host, '-p', '5432', '-U', 'postgres', '-d', 'pgbench', '-c', $sql ]);
	diag($err) if $err ne '';
	return $out;
}

# ---- wrong options ----

my ($status, $out, $err) = run_demo('--scenes', 'waits,nothing');
ok($status == 2 && $err =~ /'nothing': the scenes are balance, waits, pins, ring, ab, reads, sim/, 'an unknown scene is refused');

# ---- all of it ----

my $begin = time;
($status, $out, $err) = run_demo('--quick', @server);
is($status, 0, sprintf 'the quick form succeeds (%.0f s)', time - $begin) or diag($out, $err);
my @steps = $err =~ m{\] (\d+)/12 }g;
is("@steps", join(' ', 1 .. 12), 'it reports its progress');

like($out, qr/^shared atomics\/allocation +\d.*^pgbench=# SELECT \* FROM pg_sweep_status \\gx\n.*^-\[ RECORD 3 \].*^strategy +\| partitioned$/ms,
	'strategies: the table and the views');

my $shown = scene($out, 'Balance');
# Which are asked depends on the CPUs that the clients got.  Laps see to the rest.
my @partitions = $shown =~ /^ +(\d+) \| +0 \| +\d+ \| +\d+ \| +\d+ \| +[1-9]\d* \| +\d+ \| \d\d:\d\d:/mg;
is("@partitions", '0 1 2 3', 'balance: each partition has allocated') or diag($shown);
like($shown, qr/imbalance_percent.*\n.*\n +0 \| +\d+ \| +4 \| /, 'balance: the node');

$shown = scene($out, 'Waiting');
foreach my $policy (qw(stock lockless lockless_spin))
{
	like($shown, qr/^$policy +[1-9][\d,]* +[1-9][\d,]* +[\d,]+ +[\d,]+ +[\d,]+ +[\d,]+ +\d+\.\d$/m,
		"waits: $policy has worked, and locks were contended");
}
like($shown, qr/^stock +[\d,]+ +[\d,]+ +0 +[1-9]/m, 'waits: under stock no process gets a lock by spinning, and some sleep');
like($shown, qr/^pgbench=# SELECT tranche, mode, contended.*?^ \w+ +\| (?:exclusive|shared|wait until free) +\| +[1-9]/ms, 'waits: the view by tranche');
like($shown, qr/^ +\| lockless_spin \| f\n LockManager \| lockless +\| t$/m, 'waits: one tranche has a policy of its own');

$shown = scene($out, 'Pins');
like($shown, qr/^ +\d+ \| +[1-9]\d* \| +\d+ \| idle in transaction \| MOVE 100000 FROM forgotten;/m, 'pins: the cursor of a process');
like($shown, qr/^pgbench=\*# COMMIT;\nCOMMIT\n.*\(0 rows\)/ms, 'pins: none after the end of the transaction');

# A load that writes block by block, then one that does not
$shown = scene($out, 'Eager flush');
my @loads = $shown =~ /ring_eager_flush = (on|off);.*?^COPY (\d+)\nTime: .*?blocks_a_write \n[-+]+\n +(\d+) \| +(\d+) \| +([\d.]+)/msg;
is(scalar(@loads), 10, 'ring: two loads') or diag($shown);
is("@loads[0, 1, 4]", 'off 1000000 1.0', 'ring: off, each block is a write');
is("@loads[5, 6]", 'on 1000000', 'ring: on, as many rows');
cmp_ok($loads[9], '>', 3, "ring: on, $loads[9] blocks a write");
my ($view) = $shown =~ /^ bulkwrite \| +[1-9]\d* \| +[1-9]\d* \| +[1-9]\d* \| +(\d+) \|/m;
# core writes some itself
ok(defined $view && $view > $loads[7] / 2 && $view <= $loads[7], 'ring: the view has most of these writes') or diag($shown);

$shown = scene($out, 'A/B');
$shown =~ s/ \\\n +/ /g;    # where a command is broken depends on how long paths are
like($shown, qr/^\$ \S+\/pg_sweep_ab -h \S+ -U postgres -d pgbench -S /m, 'ab: the command');
like($shown, qr/^transactions\/s +[1-9][\d,]* +[1-9][\d,]* +\d\.\d+ +-$/m, 'ab: its table');
like($shown, qr/^batched to stock: no verdict, 2 blocks are too few, 6 needed$/m, 'ab: no verdict');
like($shown, qr/^Everything is as before: strategy "\w+", waiting "stock", and the\s+configuration\. This was too short for an answer\s+about transactions\./m, 'ab: all settings are restored');
like($shown, qr/--a stock --b batched.*?--minutes 5$/ms, 'ab: how to get an answer');
is(scalar(grep { -s "$work/demo/ab/$_" } qw(ab.json ab.csv)), 2, 'ab: its files');

$shown = scene($out, 'clock2q');
like($shown, qr/^blocks read\/transaction +\d+\.\d+ +\d+\.\d+ +\d+\.\d+ +-$/m, 'reads: the line that counts') or diag($shown);
is(scalar(grep { -s "$work/demo/reads/$_" } qw(ab.json ab.csv)), 2, 'reads: its files');

$shown = scene($out, 'Simulator');
SKIP:
{
	skip 'no server to build the simulator from', 3 unless -x "$top/build/$ENV{SWEEP_MAJOR}/release/bin/pg_config" && -d "$top/build/$ENV{SWEEP_MAJOR}/src-patched";
	my %rate = $shown =~ /^(stock|batched|partitioned) +([\d.]+) +[\d,]+ +[\d,]+$/mg;

	is(join(' ', sort keys %rate), 'batched partitioned stock', 'sim: three strategies') or diag($shown, $err);
	cmp_ok($rate{batched} // 0, '>', 2 * ($rate{stock} // 1), 'sim: batched allocates more on 64 cores');
	my $command = $shown =~ /^\$ (sim\/run run .*?strategy=stock)$/ms ? $1 : 'false';
	my ($again) = run_command([ 'sh', '-c', "cd '$top' && $command" ]);
	my ($figure) = $again =~ /^allocations_per_s (\S+)$/m;
	is(sprintf('%.1f', ($figure // 0) / 1e6), $rate{stock}, 'sim: the command, when typed, says the same');
}

my $rows = decode_json(slurp_file("$work/demo.json"));
is(join(' ', sort keys %{ { map { $_->{side} => 1 } @$rows } }), 'batched clock2q clock2q_partitioned partitioned stock', 'the results are of all strategies');

is(ask('SELECT lwlock_policy FROM pg_sweep_status'), 'stock', 'the server still runs, with the policy as before');
is(ask('SELECT count(*) FROM pg_sweep_lwlock_policies WHERE own'), '0', 'no tranche has a policy of its own');
is(ask("SELECT count(*) FROM pg_file_settings WHERE sourcefile LIKE '%auto.conf'"), '0', 'no parameter was changed');
# the last ones may be about to end
my $others = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
my $tries = 100;
usleep(100_000) while ask($others) ne '0' && --$tries > 0;
cmp_ok($tries, '>', 0, 'all sessions have ended');

# ---- again, with scenes that fail, or cannot be shown ----

{
	local $ENV{XDG_STATE_HOME} = '/proc/nothing';    # of ab's journal
	local $ENV{SWEEP_SERVER_SOURCE} = '/nowhere';    # of the simulator's build

	($status, $out, $err) = run_demo('--quick', '--scenes', 'sim,pins,ab', @server);
}
is($status, 1, 'a scene fails: the exit status says so');
like($out, qr/\AAn earlier demo is stopped and .*demo removed\.$/m, 'an earlier demo ends');
is(join(' ', $err =~ m{\] \d+/8 scene (\w+)}g), 'pins ab sim', 'scenes alone, in their order');
unlike($out, qr/^== (?:Waiting|Balance|Eager)/m, 'and no others');
like(scene($out, 'A/B'), qr/^Scene ab FAILED: pg_sweep_ab has failed/m, 'the failed scene says so');
like(scene($out, 'Simulator'), qr{^This cannot be shown here: .*/nowhere/.* is missing}m, 'what cannot be shown says why');
like($err, qr/: scenes that failed: ab$/m, 'only the other one has failed');
like($out, qr/^The server is still running\./m, 'it goes on to the end');

# ---- stop ----

($status, $out) = run_demo('stop');
# a folder below the source is shown relative to it
like("$status $out", qr/\A0 The server is stopped and \S+\/demo removed\.\n\z/, 'stop');
is(servers_below($work) + (-e "$work/demo" ? 1 : 0), 0, 'no server is left, and no data');
($status, $out) = run_demo('stop');
is("$status $out", "0 There is no demo to stop.\n", 'stop again');

done_testing();
