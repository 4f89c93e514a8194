/* test/lwlock/measure_lwlock/measure_lwlock--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION measure_lwlock" to load this file. \quit

-- Acquires and releases the one lock of the tranche "measure_lwlock" until
-- max_acquisitions or duration_ms is reached; at least one of them must be given.
-- hold and think are turns of an empty loop, with the lock and without. All begin
-- together when as many sessions as "participants" have called it; duration_ms and
-- elapsed_ns run from that moment.
--
-- slept: acquisitions that slept on the semaphore. waits: acquisitions by
-- duration; element i + 1 is bucket i: i nanoseconds below 16, then 16 buckets per
-- power of two. cpu_us and voluntary_switches: of this process since the start.
CREATE FUNCTION measure_lwlock_hot(max_acquisitions int8 DEFAULT NULL,
		duration_ms int4 DEFAULT NULL, hold int4 DEFAULT 0,
		think int4 DEFAULT 0, mode text DEFAULT 'exclusive',
		participants int4 DEFAULT 1, OUT acquisitions int8, OUT slept int8,
		OUT elapsed_ns int8, OUT wait_ns int8, OUT longest_wait_ns int8,
		OUT cpu_us int8, OUT voluntary_switches int8, OUT waits int8[])
AS 'MODULE_PATHNAME' LANGUAGE C;

-- How often measure_lwlock_hot() has held the lock exclusively since the server's
-- start, counted by the holders under the lock.
CREATE FUNCTION measure_lwlock_turns()
RETURNS int8 AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Only that many acquisitions and releases of a lock that no other process uses,
-- to count instructions.
CREATE FUNCTION measure_lwlock_pairs(pairs int8, mode text DEFAULT 'exclusive')
RETURNS void AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Nanoseconds that LWLockRelease() takes with that many exclusive waiters queued,
-- once for each sample. Waiters are PGPROCs that no process uses. flush: their
-- cache lines are flushed before the release (x86-64 only). The first element is
-- what reading the clock takes at least, which is a part of each of the others.
CREATE FUNCTION measure_lwlock_release(waiters int4, flush bool DEFAULT false,
		samples int4 DEFAULT 100)
RETURNS int8[] AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

REVOKE ALL ON FUNCTION measure_lwlock_hot(int8, int4, int4, int4, text, int4) FROM PUBLIC;
REVOKE ALL ON FUNCTION measure_lwlock_turns() FROM PUBLIC;
REVOKE ALL ON FUNCTION measure_lwlock_pairs(int8, text) FROM PUBLIC;
REVOKE ALL ON FUNCTION measure_lwlock_release(int4, bool, int4) FROM PUBLIC;
