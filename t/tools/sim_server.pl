# The simulator against real servers: one backend finds the same million victims.
# sim/run victims compares them; here, only the main cases.
#
# The servers have the test module measure_sweep installed, as "make check" sees to.

use strict;
use warnings FATAL => 'all';

use Cwd qw(abs_path);
use File::Basename;
use File::Path qw(make_path);
use IPC::Run qw(run);
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

my $top = abs_path(dirname(__FILE__) . '/../..');
my $pg_config = $ENV{PG_CONFIG} || 'pg_config';
my $victims = 1_000_000;

plan skip_all => 'the simulator is built on x86-64 Linux only' if `uname -sm` ne "Linux x86_64\n";
plan skip_all => 'there is no source of a patched server'
  if $pg_config !~ m{^\Q$top\E/build/} && !$ENV{SWEEP_SERVER_SOURCE};
my $stock = stock_prefix();
plan skip_all => 'there is no unpatched server' if !defined $stock;
chomp(my $patched = `$pg_config --bindir`);
$patched = dirname($patched);

my $out = "$PostgreSQL::Test::Utils::tmp_check/sim_server";
my ($stdout, $stderr) = ('', '');
make_path($out);
my $ok = run(
	[
		"$top/sim/run", 'victims', '--quick', '--installed',
		'--into' => $out, '--stock' => $stock, '--patched' => $patched, '--victims' => $victims
	],
	'<', '/dev/null', '>', \$stdout, '2>', \$stderr);
ok($ok, 'all victims are the same') or diag($stdout . $stderr);

for my $wanted ('stock server, ', 'pg_sweep batched, ', 'pg_sweep partitioned, ')
{
	my @rows = $stdout =~ /^\Q$wanted\E.*$/mg;

	cmp_ok(scalar @rows, '>=', 1, "${wanted}compared in " . @rows . ' cases');
	is(scalar(grep { !/ $victims  +$victims  +-$/ } @rows), 0, "${wanted}$victims victims the same in each");
}

done_testing();
