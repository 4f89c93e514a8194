--
-- pg_sweep.strategy and pg_sweep.batch_size: a reload applies changed values only.
--
-- Needs ALTER SYSTEM; what was set by it before is put back at the end. Cannot
-- work where the parameters are set on the server's command line.
--
CREATE EXTENSION pg_sweep;
SELECT strategy AS original FROM pg_sweep_status \gset

-- Statements that restore what postgresql.auto.conf says now
CREATE TABLE put_back AS
SELECT CASE WHEN f.setting IS NULL THEN format('ALTER SYSTEM RESET %s', n.name)
            ELSE format('ALTER SYSTEM SET %s = %L', n.name, f.setting) END AS statement
FROM (VALUES ('pg_sweep.strategy'), ('pg_sweep.batch_size')) AS n(name)
LEFT JOIN LATERAL (SELECT setting FROM pg_file_settings
                   WHERE name = n.name AND sourcefile LIKE '%/postgresql.auto.conf'
                   ORDER BY seqno DESC LIMIT 1) AS f ON true;

-- Wait until the background writer has applied it
CREATE FUNCTION wait_for(condition text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
    met bool;
BEGIN
    FOR i IN 1..600 LOOP
        EXECUTE 'SELECT ' || condition || ' FROM pg_sweep_status' INTO met;
        IF met THEN
            RETURN true;
        END IF;
        PERFORM pg_sleep(0.1);
    END LOOP;
    RETURN false;
END $$;

-- Start from a known state
ALTER SYSTEM SET pg_sweep.strategy = 'stock';
ALTER SYSTEM SET pg_sweep.batch_size = 5;
SELECT pg_reload_conf();
SELECT wait_for($$configured = 'stock' AND batch_size_configured = 5$$);
SELECT pg_sweep_set_strategy('stock') IS NOT NULL AS stock;

-- A changed parameter is applied
ALTER SYSTEM SET pg_sweep.strategy = 'batched';
SELECT pg_reload_conf();
SELECT wait_for($$configured = 'batched'$$);
SELECT strategy, configured, set_by, set_by_role, batch_size <= 5 AS batch_size, batch_size_configured
FROM pg_sweep_status;

-- The function switches without changing what is configured
SELECT pg_sweep_set_strategy('stock');
SELECT strategy, configured, set_by FROM pg_sweep_status;

-- A reload that leaves the parameter as it is does not undo that. The other
-- parameter tells when it was applied.
ALTER SYSTEM SET pg_sweep.batch_size = 6;
SELECT pg_reload_conf();
SELECT wait_for('batch_size_configured = 6');
SELECT strategy, configured, set_by FROM pg_sweep_status;

-- Nor does a reload that changes the parameter to the active value
SELECT generation FROM pg_sweep_status \gset before_
ALTER SYSTEM SET pg_sweep.strategy = 'stock';
SELECT pg_reload_conf();
SELECT wait_for($$configured = 'stock'$$);
SELECT strategy, configured, set_by, generation = :before_generation AS same_generation FROM pg_sweep_status;

-- A changed parameter wins over the function
ALTER SYSTEM SET pg_sweep.strategy = 'batched';
SELECT pg_reload_conf();
SELECT wait_for($$configured = 'batched'$$);
SELECT strategy, configured, set_by, set_by_role, generation - :before_generation AS switches
FROM pg_sweep_status;

-- An invalid value is refused, and nothing changes
ALTER SYSTEM SET pg_sweep.strategy = 'none';
SELECT strategy, configured FROM pg_sweep_status;

-- Zero is automatic
ALTER SYSTEM SET pg_sweep.batch_size = 0;
SELECT pg_reload_conf();
SELECT wait_for('batch_size_configured = 0');
SELECT batch_size BETWEEN 1 AND 64 AS batch_size FROM pg_sweep_status;

-- Put back
SELECT statement FROM put_back \gexec
SELECT pg_reload_conf();
SELECT pg_sweep_set_strategy(:'original') IS NOT NULL AS restored;
DROP TABLE put_back;
DROP FUNCTION wait_for;
DROP EXTENSION pg_sweep;
