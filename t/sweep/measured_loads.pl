# measure_sweep_loads(), by which bench/run alloc measures: each victim gets a page,
# "clock2q" is told of each, the share of pages that return is as said, and no
# made-up page stays in the pool when the loops end, by an error either.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

my $node = sweep_node('main', conf => q{
shared_buffers = 4096
pg_sweep.strategy = clock2q
bgwriter_lru_maxpages = 0
checkpoint_timeout = 1h
jit = off
});
sub sql { return $node->safe_psql('postgres', $_[0]); }

$node->start;
require_modules($node, 'measure_sweep');
sql(q{
CREATE EXTENSION pg_sweep; CREATE EXTENSION measure_sweep; CREATE EXTENSION pg_buffercache;
CREATE TABLE data AS SELECT i, repeat('x', 400) AS pad FROM generate_series(1, 30000) i});

# What clock2q was told of: loads, those that had left, and victims, by side
my @names = qw(entered returned_probation returned_main victims_probation victims_main);

sub counted
{
	my %row;
	@row{@names} = split /\|/, sql('SELECT ' . join(', ', @names) . " FROM pg_sweep_clock2q WHERE strategy = 'clock2q'");
	return \%row;
}

sub told
{
	my ($row) = @_;
	return $row->{entered} + $row->{returned_probation} + $row->{returned_main};
}

sub nothing_left
{
	my ($when) = @_;

	is(sql(q{SELECT count(*) FROM pg_buffercache WHERE reltablespace = 0}), 0, "no made-up page is left: $when");
	is(sql(q{SELECT count(*), sum(i), sum(length(pad)) FROM data}), '30000|450015000|12000000', 'and no real one is lost');
	return;
}

# A session of its own that loads 200000 pages
my $each = 200_000;

sub start_session
{
	my ($name, $arguments) = @_;

	return run_in_background($name, 'psql', '-XAtq', '-d', $node->connstr('postgres'),
		'-c', "SELECT allocations, loads, started_late_ns >= 0 FROM measure_sweep_loads(1, $arguments, max_allocations => $each)");
}

# ---- two sessions at once ----

my $before = counted();
my @sessions = map { start_session("session$_", 'true, 2, warm_laps => 4') } 1 .. 2;
foreach my $session (@sessions)
{
	is(wait_for_background($session, 0), 0, "$session->{name} ends") or diag(background_stderr($session));
	my ($allocations, $loads, $started) = split /\|/, slurp_file($session->{out});
	is($allocations, $each, 'it has allocated as often as was asked for');
	cmp_ok($loads, '>', 0.99 * $each, 'and loaded a page nearly each time');
	is($started, "t\n", 'after the common start');
}
my $after = counted();
my $told = told($after) - told($before);
cmp_ok($told, '>', 2 * 0.99 * $each, "clock2q was told of all loads ($told), those of the warm-up, too");
my $returned = 1 - ($after->{entered} - $before->{entered}) / $told;
cmp_ok(abs($returned - 0.25), '<', 0.04, sprintf 'a quarter of them are pages that had left (%.3f)', $returned);
my $main = $after->{victims_main} - $before->{victims_main};
my $victims = $main + $after->{victims_probation} - $before->{victims_probation};
cmp_ok(abs($main / $victims - 0.25), '<', 0.06, sprintf 'so the main part gives a quarter of the victims (%.3f)', $main / $victims);
nothing_left('after two sessions');

# ---- other strategies, and without telling ----

$before = counted();
sql("SELECT measure_sweep_loads(2, false, max_allocations => $each)");
cmp_ok(told(counted()) - told($before), '<', 1000, 'without "tell", clock2q hears only of the pages of catalogs');
foreach my $strategy (grep { $_ ne 'clock2q' } strategies($node))
{
	switch_to($node, $strategy);
	is(sql("SELECT allocations FROM measure_sweep_loads(0, false, max_allocations => $each)"), $each, "under $strategy");
	nothing_left("under $strategy");
}
switch_to($node, 'clock2q');

# ---- sessions that do not come, or do not get to the end ----

my ($status, $out, $err) = $node->psql('postgres', q{
SET statement_timeout = '200ms';
SELECT measure_sweep_loads(1, true, processes => 2, max_allocations => 10)});
like($err, qr/canceling statement due to statement timeout/, 'a session that waits for another one can be cancelled');
nothing_left('when it was alone');

($status, $out, $err) = $node->psql('postgres', q{
SET statement_timeout = '200ms';
SELECT measure_sweep_loads(1, true, max_ms => 60000)});
like($err, qr/canceling statement due to statement timeout/, 'and so can a loop');
nothing_left('after a cancelled loop');

# It waits for a second one, which another run must not become
my $waiting = start_session('waiting', 'true, 2');
$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM pg_stat_activity
 WHERE state = 'active' AND query LIKE '%measure_sweep_loads%' AND pid <> pg_backend_pid()});
($status, $out, $err) = $node->psql('postgres', 'SELECT measure_sweep_loads(1, true, 1, 10)');
like($err, qr/this session is one of 1, another one of 2/, 'a session of another run is refused');
($status, $out, $err) = $node->psql('postgres', 'SELECT measure_sweep_loads(1, true, 3, 10)');
like($err, qr/this session is one of 3, another one of 2/, 'also one of a larger run');
is(sql("SELECT loads > 0.99 * $each FROM measure_sweep_loads(1, true, 2, $each)"), 't', 'and the one that they do is not');
is(wait_for_background($waiting, 0), 0, 'nor the one that waited') or diag(background_stderr($waiting));
nothing_left('after a refused session');

$node->stop;
done_testing();
