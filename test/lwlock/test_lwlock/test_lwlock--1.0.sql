/* test/lwlock/test_lwlock/test_lwlock--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION test_lwlock" to load this file. \quit

-- Be an actor: do what others send, until "quit". LWLocks stay held from one
-- command to the next.
CREATE FUNCTION test_lwlock_serve(actor int4)
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

-- Have an idle actor do something. Commands: acquire, conditional,
-- acquire_or_wait, release, disown, release_disowned, wait_for_var (until the
-- variable is not value), update_var, release_clear_var (both: set it to
-- value), quit. mode: exclusive, shared.
CREATE FUNCTION test_lwlock_send(actor int4,
								 command text,
								 lock int4 DEFAULT 0,
								 mode text DEFAULT 'exclusive',
								 value int8 DEFAULT 0)
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

-- Stop an actor when it comes to a point next: acquire (has seen the lock
-- taken), sleep (is in the queue), woken, wake (is to wake others), wake_locked
-- (has locked the wait list for that).
CREATE FUNCTION test_lwlock_stop(actor int4, point text)
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

-- Let it go on from where it is stopped.
CREATE FUNCTION test_lwlock_go(actor int4)
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

-- state: idle, busy, asleep, or "stopped at ..."; result: of the last command.
-- acquired: the number of its last acquisition, counted over all actors. sleeps,
-- queueings: since it began to serve; queueings are those that the library did.
CREATE FUNCTION test_lwlock_actors(OUT actor int4,
								   OUT pid int4,
								   OUT state text,
								   OUT result text,
								   OUT acquired int8,
								   OUT sleeps int8,
								   OUT queueings int8)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

-- A lock's word. waiters: actors in the queue, the newest first, each with e
-- (exclusive), s (shared), w (until free), and + if it is to go to the front.
CREATE FUNCTION test_lwlock_state(lock int4,
								  OUT holders text,
								  OUT flags text,
								  OUT waiters text)
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

-- Set bits of a lock's word, or take them away, past all rules. what:
-- list_locked, exclusive, queue (true gives back what false took).
CREATE FUNCTION test_lwlock_force(lock int4, what text, value bool)
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

-- Acquire and release random locks in random ways, so many times; an error if two
-- were in where only one may be.
CREATE FUNCTION test_lwlock_hammer(times int4)
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

-- What was counted under the locks, and how often; the same, if nobody hammers.
CREATE FUNCTION test_lwlock_hammered(OUT counted int8, OUT times int8)
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

-- What the background workers have done since the server's last start, crash
-- restarts included: switches, looks of the watchdog at sleepers, hangs found.
CREATE FUNCTION test_lwlock_workers(OUT switches int8,
									OUT looks int8,
									OUT hangs int8)
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

-- Locks 0 to 1199 of the functions below are others than those of the actors:
-- each is in a tranche of its own, test_0000 to test_1199. A session knows their
-- names after its first call of one of these functions.

-- Acquires some locks exclusively, at most 150. Then, for one after the other:
-- waits until a process is in its queue, sleeps for ms (-1: until let_go is
-- called), and releases it. With again, it tries at most that many times to
-- acquire the lock once more before the woken process does, and starts over if
-- that succeeds. Returns how often it did.
CREATE FUNCTION test_lwlock_hand_over(first int4, last int4, ms int4 DEFAULT 0, again int4 DEFAULT 0)
RETURNS int4
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

-- Whether hand_over holds all of its locks.
CREATE FUNCTION test_lwlock_held()
RETURNS bool
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

CREATE FUNCTION test_lwlock_let_go()
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

-- Acquires and releases these locks in turn, that many times. mode: exclusive,
-- shared, wait until free. Returns how often the process slept for one, according
-- to core.
CREATE FUNCTION test_lwlock_take(first int4, last int4, mode text, times int4 DEFAULT 1)
RETURNS int8
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

-- Allocates another tranche with this name, which only this session knows.
CREATE FUNCTION test_lwlock_new_tranche(name text)
RETURNS int4
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;
