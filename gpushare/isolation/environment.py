"""`os.environ` per job, for Python code and for the processes that a job starts.

C code in the host reads one environment: there it finds what any job has set last (some of torch's own
Python code talks to its C++ code that way).
"""

from __future__ import annotations

import dis
import os
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any, NoReturn

from gpushare.isolation import context
from gpushare.native import shim

_host_environ = os.environ
# Read by torch, its libraries or CUDA when they are loaded, which they are before any job begins.
_READ_AT_LOAD = {
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_DEVICE_ORDER",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_VISIBLE_DEVICES",
    "MKL_NUM_THREADS",
    "OMP_NUM_THREADS",
}
_OF_A_GPU = {"CUBLAS_WORKSPACE_CONFIG", "CUDA_LAUNCH_BLOCKING"}  # without one nobody would miss what they do
_READ_BY_PYTHON = (
    "PYTHONDEVMODE",
    "PYTHONHASHSEED",
    "PYTHONIOENCODING",
    "PYTHONMALLOC",
    "PYTHONOPTIMIZE",
    "PYTHONSAFEPATH",
    "PYTHONUTF8",
    "PYTHONWARNINGS",
)
# Read when pinned memory is first asked for, by whichever job: a `backend` that was not the process's when torch was
# loaded is an error then (CUDAAllocatorConfig.cpp, parseAllocatorConfig), and each time again.
ALLOCATOR_SETTINGS = frozenset({"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"})


def put_back(key: str) -> None:
    """C code finds the host's value again."""
    if key in _host_environ:
        os.putenv(key, _host_environ[key])
    else:
        os.unsetenv(key)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"str expected, not {type(value).__name__}")
    return value


def _says_missing(name: str) -> Callable[[object], NoReturn]:
    """A function that raises its KeyError where Python's own method does: tracebacks leave ours out, and have it."""
    code = getattr(type(_host_environ), name).__code__
    raising = next(each for each in dis.get_instructions(code) if each.opname == "RAISE_VARARGS")
    line = (raising.positions and raising.positions.lineno) or 2
    source = "\n" * (line - 2) + f"def {name}(key):\n    raise KeyError(key) from None"
    made: dict[str, Any] = {"__name__": "os"}
    exec(compile(source, code.co_filename, "exec"), made)
    says: Callable[[object], NoReturn] = made[name]
    return says


_say_missing = {name: _says_missing(name) for name in ("__getitem__", "__delitem__")}


class _Environ(MutableMapping[str, str]):
    """What `os.environ` is in plain python, for the calling job."""

    def _target(self) -> MutableMapping[str, str]:
        job = context.current()
        return _host_environ if job is None or not context.in_host() else job.environ

    def __getitem__(self, key: str) -> str:
        value = self._target().get(_text(key))
        if value is None:
            _say_missing["__getitem__"](key)
        return value

    def __setitem__(self, key: str, value: str) -> None:
        target = self._target()
        target[_text(key)] = _text(value)
        if not _is_kept_from_torch(key, target):
            os.putenv(key, value)
        _note_without_effect(key, value)

    def __delitem__(self, key: str) -> None:
        target = self._target()
        if target.pop(_text(key), None) is None:
            _say_missing["__delitem__"](key)
        if _is_kept_from_torch(key, target):
            return
        put_back(key)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._target()))

    def __len__(self) -> int:
        return len(self._target())

    def __repr__(self) -> str:
        return f"environ({dict(self)!r})"

    def copy(self) -> dict[str, str]:
        return dict(self)

    def __or__(self, other: Any) -> dict[str, str]:
        return {**self, **other}

    def __ror__(self, other: Any) -> dict[str, str]:
        return {**other, **self}

    def __ior__(self, other: Any) -> _Environ:
        self.update(other)
        return self


class _EnvironBytes(MutableMapping[bytes, bytes]):
    """`os.environb`."""

    def __getitem__(self, key: bytes) -> bytes:
        value = os.environ.get(os.fsdecode(key))
        if value is None:
            _say_missing["__getitem__"](key)
        return os.fsencode(value)

    def __setitem__(self, key: bytes, value: bytes) -> None:
        os.environ[os.fsdecode(key)] = os.fsdecode(value)

    def __delitem__(self, key: bytes) -> None:
        if os.environ.pop(os.fsdecode(key), None) is None:
            _say_missing["__delitem__"](key)

    def __iter__(self) -> Iterator[bytes]:
        return map(os.fsencode, os.environ)

    def __len__(self) -> int:
        return len(os.environ)


def _is_kept_from_torch(key: str, target: MutableMapping[str, str]) -> bool:
    """Whether a job has set it for its own eyes and its children's only."""
    return key in ALLOCATOR_SETTINGS and target is not _host_environ and shim.device() >= 0


def _note_without_effect(key: str, value: str) -> None:
    job = context.current()
    if job is None or not context.in_host():
        return
    if _is_kept_from_torch(key, job.environ):
        job.note(
            f"{job.name} sets {key}={value}, which is for torch's own allocator: in the pool it changes nothing"
        )
    elif key in _OF_A_GPU and shim.device() < 0:
        return
    elif key in _READ_AT_LOAD | ALLOCATOR_SETTINGS and _host_environ.get(key) != value:
        job.note(f"{job.name} sets {key}={value}, which torch has read already: set it before gpushare run")


def _after_fork_in_child() -> None:
    # Alone now: what the child executes, and its C code, read the real one.
    if job := context.current():
        for key in set(_host_environ) - set(job.environ):
            del _host_environ[key]
        _host_environ.update(job.environ)


def of_child(env: Any) -> Any:
    """The environment for a new program that was given `env`; None is the job's own."""
    job = context.current()
    if env is not None or job is None or not context.in_host():
        return env
    return [os.fsencode(f"{key}={value}") for key, value in job.environ.items()]


def install() -> None:
    """Replace `os.environ` and what belongs to it."""
    os_: Any = os
    os_.environ, os_.environb = _Environ(), _EnvironBytes()
    os.register_at_fork(after_in_child=_after_fork_in_child)


def enter(job: context.JobContext) -> None:
    """Tell what of the job's environment comes too late, or to nobody."""
    for key in _READ_AT_LOAD | ALLOCATOR_SETTINGS:
        if key in job.environ and job.environ[key] != _host_environ.get(key):
            _note_without_effect(key, job.environ[key])
    # Not where the script sets one itself, which changes nothing under plain python either.
    for key in _READ_BY_PYTHON:
        if key in job.environ and job.environ[key] != _host_environ.get(key):
            value = job.environ[key]
            job.note(
                f"{job.name} sets {key}={value}, which Python has read already: set it before gpushare run"
            )


def leave(job: context.JobContext) -> None:
    """Nothing: it goes with the context."""
