"""The run: blocks of slices, each setting once per block in random order."""

import random
import time
from dataclasses import dataclass, field

from ab.errors import UserError

from ab import metrics
from ab.interrupts import now
from ab.switch import Interference

# Between two readings of an application's transactions
LOOK_SECONDS = 0.1
# Blocks that may be spoilt by other sessions that switch what is compared
SPOILT_MOST = 3


@dataclass
class Slice:
    block: int                  # -1: the warm-up
    place: int
    setting: str
    begin: float                # of now(), without what is thrown away
    end: float
    values: dict                # of metrics.complete()
    span: object = None         # of pgbench's log
    used: bool = True
    note: str = ""


@dataclass
class Plan:
    settings: list
    blocks: int
    slice_seconds: float
    settle_seconds: float
    seed: int

    def order(self, block):
        """The same for the same seed, whatever happens in other blocks."""
        order = list(self.settings)
        random.Random(f"{self.seed}/{block}").shuffle(order)
        return order

    def seconds(self):
        return (self.blocks + 1) * len(self.settings) * self.slice_seconds


@dataclass
class Run:
    plan: Plan
    session: object
    switcher: object
    counters: metrics.Counters
    clocks: object
    load: object                # None: attached
    interrupts: object
    progress: object
    slices: list = field(default_factory=list)
    spoilt: list = field(default_factory=list)

    def measure(self):
        self.progress.begin(self.plan)
        block = -1
        while block < self.plan.blocks:
            slices = self._block(block)
            if slices is not None:
                block += 1
        if self.load:
            self.load.stop()
        self._complete()

    def _block(self, number):
        """None: another session interfered, and the block must be repeated."""
        done = []
        again = len(self.spoilt)
        order = self.plan.order(number if not again else f"{number}+{again}")
        for place, setting in enumerate(order):
            self.progress.show(number, place, setting.name)
            try:
                slice_ = self._slice(number, place, setting)
            except Interference as error:
                self._spoilt(number, error)
                for other in done:
                    other.used = False
                    other.note = "block spoilt"
                return None
            done.append(slice_)
            slice_.used = number >= 0
            self.slices.append(slice_)
        return done

    def _spoilt(self, number, error):
        when = time.strftime("%H:%M:%S")
        self.spoilt.append(f"{when}: {error}")
        self.progress.note(f"block {number + 1} is thrown away, as another"
                           f" session has interfered: {error}")
        if len(self.spoilt) >= SPOILT_MOST:
            raise UserError("another session interferes with what is compared,"
                            f" {len(self.spoilt)} times by now: "
                            + " | ".join(self.spoilt))

    def _slice(self, number, place, setting):
        in_force = self.switcher.apply(setting)
        if self.load:
            # what the slice before has left, before the time of this one
            # begins
            self.load.check()
            self.load.read()
        self.interrupts.sleep(self.plan.settle_seconds)
        before = self.counters.read()
        cpu_before = self.clocks and self.clocks.read()
        begun = now()
        # of the same length in each slice, however long the switch took
        looks = self._wait(begun + self.plan.slice_seconds
                           - self.plan.settle_seconds)
        ended = now()
        cpu_after = self.clocks and self.clocks.read()
        after = self.counters.read()
        self.switcher.still(in_force)
        if metrics.were_reset(before, after):
            raise Interference("statistics were reset")
        values = metrics.of_counters(before, after)
        values["tps"] = metrics.rate(looks) if looks else None
        if cpu_before and cpu_after:
            values["cpu_ns_per_second"] = (
                (cpu_after[0] - cpu_before[0])
                / (cpu_after[1] - cpu_before[1]))
        slice_ = Slice(number, place, setting.name, begun, ended, values)
        if self.load:
            slice_.span = self.load.span(begun, ended)
        return slice_

    def _wait(self, until):
        """Returns readings of an application's transactions; those of pgbench
        are in its log."""
        looks = []
        while not self.load and now() < until - LOOK_SECONDS:
            looks.append(self.counters.look())
            self.interrupts.sleep(LOOK_SECONDS)
        self.interrupts.sleep_until(until)
        if not self.load:
            looks.append(self.counters.look())
        return looks

    def _complete(self):
        for slice_ in self.slices:
            values = slice_.values
            if slice_.span is not None:
                values |= slice_.span.result
            metrics.complete(values)

    def blocks(self):
        """For analyse(): the blocks of which all slices count."""
        result = {}
        for slice_ in self.slices:
            if slice_.used:
                result.setdefault(slice_.block, {})[slice_.setting] = \
                    slice_.values
        return [block for block in result.values()
                if len(block) == len(self.plan.settings)]
