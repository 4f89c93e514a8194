-- package: repack
CREATE EXTENSION pg_repack;
CREATE TABLE t AS SELECT i, repeat('x', 500) AS pad FROM generate_series(1, 20000) i;
ALTER TABLE t ADD PRIMARY KEY (i);
DELETE FROM t WHERE i % 4 <> 0;
SELECT pg_relation_size('t') > 10 * 1024 * 1024;
\! /usr/lib/postgresql/$MAJOR/bin/pg_repack -h /var/tmp -d pg_repack --table t --elevel=WARNING
SELECT pg_relation_size('t') < 4 * 1024 * 1024;
SELECT count(*) = 5000 FROM t;
DROP EXTENSION pg_repack;
