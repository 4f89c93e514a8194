"""The rounds of `run own`, with a machine, a simulator and servers that are made
up: which prediction a sample is compared with, and what is left out. Prints
"not ok" for what is wrong, "done" at the end."""

import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path
from statistics import median

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.lib import alloc  # noqa: E402
from bench.lib.paths import BenchError  # noqa: E402
from sim.py import calibrate, own, own_report, scaling_doc  # noqa: E402
from sim.py import scaling_data, states  # noqa: E402

NEAR, FAR, NEW = 10_000, 28_000, 110_000
ASKED = {"ping_pong": 0, "transfer_load": 7000, "transfer_xadd": 7000,
         "transfer_both": 8000, "contended_xadd": 7000, "together": 143, "xadd_hit": 2300, "cas_hit": 2700, "load_hit": 90,
         "store_hit": 136, "instruction": 34, "copy": 7e9}


def check(right, what):
    print(f"{'ok' if right else 'not ok'} - {what}", flush=True)


class Machine:
    """Its turn changes as told; which measurement was asked is told to all."""

    def __init__(self):
        self.turns = iter(())

    def ask(self, measurement, *cpus):
        if measurement == "ping_pong":
            return next(self.turns)
        return ASKED.get(measurement, 1_000_000)


def cpus(cores):
    made = calibrate.topology.Cpu
    return [made(n, core, (0, 1), 0, 0) for n, core in enumerate(cores)]


def calibration(turns, cores=((0,), (1,))):
    """Of two CPUs, or of some that have these cores; turns: of the looks, two for
    each sample."""
    here = calibrate.Calibration()
    here.cpus = cpus(cores)
    here.pairs = calibrate.topology.pairs(here.cpus, calibrate.PAIRS)
    machine = Machine()
    machine.turns = iter(turns)
    here.ask = machine.ask
    return here


def measured(turns, cores=((0,), (1,)), rounds=1):
    here = calibration(turns, cores)
    here.memory_pairs = lambda round_: {"memory_local": (0, 0)}
    with contextlib.redirect_stderr(io.StringIO()):
        here.measure(rounds)
    return here


def refused(what, why, action):
    try:
        action()
    except BenchError as error:
        check(why in str(error), what)
    else:
        check(False, what)


def test_states():
    check(states.same(26_000, 30_000) and not states.same(10_300, 26_000),
          "turns of one state, and of two")
    check(states.middles([28, 10, 30, 29, 11]) == [29, 10.5],
          "the most frequent state is the first")
    check([states.which(turn, [20, 32]) for turn in (29, 24, 60)]
          == [32, 20, None], "of two that are near, a turn is of the nearer one")


def test_calibration():
    here = calibration([NEAR, FAR, NEAR, NEAR, FAR, FAR])
    values = iter((5, 7, 9))
    turns = here.ask
    here.ask = lambda what, *cpus: (turns(what) if what == "ping_pong"
                                    else next(values))
    for _ in range(2):
        here.sample("both", "transfer_both", 0, 1)
    check(here.unsteady == 1, "a sample between two states is taken again")
    check(here.of("both", NEAR) == [7] and here.of("both", FAR) == [9],
          "the others belong to one")
    refused("a machine that is never steady is none", "too busy",
            lambda: calibration([NEAR, FAR] * 100).sample(
                "both", "transfer_both", 0, 1))


def test_known_states():
    here = calibration([])
    here.turns = [NEAR] * 3 + [FAR] * 2 + [NEW] * 2
    for key in here.of_neighbours():
        here.samples[key] = [(NEAR, 1)] * 2 + [(FAR, 1)] * 2
    check(here.states() == [NEAR], "with too few samples of each state, the most"
                                  " frequent one is taken, and no mean")
    check(any("fewer than 3" in note for note in calibrate.seen(here, NEAR)),
          "which is said")
    here.turns = [NEAR] * 5 + [FAR] * 5
    for key in here.samples:
        here.samples[key] = [(NEAR, 1)] * 3 + [(FAR, 1)] * 2
    check(here.states() == [NEAR], "of a state with too few samples, nothing is"
                                   " said")
    for key in here.samples:
        here.samples[key] = [(NEAR, 1)] * 3 + [(FAR, 1)] * 3
    check(sorted(here.states()) == [NEAR, FAR], "with enough, it is known")
    here.samples["both"] = [(NEAR, 1)] * 3
    check(here.states() == [NEAR] and here.only("both", FAR) == [],
          "nor of one with none")
    here.turns = [20_000] * 3 + [32_000] * 3
    here.samples["both"] = [(29_000, 7)]
    check(here.only("both", 20_000) == [] and here.only("both", 32_000) == [7],
          "no sample belongs to two")


