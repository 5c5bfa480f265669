"""What `auto` is worth: pairs of jobs under it and under each fixed policy, against plain python.

Efficiency E of a run is the time that all its iterations take under plain python, one job alone with its pages kept,
over the run's time from the first iteration's start to the last one's end. So start-up is apart, warm-up and
profiling are not. 1 is one after the other. The slower job of a pair does `--iterations`, or as many as take it
`--seconds` alone, since in shorter runs there is nothing for `auto` to judge; the other one does as many as take as
long. Each repeat measures plain python, `auto` and the fixed policies, every other one backwards (ABBA); the fixed ones
in the first `--fixed-repeats` repeats only, and plain python for a `--plain-part` of the iterations, the first one
apart. Beside the mean stands the lower bound of the mean, one-sided, at 95 %.

The budget is a share of the sum of both peaks, or more where a job needs that beside what the other one keeps, or
where gpushare takes no smaller one: its bytes and its real share stand in the row. What trials of other modes lost, on
the mean and in the worst run, and the parts of the time in each mode are of the time in which both jobs iterate.

Each row names the commit that it was measured at, each pair in the JSON file its command too: with `--add` the rows of
other pairs stay as they were, for all at once take hours.
"""

import argparse
import datetime
import itertools
import json
import math
import shlex
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from auto_report import CHOOSER, HEADING, Run, rows
from common import (
    EXAMPLES,
    JOBS,
    KEEP_PAGES,
    RESULTS,
    add_output_options,
    commit,
    profile,
    run_gpushare,
    run_plain,
    write,
)

SCRIPTS = {
    **{name: str(EXAMPLES / f"{name}.py") for name in ("digits_cnn", "autoencoder", "recurrent_lm")},
    "char_transformer": str(EXAMPLES / "char_transformer.py"),
    "launch_bound": f"{JOBS / 'launch_bound.py'} --rows 4",  # little but Python
    "launch_bound_deep": f"{JOBS / 'launch_bound.py'} --rows 16 --depth 4000",  # so, and more than a least budget
    "small_kernels": f"{JOBS / 'launch_bound.py'} --rows 256 --depth 200",
}
EXAMPLE_PAIRS = ["+".join(pair) for pair in itertools.combinations(list(SCRIPTS)[:4], 2)]
PAIRS = [
    "launch_bound+launch_bound",
    "launch_bound_deep+launch_bound_deep",
    "small_kernels+small_kernels",
    "launch_bound+digits_cnn",
    *EXAMPLE_PAIRS,
]
POLICIES = ("auto", "temporal", "zico", "waterwave", "greedy")
PAGE, LEAST_BUDGET, TRIED_STEPS, LEAST_PLAIN = 2 << 20, 32 << 20, 40, 30
# To say how long it takes: until plain python, and until both jobs under gpushare, iterate; efficiencies.
PLAIN_START_S, START_S = 2.5, 4.0
EXPECTED = {"temporal": 0.95, "greedy": 1.15}
EXPECTED_ELSE = 1.3
SEARCH = {"PYTHONPATH": str(EXAMPLES)}  # the examples have a module that they share


@dataclass(frozen=True)
class Job:
    """`iteration_s`: alone, as first seen, to choose the steps by."""

    name: str
    peak_bytes: int
    residue_bytes: int
    iteration_s: float


@dataclass(frozen=True)
class Setting:
    """What all pairs share; see the options."""

    iterations: int
    seconds: float
    repeats: int
    fixed_repeats: int
    plain_part: float
    policies: list[str]

    def policies_in(self, repeat: int) -> list[str]:
        """In the order in which they are measured; `auto` beside plain python."""
        fixed = [p for p in self.policies if p != CHOOSER] if repeat < self.fixed_repeats else []
        chosen = [p for p in self.policies if p == CHOOSER] + fixed
        return chosen[::-1] if repeat % 2 else chosen

    def plain_steps(self, steps: int) -> int:
        return min(steps, max(LEAST_PLAIN, round(self.plain_part * steps)))


