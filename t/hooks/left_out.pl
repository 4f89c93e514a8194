# Each patch of the series except the first can be left out.  pg_sweep then names the
# missing patch, and features that do not need it work.  A server without the optional
# patch is complete: only what needs that patch names it.
#
# For a library, a server that lacks a patch is one that does not export its symbols.
# Such a server is a copy of the program under test in which only the names of these
# symbols are changed.

use strict;
use warnings FATAL => 'all';

use File::Path qw(make_path remove_tree);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

my $full = PostgreSQL::Test::Cluster->new('full');
my $home = $full->config_data('--bindir') =~ s{/bin$}{}r;

# A copy of the program finds its files in the folders next to its own
plan skip_all => 'the server is not installed in a folder of its own'
  if grep { $full->config_data($_) !~ m{^\Q$home\E/(?:lib|share)/} } ('--pkglibdir', '--sharedir');

# A copy of the server under test that lacks symbols
sub server_without
{
	my ($name, $optional, @symbols) = @_;
	my $prefix = "$PostgreSQL::Test::Utils::tmp_check/without-$name";
	my $postgres = "$prefix/bin/postgres";

	remove_tree($prefix);
	make_path($prefix);
	# Programs find their files by their own place, with links resolved
	system_or_bail('cp', '-a', "$home/bin", "$prefix/bin");
	foreach my $dir ('lib', 'share')
	{
		symlink("$home/$dir", "$prefix/$dir") or die "$prefix/$dir: $!";
	}

	open my $in, '<:raw', $postgres or die "$postgres: $!";
	my $program = do { local $/; <$in> };
	close $in;
	foreach my $symbol (@symbols)
	{
		my $other = 'x' . substr($symbol, 1);
		my $found = $program =~ s/\0\Q$symbol\E\0/\0$other\0/g;
		# the server under test may lack the optional patch
		cmp_ok($found, '>', 0, "$name: $symbol is there") unless $optional;
	}
	unlink $postgres;
	open my $out, '>:raw', $postgres or die "$postgres: $!";
	print $out $program;
	close $out or die "$postgres: $!";
	chmod 0755, $postgres or die "$postgres: $!";
	return $prefix;
}

# Start it, with pg_sweep preloaded and its objects created
sub start_without
{
	my ($patch, $optional, $conf, @symbols) = @_;
	my $name = $patch =~ s/-.*//r;
	my $node = PostgreSQL::Test::Cluster->new("without_$name", install_path => server_without($patch, $optional, @symbols));

	$node->init;
	$node->append_conf('postgresql.conf', "shared_buffers = 4MB\nautovacuum = off\nshared_preload_libraries = 'pg_sweep'\n$conf");
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION pg_sweep');
	churn_setup($node);
	return $node;
}

sub refused_with
{
	my ($node, $statement, $pattern, $title) = @_;
	my ($ret, $stdout, $stderr) = $node->psql('postgres', $statement);

	is($ret, 3, "$title is refused");
	like($stderr, $pattern, 'naming the patch');
	return;
}

sub finish
{
	my ($node, $patch, @expected) = @_;

	is_deeply([ unexpected_log_lines($node, 0, @expected) ], [], "without $patch: nothing else in the log");
	$node->stop;
	remove_tree("$PostgreSQL::Test::Utils::tmp_check/without-$patch");
	return;
}

# ---- patches without which the rest works ----

