#!/usr/bin/env python3
"""Checks of what needs no server: rows, verdicts, time boxes, sizes on machines of
all kinds, and the report made from rows that are known. Prints "ok - what" or
"not ok - what" for each, and "done" at the end; t/tools/bench.pl reads that.

usage: check.py FOLDER   (an empty one, for files)"""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import random
import re
import struct
import sys
import traceback
import zlib
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent)]

from bench.lib import box, paths, plot, report, results, rows, stats  # noqa: E402
import document  # noqa: E402
import scenarios  # noqa: E402
from machine import Machine  # noqa: E402
from scenarios import SCENARIOS  # noqa: E402

LARGE = Machine(384, 3 << 20, 2 << 20, 1 << 20)
SMALL = Machine(1, 2048, 8192, 1024)        # CPU, MB, MB, open files
NO_DISK = Machine(2, 16384, 2048, 1024)
MINUTES = 15                    # of a scenario

ROW = {"metric": "tps", "configuration": "8 clients", "side": "stock server",
       "rounds": 7, "median": 5.0, "min": 4, "max": 6.5, "ratio": 1.1,
       "ratio_min": 0.9, "ratio_max": 1.3, "ratio_low": 1.0, "ratio_high": 1.2}

failed = False


def ok(good, what):
    global failed
    failed = failed or not good
    print(f"{'ok' if good else 'not ok'} - {what}", flush=True)


def refused(call, *words):
    """The message, if call() is refused with one that has all these words."""
    try:
        call()
    except paths.BenchError as error:
        return all(word in str(error) for word in words) and str(error)
    return False


def quiet(call):
    with contextlib.redirect_stdout(io.StringIO()):
        return call()


# ---- rows


def check_rows(folder):
    rows.check([ROW])
    without = {key: value for key, value in ROW.items() if key != "ratio_low"}
    nulls = {**ROW, **dict.fromkeys(rows.RATIOS)}
    rows.check([nulls])
    for what, wrong, words in (
            ("nothing", [], "no rows"),
            ("no list", {"metric": 1}, "no rows"),
            ("no object", [3], "not an object"),
            ("a key that is missing", [without], "no ratio_low"),
            ("a key that is unknown", [{**ROW, "note": "x"}], "unknown 'note'"),
            ("an empty name", [{**ROW, "side": " "}], "as side"),
            ("no rounds", [{**ROW, "rounds": 0}], "as rounds"),
            ("rounds that are no number", [{**ROW, "rounds": True}], "as rounds"),
            ("a figure in words", [{**ROW, "min": "4"}], "as min"),
            ("what is no figure", [{**ROW, "max": float("nan")}], "as max"),
            ("an endless figure", [{**ROW, "ratio": float("inf")}], "as ratio"),
            ("a median above max", [{**ROW, "median": 7}], "not between"),
            ("half of the ratios", [{**ROW, "ratio": None}], "as ratio"),
            ("a ratio beside its interval", [{**ROW, "ratio": 1.25}], "interval"),
            ("an interval beyond its range", [{**ROW, "ratio_high": 1.4}],
             "interval"),
            ("a row twice", [ROW, {**ROW, "rounds": 3}], "row 2")):
        ok(refused(lambda: rows.check(wrong), words), f"rows: {what} is refused")

    paths.BENCH = report.BENCH = folder
    quiet(lambda: report.write_json("good", [ROW, {**nulls, "side": "b"}]))
    ok(rows.read(folder / "good.json")[0] == ROW, "rows: JSON comes back")
    lines = (folder / "good.csv").read_text().splitlines()
    ok(lines[0] == ",".join(rows.KEYS)
       and lines[1] == ",".join(str(ROW[key]) for key in rows.KEYS)
       and lines[2].endswith(",,,,,"), "rows: the same in CSV, null is empty")
    ok(refused(lambda: quiet(lambda: report.write_json("good", [without])),
               "no ratio_low")
       and rows.read(folder / "good.json")[0] == ROW,
       "rows: what is refused leaves the files alone")
    (folder / "bad.json").write_text('[{"metric": ')
    ok(refused(lambda: rows.read(folder / "bad.json"), "bad.json", "not JSON"),
       "rows: half a file is an error")


# ---- intervals and verdicts


