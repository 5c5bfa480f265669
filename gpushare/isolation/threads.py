"""Threads that a job starts work for that job: account, random numbers, streams, autograd flag.

Identity follows work: what a job submits to an executor runs for that job, whoever started the executor's
thread. A job sees its own threads only, and its first thread is its main thread.
"""

from __future__ import annotations

import concurrent.futures.process
import concurrent.futures.thread
import itertools
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from gpushare.isolation import context
from gpushare.isolation.perjob import PerJob
from gpushare.native import interpreter

Enter = Callable[[context.JobContext], None]
_threading: Any = threading
_thread_numbers: PerJob[Iterator[int]] = PerJob(itertools.count(1), lambda: itertools.count(1))
_pool_numbers: PerJob[Iterator[int]] = PerJob(itertools.count(), itertools.count)
_futures: PerJob[weakref.WeakSet[Any]] = PerJob(weakref.WeakSet(), weakref.WeakSet)
_enter: Enter
_leave: Callable[[], None]


def _wrap_thread() -> None:
    start, bootstrap = _threading.Thread.start, _threading.Thread._bootstrap_inner

    def start_for_job(self: Any) -> None:
        job = context.current()
        # What a shared module starts when it is imported works for all.
        if job and context.in_host() and not context.importing_shared():
            self._gpushare_job = job
            job.threads.append(self)
        start(self)

    def bootstrap_for_job(self: Any) -> None:
        job = getattr(self, "_gpushare_job", None)
        if job is None:
            bootstrap(self)
            return
        _enter(job)
        try:
            bootstrap(self)
        finally:
            _leave()

    _threading.Thread.start = start_for_job
    _threading.Thread._bootstrap_inner = bootstrap_for_job


def _wrap_executor() -> None:
    kind: Any = concurrent.futures.ThreadPoolExecutor
    submit = kind.submit

    def submit_for_job(self: Any, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        job = context.current()
        if job is None or not context.in_host():
            return submit(self, function, *args, **kwargs)
        future = submit(self, _Task(job, function), *args, **kwargs)
        _futures.of(job).add(future)
        return future

    kind.submit = submit_for_job
    kind._counter = staticmethod(lambda: next(_pool_numbers.get()))


class _Task:
    """A call that runs for the job that submitted it."""

    def __init__(self, job: context.JobContext, function: Any) -> None:
        self._job, self._function = job, function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        before = context.current()
        if before is self._job:
            return self._function(*args, **kwargs)
        _enter(self._job)
        try:
            return self._function(*args, **kwargs)
        finally:
            if before is None:
                _leave()
            else:
                _enter(before)


def _new_name(template: str = "Thread-%d") -> str:
    return template % next(_thread_numbers.get())


def _mine(job: context.JobContext) -> list[threading.Thread]:
    return [job.thread, *(t for t in job.threads if t is not job.thread and t.is_alive())]


def _wrap_lists() -> None:
    enumerate_, main_thread = threading.enumerate, threading.main_thread

    def seen() -> list[threading.Thread]:
        job = context.current()
        return enumerate_() if job is None or not context.in_host() else _mine(job)

    def count() -> int:
        return len(seen())

    def main() -> threading.Thread:
        job = context.current()
        return main_thread() if job is None or not context.in_host() else job.thread

    _threading.enumerate = seen
    _threading.active_count = _threading.activeCount = count
    _threading.main_thread = main
    _threading._newname = _new_name


def install(enter: Enter, leave: Callable[[], None]) -> None:
    """`enter(job)` and `leave()` run in each new thread of a job, around all that it does."""
    global _enter, _leave
    _enter, _leave = enter, leave
    _wrap_thread()
    _wrap_executor()
    _wrap_lists()


def finish(job: context.JobContext) -> None:
    """Wait as the interpreter does at its end: for what was submitted, and for threads that are no daemons.

    An executor's threads serve whoever submits, maybe other jobs: they are told to end if nobody needs them.
    """
    concurrent.futures.wait(list(_futures.of(job)))
    queues: Any = concurrent.futures.thread._threads_queues
    managers: Any = concurrent.futures.process._threads_wakeups
    thread: Any
    for thread in list(job.threads):
        if thread in managers:
            if executor := thread.executor_reference():
                executor.shutdown()
        elif thread in queues:
            queues[thread].put(None)
        elif not thread.daemon and thread is not threading.current_thread():
            thread.join()


def enter(job: context.JobContext) -> None:
    """The calling thread is the job's main thread, and is named so."""
    job.thread.name = "MainThread"


def leave(job: context.JobContext) -> None:
    """Ask the daemon threads that are left to end; plain python ends them with the process."""
    for thread in job.threads:
        if thread.is_alive() and thread.daemon and thread.ident:
            interpreter.set_async_exception(thread.ident, SystemExit)
