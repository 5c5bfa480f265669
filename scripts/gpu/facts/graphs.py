"""Capturing a CUDA graph while another thread works."""

from collections.abc import Callable
from typing import Any

from ..checks import Seen, check
from ..device import MIB, error_of, in_threads, ready, told
from ..later import torch


def fresh_memory() -> Any:
    """Memory that the allocator must ask the driver for."""
    return torch.empty(512 * MIB, dtype=torch.uint8, device="cuda")


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
