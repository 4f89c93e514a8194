/* test/pins/measure_pins/measure_pins--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION measure_pins" to load this file. \quit

-- Pins "held" different pages of a relation, and then pins and unpins in a loop
-- until max_operations or duration_ms is reached; at least one of them must be
-- given. An operation is one pin and one unpin:
--
--	 again	 of a held page, chosen by hit_order: "last" (always the one held
--			 last), "cyclic" or "random"
--	 other	 of a page that is not held, of 16 in turn, in the buffer where it is
--			 known to be (ReadRecentBuffer)
--	 read	 the same, found by the mapping table (ReadBuffer)
--	 stream	 pin of the next page, unpin of the one held for the longest time, as
--			 a read stream does
--	 join	 three as "other", then one as "again"
--	 owner	 no pin: only the resource owner's part of "again"
--
-- operations and pages: their number, and that of different pages. The times do
-- not include the pins held at first and the first turns of the loop. cpu_ns: of
-- this process.
CREATE FUNCTION measure_pins_run(relation regclass, kind text, held int4,
		hit_order text DEFAULT 'random', max_operations int8 DEFAULT NULL,
		duration_ms int4 DEFAULT NULL, OUT operations int8, OUT pages int4,
		OUT elapsed_ns int8, OUT cpu_ns int8)
AS 'MODULE_PATHNAME' LANGUAGE C;

REVOKE ALL ON FUNCTION measure_pins_run(regclass, text, int4, text, int8, int4) FROM PUBLIC;
