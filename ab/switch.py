"""Puts settings in force, and everything back as it was."""

import time

from ab.errors import UserError
from ab.session import quote

from ab import files
from ab import settings
from ab.files import entry
from ab.session import ServerGone, SqlError, quote_name

# A reload reaches every process within milliseconds, unless it is stuck.
RELOAD_SECONDS = 20
POLL_SECONDS = 0.005


class Interference(UserError):
    """Another session has changed what is compared."""

    def __init__(self, message, key=None):
        super().__init__(message)
        self.key = key


def incarnation(session):
    """Changes with each start of the server, also after a crash of a process: what
    functions had set is lost then."""
    # as text, which does not depend on the time zone
    row = session.row("SELECT extract(epoch FROM pg_postmaster_start_time())"
                      "::text AS postmaster, (SELECT extract(epoch FROM"
                      " backend_start)::text FROM pg_stat_activity"
                      " WHERE backend_type = 'checkpointer') AS checkpointer")
    return [row["postmaster"], row["checkpointer"]]


def find(session, server, wanted):
    """All that the settings will change, as it is now. The journal keeps it, and
    put_back() takes it."""
    server.sweep = server.ask_sweep()
    found = {"incarnation": incarnation(session), "entries": {}, "shown": {},
             "ours": {}, "strategy": None, "lwlock_policy": None,
             "tranches": {}}
    for key in settings.keys(wanted):
        if key == settings.STRATEGY:
            found["strategy"] = chosen_strategy(server.sweep)
        elif key == settings.LWLOCK_POLICY:
            found["lwlock_policy"] = server.sweep["lwlock_policy"]
        elif key.startswith(settings.TRANCHE):
            tranche = key[len(settings.TRANCHE):]
            found["tranches"][tranche] = own_policy(session, tranche)
        else:
            found["entries"][key] = entry(session, key)
            found["shown"][key] = shown(session, key)
            found["ours"][key] = [setting.values[key] for setting in wanted
                                  if key in setting.values]
    return found


def chosen_strategy(status):
    """"auto" gives a reason for its choice."""
    return "auto" if status["reason"] else status["strategy"]


def own_policy(session, tranche):
    """The argument of pg_sweep_set_lwlock_policy() that restores the tranche's
    policy."""
    row = session.row("SELECT policy, own FROM"
                      f" {session.sweep}pg_sweep_lwlock_policies"
                      f" WHERE tranche = {quote(tranche)}")
    return row["policy"] if row["own"] else "default"


def shown(session, parameter):
    """An application's own parameter that is NULL becomes empty by being set
    once, so both are the same here."""
    return session.value(f"SELECT current_setting({quote(parameter)}, true)") \
        or ""


def alter_system(session, parameter, text):
    if text is None:
        session.execute(f"ALTER SYSTEM RESET {quote_name(parameter)}")
    else:
        session.execute(f"ALTER SYSTEM SET {quote_name(parameter)} ="
                        f" {quote(text)}")


def reload(session):
    before = session.value("SELECT pg_conf_load_time()::text")
    session.execute("SELECT pg_reload_conf()")
    wait(session, f"SELECT pg_conf_load_time() > {quote(before)}",
         "has not read its configuration again")
    if session.sweep:
        # The background writer applies it in its next cycle.
        wait(session, f"""SELECT state <> 'ok' OR (
                 batch_size_configured =
                 current_setting('pg_sweep.batch_size')::int
             AND lwlock_policy_configured IS NOT DISTINCT FROM
                 CASE WHEN lwlock_policy_configured IS NOT NULL
                      THEN current_setting('pg_sweep.lwlock_policy') END)
             FROM {session.sweep}pg_sweep_status""",
             "has not applied the parameters of pg_sweep")


def wait(session, query, complaint):
    deadline = time.monotonic() + RELOAD_SECONDS
    while not session.value(query):
        if time.monotonic() > deadline:
            raise UserError(f"the server {complaint} {RELOAD_SECONDS} s after"
                            " the reload")
        time.sleep(POLL_SECONDS)


def set_strategy(session, name):
    session.execute(f"SELECT {session.sweep}pg_sweep_set_strategy("
                    f"{quote(name)})")


def set_lwlock_policy(session, policy, tranche=None):
    argument = f", {quote(tranche)}" if tranche is not None else ""
    session.execute(f"SELECT {session.sweep}pg_sweep_set_lwlock_policy("
                    f"{quote(policy)}{argument})")


