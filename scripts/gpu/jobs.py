"""Whole runs as a user starts them: scripts in plain python, and the same scripts together by
`python -m gpushare run`. What they print must be equal, byte for byte.
"""

import contextlib
import importlib.util
import json
import re
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import last_words

from . import programs
from .processes import ENOUGH_S, LEAST_S, LIMIT_S, NO_TIME, Ended, at_once, started
from .runner import Row

SCRIPTS = Path(__file__).parent / "scripts"
NEEDED = ("click", "rich", "psutil")
SHARE = 1.3  # of the largest peak
NO_BRIDGE = "can't be built"  # what gpushare says when it goes on without
GRAPHS_SHARE = 2.5  # a graph keeps nearly all that it has used
LEAST_BUDGET = 256 << 20
AGAIN = 2  # runs of plain python where something differs
COMPILING = {"limit_s": 90, "enough_s": 60}  # torch.compile takes longer than what it compiles
SHOWN_LINES, SHOWN = 8, 900  # of what a run that ended wrongly has said, in its row


@dataclass(frozen=True)
class Case:
    """Jobs (a script with its options) that run together; what the run ends with, if it is not well.

    A run that has had `enough_s` seconds and not ended hangs.
    """

    name: str
    statement: str
    jobs: tuple[str, ...]
    limit_s: float = LIMIT_S
    enough_s: float = ENOUGH_S
    exit_code: int = 0
    only_cuda: bool = False
    share: float = SHARE  # of the largest peak, as the budget


EQUAL = "print what each prints in plain python"
CASES = (
    Case("one_job", f"one job under gpushare: {EQUAL}", ("perceptron.py",)),
    Case(
        "two_jobs",
        f"dropout beside convolutions with pinned copies: {EQUAL}",
        ("perceptron.py", "convolutions.py"),
    ),
    Case(
        "random_numbers", f"seeds and states beside dropout: {EQUAL}", ("random_numbers.py", "perceptron.py")
    ),
    Case(
        "recurrent",
        f"two recurrent networks with cuDNN's dropout: {EQUAL}",
        ("recurrent.py --steps 100", "recurrent.py --seed 3 --steps 100"),
    ),
    Case("twice", f"one script with two seeds: {EQUAL}", ("random_numbers.py", "random_numbers.py --seed 7")),
    Case(
        "streams",
        f"side streams, events, record_stream and synchronize beside convolutions: {EQUAL}",
        ("side_streams.py", "convolutions.py"),
        only_cuda=True,
    ),
    Case(
        "three_jobs",
        f"three jobs: {EQUAL}",
        ("perceptron.py", "convolutions.py", "random_numbers.py --steps 30"),
    ),
    Case(
        "graphs",
        f"captures and replays beside convolutions: {EQUAL}",
        ("graph.py", "convolutions.py"),
        only_cuda=True,
        share=GRAPHS_SHARE,
    ),
    Case(
        "two_graphs",
        f"two jobs that capture and replay: {EQUAL}",
        ("graph.py --steps 2000", "graph.py --seed 3 --steps 2000"),
        only_cuda=True,
        share=GRAPHS_SHARE,
    ),
    Case(
        "searches_plans",
        f"cuDNN searches for convolutions, waiting for the device, beside a job that captures: {EQUAL}",
        ("searches.py", "captures.py --steps 60"),
        only_cuda=True,
        share=GRAPHS_SHARE,
    ),
    Case(
        "out_of_memory",
        f"a script catches its OutOfMemoryError and goes on, beside another: {EQUAL}",
        ("too_much.py --steps 300", "perceptron.py --steps 100"),
        only_cuda=True,
    ),
    Case(
        "graphed_callables",
        f"two jobs that train what make_graphed_callables has made: {EQUAL}",
        ("callables.py", "callables.py --seed 3"),
        only_cuda=True,
        share=GRAPHS_SHARE,
    ),
    Case(
        "illegal_access",
        "an illegal address in a kernel ends the host with exit code 4, and says so",
        ("illegal.py", "perceptron.py --steps 200"),
        exit_code=4,
        only_cuda=True,
    ),
    Case(
        "device_assert",
        "a device-side assert ends the host with exit code 4, and says so",
        ("asserts.py", "perceptron.py --steps 200"),
        exit_code=4,
        only_cuda=True,
    ),
    Case(
        "compiled",
        f"torch.compile beside dropout: {EQUAL}",
        ("compiled.py --steps 300", "random_numbers.py --steps 600"),
        **COMPILING,
    ),
    Case(
        "graph_trees",
        f"two jobs with torch.compile's mode reduce-overhead: {EQUAL}",
        ("graph_trees.py --steps 400", "graph_trees.py --seed 3 --steps 400"),
        only_cuda=True,
        share=GRAPHS_SHARE,
        **COMPILING,
    ),
)


