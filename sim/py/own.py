"""Out of sample: what an allocation takes on this machine, predicted first and
measured then, on real servers, in several rounds.

A round is a short calibration, which needs no server; the prediction that follows
from it and from those before, a file with a date; and then a short measurement.
No time of a server is ever fitted. Two numbers of the model are fitted to
instructions that were counted in servers, four of these cells among them.

What two CPUs of a virtual machine have to do with each other changes from one
second to the next (states.py). So there is a prediction for each state that
calibration has seen, and the turn is looked at right before and right after each
measured sample: which prediction holds for it is decided by these two looks,
never by what was measured between them. If they differ, or if nobody has
predicted such a state, the sample is counted apart.

Where sessions run is left to the kernel, and the turn that is looked at is that of
two CPUs: so there must not be more for them."""

import json
import os
from dataclasses import dataclass
from datetime import datetime, timezone
from statistics import median

from bench.lib import alloc, cluster, paths, report, sides, stats
from bench.lib.paths import BENCH, BenchError

from . import calibrate, machine, own_report, states

# Sides of the measurement, and what they are in the simulator
SIDES = {
    sides.STOCK_SERVER: {"strategy": "stock"},
    sides.batched(64): {"strategy": "batched", "batch": 64},
    sides.batched(0): {"strategy": "batched", "batch": 0},
    sides.partitioned(alloc.NODES): {"strategy": "partitioned",
                                     "partitions": 0},
}
USAGES = (0, 2)
PROCESSES = (1, 2)
SHARED_BUFFERS, BUFFERS = "128MB", 16384
MS = 100                        # of a sample: short, as states are, too
SAMPLES = 2                     # of each cell in a round

# A calibration is some rounds of what is quick; the first also of the rest.
FIRST_ROUNDS, QUICK_ROUNDS = 3, 25

# In simulated time long enough for the background writer's plan of who serves
# whom, six cycles of 200 ms, would take minutes. It is made every 2 ms instead,
# and the warm-up is longer than six of those: what it settles at is the same.
BGWRITER_MS = 2
WARMUP = {"partitioned": 2_000_000}     # else some laps of the hand:
WARMUP_LAPS = 8
ALLOCATIONS = 200_000
# Of leases of 64 on an idle CPU, with nobody else, the quartiles are 2 to 4 % of
# their time apart (calibrate's lease_spread), so two processes do not take turns for
# long. The simulator draws each piece of private work anew, and hundreds of draws
# nearly cancel out: with the most that it can, they are 1.4 % apart.
JITTER_PERCENT = 50
SEEDS = (1, 2, 3)

# What a CPU does by itself
OWN_WORK = ("load_hit", "store_hit", "rmw_hit", "cas_hit", "pause",
            "instruction_ps")

FOLDER = BENCH / "sim" / "own"


# ---- the prediction ----

def on_nodes(here, nodes):
    """The same machine with pretended nodes: homes and flows, and no distance
    between them that is not there without."""
    cores = here.value["cores"]
    if here.nodes() > 1:
        return here
    near = here.value["latency_group"]
    return here.changed(cores_per_group=cores // nodes, groups_per_node=1,
                        nodes_per_socket=nodes, sockets=1, latency_node=near,
                        latency_socket=near,
                        latency_other_socket=max(
                            near, here.value["latency_other_socket"]))


def disturbed(here):
    """The same machine while all its CPUs work."""
    if here.together == 100:
        return here
    return here.changed(**{key: round(here.value[key] * here.together / 100)
                           for key in OWN_WORK})


def config(here, side, usage, processes, seed):
    if processes > 1:
        here = disturbed(here)
    if side.nodes is not None:
        here = on_nodes(here, side.nodes)
    played = SIDES[side]
    return {**here.config(), "load": "alloc", "load.usage": usage,
            **played, "backends": processes, "buffers": BUFFERS,
            # a process on each core; of pretended nodes, one on each
            "placement": "scatter",
            "warmup": WARMUP.get(played["strategy"], WARMUP_LAPS * BUFFERS),
            "allocations": ALLOCATIONS, "bgwriter_ms": BGWRITER_MS,
            "jitter_percent": JITTER_PERCENT, "seed": seed}


def cells(cpus, cores):
    """What can be played on such a machine: no nodes are pretended that its
    cores cannot be shared out to, as on a single one."""
    return [(side, usage, processes) for usage in USAGES
            for processes in PROCESSES if processes <= cpus for side in SIDES
            if side.nodes is None or cores % side.nodes == 0]


def predict_cells(simulator, here, some):
    """Median of the seeds."""
    answers = simulator.run_all([config(here, *cell, seed) for cell in some
                                 for seed in SEEDS])
    for i, (side, usage, processes) in enumerate(some):
        yield {"configuration": alloc.configuration(usage, processes),
               "side": side.name,
               "ns": median(answer["ps_per_allocation"] / 1000 for answer
                            in answers[i * len(SEEDS):(i + 1) * len(SEEDS)])}


