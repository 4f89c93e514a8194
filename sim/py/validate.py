"""Compares the simulator with what others have measured."""

import time

from bench.lib import report

from . import validate_freund, validate_lwlock, validate_scans

# In the order in which they are shown. A part has Comparison(simulator, quick)
# with show(), rows() and wanted().
PARTS = {"freund": validate_freund, "scans": validate_scans,
         "lwlock": validate_lwlock}


def validate(simulator, quick, names):
    """Returns (results of each part, is everything as wanted?)."""
    begin = time.monotonic()
    data, wanted = {}, []
    for name in names:
        report.progress(name)
        found = PARTS[name].Comparison(simulator, quick)
        found.show()
        data[name] = found.data()
        wanted += found.wanted()
    report.say()
    report.say(f"{simulator.asked} runs of the simulator,"
               f" {simulator.found} of them remembered;"
               f" {time.monotonic() - begin:.0f} s")
    return data, report.verdict(wanted)
