"""Puts settings in force, one after the other."""

from ab import files, settings, state
from ab.errors import UserError
from ab.files import entry
from ab.session import SqlError, quote


class Interference(UserError):
    """Another session has changed what is compared."""


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
            raise UserError(f"another session has set {parameter} to {now!r}"
                            " in postgresql.auto.conf, which was"
                            f" {self.written[parameter]!r}")
        # first, as the answer may not arrive
        self.written[parameter] = text
        state.alter_system(self.session, parameter, text)

    def reload(self):
        """Our reload must not bring changes of others into force."""
        if files.fingerprint(self.session, self.parameters) != self.rest:
            raise UserError("another session has changed the configuration"
                            " files. Putting the settings back takes a reload,"
                            " which brings that change into force")
        files.check_pending(self.session)
        state.reload(self.session)

    def rehearse(self, wanted):
        """Write each value to postgresql.auto.conf and remove it again,
        without a reload: the server checks it, and nothing sees it."""
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
        """Does the same work whatever was in force before. Returns what
        in_force() must return until the next switch."""
        for parameter in self.parameters:
            self.write(parameter, setting.values.get(
                parameter, self.found["entries"][parameter]))
        if self.parameters:
            self.reload()
        for key in self.keys:
            if key == settings.LWLOCK_POLICY:
                state.set_lwlock_policy(self.session, setting.values.get(
                    key, self.found["lwlock_policy"]))
            elif tranche := settings.tranche(key):
                state.set_lwlock_policy(self.session, setting.values.get(
                    key, self.found["tranches"][tranche]), tranche)
            elif key == settings.STRATEGY:
                state.set_strategy(self.session, setting.values.get(
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
                raise Interference(f"{parameter} in postgresql.auto.conf is"
                                   f" not {value!r}")
        strategy = setting.values.get(settings.STRATEGY, "auto").lower()
        if strategy not in ("auto", now.get("strategy")):
            # switched right after us, which is kept all the same
            self.leave_to_others("strategy")
            raise Interference(self._describe("strategy", strategy,
                                              now["strategy"]))
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
            if tranche := settings.tranche(key):
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
                raise Interference(self._describe(key, value, now[key]))

    def leave_to_others(self, key):
        """What another session has chosen meanwhile will be put back."""
        status = self.session.row(
            "SELECT strategy, reason, lwlock_policy FROM"
            f" {self.session.sweep}pg_sweep_status") \
            if self.server.has_sweep else {}
        if key in ("strategy", "generation") and self.found["strategy"]:
            self.found["strategy"] = state.chosen_strategy(status)
        elif key == settings.LWLOCK_POLICY and self.found["lwlock_policy"]:
            self.found["lwlock_policy"] = status["lwlock_policy"]
        elif tranche := settings.tranche(key):
            self.found["tranches"][tranche] = state.own_policy(self.session,
                                                               tranche)
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
