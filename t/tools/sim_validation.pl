# The contention simulator's commands: machine files are checked, impossible
# settings are refused, published latencies are met, and calibration works on one
# CPU and on all. Validation and predictions are tested by unittest (sim/test).

use strict;
use warnings FATAL => 'all';

use Cwd qw(abs_path);
use File::Basename;
use IPC::Run qw(run);
use JSON::PP;
use PostgreSQL::Test::Utils;
use Test::More;
use UnittestTest;

my $top = abs_path(dirname(__FILE__) . '/../..');
my $pg_config = $ENV{PG_CONFIG} || 'pg_config';
my $json = JSON::PP->new->canonical;

# A server that this project has built has its source, too; others may not.
if ($pg_config !~ m{^\Q$top\E/build/} && !$ENV{SWEEP_SERVER_SOURCE})
{
	plan skip_all => 'there is no source of a patched server';
}

# The simulator, built for the servers that are tested
my ($sim, $build_said) = ('', '');
run([ "$top/sim/run", 'build', '--patched=' . dirname(dirname($pg_config)) ], '>', \$sim, '2>', \$build_said)
  or BAIL_OUT("the simulator cannot be built: $build_said");
chomp $sim;
my @program = ('--program', $sim);

# Results and what is remembered of runs go to a folder of this test's.
my $bench = $ENV{SWEEP_BENCH_DIR} // "$top/build/bench";
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

my $checked = succeeds('all machine files are right', 'check');
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
	[ 'a base that is not there', sub { $_[0]{base} = 'cray' }, qr/there is no machine 'cray'/ ],
	[ 'no source', sub { $_[0]{values}{pause}[1] = '' }, qr/the source of 'pause'/ ],
	[ 'a source that is not listed', sub { $_[0]{values}{pause}[1] = 'intel: somewhere' }, qr/the source of 'pause'/ ]);
foreach my $case (@wrong)
{
	my ($what, $change, $why) = @$case;
	fails($what, $why, 'check', changed_machine($change));
}
succeeds('a file that is right', 'check', changed_machine(sub { }));
my ($done, undef, $said) = sim(@run, 'calibrate', '--rounds', 0);
ok(!$done && $said =~ /0 is not greater than zero$/, 'calibrate: no rounds are refused');
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

# ---- calibration ----

my $this = "$ENV{SWEEP_BENCH_DIR}/this.json";
succeeds('calibration', 'calibrate', '--rounds', '1', '--output', $this);
succeeds('its file is a machine file', 'check', $this);
my ($first) = `taskset -pc $$` =~ /: *(\d+)/;
my $one = "$ENV{SWEEP_BENCH_DIR}/one.json";
my ($ok, $stdout, $stderr) = sim('taskset', '-c', $first, @run, 'calibrate', '--rounds', '1', '--output', $one);
ok($ok, 'calibration on one CPU') or diag($stderr);
like($stdout, qr/there is one CPU only/, 'says what could not be measured');
succeeds('its file is a machine file, too', 'check', $one);
fails('a folder that cannot be made', qr/cannot (write|create)/, 'calibrate', '--rounds', '1', '--output', '/proc/none/this.json');

# ---- the rest is Python's ----

run_unittests('sim.test', env => { SWEEP_BENCH_DIR => $bench });

done_testing();
