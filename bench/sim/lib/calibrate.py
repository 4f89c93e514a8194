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
            yield f"latency_{where}", "transfer_load", (a, b)
            yield f"xadd_{where}", "transfer_xadd", (a, b)
            yield f"ping_pong_{where}", "ping_pong", (a, b)
            if where == self.nearest():
                yield "contended_xadd", "contended_xadd", (a, b)
                yield "contended_cas", "contended_cas", (a, b)
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

    def values(self, keep):
        found, note = topology.shape(self.cpus)
        values = {key: [number, "measured: /sys"]
                  for key, number in found.items()}
        for where in topology.DISTANCES:
            key = f"latency_{where}"
            if where in self.pairs:
                values[key] = self.measured(key)
            else:
                values[key] = None
        values["memory_local"] = self.measured("memory_local")
        for key in ("memory_socket", "memory_other"):
            values[key] = (self.measured(key) if key in self.samples
                           else [values["memory_local"][0],
                                 "assumed: like memory_local, this machine"
                                 " has no other node there"])
        for key in ALONE:
            values[key] = self.measured(key)
        for key in ("wakeup_ps", "wake_call_ps", "bandwidth_bytes_per_s"):
            if key in self.samples:
                values[key] = self.measured(key)
        values["keep_ps"] = keep
        values["device_bytes_per_s"] = [0, "assumed: no limit; not measured"]
        values["llc_bytes"] = [topology.last_cache(self.cpus[0].number)[1],
                               "measured: /sys"]
        for key, number in WITHOUT_OTHERS.items():
            if values.get(key) is None:
                values[key] = [number, "assumed: there is one CPU only"]
        self.fill_distances(values)
        order(values)
        return {key: values[key] for key in machine.KEYS}, note

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

    def closed_form_keep(self):
        """How long a new owner keeps a line, from two cores that add to the same
        word as fast as they can: between two transfers, of latency l each, an
        owner has 1 + k/h turns of h, so an addition takes
        t = (l + k) / (1 + k/h), from which k follows."""
        if "contended_xadd" not in self.samples:
            return [WITHOUT_OTHERS["keep_ps"],
                    "assumed: there is one CPU only"]
        together = median(self.samples["contended_xadd"])
        hit = median(self.samples["rmw_hit"])
        far = median(self.samples[f"latency_{self.nearest()}"]) + hit
        if together <= hit or together >= far:
            return [0, f"measured: two cores' additions take {together:.0f} ps"
                       " each, as without keeping"]
        keep = (far - together) / (together / hit - 1)
        return [round(keep), f"measured: two cores' additions to the same word"
                             f" take {together:.0f} ps each"]


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
    here = Calibration(rounds)
    here.build()
    here.measure()
    values, note = here.values(here.closed_form_keep())
    today = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    notes = [f"written by bench/sim/run calibrate, {today}, {rounds} rounds,"
             f" load average {os.getloadavg()[0]:.2f}"]
    if note:
        notes.append(note)
    for key in sorted(here.samples):
        if key not in values:
            notes.append(f"{key}: {here.measured(key)[0]} ps,"
                         f" {here.measured(key)[1]}")
    document = {"name": "this", "title": f"{len(here.cpus)} x {cpu_model()}",
                "notes": notes, "values": values}
    machine.write(output, document)
    return document
