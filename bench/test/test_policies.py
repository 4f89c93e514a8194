"""The bench of replacement policies: formats, sampling, results, and the player
against slow models of the same rules."""

import json
import os
import random
import re
import struct
import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy as np

from bench.lib import plot
from bench.lib.paths import SERVERS, BenchError
from bench.policies import play, results
from bench.policies import trace as formats

HEADER = struct.Struct("<8sIIIIIIII")


def folder_of(test):
    folder = tempfile.TemporaryDirectory()
    test.addCleanup(folder.cleanup)
    return Path(folder.name)


def references(seed, count=4000, pages=200):
    """Pages of which some are used more, in bursts, beside a scan."""
    draw = random.Random(seed)
    found = []
    while len(found) < count:
        if draw.random() < 0.2:
            start = draw.randrange(pages)
            found += [(start + i) % pages for i in range(20)]
        else:
            found += [int(pages * draw.random() ** 3)] * draw.randrange(1, 4)
    return formats.numbered(np.array(found[:count], "<u4"))


class Formats(unittest.TestCase):
    def setUp(self):
        self.folder = folder_of(self)
        self.trace = references(1)

    def test_round_trips(self):
        for suffix in formats.WRITERS:
            path = self.folder / f"a{suffix}"
            formats.WRITERS[suffix](self.trace, path)
            found = formats.read(path)
            self.assertEqual(found.pages.tolist(), self.trace.pages.tolist())
            self.assertEqual(found.count, self.trace.count)
        formats.write_pages(formats.Trace(self.trace.pages, self.trace.count, 7),
                            path := self.folder / "b.pages")
        self.assertEqual(formats.read(path).sample, 7)

    def test_numbers(self):
        """Raw numbers stay if they have no gaps, and get new ones otherwise."""
        for given, wanted in (([2, 0, 1, 2], [2, 0, 1, 2]),
                              ([9, 4, 9, 7], [0, 1, 0, 2])):
            path = self.folder / "a.u32"
            np.array(given, "<u4").tofile(path)
            found = formats.read(path)
            self.assertEqual((found.pages.tolist(), found.count), (wanted, 3))

    def test_next(self):
        """What Belady looks at: the index of the next reference of the same."""
        path = self.folder / "a.oracleGeneral"
        formats.write_oracle(formats.numbered(np.array([5, 6, 5, 5], "<u4")),
                             path)
        self.assertEqual([struct.unpack("<IQIq", path.read_bytes()[i:i + 24])
                          for i in range(0, 96, 24)],
                         [(0, 1, 1, 2), (1, 2, 1, -1), (2, 1, 1, 3),
                          (3, 1, 1, -1)])

    def refused(self, words, path):
        self.assertRaisesRegex(BenchError, words, formats.read, path)

    def test_refused(self):
        good = self.folder / "good.pages"
        formats.write_pages(self.trace, good)
        data = good.read_bytes()
        for name, content, words in (
                ("cut.pages", data[:-3], "cut or too long"),
                ("long.pages", data + b"1234", "cut or too long"),
                ("short.pages", data[:20], "no .pages file"),
                ("empty.pages", b"", "no .pages file"),
                ("none.pages", formats.PAGES.pack(
                    formats.PAGES_MAGIC, 1, 1, 0, 0), "no references"),
                ("version.pages", data[:8] + b"\2" + data[9:], "version 2"),
                ("wrong.pages", data[:-4] + b"\xff" * 4, "damaged: page"),
                ("cut.u32", b"12345", "is cut"),
                ("empty.u32", b"", "no references"),
                ("cut.oracleGeneral", bytes(30), "is cut"),
                ("zero.oracleGeneral", bytes(48), "no oracleGeneral"),
                ("a.txt", b"1 2 3", "a trace is a folder")):
            with self.subTest(name):
                (self.folder / name).write_bytes(content)
                self.refused(words, self.folder / name)
        self.refused("No such file", self.folder / "nothing.pages")


