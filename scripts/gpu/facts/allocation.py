"""The stock pluggable allocator: what reaches it, and what a script can't do with it."""

import threading
from collections.abc import Callable
from typing import Any

from ..checks import CannotCheck, Seen, check
from ..device import MIB, error_of, in_threads, told
from ..later import torch
from ..recording import (
    ALLOC,
    EMPTY_CACHE,
    FREE,
    GIVE_NULL,
    RECORD_STREAM,
    SERVE,
    THROW_BAD_ALLOC,
    THROW_OUT_OF_MEMORY,
    Record,
    Recording,
)

ALLOCATOR = ("allocator",)


def block(size: int = 1024) -> Any:
    return torch.empty(size, dtype=torch.uint8, device="cuda")


@check(
    "A C library with alloc and free can serve every CUDA tensor. alloc gets the unrounded bytes, the device "
    "and the current stream; free gets the stream of the allocation.",
    rank=1,
    libraries=ALLOCATOR,
)
def plain_allocator_serves_tensors(seen: Seen) -> None:
    calls = Recording().install()
    first = block(1000)
    asked = calls.seen(ALLOC)[-1]
    seen.claim("the unrounded bytes arrive", asked.bytes == 1000)
    seen.claim("the address is the tensor's", asked.address == first.data_ptr())
    seen.claim("device 0 and stream 0 arrive", (asked.device, asked.stream) == (0, 0))
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        second = block()
    seen.claim("the current stream arrives", calls.seen(ALLOC)[-1].stream == stream.cuda_stream)
    del second
    seen.claim("free gets the stream of the allocation", calls.seen(FREE)[-1].stream == stream.cuda_stream)
    seen.claim("tensors there compute right", torch.ones(1000, device="cuda").sum().item() == 1000)
    calls.forget()
    block(0)
    seen.figure("calls_for_an_empty_tensor", len(calls.seen(ALLOC)))


@check("torch's allocator can be replaced until CUDA is initialised, and not later.", libraries=ALLOCATOR)
def allocator_can_not_be_replaced_later(seen: Seen) -> None:
    block()
    error = error_of(lambda: Recording().install())
    seen.figure("raised", told(error))
    seen.claim("it is refused", error is not None)


@check(
    "The pluggable allocator does not check for null: the tensor is there, without memory.",
    libraries=ALLOCATOR,
)
def null_is_not_checked(seen: Seen) -> None:
    calls = Recording().install()
    block()
    calls.set_mode(GIVE_NULL)
    made: list[Any] = []
    error = error_of(lambda: made.append(block()))
    seen.figure("raised", told(error))
    seen.claim("nothing is raised", error is None)
    seen.claim("the tensor's address is 0", bool(made) and made[0].data_ptr() == 0)


@check("std::bad_alloc from alloc arrives as RuntimeError, not as OutOfMemoryError.", libraries=ALLOCATOR)
def bad_alloc_is_a_runtime_error(seen: Seen) -> None:
    calls = Recording().install()
    block()
    calls.set_mode(THROW_BAD_ALLOC)
    error = error_of(block)
    seen.figure("raised", told(error))
    seen.claim("it is a RuntimeError", type(error) is RuntimeError)


@check(
    "An alloc that throws c10::OutOfMemoryError, compiled against torch's headers alone, arrives as "
    "torch.OutOfMemoryError, in forward and inside backward, and the process can go on.",
    rank=1,
    libraries=("throwing_allocator",),
)
def thrown_out_of_memory_arrives(seen: Seen) -> None:
    calls = Recording("throwing_allocator").install()
    weights = torch.ones(64, device="cuda", requires_grad=True)
    loss = (weights.exp() * weights).sum()
    calls.set_mode(THROW_OUT_OF_MEMORY)
    in_forward, in_backward = error_of(block), error_of(loss.backward)
    calls.set_mode(SERVE)
    for where, error in (("forward", in_forward), ("backward", in_backward)):
        seen.figure(f"raised_in_{where}", told(error))
        seen.claim(f"OutOfMemoryError in {where}", isinstance(error, torch.OutOfMemoryError))
        seen.claim(f"its text, in {where}", str(error).startswith("CUDA out of memory."))
    seen.claim("a later backward works", error_of(lambda: weights.exp().sum().backward()) is None)


@check("torch's own allocator raises torch.OutOfMemoryError with a text that begins 'CUDA out of memory.'")
def native_out_of_memory_text(seen: Seen) -> None:
    block()
    total = torch.cuda.get_device_properties(0).total_memory
    error = error_of(lambda: block(4 * total))
    seen.figure("raised", told(error))
    seen.claim("it is torch.OutOfMemoryError", isinstance(error, torch.OutOfMemoryError))
    seen.claim(
        "torch.cuda.OutOfMemoryError is the same", torch.cuda.OutOfMemoryError is torch.OutOfMemoryError
    )
    seen.claim("its text begins so", str(error).startswith("CUDA out of memory."))


@check(
    "Under the stock pluggable allocator torch.cuda's memory statistics throw, while mem_get_info and empty_cache "
    "work; torch.accelerator's statistics still read the native allocator.",
    libraries=ALLOCATOR,
)
def plain_allocator_lacks_statistics(seen: Seen) -> None:
    Recording().install()
    kept = block(MIB)
    throwing = (
        "memory_stats",
        "memory_allocated",
        "max_memory_allocated",
        "memory_reserved",
        "reset_peak_memory_stats",
        "memory_snapshot",
    )
    for name in throwing:
        error = error_of(getattr(torch.cuda, name))
        seen.figure(name, told(error))
        seen.claim(f"{name} throws", error is not None)
    for name in ("mem_get_info", "empty_cache", "synchronize"):
        seen.claim(f"{name} works", error_of(getattr(torch.cuda, name)) is None)
    for name in ("get_per_process_memory_fraction", "memory_summary"):
        seen.figure(name, told(error_of(getattr(torch.cuda, name))))
    elsewhere = getattr(torch.accelerator, "memory_allocated", None)
    if elsewhere:
        found: list[Any] = []
        error = error_of(lambda: found.append(elsewhere()))
        seen.figure("accelerator_memory_allocated", found[0] if found else told(error))
        seen.claim("torch.accelerator does not see our tensor", not found or found[0] < kept.numel())


