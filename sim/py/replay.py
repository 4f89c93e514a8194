"""Cases in which a server's allocations are compared with the simulator's."""

import os
import shutil
import subprocess
from array import array
from collections import Counter
from dataclasses import dataclass

from bench.lib import callgrind, sides
from bench.lib.paths import BENCH, ROOT, BenchError

from . import binary, build, machine, record, steps

# What issue and documentation promise of the counts.
COUNTS_PERCENT = 1

# Any machine will do: one backend waits for nobody. Its nodes are changed.
MACHINE = "vondra-xeon"

KINDS = (steps.LOAD, steps.STORE, steps.ATOMIC)

# Lines that only their process writes. Neighbouring words of them are merged into
# one access by GCC's "superword" vectorizer, where it can: not where a call
# follows each access, as in the simulator, or PLAIN is in force.
OWN_REGIONS = ("slots", "part_counters")
PLAIN = "-fno-tree-slp-vectorize"


@dataclass(frozen=True)
class Case:
    cluster: str
    strategy: str
    buffers: int
    usage: int                  # record.MIXED: from 0 to 5
    pin_every: int = 0
    batch: int = 0
    nodes: int = 1
    partitions: int = 1
    balance: str = "on"
    main: bool = False
    stepped: bool = False

    def title(self):
        parts = [{sides.STOCK: "stock server"}.get(
            self.cluster, f"pg_sweep {self.strategy}")]
        if self.strategy != "stock":
            parts.append(f"batch {self.batch or 'automatic'}")
        if self.strategy == "partitioned":
            parts.append(f"{self.partitions} on {self.nodes} nodes")
            if self.balance == "off":
                parts.append("no balance")
        parts.append(f"{self.buffers} buffers")
        parts.append("usage 0 to 5" if self.usage == record.MIXED
                     else f"usage {self.usage}")
        if self.pin_every:
            parts.append(f"1 of {self.pin_every} pinned")
        return ", ".join(parts)

    def settings(self):
        found = {"shared_buffers": self.buffers}
        if self.cluster == sides.SWEEP:
            found.update({"pg_sweep.strategy": self.strategy,
                          "pg_sweep.batch_size": self.batch,
                          "pg_sweep.numa_debug_nodes": self.nodes,
                          "pg_sweep.partitions": self.partitions,
                          "pg_sweep.balance": self.balance})
        return found

    def statements(self):
        """A mixture of usage counts comes from giving out the pool twice."""
        yield "SELECT measure_sweep_drain_freelist()"
        if self.usage != record.MIXED:
            yield f"SELECT measure_sweep_preset({self.usage})"
        else:
            yield ("SELECT length(victims) FROM measure_sweep_record("
                   f"{2 * self.buffers}, {record.MIXED}, '{{}}', '{{}}')")
        if self.cluster == sides.SWEEP:
            yield "SELECT * FROM pg_sweep_status"


# 1021 is prime: no multiple of any batch, or of a number of partitions.
CASES = (
    Case(sides.STOCK, "stock", 1024, 0, main=True, stepped=True),
    Case(sides.STOCK, "stock", 1021, 2, main=True, stepped=True),
    Case(sides.STOCK, "stock", 1021, record.MIXED, 7, main=True, stepped=True),
    Case(sides.SWEEP, "stock", 1021, record.MIXED, 7),
    Case(sides.SWEEP, "batched", 1024, 0, batch=64, main=True, stepped=True),
    Case(sides.SWEEP, "batched", 1021, 2, batch=64, main=True, stepped=True),
    Case(sides.SWEEP, "batched", 1021, record.MIXED, 7, main=True,
         stepped=True),
    Case(sides.SWEEP, "batched", 1021, record.MIXED, 7, batch=1, stepped=True),
    Case(sides.SWEEP, "batched", 1021, 0, batch=7, stepped=True),
    Case(sides.SWEEP, "batched", 16384, 2, batch=1000, stepped=True),
    Case(sides.SWEEP, "partitioned", 1021, 2, stepped=True),
    Case(sides.SWEEP, "partitioned", 1021, record.MIXED, 7, nodes=2,
         partitions=4, main=True, stepped=True),
    Case(sides.SWEEP, "partitioned", 4099, 0, batch=16, nodes=4, partitions=8,
         stepped=True),
    Case(sides.SWEEP, "partitioned", 1021, 2, nodes=2, partitions=4,
         balance="off", stepped=True),
)


def prepare(here, settings):
    """The first start after a change of the catalogs does more than others."""
    statements = ["CREATE EXTENSION measure_sweep"]
    if here.name == sides.SWEEP:
        statements.append("CREATE EXTENSION pg_sweep")
    callgrind.single_user(here, settings, statements)
    callgrind.single_user(here, settings, ["SELECT measure_sweep_preset(0)"])


