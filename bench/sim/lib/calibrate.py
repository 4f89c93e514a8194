"""Measures this machine and writes its machine file.

Each figure is the median of samples that were taken in turns with all others,
so that a disturbance of some seconds spoils none of them alone; smallest and
largest are written beside it."""

import os
import platform
import subprocess
from datetime import datetime, timezone
from pathlib import Path
from statistics import median

from lib import report, stats
from lib.paths import BENCH, BenchError

from . import machine, topology

SOURCE = Path(__file__).resolve().parents[1] / "calibrate"
FLAGS = ("-O2", "-Wall", "-Wextra", "-Wno-unused-parameter",
         "-Wno-missing-field-initializers", "-pthread")

PAIRS = 12                      # of a distance: enough to see how it spreads
NODE_PAIRS = 4                  # of nodes, for memory latencies

LEAST_PS = 100                  # of a latency

BUSY = 0.8                      # load average a CPU, our own included, beyond
                                # which the others' shows

# What a machine of one CPU cannot be asked.  It has nobody to wait for.
WITHOUT_OTHERS = {"latency_group": 25_000, "wakeup_ps": 20_000_000,
                  "wake_call_ps": 2_000_000, "keep_ps": 20_000}

# Machine file's key: measurement on one CPU.
ALONE = {"load_hit": "load_hit", "store_hit": "store_hit",
         "rmw_hit": "xadd_hit", "cas_hit": "cas_hit", "pause": "pause",
         "instruction_ps": "instruction", "sleep_call_ps": "sleep_call",
         "switch_ps": "switch", "timeslice_ps": "timeslice",
         "copy_bytes_per_s": "copy"}


class Calibration:
    def __init__(self, rounds):
        self.rounds = rounds
        self.cpus = topology.read()
        self.pairs = topology.pairs(self.cpus, PAIRS)
        self.samples = {}
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

    def sample(self, key, measurement, *cpus):
        done = subprocess.run([self.program, measurement, *map(str, cpus)],
                              capture_output=True, text=True)
        if done.returncode != 0:
            raise BenchError(done.stderr.strip() or
                             f"calibrate {measurement} failed"
                             f" ({done.returncode})")
        self.samples.setdefault(key, []).append(float(done.stdout))

    def jobs(self, round_):
        """Every measurement once: (key, measurement, CPUs)."""
        numbers = [cpu.number for cpu in self.cpus]
        here = numbers[round_ % len(numbers)]
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
                yield "contended_xadd", "contended_xadd", (a, b)
                yield "contended_cas", "contended_cas", (a, b)
                yield "together_percent", "together", (a, b)
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
        """The nearest distance between two cores."""
        for where in topology.DISTANCES[1:]:
            if where in self.pairs:
                return where
        return None

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

    def measure(self):
        for round_ in range(self.rounds):
            report.progress(f"round {round_ + 1} of {self.rounds}")
            for key, measurement, cpus in stats.rotated(
                    list(self.jobs(round_)), round_):
                self.sample(key, measurement, *cpus)

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
        for key, number in WITHOUT_OTHERS.items():
            if values.get(key) is None:
                values[key] = [number, "assumed: there is one CPU only"]
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

    def keep(self, values):
        """How long a new owner keeps a line, from two measurements. Two cores
        that compare-and-swap a word in turn need l + k a turn: the transfer, and
        the time that it is kept. Two that add to it as fast as they can need
        (l + k) / (1 + k/h) an addition, as the owner makes 1 + k/h of them, of h
        each, before it loses the line."""
        if "contended_xadd" not in self.samples:
            return None
        hit = values["rmw_hit"][0] * self.together() / 100
        # faster than one alone: they never ran at the same time
        together = median([value for value in self.samples["contended_xadd"]
                           if value >= hit] or [hit])
        turn = self.middle(f"ping_pong_{self.nearest()}")
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
        other = "cas_hit" if where == topology.SAME_CORE else "keep_ps"
        number = max(LEAST_PS, turn - values[other][0])
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


def calibrate(output, rounds):
    """Measures, writes the file; returns its path."""
    try:                        # rather now than after a minute
        output.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BenchError(f"cannot create {output.parent}: {error.strerror}")
    here = Calibration(rounds)
    here.build()
    here.measure()
    values, note = here.values()
    today = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    busy = os.getloadavg()[0] > BUSY * len(here.cpus)
    notes = [f"written by bench/sim/run calibrate, {today}, {rounds} rounds,"
             f" load average {os.getloadavg()[0]:.2f}"]
    if note:
        notes.append(note)
    if busy:
        notes.append("the machine was busy: what takes two CPUs is not to be"
                     " believed")
    for key in sorted(here.samples):
        if key not in values and key != "together_percent":
            notes.append(f"{key}: {here.measured(key)[0]} ps,"
                         f" {here.measured(key)[1]}")
    document = {"name": "this", "title": f"{len(here.cpus)} x {cpu_model()}",
                "together_percent": here.together(),
                "notes": notes, "values": values}
    machine.write(output, document)
    return document
