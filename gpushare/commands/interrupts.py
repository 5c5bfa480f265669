"""Ctrl-C at the end of a run: it must not cost the summary of what has run."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self


class Interrupts:
    """Holds Ctrl-C back while it is entered; where it was ignored before, that stays. Main thread only.

    A run that is under way has handlers of its own (`launcher.signals`), and sets ours again at its end: so nothing
    comes through between that and the summary.
    """

    def __init__(self) -> None:
        self._came = False
        self._before: Any = signal.SIG_IGN

    def __enter__(self) -> Self:
        self._before = signal.getsignal(signal.SIGINT)
        self._hold()
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    @contextmanager
    def let_through(self) -> Iterator[None]:
        """For what may be given up.

        :raises KeyboardInterrupt: one comes, or came while it was held back.
        """
        try:
            signal.signal(signal.SIGINT, self._before)
            if self._came:
                raise KeyboardInterrupt
            yield
        finally:
            self._hold()

    def _hold(self) -> None:
        if self._before is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, self._note)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self._came = True
