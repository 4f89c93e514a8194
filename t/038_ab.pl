
# bench/ab: A/B of settings on a running server.  What it refuses, what it finds,
# what it writes, and that everything is as before however it ends.
#
# PG_SWEEP_AB_INTERRUPTS says how often it is interrupted, PG_SWEEP_AB_SEED at which
# moments.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/lib";

use IPC::Run;
use JSON::PP;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;
use Time::HiRes qw(time usleep);

my $run = "$FindBin::RealBin/../bench/ab/run";
my $folder = PostgreSQL::Test::Utils::tempdir;
my $python = "$folder/python";

my $node = sweep_node('main', conf => q{
shared_buffers = 4MB
max_connections = 40
bgwriter_delay = 10ms
ab.delay = '0.001'
});
$node->start;
$node->safe_psql('postgres', q{
CREATE EXTENSION pg_sweep;
CREATE DATABASE other;
CREATE TABLE one AS SELECT 1 AS i;
GRANT SELECT ON one TO PUBLIC;
CREATE ROLE ordinary LOGIN;
CREATE ROLE switcher LOGIN IN ROLE pg_monitor;
GRANT EXECUTE ON FUNCTION pg_sweep_set_strategy(text) TO switcher;
CREATE ROLE overridden LOGIN SUPERUSER;
ALTER ROLE overridden SET work_mem = '5MB';
});

# What a run leaves in folders for temporary files is seen here
mkdir "$folder/tmp" or die;
$ENV{TMPDIR} = "$folder/tmp";

my $have_matplotlib =
  system('python3', '-c', 'import importlib.util as u, sys; sys.exit(u.find_spec("matplotlib") is None)') == 0;

# With the connection of psql's environment, which tests have
sub command
{
	my (@arguments) = @_;

	return ($run, '--dbname' => $node->connstr('postgres'),
		'--state-dir' => "$folder/state", '--out' => "$folder/out", @arguments);
}

sub ab
{
	my (@arguments) = @_;
	my ($out, $err);

	note("bench/ab/run @arguments");
	IPC::Run::run([ command(@arguments) ], '<', '/dev/null', '>', \$out, '2>', \$err);
	return ($? >> 8, $out, $err);
}

sub slurp_json
{
	return decode_json(slurp_file("$folder/out/ab.json"));
}

sub csv
{
	my ($header, @lines) = map { [ split /,/, $_, -1 ] } split /\n/, slurp_file("$folder/out/ab.csv");

	# csv's line ends
	s/\r$// for map { @$_ } $header, @lines;
	return map { my %row; @row{@$header} = @$_; \%row } @lines;
}

# Everything that a setting can change, to the letter; but for the order of the
# lines in postgresql.auto.conf, which ALTER SYSTEM moves
sub snapshot
{
	my $text = $node->safe_psql('postgres', q{
SELECT state, strategy, configured, reason, batch_size_configured, lwlock_wait, lwlock_wait_configured, eager_flush
  FROM pg_sweep_status;
SELECT tranche, policy, own FROM pg_sweep_lwlock_policies ORDER BY 1;
SELECT name, setting, unit, source, sourcefile, boot_val, reset_val, pending_restart FROM pg_settings
 WHERE name NOT IN ('application_name', 'client_min_messages') ORDER BY name;
SELECT current_setting('ab.delay');
SELECT datname, count(*) FROM pg_stat_activity WHERE application_name LIKE 'pg_sweep bench/ab%' GROUP BY 1;
});

	return $text . "\n" . join "\n", sort split /\n/, slurp_file($node->data_dir . '/postgresql.auto.conf');
}

sub wait_until_quiet
{
	return $node->poll_query_until('postgres',
		q{SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name LIKE 'pg_sweep bench/ab%'});
}

my @load = ('-f', write_script('delay.sql', "SELECT pg_sleep(current_setting('ab.delay')::float8) FROM one;\n"), '-c', 2);
my @two = ('--a', 'stock', '--b', 'batched');
my @short = ('--slice' => 0.3, '--blocks' => 6, '--no-picture');

