# The library, built for a server without libnuma: nothing is placed, and all views
# answer.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

my $node = sweep_node('no_libnuma');
my $include = $node->config_data('--includedir-server');
my $dir = "$PostgreSQL::Test::Utils::tmp_check/no_libnuma";

# A pg_config of this server, but its headers know no libnuma
mkdir $dir or die $!;
system_or_bail('cp', '-a', $include, "$dir/server");
my $headers = slurp_file("$include/pg_config.h");
plan skip_all => 'this server was built without libnuma: all other tests are like this' if $headers !~ s/^#define USE_LIBNUMA.*$//m;
unlink "$dir/server/pg_config.h";
append_to_file("$dir/server/pg_config.h", $headers);
my $pg_config = $node->config_data('--bindir') . '/pg_config';
append_to_file("$dir/pg_config",
	"#!/bin/sh\n[ \"\$*\" = --pkgincludedir ] && exec echo '$dir'\nexec '$pg_config' \"\$@\"\n");
chmod 0755, "$dir/pg_config" or die $!;
plan skip_all => 'there is no make or no gcc' if system('command -v make gcc >/dev/null 2>&1') != 0;
{
	my $top = sweep_root();
	delete local @ENV{qw(MAKEFLAGS MFLAGS MAKELEVEL MAKEFILES MAKEOVERRIDES)};
	command_ok(
		[
			'make', '-s', '-j2', '-C', $dir, '-f', "$top/Makefile", '-f', "$top/tools/vpath.mk", "PG_CONFIG=$dir/pg_config",
			'with_llvm=no', "COPT=-O0 @werror", 'pg_sweep.so'
		],
		'the library compiles without libnuma');
}
my ($undefined) = run_command([ 'nm', '-D', '--undefined-only', "$dir/pg_sweep.so" ]);
unlike($undefined, qr/ (?:numa_|mbind|get_mempolicy|set_mempolicy)/, 'and uses nothing of it');

# CREATE EXTENSION would take the library that is installed.
my $sql = slurp_file($node->config_data('--sharedir') . '/extension/pg_sweep--1.0.sql') =~ s/MODULE_PATHNAME/$dir\/pg_sweep/gr =~ s/^\\echo.*$//mr;
$node->append_conf('postgresql.conf', qq{
shared_preload_libraries = '$dir/pg_sweep'
shared_buffers = 16MB
pg_sweep.strategy = partitioned
pg_sweep.numa_placement = partition
});
$node->start;
$node->safe_psql('postgres', $sql);

my $missing = 'the server was built without libnuma';
like(slurp_file($node->logfile), qr/WARNING:  pg_sweep\.numa_placement = partition has no effect: $missing/, 'the log says so');
is( $node->safe_psql('postgres', 'SELECT state, nodes, nodes_note, numa_placement, numa_placement_note FROM pg_sweep_status'),
	"ok|1|$missing|off|$missing", 'pg_sweep_status says so');
is( $node->safe_psql('postgres', q{
SELECT count(*) > 4, count(DISTINCT what) > 5, count(pages), count(bytes), count(node), max(asked), array_agg(DISTINCT note)
  FROM pg_sweep_numa_residence}),
	't|t|0|0|0|0|{"The kernel does not tell: Function not implemented. Kernel and server must have been built with NUMA support."}',
	'pg_sweep_numa_residence answers that it does not know, and why');
foreach my $view (split /\n/, $node->safe_psql('postgres', q{SELECT relname FROM pg_class WHERE relname LIKE 'pg\_sweep\_%' AND relkind = 'v'}))
{
	my ($ret, $stdout, $stderr) = $node->psql('postgres', "SELECT count(*) FROM $view");
	is($ret, 0, "$view answers") or diag $stderr;
}
$node->stop;
done_testing();