def test_shapes():
    """One CPU, two threads of one core, and two sockets of one core each, from the
    first sample to the file."""
    one = measured([], cores=((0,),))
    values = calibrate.document(one, one.states()[0])["values"]
    check(one.states() == [None] and "one CPU only"
          in values["latency_group"][1], "one CPU")
    threads = measured([NEAR] * 100, cores=((0, 1), (0, 1)))
    (turn,) = threads.states()
    values = calibrate.document(threads, turn)["values"]
    check(turn == NEAR and values["keep_ps"][0] == 0
          and values["latency_same_core"][0] == NEAR - 2700 * 143 // 100,
          "two threads of one core have a turn, and keep nothing")
    check("one core only" in values["latency_group"][1],
          "what two cores do is assumed, and said so")
    check(threads.look() == (NEAR, 143), "they are looked at")
    far = calibration([])
    far.pairs = {"socket": [(0, 1)], "other_socket": [(0, 2)]}
    far.sample("load_other_socket", "transfer_load", 0, 2)
    check("load_socket" in far.of_neighbours() and far.turns == [],
          "who is farther is no neighbour")


def test_cells():
    def nodes(cpus, cores):
        return {cell[0].nodes is not None for cell in own.cells(cpus, cores)}
    check(nodes(2, 2) == {True, False} and len(own.cells(2, 2)) == 16,
          "two cores: all cells")
    check(nodes(1, 1) == nodes(2, 1) == {False} and len(own.cells(1, 1)) == 6,
          "one core is not two nodes")
    kept, own.os.sched_getaffinity = (own.os.sched_getaffinity,
                                      lambda pid: {0, 1, 2})
    refused("three CPUs are too many", "there are 3 CPUs", own.check_cpus)
    own.os.sched_getaffinity = lambda pid: {0, 2}
    own.check_cpus()
    own.os.sched_getaffinity = kept


def document(together, both):
    here = calibration([])
    rest = {"load_group": 7000, "xadd_group": 7000, "ping_pong_group": NEAR}
    for key in calibrate.ALONE:
        here.samples[key] = [(None, ASKED.get(calibrate.ALONE[key],
                                              1_000_000_000))]
    for key in ("memory_local", "wakeup_ps", "wake_call_ps",
                "bandwidth_bytes_per_s"):
        here.samples[key] = [(None, 10_000_000)]
    for key, value in {**rest, "contended_xadd": 5000, "both": both,
                       "together_percent": together}.items():
        here.samples[key] = [(NEAR, value)]
    here.turns = [NEAR]
    return calibrate.document(here, NEAR)


def test_document():
    threads, cores = document(143, 8000), document(100, 14_000)
    check(threads["values"]["keep_ps"][0] == 0
          and threads["values"]["latency_group"][0] == NEAR - 2700 * 143 // 100,
          "threads of one core keep no line, and share what they do")
    check(cores["values"]["keep_ps"][0] == 2300, "two cores keep it")
    check(threads["migratory"] and not cores["migratory"],
          "a load that brings the line for writing is told from one that does"
          " not")


PREDICTION = {"alone": [{"configuration": "usage 0, 1 process", "side": "s",
                         "ns": 7}],
              "states": [{"turn_ps": turn, "predicted": [
                  {"configuration": "usage 0, 2 processes", "side": "s",
                   "ns": ns}]} for turn, ns in ((FAR, 50), (NEAR, 20))]}


def test_which():
    def which(before, after, processes=2):
        return own.predicted(PREDICTION,
                             alloc.configuration(0, processes), "s",
                             ((before, 100), (after, 100)))
    check(which(FAR, FAR + 1000) == (50, FAR), "the state of the looks decides")
    check(which(NEAR, NEAR) == (20, NEAR), "in the other state the other one")
    check(which(NEAR, FAR) == (None, own_report.CHANGED),
          "two looks that differ are no state")
    check(which(NEW, NEW) == (None, own_report.UNKNOWN),
          "nothing was said of a state that calibration had not seen")
    near = {**PREDICTION, "states": [
        {**PREDICTION["states"][0], "turn_ps": turn} for turn in (20, 32)]}
    check(own.predicted(near, alloc.configuration(0, 2), "s",
                        ((29, 100), (29, 100))) == (50, 32),
          "of two states that are near, the nearer one")
    check(which(NEAR, FAR, 1) == (7, own_report.ALONE),
          "one process has no neighbour")


