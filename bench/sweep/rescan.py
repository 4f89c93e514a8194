"""Part of hitratio: can one backend alone use the whole pool? It reads data of
90 % of the pool twice, and no other backend reads anything.

The pool is partitioned for emulated nodes, and the backend is on one of them.
Without balance it would keep a fraction of what it read. The background writer
must have no part in that. So it is at work, at its default pace, or as good as
asleep.

  index    one table of 90 % of the pool, each page by its key
  tables   tables of 90 % together, scanned one after the other; none is larger
           than a quarter of the pool, so that no ring is used"""

import json

from bench.lib import report, stats
from bench.lib.paths import BenchError

HITS = "second_scan_hit_ratio"
NODES = 4
MB_BUFFERS = 128                # buffers per megabyte
SHARE = 0.9                     # of the pool
TABLES = 8                      # each 0.9 / 8 of the pool: below a quarter
ROUNDS = 5

# Busy, default, and nearly never. With bgwriter_lru_maxpages = 0 the writer may
# hibernate, for 50 times its delay.
WRITERS = {
    "writer every 10 ms": {"bgwriter_delay": "10ms"},
    "writer by default": {},
    "writer asleep": {"bgwriter_delay": "10s", "bgwriter_lru_maxpages": 0},
}
SESSION = ("SET enable_seqscan = off", "SET enable_bitmapscan = off",
           "SET max_parallel_workers_per_gather = 0")


class Rescan:
    @staticmethod
    def options(add):
        add("--rescan-mb", (128, 1024), (16,), "sizes of rescan's pool",
            least=8)

    @staticmethod
    def switches(switch):
        switch("--no-balance", "control: with pg_sweep.balance = off, rescan's"
               " backend must not get the whole pool")

    def __init__(self, bench):
        self.bench = bench
        self.sides = [side for side in bench.sides if side.batch_size != 64]
        self.sizes = bench.args.rescan_mb
        self.rounds = bench.args.rounds or ROUNDS

    def prepare(self, admin):
        """Rows of more than half a page, one on each page."""
        report.progress("making the tables for rescan")
        for mb in self.sizes:
            pages = int(mb * MB_BUFFERS * SHARE)
            self.make_table(admin, f"m{mb}_index", pages)
            admin.rows(f"CREATE UNIQUE INDEX ON m{mb}_index (key)")
            for i in range(TABLES):
                self.make_table(admin, f"m{mb}_part{i}", pages // TABLES)

    def make_table(self, admin, name, pages):
        admin.rows("BEGIN")
        admin.rows(f"CREATE TABLE {name} (key int, padding text STORAGE"
                   " PLAIN)")
        admin.rows(f"INSERT INTO {name} SELECT i, repeat('x', 5000)"
                   f" FROM generate_series(1, {pages}) i")
        admin.rows("COMMIT")
        check_pages(admin, name, pages)

    def statements(self, way, mb):
        if way == "index":
            return [f"SELECT sum(length(padding)) FROM m{mb}_index"
                    " WHERE key > 0"]
        return [f"SELECT sum(length(padding)) FROM m{mb}_part{i}"
                for i in range(TABLES)]

    def read(self, session, way, mb):
        """Runs the statements; (blocks hit, blocks read) by their plans."""
        hit = read = 0
        for sql in self.statements(way, mb):
            lines = session.rows("EXPLAIN (ANALYZE, BUFFERS, TIMING OFF,"
                                 f" FORMAT JSON) {sql}")
            plan = json.loads("".join(line[0] for line in lines))[0]["Plan"]
            leaf = plan["Plans"][0]["Node Type"]
            if leaf != ("Index Scan" if way == "index" else "Seq Scan"):
                raise BenchError(f"planned as {leaf}: {sql}")
            hit += plan["Shared Hit Blocks"]
            read += plan["Shared Read Blocks"]
        return hit, read

    def sample(self, side, where, way, mb, round_):
        bench = self.bench
        bench.put_in_force(side)
        bench.empty_pool()
        session = bench.cluster.session("bench")
        for sql in SESSION if way == "index" else SESSION[2:]:
            session.rows(sql)
        session.rows(f"SET pg_sweep.numa_debug_node = {round_ % NODES}")
        first = self.read(session, way, mb)
        hit, read = self.read(session, way, mb)
        session.close()
        bench.cluster.sessions.remove(session)
        bench.verify(side)
        if first[1] < mb * MB_BUFFERS * SHARE * 0.98:
            raise BenchError(f"the first scan read only {first[1]} blocks: the"
                             " pool was not empty")
        bench.note(where, side, round_, {HITS: hit / (hit + read)})

    def measure(self):
        balance = {"pg_sweep.balance":
                   "off" if self.bench.args.no_balance else "on"}
        for mb in self.sizes:
            for writer, settings in WRITERS.items():
                self.bench.start_server(f"{mb}MB", max_connections=100,
                                        **settings, **balance)
                for way in ("index", "tables"):
                    where = f"{mb} MB, {way}, {writer}"
                    for round_ in self.bench.each_round(where, self.rounds):
                        for side in stats.rotated(self.sides, round_):
                            self.sample(side, where, way, mb, round_)
                self.bench.cluster.stop()


def check_pages(admin, table, wanted):
    found = admin.value(f"SELECT pg_relation_size('{table}')"
                        " / current_setting('block_size')::int")
    if found != str(wanted):
        raise BenchError(f"{wanted} rows made {found} pages")
