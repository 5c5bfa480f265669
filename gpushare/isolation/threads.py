"""Threads that a job starts work for that job: account, random numbers, streams, autograd flag.

Identity follows work: what a job submits to an executor runs for that job, whoever started the executor's
thread. A job sees its own threads only, and its first thread is its main thread.
"""

from __future__ import annotations

import _thread
import concurrent.futures.process
import concurrent.futures.thread
import itertools
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from gpushare.isolation import context, interrupts
from gpushare.isolation.perjob import PerJob

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
        if job and not context.importing_shared():
            self._gpushare_job = job  # in a forked child too, which has the job's state
        start(self)

    def bootstrap_for_job(self: Any) -> None:
        job = getattr(self, "_gpushare_job", None)
        if job is None:
            bootstrap(self)
            return
        job.threads[id(self)] = self
        _enter(job)
        try:
            bootstrap(self)
        finally:
            _leave()
            del job.threads[id(self)]  # with all that it holds

    _threading.Thread.start = start_for_job
    _threading.Thread._bootstrap_inner = bootstrap_for_job


class _Body:
    """What a thread without an object runs for its job; in messages it is the function."""

    def __init__(self, job: context.JobContext, function: Callable[..., object]) -> None:
        self._job, self._function = job, function

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        _enter(self._job)
        try:
            self._function(*args, **kwargs)
        finally:
            _leave()

    def __repr__(self) -> str:
        return repr(self._function)


def _wrap_raw_threads() -> None:
    # `threading` has a name of its own for it.
    start: Any = _thread.start_new_thread

    def start_for_job(function: Callable[..., object], *args: Any) -> int:
        job = context.current()
        if job is None or context.importing_shared() or not callable(function):
            return int(start(function, *args))
        return int(start(_Body(job, function), *args))

    raw: Any = _thread
    raw.start_new_thread = raw.start_new = start_for_job


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
    return [job.thread, *(t for t in list(job.threads.values()) if t.is_alive())]


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
    _wrap_raw_threads()
    _wrap_executor()
    _wrap_lists()
    add_managers(concurrent.futures.process._threads_wakeups, _shut_down)


_queues: Any = concurrent.futures.thread._threads_queues  # by thread, of executors of threads
# The same of processes, and how their executors end: at once, or when all is done.
_managers: list[tuple[Any, Callable[[Any, bool], object]]] = []


def add_managers(managers: Any, shut_down: Callable[[Any, bool], object]) -> None:
    """Threads that look after executors of processes end when their job does.

    :param managers: a dictionary by thread.
    :param shut_down: ends an executor: when all that was submitted is done (True), or at once.
    """
    _managers.append((managers, shut_down))


def _shut_down(executor: Any, wait: bool) -> None:
    executor.shutdown(wait=wait, cancel_futures=not wait)


def finish(job: context.JobContext) -> None:
    """Wait as the interpreter does at its end: for what was submitted, and for threads that are no daemons, also
    for those that these start.

    An executor's threads serve whoever submits, maybe other jobs: they are told to end if nobody needs them.
    """
    while True:
        for future in _submitted(job):
            _wait_for(future)
        _end_executors(job)
        left = [t for t in _others(job) if not t.daemon and not _is_of_executor(t)]
        if not left:
            return
        for thread in left:
            thread.join()


def _submitted(job: context.JobContext) -> list[Any]:
    futures: Any = _futures.of(job)
    # The set of references in one step: other threads of the job may submit meanwhile.
    return [future for reference in set(futures.data) if (future := reference()) is not None]


def _wait_for(future: Any) -> None:
    """Until it is done or cancelled. `concurrent.futures.wait` is not told of a cancelled one that nobody takes up."""
    done = threading.Event()
    future.add_done_callback(lambda _: done.set())
    done.wait()


def _others(job: context.JobContext) -> list[threading.Thread]:
    return [t for t in list(job.threads.values()) if t.is_alive() and t is not threading.current_thread()]


def _is_of_executor(thread: threading.Thread) -> bool:
    return thread in _queues or any(thread in managers for managers, _ in _managers)


def _end_executors(job: context.JobContext, *, wait: bool = True) -> None:
    thread: Any
    for thread in _others(job):
        if thread in _queues:
            _queues[thread].put(None)
        for managers, shut_down in _managers:
            if thread in managers and (executor := thread.executor_reference()):
                shut_down(executor, wait)


def enter(job: context.JobContext) -> None:
    """The calling thread is the job's main thread, and is named so."""
    job.thread.name = "MainThread"


def leave(job: context.JobContext) -> None:
    """Ask the threads that are left to end: daemons, and all after `os._exit`; plain python ends them with the process.

    What was submitted and has not begun never does.
    """
    for future in _submitted(job):
        future.cancel()
    _end_executors(job, wait=False)
    for thread in _others(job):
        if thread.ident and not _is_of_executor(thread) and not getattr(thread, "_gpushare_ends", False):
            interrupts.raise_in(thread.ident, SystemExit)
