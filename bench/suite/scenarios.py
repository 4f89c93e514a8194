"""What the threads measured, as arguments of our benches, scaled to a machine.

One factor makes all sizes: 1 is a machine of 384 CPUs, 1 TB of memory and 512 GB of
disk, on which the scenarios have the threads' own sizes. Data shrinks with it,
and so do numbers of clients, which stand for a share of the CPUs of the thread's
machine. Every size has a least value, below which a scenario would no longer be
what it is called, and what the machine cannot hold is cut off. A new scenario is
a function that makes a Plan, and a line in SCENARIOS."""

from dataclasses import dataclass, field

import threads
from bench.lib import results
from machine import Machine

FULL = Machine(cpus=384, memory_mb=1 << 20, disk_mb=512 << 10, open_files=0)
LEAST_FACTOR, MOST_FACTOR = 1 / 1024, 4
SPARE_DISK_MB = 1024            # that no cluster may fill
MEMORY_SHARE = 0.8              # of what is available, for servers
SERVER_DISK_MB = 600            # of a cluster without its tables: 40 MB of
                                # catalogs, and WAL
SERVER_MEMORY_MB = 150          # of a server beside its pool
CONNECTION_MB = 2.5             # of a backend that does next to nothing

SAMPLES_SHARE = 0.7             # of a time box; the rest is making data,
                                # starting servers, warming up
MOST_ROUNDS = 40                # more would take time from other scenarios
QUICK_ROUNDS = 2

SCALE_MB = 15                   # of pgbench's tables, for each of its scale
POOL_PERCENT = 71               # Burd's: 32 GB of 45 GB
STOCK, CONTROL = "stock server", "stock server (again)"
NOTHING_LOADED = "patched, nothing loaded"
SWEEP_STOCK = "pg_sweep stock"
BATCHED, PARTITIONED = "pg_sweep batched auto", "pg_sweep partitioned"


@dataclass
class Plan:
    """What a factor makes of a scenario."""
    arguments: list             # of the bench
    sizes: dict                 # what to tell: name, value
    memory_mb: float            # that it needs
    disk_mb: float
    steps: dict = field(default_factory=dict)   # the thread's: configuration


@dataclass(frozen=True)
class Metric:
    name: str
    title: str
    better: str                 # results.HIGHER or LOWER
    digits: int = 0


@dataclass(frozen=True)
class Scenario:
    name: str
    bench: str
    what: str
    thread: threads.Thread
    plan: callable              # (factor, machine, minutes; None: quick)
    weight: int                 # of the time box
    metrics: tuple              # the first is the one that is judged
    sides: tuple                # that are judged, best known first
    baseline: str = STOCK
    control: str = CONTROL      # None: the bench's cannot be compared
    x: str = r"(\d+) (clients?|connections?|writers?|held)"
    x_title: str = "clients"
    shown: str = ""             # configurations in tables, if not all


def factor_of(machine):
    """The one that a machine has room for."""
    return max(LEAST_FACTOR, min(
        MOST_FACTOR, machine.cpus / FULL.cpus,
        machine.memory_mb / FULL.memory_mb,
        (machine.disk_mb - SPARE_DISK_MB) / FULL.disk_mb))


def problem(plan, machine):
    """Why a machine cannot run a plan; None if it can."""
    for needed, there, what in (
            (plan.memory_mb, machine.memory_mb * MEMORY_SHARE, "memory"),
            (plan.disk_mb, machine.disk_mb - SPARE_DISK_MB, "disk")):
        if needed > there:
            return (f"needs {needed:.0f} MB of {what}, and {max(0, there):.0f}"
                    " MB can be used: a smaller --factor, or another"
                    " SWEEP_BENCH_DIR, may help")
    return None


def scaled_clients(steps, thread_cpus, factor, least=1):
    """{the thread's number: ours}, by CPU."""
    return {step: max(least, round(step / thread_cpus * FULL.cpus * factor))
            for step in steps}


def plural(number, word):
    return f"{number} {word}{'' if number == 1 else 's'}"


def rounds(minutes):
    return ["--rounds", QUICK_ROUNDS if minutes is None else MOST_ROUNDS]


