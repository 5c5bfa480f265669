"""Which signals come to the host, and to which jobs they go.

Which ones have come is read from the pipe that Python's handler in C writes them to, by a thread: the main thread
hears of one that another thread got only when it wakes. Those that jobs seldom handle do what they do by default, but
while a job has a handler or a timer for them.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

from gpushare.isolation import context, interrupts
from gpushare.isolation.signal_handlers import (
    IGNORED_FROM_START,
    OF_TIMERS,
    deliver,
    handler_of,
    has_handler,
    has_timer,
    table_of,
)
from gpushare.native import process

_signal, _getsignal, _kill, _set_wakeup_fd = signal.signal, signal.getsignal, os.kill, signal.set_wakeup_fd
ROUTED = (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP, signal.SIGALRM)
# Not what tells of errors in C code, what stops the process, and what Python, faulthandler or the shim (to end waits)
# takes.
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
        signal.SIGRTMAX - 1,
    }
)
_live: list[context.JobContext] = []
_following = interrupts.whole(threading.Lock())
_followed: frozenset[int] = frozenset()  # of those, what C code has no handler for
_in_c: int | None = None  # Python's handler
_ENDING = (signal.SIGTERM, signal.SIGHUP)  # ask all to end, as they would each script by itself
_end_all: Callable[[int], object] | None = None  # what the host does then


def _receivers(number: int) -> list[context.JobContext]:
    return [job for job in list(_live) if has_handler(job, number) or has_timer(job, number)]


def comes_to_host(number: int) -> bool:
    """Whether the host may get it for a job."""
    return number in ROUTED or number in _followed


def follow(number: int) -> None:
    """One that jobs seldom handle reaches the host while one does; and so does one that was ignored from the start,
    which programs that jobs start are to inherit so."""
    if number in _followed:
        with _following:
            process.swap_signal_action(number, _in_c if _receivers(number) else None)
    elif number in IGNORED_FROM_START and number in ROUTED:
        with _following:
            wanted = any(callable(handler_of(job, number)) for job in list(_live))
            process.swap_signal_action(number, _in_c if wanted else int(signal.SIG_IGN))


def _route(came: int) -> None:
    """In a thread of the host's: the signals that come."""
    while numbers := os.read(came, 64):
        for number in numbers:
            if comes_to_host(number):
                _on_host_signal(number)


def _on_host_signal(number: int) -> None:
    receivers = _receivers(number)
    if receivers and number in _ENDING and _end_all:
        _end_all(number)
        return
    for job in receivers:
        deliver(job, number)
    if number in ROUTED and not receivers:
        process.swap_signal_action(number, None)
        _kill(os.getpid(), number)


def install() -> None:
    """Have signals come here. Main thread only."""
    global _in_c, _followed
    _followed = frozenset(number for number in _SELDOM if _getsignal(number) is signal.SIG_DFL)
    came, comes = os.pipe()
    os.set_blocking(comes, False)
    _set_wakeup_fd(comes, warn_on_full_buffer=False)
    for number in (*ROUTED, *_followed):
        _signal(number, lambda *_: None)
    for number in _followed:
        _in_c = process.swap_signal_action(number, None)
    for number in ROUTED:
        follow(number)
    threading.Thread(target=_route, args=(came,), name="signals", daemon=True).start()


def let_end_all(call: Callable[[int], object]) -> None:
    """Have `call` told the number of a signal that asks all jobs to end, where at least one of them handles it."""
    global _end_all
    _end_all = call


def begin(job: context.JobContext) -> None:
    """The job gets signals."""
    _live.append(job)


def end(job: context.JobContext) -> None:
    """It gets none any more."""
    table = table_of(job)
    _live.remove(job)
    for number in {*table.handlers, *(OF_TIMERS[which] for which in table.timers)}:
        follow(number)
