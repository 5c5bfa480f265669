"""Processes of the check: each with a time limit, files of its own, and nothing left behind."""

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from quick_starts import COMPILED

from . import stacks

NO_TIME = "no time was left"
LEAST_S = 20.0  # a process that has less is not started
# Of a process that computes for a few seconds. It must be over well before its part is: a hang is told as one, with
# the stacks, only where it was not the end of the part that cut it off.
LIMIT_S = 45.0
ENOUGH_S = 30.0  # with less, that it has not ended says nothing
# Equal results with the smallest workspaces: torch keeps one for each handle and stream, and budgets here are small.
WORKSPACES = ":16:8"
_running: set[subprocess.Popen[bytes]] = set()
PROCESSORS_EACH = 2  # imports and the libraries' start take most of a short process's time
MOST_AT_ONCE = 8  # their memory is the device's as well


def at_once() -> int:
    """How many processes run beside each other, where their times are not what is measured."""
    return max(1, min(MOST_AT_ONCE, (os.cpu_count() or 1) // PROCESSORS_EACH))


@dataclass(frozen=True)
class Ended:
    """`code` is None if it did not end within `limit_s`; `cut`: that was less than it may need. `errors` is stderr."""

    code: int | None
    output: bytes
    errors: str
    limit_s: float
    cut: bool = False

    @property
    def no_time(self) -> str:
        """Why nothing follows from it, or nothing."""
        return f"{NO_TIME}: it was ended after {self.limit_s:.0f} s" if self.cut else ""

    @property
    def in_full(self) -> str:
        """All that it said."""
        return f"--- stdout\n{self.output.decode(errors='replace')}\n--- stderr\n{self.errors}"

    @property
    def last_words(self) -> str:
        return self.errors.strip().replace("\n", " | ")[-500:]


def started(
    command: list[str],
    limit_s: float,
    deadline: float,
    path: str,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    enough_s: float = ENOUGH_S,
) -> Ended:
    """Run it until `deadline` (time.monotonic) at most, with PYTHONPATH `path`, in `folder`.

    If it does not end, those of its processes that can are asked for their threads' stacks before they are killed.
    """
    left = max(0.0, min(limit_s, deadline - stacks.WRITTEN_S - time.monotonic()))
    fixed = {"CUBLAS_WORKSPACE_CONFIG": WORKSPACES, "PYTHONPATH": path}
    fixed |= {"PYTHONPYCACHEPREFIX": str(COMPILED), **(environment or {})}
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as state,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        fixed |= {"XDG_STATE_HOME": state, "XDG_CACHE_HOME": cache(Path(state))}
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env={**os.environ, **fixed},
            cwd=folder,
            start_new_session=True,
        )
        code: int | None = None
        _running.add(process)
        try:
            code = process.wait(max(1.0, left))
        except subprocess.TimeoutExpired:
            stacks.ask(process.pid)
        finally:
            kill(process)
            _running.discard(process)
        out.seek(0)
        err.seek(0)
        cut = code is None and left < min(limit_s, enough_s)
        return Ended(code, out.read(), err.read().decode(errors="replace"), left, cut)


def cache(folder: Path) -> str:
    """One without profiles of earlier runs; the bridge is where it is always kept."""
    kept = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpushare" / "bridge"
    kept.mkdir(parents=True, exist_ok=True)
    made = folder / "cache"
    (made / "gpushare").mkdir(parents=True)
    (made / "gpushare" / "bridge").symlink_to(kept)
    return str(made)


def kill(process: subprocess.Popen[bytes]) -> None:
    """With what it has started in its session; gpushare's host has one of its own, and ends with its parent."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(10)


def kill_all() -> None:
    """What `started` waits for, in any thread."""
    for process in tuple(_running):
        kill(process)
