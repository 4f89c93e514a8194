"""Same decisions: a server with one process chooses the victims that the player
chooses, each of them. Needs "tools/server trace". PG_SWEEP_REPLAY_VICTIMS is how many
are compared at least under clock2q, and ten times as many as under the others.

The server runs in single-user mode, so there is no other process that could touch a
buffer. It begins with an empty pool, and records all that the choice depends on."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

from bench.lib import cluster, paths
from bench.lib.paths import BenchError
from bench.policies import play, record
from bench.policies import trace as formats

SERVER = paths.SERVERS / "trace"
WANTED = int(os.environ.get("PG_SWEEP_REPLAY_VICTIMS") or 50_000)
STRATEGIES = {"clock2q": WANTED, "batched": WANTED // 10, "stock": WANTED // 10}
BATCH = 16
ROWS = 60_000                   # 10 on a page: three times the pool
A_CYCLE = 20_000                # victims, at least
SETTINGS = {"shared_preload_libraries": "pg_sweep", "shared_buffers": "16MB",
            "pg_sweep.batch_size": BATCH, "full_page_writes": "off",
            "enable_hashjoin": "off", "enable_mergejoin": "off",
            "max_parallel_workers_per_gather": 0,
            "max_parallel_maintenance_workers": 0}

# One statement on a line: a line's end is the statement's.
TABLES = (
    "CREATE TABLE big (id int, other int, amount int DEFAULT 0, filler text)",
    "INSERT INTO big SELECT i, i::bigint * 7919 % %(rows)d, 0, repeat('x', 700)"
    " FROM generate_series(1, %(rows)d) i",
    "CREATE UNIQUE INDEX ON big (id)",
    "CREATE INDEX ON big (other)",
    "CREATE TABLE fresh (LIKE big)",
    "CREATE INDEX ON fresh (other)",
    "VACUUM ANALYZE big")
KEYS = ("(SELECT (%(rows)d * power(random(), 2))::int AS key FROM"
        " generate_series(1, {}) OFFSET 0) keys")
CYCLE = (
    # points, of which some are used more
    "SELECT sum(amount) FROM " + KEYS.format(20_000) + " JOIN big ON id = key",
    "UPDATE big SET amount = amount + 1 FROM " + KEYS.format(300)
    + " WHERE id = key",
    # ranges of two indexes: rows side by side, and all over the table
    "SELECT sum(amount) FROM " + KEYS.format(20)
    + " JOIN big ON id BETWEEN key AND key + 400",
    "SELECT sum(amount) FROM big WHERE other BETWEEN %(place)d AND"
    " %(place)d + 4000",
    # pages that stay pinned meanwhile
    "DO $$ DECLARE r record; BEGIN FOR r IN SELECT id FROM big WHERE"
    " other % 997 = 5 LOOP PERFORM sum(amount) FROM " + KEYS.format(60)
    + " JOIN big ON id = key; END LOOP; END $$",
    # extensions without a ring, and with one; freed buffers
    "INSERT INTO fresh SELECT i, (random() * 1e9)::int, 0, repeat('y', 400)"
    " FROM generate_series(1, 4000) i",
    "CREATE TABLE again AS SELECT * FROM big WHERE id < 9000",
    "CREATE INDEX ON again (other)",
    "SELECT count(*) FROM again",
    "DROP TABLE again",
    # rings
    "SELECT count(*) FROM big WHERE amount = 1",
    "VACUUM big",
    "CHECKPOINT")
# Not in each cycle: as large a part of the pool as makes a first lap
FREE_MANY = ("SELECT count(*) FROM fresh WHERE filler < 'z'", "TRUNCATE fresh")


def statements(cycles):
    yield "SELECT setseed(0.5)"
    for cycle in range(cycles):
        place = cycle * 4999 % (ROWS - 4000)
        for text in CYCLE + (FREE_MANY if cycle % 3 == 2 else ()):
            yield text.replace("%(rows)d", str(ROWS)).replace("%(place)d",
                                                              str(place))


# A number of victims is asked for where the server has just been built
@unittest.skipUnless("PG_SWEEP_REPLAY_VICTIMS" in os.environ
                     or (SERVER / "include/postgresql/server/storage"
                         / "page_trace.h").exists(),
                     "there is no recording server: run tools/server trace")
class Replay(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp())
        cls.server = paths.Server("trace", SERVER)
        cls.program = play.replayer(cls.server.config("includedir-server"))
        cls.cluster = cluster.Cluster("policies", "replay", cls.server, SETTINGS)
        cls.cluster.init()
        with open(cls.cluster.data / "postgresql.conf", "a") as conf:
            for name, value in {**cluster.QUIET, **SETTINGS}.items():
                conf.write(f"{name} = '{value}'\n")
        cls.single("stock", [text.replace("%(rows)d", str(ROWS))
                             for text in TABLES])
        cls.data = cls.cluster.data.with_name("made")
        shutil.move(cls.cluster.data, cls.data)

    @classmethod
    def tearDownClass(cls):
        cls.cluster.remove()
        shutil.rmtree(cls.folder)

    @classmethod
    def single(cls, strategy, lines):
        """What the server says to these statements."""
        done = subprocess.run(
            [cls.server.bin("postgres"), "--single", "-D", cls.cluster.data,
             "-c", f"pg_sweep.strategy={strategy}", "postgres"],
            input="".join(f"{line}\n" for line in lines),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode or any(word in done.stderr for word in
                                  ("ERROR", "FATAL", "PANIC")):
            raise BenchError(f"single-user mode failed:\n{done.stderr[-2000:]}")
        return done.stdout

    def record(self, strategy, cycles):
        """The file of a run on a fresh copy of the data."""
        folder = self.folder / f"{strategy}-{cycles}"
        folder.mkdir()
        shutil.rmtree(self.cluster.data, ignore_errors=True)
        shutil.copytree(self.data, self.cluster.data)
        with record.recording(folder, 1, events=True):
            self.single(strategy, statements(cycles))
        path, = folder.glob("*.trace")
        return path

    def test_same_victims(self):
        """All victims are the same, and what makes the choice hard has been
        there: pins, rings, freed buffers, several victims before a load, pages
        that return, a first lap, a length that changes."""
        for strategy, wanted in STRATEGIES.items():
            with self.subTest(strategy):
                path = self.record(strategy, 1 + wanted // A_CYCLE)
                found = play.replay(self.program, path, strategy, BATCH)
                path.unlink()
                print(f"{strategy}: {found}", file=sys.stderr)
                self.assertGreaterEqual(found["victims"], wanted)
                self.assertGreater(found["evictions"], wanted * 0.8)
                for what, least in (("hits", wanted), ("pinned_hits", 500),
                                    ("ring", 1000), ("freed", 300),
                                    ("passed_pins", 10)):
                    self.assertGreater(found[what], least, what)
                if strategy == "clock2q":
                    for what, least in (("at_once", 1), ("first_laps", 0),
                                        ("longer", 0), ("windows", wanted // 10),
                                        ("probation", wanted // 10),
                                        ("main", wanted // 10),
                                        ("returned_probation", wanted // 100),
                                        ("returned_main", wanted // 100)):
                        self.assertGreater(found[what], least, what)

    def test_notices(self):
        """Another victim is noticed, and so is another strategy, a lease of
        slots or a hit that was not, and a file that is cut."""
        path = self.record("clock2q", 1)
        records = np.fromfile(path, formats.RECORD, offset=formats.RECORDED.size)
        flags = records["flags"]
        by_hand = flags & (formats.VICTIM | formats.RING) == formats.VICTIM
        late = np.flatnonzero(by_hand)[6000]
        hit = np.flatnonzero(flags & ~formats.PINNED == formats.HIT)[20_000]
        unpin = np.flatnonzero(flags == formats.UNPINNED)[10_000]
        for words, place, field, value in (
                ("the server has chosen buffer 77,", late, "buffer", 77),
                ("was hit that was not in buffer", hit, "block", 2**31),
                ("was pinned|has chosen", unpin, "buffer", 2047),
                ("is damaged", -1, "hash", 5)):
            changed = records.copy()
            changed[place][field] = value
            self.refused(words, path, changed)
        self.refused("is not whole", path, records[:-1])
        for strategy in ("stock", "batched"):
            self.refused("the server has chosen", path, records, strategy)

    def refused(self, words, path, records, strategy="clock2q"):
        changed = path.with_suffix(".changed")
        with open(changed, "wb") as file:
            with open(path, "rb") as good:
                file.write(good.read(formats.RECORDED.size))
            file.write(records.tobytes())
        with self.subTest(words, strategy=strategy):
            self.assertRaisesRegex(BenchError, words, play.replay, self.program,
                                   changed, strategy, BATCH)


if __name__ == "__main__":
    unittest.main()
