-- package: pgvector
CREATE EXTENSION vector;
CREATE TABLE items AS
    SELECT i, ARRAY[sin(i), cos(i), sin(2 * i), cos(3 * i)]::vector(4) AS v FROM generate_series(1, 20000) i;
CREATE INDEX items_hnsw ON items USING hnsw (v vector_l2_ops);
SET enable_seqscan = off;
CREATE FUNCTION plan_uses(query text, what text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN ' || query LOOP
        IF line LIKE '%' || what || '%' THEN RETURN true; END IF;
    END LOOP;
    RETURN false;
END $$;
SELECT plan_uses('SELECT i FROM items ORDER BY v <-> ''[0,1,0,1]'' LIMIT 5', 'items_hnsw');
-- the nearest is found
SELECT (SELECT i FROM items ORDER BY v <-> (SELECT v FROM items WHERE i = 4711) LIMIT 1) = 4711;
DROP INDEX items_hnsw;
CREATE INDEX items_ivfflat ON items USING ivfflat (v vector_l2_ops) WITH (lists = 20);
SELECT plan_uses('SELECT i FROM items ORDER BY v <-> ''[0,1,0,1]'' LIMIT 5', 'items_ivfflat');
SELECT (SELECT i FROM items ORDER BY v <-> (SELECT v FROM items WHERE i = 4711) LIMIT 1) = 4711;
DROP TABLE items;
DROP EXTENSION vector;
