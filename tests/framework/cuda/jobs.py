"""Run as `tensors.py` is, with the compiled `calls.cpp` as the second argument: what jobs have of their own on a GPU
beside memory. Streams, waiting, random numbers, captures, a bound on how far the CPU runs ahead. The fake driver runs
nothing before somebody waits for it, so what a wait waits for is seen. Prints `ok` last.
"""

import ctypes
import importlib
import re
import sys
import threading
from pathlib import Path
from typing import Any

from job_threads import HOSTS_DEFAULT, MIB, U64, Body, Job, context, fake, torch, torch_threads

from gpushare.native import shim

PTR, SIZE = ctypes.c_void_p, ctypes.c_size_t
cuda_replays, cuda_run_ahead, iterations = (
    importlib.import_module(f"gpushare.framework.{name}")
    for name in ("cuda_replays", "cuda_run_ahead", "iterations")
)
calls = ctypes.CDLL(sys.argv[2])
calls.default_seed.restype = U64


def counter_names() -> list[str]:
    """Of the driver's counters behind those of calls and waits, in their order."""
    header = (Path(__file__).parents[3] / "shim/tests/fake_cuda/fake_cuda.h").read_text()
    fields = header.partition("struct fake_cuda_counters {")[2].partition("};")[0]
    return re.findall(r"uint64_t (\w+);", fields)


def pending() -> int:
    names = counter_names()

    class Counters(ctypes.Structure):
        _fields_ = [("calls", U64 * 64), ("waits", U64 * 8), *((name, U64) for name in names)]

    read = fake.fake_cuda_read_counters
    read.restype = Counters
    found = read()
    fake.fake_cuda_last_misuse.restype = ctypes.c_char_p
    wrong = found.misuses or found.capture_errors or found.deadlocks
    assert not wrong, fake.fake_cuda_last_misuse()
    return int(found.pending)


def pending_on(stream: int) -> int:
    """Operations of the stream that have not run. In all there may be more at any moment: the sampler marks memory
    that passes on, of other jobs too, on each of their streams."""
    fake.fake_cuda_pending.restype = U64
    return int(fake.fake_cuda_pending(PTR(stream)))


def launch(stream: int) -> None:
    """A kernel that writes to memory of nobody else."""
    tensor = torch.empty(MIB, dtype=torch.uint8, device="cuda")
    assert fake.fake_cuda_launch_write(PTR(stream), U64(tensor.data_ptr()), SIZE(MIB), U64(7)) == 0


def now() -> int:
    return int(torch.cuda.current_stream().cuda_stream)


first, second = Job(), Job()
seen: dict[str, Any] = {}


def default_streams(job: context.JobContext) -> None:
    own = torch.cuda.default_stream()
    assert own == torch.cuda.current_stream() and own.cuda_stream != HOSTS_DEFAULT
    assert shim.stream_account(own.cuda_stream) == job.account
    assert (
        torch.accelerator.current_stream().native_handle == own.cuda_stream
        if hasattr(torch.Stream, "native_handle")
        else True
    )
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        assert torch.cuda.current_stream() == side != torch.cuda.default_stream() == own
        side.wait_stream(own)
    assert torch.cuda.current_stream() == own
    torch.cuda.set_stream(torch.cuda.default_stream())
    assert now() == own.cuda_stream
    seen.setdefault("defaults", []).append(own.cuda_stream)


def side_streams(job: context.JobContext) -> None:
    made = [torch.cuda.Stream().cuda_stream for _ in range(31)]
    made.append(torch.Stream(device="cuda").stream_id)
    made.append(torch.cuda.Stream(priority=-1).cuda_stream)
    assert torch.cuda.Stream(priority=9).cuda_stream in made, "as torch: what is out of range is the nearest"
    assert len(set(made)) == 33 and all(shim.stream_account(s) == job.account for s in made), made
    again = [torch.cuda.Stream().cuda_stream for _ in range(32)]
    assert len(set(again)) == 32 and len(set(again) | set(made)) in (33, 34), again
    seen.setdefault("sides", []).append({*made, *again})


