/* test/pins/test_pins/test_pins--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION test_pins" to load this file. \quit

-- Random steps with pins on the buffers of one table, compared with a model. An
-- error tells step and seed at the first difference. The same seed takes the same
-- steps. The table must be empty, no other process may use it, and it is empty
-- afterwards. At most "held" buffers, and some more for a moment, are pinned at
-- once.
CREATE FUNCTION test_pins_random(rel regclass, steps int8, seed int8 DEFAULT 1,
		held int4 DEFAULT 400, OUT pinned int8, OUT pinned_again int8,
		OUT released int8, OUT released_and_read int8, OUT recent int8,
		OUT recent_gone int8, OUT read_together int8, OUT extended int8,
		OUT truncated int8, OUT evicted int8, OUT transferred int8,
		OUT owners int8, OUT dropped_by_owners int8, OUT subtransactions int8,
		OUT dropped_by_aborts int8, OUT errors int8, OUT deepest int8,
		OUT most_held int8, OUT sizes int8, OUT emptied int8,
		OUT compared int8, OUT shown_elsewhere int8, OUT overwritten int8)
AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Whether the server tells how many buffers are pinned, by the core patch
-- "pins-private-refcount". If so, test_pins_random() compares that, too.
CREATE FUNCTION test_pins_has_info()
RETURNS bool AS 'MODULE_PATHNAME' LANGUAGE C IMMUTABLE STRICT;

-- Adds pages of zeros to a table.
CREATE FUNCTION test_pins_extend(rel regclass, blocks int4)
RETURNS void AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Pins the next blocks of a table, once each, until the end of the transaction or
-- test_pins_release(). Returns how many are held. Begins at block 0 if nothing is
-- held or the last call named another table.
CREATE FUNCTION test_pins_hold(rel regclass, blocks int4)
RETURNS int4 AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Pins one of the held buffers once more and unpins it, that many times: random
-- ones, or one after the other.
CREATE FUNCTION test_pins_again(times int8, cyclic bool DEFAULT false)
RETURNS void AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Releases the pins of test_pins_hold(). Returns how many there were.
CREATE FUNCTION test_pins_release()
RETURNS int4 AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Pins the first blocks and forgets about them, as broken code would.
CREATE FUNCTION test_pins_leak(rel regclass, blocks int4)
RETURNS void AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Pinned buffers of a table, and the pinning processes, summed over its buffers;
-- buffers of any table that this process has pinned, and the sum of their pins.
CREATE FUNCTION test_pins_count(rel regclass, OUT buffers int4,
		OUT processes int8, OUT own_buffers int4, OUT own_pins int8)
AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Pins block after block while the kernel grants no more memory. Returns how many
-- pins were held at the error, which is null if the blocks did not suffice. Fails
-- if one of these pins is lost.
CREATE FUNCTION test_pins_out_of_memory(rel regclass, OUT held int4,
		OUT sqlstate text, OUT message text)
AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Runs a statement while the buffers with these numbers, from 0, are pinned. They
-- need not hold a page. Returns NULL if it succeeded, else "SQLSTATE: message" of
-- its error.
CREATE FUNCTION test_pins_with_buffers(buffers int4[], statement text)
RETURNS text AS 'MODULE_PATHNAME' LANGUAGE C STRICT;
