"""Which loggers there are, per job: the objects are shared (`log_state`), but not that another script has made one.

`logging.config.dictConfig` disables all loggers that exist and that it does not name, and scripts ask whether one
exists before they give it handlers.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from typing import Any

from gpushare.isolation import context
from gpushare.isolation.perjob import PerJob


class _Loggers(dict[str, Any]):
    """Stands for `logging.root.manager.loggerDict`. `logging` itself sees all that is in it."""

    def __init__(self, host: dict[str, Any]) -> None:
        super().__init__(host)
        self._of_scripts: set[str] = set()
        self._asked_for: PerJob[set[str]] = PerJob(set(), set)
        self._all = threading.local()

    def get_logger(self, get: Any, manager: Any, name: str) -> Any:
        """`Manager.getLogger`, after which the job knows the logger."""
        self._all.are_seen = True
        try:
            is_new = not isinstance(self.get(name), logging.Logger)
            logger = get(manager, name)
        finally:
            self._all.are_seen = False
        if context.current() is not None:
            if self._is_of_ended_job(name, logger):
                logger.__class__ = logging.getLoggerClass()  # as if this one had made it
            if is_new and not context.importing_shared():
                self._of_scripts.add(name)
            self._asked_for.get().add(name)
        return logger

    def _is_of_ended_job(self, name: str, logger: Any) -> bool:
        """Or of one that had no class of its own; the calling job has not asked for it yet."""
        is_unknown = name in self._of_scripts and name not in self._asked_for.get()
        return is_unknown and type(logger) is logging.Logger and not context.importing_shared()

    def _is_hidden(self, name: object) -> bool:
        if name not in self._of_scripts or getattr(self._all, "are_seen", False):
            return False
        return context.current() is not None and name not in self._asked_for.get()

    def _seen(self) -> dict[str, Any]:
        return {name: logger for name, logger in list(dict.items(self)) if not self._is_hidden(name)}

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) and not self._is_hidden(name)

    def get(self, name: Any, default: Any = None) -> Any:
        return default if self._is_hidden(name) else super().get(name, default)

    def __iter__(self) -> Iterator[str]:
        return iter(self._seen())

    def __len__(self) -> int:
        return len(self._seen())

    def keys(self) -> Any:
        return self._seen().keys()

    def values(self) -> Any:
        return self._seen().values()

    def items(self) -> Any:
        return self._seen().items()

    def copy(self) -> dict[str, Any]:
        return self._seen()


def install() -> None:
    """Replace the table, and note who asks for what."""
    manager = logging.Logger.manager
    loggers = manager.loggerDict = _Loggers(manager.loggerDict)
    kind: Any = logging.Manager
    get = kind.getLogger

    def get_logger(self: logging.Manager, name: str) -> logging.Logger:
        if self.loggerDict is not loggers:  # a script's own manager
            own: logging.Logger = get(self, name)
            return own
        found: logging.Logger = loggers.get_logger(get, self, name)
        return found

    kind.getLogger = get_logger


def enter(job: context.JobContext) -> None:
    """Nothing: it has asked for none."""


def leave(job: context.JobContext) -> None:
    """Nothing: what it has asked for goes with it."""
