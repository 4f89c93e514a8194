-- package: pg-hint-plan
-- preload: pg_hint_plan
CREATE EXTENSION pg_hint_plan;
CREATE TABLE t AS SELECT i FROM generate_series(1, 50000) i;
CREATE INDEX t_i ON t (i);
ANALYZE t;
CREATE FUNCTION plan(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE line text; lines text := '';
BEGIN
    FOR line IN EXECUTE query LOOP lines := lines || line; END LOOP;
    RETURN lines;
END $$;
SELECT plan('EXPLAIN SELECT * FROM t WHERE i = 7') ~ 't_i';
SELECT plan('/*+ SeqScan(t) */ EXPLAIN SELECT * FROM t WHERE i = 7') ~ 'Seq Scan on t';
DROP EXTENSION pg_hint_plan;
