
# The contention simulator's engine: it plays the sources of the extension as they
# are, gives the same answer each time and refuses unknown settings. Its model of
# cache lines gives the times that can be worked out by hand.

use strict;
use warnings FATAL => 'all';

use Cwd qw(abs_path);
use Digest::SHA;
use File::Basename;
use IPC::Run qw(run timeout);
use JSON::PP;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $top = abs_path(dirname(__FILE__) . '/../..');
my $pg_config = $ENV{PG_CONFIG} || 'pg_config';

# A server that this project has built has its source, too; others may not.
if ($pg_config !~ m{^\Q$top\E/build/} && !$ENV{SWEEP_SERVER_SOURCE})
{
	plan skip_all => 'there is no source of a patched server';
}

sub build
{
	my ($level, @options) = @_;
	my ($stdout, $stderr) = ('', '');

	run([ "$top/sim/run", 'build', "--level=$level", '--patched=' . dirname(dirname($pg_config)), @options ],
		'>', \$stdout, '2>', \$stderr) or BAIL_OUT("the simulator cannot be built: $stderr");
	chomp $stdout;
	return $stdout;
}

my $sim = build('O2');
my $unoptimized = build('O0');

# One run; returns its output, or dies.
sub play
{
	my ($config, $binary) = @_;
	my ($stdout, $stderr) = ('', '');
	my $text = join('', map { "$_ $config->{$_}\n" } sort keys %$config);

	run([ $binary || $sim ], '<', \$text, '>', \$stdout, '2>', \$stderr, timeout($PostgreSQL::Test::Utils::timeout_default))
	  or die "sim failed: $stderr\n$text";
	return $stdout;
}

sub value
{
	my ($output, $key) = @_;

	return $output =~ /^(?:result )?\Q$key\E (\S+)$/m ? $1 : die "no $key in\n$output";
}

sub region
{
	my ($output, $name, $key) = @_;

	return 0 unless $output =~ /^region \Q$name\E (.*)$/m;
	my %counts = split(' ', $1);
	return $counts{$key};
}

# A machine on which everything has another price, without chance and without
# instructions.  2 sockets x 2 nodes x 2 groups x 2 cores, 2 threads each.
my %machine = (
	cores => 16, threads_per_core => 2, cores_per_group => 2, groups_per_node => 2,
	nodes_per_socket => 2, sockets => 2,
	latency_same_core => 8_000, latency_group => 20_000, latency_node => 40_000,
	latency_socket => 60_000, latency_other_socket => 100_000,
	memory_local => 90_000, memory_socket => 110_000, memory_other => 150_000,
	load_hit => 1_000, store_hit => 1_000, rmw_hit => 5_000, cas_hit => 7_000,
	pause => 10_000, keep_ps => 0, instruction_ps => 0,
	wakeup_ps => 3_000_000, wake_call_ps => 1_000_000, sleep_call_ps => 500_000,
	switch_ps => 500_000, timeslice_ps => 10_000_000,
	copy_bytes_per_s => 0, bandwidth_bytes_per_s => 0, llc_bytes => 0);

sub config
{
	my (%settings) = @_;
	my %config = map { ("machine.$_" => $machine{$_}) } keys %machine;

	return { %config, seed => 1, %settings };
}

# All cores in one group
my %one_group = ('machine.cores_per_group' => 16, 'machine.groups_per_node' => 1,
	'machine.nodes_per_socket' => 1, 'machine.sockets' => 1);

# ---- what is played ----

my ($version) = run_command([ $sim, '--version' ]);
my %played = $version =~ /^extension (\S+) (\w+)$/mg;
is(scalar(grep { !$played{$_} } qw(sweep/strategy_batched.c sweep/strategy_partitioned.c sweep/partitions.c
	  sweep/strategy_clock2q.c sweep/clock2q.h sweep/laps.c sweep/laps.h sweep/walk.c sweep/lease.h sweep/hand.h
	  sweep/victim.h sweep/slots.c sweep/shmem.c sweep/sweep.h slot.c)), 0, 'the strategies are among what is played');
is(join(' ', grep { Digest::SHA->new(256)->addfile("$top/extension/$_")->hexdigest ne $played{$_} } sort keys %played),
	'', 'what is played are the files of extension/, to the byte');
my ($ifdefs) = run_command([ 'grep', '-rlE', '\b(SIM_[A-Z]+|sim_[a-z]+)\b', "$top/extension" ]);
is($ifdefs, '', 'and they do not know of the simulator');

