"""What well-known packages keep once per process though it is a script's: each job has its own."""

from __future__ import annotations

import types
from functools import partial

from gpushare.isolation import context, imports
from gpushare.isolation.class_attributes import ClassAttribute
from gpushare.isolation.perjob import PerJob

# Dictionaries that are attributes of classes.
_STATE: dict[str, tuple[tuple[str, str], ...]] = {
    # Who has an `Accelerator` or a `Trainer`: its precision, and whether gradients are gathered just now.
    "accelerate.state": tuple(
        (kind, "_shared_state") for kind in ("PartialState", "AcceleratorState", "GradientState")
    ),
    "matplotlib._pylab_helpers": (("Gcf", "figs"),),  # the figures that pyplot draws into
}


def _split(places: tuple[tuple[str, str], ...], module: types.ModuleType) -> None:
    for kind_name, name in places:
        kind = getattr(module, kind_name, None)
        if isinstance(kind, type) and isinstance(shared := vars(kind).get(name), dict):
            own = PerJob(shared, type(shared), imports_set_all=True)
            setattr(kind, name, ClassAttribute(kind, name, own))


def install() -> None:
    """When a job imports one of them."""
    for name, places in _STATE.items():
        imports.when_imported(name, partial(_split, places))


def enter(job: context.JobContext) -> None:
    """Nothing: a job begins with empty ones."""


def leave(job: context.JobContext) -> None:
    """Nothing: they go with the context."""
