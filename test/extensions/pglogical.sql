-- package: pglogical
-- preload: pglogical
CREATE DATABASE pglogical_copy;
CREATE EXTENSION pglogical;
CREATE TABLE t (i int PRIMARY KEY, v text);
INSERT INTO t SELECT i, 'before' FROM generate_series(1, 5000) i;
SELECT pglogical.create_node('provider', 'host=/var/tmp dbname=pglogical user=postgres') IS NOT NULL;
SELECT pglogical.replication_set_add_table('default', 't');
\c pglogical_copy
CREATE EXTENSION pglogical;
CREATE TABLE t (i int PRIMARY KEY, v text);
SELECT pglogical.create_node('subscriber', 'host=/var/tmp dbname=pglogical_copy user=postgres') IS NOT NULL;
SELECT pglogical.create_subscription('copy', 'host=/var/tmp dbname=pglogical user=postgres') IS NOT NULL;
SELECT pglogical.wait_for_subscription_sync_complete('copy') IS NOT NULL;
SELECT count(*) = 5000 FROM t WHERE v = 'before';
\c pglogical
UPDATE t SET v = 'after' WHERE i % 2 = 0;
INSERT INTO t VALUES (5001, 'after');
SELECT pglogical.wait_slot_confirm_lsn(NULL, NULL) IS NOT NULL;
\c pglogical_copy
SELECT count(*) = 2501 FROM t WHERE v = 'after';
SELECT pglogical.drop_subscription('copy') = 1;
SELECT pglogical.drop_node('subscriber');
DROP EXTENSION pglogical;
\c pglogical
SELECT pglogical.drop_node('provider');
DROP EXTENSION pglogical;
