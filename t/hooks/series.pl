# The patches of core-hooks/MAJOR apply to the pristine source without fuzz, can be
# reverted without a trace, have a complete header, and are small.  So do the optional
# ones, after the series or alone.
# core-hooks/apply refuses trees and options that do not fit.

use strict;
use warnings FATAL => 'all';

use Digest::SHA;
use File::Basename;
use File::Copy;
use File::Find;
use File::Path qw(make_path remove_tree);
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

my $top = sweep_root();
my $major = $ENV{SWEEP_MAJOR};
my $hooks = "$top/core-hooks";
my $pristine = "$top/build/$major/src";
my $apply = "$hooks/apply";
my $work = "$PostgreSQL::Test::Utils::tmp_check/patch_series";

plan skip_all => 'there is no pristine source (make server)' unless -f "$pristine/configure";
make_path($work);

my @series = grep { $_ ne '' } map { s/\s*#.*|\s+$//gr } split /\n/, slurp_file("$hooks/$major/series");
my @optional = map { "optional/" . basename($_) } glob("$hooks/$major/optional/*.patch");
my %text = map { $_ => slurp_file("$hooks/$major/$_") } @series, @optional;
my %patch = map { $_ => $text{$_} } @series;
my $newest = 'storage/sweep_hooks.h';
my @new = ("src/include/$newest", 'src/include/storage/lwlock_queue.h',
	'src/include/storage/private_refcount.h', 'src/include/storage/buf_ring.h');
my @new_optional = ('src/include/storage/hit_sample.h');

# ---- the patches of the series ----

is_deeply([ sort @series ], [ sort map { basename($_) } glob("$hooks/$major/*.patch") ],
	'the series names every patch of the folder: ' . join(', ', @series));
my $readme = slurp_file("$hooks/README.md");

# Limits of the lines that a patch adds, with comments and the contract in the header
my %limit = (
	'0001-hooks-api.patch' => 90,
	'0002-sweep-replacement-hooks.patch' => 360,
	'0003-numa-placement-hooks.patch' => 100,
	'0004-lwlock-state-word.patch' => 400,
	'0005-lwlock-wait-hooks.patch' => 680,
	'0006-pins-private-refcount.patch' => 410,
	'0007-ring-flush-hooks.patch' => 140,
	'optional/hit-sampling.patch' => 80);

# The patches that a patch needs
my %needs = (
	'0002-sweep-replacement-hooks.patch' => ['0001-hooks-api.patch'],
	'0003-numa-placement-hooks.patch' => ['0001-hooks-api.patch'],
	'0005-lwlock-wait-hooks.patch' => [ '0001-hooks-api.patch', '0004-lwlock-state-word.patch' ]);

# A name that the header has if the patch is applied
my %declares = (
	'0002-sweep-replacement-hooks.patch' => 'BufferReplacement',
	'0003-numa-placement-hooks.patch' => 'ProcPlacement',
	'0005-lwlock-wait-hooks.patch' => 'LWLockWait');

my ($added, $removed, $coded) = (0, 0, 0);
is_deeply(\@optional, ['optional/hit-sampling.patch'], 'there is one optional patch');
foreach my $name (@series, @optional)
{
	my ($head, $diff) = split /^---\n/m, $text{$name}, 2;

	like($head, qr/^Subject: [A-Z]\S* .{5,60}$/m, "$name: Subject");
	like($head, qr/^Base: PostgreSQL $major\.\d+$/m, "$name: Base");
	like($head, qr/^\Q$_\E: .{20,}/m, "$name: $_")
	  foreach ('What', 'Why', 'Files', 'Cost when unused', 'How to get rid of it');
	like($readme, qr/^#+ .*\Q$name\E/m, "$name has a section in core-hooks/README.md");

	my @plus = grep { /^\+(?!\+\+ )/ } split /\n/, $diff;
	my @minus = grep { /^-(?!-- )/ } split /\n/, $diff;
	is_deeply([ grep { /[ \t]$/ } @plus ], [], "$name: no added line ends in white space");
	is_deeply([ grep { /^\+ {4}/ } @plus ], [], "$name: indented by tabs");
	my @code = grep { !m{^\+\s*(?:/?\*.*)?$} } @plus;
	note "$name: " . @plus . ' lines added, ' . @code . ' of them neither empty nor comment; ' . @minus . ' removed';
	cmp_ok(scalar @plus, '<=', $limit{$name} // 0, "$name: adds " . @plus . ' lines');
	if (exists $patch{$name})
	{
		$added += @plus;
		$removed += @minus;
		$coded += @code;
	}

	# "Files" names each file that is touched
	my ($files) = $head =~ /^Files: (.*?)\n\n/ms;
	foreach my $file ($diff =~ m{^\+\+\+ b/(\S+)}mg)
	{
		my $short = $file =~ s{^src/(backend/)?}{}r;
		like($files =~ s/\s+/ /gr, qr/\Q$short\E/, "$name: Files names $short");
	}
}
my ($told) = $readme =~ /The series adds about (\d+) lines, half of them code/;
cmp_ok(abs($told - $added), '<=', $added / 20,
	"core-hooks/README.md says how many lines the series adds: $told, really $added (it removes $removed)");
cmp_ok(abs($coded / $added - 0.5), '<=', 0.05, "half of them are code: $coded");

# ---- helpers ----

# A patch, and those that need it
sub without_needing
{
	my ($without) = @_;
	return ($without, grep { my $name = $_; grep { $_ eq $without } @{ $needs{$name} // [] } } @series);
}

sub copy_tree
{
	my ($name) = @_;
	my $to = "$work/$name";

	remove_tree($to);
	system_or_bail('cp', '-a', $pristine, $to);
	return $to;
}

# A tree of the files that apply reads and writes, and the folder of the new headers
sub small_tree
{
	my ($name) = @_;
	my $to = "$work/$name";
	my %files = map { $_ => 1 } ('configure', 'meson.build'),
	  map { $_ =~ m{^--- a/(\S+)}mg } values %text;

	remove_tree($to);
	make_path("$to/src/include/storage");
	foreach my $file (grep { -f "$pristine/$_" } keys %files)
	{
		make_path(dirname("$to/$file"));
		copy("$pristine/$file", "$to/$file") or die "$file: $!";
	}
	return $to;
}

# path => digest of every file
sub digests
{
	my ($dir) = @_;
	my %digest;

	find(
		{
			no_chdir => 1,
			wanted => sub {
				my $name = substr($_, length $dir);
				$digest{$name} =
					-l $_ ? 'link ' . readlink($_)
				  : -f $_ ? (-x $_ ? 'x ' : '') . Digest::SHA->new(1)->addfile($_)->hexdigest
				  : 'folder';
			}
		},
		$dir);
	return \%digest;
}

sub changed
{
	my ($before, $after) = @_;
	my %names = (%$before, %$after);
	return sort grep { ($before->{$_} // '') ne ($after->{$_} // '') } keys %names;
}

# exit status, standard output, standard error
sub run_apply
{
	my @args = @_;
	my ($out, $err) = ('', '');
	IPC::Run::run([ $apply, @args ], '<', \undef, '>', \$out, '2>', \$err);
	return ($? >> 8, $out, $err);
}

# ---- the whole series ----

my $tree = copy_tree('tree');
my $before = digests($tree);
cmp_ok(scalar keys %$before, '>', 5000, 'the pristine source has ' . (scalar keys %$before) . ' files');

my ($status, $out, $err) = run_apply($tree, '--check');
is($status, 0, 'apply --check: it would work') or diag $err;
like($out, qr/\Q$_\E/, "which it says of $_") foreach @series;
is_deeply([ changed($before, digests($tree)) ], [], 'and nothing was changed');

# patch(1) itself, one after the other: no fuzz, no offset
my $bare = small_tree('bare');
foreach my $name (@series)
{
	my ($log, $warnings) = run_command([ 'patch', '-d', $bare, '-p1', '-F0', '-f', '-i', "$hooks/$major/$name" ]);
	is($?, 0, "$name applies without fuzz");
	unlike($log, qr/fuzz|offset/, 'and at the lines that it says');
}

($status, $out, $err) = run_apply($tree);
is($status, 0, 'apply: done') or diag $err;
my $patched = digests($tree);
my @touched = changed($before, $patched);
is_deeply(
	\@touched,
	[
		sort { $a cmp $b } map { "/$_" }
		  keys %{ { map { $_ => 1 } map { m{^\+\+\+ b/(\S+)}mg } values %patch } }
	],
	'the changed files are those that the patches name: ' . join(' ', @touched));
is_deeply([ grep { !exists $before->{$_} } @touched ], [ sort map { "/$_" } @new ], 'four new files, no leftovers of patch');
is($patched->{$_}, digests($bare)->{$_}, "as patch(1) does it: $_") foreach @touched;

($status, $out, $err) = run_apply($tree);
is($status, 0, 'apply again: nothing to do');
like($out, qr/already applied/, 'because it is applied');
is_deeply([ changed($patched, digests($tree)) ], [], 'and nothing was changed');

# ---- with the optional patches ----

my @with = map { ('--with', s{^optional/|\.patch$}{}gr) } @optional;
my $part = small_tree('part');
my $clean = digests($part);
($status, $out, $err) = run_apply($part, @with, '--check');
is($status, 0, "@with --check: it would work") or diag $err;
is_deeply([ changed($clean, digests($part)) ], [], 'and nothing was changed');
($status, $out, $err) = run_apply($part, @with);
is($status, 0, "@with: done") or diag $err;
like($out, qr/^  \Q$_\E$/m, "which it says of $_") foreach @series, @optional;

foreach my $name (@optional)
{
	my ($log, $warnings) = run_command([ 'patch', '-d', $bare, '-p1', '-F0', '-f', '-i', "$hooks/$major/$name" ]);
	is($?, 0, "$name applies without fuzz");
	unlike($log, qr/fuzz|offset/, 'and at the lines that it says');
}
my $all = digests($part);
is_deeply([ changed($all, digests($bare)) ], [], "@with: as patch(1) does it");
is_deeply([ grep { !exists $clean->{$_} && $all->{$_} ne 'folder' } changed($clean, $all) ],
	[ sort map { "/$_" } @new, @new_optional ], "@with: no leftovers of patch");
# Hits have no hook unless it is asked for.
unlike(slurp_file("$tree/src/backend/storage/buffer/bufmgr.c"), qr/SampleHit/, 'the series alone does not touch hits');
like(slurp_file("$part/src/backend/storage/buffer/bufmgr.c"), qr/SampleHit/, 'which the optional patch does');
my $with_optional = "$work/with";
remove_tree($with_optional);
system_or_bail('cp', '-a', $part, $with_optional);

($status, $out, $err) = run_apply($part, @with);
is($status, 0, "@with again: nothing to do") or diag $err;
refused('reversed without them', $part, '0007-.* does not fit', '--reverse');
($status, $out, $err) = run_apply($part, @with, '--reverse');
is($status, 0, "@with --reverse: done") or diag $err;
is_deeply([ changed($clean, digests($part)) ], [], 'bit for bit');

run_apply($part);
refused('another patch after the series', $part, '0001-.* does not fit', @with);
foreach my $name (@optional)
{
	my $short = $name =~ s{^optional/|\.patch$}{}gr;
	$part = small_tree('part');
	# twice is once; with its suffix
	my @alone = ('--with', $short, '--with', "$short.patch", map { ('--without', $_) } @series);
	($status, $out, $err) = run_apply($part, @alone);
	is($status, 0, "$short applies alone") or diag $err;
	is_deeply([ grep { $all->{$_} ne 'folder' } changed($clean, digests($part)) ],
		[ sort map { "/$_" } $text{$name} =~ m{^\+\+\+ b/(\S+)}mg ], 'and changes its own files');
	($status, $out, $err) = run_apply($part, @alone, '--reverse');
	is($status, 0, "$short comes out again") or diag $err;
	is_deeply([ changed($clean, digests($part)) ], [], 'bit for bit');
}

# ---- the headers stand alone ----

my ($include, $ignored) = run_command([ "$top/build/$major/release/bin/pg_config", '--includedir-server' ])
  if -x "$top/build/$major/release/bin/pg_config";

# a use of each header
my %uses = (
	'storage/sweep_hooks.h' => "const int *number = &sweep_hooks_api;\n"
	  . "const BufferReplacementRoutine *(*routine) (void) = GetBufferReplacement;\n"
	  . "const ProcPlacementRoutine **placement = &ProcPlacement;\n"
	  . "const LWLockWaitRoutine **waiting = &LWLockWait;\n",
	'storage/lwlock_queue.h' => "pg_atomic_uint64 *(*state) (LWLock *) = LWLockState;\n",
	'storage/private_refcount.h' => "void (*show) (PrivateRefCountInfo *) = ShowPrivateRefCount;\n",
	'storage/buf_ring.h' => "const RingFlushRoutine **flush = &RingFlush;\n",
	'storage/hit_sample.h' => "HitSampler (*sample) (HitSampler) = SampleHits;\n");
SKIP:
{
	skip 'the release server is not built (make server)', 14 unless defined $include;

	command_ok([ 'cmp', "$tree/src/include/$_", "$include/$_" ], "$_ is the one that is installed")
	  foreach map { s{^src/include/}{}r } @new;

	# A server configured without a C++ compiler has headers without format
	# attributes for one.
	foreach my $language ([ 'C', 'gcc', 'c' ], [ 'C++', 'g++', 'cc', '-Wno-register', '-Wno-format' ])
	{
		my ($name, $compiler, $suffix, @flags) = @$language;
		skip "there is no $compiler", 5 if system("command -v $compiler >/dev/null 2>&1") != 0;

		foreach my $header (sort keys %uses)
		{
			# twice, for its guard, and without any other header before it
			my $open = $name eq 'C++' ? "extern \"C\" {\n" : '';
			my $close = $name eq 'C++' ? "}\n" : '';
			my $file = "$work/alone.$suffix";
			unlink $file;
			append_to_file($file,
				"${open}#include \"postgres.h\"\n#include \"$header\"\n#include \"$header\"\n$uses{$header}$close");
			command_ok(
				[
					$compiler, '-fsyntax-only', '-Wall', @werror, @flags, '-D_GNU_SOURCE',
					"-I$with_optional/src/include", "-I$tree/src/include", "-I$include", $file
				],
				"$header compiles alone as $name");
		}
	}
}

# The extension is built with the headers that this tool writes.
command_ok([ "$top/tools/hooks-header", $major, "$work/hooks" ], 'hooks-header writes the headers that the patches add');
is_deeply([ map { "src/include$_" } sort grep { /\.h$/ } keys %{ digests("$work/hooks") } ],
	[ sort @new, @new_optional ], 'these, and nothing else');
command_ok([ 'cmp', "$with_optional/$_", "$work/hooks/" . s{^src/include/}{}r ], "and as the patches do it: $_")
  foreach @new, @new_optional;

# ---- and back ----

($status, $out, $err) = run_apply($tree, '--reverse', '--check');
is($status, 0, 'apply --reverse --check: it would work');
is_deeply([ changed($patched, digests($tree)) ], [], 'and nothing was changed');
($status, $out, $err) = run_apply($tree, '--reverse');
is($status, 0, 'apply --reverse: done') or diag $err;
is_deeply([ changed($before, digests($tree)) ], [], 'the tree is the pristine one again, bit for bit');
($status, $out, $err) = run_apply($tree, '--reverse');
is($status, 0, 'apply --reverse again: nothing to do');
like($out, qr/not in it/, 'because the patches are not in it');

# ---- without one of them ----

foreach my $without (@series)
{
	my $short = $without =~ s/^\d+-|\.patch$//gr;
	$part = small_tree('part');
	$clean = digests($part);
	my (undef, $needing) = without_needing($without);

	($status, $out, $err) = run_apply($part, '--without', $short);
	if (defined $needing)
	{
		is($status, 1, "without $short: refused");
		like($err, qr/\Q$needing\E does not fit/, 'naming the patch that needs it');
		like($err, qr/nothing was changed/, 'and that nothing was changed');
		is_deeply([ changed($clean, digests($part)) ], [], 'which is true');
		next;
	}
	is($status, 0, "without $short: the others apply") or diag $err;
	unlike($out, qr/\Q$without\E/, 'and it is not said to be');
	isnt((join ' ', changed($clean, digests($part))), '', 'they do change something');

	if (defined $include)
	{
		my $file = "$work/part.c";
		unlink $file;
		append_to_file($file, "#include \"postgres.h\"\n#include \"$newest\"\nconst int *number = &sweep_hooks_api;\n");
		my $own = "$work/part-include";
		make_path("$own/storage");
		copy("$part/src/include/$newest", "$own/$newest") or die $!;
		command_ok(
			[ 'gcc', '-fsyntax-only', '-Wall', @werror, '-D_GNU_SOURCE', "-I$own", "-I$include", $file ],
			"without $short: $newest compiles");
		unlike(slurp_file("$own/$newest"), qr/\b$declares{$without}/, "without $short: $newest does not declare its hooks")
		  if exists $declares{$without};
	}
	($status, $out, $err) = run_apply($part, '--without', $short, '--reverse');
	is($status, 0, "without $short: and come out again");
	is_deeply([ changed($clean, digests($part)) ], [], "without $short: bit for bit");
}

# Any number of them can be left out, together with those that need them.
my %number = map { $series[$_] => $_ } 0 .. $#series;
my $alone = '0006-pins-private-refcount.patch';
$part = small_tree('part');
foreach my $set (1 .. 2**@series - 2)
{
	my @without = grep { $set & 1 << $number{$_} } @series;
	my %out = map { $_ => 1 } @without;
	next if grep { $out{$_} } map { @{ $needs{$_} // [] } } grep { !$out{$_} } @series;

	($status, $out, $err) = run_apply($part, '--check', map { ('--without', $_) } @without);
	is($status, 0, "without @without: the others would apply") or diag $err;
}
($status, $out, $err) = run_apply($part, map { ('--without', $_) } grep { $_ ne $alone } @series);
is($status, 0, "$alone applies alone") or diag $err;
like(slurp_file("$part/src/backend/storage/buffer/bufmgr.c"), qr/^ShowPrivateRefCount\(/m, 'which it did');

# ---- the extension, built for servers that lack patches ----

# It refers to hooks weakly: any of them may be missing.
my @hooks = qw(ActivateBufferReplacement GetAccessStrategyRing GetBufferReplacement LWLockWait PinBufferToWrite
  ProcPlacement RingFlush SampleHits SetBufferReplacement ShowPrivateRefCount StrategyEmptyFreelist SyncOneBuffer
  sweep_hooks_api);

# A pg_config of the stock server, but with other headers
sub server_with_headers
{
	my ($name, $tree) = @_;
	my ($stock_include) = run_command([ "$top/build/$major/stock/bin/pg_config", '--includedir-server' ]);
	my $dir = "$work/server-$name";

	remove_tree($dir);
	make_path($dir);
	system_or_bail('cp', '-a', $stock_include, "$dir/server");
	system_or_bail('cp', '-a', "$tree/src/include/storage", "$dir/server") if defined $tree;
	append_to_file("$dir/pg_config",
		    "#!/bin/sh\n[ \"\$*\" = --includedir-server ] && exec echo '$dir/server'\n"
		  . "exec '$top/build/$major/stock/bin/pg_config' \"\$@\"\n");
	chmod 0755, "$dir/pg_config" or die $!;
	return $dir;
}

SKIP:
{
	skip 'the stock server is not built (make server VARIANT=stock)', 1 unless -x "$top/build/$major/stock/bin/pg_config";

	foreach my $without ('all', @series[ 1 .. $#series ])
	{
		my $short = $without =~ s/^\d+-|\.patch$//gr;
		my $part;

		if ($without ne 'all')
		{
			$part = small_tree('part');
			($status, $out, $err) = run_apply($part, map { ('--without', $_) } without_needing($without));
			is($status, 0, "without $short: apply") or diag $err;
		}
		my $dir = server_with_headers($short, $part);
		delete local @ENV{qw(MAKEFLAGS MFLAGS MAKELEVEL MAKEFILES MAKEOVERRIDES)};
		command_ok(
			[
				'make', '-s', '-C', $dir, '-f', "$top/Makefile", '-f', "$top/tools/vpath.mk", "PG_CONFIG=$dir/pg_config",
				'with_llvm=no', "COPT=-O0 @werror", 'pg_sweep.so'
			],
			"without $short: the extension compiles");
		my ($undefined) = run_command([ 'nm', '-D', '--undefined-only', "$dir/pg_sweep.so" ]);
		my %kind = map { /^\s*(\w) (\w+)/ ? ($2 => $1) : () } split /\n/, $undefined;
		is_deeply([ grep { ($kind{$_} // '') ne 'w' } @hooks ], [], "without $short: and could do without each hook");
		remove_tree($dir);
	}
}

# ---- refusals ----

sub refused
{
	my ($title, $dir, $expected, @options) = @_;
	my $clean = -d $dir ? digests($dir) : {};

	($status, $out, $err) = run_apply($dir, @options);
	is($status, 1, "$title: refused");
	like($err, qr/^apply: error: $expected/m, "$title: and it says why");
	unlike($err, qr/\.\.\/|line \d+:|No such file/, "$title: in words of its own");
	is_deeply([ changed($clean, -d $dir ? digests($dir) : {}) ], [], "$title: nothing was changed");
}

# Replace text in a file; dies if it is not there
sub edit
{
	my ($file, $from, $to) = @_;
	my $text = slurp_file($file);

	$text =~ s/\Q$from\E/$to/ or die "no \"$from\" in $file";
	unlink $file or die $!;
	append_to_file($file, $text);
}

refused('no such folder', "$work/nowhere", 'no such folder');

make_path("$work/empty");
refused('not a source tree', "$work/empty", '.* is not a PostgreSQL source tree');

my $foreign = small_tree('foreign');
edit("$foreign/configure", "PACKAGE_VERSION='$major.", "PACKAGE_VERSION='16.");
refused('another major version', $foreign, 'there are no patches for PostgreSQL 16\.');
command_fails_like([ 'env', 'SWEEP_MAJOR=16', "$top/tools/server" ],
	qr/there are no patches for PostgreSQL 16\n.*there are patches for: .*$major/, 'nor is its server built');

my $changed = small_tree('changed');
edit("$changed/src/backend/storage/buffer/freelist.c", 'have_free_buffer(void)', 'have_free_buffer(int x)');
refused('a tree with other changes at the same place',
	$changed, "0002-sweep-replacement-hooks\\.patch does not fit PostgreSQL $major\\.\\d+ in .*/changed\$");
refused('a tree with other changes, --check', $changed, '0002-.* does not fit', '--check');

my $partial = small_tree('partial');
system_or_bail('patch', '-s', '-d', $partial, '-p1', '-i', "$hooks/$major/$series[0]");
refused('a tree patched in part', $partial, '0001-hooks-api\.patch does not fit');

refused('a patch that is not there', $tree, '--without nonsense: no such patch', '--without', 'nonsense');
refused('an optional patch that is not there', $tree, '--with nonsense: no such optional patch', '--with', 'nonsense');
refused('a patch of the series as an optional one', $tree, '--with \S+: no such optional patch', '--with', $series[1]);
($status, $out, $err) = run_apply($tree, '--with', "../$series[1]");
like($err, qr/^apply: error: --with \S+: no such optional patch$/m, 'nor by its path');
refused('an optional patch left out', $tree, '--without hit-sampling: no such patch', '--without', 'hit-sampling');
refused('nothing left', $tree, 'no patch is left to apply', map { ('--without', $_) } @series);

foreach my $wrong ([], [ $tree, '--bogus' ], [ $tree, $tree ], [ $tree, '--without' ], [ $tree, '--with' ])
{
	($status, $out, $err) = run_apply(@$wrong);
	is($status, 2, "wrong usage: apply @{[ map { basename($_) } @$wrong ]}");
	like($err, qr/^usage: /m, 'the usage is printed');
}

remove_tree($work);
done_testing();
