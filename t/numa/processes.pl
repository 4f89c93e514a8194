# The hook for processes: it is called in each process that has a PGPROC, auxiliary
# ones and I/O workers included; PGPROCs are chosen by node, none is lost, and the
# reserved connections stay reserved; a server with EXEC_BACKEND is refused.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

my $max = 20;
my $node = sweep_node('processes', conf => qq{
shared_buffers = 16MB
huge_pages = off
autovacuum = on
autovacuum_naptime = 1h
io_method = worker
io_workers = 4
max_connections = $max
superuser_reserved_connections = 3
pg_sweep.strategy = partitioned
pg_sweep.numa_placement = off
pg_sweep.numa_affinity = off
pg_sweep.numa_local_memory = off
pg_sweep.numa_nodes = ''
pg_sweep.numa_debug_nodes = 0
});
my ($cpus) = slurp_file('/proc/self/status') =~ /^Cpus_allowed_list:\s*(\S+)$/m;
my $preload;

sub query { return $node->safe_psql('postgres', $_[0]); }

sub start_with
{
	my ($settings, %shim) = @_;

	$node->adjust_conf('postgresql.conf', "pg_sweep.$_", $settings->{$_}) foreach sort keys %$settings;
	local %ENV = (%ENV, %shim);
	$ENV{LD_PRELOAD} = $preload if %shim;
	$node->start;
	return;
}

sub cpus_of
{
	my ($pid) = @_;
	return (slurp_file("/proc/$pid/status") =~ /^Cpus_allowed_list:\s*(\S+)$/m)[0];
}

sub pids_of
{
	my ($type) = @_;
	return split /\n/, query("SELECT pid FROM pg_stat_activity WHERE backend_type = '$type' ORDER BY pid");
}

# ---- compiling for EXEC_BACKEND ----

my $include = $node->config_data('--includedir-server');
my $file = "$PostgreSQL::Test::Utils::tmp_check/exec_backend.c";
append_to_file($file, "#include \"postgres.h\"\n#include \"compat.h\"\n");
my @compile = ('gcc', '-fsyntax-only', '-D_GNU_SOURCE', '-I' . sweep_root() . '/extension', "-I$include", $file);
SKIP:
{
	skip 'there is no gcc', 2 if system('command -v gcc >/dev/null 2>&1') != 0;
	command_ok(\@compile, 'compat.h compiles');
	command_fails_like([ @compile, '-DEXEC_BACKEND' ], qr/#error "pg_sweep needs children that inherit its state by fork/,
		'compat.h refuses EXEC_BACKEND, where children would not have the state of the postmaster');
}

# ---- binding, on emulated nodes ----

SKIP:
{
	skip 'this machine has one CPU', 1 if $cpus =~ /^\d+$/;

	start_with({ numa_affinity => 'spread', numa_debug_nodes => 2 });
	my %bound;
	$bound{ cpus_of($_) }++ foreach pids_of('io worker');
	is(scalar(keys %bound), 2, 'spread: I/O workers are bound to the nodes') or diag explain \%bound;
	ok(!exists $bound{$cpus}, 'spread: each I/O worker to one');
	foreach my $type ('checkpointer', 'background writer', 'walwriter', 'autovacuum launcher')
	{
		is(cpus_of(pids_of($type)), $cpus, "spread: $type runs where it may");
	}
	$node->stop;

	start_with({ numa_affinity => 'off' });
	is(cpus_of($_), $cpus, 'off: an I/O worker runs where it may') foreach pids_of('io worker');
	$node->stop;
}
$node->adjust_conf('postgresql.conf', 'pg_sweep.numa_debug_nodes', 0);

# ---- the answers of a kernel ----

my $source = sweep_root() . '/test/numa/shim/numa_shim.c';
$preload = "$PostgreSQL::Test::Utils::tmp_check/numa_shim.so";
if (system("gcc -shared -fPIC -o '$preload' '$source' -ldl -lnuma >/dev/null 2>&1") != 0)
{
	note('the shim does not compile here (gcc, libnuma-dev)');
	done_testing();
	exit;
}

# Local memory shows which processes call the hook.  3 is MPOL_INTERLEAVE, 4 MPOL_LOCAL.
my $mbind = "$PostgreSQL::Test::Utils::tmp_check/mbind.log";
my $set = "$PostgreSQL::Test::Utils::tmp_check/set_mempolicy.log";
unlink $set, $mbind;
start_with({ numa_placement => 'partition', numa_local_memory => 'on' },
	SHIM_NODES => 2, SHIM_POLICY => '3:3', SHIM_LOG => $mbind, SHIM_SET_LOG => $set);