def predict(simulator, found):
    """found: (turn, machine) of each state. One process has no neighbour, and is
    predicted once."""
    every = cells(found[0][1].cpus(), found[0][1].value["cores"])
    alone = predict_cells(simulator, found[0][1],
                          [cell for cell in every if cell[-1] == 1])
    document = {"alone": list(alone), "states": [
        {"turn_ps": turn, "together_percent": here.together,
         **here.extra, "values": here.value,
         "predicted": list(predict_cells(
             simulator, here, [cell for cell in every if cell[-1] > 1]))}
        for turn, here in found]}
    # when it is complete, and before anything is measured
    return {"date": now(), **document}


def predicted(document, where, side, looks):
    """(ns, state) that a prediction says of a sample between two looks; ns is
    None if it says nothing, state then why."""
    alone = value_of(document["alone"], where, side)
    if alone is not None:
        return alone, own_report.ALONE
    before, after = (turn for turn, _ in looks)
    if not states.same(before, after):
        return None, own_report.CHANGED
    rows = {state["turn_ps"]: state["predicted"]
            for state in document["states"]}
    turn = states.which((before + after) / 2, rows)
    if turn is None:
        return None, own_report.UNKNOWN
    return value_of(rows[turn], where, side), turn


def value_of(rows, where, side):
    return next((row["ns"] for row in rows if row["configuration"] == where
                 and row["side"] == side), None)


# ---- rounds ----

def now():
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


def write(path, document):
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document, indent=1) + "\n")
    except OSError as error:
        raise BenchError(f"cannot write {path}: {error.strerror}")


def remove_old():
    """Results of another run go, what is made of all rounds first: a run that
    is interrupted leaves rounds, and nothing that says it is complete."""
    try:
        for path in (*(BENCH / f"sim_own.{kind}" for kind in ("json", "csv")),
                     *FOLDER.glob("*.json")):
            path.unlink(missing_ok=True)
    except OSError as error:
        raise BenchError(f"cannot remove {error.filename}: {error.strerror}")


@dataclass(frozen=True)
class Found:
    """A sample, with what had been predicted of it."""
    round: int
    configuration: str
    side: str
    ns: float
    looks: tuple
    predicted: float            # None: nothing was
    state: object               # the turn of the state; else why there is none


class Rounds:
    def __init__(self, simulator, servers, rounds):
        self.simulator = simulator
        self.servers = servers
        self.rounds = rounds
        self.calibration = calibrate.Calibration()
        self.calibration.build()
        self.found = []

    def run(self):
        remove_old()
        report.progress("the first calibration")
        self.calibration.measure(FIRST_ROUNDS)
        for round_ in range(1, self.rounds + 1):
            document = self.foretell(round_)
            self.measure(round_, document)
        return self.found

    def foretell(self, round_):
        """Calibrate and predict; both are written down."""
        report.progress(f"round {round_} of {self.rounds}: calibration")
        self.calibration.measure(QUICK_ROUNDS, quick=True)
        here = self.calibration
        documents = [(turn, calibrate.document(here, turn))
                     for turn in here.states()]
        path = FOLDER / f"{round_}-calibrated.json"
        write(path, {"date": now(), "turns_ps": here.turns,
                     "unsteady": here.unsteady,
                     "states": [found for _, found in documents]})
        report.progress(f"round {round_}: prediction, "
                        + ", ".join(states.name(turn) if turn else "one CPU"
                                    for turn, _ in documents))
        document = predict(self.simulator,
                           [(turn, machine.Machine(found, str(path)))
                            for turn, found in documents])
        write(FOLDER / f"{round_}-predicted.json", document)
        return document

    def measure(self, round_, document):
        report.progress(f"round {round_}: measurement")
        found = []
        every = cells(len(self.calibration.cpus),
                      len(self.calibration.one_of_each_core()))
        for turn in range(SAMPLES):
            for side, usage, processes in stats.rotated(every,
                                                        round_ + turn):
                found.append(self.sample(round_, document, side, usage,
                                         processes))
        write(FOLDER / f"{round_}-measured.json",
              {"date": now(), "predicted": document["date"],
               # until now: samples that were taken again
               own_report.SPOILT: self.servers.spoilt,
               "samples": [vars(one) for one in found]})
        self.found += found

    def sample(self, round_, document, side, usage, processes):
        sample = self.servers.sample(side, usage, processes, MS,
                                     look=self.calibration.look)
        where = alloc.configuration(usage, processes)
        ns, state = predicted(document, where, side.name, sample.looks)
        return Found(round_, where, side.name, sample.ns, sample.looks, ns,
                     state)


def check_cpus():
    number = len(os.sched_getaffinity(0))
    if number > max(PROCESSES):
        raise BenchError(f"there are {number} CPUs, and sessions are not bound"
                         f" to any: leave it {max(PROCESSES)} (taskset -c 0,1"
                         " sim/run own rounds)")


def rounds(simulator, args):
    """Run all rounds, report; is it as wanted?"""
    cluster.stop_all_at_exit()
    servers = alloc.Allocations(paths.stock_server(args),
                                paths.patched_server(args), max(PROCESSES),
                                SHARED_BUFFERS)
    check_cpus()
    for line in report.machine([servers.stock, servers.patched]):
        report.say(line)
    here = Rounds(simulator, servers, args.rounds)
    simulator.jobs = max(simulator.jobs, len(here.calibration.cpus))
    servers.start((sides.STOCK, sides.SWEEP))
    found = here.run()
    servers.remove()
    return own_report.report(found, servers.spoilt)