#
# The arithmetic: deterministic, against what must be true of it
#
{
	my ($out, $err);

	# For every way to give signs to differences of any size, an A/A is one of
	# equally likely 2^n: how many of them are false alarms is the rate.
	IPC::Run::run([ 'python3', '-B', '-c', <<'PYTHON', "$FindBin::RealBin/../bench" ], '>', \$out, '2>', \$err);
import itertools, math, random, sys
sys.path[:0] = [sys.argv[1] + "/ab", sys.argv[1]]
import analysis
from metrics import METRICS
sizes = [.001, .02, .003, .5, .07, .011, 1.3, .017, .19]
for n in (6, 7, 8, 9):
    alarms = covered = 0
    for signs in itertools.product((-1, 1), repeat=n):
        c = analysis.Comparison([s * d for s, d in zip(signs, sizes)])
        alarms += c.p <= .05
        if (c.p <= .05) == (c.low <= 1 <= c.high): print("p and interval differ", signs)
        covered += c.low <= 1 <= c.high
    print("rate", n, 0.02 <= alarms / 2 ** n <= .05, covered + alarms == 2 ** n)
c = analysis.Comparison([.1] * 5)
print("five", c.p, c.low, round(c.ratio, 6))
c = analysis.Comparison([math.log(1.1)] * 6)
print("six", c.p, round(c.low, 6), round(c.high, 6))
draw = random.Random(1)
alarms = [analysis.Comparison([draw.gauss(0, .1) for _ in range(20)]).p <= .05 for _ in range(400)]
print("many", .02 <= sum(alarms) / 400 <= .085)
for n in (7, 12, 49, 50, 51):
    alarms = [analysis.Comparison([draw.gauss(0, .1) for _ in range(n)]).p <= .05 for _ in range(200)]
    if not sum(alarms) / 200 <= .11: print("too many", n, sum(alarms))
print("the same at the border", abs(analysis.chances(51)[450] - analysis.chance(51, 450)) < .002, analysis.outside(6), analysis.outside(10))
outliers = [.05 + draw.gauss(0, .01) + draw.choice((0, 0, 0, 0, .7, -.7)) for _ in range(30)]
c = analysis.Comparison(outliers)
print("despite outliers", c.p < .01, 1.03 < c.low < c.high < 1.08)
c = analysis.Comparison([.05 + draw.gauss(0, .02) for _ in range(20)])
print("found", c.p < .001, 1.03 < c.low < 1.0513 < c.high < 1.07)
print("holm", [round(p, 3) for p in analysis.holm([.04, .01, .03, 1])])
def blocks(a, b, name="tps", half=.5):
    return [{s: {"tps": 1, name: v, "half": {"tps": .5, name: half}} for s, v in (("a", x), ("b", y))} for x, y in zip(a, b)]
def verdict(name, a, b, half=.5):
    rows = analysis.analyse(blocks(a, b, name, half), ["a", "b"], "c")
    return next(r["verdict"] for r in rows if r["metric"] == name and r["side"] == "b")
ten = [100 + i for i in range(10)]
more = [x * 1.2 for x in ten]
print("verdicts", verdict("tps", ten, more), verdict("tps", more, ten), verdict("latency_p99_ms", ten, more),
      verdict("latency_p99_ms", more, ten), verdict("allocations_per_second", ten, more), verdict("hit_ratio", ten, more),
      sep=", ")
print("equal", verdict("tps", ten, ten), verdict("hit_ratio", ten, [None] * 10), sep=", ")
print("typical", round(analysis.Comparison([.1] * 9 + [5]).ratio, 4))
print("totals", verdict("tps", [100] * 14, [110] * 13 + [30]), verdict("tps", [100] * 13 + [10000], [110] * 13 + [3000]), sep=", ")
standing = [250, 0] * 5
print("stalls", verdict("tps", ten, standing), verdict("tps", ten, [0] * 10), verdict("tps", [v * 4 for v in ten], [v * 4.4 for v in ten[1:]] + [0]),
      verdict("latency_p99_ms", ten, [50] * 9 + [None]), sep=", ")
print("zero", verdict("sleeps_per_transaction", [0] * 10, [0] * 10, .5), verdict("sleeps_per_transaction", [9] * 10, [0] * 10, .5),
      sep=", ")
PYTHON
	is($err, '', 'arithmetic: no complaint');
	is($out, <<'EXPECTED', 'arithmetic: exact rates of false alarms, intervals, corrections, verdicts');
rate 6 True True
rate 7 True True
rate 8 True True
rate 9 True True
five None None 1.105171
six 0.03125 1.1 1.1
many True
the same at the border True 0 8
despite outliers True True
found True True
holm [0.09, 0.04, 0.09, 1.0]
verdicts, better, worse, worse, better, higher, better
equal, no difference shown, None
typical 1.1052
totals, better, no difference shown
stalls, no difference shown, worse, no difference shown, None
zero, no difference shown, better
EXPECTED
}

