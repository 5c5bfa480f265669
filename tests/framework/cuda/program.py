"""Run by a python whose torch is built for CUDA, with no GPU: the bridge as torch's allocator, the shim over the fake
driver. Arguments: the shim, the fake driver, the compiled `calls.cpp`. Prints `ok` last; fails with a traceback.

Memory of the fake driver can be touched by the CPU, so what blocks overlap is seen.
"""

import ctypes
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from gpushare.native import interruptions, library, shim, usage

KIB, MIB = 1 << 10, 1 << 20
BUDGET, PAGE = 256 * MIB, 2 * MIB

library.load(Path(sys.argv[1]))
library.lib()
library.library_path = lambda: Path(sys.argv[1])
fake = ctypes.CDLL(sys.argv[2])
fake.fake_cuda_reset(ctypes.c_uint64(int(os.environ.get("GPUSHARE_TEST_SEED", "11"))))
shim.start(
    budget_bytes=BUDGET, page_bytes=PAGE, region_bytes=32 * MIB, policy="unmanaged", gpu=0, driver=sys.argv[2]
)

import torch  # noqa: E402
from torch import _C  # noqa: E402

from gpushare.framework import cuda_bridge, cuda_toolchain  # noqa: E402

cuda_bridge.load(cuda_bridge.build(cuda_toolchain.find()))
calls = ctypes.CDLL(sys.argv[3])
for name in ("base_bytes", "cache_info", "total_bytes", "pool_snapshot_bytes", "observed_bytes"):
    getattr(calls, name).restype = ctypes.c_uint64
calls.refusal.restype = ctypes.c_char_p
raw_alloc: Callable[[int, int], int] = _C._cuda_cudaCachingAllocator_raw_alloc
raw_delete: Callable[[int], None] = _C._cuda_cudaCachingAllocator_raw_delete
U64, PTR = ctypes.c_uint64, ctypes.c_void_p


def new_stream() -> int:
    handle = ctypes.c_void_p()
    assert fake.cuStreamCreate(ctypes.byref(handle), 0) == 0
    return handle.value or 0


SIDE = new_stream()
STREAMS = []
for job in (1, 2, 3):
    assert shim.job_begin(0) == job
    STREAMS.append(new_stream())
    shim.stream_begin(job, STREAMS[-1])


def stats() -> dict[str, dict[str, dict[str, int]]]:
    return _C._cuda_memoryStats(0)


def in_job(job: int, function: Callable[[], None]) -> None:
    """In a thread of its own, as a job's."""
    failed: list[BaseException] = []

    def run() -> None:
        shim.thread_enter(job, 0)
        try:
            function()
        except BaseException as error:
            failed.append(error)
        finally:
            shim.thread_leave()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]


def nothing_is_held() -> None:
    shim.check()
    fake.fake_cuda_run_all()
    for job in (0, 1, 2, 3):
        shim.trim(job)
        assert usage.memory(job).live_bytes == 0, job
        assert not usage.pieces(job), job
    assert shim.pool_state().held_bytes == 0
    shim.check()


def blocks_and_their_figures() -> None:
    stream = STREAMS[0]
    small, large = raw_alloc(100, stream), raw_alloc(30 * MIB, stream)
    assert shim.owner(small) == shim.owner(large) == 1
    assert calls.base_bytes(PTR(large)) == 30 * MIB
    assert stats()["allocated_bytes"]["all"]["current"] == 512 + 30 * MIB
    held = stats()["reserved_bytes"]["all"]
    assert held["current"] == held["peak"] == 32 * MIB
    assert stats()["segment"]["all"]["current"] == 16
    assert calls.cache_info() == BUDGET - 32 * MIB
    assert calls.total_bytes() == BUDGET
    calls.delete_elsewhere(PTR(large))
    now = stats()["allocated_bytes"]["all"]
    assert (now["current"], now["peak"], now["freed"]) == (512, 512 + 30 * MIB, 30 * MIB)
    _C._cuda_resetPeakMemoryStats(0)
    _C._cuda_resetAccumulatedMemoryStats(0)
    now = stats()["allocated_bytes"]["all"]
    assert (now["peak"], now["allocated"], now["freed"]) == (512, 0, 0)
    raw_delete(small)
    assert raw_alloc(0, stream) == 0
    _C._cuda_emptyCache()
    assert stats()["reserved_bytes"]["all"]["current"] == 0


