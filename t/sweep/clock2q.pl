# Properties of the rule of clock2q: which buffers are on probation, which victims
# come, what ghosts are found and how the length adapts, with one process and with
# several that stop anywhere.  Mutants show that the test fails when a property does
# not hold.
#
# Pools and loads (test/sweep/test_sweep/test_sweep_clock2q.c) depend on the seed only.
# CLOCK2Q_SEED=n chooses other ones, CLOCK2Q_CASES=n more or fewer.

use strict;
use warnings FATAL => 'all';

use PropertyTest;
use Test::More;

my $node = property_node('clock2q', 'test_sweep_clock2q');
my %found = check_cases($node, 'clock2q', 400, 2.5);
note 'a number was in its slot for at most ' . $found{worst_age} / 1000 . ' laps';
check_mutants($node, 'clock2q', 100, 38);

$node->stop;
done_testing();
