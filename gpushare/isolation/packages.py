"""What well-known packages keep once per process though it is a script's: each job has its own."""

from __future__ import annotations

import copy
import types
from functools import partial
from typing import Any

from gpushare.isolation import context, imports, patches
from gpushare.isolation.class_attributes import ClassAttribute
from gpushare.isolation.perjob import PerJob
from gpushare.isolation.swapped_names import SwappedNames, has_names

# Dictionaries and sets that are attributes of classes.
_STATE: dict[str, tuple[tuple[str, str], ...]] = {
    # Who has an `Accelerator` or a `Trainer`: its precision, and whether gradients are gathered just now.
    "accelerate.state": tuple(
        (kind, "_shared_state") for kind in ("PartialState", "AcceleratorState", "GradientState")
    ),
    "matplotlib._pylab_helpers": (("Gcf", "figs"),),  # the figures that pyplot draws into
    # With the configurations that a script has registered.
    "hydra.core.singleton": (("Singleton", "_instances"),),
    "omegaconf.basecontainer": (("BaseContainer", "_resolvers"),),
    "tqdm.std": (("tqdm", "_instances"),),  # the bars on the screen: each has a line of its own
}


def _split(places: tuple[tuple[str, str], ...], module: types.ModuleType) -> None:
    for kind_name, name in places:
        if has_names(module, kind_name) and has_names(kind := getattr(module, kind_name), name):
            shared = vars(kind)[name]
            own: PerJob[Any] = PerJob(shared, partial(copy.deepcopy, shared), imports_set_all=True)
            setattr(kind, name, ClassAttribute(kind, name, own))


def _split_wandb(module: types.ModuleType) -> None:
    """The connection to its service, with the settings that it has read from the environment."""
    functions = ("_setup", "teardown")
    if not has_names(module, "_singleton", *functions):
        return
    own = SwappedNames(module, ("_singleton",))
    for name in functions:
        setattr(module, name, own.around(getattr(module, name)))


def install() -> None:
    """When a job imports one of them."""
    for name, places in _STATE.items():
        imports.when_imported(name, partial(_split, places))
    imports.when_imported("wandb.sdk.wandb_setup", _split_wandb)
    imports.when_imported("wandb", patches.also_by_packages)  # `wandb.run`, `wandb.log`, ...: of the open run


def enter(job: context.JobContext) -> None:
    """Nothing: a job begins with a copy of what the packages have put there themselves."""


def leave(job: context.JobContext) -> None:
    """Nothing: they go with the context."""
