"""`logging` per job: handlers, levels, filters, propagation of every logger, also of those that jobs share.

The logger objects stay the ones that libraries hold; what a script can set on them is kept per job. A shared
module that configures its loggers when it is imported does so for all jobs.
"""

from __future__ import annotations

import copy
import logging
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from gpushare.isolation import context, stdio
from gpushare.isolation.perjob import PerJob
from gpushare.native import shim


class _Attribute:
    """An attribute of a logger, per job; a job begins with what the host has."""

    def __init__(self, name: str, default: Callable[[], Any]) -> None:
        self._name, self._default = name, default

    def __get__(self, owner: Any, kind: type) -> Any:
        if owner is None:
            return self
        job = _job()
        if job is None:
            return self._of_host(owner)
        try:
            return job.values[self, owner]
        except KeyError:
            return job.values.setdefault((self, owner), copy.copy(self._of_host(owner)))

    def __set__(self, owner: Any, value: Any) -> None:
        job = _job()
        if job is None:
            vars(owner)[self._name] = value
        else:
            job.values[self, owner] = value

    def _of_host(self, owner: Any) -> Any:
        try:
            return vars(owner)[self._name]
        except KeyError:
            return vars(owner).setdefault(self._name, self._default())


class _Handlers:
    """Stands for `logging._handlerList`: the handlers that are flushed and closed at the end."""

    def __init__(self, host: list[Any]) -> None:
        self.lists: PerJob[list[Any]] = PerJob(host, list, imports_set_all=True)

    def append(self, item: Any) -> None:
        self.lists.get().append(item)

    def remove(self, item: Any) -> None:
        self.lists.get().remove(item)

    def __getitem__(self, index: Any) -> Any:
        return self.lists.get()[index]

    def __delitem__(self, index: Any) -> None:
        del self.lists.get()[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.lists.get())

    def __len__(self) -> int:
        return len(self.lists.get())


class _Names:
    """Stands for `logging._handlers`: handlers by name."""

    def __init__(self, host: Any) -> None:
        self._maps: PerJob[Any] = PerJob(host, weakref.WeakValueDictionary, imports_set_all=True)

    def __getitem__(self, name: str) -> Any:
        return self._maps.get()[name]

    def __setitem__(self, name: str, handler: Any) -> None:
        self._maps.get()[name] = handler

    def __delitem__(self, name: str) -> None:
        del self._maps.get()[name]

    def __contains__(self, name: object) -> bool:
        return name in self._maps.get()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._maps.get(), name)


_handlers: _Handlers


def _job() -> context.JobContext | None:
    return None if context.importing_shared() else context.current()


def _guard_waiting() -> None:
    """A handler's lock is wanted by all jobs that share it: nobody waits for memory with it in hand."""
    kind: Any = logging.Handler
    acquire, release = kind.acquire, kind.release

    def acquire_guarded(self: logging.Handler) -> None:
        acquire(self)
        shim.nowait(1)

    def release_guarded(self: logging.Handler) -> None:
        shim.nowait(-1)
        release(self)

    kind.acquire, kind.release = acquire_guarded, release_guarded


def _redirect_handlers() -> None:
    """What a module that was imported before any job (torch) writes goes to the job that logs."""
    for handler in [reference() for reference in vars(logging)["_handlerList"]]:
        stream = vars(handler).get("stream") if handler else None
        for name in ("stdout", "stderr"):
            if stream is stdio.host_stream(name):
                handler.stream = stdio.proxy(name)


def install() -> None:
    """Replace the attributes of the classes, and the two registries of handlers."""
    global _handlers
    _guard_waiting()
    _redirect_handlers()
    for kind, name, default in (
        (logging.Filterer, "filters", list),
        (logging.Logger, "handlers", list),
        (logging.Logger, "_cache", dict),
        (logging.Logger, "level", lambda: logging.NOTSET),
        (logging.Logger, "propagate", lambda: True),
        (logging.Logger, "disabled", lambda: False),
        (logging.Manager, "_disable", lambda: 0),
    ):
        setattr(kind, name, _Attribute(name, default))
    names: Any = logging
    _handlers = names._handlerList = _Handlers(names._handlerList)
    names._handlers = _Names(names._handlers)


def enter(job: context.JobContext) -> None:
    """Nothing: state is copied when it is first asked for."""


def leave(job: context.JobContext) -> None:
    """Flush and close the job's handlers, as the interpreter does at its end."""
    logging.shutdown(_handlers.lists.of(job))
