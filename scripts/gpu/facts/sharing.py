"""What two jobs in threads reach together, compared with one."""

import time
from collections.abc import Callable
from typing import Any

from ..checks import Seen, check
from ..device import in_threads, ready
from ..later import torch

MEASURED_S = 2.0
AHEAD = 16  # iterations that the CPU may be ahead of the device


def launch_bound() -> tuple[Any, Any]:
    layers = [torch.nn.Linear(64, 64) for _ in range(10)]
    return torch.nn.Sequential(*layers).cuda(), torch.randn(64, 64, device="cuda")


def convolutional(batch: int) -> tuple[Any, Any]:
    layers: list[Any] = [torch.nn.Conv2d(3, 64, 3, padding=1), torch.nn.ReLU()]
    for _ in range(10):
        layers += [torch.nn.Conv2d(64, 64, 3, padding=1), torch.nn.BatchNorm2d(64), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers).cuda(), torch.randn(batch, 3, 64, 64, device="cuda")


def trained(make: Callable[[], tuple[Any, Any]]) -> Callable[[float], float]:
    """A job on a stream of its own: called with seconds, it trains for so long and returns iterations per second."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        network, data = make()
        optimizer = torch.optim.SGD(network.parameters(), lr=1e-4)
    torch.cuda.synchronize()

    def step() -> None:
        optimizer.zero_grad()
        network(data).square().mean().backward()
        optimizer.step()

    def run(seconds: float) -> float:
        with torch.autograd.set_multithreading_enabled(False), torch.cuda.stream(stream):
            begin, done = time.perf_counter(), 0
            while time.perf_counter() - begin < seconds:
                for _ in range(AHEAD):
                    step()
                stream.synchronize()
                done += AHEAD
            return done / (time.perf_counter() - begin)

    return run


def total_ratio(seen: Seen, name: str, make: Callable[[], tuple[Any, Any]]) -> float:
    """The iterations per second of two jobs in threads, over those of one; alone before and after."""
    jobs = [trained(make), trained(make)]
    for job in jobs:
        in_threads(lambda job=job: job(0.5))
    before = in_threads(lambda: jobs[0](MEASURED_S))[0]
    both = sum(in_threads(*(lambda job=job: job(MEASURED_S) for job in jobs)))
    after = in_threads(lambda: jobs[1](MEASURED_S))[0]
    ratio = float(2 * both / (before + after))
    seen.figure(f"{name}: alone, together, alone again, per s", [before, both, after])
    seen.figure(f"{name}: together over alone", ratio)
    return ratio


@check(
    "Two launch-bound jobs in threads (ten linear layers of 64) reach less together than twice one alone, since they "
    "share the interpreter's lock.",
    rank=1,
    limit_s=60,
    quiet=True,
)
def launch_bound_jobs_share_the_lock(seen: Seen) -> None:
    ready()
    seen.claim("less than twice one", total_ratio(seen, "linear", launch_bound) < 2)


@check(
    "Two convolutional jobs in threads reach more together than one alone, where one does not fill the device.",
    rank=1,
    limit_s=90,
    quiet=True,
)
def convolutional_jobs_scale(seen: Seen) -> None:
    ready()
    small = total_ratio(seen, "batch 8", lambda: convolutional(8))
    large = total_ratio(seen, "batch 128", lambda: convolutional(128))
    seen.claim("more than 1.05 of one, in one of the sizes", max(small, large) > 1.05)


SMALL, LARGE = 400, 200  # kernels
SIDE = 8192  # of the matrices whose product fills a device


def beside_large_kernels_s(priority: int | None) -> float:
    """Seconds that many small kernels take, one behind the other; beside a queue of large ones where there is a
    priority, which is their stream's."""
    stream, other = torch.cuda.Stream(priority=priority or 0), torch.cuda.Stream(priority=0)
    small = torch.ones(1024, device="cuda")
    matrix = torch.ones(SIDE, SIDE, device="cuda", dtype=torch.bfloat16)
    product = torch.empty_like(matrix)
    torch.mm(matrix, matrix, out=product)
    small.add_(1)
    torch.cuda.synchronize()
    if priority is not None:
        with torch.cuda.stream(other):
            for _ in range(LARGE):
                torch.mm(matrix, matrix, out=product)
    begin = time.perf_counter()
    with torch.cuda.stream(stream):
        for _ in range(SMALL):
            small.add_(1)
    stream.synchronize()
    taken = time.perf_counter() - begin
    torch.cuda.synchronize()
    return taken


@check(
    "Small kernels on a stream of the highest priority, beside a queue of kernels that fill the device, take less than "
    "half of the time that they take on a stream of the same priority as those.",
    limit_s=60,
    quiet=True,
)
def priorities_help_small_kernels(seen: Seen) -> None:
    ready()
    beside_large_kernels_s(0)  # everything is loaded
    alone, same, urgent = (beside_large_kernels_s(priority) for priority in (None, 0, -5))
    seen.figure("seconds alone, beside large ones, with the highest priority", [alone, same, urgent])
    seen.claim("beside large ones they take more than twice as long as alone", same > 2 * alone)
    seen.claim("with the highest priority less than half of that", urgent < same / 2)
