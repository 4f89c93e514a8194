"""bench/run NAME: finds a bench by its name and runs it.

A bench is a file bench/AREA/NAME.py with a class Bench (see lib/runner.py). The
first line of the file's docstring is its summary in the list."""

import importlib
import sys
from pathlib import Path

from .lib import report, runner
from .lib.paths import BenchError

HERE = Path(__file__).parent
USAGE = """usage: bench/run NAME [OPTION...]    (NAME --help lists the options)
       bench/run --names             (the names of all benches, nothing else)
"""


def load(path):
    """The class Bench of a file; None if it has none."""
    module = importlib.import_module(f"bench.{path.parent.name}.{path.stem}")
    return getattr(module, "Bench", None)


def find(name="*"):
    """{name: class} of all benches, or of one."""
    found = {}
    for path in sorted(HERE.glob(f"*/{name}.py")):
        if path.parent.name not in ("lib", "test"):
            bench = load(path)
            if bench is not None:
                found[path.stem] = bench
    return found


def usage():
    report.say(USAGE)
    for name, bench in find().items():
        report.say(f"  {name:13} {bench.summary()}")
    return 0


def main():
    name = sys.argv[1] if len(sys.argv) > 1 else "--help"
    if name in ("--help", "-h"):
        return usage()
    if name == "--names":
        for each, bench in find().items():
            if issubclass(bench, runner.Bench):
                report.say(each)
        return 0
    found = find(name) if name.isidentifier() else {}
    if not found:
        raise BenchError(f"there is no bench \"{name}\"; the benches are:"
                         f" {', '.join(find())}")
    return found[name].main(sys.argv[2:])


if __name__ == "__main__":
    report.run(main)
