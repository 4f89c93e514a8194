-- package: ip4r
CREATE EXTENSION ip4r;
CREATE TABLE ranges AS
    SELECT i, (format('10.%s.%s.0/24', i / 256, i % 256))::ip4r AS r FROM generate_series(0, 19999) i;
CREATE INDEX ranges_gist ON ranges USING gist (r);
SET enable_seqscan = off;
SELECT i = 4711 FROM ranges WHERE r >>= '10.18.103.77'::ip4r;
SELECT count(*) = 256 FROM ranges WHERE r <<= '10.3.0.0/16'::ip4r;
DROP TABLE ranges;
DROP EXTENSION ip4r;
