"""The end of a script per job: `atexit`, `weakref.finalize`, `os._exit`."""

from __future__ import annotations

import atexit
import operator
import os
import sys
import threading
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn

from gpushare.isolation import context, interrupts, system
from gpushare.isolation.perjob import PerJob

_register, _unregister, _hard_exit = atexit.register, atexit.unregister, os._exit
_finalizers: PerJob[list[Any]] = PerJob([], list)


class HardExit(BaseException):
    """`os._exit`, or a signal that would end the process, inside a job: only the job ends, without handlers."""

    def __init__(self, code: int = 1) -> None:
        super().__init__(code)
        self.code = code


def end_job(job: context.JobContext, code: int) -> None:
    """End a job from any thread.

    :raises HardExit: in the job's main thread.
    """
    if threading.get_ident() == job.thread_ident:
        raise HardExit(code)
    interrupts.send(job, HardExit, code, ends_waits=True, for_good=True)


def register(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Callable[..., Any]:
    """As `atexit.register`, for the calling job."""
    job = context.current()
    if job is None or not context.in_host() or context.importing_shared():
        return _register(function, *args, **kwargs)
    job.at_exit.append(partial(function, *args, **kwargs))
    return function


def unregister(function: Callable[..., Any]) -> None:
    """As `atexit.unregister`, for the calling job."""
    job = context.current()
    if job is None or not context.in_host():
        _unregister(function)
        return
    job.at_exit[:] = [f for f in job.at_exit if getattr(f, "func", None) != function]


def run_handlers(job: context.JobContext) -> None:
    """Last registered first; what a handler raises is told and changes nothing."""
    while job.at_exit:
        handler = job.at_exit.pop()
        try:
            handler()
        except HardExit:
            raise
        except BaseException as error:  # SystemExit too, as under plain python
            system.ignore(error, "Exception ignored in atexit callback", getattr(handler, "func", handler))


def end_process(code: int) -> NoReturn:
    """`os._exit` itself."""
    _hard_exit(code & 0xFF)


def _exit_now(status: int) -> None:
    job = context.current()
    if job is None or not context.in_host():
        _hard_exit(status)
        return
    code = _c_int(status)
    job.note(f"{job.name} called os._exit({code}): only this job ends")
    end_job(job, code & 0xFF)  # of which the system keeps no more


def _c_int(status: int) -> int:
    """As `os._exit` reads it.

    :raises TypeError: it is no integer.
    :raises OverflowError: it is too large for one.
    """
    code = operator.index(status)
    if not -(1 << 31) <= code < 1 << 31:
        raise OverflowError("Python int too large to convert to C int")
    return code


def _run_finalizers(job: context.JobContext) -> None:
    mine = _finalizers.of(job)
    while mine:  # a finalizer can make others
        finalizer = mine.pop()
        if finalizer.alive and finalizer.atexit:
            try:
                finalizer()
            except Exception:
                sys.excepthook(*sys.exc_info())


def _wrap_finalize() -> None:
    kind: Any = weakref.finalize
    kind._registered_with_atexit = True  # what the host has is never run: it ends at once
    original = kind.__init__

    def start(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        job = context.current()
        if job and context.in_host() and not context.importing_shared():
            _finalizers.of(job).append(self)

    kind.__init__ = start


def install() -> None:
    """Replace the functions."""
    atexit.register, atexit.unregister = register, unregister
    module: Any = os
    module._exit = _exit_now
    _wrap_finalize()


def enter(job: context.JobContext) -> None:
    """Finalizers come after the handlers, as in a program that imports torch first."""
    job.at_exit.append(partial(_run_finalizers, job))


def leave(job: context.JobContext) -> None:
    """The handlers have run by now, or never do: after `os._exit`."""
    job.at_exit.clear()
