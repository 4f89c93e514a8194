"""Measures this machine and writes its machine file.

Each figure is the median of samples that were taken in turns with all others,
so that a disturbance of some seconds spoils none of them alone; smallest and
largest are written beside it.

What two CPUs have to do with each other may change between two samples, and a
median of two machines' figures is no machine's. So whatever takes two neighbours
is measured between two looks at their turn, is taken again if these differ, and else
belongs to the state that has such turns: each state gets its own values."""

import os
import platform
import subprocess
from datetime import datetime, timezone
from pathlib import Path
from statistics import median

from bench.lib import report, stats
from bench.lib.paths import BENCH, BenchError

from . import machine, states, topology

SOURCE = Path(__file__).resolve().parents[1] / "calibrate"
FLAGS = ("-O2", "-Wall", "-Wextra", "-Wno-unused-parameter",
         "-Wno-missing-field-initializers", "-pthread")

PAIRS = 12                      # of a distance: enough to see how it spreads
NODE_PAIRS = 4                  # of nodes, for memory latencies

LEAST_PS = 100                  # of a latency
LEAST_SAMPLES = 3               # of each measurement, to speak of a state
TRIES = 20                      # for a sample between two looks that agree

# Two CPUs that slow each other down by so much are threads of one core: in a
# loop that touches lines of its own only, two cores do not.
THREADS_PERCENT = 115

BUSY = 0.8                      # load average a CPU, our own included, beyond
                                # which the others' shows

# What a machine of one CPU cannot be asked: it has nobody to wait for. Nor, as
# for the latency, what one of a single core can.
WITHOUT_OTHERS = {"latency_group": 25_000, "wakeup_ps": 20_000_000,
                  "wake_call_ps": 2_000_000, "keep_ps": 20_000}

# Machine file's key: measurement on one CPU.
ALONE = {"load_hit": "load_hit", "store_hit": "store_hit",
         "rmw_hit": "xadd_hit", "cas_hit": "cas_hit", "pause": "pause",
         "instruction_ps": "instruction", "sleep_call_ps": "sleep_call",
         "switch_ps": "switch", "timeslice_ps": "timeslice",
         "copy_bytes_per_s": "copy"}


# What two neighbours are asked, besides the turn.
OF_NEIGHBOURS = {"contended_xadd": "contended_xadd",
                 "both": "transfer_both", "together_percent": "together"}
# What takes long, and is the same in all states.
SLOW = ("memory", "copy", "timeslice", "switch", "wake_up", "wake_call",
        "sleep_call", "pause")


