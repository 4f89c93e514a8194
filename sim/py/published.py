"""Published measurements, as they are in published/."""

import csv
import json
from pathlib import Path

from bench.lib.paths import BenchError

FOLDER = Path(__file__).resolve().parents[1] / "published"


def number(text):
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


def read(name):
    """The rows of a table, as objects. Lines that begin with # name the
    source."""
    path = FOLDER / f"{name}.csv"
    try:
        lines = [line for line in path.read_text().splitlines()
                 if not line.startswith("#")]
    except OSError as error:
        raise BenchError(f"cannot read {path}: {error.strerror}")
    return [{key: number(value) for key, value in row.items()}
            for row in csv.DictReader(lines)]


def plan(name):
    """What may be fitted: which figures, which numbers to them."""
    path = FOLDER / f"{name}.json"
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise BenchError(f"cannot read {path}: {error}")
