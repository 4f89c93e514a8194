"""Is parallel COPY into one table faster with eager flush of the ring, and why?

Eager flush is switched on and off on the same server in turn; the stock server
is a side of its own. 1, 4 and 16 writers, sessions that stay open, load a table
(a int, b int) from one file on the server. Files, WAL and tables are on a disk,
fsync is on. Before each sample the table is made anew, followed by a checkpoint.

Besides the time, the causes are counted: waits on WALWriteLock, calls that
write, blocks in each, WAL, checkpoints, CPU time."""

import os
import shutil
import subprocess
import time

from bench.lib import (cluster, paths, processes, report, runner, sides, stats,
                       waits)
from bench.lib.paths import BenchError
from bench.lib.session import quote
from bench.ring import metrics

OFF = sides.ring_eager_flush(False)
ON = sides.ring_eager_flush(True)

BLOCK = 8192
BLOCK_ROWS = 226                # rows of two integers
MB = 1024 * 1024
# A ring of COPY: so large, and at most this part of the pool.
RING_BLOCKS = 16 * MB // BLOCK
RING_SHARE = 8
# Less, and most of a COPY is over before its ring is full.
LEAST_LAPS = 2
# For each byte of the table.
WAL_SHARE = 0.75                # at most; measured: 0.46
SOURCE_SHARE = 0.5              # the file, at most


