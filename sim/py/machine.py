"""Machine files: one machine, one file, every number with its source.

    {"name": "hb176", "title": "...", "notes": ["..."],
     "sources": {"short": "where that is"},
     "values": {"cores": [192, "short: what it says there"], ...}}

"together_percent", which calibration writes, is how much time a CPU needs for its
work while another one works, 100 alone: it is for the prediction of that machine
itself, where two CPUs may be threads of one core without saying so. The
simulator does not know it. "migratory": a load of a line that another CPU has
written brings it for writing, too. "reach_ps": how long a request is on its way before who
has the line must give it away; without it, that is no time.

A number whose source is not known begins its source with "assumed"; one that
calibration has measured, with "measured"."""

import json
from pathlib import Path

from bench.lib.paths import BenchError

MACHINES = Path(__file__).resolve().parents[1] / "machines"

MS, S = 10**9, 10**12          # ps

# Name: (least, most, what it is). Times are in picoseconds. The least latency
# of a line from another core is larger than 0, or who waits would never yield.
KEYS = {
    "cores": (1, 4096, "cores"),
    "threads_per_core": (1, 8, "hardware threads a core"),
    "cores_per_group": (1, 4096, "cores that share an L3 or a cluster"),
    "groups_per_node": (1, 256, "such groups a NUMA node"),
    "nodes_per_socket": (1, 64, "NUMA nodes a socket"),
    "sockets": (1, 64, "sockets"),
    "latency_same_core": (100, MS, "a line from the core's other thread"),
    "latency_group": (100, MS, "a line from a core of the same group"),
    "latency_node": (100, MS, "a line from another group of the same node"),
    "latency_socket": (100, MS, "a line from another node of the same socket"),
    "latency_other_socket": (100, MS, "a line from another socket"),
    "memory_local": (100, MS, "a line from the node's own memory"),
    "memory_socket": (100, MS, "a line from memory of another node of the"
                              " same socket"),
    "memory_other": (100, MS, "a line from memory of another socket"),
    "load_hit": (1, S, "a load, the line is here"),
    "store_hit": (1, S, "a store, the line is here"),
    "rmw_hit": (1, S, "lock xadd, lock add or xchg, the line is here"),
    "cas_hit": (1, S, "lock cmpxchg, the line is here"),
    "pause": (1, S, "the pause instruction"),
    "keep_ps": (0, S, "a new owner keeps a line for so long, on average"),
    "instruction_ps": (1, S, "what an instruction adds, between locked ones"),
    "wakeup_ps": (0, S, "from the call that wakes a sleeper until he runs"),
    "wake_call_ps": (0, S, "that call, for the waker"),
    "sleep_call_ps": (0, S, "the call that goes to sleep, until it sleeps"),
    "switch_ps": (0, S, "from one process to another on a CPU"),
    "timeslice_ps": (10**6, S, "a process' turn on a shared CPU"),
    "copy_bytes_per_s": (10**6, 10**13, "page copies, one core"),
    "bandwidth_bytes_per_s": (0, 10**14, "page copies, all cores of a node;"
                                         " 0: no limit"),
    "device_bytes_per_s": (0, 10**14, "reads from the device; 0: no limit"),
    "llc_bytes": (0, 10**12, "last-level cache of a group; 0: all fits"),
}
# Nearer is never slower.
ORDERED = (
    ("latency_same_core", "latency_group", "latency_node", "latency_socket",
     "latency_other_socket"),
    ("memory_local", "memory_socket", "memory_other"),
    ("load_hit", "rmw_hit"), ("store_hit", "rmw_hit"),
)
TOP = {"name", "title", "notes", "sources", "values", "together_percent",
       "migratory", "reach_ps"}


