# Properties of what learns how much less a larger pool would read: distances are those
# that the test has counted, answers are what larger pools read that replace pages by LRU,
# and a sample is as far off as it says.  Mutants show that the test fails when a
# property does not hold.
#
# Loads (test/sweep/test_sweep/test_sweep_advice.c) depend on the seed only.
# ADVICE_SEED=n chooses other ones, ADVICE_CASES=n more or fewer.

use strict;
use warnings FATAL => 'all';

use PropertyTest;
use Test::More;

my $node = property_node('advice', 'test_sweep_advice');
check_cases($node, 'advice', 300, 5);
check_mutants($node, 'advice', 80, 24);

$node->stop;
done_testing();
