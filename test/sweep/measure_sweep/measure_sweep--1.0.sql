/* test/sweep/measure_sweep/measure_sweep--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION measure_sweep" to load this file. \quit

-- Allocates until max_allocations or duration_ms is reached, whichever is
-- first; at least one of them must be given. With start_at, the loops of several
-- sessions begin at the same moment; started_late_ns is the delay.
CREATE FUNCTION measure_sweep_run(usage int4,
		max_allocations int8 DEFAULT NULL, duration_ms int4 DEFAULT NULL,
		start_at timestamptz DEFAULT NULL, OUT allocations int8,
		OUT elapsed_ns int8, OUT started_late_ns int8)
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE;

-- This number of allocations and nothing else: no clock, no check for
-- interrupts. For counting instructions and atomics.
CREATE FUNCTION measure_sweep_exact(allocations int8, usage int4)
RETURNS void AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT;

-- Allocates, and loads a made-up page into each victim, as replacement sees a miss:
-- with tell, core's routine is told, which must want it. usage is the usage
-- count that the page gets; core's is 1. This many sessions must call it: their
-- loops begin together, allocate warm_laps pools without being measured, and go on
-- until each has reached max_allocations or max_ms. loads are those allocations whose buffers
-- had no real page. All other sessions must be idle, autovacuum must be off, and
-- all pages leave the pool.
CREATE FUNCTION measure_sweep_loads(usage int4, tell bool,
		processes int4 DEFAULT 1, max_allocations int8 DEFAULT 9223372036854775807,
		max_ms int4 DEFAULT 60000, warm_laps int4 DEFAULT 0, OUT allocations int8,
		OUT loads int8, OUT elapsed_ns int8, OUT started_late_ns int8)
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT;

-- Sets the usage count of every unpinned buffer; returns how many were set.
CREATE FUNCTION measure_sweep_preset(usage int4)
RETURNS int8 AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT;

-- Takes every buffer off core's freelist; returns how many allocations it took.
CREATE FUNCTION measure_sweep_drain_freelist()
RETURNS int8 AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT;

-- Holds the spinlock of core's freelist for hold_ms milliseconds, to see which
-- processes wait for it. size is that of 'Buffer Strategy Status' in
-- pg_shmem_allocations.
CREATE FUNCTION measure_sweep_hold_freelist_lock(size int8, hold_ms int4)
RETURNS void AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT;

-- Allocates, and returns the buffers (int4, from 0, one after the other as in
-- memory) and the state before from which a simulation starts: the named pieces
-- of shared memory, with their sizes in pg_shmem_allocations. usage -1 gives
-- buffers back with usage counts from 0 to 5, spread by a hash. With pin_every > 1,
-- each buffer whose number is a multiple of it is pinned meanwhile. Only for a
-- server without other sessions.
CREATE FUNCTION measure_sweep_record(allocations int8, usage int4,
		pieces text[], sizes int8[], pin_every int4 DEFAULT 0, OUT start bytea,
		OUT victims bytea)
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT;

REVOKE ALL ON FUNCTION measure_sweep_run(int4, int8, int4, timestamptz) FROM PUBLIC;
REVOKE ALL ON FUNCTION measure_sweep_exact(int8, int4) FROM PUBLIC;
REVOKE ALL ON FUNCTION measure_sweep_loads(int4, bool, int4, int8, int4, int4) FROM PUBLIC;
REVOKE ALL ON FUNCTION measure_sweep_preset(int4) FROM PUBLIC;
REVOKE ALL ON FUNCTION measure_sweep_drain_freelist() FROM PUBLIC;
REVOKE ALL ON FUNCTION measure_sweep_hold_freelist_lock(int8, int4) FROM PUBLIC;
REVOKE ALL ON FUNCTION measure_sweep_record(int8, int4, text[], int8[], int4) FROM PUBLIC;
