# The contention simulator against published measurements (sim): a part of
# `sim/run validate` that takes seconds; that machine files are checked, that
# what may be fitted is what was named beforehand, that calibration works on one CPU
# and on all, and that docs/scaling.md is what its data says.

use strict;
use warnings FATAL => 'all';

use Cwd qw(abs_path);
use File::Basename;
use IPC::Run qw(run);
use JSON::PP;
use PostgreSQL::Test::Utils;
use Test::More;

my $top = abs_path(dirname(__FILE__) . '/..');
my $pg_config = $ENV{PG_CONFIG} || 'pg_config';
my $json = JSON::PP->new->canonical;

# A server that this project has built has its source, too; others may not.
if ($pg_config !~ m{^\Q$top\E/build/} && !$ENV{SWEEP_SERVER_SOURCE})
{
	plan skip_all => 'there is no source of a patched server';
}

# The simulator, built for the servers that are tested
my ($sim, $build_said) = ('', '');
run([ 'python3', '-B', "$top/sim/py/build.py", '--patched=' . dirname(dirname($pg_config)) ], '>', \$sim, '2>', \$build_said)
  or BAIL_OUT("the simulator cannot be built: $build_said");
chomp $sim;
my @program = ('--program', $sim);

# Results and what is remembered of runs go to a folder of this test's.
local $ENV{SWEEP_BENCH_DIR} = abs_path($PostgreSQL::Test::Utils::tmp_check) . '/sim';

