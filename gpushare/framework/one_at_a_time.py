"""What torch has one of per process, and jobs can only have one after the other."""

from __future__ import annotations

import threading
import time

from gpushare.isolation import context


class OneAtATime:
    """Belongs to a job as long as one of its threads is in it. Who waits sleeps, so its memory may be copied out."""

    def __init__(self, what: str, ended: str) -> None:
        """:param what: "torch has one ... per process"; `ended`: "until the other job ..."."""
        self._what, self._ended = what, ended
        self._changed = threading.Condition()
        self._owner: context.JobContext | None = None
        self._depth = 0

    def begin(self, job: context.JobContext, *, longest_s: float | None = None) -> None:
        """Again, or once no other job is in it.

        :raises RuntimeError: that took too long.
        """
        told: context.JobContext | None = None
        until_s = None if longest_s is None else time.monotonic() + longest_s
        with self._changed:
            while (owner := self._owner) is not None and owner is not job:
                if told is not owner:
                    told = owner
                    job.note(
                        f"{job.name} waits until {owner.name} {self._ended}: torch has one {self._what} per process"
                    )
                if until_s is not None and time.monotonic() >= until_s:
                    raise RuntimeError(
                        f"torch has one {self._what} per process, and {owner.name}, in the same run of gpushare, has "
                        f"it for more than {longest_s:.0f} s; use it in one script at a time"
                    )
                self._changed.wait(None if until_s is None else until_s - time.monotonic())
            self._owner = job
            self._depth += 1

    def end(self, job: context.JobContext, *, all_of_it: bool = False) -> bool:
        """Whether the job was in it; once, or whatever it has begun."""
        with self._changed:
            if self._owner is not job:
                return False
            self._depth = 0 if all_of_it else self._depth - 1
            if self._depth == 0:
                self._owner = None
                self._changed.notify_all()
            return True
