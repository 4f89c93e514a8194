"""The simulator that the tests play, built for the servers that are tested."""

import os
import subprocess
from pathlib import Path
from unittest import SkipTest

from bench.lib.paths import BUILD, SERVERS
from sim.py import binary, build

# Runs are remembered in a folder of the tests' own (SWEEP_BENCH_DIR).


def prefix():
    """Of the server under test (PG_CONFIG); by default build/MAJOR/release. A
    server that was not built here has no sources to play."""
    pg_config = Path(os.environ.get("PG_CONFIG")
                     or SERVERS / "release" / "bin" / "pg_config")
    if (not pg_config.is_relative_to(BUILD)
            and "SWEEP_SERVER_SOURCE" not in os.environ):
        raise SkipTest("there is no source of a patched server")
    return pg_config.parent.parent


def program():
    return build.build(prefix=prefix())


def simulator():
    return binary.Simulator(program())


def objects():
    """Of everything that is played."""
    return sorted((program().parents[1]
                   / program().parent.name.replace("O2", "played")
                   ).glob("*.o"))


def disassembly(path):
    return subprocess.run(["objdump", "-d", "--no-show-raw-insn", path],
                          capture_output=True, text=True, check=True).stdout
