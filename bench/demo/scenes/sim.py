"""The strategies on a machine with many more CPUs, simulated."""

import subprocess

from bench.lib import paths, report
from bench.demo.stage import NotHere

TITLE = "Simulator: the same on a machine that is not here"
MACHINE = "m6i-metal"
STRATEGIES = ("stock", "batched", "partitioned")
LOAD = ("load=alloc", "load.usage=2", "load.mixed=1", "backends=64",
        "allocations=100000")


def build(stage, program):
    """It is compiled once. gcc or the server's sources may be missing."""
    report.progress("    compiling the simulator, if it is not there")
    status, said = stage.run(program, "build", quiet=True,
                             errors=subprocess.STDOUT)
    if status != 0:
        raise NotHere(said.strip())


def simulate(stage, program, strategy):
    """The figures of a run by their names."""
    command = (program, "run", MACHINE, *LOAD, f"strategy={strategy}")
    stage.show_command(*command)
    status, said = stage.run(*command, quiet=True)
    figures = dict(line.split(" ", 1) for line in said.splitlines())
    if status != 0 or "allocations_per_s" not in figures:
        raise paths.BenchError(f"the simulator has failed:\n{said.strip()}")
    return figures


def play(stage):
    program = paths.ROOT / "sim" / "run"
    build(stage, program)
    stage.explain("""sim runs the strategies' own source files on a simulated
        machine and counts the cost of each cache line that moves between cores. Here 64
        backends on 64 cores do nothing but allocate buffers, which is the worst case.
        The run is short. docs/scaling.md has other loads and
        machines, and the errors against published measurements.""")
    stage.run(program, "check", MACHINE)
    rows = []
    for strategy in STRATEGIES:
        figures = simulate(stage, program, strategy)
        rows.append([
            strategy, f"{float(figures['allocations_per_s']) / 1e6:,.1f}",
            f"{float(figures['ps_per_allocation']) / 1000:,.0f}",
            f"{float(figures['stall_ps_per_allocation']) / 1000:,.0f}"])
    report.say()
    stage.explain("From what they print:")
    report.table(["", "million allocations/s", "ns for one",
                  "of it waiting for cache lines"], rows)
    report.say()
    stage.explain("""(The same run gives the same figures, to the last
        digit.)""")
