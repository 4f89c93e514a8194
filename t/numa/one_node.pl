# NUMA placement on a machine with one node, and with a kernel that refuses: the
# server starts with any setting, and reports what was done.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

my @nodes_here = glob('/sys/devices/system/node/node[0-9]*');
plan skip_all => 'this machine has several NUMA nodes' if @nodes_here > 1;

my $preload;
my $node = sweep_node('one', conf => "shared_buffers = 16MB\npg_sweep.strategy = partitioned\n");
$node->append_conf('postgresql.conf', "pg_sweep.numa_placement = off\npg_sweep.numa_affinity = off\npg_sweep.numa_debug_nodes = 0\npg_sweep.numa_nodes = ''\n");

sub query { return $node->safe_psql('postgres', $_[0]); }

# Start with these settings, and with the shim if it has any; returns what pg_sweep
# logs
sub start_with
{
	my ($settings, %shim) = @_;
	my $offset = -e $node->logfile ? -s $node->logfile : 0;

	foreach my $name (sort keys %$settings)
	{
		$node->adjust_conf('postgresql.conf', "pg_sweep.$name", $settings->{$name});
	}
	{
		local %ENV = (%ENV, %shim);
		$ENV{LD_PRELOAD} = $preload if %shim;
		$node->start;
	}
	return join "\n", grep { /pg_sweep|NUMA node|HINT|DETAIL/ } split /\n/, slurp_file($node->logfile, $offset);
}

my $status = q{
SELECT numa_placement, numa_placement_configured, numa_placement_note, numa_placement_time > '0', nodes FROM pg_sweep_status};

# ---- one node ----

my $log = start_with({ numa_placement => 'off' });
query('CREATE EXTENSION pg_sweep; CREATE EXTENSION pg_prewarm');
is($log, '', 'off: nothing to say');
is(query($status), 'off|off||f|1', 'off: pg_sweep_status');
$node->stop;

foreach my $placement ('interleave', 'partition')
{
	$log = start_with({ numa_placement => $placement });
	like($log, qr/LOG:  pg_sweep\.numa_placement = $placement has no effect: the machine has one NUMA node$/,
		"$placement: the log says that it has no effect");
	is(query($status), "off|$placement|the machine has one NUMA node|f|1", "$placement: and so does pg_sweep_status");
	$node->stop;
}
$log = start_with({ numa_placement => 'auto' });
is($log, '', 'auto: nothing to say');
is(query($status), 'off|auto||f|1', 'auto: no placement, as asked for');

# ---- residence ----

sub pages
{
	my ($what, $filter) = @_;
	return query("SELECT coalesce(sum(pages), 0) FROM pg_sweep_numa_residence WHERE what = '$what' AND $filter");
}

my $page_size = query('SELECT DISTINCT page_size FROM pg_sweep_numa_residence');
SKIP:
{
	skip 'the kernel does not tell where pages are', 10 unless query('SELECT pg_numa_available()') eq 't';

	is(query('SELECT sum(resident_buffers), max(residence_asked_at) > now() - interval \'1 minute\' FROM pg_sweep_nodes') =~ s/^\d+\|//r,
		't', 'pg_sweep_nodes knows when residence was asked');
	my $untouched = pages('blocks', 'node IS NULL');
	my $all = pages('blocks', 'true');
	cmp_ok($untouched, '>', $all / 4, "$untouched of $all pages of blocks have not been used");
	cmp_ok($untouched - pages('blocks', 'node IS NULL'), '<', $all / 10, 'and asking does not use them');
	is(pages('descriptors', 'node IS NULL'), 0, 'all descriptors have been');
	is(pages('descriptors', 'node = 0') * $page_size <= 16 * 1024 * 1024 / 8192 * 64 ? 't' : 'f',
		't', 'and are no more than there are');
	is(pages('procs', 'node IS NULL AND wanted_node IS NULL'), 0, 'all PGPROCs have been');
	cmp_ok(pages('procs', 'node = 0'), '>', 0, 'and are counted');

	query(q{
CREATE TABLE t AS SELECT repeat('x', 500) AS pad FROM generate_series(1, 40000)});
	query(q{SELECT pg_prewarm('t')}) foreach 1 .. 2;
	is(pages('blocks', 'node IS NULL'), 0, 'a full pool has no unused page');
	is(pages('blocks', 'node = 0'), $all, 'all are on node 0');
	is(query('SELECT resident_buffers - buffers FROM pg_sweep_nodes'), 0, 'and pg_sweep_nodes remembers that');
	is(query('SELECT count(*) FROM pg_sweep_numa_residence WHERE wanted_node IS NOT NULL'), 0, 'no page is wanted on a certain node');
}
$node->stop;

