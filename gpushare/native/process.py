"""System calls about processes and threads that Python's library lacks."""

from __future__ import annotations

import ctypes
import os
import platform

_PR_SET_NAME, _PR_SET_CHILD_SUBREAPER = 15, 36
_CLONE_FS = 0x200

_libc = ctypes.CDLL(None, use_errno=True)
_libc.signal.argtypes, _libc.signal.restype = (ctypes.c_int, ctypes.c_void_p), ctypes.c_void_p
# Of sched_setattr(2) and sched_getattr(2), which the C library has no functions for before glibc 2.41.
_SCHED_CALLS = {"x86_64": (314, 315), "aarch64": (274, 275)}


class _SchedAttr(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint32),
        ("policy", ctypes.c_uint32),
        ("flags", ctypes.c_uint64),
        ("nice", ctypes.c_int32),
        ("priority", ctypes.c_uint32),
        ("runtime_ns", ctypes.c_uint64),
        ("deadline_ns", ctypes.c_uint64),
        ("period_ns", ctypes.c_uint64),
    ]


def set_child_subreaper() -> None:
    """Adopt orphaned descendants, so that they can be found and ended (prctl(2), Linux)."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def name_thread(name: str) -> None:
    """Name the calling thread for `top -H` and /proc; the kernel keeps fifteen bytes of it."""
    _libc.prctl(_PR_SET_NAME, name.encode(), 0, 0, 0)


def unshare_fs() -> None:
    """Give the calling thread a working directory of its own; threads it starts share it."""
    if _libc.unshare(_CLONE_FS) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def swap_signal_action(number: int, action: int | None) -> int | None:
    """Change what the system does at a signal, from any thread and behind Python's back (signal(2)).

    :param action: the address of a handler in C, as this returns it; None for the default.
    :return: what it was.
    """
    before: int | None = _libc.signal(number, action)
    return before


def set_time_slice(ns: int) -> int | None:
    """Let the calling thread, and those it starts, compute for so long at a time where others want its processor too.

    Not for more in all: a thread of short slices only gets its turn sooner when it wakes (EEVDF, Linux 6.12; older
    kernels take no notice).

    :param ns: 100,000 to 100,000,000.
    :return: what it was before, 0 in older kernels; None where it can't be set: the thread is no ordinary one, the
        kernel refuses, or this kind of processor is not known.
    """
    attr = _SchedAttr(size=ctypes.sizeof(_SchedAttr))
    set_call, get_call = _SCHED_CALLS.get(platform.machine(), (0, 0))
    if not set_call or _libc.syscall(get_call, 0, ctypes.byref(attr), attr.size, 0) != 0:
        return None
    before_ns = int(attr.runtime_ns)
    attr.runtime_ns = ns
    ordinary = attr.policy in (os.SCHED_OTHER, os.SCHED_BATCH)
    return before_ns if ordinary and _libc.syscall(set_call, 0, ctypes.byref(attr), 0) == 0 else None