def held_by_another(_: context.JobContext) -> None:
    seen["held"] = now()
    launch(now())
    assert fake.fake_cuda_hold(PTR(now()), 1) == 0


def waits_for_its_own(_: context.JobContext) -> None:
    for wait in (torch.cuda.synchronize, torch.accelerator.synchronize):
        side = torch.cuda.Stream()
        torch.cuda.synchronize()
        before = pending()
        assert before > 0, "what the other job was given is held"
        launch(now())
        launch(side.cuda_stream)
        assert pending() == before + 2
        wait()
        assert pending() == before, (wait, before, pending())


def events(_: context.JobContext) -> None:
    torch.cuda.synchronize()
    before = pending()
    launch(now())
    event = torch.cuda.current_stream().record_event()
    side = torch.cuda.Stream()
    side.wait_event(event)
    launch(side.cuda_stream)
    assert not event.query() and not side.query()
    side.synchronize()
    assert event.query() and side.query() and pending() == before
    launch(now())
    torch.cuda.current_stream().record_event(event)
    event.synchronize()
    assert pending() == before


def released(_: context.JobContext) -> None:
    assert fake.fake_cuda_hold(PTR(seen["held"]), 0) == 0
    torch.cuda.synchronize()
    assert pending() == 0


def threads_of_a_job(job: context.JobContext) -> None:
    def run() -> None:
        torch_threads.enter(job)
        torch.cuda.manual_seed(77)
        found.append((torch.cuda.default_stream().cuda_stream, now(), calls.default_seed()))
        torch_threads.leave()

    found: list[tuple[int, int, int]] = []
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [(now(), now(), 77)] and torch.cuda.initial_seed() == 77, found


def state(seed: int) -> torch.Tensor:
    return torch.Generator("cuda").manual_seed(seed).get_state()


def fresh(_: context.JobContext) -> None:
    seen.setdefault("fresh", []).append(torch.cuda.initial_seed())
    assert torch.cuda.default_generators[0].get_offset() == 0
    assert len(torch.cuda.default_generators) == 1 == len(list(torch.cuda.default_generators))


def seeded(seed: int) -> Body:
    def body(_: context.JobContext) -> None:
        torch.manual_seed(seed)
        assert torch.cuda.initial_seed() == seed == calls.default_seed()
        assert torch.equal(torch.cuda.get_rng_state(), state(seed))
        torch.cuda.manual_seed_all(seed + 1)
        assert calls.default_seed() == seed + 1
        with torch.random.fork_rng(devices=[0]):
            torch.cuda.manual_seed(5)
            assert torch.cuda.initial_seed() == 5
        assert torch.cuda.initial_seed() == seed + 1
        torch.cuda.set_rng_state(state(seed + 2))
        assert torch.cuda.get_rng_state_all()[0].equal(state(seed + 2))
        generator = torch.cuda.default_generators[0]
        generator.set_offset(400)
        assert torch.cuda.default_generators[0].get_offset() == 400

    return body


def still_seeded(seed: int) -> Body:
    def body(_: context.JobContext) -> None:
        assert calls.default_seed() == torch.cuda.initial_seed() == seed + 2
        torch.cuda.seed_all()
        assert torch.cuda.initial_seed() != seed + 2

    return body


def begins_a_capture(_: context.JobContext) -> None:
    launch(now())
    graph = torch.cuda.CUDAGraph()
    capture = torch.cuda.graph(graph)
    capture.__enter__()
    assert now() != torch.cuda.default_stream().cuda_stream
    seen["graph"] = graph, capture, torch.empty(3 * MIB, dtype=torch.uint8, device="cuda"), now()


