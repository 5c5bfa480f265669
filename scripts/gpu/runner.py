"""Runs checks one after the other, each in a process of its own with its own time limit."""

import dataclasses
import io
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quick_starts import COMPILED

from . import stacks
from .checks import Check
from .libraries import Builds

AHEAD = 2 if (os.cpu_count() or 1) >= 8 else 1  # workers that get ready beside the current one
SAID_BYTES = 1 << 14
START_LIMIT_S = 120  # for the imports: the first torch import of a machine reads gigabytes


@dataclass
class Row:
    """The result of a check. `verdict` is 'true', 'false' or 'not checked'; `why` tells of the last.

    `log`, of one that is not true, is what its processes have said, for a file of its own.
    """

    name: str
    statement: str
    verdict: str = "not checked"
    why: str = ""
    claims: dict[str, bool] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    log: str = ""

    def take(self, message: dict[str, Any]) -> bool:
        """Take in what a worker says; false after the last word."""
        if "claim" in message:
            self.claims[message["claim"]] = message["holds"]
        elif "figure" in message:
            self.figures[message["figure"]] = message["value"]
        elif "cannot" in message:
            self.why = message["cannot"]
        elif not self.claims:
            self.why = "the check claimed nothing"
        else:
            self.verdict = "true" if all(self.claims.values()) else "false"
        return "claim" in message or "figure" in message


class Silent(Exception):
    """Nothing was said within the limit."""


class Worker:
    """The process of a check, from its start."""

    def __init__(self, check: Check) -> None:
        self.check = check
        self._log = io.FileIO(os.memfd_create("log"), "r+")
        self._rest = b""
        here = str(Path(__file__).parent.parent)
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([here, *(p for p in sys.path if p)])}
        env["PYTHONPYCACHEPREFIX"] = str(COMPILED)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "gpu.worker", json.dumps(dataclasses.asdict(check))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=env,
            start_new_session=True,
        )

    def wait_ready(self, deadline: float) -> None:
        """Until it has imported what it needs, or has ended."""
        assert self._process.stdout
        if not self._rest:
            select.select([self._process.stdout], [], [], max(0.0, deadline - time.monotonic()))

    def run(self, deadline: float) -> Row:
        """Let the check begin, and wait for its end, until `deadline` (time.monotonic) at most."""
        row = Row(self.check.name, self.check.statement)
        begin = time.monotonic()
        try:
            first = self._message(min(begin + START_LIMIT_S, deadline))
            if "ready" not in first:
                row.take(first)
                return row
            begin = time.monotonic()
            self._begin()
            limit = min(begin + self.check.limit_s, deadline)
            while row.take(self._message(limit)):
                pass
        except Silent:
            silent_s = time.monotonic() - begin
            stacks.ask(self._process.pid)
            row.why = f"no end within {silent_s:.0f} s{self._last_words()}"
        finally:
            row.log = self._said()
            row.seconds = round(time.monotonic() - begin, 2)
            self.end()
        return row

    def end(self) -> None:
        """Kill the process with all that it started."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):  # it may be stuck in the driver
            self._process.wait(10)
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if stream:
                    stream.close()
        self._log.close()

    def _begin(self) -> None:
        assert self._process.stdin
        with suppress(BrokenPipeError):
            self._process.stdin.write(b"go\n")
            self._process.stdin.flush()

    def _message(self, deadline: float) -> dict[str, Any]:
        line = self._line(deadline)
        if line is None:
            return {"cannot": f"the process {self._how_it_ended()}{self._last_words()}"}
        message: dict[str, Any] = json.loads(line)
        return message

    def _line(self, deadline: float) -> bytes | None:
        """The next line of the worker, None when it has ended."""
        assert self._process.stdout
        out = self._process.stdout.fileno()
        while b"\n" not in self._rest:
            if not select.select([out], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise Silent
            more = os.read(out, 1 << 16)
            if not more:
                return None
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def _how_it_ended(self) -> str:
        try:
            code = self._process.wait(10)
        except subprocess.TimeoutExpired:
            return "closed its output and does not end"
        return f"died of {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"

    def _said(self) -> str:
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - SAID_BYTES))
        return self._log.read().decode(errors="replace")

    def _last_words(self) -> str:
        words = " | ".join(line.strip() for line in self._said().split("\n") if line.strip())
        return f"; its last words: {words[-300:]}" if words else ""


def run(checks: list[Check], builds: Builds, deadline: float) -> Iterator[Row]:
    """A row per check, in order. What has no time left until `deadline` (time.monotonic) is told as not checked.

    The next workers import what they need while the current check runs, or before it if it is a quiet one.
    """
    limit_s = deadline - time.monotonic()
    waiting, ahead = deque(checks), deque[Worker]()
    try:
        while (waiting or ahead) and time.monotonic() < deadline:
            if not ahead:
                builds.wait(waiting[0].libraries)
                ahead.append(Worker(waiting.popleft()))
            worker = ahead.popleft()
            while waiting and len(ahead) < AHEAD and builds.ready(waiting[0].libraries):
                ahead.append(Worker(waiting.popleft()))
            if worker.check.quiet:
                quiet_from = min(deadline, time.monotonic() + START_LIMIT_S)
                builds.wait_all(max(0.0, quiet_from - time.monotonic()))
                for other in ahead:
                    other.wait_ready(quiet_from)
            yield worker.run(deadline)
        for late in [*(worker.check for worker in ahead), *waiting]:
            yield Row(late.name, late.statement, why=f"the limit of {limit_s:.3g} s was reached before it")
    finally:
        for worker in ahead:
            worker.end()