# ---- what is refused ----

sub refuses
{
	my ($settings, $wanted, $without) = @_;
	my $config = config(load => 'lines', 'load.op' => 'load', 'load.times' => 1, %$settings);
	delete $config->{$without} if $without;
	my ($stdout, $stderr) = ('', '');
	my $text = join('', map { "$_ $config->{$_}\n" } sort keys %$config);

	run([$sim], '<', \$text, '>', \$stdout, '2>', \$stderr);
	is($? >> 8, 2, "exit status 2: $wanted");
	like($stderr, qr/\Asim: [^\n]*$wanted[^\n]*\n\z/, "one line about it: $wanted");
}

refuses({ 'load.unheard_of' => 1 }, 'unknown key "load.unheard_of"');
refuses({ strategy => 'stock' }, 'unknown key "strategy"');
refuses({ 'load.times' => 0 }, 'load.times must be 1 ..');
refuses({ 'load.times' => '10x' }, 'load.times must be a whole number');
refuses({ 'machine.memory_local' => -1 }, 'machine.memory_local must be');
refuses({}, '"machine.memory_local" is missing', 'machine.memory_local');
refuses({ 'machine.sockets' => 3 }, 'are not 16 cores');
refuses({ load => 'none' }, 'there is no load "none"');
refuses({ placement => 'anywhere' }, 'placement must be');
refuses({ load => 'alloc', strategy => 'none', 'load.usage' => 0 }, 'there is no strategy "none"');
refuses({ jitter_percent => "1\nseed 2" }, '"seed" comes twice');

# ---- times that can be worked out ----

# By one load of sim/loads/lines.c.  Returns when the last fiber was done.
sub lines
{
	my ($op, $times, $backends, %settings) = @_;

	return play(config(load => 'lines', 'load.op' => $op, 'load.times' => $times,
			backends => $backends, jitter_percent => 0, %settings));
}

sub takes
{
	my ($output, $expected, $what) = @_;

	is(value($output, 'last_ps'), $expected, $what);
}

my $n = 300;

takes(lines('xadd', $n, 1), 90_000 + $n * 5_000, 'one core: from memory once, then hits');
takes(lines('load', $n, 1), 90_000 + $n * 1_000, 'one core reads');

# Two cores by turns: each operation waits for the line, but the first, which
# memory gives.
my %latency = (1 => 20_000, 2 => 40_000, 4 => 60_000, 8 => 100_000, 16 => 8_000);
for my $step (sort { $a <=> $b } keys %latency)
{
	my $output = lines('xadd', $n, 2, 'load.step' => $step);
	takes($output, 90_000 + (2 * $n - 1) * $latency{$step} + 5_000, "two CPUs by turns, $step apart");
	is(value($output, 'sum'), 2 * $n, 'and nothing is lost');
	is(region($output, 'words', 'transfers'), 2 * $n, 'a transfer each time');
}
takes(lines('xadd', $n, 2, 'load.step' => 8, latency_percent => 200), 180_000 + (2 * $n - 1) * 200_000 + 5_000,
	'latencies twice as long');

takes(lines('xadd', $n, 16, %one_group), 90_000 + (16 * $n - 1) * 20_000 + 5_000, '16 cores, one line');
takes(lines('xadd', $n, 16, %one_group, 'load.stride' => 64), 90_000 + $n * 5_000, '16 cores, a line each');
takes(lines('xadd', $n, 8, %one_group, 'load.stride' => 8), 90_000 + (8 * $n - 1) * 20_000 + 5_000,
	'8 cores, a word each of the same line');

# Readers of a line are served together, and each only once.
my $readers = lines('load', $n, 16, %one_group);
takes($readers, 90_000 + 20_000 + $n * 1_000, '16 cores read');
is(region($readers, 'words', 'transfers'), 16, 'one transfer each');

# But a CPU cannot give away a line before it has it: CPUs 0, 8 and 9 ask at once,
# and 9 does not get from 8, in 20 ns, what 8 gets from 0 in 100 ns.
my %far = ('machine.cores_per_group' => 8, 'machine.groups_per_node' => 1, 'machine.nodes_per_socket' => 1);
takes(lines('load', 1, 10, %far), 90_000 + 100_000 + 1_000, 'readers far away');
is(value(lines('load', 1, 10, %far), 'stall_ps'), 90_000 + 7 * 110_000 + 2 * 190_000, 'all wait for the first owner');

