"""Machine files: one machine, one file, every number with its source.

    {"name": "hb176", "title": "...", "notes": ["..."], "base": "other",
     "sources": {"short": "where that is"},
     "values": {"cores": [192, "short: what it says there"], ...}}

A machine with a base has that machine's sources and values, except for those
that it names itself.

A source is one of the file's "sources", or begins with "assumed", "derived",
"fitted" or "measured"."""

import json
from pathlib import Path

from bench.lib.paths import BenchError

MACHINES = Path(__file__).resolve().parents[1] / "machines"

MS, S = 10**9, 10**12          # ps

# Name: (least, most). Times are in picoseconds; engine/sim.h says what they are.
# A latency of 0 would let a process that waits for a line never yield.
KEYS = {
    "cores": (1, 4096), "threads_per_core": (1, 8),
    "cores_per_group": (1, 4096), "groups_per_node": (1, 256),
    "nodes_per_socket": (1, 64), "sockets": (1, 64),
    **dict.fromkeys(("latency_same_core", "latency_group", "latency_node",
                     "latency_socket", "latency_other_socket", "memory_local",
                     "memory_socket", "memory_other"), (100, MS)),
    **dict.fromkeys(("load_hit", "store_hit", "rmw_hit", "cas_hit", "pause"),
                    (1, S)),
    "keep_ps": (0, S), "instruction_ps": (1, S),
    **dict.fromkeys(("wakeup_ps", "wake_call_ps", "sleep_call_ps",
                     "switch_ps"), (0, S)),
    "timeslice_ps": (10**6, S), "copy_bytes_per_s": (10**6, 10**13),
    "bandwidth_bytes_per_s": (0, 10**14), "llc_bytes": (0, 10**12),
}
# Nearer is never slower.
ORDERED = (
    ("latency_same_core", "latency_group", "latency_node", "latency_socket",
     "latency_other_socket"),
    ("memory_local", "memory_socket", "memory_other"),
    ("load_hit", "rmw_hit"), ("store_hit", "rmw_hit"),
)
PARTS = ("cores_per_group", "groups_per_node", "nodes_per_socket", "sockets")
TOP = {"name", "title", "notes", "base", "sources", "values"}
KINDS = ("assumed", "derived", "fitted", "measured")


class Machine:
    def __init__(self, document, where):
        self.where = where
        self.check_document(document)
        self.name = document["name"]
        self.title = document["title"]
        self.notes = document.get("notes", [])
        self.sources = dict(document.get("sources", {}))
        pairs = dict(document["values"])
        if "base" in document:
            base = named(document["base"])
            self.sources = {**base.sources, **self.sources}
            pairs = {**base.pairs(), **pairs}
        self.value = {key: number for key, (number, _) in pairs.items()}
        self.source = {key: why for key, (_, why) in pairs.items()}
        self.check_values()

    def wrong(self, what):
        raise BenchError(f"{self.where}: {what}")

    def check_document(self, document):
        if not isinstance(document, dict):
            self.wrong("a machine is a JSON object")
        for key in sorted(set(document) - TOP):
            self.wrong(f"unknown key {key!r}")
        for key in ("name", "title"):
            if not isinstance(document.get(key), str) or not document[key]:
                self.wrong(f"{key!r} must be a text")
        sources = document.get("sources", {})
        if not isinstance(sources, dict) or not all(
                isinstance(text, str) and text for text in sources.values()):
            self.wrong("'sources' must be an object of texts")
        if not isinstance(document.get("values"), dict):
            self.wrong("'values' must be an object")
        for key, pair in document["values"].items():
            if (not isinstance(pair, list) or len(pair) != 2
                    or type(pair[0]) is not int
                    or not isinstance(pair[1], str)):
                self.wrong(f"{key!r} must be [whole number, source]")

    def check_values(self):
        for key in sorted(set(self.value) - set(KEYS)):
            self.wrong(f"unknown value {key!r}")
        for key, (least, most) in KEYS.items():
            if key not in self.value:
                self.wrong(f"value {key!r} is missing")
            if not least <= self.value[key] <= most:
                self.wrong(f"{key!r} is {self.value[key]}, which is not"
                           f" between {least} and {most}")
            self.check_source(key)
        cores = 1
        for key in PARTS:
            cores *= self.value[key]
        if cores != self.value["cores"]:
            self.wrong(f"'cores' is {self.value['cores']}, but groups, nodes"
                       f" and sockets make {cores}")
        for keys in ORDERED:
            for near, far in zip(keys, keys[1:]):
                if self.value[near] > self.value[far]:
                    self.wrong(f"{near!r} must not be larger than {far!r}")

    def check_source(self, key):
        source = self.source[key].split(":")[0]
        if (source not in self.sources
                and source.split(",")[0].split(" ")[0] not in KINDS):
            self.wrong(f"the source of {key!r} must begin with"
                       f" {', '.join(map(repr, KINDS))} or the name of one of"
                       " 'sources'")

    def pairs(self):
        return {key: [self.value[key], self.source[key]] for key in self.value}

    def nodes(self):
        return self.value["nodes_per_socket"] * self.value["sockets"]

    def cpus(self):
        return self.value["cores"] * self.value["threads_per_core"]

    def config(self):
        """Lines for the simulator."""
        return {f"machine.{key}": self.value[key] for key in KEYS}

    def changed(self, **values):
        """The same machine with other values, for fits and bands."""
        pairs = {**self.pairs(), **{key: [value, "fitted"]
                                    for key, value in values.items()}}
        return Machine({"name": self.name, "title": self.title,
                        "sources": self.sources, "values": pairs}, self.where)


def read(path):
    try:
        text = path.read_text()
    except OSError as error:
        raise BenchError(f"cannot read {path}: {error.strerror}")
    try:
        document = json.loads(text)
    except ValueError as error:
        raise BenchError(f"{path} is not JSON: {error}")
    return Machine(document, str(path))


def names():
    return sorted(file.stem for file in MACHINES.glob("*.json"))


def named(name):
    """A machine by the name of its file, or by a path."""
    if "/" in name or name.endswith(".json"):
        return read(Path(name))
    if name not in names():
        raise BenchError(f"there is no machine {name!r}; there are"
                         f" {', '.join(names())}")
    return read(MACHINES / f"{name}.json")


def write(path, document):
    """Checks it first. An older file stays until the new one is complete."""
    Machine(document, str(path))
    fresh = path.with_suffix(".json.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_text(render(document))
        fresh.replace(path)
    except OSError as error:
        raise BenchError(f"cannot write {path}: {error.strerror}")


def render(document):
    """JSON with one value per line."""
    lines = ["{"]
    for key in ("name", "title", "notes", "base", "sources"):
        if key in document:
            text = json.dumps(document[key], indent=1, ensure_ascii=False)
            lines.append(f' "{key}": ' + text.replace("\n", "\n ") + ",")
    values = [f'  "{key}": ' + json.dumps(pair, ensure_ascii=False)
              for key, pair in document["values"].items()]
    return "\n".join([*lines, ' "values": {', ",\n".join(values), " }",
                      "}"]) + "\n"
