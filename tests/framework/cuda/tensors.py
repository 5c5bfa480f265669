"""Run as `program.py` is, with the stand-in for the CUDA runtime preloaded: torch's own Python interface over the
allocator. With `plain` as the second argument, over the allocator that needs no compiler. Without the stand-in, on a
GPU, it computes as well: what jobs compute at once must equal what one computes alone. Prints `ok` last.
"""

import ctypes
import faulthandler
import gc
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

from tries import Tries, allocator_is_there

from gpushare.native import library, shim, usage

faulthandler.register(signal.SIGQUIT)  # where it hangs, on stderr
MIB = 1 << 20
BUDGET = 256 * MIB
PLAIN = sys.argv[2:] == ["plain"]

REAL = not hasattr(ctypes.CDLL(None), "fake_cuda_reset")
if not REAL:
    ctypes.CDLL(None).fake_cuda_reset(ctypes.c_uint64(int(os.environ.get("GPUSHARE_TEST_SEED", "11"))))
library.load(Path(sys.argv[1]))
library.library_path = lambda: Path(sys.argv[1])
shim.start(budget_bytes=BUDGET, page_bytes=2 * MIB, region_bytes=32 * MIB, policy="unmanaged", gpu=0)

import torch  # noqa: E402

from gpushare.framework import cuda_bridge, cuda_questions, cuda_streams  # noqa: E402

told: list[str] = []
cuda_bridge.install(told.append)
allocator_is_there(told, PLAIN)
torch.cuda.init()
CARD = torch.cuda.get_device_properties(0)
NAME, CARD_BYTES = CARD.name, CARD.total_memory
assert CARD_BYTES > BUDGET
cuda_questions.install_properties()
STREAMS = []
for job in (1, 2, 3):
    assert shim.job_begin(0) == job
    STREAMS.append(cuda_streams.make(job))


def tensor(count: int) -> torch.Tensor:
    return torch.empty(count, dtype=torch.uint8, device="cuda")


def in_job(job: int, function: Callable[[], None]) -> threading.Thread:
    def run() -> None:
        shim.thread_enter(job, 0)
        torch.autograd.set_multithreading_enabled(False)
        try:
            torch.cuda.set_stream(STREAMS[job - 1])
            assert torch.cuda.current_stream() == STREAMS[job - 1]
            function()
        except BaseException as error:
            failed.append(error)
        finally:
            shim.thread_leave()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


failed: list[BaseException] = []


def do(job: int, function: Callable[[], None]) -> None:
    joined([in_job(job, function)])


def joined(threads: list[threading.Thread]) -> None:
    """The first error of any is raised here; none is kept, with what its frames hold."""
    for thread in threads:
        thread.join()
    errors = list(failed)
    failed.clear()
    if errors:
        raise errors[0]


def nothing_is_held() -> None:
    gc.collect()
    torch.cuda.synchronize()
    for job in (0, 1, 2, 3):
        shim.trim(job)
        assert usage.memory(job).live_bytes == 0, (job, usage.memory(job).live_bytes)
    assert shim.pool_state().held_bytes == 0
    shim.check()


def figures_are_the_jobs_own() -> None:
    torch.cuda.reset_peak_memory_stats()
    first, second = tensor(20 * MIB), tensor(10 * MIB)
    assert shim.owner(first.data_ptr()) == 1
    assert torch.cuda.memory_allocated() == 30 * MIB == torch.cuda.max_memory_allocated()
    assert torch.cuda.memory_reserved() == 30 * MIB
    assert torch.cuda.mem_get_info() == (BUDGET - 30 * MIB, BUDGET)
    card = torch.cuda.get_device_properties(0)
    assert isinstance(card, torch.cuda._CudaDeviceProperties)
    assert (card.name, card.total_memory) == (NAME, CARD_BYTES if PLAIN else BUDGET)
    assert torch.accelerator.memory_allocated() == 30 * MIB
    if hasattr(torch.accelerator, "get_memory_info"):
        assert torch.accelerator.get_memory_info() == torch.cuda.mem_get_info()
    del first
    assert torch.cuda.memory_allocated() == 10 * MIB
    assert torch.cuda.max_memory_allocated() == 30 * MIB
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.max_memory_allocated() == 10 * MIB == torch.cuda.max_memory_reserved()
    summary = torch.cuda.memory_summary()
    assert "10240 KiB" in summary, summary

    def another() -> None:
        assert torch.cuda.memory_allocated() == 0
        assert torch.cuda.mem_get_info() == (BUDGET, BUDGET)

    do(2, another)
    del second
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() == 0


