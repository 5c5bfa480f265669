"""`fcntl.lockf` between jobs: the kernel's record locks are of the process, so jobs would not keep each other out.

In a job they are of the open file (`F_OFD_SETLK`, Linux 3.15), which other jobs have another one of. Of two open files
of one job the second gets what the first has, as within a process.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import time
from typing import Any

from gpushare.isolation import context

_LOOKS_S = 0.01
_FLOCK = struct.Struct("hhqqi0q")  # type, whence, start, length, process (0): `struct flock` of 64 bits
_KINDS = {fcntl.LOCK_SH: fcntl.F_RDLCK, fcntl.LOCK_EX: fcntl.F_WRLCK, fcntl.LOCK_UN: fcntl.F_UNLCK}
_lockf = fcntl.lockf
_File = tuple[int, int]
# Who asked last for a lock of this file, by the open file's number; that may be another one's by now.
_asked: dict[_File, dict[int, context.JobContext]] = {}


def lockf(fd: Any, cmd: int, len: int = 0, start: int = 0, whence: int = 0, /) -> None:
    """As `fcntl.lockf`, for the calling job. It waits as a sleep does, so that the job's memory is not in the way."""
    kind = _KINDS.get(cmd & ~fcntl.LOCK_NB)
    job = context.current() if context.in_host() else None
    if job is None or kind is None:
        _lockf(fd, cmd, len, start, whence)
        return
    number = fd if isinstance(fd, int) else fd.fileno()
    wanted = _FLOCK.pack(kind, whence, start, len, 0)
    file = _file_of(number)
    _asked.setdefault(file, {})[number] = job  # before it has one, which nobody is to take for another job's
    if kind == fcntl.F_UNLCK:
        for each in (number, *_others(job, number, file)):
            fcntl.fcntl(each, fcntl.F_OFD_SETLK, wanted)
        return
    while not (_takes(number, wanted) or _has_one(_others(job, number, file), wanted)):
        if cmd & fcntl.LOCK_NB:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        time.sleep(_LOOKS_S)


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


def _has_one(others: list[int], wanted: bytes) -> bool:
    """Whether the lock that is in the way is one of these open files': then nothing is in the way of that one."""
    return any(
        _FLOCK.unpack(fcntl.fcntl(number, fcntl.F_OFD_GETLK, wanted))[0] == fcntl.F_UNLCK for number in others
    )


def install() -> None:
    """Replace the function."""
    module: Any = fcntl
    module.lockf = lockf


def enter(job: context.JobContext) -> None:
    """Nothing to set up."""


def leave(job: context.JobContext) -> None:
    """Its locks go with its open files."""
    for asked in list(_asked.values()):
        for number, who in list(asked.items()):
            if who is job:
                asked.pop(number, None)
