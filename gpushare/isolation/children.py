"""Child processes per job: environment, output, and what is left of them when the job ends.

A new program inherits descriptors 1 and 2, which are the host's. Where the script gives it nothing else, it
gets the job's instead, so its output is the job's. The working directory is the thread's own (`unshare`).
"""

from __future__ import annotations

import multiprocessing.process
import multiprocessing.util
import os
import subprocess
import traceback
from collections.abc import Iterator, MutableSet
from functools import partial
from itertools import count
from typing import Any

from gpushare.isolation import child_waits, context, environment, fork, multiprocess
from gpushare.isolation.perjob import PerJob

_util: Any = multiprocessing.util
# Positions in the arguments of fork_exec (_posixsubprocess.c).
_ENV, _IN, _OUT, _ERR, _PREEXEC = 5, 6, 9, 11, 21
_SERVICE = b"multiprocessing.resource_tracker"  # one for all jobs, and it outlives them
_numbers: PerJob[Iterator[int]] = PerJob(count(1), lambda: count(1))


class _Children(MutableSet[Any]):
    """Stands for the set of processes that multiprocessing has started."""

    def __init__(self, host: set[Any]) -> None:
        self.sets: PerJob[set[Any]] = PerJob(host, set)

    def __contains__(self, process: object) -> bool:
        return process in self.sets.get()

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self.sets.get()))

    def __len__(self) -> int:
        return len(self.sets.get())

    def add(self, process: Any) -> None:
        self.sets.get().add(process)

    def discard(self, process: Any) -> None:
        self.sets.get().discard(process)


class _Numbers:
    """Stands for the counter that names processes."""

    def __next__(self) -> int:
        return next(_numbers.get())


def _fork_exec(*args: Any) -> int:
    job = context.job_in_host()
    if job and any(_SERVICE in os.fsencode(word) for word in args[0]):
        job = None
    if job:
        given = list(args)
        given[_ENV] = environment.of_child(given[_ENV])
        for position, stream, number in ((_OUT, job.stdout, 1), (_ERR, job.stderr, 2)):
            if given[position] == -1:
                if not stream.closed:
                    stream.flush()
                given[position] = number
        for position in (_IN, _OUT, _ERR):  # by its number: the host's is not meant
            if given[position] in (0, 1, 2):
                given[position] = job.descriptors[given[position]]
        args = tuple(given)
    run = _original_fork_exec
    if args[_PREEXEC] is not None:  # runs in the child, so this is a fork like any other
        run = fork.guarded(run, int)
    pid: int = child_waits.noted(job, partial(run, *args), int)
    return pid


def _system(command: Any) -> int:
    job = context.current()
    if job is None or not context.in_host():
        return int(_original_system(command))
    code = subprocess.call(command, shell=True)
    return code << 8 if code >= 0 else -code


def _after_fork_in_child() -> None:
    # C code in the child writes to the descriptors.
    if job := context.current():
        for descriptor in (1, 2):
            os.dup2(job.descriptors[descriptor], descriptor)


def _wrap_finalize() -> None:
    kind = _util.Finalize
    original = kind.__init__

    def start(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        self._gpushare_job = None if context.importing_shared() else context.current()

    kind.__init__ = start


def _finalizers_of(job: context.JobContext) -> list[Any]:
    finalizers = list(_util._finalizer_registry.items())
    return [key for key, finalizer in finalizers if getattr(finalizer, "_gpushare_job", None) is job]


def _run_finalizers(job: context.JobContext, least: int | None) -> None:
    registry: dict[Any, Any] = _util._finalizer_registry
    mine = _finalizers_of(job)
    chosen = [k for k in mine if least is None or (k[0] is not None and k[0] >= least)]
    for key in sorted((k for k in chosen if k[0] is not None), reverse=True):
        if finalizer := registry.get(key):
            try:
                finalizer()
            except Exception:  # told, as multiprocessing does, and the next one's turn
                traceback.print_exc()


def finish_multiprocessing(job: context.JobContext) -> None:
    """What multiprocessing does when the interpreter ends (`util._exit_function`), for one job."""
    _run_finalizers(job, 0)
    for process in _children.sets.of(job).copy():
        if process.daemon:
            process._popen.terminate()
    for process in _children.sets.of(job).copy():
        process.join()
    multiprocess.stop_sharer(job)
    _run_finalizers(job, None)


_children: _Children


def install() -> None:
    """Replace what starts programs, and the tables of multiprocessing."""
    global _children, _original_fork_exec, _original_system
    import _posixsubprocess

    module: Any = subprocess
    _original_fork_exec, _original_system = _posixsubprocess.fork_exec, os.system
    _posixsubprocess.fork_exec = module._fork_exec = _fork_exec
    module._USE_POSIX_SPAWN = False
    os.system = _system
    process: Any = multiprocessing.process
    _children = process._children = _Children(process._children)
    process._process_counter = _Numbers()
    _wrap_finalize()
    os.register_at_fork(after_in_child=_after_fork_in_child)


def enter(job: context.JobContext) -> None:
    """Child processes are seen to after all other handlers, as in a program that imports torch first."""
    job.at_exit.insert(0, lambda: finish_multiprocessing(job))


def leave(job: context.JobContext) -> None:
    """`enter` has seen to it; after `os._exit` finalizers are left, which never run."""
    for key in _finalizers_of(job):
        _util._finalizer_registry.pop(key, None)


_original_fork_exec: Any = None
_original_system: Any = os.system
