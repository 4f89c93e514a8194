--
-- pg_sweep: what belongs to it, privileges, and what the views show.
--
-- Runs against any server that has pg_sweep preloaded, with any settings and
-- any other load, and leaves it with the strategy that it found.
--
CREATE EXTENSION pg_sweep;
SELECT strategy AS original FROM pg_sweep_status \gset
SELECT current_user AS me \gset
SELECT pg_sweep_set_strategy('stock') AS original_again \gset
SELECT :'original' = :'original_again' AS "returned what was active";

--
-- What belongs to the extension, and privileges. (Columns and parameters:
-- docs/reference.md, which a TAP test compares with the server.)
--
CREATE ROLE regress_sweep_user;
CREATE ROLE regress_sweep_monitor IN ROLE pg_monitor;

SELECT p.oid::regprocedure AS function, p.prorettype::regtype AS result, p.proretset AS set,
       p.provolatile AS volatile, p.proparallel AS parallel, p.proisstrict AS strict,
       has_function_privilege('regress_sweep_user', p.oid, 'EXECUTE') AS "user",
       has_function_privilege('regress_sweep_monitor', p.oid, 'EXECUTE') AS monitor
FROM pg_proc p
JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
WHERE e.extname = 'pg_sweep'
ORDER BY p.proname COLLATE "C";

SELECT c.oid::regclass AS relation, c.relkind,
       has_table_privilege('regress_sweep_user', c.oid, 'SELECT') AS "user",
       has_table_privilege('regress_sweep_monitor', c.oid, 'SELECT') AS monitor
FROM pg_class c
JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'
JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
WHERE e.extname = 'pg_sweep'
ORDER BY c.relname COLLATE "C";

-- Nothing else, but for the types of the views
SELECT pg_describe_object(d.classid, d.objid, 0) AS object
FROM pg_depend d JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
WHERE e.extname = 'pg_sweep' AND d.deptype = 'e'
  AND d.classid NOT IN ('pg_proc'::regclass, 'pg_class'::regclass, 'pg_type'::regclass);

-- Everything that users call and read has a comment, but for columns that others explain
SELECT p.proname FROM pg_proc p
WHERE p.proname IN ('pg_sweep_set_strategy', 'pg_sweep_set_lwlock_policy', 'pg_sweep_reset_stats')
  AND obj_description(p.oid, 'pg_proc') IS NULL;
SELECT a.attrelid::regclass AS view, a.attname AS column
FROM pg_attribute a
WHERE a.attrelid IN (SELECT oid FROM pg_class
                     WHERE relname LIKE 'pg\_sweep\_%' AND relkind = 'v' AND relname <> 'pg_sweep_backends')
  AND a.attnum > 0 AND col_description(a.attrelid, a.attnum) IS NULL
ORDER BY a.attrelid::regclass::text COLLATE "C", a.attnum;
SELECT c.relname FROM pg_class c
WHERE c.relname LIKE 'pg\_sweep\_%' AND c.relkind = 'v' AND obj_description(c.oid, 'pg_class') IS NULL;

--
-- Parameters
--
SELECT count(*) AS "without a description" FROM pg_settings
WHERE name LIKE 'pg\_sweep.%' AND coalesce(short_desc, '') = '';
SET pg_sweep.strategy = 'batched';
SET pg_sweep.batch_size = 16;
ALTER SYSTEM SET pg_sweep.strategy = 'clock';
ALTER SYSTEM SET pg_sweep.batch_size = -1;
ALTER SYSTEM SET pg_sweep.batch_size = 1025;
SET pg_sweep.partitions = 4;
SET pg_sweep.balance = off;
SET pg_sweep.numa_debug_nodes = 2;
ALTER SYSTEM SET pg_sweep.partitions = 65;
ALTER SYSTEM SET pg_sweep.numa_placement = 'local';
ALTER SYSTEM SET pg_sweep.numa_affinity = 'on';
ALTER SYSTEM SET pg_sweep.numa_debug_nodes = 65;
-- for tests, a session may choose its node, if there are emulated ones
SET pg_sweep.numa_debug_node = 64;
SET pg_sweep.numa_debug_node = 63;
RESET pg_sweep.numa_debug_node;
-- the prefix is reserved: a misspelt name is an error, not a placeholder
SET pg_sweep.batchsize = 16;

--
-- Roles
--
SET ROLE regress_sweep_user;
SELECT strategy FROM pg_sweep_status;
SELECT pg_sweep_get_status();
SELECT pg_sweep_set_strategy('batched');
SET pg_sweep.numa_debug_node = 0;

