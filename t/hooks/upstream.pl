# The patches of core-hooks/upstream, which are for PostgreSQL itself, apply to the
# unpatched source, and each mends what it says.
#
# A stock server with the patch is the one of this clone but for the files that the
# patch changes: its objects are linked again.

use strict;
use warnings FATAL => 'all';

use File::Basename;
use File::Copy;
use File::Path qw(make_path remove_tree);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

my $top = sweep_root();
my $folder = "$top/core-hooks/upstream";
my $base = "$top/build/$ENV{SWEEP_MAJOR}";
my $stock = "$base/stock";
my $work = "$PostgreSQL::Test::Utils::tmp_check/upstream";

plan skip_all => 'there is no pristine source (make server)' unless -f "$base/src/configure";

# ---- the patches ----

my @patches = map { basename($_) } sort glob("$folder/*.patch");
my $readme = slurp_file("$folder/README.md");
my $lost_pin = 'v1-0001-Don-t-lose-a-buffer-pin-when-out-of-memory.patch';
is_deeply(\@patches, [$lost_pin], 'each patch has its test below');

# The files that a patch changes
sub files_of
{
	return slurp_file("$folder/$_[0]") =~ m{^\+\+\+ b/(\S+)}mg;
}

sub apply_to
{
	my ($name, $tree) = @_;
	my ($log) = run_command([ 'patch', '-d', $tree, '-p1', '-F0', '-f', '-i', "$folder/$name" ]);

	is($?, 0, "$name applies without fuzz") or diag $log;
	unlike($log, qr/fuzz|offset/, 'and at the lines that it says');
	return;
}

foreach my $name (@patches)
{
	my $message = (split /^---\n/m, slurp_file("$folder/$name"), 2)[0];
	my $tree = "$work/tree";

	like($readme, qr/\Q$name\E/, "$name is in the README");
	like($message, qr/^Subject: \[PATCH v\d+\] [A-Z].{10,70}\n\n/m, "$name has a subject");
	is_deeply([ grep { length > 76 } split /\n/, $message ], [], "$name: no line of its message is too long");
	remove_tree($tree);
	foreach my $file (files_of($name))
	{
		make_path(dirname("$tree/$file"));
		copy("$base/src/$file", "$tree/$file") or die "$file: $!";
	}
	apply_to($name, $tree);
}

# ---- servers with and without ----

if (!-x "$stock/bin/postgres" || !-f "$base/obj/stock/build.ninja")
{
	note('the stock server is not built here (make server VARIANT=stock)');
	remove_tree($work);
	done_testing();
	exit;
}

# An installation of the stock server with a patch.  All but the changed files are
# hard links, which ninja takes as up to date.
sub patched_server
{
	my ($name) = @_;
	my $prefix = "$work/patched";
	my $obj = "$work/base/obj/stock";
	my @files = files_of($name);

	make_path("$work/base/obj", $prefix);
	system_or_bail('cp', '-al', "$base/src", "$work/base/src");
	system_or_bail('cp', '-al', "$base/obj/stock", $obj);
	# what is written in place must not be shared
	foreach my $file ((map { "src/$_" } @files), map { "obj/stock/$_" } '.ninja_log', '.ninja_deps')
	{
		unlink "$work/base/$file";
		copy("$base/$file", "$work/base/$file") or die "$file: $!";
	}
	foreach my $file (@files)
	{
		my $object = $file =~ s{^src/backend/}{}r =~ tr{/}{_}r;
		unlink "$obj/src/backend/postgres_lib.a.p/$object.o" or die "$object.o: $!";
	}
	unlink "$obj/src/backend/postgres" or die $!;
	apply_to($name, "$work/base/src");

	my ($out, $err) = run_command([ 'ninja', '-C', $obj, 'src/backend/postgres' ]);
	is($?, 0, "$name: the server is built") or diag $out;
	unlike($out, qr/warning:/, "$name: without a warning");
	is(() = $out =~ m{^\[\d+/\d+\] Compiling}mg, @files, "$name: only the changed files were compiled") or diag $out;

	system_or_bail('cp', '-a', "$stock/bin", "$prefix/bin");
	foreach my $dir ('lib', 'share')
	{
		symlink("$stock/$dir", "$prefix/$dir") or die "$prefix/$dir: $!";
	}
	unlink "$prefix/bin/postgres";
	copy("$obj/src/backend/postgres", "$prefix/bin/postgres") or die $!;
	chmod 0755, "$prefix/bin/postgres" or die $!;
	return $prefix;
}

# The stock server has none of the test modules that look into it.
sub build_module
{
	my ($name) = @_;
	my $dir = "$work/$name";

	make_path($dir);
	delete local @ENV{qw(MAKEFLAGS MFLAGS MAKELEVEL MAKEFILES MAKEOVERRIDES)};
	command_ok(
		[
			'make', '-s', '-C', $dir, '-f', "$top/test/pins/$name/Makefile", '-f', "$top/tools/vpath.mk",
			"PG_CONFIG=$stock/bin/pg_config", 'with_llvm=no', "COPT=@werror", 'all'
		],
		"$name is built for the stock server");
	return "$dir/$name.so";
}

# Pin pages in a subtransaction until there is no memory for another pin, and go on
# in the outer transaction.  Returns psql's status, its output, its error.
sub pins_without_memory
{
	my ($title, $prefix, $module) = @_;
	my $node = PostgreSQL::Test::Cluster->new($title, install_path => $prefix);

	$node->init;
	$node->append_conf('postgresql.conf',
		"shared_buffers = 128MB\nautovacuum = off\nmax_connections = 8\nmax_wal_senders = 0\nrestart_after_crash = off\n");
	$node->start;
	$node->safe_psql('postgres', qq{
CREATE FUNCTION extend(regclass, int4) RETURNS int4 AS '$module', 'test_pins_extend' LANGUAGE C;
CREATE FUNCTION out_of_memory(regclass, OUT held int4, OUT sqlstate text, OUT message text)
  AS '$module', 'test_pins_out_of_memory' LANGUAGE C;
CREATE UNLOGGED TABLE pages ();
SELECT extend('pages', 12000)});
	my @result = $node->psql('postgres', q{SELECT * FROM out_of_memory('pages')});
	# a lost pin may crash a server without assertions
	$node->stop($result[0] == 0 ? 'fast' : 'immediate', fail_ok => 1);
	return @result;
}

my $module = build_module('test_pins');
my ($status, $out, $err) = pins_without_memory('unpatched', $stock, $module);
isnt($status, 0, 'unpatched: a pin is lost when there is no memory for the next');
like($err, qr/pin \d+ of \d+ is wrong|server closed the connection unexpectedly/, 'unpatched: which is why it fails');
note("unpatched: $err");

($status, $out, $err) = pins_without_memory('patched', patched_server($lost_pin), $module);
is($status, 0, "$lost_pin: no pin is lost") or diag $err;
like($out, qr/^\d{3,}\|53200\|out of memory$/, "$lost_pin: there was no memory for another") or diag $out;

remove_tree($work);
done_testing();
