/* extension/pg_sweep--1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION pg_sweep" to load this file. \quit

--
-- Functions that change something: for superusers and roles that they grant them to.
--

CREATE FUNCTION pg_sweep_set_strategy(strategy text)
RETURNS text
AS 'MODULE_PATHNAME', 'pg_sweep_set_strategy'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION pg_sweep_set_strategy(text) IS
'make a buffer replacement strategy active in all backends at once, until the next switch, a restart or a crash; returns the one before; not undone by ROLLBACK';

CREATE FUNCTION pg_sweep_reset_stats()
RETURNS timestamptz
AS 'MODULE_PATHNAME', 'pg_sweep_reset_stats'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION pg_sweep_reset_stats() IS
'reset the counters of pg_sweep''s views; returns the time of the reset before';

CREATE FUNCTION pg_sweep_set_lwlock_policy(policy text, tranche text DEFAULT NULL)
RETURNS text
AS 'MODULE_PATHNAME', 'pg_sweep_set_lwlock_policy'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION pg_sweep_set_lwlock_policy(text, text) IS
'make a policy of waiting for LWLocks active in all processes at once: for one tranche (policy default takes it away again), or for all tranches without a policy of their own; lasts until the next switch, a restart or a crash; returns the one before; not undone by ROLLBACK';

REVOKE ALL ON FUNCTION pg_sweep_set_lwlock_policy(text, text) FROM PUBLIC;
REVOKE ALL ON FUNCTION pg_sweep_set_strategy(text) FROM PUBLIC;
REVOKE ALL ON FUNCTION pg_sweep_reset_stats() FROM PUBLIC;

--
-- Views: for pg_monitor.
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
    OUT size_advice bool,
    OUT size_advice_since timestamptz,
    OUT nodes int4,
    OUT nodes_note text,
    OUT numa_placement text,
    OUT numa_placement_configured text,
    OUT numa_placement_note text,
    OUT numa_placement_time interval,
    OUT numa_sample_hits int4,
    OUT lwlock_policy text,
    OUT lwlock_policy_configured text,
    OUT ring_eager_flush bool,
    OUT stats_reset timestamptz)
RETURNS record
AS 'MODULE_PATHNAME', 'pg_sweep_get_status'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

CREATE VIEW pg_sweep_status AS
    SELECT * FROM pg_sweep_get_status();

COMMENT ON VIEW pg_sweep_status IS 'one row: the state of pg_sweep on this server, and what is active';
COMMENT ON COLUMN pg_sweep_status.state IS 'ok, not preloaded, server not patched, or wrong API; if not ok, only note and server_api are known';
COMMENT ON COLUMN pg_sweep_status.note IS 'what to do about a state that is not ok; otherwise the core patches of the series that the server lacks; and what to do if SQL objects and library are of different versions';
COMMENT ON COLUMN pg_sweep_status.server_api IS 'number of the server''s hook contract; NULL without the patch';
COMMENT ON COLUMN pg_sweep_status.strategy IS 'strategy of new allocations';
COMMENT ON COLUMN pg_sweep_status.configured IS 'pg_sweep.strategy as last applied';
COMMENT ON COLUMN pg_sweep_status.reason IS 'what auto decided by; NULL if the strategy was named';
COMMENT ON COLUMN pg_sweep_status.generation IS 'number of switches since the server started, plus one';
COMMENT ON COLUMN pg_sweep_status.active_since IS 'time of the last switch';
COMMENT ON COLUMN pg_sweep_status.set_by IS 'start, reload (of the configuration) or function';
COMMENT ON COLUMN pg_sweep_status.set_by_role IS 'role that called pg_sweep_set_strategy()';
COMMENT ON COLUMN pg_sweep_status.batch_size IS 'buffers of a full lease now';
COMMENT ON COLUMN pg_sweep_status.batch_size_configured IS 'pg_sweep.batch_size as last applied; 0 = automatic';
COMMENT ON COLUMN pg_sweep_status.buffers IS 'buffers in the pool';
COMMENT ON COLUMN pg_sweep_status.backends IS 'processes that have had a lease and not exited';
COMMENT ON COLUMN pg_sweep_status.lease_limit IS 'largest number of buffers that all leases together may cover';
COMMENT ON COLUMN pg_sweep_status.hand IS 'buffer number (from 0) at the active strategy''s hand; NULL with partitions, which have several';
COMMENT ON COLUMN pg_sweep_status.passes IS 'complete passes over the pool since the server started';
COMMENT ON COLUMN pg_sweep_status.partitions IS 'partitions of strategies that have any; see pg_sweep_partitions';
COMMENT ON COLUMN pg_sweep_status.partitions_configured IS 'pg_sweep.partitions; 0 = automatic';
COMMENT ON COLUMN pg_sweep_status.size_advice IS 'pg_sweep.size_advice as last applied';
COMMENT ON COLUMN pg_sweep_status.size_advice_since IS 'start of counting in pg_sweep_size_advice: when the first page left after it was turned on, or stats_reset if that is later; NULL if none has left';
COMMENT ON COLUMN pg_sweep_status.nodes IS 'NUMA nodes with memory that this server uses';
COMMENT ON COLUMN pg_sweep_status.nodes_note IS 'why the machine may have more nodes than that';
COMMENT ON COLUMN pg_sweep_status.numa_placement IS 'placement in force: off, interleave or partition';
COMMENT ON COLUMN pg_sweep_status.numa_placement_configured IS 'pg_sweep.numa_placement';
COMMENT ON COLUMN pg_sweep_status.numa_placement_note IS 'why placement in force differs from the configured one, does not fit the strategy, or which node had too little memory';
COMMENT ON COLUMN pg_sweep_status.numa_placement_time IS 'duration of placement at start';
COMMENT ON COLUMN pg_sweep_status.numa_sample_hits IS 'pg_sweep.numa_sample_hits; NULL if the server lacks the optional core patch hit-sampling';
COMMENT ON COLUMN pg_sweep_status.lwlock_policy IS 'policy of waiting for LWLocks of tranches without a policy of their own; NULL if the server lacks the hooks';
COMMENT ON COLUMN pg_sweep_status.lwlock_policy_configured IS 'pg_sweep.lwlock_policy as last applied';
COMMENT ON COLUMN pg_sweep_status.ring_eager_flush IS 'pg_sweep.ring_eager_flush in this session; NULL if the server lacks the hooks';
COMMENT ON COLUMN pg_sweep_status.stats_reset IS 'start of counting in all views';

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
    OUT buffers_expired int8)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pg_sweep_get_strategies'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

CREATE VIEW pg_sweep_strategies AS
    SELECT * FROM pg_sweep_get_strategies();

COMMENT ON VIEW pg_sweep_strategies IS 'one row per strategy, summed over all processes since stats_reset';
COMMENT ON COLUMN pg_sweep_strategies.active_time IS 'how long it was active';
COMMENT ON COLUMN pg_sweep_strategies.switches IS 'times that it was made active';
COMMENT ON COLUMN pg_sweep_strategies.hand IS 'buffer number (from 0) at its hand; NULL with partitions, which have several';
COMMENT ON COLUMN pg_sweep_strategies.passes IS 'complete passes of its hands over the pool since the server started';
COMMENT ON COLUMN pg_sweep_strategies.allocations IS 'victims requested, without buffers that a ring reused';
COMMENT ON COLUMN pg_sweep_strategies.failed IS 'of allocations, those that raised "no unpinned buffers available"';
COMMENT ON COLUMN pg_sweep_strategies.evictions IS 'of allocations, those whose buffer held a page; the others were empty';
COMMENT ON COLUMN pg_sweep_strategies.looked_at IS 'buffers examined to find victims';
COMMENT ON COLUMN pg_sweep_strategies.usage_taken IS 'buffers examined that lost one usage count';
COMMENT ON COLUMN pg_sweep_strategies.pinned IS 'buffers examined that were pinned or locked';
COMMENT ON COLUMN pg_sweep_strategies.lost_races IS 'buffers examined that another process changed at that moment';
COMMENT ON COLUMN pg_sweep_strategies.leases IS 'leases taken';
COMMENT ON COLUMN pg_sweep_strategies.leases_expired IS 'leases dropped or cut: after a switch, a lap, more backends, an exit';
COMMENT ON COLUMN pg_sweep_strategies.buffers_expired IS 'buffers in the dropped parts of leases';

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

COMMENT ON VIEW pg_sweep_backends IS 'one row per process that has had a lease: its counters since it started or since stats_reset; allocations by stock are not among them';
COMMENT ON COLUMN pg_sweep_backends.strategy IS 'strategy of its last lease';
COMMENT ON COLUMN pg_sweep_backends.lease_left IS 'buffers left of its lease';
COMMENT ON COLUMN pg_sweep_backends.node IS 'NUMA node of its home partition; NULL unless the lease was of a partition';
COMMENT ON COLUMN pg_sweep_backends.home IS 'its home partition when it took its last lease';

CREATE FUNCTION pg_sweep_get_partitions(
    OUT partition int4,
    OUT node int4,
    OUT first_buffer int4,
    OUT num_buffers int4,
    OUT hand int4,
    OUT passes int8,
    OUT laps float8,
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

COMMENT ON VIEW pg_sweep_partitions IS 'one row per partition: its place, and its counters since stats_reset, by leases that have ended';
COMMENT ON COLUMN pg_sweep_partitions.partition IS 'number of the partition, from 0';
COMMENT ON COLUMN pg_sweep_partitions.node IS 'NUMA node that it belongs to';
COMMENT ON COLUMN pg_sweep_partitions.first_buffer IS 'number of its first buffer, from 0';
COMMENT ON COLUMN pg_sweep_partitions.num_buffers IS 'number of its buffers';
COMMENT ON COLUMN pg_sweep_partitions.hand IS 'buffer number at its hand';
COMMENT ON COLUMN pg_sweep_partitions.passes IS 'complete passes of its hand since the server started';
COMMENT ON COLUMN pg_sweep_partitions.laps IS 'passes of its hand since laps were counted anew; with pg_sweep.balance some quarter apart';
COMMENT ON COLUMN pg_sweep_partitions.requests IS 'victims requested by processes whose home it is';
COMMENT ON COLUMN pg_sweep_partitions.redirected_out IS 'of requests, those that another partition served';
COMMENT ON COLUMN pg_sweep_partitions.allocations IS 'victims found here';
COMMENT ON COLUMN pg_sweep_partitions.redirected_in IS 'of allocations, those for processes with another home';
COMMENT ON COLUMN pg_sweep_partitions.local_allocations IS 'of allocations, those for processes on the partition''s node';
COMMENT ON COLUMN pg_sweep_partitions.evictions IS 'of allocations, those whose buffer held a page';
COMMENT ON COLUMN pg_sweep_partitions.life_expectancy IS 'time in which as many pages leave as the partition has buffers: num_buffers divided by evictions per second while a strategy with partitions was active since stats_reset; NULL without evictions';

CREATE FUNCTION pg_sweep_get_clock2q(
    OUT strategy text,
    OUT length int4,
    OUT least_length int4,
    OUT most_length int4,
    OUT slots int4,
    OUT window_length int4,
    OUT ghosts int4,
    OUT first_lap bool,
    OUT entered int8,
    OUT windows int8,
    OUT judged int8,
    OUT stayed int8,
    OUT victims_probation int8,
    OUT victims_main int8,
    OUT returned_probation int8,
    OUT returned_probation_soon int8,
    OUT returned_main int8,
    OUT returned_main_soon int8)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pg_sweep_get_clock2q'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

CREATE VIEW pg_sweep_clock2q AS
    SELECT * FROM pg_sweep_get_clock2q();

COMMENT ON VIEW pg_sweep_clock2q IS 'one row per strategy with probation: its state, and what it has counted since stats_reset; pages loaded for a ring are only among the victims';
COMMENT ON COLUMN pg_sweep_clock2q.strategy IS 'clock2q or clock2q_partitioned; the lengths and slots of the latter are sums over its partitions';
COMMENT ON COLUMN pg_sweep_clock2q.length IS 'how many slots the judging hand should be behind the filling hand: the pages on probation; adapts';
COMMENT ON COLUMN pg_sweep_clock2q.least_length IS 'smallest length';
COMMENT ON COLUMN pg_sweep_clock2q.most_length IS 'largest length';
COMMENT ON COLUMN pg_sweep_clock2q.slots IS 'how many slots the judging hand is behind; differs from length while that changes, and by leases';
COMMENT ON COLUMN pg_sweep_clock2q.window_length IS 'slots that are filled until the window of a page ends';
COMMENT ON COLUMN pg_sweep_clock2q.ghosts IS 'pages that left which are remembered, of each side';
COMMENT ON COLUMN pg_sweep_clock2q.first_lap IS 'many buffers are free: judged ones stay until these are used, or a lap of the hand has found few';
COMMENT ON COLUMN pg_sweep_clock2q.entered IS 'pages that were put on probation when they were loaded';
COMMENT ON COLUMN pg_sweep_clock2q.windows IS 'windows that have ended';
COMMENT ON COLUMN pg_sweep_clock2q.judged IS 'buffers whose probation has ended';
COMMENT ON COLUMN pg_sweep_clock2q.stayed IS 'of judged, those that the main part has now: used since their window, pinned, or in a first lap';
COMMENT ON COLUMN pg_sweep_clock2q.victims_probation IS 'of judged, the others: they were victims';
COMMENT ON COLUMN pg_sweep_clock2q.victims_main IS 'victims of the main part''s hand';
COMMENT ON COLUMN pg_sweep_clock2q.returned_probation IS 'pages loaded that had left from probation, and not too long ago: into the main part';
COMMENT ON COLUMN pg_sweep_clock2q.returned_probation_soon IS 'of these, those that returned soon: each makes length larger by a step';
COMMENT ON COLUMN pg_sweep_clock2q.returned_main IS 'the same, of pages that had left from the main part';
COMMENT ON COLUMN pg_sweep_clock2q.returned_main_soon IS 'of these, those that returned soon: each makes length smaller by a step';

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

COMMENT ON VIEW pg_sweep_nodes IS 'one row per NUMA node that this server uses: sums over its partitions since stats_reset';
COMMENT ON COLUMN pg_sweep_nodes.node IS 'the kernel''s number of the node';
COMMENT ON COLUMN pg_sweep_nodes.cpus IS 'CPUs nearest to this node that this server may use';
COMMENT ON COLUMN pg_sweep_nodes.partitions IS 'partitions that belong to the node';
COMMENT ON COLUMN pg_sweep_nodes.buffers IS 'buffers of those partitions';
COMMENT ON COLUMN pg_sweep_nodes.resident_buffers IS 'buffers in the node''s memory when pg_sweep_numa_residence was last read; NULL if never';
COMMENT ON COLUMN pg_sweep_nodes.residence_asked_at IS 'time of that';
COMMENT ON COLUMN pg_sweep_nodes.requests IS 'victims requested by processes on this node';
COMMENT ON COLUMN pg_sweep_nodes.allocations IS 'victims found in this node''s partitions';
COMMENT ON COLUMN pg_sweep_nodes.local_allocations IS 'of allocations, those for processes on this node';
COMMENT ON COLUMN pg_sweep_nodes.remote_allocations IS 'of allocations, those for processes on other nodes';
COMMENT ON COLUMN pg_sweep_nodes.local_percent IS 'local allocations in percent of the node''s allocations';
COMMENT ON COLUMN pg_sweep_nodes.fair_share_percent IS 'the node''s buffers in percent of the pool';
COMMENT ON COLUMN pg_sweep_nodes.share_percent IS 'the node''s allocations in percent of all allocations';
COMMENT ON COLUMN pg_sweep_nodes.imbalance_percent IS 'distance of the share from the fair share, in percent of the latter; negative if below';

CREATE FUNCTION pg_sweep_get_flows(
    OUT from_partition int4,
    OUT to_partition int4,
    OUT from_node int4,
    OUT to_node int4,
    OUT allocations bigint,
    OUT distance int4)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pg_sweep_get_flows'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

CREATE VIEW pg_sweep_flows AS
    SELECT * FROM pg_sweep_get_flows();

COMMENT ON VIEW pg_sweep_flows IS 'strategies with partitions: which partition has served the processes of which home';
COMMENT ON COLUMN pg_sweep_flows.allocations IS 'allocations by processes with home from_partition, served by to_partition';
COMMENT ON COLUMN pg_sweep_flows.distance IS 'distance of the two nodes as the kernel has it; 10 is the same node';

CREATE FUNCTION pg_sweep_get_size_advice(
    OUT size float8,
    OUT buffers int8,
    OUT bytes int8,
    OUT reads_per_second float8,
    OUT ratio float8,
    OUT ratio_low float8,
    OUT ratio_high float8,
    OUT note text)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pg_sweep_get_size_advice'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

CREATE VIEW pg_sweep_size_advice AS
    SELECT * FROM pg_sweep_get_size_advice();

COMMENT ON VIEW pg_sweep_size_advice IS 'one row per size of the pool: the reads that pg_sweep expects there, from a sample of the pages that have left the pool since size_advice_since';
COMMENT ON COLUMN pg_sweep_size_advice.size IS 'size of the pool as a multiple of shared_buffers';
COMMENT ON COLUMN pg_sweep_size_advice.buffers IS 'the same in buffers';
COMMENT ON COLUMN pg_sweep_size_advice.bytes IS 'the same in bytes';
COMMENT ON COLUMN pg_sweep_size_advice.reads_per_second IS 'blocks read a second, expected; at size 1 as seen; without reads through rings; NULL if unknown';
COMMENT ON COLUMN pg_sweep_size_advice.ratio IS 'to the reads at size 1';
COMMENT ON COLUMN pg_sweep_size_advice.ratio_low IS 'the ratio, less what the sample may be off in 95 of 100 cases, and what the rule was off in nine of ten loads; NULL if the ratio is a bound';
COMMENT ON COLUMN pg_sweep_size_advice.ratio_high IS 'the same, upwards';
COMMENT ON COLUMN pg_sweep_size_advice.note IS 'why a value is unknown, or only a bound';

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

COMMENT ON VIEW pg_sweep_lwlock_waits IS 'one row per tranche of LWLocks and mode that was waited for since stats_reset, summed over all processes';
COMMENT ON COLUMN pg_sweep_lwlock_waits.tranche IS 'name of the tranche, as in wait events; NULL for the sum of tranches that processes found no room for';
COMMENT ON COLUMN pg_sweep_lwlock_waits.mode IS 'exclusive, shared, or wait until free (what the lock protects may be done by another process, as flushing WAL)';
COMMENT ON COLUMN pg_sweep_lwlock_waits.policy IS 'policy of the tranche now';
COMMENT ON COLUMN pg_sweep_lwlock_waits.contended IS 'acquisitions that found the lock taken';
COMMENT ON COLUMN pg_sweep_lwlock_waits.spun IS 'of contended, those that got the lock by trying again, without sleep';
COMMENT ON COLUMN pg_sweep_lwlock_waits.queued IS 'times that a process entered the wait queue';
COMMENT ON COLUMN pg_sweep_lwlock_waits.slept IS 'times that a process slept in the queue';
COMMENT ON COLUMN pg_sweep_lwlock_waits.spurious_wakeups IS 'wakeups after which another process had taken the lock';
COMMENT ON COLUMN pg_sweep_lwlock_waits.overtaken IS 'of contended, those with at least one spurious wakeup';
COMMENT ON COLUMN pg_sweep_lwlock_waits.handed_over IS 'of contended, those that got the lock by handoff, see pg_sweep.lwlock_handoff_after';
COMMENT ON COLUMN pg_sweep_lwlock_waits.wait_time IS 'total time of waits with a sleep, from finding the lock taken to the last wakeup, in milliseconds';
COMMENT ON COLUMN pg_sweep_lwlock_waits.longest_wait IS 'longest of these waits, in milliseconds';
COMMENT ON COLUMN pg_sweep_lwlock_waits.histogram IS 'number of these waits by length: element 1 below 1 microsecond, element i below 2^(i-1) microseconds, the last one all longer waits';

CREATE FUNCTION pg_sweep_get_lwlock_policies(
    OUT tranche text,
    OUT policy text,
    OUT own bool)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pg_sweep_get_lwlock_policies'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

CREATE VIEW pg_sweep_lwlock_policies AS
    SELECT * FROM pg_sweep_get_lwlock_policies();

COMMENT ON VIEW pg_sweep_lwlock_policies IS 'one row per tranche of LWLocks that this session knows, and one for the default: the policy of waiting';
COMMENT ON COLUMN pg_sweep_lwlock_policies.tranche IS 'name of the tranche, as in wait events; NULL for the default';
COMMENT ON COLUMN pg_sweep_lwlock_policies.policy IS 'policy in force';
COMMENT ON COLUMN pg_sweep_lwlock_policies.own IS 'does the tranche have a policy of its own?';

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

COMMENT ON VIEW pg_sweep_pins IS 'one row per process that is connected to a database or has had a lease: its pinned shared buffers at this moment; empty if the server lacks the core patch pins-private-refcount';
COMMENT ON COLUMN pg_sweep_pins.pid IS 'process ID';
COMMENT ON COLUMN pg_sweep_pins.backend_type IS 'kind of process, as in pg_stat_activity';
COMMENT ON COLUMN pg_sweep_pins.buffers_pinned IS 'different buffers that it has pinned now; one pinned twice counts once';
COMMENT ON COLUMN pg_sweep_pins.most_pinned IS 'most buffers pinned at once since the process started, at least 1; not reset by pg_sweep_reset_stats()';
COMMENT ON COLUMN pg_sweep_pins.table_slots IS 'slots of its table of pins, 8 bytes each; a very large table shrinks after the transaction';

CREATE FUNCTION pg_sweep_get_ring(
    OUT ring text,
    OUT laps int8,
    OUT victims int8,
    OUT eager int8,
    OUT writes int8,
    OUT wal_flushes int8,
    OUT skipped_clean int8,
    OUT skipped_in_use int8,
    OUT skipped_wal int8,
    OUT total_time float8)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pg_sweep_get_ring'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

CREATE VIEW pg_sweep_ring AS
    SELECT * FROM pg_sweep_get_ring();

COMMENT ON VIEW pg_sweep_ring IS 'one row per kind of ring that pg_sweep.ring_eager_flush writes out, summed over all processes since stats_reset; empty if the server lacks the core patch ring-flush-hooks';
COMMENT ON COLUMN pg_sweep_ring.ring IS 'bulkwrite (COPY FROM, CREATE TABLE AS, REFRESH MATERIALIZED VIEW, ...) or vacuum, as the contexts of pg_stat_io';
COMMENT ON COLUMN pg_sweep_ring.laps IS 'times that a process met a dirty victim in its ring and went once through the ring';
COMMENT ON COLUMN pg_sweep_ring.victims IS 'of these victims, those that it wrote; another process had written the others';
COMMENT ON COLUMN pg_sweep_ring.eager IS 'other blocks of the ring written in laps';
COMMENT ON COLUMN pg_sweep_ring.writes IS 'calls that wrote victims and others, one or more neighbouring blocks each';
COMMENT ON COLUMN pg_sweep_ring.wal_flushes IS 'victims for which WAL was flushed first; the others need none';
COMMENT ON COLUMN pg_sweep_ring.skipped_clean IS 'buffers passed over: nothing to write';
COMMENT ON COLUMN pg_sweep_ring.skipped_in_use IS 'buffers passed over: in use (pinned, content locked, usage count above 1), or I/O in progress, just over or failed before';
COMMENT ON COLUMN pg_sweep_ring.skipped_wal IS 'buffers passed over: WAL would have to be flushed; 64 of them without a write between end the lap';
COMMENT ON COLUMN pg_sweep_ring.total_time IS 'total time of all laps, including WAL flushes for victims and writes, in milliseconds';

CREATE FUNCTION pg_sweep_get_numa_hits(
    OUT from_node int4,
    OUT to_node int4,
    OUT distance int4,
    OUT sampled int8)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pg_sweep_get_numa_hits'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

-- The error is that of Agresti and Coull: two more successes and failures keep
-- it from being 0 for a share of 0 or 100 percent.
CREATE VIEW pg_sweep_numa_hits AS
    SELECT h.from_node, h.to_node, h.distance, h.sampled,
           round(100 * h.sampled / h.n, 2) AS share_percent,
           round(196 * sqrt((h.sampled + 2) * (h.n - h.sampled + 2) / (h.n + 4)) / (h.n + 4), 2) AS error_percent
      FROM (SELECT *, sum(sampled) OVER (PARTITION BY from_node) AS n
              FROM pg_sweep_get_numa_hits()) h;

COMMENT ON VIEW pg_sweep_numa_hits IS 'one row per pair of NUMA nodes with sampled buffer hits since stats_reset, summed over all processes; empty unless pg_sweep.numa_sample_hits is set, on one node, and on a server without the optional core patch hit-sampling';
COMMENT ON COLUMN pg_sweep_numa_hits.from_node IS 'node that the process ran on';
COMMENT ON COLUMN pg_sweep_numa_hits.to_node IS 'node of the page''s memory; NULL if the server does not use it, or the kernel does not tell';
COMMENT ON COLUMN pg_sweep_numa_hits.distance IS 'distance of the two nodes as the kernel has it; 10 is the same node';
COMMENT ON COLUMN pg_sweep_numa_hits.sampled IS 'sampled hits';
COMMENT ON COLUMN pg_sweep_numa_hits.share_percent IS 'their part of the sampled hits of from_node';
COMMENT ON COLUMN pg_sweep_numa_hits.error_percent IS 'the share of all hits is that of the sampled ones plus or minus this, in 95 of 100 cases';

--
-- Residence asks the kernel, which takes time.
--

CREATE FUNCTION pg_sweep_get_numa_residence(
    OUT what text,
    OUT partition int4,
    OUT node int4,
    OUT wanted_node int4,
    OUT page_size int8,
    OUT pages int8,
    OUT bytes int8,
    OUT asked int8,
    OUT note text)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'pg_sweep_get_numa_residence'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

COMMENT ON FUNCTION pg_sweep_get_numa_residence() IS
'ask the kernel where the pages of shared memory are, or a sample: 16384 of blocks, descriptors and other, 1024 of each other part';

CREATE VIEW pg_sweep_numa_residence AS
    SELECT * FROM pg_sweep_get_numa_residence();

COMMENT ON VIEW pg_sweep_numa_residence IS 'one row per part of shared memory, partition and NUMA node, as the kernel tells; of many pages a sample';
COMMENT ON COLUMN pg_sweep_numa_residence.what IS 'blocks (the buffers), descriptors (of buffers), procs (PGPROCs), fast-path locks and slots (of processes), a name as in pg_shmem_allocations, unallocated (left for later), or other (all smaller parts)';
COMMENT ON COLUMN pg_sweep_numa_residence.partition IS 'partition of the blocks or descriptors; NULL for the rest';
COMMENT ON COLUMN pg_sweep_numa_residence.node IS 'node of the pages; NULL for pages never used (of huge pages: not known to have been used), or if the kernel does not tell';
COMMENT ON COLUMN pg_sweep_numa_residence.wanted_node IS 'node where pg_sweep.numa_placement puts them; NULL for all nodes in turn, or any';
COMMENT ON COLUMN pg_sweep_numa_residence.page_size IS 'size of a page in bytes';
COMMENT ON COLUMN pg_sweep_numa_residence.pages IS 'pages; an estimate if more than asked; NULL if unknown; one shared by two parts counts for the larger one';
COMMENT ON COLUMN pg_sweep_numa_residence.bytes IS 'bytes of those pages';
COMMENT ON COLUMN pg_sweep_numa_residence.asked IS 'pages that the kernel was asked about and has found here, each for an equal part of the group';
COMMENT ON COLUMN pg_sweep_numa_residence.note IS 'why the kernel does not tell';

--
-- Rights of the views and of the functions behind them.
--

REVOKE ALL ON FUNCTION
    pg_sweep_get_status(), pg_sweep_get_strategies(),
    pg_sweep_get_backends(), pg_sweep_get_partitions(), pg_sweep_get_nodes(),
    pg_sweep_get_flows(), pg_sweep_get_clock2q(), pg_sweep_get_size_advice(),
    pg_sweep_get_numa_hits(),
    pg_sweep_get_numa_residence(),
    pg_sweep_get_lwlock_waits(), pg_sweep_get_lwlock_policies(),
    pg_sweep_get_pins(), pg_sweep_get_ring()
    FROM PUBLIC;

REVOKE ALL ON
    pg_sweep_status, pg_sweep_strategies, pg_sweep_backends,
    pg_sweep_partitions, pg_sweep_nodes, pg_sweep_flows, pg_sweep_clock2q,
    pg_sweep_size_advice,
    pg_sweep_numa_hits,
    pg_sweep_numa_residence, pg_sweep_lwlock_waits, pg_sweep_lwlock_policies,
    pg_sweep_pins, pg_sweep_ring
    FROM PUBLIC;

GRANT EXECUTE ON FUNCTION
    pg_sweep_get_status(), pg_sweep_get_strategies(),
    pg_sweep_get_backends(), pg_sweep_get_partitions(), pg_sweep_get_nodes(),
    pg_sweep_get_flows(), pg_sweep_get_clock2q(), pg_sweep_get_size_advice(),
    pg_sweep_get_numa_hits(),
    pg_sweep_get_numa_residence(),
    pg_sweep_get_lwlock_waits(), pg_sweep_get_lwlock_policies(),
    pg_sweep_get_pins(), pg_sweep_get_ring()
    TO pg_monitor;

GRANT SELECT ON
    pg_sweep_status, pg_sweep_strategies, pg_sweep_backends,
    pg_sweep_partitions, pg_sweep_nodes, pg_sweep_flows, pg_sweep_clock2q,
    pg_sweep_size_advice,
    pg_sweep_numa_hits,
    pg_sweep_numa_residence, pg_sweep_lwlock_waits, pg_sweep_lwlock_policies,
    pg_sweep_pins, pg_sweep_ring
    TO pg_monitor;
