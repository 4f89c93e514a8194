--
-- pg_sweep: its SQL surface, who may use it, and what its views tell.
--
-- Runs against any server that has pg_sweep preloaded, with any settings and
-- whatever else it is doing, and leaves it with the strategy that it found.
--
CREATE EXTENSION pg_sweep;
SELECT strategy AS original FROM pg_sweep_status \gset
SELECT current_user AS me \gset
SELECT pg_sweep_set_strategy('stock') AS original_again \gset
SELECT :'original' = :'original_again' AS "returned what was active";

--
-- The surface
--
\d pg_sweep_status
\d pg_sweep_strategies
\d pg_sweep_backends

SELECT p.oid::regprocedure AS function, p.prorettype::regtype AS result, p.proretset AS set,
       p.provolatile AS volatile, p.proparallel AS parallel, p.proisstrict AS strict
FROM pg_proc p
JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
WHERE e.extname = 'pg_sweep'
ORDER BY p.proname COLLATE "C";

-- Everything else that belongs to the extension
SELECT pg_describe_object(d.classid, d.objid, 0) AS object
FROM pg_depend d JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
WHERE e.extname = 'pg_sweep' AND d.deptype = 'e' AND d.classid <> 'pg_proc'::regclass
ORDER BY pg_describe_object(d.classid, d.objid, 0) COLLATE "C";

-- All that users call and read has a comment; columns that the others explain
-- have none
SELECT p.proname FROM pg_proc p
WHERE p.proname IN ('pg_sweep_set_strategy', 'pg_sweep_reset_stats')
  AND obj_description(p.oid, 'pg_proc') IS NULL;
SELECT a.attrelid::regclass AS view, a.attname AS column
FROM pg_attribute a
WHERE a.attrelid IN ('pg_sweep_status'::regclass, 'pg_sweep_strategies'::regclass)
  AND a.attnum > 0 AND col_description(a.attrelid, a.attnum) IS NULL
ORDER BY 1, a.attnum;
SELECT c.relname FROM pg_class c
WHERE c.relname LIKE 'pg_sweep%' AND c.relkind = 'v' AND obj_description(c.oid, 'pg_class') IS NULL;

--
-- Parameters
--
SELECT name, vartype, context, boot_val, min_val, max_val, enumvals
FROM pg_settings WHERE name LIKE 'pg\_sweep.%' ORDER BY name COLLATE "C";
SELECT count(*) AS "without a description" FROM pg_settings
WHERE name LIKE 'pg\_sweep.%' AND coalesce(short_desc, '') = '';
SET pg_sweep.strategy = 'batched';
SET pg_sweep.batch_size = 16;
ALTER SYSTEM SET pg_sweep.strategy = 'clock';
ALTER SYSTEM SET pg_sweep.batch_size = -1;
ALTER SYSTEM SET pg_sweep.batch_size = 1025;
-- the prefix is reserved: a misspelt name is an error, not a placeholder
SET pg_sweep.batchsize = 16;

--
-- Who may do what
--
CREATE ROLE regress_sweep_user;
CREATE ROLE regress_sweep_monitor IN ROLE pg_monitor;

SET ROLE regress_sweep_user;
SELECT strategy FROM pg_sweep_status;
SELECT strategy FROM pg_sweep_strategies;
SELECT pid FROM pg_sweep_backends;
SELECT pg_sweep_get_status();
SELECT pg_sweep_get_strategies();
SELECT pg_sweep_get_backends();
SELECT pg_sweep_set_strategy('batched');
SELECT pg_sweep_reset_stats();

SET ROLE regress_sweep_monitor;
SELECT state, strategy FROM pg_sweep_status;
SELECT strategy, active FROM pg_sweep_strategies ORDER BY strategy;
SELECT count(*) > 0 AS some FROM pg_sweep_backends;
SELECT pg_sweep_set_strategy('batched');
SELECT pg_sweep_reset_stats();

-- what switches can be granted, one function at a time
RESET ROLE;
GRANT EXECUTE ON FUNCTION pg_sweep_set_strategy(text) TO regress_sweep_user;
SET ROLE regress_sweep_user;
SELECT pg_sweep_set_strategy('batched');
SELECT pg_sweep_reset_stats();
RESET ROLE;
SELECT strategy, set_by, set_by_role FROM pg_sweep_status;
REVOKE EXECUTE ON FUNCTION pg_sweep_set_strategy(text) FROM regress_sweep_user;
SET ROLE regress_sweep_user;
SELECT pg_sweep_set_strategy('stock');
RESET ROLE;

