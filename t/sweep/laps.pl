# Properties of the balance by laps: any machine, any load, compared with what one
# clock takes.  Mutants show that the test fails when a property does not hold.
#
# Pools and loads (test/sweep/test_sweep/test_sweep_laps.c) depend on the seed only.
# LAPS_SEED=n chooses other ones, LAPS_CASES=n more or fewer.

use strict;
use warnings FATAL => 'all';

use PropertyTest;
use Test::More;

my $node = property_node('laps', 'test_sweep_laps');
my %found = check_cases($node, 'laps', 200, 2.5);
note "hands were at most $found{worst_spread} thousandths of a lap apart, shares "
  . $found{worst_share} / 100 . ' points from those of one clock';
check_mutants($node, 'laps', 200, 17);

$node->stop;
done_testing();
