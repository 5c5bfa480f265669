"""What each job does about signals: its table of handlers, and what a signal that has come does (`handler_calls`)."""

from __future__ import annotations

import signal
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

from gpushare.isolation import context, exits, handler_calls, interrupts
from gpushare.isolation.alarms import Alarm
from gpushare.isolation.handler_calls import Call
from gpushare.isolation.perjob import PerJob

OF_TIMERS = {signal.ITIMER_VIRTUAL: signal.SIGVTALRM, signal.ITIMER_PROF: signal.SIGPROF}
_getsignal = signal.getsignal
_OURS = f"{Path(__file__).parent.parent}/"
_IGNORED = (signal.SIGCHLD, signal.SIGURG, signal.SIGWINCH, signal.SIGCONT)
# Since before any job: by python itself (SIGPIPE), or by whoever started gpushare (`nohup`, `trap ''`).
IGNORED_FROM_START = frozenset(n for n in signal.valid_signals() if _getsignal(n) is signal.SIG_IGN)
_TWICE_S = 0.5  # a batch system sends one to each process: it comes to the host, and by way of gpushare


class _Table:
    """A job's handlers and its alarm."""

    def __init__(self) -> None:
        self.handlers: dict[int, Any] = dict.fromkeys(map(int, IGNORED_FROM_START), signal.SIG_IGN)
        self.handlers.setdefault(int(signal.SIGINT), signal.default_int_handler)
        self.alarm = Alarm()
        self.timers: set[int] = set()  # of those that the process has
        self.asked_to_end: tuple[int, float] = 0, 0.0  # by which signal from outside, and when


_tables: PerJob[_Table] = PerJob(_Table(), _Table)


def table_of(job: context.JobContext) -> _Table:
    """Its handlers, timers and alarm."""
    return _tables.of(job)


def handler_of(job: context.JobContext, number: int) -> Any:
    """The job's handler."""
    return _tables.of(job).handlers.get(number, signal.SIG_DFL)


def has_handler(job: context.JobContext, number: int) -> bool:
    """Whether the job does something of its own about the signal, if only to ignore it."""
    return handler_of(job, number) is not signal.SIG_DFL


def has_timer(job: context.JobContext, number: int) -> bool:
    """Whether a timer of the job's sends the signal."""
    return any(OF_TIMERS[which] == number for which in set(_tables.of(job).timers))


def deliver(job: context.JobContext, number: int, *, from_outside: bool = True) -> Call | None:
    """The signal has come for this job, from outside to a thread of the host's, or to one of the job's.

    The call of its handler, if that is to come.
    """
    if from_outside and number in (signal.SIGTERM, signal.SIGHUP) and _came_just_now(job, number):
        return None
    handler = handler_of(job, number)
    if handler is signal.default_int_handler:
        interrupts.send(job, KeyboardInterrupt, ends_waits=True)
    elif callable(handler) and not from_outside and threading.get_ident() == job.thread_ident:
        handler_calls.call_here(job, lambda: handler(int(number), _of_the_script(sys._getframe())))
    elif callable(handler):
        return handler_calls.ask(job, number, handler)
    elif handler is signal.SIG_DFL and number not in _IGNORED:
        exits.end_job(job, 128 + number)
    return None


def _came_just_now(job: context.JobContext, number: int) -> bool:
    table, now_s = _tables.of(job), time.monotonic()
    (before, then_s), table.asked_to_end = table.asked_to_end, (number, now_s)
    return before == number and now_s - then_s < _TWICE_S


def _of_the_script(frame: FrameType | None) -> FrameType | None:
    """The frame that has called gpushare's."""
    while frame and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    return frame
