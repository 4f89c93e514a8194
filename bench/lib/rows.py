"""Rows of a result, as every bench writes them: which keys one has, what they
may be, and how they become files. Whoever reads a bench's JSON or CSV may rely
on it."""

import csv
import io
import json
import math

from .paths import BenchError

NAMES = ("metric", "configuration", "side")
FIGURES = ("median", "min", "max")
RATIOS = ("ratio", "ratio_min", "ratio_max", "ratio_low", "ratio_high")
KEYS = (*NAMES, "rounds", *FIGURES, *RATIOS)

# Of ascending figures: a sum in another order may end in another last digit.
TOLERANCE = 1e-9


def check(rows):
    """Refuse what is not a result: a reader would stumble over it later."""
    if not isinstance(rows, list) or not rows:
        raise BenchError("a result has no rows")
    seen = set()
    for number, row in enumerate(rows, 1):
        wrong = problem(row)
        if wrong is None:
            name = tuple(row[key] for key in NAMES)
            wrong = "is there twice" if name in seen else None
            seen.add(name)
        if wrong is not None:
            raise BenchError(f"row {number} of the result{title(row)} {wrong}")


def title(row):
    if not isinstance(row, dict) or not all(row.get(key) for key in NAMES):
        return ""
    return f" ({', '.join(str(row[key]) for key in NAMES)})"


def problem(row):
    """What is wrong with a row; None: nothing."""
    if not isinstance(row, dict):
        return "is not an object"
    for key in KEYS:
        if key not in row:
            return f"has no {key}"
    for key in row:
        if key not in KEYS:
            return f"has an unknown {key!r}"
    for key in NAMES:
        if not isinstance(row[key], str) or not row[key].strip():
            return f"has {row[key]!r} as {key}"
    rounds = row["rounds"]
    if not isinstance(rounds, int) or isinstance(rounds, bool) or rounds < 1:
        return f"has {rounds!r} as rounds"
    for key in FIGURES:
        if not is_figure(row[key]):
            return f"has {row[key]!r} as {key}"
    if not ascending(row["min"], row["median"], row["max"]):
        return "has a median that is not between min and max"
    return problem_of_ratios(row)


def problem_of_ratios(row):
    found = [row[key] for key in RATIOS]
    if all(value is None for value in found):
        return None
    for key, value in zip(RATIOS, found):
        if not is_figure(value):
            return f"has {value!r} as {key}"
    ratio, least, most, low, high = found
    if not ascending(least, low, ratio, high, most):
        return ("has a ratio that is not within its interval, or an interval"
                " not within its range")
    return None


def is_figure(value):
    return (isinstance(value, (int, float)) and not isinstance(value, bool)
            and math.isfinite(value))


def ascending(*values):
    return all(a <= b + TOLERANCE * max(abs(a), abs(b))
               for a, b in zip(values, values[1:]))


def to_json(rows):
    return json.dumps([{key: row[key] for key in KEYS} for row in rows],
                      indent=1, allow_nan=False) + "\n"


def to_csv(rows):
    """Empty where JSON has null."""
    text = io.StringIO()
    writer = csv.DictWriter(text, KEYS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def read(path):
    """The rows of a file of JSON; what is not a result is an error."""
    try:
        rows = json.loads(path.read_text())
    except OSError as error:
        raise BenchError(f"cannot read {path}: {error.strerror}")
    except ValueError as error:
        raise BenchError(f"{path} is not JSON: {error}")
    try:
        check(rows)
    except BenchError as error:
        raise BenchError(f"{path}: {error}")
    return rows