# ---- affinity, on emulated nodes ----

my $allowed = q{
SELECT (regexp_match(pg_read_file('/proc/self/status'), 'Cpus_allowed_list:\s*(\S+)'))[1]};
my ($cpus) = slurp_file('/proc/self/status') =~ /^Cpus_allowed_list:\s*(\S+)$/m;

start_with({ numa_placement => 'off', numa_affinity => 'spread' });
is(query($allowed), $cpus, 'spread: with one node, backends run where they may');
$node->stop;

$log = start_with({ numa_placement => 'partition', numa_debug_nodes => 2 });
like($log, qr/has no effect: the NUMA nodes are emulated/, 'emulated nodes: nothing is placed');
SKIP:
{
	skip 'this machine has one CPU', 6 if $cpus =~ /^\d+$/;

	my @first = map { query($allowed) } 1 .. 4;
	is($first[0], $first[2], 'spread: every other backend is on the same node');
	is($first[1], $first[3], 'spread: and the others, too');
	isnt($first[0], $first[1], 'spread: which is another one');

	query(q{CREATE TABLE big AS SELECT i FROM generate_series(1, 100000) i; ANALYZE big});
	my $workers = query(
		q{
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
SET debug_parallel_query = on; SET parallel_leader_participation = off;
SELECT (regexp_match(pg_read_file('/proc/' || pg_backend_pid() || '/status'), 'Cpus_allowed_list:\s*(\S+)'))[1] FROM big LIMIT 1}
	);
	isnt($workers, $cpus, 'spread: parallel workers are bound, too');

	my $launcher = query(q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'});
	like(slurp_file("/proc/$launcher/status"), qr/^Cpus_allowed_list:\s*\Q$cpus\E$/m, 'the checkpointer is not: there is one');

	$node->adjust_conf('postgresql.conf', 'pg_sweep.numa_affinity', 'off');
	$node->reload;
	$node->poll_query_until('postgres', q{SELECT current_setting('pg_sweep.numa_affinity') = 'off'});
	is(query($allowed), $cpus, 'off, by a reload: new backends run where they may');
}
$node->stop;
$node->adjust_conf('postgresql.conf', 'pg_sweep.numa_debug_nodes', 0);

# ---- the answers of a kernel ----

SKIP:
{
	my $source = sweep_root() . '/test/numa/shim/numa_shim.c';
	$preload = "$PostgreSQL::Test::Utils::tmp_check/numa_shim.so";
	skip 'the shim does not compile here (gcc, libnuma-dev)', 1
	  if system("gcc -shared -fPIC -o '$preload' '$source' -ldl -lnuma >/dev/null 2>&1") != 0;

	# seccomp, as in a container
	my $forbidden = 'the kernel does not permit the system calls for NUMA, as in many containers';
	$log = start_with({ numa_placement => 'partition', numa_affinity => 'off' }, SHIM_DENY => 'get_mempolicy');
	like($log, qr/WARNING:  pg_sweep\.numa_placement = partition has no effect: \Q$forbidden\E/, 'EPERM: a warning');
	is(query($status), "off|partition|$forbidden|f|1", 'EPERM: and a note');
	is(query('SELECT nodes_note FROM pg_sweep_status'), $forbidden, 'EPERM: of the nodes, too');
	my ($ret, $stdout, $stderr) = $node->psql('postgres', 'SELECT count(*) FROM pg_sweep_numa_residence');
	is($ret, 0, 'EPERM: residence can still be asked');
	$node->stop;
	$log = start_with({ numa_placement => 'auto' }, SHIM_DENY => 'get_mempolicy');
	like($log, qr/LOG:  pg_sweep\.numa_placement = auto has no effect: \Q$forbidden\E/, 'EPERM: auto does not warn');
	$node->stop;

	start_with({ numa_placement => 'auto' }, SHIM_DENY => 'numa_move_pages');
	is( query(q{
SELECT count(*) > 4, count(DISTINCT what) > 5, count(pages), count(bytes), count(node), max(asked),
       array_agg(DISTINCT note) FROM pg_sweep_numa_residence WHERE note IS NOT NULL OR node IS NOT NULL}),
		't|t|0|0|0|0|{"The kernel does not tell: Operation not permitted. In a container, the capability SYS_NICE or another seccomp profile may be needed."}',
		'EPERM from move_pages: residence answers that it is not known, and why');
	is(query('SELECT count(residence_asked_at) FROM pg_sweep_nodes'), 0, 'EPERM from move_pages: pg_sweep_nodes does not know it, either');
	$node->stop;

	# two nodes, the second without CPUs
	my $calls = "$PostgreSQL::Test::Utils::tmp_check/mbind.log";
	unlink $calls;
	$log = start_with({ numa_placement => 'partition' }, SHIM_NODES => 2, SHIM_LOG => $calls);
	like($log, qr/LOG:  pg_sweep placed 16384 kB of buffers and \d+ kB of other shared memory on 2 NUMA nodes \(partition, pages of 4 kB\) in \d+\.\d+ ms/,
		'two nodes: the log says what was done');
	is(query($status), 'partition|partition||t|2', 'two nodes: pg_sweep_status');
	is(query(q{SELECT string_agg((cpus > 0)::text, ' ' ORDER BY node) FROM pg_sweep_nodes}),
		'true false', 'two nodes: one without CPUs');

	my @mbind = map { [ split ' ' ] } split /\n/, slurp_file($calls);
	my ($end, $bytes) = (0, [ 0, 0 ]);
	my @bad;
	my $all = shift @mbind;
	is("@$all[ 1 .. 4 ]", query('SELECT sum(allocated_size) FROM pg_shmem_allocations') . ' 3 3 0', 'two nodes: first, all memory is interleaved');
	foreach my $call (sort { $a->[0] <=> $b->[0] } @mbind)
	{
		my ($address, $size, $mode, $mask, $flags) = @$call;
		push @bad, "@$call" if $address % 4096 || $size % 4096 || $address < $end || $mode != 1 || $mask !~ /^[12]$/;
		$end = $address + $size;
		$bytes->[ $mask - 1 ] += $size if $flags == 0;
	}
	is_deeply(\@bad, [], 'two nodes: whole pages, none twice, each preferred on one node');
	is($bytes->[0] + $bytes->[1], 16 * 1024 * 1024, 'two nodes: all blocks are on one of them');
	cmp_ok(abs($bytes->[0] - $bytes->[1]), '<=', 64 * 8192, 'two nodes: each has half, to a page of descriptors');
	is(scalar(grep { $_->[4] == 2 } @mbind), 4 + 4,
		'two nodes: descriptors, and PGPROCs, fast-path locks and slots, which have been touched, are moved');

	is( query(q{
SELECT count(*) FILTER (WHERE node IS DISTINCT FROM wanted_node) > 0, count(DISTINCT wanted_node) FROM pg_sweep_numa_residence WHERE what = 'descriptors'}),
		't|2', 'two nodes: residence shows the node and the wanted node');
	$node->stop;

	unlink $calls;
	$log = start_with({ numa_placement => 'interleave' }, SHIM_NODES => 3, SHIM_LOG => $calls);
	like($log, qr/LOG:  pg_sweep placed 16384 kB of buffers .* on 3 NUMA nodes \(interleave, /, 'interleave: the log says so');
	@mbind = map { [ split ' ' ] } split /\n/, slurp_file($calls);
	is_deeply([ map { "@$_[ 1 .. 4 ]" } @mbind ], [ query('SELECT sum(allocated_size) FROM pg_shmem_allocations') . ' 3 7 0' ],
		'interleave: all memory, over all nodes');
	$node->stop;

	# The strategy can change later, but pages stay where they are.
	unlink $calls;
	start_with({ numa_placement => 'auto', strategy => 'stock' }, SHIM_NODES => 2, SHIM_LOG => $calls);
	is(query($status), 'partition|auto||t|2', 'auto under stock: placed by partition');
	is(scalar(grep { (split)[2] != 1 } split /\n/, slurp_file($calls)), 1, 'auto under stock: each piece has one node');
	query(q{SELECT pg_sweep_set_strategy('partitioned')});
	is(query($status), 'partition|auto||t|2', 'auto, a switch to partitioned: it fits');
	is( query(q{
SELECT count(*) FROM pg_sweep_partitions p JOIN pg_sweep_numa_residence r USING (partition)
 WHERE r.wanted_node IS DISTINCT FROM p.node}),
		0, 'auto, a switch to partitioned: each partition is wanted on its node');
	$node->stop;

	my $misfit = 'the strategy in force has partitions, but their buffers are not on their nodes';
	foreach my $placement ('interleave', 'off')
	{
		start_with({ numa_placement => $placement }, SHIM_NODES => 2, SHIM_LOG => $calls);
		like(query($status), qr/^$placement\|$placement\|\|/, "$placement under stock: nothing to note");
		query(q{SELECT pg_sweep_set_strategy('partitioned')});
		like(query($status), qr/^$placement\|$placement\|\Q$misfit\E\|/, "$placement, a switch to partitioned: a note");
		query(q{SELECT pg_sweep_set_strategy('batched')});
		like(query($status), qr/^$placement\|$placement\|\|/, "$placement, a switch to batched: no more");
		$node->stop;
	}
	$node->adjust_conf('postgresql.conf', 'pg_sweep.strategy', 'partitioned');

	# numactl --membind and NUMAPolicy=bind: the mode is 2
	unlink $calls;
	start_with({ numa_placement => 'partition' }, SHIM_NODES => 4, SHIM_POLICY => '2:a', SHIM_LOG => $calls);
	is(query('SELECT nodes, nodes_note FROM pg_sweep_status'),
		q{2|the memory policy that the server was started with ("bind") allows 2 of the machine's 4 NUMA nodes},
		'bind: only its nodes count, with a note');
	is(query(q{SELECT string_agg(node::text, ' ' ORDER BY node) FROM pg_sweep_nodes}), '1 3', 'bind: which are these');
	is_deeply([ sort keys %{ { map { (split)[3] => 1 } split /\n/, slurp_file($calls) } } ], [ '2', '8', 'a' ], 'bind: no page is put elsewhere');
	$node->stop;
	unlink $calls;
	start_with({ numa_placement => 'interleave' }, SHIM_NODES => 4, SHIM_POLICY => '32770:a', SHIM_LOG => $calls);
	is_deeply([ sort keys %{ { map { (split)[3] => 1 } split /\n/, slurp_file($calls) } } ], ['a'], 'bind, MPOL_F_STATIC_NODES: interleaved over its nodes');
	$node->stop;
	$log = start_with({ numa_placement => 'partition' }, SHIM_NODES => 4, SHIM_POLICY => '2:4', SHIM_LOG => $calls);
	like($log, qr/WARNING:  pg_sweep\.numa_placement = partition has no effect: the memory policy .* allows 1 of the machine's 4/, 'bind to one node: a warning');
	$node->stop;
	start_with({ numa_placement => 'off' }, SHIM_NODES => 4, SHIM_POLICY => '3:a');
	is(query('SELECT nodes, nodes_note FROM pg_sweep_status'), '4|', 'numactl --interleave is a wish, no limit');
	$node->stop;

	# pg_sweep.numa_nodes
	my $used = q{SELECT (SELECT string_agg(node::text, ' ' ORDER BY node) FROM pg_sweep_nodes) || '|' || coalesce(nodes_note, '') FROM pg_sweep_status};
	my $cannot = 'WARNING:  pg_sweep.numa_nodes names NUMA nodes that the server cannot use: ';
	my $far = 'far memory without CPUs is not used unless pg_sweep.numa_nodes names it:';
	foreach my $case (
		[ '', {}, '0 1 2 3|', undef ],
		[ '1-2', {}, '1 2|pg_sweep.numa_nodes leaves out 0,3', undef ],
		[ ' 3 , 0 - 1 ', {}, '0 1 3|pg_sweep.numa_nodes leaves out 2', undef ],
		[ '0-1,5-6', {}, '0 1|pg_sweep.numa_nodes leaves out 2-3', '5-6' ],
		# one node
		[ '2', {}, '2|pg_sweep.numa_nodes leaves out 0-1,3', undef ],
		[ '', { SHIM_NODES => 2, SHIM_CPUS => 1, SHIM_FAR => '1:22' }, "0|$far 1", undef ],
		# none
		[ '8', {}, '0 1 2 3|pg_sweep.numa_nodes names none that the server can use, only 8', '8' ],
		[ '8', { SHIM_SPLIT => 3, SHIM_CPUS => 3, SHIM_FAR => '3:22' },
			"0 1 2|pg_sweep.numa_nodes names none that the server can use, only 8; $far 3", '8' ],
		# one socket: HBM, and CXL
		[ '', { SHIM_NODES => 2, SHIM_CPUS => 1, SHIM_FAR => '1:13' }, '0 1|', undef ],
		[ '', { SHIM_NODES => 2, SHIM_CPUS => 1, SHIM_FAR => '1:14' }, "0|$far 1", undef ],
		[ '2-3', { SHIM_POLICY => '2:7' },
			q{2|the memory policy that the server was started with ("bind") allows 3 of the machine's 4 NUMA nodes; pg_sweep.numa_nodes leaves out 0-1}, '3' ],
		# CPUs are on the first three, which are at distance 21
		[ '', { SHIM_SPLIT => 3, SHIM_CPUS => 3, SHIM_FAR => '3:17' }, '0 1 2 3|', undef ],
		[ '', { SHIM_SPLIT => 3, SHIM_CPUS => 3, SHIM_FAR => '3:22' }, "0 1 2|$far 3", undef ],
		[ '0-3', { SHIM_SPLIT => 3, SHIM_CPUS => 3, SHIM_FAR => '3:22' }, '0 1 2 3|', undef ],
		[ '', { SHIM_SPLIT => 4, SHIM_CPUS => 4, SHIM_FAR => '3:22' }, '0 1 2 3|', undef ],
		[ '', { SHIM_SPLIT => 3, SHIM_CPUS => 3, SHIM_FAR => '3:22', SHIM_POLICY => '2:8' },
			q{3|the memory policy that the server was started with ("bind") allows 1 of the machine's 4 NUMA nodes}, undef ])
	{
		my ($list, $machine, $expected, $warning) = @$case;
		my $title = "numa_nodes = '$list'" . join '', map { " $_=$machine->{$_}" } sort keys %$machine;

		unlink $calls;
		$log = start_with({ numa_placement => 'partition', numa_nodes => "'$list'" }, SHIM_NODES => 4, SHIM_SPLIT => 1, %$machine, SHIM_LOG => $calls);
		is(query($used), $expected, $title);
		if (defined $warning) { like($log, qr/\Q$cannot$warning\E\n/, "$title: a warning"); }
		else { unlike($log, qr/\Q$cannot\E/, "$title: no warning"); }
		my $mask = 0;
		$mask |= 1 << $_ foreach split / /, $expected =~ s/\|.*//r;
		my @calls = split /\n/, -e $calls ? slurp_file($calls) : '';
		# "bind" to one node needs no placement
		my $placed = ($machine->{SHIM_POLICY} // '') ne '2:8';
		is($calls[0] ? join(' ', (split ' ', $calls[0])[ 1 .. 3 ]) : 'nothing',
			$placed ? sprintf('%d 3 %x', query('SELECT sum(allocated_size) FROM pg_shmem_allocations'), $mask) : 'nothing',
			"$title: memory is put on these nodes");
		is(query('SELECT numa_placement FROM pg_sweep_status'), $placed ? 'partition' : 'off', "$title: numa_placement");
		my @elsewhere = grep { hex((split)[3]) & ~$mask } @calls;
		is_deeply(\@elsewhere, [], "$title: no memory is put elsewhere");
		$node->stop;
	}
	$node->adjust_conf('postgresql.conf', 'pg_sweep.numa_nodes', q{''});

	# Memory of the nodes: one is full of page cache, the other of something else
	my $files = "$PostgreSQL::Test::Utils::tmp_check/nodes";
	mkdir $_ foreach $files, "$files/node0", "$files/node1";
	append_to_file("$files/node0/meminfo", "Node 0 MemFree:  3072 kB\nNode 0 Active(file):  4096 kB\nNode 0 Inactive(file):  4096 kB\n");
	append_to_file("$files/node1/meminfo", "Node 1 MemFree:  2048 kB\nNode 1 Active(file):  0 kB\n");
	$log = start_with({ numa_placement => 'partition' }, SHIM_NODES => 2, SHIM_LOG => $calls, SHIM_NODE_FILES => $files);
	like($log, qr/LOG:  NUMA node 0 has 3 MB of free memory for its 8 MB of shared buffers, and page cache\n.*DETAIL:  The kernel may use another node before it drops page cache/,
		'page cache: the log says that pages may go elsewhere');
	like($log, qr/WARNING:  NUMA node 1 has memory left for 2 MB of its [78] MB of shared buffers\n/, 'a full node: a warning');
	like(query('SELECT numa_placement_note FROM pg_sweep_status'),
		qr/^node 0 had 3 of 8 MB of buffers free, the rest was page cache; node 1 had memory for 2 of [78] MB of buffers$/, 'and a note of both');
	$node->stop;

	start_with({ numa_placement => 'interleave' }, SHIM_NODES => 2, SHIM_LOG => $calls, SHIM_NODE_FILES => $files);
	like(query('SELECT numa_placement_note FROM pg_sweep_status'), qr/^\Q$misfit\E; node 0 had 3 of 8 MB/, 'the note of another fault is not lost');
	$node->stop;

	# Huge pages, and a process that may not ask about the postmaster
	$node->append_conf('postgresql.conf', "shared_buffers = 512MB\nhuge_pages = on\npg_sweep.partitions = 1\n");
	start_with({ numa_placement => 'off' }, SHIM_HUGE => 1, SHIM_DENY => 'numa_move_pages:1');
	query(q{SELECT pg_prewarm('t')});
	is(query(q{SELECT what, node, note FROM pg_sweep_numa_residence WHERE what IN ('blocks', 'descriptors') AND node IS NOT NULL ORDER BY 1}),
		"blocks|0|\ndescriptors|0|", 'huge pages: where buffers and descriptors are does not depend on the postmaster');
	is( query(q{
SELECT count(*) > 0, count(node), count(pages), string_agg(DISTINCT note, '; ')
  FROM pg_sweep_numa_residence WHERE what NOT IN ('blocks', 'descriptors', 'procs', 'fast-path locks', 'slots')}),
		't|0|0|The kernel does not tell: Operation not permitted. Pages of this part are asked for by the postmaster\'s pid, which needs the right to trace it (ptrace).',
		'huge pages: the rest is not known, and why');
	is(query('SELECT count(residence_asked_at) FROM pg_sweep_nodes'), 1, 'huge pages: pg_sweep_nodes has the buffers');
	$node->stop;
	start_with({}, SHIM_HUGE => 1);
	is(query(q{SELECT count(*) FILTER (WHERE note IS NOT NULL), count(*) FILTER (WHERE node IS NOT NULL AND what = 'Shared Buffer Lookup Table') FROM pg_sweep_numa_residence}),
		'0|1', 'huge pages: a process that may ask knows the rest, too');
	$node->stop;
	$node->append_conf('postgresql.conf', "shared_buffers = 16MB\nhuge_pages = try\npg_sweep.partitions = 0\n");

	$node->start;
	foreach my $case ([ 'x', 'list of node numbers' ], [ '0,', 'list of node numbers' ], [ '1-', 'list of node numbers' ], [ '-1', 'list of node numbers' ],
		[ '3-1', 'A range ends before' ], [ '0 1', 'separated by commas' ], [ '0-1-2', 'separated by commas' ], [ '1024', 'less than 1024' ],
		[ '99999999999999999999', 'less than 1024' ])
	{
		my ($ret, $stdout, $stderr) = $node->psql('postgres', "ALTER SYSTEM SET pg_sweep.numa_nodes = '$case->[0]'");
		like($stderr, qr/ERROR:  invalid value for parameter "pg_sweep.numa_nodes".*\n.*DETAIL: .*$case->[1]/, "numa_nodes = '$case->[0]': an error");
	}
	$node->stop;

	# a refusal at the third call
	unlink $calls;
	$log = start_with({ numa_placement => 'partition' }, SHIM_NODES => 2, SHIM_LOG => $calls, SHIM_DENY => 'mbind:3');
	like($log, qr/WARNING:  pg_sweep could not place shared memory on NUMA nodes: Operation not permitted\n/, 'refused: a warning');
	like($log, qr/HINT:  In a container, the capability SYS_NICE/, 'refused: with a hint');
	like($log, qr/DETAIL:  The server continues without placement\. Pages that it has written already stay where they are/, 'refused: what is left');
	is(query($status), 'off|partition|Operation not permitted|t|2', 'refused: pg_sweep_status');
	@mbind = map { [ split ' ' ] } split /\n/, slurp_file($calls);
	is_deeply([ map { "$_->[2] $_->[5]" } @mbind ],
		[ '3 works', '1 works', '1 fails', '0 works' ],
		'refused: the completed calls are reverted');
	is("$mbind[3][0] $mbind[3][1]", "$mbind[0][0] $mbind[0][1]", 'refused: all of it');
	is(query('SELECT count(*) FROM pg_sweep_numa_residence WHERE wanted_node IS NOT NULL'), 0, 'refused: no page is wanted anywhere');
	$node->stop;

	# a refusal of the first call
	unlink $calls;
	$log = start_with({ numa_placement => 'partition' }, SHIM_NODES => 2, SHIM_LOG => $calls, SHIM_DENY => 'set_mempolicy');
	like($log, qr/WARNING:  pg_sweep could not place shared memory on NUMA nodes: Operation not permitted\n/, 'refused at once: a warning');
	is(query($status), 'off|partition|Operation not permitted|t|2', 'refused at once: pg_sweep_status');
	ok(!-e $calls, 'refused at once: nothing is placed');
	$node->stop;

	# processes that cannot be bound
	$log = start_with({ numa_placement => 'off', numa_affinity => 'spread', numa_debug_nodes => 2 }, SHIM_DENY => 'sched_setaffinity');
	is(query($allowed), $cpus, 'no binding: backends start') foreach 1 .. 3;
	my @lines = grep { /LOG:  pg_sweep could not bind a process to NUMA node \d: sched_setaffinity: Operation not permitted/ }
	  split /\n/, slurp_file($node->logfile);
	is(scalar @lines, 1, 'no binding: which is said once');
	$node->stop;
}

# ---- a server without the patch ----

SKIP:
{
	my $stock = stock_prefix();
	skip 'there is no unpatched server (make server VARIANT=stock, or set PG_SWEEP_STOCK)', 1 unless defined $stock;

	my $unpatched = PostgreSQL::Test::Cluster->new('unpatched', install_path => $stock);
	my $missing = 'The server lacks the core patch "numa-placement-hooks".';
	$unpatched->init;
	$unpatched->append_conf('postgresql.conf', qq{
dynamic_library_path = '\$libdir:@{[$node->config_data('--pkglibdir')]}'
shared_preload_libraries = 'pg_sweep'
pg_sweep.numa_affinity = spread
pg_sweep.numa_local_memory = off
});
	$unpatched->start;
	like(
		slurp_file($unpatched->logfile),
		qr/WARNING:  invalid value for parameter "pg_sweep\.numa_affinity": "spread"\n.*DETAIL:  \Q$missing\E/,
		'without the patch: numa_affinity is refused, naming it');
	is($unpatched->safe_psql('postgres', 'SHOW pg_sweep.numa_affinity'), 'off', 'without the patch: it is off');
	my ($ret, $stdout, $stderr) = $unpatched->psql('postgres', 'ALTER SYSTEM SET pg_sweep.numa_local_memory = on');
	like($stderr, qr/DETAIL:  \Q$missing\E/, 'without the patch: local_memory is refused, too');
	$unpatched->stop;
}

done_testing();
