"""What is played reaches the engine: an inline locked instruction would be free.

The engine sees an atomic operation only where the compiler calls it. So no
object has a locked instruction, and PostgreSQL's own lwlock.c needs the same
time as the patched one where both do the same."""

import re
import unittest

from sim.py import lwlock, machine
from sim.test import built

# Shared acquisitions of a free lock: both files do one compare-and-swap to
# acquire and one atomic subtraction to release. Instructions between differ.
TOLERANCE = 0.02
LOCKED = re.compile(r"\tlock\s|\txchg\s.*\(")


def setUpModule():
    built.prefix()


class Objects(unittest.TestCase):
    def test_no_locked_instruction_is_played(self):
        objects = built.objects()
        self.assertGreater(len(objects), 30)
        for path in objects:
            with self.subTest(path.name):
                self.assertIsNone(LOCKED.search(built.disassembly(path)))


class Unpatched(unittest.TestCase):
    def rate(self, policy):
        config = lwlock.config(machine.named("m6i-metal"), policy, 128,
                               shared_percent=100)
        return built.simulator().run(config).results["acquisitions_per_s"]

    def test_shared_as_fast_as_the_patched_file(self):
        self.assertAlmostEqual(self.rate("unpatched") / self.rate("none"), 1,
                               delta=TOLERANCE)
