"""Where an iteration ends, found without help from the script.

Where the first one begins the shim sees: at the first node of an autograd graph (`shim/src/interpose.cpp`).

An optimizer step ends one. A backward pass that is followed by another forward pass before any step ends one too
(gradient accumulation, GANs, updates by hand); the forward pass is seen by its graph, in the shim as well. A global
hook of torch's modules would be seen by all jobs, and by the compiler. Where a second backward starts with no step
and no graph in between, each backward ends an iteration from then on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.optim import optimizer as optim

from gpushare.framework import shares
from gpushare.framework.inplace import around_call
from gpushare.isolation import context
from gpushare.native import shim


@dataclass
class _Progress:
    may_have_ended: bool = False
    every_backward: bool = False


_progress: dict[int, _Progress] = {}
# After a backward pass this many nodes are a forward pass; fewer may be a loss that is added to another.
_NODES_OF_A_FORWARD = 3
_after_mark: tuple[Callable[[context.JobContext], None], ...] = ()


def install(*after_mark: Callable[[context.JobContext], None]) -> None:
    """Register the hooks. Each of `after_mark` is called with the job, in the thread that marked, after each mark."""
    global _after_mark
    _after_mark = after_mark
    optim.register_optimizer_step_post_hook(_after_step)
    _wrap_grad_scaler()
    around_call(torch.autograd.backward, "_engine_run_backward", _before_backward, _after_backward)


def begin(job: context.JobContext) -> None:
    """A job is there."""
    _progress[job.account] = _Progress()
    shares.begin(job)


def end(job: context.JobContext) -> None:
    """Forget a job."""
    if _progress.pop(job.account, None):
        shim.iteration_watch(job.account, 0)


def _job() -> context.JobContext | None:
    if torch.compiler.is_compiling():
        return None
    job = context.current()
    return job if job and job.account in _progress and context.in_host() else None


def _mark(job: context.JobContext) -> None:
    _progress[job.account].may_have_ended = False
    shim.iteration_watch(job.account, 0)
    shim.iteration_mark(job.account)
    _marked(job)


def _marked(job: context.JobContext) -> None:
    shares.note(job)
    for call in _after_mark:
        call(job)


def _after_step(*_: Any) -> None:
    job = _job()
    if job:
        _mark(job)


def _before_backward() -> None:
    job = _job()
    if job is None or not _progress[job.account].may_have_ended:
        return
    progress = _progress[job.account]
    if shim.iteration_watch(job.account, 0) > 0:
        progress.every_backward = True
    else:  # the shim has marked at the forward pass
        progress.may_have_ended = False
        _marked(job)


def _after_backward() -> None:
    job = _job()
    if job is None:
        return
    progress = _progress[job.account]
    if progress.every_backward:
        _mark(job)
    else:
        progress.may_have_ended = True
        shim.iteration_watch(job.account, _NODES_OF_A_FORWARD)


def _wrap_grad_scaler() -> None:
    # A step that is skipped for an overflow ends the iteration as well, and no hook fires for it.
    original = torch.amp.GradScaler.step

    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        _after_step()
        return result

    torch.amp.GradScaler.step = step
