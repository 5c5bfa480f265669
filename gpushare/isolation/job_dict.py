"""A dictionary that each job has for itself, for who holds the object."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from gpushare.isolation import context, ownership
from gpushare.isolation.perjob import PerJob

_Table = dict[Any, Any]


class JobDict(_Table):
    """Answers as the calling job's copy of `host` does. It holds nothing itself.

    What a shared module adds while it is imported is in the host's and in every job's.

    :param copied: makes a job's copy, when it first asks.
    """

    def __init__(self, host: _Table, copied: Callable[[_Table], _Table] = copy.deepcopy) -> None:
        super().__init__()
        self._own: PerJob[_Table] = PerJob(host, partial(copied, host), imports_set_all=True)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._own.get()[key] = value
        if context.importing_shared():
            for job in ownership.live_jobs():
                if (own := job.values.get(self._own)) is not None:
                    own.setdefault(key, value)

    def update(self, *others: Any, **more: Any) -> None:
        for key, value in dict(*others, **more).items():
            self[key] = value

    def setdefault(self, key: Any, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def __ior__(self, other: Any) -> Any:  # type: ignore[misc]
        self.update(other)
        return self

    def __eq__(self, other: Any) -> bool:
        return self._own.get() == (other._own.get() if isinstance(other, JobDict) else other)

    __hash__ = None

    def __iter__(self) -> Iterator[Any]:
        return iter(self._own.get())

    def __reduce_ex__(self, _: Any) -> Any:
        return dict, (dict(self._own.get()),)


def _forward(name: str) -> None:
    def call(self: JobDict, *args: Any) -> Any:
        return getattr(self._own.get(), name)(*args)

    setattr(JobDict, name, call)


for _name in (
    *("__getitem__", "__delitem__", "__contains__", "__len__", "__reversed__", "__repr__"),
    *("__or__", "__ror__"),
    *("get", "pop", "popitem", "clear", "copy", "keys", "values", "items"),
):
    _forward(_name)