# CPUs 0 and 8, in other sockets, and 16, the other thread of 0, have read it: the
# farthest sharer decides how long the first writer waits.
takes(lines('xadd', 1, 3, 'load.step' => 8, 'load.first' => 1),
	90_000 + 100_000 + (100_000 + 0) + 8_000 + 100_000 + 5_000, 'a writer waits for the farthest reader');

# An owner keeps the line: three operations fit into 12 ns, one 5 ns after the
# other.
takes(lines('xadd', $n, 2, 'machine.keep_ps' => 12_000),
	90_000 + (2 * $n / 3 - 1) * (20_000 + 12_000) + 3 * 5_000, 'an owner keeps the line for 12 ns');

# A compare-and-swap is made on the value of the moment at which the line comes.
# Without a window, a CPU that has read the old value is nearly always too late.
# Threads of a core have its cache in common: the other one need not wait until the
# line is given away.
takes(lines('xadd', $n, 2, 'load.step' => 16, 'machine.keep_ps' => 1_000_000), 90_000 + (2 * $n - 1) * 8_000 + 5_000,
	'no window between threads of a core');

my $kept = lines('cas', $n, 4, %one_group, 'machine.keep_ps' => 20_000);
is(value($kept, 'sum'), 4 * $n, 'compare-and-swap: nothing is lost');
cmp_ok(region($kept, 'words', 'atomics'), '>', 4 * $n, 'some of them fail');
cmp_ok(value($kept, 'last_ps'), '<', value(lines('cas', $n, 4, %one_group), 'last_ps') / 2,
	'and more than half as many again without a window');
my $or = lines('fetch_or', $n, 1);
is(region($or, 'words', 'loads'), $n, 'fetch_or is a load');
is(region($or, 'words', 'atomics'), $n, 'and a compare-and-swap');
takes($or, 90_000 + $n * 8_000, 'and takes as long');

# Stores go to the store buffer, until a locked instruction waits for it.
takes(lines('store', $n, 1), $n * 1_000, 'stores do not wait');
is(value(lines('store', $n, 1), 'stall_ps'), 0, 'not at all');
is(value(lines('store_last', 1, 8), 'sum'), 100, 'a CPU that is served before a store does not see it');
takes(lines('store_xadd', $n, 2), 230_000 + ($n - 2) * 40_000, 'a locked instruction waits for the stores before it');

# A prefetch takes its time while the fiber works.
takes(lines('prefetch_store', 10, 1, 'load.work_ps' => 100_000), 10 * (100_000 + 1_000 + 5_000), 'prefetched in time');
takes(lines('prefetch_store', 10, 1, 'load.work_ps' => 50_000), 90_000 + 5_000 + 9 * (50_000 + 1_000 + 5_000),
	'prefetched too late');

# Memory of another node (the words are in node 0's)
takes(lines('xadd', $n, 2, 'load.stride' => 64, 'load.step' => 4), 110_000 + $n * 5_000, 'memory of the same socket');
takes(lines('xadd', $n, 2, 'load.stride' => 64, 'load.step' => 8), 150_000 + $n * 5_000, 'memory of the other socket');

# The last-level cache: 1024 descriptors have 64 kB.
for my $case ([ 0, 0 ], [ 1 << 20, 0 ], [ 1 << 13, 1 ])
{
	my ($llc, $misses) = @$case;
	my $output = play(config(load => 'alloc', strategy => 'stock', buffers => 1024, warmup => 2048,
			allocations => 4096, bgwriter_ms => 0, 'machine.llc_bytes' => $llc));
	is(region($output, 'descriptors', 'transfers'), 4096 * $misses, "last-level cache of $llc bytes");
}

# Spinlocks exclude each other, and none starves
is(value(lines('spinlock', $n, 8, 'machine.keep_ps' => 20_000), 'sum'), 8 * $n, 'spinlock: nothing is lost');

# ---- CPUs, sleep, bandwidth ----

takes(lines('work', 100, 2, 'load.step' => 0, 'load.work_ps' => 1_000_000), 200_000_000 + 19 * 500_000,
	'two fibers on one CPU: 20 time slices, 19 switches');
