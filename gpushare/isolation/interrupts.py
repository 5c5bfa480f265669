"""Exceptions that come to a job's script from another thread, as Ctrl-C does.

They come at its next bytecode, so a wait for memory or at a door has to end first: all waits of the job do, but for
memory that is copied out and has no room yet, until the exception has come. A script that catches it and goes on is
scheduled as before.
"""

from __future__ import annotations

import threading
from typing import Any

from gpushare.isolation import context
from gpushare.isolation.perjob import PerJob
from gpushare.native import interpreter, shim


class _Sent:
    """What was sent to a job so far."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # one may come while the same thread sends another
        self.last = 0
        self.ends = False  # the job: nothing else may take the place of what ends it


_sent: PerJob[_Sent] = PerJob(_Sent(), _Sent)


def send(
    job: context.JobContext, kind: type[BaseException], *args: Any, ends_waits: bool, for_good: bool = False
) -> None:
    """Raise `kind(*args)` in the job's main thread. What was sent before and has not come yet never will.

    :param ends_waits: not for what the script need not hear at once.
    :param for_good: the job is to end: it waits for nothing any more, and nothing else comes.
    """
    sent = _sent.of(job)
    mine = 0

    def made(_: type, *own: Any) -> BaseException:
        if not for_good:
            _has_come(job, mine)
        return kind(*(own or args))

    # Only a class can be raised in another thread. This one is called there, before the script sees anything, and what
    # it makes is none of its own but the exception as it should be.
    stands_in = type(kind.__name__, (kind,), {"__new__": made})
    with sent.lock:
        if sent.ends and not for_good:
            return
        sent.ends = sent.ends or for_good
        mine = sent.last = sent.last + 1
        if ends_waits:
            shim.cancel(job.account)
        interpreter.set_async_exception(job.thread_ident, stands_in)


def _has_come(job: context.JobContext, which: int) -> None:
    sent = _sent.of(job)
    with sent.lock:
        if sent.last == which and not sent.ends:  # else a later one is on its way
            shim.uncancel(job.account)
