"""What two CPUs have to do with each other just now. A virtual machine's may be
threads of one core, two cores of a group, or of two groups, and change from one
second to the next; nothing tells but how long a turn between them takes."""

from statistics import median

# Turns that differ by less than this are those of one state. It is more than
# what a state's own turns differ by (26 to 30 ns were seen, and 99 to 125) and
# less than what lies between states (10, 28 and 110).
SAME_STATE = 1.5


def same(one, other):
    """Are these two turns of one state?"""
    return max(one, other) <= SAME_STATE * min(one, other)


def groups(turns):
    """The turns of each state, states by the number of their turns, the most
    frequent first."""
    found = []
    for turn in sorted(turns):
        if found and same(found[-1][0], turn):
            found[-1].append(turn)
        else:
            found.append([turn])
    return sorted(found, key=len, reverse=True)


def middles(turns):
    """The turn that stands for each state, in the same order."""
    return [median(found) for found in groups(turns)]


def which(turn, every):
    """Of these states, named by their turns, the one that a turn belongs to: the
    nearest one, as two may be near enough; None if it is of none."""
    near = [state for state in every if same(state, turn)]
    return min(near, default=None,
               key=lambda state: max(state, turn) / min(state, turn))


def name(turn):
    return f"turn {turn / 1000:.0f} ns"
