"""How long does a server take to start, with each pg_sweep.numa_placement?

The baseline is a program that maps as much memory as the pool has, as the server
does, and writes one byte of each page. A server does not touch its pool when it
starts. A placement that moves touched pages has to pay for that first.

On a machine with one node every placement becomes "off". With SWEEP_BENCH_DIR
on a tmpfs and a small --mb, the bench runs in a virtual machine with several
nodes (tools/vm)."""

import subprocess
import sys
from pathlib import Path

from bench.lib import cluster, report, runner, sides, stats
from bench.lib.paths import BenchError
from bench.lib.tables import LOWER, Metric

TIME = "ms"
PLACING = "placing_ms"
TOUCH = "touching the memory once"
STOCK = "stock server"
PLACEMENTS = ("off", "interleave", "partition")
MB = 1 << 20
SPARE_MB = 1024                 # of memory, beyond what is touched

# Arguments: bytes, bytes per page, flags of mmap(). Prints milliseconds.
TOUCHER = """
import mmap, sys, time
size, page, flags = map(int, sys.argv[1:])
begin = time.monotonic()
memory = mmap.mmap(-1, size, flags=flags)
memory[::page] = bytes(len(range(0, size, page)))
print((time.monotonic() - begin) * 1000)
"""
MAP_SHARED, MAP_ANONYMOUS, MAP_HUGETLB = 0x01, 0x20, 0x40000


def meminfo(what):
    """A line of /proc/meminfo, in kilobytes."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith(f"{what}:"):
            return int(line.split()[1])
    raise BenchError(f"/proc/meminfo has no {what}")


def placement_side(placement):
    return f"numa_placement {placement}"


def placement_of(side):
    return side.split()[-1]


def configuration(mb):
    return f"shared_buffers {mb} MB"


class Bench(runner.Bench):
    rounds = 7, 2
    baseline = TOUCH
    metrics = (Metric(TIME, "ms", 1, LOWER),
               Metric(PLACING, "of it placing, ms", 2, LOWER))

    @staticmethod
    def options(add):
        add("--mb", (4096, 16384), (128, 512), "sizes of the pool", least=16)

    @staticmethod
    def switches(switch):
        switch("--huge-pages", "huge_pages = on; the kernel must have reserved"
                               " enough of them")

    def __init__(self, args):
        super().__init__(args)
        self.sides = [TOUCH, STOCK, *map(placement_side, PLACEMENTS)]
        self.effects = {}           # (configuration, side): what was in force

    def prepare(self):
        """One cluster for both servers: their files are the same."""
        report.progress("making the cluster")
        self.cluster = self.clusters["both"] = cluster.Cluster(
            "startup", "both", self.patched,
            {"huge_pages": "on" if self.args.huge_pages else "off"})
        self.cluster.init()
        self.cluster.start()
        self.cluster.session().rows("CREATE EXTENSION pg_sweep")
        self.cluster.stop()

    def touch(self, mb):
        flags = MAP_SHARED | MAP_ANONYMOUS
        page = 4096
        if self.args.huge_pages:
            flags |= MAP_HUGETLB
            page = meminfo("Hugepagesize") * 1024
        elif meminfo("MemAvailable") < (mb + SPARE_MB) * 1024:
            raise BenchError(f"{mb} MB cannot be touched: too little memory is"
                             " available (see --mb)")
        done = subprocess.run(
            [sys.executable, "-c", TOUCHER, str(mb * MB), str(page),
             str(flags)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise BenchError(f"touching {mb} MB failed: {done.stderr.strip()}")
        return float(done.stdout)

    def start_server(self, side, mb, round_):
        """Milliseconds until the server was ready."""
        settings = {"shared_buffers": f"{mb}MB"}
        self.cluster.server = self.stock
        if side != STOCK:
            self.cluster.server = self.patched
            settings.update({**sides.preload(sides.SWEEP),
                             "pg_sweep.strategy": "partitioned",
                             "pg_sweep.numa_placement": placement_of(side)})
        taken = self.cluster.start_timed(**settings) * 1000
        if side != STOCK:
            self.ask(side, mb, round_)
        self.cluster.stop()
        return taken

    def ask(self, side, mb, round_):
        asked, effective, note, placing = self.cluster.session().row(
            "SELECT numa_placement_configured, numa_placement,"
            " numa_placement_note,"
            " 1000 * extract(epoch FROM numa_placement_time)"
            " FROM pg_sweep_status")
        if asked != placement_of(side):
            raise BenchError(f"numa_placement is {asked!r}, not"
                             f" {placement_of(side)!r}")
        self.effects[configuration(mb), side] = (
            effective + (f" ({note})" if note else ""))
        if placing:
            self.samples.add(PLACING, configuration(mb), side, round_,
                             float(placing))

    def measure(self):
        for mb in self.args.mb:
            for round_ in self.each_round(configuration(mb)):
                for side in stats.rotated(self.sides, round_):
                    taken = (self.touch(mb) if side == TOUCH
                             else self.start_server(side, mb, round_))
                    self.samples.add(TIME, configuration(mb), side, round_,
                                     taken)

    def notes(self):
        yield ("ms: from the start of postgres until clients can connect, after"
               " a clean shutdown; or the touching; huge_pages ="
               f" {self.cluster.settings['huge_pages']}")
        for (where, side), effect in self.effects.items():
            yield f"{where}, {side}: {effect} in force"