@dataclass(frozen=True)
class Plain:
    """What a script prints in plain python, and how it ends. `peak_bytes` is torch's reserved memory."""

    ended: Ended
    peak_bytes: int = 0

    def why_not(self, job: str, may_fail: bool) -> str:
        """Why nothing can be compared with it, or nothing."""
        if self.ended.code is None:
            return self.ended.no_time or f"plain python did not end {job} within {self.ended.limit_s:.0f} s"
        if self.ended.code and not may_fail:
            return f"plain python ended {job} with {self.ended.code}: {self.ended.last_words}"
        return ""


@dataclass
class Machine:
    """Where and how long all of it runs. `extra` are options for each script."""

    device: str = "cuda"
    extra: str = ""
    deadline: float = 0.0

    @property
    def left_s(self) -> float:
        return self.deadline - time.monotonic()

    def plain(self, job: str, case: Case) -> Plain:
        ended = self.started([sys.executable, *f"{SCRIPTS / job} {self.options}".split()], case)
        peak = re.search(r"peak_bytes (\d+)", ended.errors)
        return Plain(ended, int(peak[1]) if peak else 0)

    def started(self, command: list[str], case: Case) -> Ended:
        path = programs.python_path()
        return started(command, case.limit_s, self.deadline, path, enough_s=case.enough_s)

    @property
    def options(self) -> str:
        return f"--device {self.device} {self.extra}".strip()


def run(deadline: float, why: str = "", cases: tuple[Case, ...] = CASES) -> Iterator[Row]:
    """A row for each case; what has no time left is not checked, and nothing is if there is a `why`."""
    yield from run_cases(cases, Machine(deadline=deadline), why or missing())


def missing() -> str:
    """Which packages the command needs and this python lacks."""
    names = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    return f"{sys.executable} has no {', '.join(names)}, which gpushare needs" if names else ""


def run_cases(cases: tuple[Case, ...], machine: Machine, why: str = "") -> Iterator[Row]:
    """A row for each, as it ends: a hang holds back none. Some run at once, behind what they are compared with."""
    rows = [(case, Row(case.name, case.statement, why=why or _no_use(case, machine))) for case in cases]
    yield from (row for _, row in rows if row.why)
    with ThreadPoolExecutor(at_once()) as pool:
        known: dict[str, Future[Plain]] = {}
        wanted = [(case, row) for case, row in rows if not row.why]
        for case, _ in wanted:
            for job in case.jobs:
                if job not in known:
                    known[job] = pool.submit(machine.plain, job, case)
        begun = [pool.submit(_timed, case, row, machine, known) for case, row in wanted]
        try:
            yield from (done.result() for done in as_completed(begun))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _no_use(case: Case, machine: Machine) -> str:
    return "it needs a GPU" if case.only_cuda and machine.device == "cpu" else ""


def _timed(case: Case, row: Row, machine: Machine, known: dict[str, Future[Plain]]) -> Row:
    begin = time.monotonic()
    try:
        references = [known[job].result() for job in case.jobs]
        begin = time.monotonic()
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            _run_case(case, row, machine, references, Path(folder))
    except Exception as error:  # the other cases still run
        row.why, row.verdict = fault(error), "not checked"
    row.seconds = round(time.monotonic() - begin, 2)
    return row


def fault(error: Exception) -> str:
    """Of the check itself, in words; the traceback is printed."""
    traceback.print_exception(error)
    return f"the check has a fault of its own: {type(error).__name__}: {error}"


