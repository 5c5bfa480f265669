"""A subclass of torch's pluggable allocator, compiled here against the installed torch."""

import ctypes
import statistics
import time
from typing import Any

from .. import libraries
from ..checks import CannotCheck, Seen, check
from ..device import MIB, error_of, in_threads, ready, told
from ..later import torch
from ..recording import ALLOC, FREE, Recording

BRIDGE = ("bridge", "allocator")
CALLS = (
    "allocate",
    "raw_alloc",
    "raw_alloc_with_stream",
    "raw_delete",
    "cache_info",
    "device_stats",
    "resets",
)


class Bridge:
    """The subclass, installed as torch's allocator over a recording one."""

    def __init__(self) -> None:
        self.recording = Recording()
        self._library = libraries.load("bridge")
        self._library.install_bridge.restype = ctypes.c_char_p
        self._library.install_bridge.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        self._library.bridge_calls.restype = ctypes.c_int64
        self._library.bridge_stated_bytes.restype = ctypes.c_int64
        alloc, free = (self.recording.function(name) for name in ("counted_alloc", "counted_free"))
        why = self._library.install_bridge(alloc, free)
        if why:
            raise CannotCheck(f"the subclass was not taken as allocator: {why.decode()[:200]}")

    def calls(self) -> dict[str, int]:
        return {name: self._library.bridge_calls(index) for index, name in enumerate(CALLS)}

    def stated_bytes(self) -> int:
        """What the subclass tells as the bytes that are allocated; its peak is twice that."""
        return int(self._library.bridge_stated_bytes())


@check(
    "A subclass of the pluggable allocator compiles with plain g++ against the installed torch within a minute, is "
    "taken as torch's allocator, and answers memory statistics and cudnn.benchmark.",
    rank=1,
    limit_s=60,
    libraries=BRIDGE,
)
def subclass_answers_what_the_stock_one_throws_at(seen: Seen) -> None:
    seconds = libraries.report("bridge")["seconds"]
    seen.figure("compile_s", seconds)
    seen.claim("it compiles within a minute", seconds < 60)
    bridge = Bridge()
    kept = torch.ones(1024, device="cuda")
    seen.claim("tensors there compute right", kept.sum().item() == 1024)
    for ask, times in ((torch.cuda.memory_allocated, 1), (torch.cuda.max_memory_allocated, 2)):
        said: list[int] = []
        error = error_of(lambda ask=ask, said=said: said.append(ask()))
        seen.claim(
            f"{ask.__name__} is ours{told(error) if error else ''}", said == [times * bridge.stated_bytes()]
        )
    seen.claim("reset_peak_memory_stats works", error_of(torch.cuda.reset_peak_memory_stats) is None)
    torch.backends.cudnn.benchmark = True
    network, images = torch.nn.Conv2d(8, 8, 3).cuda(), torch.randn(4, 8, 32, 32, device="cuda")
    error = error_of(lambda: network(images).sum().item())
    seen.figure("raised_with_cudnn_benchmark", told(error))
    seen.claim("cudnn.benchmark works", error is None)
    seen.figure("calls", bridge.calls())


@check(
    "The base class keeps its books under one lock: at four threads an allocation and its free take each thread more "
    "than twice as long as alone.",
    libraries=BRIDGE,
)
def base_class_has_one_lock(seen: Seen) -> None:
    library = libraries.load("bridge")
    library.bookkeeping_ns.restype = ctypes.c_double
    torch.cuda.init()
    took = {threads: library.bookkeeping_ns(threads, 200_000) for threads in (1, 2, 4, 8)}
    seen.figure("ns_per_pair_by_threads", {str(threads): ns for threads, ns in took.items()})
    seen.claim("it takes more than twice as long", took[4] > 2 * took[1])


def workspaces(bridge: Bridge, out: Any, factor: Any) -> list[int]:
    """The bytes that a matrix product into existing memory asks for."""
    bridge.recording.forget()
    torch.mm(factor, factor, out=out)
    torch.cuda.synchronize()
    return [call.bytes for call in bridge.recording.seen(ALLOC)]


@check(
    "cuBLAS takes a workspace for each handle (one per thread) and stream from torch's allocator, 32 MiB on Hopper, "
    "and keeps it; _cuda_clearCublasWorkspaces frees those of all threads.",
    rank=1,
    libraries=BRIDGE,
)
def cublas_workspaces(seen: Seen) -> None:
    bridge = Bridge()
    factor = torch.randn(512, 512, device="cuda")
    out, stream = torch.empty_like(factor), torch.cuda.Stream()

    def elsewhere() -> list[int]:
        with torch.cuda.stream(stream):
            return workspaces(bridge, out, factor)

    asked = {"first": workspaces(bridge, out, factor), "again": workspaces(bridge, out, factor)}
    asked["other_stream"] = elsewhere()
    (asked["other_thread"],) = in_threads(elsewhere)
    seen.figure("asked_bytes", asked)
    seen.figure("asked_by", bridge.calls())
    seen.claim("the first product asks", sum(asked["first"]) > 0)
    seen.claim("the second does not", not asked["again"])
    seen.claim("one on another stream does", sum(asked["other_stream"]) > 0)
    seen.claim("one in another thread does", sum(asked["other_thread"]) > 0)
    if torch.cuda.get_device_capability()[0] == 9:
        seen.claim("32 MiB on Hopper", sum(asked["first"]) == 32 * MIB)
    bridge.recording.forget()
    torch._C._cuda_clearCublasWorkspaces()
    freed = [call.bytes for call in bridge.recording.seen(FREE)]
    seen.figure("freed_bytes", freed)
    seen.claim("all are freed", sum(freed) == sum(sum(sizes) for sizes in asked.values()))


@check(
    "torch's own allocator gives and takes a cached block in under 10 us, torch.empty from Python included."
)
def native_allocation_cost(seen: Seen) -> None:
    ready()
    costs = {}
    for size in (512, 64 << 10, MIB, 8 * MIB, 64 * MIB):
        torch.empty(size, dtype=torch.uint8, device="cuda")
        times = []
        for _ in range(2000):
            begin = time.perf_counter_ns()
            torch.empty(size, dtype=torch.uint8, device="cuda")
            times.append(time.perf_counter_ns() - begin)
        costs[str(size)] = statistics.median(times)
    seen.figure("median_ns_by_bytes", costs)
    seen.claim("under 10 us", max(costs.values()) < 10_000)
