"""The only binding to the shim, and the few system calls that Python's library lacks.

`load()` must run before torch is imported: the shim's symbols take the place of torch's own only if they
are in the global scope first. See `shim/include/gpushare.h` for what each function does.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

API_VERSION = 1
UNMANAGED, TEMPORAL, ZICO = 0, 1, 2
POLICIES = {"unmanaged": UNMANAGED, "temporal": TEMPORAL, "zico": ZICO}
NEVER = 2**64 - 1

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_CLONE_FS = 0x200
_SIGKILL = 9

_libc = ctypes.CDLL(None, use_errno=True)
_shim: ctypes.CDLL | None = None


class NativeError(Exception):
    """The shim refused a call; the text says why."""


@dataclass(frozen=True)
class NativeCurve:
    """One iteration of a job: held bytes and nanoseconds since its door, by allocation ordinal."""

    held_bytes: list[int]
    time_ns: list[int]
    residue_bytes: int
    version: int


class _Config(ctypes.Structure):
    _fields_ = [
        ("budget_bytes", ctypes.c_uint64),
        ("page_bytes", ctypes.c_uint64),
        ("region_bytes", ctypes.c_uint64),
        ("address_bytes", ctypes.c_uint64),
        ("policy", ctypes.c_int32),
        ("telemetry_fd", ctypes.c_int32),
        ("parent_pid", ctypes.c_int32),
    ]


_INTERPRETER_WORDS = 4096  # of PyInterpreterState, which is larger in every version of python

_U64, _I32, _PTR = ctypes.c_uint64, ctypes.c_int32, ctypes.c_void_p
_U64S = ctypes.POINTER(ctypes.c_uint64)
_SIGNATURES: dict[str, tuple[type | None, tuple[type, ...]]] = {
    "gs_api_version": (ctypes.c_int, ()),
    "gs_start": (ctypes.c_int, (ctypes.POINTER(_Config),)),
    "gs_last_error": (ctypes.c_char_p, ()),
    "gs_job_begin": (_I32, (_I32, _I32)),
    "gs_job_end": (None, (_I32,)),
    "gs_thread_enter": (None, (_I32, _PTR)),
    "gs_thread_leave": (None, ()),
    "gs_thread_account": (_I32, ()),
    "gs_cancel": (None, (_I32,)),
    "gs_nowait": (None, (_I32,)),
    "gs_iteration_mark": (None, (_I32,)),
    "gs_collection": (None, (ctypes.py_object, ctypes.py_object)),
    "gs_curve_set": (ctypes.c_int, (_I32, _U64S, _U64S, _U64, _U64)),
    "gs_curve_get": (_U64, (_I32, _U64S, _U64S, _U64, _U64S, _U64S)),
    "gs_peak_kinds": (ctypes.c_int, (_I32, _U64S)),
    "gs_permit_set": (None, (_I32, _I32, _U64, _U64)),
    "gs_wait_change": (_U64, (_U64, _U64)),
    "gs_park_others": (ctypes.c_int, (_I32, _U64)),
    "gs_unpark_others": (None, (_I32,)),
    "gs_trim": (None, (_I32,)),
    "gs_owner": (_I32, (_PTR,)),
    "gs_graph_seen": (ctypes.c_int, ()),
    "gs_check": (ctypes.c_int, ()),
    "gs_telemetry_bytes": (ctypes.c_uint64, ()),
    "gs_pool_get": (ctypes.c_int, (_U64S,)),
    "gs_try_alloc": (_PTR, (_U64, _I32, _I32, _U64, ctypes.c_uint32)),
    "gs_free": (None, (_PTR, _I32, _U64)),
}
# These neither wait nor take a lock that a waiting thread holds for long: the GIL stays with the caller.
_QUICK = ("gs_nowait", "gs_iteration_mark", "gs_thread_account", "gs_collection")
_quick: dict[str, Callable[..., Any]] = {}


def library_path() -> Path:
    """Where the installed package has the shim."""
    return Path(__file__).parent / "_shim" / "libgpushare.so"


def load(path: Path | None = None) -> None:
    """Load the shim into the global symbol scope.

    :raises NativeError: it is missing, or of another API version.
    """
    global _shim
    if _shim is not None:
        return
    path = path or library_path()
    if not path.exists():
        raise NativeError(f"the shim is not built: {path} is missing; install the package with pip")
    library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    found = library.gs_api_version()
    if found != API_VERSION:
        raise NativeError(f"the shim has API version {found}, this package needs {API_VERSION}")
    for name in _QUICK:
        result, arguments = _SIGNATURES[name]
        _quick[name] = ctypes.PYFUNCTYPE(cast(Any, result), *cast(Any, arguments))((name, library))
    _shim = library


def _lib() -> ctypes.CDLL:
    if _shim is None:
        raise NativeError("the shim is not loaded")
    return _shim


def _last_error() -> str:
    text: bytes = _lib().gs_last_error()
    return text.decode(errors="replace")


def start(
    *,
    budget_bytes: int,
    page_bytes: int,
    region_bytes: int,
    policy: str,
    telemetry_fd: int = -1,
    parent_pid: int = 0,
    address_bytes: int = 0,
) -> None:
    """Make the pool. `address_bytes` 0 reserves sixteen budgets of address space.

    :raises NativeError: with the reason.
    """
    config = _Config(
        budget_bytes, page_bytes, region_bytes, address_bytes, POLICIES[policy], telemetry_fd, parent_pid
    )
    if _lib().gs_start(ctypes.byref(config)) != 0:
        raise NativeError(_last_error())


def telemetry_bytes() -> int:
    """Length of the telemetry memory as the shim lays it out."""
    count: int = _lib().gs_telemetry_bytes()
    return count


def job_begin(priority: int, warmup_iterations: int) -> int:
    """Open an account for a job and return its number.

    :raises NativeError: there are 63 jobs already.
    """
    account: int = _lib().gs_job_begin(priority, warmup_iterations)
    if account < 0:
        raise NativeError("too many jobs: a host runs at most 63")
    return account


def job_end(account: int) -> None:
    """The job is over: it needs no doors any more, and its empty pages return to the pool."""
    _lib().gs_job_end(account)


def thread_enter(account: int, cpu_generator: int) -> None:
    """Charge the calling thread's tensors to `account`; its default generator is the one given."""
    _lib().gs_thread_enter(account, cpu_generator or None)


