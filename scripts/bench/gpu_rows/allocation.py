"""An allocation plus its free under gpushare against torch's own allocator, in the same loops of the same script."""

import json
import shlex
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import JOBS

from gpushare.telemetry.allocation_log import ALLOCATED, FREED, AllocationLog

from .bench import Bench
from .row import NotMeasured, Row
from .running import Ran

WHAT = "ns of an allocation plus its free, against torch's own allocator"
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
    """`python_ns` is what the loop costs by itself: in plain python, and in a job."""
    script = f"{shlex.quote(str(JOBS / 'allocations.py'))} --device {bench.runner.device} {options}"
    plain = told(script, lambda job: bench.runner.python([job], clock=False))
    ours = told(script, lambda job: bench.runner.gpushare([job], bench.settings.budget_bytes, clock=False))
    row.notes += sorted({run["raw_why"] for run in (plain, ours) if "raw_why" in run})
    for what in plain["empty"]:
        row.figures[f"{what} python_ns"] = plain["python"][what]
        row.figures[f"{what} gpushare python_ns"] = ours["python"][what]
        for way in ("empty", "raw"):
            if way in plain and way in ours:
                row.figures[f"{what} {way} plain_ns"] = plain[way][what]
                row.figures[f"{what} {way} gpushare_ns"] = ours[way][what]
                row.figures[f"{what} {way} over_plain"] = ours[way][what] / plain[way][what]
    for way in ("empty", "raw"):
        over = [ratio for what, ratio in row.figures.items() if what.endswith(f" {way} over_plain")]
        if over:
            bench.target(row, f"by {way}, none costs more than torch's own", max(over) <= 1)
    if not bench.on_gpu:
        row.notes.append("plain: on a CPU it is the C library's allocator, not torch's caching one")


def told(script: str, run: Callable[[str], Ran]) -> dict[str, Any]:
    """What the script writes."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        run(f"{script} --out {shlex.quote(str(out))}")
        found: dict[str, Any] = json.loads(out.read_text())
    return found
