"""What multiprocessing keeps for the whole process: the start method, the server that forks, the temporary folder,
and the thread that hands descriptors to other processes."""

from __future__ import annotations

import contextlib
import multiprocessing.context
import multiprocessing.forkserver
import multiprocessing.process
import multiprocessing.resource_sharer
from typing import Any

from gpushare.isolation import context
from gpushare.isolation.perjob import PerJob

_server_module: Any = multiprocessing.forkserver
_servers: PerJob[Any] = PerJob(_server_module._forkserver, lambda: _server_module.ForkServer())
_SERVER_CALLS = ("ensure_running", "get_inherited_fds", "connect_to_new_process", "set_forkserver_preload")


_sharer_module: Any = multiprocessing.resource_sharer
_sharers: PerJob[Any] = PerJob(_sharer_module._resource_sharer, _sharer_module._ResourceSharer)
_LONGEST_STOP_S = 5.0


class _Sharer:
    """Stands for the one of the calling job."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_sharers.get(), name)


def _call_of_job(name: str) -> Any:
    return lambda *args, **kwargs: getattr(_servers.get(), name)(*args, **kwargs)


def install() -> None:
    """Give each job its own; the servers are started when they are asked for."""
    default: Any = multiprocessing.context._default_context
    chosen: PerJob[Any] = PerJob(default._actual_context, lambda: None)
    del default._actual_context
    type(default)._actual_context = property(lambda _: chosen.get(), lambda _, value: chosen.set(value))
    for name in _SERVER_CALLS:
        setattr(_server_module, name, _call_of_job(name))
    _sharer_module._resource_sharer = _Sharer()
    _sharer_module.stop = lambda timeout=None: _sharers.get().stop(timeout)
    main: Any = multiprocessing.process.current_process()
    config: PerJob[Any] = PerJob(main._config, lambda: {**config.host, "tempdir": None})
    del main._config
    type(main)._config = property(lambda _: config.get())


def stop_sharer(job: context.JobContext) -> None:
    """While the folder that has its socket is still there."""
    if sharer := job.values.get(_sharers):
        if sharer._thread:  # it tells of any other end that it is asked to come to
            sharer._thread._gpushare_ends = True
        with contextlib.suppress(OSError, EOFError):
            sharer.stop(_LONGEST_STOP_S)


def enter(job: context.JobContext) -> None:
    """Nothing: all are made when they are asked for."""


def leave(job: context.JobContext) -> None:
    """End the server, which ends when nobody holds its pipe."""
    if server := job.values.get(_servers):
        with contextlib.suppress(FileNotFoundError):  # the job's exit handlers have removed its directory
            server._stop()
