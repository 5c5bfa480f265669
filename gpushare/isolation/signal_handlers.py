"""What each job does about signals: its table of handlers, and how one of them runs.

A handler runs in a thread of its job beside the script, and what it raises arrives in the script.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from gpushare.isolation import context, directory, exits, interrupts
from gpushare.isolation.alarms import Alarm
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
        self.over = False  # what the job's modules have is about to go, or gone
        self.handled = 0  # by handlers that have returned, or raised
        self.one_more = threading.Condition()
        self.running: set[threading.Thread] = set()  # in which handlers run


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


def deliver(job: context.JobContext, number: int, *, from_outside: bool = True) -> threading.Thread | None:
    """The signal has come for this job, from outside to a thread of the host's, or to one of the job's.

    The thread that its handler runs in, if it does and has begun.
    """
    if from_outside and number in (signal.SIGTERM, signal.SIGHUP) and _came_just_now(job, number):
        return None
    handler = handler_of(job, number)
    if handler is signal.default_int_handler:
        interrupts.send(job, KeyboardInterrupt, ends_waits=True)
    elif callable(handler) and not from_outside and threading.get_ident() == job.thread_ident:
        _call_here(_tables.of(job), lambda: handler(int(number), _of_the_script(sys._getframe())))
    elif callable(handler):
        frame = sys._current_frames().get(job.thread_ident)
        return _in_job(job, lambda: handler(int(number), frame), from_outside)
    elif handler is signal.SIG_DFL and number not in _IGNORED:
        exits.end_job(job, 128 + number)
    return None


def _came_just_now(job: context.JobContext, number: int) -> bool:
    table, now_s = _tables.of(job), time.monotonic()
    (before, then_s), table.asked_to_end = table.asked_to_end, (number, now_s)
    return before == number and now_s - then_s < _TWICE_S


def _in_job(
    job: context.JobContext, call: Callable[[], object], from_outside: bool
) -> threading.Thread | None:
    table = _tables.of(job)

    def run() -> None:
        if from_outside:  # the starting thread's working directory is the host's
            directory.follow(job)
        try:
            if not table.over:
                call()
        except BaseException as error:
            # At its end it may only have missed what has gone meanwhile, and nobody is there to be told.
            if not table.over:
                _forward(job, error)
        finally:
            table.running.discard(threading.current_thread())
            _count(table)

    def start() -> threading.Thread:
        thread = threading.Thread(target=run, name="signal", daemon=True)
        table.running.add(thread)
        before = context.current()
        context.bind(job)  # a thread belongs to the job that starts it
        try:
            thread.start()
        except BaseException:
            table.running.discard(thread)
            raise
        finally:
            context.bind(before)
        return thread

    # While the job's memory is copied out its threads can't start, and others are to be told as well.
    if from_outside:
        threading.Thread(target=start, name="signal", daemon=True).start()
        return None
    return start()


def _count(table: _Table) -> None:
    with table.one_more:
        table.handled += 1
        table.one_more.notify_all()


def _call_here(table: _Table, call: Callable[[], object]) -> None:
    """Of a signal that the job's main thread sends to itself: before the next line, and what it raises comes there."""
    try:
        call()
    finally:
        _count(table)


def _of_the_script(frame: FrameType | None) -> FrameType | None:
    """The frame that has called gpushare's."""
    while frame and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    return frame


def finish(job: context.JobContext) -> None:
    """Wait for handlers that run: the script can't end in the middle of one, whose checkpoint would be half a file."""
    table = _tables.of(job)
    if table.running:  # not by their `join`: one may be about to start
        with table.one_more:
            table.one_more.wait_for(lambda: not table.running)


def _forward(job: context.JobContext, error: BaseException) -> None:
    # An error the script may catch, and go on. It comes once a call into C is over, as a wait for memory is.
    interrupts.send(job, type(error), *error.args, ends_waits=not isinstance(error, Exception))
