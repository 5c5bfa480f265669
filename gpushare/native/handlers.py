"""Handlers of signals, called in the main thread of a job between two lines or in a wait: see `shim/src/handlers.h`.

From Python 3.12 on `sys.monitoring` tells of lines, in all threads, while any job asks for that.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable
from typing import Any

from gpushare.native.library import NativeError, quick

_monitoring: Any = getattr(sys, "monitoring", None)
_TOOLS = (4, 3)  # that Python has no name for


class _Lines:
    """Events at lines, at jumps within one and where functions begin."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asking: set[int] = set()  # accounts
        self._tool: int | None = None
        self._callback: Any = None

    def ask(self, account: int, wanted: bool) -> None:
        """Again and again, if need be. Nothing is raised from another thread in the middle of it."""
        thread = threading.get_ident()
        sections = quick["gs_held_sections"](thread)
        try:
            quick["gs_hold_back"](thread)
            with self._lock:
                (self._asking.add if wanted else self._asking.discard)(account)
                if self._asking and self._tool is None:
                    self._begin()
                elif self._tool is not None and not self._asking:
                    self._end(self._tool)
        finally:
            quick["gs_let_come"](thread, sections)

    def forget(self) -> None:
        """In a forked child, where another thread of the parent's may have the lock."""
        self._lock = threading.Lock()
        self._asking.clear()
        if self._tool is not None:
            self._end(self._tool)

    def _begin(self) -> None:
        self._callback = self._callback or quick["gs_line_callback"]()
        tool = next((tool for tool in _TOOLS if _monitoring.get_tool(tool) is None), None)
        if tool is None:
            return  # a script has them all: what is asked for runs in the next wait
        _monitoring.use_tool_id(tool, "gpushare")
        self._tool = tool
        for event in self._events():
            _monitoring.register_callback(tool, event, self._callback)
        _monitoring.set_events(tool, sum(self._events()))

    def _end(self, tool: int) -> None:
        self._tool = None
        with contextlib.suppress(ValueError):  # a script has freed it
            _monitoring.set_events(tool, 0)
            for event in self._events():
                _monitoring.register_callback(tool, event, None)
            _monitoring.free_tool_id(tool)

    @staticmethod
    def _events() -> tuple[int, ...]:
        events = _monitoring.events
        return events.LINE, events.JUMP, events.PY_START


_lines = _Lines()
_kept: list[object] = []  # what the shim calls


def begin(
    ready: Callable[[], Any], finished: Callable[[Any], object], forward: Callable[[Any], object], ours: str
) -> None:
    """Call these for each job. `ready` gives a deque of what is to be called, each with `handler` and `number`, or
    None while nothing may be; `finished` is told each one once it is through; and `forward` what one has raised in a
    wait. None is called at a line of a file whose name begins with `ours`.

    :raises NativeError: this Python keeps what traces a thread where that is not found.
    """
    _kept[:] = ready, finished, forward
    if quick["gs_handlers_begin"](ready, finished, forward, ours.encode()) != 0:
        raise NativeError(
            f"python {sys.version.split()[0]} keeps what traces a thread where gpushare does not find it; use python "
            "3.11 to 3.14"
        )


def follow(account: int, *, runs: bool) -> None:
    """The calling thread is the main one of that job, which begins, or ends."""
    quick["gs_handlers_follow"](account, runs)
    if _monitoring:
        _lines.ask(account, False)


def ask(account: int, wanted: bool) -> None:
    """Have what is to be called be called, in the job's main thread; or no longer. From any thread."""
    quick["gs_handlers_ask"](account, wanted)
    if _monitoring:
        _lines.ask(account, wanted)


def forget_in_child(account: int) -> None:
    """In a forked child: it has asked for nothing."""
    quick["gs_handlers_ask"](account, False)
    if _monitoring:
        _lines.forget()
