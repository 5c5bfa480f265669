"""Capturing a CUDA graph while another thread works."""

import ctypes
from collections.abc import Callable
from typing import Any

from ..checks import CannotCheck, Seen, check
from ..device import MIB, error_of, in_threads, ready, told
from ..later import torch


def fresh_memory() -> Any:
    """Memory that the allocator must ask the driver for."""
    return torch.empty(512 * MIB, dtype=torch.uint8, device="cuda")


def runtime() -> ctypes.CDLL:
    """The CUDA runtime that torch has loaded."""
    return ctypes.CDLL(f"libcudart.so.{torch.version.cuda.split('.')[0]}")


def capture_beside(seen: Seen, mode: str, work: Callable[[], Any]) -> bool:
    """Whether a capture in `mode` and what another thread does during it both succeed, and the replay is right."""
    ready()
    numbers = torch.ones(1024, device="cuda")
    (numbers * 2 + 1).sum().item()
    graph, made, beside = torch.cuda.CUDAGraph(), [], []

    def capture() -> None:
        with torch.cuda.graph(graph, capture_error_mode=mode):
            doubled = numbers * 2
            beside.extend(in_threads(lambda: error_of(work)))
            made.append(doubled + 1)

    error = error_of(capture)
    seen.figure("capture_raised", told(error))
    seen.figure("other_thread_raised", told(beside[0] if beside else None))
    if error or not beside or beside[0]:
        return False
    numbers.fill_(3)
    graph.replay()
    torch.cuda.synchronize()
    return bool((made[0] == 7).all())


@check("A capture in global mode, torch.cuda.graph's default, is broken by another thread's cudaMalloc.")
def global_capture_is_broken_by_allocation(seen: Seen) -> None:
    seen.claim("capture or allocation fails", not capture_beside(seen, "global", fresh_memory))


@check("A capture in global mode is broken by another thread's torch.cuda.synchronize().")
def global_capture_is_broken_by_synchronize(seen: Seen) -> None:
    seen.claim("capture or synchronize fails", not capture_beside(seen, "global", torch.cuda.synchronize))


@check("A capture in thread_local mode is not broken by another thread's cudaMalloc.")
def thread_local_capture_bears_allocation(seen: Seen) -> None:
    seen.claim("both succeed", capture_beside(seen, "thread_local", fresh_memory))


@check(
    "A capture in thread_local mode too is broken by another thread's torch.cuda.synchronize(): beside a capture "
    "nobody may wait for the device, only for streams."
)
def thread_local_capture_is_broken_by_synchronize(seen: Seen) -> None:
    seen.claim(
        "capture or synchronize fails", not capture_beside(seen, "thread_local", torch.cuda.synchronize)
    )


@check("A capture in thread_local mode is not broken by another thread that waits for a stream of its own.")
def thread_local_capture_bears_a_wait_for_a_stream(seen: Seen) -> None:
    stream = torch.cuda.Stream()
    seen.claim("both succeed", capture_beside(seen, "thread_local", stream.synchronize))


@check(
    "A capture in thread_local mode is not broken by another thread that takes and gives back pinned memory."
)
def thread_local_capture_bears_pinned_memory(seen: Seen) -> None:
    def pinned() -> None:
        torch.empty(32 * MIB, dtype=torch.uint8, pin_memory=True).fill_(1)
        torch._C._host_emptyCache()

    seen.claim("both succeed", capture_beside(seen, "thread_local", pinned))


@check(
    "A capture in thread_local mode is not broken by another thread's cudaFree, of memory that nobody uses."
)
def thread_local_capture_bears_free(seen: Seen) -> None:
    ready()
    address = ctypes.c_void_p()
    if runtime().cudaMalloc(ctypes.byref(address), ctypes.c_size_t(64 * MIB)):
        raise CannotCheck("there is no memory to free")

    def free() -> None:
        if error := runtime().cudaFree(address):
            raise RuntimeError(f"cudaFree answers {error}")

    seen.claim("both succeed", capture_beside(seen, "thread_local", free))


@check("A capture in thread_local mode is not broken by another thread that gives up cuFFT's plans.")
def thread_local_capture_bears_the_end_of_plans(seen: Seen) -> None:
    ready()
    for size in (1000, 1024):
        torch.fft.fft(torch.ones(size, device="cuda")).abs().sum().item()
    plans = torch.backends.cuda.cufft_plan_cache
    seen.figure("plans", plans.size)
    seen.claim("both succeed", capture_beside(seen, "thread_local", plans.clear))


@check(
    "A capture in thread_local mode is not broken by another thread's cudaMemcpy, which waits for the legacy stream."
)
def thread_local_capture_bears_a_copy_that_waits(seen: Seen) -> None:
    ready()
    source = ctypes.create_string_buffer(MIB)
    target = torch.zeros(MIB, dtype=torch.uint8, device="cuda")
    torch.cuda.synchronize()

    def copy() -> None:
        to_device = 1
        where, size = ctypes.c_void_p(target.data_ptr()), ctypes.c_size_t(MIB)
        if error := runtime().cudaMemcpy(where, source, size, to_device):
            raise RuntimeError(f"cudaMemcpy answers {error}")

    seen.claim("both succeed", capture_beside(seen, "thread_local", copy))


@check(
    "A capture in thread_local mode is not broken by another thread's first launch of a kernel, which loads it."
)
def thread_local_capture_bears_a_first_launch(seen: Seen) -> None:
    ready()
    numbers = torch.ones(8, device="cuda")
    seen.claim("both succeed", capture_beside(seen, "thread_local", lambda: torch.hypot(numbers, numbers)))
