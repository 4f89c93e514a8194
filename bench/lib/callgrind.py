"""Instructions executed inside one function of a single-user server, counted
by valgrind's callgrind. A second run gives the same figures."""

import re
import shutil
import subprocess
from collections import Counter

from .paths import BenchError

# Names in full instead of numbers for repeated ones, for read_profile().
READABLE = ("--compress-strings=no", "--compress-pos=no")


def need_valgrind():
    if shutil.which("valgrind") is None:
        raise BenchError("valgrind is missing (Debian package valgrind)")


def single_user(cluster, settings, statements, under=()):
    """Run statements in a single-user server; returns its output.

    under: a command that runs the server, such as valgrind with options."""
    options = [part for name, value in settings.items()
               for part in ("-c", f"{name}={value}")]
    done = subprocess.run(
        [*under, cluster.server.bin("postgres"), "--single", "-D",
         cluster.data, *options, "postgres"],
        input="".join(f"{statement}\n" for statement in statements),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace")
    if done.returncode != 0 or re.search(r"\b(ERROR|FATAL|PANIC):",
                                         done.stdout):
        tail = "\n".join(done.stdout.splitlines()[-20:])
        raise BenchError(f"single-user server of {cluster.server.prefix}:\n"
                         f"{tail}")
    return done.stdout


def answer(output, column):
    """A value that a statement of single_user() has returned."""
    found = re.findall(rf'{column} = "([^"]*)"', output)
    return found[-1] if found else None


def count(cluster, settings, statements, function, profile):
    """Instructions inside of function (and what it calls), by function.

    Returns (Counter of instructions by function's name, printed output)."""
    profile.unlink(missing_ok=True)
    output = single_user(
        cluster, settings, statements,
        under=["valgrind", "-q", "--tool=callgrind", *READABLE,
               f"--toggle-collect={function}",
               f"--callgrind-out-file={profile}"])
    return read_profile(profile, function), output


def read_profile(profile, function):
    if not profile.exists():
        raise BenchError(f"callgrind wrote no {profile}")
    own = Counter()
    total = None
    name = None
    is_call = False
    for line in profile.read_text().splitlines():
        if line.startswith("fn="):
            name = line[3:]
        elif line.startswith("calls="):
            # the next line has the callee's cost, which has a fn= of its own
            is_call = True
        elif line.startswith(("totals:", "summary:")):
            total = int(line.split()[1])
        elif line[:1].isdigit() and name is not None:
            if not is_call:
                own[name] += int(line.split()[1])
            is_call = False
    if not total:
        raise BenchError(f"callgrind counted nothing inside of {function}")
    if sum(own.values()) != total:
        raise BenchError(f"{profile}: functions add up to {sum(own.values())}"
                         f" instructions, the total says {total}")
    return own
