-- package: pg-qualstats
-- preload: pg_qualstats
CREATE EXTENSION pg_qualstats;
SET pg_qualstats.sample_rate = 1;
CREATE TABLE t AS SELECT i, i % 1000 AS k FROM generate_series(1, 50000) i;
SELECT pg_qualstats_reset() IS NOT NULL;
SELECT count(*) = 50 FROM t WHERE k = 7;
SELECT execution_count = 50000 AND nbfiltered = 49950
  FROM pg_qualstats_pretty WHERE left_table = 't'::regclass AND left_column = 'k';
DROP EXTENSION pg_qualstats;
