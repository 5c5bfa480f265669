"""What is most worth knowing of a GPU that is there for minutes only, in steps, the most valuable first.

    python3 scripts/gpu_lent.py --out DIR --seconds 300 works                    does it work at all?
    python3 scripts/gpu_lent.py --out DIR --seconds 570 facts pairs alone launch batch corpus

A step begins where enough is left for a figure, and ends when the seconds are over at the latest. All results lie in
DIR/results.tgz, replaced after each step and every ten seconds: a machine that is taken away, or gives back few files,
still leaves them. What the benchmark needs is built first where it is not there.
"""

import argparse
import contextlib
import os
import shlex
import signal
import subprocess
import sys
import tarfile
import time
from dataclasses import dataclass
from pathlib import Path

import quick_starts
from gpu import build, programs

ROOT = Path(__file__).parent.parent
KEPT_EVERY_S = 10.0
BUILD_S = 120.0
ENDS_S = 10.0  # what a step that has been told its seconds may take longer

# What has not been seen on a GPU yet; `scripts/gpu_check.py --list` has the statements.
FACTS = (
    "recurrent_dropout_follows_the_generator",
    "plain_allocator_breaks_cudnn_benchmark",
    "thread_local_capture_bears_a_wait_for_a_stream",
    "thread_local_capture_bears_pinned_memory",
    "thread_local_capture_bears_free",
    "thread_local_capture_bears_the_end_of_plans",
    "thread_local_capture_bears_a_copy_that_waits",
    "thread_local_capture_bears_a_first_launch",
    "many_connections_keep_nobody_waiting",
    "few_connections_keep_some_waiting",
    "launch_bound_jobs_share_the_lock",
    "priorities_help_small_kernels",
)


@dataclass(frozen=True)
class Step:
    """A command line; `{s}` are its seconds, `{to}` the folder of its results. With less than `least_s` it tells
    nothing, more than `most_s` it does not need."""

    name: str
    least_s: float
    most_s: float
    command: str
    benchmark: bool = False  # it needs the package, and has none of its own


CHECK, BENCH = "scripts/gpu_check.py", "scripts/bench/gpu.py"
STEPS = (
    Step("works", 120, 280, f"{CHECK} --bridge --jobs --stress --total {{s}} --out {{to}}/works"),
    Step(
        "facts",
        40,
        100,
        f"{CHECK} --facts --limit facts=90 --total {{s}} --out {{to}}/facts --only " + " ".join(FACTS),
    ),
    Step(
        "pairs",
        120,
        260,
        f"{BENCH} --only pair budgets --pairs resnet50+bert --budgets 1.1,1.6 --steps 10 100 --window 10 "
        "--limit {s} --name {to}/gpu_pairs",
        benchmark=True,
    ),
    Step(
        "alone",
        90,
        200,
        f"{BENCH} --only alone allocation --alone resnet50 --replays resnet50 --steps 10 200 --limit {{s}} "
        "--name {to}/gpu",
        benchmark=True,
    ),
    Step(
        "launch",
        80,
        150,
        f"{BENCH} --only launch-bound --steps 10 400 --window 10 --limit {{s}} --name {{to}}/gpu_launch",
        benchmark=True,
    ),
    Step(
        "batch",
        150,
        300,
        f"{BENCH} --only batch --batches resnet50 --batch-grain 16 --batch-guess 192 --window 10 --limit {{s}} "
        "--name {to}/gpu_batch",
        benchmark=True,
    ),
    Step("corpus", 60, 150, f"{CHECK} --corpus --total {{s}} --out {{to}}/corpus"),
)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, metavar="DIR", required=True)
    parser.add_argument("--seconds", type=float, required=True, help="for all steps, what is built included")
    parser.add_argument("steps", nargs="+", choices=[step.name for step in STEPS], metavar="STEP")
    given = parser.parse_args()
    if not given.seconds > 0:
        parser.error(f"--seconds must be more than 0, but got {given.seconds:g}")
    return given


class Results:
    """A folder, and the archive of it that is brought away."""

    def __init__(self, out: Path) -> None:
        self.folder = ROOT / "build" / "gpu-lent"
        self.folder.mkdir(parents=True, exist_ok=True)
        out.mkdir(parents=True, exist_ok=True)
        self._archive = out.resolve() / "results.tgz"

    def keep(self) -> None:
        unfinished = self._archive.with_suffix(".new")
        with tarfile.open(unfinished, "w:gz") as archive:
            for file in sorted(self.folder.rglob("*")):
                with contextlib.suppress(FileNotFoundError):  # replaced meanwhile
                    archive.add(file, file.relative_to(self.folder), recursive=False)
        os.replace(unfinished, self._archive)


def run(step: Step, seconds: float, results: Results) -> str:
    """What became of it, in words."""
    command = [*shlex.split(step.command.format(s=int(seconds), to=results.folder))]
    print(f"== {step.name}, {seconds:.0f} s: python3 {shlex.join(command)}", flush=True)
    env = dict(os.environ)
    if step.benchmark:
        env["PYTHONPATH"] = programs.python_path()
    begun = time.monotonic()
    process = subprocess.Popen([sys.executable, *command], cwd=ROOT, env=env)
    try:
        while time.monotonic() - begun < seconds + ENDS_S:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = process.wait(KEPT_EVERY_S)
                return f"exit code {code} after {time.monotonic() - begun:.0f} s"
            results.keep()
        return f"ended after {time.monotonic() - begun:.0f} s, which was more than it was given"
    finally:
        process.terminate()  # its own end takes with it what it has started
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(ENDS_S)
        process.kill()
        results.keep()


def built(deadline: float) -> bool:
    """The package for the benchmark, as the check leaves it."""
    if (programs.SITE / "gpushare").exists() and programs.SHIM.exists():
        return True
    shim = next(build.run(min(deadline, time.monotonic() + BUILD_S)))
    print(f"{shim.name}: {shim.verdict} {shim.why}", flush=True)
    return shim.verdict == "true"


def end_tidily(*_: object) -> None:
    """What has been started ends with us."""
    raise KeyboardInterrupt


def main() -> int:
    given = arguments()
    signal.signal(signal.SIGTERM, end_tidily)
    end = time.monotonic() + given.seconds
    results = Results(given.out)
    told = []
    with quick_starts.kept_awake():
        for step in (step for step in STEPS if step.name in given.steps):
            ready = not step.benchmark or built(end)
            left = end - time.monotonic() - ENDS_S
            if not ready:
                became = "not begun: the shim was not built"
            elif left < step.least_s:
                became = f"not begun: {max(0, left):.0f} s were left, and it needs {step.least_s:.0f}"
            else:
                became = run(step, min(step.most_s, left), results)
            told.append(f"{step.name}: {became}")
    print("\n".join(["==", *told]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