def thread_leave() -> None:
    """The calling thread belongs to no job any more."""
    _lib().gs_thread_leave()


def thread_account() -> int:
    """Account of the calling thread; 0 is `shared`."""
    account: int = _quick["gs_thread_account"]()
    return account


def cancel(account: int) -> None:
    """End the job's waits, now and later."""
    _lib().gs_cancel(account)


def collection_callback() -> Callable[[str, dict[str, int]], None]:
    """For `gc.callbacks`. It runs no Python code, in which an interrupt could be raised and be lost."""
    return _quick["gs_collection"]


def nowait(delta: int) -> None:
    """Enter (+1) or leave (-1) a section in which the calling thread must not wait for memory."""
    _quick["gs_nowait"](delta)


def iteration_mark(account: int) -> None:
    """An iteration ended here; the job's next allocation is at the door."""
    _quick["gs_iteration_mark"](account)


def curve_set(account: int, held: Sequence[int], time_ns: Sequence[int], residue_bytes: int) -> None:
    """Give the curve of a saved profile, in bytes and nanoseconds by allocation ordinal."""
    array = ctypes.c_uint64 * len(held)
    if _lib().gs_curve_set(account, array(*held), array(*time_ns), len(held), residue_bytes) != 0:
        raise NativeError(_last_error())