def check_verdicts(folder):
    def row(low, high, count=8):
        return {**ROW, "rounds": count, "ratio": (low + high) / 2,
                "ratio_low": low, "ratio_high": high}

    for what, found, expected in (
            ("above 1", (row(1.05, 1.2), results.HIGHER), results.BETTER),
            ("above 1, lower is better", (row(1.05, 1.2), results.LOWER),
             results.WORSE),
            ("below 1", (row(0.8, 0.95), results.HIGHER), results.WORSE),
            ("below 1, lower is better", (row(0.8, 0.95), results.LOWER),
             results.BETTER),
            ("around 1", (row(0.95, 1.2), results.HIGHER),
             results.NO_DIFFERENCE),
            ("1 at its end", (row(1.0, 1.2), results.HIGHER),
             results.NO_DIFFERENCE),
            ("5 rounds", (row(1.05, 1.2, 5), results.HIGHER), results.TOO_FEW),
            ("within the control's", (row(1.05, 1.2), results.HIGHER,
                                      row(1.0, 1.1)), results.NO_DIFFERENCE),
            ("beyond the control's", (row(1.15, 1.2), results.HIGHER,
                                      row(1.0, 1.1)), results.BETTER),
            ("control on the other side", (row(1.05, 1.2), results.HIGHER,
                                           row(0.8, 0.9)), results.BETTER),
            ("no ratio", ({**ROW, "ratio": None}, results.HIGHER), None)):
        ok(results.verdict(*found) == expected, f"verdict: {what}: {expected}")

    draw = random.Random(39)
    hits = 0
    for _ in range(200):
        low, high = stats.interval([draw.gauss(1, 0.1) for _ in range(9)])
        hits += low <= 1 <= high
    ok(hits >= 180, f"interval: {hits} of 200 hold the true median")
    samples = stats.Samples("a")
    for i, (base, value) in enumerate(((10, 11), (20, 26), (40, 48))):
        samples.add("tps", "c", "a", i, base)
        samples.add("tps", "c", "b", i, value)
    found = samples.rows()[1]
    ok(abs(found["ratio"] - 1.2) < 1e-9 and found["ratio_min"] == 1.1
       and found["ratio_low"] == 1.1 and found["ratio_high"] == 1.3,
       "samples: ratios within rounds, and their interval")
    ok(refused(lambda: without_matplotlib(plot.need), "python3-matplotlib"),
       "plot: says what is missing")
    ok(refused(lambda: plot.write("/x", [plot.Lines(
        "t", {"a": [(0, 1), (1, 2)]}, "x", "y")]), "logarithmic"),
       "plot: 0 has no place on a logarithmic axis")
    check_plot(folder)


def check_plot(folder):
    panels = [
        plot.Ratios("r", [("a", 0.1, 0.05, 0.2, "x"), ("", 7, 5, 9, "y"),
                          ("b", 1, None, None, "x")], log=True),
        plot.Lines("l", {"x": [(1, 1, 0.9, 1.1), (9, 2, 1.5, 3)],
                         "y": [(1, 2), (9, 1)]}, "x", "y", reference=1),
        plot.Lines("m", {"x": [(1, 10, 5, 20, 8, 12), (2, 1000, 9, 9e4, 99,
                                                         9e3)]}, "x", "y",
                   log_x=False, log_y=True),
        plot.Bars("b", {"x": [("a", 1, 0.5, 2), ("b", 3, 2, 4)],
                        "y": [("a", 2), ("b", 1)]}, "y"),
        plot.Timeline("t", {"x": [(0, 1, 5), (2, 3, 6)],
                            "y": [(1, 2, 4)]}, "y", marks=[(1, "here")])]
    written = [path.read_bytes() for name in ("one", "two") for path in
               plot.write(folder / name, panels, "all", quiet=("y",))]
    ok(png(folder / "one.png") and written[:2] == written[2:]
       and not re.search(rb'id="p[0-9a-f]{10}"', written[1]),
       "plot: all kinds, twice the same")



def without_matplotlib(call):
    kept = {name: module for name, module in sys.modules.items()
            if name.split(".")[0] == "matplotlib"}
    try:
        sys.modules.update(dict.fromkeys([*kept, "matplotlib"]))
        call()
    finally:
        del sys.modules["matplotlib"]
        sys.modules.update(kept)


# ---- time boxes


