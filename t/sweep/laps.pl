# Properties of the balance by laps: any machine, any load, compared with what one
# clock takes.  Mutants show that the test fails when a property does not hold.
#
# Pools and loads (test/sweep/test_sweep/test_sweep_laps.c) depend on the seed only.
# LAPS_SEED=n chooses other ones, LAPS_CASES=n more or fewer.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

my $seed = $ENV{LAPS_SEED} || 1;
my $cases = $ENV{LAPS_CASES} || 200;

my $node = PostgreSQL::Test::Cluster->new('laps');
$node->init;
sub sql { return $node->safe_psql('postgres', $_[0]); }

$node->start;
require_modules($node, 'test_sweep');
sql('CREATE EXTENSION test_sweep');
note "seed $seed";

my @columns = qw(violation cases even one hot unequal late remote worst_spread worst_share);
my %found;
@found{@columns} = split /\|/, sql('SELECT ' . join(', ', @columns) . " FROM test_sweep_laps($seed, $cases)");
is($found{violation}, '', 'every property holds');
is($found{cases}, $cases, "in $cases pools");
cmp_ok($found{$_}, '>', $cases / 40, "exercised: $_ ($found{$_})") for qw(even one hot unequal late remote);
note "hands were at most $found{worst_spread} thousandths of a lap apart, shares "
  . $found{worst_share} / 100 . ' points from those of one clock';

# the seed that they are known to be caught with
my %caught = map { split /\|/, $_, 2 } split /\n/, sql(qq{
	SELECT code, coalesce(violation, '')
	FROM test_sweep_laps_codes() AS code, test_sweep_laps(1, 200, code)});
is(delete $caught{pg_sweep}, '', 'the same cases find nothing in the real code');
cmp_ok(scalar keys %caught, '>=', 11, (scalar keys %caught) . ' mutants');
isnt($caught{$_}, '', "mutant \"$_\" is caught: $caught{$_}") for sort keys %caught;

$node->stop;
done_testing();
