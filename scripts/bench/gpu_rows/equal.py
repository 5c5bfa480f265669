"""What two jobs print under gpushare, losses to the last bit, against each in plain python, byte for byte.

Deterministic algorithms, and `cudnn.benchmark` off. A workload that plain python does not repeat can't be compared.
"""

from .bench import Bench
from .row import NotMeasured, Row
from .running import Ran

WHAT = "losses of two jobs together, equal to plain python's byte for byte"
FIXED = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8", "MKL_CBWR": "COMPATIBLE"}


def measure(bench: Bench, names: str, factor: float, row: Row) -> None:
    """Two of the same workload have different seeds: lines of the other one would be seen."""
    workloads = names.split("+")
    peak = max(bench.solo(name).held_bytes for name in workloads)
    jobs = [
        bench.job(name, bench.settings.many, f"--deterministic --seed {number}")
        for number, name in enumerate(workloads)
    ]
    expected = [plain(bench, job) for job in jobs]
    ran = bench.runner.gpushare(jobs, int(factor * peak), clock=False, extra=FIXED, accept=(0, 1))
    row.notes += ran.failed
    row.figures["budget_bytes"] = ran.summary["budget_bytes"]
    row.figures["lines"] = sum(len(output.splitlines()) for output in expected)
    row.figures["advancing_together"] = ran.summary["overlap_s"] / max(ran.summary["eligible_s"], 1e-9)
    bench.target(row, "they ran side by side", ran.summary["overlap_s"] > 0)
    for job, output, wanted in zip(ran.summary["jobs"], ran.outputs, expected, strict=True):
        row.claims[f"{job['name']} prints the same"] = output == wanted
        row.notes += difference(job["name"], wanted, output)


def plain(bench: Bench, job: str) -> bytes:
    """What plain python prints.

    :raises NotMeasured: it does not print the same twice, or nothing.
    """

    def run() -> Ran:
        return bench.runner.python([job], clock=False, extra=FIXED)

    first, second = bench.once(("printed", job), lambda: (run(), run()))
    if first.outputs != second.outputs:
        raise NotMeasured(f"plain python itself does not print the same twice: {job}")
    if not first.outputs[0]:
        raise NotMeasured(f"plain python prints nothing: {job}")
    return first.outputs[0]


def difference(name: str, wanted: bytes, found: bytes) -> list[str]:
    """The first line that differs, in words; nothing for equal bytes."""
    if wanted == found:
        return []
    lines = [text.decode(errors="replace").splitlines() for text in (wanted, found)]
    for number, (one, other) in enumerate(zip(*lines, strict=False), 1):
        if one != other:
            return [f"{name}: line {number} is {other!r} instead of {one!r}"]
    return [f"{name}: it has {len(lines[1])} lines instead of {len(lines[0])}"]
