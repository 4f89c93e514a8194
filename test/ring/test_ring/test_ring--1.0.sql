/* test/ring/test_ring/test_ring--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION test_ring" to load this file. \quit

--
-- Pages. Their contents are not those of the table's access method: a page header,
-- and then the block's number and a version, repeated every 8 bytes to the end.
--

-- Adds pages of zeros to a table, through no ring and without WAL.
CREATE FUNCTION test_ring_extend(rel regclass, blocks int4)
RETURNS void AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Gives this session a ring of a kind ('bulkwrite', 'vacuum', 'bulkread'), with that
-- many buffers if the pool is large enough. Returns how many it has.
CREATE FUNCTION test_ring_make(kind text, buffers int4)
RETURNS int4 AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Reads blocks through the ring: one victim for each that is not in the pool.
-- Returns how many were not.
CREATE FUNCTION test_ring_read(rel regclass, first int4, blocks int4)
RETURNS int4 AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- The same with one block, while an interrupt is pending that cannot be served.
CREATE FUNCTION test_ring_read_interrupted(rel regclass, block int4)
RETURNS int4 AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- As test_ring_read(), and also fills the pages and makes them dirty:
--   'logged'    with WAL, which must be flushed before the page is written
--   'unlogged'  the LSN does not change
--   'fake lsn'  the LSN is far beyond the end of WAL, as in unlogged GiST indexes
CREATE FUNCTION test_ring_write(rel regclass, first int4, blocks int4, how text, version int4)
RETURNS int4 AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- The buffers of a table, read with no lock but the header's. "locked": the content
-- lock cannot be had shared at once. "pins": of all processes.
CREATE FUNCTION test_ring_buffers(rel regclass, OUT block int8, OUT dirty bool,
		OUT pins int4, OUT usage int4, OUT permanent bool,
		OUT io_in_progress bool, OUT io_error bool, OUT locked bool,
		OUT lsn pg_lsn)
RETURNS SETOF record AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Truncates a table to that many blocks, as VACUUM does.
CREATE FUNCTION test_ring_truncate(rel regclass, blocks int4)
RETURNS void AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

--
-- Other users of the same buffers
--

-- Pins and unpins blocks that many times, which counts as use.
CREATE FUNCTION test_ring_touch(rel regclass, blocks int4[], times int4)
RETURNS void AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Keeps blocks, which must be in the pool, in a state until test_ring_let_go() is
-- called.
--   'pin'                   pinned
--   'shared', 'exclusive'   pinned, with the content lock
--   'exclusive unpinned', 'shared unpinned'
--                           the lock without the pin, like a process between its
--                           look at the pins and its request for the lock
--   'io unpinned'           likewise I/O in progress; the blocks must be dirty
CREATE FUNCTION test_ring_hold(rel regclass, blocks int4[], how text)
RETURNS void AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- How many sessions are in test_ring_hold() and hold their blocks
CREATE FUNCTION test_ring_holding()
RETURNS int4 AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Ends all calls of test_ring_hold(), and waits for their end.
CREATE FUNCTION test_ring_let_go()
RETURNS void AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Writes a block that is in the pool, as the checkpointer does.
CREATE FUNCTION test_ring_write_out(rel regclass, block int4)
RETURNS void AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Makes a block dirty as for a hint bit. If it was clean and this is its first
-- change since the last checkpoint, WAL is written and its LSN advances.
CREATE FUNCTION test_ring_hint(rel regclass, block int4)
RETURNS void AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

--
-- A copy of pg_sweep's code with stops
--

-- Chooses between that copy and the extension's code for this session.
CREATE FUNCTION test_ring_instrument(use_copy bool)
RETURNS void AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Stops this session's next lap once, at a block, until test_ring_go() is called,
-- before the lap does this with the block's buffer:
--   'pin'     pins it, after a look without any lock
--   'lock'    locks its content
--   'io'      begins its I/O, after a look at its LSN
--   'write'   writes the run that begins with it, after all its I/O was begun
CREATE FUNCTION test_ring_stop_at(what text, block int4)
RETURNS void AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- How many laps are stopped
CREATE FUNCTION test_ring_stopped()
RETURNS int4 AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Lets them go on.
CREATE FUNCTION test_ring_go()
RETURNS void AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- The nonzero counts of the copy's last lap: "victims 1, eager 3"
CREATE FUNCTION test_ring_last_lap()
RETURNS text AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

--
-- Load
--

-- Fills the blocks of a table through this session's ring, with WAL, in turn, for
-- that many milliseconds. Returns how many.
CREATE FUNCTION test_ring_work(rel regclass, milliseconds int4)
RETURNS int8 AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Changes random blocks that are in the pool meanwhile: fills one with WAL (content
-- locked exclusively, its LSN advances) or makes it dirty as for a hint bit (locked
-- shared). Usage counts do not change. Returns how many. Each fill is different, so
-- a page shows which was the last.
CREATE FUNCTION test_ring_disturb(rel regclass, milliseconds int4)
RETURNS int8 AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

-- Blocks of which the pool or the file has a page that these functions did not
-- fill, or parts of different fills
CREATE FUNCTION test_ring_wrong(rel regclass)
RETURNS SETOF int8 AS 'MODULE_PATHNAME' LANGUAGE C STRICT;

--
-- Files
--

-- Limits the size of all files that this process writes, WAL included; null for
-- no limit.
CREATE FUNCTION test_ring_limit_files(bytes int8)
RETURNS void AS 'MODULE_PATHNAME' LANGUAGE C;

-- Closes all files of relations: they are opened again by name.
CREATE FUNCTION test_ring_close_files()
RETURNS void AS 'MODULE_PATHNAME' LANGUAGE C STRICT;
