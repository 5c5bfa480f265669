"""Why the host died, and which job is to blame, as far as it can be known."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass

from gpushare.launcher.results import JobResult
from gpushare.telemetry.reader import Telemetry

EXIT_OF_C = 256  # in the place of a signal; and the exit status (`shim/src/crash.cpp`)


@dataclass(frozen=True)
class Death:
    """`culprit` is a job's place in the run, None if it can't be known; `text` says all of it."""

    text: str
    culprit: int | None


def explain(status: int, results: Sequence[JobResult], telemetry: Telemetry) -> Death:
    """Of a host with this exit status (negative for a signal). Jobs that had not ended are running or waiting.

    The thread that a fatal signal hit, or that has called exit() in C, is told by the shim (`shim/src/crash.cpp`).
    Nobody tells of SIGKILL, as the kernel sends it when memory is short, nor of a thread whose stack is full.
    """
    running = [r for r in results if r.status == "running"]  # one that waits has run no line yet
    names = ", ".join(r.name for r in running) or "nothing"
    how = f"signal {-status}" if status < 0 else f"exit status {status}"
    text = f"the host process died ({how}) while it ran: {names}"
    pool = telemetry.pool()
    for index, result in enumerate(results):
        if result in running and pool.crash_signal and result.account == pool.crash_account:
            return Death(f"{text}; {crashed(result.name, pool.crash_signal)}", index)
    if len(running) == 1 and len(results) > 1 and any(r.status == "waiting" for r in results):
        return Death(f"{text}, which alone had begun", results.index(running[0]))
    return Death(f"{text}; which job is to blame can't be known" if len(running) > 1 else text, None)


def crashed(name: str, number: int) -> str:
    """Whose thread a fatal signal hit, or called the C library's exit()."""
    if number >= EXIT_OF_C:
        return f"{name} called exit({number - EXIT_OF_C}) of the C library, which ends all jobs' process"
    try:
        word = signal.Signals(number).name
    except ValueError:
        word = f"signal {number}"
    return f"a thread of {name} crashed ({word})"