class Bench(runner.Bench):
    rounds = 7, 2
    baseline = OFF.name
    boxed = controlled = True
    metrics = metrics.METRICS
    by_configuration = True

    @staticmethod
    def options(add):
        add("--writers", (1, 4, 16), (2,))
        add("--mb", 128, 24, "size of the table that one COPY fills")
        add("--loads", 32, 4, "COPYs of all writers together, at least one"
            " each")
        add("--shared-buffers", "512MB", "64MB")
        add("--sample-ms", 10, help="between two looks at wait events")
        add("--set", (), help="settings of the servers, such as"
            " wal_writer_delay=10s", type=str, metavar="NAME=VALUE")

    @staticmethod
    def switches(switch):
        switch("--unlogged", "loads an unlogged table: without WAL, combined"
               " writes are the whole difference; results in"
               " copy_unlogged.json")

    @staticmethod
    def finish(args, error):
        if not all("=" in setting.strip("=") for setting in args.set):
            error("--set needs NAME=VALUE")
        args.set = dict(setting.split("=", 1) for setting in args.set)
        args.writers = sorted(set(args.writers))

    def __init__(self, args):
        super().__init__(args)
        self.sides = [OFF, ON, sides.STOCK_SERVER]
        if args.control:
            self.sides.append(sides.CONTROL)
        self.source = (paths.BENCH / "clusters"
                       / f"{self.result_name()}-source.data")

    def result_name(self):
        return "copy_unlogged" if self.args.unlogged else "copy"

    def loads_of_each(self, writers):
        return max(1, self.args.loads // writers)

    def table_mb(self, writers):
        return self.args.mb * writers * self.loads_of_each(writers)

    def most_mb(self):
        return max(map(self.table_mb, self.args.writers))

    # -- clusters

    def check_space(self):
        """Before anything is written."""
        wal = self.wal_mb() + 1024
        needed = (self.args.mb * SOURCE_SHARE + self.most_mb()
                  + len(self.keys()) * (wal + 512))
        there = shutil.disk_usage(paths.BENCH).free // MB
        if there < needed:
            raise BenchError(
                f"{needed:.0f} MB of disk are needed and {there} are free at"
                f" {paths.BENCH}: use a smaller --mb or --loads")
        if on_tmpfs(paths.BENCH):
            raise BenchError(f"{paths.BENCH} is in memory; this bench needs a"
                             " disk")

    def wal_mb(self):
        return max(256, round(self.most_mb() * WAL_SHARE))

    def settings(self, key):
        return {
            **sides.preload(key),
            "shared_buffers": self.args.shared_buffers,
            "huge_pages": "off",
            "fsync": "on",
            "synchronous_commit": "on",
            "wal_level": "replica",
            "max_connections": max(self.args.writers) + 20,
            # No checkpoint by WAL within a sample. The files of the sample
            # before have room for all of its WAL: none has to be made.
            "min_wal_size": f"{self.wal_mb()}MB",
            "max_wal_size": f"{3 * self.wal_mb() + 1024}MB",
            **self.args.set}

    def prepare(self):
        self.check_space()
        first = None
        for key in self.keys():
            here = cluster.Cluster(self.result_name(), key, self.server(key),
                                   self.settings(key))
            report.progress(f"making cluster {key}")
            here.init()
            here.start()
            here.admin = here.session()
            if key == sides.SWEEP:
                here.admin.rows("CREATE EXTENSION pg_sweep")
            here.writers = [here.session()
                            for _ in range(max(self.args.writers))]
            here.pids = [int(writer.value("SELECT pg_backend_pid()"))
                         for writer in here.writers]
            here.sampler = waits.Sampler(here, self.args.sample_ms)
            self.clusters[key] = here
            first = first or here
        self.check_ring(first)
        report.progress(f"making a file for {self.args.mb} MB of the table")
        self.rows = self.args.mb * MB // BLOCK * BLOCK_ROWS
        first.admin.rows("COPY (SELECT i, hashint4(i) FROM"
                         f" generate_series(1, {self.rows}) i)"
                         f" TO {quote(self.source)}")

    def check_ring(self, here):
        buffers = int(here.admin.value("SELECT setting FROM pg_settings"
                                       " WHERE name = 'shared_buffers'"))
        self.ring = min(RING_BLOCKS, buffers // RING_SHARE)
        if self.args.mb * MB // BLOCK < LEAST_LAPS * self.ring:
            raise BenchError(
                f"a ring has {self.ring * BLOCK / MB:.0f} MB, so --mb must be"
                f" at least {LEAST_LAPS * self.ring * BLOCK / MB:.0f}")

    # -- a sample

    def run(self):
        try:
            return super().run()
        finally:
            self.source.unlink(missing_ok=True)

    def measure(self):
        most = max(self.args.writers, key=self.table_mb)
        for side in self.sides:
            # the first time, files for WAL have to be made
            report.progress(f"not counted: {where(most)}, {side.name}")
            self.sample(most, side)
        for round_ in self.each_round():
            for writers in self.args.writers:
                for side in stats.rotated(self.sides, round_):
                    report.progress(f"{where(writers)}, {side.name}")
                    self.note(where(writers), side, round_,
                              self.sample(writers, side))
        for here in self.clusters.values():
            here.admin.rows("DROP TABLE IF EXISTS loaded")

    def sample(self, writers, side):
        """The values of one side's loads, by metric."""
        here = self.clusters[side.cluster]
        sessions, pids = here.writers[:writers], here.pids[:writers]
        sides.activate(side, here.admin)
        for session in (here.admin, *sessions):
            sides.verify(side, session, self.patched.version)
        for other in self.clusters.values():
            other.admin.rows("DROP TABLE IF EXISTS loaded")
        here.admin.rows(
            f"CREATE {'UNLOGGED ' if self.args.unlogged else ''}TABLE loaded"
            " (a int, b int) WITH (autovacuum_enabled = off)")
        for other in self.clusters.values():
            # also removes the files of a table that was dropped
            other.admin.rows("CHECKPOINT")
        os.sync()

        copy = f"COPY loaded FROM {quote(self.source)}"
        loads = self.loads_of_each(writers)
        here.sampler.start(pids)
        before = self.counters(side, here, pids)
        begin = time.monotonic()
        for session in sessions:
            session.send(";\n".join([copy] * loads))
        for session in sessions:
            session.receive()
        elapsed = time.monotonic() - begin
        kernel = kernel_counters(pids, here.sampler.pid)
        looks, seen = here.sampler.stop()
        for session in sessions:
            # only then are its counters in shared memory
            session.rows("SELECT pg_stat_force_next_flush()")
        after = self.counters(side, here, pids, kernel)
        for session in (here.admin, *sessions):
            sides.verify(side, session, self.patched.version)
        self.check_laps(side, before, after)
        self.check_table(here, writers, loads)
        return metrics.of_sample(before, after, elapsed, looks, seen,
                                 self.table_mb(writers) / 1024)

    def check_laps(self, side, before, after):
        """Abort unless rings were gone through just as the side says."""
        if side.ring_eager_flush is None:
            return
        laps = after["laps"] - before["laps"]
        if (laps > 0) != side.ring_eager_flush:
            raise BenchError(f"side {side.name!r} is not in force: rings"
                                   f" were gone through {laps:.0f} times")

    def check_table(self, here, writers, loads):
        """Abort unless all rows have arrived."""
        size = int(here.admin.value("SELECT pg_relation_size('loaded')"))
        found = int(here.admin.value(
            "SELECT pg_stat_get_tuples_inserted('loaded'::regclass)"))
        if found != self.rows * writers * loads:
            raise BenchError(f"{found} rows were loaded instead of"
                                   f" {self.rows * writers * loads}")
        if size < self.table_mb(writers) * MB:
            raise BenchError(f"the table has {size} bytes, fewer than"
                                   f" {self.table_mb(writers)} MB")

    def counters(self, side, here, pids, kernel=None):
        """Counters of the writers and of the server, by name. kernel: those
        of the kernel, if they were read earlier."""
        found = kernel or kernel_counters(pids, here.sampler.pid)
        admin = here.admin
        admin.rows("SELECT pg_stat_force_next_flush()")

        def add(names, sql):
            found.update(zip(names, map(float, admin.row(sql))))

        add(("writes", "write_bytes", "writes_ring", "extends", "wal_writes",
             "wal_fsyncs"),
            """SELECT coalesce(sum(writes) FILTER (WHERE data), 0),
                coalesce(sum(write_bytes) FILTER (WHERE data), 0),
                coalesce(sum(writes) FILTER (WHERE data
                    AND context = 'bulkwrite'), 0),
                coalesce(sum(extends) FILTER (WHERE data), 0),
                coalesce(sum(writes) FILTER (WHERE object = 'wal'), 0),
                coalesce(sum(fsyncs) FILTER (WHERE object = 'wal'), 0)
            FROM (SELECT *, object = 'relation' AS data
                FROM unnest('{""" + ",".join(map(str, pids)) + """}'::int[])
                    AS pid, pg_stat_get_backend_io(pid)) io""")
        add(("buffers_full",), "SELECT sum(wal_buffers_full) FROM unnest('{"
            + ",".join(map(str, pids)) + "}'::int[]) AS pid,"
            " pg_stat_get_backend_wal(pid)")
        add(("other_bytes", "other_fsyncs"),
            "SELECT coalesce(sum(write_bytes) FILTER (WHERE object ="
            " 'relation'), 0), coalesce(sum(fsyncs) FILTER (WHERE object ="
            " 'wal'), 0) FROM pg_stat_io"
            " WHERE backend_type <> 'client backend'")
        add(("checkpoints",), "SELECT num_timed + num_requested"
            " FROM pg_stat_checkpointer")
        add(("wal_bytes",),
            "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn")
        if side.ring_eager_flush is None:
            return found
        # The server does nothing else: all waits are because of the loads. A
        # process that flushes waits until the lock is free, and then looks
        # whether another one has flushed. A process that needs a WAL buffer,
        # and the WAL writer, wait for the lock in exclusive mode.
        add(("lock_waits", "flush_waits", "lock_contended", "lock_ms"),
            "SELECT coalesce(sum(waits), 0), coalesce(sum(waits) FILTER"
            " (WHERE mode = 'wait until free'), 0),"
            " coalesce(sum(contended), 0), coalesce(sum(wait_time), 0) FROM"
            " (SELECT *, (SELECT sum(n) FROM unnest(histogram) n) AS waits"
            " FROM pg_sweep_lwlock_waits WHERE tranche = 'WALWrite') w")
        names = ("laps", "victims", "eager", "ring_writes", "wal_flushes",
                 "skipped_wal", "ring_ms")
        add(names, "SELECT laps, victims, eager, writes, wal_flushes,"
            " skipped_wal, total_time FROM pg_sweep_ring"
            " WHERE ring = 'bulkwrite'")
        return found

    # -- results

    def notes(self):
        for writers in self.args.writers:
            yield (f"{where(writers)}: a table of {self.table_mb(writers)} MB;"
                   " figures are per GB of it, but for elapsed, blocks per"
                   " write, checkpoints and the looks")
        yield ("pg_sweep counts each wait on WALWriteLock. Sampled figures are"
               " times, by looks at pg_stat_activity every"
               f" {self.args.sample_ms} ms, on all sides")


def kernel_counters(pids, sampler):
    usage = processes.usage(pids)
    return {"cpu_ns": usage.cpu_ns, "switches": usage.switches,
            "calls": sum(map(processes.write_calls, pids)),
            "sampler_ns": processes.cpu_ns(sampler)}


def where(writers):
    return f"{writers} writer{'s' if writers > 1 else ''}"


def on_tmpfs(folder):
    done = subprocess.run(["findmnt", "-n", "-o", "FSTYPE", "-T", folder],
                          stdout=subprocess.PIPE, text=True)
    return done.stdout.strip() in ("tmpfs", "ramfs")
