# A model of the wait queue of LWLocks, of waking, and of the switch of policy is
# searched exhaustively.  Mutants of the model must be caught.
#
# The model is test/lwlock/model/lwlock.pml; its README.md says what it covers.
# It needs Debian's package "spin", but no server.  SWEEP_MODEL=long adds larger
# cases (test/long/lwlock_model).  SWEEP_MODEL=none leaves all out, for tools/check-long,
# which runs the larger ones once.

use strict;
use warnings FATAL => 'all';

use Cwd qw(abs_path);
use File::Basename;
use File::Path qw(make_path);
use List::Util qw(sum);
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'SWEEP_MODEL=none' if ($ENV{SWEEP_MODEL} // '') eq 'none';

my $top = abs_path(dirname(__FILE__) . '/../..');
my $model = "$top/test/lwlock/model/lwlock.pml";
my $work = "$PostgreSQL::Test::Utils::tmp_check/lwlock_model";
make_path($work);
$work = abs_path($work);
my $long = ($ENV{SWEEP_MODEL} || '') eq 'long';
my $megabytes = $long ? 12000 : 3500;

# Debian's spin and gcc are what the figures in README.md come from.
foreach my $tool ('spin', 'gcc')
{
	my ($version) = eval { run_command([ $tool, $tool eq 'spin' ? '-V' : '--version' ]) };

	die "$tool is missing; tools/deps installs it\n" unless $version;
	like($version, qr/\d/, "there is $tool: " . ($version =~ /(.*)/)[0]);
}

# The operations of a case: the bits of MIX, as in the model
my %mix = (
	exclusive => 1,
	shared => 2,
	'acquire or wait' => 4,
	'update var' => 8,
	'wait for var' => 16,
	conditional => 32,
	'conditional shared' => 64);

# Search a model, compiled with some definitions.  Returns the output of pan.
sub search
{
	my ($name, $defines, $options) = @_;
	# Optimizing takes longer than a short search, and -O2 longer than it gains.
	my @gcc = ('gcc', $options->{short} ? '-O0' : '-O1', qw(-w -DSAFETY -DNOFAIR));
	my $dir = "$work/" . $name =~ s/\W+/_/gr;
	my $cpu = (times)[2];

	make_path($dir);
	chdir $dir or die "$dir: $!";
	push @gcc, $options->{sample} ? '-DBITSTATE' : ('-DCOLLAPSE', '-DMEMLIM=' . ($options->{megabytes} || $megabytes));
	foreach my $command ([ 'spin', '-a', (map { "-D$_" } @$defines), $model ],
		[ @gcc, '-o', 'pan', 'pan.c' ])
	{
		my ($out, $err) = run_command($command);
		die "@$command: $out$err" if $out . $err =~ /error/i || !-f ($command->[0] eq 'gcc' ? 'pan' : 'pan.c');
	}
	my ($out, $err) = run_command([ './pan', '-m' . ($options->{depth} || 20000), $options->{sample} ? ("-w$options->{sample}") : () ]);
	append_to_file("$dir/log", $out . $err);
	my ($depth) = $out =~ /depth reached (\d+)/;
	my ($memory) = $out =~ /([\d.]+)\s+total actual memory/;
	note(sprintf('%s: %d states, depth %s, %.0f s of CPU with compiling, %s MB', $name, states($out), $depth // '?', (times)[2] - $cpu, $memory // '?'));
	chdir $top or die "$top: $!";
	return $out . $err;
}

# The error that the search found; '' if it is complete and found none
sub finding
{
	my ($out, $sample) = @_;

	return $1 if $out =~ /^pan:\d+: (.*?)(?: \(at depth \d+\))?$/m;
	return 'the search is not complete'
	  if $out =~ /max search depth too small|out of memory|memory limit|Search not completed|truncated/i
	  || $out !~ /errors: 0$/m
	  || $out !~ /^ *[\d.e+]+ states, stored/m
	  || ($out =~ /Bit statespace search/ xor $sample);
	return '';
}

sub states
{
	return $_[0] =~ /^ *([\d.e+]+) states, stored/m ? $1 + 0 : 0;
}

# What the processes do, as definitions: all the same ("exclusive, shared"), or
# each has a role ("exclusive; 2 conditional; exclusive, shared").  A number says how
# many operations; without one they are as many as given.  Equal roles must be next
# to each other.
sub defines
{
	my ($what, $operations, $defines) = @_;
	my @roles = split /; /, $what;
	my @values;

	foreach my $role (@roles)
	{
		my $times = $role =~ s/^(\d) // ? $1 : $operations;

		push @values, sum(map { $mix{$_} // die $_ } split /, /, $role) + 128 * $times;
	}
	return ("MIX=" . $values[0] % 128, "OPS=$operations", @$defines) if @roles == 1;
	return ((map { "R$_=$values[$_ - 1]" } 1 .. @roles), @$defines);
}

# ---- every property holds ----

# Processes, operations of each, which, least number of states, other definitions
my $barge = 'conditional; conditional';
my $barges = 'conditional, conditional shared';
my $let_in = "wait for var; shared; exclusive; 3 $barges";
my @cases = (
	[ 3, 1, '2 exclusive; 2 exclusive; exclusive', 1e6 ],
	[ 3, 1, '2 exclusive, shared; exclusive, shared; exclusive, shared', 2e6 ],
	[ 3, 1, 'exclusive, shared, acquire or wait', 5e5 ],
	[ 3, 1, 'exclusive, update var, wait for var', 3e5 ],
	[ 3, 1, 'exclusive, shared; exclusive; exclusive', 5e5, 'STRAYS=1' ],
	[ 3, 1, 'exclusive, shared, acquire or wait', 5e5, 'FINE' ],
	[ 4, 1, "$barge; exclusive; wait for var", 5e5 ],
	[ 4, 1, 'exclusive; exclusive; exclusive; 3 conditional', 1e6, 'WAYS=2' ],
	[ 4, 1, $let_in =~ s/3 /2 /r, 5e5, 'WAYS=2' ]);
my $any = 'exclusive, shared, acquire or wait';
my $var = 'update var, wait for var';
my @long_cases = (
	[ 5, 1, 'conditional; 2 conditional' . '; acquire or wait' x 3, 2e6, 'WAYS=2' ],
	[ 3, 1, 'exclusive, shared', 5e5, 'STRAYS=1' ],
	[ 3, 2, 'exclusive', 5e6 ],
	[ 4, 1, 'exclusive', 3e6 ],
	[ 5, 1, "$barge; conditional; exclusive; wait for var", 3e6, 'WAYS=2' ],
	[ 3, 2, 'exclusive, shared', 2e7 ],
	[ 3, 1, "2 $any; 2 $any; $any", 5e6 ],
	[ 3, 1, "2 $var; 2 $var; $var", 5e6 ],
	[ 4, 1, 'exclusive, acquire or wait', 5e6 ],
	[ 4, 1, $let_in, 1e7, 'WAYS=2' ],
	[ 4, 1, "3 $barges; exclusive; exclusive; shared", 5e6, 'WAYS=2' ],
	[ 4, 1, "$barge; exclusive, update var; wait for var", 2e6 ],
	[ 5, 1, "$barge; exclusive; acquire or wait; wait for var", 9e6, 'WAYS=2' ]);

# Too large for a complete search.  The bit state table of 2^27 bits is what ends it.
my @samples = (
	[ 4, 1, 'exclusive, shared', 5e6 ],
	[ 4, 2, $any, 5e6 ],
	[ 4, 2, "exclusive, $var", 5e6 ],
	[ 5, 1, "$barge; update var; wait for var; wait for var", 5e6, 'WAYS=2' ]);

foreach my $case (@cases, $long ? @long_cases : (), $long ? map { [ @$_, 'SAMPLE' ] } @samples : ())
{
	my ($processes, $operations, $what, $least, @more) = @$case;
	my $sample = grep { $_ eq 'SAMPLE' } @more;
	my $name = "$processes processes, $operations each of $what" . (@more ? " (@more)" : '');
	my $out = search($name, [ "N=$processes", defines($what, $operations, \@more) ],
		{ short => $least < 1e6, $sample ? (sample => 27) : () });

	is(finding($out, $sample), '', "$name: no property is violated");
	cmp_ok(states($out), '>=', $least, "$name: " . states($out) . ' states');
}

# ---- errors that must be noticed ----

# A search that ends early, for lack of depth or of memory
my $cut = search('cut short', [ 'OPS=1', 'MIX=1' ], { short => 1, depth => 50 });
isnt(finding($cut), '', 'a search that is not deep enough is noticed: ' . finding($cut));
$cut = search('no memory', [ 'OPS=2', 'MIX=1' ], { short => 1, megabytes => 150 });
isnt(finding($cut), '', 'a search without enough memory is noticed: ' . finding($cut));

# The smallest case that shows the error, and the property that must fail
my $stuck = qr/invalid end state/;
my $not_told = qr/g_told/;
my $on_free_lock = qr/g_(?:var_)?asleep/;
my $no_setter = qr/g_setters/;
my $not_handed = qr/hands.*g_lost/;
my $delayed = qr/$not_told|$on_free_lock|$stuck/;
my %mutants = (
	ADMIT_CLEARS_RELEASE_OK => [ 4, 1, $let_in, qr/g_var_asleep/, 'WAYS=2' ],
	ADMIT_IGNORES_HOLDERS => [ 3, 1, "3 $barges; exclusive; shared", qr/g_linked/, 'WAYS=2' ],
	ADMIT_TAKES_ALL => [ 3, 1, "3 $barges; exclusive; exclusive", qr/\(mode\[cur\]&7\)==2/, 'WAYS=2' ],
	ADMIT_TAKES_ONE => [ 4, 1, "2 $barges; exclusive; shared; shared", qr/st_sh.*g_linked&g_queued/, 'WAYS=2' ],
	AGAIN_WITH_RELEASE_OK => [ 4, 1, '9 conditional; conditional; exclusive; exclusive', qr/rounds/, 'WAYS=2' ],
	ANY_NEXT_KEEPS => [ 3, 1, '3 conditional; exclusive; exclusive', $no_setter, 'WAYS=2' ],
	ATTEMPT_IGNORES_RESERVED => [ 3, 2, 'exclusive', qr/w_reserved/ ],
	DEQUEUE_UNLOCKED => [ 3, 1, 'exclusive', qr/g_owner==me/ ],
	DROPS_NEXT => [ 3, 1, '4 conditional; exclusive; exclusive', $not_handed, 'WAYS=2' ],
	FRONT_NOT_IN_ORDER => [ 3, 1, '4 conditional; exclusive; exclusive', qr/g_linked|g_before/, 'WAYS=2' ],
	GRANT_TOLD_LATE => [ 3, 2, 'exclusive', $stuck ],
	GRANT_TO_ANY => [ 3, 1, '2 exclusive, shared; exclusive, shared; exclusive, shared', qr/mode\[me\]&16/ ],
	GRANT_TO_FRONT => [ 3, 2, 'exclusive', $not_handed ],
	LATER_KEEP_LINK => [ 4, 1, 'exclusive', qr/g_queued/ ],
	LINK_AFTER_PUSH => [ 3, 1, 'exclusive', qr/waiting\[cur\]/ ],
	LINK_STAYS => [ 3, 1, 'exclusive', qr/prev\[cur\]/ ],
	NO_LOOK_AT_VAR => [ 3, 1, 'update var, exclusive; update var, exclusive; wait for var', $stuck ],
	NO_LOOK_FOR_SETTERS => [ 3, 1, '4 conditional; exclusive; exclusive', $not_handed, 'WAYS=2' ],
	NO_PROOF => [ 3, 1, 'exclusive', $stuck ],
	NO_RELEASE_OK => [ 3, 2, 'exclusive', qr/w_release_ok|$delayed/ ],
	NO_SECOND_ATTEMPT => [ 3, 1, 'exclusive', $stuck ],
	NO_UNLINKED => [ 3, 1, 'exclusive', qr/g_owner==me/ ],
	RELEASE_IGNORES_RESERVED => [ 3, 2, 'exclusive', qr/w_reserved.*g_wakers/ ],
	RESERVATION_STAYS => [ 3, 2, 'exclusive', $no_setter ],
	RESERVED_NOT_FIRST => [ 3, 1, '4 conditional; exclusive; exclusive', qr/g_linked/, 'WAYS=2' ],
	TAKES_OF_HOLDER => [ 3, 1, '3 conditional; exclusive; exclusive', $not_handed, 'WAYS=2' ],
	UNLINK_BLINDLY => [ 3, 1, 'exclusive', qr/g_queued/ ],
	UNLOCK_IGNORES_WAKE_WANTED => [ 3, 1, 'exclusive', $delayed ],
	VAR_UNLOCKED => [ 4, 1, "$barge; exclusive; wait for var", $on_free_lock ],
	WAKER_LOOKS_ONCE => [ 3, 1, 'exclusive', $delayed ],
	WAKER_LOOKS_TWICE => [ 5, 1, 'conditional; 2 conditional' . '; acquire or wait' x 3, $delayed, 'WAYS=2' ],
	WAKER_TELLS_NONE_LATE => [ 4, 1, "$barge; exclusive; acquire or wait", $not_told, 'WAYS=2' ]);

my $source = join '', map { slurp_file($_) } glob(dirname($model) . '/*.pml');
my %in_model = map { $_ => 1 } $source =~ /\bMUTANT_(\w+)/g;
is_deeply([ sort keys %mutants ], [ sort keys %in_model ], 'every mutant of the model is tried');

foreach my $mutant (sort keys %mutants)
{
	my ($processes, $operations, $what, $expected, @more) = @{ $mutants{$mutant} };
	my $out = search("mutant $mutant",
		[ "N=$processes", defines($what, $operations, [ @more, "MUTANT_$mutant" ]) ],
		$mutant eq 'ADMIT_CLEARS_RELEASE_OK' ? { depth => 125 } : { short => 1 });

	like(finding($out), $expected,
		"mutant $mutant is caught: " . finding($out) . ' (' . states($out) . ' states)');
}

done_testing();
