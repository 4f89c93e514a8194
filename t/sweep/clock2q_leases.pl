# Leases of slots of "clock2q", with several processes that have more than one slot
# each.  Processes load, wait with open leases while others go round the slots, exit, are
# terminated, and meet switches.  While they take turns, each buffer with a place is in that
# slot.  None is passed over forever.

use strict;
use warnings FATAL => 'all';

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use SweepTest;
use Test::More;

my $buffers = 4096;
my $window = $buffers / 32;
my $pages = 14000;
my $others_from = 5000;			# the last phase reads pages from here on
my $node = sweep_node('main', conf => qq{
shared_buffers = $buffers
pg_sweep.strategy = clock2q
bgwriter_lru_maxpages = 0
checkpoint_timeout = 1h
max_wal_size = 10GB
max_parallel_workers_per_gather = 0
fsync = off
max_connections = 60
jit = off
});
require_modules($node, 'test_sweep_probation', 'measure_sweep');
$node->start;
sub sql { return $node->safe_psql('postgres', $_[0]); }

# A row for each page; frozen, so that reading writes nothing
my $file = write_script('pages', join '', map { "$_\t" . 'x' x 600 . "\n" } 1 .. $pages);
sql(qq{
CREATE EXTENSION pg_sweep; CREATE EXTENSION pg_buffercache; CREATE EXTENSION test_sweep; CREATE EXTENSION measure_sweep;
CREATE EXTENSION dblink;
BEGIN;
CREATE UNLOGGED TABLE pages (id int, pad text) WITH (fillfactor = 10);
COPY pages FROM '$file' WITH (FREEZE);
COMMIT;
ANALYZE pages});
is(sql(q{SELECT pg_relation_size('pages') / 8192}), $pages, 'one row per page');

# The observer's session has the others' as connections s1 to s7.  Its functions do what
# takes many turns.
my $size = sql(q{SELECT size FROM pg_shmem_allocations WHERE name = 'pg_sweep'});
sql(qq{
-- the next pages of the table, most of which are not in the pool
CREATE FUNCTION read_pages(session text, number int, times int DEFAULT 1) RETURNS void LANGUAGE plpgsql AS \$\$
DECLARE
	start int := current_setting('test.next');
	query text;
BEGIN
	IF start + number > $pages THEN
		start := current_setting('test.first');
	END IF;
	PERFORM set_config('test.next', (start + number)::text, false);
	query := format('SELECT count(*) FROM pages WHERE ctid >= ''(%s,0)'' AND ctid < ''(%s,0)''', start, start + number);
	FOR turn IN 1 .. times LOOP
		IF session = 'observer' THEN
			EXECUTE query;
		ELSE
			PERFORM n FROM dblink(session, query) AS t(n int8);
		END IF;
	END LOOP;
END \$\$;

-- a column of test_sweep_probation(); of one session's lease, if it is named
CREATE FUNCTION look(what text, session text DEFAULT '') RETURNS int8 LANGUAGE plpgsql AS \$\$
DECLARE
	pid int := 0;
	result int8;
BEGIN
	IF session <> '' THEN
		SELECT p INTO pid FROM dblink(session, 'SELECT pg_backend_pid()') AS t(p int);
	END IF;
	EXECUTE format('SELECT %I FROM test_sweep_probation($size, %s)', what, pid) INTO result;
	RETURN result;
END \$\$;

-- All but one read in turn, until a condition holds.  Between two turns of a session, less
-- than the length is read, even if it finds all pages of its turn twice.  So no lease is older.
CREATE FUNCTION others_read(idle text, condition text) RETURNS void LANGUAGE plpgsql AS \$\$
DECLARE
	done bool;
BEGIN
	FOR turn IN 1 .. 3000 LOOP
		EXECUTE 'SELECT ' || condition INTO done;
		IF done THEN
			RETURN;
		END IF;
		PERFORM read_pages(s, 16) FROM unnest(dblink_get_connections() || 'observer'::text) AS s WHERE s <> idle;
	END LOOP;
	RAISE 'they read and read: not %', condition;
END \$\$;

-- A session reads single pages until a condition holds
CREATE FUNCTION one_reads(session text, condition text) RETURNS void LANGUAGE plpgsql AS \$\$
DECLARE
	done bool;
BEGIN
	FOR turn IN 1 .. 100 LOOP
		EXECUTE 'SELECT ' || condition INTO done;
		IF done THEN
			RETURN;
		END IF;
		PERFORM read_pages(session, 1);
	END LOOP;
	RAISE 'it reads and reads: not %', condition;
END \$\$});

