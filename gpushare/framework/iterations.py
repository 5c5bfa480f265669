"""Where an iteration ends, found without help from the script.

Where the first one begins the shim sees: at the first node of an autograd graph (`shim/src/interpose.cpp`).

An optimizer step ends one. Others that follow it before any further backward pass (of two optimizers, or of one for
each parameter, in the pass itself) belong to it: what lies between them is no iteration. A backward pass that is
followed by another forward pass before any step ends one too (gradient accumulation, GANs, updates by hand); the
forward pass is seen by its graph, in the shim as well. A global hook of torch's modules would be seen by all jobs, and
by the compiler. Where a second backward starts with no step and no graph in between, each backward ends an iteration
from then on.

`torch.autograd.grad` and the transforms of `torch.func` count as backward passes in a script that has shown no other
and has no optimizer: elsewhere they are parts of an iteration (penalties, attacks, inner loops).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.optim import optimizer as optim

from gpushare.framework import gradients, shares, threads
from gpushare.framework.inplace import around_call
from gpushare.framework.uncompiled import tell_compiler, uncompiled
from gpushare.isolation import context
from gpushare.native import shim
from gpushare.native.library import NativeError


@dataclass
class _Progress:
    may_have_ended: bool = False
    every_backward: bool = False
    freed: bool = True  # the last pass has freed its graph
    by_gradients: bool = True  # no optimizer and no backward so far
    captures: bool = False  # nothing of what it calls runs now
    captured_end: bool = False
    steps: int = 0
    passed: bool = False  # a backward pass since the last mark
    stepped: set[int] = field(default_factory=set)  # optimizers, by id(), since that and with it


_progress: dict[int, _Progress] = {}
# After a backward pass this many nodes are a forward pass; fewer may be a loss that is added to another.
_NODES_OF_A_FORWARD = 3
_after_mark: tuple[Callable[[context.JobContext], None], ...] = ()


def install(*after_mark: Callable[[context.JobContext], None]) -> None:
    """Register the hooks. Each of `after_mark` is called with the job, in the thread that marked, after each mark."""
    global _after_mark
    _after_mark = after_mark
    tell_compiler()
    optim.register_optimizer_step_post_hook(after_step)
    _wrap_grad_scaler()
    _watch_new_optimizers()
    around_call(torch.autograd.backward, "_engine_run_backward", _before_backward, _after_backward)
    told = ("create_graph", "retain_graph")
    around_call(torch.autograd.grad, "_engine_run_backward", _before_gradients, _after_gradients, told=told)


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


@uncompiled
def capture_begins() -> None:
    """What the calling job's optimizers do from here on is captured, and runs with each replay."""
    job = _job()
    if job:
        progress = _progress[job.account]
        progress.captures, progress.captured_end = True, False


@uncompiled
def capture_ends() -> bool:
    """Whether an optimizer's step was captured, so that a replay ends an iteration."""
    job = _job()
    if not job:
        return False
    progress = _progress[job.account]
    progress.captures = False
    return progress.captured_end


@uncompiled
def replay_begins() -> None:
    """The calling job replays a graph that ends an iteration: nothing in it comes to the door by allocating.

    :raises torch.OutOfMemoryError: the job can't go on beside the others.
    """
    if _job():
        try:
            shim.iteration_door()
        except NativeError as error:
            raise torch.OutOfMemoryError(str(error)) from None


def _mark(job: context.JobContext) -> None:
    progress = _progress[job.account]
    if progress.captures:
        progress.captured_end = True
        return
    progress.may_have_ended = progress.passed = False
    progress.stepped.clear()
    shim.iteration_watch(job.account, 0)
    shim.iteration_mark(job.account)
    _marked(job)


def _marked(job: context.JobContext) -> None:
    shares.note(job)
    for call in _after_mark:
        call(job)


@uncompiled
def after_replay() -> None:
    """A graph with a captured step ends an iteration of the calling job."""
    job = _job()
    if job:
        _mark(job)


@uncompiled
def after_step(optimizer: Any, *_: Any) -> None:
    """An optimizer's step ends an iteration of the calling job, or belongs to the step that has ended it."""
    job = _job()
    if not job:
        return
    progress = _progress[job.account]
    progress.steps += 1
    if progress.captures or progress.passed or not progress.stepped or id(optimizer) in progress.stepped:
        _mark(job)
    progress.stepped.add(id(optimizer))


@uncompiled
def _before_backward() -> None:
    job = _job()
    if job:
        threads.keep_backward()
        _no_longer_by_gradients(job)
        _before_pass(job)


def _before_pass(job: context.JobContext) -> None:
    progress = _progress[job.account]
    progress.passed = True
    if not progress.may_have_ended or progress.captures:
        return
    if shim.iteration_watch(job.account, 0) > 0:
        progress.every_backward |= progress.freed
    else:  # the shim has marked at the forward pass
        progress.may_have_ended = False
        _marked(job)


@uncompiled
def _after_backward() -> None:
    job = _job()
    if job:
        _after_pass(job, freed=True)


def _after_pass(job: context.JobContext, *, freed: bool) -> None:
    progress = _progress[job.account]
    if progress.captures or not progress.passed:  # a step in the pass has ended it
        return
    progress.freed = freed
    if progress.every_backward:
        _mark(job)
    else:
        progress.may_have_ended = True
        shim.iteration_watch(job.account, _NODES_OF_A_FORWARD)


@uncompiled
def _before_gradients(create_graph: bool, retain_graph: bool) -> None:
    job = _job()
    if not job:
        return
    threads.keep_backward()
    if _progress[job.account].by_gradients and gradients.is_a_pass(create_graph):
        _before_pass(job)


@uncompiled
def _after_gradients(create_graph: bool, retain_graph: bool) -> None:
    job = _job()
    if job and _progress[job.account].by_gradients and gradients.is_a_pass(create_graph):
        _after_pass(job, freed=not retain_graph)


def _no_longer_by_gradients(job: context.JobContext) -> None:
    """What gradients have ended so far were parts of iterations."""
    progress = _progress[job.account]
    if progress.by_gradients:
        progress.by_gradients = progress.every_backward = progress.may_have_ended = False
        shim.iteration_watch(job.account, 0)


def _watch_new_optimizers() -> None:
    # Called by the constructor. A wrapper around that would be a frame in the tracebacks of its errors.
    original = optim.Optimizer._patch_step_function

    def _patch_step_function(self: Any) -> None:
        original(self)
        job = _job()
        if job:
            _no_longer_by_gradients(job)

    optim.Optimizer._patch_step_function = _patch_step_function


def _wrap_grad_scaler() -> None:
    # A step that is skipped for an overflow ends the iteration as well, and no hook fires for it.
    original = torch.amp.GradScaler.step

    def step(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        before = _steps()
        result = original(self, optimizer, *args, **kwargs)
        if _steps() == before:
            after_step(optimizer)
        return result

    torch.amp.GradScaler.step = step


@uncompiled
def _steps() -> int:
    job = _job()
    return _progress[job.account].steps if job else 0
