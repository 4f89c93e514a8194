"""The threads' measurements as arguments of our benches, scaled to a machine.

One factor makes all sizes. 1 is a machine of 384 CPUs, 1 TB of memory and 512 GB
of disk, with the threads' own sizes. Data shrinks with the factor. So do numbers
of clients, which stand for a share of the CPUs of the thread's machine. Every
size has a least value, below which the scenario would change its nature. A new
scenario is a function that makes a Plan, and an entry in SCENARIOS."""

from collections.abc import Callable
from dataclasses import dataclass

from bench.lib import sides
from bench.suite import threads
from bench.suite.machine import Machine

FULL = Machine(cpus=384, memory_mb=1 << 20, disk_mb=512 << 10, open_files=0)
LEAST_FACTOR, MOST_FACTOR = 1 / 1024, 4
SPARE_DISK_MB = 1024            # that stay free
MEMORY_SHARE = 0.8              # of the available memory, for servers
SERVER_DISK_MB = 600            # of a cluster without its tables: 40 MB of
                                # catalogs, and WAL
SERVER_MEMORY_MB = 150          # of a server beside its pool
CONNECTION_MB = 2.5             # of a mostly idle backend

SAMPLES_SHARE = 0.7             # of a time box; the rest is preparation
VERDICT_ROUNDS = 6              # fewer cannot have an interval of 95 %
MOST_ROUNDS = 40                # more would take time from other scenarios
QUICK_ROUNDS = 2

STOCK, CONTROL = sides.STOCK_SERVER.name, sides.CONTROL.name
NOTHING_LOADED = sides.NOTHING_LOADED.name
BATCHED, PARTITIONED = sides.batched(0).name, sides.partitioned().name
HIGHER, LOWER = "higher", "lower"       # what is better


@dataclass
class Plan:
    """What a factor makes of a scenario."""
    arguments: list             # of the bench
    memory_mb: float            # needed
    disk_mb: float

    def problem(self, machine):
        """Why a machine cannot run it; None if it can."""
        for needed, there, what in (
                (self.memory_mb, machine.memory_mb, "memory"),
                (self.disk_mb, machine.disk_mb - SPARE_DISK_MB, "disk")):
            if needed > there:
                return (f"needs {needed:.0f} MB of {what}, and"
                        f" {max(0, there):.0f} MB can be used: a smaller"
                        " --factor, or another SWEEP_BENCH_DIR, may help")
        return None


@dataclass(frozen=True)
class Scenario:
    name: str
    bench: str
    what: str
    thread: threads.Thread
    plan: Callable              # (factor, machine, minutes; None: quick)
    weight: int                 # of the time box
    metrics: tuple              # (name, title, what is better, digits); the
                                # first is the one that is judged
    sides: tuple                # that are judged
    baseline: str = STOCK
    control: str = CONTROL      # None: the bench's cannot be compared
    x: str = r"(\d+) (clients?|connections?|writers?|held)"
    shown: str = ""             # configurations in tables, if not all


def factor_of(machine):
    """The largest factor for a machine."""
    return max(LEAST_FACTOR, min(
        MOST_FACTOR, machine.cpus / FULL.cpus,
        machine.memory_mb / FULL.memory_mb,
        (machine.disk_mb - SPARE_DISK_MB) / FULL.disk_mb))


def scaled_clients(thread, factor, least=1):
    """The thread's numbers of clients for our CPUs, ascending."""
    return sorted({max(least, round(clients / thread.cpus * FULL.cpus
                                    * factor)) for clients in thread.clients})


def rounds(minutes):
    return ["--rounds", QUICK_ROUNDS if minutes is None else MOST_ROUNDS]


def seconds(minutes, samples, least, most):
    """Length of one of these samples of a round: as long as the box has room
    for the rounds that a verdict needs."""
    if minutes is None:
        return least
    room = minutes * 60 * SAMPLES_SHARE / VERDICT_ROUNDS / samples
    return min(most, max(least, int(room)))


# ---- pgbench

PGBENCH_SECONDS = 1, 10         # of a sample: at least, at most
SCALE_MB = 15                   # of pgbench's tables, for each of its scale
POOL_PERCENT = 71               # Burd's: 32 GB of 45 GB


