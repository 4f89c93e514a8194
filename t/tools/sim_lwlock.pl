# LWLocks in the simulator: the server's lwlock.c, PostgreSQL's own, each policy of
# the library and upstream's patch acquire the lock as often as wanted, leave no
# process asleep, and do the same each time. That an exclusive holder is alone is
# checked all the time by the load itself (sim/loads/lwlock.c).

use strict;
use warnings FATAL => 'all';

use Cwd qw(abs_path);
use File::Basename;
use IPC::Run qw(run timeout);
use JSON::PP;
use PostgreSQL::Test::Utils;
use Test::More;

my $top = abs_path(dirname(__FILE__) . '/../..');

my $pg_config = $ENV{PG_CONFIG} || 'pg_config';

plan skip_all => 'there is no source of a patched server'
  if $pg_config !~ m{^\Q$top\E/build/} && !$ENV{SWEEP_SERVER_SOURCE};

# with the assertions of lwlock.c, if the server has them
my ($sim, $errors) = ('', '');
run([ "$top/sim/run", 'build', '--patched=' . dirname(dirname($pg_config)) ],
	'<', '/dev/null', '>', \$sim, '2>', \$errors)
  or BAIL_OUT("the simulator was not built: $errors");
chomp $sim;

my $values = decode_json(slurp_file("$top/sim/machines/m6i-metal.json"))->{values};
my %machine = (
	(map { ("machine.$_" => $values->{$_}[0]) } keys %$values),
	'machine.cores' => 16, 'machine.cores_per_group' => 16, 'machine.sockets' => 1);

# One run; returns its output, or what it said instead
sub simulate
{
	my (%config) = @_;
	my ($stdout, $stderr) = ('', '');
	my %all = (%machine, %config);
	my $text = join '', map { "$_ $all{$_}\n" } sort keys %all;

	run([$sim], '<', \$text, '>', \$stdout, '2>', \$stderr, timeout(60)) or return $stderr;
	return $stdout;
}

sub result
{
	my ($output, $key) = @_;
	return $output =~ /^result \Q$key\E (\S+)$/m ? $1 : undef;
}

my %common = (
	seed => 1,
	load => 'lwlock',
	placement => 'scatter',
	'load.acquisitions' => 10_000);

my %same;
for my $policy (qw(unpatched none stock lockless lockless_spin v2))
{
	# more processes than CPUs, readers and writers
	my %hot = (
		%common,
		backends => 40,
		'load.policy' => $policy,
		'load.shared_percent' => 50,
		'load.think_ps' => 3_000_000);
	my $output = simulate(%hot);
	my $contended = result($output, 'library.contended');
	my @acquired = map { result($output, "$_.acquisitions") // 0 } qw(exclusive shared);
	is($acquired[0] + $acquired[1], 10_000, "$policy: 40 processes acquire a lock 10000 times") or diag($output);
	for my $mode (qw(exclusive shared))
	{
		my @shares = map { result($output, "$mode.share$_") // -1 } 0 .. 2;

		cmp_ok(abs($shares[0] + $shares[1] + $shares[2] - 1), '<', 1e-6, "$policy: shares of $mode are all of them");
		# a reader that tries may always find the lock free of writers
		cmp_ok(1 - $shares[0], '>', 0, "$policy: some sleep, $mode")
		  unless $policy eq 'lockless_spin' && $mode eq 'shared';
	}
	# A process that sleeps at the end has not slept for half of the run: no wakeup was
	# lost.  The longest waits take 5 to 15 ms, the run some 60.
	# (v2 wakes the newest first: its oldest may wait for ever.)
	if ($policy ne 'v2')
	{
		my $long = simulate(%hot, 'load.acquisitions' => 200_000);
		my ($elapsed) = $long =~ /^elapsed_ps (\d+)$/m;

		cmp_ok(result($long, 'waiting_at_the_end_ns') // 1e15, '<', ($elapsed // 0) / 1000 / 2, "$policy: no process is left asleep");
	}

	push @{ $same{ $output =~ s/^result library.*\n//mgr } }, $policy;
	is(simulate(%hot), $output, "$policy: the same a second time");
	isnt(simulate(%hot, seed => 2), $output, "$policy: not with another seed");

	# alone, a process does not wait
	$output = simulate(%hot, backends => 1);
	is(result($output, 'exclusive.share0'), 1, "$policy: one process never sleeps") or diag($output);

	my $transactions = simulate(%common, backends => 20, 'load.policy' => $policy,
		'load.kind' => 'procarray', 'load.think_ps' => 10_000_000);
	cmp_ok(result($transactions, 'group_members') // 0, '>', 0.01, "$policy: transactions end in groups");

	next if $policy =~ /unpatched|none|v2/;
	cmp_ok($contended // 0, '>', 100, "$policy: the library has counted");
}

# Spinning: two processes on two CPUs do, and gain by it.
my %two = (
	%common,
	'machine.cores' => 2,
	'machine.cores_per_group' => 2,
	'machine.threads_per_core' => 1,
	'load.hold_ps' => 200_000,
	'load.think_ps' => 400_000);
my %pair = map { $_ => simulate(%two, backends => 2, 'load.policy' => $_) } qw(stock lockless_spin);
cmp_ok(result($pair{lockless_spin}, 'library.spun_per_contended') // 0, '>', 0.9, 'two processes on two CPUs spin');
cmp_ok(
	result($pair{lockless_spin}, 'acquisitions_per_s') // 0,
	'>',
	1.3 * (result($pair{stock}, 'acquisitions_per_s') // 1e15),
	'and acquire the lock more often');

# Eight processes on one CPU: the holder of a taken lock is never on a CPU.  A try takes
# CPU time from it, and 10000 as much as holding the lock eight times.
my %one = (
	%two,
	'machine.cores' => 1,
	'machine.cores_per_group' => 1,
	backends => 8,
	'load.hold_ps' => 50_000_000,
	'load.think_ps' => 50_000_000,
	'load.spin_tries' => 10_000,
	'load.acquisitions' => 40_000,
	'load.warmup' => 20_000);
my %crowd = map { $_ => simulate(%one, 'load.policy' => $_) } qw(stock lockless_spin);
is(result($crowd{lockless_spin}, 'library.spun_per_contended'), 0, 'on one CPU no process gets a lock by spinning');
cmp_ok(
	result($crowd{lockless_spin}, 'cpu_ns_per_acquisition') // 1e15,
	'<',
	1.03 * (result($crowd{stock}, 'cpu_ns_per_acquisition') // 0),
	'and all have learnt not to try');

is(join('; ', map { "@$_" } grep { @$_ > 1 } values %same), '', 'no two policies do the same');

like(simulate(%common, 'load.policy' => 'polite'), qr/^sim: load\.policy: there is no polite$/, 'an unknown policy');
like(simulate(%common, 'load.kind' => 'cold'), qr/^sim: load\.kind: there is no cold$/, 'an unknown kind');

done_testing();
