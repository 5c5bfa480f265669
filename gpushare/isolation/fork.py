"""A fork is a door: a child forked while another job computes can hang on a lock that was held at that
instant (oneDNN's cache, a generator's mutex, a module's import lock), so the other jobs are parked first and
nobody else imports meanwhile.

And a child has all that was open: of the ends of a pipe that another job is about to give to a process of its own, too.
Who waits for that pipe's end would wait for both, so nobody forks while another one starts a process. Who needs both
locks takes that of imports first.
"""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from multiprocessing import popen_fork, process
from typing import Any

from gpushare.isolation import child_waits, context, imports, interrupts
from gpushare.native import shim

_LONGEST_PARK_NS = 5_000_000_000
_LONGEST_START_S = 2.0  # of a process; what starts one may import, and wait for who forks
_starting = threading.RLock()


def _lock_imports(job: context.JobContext) -> Any:
    """As `imports.lock_imports`; whoever has the lock may be about to fork, and wait for this job to be parked."""
    lock = None
    try:
        with interrupts.held_back(), shim.awaiting_fork(job.account):
            lock = imports.lock_imports()
        return lock
    except BaseException:
        if lock:
            lock.release()
        raise


@contextmanager
def _no_process_begins(job: context.JobContext) -> Iterator[None]:
    """In it no other job forks, or starts a process; or but one for very long."""
    taken = False
    try:
        with interrupts.held_back(), shim.awaiting_fork(job.account):
            taken = _starting.acquire(timeout=_LONGEST_START_S)
        yield
    finally:
        if taken:
            _starting.release()


def guarded(fork: Callable[..., Any], pid_of: Callable[[Any], int]) -> Callable[..., Any]:
    """`fork` with the other jobs parked. Not a hook of the interpreter's own: while one hook waits, a module
    that is being imported could register hooks of which only the later ones would run."""

    @wraps(fork)
    def fork_alone(*args: Any, **kwargs: Any) -> Any:
        job = context.current()
        if job is None or not context.in_host():
            return fork(*args, **kwargs)
        importing, parked, pid, at_end = None, False, -1, interrupts.held_back()
        try:
            # What a signal's handler raises may come before each of these lines.
            importing = _lock_imports(job)
            with _no_process_begins(job):
                parked = True
                with interrupts.held_back():  # no handler runs, for which all others would wait
                    if not shim.park_others(job.account, _LONGEST_PARK_NS):
                        # The other job computes without an allocation. Forking now is what plain python does all the
                        # time beside its own threads; waiting for ever would be worse.
                        job.note(
                            f"{job.name} forked beside a job that can't be stopped: it allocated nothing for 5 s"
                        )
                    result = child_waits.noted(job, partial(fork, *args, **kwargs), pid_of)
                    pid = pid_of(result)
            at_end.begin()
        finally:
            if pid != 0:  # the child has a lock of its own, and nobody is parked there
                if parked:
                    shim.unpark_others(job.account)
                if importing:
                    importing.release()
            at_end.end()
        return result

    return fork_alone


def launched_alone(launch: Callable[..., None]) -> Callable[..., None]:
    """`multiprocessing`'s start of a process by a fork, with no other job's fork in it.

    It makes the pipe first by whose end the parent is told of the child's. (Where it starts a program instead it writes
    to that until the program has imported what it needs: for so long nobody else is to wait.)
    """

    @wraps(launch)
    def launch_alone(*args: Any, **kwargs: Any) -> None:
        job = context.current()
        if job is None or not context.in_host():
            return launch(*args, **kwargs)
        importing = _lock_imports(job)
        try:
            with _no_process_begins(job):
                launch(*args, **kwargs)  # the child does not come back
        finally:
            if importing:
                importing.release()

    return launch_alone


_PREEXEC = 6  # the position of `preexec_fn` in the arguments of Popen: to run it takes a fork


def started_alone(start: Callable[..., None]) -> Callable[..., None]:
    """`subprocess.Popen.__init__`, with no other job's fork between its pipes and their ends' leaving it."""
    forking = launched_alone(start)

    @wraps(start)
    def start_alone(self: Any, *args: Any, **kwargs: Any) -> None:
        job = context.current()
        if job is None or not context.in_host():
            return start(self, *args, **kwargs)
        if kwargs.get("preexec_fn") or any(args[_PREEXEC : _PREEXEC + 1]):
            return forking(self, *args, **kwargs)
        with _no_process_begins(job):
            start(self, *args, **kwargs)

    return start_alone


def told(start: Callable[..., None]) -> Callable[..., None]:
    """`multiprocessing`'s start of a process, in whatever way: what it takes is no iteration's time."""

    @wraps(start)
    def start_told(self: Any) -> None:
        job = context.current()
        if job is not None and context.in_host():
            shim.tell_of_process(job.account)
        start(self)

    return start_told


def install() -> None:
    """Replace the functions that fork. Programs are started without one (see `children.py`)."""
    start: Any = popen_fork.Popen
    start._launch = launched_alone(start._launch)
    any_process: Any = process.BaseProcess
    any_process.start = told(any_process.start)
    program: Any = subprocess.Popen
    program.__init__ = started_alone(program.__init__)
    os.fork = guarded(os.fork, int)
    os.forkpty = guarded(os.forkpty, lambda result: int(result[0]))


def enter(job: context.JobContext) -> None:
    """Nothing to set up."""


def leave(job: context.JobContext) -> None:
    """Nothing to take down."""
