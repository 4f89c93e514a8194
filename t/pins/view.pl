
# pg_sweep_pins: how many buffers a process has pinned, as others see it, for every
# kind of process, and only until the process ends.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use StressTest;
use SweepTest;
use Test::More;

# More than any process here pins by itself
my $many = 100;

# Further pins for a moment: to read catalogs, and the one that room was made for
my $others = 4;

# More connections than are ever open: a process that has left the view still has one
# until it has exited.  Each place is used repeatedly nevertheless, as the place that
# has been free for the longest time is taken next.
my $connections = 40;

my $node = sweep_node(
	'main',
	init => { allows_streaming => 1 },
	conf => qq{
shared_buffers = 8MB
max_connections = $connections
max_wal_senders = 4
autovacuum_worker_slots = 1
autovacuum_naptime = 1s
wal_receiver_status_interval = 1s
});

require_modules($node, 'test_pins');

$node->start;

# The second table is vacuumed slowly, once autovacuum is on
$node->safe_psql('postgres', q{
CREATE EXTENSION pg_sweep;
CREATE EXTENSION test_pins;
CREATE TABLE held (i int) WITH (autovacuum_enabled = off);
SELECT test_pins_extend('held', 700);
CREATE TABLE pages (i int, pad text) WITH (autovacuum_vacuum_cost_delay = 100, autovacuum_vacuum_cost_limit = 1);
ALTER TABLE pages ALTER pad SET STORAGE PLAIN;
INSERT INTO pages SELECT i, repeat('x', 7000) FROM generate_series(1, 200) i;
});

# Columns of a process's row, '' if there is none
sub row
{
	my ($on, $pid, $columns) = @_;

	return $on->safe_psql('postgres', "SELECT $columns FROM pg_sweep_pins WHERE pid = $pid");
}

sub gone
{
	my ($pid, $title) = @_;

	ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_sweep_pins WHERE pid = $pid"), $title);
	return;
}

sub backend_pid
{
	my ($session) = @_;

	return $session->query_safe('SELECT pg_backend_pid()');
}

#
# Pins of another session, in several transactions and within one
#
my $holder = $node->background_psql('postgres');
my $pid = backend_pid($holder);
is(row($node, $pid, 'backend_type, buffers_pinned'), 'client backend|0', 'a new session has pinned nothing');
my ($most, $slots) = split /\|/, row($node, $pid, 'most_pinned, table_slots');
cmp_ok($most, '<', $many, "and never many at once ($most)");
cmp_ok($slots, '>=', $most, "which its table has room for ($slots slots)");

for my $n (0, 1, 8, 9, 40, 300, 9)
{
	$holder->query_safe('BEGIN');
	is($holder->query_safe("SELECT test_pins_hold('held', $n)"), $n, "$n pinned: by its own count");
	is(row($node, $pid, 'buffers_pinned'), $n, "$n pinned: others see it");

	my ($most_now, $slots_now) = split /\|/, row($node, $pid, 'most_pinned, table_slots');
	my $at_least = $n > $most ? $n : $most;
	cmp_ok($most_now, '>=', $at_least, "$n pinned: most_pinned is no less");
	cmp_ok($most_now, '<=', $at_least + $others, "$n pinned: nor is it more, except for catalog pages");
	cmp_ok($slots_now, '>=', $most_now, "$n pinned: the table has room for all");
	cmp_ok($slots_now, '>=', $slots, "$n pinned: and keeps its size");
	($most, $slots) = ($most_now, $slots_now);

	# pinning them once more adds no buffers
	$holder->query_safe('SELECT test_pins_again(1000)') if $n > 0;
	is(row($node, $pid, 'buffers_pinned, most_pinned <= ' . ($at_least + $others)),
		"$n|t", "$n pinned: the same when pinned once more");

	is($holder->query_safe('SELECT test_pins_release()'), $n, "$n pinned: released");
	is(row($node, $pid, 'buffers_pinned'), 0, "$n pinned: none any more");
	$holder->query_safe("SELECT test_pins_hold('held', $n)");
	is(row($node, $pid, 'buffers_pinned'), $n, "$n pinned: once more in this transaction");
	$holder->query_safe($n % 2 ? 'COMMIT' : 'ROLLBACK');
	is(row($node, $pid, "buffers_pinned, most_pinned BETWEEN $most AND $at_least + $others, table_slots"),
		"0|t|$slots", "$n pinned: none after the transaction");
}
cmp_ok($most, '>=', 300, 'most_pinned is of all transactions together');

# A table that is too large to be kept
$holder->query_safe('BEGIN');
$holder->query_safe("SELECT test_pins_hold('held', 700)");
my ($large, $enough) = split /\|/, row($node, $pid, 'table_slots, table_slots >= buffers_pinned AND buffers_pinned = 700');
is($enough, 't', '700 pinned: the table has room for all');
cmp_ok($large, '>', $slots, '700 pinned: so it has grown');
$holder->query_safe('COMMIT');
is( row($node, $pid, "buffers_pinned, most_pinned BETWEEN 700 AND 700 + $others, table_slots < $large"),
	'0|t|t', '700 pinned: it gets smaller when the transaction ends');

