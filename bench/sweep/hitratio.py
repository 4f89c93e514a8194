"""Does a strategy keep the right pages? Hit ratios against stock's.

All sides are strategies of one server. Two parts:

  keys    pools smaller than the data. A table with one row per page is read by
          key; pgbench draws the keys uniformly or zipfian. Every sample begins
          with an emptied pool, filled from the table, and a while of the load.
          Then the same number of transactions with the same random seed is
          counted. Only the order in which clients get at pages is left to chance.
  rescan  one backend alone reads data of 90 % of the pool twice; the hit ratio
          is that of the second time (see rescan.py)"""

from dataclasses import dataclass

from bench.lib import cluster, pgbench, report, runner, sides, stats
from bench.lib.paths import BenchError
from bench.lib.tables import HIGHER, Metric
from bench.sweep import rescan
from bench.sweep.rescan import Rescan, check_pages

HITS = "hit_ratio"              # of the database, as users see it
TABLE_HITS = "table_hit_ratio"  # of the table's own pages: stricter
PASSES = "passes"               # pools allocated while counting
DATABASE = "bench"
LEAST = 0.99                    # of stock's hit ratio
READS = 16                      # rows read by one transaction
NODES = 4                       # emulated; backends are spread over them
ZIPF = 1.05                     # exponent
EVICT_LEFT = 5                  # buffers that may stay when a pool is emptied

# Each row is looked up separately, through the index, in the order drawn.
SESSION = {"enable_hashjoin": "off", "enable_mergejoin": "off",
           "enable_bitmapscan": "off", "enable_seqscan": "off",
           "plan_cache_mode": "force_generic_plan", "jit": "off"}


@dataclass(frozen=True)
class Pool:
    size: str
    buffers: int
    keys: int                   # pages that the load reads
    warm: int                   # transactions before counting
    count: int                  # transactions counted
    rounds: int


POOLS = {
    "2MB": Pool("2MB", 256, 4 * 256, 1000, 8000, 5),
    "128MB": Pool("128MB", 16384, 4 * 16384, 5000, 15000, 3),
    "2GB": Pool("2GB", 262144, 2 * 262144, 10000, 80000, 2),
}
DRAWS = {
    "uniform": "random(1, {keys})",
    "zipfian": f"random_zipfian(1, {{keys}}, {ZIPF})",
}
PARTS = ("keys", "rescan")


def configuration(pool, draw, clients):
    return (f"{pool.size}, {draw} over {pool.keys} pages, {clients}"
            f" client{'s' if clients > 1 else ''}")


