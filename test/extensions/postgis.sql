-- package: postgis-3
CREATE EXTENSION postgis;
CREATE TABLE places AS
    SELECT i, ST_SetSRID(ST_MakePoint(i % 200, i / 200), 4326) AS place FROM generate_series(0, 19999) i;
CREATE INDEX places_gist ON places USING gist (place);
SET enable_seqscan = off;
SELECT i = 4711 FROM places ORDER BY place <-> ST_SetSRID(ST_MakePoint(111.1, 23.1), 4326) LIMIT 1;
SELECT count(*) = 121 FROM places WHERE place && ST_MakeEnvelope(10, 10, 20, 20, 4326);
SELECT abs(ST_Area(ST_Buffer(ST_MakePoint(0, 0), 1, 64)) - pi()) < 0.001;
DROP TABLE places;
DROP EXTENSION postgis;
