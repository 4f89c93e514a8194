
# ab: A/B of settings on a running server.  What it computes, what it finds,
# and what it writes.  t/tools/ab_faults.pl is about all that can go wrong.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../lib";

use AbTest;
use IPC::Run;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

my $ab = AbTest->new;
my $node = $ab->{node};
my $folder = $ab->{folder};
my @load = $ab->load;
my $before = $ab->snapshot;

my $have_matplotlib =
  system('python3', '-c', 'import importlib.util as u, sys; sys.exit(u.find_spec("matplotlib") is None)') == 0;

#
# The arithmetic: deterministic, against what must be true of it
#
{
	my ($out, $err);

	# For every way to give signs to differences of any size, an A/A is one of
	# equally likely 2^n: how many of them are false alarms is the rate.
	IPC::Run::run([ 'python3', '-B', '-c', <<'PYTHON', "$FindBin::RealBin/../.." ], '>', \$out, '2>', \$err);
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
# A difference that is there
#
{
	my ($status, $out, $err) = $ab->run(
		@load,
		'--a' => 'quick: ab.delay=0.004, strategy=stock',
		'--b' => 'slow: ab.delay=0.016, strategy=batched, lwlock_policy=spin, lwlock_policy.WALWrite=lockless',
		'--setting' => 'as quick: ab.delay=0.004, strategy=partitioned',
		'--slice' => 0.2, '--blocks' => 10, '--seed' => 5,
		$have_matplotlib ? () : '--no-picture');

	is($status, 0, 'a difference: done') or diag($err);
	like($out, qr/^slow to quick: worse in transactions\/s: -\d/m, 'a difference: is found, with its sign');
	like($out, qr/^transactions\/s .* worse$/m, 'a difference: in the table');
	like($err, qr/warm-up, 0:\d\d left/, 'a difference: says how long it will take');
	is($ab->snapshot, $before, 'a difference: everything is as before');
	is_deeply([ $ab->left_over ], [], 'a difference: nothing is left over');

	my $rows = $ab->rows;
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
	cmp_ok($tps->{ratio_low}, '>', 0.1, 'JSON: tps: and no larger');
	cmp_ok($latency->{ratio_low}, '>', 1.5, 'JSON: latency: as large as it was made');
	cmp_ok($tps->{ratio_low}, '<=', $tps->{ratio}, 'JSON: interval: from below');
	cmp_ok($tps->{ratio}, '<=', $tps->{ratio_high}, 'JSON: interval: to above');
	cmp_ok($latency->{median}, '>=', 16, 'JSON: latency: in milliseconds');
	cmp_ok($latency->{median}, '<', 160, 'JSON: latency: in milliseconds, not more');
	is($row{'tps/quick'}{verdict}, undef, 'JSON: the baseline has no verdict');
	is($row{'tps/quick'}{ratio}, 1, 'JSON: and is itself');
	is($row{'local_share/slow'}{$_}, undef, "JSON: local share on one node: $_ is null") for qw(median ratio verdict);
	is($row{'hit_ratio/slow'}{median}, undef, 'JSON: hit ratio of short slices is null');
	cmp_ok($row{'cpu_us_per_transaction/quick'}{median}, '>', 1, 'JSON: CPU time of a transaction');
	cmp_ok($row{'cpu_us_per_transaction/quick'}{median}, '<', 5000, 'JSON: CPU time of a transaction is no waiting');

	my @slices = $ab->slices;
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
	my ($status, $out, $err) = $ab->run(@load, @two, '--setting' => 'partitioned',
		'--slice' => 0.2, '--blocks' => 2, '--no-picture', '--seed' => $seed,
		'-d' => $node->connstr('postgres') . ' user=switcher');

	is($status, 0, "seed $seed: done") or diag($err);
	like($out, qr/no verdict, 2 blocks are too few/, "seed $seed: two blocks are no verdict");
	push @orders, join ' ', map { $_->{setting} } $ab->slices;
}
is($orders[0], $orders[1], 'the same seed: the same order');
isnt($orders[0], $orders[2], 'another seed: another order');

#
# An application of somebody else's
#
{
	my ($status, $out, $err) = $ab->run('--attach', @two, '--slice' => 1.5, '--settle' => 1.1, '--blocks' => 1, '--no-picture');

	is($status, 1, 'attached to an idle server: no result');
	like($err, qr/the server is idle/, 'attached to an idle server: says so');

	my $application = start_pgbench($node, 'application', @load, '-T' => 60);
	($status, $out, $err) = $ab->run('--attach', @two, '--slice' => 2.4, '--settle' => 1.1, '--blocks' => 1, '--no-picture');
	is($status, 0, 'attached: done') or diag($err);
	my %row = map { ("$_->{metric}/$_->{side}" => $_) } @{ $ab->rows };
	cmp_ok($row{'tps/stock'}{median}, '>', 50, 'attached: transactions a second from statistics');
	# 2000 is the most that there can be, in steps of a second's: of those, a slope
	# may be a seventh too large
	cmp_ok($row{'tps/stock'}{median}, '<', 3000, 'attached: and not too many');
	is($row{'latency_p50_ms/stock'}{median}, undef, 'attached: latencies are not known');
	like($out, qr/^latency, ms: 50 % +- +- +- +-$/m, 'attached: and shown so');
	kill('TERM', $application->{pid});
	wait_for_background($application, 0);
	is($ab->snapshot, $before, 'attached: everything is as before');
}

#
# Transactions that belong to two settings
#
{
	my ($status, $out, $err) = $ab->run('-f', write_script('long.sql', "SELECT pg_sleep(0.2);\n"), '-c', 20, @two, '--slice' => 0.25,
		'--settle' => 0.05, '--blocks' => 6, '--no-picture');
	is($status, 0, 'long transactions: done') or diag($err);
	like($out, qr/^NOTE: 50 % of the transactions take longer than --settle/m, 'long transactions: says so');
	like($out, qr/^batched to stock: no verdict, see the note/m, 'long transactions: no verdict');
}

unlike(slurp_file($node->logfile), qr/TRAP:/, 'no assertion has failed');
done_testing();