# in_file: a parameter in the file that is refused, as the log has it; column: a
# column of pg_sweep_status, and its value; empty: views without rows; refused:
# statements, and the error
my @cases = (
	{
		patch => 'lwlock-wait-hooks',
		symbols => ['LWLockWait'],
		conf => 'pg_sweep.lwlock_policy = lockless',
		in_file => '"pg_sweep.lwlock_policy": "lockless"',
		column => [ 'lwlock_policy IS NULL', 't' ],
		empty => [qw(pg_sweep_lwlock_waits pg_sweep_lwlock_policies)],
		refused => [ map { "SELECT pg_sweep_set_lwlock_policy('$_')" } 'stock', 'lockless' ],
		error => 'the server lacks the core patch "lwlock-wait-hooks"',
	},
	{
		patch => 'numa-placement-hooks',
		symbols => ['ProcPlacement'],
		conf => 'pg_sweep.lwlock_policy = lockless_spin',
		column => [ 'lwlock_policy', 'lockless_spin' ],
		refused => [
			map { "ALTER SYSTEM SET pg_sweep.$_" } "numa_affinity = 'spread'", 'numa_local_memory = on'
		],
	},
	{
		patch => 'pins-private-refcount',
		symbols => ['ShowPrivateRefCount'],
		conf => 'pg_sweep.lwlock_policy = lockless',
		column => [ 'lwlock_policy', 'lockless' ],
		empty => ['pg_sweep_pins'],
	},
	{
		patch => 'ring-flush-hooks',
		symbols => [qw(GetAccessStrategyRing PinBufferToWrite RingFlush)],
		conf => 'pg_sweep.ring_eager_flush = on',
		in_file => '"pg_sweep.ring_eager_flush": 1',
		column => [ 'ring_eager_flush IS NULL', 't' ],
		empty => ['pg_sweep_ring'],
		refused => ['SET pg_sweep.ring_eager_flush = on'],
	},
	{
		patch => 'hit-sampling',
		optional => 1,
		symbols => ['SampleHits'],
		conf => "pg_sweep.numa_debug_nodes = 2\npg_sweep.numa_sample_hits = 1",
		in_file => '"pg_sweep.numa_sample_hits": 1',
		column => [ 'numa_sample_hits IS NULL', 't' ],
		empty => ['pg_sweep_numa_hits'],
		refused => ['ALTER SYSTEM SET pg_sweep.numa_sample_hits = 1000'],
		error => 'DETAIL:  The server lacks the optional core patch "hit-sampling"\.\n'
		  . 'HINT:  Use core-hooks/apply with --with hit-sampling, and build the server again\.',
	});

# of the tables of churn_setup(): 25 with 800 rows each
my $sum = 25 * (800 * 801 / 2 + 800 * 900);
foreach my $case (@cases)
{
	my ($patch, $in_file) = @$case{ 'patch', 'in_file' };
	my ($column, $value) = @{ $case->{column} };
	my $optional = $case->{optional};
	my $missing = 'The server lacks the ' . ($optional ? 'optional ' : '') . "core patch \"$patch\".";
	my $note = $optional ? '' : $missing;
	my $node = start_without($patch, $optional, "$case->{conf}\npg_sweep.strategy = batched\n", @{ $case->{symbols} });

	like(
		slurp_file($node->logfile),
		qr/WARNING:  invalid value for parameter \Q$in_file\E\n.*DETAIL:  \Q$missing\E/,
		"without $patch: the parameter in the file is refused, naming it")
	  if defined $in_file;
	is( $node->safe_psql('postgres', "SELECT state, note, strategy, $column FROM pg_sweep_status"),
		"ok|$note|batched|$value",
		"without $patch: the rest is active, and the missing patch is " . ($optional ? 'no lack' : 'named'));
	is(churn($node), $sum, "without $patch: the data are right");
	cmp_ok(counter($node, 'batched', 'allocations'), '>', 1000, "without $patch: batched allocates");
	my $error = $case->{error} // "DETAIL:  \Q$missing\E";
	refused_with($node, $_, qr/$error/, $_)
	  foreach @{ $case->{refused} // [] };
	is($node->safe_psql('postgres', "SELECT count(*) FROM $_"), 0, "without $patch: $_ is empty")
	  foreach @{ $case->{empty} // [] };
	$node->safe_psql('postgres', 'SELECT pg_sweep_reset_stats()');
	finish($node, $patch, qr/invalid value for parameter|the server lacks the core patch/);
}

# ---- sweep-replacement-hooks ----

my $patch = 'sweep-replacement-hooks';
my $missing = "The server lacks the core patch \"$patch\"; apply core-hooks to its source and build it again.";
my $node = start_without($patch, 0, "pg_sweep.lwlock_policy = lockless\npg_sweep.strategy = batched\n",
	qw(ActivateBufferReplacement SetBufferReplacement GetBufferReplacement SetBufferLoadsWanted StrategyEmptyFreelist SyncOneBuffer));
like(slurp_file($node->logfile),
	qr/WARNING:  pg_sweep does nothing on this server\n.*DETAIL:  \Q$missing\E\n/,
	"without $patch: the log says that nothing is done");
is($node->safe_psql('postgres', 'SELECT state, note FROM pg_sweep_status'),
	"server not patched|$missing", "without $patch: and so does pg_sweep_status");
is(churn($node), $sum, "without $patch: the server works");
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_sweep_pins'), 0, "without $patch: pg_sweep_pins is empty");
refused_with($node, "SELECT $_", qr/the server lacks the core patch "\Q$patch\E"/, $_)
  foreach ("pg_sweep_set_strategy('batched')", "pg_sweep_set_lwlock_policy('lockless')", 'pg_sweep_reset_stats()');
finish($node, $patch, qr/the server lacks the core patch/);

done_testing();