def seconds(minutes, samples, least, most):
    """Of one of so many samples a round: as long as the box has room for the
    rounds that a verdict needs."""
    if minutes is None:
        return least
    room = minutes * 60 * SAMPLES_SHARE / results.LEAST_ROUNDS / samples
    return min(most, max(least, int(room)))


# ---- pgbench


PGBENCH_SIDES = 6               # with the control
PGBENCH_SECONDS = 1, 10         # of a sample: at least, at most


def pgbench_plan(scenario, words, scale, percent, steps, servers, minutes,
                 compared, options):
    """percent: of the data, for shared_buffers; compared: how many sides."""
    data = scale * SCALE_MB
    pool = data * percent / 100
    clients = sorted(set(steps.values()))
    length = seconds(minutes, len(clients) * compared, *PGBENCH_SECONDS)
    return Plan(
        ["--scenario", scenario, "--scale", scale, "--clients", *clients,
         *options, "--seconds", length, *rounds(minutes)],
        {"scale": f"{scale} ({data} MB)", "shared_buffers":
         f"{pool:.0f} MB ({percent} % of the data)",
         "clients": ", ".join(map(str, clients)),
         "a sample": f"{length} s"},
        servers * (pool + SERVER_MEMORY_MB)
        + 2 * max(clients) * CONNECTION_MB,
        # all copies, and for a moment what they are copies of
        (servers + 1) * data + servers * SERVER_DISK_MB,
        {step: f"{words}, {plural(ours, 'client')}"
         for step, ours in steps.items()})


def burd(scenario, words, thread):
    def plan(factor, machine, minutes):
        steps = scaled_clients((row[0] for row in thread.figures),
                               thread.cpus, factor)
        return pgbench_plan(
            scenario, words, max(8, round(3000 * factor)), POOL_PERCENT,
            steps, 4, minutes, PGBENCH_SIDES,
            ["--pool-percent", POOL_PERCENT, "--control"])
    return plan


def freund(factor, machine, minutes):
    # never more than in the thread: a larger machine shows nothing else
    own = min(1, factor * FULL.cpus / threads.FREUND.cpus)
    steps = {step: max(1, round(step * own)) for step in (16, 128)}
    scale = max(8, round(350 * own))
    # 64 MB and a quarter more than the data, as the bench has it
    return pgbench_plan(
        "memory", "read-only, in memory", scale, 125 + round(6400 / scale
                                                             / SCALE_MB),
        steps, 3, minutes, 3, ["--unused-only", "--control"])


# ---- scans

SCAN_PERCENTS, SCAN_PERCENTS_QUICK = (60, 75, 90, 110), (60, 110)
SCAN_SERVERS = 4
# Fewer clients than 8, and tables are larger than a quarter of 60 % of all:
# they would be read through a ring.
SCAN_LEAST, SCAN_LEAST_QUICK = (8, 16), (8,)
SCAN_TABLE_MB = 1024
SCAN_SECONDS = 3, 15            # of a sample: at least, at most


def vondra(factor, machine, minutes):
    least = SCAN_LEAST_QUICK if minutes is None else SCAN_LEAST
    steps = scaled_clients((row[0] for row in threads.VONDRA.figures),
                           threads.VONDRA.cpus, factor, least[-1])
    for step, ours in zip(steps, least):
        # the first steps are apart even where the machine is small
        steps[step] = max(ours, scaled_clients(
            [step], threads.VONDRA.cpus, factor)[step])
    clients = sorted(set(steps.values()))
    most = max(clients)
    # tables once, in the system's cache, and a pool of 110 % a server
    share = 1 + SCAN_SERVERS * max(SCAN_PERCENTS) / 100
    usable = (machine.memory_mb * MEMORY_SHARE
              - SCAN_SERVERS * (SERVER_MEMORY_MB + most * CONNECTION_MB))
    own = factor * FULL.cpus / threads.VONDRA.cpus
    table = int(min(SCAN_TABLE_MB, max(16, SCAN_TABLE_MB * own),
                    max(8, usable / share / most)))
    percents = SCAN_PERCENTS_QUICK if minutes is None else SCAN_PERCENTS
    length = seconds(minutes, len(percents) * len(clients) * SCAN_SERVERS,
                     *SCAN_SECONDS)
    return Plan(
        ["--table-mb", table, "--clients", *clients, "--percent", *percents,
         "--seconds", length, "--control", *rounds(minutes)],
        {"tables": f"one of {table} MB a client", "clients":
         ", ".join(map(str, clients)), "shared_buffers":
         ", ".join(f"{percent} %" for percent in percents)
         + " of the tables: "
         + f"{table * clients[0] * percents[0] // 100} to"
         f" {table * most * percents[-1] // 100} MB",
         "a sample": f"{length} s"},
        most * table * share
        + SCAN_SERVERS * (SERVER_MEMORY_MB + most * CONNECTION_MB),
        most * table + SCAN_SERVERS * SERVER_DISK_MB,
        {step: f"60 %, {plural(ours, 'client')}, no ring"
         for step, ours in steps.items()})