def sample(round_, ns, before, after):
    looks = ((before, 100), (after, 100))
    where = alloc.configuration(0, 2)
    said, state = own.predicted(PREDICTION, where, "s", looks)
    return own.Found(round_, where, "s", ns, looks, said, state)


def test_report():
    found = [sample(1, 55, FAR, FAR), sample(1, 400, FAR, NEAR),
             sample(2, 45, FAR, FAR), sample(2, 21, NEAR, NEAR),
             sample(3, 50, FAR, FAR), sample(3, 900, NEW, NEW)]
    (cell,) = own_report.cells(found)
    check(cell.predicted == 50 and median(cell.measured) == 47.5,
          "medians of the same samples, without what is left out")
    check(abs(cell.error() - (20 / 21 + 50 / 50 - 2) / 2) < 1e-9,
          "a sample's error is that to its own prediction")
    (pooled,) = own_report.cells([sample(1, 40, NEAR, NEAR),
                                  sample(1, 25, FAR, FAR)] * 2
                                 + [sample(2, 40, NEAR, NEAR)])
    check(pooled.error() == -.5, "errors of two states do not cancel out")
    (near, few), (far, some) = own_report.by_state(found)
    check(few == [] and near == NEAR and far == FAR
          and some[0].measured == (45, 50, 55), "each state by itself")
    rows = own_report.rows(found)
    own_report.lines.rows.check(rows)
    count = {row["side"]: row["median"] for row in rows
             if row["metric"] == "samples"}
    check(count == {"changed": 1, "unknown": 1, "all": 6,
                    "two processes": 6, "cells without any": 0}, "what is left out is counted")
    check(any(row["side"] == "spoilt" and row["median"] == 3
              for row in own_report.rows(found, 3)),
          "and what was taken again")
    refused("older results are refused in one line", "two processes",
            lambda: list(scaling_doc.own_table(rows[:-1])))
    check(len(scaling_doc.own_cells(rows)) == 1,
          "a headline is no figure of a round or a state")
    text = "\n".join(scaling_doc.own_table(rows))
    check("Of the 6 samples of two processes 2 are left out: 1" in text and "| 3 | 1 | " in text,
          "docs/scaling.md tells of rounds, and of what is left out")
    return found


def test_verdict(found):
    wanted = []
    own_report.lines.write_json = lambda name, rows: wanted.append(name)
    own_report.lines.say = lambda text="": None
    check(own_report.report(found, 0), "5 % off is as wanted")
    check(not own_report.report(found + [sample(4, 20, FAR, FAR)] * 9, 0),
          "150 % off is not")
    none = own.Found(1, alloc.configuration(2, 2), "s", 9, ((NEW, 1),) * 2,
                     None, own_report.UNKNOWN)
    check(not own_report.report([*found, none], 0),
          "nor is a cell of which no sample counts")
    text = "\n".join(scaling_doc.own_table(own_report.rows([*found, none])))
    check("Of 1 cells no sample" in text and "30 %: not reached" in text
          and "not reached" not in "\n".join(
              scaling_doc.own_table(own_report.rows(found))),
          "which docs/scaling.md says")
    check(wanted == ["sim_own"] * 3, "the result is written in any case")
    refused("a run without any that counts is none", "of no sample",
            lambda: own_report.report([none], 0))


class Simulator:
    def run_all(self, configs):
        return [{"ps_per_allocation": 1000 * config["seed"]
                 * config["backends"]} for config in configs]


class Servers:
    """Which files there were when a sample was taken."""

    def __init__(self, folder):
        self.folder = folder
        self.there = []
        self.spoilt = 0

    def sample(self, side, usage, processes, ms, look):
        self.there.append({path.name for path in self.folder.iterdir()})
        return alloc.Sample(1, 4.0, None, None, (look(), look()))


