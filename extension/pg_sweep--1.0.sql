/* extension/pg_sweep--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION pg_sweep" to load this file. \quit

--
-- What switches: superusers, and those they grant it to.
--

CREATE FUNCTION pg_sweep_set_strategy(strategy text)
RETURNS text
AS 'MODULE_PATHNAME', 'pg_sweep_set_strategy'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION pg_sweep_set_strategy(text) IS
'make a buffer replacement strategy active in all backends at once, until the next switch or a restart, that after a crash included; returns the one active before; not undone by ROLLBACK';

CREATE FUNCTION pg_sweep_reset_stats()
RETURNS timestamptz
AS 'MODULE_PATHNAME', 'pg_sweep_reset_stats'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION pg_sweep_reset_stats() IS
'let the counters of pg_sweep''s views begin at zero; returns the time of the reset before';

CREATE FUNCTION pg_sweep_set_lwlock_policy(policy text, tranche text DEFAULT NULL)
RETURNS text
AS 'MODULE_PATHNAME', 'pg_sweep_set_lwlock_policy'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION pg_sweep_set_lwlock_policy(text, text) IS
'make a policy of waiting for LWLocks active in all processes at once, until the next switch or a restart, that after a crash included; for one tranche (policy default: as the others again), or, without one, for all that have no policy of their own; returns the one active before; not undone by ROLLBACK';

REVOKE ALL ON FUNCTION pg_sweep_set_lwlock_policy(text, text) FROM PUBLIC;
REVOKE ALL ON FUNCTION pg_sweep_set_strategy(text) FROM PUBLIC;
REVOKE ALL ON FUNCTION pg_sweep_reset_stats() FROM PUBLIC;

--
-- What shows: pg_monitor.
--

CREATE FUNCTION pg_sweep_get_status(
    OUT state text,
    OUT note text,
    OUT server_api int4,
    OUT strategy text,
    OUT configured text,
    OUT reason text,
    OUT generation int8,
    OUT active_since timestamptz,
    OUT set_by text,
    OUT set_by_role name,
    OUT batch_size int4,
    OUT batch_size_configured int4,
    OUT buffers int4,
    OUT backends int4,
    OUT lease_limit int4,
    OUT hand int4,
    OUT passes int8,
    OUT partitions int4,
    OUT partitions_configured int4,
    OUT nodes int4,
    OUT nodes_note text,
    OUT numa_placement text,
    OUT numa_placement_configured text,
    OUT numa_placement_note text,
    OUT numa_placement_time interval,
    OUT lwlock_policy text,
    OUT lwlock_policy_configured text,
    OUT ring_eager_flush bool,
    OUT stats_reset timestamptz)
RETURNS record
AS 'MODULE_PATHNAME', 'pg_sweep_get_status'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

CREATE VIEW pg_sweep_status AS
    SELECT * FROM pg_sweep_get_status();

COMMENT ON VIEW pg_sweep_status IS 'one row: what pg_sweep can do on this server, and what is active';
COMMENT ON COLUMN pg_sweep_status.state IS 'ok, not preloaded, server not patched, or wrong API; if not ok, only note and server_api are known';
COMMENT ON COLUMN pg_sweep_status.note IS 'what to do about a state that is not ok; if it is ok: which core patches the server lacks, if any';
COMMENT ON COLUMN pg_sweep_status.server_api IS 'number of the hook contract that the server was built with; NULL without the patch';
COMMENT ON COLUMN pg_sweep_status.strategy IS 'the strategy that allocations use now';
COMMENT ON COLUMN pg_sweep_status.configured IS 'pg_sweep.strategy as last applied; what a restart makes active, unless the file has been edited since';
COMMENT ON COLUMN pg_sweep_status.reason IS 'what auto decided by; NULL if the strategy was named';
COMMENT ON COLUMN pg_sweep_status.generation IS 'number of switches since the server started, plus one';
COMMENT ON COLUMN pg_sweep_status.active_since IS 'when the strategy became active';
COMMENT ON COLUMN pg_sweep_status.set_by IS 'start, reload (of the configuration) or function';
COMMENT ON COLUMN pg_sweep_status.set_by_role IS 'who called pg_sweep_set_strategy(), if that was it';
COMMENT ON COLUMN pg_sweep_status.batch_size IS 'buffers that a backend takes from the hand at once';
COMMENT ON COLUMN pg_sweep_status.batch_size_configured IS 'pg_sweep.batch_size as last applied; 0 = automatic';
COMMENT ON COLUMN pg_sweep_status.buffers IS 'buffers of the pool';
COMMENT ON COLUMN pg_sweep_status.backends IS 'processes that have allocated a buffer and not exited';
COMMENT ON COLUMN pg_sweep_status.lease_limit IS 'buffers that all leases together may cover';
COMMENT ON COLUMN pg_sweep_status.hand IS 'buffer number (from 0) that the active strategy''s hand points to';
COMMENT ON COLUMN pg_sweep_status.passes IS 'complete passes of that hand since the server started';
COMMENT ON COLUMN pg_sweep_status.partitions IS 'partitions of strategy partitioned; see pg_sweep_partitions';
COMMENT ON COLUMN pg_sweep_status.partitions_configured IS 'pg_sweep.partitions; 0 = automatic';
COMMENT ON COLUMN pg_sweep_status.nodes IS 'NUMA nodes with memory that this server may use';
COMMENT ON COLUMN pg_sweep_status.nodes_note IS 'why there may be more nodes than are seen';
COMMENT ON COLUMN pg_sweep_status.numa_placement IS 'where shared buffers are put in fact: off, interleave or partition';
COMMENT ON COLUMN pg_sweep_status.numa_placement_configured IS 'pg_sweep.numa_placement: what was asked for';
COMMENT ON COLUMN pg_sweep_status.numa_placement_note IS 'why it is not what was asked for, or not all of it';
COMMENT ON COLUMN pg_sweep_status.numa_placement_time IS 'what placing the memory took when the server started';
COMMENT ON COLUMN pg_sweep_status.lwlock_policy IS 'how processes wait for LWLocks whose tranche has no policy of its own; NULL if the server lacks the hooks for it';
COMMENT ON COLUMN pg_sweep_status.lwlock_policy_configured IS 'pg_sweep.lwlock_policy as last applied';
COMMENT ON COLUMN pg_sweep_status.ring_eager_flush IS 'pg_sweep.ring_eager_flush in this session: are rings written out when a dirty buffer of them is reused? NULL if the server lacks the hooks for it';
COMMENT ON COLUMN pg_sweep_status.stats_reset IS 'since when the counters of the other views count';

CREATE FUNCTION pg_sweep_get_strategies(
    OUT strategy text,
    OUT active bool,
    OUT active_time interval,
    OUT switches int8,
    OUT hand int4,
    OUT passes int8,
    OUT allocations int8,
    OUT failed int8,
    OUT evictions int8,
    OUT looked_at int8,
    OUT usage_taken int8,
    OUT pinned int8,
    OUT lost_races int8,
    OUT leases int8,
    OUT leases_expired int8,
    OUT buffers_expired int8,
    OUT shared_atomics int8)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pg_sweep_get_strategies'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

CREATE VIEW pg_sweep_strategies AS
    SELECT * FROM pg_sweep_get_strategies();

COMMENT ON VIEW pg_sweep_strategies IS 'a row a strategy: what it did since stats_reset, all processes that ever ran together';
COMMENT ON COLUMN pg_sweep_strategies.active_time IS 'how long it was the active one';
COMMENT ON COLUMN pg_sweep_strategies.switches IS 'how often it was made active';
COMMENT ON COLUMN pg_sweep_strategies.hand IS 'buffer number (from 0) that its hand points to';
COMMENT ON COLUMN pg_sweep_strategies.passes IS 'complete passes of its hand since the server started';
COMMENT ON COLUMN pg_sweep_strategies.allocations IS 'victims asked for; buffers that a ring reused are not among them';
COMMENT ON COLUMN pg_sweep_strategies.failed IS 'of them, those that ended in "no unpinned buffers available"';
COMMENT ON COLUMN pg_sweep_strategies.evictions IS 'of allocations, those whose buffer held a page; the others were empty';
COMMENT ON COLUMN pg_sweep_strategies.looked_at IS 'buffers looked at for that';
COMMENT ON COLUMN pg_sweep_strategies.usage_taken IS 'looks that took one usage count away';
COMMENT ON COLUMN pg_sweep_strategies.pinned IS 'looks that found the buffer in use';
COMMENT ON COLUMN pg_sweep_strategies.lost_races IS 'looks during which another process changed the buffer';
COMMENT ON COLUMN pg_sweep_strategies.leases IS 'leases taken';
COMMENT ON COLUMN pg_sweep_strategies.leases_expired IS 'leases dropped or cut short: switched, lapped, or more backends since';
COMMENT ON COLUMN pg_sweep_strategies.buffers_expired IS 'buffers in what was dropped';
COMMENT ON COLUMN pg_sweep_strategies.shared_atomics IS 'atomic read-modify-writes of cache lines that all allocations share (hand, allocation counter); buffer headers and spinlocks not counted';

CREATE FUNCTION pg_sweep_get_backends(
    OUT pid int4,
    OUT backend_type text,
    OUT strategy text,
    OUT lease_left int4,
    OUT node int4,
    OUT home int4,
    OUT allocations int8,
    OUT failed int8,
    OUT evictions int8,
    OUT looked_at int8,
    OUT usage_taken int8,
    OUT pinned int8,
    OUT lost_races int8,
    OUT leases int8,
    OUT leases_expired int8,
    OUT buffers_expired int8)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pg_sweep_get_backends'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

CREATE VIEW pg_sweep_backends AS
    SELECT * FROM pg_sweep_get_backends();

COMMENT ON VIEW pg_sweep_backends IS 'a row a process that has allocated a buffer: its own counters since it began, or since stats_reset; those that core does not count for "stock" count its other strategies only';
COMMENT ON COLUMN pg_sweep_backends.strategy IS 'the strategy of its last allocation';
COMMENT ON COLUMN pg_sweep_backends.lease_left IS 'buffers of its lease not looked at yet';
COMMENT ON COLUMN pg_sweep_backends.node IS 'NUMA node of its home partition; NULL unless the strategy is partitioned';
COMMENT ON COLUMN pg_sweep_backends.home IS 'the partition it was at home in when it took its last lease';

CREATE FUNCTION pg_sweep_get_partitions(
    OUT partition int4,
    OUT node int4,
    OUT first_buffer int4,
    OUT num_buffers int4,
    OUT hand int4,
    OUT passes int8,
    OUT requests int8,
    OUT redirected_out int8,
    OUT allocations int8,
    OUT redirected_in int8,
    OUT local_allocations int8,
    OUT evictions int8,
    OUT life_expectancy interval)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pg_sweep_get_partitions'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

CREATE VIEW pg_sweep_partitions AS
    SELECT * FROM pg_sweep_get_partitions();

COMMENT ON VIEW pg_sweep_partitions IS 'a row a partition of strategy partitioned: where it is, and what it did since stats_reset';
COMMENT ON COLUMN pg_sweep_partitions.partition IS 'number of the partition, from 0';
COMMENT ON COLUMN pg_sweep_partitions.node IS 'NUMA node whose backends are at home here';
COMMENT ON COLUMN pg_sweep_partitions.first_buffer IS 'number of its first buffer, from 0';
COMMENT ON COLUMN pg_sweep_partitions.num_buffers IS 'how many buffers it has';
COMMENT ON COLUMN pg_sweep_partitions.hand IS 'buffer number that its hand points to';
COMMENT ON COLUMN pg_sweep_partitions.passes IS 'complete passes of its hand since the server started';
COMMENT ON COLUMN pg_sweep_partitions.requests IS 'victims asked for by processes at home here';
COMMENT ON COLUMN pg_sweep_partitions.redirected_out IS 'of requests, those that another partition served';
COMMENT ON COLUMN pg_sweep_partitions.allocations IS 'victims found here';
COMMENT ON COLUMN pg_sweep_partitions.redirected_in IS 'of allocations, those for processes at home elsewhere';
COMMENT ON COLUMN pg_sweep_partitions.local_allocations IS 'of allocations, those for processes on the partition''s node';
COMMENT ON COLUMN pg_sweep_partitions.evictions IS 'of allocations, those whose buffer held a page';
COMMENT ON COLUMN pg_sweep_partitions.life_expectancy IS 'for how long a page stays that nobody uses again, at the rate of about the last minute; NULL if nothing is evicted by strategy partitioned';

CREATE FUNCTION pg_sweep_get_nodes(
    OUT node int4,
    OUT cpus int4,
    OUT partitions int4,
    OUT buffers int8,
    OUT resident_buffers int8,
    OUT residence_asked_at timestamptz,
    OUT requests int8,
    OUT allocations int8,
    OUT local_allocations int8)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pg_sweep_get_nodes'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

CREATE VIEW pg_sweep_nodes AS
    SELECT n.node, n.cpus, n.partitions, n.buffers,
           n.resident_buffers, n.residence_asked_at,
           n.requests, n.allocations, n.local_allocations,
           n.allocations - n.local_allocations AS remote_allocations,
           round(100.0 * n.local_allocations / nullif(n.allocations, 0), 2) AS local_percent,
           round(100.0 * n.buffers / sum(n.buffers) OVER (), 2) AS fair_share_percent,
           round(100.0 * n.allocations / nullif(sum(n.allocations) OVER (), 0), 2) AS share_percent,
           round(100.0 * (n.allocations / nullif(sum(n.allocations) OVER (), 0)
                          / (nullif(n.buffers, 0) / sum(n.buffers) OVER ()) - 1), 2) AS imbalance_percent
      FROM pg_sweep_get_nodes() n;

COMMENT ON VIEW pg_sweep_nodes IS 'a row a NUMA node that this server may use: what its partitions did since stats_reset, and for whom';
COMMENT ON COLUMN pg_sweep_nodes.node IS 'the kernel''s number of the node';
COMMENT ON COLUMN pg_sweep_nodes.cpus IS 'CPUs that this server may use and that are nearest to this node';
COMMENT ON COLUMN pg_sweep_nodes.partitions IS 'partitions that belong to the node';
COMMENT ON COLUMN pg_sweep_nodes.buffers IS 'buffers of those partitions';
COMMENT ON COLUMN pg_sweep_nodes.resident_buffers IS 'buffers that really were in the node''s memory when pg_sweep_numa_residence was last asked; NULL if it never was';
COMMENT ON COLUMN pg_sweep_nodes.residence_asked_at IS 'when that was';
COMMENT ON COLUMN pg_sweep_nodes.requests IS 'victims asked for by processes on this node';
COMMENT ON COLUMN pg_sweep_nodes.allocations IS 'victims found in this node''s partitions';
COMMENT ON COLUMN pg_sweep_nodes.local_allocations IS 'of allocations, those for processes on this node';
COMMENT ON COLUMN pg_sweep_nodes.remote_allocations IS 'of allocations, those for processes on other nodes';
COMMENT ON COLUMN pg_sweep_nodes.local_percent IS 'local allocations in percent of all';
COMMENT ON COLUMN pg_sweep_nodes.fair_share_percent IS 'the node''s buffers in percent of the pool';
COMMENT ON COLUMN pg_sweep_nodes.share_percent IS 'the node''s allocations in percent of all';
COMMENT ON COLUMN pg_sweep_nodes.imbalance_percent IS 'by how much the share is above (below: negative) the fair share, in percent of that';

CREATE FUNCTION pg_sweep_get_flows(
    OUT from_partition int4,
    OUT to_partition int4,
    OUT from_node int4,
    OUT to_node int4,
    OUT weight float8,
    OUT distance int4)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pg_sweep_get_flows'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

CREATE VIEW pg_sweep_flows AS
    SELECT * FROM pg_sweep_get_flows();

COMMENT ON VIEW pg_sweep_flows IS 'the plan of strategy partitioned, in force while that is active: where the requests of each partition are sent; weights of a partition add up to 1';
COMMENT ON COLUMN pg_sweep_flows.weight IS 'fraction of the requests of from_partition that to_partition serves';
COMMENT ON COLUMN pg_sweep_flows.distance IS 'of the two nodes, as numa_distance has it; 10 is the same node';

CREATE FUNCTION pg_sweep_get_lwlock_waits(
    OUT tranche text,
    OUT mode text,
    OUT policy text,
    OUT contended int8,
    OUT spun int8,
    OUT queued int8,
    OUT slept int8,
    OUT spurious_wakeups int8,
    OUT overtaken int8,
    OUT handed_over int8,
    OUT wait_time float8,
    OUT longest_wait float8,
    OUT histogram int8[])
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pg_sweep_get_lwlock_waits'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

CREATE VIEW pg_sweep_lwlock_waits AS
    SELECT * FROM pg_sweep_get_lwlock_waits();

COMMENT ON VIEW pg_sweep_lwlock_waits IS 'a row for each tranche of LWLocks and mode that was waited for since stats_reset, all processes that ever ran together';
COMMENT ON COLUMN pg_sweep_lwlock_waits.tranche IS 'name of the tranche, as wait events have it; NULL: what processes found no place for that had met many tranches before';
COMMENT ON COLUMN pg_sweep_lwlock_waits.mode IS 'exclusive, shared, or wait until free (to be told that another has done it, as in flushing WAL)';
COMMENT ON COLUMN pg_sweep_lwlock_waits.policy IS 'the policy that the tranche has now';
COMMENT ON COLUMN pg_sweep_lwlock_waits.contended IS 'acquisitions that found the lock taken';
COMMENT ON COLUMN pg_sweep_lwlock_waits.spun IS 'of contended, those that got it by trying again, without sleeping';
COMMENT ON COLUMN pg_sweep_lwlock_waits.queued IS 'times that a process was put into the wait queue';
COMMENT ON COLUMN pg_sweep_lwlock_waits.slept IS 'times that it went to sleep then';
COMMENT ON COLUMN pg_sweep_lwlock_waits.spurious_wakeups IS 'wake-ups after which another process was quicker to get the lock';
COMMENT ON COLUMN pg_sweep_lwlock_waits.overtaken IS 'of contended, those that this happened to, once or more';
COMMENT ON COLUMN pg_sweep_lwlock_waits.handed_over IS 'of contended, those that the lock was kept for in the end, see pg_sweep.lwlock_handoff_after';
COMMENT ON COLUMN pg_sweep_lwlock_waits.wait_time IS 'total of all waits in which the process slept, from finding the lock taken to the last wake-up, in milliseconds';
COMMENT ON COLUMN pg_sweep_lwlock_waits.longest_wait IS 'the longest of them, in milliseconds';
COMMENT ON COLUMN pg_sweep_lwlock_waits.histogram IS 'how many of these waits there were: element 1 those below 1 microsecond, element i of the rest those below 2^(i-1), the last one all that were longer';

CREATE FUNCTION pg_sweep_get_lwlock_policies(
    OUT tranche text,
    OUT policy text,
    OUT own bool)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pg_sweep_get_lwlock_policies'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

CREATE VIEW pg_sweep_lwlock_policies AS
    SELECT * FROM pg_sweep_get_lwlock_policies();

COMMENT ON VIEW pg_sweep_lwlock_policies IS 'a row for each tranche of LWLocks that this session knows, and one for the default: how processes wait for them';
COMMENT ON COLUMN pg_sweep_lwlock_policies.tranche IS 'name of the tranche, as wait events have it; NULL: the default';
COMMENT ON COLUMN pg_sweep_lwlock_policies.policy IS 'the policy in force';
COMMENT ON COLUMN pg_sweep_lwlock_policies.own IS 'has the tranche a policy of its own?';

CREATE FUNCTION pg_sweep_get_pins(
    OUT pid int4,
    OUT backend_type text,
    OUT buffers_pinned int4,
    OUT most_pinned int4,
    OUT table_slots int8)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pg_sweep_get_pins'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

CREATE VIEW pg_sweep_pins AS
    SELECT * FROM pg_sweep_get_pins();

COMMENT ON VIEW pg_sweep_pins IS 'a row for each process that is connected to a database or has allocated a buffer: how many shared buffers it has pinned at this moment; empty if the server lacks the core patch pins-private-refcount';
COMMENT ON COLUMN pg_sweep_pins.pid IS 'process ID; pg_stat_activity has the rest';
COMMENT ON COLUMN pg_sweep_pins.backend_type IS 'what kind of process it is, as in pg_stat_activity';
COMMENT ON COLUMN pg_sweep_pins.buffers_pinned IS 'different buffers that the process has pinned now, each counted once however often it is pinned';
COMMENT ON COLUMN pg_sweep_pins.most_pinned IS 'most that it has had pinned at once since it began, at most: one of them it may have made room for only; pg_sweep_reset_stats() leaves it alone';
COMMENT ON COLUMN pg_sweep_pins.table_slots IS 'slots of the table in which it counts its pins, 8 bytes each; it grows with what is pinned at once, and if it has become very large, gets small again after the transaction';

CREATE FUNCTION pg_sweep_get_ring(
    OUT ring text,
    OUT laps int8,
    OUT victims int8,
    OUT eager int8,
    OUT writes int8,
    OUT wal_flushes int8,
    OUT skipped_clean int8,
    OUT skipped_pinned int8,
    OUT skipped_used int8,
    OUT skipped_wal int8,
    OUT skipped_locked int8,
    OUT skipped_io int8,
    OUT total_time float8)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pg_sweep_get_ring'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

CREATE VIEW pg_sweep_ring AS
    SELECT * FROM pg_sweep_get_ring();

COMMENT ON VIEW pg_sweep_ring IS 'a row for each kind of ring that pg_sweep.ring_eager_flush writes out: what was written since stats_reset, all processes that ever ran together; empty if the server lacks the core patch ring-flush-hooks';
COMMENT ON COLUMN pg_sweep_ring.ring IS 'bulkwrite (COPY FROM, CREATE TABLE AS, REFRESH MATERIALIZED VIEW, ...) or vacuum, as the contexts of pg_stat_io';
COMMENT ON COLUMN pg_sweep_ring.laps IS 'times that a process met a dirty victim in its ring, and went once through it';
COMMENT ON COLUMN pg_sweep_ring.victims IS 'of these victims, those that it wrote; the others had been written by somebody else meanwhile';
COMMENT ON COLUMN pg_sweep_ring.eager IS 'other blocks of the ring written then';
COMMENT ON COLUMN pg_sweep_ring.writes IS 'calls that wrote victims and others, each one or more neighbouring blocks';
COMMENT ON COLUMN pg_sweep_ring.wal_flushes IS 'victims that WAL had to be flushed for before; for none of the others it had to be';
COMMENT ON COLUMN pg_sweep_ring.skipped_clean IS 'buffers passed over as there was nothing to write';
COMMENT ON COLUMN pg_sweep_ring.skipped_pinned IS 'buffers passed over as somebody had them pinned';
COMMENT ON COLUMN pg_sweep_ring.skipped_used IS 'buffers passed over as others than the ring use them: their usage count is above 1';
COMMENT ON COLUMN pg_sweep_ring.skipped_wal IS 'buffers passed over as WAL would have to be flushed for them; after 64 of them without one that could be written the lap ends';
COMMENT ON COLUMN pg_sweep_ring.skipped_locked IS 'buffers passed over as their content was locked';
COMMENT ON COLUMN pg_sweep_ring.skipped_io IS 'buffers passed over as somebody else was writing them, just had, or had failed to';
COMMENT ON COLUMN pg_sweep_ring.total_time IS 'total of all laps, flushing WAL for victims and writing included, in milliseconds';

REVOKE ALL ON FUNCTION pg_sweep_get_status() FROM PUBLIC;
REVOKE ALL ON FUNCTION pg_sweep_get_strategies() FROM PUBLIC;
REVOKE ALL ON FUNCTION pg_sweep_get_backends() FROM PUBLIC;
REVOKE ALL ON FUNCTION pg_sweep_get_flows() FROM PUBLIC;
REVOKE ALL ON FUNCTION pg_sweep_get_lwlock_policies() FROM PUBLIC;
REVOKE ALL ON FUNCTION pg_sweep_get_lwlock_waits() FROM PUBLIC;
REVOKE ALL ON FUNCTION pg_sweep_get_nodes() FROM PUBLIC;
REVOKE ALL ON FUNCTION pg_sweep_get_partitions() FROM PUBLIC;
REVOKE ALL ON FUNCTION pg_sweep_get_pins() FROM PUBLIC;
REVOKE ALL ON FUNCTION pg_sweep_get_ring() FROM PUBLIC;
REVOKE ALL ON pg_sweep_status FROM PUBLIC;
REVOKE ALL ON pg_sweep_strategies FROM PUBLIC;
REVOKE ALL ON pg_sweep_backends FROM PUBLIC;
REVOKE ALL ON pg_sweep_flows FROM PUBLIC;
REVOKE ALL ON pg_sweep_lwlock_policies FROM PUBLIC;
REVOKE ALL ON pg_sweep_lwlock_waits FROM PUBLIC;
REVOKE ALL ON pg_sweep_nodes FROM PUBLIC;
REVOKE ALL ON pg_sweep_partitions FROM PUBLIC;
REVOKE ALL ON pg_sweep_pins FROM PUBLIC;
REVOKE ALL ON pg_sweep_ring FROM PUBLIC;

GRANT EXECUTE ON FUNCTION pg_sweep_get_status() TO pg_monitor;
GRANT EXECUTE ON FUNCTION pg_sweep_get_strategies() TO pg_monitor;
GRANT EXECUTE ON FUNCTION pg_sweep_get_backends() TO pg_monitor;
GRANT EXECUTE ON FUNCTION pg_sweep_get_flows() TO pg_monitor;
GRANT EXECUTE ON FUNCTION pg_sweep_get_lwlock_policies() TO pg_monitor;
GRANT EXECUTE ON FUNCTION pg_sweep_get_lwlock_waits() TO pg_monitor;
GRANT EXECUTE ON FUNCTION pg_sweep_get_nodes() TO pg_monitor;
GRANT EXECUTE ON FUNCTION pg_sweep_get_partitions() TO pg_monitor;
GRANT EXECUTE ON FUNCTION pg_sweep_get_pins() TO pg_monitor;
GRANT EXECUTE ON FUNCTION pg_sweep_get_ring() TO pg_monitor;
GRANT SELECT ON pg_sweep_status TO pg_monitor;
GRANT SELECT ON pg_sweep_strategies TO pg_monitor;
GRANT SELECT ON pg_sweep_backends TO pg_monitor;
GRANT SELECT ON pg_sweep_flows TO pg_monitor;
GRANT SELECT ON pg_sweep_lwlock_policies TO pg_monitor;
GRANT SELECT ON pg_sweep_lwlock_waits TO pg_monitor;
GRANT SELECT ON pg_sweep_nodes TO pg_monitor;
GRANT SELECT ON pg_sweep_partitions TO pg_monitor;
GRANT SELECT ON pg_sweep_pins TO pg_monitor;
GRANT SELECT ON pg_sweep_ring TO pg_monitor;

--
-- What asks the kernel, and takes its time.
--

CREATE FUNCTION pg_sweep_get_numa_residence(
    OUT what text,
    OUT partition int4,
    OUT node int4,
    OUT wanted_node int4,
    OUT page_size int8,
    OUT pages int8,
    OUT bytes int8)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pg_sweep_get_numa_residence'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION pg_sweep_get_numa_residence() IS
'ask the kernel where the pages of shared memory are; maps all that exist into this process';

CREATE VIEW pg_sweep_numa_residence AS
    SELECT * FROM pg_sweep_get_numa_residence();

COMMENT ON VIEW pg_sweep_numa_residence IS 'a row for each kind of shared memory, partition and NUMA node that has pages of it, according to the kernel; asking takes a system call for each thousand pages';
COMMENT ON COLUMN pg_sweep_numa_residence.what IS 'blocks (the buffers themselves), descriptors (of buffers), procs (PGPROCs), or fast-path locks (their arrays)';
COMMENT ON COLUMN pg_sweep_numa_residence.partition IS 'the partition that the blocks or descriptors belong to; NULL for the rest';
COMMENT ON COLUMN pg_sweep_numa_residence.node IS 'the node that the pages are on; NULL: never used yet (of huge pages, also: not known to have been used)';
COMMENT ON COLUMN pg_sweep_numa_residence.wanted_node IS 'the node that pg_sweep.numa_placement wants them on; NULL: any';
COMMENT ON COLUMN pg_sweep_numa_residence.page_size IS 'bytes of a page';
COMMENT ON COLUMN pg_sweep_numa_residence.pages IS 'pages; one that two partitions or nodes share counts for the one that has more of it, and one that has other things in it, too, is not counted';
COMMENT ON COLUMN pg_sweep_numa_residence.bytes IS 'bytes of those pages';

REVOKE ALL ON FUNCTION pg_sweep_get_numa_residence() FROM PUBLIC;
REVOKE ALL ON pg_sweep_numa_residence FROM PUBLIC;

GRANT EXECUTE ON FUNCTION pg_sweep_get_numa_residence() TO pg_monitor;
GRANT SELECT ON pg_sweep_numa_residence TO pg_monitor;
