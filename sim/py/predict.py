"""Predictions for machines: victims per second, by strategy and number of
backends. A backend has some work to do between two victims.

There is at most one backend per core: two threads of a core do not do twice its
work, but would in the simulator."""

from dataclasses import dataclass

from bench.lib import report
from bench.lib.paths import BenchError

# Large machines of the threads, and two hypothetical ones: the whole curve
CURVES = ("m6i-metal", "r8i-metal-96xl", "c8i-metal-48xl", "hb176", "epyc512",
          "epyc1024")
# Small ones: one backend, and one on each core
SMALL = ("gold5215", "vondra-xeon", "vondra-ryzen", "borisov32")

# Between two allocations: about what copying a page from the kernel's cache
# takes, 8 kB at some 8 GB/s. A backend that asks less often waits less.
WORK_PS = 1_000_000
# Usage count that buffers are given back with. At the start they have any up to
# that, so the hand looks at USAGE + 1 buffers per victim.
USAGE = 2
BATCHES = (1, 4, 16, 64, 256)
PARTITIONS = (1, 4, 16, 64)
MOST_PARTITIONS = 64            # PGSWEEP_MAX_PARTITIONS
AUTO_BATCH = 64                 # of a lease, if no number is given
STEP = 2                        # from one number of backends to the next

# The pool: no lease is cut because of it, and the hand does not come round
# while a lease is in use.
BUFFERS_PER_LEASED = 10
C2Q_BUFFERS_PER_LEASED = 16     # leases of slots: 16, half of N/32 for all
LEAST_BUFFERS = 16384
# Leases begin with one buffer and double, so the warm-up is more than two; and
# all processes must have begun, which is checked.
WARM_LEASES, MEASURED_LEASES = 2.5, 1
LEAST_WARMUP, LEAST_ALLOCATIONS = 8192, 20000
LEAST_EACH = 50                 # allocations of a backend, measured
TRIES = 4                       # with twice the warm-up each
JITTER_PERCENT = 10             # of the work between

# What a band is made of: latencies in per cent, placement, seed
POINT = (100, "scatter", 1)
# and keep_ps, of which little is known: half, and twice
BAND = (POINT, (85, "scatter", 1), (115, "scatter", 1), (100, "random", 1),
        (85, "random", 2), (115, "random", 3))
KEEP_BAND = (0.5, 2)
FLAT = 0.9                      # of the largest rate: no longer scaling


@dataclass(frozen=True)
class Strategy:
    name: str
    settings: tuple
    batch: int
    buffers_per_leased: int = BUFFERS_PER_LEASED

    def config(self):
        return dict(self.settings)


