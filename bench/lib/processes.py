"""CPU time, switches and writes of a server's processes, from the kernel: they
do not depend on the server, or on a library in it."""

import re
import time
from dataclasses import dataclass
from pathlib import Path

from ab.clocks import cpu_ns

from .paths import BenchError


def voluntary_switches(pid):
    """How often a process has gone to sleep."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", status,
                         re.MULTILINE).group(1))


def write_calls(pid):
    """System calls that write to files: pwrite, pwritev, write."""
    io = Path(f"/proc/{pid}/io").read_text()
    return int(re.search(r"^syscw:\s*(\d+)", io, re.MULTILINE).group(1))


@dataclass(frozen=True)
class Usage:
    """Of several processes together, at one moment. Reading the switches takes
    some 30 us per process; switched_at is the middle of that time."""
    cpu_ns: int
    at: float
    switches: int
    switched_at: float


def usage(pids, last=False):
    """last: at the end of a span. Then CPU time is read first, as the reading
    itself must not be in the span."""
    def read_cpu():
        return sum(map(cpu_ns, pids)), time.time()

    def read_switches():
        begin = time.time()
        total = sum(map(voluntary_switches, pids))
        return total, (begin + time.time()) / 2

    try:
        if last:
            cpu, switches = read_cpu(), read_switches()
        else:
            switches, cpu = read_switches(), read_cpu()
    except OSError as error:
        raise BenchError(f"a process of the server has gone: {error}")
    return Usage(*cpu, *switches)
