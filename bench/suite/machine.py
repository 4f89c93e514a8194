"""The machine: how large it is, for the factor, and what it is, for the report."""

import os
import platform
import re
import resource
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bench.lib import paths

SYS = Path("/sys")
UNKNOWN = "unknown"
MB = 1 << 20


@dataclass(frozen=True)
class Machine:
    """What sizes depend on."""
    cpus: int
    memory_mb: int              # that is available
    disk_mb: int                # that is free
    open_files: int             # a process may have


def this(folder):
    """folder: where clusters will be."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return Machine(len(os.sched_getaffinity(0)), memory_mb(),
                   shutil.disk_usage(existing(folder)).free // MB,
                   hard if hard != resource.RLIM_INFINITY else 1 << 30)


def existing(folder):
    """The folder, or the nearest above it that is there."""
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


# ---- for the report


def describe(servers, folder):
    """(what, value) of everything that figures may depend on."""
    return [*cpu(), *nodes(), *memory(), *system(), *disk(folder),
            *versions(servers)]


def text(path):
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def output(*command):
    """What a program prints; nothing, if there is no such program or it
    fails."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def cpu():
    found = dict(re.findall(r"^([^:\n]+):\s*(.*)$", output("lscpu"),
                            re.MULTILINE))

    def field(name):
        return found.get(name, UNKNOWN)

    yield "CPU", (f"{field('Model name')} (family {field('CPU family')}, model"
                  f" {field('Model')}, stepping {field('Stepping')})")
    yield "CPUs", (f"{len(os.sched_getaffinity(0))} usable of"
                   f" {field('CPU(s)')}: {field('Socket(s)')} socket(s) of"
                   f" {field('Core(s) per socket')} core(s) of"
                   f" {field('Thread(s) per core')} thread(s)")
    yield "caches", "; ".join(f"{name}: {found[name]}" for name in
                              ("L1d cache", "L1i cache", "L2 cache",
                               "L3 cache") if name in found) or UNKNOWN
    governors = {text(path) for path in (SYS / "devices/system/cpu").glob(
        "cpu[0-9]*/cpufreq/scaling_governor")}
    yield "frequency governor", (", ".join(sorted(governors))
                                 or "none that the system shows")
    yield "virtualization", (output("systemd-detect-virt", "--vm")
                             or found.get("Hypervisor vendor")
                             or "none that the system shows")


def nodes():
    lines = []
    for node in sorted((SYS / "devices/system/node").glob("node[0-9]*"),
                       key=lambda path: int(path.name[4:])):
        size = re.search(r"MemTotal:\s*(\d+)", text(node / "meminfo"))
        lines.append(f"{node.name}: CPUs {text(node / 'cpulist') or 'none'},"
                     f" {int(size.group(1)) // 1024 if size else '?'} MB,"
                     f" distances {text(node / 'distance')}")
    yield "NUMA nodes", "; ".join(lines) or UNKNOWN


def memory():
    found = dict(re.findall(r"^(\w+):\s*(\d+)", text("/proc/meminfo"),
                            re.MULTILINE))
    yield "memory", (f"{int(found['MemTotal']) // 1024} MB,"
                     f" {memory_mb()} MB of it available; swap"
                     f" {int(found.get('SwapTotal', 0)) // 1024} MB")
    yield "huge pages", (
        f"{found.get('HugePages_Total', '0')} of"
        f" {int(found.get('Hugepagesize', 0)) // 1024} MB; transparent: "
        + (chosen(text(SYS / "kernel/mm/transparent_hugepage/enabled"))
           or UNKNOWN))


def chosen(options):
    """Of "a [b] c", b."""
    found = re.search(r"\[(\w+)\]", options)
    return found.group(1) if found else ""


def system():
    yield "kernel", f"{platform.system()} {platform.release()}"
    release = dict(re.findall(r'^(\w+)="?([^"\n]*)', text("/etc/os-release"),
                              re.MULTILINE))
    yield "distribution", release.get("PRETTY_NAME", UNKNOWN)
    yield "clock source", (text(SYS / "devices/system/clocksource/clocksource0"
                                / "current_clocksource") or UNKNOWN)
    yield "load average at the start", " ".join(
        f"{value:.2f}" for value in os.getloadavg())


def disk(folder):
    """Of where the clusters are."""
    folder = existing(folder)
    usage = shutil.disk_usage(folder)
    found = output("findmnt", "-n", "-o", "FSTYPE,OPTIONS", "-T", str(folder))
    kind, _, options = found.partition(" ")
    yield "file system", (f"{kind or UNKNOWN} ({options.strip() or UNKNOWN}),"
                          f" {usage.free // MB} of {usage.total // MB} MB free")
    number = os.stat(folder).st_dev
    device = SYS / f"dev/block/{os.major(number)}:{os.minor(number)}"
    if device.exists():
        whole = device.resolve()
        if (whole / "partition").exists():
            whole = whole.parent
        spins = text(whole / "queue/rotational")
        model = text(whole / "device/model")
        yield "disk", ", ".join(filter(None, (
            whole.name, model,
            {"0": "not rotational", "1": "rotational, as the system has it"}
            .get(spins), f"scheduler {chosen(text(whole / 'queue/scheduler'))}"
            if chosen(text(whole / "queue/scheduler")) else "")))


def versions(servers):
    yield "pg_sweep", commit()
    for server in servers:
        yield f"{server.label} server", "; ".join(filter(None, (
            f"PostgreSQL {server.version}",
            f"{server.config('cc')} {server.config('cflags')}",
            # empty where meson has built it
            server.config("configure"))))
    yield "compiler", (output("gcc", "--version").partition("\n")[0]
                       or UNKNOWN)
    yield "Python", platform.python_version()


def commit():
    """Of the tree, and whether it is as committed."""
    git = ("git", "-c", f"safe.directory={paths.ROOT}", "-C", str(paths.ROOT))
    found = output(*git, "rev-parse", "HEAD")
    if not found:
        return "commit unknown"
    changed = output(*git, "status", "--porcelain", "--untracked-files=no")
    return f"commit {found}{', with changes' if changed else ''}"
