"""Two jobs that launch small operations: in one process they share the GIL, as two processes they do not."""

from . import pair
from .bench import Bench
from .row import Row
from .workloads import LAUNCH_BOUND

WHAT = "two launch-bound jobs, and what the GIL costs them, beside two plain processes"
FACTOR, LEAST_BYTES = 2.2, 256 << 20  # both fit whole: memory makes nobody wait


def measure(bench: Bench, row: Row) -> None:
    """`gil_cost` is the throughput of two processes over that of two jobs in one; `auto` may let those take turns, so
    the price of the GIL itself is `unmanaged_gil_cost`."""
    pair.measure(bench, f"{LAUNCH_BOUND}+{LAUNCH_BOUND}", FACTOR, LEAST_BYTES, row)
    apart = row.figures.get("processes_stp")
    for prefix in ("", "unmanaged_"):
        if apart and f"{prefix}stp" in row.figures:
            row.figures[f"{prefix}gil_cost"] = apart / row.figures[f"{prefix}stp"]
