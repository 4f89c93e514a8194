"""Database clusters of a bench: made, started, stopped, and never left over."""

import atexit
import shutil
import signal
import subprocess
import sys
import time

from .paths import BENCH, BenchError, socket_dir
from .session import Session

# Of all clusters: no work in the background, no network, no waiting for disks.
QUIET = {
    "listen_addresses": "",
    "autovacuum": "off",
    "fsync": "off",
    "synchronous_commit": "off",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "1d",
    "max_logical_replication_workers": "0",
    "max_wal_senders": "0",
    "wal_level": "minimal",
    "jit": "off",
    "log_checkpoints": "off",
    "lc_messages": "C",
}

# Where the socket is if it is not below the cluster's folder.
SOCKETS_NOTE = "socket-folder"

# Of postmaster.pid, from 0, where the postmaster's state is.
STATUS_LINE = 7

_running = []
_made = []


class Cluster:
    def __init__(self, bench, name, server, settings, directory=None):
        self.name = name
        self.server = server
        self.dir = directory or BENCH / "clusters" / f"{bench}-{name}"
        self.data = self.dir / "data"
        self.log = self.dir / "log"
        self.settings = settings
        self.sockets = None
        self.sockets_temporary = False
        self.sessions = []

    # -- making

    def init(self):
        """A new cluster by initdb."""
        self._clear()
        self.server.run("initdb", "--no-sync", "--auth=trust",
                        "--username=postgres", "--encoding=UTF8",
                        "--locale=C", "--pgdata", self.data)

    def copy_of(self, other):
        """The same files as another cluster that is stopped now."""
        self._clear()
        done = subprocess.run(["cp", "-a", "--reflink=auto", other.data,
                               self.data], stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise BenchError(f"copying {other.data} failed:"
                             f" {done.stderr.strip()}")

    def _clear(self):
        self.remove_old()
        self.dir.mkdir(parents=True)
        _made.append(self)

    def remove_old(self):
        """Stop and remove what an earlier run left here. Returns whether there
        was something."""
        if not self.dir.exists():
            return False
        if (self.data / "postmaster.pid").exists():
            self._pg_ctl("stop", "-m", "immediate", check=False)
        note = self.dir / SOCKETS_NOTE
        if note.exists():
            shutil.rmtree(note.read_text().strip(), ignore_errors=True)
        shutil.rmtree(self.dir)
        return True

    # -- running

    def start(self, **settings):
        """Start; keyword arguments overrule the cluster's settings."""
        self._configure(settings)
        _running.append(self)
        self._pg_ctl("start", "-l", str(self.log))

    def start_timed(self, **settings):
        """The same. Returns the seconds until clients could connect, more
        exactly than pg_ctl, which looks ten times a second."""
        self._configure(settings)
        ready = self.data / "postmaster.pid"
        _running.append(self)
        begin = time.monotonic()
        with open(self.log, "a") as log:
            postmaster = subprocess.Popen(
                [self.server.bin("postgres"), "-D", self.data],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True)
        while True:
            try:
                lines = ready.read_text().splitlines()
            except OSError:
                lines = []
            if len(lines) > STATUS_LINE and lines[STATUS_LINE].startswith(
                    "ready"):
                return time.monotonic() - begin
            if postmaster.poll() is not None:
                _running.remove(self)
                raise BenchError("postgres did not start; the end of its"
                                 f" log:\n{self._log_tail()}")
            time.sleep(0.001)

    def _configure(self, settings):
        self.sockets, self.sockets_temporary = socket_dir(self.dir / "sock")
        if self.sockets_temporary:
            (self.dir / SOCKETS_NOTE).write_text(f"{self.sockets}\n")
        every = {**QUIET, **self.settings, **settings,
                 "unix_socket_directories": str(self.sockets)}
        # ALTER SYSTEM of an earlier start must not decide over this one.
        (self.data / "postgresql.auto.conf").write_text("")
        (self.data / "bench.conf").write_text("".join(
            f"{name} = {conf_quote(value)}\n"
            for name, value in every.items()))
        conf = self.data / "postgresql.conf"
        include = "include 'bench.conf'\n"
        text = conf.read_text()
        if not text.endswith(include):
            conf.write_text(text + include)

    def stop(self, mode="fast"):
        for session in self.sessions:
            session.close()
        self.sessions = []
        if self in _running:
            self._pg_ctl("stop", "-m", mode)
            _running.remove(self)
        if self.sockets_temporary:
            shutil.rmtree(self.sockets, ignore_errors=True)
            (self.dir / SOCKETS_NOTE).unlink(missing_ok=True)
            self.sockets_temporary = False

    def leave_running(self):
        """The server outlives this script, until remove_old() of a later
        one."""
        for session in self.sessions:
            session.close()
        self.sessions = []
        _running.remove(self)
        _made.remove(self)

    def remove(self):
        self.stop("immediate")
        shutil.rmtree(self.dir, ignore_errors=True)
        _made.remove(self)

    def _pg_ctl(self, *args, check=True):
        # The server would inherit our output descriptors. A reader of our
        # output through a pipe would then wait for the server's end.
        done = subprocess.run(
            [self.server.bin("pg_ctl"), "-D", self.data, "-w", "-s", *args],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        if check and done.returncode != 0:
            raise BenchError(f"pg_ctl {args[0]} of {self.data} failed;"
                             f" the end of its log:\n{self._log_tail()}")

    def _log_tail(self):
        if not self.log.exists():
            return ""
        return "\n".join(self.log.read_text().splitlines()[-15:])

    # -- talking

    def session(self, database="postgres"):
        session = Session(self.server, self.sockets, database)
        self.sessions.append(session)
        return session

    def environment(self):
        """What a client needs in its environment to reach this cluster."""
        return {"PGHOST": str(self.sockets), "PGPORT": "5432",
                "PGUSER": "postgres"}


def swap_files(clusters):
    """Every one of these stopped clusters gets the files of its neighbour: no
    side keeps the luck of a place on disk."""
    folders = [each.data for each in clusters]
    for folder in folders:
        folder.rename(folder.with_name("data.moving"))
    for i, folder in enumerate(folders):
        neighbour = folders[(i + 1) % len(folders)]
        neighbour.with_name("data.moving").rename(folder)


def conf_quote(value):
    return "'" + str(value).replace("\\", "\\\\").replace("'", "''") + "'"


def _stop_all():
    """After an error or an interruption: stops the servers, drops the data,
    keeps the logs."""
    for cluster in list(_running):
        try:
            cluster.stop("immediate")
        except BenchError:
            # Interrupted while it started, a server may have no pid file yet.
            time.sleep(2)
            try:
                cluster.stop("immediate")
            except BenchError as error:
                print(error, file=sys.stderr)
    for cluster in _made:
        if cluster not in _running:
            shutil.rmtree(cluster.data, ignore_errors=True)


def stop_all_at_exit():
    """Ends the servers with the script, however it ends."""
    atexit.register(_stop_all)

    def leave(signum, frame):
        # one is enough; the second must not interrupt the stopping
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        sys.exit(128 + signum)

    signal.signal(signal.SIGINT, leave)
    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGHUP, leave)
