# Properties of the layout of partitions: their number, their shares and their
# boundaries, for random pools, nodes, cores, memory, settings and page sizes.  Mutants
# show that the test fails when a property does not hold.
#
# LAYOUT_SEED=n chooses other cases, LAYOUT_CASES=n more or fewer.

use strict;
use warnings FATAL => 'all';

use PropertyTest;
use Test::More;

my $node = property_node('layout', 'test_sweep_layout');
check_cases($node, 'layout', 1000000, 0.1);
check_mutants($node, 'layout', 20000, 25);

$node->stop;
done_testing();
