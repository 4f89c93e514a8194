"""Settings, which are what is compared: each has a name, and values by key.

    NAME: KEY=VALUE, KEY=VALUE, ...
    batched, batch_size=8         a plain word is a strategy; the text names it
    NAME:                         everything as it was found

A setting without a key of another one leaves its value as it was found."""

import re
from dataclasses import dataclass

from ab.errors import UserError

STRATEGY = "strategy"
LWLOCK_POLICY = "lwlock_policy"
TRANCHE = "lwlock_policy."
# Short for parameters of pg_sweep
SHORT = {"batch_size": "pg_sweep.batch_size", "balance": "pg_sweep.balance",
         "ring_eager_flush": "pg_sweep.ring_eager_flush"}
# Functions switch these two, and do not touch the configuration.
RUNTIME = {"pg_sweep.strategy": STRATEGY,
           "pg_sweep.lwlock_policy": LWLOCK_POLICY}
NAME = re.compile(r"[A-Za-z_][\w$]*(\.[A-Za-z_][\w$]*)*\Z")
ITEM = re.compile(r"""\s*((?:'(?:[^']|'')*'|[^,'])*)\s*(,|\Z)""")
# A name heads a column of a table.
LONGEST_NAME = 40


@dataclass(frozen=True)
class Setting:
    name: str
    values: dict


def is_parameter(key):
    """ALTER SYSTEM sets it, not a function of pg_sweep."""
    return key not in (STRATEGY, LWLOCK_POLICY) and tranche(key) is None


def tranche(key):
    """Of the key lwlock_policy.TRANCHE; None for all other keys."""
    return key[len(TRANCHE):] if key.startswith(TRANCHE) else None


def parse(text):
    name, items = None, text
    found = re.match(r"([^=,':]+):(.*)\Z", text, re.DOTALL)
    if found:
        name, items = found.group(1).strip(), found.group(2)
    if "\n" in text or "\r" in text:
        raise UserError(f"setting {text!r}: a line break in it")
    values = {}
    for item in split(items, text):
        key, value = key_and_value(item, text)
        if key in values:
            raise UserError(f"setting {text!r}: {key} twice")
        values[key] = value
    if name is None and not values:
        raise UserError("a setting is empty: write \"NAME:\" for everything"
                        " as it is now")
    if name == "":
        raise UserError(f"setting {text!r}: no name before the colon")
    name = name or items.strip()
    if len(name) > LONGEST_NAME:
        raise UserError(f"setting {name!r}: give it a name of at most"
                        f" {LONGEST_NAME} characters, as in"
                        " \"NAME: KEY=VALUE\"")
    return Setting(name, values)


def split(items, text):
    if not items.strip():
        return
    at = 0
    while True:
        found = ITEM.match(items, at)
        if found is None:
            raise UserError(f"setting {text!r}: a quote is not closed")
        if not found.group(1).strip():
            raise UserError(f"setting {text!r}: nothing between two commas")
        yield found.group(1).strip()
        if found.group(2) == "":
            return
        at = found.end()


def key_and_value(item, text):
    key, equals, value = item.partition("=")
    key, value = key.strip(), value.strip()
    if not equals:
        key, value = STRATEGY, item
    if value.startswith("'") and value.endswith("'") and len(value) > 1:
        value = value[1:-1].replace("''", "'")
    elif "'" in value:
        raise UserError(f"setting {text!r}: quote a whole value, or nothing"
                        " of it")
    elif value == "":
        raise UserError(f"setting {text!r}: {key} has no value (an empty one"
                        " is '')")
    if tranche(key) is not None:
        # names of tranches are case-sensitive
        if not tranche(key):
            raise UserError(f"setting {text!r}: which tranche?")
        return key, value
    key = key.lower()
    key = RUNTIME.get(key, SHORT.get(key, key))
    if not NAME.match(key):
        raise UserError(f"setting {text!r}: {key!r} is no name of a"
                        " parameter")
    return key, value


def parse_all(texts):
    """Settings of the same name, as in an A/A, get numbers."""
    result = []
    for text in texts:
        setting = parse(text)
        taken = {other.name for other in result}
        name, number = setting.name, 1
        while name in taken:
            number += 1
            name = f"{setting.name} ({number})"
        result.append(Setting(name, setting.values))
    if len(result) < 2:
        raise UserError("at least two settings are needed, as in --a stock"
                        " --b batched")
    return result


def keys(settings):
    """All keys, in the order in which they came."""
    return list(dict.fromkeys(key for setting in settings
                              for key in setting.values))
