"""What a long calculation is at, on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType

from rich.console import Console
from rich.status import Status

_QUIET_S = 2.0  # before the first line, and between two


class Progress:
    """A spinner on a terminal; elsewhere a line now and then, and none if all is over soon.

    :param clock: seconds.
    """

    def __init__(self, console: Console | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console or Console(stderr=True)
        self._clock = clock
        self._told_s = clock()
        self._status: Status | None = None

    def __enter__(self) -> Progress:
        if self._console.is_terminal:
            self._status = self._console.status("")
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status:
            self._status.stop()

    def tell(self, what: str) -> None:
        """This comes next."""
        if self._status:
            self._status.update(what)
        elif self._clock() >= self._told_s + _QUIET_S:
            self._told_s = self._clock()
            print(f"gpushare: {what}", file=self._console.file or sys.stderr, flush=True)