my $observer = $node->background_psql('postgres');
$observer->set_query_timer_restart();
sub ask { return $observer->query_safe($_[0]); }
my @sessions = map { "s$_" } 1 .. 7;
# a process that has just gone is no error when it is to be terminated
ask('SET client_min_messages = error; SET enable_seqscan = off; SET test.next = 0; SET test.first = 0');
ask("SELECT dblink_connect('$_', '@{[ $node->connstr('postgres') =~ s/'/''/gr ]}'), dblink_exec('$_', 'SET enable_seqscan = off')")
  for @sessions;

# The sessions that made all this may have leases until they have ended
sub only_ours
{
	my $number = 1 + @sessions;
	for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		return if ask("SELECT count(*) = $number FROM pg_stat_activity WHERE backend_type = 'client backend'") eq 't';
		select(undef, undef, undef, 0.1);
	}
	die 'other sessions do not end';
}
only_ours();

# What slots, places and leases say; session: whose lease is looked at, instead of all
sub state_of
{
	my ($session) = @_;
	my @names = qw(processes batch fill judge filled placed nowhere elsewhere twice passed leases size_taken
	  to_fill lapped to_judge waiting ghosts length loads victims);
	my $pid = defined $session ? "(SELECT p FROM dblink('$session', 'SELECT pg_backend_pid()') AS t(p int))" : 0;
	my %state;
	@state{@names} = split /\|/, ask(qq{
SELECT s.*, length, entered + returned_probation + returned_main, victims_probation + victims_main
  FROM test_sweep_probation($size, $pid) s, pg_sweep_clock2q WHERE strategy = 'clock2q'});
	$state{unfilled} = $state{fill} - $state{loads};
	return %state;
}

sub others_read
{
	my ($idle, $condition) = @_;
	ask("SELECT others_read('$idle', \$\$$condition\$\$)");
	return;
}

sub all_read
{
	my ($ticket) = @_;

	# in steps, as each query has a limit of time
	for (my $step = { state_of() }->{fill} + 512; $step < $ticket; $step += 512)
	{
		others_read('', "look('fill') >= $step");
	}
	others_read('', "look('fill') >= $ticket");
	return;
}

sub one_reads
{
	my ($session, $condition) = @_;
	ask("SELECT one_reads('$session', \$\$$condition\$\$)");
	return;
}

# Let a session read until its lease has at least this many of something
sub with_lease
{
	my ($session, $what, $least) = @_;
	one_reads($session, "look('$what', '$session') >= $least");
	return state_of($session);
}

# What must hold while all processes are idle
sub consistent
{
	my ($title, %expected) = @_;
	my %state = state_of();
	note "$title: ", join ' ', map { "$_=$state{$_}" } sort keys %state;
	is($state{batch}, int(($state{processes} > 8 ? $window / 2 / $state{processes} : 8)) || 1,
		"$title: leases of $state{batch} slots for $state{processes} processes");
	is($state{$_}, $expected{$_}, "$title: $_ is $expected{$_}") for sort keys %expected;
	return %state;
}
my %exact = (nowhere => 0, elsewhere => 0, twice => 0);

#
# Processes take turns
#
my %before = state_of();
all_read($before{fill} + 1.5 * $buffers);
my %state = consistent('in turn', %exact, lapped => 0, passed => 0);
cmp_ok($state{fill} - $state{judge}, '<=', $state{length} + 8 * $state{processes}, 'the judging hand keeps up');
cmp_ok($state{leases}, '>=', 4, "$state{leases} processes have slots left");
is($state{size_taken}, 8, 'of leases of 8');
cmp_ok($state{to_fill}, '>', 8, "$state{to_fill} slots are to be filled");
cmp_ok($state{to_fill}, '<=', $window / 2, 'at most half of the window');
cmp_ok($state{loads} - $before{loads}, '>', 1.4 * $buffers, 'most slots are for loads');
is($state{unfilled} - $state{to_fill}, $before{unfilled} - $before{to_fill}, 'each load uses one slot of its lease');

