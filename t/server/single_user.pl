
# Single-user mode and initdb: no postmaster, no background writer, one process
# that allocates.

use strict;
use warnings FATAL => 'all';

use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

# Run statements of one line each in single-user mode.  Returns its exit code,
# output and errors.
sub single_user
{
	my ($node, @statements) = @_;
	my $input = join '', map { "$_\n" } @statements;
	my ($stdout, $stderr) = ('', '');

	IPC::Run::run(
		[ 'postgres', '--single', '-D' => $node->data_dir, 'postgres' ],
		'<' => \$input,
		'>' => \$stdout,
		'2>' => \$stderr,
		IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
	return ($? >> 8, $stdout, $stderr);
}

# The values of a column, as single-user mode prints them
sub values_of
{
	my ($stdout, $column) = @_;

	return $stdout =~ /^\s+\d+: $column = "([^"]*)"/mg;
}

#
# initdb with the library preloaded: its bootstrap does not load libraries, its
# single-user part does.
#
my $node = PostgreSQL::Test::Cluster->new('main');
$node->init(
	extra => [
		map { ('--set' => $_) } 'shared_preload_libraries=pg_sweep', 'pg_sweep.strategy=batched',
		'shared_buffers=1MB'
	]);
my $conf = slurp_file($node->data_dir . '/postgresql.conf');
like($conf, qr/^shared_preload_libraries = '?pg_sweep'?/m,
	'initdb: was run with the library preloaded');

sub sql { return $node->safe_psql('postgres', $_[0]); }

$node->start;
is(sql('CREATE EXTENSION pg_sweep; SELECT state, strategy, set_by, buffers FROM pg_sweep_status'),
	'ok|batched|start|128', 'initdb: the server starts with the strategy');
check_amcheck($node, 'initdb');
my @strategies = strategies($node);
$node->stop;

#
# Each strategy in single-user mode
#
my $rows = 5000;
for my $strategy (@strategies)
{
	$node->adjust_conf('postgresql.conf', 'pg_sweep.strategy', $strategy);
	my ($ret, $stdout, $stderr) = single_user(
		$node,
		"CREATE TABLE t_$strategy AS SELECT i, repeat('x', 500) AS pad FROM generate_series(1, $rows) i",
		"INSERT INTO t_$strategy SELECT i, repeat('y', 500) FROM generate_series($rows + 1, 2 * $rows) i",
		"CREATE UNIQUE INDEX ON t_$strategy (i)",
		"UPDATE t_$strategy SET pad = 'z' WHERE i % 7 = 0",
		"DELETE FROM t_$strategy WHERE i % 5 = 0",
		"VACUUM (ANALYZE) t_$strategy",
		"SELECT count(*)::text || '/' || sum(i) AS content FROM t_$strategy",
		"SELECT allocations::text AS allocated FROM pg_sweep_strategies WHERE strategy = '$strategy'",
		'SELECT strategy AS active, backends::text AS backends FROM pg_sweep_status',
		'SELECT backend_type FROM pg_sweep_backends');

	is($ret, 0, "$strategy: single-user mode ends well");
	unlike($stderr, qr/ERROR|FATAL|PANIC|TRAP/, "$strategy: without an error");
	my $content = 2 * $rows * 4 / 5 . '/' . (2 * $rows * (2 * $rows + 1) / 2 - 5 * 2000 * 2001 / 2);
	is_deeply([ values_of($stdout, 'content') ], [$content], "$strategy: the table is right");
	is_deeply([ values_of($stdout, 'active') ], [$strategy], "$strategy: it is the active one");
	is_deeply([ values_of($stdout, 'backends') ], [ $strategy eq 'stock' ? 0 : 1 ],
		"$strategy: one process has had a lease, under stock none");
	cmp_ok((values_of($stdout, 'allocated'))[0] // 0, '>', 1000, "$strategy: it has allocated");

	for my $to (grep { $_ ne $strategy } @strategies)
	{
		($ret, $stdout, $stderr) = single_user(
			$node,
			"SELECT pg_sweep_set_strategy('$to') AS former",
			"SELECT count(*)::text || '/' || sum(i) AS content FROM t_$strategy",
			"SELECT (allocations > 0)::text AS used FROM pg_sweep_strategies WHERE strategy = '$to'"
		);
		is($ret, 0, "$strategy to $to: single-user mode ends well");
		is_deeply([ values_of($stdout, 'former') ], [$strategy], "$strategy to $to: switched");
		is_deeply([ values_of($stdout, 'content') ],
			[$content], "$strategy to $to: the table is the same");
		is_deeply([ values_of($stdout, 'used') ], ['true'], "$strategy to $to: $to has been used");
	}

	$node->start;
	is(sql("SELECT count(*) || '/' || sum(i) FROM t_$strategy"),
		$content, "$strategy: the server reads the same");
	check_amcheck($node, $strategy);
	$node->stop;
}
done_testing();
