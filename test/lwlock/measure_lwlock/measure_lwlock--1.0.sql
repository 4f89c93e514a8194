/* test/lwlock/measure_lwlock/measure_lwlock--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION measure_lwlock" to load this file. \quit

-- Acquires and releases the one lock of the tranche "measure_lwlock" until
-- max_acquisitions or duration_ms is reached, whichever is first; at least one of
-- them must be given. The lock is held for so many turns of an empty loop, and
-- left alone for so many. Begins when so many sessions have called it
-- ("participants"); duration_ms and elapsed_ns run from that moment for all.
--
-- slept: acquisitions that slept on the semaphore. waits: acquisitions by how
-- long they took; element i + 1 is bucket i: i nanoseconds below 16, from there on
-- 16 buckets for each power of two. cpu_us and voluntary_switches are those of
-- this process since the start.
CREATE FUNCTION measure_lwlock_hot(max_acquisitions int8 DEFAULT NULL,
								 duration_ms int4 DEFAULT NULL,
								 hold int4 DEFAULT 0,
								 think int4 DEFAULT 0,
								 mode text DEFAULT 'exclusive',
								 participants int4 DEFAULT 1,
								 OUT acquisitions int8,
								 OUT slept int8,
								 OUT elapsed_ns int8,
								 OUT wait_ns int8,
								 OUT longest_wait_ns int8,
								 OUT cpu_us int8,
								 OUT voluntary_switches int8,
								 OUT waits int8[])
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE;

-- How often measure_lwlock_hot() has held the lock exclusively since the server's
-- start, counted by the holders in memory that only the lock protects.
CREATE FUNCTION measure_lwlock_turns()
RETURNS int8
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

-- Exactly so many acquisitions and releases of a lock that nobody else has, and
-- nothing else. For counting instructions.
CREATE FUNCTION measure_lwlock_pairs(pairs int8, mode text DEFAULT 'exclusive')
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

REVOKE ALL ON FUNCTION measure_lwlock_hot(int8, int4, int4, int4, text, int4) FROM PUBLIC;
REVOKE ALL ON FUNCTION measure_lwlock_turns() FROM PUBLIC;
REVOKE ALL ON FUNCTION measure_lwlock_pairs(int8, text) FROM PUBLIC;
