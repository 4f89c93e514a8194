"""What the settings change on the server: to find it, to change it, and to put
it back."""

import time

from ab import settings
from ab.errors import UserError
from ab.files import entry
from ab.session import ServerGone, quote, quote_name

# A reload reaches every process within milliseconds, unless it is stuck.
RELOAD_SECONDS = 20
POLL_SECONDS = 0.005


def incarnation(session):
    """Changes with each start of the server, also after a crash of a process:
    what functions had set is lost then."""
    # as text, which does not depend on the time zone
    row = session.row("SELECT extract(epoch FROM pg_postmaster_start_time())"
                      "::text AS postmaster, (SELECT extract(epoch FROM"
                      " backend_start)::text FROM pg_stat_activity"
                      " WHERE backend_type = 'checkpointer') AS checkpointer")
    return [row["postmaster"], row["checkpointer"]]


def find(session, server, wanted):
    """All that the settings will change, as it is now. The journal keeps it,
    and put_back() takes it."""
    server.sweep = server.ask_sweep()
    found = {"incarnation": incarnation(session), "entries": {}, "shown": {},
             "ours": {}, "strategy": None, "lwlock_policy": None,
             "tranches": {}}
    for key in settings.keys(wanted):
        if key == settings.STRATEGY:
            found["strategy"] = chosen_strategy(server.sweep)
        elif key == settings.LWLOCK_POLICY:
            found["lwlock_policy"] = server.sweep["lwlock_policy"]
        elif tranche := settings.tranche(key):
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
    """Restore what find() has found, and check it. Returns (what could not be
    put back, what other sessions have changed and keep), as lines. If a part
    fails, the others are tried all the same."""
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
