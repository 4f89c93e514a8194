"""Records the page references of loads, on a server built by "tools/server trace".

Each load is some pgbench scripts on data that are made before. The server is started
for each load anew, and records from its start to its stop."""

import contextlib
import os
import shutil
from dataclasses import dataclass

from bench.lib import cluster, pgbench, report
from bench.lib.paths import BENCH, ROOT, BenchError

DATABASE = "pages"
FOLDER = BENCH / "policies-recorded"
TPCC_SQL = ROOT / "bench" / "policies" / "tpcc.sql"

ACCOUNTS = "\\set n 100000 * :scale\n"
UNIFORM = ACCOUNTS + """\\set aid random(1, :n)
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
"""
# permute(): the hot rows are all over the table
ZIPFIAN = ACCOUNTS + "\\set aid permute(random_zipfian(1, :n, 1.05), :n)\n"
READ = ZIPFIAN + "SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n"
WRITE = ZIPFIAN + ("UPDATE pgbench_accounts SET abalance = abalance + 1"
                   " WHERE aid = :aid;\n")
TPCB = ACCOUNTS + """\\set aid random(1, :n)
\\set bid random(1, :scale)
\\set tid random(1, 10 * :scale)
\\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO pgbench_history VALUES (:tid, :bid, :aid, :delta, now());
END;
"""
RANGE = ACCOUNTS + """\\set aid random(1, :n - 5000)
SELECT sum(abalance) FROM pgbench_accounts WHERE aid BETWEEN :aid AND :aid + 5000;
"""
JOIN = """\\set item random(1, 1000)
SELECT count(*), sum(abalance) FROM sale JOIN pgbench_accounts ON aid = account
 WHERE item = :item;
"""
BITMAP = """\\set item random(1, 990)
SELECT sum(amount) FROM sale WHERE item BETWEEN :item AND :item + 5;
"""
BULK = ACCOUNTS + """INSERT INTO fresh (item, account, amount)
SELECT random(1, 1000), random(1, :n), i FROM generate_series(1, 500) i;
"""
CHANGE = """\\set id random(1, 10000 * :scale)
UPDATE sale SET amount = amount + 1, item = 1 + item % 1000 WHERE id = :id;
"""
VACUUM = "VACUUM (SKIP_LOCKED) sale;\n"

# Rows are wide enough to need as many pages as real ones
SALES = """
CREATE TABLE sale (id int PRIMARY KEY, item int, account int, amount int,
                   filler char(60));
INSERT INTO sale SELECT i, random(1, 1000), random(1, 100000 * {scale}), 0, ''
  FROM generate_series(1, 10000 * {scale}) i;
CREATE INDEX ON sale (item);
CREATE TABLE fresh (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, item int,
                    account int, amount int, filler char(60) DEFAULT '');
CREATE INDEX ON fresh (account);
VACUUM ANALYZE;
"""


@dataclass(frozen=True)
class Load:
    title: str
    transactions: int           # of all clients, with --size 1
    scripts: tuple              # (text, weight)


LOADS = {
    "uniform": Load("pgbench, uniform", 200_000, ((UNIFORM, 1),)),
    "zipfian": Load("pgbench, zipfian 1.05, a fifth updates", 200_000,
                    ((READ, 4), (WRITE, 1))),
    "tpcb": Load("pgbench, TPC-B-like", 60_000, ((TPCB, 1),)),
    "tpcc": Load("TPC-C-like", 12_000, ()),
    "scans": Load("ranges, joins and bitmap scans beside zipfian reads", 30_000,
                  ((READ, 1000), (RANGE, 4), (JOIN, 8), (BITMAP, 4))),
    "bulk": Load("bulk load into indexes beside zipfian reads", 30_000,
                 ((READ, 200), (BULK, 1))),
    "vacuum": Load("updates and VACUUM beside zipfian reads", 60_000,
                   ((READ, 500), (CHANGE, 500), (VACUUM, 1))),
}
TPCC = (("SELECT new_order(:w)", 45), ("SELECT payment(:w)", 43),
        ("SELECT order_status(:w)", 4), ("SELECT delivery(:w)", 4),
        ("SELECT stock_level(:w)", 4))


@contextlib.contextmanager
def recording(folder, sample, events=False):
    """A server that is started here records."""
    settings = {"PG_PAGE_TRACE": str(folder), "PG_PAGE_TRACE_SAMPLE": str(sample),
                "PG_PAGE_TRACE_EVENTS": "1" if events else ""}
    os.environ.update(settings)
    try:
        yield
    finally:
        for variable in settings:
            del os.environ[variable]


class Recorder:
    """A server with data, for all loads."""

    def __init__(self, server, args):
        self.server = server
        self.args = args
        if not (server.prefix / "include/postgresql/server/storage"
                / "page_trace.h").exists():
            raise BenchError(f"{server.prefix} does not record: run tools/server"
                             " trace")
        self.cluster = cluster.Cluster(
            "policies", "trace", server,
            {"shared_buffers": args.shared_buffers,
             "max_connections": args.clients + 10})

    def prepare(self, loads):
        report.progress("making the data")
        self.cluster.init()
        self.cluster.start()
        pgbench.initialize(self.cluster, DATABASE, self.args.scale)
        self.psql(SALES.format(scale=self.args.scale))
        if "tpcc" in loads:
            self.psql(TPCC_SQL.read_text().replace(
                "{warehouses}", str(self.args.warehouses)))
        self.cluster.stop()

    def psql(self, text):
        script = self.cluster.dir / "script.sql"
        script.write_text(text)
        self.server.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-h",
                        self.cluster.sockets, "-U", "postgres", "-d", DATABASE,
                        "-f", script)

    def scripts(self, name):
        """pgbench's options for the scripts of a load."""
        texts = LOADS[name].scripts or [
            (f"\\set w random(1, {self.args.warehouses})\n{text};\n", weight)
            for text, weight in TPCC]
        for number, (text, weight) in enumerate(texts):
            path = self.cluster.dir / f"{name}-{number}.sql"
            path.write_text(text)
            yield from ("-f", f"{path}@{weight}")

    def record(self, name):
        """The folder with the records of a load."""
        folder = FOLDER / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        each = max(1, int(LOADS[name].transactions * self.args.size
                          / self.args.clients))
        report.progress(f"{name}: recording {each} transactions of each of"
                        f" {self.args.clients} clients")
        with recording(folder, self.args.sample):
            self.cluster.start()
        # -D scale: with scripts of our own pgbench does not look for it
        pgbench.run(self.server, self.cluster, DATABASE, "-c",
                    self.args.clients, "-j", 2, "-t", each, "-D",
                    f"scale={self.args.scale}", "--random-seed",
                    self.args.seed, *self.scripts(name))
        self.cluster.stop()
        return folder
