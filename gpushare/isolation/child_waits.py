"""Waits for any child, per job: the kernel knows the process's children only, and would give a job those of another.

A job's are those that it has started by Python's functions (`fork`, `children`). A wait for one that is named is the
kernel's own. And psutil lists a job's only.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import threading
import time
import types
from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from gpushare.isolation import context, imports

# For children that another thread of the job starts meanwhile, and for those that are only stopped.
_LOOKS_MS = 100
_LOOKS_S, _LONGEST_FORK_S = 0.001, 0.5

# By the child's number, which is another one's once it has been waited for.
_owners: dict[int, context.JobContext] = {}
_forking: dict[
    tuple[context.JobContext, int], float
] = {}  # since when which thread is about to have one more
_waitpid, _wait4, _waitid, _spawn, _spawn_by_path = (
    os.waitpid,
    os.wait4,
    os.waitid,
    os.posix_spawn,
    os.posix_spawnp,
)
_close = os.close


def noted(job: context.JobContext | None, start: Callable[..., Any], pid_of: Callable[[Any], int]) -> Any:
    """What `start` returns, whose child is the job's from the first moment, or nobody's. It may fork."""
    if job is None:
        result = start()
        _owners.pop(pid_of(result), None)
        return result
    me = job, threading.get_ident()
    _forking[me] = time.monotonic()
    try:
        result = start()
        if pid := pid_of(result):
            _owners[pid] = job
    finally:
        _forking.pop(me, None)
    return result


def _may_have_more(job: context.JobContext) -> bool:
    """Whether a thread of the job is in a fork, whose child may have ended before anybody knows of it."""
    now, me = time.monotonic(), threading.get_ident()
    return any(
        who is job and thread != me and now - since < _LONGEST_FORK_S
        for (who, thread), since in list(_forking.items())
    )


def _children(job: context.JobContext, group: int | None) -> list[int]:
    """Of a group of processes, if not of any."""
    mine = [pid for pid, owner in list(_owners.items()) if owner is job]
    return mine if group is None else [pid for pid in mine if _group_of(pid) == group]


def _group_of(pid: int) -> int | None:
    with contextlib.suppress(ProcessLookupError):
        return os.getpgid(pid)
    return None


def _first(
    job: context.JobContext,
    group: int | None,
    options: int,
    look: Callable[[int, int], Any],
    none: Any,
) -> Any:
    """What `look(pid, options)` says of the first child of which it does not say `none`, but that it has not ended.

    :raises ChildProcessError: there is none to wait for.
    """
    while True:
        running = []
        for pid in _children(job, group):
            try:
                found = look(pid, options | os.WNOHANG)
            except ChildProcessError:
                if _has_been_waited_for(pid):
                    _forget(job, pid)
                continue
            if found is not None and (none is None or found[0]):
                return found
            running.append(pid)
        if _may_have_more(job):
            time.sleep(_LOOKS_S)
        elif not running:
            raise ChildProcessError(errno.ECHILD, os.strerror(errno.ECHILD))
        elif options & os.WNOHANG:
            return none
        else:
            _until_one_ends(running)


def _has_been_waited_for(pid: int) -> bool:
    """Or else it is not what was asked for: it has ended, say, and not stopped."""
    try:
        _waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True
    return False


def _forget(job: context.JobContext, pid: int) -> None:
    if _owners.get(pid) is job:
        _owners.pop(pid, None)


def _until_one_ends(children: list[int]) -> None:
    """For a moment at most."""
    ends, files = select.poll(), []
    try:
        for pid in children:
            with contextlib.suppress(OSError):  # an old kernel, or no more files: then by the moment
                files.append(os.pidfd_open(pid))
                ends.register(files[-1], select.POLLIN)
        ends.poll(_LOOKS_MS)
    finally:
        for file in files:
            _close(file)


def _group(pid: int) -> int | None:
    """That `waitpid` is asked for by this; None: any."""
    return None if pid == -1 else os.getpgrp() if pid == 0 else -pid


def _seen(job: context.JobContext, pid: int, status: int) -> None:
    """By a wait for it by its number: what has ended is no child any more."""
    if pid and (os.WIFEXITED(status) or os.WIFSIGNALED(status)):
        _forget(job, pid)


def _wait_for(pid: int, options: int) -> tuple[int, int]:
    job = context.job_in_host()
    if job is None:
        return _waitpid(pid, options)
    if pid > 0:
        named = _waitpid(pid, options)
        _seen(job, *named)
        return named
    found: tuple[int, int] = _first(job, _group(pid), options, _waitpid, (0, 0))
    return found


def _wait_for_usage(pid: int, options: int) -> tuple[int, int, Any]:
    job = context.job_in_host()
    if job is None:
        return _wait4(pid, options)
    if pid > 0:
        named = _wait4(pid, options)
        _seen(job, *named[:2])
        return named
    found: tuple[int, int, Any] = _first(job, _group(pid), options, _wait4, (0, 0, None))
    return found if found[2] else _none_ended()


def _none_ended() -> tuple[int, int, Any]:
    """As the kernel says it, with a usage of nothing."""
    import resource

    return 0, 0, resource.struct_rusage([0] * resource.struct_rusage.n_sequence_fields)


def _wait_for_any() -> tuple[int, int]:
    return _wait_for(-1, 0)


def _wait_for_any_usage(options: int) -> tuple[int, int, Any]:
    return _wait_for_usage(-1, options)


def _wait_by_id(kind: int, number: int, options: int, /) -> Any:
    job = context.job_in_host()
    if job is None or kind not in (os.P_ALL, os.P_PGID):
        return _waitid(kind, number, options)
    group = None if kind == os.P_ALL else number or os.getpgrp()
    return _first(job, group, options, lambda pid, with_: _waitid(os.P_PID, pid, with_), None)


def _filter_psutil(module: types.ModuleType) -> None:
    """`psutil.Process().children()`, by which programs end what they have started: not what other jobs have."""
    kind: Any = module.Process
    original = kind.children

    @wraps(original)
    def children(self: Any, recursive: bool = False) -> list[Any]:
        found: list[Any] = original(self, recursive)
        job = context.job_in_host()
        if job is None or self.pid != os.getpid():
            return found
        mine = set(_children(job, None))
        parents: dict[int, int] = {}
        for child in found if recursive else ():
            with contextlib.suppress(module.NoSuchProcess):  # it has just ended
                parents[child.pid] = child.ppid()
        return [child for child in found if _comes_from(mine, child.pid, parents)]

    kind.children = children


def _comes_from(mine: set[int], pid: int, parents: dict[int, int]) -> bool:
    while pid not in mine:
        if pid not in parents:
            return False
        pid = parents[pid]
    return True


def _spawns(spawn: Callable[..., int]) -> Callable[..., int]:
    def spawn_noted(*args: Any, **kwargs: Any) -> int:
        job = context.job_in_host()
        return int(noted(job, partial(spawn, *args, **kwargs), int)) if job else spawn(*args, **kwargs)

    return spawn_noted


def install() -> None:
    """Replace the functions that wait."""
    module: Any = os
    module.wait, module.waitpid, module.waitid = _wait_for_any, _wait_for, _wait_by_id
    module.wait3, module.wait4 = _wait_for_any_usage, _wait_for_usage
    module.posix_spawn, module.posix_spawnp = _spawns(_spawn), _spawns(_spawn_by_path)
    imports.when_imported("psutil", _filter_psutil)


def enter(job: context.JobContext) -> None:
    """Nothing to set up."""


def leave(job: context.JobContext) -> None:
    """Who still runs is nobody's."""
    for pid in _children(job, None):
        _forget(job, pid)
