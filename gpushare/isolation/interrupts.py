"""Exceptions that come to a job's script from another thread, as Ctrl-C does.

They come at its next bytecode, so a wait for memory or at a door has to end first: all waits of the job do, but for
memory that is copied out and has no room yet, until the exception has come. Where the main thread waits for memory it
comes at that line: torch raises it in place of its own error (`shim/src/interruption.cpp`). Waits of the interpreter,
as for a moment or a child, end as well (`shim/src/interpose_rests.cpp`, `cut_waits`). A script that catches it and goes
on is scheduled as before.

In a section that takes what all jobs share (`held_back`) they come at its end.
"""

from __future__ import annotations

import _thread
import os
import sys
import threading
from typing import Any

from gpushare.isolation import context
from gpushare.isolation.perjob import PerJob
from gpushare.native import interruptions, shim
from gpushare.native.library import quick


class _Sent:
    """What was sent to a job so far."""

    def __init__(self) -> None:
        self.last = self.come = 0  # what has come, of what was sent
        self.ends = False  # the job: nothing else may take the place of what ends it


_sent: PerJob[_Sent] = PerJob(_Sent(), _Sent)


_lock = threading.RLock()  # only in `held_back`: what comes when it has been taken would leave it


class held_back:
    """In it nothing is raised in the calling thread from another one; the last thing that was sent comes at the end.

    Python raises such an exception after any call, so one may come when a lock has been taken and before the `try`
    that gives it back. What one of many jobs has taken for good the others would wait for.
    """

    _thread = _before = 0

    def __enter__(self) -> None:
        thread = threading.get_ident()
        self._before = interruptions.held_sections(thread)
        try:
            interruptions.hold_back(thread)
            # What was sent before has come by now: the end of the call looks for it.
        except BaseException:
            interruptions.let_come(thread, self._before)
            raise
        self._thread = thread

    def __exit__(self, *_: object) -> None:
        thread, self._thread = self._thread, 0
        if thread:
            quick["gs_let_come"](
                thread, self._before
            )  # the frame of `interruptions.let_come` would be in tracebacks

    def begin(self) -> None:
        """For a section that begins at the end of a `try`, so that its `finally` runs whole."""
        self.__enter__()

    def end(self) -> None:
        """Also of one that was not begun."""
        self.__exit__()

    # What is raised there names no file of ours in its traceback.
    __exit__.__code__ = __exit__.__code__.replace(co_filename="<frozen importlib._bootstrap>")


class _Whole:
    """A lock in whose sections everything is held back."""

    def __init__(self, lock: Any) -> None:
        self._lock = lock
        self._sections: list[held_back] = []  # of the thread that has it

    def __enter__(self) -> None:
        section = held_back()
        if quick:  # else the host has just begun, and nothing is sent
            section.begin()
        self._lock.acquire()
        self._sections.append(section)

    def __exit__(self, *_: object) -> None:
        section = self._sections.pop()
        self._lock.release()
        section.end()


def whole(lock: Any) -> Any:
    """Of a lock that all jobs share, to be used by `with` only: nobody is interrupted who has taken it, and not yet
    begun the block that gives it back. Before Python 3.14 that can't be; but no handler of a signal may run either
    that would wait for what its own thread has taken."""
    return _Whole(lock) if sys.version_info >= (3, 14) or type(lock) is _thread.LockType else lock


def raise_in(thread_ident: int, exception: type[BaseException]) -> None:
    """Raise it in that thread at its next bytecode, or where what holds it back ends. Of several the last one comes."""
    interruptions.interrupt(0, thread_ident, exception)


def _after_fork_in_child() -> None:
    # The lock may be held by a thread that is not there, the others' sections are gone, what was sent is the parent's.
    global _lock
    _lock = threading.RLock()
    interruptions.hold_back_alone(threading.get_ident())


def install() -> None:
    """A forked child has a lock of its own."""
    os.register_at_fork(after_in_child=_after_fork_in_child)


def enter(job: context.JobContext) -> None:
    """Nothing was sent yet."""


def leave(job: context.JobContext) -> None:
    """Nothing: what was sent goes with the context."""


def send(
    job: context.JobContext, kind: type[BaseException], *args: Any, ends_waits: bool, for_good: bool = False
) -> None:
    """Raise `kind(*args)` in the job's main thread. What was sent before and has not come yet never will.

    :param ends_waits: not for what the script need not hear at once.
    :param for_good: the job is to end: it waits for nothing any more, and nothing else comes.
    """
    sent = _sent.of(job)
    mine = 0

    def made(_: type, *text: Any) -> BaseException:
        interruptions.interrupt_came(job.account)
        if not for_good:
            _has_come(job, mine)
        return kind(*args)

    # Only a class can be raised in another thread. This one is called there, before the script sees anything, and what
    # it makes is none of its own but the exception as it should be. Torch calls it with the text of its own error.
    stands_in = type(kind.__name__, (kind,), {"__new__": made})
    with held_back(), _lock:
        if sent.ends and not for_good:
            return
        sent.ends = sent.ends or for_good
        mine = sent.last = sent.last + 1
        interruptions.interrupt(job.account, job.thread_ident, stands_in)
    if ends_waits:
        shim.cancel(job.account)  # may wait for the shim's lock
        with held_back(), _lock:
            _wait_again(job, sent)


def ends(job: context.JobContext) -> bool:
    """Whether what ends the job for good has been sent."""
    return _sent.of(job).ends


def _has_come(job: context.JobContext, which: int) -> None:
    sent = _sent.of(job)
    with held_back(), _lock:
        sent.come = which
        _wait_again(job, sent)


def _wait_again(job: context.JobContext, sent: _Sent) -> None:
    """Unless something is on its way to the job. With `_lock` in hand."""
    if sent.come == sent.last and not sent.ends:
        shim.uncancel(job.account)
