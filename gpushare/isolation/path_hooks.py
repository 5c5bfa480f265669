"""`sys.path_hooks` per job, and what they have made for each entry of `sys.path` (`sys.path_importer_cache`)."""

from __future__ import annotations

import sys
from copy import copy
from functools import partial

from gpushare.isolation import context, system
from gpushare.isolation.perjob import PerJob


def install() -> None:
    """A job begins with the host's; what a shared module sets while it is imported is the host's."""
    for name in ("path_hooks", "path_importer_cache"):
        host = vars(sys)[name]
        system.add_property(name, system.property_of(PerJob(host, partial(copy, host), imports_set_all=True)))


def enter(job: context.JobContext) -> None:
    """Nothing: values are made when they are first asked for."""


def leave(job: context.JobContext) -> None:
    """Nothing: values go with the context."""
