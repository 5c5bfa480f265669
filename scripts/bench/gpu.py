"""Jobs on a GPU: one against plain python, two together in one budget, what they print, their memory, the GIL.

    python scripts/bench/gpu.py --limit 1500 --only pair equal alone

Times are of a job's steps past the first FEW of MANY, on a clock inside the job, so that neither start-up nor the
profile counts. Of a pair each does as many steps as last --window seconds alone, MANY at least, and both are judged
while both run: STP is the solo time of what they did over the time it took, 1 for one after the other; ANTT the mean
over both of that time over the job's own solo time. Rows (gpu_rows/), the first of each kind in this order, then the
second, and so on:

pair          two jobs at 1.6 of the larger peak: gpushare, --policy unmanaged, and two plain processes at once, which
              are not measured beside an MPS daemon; all against one after the other under gpushare
equal         what each of a pair prints against plain python, byte for byte, with deterministic algorithms
alone         one job against plain python; held at the peak, live, and what torch's allocator reserves
allocation    an allocation plus its free, of fixed sizes and of a workload's own iteration, by both allocators
launch-bound  two jobs of little but Python: what one GIL costs them beside two processes
batch         the largest batch of two copies together, over the largest alone in the same budget
budgets       the pairs at the other budgets

Waits on the device are counted (`device_waits`), not timed. Each row has its commands. NAME.json and NAME.md are
written after each command; what can't be measured says why.
"""

import argparse
import contextlib
import shlex
import sys
import time

from common import ROOT
from gpu_rows import plan, workloads
from gpu_rows.bench import Bench, Settings
from gpu_rows.machine import machine
from gpu_rows.results import Results
from gpu_rows.row import NO_TIME, Row, Task
from gpu_rows.running import LEAST_S, Runner
from quick_starts import kept_awake  # of scripts/, which gpu_rows.running adds to the path

LEAST_FEW = 3  # steps that may be a profile's


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = {"nargs": "*", "metavar": "WORKLOAD"}
    parser.add_argument("--only", nargs="+", choices=plan.KINDS, default=list(plan.KINDS), metavar="KIND")
    parser.add_argument("--device", default="cuda", help="or cpu, to try it")
    parser.add_argument("--limit", type=float, metavar="SECONDS", help="of all rows; default: none")
    parser.add_argument("--command-limit", type=float, metavar="SECONDS", default=600, help="of one command")
    parser.add_argument("--alone", default=list(workloads.WORKLOADS), **names)
    parser.add_argument("--pairs", nargs="*", default=list(workloads.PAIRS), metavar="WORKLOAD+WORKLOAD")
    parser.add_argument("--replays", default=["resnet50", "bert"], help="for allocations", **names)
    parser.add_argument("--batches", default=list(workloads.WORKLOADS), help="for the largest batch", **names)
    parser.add_argument("--budgets", default="1.05,1.1,1.3,1.6,2", help="of pairs, in the larger peak")
    parser.add_argument("--steps", type=int, nargs=2, default=(10, 60), metavar=("FEW", "MANY"))
    window = "of jobs together, at least: how long each lasts alone; default: 15 on a GPU"
    parser.add_argument("--window", type=float, metavar="SECONDS", help=window)
    parser.add_argument("--rounds", type=int, default=1, help="of jobs alone")
    parser.add_argument("--budget", type=int, default=16 << 30, help="bytes, for jobs alone")
    parser.add_argument("--batch-budget", type=int, help="bytes, for the largest batch; default: --budget")
    parser.add_argument("--batch-guess", type=int, default=64, help="tried first")
    parser.add_argument("--batch-grain", type=int, default=64, help="how exact: to a 64th of the batch")
    parser.add_argument("--sizes", default="", help="more options for every workload")
    parser.add_argument("--name", default="gpu", help="of the results, or a path")
    parser.add_argument("--list", action="store_true", help="name the rows and end")
    given = parser.parse_args()
    if wrong := misuse(given):
        parser.error(wrong)
    return given


def misuse(given: argparse.Namespace) -> str | None:
    """What is wrong with the arguments."""
    pairs = [names.split("+") for names in given.pairs]
    if wrong := [names for names, two in zip(given.pairs, pairs, strict=True) if len(two) != 2]:
        return f"a pair is WORKLOAD+WORKLOAD, but got {', '.join(wrong)}"
    used = [*given.alone, *given.replays, *given.batches, *(name for two in pairs for name in two)]
    if unknown := workloads.unknown(used):
        return f"no such workload: {', '.join(unknown)}; there are {', '.join(workloads.WORKLOADS)}"
    few, many = given.steps
    if not LEAST_FEW <= few < many:
        return f"--steps must be FEW of at least {LEAST_FEW} and MANY above it, but got {few} and {many}"
    if given.limit is not None and given.limit <= 0:
        return f"--limit must be more than 0 seconds, but got {given.limit:g}"
    if given.window is not None and given.window < 0:
        return f"--window must be nought or more seconds, but got {given.window:g}"
    if min(given.batch_guess, given.batch_grain) < 1:
        return "--batch-guess and --batch-grain must be at least 1"
    return None


def bench_of(given: argparse.Namespace) -> Bench:
    deadline = time.monotonic() + given.limit if given.limit else float("inf")
    few, many = given.steps
    batch_budget = given.batch_budget or given.budget
    window_s = given.window if given.window is not None else 15.0 if given.device != "cpu" else 0.0
    settings = Settings(
        few, many, given.rounds, given.budget, batch_budget, given.batch_grain, given.sizes, window_s
    )
    return Bench(Runner(given.device, deadline, given.command_limit), settings)


def tasks_of(bench: Bench, given: argparse.Namespace) -> list[Task]:
    return plan.tasks(
        bench,
        given.only,
        alone_of=given.alone,
        pairs=given.pairs,
        factors=[float(factor) for factor in given.budgets.split(",")],
        replays=given.replays,
        batches=given.batches,
        batch_guess=given.batch_guess,
    )


def run(bench: Bench, tasks: list[Task], rows: list[Row], results: Results) -> str:
    """Fill all rows in; what the Markdown says at the end."""
    text = results.write()
    for task, row in zip(tasks, rows, strict=True):
        if bench.runner.deadline - time.monotonic() < LEAST_S:
            row.why = NO_TIME
        else:
            bench.fill(task, row, results.write)
        text = results.write()
        print(f"{row.seconds:7.1f} s  {row.kind}: {row.name}  {row.why}", file=sys.stderr, flush=True)
    return text


def main() -> None:
    given = arguments()
    bench = bench_of(given)
    tasks = tasks_of(bench, given)
    if given.list:
        print("\n".join(f"{task.kind}: {task.name}" for task in tasks))
        return
    rows = [task.empty() for task in tasks]
    command = shlex.join(["python", *sys.argv]).replace(f"{ROOT}/", "")
    on_gpu = given.device != "cpu"
    results = Results(given.name, command, rows, machine())
    with kept_awake() if on_gpu else contextlib.nullcontext():
        print(run(bench, tasks, rows, results))


if __name__ == "__main__":
    main()
