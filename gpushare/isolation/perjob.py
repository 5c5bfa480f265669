"""A value that each job has for itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from gpushare.isolation import context

T = TypeVar("T")


class PerJob(Generic[T]):
    """The host's value, and one per job, made when a job first asks; without `make` the host's until it is set.

    It dies with the job's context. A forked child keeps the value of the job that forked it. With
    `imports_set_all` a shared module that is being imported reads and sets the host's, with which later jobs
    begin.
    """

    def __init__(self, host: T, make: Callable[[], T] | None, *, imports_set_all: bool = False) -> None:
        self.host = host
        self._make = make
        self._imports_set_all = imports_set_all

    def _job(self) -> context.JobContext | None:
        return None if self._imports_set_all and context.importing_shared() else context.current()

    def get(self) -> T:
        """The calling job's value; the host's for the host's own threads."""
        job = self._job()
        return self.host if job is None else self.of(job)

    def of(self, job: context.JobContext) -> T:
        """The value of a job."""
        values = job.values
        try:
            value: T = values[self]
        except KeyError:
            if self._make is None:
                return self.host
            value = values.setdefault(self, self._make())
        return value

    def set(self, value: T) -> None:
        """Replace the calling job's value, or the host's."""
        job = self._job()
        if job is None:
            self.host = value
        else:
            job.values[self] = value


def drop_values(job: context.JobContext) -> None:
    """Forget what the script has set. What parts keep for the job's threads stays: those may go on for a while."""
    for key in list(job.values):
        if isinstance(key, PerJob | tuple):
            job.values.pop(key, None)
