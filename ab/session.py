"""The control session: a psql kept open. It takes the connection options that
psql takes, gives up on a server that does not answer, and survives a Ctrl-C,
which a terminal sends to all processes of the command."""

import json
import os
import select
import subprocess
import time

from ab.errors import UserError

MARKER = "--pg_sweep-ab-answer-ends--"
# Our statements are short: a server that takes longer counts as gone.
ANSWER_SECONDS = 30
CONNECT_SECONDS = 10
CLOSE_SECONDS = 10
SUCCESS = "00000"
# Of the control session, whatever its role, its database, or a setting that is
# compared has: it must be able to put things back, always read and write
# values in the same form, and never call functions of other users.
OPTIONS = {
    "search_path": "pg_catalog",
    "statement_timeout": "0", "lock_timeout": "0", "transaction_timeout": "0",
    "idle_session_timeout": "0", "exit_on_error": "off",
    "standard_conforming_strings": "on", "client_min_messages": "error",
    "TimeZone": "UTC", "DateStyle": "ISO,MDY", "extra_float_digits": "1",
    "default_transaction_read_only": "off",
}


class ServerGone(UserError):
    """No answer: the connection is lost, or was refused."""


class SqlError(UserError):
    """The server's answer is an error."""

    def __init__(self, message, state):
        super().__init__(message)
        self.state = state


def quote_name(name):
    """A parameter's name, whose parts are identifiers."""
    return ".".join('"' + part.replace('"', '""') + '"'
                    for part in name.split("."))


def quote(text):
    """An SQL string literal."""
    return "'" + str(text).replace("'", "''") + "'"


class Psql:
    """The process, and its end. A class that inherits from this defines how to
    ask, and what rows() returns."""

    def __init__(self, command, **options):
        self.psql = subprocess.Popen(command, stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, **options)

    def row(self, sql):
        rows = self.rows(sql)
        if len(rows) != 1:
            raise UserError(f"{len(rows)} rows instead of one from: {sql}")
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


class Connection:
    """Which server: psql's options, and its programs."""

    def __init__(self, programs, host=None, port=None, user=None,
                 database=None):
        self.programs = programs
        self.options = [part for option, value in
                        (("-h", host), ("-p", port), ("-U", user))
                        if value is not None for part in (option, str(value))]
        self.database = database

    def environment(self, application):
        """libpq finds passwords in the environment or in .pgpass; none is
        printed."""
        return {**os.environ, "PGAPPNAME": application,
                "PGCONNECT_TIMEOUT": os.environ.get("PGCONNECT_TIMEOUT",
                                                    str(CONNECT_SECONDS)),
                "PGCLIENTENCODING": "UTF8", "LC_ALL": "C"}

    def control_environment(self, application):
        """As above, with OPTIONS from the first packet on."""
        options = " ".join(f"-c {name}={value}"
                           for name, value in OPTIONS.items())
        environment = self.environment(application)
        # libpq sends these, and they win over PGOPTIONS.
        for name in ("PGTZ", "PGDATESTYLE", "PGGEQO"):
            environment.pop(name, None)
        environment["PGOPTIONS"] = \
            f"{environment.get('PGOPTIONS', '')} {options}"
        return environment

    def psql(self):
        database = ["-d", self.database] if self.database else []
        return [self.programs["psql"], "-X", "-q", "-A", "-t", "-w",
                "-P", "pager=off", *self.options, *database]

    def with_database(self, name):
        """The same server, another database."""
        if self.database and ("=" in self.database or "://" in self.database):
            raise UserError("another database cannot be chosen by a conninfo:"
                            " use -h, -p and -U")
        other = Connection(self.programs, database=name)
        other.options = self.options
        return other


class Session(Psql):
    def __init__(self, connection, application):
        # In a session of its own, which neither Ctrl-C nor a closed terminal
        # reaches.
        super().__init__(connection.psql(), start_new_session=True,
                         env=connection.control_environment(application))
        self.rest = b""
        self.statements = 0
        self.sweep = None               # schema of pg_sweep, with a dot
        try:
            self._begin()
        except UserError:
            self.close()
            raise

    def _begin(self):
        # not rows(): no function may be called until search_path is known
        path = self.execute("SHOW search_path")
        if path != OPTIONS["search_path"]:
            raise UserError("the control session lacks its options: a conninfo"
                            " must not have \"options\", and a pooler must not"
                            " be in between")
        schema = self.execute(
            "SELECT pg_catalog.quote_ident(n.nspname) FROM"
            " pg_catalog.pg_extension e JOIN pg_catalog.pg_namespace n"
            " ON n.oid = e.extnamespace WHERE e.extname = 'pg_sweep'")
        self.sweep = f"{schema}." if schema else None

    def execute(self, sql, seconds=ANSWER_SECONDS):
        """Run one statement; its output as text."""
        self.statements += 1
        try:
            self.psql.stdin.write(f"{sql};\n\\echo {MARKER} :SQLSTATE\n"
                                  .encode())
            self.psql.stdin.flush()
        except OSError:
            raise ServerGone(self._last_words([]))
        lines = []
        deadline = time.monotonic() + seconds
        while True:
            line = self._line(deadline, lines)
            if line.startswith(MARKER):
                state = line[len(MARKER):].strip()
                break
            lines.append(line)
        text = "\n".join(lines)
        if state != SUCCESS:
            if state.startswith(("57P", "08")) or self.psql.poll() is not None:
                raise ServerGone(text)
            raise SqlError(text, state)
        return text

    def _line(self, deadline, lines):
        while b"\n" not in self.rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.psql.stdout], [], [],
                                              left)[0]:
                self.psql.kill()
                raise ServerGone("no answer in time")
            data = os.read(self.psql.stdout.fileno(), 65536)
            if not data:
                raise ServerGone(self._last_words(lines))
            self.rest += data
        line, self.rest = self.rest.split(b"\n", 1)
        return line.decode(errors="replace")

    def _last_words(self, lines):
        rest = self.rest.decode(errors="replace")
        if not self.psql.stdout.closed:
            try:
                rest += self.psql.stdout.read().decode(errors="replace")
            except OSError:
                pass
        text = "; ".join(line for line in [*lines, *rest.splitlines()]
                         if line and not line.startswith(MARKER))
        text = text.removeprefix("psql: ").removeprefix("error: ")
        return text or "psql has ended"

    def rows(self, sql):
        """The rows of a query, each a dictionary; NULL is None."""
        text = self.execute("SELECT coalesce(json_agg(q), '[]')"
                            f" FROM ({sql}) q")
        return json.loads(text)

    def value(self, sql):
        return next(iter(self.row(sql).values()))
