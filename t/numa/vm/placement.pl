# Shared memory is on the nodes that pg_sweep.numa_placement chooses, according to
# pg_sweep_numa_residence and independently to /proc.  Processes get PGPROCs of their
# node, and run where pg_sweep.numa_affinity puts them.
use strict;
use warnings FATAL => 'all';

use NumaTest;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

my $nodes = vm_nodes();
my $page_kb = vm_huge() ? 2048 : 4;
my $page_size = $page_kb * 1024;
my $connections = 200;
my $server = numa_server('placement',
	conf => "pg_sweep.strategy = partitioned\npg_sweep.numa_placement = off\nshared_buffers = 128MB\nmax_connections = $connections\nmax_worker_processes = 40\nmax_prepared_transactions = 20\nautovacuum_worker_slots = 20\n");

sub query { return $server->safe_psql('postgres', $_[0]); }

# Start with these settings; returns the log's line on placement
sub start_with
{
	my ($placement, $more) = @_;

	$server->adjust_conf('postgresql.conf', 'pg_sweep.numa_placement', $placement);
	$server->append_conf('postgresql.conf', $more) if defined $more;
	my $offset = -s $server->logfile;
	$server->start;
	my ($line) = slurp_file($server->logfile, $offset // 0) =~ /LOG:  (pg_sweep placed .*)/;
	note($line) if defined $line;
	return $line // '';
}

# Fill the pool by reading a table that is a tenth larger
sub fill
{
	if (query(q{SELECT count(*) FROM pg_class WHERE relname = 'filler'}) == 0)
	{
		query(
			q{
CREATE EXTENSION pg_sweep;
CREATE EXTENSION pg_prewarm;
CREATE EXTENSION pg_buffercache;
CREATE TABLE filler (pad text);
ALTER TABLE filler ALTER pad SET STORAGE PLAIN;
INSERT INTO filler SELECT repeat('x', 5000)
  FROM pg_settings, generate_series(1, setting::int8 * 11 / 10) WHERE name = 'shared_buffers'});
	}
	query(q{SELECT pg_prewarm('filler')}) foreach 1 .. 2;
	return;
}

# The shared memory of a process by numa_maps: ranges of one policy each, with the
# number of pages on each node
sub shared_ranges
{
	my ($pid) = @_;
	my @ranges;

	foreach (split /\n/, slurp_file("/proc/$pid/numa_maps"))
	{
		next unless m{file=/(?:dev/zero|anon_hugepage)};
		my ($start, $policy) = /^(\S+) (\S+)/;
		my %on = /\bN(\d+)=(\d+)/g;
		push @ranges, { policy => $policy, on => \%on };
	}
	return @ranges;
}

# One session that reads every buffer, and stays
sub reader
{
	my $session = $server->background_psql('postgres');
	my $pid = $session->query_safe('SELECT pg_backend_pid()');

	$session->query_safe(q{SELECT count(*) FROM pg_buffercache_numa});
	return ($session, $pid);
}

# ---- partition ----

my $line = start_with('partition');
like($line, qr/placed \d+ kB of buffers and \d+ kB of other shared memory on $nodes NUMA nodes \(partition, pages of $page_kb kB\)/,
	'partition: the log says what was done');
fill();
is( query(q{SELECT numa_placement, numa_placement_configured FROM pg_sweep_status}),
	'partition|partition', 'partition: in force');

sub residence
{
	my ($what) = @_;
	return query(
		qq{SELECT coalesce(sum(pages), 0), coalesce(sum(pages) FILTER (WHERE node = wanted_node), 0),
 coalesce(sum(pages) FILTER (WHERE node IS NULL), 0), count(DISTINCT node), coalesce(max(page_size), 0)
 FROM pg_sweep_numa_residence WHERE what = '$what'});
}

my $min_blocks = query(q{SELECT setting::int8 * 8192 FROM pg_settings WHERE name = 'shared_buffers'}) / $page_size - 2 * 64;
foreach my $what ('blocks', 'descriptors', 'procs', 'fast-path locks')
{
	my ($pages, $right, $untouched, $on, $size) = split /\|/, residence($what);

	note("$what: $right of $pages pages right, $untouched untouched, on $on nodes");
	is($pages - $right, 0, "partition: all $pages pages of $what are on their node");
	if ($what eq 'blocks')
	{
		cmp_ok($pages, '>', $min_blocks, 'partition: and these are all blocks but for a few at the edges');
		is($on, $nodes, "partition: on $nodes nodes");
		is($size, $page_size, 'partition: pages have the size asked for');
	}
	elsif (!vm_huge())
	{
		is($on, $nodes, "partition: $what are on $nodes nodes");
	}
}
note(query('TABLE pg_sweep_numa_residence'));
is( query(
		q{SELECT count(*) FROM pg_sweep_nodes WHERE resident_buffers BETWEEN buffers - 300 AND buffers}),
	$nodes,
	'partition: pg_sweep_nodes remembers the residence of about all buffers');

check_all_parts($server, 'partition', 0 .. $nodes - 1);
note(query(q{EXPLAIN (ANALYZE, COSTS OFF, BUFFERS OFF) SELECT * FROM pg_sweep_numa_residence}));

# The postmaster interleaved only while it made shared memory
foreach my $process ([ 'postmaster', (slurp_file($server->data_dir . '/postmaster.pid') =~ /^(\d+)/)[0] ],
	[ 'walwriter', query(q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'}) ])
{
	my ($name, $pid) = @$process;
	like(slurp_file("/proc/$pid/numa_maps"), qr/^\S+ default heap/m, "the $name has the default policy for its own memory");
}

# The same by numa_maps, which shows one range per policy
{
	my ($session, $pid) = reader();
	my ($right, $wrong) = (0, 0);

	foreach my $range (shared_ranges($pid))
	{
		my ($node) = $range->{policy} =~ /^prefer(?:=|.*:)(\d+)$/ or next;
		foreach my $id (keys %{ $range->{on} })
		{
			if ($id == $node) { $right += $range->{on}{$id} }
			else { $wrong += $range->{on}{$id} }
		}
	}
	# in units of the kernel's pages, huge ones counted as one
	cmp_ok($right, '>', $min_blocks, "/proc: $right pages are on the node of their policy");
	is($wrong, 0, '/proc: and none elsewhere');
	$session->quit;
}
$server->stop;

# ---- interleave ----

$line = start_with('interleave');
like($line, qr/on $nodes NUMA nodes \(interleave, /, 'interleave: the log says so');
fill();
my %on = map { split /\|/ } split /\n/,
  query(q{SELECT coalesce(node::text, 'none'), sum(pages) FROM pg_sweep_numa_residence WHERE what = 'blocks' GROUP BY 1});
my $total = 0;
$total += $_ foreach values %on;
foreach my $id (0 .. $nodes - 1)
{
	my $pages = $on{$id} // 0;
	my $share = $total / $nodes;
	# exact for 2 MB pages; of 4 kB pages, every other is asked about: a standard
	# error of 1.5 % of a share of 4
	ok(abs($pages - $share) < 1 + $share * (vm_huge() ? 1 : 8) / 100, sprintf('interleave: node %d has %d pages of blocks, %.1f is its share', $id, $pages, $share));
}
is( query(q{SELECT count(*) FROM pg_sweep_numa_residence WHERE wanted_node IS NOT NULL}),
	0, 'interleave: no page is wanted on one node');
like(query(q{SELECT numa_placement_note FROM pg_sweep_status}),
	qr/^the strategy in force has partitions, but their buffers are not on their nodes/,
	'interleave: and the status says that this does not fit the strategy');
$server->stop;

# ---- auto ----

start_with('auto');
is( query(q{SELECT numa_placement, numa_placement_configured FROM pg_sweep_status}),
	'partition|auto', 'auto: partition, as the strategy is partitioned');
$server->stop;
$server->adjust_conf('postgresql.conf', 'pg_sweep.strategy', 'stock');
start_with('auto');
is( query(q{SELECT strategy, numa_placement FROM pg_sweep_status}),
	'stock|partition', 'auto: partition under stock, too');
switch_to($server, 'partitioned');
fill();
{
	my ($pages, $right, $untouched, $on) = split /\|/, residence('blocks');
	is("$right $untouched $on", "$pages 0 $nodes", "auto, a switch to partitioned: all $pages pages of blocks are on their node");
}
$server->stop;
$server->adjust_conf('postgresql.conf', 'pg_sweep.strategy', 'partitioned');

# ---- a policy that the server is started with ----

sub start_under
{
	my @numactl = @_;
	system_or_bail('numactl', @numactl, 'pg_ctl', '--wait', '--pgdata', $server->data_dir, '--log', $server->logfile,
		'--options', '--cluster-name=' . $server->name, 'start');
	$server->_update_pid(1);
	return;
}

$server->adjust_conf('postgresql.conf', 'pg_sweep.numa_placement', 'partition');
start_under('--membind=1,2');
fill();
is(query('SELECT nodes, nodes_note, numa_placement FROM pg_sweep_status'),
	qq{2|the memory policy that the server was started with ("bind") allows 2 of the machine's $nodes NUMA nodes|partition},
	'membind: two nodes, with a note');
is( query(q{SELECT string_agg(DISTINCT node::text, ' ') FROM pg_sweep_numa_residence WHERE what = 'blocks'}),
	'1 2', 'membind: all blocks are on these');
is( query(q{SELECT count(*) FROM pg_sweep_numa_residence WHERE node <> wanted_node OR wanted_node NOT IN (1, 2)}),
	0, 'membind: nothing is wanted or found elsewhere');
$server->stop;

# CPUs of two nodes: the others are without CPUs for this server, but have memory
start_under('--cpunodebind=1,2');
is(query(q{SELECT string_agg(node::text, ' ' ORDER BY node) FROM pg_sweep_nodes WHERE cpus > 0}), '1 2', 'cpunodebind: two nodes with CPUs');
is( query(q{SELECT count(DISTINCT wanted_node) FROM pg_sweep_numa_residence WHERE what = 'blocks'}),
	$nodes, "cpunodebind: blocks are on all $nodes");
is( query(q{
SELECT string_agg(DISTINCT wanted_node::text || ' ' || node::text, ', ') FROM pg_sweep_numa_residence WHERE what = 'fast-path locks'}),
	vm_huge() ? '' : '1 1, 2 2', 'cpunodebind: PGPROCs are on the two');
$server->stop;

# ---- processes ----

# each node has one CPU, which has its number
$server->append_conf('postgresql.conf', "pg_sweep.numa_affinity = spread\npg_sweep.numa_local_memory = on\nio_method = worker\nio_workers = $nodes\ncommit_timestamp_buffers = 4096\n");
start_under('--interleave=all');

my $where = q{SELECT (regexp_match(pg_read_file('/proc/self/status'), 'Cpus_allowed_list:\s*(\S+)'))[1]};
my @sessions = map { $server->background_psql('postgres') } 1 .. 3 * $nodes;
my @cpus = map { $_->query_safe($where) } @sessions;
my %count;
$count{$_}++ foreach @cpus;
is_deeply(\%count, { map { $_ => 3 } 0 .. $nodes - 1 }, "spread: each of $nodes nodes got 3 of the backends (@cpus)");
is_deeply([ sort { $a <=> $b } @cpus[ 0 .. $nodes - 1 ] ], [ 0 .. $nodes - 1 ], 'spread: in turn');

my %io;
$io{ (slurp_file("/proc/$_/status") =~ /^Cpus_allowed_list:\s*(\S+)$/m)[0] }++
  foreach split /\n/, query(q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'io worker'});
is_deeply(\%io, { map { $_ => 1 } 0 .. $nodes - 1 }, 'spread: each node got one of the I/O workers');

# Their PGPROCs: of those for clients, the first part belongs to node 0, and so on.
# The number is part of the virtual transaction id.
my @procnos = map {
	$_->query_safe(q{
SELECT split_part(virtualtransaction, '/', 1) FROM pg_locks WHERE pid = pg_backend_pid() LIMIT 1})
} @sessions;
is_deeply([ map { int($_ * $nodes / $connections) } @procnos ],
	\@cpus, "spread: each has a PGPROC of its node (@procnos)");

# A process has a row when it has allocated a buffer
is( query(qq{
SELECT count(*) FILTER (WHERE s.node <> c.cpu) FROM pg_sweep_backends s JOIN
  (SELECT * FROM unnest(ARRAY[@{[join ',', map { $_->query_safe('SELECT pg_backend_pid()') } @sessions]}],
    ARRAY[@{[join ',', @cpus]}]) AS c(pid, cpu)) c USING (pid)}),
	0, 'spread: pg_sweep_backends says so, too');

SKIP:
{
	skip 'policies of a process are in numa_maps only', 1 unless -r "/proc/$$/numa_maps";
	my $maps = $sessions[0]->query_safe(q{SELECT pg_read_file('/proc/self/numa_maps')});
	like($maps, qr/^\S+ local heap/m, 'local_memory: under numactl --interleave, the heap of a backend is local');
}

# Core has not touched these 32 MB, which have no node of their own.  The view reads all
# pages of shared memory, and so is the first to use these.
my %rest = map { split /\|/ } split /\n/, $sessions[0]->query_safe(q{
SELECT numa_node, size FROM pg_shmem_allocations_numa WHERE name = 'commit_timestamp' AND size > 0});
my ($least, $most) = (sort { $a <=> $b } values %rest)[ 0, -1 ];
note(explain \%rest);
ok(keys %rest == $nodes && $least >= $most / 2,
	"local_memory: shared memory that has no node is interleaved over $nodes nodes");
$_->quit foreach @sessions;

$server->adjust_conf('postgresql.conf', 'pg_sweep.numa_affinity', 'current');
$server->reload;
$server->poll_query_until('postgres', q{SELECT current_setting('pg_sweep.numa_affinity') = 'current'});
@cpus = map { query($where) } 1 .. $nodes;
is_deeply([ grep { !/^\d$/ } @cpus ], [], "current: each backend is on one node (@cpus)");
$server->adjust_conf('postgresql.conf', 'pg_sweep.numa_affinity', 'off');
$server->reload;
$server->poll_query_until('postgres', q{SELECT current_setting('pg_sweep.numa_affinity') = 'off'});
is(query($where), '0-' . ($nodes - 1), 'off: backends are free');

# after a crash, the new shared memory is placed again
my $offset = -s $server->logfile;
$server->adjust_conf('postgresql.conf', 'restart_after_crash', 'on');
kill 'KILL', query(q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'});
$server->wait_for_log(qr/pg_sweep placed \d+ kB/, $offset);
wait_until_back($server) or die 'the server does not come back';
fill();
my ($pages, $right) = split /\|/, residence('blocks');
is($right, $pages, "after a crash: all $pages pages of blocks are on their node");
check_all_parts($server, 'after a crash', 0 .. $nodes - 1);

$server->stop;
done_testing();
