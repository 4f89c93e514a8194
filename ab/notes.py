"""Notes that a reader needs, and that the figures do not show."""

from statistics import median

from ab import settings

# Parameters whose effect takes minutes, whatever the load
SLOW = ("autovacuum", "checkpoint_", "max_wal_size", "min_wal_size", "vacuum_")
SLOW_SLICE_SECONDS = 60


def typical(slices, name):
    known = [values[name] for values in slices if values.get(name) is not None]
    return median(known) if known else None


def crossing(slices, percent, settle):
    """More than 100 - percent of the transactions last longer than what is
    thrown away, and so began in the slice before."""
    latency = typical(slices, f"latency_p{percent}_ms")
    return latency is not None and latency > 1000 * settle


def withdraw_crossing(rows, blocks, settle):
    """No verdicts if most transactions ran under two settings."""
    slices = [values for block in blocks for values in block.values()]
    if crossing(slices, 50, settle):
        for row in rows:
            row["verdict"] = None


def about(run, rows, server, args):
    slices = [slice_.values for slice_ in run.slices if slice_.used]
    for percent, then in ((50, "so there is no verdict"),
                          (95, "so differences are blurred")):
        if crossing(slices, percent, args.settle):
            yield (f"{100 - percent} % of the transactions take longer than"
                   " --settle and belong to the setting before as well,"
                   f" {then}: use a longer --settle and --slice")
            break
    if server.has_sweep and server.sweep["buffers"]:
        allocations = typical(slices, "allocations")
        if allocations is not None:
            part = (allocations / (args.slice - args.settle) * args.slice
                    / server.sweep["buffers"])
            if 0 < part < 1:
                yield (f"a slice replaces {part:.0%} of shared_buffers: it"
                       " is too short to show what a setting does to the"
                       " content of the pool")
    slow = [key for key in settings.keys(run.plan.settings)
            if key.startswith(SLOW)]
    if slow and args.slice < SLOW_SLICE_SECONDS:
        yield (f"{slow[0]} acts over minutes: slices of {args.slice:g} s"
               " hardly show it")
    expected = run.switcher.expected
    first = run.plan.settings[0]
    for other in run.plan.settings[1:]:
        if other.values != first.values and \
                expected[other.name] == expected[first.name]:
            yield (f"{other.name} and {first.name} are the same to the server:"
                   " this is an A/A")
    if run.spoilt:
        yield ("other sessions have interfered; what they have switched stays"
               " so: "
               + " | ".join(run.spoilt))
