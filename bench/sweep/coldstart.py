"""How fast is an empty pool filled, and is a spinlock taken for it?

Core hands out buffers that were never used from its freelist, each under one
spinlock. The strategies of pg_sweep have no freelist. Each sample is taken on a
server that was just started, and all servers use the same files:

  allocate  the test module allocates until every buffer was handed out once
  prewarm   sessions load the parts of one table, which the operating system has
            cached, by pg_prewarm, until the pool is full
  spinlock  a session holds the freelist's spinlock while another one hands out
            the whole pool: a server that needs the lock waits for it"""

import time

from bench.lib import cluster, report, runner, sides, stats
from bench.lib.paths import BenchError
from bench.lib.tables import HIGHER, LOWER, Metric

RATE = "allocations_per_second"
FILL = "fill_ms"
LOADED = "loaded_mb_per_second"
KEPT = "kept_percent"           # of the table, in the pool afterwards
WAITED = "waited_ms"            # while the spinlock was held
BUFFER_KB = 8
NODES = 2
START_MS = 100                  # until the common start
HOLD_MS = 300                   # of the spinlock
SPINLOCK_BUFFERS = 16384        # pool handed out meanwhile
TABLE_SHARE = 0.97              # of the pool: catalogs need some, too
CACHE_STRIDE = 1 << 20          # bytes per read of the table's files
PARTS = ("allocate", "prewarm", "spinlock")


