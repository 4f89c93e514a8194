/* test/ring/test_ring/test_ring--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION test_ring" to load this file. \quit

--
-- Pages. They are not what the table's access method would write: a page header,
-- and then the number of the block and a version, 8 bytes at a time, to the end.
--

-- Add so many pages of zeros to a table; through no ring, and without WAL.
CREATE FUNCTION test_ring_extend(rel regclass, blocks int4)
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

-- From now on this session has a ring of a kind ('bulkwrite', 'vacuum',
-- 'bulkread') and, if the pool is large enough, with so many buffers; returns how
-- many it has.
CREATE FUNCTION test_ring_make(kind text, buffers int4)
RETURNS int4
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

-- Read blocks by this session's ring: a victim for each that is not in the pool.
-- Returns how many were not in the pool.
CREATE FUNCTION test_ring_read(rel regclass, first int4, blocks int4)
RETURNS int4
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

-- The same with one block, while an interrupt is pending that cannot be served.
CREATE FUNCTION test_ring_read_interrupted(rel regclass, block int4)
RETURNS int4
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

-- As test_ring_read(), and fill them, and set them dirty:
--   'logged'    with WAL, up to which WAL must be flushed before the page is written
--   'unlogged'  the LSN stays what it is
--   'fake lsn'  the page has an LSN far beyond the end of WAL, as those of unlogged
--               GiST indexes may have
CREATE FUNCTION test_ring_write(rel regclass, first int4, blocks int4, how text, version int4)
RETURNS int4
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

-- A table's buffers, read without any lock but the header's. "locked": its content
-- lock cannot be had shared at once. "pins": of all processes.
CREATE FUNCTION test_ring_buffers(rel regclass,
								  OUT block int8,
								  OUT dirty bool,
								  OUT pins int4,
								  OUT usage int4,
								  OUT permanent bool,
								  OUT io_in_progress bool,
								  OUT io_error bool,
								  OUT locked bool,
								  OUT lsn pg_lsn)
RETURNS SETOF record
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

-- Cut a table to so many blocks, as VACUUM does
CREATE FUNCTION test_ring_truncate(rel regclass, blocks int4)
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

--
-- Other users of the same buffers
--

-- Pin blocks so many times, one after the other, and let go: what counts as use.
CREATE FUNCTION test_ring_touch(rel regclass, blocks int4[], times int4)
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

-- Keep blocks, which must be in the pool, in a state, until somebody calls
-- test_ring_let_go(). Returns how long that was, in milliseconds.
--   'pin'                   pinned
--   'shared', 'exclusive'   pinned, with the content lock
--   'exclusive unpinned', 'shared unpinned'
--                           the lock without the pin, as for one who asks between
--                           looking at the pins and asking for the lock
--   'io unpinned'           I/O in progress without a pin, likewise; they must be dirty
CREATE FUNCTION test_ring_hold(rel regclass, blocks int4[], how text)
RETURNS float8
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

-- How many sessions are in test_ring_hold(), and have what they want
CREATE FUNCTION test_ring_holding()
RETURNS int4
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

-- End all calls of test_ring_hold(), and wait until they have let go
CREATE FUNCTION test_ring_let_go()
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

-- Write a block that is in the pool, as the checkpointer does
CREATE FUNCTION test_ring_write_out(rel regclass, block int4)
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

-- Set a block dirty as for a hint bit. If it is clean and this is its first change
-- since the last checkpoint, WAL is written and its LSN advances.
CREATE FUNCTION test_ring_hint(rel regclass, block int4)
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

--
-- A copy of pg_sweep's code that stops where it is told to
--

-- Whether this session uses that copy from now on
CREATE FUNCTION test_ring_instrument(use_copy bool)
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

-- Let this session's next lap that comes to a block stop once, until somebody calls
-- test_ring_go(), before it does this with its buffer:
--   'pin'     pin it, after a look without any lock
--   'lock'    lock its content
--   'io'      begin its I/O, after a look at its LSN
--   'write'   write the run that begins with it, of which all I/O has been begun
CREATE FUNCTION test_ring_stop_at(what text, block int4)
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

-- How many laps have stopped
CREATE FUNCTION test_ring_stopped()
RETURNS int4
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

-- Let them go on
CREATE FUNCTION test_ring_go()
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

-- What the copy has counted in its last lap, but for what is 0: "victims 1, eager 3"
CREATE FUNCTION test_ring_last_lap()
RETURNS text
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

--
-- All at once
--

-- Fill a table's blocks through this session's ring, with WAL, in turn, again and
-- again for so many milliseconds. Returns how many that were.
CREATE FUNCTION test_ring_work(rel regclass, milliseconds int4)
RETURNS int8
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

-- Meanwhile, pick any block that is in the pool: pin it, and either fill it with WAL
-- (content locked exclusively, its LSN advances) or set it dirty as for a hint bit
-- (locked shared). Its usage count stays as the ring has it. Returns how many that
-- were; as each fills in something else, pages tell the last one.
CREATE FUNCTION test_ring_disturb(rel regclass, milliseconds int4)
RETURNS int8
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

-- Blocks of which the pool or the file has another page than these functions fill
-- in, or a page that is not of one piece
CREATE FUNCTION test_ring_wrong(rel regclass)
RETURNS SETOF int8
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;

--
-- Files
--

-- From now on this process cannot write to a file beyond so many bytes; null for
-- no limit. That is for all of its files, WAL, too.
CREATE FUNCTION test_ring_limit_files(bytes int8)
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE CALLED ON NULL INPUT;

-- Close all files of relations, so that they are opened again by name
CREATE FUNCTION test_ring_close_files()
RETURNS void
AS 'MODULE_PATHNAME'
LANGUAGE C VOLATILE STRICT;
