"""Checks on a machine with an NVIDIA GPU what gpushare takes for granted there.

    python scripts/gpu_check.py --facts --bridge --jobs --bench --out DIR

Needs torch with CUDA, g++ and, but for the facts, cmake; for jobs and the benchmark click, rich and psutil. No network
and no installation. docs/gpu.md tells what the results mean.
Exit codes: 0 everything could be checked (true or false), 2 misuse or no GPU, 3 something could not be checked.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gpu import bench, facts, jobs, machine, programs, report, runner
from gpu.checks import Check, checks_of
from gpu.libraries import Builds

LIMIT_S = 300


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Check on a GPU what gpushare takes for granted.")
    parser.add_argument("--facts", action="store_true", help="statements about CUDA and torch, true or false")
    parser.add_argument(
        "--bridge", action="store_true", help="build the shim and compute through its allocator"
    )
    parser.add_argument(
        "--jobs", action="store_true", help="run scripts by `gpushare run`, and in plain python"
    )
    parser.add_argument(
        "--bench", action="store_true", help="the benchmark, scripts/bench/gpu.py; the last part"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="where PART.json and PART.md are written")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="of the facts these alone")
    parser.add_argument("--list", action="store_true", help="list the checks and end")
    parser.add_argument(
        "--limit", type=float, metavar="SECONDS", default=LIMIT_S, help=f"for each part; default {LIMIT_S}"
    )
    given = parser.parse_args()
    if not (given.facts or given.bridge or given.jobs or given.bench):
        parser.error("say what to check: --facts, --bridge, --jobs, --bench or several")
    if not given.facts and (given.only or given.list):
        parser.error("--only and --list are about --facts")
    if not given.list and not given.out:
        parser.error("--out DIR is needed: results are written there after every check")
    if given.limit <= 0:
        parser.error(f"--limit must be more than 0 seconds, but got {given.limit:g}")
    known = {check.name for check in checks_of(facts.MODULES)}
    unknown = sorted(set(given.only or ()) - known)
    if unknown:
        parser.error(f"no such check: {', '.join(unknown)}; --list shows them")
    return given


def refuse(why: str) -> int:
    print(f"gpu_check: {why}", file=sys.stderr)
    print(
        "gpu_check needs an NVIDIA GPU with its driver, and a torch that is built for CUDA:\n"
        "  nvidia-smi                                                 must list the GPU\n"
        f"  {sys.executable} -c 'import torch; print(torch.cuda.is_available())'   must print True\n"
        "In a container, start it with the GPU (docker run --gpus all); else call this script with the\n"
        "python whose torch has CUDA.",
        file=sys.stderr,
    )
    return 2


def run_facts(checks: list[Check], header: dict[str, Any], out: Path, limit_s: float) -> bool:
    needed = sorted({library for check in checks for library in check.libraries})
    with tempfile.TemporaryDirectory() as folder:
        builds = Builds(needed, Path(folder))
        written = report.Report(out, "facts", "What is so on this GPU", header, len(checks))
        try:
            return write(runner.run(checks, builds, limit_s), written, out / "facts")
        finally:
            builds.abandon()


def run_bridge(header: dict[str, Any], out: Path, limit_s: float) -> bool:
    title = "The allocator on this GPU"
    return write(
        programs.run(limit_s), report.Report(out, "bridge", title, header, programs.COUNT), out / "bridge"
    )


def run_jobs(header: dict[str, Any], out: Path, limit_s: float) -> bool:
    title = "Jobs on this GPU, by the command"
    return write(jobs.run(limit_s), report.Report(out, "jobs", title, header, jobs.COUNT), out / "jobs")


def run_bench(header: dict[str, Any], out: Path, limit_s: float) -> bool:
    benchmark = bench.Benchmark(out)
    written = report.Report(out, "bench", "The benchmark on this GPU", header, benchmark.count)
    return write(benchmark.run(limit_s), written, out / "bench")


def write(rows: Iterable[runner.Row], written: report.Report, path: Path) -> bool:
    for row in rows:
        written.add(row)
        print(f"{row.verdict:<12} {row.seconds:6.1f} s  {row.name}", flush=True)
    print("\n" + report.table(written.rows))
    print(f"\n{written.summary()}; written to {path}.md and {path}.json")
    return written.all_checked


def main() -> int:
    given = arguments()
    checks = [c for c in checks_of(facts.MODULES) if not given.only or c.name in given.only]
    if given.list:
        for check in checks:
            print(f"{check.rank}  {check.name}\n     {check.statement}")
        return 0
    header = machine.asked()
    if why := header.pop("refused"):
        return refuse(why)
    complete = True
    if given.facts:
        complete = run_facts(checks, dict(header), given.out, given.limit)
    if given.bridge:
        complete = run_bridge(dict(header), given.out, given.limit) and complete
    if given.jobs:
        complete = run_jobs(dict(header), given.out, given.limit) and complete
    if given.bench:
        complete = run_bench(dict(header), given.out, given.limit) and complete
    return 0 if complete else 3


if __name__ == "__main__":
    sys.exit(main())