--
-- Switching
--
SELECT pg_sweep_set_strategy('stock');
SELECT strategy, set_by, set_by_role = :'me' AS by_me FROM pg_sweep_status;
SELECT generation, active_since FROM pg_sweep_status \gset before_

-- the one that is active already: nothing changes
SELECT pg_sweep_set_strategy('stock');
SELECT generation - :before_generation AS switches, active_since = :'before_active_since' AS since_before
FROM pg_sweep_status;

-- any case; the answer is the name as it is written
SELECT pg_sweep_set_strategy('BatcheD');
SELECT pg_sweep_set_strategy('STOCK');
SELECT generation - :before_generation AS switches, active_since > :'before_active_since' AS since_later
FROM pg_sweep_status;

-- not undone by an abort
BEGIN;
SELECT pg_sweep_set_strategy('batched');
ROLLBACK;
SELECT strategy FROM pg_sweep_status;
SELECT strategy, active FROM pg_sweep_strategies ORDER BY strategy;

-- NULL is nothing, and changes nothing
SELECT pg_sweep_set_strategy(NULL) IS NULL AS is_null;

-- what is not a strategy
SELECT pg_sweep_set_strategy('clock');
\echo :LAST_ERROR_SQLSTATE
SELECT pg_sweep_set_strategy('');
SELECT pg_sweep_set_strategy(' batched');
SELECT pg_sweep_set_strategy('batched' || chr(10));
SELECT pg_sweep_set_strategy('batche');
SELECT pg_sweep_set_strategy('stock, batched');
SELECT pg_sweep_set_strategy(repeat('batched', 10));
DO $$
BEGIN
    PERFORM pg_sweep_set_strategy(repeat('x', 1000000));
EXCEPTION WHEN invalid_parameter_value THEN
    RAISE NOTICE 'refused: % characters', length(SQLERRM);
END $$;
SELECT strategy FROM pg_sweep_status;

--
-- Status
--
SELECT state, note, server_api, strategy,
       batch_size BETWEEN 1 AND 1024 AS batch_size,
       batch_size_configured BETWEEN 0 AND 1024 AS batch_size_configured,
       buffers = (SELECT setting::int FROM pg_settings WHERE name = 'shared_buffers') AS buffers,
       lease_limit = greatest(buffers / 8, 1) AS lease_limit,
       batch_size = 1 OR batch_size * backends <= lease_limit AS within_limit,
       backends >= 1 AS backends,
       hand BETWEEN 0 AND buffers - 1 AS hand,
       passes >= 0 AS passes,
       active_since <= now() AS active_since,
       stats_reset <= now() AS stats_reset
FROM pg_sweep_status;

--
-- Counting. One row a page, so that each one is an allocation.
--
CREATE TABLE sweep_pages (pad text);
ALTER TABLE sweep_pages ALTER pad SET STORAGE PLAIN;
CREATE VIEW me AS SELECT * FROM pg_sweep_backends WHERE pid = pg_backend_pid();

-- under "batched", from a reset on; the lease of before goes on
INSERT INTO sweep_pages SELECT repeat('x', 7000) FROM generate_series(1, 10);
SELECT lease_left AS left_before FROM me \gset
SELECT stats_reset FROM pg_sweep_status \gset before_
SELECT pg_sweep_reset_stats() = :'before_stats_reset' AS "returned the reset before";
SELECT stats_reset > :'before_stats_reset' AS later FROM pg_sweep_status;
INSERT INTO sweep_pages SELECT repeat('x', 7000) FROM generate_series(1, 500);
SELECT backend_type, strategy, allocations >= 500 AS allocations, failed, leases > 0 AS leases,
       looked_at = allocations - failed + usage_taken + pinned + lost_races AS looked_at,
       looked_at + buffers_expired + lease_left - :left_before
           BETWEEN leases AND leases * greatest(64, (SELECT batch_size_configured FROM pg_sweep_status)) AS tickets
FROM me;

-- the strategy's row has all backends, this one included
SELECT s.active, s.active_time > '0' AS active_time, s.switches,
       s.allocations >= me.allocations AS allocations, s.looked_at >= me.looked_at AS looked_at,
       s.leases >= me.leases AS leases, s.shared_atomics = s.leases AS shared_atomics
FROM pg_sweep_strategies s, me WHERE s.strategy = 'batched';
SELECT s.active, s.active_time, s.switches, s.usage_taken, s.pinned, s.lost_races, s.leases,
       s.leases_expired, s.buffers_expired
