
# Parameters and the function: what makes a strategy the active one, what does
# not, and what is reported as the cause.  The background writer applies a reload,
# also while its scan is turned off and while it hibernates.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

my $buffers = 512;
my $limit = $buffers / 8;
my $node = sweep_node('main', conf => qq{
shared_buffers = $buffers
bgwriter_delay = 10ms
pg_sweep.strategy = batched
});
sub sql { return $node->safe_psql('postgres', $_[0]); }

$node->start;
sql('CREATE EXTENSION pg_sweep');
churn_setup($node);
my $sum = churn($node);

my $role = sql('SELECT current_user');
my @strategies = strategies($node);

sub status
{
	my ($columns) = @_;

	return sql("SELECT $columns FROM pg_sweep_status");
}

# Change parameters in postgresql.auto.conf, and wait until shared memory shows it
sub set_and_wait
{
	my ($settings, $condition) = @_;

	sql("ALTER SYSTEM SET $_;") for @$settings;
	$node->reload;
	return $node->poll_query_until('postgres', "SELECT $condition FROM pg_sweep_status");
}

# Apply a reload that leaves the strategy alone.  The batch size, which is applied
# after the strategy, shows that it is done.
my $serial = 10;

sub unrelated_reload
{
	$serial++;
	set_and_wait([ "work_mem = '${serial}MB'", "pg_sweep.batch_size = $serial" ],
		"batch_size_configured = $serial")
	  or die 'the reload was not applied';
	return;
}

# Does the active strategy allocate, and no other one?
sub check_allocates
{
	my ($strategy, $title) = @_;
	my %before = map { $_ => counter($node, $_, 'allocations') } @strategies;

	is(churn($node), $sum, "$title: reads what was written");
	cmp_ok(counter($node, $strategy, 'allocations'), '>', $before{$strategy} + 1000,
		"$title: $strategy allocates");
	for my $other (grep { $_ ne $strategy } @strategies)
	{
		is(counter($node, $other, 'allocations'), $before{$other}, "$title: $other does not");
	}
	return;
}

#
# At start
#
is(status('strategy, configured, set_by, set_by_role, generation'),
	'batched|batched|start||1', 'start: as configured');
is(status('buffers, lease_limit, batch_size_configured'),
	"$buffers|$limit|0", 'start: pool and batch');
check_allocates('batched', 'start');

#
# Reload
#
for my $strategy (@strategies, @strategies)
{
	my $before = status('generation');
	my $active = status('strategy');

	ok( set_and_wait(
			["pg_sweep.strategy = $strategy"],
			"configured = '$strategy' AND strategy = '$strategy'"),
		"$strategy: a reload switches");
	if ($strategy eq $active)
	{
		is(status('generation'), $before, "$strategy: active already, so nothing is switched");
	}
	else
	{
		is(status('generation, set_by, set_by_role'), ($before + 1) . '|reload|',
			"$strategy: which is reported as the cause");
	}
	check_allocates($strategy, "$strategy, by reload");
}

#
# The function
#
set_and_wait(['pg_sweep.strategy = stock'], "strategy = 'stock'")
  or die 'could not switch to stock';
for my $strategy (grep { $_ ne 'stock' } @strategies)
{
	is(sql("SELECT pg_sweep_set_strategy('$strategy')"),
		'stock', "$strategy: the function returns what was active");
	is(status('strategy, configured, set_by, set_by_role'), "$strategy|stock|function|$role",
		"$strategy: it leaves the configuration alone");
	check_allocates($strategy, "$strategy, by function");

	unrelated_reload();
	is(status('strategy, configured, set_by'),
		"$strategy|stock|function", "$strategy: a reload of other parameters does not undo it");

	# A reload to the active strategy changes what is configured, not the cause
	ok(set_and_wait(["pg_sweep.strategy = $strategy"], "configured = '$strategy'"),
		"$strategy: the configuration follows");
	is(status('strategy, set_by, set_by_role'),
		"$strategy|function|$role", "$strategy: it was still the function");

	# and a changed one wins over the function
	ok( set_and_wait(
			['pg_sweep.strategy = stock'],
			"strategy = 'stock' AND set_by = 'reload' AND set_by_role IS NULL"),
		"$strategy: a reload that changes the parameter does undo it");

	# not transactional
	sql("BEGIN; SELECT pg_sweep_set_strategy('$strategy'); ROLLBACK");
	is(status('strategy'), $strategy, "$strategy: ROLLBACK does not undo it");
	$node->restart;
	is(status('strategy, configured, set_by, set_by_role, generation'),
		'stock|stock|start||1', "$strategy: a restart returns to what is configured");
}

