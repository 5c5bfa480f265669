"""Replays allocation logs (`gpushare run --trace FILE`) through allocators; peak of each over the peak of live bytes.

Through our pool and heaps, through a model of PyTorch's CUDA caching allocator with and without expandable
segments, and through an offline packer that knows all lifetimes. Without LOG the workloads in
scripts/bench/workloads/ are run and logged first, each alone, and the results are committed.
"""

import argparse
import itertools
import multiprocessing
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import GPUSHARE, environment, write
from models.caching import CachingAllocator
from models.ideal import live_peak, packed_peak

from gpushare.launcher.plan import PAGE_BYTES, REGION_BYTES
from gpushare.native import library, shim
from gpushare.telemetry.allocation_log import ALLOCATED, FREED, OPENED, AllocationLog

WORKLOADS = Path(__file__).parent / "workloads"
FIXED = ("resnet", "gpt", "gan", "unet")
VARYING = ("lstm_lengths", "experts", "detection", "recommendation")


@dataclass(frozen=True)
class Step:
    """An allocation (bytes > 0), a free (bytes < 0), or the begin of an iteration (0) of a job."""

    time_ns: int
    job: int
    block: int
    bytes: int


def steps_of(log: AllocationLog, first_job: int = 0) -> list[Step]:
    """What the jobs of a log did; blocks are numbered, and what no job owns is left out."""
    live: dict[int, tuple[int, int, int]] = {}
    numbers = itertools.count()
    steps = []
    for e in log:
        job = first_job + e.account
        if e.what == FREED and e.address in live:
            owner, block, size = live.pop(e.address)
            steps.append(Step(e.time_ns, owner, block, -size))
        elif e.account and e.what == ALLOCATED:
            live[e.address] = (job, next(numbers), e.bytes)
            steps.append(Step(e.time_ns, *live[e.address]))
        elif e.account and e.what == OPENED:
            steps.append(Step(e.time_ns, job, -1, 0))
    return steps


def merged(one: list[Step], other: list[Step]) -> list[Step]:
    """Two logs side by side, each from its own begin; the numbers of the other's blocks come after."""
    after = 1 + max(s.block for s in one)
    moved = [Step(s.time_ns - other[0].time_ns, s.job, s.block + after, s.bytes) for s in other]
    begun = [Step(s.time_ns - one[0].time_ns, s.job, s.block, s.bytes) for s in one]
    return sorted(begun + moved, key=lambda s: s.time_ns)


def lifetimes(steps: list[Step]) -> list[tuple[int, int, int]]:
    """(begin, end, bytes) of each block, counted in steps."""
    born: dict[int, int] = {}
    found = []
    for at, s in enumerate(steps):
        if s.bytes > 0:
            born[s.block] = at
        elif s.bytes < 0:
            found.append((born.pop(s.block), at, -s.bytes))
    sizes = {s.block: s.bytes for s in steps if s.bytes > 0 and s.block in born}
    return found + [(begin, len(steps), sizes[block]) for block, begin in born.items()]


def ours(steps: list[Step]) -> dict[str, Any]:
    """Replay through the shim, in a process of its own; bytes held at most, in all and by iteration."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_ours, (steps,))


def _ours(steps: list[Step]) -> dict[str, Any]:
    live = live_peak(lifetimes(steps))
    library.load()
    shim.start(
        budget_bytes=8 * live + (1 << 30),
        page_bytes=PAGE_BYTES,
        region_bytes=REGION_BYTES,
        policy="unmanaged",
    )
    # One warm-up iteration, as in a run (host/jobs.py).
    accounts = {job: shim.job_begin(1) for job in sorted({s.job for s in steps})}
    peaks = [0]
    for held in _held(steps, accounts):
        if held is None:
            peaks.append(0)
        else:
            peaks[-1] = max(peaks[-1], held)
    shim.check()
    return {"held": max(peaks), "by_iteration": peaks[1:]}


def _held(steps: list[Step], accounts: dict[int, int]) -> Iterator[int | None]:
    addresses: dict[int, int] = {}
    for s in steps:
        if s.bytes > 0:
            addresses[s.block] = shim.allocate(s.bytes, accounts[s.job])
            yield shim.pool_state().held_bytes
        elif s.bytes < 0:
            shim.free(addresses.pop(s.block))
        else:
            shim.iteration_mark(accounts[s.job])
            yield None


def pytorch(steps: list[Step], *, expandable: bool) -> int:
    """Most bytes that PyTorch's allocator reserves, without a limit. Each job is a process with its own."""
    allocators = {job: CachingAllocator(expandable_segments=expandable) for job in {s.job for s in steps}}
    most = 0
    for s in steps:
        if s.bytes > 0:
            allocators[s.job].allocate(s.block, s.bytes)
            most = max(most, sum(a.reserved for a in allocators.values()))
        elif s.bytes < 0:
            allocators[s.job].free(s.block)
    return most


def measure(name: str, steps: list[Step]) -> dict[str, Any]:
    """All peaks of one log, in bytes."""
    spans = lifetimes(steps)
    return {
        "name": name,
        "allocations": len(spans),
        "live": live_peak(spans),
        "ours": ours(steps),
        "pytorch": pytorch(steps, expandable=False),
        "expandable": pytorch(steps, expandable=True),
        "ideal": packed_peak(spans),
    }


def record(script: Path, folder: Path) -> Path:
    """Run a workload alone with --trace; the log."""
    log = folder / f"{script.stem}.log"
    command = [GPUSHARE, "run", str(script), "--trace", str(log), "--log-dir", str(folder / "out")]
    subprocess.run(command, env=environment(1, folder), check=True, stdout=subprocess.DEVNULL)
    return log


def row(m: dict[str, Any]) -> list[Any]:
    live = m["live"]
    peaks = m["ours"]["by_iteration"][1:-1]
    half = len(peaks) // 2
    # A pair's iterations are those of two jobs, of which one ends first.
    growth = max(peaks[half:]) / max(peaks[:half]) if half and "+" not in m["name"] else None
    ratios = [f"{peak / live:.3f}" for peak in (m["ours"]["held"], m["pytorch"], m["expandable"], m["ideal"])]
    return [m["name"], m["allocations"], f"{live / 2**20:.0f}", *ratios, f"{growth:.3f}" if growth else "-"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logs", metavar="LOG", nargs="*", type=Path)
    parser.add_argument("--keep", type=Path, help="keep the workloads' logs in this directory")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.keep or Path(temporary)
        paths = args.logs or [record(WORKLOADS / f"{w}.py", folder) for w in FIXED + VARYING]
        logs = {path.stem: steps_of(AllocationLog(path)) for path in paths}
    found = [measure(name, steps) for name, steps in logs.items()]
    if not args.logs:
        # Each with the next, once around.
        names = list(logs)
        for one, other in zip(names, names[1:] + names[:1], strict=True):
            there = [Step(s.time_ns, s.job + 1000, s.block, s.bytes) for s in logs[other]]
            found.append(measure(f"{one} + {other}", merged(logs[one], there)))
    heading = ["log", "allocations", "live, MiB", "held/live", "PyTorch", "expandable", "offline packer"]
    table = [[*heading, "later half of the iterations / first"], *map(row, found)]
    if args.logs:
        for line in table:
            print(" | ".join(map(str, line)))
    else:
        write("replay", "python scripts/bench/replay.py", found, table)


if __name__ == "__main__":
    sys.exit(main())
