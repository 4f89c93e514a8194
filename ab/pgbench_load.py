"""pgbench as the load. It connects once for the whole run; its log has the end
of each transaction, and with that its slice."""

import ctypes
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from array import array
from bisect import bisect_left

from ab import stats
from ab.errors import UserError

LASTING = 10**9                 # seconds that pgbench is told to run
STOP_SECONDS = 10
READY_SECONDS = 120
POLL_SECONDS = 0.05
READ_BYTES = 1 << 20
# Options that this module sets, or that would leave no log of each transaction
OURS = ("-T", "--time", "-t", "--transactions", "-l", "--log", "--log-prefix",
        "-i", "--initialize", "-P", "--progress", "--aggregate-interval",
        "--sampling-rate", "-h", "--host", "-p", "--port", "-U", "--username",
        "-d", "--dbname", "-C", "--connect", "--debug", "-v", "--vacuum-all",
        "-V", "--version", "-?", "--help", "--show-script")
# Short options of pgbench that have a value
WITH_VALUE = "bcDfFjLMRs"
PERCENTILES = (50, 95, 99, 99.9)
FREE_LEAST = 0.05               # of the file system that the log is on
PR_SET_PDEATHSIG = 1
FALLOC_PUNCH_HOLE = 3           # FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE

_libc = ctypes.CDLL(None, use_errno=True)
_libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64,
                            ctypes.c_int64]


