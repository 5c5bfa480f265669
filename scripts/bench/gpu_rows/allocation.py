"""An allocation plus its free under gpushare against torch's own allocator, in the same loops of the same script."""

import json
import shlex
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from common import JOBS

from gpushare.telemetry.allocation_log import ALLOCATED, FREED, AllocationLog

from .bench import Bench
from .row import NoTimeLeft, NotMeasured, Row
from .running import Ran

WHAT = "ns of an allocation plus its free, against torch's own allocator"
WAYS = ("empty", "raw")
FIXED_SIZES = (512, 4 << 10, 32 << 10, 256 << 10, 1 << 20, 2 << 20, 8 << 20, 20 << 20, 64 << 20)


def measure(bench: Bench, workloads: list[str], row: Row) -> None:
    """Blocks of fixed sizes, one at a time, and those of each workload's own profiled iteration, in its order."""
    with tempfile.TemporaryDirectory() as name:
        options = ["--sizes", *map(str, FIXED_SIZES)]
        files: list[Path] = []
        for workload in workloads:
            row.part(
                workload,
                lambda workload=workload: files.append(events_file(bench, workload, Path(name), row)),
            )
        options += ["--replay", *map(str, files)] if files else []
        compare(bench, shlex.join(options), row)


def events_file(bench: Bench, workload: str, folder: Path, row: Row) -> Path:
    log = bench.solo(workload).allocations
    if log is None:
        raise NotMeasured("no log of a profiled iteration was kept")
    written, events = folder / f"{workload}.alloc", folder / f"{workload}.json"
    written.write_bytes(log)
    found = events_of(AllocationLog(written))
    events.write_text(json.dumps(found))
    row.figures[f"{workload} allocations"] = sum(size > 0 for _, size in found)
    return events


def events_of(log: AllocationLog) -> list[tuple[int, int]]:
    """(block, bytes) in order, 0 bytes for its free; frees of what was there before the log are left out."""
    live: dict[int, int] = {}
    events = []
    for count, entry in enumerate(log):
        if entry.what == ALLOCATED and entry.bytes:
            live[entry.address] = count
            events.append((count, entry.bytes))
        elif entry.what == FREED and entry.address in live:
            events.append((live.pop(entry.address), 0))
    return events


def compare(bench: Bench, options: str, row: Row) -> None:
    """Each twice, A B B A: processes of the same script differ by more than allocators do."""
    script = f"{shlex.quote(str(JOBS / 'allocations.py'))} --device {bench.runner.device} {options}"

    def plain(job: str) -> Ran:
        return bench.runner.python([job], clock=False)

    def ours(job: str) -> Ran:
        return bench.runner.gpushare([job], bench.settings.budget_bytes, clock=False)

    processes: list[dict[str, Any]] = []
    jobs: list[dict[str, Any]] = []
    for run, runs in ((plain, processes), (ours, jobs), (ours, jobs), (plain, processes)):
        try:
            runs.append(told(script, run))
            if processes and jobs:
                row.figures |= figures_of(processes, jobs)
        except NoTimeLeft:
            if not processes or not jobs:
                raise
            row.notes.append("no time left for all of A B B A")
            break
    row.notes += sorted({run["raw_why"] for run in processes + jobs if "raw_why" in run})
    for way in WAYS:
        over = [ratio for what, ratio in row.figures.items() if what.endswith(f" {way} over_plain")]
        if over:
            bench.target(row, f"by {way}, none costs more than torch's own", max(over) <= 1)
    if not bench.on_gpu:
        row.notes.append("plain: on a CPU it is the C library's allocator, not torch's caching one")


def figures_of(plain: Sequence[dict[str, Any]], jobs: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Of runs of `jobs/allocations.py` in plain python and in jobs, the mean of each.

    By WHAT is allocated: `python_ns`, what the loop costs by itself; `plain_ns`, `gpushare_ns` and `over_plain`, with
    the allocation and its free; `own_over_plain`, of what these add to the loop by `torch.empty`. By CALL that Python
    makes and no allocator has part in, `plain_ns` and `gpushare_ns`: where a job's take longer it is the process, or
    the machine.
    """
    figures: dict[str, float] = {}
    for call in plain[0]["calls"]:
        for who, runs in (("plain", plain), ("gpushare", jobs)):
            figures[f"{call} {who}_ns"] = fmean(run["calls"][call] for run in runs)
    for what in plain[0]["empty"]:
        loop, ours = (fmean(run["python"][what] for run in runs) for runs in (plain, jobs))
        figures |= {f"{what} python_ns": loop, f"{what} gpushare python_ns": ours}
        for way in WAYS:
            if any(way not in run for run in (*plain, *jobs)):
                continue
            of_plain, of_jobs = (fmean(run[way][what] for run in runs) for runs in (plain, jobs))
            figures[f"{what} {way} plain_ns"] = of_plain
            figures[f"{what} {way} gpushare_ns"] = of_jobs
            figures[f"{what} {way} over_plain"] = of_jobs / of_plain
            if way == "empty" and of_plain > loop:
                figures[f"{what} own_over_plain"] = (of_jobs - ours) / (of_plain - loop)
    return figures


def told(script: str, run: Callable[[str], Ran]) -> dict[str, Any]:
    """What the script writes."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        run(f"{script} --out {shlex.quote(str(out))}")
        found: dict[str, Any] = json.loads(out.read_text())
    return found
