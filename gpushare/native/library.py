"""Loads the shim and declares its functions; see `shim/include/` for what each one does.

`load()` must run before torch is imported: the shim's symbols take the place of torch's own only if they are in
the global scope first.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from gpushare.native.permits import NativePermit

API_VERSION = 27

_shim: ctypes.CDLL | None = None


class NativeError(Exception):
    """The shim refused a call; the text says why."""


class Config(ctypes.Structure):
    """What `gs_start` takes (`gs_config`)."""

    _fields_ = [
        ("budget_bytes", ctypes.c_uint64),
        ("page_bytes", ctypes.c_uint64),
        ("region_bytes", ctypes.c_uint64),
        ("address_bytes", ctypes.c_uint64),
        ("policy", ctypes.c_int32),
        ("telemetry_fd", ctypes.c_int32),
        ("parent_pid", ctypes.c_int32),
        ("log_fd", ctypes.c_int32),
        ("debug_memory", ctypes.c_int32),
        ("device_kind", ctypes.c_int32),
        ("device_index", ctypes.c_int32),
        ("driver", ctypes.c_char_p),
    ]


_MEMORY = (
    "budget_bytes page_bytes limit_bytes pool_held_bytes shared_bytes live_bytes live_peak_bytes allocated_bytes "
    "freed_bytes blocks blocks_peak allocations frees held_bytes held_peak_bytes charged_bytes returned_bytes refusals "
    "copied_out_bytes"
)


class Memory(ctypes.Structure):
    """What an account uses (`gs_memory`); see there for the meaning of each number."""

    _fields_ = [(name, ctypes.c_uint64) for name in _MEMORY.split()]


class Kind(ctypes.Structure):
    """A kind of iterations (`gs_kind`); see there."""

    MOST, STEPS = 8, 128
    _fields_ = [
        ("allocations", ctypes.c_uint64),
        ("residue_bytes", ctypes.c_uint64),
        ("duration_ns", ctypes.c_uint64),
        ("seen", ctypes.c_uint64),
        ("followed_by", ctypes.c_uint64 * MOST),
        ("steps", ctypes.c_uint64),
        ("ordinal", ctypes.c_uint64 * STEPS),
        ("held_bytes", ctypes.c_uint64 * STEPS),
        ("time_ns", ctypes.c_uint64 * STEPS),
    ]


class BadFree(ctypes.Structure):
    """What `gs_bad_free_next` gives (`gs_bad_free`)."""

    _fields_ = [
        ("address", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("offset", ctypes.c_uint64),
        ("iteration", ctypes.c_uint64),
        ("kind", ctypes.c_int32),
        ("freer", ctypes.c_int32),
        ("owner", ctypes.c_int32),
        ("freed_by", ctypes.c_int32),
    ]


class Piece(ctypes.Structure):
    """A block, or the bytes between blocks, of what an account holds (`gs_piece`)."""

    _fields_ = [
        ("address", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("asked", ctypes.c_uint64),
        ("segment", ctypes.c_uint64),
        ("stream", ctypes.c_uint64),
        ("arena", ctypes.c_uint32),
        ("use", ctypes.c_int32),
    ]


_U64, _I64, _I32, _PTR = ctypes.c_uint64, ctypes.c_int64, ctypes.c_int32, ctypes.c_void_p
_U64S, _U32S = ctypes.POINTER(ctypes.c_uint64), ctypes.POINTER(ctypes.c_uint32)
_I32S = ctypes.POINTER(ctypes.c_int32)
_SIGNATURES: dict[str, tuple[type | None, tuple[type, ...]]] = {
    "gs_api_version": (ctypes.c_int, ()),
    "gs_start": (ctypes.c_int, (ctypes.POINTER(Config),)),
    "gs_last_error": (ctypes.c_char_p, ()),
    "gs_device": (_I32, ()),
    "gs_log_flush": (ctypes.c_int, ()),
    "gs_bad_free_next": (ctypes.c_int, (ctypes.POINTER(BadFree),)),
    "gs_job_begin": (_I32, (_I32, _I32)),
    "gs_job_admit": (None, (_I32,)),
    "gs_job_end": (None, (_I32,)),
    "gs_stranded": (ctypes.c_int, (_I32, _U64S)),
    "gs_abandon": (ctypes.c_int, (_I32,)),
    "gs_thread_enter": (None, (_I32, _PTR)),
    "gs_thread_leave": (None, ()),
    "gs_rests_watch": (ctypes.c_int, ()),
    "gs_gil_waits_watch": (ctypes.c_int, ()),
    "gs_rests_watch_locks": (ctypes.c_int, (ctypes.c_char_p,)),
    "gs_streams_watch": (ctypes.c_int, ()),
    "gs_streams_set": (None, (_I32, ctypes.POINTER(_I32))),
    "gs_assignments_watch": (
        None,
        (ctypes.py_object, ctypes.py_object, ctypes.py_object, ctypes.POINTER(_PTR), ctypes.POINTER(_PTR)),
    ),
    "gs_assignments_mark": (None, (ctypes.py_object, _I32)),
    "gs_thread_account": (_I32, ()),
    "gs_switches_of": (_I32, (_I32,)),
    "gs_compile_region": (_I64, (_I64,)),
    "gs_cancel": (None, (_I32,)),
    "gs_uncancel": (None, (_I32,)),
    "gs_interrupt": (None, (_I32, _U64, ctypes.py_object)),
    "gs_interrupt_came": (None, (_I32,)),
    "gs_hold_back": (None, (_U64,)),
    "gs_held_sections": (_I32, (_U64,)),
    "gs_let_come": (None, (_U64, _I32)),
    "gs_hold_back_alone": (None, (_U64,)),
    "gs_handlers_begin": (
        ctypes.c_int,
        (ctypes.py_object, ctypes.py_object, ctypes.py_object, ctypes.c_char_p),
    ),
    "gs_handlers_follow": (None, (_I32, _I32)),
    "gs_handlers_ask": (None, (_I32, _I32)),
    "gs_line_callback": (ctypes.py_object, ()),
    "gs_nowait": (None, (_I32,)),
    "gs_iteration_watch": (_I32, (_I32, _I32)),
    "gs_iteration_mark": (None, (_I32,)),
    "gs_iteration_door": (ctypes.c_int, ()),
    "gs_collection": (None, (ctypes.py_object, ctypes.py_object)),
    "gs_curve_set": (ctypes.c_int, (_I32, _U64S, _U64S, _U64, _U64, _U64)),
    "gs_kind_get": (ctypes.c_int, (_I32, ctypes.c_uint32, _PTR)),
    "gs_kind_add": (ctypes.c_int, (_I32, _PTR)),
    "gs_curve_get": (_U64, (_I32, _U64S, _U64S, _U64, _U64S)),
    "gs_profiled_log": (_U64, (_I32, _PTR, _U64)),
    "gs_progress_get": (ctypes.c_int, (_I32, _U64S)),
    "gs_peak_kinds": (ctypes.c_int, (_I32, _U64S)),
    "gs_permits_set": (None, (ctypes.POINTER(NativePermit), ctypes.c_uint32)),
    "gs_order_set": (ctypes.c_int, (_I32, _U64)),
    "gs_rank_set": (None, (_I32, _I64)),
    "gs_aside_set": (None, (_U64,)),
    "gs_copied_out": (_U64, ()),
    "gs_split_set": (None, (_U64,)),
    "gs_decisions_start": (None, (_I32,)),
    "gs_wait_change": (_U64, (_U64, _U64)),
    "gs_park_others": (ctypes.c_int, (_I32, _U64)),
    "gs_unpark_others": (None, (_I32,)),
    "gs_await_fork": (None, (_I32, ctypes.c_int)),
    "gs_trim": (None, (_I32,)),
    "gs_owner": (_I32, (_PTR,)),
    "gs_graph_seen": (ctypes.c_int, ()),
    "gs_check": (ctypes.c_int, ()),
    "gs_telemetry_bytes": (ctypes.c_uint64, ()),
    "gs_pool_get": (ctypes.c_int, (_U64S,)),
    "gs_budget_set": (ctypes.c_int, (_U64,)),
    "gs_stream_begin": (None, (_I32, _U64)),
    "gs_stream_end": (None, (_U64,)),
    "gs_stream_account": (_I32, (_U64,)),
    "gs_thread_cuda_stream": (None, (_U64,)),
    "gs_thread_cuda_generator": (None, (_PTR,)),
    "gs_side_stream": (_U64, (_I32, _I32)),
    "gs_synchronize": (ctypes.c_int, (_I32,)),
    "gs_memory_get": (ctypes.c_int, (_I32, ctypes.POINTER(Memory))),
    "gs_memory_reset_peaks": (None, (_I32,)),
    "gs_memory_reset_totals": (None, (_I32,)),
    "gs_limit_set": (ctypes.c_int, (_I32, _U64)),
    "gs_pieces": (_U64, (_I32, ctypes.POINTER(Piece), _U64)),
    "gs_try_alloc": (_PTR, (_U64, _I32, _I32, _U64, ctypes.c_uint32)),
    "gs_free": (None, (_PTR, _I32, _U64)),
    "gs_sim_begin": (_PTR, (_I32, _U64, _U64)),
    "gs_sim_end": (None, (_PTR,)),
    "gs_sim_time": (None, (_PTR, _U64)),
    "gs_sim_job_begin": (_I32, (_PTR, _U64S, _U64S, _U64, _U64, _U64)),
    "gs_sim_hold": (ctypes.c_int, (_PTR, _I32, _U64)),
    "gs_sim_free": (None, (_PTR, _I32, _U64)),
    "gs_sim_door": (ctypes.c_int, (_PTR, _I32)),
    "gs_sim_look": (ctypes.c_int, (_PTR, _I32)),
    "gs_sim_ready": (_U64, (_PTR,)),
    "gs_sim_refusal": (ctypes.c_char_p, (_PTR,)),
    "gs_sim_job_end": (None, (_PTR, _I32)),
    "gs_sim_tick": (None, (_PTR,)),
    "gs_sim_look_at_doors": (None, (_PTR,)),
    "gs_sim_next_look": (_U64, (_PTR,)),
    "gs_sim_version": (_U64, (_PTR,)),
    "gs_sim_split": (None, (_PTR, _U64)),
    "gs_sim_budget": (ctypes.c_char_p, (_PTR, _U64)),
    "gs_sim_permits": (None, (_PTR, ctypes.POINTER(NativePermit), ctypes.c_uint32)),
    "gs_sim_order": (ctypes.c_int, (_PTR, _I32, _U64)),
    "gs_sim_rank": (None, (_PTR, _I32, _I64)),
    "gs_sim_aside": (None, (_PTR, _U64)),
    "gs_sim_copied_out": (_U64, (_PTR,)),
    "gs_sim_curve": (_U64, (_PTR, _I32, _U64S, _U64S, _U64, _U64S)),
    "gs_sim_job_get": (ctypes.c_int, (_PTR, _I32, _U64S)),
    "gs_sim_progress_get": (ctypes.c_int, (_PTR, _I32, _U64S)),
    "gs_sim_pool_get": (None, (_PTR, _U64S)),
    "gs_sim_check": (ctypes.c_char_p, (_PTR,)),
    "gs_is_safe": (ctypes.c_int, (_U64S, _U64S, _U64S, _U64, _U64)),
    "gs_traffic": (None, (_PTR, _U64, _I32S, _U64, _U64S)),
    "gs_gil_watch": (ctypes.c_int, (_U64, _I32S, _U64, _U64S)),
    "gs_fits_together": (ctypes.c_int, (_U32S, _U64S, _U64S, _U64S, _U32S, _U64, _U64)),
}
# These neither wait nor take a lock that a waiting thread holds for long: the GIL stays with the caller.
_QUICK = (
    "gs_nowait",
    "gs_iteration_mark",
    "gs_iteration_watch",
    "gs_thread_account",
    "gs_collection",
    "gs_compile_region",
    "gs_assignments_watch",
    "gs_assignments_mark",
    "gs_interrupt",
    "gs_interrupt_came",
    "gs_hold_back",
    "gs_held_sections",
    "gs_let_come",
    "gs_hold_back_alone",
    "gs_handlers_begin",
    "gs_handlers_follow",
    "gs_handlers_ask",
    "gs_line_callback",
)
quick: dict[str, Callable[..., Any]] = {}  # by name, once loaded


def library_path() -> Path:
    """Where the installed package has the shim."""
    return Path(__file__).parent.parent / "_shim" / "libgpushare.so"


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
        quick[name] = ctypes.PYFUNCTYPE(cast(Any, result), *cast(Any, arguments))((name, library))
    _shim = library


def source_path() -> Path:
    """The folder that has `bridge` and `include`: of the installed package, or of a checkout.

    :raises NativeError: there is none.
    """
    installed = library_path().parent / "source"
    checkout = Path(__file__).parent.parent.parent / "shim"
    for folder in (installed, checkout):
        if (folder / "bridge" / "install.cpp").is_file():
            return folder
    raise NativeError(f"the sources of the bridge are missing: {installed}; install the package with pip")


def lib() -> ctypes.CDLL:
    """The shim.

    :raises NativeError: it is not loaded.
    """
    if _shim is None:
        raise NativeError("the shim is not loaded")
    return _shim


def function_address(name: str) -> int:
    """Where a function of the shim is, for libraries that call it themselves."""
    return ctypes.cast(getattr(lib(), name), ctypes.c_void_p).value or 0


def last_error() -> str:
    """Why the calling thread's last call failed."""
    text: bytes = lib().gs_last_error()
    return text.decode(errors="replace")
