"""Do transactions per second change, in memory, beyond it, and writing?

Every side has the same files (copies of one cluster) and is measured in every
round, in an order that changes from round to round. Every few rounds all
servers are restarted with the files of a neighbour: no side keeps the luck of
a place on disk or in memory."""

import os
from dataclasses import dataclass

from bench.lib import cluster, pgbench, report, runner, sides, stats
from bench.lib.tables import HIGHER, LOWER, Metric

TPS = "tps"
LATENCY = "latency_ms"
READS = "pages_read_per_transaction"    # a victim is allocated for each
DATABASE = "bench"
NODES = 4               # for partitioned; emulated on a machine with one


@dataclass(frozen=True)
class Scenario:
    name: str
    builtin: str
    in_memory: bool
    warm: int                   # transactions before the first round


SCENARIOS = {
    "memory": Scenario("read-only, in memory", "select-only", True, 20000),
    "beyond": Scenario("read-only, beyond memory", "select-only", False,
                       20000),
    "write": Scenario("read-write, beyond memory", "tpcb-like", False,
                      4000),
}


def configuration(scenario, clients):
    return f"{scenario.name}, {clients} client{'s' if clients > 1 else ''}"


class Bench(runner.Bench):
    rounds = 20, 2
    boxed = controlled = True
    metrics = (Metric(TPS, "transactions/s", 0, HIGHER),
               Metric(LATENCY, "latency, ms", 3, LOWER),
               Metric(READS, "pages read per transaction", 3, LOWER))

    @staticmethod
    def options(add):
        add("--seconds", 4, 1, "length of a sample")
        add("--block", 4, help="rounds between restarts of the servers")
        add("--clients", (8,))
        add("--scale", 40, 10)
        add("--pool-percent", 10, help="shared_buffers beyond memory, in"
            " percent of the data")
        add("--scenario", tuple(SCENARIOS), choices=SCENARIOS)

    @staticmethod
    def switches(switch):
        switch("--unused-only", "leaves out the strategies")

    def __init__(self, args):
        super().__init__(args)
        nodes = sides.emulated(NODES)
        self.nodes = sides.emulate_nodes(nodes)
        self.sides = self.with_control([
            sides.STOCK_SERVER, sides.NOTHING_LOADED, *(
                () if args.unused_only else
                (sides.SWEEP_STOCK, sides.batched(0),
                 sides.partitioned(nodes)))])
        self.cells = [(SCENARIOS[name], clients) for name in args.scenario
                      for clients in sorted(set(args.clients))]

    def prepare(self):
        report.progress(f"making a database of scale {self.args.scale}")
        first = cluster.Cluster("pgbench", "template", self.patched,
                                {"shared_buffers": "512MB"})
        first.init()
        first.start()
        pgbench.initialize(first, DATABASE, self.args.scale)
        admin = first.session(DATABASE)
        admin.rows("CREATE EXTENSION pg_prewarm")
        admin.rows("CREATE EXTENSION pg_sweep")
        admin.rows("VACUUM (FREEZE, ANALYZE)")
        admin.rows("CHECKPOINT")
        self.data_mb = int(admin.value("SELECT pg_database_size("
                                       "current_database())")) >> 20
        first.stop()
        self.copy_clusters(first, lambda key: self.nodes if key == sides.SWEEP
                           else {})

    def buffers(self, scenario):
        if scenario.in_memory:
            return f"{self.data_mb + self.data_mb // 4 + 64}MB"
        return f"{max(self.data_mb * self.args.pool_percent // 100, 16)}MB"

    def start_servers(self, scenario, clients):
        for here in self.clusters.values():
            here.start(shared_buffers=self.buffers(scenario),
                       max_connections=clients + 20, full_page_writes="off")
            # Beyond memory, too: no victim is needed while buffers are free.
            here.session(DATABASE).rows("SELECT pg_prewarm('pgbench_accounts'),"
                                        " pg_prewarm('pgbench_accounts_pkey')")
        for side in self.sides:
            here = self.clusters[side.cluster]
            sides.activate(side, here.sessions[0])
            self.pgbench(here, scenario, clients, "-t",
                         max(1, scenario.warm // clients))

    def stop_servers(self):
        for here in self.clusters.values():
            here.stop()

    def pgbench(self, here, scenario, clients, *options):
        return pgbench.run(self.stock, here, DATABASE, "-M", "prepared",
                           "-b", scenario.builtin, "-c", clients, "-j",
                           min(clients, len(os.sched_getaffinity(0))),
                           *options)

    def pages_read(self, admin):
        """Of the database, when all clients have ended: a client reports its
        pages at its end."""
        sides.wait_until(admin, "SELECT count(*) FROM pg_stat_activity"
                         " WHERE application_name = 'pgbench'", "0")
        return int(admin.value("SELECT blks_read FROM pg_stat_database"
                               " WHERE datname = current_database()"))

    def sample(self, scenario, clients, side, round_):
        here = self.clusters[side.cluster]
        admin = here.sessions[0]
        sides.activate(side, admin)
        sides.verify(side, admin, self.patched.version, capped=True)
        self.pgbench(here, scenario, clients, "-t", 100)
        before = self.pages_read(admin)
        # Other keys than those of the side before, which are still in the pool
        seed = round_ * len(self.sides) + self.sides.index(side) + 1
        result = self.pgbench(here, scenario, clients, "-T", self.args.seconds,
                              "--random-seed", seed)
        read = self.pages_read(admin) - before
        sides.verify(side, admin, self.patched.version, capped=True)
        self.note(configuration(scenario, clients), side, round_, {
            TPS: result.tps, LATENCY: result.latency_ms,
            READS: read / result.transactions})

    def measure(self):
        for i, cell in enumerate(self.cells):
            where = configuration(*cell)
            for round_ in self.each_round(where, parts=len(self.cells) - i):
                if round_ % self.args.block == 0:
                    if round_ > 0:
                        self.stop_servers()
                        cluster.swap_files(self.clusters.values())
                    report.progress(f"{where}: starting the servers")
                    self.start_servers(*cell)
                for side in stats.rotated(self.sides, round_):
                    self.sample(*cell, side, round_)
            self.stop_servers()

    def notes(self):
        for cell in self.cells:
            yield (f"{configuration(*cell)}: {self.data_mb} MB of data,"
                   f" shared_buffers = {self.buffers(cell[0])}, samples of"
                   f" {self.args.seconds} s")
        yield ("fsync, full_page_writes and synchronous_commit are off on all"
               " sides")
