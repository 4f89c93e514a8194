"""Output of a command: lines, tables, progress, errors."""

import os
import sys
import time

from ab.errors import UserError

_begin = time.monotonic()


def begin():
    """When this program was started, by time.monotonic()."""
    return _begin


def say(text=""):
    print(text, flush=True)


def progress(text):
    """A line for a waiting user; not part of the result."""
    print(f"[{time.monotonic() - _begin:6.1f} s] {text}", file=sys.stderr,
          flush=True)


def machine():
    """The CPUs of this machine, and its load."""
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
    return (f"{len(os.sched_getaffinity(0))} x {cpu};"
            f" load average at the start {load}")


def fixed(value, digits):
    return "-" if value is None else f"{value:.{digits}f}"


def table(headings, rows, title=None):
    """The first column is aligned to the left, the others to the right."""
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


def run(main, program):
    """Call main() and exit; a UserError gets no traceback."""
    try:
        status = main()
        sys.stdout.flush()
    except UserError as error:
        print(f"{program}: {error}", file=sys.stderr)
        status = 1
    except BrokenPipeError:
        # The reader of the output is gone (head); the interpreter's last flush
        # must not fail, either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    sys.exit(status)
