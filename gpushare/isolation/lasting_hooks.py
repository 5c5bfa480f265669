"""What a script, or a package of its own, registers with the interpreter is called for that job only, and goes with it.

`os.register_at_fork`, `sys.addaudithook` and `codecs.register`: the interpreter keeps them until it ends, and calls
them in whatever thread. What it keeps of a job holds nothing of the job's.
"""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

from gpushare.isolation import context

_HOOKS, _SEARCHES = ("lasting hooks",), ("codecs",)
_at_fork, _audit = os.register_at_fork, sys.addaudithook
_search, _no_search = codecs.register, codecs.unregister
_Hook = Callable[..., Any]


def _registering() -> context.JobContext | None:
    return None if context.importing_shared() else context.current()


def _of_job(job: context.JobContext, hook: Any) -> Any:
    if not callable(hook):
        return hook  # refused, with the interpreter's words
    key = object()
    job.values.setdefault(_HOOKS, {})[key] = hook

    def call(*args: Any) -> Any:
        calling = context.current()
        own: _Hook | None = calling.values.get(_HOOKS, {}).get(key) if calling else None
        return own(*args) if own else None

    return call


@wraps(_at_fork)
def _register_at_fork(**hooks: _Hook) -> None:
    job = _registering()
    _at_fork(**(hooks if job is None else {when: _of_job(job, hook) for when, hook in hooks.items()}))


@wraps(_audit)
def _add_audit_hook(hook: _Hook) -> None:
    job = _registering()
    _audit(hook if job is None else _of_job(job, hook))


@wraps(_search)
def _register_codecs(search: _Hook) -> None:
    job = _registering()
    asked = search if job is None else _of_job(job, search)
    _search(asked)
    if job is not None:
        job.values.setdefault(_SEARCHES, {})[search] = asked


@wraps(_no_search)
def _unregister_codecs(search: _Hook) -> None:
    job = _registering()
    _no_search(search if job is None else job.values.get(_SEARCHES, {}).pop(search, search))


def install() -> None:
    """Replace the functions."""
    names: Any = os
    names.register_at_fork = _register_at_fork
    names = sys
    names.addaudithook = _add_audit_hook
    names = codecs
    names.register, names.unregister = _register_codecs, _unregister_codecs


def enter(job: context.JobContext) -> None:
    """Nothing: a job begins with the host's."""


def leave(job: context.JobContext) -> None:
    """Of an ended job nobody forks. Codecs that have been looked up are forgotten, and looked up anew."""
    for asked in job.values.pop(_SEARCHES, {}).values():
        _no_search(asked)
