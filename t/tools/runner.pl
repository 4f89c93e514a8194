# The runner of tests: areas that there are not are refused, every test belongs to an
# area, and tests of the same name in two areas keep their files apart.

use strict;
use warnings FATAL => 'all';

use File::Basename;
use File::Path qw(make_path);
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

my $top = sweep_root();

# ---- areas ----

my @areas = grep { $_ ne 'lib' } map { basename($_) } grep { -d } glob("$top/t/*");
my ($out, $err) = run_command([ "$top/tools/check", '--area', "$areas[0] nonsense" ]);
like($err, qr/^check: error: there is no area "nonsense"\n  hint: the areas are: @areas$/m,
	'an unknown area is refused, with the names of all');

# The files of a pattern whose names have no area
sub without_area
{
	my ($pattern, $area) = @_;
	my @files = map { s{^\Q$top/\E}{}r } glob("$top/$pattern");

	cmp_ok(scalar @files, '>', 0, "there are files $pattern");
	return [ grep { /$area/ ? !grep { $_ eq $1 } @areas : 1 } @files ];
}

is_deeply(without_area('sql/*.sql', qr{/([a-z]+)_}), [], 'each regression test begins with its area');
is_deeply(without_area('specs/*.spec', qr{/([a-z]+)_}), [], 'and each isolation test');
is_deeply(without_area('test/*/*/*.control', qr{^test/([a-z]+)/}), [], 'each test module is in its area');
is_deeply(without_area('test/long/*', qr{/([a-z]+)_}), [], 'each long test begins with its area');
is_deeply([ glob("$top/t/*.pl") ], [], 'no TAP test is outside of an area');

# ---- tests of the same name ----

my $work = "$PostgreSQL::Test::Utils::tmp_check/runner";
foreach my $area ('one', 'two')
{
	make_path("$work/t/$area");
	append_to_file("$work/t/$area/same.pl",
		"use Test::More tests => 1;\nok(1);\ndiag(join ' ', map { -d && \$_ } \@ENV{qw(TESTDATADIR TESTLOGDIR)});\n");
}
{
	local %ENV = (%ENV, TESTDATADIR => "$work/data", TESTLOGDIR => "$work/log", SWEEP_COUNTS => "$work/counts");

	($out, $err) = run_command([ $^X, "$top/tools/run-tap.pl", map { "$work/t/$_/same.pl" } 'one', 'two' ]);
}
is(slurp_file("$work/counts"), "tap 2 0 0\n", 'tests of the same name are counted both');
like($err, qr{^# \Q$work\E/data/$_ \Q$work\E/log/$_$}m, "area $_ has folders of its own") foreach ('one', 'two');

done_testing();
