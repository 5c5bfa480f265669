"""Streams and events: who has which, who waits for whom, what a call costs."""

import os
import threading
import time
from collections.abc import Callable
from typing import Any

from ..checks import Seen, check
from ..device import in_threads, ready, spin, synchronised_s, wall_s
from ..driver import Driver
from ..later import torch

DRIVER = ("driver",)
SLOW_S = 0.02  # a launch that takes longer has waited


@check("The current stream is thread-local, and a new thread starts on the legacy stream 0.", rank=1)
def new_threads_start_on_stream_0(seen: Seen) -> None:
    torch.cuda.init()

    def current() -> int:
        return int(torch.cuda.current_stream().cuda_stream)

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        (elsewhere,) = in_threads(current)
        here = current()
    seen.claim("this thread keeps its stream", here == stream.cuda_stream)
    seen.claim("a new thread has stream 0", elsewhere == 0)


@check("torch has 32 streams for each priority: the 33rd that is asked for is the first again.")
def stream_pool_has_32(seen: Seen) -> None:
    streams = [torch.cuda.Stream().cuda_stream for _ in range(66)]
    distinct = len(set(streams))
    seen.figure("distinct_of_66", distinct)
    seen.claim("32 distinct", distinct == 32)
    seen.claim("the 33rd is the first", streams[32] == streams[0])


def keeps_order(writer: Any, reader: Any) -> bool:
    """Whether a read on one stream sees a late write that was issued before it on another."""
    numbers = torch.zeros(1 << 20, device="cuda")
    copy = torch.empty_like(numbers)  # now, since asking for memory may wait for what runs
    torch.cuda.synchronize()
    with torch.cuda.stream(writer):
        spin(50)
        numbers.fill_(1)
    with torch.cuda.stream(reader):
        copy.copy_(numbers)
    torch.cuda.synchronize()
    return bool((copy == 1).all())


def event_keeps_order(busy: Any, idle: Any) -> bool:
    """Whether an event that is recorded on an idle stream waits for what was issued on another one before."""
    torch.cuda.synchronize()
    with torch.cuda.stream(busy):
        spin(50)
    event = idle.record_event()
    early = event.query()
    event.synchronize()
    return not early and bool(busy.query())


def one_by_one_s(driver: Driver, between: Callable[[], Any]) -> float:
    """Seconds of two spins of 100 ms on two blocking streams, with something launched between them."""
    one, other = (torch.cuda.ExternalStream(driver.stream(True)) for _ in range(2))

    def work() -> None:
        with torch.cuda.stream(one):
            spin(100)
        between()
        with torch.cuda.stream(other):
            spin(100)

    return synchronised_s(work)


@check(
    "Streams from cuStreamCreate without flags, wrapped as torch.cuda.ExternalStream, keep the order of the legacy "
    "default stream in both directions; torch's own streams do not. Among themselves they overlap.",
    rank=1,
    libraries=DRIVER,
)
def blocking_streams_keep_order(seen: Seen) -> None:
    ready()
    driver = Driver()
    legacy = torch.cuda.default_stream()
    blocking, free = (torch.cuda.ExternalStream(driver.stream(flag)) for flag in (True, False))
    seen.claim("the legacy stream waits for a blocking one", keeps_order(blocking, legacy))
    seen.claim("a blocking stream waits for the legacy one", keeps_order(legacy, blocking))
    seen.claim("a non-blocking one has no such order", not keeps_order(free, legacy))
    seen.claim("nor have torch's streams", not keeps_order(torch.cuda.Stream(), legacy))
    seen.claim(
        "an event on an idle blocking stream comes after the legacy one's work",
        event_keeps_order(legacy, blocking),
    )
    numbers = torch.ones(8, device="cuda")
    overlapped = one_by_one_s(driver, lambda: None)
    kept_apart = one_by_one_s(driver, lambda: numbers.add_(1))
    seen.figure("two_spins_of_100_ms_s", overlapped)
    seen.figure("with_a_legacy_launch_between_s", kept_apart)
    seen.claim("two blocking streams overlap", overlapped < 0.15)


def waited_ms(wait: Callable[[], Any], busy: Any) -> float:
    """Milliseconds that `wait` takes while another stream has 200 ms of work."""
    with torch.cuda.stream(busy):
        spin(200)
    took = 1000 * wall_s(wait)
    torch.cuda.synchronize()
    return took


@check(
    "torch.cuda.synchronize waits for the streams of all threads, a stream's synchronize only for its own; "
    "default_stream().synchronize() waits for blocking streams too.",
    libraries=DRIVER,
)
def synchronize_waits_for_all(seen: Seen) -> None:
    ready()
    driver = Driver()
    busy, idle = (torch.cuda.ExternalStream(driver.stream(True)) for _ in range(2))
    took = {
        "torch.cuda.synchronize": waited_ms(torch.cuda.synchronize, busy),
        "own stream": waited_ms(idle.synchronize, busy),
        "legacy, other blocking": waited_ms(torch.cuda.default_stream().synchronize, busy),
        "legacy, other from torch": waited_ms(torch.cuda.default_stream().synchronize, torch.cuda.Stream()),
    }
    seen.figure("waited_ms", took)
    seen.claim("torch.cuda.synchronize waits", took["torch.cuda.synchronize"] > 100)
    seen.claim("a stream of one's own does not", took["own stream"] < 100)
    seen.claim("the legacy stream does, for blocking ones", took["legacy, other blocking"] > 100)


