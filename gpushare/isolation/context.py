"""Which job the calling thread works for."""

from __future__ import annotations

import os
import threading
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TextIO


@dataclass
class JobContext:
    """What a job has of its own. Threads that the job starts carry the same object."""

    name: str
    account: int
    argv: list[str]
    main: types.ModuleType
    stdin: TextIO
    stdout: TextIO
    stderr: TextIO
    generator: Any = None  # torch.Generator; held here, its address lies in every thread's slot
    environ: dict[str, str] | None = None  # None: the host's
    thread_ident: int = 0
    threads: list[threading.Thread] = field(default_factory=list)
    at_exit: list[Callable[[], object]] = field(default_factory=list)


_local = threading.local()
_host_pid = os.getpid()


def current() -> JobContext | None:
    """Job of the calling thread; None for the host's own threads."""
    job: JobContext | None = getattr(_local, "job", None)
    return job


def bind(job: JobContext | None) -> None:
    """The calling thread works for `job` from now on."""
    _local.job = job


def in_host() -> bool:
    """False in a forked child, where there is nobody to share with."""
    return os.getpid() == _host_pid