#
# Each process has its own row, until it ends
#
my $other = $node->background_psql('postgres');
my $other_pid = backend_pid($other);
$holder->query_safe("BEGIN; SELECT test_pins_hold('held', 70)");
$other->query_safe("BEGIN; SELECT test_pins_hold('held', 30)");
is(row($node, $pid, 'buffers_pinned') . ' ' . row($node, $other_pid, 'buffers_pinned'),
	'70 30', 'two sessions that have the same pages pinned');
is($node->safe_psql('postgres', q{
SELECT string_agg(buffers_pinned || ' ' || state, ', ' ORDER BY buffers_pinned)
  FROM pg_sweep_pins JOIN pg_stat_activity USING (pid)
 WHERE buffers_pinned > 0}),
	'30 idle in transaction, 70 idle in transaction',
	'joined with pg_stat_activity');
# a session that is exiting has none
ok($node->poll_query_until('postgres', q{
SELECT count(*) = 0 FROM pg_stat_activity a
 WHERE datname IS NOT NULL AND NOT EXISTS (SELECT FROM pg_sweep_pins p WHERE p.pid = a.pid AND p.backend_type = a.backend_type)}
	),
	'all that are connected to a database have a row');
$other->query_safe('COMMIT');
$other->quit;
gone($other_pid, 'a session that exits is gone');
is(row($node, $pid, 'buffers_pinned'), 70, 'and no other');

# terminated with pins held
$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
gone($pid, 'a session terminated with pins held is gone');
$holder->{run}->finish;

#
# Many processes, one after the other in the same places, while another one looks
#
$node->safe_psql('postgres', 'CREATE TABLE seen (pid int, buffers_pinned int, most_pinned int, table_slots int8)');

# Sessions with many pins, in places that the short ones below will get
my @before = map { $node->background_psql('postgres') } 1 .. 8;
$_->query_safe("BEGIN; SELECT test_pins_hold('held', 300); COMMIT") for @before;
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_sweep_pins WHERE most_pinned >= 300'),
	8, 'eight sessions that had 300 pinned');
$_->quit for @before;
ok( $node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM pg_sweep_pins WHERE most_pinned >= 300'),
	'are gone');

my $script = write_script('look', q{
INSERT INTO seen SELECT pid, buffers_pinned, most_pinned, table_slots FROM pg_sweep_pins
 WHERE backend_type = 'client backend' AND pid <> pg_backend_pid();
});
my $looker = start_pgbench($node, 'look', '--file' => $script, '--time' => 3600);
ok( $node->poll_query_until(
		'postgres', q{SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'look' AND query LIKE '%INSERT%'}),
	'a session looks');
# Five for each place
my $clients = 2;
my $each = 5 * $connections / $clients;
my $short = start_pgbench($node, 'short', '--connect', '--client' => $clients,
	'--transactions' => $each,
	'--file' => write_script('short', "SELECT count(*) FROM pages WHERE i < 5;\n"));
is(wait_for_background($short, 60), 0, $clients * $each . ' short-lived connections')
  or diag(background_stderr($short));
ok($node->poll_query_until('postgres', 'SELECT count(*) > 0 FROM seen'), 'it looked meanwhile');
is( $node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'look' AND pid > 0"),
	1, 'and still looks');
stop_background($looker);
unlike(background_stderr($looker), qr/ERROR|FATAL|PANIC/, 'without an error');
cmp_ok($node->safe_psql('postgres', 'SELECT count(DISTINCT pid) FROM seen'),
	'>=', 20, 'many of them have been seen');
is($node->safe_psql('postgres', qq{
SELECT * FROM seen
 WHERE buffers_pinned NOT BETWEEN 0 AND $many OR most_pinned NOT BETWEEN 0 AND $many OR table_slots NOT BETWEEN 1 AND 10 * $many
 LIMIT 5}), '', 'none with the counts of the last one in its place');
ok($node->poll_query_until('postgres', q{
SELECT count(*) = 0 FROM pg_sweep_pins p
 WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()}),
	'and none has a row after its end');

#
# Parallel workers: the page that they read is pinned
#
my $query = run_in_background(
	'parallel', 'psql', '--no-psqlrc',
	'--host' => $node->host,
	'--port' => $node->port,
	'--dbname' => 'postgres',
	'--command' => q{
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
SET parallel_leader_participation = off; SET max_parallel_workers_per_gather = 2;
SET application_name = 'parallel';
SELECT count(pg_sleep(0.05 + 0 * i)) FROM pages CROSS JOIN generate_series(1, 1000) g});
ok($node->poll_query_until('postgres', q{
SELECT count(*) = 2 FROM pg_sweep_pins WHERE backend_type = 'parallel worker' AND buffers_pinned > 0}),
	'two parallel workers, and their pins')
  or diag($node->safe_psql('postgres', 'TABLE pg_sweep_pins'));
