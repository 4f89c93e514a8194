CREATE EXTENSION measure_sweep;
CREATE EXTENSION pg_buffercache;

-- The loop leaves contents alone: a table that is partly dirty in the pool while
-- every buffer is handed out many times.
CREATE TABLE measure_sweep_data AS
  SELECT i, repeat('x', 500) AS padding FROM generate_series(1, 2000) i;
SELECT measure_sweep_drain_freelist() >= 0 AS drained;
SELECT allocations, elapsed_ns > 0 AS measured, started_late_ns
  FROM measure_sweep_run(usage => 1, max_allocations => 100000);
UPDATE measure_sweep_data SET padding = 'y' WHERE i % 2 = 0;
SELECT measure_sweep_exact(100000, 2);
SELECT count(*), sum(i), sum(length(padding)) FROM measure_sweep_data;
CHECKPOINT;
SELECT measure_sweep_exact(100000, 0);
SELECT count(*), sum(i), sum(length(padding)) FROM measure_sweep_data;

-- A time instead of a number, and a common start.
SELECT allocations > 0 AS allocated, elapsed_ns >= 20000000 AS long_enough,
       started_late_ns >= 0 AS started
  FROM measure_sweep_run(0, duration_ms => 20,
                       start_at => clock_timestamp() + interval '20 ms');
-- The first limit to be reached counts.
SELECT allocations
  FROM measure_sweep_run(0, max_allocations => 5000, duration_ms => 60000);

-- Preset reaches every unpinned buffer. A few exceptions are allowed for the page
-- that a scan may hold meanwhile.
SELECT measure_sweep_preset(4) > 0 AS preset;
SELECT count(*) FILTER (WHERE usagecount < 4) <= 2 AS preset_to_four
  FROM pg_buffercache WHERE relfilenode IS NOT NULL;
SELECT measure_sweep_preset(0) > 0 AS preset;
SELECT count(*) FILTER (WHERE usagecount >= 4) < count(*) / 2 AS preset_to_zero
  FROM pg_buffercache WHERE relfilenode IS NOT NULL;

-- With loads: into buffers without a real page, and no made-up page is left behind.
SELECT allocations, loads > 99000 AS loaded, elapsed_ns > 0 AS measured,
       started_late_ns >= 0 AS started
  FROM measure_sweep_loads(1, false, max_allocations => 100000);
SELECT count(*) FROM pg_buffercache WHERE reltablespace = 0;
SELECT count(*), sum(i), sum(length(padding)) FROM measure_sweep_data;
SELECT elapsed_ns >= 20000000 AS long_enough
  FROM measure_sweep_loads(0, false, max_ms => 20, warm_laps => 1);

-- Invalid arguments.
SELECT measure_sweep_preset(6);
SELECT measure_sweep_preset(-1);
SELECT measure_sweep_exact(-1, 0);
SELECT * FROM measure_sweep_run(0);
SELECT * FROM measure_sweep_run(NULL, 10);
SELECT * FROM measure_sweep_run(0, 0);
SELECT * FROM measure_sweep_run(0, duration_ms => -1);
SELECT * FROM measure_sweep_run(0, 10, start_at => clock_timestamp() + interval '1 hour');
SELECT measure_sweep_loads(6, false);
SELECT measure_sweep_loads(0, false, processes => 0);
SELECT measure_sweep_loads(0, false, max_allocations => 0);
SELECT measure_sweep_loads(0, false, max_ms => 60001);
SELECT measure_sweep_loads(0, false, warm_laps => -1);
SELECT measure_sweep_hold_freelist_lock(1, 5001);
SELECT measure_sweep_hold_freelist_lock(1, -1);
SELECT measure_sweep_hold_freelist_lock(1, 0);

-- A held spinlock is free again afterwards. The allocations below may need it.
SELECT measure_sweep_hold_freelist_lock(size, 1) FROM pg_shmem_allocations
  WHERE name = 'Buffer Strategy Status';
SELECT measure_sweep_exact(10, 0);

-- A record: the number of victims asked for, none of them pinned, and each piece
-- of shared memory once. The pins are gone afterwards.
CREATE TABLE measure_record AS
  SELECT r.* FROM (SELECT array_agg(name) AS names, array_agg(size) AS sizes,
                          sum(size) AS size
                     FROM pg_shmem_allocations
                    WHERE name IN ('Buffer Strategy Status', 'Buffer Descriptors')) p,
                  LATERAL (SELECT *, size FROM measure_sweep_record(1000, -1, names, sizes, 3)) r;
SELECT length(victims), length(start) - size BETWEEN 1 AND 400 AS whole,
       (SELECT count(*) FROM generate_series(0, 999) i
         WHERE (get_byte(victims, 4 * i) + 256 * get_byte(victims, 4 * i + 1) +
                65536 * get_byte(victims, 4 * i + 2)) % 3 = 0) AS pinned
  FROM measure_record;
SELECT count(*) FILTER (WHERE pinning_backends > 0) < count(*) / 10 AS released FROM pg_buffercache;
SELECT measure_sweep_record(-1, 0, '{}', '{}');
SELECT measure_sweep_record(1, 6, '{}', '{}');
SELECT measure_sweep_record(1, 0, '{}', '{}', 1);
SELECT measure_sweep_record(1, 0, '{a}', '{}');

-- For superusers only.
CREATE ROLE regress_sweep_alloc;
SET ROLE regress_sweep_alloc;
SELECT * FROM measure_sweep_run(0, 10);
SELECT * FROM measure_sweep_loads(0, false);
SELECT measure_sweep_exact(10, 0);
SELECT measure_sweep_preset(0);
SELECT measure_sweep_drain_freelist();
SELECT measure_sweep_hold_freelist_lock(1, 0);
SELECT measure_sweep_record(1, 0, '{}', '{}');
RESET ROLE;

DROP ROLE regress_sweep_alloc;
DROP TABLE measure_sweep_data, measure_record;
DROP EXTENSION pg_buffercache;
DROP EXTENSION measure_sweep;
