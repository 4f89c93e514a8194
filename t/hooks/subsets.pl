# Whichever patches are left out, as the README allows, the files that the others touch
# compile without a warning, and export the symbols of these patches and no others.  So
# they do with the optional patch.
#
# Each subset takes some seconds: a few here, all of them in test/long/hooks_subsets
# (PG_SWEEP_HOOKS_SUBSETS=all), there also with assertions and LWLock debugging.
# Objects are compiled as the stock server's build does, in no build of their own.

use strict;
use warnings FATAL => 'all';

use Digest::SHA;
use File::Basename;
use File::Copy;
use File::Path qw(make_path remove_tree);
use JSON::PP;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

my $top = sweep_root();
my $major = $ENV{SWEEP_MAJOR};
my $pristine = "$top/build/$major/src";
my $build = "$top/build/$major/obj/stock";
my $work = "$PostgreSQL::Test::Utils::tmp_check/subsets";

plan skip_all => 'the stock server is not built (make server VARIANT=stock)' unless -f "$build/compile_commands.json";

# Each patch, the patches that it needs, and the symbols that it exports
my @patches = (
	[ 'hooks-api', [], ['sweep_hooks_api'] ],
	[
		'sweep-replacement-hooks', ['hooks-api'],
		[qw(ActivateBufferReplacement SetBufferReplacement GetBufferReplacement SetBufferLoadsWanted StrategyEmptyFreelist SyncOneBuffer)]
	],
	[ 'numa-placement-hooks', ['hooks-api'], ['ProcPlacement'] ],
	[ 'lwlock-state-word', [], [] ],
	[ 'lwlock-wait-hooks', [ 'hooks-api', 'lwlock-state-word' ], ['LWLockWait'] ],
	[ 'pins-private-refcount', [], ['ShowPrivateRefCount'] ],
	[ 'ring-flush-hooks', [], [qw(RingFlush GetAccessStrategyRing PinBufferToWrite)] ],
	[ 'hit-sampling', [], ['SampleHits'] ]);
my %optional = ('hit-sampling' => 1);
my @names = map { $_->[0] } @patches;
my %needs = map { $_->[0] => $_->[1] } @patches;
my %exports = map { $_->[0] => $_->[2] } @patches;
my %patch_of = map { my $name = $_->[0]; map { $_ => $name } @{ $_->[2] } } @patches;

my %file = map { basename($_) =~ /^(?:\d+-)?(.*)\.patch$/ ? ($1 => $_) : () }
  map { glob("$top/core-hooks/$major/$_") } '*.patch', 'optional/*.patch';
is_deeply([ sort @names ], [ sort keys %file ], 'the table has each patch');
my @whole = grep { !$optional{$_} } @names;

# ---- the subsets ----

sub allowed
{
	my %in = map { $_ => 1 } @_;
	return !grep { !$in{$_} } map { @{ $needs{$_} } } @_;
}

# A patch with all that it needs
sub with_needs
{
	my ($name) = @_;
	return map({ with_needs($_) } @{ $needs{$name} }), $name;
}

# In the order of the series, each once
sub ordered { my %in = map { $_ => 1 } @_; return join ' ', grep { $in{$_} } @names }

