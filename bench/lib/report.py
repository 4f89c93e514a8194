"""What a bench prints and writes."""

import os
import sys
import time

from . import rows
from .paths import BENCH, ROOT, BenchError, make_bench_dir

_begin = time.monotonic()


def begin():
    """When this program was started, by time.monotonic()."""
    return _begin


def program():
    """The script's name as a user at the top of the source types it."""
    return os.path.relpath(sys.argv[0], ROOT)


def say(text=""):
    print(text, flush=True)


def progress(text):
    """A line for whoever is waiting; not part of the result."""
    print(f"[{time.monotonic() - _begin:6.1f} s] {text}", file=sys.stderr,
          flush=True)


def machine(servers):
    """What the figures were taken on, as lines of text."""
    cpu = "unknown CPU"
    try:
        with open("/proc/cpuinfo") as cpuinfo:
            for line in cpuinfo:
                if line.startswith("model name"):
                    cpu = line.split(":", 1)[1].strip()
                    break
        load = f"{os.getloadavg()[0]:.2f}"
    except OSError:
        load = "unknown"
    lines = [f"{len(os.sched_getaffinity(0))} x {cpu};"
             f" load average at the start {load}"]
    for server in servers:
        lines.append(f"{server.label}: PostgreSQL {server.version}")
    return lines


def fixed(value, digits):
    return "-" if value is None else f"{value:.{digits}f}"


def spread(row, digits=3):
    """A ratio with its range over the rounds."""
    if row is None or row["ratio"] is None:
        return "-"
    return (f"{row['ratio']:.{digits}f}"
            f" ({row['ratio_min']:.{digits}f}..{row['ratio_max']:.{digits}f})")


def table(headings, rows, title=None):
    """The first column to the left, the others to the right."""
    cells = [list(map(str, row)) for row in [headings, *rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(headings))]

    def line(row):
        first = row[0].ljust(widths[0])
        return "  ".join([first, *(cell.rjust(width) for cell, width
                                   in zip(row[1:], widths[1:]))]).rstrip()

    say()
    if title:
        say(title)
    say(line(cells[0]))
    say("  ".join("-" * width for width in widths))
    for row in cells[1:]:
        say(line(row))


def verdict(wanted):
    """Say of each (is it met, what is wanted) whether it is; is all of it?"""
    say()
    for met, what in wanted:
        say(f"{what}: {'met' if met else 'NOT MET'}")
    return all(met for met, _ in wanted)


def write_json(name, result):
    """build/bench/NAME.json, an object a row (see rows.py, which refuses what is
    none), and the same as NAME.csv."""
    rows.check(result)
    say()
    write_file(BENCH / f"{name}.json", rows.to_json(result))
    write_csv(name, result)


def write_csv(name, result):
    rows.check(result)
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
    """Call a bench's main(): errors the user can mend get no traceback."""
    try:
        status = main()
        sys.stdout.flush()
    except BenchError as error:
        print(f"{program()}: {error}", file=sys.stderr)
        status = 1
    except BrokenPipeError:
        # Who read our output wants no more, such as head; nor will the
        # interpreter's last flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    sys.exit(status)
