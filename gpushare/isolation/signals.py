"""Signal handlers and alarms per job.

Python runs handlers in the process's main thread only. Here each job has its own table; a signal that reaches
the host, or that a job sends to its own process, goes to the handlers of the jobs that have one. A handler runs
in a thread of its job beside the script, and what it raises arrives in the script.

Which signals have come is read from the pipe that Python's handler in C writes them to, by a thread: the main thread
hears of one that another thread got only when it wakes. Those that jobs seldom handle do what they do by default, but
while a job has a handler or a timer for them.
"""

from __future__ import annotations

import _thread
import errno
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from gpushare.isolation import context, directory, exits, interrupts
from gpushare.isolation.alarms import Alarm, Times
from gpushare.isolation.perjob import PerJob
from gpushare.native import process

_signal, _getsignal, _kill = signal.signal, signal.getsignal, os.kill
_alarm, _setitimer, _getitimer = signal.alarm, signal.setitimer, signal.getitimer
_kill_thread = signal.pthread_kill
_interrupt: Any = _thread.interrupt_main
_kill_group, _set_wakeup_fd = os.killpg, signal.set_wakeup_fd
ROUTED = (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP, signal.SIGALRM)
_OF_TIMERS = {signal.ITIMER_VIRTUAL: signal.SIGVTALRM, signal.ITIMER_PROF: signal.SIGPROF}
# Not what tells of errors in C code, what stops the process, and what Python, or faulthandler, takes.
_SELDOM = (
    signal.valid_signals()
    - {signal.SIGINT, *ROUTED}
    - {
        signal.SIGSEGV,
        signal.SIGBUS,
        signal.SIGFPE,
        signal.SIGILL,
        signal.SIGABRT,
        signal.SIGTRAP,
        signal.SIGSYS,
    }
    - {
        signal.SIGKILL,
        signal.SIGSTOP,
        signal.SIGTSTP,
        signal.SIGTTIN,
        signal.SIGTTOU,
        signal.SIGPIPE,
        signal.SIGQUIT,
    }
)
_IGNORED = (signal.SIGCHLD, signal.SIGURG, signal.SIGWINCH, signal.SIGCONT)
_TWICE_S = 0.5  # a batch system sends one to each process: it comes to the host, and by way of gpushare
_live: list[context.JobContext] = []
_following = threading.Lock()
_followed: frozenset[int] = frozenset()  # of those, what C code has no handler for
_in_c: int | None = None  # Python's handler


class _Table:
    """A job's handlers and its alarm."""

    def __init__(self) -> None:
        ignored = _getsignal(signal.SIGINT) is signal.SIG_IGN  # since before python started
        first = signal.SIG_IGN if ignored else signal.default_int_handler
        self.handlers: dict[int, Any] = {signal.SIGINT: first}
        self.alarm = Alarm()
        self.timers: set[int] = set()  # of those that the process has
        self.asked_to_end: tuple[int, float] = 0, 0.0  # by which signal from outside, and when


_tables: PerJob[_Table] = PerJob(_Table(), _Table)


def _job() -> context.JobContext | None:
    return context.current() if context.in_host() else None


def handler_of(job: context.JobContext, number: int) -> Any:
    """The job's handler."""
    return _tables.of(job).handlers.get(number, signal.SIG_DFL)


def has_handler(job: context.JobContext, number: int) -> bool:
    """Whether the job does something of its own about the signal, if only to ignore it."""
    return handler_of(job, number) is not signal.SIG_DFL


def set_handler(number: int, handler: Any) -> Any:
    """As `signal.signal`, for the calling job."""
    job = _job()
    if job is None:
        return _signal(number, handler)
    if not callable(handler) and handler not in (signal.SIG_IGN, signal.SIG_DFL):
        raise TypeError("signal handler must be signal.SIG_IGN, signal.SIG_DFL, or a callable object")
    if not 1 <= number < signal.NSIG:
        raise ValueError("signal number out of range")
    if number in (signal.SIGKILL, signal.SIGSTOP):
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    before = handler_of(job, number)
    _tables.of(job).handlers[int(number)] = handler
    _follow(number)
    return before


def get_handler(number: int) -> Any:
    """As `signal.getsignal`, for the calling job."""
    job = _job()
    return _getsignal(number) if job is None else handler_of(job, number)


def deliver(job: context.JobContext, number: int, *, from_outside: bool = True) -> threading.Thread | None:
    """The signal has come for this job, from outside to a thread of the host's, or to one of the job's.

    The thread that its handler runs in, if it does and has begun.
    """
    if from_outside and number in (signal.SIGTERM, signal.SIGHUP) and _came_just_now(job, number):
        return None
    handler = handler_of(job, number)
    if handler is signal.default_int_handler:
        interrupts.send(job, KeyboardInterrupt, ends_waits=True)
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
    def run() -> None:
        if from_outside:  # the starting thread's working directory is the host's
            directory.follow(job)
        try:
            call()
        except BaseException as error:
            _forward(job, error)

    def start() -> threading.Thread:
        thread = threading.Thread(target=run, name="signal", daemon=True)
        before = context.current()
        context.bind(job)  # a thread belongs to the job that starts it
        try:
            thread.start()
        finally:
            context.bind(before)
        return thread

    # While the job's memory is copied out its threads can't start, and others are to be told as well.
    if from_outside:
        threading.Thread(target=start, name="signal", daemon=True).start()
        return None
    return start()


def _forward(job: context.JobContext, error: BaseException) -> None:
    # An error the script may catch, and go on. It comes once a call into C is over, as a wait for memory is.
    interrupts.send(job, type(error), *error.args, ends_waits=not isinstance(error, Exception))


