#!/usr/bin/env python3
"""predictions.py PROGRAM MACHINE BACKENDS: what the simulator predicts today, beside
what docs/scaling has of it, allocations a second of each strategy."""

import json
import sys
from pathlib import Path

sys.dont_write_bytecode = True
TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP))

from bench.lib import report  # noqa: E402
from sim.py import binary, machine, predict  # noqa: E402


def main():
    program, name, backends = sys.argv[1:]
    backends = int(backends)
    data = json.loads((TOP / "docs" / "scaling" / "predictions.json")
                      .read_text())
    lines = {one["strategy"]: {at["backends"]: at["allocations_per_s"]
                               for at in one["line"]}
             for found in data["machines"] if found["machine"] == name
             for one in found["strategies"]}
    simulator = binary.Simulator(Path(program), fresh=True)
    here = machine.named(name)
    for strategy in predict.strategies(here.nodes()):
        today = predict.figures(predict.run(
            simulator, predict.config(here, strategy, backends)))
        print(f"{strategy.name}: {today['allocations_per_s']:.0f}"
              f" {lines[strategy.name][backends]:.0f}")
    return 0


report.run(main)