class Recorded(unittest.TestCase):
    """Files like those of a recording server."""

    def setUp(self):
        self.folder = folder_of(self)

    def file(self, pid, records, sample=1, end=True, magic=b"PGPTRACE"):
        """records: (time, relation, block, flags)"""
        content = np.zeros(len(records) + end, formats.RECORD)
        for place, (when, relation, block, flags) in zip(content, records):
            place["when"], place["relation"] = when, relation
            place["block"], place["flags"] = block, flags
        if end:
            content[-1]["hash"] = len(records)
            content[-1]["flags"] = formats.END
        path = self.folder / f"{pid}.1.trace"
        path.write_bytes(HEADER.pack(magic, 2, 40, sample, pid, 16, 0, 0, 0)
                         + content.tobytes())
        return path

    def test_order(self):
        """By time over all processes; rings are left out and counted; the same
        block of another relation is another page."""
        self.file(11, [(3, 1, 7, 0), (9, 1, 7, formats.HIT)])
        self.file(12, [(5, 2, 7, 0), (6, 1, 8, formats.RING),
                       (8, 2, 7, formats.HIT)])
        found = formats.read(self.folder)
        self.assertEqual(found.pages.tolist(), [0, 1, 1, 0])
        self.assertEqual((found.count, found.left_out), (2, 1))

    def test_events(self):
        """What is no reference to a page is left out, and no ring."""
        self.file(11, [(3, 1, 7, formats.PINNED), (4, 0, 0, formats.UNPINNED),
                       (5, 0, 0, formats.VICTIM | formats.RING),
                       (6, 0, 0, formats.FREED), (7, 1, 8, 0)])
        found = formats.read(self.folder)
        self.assertEqual((found.pages.tolist(), found.left_out), ([0, 1], 0))

    def test_pages_differ(self):
        """Each part of a tag makes another page."""
        names = ("tablespace", "database", "relation", "block", "fork")
        records = np.zeros(len(names) + 1, formats.RECORD)
        for place, name in enumerate(names):
            records[place][name] = 1
        self.assertEqual(len(set(formats.page_keys(records).tolist())),
                         len(records))

    def test_refused(self):
        def refused(words):
            self.assertRaisesRegex(BenchError, words, formats.read, self.folder)

        refused("no file of a recording server")
        path = self.file(11, [(3, 1, 7, 0)])
        good = path.read_bytes()
        for content, words in (
                (good[:-1], "not whole: process 11"),
                (good[:-40], "not whole"), (good[:40], "not whole"),
                (b"", "not from a recording server"),
                (b"x" + good[1:], "not from a recording server"),
                (good[:8] + b"\1" + good[9:], "version 1"),
                (good[:40] + good[80:], "damaged: it says 1 records and has 0"),
                (good + good[40:], "damaged")):
            with self.subTest(words):
                path.write_bytes(content)
                refused(words)
        path.write_bytes(good)
        self.file(12, [], sample=4)
        refused("samples of 1 of 1 and 4")
        (self.folder / "12.1.trace").unlink()
        self.file(11, [])
        refused("no references")