#
# Values that are refused
#
for my $case (
	[ "pg_sweep.strategy = 'nope'", 'Available values: ' . join(', ', @strategies) ],
	[ 'pg_sweep.batch_size = -1', '-1 is outside the valid range' ],
	[ 'pg_sweep.batch_size = 1025', '1025 is outside the valid range' ])
{
	my ($setting, $reason) = @$case;
	my ($ret, $stdout, $stderr) = $node->psql('postgres', "ALTER SYSTEM SET $setting");

	is($ret, 3, "ALTER SYSTEM SET $setting: refused");
	like($stderr, qr/\Q$reason\E/, "ALTER SYSTEM SET $setting: says why");
	($ret, $stdout, $stderr) = $node->psql('postgres', "SET $setting");
	like($stderr, qr/parameter "pg_sweep\.\w+" cannot be changed now/,
		"SET $setting: not in a session");
}
{
	my ($ret, $stdout, $stderr) =
	  $node->psql('postgres', "\\set VERBOSITY verbose\nSELECT pg_sweep_set_strategy('nope')");

	my $names = join(', ', @strategies, 'auto');
	like(
		$stderr,
		qr/ERROR:  22023: unrecognized buffer replacement strategy "nope"\nHINT:  Available strategies: \Q$names\E\.\n/,
		'pg_sweep_set_strategy: an unknown name is refused');
}

# In the file: a running server keeps its value, a starting one takes the default
sql('ALTER SYSTEM RESET ALL');
$node->append_conf('postgresql.conf',
	"pg_sweep.strategy = batched\npg_sweep.batch_size = 7\npg_sweep.lwlock_policy = lockless");
$node->reload;
$node->poll_query_until('postgres',
	"SELECT strategy = 'batched' AND batch_size_configured = 7 AND lwlock_policy = 'lockless' FROM pg_sweep_status"
) or die 'could not switch to batched';
for my $case (
	[ 'pg_sweep.strategy', 'nope', 'strategy', 'stock' ],
	[ 'pg_sweep.batch_size', '1025', 'batch_size_configured', '0' ],
	[ 'pg_sweep.lwlock_policy', 'nope', 'lwlock_policy', 'stock' ])
{
	my ($parameter, $value, $column, $default) = @$case;
	my $offset = -s $node->logfile;
	my $expected = status($column);

	isnt($expected, $default, "$parameter: is not the default");
	$node->append_conf('postgresql.conf', "$parameter = $value");
	$node->reload;
	$node->wait_for_log(qr/LOG: .*\Q$parameter\E.*$value|LOG: .*$value.*\Q$parameter\E/, $offset);
	$node->wait_for_log(qr/LOG: .*contains errors; unaffected changes were applied/, $offset);
	is(status($column), $expected, "$parameter = $value in the file: the server keeps its value");

	# As with the parameters of any library, core reads the file before it knows
	# the permitted values
	$offset = -s $node->logfile;
	$node->restart;
	like(slurp_file($node->logfile, $offset),
		qr/WARNING: .*\Q$parameter\E.*$value|WARNING: .*$value.*\Q$parameter\E/,
		"$parameter = $value in the file: a start warns");
	is(status($column), $default, "$parameter = $value in the file: and takes the default");
	$node->adjust_conf('postgresql.conf', $parameter, $expected);
	$node->restart;
	is(status($column), $expected, "$parameter: the file is in order again");
}

