"""Predictions, and the baselines of the validation, on small tables."""

import unittest

from sim.py import baselines, machine, predict, tables
from sim.test import built

TABLE = {(8, "a"): 8, (16, "a"): 10, (24, "a"): 10, (32, "a"): 12,
         (8, "b"): 16, (16, "b"): 30, (24, "b"): 40, (32, "b"): 40}
CLIENTS = (8, 16, 24, 32)

# A server that was built in another way, or a small change of what is played
TOLERANCE = 0.05


class Baselines(unittest.TestCase):
    def test_constant(self):
        found = baselines.constant(TABLE)
        self.assertEqual([found[n, "a"] for n in CLIENTS], [10] * 4)
        self.assertEqual([found[n, "b"] for n in CLIENTS], [35] * 4)

    def test_roofline(self):
        found = baselines.roofline(TABLE, [(8, "b"), (16, "a"), (24, "b")])
        self.assertEqual([found[n, "a"] for n in CLIENTS], [10] * 4)
        self.assertEqual([found[n, "b"] for n in CLIENTS], [16, 32, 40, 40])
        self.assertEqual(
            baselines.errors(TABLE, found, [(8, "a"), (8, "b")]), [0.25, 0])

    def test_ratios(self):
        self.assertEqual(baselines.ratios(TABLE, "a"), {
            (8, "b"): 2, (16, "b"): 3, (24, "b"): 4, (32, "b"): 40 / 12})

    def test_knees(self):
        self.assertEqual(baselines.knee(TABLE, "a"), 32)
        self.assertEqual(baselines.knee_of_plateau(TABLE, "a"), 16)
        self.assertEqual(baselines.knee(TABLE, "b"), 24)


class Predictions(unittest.TestCase):
    def test_steps(self):
        self.assertEqual(predict.steps(6), [1, 2, 4, 6])
        self.assertEqual(predict.steps(96), [1, 2, 4, 8, 16, 32, 64, 96])

    def test_stops_at(self):
        line = [(1, 1.0), (2, 1.9), (4, 2.0), (8, 2.0)]
        self.assertEqual(predict.stops_at(line), 2)
        self.assertIsNone(predict.stops_at([(1, 1.0), (2, 2.0), (4, 4.0)]))

    def test_strategies(self):
        self.assertEqual(
            [one.name for one in predict.strategies(6)][-4:],
            ["batched, 256", "partitioned, 6", "partitioned, 18",
             "partitioned, 60"])

    def test_merged(self):
        """Fresh rows take the places of old ones, and no other changes."""
        def data(**rates):
            return {"machines": [{
                "machine": "m6i-metal", "nodes": 2, "strategies": [
                    {"strategy": name, "allocations_per_s": rate}
                    for name, rate in rates.items()]}]}

        kept = data(**{"stock": 1, "batched, 64": 2, "partitioned, 4": 3})
        found = predict.merged(kept, data(**{"clock2q": 5, "batched, 64": 4}))
        self.assertEqual(found, data(**{
            "stock": 1, "clock2q": 5, "batched, 64": 4, "partitioned, 4": 3}))

    def test_results_are_what_is_predicted_today(self):
        """64 backends of m6i-metal, as in sim/results"""
        simulator = built.simulator()
        here = machine.named("m6i-metal")
        kept = next(found for found in tables.read("predictions")["machines"]
                    if found["machine"] == here.name)
        lines = {one["strategy"]: dict(one["line"])
                 for one in kept["strategies"]}
        self.assertEqual(len(lines), 13)
        for strategy in predict.strategies(here.nodes()):
            today = predict.figures(predict.run(
                simulator, predict.config(here, strategy, 64)))
            with self.subTest(strategy.name):
                self.assertAlmostEqual(
                    today["allocations_per_s"] / lines[strategy.name][64], 1,
                    delta=TOLERANCE)
