/* test/numa/test_hits/test_hits--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION test_hits" to load this file. \quit

-- Runs a statement, and counts all of its buffer hits, by buffer (from 0). Those
-- that the sampler of another library, which was there before, asked for are handed
-- on to it, as core would do it. "seconds" is the time from hits of the buffer to
-- the next hits: what a timer sees. Fails if the sum differs from core's own count.
CREATE FUNCTION test_hits_count(statement text, OUT buffer int4, OUT hits int8,
		OUT seconds float8)
RETURNS SETOF record
AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Reads a random block of one table, "often" times, and of another one once; all of
-- that "times" times.
CREATE FUNCTION test_hits_loop(often_rel regclass, once_rel regclass, often int4,
		times int8)
RETURNS void AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- The buffer hits of this process so far, as core has counted them
CREATE FUNCTION test_hits_of_core()
RETURNS int8 AS 'MODULE_PATHNAME' LANGUAGE C STRICT;
