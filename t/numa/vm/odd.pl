# Irregular machines (tools/vm): of three unequal nodes with distances that are not
# symmetric; with a node without memory, one without CPUs, and far memory.  A server
# that has a part of one: by pg_sweep.numa_nodes, numactl --membind, a cpuset, a memory
# cgroup; or a full node.  In each the server starts, memory is on the nodes that it
# should be on, partitions keep pace, and all views answer.
use strict;
use warnings FATAL => 'all';

use NumaTest;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

my $machine = vm_nodes();
plan skip_all => 'this is a regular machine' unless $machine == 3 || $machine == 5;

my $pool_mb = 64;
my $server = numa_server('odd',
	conf => "shared_buffers = ${pool_mb}MB\npg_sweep.strategy = partitioned\npg_sweep.numa_placement = partition\npg_sweep.numa_nodes = ''\nmin_wal_size = 32MB\nmax_wal_size = 64MB\n");
my $log;
my $prepared;

sub query { return $server->safe_psql('postgres', $_[0]); }

# Start with these settings by a command, if one is given
sub start_with
{
	my ($settings, @command) = @_;
	my $offset = -e $server->logfile ? -s $server->logfile : 0;

	$server->adjust_conf('postgresql.conf', $_, $settings->{$_}) foreach sort keys %$settings;
	if (@command)
	{
		system_or_bail(@command, 'pg_ctl', '--wait', '--pgdata', $server->data_dir, '--log', $server->logfile,
			'--options', '--cluster-name=' . $server->name, 'start');
		$server->_update_pid(1);
	}
	else
	{
		$server->start;
	}
	$log = slurp_file($server->logfile, $offset);
	note($1) while $log =~ /(pg_sweep placed .*|NUMA node \d+ has .*)/g;
	return;
}

# Allocate every buffer of the pool three times over; the table is half as large again
sub fill
{
	query(qq{
CREATE EXTENSION pg_sweep; CREATE EXTENSION pg_prewarm;
CREATE TABLE filler (pad text); ALTER TABLE filler ALTER pad SET STORAGE PLAIN;
INSERT INTO filler SELECT repeat('x', 5000) FROM generate_series(1, $pool_mb * 192); CHECKPOINT}) unless $prepared++;
	query(q{SELECT pg_prewarm('filler')}) foreach 1 .. 2;
	return;
}

# Page cache is on any node by chance
sub placement_note
{
	return join '; ', grep { !/the rest was page cache/ } split /; /, query('SELECT numa_placement_note FROM pg_sweep_status');
}