def pgbench_plan(scenario, scale, percent, clients, servers, minutes, compared,
                 options):
    """percent: of the data, for shared_buffers; compared: number of sides."""
    data = scale * SCALE_MB
    length = seconds(minutes, len(clients) * compared, *PGBENCH_SECONDS)
    return Plan(
        ["--scenario", scenario, "--scale", scale, "--clients", *clients,
         *options, "--control", "--seconds", length, *rounds(minutes)],
        servers * (data * percent / 100 + SERVER_MEMORY_MB)
        + 2 * max(clients) * CONNECTION_MB,
        # all copies, and for a moment the original
        (servers + 1) * data + servers * SERVER_DISK_MB)


def burd(scenario):
    def plan(factor, machine, minutes):
        return pgbench_plan(
            scenario, max(8, round(3000 * factor)), POOL_PERCENT,
            scaled_clients(threads.BURD_RO, factor), 4, minutes, 6,
            ["--pool-percent", POOL_PERCENT])
    return plan


def freund(factor, machine, minutes):
    # never more than in the thread: a larger machine shows nothing else
    own = min(1, factor * FULL.cpus / threads.FREUND.cpus)
    scale = max(8, round(350 * own))
    # the bench's pool: 64 MB and a quarter more than the data
    return pgbench_plan(
        "memory", scale, 125 + round(6400 / scale / SCALE_MB),
        scaled_clients(threads.FREUND, own * threads.FREUND.cpus / FULL.cpus),
        3, minutes, 3, ["--unused-only"])


# ---- scans

SCAN_SERVERS = 4
SCAN_TABLE_MB = 1024
SCAN_SECONDS = 3, 15            # of a sample: at least, at most


def vondra(factor, machine, minutes):
    # With fewer than 8 clients, tables are larger than a quarter of 60 % of
    # all: they would be read through a ring.
    least = (8,) if minutes is None else (8, 16)
    percents = (60, 110) if minutes is None else (60, 75, 90, 110)
    # The first numbers differ even on a small machine.
    clients = sorted({*scaled_clients(threads.VONDRA, factor, least[-1]),
                      *(max(ours, round(ours * factor * FULL.cpus
                                        / threads.VONDRA.cpus))
                        for ours in least)})
    most = max(clients)
    # tables once, in the system's cache, and a pool of 110 % for each server
    share = 1 + SCAN_SERVERS * 110 / 100
    servers = SCAN_SERVERS * (SERVER_MEMORY_MB + most * CONNECTION_MB)
    usable = machine.memory_mb * MEMORY_SHARE - servers
    own = factor * FULL.cpus / threads.VONDRA.cpus
    table = int(min(SCAN_TABLE_MB, max(16, SCAN_TABLE_MB * own),
                    max(8, usable / share / most)))
    length = seconds(minutes, len(percents) * len(clients) * SCAN_SERVERS,
                     *SCAN_SECONDS)
    return Plan(
        ["--table-mb", table, "--clients", *clients, "--percent", *percents,
         "--seconds", length, "--control", *rounds(minutes)],
        most * table * share + servers,
        most * table + SCAN_SERVERS * SERVER_DISK_MB)


# ---- lwlock: the number of connections is the question, so it is not scaled

LWLOCK_SERVERS = 4
SPARE_FILES = 200


