"""How handlers of signals run: in their job's main thread, as the interpreter runs those of a process in its own.

Between two lines of what the thread computes; or in a wait of the interpreter, which goes on afterwards
(`native/handlers`). What one raises arrives there. Where the main thread stands still in any other wait, as at a door
or for memory, which plain python has not, a handler soon runs in a thread beside it, and the script goes on to no
further line before that has returned.
"""

from __future__ import annotations

import contextlib
import queue
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpushare.isolation import context, directory, exits, interrupts
from gpushare.isolation.perjob import PerJob
from gpushare.isolation.still import Stillness
from gpushare.native import handlers

_OURS = f"{Path(__file__).parent.parent}/"
_LOOK_S = 0.05
PATIENCE_S = 2.0  # with a thread that stands still


class Call:
    """A handler that is to run, or runs, or has."""

    def __init__(self, number: int, handler: Callable[..., object]) -> None:
        self.number, self.handler = int(number), handler
        self.done = threading.Event()


class _Calls:
    """Those of a job."""

    def __init__(self) -> None:
        self.waiting: deque[Call] = deque()
        self.beside: set[Call] = set()  # which run in threads of their own
        self.starts_beside = False
        self.threads_beside: set[int] = set()
        self.pauses: set[Any] = set()  # locks, of who waits for any of them
        self.waits = False  # the main thread, for those beside
        self.over = False  # what the job's modules have is about to go, or gone

    def take_beside(self) -> Call | None:
        """None: the main thread has taken what there was."""
        try:
            call = self.waiting[0]
            self.beside.add(call)  # first: it is never in neither
            self.waiting.remove(call)
        except IndexError:
            return None
        except ValueError:
            self.beside.discard(call)
            return None
        return call

    def finish(self, call: Call) -> None:
        """It has returned, or raised."""
        self.beside.discard(call)
        call.done.set()
        self.end_pauses()

    def end_pauses(self) -> None:
        """Who waits for a handler goes on."""
        for lock in list(self.pauses):
            with contextlib.suppress(KeyError):  # another thread has
                self.pauses.remove(lock)
                lock.release()


_calls: PerJob[_Calls] = PerJob(_Calls(), _Calls)
_asked: queue.SimpleQueue[context.JobContext] = queue.SimpleQueue()


def ask(job: context.JobContext, number: int, handler: Callable[..., object]) -> Call:
    """Have it run, unless one for the same signal is still to: signals of a kind do not queue. From any thread."""
    calls = _calls.of(job)
    for waiting in list(calls.waiting):
        if waiting.number == number:
            return waiting
    call = Call(number, handler)
    if calls.over:
        call.done.set()
        return call
    calls.waiting.append(call)
    handlers.ask(job.account, True)
    if calls.over:  # since
        handlers.ask(job.account, False)
        call.done.set()
    else:
        _asked.put(job)
    return call


def stands_for_main(job: context.JobContext) -> bool:
    """Whether the calling thread is the job's main one, or one beside it that runs a handler."""
    return threading.get_ident() in {job.thread_ident, *_calls.of(job).threads_beside}


def call_here(job: context.JobContext, call: Callable[[], object]) -> None:
    """Of a signal that the job's main thread sends to itself: before the next line, and what it raises comes there."""
    try:
        call()
    finally:
        _calls.of(job).end_pauses()


def wait_for_any(job: context.JobContext) -> None:
    """Until a handler has run."""
    calls, lock = _calls.of(job), threading.Lock()
    lock.acquire()
    calls.pauses.add(lock)
    try:
        lock.acquire(timeout=threading.TIMEOUT_MAX)  # a wait that can be ended
    finally:
        calls.pauses.discard(lock)


def finish(job: context.JobContext) -> None:
    """Run what is to run, and wait for what runs: the script can't end in the middle of a handler, whose checkpoint
    would be half a file. By the job's main thread.

    :raises BaseException: a handler's.
    """
    calls = _calls.of(job)
    while calls.waiting or calls.beside:
        _wait_for_those_beside(calls)
        try:
            call = calls.waiting.popleft()
        except IndexError:  # it has begun beside
            continue
        try:
            call.handler(call.number, sys._getframe())
        finally:
            calls.finish(call)


