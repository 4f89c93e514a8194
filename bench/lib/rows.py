"""Rows of a result, as every bench writes them: their keys, and their files."""

import csv
import io
import json
import math

from .paths import BenchError

NAMES = ("metric", "configuration", "side")
FIGURES = ("median", "min", "max")
RATIOS = ("ratio", "ratio_min", "ratio_max", "ratio_low", "ratio_high")
KEYS = (*NAMES, "rounds", *FIGURES, *RATIOS)

# Of ascending figures: a sum in another order may differ in its last digit.
TOLERANCE = 1e-9


def check(rows):
    """Refuse what is not a result."""
    if not isinstance(rows, list) or not rows:
        raise BenchError("a result has no rows")
    seen = set()
    for number, row in enumerate(rows, 1):
        wrong = problem(row)
        if wrong is None:
            name = tuple(row[key] for key in NAMES)
            wrong = f"is there twice: {name}" if name in seen else None
            seen.add(name)
        if wrong is not None:
            raise BenchError(f"row {number} of the result {wrong}")


def problem(row):
    """The defect of a row, or None."""
    if not isinstance(row, dict):
        return "is not an object"
    for key in (*KEYS, *row):
        if key not in row:
            return f"has no {key}"
        if key not in KEYS:
            return f"has an unknown {key!r}"
    ratios = RATIOS if any(row[key] is not None for key in RATIOS) else ()
    good = {
        **{key: isinstance(row[key], str) and row[key].strip()
           for key in NAMES},
        "rounds": is_figure(row["rounds"]) and row["rounds"] >= 1,
        **{key: is_figure(row[key]) for key in (*FIGURES, *ratios)}}
    for key, is_good in good.items():
        if not is_good:
            return f"has {row[key]!r} as {key}"
    if not ascending(row, "min", "median", "max"):
        return "has a median that is not between min and max"
    if ratios and not ascending(row, "ratio_min", "ratio_low", "ratio",
                                "ratio_high", "ratio_max"):
        return ("has a ratio that is not within its interval, or an interval"
                " not within its range")
    return None


def is_figure(value):
    return (isinstance(value, (int, float)) and not isinstance(value, bool)
            and math.isfinite(value))


def ascending(row, *keys):
    values = [row[key] for key in keys]
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
    """The rows of a file of JSON, checked."""
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
