"""Descriptors 0, 1 and 2 by their numbers, and by names as `/dev/stdout`: for Python code of a job they are its own
streams.

`os.write(1, ...)`, and `os.dup2(file, 1)` with what is printed afterwards; what a file object writes there, as that of
`open(1, "w")` does, the shim passes on. The host's own descriptors are not a job's
to close, and those of all jobs are in one process, so nobody closes a range of them.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

from gpushare.isolation import context
from gpushare.native import interpreter

_OF_ONE = ("fstat", "fsync", "isatty", "lseek", "pwrite", "read", "readv", "ttyname", "write", "writev")
_close, _dup, _dup2, _close_range = os.close, os.dup, os.dup2, os.closerange
_terminal_size = os.get_terminal_size
_fstat = os.fstat
_of_host: dict[int, tuple[int, int]] = {}  # and of which file each was
_from_the_start: set[int] = set()  # of these, whatever jobs come and go


def _own(job: context.JobContext, descriptor: Any) -> Any:
    """The descriptor that the job has there."""
    return job.descriptors[descriptor] if descriptor in (0, 1, 2) else descriptor


def _writable(job: context.JobContext, descriptor: Any) -> tuple[int, bool]:
    """The same, to be changed, and whether it is one of the job's streams.

    :raises OSError: it is the host's.
    """
    own: int = _own(job, descriptor)
    is_stream = own in job.descriptors
    if not is_stream and own in _of_host and _file_of(own) == _of_host[own]:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    return own, is_stream


def _file_of(descriptor: int) -> tuple[int, int] | None:
    try:
        status = _fstat(descriptor)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _of_one(call: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(call)
    def mapped(descriptor: Any, *args: Any) -> Any:
        job = context.job_in_host()
        return call(descriptor if job is None else _own(job, descriptor), *args)

    return mapped


@wraps(_close)
def _close_own(fd: int) -> None:
    if (job := context.job_in_host()) is None:
        _close(fd)
        return
    own, is_stream = _writable(job, fd)
    if not is_stream:
        _close(fd)
    elif fd not in (0, 1, 2):  # somebody goes through all numbers
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    else:
        nowhere = os.open(os.devnull, os.O_RDONLY)  # what is written there fails as it does to what is closed
        _dup2(nowhere, own)
        _close(nowhere)


@wraps(_dup)
def _dup_own(fd: int, /) -> int:
    job = context.job_in_host()
    return _dup(fd if job is None else _own(job, fd))


@wraps(_dup2)
def _dup2_own(fd: int, fd2: int, inheritable: bool = True) -> int:
    if (job := context.job_in_host()) is None:
        return _dup2(fd, fd2, inheritable)
    own, is_stream = _writable(job, fd2)
    _dup2(_own(job, fd), own, inheritable and not is_stream)
    return fd2


@wraps(_close_range)
def _close_range_own(fd_low: int, fd_high: int, /) -> None:
    if (job := context.job_in_host()) is None:
        _close_range(fd_low, fd_high)
    else:
        job.note(
            f"{job.name} called os.closerange({fd_low}, {fd_high}): nothing is closed, other jobs have files too"
        )


@wraps(_terminal_size)
def _terminal_size_own(fd: int = 1, /) -> os.terminal_size:
    job = context.job_in_host()
    return _terminal_size(fd if job is None else _own(job, fd))


def install() -> None:
    """Replace the functions. What is open by now is the host's."""
    _note(map(int, os.listdir("/proc/self/fd")))
    _from_the_start.update(_of_host)
    names: Any = os
    for name in _OF_ONE:
        setattr(names, name, _of_one(getattr(names, name)))
    names.close, names.closerange, names.dup, names.dup2 = _close_own, _close_range_own, _dup_own, _dup2_own
    names.get_terminal_size = _terminal_size_own


def _note(numbers: Iterable[int]) -> None:
    found = {number: _file_of(number) for number in numbers}
    _of_host.update({number: file for number, file in found.items() if file})


def enter(job: context.JobContext) -> None:
    """Nobody else closes its streams."""
    _note(job.descriptors)
    interpreter.streams_of(job.account, job.descriptors)


def leave(job: context.JobContext) -> None:
    """They are closed when its last words are out, its input too where it was nothing: what another job opens next may
    get their numbers, and be of the same file."""
    interpreter.streams_of(job.account, None)
    for number in set(job.descriptors) - _from_the_start:
        _of_host.pop(number, None)
