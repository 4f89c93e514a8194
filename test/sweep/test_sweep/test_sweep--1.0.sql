/* test/sweep/test_sweep/test_sweep--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION test_sweep" to load this file. \quit

-- Virtual backends take and use leases of one hand, in an order that the seed
-- chooses. violation is the first property that does not hold, or NULL; the other
-- columns count what was exercised (sim.h). With interrupts, backends are also
-- stopped in the middle of an operation. start is the hand's first ticket.
CREATE FUNCTION test_sweep_simulate(seed int8, steps int4, buffers int4,
		backends int4, interrupts bool, start int8 DEFAULT 0,
		code text DEFAULT 'pg_sweep', OUT violation text, OUT tickets int8,
		OUT looks int8, OUT switched int8, OUT lapped int8, OUT trimmed int8,
		OUT left_behind int8, OUT straddling int8, OUT whole int8,
		OUT bursts int8, OUT singles int8, OUT outstanding int8,
		OUT interrupted int8, OUT stale int8, OUT fast int8, OUT old int8,
		OUT late_looks int8, OUT passes int8)
AS 'MODULE_PATHNAME' LANGUAGE C VOLATILE STRICT;

-- What can be tested: the first is pg_sweep's own code, the others are broken.
CREATE FUNCTION test_sweep_codes()
RETURNS SETOF text AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT;

-- The size of a lease, and the most that all leases may cover.
CREATE FUNCTION test_sweep_batch(configured int4, cpus int4, buffers int4,
		backends int4, code text DEFAULT 'pg_sweep')
RETURNS int4 AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT;

CREATE FUNCTION test_sweep_lease_limit(buffers int4)
RETURNS int4 AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT;

-- The same leases in several backends at once. begin resets what they share; then
-- the given number of sessions call run; then end returns the hand's position and
-- the number of different tickets used.
CREATE FUNCTION test_sweep_shared_begin(buffers int4, processes int4)
RETURNS void AS '$libdir/test_sweep_shared' LANGUAGE C VOLATILE STRICT;

CREATE FUNCTION test_sweep_shared_run(tickets int8, seed int8,
		code text DEFAULT 'pg_sweep', OUT looks int8, OUT dropped int8,
		OUT left_over int8, OUT leases int8, OUT "foreign" int8,
		OUT late_looks int8, OUT duplicates int8, OUT strayed int8,
		OUT backwards int8)
AS '$libdir/test_sweep_shared' LANGUAGE C VOLATILE STRICT;

CREATE FUNCTION test_sweep_shared_end(OUT hand int8, OUT distinct_used int8)
AS '$libdir/test_sweep_shared' LANGUAGE C VOLATILE STRICT;

-- Pools, homes and loads that a seed chooses, balanced by laps, compared with what
-- one clock does. violation is the first property that does not hold, or NULL;
-- worst_spread is in thousandths of a lap, worst_share in hundredths of a point. The
-- others count the kinds of cases (test_sweep_laps.c).
CREATE FUNCTION test_sweep_laps(seed int8, number int4,
		code text DEFAULT 'pg_sweep', OUT violation text, OUT cases int8,
		OUT even int8, OUT one int8, OUT hot int8, OUT unequal int8,
		OUT late int8, OUT pinned int8, OUT remote int8,
		OUT worst_spread int8, OUT worst_share int8)
AS '$libdir/test_sweep_laps' LANGUAGE C VOLATILE STRICT;

-- What can be tested: the first is pg_sweep's own code, the others are broken.
CREATE FUNCTION test_sweep_laps_codes()
RETURNS SETOF text AS '$libdir/test_sweep_laps' LANGUAGE C IMMUTABLE STRICT;

-- Layouts of partitions for random pools, nodes and settings, compared with their
-- definition. violation is the first property that does not hold, or NULL; the
-- others count what was exercised (test_sweep_layout.c).
CREATE FUNCTION test_sweep_layout(seed int8, number int4,
		code text DEFAULT 'pg_sweep', OUT violation text, OUT cases int8,
		OUT fewer_than_nodes int8, OUT reduced int8, OUT rounded_up int8,
		OUT automatic int8, OUT single int8, OUT most int8, OUT off_grid int8,
		OUT with_head int8, OUT uneven int8, OUT limited int8, OUT "full" int8,
		OUT no_room int8, OUT weighted int8, OUT minimum int8)
AS '$libdir/test_sweep_layout' LANGUAGE C VOLATILE STRICT;

-- What can be tested: the first is pg_sweep's own code, the others are broken.
CREATE FUNCTION test_sweep_layout_codes()
RETURNS SETOF text AS '$libdir/test_sweep_layout' LANGUAGE C IMMUTABLE STRICT;

-- Homes of CPUs on random machines.  As above (test_sweep_homes.c).
CREATE FUNCTION test_sweep_homes(seed int8, number int4,
		code text DEFAULT 'pg_sweep', OUT violation text, OUT cases int8,
		OUT threads int8, OUT hybrid int8, OUT whole int8, OUT cut int8,
		OUT shared int8, OUT unusable int8, OUT "without" int8, OUT uneven int8,
		OUT unknown int8, OUT across int8, OUT even int8, OUT unequal int8)
AS '$libdir/test_sweep_homes' LANGUAGE C VOLATILE STRICT;

-- The same on a machine that is described by files below root, and by what they
-- say: a number for each CPU.  cores and caches have the first CPU that shares
-- one, -1 is unknown.  wanted has the partitions that suit each node.
CREATE FUNCTION test_sweep_machine(root text, nodes int4[], usable int4[],
		cores int4[], caches int4[], code text DEFAULT 'pg_sweep',
		OUT violation text, OUT read_ms float8, OUT wanted int4[])
AS '$libdir/test_sweep_homes' LANGUAGE C VOLATILE STRICT;

-- What can be tested: the first is pg_sweep's own code, the others are broken.
CREATE FUNCTION test_sweep_homes_codes()
RETURNS SETOF text AS '$libdir/test_sweep_homes' LANGUAGE C IMMUTABLE STRICT;

-- Pools that processes load pages into by the rule of clock2q.  As above
-- (test_sweep_clock2q.c); worst_age is in thousandths of the pool, in misses.
CREATE FUNCTION test_sweep_clock2q(seed int8, number int4,
		code text DEFAULT 'pg_sweep', OUT violation text, OUT cases int8,
		OUT alone int8, OUT whole int8, OUT "between" int8, OUT within int8,
		OUT tiny int8, OUT part int8, OUT young int8, OUT old int8, OUT stayed int8,
		OUT windows int8, OUT missed int8, OUT from_probation int8,
		OUT from_main int8, OUT forgotten int8, OUT soon int8, OUT late int8,
		OUT longer int8, OUT shorter int8, OUT "most" int8, OUT "least" int8,
		OUT behind int8, OUT overtaken int8, OUT extensions int8, OUT exits int8, OUT worst_age int8)
AS '$libdir/test_sweep_clock2q' LANGUAGE C VOLATILE STRICT;

-- What can be tested: the first is pg_sweep's own code, the others are broken.
CREATE FUNCTION test_sweep_clock2q_codes()
RETURNS SETOF text AS '$libdir/test_sweep_clock2q' LANGUAGE C IMMUTABLE STRICT;

-- What slots, places and leases of clock2q say of each other in this server, while no
-- other process runs.  size is that of 'pg_sweep' in pg_shmem_allocations; pid
-- chooses the process whose lease is looked at, 0 is all.  The columns are in
-- test_sweep_probation.c.
CREATE FUNCTION test_sweep_probation(size int8, pid int4 DEFAULT 0,
		OUT processes int8, OUT batch int8, OUT fill int8, OUT judge int8,
		OUT filled int8, OUT placed int8, OUT nowhere int8, OUT elsewhere int8,
		OUT twice int8, OUT passed int8, OUT leases int8, OUT size_taken int8,
		OUT to_fill int8, OUT lapped int8, OUT to_judge int8, OUT waiting int8, OUT ghosts int8)
AS '$libdir/test_sweep_probation' LANGUAGE C VOLATILE STRICT;

-- What learns how much less a larger pool would read.  As above
-- (test_sweep_advice.c).
CREATE FUNCTION test_sweep_advice(seed int8, number int4,
		code text DEFAULT 'pg_sweep', OUT violation text, OUT cases int8,
		OUT uniform int8, OUT skewed int8, OUT loops int8, OUT strangers int8,
		OUT sampled int8, OUT "all" int8, OUT new_pages int8,
		OUT short_time int8, OUT first_ghosts int8, OUT later int8,
		OUT judged int8, OUT nothing_known int8)
AS '$libdir/test_sweep_advice' LANGUAGE C VOLATILE STRICT;

-- What can be tested: the first is pg_sweep's own code, the others are broken.
CREATE FUNCTION test_sweep_advice_codes()
RETURNS SETOF text AS '$libdir/test_sweep_advice' LANGUAGE C IMMUTABLE STRICT;

-- Sets the complete passes of core's own hand; returns what they were. size is that
-- of core's struct, as pg_shmem_allocations has it.
CREATE FUNCTION test_sweep_set_core_passes(size int8, passes int8)
RETURNS int8 AS '$libdir/test_sweep_core' LANGUAGE C VOLATILE STRICT;
