"""What does it cost to sample buffer hits, with each pg_sweep.numa_sample_hits?

One process reads pages that are in the pool, in a loop inside the server (test
module measure_pins, load "read"). On a machine with one node nothing is sampled.
So the shim of the tests pretends two nodes; the system call that asks for the
node of a page is the real one. One server, whose parameter changes between
samples. The server has the optional patch hit-sampling."""

import os
import subprocess
from statistics import median

from bench.lib import (cluster, module, paths, report, runner, sides,
                       stats)
from bench.lib.paths import BenchError
from bench.lib.tables import LOWER, Metric
from bench.pins.load import Load
from bench.pins.pins import MODULE, pinnable

TIME = "hit_cpu_ns"
OFF = "off"
EVERY = (10000, 1000, 100, 1)
LOAD = Load("read", "random", 0)
SHIM = "test/numa/shim/numa_shim.c"
SAMPLES = 5                     # of a side and round, of which the median counts


def name_of(every):
    return f"one of {every}" if every else OFF


class Bench(runner.Bench):
    rounds = 40, 4
    needs_stock = False
    patched_variant = "release-with-hit-sampling"
    baseline = OFF
    metrics = (Metric(TIME, "a hit: pin and unpin, CPU time in ns", 2, LOWER),)

    @staticmethod
    def options(add):
        add("--ms", 8, 2, "length of one sample of the loop")

    def prepare(self):
        self.cluster = self.clusters["hits"] = here = cluster.Cluster(
            "hits", "hits", self.patched,
            {**sides.preload(sides.SWEEP), **module.build(self.patched, MODULE),
             "shared_buffers": "256MB", "bgwriter_lru_maxpages": 0,
             "max_connections": 20})
        report.progress("making the cluster")
        here.init()
        shim = here.dir / "numa_shim.so"
        subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", shim,
                        paths.ROOT / SHIM, "-ldl", "-lnuma"], check=True)
        os.environ.update(LD_PRELOAD=str(shim), SHIM_NODES="2")
        try:
            here.start()
        finally:
            del os.environ["LD_PRELOAD"], os.environ["SHIM_NODES"]
        self.admin = here.session()
        for extension in ("pg_prewarm", "pg_sweep", MODULE):
            self.admin.rows(f"CREATE EXTENSION {extension}")
        self.admin.rows(pinnable())
        self.admin.rows("SELECT pg_prewarm('pinnable')")
        if self.admin.value("SELECT nodes FROM pg_sweep_status") != "2":
            raise BenchError("the shim does not pretend two nodes")
        self.worker = here.session()

    def sample_one_of(self, every):
        self.admin.rows(
            f"ALTER SYSTEM SET pg_sweep.numa_sample_hits = {every}")
        self.admin.rows("SELECT pg_reload_conf()")
        for session in self.admin, self.worker:
            sides.wait_until(session, "SHOW pg_sweep.numa_sample_hits",
                             str(every))

    def sampled(self):
        return int(self.admin.value("SELECT coalesce(sum(sampled), 0)::int8"
                                    " FROM pg_sweep_numa_hits"))

    def measure(self):
        for round_ in self.each_round():
            for every in stats.rotated((0, *EVERY), round_):
                self.sample_one_of(every)
                before, hits, found = self.sampled(), 0, []
                for _ in range(SAMPLES):
                    operations, pages, _elapsed, cpu = map(
                        int, self.worker.row(
                            f"SELECT * FROM measure_pins_run('pinnable',"
                            f" '{LOAD.kind}', {LOAD.held}, '{LOAD.order}',"
                            f" duration_ms => {self.args.ms})"))
                    LOAD.check(operations, pages)
                    hits += operations
                    found.append(cpu / operations)
                self.verify(every, hits, self.sampled() - before)
                self.samples.add(TIME, LOAD.where(), name_of(every), round_,
                                 median(found))

    @staticmethod
    def verify(every, hits, sampled):
        """Chance does not miss this with 100 expected. A run of the loop begins
        with operations that it does not tell, in --quick as many again."""
        expected = hits / every if every else 0
        if (expected >= 100 and not expected / 2 < sampled < expected * 3
                or every == 0 and sampled > 0):
            raise BenchError(f"{name_of(every)}: of {hits} hits, {sampled}"
                             " were sampled")

    def notes(self):
        yield (f"Each sample is the median of {SAMPLES} of {self.args.ms} ms;"
               " the shim adds some tens of nanoseconds to each sampled hit")
