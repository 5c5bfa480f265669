"""What the interpreter does for C code only."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import sys
from collections.abc import Sequence

from gpushare.native.library import NativeError, lib

_INTERPRETER_WORDS = 4096  # of PyInterpreterState, which is larger in every version of python


def replace_interpreter_modules(old: object, new: object) -> None:
    """Have the interpreter look modules up in `new` instead of `old`, its `sys.modules` so far.

    There is no call for it: the pointer is found by its value at the begin of PyInterpreterState.

    :raises NativeError: it is not found exactly once.
    """
    ctypes.pythonapi.PyInterpreterState_Get.restype = ctypes.c_void_p
    state = ctypes.pythonapi.PyInterpreterState_Get()
    words = (ctypes.c_size_t * _INTERPRETER_WORDS).from_address(state)
    found = [index for index, word in enumerate(words) if word == id(old)]
    if len(found) != 1:
        raise NativeError(
            f"python {sys.version.split()[0]} keeps its table of modules where gpushare does not find it "
            f"({len(found)} candidates); use python 3.11 to 3.14"
        )
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(new))
    words[found[0]] = id(new)


def watch_rests() -> None:
    """Have threads that sleep in Python's waits (for locks, moments, descriptors, children) counted as resting: a
    job whose other threads rest can be copied out.

    :raises NativeError: this Python waits in ways that are not known.
    """
    # Their calls can be taken over once they are loaded.
    for name in ("select", "_multiprocessing", "_socket"):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    if lib().gs_rests_watch() == 0:
        raise NativeError(
            f"python {sys.version.split()[0]} waits where gpushare does not see it: a job with several threads can't "
            "be copied out, and may run out of memory where others could have made room"
        )


def watch_gil_waits() -> None:
    """Have what scripts' threads wait for the interpreter's lock told in the telemetry.

    :raises NativeError: this Python waits for it in a way that is not known.
    """
    if lib().gs_gil_waits_watch() == 0:
        raise NativeError(
            f"python {sys.version.split()[0]} waits for its lock where gpushare does not see it"
        )


def watch_streams() -> None:
    """Have files that stand for a standard stream (`/dev/stdout`), where Python opens them for a job, be its own.

    :raises NativeError: this Python opens files in a way that is not known.
    """
    if lib().gs_streams_watch() == 0:
        raise NativeError(
            f"python {sys.version.split()[0]} opens files where gpushare does not see it: what a script writes to "
            "/dev/stdout is in the host's log"
        )


def streams_of(account: int, own: Sequence[int] | None) -> None:
    """These are descriptors 0, 1 and 2 of a job; None: it has ended."""
    lib().gs_streams_set(account, (ctypes.c_int32 * 3)(*own) if own else None)


def watch_locks_of(library: str) -> bool:
    """Have threads that wait for mutexes of a loaded library counted as resting too; `library` is the begin of its
    file's name. For one that allocates with such a mutex in hand. False: it takes none, or is not loaded."""
    changed: int = lib().gs_rests_watch_locks(library.encode())
    return changed > 0
