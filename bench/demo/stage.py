"""For all scenes of the demo: its server, and a psql and a shell that show what
is typed and the answer."""

import os
import shlex
import subprocess
import textwrap

from bench.lib import paths, report
from bench.lib.paths import BenchError
from bench.lib.session import MARKER, TROUBLE, Session

WIDTH = 86


class NotHere(Exception):
    """A scene that cannot be shown on this machine, and why."""


class Terminal(Session):
    """A psql whose input is shown as at its prompt, followed by its output."""

    def __init__(self, server, host, database, user="postgres"):
        self.what = f"{host} {database}"
        self.database = database
        self.transaction = ""
        self.psql = subprocess.Popen(
            [server.bin("psql"), "-X", "-P", "pager=off", "-h", str(host),
             "-U", user, "-d", database],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True)

    def type(self, text):
        """A command with its end (; or \\gx); returns the answer."""
        first, *others = text.split("\n")
        report.say(f"{self.database}={self.transaction}# {first}")
        for line in others:
            report.say(f"{self.database}-{self.transaction}# {line}")
        answer = self.answer(text)
        if text.startswith("BEGIN"):
            self.transaction = "*"
        elif text.startswith("COMMIT"):
            self.transaction = ""
        if answer:
            report.say(answer)
        return answer

    def answer(self, text):
        try:
            self.psql.stdin.write(f"{text}\n\\echo {MARKER}\n")
            self.psql.stdin.flush()
        except BrokenPipeError:
            pass                # its last output is read below
        lines = []
        for line in self.psql.stdout:
            if line.rstrip("\n") == MARKER:
                break
            lines.append(line)
        else:
            raise BenchError(f"psql has gone ({self.what}): "
                                   + "".join(lines).strip())
        if any(line.startswith(TROUBLE) for line in lines):
            raise BenchError(f"{text}\n" + "".join(lines).strip())
        return "".join(lines).removesuffix("\n")


class Stage:
    def __init__(self, args, server, cluster, database, admin):
        self.args = args
        self.server = server
        self.cluster = cluster
        self.database = database
        self.admin = admin

    def explain(self, text):
        report.say(textwrap.fill(" ".join(text.split()), WIDTH,
                                 break_on_hyphens=False))

    def terminal(self):
        terminal = Terminal(self.server, self.cluster.sockets, self.database)
        self.cluster.sessions.append(terminal)
        return terminal

    # -- the shell, at the top of the source

    def shown(self, argument):
        """As it is typed there."""
        text = str(argument)
        if os.path.isabs(text) and (inside := os.path.relpath(
                text, paths.ROOT)).split(os.sep)[0] != os.pardir:
            # libpq takes a relative one for the name of a host
            return (f"$PWD/{inside}" if text == str(self.cluster.sockets)
                    else inside)
        return shlex.quote(text)

    def show_command(self, *command, after=""):
        """after: such as &"""
        pieces = []
        for word in map(self.shown, command):
            # an option and its value stay together
            if (pieces and pieces[-1].startswith("-") and " " not in pieces[-1]
                    and not word.startswith("-")):
                pieces[-1] += f" {word}"
            else:
                pieces.append(word)
        lines = ["$"]
        for piece in pieces:
            if len(lines[-1]) + len(piece) > WIDTH:
                lines[-1] += " \\"
                lines.append("   ")
            lines[-1] += f" {piece}"
        report.say("\n".join(lines) + after)

    def connection(self):
        """Options that all clients have."""
        return ["-h", self.cluster.sockets, "-U", "postgres"]

    def run(self, *command, quiet=False, errors=None):
        """Show a command, run it, show its output line by line. quiet: show
        nothing. errors: as subprocess' stderr. Returns (status, output)."""
        if not quiet:
            self.show_command(*command)
        child = subprocess.Popen(
            list(map(str, command)), cwd=paths.ROOT,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
            text=True)
        output = []
        try:
            for line in child.stdout:
                output.append(line)
                if not quiet:
                    report.say(line.rstrip("\n"))
            child.wait()
        finally:
            # interrupted: it restores its changes before the server stops
            if child.poll() is None:
                child.terminate()
                child.wait()
        return child.returncode, "".join(output)