#
# The size of a lease
#
ok(set_and_wait(['pg_sweep.batch_size = 3'], 'batch_size_configured = 3'),
	'batch_size: a reload is applied');
is(status('batch_size'), 3, 'batch_size: the configured size is in force');
{
	my $query = q{
SELECT allocations, looked_at, leases FROM pg_sweep_strategies WHERE strategy = 'batched'};
	my @before = split /\|/, sql($query);
	churn($node);
	my @after = split /\|/, sql($query);

	cmp_ok($after[0] - $before[0], '>', 1000, 'batch_size: batched allocates');

	# Every look uses a ticket.  A session starts with leases of one and two,
	# and may leave some of its last one unused: three sessions here.
	my $looks = $after[1] - $before[1];
	my $leases = $after[2] - $before[2];
	cmp_ok($leases * 3, '>=', $looks, 'batch_size: a lease has three buffers');
	cmp_ok($leases, '<=', $looks / 3 + 12, 'batch_size: and not fewer');
}
ok(set_and_wait(['pg_sweep.batch_size = 1024'], 'batch_size_configured = 1024'),
	'batch_size: the greatest value');
is(status('batch_size = lease_limit / greatest(backends, 1)'),
	't', 'batch_size: limited by lease_limit');
is(status('lease_limit'), $limit, 'batch_size: which is an eighth of the pool');
check_allocates('batched', 'batch_size 1024');
ok(set_and_wait(['pg_sweep.batch_size = 0'], 'batch_size_configured = 0'),
	'batch_size: automatic again');
cmp_ok(status('batch_size'), '>=', 1, 'batch_size: is known');

#
# With a background writer that does next to nothing
#
ok(set_and_wait([ 'bgwriter_lru_maxpages = 0', 'pg_sweep.strategy = stock' ], "strategy = 'stock'"),
	'bgwriter_lru_maxpages = 0: a reload is applied');
for my $strategy (@strategies, @strategies)
{
	ok( set_and_wait(
			[
				'bgwriter_lru_maxpages = 0',
				"pg_sweep.strategy = $strategy",
				"pg_sweep.batch_size = ${\ ++$serial}"
			],
			"strategy = '$strategy' AND batch_size_configured = $serial"),
		"$strategy, bgwriter_lru_maxpages = 0: a reload is applied");
	check_allocates($strategy, "$strategy, bgwriter_lru_maxpages = 0");
}

my $hibernates = q{
SELECT wait_event = 'BgwriterHibernate' FROM pg_stat_activity WHERE backend_type = 'background writer'};
for my $strategy (@strategies)
{
	my ($other) = grep { $_ ne $strategy } @strategies;

	# With the scan turned off, the writer sleeps as soon as nothing is allocated.
	# With it turned on, it first has to be a whole pass ahead of the hand.  Core's
	# own scan need not get there with a pool as small as this one.
	for my $maxpages ($strategy eq 'stock' ? (0) : (0, 1000))
	{
		my $case = "$strategy, bgwriter_lru_maxpages = $maxpages";

		set_and_wait(
			[
				"bgwriter_lru_maxpages = $maxpages",
				"pg_sweep.strategy = $strategy",
				"pg_sweep.batch_size = ${\ ++$serial}"
			],
			"strategy = '$strategy' AND batch_size_configured = $serial"
		) or die "could not switch to $strategy";
		churn($node);
		ok( $node->poll_query_until('postgres', $hibernates),
			"$case: the background writer goes to sleep");

		# An allocation wakes it and is reported
		my $before = sql('SELECT buffers_alloc FROM pg_stat_bgwriter');
		churn($node);
		ok( $node->poll_query_until(
				'postgres', "SELECT buffers_alloc >= $before + 1000 FROM pg_stat_bgwriter"),
			"$case: an allocation wakes it");

		ok( $node->poll_query_until('postgres', $hibernates),
			"$case: the background writer goes to sleep again");
		ok( set_and_wait(
				["pg_sweep.strategy = $other"],
				"strategy = '$other' AND set_by = 'reload'"),
			"$case: a reload wakes it and is applied");
	}
}

$node->stop;
done_testing();
