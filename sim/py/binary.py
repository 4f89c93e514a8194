"""Runs the simulator, and remembers its answers: the same program and the same
configuration give the same one."""

import hashlib
import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from bench.lib.paths import BENCH, BenchError

CACHE = BENCH / "sim" / "cache"
REFUSED = 2                     # status: asked for what cannot be
TIMEOUT = 1800                  # seconds; far longer than any run we make


@dataclass
class Answer:
    numbers: dict = field(default_factory=dict)     # elapsed_ps, events, ..
    regions: dict = field(default_factory=dict)     # name: {loads: n, ..}
    results: dict = field(default_factory=dict)     # of the load

    def __getitem__(self, key):
        return self.numbers[key]


def text_of(config):
    return "".join(f"{key} {value}\n" for key, value in config.items())


def parse(output):
    answer = Answer()
    for line in output.splitlines():
        words = line.split()
        if words[0] == "region":
            # a region's name may have spaces; counts follow in pairs
            at = words.index("loads")
            answer.regions[" ".join(words[1:at])] = {
                key: int(value) for key, value in zip(words[at::2],
                                                      words[at + 1::2])}
        elif words[0] == "result":
            answer.results[words[1]] = float(words[2])
        else:
            answer.numbers[words[0]] = (int(words[1])
                                        if words[1].lstrip("-").isdigit()
                                        else float(words[1]))
    return answer


class Simulator:
    def __init__(self, program, fresh=False, jobs=1):
        self.program = program
        self.fresh = fresh
        self.jobs = jobs
        self.asked = self.found = 0
        try:
            self.identity = hashlib.sha256(program.read_bytes()).hexdigest()
            CACHE.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BenchError(f"cannot read {program} or make {CACHE}:"
                             f" {error.strerror}")

    def run(self, config):
        """The answer of one run."""
        text = text_of(config)
        key = hashlib.sha256((self.identity + text).encode()).hexdigest()
        path = CACHE / f"{key}.txt"
        self.asked += 1
        if not self.fresh and path.exists():
            self.found += 1
            return parse(path.read_text())
        output = self.ask(text)
        fresh = path.with_suffix(f".{id(text)}.new")
        fresh.write_text(output)
        fresh.replace(path)
        return parse(output)

    def ask(self, text):
        try:
            done = subprocess.run([self.program], input=text,
                                  capture_output=True, text=True,
                                  timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            raise BenchError(f"a run took longer than {TIMEOUT} s:\n{text}")
        what = (done.stderr.strip()
                or f"the simulator ended with status {done.returncode}")
        if done.returncode == REFUSED:
            raise BenchError(what)      # which names the key
        if done.returncode != 0:
            raise BenchError(f"{what}\nwith the configuration\n{text}")
        return done.stdout

    def run_all(self, configs, progress=lambda done, of: None):
        """Many runs, as many at once as jobs say; answers in their order."""
        answers = []
        with ThreadPoolExecutor(self.jobs) as pool:
            for answer in pool.map(self.run, configs):
                answers.append(answer)
                progress(len(answers), len(configs))
        return answers


def digest(value):
    """Of anything that JSON can hold: to see whether it has changed."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()
                          ).hexdigest()