#
# Victims that no page gets leave no trace but that they have been judged
#
ask('SELECT measure_sweep_exact(0, 0)');
%before = state_of();
ask('SELECT measure_sweep_exact(1000, 0)');
%state = consistent('given up', %exact);
cmp_ok($state{victims} - $before{victims}, '>=', 1000, 'given up: 1000 victims');
is($state{$_}, $before{$_}, "given up: $_ as before") for qw(ghosts loads);
is($state{unfilled} - $state{to_fill}, $before{unfilled} - $before{to_fill}, 'given up: they use no slots');
all_read($before{fill} + $buffers / 2);
%state = state_of();
isnt($state{ghosts}, $before{ghosts}, 'victims that a page gets leave ghosts');

#
# A process sleeps while others go round the slots, and fills slots that have
# others' buffers by then
#
my $sleeper = $sessions[0];
my %asleep = with_lease($sleeper, 'to_fill', 4);
others_read($sleeper, "look('lapped', '$sleeper') >= 3");
%asleep = state_of($sleeper);
cmp_ok($asleep{lapped}, '>=', 3, "asleep: $asleep{lapped} of $asleep{to_fill} slots of its lease have other buffers by now");
%before = consistent('asleep', %exact);
one_reads($sleeper, "look('lapped', '$sleeper') = 0");
consistent('awake', %exact, lapped => 0);

#
# The same with slots that have just been judged: what it puts there is not judged in
# time, but is found when the slots are filled again
#
$sleeper = $sessions[1];
%asleep = with_lease($sleeper, 'to_fill', 4);
my $lease = $asleep{fill};
others_read($sleeper, "look('judge') > $lease");
%asleep = state_of($sleeper);
cmp_ok($asleep{judge}, '>', $lease, 'late: its slots have been judged');
is($asleep{lapped}, 0, 'late: and are empty');
ask("SELECT read_pages('$sleeper', 1) FROM generate_series(1, $asleep{to_fill})");
%state = consistent('late', %exact);
my $late = $state{passed} - $asleep{passed};
cmp_ok($late, '>=', 1, "late: the next $late pages stay longer than probation is");
cmp_ok($late, '<=', 8, 'late: at most a lease');
all_read($lease + $buffers + 50);
others_read('', "look('passed') = 0");
%state = consistent('a lap later', %exact, passed => 0);
cmp_ok($state{fill}, '<', $lease + 2 * $buffers, 'all pages are found in time again');

#
# Processes leave with slots to judge and slots to fill: what they should have judged is
# off probation, and what they should have filled is left out
#
for my $way ('exits', 'is terminated')
{
	my $leaver = pop @sessions;
	my %own = with_lease($leaver, 'waiting', 3);
	%before = state_of();
	ask("SELECT pg_terminate_backend(p, 60000) FROM dblink('$leaver', 'SELECT pg_backend_pid()') AS t(p int)")
	  if $way ne 'exits';
	ask("SELECT dblink_disconnect('$leaver')");
	only_ours();
	%state = consistent("one $way", %exact, passed => $before{passed});
	is($state{processes}, $before{processes} - 1, "one $way: one process less allocates");
	is( ($state{unfilled} - $state{to_fill}) - ($before{unfilled} - $before{to_fill}),
		$own{to_fill}, "one $way: $own{to_fill} slots stay empty");
}

#
# So they are by a process that meets a switch.  Under another strategy, pages come
# and go, and places stay.
#
my $switched = $sessions[2];
my %own = with_lease($switched, 'waiting', 3);
my %ready = state_of();
is($own{size_taken}, 8, 'switch: a process has a lease of 8');
ask(q{SELECT pg_sweep_set_strategy('batched')});
ask("SELECT read_pages('$_', 500)") for @sessions;
ask(q{SELECT pg_sweep_set_strategy('clock2q')});
%before = consistent('switch', %exact, passed => $ready{passed});
my %still = state_of($switched);
is($still{waiting}, $own{waiting}, 'switch: the lease of before has slots left');
one_reads($switched, "look('size_taken', '$switched') <> 8");
%state = state_of($switched);
is($state{size_taken}, 1, 'switch: its next lease is the first of a new row');
consistent('after a switch', %exact, passed => $ready{passed});