def out_of_memory() -> None:
    try:
        tensor(300 * MIB)
    except RuntimeError as error:
        text = str(error)
        assert isinstance(error, torch.OutOfMemoryError) or PLAIN
    assert "CUDA out of memory." in text and "the budget is 256.0 MiB" in text, text
    torch.cuda.set_per_process_memory_fraction(0.5)
    try:
        tensor(200 * MIB)
    except RuntimeError as error:
        text = str(error)
    assert "a limit of 128.0 MiB" in text, text
    torch.cuda.set_per_process_memory_fraction(1.0)
    tensor(200 * MIB)


def a_side_stream_keeps_a_tensor() -> None:
    side = torch.cuda.Stream()
    made = tensor(10 * MIB)
    address = made.data_ptr()
    made.record_stream(side)
    if REAL:  # or the stream is done, and the block free, before we look
        with torch.cuda.stream(side):
            torch.cuda._sleep(10**8)
    del made
    assert [p.use for p in usage.pieces(1) if p.address == address] == [usage.USED_ELSEWHERE]
    assert torch.cuda.memory_allocated() == 0
    shim.stream_end(side.cuda_stream)


def benchmark_asks_the_allocator() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.backends.cudnn.benchmark = True
    assert torch.backends.cudnn.benchmark is not PLAIN
    assert bool(caught) is PLAIN
    torch.backends.cudnn.benchmark = False


def the_profiler_is_told() -> None:
    if PLAIN:
        return
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True) as profiler:
        made = tensor(5 * MIB)
        del made
    bytes_of = {event.key: event.self_device_memory_usage for event in profiler.key_averages()}
    assert bytes_of["aten::empty"] == 5 * MIB, bytes_of
    assert bytes_of["[memory]"] == -5 * MIB, bytes_of


def graphs() -> None:
    graph = torch.cuda.CUDAGraph()
    kept = tensor(3 * MIB)
    try:
        with torch.cuda.graph(graph, stream=torch.cuda.Stream()):
            inside = tensor(3 * MIB)
            freed = tensor(5 * MIB)
            address = inside.data_ptr()
            del freed, kept
            of_graph = {p.arena for p in usage.pieces(1) if p.address == address}
            outside = [p.use for p in usage.pieces(1) if p.arena == 0 and p.asked == 3 * MIB]
            assert of_graph != {0} and outside == [usage.USED_ELSEWHERE], (of_graph, outside)
    except RuntimeError as error:
        assert PLAIN and "CUDA graphs need the allocator's bridge" in str(error)
        return
    assert not PLAIN
    held = torch.cuda.memory_reserved()
    del inside
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() >= 8 * MIB, held  # the graph will use it again
    assert all(p.arena for p in usage.pieces(1) if p.asked == 3 * MIB)
    del graph
    torch.cuda.empty_cache()
    assert not [p for p in usage.pieces(1) if p.bytes >= MIB and p.arena]
    torch.cuda.default_generators[0].graphsafe_set_state(
        torch.Generator("cuda")
    )  # frees what the capture kept


def pools_of_ones_own() -> None:
    if PLAIN:
        return
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        inside = tensor(3 * MIB)
        kept = tensor(9 * MIB)
        del kept  # no capture: it is free at once
        assert not [p for p in usage.pieces(1) if p.use == usage.USED_ELSEWHERE]
    outside = tensor(3 * MIB)
    told = pool.snapshot()
    blocks = [b["address"] for s in told for b in s["blocks"] if b["state"] == "active_allocated"]
    assert blocks == [inside.data_ptr()] and outside.data_ptr() not in blocks
    del inside, outside, pool
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() == 0


def blocks_of(pool: torch.cuda.MemPool) -> list[int]:
    return [b["address"] for s in pool.snapshot() for b in s["blocks"] if b["state"] == "active_allocated"]


