#!/usr/bin/env python3
"""What predictions are compared with, on a table that can be worked out."""

import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from sim.py import baselines, predict  # noqa: E402

TABLE = {(8, "a"): 8, (16, "a"): 10, (24, "a"): 10, (32, "a"): 12,
         (8, "b"): 16, (16, "b"): 30, (24, "b"): 40, (32, "b"): 40}


def expect(found, wanted):
    if found != wanted:
        sys.exit(f"found {found!r} instead of {wanted!r}")


constant = baselines.constant(TABLE)
expect({constant[cell] for cell in TABLE if cell[1] == "a"}, {10})
expect({constant[cell] for cell in TABLE if cell[1] == "b"}, {35})

roofline = baselines.roofline(TABLE, [(8, "b"), (16, "a"), (24, "b")])
expect([roofline[n, "a"] for n in (8, 16, 24, 32)], [10, 10, 10, 10])
expect([roofline[n, "b"] for n in (8, 16, 24, 32)], [16, 32, 40, 40])

expect(baselines.errors(TABLE, roofline, [(8, "a"), (8, "b")]), [0.25, 0])
expect(baselines.ratios(TABLE, "a"),
       {(8, "b"): 2, (16, "b"): 3, (24, "b"): 4, (32, "b"): 40 / 12})
expect(baselines.knee(TABLE, "a"), 32)
expect(baselines.knee_of_plateau(TABLE, "a"), 16)
expect(baselines.knee(TABLE, "b"), 24)

expect(predict.steps(6), [1, 2, 4, 6])
expect(predict.steps(96), [1, 2, 4, 8, 16, 32, 64, 96])
expect(predict.stops_at([(1, 1.0), (2, 1.9), (4, 2.0), (8, 2.0)]), 2)
expect(predict.stops_at([(1, 1.0), (2, 2.0), (4, 4.0)]), None)
bands = [{"strategy": name, "low": low, "high": high}
         for name, low, high in (("slow", 1, 2), ("fast", 8, 9),
                                 ("middle", 4, 6), ("upper", 5, 7))]
expect(predict.ranks(bands), [["fast"], ["upper", "middle"], ["slow"]])
expect([s.name for s in predict.strategies(6)][-4:],
       ["batched, 256", "partitioned, 6", "partitioned, 18",
        "partitioned, 60"])