my $all = ($ENV{PG_SWEEP_HOOKS_SUBSETS} // '') eq 'all';
my @every = grep { allowed(split / /) }
  map { my $set = $_; join ' ', map { $names[$_] } grep { $set & 1 << $_ } 0 .. $#names } 1 .. 2**@names - 1;
my %seen;
my @subsets = $all ? @every : grep { !$seen{$_}++ } map({ ordered(with_needs($_)) } @names), "@whole", "@names";
note scalar @subsets, ' of ', scalar @every, ' subsets';

# As the server is compiled, and with what only developers turn on.  With LWLOCK_STATS,
# lwlock.c of 18.6 lacks an include of storage/ipc.h, patched or not.
my @ways = (['']);
push @ways, [qw(-DUSE_ASSERT_CHECKING -DLOCK_DEBUG -DLWLOCK_STATS -Wno-implicit-function-declaration)] if $all;

# ---- compile ----

my $text = join '', map { slurp_file($_) } values %file;
my %touched = map { $_ => 1 } $text =~ m{^--- a/(\S+)}mg;
my @sources = sort grep { /\.c$/ } keys %touched;
my %command = map { $_->{file} =~ s{^.*?(?=src/backend/)}{}r => $_->{command} }
  @{ decode_json(slurp_file("$build/compile_commands.json")) };
is_deeply([ grep { !defined $command{$_} } @sources ], [], 'the build knows how to compile ' . join(', ', map { basename($_) } @sources));

# The compiler and its flags, without names of files; ccache would not help
sub flags_of
{
	my ($source) = @_;
	my @words = grep { !/ccache$|^-MD$|^-fpch-deps$|^-g$/ } split / /, $command{$source};
	my @flags;

	while (@words)
	{
		my $word = shift @words;
		if ($word =~ /^-(?:MQ|MF|o|c)$/) { shift @words }
		else { push @flags, $word }
	}
	return @flags;
}

# A tree with the touched files, patched
sub patched_tree
{
	my ($subset) = @_;
	my %in = map { $_ => 1 } split / /, $subset;
	my $tree = "$work/tree";

	remove_tree($tree);
	foreach my $file ('configure', grep { -f "$pristine/$_" } keys %touched)
	{
		make_path(dirname("$tree/$file"));
		copy("$pristine/$file", "$tree/$file") or die "$file: $!";
	}
	command_ok(
		[
			"$top/core-hooks/apply", $tree,
			map({ ('--without', $_) } grep { !$in{$_} } @whole),
			map({ ('--with', $_) } grep { $in{$_} } keys %optional)
		],
		"$subset: apply");
	return $tree;
}

# Runs a compiler in the build's folder; returns exit status, standard output and error
sub compile
{
	my ($out, $err) = ('', '');
	IPC::Run::run([@_], '<', \undef, '>', \$out, '2>', \$err, init => sub { chdir $build or die $! });
	return ($? >> 8, $out, $err);
}

# The symbols that an object exports, by a hash of all that was compiled into it: most
# objects are the same in several subsets.
my %done;

sub exported_by
{
	my ($tree, $source, @more) = @_;
	my @gcc = (flags_of($source), "-I$tree/src/include", @more);
	my $object = "$work/object.o";

	# the patched headers come before the pristine ones
	@gcc = ($gcc[0], "-I$tree/src/include", @gcc[ 1 .. $#gcc ]);
	my ($status, $code, $err) = compile(@gcc, '-E', '-P', "$tree/$source");
	my $hash = Digest::SHA::sha1_hex("@more", $code);
	if (!exists $done{$hash})
	{
		($status, $code, $err) = compile(@gcc, '-Werror', '-c', '-o', $object, "$tree/$source");
		if ($status != 0)
		{
			diag $err;
			return undef;
		}
		my ($symbols) = run_command([ 'nm', '-g', '--defined-only', $object ]);
		$done{$hash} = [ grep { exists $patch_of{$_} } $symbols =~ / (\w+)$/mg ];
	}
	return @{ $done{$hash} };
}

make_path($work);
foreach my $subset (@subsets)
{
	my $tree = patched_tree($subset);

	foreach my $way (@ways)
	{
		my @more = grep { $_ ne '' } @$way;
		my @symbols = map { exported_by($tree, $_, @more) } @sources;
		my $title = @more ? "$subset, @more" : $subset;

		is(scalar(grep { !defined } @symbols), 0, "$title: compiles without a warning");
		is_deeply(
			[ sort grep { defined } @symbols ],
			[ sort map { @{ $exports{$_} } } split / /, $subset ],
			"$title: exports the symbols of these patches");
	}
}
note scalar keys %done, ' different objects of ', @subsets * @ways * @sources;

remove_tree($work);
done_testing();
