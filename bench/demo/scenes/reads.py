"""Does "clock2q" read less than "stock"? Compared by ab."""

from bench.demo.scenes import ab
from bench.lib import paths

TITLE = "clock2q: does it read less from the same pool?"
SCRIPT = paths.ROOT / "bench/demo/reads.sql"
# An answer on a metric other than transactions/s needs at least 9 blocks. After
# each switch there is some time for the pool to change. A slow machine needs more:
# there the difference is shown smaller than it is.
BLOCKS, BLOCKS_QUICK = 10, 2
SLICE, SLICE_QUICK = 8, 2.5
SETTLE, SETTLE_QUICK = 4, 1.2


def play(stage):
    stage.explain("""clock2q keeps a page that is used once apart, so that it goes
        before pages that are used again and again. This takes no large machine:
        what it saves is reads. The load has a few rows that are read most of the
        time, and now and then a query that reads 2,000 rows. Two lines count:
        "blocks read/transaction", and "transactions/s", in which a read counts
        little as long as the kernel has the page:""")
    quick = stage.args.quick
    ab.compare(stage, "clock2q",
               ("-f", SCRIPT, "-D", f"scale={stage.args.scale}"),
               "--blocks", BLOCKS_QUICK if quick else BLOCKS,
               "--slice", SLICE_QUICK if quick else SLICE,
               "--settle", SETTLE_QUICK if quick else SETTLE,
               "--out", stage.cluster.dir / "reads")
    stage.explain("""(docs/results.md has other loads, larger and smaller pools, and
        where it does not pay.)""")