def works_meanwhile(_: context.JobContext) -> None:
    launch(now())
    kept = [torch.empty(n * MIB, dtype=torch.uint8, device="cuda") for n in (1, 40, 3)]
    torch.cuda.current_stream().record_event().synchronize()
    torch.cuda.synchronize()
    del kept
    torch.cuda.empty_cache()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        assert now() != seen["graph"][3], "a stream for captures of its own"
        torch.empty(MIB, device="cuda")


def captures_steps(job: context.JobContext) -> None:
    """The optimizer's hook is called by hand."""
    iterations.begin(job)
    marks: list[context.JobContext] = []
    iterations._after_mark = (marks.append,)
    graph, forward = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        torch.empty(MIB, device="cuda")
        iterations.after_step(job)
    with torch.cuda.graph(forward):
        torch.empty(MIB, device="cuda")
    assert not marks, "nothing of it has run"
    # The fake driver launches no graph; what a replay does is in ../test_marks.py.
    ends = cuda_replays._end_iterations
    assert graph in ends
    assert forward not in ends
    iterations.after_step(job)
    iterations._after_mark = ()
    assert marks == [job]
    iterations.end(job)


def fails_to_capture(_: context.JobContext) -> None:
    """As after a wait for the device in a capture: the driver does not end it. The script goes on."""
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    before = torch.cuda.memory_reserved()
    assert fake.fake_cuda_fail(b"cuStreamEndCapture", U64(1), 901)
    try:
        with torch.cuda.graph(graph, stream=stream):
            torch.empty(MIB, dtype=torch.uint8, device="cuda")
    except RuntimeError as error:
        assert "CUDA error" in str(error), error
        ended = PTR()
        assert fake.cuStreamEndCapture(PTR(stream.cuda_stream), ctypes.byref(ended)) == 0  # as the driver has
    else:
        raise AssertionError("the capture was to fail")
    del graph
    of_graph = torch.cuda.memory_reserved() - before
    later = torch.empty(40 * MIB, dtype=torch.uint8, device="cuda")
    del later
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() <= before + of_graph, "what is freed now can leave"


def ends_the_capture(job: context.JobContext) -> None:
    line = job.values[cuda_run_ahead.Line]
    cuda_run_ahead.mark(job)
    assert not line._in_flight, "no mark inside a capture"
    seen["graph"][1].__exit__(None, None, None)
    seen.pop("graph")
    assert torch.cuda.current_stream() == torch.cuda.default_stream()


def runs_ahead(_: context.JobContext) -> None:
    line = cuda_run_ahead.Line()
    launch(now())  # its memory was another's, whose streams are marked for it
    torch.cuda.synchronize()
    assert pending_on(now()) == 0
    for n in range(20):
        launch(now())
        line.mark(1.0 + n)
        assert line.limit == 1
        assert 0 < pending_on(now()) <= 4, "one iteration: its kernel, its marks"
    for n in range(100):
        line.mark(20.0 + n * 1e-4)
    assert line.limit == 50, line.limit
    torch.cuda.synchronize()


for job in (first, second):
    job.does(default_streams)
    job.does(fresh)
assert torch.cuda.default_stream().cuda_stream == torch.cuda.current_stream().cuda_stream == HOSTS_DEFAULT
assert len(set(seen["defaults"])) == 2 == len(set(seen["fresh"])), seen
second.does(held_by_another)
first.does(waits_for_its_own)
first.does(events)
second.does(released)
for job in (first, second):
    job.does(side_streams)
assert not set.intersection(*seen["sides"])
first.does(threads_of_a_job)
before = torch.cuda.initial_seed()
first.does(seeded(100))
second.does(seeded(200))
first.does(still_seeded(100))
second.does(still_seeded(200))
assert torch.cuda.initial_seed() == before == calls.default_seed(), "the host's own"
first.does(begins_a_capture)
second.does(works_meanwhile)
first.does(ends_the_capture)
third = Job()
third.does(runs_ahead)
third.does(captures_steps)
third.does(fails_to_capture)
for job in (first, second, third):
    job.does(None)
torch.cuda.synchronize()
assert pending() == 0
shim.check()
print("ok")