#
# Many processes: small leases
#
my $script = write_script('sleep.sql', q{
\set a random(0, 13990)
SELECT count(*) FROM pages WHERE ctid >= ('(' || :a || ',0)')::tid AND ctid < ('(' || (:a + 10) || ',0)')::tid;
\sleep 1000 s
});
my $many = start_pgbench($node, 'many', '--client' => 30, '--transactions' => 1, '--file' => $script);
for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
{
	last if ask(q{
SELECT count(*) = 30 FROM pg_stat_activity
 WHERE application_name = 'many' AND state = 'idle' AND query LIKE '%FROM pages%'}) eq 't';
	select(undef, undef, undef, 0.1);
}
%state = consistent('many');
cmp_ok($state{processes}, '>=', 16, 'many: those that have not found all pages in the pool');
cmp_ok($state{batch}, '<=', 4, 'many: leases are smaller');
stop_background($many);
only_ours();

#
# All at once, and switches
#
$script = write_script('random.sql', q{
\set a random(0, 13960)
SELECT count(*) FROM pages WHERE ctid >= ('(' || :a || ',0)')::tid AND ctid < ('(' || (:a + 40) || ',0)')::tid;
});
for my $how ('', ' while it is switched')
{
	my @load = (
		start_pgbench($node, 'steady', '--client' => 3, '--time' => 600, '--file' => $script),
		start_pgbench($node, 'short', '--connect', '--client' => 2, '--time' => 600, '--file' => $script),
		start_pgbench($node, 'killed', '--client' => 6, '--time' => 600, '--file' => $script));
	push @load, start_switching($node, 'switching', 10, 600) if $how ne '';
	%before = state_of();
	my $switches = counter($node, 'clock2q', 'switches');
	my ($killed, $loads, $switched) = (0, 0, 0);
	for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		$killed += ask(q{
SELECT count(*) FILTER (WHERE pg_terminate_backend(pid, 60000)) FROM (
 SELECT pid FROM pg_stat_activity WHERE application_name = 'killed' AND state = 'active' LIMIT 1) a})
		  if $killed < 4;
		$loads = { state_of() }->{loads} - $before{loads};
		$switched = counter($node, 'clock2q', 'switches') - $switches;
		last if $killed == 4 && $loads > $buffers && ($how eq '' || $switched > 10);
		select(undef, undef, undef, 0.1);
	}
	stop_background($_) for @load;
	is($killed, 4, "together$how: 4 processes are terminated as they read");
	cmp_ok($loads, '>', $buffers, "together$how: $loads pages are loaded");
	cmp_ok($switched, '>', 10, "together$how: often") if $how ne '';
	# not before: the one that switches may be about to
	only_ours();
	ask(q{SELECT pg_sweep_set_strategy('clock2q')});
	%state = consistent("together$how");
	note "together$how: $state{twice} buffers are in a second slot, $state{nowhere} have a place that has another";
}
# A buffer may be in two slots now, and one of them is its place.  One that has lost its slot
# is the main part's; its place goes with its page, which may take longer.
all_read($state{fill} + 2 * $buffers);
consistent('two laps later', elsewhere => 0, twice => 0);

#
# Each buffer is a victim sooner or later, if the pages that come are used again: then the
# main part has to give victims
#
sub of_before
{
	return ask(qq{
SELECT count(*) FROM pg_buffercache
 WHERE relfilenode = pg_relation_filenode('pages') AND relforknumber = 0 AND relblocknumber < $others_from});
}

# Each page twice: the second time after its window
sub read_twice
{
	my ($number) = @_;
	my $rounds = int($number / 250 / @sessions);
	ask("SELECT read_pages(s, 250, 2) FROM generate_series(1, $rounds), unnest(dblink_get_connections()) AS s");
	return;
}
ask('SET test.next = 0');
read_twice($others_from);
cmp_ok(of_before(), '>', 1000, 'pages of before are in the pool');
ask("SET test.next = $others_from; SET test.first = $others_from");
my $turns = 0;
while (of_before() > 0 && $turns++ < 16)
{
	read_twice($buffers);
}
is(of_before(), 0, "after $turns rounds, none of them is left");
consistent('victims', elsewhere => 0, twice => 0);

ask("SELECT dblink_disconnect('$_')") for splice @sessions;
only_ours();
# the lease that it has may be old
one_reads('observer', "look('to_fill') >= 4 AND look('lapped') = 0");
%state = consistent('alone', elsewhere => 0, twice => 0, lapped => 0);
is($state{leases}, 1, 'alone: only this process has a lease');
cmp_ok($state{to_fill}, '<=', 8, 'alone: of its own size');

$observer->quit;
$node->stop;
done_testing();
