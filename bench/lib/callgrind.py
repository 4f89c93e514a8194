"""Instructions executed inside one function of a single-user server, counted
by valgrind's callgrind. A second run gives the same figures."""

import re
import shutil
import subprocess

from .paths import BenchError


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
    """Returns (instructions inside of function and what it calls, printed
    output)."""
    profile.unlink(missing_ok=True)
    output = single_user(
        cluster, settings, statements,
        under=["valgrind", "-q", "--tool=callgrind",
               f"--toggle-collect={function}",
               f"--callgrind-out-file={profile}"])
    if not profile.exists():
        raise BenchError(f"callgrind wrote no {profile}")
    total = re.search(r"^(?:totals|summary): (\d+)", profile.read_text(),
                      re.MULTILINE)
    if total is None or total.group(1) == "0":
        raise BenchError(f"callgrind counted nothing inside of {function}")
    return int(total.group(1)), output
