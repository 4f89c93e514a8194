-- package: hypopg
CREATE EXTENSION hypopg;
CREATE TABLE t AS SELECT i, i % 1000 AS k FROM generate_series(1, 50000) i;
ANALYZE t;
SELECT count(*) = 1 FROM hypopg_create_index('CREATE INDEX ON t (k)');
CREATE FUNCTION plan() RETURNS text LANGUAGE plpgsql AS $$
DECLARE line text; lines text := '';
BEGIN
    FOR line IN EXPLAIN SELECT * FROM t WHERE k = 7 LOOP lines := lines || line; END LOOP;
    RETURN lines;
END $$;
SELECT plan() ~ 'btree_t_k';
SELECT hypopg_reset() IS NOT NULL;
SELECT plan() !~ 'btree_t_k';
DROP EXTENSION hypopg;
