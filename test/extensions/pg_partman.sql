-- package: partman
-- preload: pg_partman_bgw
CREATE SCHEMA partman;
CREATE EXTENSION pg_partman SCHEMA partman;
CREATE TABLE public.t (i int NOT NULL, v text) PARTITION BY RANGE (i);
SELECT partman.create_parent('public.t', 'i', '1000');
INSERT INTO t SELECT i, 'x' FROM generate_series(0, 3999) i;
CALL partman.run_maintenance_proc();
SELECT count(*) > 4 FROM pg_inherits WHERE inhparent = 't'::regclass;
SELECT count(*) = 1000 FROM t_p2000;
SELECT count(*) = 0 FROM t_default;
DROP TABLE t;
DROP EXTENSION pg_partman;
