
=pod

=head1 NAME

PropertyTest - common parts of the tests that drive test_sweep

=head1 SYNOPSIS

  use PropertyTest;

  my $node = property_node('laps');
  my %found = check_cases($node, 'laps', 200, 5);
  check_mutants($node, 'laps', 200, 17);

=head1 DESCRIPTION

An area (laps, layout, homes) has an SQL function C<test_sweep_AREA(seed, cases,
code)>, whose row has the first violation, counts of the kinds of cases, and
C<worst_> figures. C<test_sweep_AREA_codes()> has the names of the real code and of
its mutants. C<AREA_SEED> and C<AREA_CASES> choose other cases, and more or fewer.

=cut

package PropertyTest;

use strict;
use warnings FATAL => 'all';

use Exporter 'import';
use PostgreSQL::Test::Cluster;
use SweepTest;
use Test::More;

our @EXPORT = qw(property_node named_row check_cases check_mutants);

# A server without pg_sweep that has the functions; the names are of their libraries
sub property_node
{
	my ($name, @libraries) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init;
	require_modules($node, @libraries);
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION test_sweep');
	return $node;
}

# One row as names and values, NULLs as empty strings
sub named_row
{
	my ($node, $query) = @_;

	return map { split /\|/, $_, 2 }
	  split /\n/, $node->safe_psql('postgres', $query, extra_params => [ '-x', '-A' ]);
}

# The real code.  Each kind of case must have come up in at least this per cent of
# the cases.  Returns the row.
sub check_cases
{
	my ($node, $area, $cases, $percent) = @_;
	my $seed = $ENV{ uc($area) . '_SEED' } || 1;
	$cases = $ENV{ uc($area) . '_CASES' } || $cases;

	note "seed $seed";
	my %found = named_row($node, "SELECT * FROM test_sweep_$area($seed, $cases)");
	is($found{violation}, '', 'every property holds');
	is($found{cases}, $cases, "in $cases cases");
	foreach my $kind (sort grep { !/^(violation|cases|worst_.*)$/ } keys %found)
	{
		cmp_ok($found{$kind}, '>=', $cases * $percent / 100, "exercised: $kind ($found{$kind})");
	}
	return %found;
}

# Each mutant whose name does not match $others is caught.  A mutant that needs more
# cases than these would be found by luck only, so they do not depend on the seed.
sub check_mutants
{
	my ($node, $area, $cases, $mutants, $others) = @_;
	my $which = defined $others ? "WHERE code !~ '$others'" : '';
	my %caught = map { split /\|/, $_, 2 } split /\n/, $node->safe_psql('postgres', qq{
SELECT code, coalesce(violation, '')
FROM test_sweep_${area}_codes() AS code, test_sweep_$area(1, $cases, code) $which});

	is(delete $caught{pg_sweep}, '', 'the same cases find nothing in the real code');
	cmp_ok(scalar keys %caught, '>=', $mutants, scalar(keys %caught) . ' mutants');
	isnt($caught{$_}, '', "mutant \"$_\" is caught: $caught{$_}") for sort keys %caught;
	return;
}

1;