SET ROLE regress_sweep_monitor;
SELECT state, strategy FROM pg_sweep_status;
SELECT strategy, active FROM pg_sweep_strategies ORDER BY strategy;
SELECT count(*) >= 0 AS answered FROM pg_sweep_backends;
SELECT count(*) > 0 AS some FROM pg_sweep_partitions;
SELECT count(*) > 0 AS some FROM pg_sweep_nodes;
SELECT count(*) >= 0 AS answered FROM pg_sweep_flows;
SELECT count(*) AS sizes FROM pg_sweep_size_advice;
SELECT count(*) >= 0 AS answered FROM pg_sweep_numa_residence;
SELECT count(*) >= 0 AS answered FROM pg_sweep_numa_hits;
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

-- the active one: nothing changes
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

-- "auto" chooses by the machine and gives a reason; a name needs none
SELECT pg_sweep_set_strategy('AUTO');
SELECT strategy IN ('batched', 'partitioned') AS strategy, reason LIKE strategy || ': %' AS reason
FROM pg_sweep_status;
SELECT pg_sweep_set_strategy('Partitioned') IS NOT NULL AS partitioned;
SELECT strategy, reason FROM pg_sweep_status;
SELECT pg_sweep_set_strategy('batched');
SELECT strategy, reason FROM pg_sweep_status;

-- NULL changes nothing
SELECT pg_sweep_set_strategy(NULL) IS NULL AS is_null;

-- no strategy
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
       hand BETWEEN 0 AND buffers - 1 AS hand,
       passes >= 0 AS passes,
       active_since <= now() AS active_since,
       stats_reset <= now() AS stats_reset
FROM pg_sweep_status;
SELECT partitions BETWEEN 1 AND 64 AS partitions,
       partitions_configured = current_setting('pg_sweep.partitions')::int AS partitions_configured,
       nodes BETWEEN 1 AND 64 AS nodes,
       numa_placement IN ('off', 'interleave', 'partition') AS numa_placement,
       numa_placement_configured = current_setting('pg_sweep.numa_placement') AS numa_placement_configured,
       numa_placement_time >= '0' AS numa_placement_time
FROM pg_sweep_status;

--
-- Partitions
--
-- they are the pool, one after the other
SELECT count(*) = (SELECT partitions FROM pg_sweep_status) AS partitions,
       min(partition) = 0 AND max(partition) = count(*) - 1 AS numbered,
       min(first_buffer) = 0 AS first,
       bool_and(next = first_buffer + num_buffers OR next IS NULL) AS adjoining,
       sum(num_buffers) = (SELECT buffers FROM pg_sweep_status) AS pool,
       bool_and(hand BETWEEN first_buffer AND first_buffer + num_buffers - 1) AS hands,
       bool_and(passes >= 0 AND requests >= 0 AND allocations >= 0 AND redirected_in >= 0 AND redirected_out >= 0
                AND local_allocations >= 0 AND evictions >= 0) AS counters,
       bool_and(coalesce(life_expectancy > '0', true)) AS life_expectancy
FROM (SELECT *, lead(first_buffer) OVER (ORDER BY partition) AS next FROM pg_sweep_partitions) AS p;
-- and the nodes'
SELECT count(*) = (SELECT nodes FROM pg_sweep_status) AS nodes,
       sum(partitions) = (SELECT partitions FROM pg_sweep_status) AS partitions,
       sum(buffers) = (SELECT buffers FROM pg_sweep_status) AS buffers,
       sum(cpus) > 0 AS cpus,
       round(sum(fair_share_percent)) = 100 AS fair_share,
       bool_and(local_percent >= 0) IS NOT FALSE AS local_percent
FROM pg_sweep_nodes;
SELECT count(*) AS "partitions of unknown nodes"
FROM pg_sweep_partitions WHERE node NOT IN (SELECT node FROM pg_sweep_nodes);
-- where requests go
SELECT coalesce(min(allocations), 1) > 0 AS "no zeroes" FROM pg_sweep_flows;
SELECT count(*) AS "not as pg_sweep_partitions says"
FROM pg_sweep_flows f
JOIN pg_sweep_partitions a ON a.partition = from_partition
JOIN pg_sweep_partitions b ON b.partition = to_partition
WHERE a.node <> from_node OR b.node <> to_node OR distance < 10 OR (from_node = to_node AND distance <> 10);

--
-- Counting. One row per page: each insert is an allocation.
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
           BETWEEN leases AND leases * greatest(64, (SELECT batch_size_configured FROM pg_sweep_status)) AS tickets,
       (SELECT backends >= 1 FROM pg_sweep_status) AS backends
FROM me;