my @running = split /\n/, query(q{SELECT pid || ' ' || backend_type FROM pg_stat_activity ORDER BY 1});
# Core's shared memory has a policy of its own, so that a process can lose its own.
my ($address, $size, $how) = (slurp_file($mbind) =~ /\A(\d+) (\d+) (.*)$/m);
is($how, '3 3 0 works', 'local_memory: first, memory is interleaved');
is($size, query(q{SELECT sum(allocated_size) FROM pg_shmem_allocations}), 'local_memory: all shared memory does');
my %calls;
$calls{$_}++ foreach map { join ' ', (split)[ 0, 1 ] } split /\n/, slurp_file($set);
cmp_ok(scalar @running, '>=', 1 + 4 + 4, 'local_memory: there are ' . @running . ' processes');
foreach my $process (@running)
{
	my ($pid, $type) = split / /, $process, 2;
	is($calls{"$pid 4"}, 1, "local_memory: $type has set its policy once");
}
$node->stop;

# One node of several is a placement, too.
unlink $set;
start_with({ numa_nodes => '1' }, SHIM_NODES => 2, SHIM_POLICY => '3:3', SHIM_LOG => $mbind, SHIM_SET_LOG => $set);
my $checkpointer = (pids_of('checkpointer'))[0];
like(slurp_file($set), qr/^$checkpointer 4 /m, 'local_memory: with one node named, a process sets its policy');
$node->stop;
$node->adjust_conf('postgresql.conf', 'pg_sweep.numa_nodes', q{''});

# The postmaster's own policy, which its children inherit: interleaved while shared
# memory is made, and no longer.  By the mode and nodes of each call.
sub policies
{
	my ($pid) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;
	my $calls = join ', ', map { join ' ', (split)[ 1 .. 3 ] } grep { /^$pid / } split /\n/, -e $set ? slurp_file($set) : '';
	# libnuma tries out mode 5 when it is loaded, and restores what was there
	return $calls =~ s/^(?:5 1 \w+, \w+ \w+ \w+(?:, |$))+//r;
}

my $restore = 0;
# The number of the call that restores the policy, counted as the shim does: from the
# first one of libnuma in this program
sub calls_before_restoring
{
	my ($pid) = slurp_file($node->data_dir . '/postmaster.pid') =~ /^(\d+)/;
	my @calls = grep { /^$pid / } split /\n/, slurp_file($set);
	my ($first) = (grep { $calls[$_] =~ / 5 1 / } 0 .. $#calls)[-1] // 0;
	my ($last) = (grep { $calls[$_] =~ / 2 3 works/ } 0 .. $#calls)[-1];
	return $last - $first + 1;
}

foreach my $case (
	[ 'a policy that binds, with huge pages', { numa_placement => 'partition' }, '2:3', '' ],
	[ 'a policy that binds', { numa_placement => 'partition' }, '2:3', '3 3 works, 2 3 works' ],
	[ 'the default policy', { numa_placement => 'partition' }, '0:0', '3 3 works, 0 0 works' ],
	[ 'a policy that binds, interleaved', { numa_placement => 'interleave' }, '2:a', '3 a works, 2 a works' ],
	[ 'interleaving while shared buffers have no policy of their own', { numa_placement => 'off' }, '3:3', '' ])
{
	my ($title, $settings, $policy, $expected) = @$case;
	unlink $set, $mbind;
	# Huge pages are reserved by the policy of the process that maps them.
	$node->adjust_conf('postgresql.conf', 'huge_pages', $title =~ /huge/ ? 'try' : 'off');
	start_with($settings, SHIM_NODES => $policy =~ /a/ ? 4 : 2, SHIM_POLICY => $policy, SHIM_LOG => $mbind, SHIM_SET_LOG => $set);
	query('SELECT 1');
	$restore = calls_before_restoring() if $expected =~ /, 2 3/;
	is(policies(), $expected, "the postmaster's own policy: $title");
	if ($policy eq '2:3')
	{
		my $offset = -s $node->logfile;
		kill 'KILL', pids_of('walwriter');
		$node->wait_for_log(qr/pg_sweep placed \d+ kB/, $offset);
		wait_until_back($node) or die 'the server does not come back';
		is(policies(), $expected && "$expected, $expected", "the postmaster's own policy: $title, after a crash");
	}
	$node->stop;
	unlike(-e $set ? slurp_file($set) : '', qr/ 4 /, "local_memory: $title stays");
}

# A policy that cannot be restored
unlink $set;
start_with({ numa_placement => 'partition' },
	SHIM_NODES => 2, SHIM_POLICY => '2:3', SHIM_LOG => $mbind, SHIM_SET_LOG => $set, SHIM_DENY => 'set_mempolicy:' . $restore);
like(slurp_file($node->logfile), qr/WARNING:  pg_sweep could not restore the memory policy that the server was started with: Operation not permitted/,
	'restoring fails: a warning');
like(policies(), qr/3 3 works, 2 3 fails, 0 0 works/, "restoring fails: then it is the default");
$node->stop;
$node->adjust_conf('postgresql.conf', 'pg_sweep.numa_local_memory', 'off');

# ---- PGPROCs ----

# The number of the PGPROC is part of the virtual transaction id.
my $procno = q{
SELECT split_part(virtualtransaction, '/', 1) FROM pg_locks WHERE pid = pg_backend_pid() LIMIT 1};

sub connect_as
{
	my ($user, $n) = @_;
	return map { $node->background_psql('postgres', extra_params => [ '-U', $user ]) } 1 .. $n;
}

# Takes all PGPROCs of clients; returns their numbers in the order of connecting
sub take_all
{
	my ($title) = @_;
	my @sessions = connect_as('plain', $max - 3);

	$node->connect_fails('user=plain', "$title: the last three are reserved",
		expected_stderr => qr/remaining connection slots are reserved for roles with the SUPERUSER attribute/);
	push @sessions, connect_as('boss', 3);
	$node->connect_fails('user=boss', "$title: and then there are no more", expected_stderr => qr/sorry, too many clients already/);

	my @procnos = map { $_->query_safe($procno) } @sessions;
	my @bound = map { $_->query_safe(q{
SELECT (regexp_match(pg_read_file('/proc/self/status'), 'Cpus_allowed_list:\s*(\S+)'))[1]}) } @sessions;
	$_->quit foreach @sessions;
	is_deeply([ sort { $a <=> $b } @procnos ], [ 0 .. $max - 1 ], "$title: each PGPROC was taken once (@procnos)");
	# the last to end gives its PGPROC back after psql has gone
	$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'client backend'})
	  or die 'sessions do not end';
	return (\@procnos, \@bound);
}

