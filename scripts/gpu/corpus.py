"""The scripts of tests/scripts on the GPU: each beside a different one under `gpushare run`, against plain python.

They compute where DEVICE says. What has no use for a GPU (signals, files, child processes) runs beside the others
all the same, last, and is listed as such.
"""

import contextlib
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import last_words

from . import jobs, programs
from .processes import LEAST_S, LIMIT_S, NO_TIME, Ended, at_once, started
from .runner import Row

FOLDER = Path(__file__).parent.parent.parent / "tests" / "scripts"
BUDGET = "2GiB"
SEED = "GPUSHARE_TEST_SEED"  # as for the tests on the CPU


@dataclass(frozen=True)
class Result:
    """What a script printed, how it ended, and the files that it left, by name."""

    ended: Ended
    files: dict[str, bytes]

    def differences(self, other: "Result", words: str = "") -> dict[str, bool]:
        """Claims: this one is equal to what plain python gave. `words` are told where the exit code is another."""
        mine, its = self.ended, other.ended
        told = f"exit code {its.code}" + ("" if mine.code == its.code else f", but it is {mine.code}{words}")
        unequal = sorted(
            name for name in self.files | other.files if self.files.get(name) != other.files.get(name)
        )
        return {
            f"stdout is the same{jobs.difference(its.output, mine.output)}": mine.output == its.output,
            told: mine.code == its.code,
            f"files are the same{unequal or ''}": not unequal,
        }


@dataclass
class Machine:
    """Where they run, and until when."""

    device: str = "cuda"
    deadline: float = 0.0
    folder: Path = field(default_factory=Path)

    @property
    def left_s(self) -> float:
        return self.deadline - time.monotonic()

    def started(self, command: list[str], folder: Path) -> Ended:
        return started(
            command, LIMIT_S, self.deadline, programs.python_path(), {"DEVICE": self.device}, folder
        )


def computes(name: str) -> bool:
    """Whether it asks where it is to compute."""
    return "DEVICE" in (FOLDER / f"{name}.py").read_text()


def names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.py"))


def pairs() -> list[tuple[str, str]]:
    """Each script with a different one, those that compute first; drawn anew each time, unless SEED says how."""
    draw = random.Random(os.environ.get(SEED))
    found: list[tuple[str, str]] = []
    for kind in (True, False):
        drawn = [name for name in names() if computes(name) is kind]
        draw.shuffle(drawn)
        found += zip(drawn[::2], drawn[1::2], strict=False)
        found += [(drawn[-1], drawn[0])] if len(drawn) % 2 else []
    return found


