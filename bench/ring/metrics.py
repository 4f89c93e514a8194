"""The metrics of the bench copy."""

from bench.lib.tables import Metric

ELAPSED = "elapsed_s"
CHECKPOINTS = "checkpoints"
SAMPLER = "sampler_cpu_share"

BLOCK = 8192

# Wait events that are reported, as pg_stat_activity calls them.
EVENTS = (("LWLock", "WALWrite"), ("LWLock", "WALInsert"),
          ("IO", "WalWrite"), ("IO", "WalSync"), ("IO", "DataFileWrite"),
          ("IO", "DataFileExtend"))

NOTHING = ("", "")              # waits for nothing: runs, or wants a CPU
IDLE = ("Client", "ClientRead")


def event_metric(event):
    return f"sampled_{'_'.join(event).lower()}_ms_per_gb"


# Metric, title, digits, and the counter of the bench that is divided by the GB of
# the table, with another divisor.
ROWS = (
    (ELAPSED, "elapsed, s", 2),
    ("cpu_s_per_gb", "CPU time of the writers, s", 2, "cpu_ns", 1e9),
    ("wal_write_lock_waits_per_gb", "waits on WALWriteLock", 0,
     "lock_waits"),
    ("wal_write_lock_flush_waits_per_gb", "of them, to flush WAL", 0,
     "flush_waits"),
    ("wal_write_lock_contended_per_gb", "times the lock was found taken", 0,
     "lock_contended"),
    ("wal_write_lock_wait_ms_per_gb", "these waits, ms", 0, "lock_ms"),
    *((event_metric(event), f"sampled: {': '.join(event)}, ms", 0)
      for event in EVENTS),
    ("sampled_other_ms_per_gb", "sampled: other waits, ms", 0),
    ("sampled_none_ms_per_gb", "sampled: no wait, ms", 0),
    ("switches_per_gb", "voluntary switches of the writers", 0, "switches"),
    ("data_file_writes_per_gb", "writes to data files (pg_stat_io)", 0,
     "writes"),
    ("ring_writes_per_gb", "of them, in context bulkwrite", 0, "writes_ring"),
    ("blocks_per_write", "blocks per write", 2),
    ("blocks_written_per_gb", "blocks written by the writers", 0,
     "write_bytes", BLOCK),
    ("blocks_by_others_per_gb", "blocks written by others", 0, "other_bytes",
     BLOCK),
    ("extends_per_gb", "extensions of the table", 0, "extends"),
    ("wal_writes_per_gb", "writes of WAL by the writers", 0, "wal_writes"),
    ("wal_buffers_full_per_gb", "of them, as all WAL buffers were full", 0,
     "buffers_full"),
    ("wal_fsyncs_per_gb", "fsyncs of WAL by the writers", 0, "wal_fsyncs"),
    ("wal_fsyncs_by_others_per_gb", "fsyncs of WAL by others", 0,
     "other_fsyncs"),
    ("write_calls_per_gb", "calls that write (kernel)", 0, "calls"),
    ("wal_mb_per_gb", "WAL, MB", 0, "wal_bytes", 1024 * 1024),
    (CHECKPOINTS, "checkpoints, of all loads", 0),
    ("laps_per_gb", "laps of rings", 0, "laps"),
    ("victims_per_gb", "dirty victims", 0, "victims"),
    ("eager_per_gb", "blocks written eagerly", 0, "eager"),
    ("wal_flushes_per_gb", "victims that needed a flush of WAL", 0,
     "wal_flushes"),
    ("skipped_wal_per_gb", "skipped, as WAL was not flushed", 0,
     "skipped_wal"),
    ("lap_ms_per_gb", "laps, ms", 0, "ring_ms"),
    (SAMPLER, "CPUs taken by the looks at wait events", 3),
)
METRICS = tuple(Metric(*row[:3]) for row in ROWS)


def of_sample(before, after, elapsed, looks, seen, gb):
    """The metrics of one sample. A GB is 2^30 bytes of the table loaded; looks
    and seen as waits.Sampler returns them."""
    done = {name: after[name] - before[name] for name in after}
    found = {ELAPSED: elapsed, CHECKPOINTS: done["checkpoints"],
             SAMPLER: done["sampler_ns"] / 1e9 / elapsed}
    for metric, _, _, *counted in ROWS:
        if counted and counted[0] in done:
            divisor = counted[1] if len(counted) > 1 else 1
            found[metric] = done[counted[0]] / divisor / gb
    if done["writes"]:
        found["blocks_per_write"] = (done["write_bytes"] / BLOCK
                                     / done["writes"])

    # Each look stands for the time until the next.
    each = elapsed * 1000 / looks / gb
    for event in EVENTS:
        found[event_metric(event)] = seen.get(event, 0) * each
    found["sampled_none_ms_per_gb"] = seen.get(NOTHING, 0) * each
    found["sampled_other_ms_per_gb"] = each * sum(
        count for event, count in seen.items()
        if event not in (*EVENTS, NOTHING, IDLE))
    return found