# The nodes that PGPROCs are divided among
my $owners = q{
SELECT string_agg(DISTINCT wanted_node::text, ' ') FROM pg_sweep_numa_residence WHERE what IN ('procs', 'fast-path locks')};

# all processes on the first of three nodes: its PGPROCs come first, then those of the
# others
start_with({ numa_placement => 'partition' },
	SHIM_NODES => 3, SHIM_SPLIT => 3, SHIM_CPUS => 3, SHIM_LOG => '/dev/null');
query(q{
CREATE ROLE plain LOGIN; CREATE ROLE boss LOGIN SUPERUSER;
GRANT pg_read_server_files TO plain; GRANT EXECUTE ON FUNCTION pg_read_file(text) TO plain});
query('CREATE EXTENSION pg_sweep');
is(query($owners), '0 1 2', 'three nodes: each has PGPROCs');
my ($procnos, $bound) = take_all('three nodes');
my @of = map { int($_ * 3 / $max) } @$procnos;
is_deeply(\@of, [ sort { $a <=> $b } @of ], "three nodes: the own node's PGPROCs come first, then the others' (@of)");

# processes that come and go
$node->pgbench('--no-vacuum --client=8 --jobs=2 --connect --transactions=40 --username=boss',
	0, [qr/processed: 320/], [], 'connections come and go', { come_and_go => 'SELECT 1;' });
take_all('after many');

# after a crash, core has made its lists anew
my $offset = -s $node->logfile;
kill 'KILL', pids_of('walwriter');
$node->wait_for_log(qr/pg_sweep placed \d+ kB/, $offset);
wait_until_back($node) or die 'the server does not come back';
take_all('after a crash');
$node->stop;

# Nodes that have memory and no CPUs: no process waits there.
start_with({ numa_placement => 'partition' },
	SHIM_NODES => 4, SHIM_SPLIT => 2, SHIM_CPUS => 2, SHIM_LOG => '/dev/null');
is(query(q{SELECT string_agg(cpus::text, ' ' ORDER BY node) FROM pg_sweep_nodes}), '1 1 0 0', 'no CPUs: on two of four nodes');
is(query($owners), '0 1', 'no CPUs: PGPROCs are divided among the others');
($procnos, $bound) = take_all('no CPUs');
@of = map { int($_ * 2 / $max) } @$procnos;
is_deeply(\@of, [ sort { $a <=> $b } @of ], "no CPUs: the own node's come first (@of)");
$node->stop;
start_with({ numa_placement => 'partition' }, SHIM_NODES => 3, SHIM_LOG => '/dev/null');
is(query($owners), '0', 'one node with CPUs: it has all PGPROCs');
take_all('one node with CPUs');
$node->stop;

SKIP:
{
	skip 'this machine has not two CPUs', 1 unless $cpus eq '0-1';

	start_with({ numa_placement => 'partition', numa_affinity => 'spread' },
		SHIM_NODES => 2, SHIM_SPLIT => 2, SHIM_LOG => '/dev/null');
	my @sessions = connect_as('boss', 8);
	my @own = map {
		int($_->query_safe($procno) * 2 / $max) . ' ' . $_->query_safe(q{
SELECT (regexp_match(pg_read_file('/proc/self/status'), 'Cpus_allowed_list:\s*(\S+)'))[1]})
	} @sessions;
	is(scalar(grep { $_ eq '0 0' } @own), 4, 'spread: four sessions run on node 0 and have a PGPROC of it');
	is(scalar(grep { $_ eq '1 1' } @own), 4, 'spread: and four on node 1') or diag "@own";
	$_->quit foreach @sessions;
	$node->stop;
}

is_deeply([ unexpected_log_lines($node, 0, qr/remaining connection slots|too many clients|in recovery mode|not yet accepting|is starting up|terminating connection/) ],
	[], 'no errors in the log');
done_testing();