class Machine:
    def __init__(self, document, where):
        self.where = where
        self.check_document(document)
        self.name = document["name"]
        self.title = document["title"]
        self.notes = document.get("notes", [])
        self.sources = document.get("sources", {})
        self.together = document.get("together_percent", 100)
        self.extra = {key: document.get(key, least) for key, least
                      in (("migratory", False), ("reach_ps", 0))}
        self.source = {key: why for key, (_, why)
                       in document["values"].items()}
        self.value = {key: number for key, (number, _)
                      in document["values"].items()}
        self.check_values()

    def wrong(self, what):
        raise BenchError(f"{self.where}: {what}")

    def check_document(self, document):
        if not isinstance(document, dict):
            self.wrong("a machine is a JSON object")
        for key in sorted(set(document) - TOP):
            self.wrong(f"unknown key {key!r}")
        for key in ("name", "title", "values"):
            if key not in document:
                self.wrong(f"{key!r} is missing")
        together = document.get("together_percent", 100)
        if not isinstance(together, int) or not 100 <= together <= 1000:
            self.wrong("'together_percent' must be a whole number from 100 to"
                       " 1000")
        if not isinstance(document.get("migratory", False), bool):
            self.wrong("'migratory' must be true or false")
        reach = document.get("reach_ps", 0)
        if isinstance(reach, bool) or not isinstance(reach, int) or (
                not 0 <= reach <= MS):
            self.wrong(f"'reach_ps' must be a whole number from 0 to {MS}")
        for key in ("name", "title"):
            if not isinstance(document[key], str) or not document[key]:
                self.wrong(f"{key!r} must be a text")
        sources = document.get("sources", {})
        if not isinstance(sources, dict) or not all(
                isinstance(text, str) and text for text in sources.values()):
            self.wrong("'sources' must be an object of texts")
        if not isinstance(document["values"], dict):
            self.wrong("'values' must be an object")
        for key, pair in document["values"].items():
            if (not isinstance(pair, list) or len(pair) != 2
                    or isinstance(pair[0], bool)
                    or not isinstance(pair[0], int)
                    or not isinstance(pair[1], str)):
                self.wrong(f"{key!r} must be [whole number, source]")

    def check_values(self):
        for key in sorted(set(self.value) - set(KEYS)):
            self.wrong(f"unknown value {key!r}")
        for key, (least, most, _) in KEYS.items():
            if key not in self.value:
                self.wrong(f"value {key!r} is missing")
            if not least <= self.value[key] <= most:
                self.wrong(f"{key!r} is {self.value[key]}, which is not"
                           f" between {least} and {most}")
            self.check_source(key)
        shape = 1
        for key in ("cores_per_group", "groups_per_node", "nodes_per_socket",
                    "sockets"):
            shape *= self.value[key]
        if shape != self.value["cores"]:
            self.wrong(f"'cores' is {self.value['cores']}, but groups, nodes"
                       f" and sockets make {shape}")
        for keys in ORDERED:
            for near, far in zip(keys, keys[1:]):
                if self.value[near] > self.value[far]:
                    self.wrong(f"{near!r} must not be larger than {far!r}")

    def check_source(self, key):
        source = self.source[key]
        first = source.split(":")[0].split(",")[0].split(" ")[0]
        if first in ("assumed", "measured", "fitted", "derived"):
            return
        if source.split(":")[0] not in self.sources:
            self.wrong(f"the source of {key!r} must begin with 'assumed',"
                       " 'measured', 'fitted', 'derived' or the name of one"
                       " of 'sources'")

    # ---- what others ask ----

    def nodes(self):
        return self.value["nodes_per_socket"] * self.value["sockets"]

    def cpus(self):
        return self.value["cores"] * self.value["threads_per_core"]

    def config(self):
        """Lines for the simulator."""
        return {**{f"machine.{key}": self.value[key] for key in KEYS},
                **{key: int(value) for key, value in self.extra.items()
                   if value}}

    def changed(self, **values):
        """The same machine with other values, for fits and bands."""
        document = {"name": self.name, "title": self.title,
                    "sources": self.sources, **self.extra,
                    "values": {key: [values.get(key, self.value[key]),
                                     "fitted" if key in values
                                     else self.source[key]]
                               for key in self.value}}
        return Machine(document, self.where)


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


def named(name):
    """A machine by the name of its file, or by a path."""
    if "/" in name or name.endswith(".json"):
        return read(Path(name))
    path = MACHINES / f"{name}.json"
    if not path.exists():
        known = sorted(file.stem for file in MACHINES.glob("*.json"))
        raise BenchError(f"there is no machine {name!r}; there are"
                         f" {', '.join(known)}")
    return read(path)


def write(path, document):
    """Checked first; what is there stays until the new one is complete."""
    Machine(document, str(path))
    fresh = path.with_suffix(".json.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_text(render(document))
        fresh.replace(path)
    except OSError as error:
        raise BenchError(f"cannot write {path}: {error.strerror}")


def render(document):
    """JSON with a value a line."""
    lines = ["{"]
    for key in ("name", "title", "together_percent", "migratory", "reach_ps",
                "notes", "sources"):
        if key in document:
            text = json.dumps(document[key], indent=1, ensure_ascii=False)
            lines.append(f' "{key}": ' + text.replace("\n", "\n ") + ",")
    lines.append(' "values": {')
    values = [f'  "{key}": ' + json.dumps(pair, ensure_ascii=False)
              for key, pair in document["values"].items()]
    lines.append(",\n".join(values))
    lines += [" }", "}"]
    return "\n".join(lines) + "\n"
