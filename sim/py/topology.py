"""Which CPUs this process may use, and how far they are from each other, as
lscpu says."""

import os
import subprocess
from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations

from bench.lib.paths import BenchError

SAME_CORE, GROUP, NODE, SOCKET, OTHER_SOCKET = (
    "same_core", "group", "node", "socket", "other_socket")
DISTANCES = (SAME_CORE, GROUP, NODE, SOCKET, OTHER_SOCKET)


@dataclass(frozen=True)
class Cpu:
    number: int
    core: int
    socket: int
    node: int
    group: str                  # CPUs that share the last-level cache


def lscpu(*options):
    try:
        return subprocess.run(["lscpu", *options], capture_output=True,
                              text=True, check=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError) as error:
        raise BenchError(f"lscpu does not say how the CPUs are arranged:"
                         f" {error}")


def read():
    """The CPUs that this process may run on."""
    found = []
    for line in lscpu("-p=CPU,CORE,SOCKET,NODE,CACHE"):
        if not line.startswith("#"):
            fields = line.split(",")
            cpu, core, socket, node = (int(field or 0)
                                       for field in fields[:4])
            found.append(Cpu(cpu, core, socket, node, fields[-1]))
    allowed = os.sched_getaffinity(0)
    return [cpu for cpu in found if cpu.number in allowed]


def last_cache_bytes():
    """Of one group; 0 if there is none."""
    sizes = lscpu("-B", "-C=ONE-SIZE")[1:]
    return int(sizes[-1]) if sizes else 0


def distance(one, other):
    if one.core == other.core:
        return SAME_CORE
    if one.socket != other.socket:
        return OTHER_SOCKET
    if one.node != other.node:
        return SOCKET
    return GROUP if one.group == other.group else NODE


def pairs(cpus, most):
    """At most this many pairs of each distance, spread over the machine."""
    by_distance = defaultdict(list)
    for one, other in combinations(cpus, 2):
        by_distance[distance(one, other)].append((one.number, other.number))
    return {where: found if len(found) <= most else
            [found[i * len(found) // most] for i in range(most)]
            for where, found in by_distance.items()}


def shape(cpus):
    """The machine's shape. Parts of different size count as the largest."""
    cores = {cpu.core: cpu for cpu in cpus}.values()
    groups, nodes, sockets = (len({key(cpu) for cpu in cores}) for key in (
        lambda cpu: (cpu.socket, cpu.node, cpu.group),
        lambda cpu: (cpu.socket, cpu.node), lambda cpu: cpu.socket))
    threads = max(sum(cpu.core == other.core for other in cpus)
                  for cpu in cpus)
    per_socket = -(-nodes // sockets)
    per_node = -(-groups // (per_socket * sockets))
    per_group = -(-len(cores) // (per_node * per_socket * sockets))
    return {"cores": per_group * per_node * per_socket * sockets,
            "threads_per_core": threads, "cores_per_group": per_group,
            "groups_per_node": per_node, "nodes_per_socket": per_socket,
            "sockets": sockets}
