# The patched files pass pgindent, given the list of typedefs in the patched tree, with
# the optional patches, too.

use strict;
use warnings FATAL => 'all';

use File::Basename;
use File::Copy;
use File::Path qw(make_path remove_tree);
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

my $top = sweep_root();
my $major = $ENV{SWEEP_MAJOR};
my $pristine = "$top/build/$major/src";
my $stock = "$top/build/$major/stock";
my $work = "$PostgreSQL::Test::Utils::tmp_check/indent";

plan skip_all => 'the stock server is not built (make server VARIANT=stock)' unless -x "$stock/bin/pg_config";

remove_tree($work);
make_path($work);

# pg_bsd_indent, from the source of the server
my ($include) = run_command([ "$stock/bin/pg_config", '--includedir-server' ]);
my $indent = "$work/pg_bsd_indent";
command_ok([ 'gcc', '-O1', '-o', $indent, "-I$include", glob("$pristine/src/tools/pg_bsd_indent/*.c"), "-L$stock/lib", '-lpgport' ],
	'pg_bsd_indent compiles');

# The touched files, patched, and what pgindent needs
my $series = join '', map { slurp_file($_) } map { glob("$top/core-hooks/$major/$_") } '*.patch', 'optional/*.patch';
my %touched = map { $_ => 1 } $series =~ m{^\+\+\+ b/(\S+)}mg;
my $typedefs = 'src/tools/pgindent/typedefs.list';
my $tree = "$work/tree";
foreach my $file ('configure', grep { -f "$pristine/$_" } keys %touched)
{
	make_path(dirname("$tree/$file"));
	copy("$pristine/$file", "$tree/$file") or die "$file: $!";
}
command_ok([ "$top/core-hooks/apply", $tree, '--with', 'hit-sampling' ], 'the series and the optional patch are applied');

my @order = split /\n/, slurp_file("$tree/$typedefs");
is_deeply(\@order, [ sort @order ], 'the list of typedefs is in order');

# A file with a typedef that the list lacks would be indented in another way.  pgindent
# makes files of its own in the folder where it runs.
chdir $work or die "$work: $!";
foreach my $file (sort grep { /\.[ch]$/ } keys %touched)
{
	my ($diff, $err) = run_command(
		[
			$^X, "$pristine/src/tools/pgindent/pgindent", "--indent=$indent", "--typedefs=$tree/$typedefs", '--diff', "$tree/$file"
		]);
	is($diff . $err, '', "pgindent would not change $file");

	# Includes are in alphabetical order within a block, as far as core's are.
	my @before = -f "$pristine/$file" ? slurp_file("$pristine/$file") =~ /^#include "(.*)"$/mg : ();
	my %core = map { $_ => 1 } @before;
	my @disordered;
	foreach my $block (slurp_file("$tree/$file") =~ /((?:^#include "[^"]*"\n)+)/mg)
	{
		my @includes = $block =~ /"(.*)"/g;
		push @disordered, map { "$includes[$_ - 1] before $includes[$_]" }
		  grep { $includes[ $_ - 1 ] gt $includes[$_] && !($core{ $includes[ $_ - 1 ] } && $core{ $includes[$_] }) }
		  1 .. $#includes;
	}
	is_deeply(\@disordered, [], "includes are in order in $file");
}

chdir $top or die "$top: $!";
remove_tree($work);
done_testing();
