"""Plays policies on a trace: ours with player.c, others' with libcachesim."""

import hashlib
import json
import os
import re
import subprocess
from dataclasses import dataclass

from bench.lib.paths import BENCH, BUILD, ROOT, BenchError

from . import trace as formats

HERE = ROOT / "bench" / "policies"
WORK = BENCH / "policies-work"

# Ours: policy, virtual backends, each with leases
OURS = {"clock": ("clock", 1), "batched-8": ("batched", 8),
        "clock2q": ("clock2q", 1), "clock2q-8": ("clock2q", 8)}
BASELINE = "clock"
# What decides about their misses
OWN = ("bench/policies/player.c", "bench/policies/pool.h",
       "extension/sweep/batch.h", "extension/sweep/clock2q.h",
       "extension/sweep/hand.h", "extension/sweep/lease.h")

# Others': what libcachesim calls them, and the settings of those that need some.
# Its CLOCK-Pro is not here: it has 2 to 43 times the misses of a clock.
OTHERS = {"LRU": "LRU", "2Q": "TwoQ", "ARC": "ARC", "LIRS": "LIRS",
          "SIEVE": "Sieve", "S3-FIFO": "S3FIFO", "Clock2Q+": "Clock2QPlus",
          "W-TinyLFU": "WTinyLFU", "Belady": "Belady"}
# For comparison with our player: the same clocks in both
CLOCKS = {"Clock1": ("clock:1:0", {"init_freq": 0, "n_bit_counter": 1}),
          "Clock3": ("clock:7:1", {"init_freq": 1, "n_bit_counter": 3})}

PACKAGE = "libcachesim==0.3.5"
VENV = BUILD / "libcachesim"
CFLAGS = ("-O2", "-Wall", "-Wextra", "-Wno-unused-parameter",
          "-Wno-sign-compare", "-fno-strict-aliasing", "-fwrapv",
          "-ffp-contract=off", "-D_GNU_SOURCE")


@dataclass(frozen=True)
class Misses:
    warm: int                   # while the pool is filled
    counted: int
    looks: int = None           # at buffers, by hands, in what is counted
    returned: int = None        # to clock2q, of what is counted: it knew them


def run(command, **settings):
    done = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, **settings)
    if done.returncode != 0:
        raise BenchError(f"{command[0]} failed:\n{done.stderr.strip()}")
    return done.stdout


def compile_c(source, includes=(), libraries=()):
    """The program of a source file in this folder, compiled if it is not there
    yet; known by what it is made of."""
    flags = [*CFLAGS, *(f"-I{folder}" for folder in includes)]
    inputs = [HERE / source, *sorted(HERE.glob("*.h")),
              *sorted((ROOT / "extension" / "sweep").glob("*.h"))]
    name = hashlib.sha256(b"\0".join(
        [*(path.read_bytes() for path in inputs), *map(str.encode, flags)]))
    program = WORK / f"{source.removesuffix('.c')}-{name.hexdigest()[:16]}"
    if not program.exists():
        WORK.mkdir(parents=True, exist_ok=True)
        fresh = program.with_suffix(f".{os.getpid()}")
        run([os.environ.get("CC", "gcc"), *flags, "-o", fresh, HERE / source,
             *libraries])
        fresh.replace(program)
    return program


def player(include):
    """include: the folder of a server's headers."""
    return compile_c("player.c", (ROOT / "extension", include))


def play_ours(program, path, warm, plays):
    """[Misses] of plays (policy, buffers, backends, seed) on a .pages file."""
    words = [",".join(map(str, play)) for play in plays]
    found = []
    for word, line in zip(words, run([program, path, warm, *words])
                          .splitlines(), strict=True):
        said, *numbers = line.split()
        if said != word:
            raise BenchError(f"the player says {said} for {word}")
        found.append(Misses(*map(int, numbers)))
    return found


def version(policy):
    """The program that plays a policy: a hash of its words, without comments."""
    if policy not in OURS:
        return PACKAGE.replace("==", " ")
    words = (re.sub(r"/\*.*?\*/", " ", (ROOT / path).read_text(), flags=re.S)
             .split() for path in OWN)
    content = "\0".join(" ".join(each) for each in words)
    return f"player {hashlib.sha256(content.encode()).hexdigest()[:8]}"


def replayer(include):
    return compile_c("replay.c", (ROOT / "extension", include))


def replay(program, path, strategy, batch):
    """What there was in a server's file with events: {what: number}. BenchError
    if a victim is not the same."""
    words = run([program, path, strategy, batch]).split()
    return dict(zip(words[::2], map(int, words[1::2]), strict=True))


# -- libcachesim

def have_others():
    """Python with libcachesim, installed if it is not there yet. BenchError if it
    cannot be had."""
    python = VENV / "bin" / "python3"
    ready = VENV / PACKAGE
    if not ready.exists():
        try:
            run(["python3", "-m", "venv", "--clear", VENV])
            run([python, "-m", "pip", "install", "-q",
                 "--disable-pip-version-check", "--retries", "1",
                 "--timeout", "20", PACKAGE])
            run([python, "-c", "import libcachesim, numpy"])
        except BenchError as error:
            raise BenchError(f"{PACKAGE} cannot be had: {error}")
        ready.touch()
    return python


def play_others(python, path, warm, references, plays):
    """[Misses] of plays (libcachesim's name, buffers, settings) on an
    .oracleGeneral file."""
    lines = run([python, "-B", HERE / "cachesim.py", path, warm, references,
                 json.dumps(plays)]).splitlines()
    return [Misses(*map(int, line.split()))
            for _, line in zip(plays, lines, strict=True)]


class Files:
    """A trace as files for both programs, which go with it."""

    def __init__(self, trace, name):
        WORK.mkdir(parents=True, exist_ok=True)
        self.trace = trace
        self.stem = WORK / f"{name}.{os.getpid()}"
        self.made = {}

    def path(self, suffix):
        if suffix not in self.made:
            path = self.stem.with_name(self.stem.name + suffix)
            self.made[suffix] = path
            formats.WRITERS[suffix](self.trace, path)
        return self.made[suffix]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for path in self.made.values():
            path.unlink(missing_ok=True)
