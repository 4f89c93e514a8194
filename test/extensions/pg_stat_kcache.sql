-- package: pg-stat-kcache
-- preload: pg_stat_kcache
CREATE EXTENSION pg_stat_statements;
CREATE EXTENSION pg_stat_kcache;
SELECT pg_stat_kcache_reset() IS NOT NULL;
SELECT sum(sqrt(i)) > 0 FROM generate_series(1, 2000000) i;
SELECT exec_user_time > 0.01 FROM pg_stat_kcache_detail WHERE datname = current_database() AND query LIKE '%sqrt%';
DROP EXTENSION pg_stat_kcache;
DROP EXTENSION pg_stat_statements;
