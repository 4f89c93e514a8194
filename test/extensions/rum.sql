-- package: rum
CREATE EXTENSION rum;
CREATE TABLE texts AS
    SELECT i, to_tsvector('simple', 'word' || i % 100 || ' and word' || i % 7) AS words FROM generate_series(1, 20000) i;
CREATE INDEX texts_rum ON texts USING rum (words rum_tsvector_ops);
SELECT count(*) = 200 FROM texts WHERE words @@ to_tsquery('simple', 'word42');
SET enable_seqscan = off;
SELECT count(*) = 200 FROM texts WHERE words @@ to_tsquery('simple', 'word42');
SELECT count(*) = 10 AND min(d) > 0
  FROM (SELECT words <=> to_tsquery('simple', 'word42 & word3') AS d FROM texts
         WHERE words @@ to_tsquery('simple', 'word42 & word3') ORDER BY 1 LIMIT 10) s;
DELETE FROM texts WHERE i % 2 = 0;
VACUUM texts;
SELECT count(*) = 0 FROM texts WHERE words @@ to_tsquery('simple', 'word42') AND i % 2 = 0;
DROP TABLE texts;
DROP EXTENSION rum;
