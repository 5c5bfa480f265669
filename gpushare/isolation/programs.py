"""`os.exec*` in a job: another program takes the place of the job, not of the host with all its jobs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from typing import Any, NoReturn

from gpushare.isolation import context, exits

_execv, _execve = os.execv, os.execve


def _run_instead(job: context.JobContext, path: Any, arguments: Any, environment: Any) -> NoReturn:
    """Run the program as a child with the job's streams and working directory, and end the job as it ends.

    :raises OSError: it can't be run; the job goes on.
    """
    program = os.fspath(path)
    folder = os.path.dirname(program)
    words = [os.fspath(word) for word in arguments]
    try:
        # Without a folder it is not looked for in PATH.
        executable = program if folder else os.path.join(os.fsencode("."), os.fsencode(program))
        process = subprocess.Popen(words, executable=executable, env=environment)
    except OSError as error:
        raise OSError(error.errno, error.strerror) from None
    job.note(
        f"{job.name} hands over to {os.fsdecode(program)}, which runs beside gpushare: its memory is not counted"
    )
    try:
        code = process.wait()
    except BaseException:  # Ctrl-C, or the job is ended: the program ends with it
        process.kill()
        raise
    exits.end_job(job, code if code >= 0 else 128 - code)
    raise SystemExit  # of another thread of the job


def execv(path: Any, arguments: Any, /) -> NoReturn:
    """As `os.execv`, for the calling job."""
    job = context.current()
    if job is None or not context.in_host():
        _execv(path, arguments)
    _run_instead(job, path, arguments, None)


def execve(path: Any, argv: Any, env: Mapping[Any, Any]) -> NoReturn:
    """As `os.execve`, for the calling job."""
    job = context.current()
    if job is None or not context.in_host():
        _execve(path, argv, env)
    _run_instead(job, path, argv, env)


def install() -> None:
    """Replace the two functions that all others of `os` call."""
    module: Any = os
    module.execv, module.execve = execv, execve


def enter(job: context.JobContext) -> None:
    """Nothing to set up."""


def leave(job: context.JobContext) -> None:
    """Nothing to take down."""
