"""Threads that a job starts work for that job: account, random numbers, streams, autograd flag."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from gpushare.isolation import context

Enter = Callable[[context.JobContext], None]


def install(enter: Enter, leave: Callable[[], None]) -> None:
    """`enter(job)` and `leave()` run in each new thread of a job, around all that it does."""
    start = threading.Thread.start
    bootstrap = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]

    def start_for_job(self: Any) -> None:
        job = context.current()
        if job and context.in_host():
            self._gpushare_job = job
            job.threads.append(self)
        start(self)

    def bootstrap_for_job(self: Any) -> None:
        job = getattr(self, "_gpushare_job", None)
        if job is None:
            bootstrap(self)
            return
        enter(job)
        try:
            bootstrap(self)
        finally:
            leave()

    threading.Thread.start = start_for_job  # type: ignore[method-assign]
    threading.Thread._bootstrap_inner = bootstrap_for_job  # type: ignore[attr-defined]
