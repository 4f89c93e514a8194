"""Measures this machine and writes its machine file.

Each figure is the median of samples taken in turn with all others, so a
disturbance of some seconds spoils none of them alone. The smallest and the
largest sample are written beside it.

The CPUs of a virtual machine may change places from one second to the next. A
spread of ping_pong by a factor of 2 or more says so, and the file's notes do."""

import os
import platform
import subprocess
from datetime import datetime, timezone
from pathlib import Path
from statistics import median

from bench.lib import report
from bench.lib.paths import BENCH, BenchError

from . import machine, topology

SOURCE = Path(__file__).resolve().parents[1] / "calibrate" / "calibrate.c"
FLAGS = ("-O2", "-Wall", "-pthread")

PAIRS = 12                      # of a distance: enough to see how it spreads
LEAST_PS = 100                  # of a latency
WIDE = 2                        # largest to smallest sample

# Machine file's key: measurement on one CPU
ALONE = {"load_hit": "load_hit", "store_hit": "store_hit",
         "rmw_hit": "xadd_hit", "cas_hit": "cas_hit", "pause": "pause"}

# Not measured: predictions of allocations hardly depend on them
ASSUMED = {"memory_local": 100_000, "memory_socket": 120_000,
           "memory_other": 180_000,
           "wakeup_ps": 5_000_000, "wake_call_ps": 1_500_000,
           "sleep_call_ps": 300_000, "switch_ps": 1_300_000,
           "timeslice_ps": 3_000_000_000, "copy_bytes_per_s": 10_000_000_000,
           "bandwidth_bytes_per_s": 0}
# What one CPU alone cannot tell
LATENCY_PS, KEEP_PS = 25_000, 17_000
# keep_ps to a turn of two cores, latency and all: 0.35 on gold5215, 0.40 on Zen 4
KEEP_TO_TURN = 0.37
# An instruction between locked ones, to a load: as on Zen 4
INSTRUCTION_TO_LOAD = 31 / 91


class Calibration:
    def __init__(self):
        self.cpus = topology.read()
        self.pairs = topology.pairs(self.cpus, PAIRS)
        self.samples = {}
        self.program = BENCH / "sim" / "calibrate"

    def build(self):
        try:
            self.program.parent.mkdir(parents=True, exist_ok=True)
            done = subprocess.run(["gcc", *FLAGS, "-o", self.program, SOURCE],
                                  capture_output=True, text=True)
        except FileNotFoundError:
            raise BenchError("gcc is missing: tools/deps installs it")
        except OSError as error:
            raise BenchError(f"cannot create {self.program.parent}:"
                             f" {error.strerror}")
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

    def jobs(self, number):
        """Every measurement once: (key, measurement, CPUs)."""
        here = self.cpus[number % len(self.cpus)].number
        for key, measurement in ALONE.items():
            yield key, measurement, (here,)
        for where, found in self.pairs.items():
            a, b = found[number % len(found)]
            yield f"ping_pong_{where}", "ping_pong", (a, b)

    def nearest(self):
        """The nearest distance between two cores; None with one core."""
        return next((where for where in topology.DISTANCES[1:]
                     if where in self.pairs), None)

    def measure(self, rounds):
        for number in range(rounds):
            report.progress(f"round {number + 1} of {rounds}")
            for key, measurement, cpus in self.jobs(number):
                self.samples.setdefault(key, []).append(
                    self.ask(measurement, *cpus))

    # ---- the result ----

    def measured(self, key):
        """[value, source] of what has been measured."""
        values = self.samples[key]
        return [round(median(values)),
                f"measured: median of {len(values)},"
                f" {min(values):.0f}..{max(values):.0f}"]

    def values(self):
        values = {key: [number, "measured: lscpu"] for key, number
                  in topology.shape(self.cpus).items()}
        for key in ALONE:
            values[key] = self.measured(key)
        values["instruction_ps"] = [
            max(1, round(values["load_hit"][0] * INSTRUCTION_TO_LOAD)),
            "derived: load_hit, in the ratio of Zen 4"]
        for key, number in ASSUMED.items():
            values[key] = [number, "assumed: not measured"]
        values["llc_bytes"] = [topology.last_cache_bytes(), "measured: lscpu"]
        values["keep_ps"] = self.keep()
        self.latencies(values)
        order(values)
        return {key: values[key] for key in machine.KEYS}

    def keep(self):
        """Bands of predictions have half of it and twice."""
        if self.nearest() is None:
            return [KEEP_PS, "assumed: there is no second core"]
        turn = median(self.samples[f"ping_pong_{self.nearest()}"])
        return [round(turn * KEEP_TO_TURN),
                "derived: a turn of the nearest cores, in the ratio of"
                " gold5215 and Zen 4"]

    def latencies(self, values):
        """A turn takes latency and keep_ps. A distance that this machine does
        not have is like the nearer one."""
        known = None
        for where in topology.DISTANCES:
            if where in self.pairs:
                known = self.latency(where, values)
            if known:
                values[f"latency_{where}"] = known
                known = [known[0], "assumed: like the nearer one, there is no"
                                   " such distance"]
        nearest = values.get(f"latency_{self.nearest()}") or known or [
            LATENCY_PS, "assumed: there is one CPU only"]
        for where in topology.DISTANCES:
            values.setdefault(f"latency_{where}", [
                nearest[0], "assumed: there is no such distance"])

    def latency(self, where, values):
        turn = round(median(self.samples[f"ping_pong_{where}"]))
        # threads of a core have its cache in common, and keep nothing
        key = "cas_hit" if where == topology.SAME_CORE else "keep_ps"
        number = max(LEAST_PS, turn - values[key][0])
        return [number, f"measured: taking turns needs {turn} ps, {number}"
                        f" without {key}"]

    def notes(self):
        yield (f"written by sim/run calibrate,"
               f" {datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC,"
               f" load average {os.getloadavg()[0]:.2f}")
        for key, values in self.samples.items():
            if key.startswith("ping_pong") and max(values) > (
                    WIDE * min(values)):
                yield (f"{key} is between {min(values):.0f} and"
                       f" {max(values):.0f} ps: the machine was busy, or its"
                       " CPUs change places")
        if len(self.cpus) == 1:
            yield "there is one CPU only: latencies are assumed"


def order(values):
    """Nearer is never slower: if noise says so, the nearer one is taken."""
    for keys in machine.ORDERED:
        for near, far in zip(keys, keys[1:]):
            if values[near][0] > values[far][0]:
                values[far] = [values[near][0],
                               f"measured: {values[far][0]}, but {near}, which"
                               " cannot be slower, is this"]


def cpu_model():
    for line in topology.lscpu():
        if line.startswith("Model name:"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def calibrate(output, rounds):
    """Measures, writes the machine file and returns it."""
    try:                        # rather now than after a minute
        output.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BenchError(f"cannot create {output.parent}: {error.strerror}")
    here = Calibration()
    here.build()
    here.measure(rounds)
    found = {"name": "this", "title": f"{len(here.cpus)} x {cpu_model()}",
             "notes": list(here.notes()), "values": here.values()}
    machine.write(output, found)
    return found