def the_innermost_pool_counts() -> None:
    if PLAIN:
        return
    outer, inner = torch.cuda.MemPool(), torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(outer):
        before = tensor(3 * MIB)
        with torch.cuda.use_mem_pool(inner):
            inside = tensor(3 * MIB)
        after = tensor(3 * MIB)
        try:
            with torch.cuda.use_mem_pool(outer):
                raise AssertionError("two uses of one pool end each other")
        except RuntimeError as error:
            assert "already recording to mempool_id" in str(error), error
        still = tensor(3 * MIB)
    assert blocks_of(inner) == [inside.data_ptr()]
    assert set(blocks_of(outer)) == {made.data_ptr() for made in (before, after, still)}
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.use_mem_pool(outer), torch.cuda.graph(graph, stream=torch.cuda.Stream()):
        captured = tensor(5 * MIB)
    assert captured.data_ptr() not in blocks_of(outer) + blocks_of(inner), "it is the graph's"
    del before, after, still, inside, captured, graph, outer, inner
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() == 0


def several_jobs_at_once() -> None:
    def churn() -> None:
        kept: list[torch.Tensor] = []
        for n in range(600):
            kept.append(tensor(1 + (n * 7919) % (1 << (n % 22))))
            if len(kept) > 20:
                del kept[(n * 31) % 20]

    joined([in_job(job, churn) for job in (1, 2, 3) for _ in range(2)])


def losses(device: str, seed: int, deterministic: bool = True) -> list[float]:
    """Of a small network whose batches change their size. The switches are the calling job's own."""
    torch.use_deterministic_algorithms(deterministic)
    generator = torch.Generator(device).manual_seed(seed)
    images = torch.randn(48, 3, 32, 32, generator=generator, device=device)
    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(16 * 30 * 30, 64)
    ).to(device)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, device=device) * 0.02)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    told = []
    for step in range(30):
        loss = network(images[: 16 + 8 * (step % 4)]).square().mean()  # cuDNN plans anew for each size
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        told.append(loss.item())
    return told


def computing_together_equals_computing_alone() -> None:
    alone: dict[int, list[float]] = {}
    together: dict[int, list[float]] = {}
    for job in (1, 2, 3):
        do(job, lambda job=job: alone.update({job: losses("cuda", job)}))
    joined([in_job(job, lambda job=job: together.update({job: losses("cuda", job)})) for job in (1, 2, 3)])
    assert alone == together, (alone, together)
    assert len({tuple(values) for values in alone.values()}) == 3


def a_graph_computes_beside_others() -> None:
    source = torch.arange(MIB, dtype=torch.float32, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=torch.cuda.Stream()):
        doubled = source * 2
        result = doubled + 1
    for n in range(20):
        source.fill_(n)
        noise = [torch.full((MIB,), float(k), device="cuda") for k in range(n)]
        graph.replay()
        assert bool((result == 2 * n + 1).all()), n
        del noise


def cudnn_benchmark_computes() -> None:
    torch.backends.cudnn.benchmark = True
    losses("cuda", 1, deterministic=False)
    torch.backends.cudnn.benchmark = False


def jobs_end() -> None:
    torch.cuda.synchronize()
    for job, stream in enumerate(STREAMS, 1):
        assert shim.stream_account(stream.cuda_stream) == job
        cuda_streams.end(stream)
        assert shim.stream_account(stream.cuda_stream) == 0
        shim.job_end(job)
    shim.check()


tries = Tries()
for test in (
    figures_are_the_jobs_own,
    out_of_memory,
    a_side_stream_keeps_a_tensor,
    benchmark_asks_the_allocator,
    the_profiler_is_told,
    pools_of_ones_own,
    the_innermost_pool_counts,
):
    tries.part(test.__name__, lambda test=test: do(1, test))
    tries.part(f"nothing is held after {test.__name__}", nothing_is_held)
tries.part("several_jobs_at_once", several_jobs_at_once)
tries.part("nothing is held after several_jobs_at_once", nothing_is_held)
tries.part("graphs", lambda: do(1, graphs))
if REAL:
    tries.part("computing_together_equals_computing_alone", computing_together_equals_computing_alone)
    tries.part("cudnn_benchmark_computes", lambda: do(1, cudnn_benchmark_computes))
    if not PLAIN:
        tries.part("a_graph_computes_beside_others", lambda: do(2, a_graph_computes_beside_others))
tries.part("jobs_end", jobs_end)
tries.end()
