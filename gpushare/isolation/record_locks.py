"""`fcntl.lockf` between jobs: the kernel's record locks are of the process, so jobs would not keep each other out.

In a job they are of the open file (`F_OFD_SETLK`, Linux 3.15), which other jobs have another one of. Where another open
file of the same job is in the way that one takes the lock, as within a process the second one would have it too.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import struct
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from gpushare.isolation import context

_LOOKS_S = 0.01
_FLOCK = struct.Struct("hhqqi0q")  # type, whence, start, length, process (0): `struct flock` of 64 bits
_KINDS = {fcntl.LOCK_SH: fcntl.F_RDLCK, fcntl.LOCK_EX: fcntl.F_WRLCK, fcntl.LOCK_UN: fcntl.F_UNLCK}
_OF_OS = {os.F_LOCK: fcntl.LOCK_EX, os.F_TLOCK: fcntl.LOCK_EX | fcntl.LOCK_NB, os.F_ULOCK: fcntl.LOCK_UN}
_ALL = _FLOCK.pack(fcntl.F_UNLCK, os.SEEK_SET, 0, 0, 0)
_lockf, _os_lockf = fcntl.lockf, os.lockf
_File = tuple[int, int]
# Who asked last for a lock of this file, by the open file's number; that may be another one's by now.
_asked: dict[_File, dict[int, context.JobContext]] = {}


def lockf(fd: Any, cmd: int, len: int = 0, start: int = 0, whence: int = 0, /) -> None:
    """As `fcntl.lockf`, for the calling job. It waits as a sleep does, so that the job's memory is not in the way."""
    plainly = partial(_lockf, fd, cmd, len, start, whence)
    job = context.job_in_host()
    kind = _KINDS.get(cmd & ~fcntl.LOCK_NB) if isinstance(cmd, int) else None
    if job is None or kind is None:
        plainly()
        return
    try:
        number = fd if isinstance(fd, int) else fd.fileno()
        wanted = _FLOCK.pack(kind, whence, start, len, 0)
    except (AttributeError, TypeError, struct.error):  # of which it has words of its own
        plainly()
        return
    _lock(job, number, kind, wanted, plainly, waits=not cmd & fcntl.LOCK_NB)


def _lock(
    job: context.JobContext,
    number: int,
    kind: int,
    wanted: bytes,
    plainly: Callable[[], None],
    *,
    waits: bool,
) -> None:
    file = _file_of(number)
    _asked.setdefault(file, {})[number] = job  # before it has one, which nobody is to take for another job's
    try:
        if kind == fcntl.F_UNLCK:
            for each in (number, *_others(job, number, file)):
                _takes(each, wanted)
            return
        while not _has(job, number, file, wanted):
            if not waits:
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
            time.sleep(_LOOKS_S)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        plainly()  # the system has no locks of open files


def _has(job: context.JobContext, number: int, file: _File, wanted: bytes) -> bool:
    """Whether the job has the lock now."""
    if _takes(number, wanted):
        return True
    mine = [each for each in _others(job, number, file) if _nobody_else_has_one(each, wanted)]
    # What was in the way may have gone between the two looks: then this one has it, and it goes with it.
    return bool(mine) and (_takes(number, wanted) or any(_takes_if_it_may(each, wanted) for each in mine))


def _others(job: context.JobContext, number: int, file: _File) -> list[int]:
    """More open files of the job that are this file, and may have locks of it."""
    asked = list(_asked.get(file, {}).items())
    return [n for n, who in asked if who is job and n != number and _is(n, file)]


def _file_of(number: int) -> _File:
    about = os.fstat(number)
    return about.st_dev, about.st_ino


def _is(number: int, file: _File) -> bool:
    try:
        return _file_of(number) == file
    except OSError:
        return False


def _takes(number: int, wanted: bytes) -> bool:
    try:
        fcntl.fcntl(number, fcntl.F_OFD_SETLK, wanted)
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            raise
        return False
    return True


def _takes_if_it_may(number: int, wanted: bytes) -> bool:
    """It may be open for reading only, and the lock be for who writes."""
    with contextlib.suppress(OSError):
        return _takes(number, wanted)
    return False


def _nobody_else_has_one(number: int, wanted: bytes) -> bool:
    """Whether no lock but this open file's own is in the way of `wanted`."""
    told = fcntl.fcntl(number, fcntl.F_OFD_GETLK, wanted)
    return bool(_FLOCK.unpack(told)[0] == fcntl.F_UNLCK)


def _lockf_of_os(fd: int, command: int, length: int, /) -> None:
    """As `os.lockf`, whose lock begins where the file is."""
    if command in _OF_OS and context.job_in_host():
        lockf(fd, _OF_OS[command], length, 0, os.SEEK_CUR)
    else:
        _os_lockf(fd, command, length)


def install() -> None:
    """Replace the functions."""
    module: Any = fcntl
    module.lockf = lockf
    module = os
    module.lockf = _lockf_of_os


def enter(job: context.JobContext) -> None:
    """Nothing to set up."""


def leave(job: context.JobContext) -> None:
    """Its locks end, as they would with its process: what it has not closed stays open in the host."""
    for file, asked in list(_asked.items()):
        for number, who in list(asked.items()):
            if who is job:
                asked.pop(number, None)
                if _is(number, file):
                    _takes_if_it_may(number, _ALL)
