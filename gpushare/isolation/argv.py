"""`sys.argv` per job, for reading and for assignment.

A property of the module's class comes before the module's own attribute, also for compiled lookups.
"""

from __future__ import annotations

import sys
import types

from gpushare.isolation import context

_host_argv = sys.argv


class _Sys(types.ModuleType):
    @property
    def argv(self) -> list[str]:
        job = context.current()
        return job.argv if job else _host_argv

    @argv.setter
    def argv(self, value: list[str]) -> None:
        global _host_argv
        job = context.current()
        if job:
            job.argv = value
        else:
            _host_argv = value


def install() -> None:
    """Give the module `sys` a class of our own."""
    sys.__class__ = _Sys