def check_boxes():
    def rounds(minutes, most, length, parts=1):
        clock = [report.begin()]
        taken = []
        for round_ in box.Box(minutes, lambda: clock[0]).rounds(most, parts):
            taken.append(round_)
            clock[0] += length
        return taken

    for what, found, expected in (
            ("without an end", rounds(None, 9, 1000), 9),
            ("as many as have room", rounds(2, 100, 13), 9),
            ("no more than asked for", rounds(60, 4, 1), 4),
            ("at least two", rounds(1, 100, 500), 2),
            ("a third of it", rounds(3, 100, 10, 3), 6)):
        ok(found == list(range(expected)),
           f"box: {what}: {expected} rounds")
    ok(refused(lambda: box.Box(0), "--minutes"), "box: not of nothing")


# ---- sizes


def program(name):
    """A bench's run, as a module."""
    folder = paths.ROOT / "bench" / name
    loader = importlib.machinery.SourceFileLoader(f"bench_{name}",
                                                  str(folder / "run"))
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_loader(loader.name, loader))
    # its own modules, which benches call the same
    sys.path.insert(0, str(folder))
    sys.modules.pop("results", None)
    loader.exec_module(module)
    sys.path.remove(str(folder))
    return module


class Programs(dict):
    def __missing__(self, name):
        return self.setdefault(name, program(name))

    def accept(self, scenario, plan):
        """Does the bench take a plan's arguments? If not, what it says."""
        kept, sys.argv = sys.argv, [scenario.bench,
                                    *map(str, plan.arguments)]
        said = io.StringIO()
        try:
            with contextlib.redirect_stderr(said):
                self[scenario.bench].arguments()
            return None
        except SystemExit:
            return said.getvalue().strip()
        finally:
            sys.argv = kept


def value(plan, option):
    """What follows an option, up to the next one."""
    found = []
    for argument in map(str, plan.arguments[plan.arguments.index(option) + 1:]):
        if argument.startswith("--"):
            break
        found.append(argument)
    return found


def plans(machine, minutes=MINUTES, factor=None):
    factor = factor or scenarios.factor_of(machine)
    return {name: scenario.plan(factor, machine, minutes)
            for name, scenario in SCENARIOS.items()}


def check_sizes():
    ok(scenarios.factor_of(LARGE) == 1, "factor: 1 for 384 CPUs and 3 TB")
    large = plans(LARGE)
    ok(value(large["pgbench_ro"], "--scale") == ["3000"]
       and value(large["pgbench_rw"], "--clients") == [
           "64", "128", "256", "384", "512"]
       and value(large["pgbench_ro"], "--pool-percent") == ["71"],
       "sizes: pgbench is the thread's, with factor 1")
    hb176 = plans(Machine(176, 700 << 10, 1 << 20, 1 << 20))
    ok(value(hb176["scans"], "--clients") == ["8", "16", "32", "64", "96",
                                              "128"],
       "sizes: the thread's clients scan on a machine like its own")
    ok(value(large["copy"], "--mb") == ["1024"]
       and value(large["copy"], "--writers") == ["1", "4", "16"]
       and value(large["insert"], "--connections")[-1] == "2000",
       "sizes: COPY and connections are the threads', with factor 1")
    small = plans(SMALL)
    ok(scenarios.factor_of(SMALL) == 2048 / (1 << 20)
       and scenarios.factor_of(Machine(384, 3 << 20, 65 << 10, 1 << 20))
       == 64 / 512, "factor: the smallest resource decides")
    ok(value(small["scans"], "--clients") == ["8", "16"]
       and all(int(found) >= 1 for found in value(small["pgbench_ro"],
                                                  "--clients")),
       "sizes: the least ones hold on one CPU")
    ok(int(value(small["insert"], "--connections")[-1]) <= 1024 - 200,
       "sizes: connections fit into the open files that are allowed")
    ok(scenarios.problem(plans(NO_DISK)["copy"], NO_DISK)
       and "MB of disk" in scenarios.problem(plans(NO_DISK)["copy"], NO_DISK),
       "sizes: a disk that is too small is said")
    programs = Programs()
    check_everywhere(programs)
    check_steps(programs, large)


