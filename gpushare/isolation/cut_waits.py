"""Waits that what is sent to a job's main thread can end, as Ctrl-C ends those of plain python's main thread: see
`shim/src/interpose_rests.cpp`.

A wait for a lock can end if it has a limit. Those of `threading` that have none get the longest one that there is. From
Python 3.13 on C code waits for a thread's end on to its limit, so there it is a row of short waits. All that in the
code itself of these methods, so that tracebacks and what inherits from their classes stay as they are.
"""

from __future__ import annotations

import ast
import inspect
import threading
from collections.abc import Callable
from typing import Any

from gpushare.isolation import context


class _Replaced(ast.NodeTransformer):
    """A call that is written so is another one, or several statements where it is one itself."""

    def __init__(self, written: str, instead: str) -> None:
        self._written, self._instead, self.found = written, instead, 0

    def visit_Expr(self, statement: ast.Expr) -> ast.AST | list[ast.stmt]:
        if ast.unparse(statement) != self._written:
            return self.generic_visit(statement)
        self.found += 1
        instead = ast.parse(self._instead)
        _place(instead, statement)
        return instead.body

    def visit_Call(self, call: ast.Call) -> ast.AST:
        if ast.unparse(call) != self._written:
            return self.generic_visit(call)
        self.found += 1
        instead = ast.parse(self._instead, mode="eval")
        _place(instead, call)
        return instead.body


def _place(tree: ast.AST, at: ast.AST) -> None:
    for node in ast.walk(tree):
        ast.copy_location(node, at)


def _replace(function: Any, written: str, instead: str) -> bool:
    """False: python's sources are not there, or not as they were."""
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse("if True:\n" + "".join(lines))  # of a class: the lines are set in
    except (OSError, TypeError, SyntaxError):
        return False
    replaced = _Replaced(written, instead)
    replaced.visit(tree)
    if not replaced.found:
        return False
    made: dict[str, Callable[..., Any]] = {}
    exec(compile(ast.increment_lineno(tree, first - 2), inspect.getfile(function), "exec"), {}, made)
    code = made[function.__name__].__code__
    if code.co_freevars != function.__code__.co_freevars:
        return False
    function.__code__ = code.replace(co_qualname=function.__code__.co_qualname)
    return True


_SHORT_JOINS = """
until = None if timeout is None else _time() + timeout
while True:
    {0}.join(0.1 if until is None else min(0.1, max(until - _time(), 0)))
    if {0}.is_done() or (until is not None and _time() >= until):
        break
"""


def install() -> None:
    """Conditions, and with them events, queues, futures and barriers; and ends of threads."""
    _replace(threading.Condition.wait, "waiter.acquire()", "waiter.acquire(timeout=TIMEOUT_MAX)")
    any_thread: Any = threading.Thread
    wait = getattr(any_thread, "_wait_for_tstate_lock", None)
    # What interrupts it takes a thread whose lock is held for one that has ended: here it may well go on.
    if wait and _replace(wait, "lock.locked()", "lock.locked() and self._ident not in _active"):
        name = "self._wait_for_tstate_lock"
        _replace(any_thread.join, f"{name}()", f"{name}(timeout=TIMEOUT_MAX)")
    for handle in ("self._handle", "self._os_thread_handle"):  # of 3.13, and of later ones
        _replace(any_thread.join, f"{handle}.join(timeout)", _SHORT_JOINS.format(handle))


def enter(job: context.JobContext) -> None:
    """Nothing to set up."""


def leave(job: context.JobContext) -> None:
    """Nothing to take down."""