def timed(name: str, steps: int, out: Path) -> str:
    return f"{JOBS / 'timed.py'} --out {out} {SCRIPTS[name]} --steps {steps}"


def span(out: Path) -> tuple[float, list[float]]:
    """When the first iteration began, and when each one ended."""
    found = json.loads(out.read_text())
    return found["begin_s"], found["ends_s"]


def plain_s(name: str, steps: int) -> float:
    """Seconds of one iteration; the first one, which touches its pages, apart."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "times.json"
        run_plain(timed(name, steps, out), 1, KEEP_PAGES | SEARCH)
        _, ends = span(out)
    return (ends[-1] - ends[0]) / (len(ends) - 1)


def shared_s(names: list[str], steps: list[int], budget: int, policy: str) -> tuple[float, dict[str, Any]]:
    """Seconds of both jobs, and the run's summary."""
    with tempfile.TemporaryDirectory() as folder:
        outs = [Path(folder) / f"{i}.json" for i in range(len(names))]
        jobs = [timed(name, n, out) for name, n, out in zip(names, steps, outs, strict=True)]
        summary = run_gpushare(jobs, budget, 1, "--policy", policy, extra=SEARCH)
        spans = [span(out) for out in outs]
    return max(ends[-1] for _, ends in spans) - min(begin for begin, _ in spans), summary


def look_at(name: str) -> Job:
    found = profile(f"{SCRIPTS[name]} --steps {TRIED_STEPS}", 1)
    return Job(name, found["peak_held_bytes"], found["residue_bytes"], plain_s(name, TRIED_STEPS))


def steps_for(pair: list[Job], setting: Setting) -> list[int]:
    longest_s = max(job.iteration_s for job in pair)
    all_s = max(setting.iterations * longest_s, setting.seconds)
    return [math.ceil(all_s / job.iteration_s - 1e-6) for job in pair]


def budget_for(pair: list[Job], share: float) -> int:
    """A share of the sum of both peaks, but enough for either beside what the other one keeps."""
    least = max(a.peak_bytes + b.residue_bytes for a, b in (pair, pair[::-1]))
    return max(least + 4 * PAGE, round(share * sum(job.peak_bytes for job in pair)), LEAST_BUDGET)


def expected_s(pair: list[Job], setting: Setting) -> float:
    """How long it takes to measure the pair at one budget."""
    steps = steps_for(pair, setting)
    solo_s = sum(n * job.iteration_s for n, job in zip(steps, pair, strict=True))
    plain = sum(setting.plain_steps(n) * job.iteration_s for n, job in zip(steps, pair, strict=True))
    seconds = setting.repeats * (plain + 2 * PLAIN_START_S)
    for repeat in range(setting.repeats):
        for policy in setting.policies_in(repeat):
            seconds += solo_s / EXPECTED.get(policy, EXPECTED_ELSE) + START_S
    return seconds


def measure(pair: list[Job], share: float, setting: Setting) -> dict[str, Any]:
    """Each run's efficiency, and what its modes did."""
    names, steps, budget = [job.name for job in pair], steps_for(pair, setting), budget_for(pair, share)
    plain: list[list[float]] = []
    runs: list[Run] = []
    for repeat in range(setting.repeats):
        if repeat % 2 == 0:
            plain.append(_plain(names, steps, setting))
        measured = [(p, *shared_s(names, steps, budget, p)) for p in setting.policies_in(repeat)]
        if repeat % 2 == 1:
            plain.append(_plain(names, steps, setting))
        solo_s = sum(n * s for n, s in zip(steps, plain[-1], strict=True))
        runs += [run_of(policy, repeat, seconds, solo_s, summary) for policy, seconds, summary in measured]
    return {
        "pair": names,
        "budget_bytes": budget,
        "peaks_bytes": sum(job.peak_bytes for job in pair),
        "share_asked": share,
        "steps": steps,
        "plain_steps": [setting.plain_steps(n) for n in steps],
        "plain_iteration_s": plain,
        "runs": [vars(run) for run in runs],
        "commit": commit(),
        "command": shlex.join(["python", "scripts/bench/auto.py", *sys.argv[1:]]),
        "date": datetime.date.today().isoformat(),
    }