def check_everywhere(programs):
    """Machines of all kinds: no plan that its bench or the machine refuses."""
    draw = random.Random(7)
    machines = [LARGE, SMALL, *(Machine(
        cpus, max(2048, int(cpus * 2 ** draw.uniform(9, 14))),
        max(8192, int(cpus * 2 ** draw.uniform(6, 16))),
        draw.choice((1024, 4096, 1 << 20)))
        for cpus in (draw.choice((1, 2, 3, 8, 16, 48, 96, 192, 512, 1024))
                     for _ in range(60)))]
    wrong = []
    for machine in machines:
        for minutes in (None, 0.5, MINUTES, 600):
            for name, plan in plans(machine, minutes).items():
                problem = (scenarios.problem(plan, machine)
                           or programs.accept(SCENARIOS[name], plan))
                if problem:
                    wrong.append(f"{machine}, {name}: {problem}")
    for line in wrong[:5]:
        print(f"# {line}")
    ok(not wrong, f"sizes: valid on {len(machines)} machines")
    # more of a machine is never less of a scenario
    steps = [plans(LARGE, MINUTES, factor)
             for factor in (0.001, 0.01, 0.1, 0.5, 1, 2, 4)]
    shrunk = [f"{name}: {a[name]} {b[name]}"
              for a, b in zip(steps, steps[1:]) for name in a
              # whole megabytes a client make a little less
              if a[name].disk_mb > 1.02 * b[name].disk_mb
              or a[name].memory_mb > 1.02 * b[name].memory_mb]
    for line in shrunk:
        print(f"# {line}")
    ok(not shrunk, "sizes: they grow with the factor")


def check_steps(programs, large):
    """Do plans call configurations as the benches do?"""
    pgbench, scans, copy = map(programs.__getitem__,
                               ("pgbench", "scans", "copy"))
    beyond, write = pgbench.SCENARIOS["beyond"], pgbench.SCENARIOS["write"]
    ok(large["pgbench_ro"].steps[64] == pgbench.configuration(beyond, 64)
       and large["pgbench_rw"].steps[512] == pgbench.configuration(write, 512)
       and plans(SMALL)["pgbench_ro"].steps[64] == pgbench.configuration(
           beyond, 1)
       and large["pgbench_memory"].steps[128] == pgbench.configuration(
           pgbench.SCENARIOS["memory"], 128)
       and plans(SMALL)["scans"].steps[16] == str(scans.Cell(16, 60, 64))
       and large["copy"].steps[1] == copy.where(1)
       and large["copy"].steps[16] == copy.where(16),
       "steps: configurations are called as in the benches")
    short = [f"{name}: {row[0]}" for name, scenario in SCENARIOS.items()
             for row in scenario.thread.figures if row[0] not in
             large[name].steps]
    ok(not short, "steps: each of the threads' has a configuration")


# ---- the report


def canned(scenario, plan, low, high):
    """Rows as the bench would write them, of eight rounds."""
    wheres = list(dict.fromkeys(plan.steps.values())) or (
        [f"again, random, {held} held" for held in (1, 8, 64, 512)]
        if scenario.bench == "pins" else
        [f"{scenario.name}, {n} connections" for n in (4, 20, 130)])
    found = []
    for metric in scenario.metrics:
        for where in wheres:
            for side in (scenario.baseline, scenarios.CONTROL,
                         *scenario.sides):
                a, b = ((1, 1) if side == scenario.baseline else (0.99, 1.01)
                        if side == scenarios.CONTROL else (low, high))
                found.append({
                    "metric": metric.name, "configuration": where,
                    "side": side, "rounds": 8, "median": 500 * (a + b),
                    "min": 500, "max": 3000, "ratio": (a + b) / 2,
                    "ratio_min": a, "ratio_max": b, "ratio_low": a,
                    "ratio_high": b})
    return found


def state_of(all_plans, statuses):
    return {"written": "2026-01-02 03:04 UTC", "quick": False,
            "minutes": 120, "minutes_taken": 118.2, "factor": 1,
            "factor_given": False, "machine": [["CPU", "one | two"]],
            "scenarios": [{
                "name": name, "arguments": list(map(str, plan.arguments)),
                "sizes": plan.sizes, "status": statuses.get(name, "done"),
                "steps": {str(key): where for key, where
                          in plan.steps.items()},
                "seconds": 60.0} for name, plan in all_plans.items()]}


