"""Which job the calling thread works for."""

from __future__ import annotations

import os
import threading
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TextIO


@dataclass(eq=False)
class JobContext:
    """What a job has of its own. Threads that the job starts carry the same object."""

    name: str
    account: int
    argv: list[str]
    path: list[str]  # sys.path
    main: types.ModuleType
    stdin: TextIO
    stdout: TextIO
    stderr: TextIO
    environ: dict[str, str]
    note: Callable[[str], None]  # tells the user something, once
    descriptors: tuple[int, int, int] = (
        0,
        1,
        2,
    )  # of the streams that it began with, also when it has closed one
    generator: Any = None  # torch.Generator; held here, its address lies in every thread's slot
    python_random: Any = None  # random.Random; here, since scripts ask for it at each draw
    thread: threading.Thread = field(default_factory=threading.current_thread)
    thread_ident: int = field(default_factory=threading.get_ident)
    threads: dict[int, threading.Thread] = field(default_factory=dict)  # those that run, by id()
    at_exit: list[Callable[[], object]] = field(default_factory=list)
    modules: dict[str, types.ModuleType] = field(default_factory=dict)  # of its own folder and packages
    values: dict[Any, Any] = field(default_factory=dict)  # by PerJob; by tuples where the script may set many


_local = threading.local()
here = _local  # its `job` is `current()`, for who can't afford a call; not there in threads of the host's own
_host_pid = os.getpid()


def current() -> JobContext | None:
    """Job of the calling thread; None for the host's own threads."""
    job: JobContext | None = getattr(_local, "job", None)
    return job


def bind(job: JobContext | None) -> None:
    """The calling thread works for `job` from now on."""
    _local.job = job


def importing_shared() -> bool:
    """Whether the calling thread is executing the body of a module that all jobs share."""
    return getattr(_local, "importing", 0) > 0


def count_shared_import(delta: int) -> None:
    """The calling thread begins (+1) or ends (-1) the import of a shared module."""
    _local.importing = getattr(_local, "importing", 0) + delta


def in_host() -> bool:
    """False in a forked child, where there is nobody to share with."""
    return os.getpid() == _host_pid


def job_in_host() -> JobContext | None:
    """The calling thread's job, where it shares the process; None in a forked child, too."""
    return current() if in_host() else None
