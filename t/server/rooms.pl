# Each file of the extension includes only what the table of rooms in
# extension/README.md allows, and no rooms include each other in a circle.
# tools/rooms checks it; here, that it passes, and that it fails on a copy of the
# extension with an include too many.

use strict;
use warnings FATAL => 'all';

use Cwd qw(abs_path);
use File::Basename;
use File::Copy;
use PostgreSQL::Test::Utils;
use Test::More;

my $top = abs_path(dirname(__FILE__) . '/../..');
my $copy = "$PostgreSQL::Test::Utils::tmp_check/rooms";

mkdir $copy or die "cannot make $copy: $!";
foreach my $path (glob("$top/extension/*.[ch] $top/extension/*/*.[ch] $top/extension/README.md"))
{
	my $name = substr($path, length("$top/extension/"));

	mkdir "$copy/" . dirname($name);
	copy($path, "$copy/$name") or die "cannot copy $name: $!";
}

command_like([ "$top/tools/rooms" ], qr/no circle/, 'the extension keeps to the table');
command_like([ "$top/tools/rooms", $copy ], qr/no circle/, 'and so does its copy');

append_to_file("$copy/pins/pins.c", qq{#include "ring/ring.h"\n});
command_fails_like([ "$top/tools/rooms", $copy ],
	qr{pins/pins\.c includes ring/ring\.h, which the table does not allow},
	'an include that the table does not have is found');

append_to_file("$copy/sweep/laps.c", qq{#include "numa/numa.h"\n});
command_fails_like([ "$top/tools/rooms", $copy ],
	qr{sweep/laps\.c includes numa/numa\.h, which}, 'and so is a private header of another room');

# A circle is one even if the table allows each of its edges.
my $readme = slurp_file("$copy/README.md");
$readme =~ s/^(\| (?:`sweep`|each other) \|.*?) \|$/$1 `sweep` `ring` `numa` |/mg
  or die 'there is no table';
unlink "$copy/README.md";
append_to_file("$copy/README.md", $readme);
command_like([ "$top/tools/rooms", $copy ], qr/no circle/, 'the table is what allows includes');
append_to_file("$copy/numa/memory.c", qq{#include "sweep/batch.h"\n});
command_fails_like([ "$top/tools/rooms", $copy ],
	qr/there is a circle among the rooms numa, sweep\n/, 'a circle of two rooms is found');

append_to_file("$copy/shared.h", qq{#include "lwlock/lwlock.h"\n});
command_fails_like([ "$top/tools/rooms", $copy ],
	qr/there is a circle among the rooms .*lwlock.*shared/, 'a circle by way of shared is found');

done_testing();