# The nodes that are used, and all that follows from it
sub check
{
	my ($title, $nodes, $nodes_note, $placement_note) = @_;

	is(query(q{SELECT string_agg(node::text, ' ' ORDER BY node) FROM pg_sweep_nodes}), $nodes, "$title: nodes in use");
	is(query('SELECT nodes_note FROM pg_sweep_status'), $nodes_note, "$title: nodes_note");
	is(query('SELECT numa_placement FROM pg_sweep_status'), 'partition', "$title: placement is in force");
	is(placement_note(), $placement_note // '', "$title: numa_placement_note");
	is(query('SELECT sum(buffers) FROM pg_sweep_nodes'), $pool_mb * 128, "$title: all buffers belong to a node");
	is(query('SELECT count(*) FROM pg_sweep_nodes WHERE partitions = 0'), 0, "$title: each has partitions");

	my $passes = q{
SELECT max(laps) - min(laps) FROM (SELECT passes + (hand - first_buffer)::float8 / num_buffers AS laps FROM pg_sweep_partitions) s};
	my $spread = query($passes);
	fill();
	$spread = query($passes);
	# an eighth, one lease, and what was spent on laps before
	cmp_ok($spread, '<=', 0.25, "$title: one session fills the pool: partitions are at most a quarter of a lap apart");
	check_all_parts($server, $title, split / /, $nodes) unless defined $placement_note;
	foreach my $view (split /\n/, query(q{SELECT relname FROM pg_class WHERE relname LIKE 'pg\_sweep\_%' AND relkind = 'v'}))
	{
		my ($ret, $stdout, $stderr) = $server->psql('postgres', "SELECT count(*) FROM $view");
		is($ret, 0, "$title: $view answers") or diag $stderr;
	}
	return;
}

sub mb_of
{
	my ($node, $what) = @_;
	return int((node_file($node, 'meminfo') =~ /\Q$what\E:\s+(\d+) kB/)[0] / 1024);
}

# ---- three unequal nodes ----

if ($machine == 3)
{
	is(node_file(0, 'distance') . ', ' . node_file(1, 'distance') . ', ' . node_file(2, 'distance'),
		'10 15 21, 25 10 30, 21 17 10', 'the distances are not symmetric');
	start_with({});
	fill();
	$server->stop;
	start_with({});
	check('three nodes', '0 1 2', '');
	is(query(q{
SELECT count(*) FROM pg_sweep_flows f
  JOIN (VALUES (0, 1, 15), (0, 2, 21), (1, 0, 25), (1, 2, 30), (2, 0, 21), (2, 1, 17)) d(a, b, distance) ON (a, b) = (from_node, to_node)
 WHERE f.distance <> d.distance}), 0, 'three nodes: pg_sweep_flows has the distances of each direction');
	$server->stop;

	start_with({ 'pg_sweep.numa_placement' => 'interleave' });
	fill();
	check_all_parts($server, 'three nodes, interleaved', 0, 1, 2);
	$server->stop;
	done_testing();
	exit;
}

# ---- a node without memory, one without CPUs, far memory ----

is(mb_of(2, 'MemTotal'), 0, 'node 2 has no memory');
is(join('|', map { node_file($_, 'cpulist') } 0 .. 4), '0|1|2||', 'nodes 3 and 4 have no CPUs');
my $far = 'far memory without CPUs is not used unless pg_sweep.numa_nodes names it: 4';
start_with({});
fill();
$server->stop;
start_with({});
check('default', '0 1 3', $far);
is(query(q{SELECT string_agg(cpus::text, ' ' ORDER BY node) FROM pg_sweep_nodes}), '2 1 0',
	'default: the CPU of the node without memory belongs to the nearest node');
is(query(q{SELECT string_agg(DISTINCT wanted_node::text, ' ') FROM pg_sweep_numa_residence WHERE what = 'procs'}),
	'0 1', 'default: no PGPROC waits on the node without CPUs');
$server->stop;

start_with({ 'pg_sweep.numa_nodes' => q{'0,4,7'} });
like($log, qr/WARNING:  pg_sweep.numa_nodes names NUMA nodes that the server cannot use: 7$/m, 'named: a node that does not exist: a warning');
check('named', '0 4', 'pg_sweep.numa_nodes leaves out 1,3');
$server->stop;
$server->adjust_conf('postgresql.conf', 'pg_sweep.numa_nodes', q{''});

# ---- a part of the machine ----

start_with({}, 'numactl', '--membind=1,3');
# With huge pages, what core writes at its start is not interleaved then.
check('membind', '1 3', q{the memory policy that the server was started with ("bind") allows 2 of the machine's 4 NUMA nodes},
	vm_huge() ? '' : undef);
like(slurp_file('/proc/' . query(q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'}) . '/numa_maps'),
	qr/^\S+ bind:1,3 heap/m, 'membind: processes are still bound');
$server->stop;

my $groups = '/sys/fs/cgroup/tests';

# Start a server in a cgroup with these limits
sub start_in_group
{
	my ($name, $settings, %limits) = @_;

	mkdir "$groups/$name" or die "cannot make the cgroup $name: $!";
	foreach my $file (sort keys %limits)
	{
		open my $out, '>', "$groups/$name/$file" or die "$file: $!";
		print $out "$limits{$file}\n";
		close $out or die "$file: $!";
	}
	start_with($settings, 'sh', '-c', "echo \$\$ >$groups/$name/cgroup.procs && exec \"\$@\"", 'sh');
	return;
}

start_in_group('set', {}, 'cpuset.cpus' => '0-1', 'cpuset.mems' => '0,3');
check('cpuset', '0 3', q{the server may use memory of 2 of the machine's 4 NUMA nodes});
is(query(q{SELECT string_agg(cpus::text, ' ' ORDER BY node) FROM pg_sweep_nodes}), '2 0', 'cpuset: its two CPUs belong to node 0');
$server->stop;

start_in_group('memory', {}, 'memory.max' => '300M');
check('memory cgroup', '0 1 3', $far);
cmp_ok(slurp_file("$groups/memory/memory.current") / 1048576, '>', $pool_mb, 'memory cgroup: the pool is in it');
$server->stop;

# ---- a full node ----

my $hog = '/dev/shm/hog';
my $mb = mb_of(1, 'MemFree') - 24;
system_or_bail('numactl', '--membind=1', 'dd', 'if=/dev/zero', "of=$hog", 'bs=1M', "count=$mb", 'status=none');
my $left = mb_of(1, 'MemFree') + mb_of(1, 'Active(file)') + mb_of(1, 'Inactive(file)');
note("$left MB are left on node 1");
$pool_mb = 512;
start_with({ shared_buffers => "${pool_mb}MB" });
my ($room, $wanted) = ($log =~ /WARNING:  NUMA node 1 has memory left for (\d+) MB of its (\d+) MB of shared buffers$/m);
ok(defined $room, 'full node: a warning');
cmp_ok(abs(($room // 0) - $left), '<=', 32, 'full node: it has the right figure');
is(scalar(() = $log =~ /has memory left for/g), 1, 'full node: of no other node');
like(placement_note(), qr/^node 1 had memory for $room of $wanted MB of buffers$/, 'full node: a note');
query(q{INSERT INTO filler SELECT repeat('x', 5000) FROM generate_series(1, 10000)});
query(q{SELECT pg_prewarm('filler')}) foreach 1 .. 2;
my ($elsewhere, $at_home) = split /\|/, query(q{
SELECT coalesce(sum(bytes) FILTER (WHERE node <> 1), 0) / 1048576, coalesce(sum(bytes) FILTER (WHERE node = 1), 0) / 1048576
  FROM pg_sweep_numa_residence WHERE what = 'blocks' AND wanted_node = 1});
note("of node 1's buffers, $at_home MB are on it, $elsewhere MB elsewhere");
cmp_ok($elsewhere, '>', 0, 'full node: pg_sweep_numa_residence shows what is elsewhere');
is(query(q{SELECT count(*) FROM pg_sweep_numa_residence WHERE what = 'blocks' AND wanted_node <> 1 AND node <> wanted_node}),
	0, 'full node: the other nodes have their own');
$server->stop;
unlink $hog;

is_deeply([ unexpected_log_lines($server, 0, qr/NUMA node 1 has memory left|names NUMA nodes/) ], [], 'no errors in the log');
done_testing();