def curve_get(account: int) -> NativeCurve | None:
    """What is known of the job's iterations; None before its profile."""
    capacity = 0
    residue, version = ctypes.c_uint64(), ctypes.c_uint64()
    while True:
        array = ctypes.c_uint64 * max(capacity, 1)
        held, time_ns = array(), array()
        length: int = _lib().gs_curve_get(
            account, held, time_ns, capacity, ctypes.byref(residue), ctypes.byref(version)
        )
        if length == 0:
            return None
        if length <= capacity:
            return NativeCurve(held[:length], time_ns[:length], residue.value, version.value)
        capacity = length


def peak_kinds(account: int) -> tuple[int, int, int] | None:
    """Persistent, activation and temporary bytes at the peak of the profiled iteration."""
    out = (ctypes.c_uint64 * 3)()
    if _lib().gs_peak_kinds(account, out) != 0:
        return None
    return out[0], out[1], out[2]


def permit_set(account: int, after: int, ordinal: int, shift_ns: int) -> None:
    """`account` may start beside an iteration of `after` from its allocation `ordinal` on."""
    _lib().gs_permit_set(account, after, ordinal, shift_ns)


def wait_change(seen: int, timeout_ns: int) -> int:
    """Version of what policies look at, once it differs from `seen` or the time is over."""
    version: int = _lib().gs_wait_change(seen, timeout_ns)
    return version


def park_others(account: int, timeout_ns: int) -> bool:
    """Hold every other job at its door until `unpark_others`; False if one did not come in time."""
    return bool(_lib().gs_park_others(account, timeout_ns))


def unpark_others(account: int) -> None:
    """Let the jobs go on that `park_others` holds."""
    _lib().gs_unpark_others(account)


def owner(address: int) -> int:
    """Account that holds the address; -1 if it is not the pool's."""
    account: int = _lib().gs_owner(address)
    return account


def graph_seen() -> bool:
    """Whether torch has numbered a node of an autograd graph through the shim."""
    return bool(_lib().gs_graph_seen())


def allocate(count: int, account: int) -> int:
    """Address of a block of `count` bytes, more than zero, charged to `account`.

    :raises NativeError: out of memory, with the figures.
    """
    address: int | None = _lib().gs_try_alloc(count, -1, account, 0, 0)
    if address is None:
        raise NativeError(_last_error())
    return address


def free(address: int) -> None:
    """Give a block back."""
    _lib().gs_free(address, -1, 0)


def trim(account: int) -> None:
    """Give back the pages of the account that hold no block."""
    _lib().gs_trim(account)


@dataclass(frozen=True)
class PoolState:
    """The pool now."""

    held_bytes: int
    headroom_bytes: int
    shared_bytes: int
    free_ranges: int


def pool_state() -> PoolState:
    """Held by all, kept for overruns, held by nobody's job; ranges of free addresses."""
    out = (ctypes.c_uint64 * 4)()
    if _lib().gs_pool_get(out) != 0:
        raise NativeError(_last_error())
    return PoolState(*out)


def check() -> None:
    """Walk pool and heaps.

    :raises NativeError: an invariant does not hold.
    """
    if _lib().gs_check() != 0:
        raise NativeError(_last_error())


def set_parent_death_signal() -> None:
    """Have this process killed when the thread that started it ends (prctl(2), Linux)."""
    _libc.prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)


def set_child_subreaper() -> None:
    """Adopt orphaned descendants, so that they can be found and ended (prctl(2), Linux)."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


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
            f"({len(found)} candidates); use python 3.11 or 3.12"
        )
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(new))
    words[found[0]] = id(new)


def unshare_fs() -> None:
    """Give the calling thread a working directory of its own; threads it starts share it."""
    if _libc.unshare(_CLONE_FS) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def set_async_exception(thread_ident: int, exception: type[BaseException]) -> bool:
    """Raise in another Python thread, at its next bytecode; False if there is no such thread."""
    raised: int = ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread_ident), ctypes.py_object(exception)
    )
    return raised == 1