takes(lines('work', 100, 2, 'load.step' => 1, 'load.work_ps' => 1_000_000), 100_000_000, 'on two CPUs');
takes(lines('sleep', 10, 1, 'load.work_ps' => 5_000_000), 10 * (500_000 + 5_000_000 + 3_000_000), 'sleep');
takes(lines('sleep', 10, 3, 'load.work_ps' => 5_000_000), 10 * (500_000 + 5_000_000 + 3_000_000), 'sleepers share nothing');
my $wake = value(lines('wake', 1000, 2), 'last_ps');
ok(abs($wake / (1000 * (1_000_000 + 3_000_000)) - 1) < 0.01, "two fibers wake each other ($wake ps)");

my %copies = ('load.bytes' => 8000, 'machine.copy_bytes_per_s' => 8_000_000_000);
takes(lines('copy', 10, 4, %copies), 10 * 1_000_000, 'copies at the speed of a core');
takes(lines('copy', 10, 4, %copies, 'machine.bandwidth_bytes_per_s' => 16_000_000_000), 4 * 10 * 500_000,
	'copies that share the bandwidth of a node');

# ---- each has static variables of its own ----

my $private = play(config(load => 'private', backends => 40, 'load.times' => 500), build('O2', "--loads=$top/sim/test/private.c"));
is(value($private, 'checked'), 40 * (500 + 2 * 301 + 3), 'static variables of 40 fibers, half of which begin later');
cmp_ok(value($private, 'slept'), '>', 10_000, 'while others run');
is(value($private, 'wrong'), 0, 'are as each has left them');

# ---- the same each time ----

# 192 cores in six nodes, with chance, and everything that has a limit.
my %large = ('machine.cores' => 192, 'machine.cores_per_group' => 16, 'machine.groups_per_node' => 2,
	'machine.nodes_per_socket' => 3, 'machine.keep_ps' => 20_000, 'machine.instruction_ps' => 100,
	'machine.llc_bytes' => 1 << 20);
my @strategies = $version =~ /^strategy (\S+)$/mg;
cmp_ok(scalar(@strategies), '>=', 5, "strategies: @strategies");
for my $strategy (@strategies)
{
	my $config = config(%large, load => 'alloc', strategy => $strategy, 'load.usage' => 2, backends => 200,
		buffers => 16384, warmup => 5_000, allocations => 15_000, placement => 'random', bgwriter_ms => 1);
	my $first = play($config);

	ok($first eq play($config) && $first eq play($config), "$strategy: three runs are the same to the last digit");
	is(play($config, $unoptimized), $first, "$strategy: and so is one of an engine without optimization");
	isnt(play({ %$config, seed => 2 }), $first, "$strategy: another seed, another run");
	is(value($first, 'allocations'), 15_000, "$strategy: as many allocations as wanted");
	next if $strategy =~ /^clock2q/;    # tags and window ends, see below
	cmp_ok(abs(region($first, 'descriptors', 'atomics') - region($first, 'descriptors', 'stores') - ($strategy =~ m{^(batched|partitioned)$} ? region($first, 'descriptors', 'atomics') - 15_000 : 0)),
		'<=', 200, "$strategy: each header that is locked is unlocked");
}

# ---- strategies do what they are for ----

my %alloc = (%large, load => 'alloc', backends => 64, buffers => 65536, warmup => 20_000, allocations => 64_000);
my $stock = play(config(%alloc, strategy => 'stock'));
my $batched = play(config(%alloc, strategy => 'batched', batch => 64));
cmp_ok(region($stock, 'hand', 'atomics'), '>=', 2 * 63_900, 'stock: two atomics an allocation on its hand\'s line');
cmp_ok(region($batched, 'hands', 'atomics'), '<', 64_000 / 64 * 1.25, 'batched: one in 64');
cmp_ok(value($batched, 'allocations_per_s'), '>', 10 * value($stock, 'allocations_per_s'), 'and it shows');