class Results(unittest.TestCase):
    def made(self):
        made = results.Results()
        made.add_trace("a", "load A", references(1), 1200)
        for policy, misses in (("clock", 1000), ("clock2q", 850), ("ARC", 1021)):
            made.add("a", policy, f"program of {policy}", {5: misses, 40: misses})
        return made

    def test_files(self):
        folder = folder_of(self)
        made, path = self.made(), folder / "a.json"
        made.write(path)
        data = json.loads(path.read_text())
        self.assertEqual(data["misses"], made.misses)
        self.assertEqual(data["by"]["a"]["ARC"], "program of ARC")
        other = results.Results()
        other.add_trace("b", "load B", references(2), 1200)
        other.write(folder / "b.json")
        whole = results.merged([path, folder / "b.json"])
        self.assertEqual(list(whole.traces), ["a", "b"])
        other = results.Results()
        other.add_trace("a", "load B", references(2), 1200)
        other.write(folder / "b.json")
        self.assertRaisesRegex(BenchError, "another trace called a",
                               results.merged, [path, folder / "b.json"])
        path.write_text('{"traces": {}}')
        self.assertRaisesRegex(BenchError, "no results", results.read, path)

    def test_markdown(self):
        text = "\n".join(self.made().markdown())
        self.assertIn("| load A | 0.850 | 0.850 |", text)
        self.assertIn("| ARC | 1.021 | 1.021 |", text)
        self.assertIn("0 of 2 cells are above 1.02, the worst is 0.850;"
                      " 1 of 1 up to 20 % are at most 0.90.", text)
        self.assertIn("Played by: program of clock; program of clock2q; program"
                      " of ARC.", text)

    def test_version(self):
        """Whatever decides about the player's misses is part of its version."""
        included = {name for path in play.OWN for name in re.findall(
            r'#include "(sweep/.*|pool.h)"', (play.ROOT / path).read_text())}
        self.assertGreater(len(included), 3)
        self.assertEqual({Path(name).name for name in included},
                         {Path(path).name for path in play.OWN[1:]})
        self.assertRegex(play.version("clock2q"), r"^player [0-9a-f]{8}$")
        self.assertEqual(play.version("ARC"), "libcachesim 0.3.5")

    def test_picture(self):
        folder = folder_of(self)
        written = plot.write(folder / "p", list(self.made().panels()))
        self.assertIn("load A", [path for path in written
                                 if path.suffix == ".svg"][0].read_text())

    def test_published(self):
        """docs/results.md has the tables of the data file."""
        root = Path(__file__).parents[2]
        data = results.read(root / "bench/policies/results.json")
        document = (root / "docs/results.md").read_text()
        for line in data.markdown():
            self.assertIn(line, document)


# -- models: as slow and as plain as can be

class Clock:
    """PostgreSQL's clock, in the words of its documentation: buffers in a ring, a
    count for each, and a hand."""

    def __init__(self, buffers, most=5, first=1):
        self.ring = [[None, 0] for _ in range(buffers)]
        self.most, self.first = most, first
        self.hand = 0

    def refer(self, page):
        """Is it a miss?"""
        for buffer in self.ring:
            if buffer[0] == page:
                buffer[1] = min(buffer[1] + 1, self.most)
                return False
        while True:
            buffer = self.ring[self.hand]
            self.hand = (self.hand + 1) % len(self.ring)
            if buffer[1] == 0:
                buffer[:] = [page, self.first]
                return True
            buffer[1] -= 1


class Lru:
    def __init__(self, buffers):
        self.buffers = buffers
        self.pages = []

    def refer(self, page):
        miss = page not in self.pages
        if not miss:
            self.pages.remove(page)
        elif len(self.pages) == self.buffers:
            self.pages.pop(0)
        self.pages.append(page)
        return miss


def model_misses(model, trace, warm):
    found = [model.refer(page) for page in trace.pages.tolist()]
    return play.Misses(sum(found[:warm]), sum(found[warm:]))


