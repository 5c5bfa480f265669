"""The working directory: each job's own where the system lets a thread have one, else one for all.

`unshare(CLONE_FS)` needs no privilege, but the filter that Docker puts over system calls allows it only with
CAP_SYS_ADMIN.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Sequence
from typing import Any

from gpushare.isolation import context
from gpushare.isolation.switch import Switch
from gpushare.native import process

_shared: Switch | None = None  # where no thread can have its own


class NoDirectories(Exception):
    """The jobs need directories of their own, and the system refuses them."""


def prepare(wanted: Sequence[str], note: Callable[[str], None]) -> None:
    """Once per host, before any job begins. `wanted` are the directories in which the jobs are to begin.

    :raises NoDirectories: they differ, and the system gives a thread none of its own.
    """
    global _shared
    if (refusal := _try()) is None:
        return
    if len(set(map(os.path.realpath, wanted))) > 1:
        raise NoDirectories(
            f"the system gives threads no working directory of their own (unshare: {refusal.strerror}), and the jobs "
            "have different ones: run them from one directory, or allow unshare (in Docker: --cap-add SYS_ADMIN, or "
            "--security-opt seccomp=unconfined)"
        )
    note(
        f"the system gives threads no working directory of their own (unshare: {refusal.strerror}), so the jobs share "
        "one: do not let a job change it beside another"
    )
    os.chdir(wanted[0])
    _shared = Switch("the working directory", os.chdir, _here)
    _watch(_shared)


def _try() -> OSError | None:
    refusals: list[OSError] = []

    def unshare() -> None:
        try:
            process.unshare_fs()
        except OSError as error:
            refusals.append(error)

    thread = threading.Thread(target=unshare)
    thread.start()
    thread.join()
    return refusals[0] if refusals else None


def _here() -> str:
    return os.readlink("/proc/self/cwd")  # it may have been removed


def _watch(switch: Switch) -> None:
    module: Any = os
    module.chdir = switch.function()
    module.fchdir = lambda fd: switch.set(fd)


def begin(folder: str) -> None:
    """The calling thread is a job's, whose directory is `folder` from now on."""
    if _shared is None:
        process.unshare_fs()
        os.chdir(folder)


def follow(job: context.JobContext) -> None:
    """The calling thread was started by the host, and works for the job: where the job is now."""
    if _shared is None:
        with contextlib.suppress(OSError):  # the directory, or the job's thread, is gone
            process.unshare_fs()
            os.chdir(f"/proc/self/task/{job.thread.native_id}/cwd")


def install() -> None:
    """Nothing: `prepare` has seen to it, since it can refuse."""


def enter(job: context.JobContext) -> None:
    """Nothing: `begin` comes before all else."""


def leave(job: context.JobContext) -> None:
    """Where there is one for all, it goes back when the last job that has changed it ends."""
    if _shared:
        _shared.leave(job)