def _receivers(number: int) -> list[context.JobContext]:
    return [job for job in list(_live) if has_handler(job, number) or _has_timer(job, number)]


def _has_timer(job: context.JobContext, number: int) -> bool:
    return any(_OF_TIMERS[which] == number for which in set(_tables.of(job).timers))


def _follow(number: int) -> None:
    """One that jobs seldom handle reaches the host while one does."""
    if number in _followed:
        with _following:
            process.swap_signal_action(number, _in_c if _receivers(number) else None)


def _route(came: int) -> None:
    """In a thread of the host's: the signals that come."""
    while numbers := os.read(came, 64):
        for number in numbers:
            if number in ROUTED or number in _followed:
                _on_host_signal(number)


def _on_host_signal(number: int) -> None:
    receivers = _receivers(number)
    for job in receivers:
        deliver(job, number)
    if number in ROUTED and not receivers:
        process.swap_signal_action(number, None)
        _kill(os.getpid(), number)


def _send(pid: int, number: int) -> None:
    job = _job()
    if job is None or pid not in (os.getpid(), 0, -os.getpgrp()) or number == 0:
        _kill(pid, number)
    elif number == signal.SIGKILL:
        job.note(f"{job.name} killed its own process: only this job ends")
        exits.end_job(job, 128 + number)
    elif number in signal.pthread_sigmask(signal.SIG_BLOCK, ()):  # it waits until the thread asks for it
        _kill_thread(threading.get_ident(), number)
    else:
        deliver(job, number, from_outside=False)


def _send_group(group: int, number: int) -> None:
    if _job() and group in (0, os.getpgrp()):  # that of the host, which all jobs share
        _send(os.getpid(), number)
    else:
        _kill_group(group, number)


def _raise(number: int) -> None:
    _send(os.getpid(), number)


def _send_to_thread(thread: int, number: int) -> None:
    job = _job()
    mine = {job.thread_ident, *(t.ident for t in list(job.threads.values()))} if job else set()
    if thread in mine and number != 0:
        _send(os.getpid(), number)
    else:
        _kill_thread(thread, number)


def _interrupt_main(number: int = signal.SIGINT, /) -> None:
    if (job := _job()) is None:
        _interrupt(number)
    elif has_handler(job, number):  # else it does nothing, also under plain python
        _send(os.getpid(), number)


def _arm(which: int, seconds: float, interval: float = 0.0) -> Times:
    job = _job()
    if job is None:
        return _setitimer(which, seconds, interval)
    if which != signal.ITIMER_REAL:
        return _arm_of_process(job, which, seconds, interval)
    return _tables.of(job).alarm.arm(seconds, interval, partial(_ring, job))


def _arm_of_process(job: context.JobContext, which: int, seconds: float, interval: float) -> Times:
    """A timer of the processor's time, which is that of all jobs."""
    timers = _tables.of(job).timers
    if seconds > 0 and which in _OF_TIMERS:
        timers.add(which)
        _follow(_OF_TIMERS[which])
    return _setitimer(which, seconds, interval)


def _ring(job: context.JobContext) -> None:
    if handler := deliver(job, signal.SIGALRM, from_outside=False):
        handler.join()


def _set_alarm(seconds: int) -> int:
    return _alarm(seconds) if _job() is None else round(_arm(signal.ITIMER_REAL, seconds)[0])


def _get_timer(which: int) -> Times:
    job = _job()
    if job is None or which != signal.ITIMER_REAL:
        return _getitimer(which)
    return _tables.of(job).alarm.left()


def _wakeup_fd(descriptor: int, **options: Any) -> int:
    return _set_wakeup_fd(descriptor, **options) if _job() is None else -1


def _after_fork_in_child() -> None:
    job = context.current()
    if job is None:
        return
    _set_wakeup_fd(-1)  # its other end is the parent's
    handlers = _tables.of(job).handlers
    for number in {signal.SIGINT, *ROUTED, *handlers}:
        if number in ROUTED or number in _followed or number == signal.SIGINT:
            _signal(number, handler_of(job, number))


def install() -> None:
    """Route the host's signals and replace the functions. Main thread only. SIGINT is the entry's."""
    global _in_c, _followed
    _followed = frozenset(number for number in _SELDOM if _getsignal(number) is signal.SIG_DFL)
    came, comes = os.pipe()
    os.set_blocking(comes, False)
    _set_wakeup_fd(comes, warn_on_full_buffer=False)
    for number in (*ROUTED, *_followed):
        _signal(number, lambda *_: None)
    for number in _followed:
        _in_c = process.swap_signal_action(number, None)
    threading.Thread(target=_route, args=(came,), name="signals", daemon=True).start()
    module: Any = signal
    module.signal, module.getsignal = set_handler, get_handler
    module.alarm, module.setitimer, module.getitimer = _set_alarm, _arm, _get_timer
    module.raise_signal, module.set_wakeup_fd = _raise, _wakeup_fd
    module.pthread_kill = _send_to_thread
    raw: Any = _thread
    raw.interrupt_main = _interrupt_main
    os.kill, os.killpg = _send, _send_group
    os.register_at_fork(after_in_child=_after_fork_in_child)


def enter(job: context.JobContext) -> None:
    """From now on the job gets signals."""
    _live.append(job)


def leave(job: context.JobContext) -> None:
    """No signals and no alarms any more."""
    table = _tables.of(job)
    for which in table.timers:
        _setitimer(which, 0)
    _live.remove(job)
    for number in {*table.handlers, *(_OF_TIMERS[which] for which in table.timers)}:
        _follow(number)
    table.alarm.arm(0, 0, lambda: None)
