# Properties of the balancer's plans, compared with a linear program, and of
# successive plans when the load changes.  Mutants show that the test fails when a
# property does not hold.
#
# Machines and loads (test/sweep/test_sweep/balance_cases.h) depend on the seed
# only.  A failure tells its seed and case, which can be repeated alone.
# BALANCE_SEED=n chooses other ones, BALANCE_CASES=n more or fewer.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

my $seed = $ENV{BALANCE_SEED} || 1;
my $cases = $ENV{BALANCE_CASES} || 100000;

my $node = PostgreSQL::Test::Cluster->new('balance');
$node->init;
sub sql { return $node->safe_psql('postgres', $_[0]); }

$node->start;
require_modules($node, 'test_sweep');
sql('CREATE EXTENSION test_sweep');
note "seed $seed";

# ---- one plan, any machine and any load ----

my @columns = qw(violation cases idle even local remote pivots targets worst_remote worst_distance);
my %plans;
@plans{@columns} = split /\|/, sql(qq{
	SELECT min(violation), sum(cases), sum(idle), sum(even), sum(local), sum(remote),
		   sum(pivots), sum(targets), max(worst_remote), max(worst_distance)
	FROM generate_series(0, $cases - 1, 1000) AS first,
		 test_sweep_balance($seed, first, least($cases - first, 1000)::int4)});
is($plans{violation}, '', "$plans{cases} plans: every property holds");
is($plans{cases}, $cases, 'all cases were tried');
cmp_ok($plans{$_}, '>', $cases / 50, "exercised: $_ ($plans{$_})")
  for qw(idle even local remote pivots targets);
cmp_ok($plans{worst_remote}, '<', 1e-5,
	"never more than rounding between nodes that need not be: $plans{worst_remote} of all requests");
note "and of requests times distance, never more than $plans{worst_distance}";

# ---- one plan after the other ----

# Partitions, requests per cycle.  After the first sequence, an older method
# redirected 43 % forever.
my $sequences = '(2, 1000000), (2, 4000), (3, 1000000), (4, 100000), (8, 16000), (12, 1000000), (16, 1000000000)';
my $sequence_violations = sub {
	my ($code) = @_;
	return sql(qq{
		SELECT coalesce(min(violation), '') FROM (VALUES $sequences) AS load(n, total),
			test_sweep_balance_cycles(n, total, '$code') AS violation});
};
is($sequence_violations->('pg_sweep'),
	'', '90:10: shares within 10 % after 5 cycles; then even: identity after 10, and it stays');

# ---- is each mutant caught? ----

my %caught = map { split /\|/, $_, 2 } split /\n/, sql(qq{
	SELECT code, coalesce(violation, '')
	FROM test_sweep_balance_codes() AS code, test_sweep_balance($seed, 0, 3000, code)});
is(delete $caught{pg_sweep}, '', 'the same cases find nothing in the real code');
cmp_ok(scalar keys %caught, '>=', 34, (scalar keys %caught) . ' mutants');
foreach my $mutant (sort keys %caught)
{
	my $how = $caught{$mutant} ne '' ? $caught{$mutant} : $sequence_violations->($mutant);
	ok($how ne '', "mutant \"$mutant\" is caught: $how");
}

# ---- is it fast enough for the background writer? ----

foreach my $size ([ 16, 4, 1 ], [ 64, 16, 5 ], [ 64, 64, 20 ])
{
	my ($partitions, $nodes, $limit) = @$size;
	my $usec =
	  sql("SELECT test_sweep_balance_usec($partitions, $nodes, 500)");
	cmp_ok($usec, '<', $limit * 1000,
		sprintf('%d partitions on %d nodes: %.0f us a plan', $partitions, $nodes, $usec));
}

$node->stop;
done_testing();
