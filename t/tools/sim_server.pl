# The simulator (sim) against real servers: one backend finds the same
# million victims, and accesses what backends share as often, in the same ways.
# sim/server_trace does it; here, only the main cases.
#
# The servers have the test module measure_sweep installed, as "make check" sees to.

use strict;
use warnings FATAL => 'all';

use Cwd qw(abs_path);
use File::Basename;
use File::Path qw(make_path);
use FindBin;
use lib "$FindBin::RealBin/../lib";
use IPC::Run qw(run);
use JSON::PP;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

my $top = abs_path(dirname(__FILE__) . '/..');
my $pg_config = $ENV{PG_CONFIG} || 'pg_config';
my $victims = 1_000_000;
my $stepped = 300;

plan skip_all => 'instructions are recorded, and the simulator is built, on x86-64 Linux only'
  if `uname -sm` ne "Linux x86_64\n";
plan skip_all => 'there is no source of a patched server'
  if $pg_config !~ m{^\Q$top\E/build/} && !$ENV{SWEEP_SERVER_SOURCE};
my $stock = stock_prefix();
plan skip_all => 'there is no unpatched server' if !defined $stock;
chomp(my $patched = `$pg_config --bindir`);
$patched = dirname($patched);

# Assertions read shared memory, too: instructions are those of a server without
chomp(my $include = `$pg_config --includedir-server`);
my $release = slurp_file("$include/pg_config.h") =~ /^#define USE_ASSERT_CHECKING 1/m ? "$top/build/18/release" : $patched;

# of this test only; what is compiled for it is others', too
my $out = "$PostgreSQL::Test::Utils::tmp_check/sim_server";
make_path($out);

# Run it; returns its rows as side of metric and configuration
sub trace
{
	my ($title, @options) = @_;
	my ($stdout, $stderr) = ('', '');
	my $json = "$out/sim_server.json";

	unlink $json;
	my $ok = run(
		[
			"$top/sim/server_trace", '--check', '--quick', '--installed',
			'--into' => $out, '--stock' => $stock, @options
		],
		'<', '/dev/null', '>', \$stdout, '2>', \$stderr);
	ok($ok, "$title: all is the same") or diag($stdout . $stderr);
	note($stdout);
	my %rows;
	if (-f $json)
	{
		$rows{ $_->{metric} }{ $_->{configuration} }{ $_->{side} } = $_->{median}
		  for @{ decode_json(slurp_file($json)) };
	}
	return %rows;
}

# ---- victims ----

my %rows = trace('victims', '--patched' => $patched, '--victims' => $victims, '--stepped' => 0);
my %found = %{ $rows{victims} // {} };
for my $wanted ('stock server, ', 'pg_sweep batched, ', 'pg_sweep partitioned, ')
{
	my @cases = grep { index($_, $wanted) == 0 } keys %found;
	cmp_ok(scalar @cases, '>=', 1, "${wanted}compared in " . @cases . ' cases');
}
is( join('; ', grep { $found{$_}{server} != $victims || $found{$_}{'the same in the simulator'} != $victims } sort keys %found),
	'', "$victims victims in each");

# ---- accesses ----

SKIP:
{
	skip 'there is no server without assertions', 1 if !-x "$release/bin/postgres";

	%rows = trace('accesses', '--patched' => $release, '--victims' => 1000, '--stepped' => $stepped);
	for my $strategy ('stock server', 'pg_sweep batched', 'pg_sweep partitioned')
	{
		my $atomics = $rows{atomics_per_allocation} // {};
		my @descriptors = grep { /^\Q$strategy\E, .*: descriptors$/ } keys %$atomics;

		cmp_ok(scalar @descriptors, '>=', 1, "$strategy: accesses compared");

		# each victim's header is locked by one, at least
		is(join('; ', grep { $atomics->{$_}{server} < 1 || $atomics->{$_}{simulator} < 1 } @descriptors),
			'', "$strategy: at least one atomic operation on descriptors an allocation");
	}
	my @hands = grep { /: hands?$/ } keys %{ $rows{atomics_per_allocation} // {} };
	cmp_ok(scalar @hands, '>=', 5, 'the hands are among what was compared');
}

done_testing();
