# The benches: bench/run finds them; Python's own tests; the suite runs a scenario,
# goes on when one fails, and ends with its servers when it is interrupted.

use strict;
use warnings FATAL => 'all';

use Cwd qw(abs_path);
use File::Basename;
use File::Path qw(make_path remove_tree);
use IPC::Run;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;
use UnittestTest;
use Time::HiRes qw(time);

my $top = abs_path(dirname(__FILE__) . '/../..');
my $bench = "$top/bench/run";
my $work = "$PostgreSQL::Test::Utils::tmp_check/bench";
my $patience = 3 * $PostgreSQL::Test::Utils::timeout_default;

plan skip_all => 'bench/ is not there' unless -x $bench;
remove_tree($work);
make_path($work);
$work = abs_path($work);

# where benches have their clusters and results
$ENV{SWEEP_BENCH_DIR} = "$work/bench";

# ---- what needs no server ----

run_unittests('bench');

# ---- wrong options ----

# Runs the suite; returns its exit status, and what it says
sub run_suite
{
	my (@args) = @_;
	my $said = '';

	IPC::Run::run([ $bench, 'suite', @args ], '<', \undef, '>', \$said, '2>', \$said, IPC::Run::timeout($patience));
	return ($? >> 8, $said);
}

foreach my $wrong (
	[ 'a time box of 0', qr/--minutes must be greater than zero/, '--minutes', '0' ],
	[ 'a factor too large', qr/--factor must be/, '--factor', '1000' ],
	[ 'not a number', qr/invalid float value/, '--factor', 'nan.' ],
	[ 'an unknown scenario', qr/invalid choice: 'nothing'/, '--only', 'nothing' ],
	[ 'a time box with --quick', qr/--quick has no time box/, '--quick', '--minutes', '5' ],
	[ 'a missing server', qr{/nowhere/bin/postgres is missing}, '--quick', '--stock', '/nowhere' ],
	[ 'a folder that cannot be made', qr{cannot create /proc/nothing}, '--quick', '--out', '/proc/nothing' ])
{
	my ($what, $message, @args) = @$wrong;
	my ($status, $said) = run_suite(@args);

	ok($status != 0 && $said =~ $message && $said !~ /Traceback/, "refused: $what") or diag($said);
}

my ($out) = run_command([ $bench, '--names' ]);
is($out, join("\n", qw(instructions lwlock release hits startup pins copy alloc coldstart hitratio loaded pgbench scans)), 'bench/run finds all benches');
($out) = run_command([$bench]);
like($out, qr/^  demo +Strategies.*^  suite +The workloads/ms, 'it lists them with their summaries');
my ($status, $said) = run_suite('--list', '--factor', '1');
like($said, qr{^pgbench_ro:.*?bench/run pgbench --scenario beyond --scale 3000 --clients 64 128 256 384 512 }ms,
	'--list says what a factor makes of the scenarios');

# ---- one scenario that fails, and one after it, for real ----

SKIP:
{
	skip 'the servers to compare are not there (make servers)', 9
	  unless -x "$top/build/$ENV{SWEEP_MAJOR}/stock/bin/postgres" && -x "$top/build/$ENV{SWEEP_MAJOR}/release/bin/postgres";

	# A server without initdb is good enough for pins, which copies another's
	# files, but not for COPY.
	make_path("$work/stock/bin");
	foreach my $program (glob("$top/build/$ENV{SWEEP_MAJOR}/stock/bin/*"))
	{
		my $name = basename($program);

		symlink($program, "$work/stock/bin/$name") unless $name eq 'initdb';
	}
	append_to_file("$work/stock/bin/initdb", "#!/bin/sh\necho 'initdb: this one is broken' >&2\nexit 1\n");
	chmod 0755, "$work/stock/bin/initdb";

	my $begin = time;
	($status, $said) = run_suite('--quick', '--only', 'pins', 'copy', '--out', "$work/out", '--stock', "$work/stock");
	is($status, 1, sprintf 'a scenario fails (%.0f s)', time - $begin);
	like($said, qr/== copy: failed: .*broken.*== pins: done/s, 'the one after it runs') or diag($said);
	my $report = slurp_file("$work/out/report.md");
	like($report, qr/\*\*failed: .*broken\*\*/, 'the report says why');
	like($report, qr/^\| again, random, 64 held \| [\d.]+ \| .* too few rounds/m, 'two rounds are too few for a verdict');
	like($report, qr/^\| pg_sweep \| commit/m, 'the report names the commit');
	is_deeply([ sort map { basename($_) } grep { -f } glob("$work/out/*") ],
		[ 'copy.log', 'copy.txt', sort(map("pins.$_", qw(csv json log png svg txt))), 'report.md' ],
		'files: all, and no others');

	# ---- interrupted ----

	my $said_here = '';
	my $run = IPC::Run::start([ $bench, 'suite', '--quick', '--only', 'pgbench_ro', 'pins', '--out', "$work/out2" ],
		'<', \undef, '>', \$said_here, '2>', \$said_here, IPC::Run::timeout($patience));
	$run->pump until $said_here =~ /round 1 of/ || !$run->pumpable;
	$run->signal('INT');
	$run->finish;
	is($run->full_result >> 8, 130, 'interrupted: the exit status says so') or diag($said_here);
	like(slurp_file("$work/out2/report.md"), qr/Not all scenarios have results: pgbench_ro, pins\./, 'there is a report, which says so, too');
	is(servers_below($work) + (-e "$work/out2/work" ? 1 : 0), 0, 'no server is left, and no data');
}

done_testing();
