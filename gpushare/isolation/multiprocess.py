"""What multiprocessing keeps for the whole process: the start method, and the server that forks."""

from __future__ import annotations

import contextlib
import multiprocessing.context
import multiprocessing.forkserver
from typing import Any

from gpushare.isolation import context
from gpushare.isolation.perjob import PerJob

_server_module: Any = multiprocessing.forkserver
_servers: PerJob[Any] = PerJob(_server_module._forkserver, lambda: _server_module.ForkServer())
_SERVER_CALLS = ("ensure_running", "get_inherited_fds", "connect_to_new_process", "set_forkserver_preload")


def _call_of_job(name: str) -> Any:
    return lambda *args, **kwargs: getattr(_servers.get(), name)(*args, **kwargs)


def install() -> None:
    """Give each job a start method and a server of its own; the server is started when it is asked for."""
    default: Any = multiprocessing.context._default_context
    chosen: PerJob[Any] = PerJob(default._actual_context, lambda: None)
    del default._actual_context
    type(default)._actual_context = property(lambda _: chosen.get(), lambda _, value: chosen.set(value))
    for name in _SERVER_CALLS:
        setattr(_server_module, name, _call_of_job(name))


def enter(job: context.JobContext) -> None:
    """Nothing: both are made when they are asked for."""


def leave(job: context.JobContext) -> None:
    """End the server, which ends when nobody holds its pipe."""
    if server := job.values.get(_servers):
        with contextlib.suppress(FileNotFoundError):  # the job's exit handlers have removed its directory
            server._stop()
