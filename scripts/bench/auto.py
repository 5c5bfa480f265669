"""What `auto` is worth: pairs of jobs under it and under each fixed policy, against plain python.

Efficiency E of a run is the time that all its iterations take under plain python, one job alone with its pages kept,
over the run's time from the first iteration's start to the last one's end. So start-up is apart, warm-up and
profiling are not. 1 is one after the other. The slower job of a pair does `--iterations`, the other one as many as
take as long, so both together do at least twice as many. Each repeat measures plain python and all policies, every
other one backwards (ABBA); beside the mean stands the lower bound of the mean, one-sided, at 95 %. Each row names the
commit that it was measured at, each pair in the JSON file its command too: with `--add` the rows of other pairs stay as
they were, for all at once take hours.
"""

import argparse
import datetime
import itertools
import json
import math
import shlex
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    "small_kernels": f"{JOBS / 'launch_bound.py'} --rows 256 --depth 200",
}
EXAMPLE_PAIRS = ["+".join(pair) for pair in itertools.combinations(list(SCRIPTS)[:4], 2)]
PAIRS = [*EXAMPLE_PAIRS, "launch_bound+launch_bound", "small_kernels+small_kernels"]
POLICIES = ("auto", "zico", "waterwave", "temporal")
# Quantiles of Student's distribution at 95 %, by degrees of freedom; the normal one from there on.
STUDENT = (math.nan, 6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833)
NORMAL = 1.645
PAGE, START_UP_S, TRIED_STEPS = 2 << 20, 4.0, 15


@dataclass(frozen=True)
class Job:
    """`iteration_s`: alone, as first seen, to choose the steps by."""

    name: str
    peak_bytes: int
    residue_bytes: int
    iteration_s: float


def timed(name: str, steps: int, out: Path) -> str:
    return f"{JOBS / 'timed.py'} --out {out} {SCRIPTS[name]} --steps {steps}"


def span(out: Path) -> tuple[float, float]:
    """When the first iteration began and the last one ended."""
    found = json.loads(out.read_text())
    return found["begin_s"], found["ends_s"][-1]


SEARCH = {"PYTHONPATH": str(EXAMPLES)}  # the examples have a module that they share


def plain_s(name: str, steps: int) -> float:
    """Seconds of one iteration."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "times.json"
        run_plain(timed(name, steps, out), 1, KEEP_PAGES | SEARCH)
        begin, end = span(out)
    return (end - begin) / steps


def shared_s(names: list[str], steps: list[int], budget: int, policy: str) -> tuple[float, dict[str, Any]]:
    """Seconds of both jobs, and the run's summary."""
    with tempfile.TemporaryDirectory() as folder:
        outs = [Path(folder) / f"{i}.json" for i in range(len(names))]
        jobs = [timed(name, n, out) for name, n, out in zip(names, steps, outs, strict=True)]
        summary = run_gpushare(jobs, budget, 1, "--policy", policy, extra=SEARCH)
        spans = [span(out) for out in outs]
    return max(end for _, end in spans) - min(begin for begin, _ in spans), summary


def look_at(name: str) -> Job:
    found = profile(f"{SCRIPTS[name]} --steps {TRIED_STEPS}", 1)
    return Job(name, found["peak_held_bytes"], found["residue_bytes"], plain_s(name, TRIED_STEPS))


def steps_for(pair: list[Job], iterations: int) -> list[int]:
    longest_s = max(job.iteration_s for job in pair)
    return [round(iterations * longest_s / job.iteration_s) for job in pair]


def budget_for(pair: list[Job], share: float) -> int:
    """A share of the sum of both peaks, but enough for either beside what the other one keeps."""
    least = max(a.peak_bytes + b.residue_bytes for a, b in (pair, pair[::-1]))
    return max(least + 4 * PAGE, round(share * sum(job.peak_bytes for job in pair)), 32 << 20)


def lower_bound(values: list[float]) -> float | None:
    """Of the mean; None for one value."""
    if len(values) < 2:
        return None
    quantile = STUDENT[len(values) - 1] if len(values) <= len(STUDENT) else NORMAL
    return statistics.mean(values) - quantile * statistics.stdev(values) / math.sqrt(len(values))


