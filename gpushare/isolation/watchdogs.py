"""`faulthandler.dump_traceback_later` per job: the process has one such timer, and what it ends is the process.

In a job it rings in a thread of Python, so not while compiled code keeps the interpreter's lock, and ends the job at
its next bytecode.
"""

from __future__ import annotations

import faulthandler
import os
import sys
from datetime import timedelta
from typing import Any

from gpushare.isolation import context, exits
from gpushare.isolation.alarms import Alarm
from gpushare.isolation.perjob import PerJob

_later, _cancel, _dump, _write = (
    faulthandler.dump_traceback_later,
    faulthandler.cancel_dump_traceback_later,
    faulthandler.dump_traceback,
    os.write,
)
_alarms: PerJob[Alarm] = PerJob(Alarm(), Alarm)


def dump_later(timeout: float, repeat: bool = False, file: Any = None, exit: bool = False) -> None:
    """As `faulthandler.dump_traceback_later`, for the calling job."""
    if (job := context.job_in_host()) is None:
        _later(timeout, repeat, sys.stderr if file is None else file, exit)
        return
    if timeout <= 0:
        raise ValueError("timeout must be greater than 0")
    kept = sys.stderr if file is None else file
    number = kept if isinstance(kept, int) else kept.fileno()
    number = job.descriptors[number] if number in (0, 1, 2) else number
    header = f"Timeout ({timedelta(seconds=timeout)})!\n".encode()

    def ring(kept: Any = kept) -> None:  # a file that nobody else has is open until then
        _write(number, header)
        _dump(number, all_threads=True)
        if exit:
            exits.end_job(job, 1)

    _alarms.get().arm(timeout, timeout if repeat else 0.0, ring)


def cancel() -> None:
    """As `faulthandler.cancel_dump_traceback_later`, for the calling job."""
    if (job := context.job_in_host()) is None:
        _cancel()
    else:
        _disarm(job)


def _disarm(job: context.JobContext) -> None:
    _alarms.of(job).arm(0, 0, lambda: None)


def install() -> None:
    """Replace the functions."""
    module: Any = faulthandler
    module.dump_traceback_later, module.cancel_dump_traceback_later = dump_later, cancel


def enter(job: context.JobContext) -> None:
    """Nothing to set up."""


def leave(job: context.JobContext) -> None:
    """Nobody is watched any more."""
    _disarm(job)