def recorded(case, here, settings, allocations, step=False):
    found, output = record.take(here, {**settings, **case.settings()},
                                case.statements(), allocations, case.usage,
                                case.pin_every, step)
    if len(found.victims) != allocations:
        raise BenchError(f"{case.title()}: the server recorded"
                         f" {len(found.victims)} allocations instead of"
                         f" {allocations}")
    expected = {"strategy": case.strategy, "state": "ok",
                "batch_size_configured": str(case.batch),
                "nodes": str(case.nodes)}
    if case.cluster == sides.SWEEP:
        for column, value in expected.items():
            is_value = callgrind.answer(output, column)
            if is_value != value:
                raise BenchError(f"{case.title()} is not in force: {column} is"
                                 f" {is_value!r} instead of {value!r}")
    return found


def simulated(case, here, found, allocations):
    """(victims, output of the simulator)"""
    state, victims = here.dir / "state", here.dir / "victims"
    state.write_bytes(found.raw)
    victims.unlink(missing_ok=True)
    nodes = machine.named(MACHINE).changed(
        cores=case.nodes, cores_per_group=1, groups_per_node=1,
        nodes_per_socket=1, sockets=case.nodes)
    config = {**nodes.config(), "seed": 1, "load": "replay",
              "strategy": case.strategy, "buffers": case.buffers,
              "backends": 1, "load.state": state, "load.victims": victims,
              "load.allocations": allocations, "load.usage": case.usage}
    if case.strategy != "stock":
        config.update({"batch": case.batch, "partitions": case.partitions,
                       "balance": int(case.balance == "on")})
    output = binary.Simulator(build.simulator()).ask(binary.text_of(config))
    ids = array("i", victims.read_bytes())
    if len(ids) != allocations:
        raise BenchError(f"{case.title()}: the simulator wrote {len(ids)}"
                         f" victims instead of {allocations}")
    return ids, output


def victims(case, here, settings, allocations):
    """(how many are the same, number of the first that is not)"""
    found = recorded(case, here, settings, allocations)
    ids, _ = simulated(case, here, found, allocations)
    if ids == found.victims:
        return allocations, None
    differ = [i for i, (a, b) in enumerate(zip(ids, found.victims)) if a != b]
    return allocations - len(differ), differ[0]


def counts(case, here, settings, allocations):
    """[(region, kind of access, times in the server, in the simulator)]; what
    neither has done is left out."""
    found = recorded(case, here, settings, allocations, step=True)
    ids, output = simulated(case, here, found, allocations)
    if ids != found.victims:
        raise BenchError(f"{case.title()}: victims differ, so counts cannot be"
                         " compared")
    regions, layout = parse(output)
    server = by_region(steps.accesses(found)[0], layout, case)
    names = sorted({name for name, _ in [*server, *regions]})
    return [(name, kind, server[name, kind], regions[name, kind])
            for name in names for kind in KINDS
            if server[name, kind] or regions[name, kind]]


def parse(output):
    """Counts by region; and which region is where in the library's shared
    memory: {start: (end, name)}."""
    regions, layout = Counter(), {}
    for line in output.splitlines():
        words = line.split()
        if words[0] == "region":
            for kind in KINDS:
                regions[words[1], kind] += int(
                    words[words.index(kind, 2) + 1])
        elif words[0] == "result" and words[1].startswith("layout."):
            _, name, start = words[1].rsplit(".", 2)
            layout[int(start)] = int(float(words[2])), name
    return regions, layout


def by_region(accesses, layout, case):
    """The same of the server's accesses."""
    found = Counter()
    for (kind, piece, offset), times in accesses.items():
        found[region_of(piece, offset, layout), kind] += times
    return found


def region_of(piece, offset, layout):
    if piece == record.DESCRIPTORS:
        return "descriptors"
    if piece == record.CONTROL:
        return "hand"
    if piece == record.SWEEP:
        for start, (end, name) in layout.items():
            if start <= offset < end:
                return name
    return piece.replace(" ", "_")


def counts_agree(found, own):
    """Of lines that backends share, and with "own" of a process' own ones: are
    they the same, within COUNTS_PERCENT?"""
    compared = [(server, simulator) for region, _, server, simulator in found
                if own or region not in OWN_REGIONS]
    if not any(server for server, _ in compared):
        raise BenchError("there are no counts to compare")
    return all(abs(simulator - server) * 100 <= COUNTS_PERCENT * server
               for server, simulator in compared)


def plain_library(server):
    """Build the extension for a server, but with PLAIN; the folder of it."""
    work = BENCH / "sim" / "plain"
    shutil.rmtree(work, ignore_errors=True)
    objects = work / "objects"
    objects.mkdir(parents=True)
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS",
                                   "PG_CONFIG", "DESTDIR")}
    done = subprocess.run(
        ["make", "-s", "-f", ROOT / "Makefile", "-f",
         ROOT / "tools" / "vpath.mk", f"PG_CONFIG={server.bin('pg_config')}",
         f"COPT={PLAIN}", f"DESTDIR={work}", "all", "install"],
        cwd=objects, env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise BenchError("building the extension for"
                         f" {server.prefix} failed:\n{done.stdout.strip()}")
    return work / server.config("pkglibdir").lstrip("/")


def has_assertions(here, settings):
    output = callgrind.single_user(here, settings, ["SHOW debug_assertions"])
    return callgrind.answer(output, "debug_assertions") == "on"
