-- package: pg-wait-sampling
-- preload: pg_wait_sampling
CREATE EXTENSION pg_wait_sampling;
SELECT pg_wait_sampling_reset_profile() IS NOT NULL;
SELECT pg_sleep(1) IS NOT NULL;
SELECT count(*) > 0 FROM pg_wait_sampling_profile WHERE pid = pg_backend_pid() AND event = 'PgSleep' AND count > 10;
SELECT count(*) > 10 FROM pg_wait_sampling_history WHERE pid = pg_backend_pid();
DROP EXTENSION pg_wait_sampling;