FROM pg_sweep_strategies s WHERE s.strategy = 'stock';

-- Tickets are neither lost nor used twice: what the hand gave out was looked
-- at, has expired, or is still leased. Others may allocate between two reads of
-- the views, so it is tried several times; it must come out once.
CREATE FUNCTION not_accounted() RETURNS numeric LANGUAGE sql AS $$
    SELECT passes::numeric * (SELECT buffers FROM pg_sweep_status) + hand - looked_at - buffers_expired
           - (SELECT sum(lease_left) FROM pg_sweep_backends)
    FROM pg_sweep_strategies WHERE strategy = 'batched'
$$;
DO $$
DECLARE
    before numeric;
BEGIN
    FOR i IN 1..20 LOOP
        before := not_accounted();
        INSERT INTO sweep_pages SELECT repeat('x', 7000) FROM generate_series(1, 100);
        IF not_accounted() = before THEN
            RAISE NOTICE 'tickets add up';
            RETURN;
        END IF;
        PERFORM pg_sleep(0.1);
    END LOOP;
    RAISE NOTICE 'tickets do not add up: % became %', before, not_accounted();
END $$;

-- allocate until a lease is left over
DO $$
BEGIN
    FOR i IN 1..100 LOOP
        INSERT INTO sweep_pages VALUES (repeat('x', 7000));
        EXIT WHEN (SELECT lease_left > 0 FROM me);
    END LOOP;
END $$;
SELECT lease_left > 0 AS "has a lease" FROM me;

-- under "stock": core counts allocations and ticks, nothing else
SELECT pg_sweep_set_strategy('stock');
SELECT lease_left AS "the lease is out of date" FROM me;
SELECT pg_sweep_reset_stats() IS NOT NULL AS reset;
INSERT INTO sweep_pages SELECT repeat('x', 7000) FROM generate_series(1, 500);
SELECT strategy, lease_left, allocations >= 500 AS allocations, leases, leases_expired FROM me;
SELECT s.strategy, s.active, s.switches, s.allocations >= me.allocations AS allocations,
       s.looked_at >= 0 AS looked_at, s.usage_taken, s.pinned, s.lost_races, s.leases, s.leases_expired,
       s.buffers_expired, s.shared_atomics = s.looked_at + s.allocations AS shared_atomics
FROM pg_sweep_strategies s, me WHERE s.strategy = 'stock';
-- nobody has allocated with the other one since the reset
SELECT strategy, active, active_time, switches, allocations, failed, looked_at, usage_taken, pinned,
       lost_races, leases, shared_atomics
FROM pg_sweep_strategies WHERE strategy = 'batched';

-- the lease of before the switches is dropped at the next allocation
SELECT pg_sweep_set_strategy('batched');
INSERT INTO sweep_pages SELECT repeat('x', 7000) FROM generate_series(1, 10);
SELECT strategy, leases > 0 AS leases, leases_expired, buffers_expired > 0 AS buffers_expired FROM me;

-- A reset is pg_sweep's own, and pg_stat_bgwriter counts under every strategy.
-- The background writer reports at the end of its cycles.
SELECT stats_reset, buffers_alloc FROM pg_stat_bgwriter \gset before_
SELECT pg_sweep_reset_stats() IS NOT NULL AS reset;
SELECT pg_sweep_set_strategy('stock');
INSERT INTO sweep_pages SELECT repeat('x', 7000) FROM generate_series(1, 500);
SELECT pg_sweep_set_strategy('batched');
INSERT INTO sweep_pages SELECT repeat('x', 7000) FROM generate_series(1, 500);
CREATE FUNCTION wait_for_allocations(wanted int8) RETURNS bool LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1..600 LOOP
        PERFORM pg_stat_clear_snapshot();
        IF (SELECT buffers_alloc >= wanted FROM pg_stat_bgwriter) THEN
            RETURN true;
        END IF;
        PERFORM pg_sleep(0.1);
    END LOOP;
    RETURN false;
END $$;
SELECT wait_for_allocations(:before_buffers_alloc + 1000) AS "1000 more allocations";
SELECT stats_reset = :'before_stats_reset' AS "not reset" FROM pg_stat_bgwriter;

--
-- Away with it
--
DROP FUNCTION wait_for_allocations, not_accounted;
DROP VIEW me;
DROP TABLE sweep_pages;
DROP ROLE regress_sweep_user, regress_sweep_monitor;
SELECT pg_sweep_set_strategy(:'original') IS NOT NULL AS restored;
DROP EXTENSION pg_sweep;