def _wait_for_those_beside(calls: _Calls) -> None:
    before, calls.waits = calls.waits, True
    try:
        for call in list(calls.beside):
            call.done.wait()
    finally:
        calls.waits = before


# Called by the shim, in a job's main thread.


def _ready() -> deque[Call] | None:
    job = context.current()
    if job is None:
        return None
    handlers.ask(job.account, False)
    calls = _calls.of(job)
    # What it starts during such an import would be everybody's; in its wait for others it goes on to none. Asked for
    # anew, until that is over.
    if calls.waits or context.importing_shared():
        return None
    _wait_for_those_beside(calls)
    return calls.waiting


def _finished(call: Call) -> None:
    if job := context.current():
        _calls.of(job).finish(call)


def _forward(error: BaseException) -> None:
    if job := context.current():
        _send(job, error)


def _send(job: context.JobContext, error: BaseException) -> None:
    if isinstance(error, exits.HardExit):
        interrupts.send(job, exits.HardExit, error.code, ends_waits=True, for_good=True)
        return
    # An error the script may catch, and go on. It comes once a call into C is over, as a wait for memory is.
    interrupts.send(job, type(error), *error.args, ends_waits=not isinstance(error, Exception))


# In threads of the host's.


def _watch() -> None:
    looked_at: dict[context.JobContext, Stillness] = {}
    while True:
        try:
            job = _asked.get(timeout=_LOOK_S if looked_at else None)
            looked_at.setdefault(job, Stillness(job.thread.native_id))
        except queue.Empty:
            for job, stillness in list(looked_at.items()):
                try:
                    goes_on = _look(job, stillness)
                except Exception:  # into the host's log: other jobs count on this thread
                    traceback.print_exc(file=sys.__stderr__)
                    goes_on = False
                if not goes_on:
                    del looked_at[job]


def _look(job: context.JobContext, stillness: Stillness) -> bool:
    """Whether there is anything to look at."""
    calls = _calls.of(job)
    if calls.over or interrupts.ends(job) or not (calls.waiting or calls.beside):
        return False
    handlers.ask(job.account, True)  # a script may have taken away what told of its lines
    if calls.over:  # since
        handlers.ask(job.account, False)
        return False
    if stillness.for_s() > PATIENCE_S and calls.waiting and not calls.starts_beside:
        calls.starts_beside = True
        # While the job's memory is copied out its threads can't start, and others are to be looked at as well.
        threading.Thread(target=_start_beside, args=(job,), name="signal", daemon=True).start()
    return True


def _start_beside(job: context.JobContext) -> None:
    thread = threading.Thread(target=_run_beside, args=(job,), name="signal", daemon=True)
    context.bind(job)  # a thread belongs to the job that starts it
    try:
        thread.start()
    except BaseException:
        _calls.of(job).starts_beside = False
        raise


def _run_beside(job: context.JobContext) -> None:
    directory.follow(job)  # that of the starting thread is the host's
    calls = _calls.of(job)
    call = calls.take_beside()
    calls.starts_beside = False
    if call is None:
        return
    calls.threads_beside.add(threading.get_ident())
    try:
        call.handler(call.number, sys._current_frames().get(job.thread_ident))
    except BaseException as error:
        # At its end it may only have missed what has gone meanwhile, and nobody is there to be told.
        if not calls.over:
            _send(job, error)
    finally:
        calls.threads_beside.discard(threading.get_ident())
        calls.finish(call)


def install() -> None:
    """Have the shim call what is here. Main thread only."""
    handlers.begin(_ready, _finished, _forward, _OURS)
    threading.Thread(target=_watch, name="handlers", daemon=True).start()


def enter(job: context.JobContext) -> None:
    """The calling thread is the job's main one."""
    handlers.follow(job.account, runs=True)


def leave(job: context.JobContext) -> None:
    """None is called any more. It may be called twice."""
    calls = _calls.of(job)
    calls.over = True
    with interrupts.held_back():
        handlers.follow(job.account, runs=False)
        for call in list(calls.waiting):
            call.done.set()
        calls.waiting.clear()


def forget_in_child(job: context.JobContext) -> None:
    """In a forked child, whose signals are handled by the interpreter: what was to run was the parent's."""
    calls = _calls.of(job)
    calls.waiting.clear()
    calls.beside.clear()
    calls.pauses.clear()
    handlers.forget_in_child(job.account)
