-- package: cron
-- preload: pg_cron
CREATE EXTENSION pg_cron;
CREATE TABLE ran (at timestamptz);
SELECT cron.schedule('tick', '1 second', 'INSERT INTO ran VALUES (clock_timestamp())') IS NOT NULL;
DO $$
BEGIN
    FOR i IN 1 .. 600 LOOP
        EXIT WHEN (SELECT count(*) >= 2 FROM ran);
        PERFORM pg_sleep(0.1);
    END LOOP;
END $$;
SELECT count(*) >= 2 FROM ran;
SELECT count(*) > 0 FROM cron.job_run_details WHERE status = 'succeeded';
SELECT cron.unschedule('tick');
DROP EXTENSION pg_cron;
