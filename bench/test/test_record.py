"""The recording server: each look-up is recorded, once, and says what it was. A
sample has all references of a page, or none. Needs "tools/server trace"."""

import os
import shutil
import signal
import tempfile
import unittest
from collections import Counter
from pathlib import Path

import numpy as np

from bench.lib import cluster, paths
from bench.lib.paths import BenchError
from bench.policies import record
from bench.policies import trace as formats

SERVER = paths.SERVERS / "trace"
HEADERS = SERVER / "include/postgresql/server/storage/page_trace.h"

# 500 pages, more than the 128 buffers have room for, and an index
TABLES = (
    "CREATE TABLE large AS SELECT i, repeat('x', 700) AS filler"
    " FROM generate_series(1, 5000) i",
    "CREATE INDEX large_i ON large (i)",
    "CREATE TABLE small AS SELECT i FROM generate_series(1, 1000) i",
    "VACUUM ANALYZE")
LOAD = (
    "SET enable_seqscan = off",
    "SET enable_bitmapscan = off",
    "SELECT count(filler) FROM large WHERE i BETWEEN 100 AND 3000",
    "SELECT count(filler) FROM large WHERE i BETWEEN 2500 AND 2600",
    "RESET enable_seqscan",
    "SELECT sum(i) FROM small",
    "SELECT count(filler) FROM large")


def murmur(values):
    """murmurhash32() of PostgreSQL"""
    with np.errstate(over="ignore"):
        values = values.astype("<u4")
        values ^= values >> np.uint32(16)
        values *= np.uint32(0x85ebca6b)
        values ^= values >> np.uint32(13)
        values *= np.uint32(0xc2b2ae35)
        return values ^ values >> np.uint32(16)


@unittest.skipUnless(HEADERS.exists(), "there is no recording server: run"
                     " tools/server trace")
class Recording(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp())
        cls.cluster = cluster.Cluster(
            "policies", "test", paths.Server("trace", SERVER),
            {"shared_buffers": "1MB", "max_connections": 10,
             "max_parallel_workers_per_gather": 0})
        cls.cluster.init()
        cls.cluster.start()
        session = cls.cluster.session()
        for statement in TABLES:
            session.rows(statement)
        cls.oids = {name: int(session.value(
            f"SELECT pg_relation_filenode('{name}')"))
            for name in ("large", "large_i", "small")}
        cls.cluster.stop()
        # the first reading may set hints
        cls.record("first", 1)
        _, cls.all = cls.record("all", 1)

    @classmethod
    def tearDownClass(cls):
        cls.cluster.remove()
        shutil.rmtree(cls.folder)

    @classmethod
    def record(cls, name, sample, load=LOAD):
        """(sample, records) of a load by one session on a fresh server."""
        folder = cls.folder / name
        folder.mkdir()
        with record.recording(folder, sample):
            cls.cluster.start()
        session = cls.cluster.session()
        for statement in load:
            session.rows(statement)
        cls.cluster.stop()
        return formats.read_folder(folder)

    def of(self, relation, records=None):
        records = self.all if records is None else records
        return records[records["relation"] == self.oids[relation]]

    def test_counts(self):
        """A look-up for each page that the plans need."""
        pages = 1 + int(self.of("large")["block"].max())
        self.assertGreater(pages, 400)
        ring = self.of("large")[self.of("large")["flags"] & formats.RING != 0]
        # a table of more than a fourth of the pool is scanned by a ring
        self.assertEqual(Counter(ring["block"].tolist()),
                         Counter(range(pages)))
        self.assertFalse(np.any(self.of("small")["flags"] & formats.RING))
        small = Counter(self.of("small")["block"].tolist())
        self.assertEqual(set(small.values()), {1})
        # two index scans: 2901 rows of 11 on a page, and 101
        by_index = Counter(self.of("large")[
            self.of("large")["flags"] & formats.RING == 0]["block"].tolist())
        self.assertGreaterEqual(len(by_index), 2901 // 11)
        self.assertGreater(len(self.of("large_i")), 4)

    def test_hits_and_buffers(self):
        """What is hit was the last in that buffer; what misses was in none. By
        one process, and of all relations."""
        where, holds = {}, {}
        keys = formats.page_keys(self.all)
        hits = 0
        for key, place in zip(keys.tolist(), self.all):
            buffer = int(place["buffer"])
            if place["flags"] & formats.HIT:
                hits += 1
                self.assertEqual(where.get(key), buffer)
            else:
                where.pop(holds.get(buffer), None)
                where[key], holds[buffer] = buffer, key
        self.assertGreater(hits, 100)
        self.assertLess(hits, len(self.all) - 400)
        self.assertLess(int(self.all["buffer"].max()), 128)

    def test_extension(self):
        """Each page of a new table is there, once, as an extension."""
        _, records = self.record("extended", 1, (
            "CREATE TABLE fresh AS SELECT i FROM generate_series(1, 20000) i",))
        new = records[(records["flags"] & formats.EXTEND != 0)
                      & (records["fork"] == 0)]
        relation, count = Counter(new["relation"].tolist()).most_common(1)[0]
        blocks = new[new["relation"] == relation]["block"].tolist()
        self.assertGreater(count, 80)
        self.assertEqual(sorted(blocks), list(range(count)))

    def test_sample(self):
        """1 of K pages: exactly those that the hash chooses, with as many
        references as in a recording of all."""
        for sample in (2, 5):
            found, some = self.record(f"sample{sample}", sample)
            self.assertEqual(found, sample)
            for relation in self.oids:
                whole = self.of(relation)
                chosen = whole[murmur(whole["hash"]) < (2**32 - 1) // sample]
                self.assertEqual(
                    self.of(relation, some)["block"].tolist(),
                    chosen["block"].tolist())
            large = len(set(self.of("large")["block"].tolist()))
            share = len(set(self.of("large", some)["block"].tolist())) / large
            self.assertAlmostEqual(share, 1 / sample, delta=0.1)

    def test_off(self):
        """A folder that is not there is no reason for a server to fail; its
        log says so."""
        with record.recording(self.folder / "nowhere", 1):
            self.cluster.start()
        self.cluster.session().rows("SELECT count(*) FROM small")
        self.cluster.stop()
        self.assertRaisesRegex(BenchError, "no file of a recording server",
                               formats.read_folder, self.folder / "nowhere")
        self.assertRegex(self.cluster.log.read_text(), "page trace of process"
                         r" \d+: could not create .*nowhere")

    def test_killed(self):
        """The file of a process that was killed is not taken for a whole one."""
        folder = self.folder / "killed"
        folder.mkdir()
        with record.recording(folder, 1):
            self.cluster.start()
        session = self.cluster.session()
        session.rows("SELECT count(*) FROM large")
        os.kill(int(session.value("SELECT pg_backend_pid()")), signal.SIGKILL)
        self.cluster.stop("immediate")
        self.assertRaisesRegex(BenchError, "is not whole", formats.read_folder,
                               folder)


if __name__ == "__main__":
    unittest.main()