def a_snapshot_covers_what_is_reserved() -> None:
    blocks = [
        raw_alloc(n, STREAMS[0]) for n in (700, 20 * KIB, 300 * KIB, 5 * MIB, 12 * MIB) for _ in range(3)
    ]
    for address in blocks[::2]:
        raw_delete(address)
    segments = _C._cuda_memorySnapshot((0, 0, False))["segments"]
    assert sum(s["total_size"] for s in segments) == stats()["reserved_bytes"]["all"]["current"]
    assert sum(s["allocated_size"] for s in segments) >= stats()["allocated_bytes"]["all"]["current"]
    told = {b["address"] for s in segments for b in s["blocks"] if b["state"] == "active_allocated"}
    assert told == set(blocks[1::2])
    for segment in segments:
        assert sum(b["size"] for b in segment["blocks"]) == segment["total_size"]
        assert segment["device"] == 0 and segment["stream"] == STREAMS[0]
    for address in blocks[1::2]:
        raw_delete(address)


def out_of_memory_tells_the_figures() -> None:
    calls.observe()
    first = raw_alloc(200 * MIB, STREAMS[0])
    try:
        raw_alloc(100 * MIB, STREAMS[0])
    except torch.OutOfMemoryError as error:
        text = str(error)
    assert text.startswith("CUDA out of memory. Tried to allocate 100.00 MiB. gpushare: "), text
    assert "this job holds 200.0 MiB" in text and "the budget is 256.0 MiB" in text, text
    assert calls.observed_bytes() == 100 * MIB
    assert _C._cuda_memoryStats(0)["num_ooms"] == 1
    raw_delete(first)
    _C._cuda_setMemoryFraction(0.25, 0)
    assert _C._cuda_getMemoryFraction(0) == 0.25
    assert calls.cache_info() == BUDGET // 4 and calls.total_bytes() == BUDGET
    try:
        raw_alloc(80 * MIB, STREAMS[0])
    except torch.OutOfMemoryError as error:
        text = str(error)
    assert "a limit of 64.0 MiB" in text, text

    def another_has_no_limit() -> None:
        assert _C._cuda_getMemoryFraction(0) == 1.0
        raw_delete(raw_alloc(200 * MIB, STREAMS[1]))

    in_job(2, another_has_no_limit)
    _C._cuda_setMemoryFraction(1.0, 0)
    raw_delete(raw_alloc(200 * MIB, STREAMS[0]))
    for wrong in (-0.1, 1.1):
        try:
            _C._cuda_setMemoryFraction(wrong, 0)
        except ValueError:
            continue
        raise AssertionError(wrong)


class Stop(BaseException):
    pass


def what_is_sent_takes_the_place_of_the_error() -> None:
    """Of a wait that was ended for it."""
    me, clear = threading.get_ident(), ctypes.pythonapi.PyThreadState_SetAsyncExc

    def send() -> None:  # but for what comes at the next bytecode
        interruptions.interrupt(1, me, Stop)
        clear(ctypes.c_ulong(me), None)

    sys.setswitchinterval(100)
    sender = threading.Thread(target=send)
    sender.start()
    sender.join()
    sys.setswitchinterval(0.005)
    first = raw_alloc(200 * MIB, STREAMS[0])
    shim.cancel(1)
    try:
        raw_alloc(100 * MIB, STREAMS[0])
    except Stop as error:
        seen = str(error)
    assert seen == "gpushare: interrupted while waiting for memory", seen
    try:
        raw_alloc(100 * MIB, STREAMS[0])
    except RuntimeError as error:  # it has come
        seen = f"then {error}"
    assert seen == "then gpushare: interrupted while waiting for memory", seen
    shim.uncancel(1)
    raw_delete(first)


def a_job_without_a_thread_is_found_by_its_stream() -> None:
    shim.thread_leave()
    address = raw_alloc(MIB, STREAMS[2])
    assert shim.owner(address) == 3
    raw_delete(address)
    calls.pool_begin(U64(8), U64(STREAMS[2]))  # a pool is of who names it
    address = raw_alloc(MIB, STREAMS[2])
    assert shim.owner(address) == 0 and calls.pool_has_just(U64(8), PTR(address)) == 1
    calls.pool_end(U64(8))
    raw_delete(address)
    calls.pool_release(U64(8))
    shim.thread_enter(1, 0)