def test_order(folder):
    own.FOLDER, own.BENCH = folder, folder / "results"
    own.BENCH.mkdir()
    (own.BENCH / "sim_own.json").write_text("[]")
    servers = Servers(folder)
    here = own.Rounds.__new__(own.Rounds)
    here.simulator, here.servers, here.rounds = Simulator(), servers, 2
    here.calibration, here.found = calibration([]), []
    here.calibration.measure = lambda rounds, quick=False: None
    here.calibration.look = lambda: (NEAR, 143)
    here.calibration.states = lambda: [NEAR]
    own.calibrate.document = lambda calibration, turn: document_of
    found = here.run()
    n = own.SAMPLES * 16
    check(len(found) == 2 * n and all(
        "1-predicted.json" in names and "1-calibrated.json" in names
        for names in servers.there[:n]) and all(
            "2-predicted.json" not in names for names in servers.there[:n])
          and all("2-predicted.json" in names for names in servers.there[n:]),
          "a round's prediction is written down before it is measured")
    check(not (own.BENCH / "sim_own.json").exists(),
          "results of an older run are gone")
    files = [json.loads((folder / f"1-{what}.json").read_text())
             for what in ("calibrated", "predicted", "measured")]
    dates = [file["date"] for file in files]
    check(dates == sorted(dates) and files[2]["predicted"] == dates[1],
          "all three have their date")
    check({one.predicted for one in found} == {2, 4},
          "the median of the seeds is what is predicted")


def test_committed():
    """docs/scaling: errors follow from samples, and these have the predictions
    that are beside them."""
    rows, rounds, said = (scaling_data.read(scaling_data.DOCS, name) for name
                          in ("own", "own-measured", "own-predicted"))
    if not rows:
        return
    errors = {}
    wrong = 0
    for one, document in zip(rounds, said, strict=True):
        wrong += one["predicted"] != document["date"]
        tables = {own_report.ALONE: document["alone"],
                  **{state["turn_ps"]: state["predicted"]
                     for state in document["states"]}}
        for found in one["samples"]:
            if found["predicted"] is None:
                continue
            where, side = found["configuration"], found["side"]
            ns = own.value_of(tables[found["state"]], where, side)
            wrong += abs(ns - found["predicted"]) > .01
            errors.setdefault((where, f"predicted {side}"), []).append(
                ns / found["ns"] - 1)
    check(wrong == 0, "each sample has the prediction of its round and state")
    cells = {(row["configuration"], row["side"]): row["ratio"] - 1
             for row in scaling_doc.own_cells(rows)}
    check(cells.keys() == errors.keys() and all(
        abs(median(errors[cell]) - cells[cell]) < .002 for cell in cells),
          "errors are those of the samples")


def touch(path, text, when):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(text))
    os.utime(path, (when, when))


def test_gather(folder):
    """build/'s results when they are newer, and of one run."""
    data, made = scaling_data, folder / "made"
    data.BENCH, data.DOCS = folder / "bench", folder / "docs"
    data.OWN = data.BENCH / "sim" / "own"
    data.fit.RESULT = data.BENCH / "sim" / "fit.json"
    for name in ("validation", "fitted", "own", "own-predicted",
                 "own-measured"):
        touch(data.DOCS / "scaling" / f"{name}.json", ["docs"], 1000)

    def gathered(result_at, fit_at, own_at=900):
        touch(data.BENCH / "sim.json", ["build"], result_at)
        touch(data.fit.RESULT, {"numbers": ["build"]}, fit_at)
        touch(data.BENCH / "sim_own.json", [], own_at)
        with contextlib.redirect_stderr(io.StringIO()):
            data.gather(made)
        return [data.read(made, name)
                for name in ("validation", "fitted", "own")]
    docs, build = ["docs"], ["build"]
    check(gathered(900, 800) == [docs] * 3, "what is older than docs/ is not"
                                            " gathered")
    check(gathered(1100, 800) == [build, build, docs], "what is newer is")
    check(gathered(1100, 1200) == [docs] * 3, "a fit of another validation is"
                                              " not")
    refused("an older program's results are refused", "older program",
            lambda: gathered(900, 800, 1100))


document_of = document(143, 8000)
test_states()
test_calibration()
test_known_states()
test_shapes()
test_cells()
test_document()
test_which()
test_verdict(test_report())
test_committed()
with tempfile.TemporaryDirectory() as name:
    test_order(Path(name))
with tempfile.TemporaryDirectory() as name:
    test_gather(Path(name))
print("done")
