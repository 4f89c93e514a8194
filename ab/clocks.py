"""CPU time of all processes of a local server, also of ended ones."""

import os
import time
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")
# pg_stat_activity.backend_start is a little later than the start of the
# process, which the kernel counts in ticks since boot.
START_TOLERANCE = 2.0
# Fields of /proc/PID/stat, counted after the name in brackets
PPID, CUTIME, CSTIME, STARTTIME = 1, 13, 14, 19
# The clock of another process' CPU time (include/linux/posix-timers.h in the
# kernel), in nanoseconds, where /proc/PID/stat has steps of 10 ms.
CPUCLOCK_SCHED = 2


def cpu_ns(pid):
    return time.clock_gettime_ns(~pid << 3 | CPUCLOCK_SCHED)


def stat(pid):
    text = Path(f"/proc/{pid}/stat").read_text()
    return text[text.rindex(")") + 2:].split()


class Clocks:
    """Of a server whose processes are visible here; see find()."""

    def __init__(self, postmaster, ours):
        self.postmaster = postmaster
        self.ours = ours

    def _children(self):
        path = Path(f"/proc/{self.postmaster}/task/{self.postmaster}/children")
        return [int(pid) for pid in path.read_text().split()]

    def read(self):
        """(CPU time in ns, time.monotonic()); None if not known any more.

        When a child ends, its time passes to the postmaster. A reading counts
        it once if the children are the same before and after."""
        for _ in range(5):
            try:
                before = self._children()
                total = sum(cpu_ns(pid) for pid in before
                            if pid != self.ours)
                fields = stat(self.postmaster)
                at = time.monotonic()
                if self._children() != before:
                    continue
            except OSError:
                if not Path(f"/proc/{self.postmaster}").exists():
                    return None
                continue
            ended = int(fields[CUTIME]) + int(fields[CSTIME])
            return total + ended * 10**9 // TICK, at
        return None


def find(session):
    """Clocks of the session's server; None: it is elsewhere, in another
    container, or hidden."""
    row = session.row("SELECT pg_backend_pid() AS pid,"
                      " extract(epoch FROM backend_start)::float8 AS start"
                      " FROM pg_stat_activity WHERE pid = pg_backend_pid()")
    try:
        fields = stat(row["pid"])
        boot = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
        started = boot + int(fields[STARTTIME]) / TICK
        # A process with this number on another machine would have begun at
        # another moment.
        if abs(started - row["start"]) > START_TOLERANCE:
            return None
        clocks = Clocks(int(fields[PPID]), row["pid"])
        if row["pid"] not in clocks._children() or clocks.read() is None:
            return None
    except (OSError, ValueError, IndexError):
        return None
    return clocks
