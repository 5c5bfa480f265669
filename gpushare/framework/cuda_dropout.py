"""The state of cuDNN's dropout in recurrent networks, per job. The bridge gives each its own
(`shim/bridge/dropout_states.cpp`); without a bridge there is one for all, as torch has it.
"""

from __future__ import annotations

from gpushare.isolation import context
from gpushare.native import bridge


def install() -> None:
    """Nothing: the bridge does it when it is installed."""


def enter(job: context.JobContext) -> None:
    """Nothing: a state comes with the first dropout."""


def leave(job: context.JobContext) -> None:
    """The job's state is freed, which torch would keep until another job makes one."""
    bridge.leave_dropout_state(job.account)
