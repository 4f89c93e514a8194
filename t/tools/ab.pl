
# pg_sweep_ab: A/B of settings on a running server.  The installed command, what it
# computes, finds and writes.  t/tools/ab_faults.pl is about what can go wrong.

use strict;
use warnings FATAL => 'all';

use File::Basename;
use AbTest;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;
use UnittestTest;

my $ab = AbTest->new;
my $node = $ab->{node};
my $folder = $ab->{folder};
my @load = $ab->load;
my $before = $ab->snapshot;

my $have_matplotlib = system('python3 -c "import matplotlib" 2>/dev/null') == 0;

# What needs no server
run_unittests('ab');

#
# The command as make install leaves it
#
{
	my ($program) = $ab->command;

	program_help_ok($program);
	program_version_ok($program);
	program_options_handling_ok($program);
}

#
# A user of another folder with an environment of its own, where Python's packages
# and this source are not in sight; ended by Ctrl-C, which a terminal sends to all
# processes of the command.
#
{
	my $home = "$folder/home";
	my ($program) = $ab->command;
	my @command = (
		'env', '-i', "HOME=$home", 'PATH=/usr/bin:/bin', "TMPDIR=$folder/tmp",
		'setsid', 'sh', '-c', 'cd "$HOME" && exec "$@"', 'sh',
		$program, '-h', $node->host, '-p', $node->port, '-d', 'postgres', @load,
		'--a' => 'stock', '--b' => 'b: batched, work_mem=7MB, lwlock_policy=lockless_spin',
		'--slice' => 0.3, '--no-picture');
	my $notes = "$home/.local/state/pg_sweep/*.json";

	mkdir $home or die;
	my ($out, $err);
	IPC::Run::run([ @command, '--blocks', 2 ], '<', '/dev/null', '>', \$out, '2>', \$err);
	is($?, 0, 'elsewhere: done') or diag($err);
	is(join(' ', map { basename($_) } glob("$home/*")), 'ab.csv ab.json', 'elsewhere: files');
	is($ab->snapshot, $before, 'elsewhere: everything is as before');

	my $handle = run_in_background('elsewhere', @command, '--blocks', 1000);
	wait_until_it_says($handle, qr/warm-up/);
	is(scalar(my @found = glob($notes)), 1, 'elsewhere: the note is in the home folder');
	isnt($ab->snapshot, $before, 'elsewhere: settings are switched');
	kill('INT', -$handle->{pid});
	is(wait_for_background($handle, 30), 130, 'elsewhere: ends by Ctrl-C');
	like(background_stderr($handle), qr/^pg_sweep_ab: interrupted; everything is as before$/m,
		'elsewhere: says so');
	$ab->wait_until_quiet;
	is($ab->snapshot, $before, 'elsewhere: everything is as before Ctrl-C');
	is_deeply([ $ab->left_over, glob($notes) ], [], 'elsewhere: nothing is left over');
}

