"""The run itself: blocks of slices, each setting once a block in random order."""

import random
import time
from dataclasses import dataclass, field

from ab.errors import UserError

from ab import metrics
from ab.interrupts import now
from ab.switch import SomebodyElse

# Between two looks at what an application has done
LOOK_SECONDS = 0.1
# Blocks that others may spoil by switching what we compare
SPOILT_MOST = 3


@dataclass
class Slice:
    block: int                  # -1: the warm-up
    place: int
    setting: str
    begin: float                # by now(), after what is thrown away
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
        """The same for a seed, whatever happened in other blocks."""
        order = list(self.settings)
        random.Random(f"{self.seed}/{block}").shuffle(order)
        return order

    def seconds(self):
        return ((self.blocks + 1) * len(self.settings) * self.slice_seconds)


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
        """None: somebody else has switched, and the block is to be repeated."""
        done = []
        again = len(self.spoilt)
        order = self.plan.order(number if not again else f"{number}+{again}")
        for place, setting in enumerate(order):
            self.progress.show(number, place, setting.name)
            try:
                slice_ = self._slice(number, place, setting)
            except SomebodyElse as error:
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
        self.progress.note(f"block {number + 1} is thrown away, as somebody else"
                           f" has interfered: {error}")
        if len(self.spoilt) >= SPOILT_MOST:
            raise UserError("somebody else interferes with what is compared,"
                             f" {len(self.spoilt)} times by now: "
                             + " | ".join(self.spoilt))

    def _slice(self, number, place, setting):
        in_force = self.switcher.apply(setting)
        if self.load:
            # of the slice before, and before the time of this one begins
            self.load.check()
            self.load.read()
        self.interrupts.sleep(self.plan.settle_seconds)
        before = self.counters.read()
        cpu_before = self.clocks and self.clocks.read()
        begun = now()
        # as long in every slice, whatever the switch has taken
        looks = self._wait(begun + self.plan.slice_seconds
                           - self.plan.settle_seconds)
        ended = now()
        cpu_after = self.clocks and self.clocks.read()
        after = self.counters.read()
        self.switcher.still(in_force)
        if metrics.were_reset(before, after):
            raise SomebodyElse("statistics were reset")
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
        """Returns looks at an application's transactions; a load of ours is read
        from its log."""
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
        """For analyse(): those of which all slices count."""
        result = {}
        for slice_ in self.slices:
            if slice_.used:
                result.setdefault(slice_.block, {})[slice_.setting] = \
                    slice_.values
        return [block for block in result.values()
                if len(block) == len(self.plan.settings)]
