"""Rows of a result, as every bench writes them: their keys, and their files."""

import csv
import io
import json

from .paths import BenchError

NAMES = ("metric", "configuration", "side")
FIGURES = ("median", "min", "max")
RATIOS = ("ratio", "ratio_min", "ratio_max", "ratio_low", "ratio_high")
KEYS = (*NAMES, "rounds", *FIGURES, *RATIOS)


def check(rows):
    """Refuse what is not a result."""
    if not isinstance(rows, list) or not rows:
        raise BenchError("a result has no rows")
    seen = set()
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict) or set(row) != set(KEYS):
            raise BenchError(f"row {number} of the result has not the keys"
                             f" {', '.join(KEYS)}")
        name = tuple(row[key] for key in NAMES)
        if name in seen:
            raise BenchError(f"row {number} of the result is there twice:"
                             f" {name}")
        seen.add(name)


def to_json(rows):
    check(rows)
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
        check(rows)
    except OSError as error:
        raise BenchError(f"cannot read {path}: {error.strerror}")
    except ValueError as error:
        raise BenchError(f"{path} is not JSON: {error}")
    except BenchError as error:
        raise BenchError(f"{path}: {error}")
    return rows
