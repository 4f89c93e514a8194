# The machine has the nodes and distances asked for.  A server with pg_sweep runs in
# it, with its shared memory in the pages asked for and on several nodes.
use strict;
use warnings FATAL => 'all';

use NumaTest;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

my $nodes = vm_nodes();
my @ids = 0 .. $nodes - 1;

my $online = slurp_file('/sys/devices/system/node/online');
chomp $online;
is($online, '0-' . ($nodes - 1), "there are $nodes nodes");
for my $id (@ids)
{
	is(node_file($id, 'distance'), join(' ', map { expected_distance($id, $_) } @ids),
		"distances of node $id");
	is(node_file($id, 'cpulist'), $id, "node $id has one CPU");
	cmp_ok((node_file($id, 'meminfo') =~ /MemTotal:\s+(\d+) kB/)[0],
		'>', 800_000, "node $id has memory");
	cmp_ok(node_file($id, 'hugepages/hugepages-2048kB/nr_hugepages'),
		'>', 0, "node $id has huge pages");
}

my $server = numa_server('main');
$server->start;
is($server->safe_psql('postgres', 'SHOW huge_pages_status'), vm_huge() ? 'on' : 'off',
	'the pages of shared memory are those asked for');
if (vm_huge())
{
	my $taken = 0;
	$taken +=
	  node_file($_, 'hugepages/hugepages-2048kB/nr_hugepages') -
	  node_file($_, 'hugepages/hugepages-2048kB/free_hugepages')
	  for @ids;
	cmp_ok($taken, '>', 0, "huge pages are in use ($taken so far)");
}
is($server->safe_psql('postgres', 'SELECT pg_numa_available()'),
	't', 'the server was built with libnuma and sees nodes');

$server->safe_psql('postgres', 'CREATE EXTENSION pg_sweep; CREATE EXTENSION pg_buffercache;');
is($server->safe_psql('postgres', 'SELECT state FROM pg_sweep_status'), 'ok', 'pg_sweep works');

# Under load, with each strategy.  A number of transactions, and no time: a machine
# that shares its CPUs may make none within seconds.
my $each = 100;
$server->command_ok(
	[
		'pgbench', '--initialize', '--quiet',
		'--scale' => 3,
		'--host' => $server->host,
		'--port' => $server->port,
		'postgres'
	],
	'pgbench makes its tables');
for my $strategy (strategies($server))
{
	switch_to($server, $strategy);
	my $load = start_pgbench($server, "load_$strategy", '--client' => $nodes, '--jobs' => 2,
		'--transactions' => $each);
	is(wait_for_background($load, 60), 0, "$strategy: pgbench runs");
	my ($made) = slurp_file($load->{out}) =~ /^number of transactions actually processed: (\d+)/m;
	is($made // 0, $nodes * $each, "$strategy: all transactions were made");
}
check_balances($server, 'after the load');

# The nodes of the pool's pages, from the kernel
my %pages = map { split /\|/ } split /\n/, $server->safe_psql('postgres', q{
SELECT numa_node, count(*) FROM pg_buffercache_numa GROUP BY 1});
note("pages of node $_: $pages{$_}") for sort keys %pages;
is_deeply([ grep { $_ !~ /^\d+$/ || $_ >= $nodes } keys %pages ],
	[], 'every page of the pool is on a node that exists');
cmp_ok(scalar keys %pages, '>=', 1, 'the pool is on a node');

$server->stop;
is_deeply([ unexpected_log_lines($server, 0) ], [], 'no errors in the log');
done_testing();
