#!/usr/bin/env python3
"""cells.py PROGRAM NUMBERS CELL...: simulates cells of the table of concurrent scans,
such as "64 master", with numbers that have been fitted (JSON)."""

import json
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.lib import report  # noqa: E402
from sim.py import binary, machine, published, scans  # noqa: E402


def main():
    numbers = json.loads(sys.argv[2])
    simulator = binary.Simulator(Path(sys.argv[1]), fresh=True)
    here = machine.named(published.fit_plan()["machine"])
    cells = [(int(clients), column) for clients, column
             in (cell.split() for cell in sys.argv[3:])]
    for (clients, column), tps in scans.simulate(simulator, here, cells,
                                                 numbers).items():
        print(f"{clients} clients, {column}: {tps:.4f}")
    return 0


report.run(main)
