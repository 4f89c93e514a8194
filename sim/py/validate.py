"""Compares the simulator with what others have measured."""

import importlib
import time

from bench.lib import report
from bench.lib.paths import BENCH, ROOT

from . import pictures

# In the order in which they are shown. A part has Comparison(simulator, quick)
# with show(), rows() and wanted().
# Others must be asked for.
PARTS = ("validate_freund", "validate_scans", "validate_pgbench",
         "validate_lwlock")


def validate(simulator, quick, parts=PARTS):
    """Shows all of it and writes build/sim.json, or sim_part.json if it
    is not all; is everything as wanted?"""
    begin = time.monotonic()
    rows, wanted = [], []
    for name in parts:
        part = importlib.import_module(f"sim.lib.{name}")
        report.progress(f"{name}")
        found = part.Comparison(simulator, quick)
        found.show()
        rows += found.rows()
        wanted += found.wanted()
        if name == "validate_scans":
            drawn = pictures.scans_picture(found, BENCH / "sim")
            report.say("pictures: " + ", ".join(
                str(path.relative_to(ROOT)
                    if path.is_relative_to(ROOT) else path)
                for path in drawn))
    report.say()
    report.say(f"{simulator.asked} runs of the simulator,"
               f" {simulator.found} of them remembered;"
               f" {time.monotonic() - begin:.0f} s")
    met = report.verdict(wanted)
    whole = not quick and tuple(parts) == PARTS
    report.write_json("sim" if whole else "sim_part", rows)
    return met
