"""Lines as they come, for pipes and files."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import TextIO

from gpushare.telemetry.reader import Telemetry


class PlainScreen:
    """Job lines as `name | text`; gpushare's own as `gpushare: text`."""

    def __init__(self, lines: TextIO, notes: TextIO) -> None:
        self._lines, self._notes = lines, notes
        self._lock = threading.Lock()

    def job_line(self, name: str, text: str) -> None:
        """Show a job's line."""
        self._write(self._lines, f"{name} | {text}")

    def note(self, text: str) -> None:
        """Show a line of gpushare's own."""
        self._write(self._notes, f"gpushare: {text}")

    def start(self, telemetry: Telemetry) -> None:
        """Nothing to follow."""

    def job_started(self, index: int, account: int) -> None:
        """Nothing to show."""

    def job_ended(self, index: int, status: str) -> None:
        """Nothing to show; the summary says it."""

    def stop(self) -> None:
        """Nothing to take down."""

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Nothing to move out of the way."""
        yield

    def _write(self, file: TextIO, text: str) -> None:
        with self._lock:
            try:
                print(text, file=file, flush=True)
            except OSError:  # a closed pipe must not end the jobs; their logs have it all
                return
