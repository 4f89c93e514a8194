"""pgbench in the background: connected and warm before anything is measured,
and stopped afterwards.

pgbench's own -T counts from before it connects. With thousands of clients that
takes longer than a sample. So pgbench is ended by the signal of that timer, and
the transactions of a span of time are taken from its log."""

import resource
import shutil
import signal
import subprocess
import time

from . import pgbench
from .paths import BenchError

READY_SECONDS = 120             # for all clients to be connected and at work
STOP_SECONDS = 60               # for the last transactions to end
SPARE_FILES = 100               # descriptors for anything but connections


def need_files(clients):
    """Allows our processes open files for this number of connections."""
    wanted = clients + SPARE_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < wanted:
        raise BenchError(f"{clients} connections need {wanted} open files, and"
                         f" {hard} are allowed (ulimit -Hn)")
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class Log:
    """pgbench's log of transactions, in a folder of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.remove()
        self.folder.mkdir()

    def options(self):
        return ["--log", "--log-prefix", self.folder / "log"]

    def transactions(self):
        """Yields (end in seconds since the epoch, latency in microseconds) of
        each, in no order."""
        for path in self.folder.glob("log.*"):
            with open(path) as log:
                for line in log:
                    # client, number, latency, script, end: s and us of it
                    field = line.split()
                    yield int(field[4]) + int(field[5]) / 1e6, int(field[2])

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)


class Load:
    def __init__(self, server, cluster, database, clients, jobs, *options):
        self.cluster = cluster
        self.database = database
        self.clients = clients
        self.log = Log(cluster.dir / "load")
        self.output = open(self.log.folder / "output", "w+")
        self.begin = time.monotonic()
        self.pgbench = subprocess.Popen(
            pgbench.command(server, "-M", "prepared", "-c", clients,
                            "-j", min(jobs, clients), "-T", 86400,
                            *self.log.options(), *options, database),
            env=pgbench.environment(cluster), stdin=subprocess.DEVNULL,
            stdout=self.output, stderr=subprocess.STDOUT)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.pgbench.poll() is None:
            self.pgbench.kill()
            self.pgbench.wait()
        self.output.close()
        self.log.remove()

    def wait_until_ready(self, admin):
        """Until each client has ended a statement: the first one fills its
        caches. Returns how long it took."""
        first = {}
        ready = set()
        while len(ready) < self.clients:
            for pid, start, state in admin.rows(
                    "SELECT pid, query_start, state FROM pg_stat_activity WHERE"
                    f" datname = '{self.database}' AND query <> ''"):
                if state == "idle" or first.setdefault(pid, start) != start:
                    ready.add(pid)
            if self.pgbench.poll() is not None:
                self.fail("ended")
            if time.monotonic() > self.begin + READY_SECONDS:
                self.fail(f"has not got {self.clients} clients to work in"
                          f" {READY_SECONDS} s")
            time.sleep(0.02)
        return time.monotonic() - self.begin

    def fail(self, what):
        self.output.seek(0)
        raise BenchError(f"pgbench on cluster {self.cluster.name} {what}:\n"
                         + self.output.read()[-2000:].strip())

    def stop(self):
        """Ends it; returns the transactions of its log, which must be read
        before __exit__()."""
        self.pgbench.send_signal(signal.SIGALRM)
        try:
            self.pgbench.wait(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.fail(f"does not end in {STOP_SECONDS} s")
        if self.pgbench.returncode != 0:
            self.fail("failed")
        self.output.seek(0)
        pgbench.parse(self.output.read())
        return self.log.transactions()