# clock2q has two more hands, and is told of loads.  A quarter of them are pages that
# it remembers.  Each uses a slot, by plain stores.
my $clock2q = play(config(%alloc, strategy => 'clock2q'));
is(value($clock2q, 'slots_of_lease'), 16, 'clock2q: leases of 16 slots');
cmp_ok(region($clock2q, 'c2q_hands', 'atomics'), '<', 64_000 * 3 / 16, 'clock2q: less than three atomics in 16 on the line of its hands: two tickets, and the length at times');
cmp_ok(region($clock2q, 'c2q_hands', 'atomics'), '>', 64_000 / 16, 'and more than one');
cmp_ok(abs(value($clock2q, 'returned_percent') - 22), '<', 5, 'a quarter of the pages return, but at the start');
cmp_ok(region($clock2q, 'c2q_slots', 'stores'), '>', 64_000, 'slots are filled');
is(region($clock2q, $_, 'atomics'), 0, "without atomics: $_") for qw(c2q_slots c2q_places);
cmp_ok(region($clock2q, 'c2q_places', 'stores'), '>', 64_000, 'their buffers get places, and those that are judged lose theirs');
cmp_ok(region($clock2q, 'c2q_ghosts', 'stores'), '>', 2 * 64_000, 'a ghost is two stores');
cmp_ok(value($clock2q, 'allocations_per_s'), '>', 5 * value($stock, 'allocations_per_s'), 'clock2q is much faster than stock');
cmp_ok(value($clock2q, 'allocations_per_s'), '<', value($batched, 'allocations_per_s'), 'and slower than batched');
refuses({ load => 'uneven', strategy => 'clock2q' }, 'needs a load that loads pages');

# With partitions, nobody waits for the hands of others.
my %many = (%alloc, backends => 192, buffers => 196_608, warmup => 30_000, 'load.work_ps' => 200_000);
my ($one, $parts) = map { play(config(%many, strategy => $_)) } 'clock2q', 'clock2q_partitioned';
cmp_ok(region($parts, 'c2q_hands', 'stall_ps'), '<', region($one, 'c2q_hands', 'stall_ps') / 4, 'clock2q_partitioned: hardly a wait for hands of slots');
cmp_ok(value($parts, 'allocations_per_s'), '>', 1.5 * value($one, 'allocations_per_s'), 'and it shows');
cmp_ok(value($parts, 'local_percent'), '>', 95, 'allocations are local');

# All backends on one node of six: laps send five of six allocations elsewhere.
my %one_node = (%alloc, strategy => 'partitioned', backends => 12, partitions => 6, placement => 'compact',
	bgwriter_ms => 1, warmup => 0, allocations => 1_000_000, 'load.work_ps' => 100_000);
my $balanced = play(config(%one_node));
my $alone = play(config(%one_node, balance => 0));
cmp_ok(value($alone, 'local_percent'), '>', 99, 'without balance, allocations are local');
cmp_ok(value($alone, 'busiest_partition'), '>', 5.9, 'and of one partition');
cmp_ok(value($balanced, 'busiest_partition'), '<', 1.05, 'with it, they are spread over all');
cmp_ok(value($balanced, 'local_percent'), '<', 20, 'most of them on other nodes');

# ---- the balance of partitions, against one clock ----

sub uneven
{
	my (%settings) = @_;

	return play(config(%large, load => 'uneven', strategy => 'partitioned', backends => 24, buffers => 24576,
			placement => 'scatter', bgwriter_ms => 1, warmup => 49_152, allocations => 147_456,
			'load.work_ps' => 1_000_000, %settings));
}

# A partition whose pages are used again serves what one clock would take from it,
# not its part of the allocations: 1 of 2 pages that are used 3 times is a fifth.
my %two = ('machine.nodes_per_socket' => 1, 'machine.groups_per_node' => 6);
my @hot = ([ 1, 2, 1, %two ], [ 1, 2, 3, %two ], [ 1, 2, 5, %two ], [ 1, 6, 2 ], [ 3, 12, 4 ]);
for my $case (@hot)
{
	my ($hot, $partitions, $usage, @machine) = @$case;
	my $what = "$hot of $partitions partitions used $usage times";
	my $output = uneven(partitions => $partitions, 'load.hot' => $hot, 'load.usage' => $usage, @machine);
	my $share = 100 * $hot / ($hot + ($partitions - $hot) * ($usage + 1));

	cmp_ok(value($output, 'share_error'), '<', 2, sprintf('%s: shares are as by one clock', $what));
	cmp_ok(abs(value($output, 'hot_percent') - $share), '<', 2, sprintf('%s: they serve %.1f %%', $what, $share));
	cmp_ok(value($output, 'laps_apart'), '<', 0.25, "$what: hands are within a quarter lap");
}
my $unbalanced = uneven(partitions => 2, balance => 0, 'load.hot' => 1, 'load.usage' => 3, %two);
cmp_ok(value($unbalanced, 'share_error'), '>', 20, 'without balance, they are not');
cmp_ok(value($unbalanced, 'laps_apart'), '>', 3, 'and hands are laps apart');

