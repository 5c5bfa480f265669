"""Signal handlers and alarms per job.

Python runs handlers in the process's main thread only. Here each job has its own table (`signal_handlers`); a signal
that reaches the host (`signal_routes`), or that a job sends to its own process, goes to the handlers of the jobs that
have one.
"""

from __future__ import annotations

import _thread
import contextlib
import errno
import operator
import os
import signal
import threading
from functools import partial
from typing import Any

from gpushare.isolation import context, exits, handler_calls, signal_routes
from gpushare.isolation.alarms import Times
from gpushare.isolation.signal_handlers import OF_TIMERS, deliver, handler_of, has_handler, table_of

_signal, _getsignal, _kill = signal.signal, signal.getsignal, os.kill
_alarm, _setitimer, _getitimer = signal.alarm, signal.setitimer, signal.getitimer
_kill_thread, _pause = signal.pthread_kill, signal.pause
_interrupt: Any = _thread.interrupt_main
_kill_group, _set_wakeup_fd = os.killpg, signal.set_wakeup_fd
_NO_TIMER = -1


def set_handler(number: int, handler: Any) -> Any:
    """As `signal.signal`, for the calling job."""
    job = context.job_in_host()
    if job is None:
        return _signal(number, handler)
    number = operator.index(number)
    _must_be_main(job, "signal")
    if not 1 <= number < signal.NSIG:
        raise ValueError("signal number out of range")
    if not callable(handler) and handler not in (signal.SIG_IGN, signal.SIG_DFL):
        raise TypeError("signal handler must be signal.SIG_IGN, signal.SIG_DFL, or a callable object")
    if number in (signal.SIGKILL, signal.SIGSTOP):
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    before = handler_of(job, number)
    table_of(job).handlers[number] = handler
    signal_routes.follow(number)
    return before


def _must_be_main(job: context.JobContext, what: str) -> None:
    if not handler_calls.stands_for_main(job):
        raise ValueError(f"{what} only works in main thread of the main interpreter")


def get_handler(number: int) -> Any:
    """As `signal.getsignal`, for the calling job."""
    job = context.job_in_host()
    of_host = _getsignal(number)  # which also says what is no signal
    return of_host if job is None else handler_of(job, number)


def _send(pid: int, number: int) -> None:
    job = context.job_in_host()
    if job is None or pid not in (os.getpid(), 0, -os.getpgrp()) or not 1 <= number < signal.NSIG:
        _kill(pid, number)  # what is no signal is the system's error
    elif number == signal.SIGKILL:
        job.note(f"{job.name} killed its own process: only this job ends")
        exits.end_job(job, 128 + number)
    elif number in signal.pthread_sigmask(signal.SIG_BLOCK, ()):  # it waits until the thread asks for it
        _kill_thread(threading.get_ident(), number)
    else:
        deliver(job, number, from_outside=False)


def _send_group(group: int, number: int) -> None:
    if context.job_in_host() and group in (0, os.getpgrp()):  # that of the host, which all jobs share
        _send(os.getpid(), number)
    else:
        _kill_group(group, number)


def _raise(number: int) -> None:
    _send(os.getpid(), number)


def _send_to_thread(thread: int, number: int) -> None:
    job = context.job_in_host()
    mine = {job.thread_ident, *(t.ident for t in list(job.threads.values()))} if job else set()
    if thread in mine and 1 <= number < signal.NSIG:
        _send(os.getpid(), number)
    else:
        _kill_thread(thread, number)


def _interrupt_main(number: int = signal.SIGINT, /) -> None:
    if (job := context.job_in_host()) is None:
        _interrupt(number)
    elif has_handler(job, number):  # else it does nothing, also under plain python
        _send(os.getpid(), number)


def _arm(which: int, seconds: float, interval: float = 0.0) -> Times:
    job = context.job_in_host()
    if job is None:
        return _setitimer(which, seconds, interval)
    if which != signal.ITIMER_REAL:
        return _arm_of_process(job, which, seconds, interval)
    return table_of(job).alarm.arm(*_times(seconds, interval), partial(_ring, job))


def _times(seconds: float, interval: float) -> Times:
    """What the interpreter, each version with its own words, takes for times."""
    with contextlib.suppress(signal.ItimerError):  # there is no such timer: it looks at the times first
        _setitimer(_NO_TIMER, seconds, interval)
    times = float(seconds), float(interval)
    if min(times) < 0:
        raise signal.ItimerError(errno.EINVAL, os.strerror(errno.EINVAL))
    return times


def _arm_of_process(job: context.JobContext, which: int, seconds: float, interval: float) -> Times:
    """A timer of the processor's time, which is that of all jobs."""
    timers = table_of(job).timers
    if which in OF_TIMERS and _times(seconds, interval)[0] > 0:
        timers.add(which)
        signal_routes.follow(OF_TIMERS[which])
    return _setitimer(which, seconds, interval)


def _ring(job: context.JobContext) -> None:
    if call := deliver(job, signal.SIGALRM, from_outside=False):
        call.done.wait()


def _set_alarm(seconds: int) -> int:
    if context.job_in_host() is None:
        return _alarm(seconds)
    unsigned = operator.index(seconds) & 0xFFFFFFFF  # as C's alarm() takes it
    return round(_arm(signal.ITIMER_REAL, unsigned)[0])


def _get_timer(which: int) -> Times:
    job = context.job_in_host()
    if job is None or which != signal.ITIMER_REAL:
        return _getitimer(which)
    return table_of(job).alarm.left()


def _until_handled() -> None:
    job = context.job_in_host()
    if job is None:
        return _pause()
    handler_calls.wait_for_any(job)


def _wakeup_fd(descriptor: int, **options: Any) -> int:
    if (job := context.job_in_host()) is None:
        return _set_wakeup_fd(descriptor, **options)
    _must_be_main(job, "set_wakeup_fd")
    return -1


def _after_fork_in_child() -> None:
    job = context.current()
    if job is None:
        return
    handler_calls.forget_in_child(job)
    _set_wakeup_fd(-1)  # its other end is the parent's
    for number in {signal.SIGINT, *signal_routes.ROUTED, *table_of(job).handlers}:
        if number == signal.SIGINT or signal_routes.comes_to_host(number):
            _signal(number, handler_of(job, number))


def install() -> None:
    """Route the host's signals and replace the functions. Main thread only. SIGINT is the entry's."""
    handler_calls.install()
    signal_routes.install()
    module: Any = signal
    module.signal, module.getsignal = set_handler, get_handler
    module.alarm, module.setitimer, module.getitimer = _set_alarm, _arm, _get_timer
    module.raise_signal, module.set_wakeup_fd = _raise, _wakeup_fd
    module.pthread_kill, module.pause = _send_to_thread, _until_handled
    raw: Any = _thread
    raw.interrupt_main = _interrupt_main
    os.kill, os.killpg = _send, _send_group
    os.register_at_fork(after_in_child=_after_fork_in_child)


def enter(job: context.JobContext) -> None:
    """From now on the job gets signals."""
    handler_calls.enter(job)
    signal_routes.begin(job)


def leave(job: context.JobContext) -> None:
    """No signals and no alarms any more."""
    table = table_of(job)
    for which in table.timers:
        _setitimer(which, 0)
    signal_routes.end(job)
    table.alarm.arm(0, 0, lambda: None)
    handler_calls.leave(job)
