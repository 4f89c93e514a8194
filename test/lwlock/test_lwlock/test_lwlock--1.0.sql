/* test/lwlock/test_lwlock/test_lwlock--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION test_lwlock" to load this file. \quit

-- Makes the session an actor, which executes commands from others until "quit".
-- LWLocks stay held from one command to the next.
CREATE FUNCTION test_lwlock_serve(actor int4)
RETURNS void AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Sends a command to an idle actor. Commands: acquire, conditional,
-- acquire_or_wait, release, disown, release_disowned, wait_for_var (until the
-- variable differs from value), update_var, release_clear_var (both set it to
-- value), quit. mode: exclusive, shared.
CREATE FUNCTION test_lwlock_send(actor int4, command text, lock int4 DEFAULT 0,
		mode text DEFAULT 'exclusive', value int8 DEFAULT 0)
RETURNS void AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Stops an actor the next time that it comes to a point: acquire (has seen the
-- lock taken), sleep (is in the queue), woken, wake (is about to wake others),
-- wake_locked (has locked the wait list for that).
CREATE FUNCTION test_lwlock_stop(actor int4, point text)
RETURNS void AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Lets a stopped actor go on.
CREATE FUNCTION test_lwlock_go(actor int4)
RETURNS void AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- state: idle, busy, asleep, or "stopped at ..."; result: of the last command;
-- sleeps: since it began to serve.
CREATE FUNCTION test_lwlock_actors(OUT actor int4, OUT pid int4,
		OUT state text, OUT result text, OUT sleeps int8)
RETURNS SETOF record AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- The word of a lock. waiters: actors in the queue, the newest first, each with e
-- (exclusive), s (shared) or w (until free), and + if it goes to the front.
CREATE FUNCTION test_lwlock_state(lock int4, OUT holders text, OUT flags text,
		OUT waiters text)
AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Sets or clears bits of a lock's word, against all rules. what: list_locked,
-- exclusive, queue (true restores what false cleared).
CREATE FUNCTION test_lwlock_force(lock int4, what text, value bool)
RETURNS void AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Acquires and releases random locks in random ways, that many times. An error if
-- two processes held a lock where only one may.
CREATE FUNCTION test_lwlock_hammer(times int4)
RETURNS void AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- The sum of the counters under the locks, and how often was counted. They are the
-- same while no process hammers.
CREATE FUNCTION test_lwlock_hammered(OUT counted int8, OUT times int8)
AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Counts of the background workers since the server's last start, crash restarts
-- included: switches, the watchdog's looks at sleepers, hangs found.
CREATE FUNCTION test_lwlock_workers(OUT switches int8, OUT looks int8,
		OUT hangs int8)
AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- The functions below have locks 0 to 1199 of their own, in tranches test_0000 to
-- test_1199. A session knows these names after its first call of one of them.

-- Acquires some locks exclusively, at most 150. Then, for one after the other:
-- waits until a process is in its queue, sleeps for ms (-1: until let_go is
-- called), and releases it. With again, it tries at most that many times to
-- acquire the lock once more before the woken process does, and starts over if
-- that succeeds. Returns how often it did.
CREATE FUNCTION test_lwlock_hand_over(first int4, last int4, ms int4 DEFAULT 0, again int4 DEFAULT 0)
RETURNS int4 AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Whether hand_over holds all of its locks
CREATE FUNCTION test_lwlock_held()
RETURNS bool AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

CREATE FUNCTION test_lwlock_let_go()
RETURNS void AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Acquires and releases these locks in turn, that many times. mode: exclusive,
-- shared, wait until free. Returns how often the process slept for one, according
-- to core.
CREATE FUNCTION test_lwlock_take(first int4, last int4, mode text, times int4 DEFAULT 1)
RETURNS int8 AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Allocates another tranche with this name, which only this session knows.
CREATE FUNCTION test_lwlock_new_tranche(name text)
RETURNS int4 AS 'MODULE_PATHNAME' LANGUAGE C STRICT;
