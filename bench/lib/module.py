"""Test modules that run on the stock server as well (measure_sweep,
measure_lwlock, measure_pins), built for a server.

They are not installed into the server's prefix. The server finds them in a folder
of the bench by extension_control_path and dynamic_library_path."""

import os
import shutil
import subprocess

from .paths import BENCH, ROOT, BenchError

FOLDERS = {"measure_sweep": "sweep", "measure_lwlock": "lwlock",
           "measure_pins": "pins"}


def build(server, *names):
    """Build modules (default: measure_sweep); returns the settings by which the
    server finds them."""
    work = BENCH / "modules" / server.label
    shutil.rmtree(work, ignore_errors=True)
    root = work / "root"
    # without the variables of a make that has started us
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS",
                                   "PG_CONFIG", "DESTDIR")}
    for name in names or ("measure_sweep",):
        objects = work / name
        objects.mkdir(parents=True)
        done = subprocess.run(
            ["make", "-f", ROOT / "test" / FOLDERS[name] / name / "Makefile",
             f"PG_CONFIG={server.bin('pg_config')}", f"DESTDIR={root}",
             "install"],
            cwd=objects, env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            raise BenchError(f"building the test module {name} for"
                             f" {server.prefix} failed:\n"
                             f"{done.stdout.strip()}")
    share = root / server.config("sharedir").lstrip("/")
    library = root / server.config("pkglibdir").lstrip("/")
    for path in (share, library):
        if ":" in str(path):
            raise BenchError(f"a colon in {path} would end the server's"
                             " search path: use a folder without one")
    return {"extension_control_path": f"{share}:$system",
            "dynamic_library_path": f"{library}:$libdir"}