@check(
    "cudnn.benchmark=True breaks convolutions under the stock pluggable allocator, since cacheInfo throws.",
    rank=1,
    libraries=ALLOCATOR,
)
def plain_allocator_breaks_cudnn_benchmark(seen: Seen) -> None:
    Recording().install()
    if not torch.backends.cudnn.is_available():
        raise CannotCheck("cuDNN is not there")
    network = torch.nn.Conv2d(8, 8, 3).cuda()
    small, large = (torch.randn(4, 8, size, size, device="cuda") for size in (32, 64))
    seen.claim("without benchmark it works", error_of(lambda: network(small)) is None)
    torch.backends.cudnn.benchmark = True
    error = error_of(lambda: network(large))  # of another size: of the same one the plan is known by now
    seen.figure("raised", told(error))
    seen.claim("with benchmark it throws", error is not None)
    seen.claim("because of cacheInfo", "cacheInfo" in str(error))


@check(
    "record_stream and empty_cache do nothing, silently, until the allocator's hooks for them are set.",
    libraries=ALLOCATOR,
)
def unset_hooks_are_silent(seen: Seen) -> None:
    calls = Recording().install()
    stream = torch.cuda.Stream()
    kept = block()

    def both() -> None:
        kept.record_stream(stream)
        torch.cuda.empty_cache()

    seen.claim("without hooks nothing is raised", error_of(both) is None)
    seen.claim("without hooks nothing arrives", not calls.seen(RECORD_STREAM) + calls.seen(EMPTY_CACHE))
    calls.set_hooks()
    both()
    arrived = [(call.address, call.stream) for call in calls.seen(RECORD_STREAM)]
    seen.claim("record_stream arrives", arrived == [(kept.data_ptr(), stream.cuda_stream)])
    seen.claim("empty_cache arrives", len(calls.seen(EMPTY_CACHE)) == 1)


@check(
    "A CUDA graph can be captured and replayed under the stock pluggable allocator without its pool hooks; alloc "
    "is asked during the capture, on the capturing stream.",
    libraries=ALLOCATOR,
)
def plain_allocator_in_graph_capture(seen: Seen) -> None:
    calls = Recording().install()
    block()
    calls.make_arena(256 * MIB)  # the driver can't be asked for memory during a capture
    numbers = torch.ones(1024, device="cuda")
    graph, stream, made = torch.cuda.CUDAGraph(), torch.cuda.Stream(), []
    (numbers * 2 + 1).sum().item()

    def capture() -> None:
        with torch.cuda.graph(graph, stream=stream):
            made.append(numbers * 2 + 1)

    calls.forget()
    error = error_of(capture)
    seen.figure("raised", told(error))
    seen.claim("it can be captured", error is None)
    asked = [call for call in calls.seen(ALLOC) if call.stream == stream.cuda_stream]
    seen.figure("allocations_during_capture", len(asked))
    seen.claim("alloc is asked on the capturing stream", bool(asked))
    if error is None:
        numbers.fill_(3)
        graph.replay()
        torch.cuda.synchronize()
        seen.claim("the replay computes right", bool((made[0] == 7).all()))


def locks(calls: Recording, what: int, work: Callable[[], Any]) -> list[int]:
    """Whether the interpreter's lock was held, for each call that `work` made."""
    calls.forget()
    kept = work()
    found = sorted({record.gil for record in calls.seen(what)})
    del kept
    return found


@check(
    "Operators ask for memory without the interpreter's lock, torch.UntypedStorage(n) asks with it.",
    libraries=ALLOCATOR,
)
def lock_when_allocating(seen: Seen) -> None:
    calls = Recording().install()
    numbers = torch.ones(1024, device="cuda", requires_grad=True)
    works: dict[str, Callable[[], Any]] = {
        "operator": lambda: numbers + numbers,
        "backward": lambda: torch.autograd.grad((numbers * numbers).sum(), numbers),
        "empty": lambda: block(),
        "tensor_of_list": lambda: torch.tensor([1.0, 2.0], device="cuda"),
        "to_device": lambda: torch.ones(8).cuda(),
        "storage": lambda: torch.UntypedStorage(1024, device="cuda"),
        "scalar": lambda: torch.full((), 2.0, device="cuda"),
    }
    held = {name: locks(calls, ALLOC, work) for name, work in works.items()}
    if any(-1 in found for found in held.values()):
        raise CannotCheck("PyGILState_Check was not found in the process")
    seen.figure("held (1) or not (0)", held)
    seen.claim("an operator asks without it", held["operator"] == [0])
    seen.claim("backward asks without it", held["backward"] == [0])
    seen.claim("UntypedStorage asks with it", held["storage"] == [1])


@check(
    "A tensor is freed in the thread that drops it last.",
    libraries=ALLOCATOR,
)
def free_runs_where_a_tensor_is_dropped(seen: Seen) -> None:
    calls = Recording().install()
    held = [block()]

    def drop() -> int:
        calls.forget()
        held.clear()
        return threading.get_native_id()

    (thread,) = in_threads(drop)
    frees: list[Record] = calls.seen(FREE)
    seen.claim("one free, in the dropping thread", [call.thread for call in frees] == [thread])
    seen.figure("interpreter's lock held (1) or not (0)", [call.gil for call in frees])
