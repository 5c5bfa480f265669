"""The GPU benchmark as a part of the check: scripts/bench/gpu.py in a process of its own, its rows as they come."""

import contextlib
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from . import jobs, processes, programs
from .runner import Row

SCRIPT = Path(__file__).parent.parent / "bench" / "gpu.py"
LISTED_S, GRACE_S, LOOKS_S = 60.0, 10.0, 0.5
NOT_YET, UNDER_WAY = "not reached yet", "it was cut off in the middle"


@dataclass
class Benchmark:
    """Its own results are `out`/gpu.json and `out`/gpu.md, with the command lines. `options` are of gpu.py.

    `until` (time.monotonic) it must have named its rows.
    """

    out: Path
    options: list[str] = field(default_factory=list)
    device: str = "cuda"
    until: float = math.inf
    _wrong: str = ""

    @cached_property
    def names(self) -> list[str]:
        """Of the rows that it will have; one, if it can't even say that."""
        limit_s = max(0.0, min(LISTED_S, self.until - time.monotonic()))
        try:
            listed = subprocess.run(
                self._command("--list"), env=_environment(), capture_output=True, text=True, timeout=limit_s
            )
        except subprocess.TimeoutExpired:
            self._wrong = f"it did not name its rows within {limit_s:.0f} s"
        else:
            if listed.returncode == 0:
                return listed.stdout.splitlines()
            self._wrong = f"it could not name its rows: {listed.stderr.strip()[-300:]}"
        return ["benchmark"]

    def run(self, deadline: float, why: str = "") -> Iterator[Row]:
        """Its rows; all are not checked if there is a `why`, or if a package is missing."""
        yield from self.rows(deadline, why or jobs.missing())

    def rows(self, deadline: float, why: str = "") -> Iterator[Row]:
        """The same, whatever packages there are."""
        names, told = self.names, 0
        why = why or self._wrong
        if not why:
            for row in self._started(deadline):
                told += 1
                yield row
        for name in names[told:]:
            yield Row(name, "", why=why or self._wrong or "the benchmark ended before it")

    def _started(self, deadline: float) -> Iterator[Row]:
        """Rows of a process that is killed, with what it started, if it does not end by itself."""
        self.out.mkdir(parents=True, exist_ok=True)
        results = self.out / "gpu.json"
        results.unlink(missing_ok=True)  # of an earlier run
        limit_s = max(1.0, deadline - GRACE_S - time.monotonic())
        command = [
            *self._command("--limit", f"{limit_s:.0f}"),
            "--name",
            str(results.with_suffix("").resolve()),
        ]
        with tempfile.TemporaryFile("w+") as said:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env=_environment(),
                start_new_session=True,
            )
            told = 0
            try:
                running = True
                while running:
                    running = process.poll() is None and time.monotonic() < deadline
                    new = _told(results, NOT_YET, *([UNDER_WAY] if running else []))[told:]
                    told += len(new)
                    yield from new
                    time.sleep(LOOKS_S if running else 0)
            finally:
                processes.kill(process)
            said.seek(0)
            self._wrong = f"the benchmark ended before it: {said.read().strip()[-300:]}"

    def _command(self, *options: str) -> list[str]:
        return [sys.executable, str(SCRIPT), "--device", self.device, *self.options, *options]


def _environment() -> dict[str, str]:
    """The package is the tree's, beside what is in PYTHONPATH already."""
    return {**os.environ, "PYTHONPATH": programs.python_path()}


def _told(results: Path, *but: str) -> list[Row]:
    """The rows in order, without those that say one of these."""
    found: list[dict[str, Any]] = []
    with contextlib.suppress(OSError, ValueError):
        found = json.loads(results.read_text())["figures"]
    return [_row(one) for one in found if one["why"] not in but]


def _row(found: dict[str, Any]) -> Row:
    figures = {**found["figures"], **{key: found[key] for key in ("notes", "commands") if found[key]}}
    row = Row(
        f"{found['kind']}: {found['name']}",
        found["what"],
        "not checked",
        found["why"],
        found["claims"],
        figures,
    )
    row.seconds = found["seconds"]
    if not row.why:
        row.verdict = "true" if all(row.claims.values()) else "false"
    return row