def borisov(workload):
    def plan(factor, machine, minutes):
        pool = min(1024, max(128, machine.memory_mb // 32))
        memory = LWLOCK_SERVERS * (SERVER_MEMORY_MB + pool)
        # one server at a time has the connections
        room = (machine.memory_mb * MEMORY_SHARE - memory) / CONNECTION_MB
        most = max(1, min(room, machine.open_files - SPARE_FILES))
        wanted = (1, 20) if minutes is None else (1, 4, 20, 130, 560, 2000)
        connections = [n for n in wanted if n <= most]
        return Plan(
            ["--workload", workload, "--connections", *connections,
             "--tail-connections", 0, "--shared-buffers", f"{pool}MB",
             "--control", "--seconds", 0.5 if minutes is None else 0.8,
             *rounds(minutes)],
            memory + connections[-1] * CONNECTION_MB,
            LWLOCK_SERVERS * 2 * SERVER_DISK_MB)
    return plan


# ---- copy

COPY_SERVERS = 3                # with the control
# A smaller COPY would not go twice through its ring.
COPY_LEAST_MB, COPY_MOST_MB = 32, 1024
COPY_POOL_MB = 16 << 10         # the thread does not name it
# of the table, for WAL, for the file that is loaded: as in ring/copy.py
COPY_WAL_SHARE, COPY_FILE_SHARE = 0.75, 0.5


def plageman(factor, machine, minutes):
    writers = (1, 4) if minutes is None else (1, 4, 16)
    mb = round(min(COPY_MOST_MB, max(COPY_LEAST_MB, COPY_MOST_MB * factor)))
    # 16 rings of 16 MB should have room, if there is memory for that
    pool = round(min(max(512, COPY_POOL_MB * factor),
                     max(256, machine.memory_mb / 8)))
    table = max(writers) * mb
    wal = max(256, table * COPY_WAL_SHARE)
    return Plan(
        ["--writers", *writers, "--mb", mb, "--loads", max(writers),
         "--shared-buffers", f"{pool}MB", "--control", *rounds(minutes)],
        COPY_SERVERS * (SERVER_MEMORY_MB + pool)
        + max(writers) * COPY_SERVERS * CONNECTION_MB,
        mb * COPY_FILE_SHARE + table + COPY_SERVERS * (wal + 1024 + 512))


# ---- pins: of one process, so they are not scaled


def pins(factor, machine, minutes):
    pool = min(2048, max(256, machine.memory_mb // 8))
    return Plan(
        ["--part", "loop", "--shared-buffers", f"{pool}MB",
         *(["--quick"] if minutes is None else []), *rounds(minutes)],
        3 * (SERVER_MEMORY_MB + pool / 2), 4 * (SERVER_DISK_MB + 64))


# ---- all of them

TPS = ("tps", "transactions per second", HIGHER, 0)
READS = ("pages_read_per_transaction", "pages read per transaction", LOWER, 3)
LWLOCK_METRICS = (
    TPS, ("cpu_us_per_transaction", "CPU time of the server per transaction,"
          " us", LOWER, 1),
    ("sleeps_per_contended_acquisition", "sleeps per contended acquisition (the"
     " stock server does not count them)", LOWER, 3))
LWLOCK_SIDES = tuple(sides.lwlock_policy(policy).name for policy in
                     reversed(sides.LWLOCK_WAITS))

SCENARIOS = {scenario.name: scenario for scenario in (
    Scenario("pgbench_ro", "pgbench", "pgbench, read-only, with a pool of 71 %"
             " of the data", threads.BURD_RO,
             burd("beyond"), 4, (TPS, READS), (BATCHED, PARTITIONED)),
    Scenario("pgbench_rw", "pgbench", "pgbench, read-write (tpcb-like), with a"
             " pool of 71 % of the data", threads.BURD_RW,
             burd("write"), 4, (TPS, READS), (BATCHED, PARTITIONED)),
    Scenario("scans", "scans", "concurrent sequential scans, one table per"
             " client, with pools of 60 to 110 % of the tables", threads.VONDRA,
             vondra, 5, (("scans_per_second", "scans per second", HIGHER, 1),
                         ("read_percent", "pages read, of those scanned, %",
                          LOWER, 1)),
             (PARTITIONED, BATCHED)),
    Scenario("insert", "lwlock", "inserts into an unlogged table without an"
             " index", threads.BORISOV, borisov("insert"), 4, LWLOCK_METRICS,
             LWLOCK_SIDES),
    Scenario("txid_current", "lwlock", "SELECT txid_current()", threads.BORISOV,
             borisov("txid"), 4, LWLOCK_METRICS, LWLOCK_SIDES),
    Scenario("copy", "copy", "parallel COPY into one table, eager flush of rings"
             " on and off", threads.PLAGEMAN, plageman, 4,
             (("elapsed_s", "time, s", LOWER, 2),
              ("wal_write_lock_waits_per_gb", "waits on WALWriteLock per GB",
               LOWER, 0)),
             (sides.ring_eager_flush(True).name,),
             baseline=sides.ring_eager_flush(False).name, control=None),
    Scenario("pins", "pins", "a pin and its unpin, while a process holds others",
             threads.FREUND_PINS, pins, 2,
             (("pin_cpu_ns", "CPU time, ns", LOWER, 1),), (NOTHING_LOADED,),
             shown=r"^(again, random|other|read|stream), (0|1|8|9|16|64|512)"
             r" held$"),
    Scenario("pgbench_memory", "pgbench", "pgbench, read-only, all data in the"
             " pool; nothing loaded into the patched server", threads.FREUND,
             freund, 2, (TPS,), (NOTHING_LOADED,)),
)}