-- the strategy's row has all backends, this one included
SELECT s.active, s.active_time > '0' AS active_time, s.switches,
       s.allocations >= me.allocations AS allocations, s.looked_at >= me.looked_at AS looked_at,
       s.leases >= me.leases AS leases
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

-- allocate until a lease is left over, which those of one buffer never are
DO $$
BEGIN
    FOR i IN 1..100 LOOP
        INSERT INTO sweep_pages VALUES (repeat('x', 7000));
        EXIT WHEN (SELECT lease_left > 0 FROM me);
    END LOOP;
END $$;
SELECT lease_left > 0 AS left_over FROM me \gset
SELECT :'left_over' OR batch_size = 1 AS "has a lease" FROM pg_sweep_status;

-- under "stock": core counts allocations and ticks, nothing else, and not for each process
SELECT pg_sweep_set_strategy('stock');
SELECT lease_left AS "the lease is out of date" FROM me;
SELECT pg_sweep_reset_stats() IS NOT NULL AS reset;
INSERT INTO sweep_pages SELECT repeat('x', 7000) FROM generate_series(1, 500);
SELECT strategy, lease_left, allocations, leases, leases_expired FROM me;
SELECT s.strategy, s.active, s.switches, s.allocations >= 500 AS allocations,
       s.looked_at > 0 AS looked_at, s.usage_taken, s.pinned, s.lost_races, s.leases, s.leases_expired,
       s.buffers_expired
FROM pg_sweep_strategies s WHERE s.strategy = 'stock';
-- no process has allocated with the other one since the reset
SELECT strategy, active, active_time, switches, allocations, failed, looked_at, usage_taken, pinned,
       lost_races, leases
FROM pg_sweep_strategies WHERE strategy = 'batched';

-- the lease of before the switches is dropped at the next allocation
SELECT pg_sweep_set_strategy('batched');
INSERT INTO sweep_pages SELECT repeat('x', 7000) FROM generate_series(1, 10);
SELECT strategy, leases > 0 AS leases, leases_expired = (:'left_over'::bool)::int AS leases_expired,
       (buffers_expired > 0) = :'left_over' AS buffers_expired FROM me;

-- under "partitioned": the process has a home, and the partitions count
SELECT pg_sweep_set_strategy('partitioned');
SELECT pg_sweep_reset_stats() IS NOT NULL AS reset;
INSERT INTO sweep_pages SELECT repeat('x', 7000) FROM generate_series(1, 500);
SELECT me.strategy, me.allocations >= 500 AS allocations, me.leases > 0 AS leases,
       me.home = p.partition AND me.node = p.node AS home,
       -- all but what it has taken from its present lease
       (SELECT sum(requests) > 500 - batch_size AND sum(allocations) > 500 - batch_size
        FROM pg_sweep_partitions) AS counted,
       (SELECT sum(allocations) > 500 - batch_size FROM pg_sweep_nodes) AS on_nodes,
       status.hand IS NULL AS "no hand", status.passes >= 0 AS passes
FROM pg_sweep_status AS status, me LEFT JOIN pg_sweep_partitions p ON p.partition = me.home;
SELECT s.active, s.switches, s.allocations >= me.allocations AS allocations, s.hand
FROM pg_sweep_strategies s, me WHERE s.strategy = 'partitioned';
SELECT pg_sweep_set_strategy('batched');
INSERT INTO sweep_pages SELECT repeat('x', 7000) FROM generate_series(1, 10);
SELECT strategy, node, home FROM me;

-- Where pages are: of what the kernel knows of, no more than there is. Once asked,
-- pg_sweep_nodes has the sum. (Some kernels and containers do not tell.)
SELECT coalesce(sum(bytes) FILTER (WHERE what = 'blocks'), 0)
           <= (SELECT (buffers + 512) * current_setting('block_size')::int8 FROM pg_sweep_status) AS blocks,
       bool_and(pages > 0 AND page_size > 0 AND bytes > 0) IS NOT FALSE AS sizes,
       bool_and(partition IN (SELECT partition FROM pg_sweep_partitions)) IS NOT FALSE AS partitions
FROM pg_sweep_numa_residence;
SELECT bool_and(residence_asked_at IS NULL OR residence_asked_at <= now()) AS residence_asked_at
FROM pg_sweep_nodes;

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
-- Drop it
--
DROP FUNCTION wait_for_allocations, not_accounted;
DROP VIEW me;
DROP TABLE sweep_pages;
DROP ROLE regress_sweep_user, regress_sweep_monitor;
SELECT pg_sweep_set_strategy(:'original') IS NOT NULL AS restored;
DROP EXTENSION pg_sweep;
