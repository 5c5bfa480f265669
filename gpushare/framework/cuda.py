"""Makes torch's CUDA ready for jobs: memory from the pool, initialised before any of them runs."""

from __future__ import annotations

from collections.abc import Callable

import torch

from gpushare.framework import cuda_bridge, cuda_capability, cuda_questions
from gpushare.framework.selfcheck import SelfCheckError
from gpushare.native import interpreter, shim


def start(note: Callable[[str], None]) -> None:
    """Once per host, when the shim has started on a GPU and torch has not touched it yet.

    :raises NativeError: torch does not take the allocator.
    :raises SelfCheckError: torch has no code for the GPU, or does not do as the shim says.
    """
    cuda_bridge.install(note)
    torch.cuda.init()
    cuda_questions.install_properties()
    # cuDNN's recurrent networks and plans of FFTs have mutexes in hand while they allocate.
    if not interpreter.watch_locks_of("libtorch_cuda."):
        note(
            f"torch {torch.__version__} has its locks where gpushare does not see who waits for them: two jobs with "
            "recurrent networks or FFTs may wait for each other; give them a budget in which neither waits"
        )
    cuda_capability.check()
    _check_streams()
    # Not on the legacy stream: an event there, as one marks what no job has freed, waits for all jobs' streams.
    with torch.cuda.stream(torch.cuda.Stream()):
        probe = torch.empty(1 << 18, device="cuda")
    if shim.owner(probe.data_ptr()) < 0:
        raise SelfCheckError(
            f"torch {torch.__version__} does not take CUDA memory from the allocator that it was given"
        )


def _check_streams() -> None:
    """Whether torch asks the shim which stream is the default one."""
    made_up = 1 << 12  # never given to the driver
    shim.thread_cuda_stream(made_up)
    try:
        found = torch.cuda.default_stream().cuda_stream
    finally:
        shim.thread_cuda_stream(0)
    if found != made_up:
        raise SelfCheckError(
            f"torch {torch.__version__} does not take a job's stream for its default one, so jobs would wait for "
            "each other"
        )
