"""Builds the simulator: build/bench/sim/LEVEL/sim.

What is played (the strategies in extension/, upstream's patches, the loads, and
the stand-ins for the server) is compiled with the server's own flags and with
-fsanitize=thread: the compiler then calls the engine for each access. The
engine itself is compiled without it. A level is the optimization of the
engine. What is played always has the server's, because that is part of what is
simulated."""

import fcntl
import functools
import hashlib
import os
import re
import shlex
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.lib import paths
from bench.lib.paths import ROOT, BenchError

SIM = ROOT / "sim"
EXTENSION = ROOT / "extension"
EXTENSION_FILES = (
    "slot.c",
    *(f"lwlock/{name}.c" for name in (
        "counts", "hooks", "policy_lockless", "policy_lockless_spin",
        "policy_stock", "queue", "tries")),
    *(f"sweep/{name}.c" for name in (
        "auto", "clean_ahead", "counts", "find_free", "first_lap", "homes",
        "hooks", "laps", "partitions", "shmem", "slots", "strategy_batched",
        "strategy_clock2q", "strategy_clock2q_partitioned",
        "strategy_partitioned", "strategy_stock", "walk")))
# Files of the server that are played as they are.
SERVER_FILES = ("src/backend/storage/lmgr/lwlock.c",
                "src/backend/storage/lmgr/s_lock.c")

# The same file of the server without our patches
UNPATCHED_LWLOCK = "src/backend/storage/lmgr/lwlock.c"

# Which loads there are
LOADS = SIM / "loads" / "loads.c"

# In continuous integration only, see tools/lib.sh
WERROR = ["-Werror"] if os.environ.get("SWEEP_WERROR") else []

# What GCC calls the pass that tells of accesses; volatile ones by other names.
PLAYED_FLAGS = ("-fsanitize=thread", "--param=tsan-distinguish-volatile=1",
                "--param=tsan-instrument-func-entry-exit=0",
                "-fsanitize-coverage=trace-pc", "-fdata-sections",
                "-fno-pie", "-U_FORTIFY_SOURCE", "-Wno-tsan")
ENGINE_FLAGS = ("-g", "-std=gnu11", "-Wall", "-Wextra", "-Wno-unused-parameter",
                "-Wno-sign-compare", *WERROR, "-fno-pie",
                "-ffp-contract=off", "-fno-strict-aliasing", "-fwrapv")

# Static variables larger than this are not exchanged each time that another
# fiber goes on, but when it touches them (engine/fiber.c).
PRIVATE_BYTES = 64


def source_tree():
    """The patched server's sources, for the files of it that are played."""
    tree = Path(os.environ.get("SWEEP_SERVER_SOURCE")
                or paths.SERVERS / "src-patched")
    if not (tree / SERVER_FILES[0]).is_file():
        raise BenchError(f"{tree / SERVER_FILES[0]} is missing:"
                         " run make server")
    return tree


def unpatched_tree(tree):
    """The sources as they were before the patches."""
    unpatched = tree.with_name("src")
    if not (unpatched / UNPATCHED_LWLOCK).is_file():
        raise BenchError(f"{unpatched / UNPATCHED_LWLOCK} is missing:"
                         " run make server")
    return unpatched


def run(command, what):
    done = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)
    if done.returncode != 0:
        raise BenchError(f"{what} failed:\n{done.stdout.strip()}")
    return done.stdout


def compiler_version(cc):
    """GCC 11 or newer has what the simulator is built on."""
    try:
        version = run([*cc, "--version"], " ".join(cc)).splitlines()[0]
        run([*cc, *PLAYED_FLAGS, "-S", "-o", "/dev/null", "-x", "c",
             "/dev/null"], f"a trial of {cc[0]}, which must be GCC 11 or newer,")
    except FileNotFoundError:
        raise BenchError(f"{cc[0]} is missing: install gcc, or set CC") from None
    return version


def digest(*parts):
    sha = hashlib.sha256()
    for part in parts:
        sha.update(part if isinstance(part, bytes) else str(part).encode())
        sha.update(b"\0")
    return sha.hexdigest()