def other_streams_keep_a_block() -> None:
    fake.fake_cuda_launch_write.argtypes = [PTR, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_uint64]
    address = raw_alloc(10 * MIB, STREAMS[0])
    calls.record_stream(PTR(address), U64(SIDE))
    fake.fake_cuda_launch_write(PTR(SIDE), address, 10 * MIB, 5)  # has not run
    raw_delete(address)
    state = [p.use for p in usage.pieces(1) if p.address == address]
    assert state == [usage.USED_ELSEWHERE]
    pending = [b["state"] for s in _C._cuda_memorySnapshot((0, 0, False))["segments"] for b in s["blocks"]]
    assert "active_pending_free" in pending
    fake.fake_cuda_run_all()
    calls.record_foreign(PTR(address), U64(SIDE))  # another library's memory: nothing happens
    shim.trim(1)
    shim.stream_end(SIDE)


def graphs_keep_their_memory() -> None:
    stream = STREAMS[0]
    calls.pool_begin(U64(5), U64(stream))
    capture(True)
    inside = raw_alloc(3 * MIB, stream)
    outside = raw_alloc(3 * MIB, STREAMS[1])  # another stream of the job passes no filter
    assert calls.pool_has_just(U64(5), PTR(inside)) == 1
    assert calls.pool_has_just(U64(5), PTR(outside)) == 0
    assert calls.pool_snapshot_bytes(U64(5)) == 3 * MIB
    again = raw_alloc(3 * MIB, stream)
    raw_delete(again)
    assert raw_alloc(3 * MIB, stream) == again  # the graph's own again
    in_job(2, not_my_pool)
    capture(False)
    calls.pool_end(U64(5))
    assert raw_alloc(0, stream) == 0
    raw_delete(again)
    raw_delete(inside)
    held = usage.memory(1).held_bytes
    shim.trim(1)
    assert usage.memory(1).held_bytes >= 4 * MIB <= held  # the graph lives
    after = raw_alloc(3 * MIB, stream)
    assert after not in (inside, again)
    raw_delete(after)
    calls.pool_use(U64(5))
    assert calls.pool_users(U64(5)) == 2
    calls.pool_release(U64(5))
    shim.trim(1)
    assert usage.memory(1).held_bytes >= 4 * MIB
    calls.pool_release(U64(5))
    assert calls.pool_users(U64(5)) == 0
    raw_delete(outside)
    assert calls.pool_has_just(U64(5), None) == 1


def not_my_pool() -> None:
    address = raw_alloc(3 * MIB, STREAMS[0])
    assert shim.owner(address) == 2 and calls.pool_has_just(U64(5), PTR(address)) == 0
    raw_delete(address)


def capture(begins: bool) -> None:
    if hasattr(calls, "capture"):
        calls.capture(int(begins))


REFUSED = {
    "ipc out": "send tensor.cpu() instead",
    "ipc in": "send tensor.cpu() instead",
    "checkpoint": "no such memory pool",
    "restore": "no state that its allocator has given",
    "no split": "leave the argument out",
    "use on oom": "leave the argument out",
    "no use on oom": "",
    "history": "--trace",
    "no history": "",
    "tracker": "can't be followed",
    "peer": "one GPU",
    "base": "no block of this run starts at",
    "end of nothing": "nothing allocates",
    "release of nothing": "gone already",
}


def what_cannot_be_is_said() -> None:
    for what, words in REFUSED.items():
        said = (calls.refusal(what.encode()) or b"").decode()
        assert (words in said) if words else not said, (what, said)
        assert not said or said.startswith("gpushare: "), said


def many_threads_of_many_jobs() -> None:
    streams = (ctypes.c_uint64 * 3)(*STREAMS)
    for _ in range(3):
        assert calls.churn_all(3, 3, 3000, streams) == 0
        shim.check()


assert calls.is_installed() == 1
assert _C._cuda_getAllocatorBackend() == "native"
for test in (
    blocks_and_their_figures,
    a_snapshot_covers_what_is_reserved,
    out_of_memory_tells_the_figures,
    what_is_sent_takes_the_place_of_the_error,
    a_job_without_a_thread_is_found_by_its_stream,
    other_streams_keep_a_block,
    graphs_keep_their_memory,
    what_cannot_be_is_said,
    many_threads_of_many_jobs,
):
    in_job(1, test)
    nothing_is_held()
for job in (1, 2, 3):
    shim.job_end(job)
nothing_is_held()
fake.fake_cuda_last_misuse.restype = ctypes.c_char_p
assert not fake.fake_cuda_last_misuse(), fake.fake_cuda_last_misuse()
print("ok")
