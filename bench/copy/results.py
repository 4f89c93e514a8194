"""What bench/copy makes of its counters, prints and judges."""

from bench.lib import report, results, sides, stats

ELAPSED = "elapsed_s"
LOCK_WAITS = "wal_write_lock_waits_per_gb"
WRITES = "data_file_writes_per_gb"
CALLS = "write_calls_per_gb"
CHECKPOINTS = "checkpoints"
SAMPLER = "sampler_cpu_share"

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


# Rows of a step's table: metric, what to call it, digits.
ROWS = (
    (ELAPSED, "elapsed, s", 2),
    ("cpu_s_per_gb", "CPU time of the writers, s", 2),
    (LOCK_WAITS, "waits on WALWriteLock", 0),
    ("wal_write_lock_flush_waits_per_gb", "those to flush WAL", 0),
    ("wal_write_lock_contended_per_gb", "times that it was found taken", 0),
    ("wal_write_lock_wait_ms_per_gb", "these waits, ms", 0),
    *((event_metric(event), f"sampled: {': '.join(event)}, ms", 0)
      for event in EVENTS),
    ("sampled_other_ms_per_gb", "sampled: other waits, ms", 0),
    ("sampled_none_ms_per_gb", "sampled: no wait, ms", 0),
    ("switches_per_gb", "voluntary switches of the writers", 0),
    (WRITES, "writes to data files (pg_stat_io)", 0),
    ("ring_writes_per_gb", "those in context bulkwrite", 0),
    ("blocks_per_write", "blocks a write", 2),
    ("blocks_written_per_gb", "blocks written by the writers", 0),
    ("blocks_by_others_per_gb", "blocks written by others", 0),
    ("extends_per_gb", "extensions of the table", 0),
    ("wal_writes_per_gb", "writes of WAL by the writers", 0),
    ("wal_buffers_full_per_gb", "those as all WAL buffers were full", 0),
    ("wal_fsyncs_per_gb", "fsyncs of WAL by the writers", 0),
    ("wal_fsyncs_by_others_per_gb", "fsyncs of WAL by others", 0),
    (CALLS, "calls that write (kernel)", 0),
    ("wal_mb_per_gb", "WAL, MB", 0),
    (CHECKPOINTS, "checkpoints, of all loads", 0),
    ("laps_per_gb", "laps of rings", 0),
    ("victims_per_gb", "dirty victims", 0),
    ("eager_per_gb", "blocks written eagerly", 0),
    ("wal_flushes_per_gb", "victims that needed a flush of WAL", 0),
    ("skipped_wal_per_gb", "skipped, as WAL was not flushed", 0),
    ("lap_ms_per_gb", "laps, ms", 0),
)


def metrics(before, after, elapsed, looks, seen, gb):
    """What a sample comes to: a GB is one of the table loaded, 2^30 bytes;
    looks and seen as waits.Sampler has them."""
    done = {name: after[name] - before[name] for name in after}

    found = {ELAPSED: elapsed, CHECKPOINTS: done["checkpoints"],
             SAMPLER: done["sampler_ns"] / 1e9 / elapsed}

    def add(metric, name, divisor=1):
        if name in done:
            found[metric] = done[name] / divisor / gb

    add("cpu_s_per_gb", "cpu_ns", 1e9)
    add("switches_per_gb", "switches")
    add(CALLS, "calls")
    add(WRITES, "writes")
    add("ring_writes_per_gb", "writes_ring")
    add("blocks_written_per_gb", "write_bytes", 8192)
    if done["writes"]:
        found["blocks_per_write"] = (done["write_bytes"] / 8192
                                     / done["writes"])
    add("blocks_by_others_per_gb", "other_bytes", 8192)
    add("extends_per_gb", "extends")
    add("wal_writes_per_gb", "wal_writes")
    add("wal_fsyncs_per_gb", "wal_fsyncs")
    add("wal_fsyncs_by_others_per_gb", "other_fsyncs")
    add("wal_buffers_full_per_gb", "buffers_full")
    add("wal_mb_per_gb", "wal_bytes", 1024 * 1024)
    add(LOCK_WAITS, "lock_waits")
    add("wal_write_lock_flush_waits_per_gb", "flush_waits")
    add("wal_write_lock_contended_per_gb", "lock_contended")
    add("wal_write_lock_wait_ms_per_gb", "lock_ms")
    add("laps_per_gb", "laps")
    add("victims_per_gb", "victims")
    add("eager_per_gb", "eager")
    add("wal_flushes_per_gb", "wal_flushes")
    add("skipped_wal_per_gb", "skipped_wal")
    add("lap_ms_per_gb", "ring_ms")

    # Each look stands for the time until the next.
    each = elapsed * 1000 / looks / gb
    for event in EVENTS:
        found[event_metric(event)] = seen.get(event, 0) * each
    found["sampled_none_ms_per_gb"] = seen.get(NOTHING, 0) * each
    found["sampled_other_ms_per_gb"] = each * sum(
        count for event, count in seen.items()
        if event not in (*EVENTS, NOTHING, IDLE))
    return found


