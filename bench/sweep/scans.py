"""Do concurrent sequential scans get faster, beyond memory and within?

After Vondra's benchmark of the partitioned clock sweep (pgsql-hackers 2025),
with smaller tables: one table and one session per client, pools of 60 to 110 %
of the data.

Every client counts the rows of its own table, the same number of times on every
side. Below 100 % each scan must read part of its table again, from the operating
system's cache, and allocate a buffer for each page.

Sides take turns within a round. Each has a server of its own, which runs with
one strategy all the time: what a scan finds in the pool is what the scans before
have left there. All servers use the same tables, in a tablespace that is not
written after it was made. A table larger than a quarter of the pool is read
through a ring of 256 kB. Most of its pages take a buffer of the ring and not a
victim; the output says which."""

import atexit
import os
import shutil
from dataclasses import dataclass

from bench.lib import cluster, pgbench, report, runner, sides, stats
from bench.lib.session import quote
from bench.lib.tables import HIGHER, LOWER, Metric

RATE = "scans_per_second"
READ = "read_percent"           # of the pages scanned, not found in the pool
DATABASE = "bench"
NODES = 4
ROWS_PER_MB = 128 * 8           # a row is an eighth of a page
SPARE_MB = 4                    # of the pool, for catalogs
WARM = 3                        # scans per client, before the first round
JOBS = len(os.sched_getaffinity(0))     # pgbench's threads at most
RING_FRACTION = 4               # core's: a table above 1/4 of the pool


@dataclass(frozen=True)
class Cell:
    clients: int
    percent: int
    table_mb: int

    @property
    def pool_mb(self):
        return self.clients * self.table_mb * self.percent // 100 + SPARE_MB

    @property
    def ring(self):
        return self.table_mb * RING_FRACTION > self.pool_mb

    def __str__(self):
        return (f"{self.percent} %, {self.clients}"
                f" client{'s' if self.clients > 1 else ''},"
                f" {'ring' if self.ring else 'no ring'}")


class Bench(runner.Bench):
    rounds = 7, 2
    boxed = controlled = True
    metrics = (Metric(RATE, "scans/s", 2, HIGHER),
               Metric(READ, "% of the pages read, not found in the pool", 1,
                      LOWER))

    @staticmethod
    def options(add):
        add("--table-mb", 96, 8)
        add("--scans", 40, 32, "of one sample, all clients together, but at"
            " least one each")
        add("--seconds", None, help="length of a sample, instead of a number of"
            " scans", default="not used")
        add("--clients", (1, 4, 16, 32), (1, 16))
        add("--percent", (60, 75, 90, 110), (60, 110),
            "shared_buffers in percent of the data")

    def __init__(self, args):
        super().__init__(args)
        nodes = sides.emulated(NODES)
        self.nodes = sides.emulate_nodes(nodes)
        self.sides = self.with_control([sides.STOCK_SERVER, sides.batched(0),
                                        sides.partitioned(nodes)])
        self.cells = [Cell(clients, percent, args.table_mb)
                      for percent in args.percent for clients in args.clients]

    def prepare(self):
        """The tables, with eight rows per page, frozen, so that no process
        writes them again; and a cluster for each side."""
        count = max(self.args.clients)
        report.progress(f"making {count} tables of {self.args.table_mb} MB")
        first = cluster.Cluster("scans", "template", self.patched,
                                {"shared_buffers": "512MB"})
        first.init()
        space = first.dir / "tables"
        space.mkdir()
        # The data goes when the servers go, however that happens.
        atexit.register(shutil.rmtree, space, ignore_errors=True)
        first.start()
        admin = first.session()
        admin.rows(f"CREATE TABLESPACE tables LOCATION {quote(space)}")
        admin.rows(f"CREATE DATABASE {DATABASE}")
        admin = first.session(DATABASE)
        admin.rows("CREATE EXTENSION pg_sweep")
        rows = self.args.table_mb * ROWS_PER_MB
        for i in range(count):
            for sql in ("BEGIN",
                        f"CREATE TABLE t{i} (padding text STORAGE PLAIN)"
                        " TABLESPACE tables",
                        f"INSERT INTO t{i} SELECT repeat('x', 950)"
                        f" FROM generate_series(1, {rows})",
                        "COMMIT",
                        f"VACUUM (FREEZE, ANALYZE) t{i}"):
                admin.rows(sql)
        admin.rows("CHECKPOINT")
        first.stop()
        for i, side in enumerate(self.sides):
            here = cluster.Cluster("scans", str(i), self.server(side.cluster),
                                   sides.preload(side.cluster))
            if side.strategy is not None:
                here.settings.update(
                    {**self.nodes, "pg_sweep.strategy": side.strategy})
            here.copy_of(first)
            (here.dir / "scan.sql").write_text(
                "SELECT count(*) FROM t:client_id;\n")
            self.clusters[side] = here
        self.clusters["tables"] = first

    def start_servers(self, cell):
        for side in self.sides:
            here = self.clusters[side]
            here.start(shared_buffers=f"{cell.pool_mb}MB",
                       max_connections=cell.clients + 20,
                       # A client is one process.
                       max_parallel_workers_per_gather=0)
            here.session(DATABASE)
            self.scan(side, cell, "-t", WARM)

    def scan(self, side, cell, *options):
        here = self.clusters[side]
        return pgbench.run(self.stock, here, DATABASE, "-M", "simple", "-f",
                           here.dir / "scan.sql", "-c", cell.clients, "-j",
                           min(JOBS, cell.clients), *options).tps

    def blocks(self, side):
        """(read, read or hit) in the database, when all clients have ended: a
        client reports its blocks at its end."""
        admin = self.clusters[side].sessions[0]
        sides.wait_until(admin, "SELECT count(*) FROM pg_stat_activity"
                         " WHERE application_name = 'pgbench'", "0")
        return list(map(int, admin.row(
            "SELECT blks_read, blks_read + blks_hit FROM pg_stat_database"
            " WHERE datname = current_database()")))

    def sample(self, side, cell, round_):
        admin = self.clusters[side].sessions[0]
        sides.verify(side, admin, self.patched.version, capped=True)
        before = self.blocks(side)
        if self.args.seconds:
            rate = self.scan(side, cell, "-T", self.args.seconds)
        else:
            rate = self.scan(side, cell, "-t",
                             max(1, -(-self.args.scans // cell.clients)))
        after = self.blocks(side)
        sides.verify(side, admin, self.patched.version, capped=True)
        self.note(str(cell), side, round_, {
            RATE: rate,
            READ: 100 * (after[0] - before[0]) / (after[1] - before[1])})

    def measure(self):
        for i, cell in enumerate(self.cells):
            report.progress(f"{cell}: starting the servers")
            self.start_servers(cell)
            for round_ in self.each_round(str(cell),
                                          parts=len(self.cells) - i):
                for side in stats.rotated(self.sides, round_):
                    self.sample(side, cell, round_)
            for side in self.sides:
                self.clusters[side].stop()

    def notes(self):
        yield (f"tables of {self.args.table_mb} MB, one per client; default"
               " io_method, io_workers and synchronize_seqscans")
        yield ("ring: the tables are larger than a quarter of the pool and read"
               " through a ring of 256 kB, which asks the strategy for few"
               " buffers")