# Load that goes from node to node, and load that is everywhere
my $moving = uneven(partitions => 6, 'load.busy_nodes' => 1, 'load.shift_ps' => 1_000_000_000);
cmp_ok(value($moving, 'share_error'), '<', 2, 'load that moves: shares are as by one clock');
cmp_ok(value($moving, 'laps_apart'), '<', 0.25, 'hands are within a quarter lap');
cmp_ok(value(uneven(partitions => 6, 'load.busy_nodes' => 1, 'load.shift_ps' => 1_000_000_000, balance => 0),
		'laps_apart'), '>', 0.25, 'without balance, they are not');
my $even = uneven(partitions => 6);
cmp_ok(value($even, 'local_percent'), '>=', 99, 'even load: allocations are local');
cmp_ok(value($even, 'laps_apart'), '<', 0.25, 'and hands are together');

# ---- scans ----

# One process that scans a table which is larger than the pool
my $scan = play(config(%large, backends => 1, strategy => 'stock', bgwriter_ms => 0, load => 'scans',
		'load.pages' => 512, buffers => 307, warmup => 1000, allocations => 1024));
cmp_ok(abs(value($scan, 'pages') / 1024 - 1), '<', 0.02, 'a scan: every page is missed');
is(value($scan, 'hits'), 0, 'a scan: and none is found');

# ---- against measurements ----

my $machine = decode_json(slurp_file("$top/sim/machines/gold5215.json"))->{values};
my %gold = map { ("machine.$_" => $machine->{$_}[0]) } keys %$machine;
for my $case ([ 20, 7.4 ], [ 1, 48 ], [ 10, 136 ])
{
	my ($step, $published) = @$case;
	my $ping = value(play({ %gold, load => 'lines', 'load.op' => 'ping', 'load.times' => 5000, 'load.step' => $step,
				backends => 2, seed => 1 }), 'last_ps') / 10_000_000;
	cmp_ok(abs($ping / $published - 1), '<', 0.05, sprintf('ping-pong, CPUs %d apart: %.1f ns published, %.1f simulated',
			$step, $published, $ping));
}
my @fitted = grep { $machine->{$_}[1] =~ /^fitted/ } sort keys %$machine;
cmp_ok(scalar(@fitted), '<=', 5, "fitted: @fitted");
for (split /\n/, slurp_file("$top/sim/published/freund.csv"))
{
	my ($line, $op, $bits, $published) = /^(shared|own),(cmpxchg|lock_add|xadd),(\d+),([\d.]+)$/ or next;
	my $ours = value(play({ %gold, load => 'counters', 'load.op' => $op, 'load.bits' => $bits,
				'load.shared' => $line eq 'shared' ? 1 : 0, backends => 20, seed => 1,
				'load.ms' => $line eq 'shared' ? 16 : 1 }), 'ops_per_s') / 1e6;
	my $error = 100 * ($ours / $published - 1);

	cmp_ok(abs($error), '<=', 10, sprintf('%s line, %s, %d bits: %.1f M/s published, %.1f simulated, %+.1f %%',
			$line, $op, $bits, $published, $ours, $error));
}

# ---- speed and memory ----

sub how_large
{
	my ($what, %settings) = @_;
	my $config = config(%large, load => 'alloc', strategy => 'partitioned', warmup => 20_000,
		allocations => 30_000, %settings);
	my ($stdout, $stderr) = ('', '');
	my $began = time;

	my $text = join('', map { "$_ $config->{$_}\n" } sort keys %$config);
	run([ $sim, '--memory' ], '<', \$text, '>', \$stdout, '2>', \$stderr) or die "sim failed: $stderr";
	my ($kb) = $stderr =~ /^memory_kb (\d+)$/m;
	cmp_ok($kb, '<=', 1 << 20, sprintf('%s: %d MB, %.1f s with %d events', $what, $kb >> 10, time - $began,
			value($stdout, 'events')));
}

how_large('384 cores, 512 backends, 2 million buffers', 'machine.cores' => 384, 'machine.groups_per_node' => 4,
	backends => 512, buffers => 1 << 21);
how_large('1024 cores, 1024 backends, 2 million buffers', 'machine.cores' => 1024, 'machine.groups_per_node' => 4,
	'machine.nodes_per_socket' => 8, backends => 1024, buffers => 1 << 21);

done_testing();
