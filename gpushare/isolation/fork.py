"""A fork is a door: a child forked while another job computes can hang on a lock that was held at that
instant (oneDNN's cache, a generator's mutex, a module's import lock), so the other jobs are parked first and
nobody else imports meanwhile."""

from __future__ import annotations

import os
import threading

from gpushare import native
from gpushare.isolation import context, modules

_LONGEST_PARK_NS = 5_000_000_000
_held = threading.local()


def _before() -> None:
    job = context.current()
    if job is None or not context.in_host():
        return
    _held.imports = modules.lock_imports()
    if not native.park_others(job.account, _LONGEST_PARK_NS):
        # The other job is in one very long iteration. Forking now is what plain python does all the time
        # beside its own threads; waiting for ever would be worse.
        job.note(f"{job.name} forked beside a job that did not reach its door within 5 s")


def _after_in_parent() -> None:
    job = context.current()
    if job and context.in_host():
        native.unpark_others(job.account)
        if lock := _held.imports:
            lock.release()


def install() -> None:
    """Register with the interpreter; children started by subprocess with exec need no parking."""
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent)


def enter(job: context.JobContext) -> None:
    """Nothing to set up."""


def leave(job: context.JobContext) -> None:
    """Nothing to take down."""
