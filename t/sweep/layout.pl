# Properties of the layout of partitions: their number, their shares and their
# boundaries, for random pools, nodes, memory, settings and page sizes.  Mutants show that the test fails
# when a property does not hold.
#
# LAYOUT_SEED=n chooses other cases, LAYOUT_CASES=n more or fewer.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

my $seed = $ENV{LAYOUT_SEED} || 1;
my $cases = $ENV{LAYOUT_CASES} || 1000000;

my $node = PostgreSQL::Test::Cluster->new('layout');
$node->init;
sub sql { return $node->safe_psql('postgres', $_[0]); }

$node->start;
require_modules($node, 'test_sweep_layout');
sql('CREATE EXTENSION test_sweep');
note "seed $seed";

my @columns = qw(violation cases fewer_than_nodes reduced rounded_up automatic
  single most off_grid with_head uneven limited full);
my %found;
@found{@columns} = split /\|/,
  sql("SELECT " . join(', ', map { qq{"$_"} } @columns) . " FROM test_sweep_layout($seed, $cases)");
is($found{violation}, '', 'every property holds');
is($found{cases}, $cases, "in $cases layouts");
cmp_ok($found{$_}, '>', $cases / 1000, "exercised: $_ ($found{$_})") for @columns[ 2 .. $#columns ];

# A mutant that needs more cases than these would be found by luck only
my %caught = map { split /\|/, $_, 2 } split /\n/, sql(qq{
	SELECT code, coalesce(violation, '')
	FROM test_sweep_layout_codes() AS code, test_sweep_layout($seed, 20000, code)});
is(delete $caught{pg_sweep}, '', 'the same cases find nothing in the real code');
cmp_ok(scalar keys %caught, '>=', 23, (scalar keys %caught) . ' mutants');
isnt($caught{$_}, '', "mutant \"$_\" is caught: $caught{$_}") for sort keys %caught;

$node->stop;
done_testing();