# ---- LWLocks: how many connections is the question, so they are not scaled

CONNECTIONS, CONNECTIONS_QUICK = (1, 4, 20, 130, 560, 2000), (1, 20)
LWLOCK_POOL_MB = 1024
LWLOCK_SERVERS = 4
LEAST_POOL_MB = 128
SPARE_FILES = 200


def borisov(workload):
    def plan(factor, machine, minutes):
        pool = min(LWLOCK_POOL_MB, max(LEAST_POOL_MB, machine.memory_mb // 32))
        # one server at a time has the connections
        room = (machine.memory_mb * MEMORY_SHARE
                - LWLOCK_SERVERS * (SERVER_MEMORY_MB + pool)) / CONNECTION_MB
        most = max(1, min(room, machine.open_files - SPARE_FILES))
        wanted = CONNECTIONS_QUICK if minutes is None else CONNECTIONS
        connections = [n for n in wanted if n <= most]
        return Plan(
            ["--workload", workload, "--connections", *connections,
             "--tail-connections", 0, "--shared-buffers", f"{pool}MB",
             "--control", "--seconds", 0.5 if minutes is None else 0.8,
             *rounds(minutes)],
            {"connections": ", ".join(map(str, connections))
             + (" (more have no room in memory, or open files)"
                if wanted[-1] > most else ""), "shared_buffers": f"{pool} MB"},
            LWLOCK_SERVERS * (SERVER_MEMORY_MB + pool)
            + connections[-1] * CONNECTION_MB,
            LWLOCK_SERVERS * 2 * SERVER_DISK_MB)
    return plan


# ---- COPY

COPY_WRITERS, COPY_WRITERS_QUICK = (1, 4, 16), (1, 4)
COPY_SERVERS = 3                # with the control
# A COPY of less would not go twice through its ring.
COPY_LEAST_MB, COPY_MOST_MB = 32, 1024
COPY_POOL_MB = 16 << 10         # the thread does not say
# of the table, for WAL, for the file that is loaded: as bench/copy has it
COPY_WAL_SHARE, COPY_FILE_SHARE = 0.75, 0.5


def plageman(factor, machine, minutes):
    writers = COPY_WRITERS_QUICK if minutes is None else COPY_WRITERS
    mb = round(min(COPY_MOST_MB, max(COPY_LEAST_MB, COPY_MOST_MB * factor)))
    # 16 rings of 16 MB are to have room, where there is memory for that
    pool = round(min(max(512, COPY_POOL_MB * factor),
                     max(256, machine.memory_mb / 8)))
    table = max(writers) * mb
    wal = max(256, table * COPY_WAL_SHARE)
    return Plan(
        ["--writers", *writers, "--mb", mb, "--loads", max(writers),
         "--shared-buffers", f"{pool}MB", "--control", *rounds(minutes)],
        {"writers": ", ".join(map(str, writers)), "table":
         f"{table} MB in all, {mb} MB a COPY",
         "shared_buffers": f"{pool} MB"},
        COPY_SERVERS * (SERVER_MEMORY_MB + pool)
        + max(writers) * COPY_SERVERS * CONNECTION_MB,
        mb * COPY_FILE_SHARE + table + COPY_SERVERS * (wal + 1024 + 512),
        {writer: plural(writer, "writer") for writer in writers})


# ---- pins: of one process, so they are not scaled

PINS_SERVERS = 3
PINS_POOL_MB = 2048


def pins(factor, machine, minutes):
    pool = min(PINS_POOL_MB, max(256, machine.memory_mb // 8))
    return Plan(
        ["--part", "loop", "--shared-buffers", f"{pool}MB",
         *(["--quick"] if minutes is None else []), *rounds(minutes)],
        {"pinned meanwhile": f"0 to {128 if minutes is None else 512}",
         "shared_buffers": f"{pool} MB"},
        PINS_SERVERS * (SERVER_MEMORY_MB + pool / 2),
        (PINS_SERVERS + 1) * (SERVER_DISK_MB + 64))


# ---- all of them

TPS = Metric("tps", "transactions a second", results.HIGHER)
READS = Metric("pages_read_per_transaction", "pages read a transaction",
               results.LOWER, 3)
LWLOCK_METRICS = (TPS, Metric("cpu_us_per_transaction",
                              "CPU time of the server a transaction, us",
                              results.LOWER, 1),
                  Metric("sleeps_per_contended_acquisition",
                         "sleeps a contended acquisition (which the stock"
                         " server does not count)", results.LOWER, 3))
LWLOCK_SIDES = ("pg_sweep lockless_spin", "pg_sweep lockless", "pg_sweep spin",
                SWEEP_STOCK)

SCENARIOS = {scenario.name: scenario for scenario in (
    Scenario("pgbench_ro", "pgbench", "pgbench, read-only, with a pool of 71 %"
             " of the data", threads.BURD_RO,
             burd("beyond", "read-only, beyond memory", threads.BURD_RO), 4,
             (TPS, READS), (BATCHED, PARTITIONED)),
    Scenario("pgbench_rw", "pgbench", "pgbench, read-write (tpcb-like), with a"
             " pool of 71 % of the data", threads.BURD_RW,
             burd("write", "read-write, beyond memory", threads.BURD_RW), 4,
             (TPS, READS), (BATCHED, PARTITIONED)),
    Scenario("scans", "scans", "concurrent sequential scans, a table a client,"
             " with pools of 60 to 110 % of the tables", threads.VONDRA, vondra,
             5, (Metric("scans_per_second", "scans a second", results.HIGHER,
                        1),
                 Metric("read_percent", "pages read, of those scanned, %",
                        results.LOWER, 1)),
             (PARTITIONED, BATCHED)),
    Scenario("insert", "lwlock", "inserts into an unlogged table without an"
             " index", threads.BORISOV, borisov("insert"), 4, LWLOCK_METRICS,
             LWLOCK_SIDES, x_title="connections"),
    Scenario("txid_current", "lwlock", "SELECT txid_current()", threads.BORISOV,
             borisov("txid"), 4, LWLOCK_METRICS, LWLOCK_SIDES,
             x_title="connections"),
    Scenario("copy", "copy", "parallel COPY into one table, eager flush of rings"
             " on and off", threads.PLAGEMAN, plageman, 4,
             (Metric("elapsed_s", "time, s", results.LOWER, 2),
              Metric("wal_write_lock_waits_per_gb",
                     "waits on WALWriteLock a GB", results.LOWER)),
             ("pg_sweep ring_eager_flush on",), baseline="pg_sweep ring_eager_flush off",
             control=None, x_title="writers"),
    Scenario("pins", "pins", "a pin and its unpin, while a process holds others",
             threads.FREUND_PINS, pins, 2,
             (Metric("pin_cpu_ns", "CPU time, ns", results.LOWER, 1),),
             (NOTHING_LOADED,), x_title="buffers pinned meanwhile",
             shown=r"^(again, random|other|read|stream), (0|1|8|9|16|64|512)"
             r" held$"),
    Scenario("pgbench_memory", "pgbench", "pgbench, read-only, all in the pool;"
             " nothing loaded into the patched server", threads.FREUND, freund,
             2, (TPS,), (NOTHING_LOADED,)),
)}
