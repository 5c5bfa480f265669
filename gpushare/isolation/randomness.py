"""`random` and the legacy functions of `numpy.random` per job. Torch's generators are in `framework/generators.py`.

Both keep one hidden object whose methods are the module's functions. It becomes a stand-in that passes every
draw on to the calling job's own object, which starts as a fresh interpreter's does: from the system's entropy.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

from gpushare.isolation import context
from gpushare.isolation.perjob import PerJob
from gpushare.isolation.replace import replace_everywhere

_host_inst: Any = random._inst
_here: Any = context.here
_python: PerJob[random.Random] = PerJob(random.Random(), random.Random)
_numpy: PerJob[Any] | None = None


class _StandIn(random.Random):
    """The five functions that all others of `random.Random` draw from, and the kept second normal number."""

    def random(self) -> float:
        try:
            drawn: float = _here.job.python_random.random()
        except AttributeError:  # no job
            drawn = _python.get().random()
        return drawn

    def getrandbits(self, k: int, /) -> int:
        try:
            bits: int = _here.job.python_random.getrandbits(k)
        except AttributeError:
            bits = _python.get().getrandbits(k)
        return bits

    def seed(self, *args: Any, **kwargs: Any) -> None:
        _python.get().seed(*args, **kwargs)

    def getstate(self) -> tuple[Any, ...]:
        return _python.get().getstate()

    def setstate(self, state: tuple[Any, ...]) -> None:
        _python.get().setstate(state)

    @property
    def gauss_next(self) -> float | None:
        own: Any = _python.get()
        value: float | None = own.gauss_next
        return value

    @gauss_next.setter
    def gauss_next(self, value: float | None) -> None:
        own: Any = _python.get()
        own.gauss_next = value


def _install_python() -> None:
    old = {n: f for n, f in vars(random).items() if getattr(f, "__self__", None) is _host_inst}
    _python.host.setstate(_host_inst.getstate())
    _host_inst.__class__ = _StandIn
    _host_inst.__dict__.pop("gauss_next", None)  # the class has it now
    replace_everywhere([(f, getattr(_host_inst, n)) for n, f in old.items()], but=__name__)


def _install_numpy() -> None:
    global _numpy
    try:
        from numpy.random import RandomState, mtrand
    except ImportError:
        return
    hidden: Any = mtrand._rand
    per_job = _numpy = PerJob(hidden, RandomState)

    class StandIn(RandomState):
        def __getattribute__(self, name: str) -> Any:
            return StandIn if name == "__class__" else getattr(per_job.get(), name)

    def passing_on(name: str) -> Callable[..., Any]:
        def draw(*args: Any, **kwargs: Any) -> Any:
            return getattr(per_job.get(), name)(*args, **kwargs)

        original = getattr(hidden, name)
        draw.__name__ = draw.__qualname__ = name
        draw.__doc__ = original.__doc__
        return draw

    functions = {n: f for n, f in vars(mtrand).items() if getattr(f, "__self__", None) is hidden}
    replace_everywhere(
        [*((f, passing_on(n)) for n, f in functions.items()), (hidden, StandIn())], but=__name__
    )


def _after_fork_in_child() -> None:
    # As `random` does for its own object.
    if job := context.current():
        _python.of(job).seed()


def install() -> None:
    """Put the stand-ins in place."""
    _install_python()
    _install_numpy()
    os.register_at_fork(after_in_child=_after_fork_in_child)


def enter(job: context.JobContext) -> None:
    """A fresh interpreter's state."""
    job.python_random = _python.of(job)
    if _numpy:
        _numpy.of(job)


def leave(job: context.JobContext) -> None:
    """Nothing: the objects go with the context."""