def _plain(names: list[str], steps: list[int], setting: Setting) -> list[float]:
    return [plain_s(name, setting.plain_steps(n)) for name, n in zip(names, steps, strict=True)]


def run_of(policy: str, repeat: int, seconds: float, solo_s: float, summary: dict[str, Any]) -> Run:
    modes = {name: mode["seconds"] for name, mode in (summary["modes"] or {}).items()}
    return Run(policy, repeat, seconds, solo_s / seconds, modes, summary["trials_lost_s"] if modes else None)


def others(name: str, pairs: list[list[str]]) -> list[dict[str, Any]]:
    """What the results hold of pairs that are not among these; not what an older form of them holds."""
    path = RESULTS / f"{name}.json"
    figures = json.loads(path.read_text())["figures"]["pairs"] if path.exists() else []
    return [found for found in figures if found["pair"] not in pairs and "runs" in found]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", default=",".join(PAIRS), help="pairs A+B of " + ", ".join(SCRIPTS))
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--shares", default="0.8", help="budgets, in sums of both peaks")
    parser.add_argument("--iterations", type=int, default=500, help="of the slower job, at least")
    parser.add_argument("--seconds", type=float, default=33.0, help="that each job takes alone, at least")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--fixed-repeats", type=int, default=2, help="of the fixed policies")
    parser.add_argument(
        "--plain-part", type=float, default=0.25, help="of the iterations, under plain python"
    )
    parser.add_argument("--add", action="store_true", help="keep what the results hold of other pairs")
    add_output_options(parser, "auto")
    return parser.parse_args()


def tell_how_long(pairs: list[list[Job]], shares: list[float], setting: Setting) -> None:
    all_s = 0.0
    for pair in pairs:
        seconds = len(shares) * expected_s(pair, setting)
        all_s += seconds
        steps = " + ".join(map(str, steps_for(pair, setting)))
        budgets = ", ".join(_budget_told(pair, share) for share in shares)
        names = "+".join(job.name for job in pair)
        print(f"{names}: {seconds / 60:.0f} minutes, {steps} iterations, {budgets}", file=sys.stderr)
    print(f"all: about {all_s / 60:.0f} minutes, less where sharing pays", file=sys.stderr, flush=True)


def _budget_told(pair: list[Job], share: float) -> str:
    budget = budget_for(pair, share)
    return f"{budget / (1 << 20):.0f} MiB ({budget / sum(job.peak_bytes for job in pair):.2f} of the peaks)"


def main() -> None:
    args = arguments()
    pairs = [pair.split("+") for pair in args.pairs.split(",")]
    shares = [float(share) for share in args.shares.split(",")]
    setting = Setting(
        args.iterations,
        args.seconds,
        args.repeats,
        args.fixed_repeats,
        args.plain_part,
        args.policies.split(","),
    )
    jobs = {name: look_at(name) for name in dict.fromkeys(itertools.chain(*pairs))}
    of_pairs = [[jobs[name] for name in pair] for pair in pairs]
    tell_how_long(of_pairs, shares, setting)
    if args.estimate:
        return
    begun, figures = time.monotonic(), others(args.name, pairs) if args.add else []
    table: list[list[Any]] = [HEADING, *itertools.chain.from_iterable(map(rows, figures))]
    for pair, share in itertools.product(of_pairs, shares):
        found = measure(pair, share, setting)
        figures.append(found)
        table += rows(found)
        for row in rows(found):
            print("  ".join(map(str, row)), file=sys.stderr, flush=True)
        if not args.print:  # after each pair: one takes up to half an hour
            all_ = {"pairs": figures, "took_s": time.monotonic() - begun}
            write(args.name, shlex.join(["python", "scripts/bench/auto.py", *sys.argv[1:]]), all_, table)
    if args.print:
        print("\n".join("  ".join(map(str, row)) for row in table))


if __name__ == "__main__":
    main()
