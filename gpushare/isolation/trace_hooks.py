"""`threading.settrace` and `setprofile`: what threads that a job starts are traced by.

`threading` hands each new thread one function for all, which it reads from its own names. While a job has one, that is
a function that asks, with the thread's first event, whose the thread is; and where it is nobody's, takes itself away.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

from gpushare.isolation import context
from gpushare.isolation.perjob import PerJob

_Hook = Callable[..., Any] | None
_threading: Any = threading


class _Kind:
    """Of tracing, or of profiling."""

    def __init__(self, what: str, set_in_thread: Callable[[Any], None]) -> None:
        self._name = f"_{what}_hook"
        self._set_in_thread = set_in_thread
        self._hooks: PerJob[_Hook] = PerJob(getattr(threading, self._name), None)
        self._having: set[context.JobContext] = set()

    def set(self, function: _Hook) -> None:
        """For threads that the calling job, or the host, starts from now on."""
        self._hooks.set(function)
        if job := context.current():
            self._having.add(job)
        self._hand_out()

    def get(self) -> _Hook:
        """The calling job's; None if there is none."""
        return self._hooks.get()

    def set_in_all(self, function: _Hook) -> None:
        """As `set`, and for the calling thread: the interpreter would do it in those of all jobs."""
        self.set(function)
        self._set_in_thread(function)

    def drop(self, job: context.JobContext) -> None:
        """The job has ended."""
        self._having.discard(job)
        self._hand_out()

    def _hand_out(self) -> None:
        setattr(threading, self._name, self._first_event if self._having else self._hooks.host)

    def _first_event(self, *event: Any) -> Any:
        own = self._hooks.get()
        self._set_in_thread(own)
        return own(*event) if own else None


_traces, _profiles = _Kind("trace", sys.settrace), _Kind("profile", sys.setprofile)


def install() -> None:
    """Replace the functions."""
    _threading.settrace, _threading.gettrace = _traces.set, _traces.get
    _threading.setprofile, _threading.getprofile = _profiles.set, _profiles.get
    if sys.version_info >= (3, 12):
        _threading.settrace_all_threads = _traces.set_in_all
        _threading.setprofile_all_threads = _profiles.set_in_all


def enter(job: context.JobContext) -> None:
    """Nothing: a job begins with the host's."""


def leave(job: context.JobContext) -> None:
    """Threads of others are not to be traced by what is no more."""
    for kind in (_traces, _profiles):
        kind.drop(job)
