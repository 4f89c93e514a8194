"""The test module sweep_alloc, built for a server and put beside it.

It is not installed into the server's prefix: extension_control_path and
dynamic_library_path let a server find it in a folder of the bench."""

import os
import shutil
import subprocess

from .paths import BENCH, ROOT, BenchError

SOURCE = ROOT / "test" / "modules" / "sweep_alloc"


def build(server):
    """Build it; returns the settings by which the server finds it."""
    work = BENCH / "modules" / server.label
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    root = work / "root"
    # A make above us may have left its own idea of these.
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS",
                                   "PG_CONFIG", "DESTDIR")}
    done = subprocess.run(
        ["make", "-f", SOURCE / "Makefile",
         f"PG_CONFIG={server.bin('pg_config')}", f"DESTDIR={root}", "install"],
        cwd=work, env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise BenchError("building test/modules/sweep_alloc for"
                         f" {server.prefix} failed:\n{done.stdout.strip()}")
    share = root / server.config("sharedir").lstrip("/")
    library = root / server.config("pkglibdir").lstrip("/")
    for path in (share, library):
        if ":" in str(path):
            raise BenchError(f"a colon in {path} would end the server's"
                             " search path: use a folder without one")
    return {"extension_control_path": f"{share}:$system",
            "dynamic_library_path": f"{library}:$libdir"}
