# What the server makes of a machine's caches and of its nodes' memory: homes of
# processes by the CPU that they run on, CPUs that came online later included, sizes of
# partitions by the cores at home, and partitions that fit into small nodes.  Files and
# answers of the kernel are emulated (test/numa/sysfs, test/numa/shim).

use strict;
use warnings FATAL => 'all';

use File::Path qw(make_path);
use MachineTest;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

my $source = sweep_root() . '/test/numa/shim/numa_shim.c';
my $preload = "$PostgreSQL::Test::Utils::tmp_check/numa_shim.so";
plan skip_all => 'the shim does not compile here (gcc, libnuma-dev)'
  if system("gcc -shared -fPIC -o '$preload' '$source' -ldl -lnuma >/dev/null 2>&1") != 0;

my $folder = PostgreSQL::Test::Utils::tempdir();
my $runs_on = "$folder/runs_on";
my $node = sweep_node('homes', conf => q{
shared_buffers = 32MB
io_method = sync
pg_sweep.strategy = partitioned
pg_sweep.numa_placement = off
pg_sweep.numa_affinity = off
pg_sweep.numa_local_memory = off
pg_sweep.numa_debug_nodes = 0
});

sub query { return $node->safe_psql('postgres', $_[0]); }

sub start_with
{
	my (%shim) = @_;
	local %ENV = (%ENV, %shim, LD_PRELOAD => $preload);

	$node->start;
	return;
}

