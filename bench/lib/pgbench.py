"""Runs pgbench and reads its output."""

import os
import re
import subprocess
from dataclasses import dataclass

from .paths import BenchError


@dataclass
class Result:
    tps: float
    latency_ms: float
    transactions: int


def command(server, *options):
    return [str(server.bin("pgbench")), "-n", *map(str, options)]


def environment(cluster, options=None):
    """options: settings of the sessions, by name."""
    extra = dict(cluster.environment())
    if options:
        extra["PGOPTIONS"] = " ".join(f"-c {name}={value}"
                                      for name, value in options.items())
    return {**os.environ, **extra}


def run(server, cluster, database, *options, session_options=None):
    """Run pgbench of server against cluster; every failure is an error."""
    done = subprocess.run(command(server, *options, database),
                          env=environment(cluster, session_options),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise BenchError(f"pgbench on cluster {cluster.name} failed:\n"
                         f"{done.stderr.strip()}")
    return parse(done.stdout)


def parse(output):
    def number(pattern):
        found = re.search(pattern, output, re.MULTILINE)
        if found is None:
            raise BenchError(f"no {pattern!r} in pgbench's output:\n{output}")
        return found.group(1)

    failed = number(r"^number of failed transactions: (\d+)")
    if failed != "0":
        raise BenchError(f"pgbench: {failed} transactions failed")
    return Result(
        tps=float(number(r"^tps = ([\d.]+) \(without initial")),
        latency_ms=float(number(r"^latency average = ([\d.]+) ms")),
        transactions=int(number(
            r"^number of transactions actually processed: (\d+)")))


def initialize(cluster, database, scale, *options):
    """pgbench's tables, made inside the server, which is fastest."""
    cluster.server.run("psql", "-X", "-q", "-h", cluster.sockets, "-U",
                       "postgres", "-d", "postgres", "-c",
                       f"CREATE DATABASE {database}")
    done = subprocess.run(
        command(cluster.server, "-i", "-q", "-I", "dtGvp", "-s", scale,
                *options, database),
        env=environment(cluster), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise BenchError(f"pgbench -i failed:\n{done.stdout.strip()}")