@check("Two threads with a stream each overlap on the device: two kernels take as long as one.", rank=1)
def threads_overlap_on_the_device(seen: Seen) -> None:
    ready()

    def work(stream: Any) -> None:
        with torch.cuda.stream(stream):
            spin(300)
            stream.synchronize()

    streams = [torch.cuda.Stream(), torch.cuda.Stream()]
    apart = synchronised_s(lambda: in_threads(*(lambda s=s: work(s) for s in streams)))
    together = synchronised_s(lambda: in_threads(*(lambda: work(streams[0]) for _ in range(2))))
    seen.figure("on_two_streams_s", apart)
    seen.figure("on_one_stream_s", together)
    seen.claim("in less than 0.7 of the time of one stream", apart < 0.7 * together)


@check(
    "Launching blocks when about a thousand operations are queued on a stream; a full stream does not block launches "
    "of another thread on another stream.",
    rank=1,
    limit_s=60,
)
def full_queue_blocks_its_own_stream(seen: Seen) -> None:
    ready()
    numbers = [torch.ones(8, device="cuda") for _ in range(2)]
    full, other = torch.cuda.Stream(), torch.cuda.Stream()
    issued, waits = [0], []
    begun = threading.Event()

    def fill() -> None:
        with torch.cuda.stream(full):
            spin(1500)
            begun.set()
            for issued[0] in range(6000):
                took = wall_s(lambda: numbers[0].add_(1))
                if took > SLOW_S:
                    waits.append((issued[0], took))
                    break

    def beside() -> tuple[int, float]:
        begun.wait()
        time.sleep(0.7)  # the queue is full by now
        with torch.cuda.stream(other):
            depth = issued[0]
            return depth, wall_s(lambda: numbers[1].add_(1))

    _, (depth, took) = in_threads(fill, beside)
    torch.cuda.synchronize()
    seen.figure("issued_before_blocking", waits[0][0] if waits else f"more than {issued[0]}")
    seen.figure("blocked_s", waits[0][1] if waits else 0.0)
    seen.figure("issued_when_the_other_launched", depth)
    seen.figure("other_launch_ms", 1000 * took)
    seen.claim("it blocks between 256 and 5000 operations", bool(waits) and 256 <= waits[0][0] <= 5000)
    seen.claim("a launch on another stream goes on", took < 0.2)


@check(
    "To create, record, query or wait for an event without timing costs less than 5 us of CPU time each.",
    rank=1,
    libraries=DRIVER,
)
def event_costs(seen: Seen) -> None:
    ready()
    driver = Driver()
    one, other = driver.stream(True), driver.stream(True)
    driver.event_costs(one, other, 500)
    costs = driver.event_costs(one, other, 500)
    seen.figure("mean_us", costs)
    seen.claim("each under 5 us", max(costs.values()) < 5)


@check("A wait for an event of a busy stream delays the other stream, not the CPU.", libraries=DRIVER)
def event_wait_is_on_the_device(seen: Seen) -> None:
    ready()
    driver = Driver()
    busy, idle = (torch.cuda.ExternalStream(driver.stream(True)) for _ in range(2))
    numbers = torch.zeros(1 << 20, device="cuda")
    copy = torch.empty_like(numbers)  # now, since asking for memory may wait for what runs
    torch.cuda.synchronize()
    with torch.cuda.stream(busy):
        spin(100)
        numbers.fill_(1)
        event = busy.record_event()
    with torch.cuda.stream(idle):
        took = wall_s(lambda: idle.wait_event(event))
        copy.copy_(numbers)
    torch.cuda.synchronize()
    seen.figure("wait_us", 1e6 * took)
    seen.claim("the CPU goes on", took < 0.02)
    seen.claim("the other stream has waited", bool((copy == 1).all()))


def kept_waiting(connections: int) -> int:
    """Of 22 streams with a short kernel each, how many wait beside one that waits for another one's long kernel."""
    os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = str(connections)  # which the driver reads when it starts
    ready()
    # Made one after the other: torch makes those of its pool together with others of other priorities.
    driver = Driver()
    busy, behind, *others = (torch.cuda.ExternalStream(driver.stream(False)) for _ in range(24))
    numbers = torch.ones(8, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(busy):
        spin(300)
        end = busy.record_event()
    with torch.cuda.stream(behind):
        behind.wait_event(end)
        numbers.add_(1)
    done = []
    for stream in others:
        with torch.cuda.stream(stream):
            numbers.add_(1)
            done.append(stream.record_event())
    time.sleep(0.1)
    late = sum(not event.query() for event in done)
    torch.cuda.synchronize()
    return late


@check(
    "With CUDA_DEVICE_MAX_CONNECTIONS at 32 none of 22 streams waits behind another one that waits for an event.",
    libraries=DRIVER,
)
def many_connections_keep_nobody_waiting(seen: Seen) -> None:
    late = kept_waiting(32)
    seen.figure("streams kept waiting, of 22", late)
    seen.claim("none", late == 0)


@check("With CUDA_DEVICE_MAX_CONNECTIONS at 8, its default, some of 22 streams do.", libraries=DRIVER)
def few_connections_keep_some_waiting(seen: Seen) -> None:
    late = kept_waiting(8)
    seen.figure("streams kept waiting, of 22", late)
    seen.claim("some", late > 0)