#
# A difference that is there
#
{
	my ($status, $out, $err) = $ab->run(
		@load,
		'--a' => 'quick: ab.delay=0.004, strategy=stock',
		'--b' => 'slow: ab.delay=0.016, batched, lwlock_policy=lockless_spin, '
		  . 'lwlock_policy.WALWrite=lockless',
		'--setting' => 'as quick: ab.delay=0.004, strategy=partitioned',
		'--slice' => 0.2, '--blocks' => 10, '--seed' => 5,
		$have_matplotlib ? () : '--no-picture');

	is($status, 0, 'a difference: done') or diag($err);
	like($out, qr/^slow to quick: worse in transactions\/s: -\d/m, 'a difference: is found');
	like($out, qr/^transactions\/s .* worse$/m, 'a difference: in the table');
	like($err, qr/warm-up, 0:\d\d left/, 'a difference: says how long it will take');
	is($ab->snapshot, $before, 'a difference: everything is as before');
	is_deeply([ $ab->left_over ], [], 'a difference: nothing is left over');

	my $rows = $ab->rows;
	my %row = map { ("$_->{metric}/$_->{side}" => $_) } @$rows;
	my $tps = $row{'tps/slow'};
	my $latency = $row{'latency_p50_ms/slow'};

	is_deeply([ sort keys %$tps ],
		[ sort qw(metric configuration side rounds median min max ratio ratio_min ratio_max
			  ratio_low ratio_high bootstrap_low bootstrap_high p p_corrected verdict
			  ratio_of_totals better headline) ], 'JSON: keys');
	is(scalar(@$rows), 13 * 3, 'JSON: one row per metric and setting');
	is($_->{rounds}, 10, "JSON: $_->{side}: all blocks count") for @row{qw(tps/quick tps/slow)};
	is($tps->{verdict}, 'worse', 'JSON: tps: worse');
	is($latency->{verdict}, 'worse', 'JSON: latency: worse');
	cmp_ok($tps->{ratio_high}, '<', 0.7, 'JSON: tps: as large as ab.delay makes it');
	cmp_ok($tps->{ratio_low}, '>', 0.1, 'JSON: tps: and no larger');
	cmp_ok($latency->{ratio_low}, '>', 1.5, 'JSON: latency: as large as ab.delay makes it');
	cmp_ok($tps->{ratio_low}, '<=', $tps->{ratio}, 'JSON: interval: from below');
	cmp_ok($tps->{ratio}, '<=', $tps->{ratio_high}, 'JSON: interval: to above');
	cmp_ok($latency->{median}, '>=', 16, 'JSON: latency: in milliseconds');
	cmp_ok($latency->{median}, '<', 160, 'JSON: latency: in milliseconds, not more');
	is($row{'tps/quick'}{verdict}, undef, 'JSON: the baseline has no verdict');
	is($row{'tps/quick'}{ratio}, 1, 'JSON: and is itself');
	is($row{'local_share/slow'}{$_}, undef, "JSON: local share on one node: $_ is null")
	  for qw(median ratio verdict);
	is($row{'hit_ratio/slow'}{median}, undef, 'JSON: hit ratio of short slices is null');
	my $cpu = $row{'cpu_us_per_transaction/quick'}{median};
	cmp_ok($cpu, '>', 1, 'JSON: CPU time of a transaction');
	cmp_ok($cpu, '<', 5000, 'JSON: CPU time of a transaction is no waiting');

	my @slices = $ab->slices;
	is(scalar(@slices), 33, 'CSV: one line per slice');
	is(scalar(grep { $_->{used} } @slices), 30, 'CSV: those of the warm-up do not count');
	for my $block (0 .. 9)
	{
		my @names = map { $_->{setting} } grep { $_->{block} == $block } @slices;
		is(join('/', sort @names), 'as quick/quick/slow', "CSV: block $block has all settings");
	}
	my %first = map { ($_->{setting} => 1) } grep { $_->{place} == 0 } @slices;
	is(scalar(keys %first), 3, 'CSV: each setting was first at times');
	is(join(' ', map { basename($_) } glob("$folder/out/*")),
		'ab.csv ab.json' . ($have_matplotlib ? ' ab.png ab.svg' : ''), 'a difference: files');
}

#
# Seeds; and a role that may switch without being a superuser
#
my @orders;
for my $seed (3, 3, 4)
{
	my ($status, $out, $err) = $ab->run(@load, @two, '--setting' => 'partitioned',
		'--slice' => 0.2, '--blocks' => 2, '--no-picture', '--seed' => $seed,
		'-d' => $node->connstr('postgres') . ' user=switcher');

	is($status, 0, "seed $seed: done") or diag($err);
	like($out, qr/no verdict, 2 blocks are too few/, "seed $seed: no verdict of two blocks");
	push @orders, join ' ', map { $_->{setting} } $ab->slices;
}
is($orders[0], $orders[1], 'the same seed: the same order');
isnt($orders[0], $orders[2], 'another seed: another order');

#
# An application instead of pgbench
#
{
	my @attached = ('--attach', @two, '--settle' => 1.1, '--blocks' => 1, '--no-picture');
	my ($status, $out, $err) = $ab->run(@attached, '--slice' => 1.5);

	is($status, 1, 'attached to an idle server: no result');
	like($err, qr/the server is idle/, 'attached to an idle server: says so');

	my $application = start_pgbench($node, 'application', @load, '-T' => 60);
	($status, $out, $err) = $ab->run(@attached, '--slice' => 2.4);
	is($status, 0, 'attached: done') or diag($err);
	my %row = map { ("$_->{metric}/$_->{side}" => $_) } @{ $ab->rows };
	cmp_ok($row{'tps/stock'}{median}, '>', 50, 'attached: transactions a second from statistics');
	# Two clients reach at most 2000, in steps of one second; the slope through these may
	# be a seventh too large.
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
	my $long = write_script('long.sql', "SELECT pg_sleep(0.2);\n");
	my ($status, $out, $err) = $ab->run('-f' => $long, '-c' => 20, @two, '--slice' => 0.25,
		'--settle' => 0.05, '--blocks' => 6, '--no-picture');
	is($status, 0, 'long transactions: done') or diag($err);
	like($out, qr/^NOTE: 50 % of the transactions take longer/m, 'long transactions: says so');
	like($out, qr/^batched to stock: no verdict, see the note/m, 'long transactions: no verdict');
}

unlike(slurp_file($node->logfile), qr/TRAP:/, 'no assertion has failed');
done_testing();
