"""The tests that need a GPU (marked `gpu`), by pytest; those of a file that has none are not even imported."""

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import last_words

from . import jobs, processes, programs, pytest_rows, stacks
from .runner import Row

MARK = re.compile(r"\bmark\.gpu\b")
STATEMENT = "the test passes"
OF_BRIDGE = (
    "tests/framework/test_cuda_bridge.py::test_tensors_on_a_gpu"  # its programs are a part of their own
)
LOOKS_S = 0.3
COUNT_LIMIT_S = 60.0
VERDICTS = {"passed": "true", "failed": "false", "skipped": "not checked"}


def files(tests: Path | None = None) -> list[Path]:
    """Those with a test that is marked: others may need packages that are not there."""
    found = sorted((tests or programs.ROOT / "tests").rglob("test_*.py"))
    return [path for path in found if MARK.search(path.read_text())]


def command(chosen: str, *options: str) -> list[str]:
    """Of those files, the tests whose marks are so."""
    found = [str(path) for path in files()]
    run = [sys.executable, "-m", "pytest", "-m", chosen, "-q", "-p", "no:cacheprovider"]
    return [*run, "--deselect", OF_BRIDGE, *options, *found]


@dataclass(frozen=True)
class Tests:
    """Those that may run beside each other, and those that measure the whole device; `why` there are none."""

    beside: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()
    why: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """One for all where pytest can't say."""
        return self.beside + self.alone or ("tests",)


def collected(deadline: float) -> Tests:
    """By pytest itself, within a minute, and until `deadline` at most."""
    with ThreadPoolExecutor(2) as pool:
        kinds = ("gpu and not alone", "gpu and alone")
        beside, alone = pool.map(lambda kind: _listed(kind, deadline), kinds)
    found = [_names(ended.output) for ended in (beside, alone)]
    if any(found):
        return Tests(*found)
    said = beside.output.decode(errors="replace") + beside.errors
    errors = re.findall(r"^E +(.+)$", said, re.MULTILINE) or said.split()
    return Tests(why=beside.no_time or f"pytest names no tests: {' '.join(errors)[-300:]}")


def _listed(chosen: str, deadline: float) -> processes.Ended:
    path = os.pathsep.join((str(programs.ROOT / "scripts"), programs.python_path()))
    return processes.started(
        command(chosen, "--collect-only"), COUNT_LIMIT_S, deadline, path, folder=programs.ROOT
    )


def _names(output: bytes) -> tuple[str, ...]:
    return tuple(re.findall(r"^tests/\S+::.*$", output.decode(errors="replace"), re.MULTILINE))


@dataclass
class Left:
    """What pytest has said at its end; the logs of hosts that were there still when it was ended from here."""

    words: list[str] = field(default_factory=list)
    logs: list[str] = field(default_factory=list)


def run(tests: Tests, deadline: float, why: str = "") -> Iterator[Row]:
    """A row for each test, as it ends."""
    why = why or jobs.missing() or tests.why
    told: set[str] = set()
    left = Left()
    if not why:
        parallel = processes.at_once()
        # What measures the device first: of few tests, that take long, the others would leave no time to any.
        for groups in ([tests.alone], [tests.beside[one::parallel] for one in range(parallel)]):
            for row in _rows([some for some in groups if some], deadline, left):
                told.add(row.name)
                yield row
        ended = f"pytest ended before it: {' '.join(left.words)[-300:]}"
        why = processes.NO_TIME if time.monotonic() >= deadline else ended
    for name in tests.names:
        if short(name) not in told:
            log = left.logs.pop() if left.logs else ""  # which of them it is of, nobody has said
            yield Row(short(name), STATEMENT, why=why, log=log)


def short(test: str) -> str:
    """Without the folder."""
    return test.removeprefix("tests/")


def _rows(groups: list[tuple[str, ...]], deadline: float, left: Left) -> Iterator[Row]:
    """Of a pytest for each group, at once; killed at the deadline, with what they have started. Their last words."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        sessions = [Session(tests, Path(folder) / str(number)) for number, tests in enumerate(groups)]
        try:
            running = True
            while running:
                running = any(one.runs for one in sessions) and time.monotonic() < deadline
                for one in sessions:
                    yield from map(_row, one.new())
                time.sleep(LOOKS_S if running else 0)
        finally:
            stacks.ask(*(one.process.pid for one in sessions if one.runs))
            left.logs += [log for one in sessions if one.runs and (log := one.hanging())]
            for one in sessions:
                processes.kill(one.process)
                left.words.append(one.last_words)


class Session:
    """A pytest that runs some tests and writes a row for each."""

    def __init__(self, tests: tuple[str, ...], folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self._written, self._told = folder / "rows", 0
        path = os.pathsep.join((str(programs.ROOT / "scripts"), programs.python_path()))
        options = (
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "gpu.pytest_rows",
            "--basetemp",
            f"{folder}/temporary",
        )
        self._said = folder / "said"
        with self._said.open("wb") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "pytest", *options, *tests],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env={**os.environ, "PYTHONPATH": path, pytest_rows.FILE: str(self._written)},
                cwd=programs.ROOT,
                start_new_session=True,
            )

    @property
    def runs(self) -> bool:
        return self.process.poll() is None

    def hanging(self) -> str:
        """What runs of gpushare have said whose hosts were asked where their threads are."""
        return "\n".join(last_words.in_full(run, "") for run in last_words.runs_with_stacks(self._folder))

    @property
    def last_words(self) -> str:
        return " ".join(self._said.read_text(errors="replace").split())[-150:]

    def new(self) -> list[dict[str, Any]]:
        """What was not told before."""
        new = _read(self._written)[self._told :]
        self._told += len(new)
        return new


def _read(written: Path) -> list[dict[str, Any]]:
    """What tests have told, but for a line that is not whole yet."""
    with contextlib.suppress(FileNotFoundError):
        lines = written.read_text().splitlines(keepends=True)
        told = [json.loads(line) for line in lines if line.endswith("\n")]
        return [one for one in told if "test" in one]
    return []


def _row(told: dict[str, Any]) -> Row:
    row = Row(short(told["test"]), STATEMENT, VERDICTS[told["outcome"]])
    row.seconds = round(told["seconds"], 2)
    if told["outcome"] == "skipped":
        row.why = " ".join(told["why"].split()).removeprefix("Skipped: ")
    elif told["outcome"] == "failed":
        row.claims[f"it passes; {' '.join(told['why'].split())[-400:]}"] = False
        row.log = told["why"]
    else:
        row.claims["it passes"] = True
    return row
