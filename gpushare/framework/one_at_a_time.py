"""What torch has one of per process, and jobs can only have one after the other."""

from __future__ import annotations

import threading
import time

from gpushare.isolation import context, interrupts


class OneAtATime:
    """Belongs to a job as long as one of its threads is in it, as often as it was begun.

    Who waits sleeps, so its memory may be copied out for who has it. Locks that it holds stay its own, and another job
    may need them to be through: so nobody waits for ever.
    """

    def __init__(self, what: str, ended: str) -> None:
        """:param what: "torch has one ... per process"; `ended`: "until the other job ..."."""
        self._what, self._ended = what, ended
        self._lock = interrupts.whole(threading.Lock())
        self._owner: context.JobContext | None = None
        self._depth = 0
        self._waiters: list[threading.Lock] = []  # each is let go of when there is no owner any more

    def begin(self, job: context.JobContext, longest_s: float) -> None:
        """Again, or once no other job is in it.

        :raises RuntimeError: that took longer.
        """
        told: context.JobContext | None = None
        until_s = time.monotonic() + longest_s
        while True:
            with self._lock:
                owner = self._owner
                if owner is None or owner is job:
                    self._owner = job
                    self._depth += 1
                    return
                waiter = threading.Lock()
                waiter.acquire()
                self._waiters.append(waiter)
            if told is not owner:
                told = owner
                job.note(
                    f"{job.name} waits until {owner.name} {self._ended}: torch has one {self._what} per process"
                )
            if not waiter.acquire(timeout=max(0.0, until_s - time.monotonic())):
                raise RuntimeError(
                    f"torch has one {self._what} per process, and {owner.name}, in the same run of gpushare, has had "
                    f"it for {longest_s:.0f} s; use it in one script at a time"
                )

    def is_of(self, job: context.JobContext) -> bool:
        """Whether the job is in it."""
        return self._owner is job

    def end(self, job: context.JobContext, *, all_of_it: bool = False) -> bool:
        """Whether the job was in it; once, or whatever it has begun."""
        with self._lock:
            if self._owner is not job:
                return False
            self._depth = 0 if all_of_it else self._depth - 1
            if self._depth == 0:
                self._owner = None
                waiters, self._waiters = self._waiters, []
                for waiter in waiters:
                    waiter.release()
            return True
