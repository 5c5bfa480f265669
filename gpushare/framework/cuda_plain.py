"""Where the bridge can't be compiled: torch's pluggable allocator over the shim's C functions.

It throws at every question, and calls nothing of ours when a CUDA graph is captured. So questions are answered in
Python, in place of the functions of `torch._C` that all of `torch.cuda.memory` asks; captures are refused, since
memory of the graph would be given to others while the graph lives; and `cudnn.benchmark`, which asks the allocator
from C++, is held off.
"""

from __future__ import annotations

import warnings
from typing import Any, NoReturn

import torch
import torch.backends.cudnn
import torch.cuda.graphs
import torch.cuda.memory

from gpushare.framework import cuda_questions
from gpushare.native import library, shim, usage

_KINDS = ("all", "small_pool", "large_pool")
_fractions: dict[int, float] = {}


def install() -> None:
    """Take over CUDA memory, before torch has initialised CUDA."""
    allocator = torch.cuda.memory.CUDAPluggableAllocator(
        str(library.library_path()), "gs_torch_alloc", "gs_torch_free"
    )
    hooks = allocator.allocator()
    hooks.set_record_stream_fn(library.function_address("gs_torch_record_stream"))
    hooks.set_reset_fn(library.function_address("gs_torch_empty_cache"))
    torch.cuda.memory.change_current_allocator(allocator)
    answer()


def answer() -> None:
    """Answer questions, and refuse what would go wrong without a word."""
    names: Any = torch._C
    names._cuda_memoryStats = names._accelerator_getDeviceStats = stats
    names._cuda_resetPeakMemoryStats = names._accelerator_resetPeakStats = _reset_peaks
    names._cuda_resetAccumulatedMemoryStats = names._accelerator_resetAccumulatedStats = _reset_totals
    names._accelerator_getMemoryInfo = cuda_questions.free_and_total
    # torch.accelerator still has torch's own allocator, which is never used.
    names._accelerator_isAllocatorInitialized = torch.cuda.is_initialized
    names._accelerator_emptyCache = torch.cuda.memory.empty_cache
    names._cuda_getMemoryFraction = lambda device: _fractions.get(shim.thread_account(), 1.0)
    names._cuda_setMemoryFraction = set_fraction
    names._cuda_memorySnapshot = _refuse_snapshot
    for name in ("_cuda_beginAllocateToPool", "_cuda_beginAllocateCurrentThreadToPool"):
        setattr(names, name, _refuse_graphs)
    graph: Any = torch.cuda.graphs.CUDAGraph
    graph.capture_begin = _refuse_graphs
    hold_benchmark_off()


def stats(_device: object) -> dict[str, Any]:
    """As `torch._C._cuda_memoryStats`, for the calling job; there is one pool, told as torch's large one."""
    m = usage.memory(shim.thread_account())
    live = (m.live_bytes, m.live_peak_bytes, m.allocated_bytes, m.freed_bytes)
    held = (m.held_bytes, m.held_peak_bytes, m.charged_bytes, m.returned_bytes)
    blocks = (m.blocks, m.blocks_peak, m.allocations, m.frees)
    between = max(0, m.held_bytes - m.live_bytes)
    found: dict[str, Any] = {name: _array(blocks) for name in ("allocation", "active")}
    for name in ("allocated_bytes", "active_bytes", "requested_bytes"):
        found[name] = _array(live)
    found["reserved_bytes"] = _array(held)
    found["segment"] = _array(tuple(n // m.page_bytes for n in held))
    found["inactive_split"] = _array((0, 0, 0, 0))
    found["inactive_split_bytes"] = _array((between, between, 0, 0))
    for name in ("oversize_allocations", "oversize_segments"):
        found[name] = _stat((0, 0, 0, 0))
    found |= {"num_alloc_retries": 0, "num_ooms": m.refusals, "max_split_size": 0, "num_sync_all_streams": 0}
    found |= {
        "num_device_alloc": m.charged_bytes // m.page_bytes,
        "num_device_free": m.returned_bytes // m.page_bytes,
    }
    return found


def _stat(numbers: tuple[int, ...]) -> dict[str, int]:
    return dict(zip(("current", "peak", "allocated", "freed"), numbers, strict=True))


def _array(numbers: tuple[int, ...]) -> dict[str, dict[str, int]]:
    return {kind: _stat((0, 0, 0, 0) if kind == "small_pool" else numbers) for kind in _KINDS}


def _reset_peaks(_device: object) -> None:
    usage.memory_reset_peaks(shim.thread_account())


def _reset_totals(_device: object) -> None:
    usage.memory_reset_totals(shim.thread_account())


def set_fraction(fraction: float, _device: object) -> None:
    """As `torch._C._cuda_setMemoryFraction`: of the budget, for the calling job."""
    account = shim.thread_account()
    _fractions[account] = fraction
    usage.limit_set(account, None if fraction >= 1.0 else int(fraction * usage.memory(account).budget_bytes))


def _refuse_snapshot(*_: object, **__: object) -> NoReturn:
    raise RuntimeError(
        "gpushare: torch.cuda.memory_snapshot needs the allocator's bridge, which was not built"
    )


def _refuse_graphs(*_: object, **__: object) -> NoReturn:
    raise RuntimeError("gpushare: CUDA graphs need the allocator's bridge, which could not be built")


def hold_benchmark_off() -> None:
    """`cudnn.benchmark` stays False, with a warning when a script sets it."""
    names: Any = torch._C
    names._set_cudnn_benchmark(False)
    names._set_cudnn_benchmark = _keep_benchmark_off
    # The property of `torch.backends.cudnn` has the function itself.
    vars(type(torch.backends.cudnn))["benchmark"].setter = _keep_benchmark_off


def _keep_benchmark_off(wanted: bool) -> None:
    if wanted:
        warnings.warn(
            "gpushare: torch.backends.cudnn.benchmark is held off: it needs the allocator's bridge, which could "
            "not be built",
            RuntimeWarning,
            stacklevel=3,
        )
