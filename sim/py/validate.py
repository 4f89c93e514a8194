"""Compares the simulator with what others have measured."""

import time

from bench.lib import report
from bench.lib.paths import BENCH

from . import validate_freund, validate_lwlock, validate_scans

# In the order in which they are shown. A part has Comparison(simulator, quick)
# with show(), rows() and wanted().
PARTS = {"freund": validate_freund, "scans": validate_scans,
         "lwlock": validate_lwlock}


def validate(simulator, quick, parts):
    """Shows it and writes build/bench/sim.json, or sim_part.json if it is not
    all; is everything as wanted?"""
    begin = time.monotonic()
    rows, wanted = [], []
    for name in parts:
        report.progress(name)
        found = PARTS[name].Comparison(simulator, quick)
        found.show()
        rows += found.rows()
        wanted += found.wanted()
    report.say()
    report.say(f"{simulator.asked} runs of the simulator,"
               f" {simulator.found} of them remembered;"
               f" {time.monotonic() - begin:.0f} s")
    met = report.verdict(wanted)
    whole = not quick and tuple(parts) == tuple(PARTS)
    report.write_json("sim" if whole else "sim_part", rows)
    return met


def kept():
    """The rows of the last whole validation, as sim/results has them."""
    from bench.lib import rows
    return [{"metric": row["metric"], "configuration": row["configuration"],
             "side": row["side"], "value": row["median"],
             "ratio": row["ratio"]} for row in rows.read(BENCH / "sim.json")]