class Calibration:
    def __init__(self):
        self.cpus = topology.read()
        self.pairs = topology.pairs(self.cpus, PAIRS)
        self.samples = {}       # key: [(turn or None, value)]
        self.turns = []         # of neighbours, all looks
        self.unsteady = 0       # samples between two looks that differed
        self.rounds = 0
        self.program = None

    def build(self):
        folder = BENCH / "sim" / "calibrate"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BenchError(f"cannot create {folder}: {error.strerror}")
        self.program = folder / "calibrate"
        command = ["gcc", *FLAGS, "-o", self.program,
                   *sorted(SOURCE.glob("*.c"))]
        try:
            done = subprocess.run(command, capture_output=True, text=True)
        except FileNotFoundError:
            raise BenchError("gcc is missing: tools/deps installs it")
        if done.returncode != 0:
            raise BenchError(f"calibrate does not compile:\n{done.stderr}")

    def ask(self, measurement, *cpus):
        done = subprocess.run([self.program, measurement, *map(str, cpus)],
                              capture_output=True, text=True)
        if done.returncode != 0:
            raise BenchError(done.stderr.strip() or
                             f"calibrate {measurement} failed"
                             f" ({done.returncode})")
        return float(done.stdout)

    def sample(self, key, measurement, *cpus):
        turn = None
        if key in self.of_neighbours():
            turn, value = self.between_looks(measurement, *cpus)
        else:
            value = self.ask(measurement, *cpus)
        if key != "contended_xadd" or value > 0:    # else never at once
            self.samples.setdefault(key, []).append((turn, value))

    def between_looks(self, measurement, *cpus):
        """(turn, value) of a sample during which the turn did not change."""
        for _ in range(TRIES):
            before = self.ask("ping_pong", *cpus)
            value = self.ask(measurement, *cpus)
            after = self.ask("ping_pong", *cpus)
            self.turns += [before, after]
            if states.same(before, after):
                return (before + after) / 2, value
            self.unsteady += 1
        raise BenchError(f"{TRIES} times running, a turn between CPUs"
                         f" {' and '.join(map(str, cpus))} took another time"
                         f" before {measurement} than after it: the machine is"
                         " too busy, or its CPUs change places too often")

    def look(self):
        """(turn, together_percent) of two neighbours at this moment; None
        where there are none."""
        if self.nearest() is None:
            return None
        cpus = self.pairs[self.nearest()][0]
        return self.ask("ping_pong", *cpus), self.ask("together", *cpus)

    def jobs(self, round_):
        """Every measurement once: (key, measurement, CPUs)."""
        numbers = [cpu.number for cpu in self.cpus]
        here = numbers[round_ % len(numbers)]
        yield "lease_spread_percent", "lease_spread", (here,)
        for key, measurement in ALONE.items():
            yield key, measurement, (here, here)[:2 if measurement in (
                "sleep_call",) else 1]
        for where, found in self.pairs.items():
            a, b = found[round_ % len(found)]
            if (round_ // len(found)) % 2:
                a, b = b, a
            yield f"load_{where}", "transfer_load", (a, b)
            yield f"xadd_{where}", "transfer_xadd", (a, b)
            yield f"ping_pong_{where}", "ping_pong", (a, b)
            if where == self.nearest():
                for key, measurement in OF_NEIGHBOURS.items():
                    yield key, measurement, (a, b)
                yield "wakeup_ps", "wake_up", (a, b)
                yield "wake_call_ps", "wake_call", (a, b)
        for key, (reader, owner) in self.memory_pairs(round_).items():
            yield key, "memory", (reader, owner)
        node = self.cpus[round_ % len(self.cpus)].node
        yield ("bandwidth_bytes_per_s", "copy",
               [cpu.number for cpu in self.one_of_each_core()
                if cpu.node == node])

    def one_of_each_core(self):
        return list({cpu.core: cpu for cpu in self.cpus}.values())

    def nearest(self):
        """The nearest distance between two cores; between two threads, if there
        is one core only; None with one CPU."""
        for where in (*topology.DISTANCES[1:], topology.SAME_CORE):
            if where in self.pairs:
                return where
        return None

    def of_neighbours(self):
        """Keys of what two neighbours are asked. Not of what others are: two
        distances may end alike (socket, other_socket)."""
        where = self.nearest()
        if where is None:
            return ()
        return (*OF_NEIGHBOURS, f"load_{where}", f"xadd_{where}",
                f"ping_pong_{where}")

    def memory_pairs(self, round_):
        """A CPU, and one on whose node the memory is, of each distance."""
        cpu = self.cpus[round_ % len(self.cpus)]
        found = {"memory_local": (cpu.number, cpu.number)}
        for where, key in ((topology.SOCKET, "memory_socket"),
                           (topology.OTHER_SOCKET, "memory_other")):
            if where in self.pairs:
                some = self.pairs[where]
                found[key] = some[round_ % len(some)]
        return found

    def measure(self, rounds, quick=False):
        """More samples, beside those that there are. quick: without what takes
        long."""
        for _ in range(rounds):
            if not quick:
                report.progress(f"round {self.rounds + 1}")
            for key, measurement, cpus in stats.rotated(
                    list(self.jobs(self.rounds)), self.rounds):
                if not quick or measurement not in SLOW:
                    self.sample(key, measurement, *cpus)
            self.rounds += 1

    # ---- states ----

    def states(self):
        """The turns of those that there are enough samples of, the most
        frequent first; if there are of none, of the most frequent; [None] with
        one CPU."""
        if self.nearest() is None:
            return [None]
        every = states.middles(self.turns)
        return [turn for turn in every if self.known(turn)] or every[:1]

    def known(self, state):
        """Are there enough samples to speak of it?"""
        return all(len(self.only(key, state)) >= LEAST_SAMPLES
                   for key in self.of_neighbours())

    def only(self, key, state):
        """Samples of a key in a state, or of any if states do not matter."""
        every = states.middles(self.turns)
        return [value for turn, value in self.samples.get(key, [])
                if turn is None or states.which(turn, every) == state]

    def of(self, key, state):
        """The same; all there are, if there are none in this state."""
        return self.only(key, state) or [
            value for _, value in self.samples.get(key, [])]

    def at(self, state):
        """What was measured in it."""
        return State(self, state)


class State:
    """Values of the machine in one of its states."""

    def __init__(self, calibration, turn):
        self.turn = turn
        self.cpus = calibration.cpus
        self.pairs = calibration.pairs
        self.nearest = calibration.nearest
        self.samples = {key: calibration.of(key, turn)
                        for key in calibration.samples}

    # ---- the result ----

    def measured(self, key):
        """(value, source) of what has been measured."""
        values = self.samples[key]
        middle = round(median(values))
        return [middle, f"measured: median of {len(values)},"
                        f" {min(values):.0f}..{max(values):.0f}"]

    def values(self):
        found, note = topology.shape(self.cpus)
        values = {key: [number, "measured: /sys"]
                  for key, number in found.items()}
        for key in ALONE:
            values[key] = self.measured(key)
        if values["instruction_ps"][0] < 1:
            values["instruction_ps"] = [1, "measured: nothing, all of it is"
                                           " hidden behind locked"
                                           " instructions"]
        values["keep_ps"] = self.keep(values)
        for where in topology.DISTANCES:
            values[f"latency_{where}"] = self.latency(where, values)
        values["memory_local"] = self.measured("memory_local")
        for key in ("memory_socket", "memory_other"):
            values[key] = (self.measured(key) if key in self.samples
                           else [values["memory_local"][0],
                                 "assumed: like memory_local, this machine"
                                 " has no other node there"])
        for key in ("wakeup_ps", "wake_call_ps", "bandwidth_bytes_per_s"):
            if key in self.samples:
                values[key] = self.measured(key)
        values["device_bytes_per_s"] = [0, "assumed: no limit; not measured"]
        values["llc_bytes"] = [topology.last_cache(self.cpus[0].number)[1],
                               "measured: /sys"]
        what = "CPU" if len(self.cpus) == 1 else "core"
        for key, number in WITHOUT_OTHERS.items():
            if values.get(key) is None:
                values[key] = [number, f"assumed: there is one {what} only"]
        self.fill_distances(values)
        order(values)
        return {key: values[key] for key in machine.KEYS}, note

    def middle(self, key):
        return median(self.samples[key])

    def together(self):
        """Per cent of the time alone that a CPU needs while another works."""
        if "together_percent" not in self.samples:
            return 100
        return max(100, round(self.middle("together_percent")))

    def threads(self):
        """Are the two neighbours threads of one core, whatever /sys says of two
        cores?"""
        return (self.nearest() == topology.SAME_CORE
                or self.together() >= THREADS_PERCENT)

    def migratory(self):
        """Does a load of a line that another CPU has written bring it for
        writing, too? If it does not, a compare-and-swap after it has to fetch
        it once more."""
        where = f"load_{self.nearest()}"
        if "both" not in self.samples or where not in self.samples:
            return False
        load = self.middle(where)
        return self.middle("both") < 1.5 * load + self.middle("cas_hit")

    def reach(self, values):
        """A line that nobody uses takes longer than what a turn takes beside
        the time for which it is kept: until the request is there, the owner
        could still have used it."""
        where = f"load_{self.nearest()}"
        if where not in self.samples or self.threads():
            return 0
        return max(0, round(self.middle(where))
                   - values[f"latency_{self.nearest()}"][0])

    def keep(self, values):
        """How long a new owner keeps a line, from two measurements. Two cores
        that compare-and-swap a word in turn need l + k a turn: the transfer, and
        the time that it is kept. Two that add to it as fast as they can need
        (l + k) / (1 + k/h) an addition, as the owner makes 1 + k/h of them, of h
        each, before it loses the line. From threads of one core, no line is
        kept."""
        if self.nearest() is None:
            return None
        turn = self.middle(f"ping_pong_{self.nearest()}")
        if self.threads():
            return [0, f"measured: {self.together()} % of the time alone while"
                       " the other works, too: threads of one core"]
        hit = values["rmw_hit"][0]
        together = self.middle("contended_xadd") if (
            "contended_xadd" in self.samples) else hit
        what = (f"two cores' additions to the same word take {together:.0f}"
                f" ps each, taking turns {turn:.0f} ps")
        if not hit < together < turn:
            return [0, f"measured: {what}: as without keeping"]
        return [round(min(hit * (turn / together - 1), turn - LEAST_PS)),
                f"measured: {what}"]

    def latency(self, where, values):
        """So that taking turns needs what it was measured to need. Threads of
        a core have its cache in common, and no line is kept from one of them."""
        if where not in self.pairs:
            return None
        turn = round(self.middle(f"ping_pong_{where}"))
        if where == self.nearest() and self.threads():
            other = "cas_hit, while the other works"
            time = values["cas_hit"][0] * self.together() // 100
        elif where == topology.SAME_CORE:
            other, time = "cas_hit", values["cas_hit"][0]
        else:
            other, time = "keep_ps", values["keep_ps"][0]
        number = max(LEAST_PS, turn - time)
        return [number, f"measured: taking turns needs {turn} ps, {number}"
                        f" without {other}"]

    def fill_distances(self, values):
        """Distances that this machine does not have are like the next nearer
        one, and the nearest like the next."""
        known = None
        for where in topology.DISTANCES[1:]:
            key = f"latency_{where}"
            if values.get(key) is None:
                values[key] = [known, "assumed: like the next nearer one,"
                                      " this machine has no such distance"
                               ] if known else None
            else:
                known = values[key][0]
        nearest = next(values[f"latency_{where}"][0]
                       for where in topology.DISTANCES[1:]
                       if values.get(f"latency_{where}"))
        for where in topology.DISTANCES:
            if values.get(f"latency_{where}") is None:
                values[f"latency_{where}"] = [
                    nearest, "assumed: like the next one, this machine has"
                             " no such distance"]


def order(values):
    """Nearer is never slower: where noise says so, the nearer one is believed
    for both."""
    for keys in machine.ORDERED:
        for near, far in zip(keys, keys[1:]):
            if values[near][0] > values[far][0]:
                values[far] = [values[near][0],
                               f"measured: {values[far][0]}, but {near}, which"
                               " cannot be slower, is this"]


def cpu_model():
    try:
        with open("/proc/cpuinfo") as cpuinfo:
            for line in cpuinfo:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


def document(calibration, turn):
    """The machine file of a state."""
    here = calibration.at(turn)
    values, note = here.values()
    now = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    load = os.getloadavg()[0]
    notes = [f"written by sim/run calibrate, {now},"
             f" {calibration.rounds} rounds, load average {load:.2f}"]
    if note:
        notes.append(note)
    if load > BUSY * len(here.cpus):
        notes.append("the machine was busy: what takes two CPUs is not to be"
                     " believed")
    notes += seen(calibration, turn)
    for key in sorted(here.samples):
        if key not in values and key != "together_percent":
            unit = "" if key.endswith("_percent") else " ps"
            notes.append(f"{key}: {here.measured(key)[0]}{unit},"
                         f" {here.measured(key)[1]}")
    return {"name": "this", "title": f"{len(here.cpus)} x {cpu_model()}",
            "together_percent": here.together(),
            "migratory": here.migratory(), "reach_ps": here.reach(values),
            "notes": notes, "values": values}


def seen(calibration, turn):
    """Which states there were, if not only one; and if there was too little of
    each to tell them apart."""
    if turn is None:
        return
    every = states.groups(calibration.turns)
    if len(every) > 1:
        yield (f"these are the values with a {states.name(turn)}; of"
               f" {len(calibration.turns)} looks, "
               + ", ".join(f"{len(found)} found a {states.name(median(found))}"
                           for found in every)
               + f"; {calibration.unsteady} samples were taken again, as it"
                 " changed")
        mixed = sorted(key for key in calibration.of_neighbours()
                       if not calibration.only(key, turn))
        if mixed:
            yield ("no sample with this turn, so of any: " + ", ".join(mixed))
    if not calibration.known(turn):
        yield (f"fewer than {LEAST_SAMPLES} samples of some measurement with"
               " this turn: more rounds tell more")


def calibrate(output, rounds):
    """Measures, writes the file of the state that was seen most; returns it."""
    try:                        # rather now than after a minute
        output.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BenchError(f"cannot create {output.parent}: {error.strerror}")
    here = Calibration()
    here.build()
    here.measure(rounds)
    found = document(here, here.states()[0])
    machine.write(output, found)
    return found