def strategies(nodes):
    found = [Strategy("stock", (("strategy", "stock"),), 1),
             Strategy("upstream batched, 64", (("strategy", "upstream_batched"),
                                           ("batch", 64)), 64)]
    # with as many partitions as the server would choose
    found += [Strategy(name, (("strategy", name),), AUTO_BATCH,
                       C2Q_BUFFERS_PER_LEASED)
              for name in ("clock2q", "clock2q_partitioned")]
    found += [Strategy(f"batched, {batch}", (("strategy", "batched"),
                                             ("batch", batch)), batch)
              for batch in BATCHES]
    counts = []
    for wish in PARTITIONS:
        count = -(-wish // nodes) * nodes
        if count > MOST_PARTITIONS:
            count = MOST_PARTITIONS // nodes * nodes
        if count not in counts:
            counts.append(count)
    found += [Strategy(f"partitioned, {count}", (("strategy", "partitioned"),
                                                 ("partitions", count)),
                       AUTO_BATCH)
              for count in counts]
    return found


def steps(cores):
    found = [1]
    while found[-1] * STEP < cores:
        found.append(found[-1] * STEP)
    if cores // 2 > found[-1]:
        found.append(cores // 2)
    return sorted({*found, cores})


def config(here, strategy, backends, variant=POINT, usage=USAGE):
    percent, placement, seed = variant
    leased = backends * strategy.batch
    return {**here.config(), "load": "alloc", "load.work_ps": WORK_PS,
            "load.usage": usage, "load.mixed": 1, **strategy.config(),
            "backends": backends,
            "buffers": max(LEAST_BUFFERS,
                           strategy.buffers_per_leased * leased),
            "latency_percent": percent, "placement": placement, "seed": seed,
            "jitter_percent": JITTER_PERCENT,
            "warmup": max(LEAST_WARMUP, round(WARM_LEASES * leased),
                          LEAST_EACH * backends),
            "allocations": max(LEAST_ALLOCATIONS, MEASURED_LEASES * leased,
                               LEAST_EACH * backends)}


def run(simulator, config):
    """Measures when every process has begun: beginning takes a lock."""
    for _ in range(TRIES):
        answer = simulator.run(config)
        begun = answer.regions.get("pg_sweep", {}).get("atomics", 0) == 0
        if begun:
            return answer
        config = {**config, "warmup": 2 * config["warmup"]}
    raise BenchError("processes begin while it is measured, even after a"
                     f" warm-up of {config['warmup'] // 2} allocations")


def figures(answer):
    return {"allocations_per_s": answer["allocations_per_s"],
            "ns_per_allocation": answer["ps_per_allocation"] / 1000,
            "shared_percent": 100 * answer["stall_ps_per_allocation"]
            / answer["ps_per_allocation"]}


def stops_at(line):
    """The fewest backends with nearly the largest rate; None if all of them
    are needed."""
    most = max(rate for _, rate in line)
    first = next(backends for backends, rate in line if rate >= FLAT * most)
    return None if first == line[-1][0] else first


def band(simulator, here, strategy, backends):
    found = [figures(run(simulator, config(here, strategy, backends, variant)))
             for variant in BAND]
    for factor in KEEP_BAND:
        other = here.changed(keep_ps=round(here.value["keep_ps"] * factor))
        found.append(figures(run(simulator, config(other, strategy,
                                                   backends))))
    return [one["allocations_per_s"] for one in found]


def predict_strategy(simulator, here, strategy, counts, whole):
    cores = counts[-1]
    line = [(backends, figures(run(simulator,
                                   config(here, strategy, backends))))
            for backends in counts]
    found = band(simulator, here, strategy, cores)
    full = line[-1][1]
    free = figures(run(simulator, config(here, strategy, cores, usage=0)))
    rates = [[backends, values["allocations_per_s"]]
             for backends, values in line]
    return {"strategy": strategy.name,
            "line": rates,
            "low": min(found), "high": max(found), **full,
            "free_per_s": free["allocations_per_s"],
            "stops_at": stops_at(rates) if whole else None}


def predict_one(simulator, here, whole, only=None):
    """All strategies of one machine, or those whose names begin so."""
    cores = here.value["cores"]
    counts = steps(cores) if whole else [1, cores]
    found = []
    for strategy in strategies(here.nodes()):
        if not strategy.name.startswith(only or ""):
            continue
        one = predict_strategy(simulator, here, strategy, counts, whole)
        found.append(one)
        report.progress(f"{here.name}, {strategy.name}:"
                        f" {one['allocations_per_s'] / 1e6:,.1f} M/s with"
                        f" {cores} backends")
    return {"machine": here.name, "title": here.title, "notes": here.notes,
            "cores": cores,
            "nodes": here.nodes(), "whole": whole, "strategies": found}


def predict(simulator, machines, only=None):
    """machines: (machine, with the whole curve?)"""
    return {"work_ps": WORK_PS, "machines": [
        predict_one(simulator, here, whole, only) for here, whole in machines]}


def merged(kept, fresh):
    """Predictions of before, with the rows of fresh ones in their places."""
    fresh = {found["machine"]: found["strategies"]
             for found in fresh["machines"]}
    for found in kept["machines"]:
        rows = {one["strategy"]: one for one in found["strategies"]}
        rows.update((one["strategy"], one)
                    for one in fresh.get(found["machine"], ()))
        found["strategies"] = [rows[strategy.name]
                               for strategy in strategies(found["nodes"])
                               if strategy.name in rows]
    return kept
