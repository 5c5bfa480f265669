"""A setting of which the process has one for all jobs: the first time that jobs differ in it, they are named."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from functools import wraps
from typing import Any

from gpushare.isolation import context

# Torch's compiler sets some while it is at work. Nobody has asked for that, so nobody is told.
_COMPILER = ("torch._functorch.", "torch._inductor.")
_BETWEEN = ("gpushare.", "torch.autograd.")  # modules through whose functions a setter is called
live: list[context.JobContext] = []  # jobs whose wishes count
_all: list[Switch] = []


def enter(job: context.JobContext) -> None:
    """From now on the job's wishes count; what another job has set before it came is told too."""
    live.append(job)
    for switch in list(_all):
        switch.tell_all()


def leave(job: context.JobContext) -> None:
    """They no longer do."""
    live.remove(job)


def _set_by_compiler() -> bool:
    """Whether who calls a setter, or a function that does, is a module of torch's compiler."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame and _name(frame).startswith(_BETWEEN):
        frame = frame.f_back
    return frame is not None and _name(frame).startswith(_COMPILER)


def _name(frame: types.FrameType) -> str:
    return str(frame.f_globals.get("__name__"))


class Switch:
    """Watches one setting. When the last job that set it has ended, it goes back to the host's value.

    :param restore: sets a value that `getter` gave, where `setter` takes it otherwise.
    """

    def __init__(
        self,
        title: str,
        setter: Callable[..., Any],
        getter: Callable[[], Any],
        restore: Callable[[Any], Any] | None = None,
    ) -> None:
        self.title, self._setter, self._getter, self._restore = title, setter, getter, restore or setter
        self.host = getter()
        self._wanted: dict[context.JobContext, Any] = {}
        self._unasked: set[context.JobContext] = set()  # for whom the compiler has set it
        self._told = False
        _all.append(self)

    def set(self, *args: Any, **kwargs: Any) -> Any:
        """As the setter; tells the first time that jobs disagree."""
        result = self._setter(*args, **kwargs)
        job = context.current()
        if job and context.in_host():
            if _set_by_compiler():
                self._unasked.add(job)
            else:
                self._wanted[job] = self._getter()
                self._tell(job)
        return result

    def tell_all(self) -> None:
        """As if each job that has set it did so now."""
        for job in list(self._wanted):
            self._tell(job)

    def _tell(self, job: context.JobContext) -> None:
        value = self._wanted.get(job, self.host)
        others = [o for o in live if o is not job and self._wanted.get(o, self.host) != value]
        if others and not self._told:
            self._told = True
            names = ", ".join(f"{o.name} ({self._wanted.get(o, self.host)})" for o in others)
            job.note(
                f"{job.name} sets {self.title} to {value}; there is one value for the whole process, so it "
                f"holds for {names} too. Run jobs that differ in it one after the other"
            )

    def function(self) -> Callable[..., Any]:
        """`set` as a plain function with the setter's name: torch's compiler sorts functions by their kind."""

        @wraps(self._setter)
        def watched(*args: Any, **kwargs: Any) -> Any:
            return self.set(*args, **kwargs)

        return watched

    def leave(self, job: context.JobContext) -> None:
        """The job's wish no longer counts."""
        if job not in self._wanted and job not in self._unasked:
            return
        self._wanted.pop(job, None)
        self._unasked.discard(job)
        if not self._wanted and not self._unasked and self._getter() != self.host:
            self._restore(self.host)