sub start_machine
{
	my ($name, %shim) = @_;
	my $machine = read_machine($name);
	my ($nodes, $usable) = make_machine($machine, "$folder/$name");
	my @cpus;

	die 'the shim knows the first CPUs only' if grep { !$_ } @$usable;
	push @{ $cpus[ $nodes->[$_] ] }, $_ foreach 0 .. $#$nodes;
	start_with(
		SHIM_NODES => scalar(@cpus),
		SHIM_CPUS => scalar(@$usable),
		SHIM_LISTS => join(';', map { list(@$_) =~ s/\n//r } @cpus),
		SHIM_SYSFS => "$folder/$name",
		SHIM_RUNS_ON => $runs_on,
		%shim);
	return;
}

sub sizes { return query('SELECT num_buffers FROM pg_sweep_partitions ORDER BY partition'); }

# Sizes follow these parts of a number of buffers: to a page of descriptors, or to one
# buffer if some partition has less than four such pages
sub check_sizes
{
	my ($of_what, $buffers, @parts) = @_;
	my @sizes = split /\n/, sizes();
	my $unit = (grep { $buffers * $_ < 256 } @parts) ? 1 : 64;
	my @off = grep { abs($sizes[$_] - $buffers * $parts[$_]) > $unit } 0 .. $#parts;

	is(scalar @sizes, scalar @parts, scalar(@parts) . ' partitions');
	is("@off", '', "sizes follow $of_what: @sizes");
	return;
}

# A new process that allocates on this CPU: its node and its home
sub home_on
{
	my ($cpu, $of_node) = @_;

	write_file($folder, 'runs_on', "$cpu $of_node\n");
	return query(q{
INSERT INTO pages SELECT repeat('x', 1000) FROM generate_series(1, 30);
SELECT node, home FROM pg_sweep_backends WHERE pid = pg_backend_pid()});
}

# ---- homes ----

write_file($folder, 'runs_on', "0 0\n");
start_machine('xeon-snc3');
query('CREATE EXTENSION pg_sweep; CREATE TABLE pages (pad text)');
is(query('SELECT nodes, partitions FROM pg_sweep_status'), '6|18', 'six nodes of 32 cores: three partitions each');
check_sizes('cores at home', 4096 / 6, (11 / 32, 11 / 32, 10 / 32) x 6);
is(query('SELECT sum(cpus), max(cpus) FROM pg_sweep_nodes'), '384|64', 'all CPUs are known');

# cores 0-10, 11-21 and 22-31 of each node, and their second threads
my %homes = (0 => '0|0', 10 => '0|0', 11 => '0|1', 21 => '0|1', 22 => '0|2', 31 => '0|2', 32 => '1|3', 95 => '2|8', 191 => '5|17');
foreach my $cpu (sort { $a <=> $b } keys %homes)
{
	my $kernel_node = int($cpu / 32);

	is(home_on($cpu, $kernel_node), $homes{$cpu}, "home of CPU $cpu");
	is(home_on($cpu + 192, $kernel_node), $homes{$cpu}, "and of the second thread of its core");
}

# CPUs that nobody knew at start
foreach my $new ([ 384, 0 ], [ 400, 4 ], [ 8191, 5 ])
{
	my ($cpu, $of_node) = @$new;
	my %found = map { $_ => 1 } map { home_on($cpu, $of_node) } 1 .. 2;
	my $wrong = join ', ', grep { !/^$of_node\|(\d+)$/ || int($1 / 3) != $of_node } keys %found;

	is($wrong, '', "CPU $cpu, new on node $of_node: a home there");
}
like(home_on(500, 77), qr/^0\|[012]$/, 'a new CPU on a new node: a home that there is');
like(home_on(9000, 3), qr/^0\|0$/, 'a CPU that cannot be: a home that there is');
$node->stop;

# a configured number wins, and whole caches stay together
$node->append_conf('postgresql.conf', 'pg_sweep.partitions = 2');
start_machine('epyc-rome');
is(query('SELECT nodes, partitions FROM pg_sweep_status'), '1|2', 'a configured number wins');
is(home_on($_->[0], 0), "0|$_->[1]", "home of CPU $_->[0]") foreach [ 3, 0 ], [ 31, 0 ], [ 32, 1 ], [ 64, 0 ], [ 127, 1 ];
check_sizes('cores at home', 4096, 1 / 2, 1 / 2);
$node->stop;

# some caches of four cores have two partitions, others one
$node->adjust_conf('postgresql.conf', 'pg_sweep.partitions', 24);
start_machine('epyc-rome');
my %cores;
$cores{ home_on($_, 0) =~ s/.*\|//r }++ foreach 0 .. 63;
check_sizes('cores at home', 4096, map { $cores{$_} / 64 } 0 .. 23);
is(join(' ', sort { $a <=> $b } values %cores), '2 ' x 16 . '4 4 4 4 4 4 4 4', 'of 2 or 4 cores');
$node->stop;
$node->adjust_conf('postgresql.conf', 'pg_sweep.partitions', 0);
start_machine('epyc-rome');
is(query('SELECT partitions FROM pg_sweep_status'), 8, 'by itself: partitions of two caches');
$node->stop;

# more partitions than cores, and nodes that are emulated, where a process has a home by
# its number
$node->adjust_conf('postgresql.conf', 'pg_sweep.partitions', 20);
start_machine('hybrid-without-l3');
check_sizes('cores, and parts of cores, at home', 4096, map { (1 / 8 / $_) x $_ } (2, 3) x 4);
$node->stop;
$node->adjust_conf('postgresql.conf', 'pg_sweep.partitions', 24);
$node->adjust_conf('postgresql.conf', 'pg_sweep.numa_debug_nodes', 2);
start_with(SHIM_SYSFS => "$folder/epyc-rome", SHIM_CPUS => 64);
check_sizes('nothing', 4096, (1 / 24) x 24);
$node->stop;
$node->adjust_conf('postgresql.conf', 'pg_sweep.numa_debug_nodes', 0);
$node->adjust_conf('postgresql.conf', 'pg_sweep.partitions', 0);

# ---- shares ----

# Two nodes of 10 cores
sub start_nodes { return start_machine('xeon-old-kernel', @_); }

sub placement_note { return query('SELECT numa_placement_note FROM pg_sweep_status'); }

write_file($folder, 'runs_on', "0 0\n");
$node->adjust_conf('postgresql.conf', 'shared_buffers', '16MB');
start_nodes(SHIM_MEMORY => '1024;8');
check_sizes('nothing, if none is put on a node', 2048, (1 / 4) x 4);
$node->stop;

my $calls = "$folder/mbind.log";
$node->adjust_conf('postgresql.conf', 'pg_sweep.numa_placement', 'partition');
start_nodes(SHIM_MEMORY => '1024;16');
is(query('SELECT string_agg(buffers::text, \' \' ORDER BY node) FROM pg_sweep_nodes') =~ /^(\d+) (\d+)$/ && abs($1 - $2) <= 128,
	1, 'a node that has room for its share gets the same');
unlike(placement_note(), qr/lack of room/, 'and no note says otherwise');
$node->stop;

start_nodes(SHIM_MEMORY => '1024;8', SHIM_DENY => 'set_mempolicy');
check_sizes('nothing, if the kernel refuses to place any', 2048, (1 / 4) x 4);
$node->stop;

start_nodes(SHIM_MEMORY => '1024;8', SHIM_LOG => $calls);
my @sizes = split /\n/, sizes();
is(scalar @sizes, 4, 'two partitions on each node');
cmp_ok(abs($sizes[$_] - 256), '<=', 64, "a quarter of 8 MB is the share of partition $_, to a page: $sizes[$_]") foreach 2, 3;
cmp_ok(abs($sizes[$_] - 768), '<=', 64, "partition $_ has the rest: $sizes[$_]") foreach 0, 1;
is($sizes[0] + $sizes[1] + $sizes[2] + $sizes[3], 2048, 'which is all');
is(query(q{SELECT string_agg((abs(fair_share_percent - 100.0 * buffers / 2048) < 0.01)::text, ' ') FROM pg_sweep_nodes}),
	'true true', 'the fair share follows');
my $bytes = 0;
foreach (grep { $_->[3] eq '2' && $_->[4] == 0 } map { [ split ' ' ] } split /\n/, slurp_file($calls))
{
	$bytes += $_->[1];
}
is($bytes, ($sizes[2] + $sizes[3]) * 8192, 'and so does the memory that is asked for there');
$node->stop;

$node->adjust_conf('postgresql.conf', 'pg_sweep.partitions', 8);
start_nodes(SHIM_MEMORY => '1024;8');
check_sizes('room, and cores at home within a node', 2048, (map { 0.75 * $_ } 0.3, 0.2, 0.3, 0.2), (map { 0.25 * $_ } 0.3, 0.2, 0.3, 0.2));
$node->stop;
$node->adjust_conf('postgresql.conf', 'pg_sweep.partitions', 0);

start_nodes(SHIM_MEMORY => '16;8');
@sizes = split /\n/, sizes();
cmp_ok(abs($sizes[0] + $sizes[1] - 2 * ($sizes[2] + $sizes[3])), '<=', 256, "too little everywhere: shares by memory (@sizes)");
$node->stop;

# Huge pages: what is left of those reserved on a node, all of it, and not its memory
make_path("$folder/nodes/node$_/hugepages/hugepages-2048kB") foreach 0, 1;
write_file("$folder/nodes/node0/hugepages/hugepages-2048kB", 'free_hugepages', "100\n");
$node->append_conf('postgresql.conf', "huge_pages = on\nhuge_page_size = 2MB\n");
foreach ([ 3, 6, 384 ], [ 0, 0, 16 ])
{
	my ($pages, $mb, $each) = @$_;
	my $from = -s $node->logfile;

	write_file("$folder/nodes/node1/hugepages/hugepages-2048kB", 'free_hugepages', "$pages\n");
	start_nodes(SHIM_MEMORY => '1024;8', SHIM_HUGE => 1, SHIM_NODE_FILES => "$folder/nodes");
	check_sizes("$pages huge pages that are left", 2048, map { $_ / 2048 } (1024 - $each) x 2, ($each) x 2);
	is(placement_note(), "node 1 has $mb instead of 8 MB of buffers for lack of room", 'a note says so');
	like(slurp_file($node->logfile, $from), qr/LOG:  NUMA node 1 has $mb MB of shared buffers instead of its equal part of 8 MB/, 'and the log');
	$node->stop;
}

done_testing();