def _run_case(case: Case, row: Row, machine: Machine, references: list[Plain], folder: Path) -> None:
    for job, plain in zip(case.jobs, references, strict=True):
        if not row.why and (why := plain.why_not(job, case.exit_code != 0)):
            row.why, row.log = why, plain.ended.in_full
    if not row.why and machine.left_s < LEAST_S:
        row.why = NO_TIME
    if row.why:
        return
    budget = max(LEAST_BUDGET, int(case.share * max(plain.peak_bytes for plain in references)))
    jobs = [f"{SCRIPTS / job} {machine.options}" for job in case.jobs]
    command = ["run", *jobs, "--device", machine.device, "--budget", str(budget), "--no-live"]
    command += ["--log-dir", str(folder / "logs"), "--summary", str(folder / "summary.json")]
    ended = machine.started([sys.executable, "-m", "gpushare", *command], case)
    row.figures["budget_bytes"] = budget
    row.log = last_words.in_full(folder / "logs", ended.in_full)
    if ended.code is None:
        not_ended(row, ended, folder / "logs")
        return
    if machine.device != "cpu":
        row.claims["the bridge is torch's allocator"] = NO_BRIDGE not in ended.errors
    row.claims[_ended(ended, case.exit_code, folder / "logs")] = ended.code == case.exit_code
    if ended.code == case.exit_code == 0:  # jobs that failed have not printed all, and need no second look
        _compare(case, row, references, folder, machine)
    if not row.why:
        row.verdict = "true" if all(row.claims.values()) else "false"


def not_ended(row: Row, ended: Ended, logs: Path) -> None:
    """False, with where its threads were, unless it was cut before it had what it may need."""
    words = f"its last words: {last_words.of_run(logs, ended.errors, SHOWN_LINES, SHOWN)}"
    if ended.cut:
        row.why = f"{ended.no_time}; {words}"
    else:
        row.claims[f"gpushare ends within {ended.limit_s:.0f} s; {words}"] = False
        row.verdict = "false"


def _ended(ended: Ended, wanted: int, logs: Path) -> str:
    words = last_words.of_run(logs, ended.errors, SHOWN_LINES, SHOWN)
    told = "" if ended.code == wanted else f"; it ended with {ended.code}, its last words: {words}"
    return f"gpushare ends with exit code {wanted}{told}"


def _compare(case: Case, row: Row, references: list[Plain], folder: Path, machine: Machine) -> None:
    summary: dict[str, Any] = {}
    with contextlib.suppress(OSError, ValueError):
        summary = json.loads((folder / "summary.json").read_text())
        row.figures["pool_peak_bytes"] = summary["pool_peak_bytes"]
        row.figures["overlap_s"] = round(summary["overlap_s"], 3)
        row.claims["the pool stays inside the budget"] = summary["pool_peak_bytes"] <= summary["budget_bytes"]
    names = [job["name"] for job in summary.get("jobs", [])]
    row.claims["the summary names each job"] = len(names) == len(references)
    for name, job, plain in zip(names, case.jobs, references, strict=False):
        found, wanted = (folder / "logs" / f"{name}.out").read_bytes(), plain.ended.output
        if found != wanted and (why := _unsteady(job, wanted, machine, case)):
            row.why = why
            return
        row.claims[f"{name} prints the same{difference(wanted, found)}"] = found == wanted
    if machine.device != "cpu" and all(row.claims.values()):
        row.why = never_together(summary)


def never_together(summary: dict[str, Any]) -> str:
    """Why nothing is known of several jobs beside each other, although each prints what it should."""
    together = len(summary["jobs"]) == 1 or summary["overlap_s"] > 0
    return "" if together else "they never had iterations at the same time: each was alone while it computed"


def _unsteady(job: str, wanted: bytes, machine: Machine, case: Case) -> str:
    """A difference counts as ours only where plain python makes none. What it can't be asked is not known."""
    for _ in range(AGAIN):
        again = machine.plain(job, case).ended
        if again.code is None:
            return f"{job} prints something else under gpushare; whether plain python would, there was no time to see"
        if again.output != wanted:
            told = difference(wanted, again.output)
            return f"plain python itself does not print the same for {job} twice{told}"
    return ""


def difference(wanted: bytes, found: bytes) -> str:
    """In words; nothing if there is none."""
    if wanted == found:
        return ""
    first, second = wanted.decode(errors="replace").splitlines(), found.decode(errors="replace").splitlines()
    for number, (one, other) in enumerate(zip(first, second, strict=False), 1):
        if one != other:
            return f"; line {number} is {other!r} instead of {one!r}"
    return f"; it has {len(second)} lines instead of {len(first)}"
