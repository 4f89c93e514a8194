CREATE EXTENSION measure_pins;
CREATE EXTENSION pg_buffercache;

CREATE TABLE measure_pins_data WITH (autovacuum_enabled = off) AS
  SELECT i, repeat('x', 1500) AS padding FROM generate_series(1, 1500) i;
-- no other process must pin its pages to write them
CHECKPOINT;

-- The number of operations and pages of each load.
SELECT kind, hit_order, held, operations, pages, elapsed_ns > 0 AS measured, cpu_ns > 0 AS used
  FROM (VALUES (1, 'again', 'last', 20), (2, 'again', 'cyclic', 20), (3, 'again', 'random', 20),
               (4, 'again', 'random', 1), (5, 'other', 'random', 0), (6, 'other', 'random', 20),
               (7, 'stream', 'random', 1), (8, 'stream', 'random', 20),
               (9, 'join', 'random', 20), (10, 'owner', 'random', 20),
               (11, 'read', 'random', 0), (12, 'read', 'random', 20)) loads (n, kind, hit_order, held),
       measure_pins_run('measure_pins_data', kind, held, hit_order, 10000)
  ORDER BY n;

-- A few operations. "join": three on pages that are not held, one on a held one.
SELECT kind, operations, pages
  FROM (VALUES ('again'), ('join'), ('other'), ('read'), ('stream')) loads (kind),
       measure_pins_run('measure_pins_data', kind, 10, 'cyclic', 4)
  ORDER BY kind;

-- How often each kind looks up the mapping table: "read" for each pin, the others
-- only to read the pages at first. 4096 operations precede those that are counted.
BEGIN;
CREATE FUNCTION measure_pins_fetched(kind text, held int, operations int8) RETURNS int8 LANGUAGE plpgsql AS $$
DECLARE
  before int8 := pg_stat_get_xact_blocks_fetched('measure_pins_data'::regclass);
BEGIN
  PERFORM measure_pins_run('measure_pins_data', kind, held, 'random', operations);
  RETURN pg_stat_get_xact_blocks_fetched('measure_pins_data'::regclass) - before;
END $$;
SELECT kind, measure_pins_fetched(kind, 10, 1000) AS fetched, measure_pins_fetched(kind, 10, 1000000) AS fetched_by_more
  FROM (VALUES ('again'), ('join'), ('other'), ('owner'), ('read'), ('stream')) loads (kind);
ROLLBACK;

-- A duration instead of a number, and both.
SELECT operations > 0 AS worked, elapsed_ns >= 20000000 AS long_enough
  FROM measure_pins_run('measure_pins_data', 'again', 9, duration_ms => 20);
SELECT operations FROM measure_pins_run('measure_pins_data', 'join', 9, 'last', 5000, 60000);

-- All pins are released.
CREATE FUNCTION measure_pins_left() RETURNS int8 LANGUAGE sql
  RETURN (SELECT sum(pinning_backends) FROM pg_buffercache
          WHERE relfilenode = pg_relation_filenode('measure_pins_data')
            AND reldatabase = (SELECT oid FROM pg_database WHERE datname = current_database()));
SELECT measure_pins_left();

-- Also after an error, and when the transaction goes on.
SET statement_timeout = 100;
SELECT * FROM measure_pins_run('measure_pins_data', 'stream', 20, duration_ms => 60000);
SELECT * FROM measure_pins_run('measure_pins_data', 'join', 20, duration_ms => 60000);
SELECT * FROM measure_pins_run('measure_pins_data', 'read', 20, duration_ms => 60000);
RESET statement_timeout;
BEGIN;
SAVEPOINT before_error;
SELECT * FROM measure_pins_run('measure_pins_data', 'again', 20, 'first', 1);
ROLLBACK TO before_error;
SELECT measure_pins_left();
SELECT operations FROM measure_pins_run('measure_pins_data', 'again', 20, 'cyclic', 1);
COMMIT;
SELECT measure_pins_left();

-- Invalid arguments.
SELECT * FROM measure_pins_run('measure_pins_data', 'again', 20);
SELECT * FROM measure_pins_run(NULL, 'again', 20, 'last', 1);
SELECT * FROM measure_pins_run('measure_pins_data', NULL, 20, 'last', 1);
SELECT * FROM measure_pins_run('measure_pins_data', 'again', NULL, 'last', 1);
SELECT * FROM measure_pins_run('measure_pins_data', 'again', 20, NULL, 1);
SELECT * FROM measure_pins_run('measure_pins_data', 'pin', 20, 'last', 1);
SELECT * FROM measure_pins_run('measure_pins_data', 'again', 20, 'first', 1);
SELECT * FROM measure_pins_run('measure_pins_data', 'again', -1, 'last', 1);
SELECT * FROM measure_pins_run('measure_pins_data', 'again', 16385, 'last', 1);
SELECT * FROM measure_pins_run('measure_pins_data', 'again', 0, 'last', 1);
SELECT * FROM measure_pins_run('measure_pins_data', 'again', 20, 'last', 0);
SELECT * FROM measure_pins_run('measure_pins_data', 'again', 20, 'last', 1, -1);
SELECT * FROM measure_pins_run(0, 'again', 20, 'last', 1);

-- Unsuitable relations.
\set VERBOSITY terse
SELECT * FROM measure_pins_run('measure_pins_data', 'again', 1000, 'last', 1);
CREATE VIEW measure_pins_view AS SELECT 1;
SELECT * FROM measure_pins_run('measure_pins_view', 'again', 20, 'last', 1);
CREATE TEMP TABLE measure_pins_temp AS SELECT 1;
SELECT * FROM measure_pins_run('measure_pins_temp', 'again', 1, 'last', 1);
\set VERBOSITY default

-- An index has pages, too.
CREATE INDEX measure_pins_index ON measure_pins_data (i);
SELECT pages FROM measure_pins_run('measure_pins_index', 'again', 3, 'cyclic', 100);

-- For superusers only.
CREATE ROLE regress_sweep_pins;
SET ROLE regress_sweep_pins;
SELECT * FROM measure_pins_run('pg_class', 'again', 1, 'last', 1);
RESET ROLE;

DROP ROLE regress_sweep_pins;
DROP FUNCTION measure_pins_left();
DROP VIEW measure_pins_view;
DROP TABLE measure_pins_data;
DROP EXTENSION pg_buffercache;
DROP EXTENSION measure_pins;
