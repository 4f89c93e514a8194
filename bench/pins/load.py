"""One load of the bench pins: what is pinned, in which order, with how many held."""

from dataclasses import dataclass

from bench.lib.paths import BenchError

ENOUGH_HITS = 20                # per held page: chance misses none


@dataclass(frozen=True)
class Load:
    kind: str
    order: str
    held: int

    def name(self):
        return f"{self.kind}, {self.order}" if self.kind == "again" else (
            self.kind)

    def where(self):
        return f"{self.name()}, {self.held} held"

    def check(self, operations, pages):
        """Abort unless a load has pinned as many different pages as its name
        says. On a busy machine a sample may have few operations, and may have
        missed some held pages by chance."""
        expected = {"again": 1 if self.order == "last" else self.held,
                    "owner": self.held, "other": 16, "read": 16,
                    "join": self.held + 12, "stream": 2 * self.held + 16}[self.kind]
        by_chance = self.kind in ("again", "join", "owner") and (
            self.order == "random")
        hits = operations // (4 if self.kind == "join" else 1)
        least = (expected // 2 if by_chance and hits < ENOUGH_HITS * self.held
                 else expected)
        if not least <= pages <= expected or operations <= 0:
            raise BenchError(f"{self.where()}: {operations} operations on"
                                   f" {pages} pages instead of {expected}")
