"""The rounds of `run own`, with a machine, a simulator and servers that are made
up: which prediction a sample is compared with, and what is left out. Prints
"not ok" for what is wrong, "done" at the end."""

import json
import sys
import tempfile
from pathlib import Path
from statistics import median

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from lib import alloc  # noqa: E402
from sim.lib import calibrate, own, own_report, scaling_doc  # noqa: E402
from sim.lib import states  # noqa: E402

NEAR, FAR, NEW = 10_000, 28_000, 110_000
ASKED = {"ping_pong": 0, "transfer_load": 7000, "transfer_xadd": 7000,
         "transfer_both": 8000, "contended_xadd": 7000, "contended_cas": 9000,
         "together": 143, "xadd_hit": 2300, "cas_hit": 2700, "load_hit": 90,
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


def calibration(turns):
    """Of two CPUs; turns: of the looks, two for each sample."""
    here = calibrate.Calibration()
    made = calibrate.topology.Cpu
    here.cpus = [made(n, (n,), (0, 1), 0, 0) for n in (0, 1)]
    here.pairs = {"group": [(0, 1)]}
    machine = Machine()
    machine.turns = iter(turns)
    here.ask = machine.ask
    return here


def test_states():
    check(states.same(26_000, 30_000) and not states.same(10_300, 26_000),
          "turns of one state, and of two")
    check(states.middles([28, 10, 30, 29, 11]) == [29, 10.5],
          "the most frequent state is the first")


def test_calibration():
    every = [NEAR, FAR, NEAR, NEAR, FAR, FAR]
    here = calibration(every)
    for value in (5, 7, 9):
        here.ask = lambda what, *cpus, value=value, turns=here.ask: (
            turns(what) if what == "ping_pong" else value)
        here.sample("both", "transfer_both", 0, 1)
    check(here.unsteady == 1, "a sample between two states is dropped")
    check(here.of("both", NEAR) == [7] and here.of("both", FAR) == [9],
          "the others belong to one")


def test_known_states():
    here = calibration([])
    here.turns = [NEAR] * 5 + [FAR] * 5
    for key in (*calibrate.OF_NEIGHBOURS, "load_group", "ping_pong_group"):
        here.samples[key] = [(NEAR, 1)] * 3 + [(FAR, 1)] * 2
    check(here.states() == [NEAR], "of a state with too few samples, nothing is"
                                   " said")
    for key in here.samples:
        here.samples[key] = [(NEAR, 1)] * 3 + [(FAR, 1)] * 3
    check(sorted(here.states()) == [NEAR, FAR], "with enough, it is known")
    here.samples["both"] = [(NEAR, 1)] * 3
    check(here.states() == [NEAR] and here.only("both", FAR) == [],
          "nor of one with none")


def document(together, both):
    here = calibration([])
    rest = {"load_group": 7000, "xadd_group": 7000, "ping_pong_group": NEAR}
    for key in calibrate.ALONE:
        here.samples[key] = [(None, ASKED.get(calibrate.ALONE[key],
                                              1_000_000_000))]
    for key in ("memory_local", "wakeup_ps", "wake_call_ps",
                "bandwidth_bytes_per_s"):
        here.samples[key] = [(None, 10_000_000)]
    for key, value in {**rest, "contended_xadd": 5000, "contended_cas": 9000,
                       "together_percent": together, "both": both}.items():
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
    (near, few), (far, some) = own_report.by_state(found)
    check(few == [] and near == NEAR and far == FAR
          and some[0].measured == (45, 50, 55), "each state by itself")
    rows = own_report.rows(found)
    own_report.lines.rows.check(rows)
    count = {row["side"]: row["median"] for row in rows
             if row["metric"] == "samples"}
    check(count == {"changed": 1, "unknown": 1, "all": 6},
          "what is left out is counted")
    check(len(scaling_doc.own_cells(rows)) == 1,
          "a headline is no figure of a round or a state")
    text = "\n".join(scaling_doc.own_table(rows))
    check("Of 6 samples, 1" in text and "| 3 | 1 | " in text,
          "docs/scaling.md tells of rounds, and of what is left out")
    return found


def test_verdict(found):
    wanted = []
    own_report.lines.write_json = lambda name, rows: wanted.append(name)
    own_report.lines.say = lambda text="": None
    check(own_report.report(found), "5 % off is as wanted")
    check(not own_report.report(found + [sample(4, 20, FAR, FAR)] * 9),
          "150 % off is not")
    check(wanted == ["sim_own"] * 2, "the result is written in either case")


class Simulator:
    def run_all(self, configs):
        return [{"ps_per_allocation": 1000 * config["seed"]
                 * config["backends"]} for config in configs]


class Servers:
    """Which files there were when a sample was taken."""

    def __init__(self, folder):
        self.folder = folder
        self.there = []

    def sample(self, side, usage, processes, ms, look):
        self.there.append({path.name for path in self.folder.iterdir()})
        return alloc.Sample(1, 4.0, None, None, (look(), look()))


def test_order(folder):
    own.FOLDER = folder
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
    files = [json.loads((folder / f"1-{what}.json").read_text())
             for what in ("calibrated", "predicted", "measured")]
    dates = [file["date"] for file in files]
    check(dates == sorted(dates) and files[2]["predicted"] == dates[1],
          "all three have their date")
    check({one.predicted for one in found} == {2, 4},
          "the median of the seeds is what is predicted")


document_of = document(143, 8000)
test_states()
test_calibration()
test_known_states()
test_document()
test_which()
test_verdict(test_report())
with tempfile.TemporaryDirectory() as name:
    test_order(Path(name))
print("done")