def measure(
    pair: list[Job], share: float, iterations: int, repeats: int, policies: list[str]
) -> dict[str, Any]:
    """Efficiencies of each policy, and what `auto` did."""
    names, steps, budget = [job.name for job in pair], steps_for(pair, iterations), budget_for(pair, share)
    found: dict[str, list[float]] = {policy: [] for policy in policies}
    plain: list[list[float]] = []
    modes = []

    for repeat in range(repeats):
        backwards = repeat % 2 == 1
        measured: dict[str, tuple[float, dict[str, Any]]] = {}
        if not backwards:
            plain.append([plain_s(name, n) for name, n in zip(names, steps, strict=True)])
        for policy in policies[:: -1 if backwards else 1]:
            measured[policy] = shared_s(names, steps, budget, policy)
        if backwards:
            plain.append([plain_s(name, n) for name, n in zip(names, steps, strict=True)])
        solo_s = sum(n * s for n, s in zip(steps, plain[-1], strict=True))
        for policy, (seconds, summary) in measured.items():
            found[policy].append(solo_s / seconds)
            if policy == "auto":
                modes.append({"modes": summary["modes"], "trials_lost_s": summary["trials_lost_s"]})
    return {
        "pair": names,
        "budget_bytes": budget,
        "share": share,
        "steps": steps,
        "plain_iteration_s": plain,
        "efficiency": found,
        "auto": modes,
        "commit": commit(),
        "command": shlex.join(["python", "scripts/bench/auto.py", *sys.argv[1:]]),
        "date": datetime.date.today().isoformat(),
    }


def others(name: str, pairs: list[list[str]]) -> list[dict[str, Any]]:
    """What the results hold of pairs that are not among these."""
    path = RESULTS / f"{name}.json"
    figures = json.loads(path.read_text())["figures"]["pairs"] if path.exists() else []
    return [found for found in figures if found["pair"] not in pairs]


def rows(figures: dict[str, Any]) -> list[list[Any]]:
    efficiency = figures["efficiency"]
    means = {policy: statistics.mean(values) for policy, values in efficiency.items()}
    best = max((mean for policy, mean in means.items() if policy != "auto"), default=None)
    table = []
    for policy, values in efficiency.items():
        bound = lower_bound(values)
        table.append(
            [
                " + ".join(figures["pair"]),
                figures["share"],
                policy,
                f"{means[policy]:.3f}",
                "-" if bound is None else f"{bound:.3f}",
                f"{min(values):.3f} to {max(values):.3f}",
                f"{means[policy] / best:.3f}" if best and policy == "auto" else "-",
                figures["commit"],
            ]
        )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", default=",".join(PAIRS), help="pairs A+B of " + ", ".join(SCRIPTS))
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--shares", default="0.8", help="budgets, in sums of both peaks")
    parser.add_argument("--iterations", type=int, default=250, help="of the slower job")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--add", action="store_true", help="keep what the results hold of other pairs")
    add_output_options(parser, "auto")
    args = parser.parse_args()
    pairs, policies = [pair.split("+") for pair in args.pairs.split(",")], args.policies.split(",")
    shares = [float(share) for share in args.shares.split(",")]
    jobs = {name: look_at(name) for name in dict.fromkeys(itertools.chain(*pairs))}
    seconds = 0.0
    for pair in pairs:
        both_s = 2 * args.iterations * max(jobs[name].iteration_s for name in pair)
        runs = args.repeats * (1 + len(policies) * len(shares))
        seconds += runs * (both_s + 2 * START_UP_S)
    print(
        f"this takes about {seconds / 60:.0f} minutes, less where sharing pays", file=sys.stderr, flush=True
    )
    if args.estimate:
        return
    begun, figures = time.monotonic(), others(args.name, pairs) if args.add else []
    heading = [
        "pair",
        "budget (sum of peaks)",
        "policy",
        "E",
        "lower bound",
        "least to most",
        "of the best fixed",
        "commit",
    ]
    table: list[list[Any]] = [heading, *itertools.chain.from_iterable(map(rows, figures))]
    for pair, share in itertools.product(pairs, shares):
        found = measure([jobs[name] for name in pair], share, args.iterations, args.repeats, policies)
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
