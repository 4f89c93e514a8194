"""What a bench prints and writes."""

import os
import sys

from ab import console
from ab.console import (begin, fixed, progress, say,  # noqa: F401
                        table)

from . import rows
from .paths import BENCH, ROOT, make_bench_dir


def program():
    """The script's name as a user at the top of the source types it."""
    return os.path.relpath(sys.argv[0], ROOT).replace("__main__.py", "run")


def machine(servers):
    """The machine and the servers, as lines of text."""
    return [console.machine(), *(f"{server.label}: PostgreSQL {server.version}"
                                 for server in servers)]


def spread(row, digits=4):
    """A ratio with its range over the rounds."""
    if row is None or row["ratio"] is None:
        return "-"
    return (f"{row['ratio']:.{digits}f}"
            f" ({row['ratio_min']:.{digits}f}..{row['ratio_max']:.{digits}f})")


def verdict(wanted):
    """Print each (is it met, what is wanted); returns whether all are met."""
    if wanted:
        say()
    for met, what in wanted:
        say(f"{what}: {'met' if met else 'NOT MET'}")
    return all(met for met, _ in wanted)


def write_json(name, result):
    """build/bench/NAME.json, one object per row (rows.py checks them), and the
    same as NAME.csv."""
    text = rows.to_json(result)
    say()
    write_file(BENCH / f"{name}.json", text)
    write_file(BENCH / f"{name}.csv", rows.to_csv(result))


def write_file(path, text):
    """Whole or not at all."""
    make_bench_dir()
    fresh = path.with_name(f"{path.name}.new")
    fresh.write_text(text)
    fresh.replace(path)
    say(f"written: {shown(path)}")


def shown(path):
    """As a user at the top of the source would type it."""
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


def run(main):
    """Call main() and exit: errors that the user can correct get no
    traceback."""
    console.run(main, program())
