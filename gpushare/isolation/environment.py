"""`os.environ` for jobs that were given an environment of their own, and for the processes they start."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, MutableMapping
from typing import Any

from gpushare.isolation import context

_host_environ = os.environ


class _Environ(MutableMapping[str, str]):
    def _target(self) -> MutableMapping[str, str]:
        job = context.current()
        return _host_environ if job is None or job.environ is None else job.environ

    def __getitem__(self, key: str) -> str:
        return self._target()[key]

    def __setitem__(self, key: str, value: str) -> None:
        self._target()[key] = value

    def __delitem__(self, key: str) -> None:
        del self._target()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._target())

    def __len__(self) -> int:
        return len(self._target())

    def __repr__(self) -> str:
        return f"environ({dict(self)!r})"

    def copy(self) -> dict[str, str]:
        return dict(self)


def install() -> None:
    """Replace `os.environ`, and hand it to child processes that are given none."""
    setattr(os, "environ", _Environ())  # noqa: B010 - the object itself is replaced, on purpose
    original = subprocess.Popen.__init__

    def start(self: Any, *args: Any, **kwargs: Any) -> None:
        job = context.current()
        # env is the eleventh parameter of Popen; hardly anybody passes it by position.
        if job and job.environ is not None and kwargs.get("env") is None and len(args) < 11:
            kwargs["env"] = dict(job.environ)
        original(self, *args, **kwargs)

    subprocess.Popen.__init__ = start  # type: ignore[method-assign]