class Results(results.Results):
    """steps: (writers, configuration, MB of the table)."""

    def __init__(self, args, all_sides, steps, samples):
        super().__init__(samples)
        self.args = args
        self.sides = all_sides
        self.off, self.on = sides.ring_eager_flush(False), sides.ring_eager_flush(True)
        self.others = [side for side in all_sides
                       if side not in (self.off, self.on)]
        self.steps = steps

    def show(self):
        for _, where, mb in self.steps:
            self.show_step(where, mb)
        rows = [(where, self.ratio(ELAPSED, where, self.on),
                 *(self.ratio(ELAPSED, where, side) for side in self.others))
                for _, where, _ in self.steps]
        report.table(["elapsed, to ring_eager_flush off", "on",
                      *(side.name for side in self.others)], rows)
        report.say()
        report.say("ratios: to ring_eager_flush off in the same round, median of"
                   f" the rounds [bootstrap interval, {stats.SHARE:.0%}]."
                   " Waits on WALWriteLock are counted by pg_sweep, each of"
                   " them; what is sampled is time, by looking at"
                   f" pg_stat_activity every {self.args.sample_ms} ms, on all"
                   " sides")
        shares = [row["max"] for row in self.samples.rows()
                  if row["metric"] == SAMPLER]
        report.say("not in the writers' CPU time: the looking, at most"
                   f" {max(shares):.1%} of a CPU")

    def show_step(self, where, mb):
        rows = []
        for metric, name, digits in ROWS:
            found = [self.row(metric, where, side) for side in self.sides]
            if any(found):
                rows.append((name, *(report.fixed(row and row["median"], digits)
                                     for row in found),
                             self.ratio(metric, where, self.on)))
        report.table([f"{where}, {mb} MB; a GB", *(map(short, self.sides)),
                      "on to off"], rows)

    # -- what is wanted

    def wanted(self):
        steps = {writers: where for writers, where, _ in self.steps}
        wanted = []
        if MANY in steps:
            wanted += self.wanted_many(steps[MANY])
        if FEW in steps:
            ratio = self.row(ELAPSED, steps[FEW], self.on)["ratio"]
            low, high = FEW_ELAPSED
            wanted.append((low <= ratio <= high,
                           f"{steps[FEW]}: elapsed, on to off, {ratio:.3f};"
                           f" between {low} and {high} wanted"))
        return report.verdict([*wanted, self.wanted_checkpoints()])

    def wanted_many(self, where):
        for metric, what, most in (
                (ELAPSED, "elapsed", MOST_ELAPSED),
                (LOCK_WAITS, "waits on WALWriteLock a GB", MOST_WAITS),
                (WRITES, "writes to data files a GB", MOST_WRITES),
                (CALLS, "calls that write a GB, WAL's among them",
                 MOST_WRITES)):
            if metric == LOCK_WAITS and self.args.unlogged:
                continue
            ratio = self.row(metric, where, self.on)["ratio"]
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
