"""Waits that what is sent to a job's main thread can end, as Ctrl-C ends those of plain python's main thread: see
`shim/src/interpose_rests.cpp`.

A wait for a lock can end if it has a limit. Those of `threading` that have none get the longest one that there is; in
their code itself, so that tracebacks and what inherits from these classes stay as they are.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
import threading
from collections.abc import Callable
from typing import Any

from gpushare.isolation import context

_LONGEST = "TIMEOUT_MAX"  # a name of `threading`


class _Limit(ast.NodeTransformer):
    """Calls of `owner.name()` without arguments, which wait for ever, get the limit as their argument `timeout`."""

    def __init__(self, owner: str, name: str) -> None:
        self._owner, self._name, self.found = owner, name, 0

    def visit_Call(self, call: ast.Call) -> ast.AST:
        match call:
            case ast.Call(ast.Attribute(ast.Name(owner), name), [], []) if (owner, name) == (
                self._owner,
                self._name,
            ):
                call.keywords = [ast.keyword("timeout", ast.Name(_LONGEST, ast.Load()))]
                self.found += 1
        return self.generic_visit(call)


def _limit(function: Any, owner: str, name: str) -> bool:
    """False: python's sources are not there, or not as they were."""
    try:
        lines, first = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError):
        return False
    limit = _Limit(owner, name)
    limit.visit(tree)
    if not limit.found:
        return False
    ast.increment_lineno(ast.fix_missing_locations(tree), first - 1)
    made: dict[str, Callable[..., Any]] = {}
    exec(compile(tree, inspect.getfile(function), "exec"), {}, made)
    code = made[function.__name__].__code__
    if code.co_freevars != function.__code__.co_freevars:
        return False
    function.__code__ = code.replace(co_qualname=function.__code__.co_qualname)
    return True


def install() -> None:
    """Conditions, and with them events, queues, futures and barriers; and ends of threads, up to Python 3.12."""
    _limit(threading.Condition.wait, "waiter", "acquire")
    join: Any = threading.Thread.join
    if hasattr(threading.Thread, "_wait_for_tstate_lock"):
        _limit(join, "self", "_wait_for_tstate_lock")


def enter(job: context.JobContext) -> None:
    """Nothing to set up."""


def leave(job: context.JobContext) -> None:
    """Nothing to take down."""
