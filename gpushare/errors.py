"""Errors that end gpushare with a message and an exit code; printed in one place, `commands.main`."""

from __future__ import annotations


class GpushareError(Exception):
    """Base of them all. Exit code 1: a job failed."""

    exit_code = 1


class UsageError(GpushareError):
    """Nothing was started."""

    exit_code = 2


class RefusedError(GpushareError):
    """A job can't run inside the budget."""

    exit_code = 3
