"""The version of pg_sweep, which is that of its control file."""

import pkgutil
import re
from pathlib import Path

CONTROL = "pg_sweep.control"


def version():
    """The zipapp has a copy of the control file beside this module."""
    try:
        text = pkgutil.get_data("ab", CONTROL).decode()
    except OSError:
        text = (Path(__file__).parents[1] / CONTROL).read_text()
    return re.search(r"^default_version *= *'(.*)'", text, re.M).group(1)
