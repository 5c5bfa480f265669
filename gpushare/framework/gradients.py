"""Whether a call of `torch.autograd.grad` is a backward pass, or a step on the way to one that is still to come."""

from __future__ import annotations

import inspect
import sys
from types import FrameType

import torch
from torch._functorch import eager_transforms

_OF_TRANSFORMS = eager_transforms._autograd_grad.__code__
_OWN_LEVEL = inspect.unwrap(eager_transforms.grad_and_value_impl).__code__  # others have left theirs


def is_a_pass(create_graph: bool) -> bool:
    """For the call of `torch.autograd.grad` that is under way: the outermost transform, or a gradient without a graph.

    The transforms of `torch.func` make a graph of every gradient, whether or not anyone differentiates it again.
    """
    frame: FrameType | None = sys._getframe()
    while frame and frame.f_code is not torch.autograd.grad.__code__:
        frame = frame.f_back
    caller = frame and frame.f_back
    if caller is None:
        return False
    by_transform = caller.f_code is _OF_TRANSFORMS
    if create_graph and not by_transform:
        return False
    above = caller.f_back
    own_level = by_transform and above is not None and above.f_code is _OWN_LEVEL
    return _levels_of_gradients() == own_level


def _levels_of_gradients() -> int:
    levels = torch._C._functorch.get_interpreter_stack() or ()
    grad = torch._C._functorch.TransformType.Grad
    return sum(level.key() == grad for level in levels)
