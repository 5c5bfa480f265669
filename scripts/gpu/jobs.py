"""Whole runs as a user starts them: scripts in plain python, one after the other, and the same scripts together by
`python -m gpushare run`. What they print must be equal, byte for byte.
"""

import contextlib
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import programs
from .runner import Row

SCRIPTS = Path(__file__).parent / "scripts"
NO_TIME = "no time was left"
NEEDED = ("click", "rich", "psutil")
SHARE = 1.3  # of the largest peak
LEAST_S = 20.0  # a process that has less is not started
NO_BRIDGE = "can't be built"  # what gpushare says when it goes on without
GRAPHS_SHARE = 2.5  # a graph keeps nearly all that it has used
LEAST_BUDGET = 256 << 20


@dataclass(frozen=True)
class Case:
    """Jobs (a script with its options) that run together; what the run ends with, if it is not well."""

    name: str
    statement: str
    jobs: tuple[str, ...]
    limit_s: float = 90
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
        limit_s=120,
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
        ("graph.py", "graph.py --seed 3 --steps 60"),
        only_cuda=True,
        share=GRAPHS_SHARE,
    ),
    Case(
        "out_of_memory",
        f"a script catches its OutOfMemoryError and goes on, beside another: {EQUAL}",
        ("too_much.py", "perceptron.py"),
        only_cuda=True,
    ),
    Case(
        "device_assert",
        "a device-side assert ends the host with exit code 4, and says so",
        ("asserts.py", "perceptron.py --steps 200"),
        exit_code=4,
        only_cuda=True,
    ),
    Case("compiled", f"torch.compile beside dropout: {EQUAL}", ("compiled.py", "perceptron.py"), limit_s=180),
)
COUNT = 1 + len(CASES)


@dataclass(frozen=True)
class Plain:
    """What a script prints in plain python, if it does so twice; `why` if not. `peak_bytes` is torch's reserved."""

    output: bytes = b""
    peak_bytes: int = 0
    seconds: float = 0.0
    why: str = ""


@dataclass
class Machine:
    """Where and how long all of it runs. `extra` are options for each script."""

    device: str = "cuda"
    extra: str = ""
    deadline: float = 0.0

    @property
    def left_s(self) -> float:
        return self.deadline - time.monotonic()


def run(limit_s: float) -> Iterator[Row]:
    """A row for the shim's build and one for each case; what has no time left is not checked."""
    machine = Machine(deadline=time.monotonic() + limit_s)
    built = programs.build_shim(machine.deadline)
    yield built
    why = missing() or ("" if built.verdict == "true" else "the shim was not built")
    yield from run_cases(CASES, machine, why)


def missing() -> str:
    """Which packages the command needs and this python lacks."""
    names = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    return f"{sys.executable} has no {', '.join(names)}, which gpushare needs" if names else ""


def run_cases(cases: tuple[Case, ...], machine: Machine, why: str = "") -> Iterator[Row]:
    """A row for each; all are not checked if there is a `why`."""
    known: dict[str, Plain] = {}
    for case in cases:
        row = Row(case.name, case.statement, why=why)
        if case.only_cuda and machine.device == "cpu":
            row.why = "it needs a GPU"
        begin = time.monotonic()
        if not row.why and machine.left_s < LEAST_S:
            row.why = NO_TIME
        if not row.why:
            with tempfile.TemporaryDirectory() as folder:
                _run_case(case, row, machine, known, Path(folder))
        row.seconds = round(time.monotonic() - begin, 2)
        yield row


def _run_case(case: Case, row: Row, machine: Machine, known: dict[str, Plain], folder: Path) -> None:
    for job in case.jobs:
        if job not in known:
            known[job] = _plain(job, machine, case.limit_s, fails=case.exit_code != 0)
        if known[job].why:
            row.why = known[job].why
            return
    references = [known[job] for job in case.jobs]
    budget = max(LEAST_BUDGET, int(case.share * max(plain.peak_bytes for plain in references)))
    jobs = [f"{SCRIPTS / job} {_options(machine)}" for job in case.jobs]
    command = ["run", *jobs, "--device", machine.device, "--budget", str(budget), "--no-live"]
    command += ["--log-dir", str(folder / "logs"), "--summary", str(folder / "summary.json")]
    began = time.monotonic()
    code, _, said = _started([sys.executable, "-m", "gpushare", *command], case.limit_s, machine)
    row.figures["seconds together"] = round(time.monotonic() - began, 2)
    row.figures["seconds one after the other"] = round(sum(plain.seconds for plain in references), 2)
    row.figures["budget_bytes"] = budget
    if code is None and machine.left_s < 0:
        row.why = NO_TIME
        return
    if code is None:
        row.claims[f"gpushare ends within {said}"] = False
    else:
        if machine.device != "cpu":
            row.claims["the bridge is torch's allocator"] = NO_BRIDGE not in said
        row.claims[_ended(code, case.exit_code, said)] = code == case.exit_code
        _compare(case, row, references, folder)
    row.verdict = "true" if all(row.claims.values()) else "false"