# sim/run with arguments; returns (did it succeed, what it printed).
sub sim
{
	my ($stdout, $stderr) = ('', '');
	my $ok = run([ @_[ 0 .. $#_ ] ], '>', \$stdout, '2>', \$stderr);

	return ($ok, $stdout, $stderr);
}

my @run = ("$top/sim/run");

sub succeeds
{
	my ($what, @arguments) = @_;
	my ($ok, $stdout, $stderr) = sim(@run, @arguments);

	ok($ok, $what) or diag($stdout . $stderr);
	return $stdout;
}

# Fails, with one line that says why, if not all that it has printed does.
sub fails
{
	my ($what, $why, @arguments) = @_;
	my ($ok, $stdout, $stderr) = sim(@run, @arguments);

	ok(!$ok, "$what: fails");
	like($stderr, $why, "$what: says why");
	like($stderr, qr/\A(?:[^\n]+\n)?\z/, "$what: in one line");
}

# A copy of a machine file with changes, in a file of its own
my $changed = 0;

sub changed_machine
{
	my ($change) = @_;
	my $machine = $json->decode(slurp_file("$top/sim/machines/hb176.json"));
	my $path = "$PostgreSQL::Test::Utils::tmp_check/machine" . ++$changed . '.json';

	$change->($machine);
	append_to_file($path, $json->encode($machine));
	return abs_path($path);
}

# ---- machine files ----

my $checked = succeeds('all machine files are right, and docs/scaling.md is what its data says', 'check');
like($checked, qr/^$_:/m, "there is a file of $_")
  foreach qw(hb176 r8i-metal-96xl m6i-metal c8i-metal-48xl gold5215 borisov32 epyc512 epyc1024);
like($checked, qr/epyc1024: .* 1024 CPUs, 16 nodes/, 'shapes are told');

my @wrong = (
	[ 'an unknown value', sub { $_[0]{values}{speed} = [ 1, 'assumed' ] }, qr/unknown value 'speed'/ ],
	[ 'an unknown key', sub { $_[0]{comment} = 'x' }, qr/unknown key 'comment'/ ],
	[ 'a missing value', sub { delete $_[0]{values}{keep_ps} }, qr/value 'keep_ps' is missing/ ],
	[ 'a value out of range', sub { $_[0]{values}{sockets}[0] = 0 }, qr/'sockets' is 0, which is not/ ],
	[ 'a number that is a text', sub { $_[0]{values}{cores}[0] = 'many' }, qr/'cores' must be/ ],
	[ 'cores that do not fit', sub { $_[0]{values}{cores}[0] = 176 }, qr/'cores' is 176, but .* make 192/ ],
	[ 'farther that is faster', sub { $_[0]{values}{latency_socket}[0] = 70000 }, qr/'latency_node' must not be larger/ ],
	[ 'faster together than alone', sub { $_[0]{together_percent} = 50 }, qr/'together_percent' must be/ ],
	[ 'lines that migrate now and then', sub { $_[0]{migratory} = 50 }, qr/'migratory' must be true or false/ ],
	[ 'no source', sub { $_[0]{values}{pause}[1] = '' }, qr/the source of 'pause'/ ],
	[ 'a source that is not listed', sub { $_[0]{values}{pause}[1] = 'intel: somewhere' }, qr/the source of 'pause'/ ]);
foreach my $case (@wrong)
{
	my ($what, $change, $why) = @$case;
	fails($what, $why, 'check', changed_machine($change));
}
succeeds('a file that is right', 'check', changed_machine(sub { }));
foreach my $command ('calibrate', 'own rounds')
{
	my ($done, undef, $said) = sim(@run, split(' ', $command), '--rounds', 0);
	ok(!$done && $said =~ /rounds and jobs must be greater than zero$/, "$command: no rounds are refused");
}
fails('a machine that is not there', qr/there is no machine 'cray'; there are .*hb176/, 'check', 'cray');
fails('a file that is not there', qr/cannot read .*none\.json/, 'check', './none.json');

# One run that is asked for what cannot be
my @refused = (
	[ 'a value that is out of range', 'load=alloc', 'strategy=stock', 'backends=0', qr/run: sim: backends must be 1 \.\. \d+, not 0$/ ],
	[ 'a value that is no number', 'load=alloc', 'strategy=stock', 'backends=x', qr/sim: backends must be a whole number, not "x"$/ ],
	[ 'a machine that cannot be', 'load=alloc', 'strategy=stock', 'machine.sockets=3', qr/sim: machine: .* are not 192 cores$/ ],
	[ 'an unknown strategy', 'load=alloc', 'strategy=clock', qr/sim: there is no strategy "clock"$/ ],
	[ 'an unknown load', 'load=none', qr/sim: there is no load "none"$/ ],
	[ 'an unknown setting', 'load=lines', 'load.op=load', 'load.times=1', 'load.size=1', qr/sim: unknown key "load\.size"/ ],
	[ 'a missing setting', 'load=lines', 'load.op=load', qr/sim: key "load\.times" is missing$/ ],
	[ 'a setting without a value', 'load=', qr/'load=' is not KEY=VALUE$/ ]);
foreach my $case (@refused)
{
	my ($what, @settings) = @$case;
	my $why = pop @settings;

	fails($what, $why, 'run', @program, 'hb176', @settings);
}

# Two CPUs that take turns need what was published of that, so much apart.
foreach my $pair ([ 'm6i-metal', 'group', 1 ], [ 'm6i-metal', 'other_socket', 32 ],
	[ 'm6i-metal', 'same_core', 64 ], [ 'hb176', 'group', 1 ], [ 'hb176', 'other_socket', 96 ])
{
	my ($name, $distance, $step) = @$pair;
	my $machine = $json->decode(slurp_file("$top/sim/machines/$name.json"));
	my ($published) = $machine->{values}{"latency_$distance"}[1] =~ /([\d.]+) ns\b/;
	my $said = succeeds("turns of $name, $distance", 'run', @program, $name, 'load=lines', 'load.op=ping',
		'backends=2', "load.step=$step", 'load.times=2000');
	my ($turn) = $said =~ /^result last_ps (\d+)/m ? $1 / 4e6 : 0;

	cmp_ok(abs($turn / $published - 1), '<=', 0.05, "$name, $distance: $turn ns, published $published");
}

# ---- what is fitted ----

my $plan = $json->decode(slurp_file("$top/sim/published/fit.json"));
my %named = map { ("$_->{clients} clients, $_->{column}" => 1) } @{ $plan->{cells} };
my $committed = $json->decode(slurp_file("$top/docs/scaling/validation.json"));
my %fitted =
  map { ($_->{configuration} => 1) } grep { $_->{metric} eq 'scans_tps' && $_->{side} eq 'simulated, fitted' } @$committed;
my @held_out = grep { $_->{metric} eq 'scans_tps' && $_->{side} eq 'simulated' } @$committed;

is_deeply(\%fitted, \%named, 'what is fitted is what fit.json has named');
cmp_ok(scalar keys %named, '<=', 4, 'no more than 4 cells are fitted');
cmp_ok(scalar @{ $plan->{numbers} }, '<=', 4, 'no more than 4 numbers are fitted');
is(@held_out + keys %named, 48, 'all cells of the table are predicted or named');

# What was committed is what the simulator says today, within what a change of the
# sources that are played may change without anybody wanting it.
my $numbers = $json->decode(slurp_file("$top/docs/scaling/fitted.json"));
my ($ok, $stdout, $stderr) =
  sim('python3', '-B', "$top/sim/test/cells.py", $sim, $json->encode($numbers), '64 master', '16 numa', '8 numa_16');
ok($ok, 'cells are simulated') or diag($stderr);
my %today = $stdout =~ /^(.+): (\S+)$/mg;
is(scalar keys %today, 3, 'three cells are simulated');
foreach my $where (sort keys %today)
{
	my ($row) =
	  grep { $_->{metric} eq 'scans_tps' && $_->{configuration} eq $where && $_->{side} =~ /^simulated/ } @$committed;
	my $difference = abs($today{$where} / $row->{median} - 1);

	cmp_ok($difference, '<=', 0.05, "$where: $today{$where} tps, docs/scaling has $row->{median}");
}

# ---- against published measurements ----

my $result = succeeds('counters and pgbench are as published', 'validate', @program, '--quick', '--check', '--part', 'freund', '--part', 'pgbench');
my @met = $result =~ /: met$/mg;
is(scalar @met, 4, 'all four conditions were looked at');
unlike($result, qr/NOT MET/, 'and are met');
like($result, qr/^read-only, 512 .* 1\.00\d\d /m, 'what the hand cannot explain is reported');

my $rows = $json->decode(slurp_file("$ENV{SWEEP_BENCH_DIR}/sim_part.json"));
cmp_ok(scalar(grep { $_->{metric} eq 'operations_m_per_s' && $_->{side} eq 'simulated' } @$rows), '==', 12, 'all totals of atomics are in the result');

# The same again is remembered, and the same.
my $again = succeeds('the same again', 'validate', @program, '--quick', '--part', 'freund');
like($again, qr/12 runs of the simulator, 12 of them remembered/, 'runs are remembered');
is((split /\n\n/, $again)[0], (split /\n\n/, $result)[0], 'and the same is said');
my $config = "$ENV{SWEEP_BENCH_DIR}/sim/cache";
append_to_file($_, "broken\n") foreach glob("$config/*.txt");
like(succeeds('afresh', 'validate', @program, '--quick', '--part', 'freund', '--fresh', '--check'),
	qr/12 runs of the simulator, 0 of them remembered/, 'unless asked afresh');

# ---- baselines ----

($ok, $stdout, $stderr) = sim('python3', '-B', "$top/sim/test/baselines.py");
ok($ok, 'baselines, errors, ratios and knees of a table worked out by hand') or diag($stdout . $stderr);

# ---- calibration ----

my $this = "$ENV{SWEEP_BENCH_DIR}/this.json";
succeeds('calibration', 'calibrate', '--rounds', '1', '--output', $this);
succeeds('its file is a machine file', 'check', $this);
my ($first) = `taskset -pc $$` =~ /: *(\d+)/;
my $one = "$ENV{SWEEP_BENCH_DIR}/one.json";
($ok, $stdout, $stderr) = sim('taskset', '-c', $first, @run, 'calibrate', '--rounds', '1', '--output', $one);
ok($ok, 'calibration on one CPU') or diag($stderr);
like($stdout, qr/there is one CPU only/, 'says what could not be measured');
succeeds('its file is a machine file, too', 'check', $one);
fails('a folder that cannot be made', qr/cannot (write|create)/, 'calibrate', '--rounds', '1', '--output', '/proc/none/this.json');

# ---- lines that migrate ----

# Where a load brings a line for writing, the hand's is fetched once for a load and
# the addition after it, not twice.
my %transfers;
foreach my $migratory (0, 1)
{
	my $said = succeeds("migratory $migratory", 'run', @program, 'm6i-metal', 'load=alloc', 'strategy=stock', 'backends=2',
		'allocations=20000', "migratory=$migratory");
	my ($each) = $said =~ /^region hand .*\btransfers (\d+)/m;

	$transfers{$migratory} = ($each // 0) / 20000;
}
cmp_ok($transfers{0}, '>', 1.5 * $transfers{1}, "transfers of the hand's line: $transfers{0}, and $transfers{1} if it migrates");
cmp_ok($transfers{1}, '>', 0, 'which are some');

# ---- own machine: predicted first, measured then ----

($ok, $stdout, $stderr) = sim('python3', '-B', "$top/sim/test/own.py");
ok($ok, 'rounds on a machine that is made up') or diag($stderr);
while ($stdout =~ /^((?:not )?)ok - (.*)$/mg)
{
	ok($1 eq '', $2);
}
like($stdout, qr/^done$/m, 'to their end');
fails('no server', qr{/none/bin/postgres is missing}, 'own', 'rounds', @program, '--stock', '/none');

done_testing();
