"""As many rounds as a time box has room for.

With --minutes a bench takes rounds until this time after its own start, which
includes the preparation. A round only begins if the longest one so far would have
room. So the bench may end a little early. It ends late if the fewest rounds have
no room."""

import time

from . import report
from .paths import BenchError

LEAST_ROUNDS = 2                # fewer have no spread


def add_option(parser):
    parser.add_argument(
        "--minutes", type=float, metavar="N",
        help="time box: rounds until it is over (at least"
             f" {LEAST_ROUNDS}), but at most --rounds")


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
        """Numbers of rounds, from 0. parts: the rest of the box is shared evenly
        among this number of parts, this one included."""
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