def put_back(session, found):
    """Restore what find() has found, and check it. Returns (what could not be put
    back, what other sessions have changed and keep), as lines. If a part fails, the
    others are tried all the same."""
    others, failed = {}, []

    def attempt(function, *arguments):
        try:
            function(session, *arguments)
        except ServerGone:
            raise
        except UserError as error:
            failed.append(str(error).splitlines()[0])

    restarted = incarnation(session) != found["incarnation"]
    if not restarted:
        if found["lwlock_policy"] is not None:
            attempt(set_lwlock_policy, found["lwlock_policy"])
        for tranche, policy in found["tranches"].items():
            attempt(set_lwlock_policy, policy, tranche)
        if found["strategy"] is not None:
            attempt(set_strategy, found["strategy"])
    for parameter, text in found["entries"].items():
        now = entry(session, parameter)
        if now == text:
            continue
        if now not in found["ours"][parameter]:
            others[parameter] = (
                f"{parameter} in postgresql.auto.conf was set to {now!r} by"
                f" another session, and stays so (before: {text!r})")
            continue
        attempt(alter_system, parameter, text)
    if found["entries"]:
        attempt(reload)
    failed += differences(session, found, restarted, others)
    return failed, [*others.values()]


def differences(session, found, restarted, others):
    for parameter, text in found["entries"].items():
        if parameter in others:
            continue
        now = entry(session, parameter)
        if now != text:
            yield (f"{parameter} in postgresql.auto.conf is {now!r}, was"
                   f" {text!r}")
        now = shown(session, parameter)
        if now != found["shown"][parameter]:
            yield f"{parameter} is {now!r}, was {found['shown'][parameter]!r}"
    if restarted:
        return
    for tranche, policy in found["tranches"].items():
        if own_policy(session, tranche) != policy:
            yield f"tranche {tranche} is not {policy}"
    if found["strategy"] is None and found["lwlock_policy"] is None:
        return
    status = session.row("SELECT strategy, reason, lwlock_policy"
                         f" FROM {session.sweep}pg_sweep_status")
    if found["strategy"] not in (None, chosen_strategy(status)):
        yield f"strategy is {status['strategy']}, was {found['strategy']}"
    if found["lwlock_policy"] not in (None, status["lwlock_policy"]):
        yield (f"lwlock_policy is {status['lwlock_policy']}, was"
               f" {found['lwlock_policy']}")


