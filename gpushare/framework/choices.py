"""Choices of torch that it keeps among the names of a module, behind functions that set and read them: per job.

Where `torch.hub` keeps what it loads, what converting a module does with its parameters (`torch.__future__`), and
whether distributions check their arguments.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributions
import torch.hub

from gpushare.isolation import context, patches
from gpushare.isolation.swapped_names import SwappedNames

# A module, its name, and the functions that use it.
_CHOICES: tuple[tuple[Any, str, tuple[str, ...]], ...] = (
    (torch.hub, "_hub_dir", ("set_dir", "get_dir")),
    *(
        (torch.__future__, f"_{choice}", (f"set_{choice}", f"get_{choice}"))
        for choice in ("overwrite_module_params_on_conversion", "swap_module_params_on_conversion")
    ),
)


def install() -> None:
    """Put the functions in their places, of those that this torch has."""
    for module, name, functions in _CHOICES:
        if all(each in vars(module) for each in (name, *functions)):
            own = SwappedNames(module, (name,))
            for function in functions:
                setattr(module, function, own.around(vars(module)[function]))
    patches.also_by_packages(torch.distributions.Distribution)  # `set_default_validate_args` sets it there


def enter(job: context.JobContext) -> None:
    """Nothing: a job begins with what the host has."""


def leave(job: context.JobContext) -> None:
    """Nothing: what it has chosen goes with it."""
