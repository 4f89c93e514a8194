"""The metrics of the bench copy, its tables, and its required figures."""

from bench.lib import report, sides, stats

ELAPSED = "elapsed_s"
LOCK_WAITS = "wal_write_lock_waits_per_gb"
WRITES = "data_file_writes_per_gb"
CALLS = "write_calls_per_gb"
CHECKPOINTS = "checkpoints"
SAMPLER = "sampler_cpu_share"

BLOCK = 8192

MANY, FEW = 16, 1               # writers, where figures are wanted
MOST_ELAPSED = 0.85
FEW_ELAPSED = 0.98, 1.05
MOST_WAITS = 0.5
MOST_WRITES = 0.25

# Wait events that are reported, as pg_stat_activity calls them.
EVENTS = (("LWLock", "WALWrite"), ("LWLock", "WALInsert"),
          ("IO", "WalWrite"), ("IO", "WalSync"), ("IO", "DataFileWrite"),
          ("IO", "DataFileExtend"))

NOTHING = ("", "")              # waits for nothing: runs, or wants a CPU
IDLE = ("Client", "ClientRead")


def event_metric(event):
    return f"sampled_{'_'.join(event).lower()}_ms_per_gb"


# The table of a step: metric, title, digits, and the counter of the bench that
# is divided by the GB of the table, with another divisor.
ROWS = (
    (ELAPSED, "elapsed, s", 2),
    ("cpu_s_per_gb", "CPU time of the writers, s", 2, "cpu_ns", 1e9),
    (LOCK_WAITS, "waits on WALWriteLock", 0, "lock_waits"),
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
    (WRITES, "writes to data files (pg_stat_io)", 0, "writes"),
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
    (CALLS, "calls that write (kernel)", 0, "calls"),
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
)


def metrics(before, after, elapsed, looks, seen, gb):
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


class CopyTables:
    """steps: (writers, configuration, MB of the table)."""

    def __init__(self, bench, steps):
        self.args = bench.args
        self.samples = bench.samples
        self.sides = bench.sides
        self.off = sides.ring_eager_flush(False)
        self.on = sides.ring_eager_flush(True)
        self.others = [side for side in self.sides
                       if side not in (self.off, self.on)]
        self.steps = steps

    def show(self):
        for _, where, mb in self.steps:
            self.show_step(where, mb)
        rows = [(where, self.samples.ratio(ELAPSED, where, self.on),
                 *(self.samples.ratio(ELAPSED, where, side) for side in self.others))
                for _, where, _ in self.steps]
        report.table(["elapsed, to ring_eager_flush off", "on",
                      *(side.name for side in self.others)], rows)
        report.say()
        report.say("ratios: to ring_eager_flush off in the same round, median of"
                   f" the rounds [bootstrap interval, {stats.SHARE:.0%}]."
                   " pg_sweep counts each wait on WALWriteLock. Sampled"
                   " figures are times, by looks at pg_stat_activity every"
                   f" {self.args.sample_ms} ms, on all sides")
        shares = [row["max"] for row in self.samples.rows()
                  if row["metric"] == SAMPLER]
        report.say("not in the writers' CPU time: the looks, at most"
                   f" {max(shares):.1%} of a CPU")

    def show_step(self, where, mb):
        rows = []
        for metric, name, digits, *_ in ROWS:
            found = [self.samples.median(metric, where, side, digits)
                     for side in self.sides]
            if set(found) != {"-"}:
                rows.append((name, *found,
                             self.samples.ratio(metric, where, self.on)))
        report.table([f"{where}, {mb} MB; per GB", *(map(short, self.sides)),
                      "on to off"], rows)

    # -- what is wanted

    def wanted(self):
        steps = {writers: where for writers, where, _ in self.steps}
        wanted = []
        if MANY in steps:
            wanted += self.wanted_many(steps[MANY])
        if FEW in steps:
            ratio = self.samples.row(ELAPSED, steps[FEW], self.on)["ratio"]
            low, high = FEW_ELAPSED
            wanted.append((low <= ratio <= high,
                           f"{steps[FEW]}: elapsed, on to off, {ratio:.3f};"
                           f" between {low} and {high} wanted"))
        return [*wanted, self.wanted_checkpoints()]

    def wanted_many(self, where):
        for metric, what, most in (
                (ELAPSED, "elapsed", MOST_ELAPSED),
                (LOCK_WAITS, "waits on WALWriteLock per GB", MOST_WAITS),
                (WRITES, "writes to data files per GB", MOST_WRITES),
                (CALLS, "calls that write per GB, including WAL",
                 MOST_WRITES)):
            if metric == LOCK_WAITS and self.args.unlogged:
                continue
            ratio = self.samples.row(metric, where, self.on)["ratio"]
            if ratio is None:
                yield (False, f"{where}: {what}, none when off: nothing to"
                       " compare with")
                continue
            yield (ratio <= most, f"{where}: {what}, on to off, {ratio:.3f};"
                   f" at most {most} wanted")

    def wanted_checkpoints(self):
        most = max(row["max"] for row in self.samples.rows()
                   if row["metric"] == CHECKPOINTS)
        return (most == 0, f"checkpoints within a load: {most:.0f} at most;"
                " none wanted")


def short(side):
    if side.ring_eager_flush is None:
        return side.name
    return "on" if side.ring_eager_flush else "off"
