"""Two convolutional jobs at once under gpushare, against the same two in two threads of one plain process.

Seconds from the begin of the first iteration of either job to the end of the last one of both: imports and set-up
do not count, the iterations that gpushare runs alone to profile them do. Beside it what is past the third
iteration of each job, so past the profile: iterations per second of both together while both run, and page faults.

The threads run with glibc's malloc as it is, then told to keep its pages, then also with huge pages, which the pool
asks for: what is left is not the allocator's. For reference two plain processes, at once and one after the other
(twice the time of one). In turns, forwards and backwards; a ratio is that of the means, with the least and the most
of the rounds.

Losses are compared with those of the plain process. The threads draw from one generator, so theirs differ.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from bisect import bisect_right
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any

from common import JOBS, KEEP_PAGES, environment, profile, run_gpushare, write

PROFILED = 3  # iterations, from the first on, that may be a profile's
HUGE_PAGES = {**KEEP_PAGES, "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
THREADS, KEPT, SERIAL = "two threads", "two threads, pages kept", "one process after the other"


def progress(ends_s: list[float], now_s: float) -> float:
    """Iterations ended by `now_s`, which is not before the first end; between two ends in proportion."""
    ended = bisect_right(ends_s, now_s)
    if ended == len(ends_s):
        return ended
    return ended + (now_s - ends_s[ended - 1]) / (ends_s[ended] - ends_s[ended - 1])


def pace(ends_s: list[list[float]]) -> float | None:
    """Iterations per second of all jobs while all of them run, past the profile; None if they never do."""
    begin_s, end_s = max(e[PROFILED - 1] for e in ends_s), min(e[-1] for e in ends_s)
    if end_s <= begin_s:
        return None
    return sum(progress(e, end_s) - progress(e, begin_s) for e in ends_s) / (end_s - begin_s)


def past_the_profile(counts: list[int]) -> float:
    """How much more per iteration, of a count taken at the end of each."""
    return (counts[-1] - counts[PROFILED - 1]) / (len(counts) - PROFILED)


def in_processes(jobs: list[str], threads: int, extra: dict[str, str] | None = None) -> None:
    with tempfile.TemporaryDirectory() as home:
        env = environment(threads, Path(home), extra)
        started = [subprocess.Popen([sys.executable, *shlex.split(job)], env=env) for job in jobs]
        statuses = [process.wait() for process in started]
    if any(statuses):
        sys.exit(f"{jobs} ended with {statuses}")


class Bench:
    def __init__(self, args: argparse.Namespace) -> None:
        self.threads, self.script = args.threads, JOBS / "deep_cnn.py"
        self.options = ["--steps", str(args.steps), *shlex.split(args.options)]
        self.peak = profile(shlex.join([str(self.script), *self.options]), self.threads)["peak_held_bytes"]
        self.expected: list[str] = []  # lines of the first that is measured
        self.cases: dict[str, Callable[[list[Path]], Any]] = {
            **{f"gpushare, {b} solo peaks": self.shared(float(b)) for b in args.budgets.split(",")},
            THREADS: self.as_threads(),
            KEPT: self.as_threads(KEEP_PAGES),
            f"{KEPT}, huge": self.as_threads(HUGE_PAGES),
            "two processes": self.apart,
            SERIAL: self.apart,
        }

    def job(self, *outs: Path) -> str:
        to = [word for out in outs for word in ("--out", str(out))]
        return shlex.join([str(JOBS / "timed.py"), *to, str(self.script), *self.options])

    def shared(self, peaks: float) -> Callable[[list[Path]], Any]:
        budget = int(peaks * self.peak)
        return lambda outs: run_gpushare([self.job(out) for out in outs], budget, self.threads)

    def as_threads(self, extra: dict[str, str] | None = None) -> Callable[[list[Path]], Any]:
        return lambda outs: in_processes([self.job(*outs)], self.threads, extra)

    def apart(self, outs: list[Path]) -> None:
        in_processes([self.job(out) for out in outs], self.threads)

    def measure(self, name: str) -> dict[str, Any]:
        jobs = 1 if name == SERIAL else 2
        with tempfile.TemporaryDirectory() as folder:
            outs = [Path(folder) / f"{k}.json" for k in range(jobs)]
            self.cases[name](outs)
            timed = [json.loads(out.read_text()) for out in outs]
        self.expected = self.expected or timed[0]["lines"]
        took_s = max(t["ends_s"][-1] for t in timed) - min(t["begin_s"] for t in timed)
        return {
            "took_s": took_s * 2 / jobs,
            "pace": pace([t["ends_s"] for t in timed]),
            "faults": mean(past_the_profile(t["page_faults"]) for t in timed),
            "lines": sum(len(t["lines"]) for t in timed),
            "lines_equal": sum(a == b for t in timed for a, b in zip(t["lines"], self.expected, strict=True)),
        }


def ratio(rounds: list[dict[str, Any]], to: list[dict[str, Any]]) -> str:
    each = [a["took_s"] / b["took_s"] for a, b in zip(rounds, to, strict=True)]
    of_means = mean(r["took_s"] for r in rounds) / mean(r["took_s"] for r in to)
    return f"{of_means:.3f} ({min(each):.3f} to {max(each):.3f})"


def row(name: str, runs: dict[str, list[dict[str, Any]]]) -> list[Any]:
    rounds = runs[name]
    times = [r["took_s"] for r in rounds]
    paces = [r["pace"] for r in rounds if r["pace"]]
    return [
        name,
        f"{mean(times):.2f} ({min(times):.2f} to {max(times):.2f})",
        ratio(rounds, runs[THREADS]),
        ratio(rounds, runs[KEPT]),
        f"{mean(paces):.2f} ({min(paces):.2f} to {max(paces):.2f})" if paces else "-",
        f"{mean(r['faults'] for r in rounds):.0f}",
        f"{sum(r['lines_equal'] for r in rounds)} of {sum(r['lines'] for r in rounds)}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1, help="intra-op threads of each job")
    parser.add_argument("--steps", type=int, default=32)
    parser.add_argument("--options", default="--batch-size 64", help="more arguments of the job")
    parser.add_argument("--budgets", default="2.2,1.3", help="in solo peaks")
    parser.add_argument("--rounds", type=int, default=2, help="even: each case as often early as late")
    parser.add_argument("--name", default="threads")
    args = parser.parse_args()
    if args.steps <= PROFILED:
        parser.error(f"--steps must be above {PROFILED}, but got {args.steps}")
    for name in ("OMP_NUM_THREADS", "MKL_CBWR", *HUGE_PAGES):
        os.environ.pop(name, None)
    begun = time.monotonic()
    bench = Bench(args)
    bench.measure(SERIAL)  # warms the files up, and tells what lines to expect
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in bench.cases}
    for turn in range(args.rounds):
        for name in list(runs)[:: 1 if turn % 2 == 0 else -1]:
            runs[name].append(bench.measure(name))
    heading = ["case", "time of both, s", f"over {THREADS}", "over pages kept"]
    heading += ["iterations/s of both", "page faults/iteration", "losses equal"]
    table = [heading, *(row(name, runs) for name in runs)]
    figures = {"solo_peak_bytes": bench.peak, "runs": runs, "took_s": time.monotonic() - begun}
    write(args.name, shlex.join(["python", "scripts/bench/threads.py", *sys.argv[1:]]), figures, table)


if __name__ == "__main__":
    main()
