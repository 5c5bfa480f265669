"""In which thread backward runs."""

import threading
import time
from typing import Any

from ..checks import Seen, check
from ..device import in_threads, ready
from ..later import torch


def backward_threads(times: int = 20, pause_s: float = 0.0) -> tuple[int, set[int], float]:
    """The calling thread, the threads in which a hook ran, and the seconds of all passes."""
    ids: set[int] = set()

    def note(_: Any) -> None:
        ids.add(threading.get_native_id())
        time.sleep(pause_s)

    begin = time.perf_counter()
    for _ in range(times):
        weights = torch.ones(64, device="cuda", requires_grad=True)
        product = weights * 2
        product.register_hook(note)
        product.sum().backward()
    return threading.get_native_id(), ids, time.perf_counter() - begin


def backward_here(times: int = 20, pause_s: float = 0.0) -> tuple[int, set[int], float]:
    with torch.autograd.set_multithreading_enabled(False):
        return backward_threads(times, pause_s)


def delayed(run: Any) -> Any:
    """A thread that begins when the one beside it is in its pause."""

    def start() -> Any:
        time.sleep(0.3)
        return run(times=1)

    return start


@check(
    "All backward passes on a device run in one worker thread: one that waits there holds up the other threads'.",
    rank=1,
)
def backward_has_one_worker(seen: Seen) -> None:
    ready()
    (one, its, _), (other, others, _) = in_threads(backward_threads, backward_threads)
    seen.figure("worker_threads", len(its | others))
    seen.claim("one thread for both", len(its | others) == 1)
    seen.claim("it is neither caller", not {one, other} & (its | others))
    _, (_, _, waited_s) = in_threads(lambda: backward_threads(1, 1.0), delayed(backward_threads))
    seen.figure("held_up_s", waited_s)
    seen.claim("a pause in one holds up the other", waited_s > 0.4)


@check(
    "With torch.autograd.set_multithreading_enabled(False), which is thread-local, backward on CUDA runs in the "
    "calling thread, and one that waits holds up nobody.",
    rank=1,
)
def backward_can_run_in_the_caller(seen: Seen) -> None:
    ready()
    (one, its, _), (other, others, _) = in_threads(backward_here, backward_here)
    seen.claim("in the calling threads", its == {one} and others == {other})
    (caller, plain, _), _ = in_threads(backward_threads, backward_here)
    seen.claim("other threads keep the worker", caller not in plain)
    _, (_, _, waited_s) = in_threads(lambda: backward_here(1, 1.0), delayed(backward_here))
    seen.figure("held_up_s", waited_s)
    seen.claim("a pause holds up nobody", waited_s < 0.4)


@check("torch.inference_mode(False) as a context switches multithreaded backward on again.")
def inference_mode_restores_the_worker(seen: Seen) -> None:
    ready()
    with torch.autograd.set_multithreading_enabled(False), torch.inference_mode(False):
        enabled = torch._C._is_multithreading_enabled()
        caller, threads, _ = backward_threads(1)
    seen.figure("enabled_within", enabled)
    seen.claim("backward runs in the worker", caller not in threads)
