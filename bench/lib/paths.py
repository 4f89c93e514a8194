"""Where things are: the tree, the servers, the folders for generated files."""

import fcntl
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from ab.errors import UserError as BenchError

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
MAJOR = os.environ.get("SWEEP_MAJOR") or "18"
SERVERS = BUILD / MAJOR
# Clusters and results. Elsewhere if build/ is on a file system that is not fit
# for them, such as a host's file system mounted in a virtual machine.
BENCH = Path(os.environ.get("SWEEP_BENCH_DIR") or BUILD / "bench")

# A Unix socket's path must fit sockaddr_un.sun_path with its final zero byte.
SOCKET_PATH_MAX = 107
SOCKET_NAME = ".s.PGSQL.5432.lock"


def be_plain_user():
    """Start the program again by tools/as-user: as the plain user that owns
    build/, since a server refuses to run as root, and in an environment
    without settings of the caller's own servers. A package is started by the
    script "run" beside its __main__.py."""
    if os.environ.get("SWEEP_AS_USER") == str(ROOT) and os.geteuid() != 0:
        return
    as_user = ROOT / "tools" / "as-user"
    script = Path(sys.argv[0]).resolve()
    if script.name == "__main__.py":
        script = script.with_name("run")
    sys.stdout.flush()
    os.execv(as_user, [as_user, script, *sys.argv[1:]])


class Server:
    """An installed PostgreSQL."""

    def __init__(self, label, prefix):
        self.label = label
        self.prefix = Path(prefix).resolve()
        for program in ("postgres", "initdb", "pg_ctl", "pg_config", "psql",
                        "pgbench"):
            if not os.access(self.bin(program), os.X_OK):
                # a prefix that was given is the caller's own
                ours = self.prefix.parent.parent == BUILD.resolve()
                raise BenchError(
                    f"{self.bin(program)} is missing" + (
                        f": run make server VARIANT={self.prefix.name}"
                        if ours else ""))
        self.version = self.run("postgres", "--version").split()[2]
        major = self.version.split(".")[0]
        if major != MAJOR:
            raise BenchError(f"{self.bin('postgres')} is version"
                             f" {self.version}; {MAJOR} is needed")

    def bin(self, program):
        return self.prefix / "bin" / program

    def run(self, program, *args):
        """Run a program of this server; its output, or an error."""
        done = subprocess.run([self.bin(program), *map(str, args)],
                              stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            raise BenchError(f"{self.bin(program)} failed:\n"
                             f"{done.stdout.strip()}")
        return done.stdout.strip("\n")

    def config(self, what):
        return self.run("pg_config", f"--{what}")


def add_server_options(parser):
    """The options that name other servers than those of build/."""
    parser.add_argument("--stock", metavar="PREFIX", default=None,
                        help="install prefix of the unpatched server"
                             f" (default: build/{MAJOR}/stock)")
    parser.add_argument("--patched", metavar="PREFIX", default=None,
                        help="install prefix of the patched server with"
                             f" pg_sweep (default: build/{MAJOR}/release)")


def stock_server(args):
    return Server("stock", args.stock or SERVERS / "stock")


def patched_server(args, variant="release"):
    return Server("patched", args.patched or SERVERS / variant)


def make_bench_dir():
    try:
        BENCH.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BenchError(f"cannot create {BENCH}: {error.strerror}")
    if not os.access(BENCH, os.W_OK):
        raise BenchError(f"{BENCH} is not writable by this user")


def only_one(name):
    """Keep a second run of the same bench from using the same clusters."""
    make_bench_dir()
    lock = open(BENCH / f"{name}.lock", "w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise BenchError(f"another run of {name} is under way")
    return lock                 # held until the caller closes it


def socket_dir(preferred):
    """A folder for a server's socket. It is the preferred one, unless its path
    is too long for a socket. Then it is a new one below /tmp, which the caller
    removes. (TMPDIR may be long as well, or may be removed before the server
    ends.) Returns (folder, is it temporary)."""
    preferred = Path(preferred)
    if len(os.fsencode(preferred / SOCKET_NAME)) <= SOCKET_PATH_MAX:
        preferred.mkdir(parents=True, exist_ok=True, mode=0o700)
        return preferred, False
    return Path(tempfile.mkdtemp(prefix="pg_sweep.", dir="/tmp")), True
