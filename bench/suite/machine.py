"""The machine: its size, for the factor, and its description, for the report."""

import os
import platform
import re
import resource
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ab import console
from bench.lib import paths

MB = 1 << 20


@dataclass(frozen=True)
class Machine:
    """What sizes depend on."""
    cpus: int
    memory_mb: int              # available
    disk_mb: int                # free
    open_files: int             # limit of a process


def this(folder):
    """folder: where clusters will be."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return Machine(len(os.sched_getaffinity(0)), memory_mb(),
                   shutil.disk_usage(existing(folder)).free // MB,
                   hard if hard != resource.RLIM_INFINITY else 1 << 30)


def existing(folder):
    """The folder, or the nearest existing one above it."""
    folder = Path(folder).absolute()
    return next(each for each in (folder, *folder.parents) if each.exists())


def memory_mb():
    """Available, and within the limit of a container."""
    found = [int(re.search(r"^MemAvailable:\s*(\d+)", text("/proc/meminfo"),
                           re.MULTILINE).group(1)) // 1024]
    limit = text("/sys/fs/cgroup/memory.max")
    if limit.isdigit():
        found.append(int(limit) // MB)
    return min(found)


def text(path):
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def output(*command):
    """Of a program; empty if it is missing or fails."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def describe(servers, folder):
    """(what, value) of everything that figures may depend on."""
    yield "machine", (f"{console.machine()}; {memory_mb()} MB available;"
                      f" {platform.system()} {platform.release()}")
    yield "file system", output("findmnt", "-n", "-o", "FSTYPE,OPTIONS", "-T",
                                str(existing(folder)))
    git = ("git", "-c", f"safe.directory={paths.ROOT}", "-C", str(paths.ROOT))
    yield "pg_sweep", f"commit {output(*git, 'describe', '--always', '--dirty')}"
    for server in servers:
        yield f"{server.label} server", (
            f"PostgreSQL {server.version}; {server.config('cc')}"
            f" {server.config('cflags')}")