def sha256_now(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


sha256_file = functools.cache(sha256_now)    # sources do not change meanwhile


def dependencies(obj):
    """Files that an object was made of, as the compiler wrote them down."""
    made = obj.with_suffix(".d")
    if not made.exists():
        return None
    text = made.read_text().replace("\\\n", " ")
    return sorted(set(text.split(":", 1)[1].split()))


class Build:
    """Objects of what is played are shared by the variants of the engine."""

    def __init__(self, server, level, top, label, loads):
        self.loads = loads
        self.cc = shlex.split(os.environ.get("CC") or "gcc")
        self.version = compiler_version(self.cc)
        self.level = level
        self.played_dir = top / f"played{label}"
        self.engine_dir = top / f"{level}{label}"
        self.tree = source_tree()
        self.unpatched = unpatched_tree(self.tree)
        includes = [SIM / "include", SIM, EXTENSION,
                    server.config("includedir-server")]
        self.includes = [f"-I{path}" for path in includes]
        self.server_flags = [
            flag for flag in shlex.split(server.config("cppflags"))
            + shlex.split(server.config("cflags"))
            if not flag.startswith("-fpch")]
        for folder in (self.played_dir, self.engine_dir):
            folder.mkdir(parents=True, exist_ok=True)

    def compile(self, task):
        """Compile a file, unless nothing that it depends on has changed."""
        source, flags, folder, after = task
        obj = folder / (re.sub(r"[^A-Za-z0-9]+", "_",
                               os.path.relpath(source, ROOT)) + ".o")
        command = [*self.cc, *flags, "-MD", "-c", str(source), "-o", str(obj)]
        stamp = obj.with_suffix(".key")
        if not self.unchanged(obj, stamp, command):
            stamp.unlink(missing_ok=True)
            run(command, f"compiling {os.path.relpath(source, ROOT)}")
            if after is not None:
                after(obj)
            stamp.write_text(self.key(obj, command))
        return obj

    def key(self, obj, command):
        return digest(self.version, sha256_file(__file__), *command,
                      *map(sha256_file, dependencies(obj)))

    def unchanged(self, obj, stamp, command):
        made_of = dependencies(obj)
        return (obj.exists() and stamp.exists() and made_of is not None
                and all(map(os.path.exists, made_of))
                and stamp.read_text() == self.key(obj, command))

    def played(self, source, *flags, after=None):
        return (source, [*self.server_flags, *PLAYED_FLAGS, *self.includes,
                         "-include", "sim_shim.h", *WERROR, *flags],
                self.played_dir, after or separate_variables)

    def tasks(self):
        for name in EXTENSION_FILES:
            yield self.played(EXTENSION / name, "-DSIM_EXTENSION")
        for name in SERVER_FILES:
            yield self.played(self.tree / name)
        # The shim comes first here, too: the server's own arch-x86.h has
        # inline assembly, of which the engine sees nothing.
        yield self.played(self.unpatched / UNPATCHED_LWLOCK,
                          "-iquote", SIM / "include",
                          "-iquote", self.unpatched / "src" / "include",
                          after=rename_exported)
        for folder in ("upstream", "glue", "loads"):
            for source in sorted((SIM / folder).glob("*.c")):
                yield self.played(self.loads if source == LOADS else source,
                                  "-DSIM_EXTENSION")
        for source in sorted((SIM / "engine").glob("*.c")):
            yield (source, [*ENGINE_FLAGS, f"-{self.level}", f"-I{SIM}"],
                   self.engine_dir, None)

    def sources(self, objects):
        """What is played, with checksums; for sim --version."""
        lines = [f"compiler {self.version}", f"engine {self.level}"]
        seen = set().union(*map(dependencies, objects))
        for path in sorted(map(Path, seen)):
            for label, top in (("extension", EXTENSION), ("server", self.tree),
                               ("unpatched", self.unpatched)):
                if path.is_absolute() and path.is_relative_to(top):
                    lines.append(f"{label} {path.relative_to(top)}"
                                 f" {sha256_file(path)}")
        made = self.engine_dir / "sources.c"
        text = "extern const char *const sim_sources[];\n" \
            "const char *const sim_sources[] = {\n" + "".join(
                f'\t"{line}",\n' for line in lines) + "\t0\n};\n"
        if not made.exists() or made.read_text() != text:
            made.write_text(text)
        return made, ["-O0", "-fno-pie"], self.engine_dir, None

    def all(self):
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            objects = list(pool.map(self.compile, self.tasks()))
        objects.append(self.compile(self.sources(objects)))
        name = "sim" if self.loads == LOADS else f"sim-{self.loads.stem}"
        binary = self.engine_dir / name
        stamp = self.engine_dir / f"{name}.key"
        key = digest(*self.cc, *map(sha256_now, objects))
        if not (binary.exists() and stamp.exists()
                and stamp.read_text() == key):
            new = self.engine_dir / f"{name}.new"
            run([*self.cc, "-no-pie", "-o", new, *objects, "-lm"],
                "linking the simulator")
            os.replace(new, binary)
            stamp.write_text(key)
        return binary


def separate_variables(obj):
    """Put static variables where engine/fiber.c looks for them: each is in a
    section of its own (-fdata-sections), which gets another name."""
    renames = []
    for line in run(["objdump", "-h", "-w", obj], "objdump").splitlines():
        fields = line.split()
        if len(fields) < 3 or not fields[0].isdigit():
            continue
        name, size = fields[1], int(fields[2], 16)
        if size == 0 or not re.match(r"\.(data|bss)\b", name):
            continue
        if name.startswith(".data.rel.ro"):
            continue            # constant
        large = size > PRIVATE_BYTES
        renames += ["--rename-section",
                    f"{name}={'sim_large' if large else 'sim_private'}"
                    ",alloc,load,data,contents"]
    if renames:
        run(["objcopy", *renames, obj], "objcopy")


def rename_exported(obj):
    """PostgreSQL's own lwlock.c is played beside the patched one."""
    separate_variables(obj)
    names = [line.split()[2] for line in run(
        ["nm", "--defined-only", "--extern-only", obj], "nm").splitlines()]
    run(["objcopy", *(f"--redefine-sym={name}=unpatched_{name}"
                      for name in names), obj], "objcopy")


def build(level="O2", prefix=None, loads=LOADS):
    """Build what has changed; returns the program. prefix: of the patched
    server, by default build/MAJOR/release."""
    release = paths.SERVERS / "release"
    server = paths.Server("patched", prefix or release)
    label = ""
    if server.prefix != release.resolve():
        label = "-" + digest(server.prefix)[:8]
    top = paths.BENCH / "sim"
    top.mkdir(parents=True, exist_ok=True)
    with open(top / "build.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        sha256_file.cache_clear()
        return Build(server, level, top, label, loads).all()