def _ended(code: int, wanted: int, said: str) -> str:
    words = "" if code == wanted else f"; it ended with {code}, its last words: {said[-500:]}"
    return f"gpushare ends with exit code {wanted}{words}"


def _compare(case: Case, row: Row, references: list[Plain], folder: Path) -> None:
    if case.exit_code:
        return
    summary: dict[str, Any] = {}
    with contextlib.suppress(OSError, ValueError):
        summary = json.loads((folder / "summary.json").read_text())
        row.figures["pool_peak_bytes"] = summary["pool_peak_bytes"]
        row.figures["overlap_s"] = round(summary["overlap_s"], 3)
        row.claims["the pool stays inside the budget"] = summary["pool_peak_bytes"] <= summary["budget_bytes"]
    names = [job["name"] for job in summary.get("jobs", [])]
    row.claims["the summary names each job"] = len(names) == len(references)
    for name, plain in zip(names, references, strict=False):
        found = (folder / "logs" / f"{name}.out").read_bytes()
        row.claims[f"{name} prints the same{_difference(plain.output, found)}"] = found == plain.output


def _difference(wanted: bytes, found: bytes) -> str:
    if wanted == found:
        return ""
    first, second = wanted.decode(errors="replace").splitlines(), found.decode(errors="replace").splitlines()
    for number, (one, other) in enumerate(zip(first, second, strict=False), 1):
        if one != other:
            return f"; line {number} is {other!r} instead of {one!r}"
    return f"; it has {len(second)} lines instead of {len(first)}"


def _plain(job: str, machine: Machine, limit_s: float, fails: bool) -> Plain:
    """A difference counts as ours only where plain python makes none."""
    outputs: list[bytes] = []
    command = [sys.executable, *f"{SCRIPTS / job} {_options(machine)}".split()]
    for _ in range(2):
        began = time.monotonic()
        code, output, said = _started(command, limit_s, machine)
        if code is None:
            return Plain(
                why=NO_TIME if machine.left_s < 0 else f"plain python did not end {job} within {said}"
            )
        if code != 0 and not fails:
            return Plain(why=f"plain python ended {job} with {code}: {said[-400:]}")
        outputs.append(output)
        peak = re.search(r"peak_bytes (\d+)", said)
        if fails:
            return Plain(output, int(peak[1]) if peak else 0)
    if outputs[0] != outputs[1]:
        return Plain(
            why=f"plain python itself does not print the same for {job} twice{_difference(*outputs)}"
        )
    return Plain(outputs[0], int(peak[1]) if peak else 0, time.monotonic() - began)


def _options(machine: Machine) -> str:
    return f"--device {machine.device} {machine.extra}".strip()


def _cache(folder: Path) -> str:
    """One without profiles of earlier runs; the bridge is where it is always kept."""
    kept = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpushare" / "bridge"
    kept.mkdir(parents=True, exist_ok=True)
    cache = folder / "cache"
    (cache / "gpushare").mkdir(parents=True)
    (cache / "gpushare" / "bridge").symlink_to(kept)
    return str(cache)


def _started(command: list[str], limit_s: float, machine: Machine) -> tuple[int | None, bytes, str]:
    """Exit code, stdout and the end of stderr; None and the limit if it did not end."""
    left = min(limit_s, machine.left_s)
    environment = {
        **os.environ,
        "CUBLAS_WORKSPACE_CONFIG": programs.WORKSPACES,
        "PYTHONPATH": programs.python_path(),
    }
    with (
        tempfile.TemporaryDirectory() as state,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        environment |= {"XDG_STATE_HOME": state, "XDG_CACHE_HOME": _cache(Path(state))}
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment, start_new_session=True
        )
        try:
            code: int | None = process.wait(max(1.0, left))
        except subprocess.TimeoutExpired:
            code = None
            _kill(process)
        out.seek(0)
        err.seek(0)
        said = err.read().decode(errors="replace").strip().replace("\n", " | ")
        return code, out.read(), said if code is not None else f"{left:.0f} s"


def _kill(process: subprocess.Popen[bytes]) -> None:
    """The host is in a session of its own, and ends with its parent."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(10)