$node->safe_psql('postgres', "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = 'parallel' AND backend_type = 'client backend'");
is(wait_for_background($query, 0), 1, 'the query is cancelled');
ok( $node->poll_query_until(
		'postgres', q{SELECT count(*) = 0 FROM pg_sweep_pins WHERE backend_type = 'parallel worker'}),
	'and the workers are gone');

#
# Autovacuum
#
$node->safe_psql('postgres', 'DELETE FROM pages');
$node->append_conf('postgresql.conf', 'autovacuum = on');
$node->reload;
ok( $node->poll_query_until(
		'postgres', q{SELECT count(*) = 1 FROM pg_sweep_pins WHERE backend_type = 'autovacuum worker' AND most_pinned > 0}),
	'an autovacuum worker')
  or diag($node->safe_psql('postgres', 'TABLE pg_sweep_pins'));
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_sweep_pins WHERE backend_type = 'autovacuum launcher'}),
	1, 'and the launcher');
$node->append_conf('postgresql.conf', 'autovacuum = off');
$node->reload;
ok($node->poll_query_until('postgres', q{
SELECT count(pg_cancel_backend(pid)) = 0 FROM pg_stat_activity WHERE backend_type LIKE 'autovacuum%'}),
	'autovacuum comes to an end');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_sweep_pins WHERE backend_type LIKE 'autovacuum%'}),
	0, 'and has no rows afterwards');

#
# A standby: the startup process, which runs no transactions.  It is seen from its first
# lease on, so not under "stock".
#
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->append_conf('postgresql.conf', 'pg_sweep.strategy = batched');
$standby->start;
$node->safe_psql('postgres', "INSERT INTO pages SELECT i, repeat('x', 7000) FROM generate_series(1, 200) i");
$node->wait_for_catchup($standby);
ok($standby->poll_query_until('postgres', qq{
SELECT buffers_pinned = 0 AND most_pinned BETWEEN 1 AND $many AND table_slots > 0
  FROM pg_sweep_pins WHERE backend_type = 'startup'}),
	'standby: the startup process had pins')
  or diag($standby->safe_psql('postgres', 'TABLE pg_sweep_pins'));
ok( $node->poll_query_until(
		'postgres', q{SELECT count(*) = 1 FROM pg_sweep_pins WHERE backend_type = 'walsender'}),
	'standby: the primary sends to it, and to no other');

my $startup = $standby->safe_psql('postgres', q{SELECT pid FROM pg_sweep_pins WHERE backend_type = 'startup'});
$holder = $standby->background_psql('postgres');
$pid = backend_pid($holder);
$holder->query_safe("BEGIN; SELECT test_pins_hold('held', 300)");
is(row($standby, $pid, 'buffers_pinned'), 300, 'standby: a session');
$standby->promote;
ok($standby->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_sweep_pins WHERE pid = $startup"),
	'standby: promoted, the startup process is gone');
is(row($standby, $pid, 'buffers_pinned'), 300, 'standby: and the session is not');
$holder->quit;
$standby->stop;

#
# A crash: no process from before is left, nor its counts
#
my $offset = -s $node->logfile;
my @sessions = map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. 4;
my @pids = map { backend_pid($_) } @sessions;
$_->query_safe("BEGIN; SELECT test_pins_hold('held', 300)") for @sessions;
my $old = $node->safe_psql('postgres', q{SELECT string_agg(pid::text, ', ') FROM pg_sweep_pins});
my $victim = kill_backend($node, "pid = $pids[0]");
check_recovered($node, $offset, $victim, 'crash');
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_sweep_pins WHERE pid IN ($old)"),
	0, 'crash: no process from before has a row');
is($node->safe_psql('postgres', "SELECT count(*) FROM pg_sweep_pins WHERE most_pinned > $many OR buffers_pinned > $many"),
	0, 'crash: and no process has counts from before');
$_->{run}->finish for @sessions;
$holder = $node->background_psql('postgres');
$pid = backend_pid($holder);
$holder->query_safe("BEGIN; SELECT test_pins_hold('held', 40)");
is(row($node, $pid, 'buffers_pinned'), 40, 'crash: it works as before');
$holder->quit;
gone($pid, 'crash: a session that exits is gone');

# Leaked pins or a lost head of the pin table would be logged.
is_deeply(
	[
		unexpected_log_lines(
			$node, 0,
			qr/FATAL:  terminating (?:connection|background worker "parallel worker") due to administrator command/,
			qr/ERROR:  canceling (?:statement due to user request|autovacuum task)/,
			qr/FATAL:  the database system is (?:in recovery mode|not yet accepting connections)/,
			qr/FATAL:  connection to client lost/)
	],
	[],
	'no other error in the log');
is_deeply([ unexpected_log_lines($standby, 0, qr/FATAL:  (?:could not .*WAL stream|terminating (?:walreceiver|connection due to admin))/) ],
	[], "nor in the standby's");

#
# Not preloaded
#
$node->stop;
$node->adjust_conf('postgresql.conf', 'shared_preload_libraries', "''");
$node->start;
is($node->safe_psql('postgres', 'SELECT count(*) FROM pg_sweep_pins'), 0, 'not preloaded: no rows');
$node->stop;

done_testing();
