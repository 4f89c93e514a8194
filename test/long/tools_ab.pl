
# pg_sweep_ab: A/A runs, each with the strategy "stock" twice, find a difference no more
# often than chance allows, on a server whose tables are larger than its memory.
# PG_SWEEP_AB_RUNS is the number of runs, PG_SWEEP_AB_SEED the seed of the first one.

use strict;
use warnings FATAL => 'all';

use FindBin;
use lib "$FindBin::RealBin/../../t/lib";

use AbTest;
use SweepTest;
use Test::More;

my $runs = $ENV{PG_SWEEP_AB_RUNS} // 20;
my $seed = $ENV{PG_SWEEP_AB_SEED} // 1;
my $rate = 0.05;    # of false alarms, of each run
my $unlikely = 0.003;

# The chance of more than $most false alarms
sub chance_of_more
{
	my ($most) = @_;
	my $ways = 1;
	my $sum = 0;

	for my $k (0 .. $most)
	{
		$sum += $ways * $rate**$k * (1 - $rate)**($runs - $k);
		$ways *= ($runs - $k) / ($k + 1);
	}
	return 1 - $sum;
}

# pgbench's tables of scale 40 have 600 MB.
my $ab = AbTest->new(conf => "shared_buffers = 64MB\nfsync = off");
my @tables = (qw(pgbench -i -q -s 40), $ab->{node}->connstr('postgres'));
$ab->{node}->command_ok(\@tables, 'pgbench -i');

my $alarms = 0;
for my $run (1 .. $runs)
{
	my ($status, $out, $err) = $ab->run('-S', '--a' => 'stock', '--b' => 'stock', '--blocks' => 12,
		'--slice' => 1.5, '--seed' => $seed + $run, '--no-picture');

	is($status, 0, "run $run: done") or diag($err);
	my $verdict = $out =~ /^stock \(2\) to stock: (.*)/m ? $1 : 'none';
	diag("run $run of $runs: $verdict");
	$alarms++ if $verdict !~ /^no difference shown/;
}
my $most = 0;
$most++ while chance_of_more($most) > $unlikely;
cmp_ok($alarms, '<=', $most, "at most $most false alarms");
done_testing();