def run(deadline: float, why: str, drawn: list[tuple[str, str]]) -> Iterator[Row]:
    """Two rows for each pair that was drawn; what has no time left is not checked, nothing is if there is a `why`."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        machine = Machine(deadline=deadline, folder=Path(folder))
        yield from run_pairs(drawn, machine, why or jobs.missing())


def run_pairs(pairs: list[tuple[str, str]], machine: Machine, why: str = "") -> Iterator[Row]:
    """Some pairs at once, each behind its scripts in plain python; rows as they end: a hang holds back none."""
    rows = [[_row(name, other, why) for name, other in (pair, pair[::-1])] for pair in pairs]
    if why:
        yield from (row for both in rows for row in both)
        return
    with ThreadPoolExecutor(at_once()) as pool:
        begun = [
            pool.submit(_timed, pair, both, machine, machine.folder / str(number))
            for number, (pair, both) in enumerate(zip(pairs, rows, strict=True))
        ]
        try:
            for done in as_completed(begun):
                yield from done.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _row(name: str, other: str, why: str) -> Row:
    where = "" if computes(name) else "; it stays on the CPU"
    return Row(name, f"beside {other}: output, exit code and files are those of plain python{where}", why=why)


def _timed(pair: tuple[str, str], rows: list[Row], machine: Machine, folder: Path) -> list[Row]:
    begin = time.monotonic()
    try:
        _run_pair(pair, rows, machine, folder)
    except Exception as error:  # the other pairs still run
        why = jobs.fault(error)
        for row in rows:
            row.why, row.verdict = why, "not checked"
    for row in rows:
        row.seconds = round(time.monotonic() - begin, 2)
    return rows


def _run_pair(pair: tuple[str, str], rows: list[Row], machine: Machine, folder: Path) -> None:
    if machine.left_s < LEAST_S:
        for row in rows:
            row.why = NO_TIME
        return
    with ThreadPoolExecutor(len(pair)) as pool:
        results = pool.map(lambda name: plain(name, machine, folder), pair)
        alone = dict(zip(pair, results, strict=True))
    for row in rows:
        ended = alone[row.name].ended
        if ended.code is None:
            row.why = ended.no_time or f"plain python did not end it within {ended.limit_s:.0f} s"
            row.log = ended.in_full
    if not any(row.why for row in rows):
        together, summary = _together(pair, machine, folder)
        for row in rows:
            _judge(row, alone[row.name], together[row.name], summary, machine, folder)
    for row in rows:
        row.why = row.why or ("" if row.claims else "what it runs beside could not be run in plain python")


def plain(name: str, machine: Machine, folder: Path) -> Result:
    """In a directory that has the same name in every run, since scripts may print it."""
    script = _copy(name, folder)
    ended = machine.started([sys.executable, str(script)], script.parent)
    result = Result(ended, _written(script.parent))
    shutil.rmtree(script.parent, ignore_errors=True)
    return result


def _copy(name: str, folder: Path) -> Path:
    at = folder / name
    at.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copy(FOLDER / f"{name}.py", at / f"{name}.py"))


def _written(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def _together(
    pair: tuple[str, str], machine: Machine, folder: Path
) -> tuple[dict[str, Result], dict[str, Any]]:
    tables = []
    for name in pair:
        script = _copy(name, folder)
        tables.append(f"[[job]]\ncommand = '{script}'\ncwd = '{script.parent}'\n")
    (folder / "jobs.toml").write_text("".join(tables))
    command = [sys.executable, "-m", "gpushare", "run", "-f", "jobs.toml", "--log-dir", "logs", "--no-live"]
    command += ["--summary", "summary.json", "--budget", BUDGET, "--device", machine.device]
    ended = machine.started(command, folder)
    summary: dict[str, Any] = {"jobs": [], "ended": ended}
    with contextlib.suppress(OSError, ValueError):  # of a run that was killed
        summary |= json.loads((folder / "summary.json").read_text())
    codes = {job["name"]: job["exit_code"] for job in summary["jobs"]}
    results = {}
    for name in pair:
        log = folder / "logs" / f"{name}.out"
        output = log.read_bytes() if log.exists() else b""
        errors = log.with_suffix(".err")
        said = errors.read_text(errors="replace") if errors.exists() else ""
        results[name] = Result(Ended(codes.get(name), output, said, ended.limit_s), _written(folder / name))
        shutil.rmtree(folder / name, ignore_errors=True)
    return results, summary


def _judge(
    row: Row, alone: Result, together: Result, summary: dict[str, Any], machine: Machine, folder: Path
) -> None:
    ended: Ended = summary["ended"]
    logs = folder / "logs"
    row.log = last_words.in_full(logs, ended.in_full)
    if ended.code is None:
        jobs.not_ended(row, ended, logs)
        return
    words = f"its last words: {last_words.of_run(logs, ended.errors, jobs.SHOWN_LINES, jobs.SHOWN)}"
    if not summary["jobs"]:
        row.claims[f"gpushare tells how jobs ended; it ended with {ended.code}, {words}"] = False
    row.claims |= together.differences(alone, f"; {words}")
    job = next((one for one in summary["jobs"] if one["name"] == row.name), None)
    if job and computes(row.name):
        row.figures["held_peak_bytes"] = job["held_peak_bytes"]
        row.figures["overlap_s"] = round(summary["overlap_s"], 3)
        row.claims["it has memory on the device"] = job["held_peak_bytes"] > 0
    told = jobs.difference(alone.ended.errors.encode(), together.ended.errors.encode())
    if told:
        row.figures["stderr"] = f"differs{told[:200]}"
    exits_alike = together.ended.code == alone.ended.code  # or it has not done all, and needs no second look
    if exits_alike and not all(row.claims.values()) and (why := _unsteady(row.name, alone, machine, folder)):
        row.why, row.verdict = why, "not checked"
        return
    row.verdict = "true" if all(row.claims.values()) else "false"


def _unsteady(name: str, alone: Result, machine: Machine, folder: Path) -> str:
    """A difference counts as ours only where plain python makes none. What it can't be asked is not known."""
    for _ in range(jobs.AGAIN):
        again = plain(name, machine, folder)
        if again.ended.code is None:
            return "it differs from plain python; whether plain python differs from itself, there was no time to see"
        unequal = [what for what, holds in again.differences(alone).items() if not holds]
        if unequal:
            return f"plain python itself does not do the same twice: {unequal[0]}"
    return ""
