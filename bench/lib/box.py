"""As many rounds as a time box has room for.

A bench that is given --minutes takes rounds until they are over, counted from
its own start: making data is in the box, too. It may end a little early, as no
round is begun that would not end in time, as far as the longest one so far can
tell; and late, if not even the fewest rounds have room."""

import time

from . import report
from .paths import BenchError

LEAST_ROUNDS = 2                # fewer have no spread


def add_option(parser):
    parser.add_argument(
        "--minutes", type=float, metavar="N",
        help="a time box for all of it: rounds until it is over (at least"
             f" {LEAST_ROUNDS}), but no more than --rounds says")


class Box:
    """minutes: None for a box without an end."""

    def __init__(self, minutes, clock=time.monotonic):
        if minutes is not None and not minutes > 0:
            raise BenchError("--minutes must be greater than zero")
        self.clock = clock
        self.end = (None if minutes is None
                    else report.begin() + minutes * 60)

    def left(self):
        return None if self.end is None else self.end - self.clock()

    def rounds(self, most, parts=1):
        """Numbers of rounds, from 0. parts: among so many, this one included,
        what is left of the box is to be shared evenly."""
        if self.end is None:
            yield from range(most)
            return
        end = self.clock() + self.left() / parts
        longest = 0
        for round_ in range(most):
            begin = self.clock()
            if round_ >= LEAST_ROUNDS and begin + longest > end:
                return
            yield round_
            longest = max(longest, self.clock() - begin)