#
# What is refused, with nothing changed
#
my $before = snapshot();
for my $case (
	[ 'one setting', [ '-S', '--a', 'stock' ], qr/two settings at least/ ],
	[ 'an empty setting', [ '-S', '--a', 'stock', '--b', '' , '--setting', '' ], qr/setting is empty/ ],
	[ 'a key twice', [ '-S', '--a', 'stock', '--b', 'x: balance=on, balance=off' ], qr/pg_sweep\.balance twice/ ],
	[ 'an open quote', [ '-S', '--a', 'stock', '--b', "x: ab.d='1" ], qr/quote is not closed/ ],
	[ 'no value', [ '-S', '--a', 'stock', '--b', 'x: work_mem=' ], qr/has no value/ ],
	[ 'no load', [@two], qr/which load\?/ ],
	[ 'two loads', [ '-S', '--attach', @two ], qr/--attach is without a load/ ],
	[ 'no such script', [ '-f', '/no/such', @two ], qr{cannot read /no/such} ],
	[ 'an option of ours', [ '-S', @two, '--pgbench-options=-T 5' ], qr/-T is not yours/ ],
	[ 'an option of ours, abbreviated', [ '-S', @two, '--pgbench-options=--sampl=0.5' ], qr/--sampling-rate is not yours/ ],
	[ 'an option of ours, among others', [ '-S', @two, '--pgbench-options=-rC' ], qr/-rC: one at a time/ ],
	[ 'a password for all to see', [ '-S', @two, '-d', 'dbname=x password=y' ], qr/use PGPASSWORD or \.pgpass/ ],
	[ 'too little time', [ '-S', @two, '--minutes', '0.1' ], qr/too short for 2 settings/ ],
	[ 'settling all the time', [ '-S', @two, '--slice', 1, '--settle', 1 ], qr/--settle must be shorter/ ],
	[ 'attached for moments', [ '--attach', @two, '--settle', 1 ], qr/--settle must be 1.1 at least/ ],
	[ 'no such strategy', [ '-S', '--a', 'stock', '--b', 'clock' ], qr/strategy: 'clock' is none of stock, batched, partitioned, auto/ ],
	[ 'no such policy', [ '-S', '--a', 'stock', '--b', 'lwlock_wait=futex' ], qr/lwlock_wait: 'futex' is none of/ ],
	[ 'no such tranche', [ '-S', '--a', 'stock', '--b', 'lwlock_wait.walwrite=spin' ], qr/no such tranche/ ],
	[ 'no such parameter', [ '-S', '--a', 'stock', '--b', 'work_memory=1' ], qr/has no parameter work_memory/ ],
	[ 'a misspelt one of ours', [ '-S', '--a', 'stock', '--b', 'pg_sweep.batchsize=1' ], qr/invalid configuration parameter name/ ],
	[ 'postmaster', [ '-S', '--a', 'stock', '--b', 'shared_buffers=1GB' ], qr/shared_buffers can be changed by a restart only/ ],
	[ 'internal', [ '-S', '--a', 'stock', '--b', 'block_size=1' ], qr/block_size cannot be changed/ ],
	[ 'what changes meaning', [ '-S', '--a', 'stock', '--b', 'session_replication_role=replica' ], qr/session_replication_role is not for an experiment: category/ ],
	[ 'kept plans', [ '-S', '-M', 'prepared', '--a', 'now:', '--b', 'enable_sort=off' ], qr/enable_sort is for the planner/ ],
	[ 'no number', [ '-S', @two, '--minutes', 'nan' ], qr/--minutes must be a number/ ],
	[ 'endless', [ '-S', @two, '--slice', 'inf' ], qr/--slice must be a number/ ],
	[ 'backend', [ '-S', '--a', 'stock', '--b', 'jit_provider=x, log_connections=on' ], qr/jit_provider can be|log_connections is read when/ ],
	[ 'fsync', [ '-S', '--a', 'stock', '--b', 'fsync=off' ], qr/fsync is not for an experiment: a crash/ ],
	[ 'full_page_writes', [ '-S', '--a', 'stock', '--b', 'FULL_PAGE_WRITES=off' ], qr/full_page_writes is not for/ ],
	[ 'a list of names', [ '-S', '--a', 'stock', '--b', 'search_path=public' ], qr/search_path is not for an experiment/ ],
	[ 'matched names', [ '-S', '--a', 'stock', '--b', 'nodots=1' ], qr/has no parameter nodots/ ],
	[ 'set for the role', [ '-S', '--a', 'stock', '--b', 'work_mem=8MB', '-d', $node->connstr('postgres') . ' user=overridden' ],
		qr/work_mem is set by ALTER ROLE/ ],
	[ 'set for some role', [ '--attach', '--a', 'stock', '--b', 'work_mem=8MB' ], qr/work_mem is set by ALTER ROLE or ALTER DATABASE \(overridden,/ ],
	[ 'not the extension', [ '-S', @two, '-d', $node->connstr('other') ], qr/needs pg_sweep: CREATE EXTENSION/ ],
	[ 'who may not look', [ '-S', @two, '-d', $node->connstr('postgres') . ' user=ordinary' ], qr/ordinary may not read/ ],
	[ 'who may not ALTER SYSTEM', [ '-S', '--a', 'stock', '--b', 'batch_size=1', '-d', $node->connstr('postgres') . ' user=switcher' ],
		qr/must be a superuser/ ],
	[ 'who may not set policies', [ '-S', '--a', 'stock', '--b', 'lwlock_wait=spin', '-d', $node->connstr('postgres') . ' user=switcher' ],
		qr/switcher may not call pg_sweep_set_lwlock_wait/ ],
	[ 'no server', [ '-S', @two, '-d', 'host=/nonexistent port=1' ], qr/connection to server .* failed/ ],
	[ 'no place for results', [ '-S', @two, '--out', '/proc/no' ], qr/cannot create .*--out names another/ ],
	[ 'no place for the journal', [ '-S', @two, '--state-dir', '/proc/no' ], qr/cannot write down .*--state-dir/, 'load' ],
	[ 'a value that the server refuses', [ '-S', '--a', 'stock', '--b', 'x: work_mem=1kB' ], qr/setting 'x': 1 kB is outside the valid range/, 'load' ],
	[ 'another application_name', [ '-S', @two, '-d', $node->connstr('postgres') . ' application_name=x' ], qr/leave it out/ ])
{
	my ($title, $arguments, $reason, $load) = @$case;
	# pgbench -S would want a table; these get as far as the load
	my @arguments = $load ? (@load, grep { $_ ne '-S' } @$arguments) : @$arguments;
	my ($status, $out, $err) = ab('--no-picture', @arguments);

	is($status, 1, "$title: refused");
	like($err, $reason, "$title: says why");
	unlike($err, qr/Traceback/, "$title: without a traceback");
	is(scalar(grep { /^\S*run:/ } split /\n/, $err), 1, "$title: in one line");
}
is(snapshot(), $before, 'refusals: nothing has changed');

$node->safe_psql('postgres', "ALTER SYSTEM SET bgwriter_delay = '20ms'");
{
	my ($status, $out, $err) = ab(@load, '--a', 'stock', '--b', 'balance=off');

	is($status, 1, 'changes that wait for a reload: refused');
	like($err, qr/postgresql.auto.conf.* (was changed at|has not read yet)/, 'changes that wait for a reload: says so');
	$node->safe_psql('postgres', 'ALTER SYSTEM RESET bgwriter_delay');
	$node->reload;
	is(snapshot(), $before, 'changes that wait for a reload: taken back');

	# files that a reload reads as well; a second later, as files have no
	# finer times
	my $hba = $node->data_dir . '/pg_hba.conf';
	my $old = slurp_file($hba);
	usleep(1_100_000);
	append_to_file($hba, "# another line\n");
	($status, $out, $err) = ab(@load, '--a', 'stock', '--b', 'balance=off', '--no-picture');
	is($status, 1, 'a changed pg_hba.conf: refused');
	like($err, qr/pg_hba\.conf was changed at/, 'a changed pg_hba.conf: says so');
	$node->reload;
	append_to_file($node->data_dir . '/postgresql.auto.conf', "# by hand\n");
	($status, $out, $err) = ab(@load, '--a', 'stock', '--b', 'balance=off', '--no-picture');
	is($status, 1, 'a comment by hand: refused');
	like($err, qr/edited by hand, and ALTER SYSTEM would not keep the line '# by hand'/, 'a comment by hand: says so');
	$node->safe_psql('postgres', 'ALTER SYSTEM RESET work_mem');
	$node->reload;
	is(snapshot(), $before, 'by hand: taken back');
}

#
# A difference that is there
#
{
	my ($status, $out, $err) = ab(
		@load,
		'--a' => 'quick: ab.delay=0.002, strategy=stock',
		'--b' => 'slow: ab.delay=0.006, strategy=batched, lwlock_wait=spin, lwlock_wait.WALWrite=lockless',
		'--setting' => 'as quick: ab.delay=0.002, strategy=partitioned',
		'--slice' => 0.25, '--blocks' => 10, '--seed' => 5,
		$have_matplotlib ? () : '--no-picture');

	is($status, 0, 'a difference: done') or diag($err);
	like($out, qr/^slow to quick: worse in transactions\/s: -\d/m, 'a difference: is found, with its sign');
	like($out, qr/^transactions\/s .* worse$/m, 'a difference: in the table');
	like($err, qr/warm-up, 0:\d\d left/, 'a difference: says how long it will take');
	is(snapshot(), $before, 'a difference: everything is as before');
	is_deeply([ glob("$folder/tmp/*"), glob("$folder/state/*.json") ], [], 'a difference: nothing is left over');

	my $rows = slurp_json();
	my %row = map { ("$_->{metric}/$_->{side}" => $_) } @$rows;
	my $tps = $row{'tps/slow'};
	my $latency = $row{'latency_p50_ms/slow'};

	is_deeply([ sort keys %$tps ],
		[ sort qw(metric configuration side rounds median min max ratio ratio_min ratio_max ratio_low ratio_high
			  bootstrap_low bootstrap_high p p_corrected verdict ratio_of_totals better headline) ], 'JSON: keys');
	is(scalar(@$rows), 13 * 3, 'JSON: a row for each metric and setting');
	is($_->{rounds}, 10, "JSON: $_->{side}: all blocks count") for @row{qw(tps/quick tps/slow)};
	is($tps->{verdict}, 'worse', 'JSON: tps: worse');
	is($latency->{verdict}, 'worse', 'JSON: latency: worse');
	cmp_ok($tps->{ratio_high}, '<', 0.7, 'JSON: tps: as large as it was made');
	cmp_ok($tps->{ratio_low}, '>', 0.2, 'JSON: tps: and no larger');
	cmp_ok($latency->{ratio_low}, '>', 1.5, 'JSON: latency: as large as it was made');
	cmp_ok($tps->{ratio_low}, '<=', $tps->{ratio}, 'JSON: interval: from below');
	cmp_ok($tps->{ratio}, '<=', $tps->{ratio_high}, 'JSON: interval: to above');
	cmp_ok($latency->{median}, '>=', 6, 'JSON: latency: in milliseconds');
	cmp_ok($latency->{median}, '<', 60, 'JSON: latency: in milliseconds, not more');
	is($row{'tps/quick'}{verdict}, undef, 'JSON: the baseline has no verdict');
	is($row{'tps/quick'}{ratio}, 1, 'JSON: and is itself');
	is($row{'local_share/slow'}{$_}, undef, "JSON: local share on one node: $_ is null") for qw(median ratio verdict);
	is($row{'hit_ratio/slow'}{median}, undef, 'JSON: hit ratio of short slices is null');
	cmp_ok($row{'cpu_us_per_transaction/quick'}{median}, '>', 1, 'JSON: CPU time of a transaction');
	cmp_ok($row{'cpu_us_per_transaction/quick'}{median}, '<', 5000, 'JSON: CPU time of a transaction is no waiting');

	my @slices = csv();
	is(scalar(@slices), 33, 'CSV: a line a slice');
	is(scalar(grep { $_->{used} } @slices), 30, 'CSV: those of the warm-up do not count');
	for my $block (0 .. 9)
	{
		my @names = map { $_->{setting} } grep { $_->{block} == $block } @slices;
		is(join('/', sort @names), 'as quick/quick/slow', "CSV: block $block has each setting once");
	}
	my %first = map { ($_->{setting} => 1) } grep { $_->{place} == 0 } @slices;
	is(scalar(keys %first), 3, 'CSV: each setting was first at times');

  SKIP:
	{
		skip 'no matplotlib', 3 unless $have_matplotlib;
		is(substr(slurp_file("$folder/out/ab.png"), 0, 8), "\x89PNG\r\n\x1a\n", 'a PNG is a PNG');
		cmp_ok(-s "$folder/out/ab.png", '>', 20_000, 'with something in it');
		like(slurp_file("$folder/out/ab.svg"), qr/<svg .*<\/svg>/s, 'an SVG is an SVG');
	}
}

#
# Seeds; and who is no superuser, but may switch
#
my @orders;
for my $seed (3, 3, 4)
{
	my ($status, $out, $err) = ab(@load, @two, '--setting' => 'partitioned',
		'--slice' => 0.2, '--blocks' => 2, '--no-picture', '--seed' => $seed,
		'-d' => $node->connstr('postgres') . ' user=switcher');

	is($status, 0, "seed $seed: done") or diag($err);
	like($out, qr/no verdict, 2 blocks are too few/, "seed $seed: two blocks are no verdict");
	push @orders, join ' ', map { $_->{setting} } csv();
}
is($orders[0], $orders[1], 'the same seed: the same order');
isnt($orders[0], $orders[2], 'another seed: another order');

#
# An application of somebody else's
#
{
	my ($status, $out, $err) = ab('--attach', @two, '--slice' => 1.5, '--settle' => 1.1, '--blocks' => 1, '--no-picture');

	is($status, 1, 'attached to an idle server: no result');
	like($err, qr/the server is idle/, 'attached to an idle server: says so');

	my $application = start_pgbench($node, 'application', @load, '-T' => 60);
	($status, $out, $err) = ab('--attach', @two, '--slice' => 2.4, '--settle' => 1.1, '--blocks' => 1, '--no-picture');
	is($status, 0, 'attached: done') or diag($err);
	my %row = map { ("$_->{metric}/$_->{side}" => $_) } @{ slurp_json() };
	cmp_ok($row{'tps/stock'}{median}, '>', 50, 'attached: transactions a second from statistics');
	cmp_ok($row{'tps/stock'}{median}, '<', 2000, 'attached: and not too many');
	is($row{'latency_p50_ms/stock'}{median}, undef, 'attached: latencies are not known');
	like($out, qr/^latency, ms: 50 % +- +- +- +-$/m, 'attached: and shown so');
	kill('TERM', $application->{pid});
	wait_for_background($application, 0);
	is(snapshot(), $before, 'attached: everything is as before');
}

#
# Two at once, and somebody who switches
#
{
	my $first = run_in_background('first', command(@load, @two, @short, '--blocks' => 1000));
	$node->poll_query_until('postgres',
		q{SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'pg_sweep bench/ab'});
	usleep(300_000);
	for my $database (qw(postgres other))
	{
		my ($status, $out, $err) = ab(@load, '--a', 'x: ab.y=1', '--b', 'y: ab.y=2', @short, '-d' => $node->connstr($database));
		is($status, 1, "a second one, $database: refused");
		like($err, qr/another bench\/ab is at work/, "a second one, $database: says why");
	}
	my $switching = start_switching($node, 'switching', 70, 20);
	is(wait_for_background($first, 60), 1, 'somebody switches: the run ends');
	like(slurp_file($first->{err}), qr/somebody else interferes with what is compared, 3 times.*was set by function of \w+ at 20/,
		'somebody switches: says who and when');
	stop_background($switching);
	wait_until_quiet();
	switch_to($node, 'stock');
	is(snapshot(), $before, 'somebody switches: as before');
}

#
# What others do meanwhile to what is compared, or in the way
#
{
	my @ab = command(@load, '--a', 'x: maintenance_work_mem=9MB', '--b', 'y: maintenance_work_mem=8MB', @short, '--blocks' => 1000);
	my $handle = run_in_background('by_others', @ab);
	usleep(50_000) until -s $handle->{err};
	$node->safe_psql('postgres', "ALTER SYSTEM SET maintenance_work_mem = '77MB'");
	is(wait_for_background($handle, 30), 1, 'ALTER SYSTEM by somebody: ends the run');
	like(background_stderr($handle), qr/somebody else has set maintenance_work_mem to '77MB'.*/, 'ALTER SYSTEM by somebody: says so');
	like(background_stderr($handle), qr/is '77MB' by somebody else, and was left so/, 'ALTER SYSTEM by somebody: and what it leaves');
	is($node->safe_psql('postgres', 'SHOW maintenance_work_mem'), '77MB', 'ALTER SYSTEM by somebody: is left');
	$node->safe_psql('postgres', 'ALTER SYSTEM RESET maintenance_work_mem');
	$node->reload;

	$handle = run_in_background('another', @ab);
	usleep(50_000) until -s $handle->{err};
	$node->safe_psql('postgres', 'ALTER SYSTEM SET deadlock_timeout = 777');
	is(wait_for_background($handle, 30), 1, 'ALTER SYSTEM of another parameter: ends the run');
	like(background_stderr($handle), qr/somebody else has changed the configuration files/, 'ALTER SYSTEM of another parameter: says so');
	$node->safe_psql('postgres', 'ALTER SYSTEM RESET deadlock_timeout');
	$node->reload;
	is(snapshot(), $before, 'ALTER SYSTEM by somebody: all else as before');

	# an operator's own decision
	$handle = run_in_background('operator', command(@load, @two, '--slice' => 0.3, '--blocks' => 8, '--no-picture'));
	usleep(50_000) until -s $handle->{err};
	usleep(1_000_000);
	switch_to($node, 'partitioned');
	is(wait_for_background($handle, 30), 0, 'an operator switches: the run goes on');
	like(background_stderr($handle), qr/is thrown away, as somebody else has interfered: strategy partitioned was set by function/,
		'an operator switches: a block is thrown away');
	like(slurp_file($handle->{out}), qr/^NOTE: others have interfered/m, 'an operator switches: the result says so');
	is($node->safe_psql('postgres', 'SELECT strategy FROM pg_sweep_status'), 'partitioned', 'an operator switches: it is left so');
	is(scalar(grep { $_->{used} } csv()), 16, 'an operator switches: no block is missing');
	switch_to($node, 'stock');
	is(snapshot(), $before, 'an operator switches: all else as before');

	# transactions that belong to two settings
	my ($status, $out, $err) = ab('-f', write_script('long.sql', "SELECT pg_sleep(0.4);\n"), '-c', 20, @two, '--slice' => 0.5,
		'--settle' => 0.1, '--blocks' => 6, '--no-picture');
	is($status, 0, 'long transactions: done') or diag($err);
	like($out, qr/^NOTE: 50 % of the transactions take longer than --settle/m, 'long transactions: says so');
	like($out, qr/^batched to stock: no verdict, see the note/m, 'long transactions: no verdict');

	# A client that ends is less load from then on. The others live, as with
	# none left pgbench ends, too, and there is another message for that.
	($status, $out, $err) = ab('-f', write_script('dies.sql',
			"\\set divisor :client_id + random(0, 99)\nSELECT pg_sleep(0.001), 1 / :divisor;\n"), '-c', 4, @two, @short, '--blocks' => 100);
	is($status, 1, 'a client that dies: ends the run');
	like($err, qr/a client of pgbench has ended: .*client 0 .*division by zero/, 'a client that dies: says why');
	is(snapshot(), $before, 'a client that dies: everything is as before');
	($status, $out, $err) = ab('-f', write_script('die.sql', "\\set divisor 0\nSELECT pg_sleep(0.5), 1 / :divisor;\n"), '-c', 2,
		@two, @short, '--blocks' => 100);
	is($status, 1, 'all clients die: ends the run');
	like($err, qr/(pgbench ended with status 2|a client of pgbench has ended): .*division by zero/, 'all clients die: says why');
	is(snapshot(), $before, 'all clients die: everything is as before');

	# functions that somebody has put where an old database lets him
	$node->safe_psql('postgres', q{
CREATE FUNCTION public.trap(text, record) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE 'trapped'; END $$;
CREATE AGGREGATE public.json_agg(record) (SFUNC = trap, STYPE = text);
ALTER ROLE overridden SET statement_timeout = '1ms';
ALTER ROLE overridden SET standard_conforming_strings = off;
ALTER ROLE overridden SET search_path = public, pg_catalog;
});
	($status, $out, $err) = ab(@load, @two, @short, '--blocks' => 1, '-d' => $node->connstr('postgres') . ' user=overridden');
	# pgbench has the time-out, too
	like($err, qr/pgbench ended.*statement timeout|a client of pgbench has ended/, 'a hostile role: the load alone has its settings');
	($status, $out, $err) = ab('--restore', '-d' => $node->connstr('postgres') . ' user=overridden');
	is($status, 0, 'a hostile role: putting back has not') or diag($err);
	$node->safe_psql('postgres', 'DROP AGGREGATE public.json_agg(record); ALTER ROLE overridden RESET ALL');
	is(snapshot(), $before, 'a hostile role: everything is as before');
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

# Some state that is nobody's default: by function, by tranche, by file
sub random_state
{
	my @sql = map { "ALTER SYSTEM $_" } (
		one_of('SET pg_sweep.batch_size = 16', 'RESET pg_sweep.batch_size'),
		one_of("SET work_mem = '3MB'", 'RESET work_mem'),
		one_of("SET ab.delay = '0.002'", "SET ab.delay = '0.0015'"),
		one_of("SET pg_sweep.lwlock_wait = 'spin'", 'RESET pg_sweep.lwlock_wait'));

	push @sql, 'SELECT pg_reload_conf()', 'SELECT pg_sleep(0.2)',
	  'SELECT pg_sweep_set_strategy(' . one_of(map { "'$_'" } qw(stock batched partitioned auto)) . ')',
	  'SELECT pg_sweep_set_lwlock_wait(' . one_of(map { "'$_'" } qw(stock spin lockless)) . ')',
	  "SELECT pg_sweep_set_lwlock_wait('" . one_of(qw(default spin)) . "', 'WALWrite')";
	$node->safe_psql('postgres', join '', map { "$_;\n" } @sql);
	return;
}

# The load's
sub pgbench_pids
{
	return grep { $_ } map { m{^/proc/(\d+)/} && $1 }
	  grep { (eval { slurp_file($_) } // '') =~ /pgbench\0.*\Q$folder\E/s } glob('/proc/[0-9]*/cmdline');
}

# What a restart leaves of it: what functions have set goes, as it would have
# without us
sub restarted
{
	my ($text, $strategy, $lwlock_wait) = @_;

	$text =~ s/^ok\|\w+\|\Q$strategy\E\|[^|]*\|(\d+)\|\w+\|/ok|$strategy|$strategy||$1|$lwlock_wait|/
	  or die "what is this: $text";
	$text =~ s/^(\w*)\|\w+\|[tf]$/$1|$lwlock_wait|f/mg;
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
	my $found = snapshot();
	my $handle = run_in_background("interrupt_$i",
		command(@load, '--a' => 'stock', '--b' =>
			  'b: batched, batch_size=8, work_mem=7MB, ab.delay=0.001, lwlock_wait=lockless_spin, lwlock_wait.WALWrite=lockless, lwlock_wait.XidGen=spin, balance=off',
			'--setting' => 'c: partitioned, maintenance_work_mem=9MB',
			'--slice' => 0.25, '--blocks' => 1000, '--no-picture'));

	# from when it has looked at everything, and changes nothing yet
	usleep(10_000) until -s $handle->{out} || -s $handle->{err};
	usleep(1_000_000 * $wait);
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
		wait_until_quiet();
		my @journal = glob("$folder/state/*.json");
		if (@journal)
		{
			my ($status, $out, $err) = ab(@load, @two, @short);
			is($status, 1, "$title: the next run is refused");
			like($err, qr/was killed and has put nothing back: --restore/, "$title: and says why");
		}
		local $ENV{PGTZ} = one_of('Asia/Tokyo', 'UTC');
		my ($status, $out, $err) = ab('--restore');
		is($status, 0, "$title: --restore") or diag($err);
		like($out, @journal ? qr/everything is as before the run of 20/ : qr/nothing to put back/, "$title: says what it did");
	}
	ok(wait_until_quiet(), "$title: nothing of it is connected");
	if ($kind =~ /restart|crash/)
	{
		$found = restarted($found, split /\|/, $node->safe_psql('postgres',
				'SELECT configured, lwlock_wait_configured FROM pg_sweep_status'));
	}
	is(snapshot(), $found, "$title: everything is as before")
	  or diag(background_stderr($handle));
	is_deeply([ glob("$folder/tmp/*"), glob("$folder/state/*.json") ], [], "$title: nothing is left over")
	  or system("rm -rf $folder/tmp/* $folder/state/*.json");
}
unlike(slurp_file($node->logfile), qr/TRAP:/, 'no assertion has failed');
done_testing();