def die_with_parent():
    """In the child: if this program is killed, so is pgbench."""
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def split_options(text):
    """Other options of pgbench, given as one string."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UserError(f"--pgbench-options: {error}")
    for word in words:
        name = word.split("=")[0]
        if name.startswith("--"):
            # getopt_long takes abbreviations.
            refused = [ours for ours in OURS if ours.startswith(name)]
        elif name.startswith("-"):
            refused = [ours for ours in OURS if name.startswith(ours)]
            if len(word) > 2 and word[1] not in WITH_VALUE:
                raise UserError(f"--pgbench-options: {word}: write each option"
                                " by itself")
        else:
            continue
        if refused:
            raise UserError(f"--pgbench-options: {refused[0]} cannot be chosen"
                            " here")
    return words


class Log:
    """The growing log of one thread."""

    def __init__(self, path):
        self.path = path
        self.file = open(path, "r+b")      # forget() needs to write
        self.rest = b""
        self.last = 0.0                 # end of the last transaction read
        self.fields = None

    def transactions(self):
        """What is new: (ends, latencies, number of failures). Lines are in the
        order of their ends."""
        while True:
            data = self.file.read(READ_BYTES)
            if not data:
                return
            data = self.rest + data
            end = data.rfind(b"\n") + 1
            data, self.rest = data[:end], data[end:]
            if data:
                yield self._parse(data)

    def _parse(self, data):
        if self.fields is None:
            self.fields = len(data.split(b"\n", 1)[0].split())
        words = data.split()
        step = self.fields
        if len(words) % step:
            raise UserError(f"{self.path} is not a log of pgbench")
        # client, number, latency, script, end in seconds and microseconds; and
        # more with some options
        latencies = words[2::step]
        seconds, parts = words[4::step], words[5::step]
        failed = [i for i, word in enumerate(latencies)
                  if not word.isdigit()]
        for i in reversed(failed):
            del latencies[i], seconds[i], parts[i]
        ends = [int(s) + int(us) / 1e6 for s, us in zip(seconds, parts)]
        if ends:
            self.last = ends[-1]
        return ends, array("q", map(int, latencies)), len(failed)

    def forget(self):
        """Free the space of what was read."""
        if _libc.fallocate(self.file.fileno(), FALLOC_PUNCH_HOLE, 0,
                           self.file.tell()) == 0:
            return
        # Not each file system can.
        free = os.statvfs(self.path)
        if free.f_bavail < free.f_blocks * FREE_LEAST:
            raise UserError(f"{self.path.parent} is nearly full of pgbench's"
                            " log; TMPDIR names another folder")


class Span:
    """The transactions of one slice."""

    def __init__(self, begin, end):
        self.begin = begin
        self.end = end
        self.latencies = array("q")
        self.result = None

    def finish(self):
        """tps, and percentiles in milliseconds; None if not known."""
        latencies = sorted(self.latencies)
        count = len(latencies)
        self.latencies = None
        self.result = {"transactions": count,
                       "tps": count / (self.end - self.begin)}
        for percent in PERCENTILES:
            # at least one transaction beyond the percentile
            enough = count * (100 - percent) >= 100
            self.result[f"latency_p{percent:g}_ms"] = (
                stats.quantile(latencies, percent / 100) / 1000
                if enough else None)


class PgbenchLoad:
    def __init__(self, connection, application, scratch, clients, jobs,
                 options):
        self.application = application
        self.clients = clients
        self.scratch = scratch
        self.spans = []
        self.open = []                  # spans that may get more
        self.logs = {}
        self.failed = 0
        self.output = open(scratch / "output", "w+")
        database = [connection.database] if connection.database else []
        self.command = [connection.programs["pgbench"], "-n",
                        "-c", str(clients), "-j", str(jobs), *options,
                        "-T", str(LASTING), "--log", "--log-prefix",
                        str(scratch / "log"), *connection.options]
        # psql and pgbench both take a conninfo as the last word
        self.pgbench = subprocess.Popen(
            [*self.command, *database],
            env=connection.environment(application),
            stdin=subprocess.DEVNULL, stdout=self.output,
            stderr=subprocess.STDOUT, start_new_session=True,
            preexec_fn=die_with_parent)

    def wait_until_ready(self, session, interrupts):
        """Until each client is connected and has begun a query."""
        deadline = time.monotonic() + READY_SECONDS
        while True:
            ready = session.value(
                "SELECT count(*) FROM pg_stat_activity WHERE"
                f" application_name = '{self.application}'"
                " AND query_start IS NOT NULL")
            self.check()
            if ready >= self.clients:
                return
            if time.monotonic() > deadline:
                raise UserError(f"{ready} of {self.clients} clients of pgbench"
                                f" are at work after {READY_SECONDS} s"
                                " (its scripts must not set application_name)")
            interrupts.sleep(POLL_SECONDS)

    def check(self):
        """Fail unless it runs, with all its clients."""
        ended = self.pgbench.poll() is not None
        with open(self.output.name) as output:
            lines = [line for line in output if
                     re.search(r"error|fatal|aborted", line)]
        lines = [line.strip().removeprefix("pgbench: ") for line in lines]
        if not ended:
            if any(re.search(r"client \d+ .*aborted", line)
                   for line in lines):
                raise UserError("a client of pgbench has ended: "
                                + "; ".join(lines[:3]))
            return
        code = self.pgbench.returncode
        how = (f"was ended by signal {-code}" if code < 0
               else f"ended with status {code}")
        raise UserError(f"pgbench {how}"
                        + (": " + "; ".join(lines[:3]) if lines else ""))

    def span(self, begin, end):
        """The slice of transactions that end between these two moments."""
        span = Span(begin, end)
        self.spans.append(span)
        self.open.append(span)
        return span

    def read(self):
        """Sort what the logs have by now into the spans. It takes CPU time, so
        call it between slices."""
        for path in self.scratch.glob("log.*"):
            if path not in self.logs:
                self.logs[path] = Log(path)
        for log in self.logs.values():
            for ends, latencies, failed in log.transactions():
                self.failed += failed
                for span in self.open:
                    first = bisect_left(ends, span.begin)
                    last = bisect_left(ends, span.end)
                    span.latencies.extend(latencies[first:last])
            log.forget()
        done = min((log.last for log in self.logs.values()), default=0.0)
        for span in [span for span in self.open if span.end < done]:
            span.finish()
            self.open.remove(span)

    def stop(self):
        """End it in order: pgbench writes what it has in memory."""
        self.check()
        self.pgbench.send_signal(signal.SIGALRM)
        try:
            self.pgbench.wait(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            # one long transaction, or clients that wait for a lock
            self.kill()
        if self.pgbench.returncode > 0:
            self.check()
        self.read()
        for span in self.open:
            span.finish()
        self.open = []

    def kill(self):
        if self.pgbench.poll() is None:
            self.pgbench.kill()
            self.pgbench.wait()

    def close(self):
        self.kill()
        for log in self.logs.values():
            log.file.close()
        self.output.close()
        shutil.rmtree(self.scratch, ignore_errors=True)