class Switcher:
    """Puts one setting after the other in force."""

    def __init__(self, session, server, wanted, found, on_change):
        self.on_change = on_change      # of what is to be put back
        self.session = session
        self.server = server
        self.found = found
        self.keys = settings.keys(wanted)
        self.parameters = [key for key in self.keys
                           if settings.is_parameter(key)]
        self.expected = {}              # by setting: result of in_force()
        self.written = dict(found["entries"])
        self.rest = self.parameters and files.fingerprint(session,
                                                          self.parameters)

    def write(self, parameter, text):
        """Write to postgresql.auto.conf, unless another session has."""
        now = entry(self.session, parameter)
        if now != self.written[parameter]:
            raise UserError(f"another session has set {parameter} to {now!r} in"
                            " postgresql.auto.conf, which was"
                            f" {self.written[parameter]!r}")
        # first, as the answer may not arrive
        self.written[parameter] = text
        alter_system(self.session, parameter, text)

    def reload(self):
        """Our reload must not bring changes of others into force."""
        if files.fingerprint(self.session, self.parameters) != self.rest:
            raise UserError("another session has changed the configuration"
                            " files. Putting the settings back takes a reload,"
                            " which brings that change into force")
        files.check_pending(self.session)
        reload(self.session)

    def rehearse(self, wanted):
        """Write each value to postgresql.auto.conf and remove it again, without a
        reload: the server checks it, and nothing sees it."""
        for setting in wanted:
            for parameter in self.parameters:
                if parameter not in setting.values:
                    continue
                try:
                    self.write(parameter, setting.values[parameter])
                except SqlError as error:
                    self.written[parameter] = \
                        self.found["entries"][parameter]
                    first = str(error).splitlines()[0]
                    raise UserError(f"setting {setting.name!r}:"
                                    f" {first.removeprefix('ERROR:').strip()}"
                                    ) from None
                self.write(parameter, self.found["entries"][parameter])

    def apply(self, setting):
        """Does the same work whatever was in force before. Returns what in_force()
        must return until the next switch."""
        for parameter in self.parameters:
            self.write(parameter, setting.values.get(
                parameter, self.found["entries"][parameter]))
        if self.parameters:
            self.reload()
        for key in self.keys:
            if key == settings.LWLOCK_POLICY:
                set_lwlock_policy(self.session, setting.values.get(
                    key, self.found["lwlock_policy"]))
            elif key.startswith(settings.TRANCHE):
                tranche = key[len(settings.TRANCHE):]
                set_lwlock_policy(self.session, setting.values.get(
                    key, self.found["tranches"][tranche]), tranche)
            elif key == settings.STRATEGY:
                set_strategy(self.session, setting.values.get(
                    key, self.found["strategy"]))
        now = self.in_force()
        self._check(setting, now)
        return now

    def _check(self, setting, now):
        """It must be what was asked for, and the same as the last time."""
        for parameter in self.parameters:
            value = setting.values.get(parameter)
            if value is None:
                expected = self.found["shown"][parameter]
                if now[parameter] != expected:
                    raise Interference(f"{parameter} is {now[parameter]!r},"
                                       f" was {expected!r}")
            elif entry(self.session, parameter) != value:
                raise Interference(f"{parameter} in postgresql.auto.conf is not"
                                   f" {value!r}")
        strategy = setting.values.get(settings.STRATEGY, "auto").lower()
        if strategy not in ("auto", now.get("strategy")):
            # switched right after us, which is kept all the same
            self.leave_to_others("strategy")
            raise Interference(self._describe("strategy", strategy,
                                         now["strategy"]), "strategy")
        lasting = {key: value for key, value in now.items()
                   if key != "generation"}
        before = self.expected.setdefault(setting.name, lasting)
        for key, value in lasting.items():
            if value != before[key]:
                raise Interference(f"setting {setting.name!r}: {key} is"
                                   f" {value!r}, was {before[key]!r}")

    def in_force(self):
        """Everything that tells a setting, or a switch by others."""
        columns = {key: f"coalesce(current_setting({quote(key)}, true), '')"
                   for key in self.parameters}
        for key in self.keys:
            if key.startswith(settings.TRANCHE):
                tranche = key[len(settings.TRANCHE):]
                columns[key] = (
                    "(SELECT policy || CASE WHEN own THEN ' (own)' ELSE '' END"
                    f" FROM {self.session.sweep}pg_sweep_lwlock_policies"
                    f" WHERE tranche = {quote(tranche)})")
        source = ""
        if self.server.has_sweep:
            columns |= {name: name for name in
                        ("strategy", "generation", "lwlock_policy")}
            source = f" FROM {self.session.sweep}pg_sweep_status"
        if not columns:
            return {}
        # by number: a key may be longer than a name of SQL
        row = self.session.row("SELECT " + ", ".join(
            f"{column} AS c{i}" for i, column in enumerate(columns.values()))
            + source)
        return dict(zip(columns, row.values()))

    def still(self, before):
        """Check that no other session has changed it since apply()."""
        now = self.in_force()
        for key, value in before.items():
            if now[key] != value:
                self.leave_to_others(key)
                raise Interference(self._describe(key, value, now[key]), key)

    def leave_to_others(self, key):
        """What another session has chosen meanwhile is what will be put back."""
        status = self.session.row(
            "SELECT strategy, reason, lwlock_policy FROM"
            f" {self.session.sweep}pg_sweep_status") \
            if self.server.has_sweep else {}
        if key in ("strategy", "generation") and self.found["strategy"]:
            self.found["strategy"] = chosen_strategy(status)
        elif key == settings.LWLOCK_POLICY and self.found["lwlock_policy"]:
            self.found["lwlock_policy"] = status["lwlock_policy"]
        elif key.startswith(settings.TRANCHE):
            tranche = key[len(settings.TRANCHE):]
            self.found["tranches"][tranche] = own_policy(self.session, tranche)
        else:
            return
        self.on_change()

    def _describe(self, key, before, now):
        text = f"{key} was {before}, is {now}"
        if key in ("strategy", "generation"):
            row = self.session.row("SELECT strategy, set_by, set_by_role,"
                                   " active_since::text FROM"
                                   f" {self.session.sweep}pg_sweep_status")
            role = f" of {row['set_by_role']}" if row["set_by_role"] else ""
            text = (f"strategy {row['strategy']} was set by {row['set_by']}"
                    f"{role} at {row['active_since']}")
        return text

