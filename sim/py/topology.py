"""Which CPUs this process may use, and how far they are from each other, as the
kernel says in /sys."""

import os
from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from bench.lib.paths import BenchError

CPUS = Path("/sys/devices/system/cpu")
NODES = Path("/sys/devices/system/node")

SAME_CORE, GROUP, NODE, SOCKET, OTHER_SOCKET = (
    "same_core", "group", "node", "socket", "other_socket")
DISTANCES = (SAME_CORE, GROUP, NODE, SOCKET, OTHER_SOCKET)


@dataclass(frozen=True)
class Cpu:
    number: int
    core: tuple
    group: tuple
    node: int
    socket: int


def text(path, default=None):
    try:
        return path.read_text().strip()
    except OSError:
        if default is None:
            raise BenchError(f"cannot read {path}: the kernel does not say"
                             " how the CPUs are arranged")
        return default


def numbers(listed):
    """The CPUs of the kernel's way to list them: 0-3,8"""
    found = []
    for part in listed.split(","):
        if part:
            first, _, last = part.partition("-")
            found += range(int(first), int(last or first) + 1)
    return tuple(found)


def last_cache(cpu):
    """Of the largest cache level: (CPUs that share it, its bytes)."""
    level, shared, size = 0, (cpu,), 0
    for index in sorted((CPUS / f"cpu{cpu}" / "cache").glob("index*")):
        if text(index / "type", "") == "Instruction":
            continue
        here = int(text(index / "level", "0"))
        if here > level:
            level = here
            shared = numbers(text(index / "shared_cpu_list", str(cpu)))
            size = bytes_of(text(index / "size", "0"))
    return shared, size


def bytes_of(size):
    unit = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(size[-1:])
    return int(size[:-1]) * unit if unit else int(size or 0)


def read():
    """The CPUs that this process may run on."""
    node_of = {}
    for path in NODES.glob("node[0-9]*"):
        for cpu in numbers(text(path / "cpulist", "")):
            node_of[cpu] = int(path.name[4:])
    found = []
    for cpu in sorted(os.sched_getaffinity(0)):
        where = CPUS / f"cpu{cpu}" / "topology"
        siblings = text(where / "thread_siblings_list", str(cpu))
        found.append(Cpu(cpu, numbers(siblings), last_cache(cpu)[0],
                         node_of.get(cpu, 0),
                         int(text(where / "physical_package_id", "0"))))
    return found


def distance(one, other):
    if one.core == other.core:
        return SAME_CORE
    if one.socket != other.socket:
        return OTHER_SOCKET
    if one.node != other.node:
        return SOCKET
    return GROUP if one.group == other.group else NODE


def pairs(cpus, most):
    """Of each distance at most so many pairs, spread over the machine."""
    by_distance = defaultdict(list)
    for one, other in combinations(cpus, 2):
        by_distance[distance(one, other)].append((one.number, other.number))
    return {where: found if len(found) <= most else
            [found[i * len(found) // most] for i in range(most)]
            for where, found in by_distance.items()}


def shape(cpus):
    """The machine's shape, and what is not regular about it, as a note. Parts
    of different size count as the largest."""
    cores = {cpu.core: cpu for cpu in cpus}.values()
    groups, nodes, sockets = (len({key(cpu) for cpu in cores}) for key in (
        lambda cpu: (cpu.socket, cpu.node, cpu.group),
        lambda cpu: (cpu.socket, cpu.node), lambda cpu: cpu.socket))
    threads = max(sum(cpu.core == other.core for other in cpus)
                  for cpu in cpus)
    per_socket = -(-nodes // sockets)
    per_node = -(-groups // (per_socket * sockets))
    per_group = -(-len(cores) // (per_node * per_socket * sockets))
    total = per_group * per_node * per_socket * sockets
    note = None
    if total != len(cores):
        note = (f"{len(cores)} cores are not evenly spread over {groups}"
                f" groups, {nodes} nodes and {sockets} sockets: taken for"
                f" {total}")
    return {"cores": total, "threads_per_core": threads,
            "cores_per_group": per_group, "groups_per_node": per_node,
            "nodes_per_socket": per_socket, "sockets": sockets}, note
