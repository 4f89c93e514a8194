"""A psql kept open: one server session, driven through a pipe."""

import subprocess

from .paths import BenchError

SEPARATOR = "\x1f"
MARKER = "--pg_sweep-bench-answer-ends--"
TROUBLE = ("ERROR:", "FATAL:", "PANIC:", "psql:", "invalid command",
           "server closed the connection", "connection to server")
CLOSE_SECONDS = 10


class Psql:
    """The process, and its end. How it is asked, and what rows() gives, is the
    matter of who inherits from this: Session here, and that of ab."""

    def __init__(self, command, **options):
        self.psql = subprocess.Popen(command, stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, **options)

    def row(self, sql):
        rows = self.rows(sql)
        if len(rows) != 1:
            raise BenchError(f"{len(rows)} rows instead of one from: {sql}")
        return rows[0]

    def close(self):
        if self.psql.poll() is None:
            try:
                self.psql.stdin.close()
                self.psql.wait(timeout=CLOSE_SECONDS)
            except (OSError, subprocess.TimeoutExpired):
                self.psql.kill()
                self.psql.wait()
        self.psql.stdout.close()


class Session(Psql):
    """send() and receive() are apart so that several sessions can be made to
    work at the same time by one single-threaded script."""

    def __init__(self, server, host, database="postgres", user="postgres"):
        self.what = f"{host} {database}"
        super().__init__(
            [server.bin("psql"), "-X", "-q", "-A", "-t", "-F", SEPARATOR,
             "-P", "pager=off", "-h", str(host), "-U", user, "-d", database],
            text=True)

    def send(self, sql):
        try:
            self.psql.stdin.write(f"{sql.rstrip().rstrip(';')};\n"
                                  f"\\echo {MARKER}\n")
            self.psql.stdin.flush()
        except BrokenPipeError:
            raise BenchError(f"psql has gone ({self.what}):"
                             f" {self.psql.stdout.read().strip()}")

    def receive(self):
        """The rows of the statement sent last, each a list of strings."""
        lines = []
        while True:
            line = self.psql.stdout.readline()
            if line == "":
                raise BenchError(f"psql has gone ({self.what}): "
                                 + "\n".join(lines))
            line = line.rstrip("\n")
            if line == MARKER:
                break
            lines.append(line)
        for line in lines:
            if line.startswith(TROUBLE):
                raise BenchError("\n".join(lines))
        return [line.split(SEPARATOR) for line in lines]

    def rows(self, sql):
        self.send(sql)
        return self.receive()

    def value(self, sql):
        return self.row(sql)[0]


def quote(text):
    """An SQL string literal."""
    return "'" + str(text).replace("'", "''") + "'"