def include():
    """A server's headers, which the player is compiled with."""
    pg_config = os.environ.get("PG_CONFIG", "pg_config")
    try:
        return subprocess.run([pg_config, "--includedir-server"], check=True,
                              stdout=subprocess.PIPE, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        raise unittest.SkipTest("there is no server: PG_CONFIG is not set")


class Player(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.program = play.player(include())

    def setUp(self):
        self.folder = folder_of(self)

    def play(self, trace, warm, *plays):
        path = self.folder / "a.pages"
        formats.write_pages(trace, path)
        return play.play_ours(self.program, path, warm, plays)

    def test_models(self):
        """The number of misses is that of the models, to the last one."""
        for seed in range(3):
            trace = references(seed)
            warm = 300 * seed
            for n in (1, 2, 7, 40, 150, trace.count, trace.count + 1):
                found = self.play(trace, warm, ("clock", n, 1, 1),
                                  ("clock:1:0", n, 1, 1),
                                  ("clock:7:1", n, 1, 1), ("lru", n, 1, 1))
                wanted = [model_misses(model, trace, warm) for model in
                          (Clock(n), Clock(n, 1, 0), Clock(n, 7, 1), Lru(n))]
                self.assertEqual(
                    [(each.warm, each.counted) for each in found],
                    [(each.warm, each.counted) for each in wanted], (seed, n))

    def test_leases(self):
        """Leases of one backend change nothing. Those of many change little,
        and another seed deals them otherwise."""
        trace = references(1, 40_000, 2000)
        one, alone, eight, again, other = self.play(
            trace, 0, *(("clock", 400, 1, 1), ("batched", 400, 1, 1),
                        ("batched", 400, 8, 1), ("batched", 400, 8, 1),
                        ("batched", 400, 8, 2)))
        self.assertEqual(one, alone)
        self.assertEqual(eight, again)
        self.assertNotEqual(eight, other)
        self.assertNotEqual(eight, one)
        self.assertAlmostEqual(eight.counted / one.counted, 1, delta=0.03)

    def test_clock2q(self):
        """It is the rule: pages that are used once do not drive out others. And
        a pool that has room for all misses each page once."""
        draw = random.Random(7)
        found = []
        for number in range(60_000):
            found.append(draw.randrange(500) if number % 2
                         else 1000 + number // 2 % 20_000)
        trace = formats.numbered(np.array(found, "<u4"))
        clock, ours, eight = self.play(
            trace, 20_000, ("clock", 800, 1, 1), ("clock2q", 800, 1, 1),
            ("clock2q", 800, 8, 1))
        self.assertLess(ours.counted, 0.9 * clock.counted)
        self.assertAlmostEqual(eight.counted / ours.counted, 1, delta=0.03)
        trace = references(3)
        whole, = self.play(trace, 0, ("clock2q", 2 * trace.count, 1, 1))
        self.assertEqual(whole.counted, trace.count)

    def test_refused(self):
        good = self.folder / "good.pages"
        formats.write_pages(references(1), good)
        data = good.read_bytes()
        bad = self.folder / "bad.pages"
        for content, words in (
                (data[:-1], "is cut"), (data + b"1", "goes on"),
                (data[:30], "no .pages file"), (b"", "no .pages file"),
                (data[:8] + b"\3" + data[9:], "version 3"),
                (formats.PAGES.pack(formats.PAGES_MAGIC, 1, 1, 0, 0),
                 "no references"),
                (data[:-4] + b"\xff" * 4, "is page 4294967295 of")):
            with self.subTest(words):
                bad.write_bytes(content)
                self.assertRaisesRegex(BenchError, words, play.play_ours,
                                       self.program, bad, 0,
                                       [("clock", 9, 1, 1)])
        for given, words in (
                (("fifo", 9, 1, 1), 'no policy "fifo"'),
                (("clock", 0, 1, 1), "a number of 1 to"),
                (("clock", 9, 1025, 1), "a number of 1 to 1024"),
                (("clock", 9, 1, 0), "a number of 1 to"),
                (("clock", 9, 1), "at \"\" a number"),
                (("clock", 9, 1, 1, 1), "is too much"),
                (("clock:3:4", 9, 1, 1), "want clock:MAX:FIRST")):
            with self.subTest(words):
                self.assertRaisesRegex(BenchError, words, play.play_ours,
                                       self.program, good, 0, [given])
        self.assertRaisesRegex(BenchError, "a number of 0 to", play.play_ours,
                               self.program, good, 10**9, [("clock", 9, 1, 1)])


class Patch(unittest.TestCase):
    def test_fits(self):
        """trace.patch fits the series as it is, without fuzz."""
        source = SERVERS / "src-patched"
        if not source.exists():
            self.skipTest("there is no patched source: run tools/server")
        done = subprocess.run(
            ["patch", "-d", source, "-p1", "-F0", "-f", "--dry-run", "-i",
             play.HERE / "trace.patch"], stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertNotIn("fuzz", done.stdout)


class Made(unittest.TestCase):
    def test_made(self):
        """Each made trace is made, again the same, and otherwise with another
        seed; its pages have no gaps."""
        program = play.compile_c("made.c", libraries=("-lm",))
        folder = folder_of(self)
        names = [line.split()[0] for line in play.run([program]).splitlines()]
        self.assertGreater(len(names), 15)
        for name in names:
            with self.subTest(name):
                made = []
                for number, seed in enumerate((0, 0, 1)):
                    path = folder / f"{number}.u32"
                    play.run([program, name, seed, 30_000, path])
                    made.append(path.read_bytes())
                self.assertEqual(made[0], made[1])
                self.assertNotEqual(made[0], made[2])
                trace = formats.read(path)
                self.assertEqual(len(trace), 30_000)
                self.assertEqual(trace.pages.tobytes(), made[2])
                self.assertGreater(trace.count, 1000)
        self.assertRaisesRegex(BenchError, "no load", play.run,
                               [program, "none", 0, 1000, folder / "x.u32"])


class Program(unittest.TestCase):
    """bench/run policies itself"""

    def setUp(self):
        self.folder = folder_of(self)
        self.trace = self.folder / "a.u32"
        references(1).pages.tofile(self.trace)

    def run_it(self, *options):
        root = Path(__file__).parents[2]
        done = subprocess.run(
            [root / "bench/run", "policies", *map(str, options)],
            env={**os.environ, "SWEEP_BENCH_DIR": str(self.folder)},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertNotIn("Traceback", done.stdout)
        return done.returncode, done.stdout

    def test_plays(self):
        prefix = Path(include()).parents[2]
        status, said = self.run_it(
            "--server", prefix, "--trace", self.trace, "--pools", 10, 50,
            "--policies", "clock2q", "clock2q-8")
        self.assertEqual(status, 0, said)
        data = results.read(self.folder / "policies.json")
        self.assertEqual(list(data.misses["a"]),
                         ["clock", "clock2q", "clock2q-8"])
        self.assertIn("| a | ", said)
        self.assertTrue((self.folder / "policies.png").exists())

    def test_converts(self):
        target = self.folder / "b.oracleGeneral"
        status, said = self.run_it("--convert", self.trace, target)
        self.assertEqual(status, 0, said)
        self.assertEqual(formats.read(target).pages.tolist(),
                         references(1).pages.tolist())

    def test_refused(self):
        for words, *options in (
                ("writes .pages and .oracleGeneral", "--convert", self.trace,
                 self.folder / "b.txt"),
                ("No such file", "--convert", self.folder / "none.u32",
                 self.folder / "b.pages"),
                ("less than 100", "--warm", 100),
                ("is missing", "--server", "/nowhere", "--policies", "clock"),
                ("invalid choice: 'CLOCK-Pro'", "--policies", "CLOCK-Pro")):
            with self.subTest(words):
                status, said = self.run_it(*options)
                self.assertNotEqual(status, 0)
                self.assertIn(words, said)


class Others(unittest.TestCase):
    """libcachesim is the oracle for the player, and the reverse."""

    @classmethod
    def setUpClass(cls):
        cls.program = play.player(include())
        try:
            cls.python = play.have_others()
        except BenchError as error:
            raise unittest.SkipTest(str(error).splitlines()[0])

    def test_same_misses(self):
        trace = references(5, 30_000, 3000)
        warm = 9000
        ours = [("lru", "LRU", {}), *((spec, "Clock", settings)
                                      for spec, settings in play.CLOCKS.values())]
        pools = (30, 300, 1500)
        with tempfile.TemporaryDirectory() as folder:
            pages, oracle = (Path(folder, f"a{suffix}")
                             for suffix in (".pages", ".oracleGeneral"))
            formats.write_pages(trace, pages)
            formats.write_oracle(trace, oracle)
            found = play.play_ours(self.program, pages, warm, [
                (spec, n, 1, 1) for spec, _, _ in ours for n in pools])
            wanted = [(name, n, settings) for _, name, settings in ours
                      for n in pools]
            # all others at least run, and none is better than the optimum
            others = [(name, 300, {}) for name in play.OTHERS.values()]
            said = play.play_others(self.python, oracle, warm, len(trace),
                                    wanted + others)
            self.assertEqual([(each.warm, each.counted) for each in found],
                             [(each.warm, each.counted)
                              for each in said[:len(found)]])
            counted = {name: each.counted for (name, _, _), each
                       in zip(others, said[len(found):], strict=True)}
            self.assertEqual(min(counted, key=counted.get), "Belady")