class Bench(runner.Bench):
    rounds = None, 2            # as many as POOLS and Rescan say
    needs_stock = False
    baseline = sides.SWEEP_STOCK.name
    check = f"exit 1 if a ratio to stock is below {LEAST}"
    metrics = (
        Metric(HITS, "hit ratio of the database, with index and catalogs", 4,
               HIGHER, 4),
        Metric(TABLE_HITS, "hit ratio of the table", 4, HIGHER, 4),
        Metric(PASSES, "passes: times the pool was allocated while counting",
               1),
        Metric(rescan.HITS, "hit ratio of the second scan", 4, HIGHER, 4))

    @staticmethod
    def options(add):
        add("--part", PARTS, choices=PARTS)
        add("--pool", tuple(POOLS), ("2MB",), "of keys", choices=POOLS)
        add("--clients", (1, 16, 64), (16,), "of keys")
        add("--draw", tuple(DRAWS), help="of keys", choices=DRAWS)
        Rescan.options(add)

    @staticmethod
    def switches(switch):
        Rescan.switches(switch)

    def __init__(self, args):
        super().__init__(args)
        self.sides = [sides.SWEEP_STOCK, sides.batched(0), sides.batched(64),
                      sides.partitioned(NODES)]
        self.rescan = Rescan(self) if "rescan" in args.part else None
        self.cells = [(POOLS[pool], draw, clients) for pool in args.pool
                      for draw in args.draw for clients in args.clients]
        if "keys" not in args.part:
            self.cells = []
        self.limits = {}            # pool: buffers of all leases together

    def prepare(self):
        self.cluster = self.clusters["all"] = cluster.Cluster(
            "hitratio", sides.SWEEP, self.patched,
            {**sides.preload(sides.SWEEP), **sides.emulate_nodes(NODES),
             "max_connections": max(self.args.clients) + 20})
        self.cluster.init()
        self.cluster.start(shared_buffers="512MB")
        self.cluster.session().rows(f"CREATE DATABASE {DATABASE}")
        admin = self.cluster.session(DATABASE)
        for name in ("pg_sweep", "pg_prewarm", "pg_buffercache"):
            admin.rows(f"CREATE EXTENSION {name}")
        if self.cells:
            self.make_table(admin)
        if self.rescan:
            self.rescan.prepare(admin)
        admin.rows("VACUUM (FREEZE, ANALYZE)")
        admin.rows("CHECKPOINT")
        self.cluster.stop()

    def make_table(self, admin):
        """One row per page: a row is more than a tenth of a page, and pages are
        filled to a tenth. The transaction that makes the table writes no
        WAL."""
        rows = max(pool.keys for pool, _, _ in self.cells)
        report.progress(f"making a table of {rows} pages")
        for sql in ("BEGIN",
                    "CREATE TABLE pages (key int, padding text STORAGE PLAIN)"
                    " WITH (fillfactor = 10)",
                    "INSERT INTO pages SELECT i, repeat('x', 900)"
                    f" FROM generate_series(1, {rows}) i",
                    "CREATE UNIQUE INDEX pages_key ON pages (key)",
                    "COMMIT"):
            admin.rows(sql)
        check_pages(admin, "pages", rows)

    def start_server(self, size, **settings):
        self.cluster.start(shared_buffers=size, **settings)
        self.admin = self.cluster.session(DATABASE)

    def put_in_force(self, side):
        sides.activate(side, self.admin)
        self.verify(side)

    def verify(self, side):
        sides.verify(side, self.admin, self.patched.version, capped=True)

    def empty_pool(self):
        left = self.admin.value("SELECT buffers_skipped"
                                " FROM pg_buffercache_evict_all()")
        if int(left) > EVICT_LEFT:
            raise BenchError(f"{left} buffers could not be emptied")

    # -- keys

    def script(self, draw, keys):
        drawn = DRAWS[draw].format(keys=keys)
        path = self.cluster.dir / f"{draw}-{keys}.sql"
        path.write_text(
            "".join(f"\\set k{i} {drawn}\n" for i in range(READS))
            + "SELECT sum(length(pages.padding)) FROM (VALUES "
            + ", ".join(f"(CAST(:k{i} AS int))" for i in range(READS))
            + ") AS drawn (key) JOIN pages USING (key);\n")
        return path

    def pgbench(self, script, clients, transactions, seed):
        return pgbench.run(self.patched, self.cluster, DATABASE,
                           "-M", "prepared", "-f", script, "-c", clients,
                           "-j", min(2, clients), "-t",
                           max(1, transactions // clients),
                           "--random-seed", seed, session_options=SESSION)

    def counters(self):
        """Of the database and the table: blocks hit and read, buffers
        allocated. Sessions report theirs when they end."""
        sides.wait_until(self.admin, "SELECT count(*) FROM pg_stat_activity"
                         " WHERE application_name = 'pgbench'", "0")
        return [int(value) for value in self.admin.row(
            "SELECT d.blks_hit, d.blks_read, t.heap_blks_hit,"
            " t.heap_blks_read, s.allocations"
            " FROM pg_stat_database d, pg_statio_user_tables t,"
            " pg_sweep_strategies s"
            " WHERE d.datname = current_database() AND t.relname = 'pages'"
            " AND s.active")]

    def sample(self, side, pool, draw, clients, round_):
        script = self.script(draw, pool.keys)
        self.put_in_force(side)
        self.limits[pool.size] = self.admin.value(
            "SELECT lease_limit FROM pg_sweep_status")
        self.empty_pool()
        self.admin.rows("SELECT pg_prewarm('pages', 'buffer', 'main',"
                        f" 0, {pool.keys - 1})")
        self.pgbench(script, clients, pool.warm, 2 * round_ + 1)
        before = self.counters()
        self.pgbench(script, clients, pool.count, 2 * round_ + 2)
        after = self.counters()
        self.verify(side)

        hit, read, table_hit, table_read, allocated = (
            now - then for now, then in zip(after, before))
        self.note(configuration(pool, draw, clients), side, round_, {
            HITS: hit / (hit + read),
            TABLE_HITS: table_hit / (table_hit + table_read),
            PASSES: allocated / pool.buffers})

    def measure(self):
        for name in dict.fromkeys(pool.size for pool, _, _ in self.cells):
            # Only backends are to look at buffers; and there is nothing to
            # write.
            self.start_server(name, bgwriter_lru_maxpages=0)
            for cell in self.cells:
                if cell[0].size == name:
                    rounds = self.args.rounds or cell[0].rounds
                    for round_ in self.each_round(configuration(*cell),
                                                  rounds):
                        for side in stats.rotated(self.sides, round_):
                            self.sample(side, *cell, round_)
            self.cluster.stop()
        if self.rescan:
            self.rescan.measure()

    # -- results

    def notes(self):
        yield "few passes say little about the strategy"
        for pool, limit in self.limits.items():
            yield (f"{pool}: all leases together are limited to {limit} buffers;"
                   " a batch in force is at most that divided by the number of"
                   " backends")
        if self.rescan:
            yield (f"second scan: the backend is on another one of {NODES}"
                   " emulated nodes in each round")

    def wanted(self):
        for metric, what in ((HITS, "hit ratio"),
                             (rescan.HITS, "second scan's hit ratio")):
            found = [(row["ratio"], f"{row['configuration']}, {row['side']}")
                     for row in self.samples.rows() if row["metric"] == metric]
            if found:
                ratio, where = min(found)
                yield (ratio >= LEAST,
                       f"lowest {what} {ratio:.4f} of stock's ({where}),"
                       f" at least {LEAST} wanted everywhere")
