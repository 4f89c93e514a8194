--
-- Pins: the view, its privileges, and this session's own row.
--
-- Runs against any server that has pg_sweep preloaded, with any settings and
-- any other load.
--
CREATE EXTENSION pg_sweep;

CREATE ROLE regress_sweep_monitor IN ROLE pg_monitor;
SET ROLE regress_sweep_monitor;
SELECT count(*) > 0 AS some FROM pg_sweep_pins;
RESET ROLE;
DROP ROLE regress_sweep_monitor;

--
-- All rows, under any load
--
SELECT count(*) = count(DISTINCT pid) AS "different rows",
       bool_and(backend_type IS NOT NULL) AS types,
       bool_and(buffers_pinned >= 0 AND most_pinned >= 0 AND table_slots > 0) AS positive
FROM pg_sweep_pins;

--
-- This session's row
--
CREATE VIEW mine AS SELECT * FROM pg_sweep_pins WHERE pid = pg_backend_pid();
SELECT backend_type, buffers_pinned FROM mine;

-- one row per page, and cursors that hold the page that they have come to; by TID scans,
-- as a sequential scan pins pages ahead, too
SET enable_tidscan = on;
SET enable_seqscan = off;
CREATE TABLE pin_pages (i int, pad text) WITH (fillfactor = 10, autovacuum_enabled = off);
ALTER TABLE pin_pages ALTER pad SET STORAGE PLAIN;
INSERT INTO pin_pages SELECT i, repeat('x', 5000) FROM generate_series(0, 11) i;
CREATE FUNCTION hold(first int, last int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    c refcursor;
    row record;
BEGIN
    FOR page IN first .. last LOOP
        c := NULL;
        OPEN c FOR SELECT * FROM pin_pages WHERE ctid = format('(%s,1)', page)::tid;
        FETCH c INTO row;
    END LOOP;
END $$;

BEGIN;
DECLARE c CURSOR FOR SELECT i FROM pin_pages WHERE ctid = '(0,1)';
SELECT buffers_pinned FROM mine;
FETCH 1 FROM c;
SELECT buffers_pinned FROM mine;
-- a second pin of the same page is not another buffer
SELECT hold(0, 0);
SELECT buffers_pinned FROM mine;
CLOSE c;
SELECT buffers_pinned FROM mine;
SELECT hold(1, 7);
SELECT buffers_pinned FROM mine;
SELECT hold(8, 8);
SELECT buffers_pinned, most_pinned >= 9 AS most_pinned FROM mine;
SAVEPOINT s;
SELECT hold(9, 11);
SELECT buffers_pinned, most_pinned >= 12 AS most_pinned FROM mine;
ROLLBACK TO s;
SELECT buffers_pinned, most_pinned >= 12 AS most_pinned FROM mine;
COMMIT;
SELECT buffers_pinned, most_pinned >= 12 AS most_pinned FROM mine;

-- a reset leaves it alone
SELECT pg_sweep_reset_stats() IS NOT NULL AS reset;
SELECT buffers_pinned, most_pinned >= 12 AS most_pinned FROM mine;

-- pages of temporary tables are not in shared buffers
CREATE TEMP TABLE temp_pages (i int);
INSERT INTO temp_pages VALUES (1);
BEGIN;
DECLARE c CURSOR FOR SELECT * FROM temp_pages;
FETCH 1 FROM c;
SELECT buffers_pinned FROM mine;
COMMIT;

DROP FUNCTION hold;
DROP VIEW mine;
DROP TABLE pin_pages, temp_pages;
DROP EXTENSION pg_sweep;
