"""What is to be put back, in a file, in case that this process is killed:
written before the first change, removed after the last."""

import hashlib
import json
import os
import time
from pathlib import Path

from ab.errors import UserError

VERSION = 2


def default_directory():
    state = os.environ.get("XDG_STATE_HOME")
    if not state:
        state = Path.home() / ".local" / "state"
    return Path(state) / "pg_sweep"


class Journal:
    def __init__(self, directory, server):
        self.directory = Path(directory)
        self.identity = {**server.identity, "port": server.facts["port"]}
        # A standby has its primary's system identifier, so folder and port
        # count, too.
        key = hashlib.sha256(json.dumps(self.identity, sort_keys=True)
                             .encode()).hexdigest()[:16]
        self.path = self.directory / f"ab-{key}.json"

    def read(self):
        """None if there is none."""
        try:
            content = json.loads(self.path.read_text())
            if content["version"] != VERSION:
                raise ValueError(f"version {content['version']}")
            if content["server"] != self.identity:
                raise ValueError("it is of another server")
            return content
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(f"{self.path} cannot be read ({error}): put back"
                            " by hand what it says, and remove it")

    def write(self, found, scratch):
        content = {"version": VERSION, "server": self.identity,
                   "began": time.strftime("%Y-%m-%d %H:%M:%S %z"),
                   "pid": os.getpid(), "scratch": str(scratch or ""),
                   "found": found}
        try:
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            fresh = self.path.with_suffix(".new")
            with open(fresh, "w") as file:
                file.write(json.dumps(content, indent=1) + "\n")
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(self.path)
            self._sync()
        except OSError as error:
            raise UserError("cannot write down what is to be put back:"
                            f" {error}; --state-dir names another folder")

    def remove(self):
        self.path.unlink(missing_ok=True)
        self._sync()

    def _sync(self):
        folder = os.open(self.directory, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
