/* test/pins/test_pins/test_pins--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION test_pins" to load this file. \quit

-- So many random steps with pins on a table's buffers, and on nothing else, which
-- are compared with a model; an error tells the step and the seed when they
-- differ. The same seed takes the same steps. The table must be empty, must be no
-- one else's business, and is empty again afterwards. At most "held" different
-- buffers (some more in passing) are pinned at once.
CREATE FUNCTION test_pins_random(rel regclass,
								 steps int8,
								 seed int8 DEFAULT 1,
								 held int4 DEFAULT 400,
								 OUT pinned int8,
								 OUT pinned_again int8,
								 OUT released int8,
								 OUT released_and_read int8,
								 OUT recent int8,
								 OUT recent_gone int8,
								 OUT read_together int8,
								 OUT extended int8,
								 OUT truncated int8,
								 OUT evicted int8,
								 OUT transferred int8,
								 OUT owners int8,
								 OUT dropped_by_owners int8,
								 OUT subtransactions int8,
								 OUT dropped_by_aborts int8,
								 OUT errors int8,
								 OUT deepest int4,
								 OUT most_held int4,
								 OUT sizes int4,
								 OUT emptied int8,
								 OUT compared int8,
								 OUT heads_moved int8)
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

-- Does the server tell how many buffers are pinned, by the core patch
-- "pins-private-refcount"? If so, test_pins_random() compares that, too.
CREATE FUNCTION test_pins_has_info()
RETURNS bool
AS 'MODULE_PATHNAME'
LANGUAGE C IMMUTABLE STRICT;

-- Add so many pages of zeros to a table.
CREATE FUNCTION test_pins_extend(rel regclass, blocks int4)
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

-- Pin the next so many blocks of a table, once each, and hold them until the end
-- of the transaction or test_pins_release(); returns how many are held. Begins at
-- block 0 if nothing is held, or another table was named last.
CREATE FUNCTION test_pins_hold(rel regclass, blocks int4)
RETURNS int4
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

-- So many times pin once more and unpin a buffer of those held: at random, or one
-- after the other.
CREATE FUNCTION test_pins_again(times int8, cyclic bool DEFAULT false)
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

-- Let go of what test_pins_hold() holds; returns how many that were.
CREATE FUNCTION test_pins_release()
RETURNS int4
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

-- Pin the first so many blocks and forget about it, as broken code would.
CREATE FUNCTION test_pins_leak(rel regclass, blocks int4)
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

-- Buffers of a table that are pinned by anybody, and by how many processes all
-- together; buffers, of any table, that this process has pinned, and how often.
CREATE FUNCTION test_pins_count(rel regclass,
								OUT buffers int4,
								OUT processes int8,
								OUT own_buffers int4,
								OUT own_pins int8)
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

-- Pin block after block while the kernel grants no more memory; the error that
-- came of it, and how many pins were held by then (all of them there still, else
-- an error). Null if blocks did not suffice.
CREATE FUNCTION test_pins_out_of_memory(rel regclass,
										OUT held int4,
										OUT sqlstate text,
										OUT message text)
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

-- Runs a statement while the first blocks of a table are pinned. Returns NULL if
-- it succeeded, else "SQLSTATE: message" of its error.
CREATE FUNCTION test_pins_with_blocks(rel regclass, blocks int4, statement text)
RETURNS text
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

-- The same while the buffers with these numbers, from 0, are pinned. They need not
-- hold a page.
CREATE FUNCTION test_pins_with_buffers(buffers int4[], statement text)
RETURNS text
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;