def check_report(folder):
    paths.BENCH = folder / "nothing"
    all_plans = plans(LARGE)
    for name, plan in all_plans.items():
        scenario = SCENARIOS[name]
        bounds = {"scans": (2.5, 3), "copy": (0.7, 0.9),
                  "pgbench_rw": (0.98, 1.02)}.get(name, (1.05, 1.2))
        (folder / f"{name}.json").write_text(rows.to_json(
            canned(scenario, plan, *bounds)))
    (folder / "insert.log").write_text("[1.0 s] working\nit broke\n")
    state = state_of(all_plans, {"insert": "failed: it broke"})
    (folder / document.STATE).write_text(json.dumps(state))
    text = document.write(folder, document.read_state(folder)).read_text()
    for name in SCENARIOS:
        part = section(text, name)
        picture = f"]({name}.png)"
        if name == "insert":
            ok("**failed: it broke**" in part and picture not in part
               and "\nit broke\n" in part, "report: insert has failed")
            continue
        ok(all(word in part for word in (
            "bench/", picture, f"({name}.svg)", f"({name}.json)",
            f"({name}.csv)", SCENARIOS[name].thread.author))
           and png(folder / f"{name}.png")
           and "<svg" in (folder / f"{name}.svg").read_text(),
           f"report: {name} has tables, a picture, raw figures, its thread")
    ok("2.750 [2.500 3.000] **better**" in section(text, "scans")
       and "0.800 [0.700 0.900] **better**" in section(text, "copy")
       and "1.000 [0.980 1.020] no difference shown" in section(
           text, "pgbench_rw")
       and "**worse**" in section(text, "pins"), "report: verdicts")
    ok("| 64 | 31,457 | 36,353 | 1.16 | read-only, beyond memory, 64 clients |"
       " 1.125 [1.050 1.200]" in section(text, "pgbench_ro"),
       "report: the thread's figures beside ours")
    ok("**Not all scenarios have results: insert.**" in text
       and "| CPU | one \\| two |" in text
       and text.count("\n| [") == sum(
           len(scenario.sides) for scenario in SCENARIOS.values())
       - len(SCENARIOS["insert"].sides) + 1,
       "report: a summary row for each side, and what has failed")
    # the others' pictures would take as long again
    state["scenarios"] = [run for run in state["scenarios"]
                          if run["name"] in ("scans", "copy")]
    names = ["scans.png", "scans.svg", "copy.png", "copy.svg"]
    before = [(folder / name).read_bytes() for name in names]
    check_simulator(folder, state)
    ok(before == [(folder / name).read_bytes() for name in names],
       "report: the same pictures again, to the byte")
    ok("Simulator" not in text, "report: nothing of a simulator that did"
       " not run")
    state["scenarios"][0]["name"] = "other"
    ok(refused(lambda: document.write(folder, state), "other"),
       "report: an unknown scenario is refused")
    (folder / "scans.json").write_text("[]")
    state["scenarios"][0]["name"] = "scans"
    ok(refused(lambda: document.write(folder, state), "scans.json", "no rows"),
       "report: results that are none are refused")


def check_simulator(folder, state):
    paths.BENCH = folder / "bench"
    (paths.BENCH / "sim").mkdir(parents=True)
    (paths.BENCH / "sim.json").write_text("[]")
    (paths.BENCH / "sim" / "knees.png").write_bytes(
        (folder / "scans.png").read_bytes())
    text = document.write(folder, state).read_text()
    ok("(sim_knees.png)" in section(text, "Simulator")
       and png(folder / "sim_knees.png"), "report: the simulator's picture")


def section(text, title):
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def png(path):
    """Is it a whole PNG, with something drawn in it?"""
    data = path.read_bytes()
    if data[:8] != b"\x89PNG\r\n\x1a\n":
        return False
    at, size, body, end = 8, None, b"", False
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        chunk = data[at + 8:at + 8 + length]
        (crc,) = struct.unpack(">I", data[at + 8 + length:at + 12 + length])
        if zlib.crc32(kind + chunk) != crc:
            return False
        if kind == b"IHDR":
            size = struct.unpack(">II", chunk[:8])
        body += chunk if kind == b"IDAT" else b""
        end = kind == b"IEND"
        at += 12 + length
    pixels = zlib.decompress(body)
    return (end and size[0] > 400 and size[1] > 150
            and len(pixels) == size[1] * (1 + 4 * size[0])
            and len(set(pixels)) > 16)


def main():
    folder = Path(sys.argv[1])
    (folder / "report").mkdir()
    for check, *arguments in ((check_rows, folder), (check_verdicts, folder),
                              (check_boxes,), (check_sizes,),
                              (check_report, folder / "report")):
        try:
            check(*arguments)
        except Exception:
            for line in traceback.format_exc().splitlines():
                print(f"# {line}")
            ok(False, f"{check.__name__} comes to its end")
    print("done")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