class Bench(runner.Bench):
    rounds = 9, 2
    check = "exit 1 if a strategy waits for the freelist's spinlock"
    metrics = (Metric(RATE, "allocations/s", 0, HIGHER),
               Metric(LOADED, "MB/s loaded", 2, HIGHER),
               Metric(FILL, "pool full after, ms", 1, LOWER),
               Metric(KEPT, "% of the table kept", 2, HIGHER),
               Metric(WAITED, "pool handed out after, ms", 2, LOWER))

    @staticmethod
    def options(add):
        add("--mb", 4096, 256, "size of the pool", least=128)
        add("--procs", 2)
        add("--part", PARTS, choices=PARTS)

    def __init__(self, args):
        super().__init__(args)
        self.sides = [sides.STOCK_SERVER, sides.batched(0),
                      sides.partitioned(NODES)]
        self.buffers = args.mb * 1024 // BUFFER_KB
        self.pages = None

    def prepare(self):
        """One cluster for both servers: their files are the same."""
        self.found_by = self.modules("measure_sweep")
        self.cluster = self.clusters["both"] = cluster.Cluster(
            "coldstart", "both", self.patched,
            # The sessions are to read by themselves.
            {"max_connections": self.args.procs + 20, "io_method": "sync"})
        report.progress("making the cluster")
        self.cluster.init()
        self.cluster.start(shared_buffers="512MB", **self.found_by[self.patched])
        admin = self.cluster.session()
        # The stock server has pg_sweep's views in its catalog, too, and does not
        # use them.
        for name in ("measure_sweep", "pg_sweep", "pg_prewarm",
                     "pg_buffercache"):
            admin.rows(f"CREATE EXTENSION {name}")
        if "prewarm" in self.args.part:
            pages = int(self.buffers * TABLE_SHARE)
            report.progress(f"making a table of {pages} pages")
            # Eight rows per page; no WAL, in the transaction that made it.
            for sql in ("BEGIN",
                        "CREATE TABLE big (padding text STORAGE PLAIN)",
                        "INSERT INTO big SELECT repeat('x', 950)"
                        f" FROM generate_series(1, {pages * 8})",
                        "COMMIT",
                        "VACUUM (FREEZE) big"):
                admin.rows(sql)
            self.pages = int(admin.value(
                "SELECT pg_relation_size('big')"
                " / current_setting('block_size')::int"))
        admin.rows("CHECKPOINT")
        self.cluster.stop()

    def start_server(self, side, mb):
        """The server of a side, started with the side in force: a switch would
        have taken buffers off the freelist."""
        server = self.server(side.cluster)
        self.cluster.server = server
        settings = {**sides.preload(side.cluster), **self.found_by[server],
                    "shared_buffers": f"{mb}MB"}
        if side.strategy is not None:
            settings.update(sides.emulate_nodes(NODES))
            settings["pg_sweep.strategy"] = side.strategy
        self.cluster.start(**settings)
        admin = self.cluster.session()
        sides.verify(side, admin, self.patched.version)
        return admin

    def workers(self, side, count):
        """Sessions that have read the catalog pages that they need."""
        workers = [self.cluster.session() for _ in range(count)]
        for i, worker in enumerate(workers):
            if side.strategy is not None:
                worker.rows(f"SET pg_sweep.numa_debug_node = {i % NODES}")
            # more than a lease from before the SET can serve
            worker.rows("SELECT * FROM measure_sweep_run(0, 128, start_at =>"
                        " clock_timestamp())")
            worker.rows("SELECT pg_prewarm('pg_class', last_block => 0)")
        if side.nodes is not None:
            sides.check_homes(side, workers)
        return workers

    def allocate(self, side, round_):
        self.start_server(side, self.args.mb)
        workers = self.workers(side, self.args.procs)
        share = self.buffers // len(workers)
        send_run(workers, share)
        answers = [list(map(int, worker.receive()[0])) for worker in workers]
        self.cluster.stop()
        self.note(self.configuration("allocate"), side, round_, {
            RATE: sum(share * 1e9 / ns for ns, _ in answers),
            FILL: max(ns + late for ns, late in answers) / 1e6})

    def prewarm(self, side, round_):
        admin = self.start_server(side, self.args.mb)
        self.read_files(admin.value("SELECT pg_relation_filepath('big')"))
        workers = self.workers(side, self.args.procs)
        begin = time.monotonic()
        for i, worker in enumerate(workers):
            first = self.pages * i // len(workers)
            last = self.pages * (i + 1) // len(workers) - 1
            worker.send("SELECT pg_prewarm('big', 'buffer', 'main',"
                        f" {first}, {last})")
        loaded = sum(int(worker.receive()[0][0]) for worker in workers)
        seconds = time.monotonic() - begin
        if loaded != self.pages:
            raise BenchError(f"{loaded} of {self.pages} pages loaded")
        kept = int(admin.value(
            "SELECT count(*) FROM pg_buffercache"
            " WHERE relfilenode = pg_relation_filenode('big')"))
        self.cluster.stop()
        self.note(self.configuration("prewarm"), side, round_, {
            LOADED: loaded * BUFFER_KB / 1024 / seconds,
            FILL: seconds * 1000, KEPT: 100 * kept / self.pages})

    def read_files(self, path):
        """Puts a table into the operating system's cache."""
        first = self.cluster.data / path
        for file in sorted(first.parent.glob(f"{first.name}*")):
            if file.name == first.name or file.suffix[1:].isdigit():
                with open(file, "rb", buffering=0) as open_file:
                    while open_file.read(CACHE_STRIDE):
                        pass

    def spinlock(self, side, round_):
        mb = SPINLOCK_BUFFERS * BUFFER_KB // 1024
        admin = self.start_server(side, mb)
        size = admin.value("SELECT size FROM pg_shmem_allocations"
                           " WHERE name = 'Buffer Strategy Status'")
        holder, worker = self.workers(side, 2)
        holder.rows(f"SELECT measure_sweep_hold_freelist_lock({size}, 0)")
        send_run([worker], SPINLOCK_BUFFERS)
        # taken well before the start, and held well beyond it
        time.sleep(START_MS / 2 / 1000)
        holder.send(f"SELECT measure_sweep_hold_freelist_lock({size},"
                    f" {START_MS // 2 + HOLD_MS})")
        nanoseconds, late = map(int, worker.receive()[0])
        holder.receive()
        self.cluster.stop()
        self.note(self.configuration("spinlock"), side, round_,
                  {WAITED: (nanoseconds + late) / 1e6})

    def measure(self):
        for part in self.args.part:
            for round_ in self.each_round(part):
                for side in stats.rotated(self.sides, round_):
                    getattr(self, part)(side, round_)

    def configuration(self, part):
        if part == "spinlock":
            return (f"spinlock held for {HOLD_MS} ms,"
                    f" {SPINLOCK_BUFFERS} buffers, 1 process")
        return f"{part}, {self.args.mb} MB, {self.args.procs} processes"

    def wanted(self):
        if "spinlock" not in self.args.part:
            return
        for side in self.sides:
            row = self.samples.row(WAITED, self.configuration("spinlock"), side)
            if side.strategy is not None:
                yield (row["max"] < HOLD_MS / 2,
                       f"{side.name}: at most {row['max']:.1f} ms with the"
                       " freelist's spinlock held, no waiting wanted")
            elif row["min"] < HOLD_MS / 2:
                raise BenchError("the stock server did not wait for the"
                                 " spinlock: nothing is proved")


def send_run(workers, count):
    """Each allocates so many buffers, all from the same moment on."""
    start = time.time() + START_MS / 1000
    for worker in workers:
        worker.send("SELECT elapsed_ns, started_late_ns"
                    f" FROM measure_sweep_run(0, {count},"
                    f" start_at => to_timestamp({start:.6f}))")
